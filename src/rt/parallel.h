// SPDX-License-Identifier: Apache-2.0
// parallel.h — test programs whose main says interpreter.run_parallel, on the chip.
//
// Such a main is several programs: what stands before it, a function for each device, and what
// stands behind it. Each is compiled by itself; they run one after the other, the devices together.
// Tools and tests use this; it is no part of the public interface.
#ifndef OTRN_RT_PARALLEL_H
#define OTRN_RT_PARALLEL_H

#include "otrn.h"

#include <stdbool.h>

typedef struct RtParallel RtParallel;

bool rt_parallel_is(const void *bytes, size_t size); // worth trying: the bytes hold the op's name
otrn_status rt_parallel_make(otrn_env *env, const void *bytes, size_t size, const char *name,
                             RtParallel **out, otrn_error *err);
void rt_parallel_free(RtParallel *p);
// main's arguments are those of the first program, its results those of the last.
const otrn_exe *rt_parallel_first(const RtParallel *p);
const otrn_exe *rt_parallel_last(const RtParallel *p);
otrn_status rt_parallel_run(RtParallel *p, const otrn_buffer *args, size_t num_args, const otrn_buffer *results,
                            size_t num_results, otrn_error *err);

#endif
