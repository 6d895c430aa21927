// SPDX-License-Identifier: Apache-2.0
// cmd_train.c — otrn train, generate and precision: options become runs (train/train.h).
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/prof.h"
#include "train/study.h"

#define LOST 75 // as in cmd_launch.c

static bool given(const Tool *t, OptId id) { return *t->opt.val[id] && !strcmp(t->opt.from[id], "command line"); }

static double number(Tool *t, OptId id, double least, double most) {
    const char *text = t->opt.val[id];
    char *end;
    double v = strtod(text, &end);
    if (end == text || *end || !(v >= least && v <= most))
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "--%s: `%s` is no number from %.12g to %.12g", opt_rows[id].name, text, least, most);
    return v;
}

static int64_t whole(Tool *t, OptId id, int64_t least) {
    double v = number(t, id, (double)least, 1e15);
    if (v != (double)(int64_t)v)
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "--%s: `%s` is no whole number", opt_rows[id].name, t->opt.val[id]);
    return (int64_t)v;
}

static int choice(const Tool *t, OptId id, const char *const *words, int count) {
    for (int i = 0; i < count; i++)
        if (!strcmp(words[i], t->opt.val[id]))
            return i;
    return 0;
}

// --- the recipe ------------------------------------------------------------------------------------

static const Model small[MODEL_STEP] = { // what is trained in a minute
    [MODEL_GPT] = {MODEL_GPT, .layers = 4, .dim = 128, .heads = 4, .seq = 128, .batch = 8, .vocab = DATA_BYTES},
    [MODEL_BERT] = {MODEL_BERT, .layers = 4, .dim = 128, .heads = 4, .seq = 128, .batch = 8, .vocab = DATA_BYTES + 1},
    [MODEL_VIT] = {MODEL_VIT, .layers = 2, .dim = 64, .heads = 4, .seq = 0, .batch = 32, .vocab = DATA_DIGITS, .height = DATA_SIDE, .width = DATA_SIDE, .patch = 4},
    [MODEL_MLP] = {MODEL_MLP, .layers = 2, .dim = 128, .heads = 1, .seq = 0, .batch = 32, .vocab = DATA_DIGITS, .height = DATA_SIDE, .width = DATA_SIDE},
};

static Recipe recipe_usual(Tool *t) {
    Recipe r = {.model = small[choice(t, OPT_MODEL, model_names, MODEL_STEP)], .steps = 500, .warmup = -1, .rate = 1e-3, .adam = ADAM_USUAL, .data = ""};
    if (t->words.n)
        r.folder = t->words.at[0], r.model = (Model){.kind = MODEL_STEP, .vocab = INT32_MAX};
    return r;
}

// What was said on the command line; with a checkpoint, sizes may not change.
static void sizes_set(Tool *t, const Checkpoint *from, Model *m) {
    const struct {
        OptId id;
        int64_t *to;
    } rows[] = {{OPT_LAYERS, &m->layers}, {OPT_DIM, &m->dim}, {OPT_HEADS, &m->heads}, {OPT_SEQ, &m->seq}, {OPT_BATCH, &m->batch},
                {OPT_VOCAB, &m->vocab}, {OPT_PATCH, &m->patch}};
    if (from && given(t, OPT_MODEL) && strcmp(model_names[m->kind], t->opt.val[OPT_MODEL]))
        ctx_fail(t->ctx, OTRN_ARGUMENT, (Place){.file = from->path}, "the checkpoint is of a %s", model_names[m->kind]);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!given(t, rows[i].id))
            continue;
        int64_t v = whole(t, rows[i].id, 1);
        if (from && v != *rows[i].to) {
            ctx_hint(t->ctx, "leave --%s out to go on with it, or begin in another folder", opt_rows[rows[i].id].name);
            ctx_fail(t->ctx, OTRN_ARGUMENT, (Place){.file = from->path}, "the checkpoint is of another shape: its %s is %lld",
                     opt_rows[rows[i].id].name, (long long)*rows[i].to);
        }
        *rows[i].to = v + (rows[i].id == OPT_VOCAB && m->kind == MODEL_BERT && !from); // one hides another
    }
}

static void recipe_set(Tool *t, const Checkpoint *from, Recipe *r) {
    sizes_set(t, from, &r->model);
    if (given(t, OPT_STEPS))
        r->steps = whole(t, OPT_STEPS, 1);
    if (given(t, OPT_SEED))
        r->seed = whole(t, OPT_SEED, 0);
    if (given(t, OPT_RATE))
        r->rate = number(t, OPT_RATE, 0, 1e6);
    if (given(t, OPT_WARMUP))
        r->warmup = whole(t, OPT_WARMUP, 0);
    if (r->warmup < 0)
        r->warmup = r->steps / 10 < 100 ? r->steps / 10 : 100;
    if (given(t, OPT_SCHEDULE))
        r->schedule = (Schedule)choice(t, OPT_SCHEDULE, schedule_names, SCHEDULE_COUNT);
    if (given(t, OPT_DECAY))
        r->adam.decay = number(t, OPT_DECAY, 0, 100);
    if (given(t, OPT_CLIP))
        r->adam.clip = number(t, OPT_CLIP, 0, 1e9);
    if (given(t, OPT_DATA))
        r->data = t->opt.val[OPT_DATA];
}

