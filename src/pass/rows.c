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
// Grouping is that of group.h. Groups too small to be worth a transfer are left to fuse.c.
#include "pass/rows.h"

#include <math.h>
#include <string.h>

#include "base/num.h"
#include "mach/cost.h"
#include "hlo/dot.h"
#include "pass/group.h"
#include "pass/rows_make.h"

#define GROUP_INPUTS_MAX 20
#define INTS_MIN_ELEMS 16384
#define PARTITIONS 128
#define EXCHANGED_MOST 256 // columns of rows whose halves change places
#define SCORES_MOST 256 // contracted elements of a product that may be one step with the rows it makes

typedef enum Form { FORM_NONE, FORM_FULL, FORM_ROW } Form;

typedef struct Rows {
    Grouper g; // first
    Compile *c;
    Hlo *h;
    bool ints;         // programs of integers: bits and exact arithmetic, nothing else
    VEC(uint8_t) form; // value -> Form in its group
    Users u;           // as it was before
    bool *again;       // per value that was there before: its readers make it themselves
} Rows;

static uint32_t group_of(const Rows *r, ValueId v) { return group_open(&r->g, v); }

static Form form_of(const Rows *r, ValueId v) { return (Form)r->form.at[v]; }

static bool may_hold(const Rows *r, const HloOp *op) {
    return r->ints ? rows_may_hold_ints(r->h, op) : rows_may_hold(r->h, op, NULL);
}

// --- building the op -----------------------------------------------------------------------------------

typedef struct Build {
    Rows *r;
    const Group *g;
    uint32_t group;
} Build;

static bool is_member(const Build *b, ValueId v) { return group_member(&b->r->g, v) == b->group; }

// The form an operand from outside has in a member: of a reduction its operand is full whatever it gives.
static Form operand_form(const Rows *r, const HloOp *op) {
    return op->code == HLO_REDUCE ? FORM_FULL : form_of(r, op->results);
}

static Source input_source(const Rows *r, const HloOp *op, ValueId v) {
    Source s = rows_source(r->h, op, v);
    if (operand_form(r, op) == FORM_FULL)
        return s;
    bool scalar = hlo_value_type(r->h, s.v)->elems == 1 && s.kind != FUSED_SAME;
    return scalar ? s : (Source){v, FUSED_ROWS, 0};
}

static bool is_start(const HloOp *op, uint32_t k) { return op->code == HLO_REDUCE && k == 1; } // which is a number

static bool needs_input(const Build *b, const HloOp *op, uint32_t k) {
    ValueId v = hlo_operand(b->r->h, op, k);
    return !is_member(b, v) && !splat_value(b->r->h, v) && !is_start(op, k);
}

static uint32_t add_input(const Build *b, RowsMake *m, const HloOp *op, ValueId v) {
    Source s = input_source(b->r, op, v);
    return rows_make_operand(m, s.v, s.kind);
}

static TypeId inner_type(Hlo *h, int dtype, bool full, int64_t c) {
    return hlo_type_tensor(h, dtype, full, &c);
}

static ValueId widened(Build *b, ValueId v) { // one a row -> a row
    Hlo *h = b->r->h;
    return walk_broadcast(&b->r->g.w, v, NULL, 0, inner_type(h, hlo_value_type(h, v)->dtype, true, b->g->c));
}

static ValueId operand_in(Build *b, RowsMake *m, const HloOp *op, uint32_t k) {
    Hlo *h = b->r->h;
    ValueId v = hlo_operand(h, op, k);
    bool full = operand_form(b->r, op) == FORM_FULL && !is_start(op, k);
    const HloAttr *splat = is_member(b, v) ? NULL : splat_value(h, v);
    if (splat)
        return walk_push(&b->r->g.w, hlo_op_splat(h, op->loc, inner_type(h, hlo_type(h, splat->type)->dtype, full, b->g->c), splat->data));
    if (is_member(b, v))
        return rows_make_get(m, v);
    ValueId arg = rows_make_arg(m, add_input(b, m, op, v));
    return full && hlo_value_type(h, arg)->rank == 0 ? widened(b, arg) : arg;
}

