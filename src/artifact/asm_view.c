// SPDX-License-Identifier: Apache-2.0
// asm_view.c — tensors by name, and slices of them as operands.
//
//   .input x f32[M,K]            .output y f32[M,N]            .tensor t bf16[M,N]  (HBM scratch)
//   .sbuf a bf16[2][128,512]     two tiles, the last bracket's first axis lies over the partitions
//   .psum p f32[128,512]         begins at a bank
//
// An operand is a name with an index per axis: a number or an expression of loop counters (the axis
// goes away, a partition axis stays with one partition), lo:hi, lo:+count, lo:hi:step, `:` for all,
// `*n` for a new axis that repeats n times. Axes left out are whole. `.T` turns the axes of an HBM view
// around. From the views of an instruction follow its addresses, register terms, types, counts and
// strides: axes are cut and joined until all operands count alike.
#include <inttypes.h>

#include "artifact/asm.h"

enum { V_DST, V_SRC, V_SRC1, V_A, V_B, V_RES, V_COUNT };
#define MAX_ELEMS ((int64_t)1 << 40) // of a tensor and of a view: an HBM offset has 40 bits
static const uint8_t view_field[V_COUNT] = {ISA_F_dst, ISA_F_src, ISA_F_src1, ISA_F_a, ISA_F_b, ISA_F_res};

// --- declarations ----------------------------------------------------------------------------------

// "[2][128,512]": sizes, and which axis is the first of the last bracket.
static void dims_parse(Asm *s, Tensor *x) {
    Txt *t = &s->t;
    while (txt_take(t, "[")) {
        x->part = x->rank;
        while (!txt_take(t, "]")) {
            if (x->rank > x->part)
                txt_need(t, ",");
            if (x->rank == TENSOR_RANK)
                txt_fail(t, "a tensor has at most %d axes", TENSOR_RANK);
            Txt at = *t;
            int64_t d = x->dims[x->rank++] = asm_int(s, t, "size");
            if (d < 1 || d > MAX_ELEMS)
                txt_fail(&at, "a size of %" PRId64, d);
        }
    }
}

// Dense strides in elements from axis `first` on; returns the elements they cover.
static int64_t strides_set(const Txt *at, Tensor *x, int skip) {
    int64_t elems = 1;
    for (int i = x->rank; i-- > 0;) {
        x->stride[i] = i == skip ? 0 : elems;
        if (i != skip && __builtin_mul_overflow(elems, x->dims[i], &elems))
            elems = MAX_ELEMS + 1;
        if (elems > MAX_ELEMS)
            txt_fail(at, "a tensor of more than 2^40 elements");
    }
    return elems;
}

static void place_on_chip(Asm *s, const Txt *at, Tensor *x, int64_t bytes) {
    bool psum = x->space == SPACE_PSUM;
    uint64_t *used = psum ? &s->psum_used : &s->sbuf_used;
    uint64_t align = psum ? PSUM_BANK_BYTES : 64, limit = psum ? ISA_PSUM_BYTES : ISA_SBUF_BYTES;
    if (x->part >= x->rank || x->dims[x->part] > PARTITIONS)
        txt_fail(at, "the last bracket's first axis lies over the partitions: 1…%d", PARTITIONS);
    uint32_t part = 0;
    uint64_t off = (*used + align - 1) / align * align;
    if (txt_take_word(&s->t, "at")) {
        part = (uint32_t)asm_int(s, &s->t, "partition") & 0x7f;
        txt_need(&s->t, ":");
        off = (uint64_t)asm_int(s, &s->t, "byte offset");
    }
    if (off > limit || (uint64_t)bytes > limit - off)
        txt_fail(at, "%s is full: %" PRId64 " bytes a partition at %" PRIu64 ", it has %" PRIu64,
                 psum ? "PSUM" : "SBUF", bytes, off, limit);
    if (off + (uint64_t)bytes > *used)
        *used = off + (uint64_t)bytes;
    x->addr = psum ? addr_psum(part, (uint32_t)off) : addr_sbuf(part, (uint32_t)off);
}

