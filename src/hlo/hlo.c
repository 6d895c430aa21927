// SPDX-License-Identifier: Apache-2.0
// hlo.c — making and asking the graph: interning, ops, regions, places.
#include "hlo/hlo.h"

#include <assert.h>
#include <stdio.h>

// One open-addressing table serves types, strings, locations and function names: it maps a hash to
// ids whose contents the caller compares.
typedef struct Table {
    uint32_t *ids; // 0 = empty
    uint64_t *hashes;
    uint32_t n, cap; // cap is a power of two
} Table;

struct HloIntern {
    Table types, strs, locs, funcs;
    uint32_t funcs_seen; // functions [0, funcs_seen) are in the table
};

static void table_insert(Arena *a, Table *t, uint64_t hash, uint32_t id) {
    if (t->n * 2 >= t->cap) {
        Table big = {.cap = t->cap ? t->cap * 2 : 64};
        big.ids = ARENA_NEWN(a, uint32_t, big.cap);
        big.hashes = ARENA_NEWN(a, uint64_t, big.cap);
        for (uint32_t i = 0; i < t->cap; i++)
            if (t->ids[i])
                table_insert(a, &big, t->hashes[i], t->ids[i]);
        *t = big;
    }
    uint32_t i = (uint32_t)hash & (t->cap - 1);
    while (t->ids[i])
        i = (i + 1) & (t->cap - 1);
    t->ids[i] = id;
    t->hashes[i] = hash;
    t->n++;
}

// Next candidate id with this hash; *at walks the probe sequence and starts at UINT32_MAX.
static uint32_t table_next(const Table *t, uint64_t hash, uint32_t *at) {
    if (!t->cap)
        return 0;
    *at = *at == UINT32_MAX ? (uint32_t)hash & (t->cap - 1) : (*at + 1) & (t->cap - 1);
    for (; t->ids[*at]; *at = (*at + 1) & (t->cap - 1))
        if (t->hashes[*at] == hash)
            return t->ids[*at];
    return 0;
}

// --- making ----------------------------------------------------------------------------------------

Hlo *hlo_make(Ctx *ctx, Arena *a, const char *file) {
    Hlo *h = ARENA_NEW(a, Hlo);
    h->ctx = ctx;
    h->arena = a;
    h->file = arena_strndup(a, file, strlen(file));
    h->name = "";
    h->intern = ARENA_NEW(a, struct HloIntern);
    VEC_PUSH(a, &h->ops, (HloOp){0});
    VEC_PUSH(a, &h->values, (HloValue){0});
    VEC_PUSH(a, &h->regions, (HloRegion){0});
    VEC_PUSH(a, &h->types, (HloType){0});
    VEC_PUSH(a, &h->locs, (HloLoc){0});
    VEC_PUSH(a, &h->strs, "");
    return h;
}

StrId hlo_str(Hlo *h, const char *s, size_t n) {
    uint64_t hash = hash64(1, s, n);
    uint32_t at = UINT32_MAX;
    for (StrId id; (id = table_next(&h->intern->strs, hash, &at));)
        if (strlen(h->strs.at[id]) == n && !memcmp(h->strs.at[id], s, n))
            return id;
    StrId id = h->strs.n;
    VEC_PUSH(h->arena, &h->strs, arena_strndup(h->arena, s, n));
    table_insert(h->arena, &h->intern->strs, hash, id);
    return id;
}

static uint64_t type_hash(const HloType *t) {
    uint64_t head = t->kind | (uint64_t)t->dtype << 8 | (uint64_t)t->rank << 16 |
                    (uint64_t)t->nmembers << 24;
    uint64_t hash = hash64(head, t->dims, t->rank * sizeof *t->dims);
    hash = hash64(hash, t->members, t->nmembers * sizeof *t->members);
    return t->text ? hash64(hash, t->text, strlen(t->text)) : hash;
}

static bool type_equal(const HloType *a, const HloType *b) {
    if (a->kind != b->kind || a->dtype != b->dtype || a->rank != b->rank ||
        a->nmembers != b->nmembers || a->ninputs != b->ninputs || !a->text != !b->text)
        return false;
    return (!a->rank || !memcmp(a->dims, b->dims, a->rank * sizeof *a->dims)) &&
           (!a->nmembers || !memcmp(a->members, b->members, a->nmembers * sizeof *a->members)) &&
           (!a->text || !strcmp(a->text, b->text));
}

