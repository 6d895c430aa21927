// SPDX-License-Identifier: Apache-2.0
// bytecode_attr.c — attributes in VHLO's and in builtin's form, and locations.
//
// Inside ops and functions attributes are VHLO's. What VHLO has no form for (units, symbols,
// arrays, shardings) stands there in its own dialect's form, which readers leave as it is. The
// module's own attributes are builtin's. An attribute the graph keeps as text is written as text,
// which every reader of bytecode takes.
#include "write/bytecode.h"

#include <assert.h>

enum {
    BA_ARRAY,
    BA_DICT,
    BA_STRING,
    BA_SYMBOL = 4,
    BA_SYMBOL_NESTED,
    BA_TYPE,
    BA_UNIT,
    BA_INT,
    BA_FLOAT,
    BA_LOC_CALL,
    BA_LOC_FILE,
    BA_LOC_FUSED,
    BA_LOC_NAME = 14,
    BA_LOC_UNKNOWN,
    BA_DENSE_ARRAY = 17,
    BA_DENSE,
};
enum {
    VA_ARRAY = 1,
    VA_BOOL,
    VA_DICT = 6,
    VA_FLOAT = 8,
    VA_INT,
    VA_STRING = 14,
    VA_TENSOR,
    VA_TYPE = 17,
};

static BwId vhlo_end(Bw *w) {
    return bw_entry(w, BW_ATTR, "vhlo");
}

static BwId builtin_end(Bw *w) {
    return bw_entry(w, BW_ATTR, "builtin");
}

static BwId attr_end(Bw *w, BwForm f) {
    return f == BF_VHLO ? vhlo_end(w) : builtin_end(w);
}

// --- strings and numbers ------------------------------------------------------------------------

BwId bw_builtin_str(Bw *w, const char *s, size_t n) {
    bw_num(&w->key, BA_STRING);
    bw_num(&w->key, bw_str(w, s, n));
    return builtin_end(w);
}

BwId bw_vhlo_str(Bw *w, const char *s, size_t n) {
    bw_num(&w->key, VA_STRING);
    bw_num(&w->key, bw_str(w, s, n));
    return vhlo_end(w);
}

BwId bw_vhlo_code(Bw *w, uint64_t code, uint64_t v) {
    bw_num(&w->key, code);
    bw_num(&w->key, v);
    return vhlo_end(w);
}

// Up to 8 bits: a byte. Up to 64: the zero-extended pattern as a signed number.
void bw_bits(Buf *form, unsigned width, uint64_t v) {
    if (width < 64)
        v &= ((uint64_t)1 << width) - 1;
    if (width <= 8)
        bw_byte(form, (uint8_t)v);
    else
        bw_snum(form, (int64_t)v);
}

static BwId number_int(Bw *w, int dtype, int64_t v, BwForm f) {
    BwId type = bw_scalar(w, dtype, f);
    bw_num(&w->key, f == BF_VHLO ? VA_INT : BA_INT);
    bw_ref(&w->key, BW_TYPE, type);
    bw_bits(&w->key, dtype_row(dtype)->bits, (uint64_t)v);
    return attr_end(w, f);
}

static BwId number_float(Bw *w, int dtype, double v, BwForm f) {
    uint8_t bytes[8] = {0};
    dtype_from_f64(dtype, bytes, v);
    BwId type = bw_scalar(w, dtype, f);
    bw_num(&w->key, f == BF_VHLO ? VA_FLOAT : BA_FLOAT);
    bw_ref(&w->key, BW_TYPE, type);
    bw_bits(&w->key, dtype_row(dtype)->bits, le_load64(bytes));
    return attr_end(w, f);
}

BwId bw_vhlo_int(Bw *w, int dtype, int64_t v) {
    return number_int(w, dtype, v, BF_VHLO);
}

BwId bw_vhlo_float(Bw *w, int dtype, double v) {
    return number_float(w, dtype, v, BF_VHLO);
}

BwId bw_vhlo_type(Bw *w, BwId type) {
    bw_num(&w->key, VA_TYPE);
    bw_ref(&w->key, BW_TYPE, type);
    return vhlo_end(w);
}

static int number_dtype(Bw *w, const HloAttr *a, int dflt) {
    int dtype = a->type ? hlo_type(w->h, a->type)->dtype : dflt;
    bool fits = a->kind == HA_FLOAT ? dtype_is_float(dtype) : dtype_is_int(dtype);
    if (!fits)
        bw_fail(w, "a number of the type %s", dtype_row(dtype)->name);
    return dtype;
}

// --- lists --------------------------------------------------------------------------------------

