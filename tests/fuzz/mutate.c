// SPDX-License-Identifier: Apache-2.0
// mutate.c — makes a damaged input out of the corpus.
//
// Blind byte damage to a text is nearly always a spelling mistake that the lexer refuses. So text is damaged
// mostly by token (a number for another number, a word for a word from elsewhere in the corpus), by line and by
// bracket, and binary files by the small numbers their variable-length integers hold. Small pieces are preferred: they
// run quicker, and one mistake in a small input is more often the only one.
#include "tests/fuzz/fuzz.h"

#include "base/bytes.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Work {
    const FuzzCorpus *corpus;
    uint64_t rng;
    uint8_t *at;
    size_t n;
} Work;

static uint64_t next_random(uint64_t *state) { // splitmix64
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static size_t below(Work *w, size_t n) { return n ? (size_t)(next_random(&w->rng) % n) : 0; }

// --- corpus ----------------------------------------------------------------------------------------------

static bool is_text(const uint8_t *p, size_t n) { return !memchr(p, 0, n); }

void fuzz_corpus_piece(FuzzCorpus *c, const uint8_t *at, size_t n) {
    uint8_t *copy = n && c->n < FUZZ_PIECES_MAX ? malloc(n) : NULL;
    if (!copy)
        return;
    memcpy(copy, at, n);
    c->pieces[c->n++] = (FuzzPiece){copy, n};
}

// Lines that are only a comment would only take time.
static size_t drop_comment_lines(uint8_t *p, size_t n) {
    size_t out = 0;
    for (size_t i = 0, end; i < n; i = end) {
        const uint8_t *nl = memchr(p + i, '\n', n - i);
        end = nl ? (size_t)(nl - p) + 1 : n;
        bool comment = (n - i > 1 && p[i] == '/' && p[i + 1] == '/') || (n - i > 1 && p[i] == '#' && p[i + 1] == ' ');
        if (!comment) {
            memmove(p + out, p + i, end - i);
            out += end - i;
        }
    }
    return out;
}

static void add_functions(FuzzCorpus *c, const uint8_t *p, size_t n) {
    static const char mark[] = "\nfunc.func";
    size_t begin = n;
    for (size_t i = 0; i + sizeof mark < n; i++) {
        if (memcmp(p + i, mark, sizeof mark - 1))
            continue;
        if (begin < i)
            fuzz_corpus_piece(c, p + begin, i + 1 - begin);
        begin = i + 1;
    }
    if (begin < n)
        fuzz_corpus_piece(c, p + begin, n - begin);
}

static bool add_file(FuzzCorpus *c, const char *path, bool as_it_is) {
    static uint8_t whole[FUZZ_BYTES_MAX];
    FILE *f = fopen(path, "rb");
    if (!f)
        return false;
    size_t n = fread(whole, 1, sizeof whole, f), before = c->n;
    fclose(f);
    if (!as_it_is && is_text(whole, n)) {
        n = drop_comment_lines(whole, n);
        add_functions(c, whole, n);
    }
    fuzz_corpus_piece(c, whole, n);
    return c->n > before;
}

static int is_program(const struct dirent *e) {
    const char *dot = strrchr(e->d_name, '.');
    static const char *const ends[] = {".mlir", ".mlirbc", ".s", ".pb", NULL};
    for (int i = 0; dot && ends[i]; i++)
        if (!strcmp(dot, ends[i]))
            return 1;
    return 0;
}

bool fuzz_corpus_add(FuzzCorpus *c, const char *path, bool as_it_is) {
    struct dirent **names;
    int n = scandir(path, &names, is_program, alphasort);
    if (n < 0)
        return add_file(c, path, as_it_is);
    for (int i = 0; i < n; i++) {
        char file[512];
        snprintf(file, sizeof file, "%s/%s", path, names[i]->d_name);
        add_file(c, file, as_it_is);
        free(names[i]);
    }
    free(names);
    return n > 0;
}

void fuzz_corpus_drop(FuzzCorpus *c, size_t n) {
    for (size_t i = 0; i < n; i++)
        free((void *)c->pieces[i].at);
    memmove(c->pieces, c->pieces + n, (c->n - n) * sizeof *c->pieces);
    c->n -= n;
}

void fuzz_corpus_free(FuzzCorpus *c) { fuzz_corpus_drop(c, c->n); }

static const FuzzPiece *any_piece(Work *w) { return &w->corpus->pieces[below(w, w->corpus->n)]; }

// --- edits -----------------------------------------------------------------------------------------------

// Puts n bytes where `old` bytes stood. src may lie in the work itself: it is copied first when small.
static void replace(Work *w, size_t at, size_t old, const uint8_t *src, size_t n) {
    uint8_t copy[256];
    if (n > sizeof copy)
        n = sizeof copy;
    if (w->n - old + n > FUZZ_BYTES_MAX)
        return;
    if (n)
        memcpy(copy, src, n);
    memmove(w->at + at + n, w->at + at + old, w->n - at - old);
    if (n)
        memcpy(w->at + at, copy, n);
    w->n = w->n - old + n;
}

static bool is_word(uint8_t c) { return isalnum(c) || c == '_' || c == '.' || c == '%' || c == '@' || c == '!' || c == '-'; }

// The token at or behind a random place: a word, or one other character that is not space.
static bool token(Work *w, const uint8_t *p, size_t n, size_t *at, size_t *len) {
    size_t i = below(w, n);
    while (i < n && isspace(p[i]))
        i++;
    if (i == n)
        return false;
    size_t end = i + 1;
    if (is_word(p[i])) {
        while (i > 0 && is_word(p[i - 1]))
            i--;
        while (end < n && is_word(p[end]))
            end++;
    }
    *at = i;
    *len = end - i;
    return true;
}

static int token_class(const uint8_t *p, size_t n) {
    if (isdigit(p[0]) || (n > 1 && p[0] == '-' && isdigit(p[1])))
        return 'n';
    return is_word(p[0]) ? (p[0] == '%' ? '%' : 'w') : 'p';
}

// A token for a token of the same class, from anywhere in the corpus.
static void swap_token(Work *w) {
    size_t at, len, from, n;
    if (!token(w, w->at, w->n, &at, &len))
        return;
    int cls = token_class(w->at + at, len);
    for (int tries = 0; tries < 12; tries++) {
        bool own = below(w, 2);
        const uint8_t *p = w->at;
        size_t size = w->n;
        if (!own) {
            const FuzzPiece *piece = any_piece(w);
            p = piece->at, size = piece->n;
        }
        if (token(w, p, size, &from, &n) && token_class(p + from, n) == cls) {
            replace(w, at, len, p + from, n);
            return;
        }
    }
}

static void odd_number(Work *w) {
    static const char *const odd[] = {"0", "1", "-1", "2", "3", "7", "64", "127", "128", "255", "256", "65536",
                                      "2147483647", "2147483648", "-2147483648", "4294967295", "4294967296",
                                      "9223372036854775807", "-9223372036854775808", "9223372036854775808",
                                      "18446744073709551615", "18446744073709551616", "1e400", "0x7f", "0.5", "?", "-0.0"};
    size_t at, len;
    for (int tries = 0; tries < 12; tries++) {
        if (!token(w, w->at, w->n, &at, &len) || token_class(w->at + at, len) != 'n')
            continue;
        const char *s = odd[below(w, sizeof odd / sizeof *odd)];
        replace(w, at, len, (const uint8_t *)s, strlen(s));
        return;
    }
}

// Every place where `old` stands alone between other characters of its kind becomes `now`: such an edit often
// leaves a valid program, so what stands behind the verifier is reached too.
static void replace_everywhere(Work *w, const char *old, const char *now) {
    size_t n = strlen(old);
    for (size_t i = 0; i + n <= w->n; i++) {
        if (memcmp(w->at + i, old, n) || (i && isalnum(w->at[i - 1]) && w->at[i - 1] != 'x') ||
            (i + n < w->n && isalnum(w->at[i + n]) && w->at[i + n] != 'x'))
            continue;
        replace(w, i, n, (const uint8_t *)now, strlen(now));
        i += strlen(now);
    }
}

static void type_everywhere(Work *w) {
    static const char *const types[] = {"f32",  "f32",  "f32",  "bf16", "f16", "f64", "i1",  "i8",  "i16",        "i32",        "i32",
                                        "i64",  "ui8",  "ui16", "ui32", "ui64", "i4", "ui4", "i2",  "f8E4M3FN",   "f8E5M2",     "f4E2M1FN",
                                        "complex<f32>", "complex<f64>", "f8E8M0FNU", "f6E2M3FN", "!quant.uniform<i8:f32, 0.5:1>"};
    size_t n = sizeof types / sizeof *types;
    replace_everywhere(w, types[below(w, n)], types[below(w, n)]);
}

static void size_everywhere(Work *w) {
    static const char *const sizes[] = {"0", "1", "2", "3", "4", "5", "6", "8", "16", "?"};
    size_t n = sizeof sizes / sizeof *sizes;
    replace_everywhere(w, sizes[below(w, n)], sizes[below(w, n)]);
}

static void op_everywhere(Work *w) { // one elementwise op for another, or one enum value for another
    static const char *const rows[][10] = {
        {"add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "power", "atan2", "and"},
        {"and", "or", "xor", "shift_left", "shift_right_logical", "shift_right_arithmetic", "add", "maximum", "multiply", "minimum"},
        {"abs", "negate", "exponential", "sign", "cosine", "floor", "tanh", "cbrt", "popcnt", "not"},
        {"EQ", "NE", "LT", "LE", "GT", "GE", "EQ", "LT", "GT", "GE"},
        {"true", "false", "true", "false", "true", "false", "true", "false", "true", "false"},
    };
    const char *const *row = rows[below(w, sizeof rows / sizeof *rows)];
    replace_everywhere(w, row[below(w, 10)], row[below(w, 10)]);
}

static void drop_token(Work *w) {
    size_t at, len;
    if (token(w, w->at, w->n, &at, &len))
        replace(w, at, len, w->at, 0);
}

static void repeat_token(Work *w) {
    size_t at, len, to, skip;
    if (token(w, w->at, w->n, &at, &len) && token(w, w->at, w->n, &to, &skip))
        replace(w, to, 0, w->at + at, len);
}

static void line_at(Work *w, size_t *at, size_t *len) {
    size_t i = below(w, w->n), end = i;
    while (i > 0 && w->at[i - 1] != '\n')
        i--;
    while (end < w->n && w->at[end] != '\n')
        end++;
    *at = i;
    *len = end + (end < w->n) - i;
}

static void drop_line(Work *w) {
    size_t at, len;
    line_at(w, &at, &len);
    replace(w, at, len, w->at, 0);
}

static void repeat_line(Work *w) {
    size_t at, len, to, skip;
    line_at(w, &at, &len);
    line_at(w, &to, &skip);
    replace(w, to, 0, w->at + at, len);
}

// What stands between a bracket and its partner goes, or comes twice.
static void bracket(Work *w) {
    static const char open[] = "([{<", close[] = ")]}>";
    size_t begin = below(w, w->n);
    const char *kind = NULL;
    for (; begin < w->n && !kind; begin++)
        kind = w->at[begin] ? strchr(open, w->at[begin]) : NULL;
    if (!kind)
        return;
    size_t end = begin;
    for (int depth = 1; end < w->n; end++) {
        depth += (w->at[end] == (uint8_t)*kind) - (w->at[end] == (uint8_t)close[kind - open]);
        if (!depth)
            break;
    }
    if (below(w, 2))
        replace(w, begin, end - begin, w->at, 0);
    else
        replace(w, end, 0, w->at + begin, end - begin);
}

static void flip(Work *w) {
    if (w->n)
        w->at[below(w, w->n)] ^= (uint8_t)(1u << below(w, 8));
}

static void odd_byte(Work *w) {
    static const uint8_t odd[] = {0, 1, 0x7f, 0x80, 0xff, '"', '<', '(', '%', '\n', '9', '-', '#', '!', '\\', 0xc3};
    if (w->n)
        w->at[below(w, w->n)] = odd[below(w, sizeof odd)];
}

static void near_byte(Work *w) { // an index one further, or any small variable-length integer
    if (!w->n)
        return;
    uint8_t *p = &w->at[below(w, w->n)];
    *p = below(w, 2) ? (uint8_t)(*p + (below(w, 2) ? 2 : -2)) : (uint8_t)(below(w, 64) << 1 | 1);
}

static void odd_word(Work *w) { // a fixed-width integer in little-endian bytes
    static const uint64_t odd[] = {0, 1, 2, 16, 255, 0xffff, 0x7fffffff, 0x80000000u, 0xffffffffu, INT64_MAX,
                                   (uint64_t)INT64_MIN, UINT64_MAX, UINT64_MAX / 24, UINT64_MAX - 7};
    size_t width = (size_t)1 << (1 + below(w, 3)), at = below(w, w->n);
    uint64_t value = odd[below(w, sizeof odd / sizeof *odd)];
    for (size_t i = 0; i < width && at + i < w->n; i++)
        w->at[at + i] = (uint8_t)(value >> (8 * i));
}

static void cut(Work *w) {
    if (!below(w, 8))
        w->n = below(w, w->n);
}

static void stretch(Work *w) { // gone, come twice, or from another piece
    size_t at = below(w, w->n), len = 1 + below(w, 24);
    if (len > w->n - at)
        len = w->n - at;
    const FuzzPiece *other = any_piece(w);
    switch (below(w, 4)) {
    case 0:
        replace(w, at, len, w->at, 0);
        break;
    case 1:
        replace(w, at, 0, w->at + at, len);
        break;
    case 2:
        if (w->n)
            memmove(w->at + at, w->at + below(w, w->n - len + 1), len);
        break;
    default:
        if (len <= other->n)
            replace(w, at, below(w, 2) ? len : 0, other->at + below(w, other->n - len + 1), len);
    }
}

typedef void Edit(Work *w);
static Edit *const text_edits[] = {
    swap_token,      swap_token,      swap_token,      odd_number,    odd_number,  drop_token, repeat_token, drop_line,
    repeat_line,     bracket,         flip,            odd_byte,      stretch,     cut,        type_everywhere,
    type_everywhere, type_everywhere, size_everywhere, size_everywhere, size_everywhere, op_everywhere, op_everywhere,
};
static Edit *const binary_edits[] = {flip, odd_byte, near_byte, near_byte, near_byte, odd_word, stretch, cut};

static void binary_edit(Work *w) { binary_edits[below(w, sizeof binary_edits / sizeof *binary_edits)](w); }

// --- artifacts -------------------------------------------------------------------------------------------

#define HEADER 32
#define ROW 24
#define ALIGN 16
#define SECTIONS_MAX 64

static bool is_artifact(const uint8_t *p, size_t n) { return n > HEADER && !memcmp(p, "OTRNART", 8); }

// Damages one section, each as likely as another, and puts the file together again: offsets and sizes stay true, so that
// what a section holds is read. Rarely, and where the file is beyond that, any byte.
static void artifact_edit(Work *w) {
    static uint8_t whole[FUZZ_BYTES_MAX], part[FUZZ_BYTES_MAX];
    uint32_t sections = w->n > HEADER ? le_load32(w->at + 12) : 0;
    size_t table = HEADER + (size_t)ROW * sections, n = table;
    if (!sections || sections > SECTIONS_MAX || table > w->n || !below(w, 32)) {
        binary_edit(w);
        return;
    }
    uint32_t chosen = (uint32_t)below(w, sections);
    memcpy(whole, w->at, table);
    for (uint32_t i = 0; i < sections; i++) {
        uint64_t at = le_load64(w->at + HEADER + ROW * i + 8), size = le_load64(w->at + HEADER + ROW * i + 16);
        if (at > w->n || size > w->n - at)
            return;
        Work sub = {.corpus = w->corpus, .rng = w->rng, .at = part, .n = size};
        memcpy(part, w->at + at, size);
        if (i == chosen) {
            binary_edit(&sub);
            w->rng = sub.rng;
        }
        for (; n % ALIGN && n < sizeof whole; n++)
            whole[n] = 0;
        if (sub.n > sizeof whole - n)
            return;
        memcpy(whole + n, part, sub.n);
        le_store64(whole + HEADER + ROW * i + 8, n);
        le_store64(whole + HEADER + ROW * i + 16, sub.n);
        n += sub.n;
    }
    memcpy(w->at, whole, n);
    w->n = n;
}

size_t fuzz_mutate(const FuzzCorpus *c, uint64_t number, uint8_t *out) {
    Work w = {.corpus = c, .rng = number, .at = out};
    next_random(&w.rng); // neighbouring numbers part here
    const FuzzPiece *from = any_piece(&w);
    for (int i = 0; i < 2; i++) { // the smallest of three
        const FuzzPiece *other = any_piece(&w);
        if (other->n < from->n)
            from = other;
    }
    memcpy(out, from->at, from->n);
    w.n = from->n;
    bool text = is_text(from->at, from->n), artifact = is_artifact(from->at, from->n);
    for (size_t k = 1 + below(&w, below(&w, 4) ? 2 : 8); k > 0 && w.n; k--)
        if (text)
            text_edits[below(&w, sizeof text_edits / sizeof *text_edits)](&w);
        else if (artifact)
            artifact_edit(&w);
        else
            binary_edit(&w);
    return w.n;
}

void fuzz_fix_checksums(uint8_t *p, size_t size) {
    if (size < 32)
        return;
    uint64_t sections = le_load32(p + 12);
    if (sections > (size - 32) / 24)
        return;
    le_store64(p + 16, size);
    for (uint64_t i = 0; i < sections; i++) {
        uint8_t *row = p + 32 + 24 * i;
        uint64_t at = le_load64(row + 8), n = le_load64(row + 16);
        if (at <= size && n <= size - at)
            le_store32(row + 4, crc32c(0, p + at, n));
    }
    le_store32(p + 24, crc32c(0, p + 32, 24 * sections));
    le_store32(p + 28, crc32c(0, p, 28));
}
