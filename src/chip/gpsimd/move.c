// SPDX-License-Identifier: Apache-2.0
// move.c — data movement: each op is one strided copy, or one per operand.
#include "chip/gpsimd/gp.h"

static bool one_to_one(const Kern *k, uint32_t nin) { return k->nin == nin && k->nout == 1; }

static void copy_call(const GpCall *c, int rank, const CopyAxis *axes, int64_t dst_at,
                      const void *src, int64_t src_at) {
    size_t bytes = dtype_bytes(c->k->out[0].dtype);
    Copy copy;
    copy_init(&copy, bytes, rank, axes);
    copy_run(&copy, c->pool, (char *)c->out[0] + dst_at * (int64_t)bytes,
             (const char *)src + src_at * (int64_t)bytes);
}

// --- reshape and other ops that move nothing ---------------------------------------------------

bool gp_copy_check(const Kern *k) {
    uint32_t from =
        k->op == HLO_DYNAMIC_RESHAPE ? k->nout : k->nin; // its second operand is a shape
    if (from != k->nout || k->nin < k->nout)
        return false;
    for (uint32_t i = 0; i < k->nout; i++)
        if (k->in[i].dtype != k->out[i].dtype || k->in[i].elems != k->out[i].elems)
            return false;
    return true;
}

otrn_status gp_copy_run(const GpCall *c) {
    for (uint32_t i = 0; i < c->k->nout; i++)
        copy_bytes(c->pool, c->out[i], c->in[i], gp_bytes(&c->k->out[i]));
    return OTRN_OK;
}

// --- broadcast ---------------------------------------------------------------------------------

// Result axis of each operand axis. `broadcast` puts new axes in front.
static bool broadcast_axes(const Kern *k, int64_t *axes) {
    const KTensor *in = &k->in[0], *out = &k->out[0];
    if (k->op == HLO_BROADCAST) {
        for (int i = 0; i < in->rank; i++)
            axes[i] = out->rank - in->rank + i;
        return in->rank <= out->rank;
    }
    const int64_t *dims = gp_ints(k, AK_BROADCAST_DIMENSIONS, in->rank);
    if (dims && in->rank)
        memcpy(axes, dims, in->rank * sizeof *axes);
    return dims != NULL;
}

bool gp_broadcast_check(const Kern *k) {
    int64_t axes[OTRN_MAX_RANK];
    if (k->nin < 1 || k->nout != 1 || k->in[0].dtype != k->out[0].dtype ||
        !broadcast_axes(k, axes) || !gp_axes_ok(axes, k->in[0].rank, k->out[0].rank))
        return false;
    for (int i = 0; i < k->in[0].rank; i++)
        if (k->in[0].dims[i] != 1 && k->in[0].dims[i] != k->out[0].dims[axes[i]])
            return false;
    return true;
}

otrn_status gp_broadcast_run(const GpCall *c) {
    const KTensor *in = &c->k->in[0], *out = &c->k->out[0];
    int64_t map[OTRN_MAX_RANK], ss[OTRN_MAX_RANK], ds[OTRN_MAX_RANK];
    CopyAxis axes[OTRN_MAX_RANK];
    broadcast_axes(c->k, map);
    gp_strides(in, ss);
    gp_strides(out, ds);
    for (int d = 0; d < out->rank; d++)
        axes[d] = (CopyAxis){out->dims[d], ds[d], 0};
    for (int i = 0; i < in->rank; i++)
        axes[map[i]].src = in->dims[i] == 1 ? 0 : ss[i];
    copy_call(c, out->rank, axes, 0, c->in[0], 0);
    return OTRN_OK;
}

// --- transpose, reverse ------------------------------------------------------------------------

bool gp_transpose_check(const Kern *k) {
    if (!one_to_one(k, 1) || k->in[0].dtype != k->out[0].dtype || k->in[0].rank != k->out[0].rank)
        return false;
    int rank = k->in[0].rank;
    const int64_t *perm = gp_ints(k, AK_PERMUTATION, (size_t)rank);
    if (!perm || !gp_axes_ok(perm, (size_t)rank, rank))
        return false;
    for (int d = 0; d < rank; d++)
        if (k->out[0].dims[d] != k->in[0].dims[perm[d]])
            return false;
    return true;
}

