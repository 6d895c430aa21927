// SPDX-License-Identifier: Apache-2.0
// errors.c — the nearest published steps. A program tells its chip, its machines and the type of its products; python/opentrn/_predict/errors.py,
// which knows the model too, weighs more. Chips with a compiler here have the errors of steps composed of priced programs, others those of steps given
// as programs (the last column).
#include "mach/errors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "mach/chips.h"

#define NEAREST 3
#define OTHER_CHIP 2.0
#define OTHER_TYPE 1.0
#define DOUBLING 0.1 // of machines
enum { AT_ID, AT_CHIP, AT_TYPE = 3, AT_NODES = 6, AT_ERROR = 11, AT_PROGRAM, COLUMNS };

typedef struct Near {
    double far, error;
    const char *id;
} Near;

// A line's words; false for comments, the head and what has other columns.
static bool split(char *line, char **words) {
    int n = 0;
    for (char *at = line; n < COLUMNS; n++) {
        words[n] = at;
        at += strcspn(at, ",");
        if (!*at) {
            words[AT_PROGRAM] = n < AT_PROGRAM ? at : words[AT_PROGRAM]; // older tables end with the error
            return n >= AT_ERROR && *line != '#' && strcmp(words[AT_ID], "id");
        }
        *at++ = 0;
    }
    return false;
}

static int doublings(double n) {
    int count = 0;
    for (; n >= 2; n /= 2)
        count++;
    return count;
}

static int nearer(const void *a, const void *b) {
    const Near *x = a, *y = b;
    return x->far != y->far ? (x->far < y->far ? -1 : 1) : strcmp(x->id, y->id);
}

static char *table(Ctx *ctx, Arena *a, const char *dir) {
    const char *file = *dir ? arena_printf(a, "%s/errors.csv", dir) : "";
    struct stat st;
    size_t size;
    if (*file && !stat(file, &st))
        return (char *)file_read(ctx, a, file, &size);
    return arena_strndup(a, chip_errors, (size_t)(chip_errors_end - chip_errors));
}

// False: its error says nothing of this chip. What is compiled for one Trainium is like what is compiled for another; shares of the peaks are each
// accelerator's own.
static bool near_make(char **words, const char *chip, const char *type, uint32_t machines, Near *out) {
    bool ours = chip_text_find(chip), same = !strcmp(words[AT_CHIP], chip);
    const char *error = words[ours ? AT_ERROR : AT_PROGRAM], *as = !strcmp(words[AT_TYPE], "amp") ? "bf16" : words[AT_TYPE];
    if (!*error || (ours ? !chip_text_find(words[AT_CHIP]) : !same))
        return false;
    double far = (same ? 0 : OTHER_CHIP) + (*type && strcmp(as, type) ? OTHER_TYPE : 0);
    *out = (Near){far + DOUBLING * abs(doublings(atof(words[AT_NODES])) - doublings(machines)), fabs(atof(error)) / 100, words[AT_ID]};
    return true;
}

double errors_expected(Ctx *ctx, Arena *a, const char *dir, const char *chip, const char *type, uint32_t machines, const char **rows) {
    VEC(Near) all = {0};
    char *save = NULL, *words[COLUMNS];
    Near row;
    for (char *line = strtok_r(table(ctx, a, dir), "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        if (split(line, words) && near_make(words, chip, type, machines, &row))
            VEC_PUSH(a, &all, row);
    if (all.n)
        qsort(all.at, all.n, sizeof *all.at, nearer);
    *rows = "";
    double sum = 0;
    uint32_t n = 0;
    for (; n < all.n && (n < NEAREST || all.at[n].far <= all.at[NEAREST - 1].far); n++) { // all of those as near as the last
        sum += all.at[n].error;
        *rows = arena_printf(a, "%s%s\"%s\"", *rows, n ? ", " : "", all.at[n].id);
    }
    return n ? sum / n : -1;
}
