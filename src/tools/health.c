// SPDX-License-Identifier: Apache-2.0
// health.c — measures hosts and the connections between them, see health.h.
//
// Everything goes through net, as in training: shared memory inside a host, the network between hosts. Pairs are measured in
// rounds in which each process has one partner, so that no two measurements share a process. Times are the best or the middle
// of several, since a host has other things to do; what is lost on the way shows in the worst ones and in what was sent again.
#define _GNU_SOURCE
#include "tools/health.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/elem.h"
#include "base/now.h"
#include "clock/html.h"

#define PINGS 60
#define LONGS 12
#define COPIES 15
#define LONG_BYTES ((size_t)4 << 20)
#define COPY_BYTES ((size_t)32 << 20)
#define PACKET_BYTES 1448.0
#define LOST_SHARE 1e-3 // of packets
#define SKEW_MS 100.0

typedef struct Probe {
    Arena *a;
    Net *net;
    Health *h;
    NetLaunch launch;
    uint32_t me, n;
    char *why;
    size_t why_bytes;
} Probe;

static double wall_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static int by_value(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static double middle(double *v, size_t n) { // sorts them
    qsort(v, n, sizeof *v, by_value);
    return n ? v[n / 2] : 0;
}

// --- messages ----------------------------------------------------------------------------------------

static bool swap(Probe *p, uint32_t with, const void *out, size_t nout, void *in, size_t nin) {
    NetSeg o = {(void *)out, nout}, i = {in, nin};
    NetMsg om = {.process = with, .nsegs = 1, .segs = &o}, im = {.process = with, .nsegs = 1, .segs = &i};
    NetCall call = {.launch = &p->launch, .op = "health"};
    return net_exchange(p->net, &call, &om, out ? 1 : 0, &im, in ? 1 : 0, p->why, p->why_bytes);
}

// Process 0 takes `bytes` of each, each at its place in `all`, and gives everybody `n` bytes back.
static bool gather(Probe *p, const void *mine, size_t bytes, void *all, void *back, size_t n) {
    if (p->me)
        return swap(p, 0, mine, bytes, NULL, 0) && swap(p, 0, NULL, 0, back, n);
    memcpy(all, mine, bytes);
    for (uint32_t i = 1; i < p->n; i++)
        if (!swap(p, i, NULL, 0, (char *)all + i * bytes, bytes))
            return false;
    for (uint32_t i = 1; i < p->n; i++)
        if (!swap(p, i, back, n, NULL, 0))
            return false;
    return true;
}

static bool barrier(Probe *p) {
    char byte = 0, all[NET_PROCESSES_MAX];
    return gather(p, &byte, 1, all, &byte, 1);
}

// --- this host ---------------------------------------------------------------------------------------

static double compute_gflops(Arena *a) {
    enum { N = 96, TIMES = 20 };
    float *x = arena_alloc(a, 3 * N * N * sizeof *x), *y = x + N * N, *z = y + N * N;
    double best = INFINITY;
    for (int i = 0; i < 3 * N * N; i++)
        x[i] = (float)(i % 7) * 0.01f;
    for (int t = 0; t < TIMES; t++) {
        double begin = now_seconds();
        for (int i = 0; i < N; i++)
            for (int k = 0; k < N; k++)
                for (int j = 0; j < N; j++)
                    z[i * N + j] += x[i * N + k] * y[k * N + j];
        double took = now_seconds() - begin;
        best = took < best ? took : best;
    }
    volatile float keep = z[N]; // or the compiler leaves it out
    (void)keep;
    return 2e-9 * N * N * N / best;
}

static double copy_gb_s(void) {
    char *x = malloc(COPY_BYTES), *y = malloc(COPY_BYTES);
    double best = INFINITY;
    if (x && y)
        memset(x, 1, COPY_BYTES), memset(y, 2, COPY_BYTES);
    for (int t = 0; t < COPIES && x && y; t++) {
        double begin = now_seconds();
        memcpy(t % 2 ? x : y, t % 2 ? y : x, COPY_BYTES);
        double took = now_seconds() - begin;
        best = took < best ? took : best;
    }
    free(x);
    free(y);
    return 2e-9 * (double)COPY_BYTES / best;
}

static bool measure_host(Probe *p, HealthHost *mine) {
    struct utsname u;
    const NetProcess *who = net_process(p->net, p->me);
    *mine = (HealthHost){.cores = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN), .pid = who->pid};
    snprintf(mine->host, sizeof mine->host, "%s", who->host);
    snprintf(mine->kernel, sizeof mine->kernel, "%.63s", uname(&u) ? "?" : u.release);
    for (uint32_t i = 0; i < p->n; i++)
        mine->same_place[i] = !strcmp(net_process(p->net, i)->place, who->place);
    if (!barrier(p))
        return false;
    mine->gflops = compute_gflops(p->a);
    if (!barrier(p))
        return false;
    mine->gb_s = copy_gb_s();
    return true;
}

