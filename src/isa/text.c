// SPDX-License-Identifier: Apache-2.0
// text.c — the cursor of text.h.
#include "isa/text.h"

#include <ctype.h>
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/dtype.h"

#define NUMBER_MAX_CHARS 64

static void blanks(Txt *t) {
    while (t->at < t->end && (*t->at == ' ' || *t->at == '\t' || *t->at == '\r'))
        t->at++;
}

static Place place_here(const Txt *t) {
    return (Place){t->file, t->line, t->col + (uint32_t)(t->at - t->begin)};
}

// of the cursor, after blanks
static Place txt_place(const Txt *t) {
    Txt copy = *t;
    blanks(&copy);
    return place_here(&copy);
}

_Noreturn void txt_fail(const Txt *t, const char *fmt, ...) {
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    ctx_fail(t->ctx, OTRN_PARSE, txt_place(t), "%s", text);
}

char txt_peek(Txt *t) {
    blanks(t);
    return t->at == t->end || *t->at == '#' || !*t->at ? 0 : *t->at;
}

bool txt_take(Txt *t, const char *literal) {
    size_t n = strlen(literal);
    if (!txt_peek(t) || (size_t)(t->end - t->at) < n || memcmp(t->at, literal, n))
        return false;
    t->at += n;
    return true;
}

// What stands at the cursor, for "expected … before …".
static const char *next_thing(Txt *t, char out[24]) {
    if (!txt_peek(t))
        return "the end of the line";
    size_t n = 0;
    while (n < 16 && t->at + n < t->end && (unsigned char)t->at[n] > ' ')
        n++;
    snprintf(out, 24, "`%.*s`", (int)n, t->at);
    return out;
}

void txt_need(Txt *t, const char *literal) {
    char thing[24];
    if (!txt_take(t, literal))
        txt_fail(t, "expected `%s` before %s", literal, next_thing(t, thing));
}

static bool word_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-' || c == '$' || c == '!';
}

static size_t word_length(Txt *t) {
    blanks(t);
    size_t n = 0;
    while (t->at + n < t->end && word_char(t->at[n]))
        n++;
    return n;
}

bool txt_take_word(Txt *t, const char *word) {
    size_t n = word_length(t);
    if (n != strlen(word) || memcmp(t->at, word, n))
        return false;
    t->at += n;
    return true;
}

TxtWord txt_word(Txt *t, const char *what) {
    size_t n = word_length(t);
    char thing[24];
    if (!n)
        txt_fail(t, "expected %s before %s", what, next_thing(t, thing));
    Place at = place_here(t);
    TxtWord w = {t->at, (uint32_t)n, at.line, at.col};
    t->at += n;
    return w;
}

TxtWord txt_name(Txt *t, const char *what) {
    Txt begin = *t;
    TxtWord w = txt_word(t, what);
    uint32_t n = 0;
    while (n < w.n && (isalnum((unsigned char)w.s[n]) || w.s[n] == '_'))
        n++;
    if (!n)
        txt_fail(&begin, "expected %s, not `%.*s`", what, (int)w.n, w.s);
    t->at = w.s + n;
    w.n = n;
    return w;
}

bool txt_word_is(TxtWord w, const char *s) { return w.n == strlen(s) && !memcmp(w.s, s, w.n); }

// Copies the number's characters so that the C library stops where the line does.
static size_t number_copy(Txt *t, char out[NUMBER_MAX_CHARS], const char *what) {
    blanks(t);
    size_t n = 0;
    bool hex = t->end - t->at > 1 && t->at[0] == '0' && (t->at[1] | 32) == 'x';
    while (t->at + n < t->end && (word_char(t->at[n]) || t->at[n] == '+')) {
        // a sign inside ends the number, except in an exponent
        if (n && strchr("+-", t->at[n]) && (hex || (t->at[n - 1] | 32) != 'e'))
            break;
        if (n + 1 == NUMBER_MAX_CHARS)
            txt_fail(t, "%s is a number of more than %d characters", what, NUMBER_MAX_CHARS - 1);
        out[n] = t->at[n];
        n++;
    }
    out[n] = 0;
    char thing[24];
    if (!n)
        txt_fail(t, "expected %s (a number) before %s", what, next_thing(t, thing));
    return n;
}

static int base_of(const char *digits) {
    return digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X') ? 16 : 10;
}

static bool digits_begin(const char *s) { return s[0] >= '0' && s[0] <= '9'; }

