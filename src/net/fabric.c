// SPDX-License-Identifier: Apache-2.0
// fabric.c — bytes to a process of another host through libfabric; see net_in.h.
//
// A stream is cut into chunks, copied into buffers of ours: what is under way never lies in memory of a caller that may give up.
// Each chunk carries a number, since they may be done in another order, and how many the sender has taken of the other direction. A
// sender has at most a window of chunks under way that were not taken, so that there is a posted buffer for each, whoever is slow, and
// memory is bounded. The library gets on only while it is asked: by who waits, else by the control thread.
//
// Anybody may send to an endpoint. A chunk counts when it begins with the words that the receiver gave to that process over
// their connection, behind its proof; all others are dropped.
#include <assert.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/now.h"
#include "net/net_in.h"

#define CHUNK_HEAD 48 // words, from, bytes, number, taken
#define WORDS 16
#define WINDOW_MAX 16
#define OUT 4   // buffers to fill for each process
#define SPARE 4 // posted for chunks that carry no bytes
#define DONE_MAX 16

typedef struct Chunk {
    uint8_t context[OFI_CONTEXT_BYTES]; // the library's, while it has the chunk
    struct Chunk *next;
    Link *link; // to whom it goes; NULL: a posted one
    uint8_t *at;
    size_t bytes, read; // behind the head
} Chunk;

struct Link {
    Fabric *fabric;
    uint64_t to;
    uint8_t mine[WORDS], theirs[WORDS]; // what its chunks begin with, and ours
    size_t chunk;                       // its chunks are as long at most
    uint32_t window;
    bool heard, knows; // it could be heard; it is told to whom it speaks
    char fault[80];
    // out
    Chunk *open, *free, *queue, **last;
    Chunk say; // one without bytes
    bool says;
    uint32_t posted; // chunks that the library has
    uint64_t sent, taken; // chunks; of them, those it took
    // in
    Chunk *inbox[WINDOW_MAX];
    uint64_t next, told; // the number that comes next; the one it knows of
};

struct Fabric {
    Ofi *ofi;
    char way[16]; // "fabric tcp"
    uint32_t me, n, window;
    size_t chunk;
    uint8_t *slab;
    Chunk *chunks;
    uint32_t nchunks, used;
    Chunk *unposted;
    Link **links;
};

// --- life ----------------------------------------------------------------------------------------

static void fabric_post(Fabric *f) {
    Chunk *c;
    while ((c = f->unposted) && ofi_recv(f->ofi, c->context, c->at, f->chunk) == 1)
        f->unposted = c->next;
}

static Chunk *chunk_take(Fabric *f) {
    assert(f->used < f->nchunks);
    Chunk *c = &f->chunks[f->used];
    c->at = f->slab + f->chunk * f->used++;
    return c;
}

static bool fabric_alloc(Fabric *f, uint32_t peers) {
    static const struct {
        uint32_t peers, window;
        size_t chunk;
    } sizes[] = {{8, 6, 1 << 18}, {32, WINDOW_MAX, 1 << 16}, {UINT32_MAX, 4, 1 << 14}}; // 53 MB at most
    size_t k = 0;
    while (peers > sizes[k].peers)
        k++;
    f->window = sizes[k].window;
    f->chunk = sizes[k].chunk;
    f->nchunks = peers * (f->window + SPARE + OUT + 1);
    f->chunks = calloc(f->nchunks, sizeof *f->chunks);
    f->links = calloc(f->n, sizeof(Link *));
    f->slab = aligned_alloc(4096, f->chunk * f->nchunks);
    return f->chunks && f->links && f->slab;
}

bool fabric_open(const char *provider, const char *ip, uint32_t me, uint32_t n, uint32_t peers, Fabric **out, char *why,
                 size_t why_bytes) {
    Fabric *f = calloc(1, sizeof *f);
    *out = NULL;
    if (f)
        *f = (Fabric){.me = me, .n = n};
    bool ok = f && fabric_alloc(f, peers);
    if (!ok)
        snprintf(why, why_bytes, "out of memory");
    else
        ok = ofi_open(provider, ip, &(OfiMemory){f->slab, f->chunk * f->nchunks, f->nchunks}, &f->ofi, why, why_bytes);
    if (!ok) {
        fabric_close(f);
        return false;
    }
    for (uint32_t i = 0; i < peers * (f->window + SPARE); i++) {
        Chunk *c = chunk_take(f);
        c->next = f->unposted;
        f->unposted = c;
    }
    fabric_post(f);
    snprintf(f->way, sizeof f->way, "fabric %.8s", ofi_provider(f->ofi));
    *out = f;
    return true;
}

