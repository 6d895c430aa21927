// SPDX-License-Identifier: Apache-2.0
// npy_test.c — npy files round trip for every type; broken ones are refused, whatever is broken.
#include "base/npy.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "unit.h"

// A version-1 file with this header and `data_bytes` bytes counting up from 1; returns its size.
static size_t make(uint8_t *out, const char *header, size_t data_bytes) {
    size_t n = strlen(header);
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (uint8_t)n, out[9] = (uint8_t)(n >> 8);
    memcpy(out + 10, header, n);
    for (size_t i = 0; i < data_bytes; i++)
        out[10 + n + i] = (uint8_t)(i + 1);
    return 10 + n + data_bytes;
}

static otrn_status parse(Ctx *ctx, Arena *a, const void *bytes, size_t size, Npy *out) {
    jmp_buf jb;
    memset(&ctx->err, 0, sizeof ctx->err);
    if (CTX_TRY(ctx, jb)) {
        npy_parse(ctx, a, "t.npy", bytes, size, out);
        return OTRN_OK;
    }
    return ctx->err.code;
}

static void test_forms(Ctx *ctx, Arena *a) {
    static const struct {
        const char *label, *header;
        size_t data_bytes;
        otrn_status want;
    } cases[] = {
        {"plain", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }\n", 8, OTRN_OK},
        {"scalar", "{'descr': '<f8', 'fortran_order': False, 'shape': ()}", 8, OTRN_OK},
        {"other-order", "{\"shape\":(3,),\"fortran_order\":True,\"descr\":\"|u1\"}", 3, OTRN_OK},
        {"python2", "{'descr': '<i2', 'fortran_order': False, 'shape': (2L, 3L), }", 12, OTRN_OK},
        {"void", "{'descr': '<V2', 'fortran_order': False, 'shape': (2,), }", 4, OTRN_OK},
        {"empty", "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 9999999999), }", 0, OTRN_OK},
        {"short", "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 7, OTRN_PARSE},
        {"long", "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 9, OTRN_PARSE},
        {"huge", "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,), }", 0,
         OTRN_PARSE},
        {"huge2", "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", 0,
         OTRN_PARSE},
        {"huge3", "{'descr': '<f4', 'fortran_order': False, 'shape': (8589934592, 8589934592), }", 0,
         OTRN_PARSE},
        {"negative", "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", 0, OTRN_PARSE},
        {"unicode", "{'descr': '<U4', 'fortran_order': False, 'shape': (1,), }", 16, OTRN_PARSE},
        {"record", "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", 4,
         OTRN_PARSE},
        {"no-shape", "{'descr': '<f4', 'fortran_order': False, }", 4, OTRN_PARSE},
        {"extra-key", "{'descr': '<f4', 'fortran_order': False, 'shape': (), 'x': 1}", 4, OTRN_PARSE},
        {"no-end", "{'descr': '<f4', 'fortran_order': False, 'shape': (1, ", 4, OTRN_PARSE},
        {"nothing", "", 0, OTRN_PARSE},
        {"rank33", "{'descr': '|u1', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
                   "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1), }",
         1, OTRN_PARSE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t bytes[512];
        char label[64];
        Npy npy;
        size_t n = make(bytes, cases[i].header, cases[i].data_bytes);
        snprintf(label, sizeof label, "form/%s", cases[i].label);
        expect(parse(ctx, a, bytes, n, &npy) == cases[i].want, label, ctx->err.text);
    }
}

static void test_order(Ctx *ctx, Arena *a) {
    uint8_t bytes[256];
    Npy npy;
    size_t n = make(bytes, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", 6);
    otrn_status s = parse(ctx, a, bytes, n, &npy);
    expect(s == OTRN_OK && !memcmp(npy.data, "\1\3\5\2\4\6", 6), "order/fortran", "wrong order");
    n = make(bytes, "{'descr': '>u2', 'fortran_order': False, 'shape': (2,), }", 4);
    s = parse(ctx, a, bytes, n, &npy);
    expect(s == OTRN_OK && npy.dtype == DT_UI16 && !memcmp(npy.data, "\2\1\4\3", 4),
           "order/big-endian", "bytes not swapped");
    n = make(bytes, "{'descr': '>c8', 'fortran_order': False, 'shape': (1,), }", 8);
    s = parse(ctx, a, bytes, n, &npy);
    expect(s == OTRN_OK && !memcmp(npy.data, "\4\3\2\1\10\7\6\5", 8), "order/complex",
           "real and imaginary part changed places");
    n = make(bytes, "{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }", 3);
    s = parse(ctx, a, bytes, n, &npy);
    expect(s == OTRN_OK && !memcmp(npy.data, "\1\1\1", 3), "order/bool-is-0-or-1", "other bytes kept");
}

static void test_round_trip(Ctx *ctx, Arena *a, const char *dir) {
    static const int64_t dims[3] = {2, 3, 4};
    uint8_t data[24 * 16];
    bool ok = true;
    char path[256];
    snprintf(path, sizeof path, "%s/t.npy", dir);
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 7 + 1);
    for (int d = DT_I1; d <= DT_INDEX; d++) {
        jmp_buf jb;
        if (d == DT_I1)
            memset(data, 1, 24);
        for (int rank = 0; rank <= 3; rank++) {
            Npy npy;
            if (!CTX_TRY(ctx, jb)) {
                ok = false;
                break;
            }
            npy_write(ctx, path, d, rank, dims, data);
            npy_read(ctx, a, path, &npy);
            ok &= npy.rank == rank && npy.elem_bytes == dtype_bytes(d);
            ok &= !memcmp(npy.dims, dims, (size_t)rank * sizeof *dims);
            ok &= !memcmp(npy.data, data, npy.bytes);
            ok &= npy.dtype == d || npy.dtype == DT_INVALID || d == DT_INDEX || d == DT_TF32;
        }
    }
    expect(ok, "file/round-trip-all-types", ctx->err.text);
}

// Every prefix of a file, and every single byte changed, either loads or is refused; nothing else.
static void test_damage(Ctx *ctx, Arena *a) {
    uint8_t bytes[256], copy[256];
    Npy npy;
    size_t n = make(bytes, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", 24);
    bool ok = true;
    for (size_t cut = 0; cut < n; cut++)
        ok &= parse(ctx, a, bytes, cut, &npy) != OTRN_OK;
    expect(ok, "damage/truncated", "a cut file was read");
    for (size_t at = 0; at < n; at++)
        for (int v = 0; v < 256; v++) {
            memcpy(copy, bytes, n);
            copy[at] = (uint8_t)v;
            if (parse(ctx, a, copy, n, &npy) == OTRN_OK)
                ok &= npy.bytes <= 24 && npy.rank <= OTRN_MAX_RANK;
        }
    expect(ok, "damage/one-byte", "a damaged file gave nonsense");
}

static int dir_count(const char *dir) {
    int n = 0;
    DIR *d = opendir(dir);
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n - 2;
}

static otrn_status write_file(Ctx *ctx, const char *path) {
    jmp_buf jb;
    if (CTX_TRY(ctx, jb)) {
        file_write(ctx, path, "abc", 3);
        return OTRN_OK;
    }
    return ctx->err.code;
}

static void test_files(Ctx *ctx, Arena *a, const char *dir) {
    char path[512], link[512];
    jmp_buf jb;
    snprintf(path, sizeof path, "%s/sub/dir/f", dir);
    expect(write_file(ctx, path) == OTRN_IO, "file/missing-folder", "written into nothing");
    snprintf(path, sizeof path, "%s/sub/dir", dir);
    if (CTX_TRY(ctx, jb))
        dir_make(ctx, path), dir_make(ctx, path);
    snprintf(path, sizeof path, "%s/sub/dir/f", dir);
    expect(write_file(ctx, path) == OTRN_OK, "file/make-folders", ctx->err.text);
    snprintf(link, sizeof link, "%s/sub/dir/link", dir);
    bool linked = symlink(path, link) == 0;
    struct stat st;
    expect(linked && write_file(ctx, link) == OTRN_OK && lstat(link, &st) == 0 &&
               S_ISLNK(st.st_mode),
           "file/link-is-kept", "the link was replaced");
    expect(write_file(ctx, "/dev/null") == OTRN_OK && stat("/dev/null", &st) == 0 &&
               S_ISCHR(st.st_mode),
           "file/device-is-kept", "/dev/null was replaced");
    expect(write_file(ctx, dir) == OTRN_IO, "file/folder-refused", "a folder was overwritten");
    if (access("/dev/full", W_OK) == 0)
        expect(write_file(ctx, "/dev/full") == OTRN_IO, "file/full", "a full disk went unnoticed");
    snprintf(link, sizeof link, "%s/sub/dir", dir);
    expect(dir_count(link) == 2, "file/no-leftovers", "a temporary file is left");
    size_t n = 0;
    if (CTX_TRY(ctx, jb))
        expect(!strcmp((char *)file_read(ctx, a, path, &n), "abc") && n == 3, "file/read", "differs");
    else
        expect(false, "file/read", ctx->err.text);
    if (CTX_TRY(ctx, jb)) {
        file_read(ctx, a, dir, &n);
        expect(false, "file/read-folder", "read");
    } else {
        expect(ctx->err.code == OTRN_IO && !strcmp(ctx->err.file, dir), "file/read-folder",
               ctx->err.text);
    }
}

int main(void) {
    Ctx ctx = {0};
    Arena a;
    arena_init(&a, &ctx);
    char dir[] = "/tmp/otrn_npy_XXXXXX";
    if (!mkdtemp(dir))
        return 1;
    test_forms(&ctx, &a);
    test_order(&ctx, &a);
    test_round_trip(&ctx, &a, dir);
    test_damage(&ctx, &a);
    test_files(&ctx, &a, dir);
    arena_fini(&a);
    char cmd[64];
    snprintf(cmd, sizeof cmd, "rm -rf '%s'", dir);
    return system(cmd) != 0 || failures != 0;
}
