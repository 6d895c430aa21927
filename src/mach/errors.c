// SPDX-License-Identifier: Apache-2.0
// errors.c — the nearest published steps. A program tells its chip and machines; python/opentrn/_predict/errors.py, which knows
// the model too, weighs more.
#include "mach/errors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "mach/chips.h"

#define NEAREST 3
#define OTHER_CHIP 2.0
#define DOUBLING 0.1 // of machines
enum { AT_ID, AT_CHIP, AT_NODES = 6, AT_ERROR = 11, COLUMNS };

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
        if (!*at)
            return n + 1 == COLUMNS && *line != '#' && strcmp(words[AT_ID], "id");
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

static void put(Near *best, Near v) {
    for (int i = 0; i < NEAREST; i++)
        if (v.far < best[i].far) {
            Near moved = best[i];
            best[i] = v;
            v = moved;
        }
}

static char *table(Ctx *ctx, Arena *a, const char *dir) {
    const char *file = *dir ? arena_printf(a, "%s/errors.csv", dir) : "";
    struct stat st;
    size_t size;
    if (*file && !stat(file, &st))
        return (char *)file_read(ctx, a, file, &size);
    return arena_strndup(a, chip_errors, (size_t)(chip_errors_end - chip_errors));
}

double errors_expected(Ctx *ctx, Arena *a, const char *dir, const char *chip, uint32_t machines, const char **rows) {
    Near best[NEAREST];
    for (int i = 0; i < NEAREST; i++)
        best[i] = (Near){.far = INFINITY};
    char *save = NULL, *words[COLUMNS];
    for (char *line = strtok_r(table(ctx, a, dir), "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        if (split(line, words) && chip_text_find(words[AT_CHIP])) { // others are priced by roofs, not by a compiler
            double far = strcmp(words[AT_CHIP], chip) ? OTHER_CHIP : 0;
            int apart = doublings(atof(words[AT_NODES])) - doublings(machines);
            put(best, (Near){far + DOUBLING * abs(apart), fabs(atof(words[AT_ERROR])) / 100, words[AT_ID]});
        }
    *rows = "";
    double sum = 0;
    int n = 0;
    for (; n < NEAREST && best[n].id; n++) {
        sum += best[n].error;
        *rows = arena_printf(a, "%s%s\"%s\"", *rows, n ? ", " : "", best[n].id);
    }
    return n ? sum / n : -1;
}
