// SPDX-License-Identifier: Apache-2.0
// rows_member.c — which ops row programs may hold, how they repeat operands, and why others are in none.
#include "pass/rows.h"

#include <assert.h>

#include "hlo/dot.h"
#include "mach/cost.h"

#define BLOCK_ROWS_MIN 32    // each block takes a transfer of its own,
#define BLOCK_COLUMNS_MIN 64 // of runs that are not short
#define PASSES 8 // of an engine over scores, about
#define TRIPS 4  // of scores to HBM and back, where products and program are apart

static bool is_row_float(int dtype) { return dtype_on_tensor_engine(dtype); }

static bool refuse_tensor(const HloType *t, Why *why) {
    return why_refuse(why, t->kind != HT_TENSOR || t->dynamic || t->text ? WHY_SIZES : WHY_EMPTY);
}

// The first type of the op that engines do not compute in.
static bool refuse_types(const Hlo *h, const HloOp *op, Why *why) {
    for (uint32_t i = 0; i <= op->noperands; i++) {
        int dtype = hlo_value_type(h, i < op->noperands ? hlo_operand(h, op, i) : op->results)->dtype;
        if (!is_row_float(dtype) && dtype != DT_I1)
            return why_refuse_elements(why, dtype);
    }
    return why_refuse(why, WHY_NO_INSTRUCTION);
}

bool rows_may_hold(const Hlo *h, const HloOp *op, Why *why) {
    if (op->nresults != 1 || !op->noperands)
        return why_refuse(why, WHY_NO_INSTRUCTION);
    const HloType *out = hlo_value_type(h, op->results);
    if (!hlo_has_elems(out))
        return refuse_tensor(out, why);
    bool floats = is_row_float(out->dtype), flags = out->dtype == DT_I1;
    bool in_floats = true, in_flags = true;
    for (uint32_t i = 0; i < op->noperands; i++) {
        const HloType *t = hlo_value_type(h, hlo_operand(h, op, i));
        if (!hlo_has_elems(t))
            return refuse_tensor(t, why);
        in_floats = in_floats && is_row_float(t->dtype);
        in_flags = in_flags && t->dtype == DT_I1;
    }
    bool known = true; // all numbers of the program: left to folding
    for (uint32_t i = 0; i < op->noperands; i++)
        known = known && splat_value(h, hlo_operand(h, op, i));
    if (known)
        return why_refuse(why, WHY_KNOWN);
    const HloType *first = hlo_value_type(h, hlo_operand(h, op, 0));
    if (hlo_is(op, OT_FLOATS) || hlo_is(op, OT_FLAGS))
        return (hlo_is(op, OT_FLOATS) && floats && in_floats) || (hlo_is(op, OT_FLAGS) && flags && in_flags) || refuse_types(h, op, why);
    switch (op->code) {
    case HLO_COMPARE:
        return (in_floats && hlo_int(op, AK_COMPARE_TYPE, CMPT_FLOAT) != CMPT_TOTALORDER) || refuse_types(h, op, why);
    case HLO_IS_FINITE:
        return in_floats || refuse_types(h, op, why);
    case HLO_SELECT:
        return (floats && first->dtype == DT_I1) || refuse_types(h, op, why);
    case HLO_CONVERT:
        return (floats && (in_floats || in_flags)) || refuse_types(h, op, why);
    default:
        return refuse_types(h, op, why);
    }
}

static bool is_row_int(int dtype) { return dtype == DT_I32 || dtype == DT_UI32; }

static bool is_word(int dtype) { return is_row_int(dtype) || dtype == DT_F32; }

// The upper bits of a word, few enough to be compared as fp32.
static bool is_upper(const Hlo *h, ValueId v) {
    for (OpId def = h->values.at[v].def; def; def = h->values.at[hlo_operand(h, hlo_at(h, def), 0)].def) {
        const HloOp *op = hlo_at(h, def);
        const HloAttr *by = op->code == HLO_SHIFT_RIGHT_LOGICAL ? splat_value(h, hlo_operand(h, op, 1)) : NULL;
        if (op->code != HLO_RESHAPE)
            return by && dtype_to_i64(hlo_type(h, by->type)->dtype, by->data) >= 8 && dtype_to_i64(hlo_type(h, by->type)->dtype, by->data) < 32;
    }
    return false;
}

