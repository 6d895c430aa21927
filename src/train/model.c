// SPDX-License-Identifier: Apache-2.0
// model.c — the models: transformers over tokens or patches of images, and a plain network of dense layers.
//
//   GPT   tokens and places embedded, layers of attention (each token sees those before it) and a dense pair with GELU, each
//         behind a layer norm and added to what came in; logits by the embedding's own table
//   BERT  the same without the mask: some tokens are hidden, the loss is over those
//   VIT   patches of an image through a dense layer instead of the table, the mean of all tokens, a dense layer to classes
//   MLP   dense layers with ReLU
#include "train/model.h"

#include <assert.h>
#include <math.h>

#include "train/graph.h"

const char *const model_names[MODEL_KINDS] = {"gpt", "bert", "vit", "mlp", "step"};

#define WIDER 4        // hidden part of a layer's dense pair, times dim
#define DEVIATION 0.02 // of new weights
#define MASKED (-HUGE_VAL) // score of what a token does not see: the compiler leaves it out

typedef struct Param {
    const char *name;
    Val val;
    float fill, scale;
} Param;

typedef struct Build {
    Arena *arena;
    const Model *m;
    Graph g;
    int64_t batch; // of one device
    VEC(Param) params;
    Val x, y, weight; // inputs: tokens or pixels, targets, and how much each target counts (BERT)
} Build;

// --- sizes -----------------------------------------------------------------------------------------

static int64_t patches_of(const Model *m) { return m->patch > 0 ? (m->height / m->patch) * (m->width / m->patch) : 0; }

static void sizes_check(Ctx *ctx, const Model *m, int64_t devices) {
    bool heads = m->kind != MODEL_MLP;
    if (m->layers < 1 || m->dim < 1 || m->batch < 1 || m->vocab < 2)
        ctx_fail(ctx, OTRN_USAGE, NO_PLACE, "a model needs at least one layer, a width, a batch and two %s",
                 m->kind == MODEL_GPT || m->kind == MODEL_BERT ? "tokens" : "classes");
    if (heads && (m->heads < 1 || m->dim % m->heads)) {
        ctx_hint(ctx, "choose --heads so that it divides --dim");
        ctx_fail(ctx, OTRN_USAGE, NO_PLACE, "a width of %lld cannot be shared by %lld heads", (long long)m->dim, (long long)m->heads);
    }
    if (m->kind == MODEL_VIT && (m->patch < 1 || m->height % m->patch || m->width % m->patch))
        ctx_fail(ctx, OTRN_USAGE, NO_PLACE, "images of %lld x %lld do not fall into patches of %lld", (long long)m->height,
                 (long long)m->width, (long long)m->patch);
    if (m->batch % devices) {
        ctx_hint(ctx, "choose --batch as a multiple of --devices");
        ctx_fail(ctx, OTRN_USAGE, NO_PLACE, "a batch of %lld cannot be shared by %lld devices", (long long)m->batch, (long long)devices);
    }
}

// --- pieces ----------------------------------------------------------------------------------------

static Val param(Build *b, const char *name, Dims dims, double fill, double scale) {
    Val v = graph_arg(&b->g, b->g.real, dims);
    VEC_PUSH(b->arena, &b->params, (Param){name, v, (float)fill, (float)scale});
    return v;
}

static const char *named(Build *b, const char *part, const char *what) { return arena_printf(b->arena, "%s.%s", part, what); }

static Dims dims_of(Build *b, Val x) { return graph_at(&b->g, x)->dims; }

// x[…, in] -> […, out]
static Val dense(Build *b, const char *part, Val x, int64_t out, double scale) {
    Graph *g = &b->g;
    g->where = part;
    Dims dims = dims_of(b, x);
    int last = dims.rank - 1;
    Val w = param(b, named(b, part, "weight"), DIMS(dims.at[last], out), 0, scale);
    Val bias = param(b, named(b, part, "bias"), DIMS(out), 0, 0);
    Val y = graph_dot(g, x, w, 0, AXES(last), AXES(0));
    return graph_two(g, G_ADD, y, graph_broadcast(g, bias, dims_of(b, y), AXES(last)));
}

static Val mean_last(Build *b, Val x) { // [B,T,D] -> [B,T,D], the mean everywhere
    Dims dims = dims_of(b, x);
    Val sum = graph_reduce(&b->g, G_SUM, x, AXES(2));
    return graph_broadcast(&b->g, graph_scale(&b->g, sum, 1.0 / (double)dims.at[2]), dims, AXES(0, 1));
}

