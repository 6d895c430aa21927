// SPDX-License-Identifier: Apache-2.0
// view.h — an operand: where it begins, its type, and the axes along which it is walked.
//
//   VIEW(mem, DT_BF16, {128}, {4, 512}, {64, 1})     128 partitions, four runs of 64 elements 512 apart in each
//   VIEW(mem, DT_F32, {128, 1024}, {1024, 1})        a matrix in HBM, rows first
//
// Axes stand outermost first. In SBUF and PSUM axis 0 is the partitions and has no stride; in HBM it is one like the others.
// Instructions take views (build.h), nests are made of them (tile/nest.h).
#ifndef OTRN_ISA_VIEW_H
#define OTRN_ISA_VIEW_H

#include <assert.h>

#include "base/num.h"
#include "isa/isa.h"

#define VIEW_AXES 8

struct Haz; // tile/step.h: who else works on a part of SBUF or PSUM

typedef struct Mem { // a place; in HBM nobody stands for it, the compiler knows HBM by address
    uint64_t addr;
    struct Haz *haz;
    uint8_t more; // as many behind it stand for parts of the same place
} Mem;

typedef struct ViewAxis {
    int64_t n, stride; // elements
} ViewAxis;

typedef struct View {
    Mem mem; // of its first element
    uint8_t dtype, rank;
    ViewAxis at[VIEW_AXES];
    uint8_t reg[2]; // register + 1 of a term of its address, 0: none
    int32_t mul[2]; // … and the bytes of one unit of it
} View;

#define VIEW(mem, dtype, ...)                                                                                                \
    view_make(mem, dtype, (const int64_t[][2]){__VA_ARGS__}, sizeof((const int64_t[][2]){__VA_ARGS__}) / sizeof(int64_t[2]))

static inline Mem mem_hbm(uint64_t addr) { return (Mem){.addr = addr}; }
static inline Mem mem_off(Mem m, int64_t bytes) { return (Mem){m.addr + (uint64_t)bytes, m.haz, m.more}; }
static inline Mem mem_part(Mem m, int64_t partition) { return (Mem){m.addr + ((uint64_t)partition << 32), m.haz, m.more}; }

static inline View view_make(Mem mem, int dtype, const int64_t (*axes)[2], size_t rank) {
    View v = {.mem = mem, .dtype = (uint8_t)dtype, .rank = (uint8_t)rank};
    assert(rank >= 1);
    assert(rank <= VIEW_AXES);
    for (size_t i = 0; i < rank; i++) {
        assert(axes[i][0] >= 0);
        v.at[i] = (ViewAxis){axes[i][0], axes[i][1]};
    }
    assert(addr_space(mem.addr) == SPACE_HBM || !v.at[0].stride);
    return v;
}

#endif
