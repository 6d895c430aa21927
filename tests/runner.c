// SPDX-License-Identifier: Apache-2.0
// runner.c — runs the tests: unit test programs and text tests, all CPUs, nothing but libc.
//
//   runner [-b BUILD] [-T PATTERN] [-j JOBS] [-u] [PROGRAM…]      from the project's root
//
// A program is a test that passes with exit status 0; lines `ok NAME`, `FAIL NAME: why` and `skipped …`
// are counted as cases. A text test is any file under tests/ with comment lines (//, # or ;) among:
//
//   run: COMMAND       for sh; %s this file, %S its folder, %t a private empty folder, %% a percent
//                      sign; otrn is the one just built. Several run lines run in order; all but the
//                      last must succeed.
//   expect: TEXT       occurs in the combined output, after the expectation before it
//   expect-not: TEXT   occurs nowhere in it
//   status: N          exit status of the last run line, 0 when not said
//   golden: FILE       stdout equals this file beside the test; -u (make bless) rewrites it
//
// Output that begins a line with `skipped` counts as skipped. Each test is a process of its own, in
// a process group that is ended after TEST_SECONDS. The last line is `N passed, N failed`.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEST_SECONDS 300
#define SHOW_LINES 30 // of a failing test's output
#define MAX_JOBS 256

typedef struct Test {
    char *name, *path;
    bool program;
} Test;

typedef struct Suite {
    Test *tests;
    size_t ntests;
    const char *pattern;
    char *build, *tmp; // absolute paths
    bool bless;
} Suite;

typedef struct Counts {
    int passed, failed, skipped;
} Counts;

_Noreturn static void die(const char *what, const char *name) {
    fprintf(stderr, "runner: %s %s: %s\n", what, name, strerror(errno));
    exit(2);
}

static char *format(const char *fmt, ...) {
    char *s;
    va_list ap;
    va_start(ap, fmt);
    int n = vasprintf(&s, fmt, ap);
    va_end(ap);
    if (n < 0)
        die("format", fmt);
    return s;
}

static char *slurp(const char *path, size_t *size) { // NUL-terminated; NULL when it cannot be read
    FILE *f = fopen(path, "rb");
    char *at = NULL;
    size_t n = 0, cap = 0, got;
    if (!f)
        return NULL;
    do {
        if (cap - n < 4096 && !(at = realloc(at, cap = cap * 2 + 8192)))
            die("read", path);
        n += got = fread(at + n, 1, cap - n - 1, f);
    } while (got);
    bool bad = ferror(f) != 0;
    fclose(f);
    if (bad) {
        free(at);
        return NULL;
    }
    at[n] = 0;
    if (size)
        *size = n;
    return at;
}

// --- the directives of a text test ----------------------------------------------------------------

// The next directive at or after *at: its text (a copy), with *key set; NULL at the end.
static char *directive_next(const char **at, const char **key) {
    static const char *const keys[] = {"run:", "expect:", "expect-not:", "status:", "golden:"};
    while (**at) {
        const char *line = *at, *end = line + strcspn(line, "\n");
        *at = end + (*end == '\n');
        line += strspn(line, " \t");
        size_t mark = !strncmp(line, "//", 2) ? 2 : strchr("#;", *line) && *line ? 1 : 0;
        if (!mark)
            continue;
        line += mark;
        line += strspn(line, " \t");
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
            size_t n = strlen(keys[k]);
            if (strncmp(line, keys[k], n) != 0 || line + n > end)
                continue;
            line += n;
            line += *line == ' ';
            while (end > line && strchr(" \t\r", end[-1]))
                end--;
            *key = keys[k];
            return strndup(line, (size_t)(end - line));
        }
    }
    return NULL;
}

static bool has_run(const char *text) {
    const char *key;
    for (char *d; (d = directive_next(&text, &key)); free(d))
        if (!strcmp(key, "run:")) {
            free(d);
            return true;
        }
    return false;
}

static char *folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? strndup(path, (size_t)(slash - path)) : strdup(".");
}

static char *substitute(const char *command, const char *path, const char *tmp) {
    char *folder = folder_of(path), *out = strdup("");
    for (const char *c = command; *c; c++) {
        char one[2] = {*c, 0};
        const char *piece = one;
        if (*c == '%' && c[1] && strchr("sSt%", c[1])) {
            c++;
            piece = *c == 's' ? path : *c == 'S' ? folder : *c == 't' ? tmp : "%";
        }
        char *longer = format("%s%s", out, piece);
        free(out);
        out = longer;
    }
    free(folder);
    return out;
}

// --- one test, in a child process; the report goes to `rep` ---------------------------------------

