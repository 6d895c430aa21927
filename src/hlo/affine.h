// SPDX-License-Identifier: Apache-2.0
// affine.h — values that count: an element is a number, so much for each index of it, and so much for a counter outside.
//
// Counts of elements, rows and columns of a mask, places that a loop reads and writes are all of this form. Who asks says what it knows of
// values (a loop's counter, a row program's arguments); operations in between are read here. A form stands for the very numbers: each value on the
// way fits its type, so nothing wraps and nothing rounds.
#ifndef OTRN_HLO_AFFINE_H
#define OTRN_HLO_AFFINE_H

#include "hlo/hlo.h"

typedef struct Form { // a number: mul * the counter of `loop` + add
    bool known;
    uint32_t loop; // 0: none, just add
    int64_t mul, add;
} Form;

typedef struct Affine {
    Form at; // the first element
    int64_t by[OTRN_MAX_RANK]; // … and what each index adds; 0 where there is one only
} Affine;

typedef struct AffineRange {
    __int128 least, most;
} AffineRange;

typedef struct AffineReader {
    const Hlo *h;
    const void *of; // for the two below
    bool (*known)(const struct AffineReader *r, ValueId v, Affine *out); // reading ends here, with a form or with none; may be NULL
    void (*counts)(const struct AffineReader *r, uint32_t loop, int64_t *first, int64_t *last); // the counter's numbers; NULL where there is none
} AffineReader;

bool affine_read(const AffineReader *r, ValueId v, Affine *out);
AffineRange affine_range(const AffineReader *r, const HloType *t, const Affine *a);
Affine affine_sum(const Affine *a, const Affine *b, int64_t sign); // of forms with one counter at most
// The type has every integer from least to most.
bool affine_fits(int dtype, AffineRange x);
bool affine_compare(int64_t direction, int64_t x); // CMP_: x with 0

#endif
