// SPDX-License-Identifier: Apache-2.0
// dot.h — a matrix product and what its tiles go through where they leave PSUM.
#ifndef OTRN_TILE_DOT_H
#define OTRN_TILE_DOT_H

#include "tile/product.h"

Product dot_product(const Hlo *h, const HloOp *op, OpId stored_as); // its addresses are not known; stored_as: a transpose of it, 0: as it is
bool dot_fits_epilogue(Emit *e, const Epilogue *p);  // there is room in SBUF for both
// Bytes of HBM that a product wants for an operand it would transpose again and again; 0: none.
uint64_t dot_keeps(Emit *e, OpId dot, const DotSum *sum);
void epilogues_find(Lower *l); // epilogue.c: fills l->epilogues and l->epilogue_of
Product dot_of(const Lower *l, OpId dot, OpId stored_as); // … as it is done: a sum of rows goes over the parts that a row program left (rows_sums.c)
void row_sums_find(Lower *l); // rows_sums.c: fills l->row_sums and l->row_sum_of, by blocks and epilogues
void sums_find(Lower *l); // sums.c: fills l->sums and l->sum_of, by the epilogues
// What a product takes by the chip's prices, ns, with its row program and the sums that it takes along; 0: that does not fit.
double dot_ns(Emit *e, OpId dot, const DotSum *sum);

#endif
