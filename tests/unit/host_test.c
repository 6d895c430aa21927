// SPDX-License-Identifier: Apache-2.0
// host_test.c — when the AMX level is offered: every way it may be missing, on hosts that have it and that have not.
#include <stdio.h>
#include <string.h>

#include "base/host.h"

#define TILE (1u << 24)
#define BF16 (1u << 22)
#define INT8 (1u << 25)
#define SAVED (3ull << 17)

static int asked;
static bool yes(void) {
    asked++;
    return true;
}
static bool no(void) {
    asked++;
    return false;
}

typedef struct Case {
    const char *name;
    HostAmx h;
    bool want;
    int asks;
} Case;

static const Case cases[] = {
    {"all there", {TILE | BF16 | INT8, 0xe7 | SAVED, yes}, true, 1},
    {"leave refused", {TILE | BF16, 0xe7 | SAVED, no}, false, 1},
    {"no tiles", {BF16, 0xe7 | SAVED, yes}, false, 0},
    {"tiles without bf16", {TILE | INT8, 0xe7 | SAVED, yes}, false, 0},
    {"tile data not saved", {TILE | BF16, 0xe7 | 1ull << 17, yes}, false, 0},
    {"tile configuration not saved", {TILE | BF16, 0xe7 | 1ull << 18, yes}, false, 0},
    {"system saves nothing", {TILE | BF16, 0, yes}, false, 0},
};

int main(void) {
    int failures = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        asked = 0;
        bool ok = host_amx_usable(&cases[i].h) == cases[i].want && asked == cases[i].asks;
        failures += !ok;
        printf("%s %s\n", ok ? "ok" : "FAIL", cases[i].name);
    }
    for (int l = 0; l < HOST_COUNT; l++)
        failures += host_parse(host_name((HostLevel)l)) != l;
    failures += host_parse("auto") != HOST_COUNT || host_parse("amx2") != -1 || host_best() >= HOST_COUNT;
    printf("%s names\n", failures ? "FAIL" : "ok");
    return failures != 0;
}