static Val layer_norm(Build *b, const char *part, Val x) {
    Graph *g = &b->g;
    g->where = part;
    Dims dims = dims_of(b, x);
    Val gain = param(b, named(b, part, "weight"), DIMS(dims.at[2]), 1, 0);
    Val bias = param(b, named(b, part, "bias"), DIMS(dims.at[2]), 0, 0);
    Val centred = graph_two(g, G_SUB, x, mean_last(b, x));
    Val sum = graph_reduce(g, G_SUM, graph_two(g, G_MUL, centred, centred), AXES(2));
    Dims rows = dims_of(b, sum);
    Val variance = graph_two(g, G_ADD, graph_scale(g, sum, 1.0 / (double)dims.at[2]), graph_splat(g, g->real, 1e-5, rows));
    Val unit = graph_two(g, G_MUL, centred, graph_broadcast(g, graph_one(g, G_RSQRT, variance), dims, AXES(0, 1)));
    Val scaled = graph_two(g, G_MUL, unit, graph_broadcast(g, gain, dims, AXES(2)));
    return graph_two(g, G_ADD, scaled, graph_broadcast(g, bias, dims, AXES(2)));
}

static Val gelu(Build *b, Val x) { // with tanh, as GPT-2 has it
    Graph *g = &b->g;
    Dims dims = dims_of(b, x);
    Val cube = graph_two(g, G_MUL, graph_two(g, G_MUL, x, x), x);
    Val inner = graph_scale(g, graph_two(g, G_ADD, x, graph_scale(g, cube, 0.044715)), 0.7978845608028654);
    Val one = graph_two(g, G_ADD, graph_one(g, G_TANH, inner), graph_splat(g, g->real, 1, dims));
    return graph_two(g, G_MUL, graph_scale(g, x, 0.5), one);
}

static Val relu(Build *b, Val x) {
    Val zero = graph_splat(&b->g, b->g.real, 0, dims_of(b, x));
    return graph_select(&b->g, graph_two(&b->g, G_GE, x, zero), x, zero);
}

static Val softmax(Build *b, Val x) { // along the last of four
    Graph *g = &b->g;
    Dims dims = dims_of(b, x);
    Val most = graph_broadcast(g, graph_reduce(g, G_MAXOF, x, AXES(3)), dims, AXES(0, 1, 2));
    Val e = graph_one(g, G_EXP, graph_two(g, G_SUB, x, most));
    return graph_two(g, G_DIV, e, graph_broadcast(g, graph_reduce(g, G_SUM, e, AXES(3)), dims, AXES(0, 1, 2)));
}

static Val heads_of(Build *b, const char *part, const char *which, Val x) { // [B,T,D] -> [B,H,T,D/H]
    int64_t t = dims_of(b, x).at[1], heads = b->m->heads;
    Val y = dense(b, named(b, part, which), x, b->m->dim, DEVIATION);
    return graph_transpose(&b->g, graph_reshape(&b->g, y, DIMS(b->batch, t, heads, b->m->dim / heads)), AXES(0, 2, 1, 3));
}

static Val attention(Build *b, const char *part, Val x, bool causal, double out_scale) {
    Graph *g = &b->g;
    int64_t t = dims_of(b, x).at[1], heads = b->m->heads, each = b->m->dim / heads;
    Val q = heads_of(b, part, "q", x), k = heads_of(b, part, "k", x), v = heads_of(b, part, "v", x);
    g->where = part;
    Val scores = graph_scale(g, graph_dot(g, q, k, 2, AXES(3), AXES(3)), 1 / sqrt((double)each));
    if (causal) {
        Dims dims = dims_of(b, scores), square = DIMS(t, t);
        Val sees = graph_two(g, G_GE, graph_iota(g, square, 0), graph_iota(g, square, 1));
        scores = graph_select(g, graph_broadcast(g, sees, dims, AXES(2, 3)), scores, graph_splat(g, g->real, MASKED, dims));
    }
    Val mixed = graph_dot(g, softmax(b, scores), v, 2, AXES(3), AXES(2)); // [B,H,T,each]
    Val joined = graph_reshape(g, graph_transpose(g, mixed, AXES(0, 2, 1, 3)), DIMS(b->batch, t, b->m->dim));
    return dense(b, named(b, part, "out"), joined, b->m->dim, out_scale);
}

