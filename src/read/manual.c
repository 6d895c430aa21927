// SPDX-License-Identifier: Apache-2.0
// manual.c — parts of a program in which devices go their own way, told by calls at their bounds, become Shardy's regions.
//
//   %l = custom_call @SPMDFullToShardShape(%g)
//   %m = … %l …                                  ->   %r = sdy.manual_computation(%g) … ({ ^(%l): %m = … %l …; return %m })
//   %r = custom_call @SPMDShardToFullShape(%m)
//
// Inside are the operations that follow from a call in without passing a call out, and those without operands that only they
// read. Operations that follow from one another inside are one region; what such regions read is put before them, what reads
// them behind. The calls carry Shardy's texts under these names (gspmd.c, xla_inst.c): in_shardings, out_shardings, manual_axes.
#include <string.h>

#include "read/read.h"

enum { PLAIN, IN, OUT }; // kinds of operations

typedef VEC(uint32_t) Places;

typedef struct Manual {
    Hlo *h;
    Arena *a;
    uint32_t *at;     // by op: its place in the region at hand, from 1
    ValueId *now;     // by value: what stands for it, 0: itself
    uint32_t n;       // of the region at hand
    const OpId *ops;
    uint8_t *kind;
    bool *inside, *put;
    uint32_t *up;     // operations of one part are a tree
    Places reads;
    RegionId region;
    VEC(OpId) made;
} Manual;

static uint8_t kind_of(const Hlo *h, OpId id) {
    const HloOp *op = hlo_at(h, id);
    const char *target = op->code == HLO_CUSTOM_CALL ? hlo_attr_str(op, AK_CALL_TARGET_NAME) : "";
    bool in = !strcmp(target, "SPMDFullToShardShape") || !strcmp(target, "xla.sdy.GlobalToLocalShape");
    return in ? IN : !strcmp(target, "SPMDShardToFullShape") || !strcmp(target, "xla.sdy.LocalToGlobalShape") ? OUT : PLAIN;
}

// The operations of the region at hand whose results this one reads, in its regions too.
static void reads_add(Manual *m, OpId id) {
    const HloOp *op = hlo_at(m->h, id);
    for (uint32_t k = 0; k < op->noperands; k++) {
        OpId def = m->h->values.at[hlo_operand(m->h, op, k)].def;
        if (def && m->at[def])
            VEC_PUSH(m->a, &m->reads, m->at[def] - 1);
    }
    for (uint32_t r = 0; r < op->nregions; r++)
        for (uint32_t i = 0; i < hlo_op_region(m->h, op, r)->ops.n; i++)
            reads_add(m, hlo_op_region(m->h, op, r)->ops.at[i]);
}

static Places reads(Manual *m, uint32_t i) {
    m->reads.n = 0;
    reads_add(m, m->ops[i]);
    return m->reads;
}

static uint32_t part_of(const Manual *m, uint32_t i) {
    while (m->up[i] != i)
        i = m->up[i] = m->up[m->up[i]];
    return i;
}

static void join(Manual *m, uint32_t a, uint32_t b) { m->up[part_of(m, a)] = part_of(m, b); }

static bool belongs(const Manual *m, uint32_t i) { return m->inside[i] || m->kind[i] != PLAIN; }

_Noreturn static void fail(Manual *m, uint32_t i, const char *what) {
    ctx_hint(m->h->ctx, "give the program as StableHLO with Shardy's shardings: jax.jit(f).lower(...).as_text()");
    hlo_fail(m->h, m->ops[i], OTRN_UNSUPPORTED, "a part in which devices go their own way (shard_map) %s", what);
}

// --- what is inside ----------------------------------------------------------------------------------

static void follow(Manual *m) {
    for (uint32_t i = 0; i < m->n; i++) {
        Places from = reads(m, i);
        for (uint32_t k = 0; k < from.n; k++) {
            uint32_t d = from.at[k];
            if (m->kind[d] == OUT || (m->kind[d] == PLAIN && !m->inside[d]))
                continue;
            if (i == m->n - 1 || m->kind[i] == IN)
                fail(m, d, "has results that no call takes out of it");
            m->inside[i] = m->kind[i] == PLAIN;
            join(m, i, d);
        }
    }
}

