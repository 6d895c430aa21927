// SPDX-License-Identifier: Apache-2.0
// graph_same.h — whether two graphs tell the same program: ops, operands, attributes, types, in
// order.
//
// Locations and ids may differ. The first difference is written to Pair.why.
#ifndef OTRN_TESTS_GRAPH_SAME_H
#define OTRN_TESTS_GRAPH_SAME_H

#include <stdio.h>
#include <stdlib.h>

#include "hlo/hlo.h"

typedef struct Pair { // two graphs of one program; map: value of x -> value of y
    const Hlo *x, *y;
    ValueId *map;
    char why[200];
} Pair;

static bool differ(Pair *p, const char *what, const char *name) {
    if (!p->why[0])
        snprintf(p->why, sizeof p->why, "%s of %s", what, name);
    return false;
}

static bool text_same(const char *s, const char *t) { // but for space
    for (;; s++, t++) {
        s += strspn(s, " \n");
        t += strspn(t, " \n");
        if (*s != *t || !*s)
            return *s == *t;
    }
}

static bool type_same(const Pair *p, TypeId a, TypeId b) {
    const HloType *x = hlo_type(p->x, a), *y = hlo_type(p->y, b);
    if (x->kind != y->kind || x->dtype != y->dtype || x->rank != y->rank || !x->text != !y->text ||
        x->nmembers != y->nmembers || x->ninputs != y->ninputs)
        return false;
    for (int i = 0; i < x->rank; i++)
        if (x->dims[i] != y->dims[i])
            return false;
    for (uint32_t i = 0; i < x->nmembers; i++)
        if (!type_same(p, x->members[i], y->members[i]))
            return false;
    return !x->text || text_same(x->text, y->text);
}

static bool attr_same(const Pair *p, const HloAttr *x, const HloAttr *y) {
    if (x->kind != y->kind || (x->kind != HA_TENSOR && x->kind != HA_OPAQUE && x->n != y->n))
        return false;
    switch (x->kind) {
    case HA_INT:
    case HA_BOOL:
    case HA_ENUM:
        return x->i == y->i && !x->type == !y->type;
    case HA_FLOAT:
        return x->f == y->f || (x->f != x->f && y->f != y->f);
    case HA_STR:
    case HA_SYM:
        return !memcmp(x->s, y->s, x->n);
    case HA_OPAQUE:
        return text_same(x->s, y->s);
    case HA_INTS:
    case HA_INTS2:
        return x->cols == y->cols && (!x->n || !memcmp(x->ints, y->ints, x->n * sizeof *x->ints));
    case HA_TYPE:
        return type_same(p, x->type, y->type);
    case HA_LIST:
        for (uint32_t i = 0; i < x->n; i++)
            if (!attr_same(p, &x->list[i], &y->list[i]))
                return false;
        return true;
    case HA_DICT:
        for (uint32_t i = 0; i < x->n; i++)
            if (strcmp(x->dict[i].name, y->dict[i].name) ||
                !attr_same(p, &x->dict[i].value, &y->dict[i].value))
                return false;
        return true;
    case HA_TENSOR: {
        size_t n = hlo_type_bytes(hlo_type(p->x, x->type));
        uint8_t *a = malloc(n + 1), *b = malloc(n + 1);
        bool same = a && b && type_same(p, x->type, y->type);
        if (same) {
            hlo_tensor_expand(p->x, x, a);
            hlo_tensor_expand(p->y, y, b);
            same = !memcmp(a, b, n);
        }
        free(a);
        free(b);
        return same;
    }
    default:
        return true;
    }
}

static bool named_same(Pair *p, const HloNamed *x, uint32_t nx, const HloNamed *y, uint32_t ny,
                       const char *where) {
    if (nx != ny)
        return differ(p, "count of extra attributes", where);
    for (uint32_t i = 0; i < nx; i++)
        if (strcmp(x[i].name, y[i].name) || !attr_same(p, &x[i].value, &y[i].value))
            return differ(p, x[i].name, where);
    return true;
}

