// SPDX-License-Identifier: Apache-2.0
// dynamic.c — slices and updates at places that only the run knows: registers stand in the transfer's address.
//
//   reg_load r, index ──► r = min(max(r, 0), last place) ──► dma at r * stride
//
// An index that cannot move anything (the slice is as long as the dimension) is not looked at, one that is known is part
// of the address. Two may be unknown. An index that a loop's counter tells (count.c) is in a register already; to load
// one takes longer than a small slice on GpSimd.

#include <stdlib.h>

#include "pass/rows.h"
#include "tile/count.h"
#include "tile/emit.h"

#define BYTES_MIN 32768
#define WHOLE_BYTES_MIN 262144 // of what is updated: above, a kernel that copies it takes longer than a transfer
#define RUN_BYTES_MIN 64
#define RUNS_FEW 64 // runs may be shorter then

static bool add_index(const Lower *l, const HloOp *op, uint32_t operand, int64_t last, int64_t stride, Dynamic *d) {
    const Hlo *h = l->h;
    const HloType *t = hlo_value_type(h, hlo_operand(h, op, operand));
    const HloAttr *known = splat_value(h, hlo_operand(h, op, operand));
    if (!last)
        return true;
    if (!dtype_is_int(t->dtype) || dtype_row(t->dtype)->bits < 8)
        return false;
    if (known) {
        int64_t at = dtype_to_i64(t->dtype, known->data);
        d->nest.src += (at < 0 ? 0 : at > last ? last : at) * stride;
        return true;
    }
    int64_t bytes = stride * (int64_t)dtype_bytes(d->dtype);
    Form f;
    bool told = count_form(l, hlo_operand(h, op, operand), &f) && count_least(l, f) >= 0 && count_most(l, f) <= last;
    if (told && !f.loop) {
        d->nest.src += f.add * stride;
        return true;
    }
    told = told && f.add >= 0 && llabs(f.mul) <= INT32_MAX / bytes;
    if (d->count == UNKNOWN_MAX || bytes > INT32_MAX || last > INT32_MAX || t->dtype == DT_UI64)
        return false;
    d->unknown[d->count].form = told ? f : (Form){0};
    d->unknown[d->count].operand = operand;
    d->unknown[d->count].last = last;
    d->unknown[d->count++].bytes = bytes;
    return true;
}

bool dynamic_of(const Lower *l, const HloOp *op, Dynamic *d, Why *why) {
    const Hlo *h = l->h;
    if (op->code != HLO_DYNAMIC_SLICE && op->code != HLO_DYNAMIC_UPDATE_SLICE)
        return false;
    *d = (Dynamic){.update = op->code == HLO_DYNAMIC_UPDATE_SLICE};
    const HloType *whole = hlo_value_type(h, hlo_operand(h, op, 0));
    const HloType *part = d->update ? hlo_value_type(h, hlo_operand(h, op, 1)) : hlo_value_type(h, op->results);
    d->dtype = whole->dtype;
    if (whole->kind != HT_TENSOR || whole->dynamic || whole->text || part->dynamic || part->elems < 1)
        return why_refuse(why, WHY_SIZES);
    if (dtype_row(whole->dtype)->bits < 8)
        return why_refuse_type(why, WHY_LACKS, whole->dtype);
    if (whole->elems >= INT32_MAX)
        return why_refuse(why, WHY_LARGE);
    int64_t from[OTRN_MAX_RANK], to[OTRN_MAX_RANK];
    nest_strides(whole, from), nest_strides(part, to);
    d->nest.rank = whole->rank;
    for (int i = whole->rank; i-- > 0;) {
        d->nest.axis[i] = (Axis){part->dims[i], from[i], to[i]};
        if (!add_index(l, op, (d->update ? 2u : 1u) + (uint32_t)i, whole->dims[i] - part->dims[i], from[i], d))
            return why_refuse(why, WHY_PLACES);
    }
    nest_join(&d->nest);
    int64_t outer = 1;
    for (int i = 0; i + 4 < d->nest.rank; i++)
        outer *= d->nest.axis[i].n;
    const Axis *last = d->nest.rank ? &d->nest.axis[d->nest.rank - 1] : NULL;
    int64_t size = (int64_t)dtype_bytes(d->dtype), run = last && last->src == 1 ? last->n : 1;
    bool told = true;
    for (int i = 0; i < d->count; i++)
        told = told && d->unknown[i].form.known;
    if (told && d->count)
        return (outer == 1 && (run * size >= RUN_BYTES_MIN || part->elems / run <= RUNS_FEW)) || why_refuse(why, WHY_RUNS);
    bool copies = d->update && whole->elems * size >= WHOLE_BYTES_MIN; // unless it is in place, which costs little either way
    if (part->elems * size < BYTES_MIN && !copies)
        return why_refuse(why, WHY_LITTLE);
    if (copies && part->elems / run <= RUNS_FEW)
        return (!last || last->src == 1) && outer == 1;
    return (last && last->src == 1 && run * size >= RUN_BYTES_MIN && outer <= 256) || why_refuse(why, WHY_RUNS);
}

