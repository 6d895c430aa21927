// SPDX-License-Identifier: Apache-2.0
// buffer.c — buffers: a shape and a counted piece of storage that may be gone.
#include <stdlib.h>
#include <string.h>

#include "pjrt/pjrt.h"

PJRT_Buffer *pj_buffer_make_locked(PJRT_Memory *m, Storage *s, PJRT_Buffer_Type type,
                                   const int64_t *dims, size_t rank, size_t bytes) {
    PJRT_Buffer *b = malloc(sizeof *b + rank * sizeof *dims);
    if (!b)
        return NULL;
    *b = (PJRT_Buffer){
        .memory = m, .storage = s, .bytes = bytes, .type = type, .rank = (uint32_t)rank};
    if (rank)
        memcpy(b->dims, dims, rank * sizeof *dims);
    m->client->live++;
    return b;
}

PJRT_Error *pj_buffer_alloc(PJRT_Memory *m, PJRT_Buffer_Type type, const int64_t *dims, size_t rank,
                            PJRT_Buffer **out) {
    size_t bytes;
    PJRT_Error *e = pj_shape_bytes(type, dims, rank, &bytes);
    if (e)
        return e;
    PJRT_Client *c = m->client;
    pj_lock(c);
    Storage *s = pj_storage_make_locked(m, bytes);
    PJRT_Buffer *b = s ? pj_buffer_make_locked(m, s, type, dims, rank, bytes) : NULL;
    if (!b) {
        e = pj_storage_failed(m, bytes);
        pj_storage_drop_locked(s);
    }
    pj_unlock(c);
    *out = b;
    return e;
}

Storage *pj_buffer_hold(PJRT_Buffer *b) {
    PJRT_Client *c = b->memory->client;
    pj_lock(c);
    Storage *s = b->storage;
    if (s)
        pj_storage_hold(s);
    pj_unlock(c);
    return s;
}

PJRT_Error *pj_buffer_gone(const char *what) {
    return pj_error(PJRT_Error_Code_INVALID_ARGUMENT,
                    "opentrn: a deleted or donated array cannot be %s", what);
}

// ---- life

PJRT_Error *pj_Buffer_Delete(PJRT_Buffer_Delete_Args *args) {
    PJRT_Client *c = args->buffer->memory->client;
    pj_lock(c);
    pj_storage_drop_locked(args->buffer->storage);
    args->buffer->storage = NULL;
    pj_unlock(c);
    return PJ_OK;
}

PJRT_Error *pj_Buffer_Destroy(PJRT_Buffer_Destroy_Args *args) {
    PJRT_Buffer *b = args->buffer;
    if (!b)
        return PJ_OK;
    PJRT_Client *c = b->memory->client;
    pj_lock(c);
    pj_storage_drop_locked(b->storage);
    pj_storage_drop_locked(b->external);
    c->live--;
    free(b);
    pj_unlock(c);
    return PJ_OK;
}

PJRT_Error *pj_Buffer_IsDeleted(PJRT_Buffer_IsDeleted_Args *args) {
    PJRT_Client *c = args->buffer->memory->client;
    pj_lock(c);
    args->is_deleted = !args->buffer->storage;
    pj_unlock(c);
    return PJ_OK;
}

PJRT_Error *pj_Buffer_ReadyEvent(PJRT_Buffer_ReadyEvent_Args *args) {
    Storage *s = pj_buffer_hold(args->buffer);
    if (!s)
        return pj_buffer_gone("waited for");
    args->event = s->ready ? s->ready : pj_event_ready();
    pj_event_hold(args->event);
    pj_storage_release(s);
    return PJ_OK;
}

