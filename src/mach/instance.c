// SPDX-License-Identifier: Apache-2.0
// instance.c — reads the table of instances.
#include "mach/instance.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/file.h"
#include "isa/isa.h"
#include "mach/accel.h"
#include "mach/chips.h"

#define TABLE "instances.table"
#define COLUMNS 12
#define COLUMNS_PAID 11 // without the machines it is joined with
#define COLUMNS_OLD 8   // without how, where and when the price was paid

_Noreturn static void bad(Ctx *ctx, const char *file, uint32_t line, const char *what, const char *word) {
    ctx_hint(ctx, "columns: name chip chips hosts links network hop price [paid region seen [joined]]");
    ctx_fail(ctx, OTRN_CHIP, (Place){file, line, 0}, "%s `%s`", what, word);
}

static double number(Ctx *ctx, const char *file, uint32_t line, const char *word, double min) {
    char *end;
    double v = strtod(word, &end);
    if (*end || !(v >= min && v <= 1e9))
        bad(ctx, file, line, "not a number a machine can have:", word);
    return v;
}

// How a price is paid, in words; NULL when there is no such way.
static const char *paid_text(const char *word) {
    static const char *const ways[][2] = {{"on-demand", "on demand"}, {"capacity-block", "Capacity Block"},
                                          {"reserved", "reserved"},   {"spot", "spot"}, {"assumed", "assumed"}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (!strcmp(word, ways[i][0]))
            return ways[i][1];
    return NULL;
}

// "4x256": so many machines, with so many GB/s of links of a chip between them; "-": none.
static void joined_parse(Ctx *ctx, const char *file, uint32_t line, char *word, Instance *out) {
    char *times = strchr(word, 'x');
    out->joined = 1;
    if (!strcmp(word, "-"))
        return;
    if (!times)
        bad(ctx, file, line, "not machines x GB/s:", word);
    *times = 0;
    out->joined = (uint32_t)number(ctx, file, line, word, 1);
    out->joined_gb_s = number(ctx, file, line, times + 1, 1e-3);
}

static bool row_parse(Ctx *ctx, Arena *a, const char *file, uint32_t line, char *text, Instance *out) {
    char *words[COLUMNS + 1], *save = NULL, none[] = "-";
    int n = 0;
    text[strcspn(text, "#")] = 0;
    for (char *w = strtok_r(text, " \t\r", &save); w; w = strtok_r(NULL, " \t\r", &save)) {
        if (n == COLUMNS)
            bad(ctx, file, line, "a column too many:", w);
        words[n++] = w;
    }
    if (!n)
        return false;
    if (n != COLUMNS && n != COLUMNS_PAID && n != COLUMNS_OLD)
        bad(ctx, file, line, "too few columns for", words[0]);
    for (; n < COLUMNS; n++)
        words[n] = none;
    if (strcmp(words[8], "-") && !paid_text(words[8]))
        bad(ctx, file, line, "no way to pay is called", words[8]);
    *out = (Instance){.name = arena_strndup(a, words[0], strlen(words[0])),
                      .chip = arena_strndup(a, words[1], strlen(words[1])),
                      .chips = (uint32_t)number(ctx, file, line, words[2], 1),
                      .hosts = (uint32_t)number(ctx, file, line, words[3], 1),
                      .link_gb_s = number(ctx, file, line, words[4], 0),
                      .network_gbit = number(ctx, file, line, words[5], 0),
                      .hop_us = number(ctx, file, line, words[6], 0),
                      .usd_per_hour = number(ctx, file, line, words[7], 0),
                      .paid = arena_strndup(a, words[8], strlen(words[8])),
                      .region = arena_strndup(a, words[9], strlen(words[9])),
                      .seen = arena_strndup(a, words[10], strlen(words[10]))};
    joined_parse(ctx, file, line, words[11], out);
    return true;
}

uint32_t instances_parse(Ctx *ctx, Arena *a, const char *file, const char *text, size_t size, Instance **out) {
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

uint32_t instances_load(Ctx *ctx, Arena *a, const char *dir, Instance **out) {
    const char *file = dir && *dir ? arena_printf(a, "%s/" TABLE, dir) : "";
    struct stat st;
    if (!*file || stat(file, &st))
        return instances_parse(ctx, a, TABLE, chip_instances, (size_t)(chip_instances_end - chip_instances), out);
    size_t size;
    const char *text = (const char *)file_read(ctx, a, file, &size);
    return instances_parse(ctx, a, file, text, size, out);
}

// Its name, where it is written in other letters or is asked for by its chip.
static const char *meant(const char *name, const Instance *i) { return !strcasecmp(name, i->name) || !strcasecmp(name, i->chip) ? i->name : NULL; }

bool instance_apply(Ctx *ctx, Arena *a, Options *o, Instance *out) {
    const char *name = o->val[OPT_INSTANCE], *near = NULL, *same = NULL;
    if (!*name)
        return false;
    Instance *rows;
    uint32_t n = instances_load(ctx, a, o->val[OPT_CHIPS], &rows);
    for (uint32_t i = 0; i < n; i++) {
        near = opt_nearer(name, near, rows[i].name);
        same = same ? same : meant(name, &rows[i]);
        if (strcmp(rows[i].name, name))
            continue;
        if (!strcmp(o->from[OPT_TARGET], "default"))
            o->val[OPT_TARGET] = rows[i].chip, o->from[OPT_TARGET] = "instance";
        else if (strcmp(o->val[OPT_TARGET], rows[i].chip) && chip_text_find(o->val[OPT_TARGET]))
            ctx_fail(ctx, OTRN_USAGE, NO_PLACE, "%s has chips of %s, not %s", name, rows[i].chip, o->val[OPT_TARGET]);
        *out = rows[i];
        return true;
    }
    Accel *others;
    uint32_t nothers = accels_load(ctx, a, o->val[OPT_CHIPS], &others);
    for (uint32_t i = 0; i < nothers; i++) {
        near = opt_nearer(name, near, others[i].as.name);
        same = same ? same : meant(name, &others[i].as);
        if (!strcmp(name, others[i].as.name))
            ctx_fail(ctx, OTRN_USAGE, NO_PLACE, "%s has no Trainium: `otrn predict`, `cost` and `bakeoff` price programs on it by roofs, nothing is compiled for it", name);
    }
    if (same || near)
        ctx_hint(ctx, "did you mean '%s'?", same ? same : near);
    else
        ctx_hint(ctx, "`otrn info instances` lists them");
    ctx_fail(ctx, OTRN_USAGE, NO_PLACE, "there is no instance '%s'", name);
}

uint32_t chip_lnc(Ctx *ctx, const Options *o, const ChipFile *chip) {
    const char *asked = o->val[OPT_LNC];
    if (*asked == '2' && chip->cores_per_logical < 2) {
        ctx_hint(ctx, "trn2 and trn3 have them (cores_per_logical_core of the chip file); --lnc=1 is one core");
        ctx_fail(ctx, OTRN_USAGE, NO_PLACE, "--lnc=2: %s has no logical cores of two", chip->name);
    }
    return *asked == 'a' ? (uint32_t)chip->cores_per_logical : (uint32_t)(*asked - '0');
}

// On a torus it is the hosts of an UltraServer that are joined; a switch is between all its chips.
void instance_network(const Instance *i, ChipFile *chip) {
    double cores = i->chips * chip->cores_per_chip;
    chip->link_total = i->link_gb_s > 0 ? i->link_gb_s : chip->link_total;
    if (i->network_gbit > 0) {
        chip->host_cores = chip->torus_x > 0 ? cores / i->hosts : cores;
        chip->joined = i->joined, chip->joined_total = i->joined_gb_s;
        chip->network_bw = i->network_gbit / 8 / cores;
        chip->network_hop_ns = i->hop_us * 1e3;
    }
}

// --- what a run costs ----------------------------------------------------------------------------------

static double instance_cores(const Instance *i, const ChipFile *chip) { return i->chips * chip->cores_per_chip; }

// Of machines with this chip: the chip file's own where it is large enough, else the smallest priced one that is, else
// the largest priced one, else any.
static const Instance *reference(const Instance *rows, uint32_t n, const ChipFile *chip, double cores) {
    const Instance *own = NULL, *fits = NULL, *largest = NULL;
    for (uint32_t i = 0; i < n; i++) {
        const Instance *r = &rows[i];
        if (!strcmp(r->name, chip->instance))
            own = r;
        if (strcmp(r->chip, chip->name) || r->usd_per_hour <= 0)
            continue;
        if (instance_cores(r, chip) >= cores && (!fits || r->chips < fits->chips))
            fits = r;
        if (!largest || r->chips > largest->chips)
            largest = r;
    }
    if (own && instance_cores(own, chip) >= cores)
        return own;
    return fits ? fits : largest ? largest : own;
}

double price_asked(Ctx *ctx, const char *text) {
    char *end;
    double v = strtod(text, &end);
    if (*text && (*end || !(v > 0 && v < 1e9))) {
        ctx_hint(ctx, "--price=21.5 is 21.5 USD for an hour of the instance");
        ctx_fail(ctx, OTRN_USAGE, NO_PLACE, "price: `%s` is no price", text);
    }
    return *text ? v : 0;
}

const char *instance_basis(Arena *a, const Instance *i) {
    const char *paid = paid_text(i->paid);
    return arena_printf(a, "%s%s%s%s%s", paid ? paid : "as instances.table says", strcmp(i->region, "-") ? ", " : "",
                        strcmp(i->region, "-") ? i->region : "", strcmp(i->seen, "-") ? ", " : "",
                        strcmp(i->seen, "-") ? i->seen : "");
}

void cost_make(Ctx *ctx, Arena *a, const Options *o, const ChipFile *chip, const Instance *asked, uint32_t devices,
               uint32_t cores_per_device, Cost *out) {
    double cores = (double)devices * cores_per_device, yours = price_asked(ctx, o->val[OPT_PRICE]);
    *out = (Cost){.devices = devices, .cores_per_device = cores_per_device,
                  .flops_peak = cores * 2 * ISA_PE_ROWS * ISA_PE_COLS * chip->pe_ghz * 1e9};
    Instance *rows;
    uint32_t n = instances_load(ctx, a, o->val[OPT_CHIPS], &rows);
    const Instance *i = asked ? asked : reference(rows, n, chip, cores);
    if (!i) {
        out->basis = arena_printf(a, "no machine with %s is known; --instance=NAME names one", chip->name);
        return;
    }
    out->instance = *i;
    double price = yours > 0 ? yours : i->usd_per_hour, has = instance_cores(i, chip);
    out->machines = (uint32_t)((cores + has - 1) / has);
    out->usd_per_hour = price * cores / has;
    out->basis = yours > 0   ? "yours: --price"
                 : price > 0 ? instance_basis(a, i)
                             : "no price is published; --price=USD/h, of the instance, gives one";
}

double cost_utilisation(const Cost *c, double flops, double seconds) {
    return seconds > 0 ? flops * c->devices / seconds / c->flops_peak : 0;
}

const char *cost_text(Arena *a, const Cost *c) {
    if (!c->instance.name)
        return c->basis;
    uint32_t cores = c->devices * c->cores_per_device;
    const char *unit = c->unit ? c->unit : "core";
    const char *where = c->machines > 1 ? arena_printf(a, "%u %ss on %u machines of %s", cores, unit, c->machines, c->instance.name)
                                        : arena_printf(a, "%u %s%s of %s", cores, unit, cores == 1 ? "" : "s", c->instance.name);
    if (c->usd_per_hour <= 0)
        return arena_printf(a, "%s: %s", where, c->basis);
    return arena_printf(a, "%s, %.6g USD/h (%s)", where, c->usd_per_hour, c->basis);
}
