// SPDX-License-Identifier: Apache-2.0
#include "chip/profile.h"

#include <time.h>

#include "base/probe.h"

#define PROBES 50

double profile_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void profile_add(ChipProfile *p, int kind, uint32_t instructions, double since) {
    p->count[kind] += instructions;
    p->seconds[kind] += profile_now() - since;
}

static double best_rate(HostLevel level) { // of one core: others may be at it too
    double best = 0;
    for (int i = 0; i < PROBES; i++) {
        double begin = profile_now(), rate = probe_run(level);
        rate /= profile_now() - begin;
        best = rate > best ? rate : best;
    }
    return best;
}

static const char *kind_name(int kind) {
    return kind == PROFILE_JOINED ? "joined runs" : kind == PROFILE_WAITING ? "waiting" : isa_rows[kind].name;
}

void profile_print(const ChipProfile *p, HostLevel level, int threads, FILE *out) {
    double total = 0;
    for (int i = 0; i < PROFILE_KINDS; i++)
        total += p->seconds[i];
    fprintf(out, "host: %.3f s on %d thread%s\n", total, threads, threads == 1 ? "" : "s");
    bool done[PROFILE_KINDS] = {0};
    for (;;) { // the longest first
        int most = -1;
        for (int i = 0; i < PROFILE_KINDS; i++)
            if (!done[i] && (p->count[i] || p->seconds[i] > 0) && (most < 0 || p->seconds[i] > p->seconds[most]))
                most = i;
        if (most < 0)
            break;
        done[most] = true;
        fprintf(out, "host: %-18s %9llu %9.3f s %5.1f%%", kind_name(most),
                (unsigned long long)p->count[most], p->seconds[most], total > 0 ? 100 * p->seconds[most] / total : 0);
        double probe = most == ISA_MATMUL ? best_rate(level) * threads : 0, rate = p->flop / p->seconds[most];
        if (probe > 0)
            fprintf(out, "  %.1f GFLOP/s, %.2f of the FMA probe", rate * 1e-9, rate / probe);
        fprintf(out, "\n");
    }
}
