// SPDX-License-Identifier: Apache-2.0
// cmd_check.c — otrn check: one run with the watch on (chip/check.h), on the inputs given or on zeros.
#include <string.h>

#include "tools/tools.h"

int cmd_check(Tool *t) {
    opt_set(t->ctx, &t->opt, "check", "on", "command line");
    otrn_exe *exe = tool_exe(t, t->words.at[0]);
    size_t nargs = otrn_exe_num_args(exe), nresults = otrn_exe_num_results(exe);
    otrn_type *types = ARENA_NEWN(t->arena, otrn_type, nargs + 1);
    for (size_t i = 0; i < nargs; i++)
        types[i] = *otrn_exe_arg_type(exe, i);
    const void **args = NULL;
    if (t->inputs.n) {
        args = tensors_read(t, types, nargs);
    } else {
        args = ARENA_NEWN(t->arena, const void *, nargs + 1);
        for (size_t i = 0; i < nargs; i++)
            args[i] = arena_zalloc(t->arena, otrn_type_bytes(&types[i]) + 1);
    }
    void **results = ARENA_NEWN(t->arena, void *, nresults + 1);
    for (size_t i = 0; i < nresults; i++)
        results[i] = arena_alloc(t->arena, otrn_type_bytes(otrn_exe_result_type(exe, i)) + 1);
    otrn_error err = {0};
    progress_begin(t, "running");
    otrn_status s = otrn_execute(exe, args, results, &err);
    progress_end(t);
    tool_check(t, s, &err);
    printf("%s: all memory is written before it is read, and semaphores order all engines\n",
           otrn_exe_name(exe));
    return 0;
}
