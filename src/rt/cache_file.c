// SPDX-License-Identifier: Apache-2.0
// cache_file.c — the cache's folder: whose it is, and files in it that are what they seem.
//
// Whoever can write the folder decides what runs. So it must be its user's own and writable by nobody else, and is made so
// (0700, files 0600). Names are looked up in the open folder and no link is followed; what is no regular file (a pipe
// would wait for its other end) is left alone. Nothing here raises.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "rt/cache.h"

#define TMP_TRIES 64

// --- warnings ------------------------------------------------------------------------------------------

void rt_warn_init(RtWarn *w) {
    *w = (RtWarn){0};
    pthread_mutex_init(&w->lock, NULL);
}

void rt_warn_fini(RtWarn *w) { pthread_mutex_destroy(&w->lock); }

__attribute__((format(printf, 2, 3))) static void warn_set(RtWarn *w, const char *fmt, ...) {
    if (!w)
        return;
    va_list ap;
    va_start(ap, fmt);
    pthread_mutex_lock(&w->lock);
    if (!*w->text) // the first is told, and once
        vsnprintf(w->text, sizeof w->text, fmt, ap);
    pthread_mutex_unlock(&w->lock);
    va_end(ap);
}

void rt_cache_warn(RtWarn *w, const char *dir, const char *why) {
    warn_set(w, "the cache folder %.300s %s; programs are compiled anew each time (--cache-dir or OTRN_CACHE_DIR names another, "
             "--cache=off is silent)", dir, why);
}

bool rt_warn_take(RtWarn *w, char *out, size_t out_bytes) {
    pthread_mutex_lock(&w->lock);
    bool is_new = *w->text && !w->told;
    if (is_new)
        snprintf(out, out_bytes, "%s", w->text);
    w->told |= is_new;
    pthread_mutex_unlock(&w->lock);
    return is_new;
}

// --- the folder ----------------------------------------------------------------------------------------

// Parents as the user's mask says, the folder itself for the user alone. 0 or an errno.
static int folder_make(const char *dir) {
    Ctx ctx = {0};
    jmp_buf here;
    char parent[4096];
    size_t n = strlen(dir);
    while (n > 1 && dir[n - 1] == '/')
        n--;
    while (n > 0 && dir[n - 1] != '/')
        n--;
    if (n >= sizeof parent)
        return ENAMETOOLONG;
    memcpy(parent, dir, n);
    parent[n] = 0;
    if (n > 1) {
        if (!CTX_TRY(&ctx, here))
            return errno ? errno : EACCES;
        dir_make(&ctx, parent);
    }
    return mkdir(dir, 0700) && errno != EEXIST ? errno : 0;
}

static const char *folder_fault(const char *dir, int fd) {
    struct stat st, link;
    if (fstat(fd, &st) || lstat(dir, &link))
        return "cannot be looked at";
    if (S_ISLNK(link.st_mode) && link.st_uid != geteuid() && link.st_uid != 0)
        return "is another user's link and is not used";
    if (st.st_uid != geteuid())
        return "belongs to another user and is not used";
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return "can be written by others and is not used (chmod go-w it)";
    return NULL;
}

int cache_open(const char *dir, bool make, RtWarn *warn) {
    char why[160];
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = fd < 0 ? errno : 0;
    if (err == ENOENT && !make)
        return -1;
    if (err == ENOENT && !(err = folder_make(dir))) {
        fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        err = fd < 0 ? errno : 0;
    }
    if (err) {
        snprintf(why, sizeof why, "cannot be used: %s", strerror(err));
        rt_cache_warn(warn, dir, why);
        return -1;
    }
    const char *fault = folder_fault(dir, fd);
    if (!fault)
        return fd;
    rt_cache_warn(warn, dir, fault);
    close(fd);
    return -1;
}

// --- files ---------------------------------------------------------------------------------------------

static CacheStat stat_of(const struct stat *st) {
    return (CacheStat){(uint64_t)st->st_size, (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec,
                       S_ISREG(st->st_mode)};
}

bool cache_stat(int folder, const char *name, CacheStat *out) {
    struct stat st;
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW))
        return false;
    *out = stat_of(&st);
    return true;
}

// A regular file, opened; -1: there is none.
static int file_open(int folder, const char *name, int flags, CacheStat *out) {
    struct stat st;
    int fd = openat(folder, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (fd >= 0 && (fstat(fd, &st) || !S_ISREG(st.st_mode))) {
        close(fd);
        return -1;
    }
    if (fd >= 0)
        *out = stat_of(&st);
    return fd;
}

uint8_t *cache_read(int folder, const char *name, size_t most, size_t *n, CacheStat *stat) {
    int fd = file_open(folder, name, O_RDONLY, stat);
    if (fd < 0)
        return NULL;
    size_t want = stat->bytes < most ? (size_t)stat->bytes : most;
    uint8_t *at = malloc(want + 1);
    for (*n = 0; at && *n < want;) {
        ssize_t got = read(fd, at + *n, want - *n);
        if (got == 0 || (got < 0 && errno != EINTR))
            break;
        *n += got > 0 ? (size_t)got : 0;
    }
    close(fd);
    return at;
}

void cache_touch(int folder, const char *name) { utimensat(folder, name, NULL, AT_SYMLINK_NOFOLLOW); }

static int fd_put(int fd, const void *bytes, size_t n) {
    for (const char *at = bytes; n;) {
        ssize_t put = write(fd, at, n);
        if (put < 0 && errno != EINTR)
            return errno;
        if (put > 0)
            at += put, n -= (size_t)put;
    }
    return 0;
}

// A new file, named so that neither threads nor hosts on a shared folder collide.
static int tmp_open(int folder, const char *name, char *tmp, size_t tmp_bytes) {
    for (int i = 0; i < TMP_TRIES; i++) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        snprintf(tmp, tmp_bytes, "%s.%lx-%lx-%x.tmp", name, (unsigned long)getpid(), (unsigned long)now.tv_nsec, (unsigned)i);
        int fd = openat(folder, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

int cache_write(int folder, const char *name, const void *head, size_t head_bytes, const void *bytes, size_t size) {
    char tmp[256];
    int fd = tmp_open(folder, name, tmp, sizeof tmp);
    if (fd < 0)
        return errno;
    int err = fd_put(fd, head, head_bytes);
    err = err ? err : fd_put(fd, bytes, size);
    if (close(fd) && !err)
        err = errno;
    if (!err && renameat(folder, tmp, folder, name))
        err = errno;
    if (err)
        unlinkat(folder, tmp, 0);
    return err;
}

int cache_claims(int folder) {
    CacheStat st;
    return file_open(folder, CACHE_CLAIMS, O_RDWR | O_CREAT, &st);
}
