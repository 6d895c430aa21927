// SPDX-License-Identifier: Apache-2.0
// kern.c — kernels to bytes and back. The layout is in spec/artifact.md, section KERN.
//
// Decode trusts nothing: counts against the bytes left, references against the dictionary,
// registers against definitions before uses, sizes against overflow.
#include "isa/kern.h"

#include <assert.h>

#include "isa/isa.h"

#define ATTR_DEPTH_MAX 8 // lists in lists
#define ATTR_LIST_MAX 65536
#define TENSOR_BYTES_MAX ((int64_t)1 << 40)

#define SHAPE_LETTER 'g' // rows of integers that are a grid
#define SHAPES_MAX 64    // in one file: they are small there and large in memory

// The file's letter for each attribute kind; 0: does not occur in kernels.
static const char kind_letters[HA_KIND_COUNT] = {
    [HA_INT] = 'i',  [HA_BOOL] = 'b', [HA_FLOAT] = 'f', [HA_ENUM] = 'e',
    [HA_STR] = 's',  [HA_SYM] = 'y',  [HA_INTS] = 'v',  [HA_INTS2] = 'm',
    [HA_LIST] = 'l', [HA_DICT] = 'd', [HA_UNIT] = 'u',  [HA_OPAQUE] = 'o',
};

static int kind_of(uint8_t letter) {
    for (int k = 1; letter && k < HA_KIND_COUNT; k++)
        if (kind_letters[k] == (char)letter)
            return k;
    return HA_NONE;
}

// --- encode --------------------------------------------------------------------------------------

static void put_ints(Buf *out, const int64_t *v, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        put_u64(out, (uint64_t)v[i]);
}

static const DictShape *shape_find(const Dict *dict, const IdShape *s) {
    for (uint32_t i = 0; i < dict->shapes.n; i++) {
        const IdShape *o = &dict->shapes.at[i].shape;
        bool same = o->first == s->first && o->dims == s->dims;
        for (uint32_t d = 0; same && d < s->dims; d++)
            same = o->dim[d].count == s->dim[d].count && o->dim[d].stride == s->dim[d].stride;
        if (same)
            return &dict->shapes.at[i];
    }
    return NULL;
}

// Groups of many devices by their shape.
static bool encode_shape(const HloAttr *at, Dict *dict, Buf *out) {
    IdShape s;
    if (at->kind != HA_INTS2 || at->n < SHAPE_FROM || at->n > SHAPE_IDS_MAX || !shape_of(at->ints, at->n, &s))
        return false;
    if (!shape_find(dict, &s)) {
        if (dict->shapes.n == SHAPES_MAX)
            return false;
        VEC_PUSH(dict->arena, &dict->shapes, ((DictShape){s, NULL}));
    }
    put_u8(out, SHAPE_LETTER);
    put_u32(out, at->cols);
    put_u64(out, (uint64_t)s.first);
    put_u8(out, (uint8_t)s.dims);
    for (uint32_t d = 0; d < s.dims; d++) {
        put_u32(out, s.dim[d].count);
        put_u64(out, (uint64_t)s.dim[d].stride);
    }
    return true;
}

static void encode_attr(const HloAttr *at, Dict *dict, Buf *out) {
    assert(kind_letters[at->kind] && "TENSOR and TYPE attributes do not occur in kernels");
    if (encode_shape(at, dict, out))
        return;
    put_u8(out, (uint8_t)kind_letters[at->kind]);
    switch (at->kind) {
    case HA_INT:
    case HA_BOOL:
    case HA_ENUM:
        put_u64(out, (uint64_t)at->i);
        break;
    case HA_FLOAT: {
        uint64_t bits;
        memcpy(&bits, &at->f, 8);
        put_u64(out, bits);
        break;
    }
    case HA_STR:
    case HA_SYM:
    case HA_OPAQUE: {
        uint32_t n = at->kind == HA_STR ? at->n : (uint32_t)strlen(at->s);
        put_u32(out, n);
        buf_put(out, at->s, n);
        break;
    }
    case HA_INTS:
    case HA_INTS2:
        put_u32(out, at->n);
        if (at->kind == HA_INTS2)
            put_u32(out, at->cols);
        put_ints(out, at->ints, at->n);
        break;
    case HA_LIST:
        put_u32(out, at->n);
        for (uint32_t i = 0; i < at->n; i++)
            encode_attr(&at->list[i], dict, out);
        break;
    case HA_DICT:
        put_u32(out, at->n);
        for (uint32_t i = 0; i < at->n; i++) {
            put_u32(out, dict_add(dict, at->dict[i].name));
            encode_attr(&at->dict[i].value, dict, out);
        }
        break;
    default: // UNIT: the letter says it all
        break;
    }
}

