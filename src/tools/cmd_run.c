// SPDX-License-Identifier: Apache-2.0
// cmd_run.c — otrn run: execute on the chip.
#include "tools/tools.h"

int cmd_run(Tool *t) {
    tensors_output_check(t);
    otrn_exe *exe = tool_exe(t, t->words.at[0]);
    size_t nargs = otrn_exe_num_args(exe), nresults = otrn_exe_num_results(exe);
    otrn_type *arg_types = ARENA_NEWN(t->arena, otrn_type, nargs + 1);
    otrn_type *result_types = ARENA_NEWN(t->arena, otrn_type, nresults + 1);
    for (size_t i = 0; i < nargs; i++)
        arg_types[i] = *otrn_exe_arg_type(exe, i);
    for (size_t i = 0; i < nresults; i++)
        result_types[i] = *otrn_exe_result_type(exe, i);
    const void **args = tensors_read(t, arg_types, nargs);
    void **results = ARENA_NEWN(t->arena, void *, nresults + 1);
    for (size_t i = 0; i < nresults; i++)
        results[i] = arena_alloc(t->arena, otrn_type_bytes(&result_types[i]) + 1);

    otrn_error err = {0};
    progress_begin(t, "running");
    otrn_status s = otrn_execute(exe, args, results, &err);
    progress_end(t);
    tool_check(t, s, &err);
    tensors_write(t, result_types, nresults, results);
    return 0;
}
