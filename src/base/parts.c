// SPDX-License-Identifier: Apache-2.0
// parts.c — see parts.h.
#include "base/parts.h"

typedef struct Part {
    Arena arena;
    Ctx ctx;
} Part;

typedef struct Parts {
    PartFn *fn;
    void *arg;
    Part *at;
} Parts;

static void part_run(const Parts *p, size_t i) {
    jmp_buf here;
    if (CTX_TRY(&p->at[i].ctx, here))
        p->fn(p->arg, i, &p->at[i].arena);
}

static void parts_task(void *arg, size_t begin, size_t end) {
    for (size_t i = begin; i < end; i++)
        part_run(arg, i);
}

void parts_run(Arena *a, Pool *pool, size_t count, PartFn *fn, void *arg) {
    Parts p = {fn, arg, ARENA_NEWN(a, Part, count + 1)};
    for (size_t i = 0; i < count; i++)
        arena_init(&p.at[i].arena, &p.at[i].ctx);
    pool_run(pool, count, 1, parts_task, &p);
    for (size_t i = 0; i < count; i++)
        arena_adopt(a, &p.at[i].arena);
    for (size_t i = 0; i < count; i++)
        if (p.at[i].ctx.err.code != OTRN_OK) {
            a->ctx->err = p.at[i].ctx.err;
            longjmp(*a->ctx->on_fail, 1);
        }
}
