// SPDX-License-Identifier: Apache-2.0
// tensorflow.c — the device /device:NEURON:N of TensorFlow: its plugin interface over our PJRT client.
//
// Most of what is needed has a place in TensorFlow's C interface. Two things have not: to make it use PJRT's client (the wheel
// lacks TF_CreateAndSetPjRtCApiClient) and to allow jit_compile on the device. Its C++ functions for them are in the library that
// is already loaded; they are found by name and called as the C++ ABI says: what is no plain data goes by address, also results.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pjrt/pjrt.h"
#include "pjrt/tf_abi.h"

#define KERNELS "XLA_CPU_JIT" // whose set of XLA kernels the device takes
enum { TF_INT32 = 3, TF_UNIMPLEMENTED = 12, TF_INTERNAL = 13 };
enum { PRIORITY = 220, PRIORITY_CPU = 70 };
OTRN_API const PJRT_Api *GetPjrtApi(void);
OTRN_API const TfApi *TFNPD_InitPlugin(TfPlugin *p, TfStatus *s);
OTRN_API void TF_InitKernel(void);

// ---- TensorFlow's functions

// From the library that is loaded, though not for all to see; false when one is not there.
bool tf_find(Tf *tf) {
    void *library = dlopen("libtensorflow_cc.so.2", RTLD_NOW | RTLD_NOLOAD);
    bool all = library != NULL;
    memset(tf, 0, sizeof *tf);
#define F(type, name, args, symbol)                                                                                               \
    *(void **)&tf->name = library ? dlsym(library, symbol) : NULL;                                                                \
    all = all && tf->name;
    FUNCTIONS(F)
#undef F
    return all;
}

static void tf_fail(TfStatus *s, int code, const char *message) {
    Tf tf;
    tf_find(&tf);
    if (tf.set_status)
        tf.set_status(s, code, message);
}

static void tf_fail_with(TfStatus *s, PJRT_Error *error) {
    PJRT_Error_Message_Args told = {.struct_size = sizeof told, .error = error};
    pj_Error_Message(&told);
    char *text = strndup(told.message, told.message_size);
    tf_fail(s, TF_INTERNAL, text ? text : "out of memory");
    free(text);
    pj_Error_Destroy(&(PJRT_Error_Destroy_Args){.error = error});
}

static void cxx_name(CxxString *s, const char *text) { *s = (CxxString){.at = text, .size = strlen(text)}; }

// ---- kernels

static void *const_new(void *construction) { return (void)construction, NULL; }
static void const_delete(void *kernel) { (void)kernel; }
static void const_run(void *kernel, void *ctx) {
    (void)kernel;
    Tf tf;
    tf_find(&tf);
    TfStatus *s = tf.new_status();
    TfTensor *t = NULL;
    tf.get_input(ctx, 0, &t, s);
    tf.set_output(ctx, 0, t, s);
    tf.delete_tensor(t);
    tf.delete_status(s);
}

// TensorFlow keeps int32 constants on the host (most are shapes) but gives a device like this a kernel that takes them as the
// device's; this one goes before it.
static void const_add(const Tf *tf) {
    TfStatus *s = tf->new_status();
    void *k = tf->new_kernel("_EagerConst", TF_DEVICE, const_new, const_run, const_delete);
    tf->kernel_on_host(k, "input");
    tf->kernel_on_host(k, "output");
    tf->kernel_type(k, "T", TF_INT32, s);
    tf->kernel_priority(k, 1);
    tf->add_kernel("opentrn const", k, s);
    tf->delete_status(s);
}

void TF_InitKernel(void) {
    Tf tf;
    if (!tf_find(&tf))
        return;
    CxxString name;
    JitDevice jit = {0};
    cxx_name(&name, TF_DEVICE);
    cxx_name(&jit.kernels, KERNELS);
    tf.add_jit(&name, &jit);
    const_add(&tf);
    tf_host_kernels(&tf, TF_DEVICE);
}

// ---- what is asked

// A client of our own tells it: TensorFlow asks before it has one.
static int32_t count(TfStatus *s) {
    PJRT_Client_Create_Args made = {.struct_size = sizeof made};
    PJRT_Error *error = pj_Client_Create(&made);
    if (error) {
        tf_fail_with(s, error);
        return 0;
    }
    PJRT_Client_AddressableDevices_Args of = {.struct_size = sizeof of, .client = made.client};
    pj_Client_AddressableDevices(&of);
    pj_Client_Destroy(&(PJRT_Client_Destroy_Args){.client = made.client});
    return (int32_t)of.num_addressable_devices;
}

static void start(TfStatus *s) {
    Tf tf;
    tf_find(&tf);
    const uintptr_t no_options[8] = {0}; // an empty map
    uintptr_t no_key_values[2] = {0};    // an empty pointer
    CxxResult client = tf.make_client(strlen(TF_DEVICE), TF_DEVICE, no_options, no_key_values);
    CxxString name;
    cxx_name(&name, TF_DEVICE);
    if (client.status > 1 || tf.set_client(&name, &client.value).status > 1)
        tf_fail(s, TF_INTERNAL, "opentrn: TensorFlow could not make a client of the device " TF_DEVICE);
}

