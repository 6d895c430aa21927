// SPDX-License-Identifier: Apache-2.0
// bytecode_type.c — builtin and VHLO types become HloTypes.
//
// A scalar type (f32) is no HloType of its own kind: it appears inside tensors as their dtype, and
// alone (as the value of an attribute) as HT_OTHER whose dtype and text both tell it. VHLO's iN and
// builtin's signless iN are both signed; both dialects' one-bit integers are i1. Quantised elements
// keep the storage type as dtype and their text beside it.
#include <stdio.h>

#include "read/bytecode.h"

static void put_scalar(Bc *b, BcType *t, int dtype, const char *text) {
    t->dtype = (uint8_t)dtype;
    t->text = text;
    HloType ty = {.kind = HT_OTHER, .dtype = (uint8_t)dtype, .text = text};
    if (!text)
        ty.text = dtype_row(dtype)->name;
    t->id = hlo_type_intern(b->h, &ty);
}

static void put_text(Bc *b, BcType *t, Buf *text) {
    bc_spend(b, text->n);
    put_scalar(b, t, DT_INVALID, buf_cstr(text));
}

const char *bc_double(char out[NUM_TEXT_BYTES], double v) {
    if (v - v == 0)
        num_print_exact(out, v);
    else
        snprintf(out, NUM_TEXT_BYTES, "%s", v != v ? "nan" : v > 0 ? "inf" : "-inf");
    return out;
}

// --- text of a type, for the few that are kept as text ------------------------------------------

static void print_dims(Buf *out, const int64_t *dims, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        if (dims[i] == HLO_DYNAMIC)
            buf_puts(out, "?x");
        else
            buf_printf(out, "%lldx", (long long)dims[i]);
    }
}

static void print_type(Bc *b, Rd *r, TypeId id, Buf *out) {
    const HloType *t = hlo_type(b->h, id);
    bc_text_check(b, r, out);
    switch (t->kind) {
    case HT_TENSOR:
        buf_puts(out, "tensor<");
        print_dims(out, t->dims, t->rank);
        if (t->text && t->text[0] == '!')
            buf_puts(out, t->text);
        else if (t->text)
            buf_printf(out, "%s, %s", dtype_row(t->dtype)->name, t->text);
        else
            buf_puts(out, dtype_row(t->dtype)->name);
        buf_puts(out, ">");
        return;
    case HT_TOKEN:
        buf_puts(out, "!stablehlo.token");
        return;
    case HT_OTHER:
        buf_puts(out, t->text);
        return;
    case HT_TUPLE:
        buf_puts(out, "tuple<");
        for (uint32_t i = 0; i < t->nmembers; i++) {
            buf_puts(out, i ? ", " : "");
            print_type(b, r, hlo_type(b->h, id)->members[i], out);
        }
        buf_puts(out, ">");
        return;
    default:
        rd_fail(r, "a function type inside another type");
    }
}

// --- composed types -----------------------------------------------------------------------------

static uint32_t read_dims(Bc *b, Rd *r, int64_t dims[OTRN_MAX_RANK]) {
    uint32_t rank = bc_count(r);
    if (rank > OTRN_MAX_RANK)
        ctx_fail(b->ctx, OTRN_CAPACITY, (Place){.file = b->name},
                 "a tensor of rank %u: the limit is %d", rank, OTRN_MAX_RANK);
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = bc_svarint(r);
        if (dims[i] < 0 && dims[i] != HLO_DYNAMIC)
            rd_fail(r, "dimension %u has the size %lld", i, (long long)dims[i]);
    }
    return rank;
}

static const BcType *read_element(Bc *b, Rd *r) {
    const BcType *e = bc_type_ref(b, r);
    if (hlo_type(b->h, e->id)->kind != HT_OTHER)
        rd_fail(r, "a type that cannot be an element type");
    return e;
}

