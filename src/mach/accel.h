// SPDX-License-Identifier: Apache-2.0
// accel.h — machines to rent with other accelerators, from chips/accelerators.table.
#ifndef OTRN_MACH_ACCEL_H
#define OTRN_MACH_ACCEL_H

#include "mach/instance.h"

typedef struct AccelSoftware { // what it does on any of them
    double host_s, rails, stall, kernel_s, moved, launch_s; // as the table says
} AccelSoftware;

typedef struct Accel {
    Instance as;                                  // name, chips, network, price, as of any machine
    double tflops, tflops_fp8, tflops_fp32;       // dense peaks of a chip
    double hbm_bytes, hbm_gb_s, link_gb_s;        // of a chip
    double products, attention, products_fp8;     // shares of the peaks that software reaches
} Accel;

// All rows, from `dir`/accelerators.table or built in. Raises CHIP with file and line.
uint32_t accels_load(Ctx *ctx, Arena *a, const char *dir, Accel **out);
// Its lines `name = number`; those that a folder's table leaves out are the built-in one's.
AccelSoftware accel_software(Ctx *ctx, Arena *a, const char *dir);
// The row of that name; NULL: there is none.
const Accel *accel_find(Ctx *ctx, Arena *a, const char *dir, const char *name);

#endif
