// SPDX-License-Identifier: Apache-2.0
// partition.c — the custom partitioner extension: calls whose cutting a function of the front end decides.
//
// jaxlib registers a partitioner by the call's name. A program that has such a call is rewritten before it is compiled
// (spmd/custom.c): the partitioner is asked once for each call, and what it answers stands in the program from then on.
// So the cache, serialised executables and reports know nothing of it.
//
// The one who registers a name first keeps it: opentrn's package does so before JAX, with a partitioner that answers in
// text, where JAX's answers in a form that only jaxlib reads. Registration has no client, so the table is the process's.
#define _GNU_SOURCE // memmem
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "pjrt/pjrt.h"
#include "rt/rt.h"

#define NAMES_MAX 64

typedef struct Row {
    char *name;
    PartCallbacks *callbacks;
} Row;

static struct {
    pthread_mutex_t lock;
    size_t n;
    Row rows[NAMES_MAX];
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static PJRT_Error *register_partitioner(PJRT_Register_Custom_Partitioner_Args *args) {
    PJRT_Error *error = PJ_OK;
    pthread_mutex_lock(&table.lock);
    size_t i = 0;
    while (i < table.n && (strlen(table.rows[i].name) != args->name_size ||
                           memcmp(table.rows[i].name, args->name, args->name_size)))
        i++;
    char *name = i == table.n ? strndup(args->name, args->name_size) : NULL;
    if (i == NAMES_MAX)
        error = pj_error(PJRT_Error_Code_RESOURCE_EXHAUSTED, "opentrn: more than %d custom partitioners", NAMES_MAX);
    else if (i == table.n && !name)
        error = pj_error_nomem();
    else if (i == table.n)
        table.rows[table.n++] = (Row){name, args->callbacks};
    else if (args->callbacks->free_all)
        args->callbacks->free_all(args->callbacks); // ours by now
    if (i == NAMES_MAX)
        free(name);
    pthread_mutex_unlock(&table.lock);
    return error;
}

// Calls of this name work on batches. They are computed whole, which is right and slower.
static PJRT_Error *register_batch(PJRT_Register_Batch_Partitionable_Args *args) {
    (void)args;
    return PJ_OK;
}

static PartCallbacks *find(const char *target) {
    PartCallbacks *found = NULL;
    pthread_mutex_lock(&table.lock);
    for (size_t i = 0; i < table.n && !found; i++)
        if (!strcmp(table.rows[i].name, target))
            found = table.rows[i].callbacks;
    pthread_mutex_unlock(&table.lock);
    return found;
}

// Does the program speak of one of them at all?
static bool is_mentioned(const void *bytes, size_t size) {
    bool found = false;
    pthread_mutex_lock(&table.lock);
    for (size_t i = 0; i < table.n && !found; i++)
        found = memmem(bytes, size, table.rows[i].name, strlen(table.rows[i].name));
    pthread_mutex_unlock(&table.lock);
    return found;
}

// ---- messages: ShapeProto (2 element type, 3 sizes, 4 members, 6 which sizes are only bounds), OpSharding (shardings.c)

static void put_number(Buf *out, uint64_t v) {
    for (; v > 0x7f; v >>= 7)
        put_u8(out, (uint8_t)(v | 0x80));
    put_u8(out, (uint8_t)v);
}

static void put_message(Buf *out, int field, const Buf *message) {
    put_number(out, (uint64_t)field << 3 | 2);
    put_number(out, message->n);
    buf_put(out, message->at, message->n);
}

// XLA counts element types otherwise than PJRT.
static int xla_type(int dtype) {
    static const uint8_t types[DT_COUNT] = {
        [DT_I1] = 1,        [DT_I8] = 2,          [DT_I16] = 3,        [DT_I32] = 4,         [DT_I64] = 5,
        [DT_UI8] = 6,       [DT_UI16] = 7,        [DT_UI32] = 8,       [DT_UI64] = 9,        [DT_F16] = 10,
        [DT_F32] = 11,      [DT_F64] = 12,        [DT_C64] = 15,       [DT_BF16] = 16,       [DT_C128] = 18,
        [DT_F8E5M2] = 19,   [DT_F8E4M3FN] = 20,   [DT_I4] = 21,        [DT_UI4] = 22,        [DT_F8E4M3B11FNUZ] = 23,
        [DT_F8E5M2FNUZ] = 24, [DT_F8E4M3FNUZ] = 25, [DT_I2] = 26,      [DT_UI2] = 27,        [DT_F8E4M3] = 28,
        [DT_F8E3M4] = 29,   [DT_F4E2M1FN] = 32,   [DT_F8E8M0FNU] = 33,
    };
    return types[dtype];
}
enum { XLA_TUPLE = 13, SHARDING_REPLICATED = 0, SHARDING_TUPLE = 2, SHARDING_TILED = 3 };

static void put_shape(Arena *a, Buf *out, const HloType *t) {
    Buf sizes = {.arena = a}, flags = {.arena = a};
    for (int i = 0; i < t->rank; i++) {
        put_number(&sizes, (uint64_t)t->dims[i]);
        put_number(&flags, 0);
    }
    put_number(out, 2 << 3);
    put_number(out, (uint64_t)xla_type(t->dtype));
    put_message(out, 3, &sizes);
    put_message(out, 6, &flags);
}

static void put_sharding(Buf *out, const char *text, uint32_t devices) {
    char *room = malloc(strlen(text) + 32);
    if (!room)
        return;
    buf_put(out, room, (size_t)(pj_sharding_encode(room, text, devices) - room));
    free(room);
}

static PartText text_of(Buf *b) { return (PartText){b->n ? (const char *)b->at : "", b->n}; }

static PartValue value_of(Arena *a, const CustomCall *call, uint32_t i) {
    Buf shape = {.arena = a}, sharding = {.arena = a};
    put_shape(a, &shape, call->types[i]);
    put_sharding(&sharding, call->shardings[i], call->devices);
    return (PartValue){text_of(&shape), true, text_of(&sharding)};
}

// One result by itself, several as a tuple.
static PartValue results_of(Arena *a, const CustomCall *call) {
    if (call->nresults == 1)
        return value_of(a, call, call->nargs);
    Buf shape = {.arena = a}, sharding = {.arena = a};
    put_number(&shape, 2 << 3);
    put_number(&shape, XLA_TUPLE);
    put_number(&sharding, 1 << 3);
    put_number(&sharding, SHARDING_TUPLE);
    for (uint32_t i = 0; i < call->nresults; i++) {
        PartValue v = value_of(a, call, call->nargs + i);
        put_message(&shape, 4, &(Buf){.at = (uint8_t *)v.shape.data, .n = v.shape.size});
        put_message(&sharding, 5, &(Buf){.at = (uint8_t *)v.sharding.data, .n = v.sharding.size});
    }
    return (PartValue){text_of(&shape), true, text_of(&sharding)};
}

// ---- reading an OpSharding

typedef struct Message { // the fields an OpSharding may have
    uint64_t type, replicate_last;
    VEC(int64_t) tiles, ids, iota, turn, kinds;
    VEC(PartText) members;
} Message;

typedef struct Asking {
    Ctx *ctx;
    Arena *arena;
    CustomCall *call;
} Asking;

_Noreturn static void refuse(const Asking *q, const char *why) {
    ctx_fail(q->ctx, OTRN_UNSUPPORTED, q->call->place, "the partitioner of %s gives a sharding that %s", q->call->target, why);
}

static uint64_t number(const Asking *q, PartText *m) {
    uint64_t v = 0;
    for (int shift = 0; m->size && shift < 64; shift += 7) {
        uint8_t byte = (uint8_t)*m->data++;
        m->size--;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return v;
    }
    refuse(q, "ends too early");
}

#define NUMBERS(list, m)                                                                           \
    while ((m).size)                                                                               \
    VEC_PUSH(q->arena, list, (int64_t)number(q, &(m)))

static Message read_message(const Asking *q, PartText m) {
    Message s = {0};
    while (m.size) {
        uint64_t tag = number(q, &m), field = tag >> 3;
        PartText part = m;
        if ((tag & 7) == 2) {
            size_t n = number(q, &m);
            if (n > m.size)
                refuse(q, "ends too early");
            part = (PartText){m.data, n};
            m.data += n;
            m.size -= n;
        } else if ((tag & 7) == 0) {
            number(q, &m);
            part.size -= m.size;
        } else {
            refuse(q, "cannot be read");
        }
        if (field == 1)
            s.type = number(q, &part);
        else if (field == 3)
            NUMBERS(&s.tiles, part);
        else if (field == 4)
            NUMBERS(&s.ids, part);
        else if (field == 5)
            VEC_PUSH(q->arena, &s.members, part);
        else if (field == 6)
            s.replicate_last = number(q, &part);
        else if (field == 8)
            NUMBERS(&s.kinds, part);
        else if (field == 9)
            NUMBERS(&s.iota, part);
        else if (field == 10)
            NUMBERS(&s.turn, part);
    }
    return s;
}

// Devices told as 0, 1, 2, … in a box of these sizes, whose axes are then put in another order.
static void ids_from_iota(const Asking *q, Message *s) {
    int64_t n = 1, stride[OTRN_MAX_RANK], at[OTRN_MAX_RANK] = {0};
    uint32_t rank = s->iota.n;
    for (uint32_t i = 0; i < rank; i++)
        if (rank > OTRN_MAX_RANK || s->iota.at[i] < 1 || (n *= s->iota.at[i]) > q->call->devices)
            refuse(q, "is of other devices");
    for (uint32_t i = rank, step = 1; i-- > 0; step *= (uint32_t)s->iota.at[i])
        stride[i] = step;
    for (uint32_t i = 0; i < s->turn.n; i++)
        if (s->turn.n != rank || s->turn.at[i] < 0 || s->turn.at[i] >= rank)
            refuse(q, "cannot be read");
    for (int64_t k = 0; k < n; k++) {
        int64_t id = 0;
        for (uint32_t i = 0; i < rank; i++)
            id += at[i] * stride[s->turn.n ? s->turn.at[i] : i];
        VEC_PUSH(q->arena, &s->ids, id);
        for (uint32_t i = rank; i-- > 0;) {
            if (++at[i] < s->iota.at[s->turn.n ? s->turn.at[i] : i])
                break;
            at[i] = 0;
        }
    }
}

// As an artifact tells it: "2,1|0,1,2,3", "" when every device has all.
static const char *sharding_text(const Asking *q, PartText m, uint32_t rank) {
    Message s = read_message(q, m);
    if (s.type == SHARDING_REPLICATED)
        return "";
    if (s.type != SHARDING_TILED)
        refuse(q, "is neither replicated nor tiled");
    bool copies = s.replicate_last || (s.kinds.n == 1 && !s.kinds.at[0]);
    if (s.kinds.n > 1 || (s.kinds.n && !copies) || s.tiles.n != rank + copies)
        refuse(q, "is not one of its value's dimensions");
    if (!s.ids.n)
        ids_from_iota(q, &s);
    if (s.ids.n != q->call->devices)
        refuse(q, "is of other devices");
    Buf out = {.arena = q->arena};
    bool cut = false;
    for (uint32_t i = 0; i < rank; i++) {
        buf_printf(&out, "%s%lld", i ? "," : "", (long long)s.tiles.at[i]);
        cut |= s.tiles.at[i] > 1;
    }
    for (uint32_t i = 0; i < s.ids.n; i++) {
        if (s.ids.at[i] < 0 || s.ids.at[i] >= q->call->devices)
            refuse(q, "is of other devices");
        buf_printf(&out, "%s%lld", i ? "," : "|", (long long)s.ids.at[i]);
    }
    return cut ? buf_cstr(&out) : "";
}

// ---- asking

static bool knows(void *arg, const char *target) {
    (void)arg;
    return find(target) != NULL;
}

static void take_answer(const Asking *q, const PartAsk *ask) {
    CustomCall *call = q->call;
    for (uint32_t i = 0; i < call->nargs; i++)
        call->shardings[i] = sharding_text(q, ask->arg_shardings[i], call->types[i]->rank);
    VEC(PartText) members = {0};
    if (call->nresults == 1) {
        VEC_PUSH(q->arena, &members, ask->result_sharding);
    } else {
        Message s = read_message(q, ask->result_sharding);
        for (uint32_t i = 0; i < s.members.n; i++)
            VEC_PUSH(q->arena, &members, s.members.at[i]);
    }
    if (members.n != call->nresults)
        refuse(q, "is of another number of results");
    for (uint32_t i = 0; i < call->nresults; i++)
        call->shardings[call->nargs + i] = sharding_text(q, members.at[i], call->types[call->nargs + i]->rank);
    call->program = arena_dup(q->arena, ask->program.data, ask->program.size);
    call->program_bytes = ask->program.size;
}

static void ask_one(void *arg, Ctx *ctx, Arena *a, CustomCall *call) {
    (void)arg;
    PartCallbacks *who = find(call->target);
    Asking q = {ctx, a, call};
    PartValue *args = ARENA_NEWN(a, PartValue, call->nargs + 1);
    for (uint32_t i = 0; i < call->nargs; i++)
        args[i] = value_of(a, call, i);
    PartAsk ask = {.num_args = call->nargs, .args = args, .result = results_of(a, call),
                   .config = {call->config, call->config_bytes}};
    who->partition(who, &ask);
    const char *why = ask.head.has_error ? arena_strndup(a, ask.head.message.data, ask.head.message.size) : NULL;
    if (!why) { // an error on the way must not lose what the callback made: copy first, read then
        PartText *shardings = ARENA_NEWN(a, PartText, call->nargs + 1);
        for (uint32_t i = 0; i < call->nargs; i++)
            shardings[i] = (PartText){arena_dup(a, ask.arg_shardings[i].data, ask.arg_shardings[i].size),
                                      ask.arg_shardings[i].size};
        ask.arg_shardings = shardings;
        ask.result_sharding.data = arena_dup(a, ask.result_sharding.data, ask.result_sharding.size);
        ask.program.data = arena_dup(a, ask.program.data, ask.program.size);
    }
    if (ask.head.cleanup)
        ask.head.cleanup(ask.head.data);
    if (why)
        ctx_fail(ctx, OTRN_VERIFY, call->place, "the partitioner of %s failed: %s", call->target, why);
    take_answer(&q, &ask);
}

typedef struct Parting {
    const void *bytes;
    size_t size;
    char **out;
    size_t *out_size;
} Parting;

static PJRT_Error *partition_all(void *arg, Ctx *ctx, Arena *a) {
    Parting *p = arg;
    Buf text = {.arena = a};
    CustomAsk who = {.knows = knows, .ask = ask_one};
    if (!rt_custom(ctx, a, "jax program", p->bytes, p->size, &who, &text))
        return PJ_OK;
    *p->out = malloc(text.n);
    if (!*p->out)
        return pj_error_nomem();
    memcpy(*p->out, text.at, text.n);
    *p->out_size = text.n;
    return PJ_OK;
}

PJRT_Error *pj_partition(const void *bytes, size_t size, char **out, size_t *out_size) {
    *out = NULL;
    if (!is_mentioned(bytes, size))
        return PJ_OK;
    return pj_try(partition_all, &(Parting){bytes, size, out, out_size});
}

const PJRT_Custom_Partitioner_Extension pj_partitioner_extension = {
    .base = {.struct_size = sizeof(PJRT_Custom_Partitioner_Extension),
             .type = PJRT_Extension_Type_Custom_Partitioner,
             .next = (PJRT_Extension_Base *)&pj_profiler_extension.base},
    .Register_Custom_Partitioner = register_partitioner,
    .Register_Batch_Partitionable = register_batch,
};
