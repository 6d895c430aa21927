// SPDX-License-Identifier: Apache-2.0
// run.c — the run itself: prepare, step after step, checkpoints, an end that leaves nothing half done.
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/now.h"
#include "net/net.h"
#include "train/train.h"

#define ALIGN 64

// --- Ctrl-C ----------------------------------------------------------------------------------------

static volatile sig_atomic_t asked; // a handler reaches nothing else

static void on_signal(int sig) {
    asked = 1;
    signal(sig, SIG_DFL); // a second one ends the process at once
}

typedef void Handler(int);
static Handler *catch(int sig) { // what was there; a signal that the starter has ignored stays ignored
    Handler *before = signal(sig, on_signal);
    if (before == SIG_IGN)
        signal(sig, SIG_IGN);
    return before;
}

// --- preparing -------------------------------------------------------------------------------------

void train_check(Train *t, otrn_status s, const otrn_error *err) {
    if (s == OTRN_OK)
        return;
    char file[sizeof err->file];
    memcpy(file, err->file, sizeof file);
    if (err->hint[0])
        ctx_hint(t->ctx, "%s", err->hint);
    ctx_fail(t->ctx, s, (Place){file, err->line, err->col}, "%s", err->text);
}

static void compile(Train *t) {
    if (t->recipe.folder)
        step_read(t->ctx, t->arena, t->recipe.folder, &t->step);
    else
        model_step(t->ctx, t->arena, &t->recipe.model, &t->recipe.adam, t->ranks.devices, t->opt.real ? t->opt.real : DT_F32, &t->step);
    otrn_error err = OTRN_ERROR_INIT;
    otrn_status s = otrn_compile(t->env, t->step.program, t->step.program_bytes, t->step.name, &t->exe, &err);
    if (s == OTRN_CAPACITY && !t->recipe.folder)
        snprintf(err.hint, sizeof err.hint, "a smaller batch or model (--batch, --seq, --layers, --dim), or a step exported over several devices that cut its weights");
    train_check(t, s, &err);
    if (otrn_exe_num_args(t->exe) != t->step.nargs || otrn_exe_num_results(t->exe) != t->step.nresults)
        ctx_fail(t->ctx, OTRN_ARGUMENT, (Place){.file = t->step.name}, "the manifest has %zu arguments and %zu results, the program %zu and %zu",
                 t->step.nargs, t->step.nresults, otrn_exe_num_args(t->exe), otrn_exe_num_results(t->exe));
    mesh_find(t);
}

static bool in_place(const Train *t, size_t result, size_t *arg) {
    for (size_t i = 0; i < t->step.nargs; i++)
        if (t->step.args[i].result == (int64_t)result) {
            *arg = i;
            return otrn_exe_result_alias(t->exe, result) == (int64_t)i;
        }
    return false;
}

static size_t rounded(size_t n) { return (n + ALIGN - 1) / ALIGN * ALIGN; }

// One piece of memory for all devices, and for whole values of what is cut; results lie in the arguments they replace where the program lets them.
static void memory_make(Train *t) {
    size_t na = t->step.nargs, nr = t->step.nresults, bytes = 0, whole = rounded(mesh_pack_bytes(t)), arg, at = 0, devices = (size_t)t->opt.devices;
    for (size_t i = 0; i < na; i++)
        bytes += rounded(otrn_type_bytes(otrn_exe_arg_type(t->exe, i)));
    for (size_t i = 0; i < nr; i++)
        bytes += in_place(t, i, &arg) ? 0 : rounded(otrn_type_bytes(otrn_exe_result_type(t->exe, i)));
    for (size_t i = 0; i < na; i++)
        whole += t->lies[i].slot ? rounded(otrn_type_bytes(&t->lies[i].whole)) : 0;
    bool fits = bytes < (SIZE_MAX - ALIGN - whole) / devices;
    t->memory = fits ? calloc(1, bytes * devices + whole + ALIGN) : NULL; // zero, and no page of it is touched yet
    if (!t->memory) {
        ctx_hint(t->ctx, "a smaller --batch, or a smaller model, takes less");
        ctx_fail(t->ctx, OTRN_NOMEM, NO_PLACE, "no host memory for the state of the step: %zu bytes", bytes * devices + whole);
    }
    uint8_t *from = (uint8_t *)rounded((uintptr_t)t->memory);
    t->args = ARENA_NEWN(t->arena, otrn_buffer, na * devices + 1);
    t->results = ARENA_NEWN(t->arena, otrn_buffer, nr * devices + 1);
    for (size_t d = 0; d < devices; d++) {
        for (size_t i = 0; i < na; i++) {
            size_t n = otrn_type_bytes(otrn_exe_arg_type(t->exe, i));
            t->args[d * na + i] = (otrn_buffer){from + at, n};
            at += rounded(n);
        }
        for (size_t i = 0; i < nr; i++) {
            size_t n = otrn_type_bytes(otrn_exe_result_type(t->exe, i));
            bool same = in_place(t, i, &arg);
            t->results[d * nr + i] = same ? t->args[d * na + arg] : (otrn_buffer){from + at, n};
            at += same ? 0 : rounded(n);
        }
    }
    t->whole = ARENA_NEWN(t->arena, otrn_buffer, na + 1);
    for (size_t i = 0; i < na; i++) {
        size_t n = otrn_type_bytes(&t->lies[i].whole);
        t->whole[i] = t->lies[i].slot ? (otrn_buffer){from + at, n} : t->args[i];
        at += t->lies[i].slot ? rounded(n) : 0;
    }
    t->pack = from + at;
}

