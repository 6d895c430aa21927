// SPDX-License-Identifier: Apache-2.0
// xla_text_attr.c — shapes, constants and attributes of HLO text.
//
// What is a number or a list of them in the message is told by xla_attr.c's table; `special` has what is written otherwise. An
// attribute that neither knows is refused: it may change what the instruction means. `passed_over` are those that do not.
#include "read/xla_text.h"

#include <string.h>

// --- values ------------------------------------------------------------------------------------------

// XLA writes strings as C does, octal bytes included.
static const char *hlo_text_string(HloText *t, size_t *n) {
    if (text_peek(&t->p) != '"')
        text_expected(&t->p, "a string");
    const char *s = t->p.at + 1, *end = t->p.end;
    Buf out = {.arena = t->p.arena};
    for (; s < end && *s != '"'; s++) {
        static const char from[] = "nrt", to[] = "\n\r\t";
        int c = *s;
        if (c == '\\' && ++s < end) {
            c = *s;
            if (c >= '0' && c <= '7') {
                for (c = 0; s < end && *s >= '0' && *s <= '7' && c < 32; s++)
                    c = c * 8 + (*s - '0');
                s--;
            } else if (strchr(from, c) && c) {
                c = to[strchr(from, c) - from];
            }
        }
        put_u8(&out, (uint8_t)c);
    }
    if (s >= end)
        text_fail(&t->p, t->p.at, OTRN_PARSE, "this string has no closing quote");
    t->p.at = s + 1;
    *n = out.n;
    return buf_cstr(&out);
}

// A value up to the ',' or the bracket that ends it; what stands in brackets or quotes belongs to it.
void hlo_text_skip(HloText *t) {
    uint32_t open = 0;
    for (text_space(&t->p); t->p.at < t->p.end; t->p.at++) {
        char c = *t->p.at;
        size_t n;
        if (c == '"') {
            hlo_text_string(t, &n);
            t->p.at--;
        } else if (strchr("{[(", c) && c) {
            open++;
        } else if (strchr("}])", c) && c) {
            if (!open)
                return;
            if (!--open && (c == '}' || c == ')')) {
                t->p.at++;
                return;
            }
        } else if (!open && (c == ',' || c == '\n' || c == ' ')) {
            return;
        }
    }
}

static Span raw(HloText *t) {
    text_space(&t->p);
    const char *from = t->p.at;
    hlo_text_skip(t);
    return (Span){from, (size_t)(t->p.at - from)};
}

void hlo_text_ints(HloText *t, uint32_t *base) {
    *base = t->p.ints.n;
    bool list = text_eat(&t->p, '{');
    if (list && text_eat(&t->p, '}'))
        return;
    do
        VEC_PUSH(t->p.arena, &t->p.ints, text_int(&t->p, "a number"));
    while (list && text_eat(&t->p, ','));
    if (list)
        text_need(&t->p, '}');
}

static void put_list(HloText *t, Buf *out, uint32_t field) {
    uint32_t base;
    hlo_text_ints(t, &base);
    pb_put_ints(out, field, t->p.ints.at + base, t->p.ints.n - base);
    t->p.ints.n = base;
}

static bool word_value(HloText *t) { // true, false, 1, 0
    if (text_at_int(&t->p))
        return text_int(&t->p, "a number") != 0;
    if (text_eat_word(&t->p, "true"))
        return true;
    text_need_word(&t->p, "false");
    return false;
}

// --- shapes ------------------------------------------------------------------------------------------

static void dims_read(HloText *t, Buf *out) { // [8,<=16]
    uint32_t base = t->p.ints.n;
    text_need(&t->p, '[');
    while (!text_eat(&t->p, ']')) {
        if (t->p.ints.n > base)
            text_need(&t->p, ',');
        if (text_peek(&t->p) == '<' || text_peek(&t->p) == '?')
            text_fail(&t->p, t->p.at, OTRN_UNSUPPORTED, "a dimension has a size known only at run time");
        VEC_PUSH(t->p.arena, &t->p.ints, text_int(&t->p, "a dimension"));
    }
    pb_put_ints(out, 3, t->p.ints.at + base, t->p.ints.n - base);
    t->p.ints.n = base;
}

