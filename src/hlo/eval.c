// SPDX-License-Identifier: Apache-2.0
// eval.c — the plain evaluator: table of handlers, running regions, memory of a run.
//
// Values live in one table by value id. Their memory comes from the caller's arena, or from inner
// arenas that loops and element regions open and empty again:
//   1. a value's memory is written once, by the handler that makes it;
//   2. handlers of eval_ctrl.c and custom calls may pass operands on; constants point into the
//   graph;
//      all other handlers return memory of their own;
//   3. so the memory of a value made by such another handler, and never used by a passing one, is
//      free after its last use in its region: eval_new hands it out again. A model's activations
//      then need about what is live, not the sum of all intermediates.
//
// Inner arenas are heap memory that a longjmp would leak. Each run therefore catches failures
// itself, frees its inner arenas (they are listed in the Eval), and raises the same error again to
// the outer CTX_TRY: the one exception to rule 1 of ctx.h.
#include <assert.h>

#include "coll/comm.h"
#include "base/pulse.h"
#include "hlo/eval_in.h"

#define REUSE_MIN_BYTES 4096 // smaller pieces are not worth a search

#define eval_none NULL
static EvalFn *const handlers[HLO_OPCODE_COUNT] = {
#define EW(e, dialect, name, operands, types, result, steps, evaluator, ...) [HLO_##e] = eval_##evaluator,
#include "hlo/ops.def"
    [HLO_AFTER_ALL] = eval_token,
    [HLO_ALL_GATHER] = eval_all_gather,
    [HLO_ALL_REDUCE] = eval_all_reduce,
    [HLO_ALL_TO_ALL] = eval_all_to_all,
    [HLO_ASYNC_DONE] = eval_async_done,
    [HLO_ASYNC_START] = eval_async_start,
    [HLO_BATCH_NORM_GRAD] = eval_bn_grad,
    [HLO_BATCH_NORM_INFERENCE] = eval_bn_inference,
    [HLO_BATCH_NORM_TRAINING] = eval_bn_training,
    [HLO_BITCAST_CONVERT] = eval_bitcast,
    [HLO_BROADCAST] = eval_broadcast,
    [HLO_BROADCAST_IN_DIM] = eval_broadcast_in_dim,
    [HLO_CALL] = eval_call,
    [HLO_CASE] = eval_case,
    [HLO_CHECK_EXPECT_ALMOST_EQ] = eval_check_almost_eq,
    [HLO_CHECK_EXPECT_ALMOST_EQ_CONST] = eval_check_almost_eq,
    [HLO_CHECK_EXPECT_CLOSE] = eval_check_close,
    [HLO_CHECK_EXPECT_EQ] = eval_check_eq,
    [HLO_CHECK_EXPECT_EQ_CONST] = eval_check_eq,
    [HLO_CHLO_TOP_K] = eval_top_k,
    [HLO_CHOLESKY] = eval_cholesky,
    [HLO_COLLECTIVE_BROADCAST] = eval_collective_broadcast,
    [HLO_COLLECTIVE_PERMUTE] = eval_collective_permute,
    [HLO_COLLECTIVE_REDUCE] = eval_all_reduce,
    [HLO_COMPOSITE] = eval_composite,
    [HLO_CONCATENATE] = eval_concatenate,
    [HLO_CONSTANT] = eval_constant,
    [HLO_CONVOLUTION] = eval_convolution,
    [HLO_CREATE_TOKEN] = eval_token,
    [HLO_CROSS_REPLICA_SUM] = eval_all_reduce,
    [HLO_CUSTOM_CALL] = eval_custom_call,
    [HLO_DOT] = eval_dot,
    [HLO_DOT_GENERAL] = eval_dot_general,
    // with static result types the shape operands carry nothing new
    [HLO_DYNAMIC_BROADCAST_IN_DIM] = eval_broadcast_in_dim,
    [HLO_DYNAMIC_CONV] = eval_convolution,
    [HLO_DYNAMIC_GATHER] = eval_gather,
    [HLO_DYNAMIC_IOTA] = eval_iota,
    [HLO_DYNAMIC_PAD] = eval_dynamic_pad,
    [HLO_DYNAMIC_RESHAPE] = eval_reshape,
    [HLO_DYNAMIC_SLICE] = eval_dynamic_slice,
    [HLO_DYNAMIC_UPDATE_SLICE] = eval_dynamic_update_slice,
    [HLO_EINSUM] = eval_einsum,
    [HLO_FFT] = eval_fft,
    [HLO_GATHER] = eval_gather,
    [HLO_GET_DIMENSION_SIZE] = eval_get_dimension_size,
    [HLO_GET_TUPLE_ELEMENT] = eval_get_tuple_element,
    [HLO_IF] = eval_if,
    [HLO_INFEED] = eval_recv,
    [HLO_INTERPRETER_PRINT] = eval_nothing,
    [HLO_INTERPRETER_PROBE] = eval_identity,
    [HLO_INTERPRETER_RUN_PARALLEL] = eval_run_parallel,
    [HLO_IOTA] = eval_iota,
    [HLO_MAP] = eval_map,
    [HLO_FUSED] = eval_map,
    [HLO_ROWS] = eval_rows,
    [HLO_OPTIMIZATION_BARRIER] = eval_identity,
    [HLO_OUTFEED] = eval_token, // the host takes it
    [HLO_PAD] = eval_pad,
    [HLO_PARTITION_ID] = eval_device_id,
    [HLO_REAL_DYNAMIC_SLICE] = eval_real_dynamic_slice,
    [HLO_RECV] = eval_recv,
    [HLO_REDUCE] = eval_reduce,
    [HLO_REDUCE_SCATTER] = eval_reduce_scatter,
    [HLO_REDUCE_WINDOW] = eval_reduce_window,
    [HLO_REPLICA_ID] = eval_device_id,
    [HLO_RESHAPE] = eval_reshape,
    [HLO_REVERSE] = eval_reverse,
    [HLO_EXCHANGE] = eval_exchange,
    [HLO_DRAW] = eval_draw,
    [HLO_RNG] = eval_rng,
    [HLO_RNG_BIT_GENERATOR] = eval_rng_bit_generator,
    [HLO_SCATTER] = eval_scatter,
    [HLO_SDY_NAMED_COMPUTATION] = eval_named,
    [HLO_SDY_PROPAGATION_BARRIER] = eval_identity,
    [HLO_SDY_RESHARD] = eval_identity,
    [HLO_SDY_SHARDING_CONSTRAINT] = eval_identity,
    [HLO_SELECT_AND_SCATTER] = eval_select_and_scatter,
    [HLO_SEND] = eval_send,
    [HLO_SLICE] = eval_slice,
    [HLO_SORT] = eval_sort,
    [HLO_TORCH_INDEX_SELECT] = eval_torch_index_select,
    [HLO_TRANSPOSE] = eval_transpose,
    [HLO_TRIANGULAR_SOLVE] = eval_triangular_solve,
    [HLO_TUPLE] = eval_tuple,
    [HLO_UNARY_EINSUM] = eval_einsum,
    [HLO_UNREALIZED_CAST] = eval_identity,
    [HLO_WHILE] = eval_while,
};

