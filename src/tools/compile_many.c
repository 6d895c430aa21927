// SPDX-License-Identifier: Apache-2.0
// compile_many.c — otrn compile of several programs: files, folders, lists, compiled side by side into the cache.
//
// A host thread takes the next program; each has a context and an arena of its own, so that one that fails leaves
// the others alone. Lines come in the order of the programs, each as soon as those before it are done.
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/now.h"
#include "base/pool.h"
#include "rt/rt.h"
#include "tools/prof.h"

#define DEPTH_MAX 32 // folders in folders

typedef struct Job {
    const char *path, *out; // out: the artifact's file, or NULL
    bool done, failed, cached;
    double seconds;
    size_t bytes;
    char error[2400];
} Job;

typedef struct Many {
    Tool *t;
    VEC(Job) jobs;
    pthread_mutex_t lock;
    uint32_t taken, told; // jobs that were begun; those whose lines are out
} Many;

// --- which programs --------------------------------------------------------------------------------

static bool is_program(const char *name) {
    static const char *const ends[] = {".mlir", ".mlirbc", ".s"};
    size_t n = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (n > strlen(ends[i]) && !strcmp(name + n - strlen(ends[i]), ends[i]))
            return true;
    return false;
}

// The names in a folder, sorted, hidden ones left out. No descriptor is open when something is raised.
static const char **folder_names(Tool *t, const char *path) {
    struct dirent **found;
    int n = scandir(path, &found, NULL, alphasort);
    if (n < 0)
        ctx_fail(t->ctx, OTRN_IO, (Place){.file = path}, "cannot read the folder");
    const char **names = ARENA_NEWN(t->arena, const char *, (size_t)n + 1);
    size_t kept = 0;
    for (int i = 0; i < n; i++) {
        if (found[i]->d_name[0] != '.')
            names[kept++] = arena_strndup(t->arena, found[i]->d_name, strlen(found[i]->d_name));
        free(found[i]);
    }
    free(found);
    names[kept] = NULL;
    return names;
}

static void add_folder(Many *m, const char *path, int depth) {
    struct stat st;
    for (const char **name = folder_names(m->t, path); *name; name++) {
        const char *inside = arena_printf(m->t->arena, "%s/%s", path, *name);
        if (!lstat(inside, &st) && S_ISDIR(st.st_mode) && depth < DEPTH_MAX) // links to folders may go in circles
            add_folder(m, inside, depth + 1);
        else if (is_program(*name))
            VEC_PUSH(m->t->arena, &m->jobs, (Job){.path = inside});
    }
}

static void add_list(Many *m, const char *path) {
    size_t size;
    const char *text = (const char *)file_read(m->t->ctx, m->t->arena, path, &size);
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        size_t n = strcspn(line, "\r\n");
        if (n && *line != '#')
            VEC_PUSH(m->t->arena, &m->jobs, (Job){.path = arena_strndup(m->t->arena, line, n)});
    }
}

static bool is_folder(const char *path) {
    struct stat st;
    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

bool compile_is_many(const Tool *t) {
    return t->words.n > 1 || t->words.at[0][0] == '@' || is_folder(t->words.at[0]);
}

// Artifacts go into the folder -o names, each under its program's name.
static void name_outputs(Many *m, const char *folder) {
    Tool *t = m->t;
    for (uint32_t i = 0; i < m->jobs.n; i++) {
        const char *path = m->jobs.at[i].path, *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
        const char *dot = strrchr(base, '.');
        size_t n = dot && dot > base ? (size_t)(dot - base) : strlen(base);
        m->jobs.at[i].out = arena_printf(t->arena, "%s/%.*s.otrn", folder, (int)n, base);
        for (uint32_t j = 0; j < i; j++)
            if (!strcmp(m->jobs.at[j].out, m->jobs.at[i].out)) {
                ctx_hint(t->ctx, "compile them one by one, or without -o into the cache");
                ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "%s and %s would both be written to %s", m->jobs.at[j].path, path,
                         m->jobs.at[i].out);
            }
    }
    dir_make(t->ctx, folder);
}

// --- compiling them --------------------------------------------------------------------------------

