// SPDX-License-Identifier: Apache-2.0
// http.c — libcurl's easy interface, opened at run time.
//
// The numbers below are libcurl's binary interface, which has not changed since 7.16 (2006) for those of them that were there then.
// Only what was not given away since is used: all of it is in 7.29 and later.
#include "train/http.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { // options: a number and, in steps of 10000, the type of the value: long, pointer, function, offset
    LOW_SPEED_LIMIT = 19, LOW_SPEED_TIME = 20, NOPROGRESS = 43, NOBODY = 44, UPLOAD = 46, NOSIGNAL = 99, CONNECTTIMEOUT = 78,
    WRITEDATA = 10001, URL = 10002, READDATA = 10009, ERRORBUFFER = 10010, USERAGENT = 10018, HTTPHEADER = 10023, HEADERDATA = 10029,
    CUSTOMREQUEST = 10036, SEEKDATA = 10168,
    WRITEFUNCTION = 20011, READFUNCTION = 20012, HEADERFUNCTION = 20079, SEEKFUNCTION = 20167,
    INFILESIZE_LARGE = 30115,
    RESPONSE_CODE = 0x200002,
    GLOBAL_ALL = 3,
    ERROR_BYTES = 256,
};
#define CONNECT_SECONDS 10L
#define STILL_SECONDS 30L // without a byte: given up

struct Http {
    void *library, *easy;
    int (*set)(void *easy, int option, ...);
    int (*info)(void *easy, int what, ...);
    int (*perform)(void *easy);
    void (*reset)(void *easy), (*cleanup)(void *easy);
    const char *(*text)(int code);
    void *(*append)(void *list, const char *line);
    void (*list_free)(void *list);
    char *body;
    size_t bytes, room;
};

typedef struct Body { // that is being sent
    const HttpCall *call;
    size_t at; // of call->bytes
} Body;

static size_t on_read(char *to, size_t size, size_t n, void *arg) {
    Body *b = arg;
    size_t room = size * n, put = 0, skip = b->call->from + b->at;
    for (size_t i = 0; i < b->call->pieces && put < room && b->at < b->call->bytes; i++) {
        const Piece *p = &b->call->body[i];
        if (skip >= p->bytes) {
            skip -= p->bytes;
            continue;
        }
        size_t more = p->bytes - skip, left = b->call->bytes - b->at;
        more = more < room - put ? more : room - put;
        more = more < left ? more : left;
        memcpy(to + put, (const char *)p->data + skip, more);
        put += more, b->at += more, skip = 0;
    }
    return put;
}

static int on_seek(void *arg, int64_t offset, int origin) { // a connection that had gone: the body is sent again
    if (origin != SEEK_SET)
        return 1;
    ((Body *)arg)->at = (size_t)offset;
    return 0;
}

static size_t on_write(char *from, size_t size, size_t n, void *arg) {
    Http *h = arg;
    size_t more = size * n;
    if (h->bytes + more + 1 > h->room) {
        size_t room = 2 * h->room + more + 4096;
        char *body = realloc(h->body, room);
        if (!body)
            return 0;
        h->body = body, h->room = room;
    }
    memcpy(h->body + h->bytes, from, more);
    h->body[h->bytes += more] = 0;
    return more;
}

static size_t on_header(char *line, size_t size, size_t n, void *arg) {
    HttpReply *r = arg;
    size_t all = size * n, at = 5;
    if (all > 5 && !strncasecmp(line, "etag:", 5)) {
        while (at < all && (line[at] == ' ' || line[at] == '"'))
            at++;
        size_t end = at;
        while (end < all && line[end] != '"' && line[end] != '\r' && line[end] != '\n')
            end++;
        snprintf(r->etag, sizeof r->etag, "%.*s", (int)(end - at), line + at);
    }
    return all;
}

static void *symbol(Http *h, const char *name, bool *good) {
    void *p = dlsym(h->library, name);
    *good = *good && p;
    return p;
}

