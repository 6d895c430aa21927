// SPDX-License-Identifier: Apache-2.0
// lower_flow.c — loops and branches as steps: where what they carry lies, and how it gets there (rule 4 of lower.c).
#include "tile/count.h"

#include <assert.h>

#include "tile/lower.h"

// --- loops -------------------------------------------------------------------------------------------

// A new buffer for carried value i: the program's result where it is one and its memory is free, or will be piece by piece.
static BufId loop_buf(Lower *l, OpId id, uint32_t i, bool fresh) {
    BufId state = 0;
    ValueId v = hlo_at(l->h, id)->results + i;
    if (l->want_result[v]) {
        uint32_t j = l->want_result[v] - 1;
        BufId arg = l->alias[j] >= 0 ? lower_arg((uint32_t)l->alias[j]) : 0;
        if (!arg || !l->bufs.at[arg].uses || (fresh && count_reads_first(l, hlo_at(l->h, id), i, arg))) {
            state = lower_result(l, j);
            l->bufs.at[state].first = l->steps.n;
        }
    }
    return state ? state : lower_buf(l, BUF_TEMP, lower_bytes(l, v, id), id);
}

// Carried value i: where its state lives. Unchanged ones stay where they are.
static BufId loop_state(Lower *l, OpId id, uint32_t i, bool unchanged) {
    ValueId init = hlo_operand(l->h, hlo_at(l->h, id), i);
    BufId from = lower_operand(l, init);
    lower_release(l, init);
    if (unchanged || lower_dies_here(l, from))
        return from;
    BufId state = loop_buf(l, id, i, false);
    lower_copy(l, id, state, from);
    return state;
}

// … of one that the loop writes as a whole before anybody reads it: what it begins with is not put there.
static BufId loop_fresh(Lower *l, OpId id, uint32_t i) {
    ValueId init = hlo_operand(l->h, hlo_at(l->h, id), i);
    lower_release(l, init);
    return l->buf_of[init] && lower_dies_here(l, l->buf_of[init]) ? l->buf_of[init] : loop_buf(l, id, i, true);
}

// End of the body: next state into the state buffers. Sources that are themselves state of this loop are
// saved first, so that permutations come out right.
static void loop_yield(Lower *l, OpId id, const BufId *state, const bool *unchanged) {
    HloOp op = *hlo_at(l->h, id);
    const HloOp ret = *region_return(l->h, hlo_op_region(l->h, &op, 1));
    BufId *src = ARENA_NEWN(l->c->scratch, BufId, op.noperands + 1);
    for (uint32_t i = 0; i < op.noperands; i++) {
        ValueId v = hlo_operand(l->h, &ret, i);
        if (!state[i]) {
            lower_release(l, v);
            continue;
        }
        src[i] = lower_operand(l, v);
        lower_release(l, v);
        if (unchanged[i] || src[i] == state[i] || l->bufs.at[src[i]].state_loop != l->loop)
            continue;
        BufId saved = lower_buf(l, BUF_TEMP, l->bufs.at[src[i]].bytes, id);
        lower_copy(l, id, saved, src[i]);
        src[i] = saved;
    }
    for (uint32_t i = 0; i < op.noperands; i++)
        if (!unchanged[i] && state[i])
            lower_copy(l, id, state[i], src[i]);
}

static void forget_lazy(Lower *l, uint32_t keep) {
    for (uint32_t i = keep; i < l->lazy.n; i++)
        l->buf_of[l->lazy.at[i]] = 0;
    l->lazy.n = keep;
}

static bool is_counter(const Loop *loop, uint32_t i) { return loop->is_counted && loop->counter == i; }

// Nobody tests a counted loop: what its condition would have read.
static void leave_test(Lower *l, const HloRegion *cond) {
    for (uint32_t i = 0; i < cond->ops.n; i++) {
        const HloOp *op = hlo_at(l->h, cond->ops.at[i]);
        for (uint32_t k = 0; k < op->noperands; k++)
            lower_release(l, hlo_operand(l->h, op, k));
    }
}

static void lower_test(Lower *l, OpId id, uint32_t loop) {
    const HloOp op = *hlo_at(l->h, id);
    RegionId cond = l->h->op_regions.at[op.regions];
    lower_region(l, cond);
    ValueId test = hlo_operand(l->h, region_return(l->h, &l->h->regions.at[cond]), 0);
    BufId test_buf = lower_operand(l, test);
    lower_release(l, test);
    lower_step(l, STEP_LOOP_TEST, id, &test_buf, 1, NULL, 0, loop);
}