static ValueId member_in(void *of, RowsMake *m, const HloOp *op) {
    Build *b = of;
    Hlo *h = b->r->h;
    Walk *w = &b->r->g.w;
    int dtype = hlo_value_type(h, op->results)->dtype;
    ValueId in[3];
    if (op->code == HLO_RESHAPE || op->code == HLO_BROADCAST_IN_DIM) {
        ValueId v = rows_make_get(m, hlo_operand(h, op, 0));
        return op->code == HLO_RESHAPE ? v : widened(b, v);
    }
    assert(op->noperands <= 3 && op->nresults == 1);
    for (uint32_t k = 0; k < op->noperands; k++)
        in[k] = operand_in(b, m, op, k);
    if (op->code == HLO_REDUCE)
        return walk_reduce(w, reduce_body(h, op), in[0], in[1], (int64_t[]){0}, 1, inner_type(h, dtype, false, 0));
    return walk_push(w, hlo_op_like(h, op, in, inner_type(h, dtype, form_of(b->r, op->results) == FORM_FULL, b->g->c)));
}

// The product without batches that feeds an elementwise group: that goes on with the product's tiles (epilogue.c), whatever its size. 0: none does.
static OpId follows_product(const Rows *r, const Group *g) {
    const Hlo *h = r->h;
    OpId dot = 0;
    for (uint32_t i = 0; i < g->ops.n; i++) {
        const HloOp *op = hlo_at(h, g->ops.at[i]);
        if (form_of(r, op->results) != FORM_FULL)
            return 0;
        for (uint32_t k = 0; k < op->noperands; k++) {
            OpId def = h->values.at[before_reshapes(h, hlo_operand(h, op, k))].def;
            if (def && dot_on_tensor_engine(h, hlo_at(h, def)) && hlo_value_type(h, hlo_at(h, def)->results)->elems == g->n &&
                !hlo_attr(hlo_at(h, def), AK_LHS_BATCHING_DIMENSIONS)->n)
                dot = def;
        }
    }
    return dot;
}

// Bytes that a program of integers moves, and its instructions.
typedef struct Effort {
    double bytes, bits, sums; // bits: those of the vector engine, sums: of gpsimd
    double either;            // … of both: parts of a word put together
    double upper;             // … of the vector or the scalar engine: shifts down by 16 and more
} Effort;

static bool joins_parts(const Hlo *h, const HloOp *op) { // (x << a) | (x >> b), which share no bit
    if (op->code != HLO_OR)
        return false;
    OpId d[2] = {h->values.at[hlo_operand(h, op, 0)].def, h->values.at[hlo_operand(h, op, 1)].def};
    return d[0] && d[1] && (hlo_at(h, d[0])->code == HLO_SHIFT_LEFT || hlo_at(h, d[1])->code == HLO_SHIFT_LEFT);
}

static bool takes_upper(const Hlo *h, const HloOp *op) {
    const HloAttr *by = op->code == HLO_SHIFT_RIGHT_LOGICAL ? splat_value(h, hlo_operand(h, op, 1)) : NULL;
    return by && dtype_to_i64(hlo_type(h, by->type)->dtype, by->data) >= 16;
}

static Effort effort_of(const Rows *r, uint32_t group, const Values *outputs) {
    const Group *g = &r->g.groups.at[group];
    Effort e = {0};
    for (uint32_t i = 0; i < outputs->n; i++)
        e.bytes += (double)g->n * (double)dtype_bytes(hlo_value_type(r->h, outputs->at[i])->dtype);
    for (uint32_t i = 0; i < g->ops.n; i++) {
        const HloOp *op = hlo_at(r->h, g->ops.at[i]);
        bool sum = op->code == HLO_ADD || op->code == HLO_SUBTRACT || op->code == HLO_MULTIPLY;
        *(joins_parts(r->h, op) ? &e.either : sum ? &e.sums : takes_upper(r->h, op) ? &e.upper : &e.bits) += op->code != HLO_RESHAPE;
        for (uint32_t k = 0; k < op->noperands; k++) {
            ValueId v = hlo_operand(r->h, op, k);
            bool inside = group_member(&r->g, v) == group;
            Source s = rows_source(r->h, op, v);
            e.bytes += inside || splat_value(r->h, v) || rows_is_count(r->h, v) ? 0 : 4.0 * (double)hlo_value_type(r->h, s.v)->elems;
        }
    }
    return e;
}

