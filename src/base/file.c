// SPDX-License-Identifier: Apache-2.0
// file.c — whole files in, whole files out.
//
// Rule of ctx.h: nothing that can raise is called while a descriptor is open, so the helpers here
// return errno values and the entry points raise.
#include "base/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define STREAM_MAX_BYTES ((size_t)1 << 30) // a pipe or device is read up to here
#define TMP_TRIES 64

_Noreturn static void io_fail(Ctx *ctx, const char *path, const char *doing, int err) {
    ctx_fail(ctx, OTRN_IO, (Place){.file = path}, "cannot %s: %s", doing, strerror(err));
}

// Reads up to `cap` bytes; *n says how many. 0 or an errno.
static int fd_read(int fd, uint8_t *to, size_t cap, size_t *n) {
    *n = 0;
    while (*n < cap) {
        size_t want = cap - *n < INT_MAX ? cap - *n : INT_MAX;
        ssize_t got = read(fd, to + *n, want);
        if (got == 0)
            return 0;
        if (got < 0 && errno != EINTR)
            return errno;
        if (got > 0)
            *n += (size_t)got;
    }
    return 0;
}

static int fd_write(int fd, const uint8_t *from, size_t n) {
    while (n > 0) {
        ssize_t put = write(fd, from, n < INT_MAX ? n : INT_MAX);
        if (put < 0 && errno != EINTR)
            return errno;
        if (put > 0)
            from += put, n -= (size_t)put;
    }
    return 0;
}

// A pipe or device has no size: grows a heap buffer. On 0, *out is the caller's to free.
static int stream_read(const char *path, uint8_t **out, size_t *size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    int err = 0;
    size_t n = 0, cap = 0;
    uint8_t *at = NULL;
    for (;;) {
        size_t want = cap ? cap * 2 : 1 << 16, got;
        uint8_t *more = want <= STREAM_MAX_BYTES ? realloc(at, want) : NULL;
        if (!more) {
            err = want <= STREAM_MAX_BYTES ? ENOMEM : EFBIG;
            break;
        }
        at = more, cap = want;
        err = fd_read(fd, at + n, cap - n, &got);
        n += got;
        if (err || n < cap)
            break;
    }
    close(fd);
    if (err) {
        free(at);
        return err;
    }
    *out = at, *size = n;
    return 0;
}

// Heap bytes into the arena; the heap block is freed even when the arena raises.
static uint8_t *arena_take(Ctx *ctx, Arena *a, uint8_t *heap, size_t size) {
    jmp_buf jb, *outer = ctx->on_fail;
    uint8_t *volatile at = NULL;
    if (CTX_TRY(ctx, jb)) {
        at = arena_alloc(a, size + 1);
        memcpy(at, heap, size);
        at[size] = 0;
    }
    free(heap);
    ctx->on_fail = outer;
    if (!at)
        longjmp(*outer, 1);
    return at;
}

uint8_t *file_read(Ctx *ctx, Arena *a, const char *path, size_t *size) {
    struct stat st;
    if (stat(path, &st) != 0)
        io_fail(ctx, path, "open it", errno);
    if (S_ISDIR(st.st_mode))
        io_fail(ctx, path, "read it", EISDIR);
    if (!S_ISREG(st.st_mode)) {
        uint8_t *heap = NULL;
        int err = stream_read(path, &heap, size);
        if (err)
            io_fail(ctx, path, "read it", err);
        return arena_take(ctx, a, heap, *size);
    }
    if (st.st_size < 0 || (uint64_t)st.st_size >= SIZE_MAX)
        io_fail(ctx, path, "read it", EFBIG);
    uint8_t *at = arena_alloc(a, (size_t)st.st_size + 1);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        io_fail(ctx, path, "open it", errno);
    int err = fd_read(fd, at, (size_t)st.st_size, size);
    close(fd);
    if (err)
        io_fail(ctx, path, "read it", err);
    at[*size] = 0;
    return at;
}

// A new file beside `path`, named so that neither threads nor hosts on a shared folder collide.
static int tmp_open(const char *path, char *tmp, size_t tmp_bytes) {
    for (int i = 0; i < TMP_TRIES; i++) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        int n = snprintf(tmp, tmp_bytes, "%s.%lx-%lx-%x.tmp", path, (unsigned long)getpid(),
                         (unsigned long)now.tv_nsec, i);
        if (n < 0 || (size_t)n >= tmp_bytes) {
            errno = ENAMETOOLONG;
            return -1;
        }
        int fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

// Devices and pipes (/dev/stdout) cannot be replaced by a rename: written in place.
static int plain_write(const char *path, const void *head, size_t head_bytes, const void *bytes, size_t size) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    int err = fd_write(fd, head, head_bytes);
    err = err ? err : fd_write(fd, bytes, size);
    if (close(fd) != 0 && !err)
        err = errno;
    return err;
}

void file_write(Ctx *ctx, const char *path, const void *bytes, size_t size) {
    file_write_two(ctx, path, NULL, 0, bytes, size);
}

void file_write_two(Ctx *ctx, const char *path, const void *head, size_t head_bytes, const void *bytes, size_t size) {
    struct stat st;
    bool exists = stat(path, &st) == 0;
    if (exists && S_ISDIR(st.st_mode))
        io_fail(ctx, path, "write it", EISDIR);
    if (exists && !S_ISREG(st.st_mode)) {
        int err = plain_write(path, head, head_bytes, bytes, size);
        if (err)
            io_fail(ctx, path, "write it", err);
        return;
    }
    // Through a link the file behind it is replaced, not the link.
    char real[PATH_MAX], tmp[PATH_MAX];
    if (!exists || !realpath(path, real))
        if (snprintf(real, sizeof real, "%s", path) >= (int)sizeof real)
            io_fail(ctx, path, "write it", ENAMETOOLONG);
    int fd = tmp_open(real, tmp, sizeof tmp);
    if (fd < 0)
        io_fail(ctx, path, "write it", errno);
    int err = fd_write(fd, head, head_bytes);
    err = err ? err : fd_write(fd, bytes, size);
    if (close(fd) != 0 && !err)
        err = errno;
    if (!err && rename(tmp, real) != 0)
        err = errno;
    if (err) {
        unlink(tmp);
        io_fail(ctx, path, "write it", err);
    }
}

void dir_make(Ctx *ctx, const char *path) {
    char at[PATH_MAX];
    size_t n = strlen(path);
    if (n >= sizeof at)
        io_fail(ctx, path, "make the folder", ENAMETOOLONG);
    struct stat whole;
    if (stat(path, &whole) == 0 && S_ISDIR(whole.st_mode))
        return;
    for (size_t i = 1; i <= n; i++) {
        if (path[i] != '/' && path[i] != 0)
            continue;
        memcpy(at, path, i);
        at[i] = 0;
        struct stat st;
        if (mkdir(at, 0777) == 0)
            continue;
        int err = errno; // EEXIST, but also EROFS or EACCES, may stand for "is there already"
        if (stat(at, &st) != 0)
            io_fail(ctx, path, "make the folder", err);
        if (!S_ISDIR(st.st_mode))
            io_fail(ctx, path, "make the folder", ENOTDIR);
    }
}
