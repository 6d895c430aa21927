// SPDX-License-Identifier: Apache-2.0
// text_form.c — the pretty forms of ops.
//
// Most read as a comma list of operands and `word = value` items, then { attributes }, then types;
// the table below says which slot each word fills. The rest have a routine each.
#include "read/text.h"
#include "read/read.h"

// --- the common form -----------------------------------------------------------------------------

static const struct {
    uint16_t code;
    uint8_t key;
    const char *word;
} words[] = {
    {HLO_IOTA, AK_IOTA_DIMENSION, "dim"},
    {HLO_DYNAMIC_IOTA, AK_IOTA_DIMENSION, "dim"},
    {HLO_GET_DIMENSION_SIZE, AK_DIMENSION, "dim"},
    {HLO_SET_DIMENSION_SIZE, AK_DIMENSION, "dim"},
    {HLO_CONCATENATE, AK_DIMENSION, "dim"},
    {HLO_BROADCAST_IN_DIM, AK_BROADCAST_DIMENSIONS, "dims"},
    {HLO_DYNAMIC_BROADCAST_IN_DIM, AK_BROADCAST_DIMENSIONS, "dims"},
    {HLO_TRANSPOSE, AK_PERMUTATION, "dims"},
    {HLO_REVERSE, AK_DIMENSIONS, "dims"},
    {HLO_BROADCAST, AK_BROADCAST_SIZES, "sizes"},
    {HLO_DYNAMIC_SLICE, AK_SLICE_SIZES, "sizes"},
    {HLO_PAD, AK_EDGE_PADDING_LOW, "low"},
    {HLO_PAD, AK_EDGE_PADDING_HIGH, "high"},
    {HLO_PAD, AK_INTERIOR_PADDING, "interior"},
    {HLO_FFT, AK_FFT_TYPE, "type"},
    {HLO_FFT, AK_FFT_LENGTH, "length"},
    {HLO_CHOLESKY, AK_LOWER, "lower"},
    {HLO_RNG, AK_RNG_DISTRIBUTION, "distribution"},
    {HLO_RNG_BIT_GENERATOR, AK_RNG_ALGORITHM, "algorithm"},
    {HLO_EINSUM, AK_EINSUM_CONFIG, "config"},
    {HLO_UNARY_EINSUM, AK_EINSUM_CONFIG, "config"},
    {HLO_DOT, AK_PRECISION_CONFIG, "precision"},
    {HLO_DOT_GENERAL, AK_PRECISION_CONFIG, "precision"},
    {HLO_CHLO_TOP_K, AK_K, "k"},
    {HLO_CHLO_TOP_K, AK_LARGEST, "largest"},
    {HLO_CHECK_EXPECT_ALMOST_EQ, AK_TOLERANCE, "tolerance"},
    {HLO_CHECK_EXPECT_ALMOST_EQ_CONST, AK_TOLERANCE, "tolerance"},
    {HLO_CHECK_EXPECT_CLOSE, AK_MAX_ULP_DIFFERENCE, "max_ulp_difference"},
    {HLO_CHECK_EXPECT_CLOSE, AK_MIN_ULP_DIFFERENCE, "min_ulp_difference"},
    {HLO_INTERPRETER_PROBE, AK_PROBE_ID, "probe_id"},
};

static HloAttrKey word_key(HloOpcode code, Span word) {
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].code == code && span_is(word, words[i].word))
            return (HloAttrKey)words[i].key;
    return AK_NONE;
}

// format = e8m10
static void item_format(TextRead *p, TextOp *o) {
    text_space(p);
    const char *at = p->at;
    Span f = text_ident(p, "a float format such as e8m10");
    int64_t v[2] = {0, 0};
    int part = -1;
    for (size_t i = 0; i < f.n; i++) {
        if (part < 1 && f.s[i] == "em"[part + 1])
            part++;
        else if (part >= 0 && text_is_digit(f.s[i]) && v[part] < 1000000)
            v[part] = v[part] * 10 + (f.s[i] - '0');
        else
            part = 9;
        if (part == 9)
            break;
    }
    if (part != 1)
        text_fail(p, at, OTRN_PARSE, "expected a float format such as e8m10");
    text_slot_set(p, o->id, AK_EXPONENT_BITS, (HloAttr){.kind = HA_INT, .i = v[0]});
    text_slot_set(p, o->id, AK_MANTISSA_BITS, (HloAttr){.kind = HA_INT, .i = v[1]});
}

