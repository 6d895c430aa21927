// SPDX-License-Identifier: Apache-2.0
// bytecode_mesh.c — replica groups told by mesh axes: the text the graph keeps becomes VHLO's
// attributes.
//
//   #stablehlo.replica_group_mesh_axes<mesh = @name or a mesh, axes = [axis, …]>
//   #stablehlo.axis_ref<name = "x", sub_axis_info = (1)2>
//   #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 2>, …], device_ids = [0, …]>
#include "write/bytecode.h"

enum { VA_SUB_AXIS = 21, VA_AXIS_REF, VA_GROUPS, VA_MESH_AXIS, VA_MESH };

static void key(BwText *t, const char *name) { // name =
    bw_text_need(t, name);
    bw_text_need(t, "=");
}

static int hex(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

static BwId name_attr(BwText *t) { // "x\22", as a VHLO string
    Buf out = {.arena = t->w->arena};
    bw_text_need(t, "\"");
    for (; *t->at && *t->at != '"'; t->at++) {
        char c = *t->at;
        if (c == '\\') {
            int high = hex(t->at[1]), low = high < 0 ? -1 : hex(t->at[2]);
            if (low < 0)
                bw_text_fail(t);
            c = (char)(high << 4 | low);
            t->at += 2;
        }
        buf_put(&out, &c, 1);
    }
    bw_text_need(t, "\"");
    return bw_vhlo_str(t->w, buf_cstr(&out), out.n);
}

static BwId symbol_attr(BwText *t) { // behind the @
    if (*t->at == '"')
        return name_attr(t);
    size_t n = strcspn(t->at, " ,>\n\t");
    BwId id = bw_vhlo_str(t->w, t->at, n);
    t->at += n;
    return id;
}

static BwId sub_axis(BwText *t) { // (1)2
    Bw *w = t->w;
    bw_text_need(t, "(");
    int64_t pre = bw_text_int(t);
    bw_text_need(t, ")");
    int64_t size = bw_text_int(t);
    bw_num(&w->key, VA_SUB_AXIS);
    bw_snum(&w->key, pre);
    bw_snum(&w->key, size);
    return bw_entry(w, BW_ATTR, "vhlo");
}

static BwId axis_ref(BwText *t) {
    Bw *w = t->w;
    bw_text_need(t, "#stablehlo.axis_ref<");
    key(t, "name");
    BwId name = name_attr(t), sub = 0;
    bool has_sub = bw_text_eat(t, ",");
    if (has_sub) {
        key(t, "sub_axis_info");
        sub = sub_axis(t);
    }
    bw_text_need(t, ">");
    bw_num(&w->key, VA_AXIS_REF);
    bw_ref(&w->key, BW_ATTR, name);
    bw_num(&w->key, has_sub);
    if (has_sub)
        bw_ref(&w->key, BW_ATTR, sub);
    return bw_entry(w, BW_ATTR, "vhlo");
}

static BwId mesh_axis(BwText *t) {
    Bw *w = t->w;
    bw_text_need(t, "#stablehlo.mesh_axis<");
    key(t, "name");
    BwId name = name_attr(t);
    bw_text_need(t, ",");
    key(t, "size");
    int64_t size = bw_text_int(t);
    bw_text_need(t, ">");
    bw_num(&w->key, VA_MESH_AXIS);
    bw_ref(&w->key, BW_ATTR, name);
    bw_snum(&w->key, size);
    return bw_entry(w, BW_ATTR, "vhlo");
}

static BwId axes(BwText *t, BwId (*one)(BwText *)) { // [axis, …]
    uint32_t base = t->w->ids.n;
    key(t, "axes");
    bw_text_need(t, "[");
    if (!bw_text_eat(t, "]")) {
        do {
            BwId id = one(t);
            VEC_PUSH(t->w->arena, &t->w->ids, id);
        } while (bw_text_eat(t, ","));
        bw_text_need(t, "]");
    }
    return bw_vhlo_array(t->w, base);
}

static BwId device_ids(BwText *t) {
    Bw *w = t->w;
    VEC(int64_t) ids = {0};
    key(t, "device_ids");
    bool list = bw_text_eat(t, "[");
    if (!list)
        bw_text_need(t, "dense<[");
    do {
        VEC_PUSH(w->arena, &ids, bw_text_int(t));
    } while (bw_text_eat(t, ","));
    bw_text_need(t, "]");
    if (!list) // dense<[…]> : tensor<…>
        t->at += strcspn(t->at, "t"), t->at += strcspn(t->at, ">"), bw_text_need(t, ">");
    return bw_vhlo_ints(w, DT_I64, 1, (int64_t[]){ids.n}, ids.at, ids.n);
}

static BwId mesh(BwText *t) {
    Bw *w = t->w;
    BwId list = axes(t, mesh_axis), ids = 0;
    bool has_ids = bw_text_eat(t, ",");
    if (has_ids)
        ids = device_ids(t);
    bw_text_need(t, ">");
    bw_num(&w->key, VA_MESH);
    bw_ref(&w->key, BW_ATTR, list);
    if (has_ids)
        bw_ref_flag(&w->key, BW_ATTR, ids, true);
    else
        bw_num(&w->key, 0);
    return bw_entry(w, BW_ATTR, "vhlo");
}

BwId bw_mesh_axes(Bw *w, const char *text) {
    BwText t = {w, "the replica groups", text, text};
    bw_need(w, 16);
    bw_text_need(&t, "#stablehlo.replica_group_mesh_axes<");
    key(&t, "mesh");
    bool by_name = bw_text_eat(&t, "@");
    if (!by_name)
        bw_text_need(&t, "#stablehlo.mesh<");
    BwId m = by_name ? symbol_attr(&t) : mesh(&t);
    bw_text_need(&t, ",");
    BwId list = axes(&t, axis_ref);
    bw_text_need(&t, ">");
    bw_num(&w->key, VA_GROUPS);
    bw_ref(&w->key, BW_ATTR, m);
    bw_ref(&w->key, BW_ATTR, list);
    return bw_entry(w, BW_ATTR, "vhlo");
}
