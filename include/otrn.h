// SPDX-License-Identifier: Apache-2.0
// otrn.h — the public C interface of opentrn.
//
// Load or parse a program, compile it, execute it on the caller's memory, ask for modelled time.
//
// Handles are opaque. Every call that can fail returns a status and fills *err when err is not NULL; a NULL where
// something is needed, a wrong count, a wrong size is OTRN_ARGUMENT, never a crash. Calls that cannot fail take a NULL
// handle or an index that is too large and give NULL, "", 0 or -1. A handle may be used from several threads at once
// unless its comment says otherwise. A handle that was freed is gone: using it is undefined, as with free().
//
// Structs that may grow begin with struct_size, which the caller sets (the OTRN_…_INIT macros do): the library fills
// that many bytes and no more, so programs built with an older header keep working. otrn_option, otrn_type and otrn_buffer
// never change.
#ifndef OTRN_H
#define OTRN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define OTRN_API __attribute__((visibility("default")))
#else
#define OTRN_API
#endif

#define OTRN_RELEASE "0.20.0"
#define OTRN_ABI 1 // raised when programs built with an older header can no longer use the library

OTRN_API const char *otrn_version(void); // OTRN_RELEASE of the library that runs
OTRN_API int otrn_abi(void);             // its OTRN_ABI; the same as the header's, or do not go on

// One row per status: name, code printed in messages, meaning.
#define OTRN_STATUS_ROWS(X)                                                                        \
    X(OK, "OK", "success")                                                                         \
    X(PARSE, "PARSE", "the program, artifact or data file is malformed")                           \
    X(VERIFY, "VERIFY", "the program breaks a rule of its own format")                             \
    X(UNSUPPORTED, "UNSUPPORTED", "valid, but opentrn cannot run it yet")                          \
    X(VERSION, "VERSION", "written by a newer or incompatible version")                            \
    X(ARGUMENT, "ARGUMENT", "wrong number, shape or type of arguments")                            \
    X(CAPACITY, "CAPACITY", "does not fit the chip's memories or a named limit")                   \
    X(CHIP, "CHIP", "the chip file is wrong or unknown")                                           \
    X(CHECK, "CHECK", "a check in the program failed while it ran")                                \
    X(IO, "IO", "a file cannot be read or written")                                                \
    X(NOMEM, "NOMEM", "the host is out of memory")                                                 \
    X(USAGE, "USAGE", "wrong option or call")                                                      \
    X(INTERNAL, "INTERNAL", "a mistake in opentrn; please report it")                              \
    X(TIMEOUT, "TIMEOUT", "the run took longer than the limit it was given")                       \
    X(INTERRUPTED, "INTERRUPTED", "the run was ended from outside")

typedef enum otrn_status {
#define X(name, code, text) OTRN_##name,
    OTRN_STATUS_ROWS(X)
#undef X
        OTRN_STATUS_COUNT
} otrn_status;

typedef struct otrn_error {
    size_t struct_size;
    otrn_status code;
    uint32_t line, col; // 0 when unknown
    char file[256];     // the user's file the place refers to, "" when unknown
    char text[1024];    // what is wrong, one line (more only for memory tables)
    char hint[512];     // what to do, "" when there is nothing to add
} otrn_error;
#define OTRN_ERROR_INIT {sizeof(otrn_error), OTRN_OK, 0, 0, "", "", ""}

OTRN_API const char *otrn_status_name(otrn_status s); // "PARSE"
OTRN_API const char *otrn_status_text(otrn_status s); // its meaning
// "file:line:col: error[CODE]: text" plus an indented hint line; returns bytes needed.
OTRN_API size_t otrn_error_print(const otrn_error *err, char *out, size_t out_bytes);

// Element types, numbered as in src/base/dtype.h; names as StableHLO writes them ("f32", "i1", …).
OTRN_API const char *otrn_dtype_name(int dtype);
OTRN_API int otrn_dtype_parse(const char *name); // -1 when unknown
OTRN_API size_t otrn_dtype_bytes(int dtype);     // host bytes per element (sub-byte types: 1)

#define OTRN_MAX_RANK 32
typedef struct otrn_type {
    int dtype;
    int rank;
    int64_t dims[OTRN_MAX_RANK];
} otrn_type;
OTRN_API size_t otrn_type_bytes(const otrn_type *t);

// Options are named as on the command line ("target", "threads", "cache", …): see `otrn info options`.
typedef struct otrn_option {
    const char *name, *value;
} otrn_option;

typedef struct otrn_env otrn_env;   // options, chip files, worker pool, cache
typedef struct otrn_exe otrn_exe;   // a compiled program, ready to run

OTRN_API otrn_status otrn_open(const otrn_option *options, size_t count, otrn_env **out,
                               otrn_error *err);
