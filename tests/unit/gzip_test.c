// SPDX-License-Identifier: Apache-2.0
// gzip_test.c — what gzip_put writes, `gzip -dc` reads back to the byte.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/gzip.h"
#include "unit.h"

static Ctx ctx;
static Arena arena;

static const char *round_trip(const uint8_t *bytes, size_t n, double *ratio) {
    Buf packed = {.arena = &arena};
    gzip_put(bytes, n, &packed);
    *ratio = n ? (double)packed.n / (double)n : 1;
    char path[] = "/tmp/otrn_gzip_XXXXXX", command[128];
    int fd = mkstemp(path);
    if (fd < 0 || write(fd, packed.at, packed.n) != (ssize_t)packed.n)
        return "cannot write a file";
    close(fd);
    snprintf(command, sizeof command, "gzip -dc < %s", path);
    FILE *f = popen(command, "r");
    uint8_t *back = arena_alloc(&arena, n + 16);
    size_t got = f ? fread(back, 1, n + 16, f) : 0;
    int status = f ? pclose(f) : 1;
    unlink(path);
    return status ? "gzip refuses it" : got != n || memcmp(back, bytes, n) ? "other bytes came back" : NULL;
}

int main(void) {
    jmp_buf jb;
    arena_init(&arena, &ctx);
    if (CTX_TRY(&ctx, jb)) {
        double ratio;
        uint64_t seed = 3;
        size_t n = 300000;
        uint8_t *bytes = arena_alloc(&arena, n);
        result("nothing", round_trip(bytes, 0, &ratio));
        for (size_t i = 0; i < n; i++)
            bytes[i] = (uint8_t)rng_next(&seed);
        result("random bytes", round_trip(bytes, n, &ratio));
        for (size_t i = 0; i < n; i++)
            bytes[i] = 'a';
        result("one letter", round_trip(bytes, n, &ratio));
        Buf text = {.arena = &arena};
        for (int i = 0; i < 9000; i++)
            buf_printf(&text, "{\"ph\":\"X\",\"pid\":1,\"ts\":%u.%03u,\"name\":\"matmul\"},\n", i * 7 + rng_below(&seed, 5),
                       rng_below(&seed, 1000));
        result("text that repeats itself", round_trip(text.at, text.n, &ratio));
        result("becomes small", ratio < 0.2 ? NULL : "it does not");
        for (size_t i = 0; i < n; i++) // long distances, short lengths
            bytes[i] = (uint8_t)(rng_below(&seed, 4) ? bytes[i > 32760 ? i - 32760 : 0] : rng_next(&seed));
        for (size_t cut = n - 20; cut <= n; cut++) {
            const char *why = round_trip(bytes, cut, &ratio);
            if (why || cut == n)
                result("far repetitions, any end", why);
            if (why)
                break;
        }
    } else {
        result("gzip", ctx.err.text);
    }
    arena_fini(&arena);
    return failures != 0;
}
