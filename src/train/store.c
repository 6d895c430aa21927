// SPDX-License-Identifier: Apache-2.0
// store.c — checkpoints as folders, and which kind of store an address names.
#define _GNU_SOURCE // O_DIRECT
#include "train/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/file.h"

#define PREFIX "step-"
#define HIDDEN ".part-" // before the name of what is being written or going

char *store_step_name(Arena *a, int64_t step) { return arena_printf(a, PREFIX "%08lld", (long long)step); }

bool store_step_parse(const char *name, const char **rest, int64_t *step) {
    char *end;
    if (strncmp(name, PREFIX, strlen(PREFIX)) || name[strlen(PREFIX)] < '0' || name[strlen(PREFIX)] > '9')
        return false;
    *step = strtoll(name + strlen(PREFIX), &end, 10);
    *rest = end;
    return true;
}

static const char *path_of(Arena *a, const Store *s, const char *before, int64_t step) {
    return arena_printf(a, "%s/%s%s", s->where, before, store_step_name(a, step));
}

// Where a step is until it is whole: what a run that is ending somewhere else still writes has another name.
static const char *part_of(Arena *a, const Store *s, int64_t step) { return path_of(a, s, arena_printf(a, HIDDEN "%s-", s->run), step); }

// --- writing ---------------------------------------------------------------------------------------

_Noreturn static void write_fail(Ctx *ctx, const char *path, int err) {
    if (err == ENOSPC || err == EDQUOT)
        ctx_hint(ctx, "make room there, or --keep fewer: it is tried again while the run goes on, and the checkpoints before it are whole");
    ctx_fail(ctx, OTRN_IO, (Place){.file = path}, "cannot write the checkpoint: %s", strerror(err));
}

// Large files go past the system's cache (O_DIRECT), from blocks that lie as the file has them: its copy into the cache took half of a
// save's processor time, which a training step next to it wants. File systems without get ordinary writes, as does a file's last part.
#ifndef O_DIRECT
#define O_DIRECT 0
#endif
#define WRITE_BYTES ((size_t)8 << 20)   // of a call
#define DIRECT_BYTES ((size_t)64 << 10) // smaller files need not

typedef struct Sink {
    int fd;
    bool direct;
} Sink;

static void direct_end(Sink *s) {
    fcntl(s->fd, F_SETFL, fcntl(s->fd, F_GETFL) & ~O_DIRECT);
    s->direct = false;
}

