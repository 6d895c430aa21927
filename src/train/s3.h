// SPDX-License-Identifier: Apache-2.0
// s3.h — objects in a bucket: listed, read, written whole or not at all, removed.
//
// Requests are signed (Signature Version 4) and carry an MD5 of their body, which the server checks. A server that is away,
// overloaded or cuts the connection is asked again a few times; what then still fails is an error. Large objects go up in parts, and
// parts that an earlier attempt, of this process or of one that was killed, has left there are not sent again.
#ifndef OTRN_TRAIN_S3_H
#define OTRN_TRAIN_S3_H

#include "base/opt.h"
#include "train/http.h"
#include "base/arena.h"

#define S3_PART_BYTES ((size_t)16 << 20)

typedef struct S3 {
    Http *http;
    const char *scheme, *host, *root; // root: what stands before an object's name in a path
    const char *bucket, *prefix;      // prefix: "" or it ends with a slash
    const char *region, *key, *secret, *token;
    bool passing; // what failed last may go by itself: no connection, an overloaded server
} S3;

typedef VEC(const char *) S3Names;

bool s3_is(const char *where); // s3://…
// Raises USAGE when the address, the credentials or libcurl are missing. `o`'s texts must live as long as it does.
void s3_open(Ctx *ctx, Arena *a, const Options *o, const char *where, S3 *out);
void s3_close(S3 *s);
// Names (behind the prefix) that begin with `start`.
void s3_list(Ctx *ctx, Arena *a, S3 *s, const char *start, S3Names *out);
const void *s3_get(Ctx *ctx, Arena *a, S3 *s, const char *name, size_t *bytes);
void s3_put(Ctx *ctx, Arena *a, S3 *s, const char *name, const Piece *pieces, size_t count);
// Only where nothing is; false: something else is there already. What is there with the same bytes was put by us.
bool s3_put_new(Ctx *ctx, Arena *a, S3 *s, const char *name, const void *bytes, size_t n);
void s3_remove(Ctx *ctx, Arena *a, S3 *s, const char *name);
// Uploads that were begun, for names for which `goes` is true, and never ended.
void s3_uploads_end(Ctx *ctx, Arena *a, S3 *s, bool (*goes)(const char *name, void *arg), void *arg);

#endif