static void encode_tensor(const KTensor *t, Buf *out) {
    put_u64(out, t->addr);
    put_u8(out, t->dtype);
    put_u8(out, t->rank);
    put_ints(out, t->dims, t->rank);
}

static void encode_prog(const KProg *p, Dict *dict, Buf *out) {
    const uint16_t counts[] = {p->nregs, p->ninputs, p->ncaptures, p->nconsts, p->nsteps, p->nouts};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        put_u16(out, counts[i]);
    buf_put(out, p->dtypes, p->nregs);
    for (int i = 0; i < p->nconsts; i++) {
        put_u16(out, p->const_regs[i]);
        buf_put(out, p->consts[i], dtype_bytes(p->dtypes[p->const_regs[i]]));
    }
    for (int i = 0; i < p->nsteps; i++) {
        const KStep *s = &p->steps[i];
        put_u32(out, dict_add_op(dict, s->op));
        for (int k = 0; k < kern_step_operands(s->op); k++)
            put_u16(out, s->src[k]);
        put_u16(out, s->dst);
        put_u16(out, (uint16_t)s->attr[0]);
        put_u16(out, (uint16_t)s->attr[1]);
    }
    for (int i = 0; i < p->nouts; i++)
        put_u16(out, p->outs[i]);
}

const char *kern_host_name(const Kern *k, size_t *bytes, bool *once) {
    static const char suffix[] = " once";
    const HloAttr *config = kern_attr(k, AK_BACKEND_CONFIG);
    if (!config || config->kind != HA_STR || !config->s || !*config->s)
        return NULL;
    size_t n = strlen(config->s), m = sizeof suffix - 1;
    *once = n > m && !memcmp(config->s + n - m, suffix, m);
    *bytes = *once ? n - m : n;
    return config->s;
}

void kern_encode(const Kern *k, Dict *dict, Buf *out) {
    const HloOpRow *row = &hlo_op_rows[k->op];
    put_u32(out, dict_add_op(dict, k->op));
    put_u32(out, dict_add(dict, k->target));
    uint32_t present = 0;
    for (uint32_t i = 0; i < k->nattrs; i++)
        present += k->attrs[i].kind != HA_NONE;
    put_u32(out, present);
    for (uint32_t i = 0; i < k->nattrs; i++)
        if (k->attrs[i].kind != HA_NONE) {
            put_u32(out, dict_add(dict, hlo_attr_rows[row->attrs[i]].name));
            encode_attr(&k->attrs[i], dict, out);
        }
    put_u32(out, k->nin);
    for (uint32_t i = 0; i < k->nin; i++)
        encode_tensor(&k->in[i], out);
    put_u32(out, k->nout);
    for (uint32_t i = 0; i < k->nout; i++)
        encode_tensor(&k->out[i], out);
    put_u32(out, k->nregions);
    for (uint32_t i = 0; i < k->nregions; i++)
        encode_prog(&k->regions[i], dict, out);
}

// --- decode --------------------------------------------------------------------------------------

static const int64_t *rd_ints(Rd *r, Arena *a, uint32_t n) {
    int64_t *v = arena_array(a, n ? n : 1, sizeof *v);
    for (uint32_t i = 0; i < n; i++)
        v[i] = (int64_t)rd_u64(r);
    return v;
}

