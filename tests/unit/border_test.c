// SPDX-License-Identifier: Apache-2.0
// border_test.c — what comes from elsewhere: artifacts that name files, programs that call functions not theirs.
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "artifact/artifact.h"
#include "tests/unit/run_sized.h"
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
        otrn_error err = OTRN_ERROR_INIT;
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

// A compiled program whose target alone was changed: it keeps the program it was made of, and the chip's values by their
// hash. Another chip's name gives that chip's own time, never that of code for the first.
static void test_changed_target(otrn_env *env) {
    static const char text[] = "func.func public @main(%a: tensor<64x64xf32>) -> tensor<64x64xf32> {\n"
                               "  %0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) "
                               "-> tensor<64x64xf32>\n  return %0 : tensor<64x64xf32>\n}\n";
    const char *names[] = {"/dev/zero", "../trn2", "TRN2", "trn1", "trn3"};
    Ctx ctx = {0};
    Arena arena;
    arena_init(&arena, &ctx);
    otrn_error err = OTRN_ERROR_INIT;
    otrn_exe *exe = NULL;
    size_t size = 0;
    otrn_status s = otrn_compile(env, text, strlen(text), "t", &exe, &err);
    const void *bytes = s ? NULL : otrn_exe_bytes(exe, &size);
    jmp_buf here;
    for (size_t i = 0; bytes && i < sizeof names / sizeof *names; i++) {
        Buf changed = {.arena = &arena};
        if (CTX_TRY(&ctx, here)) {
            Artifact *art = artifact_load(&ctx, &arena, "t", bytes, size);
            art->target = names[i];
            artifact_save(art, &changed);
        }
        ctx.on_fail = NULL;
        otrn_exe *other = NULL;
        otrn_report told = OTRN_REPORT_INIT, right = OTRN_REPORT_INIT;
        s = otrn_compile(env, changed.at, changed.n, "t.otrn", &other, &err);
        bool known = !s && !otrn_time(other, NULL, &told, &err) && !otrn_time(exe, names[i], &right, &err);
        bool ok = i < 3 ? s == OTRN_CHIP && strstr(err.text, names[i])
                        : known && told.total_us == right.total_us && !strcmp(told.target, names[i]);
        expect(ok, arena_printf(&arena, "compiled code with the target changed to `%s`", names[i]),
               arena_printf(&arena, "%s %g %g", err.text, told.total_us, right.total_us));
        otrn_exe_free(other);
    }
    otrn_exe_free(exe);
    arena_fini(&arena);
}

// --- calls to the host ---------------------------------------------------------------------------------------

static int twice(void *arg, const otrn_host_call *call) {
    bool fits = call->num_args == 1 && call->num_results == 1 && call->arg_bytes[0] == 16 && call->result_bytes[0] == 16;
    for (int i = 0; fits && i < 4; i++)
        ((float *)call->results[0])[i] = 2 * ((const float *)call->args[0])[i];
    ++*(int *)arg;
    if (!fits)
        snprintf(call->why, call->why_bytes, "not these sizes");
    return !fits;
}

static const char *calling(Arena *a, const char *name, int n) {
    return arena_printf(a,
                        "func.func public @main(%%a: tensor<%dxf32>) -> tensor<%dxf32> {\n"
                        "  %%t = stablehlo.create_token : !stablehlo.token\n"
                        "  %%0:2 = stablehlo.custom_call @opentrn_host_callback(%%t, %%a) {backend_config = \"%s\"} : "
                        "(!stablehlo.token, tensor<%dxf32>) -> (!stablehlo.token, tensor<%dxf32>)\n"
                        "  return %%0#1 : tensor<%dxf32>\n}\n",
                        n, n, name, n, n, n);
}

// Compiles and runs; the error's text, "" when there is none.
static const char *run_text(otrn_env *env, const char *text, size_t size, float *out) {
    static otrn_error err = OTRN_ERROR_INIT;
    float x[8] = {1, 2, 3, 4};
    otrn_exe *exe = NULL;
    err = (otrn_error)OTRN_ERROR_INIT;
    otrn_status s = otrn_compile(env, text, size, "t", &exe, &err);
    if (!s)
        s = run_sized(exe, (const void *const[]){x}, (void *const[]){out}, &err);
    otrn_exe_free(exe);
    return s ? err.text : "";
}

