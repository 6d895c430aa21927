// SPDX-License-Identifier: Apache-2.0
// probe.h — what a core can do right now: fused multiply-adds in the widest vectors there are.
//
// Machines share cores and change clocks, so only ratios mean anything: the probe runs right beside every
// sample. One thread is timed by its own CPU time, so that other programs on the machine do not count;
// several by the clock on the wall.
#ifndef OTRN_BENCH_PROBE_H
#define OTRN_BENCH_PROBE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/probe.h"

#define SAMPLES_MAX 1000

static clockid_t bench_clock = CLOCK_THREAD_CPUTIME_ID;

static double now_s(void) {
    struct timespec t;
    clock_gettime(bench_clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// Flop per second of one core now in vectors of that level, 0 when there is no vector probe for it.
static double probe_rate(HostLevel level) {
    double start = now_s(), flop = probe_run(level);
    return flop / (now_s() - start);
}

// --- statistics ----------------------------------------------------------------------------------

typedef struct Samples {
    double rate[SAMPLES_MAX], probe[SAMPLES_MAX]; // flop per second, each with the probe beside it
    int n;
} Samples;

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void samples_add(Samples *s, double flop, double seconds, double probe) {
    s->rate[s->n] = flop / seconds;
    s->probe[s->n++] = probe;
}

static double quantile(double *x, int n, int tenth) {
    qsort(x, (size_t)n, sizeof(double), by_value);
    return x[n * tenth / 10];
}

static double samples_best(Samples *s) { // the rate a tenth of the samples reach
    return quantile(s->rate, s->n, 9);
}

static double samples_share(Samples *s) { // of the probe, best decile by best decile
    double probe = quantile(s->probe, s->n, 9);
    return probe > 0 ? samples_best(s) / probe : 0;
}

static void samples_print(Samples *s, const char *name) {
    double best = samples_best(s);
    printf("%-28s %6.1f  median %6.1f GFLOP/s, %5.3f of the probe\n", name, best * 1e-9,
           quantile(s->rate, s->n, 5) * 1e-9, samples_share(s));
}

static void bar_print(const char *name, double got, double wanted) {
    printf("bar: %-56s %5.3f, wanted %.2f: %s\n", name, got, wanted, got >= wanted ? "met" : "MISSED");
}

#endif
