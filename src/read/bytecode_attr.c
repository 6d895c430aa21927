// SPDX-License-Identifier: Apache-2.0
// bytecode_attr.c — builtin attributes, the bytes of tensors, and locations.
//
// bc_attr gives an attribute's general form, the one used inside dictionaries and lists; vhlo_slot
// (vhlo.c) turns it into the form an op's slot wants. Locations are decoded apart from attributes
// and without recursion: a call stack of a thousand frames is an ordinary location.
#include "read/bytecode.h"

#include <stdio.h>
#include <stdlib.h>

uint32_t bc_attr_index(Bc *b, Rd *r) {
    return bc_index(r, b->nattrs, "attribute");
}

const HloAttr *bc_attr_ref(Bc *b, Rd *r) {
    return bc_attr(b, bc_attr_index(b, r));
}

static HloAttr attr_str(HloAttrKind kind, const char *s, size_t n) {
    return (HloAttr){.kind = (uint8_t)kind, .n = (uint32_t)n, .s = s};
}

// --- text ---------------------------------------------------------------------------------------

void bc_text_check(Bc *b, Rd *r, const Buf *text) {
    if (text->n > BC_MAX_TEXT)
        ctx_fail(b->ctx, OTRN_CAPACITY, (Place){.file = b->name},
                 "the text of an attribute or type passes %u bytes (at byte %zu)", BC_MAX_TEXT,
                 (size_t)(r->at - r->base));
}

HloAttr bc_text(Bc *b, Buf *text) {
    bc_spend(b, text->n);
    return attr_str(HA_OPAQUE, buf_cstr(text), text->n);
}

// An attribute that only its own dialect understands keeps its bytes as text.
static HloAttr foreign_attr(Bc *b, Rd *r, BcSpan bytes, const char *dialect) {
    Buf out = {.arena = b->arena};
    buf_printf(&out, "#%s.bytecode<\"0x", dialect);
    for (size_t i = 0; i < bytes.n; i++) {
        buf_printf(&out, "%02x", bytes.at[i]);
        bc_text_check(b, r, &out);
    }
    buf_puts(&out, "\">");
    r->at = r->end;
    return bc_text(b, &out);
}

static HloAttr text_attr(Bc *b, Rd *r) {
    size_t n = (size_t)(r->end - r->at) - 1; // entries have at least one byte
    const char *s = (const char *)rd_bytes(r, n + 1);
    if (memchr(s, 0, n + 1) != s + n)
        rd_fail(r, "the text of an attribute has no end");
    if (n == 4 && !memcmp(s, "unit", 4))
        return (HloAttr){.kind = HA_UNIT};
    if (n > UINT32_MAX)
        rd_fail(r, "the text of an attribute is too long");
    return attr_str(HA_OPAQUE, arena_strndup(b->arena, s, n), n);
}

// --- numbers ------------------------------------------------------------------------------------

// Up to 8 bits: a byte. Up to 64: the zero-extended pattern as a signed varint.
static uint64_t bc_bits(Rd *r, unsigned width) {
    uint64_t v = width <= 8 ? rd_u8(r) : (uint64_t)bc_svarint(r);
    return width < 64 ? v & (((uint64_t)1 << width) - 1) : v;
}

