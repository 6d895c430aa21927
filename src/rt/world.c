// SPDX-License-Identifier: Apache-2.0
// world.c — processes of a job that each have one device, for front ends without PJRT: PyTorch's process groups.
//
// Every process is a rank; a program over all of them is written for as many partitions, and its collectives name groups of ranks. Processes
// need not run the same program: PyTorch traces one in each, in which a rank's number may have become a constant. They only have to
// meet in the same order in each group, so launches are loose (net.h). Plain memory goes between ranks without a program.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "net/net.h"
#include "rt/exe.h"

// The store of the job's starter; true: done, else `why` tells. get waits for the key.
typedef int WorldPut(const char *key, const char *value, char *why, size_t why_bytes);
typedef int WorldGet(const char *key, unsigned timeout_ms, char *value, size_t bytes, char *why, size_t why_bytes);

typedef struct World {
    otrn_env *env;
    Net *net;
    WorldPut *put;
    WorldGet *get;
    uint16_t *process; // of each rank: its own number
} World;

typedef struct WorldPart { // memory for or from a process
    void *data;
    size_t bytes;
    uint32_t process;
} WorldPart;

// timeout_ms: for all to come, and for one that another waits for.
OTRN_API World *opentrn_world_open(otrn_env *env, uint32_t process, uint32_t processes, unsigned timeout_ms, WorldPut *put,
                                   WorldGet *get, char *why, size_t why_bytes);
OTRN_API void opentrn_world_close(World *w); // nobody may be inside
OTRN_API void opentrn_world_bye(World *w);   // nothing will be sent any more
OTRN_API int opentrn_world_lost(World *w);   // a process is gone without a word
// The program, together with those of `with`, among them this one. set: names who meets, the same in all of them. The result
// of a program that is one all_reduce may lie on its argument.
OTRN_API int opentrn_world_execute(World *w, otrn_exe *exe, uint64_t set, const uint32_t *with, uint32_t nwith,
                                   const otrn_buffer *args, size_t num_args, const otrn_buffer *results, size_t num_results,
                                   otrn_error *err);
// Sends and receives. Parts of one tag come in the order they are sent; `op` and
// their bytes must be the same at both ends. unasked: those who get something may send before they ask for it. `what`: who meets, for
// messages. False: why tells.
OTRN_API int opentrn_world_exchange(World *w, uint64_t tag, int unasked, const char *what, const char *op, const WorldPart *out,
                                    uint32_t nout, const WorldPart *in, uint32_t nin, char *why, size_t why_bytes);

static bool store_put(void *arg, const char *key, const char *value, char *why, size_t why_bytes) {
    return ((World *)arg)->put(key, value, why, why_bytes);
}

static bool store_get(void *arg, const char *key, unsigned timeout_ms, char *value, size_t bytes, char *why, size_t why_bytes) {
    return ((World *)arg)->get(key, timeout_ms, value, bytes, why, why_bytes);
}

static void chip_text(otrn_env *env, char *out, size_t bytes) {
    Ctx ctx = {0};
    Arena arena;
    jmp_buf here;
    arena_init(&arena, &ctx);
    if (CTX_TRY(&ctx, here))
        rt_chip_text(&arena, env->chip.name, otrn_device_cores(env), &env->chip, out, bytes);
    arena_fini(&arena);
}

World *opentrn_world_open(otrn_env *env, uint32_t process, uint32_t processes, unsigned timeout_ms, WorldPut *put, WorldGet *get,
                          char *why, size_t why_bytes) {
    World *w = calloc(1, sizeof *w);
    uint16_t *own = calloc(processes, sizeof *own);
    if (!w || !own) {
        free(w);
        free(own);
        snprintf(why, why_bytes, "out of memory");
        return NULL;
    }
    for (uint32_t i = 0; i < processes; i++)
        own[i] = (uint16_t)i;
    *w = (World){.env = env, .put = put, .get = get, .process = own};
    char chip[96] = "";
    chip_text(env, chip, sizeof chip);
    NetSelf self = {.process = process, .processes = processes, .devices = 1, .release = OTRN_RELEASE, .chip = chip,
                    .fabric = env->opts.val[OPT_FABRIC], .timeout_ms = timeout_ms};
    bool told = strcmp(env->opts.from[OPT_COLL_TIMEOUT], "default") != 0; // else it is PyTorch's own limit
    self.coll_timeout_ms = told ? 1000 * (uint32_t)opt_num(&env->opts, OPT_COLL_TIMEOUT) : timeout_ms;
    NetKv kv = {.arg = w, .put = store_put, .get = store_get};
    if (net_open(&self, &kv, &w->net, why, why_bytes)) {
        rt_env_join(env, w->net);
        return w;
    }
    opentrn_world_close(w);
    return NULL;
}

