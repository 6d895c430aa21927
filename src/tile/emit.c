// SPDX-License-Identifier: Apache-2.0
// emit.c — from steps to an artifact: place buffers, emit instructions, work out waits.
//
// One walk over the steps. A buffer gets its place in HBM at its first step and gives it back after its
// last. Steps are recorded and placed by sched.c, which adds the waits. Control flow begins and ends with a
// barrier, which completes everything and starts a new epoch, so counts never have to hold across a jump.
#include "tile/block.h"
#include "tile/count.h"
#include "tile/lower.h"
#include "tile/nest_text.h"
#include "tile/pair.h"
#include "tile/area.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pass/pass.h"

#define SWITCH_REG 0
#define COPY_CUT 4096 // units: shorter copies are not shared

// --- instructions ------------------------------------------------------------------------------------

static uint32_t emit_control(Emit *e, IsaInst in) {
    in.engine = ENG_SYNC;
    in.wait_sem[0] = in.wait_sem[1] = SEM_NONE;
    return emit_append(e, &in);
}

int64_t emit_middle(int64_t n, int64_t unit) {
    assert(n >= 0);
    assert(unit > 0);
    return min64(ceil_div(n, 2 * unit) * unit, n);
}

void emit_share(Emit *e, int64_t n, int64_t unit, int64_t *lo, int64_t *hi) {
    int64_t cut = emit_middle(n, unit);
    *lo = 0, *hi = n;
    if (e->parts < 2)
        return;
    e->shared |= cut < n;
    *(e->part ? lo : hi) = cut;
}

static void emit_barrier(Emit *e) {
    emit_control(e, (IsaInst){.op = ISA_BARRIER});
    e->epoch++;
    memset(e->done, 0, sizeof e->done);
    memset(e->seen, 0, sizeof e->seen);
}

uint64_t emit_addr(const Emit *e, BufId id) {
    const TBuf *b = &e->l->bufs.at[id];
    assert(id);
    assert(id < e->l->bufs.n);
    switch (b->kind) {
    case BUF_ARG:
        return addr_hbm(SEG_FIRST_ARG + b->index, 0);
    case BUF_RESULT:
        return addr_hbm(SEG_FIRST_ARG + e->l->main->nargs + b->index, 0);
    case BUF_CONST:
        return addr_hbm(SEG_CONST, b->off);
    case BUF_VIEW:
        return addr_hbm(e->view_seg + b->index, 0);
    default:
        return addr_hbm(SEG_SCRATCH, b->off);
    }
}

// --- steps -------------------------------------------------------------------------------------------

static KTensor tensor_of(Emit *e, BufId b, const HloType *t) {
    return (KTensor){.addr = emit_addr(e, b), .dtype = t->dtype, .rank = t->rank,
                     .dims = t->dims, .elems = t->kind == HT_TOKEN ? 1 : t->elems};
}

// Attributes as an artifact may hold them: types and tensors have no meaning for a kernel, and lists and
// dictionaries that could contain some are kept only when they do not.
static HloAttr plain_attr(const HloAttr *a) {
    HloAttr copy = *a;
    copy.type = 0;
    if (a->kind == HA_TENSOR || a->kind == HA_TYPE)
        copy = (HloAttr){.kind = HA_NONE};
    for (uint32_t i = 0; a->kind == HA_LIST && i < a->n; i++)
        if (a->list[i].kind == HA_NONE || a->list[i].kind >= HA_TYPE)
            copy.n = 0;
    if (a->kind == HA_DICT)
        copy.n = 0;
    return copy;
}

static void push_kernel(Emit *e, const Kern *k) {
    IsaInst in = {.op = ISA_KERNEL, .engine = ENG_GPSIMD, .imm = (int32_t)e->kerns.n};
    if (kern_work(k).is_collective) { // beside the engines, on the collective cores
        emit_collective(e, k);
        return;
    }
    VEC_PUSH(e->c->arena, &e->kerns, *k);
    emit_inst(e, in, NULL, 0, NULL, 0);
}