static Val transformer(Build *b, Val x, bool causal) {
    double out_scale = DEVIATION / sqrt(2.0 * (double)b->m->layers); // what is added 2 x layers times stays of size one
    for (int64_t i = 0; i < b->m->layers; i++) {
        const char *at = arena_printf(b->arena, "layers.%lld", (long long)i);
        Val seen = attention(b, named(b, at, "attention"), layer_norm(b, named(b, at, "norm1"), x), causal, out_scale);
        x = graph_two(&b->g, G_ADD, x, seen);
        Val wide = dense(b, named(b, at, "up"), layer_norm(b, named(b, at, "norm2"), x), WIDER * b->m->dim, DEVIATION);
        x = graph_two(&b->g, G_ADD, x, dense(b, named(b, at, "down"), gelu(b, wide), b->m->dim, out_scale));
    }
    return layer_norm(b, "norm", x);
}

static Val with_places(Build *b, Val x) {
    b->g.where = "places";
    Dims dims = dims_of(b, x);
    Val places = param(b, "places.weight", DIMS(dims.at[1], dims.at[2]), 0, DEVIATION);
    return graph_two(&b->g, G_ADD, x, graph_broadcast(&b->g, places, dims, AXES(1, 2)));
}

// --- whole models: logits, as [rows, vocab] ----------------------------------------------------------

static Val language(Build *b) {
    const Model *m = b->m;
    Graph *g = &b->g;
    g->where = "tokens";
    Val table = param(b, "tokens.weight", DIMS(m->vocab, m->dim), 0, DEVIATION);
    b->x = graph_arg(g, DT_I32, DIMS(b->batch, m->seq));
    Val x = transformer(b, with_places(b, graph_rows(g, table, b->x)), m->kind == MODEL_GPT);
    g->where = "logits";
    Val logits = graph_dot(g, x, table, 0, AXES(2), AXES(1));
    return graph_reshape(g, logits, DIMS(b->batch * m->seq, m->vocab));
}

static Val vision(Build *b) {
    const Model *m = b->m;
    int64_t patches = patches_of(m);
    b->x = graph_arg(&b->g, b->g.real, DIMS(b->batch, patches, m->patch * m->patch));
    Val x = transformer(b, with_places(b, dense(b, "patches", b->x, m->dim, DEVIATION)), false);
    Val mean = graph_scale(&b->g, graph_reduce(&b->g, G_SUM, x, AXES(1)), 1.0 / (double)patches);
    return dense(b, "classes", mean, m->vocab, DEVIATION);
}

static Val plain(Build *b) {
    const Model *m = b->m;
    Val x = b->x = graph_arg(&b->g, b->g.real, DIMS(b->batch, m->height * m->width));
    for (int64_t i = 0; i < m->layers; i++) {
        double in = (double)dims_of(b, x).at[1];
        x = relu(b, dense(b, arena_printf(b->arena, "layers.%lld", (long long)i), x, m->dim, sqrt(2 / in)));
    }
    return dense(b, "classes", x, m->vocab, DEVIATION);
}

static Val logits_of(Build *b) {
    assert(b->m->kind < MODEL_STEP);
    return b->m->kind == MODEL_VIT ? vision(b) : b->m->kind == MODEL_MLP ? plain(b) : language(b);
}

// The mean over rows of log(sum(exp(logits))) - logits[target]; over all devices.
static Val cross_entropy(Build *b, Val logits, int64_t devices) {
    Graph *g = &b->g;
    g->where = "loss";
    Dims dims = dims_of(b, logits), rows = DIMS(dims.at[0]);
    b->y = graph_arg(g, DT_I32, rows);
    Val most = graph_reduce(g, G_MAXOF, logits, AXES(1));
    Val shifted = graph_two(g, G_SUB, logits, graph_broadcast(g, most, dims, AXES(0)));
    Val sum = graph_reduce(g, G_SUM, graph_one(g, G_EXP, shifted), AXES(1));
    Val is = graph_two(g, G_EQ, graph_iota(g, dims, 1), graph_broadcast(g, b->y, dims, AXES(0)));
    Val own = graph_reduce(g, G_SUM, graph_select(g, is, shifted, graph_splat(g, g->real, 0, dims)), AXES(1));
    Val each = graph_two(g, G_SUB, graph_one(g, G_LOG, sum), own);
    if (b->m->kind == MODEL_BERT) {
        b->weight = graph_arg(g, g->real, rows); // sums to one over the whole batch
        return graph_reduce(g, G_SUM, graph_two(g, G_MUL, each, b->weight), AXES(0));
    }
    return graph_scale(g, graph_reduce(g, G_SUM, each, AXES(0)), 1.0 / (double)(dims.at[0] * devices));
}

