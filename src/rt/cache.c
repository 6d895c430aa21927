// SPDX-License-Identifier: Apache-2.0
// cache.c — compiled programs, kept and found again across processes.
//
// An entry is one artifact file named by the 128-bit hash of what it was made from: the program's bytes and
// name (an artifact carries the user's source places, so they count), the options that change code, the chip
// file's values and the compiler's release. So a hit costs no parsing.
// Beside KEY.otrn lies KEY.why, the same inputs as text: what `otrn cache why` compares.
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
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "pass/autocast.h"
#include "rt/rt.h"

#define CLAIM_WAIT_S 120 // for another's compilation of the same program
#define LOOK_EVERY 64    // small entries written between two looks at the folder's size
#define TOUCH_S 60       // an entry in use looks at most this old to eviction

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

static void print_hash(Buf *out, const char *what, const void *bytes, size_t n) {
    Hash128 h = hash128(bytes, n);
    buf_printf(out, "%s %016llx%016llx\n", what, (unsigned long long)h.hi, (unsigned long long)h.lo);
}

const char *rt_cache_inputs(Arena *a, const RtCompile *in, bool bound, const ChipFile *chip) {
    Buf text = {.arena = a}, part = {.arena = a};
    buf_printf(&text, "release %s\nartifact %u\n", OTRN_RELEASE, ARTIFACT_VERSION);
    buf_printf(&text, "passes-left-out %s\n", in->opts->val[OPT_DISABLE]);
    const char *lnc = in->opts->val[OPT_LNC]; // what it means on this chip
    buf_printf(&text, "lnc %u\n", *lnc == 'a' ? (unsigned)chip->cores_per_logical : (unsigned)(*lnc - '0'));
    buf_printf(&text, "passes-until %s\n", in->opts->val[OPT_UNTIL]);
    buf_printf(&text, "strict %s\n", in->opts->val[OPT_STRICT]);
    buf_printf(&text, "precision %s\n", autocast_text(a, in->opts));
    buf_printf(&text, "rounding %s\n", in->opts->val[OPT_ROUNDING]);
    if (strcmp(in->opts->val[OPT_NAN], "off"))
        buf_printf(&text, "nothing joined\n");
    print_hash(&text, "name", in->name, strlen(in->name)); // places in messages refer to it
    chipfile_put(chip, &part);
    print_hash(&text, "chip", part.at, part.n);
    print_hash(&text, "program", in->bytes, in->size);
    part.n = 0;
    if (bound)
        put_arguments(&part, in);
    print_hash(&text, "arguments", part.at, part.n);
    return buf_cstr(&text);
}

void rt_cache_key(const char *inputs, char key[33]) {
    Hash128 h = hash128(inputs, strlen(inputs));
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
    if (snprintf(path, sizeof path, "%s/%s" RT_CACHE_ENTRY, dir, key) >= (int)sizeof path)
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
    if (ok && time(NULL) - st.st_mtime > TOUCH_S)
        utimensat(AT_FDCWD, path, NULL, 0);
    return ok;
}

// --- claims --------------------------------------------------------------------------------------------

static void make_folder(Ctx *ctx, void *dir) { dir_make(ctx, dir); }

static int claims_open(const char *dir) {
    char path[4096];
    if (snprintf(path, sizeof path, "%s/" RT_CACHE_CLAIMS, dir) >= (int)sizeof path)
        return -1;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 && errno == ENOENT && quietly(make_folder, (void *)dir))
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    return fd;
}

int rt_cache_claim(const char *dir, const char *key) {
    char begin[16] = {0};
    memcpy(begin, key, 15); // 60 bits: a place in a file
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)strtoull(begin, NULL, 16), .l_len = 1};
    int fd = claims_open(dir);
    double until = rt_seconds() + CLAIM_WAIT_S;
    while (fd >= 0 && fcntl(fd, F_OFD_SETLK, &lock)) { // the descriptor's own: threads exclude each other too
        if ((errno != EAGAIN && errno != EACCES && errno != EINTR) || rt_seconds() > until) {
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

typedef struct New {
    const char *path;
    const RtPut *put;
} New;

static void write_new(Ctx *ctx, void *arg) {
    const New *n = arg;
    file_write(ctx, n->path, n->put->bytes, n->put->size);
}

static bool fd_put(int fd, const void *bytes, size_t n) {
    const char *at = bytes;
    for (ssize_t put; n; at += put, n -= (size_t)put) {
        put = write(fd, at, n);
        if (put < 0 && errno == EINTR)
            put = 0;
        else if (put <= 0)
            return false;
    }
    return true;
}

// The same bytes whoever writes them, and nobody asks for them before the entry is there: written in place.
static void write_why(const char *path, const char *inputs) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return;
    fd_put(fd, inputs, strlen(inputs));
    close(fd);
}

typedef struct Limit {
    const char *dir, *keep;
    uint64_t bytes;
} Limit;

static void keep_limit(Ctx *ctx, void *arg) {
    Limit *l = arg;
    Arena tmp;
    arena_init(&tmp, ctx);
    Arena *volatile keep = &tmp;
    jmp_buf *outer = ctx->on_fail, here;
    if (CTX_TRY(ctx, here))
        rt_cache_evict(ctx, keep, l->dir, l->bytes, l->keep);
    ctx->on_fail = outer;
    arena_fini(keep);
}

// To look at the whole folder after every compilation would cost more than to write the entry. So only large entries
// make us look, and one in LOOK_EVERY small ones, by its key: between two looks they add less than a quarter of the limit
// on average.
static bool is_time_to_look(const RtPut *p) {
    return p->limit && (p->size >= p->limit / (4 * LOOK_EVERY) || strtoul(p->key + 28, NULL, 16) % LOOK_EVERY == 0);
}

void rt_cache_put(const RtPut *p) {
    char why[4096], to[4096];
    if (snprintf(why, sizeof why, "%s/%s" RT_CACHE_WHY, p->dir, p->key) >= (int)sizeof why ||
        snprintf(to, sizeof to, "%s/%s" RT_CACHE_ENTRY, p->dir, p->key) >= (int)sizeof to)
        return;
    if (p->claim < 0 && !quietly(make_folder, (void *)p->dir))
        return;
    write_why(why, p->inputs);
    if (!quietly(write_new, &(New){to, p}) && access(to, F_OK) != 0)
        unlink(why); // of no entry
    if (is_time_to_look(p))
        quietly(keep_limit, &(Limit){p->dir, p->key, p->limit});
}
