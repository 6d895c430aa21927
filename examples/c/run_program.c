// SPDX-License-Identifier: Apache-2.0
// run_program.c — compile a small StableHLO program, run it on the chip, ask for modelled time and where it goes.
//
//   cc run_program.c $(pkg-config --cflags --libs otrn) && ./a.out
#include <otrn.h>
#include <stdio.h>
#include <string.h>

static const char program[] =
    "func.func @main(%x: tensor<2x3xf32>, %w: tensor<3x2xf32>) -> tensor<2x2xf32> {\n"
    "  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]\n"
    "      : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>\n"
    "  %t = stablehlo.tanh %y : tensor<2x2xf32>\n"
    "  return %t : tensor<2x2xf32>\n"
    "}\n";

static int fail(const otrn_error *err) {
    char text[2048];
    otrn_error_print(err, text, sizeof text);
    fprintf(stderr, "%s\n", text);
    return 1;
}

// What the library has to tell beside errors: here that the program was compiled, because of `verbose`.
static void note(void *arg, const char *text) {
    (void)arg;
    printf("note: %.*s\n", (int)strcspn(text, ","), text);
}

// The busiest line of the program and how far the run is from what the chip allows.
static int explain(otrn_exe *exe, otrn_error *err) {
    otrn_profile *profile;
    otrn_line line = OTRN_LINE_INIT;
    otrn_roof roof = OTRN_ROOF_INIT;
    if (otrn_profile_make(exe, "trn2", &profile, err) != OTRN_OK)
        return 1;
    int failed = otrn_profile_line(profile, 0, &line, err) != OTRN_OK || otrn_profile_roof(profile, &roof, err) != OTRN_OK;
    if (!failed) {
        printf("busiest of %zu lines: %s:%u, %.2f us on %s\n", otrn_profile_num_lines(profile), line.file, line.line,
               line.busy_us, otrn_engine_name(line.engine));
        printf("HBM alone would take %.3f us\n", roof.memory_us);
    }
    otrn_profile_free(profile);
    return failed;
}

int main(void) {
    otrn_error err = OTRN_ERROR_INIT;
    otrn_env *env;
    otrn_exe *exe;
    if (otrn_abi() != OTRN_ABI) {
        fprintf(stderr, "libotrn is release %s, this program was built for %s\n", otrn_version(), OTRN_RELEASE);
        return 1;
    }
    // as --target=trn2 --verbose=1 --cache=off on the command line
    const otrn_option options[] = {{"target", "trn2"}, {"verbose", "1"}, {"cache", "off"}};
    if (otrn_open(options, 3, &env, &err) != OTRN_OK)
        return fail(&err);
    otrn_set_log(env, note, NULL);
    if (otrn_compile(env, program, strlen(program), "tiny", &exe, &err) != OTRN_OK)
        return fail(&err);
    for (size_t i = 0; i < otrn_exe_num_args(exe); i++)
        printf("argument %zu is %s\n", i, otrn_exe_arg_name(exe, i));

    float x[6] = {1, 2, 3, 4, 5, 6}, w[6] = {0.1f, -0.1f, 0.2f, -0.2f, 0.3f, -0.3f};
    float y[4];
    const otrn_buffer args[] = {{x, sizeof x}, {w, sizeof w}}, results[] = {{y, sizeof y}};
    if (otrn_execute(exe, args, 2, results, 1, &err) != OTRN_OK)
        return fail(&err);
    printf("tanh(x w) = [[%.4f %.4f] [%.4f %.4f]]\n", y[0], y[1], y[2], y[3]);

    const char *targets[] = {"trn1", "trn2", "trn3"};
    for (int i = 0; i < 3; i++) {
        otrn_report report = OTRN_REPORT_INIT;
        if (otrn_time(exe, targets[i], &report, &err) != OTRN_OK)
            return fail(&err);
        printf("modelled time on %s: %.2f us\n", report.target, report.total_us);
    }
    if (explain(exe, &err))
        return fail(&err);
    otrn_exe_free(exe);
    otrn_close(env);
    return 0;
}
