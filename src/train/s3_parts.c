// SPDX-License-Identifier: Apache-2.0
// s3_parts.c — large objects in parts: those that the server has already, by their MD5, are not sent again.
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "train/s3_in.h"

#define PARTS_MAX 9000 // S3 takes 10000

typedef struct Upload {
    const char *name, *id;
    const Piece *pieces;
    size_t count, bytes, part_bytes, parts;
    const char **etags; // of parts that are there; NULL: not yet
} Upload;

typedef VEC(Upload) Uploads;

static void uploads_list(Ctx *ctx, Arena *a, S3 *s, const char *start, Uploads *out) {
    HttpReply r;
    s3_ask(a, s, &(S3Ask){.method = "GET", .query = arena_printf(a, "prefix=%s&uploads=", s3_encode(a, arena_printf(a, "%s%s", s->prefix, start), false))}, &r);
    if (r.status == 404 || r.status == 501 || r.status == 405) // a server without them: nothing is resumed
        return;
    if (r.status != 200)
        s3_fail(ctx, a, s, start, "list uploads", &r);
    const char *at = r.body, *end = r.body + r.bytes, *name, *id;
    while ((name = s3_field(a, &at, end, "Key")) && (id = s3_field(a, &at, end, "UploadId")))
        if (!strncmp(name, s->prefix, strlen(s->prefix)))
            VEC_PUSH(a, out, (Upload){.name = name + strlen(s->prefix), .id = id});
}

static const char *id_query(Arena *a, const char *id) { return arena_printf(a, "uploadId=%s", s3_encode(a, id, false)); }

static const char *hex(Arena *a, const uint8_t *p, size_t n) {
    Buf b = {.arena = a};
    for (size_t i = 0; i < n; i++)
        buf_printf(&b, "%02x", p[i]);
    return buf_cstr(&b);
}

// What the server has of it. Only parts with our bytes count.
static void parts_list(Arena *a, S3 *s, Upload *u, const char **there) {
    const char *from = "", *next, *before = "";
    do {
        HttpReply r;
        s3_ask(a, s, &(S3Ask){.method = "GET", .name = u->name, .query = arena_printf(a, "%s%s", from, id_query(a, u->id))}, &r);
        if (r.status != 200)
            return;
        const char *at = r.body, *end = r.body + r.bytes, *number;
        next = s3_field(a, &at, end, "NextPartNumberMarker");
        const char *more = (at = r.body, s3_field(a, &at, end, "IsTruncated"));
        bool goes_on = next && more && !strcmp(more, "true") && strcmp(next, before); // one that repeats itself has no more to say
        before = next;
        from = goes_on ? arena_printf(a, "part-number-marker=%s&", s3_encode(a, next, false)) : "";
        at = strstr(r.body, "<Part>");
        while (at && (number = s3_field(a, &at, end, "PartNumber"))) {
            size_t i = strtoul(number, NULL, 10) - 1;
            const char *until = strstr(at, "</Part>"), *tag = until ? s3_field(a, &at, until, "ETag") : NULL;
            if (tag && i < u->parts)
                there[i] = *tag == '"' ? arena_strndup(a, tag + 1, strcspn(tag + 1, "\"")) : tag;
            at = until;
        }
    } while (*from);
}

static size_t part_bytes(const Upload *u, size_t i) {
    size_t from = i * u->part_bytes;
    return u->bytes - from < u->part_bytes ? u->bytes - from : u->part_bytes;
}

static void part_send(Ctx *ctx, Arena *a, S3 *s, Upload *u, size_t i, const char *there) {
    uint8_t md5[MD5_BYTES];
    s3_md5(u->pieces, u->count, i * u->part_bytes, part_bytes(u, i), md5);
    const char *ours = hex(a, md5, sizeof md5);
    u->etags[i] = ours;
    if (there && !strcmp(there, ours))
        return;
    HttpReply r;
    s3_ask(a, s, &(S3Ask){.method = "PUT", .name = u->name, .query = arena_printf(a, "partNumber=%zu&%s", i + 1, id_query(a, u->id)),
                          .pieces = u->pieces, .count = u->count, .from = i * u->part_bytes, .bytes = part_bytes(u, i)}, &r);
    if (r.status != 200)
        s3_fail(ctx, a, s, u->name, "write a part of it", &r);
    if (*r.etag)
        u->etags[i] = arena_strndup(a, r.etag, strlen(r.etag)); // where encryption makes it something else
}