// A kernel that is there anyway has these operations as steps of its own. Vector engine and gpsimd work side by side, where the chip
// has a port for each.
static bool ints_worth_it(const Rows *r, uint32_t group, const Values *outputs) {
    const ChipFile *c = r->c->chip;
    const Group *g = &r->g.groups.at[group];
    if (!c || g->n < INTS_MIN_ELEMS)
        return false;
    Effort e = effort_of(r, group, outputs);
    if (c->generation < 3)
        e.bits += e.upper, e.upper = 0;
    double kernel = cost_pass(c, ENG_GPSIMD, e.bits + e.sums + e.either + e.upper), pool = cost_pass(c, ENG_GPSIMD, e.sums);
    double vector = cost_pass(c, ENG_VECTOR, e.bits + e.either), scalar = cost_pass(c, ENG_SCALAR, e.upper);
    double both = c->vector_gpsimd_port ? vector + pool + scalar : fmax(fmax(cost_pass(c, ENG_VECTOR, e.bits), pool), fmax(scalar, (vector + pool) / 2));
    double moves = cost_hbm(c, e.bytes) * 2, work = both * (double)g->n / PARTITIONS;
    return fmax(work, moves) < kernel * (double)g->n / PARTITIONS;
}

static bool is_worth_it(const Rows *r, const Group *g) {
    if (g->n < ROWS_MIN_ELEMS && !follows_product(r, g))
        return false;
    for (uint32_t i = 0; i < g->ops.n; i++) {
        uint16_t code = hlo_at(r->h, g->ops.at[i])->code;
        if (code != HLO_RESHAPE && code != HLO_BROADCAST_IN_DIM && code != HLO_EXCHANGE)
            return true;
    }
    return false;
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

static ValueId move_outside(Rows *r, ValueId v) {
    Hlo *h = r->h;
    if (r->g.w.repl.at[v] != v)
        return r->g.w.repl.at[v];
    HloOp op = *hlo_at(h, h->values.at[v].def);
    ValueId from = move_outside(r, hlo_operand(h, &op, 0));
    ValueId made = walk_push(&r->g.w, hlo_op_like(h, &op, &from, h->values.at[v].type));
    walk_replace(&r->g.w, v, made);
    return made;
}

// Where rows mean nothing: columns as the tensor has them, so that programs on the same tensors agree.
static int64_t last_dimension(const HloType *t) {
    for (int i = t->rank; i-- > 0;)
        if (t->dims[i] > 1)
            return t->dims[i];
    return 1;
}

// --- widening ------------------------------------------------------------------------------------------
//
// A wider copy of what a group is given holds nothing more, and takes more memory and more time to read. Where all who read it elsewhere are elementwise,
// each widens for itself: the norm of a gradient and its update both read it as narrow as it is, and nobody writes it wide. Programs over the same
// rows are left to scores.c.

static bool is_widening(const Hlo *h, const HloOp *op) {
    return op->code == HLO_CONVERT &&
           dtype_bytes(hlo_value_type(h, op->results)->dtype) > dtype_bytes(hlo_value_type(h, hlo_operand(h, op, 0))->dtype);
}

static bool may_be_made_again(const Rows *r, uint32_t group, ValueId v) {
    const HloOp *op = hlo_at(r->h, r->h->values.at[v].def);
    if (r->ints || r->g.groups.at[group].c == last_dimension(hlo_value_type(r->h, v)) || v >= r->g.w.nuses || !is_widening(r->h, op) || group_member(&r->g, hlo_operand(r->h, op, 0)) == group)
        return false;
    for (Reader by = readers_of(&r->u, v); reader_next(&by);) {
        bool inside = by.op->nresults && group_member(&r->g, by.op->results) == group;
        if (!inside && (r->u.region[by.id] != r->u.region[r->h->values.at[v].def] || !rows_may_hold(r->h, by.op, NULL)))
            return false;
    }
    return true;
}

static bool is_read_inside(const Rows *r, const Group *g, ValueId v) {
    for (uint32_t i = 0; i < g->ops.n; i++)
        for (uint32_t k = 0; k < hlo_at(r->h, g->ops.at[i])->noperands; k++)
            if (hlo_operand(r->h, hlo_at(r->h, g->ops.at[i]), k) == v)
                return true;
    return false;
}

// Where it makes other things, which stay.
static void leave_to_readers(Rows *r, uint32_t group, Values *outputs) {
    Group *g = &r->g.groups.at[group];
    Values kept = {0};
    for (uint32_t i = 0; i < outputs->n; i++)
        if (!may_be_made_again(r, group, outputs->at[i]))
            VEC_PUSH(r->c->scratch, &kept, outputs->at[i]);
    if (!kept.n || kept.n == outputs->n)
        return;
    for (uint32_t i = 0, k = 0; i < outputs->n; i++)
        if (k < kept.n && kept.at[k] == outputs->at[i])
            k++;
        else
            r->again[outputs->at[i]] = true;
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->ops.n; i++) {
        ValueId v = hlo_at(r->h, g->ops.at[i])->results;
        if (v >= r->g.w.nuses || !r->again[v] || is_read_inside(r, g, v))
            g->ops.at[n++] = g->ops.at[i];
    }
    g->ops.n = n;
    *outputs = kept;
}