double bc_f64(Rd *r) {
    uint64_t bits = bc_bits(r, 64);
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static unsigned scalar_bits(const BcType *t) {
    unsigned bits = dtype_row(t->dtype)->bits;
    if (!bits && t->text && sscanf(t->text, "i%5u", &bits) != 1 &&
        sscanf(t->text, "ui%5u", &bits) != 1 && sscanf(t->text, "f%5u", &bits) != 1)
        bits = 0;
    return bits;
}

// Numbers of widths the type table does not have (i7, i128, f80) are carried as text.
static HloAttr odd_number(Bc *b, Rd *r, const BcType *t, unsigned bits) {
    if (!bits || !t->text)
        rd_fail(r, "a number of a type that has none");
    Buf out = {.arena = b->arena};
    uint32_t words = bits > 64 ? bc_count(r) : 1;
    uint64_t *word = ARENA_NEWN(b->arena, uint64_t, words);
    for (uint32_t i = 0; i < words; i++) // the lowest comes first
        word[i] = bc_bits(r, bits > 64 ? 64 : bits);
    buf_puts(&out, words ? "0x" : "0x0");
    for (uint32_t i = words; i-- > 0;) {
        buf_printf(&out, "%0*llx", bits > 64 ? 16 : 0, (unsigned long long)word[i]);
        bc_text_check(b, r, &out);
    }
    buf_printf(&out, " : %s", t->text);
    return bc_text(b, &out);
}

HloAttr bc_number(Bc *b, Rd *r) {
    const BcType *t = bc_type_ref(b, r);
    unsigned bits = scalar_bits(t);
    int cls = dtype_row(t->dtype)->cls;
    if (t->text || (cls != DC_FLOAT && !dtype_is_int(t->dtype) && cls != DC_BOOL))
        return odd_number(b, r, t, bits);
    uint64_t v = bc_bits(r, bits);
    if (cls == DC_BOOL)
        return (HloAttr){.kind = HA_BOOL, .i = v != 0};
    uint8_t bytes[8];
    le_store64(bytes, v);
    if (cls == DC_FLOAT)
        return (HloAttr){.kind = HA_FLOAT,
                         .type = t->dtype == DT_F64 ? 0 : t->id,
                         .f = dtype_to_f64(t->dtype, bytes)};
    return (HloAttr){
        .kind = HA_INT, .type = t->dtype == DT_I64 ? 0 : t->id, .i = dtype_to_i64(t->dtype, bytes)};
}

// --- lists and dictionaries ---------------------------------------------------------------------

HloAttr bc_list(Bc *b, Rd *r) {
    uint32_t n = bc_count(r);
    HloAttr *list = ARENA_NEWN(b->arena, HloAttr, n);
    for (uint32_t i = 0; i < n; i++)
        list[i] = *bc_attr_ref(b, r);
    return (HloAttr){.kind = HA_LIST, .n = n, .list = list};
}

bool bc_is_name(const HloAttr *a) {
    return (a->kind == HA_STR || a->kind == HA_SYM) && strlen(a->s) == a->n;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const HloNamed *)a)->name, ((const HloNamed *)b)->name);
}

// Sorted by name, as writers leave them; no name twice.
HloAttr bc_dict(Bc *b, Rd *r) {
    uint32_t n = bc_count(r);
    HloNamed *dict = ARENA_NEWN(b->arena, HloNamed, n);
    bool sorted = true;
    for (uint32_t i = 0; i < n; i++) {
        const HloAttr *name = bc_attr_ref(b, r);
        if (name->kind != HA_STR || strlen(name->s) != name->n)
            rd_fail(r, "a name in a dictionary is not a string");
        dict[i] = (HloNamed){name->s, *bc_attr_ref(b, r)};
        sorted &= !i || strcmp(dict[i - 1].name, name->s) < 0;
    }
    if (!sorted)
        qsort(dict, n, sizeof *dict, by_name);
    for (uint32_t i = 1; !sorted && i < n; i++)
        if (!strcmp(dict[i - 1].name, dict[i].name))
            rd_fail(r, "'%.100s' stands twice in a dictionary", dict[i].name);
    return (HloAttr){.kind = HA_DICT, .n = n, .dict = dict};
}

// --- tensors ------------------------------------------------------------------------------------

// i1 stands as one byte each, as bits from the lowest up, or as one byte for all of them.
static HloAttr tensor_bool(Bc *b, Rd *r, TypeId type, int64_t elems, BcSpan blob) {
    HloAttr out = {.kind = HA_TENSOR, .type = type, .n = 1};
    uint64_t n = (uint64_t)elems;
    bool one = blob.n == 1 && (n == 1 || blob.at[0] == 0xff || blob.at[0] == 0);
    bool packed = !one && blob.n == (n + 7) / 8 && blob.n != n;
    if (one || (!packed && blob.n == 1)) {
        uint8_t v = blob.at[0] != 0;
        out.data = arena_dup(b->arena, &v, 1);
        return out;
    }
    if ((!packed && blob.n != n) || n > UINT32_MAX)
        rd_fail(r, "%zu bytes for a tensor of %lld bools", blob.n, (long long)elems);
    uint8_t *data = arena_alloc(b->arena, n);
    for (uint64_t i = 0; i < n; i++)
        data[i] = packed ? blob.at[i / 8] >> (i % 8) & 1 : blob.at[i] != 0;
    out.n = (uint32_t)n;
    out.data = data;
    return out;
}

