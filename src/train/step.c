// SPDX-License-Identifier: Apache-2.0
// step.c — a step that JAX or PyTorch exported: manifest.json and the program beside it.
#include "train/step.h"

#include <string.h>

#include "base/file.h"
#include "base/json.h"

static const char *const kind_names[PORT_KINDS] = {
#define X(kind, name) name,
    PORT_ROWS(X)
#undef X
};

static const char *beside(Ctx *ctx, Arena *a, const char *manifest, const char *folder, const char *name) {
    if (strchr(name, '/') || !*name)
        ctx_fail(ctx, OTRN_PARSE, (Place){.file = manifest}, "`%s` is no file of this folder", name);
    return arena_printf(a, "%s/%s", folder, name);
}

static Port port_parse(Ctx *ctx, Arena *a, const char *name, const char *folder, const Json *j) {
    Port p = {.kind = PORT_KINDS, .result = -1, .name = json_need(ctx, name, j, "name", JSON_TEXT)->text};
    const char *kind = json_need(ctx, name, j, "kind", JSON_TEXT)->text;
    for (int i = 0; i < PORT_KINDS; i++)
        if (!strcmp(kind_names[i], kind))
            p.kind = (PortKind)i;
    if (p.kind == PORT_KINDS)
        ctx_fail(ctx, OTRN_PARSE, (Place){.file = name}, "argument `%s` is of kind `%s`, which we do not know", p.name, kind);
    const Json *file = json_get(j, "file");
    if (file && file->kind == JSON_TEXT)
        p.file = beside(ctx, a, name, folder, file->text);
    return p;
}

static void result_parse(Ctx *ctx, const char *name, const Json *j, int64_t at, Step *out) {
    const Json *replaces = json_get(j, "replaces");
    if (replaces && replaces->kind == JSON_NUMBER) {
        if (!(replaces->number >= 0 && replaces->number < (double)out->nargs))
            ctx_fail(ctx, OTRN_PARSE, (Place){.file = name}, "result %lld replaces an argument that is not there", (long long)at);
        out->args[(size_t)replaces->number].result = at;
    } else if (!strcmp(json_need(ctx, name, j, "kind", JSON_TEXT)->text, "loss") && out->loss < 0) {
        out->loss = at;
    }
}

void step_parse(Ctx *ctx, Arena *a, const char *name, const char *folder, const void *bytes, size_t size, Step *out) {
    const Json *m = json_parse(ctx, a, name, bytes, size);
    const Json *args = json_need(ctx, name, m, "arguments", JSON_LIST), *results = json_need(ctx, name, m, "results", JSON_LIST);
    *out = (Step){.name = beside(ctx, a, name, folder, json_need(ctx, name, m, "program", JSON_TEXT)->text),
                  .args = ARENA_NEWN(a, Port, args->n + 1), .nargs = args->n, .nresults = results->n, .loss = -1, .norm = -1};
    for (uint32_t i = 0; i < args->n; i++)
        out->args[i] = port_parse(ctx, a, name, folder, &args->at[i]);
    for (uint32_t i = 0; i < results->n; i++)
        result_parse(ctx, name, &results->at[i], i, out);
    if (out->loss < 0)
        ctx_fail(ctx, OTRN_PARSE, (Place){.file = name}, "no result is the loss");
}

void step_read(Ctx *ctx, Arena *a, const char *folder, Step *out) {
    const char *path = arena_printf(a, "%s/manifest.json", folder);
    size_t size;
    ctx_hint(ctx, "a folder that opentrn.export_step or opentrn.torch.export_step wrote; for a model of ours give --model and no folder");
    const void *bytes = file_read(ctx, a, path, &size);
    ctx->err.hint[0] = 0;
    step_parse(ctx, a, path, folder, bytes, size, out);
    out->program = file_read(ctx, a, out->name, &out->program_bytes);
}