void lower_while(Lower *l, OpId id) {
    Hlo *h = l->h;
    HloOp op = *hlo_at(h, id);
    HloRegion cond = *hlo_op_region(h, &op, 0), body = *hlo_op_region(h, &op, 1);
    const HloOp ret = *region_return(l->h, &body);
    assert(ret.noperands == op.noperands);
    assert(cond.nargs == op.noperands);
    assert(body.nargs == op.noperands);
    BufId *state = ARENA_NEWN(l->c->scratch, BufId, op.noperands + 1);
    bool *unchanged = ARENA_NEWN(l->c->scratch, bool, op.noperands + 1);
    Loop made = {.parent = l->loop};
    uint32_t loop = l->loops.n, outer = l->loop;
    if (count_loop(l, &op, &made) && made.is_counted)
        l->form[body.args + made.counter] = (Form){.known = true, .loop = loop, .mul = 1};
    VEC_PUSH(l->c->scratch, &l->loops, made);
    for (uint32_t i = 0; i < op.noperands; i++) {
        unchanged[i] = hlo_operand(h, &ret, i) == body.args + i;
        if (is_counter(&made, i)) {
            lower_release(l, hlo_operand(h, &op, i));
            continue;
        }
        bool fresh = made.is_counted && count_overwrites(l, &op, loop, i);
        state[i] = fresh ? loop_fresh(l, id, i) : loop_state(l, id, i, unchanged[i]);
        lower_hold(l, state[i], 1); // no later carry may take the same buffer
    }
    for (uint32_t i = 0; i < op.noperands; i++)
        if (state[i])
            lower_hold(l, state[i], -1);
    l->loops.at[loop].begin = l->steps.n;
    uint32_t lazy = l->lazy.n;
    uint32_t *outer_state = ARENA_NEWN(l->c->scratch, uint32_t, op.noperands + 1);
    lower_step(l, STEP_LOOP_BEGIN, id, NULL, 0, NULL, 0, loop);
    l->loop = loop;
    for (uint32_t i = 0; i < op.noperands; i++) {
        if (!state[i])
            continue;
        outer_state[i] = l->bufs.at[state[i]].state_loop;
        if (!unchanged[i])
            l->bufs.at[state[i]].state_loop = loop;
        if (l->bufs.at[state[i]].uses == UINT32_MAX) {
            l->buf_of[cond.args + i] = l->buf_of[body.args + i] = state[i];
            continue;
        }
        lower_bind(l, cond.args + i, state[i]);
        lower_bind(l, body.args + i, state[i]);
        lower_touch(l, state[i]);
    }
    if (made.is_counted) {
        leave_test(l, &cond);
        count_updates(l, &op, state);
    } else {
        lower_test(l, id, loop);
    }
    for (uint32_t i = 0; i < op.noperands; i++) // the body's producers may write the state directly
        if (!unchanged[i] && !l->want[hlo_operand(h, &ret, i)])
            l->want[hlo_operand(h, &ret, i)] = state[i];
    lower_region(l, h->op_regions.at[op.regions + 1]);
    loop_yield(l, id, state, unchanged);
    forget_lazy(l, lazy);
    lower_step(l, STEP_LOOP_END, id, NULL, 0, NULL, 0, loop);
    l->loop = outer;
    l->loops.at[loop].end = l->steps.n - 1;
    for (uint32_t i = 0; i < l->loops.at[loop].held.n; i++) {
        TBuf *b = &l->bufs.at[l->loops.at[loop].held.at[i]];
        if (b->last < l->steps.n - 1)
            b->last = l->steps.n - 1;
    }
    for (uint32_t i = 0; i < op.noperands; i++) {
        if (!state[i]) { // the counter
            count_constant(l, op.results + i, made.first + (int64_t)made.trips * made.step);
            continue;
        }
        l->bufs.at[state[i]].state_loop = outer_state[i];
        if (l->bufs.at[state[i]].uses == UINT32_MAX)
            l->buf_of[op.results + i] = state[i];
        else
            lower_bind(l, op.results + i, state[i]);
    }
}

// --- branches ----------------------------------------------------------------------------------------

void lower_branches(Lower *l, OpId id) {
    Hlo *h = l->h;
    HloOp op = *hlo_at(h, id);
    ValueId index = hlo_operand(h, &op, 0);
    assert(hlo_value_type(h, index)->elems == 1);
    assert(op.nregions > 0);
    BufId index_buf = lower_operand(l, index);
    lower_release(l, index);
    BufId *out = ARENA_NEWN(l->c->scratch, BufId, op.nresults + 1u);
    for (uint32_t i = 0; i < op.nresults; i++)
        out[i] = lower_buf(l, BUF_TEMP, lower_bytes(l, op.results + i, id), id);
    const HloNamed *usual = hlo_named_find(op.extra, op.nextra, HLO_USUAL);
    VEC_PUSH(l->c->scratch, &l->switches,
             (Switch){.nbranches = op.nregions, .is_if = op.code == HLO_IF, .usual = usual && usual->value.kind == HA_INT ? usual->value.i : -1});
    uint32_t sw = l->switches.n - 1;
    lower_step(l, STEP_SWITCH, id, &index_buf, 1, out, op.nresults, sw);
    for (uint32_t r = 0; r < op.nregions; r++) {
        RegionId region = h->op_regions.at[op.regions + r];
        uint32_t lazy = l->lazy.n;
        lower_step(l, STEP_CASE, id, NULL, 0, NULL, 0, sw);
        lower_region(l, region);
        const HloOp ret = *region_return(l->h, &h->regions.at[region]);
        for (uint32_t i = 0; i < op.nresults; i++) {
            ValueId v = hlo_operand(h, &ret, i);
            BufId src = lower_operand(l, v);
            lower_release(l, v);
            lower_copy(l, id, out[i], src);
        }
        forget_lazy(l, lazy);
    }
    lower_step(l, STEP_SWITCH_END, id, NULL, 0, out, op.nresults, sw);
    for (uint32_t i = 0; i < op.nresults; i++)
        lower_bind(l, op.results + i, out[i]);
}
