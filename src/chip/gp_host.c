// SPDX-License-Identifier: Apache-2.0
// gp_host.c — calls back into the host: a custom call that names a function of the host by number.
//
// backend_config is "N" or "N once". The function gets operands and results without tokens, which
// only put calls in order. "once": of the devices of a program the first calls, the others' results
// are not touched (spmd/spmd.c sends them).
#include "chip/gp.h"
#include "coll/comm.h"

#include <stdlib.h>

static bool host_parse_config(const Kern *k, uint64_t *number, bool *once) {
    const HloAttr *config = kern_attr(k, AK_BACKEND_CONFIG);
    if (!config || config->kind != HA_STR || !config->s || *config->s < '0' || *config->s > '9')
        return false;
    char *end;
    *number = strtoull(config->s, &end, 10);
    *once = !strcmp(end, " once");
    return *once || !*end;
}

bool gp_host_check(const Kern *k) {
    uint64_t number;
    bool once;
    return k->nregions == 0 && host_parse_config(k, &number, &once);
}

size_t gp_host_scratch(const Kern *k, int threads) {
    (void)threads;
    return (k->nin + k->nout + 1) * sizeof(void *);
}

static void **skip_tokens(void **to, void *const *from, const KTensor *types, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (types[i].dtype != DT_TOKEN)
            *to++ = from[i];
    return to;
}

otrn_status gp_host_run(const GpCall *c) {
    uint64_t number;
    bool once;
    if (!host_parse_config(c->k, &number, &once))
        return gp_fail(c, "a call to the host without a number");
    if (once && c->comm && comm_number(c->comm))
        return OTRN_OK;
    if (!c->host || !c->host->fn)
        return gp_fail(c, "the program calls function %llu of its host, which offers none",
                       (unsigned long long)number);
    void **in = c->scratch, **out = skip_tokens(in, c->in, c->k->in, c->k->nin);
    skip_tokens(out, c->out, c->k->out, c->k->nout);
    int failed = c->host->fn(c->host->arg, number, (const void *const *)in, out, c->why, c->why_bytes);
    return failed ? OTRN_CHECK : OTRN_OK;
}