static BwId array_take(Bw *w, uint32_t base, BwForm f) {
    bw_num(&w->key, f == BF_VHLO ? VA_ARRAY : BA_ARRAY);
    bw_num(&w->key, w->ids.n - base);
    for (uint32_t i = base; i < w->ids.n; i++)
        bw_ref(&w->key, BW_ATTR, w->ids.at[i]);
    w->ids.n = base;
    return attr_end(w, f);
}

BwId bw_vhlo_array(Bw *w, uint32_t base) {
    return array_take(w, base, BF_VHLO);
}

static BwId list(Bw *w, const HloAttr *a, BwForm f) {
    uint32_t base = w->ids.n;
    for (uint32_t i = 0; i < a->n; i++) {
        BwId id = bw_attr(w, &a->list[i], f);
        VEC_PUSH(w->arena, &w->ids, id);
    }
    return array_take(w, base, f);
}

// Keys and values of a dictionary of dialect `outer`; the values are of form f.
static BwId dict_end(Bw *w, uint32_t base, BwForm outer) { // names and values lie on w->ids
    bw_num(&w->key, outer == BF_VHLO ? VA_DICT : BA_DICT);
    bw_num(&w->key, (w->ids.n - base) / 2);
    for (uint32_t i = base; i < w->ids.n; i++)
        bw_ref(&w->key, BW_ATTR, w->ids.at[i]);
    w->ids.n = base;
    return attr_end(w, outer);
}

BwId bw_builtin_dict(Bw *w, uint32_t base) { return dict_end(w, base, BF_BUILTIN); }

static BwId dict(Bw *w, const HloNamed *named, uint32_t n, BwForm outer, BwForm f) {
    uint32_t base = w->ids.n;
    for (uint32_t i = 0; i < n; i++) {
        const char *name = named[i].name;
        BwId key = outer == BF_VHLO ? bw_vhlo_str(w, name, strlen(name))
                                    : bw_builtin_str(w, name, strlen(name));
        VEC_PUSH(w->arena, &w->ids, key);
        BwId value = bw_attr(w, &named[i].value, f);
        VEC_PUSH(w->arena, &w->ids, value);
    }
    return dict_end(w, base, outer);
}

BwId bw_dict(Bw *w, const HloNamed *named, uint32_t n, BwForm f) {
    return dict(w, named, n, BF_BUILTIN, f);
}

BwId bw_vhlo_dict(Bw *w, const HloNamed *named, uint32_t n) {
    return dict(w, named, n, BF_VHLO, BF_VHLO);
}

// --- tensors ------------------------------------------------------------------------------------

// Bools are bits from the lowest up; one byte of ones or zeros stands for a tensor of equal ones.
static void put_bools(Bw *w, const uint8_t *v, size_t n) {
    bool same = true;
    for (size_t i = 1; i < n; i++)
        same &= !v[i] == !v[0];
    size_t bytes = same && n ? 1 : (n + 7) / 8;
    uint8_t *bits = arena_zalloc(w->arena, bytes);
    if (same && n)
        bits[0] = v[0] ? 0xff : 0;
    for (size_t i = 0; !same && i < n; i++)
        bits[i / 8] |= (uint8_t)((v[i] != 0) << (i % 8));
    bw_blob(w, &w->key, bits, bytes);
}

// One byte per element, the bits above the type's own cleared.
static const uint8_t *narrow(Bw *w, int dtype, const uint8_t *v, size_t n) {
    uint8_t *out = arena_alloc(w->arena, n), mask = (uint8_t)((1 << dtype_row(dtype)->bits) - 1);
    for (size_t i = 0; i < n; i++)
        out[i] = v[i] & mask;
    return out;
}

// Equal elements are written once.
static BwId tensor(Bw *w, const HloAttr *a, BwForm f) {
    const HloType *ty = hlo_type(w->h, a->type);
    BwId type = bw_type(w, a->type, f);
    const uint8_t *data = a->data;
    size_t elem = dtype_bytes(ty->dtype), n = ty->elems ? a->n : 0;
    if (n > elem && !memcmp(data, data + elem, n - elem))
        n = elem;
    if (ty->dtype != DT_I1 && dtype_row(ty->dtype)->bits < 8)
        data = narrow(w, ty->dtype, data, n);
    bw_num(&w->key, f == BF_VHLO ? VA_TENSOR : BA_DENSE);
    bw_ref(&w->key, BW_TYPE, type);
    if (ty->dtype == DT_I1)
        put_bools(w, data, n);
    else
        bw_blob(w, &w->key, data, n);
    return attr_end(w, f);
}

