// SPDX-License-Identifier: Apache-2.0
// depth.c — depthwise convolutions and their gradients on the vector engine.
//
//   y[b, l…, c] = sum over taps s… of x[b, (l * ml + s * ms - low) / gap, c] * w[s…, c]        by image and by its gradient
//   w[s…, c]    = sum over b and places l… of x[…] * y[b, l…, c]                               by the kernel
//
// Every channel is by itself, so channels (of one image after the other) lie on the partitions and places along them. A tap
// is one instruction over strided views of SBUF: x times the tap's number on that partition, added to what there is.
// Strides, dilations of both kinds and edges only change the views: places that a tap does not meet are left out, no zero
// is loaded or multiplied. For the kernel's gradient the vector engine multiplies and the scalar engine sums.
//
//   images with channels last come by the transposing DMA, or where a chip has none through the array, and go back
//   through the array, 128 places at a time
//
// Which chips do it so is decided by their prices: GpSimd is as quick per element and stays where the vector engine takes
// much longer (SLOWER).
#include <assert.h>
#include <string.h>

#include "base/num.h"
#include "hlo/conv.h"
#include "mach/cost.h"
#include "tile/area.h"
#include "tile/layout.h"

#define SPACE 3
#define AREA_BYTES ROWS_AREA_BEGIN // what products use otherwise
#define OUT_TILES 4
#define TMPS 4
#define TAPS_MAX 256
#define CYCLES_MIN 64  // of any instruction
#define CYCLES_APART 24 // between two
#define ALONG_MAX 2048 // places along a partition when several images lie there
#define WORK_MIN (1 << 16) // multiplications; fewer are one kernel's work
#define INSTS_MAX (1 << 18)
#define SLOWER 3.0 // than GpSimd at most: the vector engine has time to spare, and edges cost nothing here;
#define SLOWER_MANY 2.0 // with many taps it has less
#define MANY_TAPS 32
#define CHANNELS_MIN 16 // that the array turns

typedef struct Window { // an axis of places and taps
    int64_t nl, ns, nx;       // places, taps, elements of x
    int64_t ml, ms, low, gap; // place l and tap s meet x at (l * ml + s * ms - low) / gap, when that is whole
} Window;

typedef struct Tensor { // strides in elements
    uint64_t addr;
    int64_t base, b, c, s[SPACE];
    int dtype;
} Tensor;

typedef struct Tile { // partitions [at, at + lanes) of those that images and channels in a row would have
    int64_t image, images, step; // which images, how many, from one to the next
    int64_t channel, channels;
    int64_t at, lanes, along; // along: images along each partition, from its own on
} Tile;

typedef struct Box { // where a tap meets x, inside the chunk
    int64_t n[SPACE], l[SPACE], x[SPACE], lstep[SPACE], xstep[SPACE];
} Box;

typedef struct Chunk { // places [l0, l0 + ln) of the first axis and the elements of x they meet
    int64_t l0, ln, x0, xn;
} Chunk;

typedef struct Depth {
    Emit *e;
    bool by_kernel; // the result has the taps
    int ns;
    Window axis[SPACE];
    int64_t batch, channels, taps, rest_l, rest_x; // rest: elements behind the first axis
    Tensor x, l, s;                                // s: kernel or its gradient
    bool turns_sums; // taps on the partitions at the end, so that images can be added
    bool flat;     // channels of all images in a row on the partitions; else `wide` channels of `across` images, `along` each
    int64_t chunk; // places of the first axis that go at once
    int64_t wide, across, along;
    uint32_t x_bytes, l_bytes, small_bytes;
    Area area;
    Ring xs, ls, smalls, parts, tmps, sums, outs, banks;
} Depth;



// --- reading -------------------------------------------------------------------------------------------

static bool has_engine_type(const HloType *t) { return t->dtype == DT_F32 || t->dtype == DT_BF16 || t->dtype == DT_F16; }

static Tensor tensor_of(const HloType *t, int b, int c, const int *space, int ns) {
    int64_t strides[OTRN_MAX_RANK];
    nest_strides(t, strides);
    Tensor v = {.b = strides[b], .c = strides[c], .dtype = t->dtype};
    for (int i = 0; i < ns; i++)
        v.s[i] = strides[space[i]];
    return v;
}

