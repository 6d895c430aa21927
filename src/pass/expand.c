// SPDX-License-Identifier: Apache-2.0
// expand.c — write rare operations with common ones.
// needs: values defined before use, known shapes
// gives: no einsum, unary_einsum or torch_index_select: dot_general, reduce, transpose and gather
// instead; and what expand_more.c says
// stale: nothing
//
// einsum "ab,bc->ca": a letter that only one operand has, and that the result lacks, is summed out
// of that operand first. Of the others, letters of both operands and the result are batch
// dimensions, letters of both that the result lacks are contracted. A transpose puts the product's
// dimensions into the result's order.
#include "pass/expand.h"

#include <string.h>

typedef struct Term { // a value with a letter for each dimension
    ValueId v;
    int n;
    char letter[OTRN_MAX_RANK];
} Term;

static int64_t letter_dim(const Term *t, char c) { // -1 when it has none of that name
    const char *p = t->n ? memchr(t->letter, c, (size_t)t->n) : NULL;
    return p ? p - t->letter : -1;
}

static int64_t letter_size(const Walk *w, const Term *t, char c) {
    assert(letter_dim(t, c) >= 0);
    return hlo_value_type(w->hlo, t->v)->dims[letter_dim(t, c)];
}

static TypeId type_of(Walk *w, int dtype, const Term *letters, const Term *sizes,
                      const Term *more) {
    int64_t dims[OTRN_MAX_RANK];
    for (int i = 0; i < letters->n; i++) {
        char c = letters->letter[i];
        dims[i] = letter_size(w, letter_dim(sizes, c) >= 0 ? sizes : more, c);
    }
    return hlo_type_tensor(w->hlo, dtype, letters->n, dims);
}

// --- reading the configuration -----------------------------------------------------------------------

static void term_parse(Walk *w, const char *text, size_t n, ValueId v, Term *out) {
    *out = (Term){.v = v};
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        if (c == ' ')
            continue;
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) || letter_dim(out, c) >= 0)
            hlo_fail(w->hlo, w->id, OTRN_UNSUPPORTED,
                     "einsum_config other than plain letters, each once a term");
        if (out->n == hlo_value_type(w->hlo, v)->rank)
            hlo_fail(w->hlo, w->id, OTRN_VERIFY, "einsum_config has more letters than dimensions");
        out->letter[out->n++] = c;
    }
    if (out->n != hlo_value_type(w->hlo, v)->rank)
        hlo_fail(w->hlo, w->id, OTRN_VERIFY, "einsum_config has fewer letters than dimensions");
}

// terms: the operands, then the result.
static void config_parse(Walk *w, const HloOp *op, uint32_t operands, Term *terms) {
    const char *text = hlo_attr_str(op, AK_EINSUM_CONFIG), *arrow = strstr(text, "->");
    const char *comma = memchr(text, ',', arrow ? (size_t)(arrow - text) : 0);
    if (!arrow || !comma != (operands == 1))
        hlo_fail(w->hlo, w->id, OTRN_VERIFY, "malformed einsum_config");
    const char *end = comma ? comma : arrow;
    term_parse(w, text, (size_t)(end - text), hlo_operand(w->hlo, op, 0), &terms[0]);
    if (comma)
        term_parse(w, comma + 1, (size_t)(arrow - comma - 1), hlo_operand(w->hlo, op, 1), &terms[1]);
    term_parse(w, arrow + 2, strlen(arrow + 2), op->results, &terms[operands]);
    for (uint32_t t = 0; t <= operands; t++)
        for (int i = 0; i < terms[t].n; i++) {
            char c = terms[t].letter[i];
            const Term *a = letter_dim(&terms[0], c) >= 0 ? &terms[0] : &terms[operands - 1];
            if (letter_dim(a, c) < 0 || letter_size(w, a, c) != letter_size(w, &terms[t], c))
                hlo_fail(w->hlo, w->id, OTRN_VERIFY, "the sizes of '%c' differ in einsum", c);
        }
}

// --- steps of an einsum ------------------------------------------------------------------------------

