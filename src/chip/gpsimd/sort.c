// SPDX-License-Identifier: Apache-2.0
// sort.c — stable merge sort of lines by a comparator, and top_k.
//
// Most comparators compare the same function of both sides: compare(f(a), f(b)), where f may put
// NaN and zero into a normal form first. Then f runs once per element over lanes, its values become
// integer keys in the order wanted, and keys are merged. Any other comparator is called for each
// comparison. A line is a list of (key, index); operands are permuted by index at the end.
#include "chip/gpsimd/gp.h"

typedef struct Item {
    int64_t key, index;
} Item;

// --- sorting items -----------------------------------------------------------------------------

typedef bool LessFn(const void *ctx, const Item *a, const Item *b); // a goes before b

static bool key_less(const void *ctx, const Item *a, const Item *b) {
    (void)ctx;
    return a->key < b->key;
}

#define RUN 16
// Sorted result in `a`; b is as large.
static inline __attribute__((always_inline)) void merge_sort(Item *a, Item *b, int64_t n,
                                                             LessFn *less, const void *ctx) {
    for (int64_t lo = 0; lo < n; lo += RUN) { // short runs by insertion
        int64_t hi = lo + RUN < n ? lo + RUN : n;
        for (int64_t i = lo + 1; i < hi; i++) {
            Item x = a[i];
            int64_t k = i;
            for (; k > lo && less(ctx, &x, &a[k - 1]); k--)
                a[k] = a[k - 1];
            a[k] = x;
        }
    }
    Item *from = a, *to = b;
    for (int64_t w = RUN; w < n; w *= 2) {
        for (int64_t lo = 0; lo < n; lo += 2 * w) {
            int64_t mid = lo + w < n ? lo + w : n, hi = lo + 2 * w < n ? lo + 2 * w : n;
            int64_t l = lo, r = mid, o = lo;
            while (l < mid && r < hi)
                to[o++] = less(ctx, &from[r], &from[l]) ? from[r++] : from[l++];
            while (l < mid)
                to[o++] = from[l++];
            while (r < hi)
                to[o++] = from[r++];
        }
        Item *t = from;
        from = to, to = t;
    }
    if (from != a)
        memcpy(a, from, (size_t)n * sizeof *a);
}

static void sort_keys(Item *a, Item *b, int64_t n) { merge_sort(a, b, n, key_less, NULL); }

// --- keys --------------------------------------------------------------------------------------

// Integer keys that order like the elements; floats by their total order, or with -0 equal to 0
// (quiet comparison: NaN has no place there, *nan tells when one was met).
static void keys_of(Item *items, const void *p, int dtype, bool total, bool down, size_t n,
                    bool *nan) {
    size_t bytes = dtype_bytes(dtype);
    for (size_t i = 0; i < n; i++) {
        const char *at = (const char *)p + i * bytes;
        int64_t key;
        if (dtype_is_float(dtype)) {
            double v = dtype_to_f64(dtype, at);
            *nan |= v != v;
            v = v == 0 && !total ? 0 : v;
            memcpy(&key, &v, sizeof key);
            key = key < 0 ? key ^ INT64_MAX : key;
        } else {
            key = dtype_to_i64(dtype, at);
            if (dtype == DT_UI64)
                key = (int64_t)((uint64_t)key ^ (uint64_t)INT64_MIN);
        }
        items[i].key = down ? ~key : key;
    }
}

#define MIRROR_VISITS 4096 // comparators are small; a larger one is called instead

// The step whose value register `reg` holds before step `before`; NULL: it is there from the start.
static const KStep *step_of(const KProg *p, int reg, const KStep *before) {
    for (const KStep *s = before; s-- > p->steps;)
        if (s->dst == reg)
            return s;
    return NULL;
}

static bool same_constant(const KProg *p, int a, int b) {
    const uint8_t *at[2] = {0};
    for (int i = 0; i < p->nconsts; i++) {
        at[0] = p->const_regs[i] == a ? p->consts[i] : at[0];
        at[1] = p->const_regs[i] == b ? p->consts[i] : at[1];
    }
    return at[0] && at[1] && p->dtypes[a] == p->dtypes[b] &&
           !memcmp(at[0], at[1], dtype_bytes(p->dtypes[a]));
}

