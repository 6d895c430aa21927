// SPDX-License-Identifier: Apache-2.0
// fuse.c — join elementwise ops over one shape, so that what they hand each other never reaches memory, and small kernels side by side.
// needs: no dead ops, values defined before use
// gives: otrn.fused ops, whose region is one element's work; their results are what others read; small ones of one shape, and small reductions of
//        one shape, that do not need each other are one op
// stale: nothing
//
// Grouping is that of group.h, of elementwise ops of one shape. Splat constants become constants of the region, broadcast
// scalars are read by it directly, and a tensor repeated along rows or columns is read as it was before that. Each step rounds as the
// op alone would: fusing changes no bit.
//
// A kernel on a few hundred elements is nearly all start: the sums and sums of squares of normalisation, the updates of biases and scales, their
// conversions. Where one of them closes, those of its kind that are open go along.
#include <string.h>

#include "pass/group.h"
#include "pass/rows_make.h"

#define GROUP_INPUTS_MAX 16
#define SMALL_ELEMS 4096    // of a kernel that is nearly all start
#define SMALL_REDUCED 65536 // … of a reduction's operand
#define SMALL_INPUTS_MAX 64
#define SMALL_MOST 12       // of them together
#define NEAR 12             // places that a reduction waits for one like it

static bool is_fusible(const Hlo *h, const HloOp *op) {
    const HloOpRow *row = hlo_row(op);
    if (row->cls > HC_EW3 || row->dialect != HD_STABLEHLO || op->nresults != 1)
        return false;
    const HloType *out = hlo_value_type(h, op->results);
    if (out->kind != HT_TENSOR || out->dynamic || out->text || !out->elems || dtype_is_complex(out->dtype))
        return false;
    for (uint32_t i = 0; i < op->noperands; i++) {
        const HloType *in = hlo_value_type(h, hlo_operand(h, op, i));
        if (in->kind != HT_TENSOR || in->text || !hlo_same_dims(in, out) || dtype_is_complex(in->dtype))
            return false;
    }
    return true;
}

// The scalar behind an operand that is its broadcast; 0: it is none.
static ValueId scalar_behind(const Hlo *h, ValueId v) {
    OpId def = h->values.at[v].def;
    if (!def || hlo_at(h, def)->code != HLO_BROADCAST_IN_DIM)
        return 0;
    ValueId s = hlo_operand(h, hlo_at(h, def), 0);
    return hlo_value_type(h, s)->rank == 0 ? s : 0;
}

// The smaller tensor behind an operand that only repeats it along leading or trailing dimensions; *kind says which.
static ValueId repeated_behind(const Hlo *h, ValueId v, int64_t *kind) {
    *kind = FUSED_SAME;
    OpId def = h->values.at[v].def;
    if (!def || hlo_at(h, def)->code != HLO_BROADCAST_IN_DIM)
        return v;
    uint32_t n;
    const int64_t *dims = hlo_ints(hlo_at(h, def), AK_BROADCAST_DIMENSIONS, &n);
    ValueId s = hlo_operand(h, hlo_at(h, def), 0);
    const HloType *in = hlo_value_type(h, s), *out = hlo_value_type(h, v);
    if (!n || n != in->rank || in->text)
        return v;
    for (int64_t way = FUSED_ROWS; way <= FUSED_COLUMNS; way++) {
        bool fits = hlo_fused_fits(in->dims, in->rank, out->dims, out->rank, way);
        uint32_t ones = 0; // dimensions of size one at the repeated end say nothing about the order
        while (ones < n && in->dims[way == FUSED_ROWS ? n - 1 - ones : ones] == 1)
            ones++;
        for (uint32_t i = 0; i < n - ones; i++)
            fits = fits && (way == FUSED_ROWS ? dims[i] == i : dims[n - 1 - i] == out->rank - 1 - (int64_t)i);
        if (fits) {
            *kind = way;
            return s;
        }
    }
    return v;
}

