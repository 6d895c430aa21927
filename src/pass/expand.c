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

ValueId expand_push(Expand *x, OpId id) { return walk_push(&x->w, id); }

OpId expand_make(Expand *x, HloOpcode code, uint32_t n, const ValueId *in, TypeId type) {
    return hlo_op(x->h, code, hlo_at(x->h, x->id)->loc, n, in, 1, &type);
}

static int64_t letter_dim(const Term *t, char c) { // -1 when it has none of that name
    const char *p = t->n ? memchr(t->letter, c, (size_t)t->n) : NULL;
    return p ? p - t->letter : -1;
}

static int64_t letter_size(const Expand *x, const Term *t, char c) {
    assert(letter_dim(t, c) >= 0);
    return hlo_value_type(x->h, t->v)->dims[letter_dim(t, c)];
}

static TypeId type_of(Expand *x, int dtype, const Term *letters, const Term *sizes,
                      const Term *more) {
    int64_t dims[OTRN_MAX_RANK];
    for (int i = 0; i < letters->n; i++) {
        char c = letters->letter[i];
        dims[i] = letter_size(x, letter_dim(sizes, c) >= 0 ? sizes : more, c);
    }
    return hlo_type_tensor(x->h, dtype, letters->n, dims);
}

// --- reading the configuration
// -----------------------------------------------------------------------

static void term_parse(Expand *x, const char *text, size_t n, ValueId v, Term *out) {
    *out = (Term){.v = v};
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        if (c == ' ')
            continue;
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) || letter_dim(out, c) >= 0)
            hlo_fail(x->h, x->id, OTRN_UNSUPPORTED,
                     "einsum_config other than plain letters, each once a term");
        if (out->n == hlo_value_type(x->h, v)->rank)
            hlo_fail(x->h, x->id, OTRN_VERIFY, "einsum_config has more letters than dimensions");
        out->letter[out->n++] = c;
    }
    if (out->n != hlo_value_type(x->h, v)->rank)
        hlo_fail(x->h, x->id, OTRN_VERIFY, "einsum_config has fewer letters than dimensions");
}

// terms: the operands, then the result.
static void config_parse(Expand *x, uint32_t operands, Term *terms) {
    HloOp op = *hlo_at(x->h, x->id);
    const char *text = hlo_attr_str(&op, AK_EINSUM_CONFIG), *arrow = strstr(text, "->");
    const char *comma = memchr(text, ',', arrow ? (size_t)(arrow - text) : 0);
    if (!arrow || !comma != (operands == 1))
        hlo_fail(x->h, x->id, OTRN_VERIFY, "malformed einsum_config");
    const char *end = comma ? comma : arrow;
    term_parse(x, text, (size_t)(end - text), hlo_operand(x->h, &op, 0), &terms[0]);
    if (comma)
        term_parse(x, comma + 1, (size_t)(arrow - comma - 1), hlo_operand(x->h, &op, 1), &terms[1]);
    term_parse(x, arrow + 2, strlen(arrow + 2), op.results, &terms[operands]);
    for (uint32_t t = 0; t <= operands; t++)
        for (int i = 0; i < terms[t].n; i++) {
            char c = terms[t].letter[i];
            const Term *a = letter_dim(&terms[0], c) >= 0 ? &terms[0] : &terms[operands - 1];
            if (letter_dim(a, c) < 0 || letter_size(x, a, c) != letter_size(x, &terms[t], c))
                hlo_fail(x->h, x->id, OTRN_VERIFY, "the sizes of '%c' differ in einsum", c);
        }
}

// --- steps of an einsum
// ------------------------------------------------------------------------------

static void convert_to(Expand *x, Term *t, int dtype) {
    const HloType *ty = hlo_value_type(x->h, t->v);
    if (ty->dtype == dtype)
        return;
    TypeId type = hlo_type_tensor(x->h, dtype, ty->rank, ty->dims);
    t->v = expand_push(x, expand_make(x, HLO_CONVERT, 1, &t->v, type));
}

ValueId expand_zero(Expand *x, TypeId scalar) {
    static const uint8_t bytes[16]; // 0 in every type
    OpId id = expand_make(x, HLO_CONSTANT, 0, NULL, scalar);
    *hlo_attr_slot(x->h, id, AK_VALUE) =
        (HloAttr){.kind = HA_TENSOR,
                  .type = scalar,
                  .n = (uint32_t)dtype_bytes(hlo_type(x->h, scalar)->dtype),
                  .data = arena_dup(x->h->arena, bytes, sizeof bytes)};
    return expand_push(x, id);
}

// Sums over the letters that are in neither `a` nor `b`.
static void sum_out(Expand *x, Term *t, const Term *a, const Term *b) {
    Hlo *h = x->h;
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
    int dtype = hlo_value_type(h, t->v)->dtype;
    TypeId scalar = hlo_type_tensor(h, dtype, 0, NULL), scalars[2] = {scalar, scalar};
    ValueId in[2] = {t->v, expand_zero(x, scalar)};
    OpId id = expand_make(x, HLO_REDUCE, 2, in, type_of(x, dtype, &left, t, t));
    hlo_set_ints(x->h, id, AK_DIMENSIONS, dims, n);
    RegionId body = hlo_op_add_region(h, id, 2, scalars);
    ValueId args[2] = {h->regions.at[body].args, h->regions.at[body].args + 1};
    OpId add = expand_make(x, HLO_ADD, 2, args, scalar);
    hlo_region_push(h, body, add);
    ValueId sum = hlo_at(h, add)->results;
    hlo_region_push(h, body, hlo_op(h, HLO_RETURN, hlo_at(h, x->id)->loc, 1, &sum, 0, NULL));
    left.v = expand_push(x, id);
    *t = left;
}