static void read_axes(Depth *d, const ConvForm *f) {
    Tensor *kernel = d->by_kernel ? &d->l : &d->s;
    d->taps = d->rest_l = d->rest_x = 1;
    for (int i = 0; i < d->ns; i++) {
        const ConvAxis *a = &f->axis[i];
        d->axis[i] = (Window){a->out, a->kernel, a->in, a->stride, a->kernel_gap, a->low, a->in_gap};
        if (d->by_kernel)
            d->axis[i] = (Window){a->kernel, a->out, a->in, a->kernel_gap, a->stride, a->low, a->in_gap};
        if (a->reversed) {
            kernel->base += (a->kernel - 1) * kernel->s[i];
            kernel->s[i] = -kernel->s[i];
        }
        d->taps *= d->axis[i].ns;
        d->rest_l *= i ? d->axis[i].nl : 1, d->rest_x *= i ? d->axis[i].nx : 1;
    }
}

static bool depth_read(const Hlo *h, const HloOp *op, Depth *d) {
    ConvForm f;
    if (!conv_read(h, op, &f) || !conv_is_depthwise(h, op, &f) || f.ns > SPACE)
        return false;
    const HloType *x = hlo_value_type(h, hlo_operand(h, op, 0)), *w = hlo_value_type(h, hlo_operand(h, op, 1));
    const HloType *y = hlo_value_type(h, op->results);
    if (!has_engine_type(x) || !has_engine_type(y) || x->dtype != w->dtype)
        return false;
    int in[SPACE], kernel[SPACE], out[SPACE];
    for (int i = 0; i < f.ns; i++)
        in[i] = f.axis[i].in_dim, kernel[i] = f.axis[i].kernel_dim, out[i] = f.axis[i].out_dim;
    *d = (Depth){.ns = f.ns, .by_kernel = f.batch_groups > 1};
    if (d->by_kernel) {
        d->batch = x->dims[f.in_feature], d->channels = f.batch_groups;
        d->x = tensor_of(x, f.in_feature, f.in_batch, in, f.ns);
        d->l = tensor_of(w, f.kernel_in, f.kernel_out, kernel, f.ns);
        d->s = tensor_of(y, f.out_batch, f.out_feature, out, f.ns);
    } else {
        d->batch = x->dims[f.in_batch], d->channels = f.feature_groups;
        d->x = tensor_of(x, f.in_batch, f.in_feature, in, f.ns);
        d->l = tensor_of(y, f.out_batch, f.out_feature, out, f.ns);
        d->s = tensor_of(w, f.kernel_in, f.kernel_out, kernel, f.ns);
    }
    read_axes(d, &f);
    return d->taps <= TAPS_MAX;
}

// --- where taps meet places ------------------------------------------------------------------------------

static Chunk chunk_of(const Depth *d, int64_t l0, int64_t ln) {
    const Window *a = &d->axis[0];
    int64_t first = floor_div(l0 * a->ml - a->low + a->gap - 1, a->gap);
    int64_t last = floor_div((l0 + ln - 1) * a->ml + (a->ns - 1) * a->ms - a->low, a->gap);
    first = max64(first, 0), last = min64(last, a->nx - 1);
    return (Chunk){l0, ln, first, max64(last - first + 1, 0)};
}

// Places [l0, l0 + ln) that tap s meets in elements [x0, x0 + xn) of one axis: every lstep-th, and every xstep-th of x.
static bool meet(const Window *a, int64_t s, int64_t l0, int64_t ln, int64_t x0, int64_t xn, Box *b, int k) {
    int64_t g = num_gcd(a->ml, a->gap), lstep = a->gap / g, xstep = a->ml / g, l = l0, end = min64(l0 + lstep, l0 + ln);
    while (l < end && (l * a->ml + s * a->ms - a->low) % a->gap)
        l++;
    if (l >= end)
        return false;
    int64_t x = (l * a->ml + s * a->ms - a->low) / a->gap, skip = x < x0 ? ceil_div(x0 - x, xstep) : 0;
    l += skip * lstep, x += skip * xstep;
    if (l >= l0 + ln || x >= x0 + xn)
        return false;
    b->n[k] = min64((l0 + ln - 1 - l) / lstep, (x0 + xn - 1 - x) / xstep) + 1;
    b->l[k] = l - l0, b->x[k] = x - x0, b->lstep[k] = lstep, b->xstep[k] = xstep;
    return true;
}

