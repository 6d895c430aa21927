// SPDX-License-Identifier: Apache-2.0
// matmul.h — what the tensor engine's driver (matmul.c) asks of an instruction set.
//
// A tile is `rows` rows by up to `vecs` vectors of columns of the result, held in registers while k
// runs:
//
//              v: widened panel of the moving operand, k rows of nv * lanes columns, in L1
//              +---------------+
//            k |               |
//   k          +---------------+
//  +---+   +---+---------------+
//  | s |   rows|       c       |  PSUM
//  +---+       +---------------+
//   s: one block of the stationary operand, k rows of `rows` columns
//
// Two orders of summation exist (design: "Numbers are the chip's"):
//   wide     one chain of fused multiply-adds from zero over ascending k; c = c + chain, or c =
//   chain narrow   groups of 32 rows; even-row chain and odd-row chain from zero; c = c + (even +
//   odd), c
//            starting as zero when not accumulating; runs with subnormals flushed (HOST_FP_FLUSH)
#ifndef OTRN_CHIP_MATMUL_H
#define OTRN_CHIP_MATMUL_H

#include "chip/core/chip.h"

#define MM_GROUP 32    // rows per group of the narrow order
#define MM_THIN_ROWS 2 // results of so few rows are not worth a tile
#define MM_ROWS_MAX 8  // largest `rows`
#define MM_VECS_MAX 3  // largest `vecs`
#define MM_COLS_MAX 32 // largest vecs * lanes
#define MM_NAN 0x7fc00000u
// The vector is loaded once and stays; a model of the vectors (tests/model) has no such register.
#if defined(OTRN_MODEL_LEVELS)
#define MM_IN_REGISTER(x) ((void)(x))
#else
#define MM_IN_REGISTER(x) __asm__("" : "+v"(x))
#endif

// Rows of s lie `block` floats apart (MmKernels), aligned to 16 bytes; of v v_step floats, vectors of a row v_next
// floats, each aligned to itself. Rows of c and out lie pitch bytes apart and need no alignment.
typedef struct MmPanel { // what the tiles of a panel have in common
    const float *v;
    size_t v_step, v_next;
    size_t c_pitch, out_pitch;
    uint32_t k;
    bool accumulate; // else c counts as zero
    bool goes_on;    // MmCall's: NaNs stay as they are
} MmPanel;
// out = c + sums; narrow ones use c on the way. They may be the same. What changes from tile to tile comes in registers:
// loads of what was just stored would wait for the sums of the tile before to be stored, and nothing of this one begin.
typedef void MmTile(const MmPanel *t, const float *s, float *c, float *out);

typedef void MmThin(const float *s, const uint8_t *v, size_t pitch, float *c, uint32_t k, uint32_t vecs,
                    bool accumulate);

typedef struct MmKernels {
    uint32_t rows, lanes, vecs;
    uint32_t block, block_step; // packed stationary columns side by side, and floats to the next ones
    bool fetch_near; // the next panel goes to L1: right when two panels leave room there
    bool in_place;   // a panel is whole lines, and a row's work hides a miss of the TLB
    MmTile *wide[MM_VECS_MAX], *narrow[MM_VECS_MAX]; // [vectors of columns - 1]
    // out[i][j] = fp32 of src[i][j], neighbours adjacent; cols is a multiple of lanes; out rows are
    // out_cols floats apart and aligned to a vector.
    // One row of results, of whole vectors: c[j] (+)= sum over i < k of s[i] * v[i][j]; v rows are pitch bytes apart.
    MmThin *thin_wide, *thin_bf16; // fp32 in the wide order, bf16 in the narrow one
    float (*dot_wide)(const float *s, const uint8_t *v, size_t pitch, uint32_t k); // thin_wide's sum of one column, as it comes
    void (*widen)(float *out, size_t out_cols, const uint8_t *src, size_t pitch, int stype,
                  uint32_t rows, uint32_t cols);
} MmKernels;

extern const MmKernels mm_avx2, mm_avx512;

// The definition: plain C, no tiles (matmul_portable.c).
void mm_load_portable(MmStationary *st, const uint8_t *src, size_t pitch, int32_t stride);
void mm_multiply_portable(const MmCall *c, uint32_t j0, uint32_t j1);
float mm_widen(int stype, const uint8_t *p); // exact; tf32 drops the low 13 bits of its word

// --- helpers of the drivers --------------------------------------------------------------------

typedef struct MmOperand { // rows of elements of one type
    const uint8_t *at;
    size_t pitch;
    ptrdiff_t step; // bytes between neighbours
    int stype;
} MmOperand;

static inline MmOperand mm_operand(const void *at, size_t pitch, int stype, int32_t stride) {
    return (MmOperand){at, pitch, (ptrdiff_t)stride * (ptrdiff_t)dtype_bytes(stype), stype};
}

// out[i][j] = fp32 of o[i][col + j] for j < cols, zero for cols <= j < out_cols.
void mm_widen_block(const MmKernels *kn, float *out, uint32_t out_cols, const MmOperand *o,
                    uint32_t rows, uint32_t col, uint32_t cols);

// Lines of rows that will be read soon, asked for a few at a time.
typedef struct MmFetch {
    const uint8_t *row; // the next line is at row + offset
    size_t pitch, bytes, offset;
    uint32_t rows; // left
} MmFetch;

