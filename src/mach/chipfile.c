// SPDX-License-Identifier: Apache-2.0
// chipfile.c — chip files in and out.
//
//   name = trn2
//   pe_clock = 2.4 GHz     # origin: documented; …
//
// Each key of CHIP_KEYS stands once, with its unit or a multiple of it. What is wrong is told with
// file, line and key; a key that is almost right gets a suggestion.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "mach/chipfile.h"
#include "mach/chips.h"

#define LINE_MAX_BYTES 1024

typedef struct KeyRow {
    const char *name, *unit;
    double min, max;
    size_t offset;
} KeyRow;

static const KeyRow key_rows[] = {
#define KEY(m, n, u, lo, hi) {n, u, lo, hi, offsetof(ChipFile, m)},
    CHIP_KEYS(KEY)
#undef KEY
};
#define KEY_COUNT (sizeof key_rows / sizeof *key_rows)

// Units that may stand for another: factor to the key's own.
static const struct {
    const char *given, *unit;
    double factor;
} unit_rows[] = {
    {"KiB", "B", 1024},     {"MiB", "B", 1048576},   {"GiB", "B", 1073741824.0},
    {"TB/s", "GB/s", 1000}, {"MB/s", "GB/s", 0.001}, {"us", "ns", 1000},
    {"MHz", "GHz", 0.001},  {"%", "ratio", 0.01},
};

typedef struct Parse {
    Ctx *ctx;
    ChipFile *out;
    const char *name;
    uint32_t line;
    uint32_t seen[KEY_COUNT]; // line a key stood on, 0 = not yet
    uint32_t name_line;
} Parse;

_Noreturn static void fail(Parse *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
_Noreturn static void fail(Parse *p, const char *fmt, ...) {
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    ctx_fail(p->ctx, OTRN_CHIP, (Place){p->name, p->line, p->line ? 1 : 0}, "%s", text);
}

// Edit distance, for short words: how many letters to change, add or drop.
static size_t distance(const char *a, const char *b) {
    size_t row[80], n = strlen(b);
    if (n >= 79 || strlen(a) >= 79)
        return SIZE_MAX;
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1]; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t up = row[j], best = diagonal + (a[i - 1] != b[j - 1]);
            best = up + 1 < best ? up + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            diagonal = up;
            row[j] = best;
        }
    }
    return row[n];
}

static void hint_nearest_key(Parse *p, const char *key) {
    size_t best = SIZE_MAX, at = 0;
    for (size_t i = 0; i < KEY_COUNT; i++) {
        size_t d = distance(key, key_rows[i].name);
        if (d < best)
            best = d, at = i;
    }
    if (best <= strlen(key) / 2)
        ctx_hint(p->ctx, "did you mean `%s`?", key_rows[at].name);
}

static char *trim(char *s) {
    s += strspn(s, " \t\r");
    size_t n = strlen(s);
    while (n && strchr(" \t\r", s[n - 1]))
        s[--n] = 0;
    return s;
}

static double unit_factor(Parse *p, const KeyRow *row, const char *unit) {
    if (!strcmp(unit, row->unit))
        return 1;
    for (size_t i = 0; i < sizeof unit_rows / sizeof *unit_rows; i++)
        if (!strcmp(unit, unit_rows[i].given) && !strcmp(row->unit, unit_rows[i].unit))
            return unit_rows[i].factor;
    fail(p, "key `%s`: %s%.40s%s where the unit is %s", row->name, *unit ? "`" : "nothing", unit,
         *unit ? "`" : "", row->unit);
}

static void parse_number(Parse *p, size_t key, char *value) {
    const KeyRow *row = &key_rows[key];
    size_t n = strcspn(value, " \t");
    char *unit = trim(value + n);
    double factor = unit_factor(p, row, unit);
    value[n] = 0;
    char *end;
    double v = strtod(value, &end);
    if (end == value || *end || !isfinite(v))
        fail(p, "key `%s`: `%.60s` is not a number", row->name, value);
    v *= factor;
    if (v < row->min || v > row->max)
        fail(p, "key `%s`: %g %s is outside %g…%g", row->name, v, row->unit, row->min, row->max);
    memcpy((char *)p->out + row->offset, &v, sizeof v);
}

