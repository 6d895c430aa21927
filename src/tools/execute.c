// SPDX-License-Identifier: Apache-2.0
// execute.c — a run on all devices of a program.
//
// Files hold whole arrays, cut for the devices and put together of their parts (rt/lie.h); where several devices have the same part,
// the first of them tells it.
#include "rt/lie.h"
#include "tools/tools.h"

// --- values ----------------------------------------------------------------------------------------

ToolValue *tool_args(Tool *t, const otrn_exe *exe) {
    size_t n = otrn_exe_num_args(exe);
    ToolValue *values = ARENA_NEWN(t->arena, ToolValue, n + 1);
    for (size_t i = 0; i < n; i++)
        values[i] = (ToolValue){lie_arg(t->ctx, t->arena, exe, i).whole, otrn_exe_arg_name(exe, i)};
    return values;
}

ToolValue *tool_results(Tool *t, const otrn_exe *exe) {
    size_t n = otrn_exe_num_results(exe);
    ToolValue *values = ARENA_NEWN(t->arena, ToolValue, n + 1);
    for (size_t i = 0; i < n; i++)
        values[i] = (ToolValue){lie_result(t->ctx, t->arena, exe, i).whole, otrn_exe_result_name(exe, i)};
    return values;
}

// --- a run -----------------------------------------------------------------------------------------

// Device d's buffer for argument i: its part, or the whole itself, which devices share unless the run may write to it.
static otrn_buffer arg_part(Tool *t, const otrn_exe *exe, size_t i, uint32_t d, const otrn_buffer *whole) {
    Lie l = lie_arg(t->ctx, t->arena, exe, i);
    if (!l.slot && (d == 0 || !otrn_exe_arg_donated(exe, i)))
        return *whole;
    otrn_buffer b = {arena_alloc(t->arena, otrn_type_bytes(&l.part) + 1), otrn_type_bytes(&l.part)};
    lie_take(&l, d, whole->data, b.data);
    return b;
}

// What was donated is changed in place, as it would be on the device.
static otrn_buffer result_part(Tool *t, const otrn_exe *exe, size_t i, const otrn_buffer *args) {
    int64_t alias = otrn_exe_result_alias(exe, i);
    if (alias >= 0)
        return args[alias];
    size_t bytes = otrn_type_bytes(otrn_exe_result_type(exe, i));
    return (otrn_buffer){arena_zalloc(t->arena, bytes + 1), bytes};
}

static void results_join(Tool *t, const otrn_exe *exe, const otrn_buffer *const *results, const ToolRun *run) {
    uint32_t devices = otrn_exe_partitions(exe);
    for (size_t i = 0; i < run->nresults; i++) {
        Lie l = lie_result(t->ctx, t->arena, exe, i);
        if (!l.slot) {
            run->data[i] = results[0][i];
            continue;
        }
        run->data[i] = (otrn_buffer){arena_zalloc(t->arena, otrn_type_bytes(&l.whole) + 1), otrn_type_bytes(&l.whole)};
        for (uint32_t d = devices; d-- > 0;) // the first of those with the same part comes last
            lie_put(&l, d, results[d][i].data, run->data[i].data);
    }
}

static otrn_status execute(otrn_exe *exe, uint32_t devices, const otrn_buffer *const *args, const otrn_buffer *const *results,
                           const ToolRun *run, otrn_error *err) {
    if (devices == 1)
        return otrn_execute(exe, args[0], run->nargs, results[0], run->nresults, err);
    return otrn_execute_many(exe, 1, devices, args, run->nargs, results, run->nresults, err);
}

void tool_execute(Tool *t, otrn_exe *exe, bool zeros, ToolRun *out) {
    uint32_t devices = otrn_exe_partitions(exe);
    if (devices > OTRN_MAX_DEVICES)
        ctx_fail(t->ctx, OTRN_USAGE, (Place){.file = t->words.at[0]}, "the program is that of %u devices, a run can have %d", devices,
                 OTRN_MAX_DEVICES);
    *out = (ToolRun){.nargs = otrn_exe_num_args(exe), .nresults = otrn_exe_num_results(exe), .args = tool_args(t, exe),
                     .results = tool_results(t, exe)};
    const otrn_buffer *whole = zeros ? tensors_make(t, out->args, out->nargs) : tensors_read(t, out->args, out->nargs);
    const otrn_buffer **args = ARENA_NEWN(t->arena, const otrn_buffer *, devices);
    const otrn_buffer **results = ARENA_NEWN(t->arena, const otrn_buffer *, devices);
    for (uint32_t d = 0; d < devices; d++) {
        otrn_buffer *in = ARENA_NEWN(t->arena, otrn_buffer, out->nargs + 1), *made = ARENA_NEWN(t->arena, otrn_buffer, out->nresults + 1);
        for (size_t i = 0; i < out->nargs; i++)
            in[i] = arg_part(t, exe, i, d, &whole[i]);
        for (size_t i = 0; i < out->nresults; i++)
            made[i] = result_part(t, exe, i, in);
        args[d] = in, results[d] = made;
    }
    otrn_error err = OTRN_ERROR_INIT;
    progress_begin(t, "running");
    otrn_status s = execute(exe, devices, args, results, out, &err);
    progress_end(t);
    tool_check(t, s, &err);
    out->data = ARENA_NEWN(t->arena, otrn_buffer, out->nresults + 1);
    results_join(t, exe, results, out);
}
