// SPDX-License-Identifier: Apache-2.0
// options.c — a reader for the few fields we need of a serialised CompileOptionsProto.
//
// Protocol buffers are a sequence of fields: a varint (number << 3 | wire type), then a varint,
// eight bytes, a length and that many bytes, or four bytes. Fields we do not know are skipped.
// Used here:
//   CompileOptionsProto          3 build options, 7 overrides (map: 1 name, 2 value)
//   ExecutableBuildOptionsProto  4 num_replicas, 5 num_partitions, 9 device assignment
//   DeviceAssignmentProto        3 computation_devices, each: 1 replica_device_ids (packed)
//   override value               1 text, 2 truth value, 3 whole number, 4 real number
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pjrt/pjrt.h"

typedef struct Wire {
    const uint8_t *at, *end;
    bool bad;
} Wire;

typedef struct Field {
    uint32_t number;
    int type;         // 0 varint, 1 eight bytes, 2 bytes, 5 four bytes
    uint64_t value;   // types 0, 1, 5
    Wire bytes;       // type 2
} Field;

static uint64_t wire_varint(Wire *w) {
    uint64_t v = 0;
    for (int shift = 0; shift < 64 && w->at < w->end; shift += 7) {
        uint8_t b = *w->at++;
        v |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80))
            return v;
    }
    w->bad = true;
    return 0;
}

static uint64_t wire_fixed(Wire *w, size_t n) {
    uint64_t v = 0;
    if ((size_t)(w->end - w->at) < n) {
        w->bad = true;
        return 0;
    }
    for (size_t i = 0; i < n; i++)
        v |= (uint64_t)w->at[i] << (8 * i);
    w->at += n;
    return v;
}

static bool wire_next(Wire *w, Field *f) { // false at the end or when malformed
    if (w->bad || w->at == w->end)
        return false;
    uint64_t tag = wire_varint(w);
    f->number = (uint32_t)(tag >> 3);
    f->type = (int)(tag & 7);
    switch (f->type) {
    case 0: f->value = wire_varint(w); break;
    case 1: f->value = wire_fixed(w, 8); break;
    case 5: f->value = wire_fixed(w, 4); break;
    case 2: {
        uint64_t n = wire_varint(w);
        if (n > (uint64_t)(w->end - w->at)) {
            w->bad = true;
            break;
        }
        f->bytes = (Wire){w->at, w->at + n, false};
        w->at += n;
        break;
    }
    default: w->bad = true;
    }
    return !w->bad;
}

// Appends the ids of one message to the list, which has room for PJ_MAX_DEVICES.
static size_t parse_devices(Wire w, int64_t *ids, size_t n, bool *bad) {
    Field f;
    while (wire_next(&w, &f)) {
        if (f.number != 1)
            continue;
        if (f.type == 0 && n < PJ_MAX_DEVICES)
            ids[n++] = (int64_t)f.value;
        while (f.type == 2 && f.bytes.at < f.bytes.end && !f.bytes.bad && n < PJ_MAX_DEVICES)
            ids[n++] = (int64_t)wire_varint(&f.bytes);
        *bad |= f.type == 2 && f.bytes.bad;
    }
    *bad |= w.bad;
    return n;
}

// The message has a list of replicas for each partition; ours goes by replica first.
static void parse_assignment(Wire w, CompileOptions *o, bool *bad) {
    Field f;
    int64_t *ids = malloc(2 * PJ_MAX_DEVICES * sizeof *ids), *sorted = ids + PJ_MAX_DEVICES;
    size_t n = 0, rows = 0, replicas = 0;
    while (ids && wire_next(&w, &f))
        if (f.number == 3 && f.type == 2) {
            size_t more = parse_devices(f.bytes, ids, n, bad);
            *bad |= rows && more - n != replicas;
            replicas = more - n;
            n = more;
            rows++;
        }
    *bad |= w.bad || !ids;
    for (size_t i = 0; i < n && !*bad; i++)
        sorted[i % replicas * rows + i / replicas] = ids[i];
    free(o->device_ids);
    o->device_ids = NULL;
    o->num_devices = 0;
    if (n && !*bad && (o->device_ids = malloc(n * sizeof *ids))) {
        memcpy(o->device_ids, sorted, n * sizeof *ids);
        o->num_devices = n;
    }
    free(ids);
}

static void parse_build(Wire w, CompileOptions *o, bool *bad) {
    Field f;
    while (wire_next(&w, &f)) {
        if (f.number == 4 && f.type == 0)
            o->num_replicas = (int64_t)f.value;
        else if (f.number == 5 && f.type == 0)
            o->num_partitions = (int64_t)f.value;
        else if (f.number == 12) // a flag, or packed flags
            o->open_results |= f.type == 2 ? f.bytes.at < f.bytes.end && memchr(f.bytes.at, 1, (size_t)(f.bytes.end - f.bytes.at)) : f.value != 0;
        else if (f.number == 9 && f.type == 2)
            parse_assignment(f.bytes, o, bad);
    }
    *bad |= w.bad;
}

