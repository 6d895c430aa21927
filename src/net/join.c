// SPDX-License-Identifier: Apache-2.0
// join.c — from the store to connections between all processes; see net_in.h.
//
// A process connects to those with a smaller number and is called by the others, twice: control and data. A caller has to prove
// that it knows the job's secret (door.c); everything else about it is taken from the store.
#define _GNU_SOURCE // explicit_bzero
#include <errno.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/now.h"
#include "net/net_in.h"

#define CALL_MS 5000    // to agree on shared memory
#define FABRIC_MS 20000 // to find libfabric and to meet through it
#define RETRY_MS 50
#define ADDRESSES_MAX 8
#define KEY_BYTES 64
#define LINE_BYTES 400 // of a value in the store

typedef struct Join {
    Net *net;
    const NetSelf *self;
    const NetKv *kv;
    bool one_host;
    char mode[NET_PROCESSES_MAX][16]; // how each wants its data to go, as OTRN_FABRIC says
    bool no_fabric;                   // it was tried, and did not work
    bool over;                        // and nothing else will do
    Door door;
    int64_t until_ms;
    uint32_t missing; // connections still to come
    char *why;
    size_t why_bytes;
} Join;

#define FAIL(j, ...) (snprintf((j)->why, (j)->why_bytes, __VA_ARGS__), false)

// --- the store -----------------------------------------------------------------------------------

static void store_key(const Join *j, const char *what, uint32_t process, char out[KEY_BYTES]) {
    const char *g = j->self->generation;
    if (g && *g)
        snprintf(out, KEY_BYTES, "net/%.20s/%s/%u", g, what, process);
    else
        snprintf(out, KEY_BYTES, "net/%s/%u", what, process);
}

static bool store_put(Join *j, const char *what, uint32_t process, const char *value) {
    char key[KEY_BYTES];
    store_key(j, what, process, key);
    return j->kv->put(j->kv->arg, key, value, j->why, j->why_bytes);
}

static bool store_get(Join *j, const char *what, uint32_t process, char *value, size_t bytes) {
    char key[KEY_BYTES], why[200] = "";
    store_key(j, what, process, key);
    int64_t left = j->until_ms - now_ms();
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
    char line[LINE_BYTES], host[64] = "", place[80], name[64], release[32], chip[64], mode[16];
    gethostname(host, sizeof host - 1);
    place_print(place, sizeof place);
    snprintf(line, sizeof line, "otrn-net 2 %s %s %s %s %u %ld %s", word(release, sizeof release, j->self->release),
             word(chip, sizeof chip, j->self->chip), word(name, sizeof name, host), place, j->self->devices, (long)getpid(),
             word(mode, sizeof mode, j->self->fabric ? j->self->fabric : "auto"));
    return store_put(j, "who", j->net->me, line);
}

static bool learn_one(Join *j, uint32_t i) {
    NetProcess *p = &j->net->peers[i].who;
    char line[LINE_BYTES];
    if (!store_get(j, "who", i, line, sizeof line))
        return false;
    if (sscanf(line, "otrn-net 2 %31s %63s %63s %79s %u %ld %15s", p->release, p->chip, p->host, p->place, &p->devices, &p->pid,
               j->mode[i]) != 7 || p->devices > 1u << 20)
        return FAIL(j, "process %u speaks another protocol: %.100s", i, line);
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
        memcpy(j->door.secret, h.at, sizeof j->door.secret);
        return true;
    }
    if (j->net->me == 0) {
        Sha256 h;
        if (getrandom(h.at, sizeof h.at, 0) != sizeof h.at)
            return FAIL(j, "the system has no random numbers: %s", strerror(errno));
        sha256_print(&h, text);
        memcpy(j->door.secret, h.at, sizeof j->door.secret);
        return store_put(j, "secret", 0, text);
    }
    if (!store_get(j, "secret", 0, text, sizeof text))
        return false;
    for (size_t i = 0; i < SHA256_BYTES; i++)
        if (sscanf(text + 2 * i, "%2hhx", &j->door.secret[i]) != 1)
            return FAIL(j, "the job's secret is damaged");
    return true;
}

