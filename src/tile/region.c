// SPDX-License-Identifier: Apache-2.0
// region.c — the region of a reduce, scatter, sort … as a scalar program.
//
// Every element of every value in the region becomes a register, so a small tensor is a handful of
// registers and moving its elements costs nothing. The program is straight-line code over lanes:
//   if, case   all branches, then a selection (regions have no effects);
//   while      carried values are registers written again by each turn, in the lanes that still go on:
//
//                  state = init; mask = cond(state)
//              again:
//                  next = body(state); state = mask ? next : state; mask = mask and cond(state)
//                  repeat from `again` while any lane of mask is set
//
// A loop inside a branch or another loop begins with the mask of what is around it, so lanes that
// are not there can never keep it going. What the region reads from outside becomes extra operands of
// the kernel, one for each element.
#include "tile/region.h"

#include <assert.h>
#include <string.h>

#define REGS_MAX 4096    // that are alive at once: each is an array of lanes
#define STEPS_MAX INT16_MAX // a loop's way back has 16 bits
#define DEPTH_MAX 64

// --- registers ---------------------------------------------------------------------------------

uint16_t *region_regs(Region *p, uint32_t n) { return ARENA_NEWN(p->c->scratch, uint16_t, n + 1); }

// a new register
static uint16_t region_reg(Region *p, int dtype) {
    if (p->dtypes.n >= REGION_VALUES_MAX)
        hlo_fail(p->h, p->op, OTRN_CAPACITY, "its region has more than %d values", REGION_VALUES_MAX);
    VEC_PUSH(p->c->scratch, &p->dtypes, (uint8_t)dtype);
    VEC_PUSH(p->c->scratch, &p->pinned, 0);
    return (uint16_t)(p->dtypes.n - 1);
}

void region_bind(Region *p, ValueId v, const uint16_t *regs) {
    RegVal entry = {v, regs};
    VEC_PUSH(p->c->scratch, &p->vals, entry);
}

static const uint16_t *regs_find(const Region *p, ValueId v) {
    for (uint32_t i = p->vals.n; i-- > 0;) // operands are mostly near
        if (p->vals.at[i].value == v)
            return p->vals.at[i].regs;
    return NULL;
}

const uint16_t *region_slots(Region *p, ValueId v) {
    const uint16_t *regs = regs_find(p, v);
    assert(regs);
    return regs;
}

// New registers for all elements of a value that comes from outside the program.
static void regs_for(Region *p, ValueId v) {
    if (hlo_value_type(p->h, v)->elems > REGS_MAX)
        hlo_fail(p->h, p->op, OTRN_CAPACITY, "its region works on a tensor of more than %d elements", REGS_MAX);
    RShape s = region_shape(p, v);
    uint16_t *regs = region_regs(p, (uint32_t)s.elems);
    for (int64_t i = 0; i < s.elems; i++)
        regs[i] = region_reg(p, hlo_value_type(p->h, v)->dtype);
    region_bind(p, v, regs);
}

uint16_t region_const(Region *p, int dtype, const void *bytes) {
    assert(dtype_bytes(dtype) <= 16);
    size_t n = dtype_bytes(dtype);
    for (uint32_t i = 0; i < p->const_regs.n; i++)
        if (p->dtypes.at[p->const_regs.at[i]] == dtype && !memcmp(p->consts[i], bytes, n))
            return p->const_regs.at[i];
    uint32_t at = p->const_regs.n;
    VEC_PUSH(p->c->scratch, &p->const_regs, region_reg(p, dtype));
    if (at == p->consts_cap)
        p->consts = arena_grow(p->c->scratch, p->consts, at, &p->consts_cap, at + 1, 16);
    memset(p->consts[at], 0, 16);
    memcpy(p->consts[at], bytes, n);
    return p->const_regs.at[at];
}

uint16_t region_const_int(Region *p, int dtype, int64_t v) {
    uint8_t bytes[16] = {0};
    if (dtype_is_complex(dtype)) {
        int part = dtype == DT_C128 ? DT_F64 : DT_F32;
        dtype_from_f64(part, bytes, (double)v);
    } else if (dtype_is_float(dtype)) {
        dtype_from_f64(dtype, bytes, (double)v);
    } else if (dtype == DT_I1) {
        bytes[0] = v != 0;
    } else {
        dtype_from_i64(dtype, bytes, v);
    }
    return region_const(p, dtype, bytes);
}