static void decode_attr(Rd *r, Dict *dict, Arena *a, int depth, HloAttr *out);

static uint32_t list_count(Rd *r, size_t min_bytes) {
    uint32_t n = rd_count(r, min_bytes);
    if (n > ATTR_LIST_MAX)
        rd_fail(r, "an attribute list of %u, more than ATTR_LIST_MAX (%d)", n, ATTR_LIST_MAX);
    return n;
}

static void decode_list(Rd *r, Dict *dict, Arena *a, int depth, HloAttr *out) {
    out->n = list_count(r, 1);
    HloAttr *list = ARENA_NEWN(a, HloAttr, out->n ? out->n : 1);
    for (uint32_t i = 0; i < out->n; i++)
        decode_attr(r, dict, a, depth + 1, &list[i]);
    out->list = list;
}

static void decode_dict(Rd *r, Dict *dict, Arena *a, int depth, HloAttr *out) {
    out->n = list_count(r, 5);
    HloNamed *named = ARENA_NEWN(a, HloNamed, out->n ? out->n : 1);
    for (uint32_t i = 0; i < out->n; i++) {
        named[i].name = dict_str(dict, r);
        decode_attr(r, dict, a, depth + 1, &named[i].value);
    }
    out->dict = named;
}

static void decode_ints(Rd *r, Arena *a, HloAttr *out) {
    out->n = rd_count(r, 8);
    if (out->kind == HA_INTS2) {
        out->cols = rd_u32(r);
        if (out->n && (!out->cols || out->n % out->cols))
            rd_fail(r, "%u numbers do not fill rows of %u", out->n, out->cols);
    }
    out->ints = rd_ints(r, a, out->n);
}

// The table of a shape; kernels with the same one share it.
static const int64_t *shape_ids(Rd *r, Dict *dict, Arena *a, const IdShape *s, uint64_t n) {
    const DictShape *seen = shape_find(dict, s);
    if (seen)
        return seen->ids;
    if (dict->shapes.n == SHAPES_MAX)
        rd_fail(r, "groups of more than %d shapes", SHAPES_MAX);
    int64_t *ids = ARENA_NEWN(a, int64_t, n);
    shape_fill(s, ids);
    VEC_PUSH(dict->arena, &dict->shapes, ((DictShape){*s, ids}));
    return ids;
}

static void decode_shape(Rd *r, Dict *dict, Arena *a, HloAttr *out) {
    IdShape s = {0};
    out->kind = HA_INTS2, out->cols = rd_u32(r);
    s.first = (int64_t)rd_u64(r), s.dims = rd_u8(r);
    if (s.dims > SHAPE_DIMS)
        rd_fail(r, "groups of %u dimensions, more than %d", s.dims, SHAPE_DIMS);
    const int64_t far = INT64_C(1) << 33;
    bool near = s.first > -far && s.first < far;
    for (uint32_t d = 0; d < s.dims; d++) {
        s.dim[d].count = rd_u32(r), s.dim[d].stride = (int64_t)rd_u64(r);
        near &= s.dim[d].stride > -far && s.dim[d].stride < far;
    }
    uint64_t n = shape_count(&s);
    if (!near || !n || n > SHAPE_IDS_MAX || !out->cols || n % out->cols)
        rd_fail(r, "groups of a shape that no devices have");
    out->n = (uint32_t)n, out->ints = shape_ids(r, dict, a, &s, n);
}

