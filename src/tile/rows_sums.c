// SPDX-License-Identifier: Apache-2.0
// rows_sums.c — sums over the rows of what a row program makes, while its tiles are in SBUF: gradients of scales and shifts of norms, variances of
// batch norm.
//
//   row program ──► x [rows][n] ──► ones · x          reads x in HBM once more; where nobody else reads it, x is stored for that alone
//   row program ──► parts [2][128][n] ──► ones · parts
//
// pass/sums.c has written such a sum as a product with a row of one number. Each tile's rows add up on the vector engine, partition by partition; what
// that leaves is stored, and the product sums it up. Rows of the first and of the second half have parts of their own, so two cores that share the
// program by halves give the bits of one.
//
// The order in which a sum adds up is another one then, and results may not depend on the chip. So the choice depends on the program alone, and
// on the prices of the machine of reference. Programs that may become one step with products, and values that a product takes sums of
// while it has them (sums.c), are left alone, whether or not this chip does so.
#include "hlo/dot.h"
#include "mach/cost.h"
#include "tile/product.h"
#include "tile/lower.h"
#include "tile/rows.h"
#include "tile/layout.h"

#define PRODUCT_COLS_MAX 512 // of a product behind a program in one step with it (block.c)

// The product is such a sum.
static bool is_sum(const Lower *l, const HloOp *dot) {
    if (dot->code != HLO_DOT_GENERAL || !dot_on_tensor_engine(l->h, dot) || !lower_is_set(l, dot) || dot_is_batch(l->h, dot))
        return false;
    Product p = dot_product(l->h, dot, 0);
    return nest_size(&p.batch) == 1 && nest_size(&p.m) == 1 && p.stype == DT_F32 && p.k.axis[0].dst == p.n.axis[0].n && p.n.axis[0].src == 1;
}

// It may become one step with the product that makes an operand (block.c).
static bool may_follow(const Lower *l, const HloOp *rows) {
    for (uint32_t i = 0; i < rows->noperands; i++) {
        OpId def = l->h->values.at[before_reshapes(l->h, hlo_operand(l->h, rows, i))].def;
        Side s;
        if (!def || hlo_at(l->h, def)->code != HLO_DOT_GENERAL || !dot_on_tensor_engine(l->h, hlo_at(l->h, def)))
            continue;
        side_init(&s, l->h, hlo_at(l->h, def), false);
        if (s.k_size <= 2 * PARTITIONS)
            return true;
    }
    return hlo_int(rows, AK_PRODUCT, -1) >= 0;
}

typedef struct Readers { // of a value, through reshapes
    uint32_t sums, products, others;
    OpId sum;
    bool may_lead; // … of a product that may become one step with the program
} Readers;

static void read_users(const Lower *l, ValueId v, RegionId r, Readers *out) {
    for (Reader by = readers_of(&l->users, v); reader_next(&by);) {
        if (l->users.region[by.id] != r) {
            out->others++;
        } else if (by.op->code == HLO_RESHAPE) {
            read_users(l, by.op->results, r, out);
        } else if (is_sum(l, by.op) && hlo_operand(l->h, by.op, 1) == v) {
            out->sums++, out->sum = by.id;
        } else if (by.op->code == HLO_DOT_GENERAL && dot_on_tensor_engine(l->h, by.op)) {
            Side s;
            side_init(&s, l->h, by.op, hlo_operand(l->h, by.op, 0) == v);
            out->products++, out->may_lead |= !lower_is_set(l, by.op) && s.free_size <= PRODUCT_COLS_MAX;
        } else {
            out->others++;
        }
    }
}

// By the machine of reference: a transfer less of each element, or two, for an instruction more.
static bool pays(int64_t elems, int64_t n, bool gone) {
    const ChipFile *c = cost_reference();
    double spared = cost_dma(c, (double)elems * 4 * (gone ? 2 : 1)) - cost_dma(c, 2.0 * 2 * PARTITIONS * (double)n * 4);
    return spared > cost_pass(c, ENG_VECTOR, (double)elems / PARTITIONS);
}

// Fills a row program's sums; how many there are.
static uint32_t find(const Lower *l, OpId id, RowSum *out) {
    const HloOp *op = hlo_at(l->h, id);
    uint32_t count = 0;
    int64_t rows, cols;
    if (!rows_shape(l->h, op, &rows, &cols) || may_follow(l, op))
        return 0;
    const HloOp *ret = region_return(l->h, hlo_op_region(l->h, op, 0));
    for (uint32_t i = 0; i < op->nresults; i++) {
        Readers r = {0};
        const HloType *t = hlo_value_type(l->h, op->results + i);
        bool whole = hlo_value_type(l->h, hlo_operand(l->h, ret, i))->rank == 1 && t->elems == rows * cols;
        read_users(l, op->results + i, l->users.region[id], &r);
        if (r.may_lead)
            return 0;
        if (!whole || t->dtype != DT_F32 || r.sums != 1 || r.products || count == ROW_SUMS_MAX)
            continue;
        int64_t n = dot_product(l->h, hlo_at(l->h, r.sum), 0).n.axis[0].n;
        if (pays(t->elems, n, !r.others))
            out[count++] = (RowSum){.rows = id, .dot = r.sum, .result = i, .n = n, .gone = !r.others};
    }
    return count;
}

// What nobody reads any more has no buffer, and neither have its reshapes.
static void forget(Lower *l, ValueId v, uint32_t number) {
    for (Reader by = readers_of(&l->users, v); reader_next(&by);)
        if (by.op->code == HLO_RESHAPE) {
            l->row_sum_of[by.id] = number;
            forget(l, by.op->results, number);
        }
}

// Sums of the same number of columns: as many as a partition's rows side by side have, or a part of them.
static void try_rows(Lower *l, OpId id) {
    RowSum found[ROW_SUMS_MAX];
    if (l->block_of[id] || l->epilogue_of[id] || l->wedge_of[id] || lower_kind(l, hlo_at(l->h, id), NULL) != STEP_ROWS || rows_of_ints(l->h, hlo_at(l->h, id)))
        return;
    uint32_t n = find(l, id, found), first = l->row_sums.n + 1, kept = 0;
    for (uint32_t i = 0; i < n; i++)
        if (found[i].n == found[0].n) {
            found[kept++] = found[i];
            VEC_PUSH(l->c->scratch, &l->row_sums, found[i]);
        }
    if (!kept)
        return;
    l->row_sum_of[id] = first;
    if (!rows_suit_sums(l->asks, id)) {
        l->row_sum_of[id] = 0;
        l->row_sums.n -= kept;
        return;
    }
    for (uint32_t i = 0; i < kept; i++) {
        l->row_sum_of[found[i].dot] = first + i;
        if (found[i].gone)
            forget(l, hlo_at(l->h, id)->results + found[i].result, first + i);
    }
}

void row_sums_find(Lower *l) {
    l->row_sum_of = ARENA_NEWN(l->c->scratch, uint32_t, l->h->ops.n);
    lower_each(l, HLO_ROWS, try_rows);
}

uint32_t row_sums_of(const Lower *l, OpId rows, RowSum **out) {
    uint32_t first = l->row_sum_of[rows], n = 0;
    while (first && first - 1 + n < l->row_sums.n && l->row_sums.at[first - 1 + n].rows == rows)
        n++;
    *out = n ? &l->row_sums.at[first - 1] : NULL;
    return n;
}
