// SPDX-License-Identifier: Apache-2.0
// unweave_test.c — tile/unweave.c over random programs of tasks that a random schedule has woven together: engines, queues and
// waits see the same order as before, nothing is lost, and independent tasks come out one after another.
#include <stdlib.h>
#include <string.h>

#include "tile/emit.h"
#include "unit.h"

#define TASKS 24
#define STEPS 12

typedef struct Made {
    Emit e;
    Compile c;
} Made;

static void made_begin(Made *m, Arena *arena) {
    *m = (Made){.c = {.arena = arena, .scratch = arena}};
    m->e.c = &m->c;
    m->e.code.arena = arena;
}

static IsaInst made_at(const Made *m, uint32_t i) {
    const ShapeCode *c = &m->e.code;
    const IsaShape *s = &c->shapes.at[c->of.at[i]];
    IsaInst in = s->in;
    for (int w = 0; w < 2; w++)
        in.wait_val[w] = s->at[w] ? c->words.at[c->record_at.at[i] + s->at[w] / 4] : 0;
    return in;
}

// One instruction of a task: an engine, perhaps a transfer, waiting for the one before of its task. Its number is in imm.
static void made_add(Made *m, uint32_t task, int engine, int queue, int sem, uint32_t count) {
    IsaInst in = {.op = queue < 0 ? ISA_NOP : ISA_DMA, .engine = (uint8_t)engine, .queue = queue < 0 ? 0 : (uint8_t)queue,
                  .imm = (int32_t)m->e.code.of.n, .wait_sem = {SEM_NONE, SEM_NONE}};
    if (sem >= 0)
        in.wait_sem[0] = (uint8_t)sem, in.wait_val[0] = count;
    shape_code_push(&m->e.code, &in);
    VEC_PUSH(m->c.arena, &m->e.code_loc, m->e.code.of.n - 1);
    VEC_PUSH(m->c.arena, &m->e.code_order, task);
    m->e.done[isa_sem(&in)]++;
}

// Tasks take turns by chance; each step goes to an engine and a queue by chance.
static void made_weave(Made *m, uint64_t *rng) {
    struct {
        uint32_t left, count;
        int sem;
    } task[TASKS];
    for (int i = 0; i < TASKS; i++)
        task[i].left = 1 + rng_below(rng, STEPS), task[i].sem = -1;
    for (uint32_t left = TASKS; left;) {
        uint32_t t = rng_below(rng, TASKS);
        if (!task[t].left)
            continue;
        int engine = (int)rng_below(rng, ENG_COUNT), queue = (int)rng_below(rng, 8) - 4;
        queue = engine == ENG_TENSOR && queue >= 0 ? -1 : queue;
        made_add(m, t + 1, engine, queue, task[t].sem, task[t].count);
        task[t].sem = queue < 0 ? engine : ENG_COUNT + queue;
        task[t].count = m->e.done[task[t].sem];
        left -= !--task[t].left;
    }
}

static const char *made_check(const Made *m, uint32_t from, const uint32_t base[HAZ_SEMS]) {
    uint32_t n = m->e.code.of.n, count[HAZ_SEMS];
    int64_t last_of_engine[ENG_COUNT], last_of_sem[HAZ_SEMS];
    uint8_t *seen = calloc(n, 1);
    const char *why = NULL;
    memcpy(count, base, sizeof count);
    memset(last_of_engine, 0xff, sizeof last_of_engine);
    memset(last_of_sem, 0xff, sizeof last_of_sem);
    for (uint32_t i = from; i < n && !why; i++) {
        const IsaInst at = made_at(m, i), *in = &at;
        int sem = isa_sem(in);
        if (seen[in->imm]++ || in->imm < (int32_t)from)
            why = "an instruction is there twice";
        else if (m->e.code_loc.at[i] != (uint32_t)in->imm)
            why = "the place of an instruction went elsewhere";
        else if (in->imm < last_of_engine[in->engine] || in->imm < last_of_sem[sem])
            why = "an engine or a queue has another order";
        else if (in->wait_sem[0] != SEM_NONE && count[in->wait_sem[0]] < in->wait_val[0])
            why = "an instruction stands before what it waits for";
        last_of_engine[in->engine] = last_of_sem[sem] = in->imm;
        count[sem]++;
    }
    free(seen);
    return why;
}

static void test_random(Arena *arena) {
    const char *why = NULL;
    for (uint64_t seed = 1; seed <= 300 && !why; seed++) {
        Made m;
        uint64_t rng = seed;
        uint32_t base[HAZ_SEMS];
        made_begin(&m, arena);
        for (int i = 0; i < 5; i++) // placed at once: stays where it is
            made_add(&m, 0, ENG_SYNC, -1, -1, 0);
        memcpy(base, m.e.done, sizeof base);
        made_weave(&m, &rng);
        emit_unweave(&m.e);
        for (uint32_t i = 0; i < 5; i++)
            why = made_at(&m, i).imm != (int32_t)i ? "what was placed at once has moved" : why;
        why = why ? why : made_check(&m, 5, base);
        uint32_t again = m.e.code.of.n; // what was put in order before stays as it is
        memcpy(base, m.e.done, sizeof base);
        made_add(&m, 0, ENG_SYNC, -1, -1, 0);
        base[ENG_SYNC]++;
        made_weave(&m, &rng);
        emit_unweave(&m.e);
        why = why ? why : made_check(&m, again + 1, base);
        arena_reset(arena);
    }
    result("unweave/random", why);
}

// Two engines that go from task to task: every task is in one piece afterwards.
static void test_tiles(Arena *arena) {
    Made m;
    made_begin(&m, arena);
    for (int step = 0; step < 4; step++)
        for (uint32_t t = 0; t < 6; t++)
            made_add(&m, t + 1, step < 2 ? ENG_TENSOR : ENG_VECTOR, -1, step == 2 ? ENG_TENSOR : -1, step == 2 ? 7 + t : 0);
    emit_unweave(&m.e);
    const char *why = made_check(&m, 0, (uint32_t[HAZ_SEMS]){0});
    // the tensor engine's order is A1 B1 … A2 B2 …: only from A2 on can tasks be together
    for (uint32_t i = 6; i < 24 && !why; i++)
        why = made_at(&m, i).imm % 6 > made_at(&m, i - 1).imm % 6 + 1 ? "a task came too early" : NULL;
    why = !why && made_at(&m, 7).engine != ENG_VECTOR ? "the first task's work is not together" : why;
    result("unweave/tiles", why);
}

// A wait that counts back from its place means another count elsewhere.
static void test_stays(Arena *arena) {
    Made m;
    made_begin(&m, arena);
    made_add(&m, 2, ENG_VECTOR, -1, -1, 0);
    made_add(&m, 1, ENG_TENSOR, -1, ENG_VECTOR | SEM_BACK, 1);
    made_add(&m, 1, ENG_SCALAR, -1, -1, 0);
    emit_unweave(&m.e);
    bool stays = true;
    for (uint32_t i = 0; i < 3; i++)
        stays &= made_at(&m, i).imm == (int32_t)i;
    expect(stays, "unweave/stays", "a program with waits that count back has changed");
}

int main(void) {
    Arena arena;
    Ctx ctx = {0};
    arena_init(&arena, &ctx);
    test_random(&arena);
    test_tiles(&arena);
    test_stays(&arena);
    arena_fini(&arena);
    return failures != 0;
}