void opentrn_world_close(World *w) {
    if (!w)
        return;
    if (w->net)
        rt_env_join(w->env, NULL);
    net_close(w->net);
    free(w->process);
    free(w);
}

void opentrn_world_bye(World *w) { net_bye(w->net); }
int opentrn_world_lost(World *w) { return net_lost(w->net); }

// One all_reduce and nothing else, straight from argument to result. With one device in a process the sum may be written over its
// term: a slice is sent, or added, before its sum comes (coll/reduce.c), and a block is folded before it is written.
static bool is_sum(const Artifact *art) {
    const Kern *k = art->kerns;
    return art->nkerns == 1 && art->ncode == 2 && !artifact_is_shared(art) && art->nargs == 1 && art->nresults == 1 &&
           k->op == HLO_ALL_REDUCE && k->nin == 1 && k->nout == 1 && k->in->dtype == k->out->dtype &&
           k->in->addr == addr_hbm(SEG_FIRST_ARG, 0) && k->out->addr == addr_hbm(SEG_FIRST_ARG + 1, 0);
}

int opentrn_world_execute(World *w, otrn_exe *exe, uint64_t set, const uint32_t *with, uint32_t nwith, const otrn_buffer *args,
                          size_t num_args, const otrn_buffer *results, size_t num_results, otrn_error *err) {
    bool takes_part[NET_PROCESSES_MAX] = {false};
    for (uint32_t i = 0; i < nwith; i++)
        takes_part[with[i]] = true;
    uint32_t me = net_me(w->net);
    RtSpread spread = {.net = w->net, .set = set, .nhere = 1, .ranks = &me, .process = w->process, .loose = takes_part};
    spread.in_place = num_args == 1 && num_results == 1 && args->data == results->data && is_sum(exe->art);
    exe->brief = false; // it may wait for others, and then Ctrl-C counts
    return (int)rt_execute_spread(exe, 1, net_processes(w->net), &spread, &args, num_args, &results, num_results, err);
}

static bool always(void *arg) { // only a message helps
    (void)arg;
    return true;
}

static void put_messages(const WorldPart *parts, uint32_t n, NetMsg *msgs, NetSeg *segs, NetLaunch *l) {
    for (uint32_t i = 0; i < n; i++) {
        segs[i] = (NetSeg){parts[i].data, parts[i].bytes};
        msgs[i] = (NetMsg){.process = parts[i].process, .nsegs = 1, .segs = &segs[i]};
        l->takes_part[parts[i].process] = true;
    }
}

int opentrn_world_exchange(World *w, uint64_t tag, int unasked, const char *what, const char *op, const WorldPart *out, uint32_t nout,
                           const WorldPart *in, uint32_t nin, char *why, size_t why_bytes) {
    NetMsg *msgs = calloc(nout + nin + 1, sizeof *msgs + sizeof(NetSeg));
    if (!msgs) {
        snprintf(why, why_bytes, "out of memory");
        return false;
    }
    NetSeg *segs = (NetSeg *)(msgs + nout + nin + 1);
    NetLaunch launch = {.set = tag, .loose = true, .stuck = always};
    snprintf(launch.name, sizeof launch.name, "%s", what);
    put_messages(out, nout, msgs, segs, &launch);
    put_messages(in, nin, msgs + nout, segs + nout, &launch);
    NetCall call = {.launch = &launch, .tag = tag, .sign = hash64(0, op, strlen(op)), .op = op, .unasked = unasked};
    Pulse pulse, *before = pulse_enter(&pulse);
    pulse = (Pulse){.stop = PULSE_GOES};
    pulse_begin(&pulse, 0);
    if (w->env->catches)
        pulse_catch_begin(&pulse);
    bool ok = net_launch_begin(w->net, &launch, why, why_bytes);
    if (ok) {
        ok = net_exchange(w->net, &call, msgs, nout, msgs + nout, nin, why, why_bytes);
        net_launch_end(w->net, &launch, ok ? NULL : why);
    }
    if (w->env->catches)
        pulse_catch_end(&pulse);
    pulse_enter(before);
    free(msgs);
    return ok;
}
