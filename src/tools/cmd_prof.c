// SPDX-License-Identifier: Apache-2.0
// cmd_prof.c — otrn prof: what one run would cost on the real chip. Needs no data.
//
// The JSON form is for scripts: keys are only ever added.
#include "tools/tools.h"

#include <string.h>

static double share(const otrn_report *r, int engine) {
    return r->total_us > 0 ? 100.0 * r->busy_us[engine] / r->total_us : 0;
}

static int busiest(const otrn_report *r) {
    int best = 0;
    for (int e = 1; e < OTRN_ENGINES; e++)
        if (r->busy_us[e] > r->busy_us[best])
            best = e;
    return best;
}

// A JSON string's inside; names are ours or the user's.
static void json_text(const char *s) {
    for (; *s; s++)
        if ((unsigned char)*s < 0x20)
            printf("\\u%04x", *s);
        else
            printf(*s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
}

// "dma in" as a key: dma_in.
static void json_key(const char *s) {
    for (; *s; s++)
        putchar(*s == ' ' ? '_' : *s);
}

static void json_print(const otrn_exe *exe, const otrn_report *r) {
    printf("{\n  \"program\": \"");
    json_text(otrn_exe_name(exe));
    printf("\",\n  \"target\": \"");
    json_text(r->target);
    printf("\",\n  \"total_us\": %.3f,\n  \"bottleneck\": \"", r->total_us);
    json_key(otrn_engine_name(busiest(r)));
    printf("\",\n");
    printf("  \"flops\": %.0f,\n  \"hbm_bytes\": %.0f,\n  \"hbm_peak_bytes\": %.0f,\n", r->flops,
           r->hbm_bytes, r->hbm_peak_bytes);
    printf("  \"usd_per_hour\": %.4f,\n  \"unknown_loops\": %llu,\n  \"engines\": {", r->usd_per_hour,
           (unsigned long long)r->unknown_loops);
    for (int e = 0; e < OTRN_ENGINES; e++) {
        printf("%s\n    \"", e ? "," : "");
        json_key(otrn_engine_name(e));
        printf("\": {\"busy_us\": %.3f, \"busy_percent\": %.2f, \"instructions\": %llu}",
               r->busy_us[e], share(r, e), (unsigned long long)r->instructions[e]);
    }
    printf("\n  }\n}\n");
}

static void bottleneck_print(const otrn_report *r) {
    int e = busiest(r);
    if (r->total_us <= 0) {
        printf("nothing to do: the program has no timed instruction\n");
        return;
    }
    const char *why = share(r, e) >= 50 ? "the other engines mostly wait for it"
                                        : "no engine is busy half of the time: waits dominate";
    printf("bottleneck: %s, busy %.0f %% of the time; %s\n", otrn_engine_name(e), share(r, e), why);
}

// "1.536 GFLOP": a number with the SI prefix that leaves one to three digits before the point.
static void scaled_print(double v, const char *unit) {
    static const char prefixes[] = " kMGTPE";
    int p = 0;
    for (; v >= 999.95 && prefixes[p + 1]; p++)
        v /= 1000;
    printf("%.4g %.*s%s", v, p > 0, &prefixes[p], unit);
}

static void amount_print(const char *label, double amount, const char *unit, double seconds,
                         const char *rate) {
    printf("%-14s ", label);
    scaled_print(amount, unit);
    if (seconds > 0 && amount > 0) {
        printf(" (");
        scaled_print(amount / seconds, rate);
        printf(")");
    }
    printf("\n");
}

static void table_print(const otrn_exe *exe, const otrn_report *r) {
    double seconds = r->total_us * 1e-6;
    printf("program        %s\ntarget         %s\n", otrn_exe_name(exe), r->target);
    printf("modelled time  %.2f us\n", r->total_us);
    amount_print("matmul", r->flops, "FLOP", seconds, "FLOP/s");
    amount_print("HBM traffic", r->hbm_bytes, "B", seconds, "B/s");
    amount_print("HBM planned", r->hbm_peak_bytes, "B", 0, "");
    if (r->usd_per_hour > 0)
        printf("cost           %.4g USD per million runs\n", r->usd_per_hour / 3600 * seconds * 1e6);
    printf("\nengine     instructions     busy us  busy %%\n");
    for (int e = 0; e < OTRN_ENGINES; e++)
        printf("%-10s %12llu %11.2f %7.1f\n", otrn_engine_name(e),
               (unsigned long long)r->instructions[e], r->busy_us[e], share(r, e));
    printf("\n");
    bottleneck_print(r);
    if (r->unknown_loops)
        printf("note: %llu loop%s of unknown length counted once\n",
               (unsigned long long)r->unknown_loops, r->unknown_loops == 1 ? "" : "s");
}

int cmd_prof(Tool *t) {
    otrn_exe *exe = tool_exe(t, t->words.at[0]);
    // An artifact is timed for the chip it was compiled for unless another is asked for.
    const char *target = strcmp(t->opt.from[OPT_TARGET], "default") ? t->opt.val[OPT_TARGET] : NULL;
    otrn_report report;
    otrn_error err = {0};
    tool_check(t, otrn_time(exe, target, &report, &err), &err);
    if (*t->opt.val[OPT_TRACE])
        tool_check(t, otrn_trace(exe, target, t->opt.val[OPT_TRACE], &err), &err);
    if (opt_on(&t->opt, OPT_JSON))
        json_print(exe, &report);
    else
        table_print(exe, &report);
    return 0;
}