// Appends the text of a value to `at`, NUL included; there is room for the longest number.
static char *print_value(Wire w, char *at, bool *bad) {
    Field f;
    int n = 0;
    *at = 0;
    while (wire_next(&w, &f)) {
        if (f.number == 1 && f.type == 2) {
            n = (int)(f.bytes.end - f.bytes.at);
            memcpy(at, f.bytes.at, (size_t)n);
            at[n] = 0;
        } else if (f.number == 2 && f.type == 0) {
            n = sprintf(at, "%s", f.value ? "on" : "off");
        } else if (f.number == 3 && f.type == 0) {
            n = sprintf(at, "%lld", (long long)f.value);
        } else if (f.number == 4 && f.type == 1) {
            double d;
            memcpy(&d, &f.value, sizeof d);
            n = sprintf(at, "%.17g", d);
        }
    }
    *bad |= w.bad;
    return at + n + 1;
}

// Settings of another compiler that programs pass to whatever compiles them: how it searches, what it dumps.
// None changes a result.
static bool is_for_xla(const char *name, size_t n) {
    static const char *const plain[] = {"exec_time_optimization_effort", "memory_fitting_effort",
                                        "optimization_level", "memory_fitting_level"};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (strlen(plain[i]) == n && !memcmp(plain[i], name, n))
            return true;
    return n > 4 && !memcmp(name, "xla_", 4);
}

// JAX's programs and tests look for the first words, which are XLA's.
static PJRT_Error *no_such_option(const char *name, size_t size) {
    char typed[64];
    const char *near = NULL;
    snprintf(typed, sizeof typed, "%.*s", (int)(size < sizeof typed ? size : sizeof typed - 1), name);
    for (int i = 0; i < OPT_COUNT; i++)
        near = opt_nearer(typed, near, opt_rows[i].name);
    return pj_error(PJRT_Error_Code_INVALID_ARGUMENT, "No such compile option: '%.*s'; %s%s%s", (int)size, name,
                    near ? "did you mean '" : "`otrn info options` lists opentrn's", near ? near : "", near ? "'?" : "");
}

// `*text` has room for every override: see text_bytes.
static PJRT_Error *parse_override(Wire w, CompileOptions *o, char **text, bool *bad) {
    Field f;
    Wire name = {0}, value = {0};
    while (wire_next(&w, &f)) {
        if (f.number == 1 && f.type == 2)
            name = f.bytes;
        else if (f.number == 2 && f.type == 2)
            value = f.bytes;
    }
    *bad |= w.bad;
    size_t name_size = (size_t)(name.end - name.at);
    int id = opt_find((const char *)name.at, name_size);
    if (id < 0 && is_for_xla((const char *)name.at, name_size))
        return PJ_OK;
    if (id < 0)
        return no_such_option((const char *)name.at, name_size);
    if (o->num_overrides == PJ_MAX_OVERRIDES)
        return pj_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "opentrn: more than %d compiler options", PJ_MAX_OVERRIDES);
    o->overrides[o->num_overrides++] = (otrn_option){opt_rows[id].name, *text};
    *text = print_value(value, *text, bad);
    return PJ_OK;
}

static size_t text_bytes(Wire w) { // an upper bound for all override texts
    size_t n = 0;
    Field f;
    while (wire_next(&w, &f))
        if (f.number == 7 && f.type == 2)
            n += (size_t)(f.bytes.end - f.bytes.at) + 48;
    return n;
}

PJRT_Error *pj_options_parse(const void *bytes, size_t size, CompileOptions *o) {
    *o = (CompileOptions){.num_replicas = 1, .num_partitions = 1};
    Wire w = {bytes, (const uint8_t *)bytes + size, false};
    char *text = o->text = malloc(text_bytes(w) + 1);
    if (!text)
        return pj_error_nomem();
    bool bad = false;
    Field f;
    PJRT_Error *e = PJ_OK;
    while (!e && wire_next(&w, &f)) {
        if (f.number == 3 && f.type == 2)
            parse_build(f.bytes, o, &bad);
        else if (f.number == 7 && f.type == 2)
            e = parse_override(f.bytes, o, &text, &bad);
    }
    if (!e && (w.bad || bad))
        e = pj_error(PJRT_Error_Code_INVALID_ARGUMENT,
                     "opentrn: the compile options are malformed");
    if (e)
        pj_options_fini(o);
    return e;
}

void pj_options_fini(CompileOptions *o) {
    free(o->text);
    free(o->device_ids);
    o->text = NULL;
    o->device_ids = NULL;
}
