// SPDX-License-Identifier: Apache-2.0
// effect_select.c — instructions that choose for each element between src and a value.
#include "chip/core/effect_ew.h"

static Select select_begin(const EffCall *c, EngDomain domain) {
    const IsaInst *in = c->in;
    Select k = {.walk = eng_walk(c, domain), .in = in,
                .dst = eng_tensor(c->dst, in->dtype, in->n, in->d), .src_given = c->src.at,
                .reverse = in->flags & ISA_FLAG_REVERSE0};
    if (c->src.at) {
        k.src = eng_tensor(c->src, in->stype, in->n, in->s);
        eng_mark_overlap(&k.dst, &k.src);
    }
    if (c->src1.at) {
        k.src1 = eng_tensor(c->src1, in->ttype, in->n, in->t);
        eng_mark_overlap(&k.dst, &k.src1);
    }
    k.a = eng_scalar(in->a, c->a, in->atype);
    k.b = eng_scalar(in->b, c->b, in->atype);
    return k;
}

// z = mask ? x : y and on to the register and dst.
static void select_end(const Select *k, const EngBlock *b, const uint32_t *mask, const void *x, const void *y,
                       EngBuf *s) {
    size_t n = b->rows * b->cols;
    if (k->gathers && b->col == 0)
        eff_reg_begin(&k->reg, &k->walk, &k->b, b);
    uint32_t *z = eng_out(&k->walk, &k->dst, b, s->z);
    k->walk.level->eng->select(z, mask, x, y, n);
    if (k->run)
        eff_reg_gather(&k->reg, k->run, b, z);
    eng_store(&k->walk, &k->dst, b, z, s);
    if (k->gathers && b->col + b->cols == k->dst.cols)
        eff_reg_end(&k->reg, &k->walk, b);
}

// With the register of the vector engine, which keeps the maximum.
static otrn_status select_run(const EffCall *c, Select *k, EngBody *body) {
    k->gathers = c->in->rcmd || c->res.at;
    if (k->gathers) {
        k->reg = eff_reg(c, c->state->vector_acc + addr_part(c->in->dst), ALU_MAX);
        if (eff_reg_reduces(&k->reg))
            k->run = k->walk.level->eng->run[ENG_F32][ALU_MAX];
    }
    eng_rows(c, k->dst.cols, 1, body, k, sizeof *k);
    return OTRN_OK;
}

static const uint32_t *load_mask(const Select *k, const EngBlock *b, EngBuf *s) {
    EngWalk bits = k->walk;
    bits.domain = ENG_BITS;
    return eng_load(&bits, &k->src1, b, s->y, s);
}

// --- select_reduce ---------------------------------------------------------------------------------------

void eff_select_body(const void *arg, const EngBlock *b, EngBuf *s) {
    const Select *k = arg;
    if (b->col == 0)
        eng_splat(&k->walk, &k->a, b, s->a);
    const void *x = eng_load(&k->walk, &k->src, b, s->x, s);
    const uint32_t *mask = load_mask(k, b, s);
    select_end(k, b, mask, k->reverse ? (const void *)s->a : x, k->reverse ? x : s->a, s);
}

otrn_status eff_select_reduce(const EffCall *c) {
    Select k = select_begin(c, ENG_F32);
    return select_run(c, &k, eff_select_body);
}

// --- affine_select: the mask is an affine value compared with 0 --------------------------------------------

static bool compare(int op, float x, float y) {
    switch (op) {
    case ALU_EQ:
        return x == y;
    case ALU_NE:
        return x != y;
    case ALU_LT:
        return x < y;
    case ALU_LE:
        return x <= y;
    case ALU_GT:
        return x > y;
    default:
        return x >= y;
    }
}

static void affine_body(const void *arg, const EngBlock *b, EngBuf *s) {
    const Select *k = arg;
    size_t n = b->rows * b->cols;
    if (b->col == 0)
        eng_splat(&k->walk, &k->a, b, s->a);
    const int64_t *v = (const int64_t *)s->b;
    uint32_t *mask = (uint32_t *)s->y;
    eff_affine(k->in, b, (int64_t *)s->b);
    for (size_t i = 0; i < n; i++) // int32 keeps its sign as fp32
        mask[i] = compare(k->in->op0, (float)v[i], 0);
    select_end(k, b, mask, eng_load(&k->walk, &k->src, b, s->x, s), s->a, s);
}

otrn_status eff_affine_select(const EffCall *c) {
    Select k = select_begin(c, ENG_F32);
    return select_run(c, &k, affine_body);
}

// --- range_select: the mask is an index between two bounds -------------------------------------------------

static void range_body(const void *arg, const EngBlock *b, EngBuf *s) {
    const Select *k = arg;
    const IsaInst *in = k->in;
    if (b->col == 0) {
        eng_splat(&k->walk, &k->a, b, s->a);
        eng_splat(&k->walk, &k->b, b, s->b);
    }
    const float *lo = (const float *)s->a, *hi = (const float *)s->b;
    uint32_t *mask = (uint32_t *)s->y;
    size_t n = b->rows * b->cols;
    for (size_t i = 0; i < n; i++) {
        float index = (float)((int64_t)in->imm + (int64_t)(b->col + i % b->cols));
        mask[i] = compare(in->op0, index, lo[i]) && compare(in->op1, index, hi[i]);
    }
    gp_fill(s->tmp, &in->limit, 4, n);
    select_end(k, b, mask, eng_load(&k->walk, &k->src, b, s->x, s), s->tmp, s);
}

otrn_status eff_range_select(const EffCall *c) {
    Select k = select_begin(c, ENG_F32);
    return select_run(c, &k, range_body);
}

// --- copy_predicated: other places keep their bits ---------------------------------------------------------

// The scalar as bits of dst's type.
static void splat_bits(const Select *k, const EngBlock *b, EngBuf *s) {
    EngWalk f32 = k->walk;
    f32.domain = ENG_F32;
    for (uint32_t r = 0; r < b->rows; r++) {
        float v = k->a.column.at ? eng_get(&f32, &k->a.column, b, b->row + r, 0) : k->a.value;
        uint32_t bits = 0;
        EngTensor one = {.at = (uint8_t *)&bits, .dtype = k->dst.dtype, .bytes = k->dst.bytes, .naxes = 1,
                         .axis = {{1, 4}}, .cols = 1};
        eng_put(&f32, &one, NULL, 0, 0, v);
        gp_fill((uint32_t *)s->a + r * b->cols, &bits, 4, b->cols);
    }
}

static void pred_body(const void *arg, const EngBlock *b, EngBuf *s) {
    const Select *k = arg;
    if (!k->src_given && b->col == 0)
        splat_bits(k, b, s);
    const void *x = k->src_given ? eng_load(&k->walk, &k->src, b, s->x, s) : s->a;
    const void *old = eng_load(&k->walk, &k->dst, b, s->z, s);
    const uint32_t *mask = load_mask(k, b, s);
    select_end(k, b, mask, k->reverse ? old : x, k->reverse ? x : old, s);
}

otrn_status eff_copy_pred(const EffCall *c) {
    Select k = select_begin(c, ENG_BITS);
    return select_run(c, &k, pred_body);
}
