// SPDX-License-Identifier: Apache-2.0
// asm_expr.c — numbers in assembly: + - * / % comparisons, min max cdiv, names.
//
// A value is a float, or an affine sum of loop counters (which is a constant when there is none). What
// is not affine but useful, i % 2 to rotate buffers and i / 4, becomes a register of its own, made by
// reg_alu where it is first needed in a loop and kept until the loop ends.
#include <inttypes.h>

#include "artifact/asm.h"

Sym *asm_find(Asm *s, TxtWord name) {
    for (uint32_t i = s->syms.n; i-- > 0;) {
        Sym *y = &s->syms.at[i];
        if (y->name.n == name.n && !memcmp(y->name.s, name.s, name.n))
            return y;
    }
    return NULL;
}

Sym *asm_set(Asm *s, const Txt *begin, TxtWord name) {
    static const char *const taken[] = {"sbuf", "psum", "hbm", "scratch", "const", "min", "max", "cdiv"};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (txt_word_is(name, taken[i]))
            txt_fail(begin, "`%s` has a meaning already", taken[i]);
    Sym *have = asm_find(s, name);
    if (have && have->kind != SYM_NUMBER)
        txt_fail(begin, "`%.*s` is a %s since line %u", (int)name.n, name.s,
                 have->kind == SYM_TENSOR ? "tensor" : "type", have->name.line);
    if (have)
        return have;
    if (s->syms.n == 4096)
        txt_fail(begin, "more than 4096 names");
    VEC_PUSH(s->t.arena, &s->syms, (Sym){.name = name});
    return &s->syms.at[s->syms.n - 1];
}

// --- affine sums -----------------------------------------------------------------------------------

static int64_t mul(const Txt *at, int64_t x, int64_t y) {
    int64_t v;
    if (__builtin_mul_overflow(x, y, &v))
        txt_fail(at, "a number beyond 64 bits");
    return v;
}

static int64_t add(const Txt *at, int64_t x, int64_t y) {
    int64_t v;
    if (__builtin_add_overflow(x, y, &v))
        txt_fail(at, "a number beyond 64 bits");
    return v;
}

Aff aff_add(const Txt *at, Aff x, Aff y, int64_t k) {
    x.c = add(at, x.c, mul(at, y.c, k));
    for (int i = 0; i < y.n; i++) {
        int j = 0;
        while (j < x.n && x.t[j].reg != y.t[i].reg)
            j++;
        if (j == AFF_TERMS)
            txt_fail(at, "more than %d registers in one sum", AFF_TERMS);
        if (j == x.n)
            x.t[x.n++].reg = y.t[i].reg, x.t[j].k = 0;
        x.t[j].k = add(at, x.t[j].k, mul(at, y.t[i].k, k));
        if (!x.t[j].k)
            x.t[j] = x.t[--x.n];
    }
    return x;
}

static Aff aff_const(int64_t c) { return (Aff){.c = c}; }
static Aff aff_reg(uint8_t reg) { return (Aff){.n = 1, .t = {{reg, 1}}}; }

// --- derived registers -----------------------------------------------------------------------------

static void emit_alu(Asm *s, const Txt *at, uint8_t reg, int op, uint8_t areg, int breg, int64_t value) {
    if (value < INT32_MIN || value > INT32_MAX)
        txt_fail(at, "%" PRId64 " does not fit the 32 bits of a register operation", value);
    IsaInst in = {.op = ISA_REG_ALU, .engine = (uint8_t)s->engine, .reg = reg, .op0 = (uint8_t)op,
                  .areg = areg, .breg = (uint8_t)(breg + 1), .value = (int32_t)value,
                  .wait_sem = {SEM_NONE, SEM_NONE}};
    asm_push(s, &in, asm_line_loc(s));
}

static uint8_t reg_new(Asm *s, const Txt *at) {
    if (s->last_reg <= s->next_reg)
        txt_fail(at, "no register is left: %d hold loop counters and what follows from them", ISA_REGS);
    return --s->last_reg;
}

static bool aff_same(const Aff *x, const Aff *y) {
    if (x->c != y->c || x->n != y->n)
        return false;
    for (int i = 0; i < x->n; i++)
        if (x->t[i].reg != y->t[i].reg || x->t[i].k != y->t[i].k)
            return false;
    return true;
}

