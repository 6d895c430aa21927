// SPDX-License-Identifier: Apache-2.0
// net.c — life of a world: heartbeats, who is gone, launches and their failures; see net_in.h.
#define _GNU_SOURCE // pipe2
#include "net/net.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/now.h"
#include "net/net_in.h"

#define BEAT_MS 500
#define SILENCE_MS 3000
#define FDS_MAX 4096   // of a process, for what was sent again
#define BROKEN_MS 1000 // until a process that libfabric cannot reach has had time to say goodbye, or to be gone
#define SETTLE_MS 2000 // for the others to take the last that was sent
#define STILL_BEATS 4 // heartbeats without a move before all are said to wait for each other

bool net_nonblocking(int fd) { return !fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

void net_drain(int fd) {
    char bytes[256];
    while (read(fd, bytes, sizeof bytes) == sizeof bytes)
        ;
}

void net_wake_locked(Net *n) {
    pthread_cond_broadcast(&n->came);
    if (n->driven && write(n->kick[1], "", 1) < 0)
        return; // full: it will wake anyhow
}

void net_nudge_locked(Net *n) {
    if (n->fabric && !n->driven && fabric_pending(n->fabric) && write(n->nudge[1], "", 1) < 0)
        return; // full: it is awake
}

// --- who is gone ---------------------------------------------------------------------------------

// "process 3 (host h1, pid 812, devices 24 to 31)"
static void print_who(const Net *n, uint32_t i, char *out, size_t bytes) {
    const NetProcess *p = &n->peers[i].who;
    if (p->devices == 1)
        snprintf(out, bytes, "process %u (host %s, pid %ld, device %u)", i, p->host, p->pid, p->first);
    else
        snprintf(out, bytes, "process %u (host %s, pid %ld, devices %u to %u)", i, p->host, p->pid, p->first,
                 p->first + p->devices - 1);
}

static void print_doing(const WireNote *w, char *out, size_t bytes) {
    const char *at = w->where[0] ? " at " : "";
    if (w->state == NET_WAITS)
        snprintf(out, bytes, "waits in step %llu of %s, %s%s%s", (unsigned long long)w->number, w->name, w->op, at, w->where);
    else if (w->state == NET_RUNS)
        snprintf(out, bytes, "is in step %llu of %s", (unsigned long long)w->number, w->name);
    else
        snprintf(out, bytes, "is between steps, the last %llu", (unsigned long long)w->number);
}

void net_gone_locked(Net *n, uint32_t process, const char *why) {
    Peer *p = &n->peers[process];
    char who[160], doing[320];
    if (p->gone)
        return;
    print_who(n, process, who, sizeof who);
    print_doing(&p->note, doing, sizeof doing);
    snprintf(p->fault, sizeof p->fault, "%s %s; the last it said was that it %.280s", who, why, doing);
    p->gone = true;
    if (p->link)
        link_end(p->link);
    if (!n->lost && !p->left) // now: a framework may end this process before anybody asks what failed
        fprintf(stderr, "otrn: %s\n", p->fault);
    n->lost = n->lost || !p->left;
    for (int c = 0; c < CHANNELS; c++)
        shutdown(p->fd[c], SHUT_RDWR);
    share_gone_locked(n, process);
    net_wake_locked(n);
}

static void fault_add_locked(Net *n, uint64_t set, uint64_t number, const char *text) {
    Fault *f = &n->faults[n->nfaults++ % FAULTS_MAX];
    *f = (Fault){.set = set, .number = number};
    snprintf(f->text, sizeof f->text, "%s", text);
    net_wake_locked(n);
}

const char *net_fault_locked(Net *n, const NetLaunch *l) {
    for (uint32_t i = 0; i < FAULTS_MAX; i++)
        if (n->faults[i].text[0] && n->faults[i].set == l->set && n->faults[i].number == l->number)
            return n->faults[i].text;
    return NULL;
}

// --- the control connections ---------------------------------------------------------------------

// A peer that does not read what is so little is as good as gone.
void net_tell_locked(Net *n, uint32_t process, WireHead h, const void *body) {
    uint8_t bytes[WIRE_HEAD_BYTES + WIRE_NOTE_MAX];
    Peer *p = &n->peers[process];
    if (p->gone || process == n->me)
        return;
    h.from = n->me;
    wire_put(&h, bytes);
    memcpy(bytes + WIRE_HEAD_BYTES, body, h.bytes);
    size_t all = WIRE_HEAD_BYTES + h.bytes;
    if (send(p->fd[CHANNEL_CONTROL], bytes, all, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)all && !p->left)
        net_gone_locked(n, process, "does not answer");
}

static void note_locked(Net *n, WireNote *w) {
    *w = (WireNote){.state = NET_IDLE, .set = n->last_set, .number = n->last_number, .moves = n->moves};
    const NetLaunch *l = n->launch;
    if (!l)
        return;
    const Exchange *x = n->active; // one of this launch: others may go on beside it
    while (x && x->call->launch != l)
        x = x->next;
    w->state = x && l->stuck && l->stuck(l->arg) ? NET_WAITS : NET_RUNS;
    w->set = l->set;
    w->number = l->loose ? n->last_number + 1 : l->number;
    snprintf(w->name, sizeof w->name, "%s", l->name);
    if (!x)
        return;
    const NetCall *c = x->call;
    snprintf(w->op, sizeof w->op, "%s", c->op);
    if (c->where)
        c->where(c->arg, w->where, sizeof w->where);
}

static void heard_locked(Net *n, uint32_t i, const WireHead *h, const uint8_t *body) {
    Peer *p = &n->peers[i];
    WireNote note;
    char text[NET_WHY_BYTES], who[160];
    p->heard_ms = now_ms();
    if (h->kind == WIRE_BYE) {
        p->left = true;
        if (p->link)
            exchange_drain_locked(n, i); // it waits for that before it ends
    } else if (h->kind == WIRE_FAIL) {
        print_who(n, i, who, sizeof who);
        snprintf(text, sizeof text, "%s failed: %.*s", who, (int)h->bytes, (const char *)body);
        fault_add_locked(n, h->set, h->number, text);
    } else if (h->kind == WIRE_SHARE) {
        share_heard_locked(n, i, body, (size_t)h->bytes);
    } else if (wire_get_note(body, (size_t)h->bytes, &note)) {
        bool moved = note.moves != p->note.moves || note.state != p->note.state || note.number != p->note.number;
        p->same = moved ? 0 : p->same + 1;
        p->note = note;
    }
}

void net_listen_locked(Net *n, uint32_t i) {
    Peer *p = &n->peers[i];
    while (!p->gone) {
        size_t need = WIRE_HEAD_BYTES;
        WireHead h;
        if (p->note_have >= WIRE_HEAD_BYTES) {
            if (!wire_get(p->note_bytes, i, false, &h)) {
                net_gone_locked(n, i, "sent what is no message");
                return;
            }
            need += (size_t)h.bytes;
            if (p->note_have == need) {
                heard_locked(n, i, &h, p->note_bytes + WIRE_HEAD_BYTES);
                p->note_have = 0;
                continue;
            }
        }
        ssize_t k = recv(p->fd[CHANNEL_CONTROL], p->note_bytes + p->note_have, need - p->note_have, MSG_DONTWAIT);
        if (k < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (k <= 0) {
            if (p->left)
                exchange_drain_locked(n, i);
            net_gone_locked(n, i, p->left ? "has ended" : "is gone");
        }
        p->note_have += k > 0 ? (size_t)k : 0;
    }
}

static void fail_launch_locked(Net *n, const NetLaunch *l, const char *fault) {
    if (net_fault_locked(n, l))
        return; // somebody was faster
    WireHead h = {.kind = WIRE_FAIL, .set = l->set, .number = l->number, .bytes = strnlen(fault, 400)};
    for (uint32_t i = 0; i < n->n; i++)
        if (l->takes_part[i])
            net_tell_locked(n, i, h, fault);
    fault_add_locked(n, l->set, l->number, fault);
}

// Everybody who takes part waits for the others, or is past this launch: nobody will ever get on.
static bool dead_locked(Net *n, const WireNote *mine) {
    const NetLaunch *l = n->launch;
    // Of loose launches nobody knows which others are to come, perhaps from another thread.
    if (mine->state != NET_WAITS || n->same < STILL_BEATS || l->loose)
        return false;
    bool all = true, every = true;
    for (uint32_t i = 0; i < n->n; i++) {
        const Peer *p = &n->peers[i];
        if (i == n->me)
            continue;
        bool still = p->same >= STILL_BEATS, waits = still && p->note.state == NET_WAITS;
        bool past = still && p->note.set == l->set &&
                    (p->note.number > l->number || (p->note.number == l->number && p->note.state == NET_IDLE));
        all = all && waits;
        every = every && (!l->takes_part[i] || past || (waits && p->note.set == l->set));
    }
    return all || every;
}

static void tell_dead_locked(Net *n, const WireNote *mine) {
    char text[NET_WHY_BYTES], doing[200];
    print_doing(mine, doing, sizeof doing);
    size_t at = (size_t)snprintf(text, sizeof text, "this never completes: process %u %.160s", n->me, doing);
    for (uint32_t i = 0; i < n->n && at + 200 < sizeof text; i++)
        if (i != n->me && n->launch->takes_part[i]) {
            print_doing(&n->peers[i].note, doing, sizeof doing);
            at += (size_t)snprintf(text + at, sizeof text - at, ", process %u %.160s", i, doing);
        }
    fault_add_locked(n, n->launch->set, n->launch->number, text);
}

static bool meets(const Peer *p, const NetLaunch *l) { // it waits in this launch too
    return p->note.state == NET_WAITS && p->note.set == l->set && p->note.number == l->number;
}

// Who waited too long tells who is not there, or all when all are.
static void tell_late_locked(Net *n, const NetCall *call) {
    const NetLaunch *l = call->launch;
    char text[NET_WHY_BYTES], who[160], doing[320], where[160] = "";
    if (call->where)
        call->where(call->arg, where, sizeof where);
    size_t at = (size_t)snprintf(text, sizeof text, "%.60s%s%.100s has waited %u s (OTRN_COLL_TIMEOUT)", call->op,
                                 where[0] ? " at " : "", where, n->coll_timeout_ms / 1000);
    bool none = true;
    for (uint32_t i = 0; i < n->n; i++)
        none = none && (i == n->me || !l->takes_part[i] || meets(&n->peers[i], l));
    for (uint32_t i = 0; i < n->n && at + 40 < sizeof text; i++) {
        if (i == n->me || !l->takes_part[i] || (!none && meets(&n->peers[i], l)))
            continue;
        print_who(n, i, who, sizeof who);
        print_doing(&n->peers[i].note, doing, sizeof doing);
        at += (size_t)snprintf(text + at, sizeof text - at, "; %s %.160s", who, doing);
    }
    fail_launch_locked(n, l, text);
}

// Each exchange by itself: others may go on beside it. One whose launch still computes here waits for that first.
static void look_for_late_locked(Net *n) {
    for (Exchange *x = n->active; x; x = x->next) {
        const NetLaunch *l = x->call->launch;
        x->same = x->moves == x->seen ? x->same + 1 : 0;
        x->seen = x->moves;
        if (n->coll_timeout_ms && (uint64_t)x->same * BEAT_MS >= n->coll_timeout_ms && (!l->stuck || l->stuck(l->arg)))
            tell_late_locked(n, x->call);
    }
}

static void beat_locked(Net *n, uint64_t *moves) {
    WireNote note;
    uint8_t body[WIRE_NOTE_MAX];
    note_locked(n, &note);
    n->same = n->moves == *moves ? n->same + 1 : 0;
    *moves = n->moves;
    WireHead h = {.kind = WIRE_BEAT, .bytes = wire_put_note(&note, body)};
    for (uint32_t i = 0; i < n->n; i++)
        net_tell_locked(n, i, h, body);
    if (dead_locked(n, &note))
        tell_dead_locked(n, &note);
    look_for_late_locked(n);
}

static void broken_locked(Net *n, uint32_t i, int64_t now) {
    Peer *p = &n->peers[i];
    char why[120];
    if (!p->broken_ms)
        p->broken_ms = now;
    if (now - p->broken_ms <= BROKEN_MS)
        return;
    snprintf(why, sizeof why, "cannot be reached (%s)", link_fault(p->link));
    net_gone_locked(n, i, why);
}

// A process that was stopped itself has heard nobody, and says nothing about the others for that.
static void silence_locked(Net *n, bool slept) {
    int64_t now = now_ms();
    for (uint32_t i = 0; i < n->n; i++) {
        Peer *p = &n->peers[i];
        if (slept && p->heard_ms < now)
            p->heard_ms = now;
        if (i != n->me && !p->left && now - p->heard_ms > SILENCE_MS)
            net_gone_locked(n, i, "has said nothing for 3 s");
        if (p->link && link_fault(p->link) && !p->left)
            broken_locked(n, i, now);
    }
}

// What is still to go off when nobody waits.
static bool fabric_help_locked(Net *n) {
    if (!n->fabric || n->driven)
        return false;
    fabric_move(n->fabric);
    return fabric_pending(n->fabric);
}

static void *control_main(void *arg) {
    Net *n = arg;
    struct pollfd polls[NET_PROCESSES_MAX + 2];
    bool helps = false;
    int64_t next = now_ms(), last = next;
    uint64_t moves = 0;
    for (;;) {
        pthread_mutex_lock(&n->lock);
        for (uint32_t i = 0; i < n->n; i++)
            polls[i] = (struct pollfd){.fd = n->peers[i].gone ? -1 : n->peers[i].fd[CHANNEL_CONTROL], .events = POLLIN};
        pthread_mutex_unlock(&n->lock);
        polls[n->n] = (struct pollfd){.fd = n->stop[0], .events = POLLIN};
        polls[n->n + 1] = (struct pollfd){.fd = n->nudge[0], .events = POLLIN};
        int64_t wait = next - now_ms();
        poll(polls, n->n + 2, wait <= 0 ? 0 : helps ? 1 : (int)wait);
        if (polls[n->n].revents)
            return NULL;
        net_drain(polls[n->n + 1].revents ? n->nudge[0] : -1);
        pthread_mutex_lock(&n->lock);
        helps = fabric_help_locked(n);
        for (uint32_t i = 0; i < n->n; i++)
            if (polls[i].revents)
                net_listen_locked(n, i);
        int64_t now = now_ms();
        if (now >= next) {
            silence_locked(n, now - last > SILENCE_MS - BEAT_MS);
            beat_locked(n, &moves);
            next = now + BEAT_MS;
        }
        last = now;
        pthread_mutex_unlock(&n->lock);
    }
}

// --- launches ------------------------------------------------------------------------------------

static bool count_locked(Net *n, NetLaunch *l) {
    uint32_t i = 0;
    while (i < n->ncounts && n->counts[i].set != l->set)
        i++;
    if (i == n->ncounts) {
        Count *grown = realloc(n->counts, (i + 1) * sizeof *grown);
        if (!grown)
            return false;
        n->counts = grown;
        n->counts[n->ncounts++] = (Count){.set = l->set};
    }
    l->number = ++n->counts[i].n;
    return true;
}

bool net_launch_begin(Net *n, NetLaunch *l, char *why, size_t why_bytes) {
    pthread_mutex_lock(&n->lock);
    bool ok = l->loose || count_locked(n, l);
    if (!ok)
        snprintf(why, why_bytes, "out of memory");
    for (uint32_t i = 0; i < n->n && ok; i++)
        if (l->takes_part[i] && n->peers[i].gone && !l->loose) { // of loose ones it may have sent all that is wanted
            snprintf(why, why_bytes, "%s", n->peers[i].fault);
            ok = false;
        }
    if (ok) {
        // Of loose ones, those of several threads, the first is told; a counted one before them, its number says more.
        n->launch = n->launch && (l->loose || !n->launch->loose) ? n->launch : l;
        n->moves++;
        if (!l->loose)
            exchange_forget_locked(n, l);
    }
    pthread_mutex_unlock(&n->lock);
    return ok;
}

void net_launch_fail(Net *n, const NetLaunch *l, const char *fault) {
    pthread_mutex_lock(&n->lock);
    fail_launch_locked(n, l, fault);
    pthread_mutex_unlock(&n->lock);
}

void net_launch_end(Net *n, const NetLaunch *l, const char *fault) {
    pthread_mutex_lock(&n->lock);
    n->launch = n->launch == l ? NULL : n->launch; // exchanges beside it may have launches that were never begun (share.c)
    n->last_set = l->set;
    n->last_number = l->loose ? n->last_number + 1 : l->number;
    n->moves++;
    if (fault)
        fail_launch_locked(n, l, fault);
    pthread_mutex_unlock(&n->lock);
}

// --- life ----------------------------------------------------------------------------------------

uint32_t net_me(const Net *n) { return n->me; }
uint32_t net_processes(const Net *n) { return n->n; }
const NetProcess *net_process(const Net *n, uint32_t process) { return &n->peers[process].who; }

bool net_is_near(const Net *n, uint32_t process) {
    return !strcmp(n->peers[process].who.place, n->peers[n->me].who.place);
}

bool net_lost(Net *n) {
    pthread_mutex_lock(&n->lock);
    bool lost = n->lost;
    pthread_mutex_unlock(&n->lock);
    return lost;
}

NetOthers net_others(Net *n) {
    NetOthers all = NET_OTHERS_GONE;
    pthread_mutex_lock(&n->lock);
    for (uint32_t i = 0; i < n->n; i++) {
        NetOthers one = i == n->me || n->peers[i].gone ? NET_OTHERS_GONE : n->peers[i].note.state == NET_WAITS ? NET_OTHERS_WAIT : NET_OTHERS_GO_ON;
        all = one > all ? one : all;
    }
    pthread_mutex_unlock(&n->lock);
    return all;
}

static bool is_internet(const NetAddr *a) { return a->any.sa_family == AF_INET || a->any.sa_family == AF_INET6; }

// One socket may have the address as IPv4, another inside an IPv6 one.
static bool same_host(const NetAddr *a, const NetAddr *b) {
    char x[INET6_ADDRSTRLEN], y[INET6_ADDRSTRLEN];
    return is_internet(a) && is_internet(b) && addr_print(a, x, sizeof x) && addr_print(b, y, sizeof y) && !strcmp(x, y);
}

// Of all connections of this process to that host: libfabric has its own.
uint64_t net_retransmits(Net *n, uint32_t process) {
    NetAddr host, other;
    socklen_t bytes = sizeof host;
    uint64_t all = 0;
    if (getpeername(n->peers[process].fd[CHANNEL_CONTROL], &host.any, &bytes))
        return 0;
    for (int fd = 0; fd < FDS_MAX; fd++) {
        struct tcp_info info = {0};
        socklen_t len = sizeof other;
        if (getpeername(fd, &other.any, &len) || !same_host(&host, &other))
            continue;
        len = sizeof info;
        if (!getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len))
            all += info.tcpi_total_retrans;
    }
    return all;
}

const char *net_way(const Net *n, uint32_t process) {
    const Peer *p = &n->peers[process];
    if (p->link)
        return fabric_way(n->fabric);
    return !p->rings.out ? "sockets" : p->direct.reads && p->direct.is_read ? "memory" : "rings";
}

void net_bye(Net *n) {
    pthread_mutex_lock(&n->lock);
    for (uint32_t i = 0; i < n->n; i++)
        net_tell_locked(n, i, (WireHead){.kind = WIRE_BYE}, "");
    pthread_mutex_unlock(&n->lock);
}

// Signals of the program that loaded us are for its own threads.
bool net_thread(pthread_t *t, void *(*main)(void *), void *arg) {
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    bool made = pthread_create(t, NULL, main, arg) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return made;
}

static Net *net_make(const NetSelf *self) {
    Net *n = calloc(1, sizeof *n);
    if (!n)
        return NULL;
    *n = (Net){.me = self->process, .n = self->processes, .coll_timeout_ms = self->coll_timeout_ms, .kick = {-1, -1}, .stop = {-1, -1},
                .nudge = {-1, -1}};
    pthread_mutex_init(&n->lock, NULL);
    pthread_cond_init(&n->came, NULL);
    n->peers = calloc(n->n, sizeof *n->peers);
    for (uint32_t i = 0; n->peers && i < n->n; i++) {
        n->peers[i].fd[CHANNEL_CONTROL] = n->peers[i].fd[CHANNEL_DATA] = -1;
        n->peers[i].last = &n->peers[i].first;
    }
    int flags = O_CLOEXEC | O_NONBLOCK;
    if (!n->peers || !share_open(n) || pipe2(n->kick, flags) || pipe2(n->stop, flags) || pipe2(n->nudge, flags)) {
        net_close(n);
        return NULL;
    }
    return n;
}

bool net_open(const NetSelf *self, const NetKv *kv, Net **out, char *why, size_t why_bytes) {
    *out = NULL;
    if (!self->processes || self->processes > NET_PROCESSES_MAX || self->process >= self->processes) {
        snprintf(why, why_bytes, "process %u of %u: there can be 1 to %d", self->process, self->processes, NET_PROCESSES_MAX);
        return false;
    }
    Net *n = net_make(self);
    if (!n) {
        snprintf(why, why_bytes, "out of memory");
        return false;
    }
    bool ok = net_join(n, self, kv, why, why_bytes);
    uint32_t near = 0;
    for (uint32_t i = 0; i < n->n; i++) {
        n->peers[i].heard_ms = now_ms() + self->timeout_ms; // it may have others to meet still, and says nothing until it has
        near += net_is_near(n, i);
    }
    n->crowded = (int)near > cpu_count();
    if (ok && !(n->has_control = net_thread(&n->control, control_main, n))) {
        snprintf(why, why_bytes, "the host has no thread for the other processes");
        ok = false;
    }
    if (!ok)
        net_close(n);
    else
        *out = n;
    return ok;
}

static void close_both(int fd[2]) {
    for (int k = 0; k < 2; k++)
        if (fd[k] >= 0)
            close(fd[k]);
}

// An endpoint that is closed takes with it what the others have not taken yet.
static void settle(Net *n) {
    for (int64_t until = now_ms() + SETTLE_MS; n->fabric && now_ms() < until; usleep(500)) {
        bool settled = true;
        pthread_mutex_lock(&n->lock);
        exchange_move_locked(n);
        for (uint32_t i = 0; i < n->n; i++) {
            const Peer *p = &n->peers[i];
            if (p->link && !p->gone) {
                link_tell(p->link);
                settled = settled && link_settled(p->link);
            }
        }
        pthread_mutex_unlock(&n->lock);
        if (settled)
            return;
    }
}

void net_close(Net *n) {
    if (!n)
        return;
    if (n->has_control) {
        share_close(n);
        net_bye(n);
        settle(n);
        while (write(n->stop[1], "", 1) < 0 && errno == EINTR)
            ;
        pthread_join(n->control, NULL);
    }
    if (n->peers)
        exchange_forget_locked(n, NULL);
    for (uint32_t i = 0; n->peers && i < n->n; i++) {
        close_both(n->peers[i].fd);
        ring_close(&n->peers[i].rings);
    }
    fabric_close(n->fabric);
    close_both(n->kick);
    close_both(n->stop);
    close_both(n->nudge);
    pthread_mutex_destroy(&n->lock);
    pthread_cond_destroy(&n->came);
    share_free(n->share);
    free(n->counts);
    free(n->peers);
    free(n);
}
