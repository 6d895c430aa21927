// SPDX-License-Identifier: Apache-2.0
// epilogue.c — which products become one step with the row program that takes their tiles (pass/epilogue.c): those that
// dot_cut.c cuts, when SBUF has room for both. Products of blocks and many small ones have ways of their own.
#include "pass/rows.h"
#include "tile/product.h"

static void keep(Lower *l, const Epilogue *p) {
    Epilogue *made = ARENA_NEW(l->c->scratch, Epilogue);
    *made = *p;
    VEC_PUSH(l->c->scratch, &l->epilogues, made);
    uint32_t number = l->epilogues.n; // from 1
    l->epilogue_of[p->dot] = l->epilogue_of[p->rows] = number;
    ValueId v = hlo_operand(l->h, hlo_at(l->h, p->rows), p->index);
    if (p->keeps) {
        l->uses[v]--; // the program does not read it there
        return;
    }
    for (OpId def = l->h->values.at[v].def; def != p->dot; def = l->h->values.at[v].def) {
        l->epilogue_of[def] = number;
        v = hlo_operand(l->h, hlo_at(l->h, def), 0);
    }
}

static void try_rows(Lower *l, OpId id) {
    int64_t index = hlo_int(hlo_at(l->h, id), AK_PRODUCT, -1);
    Epilogue p;
    if (index < 0 || index > UINT32_MAX || l->block_of[id] || !epilogue_suits(&l->users, id, (uint32_t)index, &p))
        return;
    if (!l->block_of[p.dot] && !l->epilogue_of[p.dot] && !dot_is_batch(l->h, hlo_at(l->h, p.dot)) &&
        epilogue_is_ready(&l->users, &p) && dot_fits_epilogue(l->asks, &p))
        keep(l, &p);
}

// Programs of random numbers take a part of SBUF that products have else. How many elements they make is known with the steps, so it counts as taken.
static void note_draws(Lower *l, OpId id) {
    bool room = l->asks->chip->sbuf_usable_bytes - DRAWS_AREA_BEGIN >= DRAWS_AREA_MIN;
    if (room && rows_of_ints(l->h, hlo_at(l->h, id)))
        l->asks->draws_bytes = DRAWS_AREA_MIN;
}

void epilogues_find(Lower *l) {
    l->epilogue_of = ARENA_NEWN(l->c->scratch, uint32_t, l->h->ops.n);
    lower_each(l, HLO_ROWS, note_draws);
    lower_each(l, HLO_ROWS, try_rows);
}