static void decode_attr(Rd *r, Dict *dict, Arena *a, int depth, HloAttr *out) {
    if (depth > ATTR_DEPTH_MAX)
        rd_fail(r, "attribute lists nest deeper than ATTR_DEPTH_MAX (%d)", ATTR_DEPTH_MAX);
    uint8_t letter = rd_u8(r);
    *out = (HloAttr){.kind = (uint8_t)kind_of(letter)};
    if (letter == SHAPE_LETTER) {
        decode_shape(r, dict, a, out);
        return;
    }
    switch (out->kind) {
    case HA_INT:
    case HA_BOOL:
    case HA_ENUM:
        out->i = (int64_t)rd_u64(r);
        if (out->kind == HA_BOOL && out->i != 0 && out->i != 1)
            rd_fail(r, "a truth value of %lld", (long long)out->i);
        break;
    case HA_FLOAT: {
        uint64_t bits = rd_u64(r);
        memcpy(&out->f, &bits, 8);
        break;
    }
    case HA_STR:
    case HA_SYM:
    case HA_OPAQUE:
        out->n = rd_u32(r);
        out->s = arena_strndup(a, (const char *)rd_bytes(r, out->n), out->n);
        if (out->kind != HA_STR && strlen(out->s) != out->n)
            rd_fail(r, "a symbol holds a zero byte");
        break;
    case HA_INTS:
    case HA_INTS2:
        decode_ints(r, a, out);
        break;
    case HA_LIST:
        decode_list(r, dict, a, depth, out);
        break;
    case HA_DICT:
        decode_dict(r, dict, a, depth, out);
        break;
    case HA_UNIT:
        break;
    default:
        rd_fail(r, "unknown attribute kind %u", letter);
    }
}

static void decode_attrs(Rd *r, Dict *dict, Arena *a, Kern *out) {
    const HloOpRow *row = &hlo_op_rows[out->op];
    out->nattrs = row->nattrs;
    HloAttr *attrs = ARENA_NEWN(a, HloAttr, row->nattrs ? row->nattrs : 1);
    uint32_t n = rd_count(r, 5);
    for (uint32_t i = 0; i < n; i++) {
        int key = dict_key(dict, r), slot = 0;
        while (slot < row->nattrs && row->attrs[slot] != key)
            slot++;
        if (slot == row->nattrs)
            rd_fail(r, "`%s` has no attribute `%s`", row->name, hlo_attr_rows[key].name);
        if (attrs[slot].kind != HA_NONE)
            rd_fail(r, "`%s` is given twice", hlo_attr_rows[key].name);
        decode_attr(r, dict, a, 0, &attrs[slot]);
        int want = hlo_attr_rows[key].kind;
        if (want != HA_ANY && attrs[slot].kind != want)
            rd_fail(r, "`%s` has the wrong kind of value", hlo_attr_rows[key].name);
    }
    out->attrs = attrs;
}

static void decode_tensor(Rd *r, Dict *dict, Arena *a, KTensor *t) {
    t->addr = rd_u64(r);
    t->dtype = (uint8_t)dict_dtype(dict, r);
    if (t->dtype == DT_INVALID)
        rd_fail(r, "a tensor without an element type");
    t->rank = rd_u8(r);
    if (t->rank > OTRN_MAX_RANK)
        rd_fail(r, "a tensor of rank %u, at most %d is allowed", t->rank, OTRN_MAX_RANK);
    t->dims = rd_ints(r, a, t->rank);
    t->elems = 1;
    for (int i = 0; i < t->rank; i++)
        if (t->dims[i] < 0 || __builtin_mul_overflow(t->elems, t->dims[i], &t->elems) ||
            t->elems > TENSOR_BYTES_MAX)
            rd_fail(r, "a tensor with an impossible dimension %lld", (long long)t->dims[i]);
}

static KTensor *decode_tensors(Rd *r, Dict *dict, Arena *a, uint32_t *n) {
    *n = rd_count(r, 10);
    KTensor *t = ARENA_NEWN(a, KTensor, *n ? *n : 1);
    for (uint32_t i = 0; i < *n; i++)
        decode_tensor(r, dict, a, &t[i]);
    return t;
}

// Registers as they become defined: inputs and captures, constants, then step by step.
typedef struct RegSet {
    Rd *r;
    uint8_t *defined;
    uint16_t n;
} RegSet;

static uint16_t reg_new(RegSet *s) {
    uint16_t reg = rd_u16(s->r);
    if (reg >= s->n)
        rd_fail(s->r, "register %u does not exist, there are %u", reg, s->n);
    s->defined[reg] = 1;
    return reg;
}

