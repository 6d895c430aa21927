// SPDX-License-Identifier: Apache-2.0
// text_lex.c — the characters of MLIR text: space, words, numbers, strings, places, hashed names.
#define _GNU_SOURCE // memmem
#include "read/text.h"

#include <stdio.h>

// --- places and errors ---------------------------------------------------------------------------

static Place text_place(const TextRead *p, const char *at) {
    uint32_t line = 1;
    const char *start = p->begin;
    for (const char *nl; (nl = memchr(start, '\n', (size_t)(at - start)));) {
        line++;
        start = nl + 1;
    }
    return (Place){p->file, line, (uint32_t)(at - start) + 1};
}

_Noreturn void text_fail(TextRead *p, const char *at, otrn_status code, const char *fmt, ...) {
    char text[800];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    ctx_fail(p->ctx, code, text_place(p, at), "%s", text);
}

// The token at hand, short and printable, for messages.
static void token_show(const TextRead *p, char out[40]) {
    size_t left = (size_t)(p->end - p->at), n = 0;
    if (!left) {
        strcpy(out, "the end of the text");
        return;
    }
    bool word = text_is_alnum(*p->at) || strchr("%@#!_^", *p->at);
    size_t most = word ? 30 : 1;
    if (*p->at == '"')
        most = 30, word = true;
    out[n++] = '\'';
    for (size_t i = 0; i < left && i < most; i++) {
        char c = p->at[i];
        if (i && !text_is_alnum(c) && !strchr("_.$-", c))
            break;
        out[n++] = c > 32 && c < 127 ? c : '?';
    }
    out[n++] = '\'';
    out[n] = 0;
}

_Noreturn void text_expected(TextRead *p, const char *what) {
    text_space(p);
    char found[40];
    token_show(p, found);
    text_fail(p, p->at, OTRN_PARSE, "expected %s, found %s", what, found);
}

void text_deeper(TextRead *p) {
    if (++p->depth > TEXT_MAX_DEPTH)
        text_fail(p, p->at, OTRN_CAPACITY, "nested deeper than TEXT_MAX_DEPTH (%d levels)",
                  TEXT_MAX_DEPTH);
}

// --- space, characters, words --------------------------------------------------------------------

void text_space(TextRead *p) {
    const char *s = p->at, *end = p->end;
    for (; s < end; s++) {
        if (*s == ' ' || *s == '\n' || *s == '\t' || *s == '\r')
            continue;
        if (*s != '/' || end - s < 2 || (s[1] != '/' && s[1] != '*'))
            break;
        bool block = s[1] == '*'; // HLO's
        s = block ? memmem(s + 2, (size_t)(end - s - 2), "*/", 2) : memchr(s, '\n', (size_t)(end - s));
        s += s && block;
        if (!s) {
            s = end;
            break;
        }
    }
    p->at = s;
}

char text_peek(TextRead *p) {
    text_space(p);
    return p->at < p->end ? *p->at : 0;
}

bool text_eat(TextRead *p, char c) {
    if (text_peek(p) != c || p->at == p->end)
        return false;
    p->at++;
    return true;
}

void text_need(TextRead *p, char c) {
    if (!text_eat(p, c))
        text_expected(p, (char[]){'\'', c, '\'', 0});
}

bool text_eat_arrow(TextRead *p) {
    text_space(p);
    if (p->end - p->at < 2 || p->at[0] != '-' || p->at[1] != '>')
        return false;
    p->at += 2;
    return true;
}

static bool is_ident(char c) { return text_is_alnum(c) || c == '_' || c == '$' || c == '.'; }

bool text_at_word(TextRead *p, const char *word) {
    text_space(p);
    size_t n = strlen(word), left = (size_t)(p->end - p->at);
    return left >= n && !memcmp(p->at, word, n) && (left == n || !is_ident(p->at[n]));
}

bool text_eat_word(TextRead *p, const char *word) {
    if (!text_at_word(p, word))
        return false;
    p->at += strlen(word);
    return true;
}

void text_need_word(TextRead *p, const char *word) {
    if (text_eat_word(p, word))
        return;
    char what[40];
    snprintf(what, sizeof what, "'%s'", word);
    text_expected(p, what);
}

bool text_at_ident(TextRead *p) {
    char c = text_peek(p);
    return text_is_alpha(c) || c == '_';
}

Span text_ident(TextRead *p, const char *what) {
    if (!text_at_ident(p))
        text_expected(p, what);
    const char *s = p->at;
    while (p->at < p->end && is_ident(*p->at))
        p->at++;
    return (Span){s, (size_t)(p->at - s)};
}

Span text_suffix_id(TextRead *p, const char *what) {
    const char *s = p->at, *e = s;
    if (e < p->end && text_is_digit(*e)) {
        while (e < p->end && text_is_digit(*e))
            e++;
    } else {
        while (e < p->end && (is_ident(*e) || *e == '-'))
            e++;
    }
    if (e == s)
        text_expected(p, what);
    p->at = e;
    return (Span){s, (size_t)(e - s)};
}

// --- strings -------------------------------------------------------------------------------------

int text_hex_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 32;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// One escape behind a backslash at s; returns how many characters it took.
static int escape_decode(TextRead *p, const char *s, char *out) {
    static const char from[] = {'"', '\\', 'n', 't'}, to[] = {'"', '\\', '\n', '\t'};
    for (size_t i = 0; s < p->end && i < sizeof from; i++) {
        if (*s == from[i]) {
            *out = to[i];
            return 1;
        }
    }
    if (p->end - s >= 2 && text_hex_digit(s[0]) >= 0 && text_hex_digit(s[1]) >= 0) {
        *out = (char)(text_hex_digit(s[0]) << 4 | text_hex_digit(s[1]));
        return 2;
    }
    text_fail(p, s, OTRN_PARSE,
              "unknown escape in a string: a backslash stands before \", \\, n, t or 2 hex digits");
}

