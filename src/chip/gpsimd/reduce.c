// SPDX-License-Identifier: Apache-2.0
// reduce.c — reductions by a scalar program, and the choice of the quick way (gp_reduce_fast.c).
//
// Lanes are output elements: for every reduced index the program folds one element into each lane's
// accumulators. Where neighbours in memory are reduced, tiles of them are turned first. When there are few outputs and much to reduce, lanes are equal segments of the
// reduced range instead; the segments' results are then folded in order. Both cuts depend on the
// shape alone.
#include "chip/gpsimd/reduce.h"

// false when dims and the result's shape disagree
static bool red_shape(const Kern *k, RedShape *s) {
    const KTensor *in = &k->in[0], *out = &k->out[0];
    size_t nred;
    const int64_t *dims = gp_axes(k, AK_DIMENSIONS, in->rank, &nred);
    if (!dims || out->rank != in->rank - (int)nred)
        return false;
    uint64_t reduced = 0;
    for (size_t i = 0; i < nred; i++)
        reduced |= (uint64_t)1 << dims[i];
    int64_t strides[OTRN_MAX_RANK];
    gp_strides(in, strides);
    *s = (RedShape){.outs = 1, .reds = 1};
    int last = -1; // kind of the axis before: 0 kept, 1 reduced
    for (int d = 0, o = 0; d < in->rank; d++) {
        int red = reduced >> d & 1;
        if (!red && out->dims[o++] != in->dims[d])
            return false;
        *(red ? &s->reds : &s->outs) *= in->dims[d];
        if (in->dims[d] == 1)
            continue;
        RedAxis *list = red ? s->red : s->kept;
        int *n = red ? &s->nred : &s->nkept;
        if (last == red) // dense: neighbours of one kind are one axis
            list[*n - 1] = (RedAxis){list[*n - 1].n * in->dims[d], strides[d]};
        else
            list[(*n)++] = (RedAxis){in->dims[d], strides[d]};
        last = red;
    }
    s->inner_red = last != 0; // a single element reduces over nothing
    if (!s->nred)
        s->red[s->nred++] = (RedAxis){1, 0};
    return true;
}

int64_t red_offset(const RedAxis *axes, int n, int64_t index) {
    int64_t at = 0;
    for (int i = n - 1; i >= 0; i--) {
        at += index % axes[i].n * axes[i].stride;
        index /= axes[i].n;
    }
    return at;
}

bool gp_reduce_check(const Kern *k) {
    RedShape s;
    if (k->nregions != 1 || k->nout < 1 || k->nout > UINT16_MAX / 2)
        return false;
    const KProg *p = &k->regions[0];
    uint32_t n = k->nout;
    if (k->nin != 2 * n + p->ncaptures || p->ninputs != 2 * n || p->nouts != n || !red_shape(k, &s))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        Lane lane;
        if (!gp_same_dims(&k->in[i], &k->in[0]) || !gp_same_dims(&k->out[i], &k->out[0]) ||
            k->in[n + i].elems != 1)
            return false;
        int type = p->dtypes[i];
        if (p->dtypes[n + i] != type || p->dtypes[p->outs[i]] != type || k->out[i].dtype != type ||
            !lane_find(&lane, &gp_level_portable, HLO_CONVERT, type, &k->in[i].dtype, 1, NULL) ||
            !lane_find(&lane, &gp_level_portable, HLO_CONVERT, type, &k->in[n + i].dtype, 1, NULL))
            return false;
    }
    return true;
}

// --- lanes of outputs --------------------------------------------------------------------------

#define SEGMENT_MIN_REDS 4096 // fewer are not worth cutting
#define SEGMENT_MAX_OUTS 64
#define RED_TILE 32 // reduced neighbours turned at a time

typedef struct LaneRed {
    const GpCall *c;
    RedShape s;
    size_t slots, slot_bytes;
    char *slot0;
    int64_t segments, seg_len; // per output; segments = 1: whole range
} LaneRed;

