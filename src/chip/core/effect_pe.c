// SPDX-License-Identifier: Apache-2.0
// effect_pe.c — the tensor engine's rarer forms: tiles of the array, double rows, transposes, wide moving patterns,
// BF16 in PSUM, MX data. Plain products of the whole array go another way (matmul_run.c); the sums are the same.
//
// Each tile keeps a copy of its weights as they came (its slot is the quarter it begins at), which the host kernels
// pack when a product needs them.
//   double_row   the first rows of all cells, then the second ones: two products into one sum
//   transpose    dst[m][j] = stationary[k][m], its bits, k the row in which column j of src is not zero
//   MX           per group of 8 partitions x 4 values: even and odd products summed apart (order 4 * (k mod 8) + q),
//                their sum scaled by 2^(both scales), then added to PSUM, groups ascending
#include "chip/core/effects.h"

#include <math.h>

#include "chip/host/matmul.h"

static PeSlot *slot_of(const EffCall *c) { return &c->state->pe->slot[c->in->trow / 32][c->in->tcol / 32]; }

// Rows of n elements, `step` bytes apart, as they are.
static void rows_copy(uint8_t *to, EffOperand o, uint32_t rows, uint32_t n, int64_t step, size_t bytes) {
    for (uint32_t i = 0; i < rows; i++)
        for (uint32_t j = 0; j < n; j++, to += bytes)
            memcpy(to, o.at + i * o.pitch + j * step, bytes);
}

otrn_status eff_ldweights(const EffCall *c) {
    const IsaInst *in = c->in;
    PeSlot *w = slot_of(c);
    size_t bytes = dtype_bytes(in->stype);
    w->k = isa_count(in->n[0]), w->m = isa_count(in->n[1]), w->stype = in->stype;
    w->halves = in->flags & ISA_FLAG_DOUBLE_ROW ? 2 : 1;
    EffOperand o = c->src;
    for (uint32_t h = 0; h < w->halves; h++, o.at += in->step * (int64_t)bytes)
        rows_copy(w->data + h * w->k * w->m * bytes, o, w->k, w->m, in->s[1] * (int64_t)bytes, bytes);
    return OTRN_OK;
}

// --- products ------------------------------------------------------------------------------------------------

typedef struct Product { // one slab: n columns
    float *dst;
    size_t dst_pitch;
    int32_t dst_stride;
    const uint8_t *src;
    uint32_t n;
    bool accumulate;
} Product;

static void multiply(const EffCall *c, const Product *p) {
    const IsaInst *in = c->in;
    const PeSlot *w = slot_of(c);
    size_t bytes = dtype_bytes(w->stype);
    _Alignas(64) float panels[MM_PANEL_BYTES / sizeof(float)];
    MmStationary st = {.panels = panels};
    MmCall call = {.st = &st, .dst = p->dst, .dst_pitch = p->dst_pitch, .dst_stride = p->dst_stride,
                   .src_pitch = (size_t)c->src.pitch, .src_stride = in->s[1], .stype = in->stype};
    for (uint32_t h = 0; h < w->halves; h++) {
        MmLoad load = {.src = w->data + h * w->k * w->m * bytes, .pitch = w->m * bytes, .stride = 1,
                       .stype = w->stype, .k = w->k, .m = w->m};
        mm_load(c->level, &st, &load);
        call.src = p->src + h * in->step * (int64_t)dtype_bytes(in->stype);
        call.accumulate = p->accumulate || h;
        mm_run(c->pool, &call, p->n);
    }
}

// PSUM holds BF16: up, product in fp32, down again. Columns in pieces that fit the stack.
#define PIECE 128
static void multiply_narrow(const EffCall *c, Product p, const EngTensor *dst, const EngWalk *w, size_t col) {
    float sum[PARTITIONS][PIECE];
    uint32_t m = slot_of(c)->m, n = p.n;
    EngBuf s;
    p.dst = sum[0], p.dst_pitch = sizeof sum[0], p.dst_stride = 1;
    for (uint32_t j = 0; j < n; j += PIECE) {
        EngBlock b = {.rows = 1, .col = col + j, .cols = n - j < PIECE ? n - j : PIECE};
        for (b.row = 0; p.accumulate && b.row < m; b.row++)
            memcpy(sum[b.row], eng_load(w, dst, &b, s.x, &s), b.cols * 4);
        p.n = (uint32_t)b.cols;
        multiply(c, &p);
        for (b.row = 0; b.row < m; b.row++)
            eng_store(w, dst, &b, sum[b.row], &s);
        p.src += (int64_t)b.cols * c->in->s[1] * (int64_t)dtype_bytes(c->in->stype);
    }
}