static void tap_index(const Depth *d, int64_t tap, int64_t s[SPACE]) {
    for (int k = d->ns; k-- > 0; tap /= d->axis[k].ns)
        s[k] = tap % d->axis[k].ns;
}

static bool box_of(const Depth *d, int64_t tap, const Chunk *c, Box *b) {
    int64_t s[SPACE];
    tap_index(d, tap, s);
    bool some = true;
    for (int k = 0; k < d->ns && some; k++) {
        const Window *a = &d->axis[k];
        some = k ? meet(a, s[k], 0, a->nl, 0, a->nx, b, k) : meet(a, s[k], c->l0, c->ln, c->x0, c->xn, b, k);
    }
    return some;
}

static int64_t box_size(const Depth *d, const Box *b) {
    int64_t n = 1;
    for (int k = 0; k < d->ns; k++)
        n *= b->n[k];
    return n;
}

// --- the cut ---------------------------------------------------------------------------------------------


// Slots for places that go at once; false when they do not fit.
static bool place_slots(Depth *d, int64_t chunk, int64_t along) {
    int64_t rows = 0;
    for (int64_t l0 = 0; l0 < d->axis[0].nl; l0 += chunk)
        rows = max64(rows, chunk_of(d, l0, min64(chunk, d->axis[0].nl - l0)).xn);
    int64_t x = along * rows * d->rest_x * (int64_t)dtype_bytes(d->x.dtype), l = along * chunk * d->rest_l * 4;
    if (x > AREA_BYTES || l > AREA_BYTES)
        return false;
    d->x_bytes = max64(room_whole(x), SBUF_PIECE), d->l_bytes = room_whole(l);
    d->small_bytes = room_whole(d->taps * 4);
    uint32_t at = 2 * (d->x_bytes + d->l_bytes + d->small_bytes) + OUT_TILES * PSUM_BANK_BYTES;
    at += d->by_kernel ? 2 * d->small_bytes + TMPS * d->l_bytes + (d->turns_sums ? room_whole(d->channels * 4) : 0) : 0;
    d->chunk = chunk, d->along = along;
    return at <= AREA_BYTES;
}

static bool lies_turned(const Depth *d, const Tensor *t) { return t->c == 1 && d->channels > 1; }

enum { PLACES, TAPS, ELEMS };
// Row after row has one stride, as going through the array needs it.
static bool is_even(const Depth *d, const Tensor *t, int of) {
    for (int k = 1; k < d->ns; k++)
        if (t->s[k - 1] != t->s[k] * (of == PLACES ? d->axis[k].nl : of == TAPS ? d->axis[k].ns : d->axis[k].nx))
            return false;
    return true;
}

static bool rows_are_dense(const Depth *d, const Tensor *t, bool x) {
    const Window *a = &d->axis[d->ns - 1];
    return t->s[d->ns - 1] == 1 || (x ? a->nx : a->nl) == 1;
}

static int64_t tiles_of(const Depth *d, int64_t along) {
    return d->flat ? ceil_div(d->batch * d->channels, PARTITIONS) : ceil_div(d->channels, d->wide) * ceil_div(d->batch, d->across * along);
}

// Cycles that a tap over all places takes, given the images along a partition.
static double cycles_of(const Depth *d, int64_t along) {
    int64_t places = d->axis[0].nl * d->rest_l * along;
    return (double)tiles_of(d, along) * (double)(max64(places, CYCLES_MIN) + CYCLES_APART);
}

// Channels of all images in a row leave no partition idle; several images along a partition make longer instructions.
static bool cut(Depth *d) {
    int64_t places = d->axis[0].nl * d->rest_l, chunk = d->axis[0].nl;
    d->wide = ceil_div(d->channels, ceil_div(d->channels, PARTITIONS));
    d->turns_sums = d->by_kernel && d->taps <= PARTITIONS && is_even(d, &d->s, TAPS);
    d->across = !d->by_kernel || d->turns_sums ? min64(d->batch, PARTITIONS / d->wide) : 1;
    bool one_stride = d->l.b == places * d->l.s[d->ns - 1] || d->by_kernel || !lies_turned(d, &d->l);
    int64_t along = one_stride ? min64(ceil_div(d->batch, d->across), max64(1, ALONG_MAX / places)) : 1;
    while (along > 1 && !place_slots(d, chunk, along))
        along--;
    double apart = cycles_of(d, along);
    d->flat = true;
    if ((d->by_kernel && !d->turns_sums) || cycles_of(d, 1) > apart)
        d->flat = false;
    else
        along = 1;
    while (chunk > 1 && !place_slots(d, chunk, along))
        chunk = (chunk + 1) / 2;
    double insts = (double)tiles_of(d, along) * (double)ceil_div(d->axis[0].nl, chunk) * (double)d->taps;
    return place_slots(d, chunk, along) && insts < INSTS_MAX;
}