static void place_in_hbm(Asm *s, const Txt *at, Tensor *x, int64_t bytes, bool is_result, bool is_arg,
                         TxtWord name) {
    uint64_t off = is_arg ? 0 : (s->art->scratch_bytes + 63) / 64 * 64;
    if ((uint64_t)bytes > (uint64_t)MAX_ELEMS - off)
        txt_fail(at, "more than 2^40 bytes in one segment of HBM");
    if (!is_arg) {
        x->addr = addr_hbm(SEG_SCRATCH, off);
        s->art->scratch_bytes = off + (uint64_t)bytes;
        return;
    }
    ArtValue v = {.dtype = x->dtype, .rank = x->rank, .bytes = (uint64_t)bytes, .alias = -1,
                  .name = arena_strndup(s->t.arena, name.s, name.n)};
    memcpy(v.dims, x->dims, sizeof x->dims);
    if (!is_result && txt_take_word(&s->t, "donated"))
        v.donated = 1;
    asm_arg(s, is_result, v);
    x->addr = addr_hbm(SEG_FIRST_ARG + s->args.n + s->results.n - 1, 0);
}

void asm_tensor(Asm *s, int space, bool is_result, bool is_arg) {
    Txt *t = &s->t, begin = *t;
    TxtWord name = txt_name(t, "a name");
    Tensor x = {.space = space, .dtype = (uint8_t)asm_dtype(s, t)};
    int64_t size = (int64_t)dtype_bytes(x.dtype);
    if (!size)
        txt_fail(&begin, "a tensor of a type without elements");
    dims_parse(s, &x);
    if (space == SPACE_HBM)
        x.part = x.rank;
    int64_t elems = strides_set(&begin, &x, x.part);
    s->is_source = true;
    if (space == SPACE_HBM)
        place_in_hbm(s, &begin, &x, elems * size, is_result, is_arg, name);
    else
        place_on_chip(s, &begin, &x, elems * size);
    Sym *y = asm_find(s, name);
    if (y)
        txt_fail(&begin, "`%.*s` is taken since line %u", (int)name.n, name.s, y->name.line);
    y = asm_set(s, &begin, name);
    y->kind = SYM_TENSOR;
    y->t = x;
}

// --- slices ----------------------------------------------------------------------------------------

static void axis_add(const Txt *at, View *v, int64_t count, int64_t stride) {
    int64_t elems = count; // what follows multiplies the counts of a view: no more than a tensor's
    if (v->n == VIEW_AXES)
        txt_fail(at, "a view of more than %d axes", VIEW_AXES);
    for (int i = 0; i < v->n && elems <= MAX_ELEMS; i++)
        if (__builtin_mul_overflow(elems, v->ax[i].count, &elems))
            elems = MAX_ELEMS + 1;
    if (elems > MAX_ELEMS)
        txt_fail(at, "a view of more than 2^40 elements");
    v->ax[v->n].count = count;
    v->ax[v->n++].stride = stride;
}

// One index of axis `axis`: number, lo:hi, lo:+n, lo:hi:step, or `:`.
static void index_parse(Asm *s, Txt *t, View *v, int axis) {
    const Tensor *x = v->of;
    int64_t dim = x->dims[axis], count = 1, step = 1;
    Txt at = *t;
    bool ranged = false;
    Aff lo = {0};
    if (txt_peek(t) != ':')
        lo = asm_aff(s, t, "index");
    if (txt_take(t, ":")) {
        ranged = true;
        char c = txt_peek(t);
        Aff hi = {.c = dim};
        bool counted = txt_take(t, "+");
        if (counted || (c != ',' && c != ']' && c != ':'))
            hi = asm_aff(s, t, "limit");
        Aff span = counted ? hi : aff_add(&at, hi, lo, -1);
        if (span.n)
            txt_fail(&at, "how many is not a constant: write lo:+count");
        if (txt_take(t, ":"))
            step = asm_int(s, t, "step");
        if (step < 1 || step > dim)
            txt_fail(&at, "a step of %" PRId64, step);
        if (span.c < 1 || span.c > dim)
            txt_fail(&at, "%" PRId64 " of an axis of %" PRId64, span.c, dim);
        count = span.c / step + (span.c % step > 0);
    }
    if (!lo.n && (lo.c < 0 || lo.c >= dim || lo.c + (count - 1) * step >= dim))
        txt_fail(&at, "%" PRId64 ", and %" PRId64 " in all, is outside an axis of %" PRId64, lo.c, count, dim);
    if (axis == x->part) {
        if (lo.n || step != 1)
            txt_fail(&at, "partitions begin at a constant and follow one another");
        v->part += (uint32_t)lo.c;
        axis_add(&at, v, count, 0);
        return;
    }
    v->off = aff_add(&at, v->off, lo, x->stride[axis] * (int64_t)dtype_bytes(x->dtype));
    if (ranged && axis < x->part && x->part < x->rank && count > 1)
        txt_fail(&at, "name one tile of this axis: it lies before the partition axis");
    if (ranged && !(axis < x->part && x->part < x->rank))
        axis_add(&at, v, count, x->stride[axis] * step);
}

