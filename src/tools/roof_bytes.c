// SPDX-License-Identifier: Apache-2.0
// roof_bytes.c — what goes through HBM when a compiler for another accelerator has joined operations.
//
// Kernels there read their operands where they are and write their results where they go: cutting, joining, turning and repeating elements is part of
// them, and so is a change of type. A program joined for a Trainium has such steps of their own; here they cost nothing, and their neighbours read and
// write what lies before and behind them.
#include <math.h>

#include "tools/roof.h"

#define STEPS 16 // from a value to where it really lies

static bool is_move(const HloOp *op) {
    return op->code == HLO_SLICE || op->code == HLO_CONCATENATE || op->code == HLO_PAD || op->code == HLO_BROADCAST_IN_DIM || op->code == HLO_TRANSPOSE || op->code == HLO_REVERSE;
}

static bool is_view(const HloOp *op) { return op->code == HLO_RESHAPE || is_move(op); }

// Does it change the type of one tensor, alone or as a joined operation?
static bool is_cast(const Hlo *h, const HloOp *op) {
    if (op->noperands != 1 || op->nresults != 1 || op->code == HLO_CONVERT)
        return op->code == HLO_CONVERT;
    if (op->nregions != 1 || hlo_row(op)->cls == HC_CTRL)
        return false;
    const HloRegion *body = hlo_op_region(h, op, 0);
    return body->ops.n == 2 && hlo_at(h, body->ops.at[0])->code == HLO_CONVERT;
}

static double bytes_each(const Hlo *h, ValueId v) { return (double)dtype_bytes(hlo_value_type(h, v)->dtype); }

static bool is_whole(const Hlo *h, ValueId v) { return hlo_is_plain(hlo_value_type(h, v)); }

// Nobody but one reads it, and all that it is put together from.
static bool is_made_for_one(const Users *u, ValueId v, int steps) {
    uint32_t n;
    users_of(u, v, &n);
    const HloOp *op = hlo_def(u->h, v);
    if (n != 1 || !op || !steps)
        return false;
    for (uint32_t i = 0; is_view(op) && op->code != HLO_BROADCAST_IN_DIM && i < op->noperands; i++)
        if (!is_made_for_one(u, hlo_operand(u->h, op, i), steps - 1))
            return false;
    return true;
}

static bool is_kernel(const HloOp *op) {
    return op->code != HLO_DOT_GENERAL && op->code != HLO_CONVOLUTION && op->code != HLO_RETURN && hlo_row(op)->cls != HC_COLL && hlo_row(op)->cls != HC_CTRL;
}

static bool is_read_by_kernels(const Users *u, ValueId v, int steps) {
    uint32_t n;
    const OpId *users = users_of(u, v, &n);
    for (uint32_t i = 0; i < n; i++) {
        const HloOp *op = hlo_at(u->h, users[i]);
        if (!steps || !is_kernel(op) || (is_view(op) && !is_read_by_kernels(u, op->results, steps - 1)))
            return false;
    }
    return n > 0;
}

// A change of type that who makes the value does, or who reads it.
static bool is_joined_cast(const Users *u, const HloOp *op) {
    return is_cast(u->h, op) && (is_made_for_one(u, hlo_operand(u->h, op, 0), STEPS) || is_read_by_kernels(u, op->results, STEPS));
}

bool roof_is_joined(const Users *u, const HloOp *op) { return is_move(op) || is_joined_cast(u, op); }

double roof_read(const Users *u, ValueId v) {
    const Hlo *h = u->h;
    double elems = is_whole(h, v) ? (double)hlo_value_type(h, v)->elems : 0, each = bytes_each(h, v), most = INFINITY;
    for (int i = 0; i < STEPS; i++) {
        const HloOp *op = hlo_def(h, v);
        if (!op || !(is_view(op) || is_joined_cast(u, op)))
            break;
        v = hlo_operand(h, op, 0);
        each = fmin(each, bytes_each(h, v));
        if (op->code == HLO_BROADCAST_IN_DIM && is_whole(h, v))
            most = fmin(most, (double)hlo_value_type(h, v)->elems);
    }
    return fmin(elems, most) * each;
}

double roof_written(const Users *u, ValueId v) {
    const Hlo *h = u->h;
    double elems = is_whole(h, v) ? (double)hlo_value_type(h, v)->elems : 0, each = bytes_each(h, v);
    for (int i = 0; i < STEPS; i++) {
        uint32_t n;
        const OpId *users = users_of(u, v, &n);
        const HloOp *op = n == 1 ? hlo_at(h, users[0]) : NULL;
        if (!op || !(is_view(op) || is_joined_cast(u, op)))
            break;
        v = op->results;
        each = is_cast(h, op) ? bytes_each(h, v) : each;
    }
    return elems * each;
}
