// SPDX-License-Identifier: Apache-2.0
// gen_loops.c — programs of loops over tensors of the sizes at which products, row programs and transfers are cut. Part
// of gen.c.
//
// What loops carry and read is sliced, updated, multiplied, summed, sorted, gathered and scattered at places that counters
// say: rows, columns, blocks, strided, from behind, clamped at the border, in nested loops and in branches of them.
//
// Numbers are whole and small. Each value knows the largest magnitude it can have (`most`), and what would pass the numbers
// that its type holds without rounding is clamped first. Sums and products are then exact in any order, so that chip, evaluator
// and XLA must agree on every element, however often it went round. Functions of curves are taken of few arguments and rounded
// to whole numbers again, far from a tie.

#define LOOP_ELEMS (1 << 16) // of any value
#define LOOP_WORK (3 << 20)  // multiplications of a product
#define PLACES 4096          // more than any number made of counters

static const int loop_floats[] = {DT_F32, DT_F32, DT_F32, DT_BF16, DT_BF16, DT_F16, DT_F8E4M3FN, DT_F8E5M2};
static const int loop_others[] = {DT_I1, DT_I8, DT_I32, DT_I32, DT_I64, DT_F64, DT_C64};

// The whole numbers up to this one are exact.
static int64_t holds(int dtype) {
    const DtypeRow *row = dtype_row(dtype);
    if (row->cls == DC_BOOL)
        return 1;
    if (row->cls == DC_SINT)
        return (1ll << ((row->bits < 40 ? row->bits : 40) - 1)) - 1;
    return 1ll << ((row->cls == DC_COMPLEX ? 23 : row->man_bits < 40 ? row->man_bits : 40) + 1);
}

static GenValue made(Gen *g, GenType t, int64_t most) {
    add_value(g, t, true);
    g->vals[g->nvals - 1].most = most;
    return g->vals[g->nvals - 1];
}

// Forgets what was made since, but for this one.
static GenValue only(Gen *g, int scope, GenValue v) {
    g->nvals = scope;
    g->vals[g->nvals++] = v;
    return v;
}

static GenType of_type(GenType t, int dtype) {
    t.dtype = dtype;
    return t;
}

// --- single operations ------------------------------------------------------------------------------------

static void out_new(Gen *g, const char *op) { out(g, "%%v%d = stablehlo.%s ", g->next, op); }

static void out_end(Gen *g, const GenType *t) {
    out(g, " : ");
    out_type(g, t);
    out(g, "\n");
}

static GenValue splat(Gen *g, GenType t, int64_t v) {
    char cls = class_of(t.dtype);
    out(g, "%%v%d = stablehlo.constant dense<", g->next);
    if (cls == 'P')
        out(g, v ? "true" : "false");
    else
        out(g, cls == 'C' ? "(%lld.0, 0.0)" : cls == 'F' ? "%lld.0" : "%lld", (long long)v);
    out(g, ">");
    out_end(g, &t);
    return made(g, t, v < 0 ? -v : v);
}

static GenValue unary(Gen *g, const char *op, GenValue a) {
    out_new(g, op);
    out(g, "%%v%d", a.name);
    out_end(g, &a.type);
    return made(g, a.type, a.most);
}

static GenValue binary(Gen *g, const char *op, GenValue a, GenValue b, int64_t most) {
    out_new(g, op);
    out(g, "%%v%d, %%v%d", a.name, b.name);
    out_end(g, &a.type);
    return made(g, a.type, most);
}

static void out_three(Gen *g, const GenType *a, const GenType *b, const GenType *c, const GenType *to) {
    out(g, " : (");
    out_type(g, a), out(g, ", "), out_type(g, b);
    if (c)
        out(g, ", "), out_type(g, c);
    out(g, ") -> "), out_type(g, to), out(g, "\n");
}

// The same within [-most, most]. Complex numbers and bool stay as they are.
static GenValue tame(Gen *g, GenValue v, int64_t most) {
    if (v.most <= most || strchr("PC", class_of(v.type.dtype)))
        return v;
    GenType s = scalar(v.type.dtype);
    GenValue lo = splat(g, s, -most), hi = splat(g, s, most);
    out_new(g, "clamp");
    out(g, "%%v%d, %%v%d, %%v%d", lo.name, v.name, hi.name);
    out_three(g, &s, &v.type, &s, &v.type);
    return made(g, v.type, most);
}

static GenValue moved(Gen *g, GenValue v, GenType to) {
    out_arrow(g, &v.type, &to);
    return made(g, to, v.most);
}

static GenValue to_dtype(Gen *g, GenValue v, int dtype) {
    char from = class_of(v.type.dtype), to = class_of(dtype);
    if (v.type.dtype == dtype)
        return v;
    if (from == 'C') {
        out_new(g, "real");
        out(g, "%%v%d", v.name);
        return to_dtype(g, moved(g, v, of_type(v.type, DT_F32)), dtype);
    }
    if (to == 'C') {
        v = to_dtype(g, v, DT_F32);
        GenValue im = unary(g, "negate", v);
        out_new(g, "complex");
        out(g, "%%v%d, %%v%d", v.name, im.name);
        v.type.dtype = dtype;
        out_end(g, &v.type);
        return made(g, v.type, v.most);
    }
    v = tame(g, v, holds(dtype));
    out_new(g, "convert");
    out(g, "%%v%d", v.name);
    return moved(g, v, of_type(v.type, dtype));
}

static GenValue reshaped(Gen *g, GenValue v, int rank, const int64_t *dims) {
    GenType to = {.dtype = v.type.dtype, .rank = rank};
    memcpy(to.dims, dims, (size_t)rank * sizeof *dims);
    if (same_type(&to, &v.type))
        return v;
    out_new(g, "reshape");
    out(g, "%%v%d", v.name);
    return moved(g, v, to);
}

static GenValue without_ones(Gen *g, GenValue v) { // as x[i] leaves it
    GenType to = {0};
    for (int i = 0; i < v.type.rank; i++)
        if (v.type.dims[i] != 1)
            to.dims[to.rank++] = v.type.dims[i];
    return reshaped(g, v, to.rank, to.dims);
}

