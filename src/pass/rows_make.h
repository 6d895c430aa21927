// SPDX-License-Identifier: Apache-2.0
// rows_make.h — putting a row program together, of operations that are joined or of parts of others; fused work too.
#ifndef OTRN_PASS_ROWS_MAKE_H
#define OTRN_PASS_ROWS_MAKE_H

#include "hlo/users.h"
#include "pass/walk.h"

typedef struct RowsMake {
    Compile *c;
    Hlo *h;
    Values operands; // outside
    VEC(int64_t) kinds;
    OpId op;
    RegionId region;
    int64_t columns;
    bool fused; // otrn.fused: one element's work
    bool once; // what several parts have is there once; between products it is quicker made again than held
    ValueMap map; // value of another program's region -> of this one's
} RowsMake;

// Operands first; the number of the one that is the value, new or there already.
uint32_t rows_make_operand(RowsMake *m, ValueId v, int64_t kind);
// … then the op itself; its results follow these types.
void rows_make_begin(RowsMake *m, LocId loc, int64_t columns, uint32_t nresults, const TypeId *types);
// The same with the operands of a program that is there, found by the map (NULL: as they are), and its columns.
void rows_make_like(RowsMake *m, OpId rows, const ValueMap *outside, uint32_t nresults, const TypeId *types);
static inline ValueId rows_make_arg(const RowsMake *m, uint32_t i) {
    assert(i < m->h->regions.at[m->region].nargs); // all operands come before the op
    return m->h->regions.at[m->region].args + i;
}
static inline ValueId rows_make_get(const RowsMake *m, ValueId from) { return value_map_get(&m->map, from); }
static inline void rows_make_set(RowsMake *m, ValueId from, ValueId to) { value_map_set(m->c->scratch, &m->map, from, to); }
void rows_make_copy(RowsMake *m, OpId op); // an op of the other region, its operands as mapped; rows as long as here
void rows_make_all(RowsMake *m, OpId rows); // … all of them
// Its results, in order: the value inside another program's region, and the result that it stands for from now on, 0: none.
typedef struct RowsResults {
    Values inner, old;
    VEC(TypeId) types;
} RowsResults;
void rows_make_result(const RowsMake *m, RowsResults *r, ValueId inner, ValueId old, TypeId type);
void rows_make_results(const RowsMake *m, RowsResults *r, OpId rows); // all that a program has
void rows_make_end(RowsMake *m, const RowsResults *r, Walk *w); // w: whoever read the old ones reads these; may be NULL
// A program that is there, with other results.
OpId rows_make_again(Walk *w, OpId rows, const RowsResults *r);
// The op that does what these did, once its operands are known, in the list in hand: `member` makes each inside, by the walk. Who reads `outputs`
// of them reads its results.
typedef ValueId RowsMember(void *of, RowsMake *m, const HloOp *op);
void rows_make_group(RowsMake *m, Walk *w, const OpList *members, int64_t columns, const Values *outputs, RowsMember *member, void *of);

// Questions about programs that are there.
ValueId rows_returned(const Hlo *h, OpId rows, uint32_t k); // inside the region
// The product with up to `most` contracted elements that makes operand i of a row program, for it alone; 0: none.
#define SCORE_NARROW 128
OpId rows_score(const Hlo *h, const Users *u, OpId rows, uint32_t i, int64_t most);

#endif