// A captured tensor is an operand for each of its elements, one behind the other.
static void one_element(KTensor *t, const KTensor *before) {
    if (before)
        t->addr = before->addr + dtype_bytes(t->dtype);
    t->rank = 0;
    t->elems = 1;
}

static void emit_kernel(Emit *e, const Step *s) {
    Hlo *h = e->l->h;
    HloOp op = *hlo_at(h, s->op);
    KTensor *in = ARENA_NEWN(e->c->arena, KTensor, s->nins + 1);
    KTensor *out = ARENA_NEWN(e->c->arena, KTensor, s->nouts + 1);
    ValueList extra = {0};
    KProg *progs = ARENA_NEWN(e->c->arena, KProg, op.nregions + 1);
    for (uint32_t r = 0; r < op.nregions; r++)
        region_compile(e->c, s->op, h->op_regions.at[op.regions + r], &progs[r], &extra);
    for (uint32_t i = 0; i < s->nins; i++) {
        bool captured = i >= op.noperands;
        ValueId v = captured ? extra.at[i - op.noperands] : hlo_operand(h, &op, i);
        in[i] = tensor_of(e, e->l->refs.at[s->ins + i], hlo_value_type(h, v));
        if (captured)
            one_element(&in[i], i > op.noperands && extra.at[i - op.noperands - 1] == v ? &in[i - 1] : NULL);
    }
    for (uint32_t i = 0; i < s->nouts; i++)
        out[i] = tensor_of(e, e->l->refs.at[s->outs + i], hlo_value_type(h, op.results + i));
    uint16_t nattrs = hlo_row(&op)->nattrs;
    HloAttr *attrs = ARENA_NEWN(e->c->arena, HloAttr, nattrs + 1u);
    for (uint16_t i = 0; i < nattrs; i++)
        attrs[i] = plain_attr(&op.attrs[i]);
    Kern k = {.op = op.code, .nattrs = nattrs, .attrs = attrs, .nin = s->nins, .nout = s->nouts,
              .in = in, .out = out, .nregions = op.nregions, .regions = progs,
              .target = op.code == HLO_CUSTOM_CALL ? hlo_attr_str(&op, AK_CALL_TARGET_NAME) : "",
              .why = s->kind == STEP_KERNEL ? s->why : (Why){.id = WHY_CONV_SLOW}};
    push_kernel(e, &k);
}

static uint64_t add_const(Buf *consts, const void *data, size_t bytes) {
    put_align(consts, HEAP_ALIGN);
    uint64_t off = consts->n;
    buf_put(consts, data, bytes);
    return off;
}

// A splat constant: broadcast one stored element.
static void emit_fill(Emit *e, const Step *s) {
    const HloAttr *a = hlo_attr(hlo_at(e->l->h, s->op), AK_VALUE);
    const HloType *t = hlo_type(e->l->h, a->type);
    if (fill_is_transfer(t)) {
        emit_fill_transfer(e, s);
        return;
    }
    KTensor *in = ARENA_NEW(e->c->arena, KTensor), *out = ARENA_NEW(e->c->arena, KTensor);
    *in = (KTensor){.addr = addr_hbm(SEG_CONST, add_const(e->consts, a->data, a->n)),
                    .dtype = t->dtype, .elems = 1};
    *out = tensor_of(e, e->l->refs.at[s->outs], t);
    HloAttr *attrs = ARENA_NEW(e->c->arena, HloAttr);
    *attrs = (HloAttr){.kind = HA_INTS};
    Kern k = {.op = HLO_BROADCAST_IN_DIM, .nattrs = 1, .attrs = attrs, .nin = 1, .nout = 1,
              .in = in, .out = out, .target = "", .why.id = WHY_SMALL};
    push_kernel(e, &k);
}

