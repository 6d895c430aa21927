// SPDX-License-Identifier: Apache-2.0
// tensors.c — arguments from .npy files and results to them, for run and eval alike.
#include "tools/tools.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/dtype.h"
#include "base/file.h"
#include "base/npy.h"

#define SHOW_ELEMS 8 // values printed per result

static void type_print(Buf *b, int dtype, int rank, const int64_t *dims) {
    buf_puts(b, "tensor<");
    for (int d = 0; d < rank; d++)
        buf_printf(b, "%lldx", (long long)dims[d]);
    buf_printf(b, "%s>", dtype_row(dtype)->name);
}

// "tensor<2x3xf32>"
static const char *type_text(Arena *a, const otrn_type *type) {
    Buf b = {.arena = a};
    type_print(&b, type->dtype, type->rank, type->dims);
    return buf_cstr(&b);
}

static const char *npy_text(Arena *a, const Npy *npy) {
    if (npy->dtype != DT_INVALID) {
        otrn_type type = {npy->dtype, npy->rank, {0}};
        memcpy(type.dims, npy->dims, sizeof type.dims);
        return type_text(a, &type);
    }
    Buf b = {.arena = a};
    buf_puts(&b, "tensor<");
    for (int d = 0; d < npy->rank; d++)
        buf_printf(&b, "%lldx", (long long)npy->dims[d]);
    buf_printf(&b, "void%zu>", npy->elem_bytes * 8);
    return buf_cstr(&b);
}

// numpy's bytes may stand for the narrower integers it lacks.
static bool is_narrow_in_bytes(const Npy *npy, int want) {
    const DtypeRow *row = dtype_row(want);
    return dtype_is_int(want) && row->bits < 8 && npy->dtype == (row->cls == DC_SINT ? DT_I8 : DT_UI8);
}

// A raw void of the right width stands for types numpy lacks.
static bool dtype_agrees(const Npy *npy, int want) {
    if (is_narrow_in_bytes(npy, want) || npy->dtype == want || (npy->dtype == DT_INVALID && npy->elem_bytes == dtype_bytes(want)))
        return true;
    return (want == DT_INDEX && npy->dtype == DT_I64) || (want == DT_TF32 && npy->dtype == DT_F32);
}

// "argument 1 (params['w'])"
static const char *arg_text(Arena *a, const ToolValue *values, size_t i) {
    return *values[i].name ? arena_printf(a, "argument %zu (%s)", i, values[i].name) : arena_printf(a, "argument %zu", i);
}

bool tensors_are_named(const Tool *t) {
    for (uint32_t i = 0; i < t->inputs.n; i++)
        if (t->inputs.at[i].name)
            return true;
    return false;
}

// The argument an input names. Raises when there is none, or more than one.
static size_t arg_find(Tool *t, const ToolInput *input, const ToolValue *values, size_t count) {
    const char *near = NULL;
    size_t found = count;
    for (size_t i = 0; i < count; i++) {
        near = *values[i].name ? opt_nearer(input->name, near, values[i].name) : near;
        if (strcmp(values[i].name, input->name))
            continue;
        if (found < count)
            ctx_fail(t->ctx, OTRN_ARGUMENT, (Place){.file = t->words.at[0]}, "arguments %zu and %zu are both called '%s': give files in order",
                     found, i, input->name);
        found = i;
    }
    if (found < count)
        return found;
    if (near)
        ctx_hint(t->ctx, "did you mean '%s'?", near);
    ctx_fail(t->ctx, OTRN_ARGUMENT, (Place){.file = t->words.at[0]}, "no argument is called '%s'", input->name);
}