// An external reference keeps the bytes in place even if the buffer is deleted or donated.
PJRT_Error *
pj_Buffer_IncreaseExternalReferenceCount(PJRT_Buffer_IncreaseExternalReferenceCount_Args *args) {
    PJRT_Buffer *b = args->buffer;
    PJRT_Client *c = b->memory->client;
    PJRT_Error *e = PJ_OK;
    pj_lock(c);
    if (!b->storage) {
        e = pj_buffer_gone("shared");
    } else if (b->external_refs++ == 0) {
        b->external = b->storage;
        pj_storage_hold(b->external);
    }
    pj_unlock(c);
    return e;
}

PJRT_Error *
pj_Buffer_DecreaseExternalReferenceCount(PJRT_Buffer_DecreaseExternalReferenceCount_Args *args) {
    PJRT_Buffer *b = args->buffer;
    PJRT_Client *c = b->memory->client;
    PJRT_Error *e = PJ_OK;
    pj_lock(c);
    if (!b->external_refs) {
        e = pj_error(PJRT_Error_Code_INVALID_ARGUMENT,
                     "opentrn: the array has no external reference to give back");
    } else if (--b->external_refs == 0) {
        pj_storage_drop_locked(b->external);
        b->external = NULL;
    }
    pj_unlock(c);
    return e;
}

// ---- other ways to make one

typedef struct Copy { // waits for its source
    Storage *from, *to;
    PJRT_Event *done;
} Copy;

static PJRT_Error *copy_now(Storage *from, Storage *to) {
    PJRT_Client *c = to->memory->client;
    pj_lock(c);
    bool ok = to->data || pj_storage_fill_locked(to);
    PJRT_Error *e = ok ? PJ_OK : pj_storage_failed(to->memory, to->bytes);
    pj_unlock(c);
    if (ok && to->bytes)
        memcpy(to->data, from->data, to->bytes);
    return e;
}

static void copy_later(PJRT_Error *error, void *arg) {
    Copy *k = arg;
    pj_event_set(k->done, error ? error : copy_now(k->from, k->to));
    pj_event_drop(k->done);
    pj_storage_release(k->from);
    pj_storage_release(k->to);
    free(k);
}

// *out is a buffer whose contents follow when those of s are there. Takes over the count of s.
static PJRT_Error *copy_promise(PJRT_Buffer *b, Storage *s, PJRT_Memory *m, PJRT_Buffer **out) {
    PJRT_Client *c = m->client;
    Copy *k = malloc(sizeof *k);
    PJRT_Event *done = k ? pj_event_make() : NULL;
    pj_lock(c);
    Storage *to = done ? pj_storage_promise_locked(m, b->bytes, done) : NULL;
    *out = to ? pj_buffer_make_locked(m, to, b->type, b->dims, b->rank, b->bytes) : NULL;
    if (*out)
        (*out)->order = b->order;
    if (*out)
        pj_storage_hold(to);
    else
        pj_storage_drop_locked(to);
    pj_unlock(c);
    if (!*out) {
        free(k);
        pj_event_drop(done);
        pj_storage_release(s);
        return pj_error_nomem();
    }
    *k = (Copy){s, to, done};
    PJRT_Error *e = pj_event_then(s->ready, copy_later, k);
    if (e)
        copy_later(e, k);
    return PJ_OK;
}

static PJRT_Error *buffer_copy(PJRT_Buffer *b, PJRT_Memory *to, PJRT_Buffer **out) {
    Storage *s = pj_buffer_hold(b);
    if (!s)
        return pj_buffer_gone("copied");
    if (s->ready)
        return copy_promise(b, s, to, out);
    PJRT_Error *e = pj_buffer_alloc(to, b->type, b->dims, b->rank, out);
    if (!e)
        (*out)->order = b->order;
    if (!e && b->bytes)
        memcpy((*out)->storage->data, s->data, b->bytes);
    pj_storage_release(s);
    return e;
}

PJRT_Error *pj_Buffer_CopyToMemory(PJRT_Buffer_CopyToMemory_Args *args) {
    return buffer_copy(args->buffer, args->dst_memory, &args->dst_buffer);
}

