// SPDX-License-Identifier: Apache-2.0
// effect_scan.c — running results along a row: tensor_scan and scalar_cumulative.
//
// A step needs the one before it, so the lanes are rows: 32 partitions go side by side, a column at a time.
#include "chip/core/effects.h"

#define LANES_ROWS 32
#define CHUNK (ENG_BLOCK / LANES_ROWS)

typedef struct Scan {
    EngWalk walk;
    EngTensor dst, src, src1;
    EngScalar a, b;
    EngAlu *op0, *op1;
    bool by_scalar; // scalar_cumulative
    bool reverse0, reverse1;
    float *reg; // scalar_cumulative: the registers, in and out; else NULL
    uint32_t rows;
} Scan;

static void turn(float *out, const float *in, size_t rows, size_t cols) { // out[j][i] = in[i][j]
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            out[j * rows + i] = in[i * cols + j];
}

// One column of `n` rows: r becomes its result.
static void scan_step(const Scan *k, float *r, const float *x, const float *y, size_t n) {
    float t[LANES_ROWS];
    if (k->by_scalar) { // y is the scalar operand
        const float *v = x;
        if (k->op0)
            k->op0(t, x, y, n), v = t;
        k->op1(r, v, r, n);
        return;
    }
    k->op0(t, k->reverse0 ? r : x, k->reverse0 ? x : r, n);
    k->op1(r, k->reverse1 ? y : t, k->reverse1 ? t : y, n);
}

static void scan_group(const Scan *k, uint32_t row, uint32_t rows, float *r, const float *a, EngBuf *s) {
    float *x = (float *)s->a, *y = (float *)s->b, *z = (float *)s->x;
    EngBlock b = {.row = row, .rows = 1};
    for (; b.col < k->dst.cols; b.col += b.cols) {
        b.cols = k->dst.cols - b.col < CHUNK ? k->dst.cols - b.col : CHUNK;
        for (uint32_t i = 0; i < rows; i++) {
            b.row = row + i;
            memcpy(z + i * b.cols, eng_load(&k->walk, &k->src, &b, s->y, s), b.cols * 4);
        }
        turn(x, z, rows, b.cols);
        for (uint32_t i = 0; !k->by_scalar && i < rows; i++) {
            b.row = row + i;
            memcpy(z + i * b.cols, eng_load(&k->walk, &k->src1, &b, s->y, s), b.cols * 4);
        }
        if (!k->by_scalar)
            turn(y, z, rows, b.cols);
        for (size_t j = 0; j < b.cols; j++) {
            scan_step(k, r, x + j * rows, k->by_scalar ? a : y + j * rows, rows);
            memcpy((float *)s->z + j * rows, r, rows * 4);
        }
        turn(z, (const float *)s->z, b.cols, rows);
        for (uint32_t i = 0; i < rows; i++) {
            b.row = row + i;
            eng_store(&k->walk, &k->dst, &b, z + i * b.cols, s);
        }
    }
}

static __attribute__((noinline)) void scan_groups(const Scan *k, size_t begin, size_t end) {
    EngBuf s;
    for (size_t g = begin; g < end; g++) {
        uint32_t row = (uint32_t)g * LANES_ROWS, rows = k->rows - row < LANES_ROWS ? k->rows - row : LANES_ROWS;
        float r[LANES_ROWS], a[LANES_ROWS];
        EngBlock column = {.row = row, .rows = rows, .cols = 1};
        eng_splat(&k->walk, &k->a, &column, a);
        if (k->reg)
            memcpy(r, k->reg + row, rows * 4);
        else
            memcpy(r, a, rows * 4);
        scan_group(k, row, rows, r, a, &s);
        if (k->reg)
            memcpy(k->reg + row, r, rows * 4);
    }
}

static void scan_task(void *arg, size_t begin, size_t end) {
    HostFp old = host_fp_begin(HOST_FP_IEEE);
    scan_groups(arg, begin, end);
    host_fp_end(old);
}

static Scan scan_begin(const EffCall *c) {
    const IsaInst *in = c->in;
    Scan k = {.walk = eng_walk(c, ENG_F32), .rows = isa_count(in->n[0]),
              .dst = eng_tensor(c->dst, in->dtype, in->n, in->d),
              .src = eng_tensor(c->src, in->stype, in->n, in->s),
              .a = eng_scalar(in->a, c->a, in->atype), .b = eng_scalar(in->b, c->b, in->atype),
              .reverse0 = in->flags & ISA_FLAG_REVERSE0, .reverse1 = in->flags & ISA_FLAG_REVERSE1};
    k.op0 = in->op0 ? k.walk.level->eng->alu[ENG_F32][in->op0] : NULL;
    k.op1 = k.walk.level->eng->alu[ENG_F32][in->op1];
    return k;
}

static otrn_status scan_run(const EffCall *c, Scan *k) {
    pool_run(c->pool, (k->rows + LANES_ROWS - 1) / LANES_ROWS, k->dst.cols < 256 ? 4 : 1, scan_task, k);
    return OTRN_OK;
}

otrn_status eff_scan(const EffCall *c) {
    Scan k = scan_begin(c);
    k.src1 = eng_tensor(c->src1, c->in->ttype, c->in->n, c->in->t);
    return scan_run(c, &k);
}

otrn_status eff_scalar_cum(const EffCall *c) {
    Scan k = scan_begin(c);
    EffReg reg = eff_reg(c, c->state->vector_acc + addr_part(c->in->dst), c->in->op1);
    eff_reg_begin(&reg, &k.walk, &k.b, &(EngBlock){.rows = k.rows});
    k.by_scalar = true;
    k.reg = reg.acc;
    return scan_run(c, &k);
}
