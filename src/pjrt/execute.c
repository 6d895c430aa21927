// SPDX-License-Identifier: Apache-2.0
// execute.c — launching a program on its devices.
//
//   launch   under the lock: check the arguments, hold their storage, make buffers for the results.
//            Everything that can be wrong with a call is found here, and a failing call changes
//            nothing. Donated arguments are deleted now.
//   run      find memory for the results, let the core read and write plain pointers, let go of the
//            arguments. A donated argument that nobody else holds gives its memory to the result
//            that may take it over, and the program runs in place.
//
// The run happens in the queue's thread, and the results get the event of the launch. When nothing
// is queued, all arguments are there and runs of the program are known to be short, waking another
// thread and being woken by it would be a good part of the time, and more where CPUs are few (the woken thread
// and the pool's may meet on one): then it happens inside the call, and no event is needed. So
// do programs that call the host, so that what a callback raises is raised where the user called.
// Results do not depend on which it was.
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/now.h"
#include "pjrt/pjrt.h"

#define INLINE_NS 4000000u // runs up to this long happen inside the call; two wake-ups are some hundredths of it

typedef struct Row { // one device of a launch
    PJRT_Device *device;
    PJRT_Buffer *const *args;
    PJRT_Buffer **outputs;
    Storage **in, **out; // held
    otrn_buffer *in_data, *out_data;
    size_t marked, held, made; // how far the launch came
} Row;

typedef struct Launch {
    Task task; // first
    PJRT_Executable *e;
    PjSpread *spread; // some devices are in other processes; held while queued
    PJRT_Event *done; // NULL: runs inside the call
    size_t num_rows;
    const otrn_buffer **in_rows, **out_rows;
    bool *donated; // per argument
    Row rows[];
} Launch;

// ---- launching: all under the lock

static bool arg_donated(const PJRT_Executable *e, const PJRT_ExecuteOptions *o, size_t i) {
    if (!e->args[i].donated)
        return false;
    for (size_t k = 0; o && k < o->num_non_donatable_input_indices; k++)
        if (o->non_donatable_input_indices[k] == (int64_t)i)
            return false;
    return true;
}

static PJRT_Error *arg_check(const PJRT_Executable *e, const Row *r, size_t i) {
    const Slot *s = &e->args[i];
    const PJRT_Buffer *b = r->args[i];
    if (!b->storage)
        return pj_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "opentrn: argument %zu of %s is a deleted or donated array", i,
                        otrn_exe_name(e->exe));
    bool same = b->bytes == s->bytes && (s->type == PJRT_Buffer_Type_TOKEN ||
                                         (b->type == s->type && b->rank == s->rank && b->order == s->order &&
                                          !memcmp(b->dims, s->dims, s->rank * sizeof *s->dims)));
    return same ? PJ_OK
                : pj_error(PJRT_Error_Code_INVALID_ARGUMENT,
                           "opentrn: argument %zu of %s has another shape or element type than "
                           "the program (%zu bytes, %zu expected)",
                           i, otrn_exe_name(e->exe), b->bytes, s->bytes);
}

// Marks donated buffers; finds one that is passed twice.
static PJRT_Error *donation_mark(const Launch *l, Row *r) {
    size_t n = l->e->num_args, clash = SIZE_MAX;
    for (; r->marked < n; r->marked++)
        if (l->donated[r->marked]) {
            if (r->args[r->marked]->donating) {
                clash = r->marked;
                break; // marked already: not to be unmarked twice
            }
            r->args[r->marked]->donating = true;
        }
    for (size_t i = 0; i < n && clash == SIZE_MAX; i++)
        if (!l->donated[i] && r->args[i]->donating)
            clash = i;
    return clash == SIZE_MAX
               ? PJ_OK
               : pj_error(PJRT_Error_Code_INVALID_ARGUMENT,
                          "opentrn: argument %zu of %s is donated and used at the same time",
                          clash, otrn_exe_name(l->e->exe));
}

static PJRT_Error *row_begin(const Launch *l, Row *r) {
    const PJRT_Executable *e = l->e;
    PJRT_Error *error = PJ_OK;
    for (size_t i = 0; i < e->num_args && !error; i++)
        error = arg_check(e, r, i);
    if (!error && e->any_donated)
        error = donation_mark(l, r);
    if (error)
        return error;
    for (; r->held < e->num_args; r->held++) {
        r->in[r->held] = r->args[r->held]->storage;
        pj_storage_hold(r->in[r->held]);
    }
    for (; r->made < e->num_results; r->made++) {
        const Slot *s = &e->results[r->made];
        PJRT_Memory *m = r->device->memories[s->kind];
        Storage *storage = pj_storage_promise_locked(m, s->bytes, l->done);
        PJRT_Buffer *b = storage ? pj_buffer_make_locked(m, storage, s->type, s->dims, s->rank,
                                                         s->bytes)
                                 : NULL;
        if (!b) {
            pj_storage_drop_locked(storage);
            return pj_error_nomem();
        }
        b->order = s->order;
        pj_storage_hold(storage); // the run's
        r->outputs[r->made] = b;
        r->out[r->made] = storage;
    }
    return PJ_OK;
}

