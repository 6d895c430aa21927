// SPDX-License-Identifier: Apache-2.0
// conformance.c — runs a folder of programs along every road and says what passed, per folder, and
// why not.
//
//   conformance [-j JOBS] [-s SECONDS] [-r ROAD] [-v] DIR    everything under DIR
//   conformance                              a test: a sample of ../shared/conformance
//
// Files are *.mlir (several programs each, separated by lines `// -----`), *.mlirbc and *.bc. A
// *.bc whose text lies beside it is compared with that text. Each program takes each road in a
// process of its own, so a crash or an endless loop is one failure. Failures are grouped by
// message, with digits ignored.
//
// Programs that upstream does not run itself stand in disabled.txt with their reason: they are run
// here too, but what they fail at is counted apart.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "roads.h"

#define CORPUS "../shared/conformance"
#define DISABLED "tests/conformance/disabled.txt"
#define SEPARATOR "// -----"
#define MAX_JOBS 256
#define LIMIT_SECONDS 60
#define SAMPLE_PROGRAMS 200
#define SAMPLE_SEED 20250101u
#define SHOW_PLACES 4 // of each group of failures
#define SLOW_SECONDS 5.0

typedef struct Unit {
    Program p;
    const char *folder;   // relative to the root; "." for the root itself
    const char *name;     // file's path relative to the root, "#2" appended for its second program
    const char *disabled; // upstream's reason, or NULL
} Unit;

typedef struct Job {
    uint32_t unit;
    Road road;
} Job;

typedef struct Suite {
    const char *root;
    Unit *units;
    uint32_t nunits;
    Job *jobs;
    uint32_t njobs;
    Outcome *outcomes; // per job, shared with the children
    int limit_seconds;
    bool verbose, only_road, is_sample;
    Road road;
    void **kept; // freed at the end
    size_t nkept;
} Suite;

static void *need(void *p) {
    if (p)
        return p;
    fprintf(stderr, "conformance: out of memory\n");
    exit(2);
}

// An array that doubles: room for one more after n.
static void *grown(void *at, size_t n, size_t bytes) {
    return (n & (n - 1)) == 0 ? need(realloc(at, (n ? n * 2 : 1) * bytes)) : at;
}

static void *keep(Suite *s, void *p) {
    s->kept = grown(s->kept, s->nkept, sizeof *s->kept);
    return s->kept[s->nkept++] = need(p);
}

static char *slurp(Suite *s, const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    if (!f) {
        fprintf(stderr, "conformance: %s: %s\n", path, strerror(errno));
        exit(2);
    }
    size_t n = 0, cap = 1 << 12, got;
    char *at = need(malloc(cap));
    while ((got = fread(at + n, 1, cap - n - 1, f)) > 0)
        if (cap - (n += got) < 2)
            at = need(realloc(at, cap *= 2));
    fclose(f);
    at[n] = 0;
    *size = n;
    return keep(s, at);
}

static double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// --- the programs
// ----------------------------------------------------------------------------------

static void unit_add(Suite *s, const Program *p, uint32_t index) {
    const char *rel = p->path + strlen(s->root);
    rel += strspn(rel, "/");
    const char *slash = strrchr(rel, '/');
    Unit u = {.p = *p, .folder = "."};
    if (slash)
        u.folder = keep(s, strndup(rel, (size_t)(slash - rel)));
    char *name;
    if (asprintf(&name, index ? "%s#%u" : "%s", rel, index + 1) < 0)
        need(NULL);
    u.name = keep(s, name);
    s->units = grown(s->units, s->nunits, sizeof *s->units);
    s->units[s->nunits++] = u;
}

static bool is_blank(const char *s, const char *end) { // nothing but space and comments
    while (s < end) {
        s += strspn(s, " \t\r\n");
        if (s >= end)
            return true;
        if (strncmp(s, "//", 2) != 0)
            return false;
        s += strcspn(s, "\n");
    }
    return true;
}

static void text_split(Suite *s, Program p, size_t size) {
    uint32_t line = 1, index = 0;
    size_t begin = 0;
    p.line = 1;
    for (size_t at = 0; at <= size;) {
        const char *eol = memchr(p.text + at, '\n', size - at);
        size_t next = eol ? (size_t)(eol - p.text) + 1 : size + 1;
        bool cut = !strncmp(p.text + at, SEPARATOR, strlen(SEPARATOR));
        if (cut || next > size) {
            p.begin = begin;
            p.end = cut ? at : size;
            if (!is_blank(p.text + p.begin, p.text + p.end) || p.has_bytecode)
                unit_add(s, &p, index++);
            begin = next;
            p.line = line + 1;
        }
        line++;
        at = next;
    }
}

static bool ends_with(const char *s, const char *tail) {
    size_t n = strlen(s), k = strlen(tail);
    return n > k && !strcmp(s + n - k, tail);
}

