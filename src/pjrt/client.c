// SPDX-License-Identifier: Apache-2.0
// client.c — the client: made from the option table, opens the core, lives as long as its objects.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pjrt/pjrt.h"

// ---- options

// The value of a create option as text; options given by the user arrive as strings, ours as
// numbers.
static char *value_text(const PJRT_NamedValue *v) {
    char text[64];
    switch (v->type) {
    case PJRT_NamedValue_kString: return strndup(v->string_value, v->value_size);
    case PJRT_NamedValue_kInt64:
        snprintf(text, sizeof text, "%lld", (long long)v->int64_value);
        break;
    case PJRT_NamedValue_kBool: snprintf(text, sizeof text, v->bool_value ? "on" : "off"); break;
    default: return NULL;
    }
    return strdup(text);
}

// Keeps what the option table knows; frameworks send other names too, which mean nothing to us.
static PJRT_Error *client_take_options(PJRT_Client *c, const PJRT_NamedValue *given, size_t n) {
    c->options = calloc(n ? n : 1, sizeof *c->options);
    if (!c->options)
        return pj_error_nomem();
    for (size_t i = 0; i < n; i++) {
        int id = opt_find(given[i].name, given[i].name_size);
        if (id < 0)
            continue;
        char *text = value_text(&given[i]);
        if (!text)
            return pj_error(PJRT_Error_Code_INVALID_ARGUMENT,
                            "opentrn: option %s wants text, a whole number or a truth value",
                            opt_rows[id].name);
        c->options[c->num_options++] = (otrn_option){opt_rows[id].name, text};
    }
    return PJ_OK;
}

PJRT_Error *pj_options_init(Options *o, const otrn_option *given, size_t n) {
    Ctx ctx = {0};
    jmp_buf at;
    if (!CTX_TRY(&ctx, at))
        return pj_error_from(&ctx.err);
    opt_init(&ctx, o);
    for (size_t i = 0; i < n; i++)
        opt_set(&ctx, o, given[i].name, given[i].value, "client option");
    return PJ_OK;
}

// ---- the core, opened once per set of compiler options

static char *env_key(const otrn_option *overrides, size_t n) {
    size_t size = 1;
    for (size_t i = 0; i < n; i++)
        size += strlen(overrides[i].name) + strlen(overrides[i].value) + 2;
    char *key = malloc(size), *at = key;
    if (!key)
        return NULL;
    *at = 0;
    for (size_t i = 0; i < n; i++)
        at += sprintf(at, "%s=%s\n", overrides[i].name, overrides[i].value);
    return key;
}

static Env *env_find_locked(PJRT_Client *c, const char *key) {
    Env *e = c->envs;
    while (e && strcmp(e->key, key))
        e = e->next;
    return e;
}

static void env_free(Env *e) {
    if (e->env)
        otrn_close(e->env);
    for (size_t i = 0; i < e->num_values; i++)
        free(e->values[i]);
    free(e->key);
    free(e);
}

// All environments of a client call the same functions: those of its first.
static void env_share_host(PJRT_Client *c, Env *e) {
    pj_lock(c);
    Env *first = c->envs;
    while (first && first->next)
        first = first->next;
    pj_unlock(c);
    if (first)
        otrn_host_share(e->env, first->env);
}

// The core borrows option values, so the environment keeps its own copies.
static PJRT_Error *env_make(PJRT_Client *c, const otrn_option *overrides, size_t n, Env **out) {
    size_t total = c->num_options + n;
    otrn_option *all = malloc((total + 1) * sizeof *all);
    Env *e = calloc(1, sizeof *e);
    bool ok = all && e && (e->key = env_key(overrides, n));
    if (ok && c->num_options)
        memcpy(all, c->options, c->num_options * sizeof *all);
    for (size_t i = 0; ok && i < n; i++) {
        ok = (e->values[i] = strdup(overrides[i].value)) != NULL;
        e->num_values += ok;
        all[c->num_options + i] = (otrn_option){overrides[i].name, e->values[i]};
    }
    PJRT_Error *error = ok ? PJ_OK : pj_error_nomem();
    otrn_error err = OTRN_ERROR_INIT;
    if (ok && otrn_open(all, total, &e->env, &err)) {
        e->env = NULL;
        error = pj_error_from(&err);
    }
    if (e && e->env) {
        env_share_host(c, e);
        otrn_cache_behind(e->env);
        otrn_stop_on_interrupt(e->env);
        opentrn_draws_on(e->env);
    }
    free(all);
    if (error && e)
        env_free(e);
    *out = e;
    return error;
}