// Puts the files in the order of the arguments and forgets the names.
static void tensors_order(Tool *t, const ToolValue *values, size_t count) {
    if (!tensors_are_named(t))
        return;
    ToolInput *placed = ARENA_NEWN(t->arena, ToolInput, count + 1);
    size_t next = 0;
    for (uint32_t i = 0; i < t->inputs.n; i++) {
        const ToolInput *in = &t->inputs.at[i];
        if (!in->name)
            continue;
        ToolInput *place = &placed[arg_find(t, in, values, count)];
        if (place->path)
            ctx_fail(t->ctx, OTRN_ARGUMENT, (Place){.file = in->path}, "two files for the argument '%s'", in->name);
        place->path = in->path;
    }
    for (uint32_t i = 0; i < t->inputs.n; i++) { // the others take what is left, in order
        if (t->inputs.at[i].name)
            continue;
        while (next < count && placed[next].path)
            next++;
        if (next == count)
            ctx_fail(t->ctx, OTRN_ARGUMENT, (Place){.file = t->inputs.at[i].path}, "no argument is left for this file");
        placed[next].path = t->inputs.at[i].path;
    }
    for (size_t i = 0; i < count; i++)
        if (!placed[i].path)
            ctx_fail(t->ctx, OTRN_ARGUMENT, (Place){.file = t->words.at[0]}, "%s, %s, has no --input file", arg_text(t->arena, values, i),
                     type_text(t->arena, &values[i].type));
    t->inputs.at = placed, t->inputs.n = t->inputs.cap = (uint32_t)count;
    t->npys = NULL;
}

// Reads the --input files.
static void tensors_load(Tool *t) {
    if (t->npys)
        return;
    t->npys = ARENA_NEWN(t->arena, Npy, t->inputs.n + 1);
    for (uint32_t i = 0; i < t->inputs.n; i++)
        npy_read(t->ctx, t->arena, t->inputs.at[i].path, &t->npys[i]);
}

const otrn_type *tensors_types(Tool *t) {
    tensors_load(t);
    otrn_type *types = ARENA_NEWN(t->arena, otrn_type, t->inputs.n + 1);
    for (uint32_t i = 0; i < t->inputs.n; i++) {
        types[i] = (otrn_type){.dtype = t->npys[i].dtype, .rank = t->npys[i].rank};
        memcpy(types[i].dims, t->npys[i].dims, sizeof types[i].dims);
    }
    return types;
}

const void *const *tensors_values(Tool *t) {
    tensors_load(t);
    const void **values = ARENA_NEWN(t->arena, const void *, t->inputs.n + 1);
    for (uint32_t i = 0; i < t->inputs.n; i++)
        if (t->npys[i].rank == 0 && dtype_is_int(t->npys[i].dtype))
            values[i] = t->npys[i].data;
    return values;
}

static void *tensor_read(Tool *t, size_t i, const ToolValue *values) {
    const otrn_type *want = &values[i].type;
    const char *path = t->inputs.at[i].path;
    Npy npy = t->npys[i];
    bool same = npy.rank == want->rank;
    for (int d = 0; d < want->rank && same; d++)
        same = npy.dims[d] == want->dims[d];
    if (!same || !dtype_agrees(&npy, want->dtype)) {
        const char *has = npy_text(t->arena, &npy), *wants = type_text(t->arena, want);
        ctx_fail(t->ctx, OTRN_ARGUMENT, (Place){.file = path},
                 "%s is %s, the file holds %s: wrong %s", arg_text(t->arena, values, i), wants, has,
                 same ? "type" : "shape");
    }
    if (dtype_row(want->dtype)->bits < 8 && npy.dtype != want->dtype) { // ml_dtypes leaves the top bits as they come
        uint8_t *held = arena_dup(t->arena, npy.data, npy.bytes);
        dtype_canonicalise(want->dtype, held, npy.bytes);
        if (is_narrow_in_bytes(&npy, want->dtype) && memcmp(held, npy.data, npy.bytes))
            ctx_fail(t->ctx, OTRN_ARGUMENT, (Place){.file = path}, "%s is %s, the file holds numbers beyond it",
                     arg_text(t->arena, values, i), type_text(t->arena, want));
        return held;
    }
    return npy.data;
}