// Register a before step at_a and b before at_b hold the same expression, b of the right sides where
// a takes the left ones.
static bool mirrors(const KProg *p, int a, const KStep *at_a, int b, const KStep *at_b,
                    int *visits) {
    if (a < p->ninputs || b < p->ninputs)
        return a < p->ninputs && a % 2 == 0 && b == a + 1;
    if (--*visits < 0)
        return false;
    const KStep *sa = step_of(p, a, at_a), *sb = step_of(p, b, at_b);
    if (!sa && !sb)
        return a == b || same_constant(p, a, b);
    if (!sa || !sb || sa->op != sb->op || memcmp(sa->attr, sb->attr, sizeof sa->attr))
        return false;
    for (int i = 0; i < hlo_op_rows[sa->op].operands; i++)
        if (!mirrors(p, sa->src[i], sa, sb->src[i], sb, visits))
            return false;
    return true;
}

typedef struct KeyPlan { // comparator = compare(f(left), f(right)); f's value is in register `reg`
    bool ok, total, down;
    uint16_t reg;
} KeyPlan;

static KeyPlan key_plan(const KProg *p) {
    KeyPlan none = {0};
    const KStep *last = p->nsteps ? &p->steps[p->nsteps - 1] : NULL;
    if (!last || last->op != HLO_COMPARE || kern_prog_loops(p) || p->outs[0] != last->dst ||
        dtype_is_complex(p->dtypes[last->src[0]]))
        return none;
    int a = last->src[0], b = last->src[1];
    bool down = last->attr[0] == CMP_GT, up = last->attr[0] == CMP_LT;
    if ((!up && !down) || last->dst == a || last->dst == b) // f's value is read afterwards
        return none;
    int visits = MIRROR_VISITS;
    if (mirrors(p, a, last, b, last, &visits))
        return (KeyPlan){true, last->attr[1] == CMPT_TOTALORDER, down, (uint16_t)a};
    if (mirrors(p, b, last, a, last, &visits)) // the same with the sides exchanged
        return (KeyPlan){true, last->attr[1] == CMPT_TOTALORDER, !down, (uint16_t)b};
    return none;
}

// --- the kernel --------------------------------------------------------------------------------

static bool sort_axis(const Kern *k, int64_t *axis) {
    int rank = k->in[0].rank;
    *axis = gp_int(k, AK_DIMENSION, -1);
    *axis += *axis < 0 ? rank : 0;
    return *axis >= 0 && *axis < rank;
}

bool gp_sort_check(const Kern *k) {
    int64_t axis;
    if (k->nregions != 1 || k->nout < 1 || k->nout > UINT16_MAX / 2)
        return false;
    const KProg *p = &k->regions[0];
    if (k->nin != k->nout + p->ncaptures || p->ninputs != 2 * k->nout || p->nouts != 1 ||
        p->dtypes[p->outs[0]] != DT_I1 || !sort_axis(k, &axis))
        return false;
    for (uint32_t i = 0; i < k->nout; i++)
        if (!gp_same_type(&k->in[i], &k->out[i]) || !gp_same_dims(&k->in[i], &k->in[0]) ||
            p->dtypes[2 * i] != k->in[i].dtype || p->dtypes[2 * i + 1] != k->in[i].dtype)
            return false;
    return true;
}

// Items twice, registers, and blocks of the operands for f.
static size_t sort_slot_bytes(const Kern *k) {
    int64_t axis;
    sort_axis(k, &axis);
    size_t n = (size_t)k->in[0].dims[axis], bytes = 2 * gp_align(n * sizeof(Item));
    for (uint32_t i = 0; i < k->nout; i++)
        bytes += gp_align(LANE_BLOCK * dtype_bytes(k->in[i].dtype));
    return bytes + prog_slot_bytes(&k->regions[0]);
}

size_t gp_sort_scratch(const Kern *k, int threads) {
    return prog_shared_bytes(&k->regions[0]) + (size_t)threads * sort_slot_bytes(k);
}