static GenValue transposed(Gen *g, GenValue v, const int64_t *order) {
    GenType to = v.type;
    for (int i = 0; i < to.rank; i++)
        to.dims[i] = v.type.dims[order[i]];
    out_new(g, "transpose");
    out(g, "%%v%d, dims = ", v.name);
    out_list(g, order, to.rank);
    return moved(g, v, to);
}

static GenValue spread(Gen *g, GenValue v, GenType to, const int64_t *dims) {
    to.dtype = v.type.dtype;
    out_new(g, "broadcast_in_dim");
    out(g, "%%v%d, dims = ", v.name);
    out_list(g, dims, v.type.rank);
    return moved(g, v, to);
}

// The first `n` elements, from where a counter says or from the first.
static GenValue some_of(Gen *g, GenValue v, int64_t n);

// --- what is in scope ---------------------------------------------------------------------------------------

static GenValue any_value(Gen *g) { // new ones and large ones more often
    uint32_t n = (uint32_t)g->nvals, last = n < 10 ? n : 10;
    GenValue v = g->vals[0];
    for (int i = 0; i < 5; i++) {
        v = g->vals[gen_rnd(g, 2) ? n - 1 - gen_rnd(g, last) : gen_rnd(g, n)];
        if (gen_elems(&v.type) > 16)
            break;
    }
    return v;
}

static GenValue any_tensor(Gen *g, int rank) { // of at least this rank, and mostly of some size
    GenValue v = any_value(g);
    for (int i = 0; i < 30 && (v.type.rank < rank || (gen_elems(&v.type) < 200 && i < 6)); i++)
        v = any_value(g);
    return v;
}

static int any_loop_dtype(Gen *g) { return g->dtypes[gen_rnd(g, (uint32_t)g->ndtypes)]; }

// A value with this many elements, of any shape and type but those of `not_this`; or a splat.
static GenValue with_elems(Gen *g, int64_t n, int not_this) {
    uint32_t at = gen_rnd(g, (uint32_t)g->nvals);
    for (int i = 0; i < g->nvals; i++) {
        GenValue v = g->vals[((int)at + i) % g->nvals];
        if (gen_elems(&v.type) == n && v.name != not_this)
            return v;
    }
    return some_of(g, any_tensor(g, 1), n);
}

// A value of this type: one in scope, or something in its form.
static GenValue like(Gen *g, GenType t, int not_this) {
    GenValue v = to_dtype(g, with_elems(g, gen_elems(&t), not_this), t.dtype);
    return reshaped(g, v, t.rank, t.dims);
}

// --- places that counters say -------------------------------------------------------------------------------

static GenValue i32_of(Gen *g, int64_t v) { return splat(g, scalar(DT_I32), v); }

static GenValue counter(Gen *g, bool outer) {
    if (!g->ncounters)
        return i32_of(g, gen_rnd(g, 4));
    return (GenValue){.name = g->counters[outer ? 0 : gen_rnd(g, (uint32_t)g->ncounters)], .type = scalar(DT_I32), .most = 8};
}

// Where a window of `w` among `n` begins; sometimes outside, from where it is moved in.
static GenValue place(Gen *g, int64_t n, int64_t w) {
    GenValue i = counter(g, false);
    int64_t last = n - w;
    switch (gen_rnd(g, 11)) {
    case 0:
        return i32_of(g, gen_rnd(g, (uint32_t)last + 1));
    case 1:
    case 2:
        return i;
    case 3:
        return binary(g, "multiply", i, i32_of(g, w), PLACES);
    case 4:
        return binary(g, "subtract", i32_of(g, last), i, PLACES);
    case 5:
        return binary(g, "subtract", i32_of(g, last), binary(g, "multiply", i, i32_of(g, w), PLACES), PLACES);
    case 6:
        return binary(g, "add", binary(g, "multiply", i, i32_of(g, 1 + gen_rnd(g, 3)), PLACES), i32_of(g, gen_rnd(g, (uint32_t)last + 1)), PLACES);
    case 7:
        return binary(g, "add", binary(g, "multiply", counter(g, true), i32_of(g, 2), PLACES), i, PLACES);
    case 8:
        return binary(g, "subtract", i, i32_of(g, 2), PLACES);
    case 9: { // as x[i] is written by JAX
        GenValue zero = i32_of(g, 0), on = binary(g, "add", i, i32_of(g, n), PLACES);
        int p = g->next;
        out(g, "%%v%d = stablehlo.compare LT, %%v%d, %%v%d : (tensor<i32>, tensor<i32>) -> tensor<i1>\n", g->next++, i.name, zero.name);
        out_new(g, "select");
        out(g, "%%v%d, %%v%d, %%v%d : tensor<i1>, tensor<i32>\n", p, on.name, i.name);
        return made(g, scalar(DT_I32), PLACES);
    }
    default: { // what data say
        GenValue v = to_dtype(g, some_of(g, any_tensor(g, 1), 1), DT_I32);
        return binary(g, "add", tame(g, reshaped(g, v, 0, v.type.dims), 600), i, PLACES);
    }
    }
}

static void out_places(Gen *g, int rank) {
    for (int d = 0; d < rank; d++)
        out(g, ", %%v%d", g->at[d]);
}

static void choose_places(Gen *g, const GenType *whole, const GenType *part) {
    int at[GEN_RANK_MAX];
    for (int d = 0; d < whole->rank; d++)
        at[d] = part->dims[d] == whole->dims[d] && gen_rnd(g, 8) ? i32_of(g, 0).name : place(g, whole->dims[d], part->dims[d]).name;
    memcpy(g->at, at, sizeof at);
}

static void out_index_types(Gen *g, int rank) {
    for (int d = 0; d < rank; d++)
        out(g, ", tensor<i32>");
}

