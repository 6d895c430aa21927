// SPDX-License-Identifier: Apache-2.0
// eval_par.c — several devices in one program: run_parallel, messages between them, futures.
//
// interpreter.run_parallel is how test programs run on a grid of devices: programs[r][p] names the
// function of replica r, partition p. Operands and results are those of the functions, one device
// after the other. Each device is a thread with arena and error context of its own on the same
// graph, which nobody changes meanwhile.
#include <pthread.h>

#include "hlo/coll.h"
#include "hlo/eval_in.h"

// --- messages ----------------------------------------------------------------------------------

// Who the message comes from, as sender and receiver name it; *none when this device has no part.
static uint32_t message_from(Eval *e, OpId id, bool sends, bool *none) {
    const HloOp *op = eval_op_at(e, id);
    char why[COMM_WHY_BYTES];
    Groups g;
    *none = false;
    eval_need(e, id, coll_groups(op->code, op->attrs, &g), "source_target_pairs are pairs");
    if (!g.rows)
        return COMM_ANY;
    Route *route = ARENA_NEW(e->cur, Route);
    if (!groups_route(&g, coll_grid(e->comm), coll_rank(e->comm), route, why, sizeof why))
        eval_fail(e, id, OTRN_CHECK, "%s", why);
    *none = (sends ? route->target : route->source) == COMM_NONE;
    return sends ? coll_rank(e->comm) : route->source;
}

static CommBuf *message_bufs(Eval *e, OpId id, const Tensor *t, uint32_t n) {
    CommBuf *bufs = ARENA_NEWN(e->cur, CommBuf, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        const HloType *ty = eval_type(e, t[i]);
        eval_need(e, id, ty->kind == HT_TENSOR, "a message holds tensors");
        bufs[i] = (CommBuf){.in = t[i].data, .out = t[i].data, .in_bytes = hlo_type_bytes(ty)};
    }
    return bufs;
}

static void need_others(Eval *e, OpId id) {
    if (!e->comm)
        eval_fail(e, id, OTRN_CHECK, "there is nobody to talk to: the program runs on one device");
}

void eval_send(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloOp *op = eval_op_at(e, id);
    bool none;
    eval_need(e, id, op->noperands >= 1, "takes a token");
    need_others(e, id);
    uint32_t from = message_from(e, id, true, &none), n = op->noperands - 1;
    if (!none &&
        !comm_send(e->comm, hlo_int(op, AK_CHANNEL_ID, 0), from, message_bufs(e, id, in, n), n))
        eval_fail(e, id, OTRN_CHECK, "%s", comm_why(e->comm));
    eval_token(e, id, in, out);
}

// Values, then a token. What the host feeds comes in the order it was given.
void eval_recv(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloOp *op = eval_op_at(e, id);
    bool none = false, infeed = op->code == HLO_INFEED;
    eval_need(e, id, op->nresults >= 1, "returns a token");
    need_others(e, id);
    uint32_t n = op->nresults - 1u, from = infeed ? COMM_ANY : message_from(e, id, false, &none);
    for (uint32_t i = 0; i < n; i++) {
        out[i].data = eval_new(e, out[i].type);
        memset(out[i].data, 0, hlo_type_bytes(eval_type(e, out[i])));
    }
    int64_t channel = infeed ? COMM_INFEED : hlo_int(op, AK_CHANNEL_ID, 0);
    if (!none && !comm_recv(e->comm, channel, from, message_bufs(e, id, out, n), n))
        eval_fail(e, id, OTRN_CHECK, "%s", comm_why(e->comm));
    eval_token(e, id, in, out + n);
}

void eval_nothing(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    (void)e, (void)id, (void)in, (void)out;
}

// --- futures -----------------------------------------------------------------------------------

// The value of type !stablehlo.future<…>: the work was done when it was started.
typedef struct Future {
    uint32_t n;
    Tensor at[];
} Future;

bool eval_is_future(const HloType *t) {
    return t->kind == HT_OTHER && t->text && !strncmp(t->text, "!stablehlo.future<", 18);
}

