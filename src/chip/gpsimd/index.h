// SPDX-License-Identifier: Apache-2.0
// index.h — the geometry gather and scatter share: index vectors select windows of an operand.
#ifndef OTRN_CHIP_GP_INDEX_H
#define OTRN_CHIP_GP_INDEX_H

#include "chip/gpsimd/gp.h"
#include "hlo/query.h"

typedef struct IndexBatch {               // one batch axis: count and strides in elements
    int64_t n, indices, windows, operand; // operand: 0 unless it is a batching axis
} IndexBatch;

typedef struct IndexWindow { // one window axis
    int axis;                // of the operand
    int64_t n, windows, operand;
} IndexWindow;

typedef struct IndexPlan {
    const KTensor *operand, *indices;
    int64_t vec_stride, batches;
    int nmap, nbatch, nwindow;
    int map[OTRN_MAX_RANK];  // operand axis of each index component
    int kept[OTRN_MAX_RANK]; // operand axis to window axis, or -1
    bool is_batching[OTRN_MAX_RANK];
    IndexBatch batch[OTRN_MAX_RANK];
    IndexWindow window[OTRN_MAX_RANK];
} IndexPlan;

// "windows" is the result of a gather, the updates of a scatter. False when the numbers do not fit.
bool index_init(IndexPlan *p, const Kern *k, const KTensor *operand, const KTensor *indices,
                const KTensor *windows, const IndexKeys *keys);

typedef struct IndexAt { // a place in the walk over the batches: offsets in elements
    int64_t at[OTRN_MAX_RANK];
    int64_t indices, windows, operand;
} IndexAt;
void index_seek(const IndexPlan *p, IndexAt *at, int64_t batch);
void index_next(const IndexPlan *p, IndexAt *at);

#endif