// Whole buffers, HBM to HBM, as bytes in the widest units their size allows.
static void emit_copy(Emit *e, const Step *s) {
    BufId src = e->l->refs.at[s->ins], dst = e->l->refs.at[s->outs];
    uint64_t bytes = e->l->bufs.at[dst].bytes;
    int type = bytes % 8 == 0 ? DT_UI64 : bytes % 4 == 0 ? DT_UI32 : DT_UI8;
    uint64_t elems = bytes / dtype_bytes(type), piece = 1u << 30;
    int64_t lo, hi;
    emit_share(e, (int64_t)elems, COPY_CUT, &lo, &hi);
    for (uint64_t at = (uint64_t)lo; at < (uint64_t)hi; at += piece) {
        int64_t n = (int64_t)((uint64_t)hi - at < piece ? (uint64_t)hi - at : piece);
        put_dma_by(e, ENG_SYNC, QUEUE_COPY, VIEW(mem_hbm(emit_addr(e, dst) + at * dtype_bytes(type)), type, {n, 1}),
                   VIEW(mem_hbm(emit_addr(e, src) + at * dtype_bytes(type)), type, {n, 1}));
    }
}

static void load_reg(Emit *e, const Step *s) {
    BufId b = e->l->refs.at[s->ins];
    const HloOp *op = hlo_at(e->l->h, s->op);
    ValueId v = hlo_operand(e->l->h, op, 0);
    if (s->kind == STEP_LOOP_TEST) {
        const HloRegion *cond = hlo_op_region(e->l->h, op, 0);
        v = hlo_operand(e->l->h, region_return(e->l->h, cond), 0);
    }
    emit_control(e, (IsaInst){.op = ISA_REG_LOAD, .reg = SWITCH_REG, .src = emit_addr(e, b),
                              .stype = hlo_value_type(e->l->h, v)->dtype});
}

static bool is_straight(const Emit *e, const Loop *loop) { // no control flow in its body
    for (uint32_t i = loop->begin + 1; i < loop->end; i++)
        if (e->l->steps.at[i].kind >= STEP_LOOP_BEGIN)
            return false;
    return true;
}

static void emit_counted(Emit *e, const Step *s) {
    Loop *loop = &e->l->loops.at[s->aux];
    IsaInst begin = {.op = ISA_LOOP, .engine = ENG_SYNC, .wait_sem = {SEM_NONE, SEM_NONE}, .reg = count_reg(e->l, s->aux),
                     .value = (int32_t)loop->first, .limit = (int32_t)(loop->first + (int64_t)loop->trips * loop->step),
                     .step = (int32_t)loop->step};
    bool overlaps = is_straight(e, loop) && loop->trips > 1 && !e->meetings;
    if (s->kind == STEP_LOOP_BEGIN) {
        loop->begin_pc = emit_control(e, begin);
        emit_barrier(e); // every iteration begins with it, unless they may overlap
        if (overlaps) {
            emit_body_begin(e);
            e->product_epoch = e->epoch + 1; // the iteration before hides how its first product begins
        }
        return;
    }
    if (overlaps && emit_body_end(e, loop->begin_pc, &begin))
        loop->begin_pc++;
    uint32_t end = emit_control(e, (IsaInst){.op = ISA_ENDLOOP, .imm = (int32_t)loop->begin_pc});
    shape_code_set_imm(&e->code, loop->begin_pc, (int32_t)end);
    emit_barrier(e);
}

// A number that a loop's counter tells, put into memory for whoever reads it there.
static void emit_number(Emit *e, const Step *s) {
    Form f = e->l->form[s->aux];
    uint32_t k = e->next_reg++ % EMIT_REGS;
    Haz *haz = &e->reg_haz[k];
    IsaInst in = {.op = ISA_REG_MOVE, .engine = ENG_SYNC, .reg = (uint8_t)(1 + k), .value = (int32_t)f.add};
    if (f.loop) {
        in = (IsaInst){.op = ISA_REG_ALU, .engine = ENG_SYNC, .op0 = ALU_MUL, .reg = in.reg, .areg = count_reg(e->l, f.loop),
                       .value = (int32_t)f.mul};
        emit_inst(e, in, NULL, 0, &haz, 1);
        in.op0 = ALU_ADD, in.areg = in.reg, in.value = (int32_t)f.add;
    }
    emit_inst(e, in, NULL, 0, &haz, 1);
    IsaInst st = {.op = ISA_REG_STORE, .engine = ENG_SYNC, .reg = in.reg, .dst = emit_addr(e, e->l->refs.at[s->outs]),
                  .dtype = hlo_value_type(e->l->h, s->aux)->dtype};
    emit_inst(e, st, &haz, 1, NULL, 0);
}