static bool depth_init(const Hlo *h, const HloOp *op, Depth *d) {
    if (!depth_read(h, op, d) || d->ns < 1)
        return false;
    int64_t places = d->axis[0].nl * d->rest_l;
    double work = (double)places * (double)d->taps * (double)d->batch * (double)d->channels;
    bool x_fits = lies_turned(d, &d->x) || rows_are_dense(d, &d->x, true);
    bool l_fits = lies_turned(d, &d->l) ? d->by_kernel || is_even(d, &d->l, PLACES) : rows_are_dense(d, &d->l, false);
    bool turned = lies_turned(d, &d->x) || lies_turned(d, &d->l);
    return x_fits && l_fits && work >= WORK_MIN && !(turned && d->channels < 8) && cut(d);
}

bool depth_takes(const Lower *l, const HloOp *op, Why *why) {
    Depth d;
    (void)why; // the other convolutions' lowering says
    return depth_init(l->h, op, &d);
}

bool depth_suits(const Emit *e, const Step *s) {
    Depth d;
    const ChipFile *c = e->chip;
    if (!depth_init(e->l->h, hlo_at(e->l->h, s->op), &d))
        return false;
    bool turned = lies_turned(&d, &d.x) || (d.by_kernel && lies_turned(&d, &d.l));
    bool even = is_even(&d, &d.x, ELEMS) && (!d.by_kernel || is_even(&d, &d.l, PLACES));
    if (turned && !(c->dma_transpose > 0) && (!even || d.channels < CHANNELS_MIN)) // by the array, places in a row
        return false;
    double vector = 0, scalar = 0, macs = 0;
    for (int64_t l0 = 0; l0 < d.axis[0].nl; l0 += d.chunk) {
        Chunk chunk = chunk_of(&d, l0, min64(d.chunk, d.axis[0].nl - l0));
        for (int64_t tap = 0; tap < d.taps; tap++) {
            Box b;
            double n = box_of(&d, tap, &chunk, &b) ? (double)box_size(&d, &b) : 0;
            macs += n, n *= (double)d.along;
            vector += n > 0 ? cost_pass(c, ENG_VECTOR, max_f64(n / c->vector_tt, c->engine_min_cycles)) : 0;
            scalar += n > 0 && d.by_kernel ? cost_pass(c, ENG_SCALAR, max_f64(n, c->engine_min_cycles) + c->accumulator_cycles) : 0;
        }
    }
    double engines = max_f64(vector, scalar) * (double)tiles_of(&d, d.along);
    double gpsimd = cost_kernel(c, macs * (double)(d.batch * d.channels));
    return engines < (d.taps < MANY_TAPS ? SLOWER : SLOWER_MANY) * gpsimd + c->gpsimd_hbm_ns;
}

// --- transfers -------------------------------------------------------------------------------------------

// Calls for every tile of the channels [c, …) that the step has; `first` and `last` among those with these channels.
typedef void OnTile(Depth *d, const Tile *t, bool first, bool last);

// A shared step is cut by images, or where they are summed up by channels.
static void each_tile(Depth *d, OnTile *on) {
    int64_t lo = 0, hi = d->flat ? d->batch * d->channels : d->batch, c0 = 0, c1 = d->channels;
    if (!d->by_kernel)
        emit_share(d->e, hi, d->flat ? PARTITIONS : 1, &lo, &hi);
    else if (!d->turns_sums)
        emit_share(d->e, d->channels, d->wide, &c0, &c1);
    for (int64_t p0 = lo; d->flat && p0 < hi; p0 += PARTITIONS)
        on(d, &(Tile){0, d->batch, 1, 0, d->channels, p0, min64(PARTITIONS, d->batch * d->channels - p0), 1}, true, true);
    for (int64_t c = c0; !d->flat && c < c1; c += d->wide)
        for (int64_t b = lo, n; b < hi; b += n) {
            int64_t across = min64(d->across, hi - b), along = min64(d->along, (hi - b) / across), wide = min64(d->wide, d->channels - c);
            n = across * along;
            on(d, &(Tile){b, across, along, c, wide, 0, wide * across, along}, b == lo, b + n >= hi);
        }
}

