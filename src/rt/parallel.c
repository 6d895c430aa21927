// SPDX-License-Identifier: Apache-2.0
// parallel.c — main cut at interpreter.run_parallel; see parallel.h.
//
//   first     main up to the cut; returns the cut's operands, then what is used behind it
//   devices   one function each; infeed functions run before them and their results are queued
//   last      main from the cut on; takes what first returned second, then the devices' results
//
// Each part is made out of the whole graph just after reading (RtCompile.prepare), so errors keep
// their places in the user's file.
#define _GNU_SOURCE // memmem
#include "rt/parallel.h"

#include <stdlib.h>
#include <string.h>

#include "read/read.h"
#include "rt/exe.h"

#define RUN_PARALLEL "run_parallel"

struct RtParallel {
    otrn_env *env;
    Ctx ctx;
    Arena arena;
    const char *name;
    const void *bytes;
    size_t size;
    Grid grid;
    uint32_t ndevices, nfeeds;
    const char **funcs; // of the devices, then of the infeed
    otrn_exe **exes;    // one for each of these; equal names share one
    otrn_exe *first, *last;
    size_t nkept; // results of first that go to last
};

bool rt_parallel_is(const void *bytes, size_t size) {
    return memmem(bytes, size, RUN_PARALLEL, strlen(RUN_PARALLEL)) != NULL;
}

// --- cutting main ------------------------------------------------------------------------------

typedef struct Cut {
    Hlo *h;
    HloFunc *main;
    uint32_t at; // index of the op in main's body
    HloOp op;    // a copy
    VEC(ValueId) kept;
} Cut;

static HloRegion *body_of(const Cut *c) {
    return &c->h->regions.at[c->main->body];
}

typedef void UseFn(void *arg, ValueId *operand);

static void each_use(Hlo *h, OpId id, UseFn *fn, void *arg) {
    const HloOp op = *hlo_at(h, id);
    for (uint32_t i = 0; i < op.noperands; i++)
        fn(arg, &h->operands.at[op.operands + i]);
    for (uint32_t r = 0; r < op.nregions; r++) {
        const HloRegion *region = hlo_op_region(h, &op, r);
        for (uint32_t i = 0; i < region->ops.n; i++)
            each_use(h, region->ops.at[i], fn, arg);
    }
}

typedef struct Keep {
    Cut *cut;
    uint8_t *early; // by value: made before the cut (1), listed already (2)
} Keep;

static void keep_use(void *arg, ValueId *operand) {
    Keep *k = arg;
    if (k->early[*operand] == 1) {
        k->early[*operand] = 2;
        VEC_PUSH(k->cut->h->arena, &k->cut->kept, *operand);
    }
}

static void cut_init(Cut *c, Hlo *h) {
    *c = (Cut){.h = h, .main = hlo_main(h)};
    const HloRegion *body = body_of(c);
    while (c->at < body->ops.n &&
           hlo_at(h, body->ops.at[c->at])->code != HLO_INTERPRETER_RUN_PARALLEL)
        c->at++;
    if (c->at == body->ops.n)
        ctx_fail(h->ctx, OTRN_UNSUPPORTED, (Place){.file = h->file},
                 "interpreter.run_parallel does not stand in main itself");
    c->op = *hlo_at(h, body->ops.at[c->at]);
    Keep keep = {.cut = c, .early = ARENA_NEWN(h->arena, uint8_t, h->values.n)};
    for (uint32_t i = 0; i < body->nargs; i++)
        keep.early[body->args + i] = 1;
    for (uint32_t i = 0; i < c->at; i++) {
        const HloOp *op = hlo_at(h, body->ops.at[i]);
        for (uint32_t k = 0; k < op->nresults; k++)
            keep.early[op->results + k] = 1;
    }
    for (uint32_t i = c->at + 1; i < body->ops.n; i++)
        each_use(h, body->ops.at[i], keep_use, &keep);
}

// Gives main another body and signature.
static void set_main(Cut *c, RegionId body) {
    Hlo *h = c->h;
    const HloRegion *r = &h->regions.at[body];
    const HloOp *ret = hlo_at(h, r->ops.at[r->ops.n - 1]);
    TypeId *types = ARENA_NEWN(h->arena, TypeId, r->nargs + ret->noperands + 1);
    for (uint32_t i = 0; i < r->nargs; i++)
        types[i] = h->values.at[r->args + i].type;
    for (uint32_t i = 0; i < ret->noperands; i++)
        types[r->nargs + i] = h->values.at[hlo_operand(h, ret, i)].type;
    *c->main = (HloFunc){.name = c->main->name,
                         .body = body,
                         .nargs = r->nargs,
                         .nresults = ret->noperands,
                         .result_types = types + r->nargs,
                         .loc = c->main->loc};
}