static bool region_same(Pair *p, RegionId a, RegionId b, const char *where);

static bool op_same(Pair *p, const HloOp *x, const HloOp *y, const char *where) {
    const HloOpRow *row = hlo_row(x);
    if (x->code != y->code || x->noperands != y->noperands || x->nresults != y->nresults ||
        x->nregions != y->nregions)
        return differ(p, row->name, where);
    for (uint32_t i = 0; i < x->noperands; i++)
        if (p->map[hlo_operand(p->x, x, i)] != hlo_operand(p->y, y, i))
            return differ(p, "an operand", row->name);
    for (int i = 0; i < row->nattrs; i++)
        if (!attr_same(p, &x->attrs[i], &y->attrs[i])) {
            char what[100];
            snprintf(what, sizeof what, "%s in %s", hlo_attr_rows[row->attrs[i]].name, row->name);
            return differ(p, what, where);
        }
    for (uint32_t i = 0; i < x->nregions; i++)
        if (!region_same(p, p->x->op_regions.at[x->regions + i],
                         p->y->op_regions.at[y->regions + i], where))
            return false;
    for (uint32_t i = 0; i < x->nresults; i++) {
        p->map[x->results + i] = y->results + i;
        if (!type_same(p, p->x->values.at[x->results + i].type,
                       p->y->values.at[y->results + i].type))
            return differ(p, "a result type", row->name);
    }
    return named_same(p, x->extra, x->nextra, y->extra, y->nextra, row->name);
}

static bool region_same(Pair *p, RegionId a, RegionId b, const char *where) {
    const HloRegion *x = &p->x->regions.at[a], *y = &p->y->regions.at[b];
    if (x->nargs != y->nargs || x->ops.n != y->ops.n)
        return differ(p, "count of arguments or ops", where);
    for (uint32_t i = 0; i < x->nargs; i++) {
        p->map[x->args + i] = y->args + i;
        if (!type_same(p, p->x->values.at[x->args + i].type, p->y->values.at[y->args + i].type))
            return differ(p, "an argument type", where);
    }
    for (uint32_t i = 0; i < x->ops.n; i++)
        if (!op_same(p, hlo_at(p->x, x->ops.at[i]), hlo_at(p->y, y->ops.at[i]), where))
            return false;
    return true;
}

static bool func_same(Pair *p, const HloFunc *x, const HloFunc *y) {
    if (strcmp(x->name, y->name) || x->nargs != y->nargs || x->nresults != y->nresults ||
        x->is_private != y->is_private || !x->body != !y->body)
        return differ(p, "the head", x->name);
    for (uint32_t i = 0; i < x->nresults; i++)
        if (!type_same(p, x->result_types[i], y->result_types[i]))
            return differ(p, "a result type", x->name);
    for (uint32_t i = 0; i < x->nargs; i++)
        if (!named_same(p, x->arg_attrs ? x->arg_attrs[i] : NULL,
                        x->arg_attrs ? x->narg_attrs[i] : 0, y->arg_attrs ? y->arg_attrs[i] : NULL,
                        y->arg_attrs ? y->narg_attrs[i] : 0, x->name))
            return false;
    return named_same(p, x->extra, x->nextra, y->extra, y->nextra, x->name) &&
           (!x->body || region_same(p, x->body, y->body, x->name));
}

static bool graph_same(Pair *p, Arena *a) {
    p->map = ARENA_NEWN(a, ValueId, p->x->values.n);
    if (p->x->funcs.n != p->y->funcs.n)
        return differ(p, "count of functions", "the module");
    for (uint32_t i = 0; i < p->x->funcs.n; i++)
        if (!func_same(p, &p->x->funcs.at[i], &p->y->funcs.at[i]))
            return false;
    return named_same(p, p->x->extra, p->x->nextra, p->y->extra, p->y->nextra, "the module");
}

#endif