// Constants, numbers of devices and the like that one part alone reads are its own.
static void take_free(Manual *m) {
    enum { NOBODY = 0, SEVERAL = 1 };
    bool *free = ARENA_NEWN(m->a, bool, m->n);
    uint32_t *reader = ARENA_NEWN(m->a, uint32_t, m->n); // 2 + an operation of that part
    for (uint32_t i = 0; i + 1 < m->n; i++) {
        Places from = reads(m, i);
        const HloOp *op = hlo_at(m->h, m->ops[i]);
        free[i] = m->kind[i] == PLAIN && !m->inside[i] && !op->nregions && from.n == op->noperands;
        for (uint32_t k = 0; k < from.n; k++)
            free[i] &= free[from.at[k]];
    }
    for (uint32_t i = m->n; i-- > 0;) {
        if (free[i] && reader[i] > SEVERAL) {
            m->inside[i] = true;
            join(m, i, reader[i] - 2);
        }
        Places from = reads(m, i);
        for (uint32_t k = 0; k < from.n; k++) {
            uint32_t *r = &reader[from.at[k]];
            bool mine = m->inside[i] || m->kind[i] == OUT;
            bool other = *r != NOBODY && (*r == SEVERAL || !mine || part_of(m, *r - 2) != part_of(m, i));
            *r = mine && !other ? 2 + i : SEVERAL;
        }
    }
}

// --- the region --------------------------------------------------------------------------------------

static void list_add(Manual *m, uint32_t i, const char *name, Buf *out) {
    static const char head[] = "#sdy.sharding_per_value<[";
    const HloOp *op = hlo_at(m->h, m->ops[i]);
    const HloNamed *said = hlo_named_find(op->extra, op->nextra, name);
    size_t n = said ? said->value.n : 0;
    if (!said || n < sizeof head + 1 || memcmp(said->value.s, head, sizeof head - 1) || op->noperands != op->nresults)
        fail(m, i, "does not say how its tensors lie");
    buf_puts(out, out->n ? ", " : head);
    buf_put(out, said->value.s + sizeof head - 1, n - (sizeof head - 1) - 2);
}

static HloNamed named(const char *name, Buf *list) {
    buf_puts(list, list->n ? "]>" : "#sdy.sharding_per_value<[]>");
    return (HloNamed){name, {.kind = HA_OPAQUE, .n = (uint32_t)list->n, .s = buf_cstr(list)}};
}

static void build(Manual *m, uint32_t part) {
    Hlo *h = m->h;
    VEC(ValueId) in = {0}, out = {0};
    VEC(TypeId) arg_types = {0}, types = {0};
    Buf ins = {.arena = m->a}, outs = {.arena = m->a};
    HloNamed *extra = ARENA_NEWN(m->a, HloNamed, 3);
    LocId loc = 0;
    for (uint32_t i = 0; i < m->n; i++) {
        if (!belongs(m, i) || part_of(m, i) != part || m->inside[i])
            continue;
        const HloOp op = *hlo_at(h, m->ops[i]);
        bool is_in = m->kind[i] == IN;
        const HloNamed *axes = hlo_named_find(op.extra, op.nextra, "manual_axes");
        list_add(m, i, is_in ? "in_shardings" : "out_shardings", is_in ? &ins : &outs);
        extra[1] = axes ? *axes : extra[1];
        loc = loc ? loc : op.loc;
        for (uint32_t k = 0; k < op.noperands; k++) {
            VEC_PUSH(m->a, is_in ? &in : &out, hlo_operand(h, &op, k));
            VEC_PUSH(m->a, is_in ? &arg_types : &types, h->values.at[op.results + k].type);
        }
    }
    extra[0] = named("in_shardings", &ins);
    extra[2] = named("out_shardings", &outs);
    OpId id = hlo_op(h, HLO_SDY_MANUAL_COMPUTATION, loc, in.n, in.at, types.n, types.at);
    hlo_at(h, id)->extra = extra;
    hlo_at(h, id)->nextra = 3;
    RegionId body = hlo_op_add_region(h, id, in.n, arg_types.at);
    uint32_t nin = 0, nout = 0;
    for (uint32_t i = 0; i < m->n; i++) {
        if (!belongs(m, i) || part_of(m, i) != part)
            continue;
        const HloOp op = *hlo_at(h, m->ops[i]);
        for (uint32_t k = 0; m->kind[i] != PLAIN && k < op.nresults; k++)
            m->now[op.results + k] = m->kind[i] == IN ? h->regions.at[body].args + nin++ : hlo_at(h, id)->results + nout++;
        if (m->inside[i])
            hlo_region_push(h, body, m->ops[i]);
        m->put[i] = true;
    }
    hlo_region_push(h, body, hlo_op(h, HLO_RETURN, 0, out.n, out.at, 0, NULL));
    VEC_PUSH(m->a, &m->made, id);
}

// --- the order ---------------------------------------------------------------------------------------