static int shell(const char *command, const char *out_path, const char *err_path) {
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); // an interrupted run leaves nothing behind
        int in = open("/dev/null", O_RDONLY);
        int out = open(out_path, O_WRONLY | O_CREAT | O_APPEND, 0666);
        int err = err_path ? open(err_path, O_WRONLY | O_CREAT | O_APPEND, 0666) : out;
        if (in < 0 || out < 0 || err < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
            _exit(127);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return 127;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void show(FILE *rep, const char *title, const char *text) {
    fprintf(rep, "  %s:\n", title);
    int lines = 0;
    for (const char *at = text; *at && lines < SHOW_LINES; lines++) {
        int n = (int)strcspn(at, "\n");
        fprintf(rep, "  | %.*s\n", n, at);
        at += n + (at[n] == '\n');
    }
    if (lines == SHOW_LINES)
        fprintf(rep, "  | …\n");
}

static bool line_starts(const char *text, const char *word) {
    size_t n = strlen(word);
    for (const char *at = text; at && *at; at = strchr(at, '\n'), at += at != NULL)
        if (!strncmp(at, word, n))
            return true;
    return false;
}

static bool golden_check(const Suite *s, FILE *rep, const Test *t, const char *file,
                         const char *out_path) {
    char *folder = folder_of(t->path), *path = format("%s/%s", folder, file);
    size_t have_n = 0, want_n = 0;
    char *have = slurp(out_path, &have_n), *want = slurp(path, &want_n);
    bool same = have && want && have_n == want_n && !memcmp(have, want, have_n);
    if (!same && s->bless && have) {
        FILE *f = fopen(path, "wb");
        same = f && fwrite(have, 1, have_n, f) == have_n;
        same = f && fclose(f) == 0 && same;
        printf("blessed %s\n", path);
        fflush(stdout);
    }
    if (!same) {
        char *cmd = format("diff -u '%s' '%s' | tail -n +3", path, out_path);
        char *diff_path = format("%s.diff", out_path);
        shell(cmd, diff_path, NULL);
        char *diff = slurp(diff_path, NULL);
        fprintf(rep, "  stdout differs from %s (make bless T=%s accepts it)\n", path, t->name);
        show(rep, "difference", diff ? diff : "");
        free(diff), free(diff_path), free(cmd);
    }
    free(have), free(want), free(path), free(folder);
    return same;
}

// Runs the run lines. Returns the last status, or -1 when an earlier one failed (reported).
static int runs_do(FILE *rep, const Test *t, const char *text, const char *tmp, const char *out,
                   const char *err) {
    int status = 0;
    const char *key;
    char *before = NULL;
    for (char *d; (d = directive_next(&text, &key)); free(d)) {
        if (strcmp(key, "run:") != 0)
            continue;
        if (status != 0) {
            fprintf(rep, "  exit status %d from: %s\n", status, before);
            free(before), free(d);
            return -1;
        }
        free(before);
        before = substitute(d, t->path, tmp);
        status = shell(before, out, err);
    }
    free(before);
    return status;
}

// Holds the output against expect, expect-not, status and golden lines.
static bool expectations_check(const Suite *s, FILE *rep, const Test *t, const char *text,
                               const char *all, const char *out_path, int status) {
    const char *key, *from = all;
    int want_status = 0;
    bool ok = true;
    for (char *d; (d = directive_next(&text, &key)); free(d)) {
        if (!strcmp(key, "status:")) {
            want_status = atoi(d);
        } else if (!strcmp(key, "golden:")) {
            ok &= golden_check(s, rep, t, d, out_path);
        } else if (!strcmp(key, "expect-not:") && strstr(all, d)) {
            fprintf(rep, "  occurs: %s\n", d);
            ok = false;
        } else if (!strcmp(key, "expect:")) {
            const char *hit = strstr(from, d);
            if (hit)
                from = hit + strlen(d);
            else
                fprintf(rep, strstr(all, d) ? "  only earlier: %s\n" : "  missing: %s\n", d), ok = false;
        }
    }
    if (status != want_status) {
        fprintf(rep, "  exit status %d, not %d\n", status, want_status);
        ok = false;
    }
    return ok;
}

static Counts text_test(const Suite *s, FILE *rep, const Test *t, const char *tmp) {
    char *text = slurp(t->path, NULL);
    if (!text)
        die("read", t->path);
    const char *key, *at = text;
    bool golden = false;
    for (char *d; (d = directive_next(&at, &key)); free(d))
        golden |= !strcmp(key, "golden:");
    char *out_path = format("%s.out", tmp), *err_path = format("%s.err", tmp);
    int status = runs_do(rep, t, text, tmp, out_path, golden ? err_path : NULL);
    char *out = slurp(out_path, NULL), *err = golden ? slurp(err_path, NULL) : NULL;
    char *all = format("%s%s", out ? out : "", err ? err : "");
    Counts c = {0};
    bool ok = status >= 0 && expectations_check(s, rep, t, text, all, out_path, status);
    if (status == 0 && line_starts(all, "skipped"))
        c.skipped = 1;
    else if (ok)
        c.passed = 1;
    else
        c.failed = 1, show(rep, "output", all);
    free(text), free(out_path), free(err_path), free(out), free(err), free(all);
    return c;
}

static Counts program_test(FILE *rep, const Test *t, const char *tmp) {
    char *out_path = format("%s.out", tmp), *cmd = format("exec '%s'", t->path);
    int status = shell(cmd, out_path, NULL);
    char *out = slurp(out_path, NULL);
    Counts c = {0};
    for (const char *at = out ? out : ""; *at;) {
        int n = (int)strcspn(at, "\n");
        c.passed += !strncmp(at, "ok ", 3);
        c.skipped += !strncmp(at, "skipped", 7);
        if (!strncmp(at, "FAIL", 4)) {
            c.failed++;
            fprintf(rep, "  %.*s\n", n, at);
        }
        at += n + (at[n] == '\n');
    }
    if (status != 0 && !c.failed) {
        fprintf(rep, "  exit status %d\n", status);
        show(rep, "output", out && strlen(out) > 4000 ? out + strlen(out) - 4000 : out ? out : "");
        c.failed = 1;
    }
    if (c.failed && status == 0)
        fprintf(rep, "  reported failures but exit status 0\n");
    if (!c.passed && !c.failed && !c.skipped)
        c.passed = 1;
    free(out), free(out_path), free(cmd);
    return c;
}

// --- the suite -------------------------------------------------------------------------------------

static bool wanted(const Suite *s, const char *name) {
    if (!s->pattern || !*s->pattern || strstr(name, s->pattern))
        return true;
    return fnmatch(s->pattern, name, 0) == 0;
}

static void test_add(Suite *s, const char *name, const char *path, bool program) {
    if (!wanted(s, name))
        return;
    s->tests = realloc(s->tests, (s->ntests + 1) * sizeof *s->tests);
    if (!s->tests)
        die("memory", name);
    s->tests[s->ntests++] = (Test){strdup(name), strdup(path), program};
}

static Suite *walk_suite; // nftw hands its callback no argument

static int walk(const char *path, const struct stat *st, int kind, struct FTW *ftw) {
    const char *base = path + ftw->base;
    if (kind == FTW_D && ftw->level == 1 && (!strcmp(base, "unit") || !strcmp(base, "python") ||
                                             !strcmp(base, "fuzz")))
        return FTW_SKIP_SUBTREE;
    if (kind == FTW_D && ftw->level == 2 && !strcmp(base, "runner")) // the suite of runner.test
        return FTW_SKIP_SUBTREE;
    if (kind == FTW_D && (*base == '.' || !strcmp(base, "__pycache__")))
        return FTW_SKIP_SUBTREE;
    if (kind != FTW_F || ftw->level < 2 || st->st_size > (1 << 20))
        return FTW_CONTINUE;
    char *text = slurp(path, NULL);
    if (text && has_run(text))
        test_add(walk_suite, path + strlen("tests/"), path, false);
    free(text);
    return FTW_CONTINUE;
}

static int by_name(const void *a, const void *b) {
    const Test *x = a, *y = b; // programs first: they run longest
    return x->program != y->program ? y->program - x->program : strcmp(x->name, y->name);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw) {
    (void)st, (void)kind, (void)ftw;
    return remove(path);
}

_Noreturn static void child(const Suite *s, size_t i) {
    const Test *t = &s->tests[i];
    char *tmp = format("%s/%zu", s->tmp, i), *rep_path = format("%s.rep", tmp);
    char *cache = format("%s.cache", tmp);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGALRM, SIG_DFL);
    alarm(TEST_SECONDS);
    FILE *rep = fopen(rep_path, "w");
    if (!rep || mkdir(tmp, 0777) != 0)
        die("make", tmp);
    setenv("OTRN_CACHE_DIR", cache, 1);
    setenv("OTRN_TEST_TMP", tmp, 1);
    Counts c = t->program ? program_test(rep, t, tmp) : text_test(s, rep, t, tmp);
    fprintf(rep, "\n%d %d %d\n", c.passed, c.failed, c.skipped);
    _exit(fclose(rep) == 0 ? 0 : 2);
}

