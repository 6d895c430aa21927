// SPDX-License-Identifier: Apache-2.0
// text_alias.c — #x = … and !x = …, and raw text of what we only carry along.
//
// MLIR prints aliases in front of the module and, for locations, behind it. A quick scan over line
// beginnings therefore notes where each definition stands before anything is read; a definition is
// read when first used, and remembered. Two things keep hostile input harmless: an alias that is
// being read is busy, so a circle is found; and the number of attributes a use stands for is
// counted, so doubling aliases cannot unfold without end.
#include "read/text.h"

// --- finding definitions -------------------------------------------------------------------------

// The name (with sigil) of a definition at s, or an empty span; *def becomes the text behind '='.
static Span definition_at(const char *s, const char *end, const char **def) {
    const char *e = s + 1;
    while (e < end && (text_is_alnum(*e) || *e == '_' || *e == '$' || *e == '-'))
        e++;
    Span name = {s, (size_t)(e - s)};
    while (e < end && (*e == ' ' || *e == '\t'))
        e++;
    if (name.n < 2 || e == end || *e != '=' || (e + 1 < end && e[1] == '='))
        return (Span){0};
    *def = e + 1;
    return name;
}

static TextAlias *alias_add(TextRead *p, Span name, const char *def) {
    TextName *t = text_map_at(p->arena, &p->aliases, name);
    if (t->b)
        text_fail(p, name.s, OTRN_PARSE, "'%.*s' is defined twice", (int)name.n, name.s);
    t->a = p->alias.n;
    t->b = 1;
    VEC_PUSH(p->arena, &p->alias, (TextAlias){.def = def});
    return &p->alias.at[t->a];
}

void text_alias_scan(TextRead *p) {
    for (const char *s = p->begin; s < p->end;) {
        while (s < p->end && (*s == ' ' || *s == '\t'))
            s++;
        const char *def;
        if (s < p->end && (*s == '#' || *s == '!')) {
            Span name = definition_at(s, p->end, &def);
            if (name.n)
                alias_add(p, name, def);
        } else if (p->end - s > 3 && !memcmp(s, "{-#", 3)) {
            p->resources_at = s;
        }
        s = s < p->end ? memchr(s, '\n', (size_t)(p->end - s)) : NULL;
        if (!s)
            break;
        s++;
    }
}

// --- using them ----------------------------------------------------------------------------------

bool text_at_alias(TextRead *p) {
    char c = text_peek(p);
    if (c != '#' && c != '!')
        return false;
    const char *e = p->at + 1;
    while (e < p->end && (text_is_alnum(*e) || *e == '_' || *e == '$' || *e == '-'))
        e++;
    return e > p->at + 1 && (e == p->end || (*e != '.' && *e != '<'));
}

static uint32_t alias_find(TextRead *p) {
    const char *at = p->at++;
    text_suffix_id(p, "a name");
    Span name = {at, (size_t)(p->at - at)};
    TextName *t = text_map_find(&p->aliases, name);
    if (!t)
        text_fail(p, at, OTRN_PARSE, "'%.*s' is not defined in this file", (int)name.n, name.s);
    return t->a;
}

void text_expand(TextRead *p, uint64_t more) {
    p->expanded += more;
    if (p->expanded > TEXT_MAX_EXPANSION + (uint64_t)(p->end - p->begin))
        text_fail(p, p->at, OTRN_CAPACITY,
                  "the text unfolds into more than TEXT_MAX_EXPANSION (%d) attributes",
                  TEXT_MAX_EXPANSION);
}

// One use of an alias instead of its definition.
static void weigh(TextRead *p, uint64_t weight) {
    p->weight += weight;
    if (weight > 1)
        text_expand(p, weight - 1);
}

typedef struct Visit { // the reader's state while it is away at a definition
    const char *back;
    uint64_t weight;
} Visit;

static Visit visit_begin(TextRead *p, uint32_t alias, uint8_t *state, const char *use) {
    if (*state == ALIAS_BUSY)
        text_fail(p, use, OTRN_PARSE, "this alias is defined by itself");
    *state = ALIAS_BUSY;
    text_deeper(p);
    Visit v = {p->at, p->weight};
    p->at = p->alias.at[alias].def;
    p->weight = 0;
    return v;
}

