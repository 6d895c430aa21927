// SPDX-License-Identifier: Apache-2.0
// bytecode_type.c — types, once as VHLO has them and once as builtin has them.
//
// Values of StableHLO ops have VHLO types. Builtin types are needed for what is not VHLO's:
// attributes of the module and the two sides of a cast around an op of another dialect. Types that
// the graph keeps as text (quantised elements, futures, buffers) are taken apart here.
#include "write/bytecode.h"

#include "base/num.h"

enum {
    VT_COMPLEX = 1,
    VT_FUNC = 8,
    VT_TENSOR = 20,
    VT_TENSOR_ENCODED,
    VT_TOKEN,
    VT_TUPLE,
    VT_QUANT,
    VT_UNRANKED,
    VT_WITNESS,
    VT_QUANT_AXIS = 30,
    VT_NONE = 33,
    VT_BUFFER = 41,
    VT_FUTURE = 42,
};
enum { BT_INT, BT_FUNC = 2, BT_COMPLEX = 9, BT_NONE = 12, BT_TENSOR, BT_TENSOR_ENCODED, BT_TUPLE };

static const char *const dialects[BF_COUNT] = {"vhlo", "builtin"};

static BwId type_end(Bw *w, BwForm f) {
    return bw_entry(w, BW_TYPE, dialects[f]);
}

static BwId type_code(Bw *w, BwForm f, uint64_t code) { // a type without fields
    bw_num(&w->key, code);
    return type_end(w, f);
}

// --- scalars ------------------------------------------------------------------------------------

static const uint8_t vhlo_scalars[DT_COUNT] = { // code + 1
    [DT_I1] = 1,          [DT_BF16] = 3,        [DT_F16] = 4,         [DT_F32] = 5,
    [DT_F64] = 6,         [DT_F8E4M3FN] = 7,    [DT_F8E5M2] = 8,      [DT_INDEX] = 10,
    [DT_I4] = 11,         [DT_I8] = 12,         [DT_I16] = 13,        [DT_I32] = 14,
    [DT_I64] = 15,        [DT_UI4] = 16,        [DT_UI8] = 17,        [DT_UI16] = 18,
    [DT_UI32] = 19,       [DT_UI64] = 20,       [DT_F8E4M3FNUZ] = 28, [DT_F8E5M2FNUZ] = 29,
    [DT_F8E4M3B11FNUZ] = 30, [DT_I2] = 32,      [DT_UI2] = 33,        [DT_TF32] = 35,
    [DT_F8E4M3] = 36,     [DT_F8E3M4] = 37,     [DT_F4E2M1FN] = 38,   [DT_F6E2M3FN] = 39,
    [DT_F6E3M2FN] = 40,   [DT_F8E8M0FNU] = 41,
};
static const uint8_t builtin_scalars[DT_COUNT] = {
    [DT_INDEX] = 1, [DT_BF16] = 3, [DT_F16] = 4, [DT_F32] = 5, [DT_F64] = 6};

static BwId builtin_scalar(Bw *w, int dtype) {
    const DtypeRow *row = dtype_row(dtype);
    if (builtin_scalars[dtype])
        return type_code(w, BF_BUILTIN, builtin_scalars[dtype]);
    if (row->cls == DC_FLOAT) // newer readers have codes for these; all take the name
        return bw_entry_text(w, BW_TYPE, "builtin", 7, row->name);
    bw_num(&w->key, BT_INT);
    bw_num(&w->key, (uint64_t)row->bits << 2 | (row->cls == DC_UINT ? 2 : 0));
    return type_end(w, BF_BUILTIN);
}

BwId bw_scalar(Bw *w, int dtype, BwForm f) {
    if (dtype_is_complex(dtype)) {
        BwId part = bw_scalar(w, dtype == DT_C64 ? DT_F32 : DT_F64, f);
        bw_num(&w->key, f == BF_VHLO ? VT_COMPLEX : BT_COMPLEX);
        bw_ref(&w->key, BW_TYPE, part);
        return type_end(w, f);
    }
    if (dtype_row(dtype)->cls == DC_NONE)
        bw_fail(w, "the element type %s", dtype_row(dtype)->name);
    if (f == BF_BUILTIN)
        return builtin_scalar(w, dtype);
    return type_code(w, BF_VHLO, vhlo_scalars[dtype] - 1u);
}

