// SPDX-License-Identifier: Apache-2.0
// shape.h — code as shapes and what varies: how artifacts store it and why they load quickly.
//
// Unrolled code repeats few instructions with other addresses: a step of GPT-2 has 259 thousand instructions and a
// thousand shapes. A shape is an instruction without its wait counts and without the offsets of its addresses; an
// instruction is the number of its shape and those. What a shape alone decides (types, operations, counts, partitions,
// extents) is then looked at once for all of its instructions.
//
// In a shape the bits that vary are zero and `varies` names them:
//   wait counts   of a wait that has a semaphore: 32 bits
//   addresses     in SBUF or PSUM the offset, 32 bits; in HBM segment and offset, 56 bits, unless they are all zero
// Other addresses (numbers, none at all) are the shape's own.
//
// Whoever looks at a whole program and needs little of each instruction reads its *record*: the number of its shape and
// what varies, some twenty bytes beside the 248 of an IsaInst.
#ifndef OTRN_ISA_SHAPE_H
#define OTRN_ISA_SHAPE_H

#include "base/pool.h"
#include "isa/isa.h"

#define SHAPE_WAITS 2
#define SHAPE_ADDRS 6 // dst, src, src1, res, a, b
#define SHAPE_PARTS (SHAPE_WAITS + SHAPE_ADDRS)
#define SHAPE_RES (SHAPE_WAITS + 3)

typedef struct IsaShape {
    IsaInst in;
    uint8_t varies; // bit i: wait i, then the addresses in the order above
    uint8_t at[SHAPE_PARTS]; // where each of these is in the record, or 0: the shape's own
    uint8_t bytes;  // of the record
    uint32_t uses;  // instructions that have it
} IsaShape;

typedef struct IsaShapes {
    uint32_t n;
    IsaShape *at;  // each once, in the order of their encodings
    uint32_t *of;  // per instruction
    const uint8_t *records; // as the artifact stores them
    uint32_t *record_at;    // per instruction: where its record begins, in words of 4 bytes
} IsaShapes;

// What the instruction shares with others: quick to look at, for its addresses and wait counts are not there.
static inline const IsaInst *shape_inst(const IsaShapes *s, uint32_t pc) { return &s->at[s->of[pc]].in; }

static inline const uint8_t *shape_record(const IsaShapes *s, uint32_t pc) { return s->records + 4 * (size_t)s->record_at[pc]; }

extern const uint8_t shape_addr_fields[SHAPE_ADDRS]; // ISA_F_dst, …
extern const uint16_t shape_addr_at[SHAPE_ADDRS];    // where they are in IsaInst
static inline uint64_t shape_addr(const IsaInst *in, int i) {
    uint64_t addr;
    memcpy(&addr, (const uint8_t *)in + shape_addr_at[i], 8);
    return addr;
}

IsaShapes *shapes_find(Arena *a, const IsaInst *code, uint32_t n);
IsaInst shapes_inst(const IsaShapes *s, uint32_t pc); // the whole instruction

typedef struct ShapeCode { // code while it is made: instructions come in and are shapes and records from then on
    Arena *arena;
    VEC(IsaShape) shapes; // in the order they came
    VEC(uint64_t) hashes;
    uint32_t *slots, mask; // by hash, number + 1
    VEC(uint32_t) of, record_at; // per instruction, as in IsaShapes
    VEC(uint32_t) words;         // records
    bool moved;                  // they are not in the code's order
} ShapeCode;
uint32_t shape_code_push(ShapeCode *c, const IsaInst *in); // its number
void shape_code_set_imm(ShapeCode *c, uint32_t pc, int32_t imm);
void shape_code_set_wait(ShapeCode *c, uint32_t pc, int w, uint8_t sem, uint32_t val); // of one that waits already
uint32_t shape_code_wait(const ShapeCode *c, uint32_t pc, int w); // the count it waits for
void shape_code_cut(ShapeCode *c, uint32_t n); // instructions from n on are gone
// What was at begin + from[i] is at begin + i then.
void shape_code_order(ShapeCode *c, Arena *scratch, uint32_t begin, const uint32_t *from, uint32_t n);
IsaShapes *shape_code_end(ShapeCode *c);
// Exact inverses (spec/artifact.md, CODE). Decode raises PARSE; it shares its work out over the pool, which may be NULL.
// Its records are the file's bytes, which must stay.
void shapes_encode(const IsaShapes *s, uint32_t n, Buf *out);
IsaShapes *shapes_decode(Rd *r, const IsaMap *map, Arena *a, Pool *pool, IsaInst **code, uint32_t *n);

#endif