bool eval_has(HloOpcode code) {
    return code == HLO_RETURN || (code > HLO_NONE && code < HLO_OPCODE_COUNT && handlers[code]);
}

// Ops that may give an operand's (or the graph's) memory on as a result.
static bool passes_on(HloOpcode code) {
    EvalFn *f = handlers[code];
    return code == HLO_RETURN || f == eval_identity || f == eval_tuple ||
           f == eval_get_tuple_element || f == eval_while || f == eval_case || f == eval_if ||
           f == eval_call || f == eval_composite || f == eval_custom_call || f == eval_constant ||
           f == eval_token || f == eval_run_parallel || f == eval_send || f == eval_recv ||
           f == eval_named || f == eval_async_start || f == eval_async_done || f == eval_nothing || !f;
}

// --- memory
// ------------------------------------------------------------------------------------------

void *eval_new(Eval *e, TypeId type) {
    const HloType *t = hlo_type(e->h, type);
    size_t bytes = hlo_type_bytes(t);
    if (bytes >= REUSE_MIN_BYTES) {
        for (uint32_t i = 0; i < e->free.n; i++) {
            EvalFree f = e->free.at[i];
            if (f.arena == e->cur && f.bytes >= bytes && f.bytes / 2 <= bytes) {
                e->free.at[i] = e->free.at[--e->free.n];
                return f.at;
            }
        }
    }
    return arena_alloc(e->cur, bytes ? bytes : 1); // never NULL: NULL means "no value yet"
}

