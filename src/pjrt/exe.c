// SPDX-License-Identifier: Apache-2.0
// exe.c — executables: compiling, loading, and the questions JAX asks about them.
//
// A serialised executable is the artifact itself: what JAX writes into its cache can be run by
// `otrn run`, and an artifact can be loaded into JAX. An executable is counted: a loaded executable
// holds one count and every handle from GetExecutable another.
#define _GNU_SOURCE // memmem
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pb.h"
#include "pjrt/pjrt.h"

// ---- making and freeing

static void exe_free(PJRT_Executable *e) {
    PJRT_Client *c = e->client;
    for (int k = 0; k < 2; k++) {
        size_t n = k ? e->num_results : e->num_args;
        for (size_t i = 0; e->layouts[k] && i < n; i++)
            free(e->layouts[k][i]);
        free(e->layouts[k]);
        free(e->shardings[k]);
        free(e->sharding_sizes[k]);
    }
    if (e->exe)
        otrn_exe_free(e->exe);
    free(e->args);
    free(e->results);
    free(e->lying);
    free(e->kinds);
    free(e->kind_sizes);
    free(e->program);
    free(e->options);
    free(e->cost);
    free(e->result_types);
    free(e->result_dims);
    free(e->result_ranks);
    free(e);
    pj_lock(c);
    c->live--;
    pj_unlock(c);
}

void pj_exe_drop(PJRT_Executable *e) {
    if (e && atomic_fetch_sub(&e->refs, 1) == 1)
        exe_free(e);
}

static PJRT_Error *slot_init(Slot *s, const otrn_type *t) {
    *s = (Slot){.type = pj_buffer_type(t->dtype),
                .rank = (uint32_t)t->rank,
                .dims = t->dims,
                .alias = -1};
    return pj_shape_bytes(s->type, s->dims, s->rank, &s->bytes);
}

static PJRT_Error *exe_init_slots(PJRT_Executable *e) {
    PJRT_Error *error = PJ_OK;
    for (size_t i = 0; i < e->num_args && !error; i++) {
        error = slot_init(&e->args[i], otrn_exe_arg_type(e->exe, i));
        e->args[i].kind = otrn_exe_arg_pinned(e->exe, i) ? PJ_PINNED_HOST : PJ_DEVICE;
    }
    for (size_t i = 0; i < e->num_results && !error; i++) {
        error = slot_init(&e->results[i], otrn_exe_result_type(e->exe, i));
        e->results[i].alias = otrn_exe_result_alias(e->exe, i);
        if (e->results[i].alias >= 0) // what no result takes over stays the caller's
            e->any_donated = e->args[e->results[i].alias].donated = true;
        e->results[i].kind = otrn_exe_result_pinned(e->exe, i) ? PJ_PINNED_HOST : PJ_DEVICE;
    }
    for (size_t i = 0; i < e->num_args + e->num_results; i++) {
        const Slot *s = i < e->num_args ? &e->args[i] : &e->results[i - e->num_args];
        e->kinds[i] = pj_memory_kinds[s->kind];
        e->kind_sizes[i] = strlen(e->kinds[i]);
    }
    return error;
}

// Arguments and results in another order than row by row: the core's sizes are those of what lies there, JAX's of what
// the program means.
static PJRT_Error *exe_init_orders(void *arg, Ctx *ctx, Arena *a) {
    PJRT_Executable *e = arg;
    size_t n = e->num_args + e->num_results, size;
    const void *program = rt_exe_program(e->exe, &size);
    if (!program || !memmem(program, size, "mhlo.layout_mode", 16))
        return PJ_OK;
    const LayoutOrder *orders = rt_layouts(ctx, a, "jax program", program, size);
    if (!orders)
        return PJ_OK;
    e->lying = malloc((n + 1) * LAYOUT_RANK_MAX * sizeof *e->lying);
    if (!e->lying)
        return pj_error_nomem();
    for (size_t i = 0; i < n; i++) {
        Slot *s = i < e->num_args ? &e->args[i] : &e->results[i - e->num_args];
        int64_t *dims = e->lying + i * LAYOUT_RANK_MAX;
        if (!orders[i])
            continue;
        for (uint32_t k = 0; k < s->rank; k++)
            dims[layout_axis(orders[i], k)] = s->dims[k];
        s->dims = dims;
        s->order = orders[i];
    }
    return PJ_OK;
}

