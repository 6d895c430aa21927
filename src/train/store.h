// SPDX-License-Identifier: Apache-2.0
// store.h — where checkpoints lie: a folder, or a bucket of an S3 server. One that is there is whole.
//
//   folder   files of a step lie in .part-RUN-step-…, flushed, which is renamed when all are there, and the folder flushed
//   S3       objects of a step, then its manifest, which is written only where none is: without it the others are nothing
//
// One that goes loses its name, or its manifest, first. Several processes may put files of one step; one of them, which claims the
// store, commits them, when all are there.
#ifndef OTRN_TRAIN_STORE_H
#define OTRN_TRAIN_STORE_H

#include "train/s3.h"

#define STORE_MANIFEST "manifest.json"
#define STORE_BLOCK ((size_t)4096) // bytes that begin at a multiple of it are written to a folder without a copy

typedef struct Store Store;

typedef struct StoreKind {
    const char *name;
    bool patient; // what fails may go by itself, and waiting for it must not hold up a run
    void (*claim)(Ctx *ctx, Arena *a, Store *s);
    void (*mark)(Ctx *ctx, Arena *a, Store *s, bool there); // by the name of the run, for processes that look whether they see the same store
    bool (*sees)(Ctx *ctx, Arena *a, Store *s);
    int64_t *(*steps)(Ctx *ctx, Arena *a, Store *s, uint32_t *count);
    const void *(*read)(Ctx *ctx, Arena *a, Store *s, int64_t step, const char *name, size_t *bytes);
    void (*begin)(Ctx *ctx, Arena *a, Store *s, int64_t step);
    void (*put)(Ctx *ctx, Arena *a, Store *s, int64_t step, const char *name, const Piece *all);
    void (*commit)(Ctx *ctx, Arena *a, Store *s, int64_t step, const Piece *manifest);
    void (*undo)(Arena *a, Store *s, int64_t step);
    void (*drop)(Ctx *ctx, Arena *a, Store *s, int64_t step);
    void (*aside)(Ctx *ctx, Arena *a, Store *s, int64_t step);
    void (*close)(Store *s);
} StoreKind;

struct Store {
    const StoreKind *kind;
    const char *where; // as it was named
    char run[20];      // a name for what this run writes there
    int lock_fd;       // of a folder: one run writes there; -1: not claimed
    S3 s3;
};

// Raises USAGE or UNSUPPORTED; asks nobody yet.
void store_open(Ctx *ctx, Arena *a, const Options *o, const char *where, Store *out);
static inline void store_close(Store *s) {
    if (s->kind)
        s->kind->close(s);
}
char *store_step_name(Arena *a, int64_t step);
bool store_step_parse(const char *name, const char **rest, int64_t *step); // rest: behind the number

extern const StoreKind store_folder, store_s3;

#endif
