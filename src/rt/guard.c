// SPDX-License-Identifier: Apache-2.0
// guard.c — what may end a run before its program does: the limit of the option `timeout`, otrn_stop, and SIGINT where the
// caller wants it.
//
// A handler for SIGINT takes system calls to set and to take away, so short runs go without: those whose last one took less
// than two milliseconds and whose loops have known lengths.
#include <stdio.h>
#include <string.h>

#include "base/now.h"
#include "rt/exe.h"

#define BRIEF_SECONDS 0.002

bool exe_may_turn(const Artifact *art) {
    for (uint32_t i = 0; i < art->ncode; i++) {
        const IsaInst *in = artifact_shape(art, i);
        if (in->op == ISA_JUMP || in->op == ISA_BRANCH || (in->op == ISA_LOOP && in->breg))
            return true;
    }
    for (uint32_t i = 0; i < art->nkerns; i++)
        for (uint32_t r = 0; r < art->kerns[i].nregions; r++)
            if (kern_prog_loops(&art->kerns[i].regions[r]))
                return true;
    return art->peer && exe_may_turn(art->peer);
}

static void status_begin(otrn_env *env, const otrn_exe *exe, uint32_t devices) {
    if (!env->status_tried)
        env->status_tried = true, env->status = status_open(&env->opts);
    StatusPage *p = status_page(env->status);
    if (!p || env->told == exe)
        return;
    env->told = exe;
    p->devices = devices > p->devices ? devices : p->devices;
    p->hbm_bytes = exe->memory.peak_bytes, p->hbm_capacity = exe->memory.capacity_bytes;
    const char *name = exe->art->name ? exe->art->name : "";
    size_t length = strnlen(name, sizeof p->program - 1);
    memcpy(p->program, name, length), p->program[length] = 0; // small programs take turns: no snprintf
}

static void status_end(otrn_env *env, double seconds) {
    StatusPage *p = status_page(env->status);
    if (p)
        p->runs++, p->busy_seconds += seconds;
}

StatusPage *rt_status(otrn_env *env) { return status_page(env->status); }

void guard_begin(RunGuard *g, otrn_exe *exe, uint32_t devices) {
    otrn_env *env = exe->env;
    *g = (RunGuard){.exe = exe, .catches = env->catches && !exe->brief};
    pulse_begin(&env->pulse, exe->art->ncode);
    pulse_timer_begin(&g->timer, &env->pulse, opt_num(&env->opts, OPT_TIMEOUT));
    if (g->catches)
        pulse_catch_begin(&env->pulse);
    status_begin(env, exe, devices);
    g->begin = now_seconds();
}

void guard_end(RunGuard *g) {
    otrn_env *env = g->exe->env;
    if (g->catches)
        pulse_catch_end(&env->pulse);
    double seconds = now_seconds() - g->begin;
    if (env->catches)
        g->exe->brief = !g->exe->may_turn && seconds < BRIEF_SECONDS;
    pulse_timer_end(&g->timer);
    status_end(env, seconds);
}

void guard_hint(const otrn_env *env, otrn_status s, otrn_error *err) {
    if (s == OTRN_TIMEOUT && err && err->struct_size >= sizeof *err)
        snprintf(err->hint, sizeof err->hint, "the limit is --timeout=%s (seconds; the option `timeout`, OTRN_TIMEOUT); 0 is none",
                 env->opts.val[OPT_TIMEOUT]);
}

void otrn_stop(otrn_env *env) { atomic_store_explicit(&env->pulse.stop, PULSE_STOPPED, memory_order_relaxed); }
void otrn_stop_on_interrupt(otrn_env *env) { env->catches = true; }
Pulse *rt_pulse(otrn_env *env) { return &env->pulse; }
