// SPDX-License-Identifier: Apache-2.0
// emit.h — appending instructions with the waits their memory needs.
#ifndef OTRN_TILE_EMIT_H
#define OTRN_TILE_EMIT_H

#include "tile/place.h"

// SBUF, bytes inside a partition: products below, row programs above. The smallest chip has room for both.
#define ROWS_AREA_BEGIN 73728u
#define ROWS_AREA_BYTES 102400u
#define ROWS_GRANULE 1024u // waits between programs are told apart by pieces of this size
#define ROWS_GRANULES (ROWS_AREA_BYTES / ROWS_GRANULE)

enum { QUEUE_IN, QUEUE_OUT, QUEUE_COPY, QUEUE_COLL }; // queues the compiler uses

typedef struct Emit {
    Lower *l;
    Compile *c;
    const ChipFile *chip;
    Artifact *art;
    VEC(IsaInst) code;
    VEC(uint32_t) code_loc;
    VEC(Kern) kerns;
    VEC(ArtLoc) locs;
    VEC(ArtLoop) loops;
    uint32_t loc;                       // of the step being emitted
    uint32_t *loc_of;                   // per op: its entry in locs, 0 = none yet
    uint32_t epoch;                     // grows at every barrier
    uint32_t done[HAZ_SEMS];            // completions so far in this epoch
    uint32_t seen[ENG_COUNT][HAZ_SEMS]; // what each sequencer has waited for
    Heap heap;
    Haz sbuf_haz; // what earlier products still do with SBUF
    Haz bank_haz[8]; // … and with each PSUM bank
    Haz row_haz[ROWS_GRANULES]; // … row programs with their area
    uint32_t *row_node;         // per value inside a row program: its node
} Emit;

// Appends an instruction that reads and writes the given memories; waits are worked out here. Returns its
// number.
uint32_t emit_inst(Emit *e, IsaInst in, Haz *const *reads, uint32_t nreads, Haz *const *writes,
                   uint32_t nwrites);
void emit_barrier(Emit *e);
uint64_t emit_addr(const Emit *e, BufId b); // HBM address of a buffer
void emit_dot(Emit *e, const Step *s);      // dot.c
void emit_rows(Emit *e, const Step *s);     // rows.c
// move.c
void emit_move(Emit *e, const Step *s);
bool fill_is_transfer(const HloType *t);
void emit_fill_transfer(Emit *e, const Step *s);

#endif
