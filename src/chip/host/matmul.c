// SPDX-License-Identifier: Apache-2.0
// matmul.c — the tensor engine: packs operands into panels and walks tiles.
//
// ldweights packs (and widens) the stationary matrix into blocks of columns, k rows each. A
// matmul copies the moving operand panel by panel into a buffer that fits L1, widening it there,
// and runs every `rows` columns of the blocks against it, while the next panel is fetched ahead a few
// rows per tile. Operands that lie in blocks already (chip.h) are used where they are. Edges
// go through a small full-size tile: padding is computed and thrown away. Columns are independent,
// so any split over threads gives the same bits.
#include "chip/host/matmul.h"

#include <assert.h>
#include <string.h>

// Columns per chunk of a split instruction: whole panels, microseconds of work.
#define SPLIT_COLS 64
#define SPLIT_COLS_TILES 128

static const MmKernels *level_kernels(HostLevel level) {
#if defined(__x86_64__)
    if (level >= HOST_AVX512)
        return &mm_avx512;
    if (level == HOST_AVX2)
        return &mm_avx2;
#endif
    (void)level;
    return NULL; // portable
}

void mm_widen_block(const MmKernels *kn, float *out, uint32_t out_cols, const MmOperand *o,
                    uint32_t rows, uint32_t col, uint32_t cols) {
    uint32_t whole = 0;
    const uint8_t *at = o->at + (ptrdiff_t)col * o->step;
    if (o->step == (ptrdiff_t)dtype_bytes(o->stype)) {
        whole = cols / kn->lanes * kn->lanes;
        if (whole)
            kn->widen(out, out_cols, at, o->pitch, o->stype, rows, whole);
    }
    if (whole == out_cols)
        return;
    if (!whole && cols < out_cols) // a sum's few columns: the padding is most of the block
        memset(out, 0, (size_t)rows * out_cols * sizeof *out);
    for (uint32_t i = 0; i < rows; i++, at += o->pitch, out += out_cols) {
        for (uint32_t j = whole; j < cols; j++) {
            const uint8_t *from = at + (ptrdiff_t)j * o->step;
            if (o->stype == DT_F32)
                memcpy(out + j, from, sizeof *out);
            else
                out[j] = mm_widen(o->stype, from);
        }
        if (whole)
            memset(out + cols, 0, (out_cols - cols) * sizeof *out);
    }
}

static uint32_t round_up(uint32_t n, uint32_t to) {
    return (n + to - 1) / to * to;
}

// n rows of one block of `cols` columns, a constant so that the copies become vector moves.
static inline __attribute__((always_inline)) void
block_copy(float *out, const float *in, uint32_t width, uint32_t n, uint32_t cols) {
    for (uint32_t r = 0; r < n; r++)
        memcpy(out + r * cols, in + r * width, cols * sizeof(float));
}

#define LOAD_ROWS 8 // rows widened at a time: the block stays in L1, panel lines are written whole

// n rows of fp32 in whole blocks, which need no widening.
static void load_lines(MmStationary *st, const MmOperand *o, uint32_t i, uint32_t n) {
    for (uint32_t r = 0; r < n; r++) {
        const float *from = (const float *)(o->at + r * o->pitch);
        float *out = st->panels + (i + r) * MM_BLOCK_COLS;
        for (uint32_t m = 0; m < st->m; m += MM_BLOCK_COLS, out += MM_BLOCK_FLOATS)
            memcpy(out, from + m, MM_BLOCK_COLS * sizeof(float));
    }
}

// Fewer columns of fp32 than a block has, the others zero.
static void load_few(const MmKernels *kn, MmStationary *st, const MmOperand *o) {
    memset(st->panels, 0, (size_t)st->k * kn->block * sizeof(float));
    for (uint32_t i = 0; i < st->k; i++)
        for (uint32_t m = 0; m < st->m; m++)
            memcpy(st->panels + i * kn->block + m, o->at + i * o->pitch + (ptrdiff_t)m * o->step, sizeof(float));
}

