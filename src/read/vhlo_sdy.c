// SPDX-License-Identifier: Apache-2.0
// vhlo_sdy.c — attributes that speak of meshes and shardings, carried along as their MLIR text.
//
// Shardy's attributes and VHLO's own mesh attributes are small trees. Inside each other they print
// without their prefix (<@mesh, [{"x"}]>), alone with it (#sdy.sharding<@mesh, [{"x"}]>).
#include "read/bytecode.h"

enum {
    SDY_MANUAL_AXES,
    SDY_MESH_AXIS,
    SDY_MESH,
    SDY_SUB_AXIS,
    SDY_AXIS_REF,
    SDY_DIM_SHARDING,
    SDY_SHARDING,
    SDY_PER_VALUE,
    SDY_DIM_MAPPING,
    SDY_TENSOR_MAPPING,
    SDY_RULE,
    SDY_AXIS_LIST,
    SDY_AXIS_LISTS,
    SDY_ALL_TO_ALL,
    SDY_ALL_TO_ALLS,
    SDY_SHARDING_2, // with unreduced axes
    SDY_PER_VALUE_2,
    SDY_SHARDING_3, // and how they reduce
    SDY_CODES
};

static const char *const sdy_names[SDY_CODES] = {
    "manual_axes",
    "mesh_axis",
    "mesh",
    "sub_axis_info",
    "axis_ref",
    "dimension_sharding",
    "sharding",
    "sharding_per_value",
    "dim_mapping",
    "tensor_mapping",
    "op_sharding_rule",
    "axis_ref_list",
    "list_of_axis_ref_lists",
    "all_to_all_param",
    "all_to_all_param_list",
    "sharding",
    "sharding_per_value",
    "sharding",
};

static void print_attr(Bc *b, Rd *r, Buf *out);

static void print_string(Buf *out, const char *s, size_t n) {
    buf_puts(out, "\"");
    for (size_t i = 0; i < n; i++) {
        uint8_t c = (uint8_t)s[i];
        if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\')
            buf_printf(out, "\\%02X", c);
        else
            buf_put(out, &c, 1);
    }
    buf_puts(out, "\"");
}

// @name, or @"a name" when it is not made of letters, digits and _ . $ alone.
static void print_symbol(Buf *out, const char *s) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
                                "0123456789.$:@"; // "::@" joins a path
    buf_puts(out, "@");
    if (*s && !strchr("0123456789.$:@", *s) && !s[strspn(s, plain)])
        buf_puts(out, s);
    else
        print_string(out, s, strlen(s));
}

static void print_list(Bc *b, Rd *r, Buf *out, const char *open, const char *close) {
    uint32_t n = bc_count(r);
    buf_puts(out, open);
    for (uint32_t i = 0; i < n; i++) {
        buf_puts(out, i ? ", " : "");
        print_attr(b, r, out);
    }
    buf_puts(out, close);
}

static void print_ints(Bc *b, Rd *r, Buf *out, const char *open, const char *close) {
    uint32_t n = bc_count(r);
    buf_puts(out, open);
    for (uint32_t i = 0; i < n; i++) {
        buf_printf(out, "%s%lld", i ? ", " : "", (long long)bc_svarint(r));
        bc_text_check(b, r, out);
    }
    buf_puts(out, close);
}

// An optional part that is left out of the text when its list is empty.
static void print_list_unless_empty(Bc *b, Rd *r, Buf *out, const char *open, const char *close) {
    Rd peek = *r;
    if (bc_count(&peek))
        print_list(b, r, out, open, close);
    else
        *r = peek;
}

static void print_ints_unless_empty(Bc *b, Rd *r, Buf *out, const char *open, const char *close) {
    Rd peek = *r;
    if (bc_count(&peek))
        print_ints(b, r, out, open, close);
    else
        *r = peek;
}

static void print_sub_axis(Rd *r, Buf *out) {
    int64_t pre = bc_svarint(r);
    buf_printf(out, "(%lld)%lld", (long long)pre, (long long)bc_svarint(r));
}

static void print_axis_ref(Bc *b, Rd *r, Buf *out) {
    const BcSpan *s = bc_str(b, r);
    print_string(out, (const char *)s->at, s->n);
    bool has_sub;
    uint64_t sub = bc_flagged(r, &has_sub);
    if (!has_sub)
        return;
    buf_puts(out, ":");
    uint32_t i = bc_check(r, sub, b->nattrs, "attribute");
    const HloAttr *text = bc_attr(b, i); // "#sdy.sub_axis_info<(1)2>"
    const char *open = text->kind == HA_OPAQUE ? strchr(text->s, '<') : NULL;
    if (!open || strncmp(text->s, "#sdy.sub_axis_info<", 19))
        rd_fail(r, "an axis has a part that is no sub-axis");
    buf_put(out, open + 1, strlen(open) - 2);
}

