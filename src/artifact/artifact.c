// SPDX-License-Identifier: Apache-2.0
// artifact.c — artifacts to bytes and back. The layout is spec/artifact.md.
//
//   header | section table | sections, each 16-byte aligned, in the order of SECTION_ROWS
//
// Equal programs give equal bytes: sections stand in table order without gaps, padding is zero,
// strings are numbered by first use. The loader accepts nothing else, so every flipped bit is found
// by a checksum or by one of these rules.
#include "artifact/artifact.h"

#include <assert.h>
#include <stdlib.h>

#include "coll/groups.h"

#define HEADER_BYTES 32
#define SECTION_BYTES 24
#define SECTION_ALIGN 16
#define CONST_ALIGN 64                     // as host kernels like it
#define VALUE_BYTES_MAX ((int64_t)1 << 40) // an HBM offset has 40 bits

// SECTION(enum, four letters of the file, writer and reader)
#define SECTION_ROWS(SECTION)                                                                      \
    SECTION(STRS, "STRS")                                                                          \
    SECTION(NAME, "NAME")                                                                          \
    SECTION(INFO, "INFO")                                                                          \
    SECTION(VALS, "VALS")                                                                          \
    SECTION(LOCS, "LOCS")                                                                          \
    SECTION(CODE, "CODE")                                                                          \
    SECTION(CLOC, "CLOC")                                                                          \
    SECTION(KERN, "KERN")                                                                          \
    SECTION(LOOP, "LOOP")                                                                          \
    SECTION(LIVE, "LIVE")                                                                          \
    SECTION(DATA, "DATA")                                                                          \
    SECTION(PROG, "PROG")

enum {
#define SECTION(e, letters) SEC_##e,
    SECTION_ROWS(SECTION)
#undef SECTION
        SEC_COUNT
};
static const char section_letters[SEC_COUNT][5] = {
#define SECTION(e, letters) letters,
    SECTION_ROWS(SECTION)
#undef SECTION
};

bool artifact_is(const void *bytes, size_t size) {
    return size >= sizeof ARTIFACT_MAGIC && !memcmp(bytes, ARTIFACT_MAGIC, sizeof ARTIFACT_MAGIC);
}

bool artifact_calls_host(const Artifact *art) {
    for (uint32_t i = 0; i < art->nkerns; i++)
        if (kern_calls_host(&art->kerns[i]))
            return true;
    return false;
}

// --- save ----------------------------------------------------------------------------------------

static void save_value(const ArtValue *v, Dict *dict, Buf *out) {
    put_u8(out, v->dtype);
    put_u8(out, v->rank);
    put_u8(out, v->donated);
    put_u8(out, v->memory);
    put_u32(out, (uint32_t)v->alias);
    put_u32(out, dict_add(dict, v->name));
    for (int i = 0; i < v->rank; i++)
        put_u64(out, (uint64_t)v->dims[i]);
}

static void save_values(const Artifact *art, Dict *dict, Buf *out) {
    put_u32(out, art->nargs);
    put_u32(out, art->nresults);
    for (uint32_t i = 0; i < art->nargs; i++)
        save_value(&art->args[i], dict, out);
    for (uint32_t i = 0; i < art->nresults; i++)
        save_value(&art->results[i], dict, out);
    for (uint32_t i = 0; art->partitions > 1 && i < art->nargs + art->nresults; i++) {
        const ArtValue *v = i < art->nargs ? &art->args[i] : &art->results[i - art->nargs];
        put_u32(out, dict_add(dict, v->sharding ? v->sharding : ""));
    }
}

static void save_locs(const Artifact *art, Dict *dict, Buf *out) {
    uint32_t n = art->nlocs ? art->nlocs - 1 : 0; // slot 0 is not stored
    put_u32(out, n);
    for (uint32_t i = 1; i <= n; i++) {
        const ArtLoc *l = &art->locs[i];
        put_u32(out, dict_add(dict, l->file));
        put_u32(out, dict_add(dict, l->name));
        put_u32(out, l->line);
        put_u32(out, l->col);
        put_u32(out, dict_add_op(dict, l->op));
    }
}

static int loop_order(const void *a, const void *b) {
    const ArtLoop *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end)
        return x->end > y->end ? -1 : 1;
    return x->trips < y->trips ? -1 : x->trips > y->trips;
}

