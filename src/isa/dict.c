// SPDX-License-Identifier: Apache-2.0
// dict.c — writing and reading an artifact's dictionary.
#include "isa/dict.h"

#include <assert.h>

#include "base/dtype.h"
#include "hlo/hlo.h"

_Static_assert(DT_COUNT < 255, "an element type is one byte and 255 marks an unknown one");

void dict_init(Dict *d, Arena *a) {
    *d = (Dict){.arena = a, .nslots = 256};
    d->slots = ARENA_NEWN(a, uint32_t, d->nslots);
    dict_add(d, "");
}

static void slots_put(uint32_t *slots, uint32_t nslots, const DictStr *s, uint32_t id) {
    uint32_t at = (uint32_t)hash64(0, s->s, s->n) & (nslots - 1);
    while (slots[at])
        at = (at + 1) & (nslots - 1);
    slots[at] = id + 1;
}

static void slots_grow(Dict *d) {
    uint32_t nslots = d->nslots * 2;
    uint32_t *slots = ARENA_NEWN(d->arena, uint32_t, nslots);
    for (uint32_t i = 0; i < d->strs.n; i++)
        slots_put(slots, nslots, &d->strs.at[i], i);
    d->slots = slots;
    d->nslots = nslots;
}

uint32_t dict_add(Dict *d, const char *s) {
    s = s ? s : "";
    size_t n = strlen(s);
    assert(n <= UINT32_MAX);
    uint32_t at = (uint32_t)hash64(0, s, n) & (d->nslots - 1);
    for (; d->slots[at]; at = (at + 1) & (d->nslots - 1)) {
        const DictStr *have = &d->strs.at[d->slots[at] - 1];
        if (have->n == n && !memcmp(have->s, s, n))
            return d->slots[at] - 1;
    }
    DictStr row = {.s = s, .n = (uint32_t)n};
    VEC_PUSH(d->arena, &d->strs, row);
    d->slots[at] = d->strs.n;
    if (d->strs.n * 2 > d->nslots)
        slots_grow(d);
    return d->strs.n - 1;
}

void dict_op_name(int op, Buf *out) {
    if (op != HLO_NONE)
        buf_printf(out, "%s.%s", hlo_dialect_names[hlo_op_rows[op].dialect], hlo_op_rows[op].name);
}

uint32_t dict_add_op(Dict *d, int op) {
    Buf name = {.arena = d->arena};
    dict_op_name(op, &name);
    return dict_add(d, buf_cstr(&name));
}

int dict_op_find(const char *s, size_t n) {
    if (!n)
        return HLO_NONE;
    const char *dot = memchr(s, '.', n);
    if (!dot)
        return -1;
    size_t dn = (size_t)(dot - s);
    int op = hlo_op_find(s, dn, dot + 1, n - dn - 1);
    return op == HLO_NONE ? -1 : op;
}

// --- strings -------------------------------------------------------------------------------------

void dict_encode(const Dict *d, Buf *out) {
    put_u32(out, d->strs.n);
    for (uint32_t i = 0; i < d->strs.n; i++) {
        put_u32(out, d->strs.at[i].n);
        buf_put(out, d->strs.at[i].s, d->strs.at[i].n);
    }
}

void dict_decode(Dict *d, Rd *r) {
    uint32_t n = rd_count(r, 4);
    if (!n)
        rd_fail(r, "the string section is empty");
    d->strs.n = 0;
    VEC_RESERVE(d->arena, &d->strs, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t len = rd_u32(r);
        const char *p = (const char *)rd_bytes(r, len);
        if (len && memchr(p, 0, len))
            rd_fail(r, "string %u holds a zero byte", i);
        if (!i && len)
            rd_fail(r, "string 0 is not empty");
        d->strs.at[i] = (DictStr){.s = arena_strndup(d->arena, p, len), .n = len};
    }
    d->strs.n = n;
}