// --- AdamW -----------------------------------------------------------------------------------------

typedef struct Update {
    Val rate, correct1, correct2, clip; // scalars
    const Adam *adam;
} Update;

static Val spread(Graph *g, Val scalar, Dims dims) { return dims.rank ? graph_broadcast(g, scalar, dims, NO_AXES) : scalar; }

// Makes weight, m and v anew; matrices also shrink.
static void update(Graph *g, const Update *u, Val weight, Val grad, Val m, Val v, Val out[3]) {
    Dims dims = graph_at(g, weight)->dims;
    if (u->adam->clip > 0)
        grad = graph_two(g, G_MUL, grad, spread(g, u->clip, dims));
    out[1] = graph_two(g, G_ADD, graph_scale(g, m, u->adam->beta1), graph_scale(g, grad, 1 - u->adam->beta1));
    out[2] = graph_two(g, G_ADD, graph_scale(g, v, u->adam->beta2), graph_scale(g, graph_two(g, G_MUL, grad, grad), 1 - u->adam->beta2));
    Val mean = graph_two(g, G_MUL, out[1], spread(g, u->correct1, dims));
    Val root = graph_one(g, G_SQRT, graph_two(g, G_MUL, out[2], spread(g, u->correct2, dims)));
    Val by = graph_two(g, G_DIV, mean, graph_two(g, G_ADD, root, graph_splat(g, g->real, u->adam->epsilon, dims)));
    if (dims.rank > 1 && u->adam->decay > 0)
        by = graph_two(g, G_ADD, by, graph_scale(g, weight, u->adam->decay));
    out[0] = graph_two(g, G_SUB, weight, graph_two(g, G_MUL, by, spread(g, u->rate, dims)));
}

static Val norm_of(Graph *g, const Val *grads, size_t count) {
    Val sum = graph_splat(g, g->real, 0, SCALAR);
    for (size_t i = 0; i < count; i++) {
        Axes all = {.n = graph_at(g, grads[i])->dims.rank};
        for (int k = 0; k < all.n; k++)
            all.at[k] = k;
        sum = graph_two(g, G_ADD, sum, graph_reduce(g, G_SUM, graph_two(g, G_MUL, grads[i], grads[i]), all));
    }
    return graph_one(g, G_SQRT, sum);
}

static Val clip_of(Graph *g, Val norm, double most) {
    Val room = graph_two(g, G_DIV, graph_splat(g, g->real, most, SCALAR), graph_two(g, G_ADD, norm, graph_splat(g, g->real, 1e-6, SCALAR)));
    return graph_two(g, G_MIN, room, graph_splat(g, g->real, 1, SCALAR));
}

// --- steps -----------------------------------------------------------------------------------------

typedef struct Ports { // arguments and results in the making
    VEC(Port) ports;
    VEC(GraphArg) args;
    VEC(Val) results;
} Ports;

static void port_add(Build *b, Ports *p, Port port, Val val) {
    const GraphNode *n = graph_at(&b->g, val);
    port.type = (otrn_type){.dtype = n->dtype, .rank = n->dims.rank};
    for (int i = 0; i < n->dims.rank; i++)
        port.type.dims[i] = n->dims.at[i];
    VEC_PUSH(b->arena, &p->ports, port);
    VEC_PUSH(b->arena, &p->args, (GraphArg){val, port.name, port.result});
}

static void finish(Build *b, Ports *p, const char *name, int64_t devices, Step *out) {
    Buf text = {.arena = b->arena};
    graph_print(&b->g, name, (int)devices, p->args.at, p->args.n, p->results.at, p->results.n, &text);
    *out = (Step){.name = name, .program = text.at, .program_bytes = text.n, .args = p->ports.at, .nargs = p->ports.n,
                  .nresults = p->results.n, .loss = -1, .norm = -1};
}

static void inputs_add(Build *b, Ports *p) {
    port_add(b, p, (Port){.kind = PORT_INPUT, .name = "x", .result = -1}, b->x);
    port_add(b, p, (Port){.kind = PORT_INPUT, .name = "y", .result = -1}, b->y);
    if (b->m->kind == MODEL_BERT)
        port_add(b, p, (Port){.kind = PORT_INPUT, .name = "weight", .result = -1}, b->weight);
}

