// SPDX-License-Identifier: Apache-2.0
// nest_text.c — nests of steps: print, parse, verify, and programs that begin there.
#include "tile/nest_text.h"

#include <string.h>

#include "isa/text.h"
#include "tile/product.h"

// --- print and parse -----------------------------------------------------------------------------------

static void print_axes(const char *name, const Nest *n, const int64_t *third, Buf *out) {
    buf_printf(out, " %s(", name);
    for (int i = 0; i < n->rank; i++) {
        buf_printf(out, "%s%lld:%lld:%lld", i ? ", " : "", (long long)n->axis[i].n, (long long)n->axis[i].src, (long long)n->axis[i].dst);
        if (third)
            buf_printf(out, ":%lld", (long long)third[i]);
    }
    buf_printf(out, ")");
}

// A line; nest_parse is its inverse.
static void nest_print(const NestOp *n, Buf *out) {
    buf_printf(out, "%s %s", n->is_product ? "product" : "move", dtype_row(n->p.stype)->name);
    if (n->is_product || n->p.dtype != n->p.stype)
        buf_printf(out, " -> %s", dtype_row(n->p.dtype)->name);
    for (int i = 0; i < (n->is_product ? 2 : 1); i++)
        buf_printf(out, " in%u[%lld]", n->in[i], (long long)n->off[i]);
    buf_printf(out, " -> out%u[%lld]", n->out, (long long)n->out_off);
    if (n->is_product) {
        if (n->p.batch.rank)
            print_axes("b", &n->p.batch, n->p.batch_out, out);
        print_axes("k", &n->p.k, NULL, out), print_axes("m", &n->p.m, NULL, out), print_axes("n", &n->p.n, NULL, out);
    } else {
        print_axes("", &n->move, NULL, out);
    }
    buf_printf(out, "\n");
}

static int64_t parse_number(Txt *t, const char *what) { return txt_i64(t, INT64_MIN / 4, INT64_MAX / 4, what); }

static Nest parse_axes(Txt *t, int64_t *third) {
    Nest n = {0};
    txt_need(t, "(");
    while (txt_peek(t) != ')') {
        if (n.rank == VIEW_AXES)
            txt_fail(t, "more than %d axes", VIEW_AXES);
        Axis *a = &n.axis[n.rank];
        a->n = txt_i64(t, 0, INT64_MAX / 4, "positions");
        txt_need(t, ":"), a->src = parse_number(t, "elements apart");
        txt_need(t, ":"), a->dst = parse_number(t, "elements apart");
        if (third)
            txt_need(t, ":"), third[n.rank] = parse_number(t, "elements apart");
        n.rank++;
        if (!txt_take(t, ","))
            break;
    }
    txt_need(t, ")");
    return n;
}

static uint32_t parse_operand(Txt *t, const char *name, int64_t *off) {
    txt_need(t, name);
    uint32_t number = (uint32_t)txt_u64(t, UINT16_MAX, "an operand's number");
    txt_need(t, "["), *off = parse_number(t, "an element"), txt_need(t, "]");
    return number;
}

static NestOp nest_parse(Txt *t) {
    NestOp n = {.is_product = txt_take_word(t, "product")};
    if (!n.is_product && !txt_take_word(t, "move"))
        txt_fail(t, "a nest is a move or a product");
    n.p.stype = n.p.dtype = txt_dtype(t);
    if (txt_take(t, "->"))
        n.p.dtype = txt_dtype(t);
    for (int i = 0; i < (n.is_product ? 2 : 1); i++)
        n.in[i] = parse_operand(t, "in", &n.off[i]);
    txt_need(t, "->");
    n.out = parse_operand(t, "out", &n.out_off);
    if (!n.is_product) {
        n.move = parse_axes(t, NULL);
    } else {
        if (txt_take(t, "b"))
            n.p.batch = parse_axes(t, n.p.batch_out);
        txt_need(t, "k"), n.p.k = parse_axes(t, NULL);
        txt_need(t, "m"), n.p.m = parse_axes(t, NULL);
        txt_need(t, "n"), n.p.n = parse_axes(t, NULL);
    }
    txt_end(t);
    return n;
}

