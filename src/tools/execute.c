// SPDX-License-Identifier: Apache-2.0
// execute.c — a run on all devices of a program.
//
// Files hold whole arrays. Of an argument each device gets the part that its sharding names, and of the parts of
// a result the whole is put together; where several devices have the same part, the first of them tells it. Terms of a sum that
// is still to be made have no whole: such a value has the devices as its first dimension.
#include <string.h>

#include "base/dtype.h"
#include "tools/tools.h"

typedef struct Lie { // how a value lies on the devices
    otrn_type whole, part; // of one rank
    const uint32_t *slot;  // [device]: its part, of all in row-major order; NULL: every device has the whole
} Lie;

// The next number of a sharding, and what stands before it.
static uint32_t number_next(const char **s, char *before) {
    uint32_t v = 0;
    *before = **s == '+' || **s == '|' || **s == ',' ? *(*s)++ : 0;
    for (; **s >= '0' && **s <= '9'; (*s)++)
        v = v * 10 + (uint32_t)(**s - '0');
    return v;
}

// The devices as the first dimension.
static void lie_stack(Arena *a, Lie *l, uint32_t devices) {
    uint32_t *slot = ARENA_NEWN(a, uint32_t, devices);
    for (uint32_t d = 0; d < devices; d++)
        slot[d] = d;
    memmove(l->part.dims + 1, l->part.dims, (size_t)l->part.rank * sizeof *l->part.dims);
    l->part.dims[0] = 1;
    l->part.rank++;
    l->whole = l->part;
    l->whole.dims[0] = devices;
    l->slot = slot;
}

// text is "2,1+2|0,1,2,3" (spec/artifact.md), as artifact_verify left it.
static Lie lie_parse(Tool *t, const otrn_type *part, const char *text, uint32_t devices) {
    Lie l = {.whole = *part, .part = *part};
    char before = 0;
    uint32_t parts = 1;
    if (!*text)
        return l;
    if (strchr(text, '+')) {
        if (part->rank == OTRN_MAX_RANK)
            ctx_fail(t->ctx, OTRN_UNSUPPORTED, NO_PLACE, "terms of a tensor of rank %d have no file", part->rank);
        lie_stack(t->arena, &l, devices);
        return l;
    }
    for (int i = 0; i < part->rank; i++) {
        uint32_t n = number_next(&text, &before);
        l.whole.dims[i] *= n;
        parts *= n;
    }
    uint32_t *slot = ARENA_NEWN(t->arena, uint32_t, devices);
    for (uint32_t i = 0; i < devices; i++)
        slot[number_next(&text, &before)] = i / (devices / parts);
    l.slot = slot;
    return l;
}

// Copies a part out of the whole, or into it.
static void part_copy(const Lie *l, uint32_t slot, uint8_t *whole, uint8_t *part, bool out) {
    size_t elem = dtype_bytes(l->part.dtype), rows = 1;
    int rank = l->part.rank;
    int64_t first[OTRN_MAX_RANK];
    for (int d = rank - 1; d >= 0; d--) {
        int64_t n = l->part.dims[d] ? l->whole.dims[d] / l->part.dims[d] : 1;
        first[d] = (int64_t)slot % n * l->part.dims[d];
        slot /= (uint32_t)n;
    }
    for (int d = 0; d + 1 < rank; d++)
        rows *= (size_t)l->part.dims[d];
    size_t bytes = (rank ? (size_t)l->part.dims[rank - 1] : 1) * elem;
    for (size_t row = 0; row < rows && bytes; row++) {
        size_t at = rank ? (size_t)first[rank - 1] : 0, left = row, stride = rank ? (size_t)l->whole.dims[rank - 1] : 1;
        for (int d = rank - 2; d >= 0; d--) {
            at += ((size_t)first[d] + left % (size_t)l->part.dims[d]) * stride;
            left /= (size_t)l->part.dims[d];
            stride *= (size_t)l->whole.dims[d];
        }
        memcpy(out ? part + row * bytes : whole + at * elem, out ? whole + at * elem : part + row * bytes, bytes);
    }
}

// --- values ----------------------------------------------------------------------------------------

static Lie arg_lie(Tool *t, const otrn_exe *exe, size_t i) {
    return lie_parse(t, otrn_exe_arg_type(exe, i), otrn_exe_arg_sharding(exe, i), otrn_exe_partitions(exe));
}

static Lie result_lie(Tool *t, const otrn_exe *exe, size_t i) {
    return lie_parse(t, otrn_exe_result_type(exe, i), otrn_exe_result_sharding(exe, i), otrn_exe_partitions(exe));
}

ToolValue *tool_args(Tool *t, const otrn_exe *exe) {
    size_t n = otrn_exe_num_args(exe);
    ToolValue *values = ARENA_NEWN(t->arena, ToolValue, n + 1);
    for (size_t i = 0; i < n; i++)
        values[i] = (ToolValue){arg_lie(t, exe, i).whole, otrn_exe_arg_name(exe, i)};
    return values;
}

ToolValue *tool_results(Tool *t, const otrn_exe *exe) {
    size_t n = otrn_exe_num_results(exe);
    ToolValue *values = ARENA_NEWN(t->arena, ToolValue, n + 1);
    for (size_t i = 0; i < n; i++)
        values[i] = (ToolValue){result_lie(t, exe, i).whole, otrn_exe_result_name(exe, i)};
    return values;
}

// --- a run -----------------------------------------------------------------------------------------

// Device d's buffer for argument i: its part, or the whole itself, which devices share unless the run may write to it.
static otrn_buffer arg_part(Tool *t, const otrn_exe *exe, size_t i, uint32_t d, const otrn_buffer *whole) {
    Lie l = arg_lie(t, exe, i);
    if (!l.slot && (d == 0 || !otrn_exe_arg_donated(exe, i)))
        return *whole;
    otrn_buffer b = {arena_alloc(t->arena, otrn_type_bytes(&l.part) + 1), otrn_type_bytes(&l.part)};
    if (l.slot)
        part_copy(&l, l.slot[d], whole->data, b.data, true);
    else
        memcpy(b.data, whole->data, b.bytes);
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
        Lie l = result_lie(t, exe, i);
        if (!l.slot) {
            run->data[i] = results[0][i];
            continue;
        }
        run->data[i] = (otrn_buffer){arena_zalloc(t->arena, otrn_type_bytes(&l.whole) + 1), otrn_type_bytes(&l.whole)};
        for (uint32_t d = devices; d-- > 0;) // the first of those with the same part comes last
            part_copy(&l, l.slot[d], run->data[i].data, results[d][i].data, false);
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
