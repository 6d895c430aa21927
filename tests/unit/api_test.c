// SPDX-License-Identifier: Apache-2.0
// api_test.c — include/otrn.h as a careless caller uses it: NULLs, wrong counts and sizes, structs of an older header, handles
// in the wrong order; and what it tells about a program.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "otrn.h"
#include "tests/unit/unit.h"

static const char program[] =
    "func.func @main(%x: tensor<2x3xf32> {jax.arg_info = \"batch['x']\"}, %w: tensor<3x2xf32> loc(\"w\"), %none: tensor<0x2xf32>)\n"
    "    -> (tensor<2x2xf32> {jax.result_info = \"y\"}, tensor<2x2xf32>) {\n"
    "  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]\n"
    "      : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>\n"
    "  %t = stablehlo.tanh %y : tensor<2x2xf32>\n"
    "  return %t, %y : tensor<2x2xf32>, tensor<2x2xf32>\n"
    "}\n";

static otrn_env *env;
static otrn_exe *exe;
static float x[6] = {1, 2, 3, 4, 5, 6}, w[6] = {0.1f, -0.1f, 0.2f, -0.2f, 0.3f, -0.3f}, y[4], t[4];

// The call failed as it should, with this in its text.
static void refused(const char *name, otrn_status s, otrn_status want, const otrn_error *err, const char *text) {
    char why[1200];
    snprintf(why, sizeof why, "status %s, \"%.1024s\"", otrn_status_name(s), err->text);
    expect(s == want && err->code == want && strstr(err->text, text), name, why);
}

static void test_open(void) {
    otrn_error err = OTRN_ERROR_INIT;
    otrn_env *e = NULL;
    const otrn_option half = {"target", NULL}, wrong = {"targett", "trn1"}, unknown = {"target", "trn9"};
    refused("open without out", otrn_open(NULL, 0, NULL, &err), OTRN_ARGUMENT, &err, "out is NULL");
    refused("open without options", otrn_open(NULL, 2, &e, &err), OTRN_ARGUMENT, &err, "options is NULL");
    refused("an option without value", otrn_open(&half, 1, &e, &err), OTRN_ARGUMENT, &err, "option 0");
    refused("an unknown option", otrn_open(&wrong, 1, &e, &err), OTRN_USAGE, &err, "targett");
    refused("an unknown target", otrn_open(&unknown, 1, &e, &err), OTRN_CHIP, &err, "trn9");
    expect(!e && otrn_open(&unknown, 1, &e, NULL) == OTRN_CHIP, "errors may be left out", "");
    expect(otrn_abi() == OTRN_ABI && !strcmp(otrn_version(), OTRN_RELEASE), "version", otrn_version());
}

static void test_compile(void) {
    otrn_error err = OTRN_ERROR_INIT;
    otrn_exe *e;
    refused("compile without env", otrn_compile(NULL, program, 1, "p", &e, &err), OTRN_ARGUMENT, &err, "env is NULL");
    refused("compile without bytes", otrn_compile(env, NULL, 1, "p", &e, &err), OTRN_ARGUMENT, &err, "the program is NULL");
    refused("compile without out", otrn_compile(env, program, 1, "p", NULL, &err), OTRN_ARGUMENT, &err, "out is NULL");
    refused("compile_for without types", otrn_compile_for(env, program, 1, "p", NULL, NULL, 2, &e, &err), OTRN_ARGUMENT, &err,
            "types is NULL");
    refused("compile_file without path", otrn_compile_file(env, NULL, &e, &err), OTRN_ARGUMENT, &err, "is NULL");
    refused("compile_file of nothing", otrn_compile_file(env, "/nonexistent/a.mlir", &e, &err), OTRN_IO, &err, "");
    expect(!e && otrn_compile(env, program, strlen(program), NULL, &e, &err) == OTRN_OK, "a program without a name", err.text);
    otrn_exe_free(e);
}

