// SPDX-License-Identifier: Apache-2.0
// expand_lapack.c — calls of LAPACK, as JAX writes them for CPUs, by the programs that stand for XLA's own calls.
//
//   @lapack_spotrf_ffi(a) -> l, info {uplo}           cholesky                @lapack_sgeqrf_ffi(a) -> packed, taus          @Qr
//   @lapack_sgetrf_ffi(a) -> lu, pivots, info         @LuDecomposition        @lapack_sorgqr_ffi(packed, taus) -> q          @Product…
//   @lapack_ssyevd_ffi(a) -> v, w, info {uplo}        @Eigh                   @lapack_strsm_ffi(a, b) -> x {side, uplo, …}   triangular_solve
//   @lapack_sgesdd_ffi(a) -> a, s, u, v^H, info {mode} rotations (expand_svd.c)
//
// d, c and z in place of s are the same of other elements (ungqr, heevd). Options are letters. info counts from 1: where the
// diagonal first failed, 0 for nowhere. Pivots count from 1, too.
#include <string.h>

#include "pass/expand_mats.h"

typedef enum Lapack { LAPACK_NONE, POTRF, GETRF, GEQRF, ORGQR, SYEVD, GESDD, TRSM } Lapack;

static Lapack lapack_call(const HloOp *op) {
    static const struct {
        const char *name;
        uint32_t operands, results;
        Lapack call;
    } rows[] = {
        {"potrf", 1, 2, POTRF}, {"getrf", 1, 3, GETRF}, {"geqrf", 1, 2, GEQRF}, {"orgqr", 2, 1, ORGQR},
        {"ungqr", 2, 1, ORGQR}, {"syevd", 1, 3, SYEVD}, {"heevd", 1, 3, SYEVD}, {"trsm", 2, 1, TRSM},
        {"gesdd", 1, 5, GESDD},
    };
    const char *target = op->code == HLO_CUSTOM_CALL ? hlo_attr_str(op, AK_CALL_TARGET_NAME) : "";
    size_t n = strlen("lapack_s");
    if (strncmp(target, "lapack_", n - 1) || !strchr("sdcz", target[n - 1]) || !target[n - 1])
        return LAPACK_NONE;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t long_ = strlen(rows[i].name);
        if (op->noperands == rows[i].operands && op->nresults == rows[i].results && !strncmp(target + n, rows[i].name, long_) &&
            !strcmp(target + n + long_, "_ffi"))
            return rows[i].call;
    }
    return LAPACK_NONE;
}

bool expand_is_lapack(const HloOp *op) { return lapack_call(op) != LAPACK_NONE; }

// --- options -----------------------------------------------------------------------------------------

static int letter_of_text(const char *s, const char *key) { // {side = 76 : ui8, uplo = 85 : ui8}
    const char *at = strstr(s, key);
    if (!at)
        return 0;
    int v = 0;
    for (at += strlen(key); *at == ' ' || *at == '='; at++)
        continue;
    for (; *at >= '0' && *at <= '9' && v < 256; at++)
        v = v * 10 + (*at - '0');
    return v;
}

static int letter_of(const HloAttr *a, const char *key) {
    if (a->kind == HA_STR)
        return letter_of_text(a->s, key);
    for (uint32_t i = 0; a->kind == HA_DICT && i < a->n; i++)
        if (!strcmp(a->dict[i].name, key) && a->dict[i].value.kind == HA_INT)
            return (int)a->dict[i].value.i;
    return 0;
}

static int letter(const HloOp *op, const char *key, int otherwise) {
    const HloAttr *config = hlo_attr(op, AK_BACKEND_CONFIG);
    int v = config ? letter_of(config, key) : 0;
    for (uint32_t i = 0; !v && i < op->nextra; i++)
        if (!strcmp(op->extra[i].name, "mhlo.backend_config"))
            v = letter_of(&op->extra[i].value, key);
    return v ? v : otherwise;
}

// --- in place of the call ----------------------------------------------------------------------------

static HloOp call_as(Walk *w, const HloOp *op, const char *target, const char *config, uint32_t nresults, const TypeId *types) {
    ValueId in[2] = {hlo_operand(w->hlo, op, 0), op->noperands > 1 ? hlo_operand(w->hlo, op, 1) : 0};
    return mats_call_as(w, op, target, config, op->noperands, in, nresults, types);
}

