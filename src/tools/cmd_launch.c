// SPDX-License-Identifier: Apache-2.0
// cmd_launch.c — otrn launch: the processes of a job, on this host or on several, as one command.
//
// Each process is told by variables who it is and where the job meets: torchrun's (RANK, WORLD_SIZE, MASTER_ADDR …), which
// PyTorch and JAX (opentrn.distributed) read, and opentrn's own root and secret. Its lines come out with its number in front.
// When one fails the others get a moment to say what they miss, then they are ended; with --restarts the whole job begins again,
// which is how a program that saves checkpoints goes on. Signals go to all.
//
// On another host a process is the child of a line of shell under ssh. The secret goes there through its standard input, since
// anybody can read command lines; when that input ends, so does the process, whatever happened to this one.
#define _GNU_SOURCE // pipe2, environ
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/now.h"
#include "net/net.h"
#include "tools/tools.h"

#define SAY_MS 5000  // for the others to tell what they miss, once one has failed
#define TERM_MS 5000 // to end by themselves when told to
#define LOST 75      // status of a process that ends because another one is gone
#define HOSTS_PORT 29400
#define LINE_MAX_BYTES 65536

typedef struct Stream { // of a process, to a stream of ours
    int fd;
    FILE *to;
    char *line;
    size_t have;
} Stream;

typedef struct Proc {
    uint32_t rank, local;
    const char *host; // NULL: this one
    pid_t pid;        // 0: it has ended
    int in;           // of a remote one: ends it when it ends
    const char *line; // of shell, for a remote one
    int status;       // as the shell counts
    Stream out, err;
} Proc;

typedef struct Launch {
    Tool *t;
    uint32_t each, nhosts, n;
    const char **hosts;
    const char *secret;
    unsigned port, attempt;
    Proc *procs;
    uint32_t running;
    int signals; // a signalfd
    sigset_t before;
    Proc *failed; // the first, but rather one that failed by itself
    int interrupted; // by this signal
    int stage; // how many of the ways to end the others were tried
    int64_t next_ms;
} Launch;

// --- what a process is told ------------------------------------------------------------------------

typedef struct Var {
    const char *name, *value;
    bool unless_set; // there, by its user
} Var;
#define VARS_MAX 16

static uint32_t vars_of(const Launch *l, const Proc *p, Var *out) {
    Arena *a = l->t->arena;
    const char *first = l->nhosts ? l->hosts[0] : "127.0.0.1";
    const char *open = strchr(first, ':') ? "[" : "", *close = *open ? "]" : "";
    const char *devices = l->t->opt.val[OPT_DEVICES];
    uint32_t n = 0;
    out[n++] = (Var){"RANK", arena_printf(a, "%u", p->rank), false};
    out[n++] = (Var){"WORLD_SIZE", arena_printf(a, "%u", l->n), false};
    out[n++] = (Var){"LOCAL_RANK", arena_printf(a, "%u", p->local), false};
    out[n++] = (Var){"LOCAL_WORLD_SIZE", arena_printf(a, "%u", l->each), false};
    out[n++] = (Var){"GROUP_RANK", arena_printf(a, "%u", p->rank / l->each), false};
    out[n++] = (Var){"MASTER_ADDR", first, false};
    out[n++] = (Var){"MASTER_PORT", arena_printf(a, "%u", l->port), false};
    out[n++] = (Var){"OTRN_ROOT", arena_printf(a, "%s%s%s:%u", open, first, close, l->port + 2), false};
    out[n++] = (Var){"OTRN_GENERATION", arena_printf(a, "%u", l->attempt), false};
    // Where the plugin is missing JAX says so, instead of training alone on the CPU.
    out[n++] = (Var){"JAX_PLATFORMS", arena_printf(a, "%s,cpu", l->t->opt.val[OPT_PLATFORM]), true};
    if (strcmp(devices, "0"))
        out[n++] = (Var){"OPENTRN_DEVICES", devices, false};
    return n;
}

