// SPDX-License-Identifier: Apache-2.0
// write.h — programs out: a graph becomes bytecode again, or a smaller graph.
//
// Text is hlo_print's work. What is written here reads back (read/read.h) to an equal graph.
#ifndef OTRN_WRITE_WRITE_H
#define OTRN_WRITE_WRITE_H

#include "hlo/hlo.h"

// Appends a StableHLO portable artifact: MLIR bytecode 6 holding VHLO of the oldest version, but
// none older than WRITE_OLDEST_MINOR, that can say all of the program. The same graph gives the
// same bytes. Raises UNSUPPORTED naming what the format has no form for.
#define WRITE_VHLO_MAJOR 1
#define WRITE_OLDEST_MINOR 13
void write_bytecode(const Hlo *h, Buf *out);

#endif
