// SPDX-License-Identifier: Apache-2.0
// shape.c — finds the shapes of a program, and takes code to bytes and back through them.
//
//   shapes    u32 count, then each: its encoding, u32 varies; ascending, so that each program has one form
//   code      u32 count, u32 size in bytes of every CHUNK instructions, then the instructions: u32 shape, what varies
//
// Chunks are decoded side by side. Nothing in them can raise: a fault is kept and told when all are done.
#include "isa/shape.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

#define CHUNK 4096

const uint8_t shape_addr_fields[SHAPE_ADDRS] = {ISA_F_dst, ISA_F_src, ISA_F_src1, ISA_F_res, ISA_F_a, ISA_F_b};
const uint16_t shape_addr_at[SHAPE_ADDRS] = {offsetof(IsaInst, dst), offsetof(IsaInst, src), offsetof(IsaInst, src1),
                                             offsetof(IsaInst, res), offsetof(IsaInst, a),   offsetof(IsaInst, b)};

static bool in_partitions(uint64_t addr) { return addr_space(addr) == SPACE_SBUF || addr_space(addr) == SPACE_PSUM; }

static void addr_set(IsaInst *in, int i, uint64_t addr) { memcpy((uint8_t *)in + shape_addr_at[i], &addr, 8); }

// --- finding -----------------------------------------------------------------------------------------------

static IsaShape shape_of(const IsaInst *in) {
    IsaShape s = {.in = *in};
    for (int w = 0; w < SHAPE_WAITS; w++) {
        s.varies |= (uint8_t)((in->wait_sem[w] != SEM_NONE) << w);
        s.in.wait_val[w] = 0;
    }
    for (int i = 0; i < SHAPE_ADDRS; i++) {
        uint64_t addr = shape_addr(in, i);
        bool part = in_partitions(addr);
        if (!part && (!addr || addr_space(addr) != SPACE_HBM))
            continue;
        s.varies |= (uint8_t)(1 << (SHAPE_WAITS + i));
        addr_set(&s.in, i, part ? addr >> 32 << 32 : 0);
    }
    return s;
}

// Says where in a record the parts that vary are.
static void places_set(IsaShape *s) {
    s->bytes = 4; // the shape's number
    for (int i = 0; i < SHAPE_PARTS; i++) {
        bool varies = s->varies >> i & 1, wide = i >= SHAPE_WAITS && !in_partitions(shape_addr(&s->in, i - SHAPE_WAITS));
        s->at[i] = varies ? s->bytes : 0;
        s->bytes = (uint8_t)(s->bytes + (varies ? wide ? 8 : 4 : 0));
    }
}

_Static_assert(sizeof(IsaInst) % 8 == 0, "hashed by words");

static uint64_t shape_hash(const IsaShape *s) {
    uint64_t lane[4] = {s->varies, 1, 2, 3}, w;
    for (size_t i = 0; i < sizeof s->in / 8; i++) {
        memcpy(&w, (const uint8_t *)&s->in + 8 * i, 8);
        lane[i % 4] = (lane[i % 4] ^ w) * 0x9e3779b97f4a7c15ull;
        lane[i % 4] ^= lane[i % 4] >> 29;
    }
    uint64_t h = lane[0] ^ (lane[1] << 17 | lane[1] >> 47) ^ (lane[2] << 31 | lane[2] >> 33) ^ (lane[3] << 47 | lane[3] >> 17);
    h *= 0x9e3779b97f4a7c15ull;
    return h ^ h >> 32;
}

static bool shape_same(const IsaShape *x, const IsaShape *y) {
    return x->varies == y->varies && !memcmp(&x->in, &y->in, sizeof x->in);
}

static void table_grow(ShapeCode *c) {
    c->mask = c->slots ? c->mask * 2 + 1 : 255;
    c->slots = ARENA_NEWN(c->arena, uint32_t, (size_t)c->mask + 1);
    for (uint32_t i = 0; i < c->shapes.n; i++) {
        uint32_t at = (uint32_t)c->hashes.at[i] & c->mask;
        while (c->slots[at])
            at = (at + 1) & c->mask;
        c->slots[at] = i + 1;
    }
}

