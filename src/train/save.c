// SPDX-License-Identifier: Apache-2.0
// save.c — checkpoints of a run by all its processes: who writes what, when one is made, and when it is whole.
//
//   step ─► words ─► process 0 decides: save ─► each process copies its shards, and its saver writes them beside the next steps
//                                     commit ─► all shards are there: their checksums go to process 0, whose saver writes the manifest
//
// Processes that do not see process 0's folder (or bucket) write nothing, and the others have more shards. A process that is killed leaves
// shards without a manifest, which are nothing.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "train/train.h"

// --- who writes ------------------------------------------------------------------------------------

static bool sees(Train *t) { // what fails here is no reason to end: others write
    jmp_buf jb, *outer = t->ctx->on_fail;
    volatile bool is = false;
    if (CTX_TRY(t->ctx, jb))
        is = t->store->kind->sees(t->ctx, t->arena, t->store);
    t->ctx->on_fail = outer;
    return is;
}

static void run_name(char *out, size_t size) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t seed[] = {(uint64_t)now.tv_sec, (uint64_t)now.tv_nsec, (uint64_t)getpid()};
    snprintf(out, size, "%016llx", (unsigned long long)hash64(1, seed, sizeof seed));
}

static void claim(Train *t) { // by process 0
    Store *s = t->store;
    run_name(s->run, sizeof s->run);
    s->kind->claim(t->ctx, t->arena, s);
    checkpoint_aside(t->ctx, t->arena, s, t->at);
    if (t->ranks.world > 1)
        s->kind->mark(t->ctx, t->arena, s, true);
}

static void writers_find(Train *t) {
    Ranks *r = &t->ranks;
    char run[sizeof t->store->run] = "";
    if (!r->rank)
        memcpy(run, t->store->run, sizeof run);
    ranks_share(t->ctx, r, run, sizeof run);
    if (r->rank && t->store)
        memcpy(t->store->run, run, sizeof run);
    uint8_t mine = !r->rank || (t->store && sees(t));
    ranks_bring(t->ctx, r, &mine, sizeof mine, t->writes);
    ranks_share(t->ctx, r, t->writes, r->world);
    if (!r->rank && r->world > 1)
        t->store->kind->mark(t->ctx, t->arena, t->store, false);
}

void save_begin(Train *t) {
    Ranks *r = &t->ranks;
    uint8_t on = t->store && !r->rank;
    ranks_share(t->ctx, r, &on, sizeof on);
    t->saves = on;
    if (!on)
        return;
    if (!r->rank)
        claim(t);
    t->writes = ARENA_NEWN(t->arena, uint8_t, r->world);
    writers_find(t);
    t->saver = (Saver){.rank = r->rank, .alone = r->world == 1, .saved = -1};
    shards_cut(t->arena, t->state, t->nstate, &t->saver.shards);
    shards_deal(t->arena, &t->saver.shards, t->writes, r->world);
    if (t->writes[r->rank])
        saver_begin(t->ctx, t->arena, &t->saver, t->store, t->opt.keep, t->from ? t->at : -1, t->state);
}

uint32_t save_owner(const Train *t, size_t state) {
    const Shards *s = &t->saver.shards;
    for (size_t k = 0; k < s->n; k++)
        if (state < s->at[k].first + s->at[k].count)
            return s->at[k].owner;
    return 0;
}

// --- when ------------------------------------------------------------------------------------------

static void errors_tell(Train *t) { // of what was being written; the run goes on
    otrn_error err;
    char text[2400];
    if (saver_error(&t->saver, &err)) {
        otrn_error_print(&err, text, sizeof text);
        watch_say_here(t, "warning: %s", text);
    }
    bool again = saver_again(&t->saver);
    if (again && t->ranks.rank)
        watch_say_here(t, "its files of checkpoints can be written again");
    else if (again)
        watch_say_here(t, "checkpoints can be written again: step %lld is saved", (long long)saver_saved(&t->saver));
}

