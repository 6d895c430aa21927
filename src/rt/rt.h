// SPDX-License-Identifier: Apache-2.0
// rt.h — compile a program through every stop of the road, with the cache around it.
#ifndef OTRN_RT_RT_H
#define OTRN_RT_RT_H

#include <pthread.h>

#include "artifact/artifact.h"
#include "base/opt.h"
#include "base/pulse.h"
#include "base/sha256.h"
#include "clock/clock.h"
#include "pass/layouts.h"
#include "pass/pass.h"

#define RT_STAGES_MAX 64 // passes, and read, cache, tile, save; a program may be read twice
typedef struct RtStage {
    const char *name;
    double seconds;
    uint32_t ops; // operations (or instructions) after it
    uint32_t inside; // those that belong to one of them: row programs, fused ones, what a reduction computes
    uint32_t broadcasts, constants; // of ops, inside not counted
} RtStage;

#define RT_CACHE_KEY SHA256_TEXT

typedef struct RtStats {
    RtStage stages[RT_STAGES_MAX];
    int count;
    bool cached; // came out of the cache: only "read" and "cache" were run
    bool received; // another process of the job compiled it; likewise
    char key[RT_CACHE_KEY];
} RtStats;

// Called after each stage with the graph, or with the artifact once there is one. The graph is verified
// already. Stages are named by rt_stage_name, then "cache" and "save".
typedef void RtHook(void *arg, const char *stage, Hlo *hlo, const Artifact *art);

// Called with the graph as it was read, before any pass: makes it another program (parallel.c).
typedef void RtPrepare(void *arg, Hlo *hlo);

typedef struct RtWriter RtWriter; // cache_behind.c

typedef struct RtWarn { // what went wrong and did not make anything fail: the first is kept
    pthread_mutex_t lock;
    char text[768];
    bool told;
} RtWarn;
void rt_warn_init(RtWarn *w);
void rt_warn_fini(RtWarn *w);
bool rt_warn_take(RtWarn *w, char *out, size_t out_bytes); // once true

typedef struct RtSpare { // memory of the last compilation for the next, whose pages are there already
    pthread_mutex_t lock;
    bool has;
    Arena compile, scratch;
} RtSpare;
void rt_spare_init(RtSpare *s);
void rt_spare_fini(RtSpare *s);

typedef struct RtCompile {
    const Options *opts;
    const ChipFile *chip; // the target's; NULL: read as the options say
    const char *name;     // for messages
    const void *bytes;
    size_t size;
    const otrn_type *types; // of the arguments, for a program of unknown sizes: see pass_bind; may be NULL
    const void *const *values;
    size_t count;
    RtPrepare *prepare; // may be NULL; with it the cache is left alone
    void *prepare_arg;
    RtHook *hook; // may be NULL; with a hook the cache is not consulted
    void *hook_arg;
    const char *until; // the pass behind which it ends, for the hook's sake: no artifact is made; may be NULL
    Buf *nests, *placed; // take the steps as nests (tile/nest_text.h), and where they lie; may be NULL
    RtStats *stats; // may be NULL
    RtSpare *spare;   // may be NULL
    Pool *pool;       // helps; NULL: one of its own, where the program is large
    RtWriter *writer; // of entries of the cache; NULL: written at once
    RtWarn *warn;     // told when the cache cannot be used; may be NULL
    struct Net *net;  // processes of which one compiles for all; may be NULL
    bool lasting; // bytes live as long as what is made of them: an artifact stays where it is
} RtCompile;

// StableHLO text or bytecode in, artifact bytes out (in `a`). An artifact in comes out as it is.
void rt_compile(Ctx *ctx, Arena *a, const RtCompile *in, Buf *out);
// Assembly text in, artifact bytes out.
void rt_assemble(Ctx *ctx, Arena *a, const RtCompile *in, Buf *out);
// --- again.c: an artifact for another chip or with other options --------------------------------------
// Those of the options that decide code, as artifacts keep them (artifact.h).
const char *rt_code_options(Arena *a, const Options *o);
uint64_t rt_chip_hash(Arena *a, const ChipFile *chip);
// What processes that work together must have in common of a chip.
void rt_chip_text(Arena *a, const char *target, uint32_t cores, const ChipFile *chip, char *out, size_t bytes);
// Options of code that *o leaves at their defaults (all: every one) become those the artifact was compiled with.
void rt_options_of(Ctx *ctx, Arena *a, const Artifact *art, const char *name, bool all, Options *o);
// The artifact itself where it was compiled for how->chip with how->opts, else its program compiled so. Raises UNSUPPORTED
// when it holds none, and what compiling raises. Of `how` also name, pool, spare and writer count.
Artifact *rt_again(Ctx *ctx, Arena *a, Artifact *art, const RtCompile *how);

// A program of any form as StableHLO, for so many devices where it does not say itself.
void rt_stablehlo(Ctx *ctx, Arena *a, const char *name, const void *bytes, size_t size, int64_t partitions, bool open, Buf *out);
// The program of one device, as bytecode appended to out: passes up to spmd and what nothing uses gone (parted.c).
void rt_parted(Ctx *ctx, Arena *a, const char *name, const void *bytes, size_t size, const char *results, Buf *out);
// The program with calls that `who` knows replaced by what it answers, as text appended to out; false: there are none.
bool rt_custom(Ctx *ctx, Arena *a, const char *name, const void *bytes, size_t size, const CustomAsk *who, Buf *out);
const void *rt_exe_program(const otrn_exe *exe, size_t *size); // that it was made of; NULL: it does not keep it
// Orders in which the entry's arguments, then its results lie; NULL: all row by row.
const LayoutOrder *rt_layouts(Ctx *ctx, Arena *a, const char *name, const void *bytes, size_t size);
// "read", each pass, "tile": what --dump takes, by number from 0; NULL past the last.
const char *rt_stage_name(int i);

