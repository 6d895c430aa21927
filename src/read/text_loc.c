// SPDX-License-Identifier: Apache-2.0
// text_loc.c — loc(…): where in the user's program an op comes from.
//
// An op without location gets the line and column of the text itself as its own; one whose location
// names no file gets them around that, so that every message can point somewhere.
#include "read/text.h"

#include <assert.h>

static LocId text_loc_inner(TextRead *p);

static bool has_file(const TextRead *p, LocId loc) {
    return loc && loc < p->loc_has_file.n && p->loc_has_file.at[loc];
}

static LocId loc_make(TextRead *p, const HloLoc *l) {
    LocId id = hlo_loc(p->h, l);
    while (p->loc_has_file.n <= id)
        VEC_PUSH(p->arena, &p->loc_has_file, 0);
    p->loc_has_file.at[id] = l->kind == HL_FILE || has_file(p, l->a) || has_file(p, l->b);
    return id;
}

TextPos text_pos(TextRead *p, const char *at) {
    assert(at >= p->line_at);
    for (const char *nl; (nl = memchr(p->line_at, '\n', (size_t)(at - p->line_at)));) {
        p->line++;
        p->line_at = nl + 1;
    }
    return (TextPos){p->line, (uint32_t)(at - p->line_at) + 1};
}

LocId text_loc_here(TextRead *p, TextPos pos) {
    return loc_make(
        p, &(HloLoc){.kind = HL_FILE, .str = p->file_str, .line = pos.line, .col = pos.col});
}

LocId text_loc_or_here(TextRead *p, LocId loc, TextPos pos) {
    if (has_file(p, loc))
        return loc;
    if (!loc)
        return text_loc_here(p, pos);
    HloLoc here = {.kind = HL_HERE, .str = p->file_str, .line = pos.line, .col = pos.col};
    here.a = p->h->locs.at[loc].kind == HL_UNKNOWN ? 0 : loc;
    return loc_make(p, &here);
}

static uint32_t loc_number(TextRead *p) {
    const char *at = p->at;
    int64_t v = text_int(p, "a line or column number");
    if (v < 0 || v > UINT32_MAX)
        text_fail(p, at, OTRN_PARSE, "a line or column number out of range");
    return (uint32_t)v;
}

// "file":line:col, with an optional range whose end we do not keep; or "name", "name"(child).
static LocId loc_string(TextRead *p) {
    char *s = text_name_string(p);
    HloLoc l = {.kind = HL_NAME, .str = hlo_str(p->h, s, strlen(s))};
    if (text_eat(p, ':')) {
        l.kind = HL_FILE;
        l.line = loc_number(p);
        text_need(p, ':');
        l.col = loc_number(p);
        if (text_eat_word(p, "to")) {
            if (!text_eat(p, ':')) {
                loc_number(p);
                text_need(p, ':');
            }
            loc_number(p);
        }
    } else if (text_eat(p, '(')) {
        l.a = text_loc_inner(p);
        text_need(p, ')');
    }
    return loc_make(p, &l);
}

static LocId loc_fused(TextRead *p) {
    if (text_peek(p) == '<') { // metadata is not kept
        Buf dropped = {.arena = p->arena};
        text_raw_balanced(p, &dropped);
    }
    text_need(p, '[');
    uint32_t base = p->vals.n;
    if (text_peek(p) != ']') {
        do {
            LocId part = text_loc_inner(p);
            VEC_PUSH(p->arena, &p->vals, part);
        } while (text_eat(p, ','));
    }
    text_need(p, ']');
    LocId list = 0;
    while (p->vals.n > base)
        list = loc_make(p, &(HloLoc){.kind = HL_FUSED, .a = p->vals.at[--p->vals.n], .b = list});
    return list ? list : loc_make(p, &(HloLoc){.kind = HL_UNKNOWN});
}

// what stands inside loc( )
static LocId text_loc_inner(TextRead *p) {
    text_deeper(p);
    LocId loc;
    char c = text_peek(p);
    if (c == '#') {
        loc = text_alias_loc(p);
    } else if (c == '"') {
        loc = loc_string(p);
    } else if (text_eat_word(p, "unknown")) {
        loc = loc_make(p, &(HloLoc){.kind = HL_UNKNOWN});
    } else if (text_eat_word(p, "callsite")) {
        HloLoc l = {.kind = HL_CALL};
        text_need(p, '(');
        l.a = text_loc_inner(p);
        text_need_word(p, "at");
        l.b = text_loc_inner(p);
        text_need(p, ')');
        loc = loc_make(p, &l);
    } else if (text_eat_word(p, "fused")) {
        loc = loc_fused(p);
    } else if (text_eat_word(p, "loc")) { // #a = loc(loc("x")): parentheses may repeat
        text_need(p, '(');
        loc = text_loc_inner(p);
        text_need(p, ')');
    } else {
        text_expected(p, "a location");
    }
    p->depth--;
    return loc;
}

LocId text_loc_trailing(TextRead *p) {
    if (!text_at_word(p, "loc"))
        return 0;
    p->at += 3;
    text_need(p, '(');
    LocId loc = text_loc_inner(p);
    text_need(p, ')');
    return loc;
}
