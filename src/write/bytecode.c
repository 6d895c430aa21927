// SPDX-License-Identifier: Apache-2.0
// bytecode.c — the MLIR bytecode container, version 6: forms, tables, sections.
//
//   form   pieces one behind the other: P_BYTES n bytes · P_REF table id · P_FLAG table id flag ·
//          P_BLOB id · P_OPEN section · P_CLOSE
//
// Sections come in the order in which MLIR writes them: dialects and op names, sizes of entries,
// their bytes, the program, resources (none), strings, property records.
#include "write/bytecode.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "write/write.h"

static BwId bw_add(Bw *w, BwTable t, const void *at, size_t n);

enum { P_BYTES, P_REF, P_FLAG, P_BLOB, P_OPEN, P_CLOSE };

enum {
    SEC_STRING,
    SEC_DIALECT,
    SEC_ENTRY_DATA,
    SEC_ENTRY_SIZE,
    SEC_IR,
    SEC_RESOURCE_DATA,
    SEC_RESOURCE_SIZE,
    SEC_PROPERTIES = 8,
};

// --- numbers ------------------------------------------------------------------------------------

// The zero bits at the bottom of the first byte count the bytes that follow it.
static size_t varint(uint8_t out[9], uint64_t v) {
    size_t n = 1;
    while (n < 9 && v >> (7 * n))
        n++;
    if (n == 9) {
        out[0] = 0;
        le_store64(out + 1, v);
        return 9;
    }
    uint64_t bits = (v << 1 | 1) << (n - 1);
    for (size_t i = 0; i < n; i++)
        out[i] = (uint8_t)(bits >> (8 * i));
    return n;
}

static void put_varint(Buf *out, uint64_t v) {
    uint8_t bytes[9];
    buf_put(out, bytes, varint(bytes, v));
}

// --- forms --------------------------------------------------------------------------------------

static void put_bytes(Buf *form, const uint8_t *bytes, size_t n) {
    assert(n <= UINT8_MAX);
    put_u8(form, P_BYTES);
    put_u8(form, (uint8_t)n);
    buf_put(form, bytes, n);
}

void bw_num(Buf *form, uint64_t v) {
    uint8_t bytes[9];
    put_bytes(form, bytes, varint(bytes, v));
}

void bw_snum(Buf *form, int64_t v) {
    bw_num(form, (uint64_t)v << 1 ^ (uint64_t)(v >> 63));
}

void bw_byte(Buf *form, uint8_t v) {
    put_bytes(form, &v, 1);
}

void bw_ref(Buf *form, BwTable t, BwId id) {
    put_u8(form, P_REF);
    put_u8(form, (uint8_t)t);
    put_u32(form, id);
}

void bw_ref_flag(Buf *form, BwTable t, BwId id, bool flag) {
    put_u8(form, P_FLAG);
    put_u8(form, (uint8_t)t);
    put_u32(form, id);
    put_u8(form, flag);
}

void bw_blob(Bw *w, Buf *form, const void *at, size_t n) {
    BwId id = bw_add(w, BW_BLOB, at, n);
    put_u8(form, P_BLOB);
    put_u32(form, id);
}

void bw_section_begin(Buf *form, uint8_t id) {
    put_u8(form, P_OPEN);
    put_u8(form, id);
}

void bw_section_end(Buf *form) {
    put_u8(form, P_CLOSE);
}

typedef struct Piece {
    uint8_t kind;
    uint8_t table, n; // n: bytes of P_BYTES, flag of P_FLAG, section of P_OPEN
    uint32_t id;
    const uint8_t *bytes;
} Piece;

static const uint8_t *piece_next(const uint8_t *at, Piece *p) {
    *p = (Piece){.kind = *at++};
    switch (p->kind) {
    case P_BYTES:
        p->n = *at++;
        p->bytes = at;
        return at + p->n;
    case P_REF:
    case P_FLAG:
        p->table = *at++;
        p->id = le_load32(at);
        at += 4;
        p->n = p->kind == P_FLAG ? *at++ : 0;
        return at;
    case P_BLOB:
        p->id = le_load32(at);
        return at + 4;
    case P_OPEN:
        p->n = *at++;
        return at;
    default:
        assert(p->kind == P_CLOSE);
        return at;
    }
}

// --- sets ---------------------------------------------------------------------------------------

static void set_grow(Bw *w, BwSet *s) {
    s->cap = s->cap ? s->cap * 2 : 64;
    s->slots = ARENA_NEWN(w->arena, uint32_t, s->cap);
    for (uint32_t i = 0; i < s->items.n; i++) {
        uint32_t k = (uint32_t)s->items.at[i].hash & (s->cap - 1);
        while (s->slots[k])
            k = (k + 1) & (s->cap - 1);
        s->slots[k] = i + 1;
    }
}