static void emit_loop(Emit *e, const Step *s) {
    Loop *loop = &e->l->loops.at[s->aux];
    if (loop->is_counted) {
        emit_counted(e, s);
        return;
    }
    emit_barrier(e);
    if (s->kind == STEP_LOOP_BEGIN) {
        loop->begin_pc = e->code.of.n;
        return;
    }
    if (s->kind == STEP_LOOP_TEST) {
        load_reg(e, s);
        loop->exit_pc = emit_control(e, (IsaInst){.op = ISA_BRANCH, .op0 = ALU_EQ, .reg = SWITCH_REG, .value = 0});
        return;
    }
    emit_control(e, (IsaInst){.op = ISA_JUMP, .imm = (int32_t)loop->begin_pc});
    shape_code_set_imm(&e->code, loop->exit_pc, (int32_t)e->code.of.n);
    VEC_PUSH(e->c->arena, &e->loops, (ArtLoop){loop->begin_pc, e->code.of.n, loop->trips});
}

static void branch_seldom(Emit *e, const Switch *sw) { // the branch that just ended, where it is
    if (sw->usual >= 0 && sw->branch != sw->usual + 1)
        VEC_PUSH(e->c->arena, &e->loops, (ArtLoop){sw->branch_begin, e->code.of.n, ART_SELDOM});
}

// case: branch k for index k, the last one for anything else; if: branch 0 is the true one.
static void emit_switch(Emit *e, const Step *s) {
    Switch *sw = &e->l->switches.at[s->aux];
    emit_barrier(e);
    if (s->kind == STEP_SWITCH) {
        load_reg(e, s);
        for (uint32_t k = 0; k + 1 < sw->nbranches; k++)
            VEC_PUSH(e->c->scratch, &sw->branch_pcs,
                     emit_control(e, (IsaInst){.op = ISA_BRANCH, .op0 = ALU_EQ, .reg = SWITCH_REG,
                                               .value = sw->is_if ? 1 : (int32_t)k}));
        VEC_PUSH(e->c->scratch, &sw->branch_pcs, emit_control(e, (IsaInst){.op = ISA_JUMP}));
        return;
    }
    if (s->kind == STEP_CASE) {
        if (sw->branch) {
            VEC_PUSH(e->c->scratch, &sw->end_pcs, emit_control(e, (IsaInst){.op = ISA_JUMP}));
            branch_seldom(e, sw);
        }
        sw->branch_begin = e->code.of.n;
        shape_code_set_imm(&e->code, sw->branch_pcs.at[sw->branch++], (int32_t)e->code.of.n);
        return;
    }
    branch_seldom(e, sw);
    for (uint32_t i = 0; i < sw->end_pcs.n; i++)
        shape_code_set_imm(&e->code, sw->end_pcs.at[i], (int32_t)e->code.of.n);
}

// Of operations that became one, the one that takes the most; the last of several.
static const HloOp *costliest(const Hlo *h, const HloOp *op) {
    if (!is_joined(op))
        return op;
    const HloRegion *region = hlo_op_region(h, op, 0);
    const HloOp *best = op;
    double most = 0;
    for (uint32_t i = 0; i + 1 < region->ops.n; i++) {
        const HloOp *member = hlo_at(h, region->ops.at[i]);
        if (member->code == HLO_CONSTANT || !member->noperands)
            continue;
        const HloType *from = hlo_value_type(h, hlo_operand(h, member, 0)), *to = hlo_value_type(h, member->results);
        double elems = (double)(from->elems > to->elems ? from->elems : to->elems);
        double cost = elems * kern_step_cost(member->code, from->dtype);
        if (cost >= most)
            most = cost, best = member;
    }
    return best;
}

