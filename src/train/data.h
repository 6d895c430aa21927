// SPDX-License-Identifier: Apache-2.0
// data.h — what a model learns from: tokens or images, in an order that the seed and the step decide.
//
// Files are told apart by content and name: IDX images (labels lie beside them), .npy and .bin token files, all else text, a
// token per byte. A folder has PNG images in a folder for each class. Without a file: opentrn's own documents, and digits that are drawn here. Nothing is remembered between
// steps: sample n of a run is a function of seed and n, so a run that goes on sees what it would have seen.
#ifndef OTRN_TRAIN_DATA_H
#define OTRN_TRAIN_DATA_H

#include "base/arena.h"
#include "base/ctx.h"

#define DATA_BYTES 256 // tokens of text
#define DATA_SIDE 16   // of drawn digits
#define DATA_DIGITS 10

typedef struct Data {
    const char *name;      // for messages
    bool images, text; // text: a token is a byte of it, unless pairs of them were learnt
    const uint8_t *at;     // first token or pixel; NULL: digits drawn here
    const uint8_t *labels; // of images
    int token_bytes;       // 1, 2, 4 or 8
    int64_t count;         // tokens or images
    int64_t height, width;
    int64_t classes;       // of a folder of images; 0: DATA_DIGITS
    uint32_t print;        // of its contents, to know it again
    struct {
        void *at;
        size_t bytes;
    } maps[2];
    bool streams; // samples are read from `fd`, whose byte `offset` is at[0]: a file that is cut meanwhile is an error, not a signal
    int fd;
    int64_t offset;
} Data;

// Raises IO or PARSE with the path. `path` "": what is built in.
void data_open(Ctx *ctx, Arena *a, const char *path, bool images, Data *out);
void data_close(Data *d);
void data_become(Data *d, const uint32_t *tokens, size_t count); // what the text was made into
// Sample n of the run: `seq` tokens; raises when one is not below vocab, or the file is too short.
void data_tokens(Ctx *ctx, Arena *scratch, const Data *d, uint64_t seed, uint64_t n, int64_t seq, int64_t vocab, int32_t *out);
// Pixels from 0 to 1, and the label. Both read into `scratch`; raise IO when the file no longer has them.
int32_t data_image(Ctx *ctx, Arena *scratch, const Data *d, uint64_t seed, uint64_t n, float *pixels);

// A folder of images; Raises IO, PARSE or ARGUMENT with the file.
bool data_is_folder(const char *path);
void data_folder(Ctx *ctx, Arena *a, const char *path, Data *out);

// --- for tests -------------------------------------------------------------------------------------
uint64_t data_order(uint64_t seed, uint64_t epoch, uint64_t i, uint64_t count); // a permutation of 0 … count-1
bool data_parse(Ctx *ctx, const char *path, const uint8_t *bytes, size_t size, Data *out); // false: plain text

#endif
