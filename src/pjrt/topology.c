// SPDX-License-Identifier: Apache-2.0
// topology.c — which devices there are, without opening any: names, kinds, coordinates.
//
// A client owns one; ahead-of-time compilers make one of their own. The serialised form is a line
// of text: "opentrn-topology 2 PLATFORM TARGET COUNT CORES", the last those of a device. That of several processes
// goes on with the devices of each, "DEVICES,DEVICES,…".
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock/clock.h"
#include "pjrt/pjrt.h"

#define TOPOLOGY_MAGIC "opentrn-topology 2 "
#define SERIALIZED_BYTES (256 + 5 * NET_PROCESSES_MAX)

// trn2 for "trn2", big for "chips/big.chip": what follows the last '/', up to its first '.'.
static void target_name(const char *target, char *out, size_t out_bytes) {
    const char *slash = strrchr(target, '/');
    const char *name = slash ? slash + 1 : target;
    snprintf(out, out_bytes, "%.*s", (int)strcspn(name, ". \t\n"), name);
}

static void description_init(PJRT_DeviceDescription *d, const PJRT_TopologyDescription *t, int id) {
    static const int64_t core_on_chip[1] = {0};
    d->id = d->local_id = id;
    d->coords[0] = id;
    snprintf(d->kind, sizeof d->kind, "%s", t->target);
    snprintf(d->text, sizeof d->text, "%s:%d", t->platform, id);
    pj_named_int64s(&d->attributes[0], "coords", d->coords, 3);
    pj_named_int64s(&d->attributes[1], "core_on_chip", core_on_chip, 1);
    pj_named_int64s(&d->attributes[2], "num_cores", core_on_chip, 1);
    pj_named_int64s(&d->attributes[3], "opentrn_client", core_on_chip, 1);
    d->attributes[3].type = PJRT_NamedValue_kInt64;
    d->attributes[3].int64_value = 0;
    for (int i = 1; i < 3; i++) { // plain numbers, not lists
        d->attributes[i].type = PJRT_NamedValue_kInt64;
        d->attributes[i].int64_value = i == 1 ? core_on_chip[0] : (int64_t)t->device_cores;
    }
}

static PJRT_Error *topology_make(const char *platform, const char *target, uint64_t count, uint32_t device_cores,
                                 PJRT_TopologyDescription **out) {
    if (count < 1 || count > PJ_MAX_DEVICES)
        return pj_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "opentrn: option devices is %llu; it can be 1 to %d",
                        (unsigned long long)count, PJ_MAX_DEVICES);
    PJRT_TopologyDescription *t = calloc(1, sizeof *t);
    if (!t)
        return pj_error_nomem();
    t->count = t->here = count;
    t->device_cores = device_cores;
    t->descriptions = calloc(count, sizeof *t->descriptions);
    t->pointers = calloc(count, sizeof *t->pointers);
    t->serialized = malloc(SERIALIZED_BYTES);
    if (!t->descriptions || !t->pointers || !t->serialized) {
        pj_topology_free(t);
        return pj_error_nomem();
    }
    snprintf(t->platform, sizeof t->platform, "%s", platform);
    target_name(target, t->target, sizeof t->target);
    snprintf(t->chip, sizeof t->chip, "%s", target);
    snprintf(t->version, sizeof t->version, "opentrn %s %s", OTRN_RELEASE, t->target);
    t->serialized_size = (size_t)snprintf(t->serialized, SERIALIZED_BYTES, TOPOLOGY_MAGIC "%s %s %zu %u",
                                          t->platform, t->target, t->count, device_cores);
    for (size_t i = 0; i < count; i++) {
        description_init(&t->descriptions[i], t, (int)i);
        t->pointers[i] = &t->descriptions[i];
    }
    *out = t;
    return PJ_OK;
}

PJRT_Error *pj_topology_make(const Options *o, const otrn_env *env, PJRT_TopologyDescription **out) {
    uint64_t count = opt_num(o, OPT_DEVICES);
    return topology_make(o->val[OPT_PLATFORM], otrn_target(env), count ? count : otrn_devices(env), otrn_device_cores(env),
                         out);
}

// Which process each device belongs to, in order; said in the serialised form too.
static void share_out(PJRT_TopologyDescription *t, const uint32_t *devices, uint32_t processes, uint32_t me) {
    size_t id = 0;
    for (uint32_t p = 0; p < processes; p++) {
        if (p == me)
            t->process = me, t->first = id, t->here = devices[p];
        for (uint32_t i = 0; i < devices[p]; i++, id++)
            t->descriptions[id].process = (int)p, t->descriptions[id].local_id = (int)i;
        t->serialized_size += (size_t)snprintf(t->serialized + t->serialized_size, SERIALIZED_BYTES - t->serialized_size, "%c%u",
                                               p ? ',' : ' ', devices[p]);
    }
}

PJRT_Error *pj_topology_widen(PJRT_TopologyDescription **t, const Net *net) {
    PJRT_TopologyDescription *mine = *t;
    uint32_t devices[NET_PROCESSES_MAX], n = net_processes(net);
    uint64_t count = 0;
    for (uint32_t p = 0; p < n; p++)
        count += devices[p] = net_process(net, p)->devices;
    PJRT_Error *e = topology_make(mine->platform, mine->chip, count, mine->device_cores, t);
    if (e) {
        *t = mine;
        return e;
    }
    pj_topology_free(mine);
    share_out(*t, devices, n, net_me(net));
    return PJ_OK;
}