static void quote(Buf *b, const char *text) {
    buf_printf(b, "'");
    for (; *text; text++)
        if (*text == '\'')
            buf_printf(b, "'\\''");
        else
            buf_printf(b, "%c", *text);
    buf_printf(b, "'");
}

// Where the shell finds otrn here, as in a Python environment: its Python is there too. NULL: nowhere.
static const char *otrn_folder(Arena *a) {
    const char *path = getenv("PATH");
    while (path && *path) {
        size_t n = strcspn(path, ":");
        const char *folder = arena_strndup(a, path, n);
        if (*folder == '/' && !access(arena_printf(a, "%s/otrn", folder), X_OK))
            return folder;
        path += n + (path[n] == ':');
    }
    return NULL;
}

static const char *remote_line(const Launch *l, const Proc *p) {
    Buf b = {.arena = l->t->arena};
    Var vars[VARS_MAX];
    uint32_t n = vars_of(l, p, vars);
    char folder[4096];
    if (!getcwd(folder, sizeof folder))
        ctx_fail(l->t->ctx, OTRN_IO, NO_PLACE, "launch: which folder is this? %s", strerror(errno));
    buf_printf(&b, "read -r OTRN_SECRET; export OTRN_SECRET");
    for (uint32_t i = 0; i < n; i++) {
        buf_printf(&b, " %s=", vars[i].name);
        if (vars[i].unless_set)
            buf_printf(&b, "${%s-%s}", vars[i].name, vars[i].value);
        else
            quote(&b, vars[i].value);
    }
    const char *first = otrn_folder(l->t->arena);
    if (first) {
        buf_printf(&b, "; PATH=");
        quote(&b, first);
        buf_printf(&b, ":$PATH");
    }
    buf_printf(&b, "; cd ");
    quote(&b, folder);
    buf_printf(&b, " || exit 1; exec 3<&0;");
    for (size_t i = 0; i < l->t->words.n; i++) {
        buf_printf(&b, " ");
        quote(&b, l->t->words.at[i]);
    }
    buf_printf(&b, " </dev/null 3<&- & p=$!; (cat <&3; kill -TERM $p; sleep 5; kill -KILL $p) >/dev/null 2>&1 & w=$!; "
                   "exec 3<&- </dev/null; wait $p; s=$?; kill $w 2>/dev/null; exit $s%c", 0);
    return (const char *)b.at;
}

// --- starting --------------------------------------------------------------------------------------

static const char *secret_of(Tool *t) {
    uint8_t random[16];
    if (*t->opt.val[OPT_SECRET])
        return t->opt.val[OPT_SECRET];
    if (getrandom(random, sizeof random, 0) != sizeof random)
        ctx_fail(t->ctx, OTRN_IO, NO_PLACE, "launch: the system has no random numbers: %s", strerror(errno));
    Buf b = {.arena = t->arena};
    for (size_t i = 0; i < sizeof random; i++)
        buf_printf(&b, "%02x", random[i]);
    buf_printf(&b, "%c", 0);
    return (const char *)b.at;
}

static bool port_free(unsigned port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && !bind(fd, (struct sockaddr *)&a, sizeof a);
    if (fd >= 0)
        close(fd);
    return ok;
}

// Three in a row, from where the system gives none away by itself.
static unsigned port_find(Tool *t) {
    for (int i = 0; i < 1000; i++) {
        uint16_t random;
        if (getrandom(&random, sizeof random, 0) != sizeof random)
            break;
        unsigned port = 15000 + random % 15000;
        if (port_free(port) && port_free(port + 1) && port_free(port + 2))
            return port;
    }
    ctx_fail(t->ctx, OTRN_IO, NO_PLACE, "launch: found no three free ports in a row");
}