size_t lane_slot_bytes(const Kern *k, size_t tile) {
    const KProg *p = &k->regions[0];
    size_t n = k->nout;
    size_t bytes = prog_slot_bytes(p) + gp_align(LANE_BLOCK * 8) + gp_align(n * sizeof(Lane)) +
                   gp_align(3 * n * sizeof(char *));
    for (size_t i = 0; i < n; i++)
        bytes += 2 * gp_align(LANE_BLOCK * dtype_bytes(p->dtypes[i])) +
                 gp_align(tile * LANE_BLOCK * dtype_bytes(k->in[i].dtype));
    return gp_align(bytes);
}

void lane_slot_open(LaneSlot *s, const GpCall *c, char *at, size_t tile) {
    const Kern *k = c->k;
    const KProg *p = &k->regions[0];
    size_t n = k->nout;
    prog_init(&s->prog, p, c->scratch, at, gp_captures(c, 0));
    at += prog_slot_bytes(p);
    s->offset = (int64_t *)at;
    at += gp_align(LANE_BLOCK * 8);
    s->convert = (Lane *)at;
    at += gp_align(n * sizeof(Lane));
    s->acc = (char **)at;
    s->raw = s->acc + n;
    s->wide = s->raw + n;
    at += gp_align(3 * n * sizeof(char *));
    for (size_t i = 0; i < n; i++) {
        size_t body = gp_align(LANE_BLOCK * dtype_bytes(p->dtypes[i]));
        s->acc[i] = at;
        s->wide[i] = at + body;
        s->raw[i] = at + 2 * body;
        at += 2 * body + gp_align(tile * LANE_BLOCK * dtype_bytes(k->in[i].dtype));
        lane_find(&s->convert[i], gp_level(c->level), HLO_CONVERT, p->dtypes[i], &k->in[i].dtype,
                  1, NULL);
    }
}

static void gather_lanes(char *dst, const char *src, const int64_t *offset, size_t bytes,
                         size_t m) {
    switch (bytes) {
    case 1:
        for (size_t i = 0; i < m; i++)
            ((uint8_t *)dst)[i] = ((const uint8_t *)src)[offset[i]];
        return;
    case 2:
        for (size_t i = 0; i < m; i++)
            ((uint16_t *)dst)[i] = ((const uint16_t *)src)[offset[i]];
        return;
    case 4:
        for (size_t i = 0; i < m; i++)
            ((uint32_t *)dst)[i] = ((const uint32_t *)src)[offset[i]];
        return;
    case 8:
        for (size_t i = 0; i < m; i++)
            ((uint64_t *)dst)[i] = ((const uint64_t *)src)[offset[i]];
        return;
    default:
        for (size_t i = 0; i < m; i++)
            memcpy(dst + i * bytes, src + offset[i] * (int64_t)bytes, bytes);
    }
}

// The elements at s->offset + at, as the body's type.
static const void *load_lanes(const LaneRed *j, LaneSlot *s, size_t i, int64_t at, bool dense,
                              size_t m) {
    const Kern *k = j->c->k;
    size_t bytes = dtype_bytes(k->in[i].dtype);
    const char *src = (const char *)j->c->in[i] + at * (int64_t)bytes;
    if (dense) {
        src += s->offset[0] * (int64_t)bytes;
    } else {
        gather_lanes(s->raw[i], src, s->offset, bytes, m);
        src = s->raw[i];
    }
    if (k->in[i].dtype == k->regions[0].dtypes[i])
        return src;
    lane_run(&s->convert[i], s->wide[i], (const void *[1]){src}, m);
    return s->wide[i];
}

static void fold(const LaneRed *j, LaneSlot *s, size_t m) { // acc = body(acc, elements)
    const KProg *p = &j->c->k->regions[0];
    size_t n = j->c->k->nout;
    for (size_t i = 0; i < n; i++)
        s->prog.at[i] = s->acc[i];
    prog_run(&s->prog, m);
    for (size_t i = 0; i < n; i++)
        if (prog_out(&s->prog, (int)i) != s->acc[i])
            memmove(s->acc[i], prog_out(&s->prog, (int)i), m * dtype_bytes(p->dtypes[i]));
}

