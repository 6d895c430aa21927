// SPDX-License-Identifier: Apache-2.0
// tf_abi.h — what TensorFlow expects of a library that brings a device, in our own declarations.
//
// TensorFlow's "next pluggable device" interface: it opens a library (tf.load_pluggable_device_library, or a file in
// site-packages/tensorflow-plugins), calls TFNPD_InitPlugin for a table of functions, then GetPjrtApi. From there on tensors are
// PJRT buffers and every operator is a program of XLA's that the PJRT client compiles; of the table only shapes, the number of
// devices and the start are asked. The rest has to be there and is for devices without PJRT.
#ifndef OTRN_TF_ABI_H
#define OTRN_TF_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct TfStatus TfStatus;   // TF_Status, TensorFlow's own
typedef struct TfTensor TfTensor;   // TF_Tensor
typedef struct TfEvent TfEvent;     // of ours, never made
typedef struct TfPlace TfPlace;     // an allocator or a device's context of ours: nothing in it
typedef struct TfText {
    const char *data;
    size_t size;
} TfText;

// Lists of up to TF_INLINE elements lie in the struct itself, longer ones on the heap, whose owner frees them.
enum { TF_INLINE = 6 };
typedef struct TfInts {
    union {
        int64_t *heap, inlined[TF_INLINE];
    };
    int64_t size;
} TfInts;
typedef struct TfFlags {
    union {
        bool *heap, inlined[TF_INLINE];
    };
    int64_t size;
} TfFlags;
typedef struct TfTiles {
    union {
        TfInts *heap, inlined[TF_INLINE];
    };
    int64_t size;
} TfTiles;
typedef struct TfLayout {
    TfInts minor_to_major;
    TfTiles tiles;
    int index_type, pointer_type;
    int64_t element_bits, memory_space, prefix_bytes, padding;
} TfLayout;
typedef struct TfShape { // XLA_Shape
    int element_type;
    TfInts dims;
    TfFlags dynamic;
    struct TfShape *parts; // of a tuple
    int num_parts;
    bool has_layout;
    TfLayout layout;
} TfShape;

typedef struct TfPlugin { // what the plugin says of itself
    size_t struct_size;
    void *ext;
    const char *device_type, *jit_device; // its name in /device:NAME:0; the set of XLA kernels it takes
    int32_t priority;                     // the highest takes operators that name no device; the CPU has 70
    bool is_stream_executor;              // copies as devices of the older interface have them
    bool compile_each_op;                 // eager operators become programs, too
} TfPlugin;

typedef struct TfApi {
    size_t struct_size;
    void *priv;
    TfEvent *(*event_new)(void);
    void (*event_await)(TfEvent *, TfStatus *);
    bool (*event_is_ready)(TfEvent *);
    void (*event_then)(TfEvent *, void (*fn)(void *), void *arg);
    void (*event_delete)(TfEvent *);
    TfPlace *(*allocator_new)(int device);
    void *(*allocate)(TfPlace *, size_t align, size_t bytes);
    void (*deallocate)(TfPlace *, void *at);
    TfText (*allocator_name)(TfPlace *);
    bool (*allocates_handles)(TfPlace *); // no addresses that a host could read
    void (*allocator_delete)(TfPlace *);
    TfPlace *(*context_new)(int device);
    void (*context_delete)(TfPlace *);
    TfEvent *(*to_host)(TfPlace *, const TfTensor *from, TfTensor *to, TfStatus *);
    TfEvent *(*to_device)(TfPlace *, const TfTensor *from, TfTensor *to, TfStatus *);
    TfEvent *(*copy)(TfPlace *);
    PJRT_Buffer *(*copy_buffer)(PJRT_Buffer *from, PJRT_Client *, TfStatus *);
    void (*device_shape)(TfShape *given, int type, bool fast, int preference, TfShape *out, TfStatus *);
    int32_t (*count)(TfStatus *);
    void (*start)(TfStatus *);
} TfApi;

// ---- graphs, behind placement

#define TF_DEVICE "NEURON"

typedef struct TfBuffer {
    void *data;
    size_t bytes;
    void (*free)(void *data, size_t bytes);
} TfBuffer;
typedef struct TfOptimizer {
    size_t struct_size;
    void *ext;
    void *(*create)(void);
    void (*optimize)(void *, const TfBuffer *graph, const void *item, TfBuffer *out, TfStatus *);
    void (*destroy)(void *);
} TfOptimizer;
typedef struct TfOptimizing {
    size_t struct_size;
    void *ext;
    int32_t version[3];
    const char *device_type;
    void *configs; // which of TensorFlow's own to leave out: none
    TfOptimizer *optimizer;
} TfOptimizing;

// ---- TensorFlow's functions

typedef struct CxxString {
    const char *at; // inlined, or elsewhere
    size_t size;
    char inlined[16];
} CxxString;
// absl::Status and StatusOr<pointer>, as a result: longer than both, so that it is returned by address as they are.
typedef struct CxxResult {
    uintptr_t status; // 0 or 1: no error
    void *value;
    uintptr_t spare[2];
} CxxResult;
typedef struct JitDevice { // XlaOpRegistry::DeviceRegistration
    CxxString kernels;
    int clustering; // 0: only what asks for it
    bool more[9];   // of what else may be clustered
} JitDevice;

