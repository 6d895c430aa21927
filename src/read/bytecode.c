// SPDX-License-Identifier: Apache-2.0
// bytecode.c — the MLIR bytecode container, versions 0 to 6.
//
//   magic · version · producer · sections:
//     1 dialects and op names    3 sizes of attributes and types    2 their bytes
//     4 the program              6, 5 resources    0 strings    8 property records
//
// Sections come in any order and refer to each other, so they are collected first and read in the
// order strings, properties, dialects, resources, entries, program. Nothing is decoded here but the
// tables of what lies where.
#include "read/bytecode.h"

#include <stdio.h>

#include "read/read.h"

enum {
    SEC_STRING,
    SEC_DIALECT,
    SEC_ENTRY_DATA,
    SEC_ENTRY_SIZE,
    SEC_IR,
    SEC_RESOURCE_DATA,
    SEC_RESOURCE_SIZE,
    SEC_DIALECT_VERSION, // inside SEC_DIALECT only
    SEC_PROPERTIES,
    SEC_COUNT
};

static const uint8_t magic[4] = {0x4d, 0x4c, 0xef, 0x52};

// --- primitives ---------------------------------------------------------------------------------

// The zero bits at the bottom of the first byte count the bytes that follow it.
uint64_t bc_varint(Rd *r) {
    uint8_t first = rd_u8(r);
    if (first & 1)
        return first >> 1;
    if (!first)
        return rd_u64(r);
    unsigned more = (unsigned)__builtin_ctz(first);
    const uint8_t *p = rd_bytes(r, more);
    uint64_t v = first;
    for (unsigned i = 0; i < more; i++)
        v |= (uint64_t)p[i] << (8 * (i + 1));
    return v >> (more + 1);
}

int64_t bc_svarint(Rd *r) {
    uint64_t u = bc_varint(r);
    return (int64_t)(u >> 1 ^ -(u & 1));
}

uint64_t bc_flagged(Rd *r, bool *flag) {
    uint64_t u = bc_varint(r);
    *flag = u & 1;
    return u >> 1;
}

uint32_t bc_check(Rd *r, uint64_t index, uint32_t count, const char *what) {
    if (index >= count)
        rd_fail(r, "%s %llu of %u does not exist", what, (unsigned long long)index, count);
    return (uint32_t)index;
}

uint32_t bc_index(Rd *r, uint32_t count, const char *what) {
    return bc_check(r, bc_varint(r), count, what);
}

static uint32_t count_check(Rd *r, uint64_t n) {
    size_t left = (size_t)(r->end - r->at);
    if (n > left || n > UINT32_MAX / 2)
        rd_fail(r, "a count of %llu cannot be true: only %zu bytes are left", (unsigned long long)n,
                left);
    return (uint32_t)n;
}

uint32_t bc_count(Rd *r) {
    return count_check(r, bc_varint(r));
}

Rd bc_rd(const Bc *b, BcSpan s) {
    return (Rd){b->ctx, b->name, b->file.at, s.at, s.at + s.n};
}

static BcSpan span_take(Rd *r, uint64_t n) {
    if (n > (size_t)(r->end - r->at))
        rd_fail(r, "truncated: %llu bytes announced, %zu left", (unsigned long long)n,
                (size_t)(r->end - r->at));
    return (BcSpan){rd_bytes(r, (size_t)n), (size_t)n};
}

BcSpan bc_blob(Rd *r) {
    return span_take(r, bc_varint(r));
}

void bc_done(Rd *r, const char *what) {
    if (r->at != r->end)
        rd_fail(r, "%zu bytes too many in %s", (size_t)(r->end - r->at), what);
}

// Padding is counted from the start of the file.
static void skip_padding(Rd *r, uint64_t align) {
    if (!align || align & (align - 1) || align > UINT32_MAX)
        rd_fail(r, "alignment %llu is not a power of two", (unsigned long long)align);
    while ((uint64_t)(r->at - r->base) & (align - 1))
        if (rd_u8(r) != 0xcb)
            rd_fail(r, "padding bytes are not 0xcb");
}

BcSpan bc_section(Rd *r, uint8_t *id) {
    uint8_t head = rd_u8(r);
    *id = head & 0x7f;
    uint64_t n = bc_varint(r);
    if (head & 0x80)
        skip_padding(r, bc_varint(r));
    return span_take(r, n);
}

const BcSpan *bc_str(Bc *b, Rd *r) {
    return &b->strs[bc_index(r, b->nstrs, "string")];
}