bool rows_may_hold_ints(const Hlo *h, const HloOp *op) {
    if (op->nresults != 1 || !op->noperands || op->noperands > 2 || !hlo_has_elems(hlo_value_type(h, op->results)))
        return false;
    const HloType *out = hlo_value_type(h, op->results), *x = hlo_value_type(h, hlo_operand(h, op, 0));
    const HloAttr *by = op->noperands > 1 ? splat_value(h, hlo_operand(h, op, 1)) : NULL;
    if (!hlo_has_elems(x) || (splat_value(h, hlo_operand(h, op, 0)) && (op->noperands < 2 || by)))
        return false;
    bool ints = is_row_int(out->dtype) && is_row_int(x->dtype);
    if (hlo_is(op, OT_INTS))
        return ints;
    switch (op->code) {
    case HLO_SHIFT_LEFT: case HLO_SHIFT_RIGHT_LOGICAL:
        return ints && by && dtype_to_i64(x->dtype, by->data) >= 0 && dtype_to_i64(x->dtype, by->data) < 32;
    case HLO_COMPARE:
        return is_row_int(x->dtype) && by && is_upper(h, hlo_operand(h, op, 0)) && dtype_to_i64(x->dtype, by->data) >= 0 &&
               dtype_to_i64(x->dtype, by->data) <= 1 << 24;
    case HLO_BITCAST_CONVERT:
        return is_word(out->dtype) && is_word(x->dtype) && out->elems == x->elems;
    default:
        return false;
    }
}

int64_t rows_reduced_columns(const Hlo *h, const HloOp *op, Why *why) {
    uint16_t code = reduce_body(h, op);
    if (code != HLO_ADD && code != HLO_MAXIMUM && code != HLO_MINIMUM)
        return why_refuse(why, WHY_BODY);
    const HloType *t = hlo_value_type(h, hlo_operand(h, op, 0)), *out = hlo_value_type(h, op->results);
    const HloAttr *init = splat_value(h, hlo_operand(h, op, 1));
    if (!hlo_has_elems(t) || !hlo_has_elems(out))
        return refuse_tensor(hlo_has_elems(t) ? out : t, why);
    if (!is_row_float(t->dtype) || t->dtype != out->dtype)
        return why_refuse_elements(why, t->dtype);
    if (!init || splat_value(h, hlo_operand(h, op, 0)))
        return why_refuse(why, WHY_BEGIN);
    bool sums = code == HLO_ADD && t->dtype == DT_F32 && splat_is_zero(h, hlo_operand(h, op, 1));
    if (code == HLO_ADD && t->dtype != DT_F32)
        return why_refuse_type(why, WHY_NARROW_SUM, t->dtype);
    if (!sums && (code == HLO_ADD || !is_neutral(h, code, hlo_operand(h, op, 1))))
        return why_refuse(why, WHY_BEGIN);
    uint32_t n;
    const int64_t *dims = hlo_ints(op, AK_DIMENSIONS, &n);
    bool reduced[OTRN_MAX_RANK] = {0};
    int64_t c = 1;
    for (uint32_t i = 0; i < n; i++) {
        reduced[dims[i]] = true;
        c *= t->dims[dims[i]];
    }
    bool below = true; // going from the last dimension up: reduced ones, then the rows
    for (int i = t->rank; i-- > 0;) {
        if (t->dims[i] == 1)
            continue;
        if (reduced[i] && !below)
            return why_refuse(why, WHY_ACROSS);
        below = below && reduced[i];
    }
    if (c == 1 || t->elems == c)
        return why_refuse(why, c == 1 ? WHY_SMALL : WHY_ALL);
    return c;
}

// Elements of the dimensions behind the last one along which the broadcast repeats.
static int64_t block_columns(const Hlo *h, const HloOp *op) {
    const HloType *in = hlo_value_type(h, hlo_operand(h, op, 0)), *out = hlo_value_type(h, op->results);
    uint32_t n;
    const int64_t *dims = hlo_ints(op, AK_BROADCAST_DIMENSIONS, &n);
    int64_t c = 1;
    int at = (int)in->rank;
    for (int i = out->rank; i-- > 0;) {
        if (out->dims[i] == 1)
            continue;
        while (at > 0 && in->dims[at - 1] == 1)
            at--;
        if (!at || dims[at - 1] != i)
            break;
        c *= out->dims[i];
        at--;
    }
    return c;
}

