// SPDX-License-Identifier: Apache-2.0
// host.c — calls back into the host: a custom call that names one of its functions (kern_host_name).
//
// The function gets operands and results without tokens, which only put calls in order. "once": of the devices of a program
// the first calls, the others' results are not touched (spmd/spmd.c sends them).
#include "chip/gpsimd/gp.h"
#include "coll/comm.h"

bool gp_host_check(const Kern *k) {
    bool once;
    size_t n;
    return k->nregions == 0 && kern_host_name(k, &n, &once);
}

size_t gp_host_scratch(const Kern *k, int threads) {
    (void)threads;
    return (k->nin + k->nout + 1) * (sizeof(void *) + sizeof(size_t));
}

static size_t skip_tokens(void **to, size_t *bytes, void *const *from, const KTensor *types, uint32_t n) {
    size_t count = 0;
    for (uint32_t i = 0; i < n; i++)
        if (types[i].dtype != DT_TOKEN) {
            to[count] = from[i];
            bytes[count++] = gp_bytes(&types[i]);
        }
    return count;
}

otrn_status gp_host_run(const GpCall *c) {
    const Kern *k = c->k;
    bool once;
    size_t n;
    const char *name = kern_host_name(k, &n, &once);
    if (once && c->comm && comm_number(c->comm))
        return OTRN_OK;
    if (!c->host || !c->host->call)
        return gp_fail(c, "the program calls a function of its host, which offers none");
    void **data = c->scratch;
    size_t *bytes = (size_t *)(data + k->nin + k->nout + 1);
    size_t nargs = skip_tokens(data, bytes, c->in, k->in, k->nin);
    otrn_host_call call = {.struct_size = sizeof call, .num_args = nargs, .args = (const void *const *)data, .arg_bytes = bytes,
                           .num_results = skip_tokens(data + nargs, bytes + nargs, c->out, k->out, k->nout),
                           .results = data + nargs, .result_bytes = bytes + nargs,
                           .why = c->why, .why_bytes = c->why_bytes};
    return c->host->call(c->host->arg, name, n, &call) ? OTRN_CHECK : OTRN_OK;
}