static const char *read_name(Bc *b, Rd *r, uint64_t index) {
    return (const char *)b->strs[bc_check(r, index, b->nstrs, "string")].at;
}

void bc_enter(Bc *b, Rd *r) {
    if (++b->depth > BC_MAX_DEPTH)
        rd_fail(r, "nested deeper than the reader's limit of %d", BC_MAX_DEPTH);
}

void bc_leave(Bc *b) {
    b->depth--;
}

// An entry that the program itself asks for is paid each time: it may stand for many.
void bc_entry_seen(Bc *b, const BcEntry *e) {
    if (e->height > b->child_height)
        b->child_height = e->height;
    if (__builtin_add_overflow(b->child_weight, e->weight, &b->child_weight))
        b->child_weight = UINT32_MAX;
    if (!b->decoding && e->weight > BC_LIGHT)
        bc_spend(b, (uint64_t)e->weight * sizeof(HloAttr));
}

BcOuter bc_entry_begin(Bc *b, Rd *r, BcEntry *e) {
    if (e->state == BS_BUSY)
        rd_fail(r, "an attribute or type contains itself");
    bc_enter(b, r);
    e->state = BS_BUSY;
    BcOuter outer = {b->child_height, b->child_weight};
    b->child_height = 0;
    b->child_weight = 1;
    b->decoding++;
    return outer;
}

void bc_entry_end(Bc *b, Rd *r, BcEntry *e, BcOuter outer) {
    if (b->child_height >= BC_MAX_DEPTH)
        rd_fail(r, "nested deeper than the reader's limit of %d", BC_MAX_DEPTH);
    e->state = BS_DONE;
    e->height = (uint16_t)(b->child_height + 1);
    e->weight = b->child_weight;
    b->child_height = outer.height;
    b->child_weight = outer.weight;
    b->decoding--;
    bc_entry_seen(b, e);
    bc_leave(b);
}

void bc_spend(Bc *b, uint64_t bytes) {
    if (bytes > b->budget)
        ctx_fail(b->ctx, OTRN_CAPACITY, (Place){.file = b->name},
                 "attributes grow to more than %u MiB beyond %d times the file's size",
                 BC_BUDGET_BASE >> 20, BC_BUDGET_FACTOR);
    b->budget -= bytes;
}

// --- sections -----------------------------------------------------------------------------------

static void read_strings(Bc *b, BcSpan section) {
    Rd r = bc_rd(b, section);
    b->nstrs = bc_count(&r);
    b->strs = ARENA_NEWN(b->arena, BcSpan, b->nstrs);
    uint64_t total = 0;
    for (uint32_t i = b->nstrs; i-- > 0;) { // lengths stand last string first
        uint64_t n = bc_varint(&r);
        if (!n || n > section.n)
            rd_fail(&r, "string %u has an impossible length", i);
        b->strs[i].n = (size_t)n;
        total += n;
    }
    BcSpan all = span_take(&r, total);
    bc_done(&r, "the string section");
    const uint8_t *copy = arena_dup(b->arena, all.at, all.n);
    for (uint32_t i = 0; i < b->nstrs; i++) {
        b->strs[i].at = copy;
        copy += b->strs[i].n--;
        if (copy[-1])
            rd_fail(&r, "string %u does not end with a zero byte", i);
    }
}

static void read_properties(Bc *b, BcSpan section) {
    Rd r = bc_rd(b, section);
    b->nprops = bc_count(&r);
    b->props = ARENA_NEWN(b->arena, BcSpan, b->nprops);
    for (uint32_t i = 0; i < b->nprops; i++)
        b->props[i] = bc_blob(&r);
    bc_done(&r, "the properties section");
}

static BcDialect dialect_known(const char *name) {
    static const struct {
        const char *name;
        BcDialect known;
    } rows[] = {{"vhlo", BD_VHLO}, {"builtin", BD_BUILTIN}, {"sdy", BD_SDY},    {"stablehlo", BD_RAW},
                {"chlo", BD_RAW},  {"mhlo", BD_RAW},        {"func", BD_RAW},   {"arith", BD_RAW},
                {"check", BD_RAW}, {"interpreter", BD_RAW}, {"quant", BD_QUANT}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(name, rows[i].name))
            return rows[i].known;
    return BD_OTHER;
}