static Update rates_make(Build *b, const Adam *adam) {
    return (Update){graph_arg(&b->g, b->g.real, SCALAR), graph_arg(&b->g, b->g.real, SCALAR), graph_arg(&b->g, b->g.real, SCALAR), 0, adam};
}

static void rates_add(Build *b, Ports *p, const Update *u) {
    port_add(b, p, (Port){.kind = PORT_RATE, .name = "rate", .result = -1}, u->rate);
    port_add(b, p, (Port){.kind = PORT_CORRECT1, .name = "correct1", .result = -1}, u->correct1);
    port_add(b, p, (Port){.kind = PORT_CORRECT2, .name = "correct2", .result = -1}, u->correct2);
}

// Weights, first and second moments, in that order: arguments, and the results that replace them.
static void state_add(Build *b, Ports *p, const Update *u, const Val *grads) {
    static const char *const parts[3] = {"", ".m", ".v"};
    Arena *a = b->arena;
    Graph *g = &b->g;
    uint32_t n = b->params.n;
    Val(*before)[3] = arena_array(a, n, sizeof *before);
    VEC_RESERVE(a, &p->results, 3 * n);
    p->results.n = 3 * n;
    for (uint32_t i = 0; i < n; i++) {
        before[i][0] = b->params.at[i].val;
        Dims dims = graph_at(g, before[i][0])->dims;
        before[i][1] = graph_arg(g, g->real, dims), before[i][2] = graph_arg(g, g->real, dims);
        Val after[3];
        update(g, u, before[i][0], grads[i], before[i][1], before[i][2], after);
        for (uint32_t k = 0; k < 3; k++)
            p->results.at[k * n + i] = after[k];
    }
    for (uint32_t k = 0; k < 3; k++)
        for (uint32_t i = 0; i < n; i++) {
            const Param *q = &b->params.at[i];
            Port port = {.kind = k ? PORT_STATE : PORT_PARAMETER, .name = arena_printf(a, "%s%s", q->name, parts[k]), .result = k * n + i,
                         .fill = k ? 0 : q->fill, .scale = k ? 0 : q->scale};
            port_add(b, p, port, before[i][k]);
        }
}

void model_step(Ctx *ctx, Arena *a, const Model *m, const Adam *adam, int64_t devices, int real, Step *out) {
    sizes_check(ctx, m, devices);
    Build b = {.arena = a, .m = m, .g = {.arena = a, .real = real}, .batch = m->batch / devices};
    Graph *g = &b.g;
    Val loss = cross_entropy(&b, logits_of(&b), devices);
    size_t n = b.params.n;
    Val *weights = ARENA_NEWN(a, Val, n), *grads = ARENA_NEWN(a, Val, n);
    for (size_t i = 0; i < n; i++)
        weights[i] = b.params.at[i].val;
    graph_gradients(g, loss, weights, n, grads);
    g->where = "update";
    for (size_t i = 0; i < n; i++)
        grads[i] = graph_all_sum(g, grads[i], (int)devices);
    Val norm = norm_of(g, grads, n);
    Update u = rates_make(&b, adam);
    u.clip = adam->clip > 0 ? clip_of(g, norm, adam->clip) : 0;
    Ports p = {0};
    state_add(&b, &p, &u, grads);
    inputs_add(&b, &p);
    rates_add(&b, &p, &u);
    VEC_PUSH(a, &p.results, graph_all_sum(g, loss, (int)devices));
    VEC_PUSH(a, &p.results, norm);
    finish(&b, &p, model_names[m->kind], devices, out);
    out->loss = (int64_t)(3 * n), out->norm = (int64_t)(3 * n + 1);
}

void model_forward(Ctx *ctx, Arena *a, const Model *m, Step *out) {
    Model one = *m;
    one.batch = 1;
    sizes_check(ctx, &one, 1);
    Build b = {.arena = a, .m = &one, .g = {.arena = a, .real = DT_F32}, .batch = 1};
    Val logits = logits_of(&b);
    Ports p = {0};
    VEC_PUSH(a, &p.results, logits);
    for (size_t i = 0; i < b.params.n; i++)
        port_add(&b, &p, (Port){.kind = PORT_PARAMETER, .name = b.params.at[i].name, .result = -1}, b.params.at[i].val);
    port_add(&b, &p, (Port){.kind = PORT_INPUT, .name = "x", .result = -1}, b.x);
    finish(&b, &p, arena_printf(a, "%s_forward", model_names[m->kind]), 1, out);
}
