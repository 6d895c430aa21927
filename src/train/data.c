// SPDX-License-Identifier: Apache-2.0
// data.c — files of tokens and images, mapped while they are opened, read sample by sample; shuffled by a permutation that is computed, not stored.
#include "train/data.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "train/random.h"

#ifndef OTRN_SOURCE_DIR
#define OTRN_SOURCE_DIR "."
#endif
// The text there is without a file: opentrn's own documents.
__asm__(".pushsection .rodata,\"a\"\n"
        ".hidden data_text\n.global data_text\ndata_text:\n"
        ".incbin \"" OTRN_SOURCE_DIR "/ARCHITECTURE.md\"\n"
        ".incbin \"" OTRN_SOURCE_DIR "/HACKING.md\"\n"
        ".incbin \"" OTRN_SOURCE_DIR "/spec/isa.md\"\n"
        ".incbin \"" OTRN_SOURCE_DIR "/spec/artifact.md\"\n"
        ".hidden data_text_end\n.global data_text_end\ndata_text_end:\n"
        ".byte 0\n"
        ".popsection\n");
extern const uint8_t data_text[] __attribute__((visibility("hidden")));
extern const uint8_t data_text_end[] __attribute__((visibility("hidden")));

#define PRINT_BYTES (1 << 20) // of each end of a file

static uint32_t print_of(const uint8_t *at, size_t n) {
    if (n <= 2 * PRINT_BYTES)
        return crc32c(0, at, n);
    return crc32c(crc32c(0, at, PRINT_BYTES), at + n - PRINT_BYTES, PRINT_BYTES);
}

// --- formats ---------------------------------------------------------------------------------------

static uint32_t big32(const uint8_t *p) { return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]; }

static bool idx_is(const uint8_t *p, size_t n, int rank) { return n >= 4 && !p[0] && !p[1] && p[2] == 8 && p[3] == rank; }

static void idx_images(Ctx *ctx, const char *path, const uint8_t *p, size_t n, Data *d) {
    if (n < 16)
        ctx_fail(ctx, OTRN_PARSE, (Place){.file = path}, "an IDX file of images that ends in its head");
    uint64_t count = big32(p + 4), height = big32(p + 8), width = big32(p + 12);
    if (!count || !height || !width || height > 4096 || width > 4096 || count > (n - 16) / (height * width))
        ctx_fail(ctx, OTRN_PARSE, (Place){.file = path}, "an IDX file that says %llu images of %llu x %llu and has %zu bytes",
                 (unsigned long long)count, (unsigned long long)height, (unsigned long long)width, n);
    d->images = true, d->at = p + 16;
    d->count = (int64_t)count, d->height = (int64_t)height, d->width = (int64_t)width;
}

// Whole numbers in a .npy file of any shape, in the order they lie.
static void npy_tokens(Ctx *ctx, const char *path, const uint8_t *p, size_t n, Data *d) {
    static const struct {
        const char *name;
        int bytes;
    } types[] = {{"|u1", 1}, {"<u2", 2}, {"<i2", 2}, {"<u4", 4}, {"<i4", 4}, {"<i8", 8}, {"<u8", 8}};
    size_t head = n < 12 ? n : p[6] == 1 ? 10 + (size_t)le_load16(p + 8) : 12 + (size_t)le_load32(p + 8);
    char text[256] = "";
    if (head < n)
        memcpy(text, p + 8, head - 8 < sizeof text - 1 ? head - 8 : sizeof text - 1);
    for (size_t i = 0; i < sizeof text - 1 && i < head; i++) // lengths come before the text
        text[i] = text[i] ? text[i] : ' ';
    const char *descr = strstr(text, "'descr':");
    for (size_t i = 0; descr && i < sizeof types / sizeof *types; i++)
        if (strstr(descr, types[i].name)) {
            d->at = p + head, d->token_bytes = types[i].bytes, d->count = (int64_t)((n - head) / (size_t)types[i].bytes);
            return;
        }
    ctx_hint(ctx, "save tokens with numpy.save as uint16 or int32");
    ctx_fail(ctx, OTRN_PARSE, (Place){.file = path}, "no .npy file of whole numbers");
}

static bool ends_in(const char *path, const char *end) {
    size_t n = strlen(path), m = strlen(end);
    return n >= m && !strcmp(path + n - m, end);
}

bool data_parse(Ctx *ctx, const char *path, const uint8_t *p, size_t n, Data *d) {
    if (idx_is(p, n, 3)) {
        idx_images(ctx, path, p, n, d);
    } else if ((n >= 6 && !memcmp(p, "\x93NUMPY", 6)) || ends_in(path, ".npy")) {
        npy_tokens(ctx, path, p, n, d);
    } else if (ends_in(path, ".bin")) { // tokens of two bytes, behind a head of 256 numbers where its first says so
        size_t head = n >= 1024 && le_load32(p) == 20240520 ? 1024 : 0;
        d->at = p + head, d->token_bytes = 2, d->count = (int64_t)((n - head) / 2);
    } else {
        d->at = p, d->token_bytes = 1, d->count = (int64_t)n, d->text = true;
        return false;
    }
    return true;
}