// --- checkpoints -----------------------------------------------------------------------------------

static const Checkpoint *checkpoint_find(Tool *t, Store *store) {
    const char *folder = store->where;
    Checkpoint *c = ARENA_NEW(t->arena, Checkpoint);
    Buf wrong = {.arena = t->arena};
    bool found = checkpoint_newest(t->ctx, t->arena, store, c, &wrong);
    if (wrong.n)
        fprintf(stderr, "otrn: warning: a checkpoint is damaged, %s:\n%s", found ? "the one before it is used" : "and there is no other", buf_cstr(&wrong));
    if (wrong.n && !found) {
        ctx_hint(t->ctx, "begin in another folder; what is there stays as it is");
        ctx_fail(t->ctx, OTRN_PARSE, (Place){.file = folder}, "no checkpoint there is whole");
    }
    return found ? c : NULL;
}

// The one to go on from; without --resume a folder with checkpoints is not written over.
static const Checkpoint *checkpoint_before(Tool *t, Store **store) {
    const char *folder = t->opt.val[OPT_CHECKPOINT];
    bool resume = opt_on(&t->opt, OPT_RESUME);
    if (resume && !*folder)
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "--resume needs --checkpoint=DIR, where it goes on from");
    if (!*folder)
        return NULL;
    *store = ARENA_NEW(t->arena, Store);
    store_open(t->ctx, t->arena, &t->opt, folder, *store);
    const Checkpoint *c = checkpoint_find(t, *store);
    if (c && !resume) {
        ctx_hint(t->ctx, "--resume goes on from step %lld; for a new run name another folder", (long long)c->step);
        ctx_fail(t->ctx, OTRN_USAGE, (Place){.file = folder}, "there are checkpoints of another run");
    }
    return c;
}

// Of another process than 0: it may write there too; where it cannot, others do.
static void store_look(Tool *t, Store **store) {
    jmp_buf jb, *outer = t->ctx->on_fail;
    if (!*t->opt.val[OPT_CHECKPOINT])
        return;
    Store *s = ARENA_NEW(t->arena, Store);
    if (CTX_TRY(t->ctx, jb)) {
        store_open(t->ctx, t->arena, &t->opt, t->opt.val[OPT_CHECKPOINT], s);
        *store = s;
    }
    t->ctx->on_fail = outer;
}

// --- commands --------------------------------------------------------------------------------------

static int64_t sample_bytes(Tool *t) { return given(t, OPT_SAMPLE) ? whole(t, OPT_SAMPLE, 0) : 200; }
static double temperature(Tool *t) { return number(t, OPT_TEMPERATURE, 0, 100); }

static void sample(Tool *t, const Train *run) {
    bool asked = given(t, OPT_SAMPLE);
    int64_t bytes = sample_bytes(t);
    const Model *m = &run->recipe.model;
    if (!bytes || (!asked && (m->kind != MODEL_GPT || !run->data.text)))
        return;
    text_write(t->ctx, t->arena, t->env, m, &run->recipe.bpe, run->state, run->nstate, t->opt.val[OPT_PROMPT], bytes, temperature(t),
               (uint64_t)whole(t, OPT_SEED, 0), stdout);
}

// Process 0's checkpoint is everybody's; only it has the tensors.
static const Checkpoint *checkpoint_share(Tool *t, Ranks *ranks, const Checkpoint *from) {
    const char *text = ranks_share_text(t->ctx, t->arena, ranks, from ? from->text : NULL);
    if (!ranks->rank || !text)
        return from;
    Checkpoint *c = ARENA_NEW(t->arena, Checkpoint);
    *c = (Checkpoint){.path = "the checkpoint of process 0", .text = text, .manifest = json_parse(t->ctx, t->arena, "manifest", text, strlen(text))};
    c->step = (int64_t)json_need(t->ctx, c->path, c->manifest, "step", JSON_NUMBER)->number;
    return c;
}

static void devices_check(Tool *t, const Train *run) {
    if (run->ranks.devices > OTRN_MAX_DEVICES)
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "%lld devices: at most %d", (long long)run->ranks.devices, OTRN_MAX_DEVICES);
}

static void train_options(Tool *t, Train *run) {
    run->opt = (TrainOptions){.checkpoint = t->opt.val[OPT_CHECKPOINT], .log = "", .tensorboard = "", .prometheus = "",
                              .every = whole(t, OPT_CHECKPOINT_EVERY, 1), .keep = opt_num(&t->opt, OPT_KEEP), .resume = opt_on(&t->opt, OPT_RESUME),
                              .devices = run->ranks.here, .silent = run->ranks.rank > 0,
                              .max_comm = prof_max_comm(t)};
    if (run->ranks.rank)
        return;
    run->opt.log = t->opt.val[OPT_LOG], run->opt.tensorboard = t->opt.val[OPT_TENSORBOARD], run->opt.prometheus = t->opt.val[OPT_PROMETHEUS];
    run->opt.terminal = isatty(2);
}