// --- steps -------------------------------------------------------------------------------------

static void push_step(Region *p, KStep s) {
    if (p->steps.n >= STEPS_MAX)
        hlo_fail(p->h, p->op, OTRN_CAPACITY, "its region has more than %d steps", STEPS_MAX);
    VEC_PUSH(p->c->scratch, &p->steps, s);
}

uint16_t region_step(Region *p, int op, int dtype, uint16_t a, uint16_t b, uint16_t c) {
    assert(a < p->dtypes.n);
    assert(b < p->dtypes.n);
    assert(c < p->dtypes.n);
    KStep s = {.op = (uint16_t)op, .src = {a, b, c}, .dst = region_reg(p, dtype)};
    push_step(p, s);
    return s.dst;
}

uint16_t region_compare(Region *p, int direction, uint16_t a, uint16_t b) {
    assert(a < p->dtypes.n);
    assert(p->dtypes.at[a] == p->dtypes.at[b]);
    KStep s = {.op = HLO_COMPARE, .src = {a, b}, .attr = {(int16_t)direction, CMPT_NOTYPE}};
    s.dst = region_reg(p, DT_I1);
    push_step(p, s);
    return s.dst;
}

static void push_copy(Region *p, uint16_t dst, uint16_t src) {
    push_step(p, (KStep){.op = HLO_CONVERT, .src = {src}, .dst = dst});
}

// In the lanes that are here at all.
static uint16_t masked(Region *p, uint16_t test) {
    return p->mask < 0 ? test : region_step(p, HLO_AND, DT_I1, test, (uint16_t)p->mask, 0);
}

// An elementwise op over all elements; operands of one element go with all of them.
static void add_elementwise(Region *p, const HloOp *op) {
    RShape shape = region_shape(p, op->results);
    uint16_t *regs = region_regs(p, (uint32_t)shape.elems);
    for (int64_t e = 0; e < shape.elems; e++) {
        KStep s = {.op = op->code};
        for (uint32_t i = 0; i < op->noperands; i++) {
            ValueId v = hlo_operand(p->h, op, i);
            s.src[i] = region_slots(p, v)[hlo_value_type(p->h, v)->elems == 1 ? 0 : e];
        }
        if (op->code == HLO_COMPARE) {
            s.attr[0] = (int16_t)hlo_int(op, AK_COMPARISON_DIRECTION, 0);
            s.attr[1] = (int16_t)hlo_int(op, AK_COMPARE_TYPE, 0);
        } else if (op->code == HLO_REDUCE_PRECISION) {
            s.attr[0] = (int16_t)hlo_int(op, AK_EXPONENT_BITS, 0);
            s.attr[1] = (int16_t)hlo_int(op, AK_MANTISSA_BITS, 0);
        }
        s.dst = region_reg(p, hlo_value_type(p->h, op->results)->dtype);
        push_step(p, s);
        regs[e] = s.dst;
    }
    region_bind(p, op->results, regs);
}

// --- control flow ------------------------------------------------------------------------------

static bool has_loop(const Hlo *h, RegionId r) {
    for (uint32_t i = 0; i < h->regions.at[r].ops.n; i++) {
        const HloOp *op = hlo_at(h, h->regions.at[r].ops.at[i]);
        if (op->code == HLO_WHILE)
            return true;
        for (uint32_t k = 0; k < op->nregions; k++)
            if (has_loop(h, h->op_regions.at[op->regions + k]))
                return true;
    }
    return false;
}

void region_branch(Region *p, RegionId r, uint16_t test, const uint16_t *const *args,
                   const uint16_t **outs) {
    int outer = p->mask;
    if (has_loop(p->h, r))
        p->mask = masked(p, test);
    region_inline(p, r, args, outs);
    p->mask = outer;
}