static ValueId put_in_order(Expand *x, const Term *t, const Term *want) {
    assert(t->n == want->n); // nothing is left to sum
    int64_t perm[OTRN_MAX_RANK];
    bool same = true;
    for (int i = 0; i < want->n; i++) {
        perm[i] = letter_dim(t, want->letter[i]);
        same = same && perm[i] == i;
    }
    if (same)
        return t->v;
    int dtype = hlo_value_type(x->h, t->v)->dtype;
    OpId id = expand_make(x, HLO_TRANSPOSE, 1, &t->v, type_of(x, dtype, want, t, t));
    hlo_set_ints(x->h, id, AK_PERMUTATION, perm, (uint32_t)want->n);
    return expand_push(x, id);
}

static Term product(Expand *x, const Term *l, const Term *r, const Term *result) {
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
    TypeId type = type_of(x, hlo_value_type(x->h, result->v)->dtype, &out, l, r);
    assert(out.n == result->n);
    out.v = expand_push(x, hlo_op_dot(x->h, hlo_at(x->h, x->id)->loc, l->v, r->v, (DotPairs){nb, nc, lb, rb, lc, rc}, type, NULL));
    return out;
}

static ValueId expand_einsum(Expand *x) {
    Term t[3];
    config_parse(x, 2, t);
    int dtype = hlo_value_type(x->h, t[2].v)->dtype;
    for (int i = 0; i < 2; i++) {
        convert_to(x, &t[i], dtype);
        sum_out(x, &t[i], &t[1 - i], &t[2]);
    }
    Term p = product(x, &t[0], &t[1], &t[2]);
    return put_in_order(x, &p, &t[2]);
}

static ValueId expand_unary_einsum(Expand *x) {
    Term t[2];
    config_parse(x, 1, t);
    convert_to(x, &t[0], hlo_value_type(x->h, t[1].v)->dtype);
    sum_out(x, &t[0], &t[1], &t[1]);
    return put_in_order(x, &t[0], &t[1]);
}

// --- torch_index_select
// ------------------------------------------------------------------------------

// Result dimensions: those of the operand before dim, those of the index behind its batch, the
// operand's others. Each index picks one slice along dim.
static ValueId expand_index_select(Expand *x) {
    Hlo *h = x->h;
    HloOp op = *hlo_at(h, x->id);
    ValueId in[2] = {hlo_operand(h, &op, 0), hlo_operand(h, &op, 1)};
    HloType a = *hlo_value_type(h, in[0]), index = *hlo_value_type(h, in[1]);
    int64_t dim = hlo_int(&op, AK_DIM, 0), nb = hlo_int(&op, AK_BATCH_DIMS, 0);
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
        hlo_fail(h, x->id, OTRN_UNSUPPORTED, "picks from a dimension of size 0");
    OpId id = expand_make(x, HLO_GATHER, 2, in, h->values.at[op.results].type);
    assert(n + index.rank - nb + nb == hlo_value_type(h, op.results)->rank);
    hlo_set_ints(x->h, id, AK_OFFSET_DIMS, offset, n);
    hlo_set_ints(x->h, id, AK_COLLAPSED_SLICE_DIMS, &dim, 1);
    hlo_set_ints(x->h, id, AK_START_INDEX_MAP, &dim, 1);
    hlo_set_ints(x->h, id, AK_OPERAND_BATCHING_DIMS, batch, (uint32_t)nb);
    hlo_set_ints(x->h, id, AK_START_INDICES_BATCHING_DIMS, batch, (uint32_t)nb);
    hlo_set_ints(x->h, id, AK_SLICE_SIZES, sizes, a.rank);
    *hlo_attr_slot(h, id, AK_INDEX_VECTOR_DIM) = (HloAttr){.kind = HA_INT, .i = index.rank};
    *hlo_attr_slot(h, id, AK_INDICES_ARE_SORTED) = (HloAttr){.kind = HA_BOOL, .i = 0};
    return expand_push(x, id);
}

// --- the pass ----------------------------------------------------------------------------------------

static void expand_visit(void *pass, OpId id) {
    Expand *x = pass;
    HloOp op = *hlo_at(x->h, id);
    ValueId made = 0;
    x->id = id;
    if (op.code == HLO_EINSUM)
        made = expand_einsum(x);
    else if (op.code == HLO_UNARY_EINSUM)
        made = expand_unary_einsum(x);
    else if (op.code == HLO_TORCH_INDEX_SELECT)
        made = expand_index_select(x);
    if (made)
        walk_replace(&x->w, op.results, made);
    else if (!expand_more(x))
        expand_push(x, id);
}

void expand_body(Compile *c, RegionId body) {
    assert(body);
    Expand x = {.c = c, .h = c->hlo};
    walk_init(&x.w, c);
    walk_rewrite(&x.w, body, WALK_ALL, expand_visit, &x);
}

void pass_expand(Compile *c) {
    expand_groups(c);
    expand_body(c, hlo_main(c->hlo)->body);
    hlo_keep_only(c->hlo, hlo_main(c->hlo));
}