int64_t rows_repeats(const Hlo *h, const HloOp *op) {
    assert(op->code == HLO_BROADCAST_IN_DIM);
    const HloType *in = hlo_value_type(h, hlo_operand(h, op, 0)), *out = hlo_value_type(h, op->results);
    uint32_t n;
    const int64_t *dims = hlo_ints(op, AK_BROADCAST_DIMENSIONS, &n);
    if (!hlo_has_elems(in) || !hlo_has_elems(out) || n != in->rank || in->elems == out->elems)
        return -1;
    bool from[OTRN_MAX_RANK] = {0};
    int64_t last = -1;
    for (uint32_t i = 0; i < n; i++) {
        if (in->dims[i] == 1)
            continue;
        if (dims[i] <= last || in->dims[i] != out->dims[dims[i]])
            return -1;
        last = dims[i];
        from[dims[i]] = true;
    }
    int changes = 0, first = -1, before = -1;
    for (int i = 0; i < out->rank; i++) {
        if (out->dims[i] == 1)
            continue;
        if (first < 0)
            first = from[i];
        changes += before >= 0 && before != from[i];
        before = from[i];
    }
    if (changes > 2 || (changes == 2 && !first) || first < 0)
        return -1;
    if (changes == 2)
        return out->elems / in->elems >= BLOCK_ROWS_MIN && block_columns(h, op) >= BLOCK_COLUMNS_MIN ? FUSED_BLOCKS : -1;
    return first || in->elems == 1 ? FUSED_ROWS : FUSED_COLUMNS;
}

static Source source_of(const Hlo *h, ValueId v) {
    ValueId at = v;
    for (int k = 0; k < 3; k++) {
        OpId def = h->values.at[at].def;
        if (!def)
            break;
        const HloOp *op = hlo_at(h, def);
        if (op->code == HLO_BROADCAST_IN_DIM) {
            int64_t kind = rows_repeats(h, op);
            return kind < 0 ? (Source){v, FUSED_SAME, 0}
                            : (Source){hlo_operand(h, op, 0), kind, kind == FUSED_BLOCKS ? block_columns(h, op) : 0};
        }
        if (op->code != HLO_RESHAPE)
            break;
        at = hlo_operand(h, op, 0);
    }
    return (Source){v, FUSED_SAME, 0};
}

bool rows_is_for_all(const Hlo *h, const HloOp *op, ValueId v) {
    return op->code != HLO_REDUCE && hlo_value_type(h, v)->elems == 1 && hlo_value_type(h, op->results)->elems > 1;
}

Source rows_source(const Hlo *h, const HloOp *op, ValueId v) {
    return rows_is_for_all(h, op, v) ? (Source){v, FUSED_ROWS, 0} : source_of(h, v);
}

// Lanes beyond a batch's rows stand idle through all of the program, where rows of its own fill them; in return its rows see HBM less often.
static bool fills_lanes(const ChipFile *chip, int dtype, int64_t rows) {
    double idle = cost_pass(chip, ENG_VECTOR, PASSES * (1.0 / (double)rows - 1.0 / PARTITIONS));
    return idle <= cost_hbm(chip, TRIPS * (double)dtype_bytes(dtype));
}

int64_t rows_batches(const ChipFile *chip, int dtype, int64_t batches, int64_t rows, int64_t columns) {
    int64_t best = 1;
    assert(batches > 0);
    if (!chip || rows < 1 || rows > PARTITIONS || columns < chip->engine_min_cycles || !fills_lanes(chip, dtype, rows))
        return 1;
    for (int64_t n = 2; n * columns <= PSUM_BANK_COLS; n++)
        if (batches % n == 0)
            best = n;
    return best;
}