// Prints the report of a finished test when it failed and adds up its counts.
static void collect(const Suite *s, size_t i, int status, Counts *sum) {
    char *rep_path = format("%s/%zu.rep", s->tmp, i), *rep = slurp(rep_path, NULL);
    char *tail = rep ? strrchr(rep, '\n') : NULL;
    Counts c = {0, 1, 0};
    if (tail && tail > rep && status == 0) {
        *tail = 0;
        tail = strrchr(rep, '\n');
        if (!tail || sscanf(tail, "%d %d %d", &c.passed, &c.failed, &c.skipped) != 3)
            c = (Counts){0, 1, 0};
        else
            *tail = 0;
    }
    if (c.failed) {
        printf("FAIL %s\n%s", s->tests[i].name, rep ? rep : "");
        if (status != 0)
            printf(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? "  took more than %d s\n"
                                                                      : "  broke off (%d)\n",
                   WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? TEST_SECONDS : status);
        fflush(stdout);
    }
    sum->passed += c.passed, sum->failed += c.failed, sum->skipped += c.skipped;
    free(rep), free(rep_path);
}

static Counts suite_run(const Suite *s, int jobs) {
    pid_t pids[MAX_JOBS] = {0};
    size_t which[MAX_JOBS], next = 0;
    int running = 0;
    Counts sum = {0};
    while (next < s->ntests || running > 0) {
        for (int j = 0; j < jobs && next < s->ntests; j++) {
            if (pids[j])
                continue;
            which[j] = next;
            fflush(stdout);
            pids[j] = fork();
            if (pids[j] == 0)
                child(s, next);
            if (pids[j] < 0)
                die("fork", s->tests[next].name);
            setpgid(pids[j], pids[j]);
            next++, running++;
        }
        int status;
        pid_t pid = waitpid(-1, &status, 0);
        for (int j = 0; j < jobs; j++)
            if (pid > 0 && pids[j] == pid) {
                kill(-pid, SIGKILL); // whatever the test left behind in its group
                pids[j] = 0, running--;
                collect(s, which[j], status, &sum);
            }
    }
    return sum;
}