static void test_host(otrn_env *env) {
    Ctx ctx = {0};
    Arena arena;
    arena_init(&arena, &ctx);
    size_t four[] = {16};
    char name[OTRN_HOST_NAME], other[OTRN_HOST_NAME];
    int calls = 0;
    float out[8] = {0};
    otrn_error err = OTRN_ERROR_INIT;
    otrn_exe *exe = NULL;
    expect(!otrn_host_add(env, twice, &calls, four, 1, four, 1, name, &err) &&
               !otrn_host_add(env, twice, &calls, four, 1, four, 1, other, &err) && strlen(name) == 32 && strcmp(name, other),
           "every function has a name of its own", name);
    const char *text = calling(&arena, name, 4);
    expect(!otrn_compile(env, text, strlen(text), "t", &exe, &err) && !otrn_exe_check_host(exe, &err), "a program is loaded", err.text);
    float x[4] = {1, 2, 3, 4};
    expect(!run_sized(exe, (const void *const[]){x}, (void *const[]){out}, &err) && out[3] == 8 && calls == 1, "it calls", err.text);
    const struct {
        const char *what, *text, *why;
    } wrong[] = {{"a number by hand", calling(&arena, "1", 4), "this process has none of that name"},
                 {"a name that nobody gave", calling(&arena, "00112233445566778899aabbccddeeff", 4), "none of that name"},
                 {"no name", calling(&arena, "", 4), "has no kernel"},
                 {"another program", arena_printf(&arena, "%sfunc.func private @other() { return }\n", text), "belongs to another program"},
                 {"other sizes", calling(&arena, other, 8), "operand 0 has 32 bytes where it has 16"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char label[80];
        snprintf(label, sizeof label, "%s is refused", wrong[i].what);
        const char *why = run_text(env, wrong[i].text, strlen(wrong[i].text), out);
        expect(strstr(why, wrong[i].why) != NULL, label, why);
    }
    // As stored by this process: it loads here, and where nobody has the function it can be looked at but not run.
    size_t size;
    const void *bytes = otrn_exe_bytes(exe, &size);
    const char *why = run_text(env, bytes, size, out);
    expect(!*why && calls == 2, "its artifact calls here", why);
    otrn_env *elsewhere;
    otrn_option options[] = {{"threads", "1"}, {"cache", "off"}};
    otrn_report report = OTRN_REPORT_INIT;
    otrn_exe *there = NULL;
    otrn_open(options, 2, &elsewhere, &err);
    why = run_text(elsewhere, bytes, size, out);
    expect(strstr(why, "none of that name") && calls == 2, "its artifact does not run where the function is not", why);
    expect(!otrn_compile(elsewhere, bytes, size, "t", &there, &err) && !otrn_time(there, NULL, &report, &err) && report.total_us > 0,
           "but it can be priced there", err.text);
    otrn_exe_free(there);
    otrn_close(elsewhere);
    expect(!otrn_host_drop(env, name), "a function stays while a program has it", "gone");
    expect(!run_sized(exe, (const void *const[]){x}, (void *const[]){out}, &err) && calls == 3, "and can be called", err.text);
    why = run_text(env, text, strlen(text), out);
    expect(strstr(why, "none of that name") != NULL, "but by no new program", why);
    otrn_exe_free(exe);
    expect(otrn_host_drop(env, name) && otrn_host_drop(env, other), "then it is gone", "it is not");
    arena_fini(&arena);
}

int main(void) {
    otrn_env *env;
    otrn_option options[] = {{"threads", "1"}, {"cache", "off"}};
    otrn_error err = OTRN_ERROR_INIT;
    if (otrn_open(options, 2, &env, &err)) {
        printf("FAIL open: %s\n", err.text);
        return 1;
    }
    test_target(env);
    test_changed_target(env);
    test_host(env);
    otrn_close(env);
    return failures != 0;
}