static void view_parse(Asm *s, Txt *t, View *v) {
    Txt begin = *t;
    const Sym *y = asm_find(s, txt_name(t, "a tensor"));
    *v = (View){.of = &y->t, .part = addr_part(y->t.addr)};
    const Tensor *x = v->of;
    if (x->space == SPACE_HBM)
        v->part = 0;
    int axis = 0;
    while (t->at < t->end && *t->at == '[' && txt_take(t, "[")) {
        do {
            Txt at = *t;
            if (txt_take(t, "*")) {
                int64_t n = asm_int(s, t, "count");
                if (n < 1 || (x->part < x->rank && axis <= x->part))
                    txt_fail(&at, "a repeated axis has a count above 0 and lies behind the partition axis");
                axis_add(&at, v, n, 0);
                continue;
            }
            if (axis == x->rank)
                txt_fail(&at, "`%.*s` has %d axes", (int)y->name.n, y->name.s, x->rank);
            index_parse(s, t, v, axis++);
        } while (txt_take(t, ","));
        txt_need(t, "]");
    }
    for (; axis < x->rank; axis++) {
        if (axis < x->part && x->part < x->rank && x->dims[axis] > 1)
            txt_fail(&begin, "which of the %" PRId64 " tiles of `%.*s`?", x->dims[axis], (int)y->name.n,
                     y->name.s);
        if (axis >= x->part || x->part == x->rank)
            axis_add(&begin, v, x->dims[axis], x->stride[axis]);
    }
    if (t->end - t->at >= 2 && !memcmp(t->at, ".T", 2)) {
        t->at += 2;
        if (x->space != SPACE_HBM)
            txt_fail(&begin, ".T: only views of HBM can be turned around");
        for (int i = 0; i < v->n / 2; i++) {
            __typeof__(v->ax[0]) keep = v->ax[i];
            v->ax[i] = v->ax[v->n - 1 - i];
            v->ax[v->n - 1 - i] = keep;
        }
    }
    if (!v->n)
        axis_add(&begin, v, 1, 0);
}

// --- operands --------------------------------------------------------------------------------------

// The address with its terms; more registers than two are added up in one of their own.
static void address_set(Asm *s, const Txt *at, const View *v, IsaInst *in, int field) {
    Aff off = v->off;
    uint8_t *reg = field == ISA_F_dst ? in->reg_d : field == ISA_F_src ? in->reg_s : in->reg_t;
    int32_t *mul = field == ISA_F_dst ? in->mul_d : field == ISA_F_src ? in->mul_s : in->mul_t;
    bool takes = field == ISA_F_dst || field == ISA_F_src || field == ISA_F_src1;
    if (off.n && !takes)
        ctx_hint(at->ctx, "unroll the loop (`for`), or use the same buffer in every iteration");
    if (off.n && !takes)
        txt_fail(at, "%s has a fixed address: only dst, src and src1 follow loop counters",
                 isa_fields[field].name);
    if (off.n > 2) {
        Aff rest = off;
        rest.c = 0;
        off = (Aff){.c = off.c, .n = 1, .t = {{asm_derive(s, at, ALU_BYPASS, rest, 0), 1}}};
    }
    for (int i = 0; i < off.n; i++) {
        if (off.t[i].k < INT32_MIN || off.t[i].k > INT32_MAX)
            txt_fail(at, "a register moves this operand by more than 2^31 bytes");
        reg[i] = (uint8_t)(off.t[i].reg + 1);
        mul[i] = (int32_t)off.t[i].k;
    }
    uint64_t addr = v->of->addr;
    uint64_t base = v->of->space == SPACE_HBM ? addr_off(addr) : addr_poff(addr);
    uint64_t limit = v->of->space == SPACE_HBM ? 0xffffffffff : UINT32_MAX;
    if (off.c < 0 || (uint64_t)off.c > limit - base)
        txt_fail(at, "the address lies %" PRId64 " bytes from the tensor's begin", off.c);
    if (v->of->space == SPACE_HBM)
        addr = addr_hbm(addr_seg(addr), base + (uint64_t)off.c);
    else if (v->of->space == SPACE_SBUF)
        addr = addr_sbuf(v->part, (uint32_t)(base + (uint64_t)off.c));
    else
        addr = addr_psum(v->part, (uint32_t)(base + (uint64_t)off.c));
    isa_field_set(in, field, addr);
}

