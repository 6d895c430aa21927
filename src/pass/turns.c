// SPDX-License-Identifier: Apache-2.0
// turns.c — put the transposes around products where they move least.
// needs: values defined before use
// gives: products whose operands are read, and whose results are made, in the order that costs the least movement
// stale: nothing (dce drops what became unused)
//
// A product gives [batch, free of lhs, free of rhs]. Swapping its operands, or turning one of them, gives other orders of the same
// sums, so a transpose may stand before or behind it. Attention with fewer heads of keys than of queries is where it matters: as
// JAX writes that, scores come out as [keys' head, key, query, head in group] and are turned to [head, group, query, key].
//
//   k · q -> [k t q g]  ── transpose of all scores ──►  [k g q t]
//     ──►  transpose of q, which is small:  q' · k -> [k g q t]
//
// What is left of a transpose behind a product goes on to whoever needs it (turns_sink.c); so does one that only products need, behind
// what they have scaled.
//
// Of the ways to make the wanted order the cheapest is taken: elements moved, times a weight for short runs of neighbours.
#include <string.h>

#include "hlo/dot.h"
#include "pass/turns.h"

#define FLOW_MOST 64   // values on the way from a product to a transpose
#define FOR_PRODUCTS 4 // ops between a transpose and the products that read through it

// One operand, as dimensions of `from`: the operand itself, or what it is a transpose of.
typedef struct Operand {
    ValueId from;
    Dims turned; // how the operand is `from`
    Dims batch, contract, free; // free: in the order they have in the product
} Operand;

typedef struct Product {
    OpId id;
    Operand in[2];
    Dims wanted; // the result's dimensions in the order in which they are wanted
} Product;

// A way to make it: which operand is first, the free dimensions of each in what order, and how the result is turned then.
typedef struct Way {
    uint32_t first;
    Dims free[2];
    Dims turn;
    uint64_t cost;
} Way;

// --- what it costs -----------------------------------------------------------------------------------

// In the order they have in memory; dimensions of size one are nowhere in it.
static bool ascends(const HloType *t, const Dims *d) {
    int64_t last = -1;
    for (uint32_t i = 0; i < d->n; i++) {
        if (t->dims[d->at[i]] == 1)
            continue;
        if (d->at[i] < last)
            return false;
        last = d->at[i];
    }
    return true;
}

// Moving `dims` into the order of `perm`: elements, times a weight when fewer than 32 neighbours stay together.
static uint64_t turn_cost(const int64_t *dims, const Dims *perm) {
    int64_t run = 1, elems = 1;
    uint32_t from = perm->n;
    bool together = true;
    for (uint32_t i = perm->n; i > 0; i--) {
        int64_t size = dims[perm->at[i - 1]];
        elems *= size;
        while (from > 0 && dims[from - 1] == 1)
            from--;
        together = together && (size == 1 || perm->at[i - 1] == from - 1);
        if (together && size > 1) {
            run *= size;
            from--;
        }
    }
    return run == elems ? 0 : (uint64_t)elems * (run >= 32 ? 1 : (uint64_t)(32 / run));
}

static void append(Dims *to, const Dims *d) {
    assert(to->n + d->n <= OTRN_MAX_RANK);
    memcpy(to->at + to->n, d->at, d->n * sizeof *d->at);
    to->n += d->n;
}

static bool contains(const Dims *d, int64_t v) {
    for (uint32_t i = 0; i < d->n; i++)
        if (d->at[i] == v)
            return true;
    return false;
}

// All dimensions as they lie, but for free ones of size one, each behind the one it follows.
static Dims operand_as_it_lies(const HloType *t, const Dims *order) {
    Dims perm = {0};
    for (uint32_t i = 0; i < order->n && t->dims[order->at[i]] == 1; i++)
        perm.at[perm.n++] = order->at[i];
    for (int64_t k = 0; k < t->rank; k++) {
        if (t->dims[k] == 1 && contains(order, k))
            continue;
        perm.at[perm.n++] = k;
        uint32_t i = 0;
        while (i < order->n && order->at[i] != k)
            i++;
        for (i++; i < order->n && t->dims[order->at[i]] == 1; i++)
            perm.at[perm.n++] = order->at[i];
    }
    return perm;
}

// The operand with its free dimensions in this order; what were neighbours stay neighbours where possible.
static Dims operand_order(const HloType *t, const Operand *o, const Dims *order) {
    if (ascends(t, order))
        return operand_as_it_lies(t, order);
    Dims perm = o->batch;
    bool contracts = false;
    for (uint32_t i = 0; i < o->contract.n; i++)
        contracts = contracts || o->contract.at[i] == t->rank - 1;
    append(&perm, contracts ? order : &o->contract);
    append(&perm, contracts ? &o->contract : order);
    assert(perm.n == t->rank);
    return perm;
}

