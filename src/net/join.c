// SPDX-License-Identifier: Apache-2.0
// join.c — from the store to connections between all processes; see net_in.h.
//
// A process connects to those with a smaller number and is called by the others, twice: control and data. What calls may be
// anybody: a caller has to prove that it knows the job's secret, and everything else about it is taken from the store. Callers
// that cannot are sent away, those that take their time too; there are never more than CALLERS_MAX of them.
#define _GNU_SOURCE // accept4
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "net/net_in.h"

#define CALLERS_MAX 128
#define CALL_MS 5000   // for one exchange of hellos
#define RETRY_MS 50
#define ADDRESSES_MAX 8

typedef struct Caller { // a connection that has not shown yet who it is
    int fd;
    bool answered; // the first hello came and was answered
    WireHello hello;
    uint8_t bytes[WIRE_HELLO_BYTES], nonce[16];
    size_t have;
    int64_t until_ms;
} Caller;

typedef struct Join {
    Net *net;
    const NetSelf *self;
    const NetKv *kv;
    uint8_t secret[SHA256_BYTES];
    bool one_host;
    bool sockets[NET_PROCESSES_MAX]; // it wants no shared memory
    int listener;
    int64_t until_ms;
    Caller callers[CALLERS_MAX];
    uint32_t ncallers, missing; // connections still to come
    char *why;
    size_t why_bytes;
} Join;

#define FAIL(j, ...) (snprintf((j)->why, (j)->why_bytes, __VA_ARGS__), false)

// --- the store -----------------------------------------------------------------------------------

static bool store_put(Join *j, const char *what, uint32_t process, const char *value) {
    char key[48];
    snprintf(key, sizeof key, "net/%s/%u", what, process);
    return j->kv->put(j->kv->arg, key, value, j->why, j->why_bytes);
}

static bool store_get(Join *j, const char *what, uint32_t process, char *value, size_t bytes) {
    char key[48], why[200] = "";
    snprintf(key, sizeof key, "net/%s/%u", what, process);
    int64_t left = j->until_ms - net_now_ms();
    if (j->kv->get(j->kv->arg, key, left > 1 ? (unsigned)left : 1, value, bytes, why, sizeof why))
        return true;
    return FAIL(j, "process %u of %u has not come within %u s (%.150s)", process, j->net->n, j->self->timeout_ms / 1000, why);
}

// Processes that have one kernel and one network in common are on one host.
static void place_print(char *out, size_t bytes) {
    char boot[64] = "", host[64] = "";
    struct stat s = {0};
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (f) {
        if (!fgets(boot, sizeof boot, f))
            boot[0] = 0;
        fclose(f);
    }
    boot[strcspn(boot, "\n")] = 0;
    gethostname(host, sizeof host - 1);
    stat("/proc/self/ns/net", &s);
    uint64_t h = hash64(hash64(s.st_ino, boot, strlen(boot)), host, strlen(host));
    snprintf(out, bytes, "%016" PRIx64, h);
}

// A word of the line: neither empty nor with a space in it.
static const char *word(char *out, size_t bytes, const char *text) {
    snprintf(out, bytes, "%s", *text ? text : "-");
    for (char *p = out; *p; p++)
        if ((unsigned char)*p <= ' ')
            *p = '_';
    return out;
}

static bool publish(Join *j) {
    char line[400], host[64] = "", place[80], name[64], release[32], chip[64];
    gethostname(host, sizeof host - 1);
    place_print(place, sizeof place);
    snprintf(line, sizeof line, "otrn-net 1 %s %s %s %s %u %ld %d", word(release, sizeof release, j->self->release),
             word(chip, sizeof chip, j->self->chip), word(name, sizeof name, host), place, j->self->devices, (long)getpid(),
             j->self->sockets);
    return store_put(j, "who", j->net->me, line);
}

static bool learn_one(Join *j, uint32_t i) {
    NetProcess *p = &j->net->peers[i].who;
    char line[400];
    int sockets;
    if (!store_get(j, "who", i, line, sizeof line))
        return false;
    if (sscanf(line, "otrn-net 1 %31s %63s %63s %79s %u %ld %d", p->release, p->chip, p->host, p->place, &p->devices, &p->pid,
               &sockets) != 7 || p->devices > 1u << 20)
        return FAIL(j, "process %u speaks another protocol: %.100s", i, line);
    j->sockets[i] = sockets || j->self->sockets;
    return true;
}

