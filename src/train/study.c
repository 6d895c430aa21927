// SPDX-License-Identifier: Apache-2.0
// study.c — trains in one precision after the other and compares.
#include "train/study.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/dtype.h"
#include "base/npy.h"
#include "hlo/hlo.h"
#include "read/read.h"

typedef struct Precision {
    const char *name, *cast, *type, *rounding, *seed;
    int real;
} Precision;
static const Precision precisions[STUDY_ROWS] = {
    {"f64", "none", "bf16", "nearest", "", DT_F64},
    {"f32", "none", "bf16", "nearest", "", 0},
    {"bf16 products", "matmult", "bf16", "nearest", "", 0},
    {"bf16", "all", "bf16", "nearest", "", 0},
    {"bf16, stochastic", "all", "bf16", "stochastic", "1", 0},
    {"fp8 products", "matmult", "fp8_e4m3", "nearest", "", 0},
};
enum { ROW_F64, ROW_F32 };
#define ALARM 0.2  // of a part's gradients: so far off they point elsewhere
#define NOISE 0.01 // of the loss: a difference below is none

// --- runs ------------------------------------------------------------------------------------------

static otrn_env *env_open(Study *s, const Precision *p, const char *cast_ops) {
    otrn_option *all = ARENA_NEWN(s->arena, otrn_option, s->noptions + 5);
    size_t n = 0;
    for (size_t i = 0; i < s->noptions; i++)
        all[n++] = s->options[i];
    all[n++] = (otrn_option){"auto-cast", p->cast};
    all[n++] = (otrn_option){"auto-cast-type", p->type};
    all[n++] = (otrn_option){"rounding", p->rounding};
    all[n++] = (otrn_option){"stochastic-rounding", p->seed};
    if (cast_ops)
        all[n++] = (otrn_option){"cast-ops", cast_ops};
    otrn_error err = OTRN_ERROR_INIT;
    otrn_env *env = NULL;
    otrn_status status = otrn_open(all, n, &env, &err);
    if (status != OTRN_OK)
        ctx_fail(s->ctx, status, NO_PLACE, "%s", err.text);
    return env;
}

// A run of so many steps, or false: its loss was no number.
static bool run(Study *s, otrn_env *env, const Precision *p, int64_t steps, int seed, Train *t) {
    Ctx *ctx = s->ctx;
    *t = (Train){.ctx = ctx, .arena = s->arena, .env = env, .recipe = s->recipe, .ranks = RANKS_ALONE};
    t->recipe.steps = steps, t->recipe.seed += seed;
    if (p->real && s->recipe.folder)
        t->recipe.folder = arena_printf(s->arena, "%s/f64", s->recipe.folder);
    t->opt = (TrainOptions){.checkpoint = "", .log = "", .tensorboard = "", .prometheus = "", .every = 1, .devices = 1, .silent = true, .real = p->real};
    jmp_buf jb, *outer = ctx->on_fail;
    volatile bool good = false;
    if (CTX_TRY(ctx, jb)) {
        train_run(t);
        good = true;
    }
    ctx->on_fail = outer;
    if (!good && ctx->err.code != OTRN_CHECK) {
        otrn_close(env);
        longjmp(*outer, 1);
    }
    return good;
}

// --- gradients -------------------------------------------------------------------------------------

static const Tensor *tensor_find(const Train *t, const char *name) {
    for (size_t i = 0; i < t->nstate; i++)
        if (!strcmp(t->state[i].name, name))
            return &t->state[i];
    return NULL;
}

static double element(const Tensor *t, size_t i) {
    return t->type.dtype == DT_F64 ? ((const double *)t->data)[i] : t->type.dtype == DT_F32 ? ((const float *)t->data)[i] : 0;
}

// What of a step shows a parameter's gradient: AdamW's first moment of a model of ours, else how far the parameter went.
typedef struct Shown {
    const Tensor *now;
    Tensor before; // data NULL: nothing to take away
} Shown;
static Shown shows(const Train *t, Arena *a, const Port *p) {
    if (!t->recipe.folder)
        return (Shown){.now = tensor_find(t, arena_printf(a, "%s.m", p->name))};
    Shown s = {.now = tensor_find(t, p->name)};
    Npy npy = {0};
    if (p->file)
        npy_read(t->ctx, a, p->file, &npy);
    s.before = (Tensor){.type = p->type, .data = npy.data};
    return s;
}