const ArtLoop *artifact_loops_sorted(const Artifact *art, Arena *a) {
    ArtLoop *loops = arena_dup(a, art->loops, art->nloops * sizeof *loops);
    bool sorted = true;
    for (uint32_t i = 1; i < art->nloops && sorted; i++)
        sorted = loop_order(&loops[i - 1], &loops[i]) <= 0;
    if (!sorted)
        qsort(loops, art->nloops, sizeof *loops, loop_order);
    return loops;
}

static void save_loops(const Artifact *art, Buf *out) {
    const ArtLoop *loops = artifact_loops_sorted(art, out->arena);
    put_u32(out, art->nloops);
    for (uint32_t i = 0; i < art->nloops; i++) {
        put_u32(out, loops[i].begin);
        put_u32(out, loops[i].end);
        put_u64(out, loops[i].trips);
    }
}

static void save_live(const Artifact *art, Buf *out) {
    put_u32(out, art->nlive);
    for (uint32_t i = 0; i < art->nlive; i++) {
        put_u64(out, art->live[i].bytes);
        put_u32(out, art->live[i].loc);
    }
}

static void save_program(const Artifact *art, Dict *dict, Buf *out) {
    if (!art->program_bytes)
        return;
    put_u64(out, art->chip_hash);
    put_u32(out, dict_add(dict, art->options ? art->options : ""));
    buf_put(out, art->program, art->program_bytes);
}

static void save_section(const Artifact *art, int section, Dict *dict, Buf *out) {
    switch (section) {
    case SEC_STRS:
        dict_encode(dict, out);
        break;
    case SEC_NAME:
        dict_encode_tables(dict, out);
        break;
    case SEC_INFO:
        put_u32(out, dict_add(dict, art->name));
        put_u32(out, dict_add(dict, art->target));
        put_u32(out, dict_add(dict, art->producer));
        put_u32(out, dict_add(dict, art->precision ? art->precision : ""));
        put_u32(out, art->flags);
        put_u32(out, art->partitions > 1 ? art->partitions : 0);
        put_u32(out, art->peer ? 2 : 0);
        put_u64(out, art->scratch_bytes);
        break;
    case SEC_VALS:
        save_values(art, dict, out);
        break;
    case SEC_LOCS:
        save_locs(art, dict, out);
        break;
    case SEC_CODE:
        for (; art; art = art->peer) {
            const IsaShapes *shapes = art->shapes ? art->shapes : shapes_find(out->arena, art->code, art->ncode);
            shapes_encode(shapes, art->ncode, out);
        }
        break;
    case SEC_CLOC:
        for (; art; art = art->peer) {
            buf_reserve(out, 4 * (size_t)art->ncode);
            for (uint32_t i = 0; i < art->ncode; i++)
                put_u32(out, art->code_loc ? art->code_loc[i] : 0);
        }
        break;
    case SEC_KERN:
        put_u32(out, art->nkerns);
        for (uint32_t i = 0; i < art->nkerns; i++)
            kern_encode(&art->kerns[i], dict, out);
        break;
    case SEC_LOOP:
        for (; art; art = art->peer)
            save_loops(art, out);
        break;
    case SEC_LIVE:
        save_live(art, out);
        break;
    case SEC_DATA:
        buf_put(out, art->consts, art->const_bytes);
        break;
    case SEC_PROG:
        save_program(art, dict, out);
        break;
    }
}

static void save_header(Buf *out, size_t at, const Buf sections[SEC_COUNT]) {
    uint64_t offset = HEADER_BYTES + SEC_COUNT * SECTION_BYTES;
    Buf table = {.arena = out->arena};
    for (int i = 0; i < SEC_COUNT; i++) {
        offset = (offset + SECTION_ALIGN - 1) / SECTION_ALIGN * SECTION_ALIGN;
        buf_put(&table, section_letters[i], 4);
        put_u32(&table, crc32c(0, sections[i].at, sections[i].n));
        put_u64(&table, offset);
        put_u64(&table, sections[i].n);
        offset += sections[i].n;
    }
    buf_put(out, ARTIFACT_MAGIC, sizeof ARTIFACT_MAGIC);
    put_u32(out, ARTIFACT_VERSION);
    put_u32(out, SEC_COUNT);
    put_u64(out, offset); // size of the file
    put_u32(out, crc32c(0, table.at, table.n));
    put_u32(out, crc32c(0, out->at + at, out->n - at));
    assert(out->n - at == HEADER_BYTES);
    buf_put(out, table.at, table.n);
}