static uint32_t table_add(ShapeCode *c, IsaShape *s) {
    if (!c->slots || c->shapes.n > c->mask / 2)
        table_grow(c);
    uint64_t hash = shape_hash(s);
    uint32_t at = (uint32_t)hash & c->mask;
    for (; c->slots[at]; at = (at + 1) & c->mask) {
        uint32_t i = c->slots[at] - 1;
        if (c->hashes.at[i] == hash && shape_same(&c->shapes.at[i], s))
            return i;
    }
    c->slots[at] = c->shapes.n + 1;
    places_set(s);
    VEC_PUSH(c->arena, &c->hashes, hash);
    VEC_PUSH(c->arena, &c->shapes, *s);
    return c->shapes.n - 1;
}

// --- making ------------------------------------------------------------------------------------------------

uint32_t shape_code_push(ShapeCode *c, const IsaInst *in) {
    IsaShape shape = shape_of(in);
    uint32_t number = table_add(c, &shape), at = c->words.n;
    const IsaShape *s = &c->shapes.at[number];
    VEC_RESERVE(c->arena, &c->words, at + s->bytes / 4);
    c->words.n += s->bytes / 4;
    c->words.at[at] = number;
    for (int i = 0; i < SHAPE_PARTS; i++)
        if (s->at[i]) { // little-endian, as every host we build for is
            uint32_t *to = &c->words.at[at + s->at[i] / 4];
            uint64_t part = i < SHAPE_WAITS ? in->wait_val[i] : shape_addr(in, i - SHAPE_WAITS);
            memcpy(to, &part, i >= SHAPE_WAITS && !in_partitions(part) ? 8 : 4);
        }
    VEC_PUSH(c->arena, &c->of, number);
    VEC_PUSH(c->arena, &c->record_at, at);
    return c->of.n - 1;
}

void shape_code_set_imm(ShapeCode *c, uint32_t pc, int32_t imm) {
    IsaShape s = c->shapes.at[c->of.at[pc]];
    s.in.imm = imm;
    c->of.at[pc] = c->words.at[c->record_at.at[pc]] = table_add(c, &s);
}

uint32_t shape_code_wait(const ShapeCode *c, uint32_t pc, int w) {
    const IsaShape *s = &c->shapes.at[c->of.at[pc]];
    assert(s->at[w]);
    return c->words.at[c->record_at.at[pc] + s->at[w] / 4];
}

void shape_code_set_wait(ShapeCode *c, uint32_t pc, int w, uint8_t sem, uint32_t val) {
    IsaShape s = c->shapes.at[c->of.at[pc]];
    assert(s.at[w] && sem != SEM_NONE);
    c->words.at[c->record_at.at[pc] + s.at[w] / 4] = val;
    s.in.wait_sem[w] = sem;
    c->of.at[pc] = c->words.at[c->record_at.at[pc]] = table_add(c, &s);
}

void shape_code_cut(ShapeCode *c, uint32_t n) {
    assert(n <= c->of.n);
    c->of.n = c->record_at.n = n;
    c->moved = true; // between records are some of nobody
}

void shape_code_order(ShapeCode *c, Arena *scratch, uint32_t begin, const uint32_t *from, uint32_t n) {
    uint32_t *of = arena_dup(scratch, c->of.at + begin, n * sizeof *of);
    uint32_t *at = arena_dup(scratch, c->record_at.at + begin, n * sizeof *at);
    for (uint32_t i = 0; i < n; i++) {
        c->of.at[begin + i] = of[from[i]];
        c->record_at.at[begin + i] = at[from[i]];
    }
    c->moved = true;
}

// In the code's order, and numbered as it is.
static void records_set(IsaShapes *s, ShapeCode *c) {
    uint32_t n = c->of.n, *to = c->words.at;
    if (c->moved) {
        to = arena_alloc(c->arena, ((size_t)c->words.n + 1) * sizeof *to);
        c->moved = false;
    }
    s->records = (const uint8_t *)to;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t *from = &c->words.at[c->record_at.at[i]], words = s->at[s->of[i]].bytes / 4;
        c->record_at.at[i] = (uint32_t)(to - (const uint32_t *)s->records);
        *to = s->of[i];
        if (to != from)
            for (uint32_t k = 1; k < words; k++)
                to[k] = from[k];
        to += words;
    }
    VEC_PUSH(c->arena, &c->record_at, (uint32_t)(to - (const uint32_t *)s->records));
    s->record_at = c->record_at.at;
}

