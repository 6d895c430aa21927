// SPDX-License-Identifier: Apache-2.0
// cache_tend.c — the cache's folder from outside: list, check, prune, empty, and say why something is not there.
//
//   KEY.otrn   an entry (cache.h)
//   .claims    see cache.c           *.tmp     being written, or left by a process that was ended
// Earlier releases had shorter keys and a KEY.why beside each: no key leads there any more, and they go first.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "rt/cache.h"

#define STALE_S 600 // temporary files older than this belong to nobody
#define KEY_CHARS (RT_CACHE_KEY - 1)
#define OLD_KEY_CHARS 32

typedef enum Kind { KIND_OTHER, KIND_ENTRY, KIND_OLD, KIND_TMP } Kind;

typedef struct File {
    char *name;
    Kind kind;
    CacheStat stat;
} File;

typedef struct Folder {
    int fd; // -1: there is none
    File *files;
    uint32_t n;
} Folder;

static bool has_suffix(const char *name, const char *suffix) {
    size_t n = strlen(name), m = strlen(suffix);
    return n >= m && !strcmp(name + n - m, suffix);
}

static Kind kind_of(const char *name) {
    size_t digits = strspn(name, "0123456789abcdef");
    if (has_suffix(name, ".tmp"))
        return KIND_TMP;
    if (digits == KEY_CHARS && !strcmp(name + digits, CACHE_ENTRY))
        return KIND_ENTRY;
    if (digits == OLD_KEY_CHARS && (!strcmp(name + digits, CACHE_ENTRY) || !strcmp(name + digits, ".why")))
        return KIND_OLD;
    return KIND_OTHER;
}

// The last used first.
static int by_use(const void *a, const void *b) {
    const File *x = a, *y = b;
    if (x->stat.used_ns != y->stat.used_ns)
        return x->stat.used_ns > y->stat.used_ns ? -1 : 1;
    return strcmp(x->name, y->name);
}

static void list(Arena *a, DIR *d, Folder *out) {
    VEC(File) files = {0};
    for (struct dirent *e; (e = readdir(d));) {
        File f = {.kind = kind_of(e->d_name)};
        if (f.kind == KIND_OTHER || !cache_stat(out->fd, e->d_name, &f.stat))
            continue;
        f.name = arena_strndup(a, e->d_name, strlen(e->d_name));
        VEC_PUSH(a, &files, f);
    }
    if (files.n)
        qsort(files.at, files.n, sizeof *files.at, by_use);
    out->files = files.at;
    out->n = files.n;
}

// What is ours of the folder. A folder that does not exist has nothing; one that is not used is an error. To be closed,
// with nothing raised in between: folder_try.
static void folder_open(Ctx *ctx, Arena *a, const char *dir, Folder *out) {
    RtWarn warn;
    char why[sizeof warn.text];
    rt_warn_init(&warn);
    *out = (Folder){.fd = cache_open(dir, false, &warn)};
    bool refused = rt_warn_take(&warn, why, sizeof why);
    rt_warn_fini(&warn);
    if (refused)
        ctx_fail(ctx, OTRN_IO, NO_PLACE, "%.*s", (int)strcspn(why, ";"), why);
    if (out->fd < 0)
        return;
    int again = openat(out->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *volatile d = again < 0 ? NULL : fdopendir(again);
    jmp_buf here, *outer = ctx->on_fail;
    bool ok = d && CTX_TRY(ctx, here);
    if (ok)
        list(a, d, out);
    ctx->on_fail = outer;
    if (d)
        closedir(d);
    if (ok)
        return;
    close(out->fd);
    if (d)
        longjmp(*outer, 1);
    ctx_fail(ctx, OTRN_IO, (Place){.file = dir}, "cannot list the cache folder: %s", strerror(errno));
}

static void folder_close(Folder *f) {
    if (f->fd >= 0)
        close(f->fd);
}

static bool remove_file(const Folder *folder, const File *f) { return unlinkat(folder->fd, f->name, 0) == 0; }

// Removes those of these kinds; of temporary ones only what nobody writes any more, unless `all`.
static uint32_t remove_kinds(const Folder *folder, unsigned kinds, bool all) {
    uint32_t removed = 0;
    int64_t now = time(NULL);
    for (uint32_t i = 0; i < folder->n; i++) {
        const File *f = &folder->files[i];
        bool stale = f->kind != KIND_TMP || now - f->stat.used_ns / 1000000000 > STALE_S;
        if (kinds >> f->kind & 1 && (all || stale))
            removed += remove_file(folder, f);
    }
    return removed;
}

// --- entries -------------------------------------------------------------------------------------------

// The value behind a line's word, "" when there is no such line. With a hash before the value it is skipped.
static const char *line_value(Arena *a, const char *text, const char *word) {
    size_t n = strlen(word);
    for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        if (strncmp(at, word, n) || at[n] != ' ')
            continue;
        const char *value = at + n + 1;
        if (strspn(value, "0123456789abcdef") == 2 * SHA256_BYTES && value[2 * SHA256_BYTES] == ' ')
            value += 2 * SHA256_BYTES + 1;
        return arena_strndup(a, value, strcspn(value, "\n"));
    }
    return "";
}

