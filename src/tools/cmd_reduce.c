// SPDX-License-Identifier: Apache-2.0
// cmd_reduce.c — otrn reduce: the smallest program we can find on which a command still succeeds.
//
// The command is the user's way to say "the failure still shows". Every kind of reduction
// (write/reduce.h) is tried on large runs of units first and on halves of those next, round after
// round until a whole round brought nothing. The best program so far is text in memory and, with
// -o, in the file, so an interrupt or a crash of the machine loses nothing.
#include "tools/tools.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/now.h"
#include "pass/pass.h"
#include "read/read.h"
#include "write/reduce.h"

typedef struct Hunt {
    Tool *t;
    const char *path; // the user's program
    char dir[40], file[60]; // a private folder and the candidate in it
    const char *command; // with the file's name in it
    const char *until;   // bisecting: the last optional pass the command's compiler runs
    const char *text;    // the best program so far
    const char *base;    // what candidates are made of: the best one, or what a bisection began with
    size_t base_bytes;
    ReduceSize size, before;
    Arena best;    // holds text
    Arena scratch; // one candidate
    bool verify;   // the program itself passes the verifier, so candidates must
    bool tidy;     // the failure does not depend on dead code
    bool terminal, stopped;
    uint32_t tries;
    double since; // seconds
    VEC(Hash128) failed; // candidates that were tried already
} Hunt;

// --- the command --------------------------------------------------------------------------------

static const char *command_make(Tool *t, const char *file) {
    const char *s = t->opt.val[OPT_TEST];
    Buf out = {.arena = t->arena};
    bool named = false;
    for (; *s; s++) {
        if (s[0] == '%' && s[1] == 's')
            buf_puts(&out, file), named = true, s++;
        else if (s[0] == '%' && s[1] == '%')
            buf_puts(&out, "%"), s++;
        else
            buf_put(&out, s, 1);
    }
    if (!named) {
        ctx_hint(t->ctx, "for example --test='otrn run %%s 2>&1 | grep -q \"not supported\"'");
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE,
                 "--test needs a command in which %%s stands for the program's file");
    }
    return buf_cstr(&out);
}

static bool interrupted(void) { // the signals are blocked, so they wait until somebody looks
    sigset_t waiting;
    sigpending(&waiting);
    return sigismember(&waiting, SIGINT) || sigismember(&waiting, SIGTERM) ||
           sigismember(&waiting, SIGHUP);
}

_Noreturn static void child(const Hunt *h) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0); // so that it and what it starts can be ended together
    int fd = open("/dev/null", O_RDWR);
    for (int i = 0; i < 3 && fd >= 0; i++)
        dup2(fd, i);
    if (h->until)
        setenv(opt_rows[OPT_UNTIL].env, h->until, 1);
    execl("/bin/sh", "sh", "-c", h->command, (char *)NULL);
    _exit(127);
}

// Runs the command on the candidate in h->file: whether it succeeded in time.
static bool command_run(Hunt *h) {
    uint64_t limit = opt_num(&h->t->opt, OPT_LIMIT);
    struct timespec nap = {0, 500000};
    double begun = now_seconds();
    h->tries++;
    pid_t pid = fork();
    if (pid == 0)
        child(h);
    if (pid < 0) {
        h->stopped = true;
        return false;
    }
    setpgid(pid, pid); // whoever is first
    int status = 0;
    bool late = false;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        late = limit && now_seconds() - begun > (double)limit;
        h->stopped |= interrupted();
        if (late || h->stopped) {
            kill(-pid, SIGKILL);
            waitpid(pid, &status, 0);
            break;
        }
        nanosleep(&nap, NULL);
        if (nap.tv_nsec < 8000000)
            nap.tv_nsec *= 2;
    }
    kill(-pid, SIGKILL); // what it left behind
    h->stopped |= interrupted();
    return !late && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// --- candidates ---------------------------------------------------------------------------------

// A smaller program in h->scratch, read back from its own text; false when there is none or it is
// not valid. Kind RK_COUNT: only dead code goes.
static bool candidate_make(Hunt *h, ReduceKind kind, uint32_t first, uint32_t count, Buf *text,
                           ReduceSize *size) {
    Ctx ctx = {0};
    jmp_buf jb;
    arena_reset(&h->scratch);
    h->scratch.ctx = &ctx;
    if (!CTX_TRY(&ctx, jb))
        return false;
    Hlo *g = read_text(&ctx, &h->scratch, h->path, h->base, h->base_bytes);
    if (kind < RK_COUNT && !reduce_apply(g, kind, first, count))
        return false;
    if (kind == RK_COUNT || h->tidy)
        reduce_tidy(g);
    *text = (Buf){.arena = &h->scratch};
    hlo_print(g, text, false);
    Hlo *again = read_text(&ctx, &h->scratch, h->path, text->at, text->n);
    if (h->verify)
        hlo_verify(again);
    *size = reduce_size(again);
    size->text_bytes = text->n;
    return reduce_smaller(size, &h->size);
}