// Back to where it was before; also takes back results of a run that failed inside its call.
static void row_undo(const Launch *l, Row *r) {
    for (size_t i = 0; i < r->marked && l->e->any_donated; i++)
        if (l->donated[i])
            r->args[i]->donating = false;
    for (size_t i = 0; i < r->held; i++)
        pj_storage_drop_locked(r->in[i]);
    for (size_t i = 0; i < r->made; i++) {
        pj_storage_drop_locked(r->out[i]);
        pj_storage_drop_locked(r->outputs[i]->storage);
        free(r->outputs[i]);
        l->e->client->live--;
    }
}

static void row_donate(const Launch *l, Row *r) {
    for (size_t i = 0; i < l->e->num_args; i++)
        if (l->donated[i]) {
            r->args[i]->donating = false;
            pj_storage_drop_locked(r->args[i]->storage);
            r->args[i]->storage = NULL;
        }
}

static PJRT_Error *launch_begin(Launch *l) {
    PJRT_Client *c = l->e->client;
    PJRT_Error *error = PJ_OK;
    size_t n = 0;
    pj_lock(c);
    for (; n < l->num_rows && !error; n++)
        error = row_begin(l, &l->rows[n]);
    for (size_t i = 0; i < n; i++)
        if (error)
            row_undo(l, &l->rows[i]);
        else if (l->e->any_donated)
            row_donate(l, &l->rows[i]);
    pj_unlock(c);
    return error;
}

// ---- running

// The first error among the arguments: what they were computed from failed. Results of earlier launches are there; an
// array that comes in pieces is waited for (upload.c).
static PJRT_Error *args_error(const Launch *l) {
    PJRT_Error *error = PJ_OK;
    for (size_t d = 0; d < l->num_rows; d++)
        for (size_t i = 0; i < l->e->num_args && !error; i++)
            if (l->rows[d].in[i]->ready)
                error = pj_event_wait(l->rows[d].in[i]->ready);
    return error;
}

// Memory for result i: that of a donated argument which only this run holds.
static bool result_fill(const Launch *l, Row *r, size_t i) {
    const Slot *s = &l->e->results[i];
    if (s->alias >= 0 && l->donated[s->alias]) {
        Storage *from = r->in[s->alias];
        if (atomic_load(&from->refs) == 1 && from->block && from->bytes == s->bytes &&
            from->memory == r->out[i]->memory) {
            r->in_data[s->alias] = (otrn_buffer){from->data, from->bytes};
            pj_storage_move_locked(r->out[i], from);
            return true;
        }
    }
    return pj_storage_fill_locked(r->out[i]);
}

static PJRT_Error *run_begin(Launch *l) {
    PJRT_Client *c = l->e->client;
    PJRT_Error *error = args_error(l);
    if (error)
        return error;
    pj_lock(c);
    for (size_t d = 0; d < l->num_rows && !error; d++) {
        Row *r = &l->rows[d];
        for (size_t i = 0; i < l->e->num_args; i++)
            r->in_data[i] = (otrn_buffer){r->in[i]->data, r->in[i]->bytes};
        for (size_t i = 0; i < l->e->num_results && !error; i++) {
            if (!result_fill(l, r, i))
                error = pj_storage_failed(r->out[i]->memory, r->out[i]->bytes);
            r->out_data[i] = (otrn_buffer){r->out[i]->data, r->out[i]->bytes};
        }
        l->in_rows[d] = r->in_data;
        l->out_rows[d] = r->out_data;
    }
    pj_unlock(c);
    return error;
}

static otrn_status program_run(const Launch *l, otrn_error *err) {
    const PJRT_Executable *e = l->e;
    if (l->spread)
        return rt_execute_spread(e->exe, e->replicas, e->partitions, &l->spread->run, l->in_rows, e->num_args, l->out_rows,
                                 e->num_results, err);
    return l->num_rows == 1 ? otrn_execute(e->exe, l->in_rows[0], e->num_args, l->out_rows[0], e->num_results, err)
                            : otrn_execute_many(e->exe, e->replicas, e->partitions, l->in_rows, e->num_args, l->out_rows,
                                                e->num_results, err);
}