static void layout(HloText *t, Buf *out) { // {1,0:T(8,128)}: it follows at once, so that a body's bracket is none
    if (t->p.at >= t->p.end || *t->p.at != '{')
        return;
    Buf m = {.arena = t->p.arena};
    uint32_t base = t->p.ints.n;
    t->p.at++;
    while (text_at_int(&t->p)) {
        VEC_PUSH(t->p.arena, &t->p.ints, text_int(&t->p, "a dimension"));
        text_eat(&t->p, ',');
    }
    if (text_peek(&t->p) == ':')
        while (t->p.at < t->p.end && *t->p.at != '}')
            t->p.at++;
    text_need(&t->p, '}');
    pb_put_ints(&m, 1, t->p.ints.at + base, t->p.ints.n - base);
    t->p.ints.n = base;
    pb_put_bytes(out, 5, m.at, m.n);
}

static int array_shape(HloText *t, Buf *out) {
    char word[24] = {0};
    text_space(&t->p);
    const char *at = t->p.at;
    Span name = text_ident(&t->p, "a shape");
    if (name.n < sizeof word)
        memcpy(word, name.s, name.n);
    bool token = !strcmp(word, "token");
    const XlaKind *kind = token ? NULL : xla_kind(word, 0);
    if (!kind && !token)
        text_fail(&t->p, at, OTRN_UNSUPPORTED, "the element type '%s' of HLO is not known to opentrn", word);
    pb_put_int(out, 2, token ? 17 : kind->number);
    dims_read(t, out);
    layout(t, out);
    return token ? DT_INVALID : kind->dtype;
}

int hlo_text_shape(HloText *t, Buf *out) {
    if (!text_eat(&t->p, '('))
        return array_shape(t, out);
    text_deeper(&t->p);
    pb_put_int(out, 2, 13);
    for (uint32_t n = 0; !text_eat(&t->p, ')'); n++) {
        if (n)
            text_need(&t->p, ',');
        Buf m = {.arena = t->p.arena};
        hlo_text_shape(t, &m);
        pb_put_bytes(out, 4, m.at, m.n);
    }
    t->p.depth--;
    return DT_INVALID;
}

// --- constants ---------------------------------------------------------------------------------------

static bool word_element(HloText *t, int dtype, uint8_t *out) { // nan, inf
    const char *back = t->p.at;
    double sign = 1;
    if (t->p.at < t->p.end && *t->p.at == '-')
        sign = -1, t->p.at++;
    bool inf = text_eat_word(&t->p, "inf"), nan = !inf && text_eat_word(&t->p, "nan");
    if (!inf && !nan) {
        t->p.at = back;
        return false;
    }
    dtype_from_f64(dtype, out, sign * (inf ? __builtin_inf() : __builtin_nan("")));
    return true;
}

static void scalar(HloText *t, int dtype, uint8_t *out) {
    text_space(&t->p);
    if (!dtype_is_float(dtype) || !word_element(t, dtype, out))
        text_scalar(&t->p, dtype, out);
}

static void element(HloText *t, int dtype, uint8_t *out) {
    if (!dtype_is_complex(dtype)) {
        scalar(t, dtype, out);
        return;
    }
    int part = dtype == DT_C64 ? DT_F32 : DT_F64;
    text_need(&t->p, '(');
    scalar(t, part, out);
    text_need(&t->p, ',');
    scalar(t, part, out + dtype_bytes(part));
    text_need(&t->p, ')');
}

static void put_element(HloText *t, int dtype, Buf *out) {
    uint8_t bytes[16] = {0};
    element(t, dtype, bytes);
    if (!xla_kind_varint(dtype)) {
        buf_put(out, bytes, dtype_bytes(dtype));
        return;
    }
    int64_t v = 0;
    memcpy(&v, bytes, dtype_bytes(dtype));
    if (dtype == DT_I32)
        v = (int32_t)v;
    VEC_PUSH(t->p.arena, &t->p.ints, v);
}

