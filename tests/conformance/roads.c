// SPDX-License-Identifier: Apache-2.0
// roads.c — one program along one road; see roads.h.
#define _GNU_SOURCE // memmem
#include "roads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "hlo/eval.h"
#include "hlo/tol.h"
#include "pass/pass.h"
#include "read/read.h"
#include "rt/parallel.h"
#include "tests/unit/graph_same.h"
#include "write/write.h"
#include "tests/unit/run_sized.h"

const char *const road_names[ROAD_COUNT] = {"print", "write", "evaluator", "chip", "bytecode"};

typedef struct Trip { // one program on one road
    Ctx ctx;
    Arena arena;
    const Program *p;
    Outcome *out;
} Trip;

static void trip_end(Trip *t, State state, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void trip_end(Trip *t, State state, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(t->out->reason, sizeof t->out->reason, fmt, ap);
    va_end(ap);
    t->out->state = state;
}

static void trip_error(Trip *t, const otrn_error *err) {
    t->out->line = err->line;
    trip_end(t, err->code == OTRN_UNSUPPORTED ? STATE_UNSUPPORTED : STATE_FAILED, "%s: %s",
             otrn_status_name(err->code), err->text);
}

// The program's bytes with as many newlines before them as the file has, so that places in messages
// are those of the file.
static const void *program_bytes(Trip *t, size_t *size) {
    const Program *p = t->p;
    size_t lines = p->line - 1, n = p->end - p->begin;
    char *s = arena_alloc(&t->arena, lines + n + 1);
    memset(s, '\n', lines);
    memcpy(s + lines, p->text + p->begin, n);
    s[lines + n] = 0;
    *size = lines + n;
    return s;
}

static Hlo *program_read(Trip *t) {
    size_t size;
    const void *bytes = program_bytes(t, &size);
    Hlo *h = read_program(&t->ctx, &t->arena, t->p->path, bytes, size);
    hlo_verify(h);
    return h;
}

// --- print
// -----------------------------------------------------------------------------------------

static bool printed_same(Trip *t, Hlo *first, bool with_locs) {
    Buf a = {.arena = &t->arena}, b = {.arena = &t->arena};
    hlo_print(first, &a, with_locs);
    Hlo *second = read_text(&t->ctx, &t->arena, "printed", a.at, a.n);
    hlo_verify(second);
    hlo_print(second, &b, with_locs);
    Pair pair = {.x = first, .y = second};
    if (!graph_same(&pair, &t->arena)) {
        trip_end(t, STATE_FAILED, "print: the graph changed: %s", pair.why);
        return false;
    }
    if (a.n != b.n || memcmp(a.at, b.at, a.n)) {
        trip_end(t, STATE_FAILED, "print: not a fixpoint");
        return false;
    }
    return true;
}

static void road_print(Trip *t) {
    Hlo *h = program_read(t);
    if (printed_same(t, h, false) && printed_same(t, h, true))
        t->out->state = STATE_PASSED;
}

// --- write
// ------------------------------------------------------------------------------------------

// Appends the serialised form; false when the format has none for some op (checks of tests, chlo).
static bool serialise(Trip *t, const Hlo *h, Buf *out) {
    jmp_buf here, *outer = t->ctx.on_fail;
    bool ok = CTX_TRY(&t->ctx, here);
    if (ok)
        write_bytecode(h, out);
    t->ctx.on_fail = outer;
    if (!ok && t->ctx.err.code != OTRN_UNSUPPORTED)
        longjmp(*outer, 1);
    return ok;
}

static void road_write(Trip *t) {
    Hlo *first = program_read(t);
    Buf a = {.arena = &t->arena}, b = {.arena = &t->arena}, text = {.arena = &t->arena};
    if (!serialise(t, first, &a)) {
        trip_end(t, STATE_ABSENT, "has no serialised form: %s", t->ctx.err.text);
        return;
    }
    Hlo *second = read_bytecode(&t->ctx, &t->arena, "written", a.at, a.n);
    hlo_verify(second);
    Pair pair = {.x = first, .y = second};
    if (!graph_same(&pair, &t->arena)) {
        trip_end(t, STATE_FAILED, "write: the graph changed: %s", pair.why);
        return;
    }
    hlo_print(second, &text, true);
    write_bytecode(read_text(&t->ctx, &t->arena, "printed", text.at, text.n), &b);
    if (a.n != b.n || memcmp(a.at, b.at, a.n))
        trip_end(t, STATE_FAILED, "write: not a fixpoint");
    else
        t->out->state = STATE_PASSED;
}

// --- bytecode
// --------------------------------------------------------------------------------------

static void road_bytecode(Trip *t) {
    size_t size;
    char *path = arena_printf(&t->arena, "%s.bc", t->p->path);
    const void *bytes = file_read(&t->ctx, &t->arena, path, &size);
    bool must_fail = strstr(t->p->text, "RUN: not stablehlo-translate --deserialize") != NULL;
    jmp_buf here;
    if (must_fail) {
        if (CTX_TRY(&t->ctx, here)) {
            hlo_verify(read_bytecode(&t->ctx, &t->arena, path, bytes, size));
            trip_end(t, STATE_FAILED, "was read, but must be refused");
        } else {
            t->out->state = STATE_PASSED;
        }
        return;
    }
    Pair pair = {.x = read_bytecode(&t->ctx, &t->arena, path, bytes, size)};
    pair.y = program_read(t);
    if (graph_same(&pair, &t->arena))
        t->out->state = STATE_PASSED;
    else
        trip_end(t, STATE_FAILED, "text and bytecode differ: %s", pair.why);
}

// --- entries and their arguments
// -------------------------------------------------------------------

typedef VEC(uint32_t) FuncList; // indices into Hlo.funcs

static void entries_find(Trip *t, Hlo *h, FuncList *out) {
    bool without_args = false;
    for (uint32_t i = 0; i < h->funcs.n; i++) {
        const HloFunc *f = &h->funcs.at[i];
        if (f->body && !strcmp(f->name, "main")) {
            VEC_PUSH(&t->arena, out, i);
            return;
        }
        without_args = without_args || (f->body && !f->is_private && !f->nargs);
    }
    for (uint32_t i = 0; i < h->funcs.n; i++) {
        const HloFunc *f = &h->funcs.at[i];
        if (f->body && !f->is_private && (!without_args || !f->nargs))
            VEC_PUSH(&t->arena, out, i);
    }
}

// Small numbers, the same in every run: whole for integers, in [-2, 2] for floats.
static void fill_element(int dtype, uint64_t r, uint8_t *at) {
    if (dtype_is_complex(dtype)) {
        int part = dtype == DT_C64 ? DT_F32 : DT_F64;
        fill_element(part, r, at);
        fill_element(part, r * 0x9E3779B97F4A7C15u + 1, at + dtype_bytes(part));
    } else if (dtype_is_float(dtype)) {
        dtype_from_f64(dtype, at, (double)(r >> 40) * 0x1p-22 - 2);
    } else {
        dtype_from_i64(dtype, at,
                       dtype_row(dtype)->cls == DC_SINT ? (int64_t)(r >> 32) % 4 - 1
                                                        : (int64_t)(r >> 63));
    }
}

#define OPEN_SIZE 6 // of dimensions that come with the arguments, and of scalars that tell sizes

typedef struct Entry { // one function as the program's entry, ready for the evaluator
    Hlo *h;
    const HloFunc *f;
    uint32_t nargs;
    Tensor *args;
    otrn_type *types;
    const void **data;
} Entry;

static void arg_make(Trip *t, Entry *e, uint32_t i, const HloType *ty, bool open) {
    otrn_type *type = &e->types[i];
    *type = (otrn_type){.dtype = ty->kind == HT_TOKEN ? DT_TOKEN : ty->dtype, .rank = ty->rank};
    for (int d = 0; d < ty->rank; d++)
        type->dims[d] = ty->dims[d] == HLO_DYNAMIC ? OPEN_SIZE : ty->dims[d];
    size_t bytes = otrn_type_bytes(type), elem = dtype_bytes(type->dtype);
    uint8_t *data = arena_zalloc(&t->arena, bytes + 1);
    for (size_t k = 0; elem && k < bytes / elem; k++)
        fill_element(type->dtype, hash64(i, &k, sizeof k), data + k * elem);
    if (open && ty->rank == 0 && dtype_is_int(type->dtype))
        dtype_from_i64(type->dtype, data, OPEN_SIZE);
    e->data[i] = data;
}

// Reads the program with function `index` as its entry and makes up arguments.
static bool entry_open(Trip *t, uint32_t index, Entry *e) {
    Hlo *h = e->h = program_read(t);
    for (uint32_t i = 0; i < h->funcs.n; i++)
        h->funcs.at[i].is_private = i != index;
    HloRegion body = h->regions.at[h->funcs.at[index].body];
    e->nargs = body.nargs;
    e->args = ARENA_NEWN(&t->arena, Tensor, body.nargs + 1);
    e->types = ARENA_NEWN(&t->arena, otrn_type, body.nargs + 1);
    e->data = ARENA_NEWN(&t->arena, const void *, body.nargs + 1);
    bool open = false;
    for (uint32_t i = 0; i < body.nargs; i++)
        open = open || hlo_value_type(h, body.args + i)->dynamic;
    for (uint32_t i = 0; i < body.nargs; i++) {
        const HloType *ty = hlo_value_type(h, body.args + i);
        if (ty->kind != HT_TOKEN && ty->kind != HT_TENSOR) {
            trip_end(t, STATE_ABSENT, "an argument has a type without data");
            return false;
        }
        arg_make(t, e, i, ty, open);
    }
    pass_bind(h, e->types, e->data, body.nargs);
    pass_settle(&(Compile){.ctx = &t->ctx, .arena = &t->arena, .scratch = &t->arena, .hlo = h});
    e->f = hlo_main(h);
    for (uint32_t i = 0; i < body.nargs; i++)
        e->args[i] =
            (Tensor){h->values.at[h->regions.at[e->f->body].args + i].type, (void *)e->data[i]};
    return true;
}

// --- evaluator
// -------------------------------------------------------------------------------------

static void road_eval(Trip *t) {
    Hlo *h = program_read(t);
    FuncList entries = {0};
    entries_find(t, h, &entries);
    if (!entries.n)
        trip_end(t, STATE_ABSENT, "no entry function");
    for (uint32_t i = 0; i < entries.n; i++) {
        Entry e;
        if (!entry_open(t, entries.at[i], &e))
            return;
        eval_func(e.h, &t->arena, e.f, e.args, ARENA_NEWN(&t->arena, Tensor, e.f->nresults + 1u));
        t->out->state = STATE_PASSED;
    }
}

// --- chip
// ------------------------------------------------------------------------------------------

// The text of the module with one function as its entry.
static Buf entry_text(Trip *t, Hlo *h, uint32_t entry) {
    Buf text = {.arena = &t->arena};
    for (uint32_t i = 0; i < h->funcs.n; i++)
        h->funcs.at[i].is_private = i != entry;
    hlo_print(h, &text, true);
    return text;
}

// What the evaluator gives; false when it cannot run the function.
static bool oracle(Trip *t, const Entry *e, Tensor *results) {
    jmp_buf here, *outer = t->ctx.on_fail;
    bool ok = CTX_TRY(&t->ctx, here);
    if (ok)
        eval_func(e->h, &t->arena, e->f, e->args, results);
    t->ctx.on_fail = outer;
    return ok;
}

// Programs with checks of their own are judged by those.
static bool has_checks(const Program *p) {
    return memmem(p->text + p->begin, p->end - p->begin, "check.", 6) != NULL;
}

static bool results_agree(Trip *t, const Entry *e, void *const *got) {
    const HloFunc *f = e->f;
    Tensor *want = ARENA_NEWN(&t->arena, Tensor, f->nresults + 1u);
    if (!f->nresults || has_checks(t->p) || !oracle(t, e, want))
        return true;
    for (uint32_t i = 0; i < f->nresults; i++) {
        const HloType *ty = hlo_type(e->h, f->result_types[i]);
        size_t bad = 0;
        if (ty->kind != HT_TENSOR ||
            tol_close(ty->dtype, got[i], want[i].data, (size_t)ty->elems, &bad))
            continue;
        trip_end(t, STATE_FAILED, "result %u differs from the evaluator's at element %zu", i, bad);
        return false;
    }
    return true;
}

// A main that runs functions on several devices; its own checks judge it.
static bool chip_run_parallel(Trip *t, otrn_env *env, const void *bytes, size_t size, const Entry *e) {
    otrn_error err = OTRN_ERROR_INIT;
    RtParallel *p;
    bool ok = rt_parallel_make(env, bytes, size, t->p->path, &p, &err) == OTRN_OK;
    if (ok) {
        const otrn_exe *last = rt_parallel_last(p);
        size_t n = otrn_exe_num_results(last);
        void **got = ARENA_NEWN(&t->arena, void *, n + 1);
        for (size_t i = 0; i < n; i++)
            got[i] = arena_zalloc(&t->arena, otrn_type_bytes(otrn_exe_result_type(last, i)) + 1);
        otrn_buffer *args = ARENA_NEWN(&t->arena, otrn_buffer, e->nargs + 1), *results = ARENA_NEWN(&t->arena, otrn_buffer, n + 1);
        sized_args(rt_parallel_first(p), e->data, args);
        sized_results(last, got, results);
        ok = rt_parallel_run(p, args, e->nargs, results, n, &err) == OTRN_OK;
        rt_parallel_free(p);
    }
    if (!ok)
        trip_error(t, &err);
    return ok;
}

// Over two cores: the bits of one.
static bool pair_agrees(Trip *t, otrn_env *pair, const void *bytes, size_t size, const Entry *e, void *const *want, size_t n) {
    otrn_error err = OTRN_ERROR_INIT;
    otrn_exe *exe;
    if (otrn_compile_for(pair, bytes, size, t->p->path, e->types, e->data, e->nargs, &exe, &err) != OTRN_OK) {
        trip_error(t, &err);
        return false;
    }
    void **got = ARENA_NEWN(&t->arena, void *, n + 1);
    for (size_t i = 0; i < n; i++)
        got[i] = arena_zalloc(&t->arena, otrn_type_bytes(otrn_exe_result_type(exe, i)) + 1);
    bool ok = run_sized(exe, e->data, got, &err) == OTRN_OK;
    if (!ok)
        trip_error(t, &err);
    for (size_t i = 0; ok && i < n; i++) {
        ok = !memcmp(got[i], want[i], otrn_type_bytes(otrn_exe_result_type(exe, i)));
        if (!ok)
            trip_end(t, STATE_FAILED, "result %zu has other bits with --lnc=2", i);
    }
    otrn_exe_free(exe);
    return ok;
}

static bool chip_run_entry(Trip *t, otrn_env *env, otrn_env *pair, const void *bytes, size_t size, uint32_t index) {
    otrn_error err = OTRN_ERROR_INIT;
    otrn_exe *exe;
    Entry e;
    if (!entry_open(t, index, &e))
        return false;
    if (rt_parallel_is(bytes, size))
        return chip_run_parallel(t, env, bytes, size, &e);
    if (otrn_compile_for(env, bytes, size, t->p->path, e.types, e.data, e.nargs, &exe, &err) !=
        OTRN_OK) {
        trip_error(t, &err);
        return false;
    }
    size_t n = otrn_exe_num_results(exe);
    void **got = ARENA_NEWN(&t->arena, void *, n + 1);
    for (size_t i = 0; i < n; i++)
        got[i] = arena_zalloc(&t->arena, otrn_type_bytes(otrn_exe_result_type(exe, i)) + 1);
    bool ok = run_sized(exe, e.data, got, &err) == OTRN_OK;
    if (!ok)
        trip_error(t, &err);
    otrn_exe_free(exe);
    return ok && (n != e.f->nresults || results_agree(t, &e, got)) && pair_agrees(t, pair, bytes, size, &e, got, n);
}

// Folding is off: it would compute with the evaluator what the chip is to show it can do.
static void road_chip(Trip *t) {
    static const otrn_option options[] = {
        {"cache", "off"}, {"threads", "1"}, {"disable-pass", "fold"}, {"lnc", "2"}};
    const size_t noptions = sizeof options / sizeof *options;
    size_t size;
    const void *bytes = program_bytes(t, &size);
    Hlo *h = program_read(t);
    FuncList entries = {0};
    entries_find(t, h, &entries);
    otrn_error err = OTRN_ERROR_INIT;
    otrn_env *env, *pair;
    if (!entries.n) {
        trip_end(t, STATE_ABSENT, "no entry function");
        return;
    }
    if (otrn_open(options, noptions - 1, &env, &err) != OTRN_OK) {
        trip_error(t, &err);
        return;
    }
    if (otrn_open(options, noptions, &pair, &err) != OTRN_OK) {
        otrn_close(env);
        trip_error(t, &err);
        return;
    }
    bool ok = true;
    for (uint32_t i = 0; ok && i < entries.n; i++) {
        Buf text = {.at = (uint8_t *)bytes, .n = size};
        if (entries.n > 1)
            text = entry_text(t, h, entries.at[i]);
        ok = chip_run_entry(t, env, pair, text.at, text.n, entries.at[i]);
    }
    if (ok)
        t->out->state = STATE_PASSED;
    otrn_close(env);
    otrn_close(pair);
}

// --- entry point
// -----------------------------------------------------------------------------------

void road_run(Road road, const Program *p, Outcome *out) {
    static void (*const roads[ROAD_COUNT])(Trip *) = {road_print, road_write, road_eval, road_chip,
                                                      road_bytecode};
    Trip *t = calloc(1, sizeof *t); // outlives the jump
    if (!t)
        return;
    t->p = p;
    t->out = out;
    arena_init(&t->arena, &t->ctx);
    jmp_buf here;
    if (CTX_TRY(&t->ctx, here))
        roads[road](t);
    else
        trip_error(t, &t->ctx.err);
    arena_fini(&t->arena);
    free(t);
}
