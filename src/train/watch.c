// SPDX-License-Identifier: Apache-2.0
// watch.c — what a run tells while it runs: a line on the terminal, JSON lines, TensorBoard, Prometheus.
//
// The modelled step comes from the clock, behind the first step.
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/now.h"
#include "base/pb.h"
#include "net/net.h"
#include "rt/status.h"
#include "train/train.h"

#define FADE 0.05        // share of the newest step in means
#define LINE_SECONDS 0.1 // between changes of the terminal's line
#define PROM_SECONDS 1.0
#define QUIET_LINES 10   // of a whole run, in a log
#define SPIKE_AFTER 20   // steps before a spike can be told
#define SPIKE_TIMES 8.0  // deviations

static void line_end(Watch *w) {
    if (w->line)
        fprintf(stderr, "\r\033[K");
    w->line = false;
}

static void say(Train *t, const char *fmt, va_list ap) {
    line_end(&t->watch);
    if (t->ranks.rank)
        fprintf(stderr, "otrn: process %u: ", t->ranks.rank);
    else
        fprintf(stderr, "otrn: ");
    vfprintf(stderr, fmt, ap);
    size_t n = strlen(fmt);
    fprintf(stderr, n && fmt[n - 1] == '\n' ? "" : "\n");
}

void watch_say(Train *t, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    if (!t->ranks.rank) // process 0 tells it
        say(t, fmt, ap);
    va_end(ap);
}

void watch_say_here(Train *t, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    say(t, fmt, ap);
    va_end(ap);
}

// --- TensorBoard -----------------------------------------------------------------------------------
// Records of a length, its checksum, an Event (protobuf), its checksum.

static uint32_t masked(const void *p, size_t n) {
    uint32_t c = crc32c(0, p, n);
    return (c >> 15 | c << 17) + 0xa282ead8u;
}

static void record(FILE *out, const Buf *event) {
    uint8_t head[12], tail[4];
    le_store64(head, event->n), le_store32(head + 8, masked(head, 8)), le_store32(tail, masked(event->at, event->n));
    fwrite(head, 1, 12, out), fwrite(event->at, 1, event->n, out), fwrite(tail, 1, 4, out);
    fflush(out);
}

static void bits64(Buf *b, double v) {
    uint64_t u;
    memcpy(&u, &v, 8);
    put_u64(b, u);
}

static Buf event_begin(Arena *a) {
    Buf e = {.arena = a};
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    put_u8(&e, 0x09), bits64(&e, (double)now.tv_sec + 1e-9 * (double)now.tv_nsec); // wall_time
    return e;
}

static void value(Arena *a, Buf *summary, const char *tag, double v) {
    Buf one = {.arena = a};
    float f = (float)v;
    uint32_t u;
    memcpy(&u, &f, 4);
    pb_put_bytes(&one, 1, tag, strlen(tag));
    put_u8(&one, 0x15), put_u32(&one, u);
    pb_put_bytes(summary, 1, one.at, one.n);
}

static void board_step(Train *t, const StepNote *n) {
    Arena a;
    arena_init(&a, t->ctx);
    Buf e = event_begin(&a), summary = {.arena = &a};
    pb_put_int(&e, 2, n->step);
    value(&a, &summary, "loss", n->loss), value(&a, &summary, "gradient_norm", n->norm), value(&a, &summary, "learning_rate", n->rate);
    value(&a, &summary, "step_seconds", n->seconds);
    pb_put_bytes(&e, 5, summary.at, summary.n);
    record(t->watch.board, &e);
    arena_fini(&a);
}

static void board_open(Train *t) {
    const char *folder = t->opt.tensorboard;
    if (!*folder)
        return;
    dir_make(t->ctx, folder);
    char host[64] = "host";
    gethostname(host, sizeof host - 1);
    const char *path = arena_printf(t->arena, "%s/events.out.tfevents.%lld.%s.%d", folder, (long long)time(NULL), host, (int)getpid());
    t->watch.board = fopen(path, "wb");
    if (!t->watch.board)
        ctx_fail(t->ctx, OTRN_IO, (Place){.file = path}, "cannot write it: %s", strerror(errno));
    Buf e = event_begin(t->arena);
    pb_put_bytes(&e, 3, "brain.Event:2", 13);
    record(t->watch.board, &e);
}

// --- numbers ---------------------------------------------------------------------------------------