typedef struct Look {
    const Folder *folder;
    const File *file;
    bool whole;
    RtCacheItem item;
    const char *inputs;
    uint8_t *volatile bytes;
    Arena *arena;
} Look;

static void look_at(Ctx *ctx, Look *l) {
    RtCacheItem *item = &l->item;
    CacheStat st;
    CacheHead head = {0};
    size_t n = 0;
    l->bytes = cache_read(l->folder->fd, l->file->name, l->whole ? SIZE_MAX - 1 : CACHE_HEAD_MAX + 64, &n, &st);
    item->fault = l->file->stat.regular ? l->bytes ? NULL : "cannot be read" : "is no regular file";
    if (!item->fault)
        item->fault = cache_head(l->arena, l->bytes, n, item->key, &head);
    if (!head.inputs)
        return;
    l->inputs = head.inputs;
    item->target = line_value(l->arena, head.inputs, "target");
    item->name = line_value(l->arena, head.inputs, "name");
    item->release = line_value(l->arena, head.inputs, "release");
    item->module = line_value(l->arena, head.about, "module");
    if (!l->whole || item->fault)
        return;
    item->fault = "is damaged"; // unless it loads
    if (head.artifact <= n)
        artifact_load(ctx, l->arena, item->key, l->bytes + head.artifact, n - head.artifact);
    item->fault = head.artifact <= n ? NULL : "is cut off";
}

// What there is to know of an entry, in an arena of its own that the caller ends.
static void look(const Folder *folder, const File *file, bool whole, Arena *arena, Ctx *ctx, Look *out) {
    *out = (Look){.folder = folder, .file = file, .whole = whole, .arena = arena};
    out->item = (RtCacheItem){.fault = "is damaged", .target = "", .name = "", .module = "", .release = "",
                              .bytes = file->stat.bytes, .used = file->stat.used_ns / 1000000000};
    jmp_buf here;
    if (CTX_TRY(ctx, here)) {
        out->item.key = arena_strndup(arena, file->name, KEY_CHARS);
        look_at(ctx, out);
    }
    free(out->bytes);
}

typedef void LookFn(void *arg, const Folder *folder, const Look *look);

static uint32_t each(const Folder *folder, bool whole, LookFn *fn, void *arg) {
    uint32_t entries = 0;
    for (uint32_t i = 0; i < folder->n; i++) {
        if (folder->files[i].kind != KIND_ENTRY)
            continue;
        Ctx ctx = {0};
        Arena tmp;
        Look l;
        arena_init(&tmp, &ctx);
        look(folder, &folder->files[i], whole, &tmp, &ctx, &l);
        fn(arg, folder, &l);
        arena_fini(&tmp);
        entries++;
    }
    return entries;
}

typedef struct Each {
    RtCacheFn *fn;
    void *arg;
} Each;

static void each_item(void *arg, const Folder *folder, const Look *l) {
    const Each *e = arg;
    (void)folder;
    e->fn(e->arg, &l->item);
}

uint32_t rt_cache_each(Ctx *ctx, Arena *a, const char *dir, bool whole, RtCacheFn *fn, void *arg) {
    Folder folder;
    folder_open(ctx, a, dir, &folder);
    uint32_t n = each(&folder, whole, each_item, &(Each){fn, arg});
    folder_close(&folder);
    return n;
}

uint32_t rt_cache_clear(Ctx *ctx, Arena *a, const char *dir) {
    Folder folder;
    folder_open(ctx, a, dir, &folder);
    uint32_t n = remove_kinds(&folder, 1u << KIND_ENTRY, true);
    remove_kinds(&folder, 1u << KIND_OLD | 1u << KIND_TMP, true);
    folder_close(&folder);
    return n;
}

