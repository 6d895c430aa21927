// SPDX-License-Identifier: Apache-2.0
// chips.h — the chip files that are built into the library.
#ifndef OTRN_MACH_CHIPS_H
#define OTRN_MACH_CHIPS_H

#include <stddef.h>

typedef struct ChipText {
    const char *name, *begin, *end;
} ChipText;

extern const ChipText chip_texts[]; // ends with a NULL name
extern const char chip_instances[], chip_instances_end[]; // chips/instances.table
extern const char chip_errors[], chip_errors_end[];       // chips/errors.csv
extern const char chip_accelerators[], chip_accelerators_end[]; // chips/accelerators.table
const ChipText *chip_text_find(const char *name);

#endif
