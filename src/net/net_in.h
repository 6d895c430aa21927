// SPDX-License-Identifier: Apache-2.0
// net_in.h — a world from the inside, for the files of net.
//
//   wire.c     frames and proofs as bytes, and what may not be in them
//   door.c     listening, calling, proving that one knows the secret
//   root.c     a store of our own, behind a door
//   join.c     from the store to connections
//   net.c      life of a world, heartbeats, failures
//   exchange.c messages
//   ring.c     shared memory between two processes of a host
//   direct.c   what such a process reads of the other's memory
//   share.c    what one process makes for all
//   fabric.c   libfabric between two processes
//   libfabric.c its functions
#ifndef OTRN_NET_IN_H
#define OTRN_NET_IN_H

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "base/sha256.h"
#include "net/net.h"

// --- wire.c --------------------------------------------------------------------------------------
#define WIRE_MAGIC 0x314e544fu // OTN1
#define WIRE_HEAD_BYTES 192
#define WIRE_BODY_MAX ((uint64_t)1 << 40) // of a message
#define WIRE_NOTE_MAX 1024                // of a frame of the control connection

// OFFER: a message that lies in its sender's memory, where the receiver may read it.
typedef enum WireKind { WIRE_DATA = 1, WIRE_OFFER, WIRE_BEAT, WIRE_FAIL, WIRE_BYE, WIRE_SHARE, WIRE_KINDS } WireKind;

typedef struct WireHead {
    uint32_t kind, from;
    uint64_t bytes; // behind the head; of an offer, those to be read
    uint64_t tag, set, number, program, sign;
    char name[48], op[64]; // of the program; of the operation
    uint64_t table;        // of an offer: where its segments are listed (NetSeg), how many, and its number
    uint32_t nsegs, offer;
} WireHead;

void wire_put(const WireHead *h, uint8_t out[WIRE_HEAD_BYTES]);
// False: these bytes are no head that process `from` may send on a connection for data or for control.
bool wire_get(const uint8_t in[WIRE_HEAD_BYTES], uint32_t from, bool data, WireHead *h);

typedef enum NetState { NET_IDLE, NET_RUNS, NET_WAITS } NetState;
typedef struct WireNote { // what a heartbeat carries
    uint32_t state;
    uint64_t set, number, moves; // moves: how often the process got on
    char name[48], op[64], where[160];
} WireNote;
size_t wire_put_note(const WireNote *n, uint8_t out[WIRE_NOTE_MAX]);
bool wire_get_note(const uint8_t *in, size_t bytes, WireNote *n);

typedef struct WireShare { // about something that one process makes for all (share.c)
    uint32_t verb, maker;
    uint64_t bytes;
    Sha256 key, sum; // its name, and that of its contents
} WireShare;
size_t wire_put_share(const WireShare *s, uint8_t out[WIRE_NOTE_MAX]);
bool wire_get_share(const uint8_t *in, size_t bytes, WireShare *s);

#define WIRE_HELLO_BYTES 96
typedef struct WireHello { // each side sends one; the connecting side's proof follows
    uint32_t from, to, channel;
    uint8_t nonce[16], proof[SHA256_BYTES];
} WireHello;
void wire_put_hello(const WireHello *h, uint8_t out[WIRE_HELLO_BYTES]);
bool wire_get_hello(const uint8_t in[WIRE_HELLO_BYTES], WireHello *h);
// What only one who knows the secret can say about the two nonces; `side` keeps an answer from being sent back.
Sha256 wire_proof(const uint8_t secret[SHA256_BYTES], char side, const WireHello *caller, const uint8_t nonce[16]);
bool wire_same(const void *a, const void *b, size_t n); // in a time that does not depend on the bytes

#define WIRE_ASK_BYTES 24
#define WIRE_KEY_MAX 256
#define WIRE_VALUE_MAX (1 << 20)
typedef enum WireAskKind { ASK_PUT = 1, ASK_GET } WireAskKind;
typedef enum WireAnswer { ANSWER_OK = 16, ANSWER_LATE, ANSWER_FULL, ANSWERS } WireAnswer;
typedef struct WireAsk { // of the root, and its answer: key and value follow
    uint32_t kind, key_bytes, value_bytes, timeout_ms;
} WireAsk;
void wire_put_ask(const WireAsk *a, uint8_t out[WIRE_ASK_BYTES]);
bool wire_get_ask(const uint8_t in[WIRE_ASK_BYTES], WireAsk *a);

