// SPDX-License-Identifier: Apache-2.0
// why.c — reasons for GpSimd, told from the kernel: the conditions the passes and lower.c decide by.
//
// The first row that holds is the reason. Rows for single operations come before those about types and sizes,
// because those would not help: a sort stays where it is in any type.
#include "tile/why.h"

#include <stdio.h>

#include "pass/rows.h"

enum { ABOUT_OPS, ABOUT_HOST, ABOUT_TYPES, ABOUT_INTS, ABOUT_SMALL, ABOUT_ACROSS, ABOUT_REGION, ABOUT_ALL };
#define OPS_MAX 8

static const struct {
    int about;
    uint16_t ops[OPS_MAX];
    const char *text;
} reasons[] = {
    {ABOUT_HOST, {0}, "it calls a function of the host"},
    {ABOUT_OPS, {HLO_SORT, HLO_CHLO_TOP_K}, "the order depends on the data, element by element"},
    {ABOUT_OPS, {HLO_RNG, HLO_RNG_BIT_GENERATOR}, "random bits are integer arithmetic, which the engines do in fp32"},
    {ABOUT_OPS, {HLO_CHOLESKY, HLO_TRIANGULAR_SOLVE}, "each row needs the one before it"},
    {ABOUT_OPS, {HLO_FFT}, "there is no lowering of Fourier transforms yet"},
    {ABOUT_OPS, {HLO_CUSTOM_CALL}, "a custom call is a kernel of its own"},
    {ABOUT_TYPES, {0}, "the engines have no %s"},
    {ABOUT_OPS, {HLO_GATHER, HLO_SCATTER, HLO_DYNAMIC_SLICE, HLO_DYNAMIC_UPDATE_SLICE, HLO_DYNAMIC_GATHER},
     "places come from data, and not as whole rows picked by one index"},
    {ABOUT_OPS, {HLO_REDUCE_WINDOW}, "a window this small, of many taps, or of more than a sum, maximum or minimum"},
    {ABOUT_OPS, {HLO_SELECT_AND_SCATTER}, "where a window's value goes is found element by element"},
    {ABOUT_OPS, {HLO_CONVOLUTION, HLO_DYNAMIC_CONV}, "a convolution this small, or of such groups and dilations, is quicker here"},
    {ABOUT_INTS, {0}, "%s is exact here; the engines compute in fp32"},
    {ABOUT_SMALL, {0}, "%s: one kernel costs less than transfers in and out"},
    {ABOUT_OPS, {HLO_DOT, HLO_DOT_GENERAL}, "the tensor engine does not multiply these types"},
    {ABOUT_ACROSS, {0}, "it reduces across rows: the engines do that for sums of 32 rows and 64 columns or more"},
    {ABOUT_REGION, {0}, "its region is more than one sum, maximum or minimum along rows"},
    {ABOUT_OPS, {HLO_TRANSPOSE, HLO_SLICE, HLO_CONCATENATE, HLO_PAD, HLO_BROADCAST_IN_DIM, HLO_REVERSE, HLO_RESHAPE},
     "its runs are too short for transfers"},
    {ABOUT_OPS, {HLO_IOTA}, "numbers in order are made where they go"},
    {ABOUT_OPS, {HLO_FUSED, HLO_ROWS}, "an operation among them has no instruction on the engines"},
    {ABOUT_ALL, {0}, "there is no lowering to the engines yet"},
};

static const KTensor *tensor(const Kern *k, uint32_t i) { return i < k->nin ? &k->in[i] : &k->out[i - k->nin]; }

// The first operand or result of a type the engines lack; a predicate of i1 is none.
static const char *lacking(const Kern *k) {
    for (uint32_t i = 0; i < k->nin + k->nout; i++) {
        const DtypeRow *t = dtype_row(tensor(k, i)->dtype);
        if (t->cls == DC_COMPLEX || t->bits == 64)
            return t->name;
    }
    return NULL;
}

static const char *integers(const Kern *k) {
    for (uint32_t i = 0; i < k->nin + k->nout; i++)
        if (dtype_is_int(tensor(k, i)->dtype))
            return dtype_row(tensor(k, i)->dtype)->name;
    return NULL;
}

static int64_t elements(const Kern *k) {
    int64_t most = 0;
    for (uint32_t i = 0; i < k->nin + k->nout; i++)
        most = tensor(k, i)->elems > most ? tensor(k, i)->elems : most;
    return most;
}

// A reduction that keeps elements behind those it takes together.
static bool goes_across(const Kern *k) {
    const HloAttr *dims = k->op == HLO_REDUCE && k->nin == 2 ? kern_attr(k, AK_DIMENSIONS) : NULL;
    bool before = false, across = false;
    for (int d = 0; dims && dims->kind == HA_INTS && d < k->in[0].rank; d++) {
        bool reduced = false;
        for (uint32_t i = 0; i < dims->n; i++)
            reduced = reduced || dims->ints[i] == d;
        across = across || (before && !reduced && k->in[0].dims[d] > 1);
        before = before || (reduced && k->in[0].dims[d] > 1);
    }
    return across;
}

static bool holds(const Kern *k, int about, const uint16_t *ops) {
    switch (about) {
    case ABOUT_OPS:
        for (int i = 0; i < OPS_MAX && ops[i]; i++)
            if (ops[i] == k->op)
                return true;
        return false;
    case ABOUT_HOST:
        return k->op == HLO_CUSTOM_CALL && k->target && !strcmp(k->target, HLO_HOST_CALL);
    case ABOUT_TYPES:
        return lacking(k) != NULL;
    case ABOUT_INTS:
        return integers(k) != NULL;
    case ABOUT_SMALL:
        return elements(k) < ROWS_MIN_ELEMS;
    case ABOUT_ACROSS:
        return goes_across(k);
    case ABOUT_REGION:
        return k->nregions && (k->op == HLO_REDUCE || k->op == HLO_MAP);
    default:
        return true;
    }
}

const char *tile_why_kernel(const Kern *k, char why[WHY_BYTES]) {
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        if (!holds(k, reasons[i].about, reasons[i].ops))
            continue;
        const char *before = strstr(reasons[i].text, "%s"), *word = "";
        char count[32];
        snprintf(count, sizeof count, "%lld element%s", (long long)elements(k), elements(k) == 1 ? "" : "s");
        if (!before)
            return reasons[i].text;
        word = reasons[i].about == ABOUT_TYPES ? lacking(k) : reasons[i].about == ABOUT_INTS ? integers(k) : count;
        snprintf(why, WHY_BYTES, "%.*s%s%s", (int)(before - reasons[i].text), reasons[i].text, word, before + 2);
        return why;
    }
    return ""; // the last row always holds
}
