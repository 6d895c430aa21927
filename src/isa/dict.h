// SPDX-License-Identifier: Apache-2.0
// dict.h — an artifact's dictionary: strings once each, and what its numbers mean.
//
// A file refers to ops, attributes, instructions and element types by name; the numbers inside it
// index its own lists of names. The writer interns strings in order of first use, so equal programs
// give equal bytes. The reader resolves a name the first time it is used.
#ifndef OTRN_ISA_DICT_H
#define OTRN_ISA_DICT_H

#include "base/arena.h"
#include "base/bytes.h"
#include "coll/shape.h"
#include "isa/isa.h"

typedef struct DictStr {
    const char *s; // NUL-terminated, no NUL inside
    uint32_t n;
    uint16_t op;  // HloOpcode it names + 1; 0 = not looked up yet
    uint16_t key; // HloAttrKey it names + 1
} DictStr;

typedef struct DictShape { // groups told by their shape, and their table
    IdShape shape;
    const int64_t *ids;
} DictShape;

typedef struct Dict {
    Arena *arena;
    VEC(DictStr) strs; // string 0 is ""
    uint32_t *slots;   // writer: hash table of string number + 1
    uint32_t nslots;
    VEC(DictShape) shapes; // told so far
    IsaMap map; // reader: the file's instruction and type numbers in ours
} Dict;

void dict_init(Dict *d, Arena *a);
uint32_t dict_add(Dict *d, const char *s); // NULL counts as ""
uint32_t dict_add_op(Dict *d, int op);     // "stablehlo.add"; HLO_NONE is ""
void dict_op_name(int op, Buf *out);
int dict_op_find(const char *s, size_t n); // -1 when unknown

// The string section, and the section of instruction and type names.
void dict_encode(const Dict *d, Buf *out);
void dict_decode(Dict *d, Rd *r);
void dict_encode_tables(Dict *d, Buf *out); // before dict_encode: it adds strings
void dict_decode_tables(Dict *d, Rd *r);

// Take a reference; raise PARSE when it is out of range, VERSION when this release does not know
// the name.
const char *dict_str(Dict *d, Rd *r);
int dict_op(Dict *d, Rd *r);    // HloOpcode, HLO_NONE for ""
int dict_key(Dict *d, Rd *r);   // HloAttrKey
int dict_dtype(Dict *d, Rd *r); // one byte

#endif