// --- text ---------------------------------------------------------------------------------------

static double number(BwText *t) {
    double v;
    bw_text_eat(t, "");
    const char *end = num_parse_f64(t->at, t->at + strlen(t->at), &v);
    if (end == t->at)
        bw_text_fail(t);
    t->at = end;
    return v;
}

static int scalar_name(BwText *t) {
    bw_text_eat(t, "");
    size_t n = 0;
    while ((t->at[n] >= 'a' && t->at[n] <= 'z') || (t->at[n] >= 'A' && t->at[n] <= 'Z') ||
           (t->at[n] >= '0' && t->at[n] <= '9'))
        n++;
    if (n == 7 && !strncmp(t->at, "complex", 7))
        n += strcspn(t->at + n, ">") + 1;
    int dtype = n <= strlen(t->at) ? dtype_parse(t->at, n) : -1;
    if (dtype <= 0)
        bw_text_fail(t);
    t->at += n;
    return dtype;
}

// "16, ?" up to the closing bracket.
static uint32_t bounds(BwText *t, int64_t out[OTRN_MAX_RANK]) {
    uint32_t n = 0;
    do {
        if (n == OTRN_MAX_RANK)
            bw_text_fail(t);
        out[n++] = bw_text_eat(t, "?") ? HLO_DYNAMIC : bw_text_int(t);
    } while (bw_text_eat(t, ","));
    return n;
}

// An encoding: bounds, or an attribute of some other dialect, which is carried along.
static BwId encoding(BwText *t) {
    Bw *w = t->w;
    bw_text_eat(t, "");
    if (strncmp(t->at, "#stablehlo.bounds<", 18)) {
        HloAttr a = {.kind = HA_OPAQUE, .n = (uint32_t)strlen(t->at), .s = t->at};
        t->at += a.n;
        return bw_attr(w, &a, BF_VHLO);
    }
    int64_t v[OTRN_MAX_RANK];
    t->at += 18;
    uint32_t n = bounds(t, v);
    bw_text_need(t, ">");
    bw_num(&w->key, 18); // TypeExtensionsV1
    bw_num(&w->key, n);
    for (uint32_t i = 0; i < n; i++)
        bw_snum(&w->key, v[i]);
    return bw_entry(w, BW_ATTR, "vhlo");
}

// --- quantised elements -------------------------------------------------------------------------

typedef struct Quant {
    int storage; // DT_I8, …: the signed type of that width
    bool is_signed, per_axis;
    int64_t axis, min, max;
    int expressed;
    VEC(double) scales;
    VEC(int64_t) zeros;
} Quant;

static void quant_storage(BwText *t, Quant *q) {
    q->is_signed = !bw_text_eat(t, "u"); // u8
    if (q->is_signed)
        bw_text_need(t, "i");
    else
        bw_text_eat(t, "i"); // ui8
    int64_t bits = bw_text_int(t);
    static const uint8_t widths[][2] = {{2, DT_I2},   {4, DT_I4},   {8, DT_I8},
                                        {16, DT_I16}, {32, DT_I32}, {64, DT_I64}};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        if (widths[i][0] == bits)
            q->storage = widths[i][1];
    if (!q->storage)
        bw_text_fail(t);
    int64_t top = bits == 64 ? INT64_MAX : (int64_t)1 << (bits - q->is_signed);
    q->max = bits == 64 ? INT64_MAX : top - 1;
    q->min = !q->is_signed ? 0 : bits == 64 ? INT64_MIN : -top;
    if (bw_text_eat(t, "<")) {
        q->min = bw_text_int(t);
        bw_text_need(t, ":");
        q->max = bw_text_int(t);
        bw_text_need(t, ">");
    }
}

