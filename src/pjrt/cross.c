// SPDX-License-Identifier: Apache-2.0
// cross.c — the cross-host transfers extension: arrays from a device of one process to a device of another, as device_put asks for them.
//
// Every process makes the same transfers in the same order and counts them alike, so a key names one at both ends. They run in that order on
// a thread of their own, beside the launches: one waits only for launches and transfers that come before it everywhere, so there is always
// one that can go on. What could not be computed is sent too: before its bytes goes a sentence, empty when all is well.
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "pjrt/pjrt.h"

#define TAG_SEED 0x7075745f6f746872 // apart from the tags of collectives

typedef struct Transfer {
    Task task;
    PJRT_Client *client;
    Storage *storage;     // counted: what is sent, or filled
    PJRT_Event *done;     // counted
    int64_t key;
    int from, to;         // devices
    uint32_t process;     // the other
    bool sends;
    bool lies_otherwise;  // not row by row, which is what the receiver has room for
} Transfer;

static NetLaunch launch_of(const Transfer *t) {
    int64_t words[3] = {t->key, t->from, t->to};
    NetLaunch l = {.set = hash64(TAG_SEED, words, sizeof words), .loose = true};
    snprintf(l.name, sizeof l.name, "transfer %lld, device %d to %d", (long long)t->key, t->from, t->to);
    l.takes_part[t->process] = true;
    return l;
}

// One message, in the direction of the transfer. False: why tells.
static bool pass(const Transfer *t, void *data, size_t bytes, char why[NET_WHY_BYTES]) {
    Net *net = t->client->net;
    NetLaunch launch = launch_of(t);
    NetSeg seg = {data, bytes};
    NetMsg msg = {.process = t->process, .nsegs = 1, .segs = &seg};
    NetCall call = {.launch = &launch, .tag = launch.set, .op = launch.name};
    if (!net_launch_begin(net, &launch, why, NET_WHY_BYTES))
        return false;
    bool ok = net_exchange(net, &call, &msg, t->sends, &msg, !t->sends, why, NET_WHY_BYTES);
    net_launch_end(net, &launch, ok ? NULL : why);
    return ok;
}

static void sentence_of(const PJRT_Error *e, char why[NET_WHY_BYTES]) {
    PJRT_Error_Message_Args m = {.struct_size = sizeof m, .error = e};
    pj_Error_Message(&m);
    snprintf(why, NET_WHY_BYTES, "%.*s", (int)m.message_size, m.message);
}

static PJRT_Error *failed(const char *why) { return pj_error(PJRT_Error_Code_UNAVAILABLE, "opentrn: device_put: %s", why); }

static PJRT_Error *send_now(const Transfer *t) {
    char word[NET_WHY_BYTES] = "", why[NET_WHY_BYTES];
    PJRT_Error *e = pj_storage_wait(t->storage);
    if (!e && t->lies_otherwise)
        e = pj_error(PJRT_Error_Code_UNIMPLEMENTED, "opentrn: an array that does not lie row by row cannot go to another process");
    if (e)
        sentence_of(e, word);
    bool ok = pass(t, word, sizeof word, why);
    if (ok && !e && t->storage->bytes)
        ok = pass(t, t->storage->data, t->storage->bytes, why);
    return e ? e : ok ? PJ_OK : failed(why);
}

static PJRT_Error *fill(Storage *s) {
    PJRT_Client *c = s->memory->client;
    pj_lock(c);
    PJRT_Error *e = pj_storage_fill_locked(s) ? PJ_OK : pj_storage_failed(s->memory, s->bytes);
    pj_unlock(c);
    return e;
}

static PJRT_Error *receive_now(const Transfer *t) {
    char word[NET_WHY_BYTES], why[NET_WHY_BYTES];
    PJRT_Error *e = fill(t->storage);
    if (e) { // the sender shall not wait for us
        NetLaunch l = launch_of(t);
        sentence_of(e, why);
        net_launch_fail(t->client->net, &l, why);
        return e;
    }
    bool ok = pass(t, word, sizeof word, why);
    word[sizeof word - 1] = 0;
    if (ok && *word)
        return failed(word);
    if (ok && t->storage->bytes)
        ok = pass(t, t->storage->data, t->storage->bytes, why);
    return ok ? PJ_OK : failed(why);
}

static void transfer_task(Task *task) {
    Transfer *t = (Transfer *)task;
    PJRT_Client *c = t->client;
    pj_event_set(t->done, t->sends ? send_now(t) : receive_now(t));
    pj_event_drop(t->done);
    pj_storage_release(t->storage);
    free(t);
    pj_lock(c);
    c->live--;
    pj_unlock(c);
}

// Takes over t.storage; done is shared with the caller.
static PJRT_Error *transfer_queue(const Transfer *t) {
    PJRT_Client *c = t->client;
    Transfer *own = malloc(sizeof *own);
    if (!own) {
        pj_storage_release(t->storage);
        return pj_error_nomem();
    }
    *own = *t;
    own->task.run = transfer_task;
    pj_event_hold(own->done);
    pj_lock(c);
    c->live++;
    pj_unlock(c);
    if (!pj_queue_push(c->transfers, &own->task))
        transfer_task(&own->task); // no thread to be had
    return PJ_OK;
}

