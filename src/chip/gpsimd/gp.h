// SPDX-License-Identifier: Apache-2.0
// gp.h — inside the GpSimd kernels: lanes, scalar programs, strided copies, the kernel rows.
//
//   gp.c            gp_find and friends: one row per op
//   gp_level_*.c    loops compiled per host level (bodies in gp_body_*.h, vmath*_body.h)
//   gp_lane.c       picks the loop for an op and its types; narrow types go through f32 blocks
//   gp_prog.c       scalar programs, 512 lanes at a time
//   gp_copy.c       one strided copy engine under all data movement
//   gp_<family>.c   the kernels
//
// Rules every kernel keeps:
//   1. gp_find has checked types, shapes and attributes: a kernel never reads or writes outside its
//      tensors, whatever a hostile artifact says. Index operands are clamped or skipped as
//      specified.
//   2. The order of every sum is a function of the shapes alone, never of threads or host level.
//   3. Nothing is allocated: gp_scratch_bytes names the need before.
//   4. A NaN that is computed is the one NaN of its type (0x7fc00000): which operand's survives an addition differs
//      between hosts. What moves, chooses, converts or reads bits keeps them.
#ifndef OTRN_CHIP_GP_H
#define OTRN_CHIP_GP_H

#include <string.h>

#include "chip/core/chip.h"
#include "chip/host/vmath.h"

// --- lanes: arrays of one compute type ---------------------------------------------------------
// What an element is computed in. Floats narrower than f32 compute in f32; integers narrower than a
// byte in a byte, wrapped afterwards.
typedef enum LaneClass {
    LC_NONE,
    LC_F32,
    LC_F64,
    LC_I8,
    LC_I16,
    LC_I32,
    LC_I64,
    LC_U8,
    LC_U16,
    LC_U32,
    LC_U64,
    LC_BOOL,
    LC_C64,
    LC_C128,
    LC_BF16, // no compute type: in a level's tables, loops that read and write bf16 but compute in f32
    LC_COUNT
} LaneClass;
LaneClass lane_class(int dtype);
// Where the loops are that read this type themselves: its compute type, or LC_BF16.
static inline LaneClass lane_class_direct(int dtype) {
    return dtype == DT_BF16 ? LC_BF16 : lane_class(dtype);
}
extern const uint8_t lane_class_bytes[LC_COUNT];
static inline bool lane_class_is_real_float(LaneClass c) { return c == LC_F32 || c == LC_F64; }

typedef enum RedOp {
    RED_ADD,
    RED_MUL,
    RED_MAX,
    RED_MIN,
    RED_AND,
    RED_OR,
    RED_XOR,
    RED_COUNT
} RedOp;

// dst may be one of the sources. attr as in KStep.
typedef void LaneFn(void *dst, const void *const *src, size_t n, const int16_t *attr);
typedef void ConvFn(void *dst, const void *src, size_t n);
// *dst = x[0] op x[1] op …, n >= 1, in a fixed order.
typedef void RunFn(void *dst, const void *x, size_t n);
// acc[j] = acc[j] op (x[0][j] op x[1][j] …): rows of n elements, `pitch` elements apart.
typedef void RowsFn(void *acc, const void *x, size_t pitch, size_t rows, size_t n);
// y[0] = x[0], y[step] = y[0] op x[step], …: each rounded to the element's type.
typedef void ScanFn(void *y, const void *x, size_t n, ptrdiff_t step);
// Every NaN of n elements becomes the one NaN.
typedef void QuietFn(void *y, size_t n);
// acc[j] += x[0] w[0][j], then x[1] w[1][j], …: n columns, k rows of w `pitch` elements apart.
typedef void MacFn(void *acc, const void *x, const void *w, size_t pitch, size_t k, size_t n);

