// SPDX-License-Identifier: Apache-2.0
// folder.c — a folder of folders of PNG images: each inner one is a class, in the order of their names.
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/file.h"
#include "train/data.h"
#include "train/png.h"

#define FILES_MAX 1000000
#define CLASSES_MAX 256

static int by_name(const void *x, const void *y) { return strcmp(*(char *const *)x, *(char *const *)y); }

// Names in a folder, sorted; not those that begin with a dot. Raises IO.
static char **names_list(Ctx *ctx, Arena *a, const char *path, size_t *count) {
    DIR *d = opendir(path);
    int err = d ? 0 : errno;
    char *text = NULL; // not the arena's: the folder is open
    size_t n = 0, bytes = 0, cap = 0;
    for (struct dirent *e; d && (e = readdir(d)) && n < FILES_MAX;) {
        size_t more = strlen(e->d_name) + 1;
        if (e->d_name[0] == '.')
            continue;
        char *grown = bytes + more <= cap ? text : realloc(text, cap = 2 * (cap + more));
        if (!grown)
            break;
        text = grown;
        memcpy(text + bytes, e->d_name, more);
        bytes += more, n++;
    }
    if (d)
        closedir(d);
    char *all = bytes ? arena_dup(a, text, bytes) : NULL;
    free(text);
    if (err)
        ctx_fail(ctx, OTRN_IO, (Place){.file = path}, "cannot read the folder: %s", strerror(err));
    char **names = ARENA_NEWN(a, char *, n + 1);
    for (size_t i = 0; i < n; i++, all += strlen(all) + 1)
        names[i] = all;
    if (n)
        qsort(names, n, sizeof *names, by_name);
    *count = n;
    return names;
}

typedef struct Images {
    Buf pixels, labels;
    uint32_t print;
} Images;

static void image_add(Ctx *ctx, const char *path, uint8_t label, Data *d, Images *all) {
    Arena scratch;
    jmp_buf jb, *outer = ctx->on_fail;
    volatile bool good = false;
    arena_init(&scratch, ctx);
    if (CTX_TRY(ctx, jb)) {
        size_t size;
        Png png;
        const uint8_t *bytes = file_read(ctx, &scratch, path, &size);
        png_parse(ctx, &scratch, path, bytes, size, &png);
        if (d->count && (png.width != d->width || png.height != d->height)) {
            ctx_hint(ctx, "all images must have one size");
            ctx_fail(ctx, OTRN_ARGUMENT, (Place){.file = path}, "%u x %u, and the ones before are %lld x %lld", png.width, png.height,
                     (long long)d->width, (long long)d->height);
        }
        d->width = png.width, d->height = png.height, d->count++;
        buf_put(&all->pixels, png.pixels, (size_t)png.width * png.height);
        put_u8(&all->labels, label);
        all->print = crc32c(all->print, bytes, size);
        good = true;
    }
    ctx->on_fail = outer;
    arena_fini(&scratch);
    if (!good)
        longjmp(*outer, 1);
}

bool data_is_folder(const char *path) {
    struct stat st;
    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

void data_folder(Ctx *ctx, Arena *a, const char *path, Data *d) {
    size_t classes, files;
    char **class = names_list(ctx, a, path, &classes);
    Images all = {.pixels = {.arena = a}, .labels = {.arena = a}};
    *d = (Data){.name = path, .images = true};
    for (size_t i = 0; i < classes; i++) {
        const char *inner = arena_printf(a, "%s/%s", path, class[i]);
        if (!data_is_folder(inner))
            continue;
        char **file = names_list(ctx, a, inner, &files);
        if (d->classes == CLASSES_MAX)
            ctx_fail(ctx, OTRN_ARGUMENT, (Place){.file = path}, "more than %d classes", CLASSES_MAX);
        size_t before = (size_t)d->count;
        for (size_t k = 0; k < files; k++)
            if (strlen(file[k]) > 4 && !strcmp(file[k] + strlen(file[k]) - 4, ".png"))
                image_add(ctx, arena_printf(a, "%s/%s", inner, file[k]), (uint8_t)d->classes, d, &all);
        d->classes += (size_t)d->count > before;
    }
    if (!d->count) {
        ctx_hint(ctx, "a folder for --data has one for each class, with PNG files: DIR/cat/1.png, DIR/dog/1.png");
        ctx_fail(ctx, OTRN_IO, (Place){.file = path}, "cannot read the data: no folder of PNG files is in it");
    }
    d->at = all.pixels.at, d->labels = all.labels.at, d->print = all.print;
}
