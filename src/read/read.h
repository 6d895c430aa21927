// SPDX-License-Identifier: Apache-2.0
// read.h — programs in: MLIR text, MLIR bytecode and XLA's HLO become the same graph.
#ifndef OTRN_READ_READ_H
#define OTRN_READ_READ_H

#include "hlo/hlo.h"

bool read_is_bytecode(const void *bytes, size_t size); // by its magic
// Raise PARSE, UNSUPPORTED or VERSION. The graph is not yet verified. It copies what it keeps.
Hlo *read_bytecode(Ctx *ctx, Arena *a, const char *name, const void *bytes, size_t size);
Hlo *read_text(Ctx *ctx, Arena *a, const char *name, const void *bytes, size_t size);
bool read_is_xla(const void *bytes, size_t size); // an HloModuleProto, or a message around one
bool read_is_xla_text(const void *bytes, size_t size); // begins with HloModule
Hlo *read_xla_text(Ctx *ctx, Arena *a, const char *name, const void *bytes, size_t size, bool open);
Hlo *read_xla(Ctx *ctx, Arena *a, const char *name, const void *bytes, size_t size, bool open);
void read_xla_calls(Hlo *h); // operations that StableHLO lacks and XLA has, as the calls XLA takes for them
void read_foreign(Ctx *ctx, const char *name, const void *bytes, size_t size); // raises for what is known not to be a program
// A module's list of results that take over arguments (mhlo.input_output_alias), as entries of the arguments.
void read_aliases(Hlo *h);
void read_alias_set(Hlo *h, HloFunc *f, const int64_t *result_of); // per argument, -1: none
const HloNamed *read_named_with(Hlo *h, const HloNamed *old, uint32_t *n, HloNamed more); // sorted; in place of one of its name
void read_partitions(Hlo *h, int64_t n); // the module says that it is for so many devices
void read_gspmd(Hlo *h); // GSPMD's shardings become Shardy's
void read_manual(Hlo *h, bool one_device); // calls at the bounds of what devices do by themselves become regions
HloAttr read_slot_default(Arena *a, const HloOp *op, HloAttrKey key); // of an attribute that was left out; HA_NONE: it has none
void read_slot_defaults(Hlo *h, OpId id);
Hlo *read_program(Ctx *ctx, Arena *a, const char *name, const void *bytes, size_t size); // either
// The same; results of HLO over several devices that say nothing of them are cut as it comes, where they are whole else.
Hlo *read_program_open(Ctx *ctx, Arena *a, const char *name, const void *bytes, size_t size);

#endif
