// SPDX-License-Identifier: Apache-2.0
// ranks.c — processes of a run: they meet, share process 0's state, and agree.
#include "train/ranks.h"

#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "net/net.h"
#include "rt/job.h"

#define JOIN_MS 300000
#define LOST_MS 3000
#define SET 2 // of launches that carry words, not programs

static void layout_find(Arena *a, Ranks *r) {
    r->devices = 0;
    for (uint32_t i = 0; i < r->world; i++)
        r->devices += net_process(r->net, i)->devices;
    r->first = net_process(r->net, r->rank)->first;
    uint32_t *ranks = ARENA_NEWN(a, uint32_t, (size_t)r->here);
    uint16_t *process = ARENA_NEWN(a, uint16_t, (size_t)r->devices);
    for (int64_t d = 0; d < r->here; d++)
        ranks[d] = (uint32_t)(r->first + d);
    for (uint32_t i = 0; i < r->world; i++)
        for (uint32_t d = 0; d < net_process(r->net, i)->devices; d++)
            process[net_process(r->net, i)->first + d] = (uint16_t)i;
    r->spread = (RtSpread){.net = r->net, .set = hash64(1, process, (size_t)r->devices * sizeof *process), .nhere = (uint32_t)r->here,
                           .ranks = ranks, .process = process};
}

void ranks_join(Ctx *ctx, Arena *a, const Options *o, const char *chip, Ranks *r) {
    Job job;
    char why[NET_WHY_BYTES] = "";
    bool alone = !job_find(ctx, o, &job), said = !alone || !strcmp(o->from[OPT_DEVICES], "command line");
    int64_t here = said && opt_num(o, OPT_DEVICES) ? (int64_t)opt_num(o, OPT_DEVICES) : 1;
    *r = (Ranks){.world = 1, .here = here, .devices = here, .said = said};
    if (alone)
        return;
    NetSelf self = {.process = job.rank, .processes = job.world, .devices = (uint32_t)here, .release = OTRN_RELEASE, .chip = chip,
                    .secret = job.secret, .fabric = o->val[OPT_FABRIC], .timeout_ms = JOIN_MS};
    job_limits(o, &self);
    bool ok = net_root_open(job.root, job.secret, job.rank == 0, JOIN_MS, &r->root, why, sizeof why);
    NetKv kv = ok ? net_root_kv(r->root) : (NetKv){0};
    if (!ok || !net_open(&self, &kv, &r->net, why, sizeof why)) {
        net_root_close(r->root), r->root = NULL;
        ctx_fail(ctx, OTRN_CHECK, NO_PLACE, "process %u of %u cannot meet the others: %s", job.rank, job.world, why);
    }
    r->rank = job.rank, r->world = job.world;
    layout_find(a, r);
}

void ranks_leave(Ranks *r, bool good) {
    if (r->net && good)
        net_bye(r->net);
    net_close(r->net), net_root_close(r->root);
    r->net = NULL, r->root = NULL;
}

