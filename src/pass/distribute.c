// SPDX-License-Identifier: Apache-2.0
// distribute.c — (x a + b) e where x is chosen by the same flags as multiples of e are, in row programs.
// needs: row programs as pass/scores.c leaves them
// gives: one choice, of e, in place of two; x e once
// stale: nothing
//
//   x = flags ? p : 0                                      d = flags ? e : 0
//   w = flags ? e / r : 0                       ──►        w = d / r
//   s = sum(x c e),  (x / a + b) e k                       y = p (k / a) d,  s = sum(y) a c / k,  y + (b k) e
//
// That is the gradient of a softmax with dropout: e its exponentials, w its weights, p the gradient of those, and b has s in it. Each choice draws
// its flags. Numbers per row and sums are rounded in another order, and what dropout leaves out is multiplied by zero.
#include <string.h>

#include "pass/walk.h"

typedef struct Scaled { // a row times or over a number
    ValueId x, by, wide; // the row, the number, and that as long as the row
    bool divides;
} Scaled;

typedef struct Found {
    OpId outer, inner, reduce; // (x a + b) e k; x c e and its sum, 0: none
    OpId weights;              // the choice of multiples of e
    ValueId e, b, flags, given; // given: what x chooses
    Scaled a, c, share;        // share: weights of e
    double k, kb; // what x a and b are multiplied by
} Found;

typedef struct Distribute {
    Walk w;
    const HloRegion *r; // in hand
    ValueId chosen, y;  // e by the flags; what stands for x a e k
    ValueId factor, negative, b; // of the sum of y; that times what b is multiplied by, where b is minus the sum; b k
} Distribute;

static bool is_full(const Hlo *h, ValueId v) { return hlo_value_type(h, v)->rank == 1 && hlo_value_type(h, v)->dtype == DT_F32; }

static uint32_t uses(const Distribute *s, ValueId v) {
    const Hlo *h = s->w.hlo;
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->r->ops.n; i++)
        for (uint32_t k = 0; k < hlo_at(h, s->r->ops.at[i])->noperands; k++)
            n += hlo_operand(h, hlo_at(h, s->r->ops.at[i]), k) == v;
    return n;
}

static uint32_t place(const Distribute *s, OpId id) { // in the region; its end: not there
    uint32_t i = 0;
    while (i < s->r->ops.n && s->r->ops.at[i] != id)
        i++;
    return i;
}

static ValueId number_of(const Hlo *h, ValueId v) { // one a row; 0: it is none
    const HloOp *op = hlo_def_as(h, v, HLO_BROADCAST_IN_DIM) ? hlo_def(h, v) : NULL;
    ValueId from = op ? hlo_operand(h, op, 0) : 0;
    return from && hlo_value_type(h, from)->rank == 0 && hlo_value_type(h, from)->dtype == DT_F32 && !splat_value(h, from) ? from : 0;
}

static bool is_scaled(const Hlo *h, ValueId v, Scaled *out) {
    const HloOp *op = hlo_def(h, v);
    if (!op || !is_full(h, v) || (op->code != HLO_MULTIPLY && op->code != HLO_DIVIDE))
        return false;
    for (uint32_t side = op->code == HLO_DIVIDE; side < 2; side++) {
        *out = (Scaled){hlo_operand(h, op, !side), number_of(h, hlo_operand(h, op, side)), hlo_operand(h, op, side), op->code == HLO_DIVIDE};
        if (out->by && is_full(h, out->x))
            return true;
    }
    return false;
}

// (x a + b) k
static bool is_sum(const Distribute *s, ValueId v, Found *f) {
    const Hlo *h = s->w.hlo;
    const HloOp *op = hlo_def(h, v);
    f->k = 1;
    for (uint32_t side = 0; op && op->code == HLO_MULTIPLY && side < 2; side++)
        if (splat_f64(h, hlo_operand(h, op, side), &f->k)) {
            v = hlo_operand(h, op, !side);
            op = uses(s, v) == 1 ? hlo_def(h, v) : NULL;
            break;
        }
    if (!op || f->k == 0 || (op->code != HLO_ADD && op->code != HLO_SUBTRACT))
        return false;
    for (uint32_t side = op->code == HLO_SUBTRACT; side < 2; side++) {
        ValueId q = hlo_operand(h, op, !side);
        f->b = number_of(h, hlo_operand(h, op, side));
        if (f->b && uses(s, q) == 1 && is_scaled(h, q, &f->a)) {
            f->kb = op->code == HLO_SUBTRACT ? -f->k : f->k;
            return true;
        }
    }
    return false;
}

