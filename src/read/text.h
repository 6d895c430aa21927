// SPDX-License-Identifier: Apache-2.0
// text.h — what the files of the MLIR text reader share.
//
//   text.c        entry, module, functions, regions, values in scope
//   text_lex.c    characters: space, words, numbers, strings, places, hashed names
//   text_alias.c  definitions of #x and !x, raw text of what we only carry along
//   text_loc.c    locations
//   text_type.c   types
//   text_attr.c   attribute literals of any kind
//   text_dense.c  dense<…>, array<…>, resources
//   text_slot.c   attributes of an op's row: structured ones taken apart, defaults
//   text_op.c     an op in generic form, and the parts all pretty forms share
//   text_form.c   the pretty forms
//   text_sdy.c    those of Shardy
//
// The reader walks characters, not tokens: MLIR's token rules depend on where one is (0x17 is a
// number in an attribute and two dimensions in a shape), so each routine reads what may stand
// there. Every routine skips space in front of what it reads. Lists under construction live on
// shared stacks and are cut back to the length they had.
#ifndef OTRN_READ_TEXT_H
#define OTRN_READ_TEXT_H

#include "hlo/hlo.h"

#define TEXT_MAX_DEPTH 400         // regions, attributes, types, locations inside one another
#define TEXT_MAX_EXPANSION 4000000 // what aliases and splats may unfold into, beside the text

typedef struct Span { // a piece of the text
    const char *s;
    size_t n;
} Span;

// Names, hashed. Each keeps two numbers whose meaning belongs to the table's user.
typedef struct TextName {
    Span name;
    uint32_t hash, a, b;
} TextName;

typedef struct TextMap {
    VEC(TextName) names;
    uint32_t *slots; // index + 1 into names, 0 = empty
    uint32_t cap;    // power of two
} TextMap;

typedef enum AliasState { ALIAS_NEW, ALIAS_BUSY, ALIAS_DONE } AliasState;

typedef struct TextAlias {
    const char *def; // the text behind '='
    const char *end; // behind the definition, once it was read as anything
    uint8_t attr_state, type_state, loc_state;
    HloAttr attr;
    TypeId type;
    LocId loc;
    uint64_t weight; // how many attributes and types one use stands for
} TextAlias;

typedef struct TextPos {
    uint32_t line, col;
} TextPos;

typedef struct TextBlob { // a resource: its text, and its bytes once a constant asked for them
    Span text;
    uint8_t *bytes;
    size_t n;
} TextBlob;

typedef struct TextResult { // %name or %name:count in front of an op's '=', or an argument
    Span name;
    uint32_t count;
    LocId loc; // of an argument
} TextResult;

typedef struct TextRead {
    Ctx *ctx;
    Arena *arena;
    Hlo *h;
    const char *file;
    StrId file_str;
    const char *begin, *at, *end;
    uint32_t depth;
    uint64_t weight;   // attributes and types read, since the last definition was entered
    uint64_t expanded; // how much more the text stands for than it holds
    // Ops come in text order, so the line of the next op is counted on from the last one.
    const char *line_at;
    uint32_t line;
    TextMap values;  // a: first value, b: how many; b = 0 when out of scope
    TextMap opnames; // a: opcode
    TextMap keys;    // a: attribute key + 1
    TextMap aliases; // by name with its # or !; a: index into alias
    TextMap resources; // a: index into blobs
    TextMap typetexts; // "tensor<…>" without inner brackets; a: type
    VEC(TextAlias) alias;
    VEC(TextBlob) blobs;
    VEC(HloNamed) meshes; // sdy.mesh
    VEC(uint8_t) loc_has_file; // by LocId: 1 no, 2 yes
    const char *resources_at; // the {-# block, NULL when there is none
    bool resources_read;
    VEC(uint32_t) scope; // indices into values.names, in order of definition
    // Stacks of lists under construction.
    VEC(ValueId) vals;
    VEC(TypeId) types;
    VEC(int64_t) ints;
    VEC(HloAttr) attrs;
    VEC(HloNamed) named;
    VEC(TextResult) results;
} TextRead;

