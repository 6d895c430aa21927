// SPDX-License-Identifier: Apache-2.0
// xla_shard.c — how HLO says that tensors are cut over devices, as the text that GSPMD's attribute has (gspmd.c reads it).
#include <string.h>

#include "read/xla.h"

enum { KIND_REPLICATED = 0, KIND_MAXIMAL = 1, KIND_TUPLE = 2, KIND_OTHER = 3, KIND_MANUAL = 4 };
enum { SHARD_KIND = 1, SHARD_TILES = 3, SHARD_DEVICES = 4, SHARD_MEMBERS = 5, SHARD_COPIES = 6, SHARD_LAST = 8, SHARD_IOTA = 9, SHARD_TURN = 10 };

static void list(Buf *out, const int64_t *v, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        buf_printf(out, i ? ",%lld" : "%lld", (long long)v[i]);
}

static void tiled(Xla *x, Pb m, Buf *out) { // {devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}
    uint32_t n, ndevices, niota, nturn, nlast;
    const int64_t *tiles = pb_ints(x, m, SHARD_TILES, &n), *devices = pb_ints(x, m, SHARD_DEVICES, &ndevices);
    const int64_t *iota = pb_ints(x, m, SHARD_IOTA, &niota), *turn = pb_ints(x, m, SHARD_TURN, &nturn);
    const int64_t *last = pb_ints(x, m, SHARD_LAST, &nlast);
    buf_puts(out, "{devices=[");
    list(out, tiles, n);
    buf_puts(out, niota ? "]<=[" : "]");
    list(out, niota ? iota : devices, niota ? niota : ndevices);
    buf_puts(out, niota ? "]" : "");
    for (uint32_t i = 0; i < nturn; i++)
        if (turn[i] != i) {
            buf_puts(out, "T(");
            list(out, turn, nturn);
            buf_puts(out, ")");
            break;
        }
    for (uint32_t i = 0; i < nlast; i++)
        if (last[i] == KIND_MANUAL)
            buf_puts(out, " last_tile_dims={manual}");
    buf_puts(out, pb_int(x, m, SHARD_COPIES) || nlast ? " last_tile_dim_replicate}" : "}");
}

static void print(Xla *x, Pb m, Buf *out) {
    int64_t kind = pb_int(x, m, SHARD_KIND);
    uint32_t n;
    const Pb *members = pb_list(x, m, SHARD_MEMBERS, &n);
    if (kind == KIND_OTHER) {
        tiled(x, m, out);
    } else if (kind == KIND_TUPLE) {
        if (++x->depth > XLA_MAX_DEPTH)
            xla_fail(x, OTRN_CAPACITY, "a sharding of the HLO module lies too deep");
        buf_puts(out, "{");
        for (uint32_t i = 0; i < n; i++)
            print(x, members[i], out);
        buf_puts(out, "}");
        x->depth--;
    } else {
        buf_puts(out, kind == KIND_REPLICATED ? "{replicated}" : kind == KIND_MANUAL ? "{manual}" : "{unknown}");
    }
}

const char *xla_sharding(Xla *x, Pb inst) {
    PbField f;
    Buf out = {.arena = x->arena};
    bool text = pb_find(x, inst, XLA_SHARDING_TEXT, &f);
    x->cut |= text;
    if (text)
        return pb_text(x, inst, XLA_SHARDING_TEXT);
    if (!pb_find(x, inst, 40, &f))
        return NULL;
    x->cut = true;
    print(x, f.bytes, &out);
    return buf_cstr(&out);
}

const char *xla_frontend(Xla *x, Pb attributes, const char *key) {
    uint32_t n;
    const Pb *rows = pb_list(x, attributes, 1, &n);
    for (uint32_t i = 0; i < n; i++)
        if (!strcmp(pb_text(x, rows[i], 1), key))
            return pb_text(x, rows[i], 2);
    return NULL;
}

// The k-th of a tuple's, however deep it lies; one that is no tuple's is that of every array.
static const char *member(Xla *x, const char *text, uint32_t k) {
    if (text[0] != '{' || text[1] != '{')
        return text;
    for (const char *s = text + 1; *s; s++) {
        if (*s != '{' || s[1] == '{')
            continue;
        const char *end = s;
        int open = 0;
        do
            open += *end == '{' ? 1 : *end == '}' ? -1 : 0;
        while (*end++ && open);
        if (!k--)
            return arena_strndup(x->arena, s, (size_t)(end - s));
        s = end - 1;
    }
    return NULL;
}

const HloNamed *xla_sharded(Xla *x, const char *text, uint32_t k, uint32_t *n) {
    const char *one = text ? member(x, text, k) : NULL;
    *n = one != NULL;
    if (!one)
        return NULL;
    HloNamed *named = ARENA_NEW(x->arena, HloNamed);
    *named = (HloNamed){"mhlo.sharding", {.kind = HA_STR, .n = (uint32_t)strlen(one), .s = one}};
    return named;
}