// --- door.c --------------------------------------------------------------------------------------
typedef union NetAddr {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} NetAddr;
bool addr_print(const NetAddr *a, char *out, size_t bytes);       // without its port
bool addr_parse(const char *ip, uint16_t port, NetAddr *a);
// What "host:port" stands for, at most max; 0: `why` tells.
bool addr_is_written(const char *at, char *why, size_t why_bytes); // as HOST:PORT
uint32_t addr_find(const char *at, NetAddr *out, uint32_t max, char *why, size_t why_bytes);

#define CALLERS_MAX 128
typedef struct Caller { // a connection that has not shown yet who it is
    int fd;
    bool answered; // the first hello came and was answered
    WireHello hello;
    uint8_t bytes[WIRE_HELLO_BYTES], nonce[16];
    size_t have;
    int64_t until_ms;
} Caller;

typedef struct Door { // all zero but listener -1 before door_listen
    int listener;
    uint8_t secret[SHA256_BYTES];
    Caller callers[CALLERS_MAX];
    uint32_t n;
    bool (*fits)(void *arg, const WireHello *h);          // may such a one come?
    bool (*enter)(void *arg, const WireHello *h, int fd); // it has proved itself; false: hang up
    void *arg;
} Door;
bool door_listen(Door *d, const NetAddr *at); // false: errno tells
uint16_t door_port(const Door *d);
uint32_t door_polls(const Door *d, struct pollfd *polls); // fills what to wait for, CALLERS_MAX + 1 at most: how many
void door_step(Door *d, const struct pollfd *polls, uint32_t n); // goes on with what came
void door_close(Door *d);
// Nobody listens, as errno tells; or answers; what answers is no door of this release; it does not know the secret.
typedef enum DoorResult { DOOR_OK, DOOR_NOBODY, DOOR_BUSY, DOOR_FOREIGN, DOOR_STRANGER } DoorResult;
// A connection on which both sides proved themselves, or -1.
int door_call(const NetAddr *at, const uint8_t secret[SHA256_BYTES], WireHello hello, int64_t until_ms, DoorResult *result);
bool door_send(int fd, const void *from, size_t n, int64_t until_ms);
bool door_recv(int fd, void *to, size_t n, int64_t until_ms);

// --- ring.c --------------------------------------------------------------------------------------
#define RING_BYTES ((size_t)1 << 20)
typedef struct Ring Ring; // bytes from one process to another
typedef struct RingPair { // this process's ends; NULL: there is none
    void *map;
    Ring *out, *in;
} RingPair;
bool ring_make(RingPair *p, char name[40], bool first);             // first: whose ring comes first
bool ring_open(RingPair *p, const char *name, bool first); // maps it and takes its name away
void ring_close(RingPair *p);
size_t ring_write(Ring *r, const void *from, size_t n); // as much as there is room for
size_t ring_read(Ring *r, void *to, size_t n);          // as much as there is
bool ring_empty(const Ring *r);
bool ring_full(const Ring *r);
// The reader of r says that it sleeps, for want of bytes in r or of room in its other ring. Who gave it either asks, and rings a
// bell when true.
void ring_sleep(Ring *r, bool asleep);
bool ring_asleep(Ring *r);
// The writer of r lets the reader read its memory: a number, 0 when there are too many already. It ends the offer when the message
// was taken, or without; the reader has it only when offer_take, behind its reads, says that it had not been ended before.
uint32_t offer_make(Ring *r);
bool offer_taken(const Ring *r, uint32_t offer);
void offer_end(Ring *r, uint32_t offer);
bool offer_take(Ring *r, uint32_t offer);

// --- direct.c ------------------------------------------------------------------------------------
typedef struct Cursor { // how far a list of segments is done
    const NetSeg *segs;
    uint32_t n, seg;
    size_t at;
} Cursor;
void cursor_init(Cursor *c, const NetSeg *segs, uint32_t n);
void cursor_skip(Cursor *c);
void cursor_move(Cursor *c, size_t n);
static inline bool cursor_done(const Cursor *c) { return c->seg == c->n; }
static inline void *cursor_at(const Cursor *c, size_t *room) {
    *room = c->segs[c->seg].bytes - c->at;
    return (char *)c->segs[c->seg].data + c->at;
}

