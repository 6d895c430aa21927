// SPDX-License-Identifier: Apache-2.0
// errors.h — how far predicted steps were off where the time is published: chips/errors.csv, which `make accuracy` measures.
#ifndef OTRN_MACH_ERRORS_H
#define OTRN_MACH_ERRORS_H

#include "base/arena.h"
#include "base/ctx.h"

// Mean error, as a share, of the rows nearest to a step of this chip on so many machines; below 0: no row is of the chip's
// kind. type: of its products, bf16, fp32 or fp8, "": any. rows: their names, quoted, with commas. dir: a folder whose errors.csv is taken instead of the built-in one, or "".
double errors_expected(Ctx *ctx, Arena *a, const char *dir, const char *chip, const char *type, uint32_t machines, const char **rows);

#endif
