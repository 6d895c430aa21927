// SPDX-License-Identifier: Apache-2.0
// ranks.h — a run over several processes: each has some of its devices, and they agree before every step.
//
// What started them (otrn launch, torchrun, srun, mpirun) says who they are and where they meet (rt/job.h). Process 0 reads
// checkpoints and tells how it goes; the others get its manifest and its state, and those that see its folder write checkpoints with it
// (save.c). Device d of all has rows d of the batch, wherever it is: the same bits for every layout.
#ifndef OTRN_TRAIN_RANKS_H
#define OTRN_TRAIN_RANKS_H

#include "base/opt.h"
#include "base/arena.h"
#include "rt/rt.h"

typedef struct Ranks {
    uint32_t rank, world;
    int64_t here, first, devices; // of this process; the first of them; of all
    struct Net *net;              // NULL: this process is alone
    struct NetRoot *root;
    RtSpread spread;
    bool said;                    // how many, not just the usual one
    bool meets;                   // in a step or a talk with the others
} Ranks;

#define RANKS_ALONE ((Ranks){.world = 1, .here = 1, .devices = 1})

typedef struct StepWord { // what a process says behind each step
    uint32_t stop;        // it was asked to
    uint32_t saver;       // a SaverState
    uint32_t save;        // of process 0: a checkpoint is made of this step
    uint32_t commit;      // likewise: the one before is there but for its manifest
    float fed, own;       // seconds: until its inputs were there; of its own work, without waiting for others
    float waited;         // for others, the longest wait
    char at[96];          // where that was
} StepWord;

// A process that makes the others wait: its work took more than twice theirs, and time that somebody notices.
bool ranks_slow(const StepWord *words, uint32_t n, uint32_t *who, double *others);
bool ranks_stalled(const StepWord *w); // most of its work was waiting for inputs

// Meets the others; alone when nothing says that there are any. Raises with who is missing.
void ranks_join(Ctx *ctx, Arena *a, const Options *o, const char *chip, Ranks *out);
void ranks_leave(Ranks *r, bool good); // good: the others need not worry
bool ranks_lost(const Ranks *r);       // behind a failure: another process is gone, or goes now because it failed
// Process 0's bytes are everybody's.
void ranks_share(Ctx *ctx, Ranks *r, void *data, size_t bytes);
const char *ranks_share_text(Ctx *ctx, Arena *a, Ranks *r, const char *text); // NULL goes too
// `bytes` of each device's to process `to`: `pack` has those of the devices here, there it has room for all and not its own.
void ranks_gather(Ctx *ctx, Ranks *r, uint32_t to, uint8_t *pack, size_t bytes);
void ranks_bring(Ctx *ctx, Ranks *r, const void *mine, size_t bytes, void *all); // of each process, to process 0
// Everybody's word to process 0, and back whether one of them was asked to stop, and what process 0 decides then, `save` and `commit`;
// `words`: of all, in process 0.
typedef void RanksDecide(void *arg, StepWord *mine, const StepWord *words);
bool ranks_agree(Ctx *ctx, Ranks *r, StepWord *mine, StepWord *words, RanksDecide *decide, void *arg);

#endif
