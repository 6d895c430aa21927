// SPDX-License-Identifier: Apache-2.0
// dot.c — dot_general as products (product.h): what of one a core does, whether several go together, and the row program behind it.
#include <assert.h>

#include "hlo/dot.h"
#include "pass/rows.h"
#include "tile/lower.h"
#include "tile/product.h"
#include "tile/layout.h"

#define ROOM_LEAST 8192u // bytes of SBUF beside an epilogue, a unit of them, for elements of two bytes
#define ROWS_FIRST 0.1 // cut by rows rather than by columns: what follows is mostly, and then needs no meeting
#define LOW_CUT 64 // columns at which a low and narrow product is cut: fewer take the array as long
#define TOGETHER_MIN 4
#define TOGETHER_BYTES 8192 // of small products, each side

Product dot_product(const Hlo *h, const HloOp *op, OpId stored_as) {
    Side l, r, o;
    side_init(&l, h, op, false), side_init(&r, h, op, true);
    bool dense = side_of_result(&o, h, op, stored_as);
    assert(dense);
    (void)dense;
    Product p = {.stype = hlo_value_type(h, hlo_operand(h, op, 0))->dtype, .dtype = hlo_value_type(h, op->results)->dtype};
    p.batch.rank = (int)l.nbatch;
    for (int i = 0; i < p.batch.rank; i++) {
        p.batch.axis[i] = (Axis){l.batch_dims[i], l.batch_strides[i], r.batch_strides[i]};
        p.batch_out[i] = o.batch_strides[i];
    }
    p.k = (Nest){.axis = {{l.k_size, l.k_stride, r.k_stride}}, .rank = 1};
    p.m = (Nest){.axis = {{l.free_size, l.free_stride, o.free_stride}}, .rank = 1};
    p.n = (Nest){.axis = {{r.free_size, r.free_stride, 1}}, .rank = 1};
    return p;
}

Product dot_of(const Lower *l, OpId id, OpId stored_as) {
    Product p = dot_product(l->h, hlo_at(l->h, id), stored_as);
    if (l->row_sum_of[id])
        p.k.axis[0] = (Axis){2 * PARTITIONS, p.k.axis[0].src, p.n.axis[0].n};
    return p;
}

// Products of which m and k fit the array: so many results fit a bank.
static int64_t together(const Product *p) {
    int64_t m = p->m.axis[0].n, n = p->n.axis[0].n, k = p->k.axis[0].n;
    int64_t room = TOGETHER_BYTES / (int64_t)dtype_bytes(p->stype) / max64(m, n), some = min64(min64(PSUM_BANK_COLS / n, room), nest_size(&p->batch));
    return m <= PARTITIONS && k <= PARTITIONS && some >= TOGETHER_MIN ? some : 1;
}

bool dot_is_batch(const Hlo *h, const HloOp *op) {
    if (!dot_on_tensor_engine(h, op))
        return false;
    const ValueId of[] = {hlo_operand(h, op, 0), hlo_operand(h, op, 1), op->results};
    for (size_t i = 0; i < 3; i++)
        if (hlo_value_type(h, of[i])->elems >= INT32_MAX)
            return false;
    Product p = dot_product(h, op, 0);
    return together(&p) > 1;
}

// Bytes of an element that the program loads or stores by rows of the product: of the narrowest, of all together.
static void bytes_beside(const Hlo *h, OpId program, uint32_t product, int64_t *narrowest, int64_t *all) {
    const HloOp *rows = hlo_at(h, program);
    const int64_t *kinds = rows_kinds(rows);
    *narrowest = 8, *all = 0;
    for (uint32_t i = 0; i < rows->noperands + rows->nresults; i++) {
        bool loads = i < rows->noperands;
        if (loads && (i == product || kinds[i] != FUSED_SAME))
            continue;
        int64_t bytes = (int64_t)dtype_bytes(hlo_value_type(h, loads ? hlo_operand(h, rows, i) : rows->results + i - rows->noperands)->dtype);
        *narrowest = min64(*narrowest, bytes), *all += bytes;
    }
}

static uint32_t room_bytes(Room r) { return r.end[0] - r.at[0] + (r.end[1] > r.at[1] ? r.end[1] - r.at[1] : 0); }