void emit_loc(Emit *e, OpId id) {
    assert(id < e->l->h->ops.n);
    e->loc = id ? e->loc_of[id] : 0;
    if (!id || e->loc)
        return;
    const Hlo *h = e->l->h;
    const HloOp *op = costliest(h, hlo_at(h, id));
    Place at = hlo_place(h, op->loc);
    ArtLoc loc = {.file = at.line ? at.file : "", .name = hlo_loc_name(h, op->loc), .line = at.line,
                  .col = at.col, .op = op->code};
    e->loc = e->loc_of[id] = e->locs.n;
    VEC_PUSH(e->c->arena, &e->locs, loc);
}

static bool is_message(const Emit *e, const Step *s) { // to another device, or to the host
    uint16_t code = hlo_at(e->l->h, s->op)->code;
    return code == HLO_CUSTOM_CALL || code == HLO_SEND || code == HLO_RECV || code == HLO_INFEED || code == HLO_OUTFEED;
}

static bool is_empty(const Emit *e, const Step *s) { // works on nothing: zero-sized results only
    if (!s->nouts || is_message(e, s))
        return false;
    for (uint32_t i = 0; i < s->nouts; i++)
        if (e->l->bufs.at[e->l->refs.at[s->outs + i]].bytes)
            return false;
    return true;
}

static bool draws(const Lower *l, const Step *s) { return s->kind == STEP_ROWS && rows_of_ints(l->h, hlo_at(l->h, s->op)); }

bool emit_draws(const Emit *e, const Step *s) { return e->draws_bytes && draws(e->l, s); }

static uint32_t draws_area(const Lower *l, const ChipFile *chip) {
    double room = chip->sbuf_usable_bytes - DRAWS_AREA_BEGIN;
    int64_t elems = 0;
    for (uint32_t i = 0; i < l->steps.n && room >= DRAWS_AREA_MIN; i++)
        elems += draws(l, &l->steps.at[i]) ? hlo_value_type(l->h, hlo_at(l->h, l->steps.at[i].op)->results)->elems : 0;
    return elems < DRAWS_MIN ? 0 : (uint32_t)room / SBUF_PIECE * SBUF_PIECE; // products miss the room more than few numbers need it
}

static void emit_depth_or_kernel(Emit *e, const Step *s) { (depth_suits(e, s) ? emit_depth : emit_kernel)(e, s); }

const StepRow step_rows[] = {
    [STEP_KERNEL] = {"kernel", LANE_KERNEL, false, false, emit_kernel, NULL},
    [STEP_FILL] = {"fill", LANE_KERNEL, false, false, emit_fill, NULL},
    [STEP_CAST] = {"cast", LANE_CAST, false, true, emit_cast, cast_takes},
    [STEP_ROWS] = {"rows", LANE_ROWS, true, true, emit_rows, rows_take},
    [STEP_NEST] = {"nest", LANE_TENSOR, false, false, emit_nests, nest_takes},
    [STEP_DOT] = {"dot", LANE_TENSOR, true, true, emit_dot, dot_takes},
    [STEP_DEPTH] = {"depthwise", LANE_TENSOR, true, false, emit_depth_or_kernel, depth_takes},
    [STEP_CONV] = {"conv", LANE_TENSOR, true, false, emit_conv, conv_takes},
    [STEP_INDEX] = {"index", LANE_ROWS, false, false, emit_index, index_takes},
    [STEP_DYNAMIC] = {"dynamic", LANE_MOVE, false, false, emit_dynamic, dynamic_takes},
    [STEP_SCAN] = {"scan", LANE_ROWS, true, false, emit_scan, scan_takes},
    [STEP_POOL] = {"pool", LANE_ROWS, true, false, emit_pool, pool_takes},
    [STEP_MOVE] = {"move", LANE_MOVE, false, true, emit_move, move_takes},
    [STEP_TRANSPOSE] = {"transpose", LANE_ROWS, true, false, emit_transpose, transpose_takes},
    [STEP_BLOCK] = {"block", LANE_TENSOR, true, true, emit_block, NULL},
    [STEP_COPY] = {"copy", LANE_MOVE, false, false, emit_copy, NULL},
    [STEP_NUMBER] = {"number", LANE_MOVE, false, false, emit_number, NULL},
    [STEP_LOOP_BEGIN] = {"loop", LANE_NONE, false, false, emit_loop, NULL},
    [STEP_LOOP_TEST] = {"test", LANE_NONE, false, false, emit_loop, NULL},
    [STEP_LOOP_END] = {"end", LANE_NONE, false, false, emit_loop, NULL},
    [STEP_SWITCH] = {"switch", LANE_NONE, false, false, emit_switch, NULL},
    [STEP_CASE] = {"case", LANE_NONE, false, false, emit_switch, NULL},
    [STEP_SWITCH_END] = {"end", LANE_NONE, false, false, emit_switch, NULL},
};

