// SPDX-License-Identifier: Apache-2.0
// run_sized.h — otrn_execute for tests that made each buffer as large as the program says.
#ifndef OTRN_TESTS_RUN_SIZED_H
#define OTRN_TESTS_RUN_SIZED_H

#include "otrn.h"

// The program's own sizes with the test's addresses.
static inline void sized_args(const otrn_exe *exe, const void *const *data, otrn_buffer *out) {
    for (size_t i = 0; i < otrn_exe_num_args(exe); i++)
        out[i] = (otrn_buffer){(void *)data[i], otrn_type_bytes(otrn_exe_arg_type(exe, i))};
}
static inline void sized_results(const otrn_exe *exe, void *const *data, otrn_buffer *out) {
    for (size_t i = 0; i < otrn_exe_num_results(exe); i++)
        out[i] = (otrn_buffer){data[i], otrn_type_bytes(otrn_exe_result_type(exe, i))};
}

static inline otrn_status run_sized(otrn_exe *exe, const void *const *args, void *const *results, otrn_error *err) {
    size_t nargs = otrn_exe_num_args(exe), nresults = otrn_exe_num_results(exe);
    otrn_buffer in[nargs + 1], out[nresults + 1];
    sized_args(exe, args, in);
    sized_results(exe, results, out);
    return otrn_execute(exe, in, nargs, out, nresults, err);
}

static inline otrn_status run_sized_many(otrn_exe *exe, uint32_t replicas, uint32_t partitions, const void *const *const *args,
                                         void *const *const *results, otrn_error *err) {
    size_t nargs = otrn_exe_num_args(exe), nresults = otrn_exe_num_results(exe), n = (size_t)replicas * partitions;
    otrn_buffer in[n][nargs + 1], out[n][nresults + 1];
    const otrn_buffer *ins[n], *outs[n];
    for (size_t r = 0; r < n; r++) {
        sized_args(exe, args[r], in[r]);
        sized_results(exe, results[r], out[r]);
        ins[r] = in[r], outs[r] = out[r];
    }
    return otrn_execute_many(exe, replicas, partitions, ins, nargs, outs, nresults, err);
}

#endif