// Room for the row program: several tiles of rows whose transfers are short else, where there is enough, three in work at least; else two, narrower ones then.
// Four in work where transfers are long: an update waits for HBM before and behind its instructions.
static RowOp *fit_rows(ProductJob *j, const Step *s, const Epilogue *p) {
    int64_t narrowest, all, n = j->n_hi;
    bytes_beside(j->e->l->h, p->rows, p->index, &narrowest, &all);
    j->beside = all;
    bool is_short = min64(n, PSUM_BANK_COLS) * narrowest <= 2 * PSUM_BANK_COLS;
    bool is_tiny = (double)(n * (int64_t)dtype_bytes(j->p.dtype)) < j->e->chip->dma_descriptor_bytes; // one by one they take longer than the program alone
    static const struct { uint32_t width, sets, slots; } ways[] = {{1024, 3, 4}, {1024, 2, 4}, {512, 4, 4}, {512, 3, 4}, {512, 3, 3}, {512, 2, 3}, {256, 2, 3}, {128, 2, 3}};
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
        for (uint32_t bytes = 16384; bytes <= 49152 && (ways[w].width <= PSUM_BANK_COLS ? !is_tiny : is_short); bytes += 8192) {
            if (room_bytes(product_room(j->e, ROWS_AREA_BEGIN - bytes, false)) < ways[w].slots * ROOM_LEAST * (dtype_bytes(j->p.stype) > 2 ? 2 : 1))
                break;
            RowOp *r = rows_epilogue(j->e, s, p, ROWS_AREA_BEGIN - bytes, bytes, ways[w].width, ways[w].sets);
            if (r)
                return r;
        }
    return NULL;
}

#define SUM_AREA 4096u // SBUF of a row program behind a sum, at least
#define SUM_AREA_MOST 24576u

// … for that of the sums, a row of them at a time.
static RowOp *fit_sums(const ProductJob *j, const Step *s, const Epilogue *p) {
    uint32_t below = product_below(j);
    for (uint32_t width = EPILOGUE_COLS; width >= PARTITIONS; width /= 2)
        for (uint32_t bytes = SUM_AREA; bytes <= SUM_AREA_MOST && bytes < below; bytes += SUM_AREA) {
            RowOp *r = rows_epilogue(j->e, s, p, below - bytes, bytes, width, 1);
            if (r)
                return r;
        }
    return NULL;
}

// The job without addresses, or those of the step; false: no room for the row programs.
static bool take_rows(ProductJob *j, OpId id, const Step *s, const DotSum *sum) {
    const Lower *l = j->e->l;
    const Epilogue *p = lower_epilogue(l, id);
    Step *rows = ARENA_NEWN(j->e->c->scratch, Step, 2);
    uint32_t ins = sum && s ? sum->ins : s ? s->nins : 0, outs = sum && s ? sum->outs : s ? s->nouts : 0;
    if (p) { // operands of the program follow those of the product; its results come first
        rows[0] = s ? (Step){.op = p->rows, .ins = s->ins + 2, .nins = ins - 2, .outs = s->outs, .nouts = outs} : (Step){.op = p->rows};
        j->rows = fit_rows(j, rows, p);
    }
    if (!sum || (p && !j->rows))
        return !p || j->rows;
    const HloOp *op = hlo_at(l->h, sum->dot);
    const Epilogue *q = lower_epilogue(l, sum->dot);
    j->sums = (ProductSums){.of = sum->of, .op = sum->dot, .each = splat_value(l->h, hlo_operand(l->h, op, 0)), .dtype = hlo_value_type(l->h, op->results)->dtype};
    if (s && !q)
        j->sums.out = emit_addr(j->e, l->refs.at[s->outs + outs]);
    if (q) {
        rows[1] = s ? (Step){.op = q->rows, .ins = s->ins + ins + 1, .nins = s->nins - ins - 1, .outs = s->outs + outs, .nouts = s->nouts - outs} : (Step){.op = q->rows};
        j->sums.rows = fit_sums(j, rows + 1, q);
    }
    return !q || j->sums.rows;
}

double dot_ns(Emit *e, OpId id, const DotSum *sum) {
    const HloOp *op = hlo_at(e->l->h, id);
    Product of = dot_of(e->l, id, 0);
    ProductJob j = product_job(e, &of);
    j.same = splat_value(e->l->h, hlo_operand(e->l->h, op, 0));
    return take_rows(&j, id, NULL, sum) ? product_cut(&j).ns : 0;
}

bool dot_fits_epilogue(Emit *e, const Epilogue *p) {
    Product of = dot_product(e->l->h, hlo_at(e->l->h, p->dot), 0);
    ProductJob j = product_job(e, &of);
    return fit_rows(&j, &(Step){.op = p->rows}, p) != NULL;
}

// How much longer than half of it the longer part of n is, cut at `unit`; of the last one a part counts as `least`.
static double uneven(int64_t n, int64_t unit, int64_t least) {
    double whole = (double)(ceil_div(n, least) * least);
    return 2.0 * (double)(ceil_div(n, 2 * unit) * unit) / whole;
}