static void prepare_first(void *arg, Hlo *h) {
    RtParallel *p = arg;
    Cut c;
    cut_init(&c, h);
    VEC(ValueId) out = {0};
    for (uint32_t i = 0; i < c.op.noperands; i++)
        VEC_PUSH(h->arena, &out, hlo_operand(h, &c.op, i));
    for (uint32_t i = 0; i < c.kept.n; i++)
        VEC_PUSH(h->arena, &out, c.kept.at[i]);
    p->nkept = c.kept.n;
    OpId ret = hlo_op(h, HLO_RETURN, c.op.loc, out.n, out.at, 0, NULL);
    body_of(&c)->ops.n = c.at;
    hlo_region_push(h, c.main->body, ret);
    set_main(&c, c.main->body);
}

typedef struct Rename {
    ValueId *to; // by value; 0 stays
} Rename;

static void rename_use(void *arg, ValueId *operand) {
    Rename *r = arg;
    if (r->to[*operand])
        *operand = r->to[*operand];
}

static void prepare_last(void *arg, Hlo *h) {
    (void)arg;
    Cut c;
    cut_init(&c, h);
    uint32_t n = c.kept.n + c.op.nresults;
    TypeId *types = ARENA_NEWN(h->arena, TypeId, n + 1);
    Rename rename = {ARENA_NEWN(h->arena, ValueId, h->values.n)};
    for (uint32_t i = 0; i < n; i++) {
        ValueId v = i < c.kept.n ? c.kept.at[i] : c.op.results + i - c.kept.n;
        types[i] = h->values.at[v].type;
        rename.to[v] = h->values.n + i; // the region's arguments come next
    }
    RegionId body = hlo_region(h, 0, n, types);
    const HloRegion whole = *body_of(&c);
    for (uint32_t i = c.at + 1; i < whole.ops.n; i++) {
        each_use(h, whole.ops.at[i], rename_use, &rename);
        hlo_region_push(h, body, whole.ops.at[i]);
    }
    set_main(&c, body);
}

// main calls the function and returns its results.
static void prepare_func(void *arg, Hlo *h) {
    Cut c = {.h = h, .main = hlo_main(h)};
    const HloFunc *f = hlo_func_find(h, arg);
    const HloRegion callee = h->regions.at[f->body];
    TypeId *types = ARENA_NEWN(h->arena, TypeId, callee.nargs + 1);
    ValueId *args = ARENA_NEWN(h->arena, ValueId, callee.nargs + 1);
    for (uint32_t i = 0; i < callee.nargs; i++)
        types[i] = h->values.at[callee.args + i].type;
    RegionId body = hlo_region(h, 0, callee.nargs, types);
    for (uint32_t i = 0; i < callee.nargs; i++)
        args[i] = h->regions.at[body].args + i;
    OpId call = hlo_op(h, HLO_CALL, f->loc, callee.nargs, args, f->nresults, f->result_types);
    *hlo_attr_slot(h, call, AK_CALLEE) = (HloAttr){.kind = HA_SYM, .s = arg};
    ValueId *results = ARENA_NEWN(h->arena, ValueId, f->nresults + 1);
    for (uint32_t i = 0; i < f->nresults; i++)
        results[i] = hlo_at(h, call)->results + i;
    hlo_region_push(h, body, call);
    hlo_region_push(h, body, hlo_op(h, HLO_RETURN, f->loc, f->nresults, results, 0, NULL));
    set_main(&c, body);
}

// --- reading -----------------------------------------------------------------------------------

static const char *func_name(RtParallel *p, Hlo *h, const HloAttr *a) {
    const HloFunc *f = a->kind == HA_SYM ? hlo_func_find(h, a->s) : NULL;
    if (!f || !f->body)
        ctx_fail(h->ctx, OTRN_VERIFY, (Place){.file = h->file}, "run_parallel names no function");
    return arena_strndup(&p->arena, a->s, strlen(a->s));
}

