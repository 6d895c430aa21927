// SPDX-License-Identifier: Apache-2.0
// pjrt.h — the objects behind the PJRT handles.
//
//   client ─┬─ topology ── device descriptions
//           ├─ devices ─── two memories each: device, pinned_host
//           ├─ pool ────── blocks of 64-byte aligned memory, kept for reuse
//           ├─ queue ───── a thread that runs what was launched, in that order
//           └─ env ─────── the core (otrn.h)
//   executable ─ otrn_exe and everything a query may ask
//   loaded executable ─ executable + its devices
//   buffer ─ shape + storage (shared, counted)
//   event ─ the shared one that is ready, or that of a launch
//
// Invariants
//   1. Launches run one after the other, in the order of the calls (execute.c says when one runs
//      inside its call). So whatever a run needs was computed before it, and an argument that is not
//      ready when its run begins cannot be.
//   2. A storage that is not ready has the event of the run that fills it; its memory is found when
//      that run begins, and an error of the run is the event's.
//   3. client->lock guards buffer->storage, the pool, the statistics and the list of environments.
//      Nothing that can take long runs under it.
//   4. storage is counted: a buffer holds one count, an external reference one, a run one from its
//      launch on. The last one out returns the block to the pool.
//   5. A client lives until it is destroyed and its last buffer, executable and launch are gone.
#ifndef OTRN_PJRT_H
#define OTRN_PJRT_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/dtype.h"
#include "base/opt.h"
#include "base/sha256.h"
#include "net/net.h"
#include "pass/layouts.h"
#include "pjrt/pjrt_abi.h"
#include "rt/rt.h"

enum {
    PJ_MEMORIES = 2,        // memories of a device: see pj_memory_kind
    PJ_MAX_DEVICES = OTRN_MAX_DEVICES,  // option devices
    PJ_MAX_RANK = 64,       // numpy's own limit
    PJ_CLASSES = 4 * 46,    // storage size classes, four per doubling
    PJ_MAX_OVERRIDES = 32,  // compiler options of one jit
    PJ_INLINE_ARGS = 96,    // arguments plus results that Execute handles on the stack
};
#define PJ_ALIGN ((size_t)64)
#define PJ_LARGE_PAGE ((size_t)2 << 20)
#define PJ_KEEP_BYTES ((size_t)512 << 20) // the pool gives memory back beyond this

typedef enum PjMemoryKind { PJ_DEVICE, PJ_PINNED_HOST } PjMemoryKind;
typedef enum PjDispatch { PJ_AUTO, PJ_ASYNC, PJ_INLINE } PjDispatch; // option dispatch
extern const char *const pj_memory_kinds[PJ_MEMORIES];

