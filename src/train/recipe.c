// SPDX-License-Identifier: Apache-2.0
// recipe.c — what decides a run's numbers, in a checkpoint's manifest.
#include <string.h>

#include "train/train.h"

void recipe_print(const Recipe *r, const Data *d, Buf *out) {
    buf_printf(out, "\"model\": {\"kind\": \"%s\"", model_names[r->model.kind]);
#define X(field) buf_printf(out, ", \"" #field "\": %lld", (long long)r->model.field);
    MODEL_SIZES(X)
#undef X
    buf_printf(out, "},\n \"recipe\": {\"steps\": %lld, \"warmup\": %lld, \"seed\": %lld, \"schedule\": \"%s\", \"lr\": %.17g, \"weight_decay\": %.17g, "
               "\"clip\": %.17g},\n \"data\": {\"path\": ", (long long)r->steps, (long long)r->warmup, (long long)r->seed, schedule_names[r->schedule],
               r->rate, r->adam.decay, r->adam.clip);
    json_put(out, r->data);
    buf_printf(out, ", \"count\": %lld, \"print\": %u}", (long long)d->count, d->print);
}

static int64_t whole(Ctx *ctx, const char *file, const Json *j, const char *name) {
    double v = json_need(ctx, file, j, name, JSON_NUMBER)->number;
    if (!(v >= 0 && v < 9e15) || v != (double)(int64_t)v)
        ctx_fail(ctx, OTRN_PARSE, (Place){.file = file}, "`%s` is no whole number", name);
    return (int64_t)v;
}

static int choice(Ctx *ctx, const char *file, const Json *j, const char *name, const char *const *words, int count) {
    const char *text = json_need(ctx, file, j, name, JSON_TEXT)->text;
    for (int i = 0; i < count; i++)
        if (!strcmp(words[i], text))
            return i;
    ctx_fail(ctx, OTRN_PARSE, (Place){.file = file}, "`%s` is nothing we know: %s", name, text);
}

void recipe_parse(Ctx *ctx, Arena *a, const Checkpoint *c, Recipe *r) {
    (void)a;
    const Json *m = json_need(ctx, c->path, c->manifest, "model", JSON_OBJECT);
    const Json *rest = json_need(ctx, c->path, c->manifest, "recipe", JSON_OBJECT);
    const Json *data = json_need(ctx, c->path, c->manifest, "data", JSON_OBJECT);
    r->model.kind = (ModelKind)choice(ctx, c->path, m, "kind", model_names, MODEL_KINDS);
#define X(field) r->model.field = whole(ctx, c->path, m, #field);
    MODEL_SIZES(X)
#undef X
    r->steps = whole(ctx, c->path, rest, "steps"), r->warmup = whole(ctx, c->path, rest, "warmup"), r->seed = whole(ctx, c->path, rest, "seed");
    r->schedule = (Schedule)choice(ctx, c->path, rest, "schedule", schedule_names, SCHEDULE_COUNT);
    r->rate = json_need(ctx, c->path, rest, "lr", JSON_NUMBER)->number;
    r->adam = ADAM_USUAL;
    r->adam.decay = json_need(ctx, c->path, rest, "weight_decay", JSON_NUMBER)->number;
    r->adam.clip = json_need(ctx, c->path, rest, "clip", JSON_NUMBER)->number;
    r->data = json_need(ctx, c->path, data, "path", JSON_TEXT)->text;
}
