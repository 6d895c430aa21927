// SPDX-License-Identifier: Apache-2.0
// nan.c — where the first NaN of a run comes from.
//
// As long as no NaN is anywhere, an instruction that writes one made it. Once there is one (an argument may bring
// it), the operands of each instruction are looked at before it runs, because results may take their
// memory: a NaN that had one among its operands is only passed on. The same holds for Inf, which
// programs also write on purpose: an instruction without operands, such as a fill, makes none.
//
// What is looked at is exactly what the instruction touches (isa/track.h), in its operand's type. Transfers that
// do not compute are passed over; they only carry.
#include "chip/core/nan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "isa/track.h"

enum { HAS_NAN = 1, HAS_INF = 2 };

typedef struct Look {
    Region r;
    uint8_t dtype;
    bool is_write;
    const KTensor *tensor; // of a kernel
    const uint8_t *copy;   // of an operand whose memory a result takes, for the message
} Look;

struct ChipNan {
    const Artifact *art;
    Arena *arena;
    NanView view;
    VEC(Look) looks; // of the instruction at hand
    unsigned seen;   // HAS_… somewhere in memory
    unsigned before; // HAS_… among the operands of the instruction at hand
    unsigned weights; // HAS_… in the array
    bool has_operands, also_inf;
    Buf kept;        // what the copies point to
    uint32_t inf_pc; // what made the first Inf
    bool has_inf_pc;
};

// --- looking at elements ---------------------------------------------------------------------------------

static int plain_type(int dtype) { // a complex number is two of these
    return dtype == DT_C64 ? DT_F32 : dtype == DT_C128 ? DT_F64 : dtype;
}

static unsigned element_kind(int dtype, const uint8_t *at) {
    double v = dtype_to_f64(dtype, at);
    return isnan(v) ? HAS_NAN : isinf(v) ? HAS_INF : 0;
}

// What is in `bytes` bytes of elements; *first is the offset of the first NaN, or of the first Inf before any.
static unsigned run_kinds(int dtype, const uint8_t *at, int64_t bytes, int64_t *first) {
    int64_t size = (int64_t)dtype_bytes(dtype);
    unsigned kinds = 0;
    for (int64_t i = 0; i + size <= bytes; i += size) {
        if (dtype == DT_F32) { // most of them: nothing to do unless the exponent is all ones
            uint32_t bits;
            memcpy(&bits, at + i, 4);
            if (~bits & 0x7f800000)
                continue;
        }
        unsigned kind = element_kind(dtype, at + i);
        if (kind & ~kinds && !(kinds & HAS_NAN))
            *first = i;
        kinds |= kind;
        if (kinds & HAS_NAN)
            break;
    }
    return kinds;
}

static const uint8_t *base_of(const ChipNan *n, const Region *r, uint32_t part) {
    switch (r->place >> 16) {
    case SPACE_SBUF:
        return n->view.sbuf + (size_t)part * n->view.sbuf_pitch;
    case SPACE_PSUM:
        return n->view.psum + (size_t)part * n->view.psum_pitch;
    default:
        return n->view.segs[r->place & 0xffff];
    }
}

typedef struct Found {
    unsigned kinds;
    int64_t at; // bytes from the begin of its partition or segment, of what counts most so far
    uint32_t part;
} Found;

static void axis_kinds(const Look *l, int axis, int64_t base, const uint8_t *mem, uint32_t part, Found *f) {
    const Region *r = &l->r;
    if (axis == r->n) {
        int64_t first = 0;
        unsigned kinds = run_kinds(plain_type(l->dtype), mem + base, r->run, &first);
        if (kinds & ~f->kinds && !(f->kinds & HAS_NAN)) {
            f->at = base + first;
            f->part = part;
        }
        f->kinds |= kinds;
        return;
    }
    for (uint32_t i = 0; i < r->count[axis] && !(f->kinds & HAS_NAN); i++)
        axis_kinds(l, axis + 1, base + (int64_t)i * r->stride[axis], mem, part, f);
}

static Found look(const ChipNan *n, const Look *l) {
    Found f = {0};
    for (uint32_t p = l->r.part0; p < l->r.part1 && !(f.kinds & HAS_NAN); p++) {
        const uint8_t *mem = base_of(n, &l->r, p);
        if (mem)
            axis_kinds(l, 0, l->r.base, mem, p, &f);
    }
    return f;
}