static bool hook_is_view(void *arg, Txt *t) {
    Asm *s = arg;
    Txt look = *t;
    char c = txt_peek(&look);
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'))
        return false;
    const Sym *y = asm_find(s, txt_name(&look, "a name"));
    return y && y->kind == SYM_TENSOR && (look.at == look.end || *look.at != '=');
}

static void hook_view(void *arg, Txt *t, IsaInst *in, int field) {
    Asm *s = arg;
    int i = 0;
    while (view_field[i] != field)
        i++;
    s->engine = in->engine;
    s->view_at[i] = *t;
    view_parse(s, t, &s->views[i]);
    address_set(s, &s->view_at[i], &s->views[i], in, field);
    s->view_fields |= (uint8_t)(1u << i);
}

// Fields that hold bits may be given as a number with a point; whether this one does is known once the instruction is.
static int64_t hook_number(void *arg, Txt *t, const char *what) {
    Asm *s = arg;
    Txt look = *t;
    Val v = asm_val(s, &look);
    if (!v.is_float)
        return asm_int(s, t, what);
    s->bits_at = *t;
    s->bits = v.f;
    s->bits_field = what;
    *t = look;
    return 0;
}

static void bits_put(Asm *s, IsaInst *in) {
    static const struct {
        uint8_t op, field;
    } rows[] = {{ISA_MEMSET, ISA_F_imm}, {ISA_RANGE_SELECT, ISA_F_limit}, {ISA_ACTIVATE2, ISA_F_value}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (in->op != rows[i].op || strcmp(isa_fields[rows[i].field].name, s->bits_field))
            continue;
        int dtype = in->op == ISA_MEMSET ? in->dtype : DT_F32;
        if (!dtype_is_float(dtype) || dtype_bytes(dtype) > 4)
            break;
        uint8_t bytes[16] = {0};
        dtype_from_f64(dtype, bytes, s->bits);
        isa_field_set(in, rows[i].field, le_load32(bytes));
        return;
    }
    txt_fail(&s->bits_at, "%s: a whole number is needed", s->bits_field);
}

static void hook_scalar(void *arg, Txt *t, IsaInst *in, int field) {
    Asm *s = arg;
    if (hook_is_view(arg, t)) {
        hook_view(arg, t, in, field);
        return;
    }
    Txt look = *t, begin = *t;
    char c = txt_peek(&look);
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) { // sbuf[…] and kin, unless it is a number's name
        TxtWord w = txt_name(&look, "a name");
        if (!asm_find(s, w) && txt_peek(&look) == '[') {
            isa_field_set(in, field, isa_parse_addr(t, &s->names));
            return;
        }
    }
    Val v = asm_val(s, t);
    if (v.is_float) {
        isa_field_set(in, field, scalar_f32((float)v.f));
    } else {
        if (v.a.n || v.a.c < INT32_MIN || v.a.c > INT32_MAX)
            txt_fail(&begin, "%s: a constant of 32 bits is needed", isa_fields[field].name);
        isa_field_set(in, field, scalar_i32((int32_t)v.a.c));
    }
}

// --- counts and strides ------------------------------------------------------------------------------

typedef struct Axes {
    int n;
    struct {
        int64_t count, stride;
    } ax[VIEW_AXES];
} Axes;

// The free axes of an operand (all of them in HBM), those of one element left out.
static Axes free_axes(const View *v, int from) {
    Axes a = {0};
    for (int i = from; i < v->n; i++)
        if (v->ax[i].count != 1)
            a.ax[a.n].count = v->ax[i].count, a.ax[a.n++].stride = v->ax[i].stride;
    return a;
}

static int64_t axes_elems(const Axes *a) {
    int64_t n = 1;
    for (int i = 0; i < a->n; i++)
        n *= a->ax[i].count;
    return n;
}

