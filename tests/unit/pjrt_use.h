// SPDX-License-Identifier: Apache-2.0
// pjrt_use.h — the plugin used through its table, for tests: calls that must succeed, errors that are wanted,
// arrays up and down, programs compiled and run.
#ifndef OTRN_TESTS_PJRT_USE_H
#define OTRN_TESTS_PJRT_USE_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pjrt/pjrt_abi.h"

static const PJRT_Api *api; // set once in main
static int failures;

static inline void check(const char *name, bool ok, const char *why) {
    if (ok)
        printf("ok %s\n", name);
    else
        printf("FAIL %s: %s\n", name, why);
    failures += !ok;
}

#define ARGS(name, ...)                                                                            \
    ((PJRT_##name##_Args){.struct_size = sizeof(PJRT_##name##_Args), __VA_ARGS__})
// Calls a function that must succeed.
#define CALL(name, args) good(#name, api->name(args))
#define FAILS(name, args, want, text) fails(name, (PJRT_Error *)(args), want, text)

static inline void good(const char *name, PJRT_Error *e) {
    if (!e)
        return;
    PJRT_Error_Message_Args m = ARGS(Error_Message, .error = e);
    api->Error_Message(&m);
    printf("FAIL %s: %.*s\n", name, (int)m.message_size, m.message);
    exit(1);
}

static inline void fails(const char *name, PJRT_Error *e, PJRT_Error_Code want, const char *text) {
    char why[512] = "no error";
    bool ok = false;
    if (e) {
        PJRT_Error_Message_Args m = ARGS(Error_Message, .error = e);
        PJRT_Error_GetCode_Args c = ARGS(Error_GetCode, .error = e);
        api->Error_Message(&m);
        CALL(Error_GetCode, &c);
        PJRT_Error_ForEachPayload_Args p = ARGS(Error_ForEachPayload, .error = e);
        CALL(Error_ForEachPayload, &p);
        const char *direct;
        size_t direct_size;
        const PJRT_Error_FunctionTable *table = *(const PJRT_Error_FunctionTable **)e;
        table->message(e, &direct, &direct_size);
        snprintf(why, sizeof why, "code %d, text %.*s", (int)c.code, (int)m.message_size,
                 m.message);
        ok = c.code == want && strstr(why, text) && direct == m.message &&
             table->get_code(e) == c.code;
        api->Error_Destroy(&ARGS(Error_Destroy, .error = e));
    }
    check(name, ok, why);
}

// ---- helpers

static inline PJRT_Client *client_make(int64_t devices) {
    PJRT_NamedValue options[2] = {
        {.name = "devices", .name_size = 7, .type = PJRT_NamedValue_kInt64, .int64_value = devices},
        {.name = "ml_framework_name", .name_size = 17, .type = PJRT_NamedValue_kString,
         .string_value = "none", .value_size = 4}};
    PJRT_Client_Create_Args a = ARGS(Client_Create, .create_options = options, .num_options = 2);
    CALL(Client_Create, &a);
    return a.client;
}

static inline void client_free(PJRT_Client *c) {
    PJRT_Client_Destroy_Args a = ARGS(Client_Destroy, .client = c);
    CALL(Client_Destroy, &a);
}

static inline PJRT_Buffer *upload(PJRT_Client *c, PJRT_Buffer_Type type, const void *data,
                           const int64_t *dims, size_t rank, const int64_t *strides) {
    PJRT_Client_BufferFromHostBuffer_Args a =
        ARGS(Client_BufferFromHostBuffer, .client = c, .data = data, .type = type, .dims = dims,
             .num_dims = rank, .byte_strides = strides, .num_byte_strides = strides ? rank : 0);
    CALL(Client_BufferFromHostBuffer, &a);
    PJRT_Event_Destroy_Args d = ARGS(Event_Destroy, .event = a.done_with_host_buffer);
    CALL(Event_Destroy, &d);
    return a.buffer;
}

static inline PJRT_Buffer *upload_f32(PJRT_Client *c, const float *data, int64_t n) {
    return upload(c, PJRT_Buffer_Type_F32, data, &n, 1, NULL);
}

static inline void buffer_free(PJRT_Buffer *b) {
    PJRT_Buffer_Destroy_Args a = ARGS(Buffer_Destroy, .buffer = b);
    CALL(Buffer_Destroy, &a);
}

static inline bool is_deleted(PJRT_Buffer *b) {
    PJRT_Buffer_IsDeleted_Args a = ARGS(Buffer_IsDeleted, .buffer = b);
    CALL(Buffer_IsDeleted, &a);
    return a.is_deleted;
}

static inline void *address(PJRT_Buffer *b) {
    PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args a =
        ARGS(Buffer_OpaqueDeviceMemoryDataPointer, .buffer = b);
    CALL(Buffer_OpaqueDeviceMemoryDataPointer, &a);
    return a.device_memory_ptr;
}

static inline void download(PJRT_Buffer *b, PJRT_Buffer_MemoryLayout *layout, void *dst, size_t size) {
    PJRT_Buffer_ToHostBuffer_Args a =
        ARGS(Buffer_ToHostBuffer, .src = b, .host_layout = layout, .dst = dst, .dst_size = size);
    CALL(Buffer_ToHostBuffer, &a);
    PJRT_Event_Await_Args w = ARGS(Event_Await, .event = a.event);
    CALL(Event_Await, &w);
    PJRT_Event_Destroy_Args d = ARGS(Event_Destroy, .event = a.event);
    CALL(Event_Destroy, &d);
}

static inline const PJRT_Api *plugin_load(void) {
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);
    for (int up = 0; up < 3 && n > 0; up++) // BUILD/tests/unit/pjrt_test
        while (n > 0 && path[--n] != '/')
            ;
    strcpy(path + (n > 0 ? n : 0), "/libotrn.so");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const PJRT_Api *(*get)(void) = NULL;
    if (library)
        *(void **)&get = dlsym(library, "GetPjrtApi");
    if (!get)
        printf("FAIL load: %s\n", dlerror());
    return get ? get() : NULL;
}

static inline PJRT_Error *compile(PJRT_Client *c, const char *text, const char *format,
                           const void *options, size_t options_size, PJRT_LoadedExecutable **out) {
    PJRT_Program p = {.struct_size = sizeof p, .code = (char *)text, .code_size = strlen(text),
                      .format = format, .format_size = strlen(format)};
    PJRT_Client_Compile_Args a = ARGS(Client_Compile, .client = c, .program = &p,
                                      .compile_options = options,
                                      .compile_options_size = options_size);
    PJRT_Error *e = api->Client_Compile(&a);
    *out = a.executable;
    return e;
}

static inline PJRT_Error *execute(PJRT_LoadedExecutable *exe, PJRT_Buffer **args, size_t n,
                           PJRT_Buffer **out) {
    PJRT_ExecuteOptions o = {.struct_size = sizeof o};
    PJRT_Buffer *const *arg_lists[1] = {args};
    PJRT_Buffer **out_lists[1] = {out};
    PJRT_Event *done[1] = {NULL};
    PJRT_LoadedExecutable_Execute_Args a =
        ARGS(LoadedExecutable_Execute, .executable = exe, .options = &o,
             .argument_lists = arg_lists, .num_devices = 1, .num_args = n,
             .output_lists = out_lists, .device_complete_events = done);
    PJRT_Error *e = api->LoadedExecutable_Execute(&a);
    if (!e) {
        PJRT_Event_Destroy_Args d = ARGS(Event_Destroy, .event = done[0]);
        CALL(Event_Destroy, &d);
    }
    return e;
}

static inline void exe_free(PJRT_LoadedExecutable *exe) {
    PJRT_LoadedExecutable_Destroy_Args a = ARGS(LoadedExecutable_Destroy, .executable = exe);
    CALL(LoadedExecutable_Destroy, &a);
}

#endif