#define STRING "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
#define FUNCTIONS(F)                                                                                                              \
    F(void, set_status, (TfStatus *, int code, const char *), "TF_SetStatus")                                                    \
    F(TfStatus *, new_status, (void), "TF_NewStatus")                                                                             \
    F(void, delete_status, (TfStatus *), "TF_DeleteStatus")                                                                       \
    F(void *, new_kernel, (const char *op, const char *device, void *(*)(void *), void (*)(void *, void *), void (*)(void *)),     \
      "TF_NewKernelBuilder")                                                                                                      \
    F(void, kernel_on_host, (void *, const char *arg), "TF_KernelBuilder_HostMemory")                                             \
    F(void, kernel_type, (void *, const char *attr, int type, TfStatus *), "TF_KernelBuilder_TypeConstraint")                     \
    F(void, kernel_priority, (void *, int32_t), "TF_KernelBuilder_Priority")                                                      \
    F(void, add_kernel, (const char *name, void *, TfStatus *), "TF_RegisterKernelBuilder")                                       \
    F(void, get_input, (void *, int, TfTensor **, TfStatus *), "TF_GetInput")                                                     \
    F(void, set_output, (void *, int, const TfTensor *, TfStatus *), "TF_SetOutput")                                              \
    F(void, delete_tensor, (TfTensor *), "TF_DeleteTensor")                                                                       \
    F(int, num_outputs, (void *), "TF_NumOutputs")                                                                                \
    F(void, kernel_fail, (void *, TfStatus *), "TF_OpKernelContext_Failure")                                                      \
    F(int, status_code, (const TfStatus *), "TF_GetCode")                                                                         \
    F(int, num_inputs, (void *), "TF_NumInputs")                                                                                  \
    F(void, flag_of, (void *construction, const char *attr, uint8_t *, TfStatus *), "TF_OpKernelConstruction_GetAttrBool")        \
    F(void, count_of, (void *construction, const char *attr, int32_t *, TfStatus *), "TF_OpKernelConstruction_GetAttrInt32")      \
    F(void, type_of, (void *construction, const char *attr, int32_t *, TfStatus *), "TF_OpKernelConstruction_GetAttrType")        \
    F(void *, eager_options, (void), "TFE_NewContextOptions")                                                                     \
    F(void, eager_delete_options, (void *), "TFE_DeleteContextOptions")                                                           \
    F(void, eager_config, (void *options, const void *config, size_t bytes, TfStatus *), "TFE_ContextOptionsSetConfig")           \
    F(void *, eager_new, (void *options, TfStatus *), "TFE_NewContext")                                                           \
    F(void *, eager_op, (void *eager, const char *op, TfStatus *), "TFE_NewOp")                                                   \
    F(void, eager_delete_op, (void *), "TFE_DeleteOp")                                                                            \
    F(void, eager_place, (void *op, const char *device, TfStatus *), "TFE_OpSetDevice")                                           \
    F(void, eager_flag, (void *op, const char *attr, uint8_t), "TFE_OpSetAttrBool")                                               \
    F(void, eager_count, (void *op, const char *attr, int64_t), "TFE_OpSetAttrInt")                                               \
    F(void, eager_type, (void *op, const char *attr, int), "TFE_OpSetAttrType")                                                   \
    F(void *, eager_handle, (TfTensor *, TfStatus *), "TFE_NewTensorHandle")                                                      \
    F(void, eager_delete_handle, (void *), "TFE_DeleteTensorHandle")                                                              \
    F(void, eager_input, (void *op, void *handle, TfStatus *), "TFE_OpAddInput")                                                  \
    F(void, eager_run, (void *op, void **results, int *count, TfStatus *), "TFE_Execute")                                         \
    F(TfTensor *, eager_tensor, (void *handle, TfStatus *), "TFE_TensorHandleResolve")                                            \
    F(CxxResult, make_client, (size_t name_size, const char *name, const void *options, void *key_values),                        \
      "_ZN3xla13GetCApiClientESt17basic_string_viewIcSt11char_traitsIcEERKN4absl12lts_2025081413flat_hash_mapINSt7__cxx1112"      \
      "basic_stringIcS2_SaIcEEESt7variantIJSA_blSt6vectorIlSaIlEEfEENS5_18container_internal10StringHashENSG_8StringEqE"          \
      "SaISt4pairIKSA_SF_EEEESt10shared_ptrINS_22KeyValueStoreInterfaceEE")                                                       \
    F(CxxResult, set_client, (const CxxString *device_type, void **client),                                                       \
      "_ZN10tensorflow38SetPjRtClientInTFGlobalResourceManagerERKN3tsl10DeviceTypeESt10unique_ptrIN3xla10PjRtClientE"             \
      "St14default_deleteIS6_EE")                                                                                                 \
    F(void, add_jit, (const CxxString *device_type, const JitDevice *),                                                           \
      "_ZN10tensorflow13XlaOpRegistry25RegisterCompilationDeviceERK" STRING "RKNS0_18DeviceRegistrationE")

typedef struct Tf {
#define F(type, name, args, symbol) type (*name) args;
    FUNCTIONS(F)
#undef F
} Tf;

bool tf_find(Tf *tf);
void tf_host_kernels(const Tf *tf, const char *device);

#endif
