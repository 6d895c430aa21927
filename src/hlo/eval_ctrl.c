// SPDX-License-Identifier: Apache-2.0
// eval_ctrl.c — control flow, calls, tuples, and ops that only pass values on.
//
// These are the only handlers whose results may share memory with their operands (eval.c keeps such
// memory out of reuse).
#include "hlo/eval_in.h"

// --- while
// -------------------------------------------------------------------------------------------
//
// A loop of many iterations must not grow memory without bound. Two inner arenas take turns: the
// carried values of iteration i lie in `old`, everything iteration i + 1 makes goes to `fresh`;
// then `old` is emptied and the names swap. A carried value that the body passes through unchanged
// would be lost with `old`, so it is copied; one that has come from outside the loop all along is
// not.

typedef struct Loop {
    uint32_t n;
    Tensor *carry, *next;
    bool *outside, *next_outside; // lives outside the loop's arenas
    bool has_tuple;               // then every value is copied: tuples hide their members
} Loop;

static void loop_init(Eval *e, OpId id, Loop *l, const Tensor *in) {
    l->n = eval_op_at(e, id)->noperands;
    l->carry = ARENA_NEWN(e->cur, Tensor, l->n);
    l->next = ARENA_NEWN(e->cur, Tensor, l->n);
    l->outside = ARENA_NEWN(e->cur, bool, l->n);
    l->next_outside = ARENA_NEWN(e->cur, bool, l->n);
    for (uint32_t i = 0; i < l->n; i++) {
        l->carry[i] = in[i];
        l->outside[i] = true;
        l->has_tuple = l->has_tuple || eval_type(e, in[i])->kind == HT_TUPLE;
    }
}

// After an iteration: makes next[i] independent of the old arena.
static void loop_keep(Eval *e, Loop *l, uint32_t i, Arena *fresh) {
    l->next_outside[i] = false;
    bool copy = l->has_tuple;
    for (uint32_t j = 0; j < l->n && !copy; j++)
        if (l->carry[j].data == l->next[i].data) {
            if (l->outside[j])
                l->next_outside[i] = true;
            else
                copy = true;
            break;
        }
    if (copy)
        l->next[i] = eval_copy(e, fresh, l->next[i]);
}

void eval_while(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloOp *op = eval_op_at(e, id);
    eval_need(e, id, op->nregions == 2 && op->nresults == op->noperands, "takes cond and body");
    const HloRegion *cond = hlo_op_region(e->h, op, 0), *body = hlo_op_region(e->h, op, 1);
    Loop l = {0};
    loop_init(e, id, &l, in);
    Arena *outer = e->cur, *old = eval_open(e), *fresh = eval_open(e);
    for (;;) {
        Tensor go;
        e->cur = fresh;
        eval_region(e, id, cond, l.carry, l.n, &go, 1);
        const HloType *t = eval_type(e, go);
        eval_need(e, id, t->kind == HT_TENSOR && t->rank == 0 && t->dtype == DT_I1,
                  "cond returns i1");
        if (!*(const uint8_t *)go.data)
            break;
        eval_region(e, id, body, l.carry, l.n, l.next, l.n);
        for (uint32_t i = 0; i < l.n; i++) {
            eval_need(e, id, l.next[i].type == l.carry[i].type,
                      "the body must keep the carried types");
            loop_keep(e, &l, i, fresh);
        }
        eval_reset(e, old);
        Arena *t1 = old;
        old = fresh, fresh = t1;
        Tensor *t2 = l.carry;
        l.carry = l.next, l.next = t2;
        bool *t3 = l.outside;
        l.outside = l.next_outside, l.next_outside = t3;
    }
    e->cur = outer;
    for (uint32_t i = 0; i < l.n; i++) {
        eval_need(e, id, l.carry[i].type == out[i].type, "results have the carried types");
        out[i] = l.outside[i] ? l.carry[i] : eval_copy(e, outer, l.carry[i]);
    }
    eval_close(e);
    eval_close(e);
}

// --- case, if, calls
// ---------------------------------------------------------------------------------

