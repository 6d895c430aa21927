// SPDX-License-Identifier: Apache-2.0
// isa_manual.c — the instruction set manual (spec/isa.md), printed from the table.
#include <stdio.h>

#include "isa/isa.h"

static const char introduction[] =
    "<!-- Printed from src/isa/isa.def: build/tests/unit/isa_test manual >spec/isa.md -->\n"
    "# Instruction set\n"
    "\n"
    "A program is one list of instructions for five sequencers and sixteen DMA queues. Each\n"
    "sequencer takes its own instructions in the order of the list; the sequencers run side\n"
    "by side and only semaphores order them. The order of the list is one legal execution,\n"
    "and the one the functional chip follows.\n"
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
    "Semaphores 0 to 4 belong to the engines, 5 to 20 to the DMA queues `q0` to `q15`. An\n"
    "instruction that completes adds one to the semaphore of its engine; a DMA adds one to\n"
    "that of its queue instead. An instruction may wait until two semaphores have reached a\n"
    "value: `wait(vector>=3, q0>=2)`. The waiting happens on the sequencer, so later\n"
    "instructions of the same engine wait behind it; a DMA waits on sync before it is\n"
    "triggered, and transfers of one queue run in order. A barrier clears all semaphores. A\n"
    "wait must be satisfiable, on every path, by instructions before it since the last\n"
    "barrier.\n"
    "\n"
    "## Memories and addresses\n"
    "\n"
    "SBUF and PSUM have 128 partitions of up to 256 KiB and 16 KiB (eight banks of 2 KiB); a\n"
    "chip file says what a target has. An address has 64 bits:\n"
    "\n"
    "```\n"
    "63..56 space   55..40          39..32           31..0\n"
    "0 HBM          segment         byte offset, 39..0\n"
    "1 SBUF         0               start partition  byte offset in the partition\n"
    "2 PSUM         0               start partition  byte offset in the partition\n"
    "```\n"
    "\n"
    "HBM segment 0 is scratch, 1 the constants, then the arguments, then the results. In\n"
    "text: `sbuf[0:128]`, `psum[32:0]`, `hbm[2:64]`, or by name `scratch[64]`, `const[0]`,\n"
    "`arg0[64]`, `result1[0]`. Addresses are aligned to their element. Engines begin at\n"
    "partition 0 for more than 64 partitions, at a multiple of 64 for more than 32, else at a\n"
    "multiple of 32; DMA begins anywhere.\n"
    "\n"
    "A pattern has up to four axes with counts `n0`…`n3` (zero reads as one) and strides\n"
    "`d0`…`d3` of dst and `s0`…`s3` of src, in elements. In SBUF and PSUM axis 0 is the\n"
    "partition axis and its stride is zero. In text, an operand none of whose strides is\n"
    "given is dense, row-major over the counts.\n"
    "\n"
    "## Encoding\n"
    "\n";

static const char encoding[] =
    "An instruction is the head's fields, then those its row names in that order, little-endian,\n"
    "filled up with zeros to a multiple of four bytes. `dst`, `src` and `src1` are followed by\n"
    "two registers (number + 1, 0 for none) and two multipliers: `r[reg] * multiplier` bytes are\n"
    "added to the address. `wait0` and `wait1` are semaphores, or 255 for none; with bit 7 set\n"
    "the value counts back: all but that many of the instructions before this one, in program\n"
    "order, have completed. `usem` is one of the program's own semaphores + 1, 0 for no signal;\n"
    "`uop` 0 adds, 1 subtracts, 2 writes `uval`, + 4 at the start instead of at the end.\n"
    "\n";

static const char encoding_notes[] =
    "\n"
    "Element types, ALU operations and functions are numbered by the artifact's NAME section, as\n"
    "`op` numbers instructions. `imm` of a branch is an instruction number; of a kernel, its number in the\n"
    "KERN section; of memset, the element's bits. `flags` 1 is `accumulate`.\n"
    "\n";
_Static_assert(SEM_NONE == 255, "the text above says so");