// --- building the fused op ---------------------------------------------------------------------------------

static TypeId scalar_type(Hlo *h, ValueId v) {
    return hlo_type_tensor(h, hlo_value_type(h, v)->dtype, 0, NULL);
}

// Operands that come from outside of both groups and are neither splats nor broadcast scalars, each once.
static void add_inputs(Grouper *f, const HloOp *op, uint32_t group, uint32_t other, Values *inputs) {
    for (uint32_t k = 0; k < op->noperands; k++) {
        ValueId v = hlo_operand(f->w.hlo, op, k);
        uint32_t of = group_member(f, v);
        if (of != group && of != other && !splat_value(f->w.hlo, v) && !scalar_behind(f->w.hlo, v) &&
            !values_have(inputs, v))
            VEC_PUSH(f->w.arena, inputs, v);
    }
}

static ValueId operand_in(Grouper *f, RowsMake *m, ValueId v) {
    const Hlo *h = f->w.hlo;
    ValueId in = rows_make_get(m, v);
    const HloAttr *splat = in ? NULL : splat_value(h, v);
    int64_t kind;
    if (splat) {
        in = walk_push(&f->w, hlo_op_splat(f->w.hlo, f->w.loc, scalar_type(f->w.hlo, v), splat->data));
        rows_make_set(m, v, in);
    }
    in = in ? in : scalar_behind(h, v); // read from outside the region
    if (in)
        return in;
    v = repeated_behind(h, v, &kind);
    return rows_make_arg(m, rows_make_operand(m, v, kind));
}

static ValueId member_in(void *of, RowsMake *m, const HloOp *op) {
    Grouper *f = of;
    ValueId in[3];
    assert(op->noperands <= 3);
    for (uint32_t k = 0; k < op->noperands; k++) {
        in[k] = operand_in(f, m, hlo_operand(f->w.hlo, op, k));
        assert(hlo_value_type(f->w.hlo, in[k])->rank == 0); // one element's work
    }
    return walk_push(&f->w, hlo_op_like(f->w.hlo, op, in, scalar_type(f->w.hlo, op->results)));
}

// A single op is worth it when an operand then need not be written out at full size.
static bool saves_alone(const Hlo *h, const HloOp *op) {
    for (uint32_t k = 0; k < op->noperands; k++) {
        int64_t kind;
        ValueId v = hlo_operand(h, op, k);
        repeated_behind(h, v, &kind);
        if (kind != FUSED_SAME || scalar_behind(h, v) || (splat_value(h, v) && hlo_value_type(h, v)->elems > 1))
            return true;
    }
    return false;
}

static void close_reductions(Grouper *f, const Group *g);

static void close_fused(Grouper *f, uint32_t group) {
    Hlo *h = f->w.hlo;
    Group g = f->groups.at[group];
    bool reduces = hlo_at(h, g.ops.at[0])->code == HLO_REDUCE;
    if (g.ops.n == 1 && (reduces || !saves_alone(h, hlo_at(h, g.ops.at[0])))) {
        walk_push(&f->w, g.ops.at[0]);
        return;
    }
    if (reduces) {
        close_reductions(f, &g);
        return;
    }
    Values inputs = {0}, outputs = {0};
    for (uint32_t i = 0; i < g.ops.n; i++)
        add_inputs(f, hlo_at(h, g.ops.at[i]), group, group, &inputs);
    group_outputs(f, group, &outputs);
    RowsMake m = {.c = f->w.c, .h = h, .fused = true};
    for (uint32_t i = 0; i < inputs.n; i++) {
        int64_t kind;
        ValueId v = repeated_behind(h, inputs.at[i], &kind);
        rows_make_operand(&m, v, kind);
    }
    rows_make_group(&m, &f->w, &g.ops, 0, &outputs, member_in, f);
}

// --- small reductions --------------------------------------------------------------------------------------