static void load_panels(const MmKernels *kn, MmStationary *st, const MmOperand *o) {
    if (st->m <= MM_THIN_ROWS && o->stype == DT_F32) {
        load_few(kn, st, o);
        return;
    }
    bool lines = kn->block == MM_BLOCK_COLS && o->stype == DT_F32 && o->step == 4 && st->m % MM_BLOCK_COLS == 0;
    _Alignas(64) float buf[LOAD_ROWS * ISA_PE_COLS];
    uint32_t width = round_up(st->m, kn->lanes), block = kn->block;
    assert(block == MM_BLOCK_COLS || block == 4);
    for (uint32_t i = 0; i < st->k; i += LOAD_ROWS) {
        uint32_t n = st->k - i < LOAD_ROWS ? st->k - i : LOAD_ROWS;
        MmOperand part = *o;
        part.at += i * o->pitch;
        MmFetch ahead = {.row = part.at + n * o->pitch, .pitch = o->pitch,
                       .bytes = st->m * dtype_bytes(o->stype),
                       .rows = st->k - i - n < n ? st->k - i - n : n};
        mm_fetch_lines(&ahead, UINT32_MAX, true);
        if (lines) {
            load_lines(st, &part, i, n);
            continue;
        }
        mm_widen_block(kn, buf, width, &part, n, 0, st->m);
        for (uint32_t m = 0; m < st->m; m += block) { // width covers the last, padded block
            float *out = st->panels + m / block * kn->block_step + i * block;
            if (block == MM_BLOCK_COLS)
                block_copy(out, buf + m, width, n, MM_BLOCK_COLS);
            else
                block_copy(out, buf + m, width, n, 4);
        }
    }
}

bool mm_takes_blocks(HostLevel level, int stype) {
    return (stype == DT_F32 && level_kernels(level) && level_kernels(level)->block == MM_BLOCK_COLS) ||
           (stype == DT_BF16 && mm_in_pairs(&(MmStationary){.level = level, .stype = stype}));
}

static void load_set(HostLevel level, MmStationary *st, const MmLoad *load) {
    assert(load->k <= ISA_PE_ROWS);
    assert(load->m <= ISA_PE_COLS);
    assert(dtype_on_tensor_engine(load->stype));
    assert(!load->blocks || mm_takes_blocks(level, load->stype));
    st->k = load->k, st->m = load->m, st->stype = load->stype, st->level = level;
}

static void load_blocks(MmStationary *st, const MmLoad *load) {
    size_t step = mm_block_step(load->stype), bytes = mm_block_bytes(load->stype, load->k);
    for (uint32_t i = 0; i * MM_BLOCK_COLS < load->m; i++)
        memcpy(st->panels + i * step, (const float *)load->src + i * step, bytes);
}

void mm_load_there(HostLevel level, MmStationary *st, const MmLoad *load) {
    if (!load->blocks) {
        mm_load(level, st, load);
        return;
    }
    load_set(level, st, load);
    st->panels = (float *)(uintptr_t)load->src;
}

void mm_load(HostLevel level, MmStationary *st, const MmLoad *load) {
    load_set(level, st, load);
    if (load->blocks) {
        load_blocks(st, load);
        return;
    }
    const MmKernels *kn = level_kernels(level);
    MmOperand o = mm_operand(load->src, load->pitch, load->stype, load->stride);
#if defined(__x86_64__)
    if (mm_in_pairs(st)) {
        mm_load_pairs(st, &o);
        return;
    }
#endif
    if (mm_in_tiles(st))
        mm_load_amx(st, &o);
    else if (kn)
        load_panels(kn, st, &o);
    else
        mm_load_portable(st, load->src, load->pitch, load->stride);
}

// A tile at an edge, or into a strided result: `rows` and `cols` of it are wanted, c and out `stride` floats apart.
static void tile_edge(const MmKernels *kn, MmTile *tile, const MmPanel *t, const float *s, const float *c, float *out,
                      uint32_t nv, uint32_t rows, uint32_t cols, int32_t stride) {
    _Alignas(64) float tmp[MM_ROWS_MAX * MM_COLS_MAX] = {0};
    uint32_t width = nv * kn->lanes;
    for (uint32_t r = 0; t->accumulate && r < rows; r++) {
        const float *from = (const float *)((const uint8_t *)c + r * t->c_pitch);
        for (uint32_t j = 0; j < cols; j++)
            tmp[r * width + j] = from[(ptrdiff_t)j * stride];
    }
    MmPanel whole = *t;
    whole.c_pitch = whole.out_pitch = width * sizeof(float);
    tile(&whole, s, tmp, tmp);
    for (uint32_t r = 0; r < rows; r++) {
        float *to = (float *)((uint8_t *)out + r * t->out_pitch);
        for (uint32_t j = 0; j < cols; j++)
            to[(ptrdiff_t)j * stride] = tmp[r * width + j];
    }
}