// if and case: test[k] says that branch k is taken; the last is taken when no other is.
static void add_case(Region *p, OpId id) {
    HloOp op = *hlo_at(p->h, id);
    uint16_t index = region_slots(p, hlo_operand(p->h, &op, 0))[0], taken = 0;
    const uint16_t **outs = ARENA_NEWN(p->c->scratch, const uint16_t *, op.nresults + 1u);
    const uint16_t ***all = ARENA_NEWN(p->c->scratch, const uint16_t **, op.nregions + 1);
    uint16_t *test = region_regs(p, op.nregions);
    for (uint32_t k = 0; k < op.nregions; k++) {
        bool last = k + 1 == op.nregions;
        if (last)
            test[k] = k ? region_step(p, HLO_NOT, DT_I1, taken, 0, 0) : region_const_int(p, DT_I1, 1);
        else if (op.code == HLO_IF)
            test[k] = index;
        else
            test[k] = region_compare(p, CMP_EQ, index,
                                     region_const_int(p, p->dtypes.at[index], k));
        if (!last)
            taken = k ? region_step(p, HLO_OR, DT_I1, taken, test[k], 0) : test[k];
        all[k] = ARENA_NEWN(p->c->scratch, const uint16_t *, op.nresults + 1u);
        region_branch(p, p->h->op_regions.at[op.regions + k], test[k], NULL, all[k]);
    }
    for (uint32_t i = 0; i < op.nresults; i++) {
        uint32_t n = (uint32_t)hlo_value_type(p->h, op.results + i)->elems;
        uint16_t *regs = region_regs(p, n);
        for (uint32_t e = 0; e < n; e++) {
            regs[e] = all[op.nregions - 1][i][e];
            for (uint32_t k = op.nregions - 1; k-- > 0;)
                regs[e] = region_select(p, test[k], all[k][i][e], regs[e]);
        }
        outs[i] = regs;
    }
    for (uint32_t i = 0; i < op.nresults; i++)
        region_bind(p, op.results + i, outs[i]);
}

static uint16_t pinned_copy(Region *p, uint16_t from) {
    uint16_t to = region_reg(p, p->dtypes.at[from]);
    p->pinned.at[to] = 1;
    push_copy(p, to, from);
    return to;
}

// The next state into the state's registers, in lanes of the mask. All are chosen before any is
// written: the body may pass one carried value on as another.
static void write_state(Region *p, const HloOp *op, uint16_t mask, uint16_t **state,
                        const uint16_t *const *next) {
    for (int turn = 0; turn < 2; turn++)
        for (uint32_t i = 0; i < op->noperands; i++) {
            uint32_t n = (uint32_t)hlo_value_type(p->h, op->results + i)->elems;
            uint16_t *chosen = (uint16_t *)next[i];
            for (uint32_t e = 0; e < n; e++)
                if (turn == 0)
                    chosen[e] = region_select(p, mask, chosen[e], state[i][e]);
                else if (chosen[e] != state[i][e])
                    push_copy(p, state[i][e], chosen[e]);
        }
}

static void add_while(Region *p, OpId id) {
    HloOp op = *hlo_at(p->h, id);
    RegionId cond = p->h->op_regions.at[op.regions], body = p->h->op_regions.at[op.regions + 1];
    uint16_t **state = ARENA_NEWN(p->c->scratch, uint16_t *, op.noperands + 1);
    const uint16_t **next = ARENA_NEWN(p->c->scratch, const uint16_t *, op.noperands + 1);
    for (uint32_t i = 0; i < op.noperands; i++) {
        uint32_t n = (uint32_t)hlo_value_type(p->h, op.results + i)->elems;
        const uint16_t *init = region_slots(p, hlo_operand(p->h, &op, i));
        state[i] = region_regs(p, n);
        for (uint32_t e = 0; e < n; e++)
            state[i][e] = pinned_copy(p, init[e]);
    }
    const uint16_t *const *args = (const uint16_t *const *)state;
    const uint16_t *test;
    int outer = p->mask;
    region_inline(p, cond, args, &test);
    uint16_t mask = pinned_copy(p, masked(p, test[0]));
    uint32_t begin = p->steps.n;
    p->mask = mask;
    region_inline(p, body, args, next);
    write_state(p, &op, mask, state, next);
    region_inline(p, cond, args, &test);
    push_step(p, (KStep){.op = HLO_AND, .src = {mask, test[0]}, .dst = mask});
    p->mask = outer;
    push_step(p, (KStep){.op = HLO_WHILE, .src = {mask}, .dst = mask,
                         .attr = {(int16_t)(p->steps.n - begin)}});
    for (uint32_t i = 0; i < op.noperands; i++)
        region_bind(p, op.results + i, state[i]);
}