static char *bytes_dup(const void *p, size_t n) { // never empty, so that NULL means no memory
    char *d = malloc(n ? n : 1);
    if (d && n)
        memcpy(d, p, n);
    return d;
}

// Takes over exe, also on failure.
static PJRT_Error *exe_make(PJRT_Client *c, otrn_exe *exe, const void *options,
                            size_t options_size, PJRT_Executable **out) {
    PJRT_Executable *e = calloc(1, sizeof *e);
    if (!e) {
        otrn_exe_free(exe);
        return pj_error_nomem();
    }
    atomic_init(&e->refs, 1);
    e->client = c;
    e->exe = exe;
    e->num_args = otrn_exe_num_args(exe);
    e->num_results = otrn_exe_num_results(exe);
    e->calls_host = otrn_exe_calls_host(exe);
    e->partitions = otrn_exe_partitions(exe);
    e->replicas = 1;
    size_t slots = e->num_args + e->num_results;
    e->args = calloc(e->num_args + 1, sizeof *e->args);
    e->results = calloc(e->num_results + 1, sizeof *e->results);
    e->kinds = calloc(slots + 1, sizeof *e->kinds);
    e->kind_sizes = calloc(slots + 1, sizeof *e->kind_sizes);
    e->options = bytes_dup(options, options_size);
    e->options_size = options_size;
    pj_lock(c);
    c->live++;
    pj_unlock(c);
    PJRT_Error *error = PJ_OK;
    if (!e->args || !e->results || !e->kinds || !e->kind_sizes || !e->options)
        error = pj_error_nomem();
    if (!error)
        error = exe_init_slots(e);
    if (!error)
        error = pj_try(exe_init_orders, e);
    if (error) {
        exe_free(e);
        return error;
    }
    size_t size;
    const void *bytes = otrn_exe_bytes(exe, &size);
    Sha256 h = sha256(bytes, size);
    sha256_print(&h, e->fingerprint);
    otrn_memory memory = OTRN_MEMORY_INIT;
    otrn_exe_memory(exe, &memory, NULL);
    pj_client_limit(c, memory.capacity_bytes);
    *out = e;
    return PJ_OK;
}

// Does the assignment fit the program and the client?
static PJRT_Error *options_check(const CompileOptions *o, const PJRT_Executable *e, size_t devices) {
    if (o->num_partitions > 1 && o->num_partitions != e->partitions)
        return pj_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "opentrn: the program is written for %u partitions and compiled for %lld",
                        e->partitions, (long long)o->num_partitions);
    if (o->num_replicas < 1 || o->num_replicas > OTRN_MAX_DEVICES ||
        o->num_replicas * e->partitions > OTRN_MAX_DEVICES)
        return pj_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "opentrn: %lld replicas of %u partitions; there can be %d devices",
                        (long long)o->num_replicas, e->partitions, OTRN_MAX_DEVICES);
    size_t want = (size_t)o->num_replicas * e->partitions;
    if (want > devices || (o->num_devices && o->num_devices != want))
        return pj_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "opentrn: the program runs on %zu devices, %zu are assigned and %zu there "
                        "are (option devices, OPENTRN_DEVICES)",
                        want, o->num_devices, devices);
    for (size_t i = 0; i < o->num_devices; i++)
        if (o->device_ids[i] < 0 || o->device_ids[i] >= (int64_t)devices)
            return pj_error(PJRT_Error_Code_INVALID_ARGUMENT,
                            "opentrn: the program is assigned to device %lld; there are %zu",
                            (long long)o->device_ids[i], devices);
    return PJ_OK;
}

// Compiles a program, or loads an artifact: the core tells them apart.
static PJRT_Error *exe_compile(PJRT_Client *c, const void *bytes, size_t size,
                               const CompileOptions *o, const void *options, size_t options_size,
                               PJRT_Executable **out) {
    otrn_env *env;
    PJRT_Error *error = pj_client_env(c, o->overrides, o->num_overrides, &env);
    if (error)
        return error;
    rt_env_join(env, c->net);
    otrn_exe *exe;
    otrn_error err = OTRN_ERROR_INIT;
    otrn_status s = otrn_compile(env, bytes, size, "jax program", &exe, &err);
    if (s == OTRN_NOMEM && pj_storage_drain(c))
        s = otrn_compile(env, bytes, size, "jax program", &exe, &err);
    if (s)
        return pj_error_from(&err);
    error = exe_make(c, exe, options, options_size, out);
    if (error)
        return error;
    (*out)->replicas = o->num_replicas > 0 ? (uint32_t)o->num_replicas : 1;
    error = options_check(o, *out, c->topology->count);
    if (error)
        pj_exe_drop(*out);
    return error;
}

