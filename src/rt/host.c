// SPDX-License-Identifier: Apache-2.0
// host.c — functions of this process that its programs may call.
//
// A function's name is 128 random bits, and a program's call says it. So a program calls only what was given to whoever
// wrote it: no text can guess a name, and a program that was made in another process names nothing that is here.
//   1. A function belongs to one program: the first that is loaded with its name.
//   2. Operands and results have the sizes that the function was added with.
//   3. A loaded executable holds the functions it calls, so that they are there until its last run has ended.
// All is decided when a program is loaded; one that may not call can still be looked at and priced.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/sha256.h"
#include "rt/exe.h"

#define BUCKETS 256

typedef struct HostFn {
    struct HostFn *next;
    char name[OTRN_HOST_NAME];
    otrn_host_fn *fn;
    void *arg;
    uint32_t users;      // executables that hold it
    bool dropped, bound; // no new user; belongs to `program`
    Sha256 program;
    size_t nargs, nresults;
    size_t bytes[]; // of the operands, then of the results
} HostFn;

struct RtHosts {
    pthread_mutex_t lock;
    HostFn *at[BUCKETS];
};

RtHosts *hosts_make(void) {
    RtHosts *h = calloc(1, sizeof *h);
    if (h)
        pthread_mutex_init(&h->lock, NULL);
    return h;
}

void hosts_free(RtHosts *h) {
    for (int i = 0; h && i < BUCKETS; i++)
        while (h->at[i]) {
            HostFn *f = h->at[i];
            h->at[i] = f->next;
            free(f);
        }
    if (h)
        pthread_mutex_destroy(&h->lock);
    free(h);
}

// --- names ---------------------------------------------------------------------------------------------

// The place that points to the function of this name, or to NULL: where one would go.
static HostFn **find_locked(RtHosts *h, const char *name, size_t n) {
    bool is_name = n == OTRN_HOST_NAME - 1;
    HostFn **at = &h->at[is_name ? hash64(0, name, n) % BUCKETS : 0];
    while (*at && !(is_name && !memcmp((*at)->name, name, n)))
        at = &(*at)->next;
    return at;
}

static bool name_make(char name[OTRN_HOST_NAME]) {
    uint8_t bits[(OTRN_HOST_NAME - 1) / 2];
    for (size_t n = 0; n < sizeof bits;) {
        ssize_t got = getrandom(bits + n, sizeof bits - n, 0);
        if (got < 0 && errno != EINTR)
            return false;
        n += got > 0 ? (size_t)got : 0;
    }
    for (size_t i = 0; i < sizeof bits; i++)
        snprintf(name + 2 * i, 3, "%02x", bits[i]);
    return true;
}

otrn_status otrn_host_add(otrn_env *env, otrn_host_fn *fn, void *arg, const size_t *arg_bytes, size_t num_args,
                          const size_t *result_bytes, size_t num_results, char name[OTRN_HOST_NAME], otrn_error *err) {
    HostFn *f = calloc(1, sizeof *f + (num_args + num_results) * sizeof *f->bytes);
    if (!f)
        return ctx_set(err, OTRN_NOMEM, NO_PLACE, "out of memory");
    f->fn = fn, f->arg = arg, f->nargs = num_args, f->nresults = num_results;
    for (size_t i = 0; i < num_args + num_results; i++)
        f->bytes[i] = i < num_args ? arg_bytes[i] : result_bytes[i - num_args];
    if (!name_make(f->name)) {
        free(f);
        return ctx_set(err, OTRN_IO, NO_PLACE, "the system gives no random numbers: %s", strerror(errno));
    }
    memcpy(name, f->name, OTRN_HOST_NAME);
    RtHosts *h = env->hosts;
    pthread_mutex_lock(&h->lock);
    HostFn **at = find_locked(h, name, OTRN_HOST_NAME - 1);
    f->next = *at;
    *at = f;
    pthread_mutex_unlock(&h->lock);
    return OTRN_OK;
}

static void free_unused_locked(HostFn **at) {
    HostFn *f = *at;
    if (!f->dropped || f->users)
        return;
    *at = f->next;
    free(f);
}

int otrn_host_drop(otrn_env *env, const char *name) {
    RtHosts *h = env->hosts;
    pthread_mutex_lock(&h->lock);
    HostFn **at = find_locked(h, name, strlen(name));
    if (*at) {
        (*at)->dropped = true;
        free_unused_locked(at);
    }
    int gone = !*find_locked(h, name, strlen(name));
    pthread_mutex_unlock(&h->lock);
    return gone;
}

void otrn_host_share(otrn_env *env, otrn_env *with) {
    env->hosts = with->hosts;
    env->host.arg = env->hosts;
}

// --- executables ---------------------------------------------------------------------------------------