int64_t rows_batches_of(const ChipFile *chip, const Hlo *h, const HloOp *dot) {
    const HloType *t = hlo_value_type(h, dot->results);
    int64_t batches = 1, columns = t->rank ? t->dims[t->rank - 1] : 1;
    for (uint32_t i = 0; i < dot_dims(dot).nb; i++)
        batches *= t->dims[i];
    return t->elems ? rows_batches(chip, t->dtype, batches, t->elems / (batches * columns), columns) : 1;
}

bool rows_is_count(const Hlo *h, ValueId v) {
    v = before_reshapes(h, v);
    const HloType *t = hlo_value_type(h, v);
    return hlo_def_as(h, v, HLO_IOTA) && t->rank == 1 && is_row_int(t->dtype) && t->elems < INT32_MAX;
}

OpId rows_draw(const Hlo *h, ValueId v) {
    v = before_reshapes(h, v);
    return hlo_def_as(h, v, HLO_DRAW) ? h->values.at[v].def : 0;
}

bool rows_exchange(const Hlo *h, const HloOp *rows) {
    const HloRegion *region = hlo_op_region(h, rows, 0);
    for (uint32_t i = 0; i < region->ops.n; i++)
        if (hlo_at(h, region->ops.at[i])->code == HLO_EXCHANGE)
            return true;
    return false;
}

bool rows_of_ints(const Hlo *h, const HloOp *rows) {
    assert(rows->code == HLO_ROWS && rows->nregions == 1);
    const HloRegion *region = hlo_op_region(h, rows, 0);
    for (uint32_t i = 0; i + 1 < region->ops.n; i++) {
        const HloOp *op = hlo_at(h, region->ops.at[i]);
        if (op->noperands && is_row_int(hlo_value_type(h, op->results)->dtype))
            return true;
    }
    return false;
}

bool rows_is_flat(const Hlo *h, const HloOp *rows) {
    const int64_t *kinds = rows_kinds(rows);
    const HloRegion *r = hlo_op_region(h, rows, 0);
    for (uint32_t i = 0; i < rows->noperands; i++)
        if (kinds[i] != FUSED_SAME && hlo_value_type(h, hlo_operand(h, rows, i))->elems > 1)
            return false;
    for (uint32_t i = 0; i + 1 < r->ops.n; i++) {
        const HloOp *op = hlo_at(h, r->ops.at[i]);
        if (op->code == HLO_REDUCE || op->code == HLO_EXCHANGE || (op->code != HLO_CONSTANT && !hlo_value_type(h, op->results)->rank))
            return false;
    }
    return true;
}

// --- what is in none ---------------------------------------------------------------------------------

static int64_t largest(const Hlo *h, const HloOp *op) {
    int64_t n = 0;
    for (uint32_t i = 0; i < op->noperands + op->nresults; i++) {
        const HloType *t = hlo_value_type(h, i < op->noperands ? hlo_operand(h, op, i) : op->results + i - op->noperands);
        n = t->elems > n ? t->elems : n;
    }
    return n;
}

static void member_refused(const Hlo *h, const HloOp *op, Why *why) {
    Why now = {0};
    if (!rows_may_hold(h, op, &now))
        why_refuse_type(why, now.id == WHY_EXACT && rows_may_hold_ints(h, op) ? WHY_INTS_SLOW : (WhyId)now.id, now.dtype);
}

void rows_refused(const Hlo *h, const HloOp *op, Why *why) {
    Why now = {0};
    if (op->code == HLO_REDUCE) {
        rows_reduced_columns(h, op, &now);
    } else if (op->code == HLO_FUSED) {
        const HloRegion *r = hlo_op_region(h, op, 0);
        for (uint32_t i = 0; i + 1 < r->ops.n; i++)
            if (hlo_at(h, r->ops.at[i])->noperands)
                member_refused(h, hlo_at(h, r->ops.at[i]), &now);
    } else if (hlo_row(op)->cls <= HC_EW3) {
        member_refused(h, op, &now);
    } else {
        return;
    }
    bool in_any_size = now.id == WHY_LACKS || now.id == WHY_EXACT || now.id == WHY_NO_INSTRUCTION;
    if (!in_any_size && largest(h, op) < ROWS_MIN_ELEMS)
        now = (Why){.id = WHY_SMALL};
    why_refuse_type(why, now.id ? (WhyId)now.id : WHY_FORMS, now.dtype);
}
