// SPDX-License-Identifier: Apache-2.0
// rows.c — join elementwise work, reductions along rows and broadcasts back into row programs.
// needs: no dead ops, values defined before use, simplified broadcasts and reshapes
// gives: otrn.rows ops, whose region is the work of one row; what is between stays on the chip
// stale: nothing
//
// A group works on R rows of C columns. Every value of it has R * C elements (full) or R (one a row), in that linear
// order: dimensions do not matter, so a reshape is no work. Operands from outside may also repeat: one element for each
// row, the same elements for every row or every few rows, or a row for each block of them. Until a reduction or such an operand says what C is, a
// group is flat; when a flat group is broadcast along new columns, its values become those of rows.
// Like fuse.c: ops are visited in order, an op joins the open groups of its operands, any other use closes them, and
// the row program stands where its group closed. Groups too small to be worth a transfer are left to fuse.c.
#include "pass/rows.h"

#include <math.h>
#include <string.h>

#include "base/num.h"
#include "clock/clock.h"
#include "pass/dots.h"
#include "pass/walk.h"

#define GROUP_OPS_MAX 192
#define GROUP_INPUTS_MAX 20
#define INTS_MIN_ELEMS 16384
#define PARTITIONS 128
#define BLOCK_ROWS_MIN 32    // each block takes a transfer of its own,
#define BLOCK_COLUMNS_MIN 64 // of runs that are not short

typedef struct Group {
    VEC(OpId) ops;
    int64_t n, c;   // elements of a full value; columns, 0 = flat
    int64_t period; // what periods of repeating operands have in common, 0 = there are none
    uint32_t inputs;
    bool open;
} Group;

typedef enum Form { FORM_NONE, FORM_FULL, FORM_ROW } Form;

typedef struct Rows {
    Compile *c;
    Hlo *h;
    bool ints; // programs of integers: bits and exact arithmetic, nothing else
    Walk w;
    VEC(Group) groups; // slot 0 is none
    VEC(uint32_t) of;  // value -> group that makes it
    VEC(uint8_t) form; // value -> Form in its group
    uint32_t *uses;    // value -> reads in the whole program, before the pass
    uint32_t nuses;
} Rows;

typedef VEC(ValueId) Values;

static uint32_t group_of(const Rows *r, ValueId v) {
    uint32_t g = v < r->of.n ? r->of.at[v] : 0;
    return g && r->groups.at[g].open ? g : 0;
}

static Form form_of(const Rows *r, ValueId v) { return (Form)r->form.at[v]; }

// --- what may be a member ----------------------------------------------------------------------------

static bool is_row_float(int dtype) { return dtype_on_tensor_engine(dtype); }

static bool is_plain(const HloType *t) {
    return t->kind == HT_TENSOR && !t->dynamic && !t->text && t->elems > 0;
}

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
    if (!is_plain(out))
        return refuse_tensor(out, why);
    bool floats = is_row_float(out->dtype), flags = out->dtype == DT_I1;
    bool in_floats = true, in_flags = true;
    for (uint32_t i = 0; i < op->noperands; i++) {
        const HloType *t = hlo_value_type(h, hlo_operand(h, op, i));
        if (!is_plain(t))
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
    switch (op->code) {
    case HLO_ADD: case HLO_SUBTRACT: case HLO_MULTIPLY: case HLO_DIVIDE: case HLO_MAXIMUM: case HLO_MINIMUM:
    case HLO_NEGATE: case HLO_ABS: case HLO_EXPONENTIAL: case HLO_LOG: case HLO_TANH: case HLO_LOGISTIC:
    case HLO_SQRT: case HLO_RSQRT: case HLO_CHLO_ERF: case HLO_CHLO_SQUARE:
        return (floats && in_floats) || refuse_types(h, op, why);
    case HLO_AND: case HLO_OR: case HLO_XOR: case HLO_NOT:
        return (flags && in_flags) || refuse_types(h, op, why);
    case HLO_COMPARE:
        return (in_floats && hlo_int(op, AK_COMPARE_TYPE, CMPT_FLOAT) != CMPT_TOTALORDER) || refuse_types(h, op, why);
    case HLO_IS_FINITE:
        return in_floats || refuse_types(h, op, why);
    case HLO_SELECT:
        return (floats && first->dtype == DT_I1) || refuse_types(h, op, why);
    case HLO_CLAMP:
        return (floats && in_floats) || refuse_types(h, op, why);
    case HLO_CONVERT:
        return (floats && (in_floats || in_flags)) || refuse_types(h, op, why);
    default:
        return refuse_types(h, op, why);
    }
}

static bool is_row_int(int dtype) { return dtype == DT_I32 || dtype == DT_UI32; }

