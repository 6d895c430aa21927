// SPDX-License-Identifier: Apache-2.0
// region.h — inside the compiler of regions: a scalar program in the making (region.c, region_ops.c,
// region_win.c).
#ifndef OTRN_TILE_REGION_H
#define OTRN_TILE_REGION_H

#include "tile/step.h"

#define REGION_VALUES_MAX 32000 // elements of all values together

typedef struct RegVal { // a value and the register of each of its elements, row-major
    ValueId value;
    const uint16_t *regs;
} RegVal;

typedef struct Region {
    Compile *c;
    Hlo *h;
    OpId op; // the op whose region it is
    VEC(uint8_t) dtypes; // per register
    VEC(uint8_t) pinned; // per register: written more than once, kept for the whole program
    VEC(KStep) steps;
    VEC(uint16_t) const_regs;
    uint8_t (*consts)[16]; // bytes of each constant
    uint32_t consts_cap;
    VEC(RegVal) vals; // the latest entry of a value counts
    int mask;         // register: lanes that take this branch or are still in this loop; -1 all
    uint32_t depth;   // of regions in regions
} Region;

// region.c
uint16_t *region_regs(Region *p, uint32_t n);       // room for n register numbers
uint16_t region_const(Region *p, int dtype, const void *bytes);
uint16_t region_const_int(Region *p, int dtype, int64_t v); // of any real type
uint16_t region_step(Region *p, int op, int dtype, uint16_t a, uint16_t b, uint16_t c);
uint16_t region_compare(Region *p, int direction, uint16_t a, uint16_t b);
const uint16_t *region_slots(Region *p, ValueId v);
void region_bind(Region *p, ValueId v, const uint16_t *regs);
// The region's ops with these arguments; what it returns goes to outs.
void region_inline(Region *p, RegionId r, const uint16_t *const *args, const uint16_t **outs);

// The same for a branch, taken in the lanes of `test`.
void region_branch(Region *p, RegionId r, uint16_t test, const uint16_t *const *args,
                   const uint16_t **outs);

// region_ops.c
typedef struct RShape {
    int rank;
    int64_t dims[OTRN_MAX_RANK], elems;
} RShape;

RShape region_shape(const Region *p, ValueId v);
void region_place(const RShape *s, int64_t number, int64_t *at); // coordinates of an element
int64_t region_number(const RShape *s, const int64_t *at);
bool region_next(const RShape *s, int64_t *at); // row-major; false after the last
const uint16_t *region_operand(Region *p, const HloOp *op, uint32_t i);
uint16_t region_select(Region *p, uint16_t test, uint16_t yes, uint16_t no);
uint16_t region_as(Region *p, uint16_t reg, int dtype);

typedef struct Fold { // results that a region combines with further elements, one by one
    uint32_t n;
    const uint16_t **args, **next; // args: of element `at` of the results, then what the caller sets
    uint16_t **regs;               // [result][element]
} Fold;
Fold region_fold(Region *p, uint32_t n, int64_t elems);
void region_fold_in(Region *p, const Fold *f, const HloOp *op, int64_t at);
void region_fold_end(Region *p, const Fold *f, const HloOp *op); // they are the op's results

typedef struct Places { // what gather and scatter say of their windows, a gather's result or a scatter's updates
    RShape whole, index, windows;
    const int64_t *window, *gone, *batching, *index_batching, *map;
    uint32_t nwindow, ngone, nbatching, nindex_batching, nmap;
    int64_t vector_dim;
    const uint16_t *indices;
} Places;
Places region_places(Region *p, const HloOp *op, const IndexKeys *keys, ValueId index, ValueId windows);
// Element `to` of the windows is along axis d of the whole at start[d] + more[d]; without a start (-1) at more[d].
void region_places_at(const Places *s, const int64_t *to, int *start, int64_t *more);

// An op that moves or combines elements of small tensors; false when it is none of these.
bool region_tensor_op(Region *p, OpId id);

bool region_window_op(Region *p, OpId id); // region_win.c: the same for windows, scatter, convolution

#endif
