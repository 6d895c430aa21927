// SPDX-License-Identifier: Apache-2.0
// net.h — a world of processes: who they are, messages between them, who is gone.
//
//   join      every process publishes who it is and where it listens in a store that the job's starter offers (NetKv), reads the
//             others, and connects to those before it. Both ends of a connection prove that they know the job's secret.
//   control   one connection for each pair, read by one thread: a heartbeat every half second that carries what the process
//             does, failures of launches, goodbye. A closed connection or three seconds of silence mean that the process is gone.
//   data      another connection for each pair, inside a host two rings in shared memory, between hosts libfabric where both have it.
//             Messages carry what they belong to, so that two different programs are an error that names both.
//
// A process that waits for one that is gone, or for a launch that failed elsewhere, is released with a sentence that names it.
#ifndef OTRN_NET_NET_H
#define OTRN_NET_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sha256.h"

#define NET_PROCESSES_MAX 256
#define NET_WHY_BYTES 512

typedef struct Net Net;

// The store: text under keys, the same for all processes. False: `why` tells. get waits for the key.
typedef struct NetKv {
    void *arg;
    bool (*put)(void *arg, const char *key, const char *value, char *why, size_t why_bytes);
    bool (*get)(void *arg, const char *key, unsigned timeout_ms, char *value, size_t bytes, char *why, size_t why_bytes);
} NetKv;

// A store of our own. The process that serves keeps it, at "host:port", unless somebody does there already; all ask it, with the
// secret that they have in common.
typedef struct NetRoot NetRoot;
bool net_root_open(const char *at, const char *secret, bool serve, unsigned timeout_ms, NetRoot **out, char *why, size_t why_bytes);
void net_root_close(NetRoot *r); // may be NULL
const char *net_root_at(const NetRoot *r); // with the port that the system chose, when it was asked for port 0
NetKv net_root_kv(NetRoot *r);
bool net_root_put(NetRoot *r, const char *key, const void *value, size_t bytes, char *why, size_t why_bytes);
// The value, to be freed, with a NUL behind it; NULL: `why` tells.
void *net_root_get(NetRoot *r, const char *key, unsigned timeout_ms, size_t *bytes, char *why, size_t why_bytes);

typedef struct NetSelf { // what a process says of itself
    uint32_t process, processes;
    uint32_t devices;
    const char *release, *chip; // must be the same everywhere
    const char *secret;         // of the job; NULL: process 0 makes one and puts it into the store
    const char *generation;     // of the job, in the store's keys, where a store outlives jobs; NULL or "": there is only one
    const char *fabric;         // how data goes, as OTRN_FABRIC says; NULL: auto
    unsigned timeout_ms;        // for everybody to come
    unsigned coll_timeout_ms;   // who waits longer in a launch for another process gives it up; 0: no limit
} NetSelf;

typedef struct NetProcess {
    uint32_t first, devices; // the devices it has, counted through all processes
    long pid;
    char host[64], place[80]; // name; what tells hosts apart
    char release[32], chip[64];
} NetProcess;

bool net_open(const NetSelf *self, const NetKv *kv, Net **out, char *why, size_t why_bytes);
void net_close(Net *n); // may be NULL; nobody may be inside
void net_bye(Net *n);   // nothing will be launched any more: the others need not worry when this process ends
uint32_t net_me(const Net *n);
uint32_t net_processes(const Net *n);
const NetProcess *net_process(const Net *n, uint32_t process);
bool net_is_near(const Net *n, uint32_t process); // on the same host
bool net_lost(Net *n); // somebody is gone
typedef enum NetOthers { NET_OTHERS_GONE, NET_OTHERS_WAIT, NET_OTHERS_GO_ON } NetOthers; // all have ended; those that have not all wait; or not
NetOthers net_others(Net *n);
typedef struct NetWait { // in exchanges with other processes
    double seconds;      // of all of them, and of the longest
    double longest;
    char at[96];         // where that was
} NetWait;
void net_waited(Net *n, NetWait *out); // since it was last asked
uint64_t net_retransmits(Net *n, uint32_t process); // packets to its host that were sent again
const char *net_way(const Net *n, uint32_t process); // how data goes to it: memory, rings, sockets, fabric efa

// --- launches ------------------------------------------------------------------------------------
// What messages belong to. Launches over the same devices are counted on every process that has some of them. Loose ones are not: they
// need not be the same programs, nor as many, everywhere; what meets is decided by tags alone. One that fails ends its set.
typedef struct NetLaunch {
    uint64_t set, number; // of devices, as they are assigned; of the launch, 0: loose
    bool loose;
    uint64_t program;     // its contents
    char name[48];
    bool takes_part[NET_PROCESSES_MAX];
    // Nobody of this process gets on but by a message from another: asked twice a second.
    bool (*stuck)(void *arg);
    void *arg;
} NetLaunch;
// Counts a launch: fills number. One at a time. False: somebody who takes part is gone.
bool net_launch_begin(Net *n, NetLaunch *l, char *why, size_t why_bytes);
// It failed here: those who wait in it, in any process, are released.
void net_launch_fail(Net *n, const NetLaunch *l, const char *fault);
// `fault`: why it failed here, told to the others unless they know; NULL: it did not.
void net_launch_end(Net *n, const NetLaunch *l, const char *fault);

// --- messages ------------------------------------------------------------------------------------
typedef struct NetSeg {
    void *data;
    size_t bytes;
} NetSeg;

typedef struct NetMsg { // to or from a process; its segments lie one behind the other
    uint32_t process, nsegs;
    const NetSeg *segs;
} NetMsg;

typedef struct NetCall { // what the message is, besides its launch: both ends must agree
    const NetLaunch *launch;
    uint64_t tag;   // who meets: messages of one tag between two processes come in order
    uint64_t sign;  // what they meet for
    const char *op; // its name
    bool unasked;   // the receiver may send to us before it asks: the message has to go off all the same
    // Where the program is: file and line, for those who wait
    void (*where)(const void *arg, char *out, size_t bytes);
    const void *arg;
} NetCall;

// Sends and receives; returns when all of it is done. False: `why` tells, and the launch is over.
bool net_exchange(Net *n, const NetCall *call, const NetMsg *out, uint32_t nout, const NetMsg *in, uint32_t nin, char *why,
                  size_t why_bytes);

// --- what one process makes for all ---------------------------------------------------------------
// What is named by the key, made by another process of the job and to be freed: waits while one makes it. NULL: this one is to make it,
// and says with net_share_give what came of it.
void *net_share_take(Net *n, const Sha256 *key, size_t *size);
void net_share_give(Net *n, const Sha256 *key, const void *bytes, size_t size); // NULL: nothing

#endif