static uint64_t operand_cost(const Hlo *h, const Operand *o, const Dims *order) {
    const HloType *t = hlo_value_type(h, o->from);
    Dims perm = operand_order(t, o, order);
    return turn_cost(t->dims, &perm);
}

// --- ways --------------------------------------------------------------------------------------------

static uint32_t place_of(const Dims *d, int64_t v) {
    uint32_t i = 0;
    while (d->at[i] != v)
        i++;
    assert(i < d->n);
    return i;
}

// The result as the product gives it: where each of its dimensions is in the order the way has, then what is left to turn.
static void way_turn(const Hlo *h, const Product *p, const Dims *wanted[2], Way *w) {
    assert(p->in[0].batch.n == p->in[1].batch.n);
    assert(p->in[0].contract.n == p->in[1].contract.n);
    uint32_t nb = p->in[0].batch.n, second = nb + w->free[w->first].n;
    const HloType *t = hlo_value_type(h, hlo_at(h, p->id)->results);
    int64_t place[OTRN_MAX_RANK], got[OTRN_MAX_RANK];
    uint32_t batches = 0;
    for (uint32_t i = 0; i < p->wanted.n; i++) // batch dimensions come as they are wanted
        if (p->wanted.at[i] < nb)
            place[p->wanted.at[i]] = batches++;
    for (uint32_t side = 0, r = nb; side < 2; side++)
        for (uint32_t i = 0; i < p->in[side].free.n; i++, r++)
            place[r] = (side == w->first ? nb : second) + place_of(&w->free[side], p->in[side].free.at[i]);
    w->turn.n = p->wanted.n;
    for (uint32_t i = 0; i < p->wanted.n; i++) {
        w->turn.at[i] = place[p->wanted.at[i]];
        got[place[i]] = t->dims[i];
    }
    w->cost += turn_cost(got, &w->turn);
    for (uint32_t side = 0; side < 2; side++) // what goes on to readers is better in the order that they know
        if (w->cost && memcmp(w->free[side].at, wanted[side]->at, wanted[side]->n * sizeof *wanted[side]->at))
            w->cost += (uint64_t)t->elems;
}

// Orders worth a thought for one operand's free dimensions: as they are, as they lie, as they are wanted.
static uint32_t free_orders(const Product *p, uint32_t side, Dims out[3]) {
    const Dims *f = &p->in[side].free;
    uint32_t first = p->in[0].batch.n + (side ? p->in[0].free.n : 0);
    out[0] = out[1] = *f;
    for (uint32_t i = 1; i < f->n; i++)
        for (uint32_t k = i; k > 0 && out[1].at[k] < out[1].at[k - 1]; k--) {
            int64_t t = out[1].at[k];
            out[1].at[k] = out[1].at[k - 1];
            out[1].at[k - 1] = t;
        }
    out[2].n = 0;
    for (uint32_t i = 0; i < p->wanted.n; i++)
        if (p->wanted.at[i] >= first && p->wanted.at[i] < first + f->n)
            out[2].at[out[2].n++] = f->at[p->wanted.at[i] - first];
    return 3;
}

// The cheapest way; false: as it is.
static bool best_way(const Hlo *h, const Product *p, bool swaps, Way *best) {
    Dims orders[2][3];
    free_orders(p, 0, orders[0]);
    free_orders(p, 1, orders[1]);
    for (uint32_t k = 0; k < (swaps ? 18u : 9u); k++) {
        Way w = {.first = k / 9, .free = {orders[0][k / 3 % 3], orders[1][k % 3]}};
        w.cost = operand_cost(h, &p->in[0], &w.free[0]) + operand_cost(h, &p->in[1], &w.free[1]);
        way_turn(h, p, (const Dims *[2]){&orders[0][2], &orders[1][2]}, &w);
        if (!k || w.cost < best->cost)
            *best = w;
    }
    bool same = !best->first;
    uint64_t now = 0, then = 0;
    for (int side = 0; side < 2; side++) {
        const Operand *o = &p->in[side];
        same = same && !memcmp(best->free[side].at, o->free.at, o->free.n * sizeof *o->free.at);
        now += turn_cost(hlo_value_type(h, o->from)->dims, &o->turned);
        then += operand_cost(h, o, &best->free[side]);
    }
    return !same || then < now;
}

// --- reading and making ------------------------------------------------------------------------------