void artifact_save(const Artifact *art, Buf *out) {
    Dict dict;
    dict_init(&dict, out->arena);
    Buf sections[SEC_COUNT];
    for (int i = SEC_COUNT; i-- > 0;) { // strings last: the others add to them
        sections[i] = (Buf){.arena = out->arena};
        save_section(art, i, &dict, &sections[i]);
    }
    size_t at = out->n;
    save_header(out, at, sections);
    for (int i = 0; i < SEC_COUNT; i++) {
        while ((out->n - at) % SECTION_ALIGN)
            put_u8(out, 0);
        buf_put(out, sections[i].at, sections[i].n);
    }
}

void artifact_pair(Arena *a, Artifact *art, const Artifact *second) {
    art->cores = 2;
    art->peer = ARENA_NEW(a, Artifact);
    *art->peer = *art;
    art->peer->peer = NULL;
    art->peer->code = second->code, art->peer->shapes = second->shapes;
    art->peer->code_loc = second->code_loc, art->peer->ncode = second->ncode;
    art->peer->loops = second->loops, art->peer->nloops = second->nloops;
}

void artifact_expand(Arena *a, Artifact *art) {
    if (art->peer)
        artifact_expand(a, art->peer);
    if (art->code)
        return;
    art->code = arena_alloc(a, ((size_t)art->ncode + 1) * sizeof *art->code);
    for (uint32_t i = 0; i < art->ncode; i++)
        art->code[i] = shapes_inst(art->shapes, i);
}

uint8_t *artifact_const_dup(Arena *a, const void *bytes, size_t n) {
    uint8_t *p = arena_alloc(a, n + CONST_ALIGN);
    p += -(uintptr_t)p % CONST_ALIGN;
    if (n)
        memcpy(p, bytes, n);
    return p;
}

// --- load ----------------------------------------------------------------------------------------

typedef struct Load {
    Ctx *ctx;
    Arena *arena;
    const char *name;
    Pool *pool;
    Dict dict;
    Rd section[SEC_COUNT];
} Load;

_Noreturn static void load_version(Rd *r, const char *what) {
    ctx_hint(r->ctx, "compile the program again with this release (" OTRN_RELEASE ")");
    ctx_fail(r->ctx, OTRN_VERSION, (Place){.file = r->name}, "%s", what);
}

static void load_header(Rd *r) {
    if (!artifact_is(r->base, (size_t)(r->end - r->base)))
        rd_fail(r, "not an opentrn artifact");
    const uint8_t *h = rd_bytes(r, HEADER_BYTES);
    if (crc32c(0, h, HEADER_BYTES - 4) != le_load32(h + HEADER_BYTES - 4))
        rd_fail(r, "the header is damaged");
    if (le_load32(h + 8) != ARTIFACT_VERSION)
        load_version(r, "the artifact has another format version");
    if (le_load64(h + 16) != (uint64_t)(r->end - r->base))
        rd_fail(r, "the file should have %llu bytes", (unsigned long long)le_load64(h + 16));
}

static void load_sections(Load *l, Rd *r) {
    const uint8_t *h = r->base;
    if (le_load32(h + 12) != SEC_COUNT)
        load_version(r, "the artifact has other sections than this release knows");
    const uint8_t *table = rd_bytes(r, SEC_COUNT * SECTION_BYTES);
    if (crc32c(0, table, SEC_COUNT * SECTION_BYTES) != le_load32(h + 24))
        rd_fail(r, "the section table is damaged");
    for (int i = 0; i < SEC_COUNT; i++, table += SECTION_BYTES) {
        if (memcmp(table, section_letters[i], 4))
            load_version(r, "the artifact has other sections than this release knows");
        rd_align(r, SECTION_ALIGN);
        if (le_load64(table + 8) != (uint64_t)(r->at - r->base))
            rd_fail(r, "section %s is not where it should be", section_letters[i]);
        uint64_t size = le_load64(table + 16);
        if (size > (uint64_t)(r->end - r->at))
            rd_fail(r, "section %s ends after the file", section_letters[i]);
        const uint8_t *at = rd_bytes(r, (size_t)size);
        if (crc32c(0, at, (size_t)size) != le_load32(table + 4))
            rd_fail(r, "section %s is damaged: its checksum does not match", section_letters[i]);
        l->section[i] = (Rd){r->ctx, r->name, r->base, at, at + size};
    }
    if (r->at != r->end)
        rd_fail(r, "bytes after the last section");
}