void hlo_text_constant(HloText *t, int dtype, Buf *inst) {
    const char *at = t->p.at;
    if (dtype == DT_INVALID)
        text_fail(&t->p, at, OTRN_UNSUPPORTED, "a constant that is no array");
    Buf bytes = {.arena = t->p.arena}, literal = {.arena = t->p.arena};
    uint32_t base = t->p.ints.n;
    while (!text_eat(&t->p, ')')) {
        while (text_eat(&t->p, '{') || text_eat(&t->p, '}') || text_eat(&t->p, ','))
            continue;
        if (text_peek(&t->p) == '.') {
            ctx_hint(t->p.ctx, "dump it whole: XLA_FLAGS=--xla_dump_hlo_as_proto, or as_hlo_text(print_large_constants=True)");
            text_fail(&t->p, at, OTRN_UNSUPPORTED, "this constant was left out of the text: {...}");
        }
        if (text_peek(&t->p) != ')')
            put_element(t, dtype, &bytes);
    }
    const XlaKind *kind = xla_kind(NULL, dtype);
    if (xla_kind_varint(dtype))
        pb_put_ints(&literal, kind->field, t->p.ints.at + base, t->p.ints.n - base);
    else
        pb_put_bytes(&literal, kind->field, bytes.at, bytes.n);
    t->p.ints.n = base;
    pb_put_bytes(inst, 8, literal.at, literal.n);
}

// --- attributes of their own form --------------------------------------------------------------------

static Buf *nest(HloText *t, HloTextInst *i, uint32_t field) {
    uint32_t k = 0;
    while (k < i->nnests && i->nests[k].field != field)
        k++;
    if (k == HLO_TEXT_NESTS)
        text_fail(&t->p, t->p.at, OTRN_PARSE, "an HLO instruction with attributes of several others");
    if (k == i->nnests)
        i->nests[i->nnests++] = (HloNest){field, {.arena = t->p.arena}};
    return &i->nests[k].m;
}

static void a_called(HloText *t, HloTextInst *i) {
    bool list = text_eat(&t->p, '{');
    while (!list || !text_eat(&t->p, '}')) {
        VEC_PUSH(t->p.arena, &i->called, (int64_t)hlo_text_comp(t));
        if (!list)
            break;
        text_eat(&t->p, ',');
    }
}

static void a_body(HloText *t, HloTextInst *i) { // the message has the body of a loop before its condition
    a_called(t, i);
    for (uint32_t k = i->called.n; k-- > 1;) {
        int64_t other = i->called.at[k];
        i->called.at[k] = i->called.at[k - 1];
        i->called.at[k - 1] = other;
    }
}

// Numbers joined by a letter: 3x2, or 1_1x0_0. They are put at these fields of a message for each.
typedef struct Joined {
    int64_t v[OTRN_MAX_RANK][3];
    uint32_t n;
} Joined;

static Joined joined(HloText *t) {
    Joined j = {0};
    do {
        if (j.n == OTRN_MAX_RANK)
            text_fail(&t->p, t->p.at, OTRN_CAPACITY, "more than %d dimensions", OTRN_MAX_RANK);
        int k = 0;
        do {
            bool minus = text_eat(&t->p, '-');
            int64_t v = 0;
            if (!text_is_digit(text_peek(&t->p)))
                text_expected(&t->p, "a number");
            for (; t->p.at < t->p.end && text_is_digit(*t->p.at); t->p.at++)
                if ((v = v * 10 + (*t->p.at - '0')) > INT32_MAX)
                    text_fail(&t->p, t->p.at, OTRN_PARSE, "a number is too large");
            j.v[j.n][k++] = minus ? -v : v;
        } while (k < 3 && t->p.at < t->p.end && *t->p.at == '_' && t->p.at++);
        j.n++;
    } while (t->p.at < t->p.end && *t->p.at == 'x' && t->p.at++);
    return j;
}