// Sums over the letters that are in neither `a` nor `b`.
static void sum_out(Walk *w, Term *t, const Term *a, const Term *b) {
    Term left = {.n = 0};
    int64_t dims[OTRN_MAX_RANK];
    uint32_t n = 0;
    for (int i = 0; i < t->n; i++)
        if (letter_dim(a, t->letter[i]) >= 0 || letter_dim(b, t->letter[i]) >= 0)
            left.letter[left.n++] = t->letter[i];
        else
            dims[n++] = i;
    if (!n)
        return;
    left.v = walk_sum(w, t->v, dims, n, type_of(w, hlo_value_type(w->hlo, t->v)->dtype, &left, t, t));
    *t = left;
}

static ValueId put_in_order(Walk *w, const Term *t, const Term *want) {
    assert(t->n == want->n); // nothing is left to sum
    int64_t perm[OTRN_MAX_RANK];
    for (int i = 0; i < want->n; i++)
        perm[i] = letter_dim(t, want->letter[i]);
    return walk_transpose(w, t->v, perm);
}

static Term product(Walk *w, const Term *l, const Term *r, const Term *result) {
    int64_t lb[OTRN_MAX_RANK], rb[OTRN_MAX_RANK], lc[OTRN_MAX_RANK], rc[OTRN_MAX_RANK];
    uint32_t nb = 0, nc = 0;
    Term out = {.n = 0}, left = {.n = 0};
    for (int i = 0; i < l->n; i++) {
        char c = l->letter[i];
        int64_t other = letter_dim(r, c);
        if (other < 0)
            left.letter[left.n++] = c;
        else if (letter_dim(result, c) < 0)
            lc[nc] = i, rc[nc++] = other;
        else
            lb[nb] = i, rb[nb++] = other, out.letter[out.n++] = c;
    }
    memcpy(out.letter + out.n, left.letter, (size_t)left.n);
    out.n += left.n;
    for (int i = 0; i < r->n; i++)
        if (letter_dim(l, r->letter[i]) < 0)
            out.letter[out.n++] = r->letter[i];
    TypeId type = type_of(w, hlo_value_type(w->hlo, result->v)->dtype, &out, l, r);
    assert(out.n == result->n);
    out.v = walk_push(w, hlo_op_dot(w->hlo, w->loc, l->v, r->v, (DotPairs){nb, nc, lb, rb, lc, rc}, type, NULL));
    return out;
}

static ValueId expand_einsum(Walk *w, const HloOp *op) {
    Term t[3];
    config_parse(w, op, 2, t);
    int dtype = hlo_value_type(w->hlo, t[2].v)->dtype;
    for (int i = 0; i < 2; i++) {
        t[i].v = walk_convert(w, t[i].v, dtype);
        sum_out(w, &t[i], &t[1 - i], &t[2]);
    }
    Term p = product(w, &t[0], &t[1], &t[2]);
    return put_in_order(w, &p, &t[2]);
}

static ValueId expand_unary_einsum(Walk *w, const HloOp *op) {
    Term t[2];
    config_parse(w, op, 1, t);
    t[0].v = walk_convert(w, t[0].v, hlo_value_type(w->hlo, t[1].v)->dtype);
    sum_out(w, &t[0], &t[1], &t[1]);
    return put_in_order(w, &t[0], &t[1]);
}

// --- torch_index_select ------------------------------------------------------------------------------

