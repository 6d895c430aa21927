// SPDX-License-Identifier: Apache-2.0
// s3_in.h — between the files of the S3 client: a request, its answer, errors.
#ifndef OTRN_TRAIN_S3_IN_H
#define OTRN_TRAIN_S3_IN_H

#include "base/md5.h"
#include "train/s3.h"

typedef struct S3Ask {
    const char *method, *name; // of the object, behind the prefix; NULL: the bucket
    const char *query;         // encoded, sorted by name, "": none
    const char *header;        // one more, NULL: none
    const Piece *pieces;
    size_t count, from, bytes;
} S3Ask;

const char *s3_encode(Arena *a, const char *text, bool slashes); // as signatures want it
void s3_md5(const Piece *pieces, size_t count, size_t from, size_t bytes, uint8_t out[MD5_BYTES]);
void s3_ask(Arena *a, S3 *s, const S3Ask *ask, HttpReply *out);
const char *s3_field(Arena *a, const char **at, const char *end, const char *name);
_Noreturn void s3_fail(Ctx *ctx, Arena *a, const S3 *s, const char *name, const char *what, const HttpReply *r);

#endif
