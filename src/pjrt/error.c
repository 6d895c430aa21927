// SPDX-License-Identifier: Apache-2.0
// error.c — PJRT errors: a code and our text.
//
// Codes carry meaning for jaxlib: UNIMPLEMENTED starts fall-backs, RESOURCE_EXHAUSTED is what users
// know as out of memory. The error's first word is a function table, since callers may go through
// the object instead of through the plugin's table. When there is no memory left for an error, a
// constant one is returned; destroying it does nothing.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pjrt/pjrt.h"

struct PJRT_Error {
    const PJRT_Error_FunctionTable *vtable; // first word, by the interface
    PJRT_Error_Code code;
    size_t size;
    const char *text;
};

static const PJRT_Error no_memory;

static void error_destroy(PJRT_Error *e) {
    if (e && e != &no_memory)
        free(e);
}

static void error_message(const PJRT_Error *e, const char **text, size_t *size) {
    *text = e->text;
    *size = e->size;
}

static PJRT_Error_Code error_code(const PJRT_Error *e) { return e->code; }

static void error_payloads(const PJRT_Error *e, PJRT_PayloadVisitor *visit, void *arg) {
    (void)e, (void)visit, (void)arg; // our errors have none
}

static const PJRT_Error_FunctionTable error_table = {
    .struct_size = sizeof(PJRT_Error_FunctionTable),
    .instance_size = sizeof(PJRT_Error),
    .destroy = error_destroy,
    .message = error_message,
    .get_code = error_code,
    .for_each_payload = error_payloads,
};

#define NO_MEMORY_TEXT "opentrn: the host is out of memory"
static const PJRT_Error no_memory = {&error_table, PJRT_Error_Code_RESOURCE_EXHAUSTED,
                                     sizeof NO_MEMORY_TEXT - 1, NO_MEMORY_TEXT};

PJRT_Error *pj_error_nomem(void) { return (PJRT_Error *)&no_memory; }

static PJRT_Error *error_make(PJRT_Error_Code code, size_t size, char **text) {
    PJRT_Error *e = malloc(sizeof *e + size + 1);
    if (!e)
        return pj_error_nomem();
    *text = (char *)(e + 1);
    *e = (PJRT_Error){&error_table, code, size, *text};
    return e;
}

PJRT_Error *pj_error(PJRT_Error_Code code, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    int size = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *text = NULL;
    PJRT_Error *e = error_make(code, (size_t)size, &text);
    if (text) {
        va_start(ap, fmt);
        vsnprintf(text, (size_t)size + 1, fmt, ap);
        va_end(ap);
    }
    return e;
}

PJRT_Error *pj_error_dup(const PJRT_Error *e) {
    if (!e || e == &no_memory)
        return (PJRT_Error *)e;
    return pj_error(e->code, "%.*s", (int)e->size, e->text);
}

bool pj_error_is(const PJRT_Error *e, PJRT_Error_Code code) { return e && e->code == code; }

static PJRT_Error_Code code_from_status(otrn_status s) {
    switch (s) {
    case OTRN_UNSUPPORTED: return PJRT_Error_Code_UNIMPLEMENTED;
    case OTRN_CAPACITY:
    case OTRN_NOMEM: return PJRT_Error_Code_RESOURCE_EXHAUSTED;
    case OTRN_VERSION:
    case OTRN_CHECK: return PJRT_Error_Code_FAILED_PRECONDITION;
    case OTRN_IO: return PJRT_Error_Code_UNAVAILABLE;
    case OTRN_INTERNAL: return PJRT_Error_Code_INTERNAL;
    case OTRN_TIMEOUT: return PJRT_Error_Code_DEADLINE_EXCEEDED;
    case OTRN_INTERRUPTED: return PJRT_Error_Code_CANCELLED;
    default: return PJRT_Error_Code_INVALID_ARGUMENT;
    }
}

PJRT_Error *pj_error_from(const otrn_error *err) {
    size_t need = otrn_error_print(err, NULL, 0);
    char *text = NULL;
    PJRT_Error *e = error_make(code_from_status(err->code), need, &text);
    if (text) {
        otrn_error_print(err, text, need + 1);
        e->size = strlen(text);
        while (e->size && text[e->size - 1] == '\n')
            e->size--;
    }
    return e;
}

PJRT_Error *pj_try(PjWork *work, void *arg) {
    Ctx ctx = {0};
    Arena arena;
    arena_init(&arena, &ctx);
    PJRT_Error *volatile error;
    jmp_buf here;
    if (CTX_TRY(&ctx, here))
        error = work(arg, &ctx, &arena);
    else
        error = pj_error_from(&ctx.err);
    arena_fini(&arena);
    return error;
}

void pj_Error_Destroy(PJRT_Error_Destroy_Args *args) { error_destroy(args->error); }

void pj_Error_Message(PJRT_Error_Message_Args *args) {
    error_message(args->error, &args->message, &args->message_size);
}

PJRT_Error *pj_Error_GetCode(PJRT_Error_GetCode_Args *args) {
    args->code = args->error->code;
    return PJ_OK;
}

PJRT_Error *pj_Error_ForEachPayload(PJRT_Error_ForEachPayload_Args *args) {
    error_payloads(args->error, args->visitor, args->user_arg);
    return PJ_OK;
}