typedef struct SortJob {
    const GpCall *c;
    KeyPlan key;
    int64_t n, inner, lines; // line length, its stride, number of lines
    size_t slots;
    char *slot0;
} SortJob;

typedef struct SortLine { // what the comparator needs
    const SortJob *j;
    Prog prog;
    char *blocks;
    int64_t base; // first element of the line
} SortLine;

static char *element(const SortLine *s, uint32_t i, int64_t at) {
    return (char *)s->j->c->in[i] +
           (s->base + at * s->j->inner) * (int64_t)dtype_bytes(s->j->c->k->in[i].dtype);
}

static bool prog_less(const void *ctx, const Item *a, const Item *b) {
    const SortLine *s = ctx;
    for (uint32_t i = 0; i < s->j->c->k->nout; i++) {
        s->prog.at[2 * i] = element(s, i, a->index);
        s->prog.at[2 * i + 1] = element(s, i, b->index);
    }
    prog_run(&s->prog, 1);
    return *(const uint8_t *)prog_out(&s->prog, 0);
}

// f over the line, block by block; both sides of the comparator see the same element.
static bool line_keys(const SortLine *s, Item *items) {
    const SortJob *j = s->j;
    const Kern *k = j->c->k;
    bool nan = false;
    for (int64_t at = 0; at < j->n; at += LANE_BLOCK) {
        size_t m = (size_t)(j->n - at < LANE_BLOCK ? j->n - at : LANE_BLOCK);
        char *block = s->blocks;
        for (uint32_t i = 0; i < k->nout; i++) {
            size_t bytes = dtype_bytes(k->in[i].dtype);
            Copy c;
            copy_init(&c, bytes, 1, &(CopyAxis){(int64_t)m, 1, j->inner});
            copy_serial(&c, block, element(s, i, at));
            s->prog.at[2 * i] = s->prog.at[2 * i + 1] = block;
            block += gp_align(LANE_BLOCK * bytes);
        }
        prog_run(&s->prog, m);
        keys_of(items + at, s->prog.at[j->key.reg], s->prog.p->dtypes[j->key.reg], j->key.total,
                j->key.down, m, &nan);
    }
    return j->key.total || !nan;
}

static void permute(const SortLine *s, const Item *items) {
    const Kern *k = s->j->c->k;
    for (uint32_t i = 0; i < k->nout; i++) {
        size_t bytes = dtype_bytes(k->in[i].dtype);
        int64_t n = s->j->n, step = s->j->inner * (int64_t)bytes;
        const char *in = element(s, i, 0);
        char *out = (char *)s->j->c->out[i] + s->base * (int64_t)bytes;
        if (bytes == 4) // most; a size that is known is an instruction
            for (int64_t at = 0; at < n; at++)
                memcpy(out + at * step, in + items[at].index * step, 4);
        else if (bytes == 8)
            for (int64_t at = 0; at < n; at++)
                memcpy(out + at * step, in + items[at].index * step, 8);
        else
            for (int64_t at = 0; at < n; at++)
                memcpy(out + at * step, in + items[at].index * step, bytes);
    }
}

static void sort_slot(void *arg, size_t begin, size_t end) {
    const SortJob *j = arg;
    const Kern *k = j->c->k;
    for (size_t slot = begin; slot < end; slot++) {
        char *room = j->slot0 + slot * sort_slot_bytes(k);
        Item *items = (Item *)room, *spare = (Item *)(room + gp_align((size_t)j->n * sizeof(Item)));
        room += 2 * gp_align((size_t)j->n * sizeof(Item));
        SortLine s = {.j = j};
        prog_init(&s.prog, &k->regions[0], j->c->scratch, room, gp_captures(j->c, 0));
        s.blocks = room + prog_slot_bytes(&k->regions[0]);
        int64_t from = j->lines * (int64_t)slot / (int64_t)j->slots;
        int64_t to = j->lines * (int64_t)(slot + 1) / (int64_t)j->slots;
        for (int64_t line = from; line < to; line++) {
            s.base = line / j->inner * j->n * j->inner + line % j->inner;
            for (int64_t i = 0; i < j->n; i++)
                items[i] = (Item){0, i};
            if (j->key.ok && line_keys(&s, items))
                sort_keys(items, spare, j->n);
            else
                merge_sort(items, spare, j->n, prog_less, &s);
            permute(&s, items);
        }
    }
}

