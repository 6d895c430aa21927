// SPDX-License-Identifier: Apache-2.0
// track_test.c — the tree of accesses against a plain list: the same ones are met, the same ones go.
#include <stdio.h>
#include <stdlib.h>

#include "isa/track.h"

#define MOST 4000
static uint64_t state = 1;
static uint32_t draw(uint32_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

typedef struct Plain { // the list
    TrackEntry at[MOST];
    bool gone[MOST];
    uint32_t n;
} Plain;

static Region region_draw(void) {
    static const uint32_t places[] = {0, 7, SPACE_SBUF << 16, SPACE_PSUM << 16};
    uint32_t place = places[draw(4)], p = place >> 16 ? draw(4) * 32 : 0;
    int64_t lo = draw(40) * 64, size = 64 << draw(6);
    if (draw(3))
        return track_box(place, p, p + (place >> 16 ? 32 : 1), lo, lo + size);
    IsaAccess a = {.dtype = DT_F32, .addr = place >> 16 == SPACE_SBUF ? addr_sbuf(p, (uint32_t)lo)
                                            : place >> 16 ? addr_psum(p, (uint32_t)lo) : addr_hbm(place, (uint64_t)lo),
                   .parts = 32, .n = {1, 1 + draw(6), 1 + draw(9), 1, 1, 1}, .stride = {0, 64, 1 + (int32_t)draw(2)}};
    return track_region(&a, 0);
}

typedef struct Found {
    uint32_t n, pc[MOST];
} Found;
static void found(void *arg, const TrackEntry *e) {
    Found *f = arg;
    f->pc[f->n++] = e->pc;
}
static int order(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void plain_meet(const Plain *p, const Region *r, bool is_write, Found *out) {
    for (uint32_t i = 0; i < p->n; i++)
        if (!p->gone[i] && (p->at[i].is_write || is_write) && track_overlap(&p->at[i].r, r))
            out->pc[out->n++] = p->at[i].pc;
}

static void plain_add(Plain *p, const Region *r, bool is_write, int sem, uint32_t pc) {
    for (uint32_t i = 0; i < p->n; i++) {
        const TrackEntry *e = &p->at[i];
        bool weaker = is_write || (!e->is_write && e->sem == sem);
        p->gone[i] |= weaker && track_covers(r, &e->r);
    }
    p->at[p->n++] = (TrackEntry){.r = *r, .pc = pc, .sem = (uint8_t)sem, .is_write = is_write};
}

int main(void) {
    Ctx ctx = {0};
    Arena arena;
    arena_init(&arena, &ctx);
    Track t;
    track_init(&t, &arena);
    Plain *p = calloc(1, sizeof *p);
    Found *a = calloc(1, sizeof *a), *b = calloc(1, sizeof *b);
    const char *why = NULL;
    uint32_t met = 0, gone = 0;
    for (uint32_t i = 0; i < MOST && !why; i++) {
        if (i == MOST / 2) {
            track_clear(&t);
            memset(p->gone, 1, sizeof p->gone);
        }
        Region r = region_draw();
        bool is_write = draw(2);
        int sem = (int)draw(5);
        a->n = b->n = 0;
        track_meet(&t, &r, is_write, found, a);
        plain_meet(p, &r, is_write, b);
        qsort(a->pc, a->n, sizeof *a->pc, order);
        if (a->n != b->n || memcmp(a->pc, b->pc, a->n * sizeof *a->pc))
            why = "another set is met";
        met += a->n;
        track_add(&t, &r, is_write, sem, i + 1, i);
        p->gone[p->n] = false;
        plain_add(p, &r, is_write, sem, i);
    }
    for (uint32_t i = MOST / 2; i < p->n; i++)
        gone += p->gone[i];
    if (!why && (met < MOST || gone < MOST / 8))
        why = "the test meets too little";
    printf(why ? "FAIL accesses: %s\n" : "ok accesses%s\n", why ? why : "");
    free(p), free(a), free(b);
    arena_fini(&arena);
    return why != NULL;
}
