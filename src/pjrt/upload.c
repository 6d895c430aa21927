// SPDX-License-Identifier: Apache-2.0
// upload.c — arrays that come in pieces: buffers that exist at once and are complete when their last piece is there.
//
// A piece is copied inside the call, from any thread. What reads a buffer before it is complete waits for its
// event, as for the result of a launch. A buffer whose manager goes before its last piece came gets an error.
#include <stdlib.h>
#include <string.h>

#include "pjrt/pjrt.h"

typedef struct Upload { // one buffer; under the manager's lock
    PJRT_Buffer *buffer; // until it is retrieved
    Storage *storage;    // counted
    PJRT_Event *ready;   // counted
    PJRT_Buffer_Type type;
    size_t bytes;
    uint32_t copying; // pieces under way
    bool last;        // the last piece has begun, or an error was set
    bool is_set;      // the event
} Upload;

struct PJRT_AsyncHostToDeviceTransferManager {
    pthread_mutex_t lock;
    PJRT_Memory *memory;
    size_t count;
    Upload at[];
};

static PJRT_Error *upload_init(Upload *u, PJRT_Memory *m, const PJRT_ShapeSpec *shape) {
    PJRT_Error *e = pj_shape_bytes(shape->element_type, shape->dims, shape->num_dims, &u->bytes);
    if (e)
        return e;
    u->type = shape->element_type;
    u->ready = pj_event_make();
    if (!u->ready)
        return pj_error_nomem();
    PJRT_Client *c = m->client;
    pj_lock(c);
    Storage *s = pj_storage_promise_locked(m, u->bytes, u->ready);
    bool filled = s && pj_storage_fill_locked(s);
    u->buffer = filled ? pj_buffer_make_locked(m, s, u->type, shape->dims, shape->num_dims, u->bytes) : NULL;
    if (u->buffer) {
        pj_storage_hold(s);
        u->storage = s;
    } else if (s) {
        pj_storage_drop_locked(s);
    }
    pj_unlock(c);
    return u->buffer ? PJ_OK : pj_storage_failed(m, u->bytes);
}

// Sets the event outside the lock: callbacks may come back here.
static void upload_finish(PJRT_AsyncHostToDeviceTransferManager *t, Upload *u, PJRT_Error *error) {
    pthread_mutex_lock(&t->lock);
    bool mine = !u->is_set;
    u->is_set = true;
    pthread_mutex_unlock(&t->lock);
    if (mine)
        pj_event_set(u->ready, error);
    else
        pj_Error_Destroy(&(PJRT_Error_Destroy_Args){.error = error});
}

static void manager_free(PJRT_AsyncHostToDeviceTransferManager *t) {
    for (size_t i = 0; i < t->count; i++) {
        Upload *u = &t->at[i];
        if (u->ready && u->storage && !u->is_set)
            upload_finish(t, u, pj_error(PJRT_Error_Code_CANCELLED,
                                         "opentrn: the transfer of this array was given up before its last piece"));
        if (u->buffer)
            pj_Buffer_Destroy(&(PJRT_Buffer_Destroy_Args){.struct_size = sizeof(PJRT_Buffer_Destroy_Args),
                                                          .buffer = u->buffer});
        pj_storage_release(u->storage);
        pj_event_drop(u->ready);
    }
    pthread_mutex_destroy(&t->lock);
    free(t);
}

static PJRT_Error *upload_find(PJRT_AsyncHostToDeviceTransferManager *t, int index, Upload **out) {
    if (index < 0 || (size_t)index >= t->count)
        return pj_error(PJRT_Error_Code_INVALID_ARGUMENT, "opentrn: there is no buffer %d; there are %zu", index,
                        t->count);
    *out = &t->at[index];
    return PJ_OK;
}

PJRT_Error *pj_Client_CreateBuffersForAsyncHostToDevice(PJRT_Client_CreateBuffersForAsyncHostToDevice_Args *args) {
    for (size_t i = 0; i < args->num_device_layouts; i++) {
        PJRT_Error *e = pj_device_layout_check(args->device_layouts[i]);
        if (e)
            return e;
    }
    size_t n = args->num_shape_specs;
    PJRT_AsyncHostToDeviceTransferManager *t = calloc(1, sizeof *t + n * sizeof *t->at);
    if (!t)
        return pj_error_nomem();
    pthread_mutex_init(&t->lock, NULL);
    t->memory = args->memory ? args->memory : args->client->memory_pointers[0];
    for (size_t i = 0; i < n; i++) {
        t->count++;
        PJRT_Error *e = upload_init(&t->at[i], t->memory, &args->shape_specs[i]);
        if (e) {
            manager_free(t);
            return e;
        }
    }
    args->transfer_manager = t;
    return PJ_OK;
}