HloAttr bc_tensor(Bc *b, Rd *r, TypeId type, BcSpan blob) {
    const HloType *ty = hlo_type(b->h, type);
    size_t elem = ty->kind == HT_TENSOR ? dtype_bytes(ty->dtype) : 0;
    if (!elem || ty->dynamic)
        rd_fail(r, "a constant of a type that has no fixed bytes");
    if (ty->elems && ty->dtype == DT_I1)
        return tensor_bool(b, r, type, ty->elems, blob);
    size_t total = (size_t)ty->elems * elem;
    if (!total && blob.n == elem) // one value for each of no elements
        blob.n = 0;
    if (blob.n != total && !(ty->elems && blob.n == elem))
        rd_fail(r, "%zu bytes for a tensor of %zu bytes", blob.n, total);
    if (blob.n > UINT32_MAX)
        ctx_fail(b->ctx, OTRN_CAPACITY, (Place){.file = b->name},
                 "a constant of %zu bytes: the limit is 4 GiB", blob.n);
    uint8_t *data = arena_dup(b->arena, blob.at, blob.n);
    int bits = dtype_row(ty->dtype)->bits;
    for (size_t i = 0; bits < 8 && i < blob.n; i++) // one per byte: bring into host form
        if (dtype_is_float(ty->dtype))
            data[i] &= (uint8_t)((1 << bits) - 1);
        else
            data[i] = (uint8_t)dtype_to_i64(ty->dtype, &data[i]);
    return (HloAttr){.kind = HA_TENSOR, .type = type, .n = (uint32_t)blob.n, .data = data};
}

// array<i64: 1, 2>
static HloAttr dense_array(Bc *b, Rd *r) {
    const BcType *t = bc_type_ref(b, r);
    uint64_t n = bc_varint(r);
    BcSpan blob = bc_blob(r);
    size_t elem = dtype_bytes(t->dtype), total;
    if (!elem || t->text || __builtin_mul_overflow(n, elem, &total) || total != blob.n ||
        n > UINT32_MAX)
        rd_fail(r, "a dense array's length does not fit its bytes");
    if (!dtype_is_int(t->dtype) && t->dtype != DT_I1) {
        TypeId type = hlo_type_tensor(b->h, t->dtype, 1, (int64_t[]){(int64_t)n});
        return bc_tensor(b, r, type, blob);
    }
    int64_t *ints = ARENA_NEWN(b->arena, int64_t, n);
    for (uint64_t i = 0; i < n; i++)
        ints[i] = dtype_to_i64(t->dtype, blob.at + i * elem);
    TypeId type = t->dtype == DT_I64 ? 0 : t->id;
    return (HloAttr){.kind = HA_INTS, .n = (uint32_t)n, .type = type, .ints = ints};
}

// --- builtin attributes -------------------------------------------------------------------------

// @a::@b is kept as the symbol "a::@b".
static HloAttr nested_symbol(Bc *b, Rd *r) {
    const HloAttr *root = bc_attr_ref(b, r);
    Buf out = {.arena = b->arena};
    if (!bc_is_name(root))
        rd_fail(r, "a symbol's name is not a string");
    buf_puts(&out, root->s);
    uint32_t n = bc_count(r);
    for (uint32_t i = 0; i < n; i++) {
        const HloAttr *part = bc_attr_ref(b, r);
        if (part->kind != HA_SYM)
            rd_fail(r, "a nested symbol's part is not a symbol");
        buf_printf(&out, "::@%s", part->s);
        bc_text_check(b, r, &out);
    }
    bc_spend(b, out.n);
    return attr_str(HA_SYM, buf_cstr(&out), out.n);
}

