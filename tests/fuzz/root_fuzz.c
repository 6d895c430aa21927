// SPDX-License-Identifier: Apache-2.0
// root_fuzz.c — damaged requests to the store where processes meet, from one that has proved itself, and damaged hellos at its door.
#include "net/root.c" // its server is nobody else's

#include "tests/fuzz/fuzz.h"

const char *const fuzz_seeds[] = {"tests/fuzz/data/frames.bin", NULL};

void fuzz_corpus_ready(FuzzCorpus *c) {
    static const WireAsk asks[] = {{.kind = ASK_PUT, .key_bytes = 3, .value_bytes = 40},
                                   {.kind = ASK_GET, .key_bytes = 3, .timeout_ms = 1},
                                   {.kind = ASK_PUT, .key_bytes = 1, .value_bytes = 0}};
    uint8_t bytes[3 * WIRE_ASK_BYTES + 64] = {0}, hello[2 * WIRE_HELLO_BYTES];
    size_t n = 0;
    for (size_t i = 0; i < 3; i++) {
        wire_put_ask(&asks[i], bytes + n);
        n += WIRE_ASK_BYTES;
        memset(bytes + n, 'k', asks[i].key_bytes);
        n += asks[i].key_bytes + asks[i].value_bytes;
    }
    fuzz_corpus_piece(c, bytes, n);
    wire_put_hello(&(WireHello){.from = 1, .channel = CHANNEL_ROOT}, hello);
    wire_put_hello(&(WireHello){.from = 1, .channel = CHANNEL_ROOT}, hello + WIRE_HELLO_BYTES);
    fuzz_corpus_piece(c, hello, sizeof hello);
}

// Bytes that lie ready at the other end of a new connection; the near end, or -1.
static int arrived(const uint8_t *data, size_t size, int *far) {
    int fd[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd))
        return -1;
    *far = fd[1];
    if (send(fd[1], data, size, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
        shutdown(fd[1], SHUT_WR);
    return fd[0];
}

static void request(Server *s, const uint8_t *data, size_t size) {
    int far, fd = arrived(data, size, &far);
    if (fd < 0)
        return;
    s->n = 0;
    root_enter(s, NULL, fd);
    Client *c = s->clients;
    for (bool stays = true; stays;) {
        if (c->waits)
            c->until_ms = 0; // nobody else is there who could put it
        stays = c->waits ? client_look(s, c) : c->out ? client_write(c) : client_read(s, c);
        if (c->have > WIRE_ASK_BYTES + (size_t)c->ask.key_bytes + c->ask.value_bytes || s->held > HELD_MAX)
            abort();
    }
    client_drop(s, 0);
    close(far);
}

static void knock(Door *d, const uint8_t *data, size_t size) {
    int far, fd = arrived(data, size, &far);
    if (fd < 0)
        return;
    d->callers[d->n++] = (Caller){.fd = fd, .until_ms = INT64_MAX};
    for (int i = 0; d->n && i < 8; i++) {
        struct pollfd polls[2];
        uint32_t n = door_polls(d, polls);
        polls[0].revents = POLLIN;
        door_step(d, polls, n);
    }
    if (d->n)
        abort(); // the other end is closed
    close(far);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Server *s = calloc(1, sizeof *s);
    if (size && s && (s->clients = calloc(2, sizeof *s->clients))) {
        s->stop[0] = s->stop[1] = s->door.listener = -1;
        s->door.fits = root_fits;
        s->door.enter = root_enter;
        s->door.arg = s;
        request(s, data, size);
        knock(&s->door, data, size);
        if (s->n)
            abort(); // came in without knowing the secret
    }
    if (s)
        server_free(s);
    return 0;
}
