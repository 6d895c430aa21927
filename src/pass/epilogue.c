// SPDX-License-Identifier: Apache-2.0
// epilogue.c — row programs whose operand is a product take its tiles as they leave PSUM: bias, activation, residual, mask,
// conversion. What is between the product and the program never reaches HBM.
// needs: products as dots.c leaves them, row programs
// gives: such programs right behind their product, marked with its operand number
// stale: nothing
//
// The program is elementwise and works on the product's own rows and columns, or on elements whose place does not
// matter. Its other operands may be of the same shape, one a row, the same for every row, or single numbers. The two meet where the
// last of these is there: the program goes up, to the product itself mostly, and the product down, where it is not far
// and before anybody else reads it. Not past many ops where something larger than the product lives longer so.
#include "pass/epilogue.h"

#include "hlo/dot.h"
#include "pass/rows.h"
#include "pass/schedule.h"

#define NEAR 16 // ops
#define PART_COLUMNS 64     // products and their tiles in PSUM are cut at multiples of these,
#define WIDE_COLUMNS 256    // … of twice as many where they have more than these

// No reductions, and nothing per row among the results.
static bool is_elementwise(const Hlo *h, const HloOp *rows) {
    const HloRegion *r = hlo_op_region(h, rows, 0);
    for (uint32_t i = 0; i < r->ops.n; i++)
        if (hlo_at(h, r->ops.at[i])->code == HLO_REDUCE)
            return false;
    const HloOp *ret = hlo_at(h, r->ops.at[r->ops.n - 1]);
    for (uint32_t i = 0; i < ret->noperands; i++)
        if (hlo_value_type(h, hlo_operand(h, ret, i))->rank != 1)
            return false;
    return true;
}

// Rows of the program are rows of the product, or may be taken as such: nothing is one a row, and what repeats does so
// after whole rows.
static bool columns_suit(const Hlo *h, const HloOp *rows, int64_t columns, int64_t n) {
    const int64_t *kinds = rows_kinds(rows);
    for (uint32_t i = 0; i < rows->noperands && columns != n; i++) {
        int64_t elems = hlo_value_type(h, hlo_operand(h, rows, i))->elems;
        if ((kinds[i] == FUSED_ROWS && elems > 1) || (kinds[i] == FUSED_COLUMNS && elems % n) || kinds[i] == FUSED_BLOCKS)
            return false;
    }
    return true;
}

// Whether anybody but the program reads the product, or what reshapes make of it on the way to the program.
static bool has_other_readers(const Users *u, ValueId v) {
    for (;;) {
        if (users_reads(u, v) != 1)
            return true;
        const HloOp *def = hlo_at(u->h, u->h->values.at[v].def);
        if (def->code != HLO_RESHAPE)
            return false;
        v = hlo_operand(u->h, def, 0);
    }
}

bool epilogue_suits(const Users *u, OpId id, uint32_t index, Epilogue *out) {
    const Hlo *h = u->h;
    const HloOp *rows = hlo_at(h, id);
    int64_t all, columns, size, stride, free_dims[OTRN_MAX_RANK];
    const int64_t *kinds = rows_kinds(rows);
    if (!rows_shape(h, rows, &all, &columns) || index >= rows->noperands ||
        kinds[index] != FUSED_SAME || !is_elementwise(h, rows))
        return false;
    ValueId v = before_reshapes(h, hlo_operand(h, rows, index));
    OpId def = h->values.at[v].def;
    if (!def || u->region[def] != u->region[id] || !dot_on_tensor_engine(h, hlo_at(h, def)))
        return false;
    for (uint32_t k = 0; k < rows->noperands; k++)
        if (k != index && before_reshapes(h, hlo_operand(h, rows, k)) == v)
            return false; // it would be read in HBM as well
    const HloOp *dot = hlo_at(h, def);
    const HloType *rhs = hlo_value_type(h, hlo_operand(h, dot, 1));
    if (!dot_group(rhs, free_dims, dot_free_dims(rhs, dot, true, free_dims), &size, &stride))
        return false;
    *out = (Epilogue){.dot = def, .rows = id, .index = index, .n = size, .rows_n = hlo_value_type(h, v)->elems / size,
                      .keeps = has_other_readers(u, hlo_operand(h, rows, index))};
    if (rows_exchange(h, rows) && (size > WIDE_COLUMNS ? 2 * PART_COLUMNS : PART_COLUMNS) % columns)
        return false; // both halves are in one tile
    return columns_suit(h, rows, columns, size);
}

