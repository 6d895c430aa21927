// SPDX-License-Identifier: Apache-2.0
// isa_text.c — instructions as text: one line each, printed and parsed, exact inverses.
//
//   tensor: matmul dst=psum[0:0] src=sbuf[0:4096+r1*512] stype=bf16 n0=128 n1=512 n2=128 wait(q0>=2)
//
// The engine may be left out where the row's first engine is meant; fields may come in any order,
// and those left out are zero, except that strides default to dense ones: an operand none of whose
// strides is given is row-major over the counts (isa_dense_strides). Numbers are decimal or 0x….
// Addresses are sbuf[partition:offset], psum[partition:offset], hbm[segment:offset], or by name
// scratch[o], const[o], arg0[o], result0[o]; anything else an address can hold prints as a plain
// 0x… number. A tensor's offset may add two register terms. Scalar operands are addresses, whole
// numbers, or numbers with a point or exponent. Waits: wait(vector>=3, tensor-1, s4>=1), the second
// form counting back; signals: signal(s4), signal(s4-1), signal(s4=0), with @read after it when it
// is given at the start instead of at the end.
#include "isa/isa.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/dtype.h"
#include "base/opt.h"
#include "isa/text.h"

#define HBM_OFFSET_MAX 0xffffffffffull

static const char *const rcmd_names[RCMD_COUNT] = {"idle", "reset", "reduce", "reset_reduce",
                                                   "load_reduce"};
static const char *const mode_names[DGE_COUNT] = {"static", "swdge", "hwdge"};
static const struct {
    int bit;
    const char *name;
} flag_names[] = {
#define FLAG(e, bit, name) {bit, name},
    ISA_FLAGS(FLAG)
#undef FLAG
};
#define FLAG_NAMES (sizeof flag_names / sizeof *flag_names)

// The name of a value of a field that has names, NULL when it has none.
static const char *value_name(int kind, uint64_t v) {
    switch (kind) {
    case FK_DTYPE:
        return v < DT_COUNT ? dtype_row((int)v)->name : NULL;
    case FK_ALU:
        return v < ALU_COUNT ? alu_rows[v].name : NULL;
    case FK_ACT:
        return v < ACT_COUNT ? act_rows[v].name : NULL;
    case FK_RCMD:
        return v < RCMD_COUNT ? rcmd_names[v] : NULL;
    case FK_MODE:
        return v < DGE_COUNT ? mode_names[v] : NULL;
    default:
        return NULL;
    }
}

typedef struct Terms { // the register terms of an address field; reg NULL: it has none
    uint8_t *reg;
    int32_t *mul;
} Terms;

static Terms terms_of(IsaInst *in, int f) {
    switch (f) {
    case ISA_F_dst:
        return (Terms){in->reg_d, in->mul_d};
    case ISA_F_src:
        return (Terms){in->reg_s, in->mul_s};
    case ISA_F_src1:
        return (Terms){in->reg_t, in->mul_t};
    default:
        return (Terms){0};
    }
}

// --- print ---------------------------------------------------------------------------------------

static void print_terms(const Terms *t, Buf *out) {
    for (int i = 0; t && t->reg && i < 2; i++)
        if (t->reg[i] || t->mul[i])
            buf_printf(out, "+r%d*%d", t->reg[i] - 1, t->mul[i]);
}

static void print_hbm(uint64_t addr, const IsaNames *names, const Terms *terms, Buf *out) {
    uint32_t seg = addr_seg(addr);
    uint64_t off = addr_off(addr);
    if (!names || seg >= SEG_FIRST_ARG + names->nargs + names->nresults)
        buf_printf(out, "hbm[%u:%" PRIu64, seg, off);
    else if (seg == SEG_SCRATCH || seg == SEG_CONST)
        buf_printf(out, "%s[%" PRIu64, seg == SEG_CONST ? "const" : "scratch", off);
    else if (seg < SEG_FIRST_ARG + names->nargs)
        buf_printf(out, "arg%u[%" PRIu64, seg - SEG_FIRST_ARG, off);
    else
        buf_printf(out, "result%u[%" PRIu64, seg - SEG_FIRST_ARG - names->nargs, off);
    print_terms(terms, out);
    buf_puts(out, "]");
}

