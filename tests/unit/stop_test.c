// SPDX-License-Identifier: Apache-2.0
// stop_test.c — runs that end before their programs do: by a limit, by otrn_stop, by SIGINT; on one thread and several, in loops, in
// the lanes of a kernel and in the middle of a long one. The environment goes on afterwards as if nothing had been.
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "run_sized.h"
#include "unit.h"

#define DATA OTRN_SOURCE_DIR "/tests/tools/data/"

// A product of integers that takes minutes on GpSimd.
static const char long_product[] =
    "func.func @main(%a: tensor<3000x3000xi64>) -> tensor<3000x3000xi64> {\n"
    "  %r = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : (tensor<3000x3000xi64>, tensor<3000x3000xi64>) -> tensor<3000x3000xi64>\n"
    "  return %r : tensor<3000x3000xi64>\n}\n";
static const char short_sum[] =
    "func.func @main(%a: tensor<f32>) -> tensor<f32> {\n  %r = stablehlo.add %a, %a : tensor<f32>\n  return %r : tensor<f32>\n}\n";

static void nap(void) { nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL); }

static atomic_bool over; // the run
static void *stop_soon(void *arg) {
    for (nap(); !over; nap()) // what comes before the run begins does not count
        otrn_stop(arg);
    return NULL;
}

static volatile sig_atomic_t handled;
static void on_signal(int sig) { (void)sig, handled++; }
static pthread_t runner;
static void *signal_soon(void *arg) {
    struct sigaction now = {.sa_handler = on_signal};
    (void)arg;
    for (; now.sa_handler == on_signal; nap()) // until the run has put its own in that place
        sigaction(SIGINT, NULL, &now);
    pthread_kill(runner, SIGINT);
    return NULL;
}

static otrn_exe *compiled(otrn_env *env, const void *bytes, size_t size, const char *name) {
    otrn_exe *exe = NULL;
    otrn_error err = OTRN_ERROR_INIT;
    if (otrn_compile(env, bytes, size, name, &exe, &err))
        printf("%s: %s\n", name, err.text);
    return exe;
}

// The way it ends: waits for the limit (NULL), or a thread ends it.
static void ends(otrn_env *env, otrn_exe *exe, void *(*ender)(void *), otrn_status want, const char *name) {
    pthread_t t;
    runner = pthread_self();
    over = false;
    if (ender)
        pthread_create(&t, NULL, ender, env);
    size_t n = (size_t)3000 * 3000 * 8;
    void *a = calloc(1, n), *r = calloc(1, n);
    otrn_error err = OTRN_ERROR_INIT;
    otrn_status s = exe ? run_sized(exe, (const void *[]){a}, (void *[]){r}, &err) : OTRN_OK;
    over = true;
    if (ender)
        pthread_join(t, NULL);
    free(a), free(r);
    char why[256];
    snprintf(why, sizeof why, "status %s: %.200s", otrn_status_name(s), err.text);
    bool told = strstr(err.text, "at instruction") && err.line;
    expect(s == want && told, name, why);
    float x = 1.5f, y = 0;
    otrn_exe *next = compiled(env, short_sum, sizeof short_sum - 1, "sum.mlir");
    s = next ? run_sized(next, (const void *[]){&x}, (void *[]){&y}, &err) : OTRN_INTERNAL;
    expect(s == OTRN_OK && y == 3, "  and the next run is right", err.text);
    otrn_exe_free(next);
}

static void *text_of(const char *path, size_t *size) {
    FILE *f = fopen(path, "r");
    char *text = calloc(1, 65536);
    *size = f ? fread(text, 1, 65535, f) : 0;
    if (f)
        fclose(f);
    return text;
}

int main(void) {
    size_t loop_size, lanes_size;
    void *loop = text_of(DATA "endless.mlir", &loop_size), *lanes = text_of(DATA "endless_lanes.mlir", &lanes_size);
    for (int threads = 1; threads <= 2; threads++) {
        char count[8];
        snprintf(count, sizeof count, "%d", threads);
        otrn_option options[] = {{"threads", count}, {"cache", "off"}, {"disable-pass", "fold"}, {"timeout", "1"}};
        otrn_env *limited = NULL, *free_env = NULL;
        otrn_error err = OTRN_ERROR_INIT;
        if (otrn_open(options, 4, &limited, &err) || otrn_open(options, 3, &free_env, &err))
            return printf("FAIL open: %s\n", err.text), 1;
        printf("# %d threads\n", threads);
        struct {
            const char *name;
            const void *bytes;
            size_t size;
        } programs[] = {{"an endless loop", loop, loop_size}, {"lanes in an endless loop", lanes, lanes_size},
                        {"a long kernel", long_product, sizeof long_product - 1}};
        for (size_t i = 0; i < 3; i++) {
            char name[96];
            otrn_exe *exe = compiled(limited, programs[i].bytes, programs[i].size, "p.mlir");
            snprintf(name, sizeof name, "%s ends at its limit", programs[i].name);
            ends(limited, exe, NULL, OTRN_TIMEOUT, name);
            otrn_exe_free(exe);
            exe = compiled(free_env, programs[i].bytes, programs[i].size, "p.mlir");
            snprintf(name, sizeof name, "%s ends by otrn_stop", programs[i].name);
            ends(free_env, exe, stop_soon, OTRN_INTERRUPTED, name);
            otrn_exe_free(exe);
        }
        signal(SIGINT, on_signal);
        otrn_stop_on_interrupt(free_env);
        otrn_exe *exe = compiled(free_env, loop, loop_size, "p.mlir");
        handled = 0;
        ends(free_env, exe, signal_soon, OTRN_INTERRUPTED, "an endless loop ends by SIGINT");
        expect(handled == 1, "  and the process's own handler was called", "not once");
        struct sigaction now;
        sigaction(SIGINT, NULL, &now);
        expect(now.sa_handler == on_signal, "  and is there again", "another is");
        otrn_exe_free(exe);
        otrn_close(limited), otrn_close(free_env);
    }
    free(loop), free(lanes);
    return failures != 0;
}