static void visit_end(TextRead *p, uint32_t alias, Visit v) {
    p->alias.at[alias].end = p->at;
    p->alias.at[alias].weight = p->weight;
    p->at = v.back;
    p->weight = v.weight;
    p->depth--;
}

HloAttr text_alias_attr(TextRead *p) {
    const char *use = p->at;
    uint32_t i = alias_find(p);
    if (p->alias.at[i].attr_state != ALIAS_DONE) {
        Visit v = visit_begin(p, i, &p->alias.at[i].attr_state, use);
        HloAttr attr = text_attr(p);
        p->alias.at[i].attr = attr;
        p->alias.at[i].attr_state = ALIAS_DONE;
        visit_end(p, i, v);
    }
    weigh(p, p->alias.at[i].weight);
    return p->alias.at[i].attr;
}

TypeId text_alias_type(TextRead *p) {
    const char *use = p->at;
    uint32_t i = alias_find(p);
    if (p->alias.at[i].type_state != ALIAS_DONE) {
        Visit v = visit_begin(p, i, &p->alias.at[i].type_state, use);
        TypeId type = text_type(p);
        p->alias.at[i].type = type;
        p->alias.at[i].type_state = ALIAS_DONE;
        visit_end(p, i, v);
    }
    weigh(p, p->alias.at[i].weight);
    return p->alias.at[i].type;
}

LocId text_alias_loc(TextRead *p) {
    const char *use = p->at;
    uint32_t i = alias_find(p);
    if (p->alias.at[i].loc_state != ALIAS_DONE) {
        Visit v = visit_begin(p, i, &p->alias.at[i].loc_state, use);
        LocId loc = text_loc_trailing(p);
        if (!loc)
            text_expected(p, "loc(…) behind this alias");
        p->alias.at[i].loc = loc;
        p->alias.at[i].loc_state = ALIAS_DONE;
        visit_end(p, i, v);
    }
    return p->alias.at[i].loc;
}

const char *text_alias_enter(TextRead *p) {
    const char *back = NULL, *use = p->at;
    for (int hops = 0; text_at_alias(p); hops++) {
        if (hops > TEXT_MAX_DEPTH)
            text_fail(p, use, OTRN_PARSE, "this alias is defined by itself");
        uint32_t i = alias_find(p);
        if (!back)
            back = p->at;
        p->at = p->alias.at[i].def;
    }
    return back;
}

void text_alias_leave(TextRead *p, const char *back) {
    if (back)
        p->at = back;
}

// Reads the definition as whatever it looks like, so that its end becomes known.
static const char *alias_end(TextRead *p, const char *use) {
    const char *save = p->at;
    p->at = use;
    uint32_t i = alias_find(p);
    if (!p->alias.at[i].end) {
        const char *behind = p->at;
        p->at = p->alias.at[i].def;
        bool loc = text_at_word(p, "loc");
        p->at = use;
        if (*use == '!')
            text_alias_type(p);
        else if (loc)
            text_alias_loc(p);
        else
            text_alias_attr(p);
        p->at = behind;
    }
    p->at = save;
    return p->alias.at[i].end;
}

void text_alias_define(TextRead *p) {
    text_space(p);
    const char *use = p->at++;
    text_suffix_id(p, "an alias name");
    Span name = {use, (size_t)(p->at - use)};
    if (memchr(name.s, '.', name.n))
        text_fail(p, use, OTRN_PARSE, "an alias name must not have a dot");
    text_need(p, '=');
    TextName *known = text_map_find(&p->aliases, name);
    if (known && p->alias.at[known->a].def != p->at)
        text_fail(p, use, OTRN_PARSE, "'%.*s' is defined twice", (int)name.n, name.s);
    if (!known)
        alias_add(p, name, p->at);
    p->at = alias_end(p, use);
}

// --- raw text ------------------------------------------------------------------------------------

