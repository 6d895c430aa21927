// SPDX-License-Identifier: Apache-2.0
// execute.c — running a program, in the calling thread.
//
// Three steps, of which only the middle one takes time:
//   begin   under the lock: check the arguments, hold their storage, find storage for the results
//   run     the core reads and writes plain pointers
//   end     under the lock: let go of the arguments, delete the donated ones
// A donated argument whose memory a result may take over, and which nobody else holds, gives its
// storage to that result and the program runs in place. Otherwise the result has storage of its own
// and the argument is freed after the run. Everything that can fail has happened before the run, so
// that a failing call changes nothing; only a program that fails while it runs consumes its
// donations.
#include <stdlib.h>
#include <string.h>

#include "pjrt/pjrt.h"

typedef struct Run {
    const PJRT_Executable *e;
    PJRT_Memory *memory;
    const PJRT_ExecuteOptions *options;
    PJRT_Buffer *const *args;
    PJRT_Buffer **outputs;
    size_t made;               // outputs made so far
    size_t held;               // arguments held so far
    size_t marked;             // arguments looked at for donation so far
    Storage **storage;         // per argument
    const void **in;           // per argument
    void **out;                // per result
} Run;

static bool arg_donated(const Run *r, size_t i) {
    if (!r->e->args[i].donated)
        return false;
    const PJRT_ExecuteOptions *o = r->options;
    for (size_t k = 0; o && k < o->num_non_donatable_input_indices; k++)
        if (o->non_donatable_input_indices[k] == (int64_t)i)
            return false;
    return true;
}

static PJRT_Error *arg_check(const Run *r, size_t i) {
    const Slot *s = &r->e->args[i];
    const PJRT_Buffer *b = r->args[i];
    if (!b->storage)
        return pj_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "opentrn: argument %zu of %s is a deleted or donated array", i,
                        otrn_exe_name(r->e->exe));
    bool same = b->bytes == s->bytes && (s->type == PJRT_Buffer_Type_TOKEN ||
                                         (b->type == s->type && b->rank == s->rank &&
                                          !memcmp(b->dims, s->dims, s->rank * sizeof *s->dims)));
    return same ? PJ_OK
                : pj_error(PJRT_Error_Code_INVALID_ARGUMENT,
                           "opentrn: argument %zu of %s has another shape or element type than "
                           "the program (%zu bytes, %zu expected)",
                           i, otrn_exe_name(r->e->exe), b->bytes, s->bytes);
}

// Marks donated buffers; finds one that is passed twice or is being consumed by another call.
static PJRT_Error *donation_mark(Run *r) {
    size_t clash = SIZE_MAX;
    for (; r->marked < r->e->num_args && clash == SIZE_MAX; r->marked++)
        if (arg_donated(r, r->marked)) {
            if (r->args[r->marked]->donating) {
                clash = r->marked;
                break; // not ours to unmark
            }
            r->args[r->marked]->donating = true;
        }
    for (size_t i = 0; i < r->e->num_args && clash == SIZE_MAX; i++)
        if (!arg_donated(r, i) && r->args[i]->donating)
            clash = i;
    return clash == SIZE_MAX
               ? PJ_OK
               : pj_error(PJRT_Error_Code_INVALID_ARGUMENT,
                          "opentrn: argument %zu of %s is donated and used at the same time",
                          clash, otrn_exe_name(r->e->exe));
}

static void donation_unmark(Run *r) {
    for (size_t i = 0; i < r->marked; i++)
        if (arg_donated(r, i))
            r->args[i]->donating = false;
}

// Storage for result i: that of a donated argument which only its buffer and this run hold.
static Storage *result_storage(Run *r, size_t i) {
    const Slot *s = &r->e->results[i];
    if (s->alias >= 0 && (size_t)s->alias < r->e->num_args && arg_donated(r, (size_t)s->alias)) {
        Storage *from = r->storage[s->alias];
        if (atomic_load(&from->refs) == 2 && from->bytes == s->bytes && from->size_class >= 0 &&
            from->memory == r->memory) {
            pj_storage_hold(from);
            return from;
        }
    }
    return pj_storage_make_locked(r->memory, s->bytes);
}

