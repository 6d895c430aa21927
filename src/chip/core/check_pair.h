// SPDX-License-Identifier: Apache-2.0
// check_pair.h — what the watches over the two cores of a pair share.
//
// Both cores see all HBM, and only their meetings (core_barrier, sendrecv) order them. In a watched run they take
// turns: core 0 up to its next meeting, then core 1 up to the same, and so on. So the shared state needs no other
// lock, the accesses one core compares with are complete, and an error is the same in every run.
//
//   1. core 0 comes to a meeting first, core 1 second;
//   2. a core that is not at its turn does nothing but wait, for it or for the other one in the meeting;
//   3. whoever ends, well or not, gives its turn away for good, after the communicator was told;
//   4. a kernel that talks to other devices keeps its turn: cores of theirs have turns of their own.
#ifndef OTRN_CHIP_CHECK_PAIR_H
#define OTRN_CHIP_CHECK_PAIR_H

#include <pthread.h>

#include "artifact/artifact.h"
#include "isa/track.h"

typedef struct CheckPair {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int turn;
    bool ended[2];
    // for the core at its turn
    const Artifact *art[2];
    Track hbm[2];      // what each core did to HBM since the run began
    Clocks offer[2];   // what each knew when it came to the meeting
    uint8_t **written; // core 0's bits per HBM segment (check.c), for both
} CheckPair;

void check_pair_init(CheckPair *p);
void check_pair_fini(CheckPair *p);
void check_pair_take(CheckPair *p, int core); // waits until it is this core's turn
void check_pair_give(CheckPair *p, int core); // now it is the other's
void check_pair_end(CheckPair *p, int core);  // this core takes no more turns

#endif