static int cpu_count(void) {
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n < 1 ? 1 : n > MAX_JOBS ? MAX_JOBS : n;
}

// Tests see the otrn just built and none of the user's own settings.
static void environment_set(const Suite *s) {
    extern char **environ;
    for (char **e = environ; *e;) {
        if (!strncmp(*e, "OTRN_", 5) || !strncmp(*e, "OPENTRN_", 8)) {
            char *name = strndup(*e, strcspn(*e, "="));
            unsetenv(name);
            free(name);
            e = environ;
        } else {
            e++;
        }
    }
    const char *path = getenv("PATH");
    char *longer = format("%s:%s", s->build, path ? path : "/usr/bin:/bin");
    setenv("PATH", longer, 1);
    setenv("LC_ALL", "C", 1);
    free(longer);
}

static void suite_fini(Suite *s) {
    for (size_t i = 0; i < s->ntests; i++)
        free(s->tests[i].name), free(s->tests[i].path);
    free(s->tests), free(s->build), free(s->tmp);
}

int main(int argc, char **argv) {
    Suite s = {0};
    const char *build = "build", *tmp_root = getenv("TMPDIR");
    int jobs = cpu_count();
    for (int opt; (opt = getopt(argc, argv, "b:T:j:u")) != -1;) {
        if (opt == 'b')
            build = optarg;
        else if (opt == 'T')
            s.pattern = optarg;
        else if (opt == 'j')
            jobs = atoi(optarg) < 1 ? 1 : atoi(optarg) > MAX_JOBS ? MAX_JOBS : atoi(optarg);
        else if (opt == 'u')
            s.bless = true;
        else
            return 2;
    }
    if (!(s.build = realpath(build, NULL)))
        die("find", build);
    s.tmp = format("%s/otrn-check.XXXXXX", tmp_root && *tmp_root ? tmp_root : "/tmp");
    if (!mkdtemp(s.tmp))
        die("make", s.tmp);
    for (int i = optind; i < argc; i++) {
        const char *name = argv[i];
        if (!strncmp(name, build, strlen(build)))
            name += strlen(build) + 1;
        char *path = realpath(argv[i], NULL);
        test_add(&s, !strncmp(name, "tests/", 6) ? name + 6 : name, path ? path : argv[i], true);
        free(path);
    }
    walk_suite = &s;
    nftw("tests", walk, 16, FTW_PHYS | FTW_ACTIONRETVAL);
    if (s.ntests)
        qsort(s.tests, s.ntests, sizeof *s.tests, by_name);
    environment_set(&s);
    Counts sum = suite_run(&s, jobs);
    nftw(s.tmp, remove_one, 16, FTW_PHYS | FTW_DEPTH);
    if (!s.ntests)
        printf("no test matches '%s'\n", s.pattern ? s.pattern : "");
    printf("%d passed, %d failed", sum.passed, sum.failed);
    printf(sum.skipped ? ", %d skipped\n" : "\n", sum.skipped);
    bool bad = sum.failed != 0 || s.ntests == 0;
    suite_fini(&s);
    return bad;
}
