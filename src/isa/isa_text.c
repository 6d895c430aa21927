// SPDX-License-Identifier: Apache-2.0
// isa_text.c — instructions as text: one line each, printed and parsed, exact inverses.
//
//   tensor: matmul dst=psum[0:0] src=sbuf[0:4096] stype=bf16 n0=128 n1=512 n2=128 wait(q0>=2)
//
// The engine may be left out where the row's first engine is meant; fields may come in any order,
// and those left out are zero, except that strides default to dense ones: an operand none of whose
// strides is given is row-major over the counts (isa_dense_strides). Numbers are decimal or 0x….
// Addresses are sbuf[partition:offset], psum[partition:offset], hbm[segment:offset], or by name
// scratch[o], const[o], arg0[o], result0[o]; anything else an address can hold prints as a plain
// 0x… number.
#include "isa/isa.h"

#include <assert.h>
#include <inttypes.h>

#include "base/dtype.h"
#include "isa/text.h"

#define HBM_OFFSET_MAX 0xffffffffffull

typedef enum FieldKind { FK_INT, FK_ADDR, FK_DTYPE, FK_FLAGS } FieldKind;

static FieldKind field_kind(int f) {
    switch (f) {
    case ISA_F_dst:
    case ISA_F_src:
        return FK_ADDR;
    case ISA_F_stype:
    case ISA_F_dtype:
        return FK_DTYPE;
    case ISA_F_flags:
        return FK_FLAGS;
    default:
        return FK_INT;
    }
}

// --- print ---------------------------------------------------------------------------------------

static void print_hbm(uint64_t addr, const IsaNames *names, Buf *out) {
    uint32_t seg = addr_seg(addr);
    uint64_t off = addr_off(addr);
    if (!names || seg >= SEG_FIRST_ARG + names->nargs + names->nresults)
        buf_printf(out, "hbm[%u:%" PRIu64 "]", seg, off);
    else if (seg == SEG_SCRATCH || seg == SEG_CONST)
        buf_printf(out, "%s[%" PRIu64 "]", seg == SEG_CONST ? "const" : "scratch", off);
    else if (seg < SEG_FIRST_ARG + names->nargs)
        buf_printf(out, "arg%u[%" PRIu64 "]", seg - SEG_FIRST_ARG, off);
    else
        buf_printf(out, "result%u[%" PRIu64 "]", seg - SEG_FIRST_ARG - names->nargs, off);
}

void isa_print_addr(uint64_t addr, const IsaNames *names, Buf *out) {
    if (addr_space(addr) == SPACE_HBM)
        print_hbm(addr, names, out);
    else if (addr == addr_sbuf(addr_part(addr), addr_poff(addr)))
        buf_printf(out, "sbuf[%u:%u]", addr_part(addr), addr_poff(addr));
    else if (addr == addr_psum(addr_part(addr), addr_poff(addr)))
        buf_printf(out, "psum[%u:%u]", addr_part(addr), addr_poff(addr));
    else
        buf_printf(out, "0x%" PRIx64, addr);
}

static void print_field(const IsaInst *in, int f, bool force, const IsaNames *names, Buf *out) {
    uint64_t v = isa_field_get(in, f);
    FieldKind kind = field_kind(f);
    bool is_target = f == ISA_F_imm && isa_rows[in->op].cost == COST_BRANCH;
    if (!v && kind != FK_ADDR && f != ISA_F_imm && !force)
        return;
    buf_printf(out, " %s=", isa_fields[f].name);
    if (kind == FK_ADDR)
        isa_print_addr(v, names, out);
    else if (kind == FK_DTYPE && v < DT_COUNT)
        buf_puts(out, dtype_row((int)v)->name);
    else if (kind == FK_FLAGS && v == MATMUL_ACCUMULATE)
        buf_puts(out, "accumulate");
    else if (is_target && names && names->labels && v < names->ncode && names->labels[v])
        buf_printf(out, "L%u", names->labels[v] - 1);
    else
        buf_printf(out, "%" PRId64, (int64_t)v);
}

