// SPDX-License-Identifier: Apache-2.0
// run_program.c — compile a small StableHLO program, run it on the chip, ask for modelled time.
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

int main(void) {
    otrn_error err;
    otrn_env *env;
    otrn_exe *exe;
    otrn_option target = {"target", "trn2"}; // as --target=trn2 on the command line
    if (otrn_open(&target, 1, &env, &err) != OTRN_OK)
        return fail(&err);
    if (otrn_compile(env, program, strlen(program), "tiny", &exe, &err) != OTRN_OK)
        return fail(&err);

    const float x[6] = {1, 2, 3, 4, 5, 6}, w[6] = {0.1f, -0.1f, 0.2f, -0.2f, 0.3f, -0.3f};
    float y[4];
    if (otrn_execute(exe, (const void *[]){x, w}, (void *[]){y}, &err) != OTRN_OK)
        return fail(&err);
    printf("tanh(x w) = [[%.4f %.4f] [%.4f %.4f]]\n", y[0], y[1], y[2], y[3]);

    const char *targets[] = {"trn1", "trn2", "trn3"};
    for (int i = 0; i < 3; i++) {
        otrn_report report;
        if (otrn_time(exe, targets[i], &report, &err) != OTRN_OK)
            return fail(&err);
        printf("modelled time on %s: %.2f us\n", report.target, report.total_us);
    }
    otrn_exe_free(exe);
    otrn_close(env);
    return 0;
}