// --- addresses -----------------------------------------------------------------------------------

// Where the others can reach this host: not by loopback, and not by addresses that mean something on one link only.
static bool reachable(const struct ifaddrs *i, NetAddr *a) {
    if (!i->ifa_addr || i->ifa_flags & IFF_LOOPBACK || !(i->ifa_flags & IFF_UP))
        return false;
    int family = i->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6)
        return false;
    memcpy(a, i->ifa_addr, family == AF_INET ? sizeof a->v4 : sizeof a->v6);
    return family == AF_INET || !IN6_IS_ADDR_LINKLOCAL(&a->v6.sin6_addr);
}

static bool addresses_print(Join *j, char *line, size_t bytes) {
    struct ifaddrs *list = NULL;
    NetAddr a;
    size_t at = (size_t)snprintf(line, bytes, "%u", door_port(&j->door));
    if (getifaddrs(&list))
        return FAIL(j, "cannot ask for this host's addresses: %s", strerror(errno));
    for (struct ifaddrs *i = list; i; i = i->ifa_next) {
        char text[INET6_ADDRSTRLEN];
        if (reachable(i, &a) && at + sizeof text + 1 < bytes && addr_print(&a, text, sizeof text))
            at += (size_t)snprintf(line + at, bytes - at, " %s", text);
    }
    freeifaddrs(list);
    return true;
}

static bool fits(void *arg, const WireHello *h);
static bool enter(void *arg, const WireHello *h, int fd);

// On one host only by loopback; elsewhere at all addresses, of both kinds where the system has both.
static bool listen_at(Join *j) {
    static const char *const places[2][2] = {{"::", "0.0.0.0"}, {"127.0.0.1", "::1"}};
    char line[LINE_BYTES];
    NetAddr a;
    bool ok = false;
    j->door.fits = fits;
    j->door.enter = enter;
    j->door.arg = j;
    for (int k = 0; k < 2 && !ok; k++)
        ok = addr_parse(places[j->one_host][k], 0, &a) && door_listen(&j->door, &a);
    if (!ok)
        return FAIL(j, "cannot listen for the other processes: %s", strerror(errno));
    if (j->one_host)
        snprintf(line, sizeof line, "%u", door_port(&j->door));
    else if (!addresses_print(j, line, sizeof line))
        return false;
    return store_put(j, "at", j->net->me, line);
}

// Addresses at which process i listens, the likeliest first.
static bool addresses(Join *j, uint32_t i, NetAddr *out, uint32_t *count) {
    char line[LINE_BYTES], *save = NULL;
    if (!store_get(j, "at", i, line, sizeof line))
        return false;
    const char *text = strtok_r(line, " ", &save);
    long port = text ? strtol(text, NULL, 10) : 0;
    if (port < 1 || port > 65535)
        return FAIL(j, "process %u publishes no port", i);
    *count = 0;
    if (!strcmp(j->net->peers[i].who.place, j->net->peers[j->net->me].who.place)) {
        addr_parse("127.0.0.1", (uint16_t)port, &out[(*count)++]);
        addr_parse("::1", (uint16_t)port, &out[(*count)++]);
    }
    while (*count < ADDRESSES_MAX && (text = strtok_r(NULL, " ", &save)))
        *count += addr_parse(text, (uint16_t)port, &out[*count]);
    return *count ? true : FAIL(j, "process %u publishes no address", i);
}

// --- connections ---------------------------------------------------------------------------------

static bool mode_is(const Join *j, uint32_t i, const char *mode) { return !strcmp(j->mode[i], mode); }

