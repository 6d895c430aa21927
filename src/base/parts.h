// SPDX-License-Identifier: Apache-2.0
// parts.h — work in independent parts that allocate and may fail, over the worker pool.
//
// Each part has an arena and a context of its own; when all are done the caller's arena takes over what they allocated.
// If parts fail, the error of the first of them in order is raised, whoever met it when: results and errors do not
// depend on the number of threads.
#ifndef OTRN_BASE_PARTS_H
#define OTRN_BASE_PARTS_H

#include "base/arena.h"
#include "base/ctx.h"
#include "base/pool.h"

typedef void PartFn(void *arg, size_t part, Arena *a); // a->ctx takes its errors
// The pool may be NULL. A few parts for each thread are enough.
void parts_run(Arena *a, Pool *pool, size_t count, PartFn *fn, void *arg);

#endif
