// SPDX-License-Identifier: Apache-2.0
// cmd_eval.c — otrn eval: the plain evaluator on a program, the oracle for everything else.
#include <string.h>

#include "base/file.h"
#include "hlo/eval.h"
#include "pass/pass.h"
#include "read/read.h"
#include "tools/tools.h"

static otrn_type plain_type(Hlo *h, TypeId id, const char *what, uint32_t i) {
    const HloType *ty = hlo_type(h, id);
    otrn_type out = {ty->kind == HT_TOKEN ? DT_TOKEN : ty->dtype, ty->rank, {0}};
    if (ty->kind != HT_TOKEN && (ty->kind != HT_TENSOR || ty->dynamic))
        ctx_fail(h->ctx, OTRN_UNSUPPORTED, (Place){.file = h->file},
                 "%s %u of the program is not a tensor of known shape", what, i);
    if (ty->rank)
        memcpy(out.dims, ty->dims, (size_t)ty->rank * sizeof *ty->dims);
    return out;
}

int cmd_eval(Tool *t) {
    const char *path = t->words.at[0];
    size_t size;
    tensors_output_check(t);
    const void *bytes = tool_read(t, path, &size);
    if (artifact_is(bytes, size)) {
        ctx_hint(t->ctx, "`otrn run` executes it");
        ctx_fail(t->ctx, OTRN_PARSE, (Place){.file = path}, "an artifact, eval wants the program");
    }
    progress_begin(t, "evaluating");
    Hlo *h = read_program(t->ctx, t->arena, path, bytes, size);
    hlo_verify(h);
    if (t->inputs.n && !tensors_are_named(t))
        pass_bind(h, tensors_types(t), tensors_values(t), t->inputs.n);
    pass_settle(&(Compile){.ctx = t->ctx, .arena = t->arena, .scratch = t->arena, .hlo = h});
    const HloFunc *f = hlo_main(h);
    const HloRegion *body = &h->regions.at[f->body];
    ToolValue *in = ARENA_NEWN(t->arena, ToolValue, f->nargs + 1u);
    ToolValue *made = ARENA_NEWN(t->arena, ToolValue, f->nresults + 1u);
    for (uint32_t i = 0; i < f->nargs; i++)
        in[i] = (ToolValue){plain_type(h, h->values.at[body->args + i].type, "argument", i), hlo_arg_name(h, f, i)};
    for (uint32_t i = 0; i < f->nresults; i++)
        made[i] = (ToolValue){plain_type(h, f->result_types[i], "result", i), ""};
    const otrn_buffer *data = tensors_read(t, in, f->nargs);

    Tensor *args = ARENA_NEWN(t->arena, Tensor, f->nargs + 1u);
    Tensor *results = ARENA_NEWN(t->arena, Tensor, f->nresults + 1u);
    otrn_buffer *out = ARENA_NEWN(t->arena, otrn_buffer, f->nresults + 1u);
    for (uint32_t i = 0; i < f->nargs; i++)
        args[i] = (Tensor){h->values.at[body->args + i].type, data[i].data};
    Pulse pulse = {0}, *before = pulse_here; // the timer's; where there is a progress line, both have that one
    Pulse *mine = before ? before : &pulse;
    PulseTimer timer;
    jmp_buf here, *outer = t->ctx->on_fail;
    pulse_begin(mine, 0);
    pulse_timer_begin(&timer, mine, opt_num(&t->opt, OPT_TIMEOUT));
    pulse_enter(mine);
    bool done = CTX_TRY(t->ctx, here);
    if (done)
        eval_func(h, t->arena, f, args, results);
    t->ctx->on_fail = outer;
    pulse_enter(before);
    pulse_timer_end(&timer);
    progress_end(t);
    if (!done)
        longjmp(*outer, 1);
    for (uint32_t i = 0; i < f->nresults; i++)
        out[i] = (otrn_buffer){results[i].data, otrn_type_bytes(&made[i].type)};
    tensors_write(t, made, f->nresults, out);
    return 0;
}