static void file_add(Suite *s, const char *path) {
    struct stat st;
    char twin[4096];
    Program p = {.path = path, .line = 1};
    if (ends_with(path, ".mlir")) {
        size_t size;
        snprintf(twin, sizeof twin, "%s.bc", path);
        p.has_bytecode = stat(twin, &st) == 0;
        p.text = slurp(s, path, &size);
        text_split(s, p, size);
        return;
    }
    snprintf(twin, sizeof twin, "%.*s", (int)(strlen(path) - 3), path);
    if (ends_with(path, ".mlirbc") || (ends_with(path, ".bc") && stat(twin, &st) != 0)) {
        p.text = slurp(s, path, &p.end);
        unit_add(s, &p, 0);
    }
}

static struct Paths {
    char **at;
    size_t n;
} walk_paths; // nftw hands its callback no argument

static int walk(const char *path, const struct stat *st, int kind, struct FTW *ftw) {
    (void)st, (void)ftw;
    bool program = ends_with(path, ".mlir") || ends_with(path, ".bc") || ends_with(path, ".mlirbc");
    if (kind == FTW_F && program) {
        walk_paths.at = grown(walk_paths.at, walk_paths.n, sizeof *walk_paths.at);
        walk_paths.at[walk_paths.n++] = need(strdup(path));
    }
    return 0;
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void units_find(Suite *s) {
    if (nftw(s->root, walk, 16, FTW_PHYS) != 0) {
        fprintf(stderr, "conformance: %s: %s\n", s->root, strerror(errno));
        exit(2);
    }
    if (walk_paths.n)
        qsort(walk_paths.at, walk_paths.n, sizeof *walk_paths.at, by_text);
    for (size_t i = 0; i < walk_paths.n; i++)
        file_add(s, keep(s, walk_paths.at[i]));
    free(walk_paths.at);
}

// Lines of disabled.txt: `path reason`; # begins a comment. The path is relative to the root.
static void disabled_read(Suite *s) {
    if (access(DISABLED, R_OK) != 0)
        return;
    size_t size;
    char *text = slurp(s, DISABLED, &size), *save;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        size_t n = strcspn(line, " ");
        if (*line == '#' || !line[n])
            continue;
        for (uint32_t i = 0; i < s->nunits; i++)
            if (!strncmp(s->units[i].name, line, n) &&
                (!s->units[i].name[n] || s->units[i].name[n] == '#'))
                s->units[i].disabled = line + n + strspn(line + n, " ");
    }
}

// --- the jobs
// --------------------------------------------------------------------------------------

static bool road_applies(const Unit *u, Road road) {
    if (!u->p.has_bytecode)
        return road != ROAD_BYTECODE;
    // whole op sets, made to be read and not to be run; one of them must be refused
    bool refused = strstr(u->p.text, "RUN: not stablehlo-translate --deserialize") != NULL;
    return road == ROAD_BYTECODE || (!refused && (road == ROAD_PRINT || road == ROAD_WRITE));
}

static void jobs_make(Suite *s) {
    s->jobs = keep(s, calloc((size_t)s->nunits * ROAD_COUNT + 1, sizeof *s->jobs));
    for (uint32_t i = 0; i < s->nunits; i++)
        for (Road r = 0; r < ROAD_COUNT; r++)
            if (road_applies(&s->units[i], r) && (!s->only_road || r == s->road))
                s->jobs[s->njobs++] = (Job){i, r};
    s->outcomes = mmap(NULL, ((size_t)s->njobs + 1) * sizeof *s->outcomes, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s->outcomes == MAP_FAILED)
        need(NULL);
}

static void outcome_fail(Outcome *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void outcome_fail(Outcome *o, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(o->reason, sizeof o->reason, fmt, ap);
    va_end(ap);
    o->state = STATE_FAILED;
}

static void job_over(Suite *s, uint32_t j, int status) {
    Outcome *o = &s->outcomes[j];
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        outcome_fail(o, "took more than %d s", s->limit_seconds);
    else if (WIFSIGNALED(status))
        outcome_fail(o, "crashed: %s", strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) || o->state == STATE_RUNNING)
        outcome_fail(o, "broke off with status %d", WEXITSTATUS(status));
    const Unit *u = &s->units[s->jobs[j].unit];
    if (u->disabled && (o->state == STATE_FAILED || o->state == STATE_UNSUPPORTED))
        o->state = STATE_DISABLED;
    if (!s->is_sample)
        return;
    if (o->state == STATE_PASSED)
        printf("ok %s %s\n", u->name, road_names[s->jobs[j].road]);
    else
        printf("%s %s %s: %s\n", o->state == STATE_FAILED ? "FAIL" : "skipped", u->name,
               road_names[s->jobs[j].road], o->reason);
}

