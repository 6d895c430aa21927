// SPDX-License-Identifier: Apache-2.0
// saver.c — checkpoints beside training: the step waits only for a copy of the state.
//
// The thread is an entry point of its own: it has a context and an arena, and what fails there is told by the run. It then tries
// again by itself, later and later; a save that comes meanwhile puts the newer state in the older one's place.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "train/checkpoint.h"

#ifndef MADV_HUGEPAGE
#define MADV_HUGEPAGE 0
#endif
#define HUGE_PAGE ((size_t)2 << 20)
#define RETRY_FIRST_S 1u // doubles
#define RETRY_MAX_S 30u
#define FINISH_TRIES 6u  // of the last save, where waiting may help: about half a minute besides their own time

static otrn_error save(Saver *s) {
    Ctx ctx = {0};
    Arena arena;
    jmp_buf jb;
    arena_init(&arena, &ctx);
    if (CTX_TRY(&ctx, jb)) {
        checkpoint_write(&ctx, &arena, s->store, s->step, s->meta, s->copy, s->count);
        checkpoint_keep(&ctx, &arena, s->store, s->keep);
    }
    arena_fini(&arena);
    return ctx.err;
}

static void told(Saver *s, const otrn_error *err) { // with the lock
    if (err->code == OTRN_OK) {
        s->saved = s->step, s->again = s->failures > 0;
        s->failures = 0, s->state = SAVER_IDLE;
        return;
    }
    s->untold = s->untold || !s->failures; // once for all in a row
    s->failures++, s->err = *err, s->again = false, s->state = SAVER_WAITS;
}

static void wait_to_retry(Saver *s) { // with the lock; ends early when there is another state to save
    unsigned seconds = s->failures < 6 ? RETRY_FIRST_S << (s->failures - 1) : RETRY_MAX_S;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += seconds < RETRY_MAX_S ? seconds : RETRY_MAX_S;
    while (s->state == SAVER_WAITS && !s->stop)
        if (pthread_cond_timedwait(&s->wake, &s->lock, &until))
            break;
    if (!s->stop)
        s->state = SAVER_WRITES;
}

static void *loop(void *arg) {
    Saver *s = arg;
    pthread_mutex_lock(&s->lock);
    while (!s->stop || s->state == SAVER_WRITES) {
        if (s->state == SAVER_IDLE) {
            pthread_cond_wait(&s->wake, &s->lock);
        } else if (s->state == SAVER_WAITS) {
            wait_to_retry(s);
        } else {
            pthread_mutex_unlock(&s->lock);
            otrn_error err = save(s);
            pthread_mutex_lock(&s->lock);
            told(s, &err);
            pthread_cond_broadcast(&s->wake);
        }
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

void saver_begin(Ctx *ctx, Arena *a, Saver *s, Store *store, uint64_t keep, int64_t saved, const Tensor *live, size_t count) {
    *s = (Saver){.store = store, .keep = keep, .live = live, .count = count, .saved = saved};
    s->copy = ARENA_NEWN(a, Tensor, count + 1);
    for (size_t i = 0; i < count; i++)
        s->bytes += live[i].bytes;
    s->memory = aligned_alloc(HUGE_PAGE, (s->bytes / HUGE_PAGE + 1) * HUGE_PAGE);
    if (!s->memory)
        ctx_fail(ctx, OTRN_NOMEM, NO_PLACE, "no memory for a copy of the state (%zu bytes)", s->bytes);
    madvise(s->memory, (s->bytes / HUGE_PAGE + 1) * HUGE_PAGE, MADV_HUGEPAGE); // the first copy touches all of it, while the step waits
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
    while (s->state == SAVER_WRITES)
        pthread_cond_wait(&s->wake, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

void saver_save(Saver *s, int64_t step, const char *meta) {
    char *copy = strdup(meta);
    pthread_mutex_lock(&s->lock);
    while (s->state == SAVER_WRITES)
        pthread_cond_wait(&s->wake, &s->lock);
    for (size_t i = 0; i < s->count && copy; i++) // the thread looks at it only when it is told to write
        memcpy((void *)s->copy[i].data, s->live[i].data, s->live[i].bytes);
    if (copy) {
        free(s->meta);
        s->meta = copy, s->step = step, s->state = SAVER_WRITES;
    }
    pthread_cond_broadcast(&s->wake);
    pthread_mutex_unlock(&s->lock);
}

bool saver_free(Saver *s) {
    pthread_mutex_lock(&s->lock);
    bool is = s->state != SAVER_WRITES || !s->store->kind->patient;
    pthread_mutex_unlock(&s->lock);
    return is;
}

bool saver_finish(Saver *s, otrn_error *why) {
    pthread_mutex_lock(&s->lock);
    unsigned before = s->failures;
    while (s->state == SAVER_WRITES || (s->state == SAVER_WAITS && s->store->kind->patient && s->store->s3.passing &&
                                        s->failures - before < FINISH_TRIES))
        pthread_cond_wait(&s->wake, &s->lock);
    bool good = s->state == SAVER_IDLE;
    *why = s->err;
    s->untold = false;
    pthread_mutex_unlock(&s->lock);
    return good;
}

bool saver_error(Saver *s, otrn_error *out) {
    if (!s->on)
        return false;
    pthread_mutex_lock(&s->lock);
    bool is = s->untold;
    *out = s->err;
    s->untold = false;
    pthread_mutex_unlock(&s->lock);
    return is;
}

bool saver_again(Saver *s) {
    if (!s->on)
        return false;
    pthread_mutex_lock(&s->lock);
    bool is = s->again;
    s->again = false;
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
    free(s->memory), free(s->meta);
    s->memory = NULL, s->meta = NULL;
}