static void add_op(Region *p, OpId id) {
    Hlo *h = p->h;
    const HloOp *op = hlo_at(h, id);
    if (op->code == HLO_IF || op->code == HLO_CASE)
        add_case(p, id);
    else if (op->code == HLO_WHILE)
        add_while(p, id);
    else if (region_tensor_op(p, id))
        return;
    else if (kern_is_step(op->code))
        add_elementwise(p, op);
    else
        hlo_fail(h, id, OTRN_UNSUPPORTED, "cannot stand in the region of %s.%s",
                 hlo_dialect_names[hlo_row(hlo_at(h, p->op))->dialect],
                 hlo_row(hlo_at(h, p->op))->name);
}

void region_inline(Region *p, RegionId r, const uint16_t *const *args, const uint16_t **outs) {
    Hlo *h = p->h;
    const HloRegion *region = &h->regions.at[r];
    uint32_t bound = p->vals.n;
    if (++p->depth > DEPTH_MAX)
        hlo_fail(h, p->op, OTRN_CAPACITY, "its region nests deeper than %d", DEPTH_MAX);
    for (uint32_t i = 0; args && i < region->nargs; i++)
        region_bind(p, region->args + i, args[i]);
    for (uint32_t i = 0; i + 1 < region->ops.n; i++)
        add_op(p, region->ops.at[i]);
    const HloOp *ret = region_return(h, region);
    if (ret->code != HLO_RETURN)
        hlo_fail(h, p->op, OTRN_VERIFY, "its region does not end with a return");
    for (uint32_t i = 0; i < ret->noperands; i++) { // copies: the caller may change them
        ValueId v = hlo_operand(h, ret, i);
        uint32_t n = (uint32_t)hlo_value_type(h, v)->elems;
        uint16_t *regs = region_regs(p, n);
        memcpy(regs, region_slots(p, v), n * sizeof *regs);
        outs[i] = regs;
    }
    p->vals.n = bound;
    p->depth--;
}

// --- what it reads from outside ----------------------------------------------------------------

// Captured values must come right after the inputs: find them before any code is made. Elements of one
// value follow each other.
static void find_captures(Region *p, RegionId r, ValueList *defined, ValueList *captures) {
    Hlo *h = p->h;
    const HloRegion *region = &h->regions.at[r];
    for (uint32_t i = 0; i < region->nargs; i++)
        VEC_PUSH(p->c->scratch, defined, region->args + i);
    for (uint32_t i = 0; i < region->ops.n; i++) {
        HloOp op = *hlo_at(h, region->ops.at[i]);
        for (uint32_t k = 0; k < op.noperands; k++) {
            ValueId v = hlo_operand(h, &op, k);
            bool known = regs_find(p, v) != NULL;
            for (uint32_t d = defined->n; d-- > 0 && !known;)
                known = defined->at[d] == v;
            if (known)
                continue;
            regs_for(p, v);
            for (int64_t e = 0; e < hlo_value_type(h, v)->elems; e++)
                VEC_PUSH(p->c->scratch, captures, v);
        }
        for (uint32_t k = 0; k < op.nregions; k++)
            find_captures(p, h->op_regions.at[op.regions + k], defined, captures);
        for (uint32_t k = 0; k < op.nresults; k++)
            VEC_PUSH(p->c->scratch, defined, op.results + k);
    }
}

// --- fewer registers ---------------------------------------------------------------------------

// The last step that reads each register, as numbered so far. Inside a loop, what was made before it is
// read again by the next turn: such registers last until the loop's end. Results last for ever.
static uint32_t *last_reads(Region *p, const uint16_t *outs, uint32_t nouts) {
    uint32_t n = p->dtypes.n;
    uint32_t *last = ARENA_NEWN(p->c->scratch, uint32_t, n + 1);
    uint32_t *made = ARENA_NEWN(p->c->scratch, uint32_t, n + 1);
    memset(made, 0xff, n * sizeof *made);
    for (uint32_t i = 0; i < p->steps.n; i++) {
        const KStep *s = &p->steps.at[i];
        for (int k = 0; k < kern_step_operands(s->op); k++)
            last[s->src[k]] = i;
        if (made[s->dst] == UINT32_MAX)
            made[s->dst] = i;
    }
    for (uint32_t i = 0; i < p->steps.n; i++) {
        if (p->steps.at[i].op != HLO_WHILE)
            continue;
        uint32_t begin = i - (uint32_t)p->steps.at[i].attr[0];
        for (uint32_t r = 0; r < n; r++)
            if (made[r] < begin && last[r] >= begin && last[r] < i)
                last[r] = i;
    }
    for (uint32_t i = 0; i < nouts; i++)
        last[outs[i]] = UINT32_MAX;
    return last;
}