static bool learn(Join *j) {
    Net *n = j->net;
    uint32_t first = 0;
    for (uint32_t i = 0; i < n->n; i++)
        if (!learn_one(j, i))
            return false;
    j->one_host = true;
    for (uint32_t i = 0; i < n->n; i++) {
        NetProcess *p = &n->peers[i].who, *mine = &n->peers[n->me].who;
        p->first = first;
        first += p->devices;
        j->one_host = j->one_host && !strcmp(p->place, mine->place);
        if (strcmp(p->release, mine->release))
            return FAIL(j, "process %u (host %s, pid %ld) runs opentrn %s, this one, process %u, %s", i, p->host, p->pid,
                        p->release, n->me, mine->release);
        if (strcmp(p->chip, mine->chip))
            return FAIL(j, "process %u (host %s, pid %ld) has the chip %s, this one, process %u, %s", i, p->host, p->pid, p->chip,
                        n->me, mine->chip);
    }
    return true;
}

static bool secret_find(Join *j) {
    char text[SHA256_TEXT];
    if (j->self->secret) {
        Sha256 h = sha256(j->self->secret, strlen(j->self->secret));
        memcpy(j->secret, h.at, sizeof j->secret);
        return true;
    }
    if (j->net->me == 0) {
        Sha256 h;
        if (getrandom(h.at, sizeof h.at, 0) != sizeof h.at)
            return FAIL(j, "the system has no random numbers: %s", strerror(errno));
        sha256_print(&h, text);
        memcpy(j->secret, h.at, sizeof j->secret);
        return store_put(j, "secret", 0, text);
    }
    if (!store_get(j, "secret", 0, text, sizeof text))
        return false;
    for (size_t i = 0; i < SHA256_BYTES; i++)
        if (sscanf(text + 2 * i, "%2hhx", &j->secret[i]) != 1)
            return FAIL(j, "the job's secret is damaged");
    return true;
}

// --- addresses -----------------------------------------------------------------------------------

static bool listen_at(Join *j) {
    struct sockaddr_in a = {.sin_family = AF_INET};
    a.sin_addr.s_addr = htonl(j->one_host ? INADDR_LOOPBACK : INADDR_ANY);
    socklen_t len = sizeof a;
    j->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (j->listener < 0 || bind(j->listener, (struct sockaddr *)&a, sizeof a) || listen(j->listener, 512) ||
        getsockname(j->listener, (struct sockaddr *)&a, &len))
        return FAIL(j, "cannot listen for the other processes: %s", strerror(errno));
    char line[200];
    size_t at = (size_t)snprintf(line, sizeof line, "%u", ntohs(a.sin_port));
    struct ifaddrs *list = NULL;
    if (!j->one_host && getifaddrs(&list))
        return FAIL(j, "cannot ask for this host's addresses: %s", strerror(errno));
    for (struct ifaddrs *i = list; i; i = i->ifa_next) {
        char text[INET_ADDRSTRLEN];
        if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET || i->ifa_flags & IFF_LOOPBACK || !(i->ifa_flags & IFF_UP) ||
            at + sizeof text + 1 > sizeof line)
            continue;
        inet_ntop(AF_INET, &((struct sockaddr_in *)i->ifa_addr)->sin_addr, text, sizeof text);
        at += (size_t)snprintf(line + at, sizeof line - at, " %s", text);
    }
    if (list)
        freeifaddrs(list);
    return store_put(j, "at", j->net->me, line);
}

// Addresses at which process i listens, the likeliest first.
static bool addresses(Join *j, uint32_t i, struct sockaddr_in *out, uint32_t *count) {
    char line[200], *save = NULL;
    if (!store_get(j, "at", i, line, sizeof line))
        return false;
    const char *text = strtok_r(line, " ", &save);
    long port = text ? strtol(text, NULL, 10) : 0;
    if (port < 1 || port > 65535)
        return FAIL(j, "process %u publishes no port", i);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    *count = 0;
    if (!strcmp(j->net->peers[i].who.place, j->net->peers[j->net->me].who.place)) {
        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        out[(*count)++] = a;
    }
    while (*count < ADDRESSES_MAX && (text = strtok_r(NULL, " ", &save)))
        if (inet_pton(AF_INET, text, &a.sin_addr) == 1)
            out[(*count)++] = a;
    return *count ? true : FAIL(j, "process %u publishes no address", i);
}

// --- hellos --------------------------------------------------------------------------------------

static bool wait_for(int fd, short events, int64_t until_ms) {
    int64_t left = until_ms - net_now_ms();
    struct pollfd p = {.fd = fd, .events = events};
    return left > 0 && poll(&p, 1, (int)left) > 0;
}

