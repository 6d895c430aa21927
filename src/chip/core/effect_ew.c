// SPDX-License-Identifier: Apache-2.0
// effect_ew.c — instructions that handle every element by itself: a source, up to three stages in fp32 (or bits,
// or exact integers), one rounding into dst, and on the way a register per partition that gathers the results.
//
//   tensor_tensor          src  op0 src1
//   tensor_scalar          src  op0 a  op1 b
//   scalar_tensor_tensor   src  op0 a  op1 src1
//   activation             src  * a    + b      fn   → scalar register
//   activate2              src  op0 a  op1 b    fn   → scalar register
//   exponential            src  - a    exp           → vector register
//   scalar_reduce          src  op0 a                → vector register
//   range_select, select_reduce, affine_select, dropout: a choice between src and a value
#include "chip/core/effect_ew.h"

static void eff_move(const EngTensor *dst, const EngTensor *src, const EngBlock *b, EngBuf *s);

static const void *stage_operand(const Ew *e, const EwStage *st, const EngBlock *b, EngBuf *s) {
    if (st->by == BY_SRC1)
        return eng_load(&e->walk, &e->src1, b, s->y, s);
    const EngScalar *a = st->by == BY_A ? &e->a : &e->b;
    void *y = st->by == BY_A ? s->a : s->b;
    bool *filled = &s->filled[st->by == BY_B];
    if (a->column.at && b->col == 0 && st->by != BY_NONE) // a row goes on with the same
        eng_splat(&e->walk, a, b, y);
    else if (!a->column.at && !*filled)
        *filled = true, eng_splat(&e->walk, a, b, y); // no block after it is larger
    return y;
}

static const EngScalar *stage_scalar(const Ew *e, const EwStage *st) { return st->by == BY_A ? &e->a : &e->b; }

// The value of a row.
static float stage_value(const Ew *e, const EwStage *st, const EngBlock *b, uint32_t row) {
    const EngScalar *a = stage_scalar(e, st);
    return a->column.at ? eng_get(&e->walk, &a->column, b, row, 0) : a->value;
}

#define ONE_LEAST 16 // elements of a row that are worth a call

// May each row of a block be done with its scalars as one value? Rows of the same ones are one row.
static bool by_rows(const Ew *e, const EwStage *st, const EngBlock *b, uint32_t *rows) {
    bool differ = stage_scalar(e, st)->column.at || (e->ones && st == e->stage && stage_scalar(e, st + 1)->column.at);
    *rows = differ ? b->rows : 1;
    return *rows == 1 || b->cols >= ONE_LEAST;
}

// EwStage i, perhaps with the next, of a block whose scalars are one value for a row; false: it has no such form.
static bool stage_one(const Ew *e, int *i, float *z, const float *x, const EngBlock *b, EngBuf *s) {
    const EwStage *st = &e->stage[*i];
    bool ones = *i == 0 && e->ones, pair = *i == 0 && e->pair_one;
    uint32_t rows;
    if ((!ones && !pair && (!st->one || st->pair)) || !by_rows(e, st, b, &rows))
        return false;
    const float *y = pair ? stage_operand(e, st + 1, b, s) : NULL;
    size_t n = b->rows * b->cols / rows;
    for (uint32_t r = 0; r < rows; r++, z += n, x += n) {
        float a = stage_value(e, st, b, b->row + r);
        if (ones)
            e->ones(z, x, a, stage_value(e, st + 1, b, b->row + r), n);
        else if (pair)
            e->pair_one(z, x, a, y + r * n, n);
        else
            st->one(z, x, a, n);
    }
    *i += st->pair != NULL;
    return true;
}

static void *row_at(const EngTensor *t, const EngBlock *b) {
    return eng_row(t, b, b->row) + (int64_t)b->col * t->bytes;
}

static void exp_row(const Ew *e, const EngBlock *b, EngBuf *s) {
    const EwStage *st = e->stage;
    bool scaled = e->nstages == 3;
    float scale = scaled ? stage_value(e, st++, b, b->row) : 1, by = st->fn ? 0 : stage_value(e, st, b, b->row), none = 0;
    e->exp(e->dst.nowhere ? s->z : row_at(&e->dst, b), row_at(&e->src, b), scale, st->op == ALU_SUB ? -by : by,
           e->run ? &e->reg.acc[b->row] : &none, b->cols);
    if (e->gathers && b->col + b->cols == e->dst.cols)
        eff_reg_end(&e->reg, &e->walk, b);
}