// Registers are arrays of lanes: a program that keeps few of them stays in the nearest cache. Inputs,
// captures and constants keep a register each, and so do a loop's carried values; a step's result takes one
// that is free, of its type, or a new one.
static uint16_t reuse_registers(Region *p, uint16_t fixed_inputs, uint16_t *outs, uint32_t nouts) {
    Arena *a = p->c->scratch;
    const uint32_t *last = last_reads(p, outs, nouts);
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
    for (uint32_t r = fixed_inputs; r < p->dtypes.n; r++)
        if (p->pinned.at[r])
            dtypes[n] = p->dtypes.at[r], name[r] = n++;
    uint16_t first_temp = n;
    for (uint32_t i = 0; i < p->steps.n; i++) {
        KStep *s = &p->steps.at[i];
        uint8_t d = p->dtypes.at[s->dst];
        if (!p->pinned.at[s->dst]) {
            uint16_t to = free_regs[d].n ? free_regs[d].at[--free_regs[d].n] : n++;
            dtypes[to] = d;
            name[s->dst] = to;
        }
        s->dst = name[s->dst];
        for (int k = 0; k < kern_step_operands(s->op); k++) {
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
    if (n > REGS_MAX)
        hlo_fail(p->h, p->op, OTRN_CAPACITY, "its region keeps more than %d values at once", REGS_MAX);
    memcpy(p->dtypes.at, dtypes, n);
    return n;
}

// --- entry -------------------------------------------------------------------------------------

static void bind_inputs(Region *p, RegionId r) {
    const HloRegion *region = &p->h->regions.at[r];
    for (uint32_t i = 0; i < region->nargs; i++) {
        if (hlo_value_type(p->h, region->args + i)->elems != 1)
            hlo_fail(p->h, p->op, OTRN_UNSUPPORTED, "its region takes tensors, not scalars");
        regs_for(p, region->args + i);
    }
}

void region_compile(Compile *c, OpId op, RegionId r, KProg *out, ValueList *captures) {
    Hlo *h = c->hlo;
    Region p = {.c = c, .h = h, .op = op, .mask = -1};
    uint32_t ninputs = h->regions.at[r].nargs;
    ValueList defined = {0};
    bind_inputs(&p, r);
    find_captures(&p, r, &defined, captures);
    uint16_t fixed = (uint16_t)p.dtypes.n;
    const HloRegion *region = &h->regions.at[r];
    uint32_t nouts = region_return(h, region)->noperands;
    const uint16_t **results = ARENA_NEWN(c->scratch, const uint16_t *, nouts + 1);
    region_inline(&p, r, NULL, results);
    uint16_t *outs = ARENA_NEWN(c->arena, uint16_t, nouts + 1);
    for (uint32_t i = 0; i < nouts; i++)
        outs[i] = results[i][0];
    uint16_t nregs = reuse_registers(&p, fixed, outs, nouts);
    VEC_RESERVE(c->scratch, &p.const_regs, 1);
    VEC_RESERVE(c->scratch, &p.steps, 1);
    *out = (KProg){
        .nregs = nregs,
        .ninputs = (uint16_t)ninputs,
        .nconsts = (uint16_t)p.const_regs.n,
        .nsteps = (uint16_t)p.steps.n,
        .nouts = (uint16_t)nouts,
        .dtypes = arena_dup(c->arena, p.dtypes.at, nregs),
        .const_regs = arena_dup(c->arena, p.const_regs.at, p.const_regs.n * sizeof(uint16_t)),
        .consts = p.const_regs.n ? arena_dup(c->arena, p.consts, p.const_regs.n * 16) : NULL,
        .steps = arena_dup(c->arena, p.steps.at, p.steps.n * sizeof(KStep)),
        .outs = outs,
        .ncaptures = (uint16_t)(fixed - ninputs),
    };
}
