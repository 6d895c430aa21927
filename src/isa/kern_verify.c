// SPDX-License-Identifier: Apache-2.0
// kern_verify.c — are these kernels operations that exist, on these shapes and types?
//
// The rules of an op are written once, in hlo_verify. So the kernels of a program are put back into
// a graph: one function whose arguments are all their operands, one op for each kernel, its scalar
// programs as regions. A kernel's number travels as the line of its location, which is how an error
// finds its way back.
#include <assert.h>
#include <stdio.h>

#include "isa/kern.h"

typedef struct Rebuild {
    Hlo *h;
    Arena *arena;
    RegionId body;
    ValueId next_arg; // function arguments not yet taken
} Rebuild;

static TypeId tensor_type(Hlo *h, const KTensor *t) {
    if (t->dtype == DT_TOKEN) {
        HloType token = {.kind = HT_TOKEN, .dtype = DT_TOKEN};
        return hlo_type_intern(h, &token);
    }
    return hlo_type_tensor(h, t->dtype, t->rank, t->dims);
}

static TypeId scalar_type(Hlo *h, int dtype) { return hlo_type_tensor(h, dtype, 0, NULL); }

static void set_enum(Hlo *h, OpId op, HloAttrKey key, int64_t v) {
    *hlo_attr_slot(h, op, key) = (HloAttr){.kind = HA_ENUM, .i = v};
}

static void set_int(Hlo *h, OpId op, HloAttrKey key, int64_t v) {
    *hlo_attr_slot(h, op, key) = (HloAttr){.kind = HA_INT, .i = v};
}

static void set_step_attrs(Hlo *h, OpId op, const KStep *s) {
    if (s->op == HLO_COMPARE) {
        set_enum(h, op, AK_COMPARISON_DIRECTION, s->attr[0]);
        set_enum(h, op, AK_COMPARE_TYPE, s->attr[1]);
    } else if (s->op == HLO_REDUCE_PRECISION) {
        set_int(h, op, AK_EXPONENT_BITS, s->attr[0]);
        set_int(h, op, AK_MANTISSA_BITS, s->attr[1]);
    }
}

static ValueId result_of(const Hlo *h, OpId op) { return hlo_at(h, op)->results; }

static void rebuild_region(Rebuild *b, OpId op, const KProg *p, const ValueId *captures,
                           LocId loc) {
    Hlo *h = b->h;
    TypeId *types = ARENA_NEWN(b->arena, TypeId, p->nregs + 1u);
    ValueId *value = ARENA_NEWN(b->arena, ValueId, p->nregs + 1u);
    for (int i = 0; i < p->nregs; i++)
        types[i] = scalar_type(h, p->dtypes[i]);
    RegionId r = hlo_op_add_region(h, op, p->ninputs, types);
    for (int i = 0; i < p->ninputs; i++)
        value[i] = h->regions.at[r].args + (ValueId)i;
    for (int i = 0; i < p->ncaptures; i++)
        value[p->ninputs + i] = captures[i];
    for (int i = 0; i < p->nconsts; i++) {
        uint16_t reg = p->const_regs[i];
        OpId c = hlo_op(h, HLO_CONSTANT, loc, 0, NULL, 1, &types[reg]);
        *hlo_attr_slot(h, c, AK_VALUE) = (HloAttr){.kind = HA_TENSOR,
                                                   .type = types[reg],
                                                   .data = p->consts[i],
                                                   .n = (uint32_t)dtype_bytes(p->dtypes[reg])};
        hlo_region_push(h, r, c);
        value[reg] = result_of(h, c);
    }
    for (int i = 0; i < p->nsteps; i++) {
        const KStep *s = &p->steps[i];
        if (s->op == HLO_WHILE) { // the same steps again: nothing new to judge
            if (p->dtypes[s->src[0]] != DT_I1 || s->dst != s->src[0] || s->attr[0] < 1 || s->attr[0] > i)
                hlo_fail(h, op, OTRN_VERIFY, "step %d of its region is a loop without a beginning", i);
            continue;
        }
        ValueId operands[3] = {value[s->src[0]], value[s->src[1]], value[s->src[2]]};
        OpId step = hlo_op(h, (HloOpcode)s->op, loc, (uint32_t)hlo_op_rows[s->op].operands,
                           operands, 1, &types[s->dst]);
        set_step_attrs(h, step, s);
        hlo_region_push(h, r, step);
        value[s->dst] = result_of(h, step);
    }
    ValueId *outs = ARENA_NEWN(b->arena, ValueId, p->nouts + 1u);
    for (int i = 0; i < p->nouts; i++)
        outs[i] = value[p->outs[i]];
    hlo_region_push(h, r, hlo_op(h, HLO_RETURN, loc, p->nouts, outs, 0, NULL));
}

// Lists and dictionaries (precisions, layouts) mean nothing to a kernel and may have been left out
// of it.
static const HloAttr default_precisions[2] = {{.kind = HA_ENUM, .i = PREC_DEFAULT},
                                              {.kind = HA_ENUM, .i = PREC_DEFAULT}};

