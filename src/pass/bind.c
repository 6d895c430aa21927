// SPDX-License-Identifier: Apache-2.0
// bind.c — a program with dimensions of unknown size meets the arguments of one run.
//
// The entry's arguments get the types of what will be passed. Integer scalars whose values are given
// become constants: exporters pass sizes that way. The rest of the graph is refined later, by the
// shapes pass; until then a value of known shape may be used where the graph still says `?`, which
// the verifier takes as equal.
#include <string.h>

#include "hlo/verify.h"
#include "pass/pass.h"

static bool is_open(const HloType *t) { return t->kind == HT_TENSOR && t->dynamic; }

_Noreturn static void misfit(Hlo *h, uint32_t i, TypeId want, const otrn_type *given) {
    Buf a = {.arena = h->arena}, b = {.arena = h->arena};
    hlo_print_type(h, want, &a);
    buf_puts(&b, "tensor<");
    for (int d = 0; d < given->rank; d++)
        buf_printf(&b, "%lldx", (long long)given->dims[d]);
    buf_printf(&b, "%s>", given->dtype ? dtype_row(given->dtype)->name : "void");
    ctx_fail(h->ctx, OTRN_ARGUMENT, (Place){.file = h->file}, "argument %u is %s, given is %s", i,
             buf_cstr(&a), buf_cstr(&b));
}

static bool dtype_fits(int want, int given) {
    return given == want || given == DT_INVALID || (want == DT_INDEX && given == DT_I64) ||
           (want == DT_TF32 && given == DT_F32);
}

static void bind_type(Hlo *h, uint32_t i, ValueId arg, const otrn_type *given) {
    TypeId id = h->values.at[arg].type;
    HloType t = *hlo_type(h, id);
    if (!is_open(&t))
        return; // whether it fits is told when the program runs
    bool known_dtype = given->dtype >= 0 && given->dtype < DT_COUNT;
    bool fits = known_dtype && dtype_fits(t.dtype, given->dtype) && t.rank == given->rank;
    for (int d = 0; fits && d < t.rank; d++)
        fits = given->dims[d] >= 0 && given->dims[d] <= verify_bound(&t, d) &&
               (t.dims[d] == HLO_DYNAMIC || t.dims[d] == given->dims[d]);
    if (!fits)
        misfit(h, i, id, known_dtype ? given : &(otrn_type){0});
    t.dims = given->dims;
    if (t.text && t.text[0] == '#')
        t.text = NULL; // bounds of a size that is known now
    h->values.at[arg].type = hlo_type_intern(h, &t);
}

// Every use of the argument reads a constant instead.
static void bind_value(Hlo *h, RegionId body, ValueId arg, const otrn_type *given,
                       const void *data) {
    TypeId type = h->values.at[arg].type;
    const HloType *t = hlo_type(h, type);
    if (t->kind != HT_TENSOR || t->rank || t->text || !dtype_is_int(t->dtype) || given->rank ||
        given->dtype != t->dtype)
        return;
    OpId id = hlo_op(h, HLO_CONSTANT, hlo_main(h)->loc, 0, NULL, 1, &type);
    size_t bytes = dtype_bytes(hlo_type(h, type)->dtype);
    *hlo_attr_slot(h, id, AK_VALUE) = (HloAttr){.kind = HA_TENSOR,
                                                .type = type,
                                                .n = (uint32_t)bytes,
                                                .data = arena_dup(h->arena, data, bytes)};
    ValueId made = hlo_at(h, id)->results;
    for (uint32_t i = 0; i < h->operands.n; i++)
        if (h->operands.at[i] == arg)
            h->operands.at[i] = made;
    hlo_region_push(h, body, id);
    HloRegion *r = &h->regions.at[body];
    memmove(r->ops.at + 1, r->ops.at, (r->ops.n - 1) * sizeof *r->ops.at);
    r->ops.at[0] = id;
}

void pass_bind_results(Hlo *h, HloFunc *f) {
    const HloRegion *r = &h->regions.at[f->body];
    const HloOp *ret = hlo_at(h, r->ops.at[r->ops.n - 1]);
    TypeId *types = ARENA_NEWN(h->arena, TypeId, r->nargs + ret->noperands + 1);
    for (uint32_t i = 0; i < r->nargs; i++)
        types[i] = h->values.at[r->args + i].type;
    for (uint32_t i = 0; i < ret->noperands; i++)
        types[r->nargs + i] = h->values.at[hlo_operand(h, ret, i)].type;
    f->result_types = types + r->nargs;
}

bool pass_bind(Hlo *h, const otrn_type *types, const void *const *values, size_t n) {
    HloFunc *f = hlo_main(h);
    HloRegion body = h->regions.at[f->body];
    bool open = false, sized = false; // sized: a number that comes with the call may be the size of something inside
    for (uint32_t i = 0; i < body.nargs; i++)
        open = open || is_open(hlo_value_type(h, body.args + i));
    for (uint32_t i = 0; !open && values && i < n; i++)
        sized = sized || values[i];
    for (ValueId v = 1; sized && !open && v < h->values.n; v++)
        open = is_open(hlo_value_type(h, v));
    if (!open)
        return false;
    if (n != body.nargs)
        ctx_fail(h->ctx, OTRN_ARGUMENT, (Place){.file = h->file},
                 "the program takes %u arguments, %zu given", body.nargs, n);
    for (uint32_t i = 0; i < body.nargs; i++)
        bind_type(h, i, body.args + i, &types[i]);
    for (uint32_t i = 0; values && i < body.nargs; i++)
        if (values[i])
            bind_value(h, f->body, body.args + i, &types[i], values[i]);
    pass_bind_results(h, f); // an argument that is returned as it is takes its type along
    return true;
}