static void put_fields(Buf *out) {
    buf_puts(out, encoding);
    buf_puts(out, "| field | bytes | signed | in |\n|---|---|---|---|\n");
    for (int f = 0; f < ISA_FIELD_COUNT; f++) {
        const IsaField *field = &isa_fields[f];
        buf_printf(out, "| %s | %u | %s | %s |\n", field->name, field->bytes,
                   field->is_signed ? "yes" : "no",
                   f < ISA_HEAD_FIELDS ? "every instruction" : "those that name it");
    }
    buf_puts(out, encoding_notes);
}

static void put_alu(Buf *out) {
    buf_puts(out, "## ALU operations\n\n"
                  "Kind U has one operand, A is fp32 arithmetic, C gives 1 or 0, B works on bits. R may\n"
                  "reduce, I is exact on 32-bit integers on gpsimd, N may stand on registers.\n\n"
                  "| name | kind | flags | meaning |\n|---|---|---|---|\n");
    for (int i = 0; i < ALU_COUNT; i++)
        buf_printf(out, "| %s | %c | %s | %s |\n", alu_rows[i].name, alu_rows[i].kind,
                   alu_rows[i].flags, alu_rows[i].meaning);
    buf_puts(out, "\n## Functions of the scalar engine\n\n| name | table | from | to | meaning |\n"
                  "|---|---|---|---|---|\n");
    for (int i = 0; i < ACT_COUNT; i++)
        buf_printf(out, "| %s | %d | %g | %g | %s |\n", act_rows[i].name, act_rows[i].set,
                   act_rows[i].lo, act_rows[i].hi, act_rows[i].meaning);
    buf_puts(out, "\n");
}

static void put_row(const IsaRow *row, int number, Buf *out) {
    buf_printf(out, "### %s\n\n", row->name);
    buf_printf(out, "| number | bytes | engines | from | cost | nki | fields |\n"
                    "|---|---|---|---|---|---|---|\n| %d | %zu | ", number, isa_bytes(number));
    const char *sep = "";
    for (int e = 0; e < ENG_COUNT; e++)
        if (isa_row_engine(number, e)) {
            buf_printf(out, "%s%s", sep, engine_names[e]);
            sep = ", ";
        }
    buf_printf(out, " | trn%d | %s | %s | %s |\n\n", row->gen - 1, isa_cost_names[row->cost], row->nki,
               row->fields[0] ? row->fields + 1 : "none");
    buf_printf(out, "    %s\n\n", row->meaning);
}

static const char draws[] =
    "## Draws\n"
    "\n"
    "`draw(s, n)` of `rng_at` and `dropout_at` is a function of a state of four words and a number of 64 bits, of which the instruction\n"
    "gives the lower 32. `*`, `+` and `<<` wrap, `>>` fills with zeros.\n"
    "\n"
    "```\n"
    "mix(x): x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9; x = (x ^ x >> 27) * 0x94d049bb133111eb; x ^ x >> 31    64 bits\n"
    "G = 0x9e3779b97f4a7c15\n"
    "x = mix(mix((s0 | s1 << 32) + G) ^ (s2 | s3 << 32)) + (n >> 32) * G\n"
    "k0 = low word of mix(x + G), k1 = its high word, k2 = low word of mix(x + 2 * G)\n"
    "y = low word of n ^ k0                            32 bits from here on\n"
    "y = (y ^ y >> 16) * 0x85ebca6b ^ k1\n"
    "y = (y ^ y >> 13) * 0xc2b2ae35 ^ k2\n"
    "y = (y ^ y >> 16) * 0x9e3779b1\n"
    "draw = y ^ y >> 16\n"
    "```\n"
    "\n";

static const char costs[] =
    "## Costs\n"
    "\n"
    "What a cost class means in cycles is in src/clock/price.c, when things happen in\n"
    "src/clock/clock.c, and the numbers are in chips/*.chip.\n";

void isa_manual(Buf *out) {
    buf_puts(out, introduction);
    put_fields(out);
    buf_puts(out, "## Instructions\n\n");
    for (int op = 0; op < ISA_OP_COUNT; op++)
        put_row(&isa_rows[op], op, out);
    put_alu(out);
    buf_puts(out, draws);
    buf_puts(out, costs);
}