// Sizes of tensors, tokens left out, against a function's; "" or what differs.
static void check_sizes(const KTensor *t, uint32_t n, const size_t *bytes, size_t want, const char *what, char *why,
                        size_t why_bytes) {
    size_t k = 0;
    *why = 0;
    for (uint32_t i = 0; i < n; i++) {
        size_t have = (size_t)t[i].elems * dtype_bytes(t[i].dtype);
        if (t[i].dtype == DT_TOKEN)
            continue;
        if (k < want && have != bytes[k])
            snprintf(why, why_bytes, "%s %zu has %zu bytes where it has %zu", what, k, have, bytes[k]);
        if (k < want && have != bytes[k])
            return;
        k++;
    }
    if (k != want)
        snprintf(why, why_bytes, "%zu %ss where it has %zu", k, what, want);
}

// Why this kernel of a program may not call the function; "" when it may.
static void check_call_locked(HostFn *f, const Kern *k, const Sha256 *program, char *why, size_t why_bytes) {
    check_sizes(k->in, k->nin, f->bytes, f->nargs, "operand", why, why_bytes);
    if (!*why)
        check_sizes(k->out, k->nout, f->bytes + f->nargs, f->nresults, "result", why, why_bytes);
    if (!*why && program && f->bound && memcmp(&f->program, program, sizeof *program))
        snprintf(why, why_bytes, "it belongs to another program");
}

static void take_locked(otrn_exe *exe, uint32_t kern, const Sha256 *program) {
    const Kern *k = &exe->art->kerns[kern];
    bool once;
    size_t n;
    const char *name = kern_host_name(k, &n, &once);
    HostFn *f = *find_locked(exe->env->hosts, name, n);
    char why[160] = "";
    if (f && !f->dropped)
        check_call_locked(f, k, program, why, sizeof why);
    else
        snprintf(why, sizeof why, "this process has none of that name");
    if (*why) {
        exe->host_kern = kern;
        snprintf(exe->host_fault, sizeof exe->host_fault, "the program calls the host's function `%.*s`: %s",
                 n < 40 ? (int)n : 40, name, why);
        return;
    }
    if (program && !f->bound)
        f->program = *program;
    f->bound |= program != NULL;
    f->users++;
    exe->host_fns[exe->nhost_fns++] = f;
}

void hosts_take(otrn_exe *exe, const RtCompile *in) {
    const Artifact *art = exe->art;
    if (!artifact_calls_host(art))
        return;
    // An artifact may have lost its program; it still has names that only its own process knows.
    bool known = art->program || !artifact_is(in->bytes, in->size);
    const void *bytes = art->program ? art->program : in->bytes;
    Sha256 program = known ? sha256(bytes, art->program ? art->program_bytes : in->size) : (Sha256){0};
    exe->host_fns = ARENA_NEWN(&exe->arena, struct HostFn *, art->nkerns);
    RtHosts *h = exe->env->hosts;
    pthread_mutex_lock(&h->lock);
    for (uint32_t i = 0; i < art->nkerns && !*exe->host_fault; i++)
        if (kern_calls_host(&art->kerns[i]))
            take_locked(exe, i, known ? &program : NULL);
    pthread_mutex_unlock(&h->lock);
}

void hosts_release(otrn_exe *exe) {
    RtHosts *h = exe->env->hosts;
    if (!exe->nhost_fns)
        return;
    pthread_mutex_lock(&h->lock);
    for (uint32_t i = 0; i < exe->nhost_fns; i++) {
        HostFn *f = exe->host_fns[i];
        f->users--;
        free_unused_locked(find_locked(h, f->name, OTRN_HOST_NAME - 1));
    }
    pthread_mutex_unlock(&h->lock);
}

otrn_status otrn_exe_check_host(const otrn_exe *exe, otrn_error *err) {
    if (!*exe->host_fault)
        return OTRN_OK;
    const Artifact *art = exe->art;
    uint32_t pc = 0;
    while (pc + 1 < art->ncode &&
           (artifact_shape(art, pc)->op != ISA_KERNEL || (uint32_t)artifact_shape(art, pc)->imm != exe->host_kern))
        pc++;
    otrn_status s = exe_error(art, OTRN_USAGE, pc, err, "%s", exe->host_fault);
    if (err)
        snprintf(err->hint, sizeof err->hint,
                 "programs that call Python or other functions of their process run in that process: compile it again here");
    return s;
}

int hosts_call(void *hosts, const char *name, size_t n, const otrn_host_call *call) {
    RtHosts *h = hosts;
    pthread_mutex_lock(&h->lock);
    HostFn *f = *find_locked(h, name, n); // held by the executable that runs
    pthread_mutex_unlock(&h->lock);
    if (f)
        return f->fn(f->arg, call);
    snprintf(call->why, call->why_bytes, "the host has no function `%.*s`", n < 40 ? (int)n : 40, name);
    return 1;
}
