// SPDX-License-Identifier: Apache-2.0
// gen_more.c — the part of the generator for structured ops: gathers and scatters of any dimension numbers, windows,
// convolutions, maps and reductions with bodies of several ops, complex numbers, quantised tensors. Part of gen.c.

static void shuffle(Gen *g, int64_t *v, int n) {
    for (int i = n - 1; i > 0; i--) {
        uint32_t j = gen_rnd(g, (uint32_t)i + 1);
        int64_t x = v[i];
        v[i] = v[j], v[j] = x;
    }
}

// --- gather and scatter ----------------------------------------------------------------------------------

// Random dimension numbers over an operand: which dimensions are indexed, which are dropped from the window, where
// the index vector lies and where window dimensions stand among the batch ones.
typedef struct Numbers {
    GenType index, windows; // of the indices; of gather's result or scatter's updates
    int64_t slice[GEN_RANK_MAX], map[GEN_RANK_MAX], dropped[GEN_RANK_MAX], window_at[GEN_RANK_MAX];
    int nmap, ndropped, nwindow, vector_dim;
} Numbers;

// For scatter in programs that XLA runs too: windows lie inside or outside as a whole, since XLA drops a window of which
// a part is outside, where the specification drops that part only; and there is an index, since XLA applies only one of
// several updates that all go to the origin.
static bool choose_numbers(Gen *g, const GenType *t, bool as_xla, Numbers *n) {
    *n = (Numbers){.index = {.dtype = gen_rnd(g, 4) ? DT_I32 : DT_I64}};
    int batch = (int)gen_rnd(g, 3), window = 0;
    int64_t sizes[GEN_RANK_MAX];
    for (int i = 0; i < t->rank; i++) {
        if (!t->dims[i])
            return false; // a slice of 1 must fit
        bool drop = gen_rnd(g, 2), mapped = gen_rnd(g, 3);
        n->slice[i] = drop || (mapped && as_xla) ? 1 : 1 + gen_rnd(g, (uint32_t)t->dims[i]);
        if (drop)
            n->dropped[n->ndropped++] = i;
        else
            sizes[window++] = n->slice[i];
        if (mapped)
            n->map[n->nmap++] = i;
    }
    n->nwindow = window;
    if (batch + window > GEN_RANK_MAX || batch + 1 > GEN_RANK_MAX || (as_xla && !n->nmap))
        return false;
    shuffle(g, n->map, n->nmap);
    int64_t batch_dims[2] = {1 + gen_rnd(g, 4), 1 + gen_rnd(g, 3)};
    bool implicit = n->nmap == 1 && gen_rnd(g, 2); // index_vector_dim behind the last dimension
    n->vector_dim = implicit ? batch : (int)gen_rnd(g, (uint32_t)batch + 1);
    n->index.rank = batch + !implicit;
    for (int i = 0, b = 0; i < n->index.rank; i++)
        n->index.dims[i] = !implicit && i == n->vector_dim ? n->nmap : batch_dims[b++];
    n->windows = (GenType){.dtype = t->dtype, .rank = batch + window};
    int64_t places[GEN_RANK_MAX] = {0, 1, 2, 3};
    shuffle(g, places, n->windows.rank);
    bool is_window[GEN_RANK_MAX] = {0};
    for (int i = 0; i < window; i++)
        is_window[places[i]] = true;
    for (int i = 0, b = 0, w = 0; i < n->windows.rank; i++)
        if (is_window[i])
            n->window_at[w] = i, n->windows.dims[i] = sizes[w++];
        else
            n->windows.dims[i] = batch_dims[b++];
    return true;
}

