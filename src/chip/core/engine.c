// SPDX-License-Identifier: Apache-2.0
// engine.c — operands to blocks and back, and the loop over rows.
#include "chip/core/engine.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/round.h"
#include "base/rows.h"

#define GRAIN_ELEMS 8192 // least work worth a handoff

size_t eng_cols(const IsaInst *in) {
    return (size_t)isa_count(in->n[1]) * isa_count(in->n[2]) * isa_count(in->n[3]) *
           isa_count(in->n[4]);
}

float eng_identity(int alu) {
    switch (alu) {
    case ALU_MUL:
    case ALU_LAND:
        return 1;
    case ALU_MAX:
        return -INFINITY;
    case ALU_MIN:
    case ALU_ABS_MIN:
        return INFINITY;
    default:
        return 0;
    }
}

otrn_status eff_fail(const EffCall *c, const char *fmt, ...) {
    int at = snprintf(c->why, c->why_bytes, "%s: %s: ", engine_names[c->in->engine],
                      isa_rows[c->in->op].name);
    va_list ap;
    va_start(ap, fmt);
    if (at > 0 && (size_t)at < c->why_bytes)
        vsnprintf(c->why + at, c->why_bytes - (size_t)at, fmt, ap);
    va_end(ap);
    return OTRN_CHECK;
}

// --- operands --------------------------------------------------------------------------------------------

EngTensor eng_tensor(EffOperand o, int dtype, const uint32_t n[5], const int32_t stride[5]) {
    dtype = o.dtype ? o.dtype : dtype;
    EngTensor t = {.at = o.at, .pitch = o.pitch, .local = o.local, .nowhere = o.nowhere, .dtype = (uint8_t)dtype,
                   .bytes = (uint8_t)dtype_bytes(dtype), .cols = 1};
    for (int i = 1; i < 5; i++) {
        if (isa_count(n[i]) == 1)
            continue;
        EngAxis a = {n[i], (int64_t)stride[i] * t.bytes};
        t.cols *= a.n;
        EngAxis *outer = t.naxes ? &t.axis[t.naxes - 1] : NULL;
        if (outer && outer->step == a.step * (int64_t)a.n)
            *outer = (EngAxis){outer->n * a.n, a.step};
        else
            t.axis[t.naxes++] = a;
    }
    if (!t.naxes)
        t.axis[t.naxes++] = (EngAxis){1, t.bytes};
    t.flat = t.naxes == 1 && t.axis[0].step == t.bytes;
    return t;
}

EngTensor eng_column(EffOperand o, int dtype) {
    return eng_tensor(o, dtype, (const uint32_t[5]){0}, (const int32_t[5]){0});
}

// Bytes a row reaches from its first element.
static void extent(const EngTensor *t, int64_t *lo, int64_t *hi) {
    *lo = 0, *hi = t->bytes;
    for (int i = 0; i < t->naxes; i++) {
        int64_t reach = (int64_t)(t->axis[i].n - 1) * t->axis[i].step;
        *(reach < 0 ? lo : hi) += reach;
    }
}

static bool same_places(const EngTensor *a, const EngTensor *b) {
    if (a->at != b->at || a->bytes != b->bytes || a->naxes != b->naxes)
        return false;
    for (int i = 0; i < a->naxes; i++)
        if (a->axis[i].n != b->axis[i].n || a->axis[i].step != b->axis[i].step)
            return false;
    return true;
}

void eng_mark_overlap(EngTensor *dst, EngTensor *src) {
    int64_t dlo, dhi, slo, shi;
    extent(dst, &dlo, &dhi);
    extent(src, &slo, &shi);
    uintptr_t d = (uintptr_t)dst->at, s = (uintptr_t)src->at;
    if (d + (uint64_t)dhi > s + (uint64_t)slo && s + (uint64_t)shi > d + (uint64_t)dlo &&
        !same_places(dst, src))
        dst->careful = src->careful = true;
}

bool eng_cross_overlap(const EngTensor *dst, uint32_t dst_rows, const EngTensor *src, uint32_t src_rows) {
    int64_t dlo, dhi, slo, shi;
    extent(dst, &dlo, &dhi);
    extent(src, &slo, &shi);
    dhi += (int64_t)(dst_rows - 1) * dst->pitch, shi += (int64_t)(src_rows - 1) * src->pitch;
    uintptr_t d = (uintptr_t)dst->at, s = (uintptr_t)src->at;
    return d + (uint64_t)dhi > s + (uint64_t)slo && s + (uint64_t)shi > d + (uint64_t)dlo &&
           !same_places(dst, src);
}