static void quant_scale(BwText *t, Quant *q) {
    VEC_PUSH(t->w->arena, &q->scales, number(t));
    VEC_PUSH(t->w->arena, &q->zeros, bw_text_eat(t, ":") ? bw_text_int(t) : 0);
}

static Quant quant_parse(BwText *t) {
    Quant q = {0};
    bw_text_need(t, "!quant.uniform<");
    quant_storage(t, &q);
    bw_text_need(t, ":");
    q.expressed = scalar_name(t);
    q.per_axis = bw_text_eat(t, ":");
    q.axis = q.per_axis ? bw_text_int(t) : 0;
    bw_text_need(t, ",");
    if (q.per_axis)
        bw_text_need(t, "{");
    do {
        quant_scale(t, &q);
    } while (q.per_axis && bw_text_eat(t, ","));
    if (q.per_axis)
        bw_text_need(t, "}");
    bw_text_need(t, ">");
    return q;
}

static void put_f64(Buf *form, double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    bw_bits(form, 64, bits);
}

static void put_parameters(Buf *form, const Quant *q) {
    bw_num(form, q->scales.n);
    for (uint32_t i = 0; i < q->scales.n; i++)
        put_f64(form, q->scales.at[i]);
    bw_num(form, q->zeros.n);
    for (uint32_t i = 0; i < q->zeros.n; i++)
        bw_snum(form, q->zeros.at[i]);
}

static BwId quant_text(BwText *t) { // up to the '>' that closes it
    int depth = 0;
    size_t n = 0;
    do {
        depth += (t->at[n] == '<') - (t->at[n] == '>');
        n++;
    } while (t->at[n] && (depth || n < sizeof "!quant.uniform"));
    BwId id = bw_entry_text(t->w, BW_TYPE, "quant", 5, arena_strndup(t->w->arena, t->at, n));
    t->at += n;
    return id;
}

static BwId quantised(BwText *t) {
    Bw *w = t->w;
    if (t->at[strcspn(t->at, ",{")] == '{') // scales of blocks: VHLO has no form for them, the quant dialect's text does
        return quant_text(t);
    Quant q = quant_parse(t);
    BwId storage = bw_scalar(w, q.storage, BF_VHLO), expressed = bw_scalar(w, q.expressed, BF_VHLO);
    bw_num(&w->key, q.per_axis ? VT_QUANT_AXIS : VT_QUANT);
    bw_num(&w->key, q.is_signed);
    bw_ref(&w->key, BW_TYPE, storage);
    bw_ref(&w->key, BW_TYPE, expressed);
    if (q.per_axis) {
        bw_num(&w->key, (uint64_t)q.axis);
    } else {
        put_f64(&w->key, q.scales.at[0]);
        bw_snum(&w->key, q.zeros.at[0]);
    }
    bw_snum(&w->key, q.min);
    bw_snum(&w->key, q.max);
    if (q.per_axis)
        put_parameters(&w->key, &q);
    return bw_entry(w, BW_TYPE, "vhlo");
}

// --- composed types -----------------------------------------------------------------------------

// Shape and element, behind the code and an encoding when there is one.
static void put_shape(Bw *w, int rank, const int64_t *dims, BwId element) {
    bw_num(&w->key, (uint64_t)rank);
    for (int i = 0; i < rank; i++)
        bw_snum(&w->key, dims[i]);
    bw_ref(&w->key, BW_TYPE, element);
}

BwId bw_tensor_type(Bw *w, int dtype, int rank, const int64_t *dims, BwForm f) {
    BwId element = bw_scalar(w, dtype, f);
    bw_num(&w->key, f == BF_VHLO ? VT_TENSOR : BT_TENSOR);
    put_shape(w, rank, dims, element);
    return type_end(w, f);
}