static bool is_small_reduction(const Hlo *h, const HloOp *op) {
    if (op->code != HLO_REDUCE || op->noperands != 2 || op->nresults != 1)
        return false;
    const HloType *in = hlo_value_type(h, hlo_operand(h, op, 0));
    return hlo_has_elems(in) && in->elems <= SMALL_REDUCED;
}

static bool are_alike(const Hlo *h, const HloOp *a, const HloOp *b) {
    uint32_t n, m;
    const int64_t *x = hlo_ints(a, AK_DIMENSIONS, &n), *y = hlo_ints(b, AK_DIMENSIONS, &m);
    return n == m && (!n || !memcmp(x, y, n * sizeof *x)) && hlo_same_dims(hlo_value_type(h, hlo_operand(h, a, 0)), hlo_value_type(h, hlo_operand(h, b, 0)));
}

// One reduction of all operands, then all numbers to begin with; its region does what theirs do, one after the other.
static void close_reductions(Grouper *f, const Group *g) {
    Hlo *h = f->w.hlo;
    uint32_t n = g->ops.n;
    ValueId in[2 * SMALL_MOST], yields[SMALL_MOST];
    TypeId in_types[2 * SMALL_MOST], types[SMALL_MOST];
    assert(n <= SMALL_MOST);
    for (uint32_t i = 0; i < n; i++) {
        const HloOp *op = hlo_at(h, g->ops.at[i]);
        types[i] = h->values.at[op->results].type;
        for (uint32_t k = 0; k < 2; k++) {
            in[i + k * n] = hlo_operand(h, op, k);
            in_types[i + k * n] = h->values.at[hlo_op_region(h, op, 0)->args + k].type;
        }
    }
    const HloOp lead = *hlo_at(h, g->ops.at[n - 1]);
    OpId made = hlo_op(h, HLO_REDUCE, lead.loc, 2 * n, in, n, types);
    hlo_at(h, made)->attrs = lead.attrs;
    RegionId r = hlo_op_add_region(h, made, 2 * n, in_types);
    for (uint32_t i = 0; i < n; i++) {
        const HloRegion from = *hlo_op_region(h, hlo_at(h, g->ops.at[i]), 0);
        ValueMap map = {0};
        for (uint32_t k = 0; k < 2; k++)
            value_map_set(f->w.arena, &map, from.args + k, h->regions.at[r].args + i + k * n);
        for (uint32_t j = 0; j + 1 < from.ops.n; j++) {
            const HloOp op = *hlo_at(h, from.ops.at[j]);
            OpId copy = value_map_copy(h, f->w.arena, &map, &op);
            hlo_region_push(h, r, copy);
            value_map_set(f->w.arena, &map, op.results, hlo_at(h, copy)->results);
        }
        yields[i] = value_map_or_same(&map, hlo_operand(h, region_return(h, &from), 0));
    }
    hlo_region_push(h, r, hlo_op(h, HLO_RETURN, lead.loc, n, yields, 0, NULL));
    ValueId results = walk_push(&f->w, made);
    for (uint32_t i = 0; i < n; i++)
        walk_replace(&f->w, hlo_at(h, g->ops.at[i])->results, results + i);
}

// --- grouping ----------------------------------------------------------------------------------------------

// Members of one or two groups and the op have one shape, and are not too many.
static bool have_room(Grouper *f, uint32_t a, uint32_t b, const HloOp *op) {
    const Hlo *h = f->w.hlo;
    const Group *groups[2] = {&f->groups.at[a], &f->groups.at[b]};
    uint32_t count = a == b ? 1 : 2, ops = 0;
    Values inputs = {0};
    for (uint32_t k = 0; k < count; k++) {
        if (hlo_at(h, groups[k]->ops.at[0])->code == HLO_REDUCE || !hlo_same_dims(hlo_type(h, groups[k]->shape), hlo_value_type(h, op->results)))
            return false;
        ops += groups[k]->ops.n;
        for (uint32_t i = 0; i < groups[k]->ops.n; i++)
            add_inputs(f, hlo_at(h, groups[k]->ops.at[i]), a, b, &inputs);
    }
    add_inputs(f, op, a, b, &inputs);
    return ops < GROUP_OPS_MAX && inputs.n <= GROUP_INPUTS_MAX;
}