bool eng_rows_overlap(const EngTensor *t, uint32_t rows) {
    int64_t lo, hi;
    extent(t, &lo, &hi);
    return rows > 1 && (t->pitch < 0 ? -t->pitch : t->pitch) < hi - lo;
}

EngWalk eng_walk(const EffCall *c, EngDomain domain) {
    EngWalk w = {.level = gp_level(c->level), .domain = domain, .stochastic = c->round && c->round->stochastic};
    if (w.stochastic)
        w.key = round_key(c->round->seed, c->round->instruction);
    return w;
}

typedef struct Walk { // a place in a row
    const EngTensor *t;
    uint32_t index[4];
    uint8_t *at;
} Walk;

static void walk_begin(Walk *w, const EngTensor *t, uint8_t *row, size_t first) {
    *w = (Walk){.t = t, .at = row};
    for (int a = t->naxes - 1; first && a >= 0; a--) { // mostly 0: no division then
        w->index[a] = (uint32_t)(first % t->axis[a].n);
        first /= t->axis[a].n;
        w->at += w->index[a] * t->axis[a].step;
    }
}

static size_t walk_run(const Walk *w, size_t left) { // elements to the end of the inner axis
    int a = w->t->naxes - 1;
    size_t run = w->t->axis[a].n - w->index[a];
    return run < left ? run : left;
}

static void walk_on(Walk *w, size_t run) {
    int a = w->t->naxes - 1;
    const EngAxis *axis = w->t->axis;
    w->index[a] += (uint32_t)run;
    w->at += (int64_t)run * axis[a].step;
    for (; a > 0 && w->index[a] == axis[a].n; a--) {
        w->at += axis[a - 1].step - (int64_t)axis[a].n * axis[a].step;
        w->index[a] = 0;
        w->index[a - 1]++;
    }
}

#define MOVES(T)                                                                                   \
    if (gather)                                                                                    \
        for (size_t i = 0; i < n; i++, at += step)                                                 \
            ((T *)block)[i] = *(const T *)at;                                                      \
    else                                                                                           \
        for (size_t i = 0; i < n; i++, at += step)                                                 \
            *(T *)at = ((const T *)block)[i];

static void move_run(bool gather, void *block, uint8_t *at, int64_t step, size_t n, size_t bytes) {
    if (step == (int64_t)bytes) {
        memcpy(gather ? block : at, gather ? at : block, n * bytes);
    } else if (bytes == 4) {
        MOVES(uint32_t)
    } else if (bytes == 2) {
        MOVES(uint16_t)
    } else {
        MOVES(uint8_t)
    }
}

static uint8_t *in_place(const EngTensor *t, const EngBlock *b) {
    return eng_row(t, b, b->row) + (int64_t)b->col * t->bytes;
}

// Rows that lie one behind another are one run.
static bool is_run(const EngTensor *t, const EngBlock *b) {
    return t->flat && (b->rows == 1 || t->pitch == (int64_t)(b->cols * t->bytes));
}

static void move_block(bool gather, const EngTensor *t, const EngBlock *b, uint8_t *block) {
    if (t->cols == 1) { // a column
        move_run(gather, block, eng_row(t, b, b->row), t->pitch, b->rows, t->bytes);
        return;
    }
    if (t->flat) {
        size_t bytes = b->cols * t->bytes;
        uint8_t *at = in_place(t, b);
        if (gather)
            rows_copy(block, (int64_t)bytes, at, t->pitch, b->rows, bytes);
        else
            rows_copy(at, t->pitch, block, (int64_t)bytes, b->rows, bytes);
        return;
    }
    for (uint32_t r = 0; r < b->rows; r++) {
        Walk w;
        walk_begin(&w, t, eng_row(t, b, b->row + r), b->col);
        for (size_t left = b->cols; left;) {
            size_t run = walk_run(&w, left);
            move_run(gather, block, w.at, t->axis[t->naxes - 1].step, run, t->bytes);
            walk_on(&w, run);
            left -= run;
            block += run * t->bytes;
        }
    }
}

void eng_gather(const EngTensor *t, const EngBlock *b, void *out) { move_block(true, t, b, out); }
void eng_scatter(const EngTensor *t, const EngBlock *b, const void *x) {
    move_block(false, t, b, (void *)(uintptr_t)x);
}

#define FETCH_LEAST 256u // bytes of a run that are worth being asked for early: the host looks no further than a page,
#define FETCH_MOST 4096u // and begins anew in each