static uint32_t units(Hunt *h, ReduceKind kind) {
    Ctx ctx = {0};
    jmp_buf jb;
    arena_reset(&h->scratch);
    h->scratch.ctx = &ctx;
    if (!CTX_TRY(&ctx, jb))
        return 0;
    return reduce_units(read_text(&ctx, &h->scratch, h->path, h->base, h->base_bytes), kind);
}

// False when the file could not be written: then there is no point in going on.
static bool write_file(const char *path, const void *bytes, size_t n) {
    Ctx ctx = {0};
    jmp_buf jb;
    if (CTX_TRY(&ctx, jb)) {
        file_write(&ctx, path, bytes, n);
        return true;
    }
    char text[2400];
    otrn_error_print(&ctx.err, text, sizeof text);
    fprintf(stderr, "%s\n", text);
    return false;
}

static bool seen(Hunt *h, const Buf *text) {
    Hash128 hash = hash128(text->at, text->n);
    for (uint32_t i = 0; i < h->failed.n; i++)
        if (h->failed.at[i].lo == hash.lo && h->failed.at[i].hi == hash.hi)
            return true;
    VEC_PUSH(h->t->arena, &h->failed, hash); // until it is told otherwise it has failed
    return false;
}

static void keep(Hunt *h, ReduceKind kind, const Buf *text, const ReduceSize *size) {
    const char *out = h->t->opt.val[OPT_OUT];
    if (kind != RK_CUT) // else the base is in there
        arena_reset(&h->best);
    h->text = arena_strndup(&h->best, (const char *)text->at, text->n);
    h->size = *size;
    if (kind != RK_CUT) {
        h->base = h->text;
        h->base_bytes = text->n;
    }
    if (*out && !write_file(out, text->at, text->n))
        h->stopped = true;
}

static void progress(const Hunt *h, const char *what) {
    if (h->terminal)
        fprintf(stderr, "\r\033[Kreducing: %u ops, %zu bytes; try %u: %s", h->size.ops,
                h->size.text_bytes, h->tries, what);
}

// One try: whether it gave a smaller program that still shows the failure, which is kept.
static bool attempt(Hunt *h, ReduceKind kind, uint32_t first, uint32_t count) {
    Buf text;
    ReduceSize size;
    progress(h, kind < RK_COUNT ? reduce_rows[kind].name : "dead code");
    if (!candidate_make(h, kind, first, count, &text, &size) || seen(h, &text))
        return false;
    if (!write_file(h->file, text.at, text.n)) {
        h->stopped = true;
        return false;
    }
    if (!command_run(h) || h->stopped)
        return false;
    keep(h, kind, &text, &size);
    return true;
}

// --- the search ---------------------------------------------------------------------------------

// The shortest front part of the entry function, by bisection over the ops it has now.
static bool bisect(Hunt *h) {
    bool better = false;
    uint32_t from = 0, to = units(h, RK_CUT);
    while (from < to && !h->stopped) {
        uint32_t middle = from + (to - from) / 2;
        if (attempt(h, RK_CUT, middle, 1))
            better = true, to = middle;
        else
            from = middle + 1;
    }
    h->base = h->text;
    h->base_bytes = h->size.text_bytes;
    return better;
}

// Runs of units from the end of the program to its beginning, then runs of half that length.
static bool sweep(Hunt *h, ReduceKind kind) {
    bool better = false;
    uint32_t n = units(h, kind);
    for (uint32_t length = n; length && !h->stopped; length /= 2)
        for (uint32_t end = n; end && !h->stopped;) {
            uint32_t first = end > length ? end - length : 0;
            end = attempt(h, kind, first, end - first) ? (better = true, n = units(h, kind), first)
                                                       : first;
            end = end < n ? end : n;
        }
    return better;
}

static void hunt(Hunt *h) {
    h->tidy = !units(h, RK_DEAD) || attempt(h, RK_COUNT, 0, 0);
    for (bool better = true; better && !h->stopped;) {
        better = false;
        for (int k = 0; k < RK_COUNT && !h->stopped; k++) {
            uint32_t ops = h->size.ops;
            if (k == RK_DEAD && h->tidy)
                continue;
            if (!(k == RK_CUT ? bisect(h) : sweep(h, (ReduceKind)k)))
                continue;
            better = true;
            if (!h->terminal)
                fprintf(stderr, "reduce: %s: %u -> %u ops, %zu bytes, %u tries\n",
                        reduce_rows[k].name, ops, h->size.ops, h->size.text_bytes, h->tries);
        }
    }
}

