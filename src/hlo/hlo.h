// SPDX-License-Identifier: Apache-2.0
// hlo.h — the graph: a module of functions whose ops follow StableHLO.
//
//   Hlo ── funcs ── region ── ops ── operands (value ids), results (value ids), attributes, regions
//
// Everything is an index into flat tables that grow in the compile arena; 0 is never a valid op,
// value, type, region, location or string (slot 0 is a dummy). Types, strings and locations are
// interned, so equal means same id. A region is one block: arguments, then ops in order, the last
// one RETURN. Values are numbered across the whole module; a region may use values of the regions
// around it (a function's region has none around it). Programs of 100,000 ops are ordinary: passes
// walk tables, never search them.
//
// Attributes: an op has one slot per attribute of its row in ops.def, in row order, plus an optional
// dictionary of discardable ones. Absent optional attributes have kind HA_NONE.
#ifndef OTRN_HLO_HLO_H
#define OTRN_HLO_HLO_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/ctx.h"
#include "base/dtype.h"

typedef uint32_t OpId, ValueId, TypeId, RegionId, LocId, StrId;

typedef enum HloDialect {
    HD_STABLEHLO, HD_FUNC, HD_BUILTIN, HD_SDY, HD_CHLO, HD_CHECK, HD_INTERPRETER, HD_OTRN, HD_COUNT
} HloDialect;
extern const char *const hlo_dialect_names[HD_COUNT]; // "stablehlo", "func", …

typedef enum HloClass { HC_EW1, HC_EW2, HC_EW3, HC_MOVE, HC_RED, HC_DOT, HC_CTRL, HC_COLL, HC_META, HC_MISC } HloClass;

// What passes ask of an op, as a column of its row.
typedef enum HloTrait {
    OT_EXACT = 1,       // the specification fixes every bit of its result
    OT_SPLAT = 2,       // movement of one number everywhere: that number everywhere
    OT_COMMUTES = 4,    // x op y is y op x, and reductions by it are told by it
    OT_PARTS = 8,       // of complex numbers: of real and of imaginary parts each
    OT_FLOATS = 16,     // row programs hold it on floats,
    OT_FLAGS = 32,      // on i1,
    OT_INTS = 64,       // on integers of 32 bits
    OT_EFFECT = 128,    // running it twice, or not at all, can be told apart from outside
    OT_REWRITTEN = 256, // passes write it as others, so that nothing behind them meets one
} HloTrait;

typedef enum HloOpcode {
    HLO_NONE,
#define OP(e, ...) HLO_##e,
#include "hlo/ops.def"
    HLO_OPCODE_COUNT
} HloOpcode;

typedef enum HloAttrKey {
    AK_NONE,
#define ATTR(e, ...) AK_##e,
#include "hlo/attrs.def"
#undef ATTR
    AK_COUNT
} HloAttrKey;

typedef enum HloAttrKind {
    HA_NONE,
    HA_INT,    // i
    HA_BOOL,   // i
    HA_FLOAT,  // f
    HA_ENUM,   // i: number of the enums below
    HA_STR,    // s, n bytes (NUL-terminated too)
    HA_SYM,    // s: symbol name without @
    HA_INTS,   // ints, n of them
    HA_INTS2,  // ints, rows x 2 or rows x cols: n = rows*cols, cols in `cols`
    HA_TYPE,   // type
    HA_TENSOR, // type, data, n bytes; exactly one element's bytes for a splat
    HA_LIST,   // list, n items
    HA_DICT,   // dict, n items
    HA_UNIT,   // present
    HA_OPAQUE, // s: text form of an attribute we only carry along
    HA_ANY,    // in attrs.def only: any kind may stand here
    HA_KIND_COUNT
} HloAttrKind;

