// SPDX-License-Identifier: Apache-2.0
// dynamic.h — a slice or an update at a place that only the run knows.
#ifndef OTRN_TILE_DYNAMIC_H
#define OTRN_TILE_DYNAMIC_H

#include "tile/nest.h"

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