static bool is_format(const PJRT_Program *p, const char *name) {
    return p->format_size == strlen(name) && !memcmp(p->format, name, p->format_size);
}

// XLA's own form (torch_xla, TensorFlow): as StableHLO from here on, which is also what the program is shown as.
// So is a program that does not say how many devices it is for, where the options do.
typedef struct Foreign {
    PJRT_Program p; // in: HLO; out: StableHLO, malloc'd
    int64_t partitions;
    bool open;
} Foreign;

static PJRT_Error *foreign_read(void *arg, Ctx *ctx, Arena *a) {
    Foreign *f = arg;
    Buf out = {.arena = a};
    rt_stablehlo(ctx, a, "hlo program", f->p.code, f->p.code_size, f->partitions, f->open, &out);
    f->p.code = bytes_dup(out.at, out.n);
    f->p.code_size = out.n;
    return f->p.code ? PJ_OK : pj_error_nomem();
}

static PJRT_Error *mlir_compile(PJRT_Client *c, const PJRT_Program *p, const CompileOptions *o, const void *options,
                                size_t options_size, PJRT_Executable **out) {
    char *cut;
    size_t size = p->code_size;
    PJRT_Error *error = pj_partition(p->code, p->code_size, &cut, &size);
    const void *code = cut ? cut : p->code;
    if (!error)
        error = exe_compile(c, code, size, o, options, options_size, out);
    if (!error) {
        (*out)->program = bytes_dup(code, size);
        (*out)->program_size = size;
    }
    free(cut);
    return error;
}

static PJRT_Error *program_compile(PJRT_Client *c, const PJRT_Program *p, const CompileOptions *o, const void *options,
                                   size_t options_size, PJRT_Executable **out) {
    bool mlir = is_format(p, "mlir");
    if (mlir && (o->num_partitions <= 1 || memmem(p->code, p->code_size, "num_partitions", 14)))
        return mlir_compile(c, p, o, options, options_size, out);
    if (!mlir && !is_format(p, "hlo"))
        return pj_error(PJRT_Error_Code_UNIMPLEMENTED, "opentrn reads programs of format mlir and hlo; this one is of format %.*s",
                        (int)p->format_size, p->format);
    Foreign f = {.p = *p, .partitions = o->num_partitions, .open = o->open_results};
    PJRT_Error *error = pj_try(foreign_read, &f);
    if (error)
        return error;
    error = mlir_compile(c, &f.p, o, options, options_size, out);
    if (!error)
        (*out)->is_xla = !mlir;
    free(f.p.code);
    return error;
}

// ---- loading

// DeviceAssignmentProto: 1 replicas, 2 partitions, 3 for each partition its replicas' devices.
static void assignment_encode(PJRT_LoadedExecutable *l) {
    const PJRT_Executable *e = l->exe;
    Buf *out = &l->assignment;
    out->arena = &l->arena;
    pb_put_int(out, 1, e->replicas);
    pb_put_int(out, 2, e->partitions);
    int64_t *ids = ARENA_NEWN(&l->arena, int64_t, e->replicas);
    for (uint32_t p = 0; p < e->partitions; p++) {
        for (uint32_t r = 0; r < e->replicas; r++)
            ids[r] = l->devices[r * e->partitions + p]->description->id;
        Buf computation = {.arena = &l->arena};
        pb_put_ints(&computation, 1, ids, e->replicas);
        pb_put_bytes(out, 3, computation.at, computation.n);
    }
}

static void loaded_free(PJRT_LoadedExecutable *l) {
    pj_exe_drop(l->exe);
    pj_spread_drop(l->spread);
    arena_fini(&l->arena);
    free(l);
}

