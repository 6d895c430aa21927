// SPDX-License-Identifier: Apache-2.0
// border_test.c — what comes from elsewhere: artifacts that name files.
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "artifact/artifact.h"
#include "tests/unit/unit.h"

// The bytes of an assembled program, in the arena; nothing is checked.
static Buf assembled(Ctx *ctx, Arena *a, const char *text) {
    Buf bytes = {.arena = a};
    jmp_buf here;
    if (CTX_TRY(ctx, here))
        artifact_save(artifact_parse(ctx, a, "t.s", text, strlen(text)), &bytes);
    ctx->on_fail = NULL;
    return bytes;
}

static void test_target(otrn_env *env) {
    Ctx ctx = {0};
    Arena arena;
    arena_init(&arena, &ctx);
    char folder[] = "/tmp/otrn_borderXXXXXX", pipe[64];
    snprintf(pipe, sizeof pipe, "%s/pipe", mkdtemp(folder));
    mkfifo(pipe, 0600);
    const char *names[] = {pipe, "/dev/zero", "/etc/hostname", "../chips/trn1", "trn1.chip", "no-such-chip", ""};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        Buf bytes = assembled(&ctx, &arena, arena_printf(&arena, ".target \"%s\"\nhalt\n", names[i]));
        otrn_exe *exe = NULL;
        otrn_error err = {0};
        otrn_status s = otrn_compile(env, bytes.at, bytes.n, "t.otrn", &exe, &err);
        char name[128];
        snprintf(name, sizeof name, "an artifact for `%s` is refused", names[i]);
        expect(s == OTRN_CHIP && strstr(err.text, "not at hand") && strstr(err.hint, "--target"), name, err.text);
        otrn_exe_free(exe);
    }
    unlink(pipe);
    rmdir(folder);
    arena_fini(&arena);
}

int main(void) {
    otrn_env *env;
    otrn_option options[] = {{"threads", "1"}, {"cache", "off"}};
    otrn_error err;
    if (otrn_open(options, 2, &env, &err)) {
        printf("FAIL open: %s\n", err.text);
        return 1;
    }
    test_target(env);
    otrn_close(env);
    return failures != 0;
}