// What is told of collectives that take more of the step than was said, or than a quarter; NULL where they do not.
static const char *comm_note(Train *t, const otrn_report *r) {
    double most = t->opt.max_comm, per = 100 / r->total_us;
    if (most < 0)
        return *r->comm_note ? arena_strndup(t->arena, r->comm_note, strlen(r->comm_note)) : NULL;
    if (r->comm_us <= most * r->total_us)
        return NULL;
    Buf b = {.arena = t->arena};
    buf_printf(&b, "collectives take %.1f %% of the step, %.1f %% are not hidden", r->comm_us * per, r->exposed_comm_us * per);
    for (uint32_t i = 0; i < r->num_collectives && i < OTRN_COLLECTIVES; i++) {
        const otrn_collective *c = &r->collectives[i];
        buf_printf(&b, "%s%s over %u devices", i ? ", " : ": ", c->kind, c->ranks);
        if (c->line)
            buf_printf(&b, " at %s:%u", c->file, c->line);
        buf_printf(&b, " (%.1f %%)", c->busy_us * per);
    }
    return buf_cstr(&b);
}

static void comm_tell(Train *t, const otrn_report *r) {
    Watch *w = &t->watch;
    w->comm_note = comm_note(t, r);
    if (!w->comm_note)
        return;
    watch_say(t, "warning: %s", w->comm_note);
    if (w->log)
        fprintf(w->log, "{\"event\": \"comm\", \"step\": %lld, \"share\": %.4g, \"exposed_share\": %.4g}\n", (long long)t->at, r->comm_us / r->total_us,
                r->exposed_comm_us / r->total_us);
}

static void price_read(Train *t) {
    Watch *w = &t->watch;
    otrn_report r = OTRN_REPORT_INIT;
    if (w->priced_us != 0 || otrn_time(t->exe, NULL, &r, NULL) != OTRN_OK || r.total_us <= 0)
        return;
    w->priced_us = r.total_us, w->comm_share = r.exposed_comm_us / r.total_us;
    w->basis = arena_strndup(t->arena, r.price_basis, strlen(r.price_basis));
    w->usd_per_hour = r.usd_per_hour * (double)(r.devices > 1 ? 1 : t->ranks.devices);
    for (int i = 0; i < OTRN_ENGINES; i++)
        w->engines[i] = r.busy_us[i] / r.total_us;
    comm_tell(t, &r);
}

static void status_tell(Train *t, const StepNote *n) { // for otrn top
    StatusPage *p = rt_status(t->env);
    if (!p)
        return;
    p->rank = t->ranks.rank, p->world = t->ranks.world;
    p->step = n->step, p->steps = t->recipe.steps, p->loss = n->loss;
    p->modelled_us = t->watch.priced_us;
    for (int i = 0; i < OTRN_ENGINES; i++)
        p->engines[i] = t->watch.engines[i];
}

bool watch_dollars(const Train *t, double *out) {
    *out = (double)t->at * t->watch.priced_us * 1e-6 * t->watch.usd_per_hour / 3600;
    return t->watch.priced_us > 0 && t->watch.usd_per_hour > 0;
}

static double pace(const Watch *w) { return w->pace > 0 ? (double)w->samples / w->pace : 0; }

static void log_step(Train *t, const StepNote *n) {
    const Watch *w = &t->watch;
    double cost;
    char usd[32] = "null"; // no price is published
    if (watch_dollars(t, &cost))
        snprintf(usd, sizeof usd, "%.6g", cost);
    fprintf(w->log, "{\"step\": %lld, \"loss\": %.9g, \"gradient_norm\": %.9g, \"lr\": %.9g, \"seconds\": %.6f, \"%s_per_second\": %.6g, "
            "\"modelled_us\": %.6g, \"comm_share\": %.4g, \"usd\": %s}\n", (long long)n->step, n->loss, n->norm, n->rate, n->seconds, w->unit,
            n->seconds > 0 ? (double)w->samples / n->seconds : 0, w->priced_us, w->comm_share, usd);
    fflush(w->log);
}

static void prom_print(Train *t, const StepNote *n, Arena *a) {
    Buf b = {.arena = a};
    double usd;
    bool known = watch_dollars(t, &usd);
    const struct {
        const char *name, *kind, *help;
        double value;
    } rows[] = {
        {"step", "counter", "steps done", (double)n->step},
        {"steps", "gauge", "steps of the whole run", (double)t->recipe.steps},
        {"loss", "gauge", "of the last step", n->loss},
        {"gradient_norm", "gauge", "of all gradients together", n->norm},
        {"learning_rate", "gauge", "of the last step", n->rate},
        {"step_seconds", "gauge", "that the last step took on this host", n->seconds},
        {"samples_per_second", "gauge", "tokens or images, on this host", pace(&t->watch)},
        {"modelled_step_seconds", "gauge", "that a step takes on the chip", t->watch.priced_us * 1e-6},
        {"modelled_communication_share", "gauge", "of the modelled step, not hidden behind work", t->watch.comm_share},
        {"checkpoint_step", "gauge", "last step on disk", (double)saver_saved(&t->saver)},
        {"dollars", "counter", "that the steps so far cost on the chip", usd}, // the last: left out where no price is published
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows - !known; i++)
        buf_printf(&b, "# HELP otrn_train_%s %s\n# TYPE otrn_train_%s %s\notrn_train_%s %.9g\n", rows[i].name, rows[i].help, rows[i].name,
                   rows[i].kind, rows[i].name, rows[i].value);
    file_write(t->ctx, t->watch.prometheus, b.at, b.n);
}