// Who was told of a failure elsewhere may hear it before the connection ends.
bool ranks_lost(const Ranks *r) {
    for (int i = 0; i < LOST_MS / 10 && r->net && r->meets && !net_lost(r->net); i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    return r->net && net_lost(r->net);
}

// --- words -----------------------------------------------------------------------------------------

typedef struct Talk {
    Ranks *r;
    NetLaunch launch;
    char why[NET_WHY_BYTES];
} Talk;

static bool talk_begin(Talk *t, Ranks *r) {
    r->meets = true;
    *t = (Talk){.r = r, .launch = {.set = SET, .name = "train"}};
    for (uint32_t i = 0; i < r->world; i++)
        t->launch.takes_part[i] = true;
    return net_launch_begin(r->net, &t->launch, t->why, sizeof t->why);
}

static bool send(Talk *t, uint32_t to, const void *data, size_t bytes) {
    NetSeg seg = {(void *)data, bytes};
    NetCall call = {.launch = &t->launch, .op = "train"};
    return net_exchange(t->r->net, &call, &(NetMsg){.process = to, .nsegs = 1, .segs = &seg}, 1, NULL, 0, t->why, sizeof t->why);
}

static bool receive(Talk *t, uint32_t from, void *data, size_t bytes) {
    NetSeg seg = {data, bytes};
    NetCall call = {.launch = &t->launch, .op = "train"};
    return net_exchange(t->r->net, &call, NULL, 0, &(NetMsg){.process = from, .nsegs = 1, .segs = &seg}, 1, t->why, sizeof t->why);
}

static bool spread_out(Talk *t, void *data, size_t bytes) {
    bool ok = t->r->rank == 0 || receive(t, 0, data, bytes);
    for (uint32_t i = 1; i < t->r->world && !t->r->rank && ok; i++)
        ok = send(t, i, data, bytes);
    return ok;
}

static void talk_end(Ctx *ctx, Talk *t, bool begun, bool ok) {
    if (begun)
        net_launch_end(t->r->net, &t->launch, ok ? NULL : t->why);
    if (!ok)
        ctx_fail(ctx, OTRN_CHECK, NO_PLACE, "process %u of %u: %s", t->r->rank, t->r->world, t->why);
    t->r->meets = false;
}

void ranks_share(Ctx *ctx, Ranks *r, void *data, size_t bytes) {
    if (!r->net || !bytes)
        return;
    Talk t;
    bool begun = talk_begin(&t, r), ok = begun && spread_out(&t, data, bytes);
    talk_end(ctx, &t, begun, ok);
}

const char *ranks_share_text(Ctx *ctx, Arena *a, Ranks *r, const char *text) {
    uint64_t n = text ? strlen(text) + 1 : 0;
    ranks_share(ctx, r, &n, sizeof n);
    char *to = r->rank ? arena_zalloc(a, n + 1) : text ? arena_strndup(a, text, n) : NULL;
    ranks_share(ctx, r, to, n);
    return n ? to : NULL;
}

void ranks_gather(Ctx *ctx, Ranks *r, uint32_t to, uint8_t *pack, size_t bytes) {
    if (!r->net || !bytes)
        return;
    Talk t;
    bool begun = talk_begin(&t, r), ok = begun && (r->rank == to || send(&t, to, pack, (size_t)r->here * bytes));
    for (uint32_t i = 0; i < r->world && r->rank == to && ok; i++) {
        const NetProcess *p = net_process(r->net, i);
        ok = i == to || receive(&t, i, pack + p->first * bytes, p->devices * bytes);
    }
    talk_end(ctx, &t, begun, ok);
}

void ranks_bring(Ctx *ctx, Ranks *r, const void *mine, size_t bytes, void *all) {
    if (!r->rank)
        memcpy(all, mine, bytes);
    if (!r->net || !bytes)
        return;
    Talk t;
    bool begun = talk_begin(&t, r), ok = begun && (!r->rank || send(&t, 0, mine, bytes));
    for (uint32_t i = 1; i < r->world && !r->rank && ok; i++)
        ok = receive(&t, i, (uint8_t *)all + i * bytes, bytes);
    talk_end(ctx, &t, begun, ok);
}

#define SLOW_TIMES 2.0
#define SLOW_SECONDS 0.05

bool ranks_slow(const StepWord *words, uint32_t n, uint32_t *who, double *others) {
    uint32_t slow = 0;
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        slow = words[i].own > words[slow].own ? i : slow;
        sum += words[i].own;
    }
    *who = slow, *others = n > 1 ? (sum - words[slow].own) / (n - 1) : 0;
    return n > 1 && words[slow].own > SLOW_TIMES * *others && words[slow].own - *others > SLOW_SECONDS;
}

bool ranks_stalled(const StepWord *w) { return w->fed > SLOW_SECONDS && w->fed > 0.5 * w->own; }

bool ranks_agree(Ctx *ctx, Ranks *r, StepWord *mine, StepWord *words, RanksDecide *decide, void *arg) {
    words[0] = *mine;
    if (!r->net) {
        if (decide)
            decide(arg, mine, words);
        return mine->stop;
    }
    uint32_t back[3] = {mine->stop};
    Talk t;
    bool begun = talk_begin(&t, r), ok = begun && (!r->rank || send(&t, 0, mine, sizeof *mine));
    for (uint32_t i = 1; i < r->world && !r->rank && ok; i++) {
        ok = receive(&t, i, &words[i], sizeof words[i]);
        back[0] |= ok ? words[i].stop : 0;
    }
    if (ok && !r->rank && decide)
        decide(arg, mine, words);
    back[1] = mine->save, back[2] = mine->commit;
    ok = ok && spread_out(&t, back, sizeof back);
    talk_end(ctx, &t, begun, ok);
    mine->save = back[1], mine->commit = back[2];
    return back[0];
}
