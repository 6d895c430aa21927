// SPDX-License-Identifier: Apache-2.0
// s3_open.c — where a bucket is and who asks there: the environment, then the profile in Amazon's two files.
#include <ctype.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "train/s3.h"

typedef struct Profile {
    const char *key, *secret, *token, *region, *endpoint;
} Profile;

static char *trim(char *s) {
    while (isspace((unsigned char)*s))
        s++;
    for (char *end = s + strlen(s); end > s && isspace((unsigned char)end[-1]);)
        *--end = 0;
    return s;
}

static void member(Profile *p, const char *name, const char *value) {
    const struct {
        const char *name, **to;
    } rows[] = {{"aws_access_key_id", &p->key}, {"aws_secret_access_key", &p->secret}, {"aws_session_token", &p->token},
                {"region", &p->region}, {"endpoint_url", &p->endpoint}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].name, name) && !**rows[i].to)
            *rows[i].to = value;
}

// Members of [name], or of [profile name], where the file has it.
static void profile_read(Ctx *ctx, Arena *a, const char *path, const char *name, Profile *p) {
    if (access(path, R_OK))
        return;
    size_t size;
    char *text = (char *)file_read(ctx, a, path, &size), *line, *rest = text;
    bool in = false;
    while ((line = strsep(&rest, "\n"))) {
        char *equals = strchr(line, '='), *start = trim(line);
        if (*start == '[') {
            char *end = strchr(start, ']');
            if (end)
                *end = 0;
            start = trim(start + 1);
            in = !strcmp(!strncmp(start, "profile ", 8) ? trim(start + 8) : start, name);
        } else if (in && equals && *start != '#' && *start != ';' && !isspace((unsigned char)*line)) {
            *equals = 0;
            member(p, trim(start), trim(equals + 1));
        }
    }
}

static Profile profile_find(Ctx *ctx, Arena *a, const Options *o) {
    Profile p = {o->val[OPT_S3_KEY], o->val[OPT_S3_SECRET], o->val[OPT_S3_TOKEN], o->val[OPT_S3_REGION], o->val[OPT_S3_ENDPOINT]};
    const char *home = o->val[OPT_HOME], *name = o->val[OPT_S3_PROFILE];
    const struct {
        OptId id;
        const char *usual;
    } files[] = {{OPT_S3_CREDENTIALS, "credentials"}, {OPT_S3_CONFIG, "config"}};
    bool own = *p.key && *p.secret; // a token of a profile does not belong to another key
    for (size_t i = 0; i < 2; i++) {
        const char *path = *o->val[files[i].id] ? o->val[files[i].id] : arena_printf(a, "%s/.aws/%s", home, files[i].usual);
        profile_read(ctx, a, path, name, &p);
    }
    if (own)
        p.token = o->val[OPT_S3_TOKEN];
    if (!*p.region)
        p.region = "us-east-1";
    return p;
}

static void host_find(Ctx *ctx, Arena *a, const char *endpoint, S3 *s) {
    if (!*endpoint) { // Amazon's; a bucket with dots in its name has no certificate of its own
        bool dots = strchr(s->bucket, '.') != NULL;
        s->scheme = "https", s->root = dots ? arena_printf(a, "/%s", s->bucket) : "";
        s->host = arena_printf(a, dots ? "%.0ss3.%s.amazonaws.com" : "%s.s3.%s.amazonaws.com", s->bucket, s->region);
        return;
    }
    const char *host = strstr(endpoint, "://");
    s->scheme = host ? arena_strndup(a, endpoint, (size_t)(host - endpoint)) : "";
    if (strcmp(s->scheme, "http") && strcmp(s->scheme, "https"))
        ctx_fail(ctx, OTRN_USAGE, NO_PLACE, "AWS_ENDPOINT_URL is `%.200s`, not http://… or https://…", endpoint);
    host += 3;
    size_t n = strcspn(host, "/"), path = strlen(host + n);
    while (path && host[n + path - 1] == '/')
        path--;
    s->host = arena_strndup(a, host, n);
    s->root = arena_printf(a, "%.*s/%s", (int)path, host + n, s->bucket);
    const char *usual = !strcmp(s->scheme, "http") ? ":80" : ":443"; // which curl leaves out of the header
    if (n > strlen(usual) && !strcmp(s->host + n - strlen(usual), usual))
        s->host = arena_strndup(a, host, n - strlen(usual));
}

bool s3_is(const char *where) { return !strncmp(where, "s3://", 5); }

void s3_open(Ctx *ctx, Arena *a, const Options *o, const char *where, S3 *s) {
    const char *bucket = where + 5;
    size_t n = strcspn(bucket, "/"), more = strlen(bucket + n);
    while (more && bucket[n + more - 1] == '/')
        more--;
    if (n < 3)
        ctx_fail(ctx, OTRN_USAGE, NO_PLACE, "`%s`: it is s3://BUCKET/PREFIX", where);
    Profile p = profile_find(ctx, a, o);
    *s = (S3){.bucket = arena_strndup(a, bucket, n), .region = p.region, .key = p.key, .secret = p.secret, .token = p.token};
    s->prefix = more > 1 ? arena_printf(a, "%.*s/", (int)more - 1, bucket + n + 1) : "";
    if (!*p.key || !*p.secret) {
        ctx_hint(ctx, "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile of ~/.aws/credentials with AWS_PROFILE");
        ctx_fail(ctx, OTRN_USAGE, (Place){.file = where}, "no credentials for S3");
    }
    host_find(ctx, a, p.endpoint, s);
    char why[HTTP_WHY_BYTES];
    s->http = http_open(why, sizeof why);
    if (!s->http) {
        ctx_hint(ctx, "install libcurl (Debian and Ubuntu: libcurl4; Fedora: libcurl), or name a folder");
        ctx_fail(ctx, OTRN_UNSUPPORTED, (Place){.file = where}, "checkpoints in S3 need libcurl: %s", why);
    }
}

void s3_close(S3 *s) {
    http_close(s->http);
    s->http = NULL;
}
