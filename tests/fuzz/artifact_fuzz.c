// SPDX-License-Identifier: Apache-2.0
// artifact_fuzz.c — damaged artifacts.
//
// The seeds are the instruction tests and a program with a bit of everything, assembled at the start. They are damaged
// section by section (mutate.c) and their checksums repaired, so that the checks behind them are reached. What loads must
// survive every round trip. Text and prices take far longer than reading: one in 8 goes through its text, one in 64 is priced.
#include <stdio.h>
#include <stdlib.h>

#include "artifact/artifact.h"
#include "clock/view.h"
#include "tests/fuzz/fuzz.h"

const char *const fuzz_seeds[] = {"tests/isa", "tests/unit/data/everything.s", "tests/unit/data/wide.s", NULL};

void fuzz_corpus_ready(FuzzCorpus *c) {
    size_t given = c->n;
    for (size_t i = 0; i < given; i++) {
        Ctx ctx = {0};
        Arena *a = fuzz_arena(&ctx);
        jmp_buf jb;
        if (!CTX_TRY(&ctx, jb))
            continue; // a test of what is refused
        Artifact *art = artifact_parse(&ctx, a, "seed.s", (const char *)c->pieces[i].at, c->pieces[i].n);
        artifact_verify(&ctx, art, "seed.s");
        Buf bytes = {.arena = a};
        if (i % 2) { // as if it were compiled
            art->program = (const uint8_t *)"func.func @main() { return }";
            art->program_bytes = 28;
            art->options = "lnc=2\n";
        }
        artifact_save(art, &bytes);
        fuzz_corpus_piece(c, bytes.at, bytes.n);
    }
    fuzz_corpus_drop(c, given);
}

static void must_equal(const Buf *a, const Buf *b) {
    if (a->n != b->n || memcmp(a->at, b->at, a->n))
        abort();
}

static void use(Ctx *ctx, Arena *a, Artifact *art) {
    Buf bytes = {.arena = a}, text = {.arena = a}, again = {.arena = a};
    artifact_save(art, &bytes);
    uint32_t number = crc32c(0, bytes.at, bytes.n);
    art->shapes = NULL; // found anew they are the same
    artifact_save(art, &again);
    must_equal(&bytes, &again);
    artifact_load(ctx, a, "again.otrn", bytes.at, bytes.n);
    if (number % 8)
        return;
    artifact_print(art, &text); // all but what it was compiled from
    art->program_bytes = bytes.n = 0;
    artifact_save(art, &bytes);
    Artifact *back = artifact_parse(ctx, a, "again.s", (const char *)text.at, text.n);
    again.n = 0;
    artifact_save(back, &again);
    must_equal(&bytes, &again);
    if (number % 64)
        return;
    ChipFile chip;
    Clock clock;
    chipfile_load(ctx, a, "trn2", NULL, &chip);
    clock_run(ctx, a, art, &chip, &(ClockOptions){.events = true}, &clock);
    view_make(a, art, &chip, &clock, ARENA_NEW(a, View));
}

_Noreturn static void fail(const otrn_error *err) {
    fprintf(stderr, "\n%s\n", err->text);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Ctx ctx = {0};
    Arena *a = fuzz_arena(&ctx);
    jmp_buf jb, late;
    if (CTX_TRY(&ctx, jb)) {
        uint8_t *copy = arena_dup(a, data, size);
        fuzz_fix_checksums(copy, size);
        Artifact *art = artifact_load(&ctx, a, "fuzz.otrn", copy, size);
        if (CTX_TRY(&ctx, late))
            use(&ctx, a, art);
        else
            fail(&ctx.err); // what was verified may not fail any more
    }
    return 0;
}
