// SPDX-License-Identifier: Apache-2.0
// region.c — the region of a reduce, scatter, sort … as a scalar program.
//
// A region over rank-0 tensors is straight-line elementwise code; each value becomes a register. What it
// reads from outside must be a scalar and becomes an extra operand of the kernel.
#include <assert.h>
#include <string.h>

#include "tile/step.h"

#define REGS_MAX 4096

typedef struct Prog {
    Compile *c;
    Hlo *h;
    OpId op;
    RegionId region;
    VEC(uint8_t) dtypes;
    VEC(KStep) steps;
    VEC(uint16_t) const_regs;
    VEC(uint32_t) const_vals; // op ids of constants
    ValueList values;         // value of each register, for lookup
} Prog;

static uint16_t reg_new(Prog *p, ValueId v) {
    const HloType *t = hlo_value_type(p->h, v);
    if (t->kind != HT_TENSOR || t->elems != 1 || t->text)
        hlo_fail(p->h, p->op, OTRN_UNSUPPORTED, "its region works on tensors, not on scalars");
    if (p->dtypes.n >= REGS_MAX)
        hlo_fail(p->h, p->op, OTRN_CAPACITY, "its region has more than %d values", REGS_MAX);
    VEC_PUSH(p->c->scratch, &p->dtypes, t->dtype);
    VEC_PUSH(p->c->scratch, &p->values, v);
    return (uint16_t)(p->dtypes.n - 1);
}

static int reg_find(const Prog *p, ValueId v) {
    for (uint32_t i = p->values.n; i-- > 0;) // regions are short
        if (p->values.at[i] == v)
            return (int)i;
    return -1;
}

// Captured values must come right after the inputs: find them before any code is made.
static void find_captures(Prog *p, ValueList *captures) {
    Hlo *h = p->h;
    const HloRegion *r = &h->regions.at[p->region];
    ValueList defined = {0};
    for (uint32_t i = 0; i < r->ops.n; i++) {
        const HloOp *op = hlo_at(h, r->ops.at[i]);
        for (uint32_t k = 0; k < op->noperands; k++) {
            ValueId v = hlo_operand(h, op, k);
            bool known = reg_find(p, v) >= 0;
            for (uint32_t d = 0; d < defined.n && !known; d++)
                known = defined.at[d] == v;
            if (known)
                continue;
            reg_new(p, v);
            VEC_PUSH(p->c->scratch, captures, v);
        }
        for (uint32_t k = 0; k < op->nresults; k++)
            VEC_PUSH(p->c->scratch, &defined, op->results + k);
    }
}

static uint16_t reg_of(Prog *p, ValueId v) {
    int r = reg_find(p, v);
    assert(r >= 0);
    return (uint16_t)r;
}

static void add_step(Prog *p, const HloOp *op) {
    KStep s = {.op = op->code};
    for (uint32_t i = 0; i < op->noperands; i++)
        s.src[i] = reg_of(p, hlo_operand(p->h, op, i));
    if (op->code == HLO_COMPARE) {
        s.attr[0] = (int16_t)hlo_int(op, AK_COMPARISON_DIRECTION, 0);
        s.attr[1] = (int16_t)hlo_int(op, AK_COMPARE_TYPE, 0);
    } else if (op->code == HLO_REDUCE_PRECISION) {
        s.attr[0] = (int16_t)hlo_int(op, AK_EXPONENT_BITS, 0);
        s.attr[1] = (int16_t)hlo_int(op, AK_MANTISSA_BITS, 0);
    }
    s.dst = reg_new(p, op->results);
    VEC_PUSH(p->c->scratch, &p->steps, s);
}

static void add_op(Prog *p, OpId id) {
    Hlo *h = p->h;
    const HloOp *op = hlo_at(h, id);
    if (kern_is_step(op->code)) {
        add_step(p, op);
        return;
    }
    switch (op->code) {
    case HLO_CONSTANT:
        VEC_PUSH(p->c->scratch, &p->const_regs, reg_new(p, op->results));
        VEC_PUSH(p->c->scratch, &p->const_vals, id);
        return;
    case HLO_RESHAPE:
    case HLO_BROADCAST_IN_DIM:
    case HLO_TRANSPOSE: { // of one element: the same register under a second name
        uint16_t from = reg_of(p, hlo_operand(h, op, 0));
        KStep s = {.op = HLO_CONVERT, .src = {from}};
        s.dst = reg_new(p, op->results);
        VEC_PUSH(p->c->scratch, &p->steps, s);
        return;
    }
    default:
        hlo_fail(h, id, OTRN_UNSUPPORTED, "cannot stand in the region of %s.%s yet",
                 hlo_dialect_names[hlo_row(hlo_at(h, p->op))->dialect],
                 hlo_row(hlo_at(h, p->op))->name);
    }
}