// [0] x [1]
static void item_pair(TextRead *p, TextOp *o, HloAttrKey lhs, HloAttrKey rhs) {
    text_slot_word(p, o->id, lhs);
    text_need(p, 'x');
    text_slot_word(p, o->id, rhs);
}

// `word = value`; the op exists by now.
static void item_word(TextRead *p, TextOp *o) {
    text_space(p);
    const char *at = p->at;
    Span word = text_ident(p, "a keyword");
    HloAttrKey key = word_key(o->code, word);
    bool dot = o->code == HLO_DOT_GENERAL;
    bool format = o->code == HLO_REDUCE_PRECISION && span_is(word, "format");
    bool batching = dot && span_is(word, "batching_dims");
    bool contracting = dot && span_is(word, "contracting_dims");
    bool algorithm = dot && span_is(word, "algorithm");
    if (!key && !format && !batching && !contracting && !algorithm)
        text_fail(p, at, OTRN_PARSE, "'%.*s' is not expected here in %s.%s", (int)word.n, word.s,
                  hlo_dialect_names[hlo_op_rows[o->code].dialect], hlo_op_rows[o->code].name);
    text_need(p, '=');
    if (format)
        item_format(p, o);
    else if (batching)
        item_pair(p, o, AK_LHS_BATCHING_DIMENSIONS, AK_RHS_BATCHING_DIMENSIONS);
    else if (contracting)
        item_pair(p, o, AK_LHS_CONTRACTING_DIMENSIONS, AK_RHS_CONTRACTING_DIMENSIONS);
    else if (algorithm)
        text_slot_algorithm(p, o->id);
    else
        text_slot_word(p, o->id, key);
}

void text_operands(TextRead *p) {
    while (text_peek(p) == '%') {
        ValueId v = text_operand(p);
        VEC_PUSH(p->arena, &p->vals, v);
        const char *comma = p->at;
        if (!text_eat(p, ','))
            return;
        if (text_peek(p) != '%') { // the comma belongs to an item
            p->at = comma;
            return;
        }
    }
}

static void form_common(TextRead *p, TextOp *o) {
    uint32_t base = p->vals.n;
    bool parens = o->code == HLO_CHLO_TOP_K && text_eat(p, '(');
    text_operands(p);
    bool first = p->vals.n == base;
    text_op_make(p, o, base);
    if (o->code == HLO_DOT_GENERAL) { // left out when empty
        text_slot_set(p, o->id, AK_LHS_BATCHING_DIMENSIONS, (HloAttr){.kind = HA_INTS});
        text_slot_set(p, o->id, AK_RHS_BATCHING_DIMENSIONS, (HloAttr){.kind = HA_INTS});
        text_slot_set(p, o->id, AK_LHS_CONTRACTING_DIMENSIONS, (HloAttr){.kind = HA_INTS});
        text_slot_set(p, o->id, AK_RHS_CONTRACTING_DIMENSIONS, (HloAttr){.kind = HA_INTS});
    }
    if (first && o->code == HLO_IOTA) // an item without an operand in front
        item_word(p, o);
    while (text_eat(p, ','))
        item_word(p, o);
    if (parens)
        text_need(p, ')');
    text_op_dict(p, o);
    text_op_types(p, o);
}

// --- single forms --------------------------------------------------------------------------------

// stablehlo.constant {attrs} dense<…> : T, or () <{value = …}> {attrs} : () -> T
static void form_constant(TextRead *p, TextOp *o) {
    text_op_make(p, o, p->vals.n);
    if (text_eat(p, '(')) {
        text_need(p, ')');
        if (text_eat(p, '<')) {
            text_op_dict(p, o);
            text_need(p, '>');
        }
        text_op_dict(p, o);
        text_op_types(p, o);
        return;
    }
    text_op_dict(p, o);
    text_slot_value(p, o->id, AK_VALUE);
    TypeId t = hlo_attr_slot(p->h, o->id, AK_VALUE)->type;
    text_op_results(p, o, 1, &t);
}

