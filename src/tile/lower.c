// SPDX-License-Identifier: Apache-2.0
// lower.c — from graph to steps: which buffer holds each value, in which order things happen.
//
// Needs the entry function with calls inlined. Rules that keep memory and copies small:
//   1. reshapes, barriers and same-size bitcasts share their operand's buffer;
//   2. an elementwise op may write over an operand nobody reads again, made in the same loop;
//   3. a result of the program is produced where the caller wants it, unless an argument whose memory it
//      takes over is still to be read;
//   4. a loop's carried values live in state buffers; a value that the body passes on unchanged stays
//      where it was; the body writes the next state in place when the old one is dead by then;
//   5. splat constants are made when first needed, inside the region that needs them;
//   6. what a counted loop's counter decides has no buffer, or is a view of one (count.c).
#include <assert.h>
#include <string.h>

#include "hlo/dot.h"
#include "pass/walk.h"
#include "tile/block.h"
#include "tile/count.h"
#include "tile/product.h"
#include "tile/lower.h"
#include "tile/nest_text.h"

// --- buffers ---------------------------------------------------------------------------------------

BufId lower_buf(Lower *l, BufKind kind, uint64_t bytes, OpId op) {
    TBuf b = {.kind = (uint8_t)kind, .bytes = bytes, .first = l->steps.n, .last = l->steps.n,
              .loop = l->loop, .op = op};
    VEC_PUSH(l->c->scratch, &l->bufs, b);
    return l->bufs.n - 1;
}

void lower_bind(Lower *l, ValueId v, BufId b) {
    assert(b);
    assert(v < l->h->values.n);
    l->buf_of[v] = b;
    l->bufs.at[b].uses += l->uses[v];
}

uint64_t lower_bytes(Lower *l, ValueId v, OpId op) {
    const HloType *t = hlo_value_type(l->h, v);
    if (t->kind == HT_TOKEN)
        return 0;
    if (t->kind != HT_TENSOR || t->dynamic || t->text)
        hlo_fail(l->h, op, OTRN_UNSUPPORTED, "%s cannot be placed in memory yet",
                 t->dynamic ? "a tensor of dynamic shape" : t->text ? "a quantised tensor" : "a tuple");
    return hlo_type_bytes(t);
}

BufId lower_memory(const Lower *l, BufId b) {
    b = l->bufs.at[b].kind == BUF_VIEW ? l->bufs.at[b].base : b;
    const TBuf *t = &l->bufs.at[b];
    return t->kind == BUF_RESULT && l->alias[t->index] >= 0 ? lower_arg((uint32_t)l->alias[t->index]) : b;
}

// A use at the current step: the buffer lives at least until here, and as long as any loop that began
// after it was made.
void lower_touch(Lower *l, BufId id) {
    assert(id);
    assert(id < l->bufs.n);
    TBuf *b = &l->bufs.at[id];
    uint32_t now = l->steps.n;
    if (now > b->last)
        b->last = now;
    uint32_t outermost = 0;
    for (uint32_t k = l->loop; k; k = l->loops.at[k].parent)
        if (b->first <= l->loops.at[k].begin)
            outermost = k;
    if (outermost && b->held_by != outermost) {
        b->held_by = outermost;
        VEC_PUSH(l->c->scratch, &l->loops.at[outermost].held, id);
    }
}

static uint32_t push_refs(Lower *l, const BufId *ids, uint32_t n) {
    uint32_t at = l->refs.n;
    for (uint32_t i = 0; i < n; i++) {
        assert(ids[i] < l->bufs.n);
        if (ids[i])
            lower_touch(l, l->bufs.at[ids[i]].kind == BUF_VIEW ? l->bufs.at[ids[i]].base : ids[i]);
        VEC_PUSH(l->c->scratch, &l->refs, ids[i]);
    }
    return at;
}

void lower_step(Lower *l, StepKind kind, OpId op, const BufId *ins, uint32_t nins,
                      const BufId *outs, uint32_t nouts, uint32_t aux) {
    Step s = {.kind = (uint8_t)kind, .op = op, .nins = nins, .nouts = nouts, .aux = aux};
    assert(op < l->h->ops.n);
    s.ins = push_refs(l, ins, nins);
    s.outs = push_refs(l, outs, nouts);
    VEC_PUSH(l->c->scratch, &l->steps, s);
}