// Its executables and profiles may be freed later: what they need stays until then.
OTRN_API void otrn_close(otrn_env *env);
// Where messages of runs and compiles go that are no errors: cache hits and times (option "verbose"), what --check and
// --nan have to tell, where the host's time went. fn gets one message at a time, of one or more lines, also from other threads;
// it may not call the library. NULL: to stderr, as before the first call.
typedef void otrn_log_fn(void *arg, const char *text);
OTRN_API void otrn_set_log(otrn_env *env, otrn_log_fn *fn, void *arg);
// From now on a thread of its own writes what is compiled to the cache; before any program is compiled. _wait: until
// all is written, as otrn_close does.
OTRN_API void otrn_cache_behind(otrn_env *env);
OTRN_API void otrn_cache_wait(otrn_env *env);
// What went wrong without making a call fail: the cache cannot be used or written. 1 and its text once, else 0.
OTRN_API int otrn_warning(otrn_env *env, char *out, size_t out_bytes);
OTRN_API uint64_t otrn_hbm_bytes(const otrn_env *env); // memory of one device of the target: its core's, or both cores'
OTRN_API const char *otrn_target(const otrn_env *env); // the chip it compiles for: name or path
OTRN_API uint32_t otrn_devices(const otrn_env *env);   // of one chip of the target, or of the instance
OTRN_API uint32_t otrn_device_cores(const otrn_env *env); // cores of each: two where it is a logical core of two (option lnc)

// Programs may call functions of the process that made them: a custom call of target "opentrn_host_callback" whose
// backend_config is the name that otrn_host_add gave the function. Nobody can guess it, it means nothing in another
// process, and it belongs to the first program that is compiled with it: whatever else names it is refused
// (otrn_exe_check_host), and so is a call whose operands or results have other sizes. fn gets the operands and fills the
// results; not 0 fails the run with what it wrote to `why`. It runs while the core waits, so it cannot run a
// program of this environment. Several devices may call at once.
#define OTRN_HOST_NAME 33 // characters, with the zero
typedef struct otrn_host_call {
    size_t struct_size; // of this struct
    size_t num_args, num_results;
    const void *const *args;
    const size_t *arg_bytes;
    void *const *results;
    const size_t *result_bytes;
    char *why;
    size_t why_bytes;
} otrn_host_call;
typedef int otrn_host_fn(void *arg, const otrn_host_call *call);
OTRN_API otrn_status otrn_host_add(otrn_env *env, otrn_host_fn *fn, void *arg, const size_t *arg_bytes, size_t num_args,
                                   const size_t *result_bytes, size_t num_results, char name[OTRN_HOST_NAME],
                                   otrn_error *err);
// From now on no program that is compiled can call it. 1: none can any more, and fn is not called again; 0: an executable
// that calls it is still there. It may be asked again.
OTRN_API int otrn_host_drop(otrn_env *env, const char *name);
// The programs of `env` call the functions added to `with`, which is closed later. Before either has any.
OTRN_API void otrn_host_share(otrn_env *env, otrn_env *with);

// Ends the run that is going on in this environment, if any, with OTRN_INTERRUPTED, soon: between two instructions, or pieces of
// a long one. For any thread, and for a signal's handler. What was donated to the run is lost; the next run is not concerned.
OTRN_API void otrn_stop(otrn_env *env);
// From now on a SIGINT that this process handles does so too, and then reaches its handler. Before any run.
OTRN_API void otrn_stop_on_interrupt(otrn_env *env);

// Compile StableHLO text or bytecode, or load an artifact: told apart by content.
// `name` is used in messages. The bytes may be freed afterwards.
OTRN_API otrn_status otrn_compile(otrn_env *env, const void *bytes, size_t size, const char *name,
                                  otrn_exe **out, otrn_error *err);
// The same for a program with dimensions of unknown size (`?`): it is compiled for arguments of these
// types. Sizes may also come as integer scalars: those whose values are given (values may be NULL, and so
// may each entry) count as constants of the executable, which still takes them. Other programs are compiled
// as otrn_compile does.
OTRN_API otrn_status otrn_compile_for(otrn_env *env, const void *bytes, size_t size, const char *name,
                                      const otrn_type *types, const void *const *values, size_t count,
                                      otrn_exe **out, otrn_error *err);
OTRN_API otrn_status otrn_compile_file(otrn_env *env, const char *path, otrn_exe **out,
                                       otrn_error *err);
OTRN_API void otrn_exe_free(otrn_exe *exe);