// --- pairs -------------------------------------------------------------------------------------------

// Who meets whom in a round of n - 1 or n: everybody meets everybody once. n: nobody.
static uint32_t partner(uint32_t me, uint32_t n, uint32_t round) {
    uint32_t even = n + n % 2, odd = even - 1;
    uint32_t other = me == odd ? round * (even / 2) % odd : (round + odd - me) % odd;
    if (other == me)
        other = odd;
    return other < n ? other : n;
}

static bool pings(Probe *p, uint32_t with, HealthPair *pair) {
    double times[PINGS];
    char byte[8] = {0};
    for (int i = 0; i < PINGS; i++) {
        double begin = now_seconds();
        if (!swap(p, with, byte, sizeof byte, byte, sizeof byte))
            return false;
        times[i] = 0.5e6 * (now_seconds() - begin);
    }
    pair->latency_us = middle(times, PINGS);
    pair->worst_us = times[PINGS - 1];
    return true;
}

static bool longs(Probe *p, uint32_t with, char *data, HealthPair *pair) {
    double best = INFINITY;
    char byte;
    for (int i = 0; i < LONGS; i++) {
        double begin = now_seconds();
        if (!swap(p, with, data, LONG_BYTES, NULL, 0) || !swap(p, with, NULL, 0, &byte, 1))
            return false;
        double took = now_seconds() - begin;
        best = took < best ? took : best;
    }
    pair->gb_s = 1e-9 * (double)LONG_BYTES / best;
    return true;
}

static bool answer_pings(Probe *p, uint32_t with) {
    char byte[8] = {0};
    for (int i = 0; i < PINGS; i++)
        if (!swap(p, with, NULL, 0, byte, sizeof byte) || !swap(p, with, byte, sizeof byte, NULL, 0))
            return false;
    return true;
}

static bool answer_longs(Probe *p, uint32_t with, char *data) {
    char byte = 0;
    for (int i = 0; i < LONGS; i++)
        if (!swap(p, with, NULL, 0, data, LONG_BYTES) || !swap(p, with, &byte, 1, NULL, 0))
            return false;
    return true;
}

// The one with the smaller number is first.
static bool measure_pair(Probe *p, uint32_t with, char *data, HealthPair *pair) {
    uint64_t before = net_retransmits(p->net, with);
    snprintf(pair->way, sizeof pair->way, "%s", net_way(p->net, with));
    bool ok = p->me < with ? pings(p, with, pair) && longs(p, with, data, pair) && answer_longs(p, with, data)
                           : answer_pings(p, with) && answer_longs(p, with, data) && longs(p, with, data, pair);
    pair->again = (double)(net_retransmits(p->net, with) - before) / (PINGS + LONGS * (double)LONG_BYTES / PACKET_BYTES);
    return ok;
}

static bool measure_pairs(Probe *p, HealthPair *mine) {
    char *data = calloc(1, LONG_BYTES);
    bool ok = data != NULL;
    for (uint32_t round = 0; round < p->n - 1 + p->n % 2 && ok; round++) {
        uint32_t with = partner(p->me, p->n, round);
        ok = barrier(p);
        if (ok && with != p->n)
            ok = measure_pair(p, with, data, &mine[with]);
    }
    free(data);
    return ok;
}

// --- all together ------------------------------------------------------------------------------------