// --- halves that change places ---------------------------------------------------------------------------
//
// concatenate(upper half of x, lower half of x), along rows (halves.c): a member that costs nothing, because an engine reads a row in any order. The
// slices are not made then.

static bool is_exchange(const Rows *r, const HloOp *op) {
    const Hlo *h = r->h;
    const HloOp *a = NULL, *b = NULL;
    if (op->code == HLO_CONCATENATE && op->noperands == 2 && !r->ints) {
        a = hlo_def_as(h, hlo_operand(h, op, 0), HLO_SLICE);
        b = hlo_def_as(h, hlo_operand(h, op, 1), HLO_SLICE);
    }
    if (!a || !b || hlo_operand(h, a, 0) != hlo_operand(h, b, 0) || h->values.at[hlo_operand(h, a, 0)].type != h->values.at[op->results].type)
        return false;
    const HloType *t = hlo_value_type(h, op->results);
    int64_t columns = t->dims[t->rank - 1];
    return hlo_int(op, AK_DIMENSION, 0) == t->rank - 1 && columns <= EXCHANGED_MOST && dtype_on_tensor_engine(t->dtype) && t->elems >= ROWS_MIN_ELEMS &&
           hlo_int_at(a, AK_START_INDICES, t->rank - 1, 0) == columns / 2 && hlo_value_type(h, a->results)->elems * 2 == t->elems &&
           hlo_value_type(h, b->results)->elems * 2 == t->elems && hlo_value_type(h, b->results)->dims[t->rank - 1] * 2 == columns &&
           hlo_value_type(h, a->results)->dims[t->rank - 1] * 2 == columns && !hlo_int_at(b, AK_START_INDICES, t->rank - 1, 0) &&
           hlo_int_at(a, AK_STRIDES, t->rank - 1, 1) == 1 && hlo_int_at(b, AK_STRIDES, t->rank - 1, 1) == 1;
}

static bool is_half(const Rows *r, const HloOp *op) { // which nobody reads else
    Reader by = readers_of(&r->u, op->results);
    bool any = false;
    while (op->code == HLO_SLICE && reader_next(&by)) {
        if (!is_exchange(r, by.op))
            return false;
        any = true;
    }
    return any;
}

// The member as the graph has it otherwise.
static void put_halves(Rows *r, const HloOp *op) {
    Walk *w = &r->g.w;
    ValueId x = hlo_operand(r->h, op, 0), half[2];
    HloType t = *hlo_value_type(r->h, x);
    int64_t from[OTRN_MAX_RANK] = {0}, dims[OTRN_MAX_RANK];
    memcpy(dims, t.dims, t.rank * sizeof *dims);
    dims[t.rank - 1] /= 2;
    TypeId type = hlo_type_tensor(r->h, t.dtype, t.rank, dims), both = r->h->values.at[x].type;
    w->loc = op->loc;
    for (int k = 0; k < 2; k++) {
        from[t.rank - 1] = (1 - k) * dims[t.rank - 1];
        half[k] = walk_piece(w, x, from, type);
    }
    OpId made = hlo_op(r->h, HLO_CONCATENATE, op->loc, 2, half, 1, &both);
    hlo_set_int(r->h, made, AK_DIMENSION, t.rank - 1);
    walk_replace(w, op->results, walk_push(w, made));
}