PJRT_Error *pj_client_env(PJRT_Client *c, const otrn_option *overrides, size_t n, otrn_env **out) {
    char *key = env_key(overrides, n);
    if (!key)
        return pj_error_nomem();
    pj_lock(c);
    Env *found = env_find_locked(c, key);
    pj_unlock(c);
    if (!found) {
        Env *made;
        PJRT_Error *error = env_make(c, overrides, n, &made);
        if (error) {
            free(key);
            return error;
        }
        pj_lock(c);
        found = env_find_locked(c, key); // another thread may have been faster
        if (!found) {
            made->next = c->envs;
            c->envs = found = made;
            made = NULL;
        }
        pj_unlock(c);
        if (made)
            env_free(made);
    }
    free(key);
    *out = found->env;
    return PJ_OK;
}

// ---- life

static void client_free(PJRT_Client *c) {
    while (c->envs) {
        Env *e = c->envs;
        c->envs = e->next;
        env_free(e);
    }
    size_t devices = c->topology ? c->topology->count : 0;
    for (size_t i = 0; c->memories && i < devices * PJ_MEMORIES; i++)
        pj_memory_fini(&c->memories[i]);
    pj_storage_pool_fini(&c->pool);
    pj_queue_close(c->queue);
    pj_queue_close(c->transfers);
    net_close(c->net);
    net_root_close(c->root);
    for (size_t i = 0; i < c->num_options; i++)
        free((char *)c->options[i].value);
    free(c->options);
    free(c->devices);
    free(c->device_pointers);
    free(c->memories);
    free(c->memory_pointers);
    pj_topology_free(c->topology);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

void pj_unlock(PJRT_Client *c) {
    Storage *foreign = c->foreign;
    c->foreign = NULL;
    bool last = c->destroyed && !c->live;
    pthread_mutex_unlock(&c->lock);
    while (foreign) {
        Storage *s = foreign;
        foreign = s->next;
        if (s->on_delete)
            s->on_delete(s->data, s->on_delete_arg);
        free(s);
    }
    if (last)
        client_free(c);
}

static PJRT_Error *client_open(PJRT_Client *c, const PJRT_Client_Create_Args *args) {
    Options o;
    otrn_env *env;
    PJRT_Error *e = client_take_options(c, args->create_options, args->num_options);
    if (!e)
        e = pj_options_init(&o, c->options, c->num_options);
    if (!e && (!(c->queue = pj_queue_make()) || !(c->transfers = pj_queue_make())))
        e = pj_error_nomem();
    if (!e)
        e = pj_client_env(c, NULL, 0, &env);
    if (!e) {
        const char *how = o.val[OPT_DISPATCH];
        c->log.on = opt_on(&o, OPT_TIMING);
        c->dispatch = !strcmp(how, "async") ? PJ_ASYNC : !strcmp(how, "inline") ? PJ_INLINE : PJ_AUTO;
        if (strcmp(o.val[OPT_NAN], "off")) // errors are raised where the user called
            c->dispatch = PJ_INLINE;
        e = pj_topology_make(&o, env, &c->topology);
    }
    if (!e)
        e = pj_world_join(c, args, &o);
    if (!e && c->net)
        e = pj_topology_widen(&c->topology, c->net);
    if (!e)
        e = pj_devices_make(c);
    if (!e)
        pj_client_limit(c, otrn_hbm_bytes(env));
    return e;
}

PJRT_Error *pj_Client_Create(PJRT_Client_Create_Args *args) {
    PJRT_Client *c = calloc(1, sizeof *c);
    if (!c)
        return pj_error_nomem();
    pthread_mutex_init(&c->lock, NULL);
    PJRT_Error *e = client_open(c, args);
    if (e) {
        client_free(c);
        return e;
    }
    pj_runlog_init(c);
    args->client = c;
    return PJ_OK;
}

// What was launched still runs, and keeps the client until it has. A short wait lets the usual case
// end before the process does; a launch that calls back into the host may need what the caller
// holds, so the wait has an end.
PJRT_Error *pj_Client_Destroy(PJRT_Client_Destroy_Args *args) {
    PJRT_Client *c = args->client;
    pj_queue_drain(c->queue, 2000);
    pj_queue_drain(c->transfers, 2000);
    pj_lock(c);
    c->live++; // the log may hold the last executable
    c->destroyed = true;
    pj_unlock(c);
    pj_runlog_fini(c);
    pj_lock(c);
    c->live--;
    pj_unlock(c);
    return PJ_OK;
}

void pj_client_limit(PJRT_Client *c, uint64_t capacity_bytes) {
    pj_lock(c);
    for (size_t i = 0; i < c->topology->count; i++)
        if (!pj_device_memory(&c->devices[i])->use.limit)
            pj_device_memory(&c->devices[i])->use.limit = (int64_t)capacity_bytes;
    pj_unlock(c);
}

// ---- queries

PJRT_Error *pj_Client_PlatformName(PJRT_Client_PlatformName_Args *args) {
    args->platform_name = args->client->topology->platform;
    args->platform_name_size = strlen(args->platform_name);
    return PJ_OK;
}

PJRT_Error *pj_Client_PlatformVersion(PJRT_Client_PlatformVersion_Args *args) {
    args->platform_version = args->client->topology->version;
    args->platform_version_size = strlen(args->platform_version);
    return PJ_OK;
}

PJRT_Error *pj_Client_ProcessIndex(PJRT_Client_ProcessIndex_Args *args) {
    args->process_index = (int)args->client->topology->process;
    return PJ_OK;
}

PJRT_Error *pj_Client_Devices(PJRT_Client_Devices_Args *args) {
    args->devices = args->client->device_pointers;
    args->num_devices = args->client->topology->count;
    return PJ_OK;
}

PJRT_Error *pj_Client_AddressableDevices(PJRT_Client_AddressableDevices_Args *args) {
    args->addressable_devices = args->client->device_pointers + args->client->topology->first;
    args->num_addressable_devices = args->client->topology->here;
    return PJ_OK;
}

static PJRT_Error *client_device(PJRT_Client *c, int id, PJRT_Device **out) {
    if (id < 0 || (size_t)id >= c->topology->count)
        return pj_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "opentrn: there is no device %d; there are %zu", id, c->topology->count);
    *out = &c->devices[id];
    return PJ_OK;
}