static void print_dim_sharding(Bc *b, Rd *r, Buf *out) {
    Rd peek = *r;
    uint32_t n = bc_count(&peek);
    print_list(b, r, out, "{", "");
    if (!rd_u8(r)) // open: may be sharded further
        buf_puts(out, n ? ", ?" : "?");
    buf_puts(out, "}");
    bool has_priority;
    uint64_t priority = bc_flagged(r, &has_priority);
    if (has_priority)
        buf_printf(out, "p%llu", (unsigned long long)priority);
}

static void print_sharding(Bc *b, Rd *r, Buf *out, uint64_t code) {
    static const char *const unreduced[] = {", unreduced={", ", unreduced=max{",
                                            ", unreduced=min{"};
    uint32_t mesh = bc_attr_index(b, r);
    const HloAttr *name = bc_attr(b, mesh);
    if (name->kind == HA_SYM) {
        print_symbol(out, name->s);
        buf_puts(out, ", ");
    } else if (name->kind == HA_OPAQUE && !strncmp(name->s, "#sdy.", 5)) {
        buf_printf(out, "%s, ", name->s + 5);
    } else {
        rd_fail(r, "a sharding names no mesh");
    }
    print_list(b, r, out, "[", "]");
    print_list_unless_empty(b, r, out, ", replicated={", "}");
    if (code == SDY_SHARDING)
        return;
    Rd axes = *r;
    int64_t how = 0;
    if (code == SDY_SHARDING_3) { // the reduction stands behind the list it belongs to
        Rd skip = *r;
        for (uint32_t n = bc_count(&skip); n; n--)
            bc_attr_index(b, &skip);
        how = bc_svarint(&skip);
        *r = skip;
    }
    if (how < 0 || how > 2)
        rd_fail(r, "reduction %lld is unknown", (long long)how);
    print_list_unless_empty(b, &axes, out, unreduced[how], "}");
    if (code != SDY_SHARDING_3)
        *r = axes;
}

// Factors are named by letters from i on, behind z by z_1, z_2, …
static void print_factor(Rd *r, Buf *out, int64_t factor) {
    if (factor < 0)
        rd_fail(r, "factor %lld of a sharding rule", (long long)factor);
    if (factor < 18)
        buf_put(out, &"ijklmnopqrstuvwxyz"[factor], 1);
    else
        buf_printf(out, "z_%lld", (long long)factor - 17);
}

// Behind the code of the Shardy attribute that is referred to, which must have it.
static Rd part_rd(Bc *b, Rd *r, uint64_t code) {
    uint32_t i = bc_attr_index(b, r);
    bc_attr(b, i); // finds cycles and what is malformed
    const BcEntry *e = &b->attrs[i].entry;
    bool is_sdy = e->custom && b->dialects[e->dialect].known == BD_SDY;
    Rd part = bc_rd(b, e->bytes);
    if (!is_sdy || bc_varint(&part) != code)
        rd_fail(r, "a sharding rule holds an attribute that does not belong there");
    return part;
}

// ([ij, k], []): a list of factors for each dimension of each tensor.
static void print_mappings(Bc *b, Rd *r, Buf *out) {
    uint32_t n = bc_count(r);
    buf_puts(out, "(");
    for (uint32_t i = 0; i < n; i++) {
        Rd tensor = part_rd(b, r, SDY_TENSOR_MAPPING);
        uint32_t rank = bc_count(&tensor);
        buf_puts(out, i ? ", [" : "[");
        for (uint32_t d = 0; d < rank; d++) {
            Rd dim = part_rd(b, &tensor, SDY_DIM_MAPPING);
            uint32_t factors = bc_count(&dim);
            buf_puts(out, d ? ", " : "");
            for (uint32_t k = 0; k < factors; k++)
                print_factor(&dim, out, bc_svarint(&dim));
            bc_text_check(b, r, out);
        }
        buf_puts(out, "]");
    }
    buf_puts(out, ")");
}

static void print_factors(Bc *b, Rd *r, Buf *out, const char *name) {
    uint32_t n = bc_count(r);
    for (uint32_t i = 0; i < n; i++) {
        buf_printf(out, i ? ", %s" : " %s={", i ? "" : name);
        print_factor(r, out, bc_svarint(r));
        bc_text_check(b, r, out);
    }
    buf_puts(out, n ? "}" : "");
}

