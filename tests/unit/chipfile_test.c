// SPDX-License-Identifier: Apache-2.0
// chipfile_test.c — the built-in chip files are complete, and a wrong one is refused with line and
// key.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "mach/chips.h"
#include "clock/clock.h"
#include "unit.h"

static Ctx ctx;
static Arena arena;

static otrn_status parse(const char *text, ChipFile *out) {
    jmp_buf jb, *outer = ctx.on_fail;
    ctx.err = (otrn_error){0};
    if (CTX_TRY(&ctx, jb))
        chipfile_parse(&ctx, "my.chip", text, strlen(text), out);
    ctx.on_fail = outer;
    return ctx.err.code;
}

static otrn_status load(const char *target, const char *dir, ChipFile *out) {
    jmp_buf jb, *outer = ctx.on_fail;
    ctx.err = (otrn_error){0};
    if (CTX_TRY(&ctx, jb))
        chipfile_load(&ctx, &arena, target, dir, out);
    ctx.on_fail = outer;
    return ctx.err.code;
}

static bool same(const ChipFile *a, const ChipFile *b) {
    bool equal = !strcmp(a->name, b->name);
#define KEY(m, n, u, lo, hi) equal &= a->m == b->m;
    CHIP_KEYS(KEY)
#undef KEY
    return equal;
}

static void test_built_in(void) {
    const char *why = NULL;
    int count = 0;
    for (const char *const *name = chipfile_names(); *name; name++, count++) {
        ChipFile c, back;
        if (load(*name, NULL, &c) != OTRN_OK || strcmp(c.name, *name) ||
            strcmp(c.path, "(built in)"))
            why = *name;
        Buf text = {.arena = &arena};
        chipfile_print(&c, &text);
        if (parse(buf_cstr(&text), &back) != OTRN_OK || !same(&c, &back))
            why = "print and parse are not inverses";
    }
    if (count < 3)
        why = "trn1, trn2 and trn3 are not all there";
    result("built-in files load and print", why);
}

// Every line with a key says where its number comes from.
static void test_origins(void) {
    const char *why = NULL;
    static char shown[160];
    static const char *const kinds[] = {"documented;", "measured by others;", "fitted;",
                                        "assumed;"};
    for (const ChipText *t = chip_texts; t->name; t++)
        for (const char *p = t->begin; p < t->end;) {
            size_t n = strcspn(p, "\n");
            const char *line = arena_strndup(&arena, p, n), *equals = strchr(line, '=');
            p += n + 1;
            if (line[0] == '#' || !equals || !strncmp(line, "name", 4))
                continue;
            const char *origin = strstr(line, "# origin: ");
            bool known = false;
            for (size_t k = 0; origin && k < 4; k++)
                known |= !strncmp(origin + 10, kinds[k], strlen(kinds[k]));
            if (!known) {
                snprintf(shown, sizeof shown, "%s: %.100s", t->name, line);
                why = shown;
            }
        }
    result("every number has an origin", why);
}

static void test_known_values(void) {
    ChipFile a, b, c;
    const char *why = NULL;
    if (load("trn1", NULL, &a) || load("trn2", NULL, &b) || load("trn3", NULL, &c))
        why = ctx.err.text;
    else if (a.pe_ghz != 2.8 || b.pe_ghz != 2.4 || b.vector_ghz != 0.96 || c.vector_ghz != 1.2 ||
             a.hbm_bytes_per_core != 17179869184.0 || b.cores_per_chip != 8 ||
             c.dma_engine_bw != 33 || strcmp(a.instance, "trn1.2xlarge"))
        why = "a documented value is not what it was";
    result("documented values", why);
}

// trn2's text with one line replaced; with NULL, without the line.
static const char *edit(const char *key, const char *line) {
    const ChipText *t = chip_text_find("trn2");
    Buf out = {.arena = &arena};
    for (const char *p = t->begin; p < t->end;) {
        size_t n = strcspn(p, "\n");
        bool hit = !strncmp(p, key, strlen(key)) && p[strlen(key)] == ' ';
        if (hit && line)
            buf_printf(&out, "%s\n", line);
        else if (!hit)
            buf_printf(&out, "%.*s\n", (int)n, p);
        p += n + 1;
    }
    return buf_cstr(&out);
}

static uint32_t line_of(const char *text, const char *what) {
    uint32_t line = 1;
    for (const char *p = text, *hit = strstr(text, what); p < hit; p++)
        line += *p == '\n';
    return line;
}

