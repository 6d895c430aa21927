// SPDX-License-Identifier: Apache-2.0
// count.c — loops that count: what their counter decides stands in registers, not in memory.
//
//   while (i < n) { x = a[i]; …; b[i] = y; i = i + 1 }
//
// The sequencers count such a loop themselves. A number that is m * i + c has a form instead of a buffer; an address takes it as
// a register times a stride. So a[i] is no copy but a view, a piece of a's buffer at a place that each turn moves on, and
// whoever makes y writes it into b. Views go only to steps whose every access is an instruction with an address
// (emit_inst puts the register in); a kernel's operands are plain. Whoever needs the number itself in memory has it
// stored.
#include "tile/count.h"

#include "hlo/loop.h"
#include "pass/rows.h"
#include "tile/block.h"
#include "tile/lower.h"

// --- loops ----------------------------------------------------------------------------------------

static uint32_t depth_of(const Lower *l, uint32_t loop) {
    uint32_t depth = 0;
    for (uint32_t k = l->loops.at[loop].parent; k; k = l->loops.at[k].parent)
        depth++;
    return depth;
}

uint8_t count_reg(const Lower *l, uint32_t loop) { return (uint8_t)(LOOP_REG_FIRST + depth_of(l, loop)); }

bool count_loop(const Lower *l, const HloOp *op, Loop *out) {
    LoopCount n;
    if (!loop_count(l->h, op, &n))
        return false;
    uint32_t depth = l->loop ? depth_of(l, l->loop) + 1 : 0;
    out->trips = (uint64_t)n.trips;
    out->is_counted = n.first >= INT32_MIN && n.first + n.trips * n.step <= INT32_MAX && depth < LOOP_DEPTH_MAX;
    out->first = n.first, out->step = n.step, out->counter = n.counter;
    return true;
}

// --- forms ----------------------------------------------------------------------------------------

static bool is_number(const HloType *t) {
    return t->kind == HT_TENSOR && !t->dynamic && !t->text && t->elems == 1 && (dtype_is_int(t->dtype) || t->dtype == DT_I1);
}

typedef struct Reading {
    const Lower *l;
    RegionId region; // of the value asked for
} Reading;

static void counter_range(const AffineReader *r, uint32_t loop, int64_t *first, int64_t *last) {
    const Loop *c = &((const Reading *)r->of)->l->loops.at[loop];
    *first = c->first, *last = c->first + (int64_t)(c->trips - 1) * c->step;
}

// Reading ends where forms are known, and where numbers come from elsewhere.
static bool known_form(const AffineReader *r, ValueId v, Affine *out) {
    const Lower *l = ((const Reading *)r->of)->l;
    OpId def = l->h->values.at[v].def;
    out->at = l->form[v];
    const HloAttr *flag = hlo_value_type(l->h, v)->dtype == DT_I1 ? splat_value(l->h, v) : NULL; // lies in memory once for all
    bool here = (splat_value(l->h, v) || (def && l->users.region[def] == ((const Reading *)r->of)->region)) && !flag;
    return out->at.known || !here || !is_number(hlo_value_type(l->h, v));
}

static AffineRange form_range(const Lower *l, Form f) {
    return affine_range(&(AffineReader){l->h, &(Reading){l, 0}, known_form, counter_range}, &(HloType){0}, &(Affine){.at = f});
}

int64_t count_least(const Lower *l, Form f) { return (int64_t)form_range(l, f).least; }
int64_t count_most(const Lower *l, Form f) { return (int64_t)form_range(l, f).most; }

bool count_form(const Lower *l, ValueId v, Form *out) {
    assert(v);
    assert(v < l->h->values.n);
    int64_t number;
    *out = l->form[v];
    if (out->known)
        return true;
    *out = (Form){.known = true};
    if (!constant_int(l->h, v, &number))
        return false;
    out->add = number;
    return true;
}

void count_constant(Lower *l, ValueId v, int64_t number) {
    Form f = {.known = true, .add = number};
    if (affine_fits(hlo_value_type(l->h, v)->dtype, form_range(l, f)))
        l->form[v] = f;
}

// Gives an op's results their forms: all, or none.
static bool find_forms(Lower *l, ValueId results, uint32_t n, const ValueId *as) {
    AffineReader r = {l->h, &(Reading){l, 0}, known_form, counter_range};
    Affine a;
    for (int give = 0; give < 2; give++)
        for (uint32_t i = 0; i < n; i++) {
            OpId def = l->h->values.at[as[i]].def;
            r.of = &(Reading){l, def ? l->users.region[def] : 0};
            if (!is_number(hlo_value_type(l->h, results + i)) || !affine_read(&r, as[i], &a))
                return false;
            if (give)
                l->form[results + i] = a.at;
        }
    return n > 0;
}