// --- verify --------------------------------------------------------------------------------------------

typedef struct Span {
    int64_t lo, hi; // first and last element reached
} Span;

static void reach(Span *s, const Nest *n, int side) { // 0: src, 1: dst
    for (int i = 0; i < n->rank; i++) {
        int64_t far = (n->axis[i].n - 1) * (side ? n->axis[i].dst : n->axis[i].src);
        *(far < 0 ? &s->lo : &s->hi) += n->axis[i].n ? far : 0;
    }
}

static void inside(const Lower *l, OpId id, ValueId v, Span s, int dtype, const char *what) {
    const HloType *t = hlo_value_type(l->h, v);
    if (t->dtype != dtype)
        hlo_fail(l->h, id, OTRN_PARSE, "the nest's %s has elements %s, its tensor %s", what, dtype_row(dtype)->name, dtype_row(t->dtype)->name);
    if (s.lo < 0 || s.hi >= t->elems)
        hlo_fail(l->h, id, OTRN_PARSE, "the nest reaches elements %lld to %lld of its %s, which has %lld", (long long)s.lo, (long long)s.hi, what,
                 (long long)t->elems);
}

// Raises where it reaches beyond a tensor of the op.
static void nest_verify(const Lower *l, OpId id, const NestOp *n) {
    const HloOp *op = hlo_at(l->h, id);
    if (n->in[0] >= op->noperands || n->in[1] >= op->noperands || n->out >= op->nresults)
        hlo_fail(l->h, id, OTRN_PARSE, "the nest names an operand or a result that there is not");
    if (n->is_product ? !dtype_on_tensor_engine(n->p.stype) || n->p.dtype != DT_F32 : n->p.stype != n->p.dtype)
        hlo_fail(l->h, id, OTRN_PARSE, "a product takes types of the tensor engine and gives f32, a move keeps its type");
    Span lhs = {n->off[0], n->off[0]}, rhs = {n->off[1], n->off[1]}, out = {n->out_off, n->out_off};
    if (n->is_product) {
        Nest batch = n->p.batch;
        reach(&lhs, &n->p.batch, 0), reach(&lhs, &n->p.k, 0), reach(&lhs, &n->p.m, 0);
        reach(&rhs, &n->p.batch, 1), reach(&rhs, &n->p.k, 1), reach(&rhs, &n->p.n, 0);
        for (int i = 0; i < batch.rank; i++)
            batch.axis[i].dst = n->p.batch_out[i];
        reach(&out, &batch, 1), reach(&out, &n->p.m, 1), reach(&out, &n->p.n, 1);
        inside(l, id, hlo_operand(l->h, op, n->in[1]), rhs, n->p.stype, "second operand");
    } else {
        reach(&lhs, &n->move, 0), reach(&out, &n->move, 1);
    }
    inside(l, id, hlo_operand(l->h, op, n->in[0]), lhs, n->p.stype, "operand");
    inside(l, id, op->results + n->out, out, n->p.dtype, "result");
}

// --- of steps ------------------------------------------------------------------------------------------

static void print_one(void *arg, const NestOp *n) { nest_print(n, arg); }

bool nest_takes(const Lower *l, const HloOp *op, Why *why) {
    (void)l, (void)why;
    return op->code == HLO_CUSTOM_CALL && !strcmp(hlo_attr_str(op, AK_CALL_TARGET_NAME), NEST_CALL);
}