// A slot holds what the serialised form holds, so text and bytecode of one program give equal graphs.
// What the text leaves out gets its default on reading: strides and dilations 1, padding 0, booleans
// false, strings "", lists empty, compare_type NOTYPE, precision_config [DEFAULT, DEFAULT],
// sort dimension -1. HA_NONE stays only for result_accuracy of mode DEFAULT, the seven fields of an
// absent dot algorithm, and tolerances of checks. Slots of more than one plain value:
//   precision_config         LIST of ENUM
//   result_accuracy          DICT atol FLOAT, mode ENUM (1 HIGHEST, 2 TOLERANCE), rtol FLOAT, ulps INT
//   called_computations, infeed   LIST of SYM;   programs   LIST of LIST of SYM, by replica and partition
//   operand_layouts, result_layouts   LIST of INTS;   result_tilings   LIST of LIST of INTS
//   output_operand_aliases   LIST of DICT operand_index INT, operand_tuple_indices INTS,
//                            output_tuple_indices INTS
//   replica_groups           INTS2, one row a group; OPAQUE "#stablehlo.replica_group_mesh_axes<…>"
//   padding, source_target_pairs      INTS2 of 2 columns; n = 0 when empty
//   window_reversal          INTS of 0 and 1
//   backend_config           STR or DICT
// INT and FLOAT in a slot have type 0. In dictionaries, lists and extras type 0 means i64 and f64;
// INTS is array<i64: …>, or of the element type in `type`.
typedef struct HloAttr {
    uint8_t kind;
    uint32_t n, cols;
    TypeId type; // TENSOR, TYPE; for INT and FLOAT the literal's type when it matters (0 = default)
    union {
        int64_t i;
        double f;
        const char *s;
        const int64_t *ints;
        const void *data;
        const struct HloAttr *list;
        const struct HloNamed *dict;
    };
} HloAttr;

typedef struct HloNamed {
    const char *name;
    HloAttr value;
} HloNamed;

// Enum attributes; numbers are those of the serialised form.
enum { CMP_EQ, CMP_NE, CMP_GE, CMP_GT, CMP_LE, CMP_LT };
enum { CMPT_NOTYPE, CMPT_FLOAT, CMPT_TOTALORDER, CMPT_SIGNED, CMPT_UNSIGNED };
enum { FFT_FFT, FFT_IFFT, FFT_RFFT, FFT_IRFFT };
enum { RNGALG_DEFAULT, RNGALG_THREE_FRY, RNGALG_PHILOX, RNGALG_TWISTER }; // the last is ours
enum { RNGDIST_UNIFORM = 1, RNGDIST_NORMAL = 2 };
enum { PREC_DEFAULT, PREC_HIGH, PREC_HIGHEST };
enum { TRANSPOSE_INVALID, TRANSPOSE_NO, TRANSPOSE_YES, TRANSPOSE_ADJOINT };
// Text of an enum attribute's value and back; NULL / -1 when there is none.
const char *hlo_enum_name(HloAttrKey key, int64_t v); // precision elements: AK_PRECISION_CONFIG
int64_t hlo_enum_parse(HloAttrKey key, const char *s, size_t n);

#define HLO_MAX_ATTRS 18
typedef struct HloOpRow {
    const char *name;
    uint8_t dialect, cls;
    int8_t operands, results, regions;
    uint16_t traits; // HloTrait
    uint8_t nattrs;
    uint8_t attrs[HLO_MAX_ATTRS]; // HloAttrKey
} HloOpRow;

typedef struct HloAttrRow {
    const char *name;
    uint8_t kind;
} HloAttrRow;

extern const HloOpRow hlo_op_rows[HLO_OPCODE_COUNT];
extern const HloAttrRow hlo_attr_rows[AK_COUNT];
// Lookup by dialect and bare name ("stablehlo", "add"); HLO_NONE when unknown.
HloOpcode hlo_op_find(const char *dialect, size_t dn, const char *name, size_t n);
HloAttrKey hlo_attr_find(const char *name, size_t n);

#define HLO_DYNAMIC INT64_MIN // size of a dimension known only at run time
typedef enum HloTypeKind { HT_NONE, HT_TENSOR, HT_TOKEN, HT_TUPLE, HT_FUNC, HT_OTHER } HloTypeKind;
typedef struct HloType {
    uint8_t kind, dtype, rank;
    bool dynamic;          // some dimension is HLO_DYNAMIC
    const int64_t *dims;   // TENSOR
    int64_t elems;         // TENSOR: product of dims (0 when dynamic)
    const TypeId *members; // TUPLE members; FUNC inputs then results
    uint32_t nmembers, ninputs;
    const char *text;      // OTHER: its text; TENSOR: encoding or quantised element text, or NULL
} HloType;
// A scalar type (an attribute's, a dot algorithm's) is OTHER with its name as text and dtype set;
// `none` has dtype INVALID. A quantised tensor has its storage type as dtype and "!quant.…" as text;
// an encoding is text that starts with '#', bounds as "#stablehlo.bounds<16, ?>".