// The lane of its kind, unless this one works elsewhere.
static Lane lane_of(const Emit *e, const Step *s) {
    const HloOp *op = hlo_at(e->l->h, s->op);
    switch (s->kind) {
    case STEP_KERNEL:
        return hlo_row(op)->cls == HC_COLL ? LANE_COLLECTIVE : LANE_KERNEL;
    case STEP_FILL:
        return fill_is_transfer(hlo_value_type(e->l->h, op->results)) ? LANE_ROWS : LANE_KERNEL;
    case STEP_MOVE: // a pad takes its number from SBUF
        return op->code == HLO_PAD ? LANE_ROWS : LANE_MOVE;
    case STEP_TRANSPOSE:
        return transpose_by_array(e, s) ? LANE_TENSOR : LANE_ROWS;
    case STEP_DEPTH:
        return depth_suits(e, s) ? LANE_TENSOR : LANE_KERNEL;
    case STEP_ROWS:
        return emit_draws(e, s) ? LANE_DRAWS : LANE_ROWS;
    default:
        return step_rows[s->kind].lane;
    }
}

static void emit_step(Emit *e, const Step *s) {
    assert(s->kind < sizeof step_rows / sizeof *step_rows);
    emit_loc(e, s->op);
    emit_lane(e, lane_of(e, s), step_rows[s->kind].tiles_apart);
    if ((s->kind != STEP_KERNEL && s->kind != STEP_MOVE) || !is_empty(e, s))
        step_rows[s->kind].emit(e, s);
}

void emit_probe(Emit *e, const Step *s, int part, Probe *out) {
    Buf consts = {.arena = e->c->scratch};
    assert(part == 0 || part == 1);
    e->consts = &consts;
    *out = (Probe){0};
    e->probe = out, e->part = part, e->parts = 2;
    e->shared = false;
    emit_step(e, s);
}

// --- memory ------------------------------------------------------------------------------------------

BufList emit_bufs(Lower *l, bool by_last) {
    Arena *a = l->c->scratch;
    BufList list = {ARENA_NEWN(a, BufId, l->steps.n + 1), ARENA_NEWN(a, BufId, l->bufs.n + 1)};
    for (BufId b = l->bufs.n; b-- > 1;) {
        if (l->bufs.at[b].kind != BUF_TEMP)
            continue;
        uint32_t last = l->bufs.at[b].held > l->bufs.at[b].last ? l->bufs.at[b].held : l->bufs.at[b].last;
        uint32_t s = by_last ? last : l->bufs.at[b].first - l->bufs.at[b].ahead;
        if (s > l->steps.n)
            s = l->steps.n;
        assert(l->bufs.at[b].first <= l->bufs.at[b].last);
        assert(l->bufs.at[b].ahead <= l->bufs.at[b].first);
        list.next[b] = list.first[s];
        list.first[s] = b;
    }
    return list;
}

static void place_consts(Emit *e) {
    Lower *l = e->l;
    for (BufId b = 1; b < l->bufs.n; b++) {
        TBuf *buf = &l->bufs.at[b];
        if (buf->kind != BUF_CONST)
            continue;
        const HloAttr *a = hlo_attr(hlo_at(l->h, buf->op), AK_VALUE);
        uint8_t *full = arena_alloc(e->c->scratch, buf->bytes);
        hlo_tensor_expand(l->h, a, full);
        buf->off = add_const(e->consts, full, buf->bytes);
    }
}

static int by_begin(const void *a, const void *b) { // outer loops before the ones inside them
    const ArtLoop *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end > y->end ? -1 : x->end < y->end;
}

