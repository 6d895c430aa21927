// SPDX-License-Identifier: Apache-2.0
// npy.h — numpy .npy files in and out (format versions 1 to 3, C order or Fortran order on read).
//
// Types numpy lacks travel as ml_dtypes writes them (bf16 as '<V2' or 'bfloat16', f8 as '|V1'):
// on read the caller says which type it expects and the byte width must agree.
#ifndef OTRN_BASE_NPY_H
#define OTRN_BASE_NPY_H

#include "base/arena.h"
#include "base/ctx.h"
#include "base/dtype.h"

typedef struct Npy {
    int dtype; // DT_*; DT_INVALID when the descriptor is a raw void of `elem_bytes`
    size_t elem_bytes;
    int rank;
    int64_t dims[OTRN_MAX_RANK];
    void *data; // dense row-major, in the arena
    size_t bytes;
} Npy;

void npy_read(Ctx *ctx, Arena *a, const char *path, Npy *out);
void npy_parse(Ctx *ctx, Arena *a, const char *name, const void *bytes, size_t size, Npy *out);
// Written to a temporary name beside `path` and renamed: never half a file.
void npy_write(Ctx *ctx, const char *path, int dtype, int rank, const int64_t *dims,
               const void *data);

#endif