// A quantised or encoded tensor beside another dialect's op: builtin's type around the text of the element or encoding.
static BwId builtin_tensor(Bw *w, const HloType *ty) {
    const char *enc = strchr(ty->text, '#');
    bool quant = ty->text[0] == '!';
    size_t n = enc && quant ? (size_t)(enc - ty->text) - 2 : strlen(ty->text); // ", " between them
    BwId element = !quant ? bw_scalar(w, ty->dtype, BF_BUILTIN)
                          : bw_entry_text(w, BW_TYPE, "quant", 5, arena_strndup(w->arena, ty->text, n));
    BwId encoded = enc ? bw_entry_text(w, BW_ATTR, enc + 1, strcspn(enc + 1, ".<"), enc) : 0;
    bw_num(&w->key, enc ? BT_TENSOR_ENCODED : BT_TENSOR);
    if (enc)
        bw_ref(&w->key, BW_ATTR, encoded);
    put_shape(w, ty->rank, ty->dims, element);
    return type_end(w, BF_BUILTIN);
}

static BwId tensor(Bw *w, const HloType *ty, BwForm f) {
    if (!ty->text)
        return bw_tensor_type(w, ty->dtype, ty->rank, ty->dims, f);
    if (f == BF_BUILTIN)
        return builtin_tensor(w, ty);
    BwText t = {w, "the type", ty->text, ty->text};
    bool quant = ty->text[0] == '!';
    BwId element = quant ? quantised(&t) : bw_scalar(w, ty->dtype, f);
    bool encoded = !quant || bw_text_eat(&t, ",");
    BwId enc = encoded ? encoding(&t) : 0;
    bw_text_eat(&t, "");
    if (*t.at)
        bw_text_fail(&t);
    bw_num(&w->key, encoded ? VT_TENSOR_ENCODED : VT_TENSOR);
    if (encoded)
        bw_ref(&w->key, BW_ATTR, enc);
    put_shape(w, ty->rank, ty->dims, element);
    return type_end(w, f);
}

static void push_types(Bw *w, const TypeId *types, uint32_t n, BwForm f) {
    for (uint32_t i = 0; i < n; i++) {
        BwId id = bw_type(w, types[i], f);
        VEC_PUSH(w->arena, &w->ids, id);
    }
}

// A list of what lies on w->ids in [base, base + n).
static void put_types(Bw *w, uint32_t base, uint32_t n) {
    bw_num(&w->key, n);
    for (uint32_t i = 0; i < n; i++)
        bw_ref(&w->key, BW_TYPE, w->ids.at[base + i]);
}

static BwId function(Bw *w, const TypeId *members, uint32_t nin, uint32_t nout, BwForm f) {
    uint32_t base = w->ids.n;
    push_types(w, members, nin + nout, f);
    bw_num(&w->key, f == BF_VHLO ? VT_FUNC : BT_FUNC);
    put_types(w, base, nin);
    put_types(w, base + nin, nout);
    w->ids.n = base;
    return type_end(w, f);
}

BwId bw_func_type(Bw *w, const HloFunc *f) {
    return function(w, f->result_types - f->nargs, f->nargs, f->nresults, BF_VHLO);
}

static BwId tuple(Bw *w, const HloType *ty, BwForm f) {
    uint32_t base = w->ids.n;
    push_types(w, ty->members, ty->nmembers, f);
    bw_num(&w->key, f == BF_VHLO ? VT_TUPLE : BT_TUPLE);
    put_types(w, base, ty->nmembers);
    w->ids.n = base;
    return type_end(w, f);
}

// --- types that are text ------------------------------------------------------------------------

// "2x?x" before an element type.
static uint32_t dims_parse(BwText *t, int64_t dims[OTRN_MAX_RANK]) {
    uint32_t rank = 0;
    for (bw_text_eat(t, ""); bw_text_at_digit(t) || *t->at == '?'; rank++) {
        if (rank == OTRN_MAX_RANK)
            bw_text_fail(t);
        dims[rank] = bw_text_eat(t, "?") ? HLO_DYNAMIC : bw_text_int(t);
        bw_text_need(t, "x");
    }
    return rank;
}