TypeId hlo_type_intern(Hlo *h, const HloType *t) {
    assert(t->rank <= OTRN_MAX_RANK);
    uint64_t hash = type_hash(t);
    uint32_t at = UINT32_MAX;
    for (TypeId id; (id = table_next(&h->intern->types, hash, &at));)
        if (type_equal(&h->types.at[id], t))
            return id;
    HloType copy = *t;
    copy.dims = arena_dup(h->arena, t->dims, t->rank * sizeof *t->dims);
    copy.members = arena_dup(h->arena, t->members, t->nmembers * sizeof *t->members);
    copy.text = t->text ? arena_strndup(h->arena, t->text, strlen(t->text)) : NULL;
    copy.elems = copy.kind == HT_TENSOR;
    copy.dynamic = false;
    for (int i = 0; i < copy.rank; i++) {
        if (copy.dims[i] == HLO_DYNAMIC)
            copy.dynamic = true;
        else if (__builtin_mul_overflow(copy.elems, copy.dims[i], &copy.elems) ||
                 copy.elems > INT64_MAX / 16)
            ctx_fail(h->ctx, OTRN_CAPACITY, (Place){.file = h->file},
                     "a tensor type has more elements than 64 bits of bytes can count");
    }
    if (copy.dynamic)
        copy.elems = 0;
    TypeId id = h->types.n;
    VEC_PUSH(h->arena, &h->types, copy);
    table_insert(h->arena, &h->intern->types, hash, id);
    return id;
}

TypeId hlo_type_tensor(Hlo *h, int dtype, int rank, const int64_t *dims) {
    return hlo_type_intern(
        h, &(HloType){.kind = HT_TENSOR, .dtype = (uint8_t)dtype, .rank = (uint8_t)rank, .dims = dims});
}

TypeId hlo_type_as(Hlo *h, TypeId shape, int dtype) {
    const HloType *t = hlo_type(h, shape);
    assert(t->kind == HT_TENSOR);
    return hlo_type_tensor(h, dtype, t->rank, t->dims);
}

LocId hlo_loc(Hlo *h, const HloLoc *l) {
    uint32_t key[6] = {l->kind, l->str, l->line, l->col, l->a, l->b};
    uint64_t hash = hash64(2, key, sizeof key);
    uint32_t at = UINT32_MAX;
    for (LocId id; (id = table_next(&h->intern->locs, hash, &at));) {
        const HloLoc *m = &h->locs.at[id];
        if (m->kind == l->kind && m->str == l->str && m->line == l->line && m->col == l->col &&
            m->a == l->a && m->b == l->b)
            return id;
    }
    LocId id = h->locs.n;
    VEC_PUSH(h->arena, &h->locs, *l);
    table_insert(h->arena, &h->intern->locs, hash, id);
    return id;
}

ValueId hlo_value(Hlo *h, TypeId t) {
    VEC_PUSH(h->arena, &h->values, (HloValue){.type = t});
    return h->values.n - 1;
}

RegionId hlo_region(Hlo *h, OpId parent, uint32_t nargs, const TypeId *arg_types) {
    RegionId r = h->regions.n;
    VEC_PUSH(h->arena, &h->regions,
             (HloRegion){.args = h->values.n, .nargs = nargs, .parent = parent});
    for (uint32_t i = 0; i < nargs; i++) {
        ValueId v = hlo_value(h, arg_types[i]);
        h->values.at[v].region = r;
        h->values.at[v].index = i;
    }
    return r;
}

OpId hlo_op(Hlo *h, HloOpcode code, LocId loc, uint32_t noperands, const ValueId *operands,
            uint32_t nresults, const TypeId *result_types) {
    assert(code > HLO_NONE && code < HLO_OPCODE_COUNT);
    OpId id = h->ops.n;
    HloOp op = {.code = (uint16_t)code, .nresults = (uint16_t)nresults, .results = h->values.n, .loc = loc};
    assert(nresults <= UINT16_MAX);
    if (hlo_op_rows[code].nattrs)
        op.attrs = ARENA_NEWN(h->arena, HloAttr, hlo_op_rows[code].nattrs);
    VEC_PUSH(h->arena, &h->ops, op);
    for (uint32_t i = 0; i < nresults; i++) {
        ValueId v = hlo_value(h, result_types[i]);
        h->values.at[v].def = id;
        h->values.at[v].index = i;
    }
    hlo_op_set_operands(h, id, noperands, operands);
    return id;
}

