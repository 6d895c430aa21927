// SPDX-License-Identifier: Apache-2.0
// arena.h — memory with named lifetimes.
//
// An arena hands out pieces of large blocks and frees them all at once. Lifetimes in opentrn:
//   compile   what the reader, the graph and the passes make; freed when the artifact is written
//   scratch   reset after each pass
//   exe       a loaded program: artifact, decoded instructions, host plan
// Nothing inside a pass is freed one by one. When memory runs out the arena raises NOMEM on its
// context (ctx.h), so callers never test for NULL. An arena belongs to one thread at a time.
#ifndef OTRN_BASE_ARENA_H
#define OTRN_BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct Ctx;

typedef struct Arena {
    struct ArenaBlock *head; // newest block; older ones are linked behind it
    uint8_t *at, *end;       // free part of the newest block
    struct Ctx *ctx;         // where NOMEM is raised
    size_t total_bytes;      // handed out so far
} Arena;

void arena_init(Arena *a, struct Ctx *ctx);
void arena_fini(Arena *a);
void arena_reset(Arena *a); // forget everything, keep one block for reuse
void arena_adopt(Arena *a, Arena *from); // what `from` handed out now lives as long as a; `from` is empty then

void *arena_alloc(Arena *a, size_t bytes);              // 16-byte aligned, not cleared
void *arena_zalloc(Arena *a, size_t bytes);             // cleared
void *arena_dup(Arena *a, const void *src, size_t bytes);
char *arena_strndup(Arena *a, const char *s, size_t n); // NUL-terminated copy
char *arena_printf(Arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// Typed forms; the count is checked for overflow.
void *arena_array(Arena *a, size_t count, size_t elem_bytes); // cleared
#define ARENA_NEW(a, T) ((T *)arena_zalloc((a), sizeof(T)))
#define ARENA_NEWN(a, T, n) ((T *)arena_array((a), (n), sizeof(T)))

// A growing array in an arena: grown by doubling, old storage is left to the arena.
// Usage: VEC(uint32_t) v = {0}; VEC_PUSH(arena, &v, 7u); v.at[0]; v.n
#define VEC(T)                                                                                     \
    struct {                                                                                       \
        T *at;                                                                                     \
        uint32_t n, cap;                                                                           \
    }
void *arena_grow(Arena *a, void *at, uint32_t n, uint32_t *cap, uint32_t want, size_t elem_bytes);
#define VEC_RESERVE(a, v, want)                                                                    \
    ((v)->at = arena_grow((a), (v)->at, (v)->n, &(v)->cap, (want), sizeof *(v)->at))
#define VEC_PUSH(a, v, ...)                                                                        \
    do {                                                                                           \
        if ((v)->n == (v)->cap)                                                                    \
            VEC_RESERVE(a, v, (v)->n + 1);                                                         \
        (v)->at[(v)->n++] = (__VA_ARGS__);                                                         \
    } while (0)

#endif