void eff_ew_body(const void *arg, const EngBlock *b, EngBuf *s) {
    const Ew *e = arg;
    size_t n = b->rows * b->cols;
    if (e->same) {
        eff_move(&e->dst, &e->src, b, s);
        return;
    }
    if (e->in_place && b->rows == 1) {
        e->in_place(row_at(&e->dst, b), row_at(&e->src, b), row_at(&e->src1, b), n);
        return;
    }
    if (e->bf16_fn && b->rows == 1) {
        e->bf16_fn(row_at(&e->dst, b), row_at(&e->src, b), n);
        return;
    }
    if (e->one16 && b->rows == 1) {
        e->one16(row_at(&e->dst, b), row_at(&e->src, b), stage_value(e, e->stage, b, b->row), n);
        return;
    }
    if (e->gathers && b->col == 0)
        eff_reg_begin(&e->reg, &e->walk, &e->b, b);
    if (e->exp && (b->rows == 1 || b->cols >= ONE_LEAST)) {
        EngBlock row = *b;
        for (row.rows = 1; row.row < b->row + b->rows; row.row++)
            exp_row(e, &row, s);
        return;
    }
    if (e->run_bf16 && b->rows == 1) { // only their sum is wanted
        e->run_bf16(&e->reg.acc[b->row], row_at(&e->src, b), n);
        if (b->col + b->cols == e->dst.cols)
            eff_reg_end(&e->reg, &e->walk, b);
        return;
    }
    // Nothing but a conversion goes straight to its place.
    void *to = e->nstages ? s->x : eng_out(&e->walk, &e->dst, b, s->x);
    const void *x = eng_load(&e->walk, &e->src, b, to, s);
    for (int i = 0; i < e->nstages; i++) {
        const EwStage *st = &e->stage[i];
        int last = st->pair ? i + 2 : i + 1;
        void *z = last == e->nstages ? eng_out(&e->walk, &e->dst, b, s->z) : s->z;
        if (stage_one(e, &i, z, x, b, s)) {
            x = z;
            continue;
        }
        const void *y = st->fn ? NULL : stage_operand(e, st, b, s);
        if (st->fn)
            st->fn(z, x, n, e->parameter);
        else if (st->pair)
            st->pair(z, x, y, stage_operand(e, &e->stage[++i], b, s), n);
        else
            st->alu(z, st->reverse ? y : x, st->reverse ? x : y, n);
        x = z;
    }
    if (e->run)
        eff_reg_gather(&e->reg, e->run, b, x);
    eng_store(&e->walk, &e->dst, b, x, s);
    if (e->gathers && b->col + b->cols == e->dst.cols)
        eff_reg_end(&e->reg, &e->walk, b);
}

// Bits of a block from one pattern to another.
static void eff_move(const EngTensor *dst, const EngTensor *src, const EngBlock *b, EngBuf *s) {
    if (eng_move(dst, src, b))
        return;
    eng_gather(src, b, s->raw);
    eng_scatter(dst, b, s->raw);
}

// --- registers -------------------------------------------------------------------------------------------

EffReg eff_reg(const EffCall *c, float *acc, int rop) {
    const IsaInst *in = c->in;
    EffReg r = {.acc = acc, .rcmd = in->rcmd, .identity = eng_identity(rop),
                .negate = in->op == ISA_SCALAR_REDUCE && in->flags & ISA_FLAG_NEGATE};
    if (c->res.at)
        r.res = eng_column(c->res, in->rtype);
    return r;
}

void eff_reg_begin(const EffReg *r, const EngWalk *w, const EngScalar *load, const EngBlock *b) {
    for (uint32_t p = b->row; p < b->row + b->rows; p++)
        if (r->rcmd == RCMD_RESET || r->rcmd == RCMD_RESET_REDUCE)
            r->acc[p] = r->identity;
        else if (r->rcmd == RCMD_LOAD_REDUCE)
            r->acc[p] = load->column.at ? eng_get(w, &load->column, b, p, 0) : load->value;
}

void eff_reg_gather(const EffReg *r, EngRun *run, const EngBlock *b, const void *x) {
    for (uint32_t i = 0; i < b->rows; i++)
        run(&r->acc[b->row + i], (const float *)x + i * b->cols, b->cols);
}

void eff_reg_end(const EffReg *r, const EngWalk *w, const EngBlock *b) {
    if (!r->res.at)
        return;
    for (uint32_t p = b->row; p < b->row + b->rows; p++) {
        float v = r->negate ? -r->acc[p] : r->acc[p];
        if (r->res.dtype == DT_F32)
            memcpy(eng_row(&r->res, b, p), &v, sizeof v);
        else
            eng_put(w, &r->res, b, p, 0, v);
    }
}

bool eff_reg_reduces(const EffReg *r) { return r->rcmd >= RCMD_REDUCE; }

// --- instructions -----------------------------------------------------------------------------------------