static void test_execute(void) {
    otrn_error err = OTRN_ERROR_INIT;
    const otrn_buffer good[] = {{x, sizeof x}, {w, sizeof w}, {NULL, 0}}, out[] = {{t, sizeof t}, {y, sizeof y}};
    const otrn_buffer small[] = {{x, sizeof x}, {w, sizeof w - 4}, {NULL, 0}}, large[] = {{t, sizeof t + 4}, {y, sizeof y}};
    const otrn_buffer none[] = {{NULL, sizeof x}, {w, sizeof w}, {NULL, 0}}, lost[] = {{t, sizeof t}, {NULL, sizeof y}};
    refused("execute without exe", otrn_execute(NULL, good, 3, out, 2, &err), OTRN_ARGUMENT, &err, "exe is NULL");
    refused("no arguments", otrn_execute(exe, NULL, 3, out, 2, &err), OTRN_ARGUMENT, &err, "the arguments are NULL");
    refused("no results", otrn_execute(exe, good, 3, NULL, 2, &err), OTRN_ARGUMENT, &err, "the results are NULL");
    refused("an argument too few", otrn_execute(exe, good, 2, out, 2, &err), OTRN_ARGUMENT, &err, "3 arguments, 2 were given");
    refused("a result too few", otrn_execute(exe, good, 3, out, 1, &err), OTRN_ARGUMENT, &err, "2 results, 1 were given");
    refused("a small argument", otrn_execute(exe, small, 3, out, 2, &err), OTRN_ARGUMENT, &err, "has 24 bytes, its memory 20");
    refused("a large result", otrn_execute(exe, good, 3, large, 2, &err), OTRN_ARGUMENT, &err, "result 0 (y) has 16 bytes");
    refused("NULL for an argument", otrn_execute(exe, none, 3, out, 2, &err), OTRN_ARGUMENT, &err,
            "argument 0 (batch['x']) is NULL");
    refused("NULL for a result", otrn_execute(exe, good, 3, lost, 2, &err), OTRN_ARGUMENT, &err, "result 1 is NULL");
    const otrn_buffer *rows[] = {good, small}, *outs[] = {out, out};
    refused("many without arguments", otrn_execute_many(exe, 2, 1, NULL, 3, outs, 2, &err), OTRN_ARGUMENT, &err, "args is NULL");
    refused("many, one of them wrong", otrn_execute_many(exe, 2, 1, rows, 3, outs, 2, &err), OTRN_ARGUMENT, &err, "device 1: ");
    rows[1] = NULL;
    refused("many, one of them NULL", otrn_execute_many(exe, 2, 1, rows, 3, outs, 2, &err), OTRN_ARGUMENT, &err,
            "device 1: the arguments are NULL");
    expect(otrn_execute(exe, good, 3, out, 2, &err) == OTRN_OK && fabsf(t[0] - tanhf(1.4f)) < 1e-5f, "a good call", err.text);
}

// c = a + b in the memory of a, d = a b.
static const char in_place[] = "func.func public @main(%a: tensor<8xf32> {tf.aliasing_output = 0 : i32} loc(\"state\"), %b: tensor<8xf32> loc(\"step\")) -> (tensor<8xf32>, tensor<8xf32>) {\n"
                               "  %c = stablehlo.add %a, %b : tensor<8xf32>\n  %d = stablehlo.multiply %a, %b : tensor<8xf32>\n"
                               "  return %c, %d : tensor<8xf32>, tensor<8xf32>\n}\n";

static otrn_status run_at(otrn_exe *e, float *a, float *b, float *c, float *d, otrn_error *err) {
    const size_t bytes = 8 * sizeof(float);
    return otrn_execute(e, (otrn_buffer[]){{a, bytes}, {b, bytes}}, 2, (otrn_buffer[]){{c, bytes}, {d, bytes}}, 2, err);
}

