// SPDX-License-Identifier: Apache-2.0
// ctx.c — writing errors down, and the public view of them.
#include "base/ctx.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static void fill(otrn_error *err, otrn_status code, Place at, const char *fmt, va_list ap) {
    err->struct_size = sizeof *err;
    err->code = code;
    err->line = at.line;
    err->col = at.col;
    snprintf(err->file, sizeof err->file, "%s", at.file ? at.file : "");
    vsnprintf(err->text, sizeof err->text, fmt, ap);
}

_Noreturn void ctx_fail(Ctx *ctx, otrn_status code, Place at, const char *fmt, ...) {
    assert(ctx->on_fail);
    va_list ap;
    va_start(ap, fmt);
    fill(&ctx->err, code, at, fmt, ap);
    va_end(ap);
    longjmp(*ctx->on_fail, 1);
}

void ctx_hint(Ctx *ctx, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(ctx->err.hint, sizeof ctx->err.hint, fmt, ap);
    va_end(ap);
}

otrn_status ctx_set(otrn_error *err, otrn_status code, Place at, const char *fmt, ...) {
    if (err) {
        otrn_error full;
        full.hint[0] = 0;
        va_list ap;
        va_start(ap, fmt);
        fill(&full, code, at, fmt, ap);
        va_end(ap);
        ctx_give(err, &full);
    }
    return code;
}

// As many bytes as both know of.
static size_t known(const otrn_error *err) {
    return err->struct_size < sizeof *err ? err->struct_size : sizeof *err;
}

void ctx_give(otrn_error *to, const otrn_error *from) {
    const size_t first = offsetof(otrn_error, code);
    size_t bytes = to && known(to) < known(from) ? known(to) : known(from);
    if (to && bytes > first)
        memcpy((char *)to + first, (const char *)from + first, bytes - first);
}

static const char *const status_names[] = {
#define X(name, code, text) code,
    OTRN_STATUS_ROWS(X)
#undef X
};
static const char *const status_texts[] = {
#define X(name, code, text) text,
    OTRN_STATUS_ROWS(X)
#undef X
};

const char *otrn_status_name(otrn_status s) {
    return (unsigned)s < OTRN_STATUS_COUNT ? status_names[s] : "UNKNOWN";
}

const char *otrn_status_text(otrn_status s) {
    return (unsigned)s < OTRN_STATUS_COUNT ? status_texts[s] : "unknown status";
}

size_t otrn_error_print(const otrn_error *given, char *out, size_t out_bytes) {
    char place[300] = "";
    otrn_error full = OTRN_ERROR_INIT;
    const otrn_error *err = &full;
    if (!given || known(given) <= offsetof(otrn_error, text)) {
        int n = snprintf(out, out_bytes, "error without text: set struct_size of the otrn_error before the call (OTRN_ERROR_INIT)");
        return (size_t)n;
    }
    ctx_give(&full, given);
    if (err->file[0] && err->line)
        snprintf(place, sizeof place, "%.255s:%u:%u: ", err->file, err->line, err->col);
    else if (err->file[0])
        snprintf(place, sizeof place, "%.255s: ", err->file);
    int n = snprintf(out, out_bytes, "%serror[%s]: %s%s%s", place, otrn_status_name(err->code),
                     err->text, err->hint[0] ? "\n  hint: " : "", err->hint);
    return n < 0 ? 0 : (size_t)n;
}
