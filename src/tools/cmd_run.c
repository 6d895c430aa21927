// SPDX-License-Identifier: Apache-2.0
// cmd_run.c — otrn run: execute on the chip.
#include "base/file.h"
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

static void run_parallel(Tool *t, ToolRun *out) {
    const otrn_exe *first = rt_parallel_first(t->parallel), *last = rt_parallel_last(t->parallel);
    *out = (ToolRun){.nargs = otrn_exe_num_args(first), .nresults = otrn_exe_num_results(last), .args = tool_args(t, first),
                     .results = tool_results(t, last)};
    const otrn_buffer *args = tensors_read(t, out->args, out->nargs);
    out->data = tensors_make(t, out->results, out->nresults);
    otrn_error err = OTRN_ERROR_INIT;
    progress_begin(t, "running");
    otrn_status s = rt_parallel_run(t->parallel, args, out->nargs, out->data, out->nresults, &err);
    progress_end(t);
    tool_check(t, s, &err);
}

int cmd_run(Tool *t) {
    ToolRun run;
    tensors_output_check(t);
    if (make_parallel(t, t->words.at[0]))
        run_parallel(t, &run);
    else
        tool_execute(t, tool_exe(t, t->words.at[0]), false, &run);
    tensors_write(t, run.results, run.nresults, run.data);
    return 0;
}
