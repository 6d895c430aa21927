// SPDX-License-Identifier: Apache-2.0
// bytecode.h — what the parts of the bytecode reader share; nobody else includes it.
//
//   bytecode.c        container: varints, sections, strings, dialects, entries; entry point
//   bytecode_attr.c   builtin attributes, locations, tensors' bytes
//   bytecode_type.c   builtin and VHLO types
//   bytecode_ir.c     modules, functions, ops, regions, value numbers
//   vhlo.c            VHLO attributes, what an op's slots want of them, versions of ops
//   bytecode_raw.c    programs in StableHLO's own form
//   vhlo_sdy.c        Shardy and mesh attributes, carried along as text
//
// Attributes and types are table entries that refer to each other in any direction. An entry is
// decoded when something asks for it and then remembered, so the work is linear in the file.
// Invariants that make hostile input harmless:
//   1. every index is checked against its table, every count against the bytes left;
//   2. an entry that is asked for while it is being decoded is a cycle and refused;
//   3. recursion goes through bc_enter, which knows a named limit, and no entry is higher than that
//      either, so those who walk the graph later may recurse; chains of locations use none;
//   4. what grows beyond the file's own bytes (texts, splats written out, entries shared by many
//      others) is paid from a budget.
#ifndef OTRN_READ_BYTECODE_H
#define OTRN_READ_BYTECODE_H

#include "base/num.h"
#include "hlo/hlo.h"

#define BC_NEWEST_VERSION 6        // of the container
#define BC_MAX_DEPTH 256           // nesting of attributes, types and regions
#define BC_MAX_TEXT (1u << 20)     // bytes of one attribute kept as text
#define BC_BUDGET_BASE (64u << 20) // bytes that may be made beyond BC_BUDGET_FACTOR times the file
#define BC_BUDGET_FACTOR 16
#define BC_NO_ATTR UINT32_MAX // where an op has no attributes, or no record
#define BC_LIGHT 64 // entries of up to this weight are free

#define VHLO_NEWEST_MAJOR 1
#define VHLO_NEWEST_MINOR 20

// RAW: dialects that text has, too; QUANT has types only.
typedef enum BcDialect { BD_OTHER, BD_BUILTIN, BD_VHLO, BD_SDY, BD_RAW, BD_QUANT } BcDialect;
typedef enum BcState { BS_NEW, BS_BUSY, BS_DONE } BcState;

typedef struct BcSpan { // bytes of the file, or of the arena's copy for strings
    const uint8_t *at;
    size_t n;
} BcSpan;

typedef struct BcEntry { // an undecoded attribute or type
    BcSpan bytes;
    uint32_t dialect; // index in Bc.dialects
    bool custom;      // dialect-defined bytes, else text
    uint8_t state;    // BcState
    uint16_t height;  // levels of entries below and with this one
    uint32_t weight;  // entries below and with this one, each as often as it would be written out
} BcEntry;

typedef struct BcAttr {
    BcEntry entry;
    uint8_t loc_state, slot_key; // slot_key: the key `slot` was made for, AK_NONE when not yet
    LocId loc;
    HloAttr value; // general form
    HloAttr slot;  // form wanted by an op's slot
} BcAttr;

typedef struct BcType {
    BcEntry entry;
    TypeId id;
    uint8_t dtype;    // of a scalar (element) type, DT_INVALID otherwise
    const char *text; // of a scalar that dtype does not tell whole (quantised, i7, …), or NULL
} BcType;

typedef enum BcOpKind { BO_UNSEEN, BO_OP, BO_MODULE, BO_FUNC, BO_MESH, BO_UNKNOWN } BcOpKind;
typedef struct BcOpName {
    const char *name; // without dialect
    uint32_t dialect;
    bool registered; // its property record follows its attribute list
    uint8_t kind;    // BcOpKind, found on first use
    uint16_t code;   // HloOpcode
    uint32_t version;
    uint32_t present; // bit i: slot i of the row stands in this op version's record
    uint8_t gone;     // HloAttrKey that this version has and the row has no more, AK_NONE
    uint8_t gone_at;  // slot before which it stands in the record
    const struct RawItem *items; // of a RAW dialect: what its record holds, NULL when not yet asked for
    uint32_t nitems;
    BcSpan rest; // of the record read last, behind those
} BcOpName;

typedef struct BcDialectName {
    const char *name;
    uint8_t known; // BcDialect
} BcDialectName;

typedef struct BcFrame { // value numbers of one open region: [base, base + size)
    uint64_t base, size;
    uint32_t first; // of its values in Bc.values; as many as are defined follow
} BcFrame;