bool count_op(Lower *l, OpId id) {
    HloOp op = *hlo_at(l->h, id);
    if (!l->loop || op.code == HLO_CONSTANT)
        return false;
    if (op.code != HLO_FUSED)
        return op.nresults == 1 && find_forms(l, op.results, 1, &op.results);
    const HloRegion *region = hlo_op_region(l->h, &op, 0);
    for (uint32_t i = 0; i < op.noperands; i++) {
        Form f;
        if (!is_number(hlo_value_type(l->h, hlo_operand(l->h, &op, i))) || !count_form(l, hlo_operand(l->h, &op, i), &f))
            return false;
        l->form[region->args + i] = f;
    }
    return find_forms(l, op.results, op.nresults, &l->h->operands.at[region_return(l->h, region)->operands]);
}

// --- views ----------------------------------------------------------------------------------------

// Who reads its result reads its operand's memory.
static bool passes_on(const Lower *l, const HloOp *op) {
    return op->code == HLO_RESHAPE || (op->code == HLO_SLICE && lower_strided(l, op->results, &(Strided){0}));
}

static bool takes_views(const Lower *l, OpId id) {
    return l->block_of[id] || l->epilogue_of[id] || step_rows[lower_kind(l, hlo_at(l->h, id), NULL)].views;
}

// … all but `update`, which has nothing to do then; 0: all.
static bool readers_take_views(const Lower *l, ValueId v, RegionId region, OpId update) {
    for (Reader by = readers_of(&l->users, v); reader_next(&by);) {
        if (l->users.region[by.id] != region)
            return false;
        if (by.id != update && (passes_on(l, by.op) ? !readers_take_views(l, by.op->results, region, update) : !takes_views(l, by.id)))
            return false;
    }
    return users_reads(&l->users, v) > 0;
}

// One run of bytes whose place registers alone tell; where it begins in the whole tensor, as a form in bytes.
static bool piece_of(const Lower *l, const HloOp *op, Form *at) {
    Dynamic d;
    if (!dynamic_of(l, op, &d, NULL) || d.nest.rank > 1 || d.count != 1 || !d.unknown[0].form.known)
        return false;
    if (d.nest.rank && (d.nest.axis[0].src != 1 || d.nest.axis[0].dst != 1)) // a column
        return false;
    *at = d.unknown[0].form;
    at->mul *= d.unknown[0].bytes;
    at->add = at->add * d.unknown[0].bytes + d.nest.src * (int64_t)dtype_bytes(d.dtype);
    return at->mul >= INT32_MIN && at->mul <= INT32_MAX;
}

static BufId piece_make(Lower *l, BufId base, Form at, uint64_t bytes, OpId op) {
    TBuf b = {.kind = BUF_VIEW, .base = base, .at = at, .bytes = bytes, .loop = l->loop, .op = op, .index = l->nviews++};
    VEC_PUSH(l->c->scratch, &l->bufs, b);
    return l->bufs.n - 1;
}

BufId count_slice(Lower *l, const HloOp *op) {
    Form at;
    if (op->code != HLO_DYNAMIC_SLICE || !l->loop)
        return 0;
    assert(op->nresults == 1);
    OpId id = l->h->values.at[op->results].def;
    BufId base = l->buf_of[hlo_operand(l->h, op, 0)];
    if (!base || !piece_of(l, op, &at))
        return 0;
    const TBuf *whole = &l->bufs.at[base];
    if (whole->kind == BUF_VIEW || whole->loop == l->loop || whole->state_loop == l->loop ||
        !readers_take_views(l, op->results, l->users.region[id], 0))
        return 0;
    return piece_make(l, base, at, hlo_type_bytes(hlo_value_type(l->h, op->results)), id);
}

// Forms of what an index is made from, which may stand further down.
static void look_ahead(Lower *l, ValueId v, RegionId region, int depth) {
    OpId def = l->h->values.at[v].def;
    if (!def || l->form[v].known || l->users.region[def] != region || !depth || !is_number(hlo_value_type(l->h, v)))
        return;
    HloOp op = *hlo_at(l->h, def);
    for (uint32_t i = 0; i < op.noperands; i++)
        look_ahead(l, hlo_operand(l->h, &op, i), region, depth - 1);
    count_op(l, def);
}

static bool same_number(Lower *l, ValueId a, ValueId b, RegionId region) {
    Form x, y;
    look_ahead(l, a, region, 6);
    look_ahead(l, b, region, 6);
    return a == b || (count_form(l, a, &x) && count_form(l, b, &y) && x.loop == y.loop && x.mul == y.mul && x.add == y.add);
}

// The turns of the loop put pieces side by side, from one end of the dimension to the other.
static bool goes_over(const Lower *l, Form f, uint32_t loop, int64_t piece, int64_t whole) {
    const Loop *c = &l->loops.at[loop];
    int64_t by = f.mul * c->step;
    return f.loop == loop && (by == piece || by == -piece) && (int64_t)c->trips * piece == whole && count_least(l, f) == 0;
}

