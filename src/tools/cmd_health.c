// SPDX-License-Identifier: Apache-2.0
// cmd_health.c — otrn health: are the hosts of a job fit to train on, and the network between them?
//
// It is started as the job will be, by any launcher: otrn launch, torchrun, srun, mpirun; each process is one of the job's.
// Process 0 prints; all end with the same status: 0 fit, 3 something is behind the others, 1 it could not be measured.
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "rt/job.h"
#include "tools/health.h"
#include "tools/prof.h"
#include "tools/tools.h"

#define JOIN_MS 120000
#define BEHIND 3     // exit status
#define ROWS_MAX 120 // pairs in the table

typedef struct Alone { // a store for one
    char key[8][64], value[8][400];
    int n;
} Alone;

static bool alone_put(void *arg, const char *key, const char *value, char *why, size_t why_bytes) {
    Alone *s = arg;
    (void)why, (void)why_bytes;
    snprintf(s->key[s->n], sizeof *s->key, "%s", key);
    snprintf(s->value[s->n++], sizeof *s->value, "%s", value);
    return true;
}

static bool alone_get(void *arg, const char *key, unsigned timeout_ms, char *value, size_t bytes, char *why, size_t why_bytes) {
    Alone *s = arg;
    (void)timeout_ms;
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->key[i], key)) {
            snprintf(value, bytes, "%s", s->value[i]);
            return true;
        }
    snprintf(why, why_bytes, "no %s", key);
    return false;
}

static void print_hosts(const Health *h) {
    printf("%-8s %-16s %8s %6s %10s %10s %14s  %s\n", "process", "host", "pid", "cores", "GFLOP/s", "copy GB/s", "clock ms", "kernel");
    for (uint32_t i = 0; i < h->n; i++) {
        const HealthHost *m = &h->hosts[i];
        printf("%-8u %-16s %8ld %6u %10.3g %10.3g %8.2f ±%-4.2f  %s\n", i, m->host, m->pid, m->cores, m->gflops, m->gb_s, m->skew_ms,
               m->skew_error_ms, m->kernel);
    }
}

static void print_pairs(const Health *h) {
    uint32_t rows = 0, all = h->n * (h->n - 1) / 2;
    if (!all)
        return;
    printf("\n%-6s %-6s %12s %12s %10s %10s %12s  %s\n", "from", "to", "latency us", "worst us", "GB/s", "and back", "sent again", "through");
    for (uint32_t i = 0; i < h->n; i++)
        for (uint32_t j = i + 1; j < h->n && rows < ROWS_MAX; j++, rows++) {
            const HealthPair *p = &h->pairs[i * h->n + j], *back = &h->pairs[j * h->n + i];
            printf("%-6u %-6u %12.1f %12.1f %10.3g %10.3g %10.2g %%  %s\n", i, j, p->latency_us, p->worst_us, p->gb_s, back->gb_s,
                   50 * (p->again + back->again), p->way);
        }
    if (rows < all)
        printf("… and %u more; --json has all\n", all - rows);
    printf("\n%-12s %12s %12s\n", "all-reduce", "us", "bus GB/s");
    for (int s = 0; s < HEALTH_SIZES; s++)
        printf("%-12zu %12.1f %12.3g\n", h->bytes[s], h->sum_us[s],
               1e-3 * (double)h->bytes[s] / h->sum_us[s] * 2 * (h->n - 1) / h->n);
}

static void print_text(const Health *h) {
    printf("health of %u process%s, opentrn %s\n\n", h->n, h->n > 1 ? "es" : "", OTRN_RELEASE);
    print_hosts(h);
    print_pairs(h);
    printf("\n");
    for (size_t i = 0; i < h->findings.n; i++)
        printf("behind: %s\n", h->findings.at[i]);
    printf(h->findings.n ? "%u to look at\n" : "nothing is behind\n", h->findings.n);
}

static void json_field(const char *name, const char *text, const char *behind) {
    printf("\"%s\": \"", name);
    json_text(text);
    printf("\"%s", behind);
}