char *text_string(TextRead *p, uint32_t *n) {
    if (text_peek(p) != '"')
        text_expected(p, "a string");
    const char *open = p->at, *s = open + 1, *e = s;
    bool escapes = false;
    for (;; e++) {
        if (e == p->end || *e == '\n')
            text_fail(p, open, OTRN_PARSE, "this string has no closing quote on its line");
        if (*e == '"')
            break;
        if (*e == '\\') {
            escapes = true;
            if (++e == p->end)
                text_fail(p, open, OTRN_PARSE, "this string has no closing quote on its line");
        }
    }
    if (e - s > INT32_MAX)
        text_fail(p, open, OTRN_CAPACITY, "a string of 2 GB or more");
    char *out = arena_alloc(p->arena, (size_t)(e - s) + 1), *o = out;
    if (!escapes) {
        memcpy(out, s, (size_t)(e - s));
        o += e - s;
    }
    for (const char *c = s; escapes && c < e;) {
        if (*c == '\\')
            c += 1 + escape_decode(p, c + 1, o++);
        else
            *o++ = *c++;
    }
    *o = 0;
    *n = (uint32_t)(o - out);
    p->at = e + 1;
    return out;
}

char *text_name_string(TextRead *p) {
    const char *at = p->at;
    uint32_t n;
    char *s = text_string(p, &n);
    if (strlen(s) != n)
        text_fail(p, at, OTRN_PARSE, "a name must not hold a NUL byte");
    return s;
}

const char *text_symbol(TextRead *p) {
    text_need(p, '@');
    const char *at = p->at;
    if (p->at < p->end && *p->at == '"') {
        const char *s = text_name_string(p);
        if (p->end - p->at > 2 && p->at[0] == ':' && p->at[1] == ':')
            text_fail(p, at, OTRN_UNSUPPORTED, "a nested symbol with a quoted root");
        return s;
    }
    Span id = text_suffix_id(p, "a symbol name");
    while (p->end - p->at > 2 && p->at[0] == ':' && p->at[1] == ':' && p->at[2] == '@') {
        p->at += 3;
        text_suffix_id(p, "a symbol name");
        id.n = (size_t)(p->at - id.s);
    }
    return arena_strndup(p->arena, id.s, id.n);
}

// --- numbers -------------------------------------------------------------------------------------

bool text_at_int(TextRead *p) {
    char c = text_peek(p);
    if (c == '-' && p->end - p->at > 1)
        c = p->at[1];
    return text_is_digit(c);
}

int64_t text_int(TextRead *p, const char *what) {
    if (!text_at_int(p))
        text_expected(p, what);
    const char *s = p->at;
    bool neg = *s == '-', over = false;
    s += neg;
    uint64_t v = 0;
    if (p->end - s > 2 && s[0] == '0' && s[1] == 'x' && text_hex_digit(s[2]) >= 0) {
        for (s += 2; s < p->end && text_hex_digit(*s) >= 0; s++) {
            over |= v >> 60 != 0;
            v = v << 4 | (uint64_t)text_hex_digit(*s);
        }
    } else {
        for (; s < p->end && text_is_digit(*s); s++)
            over |= __builtin_mul_overflow(v, 10u, &v) ||
                    __builtin_add_overflow(v, (uint64_t)(*s - '0'), &v);
    }
    if (over || (neg && v > (uint64_t)1 << 63))
        text_fail(p, p->at, OTRN_PARSE, "this number does not fit 64 bits");
    p->at = s;
    return (int64_t)(neg ? 0 - v : v);
}

// --- hashed names --------------------------------------------------------------------------------

static uint32_t name_hash(Span s) { return (uint32_t)hash64(7, s.s, s.n); }

static uint32_t *slot_find(TextMap *m, Span name, uint32_t hash) {
    uint32_t i = hash & (m->cap - 1);
    for (; m->slots[i]; i = (i + 1) & (m->cap - 1)) {
        const TextName *t = &m->names.at[m->slots[i] - 1];
        if (t->hash == hash && t->name.n == name.n && !memcmp(t->name.s, name.s, name.n))
            break;
    }
    return &m->slots[i];
}

TextName *text_map_find(TextMap *m, Span name) {
    if (!m->cap)
        return NULL;
    uint32_t *slot = slot_find(m, name, name_hash(name));
    return *slot ? &m->names.at[*slot - 1] : NULL;
}

TextName *text_map_at(Arena *a, TextMap *m, Span name) {
    if (m->names.n * 2 >= m->cap) {
        m->cap = m->cap ? m->cap * 2 : 64;
        m->slots = ARENA_NEWN(a, uint32_t, m->cap);
        for (uint32_t i = 0; i < m->names.n; i++)
            *slot_find(m, m->names.at[i].name, m->names.at[i].hash) = i + 1;
    }
    uint32_t hash = name_hash(name);
    uint32_t *slot = slot_find(m, name, hash);
    if (!*slot) {
        VEC_PUSH(a, &m->names, ((TextName){.name = name, .hash = hash}));
        *slot = m->names.n;
    }
    return &m->names.at[*slot - 1];
}