// Bits of the weights' column m; a wider float takes the value, a wider word of fp8 has zeros above.
static void transpose_slab(const EffCall *c, uint8_t *dst, const uint8_t *src, int dtype) {
    const IsaInst *in = c->in;
    const PeSlot *w = slot_of(c);
    size_t bytes = dtype_bytes(w->stype), out = dtype_bytes(dtype);
    for (uint32_t j = 0; j < isa_count(in->n[1]); j++) {
        uint32_t k = 0;
        while (k < w->k && dtype_to_f64(in->stype, src + k * c->src.pitch +
                                                       (int64_t)j * in->s[1] * (int64_t)dtype_bytes(in->stype)) == 0)
            k++;
        for (uint32_t m = 0; m < w->m; m++) {
            uint8_t *to = dst + m * c->dst.pitch + (int64_t)j * in->d[1] * (int64_t)out;
            const uint8_t *from = w->data + (k * w->m + m) * bytes;
            memset(to, 0, out);
            if (k < w->k && (out == bytes || out == 2))
                memcpy(to, from, bytes);
            else if (k < w->k)
                dtype_from_f64(dtype, to, dtype_to_f64(w->stype, from));
        }
    }
}

otrn_status eff_matmul(const EffCall *c) {
    const IsaInst *in = c->in;
    int dtype = in->dtype ? in->dtype : DT_F32;
    size_t out = dtype_bytes(dtype), bytes = dtype_bytes(in->stype);
    const uint32_t counts[5] = {0, in->n[3], in->n[1]};
    EngTensor dst = eng_tensor(c->dst, dtype, counts, (const int32_t[5]){0, in->d[3], in->d[1]});
    EngWalk w = eng_walk(c, ENG_F32);
    for (uint32_t i = 0; i < isa_count(in->n[3]); i++) {
        uint8_t *to = c->dst.at + (int64_t)i * in->d[3] * (int64_t)out;
        const uint8_t *from = c->src.at + (int64_t)i * in->s[3] * (int64_t)bytes;
        Product p = {.dst = (float *)to, .dst_pitch = (size_t)c->dst.pitch, .dst_stride = in->d[1], .src = from,
                     .n = isa_count(in->n[1]), .accumulate = in->flags & ISA_FLAG_ACCUMULATE};
        if (in->flags & ISA_FLAG_TRANSPOSE)
            transpose_slab(c, to, from, dtype);
        else if (dtype == DT_F32)
            multiply(c, &p);
        else
            multiply_narrow(c, p, &dst, &w, (size_t)i * p.n);
    }
    return OTRN_OK;
}

// --- MX --------------------------------------------------------------------------------------------------

// Scale of partition k, column j: a byte per 8 partitions, in the first rows of each 32.
static const uint8_t *scale_at(EffOperand o, uint32_t k, uint32_t j) {
    return o.at + (int64_t)(k / 32 * 32 + k % 32 / 8) * o.pitch + j;
}

otrn_status eff_ldweights_mx(const EffCall *c) {
    const IsaInst *in = c->in;
    PeSlot *w = slot_of(c);
    w->k = isa_count(in->n[0]), w->m = isa_count(in->n[1]), w->stype = in->stype, w->halves = 1;
    rows_copy(w->data, c->src, w->k, w->m, in->s[1] * 4, 4);
    for (uint32_t g = 0; g < w->k / 8; g++)
        for (uint32_t m = 0; m < w->m; m++)
            w->scale[g][m] = *scale_at(c->src1, g * 8, m);
    return OTRN_OK;
}