void lower_copy(Lower *l, OpId op, BufId dst, BufId src) {
    if (dst != src && l->bufs.at[dst].bytes)
        lower_step(l, STEP_COPY, op, &src, 1, &dst, 1, 0);
}

// --- constants -------------------------------------------------------------------------------------

#define SPLAT_MIN_BYTES 256 // below this a splat is stored in full

bool lower_is_lazy(const Lower *l, const HloOp *op) {
    const HloAttr *a = op->code == HLO_CONSTANT ? hlo_attr(op, AK_VALUE) : NULL;
    return a && hlo_tensor_is_splat(l->h, a) &&
           hlo_type_bytes(hlo_type(l->h, a->type)) >= SPLAT_MIN_BYTES;
}

// Numbers in order are made by row programs themselves; whoever else reads them has them put into memory.
static BufId count_buf(Lower *l, ValueId v) {
    const HloOp *op = hlo_at(l->h, l->h->values.at[v].def);
    OpId id = l->h->values.at[v].def;
    BufId b;
    if (op->code == HLO_RESHAPE) {
        ValueId from = hlo_operand(l->h, op, 0);
        b = l->buf_of[from] ? l->buf_of[from] : count_buf(l, from);
    } else {
        b = lower_buf(l, BUF_TEMP, lower_bytes(l, v, id), id);
        l->bufs.at[b].uses = UINT32_MAX;
        lower_step(l, STEP_KERNEL, id, NULL, 0, &b, 1, 0);
    }
    l->buf_of[v] = b;
    VEC_PUSH(l->c->scratch, &l->lazy, v);
    return b;
}

BufId lower_operand(Lower *l, ValueId v) {
    if (l->buf_of[v])
        return l->buf_of[v];
    if (rows_is_count(l->h, v))
        return count_buf(l, v);
    OpId def = l->h->values.at[v].def;
    assert(l->form[v].known || (def && lower_is_lazy(l, hlo_at(l->h, def))));
    BufId b = lower_buf(l, BUF_TEMP, lower_bytes(l, v, def), def);
    l->buf_of[v] = b;
    l->bufs.at[b].uses = UINT32_MAX; // shared by whoever needs it: never overwritten
    VEC_PUSH(l->c->scratch, &l->lazy, v);
    lower_step(l, l->form[v].known ? STEP_NUMBER : STEP_FILL, def, NULL, 0, &b, 1, v);
    return b;
}

void lower_hold(Lower *l, BufId id, int32_t by) {
    TBuf *b = &l->bufs.at[id];
    if (b->uses == UINT32_MAX)
        return;
    assert(by > 0 || b->uses >= (uint32_t)-by);
    b->uses += (uint32_t)by;
}

void lower_release(Lower *l, ValueId v) {
    if (l->buf_of[v])
        lower_hold(l, l->buf_of[v], -1);
}

// All readers of the value, or of its reshapes, are row programs that take it element by element.
static bool only_rows_read(const Lower *l, ValueId v) {
    for (Reader by = readers_of(&l->users, v); reader_next(&by);) {
        bool ok = by.op->code == HLO_ROWS || (by.op->code == HLO_RESHAPE && only_rows_read(l, by.op->results));
        for (uint32_t k = 0; ok && by.op->code == HLO_ROWS && k < by.op->noperands; k++)
            ok = hlo_operand(l->h, by.op, k) != v || rows_kinds(by.op)[k] == FUSED_SAME;
        if (!ok)
            return false;
    }
    return true;
}

bool lower_is_drawn(const Lower *l, ValueId v) {
    OpId draw = rows_draw(l->h, v);
    return draw && only_rows_read(l, hlo_at(l->h, draw)->results);
}

// --- choosing where a result goes --------------------------------------------------------------------

