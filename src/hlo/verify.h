// SPDX-License-Identifier: Apache-2.0
// verify.h — what the files of the verifier share.
//
//   verify.c         structure: values in scope, counts, slots, regions, functions, calls
//   verify_util.c    types, shapes and windows compared
//   verify_ew.c      elementwise ops
//   verify_move.c    data movement
//   verify_index.c   gather and scatter
//   verify_dot.c     products and convolutions
//   verify_region.c  control flow, reductions, windows, sort
//   verify_misc.c    collectives, linear algebra, random numbers, tokens, checks
//
// Rules are those of the StableHLO specification; C1, C2 … are its constraint numbers. A dimension
// known only at run time agrees with any. Quantised elements agree when they express the same float
// type: an operation on them is one on those floats, whatever the scales.
#ifndef OTRN_HLO_VERIFY_H
#define OTRN_HLO_VERIFY_H

#include "hlo/hlo.h"
#include "hlo/quant.h"

typedef struct Verify {
    Hlo *h;
    OpId id;
    const HloOp *op;
} Verify;

_Noreturn void verify_fail(Verify *v, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// Raises unless ok; for rules that one sentence tells.
void verify_that(Verify *v, bool ok, const char *rule);
const char *verify_type_text(Verify *v, const HloType *t);

const HloType *verify_in(Verify *v, uint32_t i);  // type of operand i, a tensor
const HloType *verify_out(Verify *v, uint32_t i); // type of result i, a tensor
const HloType *verify_value(Verify *v, ValueId id); // of any kind
const int64_t *verify_ints(Verify *v, HloAttrKey key, uint32_t *n);

static inline bool verify_is_quantised(const HloType *t) { return quant_is(t); }
int verify_elem(const HloType *t); // what its elements are to an operation: the expressed type
static inline bool verify_dim_same(int64_t a, int64_t b) {
    return a == b || a == HLO_DYNAMIC || b == HLO_DYNAMIC;
}
bool verify_shape_same(const HloType *a, const HloType *b);
bool verify_elem_same(const HloType *a, const HloType *b);
bool verify_type_same(const HloType *a, const HloType *b); // shape and element
bool verify_promotable(const HloType *from, int to);       // element type widens to `to`
bool verify_is_index(const HloType *t);                    // elements are integers or index
int verify_complex_part(int dtype);                        // f32 of complex<f32>; itself otherwise

// "C1: the types of operand and result, A and B, differ"
void verify_same_type(Verify *v, const char *rule, const HloType *a, const HloType *b);
void verify_same_shape(Verify *v, const char *rule, const HloType *a, const HloType *b);
void verify_same_elem(Verify *v, const char *rule, const HloType *a, const HloType *b);
void verify_size(Verify *v, HloAttrKey key, uint32_t want); // a list of as many entries
void verify_dims_in(Verify *v, HloAttrKey key, int64_t rank); // each in [0, rank)
void verify_unique(Verify *v, HloAttrKey key);
void verify_sorted(Verify *v, HloAttrKey key);
int64_t verify_dim_attr(Verify *v, HloAttrKey key, int64_t rank); // one in [0, rank)

// Number of positions of a window along one padded, dilated dimension; HLO_DYNAMIC stays.
int64_t verify_window_steps(int64_t dim, int64_t base_dilation, int64_t low, int64_t high,
                            int64_t window, int64_t window_dilation, int64_t stride);
// One entry of window lists checked: sizes, strides and dilations positive, lists `rank` long.
void verify_window_lists(Verify *v, uint32_t rank, const HloAttrKey *positive, int npositive);

// The values that region i returns.
uint32_t verify_returns(Verify *v, uint32_t i, const HloOp **ret);
// Region i takes 2n scalars, (elements…, accumulators…), and returns n; elems[k] gets their types.
void verify_combiner(Verify *v, uint32_t i, uint32_t n, const HloType *const *inputs,
                     const HloType **elems);

// One per file; false when the op is none of its own.
bool verify_ew(Verify *v);
bool verify_move(Verify *v);
bool verify_index(Verify *v);
bool verify_dot(Verify *v);
bool verify_region(Verify *v);
bool verify_misc(Verify *v);

#endif