typedef struct Joint { // axes all operands share
    int n;
    int64_t count[VIEW_AXES * 3];
    int64_t stride[3][VIEW_AXES * 3];
} Joint;

// Cuts the operands' axes until they count alike, then joins neighbours that are one axis in all.
static void axes_join(const Txt *at, Axes *list, int lists, int max_axes, Joint *out) {
    int head[3] = {0};
    *out = (Joint){0};
    for (;;) {
        int64_t least = 0;
        int done = 0;
        for (int i = 0; i < lists; i++) {
            done += head[i] == list[i].n;
            if (head[i] < list[i].n && (!least || list[i].ax[head[i]].count < least))
                least = list[i].ax[head[i]].count;
        }
        if (done == lists)
            break;
        bool fits = !done;
        for (int i = 0; i < lists && fits; i++)
            fits = list[i].ax[head[i]].count % least == 0;
        if (!fits)
            txt_fail(at, "the operands' shapes do not go together");
        out->count[out->n] = least;
        for (int i = 0; i < lists; i++) {
            int64_t inner = list[i].ax[head[i]].count / least;
            out->stride[i][out->n] = list[i].ax[head[i]].stride * inner;
            list[i].ax[head[i]].count = inner;
            head[i] += inner == 1;
        }
        out->n++;
    }
    for (int k = 0; k + 1 < out->n;) {
        bool one = true;
        for (int i = 0; i < lists; i++)
            one &= out->stride[i][k] == out->stride[i][k + 1] * out->count[k + 1];
        if (!one) {
            k++;
            continue;
        }
        out->count[k] *= out->count[k + 1];
        out->n--;
        for (int i = 0; i < lists; i++)
            out->stride[i][k] = out->stride[i][k + 1];
        for (int m = k + 1; m < out->n; m++) {
            out->count[m] = out->count[m + 1];
            for (int i = 0; i < lists; i++)
                out->stride[i][m] = out->stride[i][m + 1];
        }
        k = k ? k - 1 : 0;
    }
    if (out->n > max_axes)
        txt_fail(at, "the operands need %d axes, an instruction has %d", out->n, max_axes);
}

typedef struct Infer {
    Asm *s;
    const Txt *at;
    IsaInst *in;
    IsaMask mask, *seen;
} Infer;

static const View *view_of(const Infer *f, int i) {
    return f->s->view_fields >> i & 1 ? &f->s->views[i] : NULL;
}

static void put(const Infer *f, int field, int64_t v) {
    if (!(f->mask >> field & 1) || *f->seen >> field & 1)
        return;
    if (v < INT32_MIN || v > UINT32_MAX)
        txt_fail(f->at, "%s: %" PRId64 " does not fit", isa_fields[field].name, v);
    isa_field_set(f->in, field, (uint64_t)v);
}

static void put_stride(const Infer *f, int view, int axis, int64_t v) {
    static const int first[3] = {ISA_F_d0, ISA_F_s0, ISA_F_t0};
    put(f, first[view] + axis, v);
}

// Strides come from the views: none is filled in as dense any more.
static void strides_taken(const Infer *f) {
    static const int first[3] = {ISA_F_d0, ISA_F_s0, ISA_F_t0};
    for (int i = 0; i < 3; i++)
        if (view_of(f, i))
            *f->seen |= (IsaMask)0x1f << first[i];
}

static void types_put(const Infer *f) {
    static const uint8_t type[V_COUNT] = {ISA_F_dtype, ISA_F_stype, ISA_F_ttype, ISA_F_atype, ISA_F_atype,
                                          ISA_F_rtype};
    for (int i = 1; i <= V_COUNT; i++) { // dst last: it may be what src is
        const View *v = view_of(f, i % V_COUNT);
        if (!v)
            continue;
        bool same = i % V_COUNT == V_DST && isa_rows[f->in->op].cost == COST_DMA && v->of->dtype == f->in->stype;
        bool f32 = i % V_COUNT == V_DST && isa_rows[f->in->op].cost == COST_MATMUL && v->of->dtype == DT_F32;
        if (!same && !f32)
            put(f, type[i % V_COUNT], v->of->dtype);
    }
}