static void print_addr(uint64_t addr, const IsaNames *names, const Terms *terms, Buf *out) {
    bool is_sbuf = addr == addr_sbuf(addr_part(addr), addr_poff(addr));
    if (addr_space(addr) == SPACE_HBM) {
        print_hbm(addr, names, terms, out);
    } else if (is_sbuf || addr == addr_psum(addr_part(addr), addr_poff(addr))) {
        buf_printf(out, "%s[%u:%u", is_sbuf ? "sbuf" : "psum", addr_part(addr), addr_poff(addr));
        print_terms(terms, out);
        buf_puts(out, "]");
    } else {
        buf_printf(out, "0x%" PRIx64, addr);
        if (terms && terms->reg && (terms->reg[0] || terms->reg[1] || terms->mul[0] || terms->mul[1])) {
            buf_puts(out, "[0");
            print_terms(terms, out);
            buf_puts(out, "]");
        }
    }
}

void isa_print_addr(uint64_t addr, const IsaNames *names, Buf *out) {
    print_addr(addr, names, NULL, out);
}

// A number that reads back as the same bits, with a point or an exponent so that it is no integer.
static void print_scalar(uint64_t v, const IsaNames *names, Buf *out) {
    if (v == scalar_i32((int32_t)v)) {
        buf_printf(out, "%d", (int32_t)v);
        return;
    }
    float f;
    uint32_t bits = (uint32_t)v;
    memcpy(&f, &bits, 4);
    if (v >> 32 != (uint64_t)SPACE_F32 << 24 || !isfinite(f)) {
        print_addr(v, names, NULL, out);
        return;
    }
    char text[32];
    snprintf(text, sizeof text, "%.9g", (double)f);
    buf_printf(out, "%s%s", text, strpbrk(text, ".e") ? "" : ".0");
}

static void print_flags(uint64_t v, Buf *out) {
    const char *sep = "";
    for (size_t i = 0; i < FLAG_NAMES; i++)
        if (v >> flag_names[i].bit & 1) {
            buf_printf(out, "%s%s", sep, flag_names[i].name);
            sep = "|";
        }
}

static void print_mask(const IsaInst *in, Buf *out) {
    for (int i = 0; i < 32; i++)
        buf_printf(out, "%s%u", i ? "," : "", (unsigned)(in->mask[i / 8] >> i % 8 * 8 & 0xff));
}

static bool is_code_place(const IsaInst *in, int f) {
    int cost = isa_rows[in->op].cost;
    return f == ISA_F_imm && (cost == COST_BRANCH || cost == COST_LOOP);
}

static void print_value(const IsaInst *in, int f, const IsaNames *names, Buf *out) {
    uint64_t v = isa_field_get(in, f);
    int kind = isa_fields[f].kind;
    const char *name = value_name(kind, v);
    Terms terms = terms_of((IsaInst *)in, f);
    if (name)
        buf_puts(out, name);
    else if (kind == FK_ADDR)
        print_addr(v, names, &terms, out);
    else if (kind == FK_SCALAR)
        print_scalar(v, names, out);
    else if (kind == FK_FLAGS && v)
        print_flags(v, out);
    else if (kind == FK_MASK)
        print_mask(in, out);
    else if (kind == FK_REG || (kind == FK_REG_OR_NONE && v))
        buf_printf(out, "r%d", (int)v - (kind == FK_REG_OR_NONE));
    else if (is_code_place(in, f) && names && names->labels && v < names->ncode && names->labels[v])
        buf_printf(out, "L%u", names->labels[v] - 1);
    else
        buf_printf(out, "%" PRId64, (int64_t)v);
}