static void load_value(Load *l, Rd *r, ArtValue *v) {
    *v = (ArtValue){0};
    v->dtype = (uint8_t)dict_dtype(&l->dict, r);
    if (v->dtype == DT_INVALID)
        rd_fail(r, "a value without an element type");
    v->rank = rd_u8(r);
    v->donated = rd_u8(r);
    v->memory = rd_u8(r);
    v->alias = (int32_t)rd_u32(r);
    v->name = dict_str(&l->dict, r);
    if (v->rank > OTRN_MAX_RANK)
        rd_fail(r, "a value of rank %u, at most %d is allowed", v->rank, OTRN_MAX_RANK);
    v->sharding = "";
    if (v->donated > 1 || v->memory >= ART_MEMORIES)
        rd_fail(r, "a value is donated %u times to memory %u", v->donated, v->memory);
    int64_t bytes = (int64_t)dtype_bytes(v->dtype);
    for (int i = 0; i < v->rank; i++) {
        v->dims[i] = (int64_t)rd_u64(r);
        if (v->dims[i] < 0 || __builtin_mul_overflow(bytes, v->dims[i], &bytes) ||
            bytes > VALUE_BYTES_MAX)
            rd_fail(r, "a value with an impossible dimension %lld", (long long)v->dims[i]);
    }
    v->bytes = (uint64_t)bytes;
}

static ArtValue *load_values(Load *l, Rd *r, uint32_t n) {
    if (n > (size_t)(r->end - r->at) / 12)
        rd_fail(r, "a count of %u values cannot be true", n);
    ArtValue *v = ARENA_NEWN(l->arena, ArtValue, n ? n : 1);
    for (uint32_t i = 0; i < n; i++)
        load_value(l, r, &v[i]);
    return v;
}

static void load_locs(Load *l, Rd *r, Artifact *art) {
    uint32_t n = rd_count(r, 20);
    art->nlocs = n + 1;
    art->locs = ARENA_NEWN(l->arena, ArtLoc, (size_t)n + 1);
    art->locs[0] = (ArtLoc){.file = "", .name = ""};
    for (uint32_t i = 1; i <= n; i++) {
        ArtLoc *loc = &art->locs[i];
        loc->file = dict_str(&l->dict, r);
        loc->name = dict_str(&l->dict, r);
        loc->line = rd_u32(r);
        loc->col = rd_u32(r);
        loc->op = (uint16_t)dict_op(&l->dict, r);
    }
}

static void load_loops(Load *l, Rd *r, Artifact *art) {
    art->nloops = rd_count(r, 16);
    art->loops = ARENA_NEWN(l->arena, ArtLoop, art->nloops ? art->nloops : 1);
    for (uint32_t i = 0; i < art->nloops; i++) {
        art->loops[i].begin = rd_u32(r);
        art->loops[i].end = rd_u32(r);
        art->loops[i].trips = rd_u64(r);
    }
}

// Code, its locations and its loops, of one core.
static void load_code(Load *l, Artifact *art) {
    Rd *r = &l->section[SEC_CODE];
    art->shapes = shapes_decode(r, &l->dict.map, l->arena, l->pool, &art->code, &art->ncode);
    const uint8_t *locs = rd_bytes(&l->section[SEC_CLOC], 4 * (size_t)art->ncode);
    art->code_loc = arena_alloc(l->arena, 4 * (size_t)art->ncode);
    for (uint32_t i = 0; i < art->ncode; i++)
        art->code_loc[i] = le_load32(locs + 4 * (size_t)i);
    load_loops(l, &l->section[SEC_LOOP], art);
}

static void load_kerns(Load *l, Rd *r, Artifact *art) {
    art->nkerns = rd_count(r, 24);
    art->kerns = ARENA_NEWN(l->arena, Kern, art->nkerns ? art->nkerns : 1);
    for (uint32_t i = 0; i < art->nkerns; i++)
        kern_decode(r, &l->dict, l->arena, &art->kerns[i]);
}

