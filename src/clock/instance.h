// SPDX-License-Identifier: Apache-2.0
// instance.h — machines to rent, from chips/instances.table.
#ifndef OTRN_CLOCK_INSTANCE_H
#define OTRN_CLOCK_INSTANCE_H

#include "base/opt.h"
#include "clock/clock.h"

typedef struct Instance {
    const char *name, *chip;
    uint32_t chips, hosts;
    double link_gb_s;    // of one chip to the others; 0: none or not known
    double network_gbit; // of the whole machine
    double hop_us;       // over the network
    double usd_per_hour; // 0: not published
} Instance;

// All rows, from `dir`/instances.table or built in. Raises CHIP with file and line.
uint32_t instances_load(Ctx *ctx, Arena *a, const char *dir, Instance **out);
// --instance: fills *out and makes its chip the target, unless that is chosen otherwise; false when none is
// asked for. Raises USAGE for an unknown one, or for a target of another chip.
bool instance_apply(Ctx *ctx, Arena *a, Options *o, Instance *out);
// The chip as part of it: its share of the price, where that is known, and of the network.
void instance_price(const Instance *i, ChipFile *chip);

#endif
