// SPDX-License-Identifier: Apache-2.0
// common.c — the library as the commands use it, and the progress line.
#include "tools/tools.h"

#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "rt/rt.h"

void tool_check(Tool *t, otrn_status s, const otrn_error *err) {
    if (s == OTRN_OK)
        return;
    if (err->hint[0])
        ctx_hint(t->ctx, "%s", err->hint);
    char file[sizeof err->file];
    memcpy(file, err->file, sizeof file);
    ctx_fail(t->ctx, s, (Place){file, err->line, err->col}, "%s", err->text);
}

const void *tool_read(Tool *t, const char *path, size_t *size) {
    struct stat st;
    bool folder = !stat(path, &st) && S_ISDIR(st.st_mode);
    if (folder && !stat(arena_printf(t->arena, "%s/saved_model.pb", path), &st))
        ctx_hint(t->ctx, "it holds a TensorFlow SavedModel: docs/from-tf-keras.md takes a tf.keras model over");
    else if (folder)
        ctx_hint(t->ctx, "name a program in it; `otrn compile %s` compiles all of them", path);
    return file_read(t->ctx, t->arena, path, size);
}

otrn_env *tool_env(Tool *t) {
    if (t->env)
        return t->env;
    otrn_option given[OPT_COUNT];
    size_t n = 0;
    for (int i = 0; i < OPT_COUNT; i++) // the library reads defaults and environment itself
        if (!strcmp(t->opt.from[i], "command line"))
            given[n++] = (otrn_option){opt_rows[i].name, t->opt.val[i]};
    otrn_error err = OTRN_ERROR_INIT;
    tool_check(t, otrn_open(given, n, &t->env, &err), &err);
    return t->env;
}

otrn_exe *tool_exe(Tool *t, const char *path) {
    otrn_env *env = tool_env(t);
    otrn_error err = OTRN_ERROR_INIT;
    size_t size;
    const void *bytes = tool_read(t, path, &size);
    uint32_t count = tensors_are_named(t) ? 0 : t->inputs.n; // names are known once it is compiled
    const otrn_type *types = count ? tensors_types(t) : NULL;
    const void *const *values = count ? tensors_values(t) : NULL;
    progress_begin(t, "compiling");
    otrn_status s =
        otrn_compile_for(env, bytes, size, path, types, values, count, &t->exe, &err);
    progress_end(t);
    tool_check(t, s, &err);
    return t->exe;
}

Artifact *tool_artifact(Tool *t, const char *path) {
    size_t size;
    const void *bytes = tool_read(t, path, &size);
    size_t n = strlen(path);
    if (n > 2 && !strcmp(path + n - 2, ".s")) { // assembled, whether the chip executes it or not
        Buf out = {0};
        rt_compile(t->ctx, t->arena, &(RtCompile){.opts = &t->opt, .name = path, .bytes = bytes, .size = size},
                   &out);
        bytes = out.at, size = out.n;
    } else if (!artifact_is(bytes, size)) {
        bytes = otrn_exe_bytes(tool_exe(t, path), &size);
    }
    return artifact_load(t->ctx, t->arena, path, bytes, size);
}

// --- progress --------------------------------------------------------------------------------------
// A thread wakes every second and looks at the pulse of the work (base/pulse.h), which knows nothing of it. What takes less than
// a second shows nothing.

#define LOG_SECONDS 10 // between the lines of a log

// "running … 42 % of 9000 instructions, 12 s", or "compiling … tile, 3 s"
static void progress_text(const Progress *p, int seconds, char *out, size_t out_bytes) {
    const char *stage = atomic_load_explicit(&p->pulse->stage, memory_order_relaxed);
    uint32_t at = atomic_load_explicit(&p->pulse->at, memory_order_relaxed);
    uint32_t of = atomic_load_explicit(&p->pulse->of, memory_order_relaxed);
    if (stage)
        snprintf(out, out_bytes, "%s … after %s, %d s", p->what, stage, seconds);
    else if (of)
        snprintf(out, out_bytes, "%s … %u of %u (%.0f %%), %d s", p->what, at, of, 100.0 * at / of, seconds);
    else
        snprintf(out, out_bytes, "%s … %d s", p->what, seconds);
}

static void *progress_loop(void *arg) {
    Progress *p = arg;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    pthread_mutex_lock(&p->lock);
    for (int seconds = 1; !p->stop; seconds++) {
        until.tv_sec++;
        while (!p->stop && pthread_cond_timedwait(&p->wake, &p->lock, &until) == 0)
            ;
        char text[160];
        progress_text(p, seconds, text, sizeof text);
        if (p->is_log && !p->stop && seconds % LOG_SECONDS == 0)
            fprintf(stderr, "otrn: %s\n", text);
        else if (!p->is_log && !p->stop)
            fprintf(stderr, "\r%s\033[K", text);
        else if (!p->is_log && seconds > 1)
            fprintf(stderr, "\r\033[K");
        fflush(stderr);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

void progress_begin(Tool *t, const char *what) {
    Progress *p = &t->progress;
    bool terminal = isatty(2), log = !terminal && opt_num(&t->opt, OPT_VERBOSE) > 0;
    if (p->on || (!terminal && !log))
        return;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    p->what = what, p->stop = false, p->is_log = log;
    p->pulse = t->env ? rt_pulse(t->env) : &p->own;
    atomic_store(&p->pulse->stage, NULL);
    atomic_store(&p->pulse->of, 0);
    p->before = pulse_enter(p->pulse);
    p->on = pthread_create(&p->thread, NULL, progress_loop, p) == 0;
}

void progress_end(Tool *t) {
    Progress *p = &t->progress;
    if (!p->on)
        return;
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->wake);
    pulse_enter(p->before);
    p->on = false;
}