// Tensors and registers always show, scalars and a column for results when there is one; the rest
// when it is not zero.
static bool is_shown(const IsaInst *in, int f, bool force) {
    int kind = isa_fields[f].kind;
    if (f == ISA_F_mask)
        return in->mask[0] | in->mask[1] | in->mask[2] | in->mask[3];
    Terms terms = terms_of((IsaInst *)in, f);
    return kind == FK_REG || (kind == FK_ADDR && terms.reg) || f == ISA_F_imm || force ||
           isa_field_get(in, f);
}

// Strides are printed unless all are the dense ones. When they are all zero and that is not dense,
// the last one is printed to say so. Returns a mask of fields to leave out and of one to print
// though zero.
static void stride_fields(const IsaInst *in, IsaMask mask, IsaMask *leave_out, IsaMask *force) {
    *leave_out = *force = 0;
    for (const char *operand = "dst"; *operand; operand++) {
        int32_t dense[5];
        isa_dense_strides(in, mask, *operand, dense);
        const int32_t *have = *operand == 'd' ? in->d : *operand == 's' ? in->s : in->t;
        int first = *operand == 'd' ? ISA_F_d0 : *operand == 's' ? ISA_F_s0 : ISA_F_t0;
        if (*operand == 't' && !(mask & ISA_BIT(ISA_F_src1)))
            continue; // steps of an affine value
        IsaMask all = (IsaMask)0x1f << first & mask;
        if (!memcmp(dense, have, sizeof dense))
            *leave_out |= all;
        else if (!(have[0] | have[1] | have[2] | have[3] | have[4]))
            for (int axis = 4; axis >= 0; axis--)
                if (mask >> (first + axis) & 1) {
                    *force |= ISA_BIT(first + axis);
                    break;
                }
    }
}

void isa_sem_name(int sem, char out[ISA_SEM_NAME]) {
    if (sem < ENG_COUNT)
        snprintf(out, ISA_SEM_NAME, "%s", engine_names[sem]);
    else
        snprintf(out, ISA_SEM_NAME, "%c%d", sem < SEM_USER ? 'q' : 's',
                 sem - (sem < SEM_USER ? ENG_COUNT : SEM_USER));
}

static void print_waits(const IsaInst *in, Buf *out) {
    if (in->wait_sem[0] == SEM_NONE && in->wait_sem[1] == SEM_NONE)
        return;
    buf_puts(out, " wait(");
    for (int w = 0; w < 2; w++) {
        int sem = in->wait_sem[w];
        if (w && sem == SEM_NONE)
            break;
        buf_puts(out, w ? ", " : "");
        char name[ISA_SEM_NAME];
        isa_sem_name(sem & ~SEM_BACK, name);
        if (sem == SEM_NONE)
            buf_puts(out, "none");
        else
            buf_printf(out, "%s%s%u", name, sem & SEM_BACK ? "-" : ">=", in->wait_val[w]);
    }
    buf_puts(out, ")");
}

static void print_signal(const IsaInst *in, Buf *out) {
    static const char *const ops[] = {"+", "-", "="};
    if (!in->upd_sem)
        return;
    buf_printf(out, " signal(s%d%s%u%s)", in->upd_sem - 1, ops[in->upd_op & ~UPD_AT_READ & 3],
               in->upd_val, in->upd_op & UPD_AT_READ ? " @read" : "");
}

void isa_print_named(const IsaInst *in, const IsaNames *names, Buf *out) {
    const IsaRow *row = &isa_rows[in->op];
    IsaMask leave_out, force;
    stride_fields(in, isa_row_mask(in->op), &leave_out, &force);
    buf_printf(out, "%s: %s", engine_names[in->engine], row->name);
    for (const uint8_t *list = isa_row_fields(in->op); *list < ISA_FIELD_COUNT; list++) {
        int f = *list;
        bool follows = isa_fields[f].kind == FK_TERM || (isa_fields[f].kind == FK_MASK && f != ISA_F_mask);
        if (!follows && !(leave_out >> f & 1) && is_shown(in, f, force >> f & 1)) {
            buf_printf(out, " %s=", isa_fields[f].name);
            print_value(in, f, names, out);
        }
    }
    print_waits(in, out);
    print_signal(in, out);
}