typedef enum HloLocKind { HL_UNKNOWN, HL_FILE, HL_NAME, HL_CALL, HL_FUSED, HL_HERE } HloLocKind;
typedef struct HloLoc {
    uint8_t kind;
    StrId str;          // FILE, HERE: file name; NAME: the name
    uint32_t line, col; // FILE, HERE
    LocId a, b;         // NAME: a child; CALL: a callee, b caller; FUSED: a first, b next (a list)
} HloLoc;
// HERE is a place in the program's own text for messages, around a location that names no file: a is
// what the program says (0 when that is "unknown"), and only that is written out again.

typedef struct HloValue {
    TypeId type;
    OpId def;        // 0 for a region argument
    RegionId region; // the region whose argument it is; 0 for a result
    uint32_t index;  // which result or argument
} HloValue;

typedef struct HloOp {
    uint16_t code; // HloOpcode
    uint16_t nresults;
    uint32_t noperands;
    uint32_t operands; // first of noperands entries in Hlo.operands
    ValueId results;   // first of nresults consecutive values
    uint32_t nregions;
    uint32_t regions; // first of nregions entries in Hlo.op_regions
    HloAttr *attrs;   // one slot per attribute of the row (NULL when none)
    const HloNamed *extra; // discardable attributes
    uint32_t nextra;
    LocId loc;
} HloOp;

typedef struct HloRegion {
    ValueId args; // first of nargs consecutive values
    uint32_t nargs;
    OpId parent; // the op that holds it; 0 for a function's body
    VEC(OpId) ops;
} HloRegion;

typedef struct HloFunc {
    const char *name;
    bool is_private;
    RegionId body;        // 0 for a declaration
    uint32_t nargs, nresults;
    const TypeId *result_types; // the nargs argument types stand right before them
    const HloNamed **arg_attrs; // per argument, may be NULL as a whole
    const uint32_t *narg_attrs;
    const LocId *arg_locs; // per argument, 0: none; may be NULL as a whole. JAX puts their names there
    const HloNamed **res_attrs;
    const uint32_t *nres_attrs;
    const HloNamed *extra;
    uint32_t nextra;
    LocId loc;
} HloFunc;

typedef struct Hlo {
    Ctx *ctx;
    Arena *arena;
    const char *file; // name for messages
    const char *name; // module name, "" when none
    const HloNamed *extra;
    uint32_t nextra;
    VEC(HloOp) ops;
    VEC(HloValue) values;
    VEC(HloRegion) regions;
    VEC(ValueId) operands;
    VEC(RegionId) op_regions;
    VEC(HloType) types;
    VEC(HloLoc) locs;
    VEC(const char *) strs;
    VEC(HloFunc) funcs; // from 0
    struct HloIntern *intern;
} Hlo;

// --- making -----------------------------------------------------------------------------------
Hlo *hlo_make(Ctx *ctx, Arena *a, const char *file);
StrId hlo_str(Hlo *h, const char *s, size_t n);
TypeId hlo_type_tensor(Hlo *h, int dtype, int rank, const int64_t *dims);
TypeId hlo_type_as(Hlo *h, TypeId shape, int dtype); // a tensor of that shape
TypeId hlo_type_intern(Hlo *h, const HloType *t); // contents are copied
LocId hlo_loc(Hlo *h, const HloLoc *l);           // interned
ValueId hlo_value(Hlo *h, TypeId t);              // a new value, def/region filled by the next two
RegionId hlo_region(Hlo *h, OpId parent, uint32_t nargs, const TypeId *arg_types);
// A new op with fresh results and empty attribute slots; not yet in any region. Regions are made
// afterwards with hlo_op_add_region. Operand ids are copied.
OpId hlo_op(Hlo *h, HloOpcode code, LocId loc, uint32_t noperands, const ValueId *operands,
            uint32_t nresults, const TypeId *result_types);