otrn_status gp_transpose_run(const GpCall *c) {
    const KTensor *in = &c->k->in[0], *out = &c->k->out[0];
    const int64_t *perm = gp_ints(c->k, AK_PERMUTATION, in->rank);
    int64_t ss[OTRN_MAX_RANK], ds[OTRN_MAX_RANK];
    CopyAxis axes[OTRN_MAX_RANK];
    gp_strides(in, ss);
    gp_strides(out, ds);
    for (int d = 0; d < out->rank; d++)
        axes[d] = (CopyAxis){out->dims[d], ds[d], ss[perm[d]]};
    copy_call(c, out->rank, axes, 0, c->in[0], 0);
    return OTRN_OK;
}

bool gp_reverse_check(const Kern *k) {
    size_t n;
    return one_to_one(k, 1) && gp_same_type(&k->in[0], &k->out[0]) &&
           gp_axes(k, AK_DIMENSIONS, k->in[0].rank, &n);
}

otrn_status gp_reverse_run(const GpCall *c) {
    const KTensor *in = &c->k->in[0];
    int64_t s[OTRN_MAX_RANK], src_at = 0;
    CopyAxis axes[OTRN_MAX_RANK];
    size_t n;
    const int64_t *turned = gp_axes(c->k, AK_DIMENSIONS, in->rank, &n);
    if (!in->elems)
        return OTRN_OK;
    gp_strides(in, s);
    for (int d = 0; d < in->rank; d++)
        axes[d] = (CopyAxis){in->dims[d], s[d], s[d]};
    for (size_t i = 0; i < n; i++) {
        int64_t d = turned[i];
        axes[d].src = -s[d];
        src_at += (in->dims[d] - 1) * s[d];
    }
    copy_call(c, in->rank, axes, 0, c->in[0], src_at);
    return OTRN_OK;
}

// --- slice, pad, concatenate -------------------------------------------------------------------

bool gp_slice_check(const Kern *k) {
    if (!one_to_one(k, 1) || k->in[0].dtype != k->out[0].dtype || k->in[0].rank != k->out[0].rank)
        return false;
    size_t rank = k->in[0].rank;
    const int64_t *start = gp_ints(k, AK_START_INDICES, rank);
    const int64_t *limit = gp_ints(k, AK_LIMIT_INDICES, rank);
    const int64_t *stride = gp_ints(k, AK_STRIDES, rank);
    if (!start || !limit || !stride)
        return false;
    for (size_t d = 0; d < rank; d++) {
        if (start[d] < 0 || start[d] > limit[d] || limit[d] > k->in[0].dims[d] || stride[d] < 1)
            return false;
        int64_t span = limit[d] - start[d];
        if (k->out[0].dims[d] != span / stride[d] + (span % stride[d] != 0))
            return false;
    }
    return true;
}

otrn_status gp_slice_run(const GpCall *c) {
    const KTensor *in = &c->k->in[0], *out = &c->k->out[0];
    const int64_t *start = gp_ints(c->k, AK_START_INDICES, in->rank);
    const int64_t *stride = gp_ints(c->k, AK_STRIDES, in->rank);
    int64_t ss[OTRN_MAX_RANK], ds[OTRN_MAX_RANK], at = 0;
    CopyAxis axes[OTRN_MAX_RANK];
    gp_strides(in, ss);
    gp_strides(out, ds);
    for (int d = 0; d < in->rank; d++) {
        axes[d] = (CopyAxis){out->dims[d], ds[d], out->dims[d] > 1 ? ss[d] * stride[d] : 0};
        at += start[d] * ss[d];
    }
    if (out->elems)
        copy_call(c, in->rank, axes, 0, c->in[0], at);
    return OTRN_OK;
}

typedef struct PadDims {
    const int64_t *low, *high, *inner;
} PadDims;

static bool pad_dims(const Kern *k, PadDims *p) {
    size_t rank = k->in[0].rank;
    p->low = gp_ints(k, AK_EDGE_PADDING_LOW, rank);
    p->high = gp_ints(k, AK_EDGE_PADDING_HIGH, rank);
    p->inner = gp_ints(k, AK_INTERIOR_PADDING, rank);
    return p->low && p->high && p->inner;
}

bool gp_pad_check(const Kern *k) {
    PadDims p;
    if (!one_to_one(k, 2) || k->in[0].dtype != k->out[0].dtype ||
        k->in[1].dtype != k->in[0].dtype || k->in[1].elems != 1 ||
        k->in[0].rank != k->out[0].rank || !pad_dims(k, &p))
        return false;
    for (int d = 0; d < k->in[0].rank; d++) {
        int64_t n = k->in[0].dims[d], gap, size;
        if (p.inner[d] < 0 || __builtin_mul_overflow(n ? n - 1 : 0, p.inner[d], &gap) ||
            __builtin_add_overflow(n, gap, &size) ||
            __builtin_add_overflow(size, p.low[d], &size) ||
            __builtin_add_overflow(size, p.high[d], &size))
            return false;
        if (k->out[0].dims[d] != size || p.inner[d] == INT64_MAX)
            return false;
    }
    return true;
}