// Strides are printed unless all are the dense ones. When they are all zero and that is not dense,
// the last one is printed to say so. Returns a mask of fields to leave out and of one to print
// though zero.
static void stride_fields(const IsaInst *in, uint32_t mask, uint32_t *leave_out, uint32_t *force) {
    *leave_out = *force = 0;
    for (int is_dst = 0; is_dst < 2; is_dst++) {
        int32_t dense[4];
        isa_dense_strides(in, mask, is_dst, dense);
        const int32_t *have = is_dst ? in->d : in->s;
        int first = is_dst ? ISA_F_d0 : ISA_F_s0;
        uint32_t all = 0xfu << first & mask;
        if (!memcmp(dense, have, sizeof dense))
            *leave_out |= all;
        else if (!(have[0] | have[1] | have[2] | have[3]))
            *force |= 1u << (31 - __builtin_clz(all));
    }
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
        if (sem == SEM_NONE)
            buf_puts(out, "none");
        else if (sem < ENG_COUNT)
            buf_printf(out, "%s>=%u", engine_names[sem], in->wait_val[w]);
        else
            buf_printf(out, "q%d>=%u", sem - ENG_COUNT, in->wait_val[w]);
    }
    buf_puts(out, ")");
}

void isa_print_named(const IsaInst *in, const IsaNames *names, Buf *out) {
    const IsaRow *row = &isa_rows[in->op];
    uint32_t leave_out, force;
    stride_fields(in, isa_row_mask(in->op), &leave_out, &force);
    buf_printf(out, "%s: %s", engine_names[in->engine], row->name);
    for (const char *p = row->fields; *p;) { // assembler order is the row's
        size_t n = strcspn(p, " ");
        int f = isa_field_find(p, n);
        if (!(leave_out >> f & 1))
            print_field(in, f, force >> f & 1, names, out);
        p += n;
        p += strspn(p, " ");
    }
    print_waits(in, out);
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

static uint64_t parse_partition_addr(Txt *t, bool is_psum) {
    txt_need(t, "[");
    uint32_t part = (uint32_t)txt_u64(t, 0xff, "partition");
    txt_need(t, ":");
    uint32_t off = (uint32_t)txt_u64(t, UINT32_MAX, "byte offset");
    txt_need(t, "]");
    return is_psum ? addr_psum(part, off) : addr_sbuf(part, off);
}

static uint64_t parse_segment_addr(Txt *t, uint32_t seg) {
    txt_need(t, "[");
    uint64_t off = txt_u64(t, HBM_OFFSET_MAX, "byte offset");
    txt_need(t, "]");
    return addr_hbm(seg, off);
}

uint64_t isa_parse_addr(Txt *t, const IsaNames *names) {
    char c = txt_peek(t);
    if (c >= '0' && c <= '9')
        return txt_u64(t, UINT64_MAX, "address");
    Txt begin = *t;
    TxtWord w = txt_word(t, "an address");
    if (txt_word_is(w, "sbuf") || txt_word_is(w, "psum"))
        return parse_partition_addr(t, txt_word_is(w, "psum"));
    if (txt_word_is(w, "scratch") || txt_word_is(w, "const"))
        return parse_segment_addr(t, txt_word_is(w, "const") ? SEG_CONST : SEG_SCRATCH);
    if (txt_word_is(w, "hbm")) {
        txt_need(t, "[");
        uint32_t seg = (uint32_t)txt_u64(t, SEG_MAX, "segment");
        txt_need(t, ":");
        uint64_t off = txt_u64(t, HBM_OFFSET_MAX, "byte offset");
        txt_need(t, "]");
        return addr_hbm(seg, off);
    }
    int64_t arg = numbered(w, "arg"), result = numbered(w, "result");
    if (arg >= 0 && (names ? arg < names->nargs : arg <= SEG_MAX - SEG_FIRST_ARG))
        return parse_segment_addr(t, SEG_FIRST_ARG + (uint32_t)arg);
    if (result >= 0 && names && result < names->nresults)
        return parse_segment_addr(t, SEG_FIRST_ARG + names->nargs + (uint32_t)result);
    if (arg >= 0 || result >= 0)
        txt_fail(&begin, "the program has no %.*s (%u arguments, %u results declared so far)",
                 (int)w.n, w.s, names ? names->nargs : 0, names ? names->nresults : 0);
    txt_fail(&begin,
             "expected sbuf[p:o], psum[p:o], hbm[s:o], scratch[o], const[o], argN[o] or "
             "resultN[o], not `%.*s`",
             (int)w.n, w.s);
}

static void parse_int_field(Txt *t, int f, IsaInst *out) {
    const IsaField *field = &isa_fields[f];
    int bits = 8 * field->bytes;
    if (field->is_signed) {
        int64_t lim = (int64_t)1 << (bits - 1);
        isa_field_set(out, f, (uint64_t)txt_i64(t, -lim, lim - 1, field->name));
    } else {
        isa_field_set(out, f, txt_u64(t, UINT64_MAX >> (64 - bits), field->name));
    }
}

static void parse_field_value(Txt *t, int f, const IsaNames *names, IsaInst *out, TxtWord *label) {
    char c = txt_peek(t);
    bool is_number = (c >= '0' && c <= '9') || c == '-' || c == '+';
    switch (field_kind(f)) {
    case FK_ADDR:
        isa_field_set(out, f, isa_parse_addr(t, names));
        break;
    case FK_DTYPE:
        isa_field_set(out, f, (uint64_t)txt_dtype(t));
        break;
    case FK_FLAGS:
        if (txt_take_word(t, "accumulate"))
            isa_field_set(out, f, MATMUL_ACCUMULATE);
        else
            parse_int_field(t, f, out);
        break;
    case FK_INT:
        if (f == ISA_F_imm && isa_rows[out->op].cost == COST_BRANCH && label && !is_number)
            *label = txt_word(t, "a label or an instruction number");
        else
            parse_int_field(t, f, out);
    }
}

// Which field of the row a word names; raises with the list of those the row has.
static int field_of(const Txt *begin, TxtWord w, int op, uint32_t mask, uint32_t seen) {
    int f = isa_field_find(w.s, w.n);
    if (f >= ISA_HEAD_FIELDS && mask >> f & 1) {
        if (seen >> f & 1)
            txt_fail(begin, "`%s` is given twice", isa_fields[f].name);
        return f;
    }
    const char *fields = isa_rows[op].fields;
    ctx_hint(begin->ctx, "`%s` takes: %s", isa_rows[op].name, fields[0] ? fields : "no fields");
    txt_fail(begin, "`%s` has no field `%.*s`", isa_rows[op].name, (int)w.n, w.s);
}

static uint8_t sem_of(const Txt *begin, TxtWord w) {
    for (int e = 0; e < ENG_COUNT; e++)
        if (txt_word_is(w, engine_names[e]))
            return (uint8_t)e;
    int64_t q = numbered(w, "q");
    if (q < 0 || q >= DMA_QUEUES)
        txt_fail(begin, "expected tensor, vector, scalar, gpsimd, sync or q0…q%d, not `%.*s`",
                 DMA_QUEUES - 1, (int)w.n, w.s);
    return (uint8_t)(ENG_COUNT + q);
}

static void parse_waits(Txt *t, IsaInst *out) {
    txt_need(t, "(");
    for (int w = 0;; w++) {
        if (w == 2)
            txt_fail(t, "an instruction waits for two semaphores at most");
        Txt begin = *t;
        TxtWord name = txt_word(t, "a semaphore");
        if (w || !txt_word_is(name, "none")) {
            out->wait_sem[w] = sem_of(&begin, name);
            txt_need(t, ">=");
            out->wait_val[w] = (uint32_t)txt_u64(t, UINT32_MAX, "wait value");
        }
        if (!txt_take(t, ","))
            break;
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
        txt_fail(&begin, "unknown instruction `%.*s`", (int)w.n, w.s);
    out->op = (uint8_t)op;
    out->engine = (uint8_t)(engine < 0 ? isa_row_engine_default(op) : engine);
    if (!isa_row_engine(op, out->engine))
        txt_fail(&begin, "`%s` cannot stand on the %s engine", isa_rows[op].name,
                 engine_names[out->engine]);
}

void isa_parse_named(Txt *t, const IsaNames *names, IsaInst *out, TxtWord *label) {
    *out = (IsaInst){.wait_sem = {SEM_NONE, SEM_NONE}};
    if (label)
        *label = (TxtWord){0};
    parse_head(t, out);
    bool waited = false;
    uint32_t seen = 0, mask = isa_row_mask(out->op);
    for (char c; (c = txt_peek(t)) && c != '@';) {
        Txt begin = *t;
        TxtWord w = txt_word(t, "a field");
        if (txt_word_is(w, "wait") && txt_peek(t) == '(') {
            if (waited)
                txt_fail(&begin, "`wait` is given twice");
            waited = true;
            parse_waits(t, out);
            continue;
        }
        int f = field_of(&begin, w, out->op, mask, seen);
        seen |= 1u << f;
        txt_need(t, "=");
        parse_field_value(t, f, names, out, label);
    }
    if (!(seen >> ISA_F_d0 & 0xf))
        isa_dense_strides(out, mask, true, out->d);
    if (!(seen >> ISA_F_s0 & 0xf))
        isa_dense_strides(out, mask, false, out->s);
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