static void fill_absent(Hlo *h, OpId op, const HloOpRow *row) {
    for (int i = 0; i < row->nattrs; i++) {
        HloAttr *slot = &hlo_at(h, op)->attrs[i];
        int kind = hlo_attr_rows[row->attrs[i]].kind;
        bool is_precision = row->attrs[i] == AK_PRECISION_CONFIG;
        if (is_precision && (slot->kind == HA_NONE || (slot->kind == HA_LIST && !slot->n)))
            *slot = (HloAttr){.kind = HA_LIST, .n = 2, .list = default_precisions};
        if (slot->kind != HA_NONE)
            continue;
        if (kind == HA_LIST || kind == HA_DICT)
            *slot = (HloAttr){.kind = (uint8_t)kind};
        else if (row->attrs[i] == AK_BACKEND_CONFIG)
            *slot = (HloAttr){.kind = HA_STR, .s = ""};
    }
}

static uint32_t captures_of(const Kern *k) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < k->nregions; i++)
        n += k->regions[i].ncaptures;
    return n;
}

static void rebuild_kernel(Rebuild *b, Ctx *ctx, const Kern *k, LocId loc, const char *file,
                           uint32_t number) {
    Hlo *h = b->h;
    uint32_t ncaptures = captures_of(k);
    const HloOpRow *row = &hlo_op_rows[k->op];
    if (ncaptures > k->nin)
        ctx_fail(ctx, OTRN_VERIFY, (Place){.file = file, .line = number + 1},
                 "its regions capture more values than it has operands");
    uint32_t noperands = k->nin - ncaptures;
    if ((row->operands >= 0 && noperands != (uint32_t)row->operands) ||
        (row->results >= 0 && k->nout != (uint32_t)row->results) || k->nout > UINT16_MAX)
        ctx_fail(ctx, OTRN_VERIFY, (Place){.file = file, .line = number + 1},
                 "`%s` with %u operands and %u results", row->name, noperands, k->nout);
    ValueId *operands = ARENA_NEWN(b->arena, ValueId, k->nin + 1u);
    TypeId *results = ARENA_NEWN(b->arena, TypeId, k->nout + 1u);
    for (uint32_t i = 0; i < k->nin; i++)
        operands[i] = b->next_arg++;
    for (uint32_t i = 0; i < k->nout; i++)
        results[i] = tensor_type(h, &k->out[i]);
    OpId op = hlo_op(h, (HloOpcode)k->op, loc, noperands, operands, k->nout, results);
    for (uint32_t i = 0; i < k->nattrs && i < row->nattrs; i++)
        hlo_at(h, op)->attrs[i] = k->attrs[i];
    fill_absent(h, op, row);
    const ValueId *captures = operands + noperands;
    for (uint32_t i = 0; i < k->nregions; i++) {
        rebuild_region(b, op, &k->regions[i], captures, loc);
        captures += k->regions[i].ncaptures;
    }
    hlo_region_push(h, b->body, op);
}

static void rebuild_and_verify(Ctx *ctx, Arena *scratch, const Kern *kerns, uint32_t n,
                               const char *file) {
    Hlo *h = hlo_make(ctx, scratch, file);
    Rebuild b = {.h = h, .arena = scratch};
    VEC(TypeId) args = {0};
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < kerns[i].nin; k++)
            VEC_PUSH(scratch, &args, tensor_type(h, &kerns[i].in[k]));
    b.body = hlo_region(h, 0, args.n, args.at);
    b.next_arg = h->regions.at[b.body].args;
    StrId file_str = hlo_str(h, file, strlen(file));
    for (uint32_t i = 0; i < n; i++) {
        HloLoc loc = {.kind = HL_FILE, .str = file_str, .line = i + 1, .col = 1};
        rebuild_kernel(&b, ctx, &kerns[i], hlo_loc(h, &loc), file, i);
    }
    hlo_region_push(h, b.body, hlo_op(h, HLO_RETURN, 0, 0, NULL, 0, NULL));
    HloFunc f = {.name = "main", .body = b.body, .nargs = args.n};
    VEC_PUSH(scratch, &h->funcs, f);
    hlo_verify(h);
}

// Turns "line n+1 of the file" back into "kernel n".
static void name_kernel(otrn_error *err) {
    char text[sizeof err->text];
    if (!err->line)
        return;
    snprintf(text, sizeof text, "kernel %u: %.900s", err->line - 1, err->text);
    memcpy(err->text, text, sizeof text);
    err->line = err->col = 0;
}

void kern_verify(Ctx *ctx, Arena *scratch, const Kern *kerns, uint32_t n, const char *file) {
    if (!n)
        return;
    jmp_buf here, *outer = ctx->on_fail;
    if (CTX_TRY(ctx, here)) {
        rebuild_and_verify(ctx, scratch, kerns, n, file ? file : "");
        ctx->on_fail = outer;
    } else {
        ctx->on_fail = outer;
        name_kernel(&ctx->err);
        longjmp(*outer, 1);
    }
}