bool lower_may_overwrite(const Lower *l, const HloOp *op, uint32_t i, uint32_t result) {
    if (lower_is_drawn(l, hlo_operand(l->h, op, i)) || lower_strided(l, hlo_operand(l->h, op, i), &(Strided){0}))
        return false; // its buffer is the state's, or of something larger
    const HloType *in = hlo_value_type(l->h, hlo_operand(l->h, op, i));
    const HloType *out = hlo_value_type(l->h, op->results + result);
    if (op->code == HLO_ROWS) { // an operand that is read once, tile by tile, before its place is written
        const int64_t *kinds = rows_kinds(op);
        return kinds[i] != FUSED_COLUMNS && in->elems == out->elems && in->elems > 1 &&
               dtype_bytes(in->dtype) == dtype_bytes(out->dtype);
    }
    return kern_may_share(op->code, i, result, in->dtype, in->elems, out->dtype, out->elems);
}

// The operand's buffer is free to be overwritten by this op: last read here, made in this loop.
bool lower_dies_here(const Lower *l, BufId b) {
    const TBuf *t = &l->bufs.at[b];
    return t->kind == BUF_TEMP && t->uses == 0 && t->loop == l->loop && !t->state_loop;
}

// Writing `b` at this op harms nobody: what it holds now is dead, or is the very operand that the op may
// overwrite. Operands' own reads have been released already.
static bool may_write(const Lower *l, const HloOp *op, uint32_t result, BufId b) {
    if (l->bufs.at[b].uses)
        return false;
    for (uint32_t i = 0; i < op->noperands; i++)
        if (l->buf_of[hlo_operand(l->h, op, i)] == b && !lower_may_overwrite(l, op, i, result))
            return false;
    return true;
}

// Buffers 1.. are the arguments, then come the results: see make_signature.
BufId lower_out(Lower *l, OpId id, uint32_t result) {
    const HloOp *op = hlo_at(l->h, id);
    ValueId v = op->results + result;
    BufId place = count_place(l, v);
    if (place)
        return place;
    if (l->want[v] && may_write(l, op, result, l->want[v]))
        return l->want[v];
    if (l->want_result[v]) {
        uint32_t j = l->want_result[v] - 1;
        BufId arg = l->alias[j] >= 0 ? lower_arg((uint32_t)l->alias[j]) : 0;
        if (!arg || may_write(l, op, result, arg)) {
            BufId b = lower_result(l, j);
            l->bufs.at[b].first = l->steps.n;
            return b;
        }
    }
    for (uint32_t i = 0; i < op->noperands; i++) {
        BufId b = l->buf_of[hlo_operand(l->h, op, i)];
        if (b && lower_may_overwrite(l, op, i, result) && lower_dies_here(l, b) && may_write(l, op, result, b))
            return b;
    }
    return lower_buf(l, BUF_TEMP, lower_bytes(l, v, id), id);
}

// --- ordinary ops ------------------------------------------------------------------------------------

static bool shares_operand(const Lower *l, const HloOp *op) {
    switch (op->code) {
    case HLO_RESHAPE:
    case HLO_OPTIMIZATION_BARRIER:
        return true;
    case HLO_DRAW: // whoever reads them makes them, of the state
        return lower_is_drawn(l, op->results);
    case HLO_BITCAST_CONVERT: {
        const HloType *in = hlo_value_type(l->h, hlo_operand(l->h, op, 0));
        const HloType *out = hlo_value_type(l->h, op->results);
        int a = dtype_row(in->dtype)->bits, b = dtype_row(out->dtype)->bits;
        return a >= 8 && b >= 8; // packed types are unpacked on the host: they need work
    }
    default:
        return false;
    }
}

// An update of a splat: filled where the result lies, so that nothing is copied. Returns the constant, 0 when it is not one.
static OpId updated_splat(const Lower *l, const HloOp *op) {
    if ((op->code != HLO_SCATTER && op->code != HLO_DYNAMIC_UPDATE_SLICE) || op->nresults != 1)
        return 0;
    ValueId v = hlo_operand(l->h, op, 0);
    OpId def = l->h->values.at[v].def;
    if (!def || l->buf_of[v] || !lower_is_lazy(l, hlo_at(l->h, def)))
        return 0;
    for (uint32_t i = 1; i < op->noperands; i++)
        if (hlo_operand(l->h, op, i) == v)
            return 0;
    return def;
}