static void a_window(HloText *t, HloTextInst *i) { // {size=3x2 stride=1x2 pad=1_1x0_0}
    static const struct {
        const char *word;
        uint32_t field;
    } keys[] = {{"size", 1}, {"stride", 2}, {"pad", 3}, {"rhs_dilate", 5}, {"lhs_dilate", 6}, {"rhs_reversal", 7}};
    Buf dims[OTRN_MAX_RANK] = {0}, all = {.arena = t->p.arena};
    uint32_t rank = 0;
    text_need(&t->p, '{');
    while (!text_eat(&t->p, '}')) {
        const char *at = t->p.at;
        Span key = text_ident(&t->p, "a part of the window");
        text_need(&t->p, '=');
        size_t k = 0;
        while (k < sizeof keys / sizeof *keys && !span_is(key, keys[k].word))
            k++;
        if (k == sizeof keys / sizeof *keys)
            text_fail(&t->p, at, OTRN_UNSUPPORTED, "'%.*s' of a window is not known", (int)(key.n < 40 ? key.n : 40), key.s);
        Joined j = joined(t);
        rank = j.n > rank ? j.n : rank;
        for (uint32_t d = 0; d < j.n; d++) {
            dims[d].arena = t->p.arena;
            pb_put_int(&dims[d], keys[k].field, j.v[d][0]);
            if (keys[k].field == 3)
                pb_put_int(&dims[d], 4, j.v[d][1]);
        }
    }
    for (uint32_t d = 0; d < rank; d++)
        pb_put_bytes(&all, 1, dims[d].at, dims[d].n);
    pb_put_bytes(&i->m, 15, all.at, all.n);
}

static void a_padding(HloText *t, HloTextInst *i) { // 0_1x0_0_1
    Joined j = joined(t);
    Buf all = {.arena = t->p.arena};
    for (uint32_t d = 0; d < j.n; d++) {
        Buf m = {.arena = t->p.arena};
        for (uint32_t k = 0; k < 3; k++)
            pb_put_int(&m, k + 1, j.v[d][k]);
        pb_put_bytes(&all, 1, m.at, m.n);
    }
    pb_put_bytes(&i->m, 21, all.at, all.n);
}

static void a_slice(HloText *t, HloTextInst *i) { // {[0:4], [0:8:2]}
    text_need(&t->p, '{');
    while (!text_eat(&t->p, '}')) {
        Buf m = {.arena = t->p.arena};
        text_need(&t->p, '[');
        for (uint32_t k = 1; k <= 3; k++) {
            pb_put_int(&m, k, text_int(&t->p, "a bound of the slice"));
            if (k == 3 || !text_eat(&t->p, ':'))
                break;
        }
        text_need(&t->p, ']');
        text_eat(&t->p, ',');
        pb_put_bytes(&i->m, 17, m.at, m.n);
    }
}

// b01f_01io->b01f: the letter of each dimension of image, filter and result.
static void a_labels(HloText *t, HloTextInst *i) {
    static const struct {
        char part[2]; // two letters of their own
        uint32_t field[2], spatial;
    } parts[] = {{"bf", {7, 8}, 11}, {"io", {3, 4}, 6}, {"bf", {9, 10}, 12}};
    Buf *m = nest(t, i, 16);
    text_space(&t->p);
    for (int k = 0; k < 3; k++) {
        int64_t spatial[OTRN_MAX_RANK];
        uint32_t n = 0;
        const char *from = t->p.at;
        for (; t->p.at < t->p.end && text_is_alnum(*t->p.at); t->p.at++) {
            char c = *t->p.at;
            if (c == parts[k].part[0] || c == parts[k].part[1])
                pb_put_int(m, parts[k].field[c == parts[k].part[1]], t->p.at - from);
            else if (c >= '0' && c < '0' + OTRN_MAX_RANK && t->p.at - from <= OTRN_MAX_RANK)
                spatial[c - '0'] = t->p.at - from, n++;
            else
                text_expected(&t->p, "labels of dimensions: b01f_01io->b01f");
        }
        for (uint32_t d = 0; d < n; d++)
            if (!memchr(from, '0' + (int)d, (size_t)(t->p.at - from)))
                text_fail(&t->p, from, OTRN_PARSE, "the labels of spatial dimensions are not numbered in order");
        pb_put_ints(m, parts[k].spatial, spatial, n);
        if (k == 0)
            text_need(&t->p, '_');
        if (k == 1 && !text_eat_arrow(&t->p))
            text_expected(&t->p, "'->'");
    }
}