static uint16_t reg_use(RegSet *s) {
    uint16_t reg = rd_u16(s->r);
    if (reg >= s->n || !s->defined[reg])
        rd_fail(s->r, "register %u is used before it is set", reg);
    return reg;
}

static const KStep *decode_steps(RegSet *regs, Dict *dict, Arena *a, uint16_t n) {
    Rd *r = regs->r;
    KStep *steps = ARENA_NEWN(a, KStep, n ? n : 1);
    for (int i = 0; i < n; i++) {
        KStep *s = &steps[i];
        s->op = (uint16_t)dict_op(dict, r);
        const HloOpRow *row = &hlo_op_rows[s->op];
        if (!kern_is_step(s->op))
            rd_fail(r, "`%s` cannot be a step of a region", row->name);
        for (int k = 0; k < kern_step_operands(s->op); k++)
            s->src[k] = reg_use(regs);
        s->dst = reg_new(regs);
        s->attr[0] = (int16_t)rd_u16(r);
        s->attr[1] = (int16_t)rd_u16(r);
    }
    return steps;
}

static void decode_consts(RegSet *regs, Arena *a, KProg *p) {
    uint16_t *const_regs = ARENA_NEWN(a, uint16_t, p->nconsts + 1);
    uint8_t(*consts)[16] = arena_array(a, p->nconsts + 1, 16);
    for (int i = 0; i < p->nconsts; i++) {
        const_regs[i] = reg_new(regs);
        size_t n = dtype_bytes(p->dtypes[const_regs[i]]);
        memcpy(consts[i], rd_bytes(regs->r, n), n);
    }
    p->const_regs = const_regs;
    p->consts = (const uint8_t(*)[16])consts;
}

static void decode_prog(Rd *r, Dict *dict, Arena *a, KProg *p) {
    p->nregs = rd_u16(r);
    p->ninputs = rd_u16(r);
    p->ncaptures = rd_u16(r);
    p->nconsts = rd_u16(r);
    p->nsteps = rd_u16(r);
    p->nouts = rd_u16(r);
    if (p->ninputs + p->ncaptures > p->nregs)
        rd_fail(r, "a region with more inputs than registers");
    uint8_t *dtypes = arena_alloc(a, p->nregs + 1u);
    for (int i = 0; i < p->nregs; i++)
        if ((dtypes[i] = (uint8_t)dict_dtype(dict, r)) == DT_INVALID || dtypes[i] == DT_TOKEN)
            rd_fail(r, "register %d has no element type", i);
    p->dtypes = dtypes;
    RegSet regs = {.r = r, .defined = arena_zalloc(a, p->nregs + 1u), .n = p->nregs};
    memset(regs.defined, 1, (size_t)p->ninputs + p->ncaptures);
    decode_consts(&regs, a, p);
    p->steps = decode_steps(&regs, dict, a, p->nsteps);
    uint16_t *outs = ARENA_NEWN(a, uint16_t, p->nouts + 1);
    for (int i = 0; i < p->nouts; i++)
        outs[i] = reg_use(&regs);
    p->outs = outs;
}

void kern_decode(Rd *r, Dict *dict, Arena *a, Kern *out) {
    *out = (Kern){.op = (uint16_t)dict_op(dict, r)};
    const HloOpRow *row = &hlo_op_rows[out->op];
    if (out->op == HLO_NONE)
        rd_fail(r, "a kernel without an operation");
    out->target = dict_str(dict, r);
    decode_attrs(r, dict, a, out);
    out->in = decode_tensors(r, dict, a, &out->nin);
    out->out = decode_tensors(r, dict, a, &out->nout);
    out->nregions = rd_count(r, 12);
    if (row->regions >= 0 && out->nregions != (uint32_t)row->regions)
        rd_fail(r, "`%s` with %u regions", row->name, out->nregions);
    KProg *regions = ARENA_NEWN(a, KProg, out->nregions ? out->nregions : 1);
    for (uint32_t i = 0; i < out->nregions; i++)
        decode_prog(r, dict, a, &regions[i]);
    out->regions = regions;
}