Arena *eval_open(Eval *e) {
    if (e->open == e->inner.n) {
        Arena *a = ARENA_NEW(e->home, Arena);
        arena_init(a, e->h->ctx);
        VEC_PUSH(e->home, &e->inner, a);
    }
    return e->inner.at[e->open++];
}

void eval_reset(Eval *e, Arena *inner) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < e->free.n; i++)
        if (e->free.at[i].arena != inner)
            e->free.at[kept++] = e->free.at[i];
    e->free.n = kept;
    arena_reset(inner);
}

void eval_close(Eval *e) {
    assert(e->open > 0);
    eval_reset(e, e->inner.at[--e->open]);
}

Tensor eval_copy(Eval *e, Arena *to, Tensor t) {
    const HloType *ty = eval_type(e, t);
    if (ty->kind == HT_TUPLE) {
        Tensor *m = arena_alloc(to, (ty->nmembers + 1) * sizeof *m);
        for (uint32_t i = 0; i < ty->nmembers; i++)
            m[i] = eval_copy(e, to, ((const Tensor *)t.data)[i]);
        return (Tensor){t.type, m};
    }
    if (eval_is_future(ty))
        return eval_copy_future(e, to, t);
    size_t bytes = hlo_type_bytes(ty);
    return (Tensor){t.type, bytes ? arena_dup(to, t.data, bytes) : arena_alloc(to, 1)};
}

// --- last uses
// ---------------------------------------------------------------------------------------

typedef struct Uses {
    Eval *e;
    RegionId *home; // by value: the region it is made in
    OpId *now;      // by region: the op being looked at
} Uses;

static void uses_region(Uses *u, RegionId id, uint32_t depth) {
    Hlo *h = u->e->h;
    const HloRegion *r = &h->regions.at[id];
    if (depth > EVAL_MAX_DEPTH)
        return; // running it will fail
    for (uint32_t i = 0; i < r->ops.n; i++) {
        OpId op_id = u->now[id] = r->ops.at[i];
        const HloOp *op = hlo_at(h, op_id);
        bool keeps = passes_on(op->code);
        for (uint32_t k = 0; k < op->noperands; k++) { // 0 stays 0
            ValueId v = hlo_operand(h, op, k);
            if (u->e->last[v])
                u->e->last[v] = keeps ? 0 : u->now[u->home[v]];
        }
        for (uint32_t k = 0; k < op->nresults; k++) {
            u->e->last[op->results + k] = keeps ? 0 : op_id;
            u->home[op->results + k] = id;
        }
        for (uint32_t k = 0; k < op->nregions; k++)
            uses_region(u, h->op_regions.at[op->regions + k], depth + 1);
    }
}

static void find_last_uses(Eval *e) {
    Arena *a = eval_open(e);
    Uses u = {.e = e,
              .home = ARENA_NEWN(a, RegionId, e->h->values.n),
              .now = ARENA_NEWN(a, OpId, e->h->regions.n)};
    for (uint32_t f = 0; f < e->h->funcs.n; f++)
        if (e->h->funcs.at[f].body)
            uses_region(&u, e->h->funcs.at[f].body, 0);
    eval_close(e);
}

static void free_after(Eval *e, OpId op, ValueId v) {
    size_t bytes = hlo_type_bytes(hlo_value_type(e->h, v));
    if (!e->last || e->last[v] != op || !e->env[v].data || bytes < REUSE_MIN_BYTES)
        return;
    VEC_PUSH(e->home, &e->free, ((EvalFree){e->cur, bytes, e->env[v].data}));
    e->env[v].data = NULL;
}