// Where it could be written when the run began and cannot now, that is told and the run goes on without.
static void prom_write(Train *t, const StepNote *n) {
    Arena a;
    jmp_buf jb, *outer = t->ctx->on_fail;
    volatile bool good = false;
    arena_init(&a, t->ctx);
    if (CTX_TRY(t->ctx, jb)) {
        prom_print(t, n, &a);
        good = true;
    }
    t->ctx->on_fail = outer;
    arena_fini(&a);
    if (good)
        return;
    if (!n->step)
        longjmp(*outer, 1);
    watch_say(t, "warning: %s: %s; no more numbers for Prometheus", t->watch.prometheus, t->ctx->err.text);
    t->watch.prometheus = "";
}

static void duration(double s, char *out, size_t bytes) {
    if (s < 100)
        snprintf(out, bytes, "%.0f s", s);
    else if (s < 6000)
        snprintf(out, bytes, "%.0f min", s / 60);
    else
        snprintf(out, bytes, "%.1f h", s / 3600);
}

static void text_of(const Train *t, const StepNote *n, char *out, size_t bytes) {
    const Watch *w = &t->watch;
    char left[32], model[96] = "";
    duration((double)(w->steps - n->step) * w->pace, left, sizeof left);
    if (w->priced_us > 0)
        snprintf(model, sizeof model, ", modelled step %.3g ms", w->priced_us * 1e-3);
    if (t->ranks.devices > 1 && w->priced_us > 0)
        snprintf(model + strlen(model), sizeof model - strlen(model), " (%.0f %% communication)", 100 * w->comm_share);
    size_t used = strlen(model);
    double usd;
    if (watch_dollars(t, &usd))
        snprintf(model + used, sizeof model - used, ", %.2g USD", usd);
    snprintf(out, bytes, "step %lld of %lld, loss %.4f, %.0f %s/s, %s left%s", (long long)n->step, (long long)w->steps, n->loss, pace(w), w->unit,
             left, model);
}

static void tell(Train *t, const StepNote *n) {
    Watch *w = &t->watch;
    char text[256];
    double now = now_seconds();
    int64_t part = w->steps > QUIET_LINES ? w->steps / QUIET_LINES : 1;
    bool quiet = !w->terminal && !t->opt.silent && (n->step == w->first + 1 || n->step % part == 0 || n->step == w->steps);
    if (!quiet && !(w->terminal && (now - w->told > LINE_SECONDS || n->step == w->steps)))
        return;
    w->told = now;
    text_of(t, n, text, sizeof text);
    if (quiet)
        fprintf(stderr, "otrn: %s\n", text);
    else
        fprintf(stderr, "\r%s\033[K", text), w->line = true;
    fflush(stderr);
}

static void spike_find(Train *t, const StepNote *n) {
    Watch *w = &t->watch;
    double off = n->loss - w->mean;
    if (n->step - w->first > SPIKE_AFTER && off > SPIKE_TIMES * sqrt(w->spread) && off > 0.2 * fabs(w->mean)) {
        w->spikes++;
        watch_say(t, "warning: the loss jumped to %.4f in step %lld, from about %.4f before; its gradients had a norm of %.3g", n->loss,
                  (long long)n->step, w->mean, n->norm);
        if (w->log)
            fprintf(w->log, "{\"event\": \"spike\", \"step\": %lld, \"loss\": %.9g, \"before\": %.9g}\n", (long long)n->step, n->loss, w->mean);
    }
    bool first = n->step == w->first + 1;
    w->mean = first ? n->loss : w->mean + FADE * off;
    w->spread = first ? 0 : (1 - FADE) * (w->spread + FADE * off * off);
}

#define SLOW_STEPS 3 // in a row, before it is told

static const char *host_of(const Train *t, uint32_t rank) { return t->ranks.net ? net_process(t->ranks.net, rank)->host : "this host"; }

