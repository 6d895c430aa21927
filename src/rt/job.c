// SPDX-License-Identifier: Apache-2.0
// job.c — reads what launchers set, see job.h; the root for Python.
#include "rt/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "otrn.h"

static uint32_t number(Ctx *ctx, const char *text, const char *what, uint32_t max) {
    char *end;
    unsigned long v = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || v > max)
        ctx_fail(ctx, OTRN_USAGE, NO_PLACE, "the %s of this job is '%.40s', not a number up to %u", what, text, max);
    return (uint32_t)v;
}

static uint32_t words_of(const char *list) {
    uint32_t n = 1;
    for (; *list; list++)
        n += *list == ',';
    return n;
}

// "h[03-12,20],g1" begins with h03.
static void first_node(const char *list, char *out, size_t bytes) {
    size_t n = strcspn(list, "[,"), digits = list[n] == '[' ? strspn(list + n + 1, "0123456789") : 0;
    snprintf(out, bytes, "%.*s%.*s", (int)n, list, (int)digits, list + n + 1);
}

// Where mpirun is: Open MPI 4 tells its address ("12.0;tcp://10.0.0.1,10.1.0.1:3456", "tcp6://[fe80::1]:3456"), Open MPI 5 has its
// host's name in the job's ("prterun-host-a-812@1"). The first process is there, unless somebody asked for it elsewhere.
static bool head_find(const char *uri, const char *job, char *out, size_t bytes) {
    const char *begin = strstr(uri, "://"), *end, *prte = "prterun-";
    if (begin) {
        begin += 3;
        end = *begin == '[' ? strchr(begin, ']') : begin + strcspn(begin, ",:");
        if (end && *begin == '[')
            end++;
    } else if (!strncmp(job, prte, strlen(prte))) {
        begin = job + strlen(prte);
        end = strrchr(begin, '-');
    } else {
        return false;
    }
    if (!end || end == begin || (size_t)(end - begin) >= bytes)
        return false;
    snprintf(out, bytes, "%.*s", (int)(end - begin), begin);
    return true;
}

// A port of a job, the same in all its processes, outside of those that systems give away.
static unsigned port_of(const char *job) { return 20000 + (unsigned)(hash64(0, job, strlen(job)) % 10000); }

static void root_find(Ctx *ctx, const Options *o, Job *j) {
    const char *root = o->val[OPT_ROOT], *master = o->val[OPT_MASTER], *nodes = o->val[OPT_NODE_LIST], *local = o->val[OPT_LOCAL_WORLD];
    char node[200];
    if (*root) {
        snprintf(j->root, sizeof j->root, "%s", root);
    } else if (*master && *o->val[OPT_MASTER_PORT]) {
        unsigned port = number(ctx, o->val[OPT_MASTER_PORT], "MASTER_PORT", 65533);
        snprintf(j->root, sizeof j->root, strchr(master, ':') ? "[%.200s]:%u" : "%.200s:%u", master, port + 2);
    } else if (*nodes) {
        first_node(nodes, node, sizeof node);
        snprintf(j->root, sizeof j->root, "%s:%u", node, port_of(o->val[OPT_JOB]));
    } else if (*local && !strcmp(local, o->val[OPT_WORLD])) {
        snprintf(j->root, sizeof j->root, "127.0.0.1:%u", port_of(o->val[OPT_JOB]));
    } else if (*local && head_find(o->val[OPT_HEAD], o->val[OPT_JOB], node, sizeof node)) {
        snprintf(j->root, sizeof j->root, "%s:%u", node, port_of(o->val[OPT_JOB]));
    } else {
        ctx_hint(ctx, "set OTRN_ROOT=HOST:PORT, of the host of the first process, in all of them");
        ctx_fail(ctx, OTRN_USAGE, NO_PLACE, "process %u of %u: nothing says where they meet", j->rank, j->world);
    }
}

bool job_find(Ctx *ctx, const Options *o, Job *j) {
    const char *world = o->val[OPT_WORLD], *list = o->val[OPT_DEVICE_LIST];
    *j = (Job){.world = 1, .secret = o->val[OPT_SECRET]};
    if (*world)
        j->world = number(ctx, world, "number of processes", 1 << 20);
    else if (*list)
        j->world = words_of(list);
    if (j->world <= 1)
        return false;
    j->rank = number(ctx, o->val[OPT_RANK], "process number", j->world - 1);
    root_find(ctx, o, j);
    return true;
}

void job_limits(const Options *o, NetSelf *self) {
    self->coll_timeout_ms = 1000 * (uint32_t)opt_num(o, OPT_COLL_TIMEOUT);
    self->generation = o->val[OPT_GENERATION];
}

// ---- for the Python package: a store that other front ends may meet in

OTRN_API NetRoot *opentrn_root_open(const char *at, const char *secret, int serve, unsigned timeout_ms, char *why, size_t why_bytes);
OTRN_API void opentrn_root_close(NetRoot *r);
OTRN_API size_t opentrn_root_at(const NetRoot *r, char *out, size_t bytes);
OTRN_API int opentrn_root_put(NetRoot *r, const char *key, const void *value, size_t bytes, char *why, size_t why_bytes);
OTRN_API void *opentrn_root_get(NetRoot *r, const char *key, unsigned timeout_ms, size_t *bytes, char *why, size_t why_bytes);
OTRN_API void opentrn_root_free(void *value);

NetRoot *opentrn_root_open(const char *at, const char *secret, int serve, unsigned timeout_ms, char *why, size_t why_bytes) {
    NetRoot *r;
    return net_root_open(at, secret, serve, timeout_ms, &r, why, why_bytes) ? r : NULL;
}

void opentrn_root_close(NetRoot *r) { net_root_close(r); }
size_t opentrn_root_at(const NetRoot *r, char *out, size_t bytes) { return (size_t)snprintf(out, bytes, "%s", net_root_at(r)); }

int opentrn_root_put(NetRoot *r, const char *key, const void *value, size_t bytes, char *why, size_t why_bytes) {
    return net_root_put(r, key, value, bytes, why, why_bytes);
}

void *opentrn_root_get(NetRoot *r, const char *key, unsigned timeout_ms, size_t *bytes, char *why, size_t why_bytes) {
    return net_root_get(r, key, timeout_ms, bytes, why, why_bytes);
}

void opentrn_root_free(void *value) { free(value); }