static void stage_alu(Ew *e, int op, int by, bool reverse) {
    if (op != ALU_BYPASS)
        e->stage[e->nstages++] = (EwStage){.alu = e->walk.level->eng->alu[e->walk.domain][op],
                                         .op = (uint8_t)op, .by = (uint8_t)by, .reverse = reverse};
}

static bool by_one(const EwStage *st) { return st->by == BY_A || st->by == BY_B; }

static void stages_one(Ew *e) {
    const EngLevel *eng = e->walk.level->eng;
    for (int i = 0; e->walk.domain == ENG_F32 && i < e->nstages; i++) {
        EwStage *st = &e->stage[i];
        if (st->alu && by_one(st))
            st->one = st->reverse && st->op == ALU_SUB ? eng->back : eng->one[st->op];
    }
    const EwStage *st = e->stage;
    if (e->walk.domain != ENG_F32 || !st[0].pair || !by_one(st))
        return;
    if (by_one(st + 1))
        e->ones = eng->ones[st[0].op][st[1].op];
    else if (st[1].by == BY_SRC1)
        e->pair_one = eng->pair_one[st[0].op][st[1].op];
}

static void stages_pair(Ew *e) {
    for (int i = 0; e->walk.domain == ENG_F32 && i + 1 < e->nstages; i++) {
        const EwStage *next = &e->stage[i + 1];
        if (e->stage[i].alu && next->alu && !e->stage[i].reverse && !next->reverse)
            e->stage[i].pair = e->walk.level->eng->pair[e->stage[i].op][next->op];
        i += e->stage[i].pair != NULL;
    }
}

static void stage_fn(Ew *e, int fn) {
    if (fn != ACT_COPY && fn != ACT_IDENTITY)
        e->stage[e->nstages++] = (EwStage){.fn = e->walk.level->eng->fn[fn]};
}

static bool exact(int op) { return op == ALU_BYPASS || strchr(alu_rows[op].flags, 'I') != NULL; }
static bool exact_scalar(const EngScalar *a) { return !a->given || a->is_int; }

// Bitwise operations see bits; gpsimd is exact when nothing but integers meets.
static EngDomain domain_of(const Ew *e, const IsaInst *in) {
    if (alu_rows[in->op0].kind == 'B' || alu_rows[in->op1].kind == 'B')
        return ENG_BITS;
    bool ints = in->engine == ENG_GPSIMD && dtype_is_int(in->stype) && dtype_is_int(in->dtype) &&
                (in->op != ISA_TENSOR_TENSOR || dtype_is_int(in->ttype)) && exact(in->op0) &&
                exact(in->op1) && exact_scalar(&e->a) && exact_scalar(&e->b);
    return ints && in->op != ISA_COPY ? ENG_INT : ENG_F32;
}

static Ew ew_begin(const EffCall *c) {
    const IsaInst *in = c->in;
    Ew e = {.walk = eng_walk(c, ENG_F32)};
    e.dst = eng_tensor(c->dst, in->dtype, in->n, in->d);
    e.src = eng_tensor(c->src, in->stype, in->n, in->s);
    eng_mark_overlap(&e.dst, &e.src);
    if (c->src1.at) {
        e.src1 = eng_tensor(c->src1, in->ttype, in->n, in->t);
        eng_mark_overlap(&e.dst, &e.src1);
    }
    e.a = eng_scalar(in->a, c->a, in->atype);
    e.b = eng_scalar(in->b, c->b, in->atype);
    e.walk.domain = domain_of(&e, in);
    return e;
}

static bool is_all(const Ew *e, int dtype) { // both are runs of it, and may be read and written in place
    return e->walk.domain == ENG_F32 && !e->walk.stochastic && e->src.dtype == dtype && e->src.flat && !e->dst.careful &&
           (e->dst.nowhere || (e->dst.dtype == dtype && e->dst.flat));
}

// exp(x), exp(x + number of the row), exp(x - number of the row); x may be scaled by a number of the row.
static void exp_find(Ew *e, int rop) {
    const EngLevel *eng = e->walk.level->eng;
    const EwStage *st = e->stage, *last = st + e->nstages - 1;
    bool scaled = e->nstages == 3 && st->alu && by_one(st) && st->op == ALU_MUL; // either way round
    st += scaled;
    bool moved = st + 1 == last && st->alu && by_one(st) && (st->op == ALU_ADD || st->op == ALU_SUB) && !st->reverse;
    if ((e->nstages != 1 && !moved) || last->fn != eng->fn[ACT_EXP] || (e->run && rop != ALU_ADD))
        return;
    e->exp = is_all(e, DT_F32) ? eng->exp_f32 : is_all(e, DT_BF16) ? eng->exp_bf16 : NULL;
}

