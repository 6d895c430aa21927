// SPDX-License-Identifier: Apache-2.0
// area.h — the part of SBUF that a step has, cut into rings of slots; and rings of PSUM banks.
//
//   | ring: slot 0 | slot 1 | … | ring: slot 0 | … |        of each ring the slots are used in turn
//
// A ring owns the hazards of its slots: a view of a slot knows who else works on it (Mem), and what is put over views (below) passes that on. What steps
// before still do with the area comes in when it is opened and goes out when it is closed, so whoever has the bytes next waits for the right ones.
#ifndef OTRN_TILE_AREA_H
#define OTRN_TILE_AREA_H

#include "isa/build.h"
#include "isa/view.h"
#include "tile/emit.h"

#define AREA_RINGS 40

typedef struct Ring {
    const char *name;    // as the step calls it, for --dump=placed
    uint64_t *slot;      // addresses
    uint32_t bytes, n;   // of a slot; how many
    uint32_t ways;       // hazards of a slot: what is filled apart is waited for apart
    uint32_t way_bytes;  // … of the slot that each stands for; 0: all of it
    uint32_t next;       // slot to be used next, counted on and on
    Haz *haz;            // [slot][way]
} Ring;

typedef struct Room { // bytes of a partition that are free, in two stretches: [at, end)
    uint32_t at[2], end[2];
} Room;

typedef struct Area {
    Emit *e;
    Room room; // what is left
    Ring *rings[AREA_RINGS];
    int count;
} Area;

static inline uint32_t room_whole(int64_t bytes) { return (uint32_t)(ceil_div(bytes, SBUF_PIECE) * SBUF_PIECE); } // up to where a piece ends
bool room_take(Room *r, uint32_t bytes, uint32_t *at); // false: there is not so much in one stretch
Area area_make(Emit *e, uint32_t at, uint32_t end);
// Slots at the beginning of what is left, which has the room. The ring stays where it is until the area is closed.
#define area_ring(a, r, n, bytes) area_ring_named(a, r, n, bytes, #r)
void area_ring_named(Area *a, Ring *r, uint32_t n, uint32_t bytes, const char *name);
// Banks of PSUM from `first` on, n times `each` of them that are filled together: a hazard stands for those; haz: n of the caller's, or NULL.
#define area_banks(a, r, first, n, each, haz) area_banks_named(a, r, first, n, each, haz, #r)
void area_banks_named(Area *a, Ring *r, uint32_t first, uint32_t n, uint32_t each, Haz *haz, const char *name);
void area_ways(Area *a, Ring *r, uint32_t ways, uint32_t way_bytes); // of one made just now
void area_open(Area *a);
void area_close(Area *a);
Ring ring_of_banks(Emit *e, uint32_t first, uint32_t n); // of PSUM; their hazards are the program's
Mem bank_at(Emit *e, uint32_t bank);

static inline Mem ring_way(const Ring *r, uint32_t slot, uint32_t way) {
    assert(slot < r->n);
    assert(way < r->ways);
    return (Mem){.addr = r->slot[slot], .haz = &r->haz[slot * r->ways + way]};
}
static inline Mem ring_at(const Ring *r, uint32_t slot) { return ring_way(r, slot, 0); }
static inline uint32_t ring_turn(Ring *r) { return r->next++ % r->n; } // the slot whose turn it is
static inline Mem ring_next(Ring *r) { return ring_at(r, ring_turn(r)); }

// --- instructions over views: counts, strides and waits follow from the operands -------------------

void put_dma(Emit *e, int queue, View dst, View src); // by the sequencer that the queue belongs to
// A queue begins a transfer now and then only, so what a loop stacks up takes turns, two by two: whoever waits for a lone copy has one wait.
uint8_t put_piece_queue(const Emit *e, const Step *s);
void put_dma_by(Emit *e, int engine, int queue, View dst, View src);
void put_bytes(Emit *e, int engine, int queue, uint64_t dst, uint64_t src, uint64_t bytes); // HBM to HBM, one run
void put_copy(Emit *e, int engine, View dst, View src);
// A copy by the vector or the scalar engine, whichever is through with it first; busy: ns by engine, of what they have had so far.
void put_evict(Emit *e, double *busy, View dst, View src);
void put_memset(Emit *e, int engine, View dst, const void *element); // NULL: zeros
void put_transpose(Emit *e, View dst, View src); // by the array
// Positions of a stage, `each` of them on the partitions with `cols` elements, groups `step` elements apart: transposed by the array, side by
// side in a bank, groups `pitch` elements apart.
void put_transposes(Emit *e, int dtype, Mem bank, int64_t pitch, Mem stage, int64_t step, int64_t positions, int64_t each, int64_t cols);
// second: elements to the second row of each cell (double_row); 0: there is none
void put_weights(Emit *e, View src, uint32_t second);
void put_matmul(Emit *e, View dst, View src, bool accumulate, uint32_t second);
// What isa/build.h makes of views; src1 may be NULL.
void put_inst(Emit *e, IsaInst in, const View *dst, const View *src, const View *src1);

#endif