static void read_dialect_names(Bc *b, Rd *r) {
    b->ndialects = bc_count(r);
    b->dialects = ARENA_NEWN(b->arena, BcDialectName, b->ndialects);
    for (uint32_t i = 0; i < b->ndialects; i++) {
        bool versioned = false;
        uint64_t index = b->version >= 1 ? bc_flagged(r, &versioned) : bc_varint(r);
        b->dialects[i].name = read_name(b, r, index);
        b->dialects[i].known = (uint8_t)dialect_known(b->dialects[i].name);
        uint8_t id;
        if (versioned && (bc_section(r, &id), id != SEC_DIALECT_VERSION))
            rd_fail(r, "section %u where a dialect's version should be", id);
    }
}

static void read_dialects(Bc *b, BcSpan section) {
    Rd r = bc_rd(b, section);
    read_dialect_names(b, &r);
    uint64_t expect = b->version >= 4 ? bc_varint(&r) : 0;
    VEC(BcOpName) names = {0};
    while (r.at < r.end) {
        uint32_t dialect = bc_index(&r, b->ndialects, "dialect");
        uint32_t n = bc_count(&r);
        for (uint32_t i = 0; i < n; i++) {
            BcOpName op = {.dialect = dialect, .registered = true};
            uint64_t index = b->version >= 5 ? bc_flagged(&r, &op.registered) : bc_varint(&r);
            op.name = read_name(b, &r, index);
            VEC_PUSH(b->arena, &names, op);
        }
    }
    if (b->version >= 4 && expect != names.n)
        rd_fail(&r, "%llu op names announced, %u found", (unsigned long long)expect, names.n);
    b->opnames = names.at;
    b->nopnames = names.n;
}

// Entries of one kind come in groups of a dialect; their bytes lie one behind the other in `data`.
static void read_entry_group(Bc *b, Rd *r, Rd *data, BcEntry *first, size_t stride, uint32_t n) {
    for (uint32_t done = 0; done < n;) {
        uint32_t dialect = bc_index(r, b->ndialects, "dialect");
        uint64_t count = bc_varint(r);
        if (count > n - done)
            rd_fail(r, "a group of %llu entries where %u are left", (unsigned long long)count,
                    n - done);
        for (; count; count--, done++) {
            BcEntry *e = (BcEntry *)((uint8_t *)first + done * stride);
            e->dialect = dialect;
            e->bytes = span_take(data, bc_flagged(r, &e->custom));
            if (!e->bytes.n)
                rd_fail(r, "an attribute or type of no bytes");
        }
    }
}

static void read_entries(Bc *b, BcSpan sizes, BcSpan bytes) {
    Rd r = bc_rd(b, sizes), data = bc_rd(b, bytes);
    b->nattrs = bc_count(&r);
    b->ntypes = bc_count(&r);
    b->attrs = ARENA_NEWN(b->arena, BcAttr, b->nattrs);
    b->types = ARENA_NEWN(b->arena, BcType, b->ntypes);
    if (b->nattrs)
        read_entry_group(b, &r, &data, &b->attrs->entry, sizeof *b->attrs, b->nattrs);
    if (b->ntypes)
        read_entry_group(b, &r, &data, &b->types->entry, sizeof *b->types, b->ntypes);
    bc_done(&r, "the table of attribute and type sizes");
    bc_done(&data, "the attribute and type section");
}

// A blob resource: alignment, size, padding, bytes. Other kinds are passed over.
static BcSpan resource_blob(Bc *b, BcSpan bytes, uint8_t kind) {
    Rd r = bc_rd(b, bytes);
    if (kind != 0 || !bytes.n) // bool, string, or a declaration without data
        return (BcSpan){0};
    uint64_t align = bc_varint(&r), n = bc_varint(&r);
    skip_padding(&r, align);
    BcSpan blob = span_take(&r, n);
    bc_done(&r, "a resource");
    return blob;
}

// Handles in attributes count the resources of dialects only, in file order.
static void read_resources(Bc *b, BcSpan sizes, BcSpan bytes) {
    Rd r = bc_rd(b, sizes), data = bc_rd(b, bytes);
    VEC(BcSpan) blobs = {0};
    uint32_t external = bc_count(&r);
    for (uint32_t group = 0; r.at < r.end; group++) {
        bool of_dialect = group >= external;
        bc_index(&r, of_dialect ? b->ndialects : b->nstrs, of_dialect ? "dialect" : "string");
        uint32_t n = bc_count(&r);
        for (uint32_t i = 0; i < n; i++) {
            bc_index(&r, b->nstrs, "string");
            BcSpan entry = span_take(&data, bc_varint(&r));
            uint8_t kind = rd_u8(&r);
            if (kind > 2)
                rd_fail(&r, "resource kind %u is unknown", kind);
            if (of_dialect)
                VEC_PUSH(b->arena, &blobs, resource_blob(b, entry, kind));
        }
    }
    bc_done(&data, "the resource section");
    b->resources = blobs.at;
    b->nresources = blobs.n;
}

