// SPDX-License-Identifier: Apache-2.0
// effect_reduce.c — tensor_reduce over free axes, partition_reduce over partitions.
//
// Axes of dst with stride zero are reduced, the others kept. When the last axis is reduced each result is a run in
// the order of engine.h; otherwise (and for subtract, where order counts) results lie side by side and gather one
// element after another: a chain in ascending order from the identity, subtract from the first element.
#include "chip/core/effects.h"

#include <math.h>

typedef struct Reduce {
    EngWalk walk;
    EngTensor dst, kept, reduced; // kept and reduced: the two parts of src's pattern, from the same place
    EngRun *run;                  // NULL: a chain by alu
    EngRun *run_bf16;             // of a source that is one run of bf16; NULL: by run
    EngAlu *alu;
    bool from_first, negate;
    float identity;
} Reduce;

static void identities(const Reduce *k, void *out, size_t n) {
    uint32_t bits = k->alu == k->walk.level->eng->alu[ENG_BITS][ALU_AND] ? UINT32_MAX : 0;
    gp_fill(out, k->walk.domain == ENG_F32 ? (const void *)&k->identity : &bits, 4, n);
}

// Byte offset of element i of a row.
static int64_t offset_of(const EngTensor *t, size_t i) {
    int64_t at = 0;
    for (int a = t->naxes - 1; a >= 0; i /= t->axis[a--].n)
        at += (int64_t)(i % t->axis[a].n) * t->axis[a].step;
    return at;
}

static void reduce_runs(const Reduce *k, const EngBlock *b, uint32_t *out, EngBuf *s) {
    EngTensor src = k->reduced;
    identities(k, out, b->rows * b->cols);
    for (uint32_t r = 0; r < b->rows; r++)
        for (size_t j = 0; j < b->cols; j++, out++) {
            src.at = k->reduced.at + offset_of(&k->kept, b->col + j);
            EngBlock part = *b;
            part.row = b->row + r, part.rows = 1, part.col = 0;
            for (; part.col < src.cols; part.col += part.cols) {
                part.cols = src.cols - part.col < ENG_BLOCK ? src.cols - part.col : ENG_BLOCK;
                if (k->run_bf16)
                    k->run_bf16(out, eng_row(&src, &part, part.row) + part.col * 2, part.cols);
                else
                    k->run(out, eng_load(&k->walk, &src, &part, s->x, s), part.cols);
            }
        }
}

static void reduce_chain(const Reduce *k, const EngBlock *b, void *out, EngBuf *s) {
    EngTensor src = k->kept;
    size_t n = b->rows * b->cols, i = 0;
    if (k->from_first) {
        memcpy(out, eng_load(&k->walk, &src, b, s->x, s), n * 4);
        i = 1;
    } else {
        identities(k, out, n);
    }
    for (; i < k->reduced.cols; i++) {
        src.at = k->kept.at + offset_of(&k->reduced, i);
        k->alu(out, out, eng_load(&k->walk, &src, b, s->x, s), n);
    }
}

static void reduce_body(const void *arg, const EngBlock *b, EngBuf *s) {
    const Reduce *k = arg;
    if (k->run)
        reduce_runs(k, b, (uint32_t *)s->z, s);
    else
        reduce_chain(k, b, s->z, s);
    float *z = (float *)s->z;
    for (size_t i = 0; k->negate && i < b->rows * b->cols; i++)
        z[i] = isnan(z[i]) ? z[i] : -z[i];
    eng_store(&k->walk, &k->dst, b, z, s);
}

otrn_status eff_reduce(const EffCall *c) {
    const IsaInst *in = c->in;
    uint32_t kept[5] = {0}, reduced[5] = {0};
    bool last_kept = false;
    for (int a = 1; a < 5; a++) {
        if (isa_count(in->n[a]) == 1)
            continue;
        last_kept = in->d[a] != 0;
        *(last_kept ? &kept[a] : &reduced[a]) = in->n[a];
    }
    bool bits = alu_rows[in->op0].kind == 'B';
    Reduce k = {.walk = eng_walk(c, bits ? ENG_BITS : ENG_F32),
                .dst = eng_tensor(c->dst, in->dtype, kept, in->d),
                .kept = eng_tensor(c->src, in->stype, kept, in->s),
                .reduced = eng_tensor(c->src, in->stype, reduced, in->s),
                .from_first = in->op0 == ALU_SUB,
                .negate = in->flags & ISA_FLAG_NEGATE && !bits,
                .identity = eng_identity(in->op0)};
    const EngLevel *eng = k.walk.level->eng;
    k.alu = eng->alu[k.walk.domain][in->op0];
    k.run = last_kept ? NULL : eng->run[k.walk.domain][in->op0];
    if (k.run && !bits && k.reduced.dtype == DT_BF16 && k.reduced.flat)
        k.run_bf16 = eng->run_bf16[in->op0];
    eng_rows(c, k.dst.cols, k.reduced.cols, reduce_body, &k, sizeof k);
    return OTRN_OK;
}

// --- over partitions ---------------------------------------------------------------------------------------

typedef struct PartReduce {
    EngWalk walk;
    EngTensor dst, src;
    uint32_t rows;
    EngAlu *alu;
    bool average;
} PartReduce;

static __attribute__((noinline)) void part_blocks(const PartReduce *k, size_t begin, size_t end) {
    EngBuf s;
    for (size_t i = begin; i < end; i++) {
        EngBlock b = {.rows = 1, .col = i * ENG_BLOCK, .cols = ENG_BLOCK};
        if (b.col + b.cols > k->src.cols)
            b.cols = k->src.cols - b.col;
        memcpy(s.z, eng_load(&k->walk, &k->src, &b, s.x, &s), b.cols * (k->walk.domain == ENG_INT ? 8 : 4));
        for (b.row = 1; b.row < k->rows; b.row++)
            k->alu(s.z, s.z, eng_load(&k->walk, &k->src, &b, s.x, &s), b.cols);
        float *z = (float *)s.z;
        for (size_t j = 0; k->average && j < b.cols; j++)
            z[j] = isnan(z[j]) ? z[j] : z[j] / (float)k->rows;
        b.row = 0;
        eng_store(&k->walk, &k->dst, &b, z, &s);
    }
}

static void part_task(void *arg, size_t begin, size_t end) {
    HostFp old = host_fp_begin(HOST_FP_IEEE);
    part_blocks(arg, begin, end);
    host_fp_end(old);
}

otrn_status eff_part_reduce(const EffCall *c) {
    const IsaInst *in = c->in;
    bool ints = dtype_is_int(in->stype) && dtype_is_int(in->dtype) && in->op0 != ALU_AVERAGE;
    PartReduce k = {.walk = eng_walk(c, alu_rows[in->op0].kind == 'B' ? ENG_BITS : ints ? ENG_INT : ENG_F32),
                    .dst = eng_tensor(c->dst, in->dtype, in->n, in->d),
                    .src = eng_tensor(c->src, in->stype, in->n, in->s),
                    .rows = isa_count(in->n[0]),
                    .average = in->op0 == ALU_AVERAGE};
    k.alu = k.walk.level->eng->alu[k.walk.domain][in->op0];
    bool one = eng_cross_overlap(&k.dst, 1, &k.src, k.rows); // blocks in order then
    pool_run(one ? NULL : c->pool, (k.src.cols + ENG_BLOCK - 1) / ENG_BLOCK, 1, part_task, &k);
    return OTRN_OK;
}
