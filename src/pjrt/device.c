// SPDX-License-Identifier: Apache-2.0
// device.c — devices and their memories.
//
// A device has two memories: `device` (the default, by that very name) and `pinned_host`. Both are
// host memory here; only the first counts against the chip's HBM.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pjrt/pjrt.h"

const char *const pj_memory_kinds[PJ_MEMORIES] = {[PJ_DEVICE] = "device",
                                                  [PJ_PINNED_HOST] = "pinned_host"};

// ---- data that the framework hangs on a memory: read often, written a few times at the start

static void *memory_get_user_data(PJRT_Memory *m, const void *key) {
    for (UserData *u = atomic_load(&m->user); u; u = u->next)
        if (u->key == key)
            return u->data;
    return NULL;
}

// A key set again is put in front of the old entry, which lives on until the memory goes.
static void memory_set_user_data(PJRT_Memory *m, const void *key, void *data,
                                 void (*dtor)(void *)) {
    UserData *u = malloc(sizeof *u);
    if (!u) {
        if (dtor)
            dtor(data);
        return;
    }
    *u = (UserData){atomic_load(&m->user), key, data, dtor};
    while (!atomic_compare_exchange_weak(&m->user, &u->next, u))
        ;
}

void pj_memory_fini(PJRT_Memory *m) {
    for (UserData *u = atomic_load(&m->user), *next; u; u = next) {
        next = u->next;
        if (u->dtor)
            u->dtor(u->data);
        free(u);
    }
}

static const PJRT_Memory_FunctionTable memory_table = {
    .struct_size = sizeof(PJRT_Memory_FunctionTable),
    .instance_struct_size = sizeof(void *),
    .get_user_data = memory_get_user_data,
    .set_user_data = memory_set_user_data,
};

// ---- making them

PJRT_Error *pj_devices_make(PJRT_Client *c) {
    size_t n = c->topology->count;
    c->devices = calloc(n, sizeof *c->devices);
    c->device_pointers = calloc(n, sizeof *c->device_pointers);
    c->memories = calloc(n * PJ_MEMORIES, sizeof *c->memories);
    c->memory_pointers = calloc(n * PJ_MEMORIES, sizeof *c->memory_pointers);
    if (!c->devices || !c->device_pointers || !c->memories || !c->memory_pointers)
        return pj_error_nomem();
    for (size_t i = 0; i < n; i++) {
        PJRT_Device *d = c->device_pointers[i] = &c->devices[i];
        d->client = c;
        d->description = &c->topology->descriptions[i];
        d->description->attributes[3].int64_value = (int64_t)(intptr_t)c;
        for (int k = 0; k < PJ_MEMORIES; k++) {
            size_t id = i * PJ_MEMORIES + (size_t)k;
            PJRT_Memory *m = c->memory_pointers[id] = d->memories[k] = &c->memories[id];
            m->vtable = &memory_table;
            m->client = c;
            m->device = d;
            m->id = (int)id;
            m->kind = (PjMemoryKind)k;
            snprintf(m->text, sizeof m->text, "%.40s %s", d->description->text,
                     pj_memory_kinds[k]);
        }
    }
    return PJ_OK;
}

// ---- device descriptions

PJRT_Error *pj_DeviceDescription_Id(PJRT_DeviceDescription_Id_Args *args) {
    args->id = args->device_description->id;
    return PJ_OK;
}

PJRT_Error *pj_DeviceDescription_ProcessIndex(PJRT_DeviceDescription_ProcessIndex_Args *args) {
    args->process_index = args->device_description->process;
    return PJ_OK;
}

PJRT_Error *pj_DeviceDescription_Attributes(PJRT_DeviceDescription_Attributes_Args *args) {
    PJRT_DeviceDescription *d = args->device_description;
    args->attributes = d->attributes;
    args->num_attributes = sizeof d->attributes / sizeof d->attributes[0];
    return PJ_OK;
}

PJRT_Error *pj_DeviceDescription_Kind(PJRT_DeviceDescription_Kind_Args *args) {
    args->device_kind = args->device_description->kind;
    args->device_kind_size = strlen(args->device_kind);
    return PJ_OK;
}

PJRT_Error *pj_DeviceDescription_DebugString(PJRT_DeviceDescription_DebugString_Args *args) {
    args->debug_string = args->device_description->text;
    args->debug_string_size = strlen(args->debug_string);
    return PJ_OK;
}

PJRT_Error *pj_DeviceDescription_ToString(PJRT_DeviceDescription_ToString_Args *args) {
    args->to_string = args->device_description->text;
    args->to_string_size = strlen(args->to_string);
    return PJ_OK;
}

// ---- devices

PJRT_Error *pj_Device_GetDescription(PJRT_Device_GetDescription_Args *args) {
    args->device_description = args->device->description;
    return PJ_OK;
}

