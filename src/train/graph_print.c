// SPDX-License-Identifier: Apache-2.0
// graph_print.c — the small graph as StableHLO text.
#include <assert.h>
#include <math.h>

#include "train/graph.h"

typedef enum Form { FORM_ARG, FORM_SPLAT, FORM_IOTA, FORM_PLAIN, FORM_COMPARE, FORM_SELECT, FORM_SHAPE, FORM_DIMS, FORM_REDUCE,
                    FORM_DOT, FORM_ROWS, FORM_PUT_ROWS, FORM_ALL_SUM } Form;
static const struct {
    const char *name;
    Form form;
} rows[G_COUNT] = {
#define X(op, name, form) [G_##op] = {name, FORM_##form},
    GRAPH_OPS(X)
#undef X
};

static void type_put(Buf *out, const GraphNode *n) {
    buf_puts(out, "tensor<");
    for (int i = 0; i < n->dims.rank; i++)
        buf_printf(out, "%lldx", (long long)n->dims.at[i]);
    buf_printf(out, "%s>", otrn_dtype_name(n->dtype));
}

static void axes_put(Buf *out, const Axes *a) {
    buf_puts(out, "[");
    for (int i = 0; i < a->n; i++)
        buf_printf(out, i ? ", %d" : "%d", a->at[i]);
    buf_puts(out, "]");
}

static void ins_put(const GraphNode *n, Buf *out) {
    for (int i = 0; i < n->nin; i++)
        buf_printf(out, i ? ", %%%u" : "%%%u", n->in[i]);
}

// " : (tensor<…>, tensor<…>) -> tensor<…>"
static void whole_type(const Graph *g, const GraphNode *n, Buf *out) {
    buf_puts(out, " : (");
    for (int i = 0; i < n->nin; i++) {
        buf_puts(out, i ? ", " : "");
        type_put(out, graph_at(g, n->in[i]));
    }
    buf_puts(out, ") -> ");
    type_put(out, n);
}

static void splat_put(const GraphNode *n, Buf *out) {
    buf_puts(out, "stablehlo.constant dense<");
    if (n->number == -HUGE_VAL) // has no other text
        buf_puts(out, n->dtype == DT_F64 ? "0xFFF0000000000000" : "0xFF800000");
    else if (n->dtype == DT_F32)
        buf_printf(out, "%.9e", (double)(float)n->number);
    else if (n->dtype == DT_F64)
        buf_printf(out, "%.17e", n->number);
    else
        buf_printf(out, "%lld", (long long)n->number);
    buf_puts(out, "> : ");
    type_put(out, n);
}

static void sum_region(int dtype, Buf *out) {
    const char *t = otrn_dtype_name(dtype);
    buf_printf(out, " ({\n    ^bb0(%%a: tensor<%s>, %%b: tensor<%s>):\n      %%s = stablehlo.add %%a, %%b : tensor<%s>\n"
               "      stablehlo.return %%s : tensor<%s>\n    })", t, t, t, t);
}

static void rows_put(const Graph *g, const GraphNode *n, Buf *out) {
    const GraphNode *table = graph_at(g, n->in[0]), *at = graph_at(g, n->in[1]);
    int rank = at->dims.rank;
    if (rows[n->op].form == FORM_ROWS)
        buf_printf(out, "<{dimension_numbers = #stablehlo.gather<offset_dims = [%d], collapsed_slice_dims = [0], start_index_map = [0], "
                   "index_vector_dim = %d>, indices_are_sorted = false, slice_sizes = array<i64: 1, %lld>}>", rank - 1, rank - 1,
                   (long long)table->dims.at[1]);
    else {
        buf_printf(out, "<{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [%d], inserted_window_dims = [0], "
                   "scatter_dims_to_operand_dims = [0], index_vector_dim = %d>, indices_are_sorted = false, unique_indices = false}>",
                   rank - 1, rank - 1);
        sum_region(n->dtype, out);
    }
}

static void groups_put(const GraphNode *n, Buf *out) {
    int devices = n->batch;
    buf_puts(out, "<{replica_groups = dense<[[");
    for (int i = 0; i < devices; i++)
        buf_printf(out, i ? ", %d" : "%d", i);
    buf_printf(out, "]]> : tensor<1x%dxi64>}>", devices);
    sum_region(n->dtype, out);
}

static void dot_put(const GraphNode *n, Buf *out) {
    Axes batch = {.n = n->batch};
    for (int i = 0; i < n->batch; i++)
        batch.at[i] = i;
    if (n->batch) {
        buf_puts(out, ", batching_dims = ");
        axes_put(out, &batch), buf_puts(out, " x "), axes_put(out, &batch);
    }
    buf_puts(out, ", contracting_dims = ");
    axes_put(out, &n->a), buf_puts(out, " x "), axes_put(out, &n->b);
}

