// SPDX-License-Identifier: Apache-2.0
// host_test.c — which level a program runs in, for hosts that this one is not: every way AMX may be missing, and that the
// system is asked for leave only when tiles will be used.
#include <stdio.h>
#include <string.h>

#include "chip/host/matmul.h"
#include "unit.h"

#define TILE (1u << 24)
#define BF16 (1u << 22)
#define INT8 (1u << 25)
#define SAVED (3ull << 17)

static int asked, measured;
static bool yes(void) { return asked++, true; }
static bool no(void) { return asked++, false; }
static bool pays(void) { return measured++, true; }
static bool costs(void) { return measured++, false; }

typedef struct AmxCase {
    const char *name;
    HostAmx h;
    bool want;
} AmxCase;

static const AmxCase amx_cases[] = {
    {"all there", {TILE | BF16 | INT8, 0xe7 | SAVED, true}, true},
    {"no tiles", {BF16, 0xe7 | SAVED, true}, false},
    {"tiles without bf16", {TILE | INT8, 0xe7 | SAVED, true}, false},
    {"tile data not saved", {TILE | BF16, 0xe7 | 1ull << 17, true}, false},
    {"tile configuration not saved", {TILE | BF16, 0xe7 | 1ull << 18, true}, false},
    {"system saves nothing", {TILE | BF16, 0, true}, false},
    {"a level below is missing", {TILE | BF16, 0xe7 | SAVED, false}, false},
};

#define AUTO HOST_COUNT
#define SPR {HOST_AVX512, true, true, yes, pays}       // an Intel server with everything
#define REFUSED {HOST_AVX512, true, true, no, costs}   // the same with a small signal stack
#define ZEN4 {HOST_AVX512, true, false, no, pays}
#define SKYLAKE {HOST_AVX512, false, false, no, pays}
#define ZEN2 {HOST_AVX2, false, false, no, pays}
static const struct {
    const char *name;
    HostWays w;
    int want;
    bool narrow;
    int level, asks, measures;
} choices[] = {
    {"tiles for narrow products", SPR, AUTO, true, HOST_AMX, 1, 0},
    {"nobody asks for tiles without narrow products", SPR, AUTO, false, HOST_AVX512, 0, 0},
    {"nobody asks where portable is wanted", SPR, HOST_PORTABLE, true, HOST_PORTABLE, 0, 0},
    {"nobody asks where avx2 is wanted", SPR, HOST_AVX2, true, HOST_AVX2, 0, 0},
    {"nobody asks where avx512 is wanted", SPR, HOST_AVX512, true, HOST_AVX512, 0, 0},
    {"pairs are had when wanted, unmeasured", REFUSED, HOST_BF16, true, HOST_BF16, 0, 0},
    {"tiles are asked for when wanted", SPR, HOST_AMX, false, HOST_AMX, 1, 0},
    {"wanted tiles that are refused", REFUSED, HOST_AMX, true, -1, 1, 0},
    {"refused tiles, pairs that do not pay", REFUSED, AUTO, true, HOST_AVX512, 1, 1},
    {"pairs that pay", ZEN4, AUTO, true, HOST_BF16, 0, 1},
    {"nobody measures without narrow products", ZEN4, AUTO, false, HOST_AVX512, 0, 0},
    {"no tiles", ZEN4, HOST_AMX, true, -1, 0, 0},
    {"no pairs", SKYLAKE, HOST_BF16, true, -1, 0, 0},
    {"no pairs to measure", SKYLAKE, AUTO, true, HOST_AVX512, 0, 0},
    {"no wide vectors", ZEN2, HOST_AVX512, false, -1, 0, 0},
    {"the widest there are", ZEN2, AUTO, true, HOST_AVX2, 0, 0},
};

int main(void) {
    for (size_t i = 0; i < sizeof amx_cases / sizeof *amx_cases; i++)
        expect(host_amx_saved(&amx_cases[i].h) == amx_cases[i].want, amx_cases[i].name, "the other answer");
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        asked = measured = 0;
        int level = host_choose(&choices[i].w, choices[i].want, choices[i].narrow);
        char why[96];
        snprintf(why, sizeof why, "level %d, asked %d times, measured %d times", level, asked, measured);
        expect(level == choices[i].level && asked == choices[i].asks && measured == choices[i].measures, choices[i].name, why);
    }
    bool names = host_parse("auto") == HOST_COUNT && host_parse("amx2") == -1 && host_best() < HOST_COUNT;
    for (int l = 0; l < HOST_COUNT; l++)
        names = names && host_parse(host_name((HostLevel)l)) == l;
    expect(names, "names", "parse and name disagree");
    (void)mm_quicker(host_best(), HOST_PORTABLE); // the answer is a time's; here the sanitizers look at it
    return failures != 0;
}