static void run_fetch(const uint8_t *at, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 64)
        __builtin_prefetch(at + i);
}

static bool runs(const EngTensor *t) { return t->axis[t->naxes - 1].step == t->bytes && !t->careful; }

bool eng_move(const EngTensor *dst, const EngTensor *src, const EngBlock *b) {
    if (!runs(dst) || !runs(src))
        return false;
    for (uint32_t r = 0; r < b->rows; r++) {
        Walk d, s;
        walk_begin(&d, dst, eng_row(dst, b, b->row + r), b->col);
        walk_begin(&s, src, eng_row(src, b, b->row + r), b->col);
        for (size_t left = b->cols; left;) {
            size_t run = walk_run(&s, walk_run(&d, left)), bytes = run * dst->bytes;
            uint8_t *to = d.at, *from = s.at;
            walk_on(&d, run);
            walk_on(&s, run);
            left -= run;
            if (bytes >= FETCH_LEAST && bytes <= FETCH_MOST)
                run_fetch(left ? s.at : from + src->pitch, bytes);
            memmove(to, from, bytes);
        }
    }
    return true;
}

// --- types -----------------------------------------------------------------------------------------------

static LaneClass bits_class(size_t bytes) { return bytes == 1 ? LC_U8 : bytes == 2 ? LC_U16 : LC_U32; }

static ConvFn *load_conv(const EngWalk *w, int dtype) { // NULL: it is in the domain's form
    switch (w->domain) {
    case ENG_F32:
        if (dtype == DT_F32)
            return NULL;
        return dtype_is_float(dtype) ? w->level->widen[dtype] : w->level->conv[lane_class(dtype)][LC_F32];
    case ENG_BITS:
        return dtype_bytes(dtype) == 4 ? NULL : w->level->conv[bits_class(dtype_bytes(dtype))][LC_U32];
    default:
        return w->level->conv[lane_class(dtype)][LC_I64];
    }
}

static bool is_native(const EngWalk *w, int dtype) {
    return w->domain == ENG_F32 ? dtype == DT_F32 : w->domain == ENG_BITS && dtype_bytes(dtype) == 4;
}

static void int_limits(int dtype, int64_t *lo, int64_t *hi) {
    const DtypeRow *r = dtype_row(dtype);
    bool is_signed = r->cls == DC_SINT;
    *hi = (int64_t)(~0ull >> (64 - r->bits + is_signed));
    *lo = is_signed ? ~*hi : 0;
}

// Of the formats that fp32 rounds to by chance: 16 and 8 bits, and tf32.
static bool is_stochastic(const EngWalk *w, int dtype) {
    const DtypeRow *r = dtype_row(dtype);
    return w->stochastic && r->cls == DC_FLOAT && dtype != DT_F32 && r->bits >= 8 && r->flavour != FF_E8M0;
}

