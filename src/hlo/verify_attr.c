// SPDX-License-Identifier: Apache-2.0
// verify_attr.c — attributes with rules of their own: groups of devices, accuracies, algorithms, layouts, names.
#include "coll/shape.h"
#include "hlo/coll.h"
#include "hlo/verify.h"

// --- devices -----------------------------------------------------------------------------------------

// "#stablehlo.replica_group_mesh_axes<mesh = @name, …>": the module must have the mesh it names.
static void groups_by_mesh(Verify *v, const char *text) {
    const char *at = strstr(text, "mesh = @");
    if (!at)
        return;
    at += 8 + (at[8] == '"');
    size_t n = strcspn(at, "\", >");
    const HloNamed *all = hlo_named_find(v->h->extra, v->h->nextra, "sdy.meshes");
    for (uint32_t i = 0; all && all->value.kind == HA_DICT && i < all->value.n; i++)
        if (strlen(all->value.dict[i].name) == n && !memcmp(all->value.dict[i].name, at, n))
            return;
    if (hlo_func_find(v->h, arena_strndup(v->h->arena, at, n)))
        return; // a symbol, if none to run with
    verify_break(v, NULL, "replica_groups: there is no mesh @%.*s", (int)(n < 100 ? n : 100), at);
}

// A grid of many devices that holds each once, as groups of a mesh do; false: they have to be looked at.
static bool is_whole(Verify *v, const HloAttr *g) {
    VerifyWhole *w = v->whole;
    enum { KEPT = sizeof w->ids / sizeof *w->ids };
    IdShape s;
    if (!g || g->kind != HA_INTS2 || g->n < SHAPE_FROM)
        return false;
    for (uint32_t i = 0; i < KEPT; i++)
        if (w->ids[i] == g->ints && w->n[i] == g->n)
            return true;
    if (g->ints[0] || !shape_of(g->ints, g->n, &s) || !shape_is_whole(&s))
        return false;
    w->ids[w->next % KEPT] = g->ints;
    w->n[w->next++ % KEPT] = g->n;
    return true;
}

static void check_ids(Verify *v, const HloAttr *g, const GroupRules *r) {
    uint32_t n = g && g->kind == HA_INTS2 ? g->n : 0, ids = 0;
    uint8_t *seen = ARENA_NEWN(v->h->arena, uint8_t, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        int64_t id = g->ints[i];
        if (id == -1 && !r->same_size)
            continue; // fills a short group up
        ids++;
        if (id < 0 || (r->complete && id >= n))
            verify_break(v, r->range, "replica_groups holds %lld, which is no process of %u", (long long)id, n);
        if (id < n && seen[id]++)
            verify_break(v, r->unique, "replica_groups holds %lld twice", (long long)id);
    }
    for (uint32_t i = 0; r->complete && i < ids; i++)
        if (!seen[i])
            verify_break(v, r->complete, "replica_groups holds %u processes, but not %u", ids, i);
    if (!r->complete) // ids may be any; those of the groups are few
        for (uint32_t i = 0; i < n && n <= 4096; i++)
            for (uint32_t k = 0; k < i; k++)
                if (g->ints[i] >= n && g->ints[i] == g->ints[k])
                    verify_break(v, r->unique, "replica_groups holds %lld twice", (long long)g->ints[i]);
}

static void check_groups(Verify *v, const HloAttr *g, const GroupRules *r) {
    if (g && g->kind == HA_OPAQUE)
        groups_by_mesh(v, g->s);
    if (!is_whole(v, g))
        check_ids(v, g, r);
    if (r->channel && hlo_int(v->op, AK_USE_GLOBAL_DEVICE_IDS, 0))
        verify_that(v, hlo_int(v->op, AK_CHANNEL_ID, 0) > 0, r->channel, "use_global_device_ids needs a positive channel");
}

void verify_groups(Verify *v, const GroupRules *r) { check_groups(v, hlo_attr(v->op, AK_REPLICA_GROUPS), r); }