static void state_make(Train *t) {
    t->state = ARENA_NEWN(t->arena, Tensor, t->step.nargs + 1);
    for (size_t i = 0; i < t->step.nargs; i++) {
        const Port *p = &t->step.args[i];
        if (port_lasts(p))
            t->state[t->nstate++] = (Tensor){p->name, p->type, t->whole[i].data, t->whole[i].bytes};
    }
}

static void state_share(Train *t) { // process 0's
    for (size_t i = 0; i < t->step.nargs; i++) {
        if (port_lasts(&t->step.args[i]))
            ranks_share(t->ctx, &t->ranks, t->whole[i].data, t->whole[i].bytes);
        mesh_spread(t, i);
    }
}

static void data_check(Train *t) {
    const Json *was = t->from ? json_get(t->from->manifest, "data") : NULL;
    const Json *print = json_get(was, "print"), *count = json_get(was, "count");
    if (!print || !count || (print->number == t->data.print && count->number == (double)t->data.count))
        return;
    ctx_hint(t->ctx, "name the same file with --data, or begin in another folder");
    ctx_fail(t->ctx, OTRN_ARGUMENT, (Place){.file = t->data.name}, "the data is not what the checkpoint of step %lld was trained on",
             (long long)t->from->step);
}

// Text of a model that knows more tokens than bytes: pairs are learnt from it, or were when the run began.
static void pairs_make(Train *t) {
    Recipe *r = &t->recipe;
    bool language = r->model.kind == MODEL_GPT || r->model.kind == MODEL_BERT;
    int64_t tokens = r->model.vocab - (r->model.kind == MODEL_BERT);
    if (!language || !t->data.text || tokens <= BPE_BYTES || (t->from && !r->bpe.count))
        return;
    if (tokens > BPE_TOKENS_MAX)
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "--vocab=%lld: of text at most %d tokens are learnt", (long long)tokens, BPE_TOKENS_MAX);
    size_t count, bytes = (size_t)t->data.count;
    if (!t->from)
        bpe_learn(t->arena, t->data.at, bytes, (uint32_t)tokens, &r->bpe);
    const uint32_t *encoded = bpe_encode(t->arena, &r->bpe, t->data.at, bytes, &count);
    data_become(&t->data, encoded, count);
    if (!t->from && !t->opt.silent)
        watch_say(t, "%u pairs of tokens learnt: a token stands for %.1f bytes", r->bpe.count, (double)bytes / (double)count);
}

static void prepare(Train *t) {
    const Recipe *r = &t->recipe;
    if (!r->folder || *r->data)
        data_open(t->ctx, t->arena, r->data, r->model.kind == MODEL_VIT || r->model.kind == MODEL_MLP, &t->data);
    else
        t->data.name = r->folder;
    pairs_make(t);
    data_check(t);
    if (t->data.images && !r->folder)
        t->recipe.model.height = t->data.height, t->recipe.model.width = t->data.width;
    if (t->data.classes && !t->from && !r->folder)
        t->recipe.model.vocab = t->data.classes;
    compile(t);
    memory_make(t);
    state_make(t);
    feed_state(t);
    state_share(t);
    const Json *loss = t->from ? json_get(t->from->manifest, "loss") : NULL;
    t->at = t->from ? t->from->step : 0, t->loss = loss ? loss->number : 0;
    save_begin(t);
}

// --- stepping --------------------------------------------------------------------------------------