// Result dimensions: those of the operand before dim, those of the index behind its batch, the
// operand's others. Each index picks one slice along dim.
static ValueId expand_index_select(Walk *w, const HloOp *op) {
    Hlo *h = w->hlo;
    ValueId in[2] = {hlo_operand(h, op, 0), hlo_operand(h, op, 1)};
    HloType a = *hlo_value_type(h, in[0]), index = *hlo_value_type(h, in[1]);
    int64_t dim = hlo_int(op, AK_DIM, 0), nb = hlo_int(op, AK_BATCH_DIMS, 0);
    int64_t inner = index.rank - nb, batch[OTRN_MAX_RANK], offset[OTRN_MAX_RANK],
            sizes[OTRN_MAX_RANK];
    uint32_t n = 0;
    for (int64_t i = 0; i < a.rank; i++) {
        sizes[i] = i < nb || i == dim ? 1 : a.dims[i];
        if (i < nb)
            batch[i] = i;
        else if (i != dim)
            offset[n++] = i < dim ? i : i + inner - 1;
    }
    if (a.dims[dim] == 0) // nothing to pick from: the specification leaves it open
        hlo_fail(h, w->id, OTRN_UNSUPPORTED, "picks from a dimension of size 0");
    OpId id = hlo_op(h, HLO_GATHER, w->loc, 2, in, 1, &h->values.at[op->results].type);
    assert(n + index.rank - nb + nb == hlo_value_type(h, op->results)->rank);
    hlo_set_ints(w->hlo, id, AK_OFFSET_DIMS, offset, n);
    hlo_set_ints(w->hlo, id, AK_COLLAPSED_SLICE_DIMS, &dim, 1);
    hlo_set_ints(w->hlo, id, AK_START_INDEX_MAP, &dim, 1);
    hlo_set_ints(w->hlo, id, AK_OPERAND_BATCHING_DIMS, batch, (uint32_t)nb);
    hlo_set_ints(w->hlo, id, AK_START_INDICES_BATCHING_DIMS, batch, (uint32_t)nb);
    hlo_set_ints(w->hlo, id, AK_SLICE_SIZES, sizes, a.rank);
    hlo_set_int(h, id, AK_INDEX_VECTOR_DIM, index.rank);
    hlo_set_int(h, id, AK_INDICES_ARE_SORTED, 0);
    return walk_push(w, id);
}

// --- the pass ----------------------------------------------------------------------------------------

// None of them changes what a program computes, but for sums, which an einsum leaves in any order.
const Rule expand_rules[] = {
    {"einsum: sums, dot_general, transpose", HLO_EINSUM, RULE_ORDER, expand_einsum},
    {"unary_einsum: a sum, transpose", HLO_UNARY_EINSUM, RULE_ORDER, expand_unary_einsum},
    {"torch_index_select: gather", HLO_TORCH_INDEX_SELECT, RULE_EXACT, expand_index_select},
    {"@mhlo.erf, …: the operation of that name", HLO_CUSTOM_CALL, RULE_EXACT, expand_mhlo_call},
    {"@ApproxTopK, @TopK: sort, slice", HLO_CUSTOM_CALL, RULE_EXACT, expand_top_k},
    {"@ragged_all_to_all: all_gather, all_to_all, gather", HLO_CUSTOM_CALL, RULE_EXACT, expand_ragged_all_to_all},
    {"@Qr, @ProductOfElementaryHouseholderReflectors: while over columns", HLO_CUSTOM_CALL, RULE_CLOSE, expand_qr},
    {"@LuDecomposition: while over columns", HLO_CUSTOM_CALL, RULE_CLOSE, expand_lu},
    {"@Eigh: while over rounds of rotations", HLO_CUSTOM_CALL, RULE_CLOSE, expand_eigh},
    {"@lapack_spotrf_ffi, …: cholesky, triangular_solve, the calls above", HLO_CUSTOM_CALL, RULE_CLOSE, expand_lapack},
    {"rng NORMAL: of rng UNIFORM through erf_inv", HLO_RNG, RULE_CLOSE, expand_normal},
    {"rng_bit_generator: the state it is defined for, or an error", HLO_RNG_BIT_GENERATOR, RULE_EXACT, expand_check_state},
    {"constant_like: constant", HLO_CHLO_CONSTANT_LIKE, RULE_EXACT, expand_constant_like},
    {"scan: while", HLO_CHLO_SCAN, RULE_EXACT, expand_scan},
    {"ragged_dot: dot_general of rows that are zero outside a group", HLO_CHLO_RAGGED_DOT, RULE_ORDER, expand_ragged_dot},
    {"dot_general of bytes: of bf16, as long as sums are exact", HLO_DOT_GENERAL, RULE_EXACT, expand_byte_dot},
    {"broadcast_add, …: operands broadcast, then the operation of that name", HLO_NONE, RULE_EXACT, expand_broadcasting},
    {0},
};

void expand_body(Compile *c, RegionId body) {
    Walk w;
    walk_init(&w, c);
    w.any = true;
    rules_region(&w, expand_rules, body);
}

void pass_expand(Compile *c) {
    expand_groups(c);
    expand_body(c, hlo_main(c->hlo)->body);
    hlo_keep_only(c->hlo, hlo_main(c->hlo));
}
