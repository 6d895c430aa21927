// SPDX-License-Identifier: Apache-2.0
// chip.h — the functional chip: executes an artifact, knows nothing of time.
#ifndef OTRN_CHIP_CHIP_H
#define OTRN_CHIP_CHIP_H

#include "artifact/artifact.h"
#include "base/host.h"
#include "base/pool.h"
#include "base/pulse.h"

typedef struct Chip Chip; // SBUF, PSUM, array state, registers of one core

Chip *chip_make(Pool *pool, HostLevel level); // NULL when no memory
void chip_small_pages(Chip *c); // of a new one, among many: only what its programs touch takes memory and has to be cleared
void chip_free(Chip *c);
void chip_set_level(Chip *c, HostLevel level); // of the next runs
// The next runs end with OTRN_TIMEOUT or OTRN_INTERRUPTED when the pulse says so; one core tells it how far it is.
void chip_set_pulse(Chip *c, Pulse *pulse, bool tells);
// The next runs are those of one device among several; NULL: of one alone. Host threads of the pool (NULL:
// none but the caller's) help it; a pool may serve several chips.
struct CommRank;
void chip_attach(Chip *c, Pool *pool, struct CommRank *comm);

// Whom the programs' calls to the host go to; NULL: nobody. Lives as long as the chip.
typedef struct ChipHost {
    int (*call)(void *arg, const char *name, size_t name_bytes, const otrn_host_call *call); // not 0: it failed
    void *arg;
} ChipHost;
void chip_set_host(Chip *c, const ChipHost *host);
// The next runs draw from this place of the stream of rng on (0: its begin), and where it is behind the last one.
void chip_draw_from(Chip *c, uint64_t first);
uint64_t chip_draws(const Chip *c);
// Whether the next runs follow the host plan (plan.h); they do unless told otherwise. No result depends on it.
// ALL: instructions flow (flow.h) in small programs too, the youngest first: for tests.
typedef enum ChipPlan { CHIP_PLAN_OFF, CHIP_PLAN_ON, CHIP_PLAN_ALL } ChipPlan;
ChipPlan chip_plan_of(const char *option); // of --plan
void chip_set_plan(Chip *c, ChipPlan plan);
// Where the next runs' host time goes is added up there; NULL: nowhere.
struct ChipProfile;
void chip_set_profile(Chip *c, struct ChipProfile *profile);
// The next runs round results to narrower floats by chance (base/round.h) instead of to nearest even.
void chip_round(Chip *c, bool stochastic, uint64_t seed);

// Raises UNSUPPORTED, with the user's place, when the chip lacks a kernel the program needs.
void chip_check(Ctx *ctx, const Artifact *art);
// A loaded program: kernels resolved, room for their operands and scratch made. Lives in the arena it is
// given and is run by one thread at a time; chip_share makes others of it.
typedef struct ChipProg ChipProg;
// by_chance: it may be run with chip_round. `threads` will run it; the pool, which may be NULL, helps to load it.
// Raises UNSUPPORTED.
ChipProg *chip_load(Ctx *ctx, Arena *a, const Artifact *art, int threads, bool by_chance, Pool *pool);
// The same program for another core, which runs beside: what is known of it is shared, what a run writes is its own. Lives as long as
// both arenas.
ChipProg *chip_share(Arena *a, const ChipProg *p);
const Artifact *chip_prog_artifact(const ChipProg *p);
// What the last run that succeeded counted of loops whose length only the run knows, per instruction: times it was taken
// (jump), went back (branch, endloop) or was entered (loop). NULL: there is no such loop, or no run yet.
const uint64_t *chip_counts(const ChipProg *p);
bool chip_prog_narrow(const ChipProg *p); // it has products of bf16 or fp8: host_choose
// segs[i] is the base of HBM segment i. Returns OTRN_OK or OTRN_CHECK (a failing check.* op; *pc tells
// which instruction). Allocates nothing.
otrn_status chip_run(Chip *c, ChipProg *p, uint8_t *const *segs, uint32_t *pc, char *why,
                     size_t why_bytes);

// The two cores of a logical one, which see the same HBM, on one host thread: by turns, each up to its next core_barrier, where
// both must come. *failed: the core that *pc is of. Only for programs that meet in nothing else.
bool chip_takes_turns(const ChipProg *first, const ChipProg *second);
otrn_status chip_run_pair(Chip *const cores[2], ChipProg *const progs[2], uint8_t *const *segs, uint32_t *failed,
                          uint32_t *pc, char *why, size_t why_bytes);

// The same, watched. ORDER: OTRN_VERIFY when an instruction reads memory that nothing wrote, or touches memory that
// another engine may be at (chip/core/check.h). NAN, INF: OTRN_CHECK when one makes such a number out of operands without
// one (chip/core/nan.h). Keeps what it knows in the arena; raises NOMEM on its context. The two cores of a pair have a CheckPair
// between them, and arenas that outlive both runs; others NULL.
enum { CHIP_WATCH_ORDER = 1, CHIP_WATCH_NAN = 2, CHIP_WATCH_INF = 4 };
struct CheckPair;
typedef struct ChipWatch {
    unsigned what; // CHIP_WATCH_…
    Arena *arena;
    struct CheckPair *pair;
    Buf *notes; // lines of text about what is no error (chip/core/check_range.h) are added
} ChipWatch;
otrn_status chip_run_watched(Chip *c, ChipProg *p, uint8_t *const *segs, uint32_t *pc, char *why,
                             size_t why_bytes, const ChipWatch *watch);
