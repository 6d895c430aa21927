// SPDX-License-Identifier: Apache-2.0
// comm.h — devices talk to each other: meetings and messages.
//
// Every device is a thread, or two where it is a logical core of two: a core each, with a seat of its own. For a
// collective the devices of a group meet, each with the core that has come to it:
//
//   comm_meet    says what I bring (a post) and waits until every member has come
//                now each may read the others' operands (comm_post)
//   comm_sync    waits until every member is here too; now each may read what the others have
//   written
//                into their results before it. Any number of times, also not at all
//   comm_leave   waits until every member wants to leave; now operands may be overwritten
//
// Members of one process read each other's memory and compute their own results; nothing is copied in between. Of members in
// other processes the last to come brings what is read (bring.h, reduce.h), and waits in comm_sync and comm_leave are for those here.
// A sum follows one tree over the group's positions (tree.h), so every rank has the same bits in every run.
//
// Nobody hangs:
//   1. a rank that fails releases all others, which fail too (comm_fail);
//   2. two members that wait for each other at different operations, and any state in which every
//   rank
//      waits or has ended, are errors that say who waits where.
// A message is kept until its receiver asks for it: sending never waits.
//
// A wait spins for a moment, or yields when there are more ranks than CPUs, and then sleeps.
// Meetings allocate nothing; messages do.
#ifndef OTRN_COLL_COMM_H
#define OTRN_COLL_COMM_H

#include "coll/groups.h"
#include "net/net.h"

typedef struct Comm Comm;
typedef struct CommRank CommRank; // one core's end; used by its own thread

#define COMM_WHY_BYTES 512
#define COMM_QUEUED_BYTES_MAX ((size_t)1 << 32) // messages nobody has received yet

typedef struct CommBuf {
    const void *in; // read by the others between comm_meet and comm_leave
    void *out;      // written by its owner; read by the others behind a comm_sync
    size_t in_bytes;
} CommBuf;

typedef struct CommPost { // lives until comm_leave
    // Posts meet when their operations are the same: equal signature (op, attributes, types) and,
    // when both come from one program, the same place in it.
    uint64_t signature;
    const void *program;
    uint32_t op;
    const char *name; // for messages
    uint32_t nbufs;
    const CommBuf *bufs;
    // The line of the user's program, for messages to other processes; may be NULL
    void (*where)(const struct CommPost *p, char *out, size_t bytes);
} CommPost;

typedef struct CommWorld { // the devices of a run lie in several processes
    Net *net;
    const NetLaunch *launch;
    const uint16_t *process; // of each device, by rank
} CommWorld;

// cores: of a device, 1 or 2. NULL when there is no memory.
Comm *comm_make(Grid grid, uint32_t cores);
void comm_free(Comm *c);    // no rank may be inside
// Forgets ended ranks, failures and messages: the next run begins.
void comm_reset(Comm *c);
// Behind comm_reset: of this run only some ranks are here. Lives as long as the run.
void comm_spread(Comm *c, const CommWorld *w);
bool comm_stuck(void *comm); // NetLaunch.stuck: all of its ranks here wait, one at least for another process
CommRank *comm_rank(Comm *c, uint32_t seat); // device * cores + core
Grid comm_grid(const CommRank *me);
uint32_t comm_number(const CommRank *me); // its device's rank
uint32_t comm_core(const CommRank *me);   // which of its pair it is, 0 or 1

// False: somebody failed; comm_why tells, and the rank should end. The members, in the same order
// on every rank, are devices and must stay until comm_leave; mine is one of them.
bool comm_meet(CommRank *me, const CommPost *post, const uint32_t *members, uint32_t n);
// With the other core of the pair: seats 2i and 2i + 1, which are devices where these have one core each.
bool comm_has_pair(const CommRank *me); // false: the last device of an odd number
bool comm_meet_pair(CommRank *me, const CommPost *post);
const CommPost *comm_post(const CommRank *me, uint32_t position); // what that member brought; it is here
bool comm_sync(CommRank *me);  // false: a member failed meanwhile; leave
void comm_leave(CommRank *me); // always, once comm_meet was true
const char *comm_why(CommRank *me);

#define COMM_ANY UINT32_MAX   // from: whoever
#define COMM_INFEED INT64_MIN // channel: what the host feeds the program
// A message of several buffers. The receiver must want exactly these sizes.
bool comm_send(CommRank *me, int64_t channel, uint32_t from, const CommBuf *bufs, uint32_t n);
// Fills bufs[i].out with in_bytes bytes each.
bool comm_recv(CommRank *me, int64_t channel, uint32_t from, const CommBuf *bufs, uint32_t n);

// The rank's program is over: in a run every rank says one of the two, and only the first counts. A
// failing rank that is inside a meeting leaves it. `why` is for other processes, NULL: they are told what comm_why tells.
void comm_end(CommRank *me);
void comm_fail(CommRank *me, const char *why);
// The seat whose failure came first, and so has the error worth showing; COMM_NONE when none
// failed.
uint32_t comm_failed(const Comm *c);

#endif
