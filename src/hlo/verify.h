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
//   verify_chlo.c    chlo ops that are more than elementwise
//   verify_misc.c    collectives, linear algebra, random numbers, tokens, checks
//
//   verify_quant.c   what may be quantised, and how the scales of operands and results must agree
//   verify_attr.c    attributes with rules of their own: groups of devices, layouts, algorithms, names
//
// Rules are those of the StableHLO specification, and a message ends with the one that is broken: "(C3)" is a
// constraint, "(I2)" the type of an input, under the numbers the specification gives them for that op. What has no
// number there (chlo, older ops, the structure of a program) is told without. A dimension known only at run time agrees
// with any. "Same element" means the same expressed type where the specification compares baseline types, and the same
// type with its scales where it compares element types.
#ifndef OTRN_HLO_VERIFY_H
#define OTRN_HLO_VERIFY_H

#include "hlo/hlo.h"
#include "hlo/quant.h"

// Tables of groups that were found to hold every device once: many ops share a few.
typedef struct VerifyWhole {
    const int64_t *ids[8];
    uint32_t n[8], next;
} VerifyWhole;

typedef struct Verify {
    Hlo *h;
    OpId id;
    const HloOp *op;
    VerifyWhole *whole;
} Verify;

_Noreturn void verify_fail(Verify *v, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// The same with the broken rule behind it, "… (C3)"; NULL: it has no number.
_Noreturn void verify_break(Verify *v, const char *rule, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
// Raises unless ok; for rules that one sentence tells.
void verify_that(Verify *v, bool ok, const char *rule, const char *what);
const char *verify_input_name(uint32_t i); // "I1" for operand 0
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
// The bound of a dimension, from the encoding "#stablehlo.bounds<16, ?>"; INT64_MAX when there is none.
int64_t verify_bound(const HloType *t, int dim);
bool verify_shape_same(const HloType *a, const HloType *b);
bool verify_elem_same(const HloType *a, const HloType *b);
bool verify_type_same(const HloType *a, const HloType *b); // shape and element
bool verify_promotable(const HloType *from, const HloType *to); // element type widens to that of `to`
void verify_elem_allowed(Verify *v, int code); // elements of operand 0, by the rule of an elementwise op
void verify_compare_type(Verify *v, const char *rule);
bool verify_is_index(const HloType *t);                    // elements are integers or index
int verify_complex_part(int dtype);                        // f32 of complex<f32>; itself otherwise

void verify_same_type(Verify *v, const char *rule, const HloType *a, const HloType *b);  // baseline
void verify_same_shape(Verify *v, const char *rule, const HloType *a, const HloType *b);
void verify_same_elem(Verify *v, const char *rule, const HloType *a, const HloType *b);  // baseline
void verify_exact_elem(Verify *v, const char *rule, const HloType *a, const HloType *b); // with scales
void verify_exact_type(Verify *v, const char *rule, const HloType *a, const HloType *b);
void verify_size(Verify *v, const char *rule, HloAttrKey key, uint32_t want); // a list of as many entries
void verify_dims_in(Verify *v, const char *rule, HloAttrKey key, int64_t rank); // each in [0, rank)
void verify_unique(Verify *v, const char *rule, HloAttrKey key);
void verify_sorted(Verify *v, const char *rule, HloAttrKey key);
int64_t verify_dim_attr(Verify *v, const char *rule, HloAttrKey key, int64_t rank); // one in [0, rank)

// Number of positions of a window along one padded, dilated dimension; HLO_DYNAMIC stays.
int64_t verify_window_steps(int64_t dim, int64_t base_dilation, int64_t low, int64_t high,
                            int64_t window, int64_t window_dilation, int64_t stride);
// Lists with an entry per dimension of a window, all positive: which rule says how many, which says positive.
typedef struct WindowList {
    HloAttrKey key;
    const char *size, *positive;
} WindowList;
void verify_window_lists(Verify *v, uint32_t rank, const WindowList *lists, int n);
void verify_window_padding(Verify *v, const char *rule, uint32_t rank);

// The values that region i returns.
uint32_t verify_returns(Verify *v, uint32_t i, const HloOp **ret);
// Region i takes 2n scalars, (elements…, accumulators…), and returns n; elems[k] gets their types.
void verify_combiner(Verify *v, const char *rule, uint32_t i, uint32_t n, const HloType *const *inputs,
                     const HloType **elems);
void verify_is_scalar(Verify *v, const char *rule, const HloType *t, int dtype, const char *what);

// The value of an operand that is a constant list of integers; false when it is not known here.
bool verify_known_ints(Verify *v, uint32_t operand, int64_t out[OTRN_MAX_RANK], uint32_t *n);

// verify_quant.c
void verify_quantised_operands(Verify *v); // per-axis scales only where the op takes them
void verify_quant_add(Verify *v);
void verify_quant_moved(Verify *v); // broadcast, reshape, transpose: scales move with their dimension
// Products: the right side is quantised when any is; rules[0…] are the numbers of the seven constraints.
void verify_quant_product(Verify *v, const char *const rules[8], int rhs_axis, int out_axis);

// verify_attr.c
typedef struct GroupRules {
    const char *unique, *complete, *range, *channel; // NULL: not asked for
    bool same_size;                                  // groups may not be filled up with -1
} GroupRules;
void verify_groups(Verify *v, const GroupRules *r);
void verify_pairs(Verify *v); // source_target_pairs
void verify_result_accuracy(Verify *v);
void verify_dot_algorithm(Verify *v);
void verify_precision(Verify *v, const char *rule);
void verify_custom_call(Verify *v);
void verify_infeed_layout(Verify *v);
bool verify_is_namespaced(const char *name);

// One per file; false when the op is none of its own.
bool verify_ew(Verify *v);
bool verify_move(Verify *v);
bool verify_index(Verify *v);
bool verify_dot(Verify *v);
bool verify_region(Verify *v);
bool verify_chlo(Verify *v);
bool verify_misc(Verify *v);

#endif
