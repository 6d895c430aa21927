// SPDX-License-Identifier: Apache-2.0
// flow_foot.c — footprints: partition memories as bits per stretch of 256 bytes, HBM as a list of stretches.
#include "chip/host/flow_foot.h"

#include <string.h>

void foot_clear(Foot *f) {
    memset(f, 0, offsetof(Foot, hbm));
}

static uint64_t bits_of(int64_t first, int64_t last) { // of one word, both included
    return (~(uint64_t)0 << first) & (~(uint64_t)0 >> (63 - last));
}

void foot_part(Foot *f, int space, int64_t lo, int64_t hi, bool is_write) {
    int64_t first = lo / FOOT_GRAIN, last = (hi - 1) / FOOT_GRAIN;
    uint64_t *words = space == SPACE_SBUF ? f->sbuf[is_write] : &f->psum[is_write];
    for (int64_t w = first / 64; w <= last / 64; w++)
        words[w] |= bits_of(w == first / 64 ? first % 64 : 0, w == last / 64 ? last % 64 : 63);
}

void foot_hbm(Foot *f, const FootHbm *h) {
    f->writes_hbm |= h->is_write;
    if (f->nhbm == FOOT_HBM)
        f->all_hbm = true;
    else
        f->hbm[f->nhbm++] = *h;
}

// Axis 0 as rows with a pitch where the rest stays inside it, but for axes that go on by whole rows.
FootHbm foot_stretch(const IsaAccess *a, int64_t terms, uint32_t seg) {
    int64_t bytes = (int64_t)dtype_bytes(a->dtype), lo = (int64_t)addr_off(a->addr) + terms, hi = lo + bytes;
    int64_t pitch = a->stride[0] * bytes, row_lo = 0, row_hi = bytes; // of a row, from its first byte
    pitch = pitch < 0 ? -pitch : pitch;
    for (int i = 0; i < ISA_AXES; i++) {
        int64_t step = a->stride[i] * bytes, reach = (int64_t)(a->n[i] - 1) * step;
        *(reach < 0 ? &lo : &hi) += reach;
        if (i && !(pitch && step % pitch == 0))
            *(reach < 0 ? &row_lo : &row_hi) += reach;
    }
    FootHbm h = {.seg = seg, .is_write = a->is_write, .lo = lo, .hi = hi, .span = row_hi - row_lo};
    bool aligned = (lo - (int64_t)addr_off(a->addr) - terms - row_lo) % (pitch ? pitch : 1) == 0; // rows are counted from lo
    h.pitch = aligned && h.span <= pitch ? pitch : 0;
    return h;
}

static void hbm_access(Foot *f, const IsaAccess *a, int64_t terms, const uint32_t *same_seg) {
    FootHbm h = foot_stretch(a, terms, same_seg[addr_seg(a->addr)]);
    foot_hbm(f, &h);
}

void foot_inst(Foot *f, const IsaInst *in, const int64_t *regs, const uint32_t *same_seg) {
    IsaAccess access[ISA_ACCESS_MAX];
    int n = isa_accesses(in, isa_row_mask(in->op), access);
    for (int i = 0; i < n; i++) {
        const IsaAccess *a = &access[i];
        int64_t terms = 0;
        for (int k = 0; a->reg && k < 2 && a->reg[k]; k++)
            terms += regs[a->reg[k] - 1] * a->mul[k];
        if (addr_space(a->addr) == SPACE_HBM) {
            hbm_access(f, a, terms, same_seg);
            continue;
        }
        __int128 lo, hi;
        isa_access_extent(a, &lo, &hi);
        int64_t at = (int64_t)addr_poff(a->addr) + terms;
        foot_part(f, addr_space(a->addr), at + (int64_t)lo, at + (int64_t)hi, a->is_write);
    }
}

void foot_join(Foot *f, const Foot *with) {
    for (int w = 0; w < 2; w++) {
        for (uint32_t i = 0; i < FOOT_SBUF_WORDS; i++)
            f->sbuf[w][i] |= with->sbuf[w][i];
        f->psum[w] |= with->psum[w];
    }
    f->registers |= with->registers;
    f->all_hbm |= with->all_hbm;
    for (uint32_t i = 0; i < with->nhbm; i++)
        foot_hbm(f, &with->hbm[i]);
}

// --- meeting ---------------------------------------------------------------------------------------------

bool foot_stretches_meet(const FootHbm *x, const FootHbm *y) {
    if (x->seg != y->seg || !(x->is_write | y->is_write) || x->lo >= y->hi || y->lo >= x->hi)
        return false;
    if (!x->pitch || x->pitch != y->pitch)
        return true;
    int64_t from = (y->lo - x->lo) % x->pitch; // where y's rows begin, seen from x's
    from += from < 0 ? x->pitch : 0;
    return from < x->span || from + y->span > x->pitch;
}

static bool hbm_meet(const Foot *x, const Foot *y) {
    if (!(x->writes_hbm | y->writes_hbm) || !x->nhbm || !y->nhbm)
        return false;
    if (x->all_hbm || y->all_hbm)
        return true;
    for (uint32_t i = 0; i < x->nhbm; i++)
        for (uint32_t j = 0; j < y->nhbm; j++)
            if (foot_stretches_meet(&x->hbm[i], &y->hbm[j]))
                return true;
    return false;
}

bool foot_meet(const Foot *x, const Foot *y) {
    uint64_t both = (x->psum[1] & (y->psum[0] | y->psum[1])) | (x->psum[0] & y->psum[1]);
    for (uint32_t i = 0; i < FOOT_SBUF_WORDS; i++)
        both |= (x->sbuf[1][i] & (y->sbuf[0][i] | y->sbuf[1][i])) | (x->sbuf[0][i] & y->sbuf[1][i]);
    return both || (x->registers && y->registers) || hbm_meet(x, y);
}

bool foot_spoils(const Foot *writer, const Foot *reader) {
    uint64_t both = 0;
    for (uint32_t i = 0; i < FOOT_SBUF_WORDS; i++)
        both |= writer->sbuf[1][i] & reader->sbuf[0][i];
    return both || hbm_meet(writer, reader);
}
