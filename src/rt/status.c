// SPDX-License-Identifier: Apache-2.0
// status.c — pages of processes: made, found, told from what killed ones left.
#define _GNU_SOURCE
#include "rt/status.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PAGES_OF_A_PROCESS 16

struct Status {
    StatusPage *page;
    pid_t owner; // a child has the page too, and does not remove it
    char path[4096];
};

static bool folder_find(const Options *o, char *out, size_t bytes) {
    const char *runtime = o->val[OPT_RUNTIME];
    if (*runtime == '/')
        return (size_t)snprintf(out, bytes, "%s/opentrn", runtime) < bytes;
    return (size_t)snprintf(out, bytes, "/tmp/opentrn-%ld", (long)getuid()) < bytes;
}

// Ours, a folder, and nobody else's to write or read.
static bool folder_good(const char *path) {
    struct stat st;
    return !lstat(path, &st) && S_ISDIR(st.st_mode) && st.st_uid == getuid() && !(st.st_mode & 077);
}

static uint64_t process_began(pid_t pid) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = 0;
    char *at = strrchr(text, ')'); // the name may have anything in it
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at + 1, NULL, 10) : 0;
}

static void command_read(char *out, size_t bytes) {
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, out, bytes - 1);
    if (fd >= 0)
        close(fd);
    for (ssize_t i = 0; i < n; i++)
        out[i] = (unsigned char)out[i] < ' ' ? ' ' : out[i];
    out[n > 0 ? n : 0] = 0;
}

static int file_make(const char *folder, char *path, size_t bytes) {
    for (int i = 0; i < PAGES_OF_A_PROCESS; i++) {
        snprintf(path, bytes, "%s/%ld-%d", folder, (long)getpid(), i);
        int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

Status *status_open(const Options *o) {
    char folder[3900];
    Status *s = calloc(1, sizeof *s);
    if (!s || !folder_find(o, folder, sizeof folder) || (mkdir(folder, 0700) && errno != EEXIST) || !folder_good(folder)) {
        free(s);
        return NULL;
    }
    int fd = file_make(folder, s->path, sizeof s->path);
    void *at = fd >= 0 && !ftruncate(fd, sizeof(StatusPage)) ? mmap(NULL, sizeof(StatusPage), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (fd >= 0)
        close(fd);
    if (at == MAP_FAILED) {
        if (fd >= 0)
            unlink(s->path);
        free(s);
        return NULL;
    }
    s->page = at, s->owner = getpid();
    *s->page = (StatusPage){.version = STATUS_VERSION, .pid = getpid(), .began = process_began(getpid()), .opened = (double)time(NULL), .devices = 1,
                            .world = 1};
    command_read(s->page->command, sizeof s->page->command);
    s->page->magic = STATUS_MAGIC; // last: now it is whole
    return s;
}

void status_close(Status *s) {
    if (!s)
        return;
    munmap(s->page, sizeof *s->page);
    if (s->owner == getpid())
        unlink(s->path);
    free(s);
}

StatusPage *status_page(Status *s) { return s ? s->page : NULL; }

// --- finding ---------------------------------------------------------------------------------------

static bool runs(const StatusPage *p) {
    if (kill((pid_t)p->pid, 0) && errno == ESRCH)
        return false;
    uint64_t began = process_began((pid_t)p->pid);
    return !began || !p->began || began == p->began;
}

static bool page_read(int folder, const char *name, StatusPage *out) {
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, sizeof *out);
    if (fd >= 0)
        close(fd);
    if (n != sizeof *out || out->magic != STATUS_MAGIC || out->version != STATUS_VERSION || out->pid <= 0)
        return false;
    out->program[sizeof out->program - 1] = out->command[sizeof out->command - 1] = 0;
    return true;
}

static int by_pid(const void *x, const void *y) {
    const StatusPage *a = x, *b = y;
    return (a->pid > b->pid) - (a->pid < b->pid);
}

// A process may have several environments, one for each device of a front end: it is told once.
static void join(StatusPage *into, const StatusPage *p) {
    StatusPage both = p->steps > into->steps || (p->steps == into->steps && p->runs > into->runs) ? *p : *into; // words and steps of the busier one
    both.runs = into->runs + p->runs, both.busy_seconds = into->busy_seconds + p->busy_seconds;
    both.devices = into->devices + p->devices;
    both.opened = into->opened < p->opened ? into->opened : p->opened;
    both.hbm_bytes = into->hbm_bytes > p->hbm_bytes ? into->hbm_bytes : p->hbm_bytes;
    *into = both;
}

void status_list(Arena *a, const Options *o, StatusPages *out) {
    char folder[3900];
    DIR *d = folder_find(o, folder, sizeof folder) && folder_good(folder) ? opendir(folder) : NULL;
    StatusPage *found = NULL; // not the arena's: the folder is open
    size_t n = 0, cap = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        StatusPage *more = n < cap ? found : realloc(found, (cap = 2 * cap + 16) * sizeof *found);
        if (!more)
            break;
        found = more;
        if (e->d_name[0] == '.' || !page_read(dirfd(d), e->d_name, &found[n]))
            continue;
        if (runs(&found[n]))
            n++;
        else
            unlinkat(dirfd(d), e->d_name, 0);
    }
    if (d)
        closedir(d);
    if (n)
        qsort(found, n, sizeof *found, by_pid);
    for (size_t i = 0; i < n; i++)
        if (out->n && out->at[out->n - 1].pid == found[i].pid)
            join(&out->at[out->n - 1], &found[i]);
        else
            VEC_PUSH(a, out, found[i]);
    free(found);
}