static void gen_gather_any(Gen *g) {
    GenType t = any_type(g);
    Numbers n;
    if (!t.rank || !choose_numbers(g, &t, false, &n))
        return;
    bool exact;
    int a = pick(g, t, false, &exact), i = pick(g, n.index, true, NULL);
    out(g, "%%v%d = \"stablehlo.gather\"(%%v%d, %%v%d) <{dimension_numbers = #stablehlo.gather<offset_dims = ", g->next, a, i);
    out_list(g, n.window_at, n.nwindow);
    out(g, ", collapsed_slice_dims = "), out_list(g, n.dropped, n.ndropped);
    out(g, ", start_index_map = "), out_list(g, n.map, n.nmap);
    out(g, ", index_vector_dim = %d>, slice_sizes = array<i64: ", n.vector_dim);
    for (int d = 0; d < t.rank; d++)
        out(g, "%s%lld", d ? ", " : "", (long long)n.slice[d]);
    out(g, ">}> : (");
    out_type(g, &t), out(g, ", "), out_type(g, &n.index), out(g, ") -> "), out_type(g, &n.windows);
    out(g, "\n");
    add_value(g, n.windows, exact);
}

static void gen_scatter_any(Gen *g) { // any order of updates gives the same: integers, or the larger float
    GenType t = any_type(g);
    Numbers n;
    char cls = class_of(t.dtype);
    if (!t.rank || cls == 'C' || t.dtype == DT_I1 || !choose_numbers(g, &t, g->plain, &n))
        return;
    int a = pick(g, t, true, NULL), i = pick(g, n.index, true, NULL), u = pick(g, n.windows, true, NULL);
    const char *e = dtype_row(t.dtype)->name, *op = cls == 'F' || gen_rnd(g, 2) ? "maximum" : "add";
    out(g, "%%v%d = \"stablehlo.scatter\"(%%v%d, %%v%d, %%v%d) <{scatter_dimension_numbers = #stablehlo.scatter<"
           "update_window_dims = ", g->next, a, i, u);
    out_list(g, n.window_at, n.nwindow);
    out(g, ", inserted_window_dims = "), out_list(g, n.dropped, n.ndropped);
    out(g, ", scatter_dims_to_operand_dims = "), out_list(g, n.map, n.nmap);
    out(g, ", index_vector_dim = %d>}> ({\n^bb0(%%a: tensor<%s>, %%b: tensor<%s>):\n", n.vector_dim, e, e);
    out(g, "%%c = stablehlo.%s %%a, %%b : tensor<%s>\nstablehlo.return %%c : tensor<%s>\n}) : (", op, e, e);
    out_type(g, &t), out(g, ", "), out_type(g, &n.index), out(g, ", "), out_type(g, &n.windows), out(g, ") -> ");
    out_type(g, &t);
    out(g, "\n");
    add_value(g, t, true);
}

// --- regions of several ops --------------------------------------------------------------------------------

static void gen_map(Gen *g) { // |a - b| * (a or b), through several ops on one element
    GenType t = any_type(g);
    char cls = class_of(t.dtype);
    if (!t.rank || cls == 'P' || cls == 'C')
        return;
    int a = pick(g, t, true, NULL), b = pick(g, t, true, NULL);
    const char *e = dtype_row(t.dtype)->name;
    out(g, "%%v%d = \"stablehlo.map\"(%%v%d, %%v%d) <{dimensions = array<i64: 0", g->next, a, b);
    for (int i = 1; i < t.rank; i++)
        out(g, ", %d", i);
    out(g, ">}> ({\n^bb0(%%a: tensor<%s>, %%b: tensor<%s>):\n%%d = stablehlo.subtract %%a, %%b : tensor<%s>\n", e, e, e);
    out(g, "%%k = stablehlo.compare LT, %%a, %%b : (tensor<%s>, tensor<%s>) -> tensor<i1>\n", e, e);
    out(g, "%%n = stablehlo.negate %%d : tensor<%s>\n%%s = stablehlo.select %%k, %%n, %%d : tensor<i1>, tensor<%s>\n", e, e);
    out(g, "%%m = stablehlo.maximum %%s, %%a : tensor<%s>\nstablehlo.return %%m : tensor<%s>\n}) : (", e, e);
    out_type(g, &t), out(g, ", "), out_type(g, &t), out(g, ") -> "), out_type(g, &t);
    out(g, "\n");
    add_value(g, t, true);
}

