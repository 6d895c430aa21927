// SPDX-License-Identifier: Apache-2.0
// cache.c — compiled programs, kept and found again across processes.
//
// An entry is one artifact file named by the 128-bit hash of what it was made from: the program's bytes and
// name (an artifact carries the user's source places, so they count), the options that change code, the chip
// file's values and the compiler's release. So a hit costs no parsing.
// Entries are written under a temporary name and renamed, so readers on any host see all or nothing; there
// is no lock. An entry that does not load is as good as absent and is overwritten.
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "rt/rt.h"

#define SUFFIX ".otrn"

const char *rt_cache_dir(Arena *a, const Options *o) {
    if (*o->val[OPT_CACHE_DIR])
        return o->val[OPT_CACHE_DIR];
    if (*o->val[OPT_XDG_CACHE])
        return arena_printf(a, "%s/opentrn", o->val[OPT_XDG_CACHE]);
    if (*o->val[OPT_HOME])
        return arena_printf(a, "%s/.cache/opentrn", o->val[OPT_HOME]);
    return "";
}

// Types as they are; values only where they become constants.
static void put_arguments(Buf *text, const RtCompile *in) {
    for (size_t i = 0; i < in->count; i++) {
        const otrn_type *t = &in->types[i];
        put_u32(text, (uint32_t)t->dtype);
        put_u32(text, (uint32_t)t->rank);
        for (int d = 0; d < t->rank && d < OTRN_MAX_RANK; d++)
            put_u64(text, (uint64_t)t->dims[d]);
        bool is_scalar = t->rank == 0 && t->dtype > 0 && t->dtype < DT_COUNT && dtype_is_int(t->dtype);
        if (is_scalar && in->values && in->values[i])
            buf_put(text, in->values[i], dtype_bytes(t->dtype));
    }
}

void rt_cache_key(Arena *a, const RtCompile *in, bool bound, const ChipFile *chip, char key[33]) {
    Buf text = {.arena = a};
    put_str(&text, OTRN_RELEASE);
    put_u32(&text, ARTIFACT_VERSION);
    put_str(&text, in->opts->val[OPT_DISABLE]);
    put_str(&text, in->name); // places in messages refer to it
    chipfile_print(chip, &text);
    Hash128 program = hash128(in->bytes, in->size);
    put_u64(&text, program.lo);
    put_u64(&text, program.hi);
    if (bound)
        put_arguments(&text, in);
    Hash128 h = hash128(text.at, text.n);
    snprintf(key, 33, "%016llx%016llx", (unsigned long long)h.hi, (unsigned long long)h.lo);
}

// Runs a task with errors caught: the cache never makes a compile fail.
typedef void Task(Ctx *ctx, void *arg);
static bool quietly(Task *task, void *arg) {
    Ctx ctx = {0};
    jmp_buf here;
    if (!CTX_TRY(&ctx, here))
        return false;
    task(&ctx, arg);
    return true;
}

bool rt_cache_get(Arena *a, const char *dir, const char *key, Buf *out) {
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s" SUFFIX, dir, key) >= (int)sizeof path)
        return false;
    struct stat st;
    if (stat(path, &st) || !S_ISREG(st.st_mode))
        return false;
    out->arena = a;
    buf_reserve(out, (size_t)st.st_size); // now, while nothing else is held
    Ctx ctx = {0};
    jmp_buf here;
    Arena tmp;
    arena_init(&tmp, &ctx);
    Arena *volatile keep = &tmp;
    volatile bool ok = CTX_TRY(&ctx, here);
    if (ok) {
        size_t size;
        const uint8_t *bytes = file_read(&ctx, keep, path, &size);
        artifact_load(&ctx, keep, path, bytes, size); // checksums and every index
        ok = size <= (size_t)st.st_size;
        if (ok)
            buf_put(out, bytes, size);
    }
    arena_fini(keep);
    return ok;
}

typedef struct Put {
    const char *dir, *key;
    const Buf *bytes;
} Put;

static void write_entry(Ctx *ctx, void *arg) {
    Put *p = arg;
    dir_make(ctx, p->dir);
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s" SUFFIX, p->dir, p->key) < (int)sizeof path)
        file_write(ctx, path, p->bytes->at, p->bytes->n);
}

void rt_cache_put(const char *dir, const char *key, const Buf *bytes) {
    quietly(write_entry, &(Put){dir, key, bytes});
}

// --- looking at entries --------------------------------------------------------------------------------

static bool is_entry(const char *name) {
    size_t n = strlen(name);
    return n == 32 + strlen(SUFFIX) && !strcmp(name + 32, SUFFIX);
}

typedef struct Entry {
    const char *path, *file;
    RtCacheFn *fn;
    void *arg;
} Entry;

static void show_entry(const Entry *e) {
    struct stat st;
    if (stat(e->path, &st))
        return;
    Ctx ctx = {0};
    jmp_buf here;
    Arena tmp;
    arena_init(&tmp, &ctx);
    Arena *volatile keep = &tmp;
    if (CTX_TRY(&ctx, here)) {
        size_t size;
        const uint8_t *bytes = file_read(&ctx, keep, e->path, &size);
        const Artifact *art = artifact_load(&ctx, keep, e->path, bytes, size);
        e->fn(e->arg, e->file, art, size, (int64_t)st.st_mtime);
    }
    arena_fini(keep);
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

// Names of all entries, sorted, in the arena. A folder that does not exist has none.
static char **list_entries(Ctx *ctx, Arena *a, const char *dir, uint32_t *count) {
    VEC(char *) names = {0};
    DIR *d = opendir(dir);
    *count = 0;
    if (!d && errno == ENOENT)
        return NULL;
    if (!d)
        ctx_fail(ctx, OTRN_IO, (Place){.file = dir}, "cannot open the cache folder: %s", strerror(errno));
    jmp_buf *outer = ctx->on_fail;
    jmp_buf here;
    DIR *volatile open = d;
    bool ok = CTX_TRY(ctx, here);
    if (ok)
        for (struct dirent *e; (e = readdir(open));)
            if (is_entry(e->d_name))
                VEC_PUSH(a, &names, arena_strndup(a, e->d_name, strlen(e->d_name)));
    ctx->on_fail = outer;
    closedir(open);
    if (!ok)
        longjmp(*outer, 1);
    if (names.n)
        qsort(names.at, names.n, sizeof *names.at, by_name);
    *count = names.n;
    return names.at;
}

uint32_t rt_cache_each(Ctx *ctx, Arena *a, const char *dir, RtCacheFn *fn, void *arg) {
    uint32_t n;
    char **names = list_entries(ctx, a, dir, &n);
    for (uint32_t i = 0; i < n; i++)
        show_entry(&(Entry){arena_printf(a, "%s/%s", dir, names[i]), names[i], fn, arg});
    return n;
}

uint32_t rt_cache_clear(Ctx *ctx, Arena *a, const char *dir) {
    uint32_t n, removed = 0;
    char **names = list_entries(ctx, a, dir, &n);
    for (uint32_t i = 0; i < n; i++)
        removed += unlink(arena_printf(a, "%s/%s", dir, names[i])) == 0;
    return removed;
}
