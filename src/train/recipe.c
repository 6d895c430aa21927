// SPDX-License-Identifier: Apache-2.0
// recipe.c — what decides a run's numbers, in a checkpoint's manifest; the learning rate of a step.
#include <string.h>

#include "base/elem.h"
#include "train/train.h"

const char *const schedule_names[SCHEDULE_COUNT] = {"cosine", "linear", "constant"};

double train_rate(const Recipe *r, int64_t step) {
    if (step < r->warmup)
        return r->rate * (double)(step + 1) / (double)r->warmup;
    double span = (double)(r->steps - r->warmup), share = span > 0 ? (double)(step - r->warmup) / span : 0;
    share = share > 1 ? 1 : share;
    double falls = r->schedule == SCHEDULE_COSINE ? 0.5 * (1 + elem_cos(3.14159265358979323846 * share)) : 1 - share;
    return r->schedule == SCHEDULE_CONSTANT ? r->rate : r->rate * (0.1 + 0.9 * falls);
}

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
    if (!r->bpe.count)
        return;
    buf_puts(out, ",\n \"pairs\": [");
    for (uint32_t i = 0; i < r->bpe.count; i++)
        buf_printf(out, "%s%u,%u", i ? "," : "", r->bpe.pairs[i].left, r->bpe.pairs[i].right);
    buf_puts(out, "]");
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

static void pairs_parse(Ctx *ctx, Arena *a, const Checkpoint *c, Bpe *out) {
    const Json *j = json_get(c->manifest, "pairs");
    if (!j || j->kind != JSON_LIST)
        return;
    if (j->n % 2 || j->n / 2 > BPE_TOKENS_MAX - BPE_BYTES)
        ctx_fail(ctx, OTRN_PARSE, (Place){.file = c->path}, "its pairs of tokens are not whole");
    *out = (Bpe){.pairs = ARENA_NEWN(a, BpePair, j->n / 2 + 1), .count = j->n / 2};
    uint32_t *bytes = ARENA_NEWN(a, uint32_t, BPE_BYTES + j->n / 2);
    for (uint32_t i = 0; i < BPE_BYTES; i++)
        bytes[i] = 1;
    for (uint32_t i = 0; i < j->n; i++) {
        double v = j->at[i].number;
        if (j->at[i].kind != JSON_NUMBER || !(v >= 0 && v < BPE_BYTES + i / 2) || v != (double)(uint32_t)v)
            ctx_fail(ctx, OTRN_PARSE, (Place){.file = c->path}, "pair %u is of tokens that are not there", i / 2);
        *(i % 2 ? &out->pairs[i / 2].right : &out->pairs[i / 2].left) = (uint32_t)v;
        if ((bytes[BPE_BYTES + i / 2] += bytes[(uint32_t)v]) > BPE_WORD_BYTES)
            ctx_fail(ctx, OTRN_PARSE, (Place){.file = c->path}, "pair %u stands for more than a word", i / 2);
    }
}

void recipe_parse(Ctx *ctx, Arena *a, const Checkpoint *c, Recipe *r) {
    pairs_parse(ctx, a, c, &r->bpe);
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