static DictStr *take(Dict *d, Rd *r) {
    uint32_t id = rd_u32(r);
    if (id >= d->strs.n)
        rd_fail(r, "string %u does not exist, there are %u", id, d->strs.n);
    return &d->strs.at[id];
}

const char *dict_str(Dict *d, Rd *r) { return take(d, r)->s; }

_Noreturn static void unknown(Rd *r, const char *what, const char *name) {
    ctx_hint(r->ctx, "the file was written by another release of opentrn: compile the program "
                     "again with this one (" OTRN_RELEASE ")");
    ctx_fail(r->ctx, OTRN_VERSION, (Place){.file = r->name}, "unknown %s `%.100s`", what, name);
}

int dict_op(Dict *d, Rd *r) {
    DictStr *s = take(d, r);
    if (!s->op) {
        int op = dict_op_find(s->s, s->n);
        if (op < 0)
            unknown(r, "operation", s->s);
        s->op = (uint16_t)(op + 1);
    }
    return s->op - 1;
}

int dict_key(Dict *d, Rd *r) {
    DictStr *s = take(d, r);
    if (!s->key) {
        HloAttrKey key = hlo_attr_find(s->s, s->n);
        if (key == AK_NONE)
            unknown(r, "attribute", s->s);
        s->key = (uint16_t)(key + 1);
    }
    return s->key - 1;
}

int dict_dtype(Dict *d, Rd *r) {
    uint8_t n = rd_u8(r), ours = d->map.dtype[n];
    if (ours == 0xff)
        rd_fail(r, "unknown element type number %u", n);
    return ours;
}

// --- instruction and type names ------------------------------------------------------------------

// An instruction's name here is its mnemonic and its fields: a row whose encoding changed is another
// instruction.
static const char *table_name(Arena *a, int table, int i) {
    if (table == 1)
        return dtype_row(i)->name;
    if (table)
        return table == 2 ? alu_rows[i].name : act_rows[i].name;
    Buf name = {.arena = a};
    buf_printf(&name, "%s%s", isa_rows[i].name, isa_rows[i].fields);
    return buf_cstr(&name);
}

static const int table_sizes[] = {ISA_OP_COUNT, DT_COUNT, ALU_COUNT, ACT_COUNT};
#define TABLES 4

void dict_encode_tables(Dict *d, Buf *out) {
    for (int table = 0; table < TABLES; table++) {
        put_u32(out, (uint32_t)table_sizes[table]);
        for (int i = 0; i < table_sizes[table]; i++)
            put_u32(out, dict_add(d, table_name(d->arena, table, i)));
    }
}

static int op_find(const DictStr *s) {
    size_t n = strcspn(s->s, " ");
    int op = isa_find(s->s, n);
    return op >= 0 && !strcmp(s->s + n, isa_rows[op].fields) ? op : -1;
}

// A name this release does not know maps to 0xff and is an error only where it is used.
static void decode_table(Dict *d, Rd *r, uint8_t map[256], int table) {
    memset(map, 0xff, 256);
    uint32_t n = rd_count(r, 4);
    if (n > 255)
        rd_fail(r, "a table of %u names, at most 255 are allowed", n);
    for (uint32_t i = 0; i < n; i++) {
        const DictStr *s = take(d, r);
        int ours = table == 0   ? op_find(s)
                   : table == 1 ? dtype_parse(s->s, s->n)
                   : table == 2 ? alu_find(s->s, s->n)
                                : act_find(s->s, s->n);
        map[i] = ours < 0 ? 0xff : (uint8_t)ours;
    }
}

void dict_decode_tables(Dict *d, Rd *r) {
    uint8_t *maps[TABLES] = {d->map.op, d->map.dtype, d->map.alu, d->map.act};
    for (int table = 0; table < TABLES; table++)
        decode_table(d, r, maps[table], table);
    d->map.dtype[DT_INVALID] = DT_INVALID; // zero means "no type" in every file
}