static bool item_same(const BwItem *a, const BwItem *b) {
    return a->hash == b->hash && a->n == b->n && a->dialect == b->dialect &&
           a->custom == b->custom && (!a->n || !memcmp(a->at, b->at, a->n));
}

// Strings and blobs are borrowed from the graph; forms come from a buffer and are copied.
static BwId set_add(Bw *w, BwSet *s, BwItem item, bool copy) {
    if (s->items.n * 2 >= s->cap)
        set_grow(w, s);
    item.hash = hash64(item.dialect << 1 | item.custom, item.at, item.n);
    uint32_t k = (uint32_t)item.hash & (s->cap - 1);
    for (; s->slots[k]; k = (k + 1) & (s->cap - 1))
        if (item_same(&s->items.at[s->slots[k] - 1], &item))
            return s->slots[k] - 1;
    if (copy)
        item.at = arena_dup(w->arena, item.at, item.n);
    VEC_PUSH(w->arena, &s->items, item);
    s->slots[k] = s->items.n;
    return s->items.n - 1;
}

static BwId bw_add(Bw *w, BwTable t, const void *at, size_t n) {
    return set_add(w, &w->sets[t], (BwItem){.at = at, .n = n}, false);
}

BwId bw_str(Bw *w, const char *s, size_t n) {
    return bw_add(w, BW_STR, s, n);
}

static BwId bw_dialect(Bw *w, const char *name, size_t n) {
    return bw_add(w, BW_DIALECT, name, n);
}

BwId bw_prop(Bw *w, const Buf *form) {
    return set_add(w, &w->sets[BW_PROP], (BwItem){.at = form->at, .n = form->n}, true);
}

BwId bw_op_name(Bw *w, const char *dialect, const char *name, bool registered) {
    BwItem item = {.at = name, .n = strlen(name), .custom = registered};
    item.dialect = bw_dialect(w, dialect, strlen(dialect));
    bw_str(w, name, item.n);
    return set_add(w, &w->sets[BW_OP], item, false);
}

BwId bw_entry(Bw *w, BwTable t, const char *dialect) {
    BwItem item = {.at = w->key.at, .n = w->key.n, .custom = true};
    item.dialect = bw_dialect(w, dialect, strlen(dialect));
    w->key.n = 0;
    return set_add(w, &w->sets[t], item, true);
}

BwId bw_entry_text(Bw *w, BwTable t, const char *dialect, size_t dialect_n, const char *text) {
    BwItem item = {.at = text, .n = strlen(text) + 1};
    item.dialect = bw_dialect(w, dialect, dialect_n);
    return set_add(w, &w->sets[t], item, false);
}

// --- limits and messages ------------------------------------------------------------------------

void bw_fail(Bw *w, const char *fmt, ...) {
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    ctx_hint(w->h->ctx, "text can say it: --emit=mlir");
    ctx_fail(w->h->ctx, OTRN_UNSUPPORTED, hlo_place(w->h, w->place), "bytecode has no form for %s",
             text);
}

void bw_enter(Bw *w) {
    if (++w->depth > BW_MAX_DEPTH)
        ctx_fail(w->h->ctx, OTRN_CAPACITY, hlo_place(w->h, w->place),
                 "nested deeper than the writer's limit of %d", BW_MAX_DEPTH);
}

void bw_leave(Bw *w) {
    w->depth--;
}

void bw_need(Bw *w, uint32_t minor) {
    if (minor > w->needs)
        w->needs = minor;
}

// --- numbering ----------------------------------------------------------------------------------

typedef struct Rank { // an entry on its way to its number
    uint32_t uses, dialect;
    BwId id;
} Rank;

typedef struct Numbers {
    uint32_t *of[BW_ENTRIES]; // by id
    BwId *order[BW_ENTRIES];  // by number
} Numbers;

