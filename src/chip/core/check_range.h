// SPDX-License-Identifier: Apache-2.0
// check_range.h — arguments of the scalar engine's functions outside their documented ranges.
//
// The hardware's tables are made for a range per function (isa/act.def); what comes out beyond it is not defined, sin
// excepted. That is no error of the program as such: zeros meet sqrt in every optimizer. So a watched run
// goes on and tells afterwards which instructions did it.
#ifndef OTRN_CHIP_CHECK_RANGE_H
#define OTRN_CHIP_CHECK_RANGE_H

#include "artifact/artifact.h"

typedef struct RangeNote { // one instruction
    uint32_t pc, part, elem; // elem: number of the element in its partition, of the first
    uint64_t count;
    float first;
} RangeNote;

typedef struct CheckRange {
    Arena *arena;
    VEC(RangeNote) notes;
    float *room; // arguments of the instruction at hand
    size_t room_elems;
} CheckRange;

bool check_range_wanted(const IsaInst *in); // the function has a range
float *check_range_room(CheckRange *r, size_t elems);
// The arguments of instruction pc, `cols` in each of `parts` partitions.
void check_range_look(CheckRange *r, const Artifact *art, uint32_t pc, uint32_t parts, size_t cols);
void check_range_print(const CheckRange *r, const Artifact *art, Buf *out); // a line for each instruction

#endif