static void loaded_init(PJRT_LoadedExecutable *l, PJRT_Client *c, const CompileOptions *o) {
    const PJRT_Executable *e = l->exe;
    l->num_devices = (size_t)e->replicas * e->partitions;
    l->devices = ARENA_NEWN(&l->arena, PJRT_Device *, l->num_devices);
    l->here = ARENA_NEWN(&l->arena, PJRT_Device *, l->num_devices);
    l->logical = ARENA_NEWN(&l->arena, PJRT_LogicalDeviceIds, l->num_devices);
    size_t first = l->num_devices <= c->topology->here ? c->topology->first : 0; // when nobody says which
    for (size_t i = 0; i < l->num_devices; i++) {
        l->devices[i] = c->device_pointers[o->num_devices ? (size_t)o->device_ids[i] : first + i];
        if (!pj_device_is_here(l->devices[i]))
            continue;
        l->logical[l->num_here].replica = (int)(i / e->partitions);
        l->logical[l->num_here].partition = (int)(i % e->partitions);
        l->here[l->num_here++] = l->devices[i];
    }
    assignment_encode(l);
    if (l->num_here < l->num_devices && !(l->spread = pj_spread_make(c, l->devices, l->num_devices)))
        ctx_fail(&l->ctx, OTRN_NOMEM, NO_PLACE, "out of memory");
}

// Takes over the count of e, also on failure.
static PJRT_Error *loaded_make(PJRT_Executable *e, PJRT_Client *c, const CompileOptions *o,
                               PJRT_LoadedExecutable **out) {
    otrn_error err = OTRN_ERROR_INIT;
    if (otrn_exe_check_host(e->exe, &err)) {
        pj_exe_drop(e);
        return pj_error_from(&err);
    }
    PJRT_LoadedExecutable *l = calloc(1, sizeof *l);
    if (!l) {
        pj_exe_drop(e);
        return pj_error_nomem();
    }
    l->exe = e;
    atomic_init(&l->deleted, false);
    arena_init(&l->arena, &l->ctx);
    jmp_buf here;
    if (!CTX_TRY(&l->ctx, here)) {
        loaded_free(l);
        return pj_error_nomem();
    }
    loaded_init(l, c, o);
    l->ctx.on_fail = NULL;
    *out = l;
    return PJ_OK;
}

PJRT_Error *pj_Client_Compile(PJRT_Client_Compile_Args *args) {
    PJRT_Executable *e;
    CompileOptions o;
    PJRT_Error *error = pj_options_parse(args->compile_options, args->compile_options_size, &o);
    if (error)
        return error;
    error = program_compile(args->client, args->program, &o, args->compile_options,
                            args->compile_options_size, &e);
    if (!error)
        error = loaded_make(e, args->client, &o, &args->executable);
    pj_options_fini(&o);
    return error;
}

// A client with the topology's target and devices, for a compilation that has none.
static PJRT_Error *client_for(const PJRT_TopologyDescription *t, PJRT_Client **out) {
    PJRT_NamedValue options[2] = {0};
    char devices[24];
    int n = snprintf(devices, sizeof devices, "%zu", t->count);
    const char *names[2] = {"target", "devices"}, *values[2] = {t->chip, devices};
    const size_t sizes[2] = {strlen(t->chip), (size_t)n};
    for (int i = 0; i < 2; i++)
        options[i] = (PJRT_NamedValue){.struct_size = sizeof *options,
                                       .name = names[i],
                                       .name_size = strlen(names[i]),
                                       .type = PJRT_NamedValue_kString,
                                       .string_value = values[i],
                                       .value_size = sizes[i]};
    PJRT_Client_Create_Args args = {.struct_size = sizeof args, .create_options = options, .num_options = 2};
    PJRT_Error *error = pj_Client_Create(&args);
    *out = args.client;
    return error;
}

PJRT_Error *pj_Compile(PJRT_Compile_Args *args) {
    CompileOptions o;
    PJRT_Client *c = args->client;
    PJRT_Error *error = pj_options_parse(args->compile_options, args->compile_options_size, &o);
    if (error)
        return error;
    if (!c)
        error = client_for(args->topology, &c);
    if (!error)
        error = program_compile(c, args->program, &o, args->compile_options, args->compile_options_size,
                                &args->executable);
    if (c && !args->client) // the executable keeps it
        pj_Client_Destroy(&(PJRT_Client_Destroy_Args){.struct_size = sizeof(PJRT_Client_Destroy_Args), .client = c});
    pj_options_fini(&o);
    return error;
}