static void upload_begin(Ctx *ctx, Arena *a, S3 *s, Upload *u, const char **there) {
    Uploads open = {0};
    uploads_list(ctx, a, s, u->name, &open);
    for (uint32_t i = 0; i < open.n && !u->id; i++)
        if (!strcmp(open.at[i].name, u->name)) {
            u->id = open.at[i].id;
            parts_list(a, s, u, there);
        }
    if (u->id)
        return;
    HttpReply r;
    s3_ask(a, s, &(S3Ask){.method = "POST", .name = u->name, .query = "uploads="}, &r);
    const char *at = r.body;
    if (r.status != 200 || !(u->id = s3_field(a, &at, r.body + r.bytes, "UploadId")))
        s3_fail(ctx, a, s, u->name, "begin to write it", &r);
}

static void upload_end(Ctx *ctx, Arena *a, S3 *s, const Upload *u) {
    Buf b = {.arena = a};
    buf_puts(&b, "<CompleteMultipartUpload>");
    for (size_t i = 0; i < u->parts; i++)
        buf_printf(&b, "<Part><PartNumber>%zu</PartNumber><ETag>\"%s\"</ETag></Part>", i + 1, u->etags[i]);
    buf_puts(&b, "</CompleteMultipartUpload>");
    HttpReply r;
    s3_ask(a, s, &(S3Ask){.method = "POST", .name = u->name, .query = id_query(a, u->id), .pieces = &(Piece){b.at, b.n}, .count = 1, .bytes = b.n}, &r);
    if (r.status != 200 || strstr(r.body, "<Error>")) // it may be told behind a good status
        s3_fail(ctx, a, s, u->name, "put its parts together", &r);
}

void s3_put(Ctx *ctx, Arena *a, S3 *s, const char *name, const Piece *pieces, size_t count) {
    Upload u = {.name = name, .pieces = pieces, .count = count, .part_bytes = S3_PART_BYTES};
    for (size_t i = 0; i < count; i++)
        u.bytes += pieces[i].bytes;
    if (u.bytes <= S3_PART_BYTES) {
        HttpReply r;
        s3_ask(a, s, &(S3Ask){.method = "PUT", .name = name, .query = "", .pieces = pieces, .count = count, .bytes = u.bytes}, &r);
        if (r.status != 200)
            s3_fail(ctx, a, s, name, "write it", &r);
        return;
    }
    while (u.bytes / u.part_bytes >= PARTS_MAX)
        u.part_bytes *= 2;
    u.parts = (u.bytes + u.part_bytes - 1) / u.part_bytes;
    u.etags = ARENA_NEWN(a, const char *, u.parts);
    const char **there = ARENA_NEWN(a, const char *, u.parts);
    upload_begin(ctx, a, s, &u, there);
    for (size_t i = 0; i < u.parts; i++)
        part_send(ctx, a, s, &u, i, there[i]);
    upload_end(ctx, a, s, &u);
}

void s3_uploads_end(Ctx *ctx, Arena *a, S3 *s, bool (*goes)(const char *name, void *arg), void *arg) {
    Uploads open = {0};
    uploads_list(ctx, a, s, "", &open);
    for (uint32_t i = 0; i < open.n; i++)
        if (goes(open.at[i].name, arg)) {
            HttpReply r;
            s3_ask(a, s, &(S3Ask){.method = "DELETE", .name = open.at[i].name, .query = id_query(a, open.at[i].id)}, &r);
            if (r.status != 204 && r.status != 200 && r.status != 404)
                s3_fail(ctx, a, s, open.at[i].name, "end its upload", &r);
        }
}
