// SPDX-License-Identifier: Apache-2.0
// clock.h — modelled time: prices instructions from a chip file, never sees data.
//
// Events run over engine queues and DMA queues in the order the semaphores allow. Loops of known
// trip count are repeated (a steady state is recognised and multiplied); unknown ones are as long as a run
// counted them (ClockOptions.trips), else count once and are reported. Branches are not followed: all code between is priced once, so the arms of a
// conditional add up.
#ifndef OTRN_CLOCK_CLOCK_H
#define OTRN_CLOCK_CLOCK_H

#include "artifact/artifact.h"
#include "isa/check.h"

// --- chip files (chips/*.chip) -------------------------------------------------------------------
// Text: `key = value unit  # origin: …`, one per line, and `name = …`. CHIP_KEYS is the one list of
// keys; a file has each of them exactly once. What the keys mean to the model is told in price.c
// and clock.c. KEY(member, "name", "unit", min, max)
#define CHIP_KEYS(KEY)                                                                             \
    KEY(generation, "generation", "count", 2, 4)                                                   \
    KEY(cores_per_chip, "cores_per_chip", "count", 1, 64)                                          \
    KEY(cores_per_logical, "cores_per_logical_core", "count", 1, 2)                                \
    KEY(instructions_max, "instructions_max", "count", 1, 4e9)                                     \
    KEY(sbuf_partition_bytes, "sbuf_partition_bytes", "B", 4096, 262144)                           \
    KEY(sbuf_usable_bytes, "sbuf_usable_bytes", "B", 4096, 262144)                                 \
    KEY(psum_partition_bytes, "psum_partition_bytes", "B", 2048, 16384)                            \
    KEY(hbm_bytes_per_core, "hbm_bytes_per_core", "B", 1e6, 1e13)                                  \
    KEY(hbm_bw_core, "hbm_bandwidth_per_core", "GB/s", 1, 1e5)                                     \
    KEY(hbm_shared, "hbm_shared_ratio", "ratio", 0.1, 1)                                           \
    KEY(pe_ghz, "pe_clock", "GHz", 0.1, 10)                                                        \
    KEY(vector_ghz, "vector_clock", "GHz", 0.1, 10)                                                \
    KEY(scalar_ghz, "scalar_clock", "GHz", 0.1, 10)                                                \
    KEY(gpsimd_ghz, "gpsimd_clock", "GHz", 0.1, 10)                                                \
    KEY(pe_min_cycles, "pe_min_interval", "cycles", 1, 1e4)                                        \
    KEY(pe_latency_ns, "pe_latency", "ns", 0, 1e5)                                                 \
    KEY(pe_fp32_passes, "pe_fp32_passes", "count", 1, 16)                                          \
    KEY(pe_fp8_passes, "pe_fp8_passes", "count", 0.1, 16)                                          \
    KEY(pe_ramp_ns, "pe_ramp", "ns", 0, 1e6)                                                       \
    KEY(pe_rearm_ns, "pe_rearm", "ns", 0, 1e6)                                                     \
    KEY(pe_cold_factor, "pe_cold_factor", "ratio", 1, 100)                                         \
    KEY(pe_weight_cols_per_cycle, "pe_weight_columns_per_cycle", "count", 0.1, 128)                \
    KEY(engine_min_cycles, "engine_min_interval", "cycles", 1, 1e4)                                \
    KEY(vector_latency_ns, "vector_latency", "ns", 0, 1e5)                                         \
    KEY(vector_fast_sbuf, "vector_copy_rate_16bit_sbuf", "count", 1, 16)                           \
    KEY(vector_fast_psum, "vector_copy_rate_16bit_psum", "count", 1, 16)                           \
    KEY(vector_tt, "vector_tensor_tensor_rate", "count", 0.1, 16)                                  \
    KEY(vector_tt_16, "vector_tensor_tensor_rate_16bit", "count", 0.1, 16)                         \
    KEY(vector_scan, "vector_scan_rate", "count", 0.1, 16)                                         \
    KEY(vector_reduce_16, "vector_reduce_rate_16bit", "count", 0.1, 16)                            \
    KEY(vector_recip_cycles, "vector_reciprocal", "cycles", 1, 1e3)                                \
    KEY(vector_bnaggr_cycles, "vector_bn_aggr", "cycles", 0.1, 1e3)                                \
    KEY(vector_exp, "vector_exponential_rate", "count", 0.1, 16)                                   \
    KEY(vector_quant, "vector_quantize_rate", "count", 0.1, 16)                                    \
    KEY(vector_fill_16, "vector_fill_rate_16bit", "count", 1, 16)                                  \
    KEY(accumulator_cycles, "accumulator_read", "cycles", 0, 1e4)                                  \
    KEY(gpsimd_topk_cycles, "gpsimd_topk", "cycles", 0.1, 1e3)                                     \
    KEY(scalar_latency_ns, "scalar_latency", "ns", 0, 1e5)                                         \
    KEY(scalar_fast, "scalar_copy_rate_16bit", "count", 1, 16)                                     \
    KEY(vector_chain_ns, "vector_chain", "ns", 0, 1e5)                                             \
    KEY(scalar_chain_ns, "scalar_chain", "ns", 0, 1e5)                                             \
    KEY(act_table_ns, "activation_table_load", "ns", 0, 1e5)                                       \
    KEY(vector_gpsimd_port, "vector_gpsimd_share_sbuf", "count", 0, 1)                             \
    KEY(vector_scalar_port, "vector_scalar_share_psum", "count", 0, 1)                             \
    KEY(gpsimd_start_cycles, "gpsimd_start", "cycles", 1, 1e5)                                     \
    KEY(gpsimd_lanes_32, "gpsimd_lanes_32bit", "count", 1, 1e4)                                    \
    KEY(gpsimd_hbm_bw, "gpsimd_hbm_bandwidth", "GB/s", 0.1, 1e5)                                   \
    KEY(gpsimd_hbm_ns, "gpsimd_hbm_latency", "ns", 0, 1e6)                                         \
    KEY(dma_engines, "dma_engines_per_core", "count", 1, 64)                                       \
    KEY(dma_engine_bw, "dma_engine_bandwidth", "GB/s", 0.1, 1e4)                                   \
    KEY(dma_engine_partitions, "dma_partitions_per_engine", "count", 1, 128)                       \
    KEY(dma_start_ns, "dma_start", "ns", 0, 1e6)                                                   \
    KEY(dma_issue_ns, "dma_issue_interval", "ns", 0, 1e6)                                          \
    KEY(dma_done_ns, "dma_completion", "ns", 0, 1e6)                                               \
    KEY(dma_gap_ns, "dma_gap", "ns", 0, 1e5)                                                       \
    KEY(dma_queue_depth, "dma_queue_depth", "count", 1, 65536)                                     \
    KEY(dma_descriptor_bytes, "dma_efficient_bytes", "B", 1, 1e6)                                  \
    KEY(dma_transpose, "dma_transpose_rate", "ratio", 0, 1)                                        \
    KEY(link_bw, "link_bandwidth_per_core", "GB/s", 0.1, 1e5)                                      \
    KEY(link_ramp_bw, "link_ramp_bandwidth_per_core", "GB/s", 0.1, 1e5)                            \
    KEY(link_ramp_bytes, "link_ramp_bytes", "B", 0, 1e12)                                          \
    KEY(link_small_bw, "link_small_bandwidth_per_core", "GB/s", 0.1, 1e5)                          \
    KEY(link_reduce, "link_reduce_factor", "ratio", 1, 100)                                        \
    KEY(collective_small_ns, "collective_small_latency", "ns", 0, 1e9)                             \
    KEY(collective_ns, "collective_latency", "ns", 0, 1e9)                                         \
    KEY(sem_ns, "semaphore_latency", "ns", 0, 1e5)                                                 \
    KEY(control_ns, "control_interval", "ns", 0, 1e5)                                              \
    KEY(branch_ns, "branch_interval", "ns", 0, 1e5)                                                \
    KEY(reg_load_ns, "register_load", "ns", 0, 1e6)                                                \
    KEY(barrier_ns, "barrier_latency", "ns", 0, 1e6)

