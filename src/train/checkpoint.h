// SPDX-License-Identifier: Apache-2.0
// checkpoint.h — the state of a run in a store: complete and right, or not there.
//
//   step-00000300/shard-00000-of-00002.safetensors …   tensors, some MB a file unless one is larger
//   step-00000300/manifest.json                        what they belong to, and a checksum of each file and of itself
//
// The store (store.h) sees to it that one that is there is whole, whatever ends the process or the machine. What storage damages
// later is found by the checksums, and the one before it is used.
#ifndef OTRN_TRAIN_CHECKPOINT_H
#define OTRN_TRAIN_CHECKPOINT_H

#include <pthread.h>

#include "base/json.h"
#include "train/safetensors.h"
#include "train/store.h"

typedef struct Checkpoint {
    int64_t step;
    const char *path;
    const Json *manifest;
    const char *text; // of the manifest
    Tensor *tensors;
    size_t count;
} Checkpoint;

// The newest that is good; false: there is none. What is wrong with newer ones is told in `complaints`, a line each.
bool checkpoint_newest(Ctx *ctx, Arena *a, Store *s, Checkpoint *out, Buf *complaints);
// What manifest.json holds, its text with a zero behind it. Raises PARSE or VERSION.
const Json *checkpoint_manifest(Ctx *ctx, Arena *a, const char *path, const char *text, size_t size);

typedef struct Shard { // a file
    const char *name;
    size_t first, count;      // of its tensors
    const uint8_t *head;
    size_t head_bytes, bytes; // bytes: of all
    uint32_t crc;
} Shard;
typedef struct Shards {
    Shard *at;
    size_t n;
} Shards;
// Files for these tensors, the same whoever writes them: about eight, of sizes that are worth one.
void shards_cut(Arena *a, const Tensor *tensors, size_t count, Shards *out);
// Writes one: all bytes of a shard, which gets its checksum; when they are there, the manifest. `meta` are members of it
// ("\"model\": {…}, …"). Raise IO with what to do.
void shard_put(Ctx *ctx, Arena *a, Store *s, int64_t step, Shard *shard, const uint8_t *bytes);
void checkpoint_commit(Ctx *ctx, Arena *a, Store *s, int64_t step, const char *meta, const Shards *shards);
void checkpoint_keep(Ctx *ctx, Arena *a, Store *s, uint64_t keep); // the newest stay; 0: all
void checkpoint_aside(Ctx *ctx, Arena *a, Store *s, int64_t step); // newer ones, which are damaged, get another name

// Writes beside training: one copy of the state, one thread. A save that fails is tried again, with the newest state by then.
typedef enum SaverState { SAVER_IDLE, SAVER_WRITES, SAVER_WAITS } SaverState; // WAITS: to try again
typedef struct Saver {
    Store *store;
    uint64_t keep;
    const Tensor *live; // what is copied
    Shards shards;
    uint8_t **image; // of each shard: the file as it will be
    uint8_t *memory;
    size_t bytes;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool on, stop;
    SaverState state;
    int64_t step;       // of the copy
    char *meta;
    int64_t saved;      // see saver_saved
    otrn_error err;     // of the last save
    otrn_error first;   // of those that failed in a row
    unsigned failures;  // in a row
    bool untold, again; // what saver_error and saver_again tell, once each
} Saver;
void saver_begin(Ctx *ctx, Arena *a, Saver *s, Store *store, uint64_t keep, int64_t saved, const Tensor *live, size_t count);
void saver_save(Saver *s, int64_t step, const char *meta); // returns when the copy is made, behind a save that is under way
bool saver_free(Saver *s);                   // false: that would hold up the run
void saver_wait(Saver *s);                   // until what is being written is there, or has failed once
bool saver_finish(Saver *s, otrn_error *why); // until it is there; false: no longer worth waiting for
bool saver_error(Saver *s, otrn_error *out); // the first of several failures in a row
bool saver_again(Saver *s);                  // saving works again
int64_t saver_saved(Saver *s);               // last step that is there; -1: none
void saver_end(Saver *s);

#endif