typedef struct Ranked { // a shape by its encoding
    const uint8_t *bytes;
    uint32_t n, number;
} Ranked;

#define ENTRY_MAX (ISA_BYTES_MAX + 4)

static uint32_t entry_encode(const IsaShape *s, uint8_t out[ENTRY_MAX]) {
    size_t n = isa_encode(&s->in, out);
    le_store32(out + n, s->varies);
    return (uint32_t)n + 4;
}

// The first byte is the instruction, which decides the length: no entry is another's beginning.
static int entry_order(const uint8_t *x, uint32_t nx, const uint8_t *y, uint32_t ny) {
    return memcmp(x, y, nx < ny ? nx : ny);
}

static int by_entry(const void *a, const void *b) {
    const Ranked *x = a, *y = b;
    return entry_order(x->bytes, x->n, y->bytes, y->n);
}

IsaShapes *shape_code_end(ShapeCode *c) {
    Arena *a = c->arena;
    IsaShapes *s = ARENA_NEW(a, IsaShapes);
    s->n = c->shapes.n;
    Ranked *order = ARENA_NEWN(a, Ranked, (size_t)s->n + 1);
    uint32_t *rank = ARENA_NEWN(a, uint32_t, (size_t)s->n + 1), used = 0;
    for (uint32_t i = 0; i < c->of.n; i++)
        c->shapes.at[c->of.at[i]].uses++;
    for (uint32_t i = 0; i < s->n; i++) {
        uint8_t bytes[ENTRY_MAX];
        uint32_t size = entry_encode(&c->shapes.at[i], bytes);
        if (c->shapes.at[i].uses) // not replaced by another
            order[used++] = (Ranked){arena_dup(a, bytes, size), size, i};
    }
    qsort(order, used, sizeof *order, by_entry);
    s->n = used;
    s->at = ARENA_NEWN(a, IsaShape, (size_t)s->n + 1);
    for (uint32_t i = 0; i < s->n; i++) {
        s->at[i] = c->shapes.at[order[i].number];
        rank[order[i].number] = i;
    }
    s->of = c->of.at;
    for (uint32_t i = 0; i < c->of.n; i++)
        s->of[i] = rank[s->of[i]];
    records_set(s, c);
    return s;
}

IsaShapes *shapes_find(Arena *a, const IsaInst *code, uint32_t n) {
    ShapeCode c = {.arena = a};
    VEC_RESERVE(a, &c.of, n + 1);
    VEC_RESERVE(a, &c.record_at, n + 1);
    for (uint32_t i = 0; i < n; i++)
        shape_code_push(&c, &code[i]);
    return shape_code_end(&c);
}

// --- what varies -------------------------------------------------------------------------------------------

typedef struct Patch { // a place in IsaInst that varies
    uint8_t at;
    bool wide; // 8 bytes: an address in HBM
} Patch;

typedef struct Form { // a record's parts behind the shape's number, in their order
    uint8_t n;
    Patch patch[SHAPE_PARTS];
} Form;
_Static_assert(sizeof(IsaInst) < 256, "a patch's place is a byte");

static Form form_of(const IsaShape *s) {
    Form f = {0};
    for (int i = 0; i < SHAPE_PARTS; i++) {
        if (!s->at[i])
            continue;
        size_t at = i < SHAPE_WAITS ? offsetof(IsaInst, wait_val) + 4 * (size_t)i : shape_addr_at[i - SHAPE_WAITS];
        f.patch[f.n++] = (Patch){(uint8_t)at, i >= SHAPE_WAITS && !in_partitions(shape_addr(&s->in, i - SHAPE_WAITS))};
    }
    return f;
}

static Form *forms_make(Arena *a, const IsaShapes *s) {
    Form *f = ARENA_NEWN(a, Form, (size_t)s->n + 1);
    for (uint32_t i = 0; i < s->n; i++)
        f[i] = form_of(&s->at[i]);
    return f;
}