static void job_run(Many *m, Job *job) {
    Ctx ctx = {0};
    Arena arena;
    jmp_buf jb;
    RtStats stats = {0};
    Pool *alone = pool_make(1); // the programs are what runs side by side
    double begin = now_seconds();
    arena_init(&arena, &ctx);
    if (CTX_TRY(&ctx, jb)) {
        RtCompile in = {.opts = &m->t->opt, .name = job->path, .stats = &stats, .pool = alone, .warn = m->t->warn};
        Buf bytes = {.arena = &arena};
        in.bytes = file_read(&ctx, &arena, job->path, &in.size);
        rt_compile(&ctx, &arena, &in, &bytes);
        if (job->out)
            file_write(&ctx, job->out, bytes.at, bytes.n);
        job->bytes = bytes.n;
        prof_warn_compiled(&ctx, &arena, &m->t->opt, job->path, &bytes);
    } else {
        otrn_error_print(&ctx.err, job->error, sizeof job->error);
        job->failed = true;
    }
    arena_fini(&arena);
    pool_free(alone);
    job->cached = stats.cached;
    job->seconds = now_seconds() - begin;
}

static void job_print(const Job *job) {
    if (job->failed)
        printf("%s%s", job->error, job->error[0] && job->error[strlen(job->error) - 1] == '\n' ? "" : "\n");
    else
        printf("%s: %s, %zu bytes, %.2f s\n", job->path, job->cached ? "in the cache" : "compiled", job->bytes, job->seconds);
}

// Every thread takes programs until none is left.
static void jobs_run(void *arg, size_t begin, size_t end) {
    (void)begin, (void)end;
    Many *m = arg;
    pthread_mutex_lock(&m->lock);
    while (m->taken < m->jobs.n) {
        Job *job = &m->jobs.at[m->taken++];
        pthread_mutex_unlock(&m->lock);
        job_run(m, job);
        pthread_mutex_lock(&m->lock);
        job->done = true;
        for (; m->told < m->jobs.n && m->jobs.at[m->told].done; m->told++)
            job_print(&m->jobs.at[m->told]);
        fflush(stdout);
    }
    pthread_mutex_unlock(&m->lock);
}

int compile_many(Tool *t) {
    static const OptId alone[] = {OPT_DUMP, OPT_EXPLAIN, OPT_STATS, OPT_EMIT, OPT_LOCS};
    for (size_t i = 0; i < sizeof alone / sizeof *alone; i++)
        if (!strcmp(t->opt.from[alone[i]], "command line"))
            ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "--%s is for one program", opt_rows[alone[i]].name);
    Many m = {.t = t, .lock = PTHREAD_MUTEX_INITIALIZER};
    for (uint32_t i = 0; i < t->words.n; i++) {
        const char *word = t->words.at[i];
        if (word[0] == '@')
            add_list(&m, word + 1);
        else if (is_folder(word))
            add_folder(&m, word, 0);
        else
            VEC_PUSH(t->arena, &m.jobs, (Job){.path = word});
    }
    if (!m.jobs.n) {
        ctx_hint(t->ctx, "programs end in .mlir, .mlirbc or .s");
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "there is no program in %s", t->words.at[0]);
    }
    if (*t->opt.val[OPT_OUT])
        name_outputs(&m, t->opt.val[OPT_OUT]);
    Pool *pool = pool_make((int)opt_num(&t->opt, OPT_THREADS));
    if (!pool)
        ctx_fail(t->ctx, OTRN_NOMEM, NO_PLACE, "no memory for host threads");
    double begin = now_seconds();
    pool_run(pool, (size_t)pool_threads(pool), 1, jobs_run, &m);
    pool_free(pool);
    uint32_t failed = 0, cached = 0;
    for (uint32_t i = 0; i < m.jobs.n; i++)
        failed += m.jobs.at[i].failed, cached += m.jobs.at[i].cached;
    fprintf(stderr, "%u programs: %u compiled, %u in the cache, %u failed; %.1f s\n", m.jobs.n, m.jobs.n - failed - cached,
            cached, failed, now_seconds() - begin);
    return failed != 0;
}
