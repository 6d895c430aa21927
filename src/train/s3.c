// SPDX-License-Identifier: Apache-2.0
// s3.c — requests to an S3 server: signing, asking again, and what its answers mean.
#include "train/s3.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "base/md5.h"
#include "base/sha256.h"
#include "train/s3_in.h"

#define TRIES 4
#define FIRST_WAIT_MS 200 // doubles

// --- signing ---------------------------------------------------------------------------------------

static Sha256 hmac(Arena *a, const void *key, size_t nkey, const char *text) {
    size_t n = strlen(text);
    uint8_t *in = arena_zalloc(a, 64 + n), out[64 + SHA256_BYTES] = {0};
    Sha256 hashed = sha256(key, nkey);
    if (nkey > 64)
        key = hashed.at, nkey = SHA256_BYTES;
    memcpy(in, key, nkey), memcpy(out, key, nkey);
    for (int i = 0; i < 64; i++)
        in[i] ^= 0x36, out[i] ^= 0x5c;
    memcpy(in + 64, text, n);
    Sha256 inner = sha256(in, 64 + n);
    memcpy(out + 64, inner.at, SHA256_BYTES);
    return sha256(out, sizeof out);
}

static const char *base64(Arena *a, const uint8_t *p, size_t n) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    Buf b = {.arena = a};
    for (size_t i = 0; i < n; i += 3) {
        uint32_t v = (uint32_t)p[i] << 16 | (i + 1 < n ? (uint32_t)p[i + 1] << 8 : 0) | (i + 2 < n ? p[i + 2] : 0);
        for (size_t k = 0; k < 4; k++)
            put_u8(&b, i + k <= n ? (uint8_t)digits[v >> (18 - 6 * k) & 63] : '=');
    }
    return buf_cstr(&b);
}

const char *s3_encode(Arena *a, const char *text, bool slashes) {
    Buf b = {.arena = a};
    for (const uint8_t *p = (const uint8_t *)text; *p; p++)
        if (isalnum(*p) || strchr("-._~", *p) || (slashes && *p == '/'))
            put_u8(&b, *p);
        else
            buf_printf(&b, "%%%02X", *p);
    return buf_cstr(&b);
}

typedef VEC(const char *) Headers;

// Adds what proves who asks. `path` and `query` are encoded, the query sorted by name.
static void sign(Arena *a, const S3 *s, const S3Ask *ask, const char *path, const char *md5, Headers *out) {
    time_t now = time(NULL);
    struct tm utc;
    char date[16], stamp[32], hex[SHA256_TEXT];
    gmtime_r(&now, &utc);
    strftime(date, sizeof date, "%Y%m%d", &utc), strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &utc);
    const char *token = *s->token ? arena_printf(a, "x-amz-security-token:%s\n", s->token) : "";
    const char *names = arena_printf(a, "%shost;x-amz-content-sha256;x-amz-date%s", md5 ? "content-md5;" : "", *token ? ";x-amz-security-token" : "");
    const char *canonical = arena_printf(a, "%s\n%s\n%s\n%s%s%shost:%s\nx-amz-content-sha256:UNSIGNED-PAYLOAD\nx-amz-date:%s\n%s\n%s\nUNSIGNED-PAYLOAD",
                                         ask->method, path, ask->query, md5 ? "content-md5:" : "", md5 ? md5 : "", md5 ? "\n" : "", s->host, stamp, token, names);
    Sha256 h = sha256(canonical, strlen(canonical));
    sha256_print(&h, hex);
    const char *scope = arena_printf(a, "%s/%s/s3/aws4_request", date, s->region);
    const char *secret = arena_printf(a, "AWS4%s", s->secret);
    h = hmac(a, secret, strlen(secret), date);
    const char *chain[] = {s->region, "s3", "aws4_request", arena_printf(a, "AWS4-HMAC-SHA256\n%s\n%s\n%s", stamp, scope, hex)};
    for (size_t i = 0; i < 4; i++)
        h = hmac(a, h.at, SHA256_BYTES, chain[i]);
    sha256_print(&h, hex);
    VEC_PUSH(a, out, arena_printf(a, "Authorization: AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%s", s->key, scope, names, hex));
    VEC_PUSH(a, out, arena_printf(a, "x-amz-date: %s", stamp));
    VEC_PUSH(a, out, "x-amz-content-sha256: UNSIGNED-PAYLOAD");
    if (md5)
        VEC_PUSH(a, out, arena_printf(a, "Content-MD5: %s", md5));
    if (*s->token)
        VEC_PUSH(a, out, arena_printf(a, "x-amz-security-token: %s", s->token));
}