_Noreturn static void job_child(Suite *s, uint32_t j) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGALRM, SIG_DFL);
    alarm((unsigned)s->limit_seconds);
    double begin = seconds_now();
    Outcome *o = &s->outcomes[j];
    road_run(s->jobs[j].road, &s->units[s->jobs[j].unit].p, o);
    o->seconds = seconds_now() - begin;
    _exit(0);
}

static void jobs_run(Suite *s, int width) {
    pid_t pids[MAX_JOBS] = {0};
    uint32_t which[MAX_JOBS], next = 0;
    int running = 0;
    while (next < s->njobs || running) {
        for (int k = 0; k < width && next < s->njobs; k++) {
            if (pids[k])
                continue;
            which[k] = next;
            fflush(stdout);
            pids[k] = fork();
            if (pids[k] == 0)
                job_child(s, next);
            if (pids[k] < 0) {
                fprintf(stderr, "conformance: fork: %s\n", strerror(errno));
                exit(2);
            }
            next++, running++;
        }
        int status;
        pid_t pid = waitpid(-1, &status, 0);
        for (int k = 0; k < width; k++)
            if (pid > 0 && pids[k] == pid) {
                pids[k] = 0, running--;
                job_over(s, which[k], status);
            }
    }
}

// --- the report
// ------------------------------------------------------------------------------------

typedef struct Counts {
    uint32_t of[STATE_COUNT];
} Counts;

static bool job_is(const Suite *s, uint32_t j, const char *folder, Road road) {
    return s->jobs[j].road == road && !strcmp(s->units[s->jobs[j].unit].folder, folder);
}

static bool reason_same(const char *a, const char *b) { // numbers and what is quoted aside
    for (;;) {
        a += strspn(a, "0123456789.-"), b += strspn(b, "0123456789.-");
        if (*a != *b)
            return false;
        if (!*a)
            return true;
        a++, b++;
    }
}

// One group: the first job's reason, how many share it, and where.
static void group_print(const Suite *s, const uint32_t *jobs, uint32_t n) {
    const Outcome *o = &s->outcomes[jobs[0]];
    printf("    %4u %s%s\n", n, o->state == STATE_DISABLED ? "disabled upstream; " : "", o->reason);
    uint32_t shown = s->verbose || n <= SHOW_PLACES ? n : SHOW_PLACES;
    for (uint32_t i = 0; i < shown; i++) {
        printf("           %s", s->units[s->jobs[jobs[i]].unit].name);
        if (s->outcomes[jobs[i]].line)
            printf(":%u", s->outcomes[jobs[i]].line);
        if (i && strcmp(s->outcomes[jobs[i]].reason, o->reason) != 0)
            printf("  %s", s->outcomes[jobs[i]].reason);
        printf("\n");
    }
    if (shown < n)
        printf("           and %u more (-v lists them)\n", n - shown);
}

static void groups_print(const Suite *s, const char *folder, Road road, State state) {
    uint32_t *members = need(calloc(s->njobs + 1, sizeof *members));
    bool *told = need(calloc(s->njobs + 1, 1));
    for (uint32_t j = 0; j < s->njobs; j++) {
        if (told[j] || s->outcomes[j].state != (int)state || !job_is(s, j, folder, road))
            continue;
        uint32_t n = 0;
        for (uint32_t k = j; k < s->njobs; k++)
            if (!told[k] && s->outcomes[k].state == (int)state && job_is(s, k, folder, road) &&
                reason_same(s->outcomes[j].reason, s->outcomes[k].reason)) {
                told[k] = true;
                members[n++] = k;
            }
        group_print(s, members, n);
    }
    free(members), free(told);
}

static Counts folder_print(const Suite *s, const char *folder) {
    Counts total = {0};
    uint32_t programs = 0;
    for (uint32_t i = 0; i < s->nunits; i++)
        programs += !strcmp(s->units[i].folder, folder);
    printf("%s: %u programs\n", folder, programs);
    for (Road r = 0; r < ROAD_COUNT; r++) {
        Counts c = {0};
        uint32_t any = 0;
        for (uint32_t j = 0; j < s->njobs; j++)
            if (job_is(s, j, folder, r))
                c.of[s->outcomes[j].state]++, any++;
        if (!any)
            continue;
        printf("  %-10s %5u passed %4u failed %4u unsupported", road_names[r], c.of[STATE_PASSED],
               c.of[STATE_FAILED], c.of[STATE_UNSUPPORTED]);
        if (c.of[STATE_DISABLED])
            printf(" %4u disabled upstream", c.of[STATE_DISABLED]);
        if (c.of[STATE_ABSENT])
            printf(" %4u not run", c.of[STATE_ABSENT]);
        printf("\n");
        static const State told[] = {STATE_FAILED, STATE_UNSUPPORTED, STATE_DISABLED, STATE_ABSENT};
        for (size_t k = 0; k < sizeof told / sizeof *told; k++)
            groups_print(s, folder, r, told[k]);
        for (int k = 0; k < STATE_COUNT; k++)
            total.of[k] += c.of[k];
    }
    return total;
}

