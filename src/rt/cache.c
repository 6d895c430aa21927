// SPDX-License-Identifier: Apache-2.0
// cache.c — compiled programs, kept and found again across processes.
//
// An entry is one file named by the SHA-256 of what it was made from: the program's bytes and name (an artifact carries the
// user's source places, so they count), the options that change code, the chip file's values and the compiler's release.
// So a hit costs no parsing. The entry holds these inputs as text (cache.h): what `otrn cache why` compares, and what
// shows that it is the entry its name says.
//
// Entries are written under a temporary name and renamed, so readers on any host see all or nothing. An
// entry that does not load is as good as absent and is overwritten. Whoever is about to compile claims the
// key, so that others wait for the result instead of compiling it too: a lock on one byte, which the key chooses, of a
// file that all of the folder share. It ends with its process, and there is nothing to make or to remove. A claim only
// saves work: without it, or when it takes too long, everything stays correct.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/now.h"
#include "rt/cache.h"

#define CLAIM_WAIT_S 120 // for another's compilation of the same program
#define LOOK_EVERY 64    // small entries written between two looks at the folder's size
#define TOUCH_S 60       // an entry in use looks at most this old to eviction
#define HEAD_BYTES 24    // before the inputs
#define HEAD_ALIGN 64
static const char magic[8] = "OTRNENT";

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

static const char *hash_text(Arena *a, const void *bytes, size_t n) {
    Sha256 h = sha256(bytes, n);
    char *text = arena_alloc(a, SHA256_TEXT);
    sha256_print(&h, text);
    return text;
}

// A name on one line.
static const char *plain_name(Arena *a, const char *name) {
    char *copy = arena_strndup(a, name, strlen(name));
    for (char *c = copy; *c; c++)
        *c = (unsigned char)*c < ' ' ? '?' : *c;
    return copy;
}

const char *rt_cache_inputs(Arena *a, const RtCompile *in, bool bound, const ChipFile *chip) {
    Buf text = {.arena = a}, part = {.arena = a};
    buf_printf(&text, "release %s\nartifact %u\n", OTRN_RELEASE, ARTIFACT_VERSION);
    for (const char *line = rt_code_options(a, in->opts); *line; line += strcspn(line, "\n"), line += *line == '\n')
        buf_printf(&text, "option %.*s\n", (int)strcspn(line, "\n"), line);
    chipfile_put(chip, &part);
    buf_printf(&text, "target %s %s\n", hash_text(a, part.at, part.n), chip->name);
    buf_printf(&text, "name %s %s\n", hash_text(a, in->name, strlen(in->name)), plain_name(a, in->name));
    buf_printf(&text, "program %s %zu bytes\n", hash_text(a, in->bytes, in->size), in->size);
    part.n = 0;
    if (bound)
        put_arguments(&part, in);
    buf_printf(&text, "arguments %s %s\n", hash_text(a, part.at, part.n), bound ? "given" : "as in the program");
    return buf_cstr(&text);
}

Sha256 rt_cache_key(const char *inputs, char key[RT_CACHE_KEY]) {
    Sha256 h = sha256(inputs, strlen(inputs));
    sha256_print(&h, key);
    return h;
}

// --- entries -------------------------------------------------------------------------------------------

static void head_make(const RtPut *p, Buf *out) {
    uint32_t inputs = (uint32_t)strlen(p->inputs), about = (uint32_t)strlen(p->about);
    buf_put(out, magic, sizeof magic);
    put_u32(out, inputs);
    put_u32(out, about);
    put_u32(out, crc32c(crc32c(0, p->inputs, inputs), p->about, about));
    put_u32(out, 0);
    buf_put(out, p->inputs, inputs);
    buf_put(out, p->about, about);
    put_align(out, HEAD_ALIGN);
}

const char *cache_head(Arena *a, const uint8_t *bytes, size_t n, const char *key, CacheHead *out) {
    char is[RT_CACHE_KEY];
    if (n < HEAD_BYTES || memcmp(bytes, magic, sizeof magic))
        return "is no entry";
    uint64_t inputs = le_load32(bytes + 8), about = le_load32(bytes + 12);
    if (inputs + about > CACHE_HEAD_MAX || HEAD_BYTES + inputs + about > n)
        return "is cut off";
    const char *text = (const char *)bytes + HEAD_BYTES;
    if (crc32c(0, text, inputs + about) != le_load32(bytes + 16) || memchr(text, 0, inputs + about))
        return "is damaged";
    out->inputs = arena_strndup(a, text, inputs);
    out->about = arena_strndup(a, text + inputs, about);
    out->artifact = (HEAD_BYTES + inputs + about + HEAD_ALIGN - 1) / HEAD_ALIGN * HEAD_ALIGN;
    rt_cache_key(out->inputs, is);
    return strncmp(is, key, RT_CACHE_KEY - 1) ? "is another entry under this name" : NULL;
}

// Runs a task with errors caught: the cache never makes a compile fail.
typedef void Task(Ctx *ctx, void *arg);
static bool quietly(Ctx *ctx, Task *task, void *arg) {
    jmp_buf here;
    if (!CTX_TRY(ctx, here))
        return false;
    task(ctx, arg);
    return true;
}