void fabric_close(Fabric *f) {
    if (!f)
        return;
    ofi_close(f->ofi);
    for (uint32_t i = 0; f->links && i < f->n; i++)
        free(f->links[i]);
    free(f->links);
    free(f->chunks);
    free(f->slab);
    free(f);
}

const char *fabric_way(const Fabric *f) { return f->way; }
int fabric_fd(const Fabric *f) { return ofi_fd(f->ofi); }
bool fabric_may_sleep(Fabric *f) { return ofi_may_sleep(f->ofi); }

// --- out -----------------------------------------------------------------------------------------

static void link_fail(Link *l, const char *why) {
    if (!l->fault[0])
        snprintf(l->fault, sizeof l->fault, "libfabric: %s", why ? why : "it cannot be sent to");
}

// 1: it goes; 0: not now.
static int chunk_send(Link *l, Chunk *c) {
    Fabric *f = l->fabric;
    memcpy(c->at, l->theirs, WORDS);
    le_store32(c->at + 16, f->me);
    le_store32(c->at + 20, (uint32_t)c->bytes);
    le_store64(c->at + 24, l->sent);
    le_store64(c->at + 32, l->next);
    le_store64(c->at + 40, 0);
    int sent = l->fault[0] ? 0 : ofi_send(f->ofi, c->context, c->at, CHUNK_HEAD + c->bytes, l->to);
    if (sent < 0)
        link_fail(l, NULL);
    if (sent <= 0)
        return 0;
    l->told = l->next;
    l->knows = true;
    l->posted++;
    return 1;
}

static void link_post(Link *l) {
    Chunk *c;
    while ((c = l->queue) && l->sent - l->taken < l->window && chunk_send(l, c)) {
        l->queue = c->next;
        if (!l->queue)
            l->last = &l->queue;
        l->sent++;
    }
}

// Says how many were taken, when it is as many as that.
static void link_say(Link *l, uint64_t least) {
    if (!l->says && l->next - l->told >= least)
        l->says = chunk_send(l, &l->say);
}

void link_flush(Link *l) {
    Chunk *c = l->open;
    if (c && c->bytes) {
        l->open = NULL;
        c->next = NULL;
        *l->last = c;
        l->last = &c->next;
    }
    link_post(l);
}

size_t link_write(Link *l, const void *from, size_t n) {
    size_t done = 0;
    while (done < n) {
        if (!l->open && (l->open = l->free)) {
            l->free = l->open->next;
            l->open->bytes = 0;
        }
        if (!l->open)
            break;
        Chunk *c = l->open;
        size_t room = l->chunk - CHUNK_HEAD - c->bytes, k = n - done < room ? n - done : room;
        memcpy(c->at + CHUNK_HEAD + c->bytes, (const char *)from + done, k);
        c->bytes += k;
        done += k;
        if (k == room)
            link_flush(l);
    }
    return done;
}

// --- in ------------------------------------------------------------------------------------------

static void chunk_back(Fabric *f, Chunk *c) {
    c->next = f->unposted;
    f->unposted = c;
    fabric_post(f);
}

static void chunk_came(Fabric *f, Chunk *c, size_t bytes) {
    uint32_t from = bytes >= CHUNK_HEAD ? le_load32(c->at + 16) : f->n;
    Link *l = from < f->n ? f->links[from] : NULL;
    if (!l || !wire_same(c->at, l->mine, WORDS) || le_load32(c->at + 20) != bytes - CHUNK_HEAD) {
        chunk_back(f, c);
        return;
    }
    uint64_t number = le_load64(c->at + 24), taken = le_load64(c->at + 32);
    l->heard = true;
    if (taken > l->taken && taken <= l->sent)
        l->taken = taken;
    c->bytes = bytes - CHUNK_HEAD;
    c->read = 0;
    if (c->bytes && number - l->next < f->window && !l->inbox[number % WINDOW_MAX]) {
        l->inbox[number % WINDOW_MAX] = c;
        return;
    }
    if (c->bytes)
        link_fail(l, "it sent what is no message");
    chunk_back(f, c);
}