PJRT_Error *pj_Buffer_CopyToDevice(PJRT_Buffer_CopyToDevice_Args *args) {
    return buffer_copy(args->buffer, pj_device_memory(args->dst_device), &args->dst_buffer);
}

PJRT_Error *pj_Client_CreateUninitializedBuffer(PJRT_Client_CreateUninitializedBuffer_Args *args) {
    PJRT_Memory *m = args->memory   ? args->memory
                     : args->device ? pj_device_memory(args->device)
                                    : args->client->memory_pointers[0];
    return pj_buffer_alloc(m, args->shape_element_type, args->shape_dims, args->shape_num_dims,
                           &args->buffer);
}

PJRT_Error *pj_Client_CreateViewOfDeviceBuffer(PJRT_Client_CreateViewOfDeviceBuffer_Args *args) {
    PJRT_Memory *m = PJRT_HAS(args, memory) && args->memory ? args->memory
                     : args->device                         ? pj_device_memory(args->device)
                                                            : args->client->memory_pointers[0];
    size_t bytes;
    PJRT_Error *e = pj_shape_bytes(args->element_type, args->dims, args->num_dims, &bytes);
    if (e)
        return e;
    PJRT_Client *c = m->client;
    pj_lock(c);
    Storage *s = pj_storage_wrap_locked(m, args->device_buffer_ptr, bytes, args->on_delete_callback,
                                        args->on_delete_callback_arg);
    args->buffer = s ? pj_buffer_make_locked(m, s, args->element_type, args->dims, args->num_dims,
                                             bytes)
                     : NULL;
    if (!args->buffer) {
        e = pj_error_nomem();
        if (s) { // on failure the memory stays the caller's
            s->on_delete = NULL;
            pj_storage_drop_locked(s);
        }
    }
    pj_unlock(c);
    return e;
}

// ---- queries

PJRT_Error *pj_Buffer_ElementType(PJRT_Buffer_ElementType_Args *args) {
    args->type = args->buffer->type;
    return PJ_OK;
}

PJRT_Error *pj_Buffer_Dimensions(PJRT_Buffer_Dimensions_Args *args) {
    args->dims = args->buffer->dims;
    args->num_dims = args->buffer->rank;
    return PJ_OK;
}

PJRT_Error *pj_Buffer_UnpaddedDimensions(PJRT_Buffer_UnpaddedDimensions_Args *args) {
    args->unpadded_dims = args->buffer->dims;
    args->num_dims = args->buffer->rank;
    return PJ_OK;
}

PJRT_Error *pj_Buffer_DynamicDimensionIndices(PJRT_Buffer_DynamicDimensionIndices_Args *args) {
    args->dynamic_dim_indices = NULL;
    args->num_dynamic_dims = 0;
    return PJ_OK;
}

PJRT_Error *pj_Buffer_GetMemoryLayout(PJRT_Buffer_GetMemoryLayout_Args *args) {
    static const int64_t descending[PJ_MAX_RANK] = {
        63, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48, 47, 46, 45, 44, 43, 42,
        41, 40, 39, 38, 37, 36, 35, 34, 33, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20,
        19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9,  8,  7,  6,  5,  4,  3,  2,  1,  0};
    args->layout = (PJRT_Buffer_MemoryLayout){
        .struct_size = sizeof args->layout,
        .tiled = {.struct_size = sizeof args->layout.tiled,
                  .minor_to_major = descending + PJ_MAX_RANK - args->buffer->rank,
                  .minor_to_major_size = args->buffer->rank},
        .type = PJRT_Buffer_MemoryLayout_Type_Tiled};
    return PJ_OK;
}

PJRT_Error *pj_Buffer_OnDeviceSizeInBytes(PJRT_Buffer_OnDeviceSizeInBytes_Args *args) {
    args->on_device_size_in_bytes = args->buffer->bytes;
    return PJ_OK;
}

PJRT_Error *pj_Buffer_Device(PJRT_Buffer_Device_Args *args) {
    args->device = args->buffer->memory->device;
    return PJ_OK;
}