static bool is_path(const char *target) {
    size_t n = strlen(target);
    return strchr(target, '/') || (n > 5 && !strcmp(target + n - 5, ".chip"));
}

static void parse_name(Parse *p, const char *value) {
    if (p->name_line)
        fail(p, "key `name` stands already on line %u", p->name_line);
    if (!*value || strlen(value) >= sizeof p->out->name)
        fail(p, "key `name`: a name has 1 to %zu characters", sizeof p->out->name - 1);
    if (is_path(value))
        fail(p, "key `name`: `%.60s` is a path", value);
    p->name_line = p->line;
    memcpy(p->out->name, value, strlen(value) + 1);
}

static void parse_line(Parse *p, char *line) {
    char *comment = strchr(line, '#');
    if (comment)
        *comment = 0;
    line = trim(line);
    if (!*line)
        return;
    char *equals = strchr(line, '=');
    if (!equals)
        fail(p, "expected `key = value unit`, not `%.60s`", line);
    *equals = 0;
    char *key = trim(line), *value = trim(equals + 1);
    if (!strcmp(key, "name")) {
        parse_name(p, value);
        return;
    }
    if (!strcmp(key, "instance")) {
        if (strlen(value) >= sizeof p->out->instance)
            fail(p, "key `instance`: a name has at most %zu characters", sizeof p->out->instance - 1);
        memcpy(p->out->instance, value, strlen(value) + 1);
        return;
    }
    if (!strcmp(key, "price_per_core_hour")) {
        ctx_hint(p->ctx, "prices stand in instances.table: name the machine here (`instance = …`), or use --price");
        fail(p, "key `price_per_core_hour` is no more");
    }
    size_t i = 0;
    while (i < KEY_COUNT && strcmp(key, key_rows[i].name))
        i++;
    if (i == KEY_COUNT) {
        hint_nearest_key(p, key);
        fail(p, "unknown key `%.60s`", key);
    }
    if (p->seen[i])
        fail(p, "key `%s` stands already on line %u", key, p->seen[i]);
    p->seen[i] = p->line;
    parse_number(p, i, value);
}

void chipfile_parse(Ctx *ctx, const char *name, const char *text, size_t size, ChipFile *out) {
    Parse p = {.ctx = ctx, .out = out, .name = name};
    *out = (ChipFile){.path = name, .cores_per_logical = 1};
    for (const char *at = text, *end = text + size; at < end;) {
        const char *nl = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((nl ? nl : end) - at);
        char line[LINE_MAX_BYTES];
        p.line++;
        if (n >= sizeof line)
            fail(&p, "a line of more than %d bytes", LINE_MAX_BYTES);
        if (memchr(at, 0, n))
            fail(&p, "a zero byte: this is not a text file");
        memcpy(line, at, n);
        line[n] = 0;
        parse_line(&p, line);
        at += n + (nl != NULL);
    }
    p.line = 0;
    for (size_t i = 0; i < KEY_COUNT; i++)
        if (!p.seen[i] && key_rows[i].offset != offsetof(ChipFile, cores_per_logical)) { // older files have one core
            ctx_hint(ctx, "add `%s = … %s`; the built-in files show usual values (otrn info chips)",
                     key_rows[i].name, key_rows[i].unit);
            fail(&p, "key `%s` is missing", key_rows[i].name);
        }
    if (!p.name_line)
        snprintf(out->name, sizeof out->name, "%s", "custom");
    if (out->sbuf_usable_bytes > out->sbuf_partition_bytes)
        fail(&p, "key `sbuf_usable_bytes` is larger than `sbuf_partition_bytes`");
}