typedef struct Bc {
    Ctx *ctx;
    Arena *arena;
    Hlo *h;
    const char *name; // file name for messages
    BcSpan file;
    uint64_t version;
    const char *producer;
    BcSpan *strs, *props, *resources;
    BcDialectName *dialects;
    BcOpName *opnames;
    BcAttr *attrs;
    BcType *types;
    uint32_t nstrs, nprops, nresources, ndialects, nopnames, nattrs, ntypes;
    uint32_t depth;        // entries and regions being decoded, one inside the other
    uint32_t decoding;     // entries among those
    uint32_t child_height; // tallest entry the one being decoded has asked for so far
    uint32_t child_weight; // of all it has asked for
    uint64_t budget;       // bytes that may still be made
    VEC(BcFrame) frames;
    VEC(ValueId) values;
    uint32_t scope; // first frame that is visible: isolated ops hide what is around them
    VEC(TypeId) type_scratch;
    VEC(ValueId) value_scratch;
    VEC(uint32_t) loc_stack;
    VEC(HloNamed) meshes;
    struct TextRead *text; // for attributes told as text, made when one is met
} Bc;

// Takes one (name, value index) of a dictionary or record.
typedef void BcTake(Bc *b, void *arg, const char *name, uint32_t value);

// --- bytecode.c: primitives ---------------------------------------------------------------------
uint64_t bc_varint(Rd *r);
int64_t bc_svarint(Rd *r);
uint64_t bc_flagged(Rd *r, bool *flag); // value << 1 | flag
uint32_t bc_index(Rd *r, uint32_t count, const char *what);
uint32_t bc_check(Rd *r, uint64_t index, uint32_t count, const char *what);
uint32_t bc_count(Rd *r); // of items of at least one byte each
Rd bc_rd(const Bc *b, BcSpan s);
BcSpan bc_section(Rd *r, uint8_t *id); // header, padding and payload of one section
const BcSpan *bc_str(Bc *b, Rd *r);    // a string reference; NUL-terminated, n without the NUL
void bc_done(Rd *r, const char *what); // raises when bytes are left
void bc_enter(Bc *b, Rd *r);           // one level deeper
void bc_leave(Bc *b);
// Around decoding one entry; the result of begin goes to end. Seen: it was decoded before.
typedef struct BcOuter { // child_height and child_weight of the entry around
    uint32_t height, weight;
} BcOuter;
BcOuter bc_entry_begin(Bc *b, Rd *r, BcEntry *e);
void bc_entry_end(Bc *b, Rd *r, BcEntry *e, BcOuter outer);
void bc_entry_seen(Bc *b, const BcEntry *e);
void bc_spend(Bc *b, uint64_t bytes);

// --- bytecode_attr.c ----------------------------------------------------------------------------
const HloAttr *bc_attr(Bc *b, uint32_t i);
const HloAttr *bc_attr_ref(Bc *b, Rd *r); // reads the reference too
uint32_t bc_attr_index(Bc *b, Rd *r);
LocId bc_loc(Bc *b, uint32_t i);
double bc_f64(Rd *r);
HloAttr bc_number(Bc *b, Rd *r); // type, then the integer or float of that type
HloAttr bc_list(Bc *b, Rd *r);   // list of attributes
HloAttr bc_dict(Bc *b, Rd *r);   // list of (string attribute, attribute)
HloAttr bc_tensor(Bc *b, Rd *r, TypeId type, BcSpan blob);
HloAttr bc_text(Bc *b, Buf *text); // as HA_OPAQUE
void bc_text_check(Bc *b, Rd *r, const Buf *text);
BcSpan bc_blob(Rd *r);
bool bc_is_name(const HloAttr *a); // a string without zero bytes

// --- bytecode_type.c ----------------------------------------------------------------------------
const BcType *bc_type(Bc *b, uint32_t i);
const BcType *bc_type_ref(Bc *b, Rd *r);
const char *bc_double(char out[NUM_TEXT_BYTES], double v); // in the one form all texts use

// --- vhlo.c -------------------------------------------------------------------------------------
HloAttr vhlo_attr(Bc *b, Rd *r, uint32_t i, uint64_t code); // behind its code
HloAttr vhlo_slot(Bc *b, HloAttrKey key, uint32_t i); // the attribute in the form attrs.def wants
HloAttr vhlo_slot_default(HloAttrKey key);            // of an attribute an old op version lacks
void vhlo_op_resolve(Bc *b, BcOpName *name);          // fills kind, code, version, present

int vhlo_since(uint16_t code, HloAttrKey key);        // the version of the op that has it first

// --- bytecode_raw.c -----------------------------------------------------------------------------
uint64_t raw_vhlo_code(const char *dialect, uint64_t code); // the code VHLO has for it, 0: none
bool raw_attr(Bc *b, Rd *r, uint32_t i, HloAttr *value);    // false: its code is unknown
void raw_fill(Bc *b, BcOpName *name, OpId id, uint32_t attrs, uint32_t props);
void raw_record(Bc *b, BcOpName *name, BcSpan record, BcTake *take, void *arg);

// --- vhlo_sdy.c ---------------------------------------------------------------------------------
HloAttr sdy_attr(Bc *b, uint32_t i);
HloAttr vhlo_mesh_attr(Bc *b, Rd *r, uint64_t code, bool raw); // axis and mesh attributes; raw: as StableHLO has them

// --- bytecode_ir.c ------------------------------------------------------------------------------
void bc_read_ir(Bc *b, BcSpan section);
void bc_dict_walk(Bc *b, uint32_t i, BcTake *take, void *arg);
uint32_t bc_record_dict(Bc *b, BcSpan record); // of an op its writer did not know

#endif