size_t link_read(Link *l, void *to, size_t n) {
    size_t done = 0;
    while (done < n) {
        Chunk **slot = &l->inbox[l->next % WINDOW_MAX], *c = *slot;
        if (!c)
            break;
        size_t room = c->bytes - c->read, k = n - done < room ? n - done : room;
        memcpy((char *)to + done, c->at + CHUNK_HEAD + c->read, k);
        c->read += k;
        done += k;
        if (k == room) {
            *slot = NULL;
            l->next++;
            chunk_back(l->fabric, c);
            link_say(l, l->fabric->window / 2);
        }
    }
    return done;
}

// --- getting on ----------------------------------------------------------------------------------

static void chunk_went(Chunk *c, const OfiDone *d) {
    Link *l = c->link;
    l->posted--;
    if (!d->ok)
        link_fail(l, d->why);
    if (c == &l->say) {
        l->says = false;
        return;
    }
    c->next = l->free;
    l->free = c;
}

bool fabric_move(Fabric *f) {
    OfiDone done[DONE_MAX];
    bool moved = false;
    for (uint32_t n; (n = ofi_done(f->ofi, done, DONE_MAX));) {
        for (uint32_t i = 0; i < n; i++) {
            Chunk *c = done[i].context;
            if (c && c->link)
                chunk_went(c, &done[i]);
            else if (c && done[i].ok)
                chunk_came(f, c, done[i].bytes);
            else if (c)
                chunk_back(f, c);
        }
        moved = true;
    }
    fabric_post(f);
    for (uint32_t i = 0; i < f->n; i++)
        if (f->links[i]) {
            link_post(f->links[i]);
            link_say(f->links[i], f->window / 2);
        }
    return moved;
}

bool fabric_pending(const Fabric *f) {
    bool pending = false;
    for (uint32_t i = 0; i < f->n && !pending; i++) {
        const Link *l = f->links[i];
        pending = l && !l->fault[0] && (l->posted || l->queue || l->next - l->told >= f->window / 2);
    }
    return pending;
}

void link_tell(Link *l) { link_say(l, 1); }
bool link_settled(const Link *l) { return l->fault[0] || (!l->queue && !l->posted && l->sent == l->taken); }
void link_end(Link *l) { link_fail(l, "it is gone"); }
const char *link_fault(const Link *l) { return l->fault[0] ? l->fault : NULL; }

// --- meeting -------------------------------------------------------------------------------------

static Link *link_new(Fabric *f, uint32_t process) {
    Link *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    *l = (Link){.fabric = f};
    l->last = &l->queue;
    for (int i = 0; i < OUT; i++) {
        Chunk *c = chunk_take(f);
        c->link = l;
        c->next = l->free;
        l->free = c;
    }
    l->say = (Chunk){.link = l, .at = chunk_take(f)->at};
    return f->links[process] = l;
}

bool link_make(Fabric *f, uint32_t process, Link **out, FabricCard *card) {
    Link *l = f->links[process] ? f->links[process] : link_new(f, process); // it may have called before, in vain
    if (!l || getrandom(l->mine, WORDS, 0) != WORDS)
        return false;
    *card = (FabricCard){.chunk = (uint32_t)f->chunk, .window = f->window};
    snprintf(card->provider, sizeof card->provider, "%s", ofi_provider(f->ofi));
    memcpy(card->words, l->mine, WORDS);
    card->name_bytes = (uint32_t)ofi_name(f->ofi, card->name, sizeof card->name);
    l->heard = l->knows = false;
    l->fault[0] = 0;
    *out = l;
    return card->name_bytes;
}

static bool link_fits(Link *l, const FabricCard *card) {
    if (strncmp(card->provider, ofi_provider(l->fabric->ofi), sizeof card->provider) || card->name_bytes > sizeof card->name ||
        card->chunk < 2 * CHUNK_HEAD || !card->window)
        return false;
    l->chunk = card->chunk < l->fabric->chunk ? card->chunk : l->fabric->chunk;
    l->window = card->window < WINDOW_MAX ? card->window : WINDOW_MAX;
    memcpy(l->theirs, card->words, WORDS);
    return ofi_meet(l->fabric->ofi, card->name, &l->to);
}

// Each says a word, the one that was called after it was spoken to: so only one side has to be connected to.
bool link_meet(Link *l, const FabricCard *card, bool first, int64_t until_ms) {
    if (!link_fits(l, card))
        return false;
    while (!(l->heard && l->knows && !l->says) && !l->fault[0] && now_ms() < until_ms) {
        if (!l->knows && (first || l->heard))
            link_say(l, 0);
        if (!fabric_move(l->fabric))
            usleep(50);
    }
    return l->heard && l->knows && !l->fault[0];
}