PJRT_Error *pj_Client_LookupDevice(PJRT_Client_LookupDevice_Args *args) {
    return client_device(args->client, args->id, &args->device);
}

PJRT_Error *pj_Client_LookupAddressableDevice(PJRT_Client_LookupAddressableDevice_Args *args) {
    const PJRT_TopologyDescription *t = args->client->topology;
    int id = args->local_hardware_id;
    if (id < 0 || (size_t)id >= t->here)
        return pj_error(PJRT_Error_Code_INVALID_ARGUMENT, "opentrn: this process has no device %d; it has %zu", id, t->here);
    return client_device(args->client, (int)t->first + id, &args->addressable_device);
}

PJRT_Error *pj_Client_AddressableMemories(PJRT_Client_AddressableMemories_Args *args) {
    args->addressable_memories = args->client->memory_pointers + args->client->topology->first * PJ_MEMORIES;
    args->num_addressable_memories = args->client->topology->here * PJ_MEMORIES;
    return PJ_OK;
}

PJRT_Error *pj_Client_TopologyDescription(PJRT_Client_TopologyDescription_Args *args) {
    args->topology = args->client->topology; // stays ours
    return PJ_OK;
}

PJRT_Error *pj_Client_DefaultDeviceAssignment(PJRT_Client_DefaultDeviceAssignment_Args *args) {
    size_t devices = args->client->topology->count, want;
    if (args->num_replicas < 1 || args->num_partitions < 1 ||
        __builtin_mul_overflow((size_t)args->num_replicas, (size_t)args->num_partitions, &want) ||
        want > devices || want > args->default_assignment_size)
        return pj_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "opentrn: %d replicas of %d partitions do not fit %zu devices",
                        args->num_replicas, args->num_partitions, devices);
    for (size_t i = 0; i < want; i++)
        args->default_assignment[i] = (int)i;
    return PJ_OK;
}

// Every page of the host can be reached as it is.
PJRT_Error *pj_Client_DmaMap(PJRT_Client_DmaMap_Args *args) {
    (void)args;
    return PJ_OK;
}

PJRT_Error *pj_Client_DmaUnmap(PJRT_Client_DmaUnmap_Args *args) {
    (void)args;
    return PJ_OK;
}

// Who comes and goes the world knows itself (net.h); an error here would be fatal.
PJRT_Error *pj_Client_UpdateGlobalProcessInfo(PJRT_Client_UpdateGlobalProcessInfo_Args *args) {
    (void)args;
    return PJ_OK;
}