static void branch(Eval *e, OpId id, uint32_t which, Tensor *out) {
    const HloOp *op = eval_op_at(e, id);
    Tensor *got = ARENA_NEWN(e->cur, Tensor, op->nresults);
    eval_region(e, id, hlo_op_region(e->h, op, which), NULL, 0, got, op->nresults);
    for (uint32_t i = 0; i < op->nresults; i++) {
        eval_need(e, id, got[i].type == out[i].type, "a branch returns other types than the op");
        out[i] = got[i];
    }
}

// An index outside [0, n) picks the last branch.
void eval_case(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloOp *op = eval_op_at(e, id);
    const HloType *t = eval_type(e, in[0]);
    eval_need(e, id, op->nregions >= 1 && t->rank == 0 && t->dtype == DT_I32,
              "the index is an i32 scalar");
    int64_t i = dtype_to_i64(DT_I32, in[0].data);
    branch(e, id, i < 0 || i >= op->nregions ? op->nregions - 1 : (uint32_t)i, out);
}

void eval_if(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloType *t = eval_type(e, in[0]);
    eval_need(e, id, eval_op_at(e, id)->nregions == 2 && t->rank == 0 && t->dtype == DT_I1,
              "takes an i1 scalar and two branches");
    branch(e, id, *(const uint8_t *)in[0].data ? 0 : 1, out);
}

static void call(Eval *e, OpId id, const char *name, const Tensor *in, Tensor *out) {
    const HloOp *op = eval_op_at(e, id);
    Tensor *got = ARENA_NEWN(e->cur, Tensor, op->nresults);
    eval_call_func(e, id, name, in, op->noperands, got, op->nresults);
    for (uint32_t i = 0; i < op->nresults; i++) {
        eval_need(e, id, got[i].type == out[i].type,
                  "the function returns other types than the call");
        out[i] = got[i];
    }
}

void eval_call(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    call(e, id, hlo_attr_str(eval_op_at(e, id), AK_CALLEE), in, out);
}

void eval_composite(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    call(e, id, hlo_attr_str(eval_op_at(e, id), AK_DECOMPOSITION), in, out);
}

void eval_named(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloOp *op = eval_op_at(e, id);
    eval_need(e, id, op->nregions == 1, "has one region");
    eval_region(e, id, hlo_op_region(e->h, op, 0), in, op->noperands, out, op->nresults);
}

// --- passing on
// --------------------------------------------------------------------------------------

void eval_identity(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloOp *op = eval_op_at(e, id);
    eval_need(e, id, op->noperands == op->nresults, "as many results as operands");
    for (uint32_t i = 0; i < op->nresults; i++) {
        eval_need(e, id, in[i].type == out[i].type, "operand and result must have one type");
        out[i] = in[i];
    }
}

void eval_tuple(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloOp *op = eval_op_at(e, id);
    const HloType *t = eval_type(e, out[0]);
    eval_need(e, id, t->kind == HT_TUPLE && t->nmembers == op->noperands,
              "the result is a tuple of the operands");
    for (uint32_t i = 0; i < op->noperands; i++)
        eval_need(e, id, t->members[i] == in[i].type, "the result is a tuple of the operands");
    out[0].data = arena_alloc(e->cur, (op->noperands + 1) * sizeof *in);
    for (uint32_t i = 0; i < op->noperands; i++)
        ((Tensor *)out[0].data)[i] = in[i];
}

void eval_get_tuple_element(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloType *t = eval_type(e, in[0]);
    int64_t i = hlo_int(eval_op_at(e, id), AK_INDEX, -1);
    eval_need(e, id,
              t->kind == HT_TUPLE && i >= 0 && i < t->nmembers && t->members[i] == out[0].type,
              "index must name a member of the result's type");
    out[0] = ((const Tensor *)in[0].data)[i];
}

void eval_token(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    (void)in;
    eval_need(e, id, eval_type(e, out[0])->kind == HT_TOKEN, "the result is a token");
    out[0].data = eval_new(e, out[0].type);
}
