// SPDX-License-Identifier: Apache-2.0
// net_fuzz.c — damaged frames from another process, on its connection for data or for control, damaged hellos and questions.
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/net_in.h"
#include "tests/fuzz/fuzz.h"

const char *const fuzz_seeds[] = {"tests/fuzz/data/frames.bin", NULL};

// Process 1 of two sends the bytes; this one waits for a message of theirs.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Peer peers[2] = {{.gone = true}, {.last = NULL}};
    Net n = {.n = 2, .peers = peers, .lock = PTHREAD_MUTEX_INITIALIZER, .came = PTHREAD_COND_INITIALIZER};
    n.lost = true; // no line on stderr for each peer that we made up
    NetLaunch launch = {.set = 2, .number = 3, .program = 4};
    NetCall call = {.launch = &launch, .tag = 1, .sign = 5, .op = "all_reduce"};
    uint8_t body[100];
    NetSeg seg = {body, sizeof body};
    Exchange x = {.call = &call, .left = 1};
    Want want = {.x = &x, .bytes = sizeof body, .body = {.segs = &seg, .n = 1}};
    WireHello hello;
    WireAsk ask;
    int fd[2];
    if (size >= WIRE_ASK_BYTES)
        wire_get_ask(data, &ask);
    if (size >= WIRE_HELLO_BYTES)
        wire_get_hello(data, &hello);
    if (size > 1 << 16 || socketpair(AF_UNIX, SOCK_STREAM, 0, fd))
        return 0;
    peers[1] = (Peer){.fd = {fd[0], fd[0]}, .wants = &want};
    peers[1].last = &peers[1].first;
    n.active = &x;
    if (send(fd[1], data, size, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 && size) {
        if (data[size - 1] & 1)
            net_listen_locked(&n, 1);
        else
            exchange_move_locked(&n);
    }
    exchange_forget_locked(&n, NULL);
    close(fd[0]);
    close(fd[1]);
    return 0;
}