static void node_put(const Graph *g, Val v, Buf *out) {
    const GraphNode *n = graph_at(g, v);
    const char *name = rows[n->op].name;
    switch (rows[n->op].form) {
    case FORM_ARG:
        return;
    case FORM_SPLAT:
        splat_put(n, out);
        return;
    case FORM_IOTA:
        buf_printf(out, "stablehlo.iota dim = %d : ", n->a.at[0]);
        type_put(out, n);
        return;
    case FORM_PLAIN:
        buf_printf(out, "stablehlo.%s ", name);
        ins_put(n, out), buf_puts(out, " : "), type_put(out, n);
        return;
    case FORM_COMPARE:
        buf_printf(out, "stablehlo.compare %s, ", name);
        ins_put(n, out), buf_puts(out, graph_at(g, n->in[0])->dtype == DT_I32 ? ", SIGNED" : ", FLOAT");
        break;
    case FORM_SELECT:
        buf_puts(out, "stablehlo.select "), ins_put(n, out), buf_puts(out, " : ");
        type_put(out, graph_at(g, n->in[0])), buf_puts(out, ", "), type_put(out, n);
        return;
    case FORM_SHAPE:
        buf_printf(out, "stablehlo.%s ", name), ins_put(n, out);
        break;
    case FORM_DIMS:
        buf_printf(out, "stablehlo.%s ", name), ins_put(n, out), buf_puts(out, ", dims = "), axes_put(out, &n->a);
        break;
    case FORM_REDUCE:
        buf_printf(out, "stablehlo.reduce(%%%u init: %%%u) applies stablehlo.%s across dimensions = ", n->in[0], n->in[1], name);
        axes_put(out, &n->a);
        break;
    case FORM_DOT:
        buf_puts(out, "stablehlo.dot_general "), ins_put(n, out), dot_put(n, out);
        break;
    case FORM_ROWS:
    case FORM_PUT_ROWS:
        buf_printf(out, "\"stablehlo.%s\"(", name), ins_put(n, out), buf_puts(out, ") "), rows_put(g, n, out);
        break;
    case FORM_ALL_SUM:
        buf_puts(out, "\"stablehlo.all_reduce\"("), ins_put(n, out), buf_puts(out, ") "), groups_put(n, out);
        break;
    }
    whole_type(g, n, out);
}

// What no result needs is left out: rules for gradients make more than is used.
static uint8_t *needed(const Graph *g, const Val *results, size_t count) {
    uint8_t *is = ARENA_NEWN(g->arena, uint8_t, g->nodes.n + 1);
    for (size_t i = 0; i < count; i++)
        is[results[i]] = 1;
    for (Val v = g->nodes.n; v-- > 0;)
        for (int i = 0; is[v] && i < graph_at(g, v)->nin; i++)
            is[graph_at(g, v)->in[i]] = 1;
    return is;
}

void graph_print(const Graph *g, const char *name, int devices, const GraphArg *args, size_t nargs, const Val *results,
                 size_t nresults, Buf *out) {
    buf_printf(out, "module @%s attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = %d : i32} {\n  func.func public @main(", name,
               devices);
    for (size_t i = 0; i < nargs; i++) {
        buf_printf(out, i ? ", %%%u: " : "%%%u: ", args[i].val);
        type_put(out, graph_at(g, args[i].val));
        if (args[i].result >= 0)
            buf_printf(out, " {tf.aliasing_output = %lld : i32}", (long long)args[i].result);
        buf_printf(out, " loc(\"%s\")", args[i].name);
    }
    buf_puts(out, ") -> (");
    for (size_t i = 0; i < nresults; i++)
        buf_puts(out, i ? ", " : ""), type_put(out, graph_at(g, results[i]));
    buf_puts(out, ") {\n");
    const uint8_t *is = needed(g, results, nresults);
    for (Val v = 0; v < g->nodes.n; v++)
        if (is[v] && graph_at(g, v)->op != G_ARG) {
            buf_printf(out, "    %%%u = ", v);
            node_put(g, v, out);
            buf_printf(out, " loc(\"%s\":1:1)\n", graph_at(g, v)->where); // messages and profiles name the part of the model
        }
    buf_puts(out, "    func.return ");
    for (size_t i = 0; i < nresults; i++)
        buf_printf(out, i ? ", %%%u" : "%%%u", results[i]);
    buf_puts(out, " : ");
    for (size_t i = 0; i < nresults; i++)
        buf_puts(out, i ? ", " : ""), type_put(out, graph_at(g, results[i]));
    buf_puts(out, "\n  }\n}\n");
}
