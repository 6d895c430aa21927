// SPDX-License-Identifier: Apache-2.0
// job.h — the job this process belongs to, as what started it says: torchrun, Slurm, mpirun, Neuron's variables, otrn launch.
#ifndef OTRN_RT_JOB_H
#define OTRN_RT_JOB_H

#include "base/opt.h"
#include "net/net.h"

typedef struct Job {
    uint32_t rank, world;
    char root[300];     // host:port where its processes meet
    const char *secret; // "": none is known
} Job;

// False: this process is alone. Raises USAGE when what is said makes no sense.
bool job_find(Ctx *ctx, const Options *o, Job *out);
// What `o` says of a collective's limit and of the store's keys, for net_open.
void job_limits(const Options *o, NetSelf *self);

#endif