static void upper(Span s, char *out, size_t size) {
    for (size_t k = 0; k < s.n && k < size - 1; k++)
        out[k] = s.s[k] >= 'a' && s.s[k] <= 'z' ? (char)(s.s[k] - 32) : s.s[k];
}

// The number of a word such as rng_philox, PHILOX or no_transpose.
static int64_t enum_value(HloText *t, HloAttrKey key) {
    char word[40] = {0};
    text_space(&t->p);
    const char *at = t->p.at;
    upper(hlo_text_name(t, "a word"), word, sizeof word);
    const char *bare = !strncmp(word, "RNG_", 4) ? word + 4 : word;
    int64_t v = hlo_enum_parse(key, bare, strlen(bare));
    if (v < 0)
        text_fail(&t->p, at, OTRN_PARSE, "'%s' is no value of %s", word, hlo_attr_rows[key].name);
    return v;
}

static void a_precision(HloText *t, HloTextInst *i) {
    Buf *m = nest(t, i, 51);
    uint32_t base = t->p.ints.n;
    text_need(&t->p, '{');
    while (!text_eat(&t->p, '}')) {
        VEC_PUSH(t->p.arena, &t->p.ints, enum_value(t, AK_PRECISION_CONFIG));
        text_eat(&t->p, ',');
    }
    pb_put_ints(m, 1, t->p.ints.at + base, t->p.ints.n - base);
    t->p.ints.n = base;
}

static void a_algorithm(HloText *t, HloTextInst *i) { // of a dot: the reader says what it thinks of it
    Span word = raw(t);
    if (!span_is(word, "alg_unset"))
        pb_put_int(nest(t, i, 51), 2, 1);
}

static void a_epsilon(HloText *t, HloTextInst *i) {
    uint8_t key[2] = {0xc5, 1}, bits[4]; // field 24, four bytes
    scalar(t, DT_F32, bits);
    buf_put(&i->m, key, sizeof key);
    buf_put(&i->m, bits, sizeof bits);
}

// [2,2]<=[4] or [2,2]<=[2,2]T(1,0): rows of devices counted up, after a transpose.
static void iota_groups(HloText *t, HloTextInst *i) {
    uint32_t n[3], base[3];
    for (int k = 0; k < 3; k++) {
        base[k] = t->p.ints.n;
        if (k == 1 && !(text_eat(&t->p, '<') && text_eat(&t->p, '=')))
            text_expected(&t->p, "'<='");
        if (k == 2 && !text_eat(&t->p, 'T'))
            break;
        text_need(&t->p, k == 2 ? '(' : '[');
        do
            VEC_PUSH(t->p.arena, &t->p.ints, text_int(&t->p, "a number of devices"));
        while (text_eat(&t->p, ','));
        text_need(&t->p, k == 2 ? ')' : ']');
        n[k] = t->p.ints.n - base[k];
    }
    n[2] = t->p.ints.n - base[2];
    const int64_t *v = t->p.ints.at;
    int64_t want;
    if (n[0] != 2 || v[base[0]] < 1 || v[base[0] + 1] < 1 || __builtin_mul_overflow(v[base[0]], v[base[0] + 1], &want))
        want = -1;
    const int64_t *ids = xla_iota(t->p.arena, v + base[1], n[1], v + base[2], n[2], want);
    if (!ids)
        text_fail(&t->p, t->p.at, OTRN_PARSE, "these groups of devices do not go together");
    for (int64_t g = 0; g < v[base[0]]; g++) {
        Buf m = {.arena = t->p.arena};
        pb_put_ints(&m, 1, ids + g * v[base[0] + 1], (uint32_t)v[base[0] + 1]);
        pb_put_bytes(&i->m, 49, m.at, m.n);
    }
    t->p.ints.n = base[0];
}

static void a_groups(HloText *t, HloTextInst *i) { // {{0,1},{2,3}}
    if (text_peek(&t->p) == '[') {
        iota_groups(t, i);
        return;
    }
    text_need(&t->p, '{');
    while (!text_eat(&t->p, '}')) {
        Buf m = {.arena = t->p.arena};
        put_list(t, &m, 1);
        pb_put_bytes(&i->m, 49, m.at, m.n);
        text_eat(&t->p, ',');
    }
}

