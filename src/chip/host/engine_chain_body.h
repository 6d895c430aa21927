// SPDX-License-Identifier: Apache-2.0
// engine_chain_body.h — the machine of chain.h: a few vectors of a row through all operations of a chain. Included by
// engine_body.h.
#if GP_ISA == 2
#define CHAIN_VECS (ENG_CHAIN_COLS / 16)
#define EACH _Pragma("GCC unroll 8") for (int i = 0; i < vecs; i++)
#define FLOATS(i) (all ? _mm512_loadu_ps((const float *)p + 16 * (i)) : _mm512_maskz_loadu_ps(lanes, p))
#define HALVES(i)                                                                                  \
    _mm512_castsi512_ps(_mm512_slli_epi32(                                                         \
        _mm512_cvtepu16_epi32(all ? _mm256_loadu_si256((const __m256i *)p + (i)) : _mm256_maskz_loadu_epi16(lanes, p)), 16))
#define CHAIN_BIN(E, EXPR)                                                                         \
    case ENG_CHAIN_##E: EACH { __m512 x = a[i], y = FLOATS(i); a[i] = EXPR; } break;               \
    case ENG_CHAIN_##E + ENG_CHAIN_BF16: EACH { __m512 x = a[i], y = HALVES(i); a[i] = EXPR; } break;
#define CHAIN_ONE(E, EXPR)                                                                         \
    case ENG_CHAIN_##E: EACH { __m512 x = a[i], y = s; a[i] = EXPR; } break;

static inline __attribute__((always_inline)) uint32_t chain_nans(const __m512 *a, const int vecs) { // some number but 0: there are
    uint32_t bad = 0;
    if (vecs == 1)
        return _mm512_cmp_ps_mask(a[0], a[0], _CMP_UNORD_Q);
    _Pragma("GCC unroll 8") for (int i = 0; i < vecs; i += 2)
        bad |= _mm512_cmp_ps_mask(a[i], a[i + 1], _CMP_UNORD_Q);
    return bad;
}

// Element j of a block joins partial j mod 32, as RUN_LOOP; `at` is that of the first here.
static inline __attribute__((always_inline)) void chain_reduce(EngChainRed *r, const __m512 *a, size_t at, const int vecs,
                                                               __mmask16 lanes) {
    if (r->op == ALU_ADD) {
        __m512 p[2] = {_mm512_load_ps(r->part[0]), _mm512_load_ps(r->part[1])};
        if (vecs == 1)
            p[at / 16 & 1] = _mm512_mask_add_ps(p[at / 16 & 1], lanes, p[at / 16 & 1], a[0]);
        else
            EACH p[i & 1] = _mm512_add_ps(p[i & 1], a[i]);
        _mm512_store_ps(r->part[0], p[0]);
        _mm512_store_ps(r->part[1], p[1]);
        return;
    }
    // as integers, negative ones turned over: -0 below +0
    __m512i hi = _mm512_load_si512(r->part[0]);
    EACH {
        __m512i u = _mm512_castps_si512(a[i]);
        u = _mm512_xor_si512(u, _mm512_srli_epi32(_mm512_srai_epi32(u, 31), 1));
        hi = _mm512_mask_max_epi32(hi, lanes, hi, u);
        r->nan |= _mm512_mask_cmp_ps_mask(lanes, a[i], a[i], _CMP_UNORD_Q);
    }
    _mm512_store_si512(r->part[0], hi);
}

