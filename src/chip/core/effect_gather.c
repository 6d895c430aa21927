// SPDX-License-Identifier: Apache-2.0
// effect_gather.c — what goes by index: stream_shuffle over partitions, gathers inside them, runs of equal ids,
// places of non-zeros, the k largest of 16 partitions. Indices are data: one out of range is an error of the run.
#include "chip/core/effects.h"

#include <math.h>
#include <stdlib.h>

static uint8_t *at_1d(const EffOperand *o, uint32_t p, int64_t i, int32_t stride, int dtype) {
    return o->at + p * o->pitch + i * stride * (int64_t)dtype_bytes(dtype);
}

// --- stream_shuffle ----------------------------------------------------------------------------------------

// Groups of 32 rows, whole columns of them at a time, so that dst may be src.
static void shuffle_group(const EngTensor *dst, const EngTensor *src, const IsaInst *in, uint32_t group,
                          uint32_t rows) {
    uint8_t buf[32][128 * 4];
    for (EngBlock b = {.rows = 1}; b.col < dst->cols; b.col += b.cols) {
        b.cols = dst->cols - b.col < 128 ? dst->cols - b.col : 128;
        for (uint32_t i = 0; i < 32; i++) {
            b.row = group + i;
            eng_gather(src, &b, buf[i]);
        }
        for (uint32_t i = 0; i < 32 && group + i < rows; i++) {
            unsigned from = in->mask[i / 8] >> i % 8 * 8 & 0xff;
            b.row = group + i;
            if (from < 32)
                eng_scatter(dst, &b, buf[from]);
        }
    }
}

otrn_status eff_shuffle(const EffCall *c) {
    const IsaInst *in = c->in;
    EngTensor dst = eng_tensor(c->dst, in->dtype, in->n, in->d), src = eng_tensor(c->src, in->stype, in->n, in->s);
    uint32_t rows = isa_count(in->n[0]);
    for (uint32_t g = 0; g < rows; g += 32)
        shuffle_group(&dst, &src, in, g, rows);
    return OTRN_OK;
}

// --- gathers -------------------------------------------------------------------------------------------------

otrn_status eff_n_gather(const EffCall *c) {
    const IsaInst *in = c->in;
    size_t bytes = dtype_bytes(in->dtype);
    for (uint32_t p = 0; p < isa_count(in->n[0]); p++)
        for (uint32_t j = 0; j < isa_count(in->n[1]); j++) {
            int64_t i = dtype_to_i64(in->ttype, at_1d(&c->src1, p, j, in->t[1], in->ttype));
            if (i < 0 || i >= in->imm)
                return eff_fail(c, "src1: index %lld of partition %u is outside the %d elements of src",
                                (long long)i, p, in->imm);
            memcpy(at_1d(&c->dst, p, j, in->d[1], in->dtype), at_1d(&c->src, p, i, in->s[1], in->stype), bytes);
        }
    return OTRN_OK;
}

// Index j of a group of 16 partitions lies at partition j mod 16, column j / 16.
otrn_status eff_local_gather(const EffCall *c) {
    const IsaInst *in = c->in;
    uint32_t rows = isa_count(in->n[0]), n2 = isa_count(in->n[2]);
    size_t bytes = dtype_bytes(in->dtype);
    for (uint32_t g = 0; g < rows; g += 16)
        for (uint32_t j = 0; j < isa_count(in->n[1]); j++) {
            if (g + j % 16 >= rows)
                return eff_fail(c, "src1: index %u of the group at partition %u lies outside its %u partitions", j,
                                g, rows - g);
            int64_t i = dtype_to_i64(in->ttype, at_1d(&c->src1, g + j % 16, j / 16, in->t[1], in->ttype));
            if (i < 0 || (i + 1) * n2 > in->imm)
                return eff_fail(c, "src1: index %lld of the group at partition %u is outside the %d elements of src",
                                (long long)i, g, in->imm);
            for (uint32_t p = g; p < g + 16 && p < rows; p++)
                for (uint32_t e = 0; e < n2; e++)
                    memcpy(at_1d(&c->dst, p, j, in->d[1], in->dtype) + (int64_t)e * in->d[2] * (int64_t)bytes,
                           at_1d(&c->src, p, i * n2 + e, in->s[1], in->stype), bytes);
        }
    return OTRN_OK;
}