static bool is_word(int dtype) { return is_row_int(dtype) || dtype == DT_F32; }

// A member of a program of integers: bits on the vector engine, arithmetic that wraps on gpsimd, and what hands bits on.
static bool ints_may_hold(const Hlo *h, const HloOp *op) {
    if (op->nresults != 1 || !op->noperands || op->noperands > 2 || !is_plain(hlo_value_type(h, op->results)))
        return false;
    const HloType *out = hlo_value_type(h, op->results), *x = hlo_value_type(h, hlo_operand(h, op, 0));
    const HloAttr *by = op->noperands > 1 ? splat_value(h, hlo_operand(h, op, 1)) : NULL;
    if (!is_plain(x) || (splat_value(h, hlo_operand(h, op, 0)) && (op->noperands < 2 || by)))
        return false;
    bool ints = is_row_int(out->dtype) && is_row_int(x->dtype);
    switch (op->code) {
    case HLO_ADD: case HLO_SUBTRACT: case HLO_MULTIPLY: case HLO_AND: case HLO_OR: case HLO_XOR: case HLO_NOT:
        return ints;
    case HLO_SHIFT_LEFT: case HLO_SHIFT_RIGHT_LOGICAL:
        return ints && by && dtype_to_i64(x->dtype, by->data) >= 0 && dtype_to_i64(x->dtype, by->data) < 32;
    case HLO_BITCAST_CONVERT:
        return is_word(out->dtype) && is_word(x->dtype) && out->elems == x->elems;
    default:
        return false;
    }
}

static bool may_hold(const Rows *r, const HloOp *op) { return r->ints ? ints_may_hold(r->h, op) : rows_may_hold(r->h, op, NULL); }