// The provider of libfabric that one of the two wants by name; NULL: neither.
static const char *provider(const Join *j, uint32_t i) {
    const uint32_t both[] = {i, j->net->me};
    for (int k = 0; k < 2; k++)
        if (!mode_is(j, both[k], "auto") && !mode_is(j, both[k], "rings") && !mode_is(j, both[k], "sockets"))
            return j->mode[both[k]];
    return NULL;
}

static bool wants_sockets(const Join *j, uint32_t i) { return mode_is(j, i, "sockets") || mode_is(j, j->net->me, "sockets"); }

static bool wants_ring(const Join *j, uint32_t i) {
    return !wants_sockets(j, i) && !provider(j, i) && net_is_near(j->net, i);
}

// Each says where the other may try to read its memory, and then whether it could.
static bool direct_agree(Join *j, uint32_t i, int fd, int64_t until) {
    Direct *d = &j->net->peers[i].direct;
    DirectProof mine = {0}, theirs;
    char reads, is_read;
    if (!mode_is(j, j->net->me, "rings"))
        direct_show(d, &mine);
    if (!door_send(fd, &mine, sizeof mine, until) || !door_recv(fd, &theirs, sizeof theirs, until))
        return false;
    direct_try(d, &theirs);
    reads = d->reads;
    if (!door_send(fd, &reads, 1, until) || !door_recv(fd, &is_read, 1, until))
        return false;
    d->is_read = is_read;
    return true;
}

// The called side makes the shared memory and says its name, the caller whether it could map it.
static bool ring_offer(Join *j, uint32_t i, int fd) {
    char name[40] = "", yes = 0;
    RingPair *rings = &j->net->peers[i].rings;
    int64_t until = now_ms() + CALL_MS;
    bool made = ring_make(rings, name, true);
    if (!door_send(fd, name, sizeof name, until) || !door_recv(fd, &yes, 1, until))
        return false;
    if (made && !yes)
        ring_close(rings);
    return !made || !yes || direct_agree(j, i, fd, until);
}

static bool ring_accept(Join *j, uint32_t i, int fd) {
    char name[40];
    int64_t until = now_ms() + CALL_MS;
    if (!door_recv(fd, name, sizeof name, until))
        return false;
    name[sizeof name - 1] = 0;
    char yes = name[0] && ring_open(&j->net->peers[i].rings, name, false);
    return door_send(fd, &yes, 1, until) && (!yes || direct_agree(j, i, fd, until));
}

// The one endpoint of this process, at the address by which the first of the others reached it.
static bool fabric_find(Join *j, uint32_t i, int fd, char *why, size_t why_bytes) {
    Net *n = j->net;
    NetAddr here = {0};
    socklen_t bytes = sizeof here;
    char ip[INET6_ADDRSTRLEN];
    uint32_t links = 0;
    if (n->fabric)
        return true;
    for (uint32_t k = 0; k < n->n; k++)
        links += k != n->me && !wants_sockets(j, k) && !wants_ring(j, k);
    if (getsockname(fd, &here.any, &bytes) || !addr_print(&here, ip, sizeof ip)) {
        snprintf(why, why_bytes, "no address");
        return false;
    }
    return fabric_open(provider(j, i), ip, n->me, n->n, links, &n->fabric, why, why_bytes);
}

// Both tell how they are reached, try, and tell whether it worked; sockets do where it did not and nobody insists.
static bool fabric_agree(Join *j, uint32_t i, int fd, bool first) {
    Link *l = NULL;
    FabricCard mine = {0}, theirs;
    char yes, too, why[200] = "it does not answer there";
    int64_t until = now_ms() + FABRIC_MS;
    bool ok = !j->no_fabric && fabric_find(j, i, fd, why, sizeof why) && link_make(j->net->fabric, i, &l, &mine);
    if (!door_send(fd, &mine, sizeof mine, until) || !door_recv(fd, &theirs, sizeof theirs, until))
        return false;
    yes = ok && theirs.name_bytes && link_meet(l, &theirs, first, until);
    if (!door_send(fd, &yes, 1, until) || !door_recv(fd, &too, 1, until))
        return false;
    if (yes && too) {
        j->net->peers[i].link = l;
        return true;
    }
    j->no_fabric = true;
    j->over = provider(j, i);
    return !j->over || FAIL(j, "libfabric (OTRN_FABRIC=%s) to process %u: %.200s", provider(j, i), i, why);
}