// An op while it is read: it exists from the moment its operands are known; results come last.
typedef struct TextOp {
    const char *at; // its first character
    TextPos pos;
    OpId id;
    HloOpcode code;
    uint32_t results_base; // its result names on p->results
    uint32_t named_base;   // its discardable attributes on p->named
} TextOp;

// --- text_lex.c ----------------------------------------------------------------------------------
_Noreturn void text_fail(TextRead *p, const char *at, otrn_status code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
_Noreturn void text_expected(TextRead *p, const char *what); // PARSE: expected `what`, found …
void text_deeper(TextRead *p); // p->depth++, raises at the limit

void text_space(TextRead *p);
char text_peek(TextRead *p); // next character behind space, 0 at the end
bool text_eat(TextRead *p, char c);
void text_need(TextRead *p, char c);
bool text_eat_arrow(TextRead *p);            // ->
bool text_eat_word(TextRead *p, const char *word);
void text_need_word(TextRead *p, const char *word);
bool text_at_word(TextRead *p, const char *word);
bool text_at_ident(TextRead *p);
Span text_ident(TextRead *p, const char *what);      // letters, digits, _ $ .
Span text_suffix_id(TextRead *p, const char *what);  // behind % ^ # !: also digits first, and -
char *text_string(TextRead *p, uint32_t *n);         // decoded, NUL-terminated
char *text_name_string(TextRead *p);                 // a string that must not hold NUL
const char *text_symbol(TextRead *p);                // @name, @"name", @a::@b
bool text_at_int(TextRead *p);
int64_t text_int(TextRead *p, const char *what);     // decimal or hex; ui64 keeps its bits
static inline bool text_is_digit(char c) { return c >= '0' && c <= '9'; }
static inline bool text_is_alpha(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
static inline bool text_is_alnum(char c) { return text_is_digit(c) || text_is_alpha(c); }
int text_hex_digit(char c); // -1 when it is none
static inline bool span_is(Span s, const char *w) {
    return strlen(w) == s.n && !memcmp(s.s, w, s.n);
}
TextName *text_map_at(Arena *a, TextMap *m, Span name); // made when new, with a = b = 0
TextName *text_map_find(TextMap *m, Span name);         // NULL when absent

// --- text_alias.c --------------------------------------------------------------------------------
void text_alias_scan(TextRead *p);   // finds all definitions that begin a line
void text_alias_define(TextRead *p); // a definition where the reader stands: passes over it
// Counts what a short text unfolds into; raises when that has no measure.
void text_expand(TextRead *p, uint64_t more);
// What the alias at hand (#x or !x) stands for.
HloAttr text_alias_attr(TextRead *p);
TypeId text_alias_type(TextRead *p);
LocId text_alias_loc(TextRead *p);
bool text_at_alias(TextRead *p); // #x or !x, not #dialect.x or #dialect<…>
// Where the value at hand may be an alias: enter moves the reader to the definition and returns
// the place behind the use for leave (NULL when it was no alias).
const char *text_alias_enter(TextRead *p);
void text_alias_leave(TextRead *p, const char *back);
// Copies balanced text, single spaces and aliases replaced: from an opening < ( [ { to its closing
// one.
void text_raw_balanced(TextRead *p, Buf *out);

// --- text_loc.c ----------------------------------------------------------------------------------
TextPos text_pos(TextRead *p, const char *at);     // counted on from the last one: ask in order
LocId text_loc_here(TextRead *p, TextPos pos);     // the text's own line and column
// loc(…) when it stands here, else 0.
LocId text_loc_trailing(TextRead *p);
LocId text_loc_or_here(TextRead *p, LocId loc, TextPos pos); // a place for a loc without a file

// --- text_type.c ---------------------------------------------------------------------------------
TypeId text_type(TextRead *p);
bool text_at_type(TextRead *p);
TypeId text_type_scalar(TextRead *p, int dtype); // f32 by itself
bool text_type_is_odd(TextRead *p, TypeId type); // i7: a scalar the type table does not have
uint32_t text_types(TextRead *p);     // T, T, …  pushed on p->types; how many
// (T, T) -> T | (T, …): inputs pushed, then results; counts out.
void text_type_function(TextRead *p, uint32_t *ninputs, uint32_t *nresults);
void text_type_results(TextRead *p, uint32_t *nresults); // T | (T, …)

// --- text_attr.c ---------------------------------------------------------------------------------
HloAttr text_attr(TextRead *p);
// {k = v, …} with the opening brace ahead; entries sorted by name.
HloNamed *text_dict(TextRead *p, uint32_t *n);
const char *text_attr_name(TextRead *p); // key of a dictionary entry
HloNamed *text_named_take(TextRead *p, uint32_t base, uint32_t *n); // sorted copy off p->named
HloAttr text_list(TextRead *p, HloAttr (*item)(TextRead *p)); // [A, B]
uint32_t text_int_list(TextRead *p); // [1, 2] pushed on p->ints; how many
HloAttr text_ints_take(TextRead *p, uint32_t base);

// --- text_dense.c --------------------------------------------------------------------------------
HloAttr text_dense(TextRead *p);   // at "dense<" or "dense_resource<", with its type
HloAttr text_array(TextRead *p);   // at "array<"
void text_scalar(TextRead *p, int dtype, uint8_t *out); // one element, not complex

// --- text_slot.c ---------------------------------------------------------------------------------
// One entry `name = value` of an op's attributes, the reader stands behind the name: into a slot
// of the op or onto p->named.
void text_slot_entry(TextRead *p, OpId op, const char *name, const char *at);
void text_slot_value(TextRead *p, OpId op, HloAttrKey key); // `value` alone, in attribute syntax
void text_slot_word(TextRead *p, OpId op, HloAttrKey key);  // … in the syntax of pretty forms
void text_slot_set(TextRead *p, OpId op, HloAttrKey key, HloAttr value);
void text_slot_algorithm(TextRead *p, OpId op); // the < … > of a dot algorithm
void text_slot_conv(TextRead *p, OpId op);      // [b, 0, f]x[0, i, o]->[b, 0, f]
// One entry of an op, "= value", that stands by itself: a reader for such, and how much more the text stands for than it holds.
TextRead *text_make(Ctx *ctx, Arena *a, Hlo *h);
uint64_t text_slot_alone(TextRead *p, OpId op, const char *name, Span value);

// --- text_op.c -----------------------------------------------------------------------------------
void text_op(TextRead *p, RegionId into);
ValueId text_operand(TextRead *p); // %x or %x#k
void text_op_make(TextRead *p, TextOp *o, uint32_t vals_base); // operands off p->vals
void text_op_dict(TextRead *p, TextOp *o);                     // optional { … }
void text_op_results(TextRead *p, TextOp *o, uint32_t n, const TypeId *types);
void text_op_check_operands(TextRead *p, TextOp *o, uint32_t n, const TypeId *types);
// `: (T, …) -> T` or the short forms; makes the results.
void text_op_types(TextRead *p, TextOp *o);

// --- text_form.c ---------------------------------------------------------------------------------
void text_form(TextRead *p, TextOp *o);
void text_operands(TextRead *p); // %a, %b pushed on p->vals, as many as there are
void text_operands_in_parens(TextRead *p);

// --- text_sdy.c ----------------------------------------------------------------------------------
void text_form_sdy(TextRead *p, TextOp *o);
void text_sdy_collective(TextRead *p, const TextOp *o);

// --- text.c --------------------------------------------------------------------------------------
void text_bind(TextRead *p, Span name, const char *at, ValueId first, uint32_t count);
uint32_t text_scope_begin(TextRead *p);
void text_scope_end(TextRead *p, uint32_t mark);
// %a: T {attrs} loc(…): name returned, type pushed on p->types.
TextResult text_argument(TextRead *p, TypeId *type);
// { ^bb0(args): ops }: a region of the op, arguments named in the block label.
void text_region(TextRead *p, OpId parent);
// Same with the arguments already made and bound: `{ ops }`.
void text_region_body(TextRead *p, RegionId r);

#endif