static void test_overlap(void) {
    otrn_error err = OTRN_ERROR_INIT;
    otrn_exe *e = NULL;
    float m[64];
    for (int i = 0; i < 64; i++)
        m[i] = (float)i;
    if (otrn_compile(env, in_place, strlen(in_place), "place.mlir", &e, &err) != OTRN_OK) {
        expect(false, "a program that works in place", err.text);
        return;
    }
    refused("a result on a part of its argument", run_at(e, m, m + 8, m + 4, m + 16, &err), OTRN_ARGUMENT, &err,
            "result 0 overlaps that of argument 0 (state), which it takes over");
    refused("… the other way round", run_at(e, m + 4, m + 16, m, m + 24, &err), OTRN_ARGUMENT, &err, "result 0 overlaps that of argument 0 (state)");
    refused("a result on another argument", run_at(e, m, m + 8, m + 16, m + 8, &err), OTRN_ARGUMENT, &err,
            "result 1 overlaps that of argument 1 (step); only");
    refused("a result on another result", run_at(e, m, m + 8, m + 16, m + 23, &err), OTRN_ARGUMENT, &err, "overlaps that of result");
    refused("what is taken over is read elsewhere", run_at(e, m, m + 4, m, m + 16, &err), OTRN_ARGUMENT, &err,
            "result 0 overlaps that of argument 1 (step)");
    const size_t bytes = 8 * sizeof(float);
    const otrn_buffer args[] = {{m, bytes}, {m + 8, bytes}}, outs[2][2] = {{{m + 16, bytes}, {m + 24, bytes}}, {{m + 32, bytes}, {m + 28, bytes}}};
    refused("results of two devices", otrn_execute_many(e, 2, 1, (const otrn_buffer *[]){args, args}, 2, (const otrn_buffer *[]){outs[0], outs[1]}, 2, &err),
            OTRN_ARGUMENT, &err, "overlaps that of result");
    expect(m[4] == 4 && m[16] == 16, "nothing was written", "");
    expect(run_at(e, m, m + 4, m + 16, m + 24, &err) == OTRN_OK && m[16] == 4 && m[24] == 0, "arguments may overlap", err.text);
    expect(run_at(e, m, m, m + 16, m + 24, &err) == OTRN_OK && m[17] == 2 && m[26] == 4, "… and be one", err.text);
    expect(run_at(e, m, m + 8, m, m + 16, &err) == OTRN_OK && m[1] == 10 && m[17] == 9, "in place", err.text);
    otrn_exe_free(e);
}

static void test_queries(void) {
    expect(!strcmp(otrn_exe_arg_name(exe, 0), "batch['x']") && !strcmp(otrn_exe_arg_name(exe, 1), "w") && !*otrn_exe_arg_name(exe, 2) &&
               !strcmp(otrn_exe_result_name(exe, 0), "y"),
           "names", "");
    expect(!otrn_exe_arg_type(exe, 3) && !otrn_exe_result_type(exe, 9) && !otrn_exe_arg_type(NULL, 0), "types that are not there", "");
    expect(!*otrn_exe_arg_name(exe, 3) && !*otrn_exe_result_name(NULL, 0) && !*otrn_exe_arg_sharding(exe, 7), "texts likewise", "");
    expect(otrn_exe_result_alias(exe, 5) == -1 && !otrn_exe_arg_donated(exe, 5) && !otrn_exe_arg_pinned(NULL, 5), "numbers likewise", "");
    expect(otrn_exe_num_args(NULL) == 0 && otrn_exe_partitions(NULL) == 1 && !otrn_exe_calls_host(NULL) && !*otrn_exe_name(NULL) &&
               !otrn_exe_bytes(NULL, NULL) && !otrn_hbm_bytes(NULL) && !*otrn_target(NULL) && !otrn_exe_cached(NULL),
           "nothing is asked of NULL", "");
    otrn_exe_free(NULL), otrn_close(NULL), otrn_profile_free(NULL), otrn_set_log(NULL, NULL, NULL);
}

