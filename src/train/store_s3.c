// SPDX-License-Identifier: Apache-2.0
// store_s3.c — checkpoints as objects: PREFIX/step-00000300/…, with a manifest or nothing.
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "train/store.h"

#define MARK "run-"

static const char *object(Arena *a, int64_t step, const char *name) { return arena_printf(a, "%s/%s", store_step_name(a, step), name); }

static int newer(const void *x, const void *y) {
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return (a < b) - (a > b);
}

static int64_t *steps(Ctx *ctx, Arena *a, Store *s, uint32_t *count) {
    S3Names names = {0};
    VEC(int64_t) found = {0};
    s3_list(ctx, a, &s->s3, "step-", &names);
    for (uint32_t i = 0; i < names.n; i++) {
        const char *rest;
        int64_t step;
        if (store_step_parse(names.at[i], &rest, &step) && !strcmp(rest, "/" STORE_MANIFEST))
            VEC_PUSH(a, &found, step);
    }
    if (found.n)
        qsort(found.at, found.n, sizeof *found.at, newer);
    *count = found.n;
    return found.at;
}

typedef struct Sweep {
    int64_t below; // what is not whole and of a step before it goes
    const int64_t *whole;
    uint32_t count;
} Sweep;

static bool sweeps(const char *name, void *arg) {
    const Sweep *w = arg;
    const char *rest;
    int64_t step;
    if (!store_step_parse(name, &rest, &step) || step >= w->below)
        return false;
    for (uint32_t i = 0; i < w->count; i++)
        if (w->whole[i] == step)
            return false;
    return true;
}

// What killed runs left: of steps that come again a run makes use, others go.
static void sweep(Ctx *ctx, Arena *a, Store *s, int64_t below) {
    Sweep w = {.below = below};
    S3Names names = {0};
    w.whole = steps(ctx, a, s, &w.count);
    s3_list(ctx, a, &s->s3, "step-", &names);
    for (uint32_t i = 0; i < names.n; i++)
        if (sweeps(names.at[i], &w))
            s3_remove(ctx, a, &s->s3, names.at[i]);
    s3_uploads_end(ctx, a, &s->s3, sweeps, &w);
}

static void claim(Ctx *ctx, Arena *a, Store *s) {
    S3Names marks = {0};
    s3_list(ctx, a, &s->s3, MARK, &marks);
    for (uint32_t i = 0; i < marks.n; i++)
        s3_remove(ctx, a, &s->s3, marks.at[i]);
    uint32_t count;
    const int64_t *whole = steps(ctx, a, s, &count);
    sweep(ctx, a, s, count ? whole[0] : 0);
}

static const char *mark_of(Arena *a, const Store *s) { return arena_printf(a, MARK "%s", s->run); }

static void mark(Ctx *ctx, Arena *a, Store *s, bool there) {
    if (there)
        s3_put(ctx, a, &s->s3, mark_of(a, s), &(Piece){s->run, sizeof s->run}, 1);
    else
        s3_remove(ctx, a, &s->s3, mark_of(a, s));
}

static bool sees(Ctx *ctx, Arena *a, Store *s) {
    S3Names names = {0};
    s3_list(ctx, a, &s->s3, mark_of(a, s), &names);
    return names.n > 0;
}

static const void *read_object(Ctx *ctx, Arena *a, Store *s, int64_t step, const char *name, size_t *bytes) {
    return s3_get(ctx, a, &s->s3, object(a, step, name), bytes);
}

static void begin(Ctx *ctx, Arena *a, Store *s, int64_t step) { (void)ctx, (void)a, (void)s, (void)step; }

static void put(Ctx *ctx, Arena *a, Store *s, int64_t step, const char *name, const Piece *all) {
    s3_put(ctx, a, &s->s3, object(a, step, name), all, 1);
}

static void commit(Ctx *ctx, Arena *a, Store *s, int64_t step, const Piece *manifest) {
    if (!s3_put_new(ctx, a, &s->s3, object(a, step, STORE_MANIFEST), manifest->data, manifest->bytes)) {
        ctx_hint(ctx, "give this run another --checkpoint, or wait for the other one");
        ctx_fail(ctx, OTRN_IO, (Place){.file = s->where}, "another run has written step %lld there", (long long)step);
    }
    sweep(ctx, a, s, step);
}

static void undo(Arena *a, Store *s, int64_t step) { (void)a, (void)s, (void)step; } // what went up need not go up again

static void drop(Ctx *ctx, Arena *a, Store *s, int64_t step) {
    S3Names names = {0};
    s3_remove(ctx, a, &s->s3, object(a, step, STORE_MANIFEST));
    s3_list(ctx, a, &s->s3, object(a, step, ""), &names);
    for (uint32_t i = 0; i < names.n; i++)
        s3_remove(ctx, a, &s->s3, names.at[i]);
}

// Its manifest gets another name; the objects stay until the step is written again.
static void aside(Ctx *ctx, Arena *a, Store *s, int64_t step) {
    size_t bytes;
    const void *manifest = read_object(ctx, a, s, step, STORE_MANIFEST, &bytes);
    s3_put(ctx, a, &s->s3, arena_printf(a, "damaged-%s", object(a, step, STORE_MANIFEST)), &(Piece){manifest, bytes}, 1);
    s3_remove(ctx, a, &s->s3, object(a, step, STORE_MANIFEST));
}

static void close_s3(Store *s) { s3_close(&s->s3); }

const StoreKind store_s3 = {"s3", true, claim, mark, sees, steps, read_object, begin, put, commit, undo, drop, aside, close_s3};
