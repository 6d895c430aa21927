// SPDX-License-Identifier: Apache-2.0
// world.c — a client among those of other processes: the framework's store as the world's, or a root; runs of which some devices are here.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pjrt/pjrt.h"
#include "rt/job.h"
#include "rt/rt.h"

#define JOIN_MS 300000 // for all processes to make their client
#define LAST_MS 60000  // for arrays on their way when the program ends

// ---- the store: JAX's, whose keys have the platform's name in front

static PJRT_Error *callback_error(PJRT_Error_Code code, const char *text, size_t n) {
    return pj_error(code, "%.*s", (int)n, text);
}

// The functions that make an error are handed over by address.
typedef PJRT_Error *ErrorFn(PJRT_Error_Code code, const char *text, size_t n);

typedef struct Store {
    const PJRT_Client_Create_Args *args;
    ErrorFn *error;
} Store;

static bool told(PJRT_Error *e, char *why, size_t why_bytes) {
    if (!e)
        return false;
    PJRT_Error_Message_Args m = {.struct_size = sizeof m, .error = e};
    pj_Error_Message(&m);
    snprintf(why, why_bytes, "%.*s", (int)m.message_size, m.message);
    pj_Error_Destroy(&(PJRT_Error_Destroy_Args){.struct_size = sizeof(PJRT_Error_Destroy_Args), .error = e});
    return true;
}

static bool store_put(void *arg, const char *key, const char *value, char *why, size_t why_bytes) {
    Store *s = arg;
    PJRT_KeyValuePutCallback_Args put = {.struct_size = sizeof put, .key = key, .key_size = strlen(key), .value = value,
                                         .value_size = strlen(value), .callback_error = &s->error,
                                         .user_arg = s->args->kv_put_user_arg};
    return !told(s->args->kv_put_callback(&put), why, why_bytes);
}

static bool store_get(void *arg, const char *key, unsigned timeout_ms, char *value, size_t bytes, char *why, size_t why_bytes) {
    Store *s = arg;
    PJRT_KeyValueGetCallback_Args get = {.struct_size = sizeof get, .key = key, .key_size = strlen(key),
                                         .timeout_in_ms = (int)timeout_ms, .callback_error = &s->error,
                                         .user_arg = s->args->kv_get_user_arg};
    if (told(s->args->kv_get_callback(&get), why, why_bytes))
        return false;
    bool fits = get.value_size < bytes;
    snprintf(value, bytes, "%.*s", (int)get.value_size, get.value);
    if (get.value_deleter_callback)
        get.value_deleter_callback(get.value);
    if (!fits)
        snprintf(why, why_bytes, "%s holds %zu bytes", key, get.value_size);
    return fits;
}

static int64_t create_option(const PJRT_Client_Create_Args *args, const char *name, int64_t otherwise) {
    for (size_t i = 0; i < args->num_options; i++) {
        const PJRT_NamedValue *v = &args->create_options[i];
        if (v->type == PJRT_NamedValue_kInt64 && v->name_size == strlen(name) && !memcmp(v->name, name, v->name_size))
            return v->int64_value;
    }
    return otherwise;
}

typedef struct ChipWork {
    const PJRT_TopologyDescription *mine;
    const Options *o;
    char text[96];
} ChipWork;

static PJRT_Error *chip_text(void *arg, Ctx *ctx, Arena *a) {
    ChipWork *w = arg;
    ChipFile chip;
    chipfile_load(ctx, a, w->mine->chip, w->o->val[OPT_CHIPS], &chip);
    rt_chip_text(a, w->mine->target, w->mine->device_cores, &chip, w->text, sizeof w->text);
    return PJ_OK;
}

static PJRT_Error *join(PJRT_Client *c, const Options *o, NetSelf self, const NetKv *kv) {
    ChipWork chip = {.mine = c->topology, .o = o};
    char why[NET_WHY_BYTES] = "";
    PJRT_Error *e = pj_try(chip_text, &chip);
    if (e)
        return e;
    self.devices = (uint32_t)c->topology->count;
    self.release = OTRN_RELEASE;
    self.chip = chip.text;
    self.fabric = o->val[OPT_FABRIC];
    self.timeout_ms = JOIN_MS;
    job_limits(o, &self);
    if (net_open(&self, kv, &c->net, why, sizeof why))
        return PJ_OK;
    return pj_error(PJRT_Error_Code_UNAVAILABLE, "opentrn: the processes of this job cannot work together: %s", why);
}