// check.expect_eq_const %x, dense<…> : T, with items before or behind the constant
static void form_check_const(TextRead *p, TextOp *o) {
    uint32_t base = p->vals.n;
    text_operands(p);
    text_op_make(p, o, base);
    while (text_eat(p, ',')) {
        if (text_at_word(p, "dense") || text_at_word(p, "dense_resource"))
            text_slot_value(p, o->id, AK_VALUE);
        else
            item_word(p, o);
    }
    text_op_dict(p, o);
    TypeId t = hlo_attr_slot(p->h, o->id, AK_VALUE)->type;
    if (!t)
        text_expected(p, "a dense constant");
    text_op_check_operands(p, o, 1, &t);
    text_op_results(p, o, 0, NULL);
}

// compare LT, %a, %b, FLOAT : (T, T) -> U
static void form_compare(TextRead *p, TextOp *o) {
    uint32_t base = p->vals.n;
    text_space(p);
    const char *direction = p->at;
    text_ident(p, "a comparison direction");
    text_need(p, ',');
    text_operands(p);
    text_op_make(p, o, base);
    const char *behind = p->at;
    p->at = direction;
    text_slot_word(p, o->id, AK_COMPARISON_DIRECTION);
    p->at = behind;
    if (text_eat(p, ','))
        text_slot_word(p, o->id, AK_COMPARE_TYPE);
    text_op_dict(p, o);
    text_op_types(p, o);
}

// slice %x [0:4, 1:8:2] : (T) -> U
static void form_slice(TextRead *p, TextOp *o) {
    uint32_t base = p->vals.n;
    text_operands(p);
    text_op_make(p, o, base);
    uint32_t ints = p->ints.n, n = 0;
    text_need(p, '[');
    if (text_peek(p) != ']') {
        do {
            int64_t v[3] = {0, 0, 1};
            v[0] = text_int(p, "a start index");
            text_need(p, ':');
            v[1] = text_int(p, "a limit index");
            if (text_eat(p, ':'))
                v[2] = text_int(p, "a stride");
            for (int i = 0; i < 3; i++)
                VEC_PUSH(p->arena, &p->ints, v[i]);
            n++;
        } while (text_eat(p, ','));
    }
    text_need(p, ']');
    static const uint8_t keys[3] = {AK_START_INDICES, AK_LIMIT_INDICES, AK_STRIDES};
    for (int k = 0; k < 3; k++) {
        int64_t *list = ARENA_NEWN(p->arena, int64_t, n);
        for (uint32_t i = 0; i < n; i++)
            list[i] = p->ints.at[ints + 3 * i + (uint32_t)k];
        text_slot_set(p, o->id, keys[k], (HloAttr){.kind = HA_INTS, .n = n, .ints = list});
    }
    p->ints.n = ints;
    text_op_dict(p, o);
    text_op_types(p, o);
}

// get_tuple_element %t[0] : (tuple<…>) -> T
static void form_tuple_element(TextRead *p, TextOp *o) {
    uint32_t base = p->vals.n;
    text_operands(p);
    text_op_make(p, o, base);
    text_need(p, '[');
    int64_t v = text_int(p, "an index");
    text_slot_set(p, o->id, AK_INDEX, (HloAttr){.kind = HA_INT, .i = v});
    text_need(p, ']');
    text_op_dict(p, o);
    text_op_types(p, o);
}

void text_operands_in_parens(TextRead *p) {
    text_need(p, '(');
    text_operands(p);
    text_need(p, ')');
}

// call @f(%a) : …     custom_call @target(%a) {…} : …
static void form_call(TextRead *p, TextOp *o) {
    uint32_t base = p->vals.n;
    const char *name = text_symbol(p);
    text_operands_in_parens(p);
    text_op_make(p, o, base);
    HloAttr a = {.kind = HA_SYM, .n = (uint32_t)strlen(name), .s = name};
    if (o->code == HLO_CUSTOM_CALL)
        a.kind = HA_STR;
    text_slot_set(p, o->id, o->code == HLO_CALL ? AK_CALLEE : AK_CALL_TARGET_NAME, a);
    text_op_dict(p, o);
    text_op_types(p, o);
}