Dims turns_dims(const HloOp *op, HloAttrKey key) {
    Dims d = {0};
    const int64_t *v = hlo_ints(op, key, &d.n);
    assert(d.n <= OTRN_MAX_RANK);
    for (uint32_t i = 0; i < d.n; i++)
        d.at[i] = v[i];
    return d;
}

static void through(Dims *d, const int64_t *perm) {
    for (uint32_t i = 0; i < d->n; i++)
        d->at[i] = perm[d->at[i]];
}

static Operand operand_read(const Hlo *h, const HloOp *op, uint32_t side) {
    Operand o = {.from = hlo_operand(h, op, side), .batch = turns_dims(op, dot_batch_key[side]), .contract = turns_dims(op, dot_contract_key[side])};
    o.free.n = dot_free_dims(hlo_value_type(h, o.from), op, side, o.free.at);
    o.turned.n = (uint32_t)hlo_value_type(h, o.from)->rank;
    for (uint32_t i = 0; i < o.turned.n; i++)
        o.turned.at[i] = i;
    const HloOp *def;
    while ((def = hlo_def_as(h, o.from, HLO_TRANSPOSE))) {
        uint32_t n;
        const int64_t *perm = hlo_ints(def, AK_PERMUTATION, &n);
        through(&o.batch, perm);
        through(&o.contract, perm);
        through(&o.free, perm);
        through(&o.turned, perm);
        o.from = hlo_operand(h, def, 0);
    }
    return o;
}

// A transpose that may go behind whoever reads it.
static void mark(Turns *s, ValueId v) {
    assert(hlo_def_as(s->h, v, HLO_TRANSPOSE));
    while (s->sinks.n <= v)
        VEC_PUSH(s->w.arena, &s->sinks, SINK_NONE);
    s->sinks.at[v] = s->kind;
}

ValueId turns_behind(Turns *s, ValueId made, const Dims *perm) {
    assert(hlo_value_type(s->h, made)->rank == perm->n);
    ValueId v = walk_transpose(&s->w, made, perm->at);
    if (v != made)
        mark(s, v);
    return v;
}

// The operand as the way has it; its batch and contracting dimensions where they are then.
static ValueId operand_make(Turns *s, const Operand *o, const Dims *order, Operand *now) {
    *now = *o;
    Dims perm = operand_order(hlo_value_type(s->h, o->from), o, order);
    for (uint32_t i = 0; i < o->batch.n; i++)
        now->batch.at[i] = place_of(&perm, o->batch.at[i]);
    for (uint32_t i = 0; i < o->contract.n; i++)
        now->contract.at[i] = place_of(&perm, o->contract.at[i]);
    return walk_transpose(&s->w, o->from, perm.at);
}

static ValueId make(Turns *s, const Product *p, const Way *w) {
    Hlo *h = s->h;
    HloOp op = *hlo_at(h, p->id);
    HloType t = *hlo_value_type(h, op.results);
    int64_t dims[OTRN_MAX_RANK];
    for (uint32_t i = 0; i < p->wanted.n; i++)
        dims[w->turn.at[i]] = t.dims[p->wanted.at[i]];
    Operand now[2];
    ValueId in[2];
    for (uint32_t side = 0; side < 2; side++)
        in[side != w->first] = operand_make(s, &p->in[side], &w->free[side], &now[side != w->first]);
    TypeId type = hlo_type_tensor(h, t.dtype, t.rank, dims);
    OpId made = hlo_op_like(h, &op, in, type);
    hlo_op_own_attrs(h, made);
    for (uint32_t side = 0; side < 2; side++) {
        int64_t batch[OTRN_MAX_RANK];
        uint32_t n = 0;
        for (uint32_t i = 0; i < p->wanted.n; i++)
            if (p->wanted.at[i] < now[side].batch.n)
                batch[n++] = now[side].batch.at[p->wanted.at[i]];
        hlo_set_ints(h, made, dot_batch_key[side], batch, n);
        hlo_set_ints(h, made, dot_contract_key[side], now[side].contract.at, now[side].contract.n);
    }
    return turns_behind(s, walk_push(&s->w, made), &w->turn);
}

// --- the walk ----------------------------------------------------------------------------------------

// The product, on whatever engine, wanted in this order of its dimensions; 0: it stays.
static ValueId rearrange(Turns *s, OpId id, const Dims *wanted) {
    HloOp op = *hlo_at(s->h, id);
    Product p = {.id = id, .in = {operand_read(s->h, &op, 0), operand_read(s->h, &op, 1)}, .wanted = *wanted};
    Way way;
    return best_way(s->h, &p, dot_may_swap(s->h, &op), &way) ? make(s, &p, &way) : 0;
}