typedef struct ChipFile {
    char name[64];
    char instance[64]; // the machine whose price counts when none is named (instance.h); "": none
#define KEY(m, n, u, lo, hi) double m;
    CHIP_KEYS(KEY)
#undef KEY
    const char *path; // or "(built in)"
    // Of the instance it is priced in (instance.h); 0: devices that run a program are all on one.
    double host_cores, network_bw, network_hop_ns; // cores of a machine; GB/s of each to other machines; ns
} ChipFile;

// "trn1", "trn2", "trn3" (from `dir`, else built in) or a path. Raises CHIP with file, line and
// key.
void chipfile_load(Ctx *ctx, Arena *a, const char *target, const char *dir, ChipFile *out);
// The chip that an artifact or an assembly text names: `given` (may be NULL) when that has this name, else one of `dir` or
// built in. It is a name and never a path: only the user says which files are opened.
void chipfile_named(Ctx *ctx, Arena *a, const char *name, const ChipFile *given, const char *dir, ChipFile *out);
void chipfile_parse(Ctx *ctx, const char *name, const char *text, size_t size, ChipFile *out);
void chipfile_print(const ChipFile *c, Buf *out); // key, value, unit
void chipfile_put(const ChipFile *c, Buf *out);   // name and values as bytes, for a hash
IsaChip chipfile_isa(const ChipFile *c);          // what instructions may do on it
const char *const *chipfile_names(void);          // built-in ones, NULL-terminated

