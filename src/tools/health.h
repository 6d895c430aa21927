// SPDX-License-Identifier: Apache-2.0
// health.h — what is measured of the hosts of a job and of the connections between them, and what is wrong with it.
#ifndef OTRN_TOOLS_HEALTH_H
#define OTRN_TOOLS_HEALTH_H

#include "base/arena.h"
#include "base/bytes.h"
#include "net/net.h"

typedef struct HealthHost { // one process
    double gflops, gb_s;    // one thread's products, and copies; all processes at once
    double skew_ms, skew_error_ms; // its clock before process 0's
    uint32_t cores;
    char host[64], kernel[64];
    long pid;
    bool same_place[NET_PROCESSES_MAX]; // as those
} HealthHost;

typedef struct HealthPair {      // from a process to another
    double latency_us, worst_us; // half a round trip: the middle one, and the worst; the same both ways
    double gb_s;                 // the best of some long messages
    double again;                // share of packets that had to be sent again
    char way[16];                // how data goes: "sockets"
} HealthPair;

#define HEALTH_SIZES 4
typedef struct Health {
    uint32_t n;
    HealthHost *hosts;
    HealthPair *pairs; // n x n
    size_t bytes[HEALTH_SIZES];
    double sum_us[HEALTH_SIZES]; // an all-reduce of so many bytes
    VEC(const char *) findings;
} Health;

// Process 0 has all of it afterwards. False: `why` tells.
bool health_measure(Arena *a, Net *net, Health *h, char *why, size_t why_bytes);
// What is wrong: hosts, then connections that no such host explains, so far behind the middle one (of 100).
void health_judge(Arena *a, Health *h, uint32_t slower);
// Process 0 tells all the verdict.
bool health_tell(Net *net, int32_t *status, char *why, size_t why_bytes);
void health_picture(const Health *h, Buf *svg);

#endif