typedef struct Direct { // with one other process
    bool reads, is_read;  // it can be read here, this process there
    uint8_t secret[16];   // what it has to find here
} Direct;
typedef struct DirectProof { // sent to the other
    uint64_t pid, at;
    uint8_t secret[16];
} DirectProof;
void direct_show(Direct *d, DirectProof *p);
void direct_try(Direct *d, const DirectProof *p); // fills reads
bool direct_read(long pid, const WireHead *offer, Cursor *to);

// --- share.c -------------------------------------------------------------------------------------
typedef struct NetShare NetShare;
bool share_open(Net *n);
void share_close(Net *n); // while the control thread still goes
void share_free(NetShare *s);
void share_heard_locked(Net *n, uint32_t from, const uint8_t *body, size_t bytes);
void share_gone_locked(Net *n, uint32_t process);

// --- libfabric.c ---------------------------------------------------------------------------------
#define OFI_CONTEXT_BYTES 64 // of an operation, for the library
typedef struct Ofi Ofi;      // an endpoint that sends to and receives from anybody it has met
typedef struct OfiMemory {
    void *at; // all that is ever sent or received
    size_t bytes, operations; // under way, at most
} OfiMemory;
typedef struct OfiDone {
    void *context;
    size_t bytes; // of one that came
    bool ok;
    const char *why;
} OfiDone;
// provider: tcp, efa; NULL: the best there is. ip: where the others reach this host.
bool ofi_open(const char *provider, const char *ip, const OfiMemory *m, Ofi **out, char *why, size_t why_bytes);
void ofi_close(Ofi *o); // may be NULL
const char *ofi_provider(const Ofi *o);
size_t ofi_name(Ofi *o, void *out, size_t max); // by which others meet it; 0: it has none
bool ofi_meet(Ofi *o, const void *name, uint64_t *to);
int ofi_send(Ofi *o, void *context, const void *from, size_t n, uint64_t to); // 1: under way, 0: not now, -1: never
int ofi_recv(Ofi *o, void *context, void *to, size_t n);
uint32_t ofi_done(Ofi *o, OfiDone *out, uint32_t max); // operations that are done, at most 16 and none without looking
int ofi_fd(const Ofi *o);    // to poll for operations that are done, when it may be slept on; -1: there is none
bool ofi_may_sleep(Ofi *o);

// --- fabric.c ------------------------------------------------------------------------------------
typedef struct Fabric Fabric; // of a process
typedef struct Link Link;     // to another
typedef struct FabricCard {   // what a process tells the other, to be sent to
    char provider[32];
    uint32_t chunk, window, name_bytes; // name_bytes 0: not through libfabric
    uint8_t words[16], name[132];
} FabricCard;
// For at most that many links.
bool fabric_open(const char *provider, const char *ip, uint32_t me, uint32_t n, uint32_t links, Fabric **out, char *why,
                 size_t why_bytes);
void fabric_close(Fabric *f); // may be NULL
const char *fabric_way(const Fabric *f); // "fabric tcp", for reports
bool fabric_move(Fabric *f);          // what is done; whether there was anything
bool fabric_pending(const Fabric *f); // something goes out only if somebody moves it
int fabric_fd(const Fabric *f);
bool fabric_may_sleep(Fabric *f);
bool link_make(Fabric *f, uint32_t process, Link **out, FabricCard *card);
bool link_meet(Link *l, const FabricCard *card, bool first, int64_t until_ms); // first: who speaks first
size_t link_write(Link *l, const void *from, size_t n); // as much as there is room for
void link_flush(Link *l);                               // what was written goes off
size_t link_read(Link *l, void *to, size_t n);          // as much as there is
void link_tell(Link *l);                                // the other, how much was taken
bool link_settled(const Link *l);                       // all was taken
void link_end(Link *l);                                 // it is gone: nothing is sent any more
const char *link_fault(const Link *l);                  // NULL: none

// --- the world -----------------------------------------------------------------------------------
enum { CHANNEL_CONTROL, CHANNEL_DATA, CHANNELS, CHANNEL_ROOT = CHANNELS }; // of a pair of processes; to the store

typedef struct Exchange Exchange;

typedef struct Push { // a message on its way out
    struct Push *next;
    Exchange *x; // NULL: nobody waits for it any more, and `own` goes with it
    uint8_t head[WIRE_HEAD_BYTES];
    size_t head_at;
    Cursor body;
    NetSeg own;
    uint32_t offer; // 0: its bytes are sent
} Push;