static void find_programs(RtParallel *p, Hlo *h) {
    Cut c;
    cut_init(&c, h);
    const HloAttr *rows = hlo_attr(&c.op, AK_PROGRAMS), *feeds = hlo_attr(&c.op, AK_INFEED);
    uint32_t cols = rows && rows->kind == HA_LIST && rows->n && rows->list[0].kind == HA_LIST
                        ? rows->list[0].n
                        : 0;
    if (!grid_ok(rows ? rows->n : 0, cols))
        ctx_fail(h->ctx, OTRN_VERIFY, hlo_place(h, c.op.loc),
                 "run_parallel has no grid of programs");
    p->grid = (Grid){rows->n, cols};
    p->ndevices = grid_ranks(p->grid);
    p->nfeeds = feeds && feeds->kind == HA_LIST ? feeds->n : 0;
    p->funcs = ARENA_NEWN(&p->arena, const char *, p->ndevices + p->nfeeds);
    p->exes = ARENA_NEWN(&p->arena, otrn_exe *, p->ndevices + p->nfeeds);
    for (uint32_t i = 0; i < p->ndevices; i++) {
        const HloAttr *row = &rows->list[i / cols];
        if (row->kind != HA_LIST || row->n != cols)
            ctx_fail(h->ctx, OTRN_VERIFY, hlo_place(h, c.op.loc), "replicas of different size");
        p->funcs[i] = func_name(p, h, &row->list[i % cols]);
    }
    for (uint32_t i = 0; i < p->nfeeds; i++)
        p->funcs[p->ndevices + i] = func_name(p, h, &feeds->list[i]);
}

// Raises a status as an error of this context.
static void need(RtParallel *p, otrn_status s, const otrn_error *err) {
    if (s == OTRN_OK)
        return;
    p->ctx.err = *err;
    longjmp(*p->ctx.on_fail, 1);
}

static otrn_exe *compile_part(RtParallel *p, RtPrepare *prepare, void *arg) {
    otrn_error err = OTRN_ERROR_INIT;
    otrn_exe *exe;
    need(p,
         exe_compile(p->env,
                     &(RtCompile){.name = p->name,
                                  .bytes = p->bytes,
                                  .size = p->size,
                                  .prepare = prepare,
                                  .prepare_arg = arg},
                     &exe, &err),
         &err);
    return exe;
}

static void read_and_compile(RtParallel *p) {
    Arena graph;
    arena_init(&graph, &p->ctx);
    jmp_buf here, *outer = p->ctx.on_fail;
    Arena *volatile keep = &graph;
    bool ok = CTX_TRY(&p->ctx, here);
    if (ok) {
        Hlo *h = read_program(&p->ctx, keep, p->name, p->bytes, p->size);
        hlo_verify(h);
        find_programs(p, h);
    }
    p->ctx.on_fail = outer;
    arena_fini(keep);
    if (!ok)
        longjmp(*outer, 1);
    p->first = compile_part(p, prepare_first, p);
    p->last = compile_part(p, prepare_last, p);
    for (uint32_t i = 0; i < p->ndevices + p->nfeeds; i++) {
        for (uint32_t k = 0; k < i && !p->exes[i]; k++)
            if (!strcmp(p->funcs[k], p->funcs[i]))
                p->exes[i] = p->exes[k];
        if (!p->exes[i])
            p->exes[i] = compile_part(p, prepare_func, (void *)p->funcs[i]);
    }
}

// Operands and results of the cut are those of the programs.
static void check_types(RtParallel *p) {
    size_t in = otrn_exe_num_results(p->first) - p->nkept, at = 0;
    size_t out = otrn_exe_num_args(p->last) - p->nkept, got = 0;
    for (uint32_t i = 0; i < p->ndevices; i++) {
        for (size_t k = 0; k < otrn_exe_num_args(p->exes[i]) && at < in; k++, at++)
            if (memcmp(otrn_exe_arg_type(p->exes[i], k), otrn_exe_result_type(p->first, at),
                       sizeof(otrn_type)))
                at = in;
        for (size_t k = 0; k < otrn_exe_num_results(p->exes[i]) && got < out; k++, got++)
            if (memcmp(otrn_exe_result_type(p->exes[i], k),
                       otrn_exe_arg_type(p->last, p->nkept + got), sizeof(otrn_type)))
                got = out;
    }
    size_t nargs = 0, nresults = 0;
    for (uint32_t i = 0; i < p->ndevices; i++) {
        nargs += otrn_exe_num_args(p->exes[i]);
        nresults += otrn_exe_num_results(p->exes[i]);
    }
    bool fed = true;
    for (uint32_t i = 0; i < p->nfeeds; i++)
        fed = fed && otrn_exe_num_args(p->exes[p->ndevices + i]) == 0;
    if (at != nargs || at != in || got != nresults || got != out || !fed)
        ctx_fail(&p->ctx, OTRN_VERIFY, (Place){.file = p->name},
                 "run_parallel does not take and return what its programs do");
}

