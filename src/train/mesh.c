// SPDX-License-Identifier: Apache-2.0
// mesh.c — values whole, and in parts on devices: a step that was exported over a mesh has its parameters and its batch cut.
//
// Files, data and checkpoints have whole values, so neither knows how many devices there are or in which processes. Of a step on one
// device, or one whose devices share batches, the first device's value is the whole.
#include <string.h>

#include "train/train.h"

static void devices_check(Train *t, int64_t written) {
    const Ranks *r = &t->ranks;
    if (written == r->devices)
        return;
    if (written == 1)
        ctx_hint(t->ctx, "export it over a mesh: state and batch with a NamedSharding each, of PyTorch export_step(…, mesh={\"dp\": %lld}, plan=…)",
                 (long long)r->devices);
    else if (written % r->world == 0)
        ctx_hint(t->ctx, "--devices=%lld for each process", (long long)(written / r->world));
    else
        ctx_hint(t->ctx, "start as many processes as share %lld devices evenly", (long long)written);
    ctx_fail(t->ctx, OTRN_USAGE, (Place){.file = t->step.name}, "the step was exported for %lld device%s, and this run has %lld", (long long)written,
             written == 1 ? "" : "s", (long long)r->devices);
}

static void results_check(Train *t) {
    for (size_t i = 0; i < t->step.nargs; i++) {
        const Port *p = &t->step.args[i];
        if (!port_lasts(p) || !strcmp(otrn_exe_arg_sharding(t->exe, i), otrn_exe_result_sharding(t->exe, (size_t)p->result)))
            continue;
        ctx_hint(t->ctx, "state that a step gives back must be cut like the state it takes (out_shardings)");
        ctx_fail(t->ctx, OTRN_ARGUMENT, (Place){.file = t->step.name}, "the new `%s` lies on the devices in another way than the one before", p->name);
    }
    if (*otrn_exe_result_sharding(t->exe, (size_t)t->step.loss))
        ctx_fail(t->ctx, OTRN_ARGUMENT, (Place){.file = t->step.name}, "the loss is not whole on every device");
}

void mesh_find(Train *t) {
    int64_t written = otrn_exe_partitions(t->exe);
    t->mesh = written > 1;
    if (t->recipe.folder) {
        if (!t->ranks.net && !t->ranks.said)
            t->ranks.here = t->ranks.devices = t->opt.devices = written;
        devices_check(t, written);
        results_check(t);
    }
    t->lies = ARENA_NEWN(t->arena, Lie, t->step.nargs + 1);
    for (size_t i = 0; i < t->step.nargs; i++) {
        t->lies[i] = lie_arg(t->ctx, t->arena, t->exe, i);
        t->step.args[i].type = t->lies[i].whole;
    }
}

void mesh_spread(Train *t, size_t arg) {
    for (int64_t d = 0; d < t->opt.devices; d++)
        lie_take(&t->lies[arg], (uint32_t)(t->ranks.first + d), t->whole[arg].data, t->args[(size_t)d * t->step.nargs + arg].data);
}

static bool is_cut(const Train *t, size_t arg) { return port_lasts(&t->step.args[arg]) && t->lies[arg].slot; }

size_t mesh_pack_bytes(const Train *t) {
    size_t most = 0;
    for (size_t i = 0; i < t->step.nargs && t->ranks.net; i++)
        if (is_cut(t, i) && otrn_type_bytes(&t->lies[i].part) > most)
            most = otrn_type_bytes(&t->lies[i].part);
    return most * (size_t)t->ranks.devices;
}

void mesh_collect(Train *t) {
    int64_t first = t->ranks.first, end = first + t->opt.devices;
    for (size_t i = 0, state = 0; i < t->step.nargs; state += port_lasts(&t->step.args[i]), i++) {
        if (!is_cut(t, i))
            continue;
        size_t bytes = t->args[i].bytes;
        uint32_t to = save_owner(t, state);
        for (int64_t d = 0; d < t->opt.devices; d++) {
            const void *part = t->args[(size_t)d * t->step.nargs + i].data;
            lie_put(&t->lies[i], (uint32_t)(first + d), part, t->whole[i].data);
            if (t->ranks.rank != to)
                memcpy(t->pack + (size_t)d * bytes, part, bytes);
        }
        ranks_gather(t->ctx, &t->ranks, to, t->pack, bytes);
        for (int64_t d = 0; d < t->ranks.devices && t->ranks.rank == to; d++)
            if (d < first || d >= end)
                lie_put(&t->lies[i], (uint32_t)d, t->pack + (size_t)d * bytes, t->whole[i].data);
    }
}
