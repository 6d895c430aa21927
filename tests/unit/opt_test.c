// SPDX-License-Identifier: Apache-2.0
// opt_test.c — the option table: defaults, environment, checks, suggestions.
#include "base/opt.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Sets one option; returns the status and leaves the message in ctx.
static otrn_status try_set(Ctx *ctx, Options *o, const char *name, const char *value) {
    jmp_buf jb;
    memset(&ctx->err, 0, sizeof ctx->err);
    if (CTX_TRY(ctx, jb)) {
        opt_set(ctx, o, name, value, "command line");
        return OTRN_OK;
    }
    return ctx->err.code;
}

static otrn_status try_init(Ctx *ctx, Options *o) {
    jmp_buf jb;
    memset(&ctx->err, 0, sizeof ctx->err);
    if (CTX_TRY(ctx, jb)) {
        opt_init(ctx, o);
        return OTRN_OK;
    }
    return ctx->err.code;
}

static void test_rows(void) {
    bool named = true, kinds = true, dflts = true;
    Ctx ctx = {0};
    Options o;
    for (int i = 0; i < OPT_COUNT; i++) {
        named &= opt_find(opt_rows[i].name, strlen(opt_rows[i].name)) == i;
        kinds &= strchr("SHNBE", opt_rows[i].kind) != NULL;
        for (const char *at = opt_rows[i].env; *at;) {
            char name[64];
            int n = (int)strcspn(at, "|");
            snprintf(name, sizeof name, "%.*s", n, at);
            unsetenv(name);
            at += n + (at[n] == '|');
        }
    }
    dflts = try_init(&ctx, &o) == OTRN_OK;
    for (int i = 0; i < OPT_COUNT && dflts; i++)
        dflts &= !strcmp(o.val[i], opt_rows[i].dflt) && !strcmp(o.from[i], "default");
    expect(named, "rows/names", "a name is taken twice");
    expect(kinds, "rows/kinds", "a kind is not one of S H N B E");
    expect(dflts, "rows/defaults", ctx.err.text);
}

static void test_environment(void) {
    Ctx ctx = {0};
    Options o;
    setenv("OTRN_TARGET", "trn1", 1);
    setenv("OTRN_THREADS", "3", 1);
    bool ok = try_init(&ctx, &o) == OTRN_OK;
    expect(ok && !strcmp(o.val[OPT_TARGET], "trn1"), "env/text", o.val[OPT_TARGET]);
    expect(ok && opt_num(&o, OPT_THREADS) == 3, "env/number", o.val[OPT_THREADS]);
    ok = try_set(&ctx, &o, "threads", "5") == OTRN_OK;
    expect(ok && opt_num(&o, OPT_THREADS) == 5, "env/command-line-wins", o.val[OPT_THREADS]);
    setenv("OTRN_THREADS", "many", 1);
    ok = try_init(&ctx, &o) == OTRN_USAGE && strstr(ctx.err.text, "OTRN_THREADS");
    expect(ok, "env/bad-value-names-variable", ctx.err.text);
    setenv("OTRN_THREADS", "", 1);
    expect(try_init(&ctx, &o) == OTRN_OK, "env/empty-is-unset", ctx.err.text);
    unsetenv("OTRN_TARGET");
    unsetenv("OTRN_THREADS");
    setenv("SLURM_PROCID", "7", 1);
    ok = try_init(&ctx, &o) == OTRN_OK;
    expect(ok && !strcmp(o.val[OPT_RANK], "7"), "env/one-of-several", o.val[OPT_RANK]);
    setenv("RANK", "5", 1);
    ok = try_init(&ctx, &o) == OTRN_OK;
    expect(ok && !strcmp(o.val[OPT_RANK], "5"), "env/the-first-wins", o.val[OPT_RANK]);
    unsetenv("RANK");
    unsetenv("SLURM_PROCID");
}

static void test_checks(void) {
    static const struct {
        const char *name, *value;
        otrn_status want;
    } cases[] = {
        {"threads", "0", OTRN_OK},       {"threads", "65536", OTRN_OK},
        {"threads", "65537", OTRN_USAGE}, {"threads", "-1", OTRN_USAGE},
        {"threads", "", OTRN_USAGE},      {"threads", "99999999999999999999999", OTRN_USAGE},
        {"threads", "2x", OTRN_USAGE},    {"host", "avx2", OTRN_OK},
        {"host", "avx", OTRN_USAGE},      {"host", "", OTRN_USAGE},
        {"host", "avx2|avx512", OTRN_USAGE}, {"cache", "off", OTRN_OK},
        {"stats", "on", OTRN_OK},         {"stats", "maybe", OTRN_USAGE},
        {"no-such-thing", "1", OTRN_USAGE},
    };
    Ctx ctx = {0};
    Options o;
    try_init(&ctx, &o);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char label[128];
        snprintf(label, sizeof label, "check/%s=%s", cases[i].name, cases[i].value);
        expect(try_set(&ctx, &o, cases[i].name, cases[i].value) == cases[i].want, label, ctx.err.text);
    }
    try_set(&ctx, &o, "stats", "1");
    expect(opt_on(&o, OPT_STATS), "check/1-is-on", o.val[OPT_STATS]);
    try_set(&ctx, &o, "tarket", "trn1");
    expect(strstr(ctx.err.hint, "target") != NULL, "check/did-you-mean", ctx.err.hint);
}

static void test_nearer(void) {
    const char *a = opt_nearer("complie", NULL, "compile");
    expect(a && !strcmp(a, "compile"), "nearer/swap", "two swapped letters are one mistake");
    expect(!opt_nearer("xyz", NULL, "compile"), "nearer/far", "chosen though nothing agrees");
    a = opt_nearer("ran", "run", "eval");
    expect(a && !strcmp(a, "run"), "nearer/keeps-best", "the worse candidate won");
    expect(!opt_nearer("a-name-that-is-much-too-long-to-be-compared", NULL, "o"), "nearer/long",
           "chosen");
}

int main(void) {
    test_rows();
    test_environment();
    test_checks();
    test_nearer();
    return failures != 0;
}