// What lies on the partitions, as the tensor has it; *first: the element with which the first image's channels begin.
static Layout lanes_of(const Tensor *v, const Tile *t, int64_t *first) {
    Layout lanes = layout_make();
    *first = v->base + t->image * v->b + t->channel * v->c;
    layout_add(&lanes, t->images, t->step * v->b), layout_add(&lanes, t->channels, v->c);
    return lanes;
}

// Places, as the tensor has them: of `along` images, `rows` of the first axis and all of the others.
static Layout places_of(const Depth *d, const Tensor *v, int64_t along, int64_t rows, bool x) {
    Layout places = layout_make();
    layout_add(&places, along, v->b), layout_add(&places, rows, v->s[0]);
    for (int k = 1; k < d->ns; k++)
        layout_add(&places, x ? d->axis[k].nx : d->axis[k].nl, v->s[k]);
    return places;
}

static uint64_t element(const Tensor *v, int64_t i) { return v->addr + (uint64_t)(i * (int64_t)dtype_bytes(v->dtype)); }

// Between the tensor and SBUF, where results are f32.
static void put_lanes(Depth *d, bool loads, const Matrix *m, const Tile *t, const Tensor *v, int64_t first, Mem at) {
    Piece p = {t->at, t->lanes, 0, m->cols.size, PARTITIONS, m->cols.size};
    matrix_put(d->e, loads ? QUEUE_IN : QUEUE_OUT, loads, m, p, v->dtype, element(v, first), loads ? v->dtype : DT_F32, at);
}

static void move_places(Depth *d, const Tensor *v, const Tile *t, int64_t row, int64_t rows, bool x, Mem at, bool loads) {
    int64_t first;
    Matrix m = {lanes_of(v, t, &first), places_of(d, v, t->along, rows, x)};
    put_lanes(d, loads, &m, t, v, first + row * v->s[0], at);
}

static void move_taps(Depth *d, const Tile *t, Mem at, bool loads) {
    Tensor v = d->s;
    int64_t first;
    v.b = 0; // all images have the same
    Matrix m = {lanes_of(&v, t, &first), layout_make()};
    for (int k = 0; k < d->ns; k++)
        layout_add(&m.cols, d->axis[k].ns, v.s[k]);
    put_lanes(d, loads, &m, t, &v, first, at);
}

// --- instructions ----------------------------------------------------------------------------------------

// A box in a slot whose axes have `first`, then the tensor's own numbers of elements.
static View view(const Depth *d, const Tile *t, const Box *b, bool x, int64_t first, Mem slot, int dtype) {
    View v = VIEW(slot, dtype, {t->lanes}, {t->along});
    int64_t flat = 1, off = 0;
    v.rank = (uint8_t)(2 + d->ns);
    for (int k = d->ns; k-- > 0;) {
        v.at[2 + k] = (ViewAxis){b->n[k], (x ? b->xstep[k] : b->lstep[k]) * flat};
        off += (x ? b->x[k] : b->l[k]) * flat;
        flat *= k ? (x ? d->axis[k].nx : d->axis[k].nl) : first;
    }
    v.at[1].stride = flat;
    v.mem = mem_off(slot, off * (int64_t)dtype_bytes(dtype));
    return v;
}

static void fill_zeros(Depth *d, int64_t lanes, int64_t n, Mem at) { put_memset(d->e, ENG_VECTOR, VIEW(at, DT_F32, {lanes}, {n, 1}), NULL); }

// acc (+)= x * the tap's number. The first tap that meets every place begins; the scalar engine does that one.
static void add_tap(Depth *d, const Tile *t, const Chunk *c, int64_t tap, const Box *b, Mem small, uint32_t slot, bool begins) {
    bool by_scalar = begins && d->e->chip->generation >= 3; // the scalar engine has no tensor_scalar before
    View acc = view(d, t, b, false, c->ln, ring_at(&d->ls, slot), DT_F32), x = view(d, t, b, true, c->xn, ring_at(&d->xs, slot), d->x.dtype);
    View by = VIEW(mem_off(small, tap * (int64_t)dtype_bytes(d->s.dtype)), d->s.dtype, {t->lanes});
    IsaInst in = isa_elementwise(begins ? ISA_TENSOR_SCALAR : ISA_SCALAR_TT, by_scalar ? ENG_SCALAR : ENG_VECTOR, acc, x, begins ? NULL : &acc);
    in.op0 = ALU_MUL, in.op1 = begins ? 0 : ALU_ADD, in.a = by.mem.addr, in.atype = by.dtype;
    put_inst(d->e, in, &acc, &x, &by);
}