// Vectors of columns in the next panel. Four left are better taken as two and two than as three
// and one: a single vector per row has too few chains to hide the latency of an FMA.
static uint32_t panel_vecs(const MmKernels *kn, uint32_t cols) {
    uint32_t left = (cols + kn->lanes - 1) / kn->lanes;
    if (kn->vecs == 3 && left == 4)
        return 2;
    return left < kn->vecs ? left : kn->vecs;
}

// Whole lines of fp32 need no copy: the first block brings them to L1, the others find them there, and the
// padded pitch spreads the rows over all sets of it. Measured: 0.91 of peak against 0.88 on Zen 4; on Sapphire
// Rapids 0.95 against 0.91 in cache, but 0.70 against 0.80 from beyond it, so Intel's get the copy.
static bool reads_in_place(const MmKernels *kn) {
#if defined(__x86_64__)
    return kn->in_place && !__builtin_cpu_is("intel");
#else
    return kn->in_place;
#endif
}

static bool operand_in_place(const MmOperand *o, const float *v) {
    return o->stype == DT_F32 && o->step == 4 && !(((uintptr_t)v | o->pitch) & 63) && (o->pitch / 64 & 1);
}

typedef struct Panel { // columns [j, j + cols) of the moving operand, as the tiles take them
    MmPanel of;
    uint32_t cols, nv;
    MmTile *tile;
} Panel;

static Panel panel_make(const MmKernels *kn, const MmCall *c, const MmOperand *o, uint32_t j, uint32_t j1, float *buf) {
    const MmStationary *st = c->st;
    uint32_t nv = panel_vecs(kn, j1 - j), width = nv * kn->lanes;
    Panel p = {.nv = nv, .cols = j1 - j < width ? j1 - j : width, .tile = (mm_is_wide(c) ? kn->wide : kn->narrow)[nv - 1]};
    p.of = (MmPanel){.v_next = kn->lanes, .c_pitch = c->dst_pitch, .out_pitch = c->out ? c->out_pitch : c->dst_pitch,
                     .k = st->k, .accumulate = c->accumulate, .goes_on = c->goes_on};
#if defined(__x86_64__)
    if (mm_in_pairs(st))
        p.tile = mm_pair_tiles[nv - 1];
#endif
    if (c->blocks) {
        p.of.v_next = mm_block_step(c->stype);
        p.of.v = (const float *)c->src + j / MM_BLOCK_COLS * p.of.v_next;
        p.of.v_step = MM_BLOCK_COLS;
        return p;
    }
    p.of.v = (const float *)(o->at + (ptrdiff_t)j * o->step), p.of.v_step = o->pitch / sizeof(float);
#if defined(__x86_64__)
    if (mm_in_pairs(st)) {
        mm_pack_pairs(buf, o, st->k, j, p.cols);
        p.of.v = buf, p.of.v_step = MM_BLOCK_COLS, p.of.v_next = MM_BLOCK_FLOATS / 2;
        return p;
    }
#endif
    if (!reads_in_place(kn) || p.cols < width || !operand_in_place(o, p.of.v)) {
        mm_widen_block(kn, buf, width, o, st->k, j, p.cols);
        p.of.v = buf, p.of.v_step = width;
    }
    return p;
}

// What comes behind the panel that begins at column j: of this operand, or of the next product's.
static MmFetch next_fetch(const MmCall *c, const MmOperand *o, uint32_t j0, uint32_t j1, uint32_t next, uint32_t width) {
    const void *src = next < j1 ? c->src : c->next_src;
    uint32_t j = next < j1 ? next : j0;
    if (!src)
        return (MmFetch){0};
    if (c->blocks)
        return mm_blocks_fetch((const float *)src + j / MM_BLOCK_COLS * mm_block_step(c->stype), c->stype, c->st->k, width);
    return (MmFetch){.row = (const uint8_t *)src + (ptrdiff_t)j * o->step, .pitch = o->pitch,
                     .bytes = width * dtype_bytes(o->stype), .rows = c->st->k};
}