static int all_write(Sink *s, const uint8_t *p, size_t n) {
    while (n) {
        if (s->direct && n < STORE_BLOCK)
            direct_end(s);
        size_t most = n < WRITE_BYTES ? n : WRITE_BYTES;
        ssize_t put = write(s->fd, p, s->direct ? most / STORE_BLOCK * STORE_BLOCK : most);
        if (put < 0 && errno == EINVAL && s->direct)
            direct_end(s);
        else if (put < 0 && errno != EINTR)
            return errno;
        if (put > 0)
            p += put, n -= (size_t)put;
        if (put > 0 && s->direct && (size_t)put % STORE_BLOCK)
            direct_end(s);
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

static int sink_open(Sink *s, const char *path, bool direct) {
    int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
    *s = (Sink){.fd = direct ? open(path, flags | O_DIRECT, 0666) : -1, .direct = direct};
    if (s->fd < 0 && (!direct || errno == EINVAL)) {
        if (direct)
            unlink(path); // some systems make it before they refuse
        s->fd = open(path, flags, 0666), s->direct = false;
    }
    return s->fd < 0 ? errno : 0;
}

// Written and flushed. 0 or an errno.
static int file_put(const char *path, const Piece *all) {
    Sink s;
    int err = sink_open(&s, path, O_DIRECT && all->bytes >= DIRECT_BYTES && (uintptr_t)all->data % STORE_BLOCK == 0);
    if (err)
        return err;
    err = all_write(&s, all->data, all->bytes);
    if (!err && fsync(s.fd))
        err = errno;
    if (close(s.fd) && !err)
        err = errno;
    if (err)
        unlink(path); // its room may be what another one needs
    return err;
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

// Where the next save has room: what was left half-written, of steps before this one, is gone. Only with the folder's lock.
static void leftovers_remove(const char *folder, int64_t below) {
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        const char *at = strncmp(e->d_name, HIDDEN, strlen(HIDDEN)) ? NULL : strstr(e->d_name, PREFIX), *rest;
        int64_t step = 0;
        bool goes = at ? store_step_parse(at, &rest, &step) && step < below : below == INT64_MAX && !strncmp(e->d_name, HIDDEN, strlen(HIDDEN));
        if (!goes)
            continue;
        unlinkat(dirfd(d), e->d_name, 0); // a mark
        int fd = openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *in = fd < 0 ? NULL : fdopendir(fd);
        for (struct dirent *f; in && (f = readdir(in));)
            if (f->d_name[0] != '.')
                unlinkat(fd, f->d_name, 0);
        if (in)
            closedir(in);
        unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
    }
    if (d)
        closedir(d);
}

static void begin(Ctx *ctx, Arena *a, Store *s, int64_t step) {
    if (mkdir(part_of(a, s, step), 0777) && errno != EEXIST) // by another process
        write_fail(ctx, path_of(a, s, "", step), errno);
}

static void put(Ctx *ctx, Arena *a, Store *s, int64_t step, const char *name, const Piece *all) {
    int err = file_put(arena_printf(a, "%s/%s", part_of(a, s, step), name), all);
    if (err)
        write_fail(ctx, path_of(a, s, "", step), err);
}

static void commit(Ctx *ctx, Arena *a, Store *s, int64_t step, const Piece *manifest) {
    const char *path = path_of(a, s, "", step), *part = part_of(a, s, step), *old = path_of(a, s, HIDDEN "old-", step);
    put(ctx, a, s, step, STORE_MANIFEST, manifest);
    int err = folder_flush(part);
    if (!err && rename(path, old) && errno != ENOENT) // the same step again: one that was found damaged
        err = errno;
    if (!err && rename(part, path))
        err = errno;
    if (!err)
        err = folder_flush(s->where);
    if (err)
        write_fail(ctx, path, err);
    folder_remove(old);
    leftovers_remove(s->where, step);
}

static void undo(Arena *a, Store *s, int64_t step) { folder_remove(part_of(a, s, step)); }

static void drop(Ctx *ctx, Arena *a, Store *s, int64_t step) {
    const char *old = path_of(a, s, HIDDEN "old-", step);
    (void)ctx;
    if (!rename(path_of(a, s, "", step), old))
        folder_remove(old);
}

static void aside(Ctx *ctx, Arena *a, Store *s, int64_t step) {
    const char *to = path_of(a, s, "damaged-", step);
    folder_remove(to);
    if (rename(path_of(a, s, "", step), to))
        ctx_fail(ctx, OTRN_IO, (Place){.file = s->where}, "cannot rename the damaged checkpoint of step %lld: %s", (long long)step, strerror(errno));
}

// --- reading ---------------------------------------------------------------------------------------

static int newer(const void *x, const void *y) {
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return (a < b) - (a > b);
}

// Steps there are, the newest first.
static int64_t *steps(Ctx *ctx, Arena *a, Store *s, uint32_t *count) {
    DIR *d = opendir(s->where);
    int err = d ? 0 : errno;
    size_t n = 0, cap = 0;
    int64_t *found = NULL; // not the arena's: the folder is open
    for (struct dirent *e; d && (e = readdir(d));) {
        const char *rest;
        int64_t step;
        if (!store_step_parse(e->d_name, &rest, &step) || *rest)
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
    int64_t *all = n ? arena_dup(a, found, n * sizeof *found) : NULL;
    free(found);
    if (err && err != ENOENT)
        ctx_fail(ctx, OTRN_IO, (Place){.file = s->where}, "cannot read the folder of checkpoints: %s", strerror(err));
    *count = (uint32_t)n;
    return all;
}

static const void *read_file(Ctx *ctx, Arena *a, Store *s, int64_t step, const char *name, size_t *bytes) {
    return file_read(ctx, a, arena_printf(a, "%s/%s", path_of(a, s, "", step), name), bytes);
}

// --- one run at a time -----------------------------------------------------------------------------

static void claim(Ctx *ctx, Arena *a, Store *s) {
    dir_make(ctx, s->where);
    s->lock_fd = open(arena_printf(a, "%s/.lock", s->where), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (s->lock_fd < 0) {
        ctx_hint(ctx, "--checkpoint takes a folder that can be written");
        ctx_fail(ctx, OTRN_IO, (Place){.file = s->where}, "cannot write checkpoints there: %s", strerror(errno));
    }
    if (flock(s->lock_fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) { // without locks everything stays correct for one run
        close(s->lock_fd), s->lock_fd = -1;
        ctx_hint(ctx, "give this run another --checkpoint folder, or wait for the other one");
        ctx_fail(ctx, OTRN_IO, (Place){.file = s->where}, "another run writes its checkpoints there");
    }
    leftovers_remove(s->where, INT64_MAX);
}

static const char *mark_of(Arena *a, const Store *s) { return arena_printf(a, "%s/" HIDDEN "%s", s->where, s->run); }

static void mark(Ctx *ctx, Arena *a, Store *s, bool there) {
    int err = there ? file_put(mark_of(a, s), &(Piece){"", 0}) : 0;
    if (!there)
        unlink(mark_of(a, s));
    if (err)
        write_fail(ctx, s->where, err);
}

static bool sees(Ctx *ctx, Arena *a, Store *s) {
    (void)ctx;
    return !access(mark_of(a, s), F_OK) && !access(s->where, W_OK | X_OK);
}

static void close_folder(Store *s) {
    if (s->lock_fd >= 0)
        close(s->lock_fd), s->lock_fd = -1;
}

const StoreKind store_folder = {"folder", false, claim, mark, sees, steps, read_file, begin, put, commit, undo, drop, aside, close_folder};

void store_open(Ctx *ctx, Arena *a, const Options *o, const char *where, Store *s) {
    *s = (Store){.where = where, .lock_fd = -1};
    if (!s3_is(where) && (strstr(where, "://") || !strncmp(where, "s3:", 3))) {
        ctx_hint(ctx, "it is a folder, or s3://BUCKET/PREFIX");
        ctx_fail(ctx, OTRN_USAGE, NO_PLACE, "checkpoints cannot go to `%s`", where);
    }
    if (s3_is(where))
        s3_open(ctx, a, o, where, &s->s3);
    s->kind = s3_is(where) ? &store_s3 : &store_folder;
}
