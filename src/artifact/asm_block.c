// SPDX-License-Identifier: Apache-2.0
// asm_block.c — statements that hold others.
//
//   for k = 0, K/128 {        unrolled by the assembler: its body is read once per value
//   loop i = 0, N, 2 {        a loop of the device: loop and endloop, i is a register
//   if k == 0 {  } else {     by the assembler
//   half = M / 2              a name for a number
#include <inttypes.h>

#include "artifact/asm.h"

static bool asm_next_line(Asm *s) {
    if (s->next >= s->end)
        return false;
    if (s->depth && ++s->steps > ASM_STEPS_MAX)
        txt_fail(&s->t, "more than %u lines once loops are unrolled", ASM_STEPS_MAX);
    const char *nl = memchr(s->next, '\n', (size_t)(s->end - s->next));
    s->t.begin = s->t.at = s->next;
    s->t.end = nl ? nl : s->end;
    s->t.line = s->next_line++;
    if (memchr(s->t.begin, 0, (size_t)(s->t.end - s->t.begin)))
        txt_fail(&s->t, "a zero byte: this is not text");
    s->next = s->t.end + (nl != NULL);
    return true;
}

void asm_block(Asm *s, bool inside) {
    Txt begin = s->t;
    while (asm_next_line(s)) {
        if (txt_peek(&s->t) == '}') {
            if (!inside)
                txt_fail(&s->t, "a `}` that closes nothing");
            return; // the cursor stands on it
        }
        asm_line(s);
    }
    if (inside)
        txt_fail(&begin, "this block has no `}`");
}

// Passes a block over; the cursor stands on its `}` then.
static void skip_block(Asm *s) {
    Txt begin = s->t;
    int depth = 1;
    while (asm_next_line(s)) {
        if (txt_peek(&s->t) == '}' && --depth == 0)
            return;
        const char *end = memchr(s->t.begin, '#', (size_t)(s->t.end - s->t.begin)), *p = end ? end : s->t.end;
        while (p > s->t.begin && (p[-1] == ' ' || p[-1] == '\t' || p[-1] == '\r'))
            p--;
        depth += p > s->t.begin && p[-1] == '{';
    }
    txt_fail(&begin, "this block has no `}`");
}

static void block_open(Asm *s) {
    txt_need(&s->t, "{");
    txt_end(&s->t);
    if (s->depth++ == ASM_DEPTH_MAX)
        txt_fail(&s->t, "blocks nest deeper than ASM_DEPTH_MAX (%d)", ASM_DEPTH_MAX);
}

static void block_close(Asm *s) {
    txt_need(&s->t, "}");
    s->depth--;
}

typedef struct Range {
    TxtWord name;
    int64_t first, limit, step;
} Range;

static Range range_parse(Asm *s) {
    Txt *t = &s->t;
    Range r = {.name = txt_name(t, "a name"), .step = 1};
    txt_need(t, "=");
    r.first = asm_int(s, t, "begin");
    txt_need(t, ",");
    r.limit = asm_int(s, t, "limit");
    Txt at = *t;
    if (txt_take(t, ","))
        r.step = asm_int(s, t, "step");
    if (r.step < 1)
        txt_fail(&at, "a step of %" PRId64 ": loops count up", r.step);
    block_open(s);
    return r;
}

static void for_block(Asm *s) {
    Txt begin = s->t;
    Range r = range_parse(s);
    const char *body = s->next;
    uint32_t line = s->next_line, names = s->syms.n;
    if (r.first >= r.limit)
        skip_block(s);
    for (int64_t i = r.first; i < r.limit; i += r.step) {
        s->next = body;
        s->next_line = line;
        Sym *y = asm_set(s, &begin, r.name);
        y->v = (Val){.a = {.c = i}};
        asm_block(s, true);
        if (i > INT64_MAX - r.step)
            break;
    }
    block_close(s);
    txt_end(&s->t);
    s->syms.n = names < s->syms.n ? names : s->syms.n;
}

static void loop_block(Asm *s) {
    Txt begin = s->t;
    Range r = range_parse(s);
    if (r.first < INT32_MIN || r.limit > INT32_MAX || r.step > INT32_MAX || r.first > INT32_MAX ||
        r.limit < INT32_MIN)
        txt_fail(&begin, "the bounds of a device loop have 32 bits");
    if (s->next_reg >= s->last_reg)
        txt_fail(&begin, "no register is left for this loop");
    uint32_t names = s->syms.n, derived = s->derived.n, head = s->code.n;
    uint8_t reg = s->next_reg++, last = s->last_reg;
    IsaInst loop = {.op = ISA_LOOP, .engine = ENG_SYNC, .reg = reg, .value = (int32_t)r.first,
                    .limit = (int32_t)r.limit, .step = (int32_t)r.step, .wait_sem = {SEM_NONE, SEM_NONE}};
    asm_push(s, &loop, asm_line_loc(s));
    VEC_PUSH(s->t.arena, &s->syms, (Sym){.name = r.name, .v = {.a = {.n = 1, .t = {{reg, 1}}}}});
    asm_block(s, true);
    block_close(s);
    txt_end(&s->t);
    IsaInst end = {.op = ISA_ENDLOOP, .engine = ENG_SYNC, .imm = (int32_t)head,
                   .wait_sem = {SEM_NONE, SEM_NONE}};
    s->code.at[head].imm = (int32_t)s->code.n;
    asm_push(s, &end, s->code_loc.at[head]);
    s->syms.n = names;
    s->derived.n = derived;
    s->next_reg = reg;
    s->last_reg = last;
}

static void if_block(Asm *s) {
    bool yes = asm_int(s, &s->t, "condition") != 0;
    block_open(s);
    if (yes)
        asm_block(s, true);
    else
        skip_block(s);
    block_close(s);
    if (txt_take_word(&s->t, "else")) {
        block_open(s);
        if (yes)
            skip_block(s);
        else
            asm_block(s, true);
        block_close(s);
    }
    txt_end(&s->t);
}

// NAME = expression
static bool assign(Asm *s) {
    Txt begin = s->t;
    char c = txt_peek(&s->t);
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'))
        return false;
    TxtWord w = txt_name(&s->t, "a name");
    if (txt_peek(&s->t) != '=' || (s->t.end - s->t.at > 1 && s->t.at[1] == '=')) {
        s->t = begin;
        return false;
    }
    txt_need(&s->t, "=");
    Val v = asm_val(s, &s->t);
    asm_set(s, &begin, w)->v = v;
    return true;
}

bool asm_statement(Asm *s) {
    Txt begin = s->t;
    static const struct {
        const char *word;
        void (*fn)(Asm *);
    } blocks[] = {{"for", for_block}, {"loop", loop_block}, {"if", if_block}};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        if (!txt_take_word(&s->t, blocks[i].word))
            continue;
        // `loop imm=… reg=…` is the instruction
        Txt after = s->t;
        if (i == 1) {
            TxtWord w = txt_name(&s->t, "a name");
            if (txt_word_is(w, "imm") || txt_word_is(w, "reg")) {
                s->t = begin;
                return false;
            }
            s->t = after;
        }
        blocks[i].fn(s);
        return true;
    }
    return assign(s);
}