void verify_pairs(Verify *v) {
    const HloAttr *p = hlo_attr(v->op, AK_SOURCE_TARGET_PAIRS);
    if (!p || !p->n)
        return;
    verify_that(v, p->cols == 2, "C1", "source_target_pairs must hold pairs");
    uint32_t n = p->n / 2;
    int64_t *sorted = ARENA_NEWN(v->h->arena, int64_t, n);
    for (uint32_t side = 0; side < 2; side++) {
        for (uint32_t i = 0; i < n; i++) { // insertion: pairs are as many as devices
            int64_t id = p->ints[2 * i + side];
            verify_that(v, id >= 0, "C4", "source_target_pairs holds a negative process id");
            uint32_t at = i;
            for (; at > 0 && sorted[at - 1] > id && n <= 4096; at--)
                sorted[at] = sorted[at - 1];
            verify_that(v, !at || sorted[at - 1] != id, side ? "C3" : "C2", side ? "a target appears twice" : "a source appears twice");
            sorted[at] = id;
        }
    }
}

// --- accuracy and algorithms -------------------------------------------------------------------------

void verify_result_accuracy(Verify *v) {
    const HloAttr *a = hlo_attr(v->op, AK_RESULT_ACCURACY);
    if (!a || a->kind != HA_DICT)
        return;
    const HloNamed *mode = hlo_named_find(a->dict, a->n, "mode"), *ulps = hlo_named_find(a->dict, a->n, "ulps");
    const HloNamed *atol = hlo_named_find(a->dict, a->n, "atol"), *rtol = hlo_named_find(a->dict, a->n, "rtol");
    double x = atol ? atol->value.f : 0, y = rtol ? rtol->value.f : 0;
    int64_t u = ulps ? ulps->value.i : 0;
    verify_that(v, x >= 0 && y >= 0 && u >= 0, NULL, "tolerances of result_accuracy must not be negative");
    verify_that(v, (mode && mode->value.i == 2) || (x == 0 && y == 0 && u == 0), NULL,
                "result_accuracy has tolerances, but its mode is not TOLERANCE");
}

void verify_precision(Verify *v, const char *rule) {
    const HloAttr *p = hlo_attr(v->op, AK_PRECISION_CONFIG); // upstream also takes shorter lists
    verify_that(v, !p || p->n <= 2, rule, "precision_config needs two entries");
}

static int algorithm_type(Verify *v, HloAttrKey key) {
    const HloAttr *a = hlo_attr(v->op, key);
    return a && a->kind == HA_TYPE ? hlo_type(v->h, a->type)->dtype : DT_INVALID;
}

// Which algorithms exist: (lhs and rhs type, accumulator, products per element).
static const struct {
    uint8_t in, sum, products;
} algorithms[] = {
    {DT_F16, DT_F16, 1},  {DT_F16, DT_F32, 1},  {DT_BF16, DT_BF16, 1}, {DT_BF16, DT_F32, 1}, {DT_BF16, DT_F32, 3},
    {DT_BF16, DT_F32, 6}, {DT_BF16, DT_F32, 9}, {DT_TF32, DT_F32, 1},  {DT_TF32, DT_F32, 3}, {DT_F32, DT_F32, 1},
    {DT_F64, DT_F64, 1},
};

static bool algorithm_known(Verify *v) {
    int lhs = algorithm_type(v, AK_LHS_PRECISION_TYPE), rhs = algorithm_type(v, AK_RHS_PRECISION_TYPE);
    int sum = algorithm_type(v, AK_ACCUMULATION_TYPE);
    int64_t products = hlo_int(v->op, AK_NUM_PRIMITIVE_OPERATIONS, 0);
    if (hlo_int(v->op, AK_LHS_COMPONENT_COUNT, 0) != 1 || hlo_int(v->op, AK_RHS_COMPONENT_COUNT, 0) != 1)
        return false;
    if (dtype_is_float(lhs) && dtype_row(lhs)->bits == 8 && dtype_is_float(rhs) && dtype_row(rhs)->bits == 8)
        return sum == DT_F32 && products == 1;
    if (hlo_int(v->op, AK_ALLOW_IMPRECISE_ACCUMULATION, 0))
        return false;
    for (size_t i = 0; i < sizeof algorithms / sizeof *algorithms; i++)
        if (algorithms[i].in == lhs && lhs == rhs && algorithms[i].sum == sum && algorithms[i].products == products)
            return true;
    return false;
}

