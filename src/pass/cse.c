// SPDX-License-Identifier: Apache-2.0
// cse.c — compute equal operations once.
// needs: values defined before use
// gives: no two equal effect-free ops in one region
// stale: nothing (dce drops what became unused)
//
// Equal means: same op, same operands, same result types, same attributes. Ops with regions, but for plain reductions, with effects,
// and barriers (which keep rematerialised work apart on purpose) are left alone. What indices and constants alone tell, as a causal
// mask is, passes a barrier: behind it passes would not see what it is.
#include <string.h>

#include "pass/walk.h"

#define INDEX_DEPTH 12

typedef struct Seen {
    OpId *ids;
    uint64_t *hashes;
    uint32_t cap;
} Seen;

static uint64_t attr_hash(uint64_t h, const HloAttr *a) {
    uint64_t head[3] = {a->kind, a->n, a->type};
    h = hash64(h, head, sizeof head);
    switch (a->kind) {
    case HA_INT:
    case HA_BOOL:
    case HA_ENUM:
        return hash64(h, &a->i, sizeof a->i);
    case HA_FLOAT:
        return hash64(h, &a->f, sizeof a->f);
    case HA_STR:
    case HA_SYM:
    case HA_OPAQUE:
        return hash64(h, a->s, strlen(a->s));
    case HA_INTS:
    case HA_INTS2:
        return hash64(h, a->ints, a->n * sizeof *a->ints);
    case HA_TENSOR:
        return hash64(h, a->data, a->n);
    case HA_LIST:
        for (uint32_t i = 0; i < a->n; i++)
            h = attr_hash(h, &a->list[i]);
        return h;
    default:
        return h;
    }
}

static bool attr_equal(const HloAttr *a, const HloAttr *b) {
    if (a->kind != b->kind || a->n != b->n || a->type != b->type)
        return false;
    switch (a->kind) {
    case HA_INT:
    case HA_BOOL:
    case HA_ENUM:
        return a->i == b->i;
    case HA_FLOAT:
        return !memcmp(&a->f, &b->f, sizeof a->f);
    case HA_STR:
    case HA_SYM:
    case HA_OPAQUE:
        return !strcmp(a->s, b->s);
    case HA_INTS:
    case HA_INTS2:
        return !a->n || !memcmp(a->ints, b->ints, a->n * sizeof *a->ints);
    case HA_TENSOR:
        return !a->n || !memcmp(a->data, b->data, a->n);
    case HA_LIST:
        for (uint32_t i = 0; i < a->n; i++)
            if (!attr_equal(&a->list[i], &b->list[i]))
                return false;
        return true;
    case HA_DICT: // never compared in depth
        return a->n == 0;
    default:
        return true;
    }
}

static uint64_t op_hash(const Hlo *h, const HloOp *op) {
    uint64_t hash = op->code;
    hash = hash64(hash, &h->operands.at[op->operands], op->noperands * sizeof(ValueId));
    for (uint32_t i = 0; i < op->nresults; i++)
        hash = hash64(hash, &h->values.at[op->results + i].type, sizeof(TypeId));
    for (int i = 0; i < hlo_row(op)->nattrs; i++)
        hash = attr_hash(hash, &op->attrs[i]);
    return hash;
}

bool cse_alike(const Hlo *h, const HloOp *a, const HloOp *b) {
    if (a->code != b->code || a->noperands != b->noperands || a->nresults != b->nresults)
        return false;
    for (uint32_t i = 0; i < a->nresults; i++)
        if (h->values.at[a->results + i].type != h->values.at[b->results + i].type)
            return false;
    for (int i = 0; i < hlo_row(a)->nattrs; i++)
        if (!attr_equal(&a->attrs[i], &b->attrs[i]))
            return false;
    return !a->nregions || reduce_body(h, a) == reduce_body(h, b);
}

bool cse_equal(const Hlo *h, const HloOp *a, const HloOp *b) {
    return cse_alike(h, a, b) && !memcmp(&h->operands.at[a->operands], &h->operands.at[b->operands], a->noperands * sizeof(ValueId));
}

// Regions are not compared; of a reduction by one operation that one tells all, where its operands may change places.
static bool reduces_alike(const Hlo *h, const HloOp *op) { return hlo_op_rows[reduce_body(h, op)].traits & OT_COMMUTES; }

static bool may_merge(const Hlo *h, const HloOp *op) {
    return op->nresults && (!op->nregions || reduces_alike(h, op)) && op->code != HLO_OPTIMIZATION_BARRIER &&
           op->code != HLO_CUSTOM_CALL && op->code != HLO_RNG && !op_has_effect(h, op);
}

static bool is_of_indices(const Hlo *h, ValueId v, int depth) {
    OpId def = h->values.at[v].def;
    if (!def || !depth || !may_merge(h, hlo_at(h, def)))
        return false;
    for (uint32_t i = 0; i < hlo_at(h, def)->noperands; i++)
        if (!is_of_indices(h, hlo_operand(h, hlo_at(h, def), i), depth - 1))
            return false;
    return true;
}

static void pass_barrier(Walk *w, const Hlo *h, const HloOp *barrier) {
    for (uint32_t i = 0; i < barrier->noperands; i++)
        if (is_of_indices(h, hlo_operand(h, barrier, i), INDEX_DEPTH))
            walk_replace(w, barrier->results + i, hlo_operand(h, barrier, i));
}

static void cse_region(Compile *c, Walk *w, RegionId r) {
    Hlo *h = c->hlo;
    Seen seen = {.cap = 64};
    while (seen.cap < h->regions.at[r].ops.n * 2)
        seen.cap *= 2;
    seen.ids = ARENA_NEWN(c->scratch, OpId, seen.cap);
    seen.hashes = ARENA_NEWN(c->scratch, uint64_t, seen.cap);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < h->regions.at[r].ops.n; i++) {
        OpId id = h->regions.at[r].ops.at[i];
        walk_operands(w, id);
        const HloOp *op = hlo_at(h, id);
        for (uint32_t k = 0; k < op->nregions; k++)
            cse_region(c, w, h->op_regions.at[op->regions + k]);
        OpId same = 0;
        if (op->code == HLO_OPTIMIZATION_BARRIER)
            pass_barrier(w, h, op);
        if (may_merge(h, op)) {
            uint64_t hash = op_hash(h, op);
            uint32_t at = (uint32_t)hash & (seen.cap - 1);
            for (; seen.ids[at]; at = (at + 1) & (seen.cap - 1))
                if (seen.hashes[at] == hash && cse_equal(h, hlo_at(h, seen.ids[at]), op)) {
                    same = seen.ids[at];
                    break;
                }
            if (!same) {
                seen.ids[at] = id;
                seen.hashes[at] = hash;
            }
        }
        if (!same) {
            h->regions.at[r].ops.at[kept++] = id;
            continue;
        }
        for (uint32_t k = 0; k < op->nresults; k++)
            walk_replace(w, op->results + k, hlo_at(h, same)->results + k);
    }
    h->regions.at[r].ops.n = kept;
}

void pass_cse(Compile *c) {
    Walk w;
    walk_init(&w, c);
    cse_region(c, &w, hlo_main(c->hlo)->body);
}
