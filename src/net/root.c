// SPDX-License-Identifier: Apache-2.0
// root.c — a store of our own: a process of the job, usually the first, keeps values under keys for the others; see net.h.
//
// Who calls has to prove at the door that it knows the job's secret. Then it asks, one request at a time: put, or get, which
// waits until the key is there or its time is over. One thread serves all; it waits for none of them. What is no request ends
// that connection and nothing else.
#define _GNU_SOURCE // pipe2
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/now.h"
#include "net/net_in.h"

#define CLIENTS_MAX 1024
#define KEYS_MAX 65536
#define HELD_MAX ((size_t)256 << 20) // bytes of all values
#define RETRY_MS 50
#define PATIENCE_MS 30000 // for a name to become known, a way to a host to be found, who listens to answer
#define TAKEN_MS 5000     // for the last two, in the process that is to listen itself
#define LOOK_MS 100 // between looks at whose time is over
#define ADDRESSES_MAX 8
#define ELSEWHERE "set OTRN_ROOT to a HOST:PORT that is free, the same in all processes (otrn launch: --port=)"

typedef struct Row {
    char *key;
    void *value;
    size_t bytes;
} Row;

typedef struct Client { // one that has proved itself
    int fd;
    uint8_t head[WIRE_ASK_BYTES];
    WireAsk ask;
    size_t have; // of head and body
    uint8_t *body; // key and value
    bool waits;    // for a key, until
    int64_t until_ms;
    uint8_t *out; // the answer
    size_t out_bytes, out_at;
} Client;

typedef struct Server {
    Door door;
    pthread_t thread;
    int stop[2];
    Client *clients;
    uint32_t n;
    Row *rows;
    uint32_t nrows;
    size_t held;
} Server;

struct NetRoot {
    char at[200];
    int fd;
    pthread_mutex_t lock; // one request at a time
    Server *server;       // NULL: another process has it
};

// --- what is kept ----------------------------------------------------------------------------------

static Row *row_find(Server *s, const char *key, size_t n) {
    for (uint32_t i = 0; i < s->nrows; i++)
        if (strlen(s->rows[i].key) == n && !memcmp(s->rows[i].key, key, n))
            return &s->rows[i];
    return NULL;
}