static double shown(const Shown *s, size_t i) { return element(s->now, i) - (s->before.data ? element(&s->before, i) : 0); }

static const char *part_of(Arena *a, const char *name) { // "layers.0.up" of "layers.0.up.weight"
    const char *dot = strrchr(name, '.');
    return dot ? arena_strndup(a, name, (size_t)(dot - name)) : name;
}

static size_t count_of(const Tensor *t) { return t->bytes / otrn_dtype_bytes(t->type.dtype); }

static PortKind parameters_of(const Step *step) { // a step's state that is not told apart is what it learns
    for (size_t i = 0; i < step->nargs; i++)
        if (step->args[i].kind == PORT_PARAMETER)
            return PORT_PARAMETER;
    return PORT_STATE;
}

static void parts_compare(Study *s, const Train *x, const Train *y, StudyRow *row) {
    if (x->step.nargs != y->step.nargs)
        ctx_fail(s->ctx, OTRN_ARGUMENT, (Place){.file = y->step.name}, "has other arguments than the step it is the twin of");
    PortKind kind = parameters_of(&x->step);
    const char *before = "";
    double off = 0, all = 0;
    for (size_t i = 0; i <= x->step.nargs; i++) {
        const Port *p = i < x->step.nargs ? &x->step.args[i] : NULL;
        if (p && p->kind != kind)
            continue;
        const char *part = !p ? "" : s->recipe.folder ? p->name : part_of(s->arena, p->name);
        if (*before && strcmp(part, before)) {
            StudyPart one = {before, all > 0 ? sqrt(off / all) : 0};
            one.error = isnan(one.error) ? INFINITY : one.error;
            VEC_PUSH(s->arena, &row->parts, one);
            row->worst = one.error >= row->worst.error ? one : row->worst;
            off = all = 0;
        }
        before = part;
        Shown a = p ? shows(x, s->arena, p) : (Shown){0}, b = p ? shows(y, s->arena, &y->step.args[i]) : (Shown){0};
        size_t n = a.now && b.now && count_of(a.now) == count_of(b.now) ? count_of(b.now) : 0;
        for (size_t k = 0; k < n; k++) {
            double d = shown(&a, k) - shown(&b, k);
            off += d * d, all += shown(&b, k) * shown(&b, k);
        }
    }
}

// --- numbers ---------------------------------------------------------------------------------------

// Mean, and half the width of the 95 % interval (Student's).
static double mean_of(const double *v, int n, double *half) {
    static const double t95[] = {0, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262};
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++)
        sum += v[i];
    double mean = n ? sum / n : 0;
    for (int i = 0; i < n; i++)
        squares += (v[i] - mean) * (v[i] - mean);
    *half = n > 1 ? t95[n - 1] * sqrt(squares / (n - 1) / n) : 0;
    return mean;
}

static double end_loss(const Train *t, int64_t at) { // a mean over the tenth of the steps before
    int64_t from = at - (at / 10 > 0 ? at / 10 : 1);
    double sum = 0;
    for (int64_t i = from; i < at; i++)
        sum += t->watch.notes.at[i].loss;
    return sum / (double)(at - from);
}

static void judge(Study *s, StudyRow *row) {
    const StudyRow *ref = &s->rows[s->reference];
    double off[STUDY_SEEDS];
    for (int i = 0; i < s->seeds && row->runs == s->seeds; i++)
        off[i] = row->loss[i] - ref->loss[i];
    row->off = row->runs == s->seeds ? mean_of(off, s->seeds, &row->off_spread) : 0;
    bool sure = row->off - row->off_spread > 0 && row->off > NOISE * fabs(ref->mean);
    row->worse = row->failed_at || sure || row->worst.error > ALARM;
    row->verdict = row == ref                ? "what others are held against"
                   : row->failed_at          ? arena_printf(s->arena, "not a number in step %lld", (long long)row->failed_at)
                   : sure                    ? "worse: its loss stays behind"
                   : row->worst.error > ALARM ? arena_printf(s->arena, "doubtful: gradients of %s are %.0f %% off", row->worst.name, 100 * row->worst.error)
                                             : "good: no difference that matters";
}

// --- where it goes wrong ---------------------------------------------------------------------------

typedef VEC(StudyLine) Lines;