Tensor eval_copy_future(Eval *e, Arena *to, Tensor t) {
    const Future *from = t.data;
    Future *f = arena_alloc(to, sizeof *f + from->n * sizeof *f->at);
    f->n = from->n;
    for (uint32_t i = 0; i < f->n; i++)
        f->at[i] = eval_copy(e, to, from->at[i]);
    return (Tensor){t.type, f};
}

void eval_async_start(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloOp *op = eval_op_at(e, id);
    eval_need(e, id, op->nregions == 1 && eval_is_future(eval_type(e, out[0])),
              "makes a future of its region");
    const HloRegion *r = hlo_op_region(e->h, op, 0);
    eval_need(e, id, r->ops.n > 0, "the region is empty");
    uint32_t n = eval_op_at(e, r->ops.at[r->ops.n - 1])->noperands;
    Future *f = arena_alloc(e->cur, sizeof *f + n * sizeof *f->at);
    f->n = n;
    eval_region(e, id, r, in, op->noperands, f->at, n);
    out[0].data = f;
}

void eval_async_done(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloOp *op = eval_op_at(e, id);
    eval_need(e, id, eval_is_future(eval_type(e, in[0])), "takes a future");
    const Future *f = in[0].data;
    eval_need(e, id, f->n == op->nresults, "returns the future's values");
    for (uint32_t i = 0; i < f->n; i++) {
        eval_need(e, id, f->at[i].type == out[i].type, "returns the future's values");
        out[i] = f->at[i];
    }
}

// --- devices -----------------------------------------------------------------------------------

typedef struct Device {
    Ctx ctx;
    Arena *arena; // an inner one of the caller's run, which frees it whatever happens
    Hlo graph;    // the caller's, with this device's context and arena
    const HloFunc *func;
    CommRank *comm;
    const Tensor *args;
    Tensor *results;
    pthread_t thread;
    bool started;
} Device;

typedef struct Parallel {
    Eval *e;
    OpId id;
    Grid grid;
    uint32_t n;
    Device *devices;
    Comm *comm;
} Parallel;

static void *device_main(void *arg) {
    Device *d = arg;
    jmp_buf here;
    if (CTX_TRY(&d->ctx, here))
        eval_func_on(&d->graph, d->arena, d->func, d->args, d->results, d->comm);
    else
        comm_fail(d->comm, NULL);
    return NULL;
}

// programs = [[@f, @g], …]: a full grid of names.
static Grid grid_of(Eval *e, OpId id) {
    const HloAttr *rows = hlo_attr(eval_op_at(e, id), AK_PROGRAMS);
    bool ok = rows && rows->kind == HA_LIST && rows->n && rows->list[0].kind == HA_LIST;
    uint32_t partitions = ok ? rows->list[0].n : 0;
    for (uint32_t r = 0; ok && r < rows->n; r++) {
        const HloAttr *row = &rows->list[r];
        ok = row->kind == HA_LIST && row->n == partitions;
        for (uint32_t p = 0; ok && p < row->n; p++)
            ok = row->list[p].kind == HA_SYM;
    }
    eval_need(e, id, ok,
              "programs is a list of functions for each replica, as many for all of them");
    if (!grid_ok(rows->n, partitions))
        eval_fail(e, id, OTRN_CAPACITY, "%u x %u devices, more than COMM_RANKS_MAX (%d) or none",
                  rows->n, partitions, COMM_RANKS_MAX);
    return (Grid){rows->n, partitions};
}

static const HloFunc *need_func(Eval *e, OpId id, const HloAttr *name) {
    const HloFunc *f = name->kind == HA_SYM ? hlo_func_find(e->h, name->s) : NULL;
    if (!f || !f->body)
        eval_fail(e, id, OTRN_VERIFY, "there is no function @%s",
                  name->kind == HA_SYM ? name->s : "");
    return f;
}

static void devices_make(Parallel *p, const Tensor *in) {
    Eval *e = p->e;
    const HloOp *op = eval_op_at(e, p->id);
    const HloAttr *rows = hlo_attr(op, AK_PROGRAMS);
    uint32_t at = 0, results = 0;
    p->devices = ARENA_NEWN(e->cur, Device, p->n);
    for (uint32_t i = 0; i < p->n; i++) {
        Device *d = &p->devices[i];
        d->func = need_func(e, p->id,
                            &rows->list[grid_replica(p->grid, i)].list[grid_partition(p->grid, i)]);
        eval_need(e, p->id, d->func->nargs <= op->noperands - at,
                  "operands are those of all programs");
        d->args = in + at;
        d->results = ARENA_NEWN(e->cur, Tensor, d->func->nresults + 1u);
        at += d->func->nargs;
        results += d->func->nresults;
    }
    eval_need(e, p->id, at == op->noperands && results == op->nresults,
              "operands and results are those of all programs");
}