static void read_tensor(Bc *b, Rd *r, BcType *t, bool encoded) {
    const char *encoding = NULL;
    if (encoded) {
        const HloAttr *a = bc_attr_ref(b, r);
        encoding = a->kind == HA_OPAQUE || a->kind == HA_STR ? a->s : NULL;
    }
    int64_t dims[OTRN_MAX_RANK];
    uint32_t rank = read_dims(b, r, dims);
    const BcType *e = read_element(b, r);
    if (e->dtype == DT_INVALID)
        ctx_fail(b->ctx, OTRN_UNSUPPORTED, (Place){.file = b->name}, "tensors of %.100s",
                 hlo_type(b->h, e->id)->text);
    HloType ty = {.kind = HT_TENSOR, .dtype = e->dtype, .rank = (uint8_t)rank, .dims = dims};
    ty.text = e->text ? e->text : encoding;
    if (e->text && encoding) {
        bc_spend(b, strlen(e->text) + strlen(encoding) + 3);
        ty.text = arena_printf(b->arena, "%s, %s", e->text, encoding);
    }
    t->id = hlo_type_intern(b->h, &ty);
}

// Types that hold other types: `tuple` members, or a function's inputs and results.
static void read_members(Bc *b, Rd *r, BcType *t, HloTypeKind kind) {
    VEC(TypeId) members = {0};
    uint32_t ninputs = 0;
    for (int list = 0; list < (kind == HT_FUNC ? 2 : 1); list++) {
        uint32_t n = bc_count(r);
        for (uint32_t i = 0; i < n; i++)
            VEC_PUSH(b->arena, &members, bc_type_ref(b, r)->id);
        if (list == 0)
            ninputs = n;
    }
    HloType ty = {.kind = (uint8_t)kind, .members = members.at, .nmembers = members.n};
    ty.ninputs = kind == HT_FUNC ? ninputs : 0;
    t->id = hlo_type_intern(b->h, &ty);
}

static void read_complex(Bc *b, Rd *r, BcType *t) {
    const BcType *e = read_element(b, r);
    if (e->dtype == DT_F32 || e->dtype == DT_F64) {
        put_scalar(b, t, e->dtype == DT_F32 ? DT_C64 : DT_C128, NULL);
        return;
    }
    Buf out = {.arena = b->arena};
    buf_puts(&out, "complex<");
    print_type(b, r, e->id, &out);
    buf_puts(&out, ">");
    put_text(b, t, &out);
}

// memref, vector, unranked and future types are carried as text: no op that runs takes them.
static void read_shaped_text(Bc *b, Rd *r, BcType *t, const char *name) {
    int64_t dims[OTRN_MAX_RANK];
    uint32_t rank = read_dims(b, r, dims);
    Buf out = {.arena = b->arena};
    buf_printf(&out, "%s<", name);
    print_dims(&out, dims, rank);
    print_type(b, r, bc_type_ref(b, r)->id, &out);
    buf_puts(&out, ">");
    put_text(b, t, &out);
}

static void read_unranked(Bc *b, Rd *r, BcType *t, const char *name) {
    Buf out = {.arena = b->arena};
    buf_printf(&out, "%s<*x", name);
    print_type(b, r, bc_type_ref(b, r)->id, &out);
    buf_puts(&out, ">");
    put_text(b, t, &out);
}

static void read_future(Bc *b, Rd *r, BcType *t) {
    uint32_t n = bc_count(r);
    Buf out = {.arena = b->arena};
    buf_puts(&out, "!stablehlo.future<");
    for (uint32_t i = 0; i < n; i++) {
        buf_puts(&out, i ? ", " : "");
        print_type(b, r, bc_type_ref(b, r)->id, &out);
    }
    buf_puts(&out, ">");
    put_text(b, t, &out);
}

// --- quantised elements -------------------------------------------------------------------------

static int storage_dtype(Rd *r, const BcType *storage, bool is_signed) {
    static const uint8_t by_width[][3] = {{2, DT_I2, DT_UI2},    {4, DT_I4, DT_UI4},
                                          {8, DT_I8, DT_UI8},    {16, DT_I16, DT_UI16},
                                          {32, DT_I32, DT_UI32}, {64, DT_I64, DT_UI64}};
    for (size_t i = 0; dtype_is_int(storage->dtype) && i < sizeof by_width / 3; i++)
        if (by_width[i][0] == dtype_row(storage->dtype)->bits)
            return by_width[i][is_signed ? 1 : 2];
    rd_fail(r, "a quantised type is stored as something other than an integer");
}