static PJRT_Error *run_program(const Launch *l) {
    PJRT_Executable *e = l->e;
    otrn_error err;
    err.struct_size = sizeof err; // the rest is filled only on failure
    int64_t begin = now_ns();
    otrn_status s = program_run(l, &err);
    if (s == OTRN_NOMEM && pj_storage_drain(e->client)) // nothing has run: scratch memory comes first
        s = program_run(l, &err);
    uint64_t took = (uint64_t)(now_ns() - begin), before = atomic_load(&e->run_ns);
    atomic_store(&e->run_ns, 1 + (before ? (3 * before + took) / 4 : took));
    pj_runlog_add(e->client, e, took);
    pj_profiler_note(e, took);
    return s ? pj_error_from(&err) : PJ_OK;
}

// Lets go of everything. `taken_back`: the results are the launch's, not the caller's.
static void run_end(Launch *l, bool failed, bool taken_back) {
    PJRT_Client *c = l->e->client;
    pj_lock(c);
    for (size_t d = 0; d < l->num_rows; d++) {
        Row *r = &l->rows[d];
        if (taken_back) {
            row_undo(l, r);
            continue;
        }
        for (size_t i = 0; i < l->e->num_args; i++)
            pj_storage_drop_locked(r->in[i]);
        for (size_t i = 0; i < l->e->num_results; i++) {
            if (failed)
                pj_storage_empty_locked(r->out[i]);
            pj_storage_drop_locked(r->out[i]);
        }
    }
    pj_unlock(c);
}

// Who waits for a result looks for signals now and then (jaxlib every 200 ms) and raises KeyboardInterrupt. An error that is
// there first is raised in its stead, and the interrupt then breaks into the printing of that error: nobody sees either.
static void let_interrupt_be_seen(const PJRT_Error *error) {
    if (pj_error_is(error, PJRT_Error_Code_CANCELLED))
        nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
}

static void launch_task(Task *t) {
    Launch *l = (Launch *)t;
    PJRT_Client *c = l->e->client;
    PJRT_Error *error = run_begin(l);
    if (!error)
        error = run_program(l);
    run_end(l, error, false);
    let_interrupt_be_seen(error);
    pj_event_set(l->done, error);
    pj_event_drop(l->done);
    pj_exe_drop(l->e);
    pj_spread_drop(l->spread);
    free(l);
    pj_lock(c);
    c->live--;
    pj_unlock(c);
}

static PJRT_Error *launch_inline(Launch *l) {
    PJRT_Error *error = run_begin(l);
    if (!error)
        error = run_program(l);
    for (size_t d = 0; d < l->num_rows; d++)
        l->rows[d].marked = 0; // the donated buffers are the caller's again, and may be gone
    run_end(l, error, error);
    return error;
}

// ---- the call

// TensorFlow hands each replica's part of a collective to a device on its own.
static const char replicas[] = ": TensorFlow's collectives do not work over devices here; after `import opentrn.tensorflow`, or with "
                               "cross_device_ops=tf.distribute.ReductionToOneDevice(), MirroredStrategy trains without them (docs/from-tf-keras.md)";

static PJRT_Error *execute_check(const PJRT_LoadedExecutable_Execute_Args *args) {
    const PJRT_LoadedExecutable *x = args->executable;
    const PJRT_ExecuteOptions *o = args->options;
    const char *name = otrn_exe_name(x->exe->exe);
    if (atomic_load(&args->executable->deleted))
        return pj_error(PJRT_Error_Code_FAILED_PRECONDITION, "opentrn: %s was deleted", name);
    if (args->num_devices != x->num_here)
        return pj_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "opentrn: %s runs on %zu devices, arguments are given for %zu%s", name,
                        x->num_here, args->num_devices, strstr(name, "CollectiveReduce") ? replicas : "");
    if (args->num_devices && args->num_args != x->exe->num_args)
        return pj_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "opentrn: %s takes %zu arguments, %zu were given", name, x->exe->num_args,
                        args->num_args);
    if (o && (o->num_send_ops || o->num_recv_ops))
        return pj_error(PJRT_Error_Code_UNIMPLEMENTED,
                        "opentrn does not transfer to the host by send and recv (%zu sends, %zu "
                        "receives)",
                        o->num_send_ops, o->num_recv_ops);
    return PJ_OK;
}

static size_t launch_bytes(const PJRT_Executable *e, size_t rows) {
    size_t per_row = (e->num_args + e->num_results) * (sizeof(void *) + sizeof(otrn_buffer));
    return sizeof(Launch) + rows * (sizeof(Row) + per_row + 2 * sizeof(void *)) + e->num_args;
}