static void execute(Train *t) {
    otrn_error err = OTRN_ERROR_INIT;
    size_t na = t->step.nargs, nr = t->step.nresults;
    const otrn_buffer *args[OTRN_MAX_DEVICES], *results[OTRN_MAX_DEVICES];
    for (int64_t d = 0; d < t->opt.devices; d++)
        args[d] = t->args + (size_t)d * na, results[d] = t->results + (size_t)d * nr;
    uint32_t devices = (uint32_t)t->ranks.devices, parts = t->mesh ? devices : 1;
    t->ranks.meets = t->ranks.net;
    if (t->ranks.net)
        train_check(t, rt_execute_spread(t->exe, devices / parts, parts, &t->ranks.spread, args, na, results, nr, &err), &err);
    else if (devices == 1)
        train_check(t, otrn_execute(t->exe, t->args, na, t->results, nr, &err), &err);
    else
        train_check(t, otrn_execute_many(t->exe, devices / parts, parts, args, na, results, nr, &err), &err);
    t->ranks.meets = false;
    for (size_t i = 0; i < na * (size_t)t->opt.devices; i++) {
        const Port *p = &t->step.args[i % na];
        const otrn_buffer *to = &t->args[i], *from = port_lasts(p) ? &t->results[i / na * nr + (size_t)p->result] : to;
        if (from->data != to->data)
            memcpy(to->data, from->data, to->bytes);
    }
}

static double scalar_of(const Train *t, int64_t result) {
    if (result < 0)
        return 0;
    const otrn_buffer *b = &t->results[result];
    return b->bytes == 8 ? *(double *)b->data : *(float *)b->data;
}

static void not_a_number(Train *t) {
    long long step = t->at;
    if (*t->opt.checkpoint)
        ctx_hint(t->ctx, "`--resume --nan` goes on from step %lld and names the operation; a smaller --lr may do",
                 (long long)(saver_saved(&t->saver) < 0 ? 0 : saver_saved(&t->saver)));
    else
        ctx_hint(t->ctx, "--nan names the operation that made it; a smaller --lr may do");
    ctx_fail(t->ctx, OTRN_CHECK, NO_PLACE, "the loss of step %lld is %s: nothing of it was saved", step, isnan(t->loss) ? "not a number" : "infinite");
}

static StepWord step_word(Train *t, double fed, double all) {
    NetWait wait = {0};
    if (t->ranks.net)
        net_waited(t->ranks.net, &wait);
    StepWord w = {.stop = asked != 0, .fed = (float)fed, .waited = (float)wait.longest};
    w.own = (float)(wait.seconds < all ? all - wait.seconds : 0);
    memcpy(w.at, wait.at, sizeof w.at);
    return w;
}

static void loop(Train *t) {
    StepWord *words = ARENA_NEWN(t->arena, StepWord, t->ranks.world);
    double from = now_seconds(); // a step's time begins where the one before ended: copies for checkpoints count too
    StepWord first = {.stop = asked != 0};
    t->stopped = ranks_agree(t->ctx, &t->ranks, &first, words, NULL, NULL);
    while (t->at < t->recipe.steps && !t->stopped) {
        double begin = now_seconds(), fed;
        step_word(t, 0, 0); // what was waited for until here is not the step's
        feed_step(t);
        fed = now_seconds() - begin;
        execute(t);
        double all = now_seconds() - begin;
        StepWord word = step_word(t, fed, all);
        t->loss = scalar_of(t, t->step.loss);
        t->at++;
        if (!isfinite(t->loss))
            not_a_number(t);
        double now = now_seconds();
        watch_step(t, &(StepNote){t->at, t->loss, scalar_of(t, t->step.norm), train_rate(&t->recipe, t->at - 1), now - from, begin - from, fed, all - word.own});
        from = now;
        word.stop = asked != 0;
        t->stopped = save_agree(t, &word, words);
        watch_ranks(t, words);
    }
}

void train_run(Train *t) {
    double from = now_seconds();
    jmp_buf jb, *outer = t->ctx->on_fail;
    volatile bool good = false;
    asked = 0;
    Handler *volatile sigint = SIG_DFL, *volatile sigterm = SIG_DFL;
    volatile bool caught = false;
    if (CTX_TRY(t->ctx, jb)) {
        prepare(t);
        sigint = catch(SIGINT), sigterm = catch(SIGTERM), caught = true;
        t->start_ms = 1e3 * (now_seconds() - from);
        watch_begin(t);
        loop(t);
        save_last(t);
        watch_saved(t);
        if (t->ranks.net) // the others stay until all is saved: what ends one ends all
            ranks_agree(t->ctx, &t->ranks, &(StepWord){.stop = 0}, ARENA_NEWN(t->arena, StepWord, t->ranks.world), NULL, NULL);
        good = true;
    }
    if (caught)
        signal(SIGINT, sigint), signal(SIGTERM, sigterm);
    t->ctx->on_fail = outer;
    saver_end(&t->saver);
    if (t->store)
        store_close(t->store);
    watch_end(t);
    if (!good) {
        train_end(t);
        longjmp(*outer, 1);
    }
}

void train_end(Train *t) {
    otrn_exe_free(t->exe);
    free(t->memory);
    data_close(&t->data);
    t->exe = NULL, t->memory = NULL;
}
