// SPDX-License-Identifier: Apache-2.0
// eval_in.h — what the files of the evaluator share.
//
//   eval.c         entry points, the table of handlers, running a region, memory of a run
//   eval_num.c     elements in and out of their wide form
//   eval_ew*.c     elementwise ops: frame and floats, integers, complex
//   eval_cast.c    convert, bitcast_convert, reduce_precision, iota and relatives
//   eval_cmp.c     compare, select, clamp
//   eval_move.c    shape and data movement; eval_index.c gather, scatter, dynamic slices
//   eval_red.c     regions over elements: reduce, windows, map; eval_sort.c sort and top_k
//   eval_dot.c     dot products; eval_conv.c convolution
//   eval_lin.c     cholesky, triangular_solve; eval_fft.c; eval_norm.c batch_norm; eval_rng.c
//   eval_ctrl.c    while, case, if, calls, tuples
//   eval_check.c   check ops and custom calls
//   eval_coll.c    collectives; eval_par.c several devices, messages, futures
//
// The graph may be unverified: a handler checks the shapes it relies on (eval_need) before it
// touches data, so a malformed program raises VERIFY and never reads out of bounds.
#ifndef OTRN_HLO_EVAL_IN_H
#define OTRN_HLO_EVAL_IN_H

#include "hlo/eval.h"

// Functions and regions inside one another; each level costs a few kilobytes of host stack.
#define EVAL_MAX_DEPTH 200
#define EVAL_CHUNK 256 // elements widened at a time

typedef struct EvalFree { // a dead value's memory, ready for another value of the same arena
    Arena *arena;
    size_t bytes;
    void *at;
} EvalFree;

typedef struct Eval { // one run; lives in the arena of the caller
    Hlo *h;
    Arena *home;        // the caller's arena
    Arena *cur;         // where results go now: home, or the inner arena of a loop or a region
    Tensor *env;        // by value id. Functions do not recurse, so one slot per value is enough
    OpId *last;         // by value id: the op after which its memory is free; 0 = keep
    bool *busy;         // by function: being evaluated
    VEC(Arena *) inner; // inner arenas; the first `open` are in use, the others wait for reuse
    uint32_t open;
    VEC(EvalFree) free;
    uint32_t depth;
    uint64_t draws;        // rng ops run so far
    struct CommRank *comm; // this device among others; NULL: there is only one
    const HloFunc *program;
} Eval;

// in: the operands; out: types are set, the handler sets data.
typedef void EvalFn(Eval *e, OpId op, const Tensor *in, Tensor *out);

// --- eval.c -------------------------------------------------------------------------------------
void *eval_new(Eval *e, TypeId t); // uninitialised memory for a value of this type
Arena *eval_open(Eval *e);         // an empty inner arena; close in reverse order
void eval_close(Eval *e);
void eval_reset(Eval *e, Arena *inner); // forget what is in it
// Runs a region with arguments; results (as many as RETURN has operands, at most `n`) may point
// into e->cur, into the arguments or into values of the regions around.
void eval_region(Eval *e, OpId op, const HloRegion *r, const Tensor *args, uint32_t nargs,
                 Tensor *results, uint32_t n);
void eval_call_func(Eval *e, OpId op, const char *name, const Tensor *args, uint32_t nargs,
                    Tensor *results, uint32_t n);
Tensor eval_copy(Eval *e, Arena *to, Tensor t); // deep for tuples and futures
bool eval_is_future(const HloType *t);          // eval_par.c
Tensor eval_copy_future(Eval *e, Arena *to, Tensor t);

#define eval_fail(e, op, code, ...) hlo_fail((e)->h, (op), (code), __VA_ARGS__)
static inline void eval_need(Eval *e, OpId op, bool ok, const char *what) {
    if (!ok)
        hlo_fail(e->h, op, OTRN_VERIFY, "%s", what);
}
static inline const HloOp *eval_op_at(const Eval *e, OpId op) {
    return hlo_at(e->h, op);
}
static inline const HloType *eval_type(const Eval *e, Tensor t) {
    return hlo_type(e->h, t.type);
}
void eval_need_dims(Eval *e, OpId op, const HloType *t, uint32_t rank, const int64_t *dims);
// An INTS attribute of exactly n entries; when absent and dflt >= 0, n entries of dflt.
const int64_t *eval_ints(Eval *e, OpId op, HloAttrKey key, uint32_t n, int64_t dflt);
// An INTS attribute of axis numbers: each in [0, rank), none twice.
const int64_t *eval_axes(Eval *e, OpId op, HloAttrKey key, uint32_t rank, uint32_t *n);

