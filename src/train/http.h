// SPDX-License-Identifier: Apache-2.0
// http.h — requests by libcurl, which is looked for when a run first needs it: nothing else of opentrn does.
#ifndef OTRN_TRAIN_HTTP_H
#define OTRN_TRAIN_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#define HTTP_WHY_BYTES 256
#define HTTP_NAME_BYTES 128

typedef struct Piece { // bodies come in pieces: nothing is copied together
    const void *data;
    size_t bytes;
} Piece;

typedef struct HttpCall {
    const char *method, *url;
    const char *const *headers; // "Name: value"
    size_t nheaders;
    const Piece *body;
    size_t pieces, from, bytes; // of the body: what begins `from` bytes behind its start; bytes 0 and pieces 0: none
} HttpCall;

typedef struct HttpReply {
    long status;   // 0: there was none, `why` tells
    char *body;    // ends with a NUL; lives until the next call
    size_t bytes;
    char etag[HTTP_NAME_BYTES]; // "": none
    char why[HTTP_WHY_BYTES];
} HttpReply;

typedef struct Http Http;
Http *http_open(char *why, size_t why_bytes); // NULL: libcurl is not there
void http_close(Http *h);                     // may be NULL
void http_call(Http *h, const HttpCall *call, HttpReply *out);

#endif
