// SPDX-License-Identifier: Apache-2.0
// plan_fuzz.c — damaged artifacts and assembly that verify: the planner takes them all, and what is small and runs
// straight on is executed along its plan, half of it flowing, in memory whose ends a sanitizer watches.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chip/core/chip.h"
#include "chip/host/plan.h"
#include "tests/fuzz/fuzz.h"

const char *const fuzz_seeds[] = {"tests/unit/data/everything.s", "examples/kernels/matmul.s", "examples/kernels/rmsnorm.s",
                                  "examples/kernels/softmax.s", "tests/isa/dma.s", "tests/isa/activation.s", "tests/isa/matmul.s",
                                  "tests/isa/copy_predicated.s", "tests/unit/data/version4.artifact", NULL};

#define SEG_MOST (1u << 20)
#define WORK_MOST (1u << 20)

static bool is_short(const Artifact *art) {
    uint64_t work = 0;
    for (uint32_t i = 0; i < art->ncode; i++) {
        const IsaInst *in = &art->code[i];
        int cost = isa_rows[in->op].cost;
        if (cost == COST_BRANCH || cost == COST_LOOP || cost == COST_KERNEL || cost == COST_COLLECTIVE || cost == COST_REMOTE ||
            in->op == ISA_SENDRECV)
            return false;
        uint64_t elems = 1;
        for (int k = 0; k < 5; k++)
            elems *= isa_count(in->n[k]) < WORK_MOST ? isa_count(in->n[k]) : WORK_MOST;
        work += elems;
        if (work > WORK_MOST)
            return false;
    }
    return !art->peer;
}

static void execute(Arena *a, const Artifact *art) {
    static Chip *chip;
    uint32_t nsegs = SEG_FIRST_ARG + art->nargs + art->nresults;
    uint8_t **segs = calloc(nsegs, sizeof *segs);
    bool ok = is_short(art);
    for (uint32_t i = 0; i < nsegs; i++) { // each by itself, so that a sanitizer sees its end
        bool known;
        uint64_t bytes = artifact_seg_bytes(art, i, &known);
        ok = ok && bytes <= SEG_MOST;
        if (ok)
            segs[i] = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
        if (ok && segs[i])
            memset(segs[i], 0x3c, bytes);
    }
    for (uint32_t i = 0; i < art->nresults && ok; i++) // in place, as donated memory is
        if (art->results[i].alias >= 0) {
            free(segs[SEG_FIRST_ARG + art->nargs + i]);
            segs[SEG_FIRST_ARG + art->nargs + i] = segs[SEG_FIRST_ARG + art->results[i].alias];
        }
    Ctx ctx = {0};
    jmp_buf jb;
    chip = chip ? chip : chip_make(NULL, host_best());
    chip_set_plan(chip, art->ncode & 1 ? CHIP_PLAN_ALL : CHIP_PLAN_ON);
    if (ok && CTX_TRY(&ctx, jb)) {
        char why[200];
        uint32_t pc;
        chip_run(chip, chip_load(&ctx, a, art, 1, false, NULL), segs, &pc, why, sizeof why);
    }
    for (uint32_t i = 0; i < nsegs; i++)
        if (i < SEG_FIRST_ARG + art->nargs || art->results[i - SEG_FIRST_ARG - art->nargs].alias < 0)
            free(segs[i]);
    free(segs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Ctx ctx = {0};
    Arena *a = fuzz_arena(&ctx);
    jmp_buf jb;
    if (CTX_TRY(&ctx, jb)) {
        Artifact *art;
        if (artifact_is(data, size)) {
            uint8_t *copy = arena_dup(a, data, size);
            fuzz_fix_checksums(copy, size);
            art = artifact_load(&ctx, a, "fuzz.otrn", copy, size);
        } else {
            art = artifact_assemble(&ctx, a, "fuzz.s", (const char *)data, size, NULL);
            artifact_verify(&ctx, art, "fuzz.s");
        }
        plan_make(a, art, shapes_find(a, art->code, art->ncode), artifact_dynamic(a, art), arena_zalloc(a, art->ncode + 1), NULL);
        execute(a, art);
    }
    return 0;
}
