// SPDX-License-Identifier: Apache-2.0
// ahead.c — random numbers, and numbers that are known from the start, are made before anybody waits for them.
// needs: programs of integers (pass_row_integers), values defined before use
// gives: such a program, with the few small ops it needs, stands where an earlier one is read; what makes single numbers of the
//        entry's single numbers for row programs stands at its begin
// stale: nothing
//
// An optimizer's update reads numbers that the step's count alone decides: rates, corrections of moments. Written where the updates are, at
// the end, they would keep all of them there. With them at hand an update takes its gradient's tiles as these leave the tensor engine
// (pass/epilogue.c): no gradient goes to HBM and back, and the update's transfers go beside products of other layers.
//
// Random numbers need a key and nothing else. Vector engine and gpsimd then make them in a lane of their own (tile/sched.c), beside products and what
// comes before their reader. A few programs ahead are enough to keep that lane busy; more would only hold memory.
#include "pass/rows.h"
#include "hlo/users.h"
#include "pass/walk.h"

#define AHEAD 4        // programs
#define CONE_MAX 48    // ops that come along
#define SMALL_MAX 1024 // … elements of each

typedef struct Ahead {
    Compile *c;
    Hlo *h;
    Users u;
    bool *gone;              // per op: stands in its new place
    VEC(OpId) ops;           // of the region, in their new order
    VEC(uint32_t) programs;  // places in the region
    VEC(uint32_t) reads;     // … of who reads each first
} Ahead;

static OpId op_at(const Ahead *a, RegionId r, uint32_t i) { return a->h->regions.at[r].ops.at[i]; }

// The place in the region of the first op that reads a result, itself or in a region of its own.
static uint32_t first_read(const Ahead *a, RegionId r, const HloOp *op) {
    uint32_t first = UINT32_MAX;
    for (uint32_t k = 0; k < op->nresults; k++) {
        uint32_t n;
        const OpId *users = users_of(&a->u, op->results + k, &n);
        for (uint32_t i = 0; i < n; i++)
            if (a->u.region[users[i]] == r && a->u.position[users[i]] < first)
                first = a->u.position[users[i]];
            else if (a->u.region[users[i]] != r)
                return 0; // of a loop or a branch: not moved
    }
    return first;
}

static bool is_small(const Ahead *a, const HloOp *op) {
    bool small = !op_has_effect(a->h, op) && op->nresults && hlo_row(op)->cls != HC_CTRL;
    for (uint32_t k = 0; k < op->nresults && small; k++) {
        const HloType *t = hlo_value_type(a->h, op->results + k);
        small = t->kind == HT_TENSOR && !t->dynamic && t->elems <= SMALL_MAX;
    }
    return small || op->code == HLO_IOTA || (op->code == HLO_RESHAPE && rows_is_count(a->h, op->results)) || op->code == HLO_CONSTANT;
}

typedef struct Cone { // places in the region
    uint32_t at[CONE_MAX], n;
    bool fits;
} Cone;

static void need(const Ahead *a, RegionId r, ValueId v, Cone *cone) {
    OpId def = a->h->values.at[v].def;
    if (!def || a->u.region[def] != r || a->gone[def])
        return;
    for (uint32_t j = 0; j < cone->n; j++)
        if (cone->at[j] == a->u.position[def])
            return;
    cone->fits = cone->fits && cone->n < CONE_MAX && is_small(a, hlo_at(a->h, def));
    if (cone->fits)
        cone->at[cone->n++] = a->u.position[def];
}

// What an op reads, regions of it included.
static void need_operands(const Ahead *a, RegionId r, const HloOp *op, Cone *cone) {
    for (uint32_t k = 0; k < op->noperands; k++)
        need(a, r, hlo_operand(a->h, op, k), cone);
    for (uint32_t k = 0; k < op->nregions; k++) {
        const HloRegion *inner = hlo_op_region(a->h, op, k);
        for (uint32_t i = 0; i < inner->ops.n; i++)
            need_operands(a, r, hlo_at(a->h, inner->ops.at[i]), cone);
    }
}

// The program and what has to come along, in order; fits: that is little.
static Cone cone_of(const Ahead *a, RegionId r, uint32_t program) {
    Cone cone = {.at = {program}, .n = 1, .fits = true};
    for (uint32_t i = 0; i < cone.n && cone.fits; i++)
        need_operands(a, r, hlo_at(a->h, op_at(a, r, cone.at[i])), &cone);
    for (uint32_t i = 1; i < cone.n; i++) // few
        for (uint32_t j = i; j > 0 && cone.at[j] < cone.at[j - 1]; j--) {
            uint32_t t = cone.at[j];
            cone.at[j] = cone.at[j - 1], cone.at[j - 1] = t;
        }
    return cone;
}

