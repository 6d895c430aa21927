// SPDX-License-Identifier: Apache-2.0
// matmul_tile.h — the two tile kernels, once for every vector instruction set.
//
// Included by matmul_avx2.c and matmul_avx512.c, which define
//   V, LANES, ROWS, VECS, PAIR_ROWS, BLOCK, TARGET      vector type, its floats, tile shape, packed columns, attributes
//   v_zero v_load v_loadu v_storeu v_splat v_fma v_add v_clean     what they say; v_load is aligned
// Loops over rows and vectors have constant bounds and are unrolled in full: the arrays below are
// registers. A change here is checked in the disassembly (no accumulator may go through the stack).
//
// The narrow order needs two chains per element, so its tile walks PAIR_ROWS rows at a time, both
// chains of a group in registers side by side.

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#define UNROLL_K _Pragma("clang loop unroll_count(4)")
#else
#define UNROLL _Pragma("GCC unroll 8")
#define UNROLL_K _Pragma("GCC unroll 4")
#endif
#define INLINE static inline __attribute__((always_inline)) TARGET

INLINE float *tile_row(float *c, size_t c_pitch, int r) {
    return (float *)((uint8_t *)c + (size_t)r * c_pitch);
}

// One row of the panel. The empty asm holds it in registers: short of them, gcc would rather load
// it again for every FMA than keep a constant of the loop's end on the stack.
INLINE void panel_row(V b[VECS], const float *v, size_t v_next, const int nv) {
    UNROLL for (int j = 0; j < nv; j++) {
        b[j] = v_load(v + (size_t)j * v_next);
        MM_IN_REGISTER(b[j]);
    }
}

INLINE void rows_fetch(const MmPanel *t, float *c, float *out, const int nv) { // those that will be read or written
    UNROLL for (int r = 0; r < ROWS; r++) {
        __builtin_prefetch(tile_row(out, t->out_pitch, r), 1, 3);
        __builtin_prefetch(tile_row(out, t->out_pitch, r) + nv * LANES - 1, 1, 3);
    }
    if (out == c)
        return;
    UNROLL for (int r = 0; r < ROWS; r++) {
        __builtin_prefetch(tile_row(c, t->c_pitch, r), 0, 3);
        __builtin_prefetch(tile_row(c, t->c_pitch, r) + nv * LANES - 1, 0, 3);
    }
}

// out = c + chain. The pitches are copied before anything is stored, or they would be read again after each store.
INLINE void sums_store(const MmPanel *t, const float *c, float *out, V chain[ROWS][VECS], const int nv) {
    size_t c_pitch = t->c_pitch, out_pitch = t->out_pitch;
    if (t->accumulate) {
        UNROLL for (int r = 0; r < ROWS; r++) {
            UNROLL for (int j = 0; j < nv; j++) chain[r][j] = v_add(v_loadu(c + j * LANES), chain[r][j]);
            c = (const float *)((const uint8_t *)c + c_pitch);
        }
    }
    if (!t->goes_on) {
        UNROLL for (int r = 0; r < ROWS; r++) {
            UNROLL for (int j = 0; j < nv; j++) chain[r][j] = v_clean(chain[r][j]);
        }
    }
    UNROLL for (int r = 0; r < ROWS; r++) {
        UNROLL for (int j = 0; j < nv; j++) v_storeu(out + j * LANES, chain[r][j]);
        out = (float *)((uint8_t *)out + out_pitch);
    }
}

INLINE void tile_wide(const MmPanel *t, const float *s, float *c, float *out, const int nv) {
    const float *v = t->v;
    size_t v_step = t->v_step, v_next = t->v_next;
    V chain[ROWS][VECS];
    UNROLL for (int r = 0; r < ROWS; r++) {
        UNROLL for (int j = 0; j < nv; j++) chain[r][j] = v_zero();
    }
    rows_fetch(t, c, out, nv);
    UNROLL_K for (uint32_t i = 0; i < t->k; i++, s += BLOCK, v += v_step) {
        V b[VECS];
        panel_row(b, v, v_next, nv);
        UNROLL for (int r = 0; r < ROWS; r++) {
            V a = v_splat(s[r]);
            UNROLL for (int j = 0; j < nv; j++) chain[r][j] = v_fma(a, b[j], chain[r][j]);
        }
    }
    sums_store(t, c, out, chain, nv);
}

// One row of k into one of the two chains.
INLINE void pair_step(V chain[PAIR_ROWS][VECS], const float *s, const float *v, size_t v_next, const int nv) {
    V b[VECS];
    panel_row(b, v, v_next, nv);
    UNROLL for (int r = 0; r < PAIR_ROWS; r++) {
        V a = v_splat(s[r]);
        UNROLL for (int j = 0; j < nv; j++) chain[r][j] = v_fma(a, b[j], chain[r][j]);
    }
}

// PAIR_ROWS rows of a narrow tile from row `first` on. Sums are in c until the last group.
INLINE void tile_pair(const MmPanel *t, const float *s, float *c, float *out, int first, const int nv) {
    const float *v = t->v;
    size_t v_step = t->v_step, v_next = t->v_next;
    s += first;
    for (uint32_t g = 0; g < t->k; g += MM_GROUP) {
        V even[PAIR_ROWS][VECS], odd[PAIR_ROWS][VECS];
        UNROLL for (int r = 0; r < PAIR_ROWS; r++) {
            UNROLL for (int j = 0; j < nv; j++) even[r][j] = odd[r][j] = v_zero();
        }
        bool last = t->k - g <= MM_GROUP;
        uint32_t n = last ? t->k - g : MM_GROUP;
        for (uint32_t i = 0; i < n / 2; i++, s += 2 * BLOCK, v += 2 * v_step) {
            pair_step(even, s, v, v_next, nv);
            pair_step(odd, s + BLOCK, v + v_step, v_next, nv);
        }
        if (n & 1)
            pair_step(even, s, v, v_next, nv);
        float *to = last ? out : c;
        size_t to_pitch = last ? t->out_pitch : t->c_pitch;
        UNROLL for (int r = 0; r < PAIR_ROWS; r++) {
            UNROLL for (int j = 0; j < nv; j++) {
                const float *at = tile_row(c, t->c_pitch, first + r) + j * LANES;
                V old = g || t->accumulate ? v_loadu(at) : v_zero();
                v_storeu(tile_row(to, to_pitch, first + r) + j * LANES, v_clean(v_add(old, v_add(even[r][j], odd[r][j]))));
            }
        }
    }
}

INLINE void tile_narrow(const MmPanel *t, const float *s, float *c, float *out, const int nv) {
    rows_fetch(t, c, out, nv);
    for (int r = 0; r < ROWS; r += PAIR_ROWS)
        tile_pair(t, s, c, out, r, nv);
}

#define TILE(order, nv)                                                                            \
    static TARGET void order##_##nv(const MmPanel *t, const float *s, float *c, float *out) {                              \
        tile_##order(t, s, c, out, nv);                                                            \
    }
