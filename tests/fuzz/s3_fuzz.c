// SPDX-License-Identifier: Apache-2.0
// s3_fuzz.c — an S3 server that answers anything: lists, parts, uploads and errors in damaged XML, behind statuses that do not fit.
//
// The functions of train/http.h are this file's: the answers are the input, one behind the other, cut at zero bytes; the first byte of
// each chooses its status. When there are no more the server says 404.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "tests/fuzz/fuzz.h"
#include "train/checkpoint.h"
#include "train/s3_in.h"

const char *const fuzz_seeds[] = {"tests/train/data/s3_list.xml", "tests/train/data/s3_uploads.xml", "tests/train/data/s3_parts.xml",
                                  "tests/train/data/s3_error.xml", "tests/train/data/checkpoint.json", NULL};

struct Http {
    const uint8_t *at, *end;
    char *body;
    size_t calls;
};

Http *http_open(char *why, size_t why_bytes) {
    (void)why, (void)why_bytes;
    return NULL;
}

void http_close(Http *h) { (void)h; }

void http_call(Http *h, const HttpCall *call, HttpReply *out) {
    static const long statuses[] = {200, 200, 200, 200, 204, 403, 404, 412, 501, 507};
    (void)call;
    if (++h->calls > 2000)
        abort(); // a client that asks for ever
    *out = (HttpReply){.status = 404, .body = h->body};
    size_t n = (size_t)(h->end - h->at), used = n ? strnlen((const char *)h->at + 1, n - 1) : 0;
    if (n) {
        out->status = statuses[*h->at % (sizeof statuses / sizeof *statuses)];
        memcpy(h->body, h->at + 1, used);
        h->at += used + 2 < n ? used + 2 : n;
    }
    h->body[used] = 0, out->bytes = used;
    snprintf(out->etag, sizeof out->etag, "%s", h->body);
}

static bool every(const char *name, void *arg) {
    (void)arg;
    return *name;
}

static void ask_all(Ctx *ctx, Arena *a, S3 *s) {
    static const uint8_t large[S3_PART_BYTES + 1]; // two parts
    jmp_buf jb;
    S3Names names = {0};
    size_t bytes;
    if (CTX_TRY(ctx, jb))
        s3_list(ctx, a, s, "step-", &names);
    if (CTX_TRY(ctx, jb))
        s3_uploads_end(ctx, a, s, every, NULL);
    if (CTX_TRY(ctx, jb))
        s3_put_new(ctx, a, s, "manifest.json", "{}", 2);
    if (CTX_TRY(ctx, jb))
        s3_get(ctx, a, s, "manifest.json", &bytes);
    if (CTX_TRY(ctx, jb))
        s3_remove(ctx, a, s, "x");
    if (s->http->end - s->http->at > 1 && *s->http->at == '@' && s->http->end[-1] % 16 == 14 && CTX_TRY(ctx, jb)) // its MD5 takes long
        s3_put(ctx, a, s, "large", &(Piece){large, sizeof large}, 1);
}

static void checkpoint_find(Ctx *ctx, Arena *a, const S3 *s3) {
    jmp_buf jb;
    Store store = {.kind = &store_s3, .where = "s3://b/run", .lock_fd = -1, .s3 = *s3};
    Checkpoint c;
    Buf complaints = {.arena = a};
    if (CTX_TRY(ctx, jb))
        checkpoint_newest(ctx, a, &store, &c, &complaints);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Ctx ctx = {0};
    Arena *a = fuzz_arena(&ctx);
    Http http = {data, data + size, arena_alloc(a, size + 2), 0};
    S3 s = {.http = &http, .scheme = "http", .host = "h", .root = "/b", .bucket = "b", .prefix = "run/", .region = "r", .key = "k", .secret = "s", .token = ""};
    ask_all(&ctx, a, &s);
    http = (Http){data, data + size, http.body, 0};
    checkpoint_find(&ctx, a, &s);
    return 0;
}