// The sizes of the factors come first and are printed behind the mappings.
static void print_rule(Bc *b, Rd *r, Buf *out) {
    Rd sizes = *r;
    for (uint32_t n = bc_count(r); n; n--)
        bc_svarint(r);
    print_mappings(b, r, out);
    buf_puts(out, "->");
    print_mappings(b, r, out);
    uint32_t n = bc_count(&sizes);
    for (uint32_t i = 0; i < n; i++) {
        buf_puts(out, i ? ", " : " {");
        print_factor(r, out, i);
        buf_printf(out, "=%lld", (long long)bc_svarint(&sizes));
        bc_text_check(b, r, out);
    }
    buf_puts(out, n ? "}" : "");
    print_factors(b, r, out, "reduction");
    print_factors(b, r, out, "need_replication");
    print_factors(b, r, out, "permutation");
    print_factors(b, r, out, "blocked_propagation");
    if (rd_u8(r))
        buf_puts(out, ", custom");
}

static void print_mesh(Bc *b, Rd *r, Buf *out) {
    print_list(b, r, out, "[", "]");
    print_ints_unless_empty(b, r, out, ", device_ids=[", "]");
}

static void print_body(Bc *b, Rd *r, Buf *out, uint64_t code) {
    const BcSpan *s;
    switch (code) {
    case SDY_MANUAL_AXES:
        print_list(b, r, out, "{", "}");
        return;
    case SDY_MESH_AXIS:
        s = bc_str(b, r);
        print_string(out, (const char *)s->at, s->n);
        buf_printf(out, "=%lld", (long long)bc_svarint(r));
        return;
    case SDY_MESH:
        print_mesh(b, r, out);
        return;
    case SDY_SUB_AXIS:
        print_sub_axis(r, out);
        return;
    case SDY_AXIS_REF:
        print_axis_ref(b, r, out);
        return;
    case SDY_DIM_SHARDING:
        print_dim_sharding(b, r, out);
        return;
    case SDY_SHARDING:
    case SDY_SHARDING_2:
    case SDY_SHARDING_3:
        print_sharding(b, r, out, code);
        return;
    case SDY_PER_VALUE:
    case SDY_PER_VALUE_2:
    case SDY_TENSOR_MAPPING:
    case SDY_AXIS_LISTS:
    case SDY_ALL_TO_ALLS:
        print_list(b, r, out, "[", "]");
        return;
    case SDY_DIM_MAPPING:
        print_ints(b, r, out, "[", "]");
        return;
    case SDY_RULE:
        print_rule(b, r, out);
        return;
    case SDY_AXIS_LIST:
        print_list(b, r, out, "{", "}");
        return;
    case SDY_ALL_TO_ALL: {
        print_list(b, r, out, "{", "}");
        int64_t from = bc_svarint(r);
        buf_printf(out, ": %lld->%lld", (long long)from, (long long)bc_svarint(r));
        return;
    }
    default:
        rd_fail(r, "sdy attribute code %llu is unknown", (unsigned long long)code);
    }
}

// Inside lists: shardings keep their angle brackets, strings their quotes, the rest prints bare.
static void print_attr(Bc *b, Rd *r, Buf *out) {
    uint32_t i = bc_attr_index(b, r);
    const HloAttr *v = bc_attr(b, i); // also finds cycles
    bc_text_check(b, r, out);
    if (v->kind == HA_STR) {
        print_string(out, v->s, v->n);
        return;
    }
    const char *open =
        v->kind == HA_OPAQUE && !strncmp(v->s, "#sdy.", 5) ? strchr(v->s, '<') : NULL;
    if (!open)
        rd_fail(r, "a sharding holds an attribute that does not belong there");
    bool keep = !strncmp(v->s, "#sdy.sharding<", 14);
    buf_put(out, open + !keep, strlen(open) - (keep ? 0 : 2));
    bc_text_check(b, r, out);
}

HloAttr sdy_attr(Bc *b, uint32_t i) {
    Rd r = bc_rd(b, b->attrs[i].entry.bytes);
    uint64_t code = bc_varint(&r);
    Buf out = {.arena = b->arena};
    if (code == SDY_MANUAL_AXES) // Shardy writes it this way
        buf_puts(&out, "#sdy<manual_axes");
    else if (code < SDY_CODES)
        buf_printf(&out, "#sdy.%s<", sdy_names[code]);
    print_body(b, &r, &out, code);
    buf_puts(&out, ">");
    bc_done(&r, "an sdy attribute");
    bc_text_check(b, &r, &out);
    return bc_text(b, &out);
}

// --- VHLO's mesh attributes ---------------------------------------------------------------------