// Slices to their owners, sums, and back. `work`: bytes and n slices.
static bool all_reduce(Probe *p, float *data, float *work, size_t count) {
    size_t slice = (count + p->n - 1) / p->n;
    NetSeg segs[2][NET_PROCESSES_MAX];
    NetMsg out[NET_PROCESSES_MAX], in[NET_PROCESSES_MAX];
    for (int phase = 0; phase < 2; phase++) {
        uint32_t k = 0;
        for (uint32_t i = 0; i < p->n; i++) {
            if (i == p->me)
                continue;
            size_t begin = i * slice < count ? i * slice : count, end = begin + slice < count ? begin + slice : count;
            size_t my = p->me * slice < count ? p->me * slice : count, mine = my + slice < count ? slice : count - my;
            segs[0][k] = (NetSeg){phase ? data + my : data + begin, sizeof *data * (phase ? mine : end - begin)};
            segs[1][k] = (NetSeg){phase ? data + begin : work + i * slice, sizeof *data * (phase ? end - begin : mine)};
            out[k] = (NetMsg){.process = i, .nsegs = 1, .segs = &segs[0][k]};
            in[k] = (NetMsg){.process = i, .nsegs = 1, .segs = &segs[1][k]};
            k++;
        }
        NetCall call = {.launch = &p->launch, .op = "health"};
        if (!net_exchange(p->net, &call, out, k, in, k, p->why, p->why_bytes))
            return false;
        for (uint32_t i = 0; i < p->n && !phase; i++)
            for (size_t e = 0; e < slice && p->me * slice + e < count && i != p->me; e++)
                data[p->me * slice + e] += work[i * slice + e];
    }
    return true;
}

static bool measure_sums(Probe *p) {
    static const size_t sizes[HEALTH_SIZES] = {4 << 10, 64 << 10, 1 << 20, 16 << 20};
    size_t most = sizes[HEALTH_SIZES - 1] / sizeof(float);
    float *data = calloc(most, sizeof *data), *work = calloc(most + 2 * p->n, sizeof *work);
    bool ok = data && work;
    for (int s = 0; s < HEALTH_SIZES && ok; s++) {
        double times[LONGS];
        for (int t = 0; t < LONGS && ok; t++) {
            ok = barrier(p);
            double begin = now_seconds();
            ok = ok && all_reduce(p, data, work, sizes[s] / sizeof(float));
            times[t] = 1e6 * (now_seconds() - begin);
        }
        p->h->bytes[s] = sizes[s];
        p->h->sum_us[s] = middle(times, LONGS);
    }
    free(data);
    free(work);
    return ok;
}

// Process 0 asks each for its time; the quickest answer tells most.
static bool measure_clocks(Probe *p, HealthHost *hosts) {
    char byte = 0;
    for (uint32_t i = 1; i < p->n; i++) {
        double best = INFINITY;
        for (int t = 0; t < PINGS && (!p->me || p->me == i); t++) {
            double theirs = 0, begin = wall_ms();
            if (p->me) {
                if (!swap(p, 0, NULL, 0, &byte, 1))
                    return false;
                theirs = wall_ms();
                if (!swap(p, 0, &theirs, sizeof theirs, NULL, 0))
                    return false;
                continue;
            }
            if (!swap(p, i, &byte, 1, &theirs, sizeof theirs))
                return false;
            double end = wall_ms();
            if (end - begin < best) {
                best = end - begin;
                hosts[i].skew_ms = theirs - (begin + end) / 2;
                hosts[i].skew_error_ms = best / 2;
            }
        }
    }
    return true;
}

static bool measure(Probe *p) {
    Health *h = p->h;
    HealthHost mine;
    HealthPair *pairs = arena_alloc(p->a, p->n * sizeof *pairs);
    char byte = 0;
    memset(pairs, 0, p->n * sizeof *pairs);
    if (!measure_host(p, &mine) || !gather(p, &mine, sizeof mine, h->hosts, &byte, 1) || !measure_clocks(p, h->hosts) ||
        !measure_pairs(p, pairs) || !gather(p, pairs, p->n * sizeof *pairs, h->pairs, &byte, 1) || !measure_sums(p))
        return false;
    for (uint32_t i = 0; i < p->n && !p->me; i++) // the one with the smaller number has asked
        for (uint32_t j = 0; j < i; j++) {
            HealthPair *back = &h->pairs[i * p->n + j], *pair = &h->pairs[j * p->n + i];
            back->latency_us = pair->latency_us;
            back->worst_us = pair->worst_us;
        }
    return true;
}

