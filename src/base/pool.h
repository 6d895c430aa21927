// SPDX-License-Identifier: Apache-2.0
// pool.h — a worker pool that spins before it sleeps.
//
// One caller at a time hands out an index range; workers and the caller take chunks until none is
// left. A handoff by spinning costs well under a microsecond, a sleeping one tens: workers spin
// for a while after their last job and only then sleep on a futex. Results must not depend on
// how the range was cut: every index is computed alike whoever takes it.
#ifndef OTRN_BASE_POOL_H
#define OTRN_BASE_POOL_H

#include <stddef.h>

typedef struct Pool Pool;
typedef void PoolFn(void *arg, size_t begin, size_t end); // handles indices [begin, end)

Pool *pool_make(int threads); // including the caller; 0 = one per usable CPU; NULL when no memory
void pool_free(Pool *p);
int pool_threads(const Pool *p);
// Run fn over [0, count) in chunks of at least `grain`; returns when all is done. With one thread,
// or count <= grain, fn runs in the caller. A call from inside a task runs in the caller.
void pool_run(Pool *p, size_t count, size_t grain, PoolFn *fn, void *arg);

#endif
