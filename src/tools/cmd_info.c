// SPDX-License-Identifier: Apache-2.0
// cmd_info.c — otrn info: the tables this program was built from.
#include "tools/tools.h"

#include <string.h>

#include "chip/core/chip.h"
#include "hlo/eval.h"
#include "isa/isa.h"
#include "mach/accel.h"
#include "pass/rules.h"

typedef struct ChipKey { // one row of CHIP_KEYS
    const char *name, *unit;
    size_t offset;
} ChipKey;

static const ChipKey chip_keys[] = {
#define KEY(m, n, u, lo, hi) {n, u, offsetof(ChipFile, m)},
    CHIP_KEYS(KEY)
#undef KEY
};

static void info_chips(Tool *t) {
    const char *const *names = chipfile_names();
    VEC(ChipFile) chips = {0};
    printf("%-30s %-8s", "key", "unit");
    for (; *names; names++) {
        ChipFile chip;
        chipfile_load(t->ctx, t->arena, *names, t->opt.val[OPT_CHIPS], &chip);
        VEC_PUSH(t->arena, &chips, chip);
        printf(" %14s", chip.name);
    }
    for (size_t k = 0; k < sizeof chip_keys / sizeof *chip_keys; k++) {
        printf("\n%-30s %-8s", chip_keys[k].name, chip_keys[k].unit);
        for (uint32_t c = 0; c < chips.n; c++) {
            double v;
            memcpy(&v, (const char *)&chips.at[c] + chip_keys[k].offset, sizeof v);
            printf(" %14.12g", v);
        }
    }
    printf("\n");
}

static void info_instances(Tool *t) {
    Instance *rows;
    uint32_t n = instances_load(t->ctx, t->arena, t->opt.val[OPT_CHIPS], &rows);
    printf("%-22s %-6s %6s %6s %10s %8s %12s %10s  %-14s %-10s %s\n", "instance", "chip", "chips", "hosts", "link GB/s",
           "joined", "network Gb/s", "USD/h", "paid", "region", "seen");
    for (uint32_t i = 0; i < n; i++)
        printf("%-22s %-6s %6u %6u %10.4g %8s %12.6g %10s  %-14s %-10s %s\n", rows[i].name, rows[i].chip, rows[i].chips,
               rows[i].hosts, rows[i].link_gb_s,
               rows[i].joined > 1 ? arena_printf(t->arena, "%ux%.4g", rows[i].joined, rows[i].joined_gb_s) : "-", rows[i].network_gbit,
               rows[i].usd_per_hour > 0 ? arena_printf(t->arena, "%.6g", rows[i].usd_per_hour) : "-", rows[i].paid,
               rows[i].region, rows[i].seen);
    Accel *others;
    n = accels_load(t->ctx, t->arena, t->opt.val[OPT_CHIPS], &others);
    for (uint32_t i = 0; i < n; i++) // by roofs: otrn predict, cost, bakeoff
        printf("%-22s %-6s %6u %6u %10.4g %8s %12.6g %10s  %-14s %-10s %s\n", others[i].as.name, others[i].as.chip, others[i].as.chips, 1u,
               others[i].link_gb_s, "-", others[i].as.network_gbit,
               others[i].as.usd_per_hour > 0 ? arena_printf(t->arena, "%.6g", others[i].as.usd_per_hour) : "-", others[i].as.paid,
               others[i].as.region, others[i].as.seen);
}

static void info_passes(Tool *t) {
    (void)t;
    for (int i = 0; i < pass_count; i++)
        printf("%-12s %s\n", pass_rows[i].name, pass_rows[i].purpose);
}

static void info_rules(Tool *t) {
    (void)t;
    printf("%-10s %-22s %-22s %s\n", "pass", "op", "numbers", "what becomes what");
    for (int i = 0; i < pass_count; i++)
        for (const Rule *r = pass_rows[i].rules; r && r->to; r++)
            printf("%-10s %-22s %-22s %s\n", pass_rows[i].name, r->code ? hlo_op_rows[r->code].name : "any", rule_keeps_text[r->keeps], r->name);
}

// How an op gets onto the chip: a kernel of GpSimd, branches, other ops or data in its place; or not.
static const char *chip_way(HloOpcode code) {
    if (code == HLO_DOT || code == HLO_DOT_GENERAL)
        return "tensor engine, kernel";
    if (hlo_op_rows[code].cls == HC_CTRL || code == HLO_RETURN)
        return "branches";
    if (code == HLO_CONSTANT)
        return "data";
    if (code == HLO_INTERPRETER_RUN_PARALLEL)
        return "a program for each device";
    return pass_rewrites(code) ? "other ops" : gp_has(code) ? "kernel" : "no";
}