typedef struct Want { // a message somebody waits for
    struct Want *next;
    Exchange *x;
    uint64_t bytes;
    Cursor body;
    struct Peer *peer;
    WireHead head; // of an offer, once it has come
} Want;

typedef struct Arrival { // a message that came before it was asked for
    struct Arrival *next;
    WireHead head;
    NetSeg seg;
    bool whole;
} Arrival;

struct Exchange {
    Exchange *next;
    const NetCall *call;
    uint32_t left;
    uint32_t moves, seen, same; // how often it got on, as the last heartbeat saw it, and heartbeats since it did
    Want *offers; // to be read, by who asked
    const struct Peer *unread; // who offered a message that could not be taken
    int64_t unread_ms;         // when its memory could not be read; 0: it could
    bool failed;
    char why[NET_WHY_BYTES];
};

typedef struct Peer {
    int fd[CHANNELS]; // -1: this process itself, or gone
    RingPair rings;
    Direct direct;
    Link *link; // NULL: bytes do not go through libfabric
    int64_t broken_ms; // since when that cannot be
    NetProcess who;
    bool gone, left; // left: it said goodbye
    char fault[NET_WHY_BYTES];
    // data
    Push *first, **last;
    Push *offered; // not taken yet
    Want *wants;
    Arrival *arrivals;
    uint8_t head_bytes[WIRE_HEAD_BYTES];
    size_t head_have;
    WireHead head; // of the message that is coming in, once head_have is all
    Want *want;    // where it goes, or
    Arrival *arrival; // else nowhere
    uint64_t body_have;
    // control
    uint8_t note_bytes[WIRE_HEAD_BYTES + WIRE_NOTE_MAX];
    size_t note_have;
    WireNote note;
    uint32_t same; // heartbeats since it last got on
    int64_t heard_ms;
} Peer;

typedef struct Fault { // a launch that failed elsewhere
    uint64_t set, number;
    char text[NET_WHY_BYTES];
} Fault;
#define FAULTS_MAX 16

typedef struct Count {
    uint64_t set, n;
} Count;

struct Net {
    uint32_t me, n;
    Peer *peers;
    pthread_mutex_t lock; // of all that follows
    pthread_cond_t came;
    bool driven;  // somebody polls for all
    bool crowded; // more processes on this host than CPUs
    int kick[2];  // a pipe: wakes who polls
    int stop[2];  // a pipe: ends the control thread
    int nudge[2]; // a pipe: wakes it
    Fabric *fabric; // NULL: there is none
    pthread_t control;
    bool has_control, lost;
    unsigned coll_timeout_ms;
    Fault faults[FAULTS_MAX];
    uint32_t nfaults;
    Count *counts;
    uint32_t ncounts;
    // what this process does
    const NetLaunch *launch; // NULL: nothing
    uint64_t last_set, last_number;
    Exchange *active;
    uint64_t moves;
    uint32_t same; // heartbeats since it last moved
    NetShare *share;
    NetWait wait; // see net_waited
};

bool net_nonblocking(int fd);
void net_drain(int fd); // of a pipe: all that is in it
// The process is gone, because: everybody who waits for it is told. With the lock.
void net_gone_locked(Net *n, uint32_t process, const char *why);
void net_wake_locked(Net *n);
void net_tell_locked(Net *n, uint32_t process, WireHead h, const void *body); // on its control connection
bool net_thread(pthread_t *t, void *(*main)(void *), void *arg);              // that no signal of the program reaches
void net_nudge_locked(Net *n); // nobody moves what is still to go through libfabric: the control thread has to
const char *net_fault_locked(Net *n, const NetLaunch *l); // why the launch is over; NULL: it is not
// join.c: fills peers and their connections.
bool net_join(Net *n, const NetSelf *self, const NetKv *kv, char *why, size_t why_bytes);
// What came on a control connection, and bytes of messages in both directions; the latter says whether there were any.
void net_listen_locked(Net *n, uint32_t process);
bool exchange_move_locked(Net *n);
void exchange_drain_locked(Net *n, uint32_t process); // all that a process sent before it left
// exchange.c: messages of launches before this one, which nobody will ask for; NULL: all.
void exchange_forget_locked(Net *n, const NetLaunch *l);

#endif
