// SPDX-License-Identifier: Apache-2.0
// print.h — what the files of the printer share.
//
//   print.c       module, functions, ops, names of values, locations
//   print_attr.c  types, attributes, constants
//   print_slot.c  the attributes of an op's row, put together as StableHLO writes them
#ifndef OTRN_HLO_PRINT_H
#define OTRN_HLO_PRINT_H

#include "hlo/hlo.h"

#define PRINT_LIST_ELEMS 100 // a constant with more elements is printed as a blob

typedef struct Print {
    const Hlo *h;
    Buf *out;
    uint32_t *names;   // by ValueId
    uint32_t next_arg, next_result;
    bool with_locs;
    uint32_t *loc_alias; // by LocId: number of its alias, 0 when it has none yet
    uint8_t *loc_seen;   // by LocId, see loc_number
    VEC(LocId) locs;     // in order of their aliases
} Print;

void print_string(Buf *out, const char *s, size_t n); // with quotes
void print_symbol(Buf *out, const char *s);           // @name or @"name"
void print_attr(const Hlo *h, const HloAttr *a, Buf *out);
void print_named(const Hlo *h, const HloNamed *list, uint32_t n, Buf *out); // k = v, …
void print_float(Buf *out, int dtype, double v); // exact, without its type
void print_ints(Buf *out, const int64_t *v, uint32_t n); // 1, 2
// <{…}> of an op, nothing when it has no attributes to show.
void print_slots(const Hlo *h, const HloOp *op, Buf *out);
// True when print_slots prints nothing.
bool print_slots_empty(const HloOp *op);

#endif
