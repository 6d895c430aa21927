// SPDX-License-Identifier: Apache-2.0
// fuzz.h — what a fuzz target, the driver and the mutator share.
//
// A target defines LLVMFuzzerTestOneInput (so that libFuzzer can drive it too) and fuzz_seeds, the files to
// start from. Its memory comes from fuzz_arena: one arena for the whole run, emptied for each execution.
#ifndef OTRN_TESTS_FUZZ_H
#define OTRN_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

#define FUZZ_BYTES_MAX (64u << 10) // of one input

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
extern const char *const fuzz_seeds[]; // NULL-terminated

// The only state a target keeps; under sanitizers what the arena took back is out of bounds.
static inline Arena *fuzz_arena(struct Ctx *ctx) {
    static Arena arena;
    arena_reset(&arena);
    arena.ctx = ctx;
    return &arena;
}

typedef struct FuzzPiece {
    const uint8_t *at;
    size_t n;
} FuzzPiece;

#define FUZZ_PIECES_MAX 8192

typedef struct FuzzCorpus {
    FuzzPiece pieces[FUZZ_PIECES_MAX]; // whole files, and the functions of program texts
    size_t n;
} FuzzCorpus;

// One file, or the programs and kernels of a folder; text also function by function, without comment lines, unless it is to stay as it is.
bool fuzz_corpus_add(FuzzCorpus *c, const char *path, bool as_it_is); // false: no such file, or no room
void fuzz_corpus_piece(FuzzCorpus *c, const uint8_t *at, size_t n); // one more; copies
void fuzz_corpus_drop(FuzzCorpus *c, size_t n);                      // the first n
void fuzz_corpus_free(FuzzCorpus *c);
// A target may define this to make its inputs of what the seeds' files hold.
void fuzz_corpus_ready(FuzzCorpus *c) __attribute__((weak));
// Input number `number`, a function of the corpus and that number alone; out has FUZZ_BYTES_MAX bytes.
size_t fuzz_mutate(const FuzzCorpus *c, uint64_t number, uint8_t *out);
// An artifact's checksums made right again, so that the checks behind them are reached.
void fuzz_fix_checksums(uint8_t *p, size_t size);

#endif