// --- ops and regions
// ---------------------------------------------------------------------------------

// Dense tensors of known shape, tuples of them, and tokens can be evaluated.
static const char *why_not(const Hlo *h, TypeId id) {
    const HloType *t = hlo_type(h, id);
    if (t->kind == HT_TOKEN || t->kind == HT_TUPLE || eval_is_future(t))
        return NULL;
    if (t->kind != HT_TENSOR || dtype_row(t->dtype)->cls == DC_NONE)
        return "a type that is not a tensor";
    if (t->text && strstr(t->text, "!quant"))
        return "a quantized type";
    return t->dynamic || t->elems < 0 ? "a dynamic shape" : NULL;
}

static void need_types(Eval *e, OpId id) {
    const HloOp *op = eval_op_at(e, id);
    const HloOpRow *row = hlo_row(op);
    eval_need(e, id,
              (row->operands < 0 || op->noperands == (uint32_t)row->operands) &&
                  (row->results < 0 || op->nresults == row->results),
              "wrong number of operands or results");
    bool tensors = !passes_on(op->code); // only passing ops see tuples and tokens
    for (uint32_t i = 0; i < op->nresults; i++) {
        TypeId t = e->h->values.at[op->results + i].type;
        const char *why = why_not(e->h, t);
        if (why)
            eval_fail(e, id, OTRN_UNSUPPORTED, "the evaluator does not take %s", why);
        eval_need(e, id, !tensors || hlo_type(e->h, t)->kind == HT_TENSOR,
                  "the result must be a tensor");
    }
    for (uint32_t i = 0; tensors && i < op->noperands; i++)
        eval_need(e, id, hlo_value_type(e->h, hlo_operand(e->h, op, i))->kind == HT_TENSOR,
                  "operands must be tensors");
}

static void run_op(Eval *e, OpId id) {
    const HloOp *op = eval_op_at(e, id);
    EvalFn *fn = handlers[op->code];
    if (!fn)
        eval_fail(e, id, OTRN_UNSUPPORTED, "the evaluator does not have this op");
    need_types(e, id);
    Tensor few[8], *in = few, *out = e->env + op->results;
    if (op->noperands > 8)
        in = ARENA_NEWN(e->cur, Tensor, op->noperands);
    for (uint32_t i = 0; i < op->noperands; i++) {
        in[i] = e->env[hlo_operand(e->h, op, i)];
        eval_need(e, id, in[i].data != NULL, "an operand has no value here");
    }
    for (uint32_t i = 0; i < op->nresults; i++)
        out[i] = (Tensor){.type = e->h->values.at[op->results + i].type};
    fn(e, id, in, out);
    for (uint32_t i = 0; i < op->noperands; i++)
        free_after(e, id, hlo_operand(e->h, op, i));
    for (uint32_t i = 0; i < op->nresults; i++)
        free_after(e, id, op->results + i);
}

// What a region made is not seen outside: a malformed program that tries finds no value.
static void leave_region(Eval *e, const HloRegion *r) {
    for (uint32_t i = 0; i < r->nargs; i++)
        e->env[r->args + i].data = NULL;
    for (uint32_t i = 0; i < r->ops.n; i++) {
        const HloOp *op = eval_op_at(e, r->ops.at[i]);
        for (uint32_t k = 0; k < op->nresults; k++)
            e->env[op->results + k].data = NULL;
    }
    e->depth--;
}

