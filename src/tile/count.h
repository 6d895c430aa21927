// SPDX-License-Identifier: Apache-2.0
// count.h — loops that count: what their counter decides stands in registers, not in memory.
#ifndef OTRN_TILE_COUNT_H
#define OTRN_TILE_COUNT_H

#include "tile/nest.h"

#define LOOP_REG_FIRST 16 // the counter of the outermost loop; those inside it follow
#define LOOP_DEPTH_MAX 16

// `for (i = first; i < limit; i += step)`, as scan and fori_loop write it: trips and which carried value i is. False: not
// that form, or trips not known.
bool count_loop(const Lower *l, const HloOp *op, Loop *out);
// What the op gives is one number per turn of a loop: its results have a form and need no step.
bool count_op(Lower *l, OpId id);
void count_constant(Lower *l, ValueId v, int64_t number); // v is that number
bool count_form(const Lower *l, ValueId v, Form *out);
int64_t count_least(const Lower *l, Form f);
int64_t count_most(const Lower *l, Form f);
uint8_t count_reg(const Lower *l, uint32_t loop);
// A slice whose place the counter tells is no copy: the buffer it is a view of, or 0. Its index operands are not read.
BufId count_slice(Lower *l, const HloOp *op);
// Carried value i of the loop, whose number that is, has each of its elements written by the end, and nobody sees it before.
bool count_overwrites(Lower *l, const HloOp *loop, uint32_t number, uint32_t i);
// … and what is still read of that buffer are the pieces at the places that the loop writes in the same iteration, before it does.
bool count_reads_first(Lower *l, const HloOp *loop, uint32_t i, BufId b);
// Updates of a loop's state at such places: who makes the update writes it there. Called before the body is lowered.
void count_updates(Lower *l, const HloOp *loop, const BufId *state);
BufId count_place(Lower *l, ValueId v); // where v is to be made, 0: anywhere
// Views that meet nothing but each other, and those of other iterations never, are apart. Called when all steps are there.
void count_apart(Lower *l);
// The update is there already.
bool count_is_updated(const Lower *l, const HloOp *op);

// --- a slice or an update at a place that only the run knows ---------------------------------------

#define UNKNOWN_MAX 2 // terms of an address

typedef struct Dynamic {
    Nest nest;  // src: the whole tensor, as far as indices are known; dst: the slice
    struct {
        uint32_t operand;    // which holds the index
        int64_t last, bytes; // largest place, bytes of one step
        Form form;           // known: what it is in each turn of a loop
    } unknown[UNKNOWN_MAX];
    int count;
    int dtype;
    bool update;
} Dynamic;

bool dynamic_of(const Lower *l, const HloOp *op, Dynamic *d, Why *why); // false: not by transfer
// The index is read from memory: no register tells it, or it may lie outside, from where it is moved in.
bool dynamic_loads(const Lower *l, const HloOp *op, uint32_t operand);

#endif
