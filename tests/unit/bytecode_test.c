// SPDX-License-Identifier: Apache-2.0
// bytecode_test.c — the bytecode reader against files made here, a file from JAX, and the corpus.
//
// bytecode_make.h writes containers of any version, so that each rule of the format can be kept or
// broken on purpose. When the conformance corpus lies beside the repository, its artifacts are read
// and compared with their text.
#include "read/read.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "bytecode_make.h"
#include "bytecode_sample.h"
#include "bytecode_zoo.h"
#include "graph_same.h"
#include "unit.h"

static Hlo *try_read(Ctx *ctx, Arena *a, const void *bytes, size_t n) {
    jmp_buf jb;
    memset(&ctx->err, 0, sizeof ctx->err);
    return CTX_TRY(ctx, jb) ? read_program(ctx, a, "t.mlirbc", bytes, n) : NULL;
}

static void expect_error(Ctx *ctx, const Hlo *h, otrn_status code, const char *part,
                         const char *name) {
    expect(!h && ctx->err.code == code && strstr(ctx->err.text, part), name,
           h ? "was accepted" : ctx->err.text);
}

static void test_versions(Ctx *ctx, Arena *a) {
    for (unsigned version = 0; version <= 6; version++) {
        char name[40];
        snprintf(name, sizeof name, "version-%u", version);
        Maker m = maker(a, version);
        Buf file = add_program(&m, -1);
        Hlo *h = try_read(ctx, a, file.at, file.n);
        if (!h) {
            expect(false, name, ctx->err.text);
            continue;
        }
        const HloFunc *f = hlo_func_find(h, "main");
        bool ok = f && f->body && f->nargs == 1 && f->nresults == 1 && !f->is_private;
        const HloRegion *r = ok ? &h->regions.at[f->body] : NULL;
        ok = ok && r->ops.n == 3;
        const HloOp *constant = ok ? hlo_at(h, r->ops.at[0]) : NULL;
        const HloOp *add = ok ? hlo_at(h, r->ops.at[1]) : NULL;
        ok = ok && constant->code == HLO_CONSTANT && add->code == HLO_ADD &&
             hlo_operand(h, add, 0) == r->args && hlo_operand(h, add, 1) == constant->results &&
             hlo_at(h, r->ops.at[2])->code == HLO_RETURN;
        const HloAttr *value = ok ? hlo_attr(constant, AK_VALUE) : NULL;
        ok = ok && value && value->kind == HA_TENSOR && value->n == 4 &&
             hlo_tensor_is_splat(h, value);
        Place place = hlo_place(h, ok ? add->loc : 0);
        ok = ok && place.line == 7 && place.col == 3 && !strcmp(place.file, "model.py");
        expect(ok, name, "the graph is not the one written");
    }
}