// Operations that no lowering is about.
static WhyId without_lowering(const HloOp *op) {
    switch (op->code) {
    case HLO_SORT: case HLO_CHLO_TOP_K:
        return WHY_ORDER;
    case HLO_DRAW: case HLO_RNG: case HLO_RNG_BIT_GENERATOR:
        return WHY_RANDOM;
    case HLO_CHOLESKY: case HLO_TRIANGULAR_SOLVE:
        return WHY_CHAIN;
    case HLO_FFT:
        return WHY_FOURIER;
    case HLO_SELECT_AND_SCATTER:
        return WHY_SCATTERS;
    case HLO_IOTA:
        return WHY_COUNTS;
    case HLO_CUSTOM_CALL:
        return strcmp(hlo_attr_str(op, AK_CALL_TARGET_NAME), HLO_HOST_CALL) ? WHY_CUSTOM : WHY_HOST;
    default:
        return WHY_NO_LOWERING;
    }
}

// The lowerings in the order of their table. Each tells why not; if none has, row programs do, or there is none for the operation.
StepKind lower_kind(const Lower *l, const HloOp *op, Why *why) {
    for (StepKind kind = STEP_CAST; kind <= STEP_TRANSPOSE; kind++)
        if (step_rows[kind].takes(l, op, why))
            return kind;
    if (why && !why->id)
        rows_refused(l->h, op, why);
    why_refuse(why, without_lowering(op));
    return STEP_KERNEL;
}

// An index that stands in a register.
static bool is_told(const Lower *l, StepKind kind, const HloOp *op, uint32_t operand) {
    uint32_t first = op->code == HLO_DYNAMIC_UPDATE_SLICE ? 2 : 1;
    bool known = kind == STEP_DYNAMIC && operand >= first && l->form[hlo_operand(l->h, op, operand)].known;
    return known && !dynamic_loads(l, op, operand);
}

// Numbers in order, one for each element of a row program.
static bool is_made(const Lower *l, StepKind kind, const HloOp *op, uint32_t operand) {
    if (kind != STEP_ROWS || !rows_is_count(l->h, hlo_operand(l->h, op, operand)))
        return false;
    return rows_kinds(op)[operand] == FUSED_SAME;
}

// A slice or an update that is no work: a view, or made where it goes.
static bool lower_view(Lower *l, OpId id) {
    HloOp op = *hlo_at(l->h, id);
    BufId view = op.code == HLO_SLICE && lower_strided(l, op.results, &(Strided){0}) ? lower_operand(l, hlo_operand(l->h, &op, 0)) : count_slice(l, &op);
    bool updated = count_is_updated(l, &op);
    if (!view && !updated)
        return false;
    for (uint32_t i = 0; i < op.noperands; i++)
        lower_release(l, hlo_operand(l->h, &op, i));
    lower_bind(l, op.results, view ? view : l->update_state[op.results]);
    return true;
}

// A result that only its sums over rows are read of.
static bool is_gone(const RowSum *sums, uint32_t n, uint32_t result) {
    bool gone = false;
    for (uint32_t i = 0; i < n; i++)
        gone = gone || (sums[i].gone && sums[i].result == result);
    return gone;
}

static void lower_compute(Lower *l, OpId id) {
    HloOp op = *hlo_at(l->h, id);
    Why why = {0};
    StepKind kind = lower_kind(l, &op, &why);
    ValueList extra = {0};
    if (kind == STEP_DOT) {
        lower_dot(l, id, 0);
        return;
    }
    if (kind == STEP_KERNEL)
        for (uint32_t r = 0; r < op.nregions; r++) {
            KProg unused;
            region_compile(l->c, id, l->h->op_regions.at[op.regions + r], &unused, &extra);
        }
    uint32_t nins = op.noperands + extra.n;
    BufId *ins = ARENA_NEWN(l->c->scratch, BufId, nins + 1);
    RowSum *sums;
    uint32_t nsums = row_sums_of(l, id, &sums);
    BufId *outs = ARENA_NEWN(l->c->scratch, BufId, op.nresults + nsums + 1u);
    OpId splat = updated_splat(l, &op);
    uint32_t first = splat ? 1 : 0;
    for (uint32_t i = first; i < op.noperands; i++)
        ins[i] = is_told(l, kind, &op, i) || is_made(l, kind, &op, i) ? 0 : lower_operand(l, hlo_operand(l->h, &op, i));
    for (uint32_t i = 0; i < extra.n; i++)
        ins[op.noperands + i] = lower_operand(l, extra.at[i]);
    for (uint32_t i = first; i < op.noperands; i++)
        lower_release(l, hlo_operand(l->h, &op, i));
    for (uint32_t i = 0; i < op.nresults; i++) {
        outs[i] = is_gone(sums, nsums, i) ? 0 : lower_out(l, id, i);
        if (outs[i])
            lower_bind(l, op.results + i, outs[i]);
    }
    for (uint32_t i = 0; i < nsums; i++) {
        sums[i].parts = outs[op.nresults + i] = lower_buf(l, BUF_TEMP, 2 * PARTITIONS * 4 * (uint64_t)sums[i].n, id);
        lower_hold(l, sums[i].parts, 1);
    }
    if (splat) {
        lower_step(l, STEP_FILL, splat, NULL, 0, outs, 1, 0);
        ins[0] = outs[0];
    }
    lower_step(l, kind, id, ins, nins, outs, op.nresults + nsums, 0);
    l->steps.at[l->steps.n - 1].why = why;
}