static HloAttr flat_symbol(Bc *b, Rd *r) {
    HloAttr name = *bc_attr_ref(b, r);
    if (!bc_is_name(&name))
        rd_fail(r, "a symbol's name is not a string");
    name.kind = HA_SYM;
    return name;
}

static HloAttr dense_elements(Bc *b, Rd *r, BcSpan whole, bool resource) {
    TypeId type = bc_type_ref(b, r)->id;
    BcSpan blob = resource ? b->resources[bc_index(r, b->nresources, "resource")] : bc_blob(r);
    if (hlo_type(b->h, type)->kind != HT_TENSOR) // a vector, say
        return foreign_attr(b, r, whole, "builtin");
    return bc_tensor(b, r, type, blob);
}

static HloAttr builtin_attr(Bc *b, Rd *r, BcSpan whole) {
    uint64_t code = bc_varint(r);
    switch (code) {
    case 0:
        return bc_list(b, r);
    case 1:
        return bc_dict(b, r);
    case 2:
    case 3: {
        const BcSpan *s = bc_str(b, r);
        if (code == 3)
            bc_type_ref(b, r);
        return attr_str(HA_STR, (const char *)s->at, s->n);
    }
    case 4:
        return flat_symbol(b, r);
    case 5:
        return nested_symbol(b, r);
    case 6:
        return (HloAttr){.kind = HA_TYPE, .type = bc_type_ref(b, r)->id};
    case 7:
        return (HloAttr){.kind = HA_UNIT};
    case 8:
    case 9:
        return bc_number(b, r);
    case 16:
        return dense_elements(b, r, whole, true);
    case 17:
        return dense_array(b, r);
    case 18:
        return dense_elements(b, r, whole, false);
    default: // locations as values, strings in tensors, sparse tensors, distinct, affine maps
        if (code > 23)
            rd_fail(r, "builtin attribute code %llu is unknown", (unsigned long long)code);
        return foreign_attr(b, r, whole, "builtin");
    }
}

const HloAttr *bc_attr(Bc *b, uint32_t i) {
    BcAttr *a = &b->attrs[i];
    if (a->entry.state == BS_DONE) {
        bc_entry_seen(b, &a->entry);
        return &a->value;
    }
    Rd r = bc_rd(b, a->entry.bytes);
    BcOuter outer = bc_entry_begin(b, &r, &a->entry);
    const BcDialectName *dialect = &b->dialects[a->entry.dialect];
    if (!a->entry.custom) {
        a->value = text_attr(b, &r);
    } else if (dialect->known == BD_BUILTIN) {
        a->value = builtin_attr(b, &r, a->entry.bytes);
    } else if (dialect->known == BD_VHLO) {
        a->value = vhlo_attr(b, &r, i, bc_varint(&r));
    } else if (dialect->known == BD_SDY) {
        a->value = sdy_attr(b, i);
        r.at = r.end;
    } else if (dialect->known != BD_RAW || !raw_attr(b, &r, i, &a->value)) {
        a->value = foreign_attr(b, &r, a->entry.bytes, dialect->name);
    }
    bc_done(&r, "an attribute");
    bc_entry_end(b, &r, &a->entry, outer);
    return &a->value;
}

// --- locations ----------------------------------------------------------------------------------

typedef struct LocParts { // what one location says of itself; its children are on Bc.loc_stack
    uint64_t code;
    uint32_t kids; // their first place on the stack
    uint64_t line, col;
    StrId str;
} LocParts;

static StrId loc_str(Bc *b, Rd *r) {
    const HloAttr *s = bc_attr_ref(b, r);
    if (s->kind != HA_STR)
        rd_fail(r, "a name in a location is not a string");
    return hlo_str(b->h, s->s, strlen(s->s)); // a zero byte inside ends it
}

static void loc_kid(Bc *b, Rd *r) {
    uint32_t kid = bc_attr_index(b, r);
    VEC_PUSH(b->arena, &b->loc_stack, kid);
}