// Blocks of 128 places through the array, lanes by places to places by lanes, and from there to memory.
static void store_transposed(Depth *d, const Tile *t, const Chunk *c, uint32_t slot) {
    const Tensor *v = &d->l;
    int64_t first, per = min64(PSUM_BANK_COLS / t->lanes, 8) * PARTITIONS;
    Layout lanes = lanes_of(v, t, &first);
    Matrix m = {places_of(d, v, t->along, c->ln, false), lanes};
    for (int64_t p0 = 0; p0 < m.rows.size; p0 += per) {
        int64_t n = min64(per, m.rows.size - p0), whole = n / PARTITIONS, rest = n % PARTITIONS;
        Mem bank = ring_next(&d->banks), at = ring_next(&d->outs);
        for (int64_t i = 0; i * PARTITIONS < n; i++) {
            int64_t some = min64(PARTITIONS, n - i * PARTITIONS);
            put_transpose(d->e, VIEW(mem_off(bank, i * t->lanes * 4), DT_F32, {some}, {t->lanes, 1}),
                          VIEW(mem_off(ring_at(&d->ls, slot), (p0 + i * PARTITIONS) * 4), DT_F32, {t->lanes}, {some, 1}));
        }
        if (whole)
            put_copy(d->e, ENG_SCALAR, VIEW(at, v->dtype, {PARTITIONS}, {whole * t->lanes, 1}), VIEW(bank, DT_F32, {PARTITIONS}, {whole * t->lanes, 1}));
        if (rest)
            put_copy(d->e, ENG_SCALAR, VIEW(mem_off(at, whole * t->lanes * (int64_t)dtype_bytes(v->dtype)), v->dtype, {rest}, {t->lanes, 1}),
                     VIEW(mem_off(bank, whole * t->lanes * 4), DT_F32, {rest}, {t->lanes, 1}));
        Piece p = {p0, n, t->at, t->lanes, PARTITIONS, t->lanes};
        matrix_put(d->e, QUEUE_OUT, false, &m, p, v->dtype, element(v, first + c->l0 * v->s[0]), v->dtype, at);
    }
}

// The other way, where transfers cannot transpose: places as they lie, transposed by the array.
static void load_transposed(Depth *d, const Tensor *v, const Tile *t, int64_t row, int64_t rows, bool x, Mem to) {
    int64_t first, size = (int64_t)dtype_bytes(v->dtype);
    int64_t per = min64(PSUM_BANK_BYTES / size / t->lanes, PSUM_BANK_BYTES / size / PARTITIONS) * PARTITIONS;
    Layout lanes = lanes_of(v, t, &first);
    Matrix m = {places_of(d, v, t->along, rows, x), lanes};
    for (int64_t p0 = 0; p0 < m.rows.size; p0 += per) {
        int64_t n = min64(per, m.rows.size - p0);
        uint32_t turn = ring_turn(&d->outs);
        Mem bank = ring_next(&d->banks), at = ring_at(&d->outs, turn);
        Piece p = {p0, n, t->at, t->lanes, PARTITIONS, t->lanes};
        matrix_put(d->e, turn % 2 ? QUEUE_IN2 : QUEUE_IN, true, &m, p, v->dtype, element(v, first + row * v->s[0]), v->dtype, at);
        put_transposes(d->e, v->dtype, bank, PARTITIONS, at, t->lanes, n, PARTITIONS, t->lanes);
        put_copy(d->e, ENG_SCALAR, VIEW(mem_off(to, p0 * size), v->dtype, {t->lanes}, {n, 1}), VIEW(bank, v->dtype, {t->lanes}, {n, 1}));
    }
}

static bool turns_by_array(const Depth *d, const Tensor *v) { return d->e->chip->dma_transpose <= 0 && lies_turned(d, v); }