// Lays everything out in the memory behind the rows.
static void launch_init(Launch *l, const PJRT_LoadedExecutable_Execute_Args *args) {
    PJRT_LoadedExecutable *x = args->executable;
    PJRT_Executable *e = x->exe;
    size_t n = x->num_here, na = e->num_args, nr = e->num_results;
    *l = (Launch){.task.run = launch_task, .e = e, .spread = x->spread, .num_rows = n};
    void **at = (void **)(l->rows + n);
    l->in_rows = (const otrn_buffer **)at;
    l->out_rows = (const otrn_buffer **)at + n;
    otrn_buffer *data = (otrn_buffer *)(at + 2 * n);
    at = (void **)(data + n * (na + nr));
    for (size_t d = 0; d < n; d++, at += na + nr, data += na + nr)
        l->rows[d] = (Row){.device = x->here[d],
                           .args = args->argument_lists[d],
                           .outputs = args->output_lists[d],
                           .in = (Storage **)at,
                           .out = (Storage **)at + na,
                           .in_data = data,
                           .out_data = data + na};
    l->donated = (bool *)at;
    for (size_t i = 0; i < na; i++)
        l->donated[i] = arg_donated(e, args->options, i);
    if (n == 1 && !l->spread && PJRT_HAS(args, execute_device) && args->execute_device)
        l->rows[0].device = args->execute_device;
}

static bool runs_inline(const Launch *l) {
    PJRT_Client *c = l->e->client;
    uint64_t ns = atomic_load(&l->e->run_ns);
    bool wanted = (ns && ns <= INLINE_NS) || l->e->calls_host;
    if (c->dispatch == PJ_ASYNC || (c->dispatch == PJ_AUTO && !wanted))
        return false;
    if (!pj_queue_is_idle(c->queue)) // order is order
        return false;
    bool ready = true;
    pj_lock(c);
    for (size_t d = 0; d < l->num_rows; d++)
        for (size_t i = 0; i < l->e->num_args && ready; i++) {
            Storage *s = l->rows[d].args[i]->storage;
            ready = !s || pj_storage_is_ready(s);
        }
    pj_unlock(c);
    return ready;
}

// The launch goes to the queue, which owns it from then on.
static PJRT_Error *launch_queue(const Launch *l, size_t bytes, PJRT_Event **events) {
    PJRT_Client *c = l->e->client;
    Launch *own = malloc(bytes);
    PJRT_Event *done = own ? pj_event_make() : NULL;
    if (!done) {
        free(own);
        return pj_error_nomem();
    }
    memcpy(own, l, bytes);
    // pointers into the block move with it
#define MOVED(p) ((void *)((char *)own + ((char *)(p) - (char *)l)))
    own->in_rows = MOVED(l->in_rows);
    own->out_rows = MOVED(l->out_rows);
    own->donated = MOVED(l->donated);
    for (size_t d = 0; d < l->num_rows; d++) {
        own->rows[d].in = MOVED(l->rows[d].in);
        own->rows[d].out = MOVED(l->rows[d].out);
        own->rows[d].in_data = MOVED(l->rows[d].in_data);
        own->rows[d].out_data = MOVED(l->rows[d].out_data);
    }
#undef MOVED
    own->done = done;
    PJRT_Error *error = launch_begin(own);
    if (error) {
        pj_event_drop(done);
        free(own);
        return error;
    }
    for (size_t d = 0; events && d < l->num_rows; d++) {
        pj_event_hold(done);
        events[d] = done;
    }
    atomic_fetch_add(&own->e->refs, 1);
    if (own->spread)
        atomic_fetch_add(&own->spread->refs, 1);
    pj_lock(c);
    c->live++;
    pj_unlock(c);
    if (!pj_queue_push(c->queue, &own->task))
        launch_task(&own->task); // no thread to be had: it is done before the call returns
    return PJ_OK;
}

PJRT_Error *pj_LoadedExecutable_Execute(PJRT_LoadedExecutable_Execute_Args *args) {
    PJRT_Error *error = execute_check(args);
    if (error || !args->num_devices) // all of its devices are other processes'
        return error;
    size_t bytes = launch_bytes(args->executable->exe, args->num_devices);
    _Alignas(max_align_t) char room[4096];
    Launch *l = bytes <= sizeof room ? (Launch *)room : malloc(bytes);
    if (!l)
        return pj_error_nomem();
    launch_init(l, args);
    if (runs_inline(l)) {
        error = launch_begin(l);
        if (!error)
            error = launch_inline(l);
        for (size_t d = 0; !error && args->device_complete_events && d < l->num_rows; d++)
            args->device_complete_events[d] = pj_event_ready();
    } else {
        error = launch_queue(l, bytes, args->device_complete_events);
    }
    if (l != (Launch *)room)
        free(l);
    return error;
}

// ---- contexts: what a caller wants its typed custom calls to find. We have no such calls, so nothing is put in.

struct PJRT_ExecuteContext {
    char none;
};

PJRT_Error *pj_ExecuteContext_Create(PJRT_ExecuteContext_Create_Args *args) {
    args->context = calloc(1, sizeof *args->context);
    return args->context ? PJ_OK : pj_error_nomem();
}

PJRT_Error *pj_ExecuteContext_Destroy(PJRT_ExecuteContext_Destroy_Args *args) {
    free(args->context);
    return PJ_OK;
}