void hlo_op_set_operands(Hlo *h, OpId id, uint32_t n, const ValueId *operands) {
    HloOp *op = hlo_at(h, id);
    if (n > op->noperands) { // operands of one op lie together: move to the end of the pool
        op->operands = h->operands.n;
        VEC_RESERVE(h->arena, &h->operands, h->operands.n + n);
        h->operands.n += n;
    }
    op->noperands = n;
    for (uint32_t i = 0; i < n; i++)
        h->operands.at[op->operands + i] = operands[i];
}

RegionId hlo_op_add_region(Hlo *h, OpId id, uint32_t nargs, const TypeId *arg_types) {
    RegionId r = hlo_region(h, id, nargs, arg_types);
    HloOp *op = hlo_at(h, id);
    if (op->nregions && op->regions + op->nregions != h->op_regions.n) {
        // another op added a region in between: move this op's list to the end
        uint32_t from = op->regions;
        op->regions = h->op_regions.n;
        for (uint32_t i = 0; i < op->nregions; i++)
            VEC_PUSH(h->arena, &h->op_regions, h->op_regions.at[from + i]);
    }
    if (!op->nregions)
        op->regions = h->op_regions.n;
    VEC_PUSH(h->arena, &h->op_regions, r);
    op->nregions++;
    return r;
}

void hlo_op_add_combiner(Hlo *h, OpId op, HloOpcode code, TypeId scalar) {
    LocId loc = hlo_at(h, op)->loc;
    RegionId r = hlo_op_add_region(h, op, 2, (TypeId[]){scalar, scalar});
    ValueId args[2] = {h->regions.at[r].args, h->regions.at[r].args + 1};
    OpId body = hlo_op(h, code, loc, 2, args, 1, &scalar);
    hlo_region_push(h, r, body);
    ValueId one = hlo_at(h, body)->results;
    hlo_region_push(h, r, hlo_op(h, HLO_RETURN, loc, 1, &one, 0, NULL));
}

OpId hlo_op_constant(Hlo *h, LocId loc, TypeId type, const void *data, size_t bytes) {
    assert(bytes == dtype_bytes(hlo_type(h, type)->dtype) || bytes == hlo_type_bytes(hlo_type(h, type)));
    OpId id = hlo_op(h, HLO_CONSTANT, loc, 0, NULL, 1, &type);
    *hlo_attr_slot(h, id, AK_VALUE) =
        (HloAttr){.kind = HA_TENSOR, .type = type, .n = (uint32_t)bytes, .data = arena_dup(h->arena, data, bytes)};
    return id;
}

OpId hlo_op_splat(Hlo *h, LocId loc, TypeId type, const void *one) {
    return hlo_op_constant(h, loc, type, one, hlo_type(h, type)->elems ? dtype_bytes(hlo_type(h, type)->dtype) : 0);
}

OpId hlo_op_like(Hlo *h, const HloOp *op, const ValueId *operands, TypeId type) {
    HloAttr *attrs = op->attrs; // before a new op may move the table
    OpId id = hlo_op(h, op->code, op->loc, op->noperands, operands, 1, &type);
    hlo_at(h, id)->attrs = attrs;
    return id;
}

void hlo_op_own_attrs(Hlo *h, OpId id) {
    HloOp *op = hlo_at(h, id);
    op->attrs = arena_dup(h->arena, op->attrs, hlo_row(op)->nattrs * sizeof *op->attrs);
}

OpId hlo_op_transpose(Hlo *h, LocId loc, ValueId v, const int64_t *perm) {
    HloType t = *hlo_value_type(h, v);
    int64_t dims[OTRN_MAX_RANK];
    for (int i = 0; i < t.rank; i++)
        dims[i] = t.dims[perm[i]];
    TypeId type = hlo_type_tensor(h, t.dtype, t.rank, dims);
    OpId id = hlo_op(h, HLO_TRANSPOSE, loc, 1, &v, 1, &type);
    hlo_set_ints(h, id, AK_PERMUTATION, perm, (uint32_t)t.rank);
    return id;
}