// --- versions -----------------------------------------------------------------------------------

_Noreturn static void bc_fail_version(Bc *b, const char *what) {
    ctx_hint(b->ctx, "export the program for StableHLO %d.%d or older", VHLO_NEWEST_MAJOR,
             VHLO_NEWEST_MINOR);
    ctx_fail(b->ctx, OTRN_VERSION, (Place){.file = b->name}, "%s, written by %.100s, is not known",
             what, b->producer);
}

// Minor versions only add; a program that uses what they add fails at the op concerned.
static void check_producer(Bc *b) {
    unsigned major;
    if (sscanf(b->producer, "StableHLO_v%9u.", &major) == 1 && major > VHLO_NEWEST_MAJOR) {
        char what[40];
        snprintf(what, sizeof what, "StableHLO version %u", major);
        bc_fail_version(b, what);
    }
}

static void read_head(Bc *b, Rd *r) {
    rd_bytes(r, sizeof magic);
    b->version = bc_varint(r);
    const uint8_t *end = memchr(r->at, 0, (size_t)(r->end - r->at));
    if (!end)
        rd_fail(r, "the producer's name has no end");
    BcSpan producer = span_take(r, (uint64_t)(end + 1 - r->at));
    b->producer = arena_strndup(b->arena, (const char *)producer.at, producer.n - 1);
    if (b->version > BC_NEWEST_VERSION) {
        char what[40];
        snprintf(what, sizeof what, "bytecode version %llu", (unsigned long long)b->version);
        bc_fail_version(b, what);
    }
    check_producer(b);
}

// --- entry points -------------------------------------------------------------------------------

bool read_is_bytecode(const void *bytes, size_t size) {
    return size >= sizeof magic && !memcmp(bytes, magic, sizeof magic);
}

static void collect_sections(Bc *b, Rd *r, BcSpan sections[SEC_COUNT]) {
    bool have[SEC_COUNT] = {0};
    while (r->at < r->end) {
        uint8_t id;
        BcSpan s = bc_section(r, &id);
        if (id >= SEC_COUNT || id == SEC_DIALECT_VERSION)
            rd_fail(r, "section %u is unknown", id);
        if (have[id])
            rd_fail(r, "section %u appears twice", id);
        have[id] = true;
        sections[id] = s;
    }
    for (int id = SEC_STRING; id <= SEC_IR; id++)
        if (!have[id])
            rd_fail(r, "section %d is missing", id);
    if (have[SEC_RESOURCE_DATA] != have[SEC_RESOURCE_SIZE])
        rd_fail(r, "only one of the two resource sections is there");
    if (b->version >= 5 && !have[SEC_PROPERTIES])
        rd_fail(r, "the properties section is missing");
}

Hlo *read_bytecode(Ctx *ctx, Arena *a, const char *name, const void *bytes, size_t size) {
    Bc *b = ARENA_NEW(a, Bc);
    b->ctx = ctx;
    b->arena = a;
    b->h = hlo_make(ctx, a, name);
    b->name = b->h->file;
    b->file = (BcSpan){bytes, size};
    b->budget = BC_BUDGET_BASE + (uint64_t)size * BC_BUDGET_FACTOR;
    Rd r = bc_rd(b, b->file);
    if (!read_is_bytecode(bytes, size))
        rd_fail(&r, "not MLIR bytecode");
    read_head(b, &r);
    BcSpan sections[SEC_COUNT] = {0};
    collect_sections(b, &r, sections);
    read_strings(b, sections[SEC_STRING]);
    if (sections[SEC_PROPERTIES].n)
        read_properties(b, sections[SEC_PROPERTIES]);
    read_dialects(b, sections[SEC_DIALECT]);
    if (sections[SEC_RESOURCE_SIZE].n)
        read_resources(b, sections[SEC_RESOURCE_SIZE], sections[SEC_RESOURCE_DATA]);
    read_entries(b, sections[SEC_ENTRY_SIZE], sections[SEC_ENTRY_DATA]);
    bc_read_ir(b, sections[SEC_IR]);
    return b->h;
}