// --- size ----------------------------------------------------------------------------------------------

static uint32_t evict(const Folder *folder, uint64_t limit_bytes, const char *keep) {
    uint64_t total = 0;
    uint32_t removed = remove_kinds(folder, 1u << KIND_OLD | 1u << KIND_TMP, false);
    for (uint32_t i = 0; i < folder->n; i++) {
        CacheStat st;
        if (cache_stat(folder->fd, folder->files[i].name, &st))
            total += st.bytes;
    }
    for (uint32_t i = folder->n; i-- > 0 && total > limit_bytes;) {
        const File *f = &folder->files[i];
        if (f->kind != KIND_ENTRY || (keep && !strncmp(f->name, keep, KEY_CHARS)) || !remove_file(folder, f))
            continue;
        total -= f->stat.bytes;
        removed++;
    }
    return removed;
}

uint32_t rt_cache_evict(Ctx *ctx, Arena *a, const char *dir, uint64_t limit_bytes, const char *keep) {
    Folder folder;
    folder_open(ctx, a, dir, &folder);
    uint32_t n = evict(&folder, limit_bytes, keep);
    folder_close(&folder);
    return n;
}

static void prune_entry(void *arg, const Folder *folder, const Look *l) {
    if (l->item.fault || strcmp(l->item.release, OTRN_RELEASE)) // damaged, or no key leads to it any more
        *(uint32_t *)arg += remove_file(folder, l->file);
}

uint32_t rt_cache_prune(Ctx *ctx, Arena *a, const char *dir, uint64_t limit_bytes) {
    Folder folder;
    uint32_t removed = 0;
    folder_open(ctx, a, dir, &folder);
    each(&folder, true, prune_entry, &removed);
    removed += evict(&folder, limit_bytes ? limit_bytes : UINT64_MAX, NULL);
    folder_close(&folder);
    return removed;
}

// --- why -----------------------------------------------------------------------------------------------

#define LINES_MAX 255

// Lines that are the same in both, the program's counted as more than all others together, its name as more than the rest; of
// two with the same ones that with fewer others is nearer.
static uint32_t likeness(const char *a, const char *b) {
    uint32_t same = 0, lines = 0;
    for (const char *p = b; *p && lines < LINES_MAX; p++)
        lines += *p == '\n';
    for (const char *at = a; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        size_t n = strcspn(at, "\n");
        for (const char *to = b; *to; to += strcspn(to, "\n"), to += *to == '\n')
            if (strcspn(to, "\n") == n && !memcmp(at, to, n))
                same += !strncmp(at, "program ", 8) ? 1000 : !strncmp(at, "name ", 5) ? 100 : 1;
    }
    return same ? same * (LINES_MAX + 1) + LINES_MAX - lines : 0;
}

typedef struct Nearest {
    const char *inputs, *prefix; // one of them is asked about
    uint32_t best, found;
    char key[RT_CACHE_KEY];
    char *text; // on the heap
} Nearest;

static void nearest_entry(void *arg, const Folder *folder, const Look *l) {
    Nearest *n = arg;
    (void)folder;
    if (l->item.fault)
        return;
    uint32_t like = n->prefix ? !strncmp(l->item.key, n->prefix, strlen(n->prefix)) : likeness(n->inputs, l->inputs);
    n->found += like > 0;
    if (like <= n->best)
        return;
    n->best = like;
    memcpy(n->key, l->item.key, RT_CACHE_KEY);
    free(n->text);
    n->text = strdup(l->inputs);
}

static const char *nearest(Ctx *ctx, Arena *a, const char *dir, Nearest *n) {
    Folder folder;
    folder_open(ctx, a, dir, &folder);
    each(&folder, false, nearest_entry, n);
    folder_close(&folder);
    const char *text = n->text ? arena_strndup(a, n->text, strlen(n->text)) : NULL;
    free(n->text);
    return text;
}

const char *rt_cache_nearest(Ctx *ctx, Arena *a, const char *dir, const char *inputs, const char **key) {
    Nearest n = {.inputs = inputs};
    const char *text = nearest(ctx, a, dir, &n);
    *key = arena_strndup(a, n.key, strlen(n.key));
    return text;
}

const char *rt_cache_inputs_of(Ctx *ctx, Arena *a, const char *dir, const char *key) {
    Nearest n = {.prefix = key};
    const char *text = nearest(ctx, a, dir, &n);
    return n.found == 1 ? text : NULL;
}