void chip_unwatch(Chip *c); // after a watched run that raised

// --- gpsimd.c: kernels -------------------------------------------------------------------------
typedef struct GpCall { // one kernel with its tensors bound
    const Kern *k;
    void *const *in;  // data pointers, aligned to the element size at least
    void *const *out;
    Pool *pool;
    HostLevel level;
    void *scratch; // gp_scratch_bytes of it, 64-byte aligned
    char *why;     // where a failing check writes its message
    size_t why_bytes;
    uint64_t *draws;       // rng ops of this run so far
    struct CommRank *comm; // this device among others (coll/comm.h); NULL: there is only one
    const void *program;   // what is running, the same on all devices that run it,
    uint32_t number;       // and the kernel's number in it
    const ChipHost *host;  // may be NULL
} GpCall;
typedef otrn_status GpFn(const GpCall *c);
bool gp_has(HloOpcode op);    // there is a kernel for some types
GpFn *gp_find(const Kern *k); // NULL: no kernel for this op with these types
size_t gp_scratch_bytes(const Kern *k, int threads);

// --- matmul.c, host kernels --------------------------------------------------------------------
// Partition memories lie in host memory with a padded pitch, see chip.c. Pitches are bytes between
// rows, strides elements between neighbours in a row (of the operand's type, any sign).
// *Blocks* are how the widest tiles like an operand: 16 columns side by side, a line for each row of k, so that all
// that a tile reads is adjacent. Blocks lie a padded step apart. Narrow types have their lines in pairs (matmul_bf16.c).
#define MM_BLOCK_COLS 16
#define MM_BLOCK_FLOATS (ISA_PE_ROWS * MM_BLOCK_COLS + 32) // from block to block; of bf16 half of them
#define MM_PANEL_BYTES (ISA_PE_COLS / MM_BLOCK_COLS * MM_BLOCK_FLOATS * 4) // what `panels` points to, 64-byte aligned
typedef struct MmStationary { // what ldweights leaves in the array
    float *panels;   // MM_PANEL_BYTES, owned by the caller; laid out as the level's kernels like it
    uint32_t k, m;   // k <= ISA_PE_ROWS, m <= ISA_PE_COLS
    int stype;
    HostLevel level; // the level that packed the panels multiplies them
} MmStationary;
typedef struct MmLoad { // one ldweights: stationary[k][m] = src[k][m]
    const void *src; // NULL: no load
    size_t pitch;
    int32_t stride;
    int stype;
    uint32_t k, m;
    bool blocks; // src is the blocks of the first column; pitch and stride mean nothing
} MmLoad;
// Operands of this type may lie in blocks.
bool mm_takes_blocks(HostLevel level, int stype);
// Packs as the level's kernels like it. Sets everything in *st but `panels`.
void mm_load(HostLevel level, MmStationary *st, const MmLoad *load);
// The same, but what lies in blocks is used there, and has to stay as long: changes `panels`.
void mm_load_there(HostLevel level, MmStationary *st, const MmLoad *load);

typedef struct MmCall { // one matmul: dst[m][j] (+)= sum over k of st[k][m] * src[k][j]
    const MmStationary *st;
    float *dst;
    size_t dst_pitch;
    int32_t dst_stride;
    const void *src;
    size_t src_pitch;
    int32_t src_stride;
    int stype; // of src; fp32 order when it or the stationary type is f32
    bool accumulate;
    bool blocks; // src is the blocks of the first column; src_pitch and src_stride mean nothing
    bool goes_on; // the next product of the chain adds to all of dst: until then NaNs may look as they come
    uint32_t row;    // columns of src come in rows of so many, src_row bytes apart; 0: in one. Not in blocks, not to `out`
    int64_t src_row;
    float *out; // where the sums go instead of dst, rows out_pitch bytes apart, side by side; NULL: to dst. What dst
    size_t out_pitch; // holds afterwards is not defined then
    const void *next_src;    // the next matmul's src, laid out like this one's, fetched ahead; may be NULL
    const MmLoad *next_load; // the load before it, likewise
} MmCall;
// Columns [j0, j1) only; every split gives the same bits (design decision 8, two orders by type).
// A NaN is stored as 0x7fc00000: which operand's payload survives differs between hosts.
void mm_multiply(const MmCall *c, uint32_t j0, uint32_t j1);
// All n columns, shared out over the pool (which may be NULL).
void mm_run(Pool *pool, const MmCall *c, uint32_t n);

// Whether products in pairs of bf16 (HOST_BF16, which the host must have) are quicker here than widened ones; measured once
// per process (matmul_choose.c).
bool mm_pairs_pay(void);

// --- matmul_run.c ------------------------------------------------------------------------------
// Loads and products that follow each other with nothing between. Sources are never written by them.
#define MM_STEPS_MAX 64
typedef struct MmStep {
    MmLoad load; // before the product; src NULL: the array stays as it is
    MmCall call; // st, next_src and next_load are filled in by mm_run_steps
    uint32_t n;  // columns
    uint32_t dst_begin, dst_end; // the bytes of a PSUM partition that the product may touch
} MmStep;
// Where column piece `piece` of `pieces` begins: whole lines of PSUM.
uint32_t mm_piece_at(uint32_t n, uint32_t piece, uint32_t pieces);
// The same memory contents as one step after the other on one thread, the array's included.
void mm_run_steps(Pool *pool, HostLevel level, MmStationary *array, const MmStep *steps,
                  uint32_t count);

#endif