// Structs of a header that knew fewer fields: the library writes no byte behind them.
static void test_sizes(void) {
    struct {
        union {
            otrn_report report;
            otrn_memory memory;
            otrn_error error;
        } u;
    } old;
    otrn_error err = OTRN_ERROR_INIT;
    memset(&old, 0x5a, sizeof old);
    old.u.report.struct_size = offsetof(otrn_report, flops);
    bool ok = otrn_time(exe, "trn1", &old.u.report, &err) == OTRN_OK && old.u.report.total_us > 0;
    unsigned char *behind = (unsigned char *)&old.u.report.flops;
    expect(ok && behind[0] == 0x5a && behind[sizeof(double)] == 0x5a && old.u.report.struct_size == offsetof(otrn_report, flops),
           "a smaller report", err.text);
    memset(&old, 0x5a, sizeof old);
    old.u.memory.struct_size = offsetof(otrn_memory, peak_bytes);
    ok = otrn_exe_memory(exe, &old.u.memory, &err) == OTRN_OK && old.u.memory.arg_bytes == sizeof x + sizeof w;
    expect(ok && *(unsigned char *)&old.u.memory.peak_bytes == 0x5a, "a smaller memory", err.text);
    memset(&old, 0x5a, sizeof old);
    old.u.error.struct_size = offsetof(otrn_error, hint);
    ok = otrn_execute(exe, NULL, 0, NULL, 0, &old.u.error) == OTRN_ARGUMENT && strstr(old.u.error.text, "3 arguments");
    expect(ok && old.u.error.hint[0] == 0x5a, "a smaller error", old.u.error.text);
    char text[256];
    otrn_error_print(&old.u.error, text, sizeof text);
    expect(strstr(text, "error[ARGUMENT]: the program has 3") && !strstr(text, "hint"), "which is printed", text);
    otrn_report unset = {0};
    refused("a report without its size", otrn_time(exe, "trn1", &unset, &err), OTRN_ARGUMENT, &err, "sizeof(otrn_report)");
    refused("no report", otrn_time(exe, "trn1", NULL, &err), OTRN_ARGUMENT, &err, "otrn_report to fill is NULL");
    refused("no memory", otrn_exe_memory(exe, NULL, &err), OTRN_ARGUMENT, &err, "otrn_memory to fill is NULL");
    otrn_error zero = {0};
    ok = otrn_time(NULL, NULL, NULL, &zero) == OTRN_ARGUMENT && zero.code == OTRN_OK;
    otrn_error_print(&zero, text, sizeof text);
    expect(ok && strstr(text, "OTRN_ERROR_INIT"), "an error without its size", text);
}

static void test_profile(const char *folder) {
    otrn_error err = OTRN_ERROR_INIT;
    otrn_profile *p = NULL;
    refused("profile of nothing", otrn_profile_make(NULL, NULL, &p, &err), OTRN_ARGUMENT, &err, "exe is NULL");
    refused("profile without out", otrn_profile_make(exe, NULL, NULL, &err), OTRN_ARGUMENT, &err, "out is NULL");
    refused("profile on no chip", otrn_profile_make(exe, "trn7", &p, &err), OTRN_CHIP, &err, "trn7");
    expect(!p && otrn_profile_make(exe, "trn1", &p, &err) == OTRN_OK, "profile", err.text);
    otrn_report quick = OTRN_REPORT_INIT, report = OTRN_REPORT_INIT;
    bool ok = otrn_time(exe, "trn1", &quick, &err) == OTRN_OK && otrn_profile_report(p, &report, &err) == OTRN_OK;
    expect(ok && !memcmp(&quick, &report, sizeof report), "both ways give the same numbers", err.text);
    double flops = 0, bytes = 0, before = INFINITY;
    bool sorted = true, product = false;
    for (size_t i = 0; i < otrn_profile_num_lines(p); i++) {
        otrn_line l = OTRN_LINE_INIT;
        ok = ok && otrn_profile_line(p, i, &l, &err) == OTRN_OK;
        flops += l.flops, bytes += l.hbm_bytes;
        sorted = sorted && l.busy_us <= before && l.busy_us == l.engine_us[l.engine];
        product = product || (l.line == 3 && l.flops > 0 && strstr(l.file, "tiny"));
        before = l.busy_us;
    }
    expect(ok && sorted && product && flops == report.flops && bytes == report.hbm_bytes, "its lines add up", err.text);
    otrn_line line = OTRN_LINE_INIT;
    refused("a line too far", otrn_profile_line(p, 99, &line, &err), OTRN_ARGUMENT, &err, "number 99");
    otrn_roof roof = OTRN_ROOF_INIT;
    ok = otrn_profile_roof(p, &roof, &err) == OTRN_OK && roof.compute_us > 0 && roof.memory_us > 0 && roof.ridge > 0;
    expect(ok && fabs(roof.achieved_flops - report.flops / report.total_us * 1e6) < 1e-6 * roof.achieved_flops, "roof", err.text);
    refused("trace to nowhere", otrn_profile_trace(p, "/nonexistent/t.json", &err), OTRN_IO, &err, "");
    refused("trace to NULL", otrn_profile_trace(p, NULL, &err), OTRN_ARGUMENT, &err, "path is NULL");
    char path[300];
    struct stat st;
    snprintf(path, sizeof path, "%s/trace.json", folder);
    expect(otrn_profile_trace(p, path, &err) == OTRN_OK && !stat(path, &st) && st.st_size > 200, "trace", err.text);
    unlink(path);
    otrn_profile_free(p);
}

