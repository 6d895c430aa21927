// SPDX-License-Identifier: Apache-2.0
// dot.h — what products and convolutions share: the type they compute in and their inner loop.
#ifndef OTRN_CHIP_GP_DOT_H
#define OTRN_CHIP_GP_DOT_H

#include "chip/gpsimd/gp.h"

// The type products are made and summed in: f32 for narrow floats, the result's own type otherwise,
// f64 when an operand has it. DT_INVALID when the combination has no meaning here.
int mac_dtype(const Kern *k);
MacFn *mac_find(const GpLevel *level, int dtype);
// Brings an operand into `dtype` and a dense layout at *at, which moves on by mac_pack_bytes: axes outermost
// first, in elements.
void mac_pack(const GpCall *c, uint32_t operand, int dtype, int rank, const CopyAxis *axes, char **at,
              const char **packed);
size_t mac_pack_bytes(const KTensor *t, int dtype); // raw copy and packed form
// Rounds and stores n sums at an element of the result, `stride` elements apart.
void mac_store(const Lane *lane, void *out, int64_t at, int64_t stride, const void *sums, size_t n);

#endif
