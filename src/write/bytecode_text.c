// SPDX-License-Identifier: Apache-2.0
// bytecode_text.c — a small scanner for types and attributes that the graph keeps as text.
#include "write/bytecode.h"

_Noreturn void bw_text_fail(BwText *t) {
    bw_fail(t->w, "%s %.200s", t->what, t->whole);
}

bool bw_text_eat(BwText *t, const char *s) {
    t->at += strspn(t->at, " \n\t\r");
    size_t n = strlen(s);
    if (strncmp(t->at, s, n))
        return false;
    t->at += n;
    return true;
}

void bw_text_need(BwText *t, const char *s) {
    if (!bw_text_eat(t, s))
        bw_text_fail(t);
}

bool bw_text_at_digit(BwText *t) {
    bw_text_eat(t, "");
    return *t->at >= '0' && *t->at <= '9';
}

int64_t bw_text_int(BwText *t) {
    bool neg = bw_text_eat(t, "-");
    if (!bw_text_at_digit(t))
        bw_text_fail(t);
    int64_t v = 0; // counted downwards: negative numbers reach one further
    for (; *t->at >= '0' && *t->at <= '9'; t->at++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_sub_overflow(v, *t->at - '0', &v))
            bw_text_fail(t);
    if (!neg && v == INT64_MIN)
        bw_text_fail(t);
    return neg ? v : -v;
}