// DMA: all axes take part, those over partitions first.
static void infer_dma(const Infer *f) {
    const View *dst = view_of(f, V_DST), *src = view_of(f, V_SRC);
    if (!dst || !src)
        txt_fail(f->at, "both operands of `%s` are views, or neither", isa_rows[f->in->op].name);
    bool chip_dst = dst->of->space != SPACE_HBM, chip_src = src->of->space != SPACE_HBM;
    Axes list[2] = {free_axes(dst, chip_dst), free_axes(src, chip_src)};
    int64_t parts = chip_dst ? dst->ax[0].count : chip_src ? src->ax[0].count : 0;
    if (chip_dst && chip_src && src->ax[0].count != parts)
        txt_fail(f->at, "%" PRId64 " partitions to %" PRId64, src->ax[0].count, parts);
    int64_t stride0 = 0;
    if (parts && chip_dst != chip_src) { // the HBM side's first axis goes over the partitions
        Axes *hbm = &list[chip_dst];
        const View *v = chip_dst ? src : dst;
        if (parts > 1 && (!hbm->n || hbm->ax[0].count % parts))
            txt_fail(f->at, "%" PRId64 " partitions and a first axis of %" PRId64 " do not go together",
                     parts, v->ax[0].count);
        if (parts > 1) {
            int64_t inner = hbm->ax[0].count / parts;
            stride0 = hbm->ax[0].stride * inner;
            hbm->ax[0].count = inner;
            if (inner == 1)
                memmove(hbm->ax, hbm->ax + 1, (size_t)--hbm->n * sizeof hbm->ax[0]);
        }
    }
    Joint j;
    axes_join(f->at, list, 2, parts ? 3 : 4, &j);
    int first = parts ? 1 : 0;
    if (parts) {
        put(f, ISA_F_n0, parts);
        put_stride(f, V_DST, 0, chip_dst ? 0 : stride0);
        put_stride(f, V_SRC, 0, chip_src ? 0 : stride0);
    }
    for (int k = 0; k < j.n; k++) {
        put(f, ISA_F_n0 + first + k, j.count[k]);
        put_stride(f, V_DST, first + k, j.stride[0][k]);
        put_stride(f, V_SRC, first + k, j.stride[1][k]);
    }
}

static void infer_matmul(const Infer *f) {
    const View *dst = view_of(f, V_DST), *src = view_of(f, V_SRC);
    if (!src)
        return;
    bool is_matmul = f->mask >> ISA_F_n2 & 1, mx = f->mask >> ISA_F_src1 & 1;
    put(f, ISA_F_n0, src->ax[0].count);
    int from = 1;
    if (f->in->flags & ISA_FLAG_DOUBLE_ROW && src->n > 2) { // [K, 2, columns]
        put(f, ISA_F_step, src->ax[1].stride);
        from = 2;
    }
    Axes list[2] = {free_axes(src, from), dst ? free_axes(dst, 1) : (Axes){0}};
    if (mx) { // four values a column
        if (list[0].n != 1 || list[0].ax[0].count % 4 || list[0].ax[0].stride != 1)
            txt_fail(f->at, "MX data lies side by side, four values a column");
        list[0].ax[0].count /= 4;
    }
    Joint j;
    axes_join(f->at, list, dst ? 2 : 1, is_matmul && !mx ? 2 : 1, &j);
    static const int fields[2] = {ISA_F_n1, ISA_F_n3};
    if (!j.n)
        put(f, ISA_F_n1, 1);
    for (int k = 0; k < j.n; k++) { // the last axis is n1
        int which = j.n - 1 - k, axis = which ? 3 : 1;
        put(f, fields[which], j.count[k]);
        put_stride(f, V_SRC, axis, j.stride[0][k]);
        if (dst)
            put_stride(f, V_DST, axis, j.stride[1][k]);
    }
    if (dst)
        put(f, ISA_F_n2, dst->ax[0].count);
}

