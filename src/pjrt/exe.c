// SPDX-License-Identifier: Apache-2.0
// exe.c — executables: compiling, loading, and the questions JAX asks about them.
//
// A serialised executable is the artifact itself: what JAX writes into its cache can be run by
// `otrn run`, and an artifact can be loaded into JAX. An executable is counted: a loaded executable
// holds one count and every handle from GetExecutable another.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pjrt/pjrt.h"

// ---- making and freeing

static void exe_free(PJRT_Executable *e) {
    PJRT_Client *c = e->client;
    for (int k = 0; k < 2; k++) {
        size_t n = k ? e->num_results : e->num_args;
        for (size_t i = 0; e->layouts[k] && i < n; i++)
            free(e->layouts[k][i]);
        free(e->layouts[k]);
    }
    if (e->exe)
        otrn_exe_free(e->exe);
    free(e->args);
    free(e->results);
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
        e->args[i].donated = otrn_exe_arg_donated(e->exe, i);
        e->any_donated |= e->args[i].donated;
    }
    for (size_t i = 0; i < e->num_results && !error; i++) {
        error = slot_init(&e->results[i], otrn_exe_result_type(e->exe, i));
        e->results[i].alias = otrn_exe_result_alias(e->exe, i);
    }
    return error;
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
    size_t most = e->num_args > e->num_results ? e->num_args : e->num_results;
    e->args = calloc(e->num_args + 1, sizeof *e->args);
    e->results = calloc(e->num_results + 1, sizeof *e->results);
    e->kinds = calloc(most + 1, sizeof *e->kinds);
    e->kind_sizes = calloc(most + 1, sizeof *e->kind_sizes);
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
    if (error) {
        exe_free(e);
        return error;
    }
    for (size_t i = 0; i < most; i++) {
        e->kinds[i] = pj_memory_kinds[PJ_DEVICE];
        e->kind_sizes[i] = strlen(e->kinds[i]);
    }
    size_t size;
    const void *bytes = otrn_exe_bytes(exe, &size);
    Hash128 h = hash128(bytes, size);
    snprintf(e->fingerprint, sizeof e->fingerprint, "%016llx%016llx", (unsigned long long)h.hi,
             (unsigned long long)h.lo);
    otrn_memory memory;
    otrn_exe_memory(exe, &memory);
    pj_client_limit(c, memory.capacity_bytes);
    *out = e;
    return PJ_OK;
}

static PJRT_Error *options_check(const CompileOptions *o, size_t devices) {
    if (o->num_partitions > 1)
        return pj_error(PJRT_Error_Code_UNIMPLEMENTED,
                        "opentrn runs a program on one device; this one was compiled for several "
                        "(num_partitions = %lld)",
                        (long long)o->num_partitions);
    if (o->num_replicas > 1)
        return pj_error(PJRT_Error_Code_UNIMPLEMENTED,
                        "opentrn runs a program on one device; this one wants num_replicas = %lld",
                        (long long)o->num_replicas);
    if (o->device_id >= (int64_t)devices)
        return pj_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "opentrn: the program is assigned to device %lld; there are %zu",
                        (long long)o->device_id, devices);
    return PJ_OK;
}

// Compiles a program, or loads an artifact: the core tells them apart. *device is where it will
// run.
static PJRT_Error *exe_compile(PJRT_Client *c, const void *bytes, size_t size, const void *options,
                               size_t options_size, PJRT_Executable **out, PJRT_Device **device) {
    CompileOptions o;
    PJRT_Error *error = pj_options_parse(options, options_size, &o);
    if (error)
        return error;
    otrn_env *env;
    error = options_check(&o, c->topology->count);
    if (!error)
        error = pj_client_env(c, o.overrides, o.num_overrides, &env);
    if (!error) {
        otrn_exe *exe;
        otrn_error err = {0};
        if (otrn_compile(env, bytes, size, "jax program", &exe, &err))
            error = pj_error_from(&err);
        else
            error = exe_make(c, exe, options, options_size, out);
    }
    if (!error)
        *device = c->device_pointers[o.device_id < 0 ? 0 : o.device_id];
    pj_options_fini(&o);
    return error;
}

static PJRT_Error *program_compile(PJRT_Client *c, const PJRT_Program *p, const void *options,
                                   size_t options_size, PJRT_Executable **out,
                                   PJRT_Device **device) {
    if (p->format_size != 4 || memcmp(p->format, "mlir", 4))
        return pj_error(PJRT_Error_Code_UNIMPLEMENTED,
                        "opentrn reads programs of format mlir; this one is of format %.*s",
                        (int)p->format_size, p->format);
    PJRT_Error *error = exe_compile(c, p->code, p->code_size, options, options_size, out, device);
    if (!error) {
        (*out)->program = bytes_dup(p->code, p->code_size);
        (*out)->program_size = p->code_size;
    }
    return error;
}