static otrn_status ew_end(const EffCall *c, Ew *e) {
    stages_pair(e);
    stages_one(e);
    if (e->nstages == 1 && e->stage[0].one && !e->stage[0].reverse && !e->gathers && is_all(e, DT_BF16))
        e->one16 = e->walk.level->eng->one_bf16[e->stage[0].op];
    eng_rows(c, e->dst.cols, 1, eff_ew_body, e, sizeof *e);
    return OTRN_OK;
}

// With a register of its engine.
static otrn_status ew_end_reg(const EffCall *c, Ew *e, float *acc, uint64_t at, int rop) {
    e->gathers = c->in->rcmd || c->res.at;
    e->reg = eff_reg(c, acc + addr_part(at), rop);
    if (eff_reg_reduces(&e->reg))
        e->run = e->walk.level->eng->run[ENG_F32][rop];
    if (e->nstages)
        exp_find(e, rop);
    if (e->run && !e->nstages && e->dst.nowhere && e->src.dtype == DT_BF16 && e->src.flat)
        e->run_bf16 = e->walk.level->eng->run_bf16[rop];
    return ew_end(c, e);
}

otrn_status eff_copy(const EffCall *c) {
    Ew e = ew_begin(c);
    e.same = c->in->dtype == c->in->stype;
    return ew_end(c, &e);
}

otrn_status eff_tensor_tensor(const EffCall *c) {
    Ew e = ew_begin(c);
    stage_alu(&e, c->in->op0, BY_SRC1, false);
    bool bf16 = e.dst.dtype == DT_BF16 && e.src.dtype == DT_BF16 && e.src1.dtype == DT_BF16;
    bool runs = e.dst.flat && e.src.flat && e.src1.flat && !e.dst.careful;
    if (bf16 && runs && !e.walk.stochastic)
        e.in_place = e.walk.level->eng->bf16[c->in->op0];
    return ew_end(c, &e);
}

otrn_status eff_tensor_scalar(const EffCall *c) {
    Ew e = ew_begin(c);
    stage_alu(&e, c->in->op0, BY_A, c->in->flags & ISA_FLAG_REVERSE0);
    stage_alu(&e, c->in->op1, BY_B, c->in->flags & ISA_FLAG_REVERSE1);
    return ew_end(c, &e);
}

otrn_status eff_scalar_tt(const EffCall *c) {
    Ew e = ew_begin(c);
    stage_alu(&e, c->in->op0, BY_A, c->in->flags & ISA_FLAG_REVERSE0);
    stage_alu(&e, c->in->op1, BY_SRC1, c->in->flags & ISA_FLAG_REVERSE1);
    return ew_end(c, &e);
}

otrn_status eff_reciprocal(const EffCall *c) {
    Ew e = ew_begin(c);
    stage_alu(&e, ALU_RECIP, BY_NONE, false);
    return ew_end(c, &e);
}

otrn_status eff_activation(const EffCall *c) {
    Ew e = ew_begin(c);
    stage_alu(&e, e.a.given ? ALU_MUL : ALU_BYPASS, BY_A, false);
    stage_alu(&e, e.b.given ? ALU_ADD : ALU_BYPASS, BY_B, false);
    stage_fn(&e, c->in->fn);
    bool bf16 = e.dst.dtype == DT_BF16 && e.src.dtype == DT_BF16 && e.dst.flat && e.src.flat && !e.dst.careful;
    if (bf16 && !e.a.given && !e.b.given && !c->in->rcmd && !c->res.at && !e.walk.stochastic)
        e.bf16_fn = e.walk.level->eng->bf16_fn[c->in->fn];
    return ew_end_reg(c, &e, c->state->scalar_acc, c->in->dst, c->in->rop);
}

otrn_status eff_activate2(const EffCall *c) {
    Ew e = ew_begin(c);
    memcpy(&e.parameter, &c->in->value, 4);
    stage_alu(&e, c->in->op0, BY_A, c->in->flags & ISA_FLAG_REVERSE0);
    stage_alu(&e, c->in->op1, BY_B, c->in->flags & ISA_FLAG_REVERSE1);
    stage_fn(&e, c->in->fn);
    return ew_end_reg(c, &e, c->state->scalar_acc, c->in->dst, c->in->rop);
}

otrn_status eff_exponential(const EffCall *c) {
    Ew e = ew_begin(c);
    stage_alu(&e, e.a.given ? ALU_SUB : ALU_BYPASS, BY_A, false);
    stage_fn(&e, ACT_EXP);
    return ew_end_reg(c, &e, c->state->vector_acc, c->in->dst, ALU_ADD);
}

otrn_status eff_scalar_reduce(const EffCall *c) {
    Ew e = ew_begin(c);
    stage_alu(&e, c->in->op0, BY_A, c->in->flags & ISA_FLAG_REVERSE0);
    return ew_end_reg(c, &e, c->state->vector_acc, c->in->dst, c->in->rop);
}