// --- asking ----------------------------------------------------------------------------------------

void s3_md5(const Piece *pieces, size_t count, size_t from, size_t bytes, uint8_t out[MD5_BYTES]) {
    Md5 m;
    md5_init(&m);
    for (size_t i = 0; i < count && bytes; i++) {
        size_t n = pieces[i].bytes;
        if (from >= n) {
            from -= n;
            continue;
        }
        size_t more = n - from < bytes ? n - from : bytes;
        md5_add(&m, (const uint8_t *)pieces[i].data + from, more);
        bytes -= more, from = 0;
    }
    md5_end(&m, out);
}

static bool passes_by(long status) { return status == 0 || status == 429 || status == 500 || status == 502 || status == 503 || status == 504; }

void s3_ask(Arena *a, S3 *s, const S3Ask *ask, HttpReply *out) {
    const char *path = arena_printf(a, "%s/%s", s->root, ask->name ? s3_encode(a, arena_printf(a, "%s%s", s->prefix, ask->name), true) : "");
    if (!ask->name && *s->root)
        path = s->root; // the bucket itself
    const char *url = arena_printf(a, "%s://%s%s%s%s", s->scheme, s->host, path, *ask->query ? "?" : "", ask->query), *md5 = NULL;
    uint8_t hash[MD5_BYTES];
    if (ask->bytes || !strcmp(ask->method, "PUT")) {
        s3_md5(ask->pieces, ask->count, ask->from, ask->bytes, hash);
        md5 = base64(a, hash, sizeof hash);
    }
    for (int i = 0; i < TRIES; i++) {
        Headers headers = {0};
        sign(a, s, ask, path, md5, &headers);
        if (ask->header)
            VEC_PUSH(a, &headers, ask->header);
        http_call(s->http, &(HttpCall){ask->method, url, headers.at, headers.n, ask->pieces, ask->count, ask->from, ask->bytes}, out);
        s->passing = passes_by(out->status);
        if (!s->passing)
            return;
        if (i + 1 < TRIES)
            nanosleep(&(struct timespec){.tv_nsec = (FIRST_WAIT_MS << i) % 1000 * 1000000L, .tv_sec = (FIRST_WAIT_MS << i) / 1000}, NULL);
    }
}

// --- answers ---------------------------------------------------------------------------------------

// What stands between <name> and </name>, from *at on; NULL: no more. Moves *at behind it.
const char *s3_field(Arena *a, const char **at, const char *end, const char *name) {
    const char *open = arena_printf(a, "<%s>", name), *close = arena_printf(a, "</%s>", name);
    const char *from = strstr(*at, open), *to = from ? strstr(from, close) : NULL;
    if (!to || to > end)
        return NULL;
    from += strlen(open), *at = to + strlen(close);
    static const struct {
        const char *name;
        char is;
    } marks[] = {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}, {"&#34;", '"'}, {"&#39;", '\''}};
    Buf b = {.arena = a};
    while (from < to) {
        size_t i = 0, n = sizeof marks / sizeof *marks;
        while (*from == '&' && i < n && strncmp(from, marks[i].name, strlen(marks[i].name)))
            i++;
        bool mark = *from == '&' && i < n;
        put_u8(&b, mark ? (uint8_t)marks[i].is : (uint8_t)*from);
        from += mark ? strlen(marks[i].name) : 1;
    }
    return buf_cstr(&b);
}

