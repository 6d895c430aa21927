// SPDX-License-Identifier: Apache-2.0
// http_fuzz.c — what libcurl hands over of a server's answer, line by line and piece by piece, damaged; and a body sent in pieces of any size.
#include "train/http.c" // its callbacks are nobody else's

#include "tests/fuzz/fuzz.h"

const char *const fuzz_seeds[] = {"tests/train/data/s3_head.txt", "tests/train/data/s3_list.xml", NULL};

static void answer(const uint8_t *data, size_t size) {
    HttpReply r = {0};
    Http h = {0};
    for (size_t i = 0, n; i < size; i += n) {
        const uint8_t *end = memchr(data + i, '\n', size - i);
        n = end ? (size_t)(end - data) - i + 1 : size - i;
        char *line = malloc(n); // no byte behind it
        if (!line)
            abort();
        memcpy(line, data + i, n);
        if (on_header(line, 1, n, &r) != n || on_write(line, 1, n, &h) != n)
            abort();
        free(line);
    }
    if (memchr(r.etag, 0, sizeof r.etag) == NULL || (size && (h.bytes != size || memcmp(h.body, data, size) || h.body[size])))
        abort();
    free(h.body);
}

static void question(const uint8_t *data, size_t size) {
    size_t first = size ? data[0] % (size + 1) : 0, from = size ? data[size / 2] % (size + 1) : 0;
    Piece pieces[] = {{data, first}, {data + first, 0}, {data + first, size - first}};
    HttpCall call = {.body = pieces, .pieces = 3, .from = from, .bytes = size - from};
    Body body = {.call = &call};
    char *to = malloc(size + 1);
    size_t put = 0, got;
    if (!to)
        abort();
    for (size_t room = 1; (got = on_read(to + put, 1, room < size + 1 - put ? room : size + 1 - put, &body)); room = room * 3 + 1)
        put += got;
    if (put != size - from || (put && memcmp(to, data + from, put)) || on_seek(&body, 0, SEEK_SET) || body.at)
        abort();
    free(to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    answer(data, size);
    question(data, size);
    return 0;
}