static void load_init(const LaneRed *j, LaneSlot *s, size_t m) {
    const Kern *k = j->c->k;
    const KProg *p = &k->regions[0];
    for (size_t i = 0; i < k->nout; i++) {
        Lane lane;
        char one[16];
        lane_find(&lane, gp_level(j->c->level), HLO_CONVERT, p->dtypes[i],
                  &k->in[k->nout + i].dtype, 1, NULL);
        lane_run(&lane, one, (const void *[1]){j->c->in[k->nout + i]}, 1);
        gp_fill(s->acc[i], one, dtype_bytes(p->dtypes[i]), m);
    }
}

static bool offsets_dense(const int64_t *offset, size_t m) {
    for (size_t i = 1; i < m; i++)
        if (offset[i] != offset[0] + (int64_t)i)
            return false;
    return true;
}

static bool offsets_even(const int64_t *offset, size_t m) { // equally far apart
    for (size_t i = 2; i < m; i++)
        if (offset[i] - offset[i - 1] != offset[1] - offset[0])
            return false;
    return true;
}

// The reduced range in tiles of the contiguous axis: element t of all lanes becomes row t.
static void lane_red_tiles(const LaneRed *j, LaneSlot *s, size_t m) {
    const Kern *k = j->c->k;
    const KProg *p = &k->regions[0];
    int64_t len = j->s.red[j->s.nred - 1].n, apart = m > 1 ? s->offset[1] - s->offset[0] : 0;
    for (int64_t r = 0, rows; r < j->s.reds; r += rows) {
        rows = len - r % len < RED_TILE ? len - r % len : RED_TILE;
        int64_t at = s->offset[0] + red_offset(j->s.red, j->s.nred, r);
        for (size_t i = 0; i < k->nout; i++) {
            size_t bytes = dtype_bytes(k->in[i].dtype);
            Copy c;
            copy_init(&c, bytes, 2, (CopyAxis[]){{rows, (int64_t)m, 1}, {(int64_t)m, 1, apart}});
            copy_serial(&c, s->raw[i], (const char *)j->c->in[i] + at * (int64_t)bytes);
        }
        for (int64_t t = 0; t < rows; t++) {
            for (size_t i = 0; i < k->nout; i++) {
                const void *x = s->raw[i] + (size_t)t * m * dtype_bytes(k->in[i].dtype);
                if (k->in[i].dtype != p->dtypes[i]) {
                    lane_run(&s->convert[i], s->wide[i], (const void *[3]){x}, m);
                    x = s->wide[i];
                }
                s->prog.at[k->nout + i] = (void *)x;
            }
            fold(j, s, m);
        }
    }
}

// One element of every lane per reduced index, wherever it lies.
static void lane_red_rows(const LaneRed *j, LaneSlot *s, bool dense, size_t m) {
    const Kern *k = j->c->k;
    for (int64_t r = 0; r < j->s.reds; r++) {
        int64_t at = red_offset(j->s.red, j->s.nred, r);
        for (size_t i = 0; i < k->nout; i++)
            s->prog.at[k->nout + i] = (void *)load_lanes(j, s, i, at, dense, m);
        fold(j, s, m);
    }
}

static void lane_red_block(const LaneRed *j, LaneSlot *s, int64_t first, size_t m) {
    const Kern *k = j->c->k;
    for (size_t i = 0; i < m; i++)
        s->offset[i] = red_offset(j->s.kept, j->s.nkept, first + (int64_t)i);
    bool dense = offsets_dense(s->offset, m);
    load_init(j, s, m);
    if (!dense && j->s.inner_red && offsets_even(s->offset, m))
        lane_red_tiles(j, s, m);
    else
        lane_red_rows(j, s, dense, m);
    for (size_t i = 0; i < k->nout; i++) {
        size_t bytes = dtype_bytes(k->out[i].dtype);
        memcpy((char *)j->c->out[i] + first * (int64_t)bytes, s->acc[i], m * bytes);
    }
}