void verify_dot_algorithm(Verify *v) {
    if (!hlo_attr(v->op, AK_LHS_PRECISION_TYPE))
        return;
    const HloAttr *p = hlo_attr(v->op, AK_PRECISION_CONFIG);
    for (uint32_t i = 0; p && i < p->n; i++)
        verify_that(v, p->list[i].i == PREC_DEFAULT, "C21", "precision_config must be DEFAULT beside an algorithm");
    verify_that(v, hlo_int(v->op, AK_LHS_COMPONENT_COUNT, 0) > 0, "C22", "lhs_component_count must be positive");
    verify_that(v, hlo_int(v->op, AK_RHS_COMPONENT_COUNT, 0) > 0, "C23", "rhs_component_count must be positive");
    verify_that(v, hlo_int(v->op, AK_NUM_PRIMITIVE_OPERATIONS, 0) > 0, "C24", "num_primitive_operations must be positive");
    verify_that(v, algorithm_known(v), "I8", "no hardware is known to have this dot algorithm");
}

// --- names, layouts, aliases -------------------------------------------------------------------------

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool verify_is_namespaced(const char *name) { // word.word…, each of letters, digits, _ and $
    int words = 0;
    bool fresh = true; // a word begins here
    for (const char *s = name;; s++) {
        if (*s == '.' || !*s) {
            if (fresh)
                return false;
            words++;
            fresh = true;
            if (!*s)
                return words >= 2;
            continue;
        }
        bool digit = *s >= '0' && *s <= '9';
        if (!is_letter(*s) && *s != '_' && !(digit && !(fresh && words == 0)) && !(*s == '$' && !(fresh && words == 0)))
            return false;
        fresh = false;
    }
}

static void check_layout(Verify *v, const HloType *t, const HloAttr *a) {
    verify_that(v, t->kind != HT_TUPLE, NULL, "a tuple cannot have a layout");
    int rank = t->kind == HT_TENSOR ? t->rank : 0;
    bool seen[OTRN_MAX_RANK] = {0}, fits = a->kind == HA_INTS && a->n == (uint32_t)rank;
    for (uint32_t i = 0; fits && i < a->n; i++) {
        fits = a->ints[i] >= 0 && a->ints[i] < rank && !seen[a->ints[i]];
        if (fits)
            seen[a->ints[i]] = true;
    }
    verify_that(v, fits, NULL, "a layout must list each dimension of its tensor once");
}

static void check_layouts(Verify *v) {
    const HloAttr *in = hlo_attr(v->op, AK_OPERAND_LAYOUTS), *out = hlo_attr(v->op, AK_RESULT_LAYOUTS);
    uint32_t nin = in ? in->n : 0, nout = out ? out->n : 0;
    if (!nin && !nout)
        return;
    const HloType *only = v->op->nresults == 1 ? verify_value(v, v->op->results) : NULL;
    bool tuple = only && only->kind == HT_TUPLE; // its members have layouts then
    uint32_t want = tuple ? only->nmembers : v->op->nresults;
    if (nin != v->op->noperands || nout != want)
        verify_break(v, NULL, "%u operand layouts and %u result layouts for %u operands and %u results", nin, nout,
                     v->op->noperands, want);
    for (uint32_t i = 0; i < nin; i++)
        check_layout(v, verify_value(v, hlo_operand(v->h, v->op, i)), &in->list[i]);
    for (uint32_t i = 0; i < nout; i++)
        check_layout(v, tuple ? hlo_type(v->h, only->members[i]) : verify_value(v, v->op->results + i), &out->list[i]);
}

// The part of a value that a list of tuple indices names; 0 when there is none.
static TypeId part(Verify *v, TypeId t, const HloNamed *path) {
    for (uint32_t i = 0; path && path->value.kind == HA_INTS && i < path->value.n; i++) {
        const HloType *type = hlo_type(v->h, t);
        int64_t at = path->value.ints[i];
        if (type->kind != HT_TUPLE || at < 0 || at >= type->nmembers)
            return 0;
        t = type->members[at];
    }
    return t;
}

