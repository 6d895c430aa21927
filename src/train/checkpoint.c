// SPDX-License-Identifier: Apache-2.0
// checkpoint.c — checkpoints written and read.
#include "train/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

#define SHARD_BYTES ((size_t)512 << 20)
#define PREFIX "step-"
#define HIDDEN ".part-" // before the name of what is being written or going

static char *step_name(Arena *a, int64_t step) { return arena_printf(a, PREFIX "%08lld", (long long)step); }

// --- writing ---------------------------------------------------------------------------------------

_Noreturn static void write_fail(Ctx *ctx, const char *path, int err) {
    if (err == ENOSPC || err == EDQUOT)
        ctx_hint(ctx, "make room there, or --keep fewer; the run goes on, and the checkpoints before it are whole");
    ctx_fail(ctx, OTRN_IO, (Place){.file = path}, "cannot write the checkpoint: %s", strerror(err));
}

static int all_write(int fd, const void *from, size_t n, uint32_t *crc) {
    const uint8_t *p = from;
    *crc = crc32c(*crc, p, n);
    while (n) {
        ssize_t put = write(fd, p, n < INT_MAX ? n : INT_MAX / 4096 * 4096);
        if (put < 0 && errno != EINTR)
            return errno;
        if (put > 0)
            p += put, n -= (size_t)put;
    }
    return 0;
}

static int folder_flush(const char *path) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    int err = fsync(fd) ? errno : 0;
    close(fd);
    return err == EINVAL ? 0 : err; // a file system that has no such thing
}

// Head and tensors, flushed. 0 or an errno.
static int shard_write(const char *path, const Buf *head, const Tensor *t, size_t count, uint32_t *crc) {
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return errno;
    int err = all_write(fd, head->at, head->n, crc);
    for (size_t i = 0; i < count && !err; i++)
        err = all_write(fd, t[i].data, t[i].bytes, crc);
    if (!err && fsync(fd))
        err = errno;
    if (close(fd) && !err)
        err = errno;
    return err;
}

static size_t shard_end(const Tensor *t, size_t from, size_t count) {
    size_t bytes = 0, i = from;
    for (; i < count && (i == from || bytes + t[i].bytes <= SHARD_BYTES); i++)
        bytes += t[i].bytes;
    return i;
}

static void folder_remove(const char *path) { // one with files only
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));)
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
            unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        closedir(d);
    rmdir(path);
}

// Everything but the rename. 0 or an errno.
static int parts_write(Arena *a, const char *dir, int64_t step, const char *meta, const Tensor *t, size_t count) {
    Buf manifest = {.arena = a};
    size_t shards = 0, bytes = 0;
    for (size_t i = 0; i < count; i = shard_end(t, i, count))
        shards++;
    buf_printf(&manifest, "{\"format\": \"opentrn checkpoint\", \"version\": 1, \"step\": %lld,\n %s,\n \"files\": [", (long long)step, meta);
    for (size_t i = 0, k = 0; i < count; k++) {
        size_t end = shard_end(t, i, count);
        Buf head = {.arena = a};
        safetensors_head(t + i, end - i, &head);
        const char *name = arena_printf(a, "shard-%05zu-of-%05zu.safetensors", k, shards);
        uint32_t crc = 0;
        int err = shard_write(arena_printf(a, "%s/%s", dir, name), &head, t + i, end - i, &crc);
        if (err)
            return err;
        bytes = head.n;
        for (; i < end; i++)
            bytes += t[i].bytes;
        buf_printf(&manifest, "%s\n  {\"name\": \"%s\", \"bytes\": %zu, \"crc32c\": \"%08x\"}", k ? "," : "", name, bytes, crc);
    }
    buf_puts(&manifest, "],\n \"check\": \"");
    buf_printf(&manifest, "%08x\"}\n", crc32c(0, manifest.at, manifest.n));
    uint32_t ignored = 0;
    int err = shard_write(arena_printf(a, "%s/manifest.json", dir), &manifest, NULL, 0, &ignored);
    return err ? err : folder_flush(dir);
}

void checkpoint_write(Ctx *ctx, Arena *a, const char *folder, int64_t step, const char *meta, const Tensor *t, size_t count) {
    const char *path = arena_printf(a, "%s/%s", folder, step_name(a, step));
    const char *part = arena_printf(a, "%s/" HIDDEN "%s", folder, step_name(a, step));
    const char *old = arena_printf(a, "%s/" HIDDEN "old-%s", folder, step_name(a, step));
    folder_remove(part);
    int err = mkdir(part, 0777) ? errno : parts_write(a, part, step, meta, t, count);
    if (!err && rename(path, old) && errno != ENOENT) // the same step again: one that was found damaged
        err = errno;
    if (!err && rename(part, path))
        err = errno;
    if (!err)
        err = folder_flush(folder);
    folder_remove(err ? part : old);
    if (err)
        write_fail(ctx, path, err);
}

