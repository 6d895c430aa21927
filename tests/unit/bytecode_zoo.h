// SPDX-License-Identifier: Apache-2.0
// bytecode_zoo.h — one file with every attribute and type code that programs rarely have, and the
// text each must give. Also a seed for fuzzing.
#ifndef OTRN_TESTS_BYTECODE_ZOO_H
#define OTRN_TESTS_BYTECODE_ZOO_H

#include "bytecode_make.h"

typedef struct Zoo {
    unsigned attr[64];
    const char *want[64]; // NULL: any
    unsigned n;
} Zoo;

static void zoo_add(Zoo *z, unsigned attr, const char *want) {
    z->attr[z->n] = attr;
    z->want[z->n++] = want;
}

static void zoo_types(Maker *m, Zoo *z) {
    unsigned f32 = TYPE(m, BUILTIN, 5), f16 = TYPE(m, BUILTIN, 4), i8 = TYPE(m, VHLO, 11);
    unsigned unit = ATTR(m, BUILTIN, 7),
             tensor = TYPE(m, BUILTIN, 13, 2, zig(2), zig(INT64_MIN), f32);
    unsigned bounds = ATTR(m, VHLO, 18, 2, zig(16), zig(INT64_MIN)), token = TYPE(m, VHLO, 22);
    unsigned bounded = TYPE(m, VHLO, 21, bounds, 2, zig(2), zig(INT64_MIN), f32);
    unsigned tuple = TYPE(m, BUILTIN, 15, 3, tensor, bounded, token);
    Buf scalable = VARINTS(m, 20, 1);
    put_u8(&scalable, 1);
    put_varint(&scalable, 1), put_varint(&scalable, zig(4)), put_varint(&scalable, f32);
    double scale = 0.5;
    uint64_t bits;
    memcpy(&bits, &scale, 8);
    unsigned quant = TYPE(m, VHLO, 24, 0, i8, f32, zig((int64_t)bits), zig(3), zig(0), zig(200));
    unsigned per_axis = TYPE(m, VHLO, 30, 1, i8, f32, 1, zig(-128), zig(127), 2, zig((int64_t)bits),
                             zig((int64_t)bits), 2, zig(0), zig(-7));
    const struct {
        unsigned type;
        const char *want;
    } types[] = {
        {TYPE(m, BUILTIN, 0, 7 << 2), "i7"},
        {TYPE(m, BUILTIN, 0, 8 << 2 | 2), "ui8"},
        {TYPE(m, BUILTIN, 1), "index"},
        {TYPE(m, BUILTIN, 7), "f80"},
        {TYPE(m, BUILTIN, 8), "f128"},
        {TYPE(m, BUILTIN, 9, f16), "complex<f16>"},
        {TYPE(m, BUILTIN, 9, f32), "complex<f32>"},
        {TYPE(m, BUILTIN, 10, 1, zig(3), f32, unit), "memref<3xf32>"},
        {TYPE(m, BUILTIN, 11, unit, 1, zig(3), f32, unit), "memref<3xf32>"},
        {TYPE(m, BUILTIN, 12), "none"},
        {TYPE(m, BUILTIN, 16, f32), "memref<*xf32>"},
        {TYPE(m, BUILTIN, 17, unit, f32), "memref<*xf32>"},
        {TYPE(m, BUILTIN, 18, f32), "tensor<*xf32>"},
        {TYPE(m, BUILTIN, 19, 1, zig(4), f32), "vector<4xf32>"},
        {add_type(m, BUILTIN, scalable), "vector<4xf32>"},
        {TYPE(m, BUILTIN, 28), "f8E3M4"},
        {TYPE(m, VHLO, 26), "!shape.witness"},
        {TYPE(m, VHLO, 34), "tf32"},
        {TYPE(m, VHLO, 41, 0, f32), "memref<f32>"},
        {quant, "!quant.uniform<u8<0:200>:f32, 5.000000e-01:3>"},
        {per_axis, "!quant.uniform<i8:f32:1, {5.000000e-01, 5.000000e-01:-7}>"},
        {TYPE(m, VHLO, 42, 3, tensor, tuple, quant),
         "!stablehlo.future<tensor<2x?xf32>, tuple<tensor<2x?xf32>, "
         "tensor<2x?xf32, #stablehlo.bounds<16, ?>>, !stablehlo.token>, "
         "!quant.uniform<u8<0:200>:f32, 5.000000e-01:3>>"},
        {add_text(m, true, "f8E4M3FN"), "f8E4M3FN"},
        {add_text(m, true, "!foo.bar<1>"), "!foo.bar<1>"},
        {TYPE(m, SDY, 1), "!sdy.bytecode<\"0x03\">"},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        zoo_add(z, ATTR(m, BUILTIN, 6, types[i].type), types[i].want);
    zoo_add(z, ATTR(m, BUILTIN, 6, bounded), NULL);
    zoo_add(z, ATTR(m, BUILTIN, 6, add_text(m, true, "tensor<2x?xf8E4M3FN>")), NULL);
}

static void zoo_attrs(Maker *m, Zoo *z) {
    unsigned str = add_string_attr(m, BUILTIN, "x"), name = add_string_attr(m, VHLO, "x\"");
    unsigned f32 = TYPE(m, BUILTIN, 5), f4 = TYPE(m, VHLO, 37), i64 = TYPE(m, VHLO, 14);
    unsigned two = TYPE(m, VHLO, 20, 1, zig(2), i64), four = TYPE(m, VHLO, 20, 1, zig(2), f4);
    unsigned loc = ATTR(m, BUILTIN, 15), sub = ATTR(m, VHLO, 21, zig(1), zig(2));
    unsigned axis = ATTR(m, VHLO, 22, name, 1, sub), plain = ATTR(m, VHLO, 22, name, 0);
    unsigned axes = ATTR(m, VHLO, 1, 2, axis, plain), mesh_axis = ATTR(m, VHLO, 24, name, zig(2));
    int64_t ids[] = {1, 0};
    unsigned devices = add_tensor(m, two, ids, 16);
    unsigned mesh = ATTR(m, VHLO, 25, ATTR(m, VHLO, 1, 1, mesh_axis), devices << 1 | 1);
    unsigned params = ATTR(m, SDY, 13, 1, ATTR(m, SDY, 4, add_str(m, "y"), 0), zig(0), zig(1));
    unsigned map = ATTR(m, SDY, 9, 1, ATTR(m, SDY, 8, 2, zig(0), zig(1)));
    Buf rule = VARINTS(m, 10, 1, zig(8), 1, map, 1, map, 1, zig(0), 0, 0, 1, zig(1));
    put_u8(&rule, 1);
    Buf floats = VARINTS(m, 17, f32, 1, 4);
    put_u32(&floats, 0x3f800000);
    unsigned sdy_axis = ATTR(m, SDY, 1, add_str(m, "a"), zig(2));
    const struct {
        unsigned attr;
        const char *want;
    } attrs[] = {
        {ATTR(m, BUILTIN, 3, add_str(m, "typed"), f32), "typed"},
        {add_attr(m, BUILTIN, floats), NULL},
        {add_tensor(m, four, (uint8_t[]){0xf7, 2}, 2), NULL},
        {ATTR(m, BUILTIN, 19, f32, 1, 0), NULL},
        {ATTR(m, BUILTIN, 21, str), NULL},
        {ATTR(m, BUILTIN, 22, str, 3, 1, 2, 3), NULL},
        {ATTR(m, BUILTIN, 12, 2, loc, loc), NULL},
        {add_text(m, false, "unit"), NULL},
        {ATTR(m, VHLO, 3, 5), "#stablehlo<comparison_direction LT>"},
        {ATTR(m, VHLO, 10, 1, zig(0), zig(2), 0),
         "#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 2, "
         "operand_tuple_indices = []>"},
        {ATTR(m, VHLO, 19, 2), "#stablehlo.result_accuracy_mode<TOLERANCE>"},
        {ATTR(m, VHLO, 23, name, axes),
         "#stablehlo.replica_group_mesh_axes<mesh = @\"x\\22\", axes = [#stablehlo.axis_ref<name = "
         "\"x\\22\", "
         "sub_axis_info = (1)2>, #stablehlo.axis_ref<name = \"x\\22\">]>"},
        {mesh, "#stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = \"x\\22\", size = 2>], "
               "device_ids = [1, 0]>"},
        {ATTR(m, SDY, 0, 2, str, str), "#sdy<manual_axes{\"x\", \"x\"}>"},
        {ATTR(m, SDY, 2, 1, sdy_axis, 2, zig(1), zig(0)),
         "#sdy.mesh<[\"a\"=2], device_ids=[1, 0]>"},
        {add_attr(m, SDY, rule),
         "#sdy.op_sharding_rule<([ij])->([ij]) {i=8} reduction={i} blocked_propagation={j}, custom>"},
        {ATTR(m, SDY, 14, 1, params), "#sdy.all_to_all_param_list<[{\"y\"}: 0->1]>"},
    };
    for (size_t i = 0; i < sizeof attrs / sizeof *attrs; i++)
        zoo_add(z, attrs[i].attr, attrs[i].want);
}

static Buf zoo_file(Arena *a, Zoo *z) {
    Maker m = maker(a, 6);
    zoo_types(&m, z);
    zoo_attrs(&m, z);
    put_varint(&m.resources,
               add_str(&m, "blob")); // key, size, kind; data: alignment, size, padding
    Buf blob = VARINTS(&m, 1, 4);
    put_u32(&blob, 7);
    put_varint(&m.resources, blob.n), put_u8(&m.resources, 0);
    buf_put(&m.resource_data, blob.at, blob.n);
    m.nresources = 1;
    unsigned i32 = TYPE(&m, BUILTIN, 0, 32 << 2), one = TYPE(&m, BUILTIN, 13, 1, zig(1), i32);
    zoo_add(z, ATTR(&m, BUILTIN, 16, one, 0), NULL);
    Buf list = VARINTS(&m, 0, z->n);
    for (unsigned i = 0; i < z->n; i++)
        put_varint(&list, z->attr[i]);
    unsigned value = add_attr(&m, BUILTIN, list), key = add_string_attr(&m, BUILTIN, "k");
    return add_program(&m, (int)ATTR(&m, BUILTIN, 1, 1, key, value));
}

#endif