// --- files -----------------------------------------------------------------------------------------

static const uint8_t *map(Ctx *ctx, const char *path, Data *d, int which) {
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC), err = fd < 0 ? errno : 0;
    if (!err && fstat(fd, &st))
        err = errno;
    if (!err && !S_ISREG(st.st_mode))
        err = S_ISDIR(st.st_mode) ? EISDIR : ESPIPE;
    void *at = err || !st.st_size ? NULL : mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED)
        err = errno, at = NULL;
    if (fd >= 0 && (which || !at))
        close(fd);
    else if (fd >= 0)
        d->streams = true, d->fd = fd;
    if (err) {
        ctx_hint(ctx, "--data takes a file: text, .npy or .bin tokens, IDX images");
        ctx_fail(ctx, OTRN_IO, (Place){.file = path}, "cannot read the data: %s", strerror(err));
    }
    if (!at)
        ctx_fail(ctx, OTRN_PARSE, (Place){.file = path}, "the data is an empty file");
    d->maps[which].at = at, d->maps[which].bytes = (size_t)st.st_size;
    return at;
}

// train-images-idx3-ubyte has its labels in train-labels-idx1-ubyte.
static void labels_open(Ctx *ctx, Arena *a, const char *path, Data *d) {
    char *name = arena_printf(a, "%s", path), *part = NULL;
    for (char *at = name; (at = strstr(at, "images")); at++)
        part = at;
    if (!part)
        ctx_fail(ctx, OTRN_IO, (Place){.file = path}, "no `images` in its name, so where its labels are cannot be told");
    memcpy(part, "labels", 6);
    char *three = strstr(part, "idx3");
    if (three)
        three[3] = '1';
    const uint8_t *p = map(ctx, name, d, 1);
    size_t n = d->maps[1].bytes;
    if (!idx_is(p, n, 1) || n < 8 || big32(p + 4) != d->count || n - 8 < (size_t)d->count)
        ctx_fail(ctx, OTRN_PARSE, (Place){.file = name}, "no IDX file of %lld labels", (long long)d->count);
    d->labels = arena_dup(a, p + 8, (size_t)d->count);
    for (int64_t i = 0; i < d->count; i++)
        if (d->labels[i] >= DATA_DIGITS)
            ctx_fail(ctx, OTRN_PARSE, (Place){.file = name}, "label %lld is %d, and there are %d classes", (long long)i, d->labels[i],
                     DATA_DIGITS);
}

void data_open(Ctx *ctx, Arena *a, const char *path, bool images, Data *d) {
    *d = (Data){.name = path, .images = images, .token_bytes = 1, .height = DATA_SIDE, .width = DATA_SIDE};
    if (!*path && images) {
        d->name = "digits drawn here", d->count = 4096;
    } else if (!*path) {
        d->name = "opentrn's documents", d->at = data_text, d->count = data_text_end - data_text, d->text = true;
        d->print = print_of(d->at, (size_t)d->count);
    } else if (images && data_is_folder(path)) {
        data_folder(ctx, a, path, d);
    } else {
        const uint8_t *p = map(ctx, path, d, 0);
        d->images = false;
        data_parse(ctx, path, p, d->maps[0].bytes, d);
        if (d->images != images)
            ctx_fail(ctx, OTRN_ARGUMENT, (Place){.file = path}, images ? "this model takes IDX images, or a folder of PNG files" : "this model takes text or tokens, not images");
        d->print = print_of(p, d->maps[0].bytes), d->offset = d->at - p;
        if (images)
            labels_open(ctx, a, path, d);
    }
}

void data_become(Data *d, const uint32_t *tokens, size_t count) {
    if (d->streams)
        close(d->fd), d->streams = false;
    d->at = (const uint8_t *)tokens, d->count = (int64_t)count, d->token_bytes = sizeof *tokens;
}

void data_close(Data *d) {
    for (int i = 0; i < 2; i++)
        if (d->maps[i].at)
            munmap(d->maps[i].at, d->maps[i].bytes);
    if (d->streams)
        close(d->fd);
    *d = (Data){0};
}

// --- order -----------------------------------------------------------------------------------------

// A Feistel network over the next even number of bits; what falls outside goes round again.
uint64_t data_order(uint64_t seed, uint64_t epoch, uint64_t i, uint64_t count) {
    int half = 1;
    while (half < 31 && (uint64_t)1 << (2 * half) < count)
        half++;
    uint64_t mask = ((uint64_t)1 << half) - 1;
    do {
        uint64_t left = i >> half, right = i & mask;
        for (uint64_t round = 0; round < 4; round++) {
            uint64_t next = left ^ (random_at(seed ^ epoch << 32, STREAM_ORDER + (round << 24), right) & mask);
            left = right, right = next;
        }
        i = left << half | right;
    } while (i >= count);
    return i;
}