static int by_uses(const void *a, const void *b) {
    const Rank *x = a, *y = b;
    if (x->uses != y->uses)
        return x->uses > y->uses ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static int by_dialect(const void *a, const void *b) {
    const Rank *x = a, *y = b;
    return x->dialect != y->dialect ? (x->dialect < y->dialect ? -1 : 1) : by_uses(a, b);
}

static void count_uses(Rank *ranks[BW_ENTRIES], const void *form, size_t n) {
    Piece p;
    for (const uint8_t *at = form, *end = at + n; at < end;) {
        at = piece_next(at, &p);
        if (p.kind == P_REF || p.kind == P_FLAG)
            ranks[p.table][p.id].uses++;
    }
}

// What is used most gets the numbers of one byte, then those of two, and so on; within these,
// entries of a dialect stand together.
static void number(Bw *w, BwTable t, Rank *ranks, Numbers *out) {
    uint32_t n = w->sets[t].items.n;
    if (n)
        qsort(ranks, n, sizeof *ranks, by_uses);
    uint64_t from = 0;
    for (unsigned bytes = 1; from < n; bytes++) {
        uint64_t end = bytes < 5 ? (uint64_t)1 << (7 * bytes) : n;
        end = end < n ? end : n;
        qsort(ranks + from, (size_t)(end - from), sizeof *ranks, by_dialect);
        from = end;
    }
    out->of[t] = ARENA_NEWN(w->arena, uint32_t, n);
    out->order[t] = ARENA_NEWN(w->arena, BwId, n);
    for (uint32_t i = 0; i < n; i++) {
        out->order[t][i] = ranks[i].id;
        out->of[t][ranks[i].id] = i;
    }
}

static Numbers number_all(Bw *w) {
    Rank *ranks[BW_ENTRIES];
    for (int t = 0; t < BW_ENTRIES; t++) {
        ranks[t] = ARENA_NEWN(w->arena, Rank, w->sets[t].items.n);
        for (uint32_t i = 0; i < w->sets[t].items.n; i++)
            ranks[t][i] = (Rank){.id = i, .dialect = w->sets[t].items.at[i].dialect};
    }
    count_uses(ranks, w->ir.at, w->ir.n);
    for (int t = 0; t < BW_TABLES; t++)
        for (uint32_t i = 0; (t <= BW_TYPE || t == BW_PROP) && i < w->sets[t].items.n; i++) {
            const BwItem *item = &w->sets[t].items.at[i];
            if (item->custom || t == BW_PROP)
                count_uses(ranks, item->at, item->n);
        }
    Numbers out;
    for (int t = 0; t < BW_ENTRIES; t++)
        number(w, (BwTable)t, ranks[t], &out);
    return out;
}

// --- forms become bytes -------------------------------------------------------------------------

// The bytes from `start` on become the payload of a section.
static void close_section(Buf *out, size_t start, uint8_t id) {
    uint8_t head[10] = {id};
    size_t n = out->n - start, head_bytes = 1 + varint(head + 1, n);
    buf_reserve(out, head_bytes);
    memmove(out->at + start + head_bytes, out->at + start, n);
    memcpy(out->at + start, head, head_bytes);
    out->n += head_bytes;
}

static void put_form(Bw *w, Buf *out, const Numbers *numbers, const void *form, size_t n) {
    struct {
        size_t start;
        uint8_t id;
    } open[BW_MAX_DEPTH + 2];
    uint32_t depth = 0;
    Piece p;
    for (const uint8_t *at = form, *end = at + n; at < end;) {
        at = piece_next(at, &p);
        const BwItem *blob;
        switch (p.kind) {
        case P_BYTES:
            buf_put(out, p.bytes, p.n);
            break;
        case P_REF:
            put_varint(out, numbers->of[p.table][p.id]);
            break;
        case P_FLAG:
            put_varint(out, (uint64_t)numbers->of[p.table][p.id] << 1 | p.n);
            break;
        case P_BLOB:
            blob = &w->sets[BW_BLOB].items.at[p.id];
            put_varint(out, blob->n);
            buf_put(out, blob->at, blob->n);
            break;
        case P_OPEN:
            assert(depth < sizeof open / sizeof *open);
            open[depth].start = out->n;
            open[depth++].id = p.n;
            break;
        default:
            depth--;
            close_section(out, open[depth].start, open[depth].id);
        }
    }
}

// --- sections -----------------------------------------------------------------------------------

// Entries from number `i` on that belong to one dialect.
static uint32_t run_of(Bw *w, BwTable t, const Numbers *numbers, uint32_t i) {
    const BwItem *items = w->sets[t].items.at;
    uint32_t n = 1, total = w->sets[t].items.n;
    uint32_t dialect = items[numbers->order[t][i]].dialect;
    while (i + n < total && items[numbers->order[t][i + n]].dialect == dialect)
        n++;
    return n;
}

static void put_dialects(Bw *w, Buf *out, const Numbers *numbers) {
    size_t start = out->n;
    const BwSet *dialects = &w->sets[BW_DIALECT], *ops = &w->sets[BW_OP];
    put_varint(out, dialects->items.n);
    for (uint32_t i = 0; i < dialects->items.n; i++) // without a version of its own
        put_varint(out,
                   (uint64_t)bw_str(w, dialects->items.at[i].at, dialects->items.at[i].n) << 1);
    put_varint(out, ops->items.n);
    for (uint32_t i = 0, n; i < ops->items.n; i += n) {
        n = run_of(w, BW_OP, numbers, i);
        put_varint(out, ops->items.at[numbers->order[BW_OP][i]].dialect);
        put_varint(out, n);
        for (uint32_t k = i; k < i + n; k++) {
            const BwItem *op = &ops->items.at[numbers->order[BW_OP][k]];
            put_varint(out, (uint64_t)bw_str(w, op->at, op->n) << 1 | op->custom);
        }
    }
    close_section(out, start, SEC_DIALECT);
}

// Bytes of all entries of a kind to `data`, their sizes to `out`.
static void put_entries(Bw *w, BwTable t, const Numbers *numbers, Buf *out, Buf *data) {
    const BwSet *set = &w->sets[t];
    for (uint32_t i = 0, n; i < set->items.n; i += n) {
        n = run_of(w, t, numbers, i);
        put_varint(out, set->items.at[numbers->order[t][i]].dialect);
        put_varint(out, n);
        for (uint32_t k = i; k < i + n; k++) {
            const BwItem *item = &set->items.at[numbers->order[t][k]];
            size_t start = data->n;
            if (item->custom)
                put_form(w, data, numbers, item->at, item->n);
            else
                buf_put(data, item->at, item->n);
            put_varint(out, (uint64_t)(data->n - start) << 1 | item->custom);
        }
    }
}

static void put_strings(Bw *w, Buf *out) {
    size_t start = out->n;
    const BwSet *strs = &w->sets[BW_STR];
    put_varint(out, strs->items.n);
    for (uint32_t i = strs->items.n; i-- > 0;) // lengths stand last string first
        put_varint(out, strs->items.at[i].n + 1);
    for (uint32_t i = 0; i < strs->items.n; i++) {
        buf_put(out, strs->items.at[i].at, strs->items.at[i].n);
        put_u8(out, 0);
    }
    close_section(out, start, SEC_STRING);
}

static void put_properties(Bw *w, Buf *out, const Numbers *numbers) {
    size_t start = out->n;
    const BwSet *props = &w->sets[BW_PROP];
    Buf record = {.arena = w->arena};
    put_varint(out, props->items.n);
    for (uint32_t i = 0; i < props->items.n; i++) {
        record.n = 0;
        put_form(w, &record, numbers, props->items.at[i].at, props->items.at[i].n);
        put_varint(out, record.n);
        buf_put(out, record.at, record.n);
    }
    close_section(out, start, SEC_PROPERTIES);
}

static void put_file(Bw *w, Buf *out) {
    static const uint8_t magic[4] = {0x4d, 0x4c, 0xef, 0x52};
    Numbers numbers = number_all(w);
    buf_put(out, magic, sizeof magic);
    put_varint(out, BW_VERSION);
    buf_printf(out, "StableHLO_v%d.%u.0", WRITE_VHLO_MAJOR, w->minor);
    put_u8(out, 0);
    put_dialects(w, out, &numbers);
    Buf data = {.arena = w->arena};
    size_t start = out->n;
    put_varint(out, w->sets[BW_ATTR].items.n);
    put_varint(out, w->sets[BW_TYPE].items.n);
    put_entries(w, BW_ATTR, &numbers, out, &data);
    put_entries(w, BW_TYPE, &numbers, out, &data);
    close_section(out, start, SEC_ENTRY_SIZE);
    put_u8(out, SEC_ENTRY_DATA);
    put_varint(out, data.n);
    buf_put(out, data.at, data.n);
    start = out->n;
    put_form(w, out, &numbers, w->ir.at, w->ir.n);
    close_section(out, start, SEC_IR);
    start = out->n;
    put_varint(out, 0); // no resources of others, and none of dialects
    close_section(out, start, SEC_RESOURCE_SIZE);
    close_section(out, out->n, SEC_RESOURCE_DATA);
    put_strings(w, out);
    put_properties(w, out, &numbers);
}

void write_bytecode(const Hlo *h, Buf *out) {
    for (uint32_t minor = WRITE_OLDEST_MINOR;;) {
        Bw w = {.h = h, .arena = out->arena, .minor = minor, .needs = minor};
        w.key.arena = w.ir.arena = out->arena;
        w.locs = ARENA_NEWN(w.arena, BwId, h->locs.n);
        for (int f = 0; f < BF_COUNT; f++)
            w.types[f] = ARENA_NEWN(w.arena, BwId, h->types.n);
        w.numbers = ARENA_NEWN(w.arena, uint32_t, h->values.n);
        w.depths = ARENA_NEWN(w.arena, uint32_t, h->values.n);
        w.isolated = ARENA_NEWN(w.arena, uint8_t, h->ops.n);
        bw_module(&w);
        if (w.needs == minor) {
            put_file(&w, out);
            return;
        }
        minor = w.needs; // with a newer version other ops have newer forms too
    }
}