// The op as a member: of x alone, as the slices are not made.
static void set_exchange(Rows *r, OpId id) {
    ValueId x = 0;
    for (uint32_t k = 0; k < 2; k++) {
        OpId half = r->h->values.at[hlo_operand(r->h, hlo_at(r->h, id), k)].def;
        walk_operands(&r->g.w, half);
        x = hlo_operand(r->h, hlo_at(r->h, half), 0);
    }
    HloOp *op = hlo_at(r->h, id);
    hlo_op_set_operands(r->h, id, 1, &x);
    op->code = HLO_EXCHANGE, op->attrs = NULL;
}

static void close_rows(Grouper *all, uint32_t group) {
    Rows *r = (Rows *)all;
    Hlo *h = r->h;
    Group *g = &r->g.groups.at[group];
    Values outputs = {0};
    group_outputs(all, group, &outputs);
    if (!outputs.n || !(r->ints ? ints_worth_it(r, group, &outputs) : is_worth_it(r, g))) {
        for (uint32_t i = 0; i < g->ops.n; i++) {
            walk_operands(&all->w, g->ops.at[i]);
            HloOp op = *hlo_at(h, g->ops.at[i]);
            if (op.code == HLO_EXCHANGE)
                put_halves(r, &op);
            else
                walk_push(&all->w, g->ops.at[i]);
        }
        return;
    }
    if (!g->c)
        g->c = g->period ? g->period : last_dimension(hlo_value_type(h, before_reshapes(h, outputs.at[0])));
    leave_to_readers(r, group, &outputs);
    assert(g->c > 0 && g->n % g->c == 0);
    Build b = {r, g, group};
    RowsMake m = {.c = r->c, .h = h};
    Values moved = {0};
    bring_work(&b, &outputs, &moved);
    for (uint32_t i = 0; i < g->ops.n; i++) {
        const HloOp *op = hlo_at(h, g->ops.at[i]);
        for (uint32_t k = 0; k < op->noperands; k++)
            if (needs_input(&b, op, k))
                add_input(&b, &m, op, hlo_operand(h, op, k));
    }
    rows_make_group(&m, &all->w, &g->ops, g->c, &outputs, member_in, &b);
    for (uint32_t i = 0; i < moved.n; i++)
        move_outside(r, moved.at[i]);
}

// --- grouping ------------------------------------------------------------------------------------------

static bool columns_agree(const Group *g) { return !g->c || !g->period || g->period % g->c == 0; }

// A flat group whose values are each broadcast along c columns: they become one a row.
static bool become_rows(Rows *r, uint32_t group, int64_t n, int64_t c) {
    Group *g = &r->g.groups.at[group];
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
    Group *a = &r->g.groups.at[into], *b = &r->g.groups.at[from];
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
    group_merge(&r->g, into, from);
    return true;
}