static void load_places(Depth *d, const Tensor *v, const Tile *t, int64_t row, int64_t rows, bool x, Mem at) {
    if (turns_by_array(d, v))
        load_transposed(d, v, t, row, rows, x, at);
    else
        move_places(d, v, t, row, rows, x, at, true);
}

static void image_chunk(Depth *d, const Tile *t, const Chunk *c, Mem small) {
    uint32_t slot = ring_turn(&d->xs);
    Mem acc = ring_at(&d->ls, slot);
    if (c->xn)
        load_places(d, &d->x, t, c->x0, c->xn, true, ring_at(&d->xs, slot));
    int64_t lead = -1;
    Box b;
    for (int64_t tap = 0; tap < d->taps && lead < 0; tap++)
        if (c->xn && box_of(d, tap, c, &b) && box_size(d, &b) == c->ln * d->rest_l)
            lead = tap;
    if (lead < 0)
        fill_zeros(d, t->lanes, t->along * c->ln * d->rest_l, acc);
    else if (box_of(d, lead, c, &b))
        add_tap(d, t, c, lead, &b, small, slot, true);
    for (int64_t tap = 0; tap < d->taps && c->xn; tap++)
        if (tap != lead && box_of(d, tap, c, &b))
            add_tap(d, t, c, tap, &b, small, slot, false);
    if (lies_turned(d, &d->l))
        store_transposed(d, t, c, slot);
    else
        move_places(d, &d->l, t, c->l0, c->ln, false, acc, false);
}

static void by_image(Depth *d, const Tile *t, bool first, bool last) {
    (void)last;
    emit_task(d->e);
    if (first) {
        d->smalls.next++;
        move_taps(d, t, ring_at(&d->smalls, d->smalls.next % 2), true);
    }
    for (int64_t l0 = 0; l0 < d->axis[0].nl; l0 += d->chunk) {
        if (l0)
            emit_task(d->e);
        Chunk c = chunk_of(d, l0, min64(d->chunk, d->axis[0].nl - l0));
        image_chunk(d, t, &c, ring_at(&d->smalls, d->smalls.next % 2));
    }
}

// --- by the kernel ---------------------------------------------------------------------------------------

// part[tap] = the sum over the chunk's places of x * y: the vector engine multiplies, the scalar engine sums.
static void sum_tap(Depth *d, const Tile *t, const Chunk *c, int64_t tap, const Box *b, uint32_t slot, Mem at) {
    Mem tmp = ring_next(&d->tmps);
    View x = view(d, t, b, true, c->xn, ring_at(&d->xs, slot), d->x.dtype), y = view(d, t, b, false, c->ln, ring_at(&d->ls, slot), d->l.dtype);
    View to = x;
    int64_t n = 1;
    to.mem = tmp, to.dtype = DT_F32;
    for (int k = to.rank; k-- > 1; n *= to.at[k].n)
        to.at[k].stride = n;
    put_inst(d->e, isa_tensor_tensor(ENG_VECTOR, to, x, ALU_MUL, y), &to, &x, &y);
    View all = VIEW(tmp, DT_F32, {t->lanes}, {n, 1}), sum = VIEW(mem_off(at, tap * 4), DT_F32, {t->lanes});
    IsaInst in = isa_activation(all, all, ACT_IDENTITY, isa_none(), isa_none(), &sum, RCMD_RESET_REDUCE);
    emit_inst(d->e, in, NULL, 0, (Haz *[]){tmp.haz, at.haz}, 2);
}

// sum += part
static void add_to(Depth *d, Mem sum, Mem part, int64_t lanes, int64_t n) {
    View to = VIEW(sum, DT_F32, {lanes}, {n, 1}), x = VIEW(part, DT_F32, {lanes}, {n, 1});
    put_inst(d->e, isa_tensor_tensor(ENG_VECTOR, to, to, ALU_ADD, x), &to, &x, NULL);
}

