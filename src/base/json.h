// SPDX-License-Identifier: Apache-2.0
// json.h — JSON in (RFC 8259): a tree in an arena. What is written is written by hand, with json_put for texts.
#ifndef OTRN_BASE_JSON_H
#define OTRN_BASE_JSON_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/ctx.h"

typedef enum JsonKind { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_TEXT, JSON_LIST, JSON_OBJECT } JsonKind;

typedef struct Json {
    JsonKind kind;
    const char *name;        // of an object's member
    const char *text;        // of TEXT, and a NUMBER as it was written
    double number;
    const struct Json *at;   // elements or members
    uint32_t n;
} Json;

#define JSON_DEPTH 64 // of lists and objects in each other

// Raises PARSE with line and column. Texts with a zero character are refused.
const Json *json_parse(Ctx *ctx, Arena *a, const char *name, const void *bytes, size_t size);
const Json *json_get(const Json *j, const char *member); // NULL: no object, or it has none
// A member of this kind, or raises PARSE naming it.
const Json *json_need(Ctx *ctx, const char *file, const Json *j, const char *member, JsonKind kind);
void json_put(Buf *out, const char *text); // quoted

#endif
