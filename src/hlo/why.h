// SPDX-License-Identifier: Apache-2.0
// why.h — why an operation is no work for the engines: the one list of reasons.
//
// Whoever decides names one where it refuses: `return why_refuse(why, WHY_RUNS);`. The first reason stays; what is asked for a yes
// or no alone passes NULL. A %s is the element type that was refused, or, without one, how many elements there are.
#ifndef OTRN_HLO_WHY_H
#define OTRN_HLO_WHY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WHY_LIST(X)                                                                                \
    X(UNKNOWN, "the reason was told when it was compiled")                                         \
    X(LACKS, "the engines have no %s")                                                             \
    X(EXACT, "%s is exact here; the engines compute in fp32")                                      \
    X(INTS_SLOW, "as a row program of integers it would not be quicker")                           \
    X(SMALL, "%s: one kernel costs less than transfers in and out")                                \
    X(EMPTY, "it has no elements")                                                                 \
    X(LARGE, "it is larger than a transfer can count")                                             \
    X(SIZES, "its sizes are known only when it runs")                                              \
    X(NO_INSTRUCTION, "no instruction of the engines does it")                                     \
    X(FORMS, "its operands fit no common rows and columns")                                        \
    X(BODY, "its region is more than one sum, maximum or minimum")                                 \
    X(BEGIN, "it begins with another number than its operation leaves unchanged")                  \
    X(NARROW_SUM, "sums along rows add up in fp32, not in %s")                                     \
    X(ACROSS, "it reduces across rows, and is too small for a product with ones")                  \
    X(ALL, "it leaves one number: there are no rows to spread over the engines")                   \
    X(PRODUCT_TYPES, "the tensor engine does not multiply %s")                                     \
    X(RUNS, "its runs of neighbours are too short for transfers")                                  \
    X(TRANSFERS, "it would take too many transfers")                                               \
    X(PADDING, "the number around it is known only when it runs")                                  \
    X(TURN, "it takes neighbours apart, in rows too short to be turned on the way through SBUF")   \
    X(ROWS_BY_INDEX, "places come from data, and not as whole rows picked by one index")           \
    X(INDEX_TYPE, "indices of %s: transfers by index take 32-bit integers")                        \
    X(SHORT_ROWS, "rows picked by index are too short for transfers")                              \
    X(COMBINES, "what it does at each place is more than a sum")                                   \
    X(PLACES, "its place is known only when it runs, in more dimensions than an address can follow") \
    X(LITTLE, "it moves too little: loading the place would take longer")                          \
    X(WINDOW, "its window is more than a sum, maximum or minimum of one operand")                  \
    X(RUNNING, "a running result of few, long or short rows, across rows, or in another type")     \
    X(WINDOW_EDGES, "its window reaches over the edge or into gaps")                               \
    X(WINDOW_SMALL, "its windows leave too little for each instruction of the vector engine")      \
    X(CONV_FORM, "its padding and dilations are no product of strided views")                      \
    X(CONV_SLOW, "in such groups and sizes it would take longer on the engines")                   \
    X(ORDER, "the order depends on the data, element by element")                                  \
    X(RANDOM, "random bits are integer arithmetic, which the engines do in fp32")                  \
    X(CHAIN, "each row needs the one before it")                                                   \
    X(FOURIER, "there is no lowering of Fourier transforms yet")                                   \
    X(SCATTERS, "where a window's value goes is found element by element")                         \
    X(COUNTS, "numbers in order are written once, which no engine does quicker")                   \
    X(KNOWN, "all its operands are numbers of the program")                                        \
    X(HOST, "it calls a function of the host")                                                     \
    X(CUSTOM, "a custom call is a kernel of its own")                                              \
    X(NO_LOWERING, "there is no lowering to the engines yet")

typedef enum WhyId {
#define X(name, text) WHY_##name,
    WHY_LIST(X)
#undef X
    WHY_COUNT,
} WhyId;

typedef struct Why {
    uint8_t id, dtype; // 0: nothing refused yet; no type
} Why;

static inline bool why_refuse_type(Why *why, WhyId id, int dtype) {
    if (why && !why->id)
        *why = (Why){(uint8_t)id, (uint8_t)dtype};
    return false;
}
static inline bool why_refuse(Why *why, WhyId id) { return why_refuse_type(why, id, 0); }
bool why_refuse_elements(Why *why, int dtype); // engines do not compute in this type: they lack it, or would round

#define WHY_BYTES 160
const char *why_text(Why why, int64_t elems, char out[WHY_BYTES]);

#endif
