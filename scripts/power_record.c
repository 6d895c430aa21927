// SPDX-License-Identifier: Apache-2.0
// power_record.c — a library to preload that writes down what a process does to files of one folder, for scripts/power_cut.py.
//
// POWER_FOLDER is that folder, POWER_LOG gets a line for each call that succeeded: make, write, sync, folder, rename, remove. What
// is written goes to POWER_LOG.PID, one piece behind the other: several processes may write.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *lines;
static int data = -1;
static size_t data_bytes;

#define REAL(type, name, ...) ((type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name))

static int fd_path(int fd, char *out) { // as it is called now
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, out, PATH_MAX - 1);
    out[n < 0 ? 0 : n] = 0;
    return n > 0;
}

static int watched(const char *path) {
    const char *folder = getenv("POWER_FOLDER");
    return folder && !strncmp(path, folder, strlen(folder));
}

static void tell(const char *fmt, ...) {
    va_list ap;
    pthread_mutex_lock(&lock);
    if (!lines)
        lines = fopen(getenv("POWER_LOG"), "ae");
    va_start(ap, fmt);
    vfprintf(lines, fmt, ap);
    va_end(ap);
    fflush(lines);
    pthread_mutex_unlock(&lock);
}

int open(const char *path, int flags, ...) {
    va_list ap;
    va_start(ap, flags);
    mode_t mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    int made = flags & O_CREAT && watched(path) && access(path, F_OK);
    int fd = REAL(int, open, const char *, int, ...)(path, flags, mode);
    if (made && fd >= 0)
        tell("make\t%s\n", path);
    return fd;
}

ssize_t write(int fd, const void *from, size_t n) {
    char path[PATH_MAX];
    ssize_t (*real)(int, const void *, size_t) = REAL(ssize_t, write, int, const void *, size_t);
    ssize_t put = real(fd, from, n);
    if (put <= 0 || fd <= 2 || fd == data || !fd_path(fd, path) || !watched(path))
        return put;
    pthread_mutex_lock(&lock);
    if (data < 0) {
        char name[PATH_MAX];
        snprintf(name, sizeof name, "%s.%d", getenv("POWER_LOG"), (int)getpid());
        data = REAL(int, open, const char *, int, ...)(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    }
    size_t at = data_bytes;
    for (ssize_t done = 0, more; done < put; done += more)
        if ((more = real(data, (const char *)from + done, (size_t)(put - done))) <= 0)
            abort();
    data_bytes += (size_t)put;
    pthread_mutex_unlock(&lock);
    tell("write\t%s\t%d\t%zu\t%zd\n", path, (int)getpid(), at, put);
    return put;
}

int fsync(int fd) {
    char path[PATH_MAX];
    int status = REAL(int, fsync, int)(fd);
    if (!status && fd_path(fd, path) && watched(path))
        tell("sync\t%s\n", path);
    return status;
}

int mkdir(const char *path, mode_t mode) {
    int status = REAL(int, mkdir, const char *, mode_t)(path, mode);
    if (!status && watched(path))
        tell("folder\t%s\n", path);
    return status;
}

int rename(const char *from, const char *to) {
    int status = REAL(int, rename, const char *, const char *)(from, to);
    if (!status && watched(from))
        tell("rename\t%s\t%s\n", from, to);
    return status;
}

int unlinkat(int folder, const char *name, int flags) {
    char path[PATH_MAX];
    int known = fd_path(folder, path);
    int status = REAL(int, unlinkat, int, const char *, int)(folder, name, flags);
    if (!status && known && watched(path))
        tell("remove\t%s/%s\n", path, name);
    return status;
}

int unlink(const char *path) {
    int status = REAL(int, unlink, const char *)(path);
    if (!status && watched(path))
        tell("remove\t%s\n", path);
    return status;
}

int rmdir(const char *path) {
    int status = REAL(int, rmdir, const char *)(path);
    if (!status && watched(path))
        tell("remove\t%s\n", path);
    return status;
}
