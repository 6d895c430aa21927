// SPDX-License-Identifier: Apache-2.0
// storage.c — the memory behind buffers: aligned blocks in size classes, kept for the next run.
//
// A training step frees and asks for the same sizes over and over; large blocks from the system
// cost page faults each time. A freed block goes to the list of its class (four classes per
// doubling, so at most a fifth is wasted). When more than PJ_KEEP_BYTES would be kept, all kept
// blocks are given back first: sizes that are no longer asked for cannot fill the pool for ever. They also go when the
// host has no memory for something else, which is then tried again.
// Blocks of large pages or more ask for such: columns and scattered rows then miss the TLB far less.
#include <stdlib.h>
#include <sys/mman.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "pjrt/pjrt.h"

static int class_of(size_t bytes, size_t *class_bytes) { // -1: too large
    if (bytes <= PJ_ALIGN) {
        *class_bytes = PJ_ALIGN;
        return 0;
    }
    int log = 63 - __builtin_clzll(bytes - 1);
    size_t base = (size_t)1 << log, step = base / 4, index = (bytes - 1 - base) / step;
    *class_bytes = base + (index + 1) * step;
    int class = 1 + (log - 6) * 4 + (int)index;
    return class < PJ_CLASSES ? class : -1;
}

static Block *block_make(size_t bytes) {
    bool large = bytes >= PJ_LARGE_PAGE;
    void *b;
    if (posix_memalign(&b, large ? PJ_LARGE_PAGE : PJ_ALIGN, PJ_ALIGN + bytes))
        return NULL;
    if (large)
        madvise(b, PJ_ALIGN + bytes, MADV_HUGEPAGE); // where there are none it is slower, not wrong
    return b;
}

void pj_storage_pool_fini(StoragePool *pool) {
    for (int i = 0; i < PJ_CLASSES; i++)
        while (pool->free[i]) {
            Block *b = pool->free[i];
            pool->free[i] = b->next;
            free(b);
        }
    pool->kept_bytes = 0;
}

// gives all kept blocks back; false: there was none
static bool pj_storage_drain_locked(StoragePool *pool) {
    if (!pool->kept_bytes)
        return false;
    pj_storage_pool_fini(pool);
#if defined(__GLIBC__)
    malloc_trim(0); // smaller blocks lie in the C library's heap
#endif
    return true;
}

bool pj_storage_drain(PJRT_Client *c) {
    pj_lock(c);
    bool some = pj_storage_drain_locked(&c->pool);
    pj_unlock(c);
    return some;
}

static void use_add(MemoryUse *use, size_t bytes) {
    use->allocs++;
    use->in_use += (int64_t)bytes;
    if (use->in_use > use->peak)
        use->peak = use->in_use;
    if ((int64_t)bytes > use->largest)
        use->largest = (int64_t)bytes;
}

static bool use_fits(const MemoryUse *use, size_t bytes) {
    return !use->limit || use->in_use + (int64_t)bytes <= use->limit;
}

Storage *pj_storage_promise_locked(PJRT_Memory *m, size_t bytes, PJRT_Event *ready) {
    Storage *s = malloc(sizeof *s);
    if (!s)
        return NULL;
    *s = (Storage){.bytes = bytes, .memory = m, .ready = ready};
    atomic_init(&s->refs, 1);
    if (ready)
        pj_event_hold(ready);
    return s;
}

bool pj_storage_fill_locked(Storage *s) {
    PJRT_Memory *m = s->memory;
    StoragePool *pool = &m->client->pool;
    size_t class_bytes;
    int class = class_of(s->bytes, &class_bytes);
    if (class < 0 || !use_fits(&m->use, s->bytes))
        return false;
    Block *b = pool->free[class];
    if (b) {
        pool->free[class] = b->next;
        pool->kept_bytes -= class_bytes;
    } else if (!(b = block_make(class_bytes)) && (!pj_storage_drain_locked(pool) || !(b = block_make(class_bytes)))) {
        return false;
    }
    b->size_class = class;
    s->block = b;
    s->data = (char *)b + PJ_ALIGN;
    use_add(&m->use, s->bytes);
    return true;
}

Storage *pj_storage_make_locked(PJRT_Memory *m, size_t bytes) {
    Storage *s = pj_storage_promise_locked(m, bytes, NULL);
    if (s && !pj_storage_fill_locked(s)) {
        pj_storage_drop_locked(s);
        s = NULL;
    }
    return s;
}

void pj_storage_move_locked(Storage *to, Storage *from) {
    to->data = from->data;
    to->block = from->block;
    from->data = NULL;
    from->block = NULL;
}

Storage *pj_storage_wrap_locked(PJRT_Memory *m, void *data, size_t bytes,
                                void (*on_delete)(void *, void *), void *arg) {
    Storage *s = malloc(sizeof *s);
    if (!s)
        return NULL;
    *s = (Storage){
        .data = data, .bytes = bytes, .memory = m, .on_delete = on_delete, .on_delete_arg = arg,
        .foreign = true};
    atomic_init(&s->refs, 1);
    use_add(&m->use, bytes);
    return s;
}

void pj_storage_empty_locked(Storage *s) {
    if (!s->block)
        return;
    StoragePool *pool = &s->memory->client->pool;
    Block *b = s->block;
    s->memory->use.in_use -= (int64_t)s->bytes;
    s->block = NULL;
    s->data = NULL;
    size_t class_bytes;
    class_of(s->bytes, &class_bytes);
    if (pool->kept_bytes + class_bytes > PJ_KEEP_BYTES)
        pj_storage_pool_fini(pool);
    if (class_bytes > PJ_KEEP_BYTES) {
        free(b);
        return;
    }
    b->next = pool->free[b->size_class];
    pool->free[b->size_class] = b;
    pool->kept_bytes += class_bytes;
}

void pj_storage_drop_locked(Storage *s) {
    if (!s || atomic_fetch_sub(&s->refs, 1) != 1)
        return;
    pj_event_drop(s->ready);
    if (s->foreign) {
        s->memory->use.in_use -= (int64_t)s->bytes;
        s->next = s->memory->client->foreign;
        s->memory->client->foreign = s;
        return;
    }
    pj_storage_empty_locked(s);
    free(s);
}

PJRT_Error *pj_storage_wait(Storage *s) { return s->ready ? pj_event_wait(s->ready) : PJ_OK; }

void pj_storage_release(Storage *s) {
    if (!s)
        return;
    PJRT_Client *c = s->memory->client;
    pj_lock(c);
    pj_storage_drop_locked(s);
    pj_unlock(c);
}

PJRT_Error *pj_storage_failed(PJRT_Memory *m, size_t bytes) {
    if (!use_fits(&m->use, bytes))
        return pj_error(PJRT_Error_Code_RESOURCE_EXHAUSTED,
                        "opentrn: %s has no room for %zu bytes: %lld of %lld bytes are in use",
                        m->text, bytes, (long long)m->use.in_use, (long long)m->use.limit);
    return pj_error(PJRT_Error_Code_RESOURCE_EXHAUSTED,
                    "opentrn: the host has no memory for an array of %zu bytes", bytes);
}