// Bodies that say `sum` or `the larger one` in several ops, so that they are no single known op.
static void out_body(Gen *g, const char *e, bool sum) {
    out(g, "({\n^bb0(%%a: tensor<%s>, %%b: tensor<%s>):\n", e, e);
    if (sum)
        out(g, "%%n = stablehlo.negate %%b : tensor<%s>\n%%c = stablehlo.subtract %%a, %%n : tensor<%s>\n", e, e);
    else
        out(g, "%%k = stablehlo.compare GE, %%a, %%b : (tensor<%s>, tensor<%s>) -> tensor<i1>\n"
               "%%c = stablehlo.select %%k, %%a, %%b : tensor<i1>, tensor<%s>\n", e, e, e);
    out(g, "stablehlo.return %%c : tensor<%s>\n})", e);
}

static bool is_plain_int(int dtype) { return class_of(dtype) == 'S' || class_of(dtype) == 'U'; }

static void gen_reduce_body(Gen *g) {
    GenType t = any_type(g), to = {.dtype = t.dtype}, s = scalar(t.dtype);
    if (!t.rank || !is_plain_int(t.dtype))
        return;
    bool sum = gen_rnd(g, 2);
    int64_t dims[GEN_RANK_MAX];
    int n = 0;
    for (int i = 0; i < t.rank; i++)
        if (gen_rnd(g, 2))
            dims[n++] = i;
        else
            to.dims[to.rank++] = t.dims[i];
    int a = pick(g, t, true, NULL), z = identity(g, t.dtype, sum ? "add" : "maximum");
    out(g, "%%v%d = \"stablehlo.reduce\"(%%v%d, %%v%d) <{dimensions = array<i64", g->next, a, z);
    for (int i = 0; i < n; i++)
        out(g, "%s%lld", i ? ", " : ": ", (long long)dims[i]);
    out(g, ">}> ");
    out_body(g, dtype_row(t.dtype)->name, sum);
    out(g, " : ("), out_type(g, &t), out(g, ", "), out_type(g, &s), out(g, ") -> "), out_type(g, &to);
    out(g, "\n");
    add_value(g, to, true);
}

static void out_array(Gen *g, const char *name, const int64_t *v, int n) {
    out(g, ", %s = array<i64", name);
    for (int i = 0; i < n; i++)
        out(g, "%s%lld", i ? ", " : ": ", (long long)v[i]);
    out(g, ">");
}