static BwId text_type(BwText *t);

static BwId text_shaped(BwText *t, uint64_t code) {
    Bw *w = t->w;
    int64_t dims[OTRN_MAX_RANK];
    bool unranked = code == VT_TENSOR && bw_text_eat(t, "*x");
    uint32_t rank = unranked ? 0 : dims_parse(t, dims);
    bw_text_eat(t, "");
    BwId element = *t->at == '!' ? quantised(t) : bw_scalar(w, scalar_name(t), BF_VHLO);
    bw_text_need(t, ">");
    bw_num(&w->key, unranked ? VT_UNRANKED : code);
    if (unranked)
        bw_ref(&w->key, BW_TYPE, element);
    else
        put_shape(w, (int)rank, dims, element);
    return bw_entry(w, BW_TYPE, "vhlo");
}

static BwId text_future(BwText *t) {
    Bw *w = t->w;
    uint32_t base = w->ids.n;
    bw_need(w, 15);
    if (!bw_text_eat(t, ">")) {
        do {
            BwId id = text_type(t);
            VEC_PUSH(w->arena, &w->ids, id);
        } while (bw_text_eat(t, ","));
        bw_text_need(t, ">");
    }
    bw_num(&w->key, VT_FUTURE);
    put_types(w, base, w->ids.n - base);
    w->ids.n = base;
    return bw_entry(w, BW_TYPE, "vhlo");
}

static BwId text_type(BwText *t) {
    if (bw_text_eat(t, "tensor<"))
        return text_shaped(t, VT_TENSOR);
    if (bw_text_eat(t, "memref<"))
        return text_shaped(t, VT_BUFFER);
    if (bw_text_eat(t, "!stablehlo.future<"))
        return text_future(t);
    if (bw_text_eat(t, "!stablehlo.token"))
        return type_code(t->w, BF_VHLO, VT_TOKEN);
    if (bw_text_eat(t, "!shape.witness"))
        return type_code(t->w, BF_VHLO, VT_WITNESS);
    bw_text_fail(t);
}

static BwId other(Bw *w, const HloType *ty, BwForm f) {
    if (ty->text && !strcmp(ty->text, "none"))
        return type_code(w, f, f == BF_VHLO ? VT_NONE : BT_NONE);
    if (ty->dtype != DT_INVALID && (!ty->text || ty->text[0] != '!'))
        return bw_scalar(w, ty->dtype, f);
    if (strstr(ty->text, ".bytecode<\"0x")) // bytes whose meaning lay in the file they came from
        bw_fail(w, "a type that only its own dialect understands: %.60s", ty->text);
    if (f == BF_BUILTIN)
        return bw_entry_text(w, BW_TYPE, "builtin", 7, ty->text);
    BwText t = {w, "the type", ty->text, ty->text};
    bw_text_eat(&t, "");
    BwId id = !strncmp(t.at, "!quant.", 7) ? quantised(&t) : text_type(&t);
    bw_text_eat(&t, "");
    if (*t.at)
        bw_text_fail(&t);
    return id;
}

static BwId type_make(Bw *w, TypeId id, BwForm f) {
    const HloType *ty = hlo_type(w->h, id);
    switch (ty->kind) {
    case HT_TENSOR:
        return tensor(w, ty, f);
    case HT_TOKEN:
        if (f == BF_BUILTIN)
            return bw_entry_text(w, BW_TYPE, "stablehlo", 9, "!stablehlo.token");
        return type_code(w, f, VT_TOKEN);
    case HT_TUPLE:
        return tuple(w, ty, f);
    case HT_FUNC:
        return function(w, ty->members, ty->ninputs, ty->nmembers - ty->ninputs, f);
    default:
        return other(w, ty, f);
    }
}

BwId bw_type(Bw *w, TypeId id, BwForm f) {
    BwId *memo = &w->types[f][id];
    if (!*memo) {
        bw_enter(w);
        *memo = type_make(w, id, f) + 1;
        bw_leave(w);
    }
    return *memo - 1;
}