static void load_live(Load *l, Rd *r, Artifact *art) {
    art->nlive = rd_count(r, 12);
    art->live = ARENA_NEWN(l->arena, ArtLive, art->nlive ? art->nlive : 1);
    for (uint32_t i = 0; i < art->nlive; i++) {
        art->live[i].bytes = rd_u64(r);
        art->live[i].loc = rd_u32(r);
    }
}

// Nobody looks into the program unless it is compiled again.
static void load_program(Load *l, Rd *r, Artifact *art) {
    art->options = "";
    if (r->at == r->end)
        return;
    art->chip_hash = rd_u64(r);
    art->options = dict_str(&l->dict, r);
    art->program_bytes = (uint64_t)(r->end - r->at);
    if (!art->program_bytes)
        rd_fail(r, "options without a program");
    art->program = rd_bytes(r, (size_t)art->program_bytes);
}

static void load_info(Load *l, Rd *r, Artifact *art) {
    art->name = dict_str(&l->dict, r);
    art->target = dict_str(&l->dict, r);
    art->producer = dict_str(&l->dict, r);
    art->precision = dict_str(&l->dict, r);
    art->flags = rd_u32(r);
    if (art->flags & ~(uint32_t)ART_STOCHASTIC)
        rd_fail(r, "flags 0x%x have no meaning", art->flags);
    art->partitions = rd_u32(r);
    if (art->partitions == 1 || art->partitions > PROGRAM_DEVICES_MAX)
        rd_fail(r, "a program for %u devices", art->partitions);
    art->cores = rd_u32(r);
    if (art->cores && art->cores != 2)
        rd_fail(r, "a program for a logical core of %u", art->cores);
    art->scratch_bytes = rd_u64(r);
}

static Artifact *load_all(Load *l) {
    Artifact *art = ARENA_NEW(l->arena, Artifact);
    Rd *s = l->section;
    dict_decode(&l->dict, &s[SEC_STRS]);
    dict_decode_tables(&l->dict, &s[SEC_NAME]);
    load_info(l, &s[SEC_INFO], art);
    art->nargs = rd_u32(&s[SEC_VALS]);
    art->nresults = rd_u32(&s[SEC_VALS]);
    art->args = load_values(l, &s[SEC_VALS], art->nargs);
    art->results = load_values(l, &s[SEC_VALS], art->nresults);
    for (uint32_t i = 0; art->partitions && i < art->nargs + art->nresults; i++)
        (i < art->nargs ? &art->args[i] : &art->results[i - art->nargs])->sharding =
            dict_str(&l->dict, &s[SEC_VALS]);
    load_locs(l, &s[SEC_LOCS], art);
    load_code(l, art);
    load_kerns(l, &s[SEC_KERN], art);
    load_live(l, &s[SEC_LIVE], art);
    Rd *data = &s[SEC_DATA];
    art->const_bytes = (uint64_t)(data->end - data->at);
    art->consts = artifact_const_dup(l->arena, data->at, (size_t)art->const_bytes);
    data->at = data->end;
    load_program(l, &s[SEC_PROG], art);
    if (art->cores) {
        Artifact second = {0};
        load_code(l, &second);
        artifact_pair(l->arena, art, &second);
    }
    for (int i = 0; i < SEC_COUNT; i++)
        if (s[i].at != s[i].end)
            rd_fail(&s[i], "section %s is longer than its contents", section_letters[i]);
    return art;
}

Artifact *artifact_read(Ctx *ctx, Arena *a, const char *name, const void *bytes, size_t size, Pool *pool) {
    Load l = {.ctx = ctx, .arena = a, .name = name, .pool = pool, .dict = {.arena = a}};
    Rd r = {ctx, name, bytes, bytes, (const uint8_t *)bytes + size};
    load_header(&r);
    load_sections(&l, &r);
    return load_all(&l);
}

Artifact *artifact_load(Ctx *ctx, Arena *a, const char *name, const void *bytes, size_t size) {
    Artifact *art = artifact_read(ctx, a, name, bytes, size, NULL);
    artifact_verify(ctx, art, name);
    return art;
}