// Rows with one free axis and operands of different lengths: each view says its own stride.
static void infer_rows(const Infer *f, int counted) {
    const View *v = view_of(f, counted);
    for (int i = 0; i < 3; i++) {
        const View *w = view_of(f, i);
        if (!w)
            continue;
        Axes a = free_axes(w, 1), *list = &a;
        Joint j;
        axes_join(&f->s->view_at[i], list, 1, 2, &j);
        if (j.n == 2) { // local_gather's and sequence_bounds' results
            put_stride(f, i, 1, f->in->op == ISA_SEQ_BOUNDS ? j.stride[0][1] : j.stride[0][0]);
            put_stride(f, i, 2, f->in->op == ISA_SEQ_BOUNDS ? j.stride[0][0] : j.stride[0][1]);
        } else if (j.n) {
            put_stride(f, i, 1, j.stride[0][0]);
        }
        if (w == v) {
            put(f, ISA_F_n0, w->ax[0].count);
            put(f, ISA_F_n1, j.n ? j.count[0] : 1);
            if (f->in->op == ISA_LOCAL_GATHER && j.n == 2)
                put(f, ISA_F_n2, j.count[1]);
        }
    }
    Axes src = view_of(f, V_SRC) ? free_axes(view_of(f, V_SRC), 1) : (Axes){0};
    if (f->in->op == ISA_LOCAL_GATHER || f->in->op == ISA_N_GATHER)
        put(f, ISA_F_imm, axes_elems(&src));
    if (f->in->op == ISA_TOPK) {
        put(f, ISA_F_n1, 16 * axes_elems(&src));
        Axes dst = view_of(f, V_DST) ? free_axes(view_of(f, V_DST), 1) : (Axes){0};
        put(f, ISA_F_imm, 16 * axes_elems(&dst));
    }
}

// All operands count alike; one of a single element repeats (or, as dst of a reduction, gathers), and so
// does an axis of one.
static void infer_elementwise(const Infer *f) {
    Axes list[3];
    int which[3], n = 0, big = -1;
    int64_t most = 0;
    for (int i = 0; i < 3; i++)
        if (view_of(f, i)) {
            Axes a = free_axes(view_of(f, i), 1);
            if (axes_elems(&a) > most)
                most = axes_elems(&a), big = i;
        }
    if (big < 0)
        return;
    const View *model = view_of(f, big);
    for (int i = 0; i < 3; i++) {
        const View *v = view_of(f, i);
        if (!v)
            continue;
        Axes a = free_axes(v, 1);
        if (axes_elems(&a) != most) { // repeat along the model's axes
            bool reduces = i == V_DST && f->in->op == ISA_REDUCE;
            a = (Axes){0};
            for (int k = 1; k < model->n; k++) {
                int64_t want = model->ax[k].count, have = k < v->n ? v->ax[k].count : 1;
                if (have != want && (have != 1 || (i == V_DST && !reduces)))
                    txt_fail(&f->s->view_at[i], "an axis of %" PRId64 " where %" PRId64 " are needed", have,
                             want);
                if (want != 1)
                    a.ax[a.n].count = want, a.ax[a.n++].stride = have == want ? v->ax[k].stride : 0;
            }
        }
        which[n] = i;
        list[n++] = a;
    }
    Joint j;
    axes_join(f->at, list, n, 4, &j);
    const View *parts = f->in->op == ISA_PART_REDUCE ? view_of(f, V_SRC) : view_of(f, which[0]);
    if (parts)
        put(f, ISA_F_n0, parts->ax[0].count);
    if (!j.n)
        put(f, ISA_F_n1, 1);
    for (int k = 0; k < j.n; k++) {
        put(f, ISA_F_n1 + k, j.count[k]);
        for (int i = 0; i < n; i++)
            put_stride(f, which[i], 1 + k, j.stride[i][k]);
    }
}

static void hook_done(void *arg, const Txt *begin, IsaInst *in, IsaMask mask, IsaMask *seen) {
    Asm *s = arg;
    Infer f = {s, begin, in, mask, seen};
    if (s->view_fields) {
        types_put(&f);
        switch ((IsaCost)isa_rows[in->op].cost) {
        case COST_DMA:
            infer_dma(&f);
            break;
        case COST_MATMUL:
        case COST_LDWEIGHTS:
            infer_matmul(&f);
            break;
        case COST_REGLOAD:
            break;
        default:
            if (mask >> ISA_F_n4 & 1)
                infer_elementwise(&f);
            else
                infer_rows(&f, in->op == ISA_LOCAL_GATHER || in->op == ISA_N_GATHER || in->op == ISA_RNG_GET
                                   ? V_DST : V_SRC);
        }
        strides_taken(&f);
    }
    s->view_fields = 0;
    if (s->bits_field)
        bits_put(s, in);
    s->bits_field = NULL;
}

void asm_hooks(Asm *s) {
    s->hooks = (IsaHooks){.arg = s, .number = hook_number, .scalar = hook_scalar, .is_view = hook_is_view,
                          .view = hook_view, .done = hook_done};
    s->names.hooks = &s->hooks;
}