static bool made_before(const Block *b, uint32_t operand) {
    for (uint32_t i = 0; i < b->npro; i++)
        if (b->pro[i].index == operand)
            return true;
    return false;
}

static bool taken_behind(const Block *b, uint32_t result) {
    for (uint32_t i = 0; i < b->nepi; i++)
        if (b->epi[i].index == result)
            return true;
    return false;
}

// A row program with its products. What goes between them has no buffer. Operands are released last, so that no result
// lies where a later tile still reads.
static void lower_block(Lower *l, OpId id) {
    Block *b = l->blocks.at[l->block_of[id] - 1];
    HloOp op = *hlo_at(l->h, id);
    ValueList from = {0};
    VEC(BufId) ins = {0}, outs = {0};
    for (uint32_t i = 0; i < op.noperands; i++)
        VEC_PUSH(l->c->scratch, &from, made_before(b, i) ? 0 : hlo_operand(l->h, &op, i));
    for (uint32_t i = 0; i < b->npro; i++) {
        b->pro[i].lhs.in = from.n, b->pro[i].rhs.in = from.n + 1;
        for (uint32_t k = 0; k < 2; k++)
            VEC_PUSH(l->c->scratch, &from, hlo_operand(l->h, hlo_at(l->h, b->pro[i].op), k));
    }
    for (uint32_t i = 0; i < b->nepi; i++) {
        b->epi[i].rhs.in = from.n;
        VEC_PUSH(l->c->scratch, &from, hlo_operand(l->h, hlo_at(l->h, b->epi[i].op), b->epi[i].turned ? 0 : 1));
    }
    for (uint32_t i = 0; i < from.n; i++)
        VEC_PUSH(l->c->scratch, &ins, from.at[i] ? lower_operand(l, from.at[i]) : 0);
    for (uint32_t i = 0; i < op.nresults; i++) {
        BufId buf = taken_behind(b, i) ? 0 : lower_out(l, id, i);
        if (buf)
            lower_bind(l, op.results + i, buf);
        VEC_PUSH(l->c->scratch, &outs, buf);
    }
    for (uint32_t i = 0; i < b->nepi; i++) {
        b->epi[i].out = outs.n;
        VEC_PUSH(l->c->scratch, &outs, lower_dot_out(l, b->epi[i].op));
        side_of_result(&b->epi[i].lies, l->h, hlo_at(l->h, b->epi[i].op), lower_stored_as(l, b->epi[i].op));
    }
    for (uint32_t i = 0; i < b->nepi; i++) {
        uint64_t bytes = block_hold_bytes(b, &b->epi[i]);
        b->epi[i].hold = outs.n;
        if (bytes)
            VEC_PUSH(l->c->scratch, &outs, lower_buf(l, BUF_TEMP, bytes, b->epi[i].op));
    }
    for (uint32_t i = 0; i < from.n; i++)
        if (from.at[i])
            lower_release(l, from.at[i]);
    lower_step(l, STEP_BLOCK, id, ins.at, ins.n, outs.at, outs.n, l->block_of[id]);
}