static void give(Walk *w, const HloOp *op, uint32_t k, ValueId v) { walk_replace(w, op->results + k, walk_shape(w, v, w->hlo->values.at[op->results + k].type)); }

// Which place on the diagonal, counted from 1, is the first that is bad: [b, m, n] of flags; 0 where none is. Its element type is i32.
static ValueId first_bad(Mats *q, ValueId bad) {
    Walk *w = q->w;
    int64_t k = q->m < q->n ? q->m : q->n;
    ValueId row = mats_places(q, q->all, 1), on = walk_compare(w, CMP_EQ, CMPT_NOTYPE, row, mats_places(q, q->all, 2));
    ValueId left = walk_binary(w, HLO_SUBTRACT, walk_number(w, mats_typed(q, q->all, DT_I32), (double)k), row);
    ValueId most = mats_where(q, walk_binary(w, HLO_AND, on, bad), left, 0);
    most = mats_total(q, HLO_MAXIMUM, mats_total(q, HLO_MAXIMUM, most, 2, q->rows), 1, q->one);
    TypeId one = mats_typed(q, q->one, DT_I32);
    ValueId place = walk_binary(w, HLO_SUBTRACT, walk_number(w, one, (double)k + 1), most);
    return mats_where(q, walk_compare(w, CMP_GT, CMPT_NOTYPE, most, walk_number(w, one, 0)), place, 0);
}

static ValueId potrf(Mats *q, const HloOp *op) {
    Walk *w = q->w;
    ValueId a = hlo_operand(w->hlo, op, 0);
    OpId id = hlo_op(w->hlo, HLO_CHOLESKY, w->loc, 1, &a, 1, &w->hlo->values.at[a].type);
    hlo_set_int(w->hlo, id, AK_LOWER, letter(op, "uplo", 'L') == 'L');
    ValueId l = walk_push(w, id), all = walk_shape(w, l, q->all);
    ValueId bad = walk_compare(w, CMP_NE, dtype_is_complex(q->dtype) ? CMPT_NOTYPE : CMPT_FLOAT, all, all);
    give(w, op, 1, first_bad(q, bad));
    return l;
}

static ValueId getrf(Mats *q, const HloOp *op) {
    Walk *w = q->w;
    Hlo *h = w->hlo;
    const TypeId list = h->values.at[op->results + 1].type, rows = mats_typed(q, q->rows, DT_I32);
    HloOp lu = call_as(w, op, "LuDecomposition", "", 3, (TypeId[]){h->values.at[op->results].type, list, rows});
    ValueId all = mats_lu(w, &lu, true), pivots = w->repl.at[lu.results + 1];
    give(w, op, 1, walk_binary(w, HLO_ADD, pivots, walk_number(w, list, 1)));
    ValueId whole = walk_shape(w, all, q->all);
    give(w, op, 2, first_bad(q, walk_compare(w, CMP_EQ, CMPT_NOTYPE, whole, mats_number(q, q->all, q->dtype, 0))));
    return all;
}

static ValueId geqrf(Mats *q, const HloOp *op) {
    Walk *w = q->w;
    HloOp qr = call_as(w, op, "Qr", "", 2, (TypeId[]){w->hlo->values.at[op->results].type, w->hlo->values.at[op->results + 1].type});
    ValueId packed = expand_qr(w, &qr);
    give(w, op, 1, w->repl.at[qr.results + 1]);
    return packed;
}

static ValueId orgqr(Mats *q, const HloOp *op) {
    HloOp product = call_as(q->w, op, "ProductOfElementaryHouseholderReflectors", "", 1, &q->w->hlo->values.at[op->results].type);
    return expand_qr(q->w, &product);
}

static ValueId syevd(Mats *q, const HloOp *op) {
    Walk *w = q->w;
    const char *config = letter(op, "uplo", 'L') == 'L' ? "1,1" : "0,1";
    HloOp eigh = call_as(w, op, "Eigh", config, 2, (TypeId[]){w->hlo->values.at[op->results].type, w->hlo->values.at[op->results + 1].type});
    ValueId v = expand_eigh(w, &eigh);
    give(w, op, 1, w->repl.at[eigh.results + 1]);
    give(w, op, 2, walk_number(w, w->hlo->values.at[op->results + 2].type, 0));
    return v;
}

