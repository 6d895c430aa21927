// SPDX-License-Identifier: Apache-2.0
// door.c — listening, calling, and proving that one knows the job's secret; see net_in.h.
//
// What calls may be anybody. Callers that cannot prove themselves are sent away, those that take their time too; there are never
// more than CALLERS_MAX of them: the one that has taken longest makes room. Nothing here waits for a caller.
#define HOST_BYTES 256
#define _GNU_SOURCE // accept4
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/now.h"
#include "net/net_in.h"

#define CALL_MS 5000     // for one exchange of hellos
#define ACCEPTS_MAX 64   // between two looks at those inside

// --- bytes ---------------------------------------------------------------------------------------

// What is there already counts, however late it is.
static bool wait_for(int fd, short events, int64_t until_ms) {
    int64_t left = until_ms - now_ms();
    struct pollfd p = {.fd = fd, .events = events};
    return poll(&p, 1, left > 0 ? (int)left : 0) > 0;
}

bool door_send(int fd, const void *from, size_t n, int64_t until_ms) {
    for (const uint8_t *at = from; n;) {
        ssize_t k = send(fd, at, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (k < 0 && errno != EAGAIN && errno != EINTR)
            return false;
        if (k <= 0 && !wait_for(fd, POLLOUT, until_ms))
            return false;
        at += k > 0 ? k : 0;
        n -= k > 0 ? (size_t)k : 0;
    }
    return true;
}

bool door_recv(int fd, void *to, size_t n, int64_t until_ms) {
    for (uint8_t *at = to; n;) {
        ssize_t k = recv(fd, at, n, MSG_DONTWAIT);
        if (k == 0 || (k < 0 && errno != EAGAIN && errno != EINTR))
            return false;
        if (k < 0 && !wait_for(fd, POLLIN, until_ms))
            return false;
        at += k > 0 ? k : 0;
        n -= k > 0 ? (size_t)k : 0;
    }
    return true;
}

// --- addresses -----------------------------------------------------------------------------------

// A socket of both kinds has IPv4 addresses inside IPv6 ones: not all who are told such an address can do with it.
bool addr_print(const NetAddr *a, char *out, size_t bytes) {
    if (a->any.sa_family == AF_INET)
        return inet_ntop(AF_INET, &a->v4.sin_addr, out, (socklen_t)bytes) != NULL;
    if (IN6_IS_ADDR_V4MAPPED(&a->v6.sin6_addr))
        return inet_ntop(AF_INET, &a->v6.sin6_addr.s6_addr[12], out, (socklen_t)bytes) != NULL;
    return inet_ntop(AF_INET6, &a->v6.sin6_addr, out, (socklen_t)bytes) != NULL;
}

bool addr_parse(const char *ip, uint16_t port, NetAddr *a) {
    *a = (NetAddr){.v4 = {.sin_family = AF_INET, .sin_port = htons(port)}};
    if (inet_pton(AF_INET, ip, &a->v4.sin_addr) == 1)
        return true;
    *a = (NetAddr){.v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)}};
    return inet_pton(AF_INET6, ip, &a->v6.sin6_addr) == 1;
}

static socklen_t addr_bytes(const NetAddr *a) { return a->any.sa_family == AF_INET ? sizeof a->v4 : sizeof a->v6; }

// "host:port" or "[ip6]:port"; the port begins behind the last colon.
static bool addr_cut(const char *at, char host[HOST_BYTES], const char **port, char *why, size_t why_bytes) {
    const char *colon = strrchr(at, ':'), *begin = at, *end = colon;
    if (colon && *at == '[' && colon > at && colon[-1] == ']')
        begin++, end--;
    if (!colon || end <= begin || end - begin >= HOST_BYTES) {
        snprintf(why, why_bytes, "'%.100s' is not HOST:PORT", at);
        return false;
    }
    char *rest;
    unsigned long number = strtoul(colon + 1, &rest, 10);
    if (colon[1] < '0' || colon[1] > '9' || *rest || number > 65535) {
        snprintf(why, why_bytes, "'%.100s' is not HOST:PORT: '%.20s' is no port", at, colon + 1);
        return false;
    }
    memcpy(host, begin, (size_t)(end - begin));
    host[end - begin] = 0;
    *port = colon + 1;
    return true;
}

bool addr_is_written(const char *at, char *why, size_t why_bytes) {
    char host[HOST_BYTES];
    const char *port;
    return addr_cut(at, host, &port, why, why_bytes);
}