bool epilogue_is_ready(const Users *u, const Epilogue *p) {
    assert(hlo_at(u->h, p->rows)->code == HLO_ROWS && p->index < hlo_at(u->h, p->rows)->noperands);
    assert(hlo_at(u->h, p->dot)->code == HLO_DOT_GENERAL);
    const HloOp *rows = hlo_at(u->h, p->rows);
    for (uint32_t i = 0; i < rows->noperands; i++)
        if (i != p->index && !users_there_before(u, hlo_operand(u->h, rows, i), p->dot))
            return false;
    return true;
}

// --- the pass ----------------------------------------------------------------------------------------

typedef struct Pass {
    Hlo *h;
    Users u; // places as they were
    Schedule s;
    uint32_t *place; // per op: behind which of these it stands now
    bool *has_rows;  // per op
    uint32_t moved;
} Pass;

#define MOVED_MAX 16777216.0

static void move_behind(Pass *p, OpId id, uint32_t at) { // and behind what has moved there before
    assert(p->moved < MOVED_MAX);
    p->s.key[id] = at + 0.25 + ++p->moved / (2 * MOVED_MAX);
}

// Nobody else reads the value, or what reshapes make of it.
static bool is_read_by(const Pass *p, ValueId v, OpId reader) {
    bool all = true;
    for (Reader by = readers_of(&p->u, v); all && reader_next(&by);)
        all = by.id == reader || (by.op->code == HLO_RESHAPE && is_read_by(p, by.op->results, reader));
    return all;
}

// The program returns the value, or its loop carries it on, in the place of what `maker` alone reads.
static bool is_returned(const Pass *p, ValueId v, OpId ret, OpId maker) {
    const HloOp *op = hlo_at(p->h, ret);
    const HloRegion *r = &p->h->regions.at[p->u.region[ret]];
    if (p->u.region[ret] == hlo_main(p->h)->body)
        return true;
    bool all = r->nargs == op->noperands; // of a loop's body
    for (uint32_t i = 0; i < op->noperands && all; i++)
        all = hlo_operand(p->h, op, i) != v || is_read_by(p, r->args + i, maker);
    return all;
}

// All that happens to the value is that it is returned, or put into a stack of its loop.
static bool is_handed_on(const Pass *p, ValueId v, OpId maker) {
    bool all = true;
    for (Reader by = readers_of(&p->u, v); all && reader_next(&by);) {
        all = by.op->code == HLO_RETURN    ? is_returned(p, v, by.id, maker)
              : by.op->code == HLO_RESHAPE ? is_handed_on(p, by.op->results, maker)
                                        : by.op->code == HLO_DYNAMIC_UPDATE_SLICE && hlo_operand(p->h, by.op, 1) == v;
    }
    return all;
}

// Of results that take memory of their own; what is handed on has its place in any case.
static uint64_t result_bytes(const Pass *p, OpId id) {
    const HloOp *op = hlo_at(p->h, id);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < op->nresults; i++)
        bytes += is_handed_on(p, op->results + i, id) ? 0 : hlo_type_bytes(hlo_value_type(p->h, op->results + i));
    return bytes;
}

// Who makes the value, in the program's region; with `views` a reshape that still may go anywhere is nobody. 0: it is there from the start.
static OpId maker_of(const Pass *p, const Epilogue *e, ValueId v, bool views) {
    OpId def = p->h->values.at[v].def;
    while (def && hlo_at(p->h, def)->code == HLO_RESHAPE && views && !schedule_is_moved(&p->s, def))
        def = p->h->values.at[hlo_operand(p->h, hlo_at(p->h, def), 0)].def;
    return def && p->u.region[def] == p->u.region[e->rows] ? def : 0;
}

// Where the product is and the last of the program's other operands is there, or what it is a reshape of.
static uint32_t meeting_place(const Pass *p, const Epilogue *e, bool views) {
    const HloOp *rows = hlo_at(p->h, e->rows);
    uint32_t at = p->place[e->dot];
    for (uint32_t i = 0; i < rows->noperands; i++) {
        OpId def = maker_of(p, e, hlo_operand(p->h, rows, i), views || i == e->index);
        if (def && p->place[def] > at)
            at = p->place[def];
    }
    return at;
}