bool count_overwrites(Lower *l, const HloOp *loop, uint32_t number, uint32_t i) {
    const Hlo *h = l->h;
    RegionId region = h->op_regions.at[loop->regions + 1];
    const HloOp *op = loop_stacks(&l->users, loop, i);
    if (!op)
        return false;
    const HloType *whole = hlo_value_type(h, hlo_operand(h, op, 0)), *piece = hlo_value_type(h, hlo_operand(h, op, 1));
    uint32_t outer = l->loop, cut = 0;
    bool all = !whole->dynamic;
    l->loop = number;
    for (int d = 0; d < whole->rank && all; d++) {
        Form f;
        look_ahead(l, hlo_operand(h, op, (uint32_t)d + 2), region, 6);
        bool full = piece->dims[d] == whole->dims[d]; // then the index is clamped to 0
        all = full || (count_form(l, hlo_operand(h, op, (uint32_t)d + 2), &f) && goes_over(l, f, number, piece->dims[d], whole->dims[d]));
        cut += !full;
    }
    l->loop = outer;
    return all && cut <= 1;
}

// --- a stack in the memory of another ---------------------------------------------------------------
//
//   for i: y = f(a[i], …); b[i] = y         b takes a's memory where nobody needs a behind the loop

// Where the op reads what it reads, or writes: products of a block go with its rows, an epilogue with its product, and what transposes a product
// may be written by that.
static uint32_t place_of(const Lower *l, OpId id, bool last) {
    const HloOp *op = hlo_at(l->h, id);
    OpId from = op->code == HLO_TRANSPOSE && !last ? l->h->values.at[hlo_operand(l->h, op, 0)].def : 0;
    if (from && l->users.region[from] == l->users.region[id])
        return place_of(l, from, last);
    uint32_t own = l->users.position[id], other = own;
    if (l->block_of[id])
        other = l->users.position[l->blocks.at[l->block_of[id] - 1]->rows];
    else if (l->epilogue_of[id])
        other = l->users.position[l->epilogues.at[l->epilogue_of[id] - 1]->dot];
    return (other > own) == last ? other : own;
}

// The reader is not over when `end` writes; that itself may be the reader, when it takes elements as it makes those of `result`.
static bool reads_late(const Lower *l, ValueId v, OpId reader, OpId end, uint32_t result) {
    const HloOp *op = hlo_at(l->h, reader);
    if (reader != end)
        return place_of(l, reader, true) >= place_of(l, end, false);
    bool over = !l->block_of[end] && (op->code == HLO_ROWS || !l->epilogue_of[end]);
    for (uint32_t k = 0; k < op->noperands && over; k++)
        over = hlo_operand(l->h, op, k) != v || lower_may_overwrite(l, op, k, result);
    return !over;
}

// Whoever reads the value, or a reshape of it, does so in the region and before `end` makes `result`.
static bool is_read_before(const Lower *l, ValueId v, RegionId region, OpId end, uint32_t result) {
    for (Reader by = readers_of(&l->users, v); reader_next(&by);) {
        if (l->users.region[by.id] != region)
            return false;
        if (passes_on(l, by.op) ? !is_read_before(l, by.op->results, region, end, result) : reads_late(l, v, by.id, end, result))
            return false;
    }
    return true;
}
// Each piece of the argument that the body reads is read before `end`.
static bool pieces_are_read_before(const Lower *l, ValueId whole, RegionId region, OpId end, uint32_t result) {
    for (Reader by = readers_of(&l->users, whole); reader_next(&by);)
        if (l->users.region[by.id] == region && !is_read_before(l, by.op->results, region, end, result))
            return false;
    return true;
}

bool count_reads_first(Lower *l, const HloOp *loop, uint32_t i, BufId b) {
    const Hlo *h = l->h;
    RegionId region = h->op_regions.at[loop->regions + 1];
    OpId update = h->values.at[hlo_operand(h, region_return(h, &h->regions.at[region]), i)].def;
    const HloOp *put = hlo_at(h, update);
    assert(put->code == HLO_DYNAMIC_UPDATE_SLICE);
    assert(l->bufs.at[b].kind == BUF_ARG);
    ValueId whole = h->regions.at[l->main->body].args + l->bufs.at[b].index;
    uint32_t pieces = 0;
    for (Reader by = readers_of(&l->users, whole); reader_next(&by);) {
        if (l->users.region[by.id] != region)
            continue;
        if (by.op->code != HLO_DYNAMIC_SLICE || h->values.at[by.op->results].type != h->values.at[hlo_operand(h, put, 1)].type)
            return false;
        for (uint32_t d = 0; d + 1 < by.op->noperands; d++)
            if (!same_number(l, hlo_operand(h, by.op, d + 1), hlo_operand(h, put, d + 2), region))
                return false;
        pieces++;
    }
    return pieces == l->bufs.at[b].uses && h->values.at[whole].type == h->values.at[loop->results + i].type &&
           pieces_are_read_before(l, whole, region, update, 0);
}