// ---- errors and events (error.c, event.c)
#define PJ_OK ((PJRT_Error *)NULL)
bool pj_error_is(const PJRT_Error *e, PJRT_Error_Code code); // NULL is none
PJRT_Error *pj_error(PJRT_Error_Code code, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
PJRT_Error *pj_error_from(const otrn_error *err); // the core's message, with its place and hint
PJRT_Error *pj_error_nomem(void);
// Calls what may ctx_fail, with a context and memory that end with the call; its error, or work's own.
typedef PJRT_Error *PjWork(void *arg, Ctx *ctx, Arena *a);
PJRT_Error *pj_try(PjWork *work, void *arg);
PJRT_Error *pj_error_dup(const PJRT_Error *e);    // NULL stays NULL
PJRT_Event *pj_event_ready(void); // shared; destroying it does nothing
PJRT_Event *pj_event_make(void);  // counted, one count; NULL: no memory
void pj_event_hold(PJRT_Event *e);
void pj_event_drop(PJRT_Event *e); // may be NULL
bool pj_event_is_ready(PJRT_Event *e);
PJRT_Error *pj_event_error(PJRT_Event *e);      // of a ready one; new
void pj_event_set(PJRT_Event *e, PJRT_Error *error); // once; takes the error over
PJRT_Error *pj_event_wait(PJRT_Event *e);       // its error
// Calls fn when the event is ready, at once if it is. The error is fn's to destroy.
PJRT_Error *pj_event_then(PJRT_Event *e, void (*fn)(PJRT_Error *, void *), void *arg);

// ---- element types (types.c)
int pj_dtype(PJRT_Buffer_Type type);            // DT_*, DT_INVALID when the core has no such type
PJRT_Buffer_Type pj_buffer_type(int dtype);
// Bytes of a dense array; fails on a negative size, a product that overflows, an unknown type.
PJRT_Error *pj_shape_bytes(PJRT_Buffer_Type type, const int64_t *dims, size_t rank, size_t *bytes);

// ---- storage (storage.c)
typedef struct Block { // aligned memory begins one line behind
    struct Block *next; // while free
    int size_class;
} Block;
_Static_assert(sizeof(Block) <= PJ_ALIGN, "the header takes one line before the data");

typedef struct Storage {
    struct Storage *next;                // while it waits for its deleter
    void *data;                          // NULL until the run that fills it begins
    Block *block;                        // NULL: foreign, or no memory yet
    size_t bytes;                        // as charged to the memory, once there is data
    struct PJRT_Memory *memory;
    PJRT_Event *ready;                   // NULL: complete
    void (*on_delete)(void *, void *);   // foreign memory only
    void *on_delete_arg;
    atomic_int refs;
    bool foreign;                        // the memory is another's
} Storage;

typedef struct StoragePool {
    Block *free[PJ_CLASSES];
    size_t kept_bytes;
} StoragePool;

typedef struct MemoryUse {
    int64_t in_use, peak, allocs, largest, limit; // bytes, bytes, count, bytes, bytes (0: unknown)
} MemoryUse;

// The _locked forms are called with client->lock held. Made with one count; NULL: no memory.
Storage *pj_storage_make_locked(struct PJRT_Memory *m, size_t bytes);  // with data
Storage *pj_storage_promise_locked(struct PJRT_Memory *m, size_t bytes, PJRT_Event *ready); // without
bool pj_storage_fill_locked(Storage *s);                 // finds memory for a promised one
void pj_storage_move_locked(Storage *to, Storage *from); // memory and charge of from become to's
void pj_storage_empty_locked(Storage *s);                // gives its memory back
Storage *pj_storage_wrap_locked(struct PJRT_Memory *m, void *data, size_t bytes,
                                void (*on_delete)(void *, void *), void *arg);
void pj_storage_drop_locked(Storage *s); // may be NULL
static inline void pj_storage_hold(Storage *s) { atomic_fetch_add(&s->refs, 1); }
static inline bool pj_storage_is_ready(Storage *s) { return !s->ready || pj_event_is_ready(s->ready); }
PJRT_Error *pj_storage_wait(Storage *s); // until it is complete; its error
void pj_storage_pool_fini(StoragePool *pool);
bool pj_storage_drain(PJRT_Client *c);
PJRT_Error *pj_storage_failed(struct PJRT_Memory *m, size_t bytes); // why make returned NULL

// ---- the queue of launches (queue.c)
typedef struct Task {
    struct Task *next;
    void (*run)(struct Task *);
} Task;
typedef struct Queue Queue;
Queue *pj_queue_make(void);       // NULL: no memory
void pj_queue_close(Queue *q);    // after its last task; may be called by that task
bool pj_queue_push(Queue *q, Task *t); // false: the host has no thread for it; may wait
bool pj_queue_is_idle(Queue *q);
void pj_queue_drain(Queue *q, unsigned limit_ms); // waits until it is idle, not longer than that

// ---- client, devices, memories (client.c, device.c, topology.c)
struct PJRT_DeviceDescription {
    int id, process, local_id; // local_id: among those of its process
    char kind[64], text[96];
    int64_t coords[3];
    PJRT_NamedValue attributes[4]; // the last: the client's address, for the functions of report.c
};

struct PJRT_TopologyDescription {
    char platform[32], version[96], target[64];
    char chip[256]; // the target as it was given: a name, or the path of a chip file
    size_t count;          // devices, of all processes
    size_t first, here;    // those of this process
    uint32_t process;      // which that is
    uint32_t device_cores; // of each
    PJRT_DeviceDescription *descriptions, **pointers;
    PJRT_NamedValue attributes[1];
    char *serialized;
    size_t serialized_size;
};

typedef struct UserData {
    struct UserData *next;
    const void *key;
    void *data;
    void (*dtor)(void *);
} UserData;

struct PJRT_Memory {
    const PJRT_Memory_FunctionTable *vtable; // first word, by the interface
    PJRT_Client *client;
    PJRT_Device *device;
    _Atomic(UserData *) user;
    int id;
    PjMemoryKind kind;
    MemoryUse use;
    char text[64];
};

struct PJRT_Device {
    PJRT_Client *client;
    PJRT_DeviceDescription *description;
    PJRT_Memory *memories[PJ_MEMORIES];
};

typedef struct Env { // the core opened with one set of compiler options
    struct Env *next;
    otrn_env *env;
    char *key;
    size_t num_values;
    char *values[PJ_MAX_OVERRIDES];
} Env;

typedef struct RunRecord { // runs of one program
    struct PJRT_Executable *exe; // counted
    uint64_t runs, ns;           // ns: host time of them all
} RunRecord;

typedef struct RunLog { // under client->lock
    struct PJRT_Client *next; // of this process; under the lock of their list
    bool on, recording;
    RunRecord last;
    RunRecord *list; // since recording began
    size_t n, cap;
} RunLog;

struct PJRT_Client {
    pthread_mutex_t lock;
    PJRT_TopologyDescription *topology;
    PJRT_Device *devices, **device_pointers;
    PJRT_Memory *memories, **memory_pointers;
    StoragePool pool;
    Storage *foreign;               // dropped; their deleters run when the lock is free
    Queue *queue;
    Queue *transfers;               // arrays from and to other processes (cross.c)
    PjDispatch dispatch;
    RunLog log;
    Env *envs;
    NetRoot *root;                  // where they met; NULL: in the framework's store
    Net *net;                       // the other processes; NULL: there are none
    otrn_option *options;           // what the creator of the client asked for
    size_t num_options;
    size_t live;                    // buffers, executables and launches
    bool destroyed;
};

static inline PJRT_Memory *pj_device_memory(PJRT_Device *d) { return d->memories[PJ_DEVICE]; }
// The environment's options with the given ones on top.
PJRT_Error *pj_options_init(Options *o, const otrn_option *given, size_t n);
PJRT_Error *pj_devices_make(PJRT_Client *c); // as many as its topology has
PJRT_Error *pj_topology_make(const Options *o, const otrn_env *env, PJRT_TopologyDescription **out);
PJRT_Error *pj_topology_widen(PJRT_TopologyDescription **t, const Net *net); // by the devices of the other processes
static inline bool pj_device_is_here(const PJRT_Device *d) { return d->description->process == (int)d->client->topology->process; }
void pj_topology_free(PJRT_TopologyDescription *t);
void pj_memory_fini(PJRT_Memory *m);
PJRT_Error *pj_client_env(PJRT_Client *c, const otrn_option *overrides, size_t n, otrn_env **out);
void pj_client_limit(PJRT_Client *c, uint64_t capacity_bytes);
static inline void pj_lock(PJRT_Client *c) { pthread_mutex_lock(&c->lock); }
// Runs the deleters of foreign memory dropped meanwhile, and frees a client nobody needs any more.
void pj_unlock(PJRT_Client *c);
void pj_named_int64s(PJRT_NamedValue *v, const char *name, const int64_t *at, size_t n);
void pj_named_float(PJRT_NamedValue *v, const char *name, double value);

// ---- compile options (options.c)
typedef struct CompileOptions {
    int64_t num_replicas, num_partitions;
    bool open_results;   // those that say nothing may be cut over the devices
    size_t num_devices;  // replicas x partitions, or 0 when not given
    int64_t *device_ids; // by replica, then partition
    size_t num_overrides;
    otrn_option overrides[PJ_MAX_OVERRIDES]; // text in `text`
    char *text;
} CompileOptions;
PJRT_Error *pj_options_parse(const void *bytes, size_t size, CompileOptions *out);
void pj_options_fini(CompileOptions *o);

// ---- buffers (buffer.c, transfer.c, upload.c)
struct PJRT_Buffer {
    PJRT_Memory *memory;
    Storage *storage;       // NULL: deleted or donated
    Storage *external;      // held for external references
    size_t external_refs;
    size_t bytes;
    PJRT_Buffer_Type type;
    uint32_t rank;
    bool donating;          // an execute is about to consume it
    LayoutOrder order;      // in which its axes lie
    int64_t dims[];
};
// Takes over the caller's count of s. NULL: no memory (s is then still the caller's).
PJRT_Buffer *pj_buffer_make_locked(PJRT_Memory *m, Storage *s, PJRT_Buffer_Type type,
                                   const int64_t *dims, size_t rank, size_t bytes);
PJRT_Error *pj_buffer_alloc(PJRT_Memory *m, PJRT_Buffer_Type type, const int64_t *dims, size_t rank,
                            PJRT_Buffer **out); // uninitialised contents
Storage *pj_buffer_hold(PJRT_Buffer *b);        // counted; NULL when deleted
void pj_storage_release(Storage *s); // takes and gives back the lock
PJRT_Error *pj_buffer_gone(const char *what); // the error for a deleted buffer

// Values of sub-byte types in their canonical byte: integers extended, floats with clear top bits.
PJRT_Error *pj_device_layout_check(const PJRT_Buffer_MemoryLayout *layout); // row-major or not said

// ---- other processes (world.c)
typedef struct PjSpread { // counted: a loaded executable's and its launches'
    atomic_int refs;
    RtSpread run;
} PjSpread;
// Joins the other processes where the framework says that there are some; else NULL.
PJRT_Error *pj_world_join(PJRT_Client *c, const PJRT_Client_Create_Args *args, const Options *o);
PjSpread *pj_spread_make(PJRT_Client *c, PJRT_Device *const *devices, size_t n); // NULL: no memory
void pj_spread_drop(PjSpread *s); // may be NULL

// ---- executables (exe.c, execute.c)
typedef struct Slot { // an argument or a result
    PJRT_Buffer_Type type;
    uint32_t rank;
    const int64_t *dims; // in the core's executable, or in PJRT_Executable.lying
    LayoutOrder order;   // in which they lie
    size_t bytes;
    int64_t alias;       // results: argument whose memory may be taken over, or -1
    bool donated;        // arguments
    PjMemoryKind kind;
} Slot;

struct PJRT_Executable {
    atomic_int refs;
    PJRT_Client *client;
    otrn_exe *exe;
    size_t num_args, num_results;
    Slot *args, *results;
    int64_t *lying; // sizes of arguments and results that do not lie row by row; NULL: there are none
    bool any_donated, calls_host;
    size_t logged;             // its number in the client's log, or what that was in an older one; 0: in none. Under client->lock
    const char **kinds;        // of the arguments, then of the results
    size_t *kind_sizes;
    uint32_t replicas, partitions;
    atomic_uint_fast64_t run_ns; // how long a run takes, from the last ones; 0: not known yet
    char fingerprint[SHA256_TEXT];
    char *program;             // as it came in, for OptimizedProgram; NULL after deserialising
    size_t program_size;
    bool is_xla;               // it came as HLO
    bool is_parted;            // program is that of one device, made when it was asked for
    char *options;             // the serialised compile options
    size_t options_size;
    // made when first asked for, under client->lock
    PJRT_NamedValue *cost;
    PJRT_Buffer_Type *result_types;
    int64_t *result_dims;
    size_t *result_ranks;
    PJRT_Layouts_MemoryLayout **layouts[2]; // of arguments, of results
    char **shardings[2];                    // of arguments, of results
    size_t *sharding_sizes[2];
};

struct PJRT_LoadedExecutable {
    PJRT_Executable *exe;
    size_t num_devices; // by replica, then partition
    PJRT_Device **devices;
    size_t num_here; // of them, those of this process, in that order
    PJRT_Device **here;
    PJRT_LogicalDeviceIds *logical; // of those here
    PjSpread *spread;               // NULL: all are
    atomic_bool deleted;
    Buf assignment; // DeviceAssignmentProto, in arena
    Ctx ctx;
    Arena arena; // all of this
};
void pj_exe_drop(PJRT_Executable *e);

// ---- what ran (runlog.c)
void pj_runlog_add(PJRT_Client *c, PJRT_Executable *e, uint64_t ns);
void pj_runlog_init(PJRT_Client *c);
void pj_runlog_fini(PJRT_Client *c); // lets go of all programs
void pj_report_print(const otrn_report *r, char *out, size_t out_bytes); // as JSON (report.c)

// ---- layouts, shardings, cross-host transfers and custom partitioner extensions (layouts.c, shardings.c, cross.c, partition.c)
extern const PJRT_Shardings_Extension pj_shardings_extension;
extern const PJRT_CrossHostTransfers_Extension pj_transfers_extension;
extern const PJRT_Custom_Partitioner_Extension pj_partitioner_extension;
// An OpSharding of a sharding's text ("2,1+2|0,1,2,3"), for which there is room at `at`: the text and 32 bytes.
char *pj_sharding_encode(char *at, const char *text, uint32_t devices);
const char *pj_shardings_text(const PJRT_Executable *e, Arena *a); // of the results, as HLO writes them; "": there are none to tell
// The program with calls of registered partitioners replaced by what these answer; *out is NULL when there are none, else
// the caller's to free (partition.c).
PJRT_Error *pj_partition(const void *bytes, size_t size, char **out, size_t *out_size);
extern const PJRT_Layouts_Extension pj_layouts_extension;

// ---- the profiler extension (profiler.c)
typedef struct PjProfilerExtension {
    PJRT_Extension_Base base;
    const void *profiler_api;
    int64_t traceme_context_id; // of arguments only
} PjProfilerExtension;
extern const PjProfilerExtension pj_profiler_extension;
void pj_profiler_note(PJRT_Executable *e, uint64_t took_ns); // a run has ended

// ---- every function we implement, one per row of the table
#define T(name)
#define EN(name, rows)
#define S(name, members)
#define HS(name, members)
#define NO(name, why)
#define FN(name, members) PJRT_Error *pj_##name(PJRT_##name##_Args *args);
#define FNV(name, members) void pj_##name(PJRT_##name##_Args *args);
#include "pjrt/pjrt_abi.def"
#undef T
#undef EN
#undef S
#undef HS
#undef NO
#undef FN
#undef FNV

#endif