// The artifact's bytes, owned by the executable.
OTRN_API const void *otrn_exe_bytes(const otrn_exe *exe, size_t *size);
OTRN_API const char *otrn_exe_name(const otrn_exe *exe);
OTRN_API size_t otrn_exe_num_args(const otrn_exe *exe);
OTRN_API size_t otrn_exe_num_results(const otrn_exe *exe);
OTRN_API const otrn_type *otrn_exe_arg_type(const otrn_exe *exe, size_t i);
OTRN_API const otrn_type *otrn_exe_result_type(const otrn_exe *exe, size_t i);
// What the program calls argument or result i ("params['w']", "x"); "" when it has no name.
OTRN_API const char *otrn_exe_arg_name(const otrn_exe *exe, size_t i);
OTRN_API const char *otrn_exe_result_name(const otrn_exe *exe, size_t i);
// The argument whose memory result i may take over (input-output alias), or -1.
OTRN_API int64_t otrn_exe_result_alias(const otrn_exe *exe, size_t i);
// 1 when argument i may be consumed by the run (donated), aliased or not.
OTRN_API int otrn_exe_arg_donated(const otrn_exe *exe, size_t i);
// Devices the program was written for; with more than one it runs with otrn_execute_many, and the types
// above are those of one device's parts.
OTRN_API uint32_t otrn_exe_partitions(const otrn_exe *exe);
// How argument or result i lies on them, as spec/artifact.md says; "" when each has all of it.
OTRN_API const char *otrn_exe_arg_sharding(const otrn_exe *exe, size_t i);
OTRN_API const char *otrn_exe_result_sharding(const otrn_exe *exe, size_t i);
// 1 when the program calls functions of the host.
OTRN_API int otrn_exe_calls_host(const otrn_exe *exe);
// OTRN_OK, or why they may not be called, and with that the program cannot run in this process.
OTRN_API otrn_status otrn_exe_check_host(const otrn_exe *exe, otrn_error *err);
// 1 when the front end wants argument or result i in host memory the device can reach.
OTRN_API int otrn_exe_arg_pinned(const otrn_exe *exe, size_t i);
OTRN_API int otrn_exe_result_pinned(const otrn_exe *exe, size_t i);
// Device bytes: arguments, results, scratch, constants.
typedef struct otrn_memory {
    size_t struct_size;
    uint64_t arg_bytes, result_bytes, alias_bytes, scratch_bytes, const_bytes, code_bytes;
    uint64_t peak_bytes, capacity_bytes;
} otrn_memory;
#define OTRN_MEMORY_INIT {sizeof(otrn_memory), 0, 0, 0, 0, 0, 0, 0, 0}
OTRN_API otrn_status otrn_exe_memory(const otrn_exe *exe, otrn_memory *out, otrn_error *err);
// 1 when the executable came out of the cache.
OTRN_API int otrn_exe_cached(const otrn_exe *exe);

// Memory of the caller: the elements of a tensor, dense and row-major; 64-byte alignment is faster, not required. `bytes` must
// be what the type takes (otrn_type_bytes); where that is 0, data may be NULL.
typedef struct otrn_buffer {
    void *data; // of an argument only read, unless it is donated
    size_t bytes;
} otrn_buffer;

// results[i] may be args[otrn_exe_result_alias(i)] and then the run is in place. Otherwise no result may overlap an argument
// or another result: OTRN_ARGUMENT names both. Arguments may overlap each other. One call is parallel inside; concurrent calls are safe and take turns. A program of several devices is refused.
OTRN_API otrn_status otrn_execute(otrn_exe *exe, const otrn_buffer *args, size_t num_args, const otrn_buffer *results,
                                  size_t num_results, otrn_error *err);

// The same program on replicas x partitions devices at once, each with a core and memory of its own;
// collectives connect them. Device r is replica r / partitions, partition r % partitions; args[r] and
// results[r] are its own, num_args and num_results of each. Two devices may share an argument that is not donated. A failing
// device makes the whole run fail with its error. Cores and host threads are made by the first such call and kept.
#define OTRN_MAX_DEVICES 1024
OTRN_API otrn_status otrn_execute_many(otrn_exe *exe, uint32_t replicas, uint32_t partitions,
                                       const otrn_buffer *const *args, size_t num_args,
                                       const otrn_buffer *const *results, size_t num_results, otrn_error *err);

