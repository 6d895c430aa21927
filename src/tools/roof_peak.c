// SPDX-License-Identifier: Apache-2.0
// roof_peak.c — memory of a program on a device that nobody compiles for here: what is live, operation by operation.
//
// A value is there from the operation that makes it to the last that reads it; arguments from the beginning, those that are given away (donated)
// until somebody writes their place. A view lives in what it shows. Elementwise work is done in the place of an operand of its size.
#include <math.h>
#include <string.h>

#include "tools/roof.h"

typedef struct Peak {
    const Hlo *h;
    Arena *arena;
    const Users *u;
    const bool *chip;
    ValueId *root; // per value: whose memory it lies in
    OpId *last;    // per root: the last of its region that reads it; 0: nobody
    bool *kept;    // per root: beyond the region
} Peak;

bool roof_is_free(const HloOp *op) {
    return op->code == HLO_CONSTANT || op->code == HLO_RESHAPE || op->code == HLO_RETURN || op->code == HLO_BITCAST_CONVERT || op->code == HLO_IOTA ||
           op->code == HLO_OPTIMIZATION_BARRIER || op->code == HLO_PARTITION_ID || op->code == HLO_REPLICA_ID;
}

static double bytes_of(const Peak *p, ValueId v) {
    const HloType *t = hlo_value_type(p->h, v);
    return hlo_is_plain(t) && !p->chip[v] ? (double)hlo_type_bytes(t) : 0;
}

static bool is_own(const Peak *p, ValueId v, RegionId region) {
    const HloValue *at = &p->h->values.at[v];
    return (at->def ? p->u->region[at->def] : at->region) == region;
}

// Bytes of the results that have memory of their own; unread: only those that nobody reads.
static double made_by(const Peak *p, const HloOp *op, bool unread) {
    double bytes = 0;
    for (uint32_t k = 0; k < op->nresults && !roof_is_free(op); k++)
        bytes += unread && p->last[op->results + k] ? 0 : bytes_of(p, op->results + k);
    return bytes;
}

static void note_roots(Peak *p, RegionId region) {
    const HloRegion *r = &p->h->regions.at[region];
    for (uint32_t i = 0; i < r->nargs; i++)
        p->root[r->args + i] = r->args + i;
    for (uint32_t i = 0; i < r->ops.n; i++) {
        const HloOp *op = hlo_at(p->h, r->ops.at[i]);
        bool view = roof_is_free(op) && op->noperands == op->nresults;
        for (uint32_t k = 0; k < op->nresults; k++)
            p->root[op->results + k] = view ? p->root[hlo_operand(p->h, op, k)] : op->results + k;
        for (uint32_t k = 0; k < op->noperands; k++)
            if (is_own(p, p->root[hlo_operand(p->h, op, k)], region))
                p->last[p->root[hlo_operand(p->h, op, k)]] = r->ops.at[i];
    }
}

static bool is_donated(const HloFunc *f, uint32_t i) {
    return f->arg_attrs && (hlo_named_find(f->arg_attrs[i], f->narg_attrs[i], "jax.buffer_donor") || hlo_named_find(f->arg_attrs[i], f->narg_attrs[i], "tf.aliasing_output"));
}

// An operand that ends here and is as large makes room for a result.
static bool in_place(const HloOp *op) { return op->code != HLO_DOT_GENERAL && op->code != HLO_CONVOLUTION && hlo_row(op)->cls != HC_COLL; }

static double region_peak(Peak *p, RegionId region);

static double inside(Peak *p, const HloOp *op) {
    double most = 0;
    for (uint32_t k = 0; (op->code == HLO_WHILE || op->code == HLO_IF || op->code == HLO_CASE) && k < op->nregions; k++)
        most = fmax(most, region_peak(p, p->h->op_regions.at[op->regions + k]));
    return most;
}

// Beyond what is there when the region begins.
static double region_peak(Peak *p, RegionId region) {
    const HloRegion *r = &p->h->regions.at[region];
    double live = 0, most = 0;
    note_roots(p, region);
    for (uint32_t i = 0; i < r->ops.n; i++) {
        OpId id = r->ops.at[i];
        const HloOp *op = hlo_at(p->h, id);
        double made = made_by(p, op, false), over = 0;
        for (uint32_t k = 0; k < op->noperands; k++) {
            ValueId v = p->root[hlo_operand(p->h, op, k)];
            if (p->last[v] != id || p->kept[v])
                continue;
            over += bytes_of(p, v);
            p->kept[v] = true; // an operand that stands twice ends once
        }
        most = fmax(most, live + inside(p, op) + (in_place(op) ? fmax(made, over) - over : made));
        live += made - over - made_by(p, op, true);
    }
    return fmax(most, live);
}

double roof_peak(const Hlo *h, Arena *a, const Users *u, const bool *chip) {
    Peak p = {.h = h, .arena = a, .u = u, .chip = chip, .root = ARENA_NEWN(a, ValueId, h->values.n + 1), .last = ARENA_NEWN(a, OpId, h->values.n + 1),
              .kept = ARENA_NEWN(a, bool, h->values.n + 1)};
    const HloFunc *f = hlo_main((Hlo *)h);
    const HloRegion *body = &h->regions.at[f->body];
    double args = 0;
    for (uint32_t v = 0; v < h->values.n; v++)
        p.kept[v] = h->values.at[v].region != 0; // arguments, of loops too, are their callers'
    for (uint32_t i = 0; i < body->nargs; i++) {
        args += bytes_of(&p, body->args + i);
        p.kept[body->args + i] = !is_donated(f, i);
    }
    return args + region_peak(&p, f->body);
}