static void test_every_cut_and_byte(Ctx *ctx, Arena *a) {
    Maker m = maker(a, 6);
    Buf file = add_program(&m, -1);
    bool ok = true;
    for (size_t n = 0; n < file.n; n++) {
        uint8_t *exact = malloc(n ? n : 1); // of this size, so that an overrun is seen
        memcpy(exact, file.at, n);
        jmp_buf jb;
        if (CTX_TRY(ctx, jb)) {
            read_bytecode(ctx, a, "cut", exact, n);
            ok = false;
        }
        free(exact);
    }
    expect(ok, "truncated", "a cut file was accepted");
    unsigned accepted = 0;
    for (size_t i = 0; i < file.n * 8; i++) {
        file.at[i / 8] ^= (uint8_t)(1 << i % 8);
        accepted += try_read(ctx, a, file.at, file.n) != NULL;
        file.at[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    expect(accepted < file.n * 4, "flipped-bits", "most damaged files were accepted");
}

// --- attributes ---------------------------------------------------------------------------------

// A program of one op with attributes (and the function's return), for version 6 records.
static Hlo *one_op(Ctx *ctx, Arena *a, Maker *m, const Base *b, const char *op, Buf record) {
    unsigned name = add_op_name(m, VHLO, op), props = add_props(m, record);
    Buf body = {.arena = a};
    put_op(m, &body, name, b->loc, (int)props, 0x06);
    put_list(&body, 1, &b->vec);
    put_list(&body, 1, (unsigned[]){0});
    put_return(m, b, &body, 1);
    Buf file = program(m, b, 1, 2, &body, -1);
    return try_read(ctx, a, file.at, file.n);
}

static const HloOp *first_op(const Hlo *h) {
    return hlo_at(h, h->regions.at[h->funcs.at[0].body].ops.at[0]);
}

static void test_splat_dims(Ctx *ctx, Arena *a) {
    Maker m = maker(a, 6);
    Base b = base(&m);
    unsigned i64 = TYPE(&m, VHLO, 14), three = TYPE(&m, VHLO, 20, 1, zig(3), i64);
    unsigned zero = TYPE(&m, VHLO, 20, 1, zig(0), i64);
    int64_t one = 1, list[] = {4, -5, 6};
    unsigned splat = add_tensor(&m, three, &one, 8), full = add_tensor(&m, three, list, 24);
    unsigned none = add_tensor(&m, zero, NULL, 0);
    Hlo *h = one_op(ctx, a, &m, &b, "slice_v1", VARINTS(&m, full, none, splat));
    if (!h) {
        expect(false, "dimension-lists", ctx->err.text);
        return;
    }
    uint32_t n1, n2, n3;
    const int64_t *limits = hlo_ints(first_op(h), AK_LIMIT_INDICES, &n1);
    const HloAttr *starts = hlo_attr(first_op(h), AK_START_INDICES);
    hlo_ints(first_op(h), AK_START_INDICES, &n2);
    const int64_t *strides = hlo_ints(first_op(h), AK_STRIDES, &n3);
    expect(n1 == 3 && limits[1] == -5 && n2 == 0 && starts->kind == HA_INTS && n3 == 3 &&
               strides[0] == 1 && strides[2] == 1,
           "dimension-lists", "limits, starts or strides are wrong");
}

static bool bools_are(const Hlo *h, const char *want) {
    const HloAttr *v = hlo_attr(first_op(h), AK_VALUE);
    uint8_t out[64];
    hlo_tensor_expand(h, v, out);
    for (size_t i = 0; want[i]; i++)
        if (out[i] != want[i] - '0')
            return false;
    return true;
}

static void test_bools(Ctx *ctx, Arena *a) {
    static const struct {
        unsigned n;
        uint8_t bytes[10];
        size_t size;
        const char *want;
    } cases[] = {
        {1, {1}, 1, "1"},
        {1, {0}, 1, "0"},
        {4, {0xff}, 1, "1111"},
        {4, {0x00}, 1, "0000"},
        {4, {0x05}, 1, "1010"},
        {4, {1, 0, 0, 1}, 4, "1001"},
        {9, {0x81, 0x01}, 2, "100000011"},
        {9, {0xff}, 1, "111111111"},
        {20, {0}, 1, "00000000000000000000"},
        {2, {0, 1, 1}, 3, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[40];
        snprintf(name, sizeof name, "bools-%zu", i);
        Maker m = maker(a, 6);
        Base b = base(&m);
        unsigned i1 = TYPE(&m, VHLO, 0), t = TYPE(&m, VHLO, 20, 1, zig(cases[i].n), i1);
        unsigned v = add_tensor(&m, t, cases[i].bytes, cases[i].size);
        Hlo *h = one_op(ctx, a, &m, &b, "constant_v1", VARINTS(&m, v));
        if (cases[i].want)
            expect(h && bools_are(h, cases[i].want), name, h ? "wrong values" : ctx->err.text);
        else
            expect_error(ctx, h, OTRN_PARSE, "bools", name);
    }
}

static void test_kinds(Ctx *ctx, Arena *a) {
    Maker m = maker(a, 6);
    Base b = base(&m);
    unsigned i32 = TYPE(&m, VHLO, 13);
    unsigned minus = ATTR(&m, VHLO, 9, i32, zig((int64_t)(uint32_t)-3)),
             plus = ATTR(&m, VHLO, 9, i32, zig(7));
    Hlo *h = one_op(ctx, a, &m, &b, "reduce_precision_v1", VARINTS(&m, minus, plus));
    expect(h && hlo_int(first_op(h), AK_EXPONENT_BITS, 0) == -3 &&
               hlo_int(first_op(h), AK_MANTISSA_BITS, 0) == 7,
           "negative-i32", h ? "wrong value" : ctx->err.text);

    m = maker(a, 6);
    b = base(&m);
    unsigned text = add_string_attr(&m, VHLO, "no");
    h = one_op(ctx, a, &m, &b, "reduce_precision_v1", VARINTS(&m, text, text));
    expect_error(ctx, h, OTRN_PARSE, "exponent_bits", "wrong-kind");

    m = maker(a, 6);
    b = base(&m);
    unsigned dir = ATTR(&m, VHLO, 3, 5), kind = ATTR(&m, VHLO, 4, 0), bad = ATTR(&m, VHLO, 3, 6);
    h = one_op(ctx, a, &m, &b, "compare_v1", VARINTS(&m, kind, dir));
    expect(h && hlo_int(first_op(h), AK_COMPARISON_DIRECTION, -1) == CMP_LT &&
               hlo_int(first_op(h), AK_COMPARE_TYPE, -1) == CMPT_NOTYPE,
           "enums", h ? "wrong value" : ctx->err.text);
    m = maker(a, 6);
    b = base(&m);
    kind = ATTR(&m, VHLO, 4, 0), bad = ATTR(&m, VHLO, 3, 6);
    h = one_op(ctx, a, &m, &b, "compare_v1", VARINTS(&m, kind, bad));
    expect_error(ctx, h, OTRN_PARSE, "comparison_direction 6", "enum-range");
}

static void test_upgrade(Ctx *ctx, Arena *a) {
    Maker m = maker(a, 6);
    Base b = base(&m);
    Hlo *h = one_op(ctx, a, &m, &b, "tanh_v1", (Buf){.arena = a});
    expect(h && first_op(h)->code == HLO_TANH && !hlo_attr(first_op(h), AK_RESULT_ACCURACY),
           "upgrade-tanh", h ? "wrong op" : ctx->err.text);
    m = maker(a, 6);
    b = base(&m);
    unsigned mode = ATTR(&m, VHLO, 19, 1);
    unsigned accuracy = ATTR(&m, VHLO, 20, 0, 0, zig(2), mode);
    h = one_op(ctx, a, &m, &b, "tanh_v2", VARINTS(&m, accuracy));
    const HloAttr *v = h ? hlo_attr(first_op(h), AK_RESULT_ACCURACY) : NULL;
    expect(v && v->kind == HA_DICT && v->n == 4 && v->dict[1].value.i == 1 &&
               v->dict[3].value.i == 2,
           "accuracy", h ? "wrong value" : ctx->err.text);
    m = maker(a, 6);
    b = base(&m);
    h = one_op(ctx, a, &m, &b, "tanh_v3", (Buf){.arena = a});
    expect_error(ctx, h, OTRN_UNSUPPORTED, "vhlo.tanh_v3", "newer-op");
    expect(ctx->err.line == 7 && !strcmp(ctx->err.file, "model.py"), "newer-op-place",
           ctx->err.file);
    m = maker(a, 6);
    b = base(&m);
    h = one_op(ctx, a, &m, &b, "frobnicate_v1", (Buf){.arena = a});
    expect_error(ctx, h, OTRN_UNSUPPORTED, "vhlo.frobnicate_v1", "unknown-op");
}

// Attributes of the module, which keep the builtin dialect's forms.
static const HloAttr *module_attr(Ctx *ctx, Arena *a, Maker *m, unsigned value, const char *name) {
    unsigned key = add_string_attr(m, BUILTIN, "k");
    unsigned dict = ATTR(m, BUILTIN, 1, 1, key, value);
    Buf file = add_program(m, (int)dict);
    Hlo *h = try_read(ctx, a, file.at, file.n);
    if (!h || h->nextra != 1)
        expect(false, name, h ? "no attribute" : ctx->err.text);
    return h && h->nextra == 1 ? &h->extra[0].value : NULL;
}

static void expect_text(const HloAttr *v, HloAttrKind kind, const char *want, const char *name) {
    if (v)
        expect(v->kind == kind && !strcmp(v->s, want), name, v->kind == kind ? v->s : "wrong kind");
}

static void test_builtin_attrs(Ctx *ctx, Arena *a) {
    Maker m = maker(a, 6);
    unsigned i64 = TYPE(&m, BUILTIN, 0, 64 << 2);
    Buf array = VARINTS(&m, 17, i64, 2, 16);
    put_u64(&array, 5), put_u64(&array, (uint64_t)-1);
    const HloAttr *v = module_attr(ctx, a, &m, add_attr(&m, BUILTIN, array), "dense-array");
    expect(v && v->kind == HA_INTS && v->n == 2 && v->ints[1] == -1, "dense-array", "wrong value");

    m = maker(a, 6);
    unsigned i128 = TYPE(&m, BUILTIN, 0, 128 << 2),
             big = ATTR(&m, BUILTIN, 8, i128, 2, zig(1), zig(2));
    v = module_attr(ctx, a, &m, big, "wide-integer");
    expect_text(v, HA_OPAQUE, "0x00000000000000020000000000000001 : i128", "wide-integer");

    m = maker(a, 6);
    unsigned f = TYPE(&m, BUILTIN, 5), t = TYPE(&m, BUILTIN, 13, 1, zig(2), f);
    put_varint(&m.resources,
               add_str(&m, "blob")); // key, size, kind; data: alignment, size, padding
    Buf blob = VARINTS(&m, 1, 8);
    put_u32(&blob, 0x3f800000), put_u32(&blob, 0x40000000);
    put_varint(&m.resources, blob.n), put_u8(&m.resources, 0);
    buf_put(&m.resource_data, blob.at, blob.n);
    m.nresources = 1;
    v = module_attr(ctx, a, &m, ATTR(&m, BUILTIN, 16, t, 0), "resource");
    expect(v && v->kind == HA_TENSOR && v->n == 8 && ((const float *)v->data)[1] == 2, "resource",
           "wrong value");

    m = maker(a, 6);
    v = module_attr(ctx, a, &m, add_text(&m, false, "affine_map<(d0) -> (d0)>"), "text-attribute");
    expect_text(v, HA_OPAQUE, "affine_map<(d0) -> (d0)>", "text-attribute");

    m = maker(a, 6);
    unsigned type = add_text(&m, true, "tensor<2x?xf8E4M3FN>");
    v = module_attr(ctx, a, &m, ATTR(&m, BUILTIN, 6, type), "text-type");
    expect(v && v->kind == HA_TYPE, "text-type", "wrong kind");

    m = maker(a, 6);
    unsigned root = add_string_attr(&m, BUILTIN, "a"), leaf = add_string_attr(&m, BUILTIN, "b");
    unsigned inner = ATTR(&m, BUILTIN, 4, leaf);
    v = module_attr(ctx, a, &m, ATTR(&m, BUILTIN, 5, root, 1, inner), "nested-symbol");
    expect_text(v, HA_SYM, "a::@b", "nested-symbol");
}

static void test_sdy_attrs(Ctx *ctx, Arena *a) {
    Maker m = maker(a, 6);
    unsigned mesh = ATTR(&m, BUILTIN, 4, add_string_attr(&m, BUILTIN, "mesh"));
    unsigned sub = ATTR(&m, SDY, 3, zig(2), zig(4));
    unsigned x = ATTR(&m, SDY, 4, add_str(&m, "x"), 0),
             y = ATTR(&m, SDY, 4, add_str(&m, "y"), sub << 1 | 1);
    Buf open = VARINTS(&m, 5, 2, x, y); // two axes, open, priority 1
    put_u8(&open, 0), put_varint(&open, 1 << 1 | 1);
    Buf closed = VARINTS(&m, 5, 0);
    put_u8(&closed, 1), put_varint(&closed, 0);
    unsigned d0 = add_attr(&m, SDY, open), d1 = add_attr(&m, SDY, closed);
    unsigned sharding = ATTR(&m, SDY, 17, mesh, 2, d0, d1, 0, 1, x, zig(1));
    unsigned list = ATTR(&m, SDY, 7, 1, sharding);
    const HloAttr *v = module_attr(ctx, a, &m, list, "sdy-sharding");
    expect_text(
        v, HA_OPAQUE,
        "#sdy.sharding_per_value<[<@mesh, [{\"x\", \"y\":(2)4, ?}p1, {}], unreduced=max{\"x\"}>]>",
        "sdy-sharding");
}

static void test_zoo(Ctx *ctx, Arena *a) {
    Zoo z = {0};
    Buf file = zoo_file(a, &z);
    Hlo *h = try_read(ctx, a, file.at, file.n);
    if (!h || h->nextra != 1 || h->extra[0].value.n != z.n) {
        expect(false, "zoo", h ? "wrong count" : ctx->err.text);
        return;
    }
    for (unsigned i = 0; i < z.n; i++) {
        const HloAttr *v = &h->extra[0].value.list[i];
        bool has_text = v->kind == HA_OPAQUE || v->kind == HA_STR;
        const char *text = v->kind == HA_TYPE ? hlo_type(h, v->type)->text : has_text ? v->s : "";
        char name[40];
        snprintf(name, sizeof name, "zoo-%u", i);
        expect(!z.want[i] || (text && !strcmp(text, z.want[i])), name, text ? text : "no text");
    }
}

// --- what must be refused -----------------------------------------------------------------------

static void test_cycles(Ctx *ctx, Arena *a) {
    Maker m = maker(a, 6);
    unsigned self = ATTR(&m, BUILTIN, 0, 1, 0);
    unsigned key = add_string_attr(&m, BUILTIN, "k");
    Buf file = add_program(&m, (int)ATTR(&m, BUILTIN, 1, 1, key, self));
    expect_error(ctx, try_read(ctx, a, file.at, file.n), OTRN_PARSE, "contains itself",
                 "attribute-cycle");

    m = maker(a, 6);
    unsigned tuple = TYPE(&m, VHLO, 23, 2, 1, 0); // the two members: type 1 is a tuple of type 0
    TYPE(&m, VHLO, 23, 1, tuple);
    unsigned value = ATTR(&m, VHLO, 17, tuple);
    key = add_string_attr(&m, BUILTIN, "k");
    file = add_program(&m, (int)ATTR(&m, BUILTIN, 1, 1, key, value));
    expect_error(ctx, try_read(ctx, a, file.at, file.n), OTRN_PARSE, "contains itself",
                 "type-cycle");

    m = maker(a, 6);
    Base b = base(&m);
    unsigned first = m.nattrs;
    ATTR(&m, BUILTIN, 12, 1, first + 1);
    ATTR(&m, BUILTIN, 10, first, b.loc);
    b.loc = first;
    Buf body = {.arena = a};
    put_return(&m, &b, &body, 0);
    file = program(&m, &b, 0, 1, &body, -1);
    expect_error(ctx, try_read(ctx, a, file.at, file.n), OTRN_PARSE, "contains itself",
                 "location-cycle");
}

static void test_depth(Ctx *ctx, Arena *a) {
    enum { LOC_DEPTH = 200000, ATTR_DEPTH = 5000 };
    Maker m = maker(a, 6);
    Base b = base(&m);
    unsigned name = add_string_attr(&m, BUILTIN, "f"), top = m.nattrs;
    for (unsigned i = 0; i < LOC_DEPTH; i++) // each one's child comes behind it
        ATTR(&m, BUILTIN, 14, name, i + 1 < LOC_DEPTH ? top + i + 1 : b.loc);
    b.loc = top;
    Buf body = {.arena = a};
    put_return(&m, &b, &body, 0);
    Buf file = program(&m, &b, 0, 1, &body, -1);
    Hlo *h = try_read(ctx, a, file.at, file.n);
    Place place = h ? hlo_place(h, first_op(h)->loc) : NO_PLACE;
    expect(h && place.line == 7, "deep-locations", h ? "the place is lost" : ctx->err.text);

    m = maker(a, 6);
    for (unsigned i = 0; i < ATTR_DEPTH; i++)
        ATTR(&m, BUILTIN, 0, 1, i + 1);
    unsigned key = add_string_attr(&m, BUILTIN, "k");
    file = add_program(&m, (int)ATTR(&m, BUILTIN, 1, 1, key, 0));
    expect_error(ctx, try_read(ctx, a, file.at, file.n), OTRN_PARSE, "limit", "deep-attribute");

    m = maker(a,
              6); // the same from the leaf up: every attribute is asked for by the dictionary first
    Buf dict = VARINTS(&m, 1, ATTR_DEPTH);
    ATTR(&m, BUILTIN, 7);
    for (unsigned i = 1; i <= ATTR_DEPTH; i++)
        ATTR(&m, BUILTIN, 0, 1, i - 1);
    key = add_string_attr(&m, BUILTIN, "k");
    for (unsigned i = 0; i < ATTR_DEPTH; i++)
        put_varint(&dict, key), put_varint(&dict, i);
    file = add_program(&m, (int)add_attr(&m, BUILTIN, dict));
    expect_error(ctx, try_read(ctx, a, file.at, file.n), OTRN_PARSE, "limit", "high-attribute");
}

static void test_bombs(Ctx *ctx, Arena *a) {
    Maker m = maker(a, 6); // text that doubles with every level
    unsigned axis = ATTR(&m, SDY, 4, add_str(&m, "x"), 0), list = ATTR(&m, SDY, 11, 2, axis, axis);
    for (int i = 0; i < 60; i++)
        list = ATTR(&m, SDY, 12, 2, list, list);
    unsigned key = add_string_attr(&m, BUILTIN, "k");
    Buf file = add_program(&m, (int)ATTR(&m, BUILTIN, 1, 1, key, list));
    expect_error(ctx, try_read(ctx, a, file.at, file.n), OTRN_CAPACITY, "bytes", "text-bomb");

    m = maker(a, 6); // a list of 2^31 ones
    Base b = base(&m);
    unsigned i64 = TYPE(&m, VHLO, 14), many = TYPE(&m, VHLO, 20, 1, zig(1u << 31), i64);
    int64_t one = 1;
    unsigned splat = add_tensor(&m, many, &one, 8);
    Hlo *h = one_op(ctx, a, &m, &b, "transpose_v1", VARINTS(&m, splat));
    expect_error(ctx, h, OTRN_CAPACITY, "grow", "splat-bomb");

    m = maker(a, 6); // regions inside regions
    b = base(&m);
    unsigned nest = add_op_name(&m, VHLO, "case_v1");
    Buf body = {.arena = a};
    for (int i = 0; i < 5000; i++) {
        put_op(&m, &body, nest, b.loc, -1, 0x10);
        put_varint(&body, 1 << 1);
        put_block(&m, &body, 0, 1, 0, 0, 0);
    }
    put_return(&m, &b, &body, 0);
    file = program(&m, &b, 0, 1, &body, -1);
    expect_error(ctx, try_read(ctx, a, file.at, file.n), OTRN_PARSE, "limit", "deep-regions");
}

static void test_versions_refused(Ctx *ctx, Arena *a) {
    Maker m = maker(a, 7);
    Buf file = add_program(&m, -1);
    expect_error(ctx, try_read(ctx, a, file.at, file.n), OTRN_VERSION, "bytecode version 7",
                 "newer-bytecode");
    m = maker(a, 6);
    m.producer = "StableHLO_v2.0.0";
    file = add_program(&m, -1);
    expect_error(ctx, try_read(ctx, a, file.at, file.n), OTRN_VERSION, "version 2",
                 "newer-stablehlo");
    expect(strstr(ctx->err.hint, "1.20"), "newer-stablehlo-hint", ctx->err.hint);
}

// --- value numbers and regions ------------------------------------------------------------------

// %1 = case(%0) ({ add(%0, %0) -> number 2; return number `inner` }) with or without the outside
// visible.
static Hlo *scoped(Ctx *ctx, Arena *a, bool isolated, unsigned inner_number) {
    Maker m = maker(a, 6);
    Base b = base(&m);
    unsigned nest = add_op_name(&m, VHLO, "case_v1");
    Buf body = {.arena = a}, region = {.arena = a};
    put_block(&m, &region, 2, 3, 0, 0, 0);
    for (unsigned i = 0; i < 2; i++) {
        put_op(&m, &region, b.constant, b.loc, (int)b.const_props, 0x02);
        put_list(&region, 1, &b.vec);
    }
    put_return(&m, &b, &region, inner_number);
    put_op(&m, &body, nest, b.loc, -1, 0x16);
    put_list(&body, 1, &b.vec);
    put_list(&body, 1, (unsigned[]){0});
    put_varint(&body, 1 << 1 | isolated);
    if (isolated)
        put_section(&body, 4, &region);
    else
        buf_put(&body, region.at, region.n);
    put_return(&m, &b, &body, 1);
    Buf file = program(&m, &b, 1, 2, &body, -1);
    return try_read(ctx, a, file.at, file.n);
}

static ValueId inner_value(const Hlo *h, uint32_t *index) { // what the inner return returns
    const HloRegion *r = hlo_op_region(h, first_op(h), 0);
    ValueId v = hlo_operand(h, hlo_at(h, r->ops.at[r->ops.n - 1]), 0);
    *index = 99;
    for (uint32_t i = 0; i < r->ops.n; i++)
        if (h->values.at[v].def == r->ops.at[i])
            *index = i;
    return v;
}

// How the writer's memory ordered uses is passed over, for one value and for several.
static void test_use_orders(Ctx *ctx, Arena *a) {
    Maker m = maker(a, 6);
    Base b = base(&m);
    unsigned barrier = add_op_name(&m, VHLO, "optimization_barrier_v1");
    Buf body = {.arena = a};
    put_op(&m, &body, b.constant, b.loc, (int)b.const_props, 0x22);
    put_list(&body, 1, &b.vec);
    Buf one = VARINTS(&m, 2 << 1, 1, 0); // two uses, a plain permutation
    buf_put(&body, one.at, one.n);
    put_op(&m, &body, barrier, b.loc, -1, 0x26);
    put_list(&body, 2, (unsigned[]){b.vec, b.vec});
    put_list(&body, 2, (unsigned[]){0, 1});
    Buf several = VARINTS(&m, 1, 1, 2 << 1 | 1, 0, 1); // one of two values, value 1: one pair
    buf_put(&body, several.at, several.n);
    put_return(&m, &b, &body, 3);
    Buf file = program(&m, &b, 3, 3, &body, -1);
    Hlo *h = try_read(ctx, a, file.at, file.n);
    const HloRegion *r = h ? &h->regions.at[h->funcs.at[0].body] : NULL;
    expect(h && hlo_operand(h, hlo_at(h, r->ops.at[2]), 0) == hlo_at(h, r->ops.at[1])->results + 1,
           "use-orders", h ? "wrong value" : ctx->err.text);
}

static void test_scopes(Ctx *ctx, Arena *a) {
    uint32_t index;
    Hlo *h = scoped(ctx, a, false, 3); // 0, 1: outside (argument, the case); 2, 3: the constants
    expect(h && (inner_value(h, &index), index == 1), "scope-open",
           h ? "wrong value" : ctx->err.text);
    h = scoped(ctx, a, false, 0);
    expect(h && inner_value(h, &index) == h->regions.at[h->funcs.at[0].body].args, "scope-capture",
           h ? "wrong value" : ctx->err.text);
    h = scoped(ctx, a, true, 1);
    expect(h && (inner_value(h, &index), index == 1), "scope-isolated",
           h ? "wrong value" : ctx->err.text);
    h = scoped(ctx, a, true, 2);
    expect_error(ctx, h, OTRN_PARSE, "before its definition", "scope-hidden");
    h = scoped(ctx, a, false, 1); // its own result
    expect_error(ctx, h, OTRN_PARSE, "before its definition", "scope-early");
}

// --- the program from JAX -----------------------------------------------------------------------

static void test_sample(Ctx *ctx, Arena *a) {
    Hlo *h = try_read(ctx, a, sample, sizeof sample);
    if (!h) {
        expect(false, "sample", ctx->err.text);
        return;
    }
    const HloFunc *f = hlo_func_find(h, "main");
    const HloNamed *donor =
        f ? hlo_named_find(f->arg_attrs[0], f->narg_attrs[0], "jax.buffer_donor") : NULL;
    expect(!strcmp(h->name, "jit_step") && donor && donor->value.kind == HA_BOOL &&
               donor->value.i == 1 && f->narg_attrs[1] == 0,
           "sample-donation", "the module's name or the donation is lost");
    const HloNamed *info = hlo_named_find(f->res_attrs[0], f->nres_attrs[0], "jax.result_info");
    expect(info && info->value.kind == HA_STR && !strcmp(info->value.s, "result"), "sample-result",
           "the result's attribute is lost");
    const HloNamed *n = hlo_named_find(h->extra, h->nextra, "mhlo.num_partitions");
    const HloNamed *meshes = hlo_named_find(h->extra, h->nextra, "sdy.meshes");
    expect(n && n->value.kind == HA_INT && n->value.i == 2 && meshes &&
               meshes->value.kind == HA_DICT &&
               !strcmp(meshes->value.dict[0].value.s, "#sdy.mesh<[\"x\"=2]>"),
           "sample-module", "a module attribute is lost");
    unsigned seen[HLO_OPCODE_COUNT] = {0};
    const HloOp *constraint = NULL, *branch = NULL;
    for (OpId id = 1; id < h->ops.n; id++) {
        seen[hlo_at(h, id)->code]++;
        if (hlo_at(h, id)->code == HLO_SDY_SHARDING_CONSTRAINT)
            constraint = hlo_at(h, id);
        if (hlo_at(h, id)->code == HLO_CASE)
            branch = hlo_at(h, id);
    }
    expect(seen[HLO_WHILE] == 1 && seen[HLO_CASE] == 1 && seen[HLO_COMPARE] == 2 &&
               seen[HLO_RETURN] == 5,
           "sample-ops", "the ops are not those of the program");
    const HloNamed *sharding =
        constraint ? hlo_named_find(constraint->extra, constraint->nextra, "sharding") : NULL;
    expect(sharding && !strcmp(sharding->value.s, "#sdy.sharding<@mesh, [{\"x\"}]>"),
           "sample-sharding", "the sharding is lost");
    Place at = branch ? hlo_place(h, branch->loc) : NO_PLACE;
    expect(branch && branch->nregions == 2 && at.line == 5 && !strcmp(at.file, "model.py") &&
               !strcmp(hlo_loc_name(h, branch->loc), "jit(step)/cond"),
           "sample-place", "the branch is not where Python has it");
}

// --- the corpus: every artifact against its text ------------------------------------------------

// The comparison itself must be able to fail.
static void test_comparison(Ctx *ctx, Arena *a) {
    Pair p = {.x = try_read(ctx, a, sample, sizeof sample)};
    Hlo *y = try_read(ctx, a, sample, sizeof sample);
    p.y = y;
    if (!p.x || !y)
        return;
    expect(graph_same(&p, a), "compare-equal", p.why);
    Buf text = {.arena = a};
    hlo_print(p.x, &text, true);
    p.y = try_read(ctx, a, text.at, text.n);
    expect(p.y && graph_same(&p, a), "sample-print", p.y ? p.why : ctx->err.text);
    p.y = y;
    for (OpId id = 1; id < y->ops.n; id++)
        if (hlo_at(y, id)->code == HLO_COMPARE)
            hlo_attr_slot(y, id, AK_COMPARISON_DIRECTION)->i = CMP_NE;
    expect(!graph_same(&p, a) && strstr(p.why, "comparison_direction"), "compare-attribute", p.why);
    p.y = y = try_read(ctx, a, sample, sizeof sample);
    p.why[0] = 0;
    for (OpId id = 1; id < y->ops.n; id++)
        if (hlo_at(y, id)->code == HLO_ADD)
            y->operands.at[hlo_at(y, id)->operands] = hlo_operand(y, hlo_at(y, id), 1);
    expect(!graph_same(&p, a) && strstr(p.why, "operand"), "compare-operand", p.why);
}

static Hlo *try_file(Ctx *ctx, Arena *a, const char *path) {
    jmp_buf jb;
    memset(&ctx->err, 0, sizeof ctx->err);
    if (!CTX_TRY(ctx, jb))
        return NULL;
    size_t n;
    const uint8_t *bytes = file_read(ctx, a, path, &n);
    return read_program(ctx, a, path, bytes, n);
}

static void corpus_file(Ctx *ctx, const char *dir, const char *name) {
    char path[600], label[300];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    snprintf(label, sizeof label, "corpus/%s", name);
    Arena a;
    arena_init(&a, ctx);
    Pair p = {.x = try_file(ctx, &a, path)};
    if (strstr(name, "future")) {
        expect_error(ctx, p.x, OTRN_VERSION, "version 2", label);
    } else if (!p.x) {
        expect(false, label, ctx->err.text);
    } else {
        path[strlen(path) - 3] = 0; // without .bc: its text
        p.y = try_file(ctx, &a, path);
        bool same = p.y && graph_same(&p, &a);
        expect(same, label, p.y ? p.why : ctx->err.text);
    }
    arena_fini(&a);
}

static void test_corpus(Ctx *ctx) {
    const char *dir = "../shared/conformance/vhlo";
    DIR *d = opendir(dir);
    if (!d) {
        printf("skipped corpus: %s is not there\n", dir);
        return;
    }
    for (struct dirent *e; (e = readdir(d));)
        if (strlen(e->d_name) > 3 && !strcmp(e->d_name + strlen(e->d_name) - 3, ".bc"))
            corpus_file(ctx, dir, e->d_name);
    closedir(d);
}

// With a path: writes the zoo there, a seed for bytecode_fuzz.c.
static void write_zoo(Ctx *ctx, const char *path) {
    Arena a;
    jmp_buf jb;
    arena_init(&a, ctx);
    Buf file = zoo_file(&a, &(Zoo){0});
    if (CTX_TRY(ctx, jb))
        file_write(ctx, path, file.at, file.n);
    else
        expect(false, path, ctx->err.text);
    arena_fini(&a);
}

int main(int argc, char **argv) {
    static void (*const tests[])(Ctx *, Arena *) = {
        test_versions,
        test_every_cut_and_byte,
        test_splat_dims,
        test_bools,
        test_kinds,
        test_upgrade,
        test_builtin_attrs,
        test_sdy_attrs,
        test_zoo,
        test_cycles,
        test_depth,
        test_bombs,
        test_versions_refused,
        test_scopes,
        test_use_orders,
        test_sample,
        test_comparison,
    };
    Ctx ctx = {0};
    Arena a;
    if (argc > 1)
        write_zoo(&ctx, argv[1]);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        arena_init(&a, &ctx);
        tests[i](&ctx, &a);
        arena_fini(&a);
    }
    test_corpus(&ctx);
    return failures != 0;
}
