// SPDX-License-Identifier: Apache-2.0
// chipfile.h — a chip as data: sizes, clocks, rates and latencies, read from chips/*.chip.
//
// What compiler, chip and clock know of a machine they know from here.
#ifndef OTRN_MACH_CHIPFILE_H
#define OTRN_MACH_CHIPFILE_H

#include "isa/check.h"

// Text: `key = value unit  # origin: …`, one per line, and `name = …`. CHIP_KEYS is the one list of
// keys; a file has each of them exactly once. What the keys mean to the model is told in price.c
// and clock/clock.c. KEY(member, "name", "unit", min, max)
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
    KEY(psum_access_cycles, "psum_access", "cycles", 0, 1e4)                                       \
    KEY(psum_turn_ns, "psum_turnaround", "ns", 0, 1e5)                                             \
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
    KEY(link_step_bw, "link_step_bandwidth_per_core", "GB/s", 1e-3, 1e5)                           \
    KEY(link_mesh_bw, "link_mesh_bandwidth_per_core", "GB/s", 1e-3, 1e5)                           \
    KEY(link_chip_bw, "link_chip_bandwidth_per_core", "GB/s", 1e-3, 1e5)                           \
    KEY(link_total, "link_bandwidth_per_chip", "GB/s", 1e-3, 1e5)                                  \
    KEY(link_ratio, "link_ratio", "ratio", 0.01, 1)                                                \
    KEY(torus_x, "torus_x", "count", 0, 256)                                                       \
    KEY(torus_y, "torus_y", "count", 1, 256)                                                       \
    KEY(link_reduce, "link_reduce_factor", "ratio", 1, 100)                                        \
    KEY(collective_start_ns, "collective_start", "ns", 0, 1e9)                                     \
    KEY(collective_chip_ns, "collective_chip_latency", "ns", 0, 1e9)                               \
    KEY(collective_ns, "collective_latency", "ns", 0, 1e9)                                         \
    KEY(collective_step_ns, "collective_step", "ns", 0, 1e9)                                       \
    KEY(collective_hop_ns, "collective_hop", "ns", 0, 1e9)                                         \
    KEY(collective_dma, "collective_dma_passes", "ratio", 0, 16)                                    \
    KEY(collective_dma_share, "collective_dma_share", "ratio", 0, 0.99)                            \
    KEY(network_ratio, "network_ratio", "ratio", 0.01, 1)                                          \
    KEY(network_step_bw, "network_step_bandwidth", "GB/s", 1e-6, 1e5)                              \
    KEY(network_mesh_bw, "network_mesh_bandwidth", "GB/s", 1e-6, 1e5)                              \
    KEY(sem_ns, "semaphore_latency", "ns", 0, 1e5)                                                 \
    KEY(control_ns, "control_interval", "ns", 0, 1e5)                                              \
    KEY(branch_ns, "branch_interval", "ns", 0, 1e5)                                                \
    KEY(reg_load_ns, "register_load", "ns", 0, 1e6)                                                \
    KEY(barrier_ns, "barrier_latency", "ns", 0, 1e6)                                               \
    KEY(dispatch_ns, "dispatch", "ns", 0, 1e9)

typedef struct ChipFile {
    char name[64];
    char instance[64]; // the machine whose price counts when none is named (instance.h); "": none
#define KEY(m, n, u, lo, hi) double m;
    CHIP_KEYS(KEY)
#undef KEY
    const char *path; // or "(built in)"
    // Of the instance it is priced in (instance.h); 0: devices that run a program are all on one.
    double host_cores, network_bw, network_hop_ns; // cores of a machine; GB/s of each to other machines; ns
    double joined, joined_total; // machines with links between them, and these of a chip, GB/s both ways
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

#endif