// The chunk's sums begin a tile's, or are added to them.
static void kernel_chunk(Depth *d, const Tile *t, const Chunk *c, Mem small, bool begins) {
    uint32_t slot = ring_turn(&d->xs);
    Mem part = ring_next(&d->parts), at = begins ? small : part;
    Box b;
    bool all = c->xn > 0;
    for (int64_t tap = 0; tap < d->taps && all; tap++)
        all = box_of(d, tap, c, &b);
    if (!all)
        fill_zeros(d, t->lanes, d->taps, at);
    if (!c->xn)
        return;
    load_places(d, &d->x, t, c->x0, c->xn, true, ring_at(&d->xs, slot));
    load_places(d, &d->l, t, c->l0, c->ln, false, ring_at(&d->ls, slot));
    for (int64_t tap = 0; tap < d->taps; tap++)
        if (box_of(d, tap, c, &b))
            sum_tap(d, t, c, tap, &b, slot, at);
    if (!begins)
        add_to(d, small, part, t->lanes, d->taps);
}

// Sums of a tile, taps put on the partitions, are added to those of its channels.
static void add_sums(Depth *d, const Tile *t, Mem small) {
    Mem bank = ring_next(&d->banks);
    put_transpose(d->e, VIEW(bank, DT_F32, {d->taps}, {t->lanes, 1}), VIEW(small, DT_F32, {t->lanes}, {d->taps, 1}));
    for (int64_t i = 0, n; i < t->lanes; i += n) { // image by image
        int64_t channel = (t->at + i) % t->channels;
        n = min64(t->channels - channel, t->lanes - i);
        add_to(d, mem_off(ring_at(&d->sums, 0), (t->channel + channel) * 4), mem_off(bank, i * 4), d->taps, n);
    }
}

static void by_kernel(Depth *d, const Tile *t, bool first, bool last) {
    bool again = !d->turns_sums && !first; // the tile's sums go on
    d->smalls.next += !again;
    Mem small = ring_at(&d->smalls, d->smalls.next % 2);
    for (int64_t l0 = 0; l0 < d->axis[0].nl; l0 += d->chunk) {
        Chunk c = chunk_of(d, l0, min64(d->chunk, d->axis[0].nl - l0));
        kernel_chunk(d, t, &c, small, !l0 && !again);
    }
    if (d->turns_sums)
        add_sums(d, t, small);
    else if (last)
        move_taps(d, t, small, false);
}

static void store_sums(Depth *d) {
    uint64_t to = d->s.addr + (uint64_t)(d->s.base * (int64_t)dtype_bytes(d->s.dtype));
    put_dma(d->e, QUEUE_OUT, VIEW(mem_hbm(to), d->s.dtype, {d->taps, d->s.s[d->ns - 1]}, {d->channels, d->s.c}),
            VIEW(ring_at(&d->sums, 0), DT_F32, {d->taps}, {d->channels, 1}));
}

static void place_rings(Depth *d) {
    Area *a = &d->area;
    *a = area_make(d->e, 0, AREA_BYTES);
    area_ring(a, &d->xs, 2, d->x_bytes);
    area_ring(a, &d->ls, 2, d->l_bytes);
    area_ring(a, &d->smalls, 2, d->small_bytes);
    area_ring(a, &d->parts, d->by_kernel ? 2 : 0, d->small_bytes);
    area_ring(a, &d->tmps, d->by_kernel ? TMPS : 0, d->l_bytes);
    area_ring(a, &d->sums, d->turns_sums, room_whole(d->channels * 4));
    area_ring(a, &d->outs, OUT_TILES, PSUM_BANK_BYTES);
    assert(d->wide * d->across <= PARTITIONS);
    assert(!d->turns_sums || d->by_kernel);
    d->banks = ring_of_banks(d->e, 0, PSUM_BANKS);
}

void emit_depth(Emit *e, const Step *s) {
    Depth *d = ARENA_NEW(e->c->scratch, Depth);
    const BufId *refs = e->l->refs.at;
    bool ok = depth_init(e->l->h, hlo_at(e->l->h, s->op), d);
    assert(ok);
    (void)ok;
    d->e = e;
    d->x.addr = emit_addr(e, refs[s->ins]);
    uint64_t w = emit_addr(e, refs[s->ins + 1]), y = emit_addr(e, refs[s->outs]);
    d->l.addr = d->by_kernel ? w : y, d->s.addr = d->by_kernel ? y : w;
    place_rings(d);
    area_open(&d->area);
    if (d->by_kernel)
        emit_task(e);
    if (d->turns_sums)
        fill_zeros(d, d->taps, d->channels, ring_at(&d->sums, 0));
    each_tile(d, d->by_kernel ? by_kernel : by_image);
    if (d->turns_sums)
        store_sums(d);
    area_close(&d->area);
}