static void a_pairs(HloText *t, HloTextInst *i) {
    text_need(&t->p, '{');
    while (!text_eat(&t->p, '}')) {
        Buf m = {.arena = t->p.arena};
        uint32_t base;
        hlo_text_ints(t, &base);
        if (t->p.ints.n != base + 2)
            text_fail(&t->p, t->p.at, OTRN_PARSE, "expected pairs of devices");
        for (uint32_t k = 0; k < 2; k++)
            pb_put_int(&m, k + 1, t->p.ints.at[base + k]);
        t->p.ints.n = base;
        pb_put_bytes(&i->m, 52, m.at, m.n);
        text_eat(&t->p, ',');
    }
}

static void a_metadata(HloText *t, HloTextInst *i) { // {op_name="f/add" source_file="a.py" source_line=3 stack_frame_id=4}
    static const struct {
        const char *word;
        uint32_t field;
        bool text;
    } keys[] = {{"op_type", 1, true}, {"op_name", 2, true}, {"source_file", 3, true}, {"source_line", 4, false}, {"stack_frame_id", 15, false}};
    Buf m = {.arena = t->p.arena};
    text_need(&t->p, '{');
    while (!text_eat(&t->p, '}')) {
        Span key = text_ident(&t->p, "a part of the metadata");
        text_need(&t->p, '=');
        size_t k = 0, n;
        while (k < sizeof keys / sizeof *keys && !span_is(key, keys[k].word))
            k++;
        if (k == sizeof keys / sizeof *keys) {
            hlo_text_skip(t);
        } else if (keys[k].text) {
            const char *s = hlo_text_string(t, &n);
            pb_put_bytes(&m, keys[k].field, s, n);
            i->placed |= keys[k].field == 3 && n;
        } else {
            pb_put_int(&m, keys[k].field, text_int(&t->p, "a number"));
            i->placed |= keys[k].field == 15;
        }
        text_eat(&t->p, ',');
    }
    pb_put_bytes(&i->m, 7, m.at, m.n);
}

static void a_config(HloText *t, HloTextInst *i) {
    size_t n;
    if (text_peek(&t->p) == '"') {
        const char *s = hlo_text_string(t, &n);
        pb_put_bytes(&i->m, 43, s, n);
    } else {
        Span s = raw(t);
        pb_put_bytes(&i->m, 43, s.s, s.n);
    }
}

static void a_sharding(HloText *t, HloTextInst *i) {
    Span s = raw(t);
    pb_put_bytes(&i->m, XLA_SHARDING_TEXT, s.s, s.n);
}

void hlo_text_frontend(HloText *t, Buf *out) { // {xla.sdy.meshes={mesh = #sdy.mesh<["x"=2]>}, inlineable="false"}
    text_need(&t->p, '{');
    while (!text_eat(&t->p, '}')) {
        Buf m = {.arena = t->p.arena};
        text_space(&t->p);
        Span key = hlo_text_name(t, "the name of an attribute");
        text_need(&t->p, '=');
        bool quoted = text_peek(&t->p) == '"';
        size_t n = 0;
        const char *s = quoted ? hlo_text_string(t, &n) : NULL;
        Span value = quoted ? (Span){s, n} : raw(t);
        pb_put_bytes(&m, 1, key.s, key.n);
        pb_put_bytes(&m, 2, value.s, value.n);
        pb_put_bytes(out, 1, m.at, m.n);
        text_eat(&t->p, ',');
    }
}

static void a_frontend(HloText *t, HloTextInst *i) { hlo_text_frontend(t, nest(t, i, 68)); }

static void a_target(HloText *t, HloTextInst *i) {
    size_t n;
    const char *s = hlo_text_string(t, &n);
    pb_put_bytes(&i->m, 28, s, n);
}

static void a_version(HloText *t, HloTextInst *i) { pb_put_int(&i->m, 77, enum_value(t, AK_API_VERSION)); }

static void put_word(HloText *t, HloTextInst *i, uint32_t field) {
    Span s = raw(t);
    pb_put_bytes(&i->m, field, s.s, s.n);
}