static void print_storage(Buf *out, int dtype, int64_t min, int64_t max) {
    unsigned bits = dtype_row(dtype)->bits;
    bool is_signed = dtype_row(dtype)->cls == DC_SINT;
    buf_printf(out, "%c%u", is_signed ? 'i' : 'u', bits);
    int64_t top = bits == 64 ? INT64_MAX : (int64_t)1 << (bits - (is_signed ? 1 : 0));
    int64_t full_max = bits == 64 ? INT64_MAX : top - 1;
    int64_t full_min = !is_signed ? 0 : bits == 64 ? INT64_MIN : -top;
    if (min != full_min || max != full_max)
        buf_printf(out, "<%lld:%lld>", (long long)min, (long long)max);
}

static void print_scale(Buf *out, double scale, int64_t zero) {
    char text[NUM_TEXT_BYTES];
    buf_puts(out, bc_double(text, scale));
    if (zero)
        buf_printf(out, ":%lld", (long long)zero);
}

static void read_quantised(Bc *b, Rd *r, BcType *t, bool per_axis) {
    bool is_signed = bc_varint(r) & 1;
    const BcType *storage = bc_type_ref(b, r), *expressed = bc_type_ref(b, r);
    int dtype = storage_dtype(r, storage, is_signed);
    uint64_t axis = per_axis ? bc_varint(r) : 0;
    double scale = per_axis ? 0 : bc_f64(r);
    int64_t zero = per_axis ? 0 : bc_svarint(r);
    int64_t min = bc_svarint(r), max = bc_svarint(r);
    Buf out = {.arena = b->arena};
    buf_puts(&out, "!quant.uniform<");
    print_storage(&out, dtype, min, max);
    buf_puts(&out, ":");
    print_type(b, r, expressed->id, &out);
    if (!per_axis) {
        buf_puts(&out, ", ");
        print_scale(&out, scale, zero);
    } else {
        uint32_t n = bc_count(r);
        double *scales = ARENA_NEWN(b->arena, double, n);
        for (uint32_t i = 0; i < n; i++)
            scales[i] = bc_f64(r);
        if (bc_count(r) != n)
            rd_fail(r, "a quantised type has unequal counts of scales and zero points");
        buf_printf(&out, ":%llu, {", (unsigned long long)axis);
        for (uint32_t i = 0; i < n; i++) {
            buf_puts(&out, i ? ", " : "");
            print_scale(&out, scales[i], bc_svarint(r));
        }
        buf_puts(&out, "}");
    }
    buf_puts(&out, ">");
    bc_text_check(b, r, &out);
    bc_spend(b, out.n);
    put_scalar(b, t, dtype, buf_cstr(&out));
}

// --- by dialect ---------------------------------------------------------------------------------

static void read_builtin_integer(Bc *b, Rd *r, BcType *t) {
    uint64_t v = bc_varint(r);
    char name[32];
    int n = snprintf(name, sizeof name, "%s%llu", (v & 3) == 2 ? "ui" : "i",
                     (unsigned long long)(v >> 2));
    int dtype = dtype_parse(name, (size_t)n);
    if (dtype > 0)
        put_scalar(b, t, dtype, NULL);
    else
        put_scalar(b, t, DT_INVALID, arena_strndup(b->arena, name, (size_t)n));
}

static void read_builtin(Bc *b, Rd *r, BcType *t) {
    static const uint8_t scalars[33] = {
        [1] = DT_INDEX,      [3] = DT_BF16,        [4] = DT_F16,         [5] = DT_F32,
        [6] = DT_F64,        [21] = DT_TF32,       [22] = DT_F8E5M2,     [23] = DT_F8E4M3,
        [24] = DT_F8E4M3FN,  [25] = DT_F8E5M2FNUZ, [26] = DT_F8E4M3FNUZ, [27] = DT_F8E4M3B11FNUZ,
        [28] = DT_F8E3M4,    [29] = DT_F4E2M1FN,   [30] = DT_F6E2M3FN,   [31] = DT_F6E3M2FN,
        [32] = DT_F8E8M0FNU,
    };
    uint64_t code = bc_varint(r);
    if (code < sizeof scalars && scalars[code]) {
        put_scalar(b, t, scalars[code], NULL);
        return;
    }
    switch (code) {
    case 0:
        read_builtin_integer(b, r, t);
        return;
    case 2:
        read_members(b, r, t, HT_FUNC);
        return;
    case 7:
        put_scalar(b, t, DT_INVALID, "f80");
        return;
    case 8:
        put_scalar(b, t, DT_INVALID, "f128");
        return;
    case 9:
        read_complex(b, r, t);
        return;
    case 10: // memref: shape, type, layout
        read_shaped_text(b, r, t, "memref");
        bc_attr_index(b, r);
        return;
    case 11: // with memory space
        bc_attr_index(b, r);
        read_shaped_text(b, r, t, "memref");
        bc_attr_index(b, r);
        return;
    case 12:
        put_scalar(b, t, DT_INVALID, "none");
        return;
    case 13:
        read_tensor(b, r, t, false);
        return;
    case 14:
        read_tensor(b, r, t, true);
        return;
    case 15:
        read_members(b, r, t, HT_TUPLE);
        return;
    case 16:
        read_unranked(b, r, t, "memref");
        return;
    case 17:
        bc_attr_index(b, r);
        read_unranked(b, r, t, "memref");
        return;
    case 18:
        read_unranked(b, r, t, "tensor");
        return;
    case 19:
        read_shaped_text(b, r, t, "vector");
        return;
    case 20: // scalable vector: which dimensions scale is not kept
        rd_bytes(r, bc_count(r));
        read_shaped_text(b, r, t, "vector");
        return;
    default:
        rd_fail(r, "builtin type code %llu is unknown", (unsigned long long)code);
    }
}

