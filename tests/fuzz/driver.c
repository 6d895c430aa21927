// SPDX-License-Identifier: Apache-2.0
// driver.c — feeds damaged inputs to a fuzz target; a plain main, so that any C compiler will do.
//
//   NAME_fuzz SECONDS SEED [FILE…]
//
// A target defines LLVMFuzzerTestOneInput (so libFuzzer can drive it too) and fuzz_seeds, the
// files to start from. Round n uses the generator seeded with SEED + n and nothing else, so the number
// printed before a crash reproduces it: NAME_fuzz 0 THAT_NUMBER runs exactly one round.
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
extern const char *const fuzz_seeds[]; // files to start from, NULL-terminated

#define FILE_MAX_BYTES (1u << 20)
#define ROUND_SECONDS 20 // longer is a hang

typedef struct Seed {
    uint8_t *at;
    size_t n;
} Seed;

static uint64_t random_next(uint64_t *state) { // splitmix64
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static size_t below(uint64_t *state, size_t n) { return n ? (size_t)(random_next(state) % n) : 0; }

static bool seed_load(const char *path, Seed *out) {
    FILE *f = fopen(path, "rb");
    if (!f)
        return false;
    out->at = malloc(FILE_MAX_BYTES);
    out->n = out->at ? fread(out->at, 1, FILE_MAX_BYTES, f) : 0;
    fclose(f);
    return out->at != NULL;
}

// One small injury: flip, overwrite, cut, drop, repeat or move a stretch.
static void damage(uint64_t *state, uint8_t *p, size_t *n, size_t cap) {
    static const uint8_t odd[] = {0, 1, 0x7f, 0x80, 0xff, '"', '<', '(', '%', '\n', '9', '-'};
    size_t at = below(state, *n), len = 1 + below(state, 16);
    if (at + len > *n)
        len = *n - at;
    switch (below(state, 6)) {
    case 0:
        if (*n)
            p[at] ^= (uint8_t)(1u << below(state, 8));
        break;
    case 1:
        if (*n)
            p[at] = odd[below(state, sizeof odd)];
        break;
    case 2:
        if (below(state, 8) == 0)
            *n = at;
        break;
    case 3:
        memmove(p + at, p + at + len, *n - at - len);
        *n -= len;
        break;
    case 4:
        if (*n + len <= cap) {
            memmove(p + at + len, p + at, *n - at);
            *n += len;
        }
        break;
    default:
        if (*n)
            memmove(p + at, p + below(state, *n - len + 1), len);
    }
}

static void hang(int sig) {
    (void)sig;
    static const char text[] = "fuzz: a round hangs\n";
    if (write(2, text, sizeof text - 1) < 0)
        _exit(3);
    abort();
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 10;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1, round = 0;
    Seed seeds[64];
    size_t nseeds = 0;
    for (size_t i = 0; fuzz_seeds[i] && nseeds < 64; i++)
        nseeds += seed_load(fuzz_seeds[i], &seeds[nseeds]);
    for (int i = 3; i < argc && nseeds < 64; i++)
        nseeds += seed_load(argv[i], &seeds[nseeds]);
    uint8_t *work = malloc(FILE_MAX_BYTES);
    if (!work || !nseeds) {
        fprintf(stderr, "%s: no file to start from\n", argv[0]);
        return 1;
    }
    signal(SIGALRM, hang);
    time_t begin = time(NULL);
    do {
        uint64_t state = seed + round;
        const Seed *from = &seeds[below(&state, nseeds)];
        size_t n = from->n;
        memcpy(work, from->at, n);
        for (size_t k = 1 + below(&state, 8); k > 0; k--)
            damage(&state, work, &n, FILE_MAX_BYTES);
        uint8_t *exact = malloc(n ? n : 1); // exactly sized, so that overruns are seen
        if (!exact)
            return 1;
        memcpy(exact, work, n);
        fprintf(stderr, "\rseed %llu", (unsigned long long)(seed + round));
        alarm(ROUND_SECONDS);
        LLVMFuzzerTestOneInput(exact, n);
        alarm(0);
        free(exact);
        round++;
    } while (difftime(time(NULL), begin) < seconds);
    fprintf(stderr, "\n");
    printf("ok %s: %llu rounds from seed %llu\n", argv[0], (unsigned long long)round,
           (unsigned long long)seed);
    for (size_t i = 0; i < nseeds; i++)
        free(seeds[i].at);
    free(work);
    return 0;
}