// composite "ns.name" %a, %b ({regions}) {…} : …
static void form_composite(TextRead *p, TextOp *o) {
    uint32_t base = p->vals.n;
    HloAttr name = {.kind = HA_STR};
    name.s = text_string(p, &name.n);
    text_operands(p);
    text_op_make(p, o, base);
    text_slot_set(p, o->id, AK_NAME, name);
    if (text_eat(p, '(')) {
        do {
            text_region(p, o->id);
        } while (text_eat(p, ','));
        text_need(p, ')');
    }
    text_op_dict(p, o);
    text_op_types(p, o);
}

// scan(%a, %b) inits (%c) dimension=0 attributes {…} {region} : …
static void form_scan(TextRead *p, TextOp *o) {
    uint32_t base = p->vals.n;
    text_operands_in_parens(p);
    int64_t sizes[2] = {p->vals.n - base};
    text_need_word(p, "inits");
    text_operands_in_parens(p);
    sizes[1] = p->vals.n - base - sizes[0];
    text_op_make(p, o, base);
    HloAttr segments = {.kind = HA_INTS, .n = 2, .ints = hlo_ints_dup(p->h, sizes, 2)};
    text_slot_set(p, o->id, AK_OPERAND_SEGMENT_SIZES, segments);
    text_need_word(p, "dimension");
    text_need(p, '=');
    text_slot_word(p, o->id, AK_DIMENSION);
    if (text_eat_word(p, "attributes"))
        text_op_dict(p, o);
    text_region(p, o->id);
    text_op_dict(p, o);
    text_op_types(p, o);
    int64_t outputs[2] = {hlo_at(p->h, o->id)->nresults - sizes[1], sizes[1]};
    segments.ints = hlo_ints_dup(p->h, outputs, 2);
    text_slot_set(p, o->id, AK_RESULT_SEGMENT_SIZES, segments);
}

// --- convolution ---------------------------------------------------------------------------------

// [[1, 2], [0, 0]]
static void pad_table(TextRead *p, TextOp *o) {
    uint32_t base = p->ints.n;
    text_need(p, '[');
    if (text_peek(p) != ']') {
        do {
            const char *at = p->at;
            if (text_int_list(p) != 2)
                text_fail(p, at, OTRN_PARSE, "padding is a list of pairs");
        } while (text_eat(p, ','));
    }
    text_need(p, ']');
    HloAttr a = text_ints_take(p, base);
    a.kind = HA_INTS2;
    a.cols = 2;
    text_slot_set(p, o->id, AK_PADDING, a);
}

static void window_item(TextRead *p, TextOp *o) {
    static const struct {
        const char *word;
        uint8_t key;
    } items[] = {{"stride", AK_WINDOW_STRIDES},
                 {"lhs_dilate", AK_LHS_DILATION},
                 {"rhs_dilate", AK_RHS_DILATION},
                 {"reverse", AK_WINDOW_REVERSAL},
                 {"pad", AK_PADDING}};
    text_space(p);
    const char *at = p->at;
    Span word = text_ident(p, "a window item");
    text_need(p, '=');
    for (size_t i = 0; i < sizeof items / sizeof *items; i++) {
        if (!span_is(word, items[i].word))
            continue;
        if (items[i].key == AK_PADDING)
            pad_table(p, o);
        else if (items[i].key == AK_WINDOW_REVERSAL)
            text_slot_value(p, o->id, AK_WINDOW_REVERSAL);
        else
            text_slot_word(p, o->id, items[i].key);
        return;
    }
    text_fail(p, at, OTRN_PARSE, "'%.*s' is no item of a window", (int)word.n, word.s);
}

// convolution(%a, %b) dim_numbers = […]x[…]->[…], window = {…} {…} : …
static void form_convolution(TextRead *p, TextOp *o) {
    uint32_t base = p->vals.n;
    text_operands_in_parens(p);
    text_op_make(p, o, base);
    text_need_word(p, "dim_numbers");
    text_need(p, '=');
    text_slot_conv(p, o->id);
    text_need(p, ',');
    text_need_word(p, "window");
    text_need(p, '=');
    text_need(p, '{');
    if (text_peek(p) != '}') {
        do {
            window_item(p, o);
        } while (text_eat(p, ','));
    }
    text_need(p, '}');
    text_op_dict(p, o);
    text_op_types(p, o);
}

// --- forms with regions --------------------------------------------------------------------------