static void lane_red_slot(void *arg, size_t begin, size_t end) {
    const LaneRed *j = arg;
    int64_t blocks = (j->s.outs + LANE_BLOCK - 1) / LANE_BLOCK;
    for (size_t slot = begin; slot < end; slot++) {
        LaneSlot s;
        lane_slot_open(&s, j->c, j->slot0 + slot * j->slot_bytes, RED_TILE);
        int64_t from = blocks * (int64_t)slot / (int64_t)j->slots;
        int64_t to = blocks * (int64_t)(slot + 1) / (int64_t)j->slots;
        for (int64_t b = from; b < to; b++) {
            int64_t left = j->s.outs - b * LANE_BLOCK;
            lane_red_block(j, &s, b * LANE_BLOCK, (size_t)(left < LANE_BLOCK ? left : LANE_BLOCK));
        }
    }
}

// --- lanes of segments, one output at a time ---------------------------------------------------

static void segment_red(const LaneRed *j, LaneSlot *s, int64_t out) {
    const Kern *k = j->c->k;
    size_t n = k->nout, m = (size_t)j->segments;
    int64_t base = red_offset(j->s.kept, j->s.nkept, out);
    for (int64_t r = 0; r < j->seg_len; r++) {
        for (size_t i = 0; i < m; i++)
            s->offset[i] = base + red_offset(j->s.red, j->s.nred, (int64_t)i * j->seg_len + r);
        for (size_t i = 0; i < n; i++) {
            const void *x = load_lanes(j, s, i, 0, false, m);
            if (r == 0)
                memcpy(s->acc[i], x, m * dtype_bytes(k->regions[0].dtypes[i]));
            else
                s->prog.at[n + i] = (void *)x;
        }
        if (r)
            fold(j, s, m);
    }
    for (size_t i = 0; i < n; i++) // the segments' results become the elements
        memcpy(s->wide[i], s->acc[i], m * dtype_bytes(k->regions[0].dtypes[i]));
    load_init(j, s, 1);
    for (size_t at = 0; at < m; at++) {
        for (size_t i = 0; i < n; i++)
            s->prog.at[n + i] = s->wide[i] + at * dtype_bytes(k->regions[0].dtypes[i]);
        fold(j, s, 1);
    }
    for (int64_t r = j->segments * j->seg_len; r < j->s.reds; r++) {
        s->offset[0] = base + red_offset(j->s.red, j->s.nred, r);
        for (size_t i = 0; i < n; i++)
            s->prog.at[n + i] = (void *)load_lanes(j, s, i, 0, false, 1);
        fold(j, s, 1);
    }
    for (size_t i = 0; i < n; i++) {
        size_t bytes = dtype_bytes(k->out[i].dtype);
        memcpy((char *)j->c->out[i] + out * (int64_t)bytes, s->acc[i], bytes);
    }
}

static void segment_slot(void *arg, size_t begin, size_t end) {
    const LaneRed *j = arg;
    for (size_t slot = begin; slot < end; slot++) {
        LaneSlot s;
        lane_slot_open(&s, j->c, j->slot0 + slot * j->slot_bytes, RED_TILE);
        int64_t from = j->s.outs * (int64_t)slot / (int64_t)j->slots;
        int64_t to = j->s.outs * (int64_t)(slot + 1) / (int64_t)j->slots;
        for (int64_t o = from; o < to; o++)
            segment_red(j, &s, o);
    }
}

// --- results that have nothing to do with each other ---------------------------------------------

// One result as a reduction of its own.
typedef struct RedPart {
    Kern kern;
    KProg body;
    KStep step;
    KTensor in[2];
    uint8_t dtypes[3];
    uint16_t out;
} RedPart;