// The operand's elements that fall inside the result: first and count per axis.
static bool pad_window(const KTensor *in, const KTensor *out, const PadDims *p, CopyAxis *axes,
                       int64_t *dst_at, int64_t *src_at) {
    int64_t ss[OTRN_MAX_RANK], ds[OTRN_MAX_RANK];
    gp_strides(in, ss);
    gp_strides(out, ds);
    *dst_at = *src_at = 0;
    for (int d = 0; d < in->rank; d++) {
        int64_t step = p->inner[d] + 1, low = p->low[d];
        int64_t first = low >= 0 ? 0 : -(low + 1) / step + 1; // least i with low + i step >= 0
        int64_t room = out->dims[d] - 1 - low;                // i step <= room
        int64_t last = room < 0 ? -1 : room / step;
        last = last < in->dims[d] - 1 ? last : in->dims[d] - 1;
        if (last < first)
            return false;
        axes[d] = (CopyAxis){last - first + 1, last > first ? ds[d] * step : 0, ss[d]};
        *dst_at += (low + first * step) * ds[d];
        *src_at += first * ss[d];
    }
    return true;
}

otrn_status gp_pad_run(const GpCall *c) {
    const KTensor *in = &c->k->in[0], *out = &c->k->out[0];
    PadDims p;
    CopyAxis axes[OTRN_MAX_RANK];
    int64_t dst_at, src_at, inside = 1;
    pad_dims(c->k, &p);
    if (!out->elems)
        return OTRN_OK;
    bool any = pad_window(in, out, &p, axes, &dst_at, &src_at);
    for (int d = 0; d < in->rank && any; d++)
        inside *= axes[d].n;
    if (!any || inside != out->elems)
        fill_run(c->pool, c->out[0], c->in[1], dtype_bytes(out->dtype), (size_t)out->elems);
    if (any)
        copy_call(c, in->rank, axes, dst_at, c->in[0], src_at);
    return OTRN_OK;
}

bool gp_concat_check(const Kern *k) {
    int64_t dim = gp_int(k, AK_DIMENSION, -1), size = 0;
    if (k->nout != 1 || k->nin < 1 || dim < 0 || dim >= k->out[0].rank)
        return false;
    for (uint32_t i = 0; i < k->nin; i++) {
        const KTensor *in = &k->in[i];
        if (in->dtype != k->out[0].dtype || in->rank != k->out[0].rank)
            return false;
        for (int d = 0; d < in->rank; d++)
            if (d != dim && in->dims[d] != k->out[0].dims[d])
                return false;
        if (__builtin_add_overflow(size, in->dims[dim], &size))
            return false;
    }
    return size == k->out[0].dims[dim];
}

otrn_status gp_concat_run(const GpCall *c) {
    const KTensor *out = &c->k->out[0];
    int64_t dim = gp_int(c->k, AK_DIMENSION, 0), at = 0, ds[OTRN_MAX_RANK], ss[OTRN_MAX_RANK];
    gp_strides(out, ds);
    for (uint32_t i = 0; i < c->k->nin; i++) {
        const KTensor *in = &c->k->in[i];
        CopyAxis axes[OTRN_MAX_RANK];
        gp_strides(in, ss);
        for (int d = 0; d < in->rank; d++)
            axes[d] = (CopyAxis){in->dims[d], ds[d], ss[d]};
        if (in->elems)
            copy_call(c, in->rank, axes, at, c->in[i], 0);
        at += in->dims[dim] * ds[dim];
    }
    return OTRN_OK;
}

// --- dynamic slices ----------------------------------------------------------------------------

// Start of a window of `size` inside `whole`, clamped so that it fits.
static int64_t window_start(const GpCall *c, uint32_t first, const KTensor *whole,
                            const KTensor *window, int64_t *starts) {
    int64_t strides[OTRN_MAX_RANK], at = 0;
    gp_strides(whole, strides);
    for (int d = 0; d < whole->rank; d++) {
        int64_t s = gp_index_at(c->k->in[first + (uint32_t)d].dtype, c->in[first + (uint32_t)d], 0);
        int64_t room = whole->dims[d] - window->dims[d];
        starts[d] = s < 0 ? 0 : s > room ? room : s;
        at += starts[d] * strides[d];
    }
    return at;
}