static const char *hint_of(const S3 *s, long status, const char *code) {
    if (!status)
        return "is the server up? AWS_ENDPOINT_URL names it; a run goes on without it and tries again";
    if (status == 507 || strstr(code, "Quota") || strstr(code, "Storage") || strstr(code, "Space"))
        return "make room there, or --keep fewer; a run goes on, and the checkpoints before it are whole";
    if (!strcmp(code, "NoSuchBucket"))
        return "make the bucket first";
    if (status == 401 || status == 403)
        return "are AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the profile, right, and is this machine's clock? the key must be allowed to "
               "list, read, write and remove objects there";
    return s->passing ? "the server has a bad time; a run goes on without it and tries again" : NULL;
}

_Noreturn void s3_fail(Ctx *ctx, Arena *a, const S3 *s, const char *name, const char *what, const HttpReply *r) {
    const char *at = r->body ? r->body : "", *end = at + r->bytes;
    const char *code = s3_field(a, &at, end, "Code"), *text = code ? s3_field(a, &at, end, "Message") : NULL;
    const char *hint = hint_of(s, r->status, code ? code : ""), *place = arena_printf(a, "s3://%s/%s%s", s->bucket, s->prefix, name);
    if (hint)
        ctx_hint(ctx, "%s", hint);
    if (!r->status)
        ctx_fail(ctx, OTRN_IO, (Place){.file = place}, "cannot %s: %s", what, r->why);
    ctx_fail(ctx, OTRN_IO, (Place){.file = place}, "cannot %s: status %ld%s%s%s%.200s", what, r->status, code ? ", " : "", code ? code : "",
             text && *text ? ": " : "", text ? text : "");
}

// --- small objects ---------------------------------------------------------------------------------

void s3_list(Ctx *ctx, Arena *a, S3 *s, const char *start, S3Names *out) {
    const char *from = "", *prefix = s3_encode(a, arena_printf(a, "%s%s", s->prefix, start), false), *name, *before = "";
    do {
        HttpReply r;
        s3_ask(a, s, &(S3Ask){.method = "GET", .query = arena_printf(a, "%slist-type=2&prefix=%s", from, prefix)}, &r);
        if (r.status != 200)
            s3_fail(ctx, a, s, start, "list what is there", &r);
        const char *at = r.body, *end = r.body + r.bytes;
        while ((name = s3_field(a, &at, end, "Key")))
            if (!strncmp(name, s->prefix, strlen(s->prefix)))
                VEC_PUSH(a, out, name + strlen(s->prefix));
        at = r.body;
        name = s3_field(a, &at, end, "NextContinuationToken");
        if (name && !strcmp(name, before))
            ctx_fail(ctx, OTRN_IO, (Place){.file = s->host}, "the server lists the same objects again and again");
        before = name;
        from = name ? arena_printf(a, "continuation-token=%s&", s3_encode(a, name, false)) : "";
    } while (name);
}

const void *s3_get(Ctx *ctx, Arena *a, S3 *s, const char *name, size_t *bytes) {
    HttpReply r;
    s3_ask(a, s, &(S3Ask){.method = "GET", .name = name, .query = ""}, &r);
    if (r.status != 200)
        s3_fail(ctx, a, s, name, "read it", &r);
    *bytes = r.bytes;
    return arena_dup(a, r.body, r.bytes + 1);
}

bool s3_put_new(Ctx *ctx, Arena *a, S3 *s, const char *name, const void *bytes, size_t n) {
    HttpReply r;
    s3_ask(a, s, &(S3Ask){.method = "PUT", .name = name, .query = "", .header = "If-None-Match: *", .pieces = &(Piece){bytes, n}, .count = 1, .bytes = n}, &r);
    if (r.status == 412) { // perhaps our own, whose answer got lost
        size_t had;
        const void *there = s3_get(ctx, a, s, name, &had);
        return had == n && !memcmp(there, bytes, n);
    }
    if (r.status != 200)
        s3_fail(ctx, a, s, name, "write it", &r);
    return true;
}

void s3_remove(Ctx *ctx, Arena *a, S3 *s, const char *name) {
    HttpReply r;
    s3_ask(a, s, &(S3Ask){.method = "DELETE", .name = name, .query = ""}, &r);
    if (r.status != 200 && r.status != 204 && r.status != 404)
        s3_fail(ctx, a, s, name, "remove it", &r);
}
