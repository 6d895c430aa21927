// SPDX-License-Identifier: Apache-2.0
// alias.c — which result takes over which argument, as XLA writes it.
//
//   module attributes {mhlo.input_output_alias = [{alias = {parameter_index = array<i64>, parameter_number = 2 : i64, …},
//                                                  output_index = array<i64: 0>}, …]}
//
// The rest of the compiler asks the arguments (tf.aliasing_output), so that is where it goes. An index path is empty where
// the program has one result, or the argument is no tuple; entries that name what is not there are passed over: they are
// a permission, not an order.
#include <string.h>

#include "read/read.h"

#define LIST "mhlo.input_output_alias"

static const HloAttr *entry(const HloAttr *of, const char *name, int kind) {
    const HloNamed *n = of && of->kind == HA_DICT ? hlo_named_find(of->dict, of->n, name) : NULL;
    return n && n->value.kind == kind ? &n->value : NULL;
}

// Entries with one more; sorted by name, the new one in place of another of its name.
const HloNamed *read_named_with(Hlo *h, const HloNamed *old, uint32_t *n, HloNamed more) {
    HloNamed *all = ARENA_NEWN(h->arena, HloNamed, *n + 1);
    uint32_t at = 0;
    while (at < *n && strcmp(old[at].name, more.name) < 0)
        all[at] = old[at], at++;
    bool there = at < *n && !strcmp(old[at].name, more.name);
    all[at] = more;
    for (uint32_t i = at + there; i < *n; i++)
        all[i + !there] = old[i];
    *n += !there;
    return all;
}

void read_alias_set(Hlo *h, HloFunc *f, const int64_t *result_of) {
    const HloNamed **attrs = ARENA_NEWN(h->arena, const HloNamed *, f->nargs + 1);
    uint32_t *counts = ARENA_NEWN(h->arena, uint32_t, f->nargs + 1);
    for (uint32_t i = 0; i < f->nargs; i++) {
        attrs[i] = f->arg_attrs ? f->arg_attrs[i] : NULL;
        counts[i] = f->arg_attrs ? f->narg_attrs[i] : 0;
        HloAttr value = {.kind = HA_INT, .i = result_of[i]};
        if (result_of[i] >= 0 && result_of[i] < f->nresults)
            attrs[i] = read_named_with(h, attrs[i], &counts[i], (HloNamed){"tf.aliasing_output", value});
    }
    f->arg_attrs = attrs;
    f->narg_attrs = counts;
}

// The number at an index path of at most one step, or -1.
static int64_t step_of(const HloAttr *path) {
    return !path || path->n > 1 ? -1 : path->n ? path->ints[0] : 0;
}

static void take_entry(const HloFunc *f, const HloAttr *e, int64_t *result_of) {
    const HloAttr *alias = entry(e, "alias", HA_DICT), *inside = entry(alias, "parameter_index", HA_INTS);
    const HloAttr *arg = entry(alias, "parameter_number", HA_INT);
    if (arg && inside && !inside->n && arg->i >= 0 && arg->i < f->nargs)
        result_of[arg->i] = step_of(entry(e, "output_index", HA_INTS));
}

void read_aliases(Hlo *h) {
    const HloNamed *list = hlo_named_find(h->extra, h->nextra, LIST);
    HloFunc *f = list && list->value.kind == HA_LIST ? hlo_func_find(h, "main") : NULL;
    if (!f)
        return;
    int64_t *result_of = ARENA_NEWN(h->arena, int64_t, f->nargs + 1);
    for (uint32_t i = 0; i < f->nargs; i++)
        result_of[i] = -1;
    for (uint32_t i = 0; i < list->value.n; i++)
        take_entry(f, &list->value.list[i], result_of);
    read_alias_set(h, f, result_of);
}