// sum(x c e)
static void find_reduce(const Distribute *s, Found *f) {
    const Hlo *h = s->w.hlo;
    for (uint32_t i = 0; i < s->r->ops.n && !f->reduce; i++) {
        const HloOp *reduce = hlo_at(h, s->r->ops.at[i]), *op = reduce->code == HLO_REDUCE && reduce->noperands == 2 ? hlo_def(h, hlo_operand(h, reduce, 0)) : NULL;
        if (!op || op->code != HLO_MULTIPLY || reduce_body(h, reduce) != HLO_ADD || uses(s, op->results) != 1)
            continue;
        for (uint32_t side = 0; side < 2; side++)
            if (hlo_operand(h, op, side) == f->e && uses(s, hlo_operand(h, op, !side)) == 1 && is_scaled(h, hlo_operand(h, op, !side), &f->c) && f->c.x == f->a.x)
                f->reduce = s->r->ops.at[i], f->inner = h->values.at[op->results].def;
    }
}

static bool is_choice(const Hlo *h, const HloOp *op) { // of a row or zeros, by flags that the program is given
    return op && op->code == HLO_SELECT && !h->values.at[hlo_operand(h, op, 0)].def && splat_is_zero(h, hlo_operand(h, op, 2));
}

static ValueId before_convert(const Hlo *h, ValueId v) { return hlo_def_as(h, v, HLO_CONVERT) ? hlo_operand(h, hlo_def(h, v), 0) : v; }

// x is chosen by flags, and so are weights of e.
static void find_choice(const Distribute *s, Found *f) {
    const Hlo *h = s->w.hlo;
    ValueId x = before_convert(h, f->a.x);
    const HloOp *op = hlo_def(h, x);
    if (!is_choice(h, op) || uses(s, f->a.x) != 1 + (f->reduce != 0) || (x != f->a.x && uses(s, x) != 1))
        return;
    f->flags = hlo_operand(h, op, 0), f->given = hlo_operand(h, op, 1);
    for (uint32_t i = 0; i < s->r->ops.n && !f->weights; i++) {
        const HloOp *w = hlo_at(h, s->r->ops.at[i]);
        if (w == op || !is_choice(h, w) || hlo_operand(h, w, 0) != f->flags)
            continue;
        ValueId y = hlo_operand(h, w, 1), share = before_convert(h, y);
        if (uses(s, y) == 1 && (share == y || uses(s, share) == 1) && is_scaled(h, share, &f->share) && f->share.x == f->e)
            f->weights = s->r->ops.at[i];
    }
}

static bool find(const Distribute *s, OpId id, Found *f) {
    const Hlo *h = s->w.hlo;
    const HloOp *op = hlo_at(h, id);
    for (uint32_t side = 0; op->code == HLO_MULTIPLY && is_full(h, op->results) && side < 2; side++) {
        *f = (Found){.outer = id, .e = hlo_operand(h, op, side)};
        if (!h->values.at[f->e].def || uses(s, hlo_operand(h, op, !side)) != 1 || !is_sum(s, hlo_operand(h, op, !side), f) || f->a.x == f->e)
            continue;
        find_reduce(s, f);
        find_choice(s, f);
        OpId scale = h->values.at[f->a.by].def;
        bool there = !scale || !f->reduce || place(s, scale) < place(s, f->inner);
        if (there && f->weights)
            return true;
    }
    return false;
}

// --- what takes its place ----------------------------------------------------------------------------

static ValueId times(Walk *w, ValueId x, double v) { return v == 1 ? x : walk_binary(w, HLO_MULTIPLY, x, walk_number(w, w->hlo->values.at[x].type, v)); }

static ValueId wide(Walk *w, ValueId number, ValueId like) { return walk_broadcast(w, number, NULL, 0, w->hlo->values.at[like].type); }

static ValueId chosen(Distribute *s, const Found *f) {
    TypeId type = s->w.hlo->values.at[f->e].type;
    if (!s->chosen)
        s->chosen = walk_select(&s->w, f->flags, f->e, walk_number(&s->w, type, 0));
    return s->chosen;
}

static ValueId make_y(Distribute *s, const Found *f) {
    Walk *w = &s->w;
    ValueId by = f->a.divides ? walk_binary(w, HLO_DIVIDE, walk_number(w, w->hlo->values.at[f->a.by].type, f->k), w->repl.at[f->a.by]) : times(w, w->repl.at[f->a.by], f->k);
    ValueId x = walk_convert(w, w->repl.at[f->given], DT_F32);
    return walk_binary(w, HLO_MULTIPLY, walk_binary(w, HLO_MULTIPLY, x, wide(w, by, x)), chosen(s, f));
}

