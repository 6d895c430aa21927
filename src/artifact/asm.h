// SPDX-License-Identifier: Apache-2.0
// asm.h — the assembler's inside: one text in, one artifact out.
//
// asm.c        lines, directives, labels
// asm_expr.c   numbers: constant expressions, affine ones over loop counters, derived registers
// asm_view.c   tensors and slices of them as operands: addresses, counts, strides
// asm_block.c  for, loop, if
#ifndef OTRN_ARTIFACT_ASM_H
#define OTRN_ARTIFACT_ASM_H

#include "artifact/artifact.h"
#include "isa/text.h"

#define AFF_TERMS 6
typedef struct Aff { // c + sum of k * register
    int64_t c;
    int n;
    struct {
        uint8_t reg;
        int64_t k;
    } t[AFF_TERMS];
} Aff;

typedef struct Val {
    bool is_float;
    double f;
    Aff a;
} Val;

#define TENSOR_RANK 8
typedef struct Tensor {
    int space;
    uint64_t addr;
    uint8_t dtype, rank, part; // part: which axis is the partition axis; of HBM: rank
    int64_t dims[TENSOR_RANK], stride[TENSOR_RANK]; // elements; of axis `part`: 0
} Tensor;

typedef struct Sym {
    TxtWord name;
    enum { SYM_NUMBER, SYM_TENSOR, SYM_TYPE } kind;
    bool is_param;
    Val v;
    Tensor t;
    uint8_t dtype; // of SYM_TYPE
} Sym;

#define VIEW_AXES 10
typedef struct View { // a slice of a tensor: axis 0 is the partition axis outside HBM
    const Tensor *of;
    uint32_t part; // start partition
    Aff off;       // bytes
    int n;
    struct {
        int64_t count, stride; // elements
    } ax[VIEW_AXES];
} View;

typedef struct Label {
    TxtWord name;
    uint32_t pc;
} Label;

typedef struct Fixup { // a place that names a label: `at` is an instruction, or a loop border
    TxtWord name;
    enum { FIX_JUMP, FIX_LOOP_BEGIN, FIX_LOOP_END } kind;
    uint32_t at;
} Fixup;

typedef struct Derived { // a register that holds op(x, y) of other registers, inside one loop
    int op;
    uint8_t engine, reg;
    Aff x;
    int64_t y;
} Derived;

typedef struct Asm {
    Txt t;
    Artifact *art;
    IsaNames names;
    IsaHooks hooks;
    VEC(ArtValue) args;
    VEC(ArtValue) results;
    VEC(IsaInst) code;
    VEC(uint32_t) code_loc;
    VEC(Kern) kerns;
    VEC(ArtLoc) locs;
    VEC(ArtLoop) loops;
    VEC(ArtLive) live;
    VEC(Label) labels;
    VEC(Fixup) fixups;
    Buf consts;
    uint32_t *label_slots; // hash of label names to label number + 1
    uint32_t nlabel_slots;
    // the language around instructions
    const char *next, *end; // the text from the next line on
    uint32_t next_line;
    uint64_t steps; // lines taken, unrolled ones as often as they come
    int depth;      // blocks
    VEC(Sym) syms;
    VEC(Derived) derived;
    uint8_t next_reg, last_reg; // counters grow from below, derived registers from above
    uint64_t sbuf_used, psum_used;
    const char *defs; // "M=512,N=3", given from outside
    bool is_source;   // the text declares tensors: instructions remember their lines
    bool sync_auto;
    int defs_core;    // which core that is
    int core;         // of a kernel with .cores: the one this text is being read for; else -1
    bool has_second;  // .core 1: from here on it is the second core's program
    uint32_t second_code, second_loops;
    int engine;          // of the instruction being read
    View views[6];       // its operands: dst, src, src1, a, b, res
    uint8_t view_fields; // bit per entry of views
    Txt view_at[6];
    const char *bits_field; // a field given as a number with a point; NULL: none
    Txt bits_at;
    double bits;
} Asm;

#define ASM_CODE_MAX 0x40000000u
#define ASM_STEPS_MAX 4000000u
#define ASM_DEPTH_MAX 32

// --- asm.c
void asm_push(Asm *s, const IsaInst *in, uint32_t loc);
int asm_dtype(Asm *s, Txt *t);                          // a type, or a .type's name
uint32_t asm_line_loc(Asm *s);                          // of the current line
void asm_line(Asm *s);                                  // takes the line at the cursor
void asm_arg(Asm *s, bool is_result, ArtValue v);       // declares an argument or a result
// --- asm_expr.c
Val asm_val(Asm *s, Txt *t);
int64_t asm_int(Asm *s, Txt *t, const char *what);      // a constant
Aff asm_aff(Asm *s, Txt *t, const char *what);
Sym *asm_find(Asm *s, TxtWord name);
Sym *asm_set(Asm *s, const Txt *begin, TxtWord name);   // a new symbol, or the number to change
Aff aff_add(const Txt *at, Aff x, Aff y, int64_t k);    // x + k * y
uint8_t asm_derive(Asm *s, const Txt *at, int op, Aff x, int64_t y); // a register that holds x op y
// --- asm_view.c
void asm_tensor(Asm *s, int space, bool is_result, bool is_arg); // .input .output .tensor .sbuf .psum
void asm_hooks(Asm *s);
// --- asm_block.c
void asm_block(Asm *s, bool inside); // lines up to the end, or to the `}` that closes
bool asm_statement(Asm *s);          // for, loop, if, NAME = …; false: it is none of them

#endif