// A shared product is cut by rows, as those of all batches lie below each other; by columns when it is low, or when three tiles of rows,
// say, would be shared unevenly. Small ones by batch.
static void share(ProductJob *j) {
    int64_t lo, hi, m = nest_size(&j->p.m);
    if (j->together > 1) {
        emit_share(j->e, nest_size(&j->p.batch), 1, &lo, &hi);
        j->rows_lo = lo * m, j->rows_hi = hi * m;
    } else if (j->rows_hi > PARTITIONS && uneven(j->rows_hi, PARTITIONS, PARTITIONS) <= uneven(j->n_hi, PARTITIONS, 1) + ROWS_FIRST) {
        emit_share(j->e, j->rows_hi, PARTITIONS, &j->rows_lo, &j->rows_hi);
    } else {
        emit_share(j->e, j->n_hi, j->n_hi > 2 * PARTITIONS ? PARTITIONS : LOW_CUT, &j->n_lo, &j->n_hi);
    }
}

// The sums of an operand that both cores have, each its part.
static void share_sums(ProductJob *j) {
    int64_t m = nest_size(&j->p.m), n = nest_size(&j->p.n);
    bool works = j->rows_lo < j->rows_hi && j->n_lo < j->n_hi, cut_rows = j->rows_hi - j->rows_lo < m, cut_columns = j->n_hi - j->n_lo < n;
    j->sums.lo = 0, j->sums.hi = j->sums.of == SUMS_RHS ? n : m;
    if (works && (j->sums.of == SUMS_RHS ? cut_rows : cut_columns))
        emit_share(j->e, j->sums.hi, PSUM_BANK_COLS, &j->sums.lo, &j->sums.hi);
}

uint64_t dot_keeps(Emit *e, OpId id, const DotSum *sum) {
    Product of = dot_of(e->l, id, 0);
    ProductJob j = product_job(e, &of);
    if (!product_comes_turned(&j, false) || !product_comes_turned(&j, true) || nest_size(&of.m) < PSUM_BANK_COLS || j.n_hi < PSUM_BANK_COLS)
        return 0;
    bool fits = take_rows(&j, id, NULL, sum);
    assert(fits);
    (void)fits;
    share(&j);
    j.may_keep = true;
    DotCut cut = product_cut(&j);
    int64_t elems = nest_size(&of.batch) * nest_size(cut.by_columns ? &of.m : &of.n) * nest_size(&of.k);
    return cut.keeps ? (uint64_t)elems * dtype_bytes(of.stype) : 0;
}

static void check(const Emit *e, OpId id, const Product *p) {
    const Axis *k = &p->k.axis[0];
    if (ROWS_AREA_BEGIN > e->chip->sbuf_usable_bytes)
        hlo_fail(e->l->h, id, OTRN_CAPACITY, "its tiles need %u bytes of SBUF a partition, %s has %.0f", ROWS_AREA_BEGIN, e->chip->name,
                 e->chip->sbuf_usable_bytes);
    int64_t strides[] = {k->src * PARTITIONS, p->m.axis[0].src, k->dst * PARTITIONS, p->n.axis[0].src, p->m.axis[0].dst * PARTITIONS};
    for (size_t i = 0; i < sizeof strides / sizeof *strides; i++)
        if (strides[i] > INT32_MAX)
            hlo_fail(e->l->h, id, OTRN_CAPACITY, "a stride of %lld elements does not fit a DMA pattern", (long long)strides[i]);
}

bool dot_takes(const Lower *l, const HloOp *op, Why *why) { return dot_suits(l->h, op, why); }

void emit_dot(Emit *e, const Step *s) {
    const Hlo *h = e->l->h;
    const BufId *refs = e->l->refs.at;
    const HloOp *op = hlo_at(h, s->op);
    Product p = dot_of(e->l, s->op, s->aux ? 0 : lower_stored_as(e->l, s->op));
    check(e, s->op, &p);
    p.lhs = refs[s->ins] ? emit_addr(e, refs[s->ins]) : 0, p.rhs = emit_addr(e, refs[s->ins + 1]);
    ProductJob j = product_job(e, &p);
    j.same = refs[s->ins] ? NULL : splat_value(h, hlo_operand(h, op, 0));
    j.together = !s->aux && dot_is_batch(h, op) ? together(&p) : 1;
    const DotSum *sum = s->sum ? &e->l->sums.at[s->sum - 1] : NULL;
    bool fits = take_rows(&j, s->op, s, sum);
    assert(fits);
    (void)fits;
    if (!j.rows)
        j.p.out = emit_addr(e, refs[s->outs]);
    uint32_t outs = j.rows ? hlo_at(h, j.rows->s->op)->nresults + 1 : 1; // behind them: HBM for a transposed operand
    share(&j);
    if (sum)
        share_sums(&j);
    j.may_keep = (sum ? sum->outs : s->nouts) > outs && !e->parts; // two cores would both store it
    if (j.may_keep)
        j.kept = emit_addr(e, refs[s->outs + outs]);
    product_emit(&j);
}
