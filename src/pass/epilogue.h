// SPDX-License-Identifier: Apache-2.0
// epilogue.h — a row program that goes on with a product's tiles.
#ifndef OTRN_PASS_EPILOGUE_H
#define OTRN_PASS_EPILOGUE_H

#include "hlo/users.h"

typedef struct Epilogue {
    OpId dot, rows;
    uint32_t index;    // which operand of the program the product makes
    bool keeps;        // others read the product as well
    int64_t rows_n, n; // rows of all batches, columns of the product
} Epilogue;

// The program could do its work on tiles of the product that is its operand `index`, wherever the two stand.
bool epilogue_suits(const Users *u, OpId rows, uint32_t index, Epilogue *out);
// Its other operands are there when the product is made.
bool epilogue_is_ready(const Users *u, const Epilogue *p);

#endif
