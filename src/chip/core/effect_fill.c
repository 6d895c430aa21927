// SPDX-License-Identifier: Apache-2.0
// effect_fill.c — memset and iota: what needs no source.
#include "chip/core/effects.h"

typedef struct Fill {
    EngWalk walk;
    EngTensor dst;
    const IsaInst *in;
} Fill;

static Fill fill_begin(const EffCall *c, EngDomain domain) {
    const IsaInst *in = c->in;
    return (Fill){eng_walk(c, domain),
                  eng_tensor(c->dst, in->dtype, in->n, in->d), in};
}

static void memset_body(const void *arg, const EngBlock *b, EngBuf *s) {
    const Fill *f = arg;
    const EngTensor *t = &f->dst;
    if (t->flat && b->rows == 1) {
        gp_fill(eng_row(t, b, b->row) + (int64_t)b->col * t->bytes, &f->in->imm, t->bytes, b->cols);
        return;
    }
    gp_fill(s->raw, &f->in->imm, t->bytes, b->rows * b->cols);
    eng_scatter(t, b, s->raw);
}

otrn_status eff_memset(const EffCall *c) {
    Fill f = fill_begin(c, ENG_BITS);
    eng_rows(c, f.dst.cols, 1, memset_body, &f, sizeof f);
    return OTRN_OK;
}

void eff_affine(const IsaInst *in, const EngBlock *b, int64_t *out) {
    uint32_t n[5];
    for (int a = 0; a < 5; a++)
        n[a] = isa_count(in->n[a]);
    for (uint32_t r = 0; r < b->rows; r++)
        for (size_t left = b->cols, col = b->col; left;) {
            size_t at = col / n[4], first = col % n[4];
            uint64_t base = (uint64_t)(int64_t)in->imm + (uint64_t)(b->row + r) * (uint64_t)(int64_t)in->t[0];
            for (int a = 3; a > 0; at /= n[a--])
                base += at % n[a] * (uint64_t)(int64_t)in->t[a];
            size_t run = n[4] - first < left ? n[4] - first : left;
            for (size_t i = 0; i < run; i++)
                out[i] = (int32_t)(uint32_t)(base + (first + i) * (uint64_t)(int64_t)in->t[4]);
            out += run, left -= run, col += run;
        }
}

static void iota_body(const void *arg, const EngBlock *b, EngBuf *s) {
    const Fill *f = arg;
    eff_affine(f->in, b, (int64_t *)s->z);
    eng_store(&f->walk, &f->dst, b, s->z, s);
}

otrn_status eff_iota(const EffCall *c) {
    Fill f = fill_begin(c, ENG_INT);
    eng_rows(c, f.dst.cols, 1, iota_body, &f, sizeof f);
    return OTRN_OK;
}