static __attribute__((noinline)) void multiply_panels(const MmKernels *kn, const MmCall *c,
                                                      uint32_t j0, uint32_t j1) {
    const MmStationary *st = c->st;
    MmOperand o = mm_operand(c->src, c->src_pitch, c->stype, c->src_stride);
    uint32_t blocks = (st->m + kn->rows - 1) / kn->rows;
    uint32_t panels = (j1 - j0 + kn->vecs * kn->lanes - 1) / (kn->vecs * kn->lanes);
    size_t block_step = mm_in_pairs(st) ? MM_BLOCK_FLOATS / 2 : kn->block_step;
    MmFetch load = mm_load_fetch(c->next_load);
    uint32_t load_lines = mm_fetch_share(&load, panels * blocks);
    float *out = c->out ? c->out : c->dst;
    _Alignas(64) float buf[ISA_PE_ROWS * MM_COLS_MAX];
    for (uint32_t j = j0; j < j1;) {
        Panel p = panel_make(kn, c, &o, j, j1, buf);
        MmFetch next = next_fetch(c, &o, j0, j1, j + p.cols, p.nv * kn->lanes);
        uint32_t next_lines = mm_fetch_share(&next, blocks);
        for (uint32_t b = 0; b < blocks; b++) {
            mm_fetch_lines(&next, next_lines, kn->fetch_near);
            mm_fetch_lines(&load, load_lines, false);
            uint32_t m = b * kn->rows, rows = st->m - m < kn->rows ? st->m - m : kn->rows;
            const float *s = st->panels + m / kn->block * block_step + m % kn->block;
            float *from = (float *)((uint8_t *)c->dst + m * c->dst_pitch) + (ptrdiff_t)j * c->dst_stride;
            float *to = (float *)((uint8_t *)out + m * p.of.out_pitch) + (ptrdiff_t)j * c->dst_stride;
            if (rows == kn->rows && p.cols == p.nv * kn->lanes && c->dst_stride == 1)
                p.tile(&p.of, s, from, to);
            else
                tile_edge(kn, p.tile, &p.of, s, from, to, p.nv, rows, p.cols, c->dst_stride);
        }
        j += p.cols;
    }
}

// Row r of the stationary operand, as numbers.
static void weights_of(const MmKernels *kn, const MmStationary *st, uint32_t r, float *out) {
#if defined(__x86_64__)
    if (mm_in_pairs(st)) {
        mm_pair_weights(st, r, out);
        return;
    }
#endif
    for (uint32_t k = 0; k < st->k; k++)
        out[k] = st->panels[r / kn->block * kn->block_step + k * kn->block + r % kn->block];
}

static void dot_store(float *c, float sum, bool accumulate) {
    sum = accumulate ? *c + sum : sum;
    uint32_t nan = MM_NAN;
    memcpy(c, sum != sum ? (const void *)&nan : &sum, sizeof sum);
}

// Columns from j0 on that were done as rows of their own; the rest is for the tiles.
static uint32_t multiply_thin(const MmKernels *kn, const MmCall *c, uint32_t j0, uint32_t j1) {
    const MmStationary *st = c->st;
    bool wide = mm_is_wide(c);
    MmThin *thin = c->stype == DT_F32 ? kn->thin_wide : c->stype == DT_BF16 && !wide ? kn->thin_bf16 : NULL;
    if (st->m > MM_THIN_ROWS || !thin || c->blocks || c->out || c->src_stride != 1 || c->dst_stride != 1)
        return 0;
    uint32_t vecs = (j1 - j0) / kn->lanes;
    bool dot = j1 - j0 == 1 && c->stype == DT_F32;
    const uint8_t *v = (const uint8_t *)c->src + (size_t)j0 * dtype_bytes(c->stype);
    for (uint32_t r = 0; r < st->m && (vecs || dot); r++) {
        float s[ISA_PE_ROWS], *to = (float *)((uint8_t *)c->dst + r * c->dst_pitch) + j0;
        weights_of(kn, st, r, s);
        if (dot)
            dot_store(to, kn->dot_wide(s, v, c->src_pitch, st->k), c->accumulate);
        else
            thin(s, v, c->src_pitch, to, st->k, vecs, c->accumulate);
    }
    return dot ? 1 : vecs * kn->lanes;
}