RegionId hlo_op_add_region(Hlo *h, OpId op, uint32_t nargs, const TypeId *arg_types);
void hlo_region_push(Hlo *h, RegionId r, OpId op);
void hlo_op_set_operands(Hlo *h, OpId op, uint32_t n, const ValueId *operands);
HloAttr *hlo_attr_slot(Hlo *h, OpId op, HloAttrKey key); // asserts the row has it
const int64_t *hlo_ints_dup(Hlo *h, const int64_t *v, size_t n);
void hlo_set_ints(Hlo *h, OpId id, HloAttrKey key, const int64_t *v, uint32_t n); // n: of INTS2 too, in rows of 2
void hlo_set_int(Hlo *h, OpId id, HloAttrKey key, int64_t v); // INT, BOOL and ENUM, as the attribute's row says

// What passes make most, in no region yet.
OpId hlo_op_splat(Hlo *h, LocId loc, TypeId type, const void *one); // a constant, every element `one`
OpId hlo_op_constant(Hlo *h, LocId loc, TypeId type, const void *data, size_t bytes);
// The op with other operands and another type: the same attributes, shared until somebody owns them.
OpId hlo_op_like(Hlo *h, const HloOp *op, const ValueId *operands, TypeId type);
void hlo_op_own_attrs(Hlo *h, OpId id); // before slots of an op are changed whose attributes others may share
OpId hlo_op_transpose(Hlo *h, LocId loc, ValueId v, const int64_t *perm);
typedef struct DotPairs { // pairs of dimensions of a product's operands
    uint32_t nb, nc;
    const int64_t *lb, *rb, *lc, *rc; // batching, contracting
} DotPairs;
// A dot_general; precision: of another op (AK_PRECISION_CONFIG), NULL: the default.
OpId hlo_op_dot(Hlo *h, LocId loc, ValueId lhs, ValueId rhs, DotPairs dims, TypeId type, const HloAttr *precision);
void hlo_op_add_combiner(Hlo *h, OpId op, HloOpcode code, TypeId scalar); // the region (a, b) -> code(a, b)

// A region of `parent` with what the region `body` of another graph has; that must outlive this one. All ops get `loc`.
RegionId hlo_take(Hlo *h, OpId parent, const Hlo *from, RegionId body, LocId loc);