// Bytes of the tokens or pixels, from `from` on.
static const uint8_t *bytes_read(Ctx *ctx, Arena *a, const Data *d, uint64_t from, size_t n) {
    if (!d->streams)
        return d->at + from;
    uint8_t *to = arena_alloc(a, n);
    for (size_t done = 0; done < n;) {
        ssize_t got = pread(d->fd, to + done, n - done, (off_t)((uint64_t)d->offset + from + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            ctx_fail(ctx, OTRN_IO, (Place){.file = d->name}, "cannot read the data: %s", strerror(errno));
        if (!got) {
            ctx_hint(ctx, "put the whole file back; --resume goes on from the last checkpoint");
            ctx_fail(ctx, OTRN_IO, (Place){.file = d->name}, "the data was cut while the run reads it: it had %zu bytes, and ends before byte %llu now",
                     d->maps[0].bytes, (unsigned long long)((uint64_t)d->offset + from + n));
        }
        done += (size_t)got;
    }
    return to;
}

static uint64_t token(const Data *d, const uint8_t *from, uint64_t i) {
    const uint8_t *p = from + i * (uint64_t)d->token_bytes;
    return d->token_bytes == 1 ? *p : d->token_bytes == 2 ? le_load16(p) : d->token_bytes == 4 ? le_load32(p) : le_load64(p);
}

// Windows side by side, from a place that changes with the epoch.
void data_tokens(Ctx *ctx, Arena *scratch, const Data *d, uint64_t seed, uint64_t n, int64_t seq, int64_t vocab, int32_t *out) {
    if (d->count < 2 * seq) {
        ctx_hint(ctx, "give more data, or a smaller --seq");
        ctx_fail(ctx, OTRN_ARGUMENT, (Place){.file = d->name}, "%lld tokens are too few for windows of %lld", (long long)d->count, (long long)seq);
    }
    uint64_t windows = (uint64_t)(d->count / seq) - 1, epoch = n / windows;
    uint64_t from = random_at(seed, STREAM_OFFSET, epoch) % (uint64_t)seq;
    uint64_t at = from + data_order(seed, epoch, n % windows, windows) * (uint64_t)seq;
    size_t each = (size_t)d->token_bytes;
    const uint8_t *bytes = bytes_read(ctx, scratch, d, at * each, (size_t)seq * each);
    for (int64_t i = 0; i < seq; i++) {
        uint64_t t = token(d, bytes, (uint64_t)i);
        if (t >= (uint64_t)vocab) {
            ctx_hint(ctx, "--vocab=N says how many tokens there are");
            ctx_fail(ctx, OTRN_ARGUMENT, (Place){.file = d->name}, "token %llu is %llu, and the model knows %lld",
                     (unsigned long long)(at + (uint64_t)i), (unsigned long long)t, (long long)vocab);
        }
        out[i] = (int32_t)t;
    }
}

// --- drawn digits ----------------------------------------------------------------------------------

// Seven segments: bit 0 the top, then clockwise, bit 6 the middle.
static bool lit(int digit, int row, int col) { // of a 5 x 9 field, lines one wide
    static const uint8_t segments[DATA_DIGITS] = {0x3f, 0x06, 0x5b, 0x4f, 0x66, 0x6d, 0x7d, 0x07, 0x7f, 0x6f};
    int s = segments[digit];
    return ((s & 1) && row == 0) || ((s & 2) && col == 4 && row <= 4) || ((s & 4) && col == 4 && row >= 4) || ((s & 8) && row == 8) ||
           ((s & 16) && col == 0 && row >= 4) || ((s & 32) && col == 0 && row <= 4) || ((s & 64) && row == 4);
}

static int32_t draw(uint64_t seed, uint64_t which, float *out) {
    uint64_t r = random_at(seed, STREAM_DRAWN, which);
    int digit = (int)(r % DATA_DIGITS), down = 2 + (int)(r >> 16 & 3), right = 4 + (int)(r >> 24 & 3);
    for (int i = 0; i < DATA_SIDE * DATA_SIDE; i++) {
        int row = i / DATA_SIDE - down, col = i % DATA_SIDE - right;
        bool on = row >= 0 && row < 9 && col >= 0 && col < 5 && lit(digit, row, col);
        double noise = random_unit(seed ^ r, STREAM_DRAWN + 1, (uint64_t)i);
        out[i] = (float)(on ? 1 - 0.4 * noise : 0.3 * noise);
    }
    return digit;
}

int32_t data_image(Ctx *ctx, Arena *scratch, const Data *d, uint64_t seed, uint64_t n, float *out) {
    uint64_t count = (uint64_t)d->count, at = data_order(seed, n / count, n % count, count);
    if (!d->at)
        return draw(1, at, out);
    size_t pixels = (size_t)(d->height * d->width);
    const uint8_t *bytes = bytes_read(ctx, scratch, d, at * pixels, pixels);
    for (size_t i = 0; i < pixels; i++)
        out[i] = (float)bytes[i] / 255.0f;
    return d->labels[at];
}
