// SPDX-License-Identifier: Apache-2.0
// comm_in.h — seats and meetings from the inside, for the files of coll.
//
//   comm.c     meetings and messages inside a process
//   bring.c    what members of other processes brought
//   reduce.c   sums, inside a process and over several
#ifndef OTRN_COLL_COMM_IN_H
#define OTRN_COLL_COMM_IN_H

#include <pthread.h>
#include <stdatomic.h>

#include "coll/comm.h"

enum { WORD_WAIT, WORD_ASLEEP, WORD_GO };

typedef struct Seats { // those of a meeting: cores * at[i] + core
    const uint32_t *at;
    uint32_t n, cores, core;
} Seats;

typedef struct Meet {
    Seats members;            // the opener's
    uint32_t local;           // of them, those of this process
    uint32_t here;            // arrived; the meeting is complete with all local ones
    uint32_t synced, leaving; // waiting in comm_sync, in comm_leave
    bool broken;              // a member failed inside
    CommRank *leader;         // the last to come: talks to the other processes, in memory of its own
    const void **brought;     // what their members brought (bring.c)
    bool packed;              // only the parts that are read, one for each reader
} Meet;

typedef struct Message {
    struct Message *next;
    int64_t channel;
    uint32_t from;
    size_t bytes;
    uint8_t data[];
} Message;

// MEETING: in a meeting that is not complete.
typedef enum SeatState {
    SEAT_BUSY,
    SEAT_MEETING,
    SEAT_RECV,
    SEAT_SYNC,
    SEAT_LEAVE,
    SEAT_TALKS, // to other processes
    SEAT_ENDED,
    SEAT_AWAY // of another process
} SeatState;

struct CommRank {
    _Alignas(64) _Atomic uint32_t word;
    Comm *comm;
    uint32_t rank; // its seat
    SeatState state; // with the lock
    bool away;       // of another process: for the whole launch
    Meet *meet; // the one it is in
    const CommPost *post;
    Seats members;    // this rank's own list of them
    uint32_t pair[2]; // seats
    bool cut_off;    // woken from comm_sync because a member failed
    Meet slot;       // rule 2
    int64_t channel; // SEAT_RECV
    uint32_t from;
    Message *got;
    void *room; // for what comes from other processes
    size_t room_bytes;
    char why[COMM_WHY_BYTES]; // written by its owner, or while its owner waits
};

struct Comm {
    pthread_mutex_t lock;
    Grid grid;
    uint32_t cores; // of a device
    uint32_t n;     // seats
    uint32_t here;  // of them, those of this process
    const CommWorld *world; // NULL: all are
    uint32_t waiting, ended; // rule 3
    uint32_t failed;         // first to fail, COMM_NONE
    bool tell;               // other processes do not know yet
    bool crowded;            // more ranks on this host than CPUs
    int cpus;
    Message *first, **last;  // messages nobody has asked for, oldest first
    size_t queued_bytes;
    CommRank *ranks;
    uint32_t nwake, wake[COMM_SEATS_MAX]; // let go, asleep still
};

// Where a member is; that of this process is comm_here's.
static inline uint32_t comm_process(const Comm *c, uint32_t device) { return c->world->process[device]; }
static inline uint32_t comm_here(const Comm *c) { return net_me(c->world->net); }
// Memory of the leader's until it leaves; NULL: there is none.
void *comm_room(CommRank *me, size_t bytes);
// Messages between the leaders of a meeting, one to and one from each other process at most.
bool comm_talk(CommRank *me, const NetMsg *out, uint32_t nout, const NetMsg *in, uint32_t nin);

#endif
