// SPDX-License-Identifier: Apache-2.0
// layouts.c — arguments and results whose bytes lie in another order than row by row ("mhlo.layout_mode").
// needs: the entry function without calls
// gives: formats: modes "auto" become an order; layouts: arguments and results in the order they lie, transposes between
//        those and the values the program speaks of
// stale: nothing
//
// A mode is "default", "auto" or the axes from minor to major, "{0,1}". What is left open is row by row, but for a result that
// is a transposed argument, and elementwise work on one: that lies as the argument does, so that nothing has to move.
#include "pass/layouts.h"

#include <stdlib.h>
#include <string.h>

#include "pass/walk.h"

#define MODE "mhlo.layout_mode"

static const char *mode_of(const HloNamed *attrs, uint32_t n) {
    const HloNamed *a = attrs ? hlo_named_find(attrs, n, MODE) : NULL;
    return a && a->value.kind == HA_STR ? a->value.s : "default";
}

static const char *arg_mode(const HloFunc *f, uint32_t i) {
    return f->arg_attrs ? mode_of(f->arg_attrs[i], f->narg_attrs[i]) : "default";
}

static const char *result_mode(const HloFunc *f, uint32_t i) {
    return f->res_attrs ? mode_of(f->res_attrs[i], f->nres_attrs[i]) : "default";
}

static LayoutOrder order_make(const int64_t *axes, uint32_t rank) {
    LayoutOrder order = 0;
    bool plain = true;
    for (uint32_t i = 0; i < rank; i++) {
        order |= (LayoutOrder)axes[i] << 4 * i;
        plain &= axes[i] == i;
    }
    return plain ? 0 : order;
}

// "{0,1}": axes from minor to major.
static LayoutOrder order_parse(Hlo *h, const char *mode, uint32_t rank) {
    if (!strcmp(mode, "default") || !strcmp(mode, "auto"))
        return 0;
    int64_t axes[LAYOUT_RANK_MAX];
    uint32_t n = 0, seen = 0;
    const char *at = mode + (*mode == '{');
    for (; *at >= '0' && *at <= '9' && n < LAYOUT_RANK_MAX; at += *at == ',') {
        char *end;
        int64_t axis = strtoll(at, &end, 10);
        at = end;
        if (n >= rank || axis >= rank || seen >> axis & 1)
            break;
        seen |= 1u << axis;
        axes[rank - 1 - n++] = axis;
    }
    if (*mode != '{' || n != rank || strcmp(at, "}"))
        ctx_fail(h->ctx, OTRN_UNSUPPORTED, (Place){.file = h->file},
                 "the layout %.80s of a tensor of rank %u: only an order of its axes, of up to %d", mode, rank, LAYOUT_RANK_MAX);
    return order_make(axes, rank);
}

// Of a result that may lie as it likes.
static LayoutOrder order_choose(const Hlo *h, ValueId v) {
    for (int steps = 0; steps < 64; steps++) {
        const HloOp *op = hlo_at(h, h->values.at[v].def);
        const HloType *t = hlo_value_type(h, v);
        if (!h->values.at[v].def || t->rank > LAYOUT_RANK_MAX)
            return 0;
        if (op->code == HLO_TRANSPOSE && !h->values.at[hlo_operand(h, op, 0)].def) {
            uint32_t n;
            const int64_t *perm = hlo_ints(op, AK_PERMUTATION, &n);
            int64_t axes[LAYOUT_RANK_MAX];
            for (uint32_t i = 0; i < n; i++)
                axes[perm[i]] = i;
            return order_make(axes, n);
        }
        if (hlo_row(op)->cls > HC_EW3 || !op->noperands || op->nresults != 1)
            return 0;
        v = hlo_operand(h, op, 0);
    }
    return 0;
}

static const HloNamed *with_mode(Hlo *h, const HloNamed *attrs, uint32_t n, const char *mode) {
    HloNamed *list = arena_dup(h->arena, attrs, n * sizeof *attrs);
    for (uint32_t i = 0; i < n; i++)
        if (!strcmp(list[i].name, MODE))
            list[i].value = (HloAttr){.kind = HA_STR, .s = mode, .n = (uint32_t)strlen(mode)};
    return list;
}

