// SPDX-License-Identifier: Apache-2.0
// report.c — functions beside the PJRT table, for the Python package.
//
// They take and give plain text so that ctypes needs no knowledge of our structs.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pjrt/pjrt.h"

// The value of an option as the environment sets it ("platform", "devices", …). Returns the bytes
// needed, 0 when there is no such option; an error's text goes to `out` and makes the result
// negative.
OTRN_API long opentrn_option(const char *name, char *out, size_t out_bytes);
// Modelled time of one run of an artifact or program on a target, as JSON; options: lines NAME=VALUE. Returns 0, or -1
// with the error's text in `out`.
OTRN_API int opentrn_report(const void *bytes, size_t size, const char *target, const char *options, char *out,
                            size_t out_bytes);

// otrn_host_add and otrn_host_drop for a client, the attribute opentrn_client of its devices. add: 0, or -1 with the error's
// text in `out`, which is else the name.
OTRN_API int opentrn_host_add(int64_t client, otrn_host_fn *fn, void *arg, const size_t *arg_bytes, size_t num_args,
                              const size_t *result_bytes, size_t num_results, char *out, size_t out_bytes);
OTRN_API int opentrn_host_drop(int64_t client, const char *name);
// 1 when none of a client's launches is under way or waits.
OTRN_API int opentrn_is_idle(int64_t client);
OTRN_API void opentrn_wait(int64_t client); // until it is
OTRN_API int opentrn_warning(int64_t client, char *out, size_t out_bytes); // otrn_warning of its environments
OTRN_API void opentrn_cache_wait(int64_t client); // until what was compiled is in the cache

static otrn_env *env_of(int64_t client) {
    PJRT_Client *c = (PJRT_Client *)(intptr_t)client;
    pj_lock(c);
    otrn_env *env = c->envs->env;
    pj_unlock(c);
    return env;
}

int opentrn_host_add(int64_t client, otrn_host_fn *fn, void *arg, const size_t *arg_bytes, size_t num_args,
                     const size_t *result_bytes, size_t num_results, char *out, size_t out_bytes) {
    char name[OTRN_HOST_NAME];
    otrn_error err = OTRN_ERROR_INIT;
    otrn_status s = otrn_host_add(env_of(client), fn, arg, arg_bytes, num_args, result_bytes, num_results, name, &err);
    snprintf(out, out_bytes, "%s", s ? err.text : name);
    return s ? -1 : 0;
}

int opentrn_host_drop(int64_t client, const char *name) { return otrn_host_drop(env_of(client), name); }

int opentrn_is_idle(int64_t client) {
    return pj_queue_is_idle(((PJRT_Client *)(intptr_t)client)->queue);
}

void opentrn_wait(int64_t client) {
    while (!opentrn_is_idle(client))
        pj_queue_drain(((PJRT_Client *)(intptr_t)client)->queue, 1000);
}

void opentrn_cache_wait(int64_t client) {
    PJRT_Client *c = (PJRT_Client *)(intptr_t)client;
    pj_lock(c);
    Env *e = c->envs;
    pj_unlock(c);
    for (; e; e = e->next) // new ones go before the first, and all stay as long as the client
        otrn_cache_wait(e->env);
}

int opentrn_warning(int64_t client, char *out, size_t out_bytes) {
    PJRT_Client *c = (PJRT_Client *)(intptr_t)client;
    pj_lock(c);
    Env *e = c->envs;
    pj_unlock(c);
    for (; e; e = e->next)
        if (otrn_warning(e->env, out, out_bytes))
            return 1;
    return 0;
}

long opentrn_option(const char *name, char *out, size_t out_bytes) {
    Options o;
    PJRT_Error *e = pj_options_init(&o, NULL, 0);
    int id = opt_find(name, strlen(name));
    if (e) {
        PJRT_Error_Message_Args m = {.error = e};
        pj_Error_Message(&m);
        snprintf(out, out_bytes, "%.*s", (int)m.message_size, m.message);
        pj_Error_Destroy(&(PJRT_Error_Destroy_Args){.error = e});
        return -1;
    }
    return id < 0 ? 0 : snprintf(out, out_bytes, "%s", o.val[id]) + 1;
}

// As a JSON string's inside: the name of a chip or a machine may hold anything.
static void plain(const char *from, char *to, size_t bytes) {
    size_t n = 0;
    for (; n + 1 < bytes && from[n]; n++)
        to[n] = strchr("\"\\", from[n]) || (unsigned char)from[n] < ' ' ? '_' : from[n];
    to[n] = 0;
}