// --- rows of one partition -------------------------------------------------------------------------------

otrn_status eff_seq_bounds(const EffCall *c) {
    const IsaInst *in = c->in;
    EngWalk w = eng_walk(c, ENG_F32);
    uint32_t n = isa_count(in->n[1]);
    const uint32_t counts[5] = {0, n, 2};
    EngTensor src = eng_tensor(c->src, in->stype, counts, (const int32_t[5]){0, in->s[1], 0});
    EngTensor dst = eng_tensor(c->dst, in->dtype, counts, in->d);
    for (uint32_t begin = 0, end; begin < n; begin = end) {
        float id = eng_get(&w, &src, NULL, 0, begin * 2);
        for (end = begin + 1; end < n && eng_get(&w, &src, NULL, 0, end * 2) == id; end++)
            ;
        for (uint32_t i = begin; i < end; i++) {
            eng_put(&w, &dst, NULL, 0, i * 2, id == 0 ? (float)n : (float)begin);
            eng_put(&w, &dst, NULL, 0, i * 2 + 1, id == 0 ? -1 : (float)end);
        }
    }
    return OTRN_OK;
}

otrn_status eff_nonzero(const EffCall *c) {
    const IsaInst *in = c->in;
    EngWalk w = eng_walk(c, ENG_F32);
    uint32_t n = isa_count(in->n[1]);
    EngTensor src = eng_tensor(c->src, in->stype, in->n, in->s);
    EngTensor dst = eng_tensor(c->dst, in->dtype, (const uint32_t[5]){0, n + 1}, in->d);
    for (uint32_t p = 0; p < isa_count(in->n[0]); p += 16) {
        uint32_t count = 0;
        for (uint32_t i = 0; i < n; i++)
            if (eng_get(&w, &src, NULL, p, i) != 0)
                eng_put(&w, &dst, NULL, p, count++, (float)((int64_t)in->imm + i));
        eng_put(&w, &dst, NULL, p, n, (float)count);
        for (; count < n; count++)
            eng_put(&w, &dst, NULL, p, count, (float)in->value);
    }
    return OTRN_OK;
}

// --- topk ------------------------------------------------------------------------------------------------

#define TOPK_MAX 65536 // isa/rules.def

typedef struct Ranked {
    float value;
    uint32_t index;
} Ranked;

// Ascending; a NaN is the least; of equals the later is the lesser, so that the first ones stay.
static int ranked_order(const void *x, const void *y) {
    const Ranked *a = x, *b = y;
    bool nan_a = isnan(a->value), nan_b = isnan(b->value);
    if (nan_a != nan_b)
        return nan_a ? -1 : 1;
    if (!nan_a && a->value != b->value)
        return a->value < b->value ? -1 : 1;
    return a->index > b->index ? -1 : 1;
}

otrn_status eff_topk(const EffCall *c) {
    const IsaInst *in = c->in;
    EngWalk w = eng_walk(c, ENG_F32);
    uint32_t n = isa_count(in->n[1]), keep = (uint32_t)in->imm, cols = (n + 15) / 16, out = (keep + 15) / 16;
    EngTensor src = eng_tensor(c->src, in->stype, (const uint32_t[5]){0, cols}, in->s);
    EngTensor dst = eng_tensor(c->dst, in->dtype, (const uint32_t[5]){0, out}, in->d);
    EngTensor res = c->res.at ? eng_tensor(c->res, in->rtype, (const uint32_t[5]){0, out}, (const int32_t[5]){0, 1})
                              : (EngTensor){0};
    Ranked all[TOPK_MAX];
    for (uint32_t g = 0; g < isa_count(in->n[0]); g += 16) {
        for (uint32_t i = 0; i < n; i++)
            all[i] = (Ranked){eng_get(&w, &src, NULL, g + i % 16, i / 16), i};
        qsort(all, n, sizeof *all, ranked_order);
        for (uint32_t i = 0; i < keep; i++) {
            const Ranked *r = &all[n - keep + i];
            eng_put(&w, &dst, NULL, g + i % 16, i / 16, isnan(r->value) ? NAN : r->value);
            if (res.at)
                dtype_from_i64(in->rtype, res.at + (g + i % 16) * res.pitch + (int64_t)(i / 16) * res.axis[0].step,
                               r->index);
        }
    }
    return OTRN_OK;
}
