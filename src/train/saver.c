// SPDX-License-Identifier: Apache-2.0
// saver.c — checkpoints beside training: the step waits only for a copy of the state.
//
// The thread is an entry point of its own: it has a context and an arena, and what fails there is told by the run.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "train/checkpoint.h"

#define HIDDEN ".part-"

// Where the next save has room: what another run left half-written is gone. Only with the folder's lock.
static void leftovers_remove(const char *folder) {
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (strncmp(e->d_name, HIDDEN, strlen(HIDDEN)))
            continue;
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

static void save(Saver *s) {
    Ctx ctx = {0};
    Arena arena;
    jmp_buf jb;
    arena_init(&arena, &ctx);
    if (CTX_TRY(&ctx, jb)) {
        checkpoint_write(&ctx, &arena, s->folder, s->step, s->meta, s->copy, s->count);
        checkpoint_keep(&ctx, &arena, s->folder, s->keep);
    }
    arena_fini(&arena);
    pthread_mutex_lock(&s->lock);
    if (ctx.err.code == OTRN_OK)
        s->saved = s->step;
    else
        s->err = ctx.err;
    pthread_mutex_unlock(&s->lock);
}

static void *loop(void *arg) {
    Saver *s = arg;
    pthread_mutex_lock(&s->lock);
    while (!s->stop || s->busy) {
        if (!s->busy) {
            pthread_cond_wait(&s->wake, &s->lock);
            continue;
        }
        pthread_mutex_unlock(&s->lock);
        save(s);
        pthread_mutex_lock(&s->lock);
        s->busy = false;
        pthread_cond_broadcast(&s->wake);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static void folder_lock(Ctx *ctx, Arena *a, Saver *s) {
    const char *path = arena_printf(a, "%s/.lock", s->folder);
    s->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (s->lock_fd < 0) {
        ctx_hint(ctx, "--checkpoint takes a folder that can be written");
        ctx_fail(ctx, OTRN_IO, (Place){.file = s->folder}, "cannot write checkpoints there: %s", strerror(errno));
    }
    if (!flock(s->lock_fd, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK) // without locks everything stays correct for one run
        return;
    close(s->lock_fd), s->lock_fd = -1;
    ctx_hint(ctx, "give this run another --checkpoint folder, or wait for the other one");
    ctx_fail(ctx, OTRN_IO, (Place){.file = s->folder}, "another run writes its checkpoints there");
}

void saver_begin(Ctx *ctx, Arena *a, Saver *s, const char *folder, uint64_t keep, int64_t saved, const Tensor *live,
                 size_t count) {
    *s = (Saver){.folder = folder, .keep = keep, .live = live, .count = count, .lock_fd = -1, .saved = saved};
    dir_make(ctx, folder);
    folder_lock(ctx, a, s);
    leftovers_remove(folder);
    s->copy = ARENA_NEWN(a, Tensor, count + 1);
    for (size_t i = 0; i < count; i++)
        s->bytes += live[i].bytes;
    s->memory = malloc(s->bytes + 1);
    if (!s->memory)
        ctx_fail(ctx, OTRN_NOMEM, NO_PLACE, "no memory for a copy of the state (%zu bytes)", s->bytes);
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        s->copy[i] = live[i];
        s->copy[i].data = s->memory + at;
        at += live[i].bytes;
    }
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->wake, NULL);
    s->on = pthread_create(&s->thread, NULL, loop, s) == 0;
    if (!s->on)
        ctx_fail(ctx, OTRN_NOMEM, NO_PLACE, "no thread for writing checkpoints");
}

void saver_wait(Saver *s) {
    if (!s->on)
        return;
    pthread_mutex_lock(&s->lock);
    while (s->busy)
        pthread_cond_wait(&s->wake, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

void saver_save(Saver *s, int64_t step, const char *meta) {
    saver_wait(s);
    for (size_t i = 0; i < s->count; i++)
        memcpy((void *)s->copy[i].data, s->live[i].data, s->live[i].bytes);
    free(s->meta);
    s->meta = strdup(meta);
    pthread_mutex_lock(&s->lock);
    s->step = step, s->busy = s->meta != NULL;
    pthread_cond_broadcast(&s->wake);
    pthread_mutex_unlock(&s->lock);
}

bool saver_error(Saver *s, otrn_error *out) {
    if (!s->on)
        return false;
    pthread_mutex_lock(&s->lock);
    bool is = s->err.code != OTRN_OK;
    *out = s->err;
    s->err.code = OTRN_OK;
    pthread_mutex_unlock(&s->lock);
    return is;
}

int64_t saver_saved(Saver *s) {
    if (!s->on)
        return -1;
    pthread_mutex_lock(&s->lock);
    int64_t step = s->saved;
    pthread_mutex_unlock(&s->lock);
    return step;
}

void saver_end(Saver *s) {
    if (s->on) {
        pthread_mutex_lock(&s->lock);
        s->stop = true;
        pthread_cond_broadcast(&s->wake);
        pthread_mutex_unlock(&s->lock);
        pthread_join(s->thread, NULL);
        pthread_mutex_destroy(&s->lock);
        pthread_cond_destroy(&s->wake);
        s->on = false;
    }
    if (s->folder && s->lock_fd >= 0)
        close(s->lock_fd), s->lock_fd = -1;
    free(s->memory), free(s->meta);
    s->memory = NULL, s->meta = NULL;
}