// Modelled time of one run on a target ("trn1", "trn2", "trn3", or a chip file's path; NULL: the
// target it was compiled for). Needs no data.
#define OTRN_ENGINES 8
#define OTRN_COLLECTIVES 8
typedef struct otrn_collective {    // collectives of one kind over groups of one shape
    char kind[32];                  // "all_gather"
    uint32_t ranks, groups, stride; // of a group; how many groups; from one of its devices to the next, 0: not even
    uint32_t line;                  // of the user's program, with most of it; 0: not known
    char file[128];
    double count, bytes;            // of a run; a device sends
    double busy_us, exposed_us;     // it runs; of that, what the run would save if links cost nothing
} otrn_collective;
typedef struct otrn_report {
    size_t struct_size;
    char target[64];
    double total_us;                   // modelled time of one run
    double busy_us[OTRN_ENGINES];      // per engine, see otrn_engine_name
    uint64_t instructions[OTRN_ENGINES];
    double flops, hbm_bytes;           // of one device: those of its matrix products; bytes moved to or from HBM
    double hbm_peak_bytes;             // planned HBM
    double usd_per_hour;               // of all devices together: their share of the instance's price; 0: not known
    uint64_t unknown_loops;            // loops whose length only a run knows, and there was none: see assumed_trips
    uint64_t counted_loops;            // loops whose length the last run counted
    uint64_t assumed_trips;            // iterations unknown_loops were taken for (option "trips"); 0: one, so the time is too short
    uint32_t devices, cores_per_device;
    uint32_t machines;                 // instances that the devices need
    char instance[64];                 // whose price it is: the option's, else the smallest that has the devices; "": none is known
    char price_basis[160];             // "on demand, us-east-1, 2026-07"; why, when the price is not known
    double flops_peak;                 // of all devices: 2 x 128 x 128 x clock of their tensor engines a second, their peak in bf16
    double utilisation;                // flops of all devices in that time, as a share of flops_peak
    double comm_us, exposed_comm_us;   // collectives run; of that, what the run would save if links cost nothing
    double link_bytes;                 // a device sends to others
    char comm_note[512];               // which collectives, and at which lines, when they take more than a quarter of the run; else ""
    uint32_t num_collectives;          // kinds of them; the most exposed first, as many as there is room for
    otrn_collective collectives[OTRN_COLLECTIVES];
} otrn_report;
#define OTRN_REPORT_INIT {sizeof(otrn_report), "", 0, {0}, {0}, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, "", "", 0, 0, 0, 0, 0, "", 0, {{"", 0, 0, 0, 0, "", 0, 0, 0, 0}}}
OTRN_API const char *otrn_engine_name(int engine); // "tensor", "vector", "scalar", "gpsimd", …
// For another target than its own the program, which artifacts keep, is compiled for that one; where there is none (a kernel
// assembled from text) that is an error.
OTRN_API otrn_status otrn_time(otrn_exe *exe, const char *target, otrn_report *out,
                               otrn_error *err);

// The same with everything behind the numbers: source lines, roofs, timeline.
typedef struct otrn_profile otrn_profile;
OTRN_API otrn_status otrn_profile_make(otrn_exe *exe, const char *target, otrn_profile **out, otrn_error *err);
OTRN_API void otrn_profile_free(otrn_profile *profile);
OTRN_API otrn_status otrn_profile_report(const otrn_profile *profile, otrn_report *out, otrn_error *err);

// A line of the user's program, the busiest first. Texts belong to the profile.
typedef struct otrn_line {
    size_t struct_size;
    const char *file, *name;      // "" when not known; name: what the program calls the operation
    uint32_t line;                // 0 when not known
    const char *op;               // the operation with the most time on it, "" for none
    int engine;                   // where it is busy longest,
    double busy_us;               // and how long
    double engine_us[OTRN_ENGINES];
    double flops, hbm_bytes, instructions;
} otrn_line;
#define OTRN_LINE_INIT {sizeof(otrn_line), "", "", 0, "", 0, 0, {0}, 0, 0, 0}
OTRN_API size_t otrn_profile_num_lines(const otrn_profile *profile);
OTRN_API otrn_status otrn_profile_line(const otrn_profile *profile, size_t i, otrn_line *out, otrn_error *err);

// How far the run is from what tensor engine and HBM allow.
typedef struct otrn_roof {
    size_t struct_size;
    double compute_us, memory_us;           // products and HBM traffic by themselves, at full rate
    double attainable_flops, achieved_flops; // per second
    double ridge;                           // FLOP per byte where the two roofs meet, for the types of this program
} otrn_roof;
#define OTRN_ROOF_INIT {sizeof(otrn_roof), 0, 0, 0, 0, 0}
OTRN_API otrn_status otrn_profile_roof(const otrn_profile *profile, otrn_roof *out, otrn_error *err);

// Writes the timeline as a Perfetto-readable JSON trace, compressed where the name ends in .gz; where it ends in .html a page for a
// browser with all that `otrn prof` tells.
OTRN_API otrn_status otrn_profile_trace(const otrn_profile *profile, const char *path, otrn_error *err);

// The otrn program: argv as main gets it, with NULL at its end. Returns the exit status.
OTRN_API int otrn_main(int argc, char **argv);

#ifdef __cplusplus
}
#endif
#endif