static ValueId gesdd(Mats *q, const HloOp *op) { // a is LAPACK's to overwrite
    Walk *w = q->w;
    MatsSvd made = mats_svd(q, op, letter(op, "mode", 'A'));
    const ValueId results[] = {made.values, made.left, made.right};
    for (uint32_t k = 0; k < 3; k++)
        give(w, op, k + 1, results[k]);
    TypeId one = mats_typed(q, q->one, DT_I32);
    give(w, op, 4, walk_select(w, made.finite, walk_number(w, one, 0), walk_number(w, one, -4)));
    return hlo_operand(w->hlo, op, 0);
}

static ValueId trsm(Mats *q, const HloOp *op) {
    Walk *w = q->w;
    Hlo *h = w->hlo;
    ValueId in[2] = {hlo_operand(h, op, 0), hlo_operand(h, op, 1)};
    int turn = letter(op, "trans_x", 'N');
    OpId id = hlo_op(h, HLO_TRIANGULAR_SOLVE, w->loc, 2, in, 1, &h->values.at[in[1]].type);
    hlo_set_int(h, id, AK_LEFT_SIDE, letter(op, "side", 'L') == 'L');
    hlo_set_int(h, id, AK_LOWER, letter(op, "uplo", 'L') == 'L');
    hlo_set_int(h, id, AK_UNIT_DIAGONAL, letter(op, "diag", 'N') == 'U');
    hlo_set_int(h, id, AK_TRANSPOSE_A, turn == 'N' ? TRANSPOSE_NO : turn == 'T' ? TRANSPOSE_YES : TRANSPOSE_ADJOINT);
    return walk_push(w, id);
}

// --- which -------------------------------------------------------------------------------------------

// Results: the first as large as the matrices it comes from, whole numbers by matrix at the end.
static void check(Mats *q, const HloOp *op, Lapack call) {
    const Hlo *h = q->w->hlo;
    HloType from = *hlo_value_type(h, hlo_operand(h, op, call == TRSM)), to = *hlo_value_type(h, op->results);
    bool fits = hlo_is_plain(&to) && from.dtype == to.dtype && from.rank == to.rank && !memcmp(from.dims, to.dims, (size_t)to.rank * sizeof *to.dims);
    fits = fits && (call == GEQRF || call == ORGQR || call == GETRF || call == GESDD || call == TRSM || q->m == q->n);
    for (uint32_t k = 1; k < op->nresults; k++) {
        HloType t = *hlo_value_type(h, op->results + k);
        bool numbers = call == GETRF || k + 1 == op->nresults;
        fits = fits && hlo_is_plain(&t) && (call == GEQRF || !numbers || t.dtype == DT_I32);
        fits = fits && (call == GEQRF || k + 1 < op->nresults || t.elems == q->b);
    }
    for (int d = 0; fits && call == TRSM && d < from.rank - 2 && d < hlo_value_type(h, hlo_operand(h, op, 0))->rank; d++) // `from` has the right sides
        fits = hlo_value_type(h, hlo_operand(h, op, 0))->dims[d] == from.dims[d];
    if (call == TRSM)
        fits = fits && hlo_value_type(h, hlo_operand(h, op, 0))->rank == from.rank && q->m == q->n && q->dtype == from.dtype &&
               q->m == from.dims[from.rank - (letter(op, "side", 'L') == 'L' ? 2 : 1)];
    if (!fits)
        mats_fail(q, op);
}

ValueId expand_lapack(Walk *w, const HloOp *op) {
    static ValueId (*const made[])(Mats *, const HloOp *) = {[POTRF] = potrf, [GETRF] = getrf, [GEQRF] = geqrf, [ORGQR] = orgqr, [SYEVD] = syevd, [GESDD] = gesdd, [TRSM] = trsm};
    Lapack call = lapack_call(op);
    if (call == LAPACK_NONE)
        return 0;
    Mats q = {.w = w};
    mats_read(&q, op);
    check(&q, op, call);
    return walk_shape(w, made[call](&q, op), mats_type_of(&q, op->results));
}