static void gen_reduce_window(Gen *g) { // strides, dilations of both kinds, uneven padding
    GenType t = any_type(g), to = t, s = scalar(t.dtype);
    char cls = class_of(t.dtype);
    if (!t.rank || cls == 'C' || cls == 'P')
        return;
    bool sum = is_plain_int(t.dtype) && gen_rnd(g, 2);
    int64_t window[GEN_RANK_MAX], stride[GEN_RANK_MAX], base[GEN_RANK_MAX], dilation[GEN_RANK_MAX], pad[2 * GEN_RANK_MAX];
    for (int i = 0; i < t.rank; i++) {
        window[i] = 1 + gen_rnd(g, 3), stride[i] = 1 + gen_rnd(g, 2), base[i] = 1 + (gen_rnd(g, 4) == 0);
        dilation[i] = 1 + (gen_rnd(g, 4) == 0), pad[2 * i] = gen_rnd(g, 3), pad[2 * i + 1] = gen_rnd(g, 3);
        int64_t size = (t.dims[i] ? (t.dims[i] - 1) * base[i] + 1 : 0) + pad[2 * i] + pad[2 * i + 1];
        int64_t wide = (window[i] - 1) * dilation[i] + 1;
        to.dims[i] = size == 0 || wide > size ? 0 : (size - wide) / stride[i] + 1;
    }
    int a = pick(g, t, true, NULL), z = identity(g, t.dtype, sum ? "add" : "maximum");
    const char *e = dtype_row(t.dtype)->name;
    out(g, "%%v%d = \"stablehlo.reduce_window\"(%%v%d, %%v%d) <{padding = dense<[", g->next, a, z);
    for (int i = 0; i < t.rank; i++)
        out(g, "%s[%lld, %lld]", i ? ", " : "", (long long)pad[2 * i], (long long)pad[2 * i + 1]);
    out(g, "]> : tensor<%dx2xi64>", t.rank);
    out_array(g, "window_dimensions", window, t.rank), out_array(g, "window_strides", stride, t.rank);
    out_array(g, "base_dilations", base, t.rank), out_array(g, "window_dilations", dilation, t.rank);
    out(g, "}> ({\n^bb0(%%a: tensor<%s>, %%b: tensor<%s>):\n%%c = stablehlo.%s %%a, %%b : tensor<%s>\n", e, e,
        sum ? "add" : "maximum", e);
    out(g, "stablehlo.return %%c : tensor<%s>\n}) : (", e);
    out_type(g, &t), out(g, ", "), out_type(g, &s), out(g, ") -> "), out_type(g, &to);
    out(g, "\n");
    add_value(g, to, true);
}

static void gen_conv(Gen *g) { // up to two spatial dimensions, any order of dimensions, groups of both kinds
    int dtype = any_dtype(g), ns = (int)gen_rnd(g, 3);
    char cls = class_of(dtype);
    if (cls == 'P' || cls == 'C' || dtype_row(dtype)->bits < 16)
        return;
    bool by_batch = gen_rnd(g, 4) == 0;
    int64_t groups = 1 + gen_rnd(g, 2), fgroups = by_batch ? 1 : groups, bgroups = by_batch ? groups : 1;
    int64_t b = bgroups * (1 + gen_rnd(g, 2)), in = fgroups * (1 + gen_rnd(g, 3)), o = groups * (1 + gen_rnd(g, 3));
    int64_t dims[3][4] = {{b, in}, {in / fgroups, o}, {b / bgroups, o}}, stride[2], lhs[2], rhs[2], pad[4];
    bool back[2];
    for (int i = 0; i < ns; i++) {
        int64_t n = 1 + gen_rnd(g, 6), k = 1 + gen_rnd(g, 3);
        stride[i] = 1 + gen_rnd(g, 2), pad[2 * i] = gen_rnd(g, 3), pad[2 * i + 1] = gen_rnd(g, 3), back[i] = gen_rnd(g, 3) == 0;
        lhs[i] = 1 + (gen_rnd(g, 4) == 0), rhs[i] = 1 + (gen_rnd(g, 4) == 0);
        int64_t size = (n - 1) * lhs[i] + 1 + pad[2 * i] + pad[2 * i + 1], wide = (k - 1) * rhs[i] + 1;
        dims[0][2 + i] = n, dims[1][2 + i] = k, dims[2][2 + i] = wide > size ? 0 : (size - wide) / stride[i] + 1;
    }
    static const char letters[3][5] = {"bf01", "io01", "bf01"};
    GenType t[3];
    char order[3][16];
    for (int i = 0; i < 3; i++) {
        int64_t p[4] = {0, 1, 2, 3};
        shuffle(g, p, ns + 2);
        t[i] = (GenType){.dtype = dtype, .rank = ns + 2};
        size_t at = 0;
        for (int d = 0; d < ns + 2; d++) {
            t[i].dims[d] = dims[i][p[d]];
            at += (size_t)snprintf(order[i] + at, sizeof order[i] - at, "%s%c", d ? ", " : "[", letters[i][p[d]]);
        }
        snprintf(order[i] + at, sizeof order[i] - at, "]");
    }
    int x = pick(g, t[0], true, NULL), w = pick(g, t[1], true, NULL);
    out(g, "%%v%d = stablehlo.convolution(%%v%d, %%v%d) dim_numbers = %sx%s->%s, window = {stride = ", g->next, x, w, order[0],
        order[1], order[2]);
    out_list(g, stride, ns), out(g, ", pad = [");
    for (int i = 0; i < ns; i++)
        out(g, "%s[%lld, %lld]", i ? ", " : "", (long long)pad[2 * i], (long long)pad[2 * i + 1]);
    out(g, "], lhs_dilate = "), out_list(g, lhs, ns), out(g, ", rhs_dilate = "), out_list(g, rhs, ns), out(g, ", reverse = [");
    for (int i = 0; i < ns; i++)
        out(g, "%s%s", i ? ", " : "", back[i] ? "true" : "false");
    out(g, "]} {batch_group_count = %lld : i64, feature_group_count = %lld : i64} : (", (long long)bgroups, (long long)fgroups);
    out_type(g, &t[0]), out(g, ", "), out_type(g, &t[1]), out(g, ") -> "), out_type(g, &t[2]);
    out(g, "\n");
    add_value(g, t[2], cls != 'F');
}