static void read_vhlo(Bc *b, Rd *r, BcType *t) {
    static const uint8_t scalars[41] = {
        [0] = DT_I1,          [2] = DT_BF16,        [3] = DT_F16,
        [4] = DT_F32,         [5] = DT_F64,         [6] = DT_F8E4M3FN,
        [7] = DT_F8E5M2,      [9] = DT_INDEX,       [10] = DT_I4,
        [11] = DT_I8,         [12] = DT_I16,        [13] = DT_I32,
        [14] = DT_I64,        [15] = DT_UI4,        [16] = DT_UI8,
        [17] = DT_UI16,       [18] = DT_UI32,       [19] = DT_UI64,
        [27] = DT_F8E4M3FNUZ, [28] = DT_F8E5M2FNUZ, [29] = DT_F8E4M3B11FNUZ,
        [31] = DT_I2,         [32] = DT_UI2,        [34] = DT_TF32,
        [35] = DT_F8E4M3,     [36] = DT_F8E3M4,     [37] = DT_F4E2M1FN,
        [38] = DT_F6E2M3FN,   [39] = DT_F6E3M2FN,   [40] = DT_F8E8M0FNU,
    };
    uint64_t code = bc_varint(r);
    if (code < sizeof scalars && scalars[code]) {
        put_scalar(b, t, scalars[code], NULL);
        return;
    }
    switch (code) {
    case 1:
        read_complex(b, r, t);
        return;
    case 8:
        read_members(b, r, t, HT_FUNC);
        return;
    case 20:
        read_tensor(b, r, t, false);
        return;
    case 21:
        read_tensor(b, r, t, true);
        return;
    case 22:
        t->id = hlo_type_intern(b->h, &(HloType){.kind = HT_TOKEN, .dtype = DT_TOKEN});
        return;
    case 23:
        read_members(b, r, t, HT_TUPLE);
        return;
    case 24:
        read_quantised(b, r, t, false);
        return;
    case 25:
        read_unranked(b, r, t, "tensor");
        return;
    case 26:
        put_scalar(b, t, DT_INVALID, "!shape.witness");
        return;
    case 30:
        read_quantised(b, r, t, true);
        return;
    case 33:
        put_scalar(b, t, DT_INVALID, "none");
        return;
    case 41:
        read_shaped_text(b, r, t, "memref");
        return;
    case 42:
        read_future(b, r, t);
        return;
    default:
        rd_fail(r, "VHLO type code %llu is unknown", (unsigned long long)code);
    }
}

// --- text fallback ------------------------------------------------------------------------------

// "tensor<2x?xf32>": shape and plain element type only; false when it is anything else.
static bool parse_tensor(Bc *b, BcType *t, const char *s, size_t n) {
    if (n < 8 || memcmp(s, "tensor<", 7) || s[n - 1] != '>')
        return false;
    const char *at = s + 7, *end = s + n - 1;
    int64_t dims[OTRN_MAX_RANK];
    uint32_t rank = 0;
    while (at < end && ((*at >= '0' && *at <= '9') || *at == '?')) {
        int64_t size = *at == '?' ? HLO_DYNAMIC : 0;
        if (*at == '?')
            at++;
        else
            for (; at < end && *at >= '0' && *at <= '9'; at++)
                if (__builtin_mul_overflow(size, 10, &size) ||
                    __builtin_add_overflow(size, *at - '0', &size))
                    return false;
        if (at == end || *at++ != 'x' || rank == OTRN_MAX_RANK)
            return false;
        dims[rank++] = size;
    }
    int dtype = dtype_parse(at, (size_t)(end - at));
    if (dtype <= 0 || dtype == DT_TOKEN)
        return false;
    t->id = hlo_type_tensor(b->h, dtype, (int)rank, dims);
    return true;
}

