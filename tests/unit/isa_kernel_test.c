// SPDX-License-Identifier: Apache-2.0
// isa_kernel_test.c — runs every tests/isa/*.s and examples/kernels/*.s: a kernel with its initial and final memory.
//
//   # init x 1 2 3*4 -0.5       the .input x: numbers in order, V*N repeats one; `iota` counts from 0;
//                               the last number goes on to the end
//   # expect y 2 4 6            the .output y; numbers as above; `tol=1e-6` allows that relative error
//   # error words               the run (or the assembler) fails, and says these words
//
// Several lines for one tensor go on from each other. Every kernel runs once for each way of `ways`:
// host threads, every host kernel this machine has, with and without the host plan, watched, and priced just before. All must
// give the same bits. `isa_kernel_test NAME` runs the files whose name holds NAME.
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "artifact/artifact.h"
#include "base/file.h"
#include "otrn.h"
#include "tests/unit/run_sized.h"

static int failures;
static bool covered[ISA_OP_COUNT];

typedef struct Values { // of one tensor
    double *at;
    size_t n, cap;
    double tol;
    bool iota;
} Values;

typedef struct Test {
    Ctx ctx;
    Arena arena;
    const char *path, *text;
    size_t size;
    Artifact *art;
    Values *init, *expect; // per argument, per result
    const char *error;
    char why[600];
} Test;