OpId hlo_op_dot(Hlo *h, LocId loc, ValueId lhs, ValueId rhs, DotPairs dims, TypeId type, const HloAttr *precision) {
    static const HloAttr by_default[2] = {{.kind = HA_ENUM, .i = PREC_DEFAULT}, {.kind = HA_ENUM, .i = PREC_DEFAULT}};
    const HloType *l = hlo_value_type(h, lhs), *r = hlo_value_type(h, rhs);
    for (uint32_t i = 0; i < dims.nb; i++)
        assert(l->dims[dims.lb[i]] == r->dims[dims.rb[i]]);
    for (uint32_t i = 0; i < dims.nc; i++)
        assert(l->dims[dims.lc[i]] == r->dims[dims.rc[i]]);
    assert(hlo_type(h, type)->rank + dims.nb + 2 * dims.nc == (uint32_t)l->rank + r->rank);
    OpId id = hlo_op(h, HLO_DOT_GENERAL, loc, 2, (ValueId[]){lhs, rhs}, 1, &type);
    hlo_set_ints(h, id, AK_LHS_BATCHING_DIMENSIONS, dims.lb, dims.nb);
    hlo_set_ints(h, id, AK_RHS_BATCHING_DIMENSIONS, dims.rb, dims.nb);
    hlo_set_ints(h, id, AK_LHS_CONTRACTING_DIMENSIONS, dims.lc, dims.nc);
    hlo_set_ints(h, id, AK_RHS_CONTRACTING_DIMENSIONS, dims.rc, dims.nc);
    *hlo_attr_slot(h, id, AK_PRECISION_CONFIG) = precision ? *precision : (HloAttr){.kind = HA_LIST, .n = 2, .list = by_default};
    return id;
}

void hlo_region_push(Hlo *h, RegionId r, OpId op) {
    VEC_PUSH(h->arena, &h->regions.at[r].ops, op);
}

static int slot_of(const HloOp *op, HloAttrKey key) {
    const HloOpRow *row = &hlo_op_rows[op->code];
    for (int i = 0; i < row->nattrs; i++)
        if (row->attrs[i] == key)
            return i;
    return -1;
}

HloAttr *hlo_attr_slot(Hlo *h, OpId op, HloAttrKey key) {
    int i = slot_of(hlo_at(h, op), key);
    assert(i >= 0);
    return &hlo_at(h, op)->attrs[i];
}

const int64_t *hlo_ints_dup(Hlo *h, const int64_t *v, size_t n) {
    return arena_dup(h->arena, v, n * sizeof *v);
}

void hlo_set_ints(Hlo *h, OpId id, HloAttrKey key, const int64_t *v, uint32_t n) {
    bool pairs = hlo_attr_rows[key].kind == HA_INTS2;
    assert(!pairs || n % 2 == 0);
    *hlo_attr_slot(h, id, key) =
        (HloAttr){.kind = pairs ? HA_INTS2 : HA_INTS, .n = n, .cols = pairs ? 2 : 0, .ints = hlo_ints_dup(h, v, n)};
}

void hlo_set_int(Hlo *h, OpId id, HloAttrKey key, int64_t v) {
    uint8_t kind = hlo_attr_rows[key].kind;
    assert(kind == HA_INT || kind == HA_BOOL || kind == HA_ENUM);
    *hlo_attr_slot(h, id, key) = (HloAttr){.kind = kind, .i = v};
}

// --- asking ----------------------------------------------------------------------------------------

const HloAttr *hlo_attr(const HloOp *op, HloAttrKey key) {
    int i = slot_of(op, key);
    return i < 0 || op->attrs[i].kind == HA_NONE ? NULL : &op->attrs[i];
}

int64_t hlo_int(const HloOp *op, HloAttrKey key, int64_t dflt) {
    const HloAttr *a = hlo_attr(op, key);
    return a && (a->kind == HA_INT || a->kind == HA_BOOL || a->kind == HA_ENUM) ? a->i : dflt;
}

