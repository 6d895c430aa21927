// SPDX-License-Identifier: Apache-2.0
// cmd_run.c — otrn run: execute on the chip.
#include "base/file.h"
#include "base/npy.h"
#include "rt/parallel.h"
#include "tools/tools.h"

// A test program that runs functions on several devices (interpreter.run_parallel) is compiled as
// several.
static bool make_parallel(Tool *t, const char *path) {
    size_t size;
    const void *bytes = tool_read(t, path, &size);
    if (artifact_is(bytes, size) || !rt_parallel_is(bytes, size))
        return false;
    otrn_error err = OTRN_ERROR_INIT;
    otrn_env *env = tool_env(t);
    progress_begin(t, "compiling");
    otrn_status s = rt_parallel_make(env, bytes, size, path, &t->parallel, &err);
    progress_end(t);
    tool_check(t, s, &err);
    return true;
}

int cmd_run(Tool *t) {
    tensors_output_check(t);
    bool parallel = make_parallel(t, t->words.at[0]);
    otrn_exe *exe = parallel ? NULL : tool_exe(t, t->words.at[0]);
    const otrn_exe *first = parallel ? rt_parallel_first(t->parallel) : exe;
    const otrn_exe *last = parallel ? rt_parallel_last(t->parallel) : exe;
    size_t nargs = otrn_exe_num_args(first), nresults = otrn_exe_num_results(last);
    otrn_type *arg_types = ARENA_NEWN(t->arena, otrn_type, nargs + 1);
    otrn_type *result_types = ARENA_NEWN(t->arena, otrn_type, nresults + 1);
    for (size_t i = 0; i < nargs; i++)
        arg_types[i] = *otrn_exe_arg_type(first, i);
    for (size_t i = 0; i < nresults; i++)
        result_types[i] = *otrn_exe_result_type(last, i);
    const otrn_buffer *args = tensors_read(t, arg_types, nargs);
    otrn_buffer *results = tensors_make(t, result_types, nresults);
    for (size_t i = 0; i < nresults; i++) // what was donated is changed in place, as it would be on the device
        if (otrn_exe_result_alias(exe, i) >= 0)
            results[i] = args[otrn_exe_result_alias(exe, i)];

    otrn_error err = OTRN_ERROR_INIT;
    progress_begin(t, "running");
    otrn_status s = parallel ? rt_parallel_run(t->parallel, args, nargs, results, nresults, &err)
                             : otrn_execute(exe, args, nargs, results, nresults, &err);
    progress_end(t);
    tool_check(t, s, &err);
    tensors_write(t, result_types, nresults, results);
    return 0;
}