otrn_status gp_sort_run(const GpCall *c) {
    const Kern *k = c->k;
    int64_t axis, strides[OTRN_MAX_RANK];
    if (!k->in[0].elems)
        return OTRN_OK;
    sort_axis(k, &axis);
    gp_strides(&k->in[0], strides);
    SortJob j = {
        .c = c, .key = key_plan(&k->regions[0]), .n = k->in[0].dims[axis], .inner = strides[axis]};
    j.lines = k->in[0].elems / j.n;
    j.slot0 = prog_resolve(&k->regions[0], gp_level(c->level), c->scratch);
    j.slots = gp_slots(c, (size_t)j.lines);
    pool_run(c->pool, j.slots, 1, sort_slot, &j);
    return OTRN_OK;
}

// --- top_k -------------------------------------------------------------------------------------

bool gp_top_k_check(const Kern *k) {
    if (k->nin != 1 || k->nout != 2 || k->in[0].rank < 1 || dtype_is_complex(k->in[0].dtype))
        return false;
    int last = k->in[0].rank - 1;
    int64_t n = gp_int(k, AK_K, -1);
    if (n < 0 || n > k->in[0].dims[last] || k->out[0].dtype != k->in[0].dtype ||
        k->out[1].dtype != DT_I32 || !gp_same_dims(&k->out[0], &k->out[1]) ||
        k->out[0].rank != k->in[0].rank || k->out[0].dims[last] != n)
        return false;
    for (int d = 0; d < last; d++)
        if (k->out[0].dims[d] != k->in[0].dims[d])
            return false;
    return true;
}

size_t gp_top_k_scratch(const Kern *k, int threads) {
    size_t n = (size_t)k->in[0].dims[k->in[0].rank - 1];
    return (size_t)threads * 2 * gp_align(n * sizeof(Item));
}

static void top_k_slot(void *arg, size_t begin, size_t end) {
    const SortJob *j = arg;
    const Kern *k = j->c->k;
    int64_t take = gp_int(k, AK_K, 0), bytes = (int64_t)dtype_bytes(k->in[0].dtype);
    bool largest = gp_int(k, AK_LARGEST, 1), nan = false;
    for (size_t slot = begin; slot < end; slot++) {
        Item *items = (Item *)(j->slot0 + slot * 2 * gp_align((size_t)j->n * sizeof(Item)));
        Item *spare = (Item *)((char *)items + gp_align((size_t)j->n * sizeof(Item)));
        int64_t from = j->lines * (int64_t)slot / (int64_t)j->slots;
        int64_t to = j->lines * (int64_t)(slot + 1) / (int64_t)j->slots;
        for (int64_t line = from; line < to; line++) {
            const char *x = (const char *)j->c->in[0] + line * j->n * bytes;
            for (int64_t i = 0; i < j->n; i++)
                items[i].index = i;
            keys_of(items, x, k->in[0].dtype, true, largest, (size_t)j->n, &nan);
            sort_keys(items, spare, j->n);
            for (int64_t i = 0; i < take; i++) {
                memcpy((char *)j->c->out[0] + (line * take + i) * bytes, x + items[i].index * bytes,
                       (size_t)bytes);
                ((int32_t *)j->c->out[1])[line * take + i] = (int32_t)items[i].index;
            }
        }
    }
}

otrn_status gp_top_k_run(const GpCall *c) {
    const Kern *k = c->k;
    if (!k->out[0].elems)
        return OTRN_OK;
    SortJob j = {.c = c, .n = k->in[0].dims[k->in[0].rank - 1], .slot0 = c->scratch};
    j.lines = k->in[0].elems / j.n;
    j.slots = gp_slots(c, (size_t)j.lines);
    pool_run(c->pool, j.slots, 1, top_k_slot, &j);
    return OTRN_OK;
}