static int comm_status(Tool *t, const Train *run) {
    if (!run->watch.comm_note || run->opt.max_comm < 0)
        return 0;
    fprintf(stderr, "otrn: %s; more than --max-comm=%s\n", run->watch.comm_note, t->opt.val[OPT_MAX_COMM]);
    return STATUS_COMM;
}

static int train(Tool *t, Train *run) {
    otrn_env *env = tool_env(t);
    sample_bytes(t), temperature(t); // what is wrong is told before the run, not behind it
    *run = (Train){.ctx = t->ctx, .arena = t->arena, .recipe = recipe_usual(t), .env = env};
    ranks_join(t->ctx, t->arena, &t->opt, arena_printf(t->arena, "%s/%u", otrn_target(env), otrn_device_cores(env)), &run->ranks);
    const Checkpoint *from = run->ranks.rank ? NULL : checkpoint_before(t, &run->store);
    if (run->ranks.rank)
        store_look(t, &run->store);
    from = run->from = checkpoint_share(t, &run->ranks, from);
    if (from)
        recipe_parse(t->ctx, t->arena, from, &run->recipe);
    recipe_set(t, from, &run->recipe);
    devices_check(t, run);
    train_options(t, run);
    bool tells = run->ranks.rank == 0;
    if (from && from->step >= run->recipe.steps && tells)
        fprintf(stderr, "otrn: step %lld is the last one already; --steps=N goes further\n", (long long)from->step);
    train_run(run);
    if (tells)
        printf("step %lld, loss %.6f%s\n", (long long)run->at, run->loss, run->stopped ? ", stopped" : "");
    if (*t->opt.val[OPT_REPORT] && run->watch.notes.n && tells)
        page_write(run, t->opt.val[OPT_REPORT]);
    if (!run->stopped && tells)
        sample(t, run);
    train_end(run);
    return run->stopped ? 130 : comm_status(t, run);
}

// A process that ends because another is gone has a status of its own, so that a launcher names the other.
int cmd_train(Tool *t) {
    Train *run = ARENA_NEW(t->arena, Train);
    jmp_buf jb, *outer = t->ctx->on_fail;
    volatile int status = -1;
    if (CTX_TRY(t->ctx, jb))
        status = train(t, run);
    t->ctx->on_fail = outer;
    bool lost = ranks_lost(&run->ranks);
    ranks_leave(&run->ranks, status >= 0);
    if (status < 0 && !lost)
        longjmp(*outer, 1);
    if (status < 0) {
        char text[2400];
        otrn_error_print(&t->ctx->err, text, sizeof text);
        fprintf(stderr, "%s\n", text);
        return LOST;
    }
    return status;
}

int cmd_generate(Tool *t) {
    Store store;
    store_open(t->ctx, t->arena, &t->opt, t->words.at[0], &store);
    const Checkpoint *c = checkpoint_find(t, &store);
    store_close(&store);
    if (!c) {
        ctx_hint(t->ctx, "`otrn train --checkpoint=%s` makes one", t->words.at[0]);
        ctx_fail(t->ctx, OTRN_ARGUMENT, (Place){.file = t->words.at[0]}, "no checkpoint is there");
    }
    Recipe r = {0};
    recipe_parse(t->ctx, t->arena, c, &r);
    text_write(t->ctx, t->arena, tool_env(t), &r.model, &r.bpe, c->tensors, c->count, t->opt.val[OPT_PROMPT],
               given(t, OPT_SAMPLE) ? whole(t, OPT_SAMPLE, 1) : 400, temperature(t), (uint64_t)whole(t, OPT_SEED, 0), stdout);
    return 0;
}

int cmd_precision(Tool *t) {
    Study study = {.ctx = t->ctx, .arena = t->arena, .recipe = recipe_usual(t), .seeds = (int)opt_num(&t->opt, OPT_SEEDS)};
    study.recipe.steps = 50;
    recipe_set(t, NULL, &study.recipe);
    if (study.seeds < 1 || study.seeds > STUDY_SEEDS)
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "--seeds: from 1 to %d", STUDY_SEEDS);
    otrn_option given_ones[OPT_COUNT];
    for (int i = 0; i < OPT_COUNT; i++)
        if (!strcmp(t->opt.from[i], "command line"))
            given_ones[study.noptions++] = (otrn_option){opt_rows[i].name, t->opt.val[i]};
    study.options = given_ones;
    study_run(&study);
    study_print(&study, opt_on(&t->opt, OPT_JSON), stdout);
    return study_worse(&study) ? 3 : 0;
}