// Serialised assignment of one program to one device: 1 replica, 1 computation, its device.
static size_t assignment_encode(char *out, uint64_t id) {
    uint8_t ids[10], *at = (uint8_t *)out;
    size_t n = 0;
    do {
        ids[n++] = (uint8_t)((id & 0x7f) | (id > 0x7f ? 0x80 : 0));
        id >>= 7;
    } while (id);
    const uint8_t head[] = {1 << 3, 1, 2 << 3, 1, 3 << 3 | 2, (uint8_t)(n + 2), 1 << 3 | 2,
                            (uint8_t)n};
    memcpy(at, head, sizeof head);
    memcpy(at + sizeof head, ids, n);
    return sizeof head + n;
}

static PJRT_Error *loaded_make(PJRT_Executable *e, PJRT_Device *d, PJRT_LoadedExecutable **out) {
    PJRT_LoadedExecutable *l = calloc(1, sizeof *l);
    if (!l) {
        pj_exe_drop(e);
        return pj_error_nomem();
    }
    l->exe = e;
    l->device = d;
    atomic_init(&l->deleted, false);
    l->assignment_size = assignment_encode(l->assignment, (uint64_t)d->description->id);
    *out = l;
    return PJ_OK;
}

PJRT_Error *pj_Client_Compile(PJRT_Client_Compile_Args *args) {
    PJRT_Executable *e;
    PJRT_Device *d;
    PJRT_Error *error = program_compile(args->client, args->program, args->compile_options,
                                        args->compile_options_size, &e, &d);
    return error ? error : loaded_make(e, d, &args->executable);
}

PJRT_Error *pj_Compile(PJRT_Compile_Args *args) {
    PJRT_Device *d;
    if (!args->client)
        return pj_error(PJRT_Error_Code_UNIMPLEMENTED,
                        "opentrn compiles for a client; PJRT_Compile was called without one");
    return program_compile(args->client, args->program, args->compile_options,
                           args->compile_options_size, &args->executable, &d);
}

PJRT_Error *pj_Client_Load(PJRT_Client_Load_Args *args) {
    CompileOptions o;
    PJRT_Executable *e = args->executable;
    bool given = args->compile_options_size != 0;
    PJRT_Error *error = pj_options_parse(given ? args->compile_options : e->options,
                                         given ? args->compile_options_size : e->options_size, &o);
    if (error)
        return error;
    error = options_check(&o, args->client->topology->count);
    int64_t id = o.device_id < 0 ? 0 : o.device_id;
    pj_options_fini(&o);
    if (error)
        return error;
    atomic_fetch_add(&e->refs, 1);
    return loaded_make(e, args->client->device_pointers[id], &args->loaded_executable);
}

PJRT_Error *pj_Executable_DeserializeAndLoad(PJRT_Executable_DeserializeAndLoad_Args *args) {
    PJRT_Executable *e;
    PJRT_Device *d;
    bool given = PJRT_HAS(args, overridden_serialized_compile_options_size) &&
                 args->overridden_serialized_compile_options;
    PJRT_Error *error =
        exe_compile(args->client, args->serialized_executable, args->serialized_executable_size,
                    given ? args->overridden_serialized_compile_options : NULL,
                    given ? args->overridden_serialized_compile_options_size : 0, &e, &d);
    return error ? error : loaded_make(e, d, &args->loaded_executable);
}

PJRT_Error *pj_Executable_Destroy(PJRT_Executable_Destroy_Args *args) {
    pj_exe_drop(args->executable);
    return PJ_OK;
}

PJRT_Error *pj_LoadedExecutable_Destroy(PJRT_LoadedExecutable_Destroy_Args *args) {
    if (args->executable) {
        pj_exe_drop(args->executable->exe);
        free(args->executable);
    }
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
    args->addressable_devices = &args->executable->device;
    args->num_addressable_devices = 1;
    return PJ_OK;
}

PJRT_Error *pj_LoadedExecutable_AddressableDeviceLogicalIds(
    PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args *args) {
    args->addressable_device_logical_ids = &args->executable->logical;
    args->num_addressable_device_logical_ids = 1;
    return PJ_OK;
}

static void assignment_free(PJRT_DeviceAssignmentSerialized *s) { (void)s; } // the executable's

PJRT_Error *
pj_LoadedExecutable_GetDeviceAssignment(PJRT_LoadedExecutable_GetDeviceAssignment_Args *args) {
    args->serialized_bytes = args->executable->assignment;
    args->serialized_bytes_size = args->executable->assignment_size;
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