static Row *row_add(Server *s, const char *key, size_t n) {
    if (s->nrows == KEYS_MAX)
        return NULL;
    Row *grown = realloc(s->rows, (s->nrows + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    s->rows = grown;
    char *copy = strndup(key, n);
    if (!copy)
        return NULL;
    s->rows[s->nrows] = (Row){.key = copy};
    return &s->rows[s->nrows++];
}

static bool row_put(Server *s, const char *key, size_t n, const void *value, size_t bytes) {
    Row *r = row_find(s, key, n);
    size_t held = s->held - (r ? r->bytes : 0) + bytes;
    void *copy = held <= HELD_MAX ? malloc(bytes + 1) : NULL;
    if (!copy || (!r && !(r = row_add(s, key, n)))) {
        free(copy);
        return false;
    }
    memcpy(copy, value, bytes);
    free(r->value);
    r->value = copy;
    r->bytes = bytes;
    s->held = held;
    return true;
}

// --- those who ask ---------------------------------------------------------------------------------

static void client_free(Client *c) {
    close(c->fd);
    free(c->body);
    free(c->out);
}

static void client_drop(Server *s, uint32_t i) {
    client_free(&s->clients[i]);
    s->clients[i] = s->clients[--s->n];
}

static bool client_answer(Client *c, WireAnswer status, const void *value, size_t bytes) {
    c->waits = false;
    c->have = 0;
    free(c->body);
    c->body = NULL;
    c->out = malloc(WIRE_ASK_BYTES + bytes);
    if (!c->out)
        return false;
    wire_put_ask(&(WireAsk){.kind = status, .value_bytes = (uint32_t)bytes}, c->out);
    if (bytes)
        memcpy(c->out + WIRE_ASK_BYTES, value, bytes);
    c->out_bytes = WIRE_ASK_BYTES + bytes;
    c->out_at = 0;
    return true;
}

// Answers a get when the key is there or nobody may wait any more.
static bool client_look(Server *s, Client *c) {
    const Row *r = row_find(s, (const char *)c->body, c->ask.key_bytes);
    if (r)
        return client_answer(c, ANSWER_OK, r->value, r->bytes);
    return now_ms() < c->until_ms || client_answer(c, ANSWER_LATE, NULL, 0);
}

static bool client_serve(Server *s, Client *c) {
    const char *key = (const char *)c->body;
    if (c->ask.kind == ASK_PUT) {
        bool ok = row_put(s, key, c->ask.key_bytes, key + c->ask.key_bytes, c->ask.value_bytes);
        return client_answer(c, ok ? ANSWER_OK : ANSWER_FULL, NULL, 0);
    }
    c->waits = true;
    c->until_ms = now_ms() + c->ask.timeout_ms;
    return client_look(s, c);
}

// Some bytes of a request. False: hang up.
static bool client_read(Server *s, Client *c) {
    bool head = c->have < WIRE_ASK_BYTES;
    size_t body = head ? 0 : c->ask.key_bytes + c->ask.value_bytes, need = WIRE_ASK_BYTES + body;
    uint8_t *to = head ? c->head + c->have : c->body + (c->have - WIRE_ASK_BYTES);
    if (c->waits || c->out)
        return false; // it may not ask before it has its answer, and says nothing when it goes
    ssize_t k = recv(c->fd, to, head ? WIRE_ASK_BYTES - c->have : need - c->have, MSG_DONTWAIT);
    if (k <= 0)
        return k < 0 && (errno == EAGAIN || errno == EINTR);
    c->have += (size_t)k;
    if (head && c->have == WIRE_ASK_BYTES) {
        if (!wire_get_ask(c->head, &c->ask) || c->ask.kind > ASK_GET)
            return false;
        return (c->body = malloc((size_t)c->ask.key_bytes + c->ask.value_bytes)) != NULL;
    }
    return head || c->have < need || client_serve(s, c);
}

static bool client_write(Client *c) {
    ssize_t k = send(c->fd, c->out + c->out_at, c->out_bytes - c->out_at, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (k < 0)
        return errno == EAGAIN || errno == EINTR;
    c->out_at += (size_t)k;
    if (c->out_at == c->out_bytes) {
        free(c->out);
        c->out = NULL;
    }
    return true;
}

static bool root_fits(void *arg, const WireHello *h) {
    (void)arg;
    return h->channel == CHANNEL_ROOT;
}

static bool root_enter(void *arg, const WireHello *h, int fd) {
    Server *s = arg;
    (void)h;
    if (s->n == CLIENTS_MAX)
        return false;
    s->clients[s->n++] = (Client){.fd = fd};
    return true;
}

static void *server_main(void *arg) {
    Server *s = arg;
    struct pollfd polls[CALLERS_MAX + CLIENTS_MAX + 2];
    for (;;) {
        uint32_t door = door_polls(&s->door, polls), n = s->n;
        for (uint32_t i = 0; i < n; i++)
            polls[door + i] = (struct pollfd){.fd = s->clients[i].fd, .events = s->clients[i].out ? POLLOUT : POLLIN};
        polls[door + n] = (struct pollfd){.fd = s->stop[0], .events = POLLIN};
        poll(polls, door + n + 1, LOOK_MS);
        if (polls[door + n].revents)
            return NULL;
        for (uint32_t i = n; i-- > 0;) {
            Client *c = &s->clients[i];
            if (polls[door + i].revents && !(c->out ? client_write(c) : client_read(s, c)))
                client_drop(s, i);
        }
        for (uint32_t i = s->n; i-- > 0;)
            if (s->clients[i].waits && !client_look(s, &s->clients[i]))
                client_drop(s, i);
        door_step(&s->door, polls, door);
    }
}

static void server_free(Server *s) {
    for (uint32_t i = 0; i < s->n; i++)
        client_free(&s->clients[i]);
    for (uint32_t i = 0; i < s->nrows; i++) {
        free(s->rows[i].key);
        free(s->rows[i].value);
    }
    for (int k = 0; k < 2; k++)
        if (s->stop[k] >= 0)
            close(s->stop[k]);
    door_close(&s->door);
    free(s->clients);
    free(s->rows);
    free(s);
}

// Signals of the program that loaded us are for its own threads.
static bool server_start(Server *s) {
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    bool ok = pthread_create(&s->thread, NULL, server_main, s) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return ok;
}

// A name may mean another address here than elsewhere (many hosts have their own at 127.0.1.1), so only what says that it is
// for this host is taken at its word; else all addresses are.
static bool server_listen(Server *s, const char *at, const NetAddr *first) {
    bool here = !strncmp(at, "127.", 4) || !strncmp(at, "localhost:", 10) || !strncmp(at, "[::1]:", 6);
    uint16_t port = ntohs(first->any.sa_family == AF_INET ? first->v4.sin_port : first->v6.sin6_port);
    NetAddr any;
    if (here)
        return door_listen(&s->door, first);
    return (addr_parse("::", port, &any) && door_listen(&s->door, &any)) ||
           (errno != EADDRINUSE && addr_parse("0.0.0.0", port, &any) && door_listen(&s->door, &any));
}

// A port that the system chose has to be known before anybody calls.
static void root_have(NetRoot *r, Server *s) {
    char *port = strrchr(r->at, ':');
    r->server = s;
    if (!strcmp(port, ":0"))
        snprintf(port, sizeof r->at - (size_t)(port - r->at), ":%u", door_port(&s->door));
}

// There is no server when somebody listens there already: the caller finds out who.
static bool server_open(NetRoot *r, const NetAddr *first, const uint8_t secret[SHA256_BYTES], char *why, size_t why_bytes) {
    Server *s = calloc(1, sizeof *s);
    if (s)
        *s = (Server){.door = {.listener = -1, .fits = root_fits, .enter = root_enter, .arg = s}, .stop = {-1, -1},
                      .clients = calloc(CLIENTS_MAX, sizeof(Client))};
    if (!s || !s->clients || pipe2(s->stop, O_CLOEXEC)) {
        if (s)
            server_free(s);
        snprintf(why, why_bytes, "out of memory");
        return false;
    }
    memcpy(s->door.secret, secret, SHA256_BYTES);
    bool listens = server_listen(s, r->at, first), taken = !listens && errno == EADDRINUSE;
    if (listens && server_start(s)) {
        root_have(r, s);
        return true;
    }
    snprintf(why, why_bytes, "cannot listen at %.100s: %s%s", r->at, strerror(errno),
             errno == EACCES ? ", ports below 1024 need rights: " ELSEWHERE : "");
    server_free(s);
    return taken;
}

// --- asking ----------------------------------------------------------------------------------------

static bool ask(NetRoot *r, WireAsk a, const char *key, const void *value, int64_t until, char *why, size_t why_bytes) {
    uint8_t head[WIRE_ASK_BYTES];
    wire_put_ask(&a, head);
    if (r->fd >= 0 && door_send(r->fd, head, sizeof head, until) && door_send(r->fd, key, a.key_bytes, until) &&
        door_send(r->fd, value, a.value_bytes, until))
        return true;
    snprintf(why, why_bytes, "the root at %s is gone", r->at);
    return false;
}

// NULL: `why` tells. Once something went wrong in between, nothing more can be asked.
static void *answer(NetRoot *r, const char *key, size_t *bytes, int64_t until, char *why, size_t why_bytes) {
    uint8_t head[WIRE_ASK_BYTES];
    WireAsk a;
    char *value = NULL;
    if (door_recv(r->fd, head, sizeof head, until) && wire_get_ask(head, &a) && a.kind >= ANSWER_OK && !a.key_bytes &&
        (value = malloc((size_t)a.value_bytes + 1)) && door_recv(r->fd, value, a.value_bytes, until)) {
        value[a.value_bytes] = 0;
        *bytes = a.value_bytes;
        if (a.kind == ANSWER_OK)
            return value;
        snprintf(why, why_bytes, a.kind == ANSWER_FULL ? "the root at %s is full: %.60s" : "the root at %s knows no %.60s", r->at, key);
    } else {
        snprintf(why, why_bytes, "the root at %s is gone", r->at);
        close(r->fd);
        r->fd = -1;
    }
    free(value);
    return NULL;
}

static void *root_ask(NetRoot *r, WireAsk a, const char *key, const void *value, size_t *bytes, char *why, size_t why_bytes) {
    enum { SLACK_MS = 30000 }; // for the answer itself
    int64_t until = now_ms() + a.timeout_ms + SLACK_MS;
    size_t n = strlen(key);
    if (!n || n > WIRE_KEY_MAX || a.value_bytes > WIRE_VALUE_MAX) {
        snprintf(why, why_bytes, "a key of the root has 1 to %d bytes, a value at most %d", WIRE_KEY_MAX, WIRE_VALUE_MAX);
        return NULL;
    }
    a.key_bytes = (uint32_t)n;
    pthread_mutex_lock(&r->lock);
    void *out = ask(r, a, key, value, until, why, why_bytes) ? answer(r, key, bytes, until, why, why_bytes) : NULL;
    pthread_mutex_unlock(&r->lock);
    return out;
}

bool net_root_put(NetRoot *r, const char *key, const void *value, size_t bytes, char *why, size_t why_bytes) {
    size_t got;
    uint32_t n = bytes <= WIRE_VALUE_MAX ? (uint32_t)bytes : WIRE_VALUE_MAX + 1u;
    void *ok = root_ask(r, (WireAsk){.kind = ASK_PUT, .value_bytes = n}, key, value, &got, why, why_bytes);
    free(ok);
    return ok != NULL;
}

void *net_root_get(NetRoot *r, const char *key, unsigned timeout_ms, size_t *bytes, char *why, size_t why_bytes) {
    return root_ask(r, (WireAsk){.kind = ASK_GET, .timeout_ms = timeout_ms}, key, "", bytes, why, why_bytes);
}

static bool kv_put(void *arg, const char *key, const char *value, char *why, size_t why_bytes) {
    return net_root_put(arg, key, value, strlen(value), why, why_bytes);
}

static bool kv_get(void *arg, const char *key, unsigned timeout_ms, char *value, size_t bytes, char *why, size_t why_bytes) {
    size_t n;
    char *got = net_root_get(arg, key, timeout_ms, &n, why, why_bytes);
    bool fits = got && n < bytes;
    if (fits)
        memcpy(value, got, n + 1);
    else if (got)
        snprintf(why, why_bytes, "%s holds %zu bytes", key, n);
    free(got);
    return fits;
}

const char *net_root_at(const NetRoot *r) { return r->at; }

NetKv net_root_kv(NetRoot *r) { return (NetKv){.arg = r, .put = kv_put, .get = kv_get}; }

// --- life ------------------------------------------------------------------------------------------

typedef struct Tries { // to reach the root
    bool serve;        // this process is to have it, unless somebody does
    DoorResult result; // of the last; DOOR_OK: there was none
    int error;         // where nobody listens
    int64_t since_ms;  // of the first with this result
} Tries;

// One call to each of the root's addresses; the answer that says most counts.
static bool call_all(NetRoot *r, const NetAddr *at, uint32_t n, const uint8_t secret[SHA256_BYTES], int64_t until, Tries *t) {
    DoorResult most = DOOR_OK;
    int64_t begin = now_ms();
    for (uint32_t i = 0; i < n; i++) {
        DoorResult one;
        r->fd = door_call(&at[i], secret, (WireHello){.channel = CHANNEL_ROOT}, until, &one);
        if (r->fd >= 0)
            return true;
        if (one == DOOR_NOBODY)
            t->error = errno;
        most = one > most ? one : most;
    }
    if (most != t->result)
        t->since_ms = begin;
    t->result = most;
    return false;
}

// Where a connection was refused or never made. Who listens at all addresses of its host and is refused called another.
static bool nobody_is_final(const NetRoot *r, const Tries *t, int64_t lasts, char *why, size_t why_bytes) {
    bool no_way = t->error == EHOSTUNREACH || t->error == ENETUNREACH, taken = t->serve && !r->server;
    if (taken)
        snprintf(why, why_bytes, "the port of %s is taken by another program: " ELSEWHERE, r->at);
    else if (t->serve)
        snprintf(why, why_bytes, "%s does not lead to this process, which is the first and listens (%s): set OTRN_ROOT to a name of "
                 "this host, with a port, in all processes", r->at,
                 strerror(t->error));
    else
        snprintf(why, why_bytes, no_way ? "%s cannot be reached: %s" : "nobody listens at %s: %s", r->at, strerror(t->error));
    if (r->server && t->error == ECONNREFUSED)
        return true;
    return lasts >= (t->serve ? TAKEN_MS : PATIENCE_MS) && (t->serve || no_way);
}

// Who does not know the secret will not learn it, another program will not become a root, who is not there may come. True: there is
// no use in calling again.
static bool is_final(const NetRoot *r, const Tries *t, char *why, size_t why_bytes) {
    int64_t lasts = now_ms() - t->since_ms;
    bool taken = t->serve && !r->server;
    if (t->result == DOOR_NOBODY)
        return nobody_is_final(r, t, lasts, why, why_bytes);
    if (t->result == DOOR_STRANGER) {
        snprintf(why, why_bytes, taken ? "%s is taken by another job, with another secret: " ELSEWHERE
                                       : "who listens at %s does not know this job's secret", r->at);
        return true;
    }
    snprintf(why, why_bytes, "%s is %s by another program, which does not speak this opentrn's protocol: end it, or " ELSEWHERE, r->at,
             taken ? "taken" : "answered");
    return t->result == DOOR_FOREIGN || lasts >= (taken ? TAKEN_MS : PATIENCE_MS);
}

static bool server_try(NetRoot *r, const uint8_t secret[SHA256_BYTES], char *why, size_t why_bytes) {
    NetAddr first;
    return addr_find(r->at, &first, 1, why, why_bytes) && server_open(r, &first, secret, why, why_bytes);
}

static bool connect_to(NetRoot *r, const uint8_t secret[SHA256_BYTES], bool serve, unsigned timeout_ms, char *why, size_t why_bytes) {
    int64_t begin = now_ms(), until = begin + timeout_ms;
    Tries t = {.serve = serve, .since_ms = begin};
    do {
        NetAddr at[ADDRESSES_MAX];
        if (serve && !r->server && t.result <= DOOR_NOBODY && !server_try(r, secret, why, why_bytes)) // again where the one before went
            return false;
        uint32_t n = addr_find(r->at, at, ADDRESSES_MAX, why, why_bytes);
        if (!n && now_ms() - begin > PATIENCE_MS) // a name may become known
            return false;
        if (n && call_all(r, at, n, secret, until, &t))
            return true;
        if (n && is_final(r, &t, why, why_bytes))
            return false;
        usleep(RETRY_MS * 1000);
    } while (now_ms() < until);
    size_t said = strlen(why);
    snprintf(why + said, why_bytes - said, " (within %u s)", timeout_ms / 1000);
    return false;
}

bool net_root_open(const char *at, const char *secret, bool serve, unsigned timeout_ms, NetRoot **out, char *why,
                   size_t why_bytes) {
    *out = NULL;
    if (!secret || !*secret) {
        snprintf(why, why_bytes, "the root at %.100s needs a secret that all processes of the job have: set OTRN_SECRET", at);
        return false;
    }
    if (!addr_is_written(at, why, why_bytes))
        return false;
    NetRoot *r = calloc(1, sizeof *r);
    if (!r) {
        snprintf(why, why_bytes, "out of memory");
        return false;
    }
    r->fd = -1;
    snprintf(r->at, sizeof r->at, "%s", at);
    pthread_mutex_init(&r->lock, NULL);
    Sha256 key = sha256(secret, strlen(secret));
    bool ok = connect_to(r, key.at, serve, timeout_ms, why, why_bytes);
    explicit_bzero(key.at, sizeof key.at);
    if (ok)
        *out = r;
    else
        net_root_close(r);
    return ok;
}

void net_root_close(NetRoot *r) {
    if (!r)
        return;
    if (r->fd >= 0)
        close(r->fd);
    if (r->server) {
        while (write(r->server->stop[1], "", 1) < 0 && errno == EINTR)
            ;
        pthread_join(r->server->thread, NULL);
        server_free(r->server);
    }
    pthread_mutex_destroy(&r->lock);
    free(r);
}
