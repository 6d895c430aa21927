// SPDX-License-Identifier: Apache-2.0
// custom.c — calls that somebody outside cuts (JAX's custom_partitioning) become manual computations.
// needs: the entry function without calls
// gives: a program that says by itself what each device does
// stale: nothing
//
// How the call's operands and results should lie is planned as for any program, along the rule it carries. Whoever owns
// the call is told, answers how they shall lie and what a device does with its parts, and the call becomes a
// manual_computation of that. The answer's shardings are lists of devices; each is written with a mesh of its own.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "pass/walk.h"
#include "read/read.h"
#include "spmd/spmd.h"

// "2,1|0,1,2,3" as <mesh<["d0"=2, "c"=2], device_ids=[0, 1, 2, 3]>, [{"d0"}, {}]>; terms are refused.
static void put_sharding(Spmd *s, const char *text, uint32_t rank, Buf *out) {
    int64_t parts[OTRN_MAX_RANK], used = 1;
    const char *ids = strchr(text, '|');
    for (uint32_t i = 0; i < rank; i++) {
        char *end = (char *)text;
        parts[i] = *text ? strtoll(text, &end, 10) : 1;
        text = *end == ',' ? end + 1 : end;
        if (parts[i] < 1 || parts[i] > s->devices || (used *= parts[i]) > s->devices)
            hlo_fail(s->h, s->op, OTRN_VERIFY, "its partitioner gives a sharding of other devices");
    }
    if (*text == '+' || s->devices % used || (used > 1 && !ids))
        hlo_fail(s->h, s->op, OTRN_UNSUPPORTED, "its partitioner gives a sharding that is no table of parts");
    const char *comma = "";
    buf_puts(out, "<mesh<[");
    for (uint32_t i = 0; i < rank; i++)
        if (parts[i] > 1) {
            buf_printf(out, "%s\"d%u\"=%lld", comma, i, (long long)parts[i]);
            comma = ", ";
        }
    if (used < s->devices)
        buf_printf(out, "%s\"c\"=%lld", comma, (long long)(s->devices / used));
    buf_puts(out, "]");
    if (ids && used > 1)
        buf_printf(out, ", device_ids=[%s]", ids + 1);
    buf_puts(out, ">, [");
    for (uint32_t i = 0; i < rank; i++) {
        buf_puts(out, i ? ", {" : "{");
        if (parts[i] > 1)
            buf_printf(out, "\"d%u\"", i);
        buf_puts(out, "}");
    }
    buf_puts(out, "]>");
}

static HloNamed shardings_attr(Spmd *s, const char *name, const CustomCall *call, uint32_t first, uint32_t n) {
    Buf out = {.arena = s->h->arena};
    buf_puts(&out, "#sdy.sharding_per_value<[");
    for (uint32_t i = 0; i < n; i++) {
        buf_puts(&out, i ? ", " : "");
        put_sharding(s, call->shardings[first + i], call->types[first + i]->rank, &out);
    }
    buf_puts(&out, "]>");
    return (HloNamed){name, {.kind = HA_OPAQUE, .n = (uint32_t)out.n, .s = buf_cstr(&out)}};
}

static HloNamed axes_attr(Spmd *s) {
    Buf out = {.arena = s->h->arena};
    buf_puts(&out, "#sdy<manual_axes{\"c\"");
    for (uint32_t i = 0; i < OTRN_MAX_RANK; i++)
        buf_printf(&out, ", \"d%u\"", i);
    buf_puts(&out, "}>");
    return (HloNamed){"manual_axes", {.kind = HA_OPAQUE, .n = (uint32_t)out.n, .s = buf_cstr(&out)}};
}

// What a device does, as the only function of a graph.
static Hlo *read_answer(Spmd *s, const CustomCall *call) {
    Hlo *from = read_program(s->h->ctx, s->h->arena, "custom partitioning", call->program, call->program_bytes);
    hlo_verify(from);
    assert(hlo_main(from));
    Compile c = *s->c;
    c.hlo = from;
    pass_inline(&c);
    return from;
}

static void ask(Spmd *s, const CustomAsk *who, OpId id) {
    Hlo *h = s->h;
    const HloOp op = *hlo_at(h, id);
    const HloAttr *config = hlo_attr(&op, AK_BACKEND_CONFIG);
    uint32_t n = op.noperands + op.nresults;
    const HloType **types = ARENA_NEWN(h->arena, const HloType *, n + 1);
    CustomCall call = {.target = hlo_attr_str(&op, AK_CALL_TARGET_NAME),
                       .config = config && config->kind == HA_STR ? config->s : "",
                       .config_bytes = config && config->kind == HA_STR ? config->n : 0,
                       .place = hlo_place(h, op.loc),
                       .devices = s->devices,
                       .nargs = op.noperands,
                       .nresults = op.nresults,
                       .types = types,
                       .shardings = ARENA_NEWN(h->arena, const char *, n + 1)};
    s->op = id;
    for (uint32_t i = 0; i < n; i++) {
        ValueId v = i < op.noperands ? hlo_operand(h, &op, i) : op.results + (i - op.noperands);
        types[i] = hlo_value_type(h, v);
        if (types[i]->kind != HT_TENSOR || types[i]->dynamic)
            hlo_fail(h, id, OTRN_UNSUPPORTED, "it is cut by its partitioner and takes or gives something else than tensors");
        call.shardings[i] = s->plan[v] ? shard_text(s->plan[v], h->arena) : "";
    }
    who->ask(who->arg, h->ctx, h->arena, &call);
    Hlo *from = read_answer(s, &call);
    const HloFunc *f = hlo_main(from);
    if (f->nargs != op.noperands || f->nresults != op.nresults)
        hlo_fail(h, id, OTRN_VERIFY, "its partitioner gives a function of another number of values");
    HloNamed *extra = ARENA_NEWN(h->arena, HloNamed, 3);
    extra[0] = shardings_attr(s, "in_shardings", &call, 0, op.noperands);
    extra[1] = axes_attr(s);
    extra[2] = shardings_attr(s, "out_shardings", &call, op.noperands, op.nresults);
    HloOp *now = hlo_at(h, id);
    now->code = HLO_SDY_MANUAL_COMPUTATION;
    now->attrs = NULL;
    now->extra = extra;
    now->nextra = 3;
    hlo_take(h, id, from, f->body, op.loc);
}

static bool ask_region(Spmd *s, const CustomAsk *who, RegionId region) {
    Hlo *h = s->h;
    bool any = false;
    for (uint32_t i = 0; i < h->regions.at[region].ops.n; i++) {
        OpId id = h->regions.at[region].ops.at[i];
        const HloOp op = *hlo_at(h, id);
        if (op.code == HLO_CUSTOM_CALL && who->knows(who->arg, hlo_attr_str(&op, AK_CALL_TARGET_NAME))) {
            ask(s, who, id);
            any = true;
            continue;
        }
        for (uint32_t r = 0; r < op.nregions; r++)
            any |= ask_region(s, who, h->op_regions.at[op.regions + r]);
    }
    return any;
}

bool spmd_custom(Compile *c, const CustomAsk *who) {
    Spmd s = {.c = c, .h = c->hlo, .devices = spmd_partitions(c->hlo)};
    const HloFunc *f = hlo_main(c->hlo);
    const Shards **args = ARENA_NEWN(c->scratch, const Shards *, f->nargs + 1);
    const Shards **results = ARENA_NEWN(c->scratch, const Shards *, f->nresults + 1);
    spmd_said(&s, f, args, results);
    spmd_plan(&s, f->body, args, results);
    return ask_region(&s, who, f->body);
}
