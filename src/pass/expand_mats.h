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

enum { MATS_CARRIED = 3 };
typedef void MatsStep(Mats *q, ValueId step, const ValueId *carried, ValueId *next);
typedef ValueId MatsMore(Mats *q, const ValueId *carried);
// Steps 0 … k-1 or back, over carried values, while there is more to do (NULL: always); the first result of the loop that carries them.
ValueId mats_steps(Mats *q, bool back, MatsMore *more, MatsStep *body, uint32_t n, const ValueId *init);

#endif