// --- encode ------------------------------------------------------------------------------------------------

void shapes_encode(const IsaShapes *s, uint32_t n, Buf *out) {
    put_u32(out, s->n);
    for (uint32_t i = 0; i < s->n; i++) {
        uint8_t bytes[ENTRY_MAX];
        assert(isa_is_clean(&s->at[i].in));
        buf_put(out, bytes, entry_encode(&s->at[i], bytes));
    }
    put_u32(out, n);
    for (uint32_t i = 0; i < n;) {
        uint32_t end = n - i > CHUNK ? i + CHUNK : n;
        put_u32(out, 4 * (s->record_at[end] - s->record_at[i]));
        i = end;
    }
    buf_put(out, s->records, 4 * (size_t)s->record_at[n]);
}

// --- decode ------------------------------------------------------------------------------------------------

// NULL, or why a shape says in another way than shape_of would what varies.
static const char *shape_fault(const IsaShape *s, uint32_t varies) {
    if (varies >> SHAPE_PARTS)
        return "unknown parts that vary";
    for (int w = 0; w < SHAPE_WAITS; w++)
        if ((varies >> w & 1) != (s->in.wait_sem[w] != SEM_NONE) || s->in.wait_val[w])
            return "a wait count of its own";
    for (int i = 0; i < SHAPE_ADDRS; i++) {
        uint64_t addr = shape_addr(&s->in, i);
        bool vary = varies >> (SHAPE_WAITS + i) & 1;
        if (vary && !isa_row_has(s->in.op, shape_addr_fields[i]))
            return "an address that varies and that its row does not have";
        if (in_partitions(addr) ? !vary || (uint32_t)addr : addr_space(addr) == SPACE_HBM ? addr != 0 : vary)
            return "an offset of its own";
    }
    return NULL;
}

static IsaShapes *table_decode(Rd *r, const IsaMap *map, Arena *a) {
    IsaShapes *s = ARENA_NEW(a, IsaShapes);
    s->n = rd_count(r, ISA_HEAD_BYTES + 4);
    s->at = ARENA_NEWN(a, IsaShape, (size_t)s->n + 1);
    const uint8_t *before = NULL;
    uint32_t nbefore = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const uint8_t *begin = r->at;
        isa_decode(r, map, &s->at[i].in);
        uint32_t varies = rd_u32(r);
        const char *fault = shape_fault(&s->at[i], varies);
        if (fault)
            rd_fail(r, "shape %u (`%s`) has %s", i, isa_rows[s->at[i].in.op].name, fault);
        s->at[i].varies = (uint8_t)varies;
        places_set(&s->at[i]);
        uint32_t n = (uint32_t)(r->at - begin);
        if (before && entry_order(before, nbefore, begin, n) >= 0)
            rd_fail(r, "shape %u does not come after the one before it", i);
        before = begin, nbefore = n;
    }
    return s;
}

typedef struct Chunk {
    const uint8_t *at, *end;
    uint32_t bad; // instruction
    const char *why;
} Chunk;

typedef struct Decode {
    IsaShapes *shapes;
    const Form *forms;
    Chunk *chunks;
    IsaInst *code;
    uint32_t n;
} Decode;

IsaInst shapes_inst(const IsaShapes *s, uint32_t pc) {
    const IsaShape *shape = &s->at[s->of[pc]];
    const uint8_t *record = shape_record(s, pc);
    IsaInst in = shape->in;
    for (int i = 0; i < SHAPE_PARTS; i++)
        if (shape->at[i]) {
            uint8_t *to = (uint8_t *)&in + (i < SHAPE_WAITS ? offsetof(IsaInst, wait_val) + 4 * (size_t)i : shape_addr_at[i - SHAPE_WAITS]);
            memcpy(to, record + shape->at[i], i >= SHAPE_WAITS && !in_partitions(shape_addr(&shape->in, i - SHAPE_WAITS)) ? 8 : 4);
        }
    return in;
}