// Lines of the program with an operation that this precision casts, in its order.
static void lines_list(Study *s, const Step *step, bool products, Lines *out) {
    Hlo *h = read_program(s->ctx, s->arena, step->name, step->program, step->program_bytes);
    for (uint32_t i = 0; i < h->ops.n; i++) {
        const HloOp *op = &h->ops.at[i];
        Place at = hlo_place(h, op->loc);
        bool product = op->code == HLO_DOT || op->code == HLO_DOT_GENERAL || op->code == HLO_CONVOLUTION;
        bool known = !at.file || !at.line || strpbrk(at.file, "=,") || (products && !product) || op->code == HLO_CONSTANT;
        for (uint32_t k = 0; k < out->n && !known; k++)
            known = out->at[k].line == at.line && !strcmp(out->at[k].file, at.file);
        if (!known)
            VEC_PUSH(s->arena, out, ((StudyLine){at.file, hlo_row(op)->name, at.line}));
    }
}

static const char *cast_until(Study *s, const Lines *lines, uint32_t count) { // what the user said, and nothing of the lines behind
    Buf b = {.arena = s->arena};
    for (size_t i = 0; i < s->noptions; i++)
        if (!strcmp(s->options[i].name, "cast-ops"))
            buf_printf(&b, "%s", s->options[i].value);
    for (uint32_t i = count; i < lines->n; i++)
        buf_printf(&b, "%s%s:%u=none", b.n ? "," : "", lines->at[i].file, lines->at[i].line);
    return buf_cstr(&b);
}

static bool is_wrong(Study *s, const Precision *p, const Lines *lines, uint32_t count, const Train *first, double limit) {
    otrn_env *env = env_open(s, p, cast_until(s, lines, count));
    StudyRow row = {0};
    Train t;
    bool ran = run(s, env, p, 1, 0, &t);
    if (ran) {
        parts_compare(s, &t, first, &row);
        train_end(&t);
    }
    otrn_close(env);
    return !ran || !(row.worst.error <= limit);
}

// By halves: with this line's cast the gradients of a step are wrong, with those before it they are not.
static void wrong_find(Study *s, const Precision *p, const Train *first, StudyRow *row) {
    Lines lines = {0};
    double limit = row->worst.error > ALARM || !row->worst.name ? ALARM : row->worst.error / 2;
    lines_list(s, &first->step, !strcmp(p->cast, "matmult"), &lines);
    uint32_t good = 0, bad = lines.n;
    if (!bad || is_wrong(s, p, &lines, 0, first, limit) || !is_wrong(s, p, &lines, bad, first, limit))
        return;
    while (bad - good > 1) {
        uint32_t middle = good + (bad - good) / 2;
        if (is_wrong(s, p, &lines, middle, first, limit))
            bad = middle;
        else
            good = middle;
    }
    row->wrong = lines.at[bad - 1];
}

static void row_run(Study *s, int which, Train *first) {
    const Precision *p = &precisions[which];
    StudyRow *row = &s->rows[which];
    otrn_env *env = env_open(s, p, NULL);
    Train t;
    row->ran = true;
    if (run(s, env, p, 1, 0, which == s->reference ? first : &t)) {
        row->first = (which == s->reference ? first : &t)->loss;
        if (which != s->reference) {
            parts_compare(s, &t, first, row);
            train_end(&t);
        }
    }
    for (int seed = 0; seed < s->seeds; seed++) {
        if (!run(s, env, p, s->recipe.steps, seed, &t)) {
            row->failed_at = t.at;
            continue;
        }
        row->loss[row->runs++] = end_loss(&t, s->recipe.steps);
        for (int i = 0; i < STUDY_POINTS; i++)
            row->curve[i] += end_loss(&t, s->recipe.steps * (i + 1) / STUDY_POINTS > 0 ? s->recipe.steps * (i + 1) / STUDY_POINTS : 1);
        train_end(&t);
    }
    for (int i = 0; i < STUDY_POINTS && row->runs; i++)
        row->curve[i] /= row->runs;
    row->mean = mean_of(row->loss, row->runs, &row->spread);
    otrn_close(env);
    judge(s, row);
    if (row->worse && which != s->reference && strcmp(p->cast, "none"))
        wrong_find(s, p, first, row);
}

void study_run(Study *s) {
    bool twin = !s->recipe.folder || !access(arena_printf(s->arena, "%s/f64/manifest.json", s->recipe.folder), R_OK);
    s->reference = twin ? ROW_F64 : ROW_F32;
    Train first = {0};
    for (int i = s->reference; i < STUDY_ROWS; i++)
        row_run(s, i, &first);
    train_end(&first);
}