void isa_print(const IsaInst *in, Buf *out) { isa_print_named(in, NULL, out); }

// --- parse ---------------------------------------------------------------------------------------

// "arg12" → 12; -1 when the word is not `prefix` and a number.
static int64_t numbered(TxtWord w, const char *prefix) {
    size_t n = strlen(prefix);
    if (w.n <= n || w.n > n + 6 || memcmp(w.s, prefix, n))
        return -1;
    int64_t v = 0;
    for (size_t i = n; i < w.n; i++) {
        if (w.s[i] < '0' || w.s[i] > '9')
            return -1;
        v = v * 10 + (w.s[i] - '0');
    }
    return v;
}

// "+r1*512+r2*-4" behind an offset; terms NULL refuses them.
static void parse_terms(Txt *t, Terms *terms) {
    for (int i = 0;; i++) {
        Txt begin = *t;
        if (!txt_take(t, "+"))
            return;
        if (!terms || !terms->reg)
            txt_fail(&begin, "only dst, src and src1 take register terms");
        if (i == 2)
            txt_fail(&begin, "an address takes two register terms at most");
        TxtWord w = txt_name(t, "a register");
        int64_t reg = numbered(w, "r");
        if (reg < 0 || reg >= ISA_REGS)
            txt_fail(&begin, "expected r0…r%d, not `%.*s`", ISA_REGS - 1, (int)w.n, w.s);
        int64_t mul = txt_take(t, "*") ? txt_i64(t, INT32_MIN, INT32_MAX, "multiplier") : 1;
        terms->reg[i] = (uint8_t)(reg + 1);
        terms->mul[i] = (int32_t)mul;
    }
}

static uint64_t parse_partition_addr(Txt *t, bool is_psum, Terms *terms) {
    txt_need(t, "[");
    uint32_t part = (uint32_t)txt_u64(t, 0xff, "partition");
    txt_need(t, ":");
    uint32_t off = (uint32_t)txt_u64(t, UINT32_MAX, "byte offset");
    parse_terms(t, terms);
    txt_need(t, "]");
    return is_psum ? addr_psum(part, off) : addr_sbuf(part, off);
}

static uint64_t parse_segment_addr(Txt *t, uint32_t seg, Terms *terms) {
    txt_need(t, "[");
    uint64_t off = txt_u64(t, HBM_OFFSET_MAX, "byte offset");
    parse_terms(t, terms);
    txt_need(t, "]");
    return addr_hbm(seg, off);
}

static uint64_t parse_plain_addr(Txt *t, Terms *terms) {
    uint64_t v = txt_u64(t, UINT64_MAX, "address");
    if (terms && terms->reg && txt_take(t, "[")) {
        txt_u64(t, 0, "offset");
        parse_terms(t, terms);
        txt_need(t, "]");
    }
    return v;
}

static uint64_t parse_addr(Txt *t, const IsaNames *names, Terms *terms) {
    char c = txt_peek(t);
    if (c >= '0' && c <= '9')
        return parse_plain_addr(t, terms);
    Txt begin = *t;
    TxtWord w = txt_word(t, "an address");
    if (txt_word_is(w, "sbuf") || txt_word_is(w, "psum"))
        return parse_partition_addr(t, txt_word_is(w, "psum"), terms);
    if (txt_word_is(w, "scratch") || txt_word_is(w, "const"))
        return parse_segment_addr(t, txt_word_is(w, "const") ? SEG_CONST : SEG_SCRATCH, terms);
    if (txt_word_is(w, "hbm")) {
        txt_need(t, "[");
        uint32_t seg = (uint32_t)txt_u64(t, SEG_MAX, "segment");
        txt_need(t, ":");
        uint64_t off = txt_u64(t, HBM_OFFSET_MAX, "byte offset");
        parse_terms(t, terms);
        txt_need(t, "]");
        return addr_hbm(seg, off);
    }
    int64_t arg = numbered(w, "arg"), result = numbered(w, "result");
    if (arg >= 0 && (names ? arg < names->nargs : arg <= SEG_MAX - SEG_FIRST_ARG))
        return parse_segment_addr(t, SEG_FIRST_ARG + (uint32_t)arg, terms);
    if (result >= 0 && names && result < names->nresults)
        return parse_segment_addr(t, SEG_FIRST_ARG + names->nargs + (uint32_t)result, terms);
    if (arg >= 0 || result >= 0)
        txt_fail(&begin, "the program has no %.*s (%u arguments, %u results declared so far)",
                 (int)w.n, w.s, names ? names->nargs : 0, names ? names->nresults : 0);
    txt_fail(&begin,
             "expected sbuf[p:o], psum[p:o], hbm[s:o], scratch[o], const[o], argN[o] or "
             "resultN[o], not `%.*s`",
             (int)w.n, w.s);
}