// while(%i = %init, …) : T, … attributes {…} cond { … } do { … }
static void form_while(TextRead *p, TextOp *o) {
    uint32_t vals = p->vals.n, types = p->types.n, names = p->results.n;
    text_need(p, '(');
    if (text_peek(p) != ')') {
        do {
            text_need(p, '%');
            TextResult r = {.name = text_suffix_id(p, "a value name"), .count = 1};
            VEC_PUSH(p->arena, &p->results, r);
            text_need(p, '=');
            ValueId v = text_operand(p);
            VEC_PUSH(p->arena, &p->vals, v);
        } while (text_eat(p, ','));
    }
    text_need(p, ')');
    uint32_t n = p->vals.n - vals, ntypes = 0;
    text_op_make(p, o, vals);
    if (text_eat(p, ':'))
        ntypes = text_types(p);
    text_op_check_operands(p, o, ntypes, p->types.at + types);
    if (text_eat_word(p, "attributes"))
        text_op_dict(p, o);
    static const char *const parts[2] = {"cond", "do"};
    for (int i = 0; i < 2; i++) {
        text_need_word(p, parts[i]);
        RegionId r = hlo_op_add_region(p->h, o->id, n, p->types.at + types);
        uint32_t mark = text_scope_begin(p);
        for (uint32_t k = 0; k < n; k++)
            text_bind(p, p->results.at[names + k].name, o->at, p->h->regions.at[r].args + k, 1);
        text_region_body(p, r);
        text_scope_end(p, mark);
    }
    p->results.n = names; // the block arguments' names; the op's own stay
    text_op_results(p, o, n, p->types.at + types);
    p->types.n = types;
}

// applies stablehlo.add: a body of that op on scalars of the first input's element type
static void reduce_compact(TextRead *p, TextOp *o, HloOpcode code) {
    const HloOp *op = hlo_at(p->h, o->id);
    const HloType *in = hlo_value_type(p->h, hlo_operand(p->h, op, 0));
    HloType scalar = *in;
    scalar.rank = 0;
    scalar.dims = NULL;
    const char *encoding = scalar.text ? strchr(scalar.text, '#') : NULL; // says something of dimensions
    if (encoding)
        scalar.text = encoding == scalar.text ? NULL : arena_strndup(p->arena, scalar.text, (size_t)(encoding - scalar.text) - 2);
    TypeId t = hlo_type_intern(p->h, &scalar), two[2] = {t, t};
    RegionId r = hlo_op_add_region(p->h, o->id, 2, two);
    ValueId args = p->h->regions.at[r].args;
    LocId loc = text_loc_here(p, o->pos);
    OpId body = hlo_op(p->h, code, loc, 2, (ValueId[]){args, args + 1}, 1, &t);
    read_slot_defaults(p->h, body);
    hlo_region_push(p->h, r, body);
    OpId ret = hlo_op(p->h, HLO_RETURN, loc, 1, &hlo_at(p->h, body)->results, 0, NULL);
    hlo_region_push(p->h, r, ret);
}

// reducer(%a: T, %b: T) (%c: U, %d: U) { … }: one pair (element, accumulator) per input; the block
// has all elements first, then all accumulators.
static void reduce_body(TextRead *p, TextOp *o, uint32_t pairs) {
    uint32_t types = p->types.n, names = p->results.n;
    for (uint32_t i = 0; i < pairs; i++) {
        text_need(p, '(');
        for (int k = 0; k < 2; k++) {
            if (k)
                text_need(p, ',');
            TypeId t;
            TextResult r = text_argument(p, &t);
            VEC_PUSH(p->arena, &p->types, t);
            VEC_PUSH(p->arena, &p->results, r);
        }
        text_need(p, ')');
    }
    uint32_t sorted = p->types.n;
    for (uint32_t i = 0; i < 2 * pairs; i++) {
        uint32_t from = i < pairs ? 2 * i : 2 * (i - pairs) + 1;
        VEC_PUSH(p->arena, &p->types, p->types.at[types + from]);
    }
    RegionId r = hlo_op_add_region(p->h, o->id, 2 * pairs, p->types.at + sorted);
    uint32_t mark = text_scope_begin(p);
    for (uint32_t i = 0; i < 2 * pairs; i++) {
        uint32_t at = names + (i < pairs ? 2 * i : 2 * (i - pairs) + 1);
        text_bind(p, p->results.at[at].name, o->at, p->h->regions.at[r].args + i, 1);
    }
    p->types.n = types;
    p->results.n = names;
    text_region_body(p, r);
    text_scope_end(p, mark);
}