BwId bw_vhlo_ints(Bw *w, int dtype, int rank, const int64_t *dims, const int64_t *v, uint32_t n) {
    uint32_t count = n;
    for (uint32_t i = 1; i < n && v[i] == v[0]; i++)
        if (i == n - 1)
            count = 1; // all equal
    size_t elem = dtype_bytes(dtype);
    uint8_t *bytes = arena_alloc(w->arena, count * elem + 1);
    for (uint32_t i = 0; i < count; i++)
        dtype_from_i64(dtype, bytes + i * elem, v[i]);
    BwId type = bw_tensor_type(w, dtype, rank, dims, BF_VHLO);
    bw_num(&w->key, VA_TENSOR);
    bw_ref(&w->key, BW_TYPE, type);
    if (dtype == DT_I1)
        put_bools(w, bytes, count);
    else
        bw_blob(w, &w->key, bytes, count * elem);
    return vhlo_end(w);
}

// array<i64: 1, 2>
static BwId dense_array(Bw *w, const HloAttr *a) {
    int dtype = a->type ? hlo_type(w->h, a->type)->dtype : DT_I64;
    size_t elem = dtype_bytes(dtype);
    if (!dtype_is_int(dtype) && dtype != DT_I1)
        bw_fail(w, "an array of %s", dtype_row(dtype)->name);
    uint8_t *bytes = arena_alloc(w->arena, a->n * elem + 1);
    for (uint32_t i = 0; i < a->n; i++)
        dtype_from_i64(dtype, bytes + i * elem, a->ints[i]);
    BwId type = bw_scalar(w, dtype, BF_BUILTIN);
    bw_num(&w->key, BA_DENSE_ARRAY);
    bw_ref(&w->key, BW_TYPE, type);
    bw_num(&w->key, a->n);
    bw_blob(w, &w->key, bytes, a->n * elem);
    return builtin_end(w);
}

// --- symbols, text, any attribute ---------------------------------------------------------------

static BwId flat_symbol(Bw *w, const char *s, size_t n) {
    BwId name = bw_builtin_str(w, s, n);
    bw_num(&w->key, BA_SYMBOL);
    bw_ref(&w->key, BW_ATTR, name);
    return builtin_end(w);
}

// "a::@b" is @a::@b.
static BwId symbol(Bw *w, const char *s) {
    const char *next = strstr(s, "::@");
    if (!next || next == s)
        return flat_symbol(w, s, strlen(s));
    uint32_t base = w->ids.n;
    BwId root = bw_builtin_str(w, s, (size_t)(next - s));
    while (next) {
        const char *part = next + 3;
        next = strstr(part, "::@");
        BwId id = flat_symbol(w, part, next ? (size_t)(next - part) : strlen(part));
        VEC_PUSH(w->arena, &w->ids, id);
    }
    bw_num(&w->key, BA_SYMBOL_NESTED);
    bw_ref(&w->key, BW_ATTR, root);
    bw_num(&w->key, w->ids.n - base);
    for (uint32_t i = base; i < w->ids.n; i++)
        bw_ref(&w->key, BW_ATTR, w->ids.at[i]);
    w->ids.n = base;
    return builtin_end(w);
}

// The dialect is the word behind '#'; everything without one is builtin's.
static BwId text(Bw *w, const char *s, BwForm f) {
    BwId id;
    if (strstr(s, ".bytecode<\"0x")) // bytes whose meaning lay in the file they came from
        bw_fail(w, "an attribute that only its own dialect understands: %.60s", s);
    if (f == BF_VHLO && bw_enum_text(w, s, &id))
        return id;
    size_t n = *s == '#' ? strcspn(s + 1, ".<") : 0;
    if (n)
        return bw_entry_text(w, BW_ATTR, s + 1, n, s);
    return bw_entry_text(w, BW_ATTR, "builtin", 7, s);
}

static BwId any(Bw *w, const HloAttr *a, BwForm f) {
    switch ((HloAttrKind)a->kind) {
    case HA_INT:
        return number_int(w, number_dtype(w, a, DT_I64), a->i, f);
    case HA_FLOAT:
        return number_float(w, number_dtype(w, a, DT_F64), a->f, f);
    case HA_BOOL:
        return f == BF_VHLO ? bw_vhlo_code(w, VA_BOOL, a->i != 0)
                            : number_int(w, DT_I1, a->i != 0, f);
    case HA_STR:
        return f == BF_VHLO ? bw_vhlo_str(w, a->s, a->n) : bw_builtin_str(w, a->s, a->n);
    case HA_SYM:
        return symbol(w, a->s);
    case HA_INTS:
        return dense_array(w, a);
    case HA_TYPE: {
        BwId type = bw_type(w, a->type, f);
        bw_num(&w->key, f == BF_VHLO ? VA_TYPE : BA_TYPE);
        bw_ref(&w->key, BW_TYPE, type);
        return attr_end(w, f);
    }
    case HA_TENSOR:
        return tensor(w, a, f);
    case HA_LIST:
        return list(w, a, f);
    case HA_DICT:
        return dict(w, a->dict, a->n, f, f);
    case HA_UNIT:
        bw_num(&w->key, BA_UNIT);
        return builtin_end(w);
    case HA_OPAQUE:
        return text(w, a->s, f);
    default:
        bw_fail(w, "an attribute of kind %d here", a->kind);
    }
}