static void lower_alias(Lower *l, OpId id) {
    const HloOp *op = hlo_at(l->h, id);
    Fence fence = {.step = l->steps.n};
    for (uint32_t i = 0; i < op->nresults; i++) {
        ValueId v = hlo_operand(l->h, op, i);
        BufId b = lower_operand(l, v);
        VEC_PUSH(l->c->scratch, &fence.bufs, b);
        lower_release(l, v);
        if (l->bufs.at[b].uses == UINT32_MAX)
            l->buf_of[op->results + i] = b;
        else
            lower_bind(l, op->results + i, b);
    }
    if (op->code == HLO_OPTIMIZATION_BARRIER && op->nresults > 1)
        VEC_PUSH(l->c->scratch, &l->fences, fence);
}

// --- regions and the program ---------------------------------------------------------------------------

static void lower_op(Lower *l, OpId id) {
    const HloOp *op = hlo_at(l->h, id);
    const HloOpRow *row = hlo_row(op);
    if (l->block_of[id]) {
        if (op->code == HLO_ROWS)
            lower_block(l, id);
        return;
    }
    if (l->sum_of[id]) {
        const DotSum *sum = &l->sums.at[l->sum_of[id] - 1];
        if (sum->at == id)
            lower_dot(l, sum->with, l->sum_of[id]);
        return;
    }
    if (l->epilogue_of[id]) {
        if (l->epilogues.at[l->epilogue_of[id] - 1]->dot == id)
            lower_dot(l, id, 0);
        return;
    }
    switch (op->code) {
    case HLO_RESHAPE:
        if (l->row_sum_of[id])
            return; // of what is summed and has no memory
        break;
    case HLO_TRANSPOSE:
        if (l->buf_of[op->results])
            return; // its product put it there
        break;
    case HLO_RETURN:
        return;
    case HLO_WHILE:
        lower_while(l, id);
        return;
    case HLO_CASE:
    case HLO_IF:
        lower_branches(l, id);
        return;
    case HLO_CONSTANT:
        if (lower_is_lazy(l, op))
            return;
        lower_bind(l, op->results, lower_buf(l, BUF_CONST, lower_bytes(l, op->results, id), id));
        return;
    case HLO_AFTER_ALL:
    case HLO_CREATE_TOKEN:
        for (uint32_t i = 0; i < op->noperands; i++)
            lower_release(l, hlo_operand(l->h, op, i));
        lower_bind(l, op->results, lower_buf(l, BUF_TEMP, 0, id));
        return;
    default:
        break;
    }
    if (op->code == HLO_INTERPRETER_RUN_PARALLEL) {
        ctx_hint(l->h->ctx, "`otrn run` compiles and runs the programs that it names");
        hlo_fail(l->h, id, OTRN_UNSUPPORTED, "is several programs, not a part of one");
    }
    if (op->nresults == 1 && rows_is_count(l->h, op->results))
        return; // made when it is needed
    if (count_op(l, id)) {
        for (uint32_t i = 0; i < op->noperands; i++)
            lower_release(l, hlo_operand(l->h, op, i));
        return;
    }
    if (row->cls == HC_META && !shares_operand(l, op))
        hlo_fail(l->h, id, OTRN_UNSUPPORTED, "no lowering for this operation yet");
    if (shares_operand(l, op))
        lower_alias(l, id);
    else if (!lower_view(l, id))
        lower_compute(l, id);
}

void lower_region(Lower *l, RegionId r) {
    for (uint32_t i = 0; i < l->h->regions.at[r].ops.n; i++)
        lower_op(l, l->h->regions.at[r].ops.at[i]);
}

// The value a returned one shares its buffer with: through reshapes and barriers to its producer.
ValueId lower_producer(const Lower *l, ValueId v) {
    assert(v);
    assert(v < l->h->values.n);
    for (;;) {
        OpId def = l->h->values.at[v].def;
        if (!def || !shares_operand(l, hlo_at(l->h, def)))
            return v;
        v = hlo_operand(l->h, hlo_at(l->h, def), l->h->values.at[v].index);
    }
}

