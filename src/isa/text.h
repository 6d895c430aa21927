// SPDX-License-Identifier: Apache-2.0
// text.h — a cursor over one line of text, for the assembler.
//
// Blanks separate, '#' begins a comment. Every taker skips blanks first and raises PARSE with file,
// line and column when the text is not what it wants.
#ifndef OTRN_ISA_TEXT_H
#define OTRN_ISA_TEXT_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/ctx.h"

typedef struct Txt {
    Ctx *ctx;
    Arena *arena; // where strings and lists go
    const char *file;
    uint32_t line, col; // of `begin`
    const char *begin, *at, *end;
} Txt;

typedef struct TxtWord { // a word and where it stood
    const char *s;
    uint32_t n, line, col;
} TxtWord;

_Noreturn void txt_fail(const Txt *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char txt_peek(Txt *t);         // next character, 0 at the end of the line or at a comment
bool txt_take(Txt *t, const char *literal); // takes it if it comes next
void txt_need(Txt *t, const char *literal);
bool txt_take_word(Txt *t, const char *word); // a whole word
TxtWord txt_word(Txt *t,
                 const char *what); // letters, digits and _ . - $ ! : what names it in errors
TxtWord txt_name(Txt *t, const char *what); // only letters, digits and _
bool txt_word_is(TxtWord w, const char *s);
// Whole numbers, decimal or 0x…; raises when outside [lo, hi].
int64_t txt_i64(Txt *t, int64_t lo, int64_t hi, const char *what);
uint64_t txt_u64(Txt *t, uint64_t hi, const char *what);
double txt_f64(Txt *t, const char *what);
int txt_dtype(Txt *t);
// "…" with \" \\ \n \t \xHH; NUL-terminated copy, n (may be NULL) is its length.
const char *txt_string(Txt *t, uint32_t *n);
const char *txt_cstring(Txt *t); // refuses \x00
void txt_end(Txt *t);            // nothing but blanks and a comment may follow

void txt_print_string(Buf *out, const char *s, size_t n); // the inverse of txt_string

#endif
