// SPDX-License-Identifier: Apache-2.0
// bytecode.h — what the parts of the bytecode writer share; nobody else includes it.
//
//   bytecode.c        forms, tables, numbering, sections; entry point
//   bytecode_attr.c   attributes and locations
//   bytecode_type.c   types, VHLO's and builtin's
//   bytecode_slot.c   an op's slots as VHLO wants them, versions of ops
//   bytecode_ir.c     module, functions, ops, regions, value numbers
//   bytecode_mesh.c   attributes about meshes that the graph keeps as text
//   bytecode_text.c   a scanner for such texts
//
// Entries (attributes, types, op names) get small numbers when they are used often, and that is
// only known at the end. So the writer first makes forms: bytes in which references to entries
// stand as pieces with an id. Ids are given in the order in which the program asks for an entry,
// never by the graph's own ids, so equal programs give equal bytes however they were read. Then
// uses are counted, ids become numbers and forms become bytes.
#ifndef OTRN_WRITE_BYTECODE_H
#define OTRN_WRITE_BYTECODE_H

#include "hlo/hlo.h"

#define BW_VERSION 6     // of the container
#define BW_MAX_DEPTH 300 // nesting of attributes, types and regions; readers allow less

typedef uint32_t BwId; // an entry of one of the sets below

typedef struct BwItem {
    const void *at;
    size_t n;
    uint64_t hash;
    uint32_t dialect; // entries only
    bool custom;      // entries only: dialect-defined bytes, else text; of an op: registered
} BwItem;

typedef struct BwSet { // distinct byte strings, numbered as they come
    VEC(BwItem) items;
    uint32_t *slots; // id + 1, 0 when free
    uint32_t cap;    // a power of two
} BwSet;

// The first three are entries: their numbers are given at the end.
typedef enum BwTable {
    BW_ATTR,
    BW_TYPE,
    BW_OP,
    BW_ENTRIES,
    BW_STR = BW_ENTRIES,
    BW_DIALECT,
    BW_PROP,
    BW_BLOB,
    BW_TABLES
} BwTable;

typedef enum BwForm { BF_VHLO, BF_BUILTIN, BF_COUNT } BwForm; // whose attributes and types

typedef struct Bw {
    const Hlo *h;
    Arena *arena;
    uint32_t minor;   // of the VHLO version being written
    uint32_t needs;   // the oldest minor that has everything seen so far
    LocId place;      // of the op being written, for messages
    uint32_t depth;
    BwSet sets[BW_TABLES];
    Buf key;          // an entry's form while it is made; entries are made one after the other
    Buf ir;           // the program's form
    BwId *locs;                // by LocId: its attribute + 1
    BwId *types[BF_COUNT];     // by TypeId: the entry + 1
    uint32_t *numbers;         // by ValueId, in the scope being written
    uint32_t *depths;          // by ValueId: how deep the region that defines it is nested
    uint8_t *isolated;         // by OpId: its regions use nothing from outside
    VEC(BwId) ids;             // stack of lists being put together
} Bw;

// --- bytecode.c: forms --------------------------------------------------------------------------
void bw_num(Buf *form, uint64_t v);
void bw_snum(Buf *form, int64_t v);
void bw_byte(Buf *form, uint8_t v);
void bw_ref(Buf *form, BwTable t, BwId id);      // of an entry: its number
void bw_ref_flag(Buf *form, BwTable t, BwId id, bool flag); // number << 1 | flag
void bw_blob(Bw *w, Buf *form, const void *at, size_t n); // borrowed: count, then bytes
void bw_section_begin(Buf *form, uint8_t id);
void bw_section_end(Buf *form);

BwId bw_str(Bw *w, const char *s, size_t n);
BwId bw_prop(Bw *w, const Buf *form); // a property record
// Registered: its property record is its attributes in order; else it is a dictionary.
BwId bw_op_name(Bw *w, const char *dialect, const char *name, bool registered);
// An entry from the form in w->key, which is empty afterwards.
BwId bw_entry(Bw *w, BwTable t, const char *dialect);
BwId bw_entry_text(Bw *w, BwTable t, const char *dialect, size_t dialect_n, const char *text);
void bw_enter(Bw *w);
void bw_leave(Bw *w);
void bw_need(Bw *w, uint32_t minor);
_Noreturn void bw_fail(Bw *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// --- bytecode_attr.c ----------------------------------------------------------------------------
BwId bw_attr(Bw *w, const HloAttr *a, BwForm f);
BwId bw_dict(Bw *w, const HloNamed *list, uint32_t n, BwForm f); // a builtin dictionary
BwId bw_loc(Bw *w, LocId loc);
BwId bw_vhlo_code(Bw *w, uint64_t code, uint64_t v); // enum or boolean: code, value
BwId bw_vhlo_str(Bw *w, const char *s, size_t n);
BwId bw_vhlo_int(Bw *w, int dtype, int64_t v);
BwId bw_vhlo_float(Bw *w, int dtype, double v);
BwId bw_vhlo_type(Bw *w, BwId type);
BwId bw_vhlo_array(Bw *w, uint32_t base); // of what lies on w->ids from base on, which it takes off
BwId bw_vhlo_dict(Bw *w, const HloNamed *list, uint32_t n);
// A tensor of integers (i64, index) or bools; one value stands for all when they are equal.
BwId bw_vhlo_ints(Bw *w, int dtype, int rank, const int64_t *dims, const int64_t *v, uint32_t n);
BwId bw_builtin_dict(Bw *w, uint32_t base); // of names and values that lie on w->ids from base on, which it takes off
BwId bw_builtin_str(Bw *w, const char *s, size_t n);
void bw_bits(Buf *form, unsigned width, uint64_t v); // a number of known width

// --- bytecode_type.c ----------------------------------------------------------------------------
BwId bw_type(Bw *w, TypeId t, BwForm f);
BwId bw_scalar(Bw *w, int dtype, BwForm f);
BwId bw_tensor_type(Bw *w, int dtype, int rank, const int64_t *dims, BwForm f);
BwId bw_func_type(Bw *w, const HloFunc *f);

// --- bytecode_slot.c ----------------------------------------------------------------------------
BwId bw_slot(Bw *w, const HloOp *op, int i);
BwId bw_slot_dict(Bw *w, const HloOp *op); // those that are there, by name
// The op's version and which of its slots that version has.
uint32_t bw_op_version(Bw *w, const HloOp *op, uint32_t *slots);
// "#stablehlo<comparison_direction EQ>"; false when the text is none of those.
bool bw_enum_text(Bw *w, const char *text, BwId *out);

// --- bytecode_text.c ----------------------------------------------------------------------------
typedef struct BwText { // a text being taken apart
    Bw *w;
    const char *what, *whole, *at; // what: for messages, "the type"
} BwText;
_Noreturn void bw_text_fail(BwText *t);
bool bw_text_eat(BwText *t, const char *s); // passes space over; "" eats only that
void bw_text_need(BwText *t, const char *s);
bool bw_text_at_digit(BwText *t);
int64_t bw_text_int(BwText *t);

// --- bytecode_mesh.c ----------------------------------------------------------------------------
BwId bw_mesh_axes(Bw *w, const char *text); // "#stablehlo.replica_group_mesh_axes<…>"

// --- bytecode_ir.c ------------------------------------------------------------------------------
void bw_module(Bw *w);

#endif