static bool send_all(int fd, const void *from, size_t n, int64_t until_ms) {
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

static bool recv_all(int fd, void *to, size_t n, int64_t until_ms) {
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

static bool wants_ring(const Join *j, uint32_t i) {
    const Net *n = j->net;
    return !j->sockets[i] && !strcmp(n->peers[i].who.place, n->peers[n->me].who.place);
}

// The called side makes the shared memory and says its name, the caller whether it could map it.
static bool ring_offer(Join *j, uint32_t i, int fd) {
    char name[40] = "", yes = 0;
    RingPair *rings = &j->net->peers[i].rings;
    int64_t until = net_now_ms() + CALL_MS;
    if (!wants_ring(j, i))
        return true;
    bool made = ring_make(rings, name, true);
    if (!send_all(fd, name, sizeof name, until) || !recv_all(fd, &yes, 1, until))
        return false;
    if (made && !yes)
        ring_close(rings);
    return true;
}

static bool ring_accept(Join *j, uint32_t i, int fd) {
    char name[40];
    int64_t until = net_now_ms() + CALL_MS;
    if (!wants_ring(j, i))
        return true;
    if (!recv_all(fd, name, sizeof name, until))
        return false;
    name[sizeof name - 1] = 0;
    char yes = name[0] && ring_open(&j->net->peers[i].rings, name, false);
    return send_all(fd, &yes, 1, until);
}

static void keep(Join *j, uint32_t i, uint32_t channel, int fd) {
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    net_nonblocking(fd);
    j->net->peers[i].fd[channel] = fd;
}

// --- calling -------------------------------------------------------------------------------------

static int dial(const struct sockaddr_in *a, int64_t until_ms) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error = 0;
    socklen_t len = sizeof error;
    if (fd < 0)
        return -1;
    if (!connect(fd, (const struct sockaddr *)a, sizeof *a))
        return fd;
    if (errno == EINPROGRESS && wait_for(fd, POLLOUT, until_ms) && !getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) &&
        !error)
        return fd;
    close(fd);
    return -1;
}

// Both prove themselves; false: this is not our peer, or it has no time.
static bool greet(Join *j, uint32_t i, uint32_t channel, int fd) {
    int64_t until = net_now_ms() + CALL_MS;
    uint8_t bytes[WIRE_HELLO_BYTES];
    WireHello mine = {.from = j->net->me, .to = i, .channel = channel}, theirs;
    if (getrandom(mine.nonce, sizeof mine.nonce, 0) != sizeof mine.nonce)
        return false;
    wire_put_hello(&mine, bytes);
    if (!send_all(fd, bytes, sizeof bytes, until) || !recv_all(fd, bytes, sizeof bytes, until) ||
        !wire_get_hello(bytes, &theirs))
        return false;
    Sha256 want = wire_proof(j->secret, 'a', &mine, theirs.nonce);
    if (!wire_same(want.at, theirs.proof, sizeof want.at))
        return false;
    Sha256 proof = wire_proof(j->secret, 'c', &mine, theirs.nonce);
    memcpy(mine.proof, proof.at, sizeof mine.proof);
    wire_put_hello(&mine, bytes);
    return send_all(fd, bytes, sizeof bytes, until) && (channel != CHANNEL_DATA || ring_accept(j, i, fd));
}

static bool call_one(Join *j, uint32_t i, uint32_t channel) {
    struct sockaddr_in at[ADDRESSES_MAX + 1];
    uint32_t count;
    if (!addresses(j, i, at, &count))
        return false;
    while (net_now_ms() < j->until_ms) {
        for (uint32_t k = 0; k < count; k++) {
            int fd = dial(&at[k], net_now_ms() + CALL_MS);
            if (fd >= 0 && greet(j, i, channel, fd)) {
                keep(j, i, channel, fd);
                return true;
            }
            if (fd >= 0)
                close(fd);
        }
        usleep(RETRY_MS * 1000);
    }
    const NetProcess *p = &j->net->peers[i].who;
    return FAIL(j, "process %u (host %s, pid %ld) does not answer, or has another secret", i, p->host, p->pid);
}

// --- being called --------------------------------------------------------------------------------

static void caller_drop(Join *j, uint32_t k, bool hang_up) {
    if (hang_up)
        close(j->callers[k].fd);
    memmove(&j->callers[k], &j->callers[k + 1], (j->ncallers - k - 1) * sizeof *j->callers);
    j->ncallers--;
}

static void caller_add(Join *j, int fd) {
    if (j->ncallers == CALLERS_MAX)
        caller_drop(j, 0, true); // the one that has taken longest
    j->callers[j->ncallers++] = (Caller){.fd = fd, .until_ms = net_now_ms() + CALL_MS};
}

static bool hello_fits(const Join *j, const WireHello *h) {
    const Net *n = j->net;
    return h->to == n->me && h->from > n->me && h->from < n->n && n->peers[h->from].fd[h->channel] < 0;
}

