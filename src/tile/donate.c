// SPDX-License-Identifier: Apache-2.0
// donate.c — which result takes over which argument's memory.
//
// A front end that knows both shapes names the result (tf.aliasing_output). Over several devices it does not know how results
// will lie and only says which arguments it gives away (jax.buffer_donor): the pairs are chosen here, behind partitioning, among
// what one device has. A result takes, in this order,
//   1. the argument that names it, when their types are the same;
//   2. an argument of its type which the operation that makes it reads: it can be written in place;
//   3. the next argument of its type: state comes back in the order in which it went in;
//   4. the next argument of as many bytes.
// Both lie in the same kind of memory.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "tile/lower.h"

bool lower_is_pinned(const HloNamed *attrs, uint32_t n) {
    const HloNamed *memory = hlo_named_find(attrs, n, "mhlo.memory_kind");
    return memory && memory->value.kind == HA_STR && strstr(memory->value.s, "pinned_host");
}

static const HloNamed *arg_named(const HloFunc *f, uint32_t arg, const char *name) {
    return f->arg_attrs ? hlo_named_find(f->arg_attrs[arg], f->narg_attrs[arg], name) : NULL;
}

bool lower_is_donated(const HloFunc *f, uint32_t arg) {
    return arg_named(f, arg, "jax.buffer_donor") || arg_named(f, arg, "tf.aliasing_output");
}

typedef struct Donors {
    Lower *l;
    const HloRegion *body;
    const HloOp *ret;
    bool *free; // per argument: given away, not yet taken
} Donors;

typedef struct Key { // two that may share memory have the same
    uint64_t bytes;
    uint32_t type, pinned;
} Key;

typedef struct Entry {
    Key key;
    uint32_t index; // of an argument or a result
} Entry;

static Key key_of(const Donors *d, bool is_result, uint32_t index) {
    const HloFunc *f = d->l->main;
    ValueId v = is_result ? hlo_operand(d->l->h, d->ret, index) : d->body->args + index;
    const HloNamed **attrs = is_result ? f->res_attrs : f->arg_attrs;
    const uint32_t *n = is_result ? f->nres_attrs : f->narg_attrs;
    return (Key){lower_bytes(d->l, v, 0), d->l->h->values.at[v].type, attrs && lower_is_pinned(attrs[index], n[index])};
}

static int key_order(Key a, Key b) {
    if (a.pinned != b.pinned)
        return a.pinned < b.pinned ? -1 : 1;
    if (a.bytes != b.bytes)
        return a.bytes < b.bytes ? -1 : 1;
    return a.type < b.type ? -1 : a.type > b.type;
}

static void take(Donors *d, uint32_t result, uint32_t arg) {
    d->l->alias[result] = (int32_t)arg;
    d->free[arg] = false;
}

static bool may_take(const Donors *d, uint32_t result, uint32_t arg) {
    Key key = key_of(d, true, result);
    return d->free[arg] && d->l->alias[result] < 0 && key.bytes && key_order(key, key_of(d, false, arg)) == 0;
}

static void take_named(Donors *d) {
    const HloFunc *f = d->l->main;
    for (uint32_t i = 0; i < f->nargs; i++) {
        const HloNamed *n = arg_named(f, i, "tf.aliasing_output");
        if (n && n->value.kind == HA_INT && n->value.i >= 0 && n->value.i < f->nresults && may_take(d, (uint32_t)n->value.i, i))
            take(d, (uint32_t)n->value.i, i);
    }
}

static void take_read(Donors *d) {
    const Hlo *h = d->l->h;
    for (uint32_t j = 0; j < d->l->main->nresults; j++) {
        OpId def = h->values.at[lower_producer(d->l, hlo_operand(h, d->ret, j))].def;
        const HloOp *op = def ? hlo_at(h, def) : NULL;
        for (uint32_t k = 0; op && k < op->noperands; k++) {
            ValueId v = lower_producer(d->l, hlo_operand(h, op, k));
            if (v >= d->body->args && v - d->body->args < d->body->nargs && may_take(d, j, v - d->body->args))
                take(d, j, v - d->body->args);
        }
    }
}

static int by_key(const void *a, const void *b) {
    const Entry *x = a, *y = b;
    int order = key_order(x->key, y->key);
    return order ? order : x->index < y->index ? -1 : x->index > y->index;
}

// What is left, in order.
static Entry *left(const Donors *d, bool is_result, bool types, uint32_t *n) {
    uint32_t most = is_result ? d->l->main->nresults : d->l->main->nargs;
    Entry *at = ARENA_NEWN(d->l->c->scratch, Entry, most + 1);
    *n = 0;
    for (uint32_t i = 0; i < most; i++) {
        if (is_result ? d->l->alias[i] >= 0 : !d->free[i])
            continue;
        Entry e = {key_of(d, is_result, i), i};
        e.key.type = types ? e.key.type : 0;
        if (e.key.bytes)
            at[(*n)++] = e;
    }
    qsort(at, *n, sizeof *at, by_key);
    return at;
}

static void take_next(Donors *d, bool types) {
    uint32_t nargs, nresults;
    const Entry *args = left(d, false, types, &nargs), *results = left(d, true, types, &nresults);
    for (uint32_t i = 0, j = 0; i < nargs && j < nresults;) {
        int order = key_order(args[i].key, results[j].key);
        if (!order)
            take(d, results[j].index, args[i].index);
        i += order <= 0;
        j += order >= 0;
    }
}

void lower_donate(Lower *l) {
    const HloFunc *f = l->main;
    const HloRegion body = l->h->regions.at[f->body];
    Donors d = {.l = l, .body = &body, .ret = region_return(l->h, &body), .free = ARENA_NEWN(l->c->scratch, bool, f->nargs + 1)};
    for (uint32_t j = 0; j < f->nresults; j++)
        l->alias[j] = -1;
    for (uint32_t i = 0; i < f->nargs; i++)
        d.free[i] = lower_is_donated(f, i);
    assert(d.ret->noperands == f->nresults);
    take_named(&d);
    take_read(&d);
    take_next(&d, true);
    take_next(&d, false);
}