// The sum itself in a register.
static uint8_t sum_in_reg(Asm *s, const Txt *at, uint8_t reg, Aff x) {
    if (x.n == 1 && x.t[0].k == 1 && !x.c)
        return x.t[0].reg;
    uint8_t term = reg;
    emit_alu(s, at, reg, ALU_MUL, x.t[0].reg, -1, x.t[0].k);
    for (int i = 1; i < x.n; i++) {
        if (term == reg)
            term = reg_new(s, at);
        emit_alu(s, at, term, ALU_MUL, x.t[i].reg, -1, x.t[i].k);
        emit_alu(s, at, reg, ALU_ADD, reg, term, 0);
    }
    if (x.c)
        emit_alu(s, at, reg, ALU_ADD, reg, -1, x.c);
    return reg;
}

uint8_t asm_derive(Asm *s, const Txt *at, int op, Aff x, int64_t y) {
    for (uint32_t i = 0; i < s->derived.n; i++) {
        const Derived *d = &s->derived.at[i];
        if (d->op == op && d->y == y && d->engine == s->engine && aff_same(&d->x, &x))
            return d->reg;
    }
    uint8_t reg = reg_new(s, at), from = sum_in_reg(s, at, reg, x);
    if (op != ALU_BYPASS)
        emit_alu(s, at, reg, op, from, -1, y);
    else if (from != reg)
        return from;
    VEC_PUSH(s->t.arena, &s->derived, (Derived){op, (uint8_t)s->engine, reg, x, y});
    return reg;
}

// --- expressions -----------------------------------------------------------------------------------

static Val expr(Asm *s, Txt *t, int level, int depth);

static Val val_int(int64_t v) { return (Val){.a = aff_const(v)}; }
static Val val_float(double f) { return (Val){.is_float = true, .f = f}; }

static double as_float(const Txt *at, const Val *v) {
    if (!v->is_float && v->a.n)
        txt_fail(at, "a loop counter cannot become a float");
    return v->is_float ? v->f : (double)v->a.c;
}

static int64_t as_const(const Txt *at, const Val *v, const char *what) {
    if (v->is_float)
        txt_fail(at, "%s: a whole number is needed", what);
    if (v->a.n)
        txt_fail(at, "%s: a constant is needed, and this depends on the counter of a device loop", what);
    return v->a.c;
}

static Val number(Txt *t) {
    size_t n = 0, left = (size_t)(t->end - t->at);
    bool hex = left > 1 && t->at[0] == '0' && (t->at[1] | 32) == 'x';
    while (n < left && t->at[n] >= '0' && t->at[n] <= '9')
        n++;
    bool is_float = !hex && n < left && (t->at[n] == '.' || (t->at[n] | 32) == 'e');
    return is_float ? val_float(txt_f64(t, "number")) : val_int(txt_i64(t, 0, INT64_MAX, "number"));
}

static Val call(Asm *s, Txt *t, TxtWord f, int depth) {
    txt_need(t, "(");
    Txt begin = *t;
    Val x = expr(s, t, 0, depth + 1);
    txt_need(t, ",");
    Val y = expr(s, t, 0, depth + 1);
    txt_need(t, ")");
    int64_t a = as_const(&begin, &x, "argument"), b = as_const(&begin, &y, "argument");
    if (txt_word_is(f, "min") || txt_word_is(f, "max"))
        return val_int(txt_word_is(f, "min") == (a < b) ? a : b);
    if (b <= 0 || a < 0)
        txt_fail(&begin, "cdiv divides a number that is not negative by one above 0");
    return val_int(a / b + (a % b != 0));
}

static Val primary(Asm *s, Txt *t, int depth) {
    Txt begin = *t;
    char c = txt_peek(t);
    if (depth > 64)
        txt_fail(&begin, "an expression of more than 64 levels");
    if (c >= '0' && c <= '9')
        return number(t);
    if (c == '.')
        return val_float(txt_f64(t, "number"));
    if (txt_take(t, "(")) {
        Val v = expr(s, t, 0, depth + 1);
        txt_need(t, ")");
        return v;
    }
    if (txt_take(t, "-")) {
        Val v = primary(s, t, depth + 1);
        return v.is_float ? val_float(-v.f) : (Val){.a = aff_add(&begin, aff_const(0), v.a, -1)};
    }
    if (txt_take(t, "+"))
        return primary(s, t, depth + 1);
    TxtWord w = txt_name(t, "a number, a name or `(`");
    if (txt_word_is(w, "min") || txt_word_is(w, "max") || txt_word_is(w, "cdiv"))
        return call(s, t, w, depth);
    if (txt_word_is(w, "inf"))
        return val_float(__builtin_inf());
    const Sym *y = asm_find(s, w);
    if (!y)
        txt_fail(&begin, "there is no name `%.*s`", (int)w.n, w.s);
    if (y->kind != SYM_NUMBER)
        txt_fail(&begin, "`%.*s` is a tensor, not a number", (int)w.n, w.s);
    return y->v;
}

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