typedef struct GpLevel { // one table per host level
    LaneFn *lane[LC_COUNT][HLO_OPCODE_COUNT];
    LaneFn *select[5];                // by log2 of the element's bytes
    LaneFn *turn;                     // ui32: x << a[0] | x >> b[0]
    ConvFn *widen[DT_COUNT];          // narrow float to f32
    ConvFn *narrow[DT_COUNT];         // f32 to narrow float, rounded once
    ConvFn *conv[LC_COUNT][LC_COUNT]; // real and bool compute types
    ConvFn *to_odd[LC_COUNT];         // to f32 rounded to odd: rounding again is then right
    RunFn *run[RED_COUNT][LC_COUNT];
    RowsFn *rows[RED_COUNT][LC_COUNT]; // acc is of the compute type
    ScanFn *scan[RED_COUNT][LC_COUNT];
    MacFn *mac[LC_COUNT];
    QuietFn *quiet[LC_COUNT]; // NULL: the class has no NaN
    const VMath *vmath;
    const struct EngLevel *eng; // loops of the other engines (engine.h)
} GpLevel;
extern const GpLevel gp_level_portable, gp_level_avx2, gp_level_avx512;
const GpLevel *gp_level(HostLevel level);

// Loops that are not worth a level: rare functions, complex numbers.
extern LaneFn *const lane_special_f32[HLO_OPCODE_COUNT], *const lane_special_f64[HLO_OPCODE_COUNT];
LaneFn *lane_next_after(int dtype); // in the type itself, never widened; NULL: none
LaneFn *lane_mulhi(int dtype);      // the same
LaneFn *lane_reduce_precision(int dtype); // the same
extern LaneFn *const lane_c64[HLO_OPCODE_COUNT], *const lane_c128[HLO_OPCODE_COUNT];

#define LANE_BLOCK 512
typedef struct Lane { // an op resolved for its types
    LaneFn *fn;       // NULL: a conversion
    ConvFn *pre[3];   // operand to compute type; NULL: it is
    ConvFn *mid;      // conversions between compute types
    ConvFn *post;     // compute type to result; NULL: it is
    int16_t attr[2];
    QuietFn *quiet;   // of the compute type's results; NULL: not a computation with floats
    uint8_t nin, in_bytes[3], out_bytes;
} Lane;
// False when there is no such op for these types.
bool lane_find(Lane *lane, const GpLevel *level, uint16_t op, int out_dtype,
               const uint8_t *in_dtypes, int nin, const int16_t *attr);
void lane_run(const Lane *lane, void *dst, const void *const *src, size_t n);
// What a conversion of computed numbers adds: it stores sums, say.
static inline void lane_quiet(Lane *lane, const GpLevel *level, int dtype) { lane->quiet = level->quiet[lane_class(dtype)]; }
// Fill n elements of `bytes` with one value.
void gp_fill(void *dst, const void *value, size_t bytes, size_t n);

// --- scalar programs ---------------------------------------------------------------------------
// A program bound to a block of LANE_BLOCK lanes. `at` holds one pointer per register: inputs are
// set by the caller before each run, the others point into the scratch.
typedef struct Prog {
    const KProg *p;
    const struct ProgStep *steps; // resolved, shared by all threads
    void **at;
    char *regs;
} Prog;
size_t prog_shared_bytes(const KProg *p); // resolved steps, once per call
size_t prog_slot_bytes(const KProg *p);   // registers, once per slot
bool prog_check(const KProg *p);          // every step has a lane, every register index is right
void *prog_resolve(const KProg *p, const GpLevel *level,
                   void *shared); // returns the end of its part
// Splats constants and captures. captures[i] points at one element.
void prog_init(Prog *g, const KProg *p, const void *shared, void *slot,
               const void *const *captures);
void prog_run(const Prog *g, size_t n); // n <= LANE_BLOCK
// The step that gives register r its first value; -1: none, or it has one before the first step.
int prog_first_write(const KProg *p, int r);
// Is r read by a step behind `step` of a resolved program, or an output?
bool prog_reads_after(const KProg *p, const void *shared, int r, int step);
static inline const void *prog_out(const Prog *g, int i) { return g->at[g->p->outs[i]]; }
// The captured scalars of a region: behind the op's operands, one region after the other.
const void *const *gp_captures(const GpCall *c, uint32_t region);
// The body is one associative op over its two inputs.
bool prog_red_op(const KProg *p, RedOp *op);
// The body returns its second input (a plain set).
static inline bool prog_is_second(const KProg *p) { return p->nouts == 1 && p->outs[0] == 1; }