static void each_line(const Lower *l, OpId id, NestEach *on, void *arg) {
    const HloOp *op = hlo_at(l->h, id);
    const char *at = hlo_attr_str(op, AK_BACKEND_CONFIG), *begin = at;
    Place place = hlo_place(l->h, op->loc);
    for (size_t n; *at; at += n + (at[n] == '\n')) {
        n = strcspn(at, "\n");
        Txt t = {.ctx = l->c->ctx, .arena = l->c->scratch, .file = place.file, .line = place.line, .col = (uint32_t)(at - begin) + 1, .begin = at, .at = at, .end = at + n};
        if (!txt_peek(&t))
            continue;
        NestOp nest = nest_parse(&t);
        nest_verify(l, id, &nest);
        on(arg, &nest);
    }
}

static void print_refs(const Lower *l, uint32_t first, uint32_t n, Buf *out) {
    for (uint32_t i = 0; i < n; i++)
        buf_printf(out, " %%%u", l->refs.at[first + i]);
}

// The step's number, kind, operation and buffers.
void step_print(const Lower *l, const Step *s, Buf *out) {
    const HloOp *op = s->op ? hlo_at(l->h, s->op) : NULL;
    buf_printf(out, "# %u %s%s%s:", (uint32_t)(s - l->steps.at), step_rows[s->kind].name, op ? " " : "", op ? hlo_row(op)->name : "");
    print_refs(l, s->ins, s->nins, out);
    buf_printf(out, " ->");
    print_refs(l, s->outs, s->nouts, out);
    buf_printf(out, "\n");
}

static void print_dot(const Lower *l, const Step *s, Buf *out) {
    nest_print(&(NestOp){.is_product = true, .in = {0, 1}, .p = dot_of(l, s->op, s->aux ? 0 : lower_stored_as(l, s->op))}, out);
    if (!s->sum)
        return;
    const DotSum *sum = &l->sums.at[s->sum - 1];
    nest_print(&(NestOp){.is_product = true, .in = {sum->ins, sum->of == SUMS_RHS}, .out = sum->outs, .p = dot_product(l->h, hlo_at(l->h, sum->dot), 0)}, out);
}

void nests_print(const Lower *l, Buf *out) {
    for (uint32_t i = 0; i < l->steps.n; i++) {
        const Step *s = &l->steps.at[i];
        const HloOp *op = s->op ? hlo_at(l->h, s->op) : NULL;
        step_print(l, s, out);
        if (s->kind == STEP_MOVE || s->kind == STEP_TRANSPOSE)
            move_nests(l->h, op, print_one, out);
        else if (s->kind == STEP_DOT)
            print_dot(l, s, out);
        else if (s->kind == STEP_CONV)
            conv_nests(l->h, op, print_one, out);
        else if (s->kind == STEP_NEST)
            each_line(l, s->op, print_one, out);
    }
}

// --- programs that begin here ----------------------------------------------------------------------------

typedef struct Begin {
    Emit *e;
    const Step *s;
} Begin;

static uint64_t operand_at(const Begin *b, uint32_t ref, int64_t off, int dtype) {
    return emit_addr(b->e, b->e->l->refs.at[ref]) + (uint64_t)(off * (int64_t)dtype_bytes(dtype));
}

static void emit_one(void *arg, const NestOp *n) {
    const Begin *b = arg;
    uint64_t out = operand_at(b, b->s->outs + n->out, n->out_off, n->p.dtype), lhs = operand_at(b, b->s->ins + n->in[0], n->off[0], n->p.stype);
    if (!n->is_product) {
        Nest move = n->move;
        nest_join(&move);
        emit_task(b->e);
        nest_put(b->e, &move, ENG_GPSIMD, QUEUE_COPY, lhs, out, n->p.stype, NULL);
        return;
    }
    Product p = n->p;
    p.lhs = lhs, p.rhs = operand_at(b, b->s->ins + n->in[1], n->off[1], p.stype), p.out = out;
    ProductJob j = product_job(b->e, &p);
    product_emit(&j);
}

void emit_nests(Emit *e, const Step *s) {
    Begin b = {e, s};
    each_line(e->l, s->op, emit_one, &b);
}