static bool folder_is_first(const Suite *s, uint32_t i) {
    for (uint32_t k = 0; k < i; k++)
        if (!strcmp(s->units[k].folder, s->units[i].folder))
            return false;
    return true;
}

static int report(const Suite *s, double seconds) {
    Counts total = {0};
    for (uint32_t i = 0; i < s->nunits; i++) {
        if (!folder_is_first(s, i))
            continue;
        Counts c = folder_print(s, s->units[i].folder);
        for (int k = 0; k < STATE_COUNT; k++)
            total.of[k] += c.of[k];
    }
    for (uint32_t j = 0; j < s->njobs; j++)
        if (s->outcomes[j].seconds > SLOW_SECONDS)
            printf("slow: %s %s, %.1f s\n", s->units[s->jobs[j].unit].name,
                   road_names[s->jobs[j].road], s->outcomes[j].seconds);
    uint32_t failed = total.of[STATE_FAILED] + total.of[STATE_UNSUPPORTED];
    printf("%.0f s; %u disabled upstream, %u not run\n", seconds, total.of[STATE_DISABLED],
           total.of[STATE_ABSENT]);
    printf("%u passed, %u failed\n", total.of[STATE_PASSED], failed);
    return failed != 0;
}

// --- the sample
// ------------------------------------------------------------------------------------

static uint32_t mix(uint32_t h, const char *s) {
    for (; *s; s++)
        h = (h ^ (uint8_t)*s) * 16777619u;
    h ^= h >> 15, h *= 0x2c1b3c6du, h ^= h >> 12;
    return h;
}

static int by_draw(const void *a, const void *b) {
    uint32_t x = mix(SAMPLE_SEED, ((const Unit *)a)->name),
             y = mix(SAMPLE_SEED, ((const Unit *)b)->name);
    return x < y ? -1 : x > y;
}

// The programs that a hash of the seed and their name puts first.
static int sample_run(Suite *s, int width) {
    s->root = CORPUS;
    s->is_sample = true;
    if (access(s->root, R_OK) != 0) {
        printf("skipped: %s is not there\n", s->root);
        return 0;
    }
    units_find(s);
    disabled_read(s);
    qsort(s->units, s->nunits, sizeof *s->units, by_draw);
    if (s->nunits > SAMPLE_PROGRAMS)
        s->nunits = SAMPLE_PROGRAMS;
    printf("sample of %u programs, seed %u\n", s->nunits, SAMPLE_SEED);
    jobs_make(s);
    jobs_run(s, width);
    for (uint32_t j = 0; j < s->njobs; j++)
        if (s->outcomes[j].state == STATE_FAILED)
            return 1;
    return 0;
}

static void suite_fini(Suite *s) {
    for (size_t i = 0; i < s->nkept; i++)
        free(s->kept[i]);
    free(s->kept);
    free(s->units);
}

static int cpu_count(void) {
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n < 1 ? 1 : n > MAX_JOBS ? MAX_JOBS : n;
}

static int usage(void) {
    fprintf(stderr, "usage: conformance [-j JOBS] [-s SECONDS] [-r "
                    "print|write|evaluator|chip|bytecode] [-v] DIR\n");
    return 2;
}

int main(int argc, char **argv) {
    Suite s = {.limit_seconds = LIMIT_SECONDS};
    int width = cpu_count();
    for (int opt; (opt = getopt(argc, argv, "j:s:r:v")) != -1;) {
        if (opt == 'j' && atoi(optarg) > 0)
            width = atoi(optarg) > MAX_JOBS ? MAX_JOBS : atoi(optarg);
        else if (opt == 's' && atoi(optarg) > 0)
            s.limit_seconds = atoi(optarg);
        else if (opt == 'v')
            s.verbose = true;
        else if (opt == 'r') {
            for (s.road = 0; s.road < ROAD_COUNT && strcmp(road_names[s.road], optarg) != 0;)
                s.road++;
            s.only_road = true;
            if (s.road == ROAD_COUNT)
                return usage();
        } else
            return usage();
    }
    if (optind + (argc > 1) != argc)
        return usage();
    int status;
    if (argc == 1) {
        status = sample_run(&s, width);
    } else {
        s.root = argv[optind];
        double begin = seconds_now();
        units_find(&s);
        disabled_read(&s);
        jobs_make(&s);
        jobs_run(&s, width);
        status = report(&s, seconds_now() - begin);
    }
    suite_fini(&s);
    return status;
}