// --- pricing -------------------------------------------------------------------------------------
#define CLOCK_TRACKS (ENG_COUNT + 3) // five engines, DMA in, DMA out, collectives
typedef struct ClockEvent {
    uint32_t inst;      // instruction number
    uint8_t track;
    uint8_t core;       // of a pair
    double begin_ns, end_ns;
} ClockEvent;

// What held an instruction back last; CAUSE(id, "name"). stall.h tells what they mean to a reader.
#define CLOCK_CAUSES(CAUSE)                                                                        \
    CAUSE(NONE, "start")         /* nothing: it begins with the program */                         \
    CAUSE(WAIT, "wait")          /* a semaphore: another instruction was not over */               \
    CAUSE(ORDER, "order")        /* the instruction before it on its sequencer */                  \
    CAUSE(WEIGHTS, "weights")    /* the array's other set of weights is in use */                  \
    CAUSE(PORT, "port")          /* another engine has the memory's port */                        \
    CAUSE(QUEUE, "queue")        /* its DMA queue is full, or paces its transfers */               \
    CAUSE(DMA, "dma engines")    /* other transfers have the DMA engines */                        \
    CAUSE(HBM, "hbm")            /* others have the HBM's bandwidth */                             \
    CAUSE(FENCE, "fence")        /* a barrier or branch before it */                               \
    CAUSE(ALL, "barrier")        /* it is a barrier: all that was begun has to end */              \
    CAUSE(PARTNER, "other core") /* the other core of a pair has not come here */
typedef enum ClockCause {
#define CAUSE(id, name) CLOCK_##id,
    CLOCK_CAUSES(CAUSE)
#undef CAUSE
    CLOCK_CAUSE_COUNT
} ClockCause;