static const char *decode_one(const Decode *d, const uint8_t **at, const uint8_t *end, uint32_t pc) {
    const uint8_t *p = *at;
    if (end - p < 4)
        return "is cut off";
    uint32_t number = le_load32(p);
    if (number >= d->shapes->n)
        return "has a shape that does not exist";
    const Form *f = &d->forms[number];
    if (end - p < d->shapes->at[number].bytes)
        return "is cut off";
    p += 4;
    IsaInst *in = &d->code[pc];
    *in = d->shapes->at[number].in;
    d->shapes->of[pc] = number;
    d->shapes->record_at[pc] = (uint32_t)((size_t)(*at - d->shapes->records) / 4);
    for (int k = 0; k < f->n; k++) {
        uint8_t *to = (uint8_t *)in + f->patch[k].at;
        if (!f->patch[k].wide) { // the low half of an address, or a wait count
            memcpy(to, p, 4);
            p += 4;
            continue;
        }
        uint64_t addr = le_load64(p);
        if (!addr || addr >> 56)
            return "has an HBM address that its shape does not allow";
        memcpy(to, &addr, 8);
        p += 8;
    }
    *at = p;
    return NULL;
}

static void chunks_decode(void *arg, size_t begin, size_t end) {
    const Decode *d = arg;
    for (size_t c = begin; c < end; c++) {
        Chunk *chunk = &d->chunks[c];
        const uint8_t *p = chunk->at;
        uint32_t pc = (uint32_t)c * CHUNK, stop = d->n - pc > CHUNK ? pc + CHUNK : d->n;
        for (; pc < stop && !chunk->why; pc++) {
            chunk->why = decode_one(d, &p, chunk->end, pc);
            chunk->bad = pc;
        }
        if (!chunk->why && p != chunk->end)
            chunk->why = "is followed by bytes that belong to none";
    }
}

// A file's numbers may order shapes in another way than ours, and two of them mean the same.
static bool is_in_order(const IsaShapes *s) {
    uint8_t bytes[2][ENTRY_MAX];
    uint32_t size[2] = {0};
    for (uint32_t i = 0; i < s->n; i++) {
        size[i & 1] = entry_encode(&s->at[i], bytes[i & 1]);
        if (i && entry_order(bytes[~i & 1], size[~i & 1], bytes[i & 1], size[i & 1]) >= 0)
            return false;
    }
    return true;
}

IsaShapes *shapes_decode(Rd *r, const IsaMap *map, Arena *a, Pool *pool, IsaInst **code, uint32_t *n) {
    IsaShapes *s = table_decode(r, map, a);
    *n = rd_count(r, 4);
    uint32_t nchunks = *n / CHUNK + (*n % CHUNK != 0);
    const uint8_t *sizes = rd_bytes(r, 4 * (size_t)nchunks);
    s->of = arena_alloc(a, ((size_t)*n + 1) * sizeof *s->of);
    s->record_at = arena_alloc(a, ((size_t)*n + 1) * sizeof *s->record_at);
    s->records = r->at;
    *code = arena_alloc(a, ((size_t)*n + 1) * sizeof **code);
    Decode d = {.shapes = s, .forms = forms_make(a, s),
                .chunks = ARENA_NEWN(a, Chunk, (size_t)nchunks + 1), .code = *code, .n = *n};
    for (uint32_t c = 0; c < nchunks; c++) {
        size_t size = le_load32(sizes + 4 * (size_t)c);
        d.chunks[c].at = rd_bytes(r, size);
        d.chunks[c].end = r->at;
    }
    s->record_at[*n] = (uint32_t)((size_t)(r->at - s->records) / 4);
    pool_run(pool, nchunks, 1, chunks_decode, &d);
    for (uint32_t c = 0; c < nchunks; c++)
        if (d.chunks[c].why)
            rd_fail(r, "instruction %u %s", d.chunks[c].bad, d.chunks[c].why);
    for (uint32_t i = 0; i < *n; i++)
        s->at[s->of[i]].uses++;
    for (uint32_t i = 0; i < s->n; i++)
        if (!s->at[i].uses)
            rd_fail(r, "shape %u is never used", i);
    return is_in_order(s) ? s : shapes_find(a, *code, *n);
}
