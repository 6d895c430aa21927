// SPDX-License-Identifier: Apache-2.0
// checkpoint.c — checkpoints written and read.
#include "train/checkpoint.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define SHARDS 8 // of a usual model: enough for some writers
#define SHARD_LEAST ((size_t)64 << 10)
#define SHARD_MOST ((size_t)64 << 20)

// --- writing ---------------------------------------------------------------------------------------

static size_t shard_limit(const Tensor *t, size_t count) {
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += t[i].bytes;
    bytes = bytes / SHARDS + 1;
    return bytes < SHARD_LEAST ? SHARD_LEAST : bytes > SHARD_MOST ? SHARD_MOST : bytes;
}

static Shard shard_make(Arena *a, const Tensor *t, size_t first, size_t end) {
    Buf head = {.arena = a};
    safetensors_head(t + first, end - first, &head);
    Shard s = {.first = first, .count = end - first, .head = head.at, .head_bytes = head.n, .bytes = head.n};
    for (size_t i = first; i < end; i++)
        s.bytes += t[i].bytes;
    return s;
}

void shards_cut(Arena *a, const Tensor *t, size_t count, Shards *out) {
    size_t limit = shard_limit(t, count), end;
    *out = (Shards){.at = ARENA_NEWN(a, Shard, count + 1)};
    for (size_t i = 0; i < count; i = end) {
        size_t bytes = t[i].bytes;
        for (end = i + 1; end < count && bytes + t[end].bytes <= limit; end++)
            bytes += t[end].bytes;
        out->at[out->n++] = shard_make(a, t, i, end);
    }
    for (size_t k = 0; k < out->n; k++)
        out->at[k].name = arena_printf(a, "shard-%05zu-of-%05zu.safetensors", k, out->n);
}

void shards_deal(Arena *a, const Shards *shards, const uint8_t *writes, uint32_t world) {
    size_t *has = ARENA_NEWN(a, size_t, world);
    for (size_t k = 0; k < shards->n; k++) {
        uint32_t least = UINT32_MAX;
        for (uint32_t i = 0; i < world; i++)
            if (writes[i] && (least == UINT32_MAX || has[i] < has[least]))
                least = i;
        assert(least < world);
        shards->at[k].owner = least, has[least] += shards->at[k].bytes;
    }
}

void shard_put(Ctx *ctx, Arena *a, Store *s, int64_t step, Shard *shard, const uint8_t *bytes) {
    shard->crc = crc32c(0, bytes, shard->bytes);
    s->kind->put(ctx, a, s, step, shard->name, &(Piece){bytes, shard->bytes});
}

void checkpoint_commit(Ctx *ctx, Arena *a, Store *s, int64_t step, const char *meta, const Shards *shards) {
    Buf manifest = {.arena = a};
    buf_printf(&manifest, "{\"format\": \"opentrn checkpoint\", \"version\": 1, \"step\": %lld,\n %s,\n \"files\": [", (long long)step, meta);
    for (size_t k = 0; k < shards->n; k++) {
        const Shard *f = &shards->at[k];
        buf_printf(&manifest, "%s\n  {\"name\": \"%s\", \"bytes\": %zu, \"crc32c\": \"%08x\"}", k ? "," : "", f->name, f->bytes, f->crc);
    }
    buf_puts(&manifest, "],\n \"check\": \"");
    buf_printf(&manifest, "%08x\"}\n", crc32c(0, manifest.at, manifest.n));
    s->kind->commit(ctx, a, s, step, &(Piece){manifest.at, manifest.n});
}

// --- reading ---------------------------------------------------------------------------------------

const Json *checkpoint_manifest(Ctx *ctx, Arena *a, const char *path, const char *text, size_t size) {
    const Json *m = json_parse(ctx, a, path, text, size);
    const Json *check = json_need(ctx, path, m, "check", JSON_TEXT);
    const char *at = NULL;
    for (const char *p = text; (p = strstr(p, "\"check\": \"")); p++)
        at = p;
    if (!at || strtoul(check->text, NULL, 16) != crc32c(0, text, (size_t)(at - text) + 10))
        ctx_fail(ctx, OTRN_PARSE, (Place){.file = path}, "its checksum is wrong: the file was damaged");
    if (json_need(ctx, path, m, "version", JSON_NUMBER)->number != 1)
        ctx_fail(ctx, OTRN_VERSION, (Place){.file = path}, "a checkpoint of a newer release");
    return m;
}