PJRT_Error *pj_Buffer_Memory(PJRT_Buffer_Memory_Args *args) {
    args->memory = args->buffer->memory;
    return PJ_OK;
}

// It is host memory, but handing it out as such would let numpy look into donated arrays.
PJRT_Error *pj_Buffer_IsOnCpu(PJRT_Buffer_IsOnCpu_Args *args) {
    args->is_on_cpu = false;
    return PJ_OK;
}

static PJRT_Error *buffer_address(PJRT_Buffer *b, void **out) {
    Storage *s = pj_buffer_hold(b);
    if (!s)
        return pj_buffer_gone("addressed");
    PJRT_Error *e = pj_storage_wait(s);
    *out = s->data;
    pj_storage_release(s);
    return e;
}

PJRT_Error *pj_Buffer_UnsafePointer(PJRT_Buffer_UnsafePointer_Args *args) {
    void *at = NULL;
    PJRT_Error *e = buffer_address(args->buffer, &at);
    args->buffer_pointer = (uintptr_t)at;
    return e;
}

PJRT_Error *
pj_Buffer_OpaqueDeviceMemoryDataPointer(PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args *args) {
    return buffer_address(args->buffer, &args->device_memory_ptr);
}

// ---- made of others, or of an error

// The same bytes as another type and shape.
PJRT_Error *pj_Buffer_Bitcast(PJRT_Buffer_Bitcast_Args *args) {
    PJRT_Buffer *b = args->buffer;
    size_t bytes;
    PJRT_Error *e = pj_device_layout_check(args->device_layout);
    if (!e)
        e = pj_shape_bytes(args->element_type, args->dims, args->num_dims, &bytes);
    if (e)
        return e;
    bool packed = dtype_row(pj_dtype(b->type))->bits < 8 || dtype_row(pj_dtype(args->element_type))->bits < 8;
    if (bytes != b->bytes || (packed && args->element_type != b->type)) // values of less than a byte have one each here
        return pj_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "opentrn: an array of %zu bytes cannot be taken as one of %zu bytes%s", b->bytes, bytes,
                        packed ? " or of another type: its values lie one to a byte" : "");
    Storage *s = pj_buffer_hold(b);
    if (!s)
        return pj_buffer_gone("taken as another type");
    PJRT_Client *c = b->memory->client;
    pj_lock(c);
    args->out_buffer = pj_buffer_make_locked(b->memory, s, args->element_type, args->dims, args->num_dims, bytes);
    if (!args->out_buffer)
        pj_storage_drop_locked(s);
    pj_unlock(c);
    return args->out_buffer ? PJ_OK : pj_error_nomem();
}

// Whoever reads it gets the error, as of a launch that failed.
PJRT_Error *pj_Client_CreateErrorBuffer(PJRT_Client_CreateErrorBuffer_Args *args) {
    PJRT_Memory *m = args->memory ? args->memory : args->client->memory_pointers[0];
    PJRT_Client *c = m->client;
    size_t bytes;
    PJRT_Error *e = pj_shape_bytes(args->shape_element_type, args->shape_dims, args->shape_num_dims, &bytes);
    if (e)
        return e;
    PJRT_Event *failed = pj_event_make();
    if (!failed)
        return pj_error_nomem();
    pj_event_set(failed, pj_error(args->error_code ? args->error_code : PJRT_Error_Code_UNKNOWN, "%.*s",
                                  (int)args->error_message_size, args->error_message));
    pj_lock(c);
    Storage *s = pj_storage_promise_locked(m, bytes, failed);
    PJRT_Buffer *b = s ? pj_buffer_make_locked(m, s, args->shape_element_type, args->shape_dims,
                                               args->shape_num_dims, bytes)
                       : NULL;
    if (s && !b)
        pj_storage_drop_locked(s);
    pj_unlock(c);
    pj_event_drop(failed);
    args->buffer = b;
    return b ? PJ_OK : pj_error_nomem();
}