static void multiply_vectors(const MmKernels *kn, const MmCall *c, uint32_t j0, uint32_t j1) {
    HostFp old = host_fp_begin(mm_is_wide(c) ? HOST_FP_IEEE : HOST_FP_FLUSH);
    j0 += multiply_thin(kn, c, j0, j1);
    if (j0 < j1)
        multiply_panels(kn, c, j0, j1);
    host_fp_end(old);
}

// A stationary operand packed for tiles or pairs under a moving one that does not fit them.
static __attribute__((noinline)) void multiply_unpacked(const MmKernels *kn, const MmCall *c,
                                                        uint32_t j0, uint32_t j1) {
    _Alignas(64) float panels[MM_PANEL_BYTES / sizeof(float)];
    MmStationary st = *c->st;
    MmCall call = *c;
    st.panels = panels;
#if defined(__x86_64__)
    if (mm_in_pairs(c->st))
        mm_unpack_pairs(panels, c->st);
    else
#endif
        mm_unpack_amx(panels, c->st);
    st.level = HOST_AVX512;
    call.st = &st;
    multiply_vectors(kn, &call, j0, j1);
}

// From dst to where the sums are wanted, for kernels that only write to dst.
static void sums_move(const MmCall *c, uint32_t j0, uint32_t j1) {
    for (uint32_t m = 0; c->out && m < c->st->m; m++)
        memcpy((float *)((uint8_t *)c->out + m * c->out_pitch) + j0,
               (const float *)((const uint8_t *)c->dst + m * c->dst_pitch) + j0, (j1 - j0) * sizeof(float));
}

// Rows of columns, one after the other: each is a product whose column 0 would lie before its row.
static void multiply_rows(const MmCall *c, uint32_t j0, uint32_t j1) {
    assert(!c->blocks && !c->out);
    int64_t step = c->src_row - (int64_t)c->row * c->src_stride * (int64_t)dtype_bytes(c->stype);
    MmCall one = *c;
    one.row = 0, one.next_src = NULL, one.next_load = NULL;
    for (uint32_t r = j0 / c->row, end; j0 < j1; j0 = end, r++) {
        end = (r + 1) * c->row < j1 ? (r + 1) * c->row : j1;
        one.src = (const uint8_t *)c->src + r * step;
        mm_multiply(&one, j0, end);
    }
}

void mm_multiply(const MmCall *c, uint32_t j0, uint32_t j1) {
    if (c->row) {
        multiply_rows(c, j0, j1);
        return;
    }
    assert(!c->out || c->dst_stride == 1);
    assert(!c->blocks || (mm_takes_blocks(c->st->level, c->stype) && j0 % MM_BLOCK_COLS == 0));
    assert(dtype_on_tensor_engine(c->stype));
    assert(c->st->k || !c->st->m); // at least one row, or nothing loaded at all
    const MmKernels *kn = level_kernels(c->st->level);
    if (j0 == j1 || !c->st->m)
        return;
    if (mm_in_tiles(c->st)) {
        if (mm_fits_bf16(c->stype)) {
            mm_multiply_amx(c, j0, j1);
            sums_move(c, j0, j1);
        } else {
            multiply_unpacked(kn, c, j0, j1);
        }
    } else if (mm_in_pairs(c->st) && !mm_fits_bf16(c->stype)) {
        multiply_unpacked(kn, c, j0, j1);
    } else if (kn) {
        multiply_vectors(kn, c, j0, j1);
    } else {
        HostFp old = host_fp_begin(HOST_FP_IEEE);
        mm_multiply_portable(c, j0, j1);
        sums_move(c, j0, j1);
        host_fp_end(old);
    }
}

static void run_columns(void *arg, size_t begin, size_t end) {
    mm_multiply(arg, (uint32_t)begin, (uint32_t)end);
}

void mm_run(Pool *pool, const MmCall *c, uint32_t n) {
    pool_run(pool, n, mm_in_tiles(c->st) ? SPLIT_COLS_TILES : SPLIT_COLS, run_columns,
             (void *)(uintptr_t)c);
}
