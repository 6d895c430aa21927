// SPDX-License-Identifier: Apache-2.0
// profile.c — where the host's time went, by kind of instruction, as text.
#include "chip/host/profile.h"

#include "base/now.h"
#include "base/probe.h"

#define PROBES 20

void profile_add(ChipProfile *p, int kind, uint32_t instructions, double since) {
    p->count[kind] += instructions;
    p->seconds[kind] += now_seconds() - since;
}

typedef struct Probe {
    HostLevel level;
    _Atomic long flop;
} Probe;

static void probe_task(void *arg, size_t begin, size_t end) {
    Probe *p = arg;
    for (; begin < end; begin++)
        p->flop += (long)probe_run(p->level);
}

// Flop per second of all threads at once: they may share a clock, or a core.
static double best_rate(HostLevel level, Pool *pool) {
    double best = 0;
    for (int i = 0; i < PROBES; i++) {
        Probe p = {.level = level};
        double begin = now_seconds();
        pool_run(pool, 4 * (size_t)pool_threads(pool), 1, probe_task, &p);
        double rate = (double)p.flop / (now_seconds() - begin);
        best = rate > best ? rate : best;
    }
    return best;
}

static const char *kind_name(int kind) {
    return kind == PROFILE_JOINED ? "joined runs" : kind == PROFILE_WAITING ? "waiting" : isa_rows[kind].name;
}

void profile_print(const ChipProfile *p, HostLevel level, Pool *pool, FILE *out) {
    int threads = pool_threads(pool);
    double total = 0, probe = p->flop > 0 ? best_rate(level, pool) : 0;
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
        double rate = p->flop / p->seconds[most];
        if (probe > 0 && most == ISA_MATMUL)
            fprintf(out, "  %.1f GFLOP/s, %.2f of the FMA probe", rate * 1e-9, rate / probe);
        fprintf(out, "\n");
    }
    if (probe > 0)
        fprintf(out, "host: FMA probe on %d thread%s %.1f GFLOP/s: the products of this run in %.3f s, %.2f of its time\n", threads,
                threads == 1 ? "" : "s", probe * 1e-9, p->flop / probe, total > 0 ? p->flop / probe / total : 0);
}