static char logged[1000];
static void keep_log(void *arg, const char *text) {
    ++*(int *)arg;
    snprintf(logged, sizeof logged, "%s", text);
}

// Handles freed in any order, and what the library says on the way.
static void test_lives(void) {
    otrn_error err = OTRN_ERROR_INIT;
    const otrn_option options[] = {{"threads", "1"}, {"cache", "off"}, {"verbose", "1"}, {"host-profile", "on"}};
    otrn_env *e;
    otrn_exe *p;
    otrn_profile *profile;
    int calls = 0;
    bool ok = otrn_open(options, 4, &e, &err) == OTRN_OK;
    otrn_set_log(e, keep_log, &calls);
    ok = ok && otrn_compile(e, program, strlen(program), "tiny", &p, &err) == OTRN_OK;
    expect(ok && calls == 1 && strstr(logged, "cache off") && strchr(logged, '\n'), "the log gets what verbose tells", logged);
    ok = ok && otrn_profile_make(p, NULL, &profile, &err) == OTRN_OK;
    otrn_close(e);
    const otrn_buffer args[] = {{x, sizeof x}, {w, sizeof w}, {NULL, 0}}, out[] = {{t, sizeof t}, {y, sizeof y}};
    ok = ok && otrn_execute(p, args, 3, out, 2, &err) == OTRN_OK;
    expect(ok && calls == 2 && strlen(logged) > 40, "a program outlives the caller's environment", err.text);
    otrn_exe_free(p);
    otrn_line line = OTRN_LINE_INIT;
    ok = ok && otrn_profile_line(profile, 0, &line, &err) == OTRN_OK;
    expect(ok && strstr(line.file, "tiny"), "a profile outlives the caller's program", line.file);
    otrn_profile_free(profile);
}

int main(void) {
    char folder[] = "/tmp/otrn_api_XXXXXX";
    otrn_error err = OTRN_ERROR_INIT;
    const otrn_option options[] = {{"threads", "1"}, {"cache", "off"}};
    if (!mkdtemp(folder) || otrn_open(options, 2, &env, &err) != OTRN_OK ||
        otrn_compile(env, program, strlen(program), "tiny.mlir", &exe, &err) != OTRN_OK) {
        printf("FAIL open: %s\n", err.text);
        return 1;
    }
    test_open();
    test_compile();
    test_execute();
    test_overlap();
    test_queries();
    test_sizes();
    test_profile(folder);
    test_lives();
    otrn_exe_free(exe);
    otrn_close(env);
    rmdir(folder);
    return failures != 0;
}