const int64_t *hlo_ints(const HloOp *op, HloAttrKey key, uint32_t *n) {
    const HloAttr *a = hlo_attr(op, key);
    bool has = a && (a->kind == HA_INTS || a->kind == HA_INTS2);
    *n = has ? a->n : 0;
    return has ? a->ints : NULL;
}

const char *hlo_attr_str(const HloOp *op, HloAttrKey key) {
    const HloAttr *a = hlo_attr(op, key);
    return a && (a->kind == HA_STR || a->kind == HA_SYM) ? a->s : "";
}

const HloNamed *hlo_named_find(const HloNamed *list, uint32_t n, const char *name) {
    for (uint32_t i = 0; i < n; i++)
        if (!strcmp(list[i].name, name))
            return &list[i];
    return NULL;
}

const char *hlo_named_text(const HloNamed *list, uint32_t n, const char *name) {
    const HloNamed *found = hlo_named_find(list, n, name);
    return found && found->value.kind == HA_STR ? found->value.s : "";
}

size_t hlo_type_bytes(const HloType *t) {
    return t->kind == HT_TENSOR ? (size_t)t->elems * dtype_bytes(t->dtype) : 0;
}

HloFunc *hlo_func_find(Hlo *h, const char *name) {
    struct HloIntern *in = h->intern;
    for (; in->funcs_seen < h->funcs.n; in->funcs_seen++) {
        const char *s = h->funcs.at[in->funcs_seen].name;
        table_insert(h->arena, &in->funcs, hash64(3, s, strlen(s)), in->funcs_seen + 1);
    }
    uint64_t hash = hash64(3, name, strlen(name));
    uint32_t at = UINT32_MAX;
    for (uint32_t id; (id = table_next(&in->funcs, hash, &at));)
        if (!strcmp(h->funcs.at[id - 1].name, name))
            return &h->funcs.at[id - 1];
    return NULL;
}

void hlo_keep_only(Hlo *h, const HloFunc *f) {
    h->funcs.at[0] = *f;
    h->funcs.n = 1;
    h->intern->funcs = (Table){0};
    h->intern->funcs_seen = 0;
}

HloFunc *hlo_main(Hlo *h) {
    HloFunc *f = hlo_func_find(h, "main");
    for (uint32_t i = 0; !f && i < h->funcs.n; i++)
        if (!h->funcs.at[i].is_private && h->funcs.at[i].body)
            f = &h->funcs.at[i];
    if (!f || !f->body) {
        ctx_hint(h->ctx, "the entry is the public function @main");
        ctx_fail(h->ctx, OTRN_VERIFY, (Place){.file = h->file}, "the module has no entry function");
    }
    return f;
}

// Walks to the first file location; callee before caller, bounded by the table's size.
// The first location of a file, or of the program's own text, on the way from loc; NULL when there is none.
static const HloLoc *loc_place(const Hlo *h, LocId loc) {
    for (uint32_t steps = 0; loc && steps <= h->locs.n; steps++) {
        const HloLoc *l = &h->locs.at[loc];
        if (l->kind == HL_FILE || l->kind == HL_HERE)
            return l;
        if (l->kind == HL_UNKNOWN)
            break;
        LocId next = l->a ? l->a : l->b;
        if (l->kind == HL_FUSED && l->a && h->locs.at[l->a].kind == HL_UNKNOWN)
            next = l->b;
        loc = next;
    }
    return NULL;
}

Place hlo_place(const Hlo *h, LocId loc) {
    const HloLoc *l = loc_place(h, loc);
    return l ? (Place){h->strs.at[l->str], l->line, l->col} : (Place){.file = h->file};
}

bool hlo_loc_is_users(const Hlo *h, LocId loc) {
    const HloLoc *l = loc_place(h, loc);
    return l && l->kind == HL_FILE;
}

const char *hlo_loc_name(const Hlo *h, LocId loc) {
    for (uint32_t steps = 0; loc && steps <= h->locs.n; steps++) {
        const HloLoc *l = &h->locs.at[loc];
        if (l->kind == HL_NAME)
            return h->strs.at[l->str];
        loc = l->a;
    }
    return "";
}

