// SPDX-License-Identifier: Apache-2.0
// saver.c — checkpoints beside training: the step waits only for a copy of the state.
//
// The thread is an entry point of its own: it has a context and an arena, and what fails there is told by the run. It then tries
// again by itself, later and later; a save that comes meanwhile puts the newer state in the older one's place.
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "train/checkpoint.h"

#ifndef MADV_HUGEPAGE
#define MADV_HUGEPAGE 0
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 // Linux 5.14; before, and elsewhere, an error
#endif
#define HUGE_PAGE ((size_t)2 << 20)
#define TOUCH_BYTES ((size_t)32 << 20) // in one call, which holds up changes of the memory map
#define RETRY_FIRST_S 1u // doubles
#define RETRY_MAX_S 30u
#define FINISH_TRIES 6u  // of the last save, where waiting may help: about half a minute besides their own time

static void shards_write(Ctx *ctx, Arena *a, Saver *s) {
    s->store->kind->begin(ctx, a, s->store, s->step);
    for (size_t k = 0; k < s->shards.n; k++)
        if (s->image[k])
            shard_put(ctx, a, s->store, s->step, &s->shards.at[k], s->image[k]);
}

static otrn_error save(Saver *s) {
    Ctx ctx = {0};
    Arena arena;
    jmp_buf jb;
    volatile bool there = false;
    arena_init(&arena, &ctx);
    if (CTX_TRY(&ctx, jb)) {
        if (!s->commits)
            shards_write(&ctx, &arena, s);
        if (s->alone || s->commits) {
            checkpoint_commit(&ctx, &arena, s->store, s->step, s->meta, &s->shards);
            there = true;
            checkpoint_keep(&ctx, &arena, s->store, s->keep);
        }
    } else if (s->alone && !there) { // what others have written is kept for the next try
        s->store->kind->undo(&arena, s->store, s->step);
    }
    arena_fini(&arena);
    return ctx.err;
}

static void told(Saver *s, const otrn_error *err) { // with the lock
    bool whole = s->alone || s->commits;
    if (err->code == OTRN_OK) {
        if (whole)
            s->saved = s->step;
        if (whole || s->rank)
            s->again = s->failures > 0, s->failures = 0;
        s->state = whole ? SAVER_IDLE : SAVER_READY, s->commits = false;
        return;
    }
    if (!s->failures)
        s->first = *err, s->untold = true; // once for all in a row
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

// Memory that nobody has touched costs many times its copy: the system finds it now, beside the first steps, and not while one waits.
static void memory_touch(Saver *s) {
    for (size_t at = 0, more; at < s->bytes; at += more) {
        more = s->bytes - at < TOUCH_BYTES ? s->bytes - at : TOUCH_BYTES;
        if (madvise(s->memory + at, more, MADV_POPULATE_WRITE))
            return; // an older system: the first copy does it
    }
}

static void *loop(void *arg) {
    Saver *s = arg;
    memory_touch(s);
    pthread_mutex_lock(&s->lock);
    while (!s->stop || s->state == SAVER_WRITES) {
        if (s->state == SAVER_IDLE || s->state == SAVER_READY) {
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

static size_t rounded(size_t n, size_t to) { return (n + to - 1) / to * to; }

// Files as they will be, heads already there.
static void images_make(Ctx *ctx, Arena *a, Saver *s) {
    size_t at = 0;
    for (size_t k = 0; k < s->shards.n; k++)
        s->bytes += s->shards.at[k].owner == s->rank ? rounded(s->shards.at[k].bytes, STORE_BLOCK) : 0;
    s->bytes = rounded(s->bytes + 1, HUGE_PAGE);
    s->memory = aligned_alloc(HUGE_PAGE, s->bytes);
    if (!s->memory)
        ctx_fail(ctx, OTRN_NOMEM, NO_PLACE, "no memory for a copy of the state (%zu bytes)", s->bytes);
    madvise(s->memory, s->bytes, MADV_HUGEPAGE);
    s->image = ARENA_NEWN(a, uint8_t *, s->shards.n + 1);
    for (size_t k = 0; k < s->shards.n; k++) {
        if (s->shards.at[k].owner != s->rank)
            continue;
        s->image[k] = s->memory + at;
        memcpy(s->image[k], s->shards.at[k].head, s->shards.at[k].head_bytes);
        at += rounded(s->shards.at[k].bytes, STORE_BLOCK);
    }
}

static void images_fill(Saver *s) {
    for (size_t k = 0; k < s->shards.n; k++) {
        const Shard *f = &s->shards.at[k];
        if (!s->image[k])
            continue;
        uint8_t *to = s->image[k] + f->head_bytes;
        for (size_t i = f->first; i < f->first + f->count; to += s->live[i++].bytes)
            memcpy(to, s->live[i].data, s->live[i].bytes);
    }
}

void saver_begin(Ctx *ctx, Arena *a, Saver *s, Store *store, uint64_t keep, int64_t saved, const Tensor *live) {
    s->store = store, s->keep = keep, s->live = live, s->saved = saved;
    images_make(ctx, a, s);
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
    if (copy) {
        images_fill(s); // the thread looks at them only when it is told to write
        free(s->meta);
        s->meta = copy, s->step = step, s->state = SAVER_WRITES, s->commits = false;
    }
    pthread_cond_broadcast(&s->wake);
    pthread_mutex_unlock(&s->lock);
}

SaverState saver_state(Saver *s) {
    if (!s->on)
        return SAVER_IDLE;
    pthread_mutex_lock(&s->lock);
    SaverState state = s->state;
    pthread_mutex_unlock(&s->lock);
    return state;
}

void saver_commit(Saver *s) {
    pthread_mutex_lock(&s->lock);
    assert(s->state == SAVER_READY);
    s->commits = !s->rank, s->state = s->rank ? SAVER_IDLE : SAVER_WRITES;
    s->saved = s->rank ? s->step : s->saved;
    pthread_cond_broadcast(&s->wake);
    pthread_mutex_unlock(&s->lock);
}

bool saver_finish(Saver *s, otrn_error *why) {
    pthread_mutex_lock(&s->lock);
    unsigned before = s->failures;
    while (s->state == SAVER_WRITES || (s->state == SAVER_WAITS && s->store->kind->patient && s->store->s3.passing &&
                                        s->failures - before < FINISH_TRIES))
        pthread_cond_wait(&s->wake, &s->lock);
    bool good = s->state == SAVER_IDLE || s->state == SAVER_READY;
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
    *out = s->first;
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