// Columns a reduction along rows sums up; 0 when it is none, or not one the engines do.
static int64_t reduced_columns(const Hlo *h, const HloOp *op, Why *why) {
    uint16_t code = reduce_body(h, op);
    if (code != HLO_ADD && code != HLO_MAXIMUM && code != HLO_MINIMUM)
        return why_refuse(why, WHY_BODY);
    const HloType *t = hlo_value_type(h, hlo_operand(h, op, 0)), *out = hlo_value_type(h, op->results);
    const HloAttr *init = splat_value(h, hlo_operand(h, op, 1));
    if (!is_plain(t) || !is_plain(out))
        return refuse_tensor(is_plain(t) ? out : t, why);
    if (!is_row_float(t->dtype) || t->dtype != out->dtype)
        return why_refuse_elements(why, t->dtype);
    if (!init || splat_value(h, hlo_operand(h, op, 0)))
        return why_refuse(why, WHY_BEGIN);
    bool sums = code == HLO_ADD && t->dtype == DT_F32 && dtype_to_f64(DT_F32, init->data) == 0;
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

// How a broadcast repeats its operand: each element in turn (FUSED_ROWS), all of it (FUSED_COLUMNS), each of its rows in
// turn (FUSED_BLOCKS), or in another way (-1).
static int64_t repeats(const Hlo *h, const HloOp *op) {
    const HloType *in = hlo_value_type(h, hlo_operand(h, op, 0)), *out = hlo_value_type(h, op->results);
    uint32_t n;
    const int64_t *dims = hlo_ints(op, AK_BROADCAST_DIMENSIONS, &n);
    if (!is_plain(in) || !is_plain(out) || n != in->rank || in->elems == out->elems)
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

// What a full value's operand from outside is before it was repeated.
typedef struct Source {
    ValueId v;
    int64_t kind;
    int64_t columns; // of a block's row
} Source;

static Source source_of(const Hlo *h, ValueId v) {
    ValueId at = v;
    for (int k = 0; k < 3; k++) {
        OpId def = h->values.at[at].def;
        if (!def)
            break;
        const HloOp *op = hlo_at(h, def);
        if (op->code == HLO_BROADCAST_IN_DIM) {
            int64_t kind = repeats(h, op);
            return kind < 0 ? (Source){v, FUSED_SAME, 0}
                            : (Source){hlo_operand(h, op, 0), kind, kind == FUSED_BLOCKS ? block_columns(h, op) : 0};
        }
        if (op->code != HLO_RESHAPE)
            break;
        at = hlo_operand(h, op, 0);
    }
    return (Source){v, FUSED_SAME, 0};
}

// A select's predicate and the bounds of a clamp may be one element for all.
static bool is_for_all(const Hlo *h, const HloOp *op, ValueId v) {
    return op->code != HLO_REDUCE && hlo_value_type(h, v)->elems == 1 && hlo_value_type(h, op->results)->elems > 1;
}

static Source operand_source(const Hlo *h, const HloOp *op, ValueId v) {
    return is_for_all(h, op, v) ? (Source){v, FUSED_ROWS, 0} : source_of(h, v);
}

bool rows_is_count(const Hlo *h, ValueId v) {
    OpId def = h->values.at[v].def;
    while (def && hlo_at(h, def)->code == HLO_RESHAPE)
        def = h->values.at[hlo_operand(h, hlo_at(h, def), 0)].def;
    if (!def || hlo_at(h, def)->code != HLO_IOTA)
        return false;
    const HloType *t = hlo_value_type(h, hlo_at(h, def)->results);
    return t->rank == 1 && is_row_int(t->dtype) && t->elems < INT32_MAX;
}

// --- building the op -----------------------------------------------------------------------------------

typedef struct Build {
    Rows *r;
    const Group *g;
    uint32_t group;
    RegionId region;
    ValueMap map; // value outside -> value inside
    VEC(Source) inputs;
} Build;

static ValueId inside(const Build *b, ValueId v) { return value_map_get(&b->map, v); }

static void note(Build *b, ValueId from, ValueId to) { value_map_set(b->r->c->scratch, &b->map, from, to); }

static bool is_member(const Build *b, ValueId v) {
    return v < b->r->of.n && b->r->of.at[v] == b->group;
}

static uint32_t add_input(Build *b, Source s) {
    for (uint32_t i = 0; i < b->inputs.n; i++)
        if (b->inputs.at[i].v == s.v && b->inputs.at[i].kind == s.kind)
            return i;
    VEC_PUSH(b->r->c->scratch, &b->inputs, s);
    return b->inputs.n - 1;
}

// The form an operand from outside has in a member: of a reduction its operand is full whatever it gives.
static Form operand_form(const Rows *r, const HloOp *op) {
    return op->code == HLO_REDUCE ? FORM_FULL : form_of(r, op->results);
}

static Source input_source(const Rows *r, const HloOp *op, ValueId v) {
    Source s = operand_source(r->h, op, v);
    if (operand_form(r, op) == FORM_FULL)
        return s;
    bool scalar = hlo_value_type(r->h, s.v)->elems == 1 && s.kind != FUSED_SAME;
    return scalar ? s : (Source){v, FUSED_ROWS, 0};
}

static bool needs_input(const Build *b, const HloOp *op, uint32_t k) {
    ValueId v = hlo_operand(b->r->h, op, k);
    return !is_member(b, v) && !splat_value(b->r->h, v) && !(op->code == HLO_REDUCE && k == 1);
}

static TypeId inner_type(Hlo *h, int dtype, bool full, int64_t c) {
    return hlo_type_tensor(h, dtype, full, &c);
}

static ValueId push_in(Build *b, OpId id) {
    hlo_region_push(b->r->h, b->region, id);
    return hlo_at(b->r->h, id)->results;
}

static ValueId constant_in(Build *b, const HloAttr *splat, bool full, LocId loc) {
    Hlo *h = b->r->h;
    HloAttr value = *splat;
    value.type = inner_type(h, hlo_type(h, splat->type)->dtype, full, b->g->c);
    OpId id = hlo_op(h, HLO_CONSTANT, loc, 0, NULL, 1, &value.type);
    *hlo_attr_slot(h, id, AK_VALUE) = value;
    return push_in(b, id);
}

static ValueId widen_in(Build *b, ValueId v, LocId loc) { // one a row -> a row
    Hlo *h = b->r->h;
    TypeId t = inner_type(h, hlo_value_type(h, v)->dtype, true, b->g->c);
    OpId id = hlo_op(h, HLO_BROADCAST_IN_DIM, loc, 1, &v, 1, &t);
    *hlo_attr_slot(h, id, AK_BROADCAST_DIMENSIONS) = (HloAttr){.kind = HA_INTS};
    return push_in(b, id);
}

static ValueId operand_in(Build *b, const HloOp *op, uint32_t k) {
    Hlo *h = b->r->h;
    ValueId v = hlo_operand(h, op, k);
    bool full = operand_form(b->r, op) == FORM_FULL;
    const HloAttr *splat = is_member(b, v) ? NULL : splat_value(h, v);
    if (splat)
        return constant_in(b, splat, full, op->loc);
    if (is_member(b, v))
        return inside(b, v);
    uint32_t i = add_input(b, input_source(b->r, op, v));
    ValueId arg = h->regions.at[b->region].args + i;
    return full && hlo_value_type(h, arg)->rank == 0 ? widen_in(b, arg, op->loc) : arg;
}

static void reduce_in(Build *b, const HloOp *op) {
    Hlo *h = b->r->h;
    int dtype = hlo_value_type(h, op->results)->dtype;
    TypeId scalar = inner_type(h, dtype, false, 0);
    ValueId operands[2] = {operand_in(b, op, 0),
                           constant_in(b, splat_value(h, hlo_operand(h, op, 1)), false, op->loc)};
    OpId made = hlo_op(h, HLO_REDUCE, op->loc, 2, operands, 1, &scalar);
    int64_t zero = 0;
    *hlo_attr_slot(h, made, AK_DIMENSIONS) = (HloAttr){.kind = HA_INTS, .n = 1, .ints = hlo_ints_dup(h, &zero, 1)};
    reduce_region_like(h, op, made, scalar);
    note(b, op->results, push_in(b, made));
}

static void copy_member(Build *b, OpId id) {
    Hlo *h = b->r->h;
    HloOp op = *hlo_at(h, id);
    if (op.code == HLO_RESHAPE) {
        note(b, op.results, inside(b, hlo_operand(h, &op, 0)));
        return;
    }
    if (op.code == HLO_BROADCAST_IN_DIM) {
        note(b, op.results, widen_in(b, inside(b, hlo_operand(h, &op, 0)), op.loc));
        return;
    }
    if (op.code == HLO_REDUCE) {
        reduce_in(b, &op);
        return;
    }
    ValueId operands[3];
    for (uint32_t k = 0; k < op.noperands; k++)
        operands[k] = operand_in(b, &op, k);
    TypeId t = inner_type(h, hlo_value_type(h, op.results)->dtype, form_of(b->r, op.results) == FORM_FULL, b->g->c);
    OpId made = hlo_op(h, op.code, op.loc, op.noperands, operands, 1, &t);
    hlo_at(h, made)->attrs = op.attrs;
    note(b, op.results, push_in(b, made));
}

// Members whose value somebody outside the group reads.
static void find_outputs(Rows *r, const Group *g, Values *outputs) {
    for (uint32_t i = 0; i < g->ops.n; i++) {
        ValueId v = hlo_at(r->h, g->ops.at[i])->results;
        uint32_t within = 0;
        for (uint32_t j = i + 1; j < g->ops.n; j++) {
            const HloOp *user = hlo_at(r->h, g->ops.at[j]);
            for (uint32_t k = 0; k < user->noperands; k++)
                within += hlo_operand(r->h, user, k) == v;
        }
        if (v < r->nuses && r->uses[v] > within)
            VEC_PUSH(r->c->scratch, outputs, v);
    }
}

// An elementwise group that one product without batches feeds: it goes on with the product's tiles (epilogue.c), whatever its
// size.
static bool follows_product(const Rows *r, const Group *g) {
    const Hlo *h = r->h;
    bool follows = false;
    for (uint32_t i = 0; i < g->ops.n; i++) {
        const HloOp *op = hlo_at(h, g->ops.at[i]);
        if (form_of(r, op->results) != FORM_FULL)
            return false;
        for (uint32_t k = 0; k < op->noperands; k++) {
            OpId def = h->values.at[hlo_operand(h, op, k)].def;
            while (def && hlo_at(h, def)->code == HLO_RESHAPE)
                def = h->values.at[hlo_operand(h, hlo_at(h, def), 0)].def;
            follows = follows || (def && dot_on_tensor_engine(h, hlo_at(h, def)) && hlo_value_type(h, hlo_at(h, def)->results)->elems == g->n &&
                                  !hlo_attr(hlo_at(h, def), AK_LHS_BATCHING_DIMENSIONS)->n);
        }
    }
    return follows;
}

// Bytes that a program of integers moves, and its instructions.
typedef struct Effort {
    double bytes, bits, sums; // bits: those of the vector engine, sums: of gpsimd
    double either;            // … of both: parts of a word put together
} Effort;

static bool joins_parts(const Hlo *h, const HloOp *op) { // (x << a) | (x >> b), which share no bit
    if (op->code != HLO_OR)
        return false;
    OpId d[2] = {h->values.at[hlo_operand(h, op, 0)].def, h->values.at[hlo_operand(h, op, 1)].def};
    return d[0] && d[1] && (hlo_at(h, d[0])->code == HLO_SHIFT_LEFT || hlo_at(h, d[1])->code == HLO_SHIFT_LEFT);
}

static Effort effort_of(const Rows *r, uint32_t group, const Values *outputs) {
    const Group *g = &r->groups.at[group];
    Effort e = {.bytes = 4.0 * (double)g->n * outputs->n};
    for (uint32_t i = 0; i < g->ops.n; i++) {
        const HloOp *op = hlo_at(r->h, g->ops.at[i]);
        bool sum = op->code == HLO_ADD || op->code == HLO_SUBTRACT || op->code == HLO_MULTIPLY;
        *(joins_parts(r->h, op) ? &e.either : sum ? &e.sums : &e.bits) += op->code != HLO_RESHAPE;
        for (uint32_t k = 0; k < op->noperands; k++) {
            ValueId v = hlo_operand(r->h, op, k);
            bool inside = v < r->of.n && r->of.at[v] == group;
            Source s = operand_source(r->h, op, v);
            e.bytes += inside || splat_value(r->h, v) || rows_is_count(r->h, v) ? 0 : 4.0 * (double)hlo_value_type(r->h, s.v)->elems;
        }
    }
    return e;
}

// A kernel that is there anyway has these operations as steps of its own. Vector engine and gpsimd work side by side, where the chip
// has a port for each.
static bool ints_worth_it(const Rows *r, uint32_t group, const Values *outputs) {
    const ChipFile *c = r->c->chip;
    const Group *g = &r->groups.at[group];
    if (!c || g->n < INTS_MIN_ELEMS)
        return false;
    Effort e = effort_of(r, group, outputs);
    double kernel = (e.bits + e.sums + e.either) / c->gpsimd_ghz, vector = (e.bits + e.either) / c->vector_ghz, pool = e.sums / c->gpsimd_ghz;
    double both = c->vector_gpsimd_port ? vector + pool : fmax(fmax(e.bits / c->vector_ghz, pool), (vector + pool) / 2);
    double moves = e.bytes / c->hbm_bw_core * 2, work = both * (double)g->n / PARTITIONS;
    return fmax(work, moves) < kernel * (double)g->n / PARTITIONS;
}

static bool is_worth_it(const Rows *r, const Group *g) {
    if (g->n < ROWS_MIN_ELEMS && !follows_product(r, g))
        return false;
    for (uint32_t i = 0; i < g->ops.n; i++) {
        uint16_t code = hlo_at(r->h, g->ops.at[i])->code;
        if (code != HLO_RESHAPE && code != HLO_BROADCAST_IN_DIM)
            return true;
    }
    return false;
}

static void make_region(Build *b, OpId made) {
    Hlo *h = b->r->h;
    TypeId *types = ARENA_NEWN(b->r->c->scratch, TypeId, b->inputs.n + 1);
    for (uint32_t i = 0; i < b->inputs.n; i++)
        types[i] = inner_type(h, hlo_value_type(h, b->inputs.at[i].v)->dtype,
                              b->inputs.at[i].kind != FUSED_ROWS, b->g->c);
    b->region = hlo_op_add_region(h, made, b->inputs.n, types);
    for (uint32_t i = 0; i < b->g->ops.n; i++)
        copy_member(b, b->g->ops.at[i]);
}

static bool is_movement(const Build *b, ValueId v) { // of another member
    OpId def = b->r->h->values.at[v].def;
    const HloOp *op = hlo_at(b->r->h, def);
    return (op->code == HLO_RESHAPE || op->code == HLO_BROADCAST_IN_DIM) && is_member(b, hlo_operand(b->r->h, op, 0));
}

static void add_once(Build *b, Values *list, ValueId v) {
    for (uint32_t i = 0; i < list->n; i++)
        if (list->at[i] == v)
            return;
    VEC_PUSH(b->r->c->scratch, list, v);
}

// Outputs that only move another member's elements are made outside, from that member: numbers per row reach HBM once a
// row, and readers take them from there.
static void bring_work(Build *b, Values *outputs, Values *moved) {
    Values work = {0};
    for (uint32_t i = 0; i < outputs->n; i++) {
        ValueId v = outputs->at[i];
        if (is_movement(b, v))
            add_once(b, moved, v);
        while (is_movement(b, v))
            v = hlo_operand(b->r->h, hlo_at(b->r->h, b->r->h->values.at[v].def), 0);
        add_once(b, &work, v);
    }
    *outputs = work;
}

static ValueId move_outside(Rows *r, ValueId v, OpList *out) {
    Hlo *h = r->h;
    if (r->w.repl.at[v] != v)
        return r->w.repl.at[v];
    HloOp op = *hlo_at(h, h->values.at[v].def);
    ValueId from = move_outside(r, hlo_operand(h, &op, 0), out);
    OpId made = hlo_op(h, op.code, op.loc, 1, &from, 1, &h->values.at[v].type);
    hlo_at(h, made)->attrs = op.attrs;
    walk_grow(&r->w);
    walk_replace(&r->w, v, hlo_at(h, made)->results);
    VEC_PUSH(r->c->scratch, out, made);
    return hlo_at(h, made)->results;
}

// Where rows mean nothing: columns as the tensor has them, so that programs on the same tensors agree.
static int64_t last_dimension(const HloType *t) {
    for (int i = t->rank; i-- > 0;)
        if (t->dims[i] > 1)
            return t->dims[i];
    return 1;
}

static void close_group(Rows *r, uint32_t group, OpList *out) {
    Hlo *h = r->h;
    r->groups.at[group].open = false;
    Group *g = &r->groups.at[group];
    Values outputs = {0};
    find_outputs(r, g, &outputs);
    if (!outputs.n || !(r->ints ? ints_worth_it(r, group, &outputs) : is_worth_it(r, g))) {
        for (uint32_t i = 0; i < g->ops.n; i++)
            VEC_PUSH(r->c->scratch, out, g->ops.at[i]);
        return;
    }
    if (!g->c)
        g->c = g->period ? g->period : last_dimension(hlo_value_type(h, outputs.at[0]));
    Build b = {.r = r, .g = g, .group = group};
    Values moved = {0};
    bring_work(&b, &outputs, &moved);
    for (uint32_t i = 0; i < g->ops.n; i++) {
        const HloOp *op = hlo_at(h, g->ops.at[i]);
        for (uint32_t k = 0; k < op->noperands; k++)
            if (needs_input(&b, op, k))
                add_input(&b, input_source(r, op, hlo_operand(h, op, k)));
    }
    TypeId *types = ARENA_NEWN(r->c->scratch, TypeId, outputs.n + 1);
    ValueId *operands = ARENA_NEWN(r->c->scratch, ValueId, b.inputs.n + 1);
    int64_t *kinds = ARENA_NEWN(h->arena, int64_t, b.inputs.n + 1);
    for (uint32_t i = 0; i < outputs.n; i++)
        types[i] = h->values.at[outputs.at[i]].type;
    for (uint32_t i = 0; i < b.inputs.n; i++) {
        operands[i] = b.inputs.at[i].v;
        kinds[i] = b.inputs.at[i].kind;
    }
    LocId loc = hlo_at(h, g->ops.at[g->ops.n - 1])->loc;
    OpId made = hlo_op(h, HLO_ROWS, loc, b.inputs.n, operands, outputs.n, types);
    *hlo_attr_slot(h, made, AK_BROADCAST_DIMENSIONS) = (HloAttr){.kind = HA_INTS, .n = b.inputs.n, .ints = kinds};
    *hlo_attr_slot(h, made, AK_DIMENSION) = (HloAttr){.kind = HA_INT, .i = g->c};
    make_region(&b, made);
    ValueId *yield = ARENA_NEWN(r->c->scratch, ValueId, outputs.n + 1);
    for (uint32_t i = 0; i < outputs.n; i++)
        yield[i] = inside(&b, outputs.at[i]);
    hlo_region_push(h, b.region, hlo_op(h, HLO_RETURN, loc, outputs.n, yield, 0, NULL));
    walk_grow(&r->w);
    for (uint32_t i = 0; i < outputs.n; i++)
        walk_replace(&r->w, outputs.at[i], hlo_at(h, made)->results + i);
    VEC_PUSH(r->c->scratch, out, made);
    for (uint32_t i = 0; i < moved.n; i++)
        move_outside(r, moved.at[i], out);
}

// --- grouping ------------------------------------------------------------------------------------------

static void close_users(Rows *r, const HloOp *op, uint32_t except, OpList *out) {
    for (uint32_t k = 0; k < op->noperands; k++) {
        uint32_t g = group_of(r, hlo_operand(r->h, op, k));
        if (g && g != except)
            close_group(r, g, out);
    }
    for (uint32_t i = 0; i < op->nregions; i++) { // values that its regions read from outside
        const HloRegion *region = hlo_op_region(r->h, op, i);
        for (uint32_t j = 0; j < region->ops.n; j++)
            close_users(r, hlo_at(r->h, region->ops.at[j]), except, out);
    }
}

static bool columns_agree(const Group *g) { return !g->c || !g->period || g->period % g->c == 0; }

// A flat group whose values are each broadcast along c columns: they become one a row.
static bool become_rows(Rows *r, uint32_t group, int64_t n, int64_t c) {
    Group *g = &r->groups.at[group];
    if (g->c || g->period || g->n < 2 || g->n * c != n)
        return false;
    g->n = n;
    g->c = c;
    for (uint32_t i = 0; i < g->ops.n; i++)
        r->form.at[hlo_at(r->h, g->ops.at[i])->results] = FORM_ROW;
    return true;
}

// Members of `from` into `into`; both work on the same rows then. Open groups know nothing of each other.
static bool merge(Rows *r, uint32_t into, uint32_t from) {
    Group *a = &r->groups.at[into], *b = &r->groups.at[from];
    if (a->n != b->n || (a->c && b->c && a->c != b->c) || a->ops.n + b->ops.n >= GROUP_OPS_MAX ||
        a->inputs + b->inputs > GROUP_INPUTS_MAX)
        return false;
    Group both = {.n = a->n, .c = a->c ? a->c : b->c,
                  .period = a->period && b->period ? num_gcd(a->period, b->period)
                                                   : a->period + b->period};
    if (!columns_agree(&both))
        return false;
    a->c = both.c;
    a->period = both.period;
    a->inputs += b->inputs;
    for (uint32_t i = 0; i < b->ops.n; i++) {
        VEC_PUSH(r->c->scratch, &a->ops, b->ops.at[i]);
        r->of.at[hlo_at(r->h, b->ops.at[i])->results] = into;
    }
    b->open = false;
    return true;
}

// What group g would be with the op's operands from outside; false when they do not fit.
static bool admit(const Rows *r, uint32_t group, const HloOp *op, Form form, Group *out) {
    *out = r->groups.at[group];
    if (out->ops.n >= GROUP_OPS_MAX)
        return false;
    for (uint32_t k = 0; k < op->noperands; k++) {
        ValueId v = hlo_operand(r->h, op, k);
        if (group_of(r, v) == group || splat_value(r->h, v))
            continue;
        out->inputs++;
        if (form == FORM_ROW)
            continue;
        Source s = operand_source(r->h, op, v);
        int64_t elems = hlo_value_type(r->h, s.v)->elems;
        if (s.kind == FUSED_ROWS && elems > 1) {
            if (out->c && out->c != out->n / elems)
                return false;
            out->c = out->n / elems;
        }
        if (s.kind == FUSED_BLOCKS) {
            if (out->c && out->c != s.columns)
                return false;
            out->c = s.columns;
        }
        if (s.kind == FUSED_COLUMNS)
            out->period = out->period ? num_gcd(out->period, elems) : elems;
    }
    return out->inputs <= GROUP_INPUTS_MAX && columns_agree(out);
}

static void set_member(Rows *r, uint32_t group, OpId id, Form form) {
    VEC_PUSH(r->c->scratch, &r->groups.at[group].ops, id);
    ValueId v = hlo_at(r->h, id)->results;
    if (v >= r->of.n) {
        uint32_t n = r->h->values.n;
        VEC_RESERVE(r->c->scratch, &r->of, n);
        VEC_RESERVE(r->c->scratch, &r->form, n);
        memset(r->of.at + r->of.n, 0, (n - r->of.n) * sizeof *r->of.at);
        memset(r->form.at + r->form.n, 0, n - r->form.n);
        r->of.n = r->form.n = n;
    }
    r->of.at[v] = group;
    r->form.at[v] = (uint8_t)form;
}

static uint32_t new_group(Rows *r, int64_t n, int64_t c) {
    VEC_PUSH(r->c->scratch, &r->groups, ((Group){.open = true, .n = n, .c = c}));
    return r->groups.n - 1;
}

// The group an elementwise op joins: those of its operands, joined as far as they fit.
static uint32_t group_for(Rows *r, const HloOp *op) {
    uint32_t target = 0;
    ValueId at = 0; // an operand that is in it
    for (uint32_t k = 0; k < op->noperands; k++) {
        ValueId v = hlo_operand(r->h, op, k);
        uint32_t g = is_for_all(r->h, op, v) ? 0 : group_of(r, v);
        if (!g || g == target)
            continue;
        if (!target) {
            target = g;
            at = v;
            continue;
        }
        if (form_of(r, v) != form_of(r, at)) { // the one that is flat may serve rows
            uint32_t flat = form_of(r, v) == FORM_FULL ? g : target, rows = flat == g ? target : g;
            if (!become_rows(r, flat, r->groups.at[rows].n, r->groups.at[rows].c))
                continue;
        }
        uint32_t newer = g > target ? g : target, older = g > target ? target : g;
        if (merge(r, newer, older))
            target = newer;
    }
    return target;
}

// What the op is in a group that makes one of its operands.
static Form form_in(const Rows *r, const HloOp *op, uint32_t group) {
    for (uint32_t k = 0; group && k < op->noperands; k++)
        if (group_of(r, hlo_operand(r->h, op, k)) == group)
            return form_of(r, hlo_operand(r->h, op, k));
    return FORM_FULL;
}

static bool join_elementwise(Rows *r, OpId id, OpList *out) {
    HloOp op = *hlo_at(r->h, id);
    if (!may_hold(r, &op))
        return false;
    uint32_t target = group_for(r, &op);
    Form form = form_in(r, &op, target);
    Group next;
    if (target && !admit(r, target, &op, form, &next))
        target = 0;
    close_users(r, &op, target, out);
    walk_operands(&r->w, id); // closing gave some operands new names
    op = *hlo_at(r->h, id);
    if (!target) {
        form = FORM_FULL;
        target = new_group(r, hlo_value_type(r->h, op.results)->elems, 0);
    }
    if (!admit(r, target, &op, form, &next)) // an operand's repetition does not fit another's
        return false;
    r->groups.at[target].c = next.c;
    r->groups.at[target].period = next.period;
    r->groups.at[target].inputs = next.inputs;
    set_member(r, target, id, form);
    return true;
}

static bool join_reduce(Rows *r, OpId id, OpList *out) {
    HloOp op = *hlo_at(r->h, id);
    int64_t c = r->ints ? 0 : reduced_columns(r->h, &op, NULL);
    if (!c)
        return false;
    ValueId v = hlo_operand(r->h, &op, 0);
    uint32_t g = group_of(r, v);
    if (g) {
        Group next = r->groups.at[g];
        bool fits = form_of(r, v) == FORM_FULL && (!next.c || next.c == c) && next.ops.n < GROUP_OPS_MAX;
        next.c = c;
        if (!fits || !columns_agree(&next)) {
            close_group(r, g, out);
            walk_operands(&r->w, id);
            g = 0;
        }
    }
    if (!g) {
        v = hlo_operand(r->h, hlo_at(r->h, id), 0);
        g = new_group(r, hlo_value_type(r->h, v)->elems, c);
        HloOp now = *hlo_at(r->h, id);
        Group next;
        if (!admit(r, g, &now, FORM_FULL, &next))
            return false;
        r->groups.at[g].period = next.period;
        r->groups.at[g].inputs = next.inputs;
    }
    r->groups.at[g].c = c;
    set_member(r, g, id, FORM_ROW);
    return true;
}

static bool join_movement(Rows *r, OpId id) {
    HloOp op = *hlo_at(r->h, id);
    if (op.code != HLO_RESHAPE && op.code != HLO_BROADCAST_IN_DIM)
        return false;
    ValueId v = hlo_operand(r->h, &op, 0);
    uint32_t g = group_of(r, v);
    if (!g || r->groups.at[g].ops.n >= GROUP_OPS_MAX)
        return false;
    if (op.code == HLO_RESHAPE) {
        set_member(r, g, id, form_of(r, v));
        return true;
    }
    int64_t from = hlo_value_type(r->h, v)->elems, to = hlo_value_type(r->h, op.results)->elems;
    if (r->ints || repeats(r->h, &op) != FUSED_ROWS || from < 2)
        return false;
    if (form_of(r, v) == FORM_FULL && !become_rows(r, g, to, to / from))
        return false;
    if (r->groups.at[g].n != to || r->groups.at[g].c != to / from)
        return false;
    set_member(r, g, id, FORM_FULL);
    return true;
}

static void rows_region(Rows *r, RegionId region) {
    Hlo *h = r->h;
    OpList out = {0};
    for (uint32_t i = 0; i < h->regions.at[region].ops.n; i++) {
        OpId id = h->regions.at[region].ops.at[i];
        walk_operands(&r->w, id);
        if (join_movement(r, id) || join_reduce(r, id, &out) || join_elementwise(r, id, &out))
            continue;
        HloOp op = *hlo_at(h, id);
        close_users(r, &op, 0, &out);
        walk_operands(&r->w, id);
        for (uint32_t k = 0; k < op.nregions; k++)
            if (hlo_row(&op)->cls == HC_CTRL)
                rows_region(r, h->op_regions.at[op.regions + k]);
            else
                walk_region(&r->w, h->op_regions.at[op.regions + k]);
        VEC_PUSH(r->c->scratch, &out, id);
    }
    walk_set_ops(h, region, &out);
}

static void join(Compile *c, bool ints) {
    Rows r = {.c = c, .h = c->hlo, .ints = ints};
    walk_init(&r.w, c);
    r.nuses = c->hlo->values.n;
    r.uses = ARENA_NEWN(c->scratch, uint32_t, r.nuses);
    VEC_PUSH(c->scratch, &r.groups, (Group){0});
    walk_count_uses(c->hlo, hlo_main(c->hlo)->body, r.uses);
    rows_region(&r, hlo_main(c->hlo)->body);
    pass_dce(c);
}

void pass_row_programs(Compile *c) { join(c, false); }

void pass_row_integers(Compile *c) { join(c, true); }

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
        why_refuse_type(why, now.id == WHY_EXACT && ints_may_hold(h, op) ? WHY_INTS_SLOW : (WhyId)now.id, now.dtype);
}

void rows_refused(const Hlo *h, const HloOp *op, Why *why) {
    Why now = {0};
    if (op->code == HLO_REDUCE) {
        reduced_columns(h, op, &now);
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
