// SPDX-License-Identifier: Apache-2.0
// train.h — a training run: what it was asked, its state, and what it tells.
//
//   data ─► feed ─► step (compiled once, cached) ─► loss ─► watch: terminal, log, TensorBoard, Prometheus
//                    └ parameters and state, in place ─► saver: checkpoints beside it
//
// All that a step depends on is its number, the seed, and the state: a run that goes on from a checkpoint makes the same bits.
#ifndef OTRN_TRAIN_TRAIN_H
#define OTRN_TRAIN_TRAIN_H

#include <stdio.h>

#include "rt/lie.h"
#include "train/bpe.h"
#include "train/checkpoint.h"
#include "train/data.h"
#include "train/model.h"
#include "train/ranks.h"

typedef enum Schedule { SCHEDULE_COSINE, SCHEDULE_LINEAR, SCHEDULE_CONSTANT, SCHEDULE_COUNT } Schedule;
extern const char *const schedule_names[SCHEDULE_COUNT];

// What decides the numbers; a manifest has all of it, so that a run goes on without being told again.
typedef struct Recipe {
    Model model;
    int64_t steps, warmup, seed;
    Schedule schedule;
    double rate;
    Adam adam;
    const char *data;   // path, "": built in
    Bpe bpe;            // of text, when the model knows more tokens than bytes; count 0: tokens are bytes
    const char *folder; // of an exported step; NULL: a model of ours
} Recipe;

typedef struct TrainOptions { // what does not
    const char *checkpoint, *log, *tensorboard, *prometheus;
    int64_t every;
    uint64_t keep;
    bool resume;
    int64_t devices; // of this process
    bool terminal; // a progress line
    bool silent;   // not even quiet lines
    double max_comm; // share of the modelled step that collectives may take; below 0: nobody said
    int real;      // DT_F64: a model of ours in double precision; 0: f32
} TrainOptions;

typedef struct StepNote { // of one step, for who watches
    int64_t step;         // how many are done
    double loss, norm, rate, seconds;
    double before, fed, waited; // seconds of these: since the step before (copies for checkpoints, what is told), for inputs, for other processes
} StepNote;

typedef struct Watch { // see watch.h's functions below
    FILE *log, *board;
    const char *prometheus;
    bool terminal, line; // line: there is an unfinished one on the terminal
    int64_t steps, samples; // of the run; tokens or images of a step
    const char *unit;
    double begun, told, written, priced_us, usd_per_hour; // seconds; the modelled step, 0: not known
    const char *basis; // of the price; why, where it is not known
    double comm_share, engines[OTRN_ENGINES]; // of the modelled step
    const char *comm_note; // collectives take too much of it, and which; NULL: they do not
    double mean, spread; // of the loss, fading
    double pace;         // seconds a step takes, fading
    uint32_t slow, slow_steps; // a process that makes others wait, for how many steps in a row
    bool *stalled;             // of each process: told that it waits for its inputs
    int64_t first, spikes;
    VEC(StepNote) notes; // all of this process, for the page
} Watch;

typedef struct Train {
    Ctx *ctx;
    Arena *arena;
    otrn_env *env;
    Recipe recipe;
    TrainOptions opt;
    Data data;
    Step step;
    otrn_exe *exe;
    otrn_buffer *args, *results; // of all devices here, one behind the other
    bool mesh;                   // it was written for several devices, which have parts of its values
    Lie *lies;                   // of each argument
    otrn_buffer *whole;          // likewise, the first device's where it is not cut
    uint8_t *pack;               // parts on their way to process 0
    void *memory;
    Tensor *state; // whole: what checkpoints hold
    size_t nstate;
    int64_t at; // steps done
    double loss;
    Ranks ranks;
    Store *store; // of checkpoints; NULL: this process has none
    Saver saver;    // of this process' shards
    bool saves;     // there are checkpoints
    uint8_t *writes; // of each process: it writes some of their shards
    bool due;  // a checkpoint, as soon as there is a way
    bool open; // one is being written by several processes, and not whole yet
    Watch watch;
    const Checkpoint *from; // NULL: a new run
    bool stopped;           // by Ctrl-C
    double start_ms;        // until the first step began
} Train;

// Runs it; raises after tidying up. Everything it opened stays usable until train_end (the sample and the page need it).
void train_run(Train *t);
void train_end(Train *t);
void train_check(Train *t, otrn_status s, const otrn_error *err); // raises what a call has told
double train_rate(const Recipe *r, int64_t step);
// Recipe from a checkpoint's manifest; `given` has those members that were said again.
void recipe_print(const Recipe *r, const Data *d, Buf *out);
void recipe_parse(Ctx *ctx, Arena *a, const Checkpoint *c, Recipe *out);

// --- feed.c ----------------------------------------------------------------------------------------
void feed_step(Train *t);                 // inputs and rates of step t->at
void feed_state(Train *t);                // first values, or the checkpoint's

// --- mesh.c ----------------------------------------------------------------------------------------
void mesh_find(Train *t);                 // of a compiled step: its devices, and how its values lie on them. Raises USAGE
size_t mesh_pack_bytes(const Train *t);   // that t->pack needs
void mesh_spread(Train *t, size_t arg);   // the whole value to the devices here
void mesh_collect(Train *t);              // cut state of all devices, whole where it is written; all processes call it

// --- save.c ----------------------------------------------------------------------------------------
void save_begin(Train *t);                              // who writes what; all processes call it, and those below
bool save_agree(Train *t, StepWord *word, StepWord *words); // behind each step: whether to stop, and what is to be saved
void save_last(Train *t);                               // the end of a run is saved, or raises
uint32_t save_owner(const Train *t, size_t state);      // the process that writes this tensor

// --- watch.c ---------------------------------------------------------------------------------------
bool watch_dollars(const Train *t, double *out); // of the steps so far; false: no price is published
void watch_begin(Train *t);
void watch_step(Train *t, const StepNote *n);
void watch_ranks(Train *t, const StepWord *words); // behind a step: who is slow, whose inputs stall
void watch_say(Train *t, const char *fmt, ...) __attribute__((format(printf, 2, 3))); // a line for people
void watch_say_here(Train *t, const char *fmt, ...) __attribute__((format(printf, 2, 3))); // of this process, whichever it is
void watch_saved(Train *t); // the run is at its end, and that is saved
void watch_end(Train *t);

// --- text.c ----------------------------------------------------------------------------------------
// Text of a language model with these parameters, token by token; `prompt` first.
void text_write(Ctx *ctx, Arena *a, otrn_env *env, const Model *m, const Bpe *bpe, const Tensor *weights, size_t count, const char *prompt,
                int64_t bytes, double temperature, uint64_t seed, FILE *out);

// --- page.c ----------------------------------------------------------------------------------------
void page_write(Train *t, const char *path);

#endif