// Into the caller's arena, whose context is another: a heap block waits here.
static bool copy_out(Arena *a, Buf *out, const uint8_t *bytes, size_t n) {
    jmp_buf here, *outer = a->ctx->on_fail;
    bool ok = CTX_TRY(a->ctx, here);
    if (ok)
        buf_put(out, bytes, n);
    a->ctx->on_fail = outer;
    return ok;
}

typedef struct Get {
    const char *key;
    const uint8_t *bytes;
    size_t n, artifact;
    Arena *arena;
} Get;

static void check_entry(Ctx *ctx, void *arg) {
    Get *g = arg;
    CacheHead head;
    const char *fault = cache_head(g->arena, g->bytes, g->n, g->key, &head);
    if (fault || head.artifact > g->n)
        ctx_fail(ctx, OTRN_PARSE, NO_PLACE, "%s", fault ? fault : "is cut off");
    artifact_load(ctx, g->arena, g->key, g->bytes + head.artifact, g->n - head.artifact); // checksums and every index
    g->artifact = head.artifact;
}

bool rt_cache_get(Arena *a, const char *dir, const char *key, RtWarn *warn, Buf *out) {
    char name[RT_CACHE_KEY + sizeof CACHE_ENTRY];
    snprintf(name, sizeof name, "%s" CACHE_ENTRY, key);
    int folder = cache_open(dir, false, warn);
    if (folder < 0)
        return false;
    CacheStat st;
    size_t n;
    uint8_t *bytes = cache_read(folder, name, SIZE_MAX - 1, &n, &st);
    Ctx ctx = {0};
    Arena tmp;
    arena_init(&tmp, &ctx);
    Get get = {.key = key, .bytes = bytes, .n = n, .arena = &tmp};
    bool ok = bytes && quietly(&ctx, check_entry, &get);
    arena_fini(&tmp);
    if (ok && time(NULL) - st.used_ns / 1000000000 > TOUCH_S)
        cache_touch(folder, name);
    close(folder);
    out->arena = a;
    if (ok)
        ok = copy_out(a, out, bytes + get.artifact, n - get.artifact);
    free(bytes);
    return ok;
}

// --- claims --------------------------------------------------------------------------------------------

static int claims_open(const char *dir, RtWarn *warn) {
    int folder = cache_open(dir, true, warn), fd = folder < 0 ? -1 : cache_claims(folder);
    if (folder >= 0)
        close(folder);
    return fd;
}

int rt_cache_claim(const char *dir, const char *key, RtWarn *warn) {
    char begin[16] = {0};
    memcpy(begin, key, 15); // 60 bits: a place in a file
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)strtoull(begin, NULL, 16), .l_len = 1};
    int fd = claims_open(dir, warn);
    double until = now_seconds() + CLAIM_WAIT_S;
    while (fd >= 0 && fcntl(fd, F_OFD_SETLK, &lock)) { // the descriptor's own: threads exclude each other too
        if ((errno != EAGAIN && errno != EACCES && errno != EINTR) || now_seconds() > until) {
            close(fd); // a file system without locks, or it takes too long
            return -1;
        }
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    return fd;
}

void rt_cache_release(int claim) {
    if (claim >= 0)
        close(claim);
}

// --- writing -------------------------------------------------------------------------------------------

typedef struct Limit {
    const char *dir, *keep;
    uint64_t bytes;
    Arena *arena;
} Limit;

typedef struct Put {
    const RtPut *put;
    Arena *arena;
} Put;

static void keep_limit(Ctx *ctx, void *arg) {
    Limit *l = arg;
    rt_cache_evict(ctx, l->arena, l->dir, l->bytes, l->keep);
}

// To look at the whole folder after every compilation would cost more than to write the entry. So only large entries
// make us look, and one in LOOK_EVERY small ones, by its key: between two looks they add less than a quarter of the limit
// on average.
static bool is_time_to_look(const RtPut *p) {
    return p->limit && (p->size >= p->limit / (4 * LOOK_EVERY) || strtoul(p->key + RT_CACHE_KEY - 5, NULL, 16) % LOOK_EVERY == 0);
}

static void put_entry(Ctx *ctx, void *arg) {
    const Put *w = arg;
    const RtPut *p = w->put;
    (void)ctx;
    Buf head = {.arena = w->arena};
    char name[RT_CACHE_KEY + sizeof CACHE_ENTRY], why[160];
    snprintf(name, sizeof name, "%s" CACHE_ENTRY, p->key);
    head_make(p, &head);
    int folder = cache_open(p->dir, true, p->warn);
    if (folder < 0)
        return;
    int err = cache_write(folder, name, head.at, head.n, p->bytes, p->size);
    close(folder);
    if (!err)
        return;
    snprintf(why, sizeof why, "cannot be written: %s", strerror(err));
    rt_cache_warn(p->warn, p->dir, why);
}

void rt_cache_put(const RtPut *p) {
    Ctx ctx = {0};
    Arena tmp;
    arena_init(&tmp, &ctx);
    quietly(&ctx, put_entry, &(Put){p, &tmp});
    if (is_time_to_look(p))
        quietly(&ctx, keep_limit, &(Limit){p->dir, p->key, p->limit, &tmp});
    arena_fini(&tmp);
}