static PJRT_Error *run_begin(Run *r) {
    const PJRT_Executable *e = r->e;
    for (size_t i = 0; i < e->num_args; i++) {
        PJRT_Error *error = arg_check(r, i);
        if (error)
            return error;
    }
    if (e->any_donated) {
        PJRT_Error *error = donation_mark(r);
        if (error)
            return error;
    }
    for (; r->held < e->num_args; r->held++) {
        Storage *s = r->storage[r->held] = r->args[r->held]->storage;
        pj_storage_hold(s);
        r->in[r->held] = s->data;
    }
    for (; r->made < e->num_results; r->made++) {
        const Slot *s = &e->results[r->made];
        Storage *storage = result_storage(r, r->made);
        PJRT_Buffer *b = storage ? pj_buffer_make_locked(r->memory, storage, s->type, s->dims,
                                                         s->rank, s->bytes)
                                 : NULL;
        if (!b) {
            PJRT_Error *error = pj_storage_failed(r->memory, s->bytes);
            pj_storage_drop_locked(storage);
            return error;
        }
        r->outputs[r->made] = b;
        r->out[r->made] = storage->data;
    }
    return PJ_OK;
}

static void run_end(Run *r, bool ran, bool failed) {
    for (size_t i = 0; i < r->held; i++)
        pj_storage_drop_locked(r->storage[i]);
    if (r->e->any_donated) {
        donation_unmark(r);
        for (size_t i = 0; i < r->e->num_args && ran; i++)
            if (arg_donated(r, i)) {
                pj_storage_drop_locked(r->args[i]->storage);
                r->args[i]->storage = NULL;
            }
    }
    for (size_t i = 0; i < r->made && failed; i++) {
        pj_storage_drop_locked(r->outputs[i]->storage);
        free(r->outputs[i]);
        r->memory->client->live--;
    }
}

static PJRT_Error *run(Run *r) {
    PJRT_Client *c = r->e->client;
    pj_lock(c);
    PJRT_Error *error = run_begin(r);
    if (error)
        run_end(r, false, true);
    pj_unlock(c);
    if (error)
        return error;
    otrn_error err;
    err.code = OTRN_OK; // the rest is filled only on failure
    if (otrn_execute(r->e->exe, r->in, r->out, &err))
        error = pj_error_from(&err);
    pj_lock(c);
    run_end(r, true, error);
    pj_unlock(c);
    return error;
}

static PJRT_Error *execute_check(const PJRT_LoadedExecutable_Execute_Args *args) {
    const PJRT_Executable *e = args->executable->exe;
    const PJRT_ExecuteOptions *o = args->options;
    if (atomic_load(&args->executable->deleted))
        return pj_error(PJRT_Error_Code_FAILED_PRECONDITION, "opentrn: %s was deleted",
                        otrn_exe_name(e->exe));
    if (args->num_devices != 1)
        return pj_error(PJRT_Error_Code_UNIMPLEMENTED,
                        "opentrn runs a program on one device, not on %zu", args->num_devices);
    if (args->num_args != e->num_args)
        return pj_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "opentrn: %s takes %zu arguments, %zu were given", otrn_exe_name(e->exe),
                        e->num_args, args->num_args);
    if (o && (o->num_send_ops || o->num_recv_ops))
        return pj_error(PJRT_Error_Code_UNIMPLEMENTED,
                        "opentrn does not call back into the host yet (%zu sends, %zu receives)",
                        o->num_send_ops, o->num_recv_ops);
    return PJ_OK;
}

PJRT_Error *pj_LoadedExecutable_Execute(PJRT_LoadedExecutable_Execute_Args *args) {
    PJRT_Error *error = execute_check(args);
    if (error)
        return error;
    const PJRT_Executable *e = args->executable->exe;
    PJRT_Device *d = PJRT_HAS(args, execute_device) && args->execute_device
                         ? args->execute_device
                         : args->executable->device;
    void *room[2 * PJ_INLINE_ARGS], **at = room;
    size_t want = 2 * e->num_args + e->num_results;
    if (want > sizeof room / sizeof room[0] && !(at = malloc(want * sizeof *at)))
        return pj_error_nomem();
    Run r = {.e = e,
             .memory = pj_device_memory(d),
             .options = args->options,
             .args = args->argument_lists[0],
             .outputs = args->output_lists[0],
             .storage = (Storage **)at,
             .in = (const void **)at + e->num_args,
             .out = at + 2 * e->num_args};
    error = run(&r);
    if (at != room)
        free(at);
    if (!error && args->device_complete_events)
        args->device_complete_events[0] = pj_event_ready();
    return error;
}