BwId bw_attr(Bw *w, const HloAttr *a, BwForm f) {
    bw_enter(w);
    BwId id = any(w, a, f);
    bw_leave(w);
    return id;
}

// --- locations ----------------------------------------------------------------------------------

static BwId loc_unknown(Bw *w) {
    bw_num(&w->key, BA_LOC_UNKNOWN);
    return builtin_end(w);
}

static BwId loc_child(Bw *w, LocId loc) { // made before its parent
    assert(!loc || w->locs[loc]);
    return loc ? w->locs[loc] - 1 : loc_unknown(w);
}

static BwId loc_fused(Bw *w, LocId loc) {
    uint32_t base = w->ids.n;
    for (LocId at = loc; at; at = w->h->locs.at[at].b) {
        BwId id = loc_child(w, w->h->locs.at[at].a);
        VEC_PUSH(w->arena, &w->ids, id);
    }
    bw_num(&w->key, BA_LOC_FUSED);
    bw_num(&w->key, w->ids.n - base);
    for (uint32_t i = base; i < w->ids.n; i++)
        bw_ref(&w->key, BW_ATTR, w->ids.at[i]);
    w->ids.n = base;
    return builtin_end(w);
}

static BwId loc_make(Bw *w, LocId loc) {
    const HloLoc *l = &w->h->locs.at[loc];
    const char *s = w->h->strs.at[l->str];
    BwId a, b;
    switch ((HloLocKind)l->kind) {
    case HL_FILE:
        a = bw_builtin_str(w, s, strlen(s));
        bw_num(&w->key, BA_LOC_FILE);
        bw_ref(&w->key, BW_ATTR, a);
        bw_num(&w->key, l->line);
        bw_num(&w->key, l->col);
        return builtin_end(w);
    case HL_NAME:
        a = bw_builtin_str(w, s, strlen(s));
        b = loc_child(w, l->a);
        bw_num(&w->key, BA_LOC_NAME);
        bw_ref(&w->key, BW_ATTR, a);
        bw_ref(&w->key, BW_ATTR, b);
        return builtin_end(w);
    case HL_CALL:
        a = loc_child(w, l->a);
        b = loc_child(w, l->b);
        bw_num(&w->key, BA_LOC_CALL);
        bw_ref(&w->key, BW_ATTR, a);
        bw_ref(&w->key, BW_ATTR, b);
        return builtin_end(w);
    case HL_FUSED:
        return loc_fused(w, loc);
    case HL_HERE:
        return loc_child(w, l->a);
    default:
        return loc_unknown(w);
    }
}

// Children that have no attribute yet go on the stack; returns whether there were any.
static bool loc_push_children(Bw *w, LocId loc) {
    const HloLoc *l = &w->h->locs.at[loc];
    uint32_t before = w->ids.n;
    if (l->kind == HL_FUSED) {
        for (LocId at = loc; at; at = w->h->locs.at[at].b) {
            LocId kid = w->h->locs.at[at].a;
            if (kid && !w->locs[kid])
                VEC_PUSH(w->arena, &w->ids, kid);
        }
        return w->ids.n > before;
    }
    if (l->a && !w->locs[l->a])
        VEC_PUSH(w->arena, &w->ids, l->a);
    if (l->b && !w->locs[l->b])
        VEC_PUSH(w->arena, &w->ids, l->b);
    return w->ids.n > before;
}

// Call stacks nest as deep as their program, so no recursion.
BwId bw_loc(Bw *w, LocId loc) {
    if (!loc)
        return loc_unknown(w);
    uint32_t bottom = w->ids.n;
    VEC_PUSH(w->arena, &w->ids, loc);
    while (w->ids.n > bottom) {
        LocId top = w->ids.at[w->ids.n - 1];
        if (!w->locs[top] && loc_push_children(w, top))
            continue;
        w->ids.n--;
        if (!w->locs[top])
            w->locs[top] = loc_make(w, top) + 1;
    }
    return w->locs[loc] - 1;
}