static void ints_copy(TfInts *to, const TfInts *from) {
    *to = *from;
    if (from->size > TF_INLINE && (to->heap = malloc((size_t)from->size * sizeof *to->heap)))
        memcpy(to->heap, from->heap, (size_t)from->size * sizeof *to->heap);
}

static void flags_copy(TfFlags *to, const TfFlags *from) {
    *to = *from;
    if (from->size > TF_INLINE && (to->heap = malloc((size_t)from->size)))
        memcpy(to->heap, from->heap, (size_t)from->size);
}

// On the device a tensor lies as on the host. Both shapes are freed by who asks, so they share nothing.
static void device_shape(TfShape *given, int type, bool fast, int preference, TfShape *out, TfStatus *s) {
    (void)type, (void)fast, (void)preference, (void)s;
    *out = (TfShape){.element_type = given->element_type, .has_layout = given->has_layout};
    ints_copy(&out->dims, &given->dims);
    flags_copy(&out->dynamic, &given->dynamic);
    ints_copy(&out->layout.minor_to_major, &given->layout.minor_to_major);
    out->layout.index_type = given->layout.index_type;
    out->layout.pointer_type = given->layout.pointer_type;
    out->layout.padding = given->layout.padding;
}

static PJRT_Buffer *copy_buffer(PJRT_Buffer *from, PJRT_Client *client, TfStatus *s) {
    (void)client;
    PJRT_Buffer_Device_Args at = {.struct_size = sizeof at, .buffer = from};
    PJRT_Error *error = pj_Buffer_Device(&at);
    PJRT_Buffer_CopyToDevice_Args made = {.struct_size = sizeof made, .buffer = from, .dst_device = at.device};
    if (!error)
        error = pj_Buffer_CopyToDevice(&made);
    if (error)
        tf_fail_with(s, error);
    return error ? NULL : made.dst_buffer;
}

// ---- what is not

static TfEvent *no_event(void) { return NULL; }
static void no_await(TfEvent *e, TfStatus *s) { (void)e, (void)s; }
static bool always_ready(TfEvent *e) { return !e; }
static void then(TfEvent *e, void (*fn)(void *), void *arg) { (void)e, fn(arg); }
static void no_delete(TfEvent *e) { (void)e; }
static TfPlace *no_place(int device) { return (void)device, NULL; }
static void no_place_delete(TfPlace *p) { (void)p; }
static TfText place_name(TfPlace *p) { return (void)p, (TfText){"opentrn", 7}; }
static bool handles(TfPlace *p) { return !p; }

static void *allocate(TfPlace *p, size_t align, size_t bytes) {
    (void)p;
    align = align > PJ_ALIGN ? align : PJ_ALIGN;
    return aligned_alloc(align, (bytes + align - 1) / align * align);
}
static void deallocate(TfPlace *p, void *at) { (void)p, free(at); }

static TfEvent *no_copy(TfPlace *p, const TfTensor *from, TfTensor *to, TfStatus *s) {
    (void)p, (void)from, (void)to;
    tf_fail(s, TF_UNIMPLEMENTED, "opentrn: tensors of the device " TF_DEVICE " are copied through PJRT");
    return NULL;
}
static TfEvent *no_copy_here(TfPlace *p) { return (void)p, NULL; }

static const TfApi api = {
    .struct_size = sizeof(TfApi),
    .event_new = no_event,
    .event_await = no_await,
    .event_is_ready = always_ready,
    .event_then = then,
    .event_delete = no_delete,
    .allocator_new = no_place,
    .allocate = allocate,
    .deallocate = deallocate,
    .allocator_name = place_name,
    .allocates_handles = handles,
    .allocator_delete = no_place_delete,
    .context_new = no_place,
    .context_delete = no_place_delete,
    .to_host = no_copy,
    .to_device = no_copy,
    .copy = no_copy_here,
    .copy_buffer = copy_buffer,
    .device_shape = device_shape,
    .count = count,
    .start = start,
};

// jit_compile goes through PJRT only where TensorFlow's flags say so, which it reads after this.
static void flags_set(void) {
    const char *given = getenv("TF_XLA_FLAGS"), *flag = "--tf_xla_use_device_api";
    char all[4096];
    if (given && strstr(given, flag))
        return;
    int n = snprintf(all, sizeof all, "%s%s%s=true", given ? given : "", given ? " " : "", flag);
    if (n > 0 && (size_t)n < sizeof all)
        setenv("TF_XLA_FLAGS", all, 1);
}

const TfApi *TFNPD_InitPlugin(TfPlugin *p, TfStatus *s) {
    Tf tf;
    if (!tf_find(&tf)) {
        tf_fail(s, TF_UNIMPLEMENTED, "opentrn: this TensorFlow lacks functions that the device " TF_DEVICE " needs; 2.21 has them");
        return NULL;
    }
    flags_set();
    // TensorFlow's own variable for such libraries makes it the device of operators that name none; whom a program loads waits to
    // be named.
    const char *first = getenv("TF_PLUGGABLE_DEVICE_LIBRARY_PATH");
    p->device_type = TF_DEVICE;
    p->jit_device = KERNELS;
    p->priority = first && *first ? PRIORITY : PRIORITY_CPU - 1;
    p->is_stream_executor = false;
    p->compile_each_op = true;
    return &api;
}
