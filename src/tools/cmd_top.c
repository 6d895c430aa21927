// SPDX-License-Identifier: Apache-2.0
// cmd_top.c — otrn top: processes of this user on this host that run programs, live on a terminal.
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/now.h"
#include "rt/status.h"
#include "tools/tools.h"

#define PERIOD_MS 1000

typedef struct Before { // to tell a rate
    StatusPages pages;
    double at;
} Before;

static const StatusPage *same(const StatusPages *in, const StatusPage *p) {
    for (uint32_t i = 0; i < in->n; i++)
        if (in->at[i].pid == p->pid && in->at[i].opened == p->opened)
            return &in->at[i];
    return NULL;
}

typedef struct Rate {
    double runs, busy; // a second
} Rate;

static Rate rate_of(const StatusPage *p, const Before *b, double now) {
    const StatusPage *was = same(&b->pages, p);
    double seconds = was ? now - b->at : (double)time(NULL) - p->opened;
    if (seconds <= 0)
        return (Rate){0};
    return (Rate){(double)(p->runs - (was ? was->runs : 0)) / seconds, (p->busy_seconds - (was ? was->busy_seconds : 0)) / seconds};
}

static const char *engines_text(Arena *a, const StatusPage *p) { // the three busiest
    bool told[OTRN_ENGINES] = {false};
    Buf b = {.arena = a};
    for (int k = 0; k < 3; k++) {
        int best = -1;
        for (int i = 0; i < OTRN_ENGINES; i++)
            if (!told[i] && p->engines[i] >= 0.005 && (best < 0 || p->engines[i] > p->engines[best]))
                best = i;
        if (best < 0)
            break;
        told[best] = true;
        buf_printf(&b, "%s%s %.0f %%", k ? ", " : "", otrn_engine_name(best), 100 * p->engines[best]);
    }
    return b.n ? buf_cstr(&b) : "-";
}

static const char *hbm_text(Arena *a, const StatusPage *p) {
    static const char *const units[] = {"B", "kB", "MB", "GB"};
    double used = (double)p->hbm_bytes;
    int unit = 0;
    for (; unit < 3 && used >= 999.5; unit++)
        used /= 1000;
    return arena_printf(a, "%.3g %s of %.3g GB", used, units[unit], (double)p->hbm_capacity * 1e-9);
}

// A line, and of it only what a terminal shows in one.
static void line_print(const Buf *line, size_t columns) {
    size_t n = 0, shown = 0;
    for (; n < line->n && (!columns || shown < columns || (line->at[n] & 0xc0) == 0x80); n++) // bytes that go on a character take no column
        shown += (line->at[n] & 0xc0) != 0x80;
    printf("%.*s\n", (int)n, (const char *)line->at);
}

static size_t columns_of(int fd) { // 0: any
    struct winsize size = {0};
    return isatty(fd) && !ioctl(fd, TIOCGWINSZ, &size) ? size.ws_col : 0;
}

static void table_print(Arena *a, const StatusPages *pages, const Before *before, double now) {
    size_t columns = columns_of(1);
    Buf head = {.arena = a};
    char host[64] = "this host";
    gethostname(host, sizeof host - 1);
    printf("%s: %u process%s\n", host, pages->n, pages->n == 1 ? "" : "es");
    if (pages->n)
        buf_printf(&head, "%8s %7s %4s %18s %15s %10s %8s %5s  %-36s %-14s %s", "pid", "rank", "dev", "HBM", "step", "loss", "runs/s", "busy", "modelled engines",
                   "program", "command"), line_print(&head, columns);
    for (uint32_t i = 0; i < pages->n; i++) {
        const StatusPage *p = &pages->at[i];
        Rate r = rate_of(p, before, now);
        const char *rank = p->world > 1 ? arena_printf(a, "%u/%u", p->rank, p->world) : "-";
        const char *step = p->steps ? arena_printf(a, "%lld of %lld", (long long)p->step, (long long)p->steps) : "-";
        const char *loss = p->steps ? arena_printf(a, "%.4f", p->loss) : "-";
        Buf line = {.arena = a};
        buf_printf(&line, "%8lld %7s %4u %18s %15s %10s %8.3g %4.0f%%  %-36s %-14.14s %.60s", (long long)p->pid, rank, p->devices, hbm_text(a, p), step, loss,
                   r.runs, 100 * r.busy, engines_text(a, p), p->program, p->command);
        line_print(&line, columns);
    }
}

static void json_print(Arena *a, const StatusPages *pages, const Before *before, double now) {
    char host[64] = "";
    gethostname(host, sizeof host - 1);
    Buf b = {.arena = a};
    buf_puts(&b, "{\"host\": "), json_put(&b, host), buf_puts(&b, ", \"processes\": [");
    for (uint32_t i = 0; i < pages->n; i++) {
        const StatusPage *p = &pages->at[i];
        Rate r = rate_of(p, before, now);
        buf_printf(&b, "%s\n {\"pid\": %lld, \"rank\": %u, \"world\": %u, \"devices\": %u, \"hbm_bytes\": %llu, \"hbm_capacity\": %llu, \"runs\": %llu, "
                   "\"runs_per_second\": %.6g, \"busy\": %.4g, ", i ? "," : "", (long long)p->pid, p->rank, p->world, p->devices,
                   (unsigned long long)p->hbm_bytes, (unsigned long long)p->hbm_capacity, (unsigned long long)p->runs, r.runs, r.busy);
        if (p->steps)
            buf_printf(&b, "\"step\": %lld, \"steps\": %lld, \"loss\": %.9g, \"modelled_us\": %.6g, ", (long long)p->step, (long long)p->steps, p->loss,
                       p->modelled_us);
        buf_puts(&b, "\"engines\": {");
        for (int k = 0, n = 0; k < OTRN_ENGINES; k++)
            if (p->engines[k] > 0)
                buf_printf(&b, "%s\"%s\": %.4g", n++ ? ", " : "", otrn_engine_name(k), p->engines[k]);
        buf_puts(&b, "}, \"program\": "), json_put(&b, p->program), buf_puts(&b, ", \"command\": "), json_put(&b, p->command), buf_puts(&b, "}");
    }
    printf("%s]}\n", buf_cstr(&b));
}

int cmd_top(Tool *t) {
    Before before = {0};
    bool json = opt_on(&t->opt, OPT_JSON), once = json || opt_on(&t->opt, OPT_ONCE) || !isatty(1);
    Arena rounds[2]; // pages of the round before are asked for in the next
    arena_init(&rounds[0], t->ctx), arena_init(&rounds[1], t->ctx);
    for (int k = 0;; k = !k) {
        StatusPages pages = {0};
        double now = now_seconds();
        arena_reset(&rounds[k]);
        status_list(&rounds[k], &t->opt, &pages);
        if (!once)
            printf("\033[H\033[J");
        (json ? json_print : table_print)(&rounds[k], &pages, &before, now);
        fflush(stdout);
        if (once)
            break;
        before = (Before){pages, now};
        nanosleep(&(struct timespec){.tv_sec = PERIOD_MS / 1000, .tv_nsec = PERIOD_MS % 1000 * 1000000L}, NULL);
    }
    arena_fini(&rounds[0]), arena_fini(&rounds[1]);
    return 0;
}