typedef struct JobWork {
    const Options *o;
    Job job;
    bool found;
} JobWork;

static PJRT_Error *job_read(void *arg, Ctx *ctx, Arena *a) {
    JobWork *w = arg;
    (void)a;
    w->found = job_find(ctx, w->o, &w->job);
    return PJ_OK;
}

// No coordinator of a framework, but a root: the processes of the job meet there.
static PJRT_Error *join_at_root(PJRT_Client *c, const Options *o) {
    JobWork w = {.o = o};
    char why[NET_WHY_BYTES] = "";
    PJRT_Error *e = pj_try(job_read, &w);
    if (e || !w.found)
        return e;
    if (!net_root_open(w.job.root, w.job.secret, w.job.rank == 0, JOIN_MS, &c->root, why, sizeof why))
        return pj_error(PJRT_Error_Code_UNAVAILABLE, "opentrn: process %u of %u cannot meet the others: %s", w.job.rank, w.job.world, why);
    NetKv kv = net_root_kv(c->root);
    return join(c, o, (NetSelf){.process = w.job.rank, .processes = w.job.world, .secret = w.job.secret}, &kv);
}

PJRT_Error *pj_world_join(PJRT_Client *c, const PJRT_Client_Create_Args *args, const Options *o) {
    int64_t nodes = create_option(args, "num_nodes", 1), me = create_option(args, "node_id", 0);
    if (nodes <= 1)
        return *o->val[OPT_ROOT] ? join_at_root(c, o) : PJ_OK;
    if (nodes > NET_PROCESSES_MAX || me < 0 || me >= nodes)
        return pj_error(PJRT_Error_Code_INVALID_ARGUMENT, "opentrn: process %lld of %lld; there can be %d", (long long)me,
                        (long long)nodes, NET_PROCESSES_MAX);
    if (!args->kv_get_callback || !args->kv_put_callback)
        return pj_error(PJRT_Error_Code_INVALID_ARGUMENT, "opentrn: %lld processes, and no store for them to meet in",
                        (long long)nodes);
    Store store = {.args = args, .error = callback_error};
    NetKv kv = {.arg = &store, .put = store_put, .get = store_get};
    return join(c, o, (NetSelf){.process = (uint32_t)me, .processes = (uint32_t)nodes}, &kv);
}

// ---- runs

PjSpread *pj_spread_make(PJRT_Client *c, PJRT_Device *const *devices, size_t n) {
    PjSpread *s = calloc(1, sizeof *s + n * (sizeof(uint32_t) + sizeof(uint16_t)));
    if (!s)
        return NULL;
    uint32_t *ranks = (uint32_t *)(s + 1);
    uint16_t *process = (uint16_t *)(ranks + n);
    s->run = (RtSpread){.net = c->net, .ranks = ranks, .process = process};
    atomic_init(&s->refs, 1);
    for (size_t i = 0; i < n; i++) {
        int id = devices[i]->description->id;
        s->run.set = hash64(s->run.set + 1, &id, sizeof id);
        process[i] = (uint16_t)devices[i]->description->process;
        if (process[i] == net_me(c->net))
            ranks[s->run.nhere++] = (uint32_t)i;
    }
    return s;
}

void pj_spread_drop(PjSpread *s) {
    if (s && atomic_fetch_sub(&s->refs, 1) == 1)
        free(s);
}

// ---- for the Python package

OTRN_API int opentrn_peer_lost(int64_t client); // a process of the job is gone without a word
OTRN_API int opentrn_others(int64_t client);    // what the other processes do: NetOthers
OTRN_API void opentrn_bye(int64_t client);      // this one launches nothing any more

int opentrn_peer_lost(int64_t client) {
    PJRT_Client *c = (PJRT_Client *)(intptr_t)client;
    return c->net && net_lost(c->net);
}

int opentrn_others(int64_t client) {
    PJRT_Client *c = (PJRT_Client *)(intptr_t)client;
    return c->net ? net_others(c->net) : NET_OTHERS_GONE;
}

void opentrn_bye(int64_t client) {
    PJRT_Client *c = (PJRT_Client *)(intptr_t)client;
    if (!c->net)
        return;
    pj_queue_drain(c->transfers, LAST_MS);
    net_bye(c->net);
}
