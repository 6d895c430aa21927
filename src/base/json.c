// SPDX-License-Identifier: Apache-2.0
// json.c — a JSON reader by recursive descent, and quoted text.
#include "base/json.h"

#include <stdlib.h>

typedef struct In {
    Ctx *ctx;
    Arena *arena;
    const char *name;
    const char *begin, *at, *end;
    int depth;
} In;

_Noreturn static void fail(In *in, const char *what) {
    uint32_t line = 1, col = 1;
    for (const char *p = in->begin; p < in->at && p < in->end; p++)
        line += *p == '\n', col = *p == '\n' ? 1 : col + 1;
    ctx_fail(in->ctx, OTRN_PARSE, (Place){in->name, line, col}, "JSON: %s", what);
}

static int peek(In *in) { // the next character that is no space; -1: the end
    while (in->at < in->end && (*in->at == ' ' || *in->at == '\n' || *in->at == '\t' || *in->at == '\r'))
        in->at++;
    return in->at < in->end ? (unsigned char)*in->at : -1;
}

static bool take(In *in, char c) {
    if (peek(in) != (unsigned char)c)
        return false;
    in->at++;
    return true;
}

static unsigned hex4(In *in) {
    unsigned v = 0;
    for (int i = 0; i < 4; i++, in->at++) {
        int c = in->at < in->end ? *in->at : 0;
        int d = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
        if (d < 0)
            fail(in, "four hexadecimal digits belong behind \\u");
        v = v * 16 + (unsigned)d;
    }
    return v;
}

static void utf8(Buf *out, unsigned c) {
    if (c < 0x80) {
        put_u8(out, (uint8_t)c);
    } else if (c < 0x800) {
        put_u8(out, (uint8_t)(0xc0 | c >> 6)), put_u8(out, (uint8_t)(0x80 | (c & 63)));
    } else if (c < 0x10000) {
        put_u8(out, (uint8_t)(0xe0 | c >> 12)), put_u8(out, (uint8_t)(0x80 | (c >> 6 & 63))), put_u8(out, (uint8_t)(0x80 | (c & 63)));
    } else {
        put_u8(out, (uint8_t)(0xf0 | c >> 18)), put_u8(out, (uint8_t)(0x80 | (c >> 12 & 63)));
        put_u8(out, (uint8_t)(0x80 | (c >> 6 & 63))), put_u8(out, (uint8_t)(0x80 | (c & 63)));
    }
}

static void escape(In *in, Buf *out) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char c = in->at < in->end ? *in->at++ : 0;
    const char *which = c ? strchr(from, c) : NULL;
    if (which) {
        put_u8(out, (uint8_t)to[which - from]);
        return;
    }
    if (c != 'u')
        fail(in, "an escape that is none");
    unsigned v = hex4(in);
    if (v >= 0xd800 && v < 0xdc00) {
        if (in->end - in->at < 6 || in->at[0] != '\\' || in->at[1] != 'u')
            fail(in, "half of a pair of surrogates");
        in->at += 2;
        unsigned low = hex4(in);
        if (low < 0xdc00 || low > 0xdfff)
            fail(in, "half of a pair of surrogates");
        v = 0x10000 + ((v - 0xd800) << 10) + (low - 0xdc00);
    } else if (!v || (v >= 0xdc00 && v < 0xe000)) {
        fail(in, "a character that texts cannot have");
    }
    utf8(out, v);
}

static const char *text(In *in) {
    Buf out = {.arena = in->arena};
    if (!take(in, '"'))
        fail(in, "a text belongs here");
    for (;;) {
        if (in->at == in->end || (unsigned char)*in->at < 0x20)
            fail(in, "a text that does not end");
        char c = *in->at++;
        if (c == '"')
            return buf_cstr(&out);
        if (c == '\\')
            escape(in, &out);
        else
            put_u8(&out, (uint8_t)c);
    }
}

static bool digits(In *in) {
    const char *from = in->at;
    while (in->at < in->end && *in->at >= '0' && *in->at <= '9')
        in->at++;
    return in->at > from;
}

static void number(In *in, Json *out) {
    const char *from = in->at;
    in->at += *in->at == '-';
    const char *first = in->at;
    bool good = digits(in) && !(in->at - first > 1 && *first == '0');
    if (good && in->at < in->end && *in->at == '.')
        in->at++, good = digits(in);
    if (good && in->at < in->end && (*in->at | 32) == 'e') {
        in->at++;
        in->at += in->at < in->end && (*in->at == '+' || *in->at == '-');
        good = digits(in);
    }
    if (!good)
        fail(in, "no value begins like this");
    out->kind = JSON_NUMBER;
    out->text = arena_strndup(in->arena, from, (size_t)(in->at - from));
    out->number = strtod(out->text, NULL);
}

static bool word(In *in, const char *w) {
    size_t n = strlen(w);
    if ((size_t)(in->end - in->at) < n || memcmp(in->at, w, n))
        return false;
    in->at += n;
    return true;
}

static void value(In *in, Json *out);

static void many(In *in, Json *out, bool object) {
    VEC(Json) all = {0};
    char close = object ? '}' : ']';
    in->at++;
    if (++in->depth > JSON_DEPTH)
        fail(in, "lists and objects too deep in each other");
    for (bool first = true; !take(in, close); first = false) {
        Json one = {0};
        if (!first && !take(in, ','))
            fail(in, "a comma or an end belongs here");
        if (object) {
            peek(in);
            one.name = text(in);
            if (!take(in, ':'))
                fail(in, "a colon belongs here");
        }
        value(in, &one);
        VEC_PUSH(in->arena, &all, one);
    }
    in->depth--;
    out->kind = object ? JSON_OBJECT : JSON_LIST, out->at = all.at, out->n = all.n;
}

static void value(In *in, Json *out) {
    int c = peek(in);
    if (c == '{' || c == '[')
        many(in, out, c == '{');
    else if (c == '"')
        out->text = text(in), out->kind = JSON_TEXT;
    else if (c < 0)
        fail(in, "it ends where a value belongs");
    else if (word(in, "true"))
        out->kind = JSON_TRUE;
    else if (word(in, "false"))
        out->kind = JSON_FALSE;
    else if (!word(in, "null"))
        number(in, out);
}

const Json *json_parse(Ctx *ctx, Arena *a, const char *name, const void *bytes, size_t size) {
    In in = {ctx, a, name, bytes, bytes, (const char *)bytes + size, 0};
    Json *out = ARENA_NEW(a, Json);
    value(&in, out);
    if (peek(&in) >= 0)
        fail(&in, "something stands behind the value");
    return out;
}

const Json *json_get(const Json *j, const char *member) {
    for (uint32_t i = 0; j && j->kind == JSON_OBJECT && i < j->n; i++)
        if (!strcmp(j->at[i].name, member))
            return &j->at[i];
    return NULL;
}

const Json *json_need(Ctx *ctx, const char *file, const Json *j, const char *member, JsonKind kind) {
    const Json *m = json_get(j, member);
    if (!m || m->kind != kind)
        ctx_fail(ctx, OTRN_PARSE, (Place){.file = file}, "no `%s`, or not of the right kind", member);
    return m;
}

void json_put(Buf *out, const char *s) {
    put_u8(out, '"');
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            put_u8(out, '\\'), put_u8(out, (uint8_t)*s);
        else if ((unsigned char)*s < 0x20)
            buf_printf(out, "\\u%04x", *s);
        else
            put_u8(out, (uint8_t)*s);
    }
    put_u8(out, '"');
}