void pj_topology_free(PJRT_TopologyDescription *t) {
    if (!t)
        return;
    free(t->descriptions);
    free(t->pointers);
    free(t->serialized);
    free(t);
}

// Of the environment's options; the topology's name, when there is one, is the target.
PJRT_Error *pj_TopologyDescription_Create(PJRT_TopologyDescription_Create_Args *args) {
    Options o;
    char target[256];
    snprintf(target, sizeof target, "%.*s", (int)args->topology_name_size,
             args->topology_name ? args->topology_name : "");
    const otrn_option given[] = {{"threads", "1"}, {"target", target}};
    size_t n = target[0] ? 2 : 1;
    PJRT_Error *e = pj_options_init(&o, given, n);
    otrn_env *env;
    otrn_error err = OTRN_ERROR_INIT;
    if (!e && otrn_open(given, n, &env, &err))
        e = pj_error_from(&err);
    if (e)
        return e;
    e = pj_topology_make(&o, env, &args->topology);
    otrn_close(env);
    return e;
}

PJRT_Error *pj_TopologyDescription_Destroy(PJRT_TopologyDescription_Destroy_Args *args) {
    pj_topology_free(args->topology);
    return PJ_OK;
}

PJRT_Error *pj_TopologyDescription_PlatformName(PJRT_TopologyDescription_PlatformName_Args *args) {
    args->platform_name = args->topology->platform;
    args->platform_name_size = strlen(args->platform_name);
    return PJ_OK;
}

PJRT_Error *
pj_TopologyDescription_PlatformVersion(PJRT_TopologyDescription_PlatformVersion_Args *args) {
    args->platform_version = args->topology->version;
    args->platform_version_size = strlen(args->platform_version);
    return PJ_OK;
}

PJRT_Error *pj_TopologyDescription_GetDeviceDescriptions(
    PJRT_TopologyDescription_GetDeviceDescriptions_Args *args) {
    args->descriptions = args->topology->pointers;
    args->num_descriptions = args->topology->count;
    return PJ_OK;
}

static void serialized_free(PJRT_SerializedTopology *s) { (void)s; } // the topology owns it

PJRT_Error *pj_TopologyDescription_Serialize(PJRT_TopologyDescription_Serialize_Args *args) {
    args->serialized_bytes = args->topology->serialized;
    args->serialized_bytes_size = args->topology->serialized_size;
    args->serialized_topology = (PJRT_SerializedTopology *)args->topology;
    args->serialized_topology_deleter = serialized_free;
    return PJ_OK;
}

// Bytes from elsewhere name a chip that is at hand and never a path: only the user says which files are opened.
static PJRT_Error *target_check(void *target, Ctx *ctx, Arena *a) {
    Options o;
    opt_init(ctx, &o);
    ChipFile chip;
    chipfile_named(ctx, a, target, NULL, o.val[OPT_CHIPS], &chip);
    return PJ_OK;
}

// " 4,4": the devices of each process; 0: it is not said, or they do not add up.
static uint32_t shares_read(const char *text, uint64_t count, uint32_t *devices) {
    uint32_t n = 0;
    uint64_t sum = 0;
    for (char *end; (*text == ' ' || *text == ',') && n < NET_PROCESSES_MAX; text = end) {
        unsigned long v = strtoul(text + 1, &end, 10);
        if (end == text + 1 || v > PJ_MAX_DEVICES)
            return 0;
        sum += devices[n++] = (uint32_t)v;
    }
    return *text || sum != count ? 0 : n;
}

PJRT_Error *pj_TopologyDescription_Deserialize(PJRT_TopologyDescription_Deserialize_Args *args) {
    char text[SERIALIZED_BYTES], platform[32], target[64];
    unsigned long long count;
    unsigned cores;
    int end = 0;
    size_t n = args->serialized_topology_size;
    if (n < sizeof text) {
        memcpy(text, args->serialized_topology, n);
        text[n] = 0;
        if (sscanf(text, TOPOLOGY_MAGIC "%31s %63s %llu %u%n", platform, target, &count, &cores, &end) == 4 &&
            (cores == 1 || cores == 2)) {
            uint32_t devices[NET_PROCESSES_MAX];
            uint32_t processes = shares_read(text + end, count, devices);
            PJRT_Error *e = pj_try(target_check, target);
            if (!e)
                e = topology_make(platform, target, count, cores, &args->topology);
            if (!e && processes > 1)
                share_out(args->topology, devices, processes, 0);
            return e;
        }
    }
    return pj_error(PJRT_Error_Code_INVALID_ARGUMENT,
                    "opentrn: the %zu bytes are not a serialised opentrn topology", n);
}

PJRT_Error *pj_TopologyDescription_Attributes(PJRT_TopologyDescription_Attributes_Args *args) {
    args->attributes = args->topology->attributes;
    args->num_attributes = 0;
    return PJ_OK;
}

PJRT_Error *pj_TopologyDescription_Fingerprint(PJRT_TopologyDescription_Fingerprint_Args *args) {
    const PJRT_TopologyDescription *t = args->topology;
    args->fingerprint = hash64(hash64(0, t->serialized, t->serialized_size), t->version,
                               strlen(t->version));
    return PJ_OK;
}

PJRT_Error *pj_TopologyDescription_GetMemorySpaceKindIds(
    PJRT_TopologyDescription_GetMemorySpaceKindIds_Args *args) {
    static const int ids[PJ_MEMORIES] = {PJ_DEVICE, PJ_PINNED_HOST};
    args->memory_space_kind_ids = ids;
    args->num_memory_space_kind_ids = PJ_MEMORIES;
    return PJ_OK;
}