bool dynamic_takes(const Lower *l, const HloOp *op, Why *why) {
    Dynamic d;
    return dynamic_of(l, op, &d, why);
}

bool dynamic_loads(const Lower *l, const HloOp *op, uint32_t operand) {
    Dynamic d;
    bool loads = false;
    assert(op->code == HLO_DYNAMIC_SLICE || op->code == HLO_DYNAMIC_UPDATE_SLICE);
    dynamic_of(l, op, &d, NULL);
    for (int i = 0; i < d.count; i++)
        loads |= d.unknown[i].operand == operand && !d.unknown[i].form.known;
    return loads;
}

// The index in a register, inside the tensor. All on the sequencer that starts the transfer.
static uint8_t load_index(Emit *e, const Step *s, uint32_t operand, int64_t last) {
    uint32_t k = e->next_reg++ % EMIT_REGS;
    uint8_t reg = (uint8_t)(1 + k);
    Haz *haz = &e->reg_haz[k];
    const Hlo *h = e->l->h;
    IsaInst ld = {.op = ISA_REG_LOAD, .engine = ENG_SYNC, .reg = reg,
                  .src = emit_addr(e, e->l->refs.at[s->ins + operand]),
                  .stype = hlo_value_type(h, hlo_operand(h, hlo_at(h, s->op), operand))->dtype};
    emit_inst(e, ld, NULL, 0, &haz, 1);
    IsaInst alu = {.op = ISA_REG_ALU, .engine = ENG_SYNC, .op0 = ALU_MAX, .reg = reg, .areg = reg};
    emit_inst(e, alu, NULL, 0, &haz, 1);
    alu.op0 = ALU_MIN, alu.value = (int32_t)last;
    emit_inst(e, alu, NULL, 0, &haz, 1);
    return reg;
}

void emit_dynamic(Emit *e, const Step *s) {
    Dynamic d;
    const HloOp *op = hlo_at(e->l->h, s->op);
    dynamic_of(e->l, op, &d, NULL);
    const BufId *ins = &e->l->refs.at[s->ins];
    size_t size = dtype_bytes(d.dtype);
    uint64_t out = emit_addr(e, e->l->refs.at[s->outs]), first = emit_addr(e, ins[0]);
    if (d.update && first != out)
        put_bytes(e, ENG_SYNC, put_piece_queue(e, s), out, first, (uint64_t)hlo_value_type(e->l->h, op->results)->elems * size);
    NestTerm term = {.on_dst = d.update};
    for (int i = 0; i < d.count; i++) {
        Form f = d.unknown[i].form;
        int64_t mul = d.unknown[i].bytes;
        uint8_t reg = 0;
        if (f.known) {
            reg = count_reg(e->l, f.loop);
            d.nest.src += f.add * d.unknown[i].bytes / (int64_t)size;
            mul *= f.mul;
        } else {
            term.reads[term.nreads++] = &e->reg_haz[e->next_reg % EMIT_REGS];
            reg = load_index(e, s, d.unknown[i].operand, d.unknown[i].last);
        }
        term.reg[i] = (uint8_t)(reg + 1), term.mul[i] = (int32_t)mul;
        e->reach += (uint64_t)(d.unknown[i].last * d.unknown[i].bytes);
        e->below += f.mul < 0 ? (uint64_t)(f.add * d.unknown[i].bytes) : 0;
    }
    uint64_t part = d.update ? emit_addr(e, ins[1]) : out;
    if (d.update)
        nest_swap(&d.nest);
    nest_put(e, &d.nest, ENG_SYNC, put_piece_queue(e, s), d.update ? part : first, d.update ? out : part, d.dtype, &term);
    e->reach = e->below = 0;
}