int64_t txt_i64(Txt *t, int64_t lo, int64_t hi, const char *what) {
    char s[NUMBER_MAX_CHARS], *end;
    size_t n = number_copy(t, s, what);
    const char *digits = s[0] == '-' || s[0] == '+' ? s + 1 : s;
    errno = 0;
    long long v = strtoll(s, &end, base_of(digits));
    if (end != s + n || !digits_begin(digits))
        txt_fail(t, "%s: `%s` is not a whole number", what, s);
    if (errno || v < lo || v > hi)
        txt_fail(t, "%s: %s is outside %lld…%lld", what, s, (long long)lo, (long long)hi);
    t->at += n;
    return v;
}

uint64_t txt_u64(Txt *t, uint64_t hi, const char *what) {
    char s[NUMBER_MAX_CHARS], *end;
    size_t n = number_copy(t, s, what);
    errno = 0;
    unsigned long long v = strtoull(s, &end, base_of(s));
    bool negative = s[0] == '-' && digits_begin(s + 1);
    if (end != s + n || (!digits_begin(s) && !negative))
        txt_fail(t, "%s: `%s` is not a whole number", what, s);
    if (errno || negative || v > hi)
        txt_fail(t, "%s: %s is outside 0…%llu", what, s, (unsigned long long)hi);
    t->at += n;
    return v;
}

double txt_f64(Txt *t, const char *what) {
    char s[NUMBER_MAX_CHARS], *end;
    size_t n = number_copy(t, s, what);
    double v = strtod(s, &end);
    if (end != s + n)
        txt_fail(t, "%s: `%s` is not a number", what, s);
    t->at += n;
    return v;
}

int txt_dtype(Txt *t) {
    blanks(t);
    size_t n = word_length(t);
    if (t->at + n < t->end && t->at[n] == '<') // complex<f32>
        while (t->at + n < t->end && t->at[n - 1] != '>')
            n++;
    int d = n ? dtype_parse(t->at, n) : -1;
    char thing[24];
    if (d < 0)
        ctx_hint(t->ctx, "element types: f32 bf16 f16 tf32 f8E4M3FN f8E5M2 …, i8 … i64, ui8 … ui64, i1");
    if (d < 0)
        txt_fail(t, "expected an element type before %s", next_thing(t, thing));
    t->at += n;
    return d;
}

static int hex_digit(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

// One character after a backslash; moves past it.
static char escape(Txt *t) {
    char c = t->at < t->end ? *t->at : 0;
    if (c == 'x' && t->end - t->at >= 3 && hex_digit(t->at[1]) >= 0 && hex_digit(t->at[2]) >= 0) {
        char v = (char)(hex_digit(t->at[1]) << 4 | hex_digit(t->at[2]));
        t->at += 3;
        return v;
    }
    static const char from[] = "\"\\nt", to[] = "\"\\\n\t";
    const char *hit = c ? strchr(from, c) : NULL;
    if (!hit)
        txt_fail(t, "unknown escape: use \\\" \\\\ \\n \\t or \\xHH");
    t->at++;
    return to[hit - from];
}

const char *txt_string(Txt *t, uint32_t *n) {
    char thing[24];
    if (txt_peek(t) != '"')
        txt_fail(t, "expected a string in quotes before %s", next_thing(t, thing));
    Txt begin = *t;
    t->at++;
    size_t span = 0; // up to the closing quote
    while (t->at + span < t->end && t->at[span] != '"')
        span += t->at[span] == '\\' ? 2 : 1;
    if (t->at + span >= t->end)
        txt_fail(&begin, "this string has no closing quote");
    char *out = arena_alloc(t->arena, span + 1);
    size_t len = 0;
    while (*t->at != '"') {
        char c = *t->at++;
        out[len++] = c == '\\' ? escape(t) : c;
    }
    t->at++;
    out[len] = 0;
    if (len > UINT32_MAX)
        txt_fail(&begin, "this string is longer than 4 GiB");
    if (n)
        *n = (uint32_t)len;
    return out;
}

const char *txt_cstring(Txt *t) {
    Txt begin = *t;
    uint32_t n;
    const char *s = txt_string(t, &n);
    if (strlen(s) != n)
        txt_fail(&begin, "this string may not hold a zero byte");
    return s;
}

void txt_end(Txt *t) {
    char thing[24];
    if (txt_peek(t))
        txt_fail(t, "unexpected %s", next_thing(t, thing));
}

void txt_print_string(Buf *out, const char *s, size_t n) {
    put_u8(out, '"');
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c == '"' || c == '\\')
            buf_printf(out, "\\%c", c);
        else if (c == '\n' || c == '\t')
            buf_puts(out, c == '\n' ? "\\n" : "\\t");
        else if (c < 0x20 || c == 0x7f)
            buf_printf(out, "\\x%02x", c);
        else
            put_u8(out, c);
    }
    put_u8(out, '"');
}