static void check_alias(Verify *v, const HloAttr *a) {
    const HloNamed *operand = a->kind == HA_DICT ? hlo_named_find(a->dict, a->n, "operand_index") : NULL;
    int64_t i = operand ? operand->value.i : -1;
    if (i < 0 || i >= v->op->noperands)
        verify_break(v, "I7", "an alias names operand %lld of %u", (long long)i, v->op->noperands);
    const HloNamed *out = hlo_named_find(a->dict, a->n, "output_tuple_indices");
    const HloNamed *in = hlo_named_find(a->dict, a->n, "operand_tuple_indices");
    TypeId x = part(v, v->h->values.at[hlo_operand(v->h, v->op, (uint32_t)i)].type, in), y = 0;
    if (v->op->nresults == 1)
        y = part(v, v->h->values.at[v->op->results].type, out);
    else if (out && out->value.kind == HA_INTS && out->value.n == 1 && out->value.ints[0] >= 0 &&
             out->value.ints[0] < v->op->nresults) // several results count as one tuple
        y = v->h->values.at[v->op->results + (ValueId)out->value.ints[0]].type;
    verify_that(v, x && y, "I7", "an alias names a part that is not there");
    verify_that(v, x == y, "I7", "an alias joins parts of different types");
}

// operand, output, then where pieces begin, how long they are, where they go in the receiver's output, how long those that come are: for each device
// of the group as many pieces.
static void check_ragged(Verify *v) {
    HloAttr groups;
    int64_t channel;
    if (v->op->noperands != 6 || v->op->nresults != 1)
        verify_break(v, NULL, "@" HLO_RAGGED_ALL_TO_ALL " takes 6 operands and gives 1 result; this has %u and %u", v->op->noperands, v->op->nresults);
    verify_that(v, coll_ragged(v->h, v->op, &groups, &channel), NULL,
                "backend_config of @" HLO_RAGGED_ALL_TO_ALL " must have replica_groups, a table of integers, and may have channel_id, an integer");
    check_groups(v, &groups, &(GroupRules){.same_size = true});
    const HloType *rows = verify_in(v, 0), *out = verify_in(v, 1);
    bool fits = rows->rank && rows->rank == out->rank && verify_elem_same(rows, out);
    for (int d = 1; fits && d < rows->rank; d++)
        fits = verify_dim_same(rows->dims[d], out->dims[d]);
    if (!fits)
        verify_break(v, NULL, "operand and output must have rows of one type; they are %s and %s", verify_type_text(v, rows), verify_type_text(v, out));
    verify_exact_type(v, NULL, out, verify_out(v, 0));
    const HloType *first = verify_in(v, 2);
    for (uint32_t i = 2; i < 6; i++) {
        const HloType *t = verify_in(v, i);
        if (t->rank != 1 || !dtype_is_int(t->dtype) || !verify_dim_same(t->dims[0], first->dims[0]))
            verify_break(v, NULL, "operand %u must be a list of integers, as long as the other offsets and sizes; it is %s", i, verify_type_text(v, t));
    }
    if (first->dims[0] != HLO_DYNAMIC && (!first->dims[0] || first->dims[0] % groups.cols))
        verify_break(v, NULL, "%lld offsets and sizes cannot be shared among groups of %u devices", (long long)first->dims[0], groups.cols);
}

void verify_custom_call(Verify *v) {
    const HloAttr *config = hlo_attr(v->op, AK_BACKEND_CONFIG), *aliases = hlo_attr(v->op, AK_OUTPUT_OPERAND_ALIASES);
    int64_t version = hlo_int(v->op, AK_API_VERSION, 1);
    bool empty = !config || (config->kind == HA_STR && !config->n);
    bool dict = config && (config->kind == HA_DICT || config->kind == HA_UNIT);
    verify_that(v, empty || dict == (version == 4), "I4",
                version == 4 ? "backend_config of a typed call must be a dictionary" : "backend_config must be a string");
    check_layouts(v);
    for (uint32_t i = 0; aliases && i < aliases->n; i++)
        check_alias(v, &aliases->list[i]);
    if (!strcmp(hlo_attr_str(v->op, AK_CALL_TARGET_NAME), HLO_RAGGED_ALL_TO_ALL))
        check_ragged(v);
}

void verify_infeed_layout(Verify *v) {
    const HloAttr *a = hlo_attr(v->op, AK_LAYOUT);
    if (!a || !a->n)
        return;
    verify_that(v, a->n + 1 == v->op->nresults, NULL, "layout needs one entry per result before the token");
    for (uint32_t i = 0; i < a->n; i++) {
        verify_that(v, a->list[i].kind == HA_LIST || a->list[i].kind == HA_INTS, NULL, "layout must hold lists");
        for (uint32_t k = 0; a->list[i].kind == HA_LIST && k < a->list[i].n; k++)
            verify_that(v, a->list[i].list[k].kind == HA_INT, NULL, "a layout must list integers");
    }
}