// What group g would be with the op's operands from outside; false when they do not fit.
static bool admit(const Rows *r, uint32_t group, const HloOp *op, Form form, Group *out) {
    *out = r->g.groups.at[group];
    if (out->ops.n >= GROUP_OPS_MAX)
        return false;
    for (uint32_t k = 0; k < op->noperands; k++) {
        ValueId v = hlo_operand(r->h, op, k);
        if (group_of(r, v) == group || splat_value(r->h, v))
            continue;
        out->inputs++;
        if (form == FORM_ROW)
            continue;
        Source s = rows_source(r->h, op, v);
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
    group_add(&r->g, group, id);
    VEC_RESERVE(r->c->scratch, &r->form, r->g.of.n);
    memset(r->form.at + r->form.n, 0, r->g.of.n - r->form.n);
    r->form.n = r->g.of.n;
    r->form.at[hlo_at(r->h, id)->results] = (uint8_t)form;
}

static bool take_in(Rows *r, uint32_t group, OpId id, Form form) {
    const HloOp op = *hlo_at(r->h, id);
    Group next;
    if (!admit(r, group, &op, form, &next))
        return false;
    r->g.groups.at[group].c = next.c;
    r->g.groups.at[group].period = next.period;
    r->g.groups.at[group].inputs = next.inputs;
    set_member(r, group, id, form);
    return true;
}

// The group an elementwise op joins: those of its operands, joined as far as they fit.
static uint32_t group_for(Rows *r, const HloOp *op) {
    uint32_t target = 0;
    ValueId at = 0; // an operand that is in it
    for (uint32_t k = 0; k < op->noperands; k++) {
        ValueId v = hlo_operand(r->h, op, k);
        uint32_t g = rows_is_for_all(r->h, op, v) ? 0 : group_of(r, v);
        if (!g || g == target)
            continue;
        if (!target) {
            target = g;
            at = v;
            continue;
        }
        if (form_of(r, v) != form_of(r, at)) { // the one that is flat may serve rows
            uint32_t flat = form_of(r, v) == FORM_FULL ? g : target, rows = flat == g ? target : g;
            if (!become_rows(r, flat, r->g.groups.at[rows].n, r->g.groups.at[rows].c))
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

// What was left to its readers, made once more in the group that the op joins.
static void make_again(Rows *r, OpId id, uint32_t target, Form form) {
    for (uint32_t k = 0; k < hlo_at(r->h, id)->noperands; k++) {
        ValueId v = hlo_operand(r->h, hlo_at(r->h, id), k), from;
        if (v >= r->g.w.nuses || !r->again[v])
            continue;
        HloOp op = *hlo_at(r->h, r->h->values.at[v].def);
        from = r->g.w.repl.at[hlo_operand(r->h, &op, 0)];
        OpId made = hlo_op_like(r->h, &op, &from, r->h->values.at[v].type);
        walk_grow(&r->g.w);
        r->h->operands.at[hlo_at(r->h, id)->operands + k] = hlo_at(r->h, made)->results;
        if (!take_in(r, target, made, form))
            walk_push(&r->g.w, made);
    }
}

// A product's tiles go through what makes the value as they leave PSUM (epilogue.c), unless that reduces rows: those are whole in HBM only. It is no
// wider than the product, so nothing is lost by storing it instead, and the work goes on beside the array's. Scores stay with their rows
// (tile/block.c), and draws: what their states are made of stands between.
static bool is_for_tiles(const Rows *r, ValueId v) {
    uint32_t group = group_of(r, v);
    const Group *g = &r->g.groups.at[group];
    OpId dot = group && !r->ints ? follows_product(r, g) : 0;
    bool drawn = false;
    for (uint32_t i = 0; i < g->ops.n && dot; i++)
        for (uint32_t k = 0; k < hlo_at(r->h, g->ops.at[i])->noperands; k++)
            drawn = drawn || rows_draw(r->h, hlo_operand(r->h, hlo_at(r->h, g->ops.at[i]), k));
    return dot && !drawn && dot_contracted(r->h, hlo_at(r->h, dot)) > SCORES_MOST &&
           hlo_type_bytes(hlo_value_type(r->h, v)) <= hlo_type_bytes(hlo_value_type(r->h, hlo_at(r->h, dot)->results));
}

// A sum along rows is made of the value, element by element.
static bool is_reduced(const Rows *r, ValueId v, int depth) {
    uint32_t n = 0;
    const OpId *users = v < r->g.w.nuses ? users_of(&r->u, v, &n) : NULL;
    for (uint32_t i = 0; i < n; i++) {
        const HloOp *op = hlo_at(r->h, users[i]);
        if (op->code == HLO_REDUCE ? rows_reduced_columns(r->h, op, NULL) > 0 : depth && hlo_is_elementwise(op) && is_reduced(r, op->results, depth - 1))
            return true;
    }
    return false;
}

static bool join_elementwise(Rows *r, OpId id) {
    HloOp op = *hlo_at(r->h, id);
    if (!may_hold(r, &op))
        return false;
    uint32_t target = group_for(r, &op);
    if (target && !r->c->no_epilogue && is_widening(r->h, &op) && is_for_tiles(r, hlo_operand(r->h, &op, 0)) && is_reduced(r, op.results, 1))
        target = 0;
    Form form = form_in(r, &op, target);
    Group next;
    if (target && !admit(r, target, &op, form, &next))
        target = 0;
    group_close_users(&r->g, &op, target);
    walk_operands(&r->g.w, id); // closing gave some operands new names
    if (!target) {
        form = FORM_FULL;
        target = group_new(&r->g, (Group){.n = hlo_value_type(r->h, op.results)->elems});
    }
    make_again(r, id, target, form);
    return take_in(r, target, id, form); // false: an operand's repetition does not fit another's
}

static bool join_reduce(Rows *r, OpId id) {
    HloOp op = *hlo_at(r->h, id);
    int64_t c = r->ints ? 0 : rows_reduced_columns(r->h, &op, NULL);
    if (!c)
        return false;
    ValueId v = hlo_operand(r->h, &op, 0);
    uint32_t g = group_of(r, v);
    if (g) {
        Group next = r->g.groups.at[g];
        bool fits = form_of(r, v) == FORM_FULL && (!next.c || next.c == c) && next.ops.n < GROUP_OPS_MAX;
        next.c = c;
        if (!fits || !columns_agree(&next)) {
            group_close(&r->g, g);
            walk_operands(&r->g.w, id);
            g = 0;
        }
    }
    if (!g) {
        v = hlo_operand(r->h, hlo_at(r->h, id), 0);
        g = group_new(&r->g, (Group){.n = hlo_value_type(r->h, v)->elems, .c = c});
        HloOp now = *hlo_at(r->h, id);
        Group next;
        if (!admit(r, g, &now, FORM_FULL, &next))
            return false;
        r->g.groups.at[g].period = next.period;
        r->g.groups.at[g].inputs = next.inputs;
    }
    r->g.groups.at[g].c = c;
    set_member(r, g, id, FORM_ROW);
    return true;
}

static bool join_movement(Rows *r, OpId id) {
    HloOp op = *hlo_at(r->h, id);
    if (op.code != HLO_RESHAPE && op.code != HLO_BROADCAST_IN_DIM)
        return false;
    ValueId v = hlo_operand(r->h, &op, 0);
    uint32_t g = group_of(r, v);
    if (!g || r->g.groups.at[g].ops.n >= GROUP_OPS_MAX)
        return false;
    if (op.code == HLO_RESHAPE) {
        set_member(r, g, id, form_of(r, v));
        return true;
    }
    int64_t from = hlo_value_type(r->h, v)->elems, to = hlo_value_type(r->h, op.results)->elems;
    if (r->ints || rows_repeats(r->h, &op) != FUSED_ROWS || from < 2)
        return false;
    if (form_of(r, v) == FORM_FULL && !become_rows(r, g, to, to / from))
        return false;
    if (r->g.groups.at[g].n != to || r->g.groups.at[g].c != to / from)
        return false;
    set_member(r, g, id, FORM_FULL);
    return true;
}

static bool join_exchange(Rows *r, OpId id) {
    HloOp op = *hlo_at(r->h, id);
    if (is_half(r, &op))
        return true; // a member reads the whole, or put_halves makes it
    if (!is_exchange(r, &op))
        return false;
    set_exchange(r, id);
    op = *hlo_at(r->h, id);
    const HloType *t = hlo_value_type(r->h, op.results);
    int64_t n = t->elems, c = t->dims[t->rank - 1];
    ValueId x = hlo_operand(r->h, &op, 0);
    uint32_t target = group_of(r, x);
    Group next = r->g.groups.at[target];
    next.c = c;
    if (target && (form_of(r, x) != FORM_FULL || next.ops.n >= GROUP_OPS_MAX || !columns_agree(&next) || (r->g.groups.at[target].c && r->g.groups.at[target].c != c)))
        target = 0;
    group_close_users(&r->g, &op, target);
    walk_operands(&r->g.w, id);
    x = hlo_operand(r->h, hlo_at(r->h, id), 0);
    if (x < r->g.w.nuses) // one reader less
        walk_set_uses(&r->g.w, x, walk_uses(&r->g.w, x) - 1);
    if (!target)
        target = group_new(&r->g, (Group){.n = n, .inputs = 1});
    r->g.groups.at[target].c = c;
    set_member(r, target, id, FORM_FULL);
    return true;
}

static bool join_rows(Grouper *g, OpId id) {
    Rows *r = (Rows *)g;
    return join_exchange(r, id) || join_movement(r, id) || join_reduce(r, id) || join_elementwise(r, id);
}

static void join(Compile *c, bool ints) {
    Rows r = {.g = {.join = join_rows, .close = close_rows}, .c = c, .h = c->hlo, .ints = ints};
    r.again = ARENA_NEWN(c->scratch, bool, c->hlo->values.n + 1);
    users_make(&r.u, c->hlo, c->scratch, hlo_main(c->hlo)->body);
    group_run(&r.g, c);
}

void pass_row_programs(Compile *c) { join(c, false); }

void pass_row_integers(Compile *c) { join(c, true); }