// What the sum of y is multiplied by to be that of x c e.
static ValueId sums_factor(Distribute *s, const Found *f) {
    Walk *w = &s->w;
    ValueId a = times(w, w->repl.at[f->a.by], f->a.divides ? 1 / f->k : f->k), c = w->repl.at[f->c.by];
    if (f->a.divides == f->c.divides)
        return walk_binary(w, HLO_DIVIDE, f->a.divides ? a : c, f->a.divides ? c : a);
    ValueId both = walk_binary(w, HLO_MULTIPLY, a, c);
    return f->a.divides ? both : walk_binary(w, HLO_DIVIDE, walk_number(w, w->hlo->values.at[both].type, 1), both);
}

static ValueId make_weights(Distribute *s, const Found *f) {
    Walk *w = &s->w;
    ValueId e = chosen(s, f);
    ValueId y = walk_binary(w, f->share.divides ? HLO_DIVIDE : HLO_MULTIPLY, e, w->repl.at[f->share.wide]);
    return walk_convert(w, y, hlo_value_type(w->hlo, hlo_at(w->hlo, f->weights)->results)->dtype);
}

static ValueId make_outer(Distribute *s, const Found *f) {
    Walk *w = &s->w;
    s->y = s->y ? s->y : make_y(s, f);
    ValueId b = s->b ? s->b : times(w, w->repl.at[f->b], f->kb);
    return walk_binary(w, HLO_ADD, s->y, walk_binary(w, HLO_MULTIPLY, f->e, wide(w, b, f->e)));
}

static void take(Distribute *s, const Found *f, OpId id) {
    Walk *w = &s->w;
    ValueId to = 0, from = hlo_at(w->hlo, id)->results;
    w->loc = hlo_at(w->hlo, id)->loc;
    walk_operands(w, id);
    if (id == f->weights)
        to = make_weights(s, f);
    else if (f->reduce && id == f->inner)
        s->factor = sums_factor(s, f), s->negative = times(w, s->factor, -f->kb), to = s->y = make_y(s, f);
    else if (id == f->outer)
        to = make_outer(s, f);
    else
        walk_push(w, id);
    if (id == f->reduce) {
        const HloOp *b = hlo_def(w->hlo, f->b);
        if (b && b->code == HLO_NEGATE && hlo_operand(w->hlo, b, 0) == from) // at once: everybody waits for it
            s->b = walk_binary(w, HLO_MULTIPLY, from, s->negative);
        to = walk_binary(w, HLO_MULTIPLY, from, s->factor);
    }
    walk_grow(w);
    if (to)
        walk_replace(w, from, to);
}

// Operations of a row program that nobody reads have instructions all the same.
static void drop_unread(Distribute *s, OpList *ops) {
    const Hlo *h = s->w.hlo;
    bool *read = ARENA_NEWN(s->w.arena, bool, h->values.n + 1);
    uint32_t n = ops->n;
    for (uint32_t i = ops->n; i-- > 0;) {
        const HloOp *op = hlo_at(h, ops->at[i]);
        bool stays = op->code == HLO_RETURN;
        for (uint32_t k = 0; k < op->nresults; k++)
            stays = stays || read[op->results + k];
        for (uint32_t k = 0; k < op->noperands && stays; k++)
            read[hlo_operand(h, op, k)] = true;
        if (stays)
            ops->at[--n] = ops->at[i];
    }
    memmove(ops->at, ops->at + n, (ops->n - n) * sizeof *ops->at);
    ops->n -= n;
}

static void region(void *pass, RegionId r) {
    Distribute *s = pass;
    Walk *w = &s->w;
    OpList programs = {0};
    walk_list(w->arena, w->hlo, r, &programs);
    for (uint32_t i = 0; i < programs.n; i++) {
        if (hlo_at(w->hlo, programs.at[i])->code != HLO_ROWS)
            continue;
        RegionId body = (RegionId)(hlo_op_region(w->hlo, hlo_at(w->hlo, programs.at[i]), 0) - w->hlo->regions.at);
        OpList ops = {0};
        Found f;
        bool found = false;
        s->r = &w->hlo->regions.at[body];
        walk_list(w->arena, w->hlo, body, &ops);
        for (uint32_t k = 0; k < ops.n && !found; k++)
            found = find(s, ops.at[k], &f);
        if (!found)
            continue;
        w->out = (OpList){0}, s->chosen = s->y = s->b = 0;
        for (uint32_t k = 0; k < ops.n; k++)
            take(s, &f, ops.at[k]);
        drop_unread(s, &w->out);
        walk_set_ops(w->hlo, body, &w->out);
    }
}

void pass_distribute(Compile *c) {
    Distribute s = {0};
    walk_init(&s.w, c);
    walk_regions(c->hlo, hlo_main(c->hlo)->body, region, &s);
}