// --- many.c: a run of which only some devices are in this process -------------------------------------
typedef struct RtSpread {
    struct Net *net;
    uint64_t set;            // names the devices, as they are assigned: the same in every process
    uint32_t nhere;
    const uint32_t *ranks;   // of those here
    const uint16_t *process; // of every rank
    const bool *loose;       // NULL, or: processes run programs of their own (net.h), and those that this one meets
    bool in_place;           // the result may lie on the argument, whatever the program says of it
} RtSpread;
// args and results are those of the devices here.
otrn_status rt_execute_spread(otrn_exe *exe, uint32_t replicas, uint32_t partitions, const RtSpread *spread,
                              const otrn_buffer *const *args, size_t num_args, const otrn_buffer *const *results,
                              size_t num_results, otrn_error *err);

// Programs of one device draw other numbers with rng in every run, as XLA has it. Programs of several begin anew each time, so that all devices draw alike.
OTRN_API void opentrn_draws_on(otrn_env *env);
struct StatusPage *rt_status(otrn_env *env); // of this process, for otrn top; NULL: there is none

// --- cache.c: a folder of compiled programs, content-addressed --------------------------------------
const char *rt_cache_dir(Arena *a, const Options *o); // "" when there is nowhere to keep it
// Everything the artifact depends on, a line each; the key is its hash.
// bound: the arguments' types are part of it (a program of unknown sizes).
const char *rt_cache_inputs(Arena *a, const RtCompile *in, bool bound, const ChipFile *chip);
Sha256 rt_cache_key(const char *inputs, char key[RT_CACHE_KEY]); // also as text
bool rt_cache_get(Arena *a, const char *dir, const char *key, RtWarn *warn, Buf *out); // verified; false when absent
// Waits while another process or thread compiles the same. -1: nobody can tell, go on.
int rt_cache_claim(const char *dir, const char *key, RtWarn *warn);
void rt_cache_release(int claim); // -1: nothing to do
typedef struct RtPut { // an entry to be written
    const char *dir, *key, *inputs, *about; // about: more than decides the key, for people
    const void *bytes;
    size_t size;
    RtWarn *warn;   // may be NULL
    int claim;      // or -1
    uint64_t limit; // of the folder, in bytes; 0: none
} RtPut;
// Best effort, atomic; then what was unused longest goes, if the folder is too large. The claim is still to be released.
void rt_cache_put(const RtPut *p);
void rt_cache_warn(RtWarn *w, const char *dir, const char *why); // "the cache folder DIR <why>; …"

// --- cache_behind.c: entries written by a thread of their own ---------------------------------------
RtWriter *rt_writer_make(void); // NULL: no memory
// Copies what it needs and takes the claim over. False (also for w NULL): the caller must write.
bool rt_writer_add(RtWriter *w, const RtPut *p);
void rt_writer_wait(RtWriter *w); // until all is written; w may be NULL
void rt_writer_free(RtWriter *w); // likewise

// --- cache_tend.c: the folder from outside ------------------------------------------------------------
typedef struct RtCacheItem {
    const char *key;   // the file's name without its end
    const char *fault; // what is wrong with it; NULL: nothing
    const char *target, *name, *module, *release; // "" where it does not tell
    uint64_t bytes;
    int64_t used; // last use, seconds since 1970
} RtCacheItem;
typedef void RtCacheFn(void *arg, const RtCacheItem *item);
// Every entry, the last used first. whole: its artifact is loaded too, so that a fault in it is found. Returns how many.
uint32_t rt_cache_each(Ctx *ctx, Arena *a, const char *dir, bool whole, RtCacheFn *fn, void *arg);
uint32_t rt_cache_clear(Ctx *ctx, Arena *a, const char *dir); // removes every entry; returns how many
// Removes entries longest unused until the rest fits; not that of `keep` (may be NULL). Files being written count, those
// left behind go.
uint32_t rt_cache_evict(Ctx *ctx, Arena *a, const char *dir, uint64_t limit_bytes, const char *keep);
// Removes what is damaged, of another release or left over, then evicts (0: no limit).
uint32_t rt_cache_prune(Ctx *ctx, Arena *a, const char *dir, uint64_t limit_bytes);
// The inputs of the entry most like these; NULL when there is none.
const char *rt_cache_nearest(Ctx *ctx, Arena *a, const char *dir, const char *inputs, const char **key);
// The inputs of the entry whose key begins so; NULL when there is none, or more than one.
const char *rt_cache_inputs_of(Ctx *ctx, Arena *a, const char *dir, const char *key);

// The environment's programs are compiled by one of these processes; NULL: by this one. None may be compiled when the world ends.
void rt_env_join(otrn_env *env, struct Net *net);
Pulse *rt_pulse(otrn_env *env); // of the run that is going on: how far it is (guard.c)

#endif