PJRT_Error *pj_Device_IsAddressable(PJRT_Device_IsAddressable_Args *args) {
    args->is_addressable = pj_device_is_here(args->device);
    return PJ_OK;
}

PJRT_Error *pj_Device_LocalHardwareId(PJRT_Device_LocalHardwareId_Args *args) {
    args->local_hardware_id = pj_device_is_here(args->device) ? args->device->description->local_id : -1;
    return PJ_OK;
}

PJRT_Error *pj_Device_AddressableMemories(PJRT_Device_AddressableMemories_Args *args) {
    args->memories = args->device->memories;
    args->num_memories = pj_device_is_here(args->device) ? PJ_MEMORIES : 0;
    return PJ_OK;
}

PJRT_Error *pj_Device_DefaultMemory(PJRT_Device_DefaultMemory_Args *args) {
    args->memory = pj_device_memory(args->device);
    return PJ_OK;
}

static void attributes_free(PJRT_Device_Attributes *a) { (void)a; } // the description owns them

PJRT_Error *pj_Device_GetAttributes(PJRT_Device_GetAttributes_Args *args) {
    PJRT_DeviceDescription *d = args->device->description;
    args->attributes = d->attributes;
    args->num_attributes = sizeof d->attributes / sizeof d->attributes[0];
    args->device_attributes = (PJRT_Device_Attributes *)d;
    args->attributes_deleter = attributes_free;
    return PJ_OK;
}

#define STAT(member, known, value)                                                                 \
    do {                                                                                           \
        if (PJRT_HAS(args, member##_is_set)) {                                                     \
            args->member = (value);                                                                \
            args->member##_is_set = (known);                                                       \
        }                                                                                          \
    } while (0)

PJRT_Error *pj_Device_MemoryStats(PJRT_Device_MemoryStats_Args *args) {
    PJRT_Client *c = args->device->client;
    pj_lock(c);
    MemoryUse use = pj_device_memory(args->device)->use;
    int64_t kept = (int64_t)c->pool.kept_bytes;
    pj_unlock(c);
    args->bytes_in_use = use.in_use;
    bool limited = use.limit > 0;
    STAT(peak_bytes_in_use, true, use.peak);
    STAT(num_allocs, true, use.allocs);
    STAT(largest_alloc_size, true, use.largest);
    STAT(bytes_limit, limited, use.limit);
    STAT(bytes_reserved, true, 0);
    STAT(peak_bytes_reserved, true, 0);
    STAT(bytes_reservable_limit, limited, use.limit);
    STAT(largest_free_block_bytes, limited, use.limit - use.in_use);
    STAT(pool_bytes, true, use.in_use + kept);
    STAT(peak_pool_bytes, false, 0);
    STAT(peak_allocated_bytes, true, use.peak);
    return PJ_OK;
}

PJRT_Error *pj_Device_ClearMemoryStats(PJRT_Device_ClearMemoryStats_Args *args) {
    PJRT_Client *c = args->device->client;
    pj_lock(c);
    MemoryUse *use = &pj_device_memory(args->device)->use;
    use->peak = use->in_use;
    use->allocs = use->largest = 0;
    pj_unlock(c);
    return PJ_OK;
}

// Nothing runs behind the caller's back, so there is nothing to track: no event is a valid answer.
PJRT_Error *pj_Device_CreateAsyncTrackingEvent(PJRT_Device_CreateAsyncTrackingEvent_Args *args) {
    args->event = NULL;
    return PJ_OK;
}

PJRT_Error *pj_AsyncTrackingEvent_Destroy(PJRT_AsyncTrackingEvent_Destroy_Args *args) {
    (void)args;
    return PJ_OK;
}

// ---- memories

PJRT_Error *pj_Memory_Id(PJRT_Memory_Id_Args *args) {
    args->id = args->memory->id;
    return PJ_OK;
}

PJRT_Error *pj_Memory_Kind(PJRT_Memory_Kind_Args *args) {
    args->kind = pj_memory_kinds[args->memory->kind];
    args->kind_size = strlen(args->kind);
    return PJ_OK;
}

PJRT_Error *pj_Memory_Kind_Id(PJRT_Memory_Kind_Id_Args *args) {
    args->kind_id = (int)args->memory->kind;
    return PJ_OK;
}

PJRT_Error *pj_Memory_DebugString(PJRT_Memory_DebugString_Args *args) {
    args->debug_string = args->memory->text;
    args->debug_string_size = strlen(args->debug_string);
    return PJ_OK;
}

PJRT_Error *pj_Memory_ToString(PJRT_Memory_ToString_Args *args) {
    args->to_string = args->memory->text;
    args->to_string_size = strlen(args->to_string);
    return PJ_OK;
}

PJRT_Error *pj_Memory_AddressableByDevices(PJRT_Memory_AddressableByDevices_Args *args) {
    args->devices = &args->memory->device;
    args->num_devices = 1;
    return PJ_OK;
}