void pass_formats(Compile *c) {
    Hlo *h = c->hlo;
    HloFunc *f = hlo_main(h);
    const HloRegion *body = &h->regions.at[f->body];
    const HloOp *ret = hlo_at(h, body->ops.at[body->ops.n - 1]);
    for (uint32_t i = 0; i < f->nresults; i++) {
        if (strcmp(result_mode(f, i), "auto"))
            continue;
        LayoutOrder order = order_choose(h, hlo_operand(h, ret, i));
        uint32_t rank = hlo_type(h, f->result_types[i])->rank;
        Buf text = {.arena = h->arena};
        for (uint32_t k = rank; order && k-- > 0;)
            buf_printf(&text, "%s%u", k == rank - 1 ? "{" : ",", layout_axis(order, k));
        buf_puts(&text, order ? "}" : "default");
        const HloNamed **lists = arena_dup(h->arena, f->res_attrs, f->nresults * sizeof *lists);
        lists[i] = with_mode(h, lists[i], f->nres_attrs[i], buf_cstr(&text));
        f->res_attrs = lists;
    }
}

bool layouts_said(Hlo *h, LayoutOrder *orders) {
    const HloFunc *f = hlo_main(h);
    bool any = false;
    for (uint32_t i = 0; i < f->nargs + f->nresults; i++) {
        bool is_arg = i < f->nargs;
        const HloType *t = hlo_type(h, is_arg ? h->values.at[h->regions.at[f->body].args + i].type : f->result_types[i - f->nargs]);
        orders[i] = order_parse(h, is_arg ? arg_mode(f, i) : result_mode(f, i - f->nargs), t->kind == HT_TENSOR ? t->rank : 0);
        any |= orders[i] != 0;
    }
    return any;
}

static TypeId type_lying(Hlo *h, TypeId type, LayoutOrder order) {
    HloType t = *hlo_type(h, type);
    int64_t dims[LAYOUT_RANK_MAX];
    for (uint32_t i = 0; i < t.rank; i++)
        dims[i] = t.dims[layout_axis(order, i)];
    return hlo_type_tensor(h, t.dtype, t.rank, dims);
}

// Reads of a value are reads of another from now on.
static void redirect(Hlo *h, ValueId from, ValueId to, OpId but) {
    const HloOp *self = hlo_at(h, but);
    for (uint32_t i = 0; i < h->operands.n; i++)
        if (h->operands.at[i] == from && (i < self->operands || i >= self->operands + self->noperands))
            h->operands.at[i] = to;
}

void pass_layouts(Compile *c) {
    Hlo *h = c->hlo;
    HloFunc *f = hlo_main(h);
    LayoutOrder *orders = ARENA_NEWN(c->scratch, LayoutOrder, f->nargs + f->nresults + 1);
    if (!layouts_said(h, orders))
        return;
    OpList ops = {0};
    TypeId *types = ARENA_NEWN(h->arena, TypeId, f->nargs + f->nresults + 1);
    HloRegion body = h->regions.at[f->body];
    for (uint32_t i = 0; i < f->nargs; i++) {
        ValueId v = body.args + i;
        types[i] = h->values.at[v].type;
        if (!orders[i])
            continue;
        int64_t perm[LAYOUT_RANK_MAX];
        uint32_t rank = hlo_type(h, types[i])->rank;
        for (uint32_t k = 0; k < rank; k++)
            perm[layout_axis(orders[i], k)] = k;
        types[i] = h->values.at[v].type = type_lying(h, types[i], orders[i]);
        OpId turn = hlo_op_transpose(h, f->loc, v, perm);
        redirect(h, v, hlo_at(h, turn)->results, turn);
        VEC_PUSH(c->scratch, &ops, turn);
    }
    OpId last = body.ops.at[body.ops.n - 1];
    for (uint32_t i = 0; i + 1 < body.ops.n; i++)
        VEC_PUSH(c->scratch, &ops, body.ops.at[i]);
    for (uint32_t i = 0; i < f->nresults; i++) {
        LayoutOrder order = orders[f->nargs + i];
        ValueId *slot = &h->operands.at[hlo_at(h, last)->operands + i];
        types[f->nargs + i] = h->values.at[*slot].type;
        if (!order)
            continue;
        int64_t perm[LAYOUT_RANK_MAX];
        for (uint32_t k = 0; k < hlo_value_type(h, *slot)->rank; k++)
            perm[k] = layout_axis(order, k);
        OpId turn = hlo_op_transpose(h, f->loc, *slot, perm);
        ValueId turned = hlo_at(h, turn)->results;
        h->operands.at[hlo_at(h, last)->operands + i] = turned;
        types[f->nargs + i] = h->values.at[turned].type;
        VEC_PUSH(c->scratch, &ops, turn);
    }
    VEC_PUSH(c->scratch, &ops, last);
    walk_set_ops(h, f->body, &ops);
    f->result_types = types + f->nargs;
}