static void make_signature(Lower *l) {
    Hlo *h = l->h;
    HloFunc *f = l->main;
    HloRegion body = h->regions.at[f->body];
    const HloOp *ret = region_return(l->h, &body);
    lower_donate(l);
    for (uint32_t i = 0; i < body.nargs; i++) {
        BufId b = lower_buf(l, BUF_ARG, lower_bytes(l, body.args + i, 0), 0);
        l->bufs.at[b].index = i;
        lower_bind(l, body.args + i, b);
    }
    for (uint32_t j = 0; j < f->nresults; j++) {
        ValueId v = hlo_operand(h, ret, j);
        BufId b = lower_buf(l, BUF_RESULT, lower_bytes(l, v, 0), h->values.at[v].def);
        l->bufs.at[b].index = j;
        ValueId p = lower_producer(l, v);
        if (h->values.at[p].def && !l->want_result[p])
            l->want_result[p] = j + 1;
    }
}

// What was not produced in place is copied out. An argument that is returned as it is, and whose memory
// another result takes over, is saved first.
static void return_results(Lower *l) {
    HloFunc *f = l->main;
    const HloOp ret = *region_return(l->h, &l->h->regions.at[f->body]);
    BufId *src = ARENA_NEWN(l->c->scratch, BufId, f->nresults + 1);
    uint32_t *taker = ARENA_NEWN(l->c->scratch, uint32_t, f->nargs + 1); // of an argument's memory: a result, from 1
    for (uint32_t j = 0; j < f->nresults; j++)
        if (l->alias[j] >= 0)
            taker[l->alias[j]] = j + 1;
    for (uint32_t j = 0; j < f->nresults; j++) {
        src[j] = lower_operand(l, hlo_operand(l->h, &ret, j));
        const TBuf *b = &l->bufs.at[src[j]];
        if (b->kind != BUF_ARG || !taker[b->index] || taker[b->index] == j + 1)
            continue;
        BufId saved = lower_buf(l, BUF_TEMP, l->bufs.at[src[j]].bytes, 0);
        lower_copy(l, 0, saved, src[j]);
        src[j] = saved;
    }
    for (uint32_t j = 0; j < f->nresults; j++)
        lower_copy(l, l->h->values.at[hlo_operand(l->h, &ret, j)].def, lower_result(l, j), src[j]);
}

void lower_program(Lower *l, const ChipFile *chip) {
    Hlo *h = l->h;
    l->main = hlo_main(h);
    HloFunc *f = l->main;
    const HloOp *ret = region_return(l->h, &h->regions.at[f->body]);
    f->nargs = h->regions.at[f->body].nargs;
    f->nresults = ret->noperands;
    Arena *a = l->c->scratch;
    l->buf_of = ARENA_NEWN(a, BufId, h->values.n);
    l->uses = ARENA_NEWN(a, uint32_t, h->values.n);
    l->want = ARENA_NEWN(a, BufId, h->values.n);
    l->want_result = ARENA_NEWN(a, uint32_t, h->values.n);
    l->alias = ARENA_NEWN(a, int32_t, f->nresults + 1);
    l->form = ARENA_NEWN(a, Form, h->values.n);
    l->update_of = ARENA_NEWN(a, OpId, h->values.n);
    l->update_state = ARENA_NEWN(a, BufId, h->values.n);
    users_make(&l->users, l->c->hlo, l->c->scratch, f->body);
    VEC_PUSH(a, &l->bufs, (TBuf){0});
    VEC_PUSH(a, &l->loops, (Loop){0});
    // regions that become scalar programs read their captures as kernel operands, which are
    // not released one by one: leaving them counted only keeps the buffer from being reused
    users_count(h, f->body, l->uses);
    l->asks = ARENA_NEW(a, Emit);
    *l->asks = (Emit){.l = l, .c = l->c, .chip = chip, .row_node = ARENA_NEWN(a, uint32_t, h->values.n)};
    blocks_find(l);
    epilogues_find(l);
    row_sums_find(l);
    sums_find(l);
    make_signature(l);
    lower_region(l, f->body);
    return_results(l);
    count_apart(l);
}

typedef struct Each {
    Lower *l;
    HloOpcode code;
    void (*visit)(Lower *l, OpId id);
} Each;

static bool each(void *pass, RegionId r, uint32_t at) {
    const Each *e = pass;
    OpId id = e->l->h->regions.at[r].ops.at[at];
    if (hlo_at(e->l->h, id)->code == e->code)
        e->visit(e->l, id);
    return false; // all of them
}

void lower_each(Lower *l, HloOpcode code, void (*visit)(Lower *l, OpId id)) {
    walk_find(l->h, l->main->body, each, &(Each){l, code, visit});
}
