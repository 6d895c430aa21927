// SPDX-License-Identifier: Apache-2.0
// nest.c — nests joined, walked, and put out as transfers.
#include "tile/nest.h"

#define DMA_AXES 4

void nest_strides(const HloType *t, int64_t *out) {
    int64_t s = 1;
    for (int i = t->rank; i-- > 0; s *= t->dims[i])
        out[i] = s;
}

void nest_join(Nest *n) {
    int rank = 0;
    for (int i = 0; i < n->rank; i++) {
        Axis a = n->axis[i], *outer = rank ? &n->axis[rank - 1] : NULL;
        assert(a.n >= 0);
        if (a.n == 1)
            continue;
        if (outer && outer->src == a.src * a.n && outer->dst == a.dst * a.n)
            *outer = (Axis){outer->n * a.n, a.src, a.dst};
        else
            n->axis[rank++] = a;
    }
    n->rank = rank;
}

void nest_swap(Nest *n) {
    assert(n->rank <= OTRN_MAX_RANK);
    for (int i = 0; i < n->rank; i++)
        n->axis[i] = (Axis){n->axis[i].n, n->axis[i].dst, n->axis[i].src};
    int64_t src = n->src;
    n->src = n->dst, n->dst = src;
}

int64_t nest_size(const Nest *n) {
    int64_t size = 1;
    for (int i = 0; i < n->rank; i++)
        size *= n->axis[i].n;
    return size;
}

bool nest_next(const Nest *n, int outer, int64_t *at) {
    assert(outer <= n->rank);
    for (int i = outer; i-- > 0;) {
        if (++at[i] < n->axis[i].n)
            return true;
        at[i] = 0;
    }
    return false;
}

void nest_at(const Nest *n, int outer, const int64_t *at, int64_t *src, int64_t *dst) {
    assert(outer <= n->rank);
    *src = n->src, *dst = n->dst;
    for (int i = 0; i < outer; i++)
        *src += at[i] * n->axis[i].src, *dst += at[i] * n->axis[i].dst;
}

void nest_put(Emit *e, const Nest *n, int engine, int queue, uint64_t src, uint64_t dst, int dtype, const NestTerm *term) {
    int outer = n->rank > DMA_AXES ? n->rank - DMA_AXES : 0, first = DMA_AXES - (n->rank - outer);
    int64_t at[OTRN_MAX_RANK] = {0}, size = (int64_t)dtype_bytes(dtype);
    assert(n->rank >= 0);
    assert(n->rank <= OTRN_MAX_RANK);
    assert(queue < QUEUE_COUNT);
    do {
        int64_t from, to;
        nest_at(n, outer, at, &from, &to);
        View s = VIEW(mem_hbm(src + (uint64_t)(from * size)), dtype, {1}, {1}, {1}, {1}), d = VIEW(mem_hbm(dst + (uint64_t)(to * size)), dtype, {1}, {1}, {1}, {1});
        for (int i = outer; i < n->rank; i++) {
            Axis a = n->axis[i];
            s.at[first + i - outer] = (ViewAxis){a.n, a.src}, d.at[first + i - outer] = (ViewAxis){a.n, a.dst};
        }
        IsaInst in = isa_dma(engine, queue, d, s);
        for (int i = 0; term && i < 2; i++)
            (term->on_dst ? in.reg_d : in.reg_s)[i] = term->reg[i], (term->on_dst ? in.mul_d : in.mul_s)[i] = term->mul[i];
        emit_inst(e, in, term ? term->reads : NULL, term ? term->nreads : 0, NULL, 0);
    } while (nest_next(n, outer, at));
}