// The value that an update is made as: through reshapes that nobody else reads.
static ValueId made_as(const Lower *l, ValueId v) {
    for (;;) {
        OpId def = l->h->values.at[v].def;
        if (!def || l->uses[v] != 1 || hlo_at(l->h, def)->code != HLO_RESHAPE)
            return v;
        v = hlo_operand(l->h, hlo_at(l->h, def), 0);
    }
}

void count_updates(Lower *l, const HloOp *loop, const BufId *state) {
    const Hlo *h = l->h;
    RegionId region = h->op_regions.at[loop->regions + 1];
    for (uint32_t k = 0; k < loop->noperands; k++) {
        const HloOp *op = loop_stacks(&l->users, loop, k);
        if (!op)
            continue;
        ValueId v = op->results;
        OpId id = h->values.at[v].def;
        ValueId made = made_as(l, hlo_operand(h, op, 1));
        OpId maker = h->values.at[made].def;
        if (!maker || l->users.region[maker] != region || l->update_of[made] || l->want[made] || !takes_views(l, maker) ||
            !readers_take_views(l, made, region, id))
            continue;
        BufId over = lower_memory(l, state[k]); // an argument whose pieces somebody may still read
        if (over != state[k] && !pieces_are_read_before(l, h->regions.at[l->main->body].args + l->bufs.at[over].index, region, maker, h->values.at[made].index))
            continue;
        l->update_state[v] = state[k];
        l->update_of[made] = id;
    }
}

BufId count_place(Lower *l, ValueId v) {
    OpId id = l->update_of[v];
    if (!id)
        return 0;
    Form at;
    HloOp op = *hlo_at(l->h, id);
    for (uint32_t i = 2; i < op.noperands; i++)
        look_ahead(l, hlo_operand(l->h, &op, i), l->users.region[id], 6);
    if (!piece_of(l, &op, &at))
        return 0;
    return piece_make(l, l->update_state[op.results], at, hlo_type_bytes(hlo_value_type(l->h, v)), id);
}

bool count_is_updated(const Lower *l, const HloOp *op) {
    if (op->code != HLO_DYNAMIC_UPDATE_SLICE)
        return false;
    const TBuf *b = &l->bufs.at[l->buf_of[hlo_operand(l->h, op, 1)]];
    return b->kind == BUF_VIEW && l->update_state[op->results] && b->base == l->update_state[op->results];
}

// --- views that are apart ---------------------------------------------------------------------------

typedef struct Touched { // of a memory, in the loop in hand
    uint32_t loop;
    bool whole; // in another way than by views of one step
    int64_t mul, lo, hi;
} Touched;

static void touch_memory(const Lower *l, Touched *t, BufId id, uint32_t loop) {
    const TBuf *b = &l->bufs.at[id];
    bool view = b->kind == BUF_VIEW && b->at.loop == loop;
    int64_t lo = b->at.add, hi = b->at.add + (int64_t)b->bytes;
    if (t->loop != loop)
        *t = (Touched){.loop = loop, .mul = b->at.mul, .lo = lo, .hi = hi};
    t->whole = t->whole || !view || t->mul != b->at.mul;
    t->lo = lo < t->lo ? lo : t->lo;
    t->hi = hi > t->hi ? hi : t->hi;
}

static void apart_in_loop(Lower *l, Touched *memory, uint32_t loop) {
    const Loop *c = &l->loops.at[loop];
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = c->begin; i <= c->end; i++) {
            const Step *s = &l->steps.at[i];
            for (uint32_t k = 0; k < s->nins + s->nouts; k++) {
                BufId id = l->refs.at[k < s->nins ? s->ins + k : s->outs + k - s->nins];
                Touched *t = &memory[lower_memory(l, id)];
                TBuf *b = &l->bufs.at[id];
                if (id && !pass)
                    touch_memory(l, t, id, loop);
                int64_t by = t->mul * c->step;
                if (id && pass && b->kind == BUF_VIEW && b->at.loop == loop)
                    b->apart = !t->whole && t->hi - t->lo <= (by < 0 ? -by : by);
            }
        }
}

void count_apart(Lower *l) {
    Touched *memory = ARENA_NEWN(l->c->scratch, Touched, l->bufs.n);
    for (uint32_t loop = 1; loop < l->loops.n; loop++)
        if (l->loops.at[loop].is_counted)
            apart_in_loop(l, memory, loop);
}