otrn_buffer *tensors_read(Tool *t, const ToolValue *values, size_t count) {
    tensors_order(t, values, count);
    if (t->inputs.n != count) {
        Buf b = {.arena = t->arena};
        for (size_t i = 0; i < count && i < 8; i++) {
            buf_puts(&b, i ? ", " : "give one --input=FILE.npy each for: ");
            if (*values[i].name)
                buf_printf(&b, "%s ", values[i].name);
            type_print(&b, values[i].type.dtype, values[i].type.rank, values[i].type.dims);
        }
        if (count)
            ctx_hint(t->ctx, "%s%s", buf_cstr(&b), count > 8 ? ", …" : "");
        ctx_fail(t->ctx, OTRN_ARGUMENT, (Place){.file = t->words.at[0]},
                 "the program takes %zu argument%s, %u given", count, count == 1 ? "" : "s",
                 t->inputs.n);
    }
    tensors_load(t);
    otrn_buffer *data = ARENA_NEWN(t->arena, otrn_buffer, count + 1);
    for (size_t i = 0; i < count; i++)
        data[i] = (otrn_buffer){tensor_read(t, i, values), otrn_type_bytes(&values[i].type)};
    return data;
}

otrn_buffer *tensors_make(Tool *t, const ToolValue *values, size_t count) {
    otrn_buffer *data = ARENA_NEWN(t->arena, otrn_buffer, count + 1);
    for (size_t i = 0; i < count; i++)
        data[i] = (otrn_buffer){arena_zalloc(t->arena, otrn_type_bytes(&values[i].type) + 1), otrn_type_bytes(&values[i].type)};
    return data;
}

void tensors_output_check(Tool *t) {
    const char *dir = t->opt.val[OPT_OUTPUT];
    if (!*dir)
        return;
    char *at = arena_strndup(t->arena, dir, strlen(dir));
    struct stat st;
    while (stat(at, &st) != 0 && errno == ENOENT) { // the nearest part that is there
        char *slash = strrchr(at, '/');
        if (!slash)
            at = ".";
        else if (slash == at)
            at[1] = 0;
        else
            *slash = 0;
    }
    if (stat(at, &st) == 0 && !S_ISDIR(st.st_mode))
        errno = ENOTDIR;
    else if (access(at, W_OK | X_OK) == 0)
        return;
    ctx_fail(t->ctx, OTRN_IO, (Place){.file = dir}, "cannot write results there: %s",
             strerror(errno));
}

static void value_print(int dtype, const uint8_t *p) {
    size_t bytes = dtype_bytes(dtype);
    if (dtype == DT_I1)
        printf(" %s", *p ? "true" : "false");
    else if (dtype_is_float(dtype))
        printf(" %.6g", dtype_to_f64(dtype, p));
    else if (dtype_is_complex(dtype)) {
        int part = dtype == DT_C64 ? DT_F32 : DT_F64;
        printf(" (%.6g,%.6g)", dtype_to_f64(part, p), dtype_to_f64(part, p + bytes / 2));
    } else if (dtype == DT_UI64)
        printf(" %llu", (unsigned long long)dtype_to_i64(dtype, p));
    else
        printf(" %lld", (long long)dtype_to_i64(dtype, p));
}

static void result_print(Tool *t, size_t i, const otrn_type *type, const uint8_t *data) {
    if (dtype_bytes(type->dtype) == 0) {
        printf("result %zu: token\n", i);
        return;
    }
    size_t elems = otrn_type_bytes(type) / dtype_bytes(type->dtype);
    printf("result %zu: %s:", i, type_text(t->arena, type));
    for (size_t e = 0; e < elems && e < SHOW_ELEMS; e++)
        value_print(type->dtype, data + e * dtype_bytes(type->dtype));
    printf(elems > SHOW_ELEMS ? " …\n" : "\n");
}

void tensors_write(Tool *t, const ToolValue *values, size_t count, const otrn_buffer *results) {
    const char *dir = t->opt.val[OPT_OUTPUT];
    if (*dir)
        dir_make(t->ctx, dir);
    for (size_t i = 0; i < count; i++) {
        const otrn_type *type = &values[i].type;
        if (*dir && dtype_bytes(type->dtype))
            npy_write(t->ctx, arena_printf(t->arena, "%s/result_%zu.npy", dir, i), type->dtype, type->rank, type->dims,
                      results[i].data);
        result_print(t, i, type, results[i].data);
    }
}
