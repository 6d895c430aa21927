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
    uint32_t owner;           // the process that writes it
    uint32_t crc;
} Shard;
typedef struct Shards {
    Shard *at;
    size_t n;
} Shards;
// Files for these tensors, the same whoever writes them: about eight, of sizes that are worth one.
void shards_cut(Arena *a, const Tensor *tensors, size_t count, Shards *out);
void shards_deal(Arena *a, const Shards *shards, const uint8_t *writes, uint32_t world); // among those processes that write, about as much each
// Writes one: all bytes of a shard, which gets its checksum; when they are there, the manifest. `meta` are members of it
// ("\"model\": {…}, …"). Raise IO with what to do.
void shard_put(Ctx *ctx, Arena *a, Store *s, int64_t step, Shard *shard, const uint8_t *bytes);
void checkpoint_commit(Ctx *ctx, Arena *a, Store *s, int64_t step, const char *meta, const Shards *shards);
void checkpoint_keep(Ctx *ctx, Arena *a, Store *s, uint64_t keep); // the newest stay; 0: all
void checkpoint_aside(Ctx *ctx, Arena *a, Store *s, int64_t step); // newer ones, which are damaged, get another name

// Writes beside training: one copy of the state, one thread. A save that fails is tried again, with the newest state by then. Each of
// several processes has one, for the shards it owns; when all are READY, process 0's writes the manifest (save.c).
typedef enum SaverState { SAVER_IDLE, SAVER_WRITES, SAVER_WAITS, SAVER_READY } SaverState; // WAITS: to try again
typedef struct Saver {
    Store *store;
    uint64_t keep;
    const Tensor *live; // what is copied
    Shards shards;
    uint32_t rank;
    bool alone;
    uint8_t **image; // of each shard: the file as it will be; NULL: another's
    uint8_t *memory;
    size_t bytes;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool on, stop;
    SaverState state;
    bool commits;       // the shards are there, the manifest is next
    int64_t step;       // of the copy
    char *meta;
    int64_t saved;      // see saver_saved
    otrn_error err;     // of the last save
    otrn_error first;   // of those that failed in a row
    unsigned failures;  // in a row
    bool untold, again; // what saver_error and saver_again tell, once each
} Saver;
void saver_begin(Ctx *ctx, Arena *a, Saver *s, Store *store, uint64_t keep, int64_t saved, const Tensor *live); // with shards, rank and alone
void saver_save(Saver *s, int64_t step, const char *meta); // returns when the copy is made, behind a save that is under way
SaverState saver_state(Saver *s);
void saver_commit(Saver *s);                 // READY: process 0 writes the manifest, the others have done their part
void saver_wait(Saver *s);                   // until what is being written is there, or has failed once
bool saver_finish(Saver *s, otrn_error *why); // until it is there; false: no longer worth waiting for
bool saver_error(Saver *s, otrn_error *out); // the first of several failures in a row
bool saver_again(Saver *s);                  // saving works again
int64_t saver_saved(Saver *s);               // last step that is there; -1: none
void saver_end(Saver *s);

#endif