Emit *emit_make(Lower *l, const ChipFile *chip) {
    Emit *e = ARENA_NEW(l->c->scratch, Emit);
    *e = (Emit){.l = l, .c = l->c, .chip = chip, .epoch = 1, .code = {.arena = l->c->arena}};
    e->heap.arena = l->c->scratch;
    e->draws_bytes = draws_area(l, chip);
    e->row_node = ARENA_NEWN(l->c->scratch, uint32_t, l->h->values.n);
    VEC_PUSH(l->c->arena, &e->locs, (ArtLoc){.file = "", .name = ""});
    e->loc_of = ARENA_NEWN(l->c->scratch, uint32_t, l->h->ops.n);
    e->view_seg = SEG_FIRST_ARG + l->main->nargs + l->main->nresults;
    sched_init(e, e->view_seg);
    BufId *views = ARENA_NEWN(l->c->scratch, BufId, l->nviews + 1);
    for (BufId b = 1; b < l->bufs.n; b++)
        if (l->bufs.at[b].kind == BUF_VIEW)
            views[l->bufs.at[b].index] = b;
    e->views = views;
    return e;
}

// Every buffer's place in HBM; returns the step at which scratch is fullest.
static uint32_t place_once(Emit *e, bool check) {
    Lower *l = e->l;
    BufList begin = emit_bufs(e->l, false), end = emit_bufs(e->l, true);
    uint32_t peak_step = 0;
    if (check)
        capacity_check_room(e, &begin, &end);
    for (uint32_t i = 0; i < l->steps.n; i++) {
        for (BufId b = begin.first[i]; b; b = begin.next[b]) {
            l->bufs.at[b].off = heap_take(&e->heap, l->bufs.at[b].bytes, l->bufs.at[b].alone);
            if (e->heap.new_peak)
                peak_step = i;
        }
        for (BufId b = end.first[i]; b; b = end.next[b])
            heap_give(&e->heap, l->bufs.at[b].off, l->bufs.at[b].bytes, l->bufs.at[b].alone);
    }
    return peak_step;
}

// What collectives read is held where there is room for that.
static uint32_t place_buffers(Emit *e, uint32_t cores) {
    hold_operands(e->l, e->chip, cores);
    uint32_t peak_step = place_once(e, false);
    if (capacity_suffices(e, (double)e->heap.top))
        return peak_step;
    hold_nothing(e->l);
    e->heap = (Heap){.arena = e->heap.arena};
    return place_once(e, true);
}

// Everything before is complete on both cores, and known to be.
static void emit_meeting(Emit *e) {
    emit_loc(e, 0);
    emit_lane(e, LANE_NONE, false);
    emit_barrier(e);
    emit_control(e, (IsaInst){.op = ISA_CORE_BARRIER});
    emit_barrier(e);
    emit_step_end(e);
}

// The meetings before a step that two cores have; false: it is the other's.
static bool enter_step(Emit *e, const Pair *pair, int core, uint32_t i) {
    if (pair->meets[i])
        emit_meeting(e);
    else if (i && pair->round[i] != pair->round[i - 1])
        emit_meet(e, pair->round[i - 1]);
    e->part = core, e->parts = pair->core[i] == PAIR_SHARED ? 2 : 0;
    e->round = pair->due[i], e->after = pair->after[core][i];
    return pair->core[i] == core || pair->core[i] >= PAIR_BOTH;
}

// For --dump=placed: the step, its buffers in HBM; rings follow as it takes them.
static void step_placed(Emit *e, const Step *s) {
    Buf *out = e->c->placed;
    step_print(e->l, s, out);
    for (uint32_t i = 0; i < s->nins + s->nouts; i++) {
        BufId b = e->l->refs.at[i < s->nins ? s->ins + i : s->outs + i - s->nins];
        if (!b)
            continue;
        buf_printf(out, "  %s%u ", i < s->nins ? "in" : "out", i < s->nins ? i : i - s->nins);
        isa_print_addr(emit_addr(e, b), &(IsaNames){.nargs = e->l->main->nargs, .nresults = e->l->main->nresults}, out);
        buf_printf(out, " %llu bytes\n", (unsigned long long)e->l->bufs.at[b].bytes);
    }
}