static bool window_ok(const Kern *k, uint32_t first, const KTensor *whole, const KTensor *window) {
    if (whole->dtype != window->dtype || whole->rank != window->rank ||
        k->nin != first + whole->rank)
        return false;
    for (int d = 0; d < whole->rank; d++) {
        const KTensor *index = &k->in[first + (uint32_t)d];
        if (window->dims[d] > whole->dims[d] || index->elems != 1 || !gp_is_index(index->dtype))
            return false;
    }
    return true;
}

bool gp_dynamic_slice_check(const Kern *k) {
    return k->nout == 1 && k->nin >= 1 && window_ok(k, 1, &k->in[0], &k->out[0]);
}

otrn_status gp_dynamic_slice_run(const GpCall *c) {
    const KTensor *in = &c->k->in[0], *out = &c->k->out[0];
    int64_t ss[OTRN_MAX_RANK], ds[OTRN_MAX_RANK], starts[OTRN_MAX_RANK];
    CopyAxis axes[OTRN_MAX_RANK];
    if (!out->elems)
        return OTRN_OK;
    int64_t at = window_start(c, 1, in, out, starts);
    gp_strides(in, ss);
    gp_strides(out, ds);
    for (int d = 0; d < in->rank; d++)
        axes[d] = (CopyAxis){out->dims[d], ds[d], ss[d]};
    copy_call(c, in->rank, axes, 0, c->in[0], at);
    return OTRN_OK;
}

bool gp_dynamic_update_slice_check(const Kern *k) {
    return k->nout == 1 && k->nin >= 2 && gp_same_type(&k->in[0], &k->out[0]) &&
           window_ok(k, 2, &k->in[0], &k->in[1]);
}

otrn_status gp_dynamic_update_slice_run(const GpCall *c) {
    const KTensor *whole = &c->k->out[0], *window = &c->k->in[1];
    int64_t ss[OTRN_MAX_RANK], ds[OTRN_MAX_RANK], starts[OTRN_MAX_RANK];
    CopyAxis axes[OTRN_MAX_RANK];
    copy_bytes(c->pool, c->out[0], c->in[0], gp_bytes(whole));
    if (!window->elems)
        return OTRN_OK;
    int64_t at = window_start(c, 2, whole, window, starts);
    gp_strides(whole, ds);
    gp_strides(window, ss);
    for (int d = 0; d < whole->rank; d++)
        axes[d] = (CopyAxis){window->dims[d], ds[d], ss[d]};
    copy_call(c, whole->rank, axes, at, c->in[1], 0);
    return OTRN_OK;
}

// --- bitcast, iota -----------------------------------------------------------------------------

// Same bits under another type. The host keeps one element narrower than a byte per byte, so casts
// between such a type and one of another width pack or unpack.
static bool bitcast_packs(const KTensor *in, const KTensor *out) {
    int a = dtype_row(in->dtype)->bits, b = dtype_row(out->dtype)->bits;
    return (a < 8 || b < 8) && a != b;
}

bool gp_bitcast_check(const Kern *k) {
    if (!one_to_one(k, 1))
        return false;
    const KTensor *in = &k->in[0], *out = &k->out[0];
    if (bitcast_packs(in, out)) {
        int64_t a = dtype_row(in->dtype)->bits, b = dtype_row(out->dtype)->bits,
                most = a > b ? a : b;
        if (dtype_is_complex(in->dtype) || dtype_is_complex(out->dtype))
            return false;
        return most <= 64 && most % (a < b ? a : b) == 0 && in->elems <= INT64_MAX / a &&
               out->elems <= INT64_MAX / b && in->elems * a == out->elems * b;
    }
    return gp_bytes(in) == gp_bytes(out) &&
           dtype_is_complex(in->dtype) == dtype_is_complex(out->dtype);
}

// Codes of fewer than eight bits change the way the rest of the byte is filled.
static void bitcast_narrow(uint8_t *y, const uint8_t *x, size_t n, int bits, bool is_signed) {
    uint8_t mask = (uint8_t)((1u << bits) - 1), top = (uint8_t)(1u << (bits - 1));
    for (size_t i = 0; i < n; i++) {
        uint8_t v = x[i] & mask;
        y[i] = is_signed ? (uint8_t)((v ^ top) - top) : v;
    }
}

