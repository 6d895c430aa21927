// SPDX-License-Identifier: Apache-2.0
// direct.c — reading a message where its sender has it, in another process of this host; see net_in.h.
//
// One copy instead of two through a ring, by a system call that needs the right to trace the other process: given to processes of
// one user, unless a container or Yama says otherwise. So both try once, with a number only the right process can have at that
// place, and go on with the ring when it fails. Whoever ends or lets go of its memory meanwhile makes a read fail, or its offer
// end (ring.c): nobody is harmed by a peer that is gone.
#define _GNU_SOURCE // process_vm_readv
#include <string.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include "net/net_in.h"

#define TABLE_FEW 64

void cursor_skip(Cursor *c) {
    while (c->seg < c->n && c->at == c->segs[c->seg].bytes)
        c->seg++, c->at = 0;
}

void cursor_init(Cursor *c, const NetSeg *segs, uint32_t n) {
    *c = (Cursor){.segs = segs, .n = n};
    cursor_skip(c);
}

void cursor_move(Cursor *c, size_t n) {
    c->at += n;
    cursor_skip(c);
}

static bool read_from(long pid, void *to, uint64_t from, size_t bytes) {
    struct iovec here = {to, bytes}, there = {(void *)(uintptr_t)from, bytes}; // NOLINT(performance-no-int-to-ptr)
    return process_vm_readv((pid_t)pid, &here, 1, &there, 1, 0) == (ssize_t)bytes;
}

void direct_show(Direct *d, DirectProof *p) {
    if (getrandom(d->secret, sizeof d->secret, 0) != sizeof d->secret)
        return;
    *p = (DirectProof){.pid = (uint64_t)getpid(), .at = (uint64_t)(uintptr_t)d->secret};
    memcpy(p->secret, d->secret, sizeof p->secret);
}

void direct_try(Direct *d, const DirectProof *p) {
    uint8_t found[sizeof p->secret];
    d->reads = p->at && read_from((long)p->pid, found, p->at, sizeof found) && !memcmp(found, p->secret, sizeof found);
}

bool direct_read(long pid, const WireHead *offer, Cursor *to) {
    NetSeg table[TABLE_FEW];
    uint64_t left = offer->bytes;
    for (uint32_t i = 0; i < offer->nsegs; i++) {
        uint32_t k = i % TABLE_FEW, some = offer->nsegs - i < TABLE_FEW ? offer->nsegs - i : TABLE_FEW;
        if (!k && !read_from(pid, table, offer->table + i * sizeof *table, some * sizeof *table))
            return false;
        uint64_t from = (uint64_t)(uintptr_t)table[k].data;
        for (size_t bytes = table[k].bytes; bytes;) {
            size_t room;
            if (cursor_done(to) || bytes > left)
                return false;
            void *at = cursor_at(to, &room);
            room = room < bytes ? room : bytes;
            if (!read_from(pid, at, from, room))
                return false;
            cursor_move(to, room);
            from += room;
            bytes -= room;
            left -= room;
        }
    }
    return !left;
}