// --- complex and quantised -----------------------------------------------------------------------------------

static void gen_complex(Gen *g) { // parts in, parts out
    GenType t = any_type(g), part = t;
    t.dtype = DT_C64, part.dtype = DT_F32;
    int re = pick(g, part, true, NULL), im = pick(g, part, true, NULL);
    out(g, "%%v%d = stablehlo.complex %%v%d, %%v%d : ", g->next, re, im);
    out_type(g, &t);
    out(g, "\n");
    int z = add_value(g, t, true);
    static const char *const ops[] = {"negate", "add", "subtract"};
    uint32_t k = gen_rnd(g, 3);
    out(g, "%%v%d = stablehlo.%s %%v%d", g->next, ops[k], z);
    if (k)
        out(g, ", %%v%d", pick(g, t, true, NULL));
    out(g, " : "), out_type(g, &t), out(g, "\n");
    z = add_value(g, t, true);
    out(g, "%%v%d = stablehlo.%s %%v%d", g->next, gen_rnd(g, 2) ? "real" : "imag", z);
    out_arrow(g, &t, &part);
    add_value(g, part, true);
}

static void gen_quantised(Gen *g) { // there and back, with an op on the quantised numbers between
    static const char *const ops[] = {"add", "maximum", "subtract", "multiply"};
    static const char *const types[] = {"!quant.uniform<i8:f32, 0.25:3>", "!quant.uniform<u8:f32, 0.5:100>",
                                        "!quant.uniform<i4:f32, 0.5>", "!quant.uniform<i16:f32, 0.125:-7>"};
    GenType t = any_type(g);
    t.dtype = DT_F32;
    const char *q = types[gen_rnd(g, 4)];
    int a = pick(g, t, true, NULL), b = pick(g, t, true, NULL), x = g->next;
    char shape[64] = "";
    int n = 0;
    for (int i = 0; i < t.rank; i++)
        n += snprintf(shape + n, sizeof shape - (size_t)n, "%lldx", (long long)t.dims[i]);
    for (int i = 0; i < 2; i++)
        out(g, "%%v%d = stablehlo.uniform_quantize %%v%d : (tensor<%sf32>) -> tensor<%s%s>\n", g->next++, i ? b : a, shape, shape, q);
    out(g, "%%v%d = stablehlo.%s %%v%d, %%v%d : tensor<%s%s>\n", g->next, ops[gen_rnd(g, 4)], x, x + 1, shape, q);
    g->next++;
    out(g, "%%v%d = stablehlo.uniform_dequantize %%v%d : (tensor<%s%s>) -> tensor<%sf32>\n", g->next, x + 2, shape, q, shape);
    add_value(g, t, true);
}