enum { VA_SUB_AXIS = 21, VA_AXIS_REF, VA_REPLICA_GROUP_MESH_AXES, VA_MESH_AXIS, VA_MESH };

static const HloAttr *need(Bc *b, Rd *r, HloAttrKind kind, const char *what) {
    const HloAttr *v = bc_attr_ref(b, r);
    if (v->kind != kind)
        rd_fail(r, "%s is missing", what);
    return v;
}

static void print_texts(Bc *b, Rd *r, Buf *out, const HloAttr *list) {
    buf_puts(out, "[");
    for (uint32_t i = 0; i < list->n; i++) {
        if (list->list[i].kind != HA_OPAQUE)
            rd_fail(r, "a list of axes holds something else");
        buf_printf(out, "%s%s", i ? ", " : "", list->list[i].s);
        bc_text_check(b, r, out);
    }
    buf_puts(out, "]");
}

// VHLO has names as attributes, StableHLO as strings; its flags are bytes.
static void print_axis_name(Bc *b, Rd *r, Buf *out, bool raw) {
    if (raw) {
        const BcSpan *s = bc_str(b, r);
        print_string(out, (const char *)s->at, s->n);
    } else {
        const HloAttr *name = need(b, r, HA_STR, "an axis's name");
        print_string(out, name->s, name->n);
    }
}

static void print_vhlo_axis(Bc *b, Rd *r, Buf *out, bool raw) {
    buf_puts(out, "#stablehlo.axis_ref<name = ");
    print_axis_name(b, r, out, raw);
    if (raw ? rd_u8(r) : bc_varint(r)) {
        const HloAttr *sub = need(b, r, HA_OPAQUE, "a sub-axis");
        buf_printf(out, ", sub_axis_info = %s", sub->s);
    }
    buf_puts(out, ">");
}

static void print_groups(Bc *b, Rd *r, Buf *out, bool raw) {
    const HloAttr *mesh = bc_attr_ref(b, r);
    if (mesh->kind != HA_STR && mesh->kind != HA_SYM && mesh->kind != HA_OPAQUE)
        rd_fail(r, "replica groups name no mesh");
    buf_puts(out, "#stablehlo.replica_group_mesh_axes<mesh = ");
    if (mesh->kind != HA_OPAQUE)
        print_symbol(out, mesh->s);
    else
        buf_puts(out, mesh->s);
    buf_puts(out, ", axes = ");
    HloAttr list = raw ? bc_list(b, r) : *need(b, r, HA_LIST, "a list of axes");
    print_texts(b, r, out, &list);
    buf_puts(out, ">");
}

static void print_vhlo_mesh(Bc *b, Rd *r, Buf *out, bool raw) {
    buf_puts(out, "#stablehlo.mesh<axes = ");
    print_texts(b, r, out, need(b, r, HA_LIST, "a list of axes"));
    bool has_ids = raw && rd_u8(r);
    uint64_t ids = !raw ? bc_flagged(r, &has_ids) : has_ids ? bc_varint(r) : 0;
    if (has_ids) {
        const HloAttr *v = bc_attr(b, bc_check(r, ids, b->nattrs, "attribute"));
        if (v->kind != HA_TENSOR || hlo_type(b->h, v->type)->dtype != DT_I64)
            rd_fail(r, "a mesh's device ids are not a tensor of i64");
        buf_puts(out, ", device_ids = [");
        for (uint32_t i = 0; i < v->n / 8; i++) {
            buf_printf(out, "%s%lld", i ? ", " : "",
                       (long long)le_load64((const uint8_t *)v->data + 8 * (size_t)i));
            bc_text_check(b, r, out);
        }
        buf_puts(out, "]");
    }
    buf_puts(out, ">");
}

HloAttr vhlo_mesh_attr(Bc *b, Rd *r, uint64_t code, bool raw) {
    Buf out = {.arena = b->arena};
    switch (code) {
    case VA_SUB_AXIS:
        print_sub_axis(r, &out);
        break;
    case VA_AXIS_REF:
        print_vhlo_axis(b, r, &out, raw);
        break;
    case VA_REPLICA_GROUP_MESH_AXES:
        print_groups(b, r, &out, raw);
        break;
    case VA_MESH_AXIS:
        buf_puts(&out, "#stablehlo.mesh_axis<name = ");
        print_axis_name(b, r, &out, raw);
        buf_printf(&out, ", size = %lld>", (long long)bc_svarint(r));
        break;
    default:
        print_vhlo_mesh(b, r, &out, raw);
        break;
    }
    bc_text_check(b, r, &out);
    return bc_text(b, &out);
}