static bool caller_answer(Join *j, Caller *c) {
    WireHello mine = {.from = j->net->me, .to = c->hello.from, .channel = c->hello.channel};
    if (getrandom(c->nonce, sizeof c->nonce, 0) != sizeof c->nonce)
        return false;
    memcpy(mine.nonce, c->nonce, sizeof mine.nonce);
    Sha256 proof = wire_proof(j->secret, 'a', &c->hello, c->nonce);
    memcpy(mine.proof, proof.at, sizeof mine.proof);
    uint8_t bytes[WIRE_HELLO_BYTES];
    wire_put_hello(&mine, bytes);
    c->answered = true;
    c->have = 0;
    return send(c->fd, bytes, sizeof bytes, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof bytes;
}

// Goes on with what came. False: send it away. *done: it is one of us.
static bool caller_step(Join *j, Caller *c, bool *done) {
    ssize_t k = recv(c->fd, c->bytes + c->have, sizeof c->bytes - c->have, MSG_DONTWAIT);
    if (k <= 0)
        return k < 0 && (errno == EAGAIN || errno == EINTR);
    c->have += (size_t)k;
    if (c->have < sizeof c->bytes)
        return true;
    WireHello h;
    if (!wire_get_hello(c->bytes, &h) || !hello_fits(j, &h))
        return false;
    if (!c->answered) {
        c->hello = h;
        return caller_answer(j, c);
    }
    Sha256 want = wire_proof(j->secret, 'c', &c->hello, c->nonce);
    *done = h.from == c->hello.from && h.channel == c->hello.channel && wire_same(want.at, h.proof, sizeof want.at);
    return *done;
}

static void callers_step(Join *j, const struct pollfd *polls, uint32_t n) {
    for (uint32_t k = n; k-- > 0;) {
        Caller *c = &j->callers[k];
        bool done = false;
        bool stays = polls[k].revents ? caller_step(j, c, &done) : net_now_ms() < c->until_ms;
        if (done && (c->hello.channel != CHANNEL_DATA || ring_offer(j, c->hello.from, c->fd))) {
            keep(j, c->hello.from, c->hello.channel, c->fd);
            j->missing--;
            caller_drop(j, k, false);
        } else if (done || !stays) {
            caller_drop(j, k, true);
        }
    }
}

static bool be_called(Join *j) {
    j->missing = (j->net->n - j->net->me - 1) * CHANNELS;
    while (j->missing) {
        struct pollfd polls[CALLERS_MAX + 1];
        uint32_t n = j->ncallers;
        for (uint32_t k = 0; k < n; k++)
            polls[k] = (struct pollfd){.fd = j->callers[k].fd, .events = POLLIN};
        polls[n] = (struct pollfd){.fd = j->listener, .events = POLLIN};
        if (net_now_ms() >= j->until_ms) {
            uint32_t i = j->net->me + 1;
            while (j->net->peers[i].fd[CHANNEL_CONTROL] >= 0 && j->net->peers[i].fd[CHANNEL_DATA] >= 0)
                i++;
            return FAIL(j, "process %u (host %s, pid %ld) did not call within %u s", i, j->net->peers[i].who.host,
                        j->net->peers[i].who.pid, j->self->timeout_ms / 1000);
        }
        poll(polls, n + 1, 200);
        callers_step(j, polls, n);
        for (int fd, k = 0; k < 32 && (fd = accept4(j->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0; k++)
            caller_add(j, fd);
    }
    return true;
}

// --- all of it -----------------------------------------------------------------------------------

static bool join_all(Join *j) {
    if (!publish(j) || !learn(j) || !secret_find(j) || !listen_at(j))
        return false;
    for (uint32_t i = 0; i < j->net->me; i++)
        for (uint32_t channel = 0; channel < CHANNELS; channel++)
            if (!call_one(j, i, channel))
                return false;
    return be_called(j);
}

bool net_join(Net *n, const NetSelf *self, const NetKv *kv, char *why, size_t why_bytes) {
    Join *j = calloc(1, sizeof *j);
    if (!j) {
        snprintf(why, why_bytes, "out of memory");
        return false;
    }
    *j = (Join){.net = n, .self = self, .kv = kv, .listener = -1, .until_ms = net_now_ms() + self->timeout_ms, .why = why,
                .why_bytes = why_bytes};
    bool ok = join_all(j);
    while (j->ncallers)
        caller_drop(j, 0, true);
    if (j->listener >= 0)
        close(j->listener);
    explicit_bzero(j->secret, sizeof j->secret);
    free(j);
    return ok;
}
