// SPDX-License-Identifier: Apache-2.0
// instance.c — reads the table of instances.
#include "clock/instance.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/file.h"
#include "clock/chips.h"

#define TABLE "instances.table"
#define COLUMNS 8

_Noreturn static void bad(Ctx *ctx, const char *file, uint32_t line, const char *what, const char *word) {
    ctx_hint(ctx, "columns: name chip chips hosts links network hop price");
    ctx_fail(ctx, OTRN_CHIP, (Place){file, line, 0}, "%s `%s`", what, word);
}

static double number(Ctx *ctx, const char *file, uint32_t line, const char *word, double min) {
    char *end;
    double v = strtod(word, &end);
    if (*end || !(v >= min && v <= 1e9))
        bad(ctx, file, line, "not a number a machine can have:", word);
    return v;
}

static bool row_parse(Ctx *ctx, Arena *a, const char *file, uint32_t line, char *text, Instance *out) {
    char *words[COLUMNS + 1], *save = NULL;
    int n = 0;
    text[strcspn(text, "#")] = 0;
    for (char *w = strtok_r(text, " \t\r", &save); w; w = strtok_r(NULL, " \t\r", &save)) {
        if (n == COLUMNS)
            bad(ctx, file, line, "a column too many:", w);
        words[n++] = w;
    }
    if (!n)
        return false;
    if (n < COLUMNS)
        bad(ctx, file, line, "too few columns for", words[0]);
    *out = (Instance){.name = arena_strndup(a, words[0], strlen(words[0])),
                      .chip = arena_strndup(a, words[1], strlen(words[1])),
                      .chips = (uint32_t)number(ctx, file, line, words[2], 1),
                      .hosts = (uint32_t)number(ctx, file, line, words[3], 1),
                      .link_gb_s = number(ctx, file, line, words[4], 0),
                      .network_gbit = number(ctx, file, line, words[5], 0),
                      .hop_us = number(ctx, file, line, words[6], 0),
                      .usd_per_hour = number(ctx, file, line, words[7], 0)};
    return true;
}

uint32_t instances_load(Ctx *ctx, Arena *a, const char *dir, Instance **out) {
    const char *file = dir && *dir ? arena_printf(a, "%s/" TABLE, dir) : "", *text = chip_instances;
    struct stat st;
    size_t size = (size_t)(chip_instances_end - chip_instances);
    if (*file && !stat(file, &st))
        text = (const char *)file_read(ctx, a, file, &size);
    else
        file = TABLE;
    VEC(Instance) rows = {0};
    uint32_t line = 0;
    for (const char *at = text, *end = text + size; at < end;) {
        const char *nl = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((nl ? nl : end) - at);
        Instance row;
        if (row_parse(ctx, a, file, ++line, arena_strndup(a, at, n), &row))
            VEC_PUSH(a, &rows, row);
        at += n + 1;
    }
    *out = rows.at;
    return rows.n;
}

bool instance_apply(Ctx *ctx, Arena *a, Options *o, Instance *out) {
    const char *name = o->val[OPT_INSTANCE], *near = NULL;
    if (!*name)
        return false;
    Instance *rows;
    uint32_t n = instances_load(ctx, a, o->val[OPT_CHIPS], &rows);
    for (uint32_t i = 0; i < n; i++) {
        near = opt_nearer(name, near, rows[i].name);
        if (strcmp(rows[i].name, name))
            continue;
        if (!strcmp(o->from[OPT_TARGET], "default"))
            o->val[OPT_TARGET] = rows[i].chip, o->from[OPT_TARGET] = "instance";
        else if (strcmp(o->val[OPT_TARGET], rows[i].chip) && chip_text_find(o->val[OPT_TARGET]))
            ctx_fail(ctx, OTRN_USAGE, NO_PLACE, "%s has chips of %s, not %s", name, rows[i].chip, o->val[OPT_TARGET]);
        *out = rows[i];
        return true;
    }
    if (near)
        ctx_hint(ctx, "did you mean '%s'?", near);
    else
        ctx_hint(ctx, "`otrn info instances` lists them");
    ctx_fail(ctx, OTRN_USAGE, NO_PLACE, "there is no instance '%s'", name);
}

void instance_price(const Instance *i, ChipFile *chip) {
    double cores = i->chips * chip->cores_per_chip;
    if (i->usd_per_hour > 0)
        chip->usd_per_core_hour = i->usd_per_hour / cores;
    if (i->network_gbit > 0) {
        chip->host_cores = cores;
        chip->network_bw = i->network_gbit / 8 / cores;
        chip->network_hop_ns = i->hop_us * 1e3;
    }
}
