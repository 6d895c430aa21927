// SPDX-License-Identifier: Apache-2.0
// epilogue.c — which products become one step with the row program that takes their tiles (pass/epilogue.c): those that
// dot.c cuts, when SBUF has room for both. Products of blocks and many small ones have ways of their own.
#include "pass/rows.h"
#include "tile/dot.h"

typedef struct Find {
    Lower *l;
    Emit *e; // for questions only
    Users u;
} Find;

static void keep(Find *f, const Epilogue *p) {
    Lower *l = f->l;
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

static void try_rows(void *find, OpId id) {
    Find *f = find;
    Lower *l = f->l;
    int64_t index = hlo_int(hlo_at(l->h, id), AK_PRODUCT, -1);
    Epilogue p;
    if (index < 0 || index > UINT32_MAX || l->block_of[id] || !epilogue_suits(&f->u, id, (uint32_t)index, &p))
        return;
    if (!l->block_of[p.dot] && !l->epilogue_of[p.dot] && !dot_is_batch(l->h, hlo_at(l->h, p.dot)) &&
        epilogue_is_ready(&f->u, &p) && dot_fits_epilogue(f->e, &p))
        keep(f, &p);
}

// Programs of random numbers take a part of SBUF that products have else. How many elements they make is known with the steps, so it counts as taken.
static void note_draws(void *find, OpId id) {
    Find *f = find;
    bool room = f->e->chip->sbuf_usable_bytes - DRAWS_AREA_BEGIN >= DRAWS_AREA_MIN;
    if (room && rows_of_ints(f->l->h, hlo_at(f->l->h, id)))
        f->e->draws_bytes = DRAWS_AREA_MIN;
}

void epilogues_find(Lower *l, const ChipFile *chip) {
    Arena *a = l->c->scratch;
    l->epilogue_of = ARENA_NEWN(a, uint32_t, l->h->ops.n);
    Emit *e = ARENA_NEW(a, Emit);
    *e = (Emit){.l = l, .c = l->c, .chip = chip, .row_node = ARENA_NEWN(a, uint32_t, l->h->values.n)};
    l->asks = e;
    Find f = {.l = l, .e = e};
    users_make(&f.u, l->c->hlo, l->c->scratch, l->main->body);
    lower_each_rows(l, l->main->body, note_draws, &f);
    lower_each_rows(l, l->main->body, try_rows, &f);
}
