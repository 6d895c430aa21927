// SPDX-License-Identifier: Apache-2.0
// arena.c — blocks of doubling size; a large request gets a block of its own.
//
// Under the address sanitizer everything that is not handed out is out of bounds, and a gap lies behind each piece.
#include "base/arena.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/ctx.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define ARENA_GAP 16
#else
#define ARENA_GAP 0
#define ASAN_POISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#endif

#define ARENA_ALIGN 16
#define BLOCK_MIN (64u << 10)
#define BLOCK_MAX (8u << 20)
#define GROW_LARGE (4u << 20)
#define PAGE_HUGE (2u << 20) // blocks of several such pages ask for them: their first touch costs a tenth

typedef struct ArenaBlock {
    struct ArenaBlock *next;
    size_t bytes; // of the payload behind this header
} ArenaBlock;

_Static_assert(sizeof(ArenaBlock) % ARENA_ALIGN == 0, "payload must stay aligned");

void arena_init(Arena *a, Ctx *ctx) { *a = (Arena){.ctx = ctx}; }

static void free_blocks(ArenaBlock *b) {
    while (b) {
        ArenaBlock *next = b->next;
        ASAN_UNPOISON_MEMORY_REGION(b + 1, b->bytes);
        free(b);
        b = next;
    }
}

void arena_fini(Arena *a) {
    free_blocks(a->head);
    *a = (Arena){.ctx = a->ctx};
}

void arena_reset(Arena *a) {
    ArenaBlock *keep = a->head;
    if (!keep)
        return;
    free_blocks(keep->next);
    keep->next = NULL;
    ASAN_POISON_MEMORY_REGION(keep + 1, (size_t)(a->at - (uint8_t *)(keep + 1)));
    a->at = (uint8_t *)(keep + 1);
    a->end = a->at + keep->bytes;
    a->total_bytes = 0;
}

void arena_adopt(Arena *a, Arena *from) {
    ArenaBlock *last = from->head;
    if (!last)
        return;
    while (last->next)
        last = last->next;
    if (a->head) { // behind the current block, which stays in use
        last->next = a->head->next;
        a->head->next = from->head;
    } else {
        a->head = from->head, a->at = from->at, a->end = from->end;
    }
    a->total_bytes += from->total_bytes;
    *from = (Arena){.ctx = from->ctx};
}

static ArenaBlock *block_make(size_t bytes) {
    bytes += sizeof(ArenaBlock);
    if (bytes < 2 * PAGE_HUGE)
        return malloc(bytes);
    void *p;
    if (posix_memalign(&p, PAGE_HUGE, bytes))
        return NULL;
    madvise(p, bytes & ~(size_t)(PAGE_HUGE - 1), MADV_HUGEPAGE); // else it is slower, not wrong
    return p;
}

static void *out_of_memory(Arena *a, size_t bytes) {
    ctx_fail(a->ctx, OTRN_NOMEM, NO_PLACE, "out of memory (asked for %zu bytes)", bytes);
}

void *arena_alloc(Arena *a, size_t bytes) {
    if (bytes > SIZE_MAX / 4)
        return out_of_memory(a, bytes);
    size_t asked = bytes;
    bytes = (bytes + !bytes + ARENA_GAP + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1); // never NULL, also for nothing
    if (bytes <= (size_t)(a->end - a->at)) {
        void *p = a->at;
        a->at += bytes;
        a->total_bytes += bytes;
        ASAN_UNPOISON_MEMORY_REGION(p, asked);
        return p;
    }
    size_t want = a->head ? a->head->bytes * 2 : BLOCK_MIN;
    if (want > BLOCK_MAX)
        want = BLOCK_MAX;
    bool own = bytes > want / 4; // a large piece must not waste the current block's rest
    size_t block_bytes = own ? bytes : want;
    ArenaBlock *b = block_make(block_bytes);
    if (!b)
        return out_of_memory(a, bytes);
    b->bytes = block_bytes;
    ASAN_POISON_MEMORY_REGION((uint8_t *)(b + 1) + asked, block_bytes - asked);
    a->total_bytes += bytes;
    if (own && a->head) { // behind the current block, which stays in use
        b->next = a->head->next;
        a->head->next = b;
        return b + 1;
    }
    b->next = a->head;
    a->head = b;
    a->at = (uint8_t *)(b + 1) + bytes;
    a->end = (uint8_t *)(b + 1) + block_bytes;
    return b + 1;
}

void *arena_zalloc(Arena *a, size_t bytes) { return memset(arena_alloc(a, bytes), 0, bytes); }

void *arena_dup(Arena *a, const void *src, size_t bytes) {
    void *p = arena_alloc(a, bytes);
    if (bytes)
        memcpy(p, src, bytes);
    return p;
}

char *arena_strndup(Arena *a, const char *s, size_t n) {
    char *p = arena_alloc(a, n + 1);
    if (n)
        memcpy(p, s, n);
    p[n] = 0;
    return p;
}

char *arena_printf(Arena *a, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    assert(n >= 0);
    char *p = arena_alloc(a, (size_t)n + 1);
    va_start(ap, fmt);
    vsnprintf(p, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return p;
}

void *arena_array(Arena *a, size_t count, size_t elem_bytes) {
    size_t bytes;
    if (__builtin_mul_overflow(count, elem_bytes, &bytes))
        return out_of_memory(a, SIZE_MAX);
    return arena_zalloc(a, bytes);
}

void *arena_grow(Arena *a, void *at, uint32_t n, uint32_t *cap, uint32_t want, size_t elem_bytes) {
    if (want <= *cap)
        return at;
    // What is left behind has been written, what is ahead is not touched before it is used: large arrays leave less behind.
    uint64_t next = (uint64_t)*cap * ((uint64_t)*cap * elem_bytes < GROW_LARGE ? 2 : 4);
    if (next < 16)
        next = 16;
    if (next < want)
        next = want;
    if (next > UINT32_MAX)
        next = UINT32_MAX;
    if (want > next || want == 0) // the count itself wrapped
        return out_of_memory(a, SIZE_MAX);
    size_t bytes;
    if (__builtin_mul_overflow((size_t)next, elem_bytes, &bytes))
        return out_of_memory(a, SIZE_MAX);
    void *p = arena_alloc(a, bytes);
    if (n)
        memcpy(p, at, (size_t)n * elem_bytes);
    *cap = (uint32_t)next;
    return p;
}