bool study_worse(const Study *s) {
    for (int i = 0; i < STUDY_ROWS; i++)
        if (s->rows[i].worse)
            return true;
    return false;
}

// --- print -----------------------------------------------------------------------------------------

static void text_print(const Study *s, FILE *out) {
    int64_t n = s->recipe.steps;
    fprintf(out, "%lld steps, %d seed%s; losses after a quarter, a half, three quarters and all steps; differences from %s with their 95 %% interval\n\n",
            (long long)n, s->seeds, s->seeds == 1 ? "" : "s", precisions[s->reference].name);
    fprintf(out, "%-17s %8s %8s %8s %8s %9s  %-21s %-32s %s\n", "precision", "25 %", "50 %", "75 %", "100 %", "±", "difference", "gradients furthest off", "verdict");
    for (int i = s->reference; i < STUDY_ROWS; i++) {
        const StudyRow *r = &s->rows[i];
        char off[48] = "", worst[64] = "";
        if (i != s->reference && r->runs == s->seeds)
            snprintf(off, sizeof off, "%+.5f ± %.5f", r->off, r->off_spread);
        if (i != s->reference && r->worst.name)
            snprintf(worst, sizeof worst, "%.2g %s", r->worst.error, r->worst.name);
        fprintf(out, "%-17s %8.4f %8.4f %8.4f %8.4f %9.4f  %-21s %-32s %s\n", precisions[i].name, r->curve[0], r->curve[1], r->curve[2], r->curve[3],
                r->spread, off, worst, r->verdict);
    }
    for (int i = s->reference; i < STUDY_ROWS; i++)
        if (s->rows[i].wrong.file)
            fprintf(out, "%s: gradients go wrong first by %s at %s:%u; --cast-ops=%s:%u=none leaves it out\n", precisions[i].name, s->rows[i].wrong.op,
                    s->rows[i].wrong.file, s->rows[i].wrong.line, s->rows[i].wrong.file, s->rows[i].wrong.line);
}

static void number_put(Buf *b, const char *before, double v) { // JSON has no infinity
    buf_puts(b, before);
    if (isfinite(v))
        buf_printf(b, "%.9g", v);
    else
        buf_puts(b, "null");
}

static void row_json(const Study *s, int i, Buf *b) {
    const StudyRow *r = &s->rows[i];
    buf_printf(b, "  {\"precision\": \"%s\", \"reference\": %s", precisions[i].name, i == s->reference ? "true" : "false");
    number_put(b, ", \"first_loss\": ", r->first), number_put(b, ", \"loss\": ", r->mean), number_put(b, ", \"loss_interval\": ", r->spread);
    number_put(b, ", \"difference\": ", r->off), number_put(b, ", \"difference_interval\": ", r->off_spread);
    buf_printf(b, ", \"worse\": %s, \"verdict\": ", r->worse ? "true" : "false");
    json_put(b, r->verdict);
    if (r->wrong.file) {
        buf_printf(b, ", \"first_wrong\": {\"operation\": \"%s\", \"line\": %u, \"file\": ", r->wrong.op, r->wrong.line);
        json_put(b, r->wrong.file), buf_puts(b, "}");
    }
    buf_puts(b, ",\n   \"losses\": [");
    for (int k = 0; k < r->runs; k++)
        number_put(b, k ? ", " : "", r->loss[k]);
    buf_puts(b, "], \"gradients\": {");
    for (uint32_t k = 0; k < r->parts.n; k++) {
        buf_puts(b, k ? ", " : "");
        json_put(b, r->parts.at[k].name);
        number_put(b, ": ", r->parts.at[k].error);
    }
    buf_puts(b, "}}");
}

void study_print(const Study *s, bool json, FILE *out) {
    if (!json) {
        text_print(s, out);
        return;
    }
    Buf b = {.arena = s->arena};
    buf_printf(&b, "{\"steps\": %lld, \"seeds\": %d, \"precisions\": [\n", (long long)s->recipe.steps, s->seeds);
    for (int i = s->reference; i < STUDY_ROWS; i++) {
        row_json(s, i, &b);
        buf_puts(&b, i + 1 < STUDY_ROWS ? ",\n" : "]}\n");
    }
    fwrite(b.at, 1, b.n, out);
}