otrn_status rt_parallel_make(otrn_env *env, const void *bytes, size_t size, const char *name,
                             RtParallel **out, otrn_error *err) {
    *out = NULL;
    RtParallel *p = calloc(1, sizeof *p);
    if (!p)
        return ctx_set(err, OTRN_NOMEM, NO_PLACE, "out of memory");
    *p = (RtParallel){.env = env, .name = name, .bytes = bytes, .size = size};
    arena_init(&p->arena, &p->ctx);
    jmp_buf here;
    if (CTX_TRY(&p->ctx, here)) {
        read_and_compile(p);
        check_types(p);
        *out = p;
        return OTRN_OK;
    }
    otrn_status s = rt_fail(err, &p->ctx);
    rt_parallel_free(p);
    return s;
}

void rt_parallel_free(RtParallel *p) {
    if (!p)
        return;
    otrn_exe_free(p->first);
    otrn_exe_free(p->last);
    for (uint32_t i = 0; p->exes && i < p->ndevices + p->nfeeds; i++) {
        bool shared = false;
        for (uint32_t k = 0; k < i; k++)
            shared = shared || p->exes[k] == p->exes[i];
        if (!shared)
            otrn_exe_free(p->exes[i]);
    }
    arena_fini(&p->arena);
    free(p);
}

const otrn_exe *rt_parallel_first(const RtParallel *p) {
    return p->first;
}
const otrn_exe *rt_parallel_last(const RtParallel *p) {
    return p->last;
}

// --- running -----------------------------------------------------------------------------------

static otrn_buffer *results_make(RtParallel *p, const otrn_exe *exe) {
    size_t n = otrn_exe_num_results(exe);
    otrn_buffer *out = ARENA_NEWN(&p->arena, otrn_buffer, n + 1);
    for (size_t i = 0; i < n; i++) {
        size_t bytes = otrn_type_bytes(otrn_exe_result_type(exe, i));
        out[i] = (otrn_buffer){arena_alloc(&p->arena, bytes + 1), bytes};
    }
    return out;
}

static ManyFeed *feeds_make(RtParallel *p) {
    ManyFeed *feeds = ARENA_NEWN(&p->arena, ManyFeed, p->nfeeds + 1);
    for (uint32_t i = 0; i < p->nfeeds; i++) {
        otrn_exe *exe = p->exes[p->ndevices + i];
        otrn_error err = OTRN_ERROR_INIT;
        otrn_buffer *values = results_make(p, exe);
        uint32_t n = (uint32_t)otrn_exe_num_results(exe);
        need(p, otrn_execute(exe, NULL, 0, values, n, &err), &err);
        CommBuf *bufs = ARENA_NEWN(&p->arena, CommBuf, n + 1);
        for (uint32_t k = 0; k < n; k++)
            bufs[k] = (CommBuf){.in = values[k].data, .in_bytes = values[k].bytes};
        feeds[i] = (ManyFeed){bufs, n};
    }
    return feeds;
}

static void run_all(RtParallel *p, const otrn_buffer *args, size_t num_args, const otrn_buffer *results, size_t num_results) {
    otrn_error err = OTRN_ERROR_INIT;
    otrn_buffer *early = results_make(p, p->first);
    size_t nearly = otrn_exe_num_results(p->first), at = 0, nlate = p->nkept;
    need(p, otrn_execute(p->first, args, num_args, early, nearly, &err), &err);
    otrn_buffer *late = ARENA_NEWN(&p->arena, otrn_buffer, otrn_exe_num_args(p->last) + 1);
    for (size_t i = 0; i < p->nkept; i++)
        late[i] = early[nearly - p->nkept + i];
    const otrn_buffer **ins = ARENA_NEWN(&p->arena, const otrn_buffer *, p->ndevices);
    const otrn_buffer **outs = ARENA_NEWN(&p->arena, const otrn_buffer *, p->ndevices);
    for (uint32_t r = 0; r < p->ndevices; r++) {
        ins[r] = early + at;
        outs[r] = results_make(p, p->exes[r]);
        at += otrn_exe_num_args(p->exes[r]);
        for (size_t k = 0; k < otrn_exe_num_results(p->exes[r]); k++)
            late[nlate++] = outs[r][k];
    }
    ManyFeed *feeds = feeds_make(p);
    ManyRun run = {.grid = p->grid, .exes = p->exes, .args = ins, .results = outs, .feeds = feeds, .nfeeds = p->nfeeds};
    need(p, many_run(p->env, &run, &err), &err);
    need(p, otrn_execute(p->last, late, nlate, results, num_results, &err), &err);
}

otrn_status rt_parallel_run(RtParallel *p, const otrn_buffer *args, size_t num_args, const otrn_buffer *results,
                            size_t num_results, otrn_error *err) {
    jmp_buf here;
    if (CTX_TRY(&p->ctx, here)) {
        run_all(p, args, num_args, results, num_results);
        return OTRN_OK;
    }
    return rt_fail(err, &p->ctx);
}