static Probe probe_of(Net *net, Health *h, char *why, size_t why_bytes) {
    Probe p = {.net = net, .h = h, .me = net_me(net), .n = net_processes(net), .launch = {.set = 1, .name = "health"}, .why = why,
               .why_bytes = why_bytes};
    for (uint32_t i = 0; i < p.n; i++)
        p.launch.takes_part[i] = true;
    return p;
}

bool health_measure(Arena *a, Net *net, Health *h, char *why, size_t why_bytes) {
    Probe p = probe_of(net, h, why, why_bytes);
    *h = (Health){.n = p.n, .hosts = arena_alloc(a, p.n * sizeof *h->hosts), .pairs = arena_alloc(a, p.n * p.n * sizeof *h->pairs)};
    memset(h->hosts, 0, p.n * sizeof *h->hosts);
    memset(h->pairs, 0, p.n * p.n * sizeof *h->pairs);
    p.a = a;
    if (!net_launch_begin(net, &p.launch, why, why_bytes))
        return false;
    bool ok = measure(&p);
    net_launch_end(net, &p.launch, ok ? NULL : why);
    return ok;
}

bool health_tell(Net *net, int32_t *status, char *why, size_t why_bytes) {
    Probe p = probe_of(net, NULL, why, why_bytes);
    char byte = 0, all[NET_PROCESSES_MAX];
    if (!net_launch_begin(net, &p.launch, why, why_bytes))
        return false;
    bool ok = gather(&p, &byte, 1, all, status, sizeof *status);
    net_launch_end(net, &p.launch, ok ? NULL : why);
    return ok;
}

// --- what is wrong -----------------------------------------------------------------------------------

#define FIND(a, h, ...) VEC_PUSH(a, &(h)->findings, arena_printf(a, __VA_ARGS__))

static const char *name_of(Arena *a, const Health *h, uint32_t i) {
    return arena_printf(a, "process %u (host %s, pid %ld)", i, h->hosts[i].host, h->hosts[i].pid);
}

// The best of a host's processes, which share what it has: products, copies, and what it sends to and receives from another
// host or, where all are on one, any.
static double best_of(const Health *h, uint32_t host, int what, bool far) {
    double best = 0;
    for (uint32_t i = host; i < h->n; i++) {
        if (!h->hosts[host].same_place[i])
            continue;
        best = fmax(best, what == 0 ? h->hosts[i].gflops : what == 1 ? h->hosts[i].gb_s : 0);
        for (uint32_t j = 0; j < h->n && what >= 2; j++)
            if (j != i && (!far || !h->hosts[i].same_place[j]))
                best = fmax(best, h->pairs[what == 2 ? i * h->n + j : j * h->n + i].gb_s);
    }
    return best;
}

static void judge_hosts(Arena *a, Health *h, double limit, bool far, bool *slow) {
    static const char *const names[] = {"computes", "copies", "sends", "receives"};
    for (int k = 0; k < 4; k++) {
        double v[NET_PROCESSES_MAX], sorted[NET_PROCESSES_MAX];
        uint32_t of[NET_PROCESSES_MAX], n = 0; // the first process of each host
        for (uint32_t i = 0; i < h->n; i++) {
            uint32_t first = 0;
            while (!h->hosts[i].same_place[first])
                first++;
            if (first == i)
                of[n] = i, v[n] = sorted[n] = best_of(h, i, k, far), n++;
        }
        double mid = middle(sorted, n);
        for (uint32_t i = 0; i < n; i++) {
            if (v[i] >= limit * mid)
                continue;
            for (uint32_t j = 0; j < h->n && k >= 2; j++)
                slow[j] = slow[j] || h->hosts[of[i]].same_place[j];
            FIND(a, h, "host %s, of process %u, %s %.3g %s, the middle one %.3g", h->hosts[of[i]].host, of[i], names[k], v[i], k ? "GB/s" : "GFLOP/s", mid);
        }
    }
}

