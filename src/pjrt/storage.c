// SPDX-License-Identifier: Apache-2.0
// storage.c — the memory behind buffers: aligned blocks in size classes, kept for the next run.
//
// A training step frees and asks for the same sizes over and over; large blocks from the system
// cost page faults each time. A freed block goes to the list of its class (four classes per
// doubling, so at most a fifth is wasted). When more than PJ_KEEP_BYTES would be kept, all kept
// blocks are given back first: sizes that are no longer asked for cannot fill the pool for ever.
#include <stdlib.h>

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

void pj_storage_pool_fini(StoragePool *pool) {
    for (int i = 0; i < PJ_CLASSES; i++)
        while (pool->free[i]) {
            Storage *s = pool->free[i];
            pool->free[i] = s->next;
            free(s);
        }
    pool->kept_bytes = 0;
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

Storage *pj_storage_make_locked(PJRT_Memory *m, size_t bytes) {
    StoragePool *pool = &m->client->pool;
    size_t class_bytes;
    int class = class_of(bytes, &class_bytes);
    if (class < 0 || !use_fits(&m->use, bytes))
        return NULL;
    Storage *s = pool->free[class];
    if (s) {
        pool->free[class] = s->next;
        pool->kept_bytes -= class_bytes;
    } else if (posix_memalign((void **)&s, PJ_ALIGN, PJ_ALIGN + class_bytes)) {
        return NULL;
    }
    s->next = NULL;
    s->data = (char *)s + PJ_ALIGN;
    s->bytes = bytes;
    s->memory = m;
    s->on_delete = NULL;
    s->on_delete_arg = NULL;
    s->size_class = class;
    atomic_init(&s->refs, 1);
    use_add(&m->use, bytes);
    return s;
}

Storage *pj_storage_wrap_locked(PJRT_Memory *m, void *data, size_t bytes,
                                void (*on_delete)(void *, void *), void *arg) {
    Storage *s = malloc(sizeof *s);
    if (!s)
        return NULL;
    *s = (Storage){.data = data,
                   .bytes = bytes,
                   .memory = m,
                   .on_delete = on_delete,
                   .on_delete_arg = arg,
                   .size_class = -1};
    atomic_init(&s->refs, 1);
    use_add(&m->use, bytes);
    return s;
}

void pj_storage_drop_locked(Storage *s) {
    if (!s || atomic_fetch_sub(&s->refs, 1) != 1)
        return;
    PJRT_Client *c = s->memory->client;
    s->memory->use.in_use -= (int64_t)s->bytes;
    if (s->size_class < 0) {
        s->next = c->foreign;
        c->foreign = s;
        return;
    }
    size_t class_bytes;
    class_of(s->bytes, &class_bytes);
    if (c->pool.kept_bytes + class_bytes > PJ_KEEP_BYTES)
        pj_storage_pool_fini(&c->pool);
    if (class_bytes > PJ_KEEP_BYTES) {
        free(s);
        return;
    }
    s->next = c->pool.free[s->size_class];
    c->pool.free[s->size_class] = s;
    c->pool.kept_bytes += class_bytes;
}

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