static void info_ops(Tool *t) {
    static const char *const classes[] = {"elementwise", "elementwise", "elementwise", "move",
                                          "reduce",      "dot",         "control",     "collective",
                                          "meta",        "other"};
    _Static_assert(sizeof classes / sizeof *classes == HC_MISC + 1, "one name per class");
    (void)t;
    printf("%-44s %-12s %-10s %s\n", "op", "class", "evaluator", "chip");
    for (int i = HLO_NONE + 1; i < HLO_OPCODE_COUNT; i++) {
        const HloOpRow *row = &hlo_op_rows[i];
        char name[96];
        snprintf(name, sizeof name, "%s.%s", hlo_dialect_names[row->dialect], row->name);
        bool evaluated = eval_has((HloOpcode)i) || pass_rewrites((HloOpcode)i);
        printf("%-44s %-12s %-10s %s\n", name, classes[row->cls], evaluated ? "yes" : "no",
               chip_way((HloOpcode)i));
    }
}

static void info_options(Tool *t) {
    enum { COLUMNS = 4 };
    int width[COLUMNS] = {0};
    for (int print = 0; print < 2; print++) // first how wide each column is
        for (int i = -1; i < OPT_COUNT; i++) {
            const char *head[] = {"option", "environment", "value", "from"};
            const char *env = i < 0 ? "" : arena_strndup(t->arena, opt_rows[i].env, strcspn(opt_rows[i].env, "|")); // the first is ours
            const char *value = i < 0 ? "" : opt_rows[i].kind == 'H' && *t->opt.val[i] ? "(set)" : t->opt.val[i];
            const char *own[] = {i < 0 ? "" : opt_rows[i].name, env, value, i < 0 ? "" : t->opt.from[i]};
            const char **cell = i < 0 ? head : own;
            for (int c = 0; c < COLUMNS; c++) {
                int n = (int)strlen(cell[c]);
                width[c] = n > width[c] ? n : width[c];
                if (print)
                    printf("%-*s ", width[c], cell[c]);
            }
            if (print)
                printf("%s\n", i < 0 ? "meaning" : opt_rows[i].help);
        }
}

static void info_isa(Tool *t) {
    (void)t;
    printf("%-12s %-8s %s\n", "instruction", "engines", "meaning");
    for (int i = 0; i < ISA_OP_COUNT; i++)
        printf("%-12s %-8s %s\n", isa_rows[i].name, isa_rows[i].engines, isa_rows[i].meaning);
}

static void info_commands(Tool *t) {
    (void)t;
    const ToolRow *row;
    for (size_t i = 0; (row = tool_row(i)); i++)
        printf("%-9s %s\n", row->name, row->help);
}

static const struct {
    const char *name;
    void (*fn)(Tool *t);
    const char *help;
} topics[] = {
    {"chips", info_chips, "sizes, clocks, rates and prices of the chip files"},
    {"instances", info_instances, "machines: chips, links, prices (0: not known)"},
    {"passes", info_passes, "graph passes in order"},
    {"rules", info_rules, "rewriting rules of the passes, and what each leaves of a program's numbers"},
    {"ops", info_ops, "operations and their support"},
    {"options", info_options, "every option, its value now and where that comes from"},
    {"isa", info_isa, "instructions of the chip"},
    {"commands", info_commands, "commands of this program"},
    {"bash", shell_bash, "completion for bash: source it, or `make install`"},
    {"zsh", shell_zsh, "completion for zsh"},
    {"fish", shell_fish, "completion for fish"},
    {"man", shell_man, "the manual page, or that of a command: man run"},
};

int cmd_info(Tool *t) {
    const char *near = NULL;
    if (t->words.n == 0) {
        for (size_t i = 0; i < sizeof topics / sizeof *topics; i++)
            printf("otrn info %-9s  %s\n", topics[i].name, topics[i].help);
        return 0;
    }
    if (t->words.n > 1 && strcmp(t->words.at[0], "man"))
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "info: one argument too many: '%s'", t->words.at[1]);
    for (size_t i = 0; i < sizeof topics / sizeof *topics; i++) {
        if (!strcmp(topics[i].name, t->words.at[0])) {
            topics[i].fn(t);
            return 0;
        }
        near = opt_nearer(t->words.at[0], near, topics[i].name);
    }
    if (near)
        ctx_hint(t->ctx, "did you mean '%s'?", near);
    ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "info: there is no topic '%s'", t->words.at[0]);
}