// The process that has the device, another than this.
static PJRT_Error *process_of(PJRT_Client *c, int device, uint32_t *process) {
    bool known = c->net && device >= 0 && (size_t)device < c->topology->count;
    assert(!known || c->topology->descriptions[device].id == device);
    *process = known ? (uint32_t)c->topology->descriptions[device].process : 0;
    if (known && *process != c->topology->process)
        return PJ_OK;
    return pj_error(PJRT_Error_Code_INVALID_ARGUMENT, "opentrn: device %d is not one of another process", device);
}

// ---- the functions

static PJRT_Error *send_one(PJRT_Client *c, PJRT_Buffer *b, int to, int64_t key, PJRT_Event **event) {
    Transfer t = {.client = c, .key = key, .from = b->memory->device->description->id, .to = to, .sends = true, .lies_otherwise = b->order};
    PJRT_Error *e = process_of(c, to, &t.process);
    if (e)
        return e;
    t.storage = pj_buffer_hold(b);
    if (!t.storage)
        return pj_buffer_gone("sent to another process");
    t.done = pj_event_make();
    if (!t.done) {
        pj_storage_release(t.storage);
        return pj_error_nomem();
    }
    e = transfer_queue(&t);
    if (e)
        pj_event_drop(t.done);
    else
        *event = t.done;
    return e;
}

static PJRT_Error *send_all(PJRT_Transfers_PJRT_Client_CrossHostSendBuffers_Args *args) {
    PJRT_Error *e = PJ_OK;
    size_t n = 0;
    for (; n < args->num_buffers && !e; n++)
        e = send_one(args->client, args->buffers[n], args->dst_global_device_ids[n], args->transfer_keys[n], &args->send_events[n]);
    for (size_t i = 0; e && i + 1 < n; i++) // the caller looks at none of them
        pj_event_drop(args->send_events[i]);
    return e;
}

static PJRT_Error *receive_one(PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers_Args *args, size_t i) {
    PJRT_Client *c = args->client;
    PJRT_Memory *m = pj_device_memory(args->device);
    Transfer t = {.client = c, .key = args->transfer_keys[i], .from = args->src_global_device_ids[i], .to = args->device->description->id};
    size_t bytes = 0, rank = args->shape_num_dims[i];
    PJRT_Error *e = process_of(c, t.from, &t.process);
    if (!e)
        e = pj_device_layout_check(args->layouts[i]);
    if (!e)
        e = pj_shape_bytes(args->element_types[i], args->num_dims[i], rank, &bytes);
    if (e)
        return e;
    t.done = pj_event_make();
    pj_lock(c);
    t.storage = t.done ? pj_storage_promise_locked(m, bytes, t.done) : NULL;
    PJRT_Buffer *b = t.storage ? pj_buffer_make_locked(m, t.storage, args->element_types[i], args->num_dims[i], rank, bytes) : NULL;
    if (b)
        pj_storage_hold(t.storage); // the transfer's
    else
        pj_storage_drop_locked(t.storage);
    pj_unlock(c);
    args->buffers[i] = b;
    e = b ? transfer_queue(&t) : pj_error_nomem();
    if (e && b)
        pj_Buffer_Destroy(&(PJRT_Buffer_Destroy_Args){.struct_size = sizeof(PJRT_Buffer_Destroy_Args), .buffer = b});
    pj_event_drop(t.done);
    return e;
}

static PJRT_Error *receive_all(PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers_Args *args) {
    PJRT_Error *e = PJ_OK;
    size_t n = 0;
    for (; n < args->num_shapes && !e; n++)
        e = receive_one(args, n);
    for (size_t i = 0; e && i + 1 < n; i++)
        pj_Buffer_Destroy(&(PJRT_Buffer_Destroy_Args){.struct_size = sizeof(PJRT_Buffer_Destroy_Args), .buffer = args->buffers[i]});
    return e;
}

static PJRT_Error *no_descriptors(void *args) {
    (void)args;
    return pj_error(PJRT_Error_Code_UNIMPLEMENTED, "opentrn: arrays go to other processes by keys, not by descriptors");
}

static void copy_to_remote(PJRT_Transfers_PJRT_Buffer_CopyToRemoteDevice_Args *args) {
    PJRT_Error *e = no_descriptors(args);
    pj_event_drop(args->event);
    args->on_done(e, false, args->user_arg);
    pj_Error_Destroy(&(PJRT_Error_Destroy_Args){.struct_size = sizeof(PJRT_Error_Destroy_Args), .error = e});
}

const PJRT_CrossHostTransfers_Extension pj_transfers_extension = {
    .base = {.struct_size = sizeof(PJRT_CrossHostTransfers_Extension),
             .type = PJRT_Extension_Type_CrossHostTransfers,
             .next = (PJRT_Extension_Base *)&pj_partitioner_extension.base},
    .PJRT_Client_MakeCrossHostReceiveBuffers = no_descriptors,
    .PJRT_Buffer_CopyToRemoteDevice = copy_to_remote,
    .PJRT_Client_CrossHostReceiveBuffers = receive_all,
    .PJRT_Client_CrossHostSendBuffers = send_all,
};