// The same program for another client: its artifact is loaded there.
static PJRT_Error *exe_for(PJRT_Client *c, PJRT_Executable *e, const CompileOptions *o, PJRT_Executable **out) {
    if (e->client == c) {
        atomic_fetch_add(&e->refs, 1);
        *out = e;
        return PJ_OK;
    }
    size_t size;
    const void *bytes = otrn_exe_bytes(e->exe, &size);
    return exe_compile(c, bytes, size, o, e->options, e->options_size, out);
}

PJRT_Error *pj_Client_Load(PJRT_Client_Load_Args *args) {
    CompileOptions o;
    PJRT_Executable *e = args->executable;
    bool given = args->compile_options_size != 0;
    PJRT_Error *error = pj_options_parse(given ? args->compile_options : e->options,
                                         given ? args->compile_options_size : e->options_size, &o);
    if (error)
        return error;
    error = options_check(&o, e, args->client->topology->count);
    if (!error)
        error = exe_for(args->client, e, &o, &e);
    if (!error)
        error = loaded_make(e, args->client, &o, &args->loaded_executable);
    pj_options_fini(&o);
    return error;
}

PJRT_Error *pj_Executable_DeserializeAndLoad(PJRT_Executable_DeserializeAndLoad_Args *args) {
    PJRT_Executable *e;
    CompileOptions o;
    bool given = PJRT_HAS(args, overridden_serialized_compile_options_size) &&
                 args->overridden_serialized_compile_options;
    const void *options = given ? args->overridden_serialized_compile_options : NULL;
    size_t size = given ? args->overridden_serialized_compile_options_size : 0;
    PJRT_Error *error = pj_options_parse(options, size, &o);
    if (error)
        return error;
    error = exe_compile(args->client, args->serialized_executable, args->serialized_executable_size,
                        &o, options, size, &e);
    if (!error)
        error = loaded_make(e, args->client, &o, &args->loaded_executable);
    pj_options_fini(&o);
    return error;
}

PJRT_Error *pj_Executable_Destroy(PJRT_Executable_Destroy_Args *args) {
    pj_exe_drop(args->executable);
    return PJ_OK;
}

PJRT_Error *pj_LoadedExecutable_Destroy(PJRT_LoadedExecutable_Destroy_Args *args) {
    if (args->executable)
        loaded_free(args->executable);
    return PJ_OK;
}

// ---- loaded executables

PJRT_Error *pj_LoadedExecutable_GetExecutable(PJRT_LoadedExecutable_GetExecutable_Args *args) {
    args->executable = args->loaded_executable->exe;
    atomic_fetch_add(&args->executable->refs, 1);
    return PJ_OK;
}

PJRT_Error *
pj_LoadedExecutable_AddressableDevices(PJRT_LoadedExecutable_AddressableDevices_Args *args) {
    args->addressable_devices = args->executable->here;
    args->num_addressable_devices = args->executable->num_here;
    return PJ_OK;
}

PJRT_Error *pj_LoadedExecutable_AddressableDeviceLogicalIds(
    PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args *args) {
    args->addressable_device_logical_ids = args->executable->logical;
    args->num_addressable_device_logical_ids = args->executable->num_here;
    return PJ_OK;
}

static void assignment_free(PJRT_DeviceAssignmentSerialized *s) { (void)s; } // the executable's

PJRT_Error *
pj_LoadedExecutable_GetDeviceAssignment(PJRT_LoadedExecutable_GetDeviceAssignment_Args *args) {
    args->serialized_bytes = (const char *)args->executable->assignment.at;
    args->serialized_bytes_size = args->executable->assignment.n;
    args->serialized_device_assignment = (PJRT_DeviceAssignmentSerialized *)args->executable;
    args->serialized_device_assignment_deleter = assignment_free;
    return PJ_OK;
}

PJRT_Error *pj_LoadedExecutable_Delete(PJRT_LoadedExecutable_Delete_Args *args) {
    atomic_store(&args->executable->deleted, true);
    return PJ_OK;
}

PJRT_Error *pj_LoadedExecutable_IsDeleted(PJRT_LoadedExecutable_IsDeleted_Args *args) {
    args->is_deleted = atomic_load(&args->executable->deleted);
    return PJ_OK;
}

PJRT_Error *pj_LoadedExecutable_Fingerprint(PJRT_LoadedExecutable_Fingerprint_Args *args) {
    args->executable_fingerprint = args->executable->exe->fingerprint;
    args->executable_fingerprint_size = strlen(args->executable_fingerprint);
    return PJ_OK;
}