static void print_json(const Health *h) {
    printf("{\"release\": \"%s\", \"processes\": [", OTRN_RELEASE);
    for (uint32_t i = 0; i < h->n; i++) {
        const HealthHost *m = &h->hosts[i];
        printf("%s\n  {", i ? "," : "");
        json_field("host", m->host, ", ");
        json_field("kernel", m->kernel, ", ");
        printf("\"pid\": %ld, \"cores\": %u, \"gflops\": %.6g, \"copy_gb_s\": %.6g, \"skew_ms\": %.6g, \"skew_error_ms\": %.6g}", m->pid,
               m->cores, m->gflops, m->gb_s, m->skew_ms, m->skew_error_ms);
    }
    printf("],\n \"pairs\": [");
    for (uint32_t i = 0, first = 1; i < h->n; i++)
        for (uint32_t j = 0; j < h->n; j++) {
            const HealthPair *p = &h->pairs[i * h->n + j];
            if (i == j)
                continue;
            printf("%s\n  {\"from\": %u, \"to\": %u, \"latency_us\": %.6g, \"worst_us\": %.6g, \"gb_s\": %.6g, \"sent_again\": %.6g, "
                   "\"through\": \"%s\"}",
                   first ? "" : ",", i, j, p->latency_us, p->worst_us, p->gb_s, p->again, p->way);
            first = 0;
        }
    printf("],\n \"all_reduce\": [");
    for (int s = 0; s < HEALTH_SIZES; s++)
        printf("%s{\"bytes\": %zu, \"us\": %.6g}", s ? ", " : "", h->bytes[s], h->sum_us[s]);
    printf("],\n \"behind\": [");
    for (size_t i = 0; i < h->findings.n; i++) {
        printf(i ? ", \"" : "\"");
        json_text(h->findings.at[i]);
        printf("\"");
    }
    printf("]}\n");
}

static void report(Tool *t, Health *h) {
    const char *picture = t->opt.val[OPT_PICTURE];
    if (opt_on(&t->opt, OPT_JSON))
        print_json(h);
    else
        print_text(h);
    if (!*picture)
        return;
    Buf svg = {.arena = t->arena};
    health_picture(h, &svg);
    file_write(t->ctx, picture, svg.at, svg.n);
}

static int measure(Tool *t, Net *net, char *why, size_t why_bytes) {
    Health h;
    int32_t status = 0;
    if (!health_measure(t->arena, net, &h, why, why_bytes))
        return -1;
    if (!net_me(net)) {
        health_judge(t->arena, &h, (uint32_t)opt_num(&t->opt, OPT_SLOWER));
        status = h.findings.n ? BEHIND : 0;
        report(t, &h);
    }
    return health_tell(net, &status, why, why_bytes) ? status : -1;
}

int cmd_health(Tool *t) {
    Job job;
    Alone alone = {.n = 0};
    NetRoot *root = NULL;
    Net *net = NULL;
    char why[NET_WHY_BYTES] = "";
    int status = -1;
    bool many = job_find(t->ctx, &t->opt, &job), ok = true;
    NetSelf self = {.process = job.rank, .processes = job.world, .devices = 1, .release = OTRN_RELEASE, .chip = "health",
                    .secret = many ? job.secret : "alone", .fabric = t->opt.val[OPT_FABRIC], .timeout_ms = JOIN_MS};
    job_limits(&t->opt, &self);
    if (opt_num(&t->opt, OPT_SLOWER) > 99)
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "--slower: at most 99 percent");
    if (many)
        ok = net_root_open(job.root, job.secret, job.rank == 0, JOIN_MS, &root, why, sizeof why);
    NetKv kv = many && ok ? net_root_kv(root) : (NetKv){.arg = &alone, .put = alone_put, .get = alone_get};
    if (ok && net_open(&self, &kv, &net, why, sizeof why))
        status = measure(t, net, why, sizeof why);
    net_close(net);
    net_root_close(root);
    if (status < 0)
        ctx_fail(t->ctx, OTRN_CHECK, NO_PLACE, "health: process %u of %u: %s", job.rank, job.world, why);
    return status;
}