static void shard_read(Ctx *ctx, Arena *a, Store *s, const char *dir, const Json *file, Checkpoint *c) {
    const char *name = json_need(ctx, dir, file, "name", JSON_TEXT)->text;
    if (strchr(name, '/'))
        ctx_fail(ctx, OTRN_PARSE, (Place){.file = dir}, "`%s` is no file of this checkpoint", name);
    const char *path = arena_printf(a, "%s/%s", dir, name);
    size_t size, count;
    const uint8_t *bytes = s->kind->read(ctx, a, s, c->step, name, &size);
    if ((double)size != json_need(ctx, dir, file, "bytes", JSON_NUMBER)->number ||
        crc32c(0, bytes, size) != strtoul(json_need(ctx, dir, file, "crc32c", JSON_TEXT)->text, NULL, 16))
        ctx_fail(ctx, OTRN_PARSE, (Place){.file = path}, "its checksum is wrong: the file was damaged");
    Tensor *t = safetensors_parse(ctx, a, path, bytes, size, &count);
    Tensor *all = ARENA_NEWN(a, Tensor, c->count + count + 1);
    memcpy(all, c->tensors, c->count * sizeof *all); // few shards
    memcpy(all + c->count, t, count * sizeof *all);
    c->tensors = all, c->count += count;
}

// The checkpoint of one step. Raises IO or PARSE: damaged.
static void checkpoint_read(Ctx *ctx, Arena *a, Store *s, int64_t step, Checkpoint *out) {
    const char *dir = arena_printf(a, "%s/%s", s->where, store_step_name(a, step));
    *out = (Checkpoint){.step = step, .path = dir, .tensors = ARENA_NEW(a, Tensor)};
    size_t size;
    out->text = s->kind->read(ctx, a, s, step, STORE_MANIFEST, &size);
    out->manifest = checkpoint_manifest(ctx, a, arena_printf(a, "%s/" STORE_MANIFEST, dir), out->text, size);
    if (json_need(ctx, dir, out->manifest, "step", JSON_NUMBER)->number != (double)step)
        ctx_fail(ctx, OTRN_PARSE, (Place){.file = dir}, "its manifest is another step's");
    const Json *files = json_need(ctx, dir, out->manifest, "files", JSON_LIST);
    for (uint32_t i = 0; i < files->n; i++)
        shard_read(ctx, a, s, dir, &files->at[i], out);
}

bool checkpoint_newest(Ctx *ctx, Arena *a, Store *s, Checkpoint *out, Buf *complaints) {
    uint32_t count;
    const int64_t *steps = s->kind->steps(ctx, a, s, &count);
    jmp_buf jb, *outer = ctx->on_fail;
    volatile bool found = false;
    for (volatile uint32_t i = 0; i < count && !found; i++) {
        if (CTX_TRY(ctx, jb)) {
            checkpoint_read(ctx, a, s, steps[i], out);
            found = true;
        } else if (ctx->err.code == OTRN_NOMEM || (s->kind->patient && s->s3.passing)) { // not damaged
            ctx->on_fail = outer;
            longjmp(*outer, 1);
        } else {
            ctx->on_fail = outer;
            buf_printf(complaints, "%s: %s\n", ctx->err.file, ctx->err.text);
        }
    }
    ctx->on_fail = outer;
    return found;
}

void checkpoint_keep(Ctx *ctx, Arena *a, Store *s, uint64_t keep) {
    uint32_t count;
    const int64_t *steps = s->kind->steps(ctx, a, s, &count);
    for (uint32_t i = 0; keep && i < count; i++)
        if (i >= keep)
            s->kind->drop(ctx, a, s, steps[i]);
}

void checkpoint_aside(Ctx *ctx, Arena *a, Store *s, int64_t step) {
    uint32_t count;
    const int64_t *steps = s->kind->steps(ctx, a, s, &count);
    for (uint32_t i = 0; i < count && steps[i] > step; i++)
        s->kind->aside(ctx, a, s, steps[i]);
}