// Between hosts: inside one the memory of the host decides, and whoever else uses it.
static void judge_pairs(Arena *a, Health *h, double limit, const bool *slow) {
    double *v = arena_alloc(a, (size_t)h->n * h->n * sizeof *v);
    size_t count = 0;
    for (uint32_t i = 0; i < h->n; i++)
        for (uint32_t j = 0; j < h->n; j++)
            if (!h->hosts[i].same_place[j])
                v[count++] = h->pairs[i * h->n + j].gb_s;
    double mid = middle(v, count);
    for (uint32_t i = 0; i < h->n; i++)
        for (uint32_t j = 0; j < h->n; j++) {
            const HealthPair *p = &h->pairs[i * h->n + j];
            if (h->hosts[i].same_place[j])
                continue;
            if (p->again > LOST_SHARE)
                FIND(a, h, "%s to %s: %.2g %% of packets were sent again, the slowest took %.3g ms", name_of(a, h, i), name_of(a, h, j),
                     100 * p->again, 1e-3 * p->worst_us);
            if (p->gb_s < limit * mid && !slow[i] && !slow[j])
                FIND(a, h, "%s to %s: %.3g GB/s, the middle one %.3g", name_of(a, h, i), name_of(a, h, j), p->gb_s, mid);
        }
}

void health_judge(Arena *a, Health *h, uint32_t slower) {
    double limit = 1 - 0.01 * slower;
    bool slow[NET_PROCESSES_MAX] = {false}, far = false;
    for (uint32_t i = 1; i < h->n; i++)
        far = far || !h->hosts[0].same_place[i];
    judge_hosts(a, h, limit, far, slow);
    judge_pairs(a, h, limit, slow);
    for (uint32_t i = 1; i < h->n; i++)
        if (fabs(h->hosts[i].skew_ms) - h->hosts[i].skew_error_ms > SKEW_MS)
            FIND(a, h, "%s: its clock is %.0f ms %s process 0's", name_of(a, h, i), fabs(h->hosts[i].skew_ms),
                 h->hosts[i].skew_ms > 0 ? "before" : "behind");
}

// --- a picture ---------------------------------------------------------------------------------------

// Bandwidths of all pairs, from red (a tenth of the best) to green.
void health_picture(const Health *h, Buf *svg) {
    enum { CELL = 28, LEFT = 170, TOP = 60 };
    double best = 1e-9;
    for (uint32_t i = 0; i < h->n * h->n; i++)
        best = fmax(best, h->pairs[i].gb_s);
    buf_printf(svg, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" font-family=\"sans-serif\" font-size=\"11\">\n",
               LEFT + CELL * h->n + 20, TOP + CELL * h->n + 20);
    buf_printf(svg, "<text x=\"8\" y=\"20\" font-size=\"14\">GB/s between processes, the best %.3g</text>\n", best);
    for (uint32_t i = 0; i < h->n; i++) {
        buf_printf(svg, "<text x=\"8\" y=\"%u\">%u ", TOP + CELL * i + 18, i);
        html_text(svg, h->hosts[i].host);
        buf_printf(svg, "</text><text x=\"%u\" y=\"%u\">%u</text>\n", LEFT + CELL * i + 8, TOP - 8, i);
        for (uint32_t j = 0; j < h->n; j++) {
            const HealthPair *p = &h->pairs[i * h->n + j];
            double share = i == j ? 0 : fmin(1, fmax(0, 1 + elem_log(fmax(p->gb_s, 1e-9) / best) / elem_log(10)));
            buf_printf(svg, "<rect x=\"%u\" y=\"%u\" width=\"%d\" height=\"%d\" fill=\"hsl(%.0f,65%%,%d%%)\"><title>%u to %u: %.3g GB/s, "
                            "%.3g us</title></rect>\n", LEFT + CELL * j, TOP + CELL * i, CELL - 2, CELL - 2, 120 * share,
                       i == j ? 92 : 55, i, j, p->gb_s, p->latency_us);
        }
    }
    buf_printf(svg, "</svg>\n");
}