// Registers are arrays of lanes: a program that keeps few of them stays in the nearest cache. Inputs, captures and
// constants keep a register each; a step's result takes one that is free, of its type, or a new one. `last` is
// the last step that reads each register as numbered so far, or more when the region returns it.
static uint16_t reuse_registers(Prog *p, uint16_t fixed_inputs, const uint32_t *last, uint16_t *outs,
                                uint32_t nouts) {
    Arena *a = p->c->scratch;
    uint16_t n = fixed_inputs, *name = ARENA_NEWN(a, uint16_t, p->dtypes.n + 1);
    uint8_t *dtypes = ARENA_NEWN(a, uint8_t, p->dtypes.n + 1);
    VEC(uint16_t) free_regs[DT_COUNT];
    memset(free_regs, 0, sizeof free_regs);
    for (uint16_t i = 0; i < fixed_inputs; i++)
        name[i] = i, dtypes[i] = p->dtypes.at[i];
    for (uint32_t i = 0; i < p->const_regs.n; i++) {
        dtypes[n] = p->dtypes.at[p->const_regs.at[i]];
        name[p->const_regs.at[i]] = n;
        p->const_regs.at[i] = n++;
    }
    uint16_t first_temp = n;
    for (uint32_t i = 0; i < p->steps.n; i++) {
        KStep *s = &p->steps.at[i];
        uint8_t d = p->dtypes.at[s->dst];
        uint16_t to = free_regs[d].n ? free_regs[d].at[--free_regs[d].n] : n++;
        dtypes[to] = d;
        name[s->dst] = to;
        s->dst = to;
        for (int k = 0; k < hlo_op_rows[s->op].operands; k++) {
            uint16_t old = s->src[k], now = name[old];
            bool again = false; // the same operand twice is given back once
            for (int j = 0; j < k; j++)
                again |= s->src[j] == now;
            s->src[k] = now;
            if (now >= first_temp && last[old] == i && !again)
                VEC_PUSH(a, &free_regs[dtypes[now]], now);
        }
    }
    for (uint32_t i = 0; i < nouts; i++)
        outs[i] = name[outs[i]];
    memcpy(p->dtypes.at, dtypes, n);
    return n;
}

void region_compile(Compile *c, OpId op, RegionId r, KProg *out, ValueList *captures) {
    Hlo *h = c->hlo;
    Prog p = {.c = c, .h = h, .op = op, .region = r};
    const HloRegion *region = &h->regions.at[r];
    for (uint32_t i = 0; i < region->nargs; i++)
        reg_new(&p, region->args + i);
    find_captures(&p, captures);
    uint16_t ncaptures = (uint16_t)(p.dtypes.n - region->nargs);
    for (uint32_t i = 0; i + 1 < region->ops.n; i++)
        add_op(&p, region->ops.at[i]);
    const HloOp *ret = hlo_at(h, region->ops.at[region->ops.n - 1]);
    if (ret->code != HLO_RETURN)
        hlo_fail(h, op, OTRN_VERIFY, "its region does not end with a return");
    uint16_t *outs = ARENA_NEWN(c->arena, uint16_t, ret->noperands + 1);
    for (uint32_t i = 0; i < ret->noperands; i++)
        outs[i] = reg_of(&p, hlo_operand(h, ret, i));
    uint32_t *last = ARENA_NEWN(c->scratch, uint32_t, p.dtypes.n + 1);
    for (uint32_t i = 0; i < p.steps.n; i++)
        for (int k = 0; k < hlo_op_rows[p.steps.at[i].op].operands; k++)
            last[p.steps.at[i].src[k]] = i;
    for (uint32_t i = 0; i < ret->noperands; i++)
        last[outs[i]] = UINT32_MAX;
    uint16_t nregs =
        reuse_registers(&p, (uint16_t)(region->nargs + ncaptures), last, outs, ret->noperands);
    uint8_t(*consts)[16] = arena_array(c->arena, p.const_regs.n + 1, 16);
    for (uint32_t i = 0; i < p.const_regs.n; i++) {
        const HloAttr *a = hlo_attr(hlo_at(h, p.const_vals.at[i]), AK_VALUE);
        memcpy(consts[i], a->data, dtype_bytes(hlo_type(h, a->type)->dtype));
    }
    *out = (KProg){
        .nregs = nregs,
        .ninputs = (uint16_t)region->nargs,
        .nconsts = (uint16_t)p.const_regs.n,
        .nsteps = (uint16_t)p.steps.n,
        .nouts = (uint16_t)ret->noperands,
        .dtypes = arena_dup(c->arena, p.dtypes.at, nregs),
        .const_regs = arena_dup(c->arena, p.const_regs.at, p.const_regs.n * sizeof(uint16_t)),
        .consts = consts,
        .steps = arena_dup(c->arena, p.steps.at, p.steps.n * sizeof(KStep)),
        .outs = outs,
        .ncaptures = ncaptures,
    };
}