void eval_region(Eval *e, OpId id, const HloRegion *r, const Tensor *args, uint32_t nargs,
                 Tensor *results, uint32_t n) {
    if (++e->depth > EVAL_MAX_DEPTH)
        eval_fail(e, id, OTRN_CAPACITY, "regions and calls nest deeper than %d", EVAL_MAX_DEPTH);
    eval_need(e, id, r->nargs == nargs, "wrong number of arguments");
    for (uint32_t i = 0; i < nargs; i++) {
        eval_need(e, id, args[i].type == e->h->values.at[r->args + i].type,
                  "an argument has a wrong type");
        e->env[r->args + i] = args[i];
    }
    for (uint32_t i = 0; i < r->ops.n; i++) {
        const HloOp *op = eval_op_at(e, r->ops.at[i]);
        if (__builtin_expect(pulse_stops(pulse_here), 0))
            eval_fail(e, r->ops.at[i], OTRN_TIMEOUT, "the evaluator's time was over here");
        if (e->depth == 1 && pulse_here) {
            pulse_tell(pulse_here, i);
            atomic_store_explicit(&pulse_here->of, r->ops.n, memory_order_relaxed);
        }
        if (op->code != HLO_RETURN) {
            run_op(e, r->ops.at[i]);
            continue;
        }
        eval_need(e, r->ops.at[i], op->noperands == n, "returns a wrong number of values");
        for (uint32_t k = 0; k < n; k++) {
            results[k] = e->env[hlo_operand(e->h, op, k)];
            eval_need(e, r->ops.at[i], results[k].data != NULL, "an operand has no value here");
        }
        leave_region(e, r);
        return;
    }
    eval_fail(e, id, OTRN_VERIFY, "a region does not end in return");
}

static void run_func(Eval *e, OpId id, const HloFunc *f, const Tensor *args, uint32_t nargs,
                     Tensor *results, uint32_t n) {
    uint32_t index = (uint32_t)(f - e->h->funcs.at);
    if (!f->body)
        eval_fail(e, id, OTRN_UNSUPPORTED, "function @%s has no body", f->name);
    if (e->busy[index])
        eval_fail(e, id, OTRN_UNSUPPORTED, "function @%s calls itself", f->name);
    e->busy[index] = true;
    eval_region(e, id, &e->h->regions.at[f->body], args, nargs, results, n);
    e->busy[index] = false;
}

void eval_call_func(Eval *e, OpId id, const char *name, const Tensor *args, uint32_t nargs,
                    Tensor *results, uint32_t n) {
    const HloFunc *f = hlo_func_find(e->h, name);
    if (!f)
        eval_fail(e, id, OTRN_VERIFY, "there is no function @%s", name);
    run_func(e, id, f, args, nargs, results, n);
}

void eval_need_dims(Eval *e, OpId op, const HloType *t, uint32_t rank, const int64_t *dims) {
    bool ok = t->rank == rank;
    for (uint32_t i = 0; ok && i < rank; i++)
        ok = t->dims[i] == dims[i];
    eval_need(e, op, ok, "the result has a wrong shape");
}

const int64_t *eval_ints(Eval *e, OpId id, HloAttrKey key, uint32_t n, int64_t dflt) {
    uint32_t have;
    const int64_t *v = hlo_ints(eval_op_at(e, id), key, &have);
    if (!have && n && dflt >= 0) {
        int64_t *fill = ARENA_NEWN(e->cur, int64_t, n);
        for (uint32_t i = 0; i < n; i++)
            fill[i] = dflt;
        return fill;
    }
    if (have != n)
        eval_fail(e, id, OTRN_VERIFY, "%s must have %u entries", hlo_attr_rows[key].name, n);
    return v;
}

const int64_t *eval_axes(Eval *e, OpId id, HloAttrKey key, uint32_t rank, uint32_t *n) {
    const int64_t *v = hlo_ints(eval_op_at(e, id), key, n);
    uint64_t seen = 0;
    for (uint32_t i = 0; i < *n; i++) {
        if (v[i] < 0 || v[i] >= rank || seen >> v[i] & 1)
            eval_fail(e, id, OTRN_VERIFY, "%s must name different dimensions",
                      hlo_attr_rows[key].name);
        seen |= 1ull << v[i];
    }
    return v;
}

// --- entry points
// ------------------------------------------------------------------------------------

typedef struct Job {
    const HloFunc *func; // or
    OpId op;
    const Tensor *in;
    Tensor *out;
} Job;