static LocParts loc_parse(Bc *b, Rd *r) {
    LocParts p = {.code = bc_varint(r), .kids = b->loc_stack.n};
    uint32_t n = 0;
    switch (p.code) {
    case 10: // callee, caller
        loc_kid(b, r);
        loc_kid(b, r);
        break;
    case 11: // file, line, column
        p.str = loc_str(b, r);
        p.line = bc_varint(r);
        p.col = bc_varint(r);
        break;
    case 12: // fused
    case 13: // with metadata
        for (n = bc_count(r); n; n--)
            loc_kid(b, r);
        if (p.code == 13)
            bc_attr_index(b, r);
        break;
    case 14: // name, child
        p.str = loc_str(b, r);
        loc_kid(b, r);
        break;
    case 15:
        break;
    case 22: // file and up to line, column, end line, end column
        p.str = loc_str(b, r);
        n = bc_count(r);
        for (uint32_t i = 0; i < n; i++) {
            uint64_t v = bc_varint(r);
            p.line = i == 0 ? v : p.line;
            p.col = i == 1 ? v : p.col;
        }
        break;
    default:
        rd_fail(r, "attribute code %llu is not a location", (unsigned long long)p.code);
    }
    bc_done(r, "a location");
    return p;
}

static uint32_t loc_number(uint64_t v) {
    return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

static LocId loc_make(Bc *b, const LocParts *p) {
    const uint32_t *kids = b->loc_stack.at + p->kids;
    uint32_t n = b->loc_stack.n - p->kids;
    switch (p->code) {
    case 10:
        return hlo_loc(
            b->h,
            &(HloLoc){.kind = HL_CALL, .a = b->attrs[kids[0]].loc, .b = b->attrs[kids[1]].loc});
    case 14:
        return hlo_loc(b->h, &(HloLoc){.kind = HL_NAME, .str = p->str, .a = b->attrs[kids[0]].loc});
    case 11:
    case 22:
        return hlo_loc(b->h, &(HloLoc){.kind = HL_FILE,
                                       .str = p->str,
                                       .line = loc_number(p->line),
                                       .col = loc_number(p->col)});
    default:
        break;
    }
    LocId list = 0;
    while (n--)
        list = hlo_loc(b->h, &(HloLoc){.kind = HL_FUSED, .a = b->attrs[kids[n]].loc, .b = list});
    return list ? list : hlo_loc(b->h, &(HloLoc){.kind = HL_UNKNOWN});
}

// Visits the location on top of the stack: finished when its children are, else they go on top.
static void loc_visit(Bc *b, uint32_t i) {
    BcAttr *a = &b->attrs[i];
    Rd r = bc_rd(b, a->entry.bytes);
    bool known = a->entry.custom && b->dialects[a->entry.dialect].known == BD_BUILTIN;
    LocParts p = {.code = 15, .kids = b->loc_stack.n};
    if (known)
        p = loc_parse(b, &r);
    uint32_t todo = 0;
    for (uint32_t k = p.kids; k < b->loc_stack.n; k++) {
        uint32_t kid = b->loc_stack.at[k];
        if (b->attrs[kid].loc_state == BS_BUSY || kid == i)
            rd_fail(&r, "a location contains itself");
        todo += b->attrs[kid].loc_state != BS_DONE;
    }
    if (todo) {
        a->loc_state = BS_BUSY;
        return; // the children stay on the stack; finished ones are passed over
    }
    a->loc = loc_make(b, &p);
    a->loc_state = BS_DONE;
    b->loc_stack.n = p.kids;
}

LocId bc_loc(Bc *b, uint32_t i) {
    uint32_t bottom = b->loc_stack.n;
    VEC_PUSH(b->arena, &b->loc_stack, i);
    while (b->loc_stack.n > bottom) {
        uint32_t top = b->loc_stack.at[b->loc_stack.n - 1];
        if (b->attrs[top].loc_state == BS_DONE)
            b->loc_stack.n--;
        else
            loc_visit(b, top);
    }
    return b->attrs[i].loc;
}
