// SPDX-License-Identifier: Apache-2.0
// accel.c — reads the table of other accelerators.
#include "mach/accel.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "base/file.h"
#include "mach/chips.h"

enum { NAME, CHIP, CHIPS, BF16, FP8, FP32, HBM, HBM_RATE, LINK, NETWORK, USD, PAID, REGION, SEEN, PRODUCTS, ATTENTION, PRODUCTS_FP8, COLUMNS };

static const char *table(Ctx *ctx, Arena *a, const char *dir, const char **file, size_t *size) {
    struct stat st;
    *file = dir && *dir ? arena_printf(a, "%s/accelerators.table", dir) : "accelerators.table";
    if (dir && *dir && !stat(*file, &st))
        return (const char *)file_read(ctx, a, *file, size);
    *size = (size_t)(chip_accelerators_end - chip_accelerators);
    return chip_accelerators;
}

static double number(Ctx *ctx, Place at, const char *word) {
    char *end;
    double v = strtod(word, &end);
    if (*end || !(v >= 0 && v <= 1e9))
        ctx_fail(ctx, OTRN_CHIP, at, "not a number a machine can have: `%s`", word);
    return v;
}

static void row_make(Ctx *ctx, Place at, char **w, Accel *out) {
    double v[COLUMNS] = {0};
    for (int i = CHIPS; i < COLUMNS; i++)
        v[i] = i < PAID || i > SEEN ? number(ctx, at, w[i]) : 0;
    *out = (Accel){.as = {.name = w[NAME], .chip = w[CHIP], .chips = (uint32_t)v[CHIPS], .hosts = 1, .link_gb_s = v[LINK], .network_gbit = v[NETWORK],
                          .usd_per_hour = v[USD], .paid = w[PAID], .region = w[REGION], .seen = w[SEEN]},
                   .tflops = v[BF16], .tflops_fp8 = v[FP8], .tflops_fp32 = v[FP32], .hbm_bytes = v[HBM] * 0x1p30, .hbm_gb_s = v[HBM_RATE],
                   .link_gb_s = v[LINK], .products = v[PRODUCTS], .attention = v[ATTENTION], .products_fp8 = v[PRODUCTS_FP8]};
    if (!out->as.chips || !(v[BF16] > 0 && v[FP8] > 0 && v[FP32] > 0 && v[HBM_RATE] > 0 && v[LINK] > 0 && v[PRODUCTS] > 0 && v[ATTENTION] > 0 && v[PRODUCTS_FP8] > 0))
        ctx_fail(ctx, OTRN_CHIP, at, "`%s` lacks chips, a rate or a share", w[NAME]);
}

static bool row_parse(Ctx *ctx, Place at, char *text, Accel *out) {
    char *words[COLUMNS], *save = NULL;
    int n = 0;
    text[strcspn(text, "#")] = 0;
    for (char *w = strtok_r(text, " \t\r", &save); w; w = strtok_r(NULL, " \t\r", &save), n++)
        if (n < COLUMNS)
            words[n] = w;
    if (n && n != COLUMNS)
        ctx_fail(ctx, OTRN_CHIP, at, "`%s` has %d columns, not %d", words[NAME], n, COLUMNS);
    if (n)
        row_make(ctx, at, words, out);
    return n > 0;
}

uint32_t accels_load(Ctx *ctx, Arena *a, const char *dir, Accel **out) {
    VEC(Accel) rows = {0};
    const char *file;
    size_t size;
    const char *all = table(ctx, a, dir, &file, &size);
    uint32_t line = 1;
    for (char *at = arena_strndup(a, all, size), *next; at; at = next, line++) {
        next = strchr(at, '\n');
        if (next)
            *next++ = 0;
        Accel row;
        if (row_parse(ctx, (Place){file, line, 0}, at, &row))
            VEC_PUSH(a, &rows, row);
    }
    *out = rows.at;
    return rows.n;
}

const Accel *accel_find(Ctx *ctx, Arena *a, const char *dir, const char *name) {
    Accel *rows;
    uint32_t n = accels_load(ctx, a, dir, &rows);
    for (uint32_t i = 0; i < n; i++)
        if (!strcmp(rows[i].as.name, name))
            return &rows[i];
    return NULL;
}