uint64_t isa_parse_addr(Txt *t, const IsaNames *names) { return parse_addr(t, names, NULL); }

static bool number_follows(Txt *t) {
    char c = txt_peek(t);
    return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.';
}

static bool hex_follows(Txt *t) {
    return txt_peek(t) == '0' && t->end - t->at > 1 && (t->at[1] | 32) == 'x';
}

static const IsaHooks *hooks_of(const IsaNames *names) { return names ? names->hooks : NULL; }

// A number with a point or exponent is an fp32, without one an int32, 0x… the raw 64 bits.
static uint64_t parse_scalar(Txt *t, const IsaNames *names) {
    if (!number_follows(t))
        return parse_addr(t, names, NULL);
    if (hex_follows(t))
        return txt_u64(t, UINT64_MAX, "bits");
    const char *p = t->at;
    while (p < t->end && (*p == '+' || *p == '-' || (*p >= '0' && *p <= '9')))
        p++;
    if (p < t->end && (*p == '.' || *p == 'e' || *p == 'E'))
        return scalar_f32((float)txt_f64(t, "number"));
    return scalar_i32((int32_t)txt_i64(t, INT32_MIN, INT32_MAX, "number"));
}

static void set_number(Txt *begin, int f, int64_t v, IsaInst *out) {
    const IsaField *field = &isa_fields[f];
    int bits = 8 * field->bytes - field->is_signed;
    int64_t hi = bits >= 63 ? INT64_MAX : ((int64_t)1 << bits) - 1, lo = field->is_signed ? -hi - 1 : 0;
    bool as_bits = hex_follows(begin) && field->is_signed && v >= 0 && v >> (bits + 1) == 0; // 0xbf800000
    if ((v < lo || v > hi) && !as_bits)
        txt_fail(begin, "%s: %" PRId64 " is outside %" PRId64 "…%" PRId64, field->name, v, lo, hi);
    isa_field_set(out, f, (uint64_t)v);
}

static void parse_int_field(Txt *t, int f, const IsaNames *names, IsaInst *out) {
    const IsaField *field = &isa_fields[f];
    int bits = 8 * field->bytes;
    if (hooks_of(names)) {
        Txt begin = *t;
        set_number(&begin, f, names->hooks->number(names->hooks->arg, t, field->name), out);
        return;
    }
    if (field->is_signed) {
        int64_t lim = (int64_t)1 << (bits - 1);
        isa_field_set(out, f, (uint64_t)txt_i64(t, -lim, lim - 1, field->name));
    } else {
        isa_field_set(out, f, txt_u64(t, UINT64_MAX >> (64 - bits), field->name));
    }
}

static uint64_t parse_flags(Txt *t) {
    uint64_t flags = 0;
    do {
        Txt begin = *t;
        TxtWord w = txt_word(t, "a flag");
        size_t i = 0;
        while (i < FLAG_NAMES && !txt_word_is(w, flag_names[i].name))
            i++;
        if (i == FLAG_NAMES)
            txt_fail(&begin, "unknown flag `%.*s`", (int)w.n, w.s);
        flags |= 1u << flag_names[i].bit;
    } while (txt_take(t, "|"));
    return flags;
}