uint32_t addr_find(const char *at, NetAddr *out, uint32_t max, char *why, size_t why_bytes) {
    char host[HOST_BYTES];
    const char *port;
    if (!addr_cut(at, host, &port, why, why_bytes))
        return 0;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *list = NULL;
    int bad = getaddrinfo(host, port, &hints, &list);
    uint32_t n = 0;
    for (struct addrinfo *i = bad ? NULL : list; i && n < max; i = i->ai_next)
        if (i->ai_addrlen <= sizeof *out && (i->ai_family == AF_INET || i->ai_family == AF_INET6)) {
            out[n] = (NetAddr){0};
            memcpy(&out[n++], i->ai_addr, i->ai_addrlen);
        }
    if (!bad)
        freeaddrinfo(list);
    if (!n)
        snprintf(why, why_bytes, "there is no address %.100s: %s", at, bad ? gai_strerror(bad) : "not of the internet");
    return n;
}

// --- the door ------------------------------------------------------------------------------------

bool door_listen(Door *d, const NetAddr *at) {
    int one = 1, off = 0;
    d->listener = socket(at->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (d->listener < 0)
        return false;
    setsockopt(d->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (at->any.sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&at->v6.sin6_addr))
        setsockopt(d->listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (!bind(d->listener, &at->any, addr_bytes(at)) && !listen(d->listener, 512))
        return true;
    int error = errno;
    close(d->listener);
    d->listener = -1;
    errno = error;
    return false;
}

uint16_t door_port(const Door *d) {
    NetAddr a = {0};
    socklen_t len = sizeof a;
    if (getsockname(d->listener, &a.any, &len))
        return 0;
    return ntohs(a.any.sa_family == AF_INET ? a.v4.sin_port : a.v6.sin6_port);
}

static void caller_drop(Door *d, uint32_t k, bool hang_up) {
    if (hang_up)
        close(d->callers[k].fd);
    memmove(&d->callers[k], &d->callers[k + 1], (d->n - k - 1) * sizeof *d->callers);
    d->n--;
}

void door_close(Door *d) {
    while (d->n)
        caller_drop(d, 0, true);
    if (d->listener >= 0)
        close(d->listener);
    d->listener = -1;
    explicit_bzero(d->secret, sizeof d->secret);
}

static void caller_add(Door *d, int fd) {
    if (d->n == CALLERS_MAX)
        caller_drop(d, 0, true);
    d->callers[d->n++] = (Caller){.fd = fd, .until_ms = now_ms() + CALL_MS};
}

static bool caller_answer(const Door *d, Caller *c) {
    WireHello mine = {.from = c->hello.to, .to = c->hello.from, .channel = c->hello.channel};
    if (getrandom(c->nonce, sizeof c->nonce, 0) != sizeof c->nonce)
        return false;
    memcpy(mine.nonce, c->nonce, sizeof mine.nonce);
    Sha256 proof = wire_proof(d->secret, 'a', &c->hello, c->nonce);
    memcpy(mine.proof, proof.at, sizeof mine.proof);
    uint8_t bytes[WIRE_HELLO_BYTES];
    wire_put_hello(&mine, bytes);
    c->answered = true;
    c->have = 0;
    return send(c->fd, bytes, sizeof bytes, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof bytes;
}

// Goes on with what came. False: send it away. *done: it is one of us.
static bool caller_step(const Door *d, Caller *c, bool *done) {
    ssize_t k = recv(c->fd, c->bytes + c->have, sizeof c->bytes - c->have, MSG_DONTWAIT);
    if (k <= 0)
        return k < 0 && (errno == EAGAIN || errno == EINTR);
    c->have += (size_t)k;
    if (c->have < sizeof c->bytes)
        return true;
    WireHello h;
    if (!wire_get_hello(c->bytes, &h) || !d->fits(d->arg, &h))
        return false;
    if (!c->answered) {
        c->hello = h;
        return caller_answer(d, c);
    }
    Sha256 want = wire_proof(d->secret, 'c', &c->hello, c->nonce);
    *done = h.from == c->hello.from && h.channel == c->hello.channel && wire_same(want.at, h.proof, sizeof want.at);
    return *done;
}

static void callers_step(Door *d, const struct pollfd *polls, uint32_t n) {
    for (uint32_t k = n; k-- > 0;) {
        Caller *c = &d->callers[k];
        bool done = false;
        bool stays = polls[k].revents ? caller_step(d, c, &done) : now_ms() < c->until_ms;
        if (done)
            caller_drop(d, k, !d->enter(d->arg, &c->hello, c->fd));
        else if (!stays)
            caller_drop(d, k, true);
    }
}

uint32_t door_polls(const Door *d, struct pollfd *polls) {
    for (uint32_t k = 0; k < d->n; k++)
        polls[k] = (struct pollfd){.fd = d->callers[k].fd, .events = POLLIN};
    polls[d->n] = (struct pollfd){.fd = d->listener, .events = POLLIN};
    return d->n + 1;
}

void door_step(Door *d, const struct pollfd *polls, uint32_t n) {
    callers_step(d, polls, n - 1);
    for (int k = 0; k < ACCEPTS_MAX; k++) {
        int fd = accept4(d->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
            caller_add(d, fd);
        else if ((errno == EMFILE || errno == ENFILE) && d->n)
            caller_drop(d, 0, true); // no more connections for this process: one that has not proved itself makes room
        else
            break;
    }
}

// --- calling -------------------------------------------------------------------------------------

// Where nobody listens yet a connection may get the called port as its own, and be to itself.
static bool is_self(int fd) {
    NetAddr here = {0}, there = {0};
    socklen_t n = sizeof here, m = sizeof there;
    return !getsockname(fd, &here.any, &n) && !getpeername(fd, &there.any, &m) && n == m && !memcmp(&here, &there, n);
}

// 0, or why there is no connection.
static int connect_until(int fd, const NetAddr *a, int64_t until_ms) {
    int error = 0;
    socklen_t len = sizeof error;
    if (!connect(fd, &a->any, addr_bytes(a)))
        return 0;
    if (errno != EINPROGRESS)
        return errno;
    if (!wait_for(fd, POLLOUT, until_ms))
        return ETIMEDOUT;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) ? errno : error;
}

static int dial(const NetAddr *a, int64_t until_ms) {
    int fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1;
    if (fd < 0)
        return -1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    int error = connect_until(fd, a, until_ms);
    if (!error && !is_self(fd))
        return fd;
    close(fd);
    errno = error ? error : ECONNREFUSED;
    return -1;
}

// The first word tells who speaks: another program may say less than a hello, and wait.
static DoorResult hear(int fd, WireHello *h, int64_t until_ms) {
    enum { WORD = 4 };
    uint8_t bytes[WIRE_HELLO_BYTES];
    if (!door_recv(fd, bytes, WORD, until_ms))
        return DOOR_BUSY;
    if (le_load32(bytes) != WIRE_MAGIC)
        return DOOR_FOREIGN;
    if (!door_recv(fd, bytes + WORD, sizeof bytes - WORD, until_ms))
        return DOOR_BUSY;
    return wire_get_hello(bytes, h) ? DOOR_OK : DOOR_FOREIGN;
}

static DoorResult greet(int fd, const uint8_t secret[SHA256_BYTES], WireHello mine, int64_t until) {
    uint8_t bytes[WIRE_HELLO_BYTES];
    WireHello theirs;
    if (getrandom(mine.nonce, sizeof mine.nonce, 0) != sizeof mine.nonce)
        return DOOR_BUSY;
    wire_put_hello(&mine, bytes);
    DoorResult heard = door_send(fd, bytes, sizeof bytes, until) ? hear(fd, &theirs, until) : DOOR_BUSY;
    if (heard != DOOR_OK)
        return heard;
    Sha256 want = wire_proof(secret, 'a', &mine, theirs.nonce);
    if (!wire_same(want.at, theirs.proof, sizeof want.at))
        return DOOR_STRANGER;
    Sha256 proof = wire_proof(secret, 'c', &mine, theirs.nonce);
    memcpy(mine.proof, proof.at, sizeof mine.proof);
    wire_put_hello(&mine, bytes);
    return door_send(fd, bytes, sizeof bytes, until) ? DOOR_OK : DOOR_BUSY;
}

static int64_t sooner(int64_t a, int64_t b) { return a < b ? a : b; }

int door_call(const NetAddr *at, const uint8_t secret[SHA256_BYTES], WireHello hello, int64_t until_ms, DoorResult *result) {
    int fd = dial(at, sooner(until_ms, now_ms() + CALL_MS));
    *result = fd < 0 ? DOOR_NOBODY : greet(fd, secret, hello, sooner(until_ms, now_ms() + CALL_MS));
    if (fd < 0 || *result == DOOR_OK)
        return fd;
    close(fd);
    return -1;
}