static void devices_run(Parallel *p) {
    for (uint32_t i = 0; i < p->n; i++) {
        Device *d = &p->devices[i];
        d->arena->ctx = &d->ctx;
        d->graph = *p->e->h;
        d->graph.ctx = &d->ctx;
        d->graph.arena = d->arena;
        d->comm = comm_rank(p->comm, i);
        d->started = pthread_create(&d->thread, NULL, device_main, d) == 0;
        if (!d->started) {
            ctx_set(&d->ctx.err, OTRN_NOMEM, NO_PLACE, "the host has no thread for it");
            comm_fail(d->comm, NULL);
        }
    }
    for (uint32_t i = 0; i < p->n; i++) {
        if (p->devices[i].started)
            pthread_join(p->devices[i].thread, NULL);
        p->devices[i].arena->ctx = p->e->h->ctx;
    }
}

static _Noreturn void device_error(Parallel *p, uint32_t failed) {
    const otrn_error *err = &p->devices[failed].ctx.err;
    if (err->hint[0])
        ctx_hint(p->e->h->ctx, "%s", err->hint);
    ctx_fail(p->e->h->ctx, err->code, (Place){err->file[0] ? err->file : NULL, err->line, err->col},
             "device %u: %s", failed, err->text);
}

// What the host feeds: the results of functions without arguments, one message each.
typedef struct Feed {
    CommBuf *bufs;
    uint32_t n;
} Feed;

static Feed *feeds_make(Parallel *p, const HloAttr *list) {
    Eval *e = p->e;
    Feed *feeds = ARENA_NEWN(e->cur, Feed, list->n + 1);
    for (uint32_t i = 0; i < list->n; i++) {
        const HloFunc *f = need_func(e, p->id, &list->list[i]);
        Tensor *values = ARENA_NEWN(e->cur, Tensor, f->nresults + 1u);
        eval_call_func(e, p->id, f->name, NULL, 0, values, f->nresults);
        feeds[i] = (Feed){message_bufs(e, p->id, values, f->nresults), f->nresults};
    }
    return feeds;
}

void eval_run_parallel(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    if (e->comm)
        eval_fail(e, id, OTRN_UNSUPPORTED, "a device cannot run other devices");
    Parallel p = {.e = e, .id = id, .grid = grid_of(e, id)};
    p.n = grid_ranks(p.grid);
    devices_make(&p, in);
    const HloAttr *infeed = hlo_attr(eval_op_at(e, id), AK_INFEED), none = {.kind = HA_LIST};
    infeed = infeed && infeed->kind == HA_LIST ? infeed : &none;
    Feed *feeds = feeds_make(&p, infeed);
    for (uint32_t i = 0; i < p.n; i++)
        p.devices[i].arena = eval_open(e);
    p.comm = comm_make(p.grid, 1);
    if (!p.comm)
        eval_fail(e, id, OTRN_NOMEM, "no memory for %u devices", p.n);
    for (uint32_t i = 0; i < infeed->n; i++)
        comm_send(comm_rank(p.comm, 0), COMM_INFEED, COMM_ANY, feeds[i].bufs, feeds[i].n);
    devices_run(&p);
    uint32_t failed = comm_failed(p.comm);
    comm_free(p.comm);
    if (failed != COMM_NONE)
        device_error(&p, failed);
    for (uint32_t i = 0, at = 0; i < p.n; i++)
        for (uint32_t k = 0; k < p.devices[i].func->nresults; k++, at++) {
            Tensor t = p.devices[i].results[k];
            eval_need(e, id, t.type == out[at].type, "results are those of all programs");
            out[at] = eval_copy(e, e->cur, t);
        }
    for (uint32_t i = 0; i < p.n; i++)
        eval_close(e);
}