static uint64_t parse_name(Txt *t, int kind, const char *what) {
    if (kind == FK_DTYPE)
        return (uint64_t)txt_dtype(t);
    Txt begin = *t;
    TxtWord w = txt_word(t, what);
    for (uint64_t v = 0; value_name(kind, v); v++)
        if (txt_word_is(w, value_name(kind, v)))
            return v;
    const char *near = NULL, *typed = arena_strndup(t->arena, w.s, w.n);
    for (uint64_t v = 0; value_name(kind, v); v++)
        near = opt_nearer(typed, near, value_name(kind, v));
    if (near)
        ctx_hint(t->ctx, "did you mean `%s`?", near);
    txt_fail(&begin, "`%s` has no value `%.*s`", what, (int)w.n, w.s);
}

static uint64_t parse_reg(Txt *t, int f) {
    if (number_follows(t))
        return txt_u64(t, 0xff, isa_fields[f].name);
    Txt begin = *t;
    TxtWord w = txt_word(t, "a register");
    int64_t reg = numbered(w, "r");
    if (reg < 0 || reg > 0xfe)
        txt_fail(&begin, "expected r0…r%d, not `%.*s`", ISA_REGS - 1, (int)w.n, w.s);
    return (uint64_t)reg + (isa_fields[f].kind == FK_REG_OR_NONE);
}

static void parse_mask(Txt *t, IsaInst *out) {
    for (int i = 0; i < 32; i++) {
        if (i)
            txt_need(t, ",");
        out->mask[i / 8] |= txt_u64(t, 0xff, "mask") << i % 8 * 8;
    }
}

static void parse_field_value(Txt *t, int f, const IsaNames *names, IsaInst *out, TxtWord *label) {
    Terms terms = terms_of(out, f);
    int kind = isa_fields[f].kind;
    const IsaHooks *hooks = hooks_of(names);
    if (hooks && kind == FK_ADDR && hooks->is_view(hooks->arg, t))
        hooks->view(hooks->arg, t, out, f);
    else if (hooks && kind == FK_SCALAR && !hex_follows(t))
        hooks->scalar(hooks->arg, t, out, f);
    else if (kind == FK_MASK)
        parse_mask(t, out);
    else if (kind == FK_ADDR)
        isa_field_set(out, f, parse_addr(t, names, &terms));
    else if (kind == FK_SCALAR)
        isa_field_set(out, f, parse_scalar(t, names));
    else if (kind == FK_REG || kind == FK_REG_OR_NONE)
        isa_field_set(out, f, parse_reg(t, f));
    else if (is_code_place(out, f) && label && !number_follows(t))
        *label = txt_word(t, "a label or an instruction number");
    else if (kind == FK_INT || (number_follows(t) && kind != FK_DTYPE))
        parse_int_field(t, f, names, out);
    else if (kind == FK_FLAGS)
        isa_field_set(out, f, parse_flags(t));
    else
        isa_field_set(out, f, parse_name(t, kind, isa_fields[f].name));
}

static _Noreturn void unknown_instruction(Txt *begin, TxtWord w) {
    char typed[64]; // no arena: a line alone is parsed without one
    snprintf(typed, sizeof typed, "%.*s", (int)w.n, w.s);
    const char *near = NULL;
    for (int op = 0; op < ISA_OP_COUNT; op++)
        near = opt_nearer(typed, near, isa_rows[op].name);
    if (near)
        ctx_hint(begin->ctx, "did you mean `%s`?", near);
    txt_fail(begin, "unknown instruction `%.*s`", (int)w.n, w.s);
}

// Which field of the row a word names; raises with the list of those the row has.
static int field_of(const Txt *begin, TxtWord w, int op, IsaMask mask, IsaMask seen) {
    int f = isa_field_find(w.s, w.n);
    if (f >= ISA_HEAD_FIELDS && mask >> f & 1 && isa_fields[f].kind != FK_TERM &&
        (isa_fields[f].kind != FK_MASK || f == ISA_F_mask)) {
        if (seen >> f & 1)
            txt_fail(begin, "`%s` is given twice", isa_fields[f].name);
        return f;
    }
    const char *fields = isa_rows[op].fields;
    ctx_hint(begin->ctx, "`%s` takes:%s", isa_rows[op].name, fields[0] ? fields : " no fields");
    txt_fail(begin, "`%s` has no field `%.*s`, and no tensor has that name", isa_rows[op].name, (int)w.n, w.s);
}

