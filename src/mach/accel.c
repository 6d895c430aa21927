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

// Words of a line; more than COLUMNS are counted only.
static int split(char *text, char **words) {
    char *save = NULL;
    int n = 0;
    text[strcspn(text, "#")] = 0;
    for (char *w = strtok_r(text, " \t\r", &save); w; w = strtok_r(NULL, " \t\r", &save), n++)
        if (n < COLUMNS)
            words[n] = w;
    return n;
}

static bool is_setting(int n, char **words) { return n > 1 && !strcmp(words[1], "="); }

typedef struct Table {
    VEC(Accel) rows;
    AccelSoftware soft;
} Table;

static void setting_parse(Ctx *ctx, Place at, int n, char **words, AccelSoftware *out) {
    struct { const char *name; double *to; } known[] = {
        {"host_s", &out->host_s}, {"rails", &out->rails}, {"stall", &out->stall}, {"kernel_s", &out->kernel_s}, {"moved", &out->moved}, {"launch_s", &out->launch_s}};
    if (n != 3)
        ctx_fail(ctx, OTRN_CHIP, at, "`%s =` has %d values, not 1", words[NAME], n - 2);
    double v = number(ctx, at, words[2]);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) // others are of models from a configuration
        if (!strcmp(words[NAME], known[i].name))
            *known[i].to = v;
}

static void line_parse(Ctx *ctx, Arena *a, Place at, char *text, Table *out) {
    char *words[COLUMNS];
    int n = split(text, words);
    if (is_setting(n, words)) {
        setting_parse(ctx, at, n, words, &out->soft);
        return;
    }
    if (n && n != COLUMNS)
        ctx_fail(ctx, OTRN_CHIP, at, "`%s` has %d columns, not %d", words[NAME], n, COLUMNS);
    Accel row;
    if (n) {
        row_make(ctx, at, words, &row);
        VEC_PUSH(a, &out->rows, row);
    }
}

static void table_parse(Ctx *ctx, Arena *a, const char *dir, Table *out) {
    const char *file;
    size_t size;
    const char *all = table(ctx, a, dir, &file, &size);
    uint32_t line = 1;
    for (char *at = arena_strndup(a, all, size), *next; at; at = next, line++) {
        next = strchr(at, '\n');
        if (next)
            *next++ = 0;
        line_parse(ctx, a, (Place){file, line, 0}, at, out);
    }
}

uint32_t accels_load(Ctx *ctx, Arena *a, const char *dir, Accel **out) {
    Table t = {0};
    table_parse(ctx, a, dir, &t);
    *out = t.rows.at;
    return t.rows.n;
}

AccelSoftware accel_software(Ctx *ctx, Arena *a, const char *dir) {
    Table t = {0};
    table_parse(ctx, a, "", &t);
    if (dir && *dir)
        table_parse(ctx, a, dir, &t);
    return t.soft;
}

const Accel *accel_find(Ctx *ctx, Arena *a, const char *dir, const char *name) {
    Accel *rows;
    uint32_t n = accels_load(ctx, a, dir, &rows);
    for (uint32_t i = 0; i < n; i++)
        if (!strcmp(rows[i].as.name, name))
            return &rows[i];
    return NULL;
}