static void put(Ahead *a, OpId id) {
    if (!a->gone[id])
        VEC_PUSH(a->c->scratch, &a->ops, id);
    a->gone[id] = true;
}

static void find_programs(Ahead *a, RegionId r) {
    a->programs.n = a->reads.n = 0;
    for (uint32_t i = 0; i < a->h->regions.at[r].ops.n; i++) {
        const HloOp *op = hlo_at(a->h, op_at(a, r, i));
        uint32_t read = op->code == HLO_ROWS && rows_of_ints(a->h, op) ? first_read(a, r, op) : 0;
        if (!read || read == UINT32_MAX)
            continue;
        VEC_PUSH(a->c->scratch, &a->programs, i);
        VEC_PUSH(a->c->scratch, &a->reads, read);
    }
}

static void ahead_region(void *pass, RegionId r) {
    Ahead *a = pass;
    uint32_t next = 0, done = 0, n = a->h->regions.at[r].ops.n;
    find_programs(a, r);
    if (!a->programs.n)
        return;
    a->ops.n = 0;
    for (uint32_t i = 0; i < n; i++) {
        while (done < a->reads.n && a->reads.at[done] <= i)
            done++;
        for (; next < a->programs.n && next < done + AHEAD; next++) {
            Cone cone = cone_of(a, r, a->programs.at[next]);
            for (uint32_t k = 0; k < cone.n && cone.fits; k++)
                put(a, op_at(a, r, cone.at[k]));
        }
        put(a, op_at(a, r, i));
    }
    assert(a->ops.n == n); // the same ops, each once
    assert(hlo_at(a->h, a->ops.at[n - 1])->code == HLO_RETURN);
    for (uint32_t i = 0; i < n; i++)
        a->h->regions.at[r].ops.at[i] = a->ops.at[i];
}

// --- single numbers ----------------------------------------------------------------------------------

static bool is_number(const Hlo *h, ValueId v) {
    const HloType *t = hlo_value_type(h, v);
    return hlo_is_plain(t) && t->elems == 1;
}

static bool is_known_number(const Hlo *h, const HloOp *op, const bool *known) {
    bool suits = op->nresults && hlo_row(op)->cls != HC_CTRL && hlo_row(op)->cls != HC_COLL && !op_has_effect(h, op);
    for (uint32_t k = 0; k < op->nresults && suits; k++)
        suits = is_number(h, op->results + k);
    for (uint32_t k = 0; k < op->noperands && suits; k++) {
        ValueId v = hlo_operand(h, op, k);
        OpId def = h->values.at[v].def;
        suits = is_number(h, v) && (!def || known[def]);
    }
    return suits;
}

static void raise_numbers(Compile *c, RegionId body) {
    Hlo *h = c->hlo;
    const HloRegion *r = &h->regions.at[body];
    bool *known = ARENA_NEWN(c->scratch, bool, h->ops.n + 1), *read = ARENA_NEWN(c->scratch, bool, h->ops.n + 1);
    for (uint32_t i = 0; i < r->ops.n; i++) // operands are decided before
        known[r->ops.at[i]] = is_known_number(h, hlo_at(h, r->ops.at[i]), known);
    for (uint32_t i = r->ops.n; i-- > 0;) { // by a row program, or by what one reads
        const HloOp *op = hlo_at(h, r->ops.at[i]);
        for (uint32_t k = 0; (op->code == HLO_ROWS || read[r->ops.at[i]]) && k < op->noperands; k++) {
            OpId def = h->values.at[hlo_operand(h, op, k)].def;
            read[def] = def && known[def];
        }
    }
    Moves moves;
    moves_init(&moves, c);
    for (uint32_t i = 0; i < r->ops.n; i++)
        if (read[r->ops.at[i]])
            moves_before(&moves, r->ops.at[i], r->ops.at[0]);
    moves_make(&moves, body);
}

void pass_ahead(Compile *c) {
    raise_numbers(c, hlo_main(c->hlo)->body);
    Ahead a = {.c = c, .h = c->hlo, .gone = ARENA_NEWN(c->scratch, bool, c->hlo->ops.n + 1)};
    users_make(&a.u, c->hlo, c->scratch, hlo_main(c->hlo)->body);
    walk_regions(c->hlo, hlo_main(c->hlo)->body, ahead_region, &a);
}
