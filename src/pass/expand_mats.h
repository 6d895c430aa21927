// SPDX-License-Identifier: Apache-2.0
// expand_mats.h — for matrix decompositions written with common operations: batches of matrices [b, m, n] as one program on whole
// matrices, where masks choose the row or column that a step is about.
#ifndef OTRN_PASS_EXPAND_MATS_H
#define OTRN_PASS_EXPAND_MATS_H

#include "pass/expand.h"

typedef struct Mats {
    Walk *w;
    int dtype, real;    // of the elements, and of their absolute values
    int64_t b, m, n, k; // matrices, rows, columns, steps
    bool lapack;        // as LAPACK does where XLA's call is meant otherwise
    TypeId all, rows, one, cols; // [b, m, n], [b, m], [b], [b, n]
} Mats;

static const int64_t mats_at[3] = {0, 1, 2}, mats_outer[2] = {0, 2}; // dimensions of [b, m], and of [b, n], in [b, m, n]

typedef enum MatsCall { MATS_NONE, MATS_QR, MATS_PRODUCT, MATS_LU, MATS_EIGH } MatsCall;
MatsCall mats_call(const HloOp *op);
void mats_read(Mats *q, const HloOp *op); // of the first operand; an error where that is no batch of matrices
void mats_fail(Mats *q, const HloOp *op); // shapes do not fit each other

ValueId mats_lu(Walk *w, const HloOp *op, bool lapack); // @LuDecomposition
HloOp mats_call_as(Walk *w, const HloOp *op, const char *target, const char *config, uint32_t n, const ValueId *in, uint32_t nresults, const TypeId *types);
                                                          // XLA's call of that name, in no list: what expands it takes it as it would from the program

TypeId mats_typed(Mats *q, TypeId shape, int dtype);
TypeId mats_type_of(const Mats *q, ValueId v);
ValueId mats_number(Mats *q, TypeId shape, int dtype, double v);
ValueId mats_wide(Mats *q, ValueId v, const int64_t *dims, TypeId shape);
ValueId mats_where(Mats *q, ValueId p, ValueId v, double otherwise);
ValueId mats_total(Mats *q, HloOpcode code, ValueId v, int64_t over, TypeId shape); // from 0 on
ValueId mats_places(Mats *q, TypeId shape, int64_t dim);                            // i32
ValueId mats_along(Mats *q, int64_t direction, TypeId shape, int64_t dim, ValueId step); // places compared with the step's
ValueId mats_conjugate(Mats *q, ValueId v);
ValueId mats_column(Mats *q, ValueId a, ValueId step); // [b, m]
ValueId mats_identity(Mats *q);
ValueId mats_diagonal(Mats *q, ValueId a, int64_t over); // [b, n] where rows (1) are summed, [b, m] where columns (2) are
// The matrices divided by their largest elements' sizes, so that squares neither overflow nor vanish; zeros where they have no finite one.
ValueId mats_scaled(Mats *q, ValueId a, ValueId *scale, ValueId *finite); // both [b]
static inline ValueId mats_times(Mats *q, ValueId x, ValueId y) { return walk_binary(q->w, HLO_MULTIPLY, x, y); }
static inline ValueId mats_minus(Mats *q, ValueId x, ValueId y) { return walk_binary(q->w, HLO_SUBTRACT, x, y); }
static inline ValueId mats_compared(Mats *q, int64_t direction, ValueId x, ValueId y) { return walk_compare(q->w, direction, CMPT_NOTYPE, x, y); }

ValueId mats_real(Mats *q, ValueId v);
ValueId mats_size(Mats *q, ValueId v);                   // of each element
ValueId mats_element(Mats *q, ValueId real);             // a real number as an element
ValueId mats_product(Mats *q, ValueId x, ValueId y);     // of the form q->all
Mats mats_of(const Mats *q, int64_t m, int64_t n);       // as many matrices of another form

// expand_turn.c: rotations of pairs of columns; s are matrices [b, n, n].
enum { TURN_SWEEPS = 30 };
typedef struct Turn { // of each column, [b, n]
    ValueId cosine, sine, phase, square, change; // phases make a pair's element real; square is the pairs' matrix of zeros and ones; own loses change
} Turn;
int64_t turn_rounds(int64_t n);              // of a sweep
ValueId turn_pairs(Mats *s, ValueId step);   // who is whose partner in a round, [b, n, n] of flags
Turn turn_of(Mats *s, ValueId pair, ValueId own, ValueId element); // so that elements between partners vanish; own are those on the diagonal
ValueId turn_columns(Mats *q, const Turn *t, ValueId x);
ValueId turn_rows(Mats *q, const Turn *t, ValueId x);
void turn_sort(Mats *s, Mats *q, ValueId *columns, ValueId *values); // values [b, n] ascending, and the columns of x, of the form q->all, with them

// expand_svd.c: a = left diag(values) right, of the first operand; mode A all of left and right, S as many as there are values, N neither.
typedef struct MatsSvd {
    ValueId values, left, right, finite; // [b, k], [b, m, …], [b, …, n], [b] of flags: false where values are NaN
} MatsSvd;
MatsSvd mats_svd(Mats *q, const HloOp *op, int mode);

enum { MATS_CARRIED = 3 };
typedef void MatsStep(Mats *q, ValueId step, const ValueId *carried, ValueId *next);
typedef ValueId MatsMore(Mats *q, const ValueId *carried);
// Steps 0 … k-1 or back, over carried values, while there is more to do (NULL: always); the first result of the loop that carries them.
ValueId mats_steps(Mats *q, bool back, MatsMore *more, MatsStep *body, uint32_t n, const ValueId *init);

#endif