// reduce(%x init: %v), (%y init: %w) [applies op] across dimensions = […] {…} : … [reducer …]
static void form_reduce(TextRead *p, TextOp *o) {
    uint32_t base = p->vals.n, n = 0, inits = p->types.n;
    do { // initial values wait on the types stack: ids are plain numbers
        text_need(p, '(');
        ValueId v = text_operand(p);
        VEC_PUSH(p->arena, &p->vals, v);
        text_need_word(p, "init");
        text_need(p, ':');
        v = text_operand(p);
        VEC_PUSH(p->arena, &p->types, v);
        text_need(p, ')');
        n++;
    } while (text_eat(p, ','));
    for (uint32_t i = 0; i < n; i++)
        VEC_PUSH(p->arena, &p->vals, p->types.at[inits + i]);
    p->types.n = inits;
    text_op_make(p, o, base);
    HloOpcode body = HLO_NONE;
    if (text_eat_word(p, "applies")) {
        text_space(p);
        const char *at = p->at;
        Span name = text_ident(p, "an op");
        const char *dot = memchr(name.s, '.', name.n);
        size_t d = dot ? (size_t)(dot - name.s) : 0;
        body = dot ? hlo_op_find(name.s, d, dot + 1, name.n - d - 1) : HLO_NONE;
        if (body != HLO_ADD && body != HLO_MULTIPLY && body != HLO_MAXIMUM && body != HLO_MINIMUM && body != HLO_AND &&
            body != HLO_OR && body != HLO_XOR)
            text_fail(p, at, OTRN_PARSE, "'%.*s' is no commutative op of two values", (int)name.n, name.s);
    }
    text_need_word(p, "across");
    text_need_word(p, "dimensions");
    text_need(p, '=');
    text_slot_word(p, o->id, AK_DIMENSIONS);
    text_op_dict(p, o);
    if (text_peek(p) != ':')
        text_expected(p, "':' and the types");
    uint32_t types = p->types.n, nin, nout;
    p->at++;
    text_type_function(p, &nin, &nout);
    text_op_check_operands(p, o, nin, p->types.at + types);
    if (body)
        reduce_compact(p, o, body);
    else {
        text_need_word(p, "reducer");
        reduce_body(p, o, n);
    }
    text_op_results(p, o, nout, p->types.at + types + nin);
    p->types.n = types;
}

// --- which ---------------------------------------------------------------------------------------

void text_form(TextRead *p, TextOp *o) {
    switch (o->code) {
    case HLO_CONSTANT:
        form_constant(p, o);
        break;
    case HLO_CHECK_EXPECT_EQ_CONST:
    case HLO_CHECK_EXPECT_ALMOST_EQ_CONST:
        form_check_const(p, o);
        break;
    case HLO_COMPARE:
        form_compare(p, o);
        break;
    case HLO_SLICE:
        form_slice(p, o);
        break;
    case HLO_GET_TUPLE_ELEMENT:
        form_tuple_element(p, o);
        break;
    case HLO_CALL:
    case HLO_CUSTOM_CALL:
        form_call(p, o);
        break;
    case HLO_COMPOSITE:
        form_composite(p, o);
        break;
    case HLO_CONVOLUTION:
        form_convolution(p, o);
        break;
    case HLO_WHILE:
        form_while(p, o);
        break;
    case HLO_REDUCE:
        form_reduce(p, o);
        break;
    case HLO_CHLO_SCAN:
        form_scan(p, o);
        break;
    case HLO_SDY_SHARDING_CONSTRAINT:
    case HLO_SDY_RESHARD:
    case HLO_SDY_PROPAGATION_BARRIER:
    case HLO_SDY_SHARDING_GROUP:
    case HLO_SDY_MANUAL_COMPUTATION:
    case HLO_SDY_NAMED_COMPUTATION:
        text_form_sdy(p, o);
        break;
    default:
        form_common(p, o);
    }
}
