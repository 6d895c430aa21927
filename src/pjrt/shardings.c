// SPDX-License-Identifier: Apache-2.0
// shardings.c — the shardings extension: how arguments and results lie on a program's devices.
//
// The answer is a serialised OpSharding for each: 1 type (0 replicated, 3 tiled, 6 all terms), 3 parts of each
// dimension, 4 devices by part, 6 set when the last entry of 3 counts devices with equal parts, 8 what
// the last entries of 3 are instead: 0 devices with equal parts, 6 terms that are not yet combined.
// A program of one device, or without results, has none to tell.
#include <stdlib.h>
#include <string.h>

#include "pjrt/pjrt.h"

static char *put_varint(char *at, uint64_t v) {
    for (; v > 0x7f; v >>= 7)
        *at++ = (char)(v | 0x80);
    *at++ = (char)v;
    return at;
}

// Packed numbers of one field. Every number is below 2^14, so its length is known beforehand.
static char *put_numbers(char *at, int field, const uint32_t *v, size_t n) {
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += v[i] > 0x7f ? 2 : 1;
    *at++ = (char)(field << 3 | 2);
    at = put_varint(at, bytes);
    for (size_t i = 0; i < n; i++)
        at = put_varint(at, v[i]);
    return at;
}

// text is "2,1+2|0,1,2,3", as artifact_verify left it; `at` has room for it.
char *pj_sharding_encode(char *at, const char *text, uint32_t devices) {
    if (!*text)
        return at; // all fields at their defaults: replicated
    uint32_t tiles[OTRN_MAX_RANK + 2], ids[OTRN_MAX_DEVICES], kinds[2], used = 1, terms = 1;
    size_t rank = 0, n = 0, nkinds = 0;
    char before = ',';
    for (const char *s = text; *s; s += *s != 0) {
        if (*s == '+' || *s == '|') { // a scalar has no parts
            before = *s;
            continue;
        }
        uint32_t v = (uint32_t)strtoul(s, (char **)&s, 10);
        if (before == '+')
            terms = v;
        else if (before == '|' && n < OTRN_MAX_DEVICES)
            ids[n++] = v;
        else if (before == ',' && rank < OTRN_MAX_RANK)
            used *= tiles[rank++] = v;
        before = *s == '+' || *s == '|' ? *s : before;
    }
    bool copies = used * terms < devices;
    if (copies) {
        tiles[rank++] = devices / (used * terms);
        kinds[nkinds++] = 0;
    }
    if (terms > 1) {
        tiles[rank++] = terms;
        kinds[nkinds++] = 6;
    }
    bool only_terms = terms == devices;
    *at++ = 1 << 3;
    *at++ = only_terms ? 6 : 3;
    if (only_terms)
        return at;
    at = put_numbers(at, 3, tiles, rank);
    at = put_numbers(at, 4, ids, n);
    if (terms > 1)
        return put_numbers(at, 8, kinds, nkinds);
    if (copies) {
        *at++ = 6 << 3;
        *at++ = 1;
    }
    return at;
}

static void print_one(Buf *out, const char *text, uint32_t devices) {
    const char *ids = strchr(text, '|');
    uint32_t used = 1;
    for (const char *s = text; ids && s < ids; s++)
        used *= (uint32_t)strtoul(s, (char **)&s, 10);
    if (!ids || used == 1)
        buf_puts(out, "{replicated}");
    else if (used < devices)
        buf_printf(out, "{devices=[%.*s,%u]%s last_tile_dim_replicate}", (int)(ids - text), text, devices / used, ids + 1);
    else
        buf_printf(out, "{devices=[%.*s]%s}", (int)(ids - text), text, ids + 1);
}

const char *pj_shardings_text(const PJRT_Executable *e, Arena *a) {
    Buf out = {.arena = a};
    buf_puts(&out, e->num_results > 1 ? "{" : "");
    for (size_t i = 0; i < e->num_results; i++) {
        const char *text = otrn_exe_result_sharding(e->exe, i);
        if (strchr(text, '+')) // terms not yet combined: HLO has no word for them
            return "";
        buf_puts(&out, i ? ", " : "");
        print_one(&out, text, e->partitions);
    }
    buf_puts(&out, e->num_results > 1 ? "}" : "");
    return buf_cstr(&out);
}

// Room for all encodings: a number takes no more bytes than its text, and each has a few of its own.
static char **shardings_make(const PJRT_Executable *e, bool results, size_t *sizes) {
    size_t n = results ? e->num_results : e->num_args, bytes = 0;
    const char *(*text)(const otrn_exe *, size_t) =
        results ? otrn_exe_result_sharding : otrn_exe_arg_sharding;
    for (size_t i = 0; i < n; i++)
        bytes += strlen(text(e->exe, i)) + 32;
    char **list = malloc((n + 1) * sizeof *list + bytes);
    if (!list)
        return NULL;
    char *at = (char *)(list + n + 1);
    for (size_t i = 0; i < n; i++) {
        list[i] = at;
        at = pj_sharding_encode(at, text(e->exe, i), e->partitions);
        sizes[i] = (size_t)(at - list[i]);
    }
    return list;
}

static PJRT_Error *exe_shardings(PJRT_Executable *e, bool results, size_t *n,
                                 const char *const **shardings, const size_t **sizes) {
    *n = results ? e->num_results : e->num_args;
    *shardings = NULL;
    *sizes = NULL;
    if (e->partitions == 1 || !*n) // jaxlib takes an empty list for a mistake
        return PJ_OK;
    pj_lock(e->client);
    if (!e->sharding_sizes[results])
        e->sharding_sizes[results] = calloc(*n + 1, sizeof(size_t));
    if (!e->shardings[results] && e->sharding_sizes[results])
        e->shardings[results] = shardings_make(e, results, e->sharding_sizes[results]);
    *shardings = (const char *const *)e->shardings[results];
    *sizes = e->sharding_sizes[results];
    pj_unlock(e->client);
    return *shardings ? PJ_OK : pj_error_nomem();
}

static PJRT_Error *param_shardings(PJRT_Shardings_PJRT_Executable_ParameterShardings_Args *args) {
    return exe_shardings(args->executable, false, &args->num_parameters, &args->shardings,
                         &args->sharding_sizes);
}

static PJRT_Error *output_shardings(PJRT_Shardings_PJRT_Executable_OutputShardings_Args *args) {
    return exe_shardings(args->executable, true, &args->num_outputs, &args->shardings,
                         &args->sharding_sizes);
}

const PJRT_Shardings_Extension pj_shardings_extension = {
    .base = {.struct_size = sizeof(PJRT_Shardings_Extension),
             .type = PJRT_Extension_Type_Shardings,
             .next = (PJRT_Extension_Base *)&pj_transfers_extension.base},
    .PJRT_Executable_ParameterShardings = param_shardings,
    .PJRT_Executable_OutputShardings = output_shardings,
};
