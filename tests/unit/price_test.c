// SPDX-License-Identifier: Apache-2.0
// price_test.c — what a report says of devices, dollars and loops, through the public interface.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "otrn.h"
#include "tests/unit/run_sized.h"
#include "unit.h"

static const char until[] = // doubles x until it is 1000, a product each time
    "func.func public @main(%x: tensor<f32>, %w: tensor<64x64xf32>) -> (tensor<f32>, tensor<64x64xf32>) {\n"
    "  %r:2 = stablehlo.while(%a = %x, %b = %w) : tensor<f32>, tensor<64x64xf32>\n"
    "   cond {\n"
    "    %limit = stablehlo.constant dense<1.0e3> : tensor<f32>\n"
    "    %p = stablehlo.compare LT, %a, %limit, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
    "    stablehlo.return %p : tensor<i1>\n"
    "  } do {\n"
    "    %two = stablehlo.constant dense<2.0> : tensor<f32>\n"
    "    %n = stablehlo.multiply %a, %two : tensor<f32>\n"
    "    %m = stablehlo.dot_general %b, %b, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>\n"
    "    stablehlo.return %n, %m : tensor<f32>, tensor<64x64xf32>\n"
    "  }\n"
    "  return %r#0, %r#1 : tensor<f32>, tensor<64x64xf32>\n"
    "}\n";

static const char sums[] = // on eight devices
    "module attributes {mhlo.num_partitions = 8 : i32} {\n"
    "  sdy.mesh @mesh = <[\"x\"=8]>\n"
    "  func.func public @main(%a: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}, {}]>}) -> tensor<64x64xf32> {\n"
    "    %0 = stablehlo.dot_general %a, %a, contracting_dims = [0] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>\n"
    "    return %0 : tensor<64x64xf32>\n"
    "  }\n"
    "}\n";

static otrn_error err = OTRN_ERROR_INIT;

static otrn_exe *make(const otrn_option *options, size_t n, const char *text, otrn_env **env) {
    otrn_exe *exe = NULL;
    if (otrn_open(options, n, env, &err) || otrn_compile(*env, text, strlen(text), "test", &exe, &err))
        printf("FAIL compile: %s\n", err.text), failures++;
    return exe;
}

static void drop(otrn_env *env, otrn_exe *exe) {
    otrn_exe_free(exe);
    otrn_close(env);
}

static double run_until(otrn_exe *exe, float x) {
    static float w[64 * 64], y;
    float z[64 * 64];
    const void *args[] = {&x, w};
    void *results[] = {&y, z};
    return run_sized(exe, args, results, &err) ? -1 : y;
}

static void test_loops(void) {
    const otrn_option options[] = {{"cache", "off"}, {"threads", "1"}};
    otrn_env *env;
    otrn_exe *exe = make(options, 2, until, &env);
    otrn_report once = OTRN_REPORT_INIT, ten = once, three = once, other = once;
    bool ok = !otrn_time(exe, NULL, &once, &err) && once.unknown_loops == 1 && !once.counted_loops && !once.assumed_trips;
    result("a loop nobody counted", ok ? NULL : "it is not told");
    ok = run_until(exe, 1) == 1024 && !otrn_time(exe, NULL, &ten, &err) && !ten.unknown_loops && ten.counted_loops == 1;
    ok = ok && ten.total_us > 5 * once.total_us && fabs(ten.flops - 10 * once.flops) < 1;
    result("ten iterations are ten", ok ? NULL : "the time is not theirs");
    ok = !otrn_time(exe, "trn1", &other, &err) && other.counted_loops == 1 && fabs(other.flops - ten.flops) < 1;
    result("and on another chip", ok ? NULL : "they are lost");
    ok = run_until(exe, 200) == 1600 && !otrn_time(exe, NULL, &three, &err) && fabs(three.flops - 3 * once.flops) < 1;
    result("the last run counts", ok ? NULL : "it does not");
    ok = run_until(exe, 5000) == 5000 && !otrn_time(exe, NULL, &three, &err) && three.flops == 0 && three.counted_loops == 1;
    result("no iteration is none", ok ? NULL : "it is one");
    drop(env, exe);

    const otrn_option trips[] = {{"cache", "off"}, {"threads", "1"}, {"trips", "10"}};
    exe = make(trips, 3, until, &env);
    ok = !otrn_time(exe, NULL, &other, &err) && other.total_us == ten.total_us && other.unknown_loops == 1 &&
         other.assumed_trips == 10;
    result("ten assumed are as long", ok ? NULL : "they are not");
    drop(env, exe);
}

static void test_dollars(void) {
    const struct {
        const char *instance, *lnc, *price;
        uint32_t cores, machines;
        double usd;
        const char *basis;
    } cases[] = {
        {"trn1.32xlarge", "1", "", 1, 1, 21.5 * 8 / 32, "on demand, us-east-1, 2026-07"},
        {"trn1.2xlarge", "1", "", 1, 4, 1.34375 * 8 / 2, "on demand, us-east-1, 2026-07"},
        {"trn2.48xlarge", "1", "", 1, 1, 85.964 * 8 / 128, "on demand, us-east-1, 2025-06"},
        {"trn2.48xlarge", "2", "", 2, 1, 85.964 * 16 / 128, "on demand, us-east-1, 2025-06"},
        {"trn2.48xlarge", "1", "32", 1, 1, 32.0 * 8 / 128, "yours: --price"},
        {"trn3-gen1-ultraserver", "1", "", 1, 1, 0, "no price is published; --price=USD/h, of the instance, gives one"},
        {"", "1", "", 1, 1, 2.235, "Capacity Block, 2026"}, // trn2.3xlarge has eight cores
        {"", "2", "", 2, 1, 85.964 * 16 / 128, "on demand, us-east-1, 2025-06"}, // and sixteen need a larger one
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const otrn_option options[] = {{"cache", "off"},  {"threads", "1"}, {"instance", cases[i].instance},
                                       {"lnc", cases[i].lnc}, {"price", cases[i].price}};
        otrn_env *env;
        otrn_exe *exe = make(options, 5, sums, &env);
        otrn_report r = OTRN_REPORT_INIT;
        char name[128];
        snprintf(name, sizeof name, "8 devices on %s, LNC %s %s", cases[i].instance, cases[i].lnc, cases[i].price);
        const char *why = NULL;
        if (otrn_time(exe, NULL, &r, &err))
            why = err.text;
        else if (r.devices != 8 || r.cores_per_device != cases[i].cores || r.machines != cases[i].machines)
            why = "devices or machines";
        else if (fabs(r.usd_per_hour - cases[i].usd) > 1e-9 * r.usd_per_hour)
            why = "dollars";
        else if (strcmp(r.price_basis, cases[i].basis) || (*cases[i].instance && strcmp(r.instance, cases[i].instance)))
            why = r.price_basis;
        else if (fabs(r.utilisation - r.flops * 8 / (r.total_us * 1e-6) / r.flops_peak) > 1e-12)
            why = "utilisation";
        result(name, why);
        drop(env, exe);
    }
}

int main(void) {
    test_loops();
    test_dollars();
    return failures != 0;
}