// --- one instruction -------------------------------------------------------------------------------------

static bool only_carries(const IsaInst *in) {
    return in->op == ISA_DMA_TRANSPOSE || (in->op == ISA_DMA && !in->op0 && (!in->dtype || in->dtype == in->stype));
}

static void look_add(ChipNan *n, Region r, int dtype, bool is_write, const KTensor *tensor) {
    if (!is_write)
        n->has_operands = true;
    if (dtype_is_float(plain_type(dtype)) && r.hi > r.lo)
        VEC_PUSH(n->arena, &n->looks, ((Look){r, (uint8_t)dtype, is_write, tensor, NULL}));
}

// The operand of a kernel that is computed in place is gone when there is something to tell.
static void operand_keep(ChipNan *n, const Kern *k) {
    for (uint32_t i = 0; i < n->looks.n; i++) {
        Look *l = &n->looks.at[i];
        bool taken = false;
        for (uint32_t o = 0; o < k->nout; o++)
            taken |= k->out[o].addr == l->tensor->addr;
        if (l->is_write || !taken)
            continue;
        n->kept.n = 0;
        buf_put(&n->kept, base_of(n, &l->r, 0) + l->r.base, (size_t)(l->r.hi - l->r.lo));
        l->copy = n->kept.at;
        return;
    }
}

static void looks_make(ChipNan *n, const IsaInst *in, const int64_t *regs) {
    IsaAccess a[ISA_ACCESS_MAX];
    int cost = isa_rows[in->op].cost, count = isa_accesses(in, isa_row_mask(in->op), a);
    for (int i = 0; i < count; i++) {
        int64_t terms = 0;
        for (int t = 0; a[i].reg && t < 2 && a[i].reg[t]; t++)
            terms += regs[a[i].reg[t] - 1] * a[i].mul[t];
        look_add(n, track_region(&a[i], terms), a[i].dtype, a[i].is_write, NULL);
    }
    if (cost != COST_KERNEL && cost != COST_COLLECTIVE)
        return;
    const Kern *k = &n->art->kerns[in->imm];
    for (uint32_t i = 0; i < k->nin + k->nout; i++) {
        const KTensor *t = i < k->nin ? &k->in[i] : &k->out[i - k->nin];
        int64_t at = (int64_t)addr_off(t->addr), bytes = t->elems * (int64_t)dtype_bytes(t->dtype);
        look_add(n, track_box(addr_seg(t->addr), 0, 1, at, at + bytes), t->dtype, i >= k->nin, t);
    }
    operand_keep(n, k);
}

ChipNan *chip_nan_make(Arena *a, const Artifact *art, const NanView *view, bool also_inf) {
    ChipNan *n = ARENA_NEW(a, ChipNan);
    *n = (ChipNan){.art = art, .arena = a, .view = *view, .also_inf = also_inf, .kept = {.arena = a}};
    for (uint32_t i = 0; i < art->nargs; i++) {
        bool ok;
        int64_t bytes = (int64_t)artifact_seg_bytes(art, SEG_FIRST_ARG + i, &ok);
        Look l = {.r = track_box(SEG_FIRST_ARG + i, 0, 1, 0, bytes), .dtype = art->args[i].dtype};
        if (ok && dtype_is_float(plain_type(l.dtype)))
            n->seen |= look(n, &l).kinds;
    }
    if (art->const_bytes) // their types are not kept: let every instruction look at what it reads
        n->seen |= HAS_NAN | HAS_INF;
    return n;
}

void chip_nan_before(ChipNan *n, uint32_t pc, const int64_t *regs) {
    n->looks.n = 0;
    n->before = 0;
    n->has_operands = false;
    const IsaInst *in = &n->art->code[pc];
    if (only_carries(in))
        return;
    looks_make(n, in, regs);
    for (uint32_t i = 0; n->seen && i < n->looks.n; i++)
        if (!n->looks.at[i].is_write)
            n->before |= look(n, &n->looks.at[i]).kinds;
    if (in->op == ISA_LDWEIGHTS || in->op == ISA_LDWEIGHTS_MX)
        n->weights = n->before | (in->trows || in->tcols ? n->weights : 0); // a tile leaves the others
    else if (in->engine == ENG_TENSOR)
        n->before |= n->weights;
}