// --- begin and end ------------------------------------------------------------------------------

static bool verifies(Hunt *h) {
    Ctx ctx = {0};
    jmp_buf jb;
    h->scratch.ctx = &ctx;
    if (!CTX_TRY(&ctx, jb))
        return false;
    hlo_verify(read_text(&ctx, &h->scratch, h->path, h->base, h->base_bytes));
    return true;
}

static void begin(Hunt *h) {
    Tool *t = h->t;
    size_t n;
    const void *bytes = tool_read(t, h->path, &n);
    Hlo *g = read_program(t->ctx, t->arena, h->path, bytes, n);
    Buf text = {.arena = t->arena};
    hlo_print(g, &text, false);
    ReduceSize size = reduce_size(g);
    size.text_bytes = text.n;
    if (*t->opt.val[OPT_OUT]) // a file that cannot be written is better known now
        file_write(t->ctx, t->opt.val[OPT_OUT], text.at, text.n);
    h->before = size;
    h->text = h->base = buf_cstr(&text);
    h->base_bytes = text.n;
    h->size = size;
    h->verify = verifies(h);
    strcpy(h->dir, "/tmp/otrn-reduce-XXXXXX");
    if (!mkdtemp(h->dir))
        ctx_fail(t->ctx, OTRN_IO, (Place){.file = h->dir}, "cannot make a folder: %s",
                 strerror(errno));
    snprintf(h->file, sizeof h->file, "%s/program.mlir", h->dir);
    h->command = command_make(t, h->file);
}

static void folder_remove(const Hunt *h) {
    unlink(h->file);
    rmdir(h->dir); // stays when the command left something there
}

static void end(Hunt *h) {
    if (h->terminal)
        fprintf(stderr, "\r\033[K");
    fprintf(stderr, "reduce: %s%u ops, %zu bytes -> %u ops, %zu bytes; %u tries, %.1f s\n",
            h->stopped ? "interrupted: " : "", h->before.ops, h->before.text_bytes, h->size.ops,
            h->size.text_bytes, h->tries, now_seconds() - h->since);
    if (!*h->t->opt.val[OPT_OUT])
        fwrite(h->text, 1, h->size.text_bytes, stdout);
}

// The first pass with which the failure shows, all those behind it left out; told on stdout. Passes are in order,
// so halves are enough.
static void bisect_passes(Hunt *h) {
    int lo = 0, hi = pass_count - 1; // shows with passes up to hi
    h->until = pass_rows[0].name;
    if (command_run(h)) {
        printf("the failure shows without any optional pass\n");
        return;
    }
    while (hi - lo > 1 && !h->stopped) { // not with lo
        int mid = lo + (hi - lo) / 2;
        h->until = pass_rows[mid].name;
        if (command_run(h))
            hi = mid;
        else
            lo = mid;
    }
    printf("%s%s: %s\n", h->stopped ? "interrupted at or before " : "the failure begins with pass ",
           pass_rows[hi].name, pass_rows[hi].purpose);
}

int cmd_reduce(Tool *t) {
    Hunt h = {.t = t, .path = t->words.at[0], .terminal = isatty(2), .since = now_seconds()};
    command_make(t, ""); // wrong usage is told before anything is done
    arena_init(&h.scratch, t->ctx);
    arena_init(&h.best, t->ctx);
    begin(&h);
    sigset_t mask, old;
    sigemptyset(&mask);
    sigaddset(&mask, SIGINT);
    sigaddset(&mask, SIGTERM);
    sigaddset(&mask, SIGHUP);
    sigprocmask(SIG_BLOCK, &mask, &old);
    bool shows = write_file(h.file, h.text, h.size.text_bytes) && command_run(&h);
    bool bisects = opt_on(&t->opt, OPT_BISECT);
    if (shows && !h.stopped && bisects)
        bisect_passes(&h);
    else if (shows && !h.stopped)
        hunt(&h);
    folder_remove(&h);
    while (sigtimedwait(&mask, NULL, &(struct timespec){0}) > 0)
        ; // they have had their effect
    sigprocmask(SIG_SETMASK, &old, NULL);
    if ((shows || h.stopped) && !bisects)
        end(&h);
    arena_fini(&h.scratch);
    arena_fini(&h.best);
    if (!shows && !h.stopped) {
        ctx_hint(t->ctx, "it gets the program as text and must exit with status 0 while the failure shows");
        ctx_fail(t->ctx, OTRN_ARGUMENT, (Place){.file = h.path},
                 "the command does not succeed on the program itself");
    }
    return h.stopped;
}