// A product times a number and the like: what one op computes of the value and of numbers.
static bool computes_with_numbers(const Hlo *h, const HloOp *op, ValueId v) {
    HloClass cls = hlo_row(op)->cls;
    if ((cls != HC_EW1 && cls != HC_EW2) || op->nresults != 1 || op->nregions)
        return false;
    for (uint32_t i = 0; i < op->noperands; i++)
        if (hlo_operand(h, op, i) != v && !splat_value(h, hlo_operand(h, op, i)))
            return false;
    return true;
}

// The transpose that alone reads the product, or what is computed of it and numbers; 0: there is none.
static OpId turned_by(const Turns *s, ValueId v) {
    OpId reader;
    while ((reader = users_only(&s->users, v)) && computes_with_numbers(s->h, hlo_at(s->h, reader), v))
        v = hlo_at(s->h, reader)->results;
    return reader && hlo_at(s->h, reader)->code == HLO_TRANSPOSE ? reader : 0;
}

// The product that the transpose turns so; ops between them, the last first.
static OpId product_of(const Turns *s, OpId turn, OpList *between) {
    ValueId v = hlo_operand(s->h, hlo_at(s->h, turn), 0);
    OpId def = s->h->values.at[v].def;
    while (def && hlo_at(s->h, def)->code != HLO_DOT_GENERAL) {
        HloOp op = *hlo_at(s->h, def);
        ValueId of = 0;
        for (uint32_t i = 0; i < op.noperands; i++)
            of = splat_value(s->h, hlo_operand(s->h, &op, i)) ? of : hlo_operand(s->h, &op, i);
        if (!of || !computes_with_numbers(s->h, &op, of))
            return 0;
        VEC_PUSH(s->w.arena, between, def);
        def = s->h->values.at[of].def;
    }
    return def && turned_by(s, hlo_at(s->h, def)->results) == turn ? def : 0;
}

// Only products read it, which read through transposes, or they read what is computed of it and numbers.
static bool is_for_products(const Turns *s, ValueId v, uint32_t depth) {
    for (Reader by = readers_of(&s->users, v); reader_next(&by);) {
        bool passes = by.op->code == HLO_TRANSPOSE || computes_with_numbers(s->h, by.op, v);
        if (by.op->code != HLO_DOT_GENERAL && !(passes && depth && is_for_products(s, by.op->results, depth - 1)))
            return false;
    }
    return v < s->users.nvalues && users_reads(&s->users, v) > 0;
}

// --- work that goes on in one order -------------------------------------------------------------------
//
// Rotary positions stand between a product and the one that reads it turned: their work, halves put together included, is the same in any order. So it is
// done in the order that the product behind reads through, or that the transpose behind asks for.

static bool is_plain(const Hlo *h, ValueId v) { // in any order at once
    const HloOp *op = hlo_def(h, v);
    return splat_value(h, v) || (op && (op->code == HLO_BROADCAST_IN_DIM || op->code == HLO_IOTA));
}

static bool goes_on(const HloOp *op) {
    return op->nresults == 1 && !op->nregions && (hlo_is_elementwise(op) || op->code == HLO_SLICE || op->code == HLO_CONCATENATE);
}

// What is made of the value with numbers and tables, parts of it put together, ends in products, or in one transpose, and only there.
static bool flows(const Turns *s, ValueId v, OpId *turn, bool *products) {
    Values seen = {0};
    VEC_PUSH(s->w.arena, &seen, v);
    bool together = false;
    *turn = 0, *products = false;
    for (uint32_t i = 0; i < seen.n; i++) {
        Reader by = readers_of(&s->users, seen.at[i]);
        while (reader_next(&by)) {
            together = together || by.op->code == HLO_CONCATENATE;
            if (by.op->code == HLO_DOT_GENERAL || (by.op->code == HLO_TRANSPOSE && is_for_products(s, by.op->results, FOR_PRODUCTS)))
                *products = true;
            else if (by.op->code == HLO_TRANSPOSE && (!*turn || *turn == by.id))
                *turn = by.id;
            else if (!goes_on(by.op) || seen.n > FLOW_MOST)
                return false;
            else if (!values_have(&seen, by.op->results))
                VEC_PUSH(s->w.arena, &seen, by.op->results);
        }
    }
    for (uint32_t i = 1; i < seen.n; i++) {
        const HloOp *op = hlo_def(s->h, seen.at[i]);
        for (uint32_t k = 0; k < op->noperands; k++)
            if (!values_have(&seen, hlo_operand(s->h, op, k)) && !is_plain(s->h, hlo_operand(s->h, op, k)))
                return false;
    }
    return together;
}