static void run_job(Eval *e, const Job *j) {
    if (!j->func) {
        need_types(e, j->op);
        handlers[eval_op_at(e, j->op)->code](e, j->op, j->in, j->out);
        return;
    }
    const HloFunc *f = j->func;
    e->env = ARENA_NEWN(e->home, Tensor, e->h->values.n);
    e->last = ARENA_NEWN(e->home, OpId, e->h->values.n);
    e->busy = ARENA_NEWN(e->home, bool, e->h->funcs.n);
    find_last_uses(e);
    Tensor *args = ARENA_NEWN(e->home, Tensor, f->nargs);
    Place at = hlo_place(e->h, f->loc);
    if (!f->body)
        ctx_fail(e->h->ctx, OTRN_VERIFY, at, "function @%s has no body", f->name);
    for (uint32_t i = 0; i < f->nargs; i++) {
        args[i] = j->in[i];
        const char *why = why_not(e->h, args[i].type);
        if (why)
            ctx_fail(e->h->ctx, OTRN_UNSUPPORTED, at, "argument %u of @%s has %s", i, f->name, why);
        if (args[i].type != e->h->values.at[e->h->regions.at[f->body].args + i].type)
            ctx_fail(e->h->ctx, OTRN_ARGUMENT, at, "argument %u of @%s has a wrong type", i,
                     f->name);
        if (!args[i].data) // an empty tensor may come without memory
            args[i].data = eval_new(e, args[i].type);
    }
    run_func(e, 0, f, args, f->nargs, j->out, f->nresults);
}

// Runs the job and frees the inner arenas whatever happens; a failure goes on to the caller.
static void run_guarded(Eval *e, const Job *j) {
    Ctx *ctx = e->h->ctx;
    jmp_buf here, *outer = ctx->on_fail;
    volatile bool failed = true;
    if (CTX_TRY(ctx, here)) {
        run_job(e, j);
        failed = false;
    }
    ctx->on_fail = outer;
    if (e->comm && failed)
        comm_fail(e->comm, NULL); // others may be reading what the arenas hold
    else if (e->comm)
        comm_end(e->comm);
    for (uint32_t i = 0; i < e->inner.n; i++)
        arena_fini(e->inner.at[i]);
    if (failed) {
        assert(outer);
        longjmp(*outer, 1);
    }
}

void eval_func_on(Hlo *h, Arena *a, const HloFunc *f, const Tensor *args, Tensor *results,
                  CommRank *comm) {
    Eval *e = ARENA_NEW(a, Eval);
    *e = (Eval){.h = h, .home = a, .cur = a, .comm = comm, .program = f};
    run_guarded(e, &(Job){.func = f, .in = args, .out = results});
}

void eval_func(Hlo *h, Arena *a, const HloFunc *f, const Tensor *args, Tensor *results) {
    eval_func_on(h, a, f, args, results, NULL);
}

// What it gives depends on the device, or on others.
static bool is_local(HloOpcode code) {
    return hlo_op_rows[code].cls != HC_COLL && code != HLO_PARTITION_ID && code != HLO_REPLICA_ID;
}

bool eval_op(Hlo *h, Arena *a, OpId id, const Tensor *operands, Tensor *results) {
    const HloOp *op = hlo_at(h, id);
    EvalFn *fn = handlers[op->code];
    // Passing ops need the table of values or have effects.
    bool has_more = op->nregions && hlo_row(op)->cls != HC_RED;
    if (has_more || (passes_on(op->code) && fn != eval_constant && fn != eval_identity) ||
        !op->nresults || !is_local(op->code))
        return false;
    for (uint32_t i = 0; i < op->nresults; i++)
        if (why_not(h, h->values.at[op->results + i].type))
            return false;
    for (uint32_t i = 0; i < op->noperands; i++)
        if (why_not(h, operands[i].type))
            return false;
    for (uint32_t i = 0; i < op->nresults; i++)
        results[i] = (Tensor){.type = h->values.at[op->results + i].type};
    Eval *e = ARENA_NEW(a, Eval);
    *e = (Eval){.h = h, .home = a, .cur = a};
    if (op->nregions) {
        e->env = ARENA_NEWN(a, Tensor, h->values.n);
        e->busy = ARENA_NEWN(a, bool, h->funcs.n);
    }
    run_guarded(e, &(Job){.op = id, .in = operands, .out = results});
    return true;
}