// --- eval_num.c: wide form
// ------------------------------------------------------------------------ A wide element is a
// double (floats), an int64_t (integers and bool; ui64 keeps its bits) or two doubles (complex).
// Loading is exact; storing rounds once or wraps. A wide buffer of n elements takes at most 16 n
// bytes. Buffers are declared as doubles whatever they hold: integers go through types that may
// alias.
typedef int64_t __attribute__((may_alias)) WideInt;
typedef uint64_t __attribute__((may_alias)) WideUint;
typedef enum WideKind { WIDE_F, WIDE_I, WIDE_C } WideKind;
static inline WideKind eval_wide_kind(int dtype) {
    int cls = dtype_row(dtype)->cls;
    return cls == DC_FLOAT ? WIDE_F : cls == DC_COMPLEX ? WIDE_C : WIDE_I;
}
static inline size_t eval_wide_bytes(int dtype) {
    return dtype_is_complex(dtype) ? 16 : 8;
}
// stride: bytes from one source element to the next; 0 repeats one element
void eval_load(int dtype, const void *src, int64_t stride, size_t n, void *wide);
void eval_store(int dtype, void *dst, size_t n, const void *wide);
// What an op computed, as the chip's engines have it: in f32 or wider, and a NaN is the one NaN of its type, whichever
// operand's the host's own instructions would keep. Changes the wide form.
void eval_store_computed(int dtype, void *dst, size_t n, void *wide);
void eval_round(int dtype, size_t n, void *wide); // what a store and a load would leave

// Wide elements of one type to the wide form of another, by the rules of convert.
void eval_cast(int from, int to, size_t n, const void *wide, void *out);
void eval_cast_one(int from, int to, const void *src, void *dst); // one element in host form

typedef struct Box { // an odometer over a row-major index space
    int rank;
    const int64_t *dims;
    int64_t at[OTRN_MAX_RANK];
    bool more;
} Box;
void box_init(Box *b, int rank, const int64_t *dims); // more = false when a size is 0
void box_next(Box *b);
void eval_strides(const HloType *t, int64_t *bytes); // row-major strides in bytes
// Copies a box of elements: byte strides on both sides; 0 repeats, negative walks back.
void eval_copy_box(size_t elem, int rank, const int64_t *dims, void *dst, const int64_t *dst_stride,
                   const void *src, const int64_t *src_stride);

// --- elementwise
// ----------------------------------------------------------------------------------- r[i] =
// op(a[i], b[i]) on wide elements; b is unused by unary ops. r may be a or b.
typedef void WideFn(int dtype, size_t n, void *r, const void *a, const void *b);
WideFn *eval_ew_int(HloOpcode code);
WideFn *eval_ew_complex(HloOpcode code);
WideFn *eval_ew(HloOpcode code, int dtype); // by the type's class

// --- eval_red.c: a region applied to scalars
// ---------------------------------------------------------
#define EVAL_MAX_BODY 64 // arguments of such a region
typedef struct Body {
    OpId op;
    const HloRegion *region;
    uint32_t nargs, nresults;
    WideFn *fn; // set when the region is one commutative op of its two arguments
    int dtype;  // of argument 0
} Body;
// Checks that the region takes nargs scalars and returns nresults scalars.
Body eval_body(Eval *e, OpId op, uint32_t region, uint32_t nargs, uint32_t nresults);
// args[i], results[i]: one element each, in host form; results may be among args.
void eval_body_call(Eval *e, const Body *b, const void *const *args, void *const *results);
static inline const HloType *eval_body_arg(const Eval *e, const Body *b, uint32_t i) {
    return hlo_value_type(e->h, b->region->args + i);
}


EvalFn eval_ew1, eval_ew2, eval_abs, eval_is_finite, eval_real, eval_imag, eval_complex;
EvalFn eval_convert, eval_bitcast, eval_reduce_precision, eval_iota, eval_next_after;
EvalFn eval_compare, eval_select, eval_clamp;
EvalFn eval_constant, eval_reshape, eval_broadcast, eval_broadcast_in_dim, eval_transpose;
EvalFn eval_slice, eval_pad, eval_concatenate, eval_reverse, eval_exchange, eval_get_dimension_size;
EvalFn eval_dynamic_slice, eval_dynamic_update_slice, eval_gather, eval_scatter;
EvalFn eval_torch_index_select, eval_dynamic_pad, eval_real_dynamic_slice;
EvalFn eval_reduce, eval_reduce_window, eval_select_and_scatter, eval_map, eval_rows, eval_sort, eval_top_k;
EvalFn eval_dot, eval_dot_general, eval_einsum, eval_convolution;
EvalFn eval_cholesky, eval_triangular_solve, eval_fft, eval_rng_bit_generator, eval_rng, eval_draw;
EvalFn eval_bn_training, eval_bn_inference, eval_bn_grad;
EvalFn eval_while, eval_case, eval_if, eval_call, eval_composite, eval_named;
EvalFn eval_identity, eval_tuple, eval_get_tuple_element, eval_token;
EvalFn eval_all_reduce, eval_reduce_scatter, eval_all_gather, eval_all_to_all, eval_device_id;
EvalFn eval_collective_broadcast, eval_collective_permute;
EvalFn eval_run_parallel, eval_send, eval_recv, eval_nothing, eval_async_start, eval_async_done;
EvalFn eval_check_eq, eval_check_almost_eq, eval_check_close, eval_custom_call;

#endif