static void decide(void *arg, StepWord *mine, const StepWord *words) { // in process 0
    Train *t = arg;
    bool ready = t->open, writes = false, waits = false;
    for (uint32_t i = 0; i < t->ranks.world && t->saves; i++)
        if (t->writes[i]) {
            ready &= words[i].saver == SAVER_READY;
            writes |= words[i].saver == SAVER_WRITES, waits |= words[i].saver == SAVER_WAITS;
        }
    bool way = t->saves && (!t->store->kind->patient || (!writes && (!t->open || waits)));
    mine->commit = ready;
    mine->save = way && t->due && t->at < t->recipe.steps;
}

static void commit(Train *t) { // all shards are there
    const Shards *s = &t->saver.shards;
    size_t bytes = s->n * sizeof(uint32_t);
    uint32_t *mine = ARENA_NEWN(t->arena, uint32_t, s->n + 1), *all = ARENA_NEWN(t->arena, uint32_t, s->n * t->ranks.world + 1);
    for (size_t k = 0; k < s->n; k++)
        mine[k] = s->at[k].crc;
    ranks_bring(t->ctx, &t->ranks, mine, bytes, all);
    for (size_t k = 0; k < s->n && !t->ranks.rank; k++)
        s->at[k].crc = all[s->at[k].owner * s->n + k];
    if (t->saver.on)
        saver_commit(&t->saver);
    t->open = false;
}

// Waits for what is being written; true: all of it is there, and process 0 writes the manifest.
static bool settle(Train *t) {
    saver_wait(&t->saver);
    uint8_t good = !t->saver.on || saver_state(&t->saver) == SAVER_READY, *all = ARENA_NEWN(t->arena, uint8_t, t->ranks.world);
    ranks_bring(t->ctx, &t->ranks, &good, sizeof good, all);
    for (uint32_t i = 0; i < t->ranks.world && !t->ranks.rank; i++)
        good &= all[i];
    ranks_share(t->ctx, &t->ranks, &good, sizeof good);
    if (good)
        commit(t);
    return good;
}

static void save(Train *t) {
    t->due = false;
    mesh_collect(t);
    t->open = t->ranks.world > 1;
    if (!t->saver.on)
        return;
    Buf meta = {.arena = t->arena};
    recipe_print(&t->recipe, &t->data, &meta);
    buf_printf(&meta, ",\n \"loss\": %.9g", isfinite(t->loss) ? t->loss : 0);
    saver_save(&t->saver, t->at, buf_cstr(&meta));
}

bool save_agree(Train *t, StepWord *word, StepWord *words) {
    t->due = t->saves && (t->due || t->at % t->opt.every == 0);
    errors_tell(t);
    word->saver = saver_state(&t->saver);
    bool stop = ranks_agree(t->ctx, &t->ranks, word, words, decide, t);
    if (word->commit)
        commit(t);
    if (word->save && t->open)
        settle(t);
    if (word->save)
        save(t);
    return stop;
}

static void finish(Train *t) { // raises where it cannot be
    otrn_error err;
    if (!t->saver.on || saver_finish(&t->saver, &err))
        return;
    if (saver_saved(&t->saver) >= 0)
        snprintf(err.hint, sizeof err.hint, "step %lld is the last that is saved: when it can be written there, --resume goes on from it",
                 (long long)saver_saved(&t->saver));
    train_check(t, err.code, &err);
}

void save_last(Train *t) {
    if (!t->saves)
        return;
    if (t->open)
        settle(t);
    saver_wait(&t->saver);
    errors_tell(t);
    uint8_t there = saver_saved(&t->saver) == t->at;
    ranks_share(t->ctx, &t->ranks, &there, sizeof there);
    if (there)
        return;
    save(t);
    finish(t);
    if (t->open && settle(t))
        finish(t);
    errors_tell(t);
}
