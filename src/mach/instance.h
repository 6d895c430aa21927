// SPDX-License-Identifier: Apache-2.0
// instance.h — machines to rent, from chips/instances.table.
#ifndef OTRN_MACH_INSTANCE_H
#define OTRN_MACH_INSTANCE_H

#include "base/opt.h"
#include "mach/chipfile.h"

typedef struct Instance {
    const char *name, *chip;
    uint32_t chips, hosts;
    double link_gb_s;    // of one chip to the others; 0: none or not known
    double network_gbit; // of the whole machine
    double hop_us;       // over the network
    uint32_t joined;     // machines with links between chips of equal place; 1: none
    double joined_gb_s;  // these of one chip
    double usd_per_hour; // 0: not published
    const char *paid, *region, *seen; // how, where, when: "on-demand", "us-east-1", "2026-07"; "-": not told
} Instance;

// All rows, from `dir`/instances.table or built in. Raises CHIP with file and line.
uint32_t instances_load(Ctx *ctx, Arena *a, const char *dir, Instance **out);
uint32_t instances_parse(Ctx *ctx, Arena *a, const char *file, const char *text, size_t size, Instance **out);
// --instance: fills *out and makes its chip the target, unless that is chosen otherwise; false when none is
// asked for. Raises USAGE for an unknown one, or for a target of another chip.
bool instance_apply(Ctx *ctx, Arena *a, Options *o, Instance *out);
// Cores of a device: as --lnc says, or of the chip's logical cores. Raises USAGE where these have fewer.
uint32_t chip_lnc(Ctx *ctx, const Options *o, const ChipFile *chip);
// The chip as part of it: its links, those to joined machines, its share of the network.
void instance_network(const Instance *i, ChipFile *chip);
const char *instance_basis(Arena *a, const Instance *i); // of its price: "on demand, us-east-1, 2026-07"

// --- what a run costs --------------------------------------------------------------------------------
// Devices share a machine's price by their cores: 8 of 32 cores are a quarter of it, 48 of 32 are one and a half
// machines. Nothing is known of a price that nobody published: --price tells one's own.
typedef struct Cost {
    uint32_t devices, cores_per_device;
    const char *unit;     // what they are counted in; NULL: cores
    Instance instance;    // that has the devices; name NULL: none is known
    uint32_t machines;    // of it that they need
    double usd_per_hour;  // of all devices; 0: not known
    double flops_peak;    // of all devices: 2 x 128 x 128 x clock of their tensor engines a second, what they do in bf16
    const char *basis;    // "on demand, us-east-1, 2026-07"; why, when the price is not known
} Cost;
// asked: the instance named, or NULL. Else it is the chip's own, or the smallest with a price that holds all devices, or the
// largest with one. Raises USAGE for a --price that is no price.
void cost_make(Ctx *ctx, Arena *a, const Options *o, const ChipFile *chip, const Instance *asked, uint32_t devices,
               uint32_t cores_per_device, Cost *out);
// --price: USD for an hour of the instance; 0: not given. Raises USAGE for what is none.
double price_asked(Ctx *ctx, const char *text);
// Share of flops_peak that a run with `flops` of matrix products on each device reaches.
double cost_utilisation(const Cost *c, double flops, double seconds);
// "8 cores of trn1.32xlarge, 5.375 USD/h (on demand, us-east-1, 2026-07)", or why there is no price.
const char *cost_text(Arena *a, const Cost *c);

#endif