// The end of a string, comment or single character at s.
static const char *raw_step(TextRead *p, const char *s) {
    if (*s == '/' && p->end - s > 1 && s[1] == '/') {
        const char *nl = memchr(s, '\n', (size_t)(p->end - s));
        return nl ? nl : p->end;
    }
    if (*s == '-' && p->end - s > 1 && s[1] == '>')
        return s + 2;
    if (*s != '"')
        return s + 1;
    const char *e = s + 1;
    while (e < p->end && *e != '"' && *e != '\n')
        e += *e == '\\' ? 2 : 1;
    if (e >= p->end || *e != '"')
        text_fail(p, s, OTRN_PARSE, "this string has no closing quote on its line");
    return e + 1;
}

static const char *raw_end(TextRead *p) {
    char want[TEXT_MAX_DEPTH];
    int n = 0;
    const char *s = p->at;
    do {
        if (s >= p->end)
            text_fail(p, p->at, OTRN_PARSE, "this '%c' is never closed", *p->at);
        const char *pair = *s ? strchr("<>()[]{}", *s) : NULL;
        int kind = pair ? (int)(pair - "<>()[]{}") : -1;
        if (kind >= 0 && kind % 2 == 0) {
            if (n == TEXT_MAX_DEPTH)
                text_fail(p, s, OTRN_CAPACITY, "nested deeper than TEXT_MAX_DEPTH (%d levels)",
                          TEXT_MAX_DEPTH);
            want[n++] = "<>()[]{}"[kind + 1];
        } else if (kind >= 0 && *s != want[--n]) {
            text_fail(p, s, OTRN_PARSE, "expected '%c' to close what was opened, found '%c'",
                      want[n], *s);
        }
        s = raw_step(p, s);
    } while (n);
    return s;
}

static void raw_copy(TextRead *p, const char *s, const char *end, Buf *out);

// Puts the alias's definition in place of its name; returns the text behind the name.
static const char *raw_splice(TextRead *p, const char *s, Buf *out) {
    const char *save = p->at;
    p->at = s;
    const char *to = alias_end(p, s), *from;
    uint32_t i = alias_find(p);
    from = p->alias.at[i].def;
    const char *behind = p->at;
    p->at = save;
    while (from < to && (*from == ' ' || *from == '\t'))
        from++;
    text_deeper(p);
    size_t had = out->n;
    raw_copy(p, from, to, out);
    text_expand(p, out->n - had);
    p->depth--;
    return behind;
}

static bool raw_is_alias(TextRead *p, const char *s) {
    const char *save = p->at;
    p->at = s;
    bool yes = text_at_alias(p);
    p->at = save;
    return yes;
}

// One space for any run of blanks and comments, none inside brackets at their ends.
static void raw_put(Buf *out, const char *s, size_t n, bool blank_before) {
    char last = out->n ? (char)out->at[out->n - 1] : '<';
    bool inside = strchr("<([{", last) || strchr(">)]}", *s);
    bool arrow = last == '-' && *s == '>'; // "- >" must not become "->"
    if (blank_before && (!inside || arrow))
        buf_put(out, " ", 1);
    buf_put(out, s, n);
}

static void raw_copy(TextRead *p, const char *s, const char *end, Buf *out) {
    bool blank_before = false;
    while (s < end) {
        if ((*s == '#' || *s == '!') && raw_is_alias(p, s)) {
            raw_put(out, s, 0, blank_before);
            s = raw_splice(p, s, out);
            blank_before = false;
            continue;
        }
        const char *e = raw_step(p, s);
        bool comment = *s == '/' && e > s + 1;
        bool blank = *s == ' ' || *s == '\n' || *s == '\t' || *s == '\r' || comment;
        if (!blank)
            raw_put(out, s, (size_t)(e - s), blank_before);
        blank_before = blank;
        s = e;
    }
}

void text_raw_balanced(TextRead *p, Buf *out) {
    char c = text_peek(p);
    if (!c || !strchr("<([{", c))
        text_expected(p, "'<'");
    const char *end = raw_end(p), *nul = memchr(p->at, 0, (size_t)(end - p->at));
    if (nul)
        text_fail(p, nul, OTRN_PARSE, "a NUL byte in the text");
    raw_copy(p, p->at, end, out);
    p->at = end;
}