// Nobody but the program reads the value, or what reshapes make of it, up to there.
static bool is_read_later(const Pass *p, ValueId v, OpId rows, uint32_t at) {
    for (Reader by = readers_of(&p->u, v); reader_next(&by);) {
        if (by.id == rows)
            continue;
        if (p->u.region[by.id] != p->u.region[rows]) // inside a loop or branch, wherever that is
            return false;
        if (by.op->code == HLO_RESHAPE ? !is_read_later(p, by.op->results, rows, at) : p->place[by.id] <= at)
            return false;
    }
    return true;
}

static bool may_meet(const Pass *p, const Epilogue *e, uint32_t at) {
    const Hlo *h = p->h;
    uint32_t down = at - p->place[e->dot], up = p->place[e->rows] - at;
    if (down > NEAR || (down && e->keeps && !is_read_later(p, hlo_at(h, e->dot)->results, e->rows, at)))
        return false;
    return up <= NEAR || result_bytes(p, e->rows) <= (e->keeps ? 0 : result_bytes(p, e->dot));
}

// Reshapes on the value's way that stand behind the place go along.
static void take_views(Pass *p, OpId rows, ValueId v, uint32_t at) {
    OpId def = p->h->values.at[v].def;
    if (!def || hlo_at(p->h, def)->code != HLO_RESHAPE || p->u.region[def] != p->u.region[rows] || schedule_is_moved(&p->s, def))
        return;
    take_views(p, rows, hlo_operand(p->h, hlo_at(p->h, def), 0), at);
    if (p->place[def] <= at)
        return;
    p->place[def] = at;
    move_behind(p, def, at);
}

// All reshapes of the product, the program's and those that are read later, go where it goes.
static void take_reshapes(Pass *p, ValueId v, RegionId r, uint32_t at) {
    for (Reader by = readers_of(&p->u, v); reader_next(&by);) {
        if (by.op->code != HLO_RESHAPE || p->u.region[by.id] != r || schedule_is_moved(&p->s, by.id))
            continue;
        p->place[by.id] = at;
        move_behind(p, by.id, at);
        take_reshapes(p, by.op->results, r, at);
    }
}

// Reshapes of other operands, product, reshapes between the two, program: behind that place.
static void meet(Pass *p, const Epilogue *e, uint32_t at) {
    Hlo *h = p->h;
    *hlo_attr_slot(h, e->rows, AK_PRODUCT) = (HloAttr){.kind = HA_INT, .i = e->index};
    p->has_rows[e->dot] = true;
    p->place[e->rows] = p->place[e->dot] = at;
    for (uint32_t i = 0; i < hlo_at(h, e->rows)->noperands; i++)
        if (i != e->index)
            take_views(p, e->rows, hlo_operand(h, hlo_at(h, e->rows), i), at);
    move_behind(p, e->dot, at);
    take_reshapes(p, hlo_at(h, e->dot)->results, p->u.region[e->dot], at);
    move_behind(p, e->rows, at);
}

static void try_rows(Pass *p, OpId id) {
    Epilogue best = {0}, e;
    uint32_t place = 0;
    for (uint32_t i = 0; i < hlo_at(p->h, id)->noperands; i++) { // of several products the last: the others are there then
        if (!epilogue_suits(&p->u, id, i, &e) || p->has_rows[e.dot] || schedule_is_moved(&p->s, e.dot))
            continue;
        uint32_t at = meeting_place(p, &e, false);
        if (!may_meet(p, &e, at))
            at = meeting_place(p, &e, true);
        if (may_meet(p, &e, at) && (!best.dot || p->place[e.dot] > p->place[best.dot]))
            best = e, place = at;
    }
    if (best.dot)
        meet(p, &best, place);
}

static void epilogue_region(void *pass, RegionId r) {
    Pass *p = pass;
    for (uint32_t i = 0; i < p->h->regions.at[r].ops.n; i++)
        if (hlo_at(p->h, p->h->regions.at[r].ops.at[i])->code == HLO_ROWS)
            try_rows(p, p->h->regions.at[r].ops.at[i]);
    schedule_make(&p->s, r);
}

void pass_epilogue(Compile *c) {
    uint32_t n = c->hlo->ops.n + 1;
    Pass p = {.h = c->hlo, .has_rows = ARENA_NEWN(c->scratch, bool, n)};
    schedule_init(&p.s, c);
    p.u = p.s.u;
    p.place = arena_dup(c->scratch, p.u.position, n * sizeof *p.u.position);
    walk_regions(c->hlo, hlo_main(c->hlo)->body, epilogue_region, &p);
    early_again(c); // programs went up: what products need beside them had better do so too
}