static uint8_t sem_of(const Txt *begin, TxtWord w) {
    for (int e = 0; e < ENG_COUNT; e++)
        if (txt_word_is(w, engine_names[e]))
            return (uint8_t)e;
    int64_t q = numbered(w, "q"), own = numbered(w, "s");
    if (own >= 0 && own < USER_SEMS)
        return (uint8_t)(SEM_USER + own);
    if (q < 0 || q >= DMA_QUEUES)
        txt_fail(begin, "expected tensor, vector, scalar, gpsimd, sync, q0…q%d or s0…s%d, not `%.*s`",
                 DMA_QUEUES - 1, USER_SEMS - 1, (int)w.n, w.s);
    return (uint8_t)(ENG_COUNT + q);
}

static void parse_wait(Txt *t, IsaInst *out, int w) {
    Txt begin = *t;
    TxtWord name = txt_name(t, "a semaphore");
    if (!w && txt_word_is(name, "none"))
        return;
    out->wait_sem[w] = sem_of(&begin, name);
    bool back = txt_take(t, "-");
    if (back && out->wait_sem[w] >= SEM_USER)
        txt_fail(&begin, "only engines and queues can be counted back");
    if (back)
        out->wait_sem[w] |= SEM_BACK;
    else
        txt_need(t, ">=");
    out->wait_val[w] = (uint32_t)txt_u64(t, UINT32_MAX, "wait value");
}

static void parse_waits(Txt *t, IsaInst *out) {
    txt_need(t, "(");
    for (int w = 0;; w++) {
        if (w == 2)
            txt_fail(t, "an instruction waits for two semaphores at most");
        parse_wait(t, out, w);
        if (!txt_take(t, ","))
            break;
    }
    txt_need(t, ")");
}

static void parse_signal(Txt *t, IsaInst *out) {
    txt_need(t, "(");
    Txt begin = *t;
    int64_t own = numbered(txt_name(t, "a semaphore"), "s");
    if (own < 0 || own >= USER_SEMS)
        txt_fail(&begin, "expected s0…s%d", USER_SEMS - 1);
    out->upd_sem = (uint8_t)(own + 1);
    out->upd_val = 1;
    int op = txt_take(t, "+") ? UPD_ADD : txt_take(t, "-") ? UPD_SUB : txt_take(t, "=") ? UPD_WRITE : -1;
    if (op >= 0)
        out->upd_val = (uint16_t)txt_u64(t, UINT16_MAX, "value");
    out->upd_op = (uint8_t)(op < 0 ? UPD_ADD : op);
    if (txt_take(t, "@")) {
        txt_need(t, "read");
        out->upd_op |= UPD_AT_READ;
    }
    txt_need(t, ")");
}

// "engine: mnemonic" or "mnemonic".
static void parse_head(Txt *t, IsaInst *out) {
    Txt begin = *t;
    TxtWord w = txt_word(t, "an instruction");
    int engine = -1;
    if (txt_take(t, ":")) {
        for (int e = 0; e < ENG_COUNT; e++)
            if (txt_word_is(w, engine_names[e]))
                engine = e;
        if (engine < 0)
            txt_fail(&begin, "unknown engine `%.*s`", (int)w.n, w.s);
        begin = *t;
        w = txt_word(t, "an instruction");
    }
    int op = isa_find(w.s, w.n);
    if (op < 0)
        unknown_instruction(&begin, w);
    out->op = (uint8_t)op;
    out->engine = (uint8_t)(engine < 0 ? isa_row_engine_default(op) : engine);
    if (!isa_row_engine(op, out->engine))
        txt_fail(&begin, "`%s` cannot stand on the %s engine", isa_rows[op].name,
                 engine_names[out->engine]);
}