// False: other operands have a part in it, or there are no loops for it.
static bool red_part(const Kern *k, uint32_t i, RedPart *o, RedOp *op) {
    const KProg *p = &k->regions[0];
    uint32_t n = k->nout, at = 0;
    while (at < p->nsteps && p->steps[at].dst != p->outs[i])
        at++;
    if (p->ncaptures || at == p->nsteps)
        return false;
    *o = (RedPart){.step = p->steps[at], .in = {k->in[i], k->in[n + i]}, .dtypes = {p->dtypes[i], p->dtypes[i], p->dtypes[i]}, .out = 2};
    for (int s = 0; s < 2; s++) {
        if (o->step.src[s] != i && o->step.src[s] != n + i)
            return false;
        o->step.src[s] = o->step.src[s] != i;
    }
    o->step.dst = 2;
    o->body = (KProg){.nregs = 3, .ninputs = 2, .nsteps = 1, .nouts = 1, .dtypes = o->dtypes, .steps = &o->step, .outs = &o->out};
    o->kern = (Kern){.op = k->op, .nattrs = k->nattrs, .attrs = k->attrs, .nin = 2, .nout = 1, .in = o->in, .out = &k->out[i],
                     .nregions = 1, .regions = &o->body};
    return red_is_fast(&o->kern, op);
}

static bool red_parts(const Kern *k) {
    RedPart part;
    RedOp op;
    for (uint32_t i = 0; i < k->nout; i++)
        if (!red_part(k, i, &part, &op))
            return false;
    return true;
}

static otrn_status red_part_run(const GpCall *c, const RedShape *s, uint32_t i) {
    RedPart part;
    RedOp op;
    red_part(c->k, i, &part, &op);
    void *in[] = {c->in[i], c->in[c->k->nout + i]};
    void *out[] = {c->out[i]};
    GpCall one = *c;
    one.k = &part.kern, one.in = in, one.out = out;
    return red_fast_run(&one, s, op);
}

// --- entry -------------------------------------------------------------------------------------

size_t gp_reduce_scratch(const Kern *k, int threads) {
    RedShape s;
    red_shape(k, &s);
    if (!red_parts(k))
        return prog_shared_bytes(&k->regions[0]) + (size_t)threads * lane_slot_bytes(k, RED_TILE);
    size_t most = 0;
    for (uint32_t i = 0; i < k->nout; i++) {
        RedPart part;
        RedOp op;
        red_part(k, i, &part, &op);
        size_t bytes = red_fast_scratch(&part.kern, &s);
        most = bytes > most ? bytes : most;
    }
    return most;
}

otrn_status gp_reduce_run(const GpCall *c) {
    const Kern *k = c->k;
    LaneRed j = {.c = c, .segments = 1};
    red_shape(k, &j.s);
    if (!j.s.outs)
        return OTRN_OK;
    if (red_parts(k)) {
        otrn_status status = OTRN_OK;
        for (uint32_t i = 0; i < k->nout && !status; i++)
            status = red_part_run(c, &j.s, i);
        return status;
    }
    j.slot0 = prog_resolve(&k->regions[0], gp_level(c->level), c->scratch);
    j.slot_bytes = lane_slot_bytes(k, RED_TILE);
    if (j.s.outs <= SEGMENT_MAX_OUTS && j.s.reds >= SEGMENT_MIN_REDS) {
        j.segments = LANE_BLOCK;
        j.seg_len = j.s.reds / LANE_BLOCK;
        j.slots = gp_slots(c, (size_t)j.s.outs);
        pool_run(c->pool, j.slots, 1, segment_slot, &j);
    } else {
        j.slots = gp_slots(c, (size_t)(j.s.outs + LANE_BLOCK - 1) / LANE_BLOCK);
        pool_run(c->pool, j.slots, 1, lane_red_slot, &j);
    }
    return OTRN_OK;
}