static float pow2(int e) { // -127…127
    uint32_t bits = e > -127 ? (uint32_t)(e + 127) << 23 : 0x400000;
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

static float scaled(float v, int code_a, int code_b) { // by 2^(a - 127) * 2^(b - 127), in two exact halves
    if (code_a == 255 || code_b == 255)
        return NAN;
    int e = code_a + code_b - 254, half = e / 2;
    return v * pow2(half) * pow2(e - half);
}

typedef struct Mx {
    const EffCall *call;
    EngWalk walk;
    EngTensor dst;
    float weights[ISA_PE_COLS][ISA_PE_ROWS * 4]; // [m][group * 32 + 4 * (k mod 8) + q]
} Mx;

#define MX_COLS 32
static __attribute__((noinline)) void mx_columns(const Mx *x, size_t begin, size_t end) {
    const EffCall *c = x->call;
    const IsaInst *in = c->in;
    const PeSlot *w = &c->state->pe->slot[in->trow / 32][in->tcol / 32];
    const EngLevel *eng = x->walk.level->eng;
    float v[ISA_PE_ROWS * 4][MX_COLS], sum[MX_COLS], out[MX_COLS];
    EngBuf s;
    for (size_t block = begin; block < end; block++) {
        EngBlock b = {.rows = 1, .col = block * MX_COLS, .cols = MX_COLS};
        if (b.col + b.cols > x->dst.cols)
            b.cols = x->dst.cols - b.col;
        for (uint32_t k = 0; k < w->k; k++)
            for (size_t j = 0; j < b.cols; j++) {
                float four[4];
                x->walk.level->widen[in->stype](
                    four, c->src.at + k * c->src.pitch + (int64_t)(b.col + j) * in->s[1] * 4, 4);
                for (int q = 0; q < 4; q++)
                    v[k * 4 + q][j] = four[q];
            }
        for (uint32_t m = 0; m < w->m; m++) {
            b.row = m;
            memset(sum, 0, sizeof sum);
            if (in->flags & ISA_FLAG_ACCUMULATE)
                memcpy(sum, eng_load(&x->walk, &x->dst, &b, s.x, &s), b.cols * 4);
            for (uint32_t g = 0; g < w->k / 8; g++) {
                eng->mx(out, &x->weights[m][g * 32], v[g * 32], MX_COLS, b.cols);
                for (size_t j = 0; j < b.cols; j++)
                    sum[j] += scaled(out[j], w->scale[g][m],
                                     *scale_at(c->src1, g * 8, (uint32_t)(b.col + j)));
            }
            for (size_t j = 0; j < b.cols; j++)
                sum[j] = isnan(sum[j]) ? NAN : sum[j];
            eng_store(&x->walk, &x->dst, &b, sum, &s);
        }
    }
}

static void mx_task(void *arg, size_t begin, size_t end) {
    HostFp old = host_fp_begin(HOST_FP_IEEE);
    mx_columns(arg, begin, end);
    host_fp_end(old);
}

otrn_status eff_matmul_mx(const EffCall *c) {
    const IsaInst *in = c->in;
    const PeSlot *w = slot_of(c);
    Mx x = {.call = c, .walk = eng_walk(c, ENG_F32),
            .dst = eng_tensor(c->dst, in->dtype ? in->dtype : DT_F32, (const uint32_t[5]){0, in->n[1]}, in->d)};
    for (uint32_t k = 0; k < w->k; k++)
        for (uint32_t m = 0; m < w->m; m++) {
            float four[4];
            x.walk.level->widen[w->stype](four, w->data + (k * w->m + m) * 4, 4);
            memcpy(&x.weights[m][k * 4], four, sizeof four);
        }
    pool_run(c->pool, (x.dst.cols + MX_COLS - 1) / MX_COLS, 1, mx_task, &x);
    return OTRN_OK;
}

// --- quantize_mx ---------------------------------------------------------------------------------------------

// The scale is 2^(floor(log2 of the largest) - (Emax - 1)), Emax 8 (E4M3) or 15 (E5M2); 2^-127 for a block of zeros; a
// block with an infinity or NaN has the scale NaN.
static int scale_code(uint32_t largest, int emax) { // bits of |largest|
    if (largest >= 0x7f800000)
        return 255;
    int e = (int)(largest >> 23) - 127; // subnormal bf16 and below: the least scale anyway
    int code = e - (emax - 1) + 127;
    return !largest || code < 0 ? 0 : code;
}

otrn_status eff_quant_mx(const EffCall *c) {
    const IsaInst *in = c->in;
    EngWalk w = eng_walk(c, ENG_F32);
    const uint32_t n[5] = {0, in->n[1]};
    EngTensor src = eng_tensor(c->src, in->stype, n, in->s), dst = eng_tensor(c->dst, in->dtype, n, in->d);
    int emax = in->dtype == DT_F8E5M2 ? 15 : 8;
    for (uint32_t k = 0; k < isa_count(in->n[0]); k += 8)
        for (uint32_t j = 0; j < in->n[1]; j += 4) {
            float v[8][4];
            uint32_t largest = 0;
            for (uint32_t p = 0; p < 8; p++)
                for (uint32_t q = 0; q < 4; q++) {
                    uint32_t bits;
                    v[p][q] = eng_get(&w, &src, NULL, k + p, j + q);
                    memcpy(&bits, &v[p][q], 4);
                    bits &= 0x7fffffff;
                    largest = bits > largest ? bits : largest;
                }
            int code = scale_code(largest, emax);
            *(uint8_t *)(uintptr_t)scale_at(c->res, k, j / 4) = (uint8_t)code;
            for (uint32_t p = 0; p < 8; p++)
                for (uint32_t q = 0; q < 4; q++)
                    eng_put(&w, &dst, NULL, k + p, j + q, code == 255 ? NAN : scaled(v[p][q], 254 - code, 127));
        }
    return OTRN_OK;
}
