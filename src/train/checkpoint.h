// SPDX-License-Identifier: Apache-2.0
// checkpoint.h — the state of a run in a folder: complete and right, or not there.
//
//   DIR/step-00000300/shard-00000-of-00002.safetensors …   tensors, at most SHARD_BYTES a file unless one is larger
//   DIR/step-00000300/manifest.json                        what they belong to, and a checksum of each file and of itself
//
// A checkpoint is written under another name, every file and the folder flushed, then renamed, and DIR flushed: whatever ends the
// process or the machine, a folder with the right name has all of it. One that goes is renamed first. What storage damages
// later is found by the checksums, and the one before it is used.
#ifndef OTRN_TRAIN_CHECKPOINT_H
#define OTRN_TRAIN_CHECKPOINT_H

#include <pthread.h>

#include "base/json.h"
#include "train/safetensors.h"

typedef struct Checkpoint {
    int64_t step;
    const char *path;
    const Json *manifest;
    Tensor *tensors;
    size_t count;
} Checkpoint;

// The newest that is good; false: there is none. What is wrong with newer ones is told in `complaints`, a line each.
bool checkpoint_newest(Ctx *ctx, Arena *a, const char *folder, Checkpoint *out, Buf *complaints);
// Writes one; `meta` are members of the manifest ("\"model\": {…}, …"). Raises IO with what to do, and nothing is left of it.
void checkpoint_write(Ctx *ctx, Arena *a, const char *folder, int64_t step, const char *meta, const Tensor *tensors, size_t count);
void checkpoint_keep(Ctx *ctx, Arena *a, const char *folder, uint64_t keep); // the newest stay; 0: all
void checkpoint_aside(Ctx *ctx, Arena *a, const char *folder, int64_t step); // newer ones, which are damaged, become damaged-step-…

// Writes beside training: one copy of the state, one thread. A save waits for the one before it.
typedef struct Saver {
    const char *folder;
    uint64_t keep;
    const Tensor *live; // what is copied
    size_t count, bytes;
    Tensor *copy;
    uint8_t *memory;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool on, busy, stop;
    int lock_fd;        // one run writes to a folder
    int64_t step;       // of the copy
    char *meta;
    int64_t saved;      // see saver_saved
    otrn_error err;     // of the last save, not yet told
} Saver;
void saver_begin(Ctx *ctx, Arena *a, Saver *s, const char *folder, uint64_t keep, int64_t saved, const Tensor *live,
                 size_t count);
void saver_save(Saver *s, int64_t step, const char *meta); // returns when the copy is made
void saver_wait(Saver *s);                                 // until it is on disk, or failed
bool saver_error(Saver *s, otrn_error *out);               // once each
int64_t saver_saved(Saver *s);                             // last step that is on disk; -1: none
void saver_end(Saver *s);

#endif
