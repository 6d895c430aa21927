// SPDX-License-Identifier: Apache-2.0
// ring.c — bytes between two processes of a host, through memory both map; see net_in.h.
//
// One side writes, the other reads; each has a count that only it moves. Who finds nothing to do says that it sleeps before it
// does, and looks once more; who moved a count looks whether the other sleeps. With full barriers between both, one of them sees
// the other. The peer may be broken: counts from it are taken modulo what can be.
#define _GNU_SOURCE // shm_open under glibc's headers
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "net/net_in.h"

#define RING_OFFERS 64

struct Ring {
    _Alignas(128) _Atomic uint64_t wrote;
    _Atomic uint32_t reader_sleeps;
    _Alignas(128) _Atomic uint64_t read;
    uint32_t last_offer; // the writer's
    _Alignas(128) _Atomic uint64_t offers[RING_OFFERS]; // number, and whether it was taken; 0: none
    _Alignas(128) uint8_t data[RING_BYTES];
};

static bool rings_map(RingPair *p, int fd, bool first) {
    p->map = mmap(NULL, 2 * sizeof(Ring), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p->map == MAP_FAILED) {
        p->map = NULL;
        return false;
    }
    Ring *rings = p->map;
    p->out = &rings[first ? 0 : 1];
    p->in = &rings[first ? 1 : 0];
    return true;
}

bool ring_make(RingPair *p, char name[40], bool first) {
    uint64_t random[2];
    if (getrandom(random, sizeof random, 0) != sizeof random)
        return false;
    snprintf(name, 40, "/otrn%016llx%016llx", (unsigned long long)random[0], (unsigned long long)random[1]);
    int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && !posix_fallocate(fd, 0, 2 * sizeof(Ring)) && rings_map(p, fd, first);
    if (fd >= 0)
        close(fd);
    if (!ok) {
        if (fd >= 0)
            shm_unlink(name);
        name[0] = 0;
    }
    return ok;
}

bool ring_open(RingPair *p, const char *name, bool first) {
    if (strncmp(name, "/otrn", 5) || strchr(name + 1, '/'))
        return false;
    int fd = shm_open(name, O_RDWR | O_CLOEXEC, 0);
    shm_unlink(name);
    bool ok = fd >= 0 && lseek(fd, 0, SEEK_END) == (off_t)(2 * sizeof(Ring)) && rings_map(p, fd, first);
    if (fd >= 0)
        close(fd);
    return ok;
}

void ring_close(RingPair *p) {
    if (p->map)
        munmap(p->map, 2 * sizeof(Ring));
    *p = (RingPair){0};
}

static size_t filled(const Ring *r) {
    uint64_t n = atomic_load_explicit(&r->wrote, memory_order_acquire) - atomic_load_explicit(&r->read, memory_order_acquire);
    return n <= RING_BYTES ? (size_t)n : 0;
}

bool ring_empty(const Ring *r) { return !filled(r); }
bool ring_full(const Ring *r) { return filled(r) == RING_BYTES; }

size_t ring_write(Ring *r, const void *from, size_t n) {
    uint64_t at = atomic_load_explicit(&r->wrote, memory_order_relaxed);
    size_t room = RING_BYTES - filled(r), k = n < room ? n : room, begin = (size_t)(at % RING_BYTES);
    size_t head = k < RING_BYTES - begin ? k : RING_BYTES - begin;
    memcpy(r->data + begin, from, head);
    memcpy(r->data, (const uint8_t *)from + head, k - head);
    atomic_store_explicit(&r->wrote, at + k, memory_order_seq_cst);
    return k;
}

size_t ring_read(Ring *r, void *to, size_t n) {
    uint64_t at = atomic_load_explicit(&r->read, memory_order_relaxed);
    size_t have = filled(r), k = n < have ? n : have, begin = (size_t)(at % RING_BYTES);
    size_t head = k < RING_BYTES - begin ? k : RING_BYTES - begin;
    memcpy(to, r->data + begin, head);
    memcpy((uint8_t *)to + head, r->data, k - head);
    atomic_store_explicit(&r->read, at + k, memory_order_seq_cst);
    return k;
}

void ring_sleep(Ring *r, bool asleep) { atomic_store_explicit(&r->reader_sleeps, asleep, memory_order_seq_cst); }
bool ring_asleep(Ring *r) {
    return atomic_load_explicit(&r->reader_sleeps, memory_order_seq_cst) && atomic_exchange(&r->reader_sleeps, 0);
}

// --- offers --------------------------------------------------------------------------------------

static _Atomic uint64_t *offer_at(Ring *r, uint32_t offer) { return &r->offers[offer % RING_OFFERS]; }

uint32_t offer_make(Ring *r) {
    uint32_t offer = r->last_offer + 1 ? r->last_offer + 1 : 1;
    if (atomic_load(offer_at(r, offer)))
        return 0;
    atomic_store(offer_at(r, offer), (uint64_t)offer << 1);
    return r->last_offer = offer;
}

bool offer_taken(const Ring *r, uint32_t offer) {
    return atomic_load(&r->offers[offer % RING_OFFERS]) == ((uint64_t)offer << 1 | 1);
}

void offer_end(Ring *r, uint32_t offer) { atomic_store(offer_at(r, offer), 0); }

bool offer_take(Ring *r, uint32_t offer) {
    uint64_t open = (uint64_t)offer << 1;
    return atomic_compare_exchange_strong(offer_at(r, offer), &open, open | 1);
}