static void test_refused(void) {
    const struct {
        const char *key, *line, *says, *hint;
    } cases[] = {
        {"pe_clock", NULL, "`pe_clock` is missing", "pe_clock"},
        {"pe_clock", "pe_clok = 2.4 GHz", "unknown key `pe_clok`", "pe_clock"},
        {"pe_clock", "pe_clock = fast GHz", "`fast` is not a number", ""},
        {"pe_clock", "pe_clock = 2.4.1 GHz", "is not a number", ""},
        {"pe_clock", "pe_clock = nan GHz", "is not a number", ""},
        {"pe_clock", "pe_clock = inf GHz", "is not a number", ""},
        {"pe_clock", "pe_clock = 1e999 GHz", "is not a number", ""},
        {"pe_clock", "pe_clock = -2.4 GHz", "is outside", ""},
        {"pe_clock", "pe_clock = 240 GHz", "is outside", ""},
        {"pe_clock", "pe_clock = 2.4 ns", "where the unit is GHz", ""},
        {"pe_clock", "pe_clock = 2.4", "where the unit is GHz", ""},
        {"pe_clock", "pe_clock 2.4 GHz", "expected `key = value unit`", ""},
        {"pe_clock", "pe_clock = 2.4 GHz\npe_clock = 2.4 GHz", "stands already on line", ""},
        {"name", "name = a\nname = b", "stands already on line", ""},
        {"name", "name =", "a name has 1 to 63", ""},
        {"sbuf_usable_bytes", "sbuf_usable_bytes = 256 KiB", "is larger than", ""},
        {"pe_clock", "= 2.4 GHz", "unknown key ``", ""},
    };
    const char *why = NULL;
    static char shown[300];
    for (size_t i = 0; i < sizeof cases / sizeof *cases && !why; i++) {
        ChipFile c;
        const char *text = edit(cases[i].key, cases[i].line);
        otrn_status code = parse(text, &c);
        bool lines = !cases[i].line || strstr(cases[i].says, "larger") ||
                     ctx.err.line == line_of(text, cases[i].line) + !!strchr(cases[i].line, '\n');
        if (code != OTRN_CHIP || !strstr(ctx.err.text, cases[i].says) || !lines ||
            strcmp(ctx.err.file, "my.chip") || !strstr(ctx.err.hint, cases[i].hint)) {
            snprintf(shown, sizeof shown, "case %zu: line %u %.150s [%.60s]", i, ctx.err.line,
                     ctx.err.text, ctx.err.hint);
            why = shown;
        }
    }
    result("wrong files are refused with line and key", why);
}

static void test_units(void) {
    ChipFile c;
    const char *why = NULL;
    if (parse(edit("pe_clock", "pe_clock = 2400 MHz"), &c) || c.pe_ghz != 2.4)
        why = "MHz";
    if (parse(edit("sbuf_partition_bytes", "sbuf_partition_bytes = 224 KiB # mine"), &c) ||
        c.sbuf_partition_bytes != 229376)
        why = "KiB";
    if (parse(edit("dma_start", "dma_start=1.5us"), &c) == OTRN_OK)
        why = "a unit glued to its number was taken";
    if (parse(edit("dma_start", "\tdma_start=1.5 us \r"), &c) || c.dma_start_ns != 1500)
        why = "us";
    result("other units", why);
}

static void test_where(void) {
    ChipFile c;
    const char *why = NULL;
    if (load("trn9", NULL, &c) != OTRN_CHIP || !strstr(ctx.err.hint, "trn1"))
        why = "an unknown name was taken";
    if (load("no/such.chip", NULL, &c) != OTRN_IO)
        why = "a missing file was taken";
    const char *dir = arena_printf(&arena, "/tmp/otrn_chipfile_test.%ld", (long)getpid());
    dir_make(&ctx, dir);
    const char *path = arena_printf(&arena, "%s/trn2.chip", dir);
    const char *text = edit("hbm_bandwidth_per_core", "hbm_bandwidth_per_core = 100 GB/s");
    file_write(&ctx, path, text, strlen(text));
    if (load("trn2", dir, &c) || c.hbm_bw_core != 100 || strcmp(c.path, path))
        why = "the folder's file was not preferred";
    if (load("trn1", dir, &c) || strcmp(c.path, "(built in)"))
        why = "no fall back to the built-in file";
    if (load(path, NULL, &c) || c.hbm_bw_core != 100)
        why = "a path was not taken";
    remove(path);
    rmdir(dir);
    result("names, folders and paths", why);
}

int main(void) {
    jmp_buf jb;
    arena_init(&arena, &ctx);
    if (CTX_TRY(&ctx, jb)) {
        test_built_in();
        test_origins();
        test_known_values();
        test_refused();
        test_units();
        test_where();
    } else {
        result("chipfile", ctx.err.text);
    }
    arena_fini(&arena);
    return failures != 0;
}