static bool file_exists(const char *path) {
    FILE *f = fopen(path, "rb");
    if (f)
        fclose(f);
    return f != NULL;
}

static void load_path(Ctx *ctx, Arena *a, const char *path, ChipFile *out) {
    size_t size;
    const uint8_t *text = file_read(ctx, a, path, &size);
    const char *kept = arena_strndup(a, path, strlen(path));
    chipfile_parse(ctx, kept, (const char *)text, size, out);
}

static const char *names_list(Arena *a) {
    Buf list = {.arena = a};
    for (const char *const *n = chipfile_names(); *n; n++)
        buf_printf(&list, "%s%s", list.n ? ", " : "", *n);
    return buf_cstr(&list);
}

void chipfile_load(Ctx *ctx, Arena *a, const char *target, const char *dir, ChipFile *out) {
    if (is_path(target)) {
        load_path(ctx, a, target, out);
        return;
    }
    if (dir && *dir) {
        if (!file_exists(dir)) {
            ctx_hint(ctx, "--chips names a folder with copies of chip files or tables; without it the built-in ones are used");
            ctx_fail(ctx, OTRN_USAGE, NO_PLACE, "chips: there is no folder `%s`", dir);
        }
        const char *path = arena_printf(a, "%s/%s.chip", dir, target);
        if (file_exists(path)) {
            load_path(ctx, a, path, out);
            return;
        }
    }
    const ChipText *text = chip_text_find(target);
    if (!text) {
        ctx_hint(ctx, "built in: %s; or give the path of a chip file", names_list(a));
        ctx_fail(ctx, OTRN_CHIP, NO_PLACE, "unknown chip `%.60s`", target);
    }
    chipfile_parse(ctx, arena_printf(a, "%s.chip", target), text->begin,
                   (size_t)(text->end - text->begin), out);
    out->path = "(built in)";
}

void chipfile_named(Ctx *ctx, Arena *a, const char *name, const ChipFile *given, const char *dir, ChipFile *out) {
    if (given && !strcmp(given->name, name)) {
        *out = *given;
        return;
    }
    bool in_dir = dir && *dir && !is_path(name) && file_exists(arena_printf(a, "%s/%s.chip", dir, name));
    if (!in_dir && (is_path(name) || !chip_text_find(name))) {
        ctx_hint(ctx, "built in: %s; give that of another chip with --target=FILE", names_list(a));
        ctx_fail(ctx, OTRN_CHIP, NO_PLACE, "the program is for a chip `%.60s`, whose file is not at hand", name);
    }
    chipfile_load(ctx, a, name, dir, out);
}

IsaChip chipfile_isa(const ChipFile *c) {
    return (IsaChip){(int)c->generation, (uint32_t)c->sbuf_partition_bytes,
                     (uint32_t)c->psum_partition_bytes, (uint32_t)c->instructions_max};
}

void chipfile_print(const ChipFile *c, Buf *out) {
    buf_printf(out, "name = %s\n", c->name);
    if (*c->instance)
        buf_printf(out, "instance = %s\n", c->instance);
    for (size_t i = 0; i < KEY_COUNT; i++) {
        double v;
        memcpy(&v, (const char *)c + key_rows[i].offset, sizeof v);
        char number[32]; // shortest form that reads back the same
        for (int digits = 6; digits <= 17; digits++) {
            snprintf(number, sizeof number, "%.*g", digits, v);
            if (strtod(number, NULL) == v)
                break;
        }
        buf_printf(out, "%s = %s %s\n", key_rows[i].name, number, key_rows[i].unit);
    }
}

void chipfile_put(const ChipFile *c, Buf *out) {
    buf_put(out, c->name, strlen(c->name) + 1);
    for (size_t i = 0; i < KEY_COUNT; i++)
        buf_put(out, (const char *)c + key_rows[i].offset, sizeof(double));
}
