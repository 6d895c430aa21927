// SPDX-License-Identifier: Apache-2.0
// overlap.c — results that lie on memory of others.
//
// The chip reads arguments until its last instruction and writes results from its first on, in any order. So a result has its memory alone, but
// for the argument it takes over, whose memory it then is to the byte. Arguments may overlap each other: nobody writes them.
#include "rt/exe.h"

#include <stdlib.h>

#define FEW 64 // values of a call that need no memory

typedef struct Range {
    const char *at, *end, *reach; // reach: the end of the arguments up to here
    uint32_t device, index;
    bool result;
} Range;

typedef struct Ranges {
    const otrn_exe *exe;
    Range *at; // by address
    size_t n;
} Ranges;

static int by_address(const void *x, const void *y) {
    const Range *a = x, *b = y;
    return a->at != b->at ? (a->at < b->at ? -1 : 1) : 0;
}

static void add(Ranges *r, const otrn_buffer *values, uint32_t n, uint32_t device, bool result) {
    for (uint32_t i = 0; i < n; i++)
        if (values[i].bytes)
            r->at[r->n++] = (Range){values[i].data, (const char *)values[i].data + values[i].bytes, NULL, device, i, result};
}

static bool may_share(const Ranges *r, const Range *a, const Range *b) {
    if (!a->result && !b->result)
        return true;
    const Range *result = a->result ? a : b, *arg = a->result ? b : a;
    return !arg->result && result->device == arg->device && result->at == arg->at && result->end == arg->end &&
           r->exe->art->results[result->index].alias == (int32_t)arg->index;
}

static otrn_status refuse(const Ranges *r, const Range *a, const Range *b, otrn_error *err) {
    const Range *one = a->result ? a : b, *other = a->result ? b : a;
    const ArtValue *x = &r->exe->art->results[one->index];
    const ArtValue *y = other->result ? &r->exe->art->results[other->index] : &r->exe->art->args[other->index];
    bool alias = !other->result && x->alias == (int32_t)other->index;
    return ctx_set(err, OTRN_ARGUMENT, NO_PLACE, "the memory of result %u%s%s%s overlaps that of %s %u%s%s%s%s", one->index, *x->name ? " (" : "", x->name,
                   *x->name ? ")" : "", other->result ? "result" : "argument", other->index, *y->name ? " (" : "", y->name, *y->name ? ")" : "",
                   alias ? ", which it takes over: it must be the same memory, or none of it" : "; only a result that takes over an argument may have its memory");
}

// Results come one behind the other, so only the last of them can reach what follows; arguments may lie on each other.
static otrn_status look(Ranges *r, otrn_error *err) {
    const Range *result = NULL;
    const char *reach = NULL; // the end of the arguments so far
    for (size_t i = 0; i < r->n; i++) {
        const Range *now = &r->at[i];
        if (result && result->end > now->at && !may_share(r, result, now))
            return refuse(r, result, now, err);
        for (size_t k = i; now->result && k > 0 && r->at[k - 1].reach > now->at; k--)
            if (!r->at[k - 1].result && r->at[k - 1].end > now->at && !may_share(r, &r->at[k - 1], now))
                return refuse(r, &r->at[k - 1], now, err);
        if (now->result)
            result = now;
        else if (!reach || now->end > reach)
            reach = now->end;
        r->at[i].reach = reach;
    }
    return OTRN_OK;
}

otrn_status exe_apart(const otrn_exe *exe, uint32_t devices, const otrn_buffer *const *args, const otrn_buffer *const *results, otrn_error *err) {
    const Artifact *art = exe->art;
    size_t most = ((size_t)art->nargs + art->nresults) * devices;
    Range few[FEW];
    Ranges r = {exe, most <= FEW ? few : malloc(most * sizeof *r.at), 0};
    if (!r.at)
        return ctx_set(err, OTRN_NOMEM, NO_PLACE, "no host memory to look at %zu arguments and results", most);
    for (uint32_t d = 0; d < devices; d++) {
        add(&r, args[d], art->nargs, d, false);
        add(&r, results[d], art->nresults, d, true);
    }
    qsort(r.at, r.n, sizeof *r.at, by_address);
    otrn_status s = look(&r, err);
    if (r.at != few)
        free(r.at);
    return s;
}
