// SPDX-License-Identifier: Apache-2.0
// driver.c — feeds damaged inputs to a fuzz target; a plain main, so that any C compiler will do.
//
//   NAME_fuzz [runs=N] [seconds=S] [seed=N] [corpus=FOLDER] [FILE…]
//
// ends after N executions or S seconds, whichever comes first, with the line `ok NAME: N executions, 0 failures …`.
// Execution k uses the input made from seed + k and the corpus alone (mutate.c), so the number printed with a
// crash repeats it: NAME_fuzz runs=1 seed=NUMBER. A corpus folder is added to the target's own seeds. The input itself is left in fuzz_NAME_NUMBER.bin;
// runs=0 with FILEs gives them to the target as they are.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

#define SMOKE_SECONDS 8   // without arguments, as one of the tests; and no more than so many inputs, the same ones everywhere:
#define SMOKE_RUNS 40000 // what `make fuzz RUNS=40000` has seen, no host is quick enough to go beyond
#define HANG_SECONDS 10 // of processor time for one execution

// What a signal handler must reach. Written by main only.
static struct {
    char name[64];
    volatile uint64_t number, ticks_at;
    volatile unsigned ticks;
    const uint8_t *volatile data;
    volatile size_t size;
} now;

// An input may ask for memory it does not get, but not for the host's; the quarantine stays in the cache.
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "allocator_may_return_null=1:max_allocation_size_mb=64:hard_rss_limit_mb=3000:quarantine_size_mb=4:"
           "malloc_context_size=3";
}
__attribute__((visibility("default"))) const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void) { return "abort_on_error=1:print_stacktrace=1"; }
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void say(const char *text) {
    if (write(2, text, strlen(text)) < 0)
        _exit(3);
}

static void report(void) { // also from signal handlers: snprintf of integers and strings only
    static volatile sig_atomic_t done;
    if (done || !now.data)
        return;
    done = 1;
    char path[128], text[400];
    unsigned long long number = now.number;
    snprintf(path, sizeof path, "fuzz_%s_%llu.bin", now.name, number);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd >= 0 && write(fd, now.data, now.size) >= 0)
        close(fd);
    snprintf(text, sizeof text, "\n%s: failure at seed %llu, the input is in %s; again: %s_fuzz runs=1 seed=%llu\n", now.name,
             number, path, now.name, number);
    say(text);
}

static void on_signal(int sig) {
    report();
    signal(sig, SIG_DFL);
    raise(sig);
}

static void on_tick(int sig) { // every second of processor time
    (void)sig;
    if (now.ticks_at != now.number)
        now.ticks = 0;
    now.ticks_at = now.number;
    if (now.data && ++now.ticks > HANG_SECONDS) {
        say("\nan execution hangs\n");
        abort();
    }
}

static void watch(const char *program) {
    const char *base = strrchr(program, '/');
    snprintf(now.name, sizeof now.name, "%s", base ? base + 1 : program);
    char *tail = strstr(now.name, "_fuzz");
    if (tail)
        *tail = 0;
    signal(SIGABRT, on_signal);
    if (__sanitizer_set_death_callback)
        __sanitizer_set_death_callback(report);
    else
        signal(SIGSEGV, on_signal), signal(SIGBUS, on_signal), signal(SIGFPE, on_signal), signal(SIGILL, on_signal);
    struct sigaction tick = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    sigaction(SIGPROF, &tick, NULL);
    setitimer(ITIMER_PROF, &(struct itimerval){{1, 0}, {1, 0}}, NULL);
}

static void execute(uint64_t number, const uint8_t *data, size_t n) {
    uint8_t *exact = malloc(n ? n : 1); // exactly sized, so that overruns are seen
    if (!exact)
        exit(1);
    memcpy(exact, data, n);
    now.number = number;
    now.size = n;
    now.data = exact;
    LLVMFuzzerTestOneInput(exact, n);
    now.data = NULL;
    free(exact);
}

static double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool option(const char *arg, const char *name, double *out) {
    size_t n = strlen(name);
    if (strncmp(arg, name, n) || arg[n] != '=')
        return false;
    *out = strtod(arg + n + 1, NULL);
    return true;
}

int main(int argc, char **argv) {
    double runs = argc > 1 ? 0 : SMOKE_RUNS, seconds = argc > 1 ? 0 : SMOKE_SECONDS, seed = 1;
    static FuzzCorpus corpus, given;
    watch(argv[0]);
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], "corpus=", 7) && !option(argv[i], "runs", &runs) && !option(argv[i], "seconds", &seconds) && !option(argv[i], "seed", &seed) &&
            !fuzz_corpus_add(&given, argv[i], true)) {
            fprintf(stderr, "%s: cannot use %s\n", argv[0], argv[i]);
            return 2;
        }
    for (size_t i = 0; fuzz_seeds[i]; i++)
        if (!fuzz_corpus_add(&corpus, fuzz_seeds[i], false)) {
            fprintf(stderr, "%s: cannot use %s\n", argv[0], fuzz_seeds[i]);
            return 2;
        }
    for (int i = 1; i < argc; i++)
        if (!strncmp(argv[i], "corpus=", 7) && !fuzz_corpus_add(&corpus, argv[i] + 7, false)) {
            fprintf(stderr, "%s: cannot use %s\n", argv[0], argv[i]);
            return 2;
        }
    if (fuzz_corpus_ready)
        fuzz_corpus_ready(&corpus);
    for (size_t i = 0; i < given.n; i++)
        execute(i, given.pieces[i].at, given.pieces[i].n);
    static uint8_t work[FUZZ_BYTES_MAX];
    double begin = seconds_now();
    uint64_t done = 0, limit = runs > 0 ? (uint64_t)runs : seconds > 0 ? UINT64_MAX : 0;
    for (; done < limit; done++) {
        if (seconds > 0 && done % 64 == 0 && seconds_now() - begin >= seconds)
            break;
        uint64_t number = (uint64_t)seed + done;
        execute(number, work, fuzz_mutate(&corpus, number, work));
    }
    double took = seconds_now() - begin;
    printf("ok %s: %llu executions, 0 failures (seed %llu, %.0f s, %.0f a second)\n", now.name, (unsigned long long)done,
           (unsigned long long)seed, took, took > 0 ? (double)done / took : 0);
    fuzz_corpus_free(&corpus);
    fuzz_corpus_free(&given);
    return 0;
}