static void collectives_print(const otrn_report *r, char *out, size_t out_bytes) {
    size_t n = 0;
    out[0] = 0;
    for (uint32_t i = 0; i < r->num_collectives && i < OTRN_COLLECTIVES; i++) {
        const otrn_collective *c = &r->collectives[i];
        char file[sizeof c->file];
        plain(c->file, file, sizeof file);
        n += (size_t)snprintf(out + n, out_bytes - n,
                              "%s{\"kind\": \"%s\", \"ranks\": %u, \"groups\": %u, \"stride\": %u, \"count\": %.9g, \"bytes\": %.17g, "
                              "\"busy_us\": %.9g, \"exposed_us\": %.9g, \"file\": \"%s\", \"line\": %u}",
                              i ? ", " : "", c->kind, c->ranks, c->groups, c->stride, c->count, c->bytes, c->busy_us, c->exposed_us, file,
                              c->line);
    }
}

void pj_report_print(const otrn_report *r, char *out, size_t out_bytes) {
    char busy[512] = "", count[512] = "", target[sizeof r->target], instance[sizeof r->instance];
    char basis[sizeof r->price_basis], price[32] = "null", note[sizeof r->comm_note], kinds[4096];
    size_t b = 0, c = 0;
    plain(r->target, target, sizeof target);
    plain(r->instance, instance, sizeof instance);
    plain(r->price_basis, basis, sizeof basis);
    plain(r->comm_note, note, sizeof note);
    collectives_print(r, kinds, sizeof kinds);
    if (r->usd_per_hour > 0)
        snprintf(price, sizeof price, "%.9g", r->usd_per_hour);
    for (int i = 0; i < OTRN_ENGINES; i++) {
        const char *comma = i ? ", " : "", *name = otrn_engine_name(i);
        b += (size_t)snprintf(busy + b, sizeof busy - b, "%s\"%.30s\": %.9g", comma, name,
                              r->busy_us[i]);
        c += (size_t)snprintf(count + c, sizeof count - c, "%s\"%.30s\": %llu", comma, name,
                              (unsigned long long)r->instructions[i]);
    }
    snprintf(out, out_bytes,
             "{\"target\": \"%s\", \"total_us\": %.9g, \"busy_us\": {%s}, \"instructions\": {%s}, "
             "\"flops\": %.17g, \"hbm_bytes\": %.17g, \"hbm_peak_bytes\": %.17g, "
             "\"usd_per_hour\": %s, \"unknown_loops\": %llu, \"counted_loops\": %llu, \"assumed_trips\": %llu, "
             "\"devices\": %u, \"cores_per_device\": %u, \"instance\": \"%s\", \"machines\": %u, \"price_basis\": \"%s\", "
             "\"flops_peak\": %.9g, \"utilisation\": %.9g, \"comm_us\": %.9g, \"exposed_comm_us\": %.9g, \"link_bytes\": %.17g, "
             "\"comm_note\": \"%s\", \"collectives\": [%s]}",
             target, r->total_us, busy, count, r->flops, r->hbm_bytes, r->hbm_peak_bytes, price,
             (unsigned long long)r->unknown_loops, (unsigned long long)r->counted_loops,
             (unsigned long long)r->assumed_trips, r->devices, r->cores_per_device, instance, r->machines, basis,
             r->flops_peak, r->utilisation, r->comm_us, r->exposed_comm_us, r->link_bytes, note, kinds);
}

#define REPORT_OPTIONS 16

int opentrn_report(const void *bytes, size_t size, const char *target, const char *options, char *out,
                   size_t out_bytes) {
    otrn_option given[REPORT_OPTIONS] = {{"threads", "1"}, {"cache", "off"}};
    size_t n = 2;
    char *text = strdup(options ? options : ""), *save = NULL;
    bool on_instance = false;
    for (char *line = text ? strtok_r(text, "\n", &save) : NULL; line && n < REPORT_OPTIONS; line = strtok_r(NULL, "\n", &save)) {
        char *value = strchr(line, '=');
        if (!value)
            continue;
        *value = 0;
        on_instance |= !strcmp(line, "instance");
        given[n++] = (otrn_option){line, value + 1};
    }
    otrn_env *env = NULL;
    otrn_exe *exe = NULL;
    otrn_report report = OTRN_REPORT_INIT;
    otrn_error err = OTRN_ERROR_INIT;
    otrn_status status = otrn_open(given, n, &env, &err);
    if (!status)
        status = otrn_compile(env, bytes, size, "report", &exe, &err);
    if (!status)
        status = otrn_time(exe, !target && on_instance ? otrn_target(env) : target, &report, &err);
    if (status)
        otrn_error_print(&err, out, out_bytes);
    else
        pj_report_print(&report, out, out_bytes);
    if (exe)
        otrn_exe_free(exe);
    if (env)
        otrn_close(env);
    free(text);
    return status ? -1 : 0;
}