// --- strided copies ----------------------------------------------------------------------------
typedef struct CopyAxis {
    int64_t n, dst, src; // count, strides in elements
} CopyAxis;
typedef struct Copy { // dims collapsed, axis 0 innermost
    CopyAxis axis[OTRN_MAX_RANK];
    int rank;
    size_t bytes; // per element: 1, 2, 4, 8, 16
} Copy;
// Axes are given outermost first. Zero counts are fine.
void copy_init(Copy *c, size_t elem_bytes, int rank, const CopyAxis *axes);
void copy_run(const Copy *c, Pool *pool, void *dst, const void *src);
void copy_serial(const Copy *c, void *dst, const void *src);
void copy_bytes(Pool *pool, void *dst, const void *src, size_t bytes); // parallel memcpy
void fill_run(Pool *pool, void *dst, const void *value, size_t bytes, size_t n);

// --- shared by the kernels ---------------------------------------------------------------------
#define GP_GRAIN_BYTES (32u << 10)                   // least work worth handing to another thread
void gp_strides(const KTensor *t, int64_t *strides); // row-major, in elements
static inline size_t gp_bytes(const KTensor *t) { return (size_t)t->elems * dtype_bytes(t->dtype); }
static inline bool gp_same_dims(const KTensor *a, const KTensor *b) {
    return a->rank == b->rank && (!a->rank || !memcmp(a->dims, b->dims, a->rank * sizeof *a->dims));
}
static inline bool gp_same_type(const KTensor *a, const KTensor *b) {
    return a->dtype == b->dtype && gp_same_dims(a, b);
}
static inline bool gp_is_index(int dtype) { return dtype_is_int(dtype); }
// One integer element, clamped into int64 (a large unsigned stays large).
int64_t gp_index_at(int dtype, const void *p, size_t i);
// Attribute as ints; false when it is absent or has not `want` entries.
const int64_t *gp_ints(const Kern *k, HloAttrKey key, size_t want);
int64_t gp_int(const Kern *k, HloAttrKey key, int64_t dflt);
// Each of the ints is an axis < rank, none twice.
bool gp_axes_ok(const int64_t *axes, size_t n, int rank);
const int64_t *gp_axes(const Kern *k, HloAttrKey key, int rank, size_t *n); // NULL when not ok
otrn_status gp_quiet(const GpCall *c); // of all results, at the end of a kernel that computes them by other means than lanes
otrn_status gp_fail(const GpCall *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// Splits count items over at most `slots` tasks that own scratch by slot number.
static inline size_t gp_slots(const GpCall *c, size_t items) {
    size_t threads = (size_t)pool_threads(c->pool);
    return items < threads ? (items ? items : 1) : threads;
}
static inline size_t gp_align(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

typedef struct GpRow { // one op's kernel
    GpFn *run;
    bool (*check)(const Kern *k);                  // types, shapes, attributes: all of rule 1
    size_t (*scratch)(const Kern *k, int threads); // NULL: none
} GpRow;

// Kernels, by family.
#define GP_KERNELS(X)                                                                              \
    X(ew)                                                                                          \
    X(copy) X(broadcast) X(transpose) X(slice) X(pad) X(concat) X(reverse) X(iota)                 \
        X(dynamic_slice) X(dynamic_update_slice) X(bitcast) X(gather) X(scatter) X(reduce)         \
            X(reduce_window) X(select_and_scatter) X(sort) X(map) X(dot) X(conv) X(rng_bits) X(draw) X(rng)       \
                X(bn_train) X(bn_infer) X(bn_grad) X(cholesky) X(tri_solve) X(fft) X(top_k)        \
                    X(check) X(custom) X(host) X(dim_size) X(dynamic) X(device_id) X(all_reduce)   \
                        X(collective_reduce) X(reduce_scatter) X(all_gather) X(all_to_all)         \
                            X(collective_broadcast) X(collective_permute) X(send) X(recv)
#define X(name)                                                                                    \
    otrn_status gp_##name##_run(const GpCall *c);                                                  \
    bool gp_##name##_check(const Kern *k);                                                         \
    size_t gp_##name##_scratch(const Kern *k, int threads);
GP_KERNELS(X)
#undef X
bool gp_conv_types_ok(const Kern *k); // element types only

#endif