static bool ready(Manual *m, uint32_t i) {
    uint32_t part = belongs(m, i) ? part_of(m, i) : m->n;
    Places from = reads(m, i);
    for (uint32_t k = 0; k < from.n; k++)
        if (!m->put[from.at[k]] && (part == m->n || !belongs(m, from.at[k]) || part_of(m, from.at[k]) != part))
            return false;
    return true;
}

// A part may be put where its last operation stands, once all that it reads is there; what waited for it comes in the next round.
static void order(Manual *m) {
    uint32_t *waits = ARENA_NEWN(m->a, uint32_t, m->n), left = m->n - 1, before; // by part: members not ready
    do {
        before = left;
        for (uint32_t i = 0; i < m->n; i++)
            waits[i] = 0;
        for (uint32_t i = 0; i + 1 < m->n; i++)
            waits[part_of(m, i)] += belongs(m, i) && !m->put[i];
        for (uint32_t i = 0; i + 1 < m->n; i++) {
            if (m->put[i] || !ready(m, i))
                continue;
            if (!belongs(m, i)) {
                m->put[i] = true;
                left--;
                VEC_PUSH(m->a, &m->made, m->ops[i]);
            } else if (!--waits[part_of(m, i)]) {
                build(m, part_of(m, i));
                left = 0;
                for (uint32_t k = 0; k + 1 < m->n; k++)
                    left += !m->put[k];
            }
        }
    } while (left && left != before);
    for (uint32_t i = 0; left && i < m->n; i++)
        if (m->kind[i] == IN && !m->put[i])
            fail(m, i, "reads what follows from it outside");
    VEC_PUSH(m->a, &m->made, m->ops[m->n - 1]);
}

static void region_read(Manual *m, RegionId r) {
    Hlo *h = m->h;
    uint32_t n = h->regions.at[r].ops.n;
    m->n = n;
    m->ops = h->regions.at[r].ops.at;
    m->kind = ARENA_NEWN(m->a, uint8_t, n);
    m->inside = ARENA_NEWN(m->a, bool, n);
    m->put = ARENA_NEWN(m->a, bool, n);
    m->up = ARENA_NEWN(m->a, uint32_t, n);
    m->made.at = NULL;
    m->made.n = m->made.cap = 0;
    for (uint32_t i = 0; i < n; i++) {
        m->kind[i] = kind_of(h, m->ops[i]);
        m->up[i] = i;
        m->at[m->ops[i]] = i + 1;
    }
    follow(m);
    take_free(m);
    order(m);
    for (uint32_t i = 0; i < n; i++)
        m->at[m->ops[i]] = 0;
    h->regions.at[r].ops.at = m->made.at;
    h->regions.at[r].ops.n = m->made.n;
    h->regions.at[r].ops.cap = m->made.cap;
}

// One device has all: a part is the whole.
static void drop(Manual *m, RegionId r) {
    Hlo *h = m->h;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < h->regions.at[r].ops.n; i++) {
        OpId id = h->regions.at[r].ops.at[i];
        const HloOp *op = hlo_at(h, id);
        if (kind_of(h, id) == PLAIN) {
            h->regions.at[r].ops.at[kept++] = id;
            continue;
        }
        for (uint32_t k = 0; k < op->nresults; k++) {
            ValueId v = k < op->noperands ? hlo_operand(h, op, k) : 0;
            if (!v || h->values.at[v].type != h->values.at[op->results + k].type)
                hlo_fail(h, id, OTRN_PARSE, "a part has another shape than the whole, in a program for one device");
            m->now[op->results + k] = m->now[v] ? m->now[v] : v;
        }
    }
    h->regions.at[r].ops.n = kept;
}

void read_manual(Hlo *h, bool one_device) {
    bool *has = NULL;
    uint32_t nregions = h->regions.n, nvalues = h->values.n;
    for (RegionId r = 1; r < nregions; r++)
        for (uint32_t i = 0; i < h->regions.at[r].ops.n; i++)
            if (kind_of(h, h->regions.at[r].ops.at[i]) != PLAIN) {
                has = has ? has : ARENA_NEWN(h->arena, bool, nregions);
                has[r] = true;
                break;
            }
    if (!has)
        return;
    Manual m = {.h = h, .a = h->arena, .at = ARENA_NEWN(h->arena, uint32_t, h->ops.n), .now = ARENA_NEWN(h->arena, ValueId, nvalues)};
    for (RegionId r = 1; r < nregions; r++)
        if (has[r] && one_device)
            drop(&m, r);
        else if (has[r])
            region_read(&m, r);
    for (uint32_t i = 0; i < h->operands.n; i++)
        if (h->operands.at[i] < nvalues && m.now[h->operands.at[i]])
            h->operands.at[i] = m.now[h->operands.at[i]];
}