static void a_direction(HloText *t, HloTextInst *i) { put_word(t, i, 63); }
static void a_type(HloText *t, HloTextInst *i) { put_word(t, i, 72); }
static void put_number(HloText *t, HloTextInst *i, uint32_t field) { pb_put_int(&i->m, field, text_int(&t->p, "a number")); }
static void a_index(HloText *t, HloTextInst *i) { put_number(t, i, 13); }
static void a_channel(HloText *t, HloTextInst *i) { put_number(t, i, 26); }
static void a_features(HloText *t, HloTextInst *i) { put_number(t, i, 50); }
static void a_batches(HloText *t, HloTextInst *i) { put_number(t, i, 58); }
static void passed_over(HloText *t, HloTextInst *i) { (void)i, hlo_text_skip(t); }

static const struct {
    const char *name;
    void (*read)(HloText *t, HloTextInst *i);
} special[] = {
    {"to_apply", a_called}, {"calls", a_called}, {"condition", a_called}, {"body", a_body}, {"select", a_called}, {"scatter", a_called},
    {"branch_computations", a_called}, {"true_computation", a_called}, {"false_computation", a_called}, {"called_computations", a_called},
    {"window", a_window}, {"dim_labels", a_labels}, {"slice", a_slice}, {"padding", a_padding}, {"operand_precision", a_precision},
    {"algorithm", a_algorithm}, {"epsilon", a_epsilon}, {"replica_groups", a_groups}, {"source_target_pairs", a_pairs},
    {"metadata", a_metadata}, {"sharding", a_sharding}, {"custom_call_target", a_target}, {"backend_config", a_config}, {"opaque", a_config},
    {"api_version", a_version}, {"direction", a_direction}, {"type", a_type}, {"index", a_index}, {"channel_id", a_channel},
    {"feature_group_count", a_features}, {"batch_group_count", a_batches}, {"frontend_attributes", a_frontend},
    // what says nothing of the values
    {"control-predecessors", passed_over}, {"parameter_replication", passed_over}, {"kind", passed_over},
    {"constrain_layout", passed_over}, {"output_to_operand_aliasing", passed_over}, {"operand_layout_constraints", passed_over},
    {"origin", passed_over}, {"original_value", passed_over}, {"statistics", passed_over}, {"schedule", passed_over},
    {"is_host_transfer", passed_over}, {"outer_dimension_partitions", passed_over}, {"result_accuracy", passed_over},
    {"custom_call_has_side_effect", passed_over}, {"is_stable", passed_over}, {"indices_are_sorted", passed_over}, {"unique_indices", passed_over},
    {"use_global_device_ids", passed_over}, {"metadata_hash", passed_over}, {"is_composite", passed_over}, {"async_execution_thread", passed_over},
};

static void row_value(HloText *t, HloTextInst *i, const XlaRow *row) {
    Buf *out = row->inside ? nest(t, i, row->field) : &i->m;
    uint32_t field = row->inside ? row->inside : row->field;
    if (row->how == XLA_ALL || row->how == XLA_FIRST)
        put_list(t, out, field);
    else if (row->how == XLA_FLAG)
        pb_put_int(out, field, word_value(t));
    else if (row->how == XLA_ENUM)
        pb_put_int(out, field, enum_value(t, (HloAttrKey)row->key));
    else
        pb_put_int(out, field, text_int(&t->p, "a number"));
}

void hlo_text_attr(HloText *t, HloTextInst *i) {
    char name[48] = {0};
    text_space(&t->p);
    const char *at = t->p.at;
    Span s = hlo_text_name(t, "an attribute");
    memcpy(name, s.s, s.n < sizeof name ? s.n : sizeof name - 1);
    text_need(&t->p, '=');
    const XlaRow *row = i->code ? xla_row(i->code, name) : NULL;
    if (row) {
        row_value(t, i, row);
        return;
    }
    for (size_t k = 0; k < sizeof special / sizeof *special; k++)
        if (!strcmp(special[k].name, name)) {
            special[k].read(t, i);
            return;
        }
    text_fail(&t->p, at, OTRN_UNSUPPORTED, "the attribute '%s' of the HLO instruction '%s' is not known to opentrn", name, i->opcode);
}