// The operand a value without a name belongs to: the row's next tensor.
static int next_operand(IsaMask mask, IsaMask seen) {
    static const uint8_t order[] = {ISA_F_dst, ISA_F_src, ISA_F_src1};
    for (int i = 0; i < 3; i++)
        if (mask >> order[i] & 1 && !(seen >> order[i] & 1))
            return order[i];
    return -1;
}

// `matmul p, x[k]` with hooks: tensors in the row's order, then fields.
static IsaMask parse_operands(Txt *t, const IsaNames *names, IsaMask mask, IsaInst *out) {
    const IsaHooks *hooks = names->hooks;
    IsaMask seen = 0;
    while (txt_peek(t) && hooks->is_view(hooks->arg, t)) {
        Txt begin = *t;
        int f = next_operand(mask, seen);
        if (f < 0)
            txt_fail(&begin, "`%s` has no further operand", isa_rows[out->op].name);
        hooks->view(hooks->arg, t, out, f);
        seen |= ISA_BIT(f);
        if (!txt_take(t, ","))
            break;
    }
    return seen;
}

// `accumulate=k>0` with hooks: a flag by its name.
static bool parse_flag(Txt *t, const IsaNames *names, TxtWord w, IsaMask mask, IsaInst *out) {
    if (!hooks_of(names) || !(mask >> ISA_F_flags & 1))
        return false;
    for (size_t i = 0; i < FLAG_NAMES; i++)
        if (txt_word_is(w, flag_names[i].name)) {
            txt_need(t, "=");
            if (names->hooks->number(names->hooks->arg, t, flag_names[i].name))
                out->flags |= (uint8_t)(1u << flag_names[i].bit);
            return true;
        }
    return false;
}

void isa_parse_named(Txt *t, const IsaNames *names, IsaInst *out, TxtWord *label) {
    Txt head = *t;
    *out = (IsaInst){.wait_sem = {SEM_NONE, SEM_NONE}};
    if (label)
        *label = (TxtWord){0};
    parse_head(t, out);
    IsaMask seen = 0, mask = isa_row_mask(out->op);
    bool waited = false, signalled = false;
    if (hooks_of(names))
        seen = parse_operands(t, names, mask, out);
    for (char c; (c = txt_peek(t)) && c != '@';) {
        Txt begin = *t;
        TxtWord w = txt_word(t, "a field");
        bool is_wait = txt_word_is(w, "wait"), is_signal = txt_word_is(w, "signal");
        if ((is_wait || is_signal) && txt_peek(t) == '(') {
            bool *twice = is_wait ? &waited : &signalled;
            if (*twice)
                txt_fail(&begin, "`%.*s` is given twice", (int)w.n, w.s);
            *twice = true;
            if (is_wait)
                parse_waits(t, out);
            else
                parse_signal(t, out);
            continue;
        }
        if (parse_flag(t, names, w, mask, out))
            continue;
        int f = field_of(&begin, w, out->op, mask, seen);
        seen |= ISA_BIT(f);
        txt_need(t, "=");
        parse_field_value(t, f, names, out, label);
    }
    if (hooks_of(names))
        names->hooks->done(names->hooks->arg, &head, out, mask, &seen);
    if (!(seen >> ISA_F_d0 & 0x1f))
        isa_dense_strides(out, mask, 'd', out->d);
    if (!(seen >> ISA_F_s0 & 0x1f))
        isa_dense_strides(out, mask, 's', out->s);
    if (!(seen >> ISA_F_t0 & 0x1f) && mask & ISA_BIT(ISA_F_src1))
        isa_dense_strides(out, mask, 't', out->t);
}

void isa_parse(Ctx *ctx, Place at, const char *line, IsaInst *out) {
    Txt t = {.ctx = ctx,
             .file = at.file,
             .line = at.line,
             .col = at.col ? at.col : 1,
             .begin = line,
             .at = line,
             .end = line + strlen(line)};
    isa_parse_named(&t, NULL, out, NULL);
    txt_end(&t);
}
