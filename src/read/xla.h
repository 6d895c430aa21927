// SPDX-License-Identifier: Apache-2.0
// xla.h — programs in XLA's own form, HLO: what the files of that reader share.
//
//   xla_pb.c      protocol buffers on the wire: fields of a message, lists of numbers
//   xla.c         HloModuleProto to graph: computations, functions, arguments, aliases
//   xla_inst.c    an instruction: its operands, regions and results; tuples; control flow
//   xla_attr.c    its attributes, constants, types and places
//   xla_open.c    shapes that are left out
//   xla_shard.c   what it says of devices
//   xla_text.c    HLO text to the protocol buffer it stands for: module, computations, instructions
//   xla_text_attr.c  … its attributes, shapes and constants
//
// Text is only another way to write the messages, so there is one road, and one table of attributes, for both.
//
// HLO says the same as StableHLO in other words. An instruction has one value, perhaps a tuple; here each is the list of the
// arrays in it, so tuples vanish: taking an element is taking a part of the list. Computations that an instruction names
// are built into its regions, once for each use; called ones become functions. Layouts say how XLA would lay a value
// out and are not ours, but for constants, whose bytes follow them.
//
// A message is read where it lies, field by field when one is asked for; nothing of it is trusted.
#ifndef OTRN_READ_XLA_H
#define OTRN_READ_XLA_H

#include "hlo/hlo.h"

#define XLA_MAX_DEPTH 200     // computations, and shapes, inside one another
#define XLA_SHARDING_TEXT 1000 // fields of ours: the sharding of an instruction as text has it,
#define XLA_PARTITIONS 1001    // how many devices a module is for
#define XLA_MAX_MADE 4000000u // instructions, each counted as often as it is built

typedef struct Pb { // a message, or the bytes of a field
    const uint8_t *at;
    size_t n;
} Pb;

typedef struct PbField {
    uint32_t number, wire;
    uint64_t value; // of a number
    Pb bytes;       // of text, a message or a packed list
} PbField;

typedef struct XlaId { // of an instruction or computation
    int64_t id;
    uint32_t index;
} XlaId;

typedef struct XlaComp {
    Pb *insts;
    Pb *shapes;       // of instructions; one that is left out is empty until it is built
    XlaId *ids;       // of instructions, sorted
    uint32_t *params; // by number: the instruction
    uint32_t ninsts, nparams, root;
    const char *name;
    const char *func; // name of the function made of it, or NULL
} XlaComp;

typedef struct XlaVals { // what stands for an instruction: the arrays of its value
    const ValueId *at;
    uint32_t n;
} XlaVals;

typedef struct Xla {
    Ctx *ctx;
    Arena *arena;
    Hlo *h;
    XlaComp *comps;
    XlaId *ids; // of computations, sorted
    uint32_t ncomps, depth, made;
    Pb frames; // StackFrameIndexProto
    const Pb *files, *places, *stack; // its lists
    uint32_t nfiles, nplaces, nstack;
    LocId loc; // of the instruction at hand
    Pb shape;  // of the one just built
    bool cut;  // a sharding was seen
    bool open; // results that say nothing are cut as it comes
} Xla;

// An attribute of an operation: where the message has it and how it is called in text.
typedef enum XlaHow { XLA_ALL, XLA_FIRST, XLA_ONE, XLA_FLAG, XLA_ENUM } XlaHow; // a list, its first number, a number, a boolean, a name's number
typedef struct XlaRow {
    uint16_t code;
    uint8_t field, inside, how, key; // inside: field of the message there, or 0
    const char *text;
} XlaRow;

typedef struct XlaKind { // of elements: XLA's number, and the field of a literal that holds such
    uint8_t number, field, dtype;
    const char *text;
} XlaKind;

typedef VEC(TypeId) XlaTypes;

_Noreturn void xla_fail(Xla *x, otrn_status code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

// --- xla_pb.c
bool pb_next(Xla *x, Pb *left, PbField *f);                     // takes the next field; false at the end
bool pb_find(Xla *x, Pb m, uint32_t number, PbField *f);        // the last one of that number
Pb pb_bytes(Xla *x, Pb m, uint32_t number);                     // empty when absent
int64_t pb_int(Xla *x, Pb m, uint32_t number);                  // 0 when absent
const char *pb_text(Xla *x, Pb m, uint32_t number);             // "" when absent
const int64_t *pb_ints(Xla *x, Pb m, uint32_t number, uint32_t *n); // packed or one by one
const Pb *pb_list(Xla *x, Pb m, uint32_t number, uint32_t *n);  // messages or texts

// --- xla.c
XlaComp *xla_comp(Xla *x, int64_t id, const XlaComp *user); // raises when it is not before its user
int64_t xla_find(const XlaId *ids, uint32_t n, int64_t id); // index, or -1
// An instruction's number inside its computation: XLA of late 2025 puts the computation's into the upper half, of some uses only.
static inline int64_t xla_local(int64_t id) { return id & UINT32_MAX; }
// Builds the computation's instructions into a region; the root's values.
XlaVals xla_build(Xla *x, XlaComp *c, RegionId into, const XlaVals *params);
void xla_return(Xla *x, RegionId into, XlaVals v);
void xla_params(Xla *x, const XlaComp *c, XlaTypes *types);                       // flat
const XlaVals *xla_args(Xla *x, const XlaComp *c, ValueId first);                 // as xla_params lists them
const char *xla_func(Xla *x, XlaComp *c);                                         // name of the function it becomes

// --- xla_inst.c
HloOpcode xla_code(const char *opcode); // HLO_NONE: not an operation of ours
XlaVals xla_inst(Xla *x, XlaComp *c, RegionId into, uint32_t index, const XlaVals *vals, const XlaVals *params);

// --- xla_attr.c
void xla_shape(Xla *x, Pb shape, XlaTypes *types); // the arrays of a shape
uint32_t xla_leaves(Xla *x, Pb shape);             // how many
LocId xla_loc(Xla *x, Pb m);
HloAttr xla_literal(Xla *x, Pb literal, TypeId type);
void xla_attrs(Xla *x, OpId id, Pb m);
const XlaRow *xla_row(int code, const char *text);        // NULL when that operation has no such attribute in the table
const XlaKind *xla_kind(const char *text, int dtype);     // by text, or where that is NULL by dtype; NULL: not known
// Device numbers 0, 1, … reshaped to these dimensions and transposed; NULL when they are not `want` of them or make no sense.
const int64_t *xla_iota(Arena *a, const int64_t *dims, uint32_t n, const int64_t *perm, uint32_t nperm, int64_t want);
bool xla_kind_varint(int dtype);                          // its literals are numbers of varying length

// --- xla_open.c
uint32_t xla_open_count(HloOpcode code, uint32_t noperands);     // results of an instruction whose shape is left out
void xla_open_close(Xla *x, OpId id, const char *opcode);        // their types, once its attributes and regions are there
Pb xla_open_tuple(Xla *x, const Pb *members, uint32_t n);        // a message for the shape of a tuple
Pb xla_open_shape(Xla *x, XlaVals v);                            // … of what these values are together

// --- xla_shard.c
const char *xla_frontend(Xla *x, Pb attributes, const char *key); // what a front end says under that name; NULL: nothing
const char *xla_sharding(Xla *x, Pb inst); // as GSPMD's attribute says it; NULL: not said
const HloNamed *xla_sharded(Xla *x, const char *text, uint32_t k, uint32_t *n); // that attribute for the k-th array, or none

#endif