static void fail(Test *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void fail(Test *t, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    if (!t->why[0])
        vsnprintf(t->why, sizeof t->why, fmt, ap);
    va_end(ap);
}

static void push(Values *v, double x) {
    if (v->n == v->cap)
        v->at = realloc(v->at, (v->cap = v->cap ? 2 * v->cap : 64) * sizeof *v->at);
    v->at[v->n++] = x;
}

static void values_parse(Test *t, Values *v, char *list) {
    for (char *word = strtok(list, " \t\r,"); word; word = strtok(NULL, " \t\r,")) {
        char *end;
        if (!strncmp(word, "tol=", 4)) {
            v->tol = atof(word + 4);
            continue;
        }
        if (!strcmp(word, "iota")) {
            v->iota = true;
            continue;
        }
        double x = strtod(word, &end);
        long times = *end == '*' ? strtol(end + 1, &end, 10) : 1;
        if (*end || end == word || times < 1 || times > 1 << 24) {
            fail(t, "`%s` is not a number", word);
            return;
        }
        while (times--)
            push(v, x);
    }
}

// "# init x …" and its kin; everything else is the kernel's.
static void line_parse(Test *t, char *line) {
    char kind[8], name[64];
    int used = 0;
    if (sscanf(line, "# %7s%n", kind, &used) != 1)
        return;
    if (!strcmp(kind, "error")) {
        while (line[used] == ' ')
            used++;
        t->error = arena_strndup(&t->arena, line + used, strlen(line + used));
        return;
    }
    bool init = !strcmp(kind, "init");
    int named = 0;
    if ((!init && strcmp(kind, "expect")) || sscanf(line + used, " %63s%n", name, &named) != 1)
        return;
    char *rest = line + used + named;
    uint32_t n = init ? t->art->nargs : t->art->nresults;
    const ArtValue *v = init ? t->art->args : t->art->results;
    for (uint32_t i = 0; i < n; i++)
        if (!strcmp(v[i].name, name)) {
            values_parse(t, init ? &t->init[i] : &t->expect[i], rest);
            return;
        }
    fail(t, "there is no %s `%s`", init ? ".input" : ".output", name);
}

static double value_at(const Values *v, size_t i) {
    return v->iota ? (double)i : i < v->n ? v->at[i] : v->n ? v->at[v->n - 1] : 0;
}

static void store(int dtype, uint8_t *p, double x) {
    if (dtype_is_float(dtype))
        dtype_from_f64(dtype, p, x);
    else
        dtype_from_i64(dtype, p, (int64_t)x);
}

static double fetch(int dtype, const uint8_t *p) {
    return dtype_is_float(dtype) ? dtype_to_f64(dtype, p) : (double)dtype_to_i64(dtype, p);
}

static void compare(Test *t, const ArtValue *v, const Values *want, const uint8_t *got) {
    size_t size = dtype_bytes(v->dtype);
    if (!want->n && !want->iota)
        return;
    if (want->n * size > v->bytes)
        fail(t, "%s: more values expected than it has", v->name);
    for (size_t i = 0; i < v->bytes / size; i++) {
        double w = value_at(want, i), g = fetch(v->dtype, got + i * size);
        bool same = w == g || (isnan(w) && isnan(g)) || fabs(w - g) <= want->tol * fabs(w);
        if (!same) {
            fail(t, "%s[%zu] is %.9g, not %.9g", v->name, i, g, w);
            return;
        }
    }
}

// Ways of running that may not change a bit. The first one is what the others are held against.
typedef struct Way {
    const char *threads, *host, *plan, *check;
    bool priced; // modelled time is asked for before the run
    otrn_env *env; // NULL: this host has no such kernels
} Way;
static Way ways[] = {
    {"1", "portable", "off", "off", false, NULL}, {"1", "portable", "on", "off", false, NULL},
    {"1", "avx2", "on", "off", false, NULL},      {"1", "avx512", "on", "off", false, NULL},
    {"1", "avx512bf16", "on", "off", false, NULL}, {"1", "amx", "on", "off", false, NULL},
    {"2", "portable", "off", "off", false, NULL},
    {"2", "auto", "on", "off", true, NULL},       {"1", "auto", "off", "on", false, NULL},
};
#define WAYS (sizeof ways / sizeof *ways)

static void ways_open(void) {
    for (size_t i = 0; i < WAYS; i++) {
        otrn_option options[] = {{"threads", ways[i].threads}, {"cache", "off"}, {"check", ways[i].check}, {"host", ways[i].host},
                                 {"plan", ways[i].plan}};
        otrn_error err = OTRN_ERROR_INIT;
        if (otrn_open(options, 5, &ways[i].env, &err) != OTRN_OK && err.code != OTRN_USAGE) {
            printf("FAIL %s\n", err.text);
            failures++;
        }
    }
}

static otrn_status execute(Test *t, const Way *way, void **args, void **results, otrn_error *err) {
    otrn_exe *exe = NULL;
    otrn_report report = OTRN_REPORT_INIT;
    otrn_status s = otrn_compile(way->env, t->text, t->size, t->path, &exe, err);
    if (s == OTRN_OK && way->priced)
        s = otrn_time(exe, NULL, &report, err);
    if (s == OTRN_OK)
        s = run_sized(exe, (const void *const *)args, results, err);
    otrn_exe_free(exe);
    return s;
}

static void **args_make(Test *t) {
    const Artifact *art = t->art;
    void **args = ARENA_NEWN(&t->arena, void *, art->nargs + 1);
    for (uint32_t i = 0; i < art->nargs; i++) {
        size_t size = dtype_bytes(art->args[i].dtype);
        args[i] = arena_zalloc(&t->arena, art->args[i].bytes + 64);
        for (size_t k = 0; k < art->args[i].bytes / size; k++)
            store(art->args[i].dtype, (uint8_t *)args[i] + k * size, value_at(&t->init[i], k));
    }
    return args;
}

static void **run_once(Test *t, const Way *way, void **first) {
    const Artifact *art = t->art;
    void **args = args_make(t), **results = ARENA_NEWN(&t->arena, void *, art->nresults + 1);
    for (uint32_t i = 0; i < art->nresults; i++)
        results[i] = arena_zalloc(&t->arena, art->results[i].bytes + 64);
    otrn_error err = OTRN_ERROR_INIT;
    otrn_status s = execute(t, way, args, results, &err);
    bool watched = !strcmp(way->check, "on");
    if (t->error && watched ? s == OTRN_OK || !strstr(err.text, t->error) : !t->error && s != OTRN_OK)
        fail(t, "%s%s", s == OTRN_OK ? "it ran, though it should not" : err.text, watched ? " (--check)" : "");
    if (s != OTRN_OK)
        return first;
    for (uint32_t i = 0; i < art->nresults; i++) {
        if (!first)
            compare(t, &art->results[i], &t->expect[i], results[i]);
        else if (memcmp(first[i], results[i], art->results[i].bytes))
            fail(t, "%s has other bits with threads=%s host=%s plan=%s", art->results[i].name, way->threads, way->host,
                 way->plan);
    }
    return first ? first : results;
}

static void note_covered(Test *t) {
    bool checks = t->error != NULL;
    for (uint32_t i = 0; i < t->art->nresults; i++)
        checks |= t->expect[i].n || t->expect[i].iota;
    for (uint32_t i = 0; i < t->art->ncode && checks; i++)
        covered[t->art->code[i].op] = true;
}

static void run_file(const char *path) {
    Test *t = calloc(1, sizeof *t);
    arena_init(&t->arena, &t->ctx);
    t->path = path;
    jmp_buf jb;
    if (CTX_TRY(&t->ctx, jb)) {
        char *text = (char *)file_read(&t->ctx, &t->arena, path, &t->size);
        t->text = text;
        t->art = artifact_parse(&t->ctx, &t->arena, path, text, t->size);
        t->init = ARENA_NEWN(&t->arena, Values, t->art->nargs + 1);
        t->expect = ARENA_NEWN(&t->arena, Values, t->art->nresults + 1);
        char *copy = arena_strndup(&t->arena, text, t->size);
        for (char *line = copy, *next; line && !t->why[0]; line = next) {
            next = strchr(line, '\n');
            if (next)
                *next++ = 0;
            line_parse(t, line);
        }
        void **first = NULL;
        for (size_t i = 0; i < WAYS && !t->why[0]; i++)
            if (ways[i].env)
                first = run_once(t, &ways[i], first);
        note_covered(t);
    } else {
        fail(t, "%s:%u: %s", t->ctx.err.file, t->ctx.err.line, t->ctx.err.text);
    }
    if (t->why[0])
        printf("FAIL %s: %s\n", path, t->why);
    failures += t->why[0] != 0;
    for (uint32_t i = 0; t->art && t->init && i < t->art->nargs; i++)
        free(t->init[i].at);
    for (uint32_t i = 0; t->art && t->expect && i < t->art->nresults; i++)
        free(t->expect[i].at);
    arena_fini(&t->arena);
    free(t);
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static int run_folder(const char *folder, const char *only) {
    DIR *dir = opendir(folder);
    char *names[512];
    int n = 0;
    for (struct dirent *e; dir && (e = readdir(dir)) && n < 512;) {
        size_t len = strlen(e->d_name);
        if (len < 3 || strcmp(e->d_name + len - 2, ".s") || (only && !strstr(e->d_name, only)))
            continue;
        names[n] = malloc(strlen(folder) + len + 2);
        sprintf(names[n++], "%s/%s", folder, e->d_name);
    }
    if (dir)
        closedir(dir);
    qsort(names, (size_t)n, sizeof *names, by_name);
    for (int i = 0; i < n; i++) {
        run_file(names[i]);
        free(names[i]);
    }
    return n;
}

int main(int argc, char **argv) {
    const char *only = argc > 1 ? argv[1] : NULL;
    ways_open();
    int n = run_folder(OTRN_SOURCE_DIR "/tests/isa", only) + run_folder(OTRN_SOURCE_DIR "/examples/kernels", only);
    int have = 0;
    for (int op = 0; op < ISA_OP_COUNT; op++)
        have += covered[op];
    printf("# %d of %d instructions have a kernel that tells their result\n", have, ISA_OP_COUNT);
    for (int op = 0; op < ISA_OP_COUNT && !only; op++)
        if (!covered[op]) {
            printf("FAIL %s: no kernel tells its result\n", isa_rows[op].name);
            failures++;
        }
    for (size_t i = 0; i < WAYS; i++)
        otrn_close(ways[i].env);
    if (!n || failures)
        printf("FAIL %d of %d kernels\n", failures, n);
    else
        printf("ok %d kernels\n", n);
    return !n || failures;
}