static float pow2(int e) { // a normal one
    uint32_t bits = (uint32_t)(e + 127) << 23;
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

void eng_by_chance(const GpLevel *level, int dtype, void *to, const float *x, size_t n, uint32_t key, uint32_t counter, float *tmp) {
    const DtypeRow *r = dtype_row(dtype);
    bool same_range = r->exp_bits == 8;
    float normal = same_range ? 0 : pow2(1 - r->bias), least = same_range ? 0 : pow2(1 - r->bias - r->man_bits);
    level->eng->stochastic(tmp, x, n, key, counter, 23 - r->man_bits, normal, least);
    level->narrow[dtype](to, tmp, n);
}

static void store_by_chance(const EngWalk *w, int dtype, void *to, const float *x, const EngBlock *b, EngBuf *s) {
    for (uint32_t i = 0; i < b->rows; i++)
        eng_by_chance(w->level, dtype, (uint8_t *)to + i * b->cols * dtype_bytes(dtype), x + i * b->cols, b->cols, w->key,
                      (b->row + i) << 16 | (uint32_t)b->col, (float *)s->tmp);
}

static void store_f32(const EngWalk *w, int dtype, void *to, const float *x, const EngBlock *b, EngBuf *s) {
    size_t n = b->rows * b->cols;
    if (is_stochastic(w, dtype)) {
        store_by_chance(w, dtype, to, x, b, s);
    } else if (dtype == DT_F32) {
        memmove(to, x, n * 4);
    } else if (dtype_is_float(dtype)) {
        w->level->narrow[dtype](to, x, n);
    } else if (dtype == DT_I1) {
        w->level->conv[LC_F32][LC_BOOL](to, x, n);
    } else {
        int64_t lo, hi;
        int_limits(dtype, &lo, &hi);
        bool wide = dtype_bytes(dtype) == 4; // the conversion saturates; its ends are no fp32
        w->level->eng->round((float *)s->tmp, x, n, wide ? -INFINITY : (float)lo,
                             wide ? INFINITY : (float)hi);
        w->level->conv[LC_F32][lane_class(dtype)](to, s->tmp, n);
    }
}

static void store_int(const EngWalk *w, int dtype, void *to, const int64_t *x, const EngBlock *b, EngBuf *s) {
    size_t n = b->rows * b->cols;
    if (dtype_is_float(dtype)) {
        w->level->conv[LC_I64][LC_I32](s->wide, x, n);
        w->level->conv[LC_I32][LC_F32](s->tmp, s->wide, n);
        store_f32(w, dtype, to, (const float *)s->tmp, b, s);
    } else if (dtype == DT_I1) {
        w->level->conv[LC_I64][LC_BOOL](to, x, n);
    } else {
        int64_t lo, hi;
        int_limits(dtype, &lo, &hi);
        if (dtype_bytes(dtype) < 4) {
            w->level->eng->clamp((int64_t *)s->wide, x, n, lo, hi);
            x = (const int64_t *)s->wide;
        }
        w->level->conv[LC_I64][lane_class(dtype)](to, x, n);
    }
}

static void store_as(const EngWalk *w, int dtype, void *to, const void *x, const EngBlock *b, EngBuf *s) {
    size_t bytes = dtype_bytes(dtype), n = b->rows * b->cols;
    if (w->domain == ENG_F32)
        store_f32(w, dtype, to, x, b, s);
    else if (w->domain == ENG_INT)
        store_int(w, dtype, to, x, b, s);
    else if (bytes == 4)
        memmove(to, x, n * 4);
    else
        w->level->conv[LC_U32][bits_class(bytes)](to, x, n);
}

const void *eng_load(const EngWalk *w, const EngTensor *t, const EngBlock *b, void *buf, EngBuf *s) {
    ConvFn *conv = load_conv(w, t->dtype);
    size_t n = b->rows * b->cols;
    const void *from = in_place(t, b);
    if (!is_run(t, b) || (t->careful && !conv)) {
        void *raw = conv ? s->raw : buf;
        eng_gather(t, b, raw);
        from = raw;
    }
    if (!conv)
        return from;
    conv(buf, from, n);
    return buf;
}

void *eng_out(const EngWalk *w, const EngTensor *t, const EngBlock *b, void *buf) {
    return is_run(t, b) && !t->careful && !t->nowhere && is_native(w, t->dtype) ? in_place(t, b) : buf;
}

void eng_store(const EngWalk *w, const EngTensor *t, const EngBlock *b, const void *x, EngBuf *s) {
    if (t->nowhere)
        return;
    if (is_run(t, b)) {
        void *to = in_place(t, b);
        if (to != x || !is_native(w, t->dtype))
            store_as(w, t->dtype, to, x, b, s);
        return;
    }
    if (!is_native(w, t->dtype)) {
        store_as(w, t->dtype, s->raw, x, b, s);
        x = s->raw;
    }
    eng_scatter(t, b, x);
}

float eng_get(const EngWalk *w, const EngTensor *t, const EngBlock *b, uint32_t row, size_t i) {
    Walk k;
    walk_begin(&k, t, eng_row(t, b, row), i);
    ConvFn *conv = load_conv(w, t->dtype);
    float v;
    if (conv)
        conv(&v, k.at, 1);
    else
        memcpy(&v, k.at, 4);
    return v;
}

void eng_put(const EngWalk *w, const EngTensor *t, const EngBlock *b, uint32_t row, size_t i, float v) {
    EngBuf s;
    Walk k;
    walk_begin(&k, t, eng_row(t, b, row), i);
    if (t->dtype == DT_F32) {
        memcpy(k.at, &v, 4);
        return;
    }
    store_f32(w, t->dtype, k.at, &v, &(EngBlock){.row = row, .rows = 1, .col = i, .cols = 1}, &s);
}

// --- scalars ---------------------------------------------------------------------------------------------

EngScalar eng_scalar(uint64_t field, EffOperand o, int atype) {
    EngScalar a = {.given = field != 0};
    if (o.at) {
        a.column = eng_column(o, atype);
        a.is_int = dtype_is_int(atype);
    } else if (addr_space(field) == SPACE_I32) {
        a.is_int = true;
        a.number = (int32_t)(uint32_t)field;
        a.value = (float)a.number;
    } else if (field) {
        uint32_t bits = (uint32_t)field;
        memcpy(&a.value, &bits, 4);
        a.number = fabsf(a.value) < 0x1p31f ? (int32_t)a.value : 0;
    }
    return a;
}

static void fill(void *buf, const void *value, size_t bytes, size_t n) { gp_fill(buf, value, bytes, n); }

void eng_splat(const EngWalk *w, const EngScalar *a, const EngBlock *b, void *buf) {
    size_t bytes = w->domain == ENG_INT ? 8 : 4;
    int64_t number = a->number;
    const void *value = w->domain == ENG_F32 ? (const void *)&a->value : &number;
    if (!a->column.at) {
        fill(buf, value, bytes, b->rows * b->cols);
        return;
    }
    ConvFn *conv = load_conv(w, a->column.dtype);
    for (uint32_t r = 0; r < b->rows; r++) {
        const uint8_t *at = eng_row(&a->column, b, b->row + r);
        uint64_t v = 0;
        if (conv)
            conv(&v, at, 1);
        else
            memcpy(&v, at, 4);
        if (b->cols == 1)
            memcpy((uint8_t *)buf + r * bytes, &v, bytes);
        else
            fill((uint8_t *)buf + r * b->cols * bytes, &v, bytes, b->cols);
    }
}

// --- rows ------------------------------------------------------------------------------------------------

typedef struct Rows {
    uint32_t rows, group;
    size_t cols;
    EngBody *body;
    const void *arg;
} Rows;

// One group after another from b->row to `end`.
static inline void groups_run(EngBlock *b, uint32_t group, uint32_t end, size_t cols, EngBody *body,
                              const void *arg, EngBuf *s) {
    s->filled[0] = s->filled[1] = false;
    for (; b->row < end; b->row += b->rows) {
        b->rows = end - b->row < group ? end - b->row : group;
        for (b->col = 0; b->col < cols; b->col += b->cols) {
            b->cols = cols - b->col < ENG_BLOCK ? cols - b->col : ENG_BLOCK;
            body(arg, b, s);
        }
    }
}

static __attribute__((noinline)) void rows_run(const Rows *k, size_t begin, size_t end) {
    EngBuf s;
    EngBlock b = {.row = (uint32_t)begin * k->group};
    uint32_t last = (uint32_t)end * k->group;
    groups_run(&b, k->group, last < k->rows ? last : k->rows, k->cols, k->body, k->arg, &s);
}

static void rows_task(void *arg, size_t begin, size_t end) {
    HostFp old = host_fp_begin(HOST_FP_IEEE);
    rows_run(arg, begin, end);
    host_fp_end(old);
}

static uint32_t group_of(uint32_t rows, size_t row) {
    uint32_t group = row >= ENG_BLOCK / 4 ? 1 : (uint32_t)(ENG_BLOCK / row); // alone a row needs no copy
    return group < rows ? group : rows;
}

void eng_run(Pool *pool, uint32_t rows, size_t cols, size_t weight, EngBody *body, const void *arg) {
    size_t row = cols * weight;
    Rows k = {rows, group_of(rows, row), cols, body, arg};
    size_t units = (rows + k.group - 1) / k.group;
    pool_run(pool, units, GRAIN_ELEMS / (k.group * row) + 1, rows_task, &k);
}

void eng_rows(const EffCall *c, size_t cols, size_t weight, EngBody *body, const void *arg, size_t arg_bytes) {
    uint32_t rows = isa_count(c->in->n[0]);
    EngJob *j = c->job;
    if (!j) {
        eng_run(c->pool, rows, cols, weight, body, arg);
        return;
    }
    assert(arg_bytes <= ENG_JOB_ARG);
    j->body = body, j->rows = rows, j->cols = cols;
    j->group = group_of(rows, cols * weight);
    memcpy(j->arg, arg, arg_bytes);
}

void eng_job_run(const EngJob *j, uint32_t slice, uint32_t begin, uint32_t end, uint8_t *local, EngBuf *s) {
    uint32_t last = j->part + j->rows < end ? j->part + j->rows : end;
    uint32_t first = j->part > begin ? j->part : begin;
    if (first >= last)
        return;
    EngBlock b = {.row = first - j->part, .local = local, .first = slice - j->part};
    groups_run(&b, j->group, last - j->part, j->cols, j->body, j->arg, s);
}