PJRT_Error *
pj_AsyncHostToDeviceTransferManager_Destroy(PJRT_AsyncHostToDeviceTransferManager_Destroy_Args *args) {
    if (args->transfer_manager)
        manager_free(args->transfer_manager);
    return PJ_OK;
}

PJRT_Error *
pj_AsyncHostToDeviceTransferManager_TransferData(PJRT_AsyncHostToDeviceTransferManager_TransferData_Args *args) {
    PJRT_AsyncHostToDeviceTransferManager *t = args->transfer_manager;
    Upload *u = NULL;
    PJRT_Error *e = upload_find(t, args->buffer_index, &u);
    if (e)
        return e;
    int64_t size = args->transfer_size, at = args->offset;
    if (at < 0 || size < 0 || (size_t)at > u->bytes || (size_t)size > u->bytes - (size_t)at)
        return pj_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "opentrn: %lld bytes from byte %lld on do not fit an array of %zu bytes", (long long)size,
                        (long long)at, u->bytes);
    pthread_mutex_lock(&t->lock);
    bool late = u->last;
    if (!late) {
        u->copying++;
        u->last = args->is_last_transfer;
    }
    pthread_mutex_unlock(&t->lock);
    if (late)
        return pj_error(PJRT_Error_Code_FAILED_PRECONDITION, "opentrn: the last piece of this array came already");
    if (size)
        memcpy((char *)u->storage->data + at, args->data, (size_t)size);
    pthread_mutex_lock(&t->lock);
    bool complete = --u->copying == 0 && u->last;
    pthread_mutex_unlock(&t->lock);
    if (complete) {
        dtype_canonicalise(pj_dtype(u->type), u->storage->data, u->bytes);
        upload_finish(t, u, PJ_OK);
    }
    args->done_with_h2d_transfer = pj_event_ready();
    return PJ_OK;
}

PJRT_Error *pj_AsyncHostToDeviceTransferManager_RetrieveBuffer(
    PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args *args) {
    PJRT_AsyncHostToDeviceTransferManager *t = args->transfer_manager;
    Upload *u = NULL;
    PJRT_Error *e = upload_find(t, args->buffer_index, &u);
    if (e)
        return e;
    pthread_mutex_lock(&t->lock);
    args->buffer_out = u->buffer;
    u->buffer = NULL;
    pthread_mutex_unlock(&t->lock);
    return args->buffer_out ? PJ_OK
                            : pj_error(PJRT_Error_Code_FAILED_PRECONDITION,
                                       "opentrn: buffer %d was retrieved already", args->buffer_index);
}

PJRT_Error *
pj_AsyncHostToDeviceTransferManager_Device(PJRT_AsyncHostToDeviceTransferManager_Device_Args *args) {
    args->device_out = args->transfer_manager->memory->device;
    return PJ_OK;
}

PJRT_Error *
pj_AsyncHostToDeviceTransferManager_BufferCount(PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args *args) {
    args->buffer_count = args->transfer_manager->count;
    return PJ_OK;
}

PJRT_Error *
pj_AsyncHostToDeviceTransferManager_BufferSize(PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args *args) {
    Upload *u = NULL;
    PJRT_Error *e = upload_find(args->transfer_manager, args->buffer_index, &u);
    if (!e)
        args->buffer_size = u->bytes;
    return e;
}

PJRT_Error *pj_AsyncHostToDeviceTransferManager_SetBufferError(
    PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args *args) {
    PJRT_AsyncHostToDeviceTransferManager *t = args->transfer_manager;
    Upload *u = NULL;
    PJRT_Error *e = upload_find(t, args->buffer_index, &u);
    if (e)
        return e;
    pthread_mutex_lock(&t->lock);
    u->last = true;
    pthread_mutex_unlock(&t->lock);
    upload_finish(t, u, pj_error(args->error_code ? args->error_code : PJRT_Error_Code_UNKNOWN, "%.*s",
                                 (int)args->error_message_size, args->error_message));
    return PJ_OK;
}

// For profilers; there is nobody to tell.
PJRT_Error *
pj_AsyncHostToDeviceTransferManager_AddMetadata(PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args *args) {
    (void)args;
    return PJ_OK;
}