static inline __attribute__((always_inline)) void chain_pass(const EngChain *c, size_t off, const int vecs, __mmask16 lanes) {
    const bool all = vecs > 1;
    const __m512 nan = _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000)), one = _mm512_set1_ps(1.0f);
    const __m512i upper = _mm512_set1_epi32((int)0xffff0000u);
    __m512 a[CHAIN_VECS];
    _Pragma("GCC unroll 8") for (int i = 0; i < CHAIN_VECS; i++)
        a[i] = nan;
    for (const EngChainOp *o = c->op, *end = o + c->nops; o < end; o++) {
        uint8_t *p = c->at[o->at] + off * o->scale;
        __m512 s = _mm512_set1_ps(c->scalar[o->scalar]);
        switch (o->op) {
        case ENG_CHAIN_FETCH:
            for (size_t i = 0; i < ENG_CHAIN_COLS * o->scale && all; i += 64)
                __builtin_prefetch(p + o->pitch + i, 0, 2);
            break;
            CHAIN_BIN(LOAD, ((void)x, y))
            CHAIN_BIN(ADD, _mm512_add_ps(x, y))
            CHAIN_BIN(SUB, _mm512_sub_ps(x, y))
            CHAIN_BIN(BACK, _mm512_sub_ps(y, x))
            CHAIN_BIN(MUL, _mm512_mul_ps(x, y))
            CHAIN_BIN(SCALE_ADD, _mm512_add_ps(_mm512_mul_ps(x, s), y))
            CHAIN_BIN(ADD_SCALED, _mm512_add_ps(_mm512_mul_ps(y, s), x))
            CHAIN_ONE(ADD_ONE, _mm512_add_ps(x, y))
            CHAIN_ONE(SUB_ONE, _mm512_sub_ps(x, y))
            CHAIN_ONE(BACK_ONE, _mm512_sub_ps(y, x))
            CHAIN_ONE(MUL_ONE, _mm512_mul_ps(x, y))
            CHAIN_ONE(SQUARE, ((void)y, _mm512_mul_ps(x, x)))
            CHAIN_ONE(SQRT, ((void)y, _mm512_sqrt_ps(x)))
            CHAIN_ONE(RECIP, ((void)y, _mm512_div_ps(one, x)))
            CHAIN_ONE(EXP, ((void)y, exp_vector(x)))
        case ENG_CHAIN_QUIET:
            if (__builtin_expect(chain_nans(a, vecs), 0))
                EACH a[i] = _mm512_mask_mov_ps(a[i], _mm512_cmp_ps_mask(a[i], a[i], _CMP_UNORD_Q), nan);
            break;
        case ENG_CHAIN_ROUND: { // bf16_of_f32
            uint32_t bad = chain_nans(a, vecs);
            EACH {
                __m512i u = _mm512_castps_si512(a[i]), r = round_vector(a[i]);
                if (__builtin_expect(bad, 0))
                    r = _mm512_mask_or_epi32(r, _mm512_cmp_ps_mask(a[i], a[i], _CMP_UNORD_Q), u, _mm512_set1_epi32(0x400000));
                a[i] = _mm512_castsi512_ps(_mm512_and_si512(r, upper));
            }
            break;
        }
        case ENG_CHAIN_STORE:
            if (all)
                EACH _mm512_storeu_ps((float *)p + 16 * i, a[i]);
            else
                _mm512_mask_storeu_ps(p, lanes, a[0]);
            break;
        case ENG_CHAIN_STORE + ENG_CHAIN_BF16:
            EACH {
                __m256i h = _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_castps_si512(a[i]), 16));
                if (all)
                    _mm256_storeu_si256((__m256i *)p + i, h);
                else
                    _mm256_mask_storeu_epi16(p, lanes, h);
            }
            break;
        case ENG_CHAIN_WHERE: // a mask of bytes chooses x, or
        case ENG_CHAIN_WHERE_NOT: // the number
            EACH {
                __m128i b = all ? _mm_loadu_si128((const __m128i *)p + i) : _mm_maskz_loadu_epi8(lanes, p);
                __mmask16 m = _mm_test_epi8_mask(b, b);
                a[i] = _mm512_mask_mov_ps(a[i], o->op == ENG_CHAIN_WHERE ? (__mmask16)~m : m, s);
            }
            break;
        case ENG_CHAIN_CALL: {
            _Alignas(64) float x[ENG_CHAIN_COLS];
            EACH _mm512_store_ps(x + 16 * i, a[i]);
            o->fn(x, x, 16 * (size_t)vecs, c->scalar[o->scalar]);
            EACH a[i] = _mm512_load_ps(x + 16 * i);
            break;
        }
        case ENG_CHAIN_REDUCE:
            chain_reduce(&c->red[o->scalar], a, off, vecs, lanes);
            break;
        }
    }
}

static __attribute__((noinline)) void chain_all(const EngChain *c, size_t off) { chain_pass(c, off, CHAIN_VECS, 0xffff); }
static __attribute__((noinline)) void chain_rest(const EngChain *c, size_t off, __mmask16 lanes) { chain_pass(c, off, 1, lanes); }

static void eng_chain(const EngChain *c, size_t n) {
    for (uint32_t i = 0; i < c->nred; i++) {
        EngChainRed *r = &c->red[i];
        int32_t first = r->op == ALU_ADD ? 0 : (int32_t)0x807fffff; // -infinity
        for (int j = 0; j < 2; j++)
            _mm512_store_si512(r->part[j], _mm512_set1_epi32(first));
        r->nan = 0;
    }
    size_t off = 0;
    for (; off + ENG_CHAIN_COLS <= n; off += ENG_CHAIN_COLS)
        chain_all(c, off);
    for (; off < n; off += 16)
        chain_rest(c, off, n - off < 16 ? (__mmask16)((1u << (n - off)) - 1) : 0xffff);
    for (uint32_t i = 0; i < c->nred; i++) {
        EngChainRed *r = &c->red[i];
        if (r->op == ALU_ADD) {
            float sum[16];
            _mm512_storeu_ps(sum, _mm512_add_ps(_mm512_load_ps(r->part[0]), _mm512_load_ps(r->part[1])));
            *r->acc = quiet(*r->acc + lanes_fold(sum));
        } else {
            int32_t hi = _mm512_reduce_max_epi32(_mm512_load_si512(r->part[0]));
            uint32_t bits = (uint32_t)(hi ^ (int32_t)((uint32_t)(hi >> 31) >> 1));
            *r->acc = larger(*r->acc, r->nan ? NAN : f32_of(bits));
        }
    }
}
// tanh of numbers that are bf16, good for a bf16 result.
static void eng_tanh_short(float *y, const float *x, size_t n, float parameter) {
    (void)parameter;
    LANES(n) y[i] = quiet(tanh_short(x[i]));
}
#undef EACH
#undef FLOATS
#undef HALVES
#undef CHAIN_BIN
#undef CHAIN_ONE
#endif