Http *http_open(char *why, size_t why_bytes) {
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.so", "libcurl.4.dylib"};
    Http *h = calloc(1, sizeof *h);
    for (size_t i = 0; h && !h->library && i < sizeof names / sizeof *names; i++)
        h->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    bool good = h && h->library;
    if (good) {
        void *(*make)(void);
        int (*global)(long);
        *(void **)&make = symbol(h, "curl_easy_init", &good), *(void **)&global = symbol(h, "curl_global_init", &good);
        *(void **)&h->set = symbol(h, "curl_easy_setopt", &good), *(void **)&h->info = symbol(h, "curl_easy_getinfo", &good);
        *(void **)&h->perform = symbol(h, "curl_easy_perform", &good), *(void **)&h->reset = symbol(h, "curl_easy_reset", &good);
        *(void **)&h->cleanup = symbol(h, "curl_easy_cleanup", &good), *(void **)&h->text = symbol(h, "curl_easy_strerror", &good);
        *(void **)&h->append = symbol(h, "curl_slist_append", &good), *(void **)&h->list_free = symbol(h, "curl_slist_free_all", &good);
        h->easy = good && !global(GLOBAL_ALL) ? make() : NULL;
    }
    if (h && h->easy)
        return h;
    snprintf(why, why_bytes, "%s", !h ? "out of memory" : !h->library ? "libcurl.so.4 is not on this machine" : "its libcurl lacks what we need");
    free(h);
    return NULL;
}

void http_close(Http *h) {
    if (!h)
        return;
    h->cleanup(h->easy); // the library itself stays: it may have made threads and handlers
    free(h->body);
    free(h);
}

static void *headers_make(Http *h, const HttpCall *call) {
    void *list = NULL;
    for (size_t i = 0; i < call->nheaders; i++) {
        void *more = h->append(list, call->headers[i]);
        list = more ? more : list;
    }
    return list;
}

void http_call(Http *h, const HttpCall *call, HttpReply *out) {
    char error[ERROR_BYTES] = "";
    Body body = {.call = call};
    *out = (HttpReply){0};
    h->bytes = 0;
    h->reset(h->easy); // the connection stays
    void *list = headers_make(h, call);
    h->set(h->easy, URL, call->url), h->set(h->easy, HTTPHEADER, list), h->set(h->easy, USERAGENT, "opentrn");
    h->set(h->easy, NOSIGNAL, 1L), h->set(h->easy, NOPROGRESS, 1L), h->set(h->easy, ERRORBUFFER, error);
    h->set(h->easy, CONNECTTIMEOUT, CONNECT_SECONDS), h->set(h->easy, LOW_SPEED_LIMIT, 1L), h->set(h->easy, LOW_SPEED_TIME, STILL_SECONDS);
    h->set(h->easy, WRITEFUNCTION, on_write), h->set(h->easy, WRITEDATA, h);
    h->set(h->easy, HEADERFUNCTION, on_header), h->set(h->easy, HEADERDATA, out);
    if (!strcmp(call->method, "PUT") || !strcmp(call->method, "POST")) {
        h->set(h->easy, UPLOAD, 1L), h->set(h->easy, INFILESIZE_LARGE, (int64_t)call->bytes);
        h->set(h->easy, READFUNCTION, on_read), h->set(h->easy, READDATA, &body);
        h->set(h->easy, SEEKFUNCTION, on_seek), h->set(h->easy, SEEKDATA, &body);
    } else if (!strcmp(call->method, "HEAD")) {
        h->set(h->easy, NOBODY, 1L);
    }
    h->set(h->easy, CUSTOMREQUEST, call->method);
    int code = h->perform(h->easy);
    if (!code)
        h->info(h->easy, RESPONSE_CODE, &out->status);
    else
        snprintf(out->why, sizeof out->why, "%s", *error ? error : h->text(code));
    h->list_free(list);
    if (!h->bytes)
        on_write("", 1, 0, h);
    out->body = h->body, out->bytes = h->bytes;
    h->set(h->easy, ERRORBUFFER, (char *)NULL);
}