// --- asking -----------------------------------------------------------------------------------
static inline HloOp *hlo_at(const Hlo *h, OpId id) { return &h->ops.at[id]; }
static inline const HloOpRow *hlo_row(const HloOp *op) { return &hlo_op_rows[op->code]; }
static inline const HloType *hlo_type(const Hlo *h, TypeId t) { return &h->types.at[t]; }
static inline const HloType *hlo_value_type(const Hlo *h, ValueId v) {
    return &h->types.at[h->values.at[v].type];
}
static inline ValueId hlo_operand(const Hlo *h, const HloOp *op, uint32_t i) {
    return h->operands.at[op->operands + i];
}
static inline HloRegion *hlo_op_region(const Hlo *h, const HloOp *op, uint32_t i) {
    return &h->regions.at[h->op_regions.at[op->regions + i]];
}
// The op that makes a value, NULL for an argument; with a code: only one of that kind.
static inline const HloOp *hlo_def(const Hlo *h, ValueId v) {
    OpId def = h->values.at[v].def;
    return def ? &h->ops.at[def] : NULL;
}
static inline const HloOp *hlo_def_as(const Hlo *h, ValueId v, HloOpcode code) {
    const HloOp *op = hlo_def(h, v);
    return op && op->code == code ? op : NULL;
}
// A tensor of known sizes and elements of our types, neither quantised nor encoded; with elements: not empty.
static inline bool hlo_is_plain(const HloType *t) { return t->kind == HT_TENSOR && !t->dynamic && !t->text; }
static inline bool hlo_has_elems(const HloType *t) { return hlo_is_plain(t) && t->elems > 0; }
static inline bool hlo_same_dims(const HloType *a, const HloType *b) {
    return a->rank == b->rank && (!a->rank || !memcmp(a->dims, b->dims, a->rank * sizeof *a->dims));
}
static inline bool hlo_is(const HloOp *op, HloTrait trait) { return hlo_op_rows[op->code].traits & trait; }
static inline bool hlo_is_elementwise(const HloOp *op) { return hlo_op_rows[op->code].cls <= HC_EW3; }
const HloAttr *hlo_attr(const HloOp *op, HloAttrKey key); // NULL when absent (no slot or HA_NONE)
int64_t hlo_int(const HloOp *op, HloAttrKey key, int64_t dflt);
const int64_t *hlo_ints(const HloOp *op, HloAttrKey key, uint32_t *n); // n = 0 when absent
const char *hlo_attr_str(const HloOp *op, HloAttrKey key); // "" when absent
const HloNamed *hlo_named_find(const HloNamed *list, uint32_t n, const char *name);
const char *hlo_named_text(const HloNamed *list, uint32_t n, const char *name); // of a string, else ""
size_t hlo_type_bytes(const HloType *t); // host bytes of a static tensor
HloFunc *hlo_func_find(Hlo *h, const char *name); // hashed; NULL when absent
void hlo_keep_only(Hlo *h, const HloFunc *f); // drops every other function
HloFunc *hlo_main(Hlo *h); // "main", else the only public function; raises VERIFY when there is none
// The user's place: first file location on the way from loc; the op's own text position otherwise.
Place hlo_place(const Hlo *h, LocId loc);
bool hlo_loc_is_users(const Hlo *h, LocId loc); // that place is a file's, not the program's own text
const char *hlo_arg_name(const Hlo *h, const HloFunc *f, uint32_t i); // what the front end calls it, or ""
const char *hlo_loc_name(const Hlo *h, LocId loc); // the outermost NAME ("jit(step)/add"), or ""
_Noreturn void hlo_fail(Hlo *h, OpId op, otrn_status code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5))); // names the op and its place

int hlo_broadcast_base(int code); // chlo.broadcast_add: stablehlo.add; HLO_NONE for ops of other kinds
// Custom calls whose results are their operands: annotations, which have done their work once a program is read, and
// those that move between memories or between the shapes of one device and of all.
typedef enum HloCall { HLO_CALL_OTHER, HLO_CALL_ANNOTATES, HLO_CALL_MOVES } HloCall;
HloCall hlo_call_passes_on(const char *target);
#define HLO_HOST_CALL "opentrn_host_callback" // a custom call that runs a function of the host

// FUSED: does operand shape `in` fit results of shape `out` in the way `kind` says? See ops.def.
enum { FUSED_SAME, FUSED_ROWS, FUSED_COLUMNS, FUSED_BLOCKS }; // blocks: in ROWS only
bool hlo_fused_fits(const int64_t *in, int in_rank, const int64_t *out, int out_rank, int64_t kind);
// ROWS: rows and columns the op works on, when operands, results and region fit (see ops.def); else false, and why.
bool hlo_rows_fit(const Hlo *h, const HloOp *op, int64_t *rows, int64_t *columns, char why[128]);

// --- border: print, parse (read/read.h), verify -----------------------------------------------
void hlo_print(const Hlo *h, Buf *out, bool with_locs); // MLIR text that read_text takes back
void hlo_print_type(const Hlo *h, TypeId t, Buf *out);
void hlo_verify_op(Hlo *h, OpId id); // one that is being built: as hlo_verify, its operands' scopes and its regions' insides apart
void hlo_verify(Hlo *h); // raises VERIFY naming the op, its place and the broken constraint

// --- one element's bytes of a TENSOR attribute --------------------------------------------------
// Expands splats: writes elems*bytes to out.
void hlo_tensor_expand(const Hlo *h, const HloAttr *t, void *out);
static inline bool hlo_tensor_is_splat(const Hlo *h, const HloAttr *t) {
    const HloType *ty = hlo_type(h, t->type);
    return t->n == dtype_bytes(ty->dtype) && ty->elems != 1;
}

#endif