static GenValue slice_at(Gen *g, GenValue v, GenType part) {
    part.dtype = v.type.dtype;
    choose_places(g, &v.type, &part);
    out_new(g, "dynamic_slice");
    out(g, "%%v%d", v.name);
    out_places(g, part.rank);
    out(g, ", sizes = ");
    out_list(g, part.dims, part.rank);
    out(g, " : (");
    out_type(g, &v.type), out_index_types(g, part.rank), out(g, ") -> "), out_type(g, &part), out(g, "\n");
    return made(g, part, v.most);
}

static GenValue update_at(Gen *g, GenValue v, GenValue part) {
    choose_places(g, &v.type, &part.type);
    out_new(g, "dynamic_update_slice");
    out(g, "%%v%d, %%v%d", v.name, part.name);
    out_places(g, v.type.rank);
    out(g, " : (");
    out_type(g, &v.type), out(g, ", "), out_type(g, &part.type), out_index_types(g, v.type.rank);
    out(g, ") -> "), out_type(g, &v.type), out(g, "\n");
    return made(g, v.type, v.most > part.most ? v.most : part.most);
}

// One index of a dimension, mostly; else blocks of any.
static GenType any_part(Gen *g, GenType t) {
    int one = (int)gen_rnd(g, (uint32_t)t.rank);
    bool blocks = gen_rnd(g, 3) == 0;
    for (int d = 0; d < t.rank; d++)
        if (blocks && gen_rnd(g, 2))
            t.dims[d] = 1 + gen_rnd(g, (uint32_t)t.dims[d]);
        else if (!blocks && d == one)
            t.dims[d] = gen_rnd(g, 3) ? 1 : 1 + gen_rnd(g, (uint32_t)(t.dims[d] < 8 ? t.dims[d] : 8));
    return t;
}

static GenValue some_of(Gen *g, GenValue v, int64_t n) {
    int64_t all = gen_elems(&v.type);
    if (all < n)
        return splat(g, (GenType){.dtype = v.type.dtype, .rank = 1, .dims = {n}}, (int64_t)gen_rnd(g, 3) - 1);
    v = reshaped(g, v, 1, &all);
    if (all == n)
        return v;
    if (g->ncounters && !g->busy) { // places may ask for data, and data for places: once
        g->busy = true;
        v = slice_at(g, v, (GenType){.rank = 1, .dims = {n}});
        g->busy = false;
        return v;
    }
    out_new(g, "slice");
    out(g, "%%v%d [0:%lld]", v.name, (long long)n);
    return moved(g, v, (GenType){.dtype = v.type.dtype, .rank = 1, .dims = {n}});
}

static void loop_slice(Gen *g) {
    GenValue v = any_tensor(g, 2);
    if (!v.type.rank)
        return;
    v = slice_at(g, v, any_part(g, v.type));
    if (gen_rnd(g, 3))
        without_ones(g, v);
}

static void loop_update(Gen *g) {
    GenValue v = any_tensor(g, 2);
    if (g->ncarried && gen_rnd(g, 4)) // what the loop carries: a stack
        v = g->vals[g->carried + (int)gen_rnd(g, (uint32_t)g->ncarried)];
    if (!v.type.rank)
        return;
    GenType part = any_part(g, v.type);
    update_at(g, v, like(g, part, v.name));
}

// --- moves ------------------------------------------------------------------------------------------------

static void loop_strided(Gen *g) {
    GenValue v = any_tensor(g, 1);
    if (!v.type.rank)
        return;
    GenType to = v.type;
    int one = (int)gen_rnd(g, (uint32_t)to.rank);
    out_new(g, "slice");
    out(g, "%%v%d [", v.name);
    for (int d = 0; d < to.rank; d++) {
        int64_t n = to.dims[d], b = d == one ? gen_rnd(g, (uint32_t)n) : 0, step = d == one ? 1 + gen_rnd(g, 3) : 1;
        int64_t e = d == one && gen_rnd(g, 2) ? b + 1 + gen_rnd(g, (uint32_t)(n - b)) : n;
        to.dims[d] = (e - b + step - 1) / step;
        out(g, "%s%lld:%lld:%lld", d ? ", " : "", (long long)b, (long long)e, (long long)step);
    }
    out(g, "]");
    moved(g, v, to);
}

static void loop_turn(Gen *g) {
    GenValue v = any_tensor(g, 2);
    int64_t order[GEN_RANK_MAX] = {0, 1, 2, 3}, n = gen_elems(&v.type);
    shuffle(g, order, v.type.rank);
    switch (gen_rnd(g, 5)) {
    case 0:
        if (v.type.rank) {
            out_new(g, "reverse");
            out(g, "%%v%d, dims = [%u]", v.name, gen_rnd(g, (uint32_t)v.type.rank));
            out_end(g, &v.type);
            made(g, v.type, v.most);
        }
        return;
    case 1: {
        int64_t last = v.type.rank ? v.type.dims[v.type.rank - 1] : 1;
        reshaped(g, v, 2, (int64_t[]){n / last, last});
        return;
    }
    case 2:
        reshaped(g, v, 1, &n);
        return;
    default:
        if (v.type.rank > 1)
            transposed(g, v, order);
    }
}

static void loop_join(Gen *g) {
    GenValue v = any_tensor(g, 1);
    if (!v.type.rank || gen_elems(&v.type) * 2 > LOOP_ELEMS)
        return;
    int d = (int)gen_rnd(g, (uint32_t)v.type.rank);
    GenType part = v.type, to = v.type;
    if (gen_rnd(g, 2)) {
        int64_t lo[GEN_RANK_MAX] = {0}, hi[GEN_RANK_MAX] = {0}, in[GEN_RANK_MAX] = {0};
        GenValue z = splat(g, scalar(to.dtype), gen_rnd(g, 2));
        lo[d] = gen_rnd(g, 3), hi[d] = gen_rnd(g, 3), in[d] = gen_rnd(g, 4) == 0;
        to.dims[d] += lo[d] + hi[d] + (to.dims[d] - 1) * in[d];
        if (gen_elems(&to) > LOOP_ELEMS)
            return;
        out_new(g, "pad");
        out(g, "%%v%d, %%v%d, low = ", v.name, z.name);
        out_list(g, lo, to.rank), out(g, ", high = "), out_list(g, hi, to.rank), out(g, ", interior = "), out_list(g, in, to.rank);
        out_three(g, &v.type, &z.type, NULL, &to);
        made(g, to, v.most > 1 ? v.most : 1);
        return;
    }
    part.dims[d] = gen_rnd(g, 2) ? part.dims[d] : 1;
    GenValue b = like(g, part, v.name);
    to.dims[d] += part.dims[d];
    out_new(g, "concatenate");
    out(g, "%%v%d, %%v%d, dim = %d", v.name, b.name, d);
    out_three(g, &v.type, &part, NULL, &to);
    made(g, to, v.most > b.most ? v.most : b.most);
}

