// SPDX-License-Identifier: Apache-2.0
// cache_tend.c — the cache's folder from outside: list, check, prune, empty, and say why something is not there.
//
//   KEY.otrn   an entry             KEY.why    what its key was made of
//   .claims    see cache.c           *.tmp     being written, or left by a process that was ended
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "rt/rt.h"

#define STALE_S 600 // temporary files older than this belong to nobody
#define KEY_CHARS 32

static bool has_suffix(const char *name, const char *suffix) {
    size_t n = strlen(name), m = strlen(suffix);
    return n >= m && !strcmp(name + n - m, suffix);
}

static bool is_key_file(const char *name, const char *suffix) {
    return strlen(name) == KEY_CHARS + strlen(suffix) && has_suffix(name, suffix) &&
           strspn(name, "0123456789abcdef") == KEY_CHARS;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

// Names of all files, sorted, in the arena. A folder that does not exist has none.
static char **list_files(Ctx *ctx, Arena *a, const char *dir, uint32_t *count) {
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
            if (e->d_name[0] != '.')
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

typedef struct Entry {
    const char *path, *file;
    RtCacheFn *fn;
    void *arg;
} Entry;

// Calls fn with the artifact, or with NULL when it does not load.
static void show_entry(const Entry *e) {
    struct stat st;
    if (stat(e->path, &st))
        return;
    Ctx ctx = {0};
    jmp_buf here;
    Arena tmp;
    arena_init(&tmp, &ctx);
    Arena *volatile keep = &tmp;
    const Artifact *volatile art = NULL;
    if (CTX_TRY(&ctx, here)) {
        size_t size;
        const uint8_t *bytes = file_read(&ctx, keep, e->path, &size);
        art = artifact_load(&ctx, keep, e->path, bytes, size);
    }
    e->fn(e->arg, e->file, art, (uint64_t)st.st_size, (int64_t)st.st_mtime);
    arena_fini(keep);
}

uint32_t rt_cache_each(Ctx *ctx, Arena *a, const char *dir, RtCacheFn *fn, void *arg) {
    uint32_t n, entries = 0;
    char **names = list_files(ctx, a, dir, &n);
    for (uint32_t i = 0; i < n; i++)
        if (is_key_file(names[i], RT_CACHE_ENTRY)) {
            show_entry(&(Entry){arena_printf(a, "%s/%s", dir, names[i]), names[i], fn, arg});
            entries++;
        }
    return entries;
}

static bool remove_file(Arena *a, const char *dir, const char *name) {
    return unlink(arena_printf(a, "%s/%s", dir, name)) == 0;
}

static bool remove_entry(Arena *a, const char *dir, const char *name) {
    unlink(arena_printf(a, "%s/%.32s" RT_CACHE_WHY, dir, name));
    return remove_file(a, dir, name);
}

uint32_t rt_cache_clear(Ctx *ctx, Arena *a, const char *dir) {
    uint32_t n, removed = 0;
    char **names = list_files(ctx, a, dir, &n);
    for (uint32_t i = 0; i < n; i++) {
        if (is_key_file(names[i], RT_CACHE_ENTRY))
            removed += remove_entry(a, dir, names[i]);
        else if (is_key_file(names[i], RT_CACHE_WHY) || has_suffix(names[i], ".tmp"))
            remove_file(a, dir, names[i]);
    }
    return removed;
}

// --- size ----------------------------------------------------------------------------------------------

typedef struct Aged {
    const char *name;
    int64_t mtime_ns;
    uint64_t bytes;
} Aged;

static int by_age(const void *a, const void *b) {
    const Aged *x = a, *y = b;
    return x->mtime_ns < y->mtime_ns ? -1 : x->mtime_ns > y->mtime_ns;
}

uint32_t rt_cache_evict(Ctx *ctx, Arena *a, const char *dir, uint64_t limit_bytes, const char *keep) {
    uint32_t n, count = 0, removed = 0;
    uint64_t total = 0;
    char **names = list_files(ctx, a, dir, &n);
    Aged *entries = ARENA_NEWN(a, Aged, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        struct stat st;
        if (!is_key_file(names[i], RT_CACHE_ENTRY) || stat(arena_printf(a, "%s/%s", dir, names[i]), &st))
            continue;
        int64_t ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
        entries[count++] = (Aged){names[i], ns, (uint64_t)st.st_size};
        total += (uint64_t)st.st_size;
    }
    qsort(entries, count, sizeof *entries, by_age);
    for (uint32_t i = 0; i < count && total > limit_bytes; i++)
        if (!keep || strncmp(entries[i].name, keep, KEY_CHARS)) {
            total -= entries[i].bytes;
            removed += remove_entry(a, dir, entries[i].name);
        }
    return removed;
}

typedef struct Prune {
    Arena *arena;
    const char *dir;
    uint32_t removed;
} Prune;

static void prune_entry(void *arg, const char *file, const Artifact *art, uint64_t bytes, int64_t mtime) {
    Prune *p = arg;
    (void)bytes, (void)mtime;
    if (!art || strcmp(art->producer, "opentrn " OTRN_RELEASE)) // damaged, or no key leads to it any more
        p->removed += remove_entry(p->arena, p->dir, file);
}

static bool is_left_over(Arena *a, const char *dir, const char *name) {
    struct stat st;
    const char *path = arena_printf(a, "%s/%s", dir, name);
    bool old = !stat(path, &st) && time(NULL) - st.st_mtime > STALE_S;
    if (has_suffix(name, ".tmp"))
        return old;
    return old && is_key_file(name, RT_CACHE_WHY) &&
           stat(arena_printf(a, "%s/%.32s" RT_CACHE_ENTRY, dir, name), &st);
}

uint32_t rt_cache_prune(Ctx *ctx, Arena *a, const char *dir, uint64_t limit_bytes) {
    Prune p = {a, dir, 0};
    rt_cache_each(ctx, a, dir, prune_entry, &p);
    uint32_t n;
    char **names = list_files(ctx, a, dir, &n);
    for (uint32_t i = 0; i < n; i++)
        if (is_left_over(a, dir, names[i]))
            p.removed += remove_file(a, dir, names[i]);
    return p.removed + (limit_bytes ? rt_cache_evict(ctx, a, dir, limit_bytes, NULL) : 0);
}

// --- why -----------------------------------------------------------------------------------------------

static const char *line_end(const char *s) { return s + strcspn(s, "\n"); }

// Lines that are the same in both, the program's counted as more than all others together.
static uint32_t likeness(const char *a, const char *b) {
    uint32_t same = 0;
    while (*a && *b) {
        size_t n = (size_t)(line_end(a) - a);
        if ((size_t)(line_end(b) - b) == n && !memcmp(a, b, n))
            same += strncmp(a, "program ", 8) ? 1 : 100;
        a = line_end(a) + (*line_end(a) == '\n');
        b = line_end(b) + (*line_end(b) == '\n');
    }
    return same;
}

const char *rt_cache_nearest(Ctx *ctx, Arena *a, const char *dir, const char *inputs, const char **key) {
    uint32_t n, best = 0;
    const char *found = NULL;
    char **names = list_files(ctx, a, dir, &n);
    for (uint32_t i = 0; i < n; i++) {
        size_t size;
        struct stat st;
        if (!is_key_file(names[i], RT_CACHE_WHY) ||
            stat(arena_printf(a, "%s/%.32s" RT_CACHE_ENTRY, dir, names[i]), &st))
            continue;
        const char *text = (const char *)file_read(ctx, a, arena_printf(a, "%s/%s", dir, names[i]), &size);
        uint32_t same = likeness(inputs, text);
        if (same > best) {
            best = same;
            found = text;
            *key = arena_strndup(a, names[i], KEY_CHARS);
        }
    }
    return found;
}