#define CLOCK_NOBODY UINT32_MAX
// Of the event with the same number: its times in picoseconds, and who decided them.
typedef struct ClockLink {
    int64_t issue, begin; // its sequencer takes it up; it begins, a transfer later than that
    int64_t serve;        // has what it shares with others (HBM, DMA engines)
    int64_t end, done;    // is over; others can know it
    int64_t gap, busy;    // its track stood still before it; what it adds to the track's busy time
    uint32_t issue_by, begin_by, serve_by; // events that held it back there; CLOCK_NOBODY
    uint8_t issue_cause, begin_cause; // begin: CLOCK_NONE where issue alone decided
    uint8_t limit; // what decides how long it takes: CLOCK_HBM, CLOCK_DMA, or CLOCK_NONE: its own work
} ClockLink;

typedef struct ClockJump { // iterations added at once: no events in between
    double from_ns, to_ns;
    uint32_t first, event; // events [first, event) are those of one period
    uint64_t times;        // so often it was added
    int64_t period;
    int64_t late[CLOCK_TRACKS]; // by so much the track's first gap in [first, event) is longer than in the periods added
} ClockJump;

typedef struct Clock {
    double total_ns;
    double busy_ns[CLOCK_TRACKS]; // of two cores with programs of their own: the mean; what follows: the sum
    uint64_t insts[CLOCK_TRACKS];
    double flops, hbm_bytes, link_bytes;
    uint64_t unknown_loops; // whose length nobody told: as long as ClockOptions.trips_else, or once
    uint64_t counted_loops; // whose length ClockOptions.trips told
    uint64_t simulated; // instructions stepped through; the rest was multiplied
    bool approximate;   // a loop without a steady state was so long that its last iteration was multiplied
    VEC(ClockEvent) events; // only when asked for; loops show their first iterations
    VEC(ClockLink) links;   // with `stalls`: of each event
    VEC(ClockJump) jumps;   // with events: iterations added at once
    uint32_t last_event;    // with `stalls`: the one that ends the run, CLOCK_NOBODY without any
    bool cut;               // there are more events than were kept
    int64_t told_ps[2][CLOCK_TRACKS]; // with `stalls`, of each core: gaps and busy times of a track add up to this
    const struct Price *price, *peer_price; // per instruction, in the run's arena; peer: of the second core's own program
    const struct Flow *flow, *peer_flow;
} Clock;
extern const char *const clock_track_names[CLOCK_TRACKS];

typedef struct ClockOptions {
    bool events;   // keep what begins and ends when
    bool stalls;   // and who held it back (stall.h)
    bool stepwise; // step through every iteration of every loop: slow, for tests
    uint32_t steps_max; // instructions looked at, then a loop's body counts as often as it runs; 0: many
    int cores;     // 2: a logical core of two, each running the program (or its own of two), on one HBM; else one
    const uint64_t *trips; // of the loops of unknown length, in program order: as clock_trips gives them; NULL: not known
    uint32_t ntrips;       // another number of loops than these: they are of another program and tell nothing
    uint64_t trips_else;   // of loops that `trips` does not tell; 0: once
} ClockOptions;
void clock_run(Ctx *ctx, Arena *a, const Artifact *art, const ChipFile *chip, const ClockOptions *opt,
               Clock *out); // opt may be NULL
// How often each loop of unknown length ran each time it was reached, on the average, from what a run counted
// (chip_counts); how many loops there are. Loops are the same and in the same order on every chip.
uint32_t clock_trips(Arena *a, const Artifact *art, const uint64_t *counts, uint64_t **out);
// Perfetto-readable JSON (trace event format) with instruction names and source lines, arrows for waits (of a clock
// that ran with `stalls`) and counters of the memories' occupancy. What ends before from_ns or begins after to_ns is left out.
void clock_trace_window(const Artifact *art, const ChipFile *chip, const Clock *c, double from_ns, double to_ns, Buf *out);
void clock_trace(const Artifact *art, const ChipFile *chip, const Clock *c, Buf *out); // all of it
// To a file; one whose name ends in .gz is compressed. Raises IO.
void clock_trace_write(Ctx *ctx, Arena *a, const char *path, const Buf *text);

#endif