// In the child: becomes the program, or ends with a sentence.
static _Noreturn void child(const Launch *l, const Proc *p, int in, int out, int err) {
    Var vars[VARS_MAX];
    sigprocmask(SIG_SETMASK, &l->before, NULL);
    signal(SIGINT, SIG_DFL); // a shell in the background ignores it, and what we forward shall arrive
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(in, 0);
    dup2(out, 1);
    dup2(err, 2);
    const char *const *words = l->t->words.at;
    const char *far[] = {"sh", "-c", "exec $0 \"$1\" \"$2\"", l->t->opt.val[OPT_SSH], p->host, p->line, NULL};
    for (uint32_t i = 0, n = p->host ? 0 : vars_of(l, p, vars); i < n; i++)
        setenv(vars[i].name, vars[i].value, !vars[i].unless_set);
    if (!p->host)
        setenv("OTRN_SECRET", l->secret, 1);
    execvp(p->host ? far[0] : words[0], (char *const *)(p->host ? far : words));
    fprintf(stderr, "otrn launch: %s: %s\n", p->host ? far[0] : words[0], strerror(errno));
    _exit(127);
}

static void pipe_make(Launch *l, int fd[2]) {
    if (pipe2(fd, O_CLOEXEC))
        ctx_fail(l->t->ctx, OTRN_IO, NO_PLACE, "launch: no pipe for a process: %s", strerror(errno));
}

static Stream stream_of(const Launch *l, int fd, FILE *to) {
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return (Stream){.fd = fd, .to = to, .line = arena_alloc(l->t->arena, LINE_MAX_BYTES)};
}

static void proc_start(Launch *l, Proc *p) {
    int in[2] = {-1, -1}, out[2], err[2], nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    pipe_make(l, out);
    pipe_make(l, err);
    if (p->host) {
        pipe_make(l, in);
        p->line = remote_line(l, p);
    }
    fflush(stdout);
    fflush(stderr);
    p->pid = fork();
    if (p->pid < 0)
        ctx_fail(l->t->ctx, OTRN_IO, NO_PLACE, "launch: process %u cannot be started: %s", p->rank, strerror(errno));
    if (!p->pid)
        child(l, p, p->host ? in[0] : nothing, out[1], err[1]);
    setpgid(p->pid, p->pid); // here too: whoever is first
    close(out[1]);
    close(err[1]);
    close(nothing);
    p->in = in[1];
    if (p->host)
        close(in[0]);
    p->out = stream_of(l, out[0], stdout);
    p->err = stream_of(l, err[0], stderr);
    l->running++;
    if (p->host && dprintf(p->in, "%s\n", l->secret) < 0)
        fprintf(stderr, "otrn launch: process %u on %s takes no secret: %s\n", p->rank, p->host, strerror(errno));
}

static void start_all(Launch *l) {
    uint32_t hosts = l->nhosts ? l->nhosts : 1;
    l->procs = arena_alloc(l->t->arena, l->n * sizeof *l->procs);
    l->failed = NULL;
    l->stage = 0;
    for (uint32_t i = 0; i < l->n; i++)
        l->procs[i] = (Proc){.rank = i, .local = i % l->each, .host = l->nhosts ? l->hosts[i / l->each % hosts] : NULL, .in = -1,
                             .out.fd = -1, .err.fd = -1};
    for (uint32_t i = 0; i < l->n; i++)
        proc_start(l, &l->procs[i]);
}

// --- what they say ---------------------------------------------------------------------------------

static void line_print(const Proc *p, Stream *s, size_t n) {
    fprintf(s->to, "[%u] %.*s\n", p->rank, (int)n, s->line);
    fflush(s->to);
}

static void lines_print(const Proc *p, Stream *s, bool ended) {
    size_t at = 0;
    for (char *end; (end = memchr(s->line + at, '\n', s->have - at)); at = (size_t)(end - s->line) + 1) {
        Stream part = {.to = s->to, .line = s->line + at};
        line_print(p, &part, (size_t)(end - s->line) - at);
    }
    memmove(s->line, s->line + at, s->have -= at);
    if (s->have && (ended || s->have == LINE_MAX_BYTES)) {
        line_print(p, s, s->have);
        s->have = 0;
    }
}