// The open group that op joins: that of an operand, with those of the others as far as they fit; 0: none.
static uint32_t group_for(Grouper *f, const HloOp *op) {
    uint32_t target = 0;
    for (uint32_t k = 0; k < op->noperands; k++) {
        uint32_t g = group_open(f, hlo_operand(f->w.hlo, op, k));
        if (!g || g == target || !have_room(f, g, g, op))
            continue;
        uint32_t older = g < target ? g : target, newer = g < target ? target : g;
        if (older && have_room(f, newer, older, op))
            group_merge(f, newer, older);
        target = newer;
    }
    return target;
}

// What becomes a kernel of its own in any case: not a loop's counter, which is none as long as it stays what it is.
static bool is_kernel(const Hlo *h, const Group *g) {
    const HloOp *op = hlo_at(h, g->ops.at[0]);
    return g->ops.n > 1 || op->code == HLO_CONVERT || op->code == HLO_REDUCE || saves_alone(h, op);
}

// Small work of one kind and shape, and not too much of it.
static bool are_siblings(Grouper *f, uint32_t a, uint32_t b) {
    const Hlo *h = f->w.hlo;
    const Group *both[2] = {&f->groups.at[a], &f->groups.at[b]};
    const HloOp *x = hlo_at(h, both[0]->ops.at[0]), *y = hlo_at(h, both[1]->ops.at[0]);
    if (!is_kernel(h, both[0]) || !is_kernel(h, both[1]))
        return false;
    if (x->code == HLO_REDUCE || y->code == HLO_REDUCE)
        return x->code == y->code && are_alike(h, x, y) && both[0]->ops.n + both[1]->ops.n <= SMALL_MOST;
    Values inputs = {0};
    for (uint32_t k = 0; k < 2; k++)
        for (uint32_t i = 0; i < both[k]->ops.n; i++)
            add_inputs(f, hlo_at(h, both[k]->ops.at[i]), a, b, &inputs);
    return hlo_type(h, both[0]->shape)->elems <= SMALL_ELEMS && hlo_same_dims(hlo_type(h, both[0]->shape), hlo_type(h, both[1]->shape)) &&
           both[0]->ops.n + both[1]->ops.n <= GROUP_OPS_MAX && inputs.n <= SMALL_INPUTS_MAX;
}

// Who reads a reduction may be far away, and what it needs stays in memory until it is done.
static void close_waiting(Grouper *f, OpId id) {
    uint32_t from = f->groups.n > f->first + NEAR + 2 ? f->groups.n - NEAR - 2 : f->first; // an op makes one group at most
    f->kept = 0;
    for (uint32_t i = from; i < f->groups.n; i++) {
        const Group *g = &f->groups.at[i];
        if (g->open && f->at > g->last + NEAR && hlo_at(f->w.hlo, g->ops.at[0])->code == HLO_REDUCE)
            group_close(f, i);
    }
    walk_operands(&f->w, id);
}

static bool join_fused(Grouper *f, OpId id) {
    close_waiting(f, id);
    HloOp op = *hlo_at(f->w.hlo, id);
    bool reduces = is_small_reduction(f->w.hlo, &op);
    if (!reduces && !is_fusible(f->w.hlo, &op))
        return false;
    uint32_t target = reduces ? 0 : group_for(f, &op);
    group_close_users(f, &op, target);
    walk_operands(&f->w, id); // closing gave some operands new names
    group_add(f, target ? target : group_new(f, (Group){.shape = f->w.hlo->values.at[op.results].type}), id);
    return true;
}

void pass_fuse(Compile *c) {
    pass_dce(c);
    Grouper f = {.join = join_fused, .close = close_fused, .siblings = are_siblings};
    group_run(&f, c);
}