// --- telling -----------------------------------------------------------------------------------------------

static const char *what_runs(const ChipNan *n, uint32_t pc) {
    const IsaInst *in = &n->art->code[pc];
    int cost = isa_rows[in->op].cost;
    if (cost != COST_KERNEL && cost != COST_COLLECTIVE)
        return arena_printf(n->arena, "%s: %s", engine_names[in->engine], isa_rows[in->op].name);
    const HloOpRow *row = &hlo_op_rows[n->art->kerns[in->imm].op];
    return arena_printf(n->arena, "%s.%s", hlo_dialect_names[row->dialect], row->name);
}

static const char *element_text(const ChipNan *n, const Look *l, int64_t element) {
    Buf b = {.arena = n->arena};
    int64_t rest = element, dims[OTRN_MAX_RANK];
    for (int i = l->tensor->rank - 1; i >= 0; rest /= l->tensor->dims[i], i--)
        dims[i] = rest % l->tensor->dims[i];
    for (int i = 0; i < l->tensor->rank; i++)
        buf_printf(&b, "%s%lld", i ? ", " : "", (long long)dims[i]);
    return arena_printf(n->arena, "[%s]", buf_cstr(&b));
}

// The operands of the same shape at that element.
static const char *operands_text(const ChipNan *n, const Look *out, int64_t element) {
    Buf b = {.arena = n->arena};
    for (uint32_t i = 0; i < n->looks.n; i++) {
        const Look *l = &n->looks.at[i];
        if (l->is_write || l->tensor->elems != out->tensor->elems ||
            (l->tensor->addr == out->tensor->addr && !l->copy))
            continue;
        const uint8_t *at = l->copy ? l->copy : base_of(n, &l->r, 0) + l->r.base;
        at += element * (int64_t)dtype_bytes(l->dtype);
        buf_printf(&b, "%s%.9g", b.n ? ", " : ", from ", dtype_to_f64(plain_type(l->dtype), at));
    }
    return buf_cstr(&b);
}

static const char *place_text(const ChipNan *n, uint32_t pc) {
    const ArtLoc *loc = &n->art->locs[n->art->code_loc[pc]];
    return *loc->file || loc->line ? arena_printf(n->arena, " at %s:%u", loc->file, loc->line) : "";
}

static otrn_status tell(const ChipNan *n, uint32_t pc, const Look *l, const Found *f, char *why, size_t why_bytes) {
    const char *kind = f->kinds & HAS_NAN ? "a NaN" : "an Inf", *where = "", *from = "";
    if (l->tensor && l->tensor->rank) {
        int64_t element = (f->at - l->r.base) / (int64_t)dtype_bytes(l->dtype);
        where = element_text(n, l, element);
        from = operands_text(n, l, element);
    }
    const char *first = "";
    if (f->kinds & HAS_NAN && n->has_inf_pc)
        first = arena_printf(n->arena, "; the first Inf was made by %s%s", what_runs(n, n->inf_pc),
                             place_text(n, n->inf_pc));
    snprintf(why, why_bytes, "%s (instruction %u) made %s%s%s%s%s%s", what_runs(n, pc), pc, kind,
             *where ? " in element " : "", where, from,
             n->before & HAS_INF ? "; it had an Inf among its operands" : "", first);
    return OTRN_CHECK;
}

otrn_status chip_nan_after(ChipNan *n, uint32_t pc, char *why, size_t why_bytes) {
    for (uint32_t i = 0; i < n->looks.n; i++) {
        const Look *l = &n->looks.at[i];
        if (!l->is_write)
            continue;
        Found f = look(n, l);
        n->seen |= f.kinds;
        unsigned made = f.kinds & ~n->before;
        if (made & HAS_NAN)
            return tell(n, pc, l, &f, why, why_bytes);
        if (!(made & HAS_INF) || !n->has_operands)
            continue;
        if (n->also_inf && !(f.kinds & HAS_NAN))
            return tell(n, pc, l, &f, why, why_bytes);
        if (!n->has_inf_pc)
            n->inf_pc = pc;
        n->has_inf_pc = true;
    }
    return OTRN_OK;
}
