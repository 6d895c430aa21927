// SPDX-License-Identifier: Apache-2.0
// safetensors.h — the file format of weights that every framework reads: a length, a head of JSON, bytes.
#ifndef OTRN_TRAIN_SAFETENSORS_H
#define OTRN_TRAIN_SAFETENSORS_H

#include "base/bytes.h"

typedef struct Tensor {
    const char *name;
    otrn_type type;
    const void *data; // dense, row-major
    size_t bytes;
} Tensor;

// The head of a file with these tensors, one behind the other; their bytes follow it.
void safetensors_head(const Tensor *tensors, size_t count, Buf *out);
// The tensors of a file; data points into it. Raises PARSE; anything may be in the bytes.
Tensor *safetensors_parse(Ctx *ctx, Arena *a, const char *name, const void *bytes, size_t size, size_t *count);

#endif