// "!quant.uniform<u8<0:15>:f32, …>": the type it is stored in; 0 when it is anything else.
static int quant_text_storage(const char *s) {
    if (strncmp(s, "!quant.uniform<", 15))
        return 0;
    s += 15;
    bool is_u = s[0] == 'u' && s[1] != 'i'; // u8 is how the quant dialect writes ui8
    char name[16];
    size_t n = strcspn(s + is_u, ":<");
    snprintf(name, sizeof name, "%s%.*s", is_u ? "ui" : "", n < 8 ? (int)n : 0, s + is_u);
    int dtype = dtype_parse(name, strlen(name));
    return dtype > 0 && dtype_is_int(dtype) ? dtype : 0;
}

static void read_text_type(Bc *b, Rd *r, BcType *t) {
    size_t n = (size_t)(r->end - r->at) - 1; // entries have at least one byte
    const char *s = (const char *)rd_bytes(r, n + 1);
    if (memchr(s, 0, n + 1) != s + n)
        rd_fail(r, "the text of a type has no end");
    int dtype = dtype_parse(s, n), storage = quant_text_storage(s);
    if (storage > 0)
        put_scalar(b, t, storage, arena_strndup(b->arena, s, n));
    else if (dtype == DT_TOKEN)
        t->id = hlo_type_intern(b->h, &(HloType){.kind = HT_TOKEN, .dtype = DT_TOKEN});
    else if (dtype > 0)
        put_scalar(b, t, dtype, NULL);
    else if (!parse_tensor(b, t, s, n))
        put_scalar(b, t, DT_INVALID, arena_strndup(b->arena, s, n));
}

// Types that are a dialect's own: tokens and futures, quantised elements; others keep their bytes.
static void read_foreign_type(Bc *b, Rd *r, BcType *t, const BcDialectName *dialect) {
    const uint8_t *whole = r->at;
    uint64_t code = bc_varint(r);
    if (dialect->known == BD_RAW && code == 0) {
        t->id = hlo_type_intern(b->h, &(HloType){.kind = HT_TOKEN, .dtype = DT_TOKEN});
        return;
    }
    if (code == 1 && !strcmp(dialect->name, "stablehlo")) {
        read_future(b, r, t);
        return;
    }
    if (dialect->known == BD_QUANT && (code == 4 || code == 5)) {
        read_quantised(b, r, t, code == 5);
        return;
    }
    r->at = whole;
    Buf out = {.arena = b->arena};
    buf_printf(&out, "!%s.bytecode<\"0x", dialect->name);
    while (r->at < r->end) {
        buf_printf(&out, "%02x", rd_u8(r));
        bc_text_check(b, r, &out);
    }
    buf_puts(&out, "\">");
    put_text(b, t, &out);
}

// --- entry points -------------------------------------------------------------------------------

const BcType *bc_type(Bc *b, uint32_t i) {
    BcType *t = &b->types[i];
    if (t->entry.state == BS_DONE) {
        bc_entry_seen(b, &t->entry);
        return t;
    }
    Rd r = bc_rd(b, t->entry.bytes);
    BcOuter outer = bc_entry_begin(b, &r, &t->entry);
    const BcDialectName *dialect = &b->dialects[t->entry.dialect];
    if (!t->entry.custom)
        read_text_type(b, &r, t);
    else if (dialect->known == BD_BUILTIN)
        read_builtin(b, &r, t);
    else if (dialect->known == BD_VHLO)
        read_vhlo(b, &r, t);
    else
        read_foreign_type(b, &r, t, dialect);
    bc_done(&r, "a type");
    bc_entry_end(b, &r, &t->entry, outer);
    return t;
}

const BcType *bc_type_ref(Bc *b, Rd *r) {
    return bc_type(b, bc_index(r, b->ntypes, "type"));
}