// Floats, or words of pairs, from block to block, and bytes of a block with k rows.
static inline size_t mm_block_step(int stype) { return stype == DT_F32 ? MM_BLOCK_FLOATS : MM_BLOCK_FLOATS / 2; }
static inline size_t mm_block_bytes(int stype, uint32_t k) {
    return MM_BLOCK_COLS * sizeof(float) * (stype == DT_F32 ? k : (k + 3) / 4 * 2);
}

static inline MmFetch mm_blocks_fetch(const void *first, int stype, uint32_t k, uint32_t cols) {
    return (MmFetch){.row = first, .pitch = mm_block_step(stype) * sizeof(float), .bytes = mm_block_bytes(stype, k),
                     .rows = (cols + MM_BLOCK_COLS - 1) / MM_BLOCK_COLS};
}

static inline MmFetch mm_load_fetch(const MmLoad *load) { // worth it for adjacent neighbours only
    if (load && load->src && load->blocks)
        return mm_blocks_fetch(load->src, load->stype, load->k, load->m);
    if (!load || !load->src || load->stride != 1)
        return (MmFetch){0};
    return (MmFetch){.row = load->src, .pitch = load->pitch, .rows = load->k,
                     .bytes = load->m * dtype_bytes(load->stype)};
}

static inline uint32_t mm_fetch_share(const MmFetch *f, uint32_t calls) { // lines per call, to be in time
    return (f->rows * (uint32_t)((f->bytes + 63) / 64) + calls - 1) / calls;
}

static inline void mm_fetch_lines(MmFetch *f, uint32_t lines, bool near) { // into L1, or as far as L2
    for (; lines && f->rows; lines--) {
        if (near)
            __builtin_prefetch(f->row + f->offset, 0, 3);
        else
            __builtin_prefetch(f->row + f->offset, 0, 2);
        f->offset += 64;
        if (f->offset >= f->bytes)
            f->offset = 0, f->row += f->pitch, f->rows--;
    }
}

// --- matmul_amx.c, matmul_tiles.c: bf16 in the tile registers of AMX -----------------------------
// What bf16 holds exactly multiplies in tiles at HOST_AMX: bf16 itself and every fp8.
static inline bool mm_fits_bf16(int stype) {
    return stype == DT_BF16 || dtype_bytes(stype) == 1;
}
static inline bool mm_in_tiles(const MmStationary *st) {
#if defined(__x86_64__)
    return st->level == HOST_AMX && mm_fits_bf16(st->stype);
#else
    (void)st;
    return false;
#endif
}
// --- matmul_bf16.c: the same types in pairs at HOST_BF16 -------------------------------------------
static inline bool mm_in_pairs(const MmStationary *st) {
#if defined(__x86_64__)
    return st->level == HOST_BF16 && mm_fits_bf16(st->stype);
#else
    (void)st;
    return false;
#endif
}
extern MmTile *const mm_pair_tiles[2]; // [vectors of columns - 1]; of mm_avx512's shape, over words of pairs; v in blocks
void mm_load_pairs(MmStationary *st, const MmOperand *o);
void mm_unpack_pairs(float *panels, const MmStationary *st); // as load_panels leaves them at HOST_AVX512
void mm_pair_weights(const MmStationary *st, uint32_t r, float *out); // one row of them
// Columns [col, col + cols) in blocks, at most MM_COLS_MAX of them.
void mm_pack_pairs(float *panel, const MmOperand *o, uint32_t rows, uint32_t col, uint32_t cols);

// --- matmul_choose.c
bool mm_quicker(HostLevel a, HostLevel b); // a product of bf16 at level a takes less time here than at b

void mm_load_amx(MmStationary *st, const MmOperand *o);
void mm_multiply_amx(const MmCall *c, uint32_t j0, uint32_t j1);
void mm_unpack_amx(float *panels, const MmStationary *st); // as load_panels leaves them at HOST_AVX512

#define AMX_TILE 16                              // rows, and 32-bit columns, of a tile
#define AMX_TILE_WORDS (AMX_TILE * AMX_TILE)     // pairs of bf16, or fp32
#define AMX_GROUPS_MAX (ISA_PE_ROWS / MM_GROUP)
// c[32][32] (+)= a * b, in 2 x 2 tiles; NaNs as they come. a[i]: 16 rows of the result, per group a tile of 16
// rows by 16 pairs of k; b[j]: 16 columns, per group 16 pairs of k by 16 columns.
typedef struct MmAmxBlock {
    const uint32_t *a[2], *b[2];
    float *c;
    size_t c_pitch;
    uint32_t groups;
    bool accumulate;
} MmAmxBlock;
typedef void MmAmxBlockFn(const MmAmxBlock *b);
MmAmxBlockFn mm_amx_block;   // the hardware; between begin and end
void mm_amx_begin(void);
void mm_amx_end(void);
// Columns [j0, j1) with any block function: the tests bring a model of the instructions.
void mm_multiply_tiles(const MmCall *c, uint32_t j0, uint32_t j1, MmAmxBlockFn *block);

static inline bool mm_is_wide(const MmCall *c) {
    return c->stype == DT_F32 || c->st->stype == DT_F32;
}

#endif