static void stream_read(const Proc *p, Stream *s) {
    while (s->fd >= 0) {
        ssize_t k = read(s->fd, s->line + s->have, LINE_MAX_BYTES - s->have);
        if (k < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        s->have += k > 0 ? (size_t)k : 0;
        lines_print(p, s, k <= 0);
        if (k <= 0) {
            close(s->fd);
            s->fd = -1;
        }
    }
}

// --- how they end ----------------------------------------------------------------------------------

static const char *who(const Launch *l, const Proc *p, pid_t pid) {
    if (p->host)
        return arena_printf(l->t->arena, "process %u (host %s)", p->rank, p->host);
    return arena_printf(l->t->arena, "process %u (pid %ld)", p->rank, (long)pid);
}

static void tell_end(const Launch *l, const Proc *p, pid_t pid, int status) {
    if (WIFSIGNALED(status))
        fprintf(stderr, "otrn launch: %s was killed by signal %d, %s\n", who(l, p, pid), WTERMSIG(status), strsignal(WTERMSIG(status)));
    else if (p->status == LOST)
        fprintf(stderr, "otrn launch: %s ended with status %d: it misses another process\n", who(l, p, pid), LOST);
    else
        fprintf(stderr, "otrn launch: %s ended with status %d\n", who(l, p, pid), p->status);
}

static void proc_ended(Launch *l, Proc *p, int status) {
    pid_t pid = p->pid;
    p->pid = 0;
    p->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    l->running--;
    stream_read(p, &p->out); // what it said before comes before what we say of it
    stream_read(p, &p->err);
    if (p->in >= 0)
        close(p->in);
    p->in = -1;
    if (!p->status)
        return;
    if (!l->stage && !l->interrupted)
        tell_end(l, p, pid, status);
    if (!l->failed)
        l->next_ms = now_ms() + SAY_MS;
    if (!l->failed || (l->failed->status == LOST && p->status != LOST && !l->stage))
        l->failed = p;
}

static void reap(Launch *l) {
    for (uint32_t i = 0; i < l->n; i++) {
        int status;
        if (l->procs[i].pid && waitpid(l->procs[i].pid, &status, WNOHANG) == l->procs[i].pid)
            proc_ended(l, &l->procs[i], status);
    }
}

// Whole groups, since a process may have children; whoever reads our pipe on another host ends there.
static void signal_all(Launch *l, int number) {
    for (uint32_t i = 0; i < l->n; i++) {
        Proc *p = &l->procs[i];
        if (!p->pid)
            continue;
        if (!p->host || number == SIGKILL)
            kill(-p->pid, number);
        if (p->in >= 0)
            close(p->in);
        p->in = -1;
    }
}

static void end_step(Launch *l) {
    static const int ways[] = {SIGTERM, SIGKILL};
    if (l->stage >= 2)
        return;
    for (uint32_t i = 0; i < l->n && !l->stage && !l->interrupted; i++)
        if (l->procs[i].pid)
            fprintf(stderr, "otrn launch: %s still runs and is ended\n", who(l, &l->procs[i], l->procs[i].pid));
    signal_all(l, ways[l->stage++]);
    l->next_ms = now_ms() + TERM_MS;
}

static void signals_read(Launch *l) {
    struct signalfd_siginfo s;
    while (read(l->signals, &s, sizeof s) == sizeof s) {
        if (s.ssi_signo == SIGCHLD)
            continue;
        if (l->interrupted) // asked twice
            l->next_ms = now_ms();
        else
            signal_all(l, (int)s.ssi_signo), l->next_ms = now_ms() + TERM_MS;
        l->interrupted = (int)s.ssi_signo;
    }
    reap(l);
}

// --- a job -----------------------------------------------------------------------------------------

static void wait_once(Launch *l) {
    struct pollfd *polls = arena_alloc(l->t->arena, (2 * l->n + 1) * sizeof *polls);
    for (uint32_t i = 0; i < l->n; i++) {
        polls[2 * i] = (struct pollfd){.fd = l->procs[i].out.fd, .events = POLLIN};
        polls[2 * i + 1] = (struct pollfd){.fd = l->procs[i].err.fd, .events = POLLIN};
    }
    polls[2 * l->n] = (struct pollfd){.fd = l->signals, .events = POLLIN};
    while (l->running) {
        bool ending = l->failed || l->interrupted;
        int64_t left = l->next_ms - now_ms();
        poll(polls, 2 * l->n + 1, !ending || l->stage >= 2 ? 1000 : left > 0 ? (int)left : 0);
        for (uint32_t i = 0; i < l->n; i++) {
            stream_read(&l->procs[i], &l->procs[i].out);
            stream_read(&l->procs[i], &l->procs[i].err);
            polls[2 * i].fd = l->procs[i].out.fd;
            polls[2 * i + 1].fd = l->procs[i].err.fd;
        }
        signals_read(l);
        if ((l->failed || l->interrupted) && l->running && now_ms() >= l->next_ms)
            end_step(l);
    }
    for (uint32_t i = 0; i < l->n; i++) // a child of a process may hold its pipe: not waited for
        for (Stream *s = &l->procs[i].out; s <= &l->procs[i].err; s++) {
            lines_print(&l->procs[i], s, true);
            if (s->fd >= 0)
                close(s->fd);
        }
}

static void hosts_read(Launch *l) {
    const char *at = l->t->opt.val[OPT_HOSTS];
    VEC(const char *) hosts = {0};
    while (*at) {
        size_t n = strcspn(at, ",");
        if (!n || *at == '-')
            ctx_fail(l->t->ctx, OTRN_USAGE, NO_PLACE, "--hosts: '%.*s' is not the name of a host", (int)n, at);
        VEC_PUSH(l->t->arena, &hosts, arena_strndup(l->t->arena, at, n));
        at += n + (at[n] == ',');
    }
    if (!hosts.n && strcmp(l->t->opt.from[OPT_HOSTS], "default"))
        ctx_fail(l->t->ctx, OTRN_USAGE, NO_PLACE, "--hosts: no host is named");
    l->hosts = hosts.at;
    l->nhosts = (uint32_t)hosts.n;
}

static void signals_take(Launch *l) {
    sigset_t set;
    sigemptyset(&set);
    for (const int *s = (const int[]){SIGCHLD, SIGINT, SIGTERM, SIGHUP, 0}; *s; s++)
        sigaddset(&set, *s);
    sigprocmask(SIG_BLOCK, &set, &l->before);
    l->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (l->signals < 0)
        ctx_fail(l->t->ctx, OTRN_IO, NO_PLACE, "launch: no signals: %s", strerror(errno));
}

int cmd_launch(Tool *t) {
    Launch l = {.t = t, .each = (uint32_t)opt_num(&t->opt, OPT_PROCESSES), .secret = secret_of(t)};
    uint32_t restarts = (uint32_t)opt_num(&t->opt, OPT_RESTARTS), port = (uint32_t)opt_num(&t->opt, OPT_PORT);
    hosts_read(&l);
    l.n = l.each * (l.nhosts ? l.nhosts : 1);
    if (!l.n || l.n > NET_PROCESSES_MAX)
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "launch: %u processes; a job has 1 to %d", l.n, NET_PROCESSES_MAX);
    signals_take(&l);
    VEC_PUSH(t->arena, &t->words, NULL);
    t->words.n--;
    for (;; l.attempt++) {
        l.port = port ? port + 3 * l.attempt : l.nhosts ? HOSTS_PORT + 3 * l.attempt : port_find(t);
        start_all(&l);
        wait_once(&l);
        if (!l.failed || l.interrupted || l.attempt == restarts)
            break;
        fprintf(stderr, "otrn launch: the job starts again, %u of %u\n", l.attempt + 1, restarts);
    }
    close(l.signals);
    sigprocmask(SIG_SETMASK, &l.before, NULL);
    return l.interrupted ? 128 + l.interrupted : l.failed ? l.failed->status : 0;
}