const char *hlo_arg_name(const Hlo *h, const HloFunc *f, uint32_t i) {
    const char *told = f->arg_attrs ? hlo_named_text(f->arg_attrs[i], f->narg_attrs[i], "jax.arg_info") : "";
    return !*told && f->arg_locs ? hlo_loc_name(h, f->arg_locs[i]) : told;
}

_Noreturn void hlo_fail(Hlo *h, OpId op, otrn_status code, const char *fmt, ...) {
    char text[800];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    const HloOpRow *row = hlo_row(hlo_at(h, op));
    const char *name = hlo_loc_name(h, hlo_at(h, op)->loc);
    ctx_fail(h->ctx, code, hlo_place(h, hlo_at(h, op)->loc), "%s.%s: %s%s%s%s",
             hlo_dialect_names[row->dialect], row->name, text, *name ? " (in " : "", name,
             *name ? ")" : "");
}

bool hlo_fused_fits(const int64_t *in, int in_rank, const int64_t *out, int out_rank, int64_t kind) {
    if (kind < FUSED_SAME || kind > FUSED_COLUMNS || in_rank > out_rank || (kind == FUSED_SAME && in_rank != out_rank))
        return false;
    // what is repeated may stand there with dimensions of size one
    while (kind == FUSED_ROWS && in_rank && in[in_rank - 1] == 1)
        in_rank--;
    while (kind == FUSED_COLUMNS && in_rank && in[0] == 1)
        in++, in_rank--;
    const int64_t *from = kind == FUSED_COLUMNS ? out + (out_rank - in_rank) : out;
    return !in_rank || !memcmp(in, from, (size_t)in_rank * sizeof *in);
}

static bool is_row_of(const HloType *t, int64_t columns, bool *full) {
    *full = t->rank == 1;
    return t->kind == HT_TENSOR && !t->text && !t->dynamic && t->rank <= 1 && (!*full || t->dims[0] == columns);
}

bool hlo_rows_fit(const Hlo *h, const HloOp *op, int64_t *rows, int64_t *columns, char why[128]) {
    const HloRegion *r = hlo_op_region(h, op, 0);
    uint32_t n;
    const int64_t *kinds = hlo_ints(op, AK_BROADCAST_DIMENSIONS, &n);
    const HloOp *ret = r->ops.n ? hlo_at(h, r->ops.at[r->ops.n - 1]) : NULL;
    *columns = hlo_int(op, AK_DIMENSION, 0);
    *rows = 0;
    if (*columns < 1 || n != op->noperands || r->nargs != n || !op->nresults || !ret ||
        ret->code != HLO_RETURN || ret->noperands != op->nresults)
        return snprintf(why, 128, "operands, results and the region's values are not as many"), false;
    for (uint32_t i = 0; i < op->nresults; i++) {
        const HloType *t = hlo_value_type(h, op->results + i), *in = hlo_value_type(h, hlo_operand(h, ret, i));
        bool full, fits = is_row_of(in, *columns, &full) && t->kind == HT_TENSOR && !t->text && !t->dynamic &&
                          t->dtype == in->dtype && t->elems >= 1 && !(full && t->elems % *columns);
        int64_t has = full ? t->elems / *columns : t->elems;
        if (!fits || (*rows && has != *rows))
            return snprintf(why, 128, "result %u is not what the region returns for all rows", i), false;
        *rows = has;
    }
    for (uint32_t i = 0; i < n; i++) {
        const HloType *t = hlo_value_type(h, hlo_operand(h, op, i)), *in = hlo_value_type(h, r->args + i);
        bool full, fits = is_row_of(in, *columns, &full) && t->kind == HT_TENSOR && !t->text && !t->dynamic &&
                          t->dtype == in->dtype && t->elems > 0 && full == (kinds[i] != FUSED_ROWS);
        if (fits && kinds[i] == FUSED_SAME)
            fits = t->elems / *columns == *rows && t->elems % *columns == 0;
        else if (fits && kinds[i] == FUSED_ROWS)
            fits = t->elems == 1 || t->elems == *rows;
        else if (fits)
            fits = (kinds[i] == FUSED_COLUMNS || kinds[i] == FUSED_BLOCKS) && t->elems % *columns == 0 &&
                   *rows % (t->elems / *columns) == 0;
        if (!fits)
            return snprintf(why, 128, "operand %u does not fit %lld rows of %lld columns", i, (long long)*rows, (long long)*columns), false;
    }
    return true;
}

