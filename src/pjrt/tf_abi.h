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

#endif