// One row of `wide` bits at a time: its narrow elements from the least significant bits up.
static void bitcast_packed(const GpCall *c) {
    const KTensor *in = &c->k->in[0], *out = &c->k->out[0];
    const DtypeRow *from = dtype_row(in->dtype), *to = dtype_row(out->dtype);
    int wide = from->bits > to->bits ? from->bits : to->bits;
    uint64_t mask = from->bits < 64 ? ((uint64_t)1 << from->bits) - 1 : UINT64_MAX;
    const char *src = c->in[0];
    char *dst = c->out[0];
    for (int64_t row = 0, rows = in->elems / (wide / from->bits); row < rows; row++) {
        uint64_t all = 0;
        for (int at = 0; at < wide; at += from->bits, src += from->bytes) {
            uint64_t v = 0;
            memcpy(&v, src, from->bytes);
            all |= (v & mask) << at;
        }
        for (int at = 0; at < wide; at += to->bits, dst += to->bytes) {
            uint64_t v = all >> at;
            memcpy(dst, &v, to->bytes);
            if (to->bits < 8)
                bitcast_narrow((uint8_t *)dst, (uint8_t *)dst, 1, to->bits, to->cls == DC_SINT);
        }
    }
}

otrn_status gp_bitcast_run(const GpCall *c) {
    const DtypeRow *to = dtype_row(c->k->out[0].dtype);
    if (bitcast_packs(&c->k->in[0], &c->k->out[0]))
        bitcast_packed(c);
    else if (to->bits < 8 && to->cls != DC_BOOL)
        bitcast_narrow(c->out[0], c->in[0], (size_t)c->k->out[0].elems, to->bits,
                       to->cls == DC_SINT);
    else
        copy_bytes(c->pool, c->out[0], c->in[0], gp_bytes(&c->k->out[0]));
    return OTRN_OK;
}

bool gp_iota_check(const Kern *k) {
    int64_t dim = gp_int(k, AK_IOTA_DIMENSION, -1);
    uint8_t from = DT_I64;
    Lane lane;
    return k->nout == 1 && dim >= 0 && dim < k->out[0].rank &&
           lane_find(&lane, &gp_level_portable, HLO_CONVERT, k->out[0].dtype, &from, 1, NULL);
}

typedef struct IotaJob {
    Lane lane;
    char *out;
    int64_t inner, size; // elements behind the counted axis, its size
} IotaJob;

// The counted axis repeats with period size * inner; each element is its count, converted once.
static void iota_chunk(void *arg, size_t begin, size_t end) {
    const IotaJob *j = arg;
    int64_t count[LANE_BLOCK];
    int64_t in = (int64_t)begin % j->inner, at = (int64_t)begin / j->inner % j->size;
    for (size_t done = begin; done < end;) {
        int64_t m = (int64_t)(end - done < LANE_BLOCK ? end - done : LANE_BLOCK);
        for (int64_t i = 0; i < m;) { // stretches that count up, or stand still
            int64_t stay = j->inner == 1 ? j->size - at : j->inner - in,
                    len = stay < m - i ? stay : m - i;
            int64_t up = j->inner == 1;
            for (int64_t e = 0; e < len; e++)
                count[i + e] = at + e * up;
            i += len;
            in = up ? 0 : in + len;
            at += up ? len : in == j->inner;
            in = in == j->inner ? 0 : in;
            at = at == j->size ? 0 : at;
        }
        lane_run(&j->lane, j->out + done * j->lane.out_bytes, (const void *[1]){count}, (size_t)m);
        done += (size_t)m;
    }
}

otrn_status gp_iota_run(const GpCall *c) {
    const KTensor *out = &c->k->out[0];
    int64_t dim = gp_int(c->k, AK_IOTA_DIMENSION, 0), strides[OTRN_MAX_RANK];
    uint8_t from = DT_I64;
    if (!out->elems)
        return OTRN_OK;
    gp_strides(out, strides);
    IotaJob j = {.out = c->out[0], .inner = strides[dim], .size = out->dims[dim]};
    lane_find(&j.lane, gp_level(c->level), HLO_CONVERT, out->dtype, &from, 1, NULL);
    pool_run(c->pool, (size_t)out->elems, 8192, iota_chunk, &j);
    return OTRN_OK;
}

// --- sizes and numbers known when the program is made ------------------------------------------

bool gp_dim_size_check(const Kern *k) {
    int64_t dim = gp_int(k, AK_DIMENSION, -1);
    return one_to_one(k, 1) && dim >= 0 && dim < k->in[0].rank && k->out[0].elems == 1 &&
           gp_is_index(k->out[0].dtype);
}

otrn_status gp_dim_size_run(const GpCall *c) {
    dtype_from_i64(c->k->out[0].dtype, c->out[0], c->k->in[0].dims[gp_int(c->k, AK_DIMENSION, 0)]);
    return OTRN_OK;
}
