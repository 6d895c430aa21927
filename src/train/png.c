// SPDX-License-Identifier: Apache-2.0
// png.c — PNG (ISO 15948) in: chunks, filters, samples of 1 to 16 bits, colours as their brightness.
#include "train/png.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/inflate.h"

enum { GREY = 0, COLOUR = 2, PALETTE = 3, GREY_ALPHA = 4, COLOUR_ALPHA = 6 };

typedef struct Head {
    uint32_t width, height, depth, colour, channels;
    const uint8_t *palette;
    uint32_t colours;
} Head;

static uint32_t big32(const uint8_t *p) { return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]; }

static void head_parse(Ctx *ctx, const char *name, const uint8_t *p, Head *h) {
    static const uint8_t channels[7] = {1, 0, 3, 1, 2, 0, 4};
    *h = (Head){.width = big32(p), .height = big32(p + 4), .depth = p[8], .colour = p[9]};
    h->channels = h->colour < 7 ? channels[h->colour] : 0;
    bool depth = h->depth == 8 || (h->depth == 16 && h->colour != PALETTE) || ((h->depth == 1 || h->depth == 2 || h->depth == 4) && h->channels == 1);
    if (!h->width || !h->height || h->width > PNG_SIDE_MAX || h->height > PNG_SIDE_MAX || !h->channels || !depth)
        ctx_fail(ctx, OTRN_PARSE, (Place){.file = name}, "a PNG file of %u x %u with %u bits and colours of kind %u, which we do not read", h->width,
                 h->height, h->depth, h->colour);
    if (p[12]) {
        ctx_hint(ctx, "save it without interlacing");
        ctx_fail(ctx, OTRN_UNSUPPORTED, (Place){.file = name}, "an interlaced PNG file");
    }
}

// The head, and all data one behind the other.
static Buf chunks_read(Ctx *ctx, Arena *a, const char *name, const uint8_t *p, size_t n, Head *h) {
    static const uint8_t magic[8] = {0x89, 'P', 'N', 'G', 13, 10, 26, 10};
    Buf data = {.arena = a};
    bool headed = false;
    if (n < 8 || memcmp(p, magic, 8))
        ctx_fail(ctx, OTRN_PARSE, (Place){.file = name}, "no PNG file");
    for (size_t at = 8; n - at >= 12;) {
        uint32_t size = big32(p + at);
        const uint8_t *in = p + at + 8;
        if (size > n - at - 12)
            break;
        if (!memcmp(p + at + 4, "IHDR", 4) && size == 13)
            head_parse(ctx, name, in, h), headed = true;
        else if (!memcmp(p + at + 4, "PLTE", 4) && headed)
            h->palette = in, h->colours = size / 3;
        else if (!memcmp(p + at + 4, "IDAT", 4) && headed)
            buf_put(&data, in, size);
        else if (!memcmp(p + at + 4, "IEND", 4) && headed)
            return data;
        at += 12 + (size_t)size;
    }
    ctx_fail(ctx, OTRN_PARSE, (Place){.file = name}, "a PNG file that ends too early");
}

static uint8_t paeth(int left, int up, int both) {
    int guess = left + up - both, a = abs(guess - left), b = abs(guess - up), c = abs(guess - both);
    return (uint8_t)(a <= b && a <= c ? left : b <= c ? up : both);
}

// One row, in place. False: there is no such filter.
static bool unfilter(uint8_t *row, const uint8_t *above, size_t bytes, size_t step, uint8_t filter) {
    for (size_t i = 0; i < bytes; i++) {
        uint8_t left = i >= step ? row[i - step] : 0, up = above ? above[i] : 0, both = above && i >= step ? above[i - step] : 0;
        uint8_t more = filter == 1 ? left : filter == 2 ? up : filter == 3 ? (uint8_t)((left + up) / 2) : filter == 4 ? paeth(left, up, both) : 0;
        row[i] = (uint8_t)(row[i] + more);
    }
    return filter <= 4;
}

static uint32_t sample(const Head *h, const uint8_t *row, size_t i) { // as a byte; of palettes the number itself
    if (h->depth == 8)
        return row[i];
    if (h->depth == 16)
        return row[2 * i];
    uint32_t v = row[i * h->depth / 8] >> (8 - h->depth - i * h->depth % 8) & ((1u << h->depth) - 1);
    return h->colour == PALETTE ? v : v * 255 / ((1u << h->depth) - 1);
}

static uint8_t brightness(uint32_t red, uint32_t green, uint32_t blue) { return (uint8_t)((77 * red + 150 * green + 29 * blue) >> 8); }

static uint8_t grey(const Head *h, const uint8_t *row, size_t x) {
    uint32_t v = sample(h, row, x * h->channels);
    if (h->colour == PALETTE)
        return v < h->colours ? brightness(h->palette[3 * v], h->palette[3 * v + 1], h->palette[3 * v + 2]) : 0;
    if (h->channels >= 3)
        return brightness(v, sample(h, row, x * h->channels + 1), sample(h, row, x * h->channels + 2));
    return (uint8_t)v;
}

void png_parse(Ctx *ctx, Arena *a, const char *name, const uint8_t *bytes, size_t size, Png *out) {
    Head h;
    Buf data = chunks_read(ctx, a, name, bytes, size, &h);
    size_t bits = (size_t)h.depth * h.channels, row = (h.width * bits + 7) / 8, step = bits < 8 ? 1 : bits / 8;
    uint8_t *all = arena_alloc(a, (row + 1) * h.height);
    if (!inflate_zlib(data.at, data.n, all, (row + 1) * h.height))
        ctx_fail(ctx, OTRN_PARSE, (Place){.file = name}, "its pixels are damaged");
    *out = (Png){h.width, h.height, arena_alloc(a, (size_t)h.width * h.height)};
    for (uint32_t y = 0; y < h.height; y++) {
        uint8_t *at = all + y * (row + 1);
        if (!unfilter(at + 1, y ? at - row : NULL, row, step, at[0]))
            ctx_fail(ctx, OTRN_PARSE, (Place){.file = name}, "row %u has a filter that there is not", y);
        for (uint32_t x = 0; x < h.width; x++)
            out->pixels[(size_t)y * h.width + x] = grey(&h, at + 1, x);
    }
}
