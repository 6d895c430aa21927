// SPDX-License-Identifier: Apache-2.0
// safetensors.c — heads of safetensors files, written and read.
#include "train/safetensors.h"

#include "base/dtype.h"
#include "base/json.h"

#define ALIGN 64               // of the first tensor
#define HEAD_MAX (100u << 20)

static const struct {
    int dtype;
    const char *name;
} types[] = {
    {DT_I1, "BOOL"}, {DT_UI8, "U8"}, {DT_I8, "I8"}, {DT_I16, "I16"}, {DT_UI16, "U16"}, {DT_F16, "F16"}, {DT_BF16, "BF16"}, {DT_I32, "I32"},
    {DT_UI32, "U32"}, {DT_F32, "F32"}, {DT_F64, "F64"}, {DT_I64, "I64"}, {DT_UI64, "U64"}, {DT_F8E4M3FN, "F8_E4M3"}, {DT_F8E5M2, "F8_E5M2"},
};
#define TYPE_COUNT (sizeof types / sizeof *types)

void safetensors_head(const Tensor *t, size_t count, Buf *out) {
    size_t start = out->n, offset = 0;
    put_u64(out, 0);
    buf_puts(out, "{");
    for (size_t i = 0; i < count; i++) {
        const char *type = "U8";
        for (size_t k = 0; k < TYPE_COUNT; k++)
            if (types[k].dtype == t[i].type.dtype)
                type = types[k].name;
        buf_puts(out, i ? "," : "");
        json_put(out, t[i].name);
        buf_printf(out, ":{\"dtype\":\"%s\",\"shape\":[", type);
        for (int d = 0; d < t[i].type.rank; d++)
            buf_printf(out, d ? ",%lld" : "%lld", (long long)t[i].type.dims[d]);
        buf_printf(out, "],\"data_offsets\":[%zu,%zu]}", offset, offset + t[i].bytes);
        offset += t[i].bytes;
    }
    buf_puts(out, "}");
    while ((out->n - start) % ALIGN)
        put_u8(out, ' ');
    le_store64(out->at + start, out->n - start - 8);
}

static int type_of(const char *name) {
    for (size_t k = 0; k < TYPE_COUNT; k++)
        if (!strcmp(types[k].name, name))
            return types[k].dtype;
    return DT_INVALID;
}

// A whole number from 0 to `most`, or raises.
static uint64_t whole(Ctx *ctx, const char *file, const Json *j, uint64_t most) {
    if (j->kind != JSON_NUMBER || !(j->number >= 0) || j->number > (double)most || j->number != (double)(uint64_t)j->number)
        ctx_fail(ctx, OTRN_PARSE, (Place){.file = file}, "a number in its head is no size");
    return (uint64_t)j->number;
}

static Tensor tensor_parse(Ctx *ctx, const char *file, const Json *j, const uint8_t *data, size_t size) {
    Tensor t = {.name = j->name};
    const Json *shape = json_need(ctx, file, j, "shape", JSON_LIST), *at = json_need(ctx, file, j, "data_offsets", JSON_LIST);
    t.type.dtype = type_of(json_need(ctx, file, j, "dtype", JSON_TEXT)->text);
    if (t.type.dtype == DT_INVALID || shape->n > OTRN_MAX_RANK || at->n != 2)
        ctx_fail(ctx, OTRN_PARSE, (Place){.file = file}, "tensor `%s` has a type, rank or place that we do not know", j->name);
    t.type.rank = (int)shape->n;
    uint64_t elems = 1;
    for (uint32_t i = 0; i < shape->n; i++) {
        t.type.dims[i] = (int64_t)whole(ctx, file, &shape->at[i], (uint64_t)1 << 40);
        elems *= (uint64_t)t.type.dims[i];
        if (elems > size)
            ctx_fail(ctx, OTRN_PARSE, (Place){.file = file}, "tensor `%s` is larger than the file", j->name);
    }
    uint64_t from = whole(ctx, file, &at->at[0], size), to = whole(ctx, file, &at->at[1], size);
    if (to < from || to - from != elems * otrn_dtype_bytes(t.type.dtype))
        ctx_fail(ctx, OTRN_PARSE, (Place){.file = file}, "tensor `%s` has other bytes than its shape", j->name);
    t.data = data + from, t.bytes = (size_t)(to - from);
    return t;
}

Tensor *safetensors_parse(Ctx *ctx, Arena *a, const char *file, const void *bytes, size_t size, size_t *count) {
    const uint8_t *p = bytes;
    uint64_t head = size >= 8 ? le_load64(p) : UINT64_MAX;
    if (head > HEAD_MAX || head > size - 8)
        ctx_fail(ctx, OTRN_PARSE, (Place){.file = file}, "no safetensors file, or it ends in its head");
    const Json *all = json_parse(ctx, a, file, p + 8, (size_t)head);
    if (all->kind != JSON_OBJECT)
        ctx_fail(ctx, OTRN_PARSE, (Place){.file = file}, "its head is no object");
    Tensor *out = ARENA_NEWN(a, Tensor, all->n + 1);
    *count = 0;
    for (uint32_t i = 0; i < all->n; i++)
        if (strcmp(all->at[i].name, "__metadata__"))
            out[(*count)++] = tensor_parse(ctx, file, &all->at[i], p + 8 + head, size - 8 - (size_t)head);
    return out;
}