void hlo_tensor_expand(const Hlo *h, const HloAttr *t, void *out) {
    assert(t->kind == HA_TENSOR);
    const HloType *ty = hlo_type(h, t->type);
    size_t elem = dtype_bytes(ty->dtype), total = hlo_type_bytes(ty);
    if (t->n == total) {
        if (total)
            memcpy(out, t->data, total);
        return;
    }
    assert(t->n == elem);
    if (total < elem)
        return;
    memcpy(out, t->data, elem);
    for (size_t done = elem; done < total;) { // doubling copy
        size_t part = done < total - done ? done : total - done;
        memcpy((uint8_t *)out + done, out, part);
        done += part;
    }
}

HloCall hlo_call_passes_on(const char *target) {
    static const struct { const char *name; HloCall call; } rows[] = {
        {"Sharding", HLO_CALL_ANNOTATES},
        {"SPMDFullToShardShape", HLO_CALL_ANNOTATES},
        {"SPMDShardToFullShape", HLO_CALL_ANNOTATES},
        {"annotate_device_placement", HLO_CALL_ANNOTATES},
        {"LayoutConstraint", HLO_CALL_ANNOTATES},
        {"xla.sdy.FuncResultSharding", HLO_CALL_MOVES},
        {"xla.sdy.GlobalToLocalShape", HLO_CALL_MOVES},
        {"xla.sdy.LocalToGlobalShape", HLO_CALL_MOVES},
        {"MoveToDevice", HLO_CALL_MOVES},
        {"MoveToHost", HLO_CALL_MOVES},
        {"PinToDevice", HLO_CALL_MOVES},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].name, target))
            return rows[i].call;
    return HLO_CALL_OTHER;
}

static const struct {
    uint16_t from, to;
} broadcasting[] = {
    {HLO_CHLO_BROADCAST_ADD, HLO_ADD},
    {HLO_CHLO_BROADCAST_AND, HLO_AND},
    {HLO_CHLO_BROADCAST_ATAN2, HLO_ATAN2},
    {HLO_CHLO_BROADCAST_COMPARE, HLO_COMPARE},
    {HLO_CHLO_BROADCAST_COMPLEX, HLO_COMPLEX},
    {HLO_CHLO_BROADCAST_DIVIDE, HLO_DIVIDE},
    {HLO_CHLO_BROADCAST_MAXIMUM, HLO_MAXIMUM},
    {HLO_CHLO_BROADCAST_MINIMUM, HLO_MINIMUM},
    {HLO_CHLO_BROADCAST_MULTIPLY, HLO_MULTIPLY},
    {HLO_CHLO_BROADCAST_NEXT_AFTER, HLO_CHLO_NEXT_AFTER},
    {HLO_CHLO_BROADCAST_OR, HLO_OR},
    {HLO_CHLO_BROADCAST_POLYGAMMA, HLO_CHLO_POLYGAMMA},
    {HLO_CHLO_BROADCAST_POWER, HLO_POWER},
    {HLO_CHLO_BROADCAST_REMAINDER, HLO_REMAINDER},
    {HLO_CHLO_BROADCAST_SELECT, HLO_SELECT},
    {HLO_CHLO_BROADCAST_SHIFT_LEFT, HLO_SHIFT_LEFT},
    {HLO_CHLO_BROADCAST_SHIFT_RIGHT_ARITHMETIC, HLO_SHIFT_RIGHT_ARITHMETIC},
    {HLO_CHLO_BROADCAST_SHIFT_RIGHT_LOGICAL, HLO_SHIFT_RIGHT_LOGICAL},
    {HLO_CHLO_BROADCAST_SUBTRACT, HLO_SUBTRACT},
    {HLO_CHLO_BROADCAST_XOR, HLO_XOR},
    {HLO_CHLO_BROADCAST_ZETA, HLO_CHLO_ZETA},
};

int hlo_broadcast_base(int code) {
    for (size_t i = 0; i < sizeof broadcasting / sizeof *broadcasting; i++)
        if (broadcasting[i].from == code)
            return broadcasting[i].to;
    return HLO_NONE;
}