// --- elementwise ------------------------------------------------------------------------------------------

// The other operand: of the same shape, or a row, a column or a number for all.
static GenValue other(Gen *g, GenValue v) {
    GenType part = {.dtype = v.type.dtype};
    int64_t dims[GEN_RANK_MAX];
    if (gen_rnd(g, 2))
        return like(g, v.type, v.name);
    for (int d = 0; d < v.type.rank; d++)
        if (gen_rnd(g, 2))
            dims[part.rank] = d, part.dims[part.rank++] = v.type.dims[d];
    return spread(g, like(g, part, v.name), v.type, dims);
}

static GenValue compared(Gen *g, GenValue a, GenValue b) {
    static const char *const directions[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
    GenType p = of_type(a.type, DT_I1);
    out_new(g, "compare");
    out(g, "%s, %%v%d, %%v%d", directions[gen_rnd(g, class_of(a.type.dtype) == 'C' ? 2 : 6)], a.name, b.name);
    out_three(g, &a.type, &b.type, NULL, &p);
    return made(g, p, 1);
}

static GenValue selected(Gen *g, GenValue p, GenValue a, GenValue b) {
    out_new(g, "select");
    out(g, "%%v%d, %%v%d, %%v%d : ", p.name, a.name, b.name);
    out_type(g, &p.type), out(g, ", "), out_type(g, &a.type), out(g, "\n");
    return made(g, a.type, a.most > b.most ? a.most : b.most);
}

static GenValue two_of(Gen *g, GenValue a, GenValue b) {
    char cls = class_of(a.type.dtype);
    int64_t top = holds(a.type.dtype), root = 1;
    a = tame(g, a, top), b = tame(g, b, top);
    if (cls == 'P')
        return binary(g, (const char *const[]){"and", "or", "xor"}[gen_rnd(g, 3)], a, b, 1);
    while ((root + 1) * (root + 1) * (1 + (cls == 'C')) <= top && root < 1000)
        root++;
    switch (gen_rnd(g, cls == 'C' ? 3 : 6)) {
    case 0:
    case 1: {
        a = tame(g, a, top / 2), b = tame(g, b, top / 2);
        if (cls == 'C' && a.most + b.most > top)
            return a;
        return binary(g, gen_rnd(g, 2) ? "add" : "subtract", a, b, a.most + b.most);
    }
    case 2: {
        if (cls == 'C' && 2 * a.most * b.most > top)
            return a;
        if (a.most * b.most > top)
            a = tame(g, a, root), b = tame(g, b, root);
        return binary(g, "multiply", a, b, a.most * b.most * (1 + (cls == 'C')));
    }
    case 3:
        return binary(g, gen_rnd(g, 2) ? "maximum" : "minimum", a, b, a.most > b.most ? a.most : b.most);
    default:
        return selected(g, compared(g, a, b), a, b);
    }
}

// Functions of few whole numbers, whole again. Their values times 8 are far from a tie at every argument there is.
static GenValue curve(Gen *g, GenValue v) {
    static const char *const ops[] = {"tanh", "logistic", "exponential", "sine", "sqrt", "rsqrt"};
    uint32_t k = gen_rnd(g, 6);
    int back = v.type.dtype, scope;
    v = tame(g, to_dtype(g, v, DT_F32), 3);
    if (v.most > 3) // complex or bool cannot be clamped
        return v;
    if (k >= 4)
        v = binary(g, "add", unary(g, "abs", v), splat(g, v.type, 2), 5);
    GenValue eight = splat(g, v.type, 8);
    scope = g->nvals;
    v = unary(g, "round_nearest_even", binary(g, "multiply", unary(g, ops[k], v), eight, 0));
    v.most = k == 2 ? 161 : 24;
    return to_dtype(g, only(g, scope, v), back);
}

static void loop_elementwise(Gen *g) {
    GenValue v = any_value(g);
    for (int n = 1 + (int)gen_rnd(g, 4); n > 0; n--) // a chain
        switch (gen_rnd(g, 8)) {
        case 0:
            v = class_of(v.type.dtype) == 'P' ? unary(g, "not", v) : unary(g, "negate", v);
            break;
        case 1:
            v = curve(g, v);
            break;
        case 2:
            v = tame(g, v, 1 + gen_rnd(g, 7));
            break;
        default:
            v = two_of(g, v, other(g, v));
        }
}

static void loop_cast(Gen *g) { to_dtype(g, any_value(g), any_loop_dtype(g)); }

static void loop_iota(Gen *g) {
    GenType t = any_tensor(g, 1).type;
    int d = t.rank ? (int)gen_rnd(g, (uint32_t)t.rank) : 0;
    if (!t.rank || t.dtype == DT_I1 || class_of(t.dtype) == 'C' || t.dims[d] > holds(t.dtype))
        return;
    out_new(g, "iota");
    out(g, "dim = %d", d);
    out_end(g, &t);
    GenValue v = made(g, t, t.dims[d]), i = to_dtype(g, counter(g, false), t.dtype);
    selected(g, compared(g, v, spread(g, i, t, NULL)), v, other(g, v)); // a mask up to the counter
}

// Zeroes by chance, of the engines' own generator: XLA has others.
static void loop_dropout(Gen *g) {
    GenValue v = any_tensor(g, 2);
    if (g->plain || !gen_elems(&v.type))
        return;
    int scope = g->nvals, b;
    GenType bits = of_type(v.type, DT_UI32), p = of_type(v.type, DT_I1);
    GenValue key = splat(g, (GenType){.dtype = DT_UI64, .rank = 1, .dims = {2}}, gen_rnd(g, 1000)), zero = splat(g, v.type, 0);
    GenValue at = binary(g, "add", key, spread(g, to_dtype(g, counter(g, false), DT_UI64), key.type, NULL), 0);
    b = g->next + 1;
    out(g, "%%v%d, %%v%d = stablehlo.rng_bit_generator %%v%d, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, ", g->next, b,
        at.name);
    out_type(g, &bits), out(g, ")\n");
    g->next += 2;
    GenValue limit = splat(g, bits, (int64_t)1 << 31);
    out_new(g, "compare");
    out(g, "LT, %%v%d, %%v%d", b, limit.name);
    out_three(g, &bits, &bits, NULL, &p);
    GenValue keep = made(g, p, 1);
    only(g, scope, selected(g, keep, v, zero)); // unsigned numbers do not stay in scope
}

// --- products, sums, orders -----------------------------------------------------------------------------

static GenType product_type(const GenType *a, const GenType *b, int batch_a, int batch_b, int ka, int kb) {
    GenType to = {.dtype = a->dtype};
    if (batch_a >= 0)
        to.dims[to.rank++] = a->dims[batch_a];
    for (int i = 0; i < 2; i++) {
        const GenType *t = i ? b : a;
        for (int d = 0; d < t->rank; d++)
            if (d != (i ? batch_b : batch_a) && d != (i ? kb : ka)) {
                if (to.rank == GEN_RANK_MAX)
                    return (GenType){.rank = -1};
                to.dims[to.rank++] = t->dims[d];
            }
    }
    return to;
}

static void loop_dot_of(Gen *g, GenValue a, bool small) {
    GenValue b = a;
    char cls = class_of(a.type.dtype);
    if (!a.type.rank || cls == 'P')
        return;
    int ka = (int)gen_rnd(g, (uint32_t)a.type.rank), kb = -1;
    uint32_t at = gen_rnd(g, (uint32_t)g->nvals);
    for (int i = 0; i < g->nvals && kb < 0; i++) {
        b = g->vals[((int)at + i) % g->nvals];
        for (int d = 0; d < b.type.rank && kb < 0; d++)
            if (b.type.dims[d] == a.type.dims[ka] && class_of(b.type.dtype) == cls)
                kb = d;
    }
    if (kb < 0)
        return;
    int ba = -1, bb = -1;
    for (int d = 0; d < a.type.rank && gen_rnd(g, 2) && ba < 0; d++)
        for (int e = 0; e < b.type.rank && ba < 0; e++)
            if (d != ka && e != kb && a.type.dims[d] == b.type.dims[e])
                ba = d, bb = e;
    GenType to = product_type(&a.type, &b.type, ba, bb, ka, kb);
    int64_t k = a.type.dims[ka];
    if (to.rank < 0 || gen_elems(&to) > LOOP_ELEMS || gen_elems(&to) * k > LOOP_WORK || (!small && gen_elems(&to) < 100))
        return;
    b = to_dtype(g, b, a.type.dtype);
    if (cls == 'F' && dtype_bytes(to.dtype) < 4 && gen_rnd(g, 2))
        to.dtype = DT_F32;
    if (cls == 'S' && dtype_bytes(to.dtype) < 4)
        to.dtype = DT_I32;
    int64_t top = cls == 'F' && dtype_bytes(to.dtype) < 4 ? holds(DT_F32) : holds(to.dtype), most = 1;
    while ((most + 1) * (most + 1) * k <= top && most < 64)
        most++;
    if (dtype_row(to.dtype)->flavour != FF_IEEE && to.dtype == DT_F8E4M3FN && k * most * most > 400)
        to.dtype = DT_F32; // beyond 448 there is nothing
    if (to.dtype == DT_F16 || to.dtype == DT_F8E5M2)
        while (most > 1 && k * most * most > (to.dtype == DT_F16 ? 60000 : 50000))
            most--;
    if (a.most * b.most * k * (1 + (cls == 'C')) > top || to.dtype != DT_F32)
        a = tame(g, a, most), b = tame(g, b, most);
    if (a.most * b.most * k * (1 + (cls == 'C')) > top)
        return;
    out_new(g, "dot_general");
    out(g, "%%v%d, %%v%d, ", a.name, b.name);
    if (ba >= 0)
        out(g, "batching_dims = [%d] x [%d], ", ba, bb);
    out(g, "contracting_dims = [%d] x [%d]", ka, kb);
    out_three(g, &a.type, &b.type, NULL, &to);
    made(g, to, a.most * b.most * k * (1 + (cls == 'C')));
}

static void loop_dot(Gen *g) { // a number is made by many pairs, a matrix by few
    int before = g->nvals;
    for (int i = 0; i < 8 && g->nvals == before; i++)
        loop_dot_of(g, any_tensor(g, 2), i == 7);
}

// Along one dimension, or two, whatever their order in memory is.
static void loop_conv(Gen *g) {
    static const char *const forms[][3] = {{"[b, 0, f]", "[0, i, o]", "[b, 0, f]"}, {"[b, f, 0]", "[o, i, 0]", "[b, f, 0]"},
                                           {"[f, 0, b]", "[i, 0, o]", "[0, b, f]"}, {"[b, 0, f]", "[o, 0, i]", "[b, f, 0]"}};
    GenValue v = any_tensor(g, 2);
    if (v.type.rank < 2 || strchr("PC", class_of(v.type.dtype)))
        return;
    if (dtype_bytes(v.type.dtype) < 2)
        v = to_dtype(g, v, DT_F32);
    if (v.type.rank != 3) {
        int64_t n = gen_elems(&v.type), last = v.type.dims[v.type.rank - 1];
        v = reshaped(g, v, 3, (int64_t[]){1, n / last, last});
    }
    const char *const *form = forms[gen_rnd(g, 4)];
    int64_t size[3][128] = {{0}};
    for (int i = 0, c = 0; form[0][i]; i++)
        if (strchr("b0f", form[0][i]))
            size[0][(int)form[0][i]] = v.type.dims[c++];
    int64_t k = 1 + gen_rnd(g, 3), groups = size[0]['f'] % 2 == 0 && gen_rnd(g, 4) == 0 ? 2 : 1, o = groups * (1 + gen_rnd(g, 8));
    int64_t pad = gen_rnd(g, 2), stride = 1 + gen_rnd(g, 2), n = size[0]['0'] + 2 * pad - k;
    size[1]['0'] = k, size[1]['i'] = size[0]['f'] / groups, size[1]['o'] = o;
    size[2]['0'] = n / stride + 1, size[2]['b'] = size[0]['b'], size[2]['f'] = o;
    GenType t[3] = {v.type, {.dtype = v.type.dtype, .rank = 3}, {.dtype = v.type.dtype, .rank = 3}};
    for (int j = 1; j < 3; j++)
        for (int i = 0, c = 0; form[j][i]; i++)
            if (strchr("b0fio", form[j][i]))
                t[j].dims[c++] = size[j][(int)form[j][i]];
    int64_t terms = k * size[1]['i'];
    if (n < 0 || gen_elems(&t[2]) * terms > LOOP_WORK || gen_elems(&t[1]) > LOOP_ELEMS || gen_elems(&t[2]) > LOOP_ELEMS)
        return;
    GenValue w = like(g, t[1], v.name);
    int64_t top = class_of(v.type.dtype) == 'F' && dtype_bytes(v.type.dtype) < 4 ? 30000 : holds(v.type.dtype), most = 1;
    while ((most + 1) * (most + 1) * terms <= top && most < 64)
        most++;
    if (most * most * terms > top)
        return;
    v = tame(g, v, most), w = tame(g, w, most);
    out(g, "%%v%d = stablehlo.convolution(%%v%d, %%v%d) dim_numbers = %sx%s->%s, window = {stride = [%lld], pad = [[%lld, %lld]], lhs_dilate = [1], rhs_dilate = [1], "
           "reverse = [false]} {batch_group_count = 1 : i64, feature_group_count = %lld : i64}", g->next, v.name, w.name, form[0], form[1], form[2],
        (long long)stride, (long long)pad, (long long)pad, (long long)groups);
    out_three(g, &t[0], &t[1], NULL, &t[2]);
    made(g, t[2], v.most * w.most * terms);
}

static void loop_reduce(Gen *g) {
    GenValue v = any_tensor(g, 1);
    char cls = class_of(v.type.dtype);
    GenType to = {.dtype = v.type.dtype};
    int64_t dims[GEN_RANK_MAX], count = 1;
    int n = 0, one = (int)gen_rnd(g, 8);
    for (int d = 0; d < v.type.rank; d++)
        if (d == one || gen_rnd(g, 2))
            dims[n++] = d, count *= v.type.dims[d];
        else
            to.dims[to.rank++] = v.type.dims[d];
    if (!n || cls == 'C')
        return;
    const char *op = cls == 'P' ? (gen_rnd(g, 2) ? "and" : "or") : gen_rnd(g, 3) ? "add" : gen_rnd(g, 2) ? "maximum" : "minimum";
    bool sum = !strcmp(op, "add");
    if (!sum && cls == 'F' && dtype_row(v.type.dtype)->flavour != FF_IEEE)
        return; // it has no infinity
    if (sum && v.most * count > holds(v.type.dtype)) {
        v = to_dtype(g, v, cls == 'F' ? DT_F32 : DT_I64);
        v = tame(g, v, holds(v.type.dtype) / count);
        to.dtype = v.type.dtype;
    }
    int z = identity(g, to.dtype, op);
    GenType s = scalar(to.dtype);
    g->nvals--; // an infinity is no whole number
    out(g, "%%v%d = stablehlo.reduce(%%v%d init: %%v%d) applies stablehlo.%s across dimensions = ", g->next, v.name, z, op);
    out_list(g, dims, n);
    out_three(g, &v.type, &s, NULL, &to);
    GenValue r = made(g, to, sum ? v.most * count : v.most);
    if (gen_rnd(g, 2)) { // back over the rows it came from
        int64_t kept[GEN_RANK_MAX];
        for (int d = 0, k = 0, c = 0; d < v.type.rank; d++)
            if (k < n && dims[k] == d)
                k++;
            else
                kept[c++] = d;
        r = spread(g, r, v.type, kept);
        two_of(g, v, r);
    }
}

static void loop_sort(Gen *g) {
    GenValue v = any_tensor(g, 1);
    if (!v.type.rank || gen_elems(&v.type) > 8192 || strchr("PC", class_of(v.type.dtype)))
        return;
    int d = (int)gen_rnd(g, (uint32_t)v.type.rank), r;
    GenValue w = like(g, of_type(v.type, any_loop_dtype(g)), v.name);
    const char *e = dtype_row(v.type.dtype)->name, *f = dtype_row(w.type.dtype)->name;
    r = g->next++;
    out(g, "%%v%d:2 = \"stablehlo.sort\"(%%v%d, %%v%d) <{dimension = %d : i64, is_stable = true}> ({\n", r, v.name, w.name, d);
    out(g, "^bb0(%%a: tensor<%s>, %%b: tensor<%s>, %%c: tensor<%s>, %%d: tensor<%s>):\n", e, e, f, f);
    out(g, "%%k = stablehlo.compare %s, %%a, %%b : (tensor<%s>, tensor<%s>) -> tensor<i1>\n", gen_rnd(g, 2) ? "LT" : "GT", e, e);
    out(g, "stablehlo.return %%k : tensor<i1>\n}) : (");
    out_type(g, &v.type), out(g, ", "), out_type(g, &w.type), out(g, ") -> ("), out_type(g, &v.type), out(g, ", ");
    out_type(g, &w.type), out(g, ")\n");
    for (int i = 0; i < 2; i++) {
        out(g, "%%v%d = stablehlo.optimization_barrier %%v%d#%d", g->next, r, i);
        out_end(g, i ? &w.type : &v.type);
        made(g, i ? w.type : v.type, i ? w.most : v.most);
    }
}

static GenValue indices(Gen *g, int64_t n) { // of a few rows, some of them outside
    GenValue i = to_dtype(g, with_elems(g, n, -1), DT_I32);
    i = tame(g, reshaped(g, i, 2, (int64_t[]){n, 1}), 700);
    return binary(g, "add", i, spread(g, counter(g, false), i.type, NULL), 708);
}

static void loop_gather(Gen *g) {
    GenValue v = any_tensor(g, 1);
    if (!v.type.rank)
        return;
    int at = (int)gen_rnd(g, (uint32_t)v.type.rank), rank = v.type.rank;
    GenType to = v.type;
    to.dims[at] = gen_rnd(g, 2) ? v.type.dims[at] : 1 + gen_rnd(g, 40);
    if (gen_elems(&to) > LOOP_ELEMS)
        return;
    GenValue i = indices(g, to.dims[at]);
    out(g, "%%v%d = \"stablehlo.gather\"(%%v%d, %%v%d) <{dimension_numbers = #stablehlo.gather<offset_dims = [", g->next, v.name, i.name);
    for (int d = 0, c = 0; d < rank; d++)
        if (d != at)
            out(g, "%s%d", c++ ? ", " : "", d);
    out(g, "], collapsed_slice_dims = [%d], start_index_map = [%d], index_vector_dim = 1>, slice_sizes = array<i64: ", at, at);
    for (int d = 0; d < rank; d++)
        out(g, "%s%lld", d ? ", " : "", d == at ? 1ll : (long long)v.type.dims[d]);
    out(g, ">}>");
    out_three(g, &v.type, &i.type, NULL, &to);
    made(g, to, v.most);
}

static void loop_scatter(Gen *g) {
    GenValue v = any_tensor(g, 1);
    if (!v.type.rank || strchr("PC", class_of(v.type.dtype)))
        return;
    int at = (int)gen_rnd(g, (uint32_t)v.type.rank), rank = v.type.rank;
    GenType up = v.type;
    up.dims[at] = 1 + gen_rnd(g, 40);
    bool sum = gen_rnd(g, 2);
    int64_t top = holds(v.type.dtype), most = top / (up.dims[at] + 1);
    if (gen_elems(&up) > LOOP_ELEMS || (sum && !most))
        return;
    GenValue u = like(g, up, v.name), i = indices(g, up.dims[at]);
    if (sum)
        v = tame(g, v, most), u = tame(g, u, most);
    const char *e = dtype_row(v.type.dtype)->name;
    out(g, "%%v%d = \"stablehlo.scatter\"(%%v%d, %%v%d, %%v%d) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [", g->next,
        v.name, i.name, u.name);
    for (int d = 0, c = 0; d < rank; d++)
        if (d != at)
            out(g, "%s%d", c++ ? ", " : "", d);
    out(g, "], inserted_window_dims = [%d], scatter_dims_to_operand_dims = [%d], index_vector_dim = 1>}> ({\n", at, at);
    out(g, "^bb0(%%a: tensor<%s>, %%b: tensor<%s>):\n%%c = stablehlo.%s %%a, %%b : tensor<%s>\n", e, e, sum ? "add" : "maximum", e);
    out(g, "stablehlo.return %%c : tensor<%s>\n})", e);
    out_three(g, &v.type, &i.type, &up, &v.type);
    made(g, v.type, sum ? v.most + up.dims[at] * u.most : v.most > u.most ? v.most : u.most);
}

// What loops are written for: a piece is read, something is made of it, and goes into its place, or into a stack's.
static void loop_piece(Gen *g) {
    GenValue v = any_tensor(g, 2), into = v;
    if (v.type.rank < 2)
        return;
    GenType part = any_part(g, v.type);
    GenValue x = slice_at(g, v, part);
    if (gen_rnd(g, 4))
        x = without_ones(g, x);
    int before = g->nvals;
    for (int i = 0; i < 4 && g->nvals == before && x.type.rank; i++)
        gen_rnd(g, 3) ? loop_dot_of(g, x, false) : (void)two_of(g, x, other(g, x));
    x = g->vals[g->nvals - 1];
    for (int i = 0; i < 2 * g->nvals; i++) { // the first that has room for it, those that are carried before others
        into = i < g->nvals && g->ncarried ? g->vals[g->carried + i % g->ncarried] : g->vals[(int)gen_rnd(g, (uint32_t)g->nvals)];
        part = into.type;
        for (int d = 0; d < part.rank; d++) {
            part.dims[d] = 1;
            if (part.rank > 1 && gen_elems(&part) == gen_elems(&x.type) && into.name != x.name) {
                x = to_dtype(g, x, into.type.dtype);
                update_at(g, into, reshaped(g, x, part.rank, part.dims));
                return;
            }
            part.dims[d] = into.type.dims[d];
        }
    }
}

// --- loops and branches -------------------------------------------------------------------------------------

static void loop_block(Gen *g, int count);

// A value of this type that holds no more than `most`: the newest of that type, mostly.
static GenValue yielded(Gen *g, GenValue carried, int64_t most, int from) {
    for (int i = g->nvals; i-- > from;)
        if (same_type(&g->vals[i].type, &carried.type) && gen_rnd(g, 4)) {
            GenValue v = tame(g, g->vals[i], most);
            return v.most <= most ? v : carried;
        }
    if (!carried.type.rank)
        return carried;
    GenValue v = tame(g, like(g, any_part(g, carried.type), carried.name), most);
    return v.most <= most ? update_at(g, carried, v) : carried;
}

static void loop_while(Gen *g) {
    GenType t[6];
    int n = 1 + (int)gen_rnd(g, 5), init[6], yield[6], trips = (int)gen_rnd(g, g->ncounters ? 4 : 6), first = gen_rnd(g, 5) == 0;
    int64_t most[6];
    if (g->ncounters == 2)
        return;
    for (int i = 0; i < n; i++) {
        GenValue v = any_tensor(g, 1);
        if (gen_rnd(g, 4) == 0)
            v = splat(g, v.type, 0);
        t[i] = v.type, init[i] = v.name, most[i] = v.most > 4 ? v.most : 4;
        if (most[i] > holds(v.type.dtype))
            most[i] = v.most;
    }
    GenValue start = i32_of(g, first);
    int pack = g->next++, count = g->next++, limit = g->next++, p = g->next++, scope = g->nvals;
    int outer = g->carried, nouter = g->ncarried;
    out(g, "%%v%d:%d = stablehlo.while(%%v%d = %%v%d", pack, n + 1, count, start.name);
    for (int i = 0; i < n; i++) {
        out(g, ", %%v%d = %%v%d", g->next, init[i]);
        made(g, t[i], most[i]);
    }
    out(g, ") : tensor<i32>, ");
    out_types(g, t, n);
    out(g, "\n cond {\n%%v%d = stablehlo.constant dense<%d> : tensor<i32>\n", limit, first + trips);
    out(g, "%%v%d = stablehlo.compare LT, %%v%d, %%v%d : (tensor<i32>, tensor<i32>) -> tensor<i1>\n", p, count, limit);
    out(g, "stablehlo.return %%v%d : tensor<i1>\n} do {\n", p);
    g->counters[g->ncounters++] = count, g->carried = scope, g->ncarried = n;
    loop_block(g, 3 + (int)gen_rnd(g, 8));
    for (int i = 0; i < n; i++)
        yield[i] = yielded(g, g->vals[scope + i], most[i], scope + n).name;
    GenValue next = binary(g, "add", (GenValue){.name = count, .type = scalar(DT_I32)}, i32_of(g, 1), 8);
    out(g, "stablehlo.return %%v%d", next.name);
    for (int i = 0; i < n; i++)
        out(g, ", %%v%d", yield[i]);
    out(g, " : tensor<i32>, ");
    out_types(g, t, n);
    out(g, "\n}\n");
    g->ncounters--, g->carried = outer, g->ncarried = nouter, g->nvals = scope;
    for (int i = 0; i < n; i++) {
        out(g, "%%v%d = stablehlo.optimization_barrier %%v%d#%d", g->next, pack, i + 1);
        out_end(g, &t[i]);
        made(g, t[i], most[i]);
    }
}

static void loop_case(Gen *g) {
    GenValue v[2] = {any_value(g), any_value(g)}, index = place(g, 3, 1);
    int n = 1 + (int)gen_rnd(g, 2), branches = 1 + (int)gen_rnd(g, 3), scope = g->nvals, pack = g->next++;
    GenType t[2] = {v[0].type, v[1].type};
    if (g->branches > 1)
        return;
    g->branches++;
    out(g, "%%v%d:%d = \"stablehlo.case\"(%%v%d) (", pack, n, index.name);
    for (int b = 0; b < branches; b++) {
        int yield[2];
        out(g, "%s{\n", b ? ", " : "");
        loop_block(g, 1 + (int)gen_rnd(g, 4));
        for (int i = 0; i < n; i++)
            yield[i] = yielded(g, v[i], v[i].most, scope).name;
        out(g, "stablehlo.return ");
        for (int i = 0; i < n; i++)
            out(g, "%s%%v%d", i ? ", " : "", yield[i]);
        out(g, " : "), out_types(g, t, n), out(g, "\n}");
        g->nvals = scope;
    }
    out(g, ") : (tensor<i32>) -> ("), out_types(g, t, n), out(g, ")\n");
    for (int i = 0; i < n; i++) {
        out(g, "%%v%d = stablehlo.optimization_barrier %%v%d#%d", g->next, pack, i);
        out_end(g, &t[i]);
        made(g, t[i], v[i].most);
    }
    g->branches--;
}

typedef void LoopMaker(Gen *g);
static LoopMaker *const loop_makers[] = {
    loop_piece,       loop_piece,       loop_piece,  loop_piece,
    loop_slice,       loop_slice,       loop_slice,  loop_slice,   loop_update, loop_update, loop_update, loop_strided, loop_turn,
    loop_elementwise, loop_elementwise, loop_join,   loop_cast,    loop_iota,   loop_dot,    loop_dot,    loop_dot,     loop_conv,
    loop_reduce,      loop_reduce,      loop_sort,   loop_gather,  loop_scatter, loop_dropout, loop_case,  loop_while,
};

static void loop_block(Gen *g, int count) {
    for (int i = 0; i < count; i++)
        loop_makers[gen_rnd(g, sizeof loop_makers / sizeof *loop_makers)](g);
}

// --- programs ---------------------------------------------------------------------------------------------

static void choose_loops(Gen *g) {
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 13, 16, 31, 32, 37, 64, 65, 96, 127, 128, 128, 129, 200, 256, 257, 511, 512, 513};
    int64_t of[4];
    for (int i = 0; i < 3; i++)
        of[i] = sizes[gen_rnd(g, sizeof sizes / sizeof *sizes)];
    of[3] = 1 + gen_rnd(g, 6); // a stack's
    g->ndtypes = 1 + (int)gen_rnd(g, 3);
    for (int i = 0; i < g->ndtypes; i++)
        g->dtypes[i] = i && gen_rnd(g, 2) ? loop_others[gen_rnd(g, sizeof loop_others / sizeof *loop_others)]
                                          : loop_floats[gen_rnd(g, sizeof loop_floats / sizeof *loop_floats)];
    g->nargs = 2 + (int)gen_rnd(g, 4);
    for (int i = 0; i < g->nargs; i++) {
        GenType *t = &g->args[i];
        do {
            *t = (GenType){.dtype = any_loop_dtype(g), .rank = gen_rnd(g, 6) ? 2 + (int)gen_rnd(g, 2) : 1};
            for (int d = 0; d < t->rank; d++)
                t->dims[d] = of[gen_rnd(g, 4)];
        } while (gen_elems(t) > LOOP_ELEMS / 2);
        g->alias[i] = gen_rnd(g, 2);
    }
}