// The same computed of the turned product.
static ValueId again(Turns *s, OpId id, ValueId v) {
    Hlo *h = s->h;
    HloOp op = *hlo_at(h, id);
    HloType t = *hlo_value_type(h, v);
    ValueId in[2] = {v, v};
    for (uint32_t i = 0; i < op.noperands; i++) {
        const HloAttr *number = splat_value(h, hlo_operand(h, &op, i));
        if (!number)
            continue;
        HloOp from = *hlo_at(h, h->values.at[hlo_operand(h, &op, i)].def);
        TypeId type = hlo_type_tensor(h, hlo_value_type(h, from.results)->dtype, t.rank, t.dims);
        in[i] = walk_push(&s->w, hlo_op_splat(h, from.loc, type, number->data));
    }
    TypeId type = hlo_type_tensor(h, hlo_value_type(h, op.results)->dtype, t.rank, t.dims);
    OpId made = hlo_op_like(h, &op, in, type);
    walk_grow(&s->w);
    op = *hlo_at(h, made);
    ValueId to = turns_sink(s, &op);
    return to ? to : walk_push(&s->w, made);
}

static ValueId transpose(Walk *w, const HloOp *op) {
    Turns *s = (Turns *)w;
    OpList between = {0};
    OpId product = product_of(s, w->id, &between);
    ValueId to = product ? s->made[w->id] : 0;
    for (uint32_t i = between.n; to && i-- > 0;)
        to = again(s, between.at[i], to);
    OpId turn;
    bool products;
    s->kind = !to && flows(s, op->results, &turn, &products) && products && !turn ? SINK_ALL : SINK_ANY;
    if (!to && (product || s->kind == SINK_ALL || is_for_products(s, op->results, FOR_PRODUCTS)))
        mark(s, op->results);
    return to;
}

static Dims inverse(const Dims *perm) {
    Dims back = {.n = perm->n};
    for (uint32_t i = 0; i < perm->n; i++)
        back.at[perm->at[i]] = i;
    return back;
}

static ValueId product(Walk *w, const HloOp *op) {
    Turns *s = (Turns *)w;
    OpId turn = turned_by(s, op->results), last;
    bool products;
    Dims wanted = {.n = (uint32_t)hlo_value_type(s->h, op->results)->rank}, all;
    s->kind = SINK_ANY;
    for (uint32_t i = 0; i < wanted.n; i++)
        wanted.at[i] = i;
    if (turn)
        wanted = turns_dims(hlo_at(s->h, turn), AK_PERMUTATION);
    if (!flows(s, turn ? hlo_at(s->h, turn)->results : op->results, &last, &products) || !last || products) {
        ValueId to = rearrange(s, w->id, &wanted);
        if (turn)
            s->made[turn] = to;
        return turn ? 0 : to;
    }
    Dims then = turns_dims(hlo_at(s->h, last), AK_PERMUTATION), back = inverse(&then); // turned for that one at once, and back until work has gone there
    all = then;
    through(&all, wanted.at);
    ValueId to = rearrange(s, w->id, &all);
    if (!to) {
        ValueId in[2] = {hlo_operand(s->h, op, 0), hlo_operand(s->h, op, 1)};
        to = walk_transpose(w, walk_push(w, hlo_op_like(s->h, op, in, s->h->values.at[op->results].type)), all.at);
    }
    s->kind = SINK_ALL;
    to = turns_behind(s, to, &back);
    if (turn)
        s->made[turn] = to;
    return turn ? 0 : to;
}

static ValueId sink(Walk *w, const HloOp *op) { return op->code == HLO_DOT_GENERAL ? 0 : turns_sink((Turns *)w, op); }

const Rule turns_rules[] = {
    {"product: operands and result in the order that moves least", HLO_DOT_GENERAL, RULE_EXACT, product},
    {"transpose of a product, and of what is computed of it: the product made so", HLO_TRANSPOSE, RULE_EXACT, transpose},
    {"work on a transpose of a product, or on one for products: the transpose of that work", HLO_NONE, RULE_EXACT, sink},
    {0},
};

void pass_turns(Compile *c) {
    Turns s = {.h = c->hlo, .made = ARENA_NEWN(c->scratch, ValueId, c->hlo->ops.n + 1)};
    walk_init(&s.w, c);
    users_make(&s.users, c->hlo, c->scratch, hlo_main(c->hlo)->body);
    rules_walk(&s.w, turns_rules);
}