typedef struct Walk {
    Emit *e;
    const Pair *pair;
    int core;
} Walk;

static void walk_steps(void *arg) {
    const Walk *w = arg;
    Emit *e = w->e;
    Lower *l = e->l;
    for (uint32_t i = 0; i < l->steps.n && (w->pair->is_split || !w->core); i++) {
        if (w->pair->is_split && !enter_step(e, w->pair, w->core, i))
            continue;
        if (e->c->placed)
            step_placed(e, &l->steps.at[i]);
        emit_step(e, &l->steps.at[i]);
        emit_step_end(e);
    }
    emit_flush(e);
    e->loc = 0;
    emit_control(e, (IsaInst){.op = ISA_HALT});
}

// The steps of one core; of all when the program is not split.
static void emit_steps(Emit *e, const Pair *pair, int core) {
    if (pair->is_split)
        e->meetings = ARENA_NEWN(e->c->scratch, Meeting, pair->rounds + 1);
    emit_all(e, walk_steps, &(Walk){e, pair, core});
    if (e->loops.n)
        qsort(e->loops.at, e->loops.n, sizeof *e->loops.at, by_begin);
}

// The second core's program goes on with the tables of the first one's. It ends at once where the first does it all.
static Emit *emit_second(Emit *first, const Pair *pair) {
    Lower *l = first->l;
    Emit *e = emit_make(l, first->chip);
    e->art = first->art, e->loc_of = first->loc_of, e->heap = first->heap, e->consts = first->consts;
    memcpy(&e->kerns, &first->kerns, sizeof e->kerns);
    memcpy(&e->locs, &first->locs, sizeof e->locs);
    for (uint32_t i = 0; i < l->switches.n; i++)
        l->switches.at[i].branch = l->switches.at[i].branch_pcs.n = l->switches.at[i].end_pcs.n = 0;
    emit_steps(e, pair, 1);
    return e;
}

static void code_end(Emit *e, Artifact *art) {
    art->ncode = e->code.of.n, art->code_loc = e->code_loc.at;
    art->shapes = shape_code_end(&e->code);
    art->loops = e->loops.at, art->nloops = e->loops.n;
}

Artifact *emit_program(Lower *l, const ChipFile *chip, Pair *pair) {
    if (l->main->nargs + l->main->nresults + SEG_FIRST_ARG > SEG_MAX)
        ctx_fail(l->c->ctx, OTRN_CAPACITY, (Place){.file = l->h->file},
                 "%u arguments and results: more than %u HBM segments", l->main->nargs + l->main->nresults,
                 SEG_MAX - SEG_FIRST_ARG);
    Emit *e = emit_make(l, chip), *last = e;
    if (l->c->placed)
        l->c->placed->n = 0; // of a way that was not taken
    assert(pair->cores == 1 || pair->cores == 2);
    Artifact *art = e->art = ARENA_NEW(l->c->arena, Artifact);
    capacity_values(e);
    Buf consts = {.arena = l->c->arena};
    e->consts = &consts;
    place_consts(e);
    uint32_t peak_step = place_buffers(e, pair->is_split ? 2 : 1);
    if (pair->is_split)
        pair_follow(l, pair);
    emit_steps(e, pair, 0);
    if (pair->cores == 2)
        last = emit_second(e, pair);
    art->name = *l->h->name ? l->h->name : "main";
    art->target = arena_strndup(l->c->arena, chip->name, strlen(chip->name));
    art->producer = "opentrn " OTRN_RELEASE;
    art->partitions = spmd_partitions(l->h);
    capacity_find_live(last, peak_step);
    art->scratch_bytes = e->heap.top;
    art->consts = consts.at;
    art->const_bytes = consts.n;
    code_end(e, art);
    art->kerns = last->kerns.at, art->nkerns = last->kerns.n;
    art->locs = last->locs.at, art->nlocs = last->locs.n;
    capacity_check(last, (double)art->scratch_bytes);
    if (pair->cores == 2) {
        Artifact second = {0};
        code_end(last, &second);
        artifact_pair(l->c->arena, art, &second);
    }
    return art;
}
