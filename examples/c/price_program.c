// SPDX-License-Identifier: Apache-2.0
// price_program.c — what a program would cost: time, utilisation and dollars on a machine to rent, without data.
//
//   price_program FILE INSTANCE LNC TOKENS      one row; without arguments a small product on three machines
#include <otrn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char product[] =
    "func.func @main(%x: tensor<512x512xbf16>, %w: tensor<512x512xbf16>) -> tensor<512x512xbf16> {\n"
    "  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]\n"
    "      : (tensor<512x512xbf16>, tensor<512x512xbf16>) -> tensor<512x512xbf16>\n"
    "  return %y : tensor<512x512xbf16>\n"
    "}\n";

static int fail(const otrn_error *err) {
    char text[2048];
    otrn_error_print(err, text, sizeof text);
    fprintf(stderr, "%s\n", text);
    return 1;
}

// file NULL: the product above.
static int price(const char *file, const char *instance, const char *lnc, double tokens) {
    otrn_option options[] = {{"instance", instance}, {"lnc", lnc}};
    otrn_env *env;
    otrn_exe *exe = NULL;
    otrn_error err = OTRN_ERROR_INIT;
    otrn_report r = OTRN_REPORT_INIT;
    if (otrn_open(options, 2, &env, &err) != OTRN_OK)
        return fail(&err);
    otrn_status s = file ? otrn_compile_file(env, file, &exe, &err)
                         : otrn_compile(env, product, strlen(product), "product", &exe, &err);
    if (s == OTRN_OK)
        s = otrn_time(exe, NULL, &r, &err); // of the instance's chip: the program was compiled for it
    if (s == OTRN_OK) {
        printf("%s: %u devices of %u cores on %u x %s, %.9g us, %.9g of the peak", r.target, r.devices, r.cores_per_device,
               r.machines, r.instance, r.total_us, r.utilisation);
        if (tokens > 0)
            printf(", %.9g tokens/s", tokens / r.total_us * 1e6);
        if (r.usd_per_hour > 0)
            printf(", %.9g USD/h, %.9g USD per 1M runs (%s)\n", r.usd_per_hour, r.usd_per_hour * r.total_us / 3600, r.price_basis);
        else
            printf(", cost not known (%s)\n", r.price_basis);
    } else {
        fail(&err);
    }
    otrn_exe_free(exe);
    otrn_close(env);
    return s != OTRN_OK;
}

int main(int argc, char **argv) {
    if (argc == 5)
        return price(argv[1], argv[2], argv[3], atof(argv[4]));
    if (argc > 1) { // never the price of another program than the one named
        fprintf(stderr, "usage: price_program [FILE INSTANCE LNC TOKENS]\n");
        return 2;
    }
    return price(NULL, "trn1.2xlarge", "1", 512) || price(NULL, "trn2.48xlarge", "1", 512) ||
           price(NULL, "trn3-gen1-ultraserver", "1", 512);
}