// a / b and a % b; on counters b is a power of two.
static Val divide(Asm *s, const Txt *at, Val x, Val y, bool rest) {
    if ((x.is_float || y.is_float) && !rest)
        return val_float(as_float(at, &x) / as_float(at, &y));
    int64_t b = as_const(at, &y, rest ? "%" : "/");
    if (b <= 0)
        txt_fail(at, "division by %" PRId64, b);
    if (x.is_float)
        txt_fail(at, "%%: whole numbers are needed");
    bool exact = x.a.c % b == 0;
    for (int i = 0; i < x.a.n; i++)
        exact &= x.a.t[i].k % b == 0;
    if (!x.a.n)
        return val_int(rest ? x.a.c - b * floor_div(x.a.c, b) : floor_div(x.a.c, b));
    if (exact) {
        if (rest)
            return val_int(0);
        x.a.c /= b;
        for (int i = 0; i < x.a.n; i++)
            x.a.t[i].k /= b;
        return x;
    }
    if (b & (b - 1))
        txt_fail(at, "a loop counter is divided by powers of two only, not by %" PRId64, b);
    if (b == 1)
        return rest ? val_int(0) : x;
    return (Val){.a = aff_reg(asm_derive(s, at, rest ? ALU_AND : ALU_SHR, x.a,
                                         rest ? b - 1 : __builtin_ctzll((uint64_t)b)))};
}

static Val times(const Txt *at, Val x, Val y) {
    if (x.is_float || y.is_float)
        return val_float(as_float(at, &x) * as_float(at, &y));
    if (x.a.n && y.a.n)
        txt_fail(at, "a product of two loop counters");
    return x.a.n ? (Val){.a = aff_add(at, aff_const(0), x.a, y.a.c)}
                 : (Val){.a = aff_add(at, aff_const(0), y.a, x.a.c)};
}

static Val plus(const Txt *at, Val x, Val y, int64_t k) {
    if (x.is_float || y.is_float)
        return val_float(as_float(at, &x) + (double)k * as_float(at, &y));
    return (Val){.a = aff_add(at, x.a, y.a, k)};
}

static Val compare(const Txt *at, Val x, Val y, int op) {
    if (x.is_float || y.is_float) {
        double a = as_float(at, &x), b = as_float(at, &y);
        return val_int(op == 0 ? a == b : op == 1 ? a != b : op == 2 ? a <= b : op == 3 ? a >= b : op == 4 ? a < b : a > b);
    }
    int64_t a = as_const(at, &x, "comparison"), b = as_const(at, &y, "comparison");
    return val_int(op == 0 ? a == b : op == 1 ? a != b : op == 2 ? a <= b : op == 3 ? a >= b : op == 4 ? a < b : a > b);
}

// Level 0: comparisons, 1: sums, 2: products.
static Val expr(Asm *s, Txt *t, int level, int depth) {
    if (level == 3)
        return primary(s, t, depth);
    Txt at = *t;
    Val x = expr(s, t, level + 1, depth);
    for (;;) {
        at = *t;
        if (level == 2 && txt_take(t, "*")) {
            x = times(&at, x, expr(s, t, 3, depth));
        } else if (level == 2 && txt_take(t, "/")) {
            x = divide(s, &at, x, expr(s, t, 3, depth), false);
        } else if (level == 2 && txt_take(t, "%")) {
            x = divide(s, &at, x, expr(s, t, 3, depth), true);
        } else if (level == 1 && (txt_peek(t) == '+' || txt_peek(t) == '-')) {
            int64_t k = txt_take(t, "+") ? 1 : -1;
            if (k < 0)
                txt_take(t, "-");
            x = plus(&at, x, expr(s, t, 2, depth), k);
        } else if (level == 0) {
            static const char *const ops[] = {"==", "!=", "<=", ">=", "<", ">"};
            int op = 0;
            while (op < 6 && !txt_take(t, ops[op]))
                op++;
            if (op == 6)
                return x;
            x = compare(&at, x, expr(s, t, 1, depth), op);
        } else {
            return x;
        }
    }
}

Val asm_val(Asm *s, Txt *t) { return expr(s, t, 0, 0); }

int64_t asm_int(Asm *s, Txt *t, const char *what) {
    Txt begin = *t;
    Val v = expr(s, t, 0, 0);
    return as_const(&begin, &v, what);
}

Aff asm_aff(Asm *s, Txt *t, const char *what) {
    Txt begin = *t;
    Val v = expr(s, t, 0, 0);
    if (v.is_float)
        txt_fail(&begin, "%s: a whole number is needed", what);
    return v.a;
}