// How data goes over this connection, or beside it.
static bool way_agree(Join *j, uint32_t i, int fd, bool called) {
    if (wants_sockets(j, i))
        return true;
    if (wants_ring(j, i))
        return called ? ring_offer(j, i, fd) : ring_accept(j, i, fd);
    return fabric_agree(j, i, fd, !called);
}

// Heartbeats share a network that messages may fill: they go first where it knows of that, and one that is lost is sent again
// soon, not after a time that doubles until the process counts as gone.
static void keep(Join *j, uint32_t i, uint32_t channel, int fd) {
    int one = 1, first = 6; // the highest priority that needs no privilege
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (channel == CHANNEL_CONTROL) {
        setsockopt(fd, SOL_SOCKET, SO_PRIORITY, &first, sizeof first);
        setsockopt(fd, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, &one, sizeof one);
    }
    net_nonblocking(fd);
    j->net->peers[i].fd[channel] = fd;
}

static bool call_one(Join *j, uint32_t i, uint32_t channel) {
    NetAddr at[ADDRESSES_MAX];
    uint32_t count;
    DoorResult result;
    if (!addresses(j, i, at, &count))
        return false;
    while (now_ms() < j->until_ms) {
        for (uint32_t k = 0; k < count; k++) {
            int fd = door_call(&at[k], j->door.secret, (WireHello){.from = j->net->me, .to = i, .channel = channel}, j->until_ms,
                               &result);
            if (fd >= 0 && (channel != CHANNEL_DATA || way_agree(j, i, fd, false))) {
                keep(j, i, channel, fd);
                return true;
            }
            if (fd >= 0)
                close(fd);
            if (j->over)
                return false;
        }
        usleep(RETRY_MS * 1000);
    }
    const NetProcess *p = &j->net->peers[i].who;
    return FAIL(j, "process %u (host %s, pid %ld) does not answer, or has another secret", i, p->host, p->pid);
}

static bool fits(void *arg, const WireHello *h) {
    const Net *n = ((Join *)arg)->net;
    return h->channel < CHANNELS && h->to == n->me && h->from > n->me && h->from < n->n && n->peers[h->from].fd[h->channel] < 0;
}

static bool enter(void *arg, const WireHello *h, int fd) {
    Join *j = arg;
    if (h->channel == CHANNEL_DATA && !way_agree(j, h->from, fd, true))
        return false;
    keep(j, h->from, h->channel, fd);
    j->missing--;
    return true;
}

static bool be_called(Join *j) {
    j->missing = (j->net->n - j->net->me - 1) * CHANNELS;
    while (j->missing) {
        struct pollfd polls[CALLERS_MAX + 1];
        uint32_t n = door_polls(&j->door, polls);
        if (now_ms() >= j->until_ms) {
            uint32_t i = j->net->me + 1;
            while (j->net->peers[i].fd[CHANNEL_CONTROL] >= 0 && j->net->peers[i].fd[CHANNEL_DATA] >= 0)
                i++;
            return FAIL(j, "process %u (host %s, pid %ld) did not call within %u s", i, j->net->peers[i].who.host,
                        j->net->peers[i].who.pid, j->self->timeout_ms / 1000);
        }
        poll(polls, n, 200);
        door_step(&j->door, polls, n);
        if (j->over)
            return false;
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
    *j = (Join){.net = n, .self = self, .kv = kv, .door.listener = -1, .until_ms = now_ms() + self->timeout_ms, .why = why,
                .why_bytes = why_bytes};
    bool ok = join_all(j);
    door_close(&j->door);
    free(j);
    return ok;
}