// --- reading ---------------------------------------------------------------------------------------

static int newer(const void *x, const void *y) {
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return (a < b) - (a > b);
}

// Steps there are, the newest first.
static int64_t *steps_list(Ctx *ctx, Arena *a, const char *folder, uint32_t *count) {
    DIR *d = opendir(folder);
    int err = d ? 0 : errno;
    size_t n = 0, cap = 0;
    int64_t *found = NULL; // not the arena's: the folder is open
    for (struct dirent *e; d && (e = readdir(d));) {
        char *end;
        if (strncmp(e->d_name, PREFIX, strlen(PREFIX)))
            continue;
        long long step = strtoll(e->d_name + strlen(PREFIX), &end, 10);
        if (*end || step < 0)
            continue;
        int64_t *more = n < cap ? found : realloc(found, (cap = 2 * cap + 16) * sizeof *found);
        if (!more)
            break;
        found = more, found[n++] = step;
    }
    if (d)
        closedir(d);
    if (n)
        qsort(found, n, sizeof *found, newer);
    int64_t *steps = n ? arena_dup(a, found, n * sizeof *found) : NULL;
    free(found);
    if (err && err != ENOENT)
        ctx_fail(ctx, OTRN_IO, (Place){.file = folder}, "cannot read the folder of checkpoints: %s", strerror(err));
    *count = (uint32_t)n;
    return steps;
}

static const Json *manifest_read(Ctx *ctx, Arena *a, const char *path) {
    size_t size;
    const char *text = (const char *)file_read(ctx, a, path, &size);
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

static void shard_read(Ctx *ctx, Arena *a, const char *dir, const Json *file, Checkpoint *c) {
    const char *name = json_need(ctx, dir, file, "name", JSON_TEXT)->text;
    if (strchr(name, '/'))
        ctx_fail(ctx, OTRN_PARSE, (Place){.file = dir}, "`%s` is no file of this checkpoint", name);
    const char *path = arena_printf(a, "%s/%s", dir, name);
    size_t size, count;
    const uint8_t *bytes = file_read(ctx, a, path, &size);
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
static void checkpoint_read(Ctx *ctx, Arena *a, const char *folder, int64_t step, Checkpoint *out) {
    const char *dir = arena_printf(a, "%s/%s", folder, step_name(a, step));
    *out = (Checkpoint){.step = step, .path = dir, .tensors = ARENA_NEW(a, Tensor)};
    out->manifest = manifest_read(ctx, a, arena_printf(a, "%s/manifest.json", dir));
    if (json_need(ctx, dir, out->manifest, "step", JSON_NUMBER)->number != (double)step)
        ctx_fail(ctx, OTRN_PARSE, (Place){.file = dir}, "its manifest is another step's");
    const Json *files = json_need(ctx, dir, out->manifest, "files", JSON_LIST);
    for (uint32_t i = 0; i < files->n; i++)
        shard_read(ctx, a, dir, &files->at[i], out);
}

bool checkpoint_newest(Ctx *ctx, Arena *a, const char *folder, Checkpoint *out, Buf *complaints) {
    uint32_t count;
    const int64_t *steps = steps_list(ctx, a, folder, &count);
    jmp_buf jb, *outer = ctx->on_fail;
    volatile bool found = false;
    for (volatile uint32_t i = 0; i < count && !found; i++) {
        if (CTX_TRY(ctx, jb)) {
            checkpoint_read(ctx, a, folder, steps[i], out);
            found = true;
        } else if (ctx->err.code == OTRN_NOMEM) {
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

void checkpoint_keep(Ctx *ctx, Arena *a, const char *folder, uint64_t keep) {
    uint32_t count;
    const int64_t *steps = steps_list(ctx, a, folder, &count);
    for (uint32_t i = 0; keep && i < count; i++) {
        if (i < keep)
            continue;
        const char *path = arena_printf(a, "%s/%s", folder, step_name(a, steps[i]));
        const char *old = arena_printf(a, "%s/" HIDDEN "old-%s", folder, step_name(a, steps[i]));
        if (!rename(path, old))
            folder_remove(old);
    }
}

void checkpoint_aside(Ctx *ctx, Arena *a, const char *folder, int64_t step) {
    uint32_t count;
    const int64_t *steps = steps_list(ctx, a, folder, &count);
    for (uint32_t i = 0; i < count && steps[i] > step; i++) {
        const char *name = step_name(a, steps[i]), *to = arena_printf(a, "%s/damaged-%s", folder, name);
        folder_remove(to);
        if (rename(arena_printf(a, "%s/%s", folder, name), to))
            ctx_fail(ctx, OTRN_IO, (Place){.file = folder}, "cannot rename the damaged checkpoint %s: %s", name, strerror(errno));
    }
}