static void slow_tell(Train *t, const StepWord *words, uint32_t who, double others) {
    uint32_t longest = 0; // who waits longest knows where
    for (uint32_t i = 0; i < t->ranks.world; i++)
        longest = i != who && (longest == who || words[i].waited > words[longest].waited) ? i : longest;
    const char *at = words[longest].at;
    watch_say(t, "warning: process %u of %u (%s) is slow: %.3g s of step %lld were its own work, %.3g s the others', who wait for it%s%s", who,
              t->ranks.world, host_of(t, who), words[who].own, (long long)t->at, others, *at ? " in " : "", at);
    if (t->watch.log)
        fprintf(t->watch.log, "{\"event\": \"slow\", \"step\": %lld, \"rank\": %u, \"seconds\": %.6f, \"others\": %.6f}\n", (long long)t->at, who,
                words[who].own, others);
}

static void stall_tell(Train *t, const StepWord *w, uint32_t who) {
    watch_say(t, "warning: process %u of %u (%s) waits for its inputs: %.3g of the %.3g s of step %lld, for %s", who, t->ranks.world, host_of(t, who),
              w->fed, w->own, (long long)t->at, t->data.name);
    if (t->watch.log)
        fprintf(t->watch.log, "{\"event\": \"stall\", \"step\": %lld, \"rank\": %u, \"seconds\": %.6f}\n", (long long)t->at, who, w->fed);
}

void watch_ranks(Train *t, const StepWord *words) {
    Watch *w = &t->watch;
    uint32_t who;
    double others;
    if (t->ranks.rank || t->opt.silent || t->at <= w->first + 1) // a first step is like no other
        return;
    bool slow = ranks_slow(words, t->ranks.world, &who, &others);
    w->slow_steps = slow && (who == w->slow || !w->slow_steps) ? w->slow_steps + 1 : slow;
    w->slow = who;
    if (w->slow_steps == SLOW_STEPS)
        slow_tell(t, words, who, others);
    for (uint32_t i = 0; i < t->ranks.world; i++) {
        bool stalls = ranks_stalled(&words[i]);
        if (stalls && !w->stalled[i])
            stall_tell(t, &words[i], i);
        w->stalled[i] |= stalls;
    }
}

// --- the run ---------------------------------------------------------------------------------------

void watch_begin(Train *t) {
    Watch *w = &t->watch;
    const Model *m = &t->recipe.model;
    bool tokens = m->kind == MODEL_GPT || m->kind == MODEL_BERT;
    w->terminal = t->opt.terminal, w->prometheus = t->opt.prometheus, w->steps = t->recipe.steps;
    w->unit = tokens ? "tokens" : m->kind == MODEL_STEP ? "steps" : "images", w->samples = tokens ? m->batch * m->seq : m->kind == MODEL_STEP ? 1 : m->batch;
    w->begun = now_seconds(), w->first = t->at, w->stalled = ARENA_NEWN(t->arena, bool, t->ranks.world);
    if (*t->opt.log && !(w->log = fopen(t->opt.log, t->from ? "a" : "w")))
        ctx_fail(t->ctx, OTRN_IO, (Place){.file = t->opt.log}, "cannot write the log: %s", strerror(errno));
    if (w->log)
        fprintf(w->log, "{\"event\": \"%s\", \"step\": %lld, \"model\": \"%s\", \"cached\": %s, \"start_ms\": %.3f}\n", t->from ? "resume" : "begin",
                (long long)t->at, model_names[m->kind], otrn_exe_cached(t->exe) ? "true" : "false", t->start_ms);
    board_open(t);
    if (*w->prometheus)
        prom_write(t, &(StepNote){0}); // an address that is wrong is told now
    if (t->from && !t->opt.silent)
        watch_say(t, "going on from step %lld (%s)", (long long)t->at, t->from->path);
}

void watch_step(Train *t, const StepNote *n) {
    Watch *w = &t->watch;
    w->pace = w->pace > 0 ? w->pace + FADE * (n->seconds - w->pace) : n->seconds;
    if (!t->opt.silent)
        price_read(t);
    VEC_PUSH(t->arena, &w->notes, *n);
    status_tell(t, n);
    spike_find(t, n);
    if (w->log)
        log_step(t, n);
    if (w->board)
        board_step(t, n);
    if (*w->prometheus && now_seconds() - w->written > PROM_SECONDS)
        prom_write(t, n), w->written = now_seconds();
    tell(t, n);
}

void watch_saved(Train *t) {
    Watch *w = &t->watch;
    if (*w->prometheus && w->notes.n)
        prom_write(t, &w->notes.at[w->notes.n - 1]);
}

void watch_end(Train *t) {
    Watch *w = &t->watch;
    line_end(w);
    if (w->log)
        fclose(w->log);
    if (w->board)
        fclose(w->board);
    w->log = w->board = NULL;
}
