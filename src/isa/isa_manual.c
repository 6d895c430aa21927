// SPDX-License-Identifier: Apache-2.0
// isa_manual.c — the instruction set manual (spec/isa.md), printed from the table.
#include <stdio.h>

#include "isa/isa.h"

static const char introduction[] =
    "<!-- Printed from src/isa/isa.def: build/tests/unit/isa_test manual >spec/isa.md; a test compares. -->\n"
    "# Instruction set\n"
    "\n"
    "A program is one list of instructions for five sequencers and sixteen DMA queues. Each sequencer takes\n"
    "its own instructions in the order of the list; the sequencers run side by side and only semaphores order\n"
    "them. The order of the list is one legal execution, and the one the functional chip follows.\n"
    "\n"
    "| number | engine | letter | reaches |\n"
    "|---|---|---|---|\n"
    "| 0 | tensor | t | reads SBUF, writes PSUM |\n"
    "| 1 | vector | v | SBUF and PSUM |\n"
    "| 2 | scalar | s | SBUF and PSUM |\n"
    "| 3 | gpsimd | g | SBUF; kernels: HBM |\n"
    "| 4 | sync | y | nothing; triggers DMA, which reaches HBM and SBUF |\n"
    "\n"
    "## Semaphores\n"
    "\n"
    "Semaphores 0 to 4 belong to the engines, 5 to 20 to the DMA queues `q0` to `q15`. An instruction that\n"
    "completes adds one to the semaphore of its engine; a DMA adds one to that of its queue instead. An\n"
    "instruction may wait until two semaphores have reached a value: `wait(vector>=3, q0>=2)`. The waiting\n"
    "happens on the sequencer, so later instructions of the same engine wait behind it; a DMA waits on sync\n"
    "before it is triggered, and transfers of one queue run in order. A barrier clears all semaphores. A wait\n"
    "must be satisfiable, on every path, by instructions before it since the last barrier.\n"
    "\n"
    "## Memories and addresses\n"
    "\n"
    "SBUF and PSUM have 128 partitions of up to 256 KiB and 16 KiB (eight banks of 2 KiB); a chip file says\n"
    "what a target has. An address has 64 bits:\n"
    "\n"
    "```\n"
    "63..56 space   55..40          39..32           31..0\n"
    "0 HBM          segment         byte offset, 39..0\n"
    "1 SBUF         0               start partition  byte offset in the partition\n"
    "2 PSUM         0               start partition  byte offset in the partition\n"
    "```\n"
    "\n"
    "HBM segment 0 is scratch, 1 the constants, then the arguments, then the results. In text: `sbuf[0:128]`,\n"
    "`psum[32:0]`, `hbm[2:64]`, or by name `scratch[64]`, `const[0]`, `arg0[64]`, `result1[0]`. Addresses are\n"
    "aligned to their element. Engines begin at partition 0 for more than 64 partitions, at a multiple of 64\n"
    "for more than 32, else at a multiple of 32; DMA begins anywhere.\n"
    "\n"
    "A pattern has up to four axes with counts `n0`…`n3` (zero reads as one) and strides `d0`…`d3` of dst and\n"
    "`s0`…`s3` of src, in elements. In SBUF and PSUM axis 0 is the partition axis and its stride is zero. In\n"
    "text, an operand none of whose strides is given is dense, row-major over the counts.\n"
    "\n"
    "## Encoding\n"
    "\n";

static void put_fields(Buf *out) {
    buf_printf(out, "An instruction has %d bytes, little-endian. Fields an instruction does not name are zero, "
                    "and so are\nbytes between fields. `wait0` and `wait1` are semaphores or %d for none.\n\n",
               ISA_BYTES, SEM_NONE);
    buf_puts(out, "| field | byte | bytes | signed | in |\n|---|---|---|---|---|\n");
    for (int f = 0; f < ISA_FIELD_COUNT; f++) {
        const IsaField *field = &isa_fields[f];
        buf_printf(out, "| %s | %u | %u | %s | %s |\n", field->name, field->at, field->bytes,
                   field->is_signed ? "yes" : "no",
                   f < ISA_HEAD_FIELDS ? "every instruction" : "those that name it");
    }
    buf_puts(out, "\n`stype` and `dtype` number element types by the artifact's NAME section, as `op` numbers "
                  "instructions.\n`imm` of a branch is an instruction number; of a kernel, its number in the "
                  "KERN section; of memset, the\nelement's bits. `flags` 1 is `accumulate`.\n\n");
}

static void put_row(const IsaRow *row, int number, Buf *out) {
    buf_printf(out, "### %s\n\n", row->name);
    buf_printf(out, "| number | engines | cost | fields |\n|---|---|---|---|\n| %d | ", number);
    const char *sep = "";
    for (int e = 0; e < ENG_COUNT; e++)
        if (isa_row_engine(number, e)) {
            buf_printf(out, "%s%s", sep, engine_names[e]);
            sep = ", ";
        }
    buf_printf(out, " | %s | %s |\n\n", isa_cost_names[row->cost], row->fields[0] ? row->fields : "none");
    buf_printf(out, "    %s\n\n", row->meaning);
}

void isa_manual(Buf *out) {
    buf_puts(out, introduction);
    put_fields(out);
    buf_puts(out, "## Instructions\n\n");
    for (int op = 0; op < ISA_OP_COUNT; op++)
        put_row(&isa_rows[op], op, out);
    buf_puts(out, "## Costs\n\n"
                  "What a cost class means in cycles is in src/clock/price.c, when things happen in "
                  "src/clock/clock.c, and\nthe numbers are in chips/*.chip.\n");
}
