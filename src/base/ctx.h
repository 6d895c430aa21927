// SPDX-License-Identifier: Apache-2.0
// ctx.h — errors: codes, places, and how they travel.
//
// Every call into the library carries a context. A function that finds the user's input at fault
// calls ctx_fail, which writes the message once and returns to the nearest CTX_TRY by longjmp.
// That is safe because everything made on the way lives in arenas the entry point owns, and it
// keeps the code between free of status plumbing. Rules:
//   1. only entry points (rt, pjrt, tools, tests) and parts use CTX_TRY;
//   2. code that holds something other than arena memory (a file, a lock) must not call anything
//      that can fail before it has let go of it;
//   3. worker-pool tasks never fail, unless they are parts (parts.h), whose errors travel to the caller;
//   4. our own mistakes are assertions, not errors.
#ifndef OTRN_BASE_CTX_H
#define OTRN_BASE_CTX_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "otrn.h"

typedef struct Place { // a position in the user's own file; file may be NULL, line 0 = unknown
    const char *file;
    uint32_t line, col;
} Place;

typedef struct Ctx {
    jmp_buf *on_fail; // set by CTX_TRY
    otrn_error err;   // filled by ctx_fail
} Ctx;

// if (CTX_TRY(ctx)) { work } else { ctx->err tells }   Nesting: save and restore on_fail yourself.
#define CTX_TRY(ctx, jb) ((ctx)->on_fail = &(jb), setjmp(jb) == 0)

_Noreturn void ctx_fail(Ctx *ctx, otrn_status code, Place at, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
// Adds the "what to do" line to the error that the next ctx_fail raises; keeps fmt in ctx->err.hint.
void ctx_hint(Ctx *ctx, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// Fills err without jumping, for code that returns a status.
otrn_status ctx_set(otrn_error *err, otrn_status code, Place at, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

// The caller's error becomes `from`, as far as it has room (otrn_error.struct_size); to may be NULL.
void ctx_give(otrn_error *to, const otrn_error *from);

#define NO_PLACE ((Place){0})

#endif
