// SPDX-License-Identifier: Apache-2.0
// feed.c — arguments of a step: batches, rates, first values.
//
// Of an exported step, inputs are told apart by type: whole numbers of rank two are tokens (a second one those that come next),
// floats are pixels, whole numbers of rank one labels. Without data they keep the values they were exported with.
#include <string.h>

#include "base/dtype.h"
#include "base/npy.h"
#include "train/random.h"
#include "train/train.h"

#define HIDDEN_SHARE 0.15 // of BERT's tokens

// --- batches ---------------------------------------------------------------------------------------

static void put_whole(const otrn_buffer *b, int dtype, size_t i, int64_t v) {
    size_t bytes = otrn_dtype_bytes(dtype);
    for (size_t k = 0; k < bytes; k++)
        ((uint8_t *)b->data)[i * bytes + k] = (uint8_t)((uint64_t)v >> 8 * k);
}

static void put_real(const otrn_buffer *b, int dtype, size_t i, double v) {
    if (dtype == DT_F64)
        ((double *)b->data)[i] = v;
    else
        ((float *)b->data)[i] = (float)v;
}

static double get_real(const otrn_buffer *b, int dtype, size_t i) { return dtype == DT_F64 ? ((double *)b->data)[i] : ((float *)b->data)[i]; }

static bool hides(const Train *t, uint64_t sample, int64_t at) {
    return random_unit((uint64_t)t->recipe.seed, STREAM_MASK, sample * 65536 + (uint64_t)at) < HIDDEN_SHARE;
}

// A device's rows of the batch, of BERT also which count.
static void tokens_feed(Train *t, const Port *const *ports, otrn_buffer *const *in, size_t nin, int64_t device, int64_t devices) {
    const Recipe *r = &t->recipe;
    const otrn_type *x = &ports[0]->type;
    bool bert = r->model.kind == MODEL_BERT;
    int64_t rows = x->dims[0], seq = x->dims[1], vocab = bert ? r->model.vocab - 1 : r->model.vocab;
    int64_t window = seq + (nin > 1 && !bert);
    int32_t *tokens = arena_alloc(t->arena, (size_t)window * 4);
    for (int64_t row = 0; row < rows; row++) {
        uint64_t sample = (uint64_t)(t->at * rows * devices + device * rows + row);
        data_tokens(t->ctx, t->arena, &t->data, (uint64_t)r->seed, sample, window, vocab, tokens);
        for (int64_t i = 0; i < seq; i++) {
            size_t at = (size_t)(row * seq + i);
            bool hide = bert && hides(t, sample, i);
            put_whole(in[0], x->dtype, at, hide ? vocab : tokens[i]);
            if (nin > 1)
                put_whole(in[1], ports[1]->type.dtype, at, tokens[bert ? i : i + 1]);
            if (bert)
                put_real(in[2], ports[2]->type.dtype, at, hide);
        }
    }
}

// Weights sum to one over all devices, of other processes too.
static void weights_scale(Train *t, size_t port, size_t stride) {
    const otrn_type *type = &t->step.args[port].type;
    int64_t rows = type->dims[0] * t->ranks.devices, seq = type->dims[1];
    double sum = 0;
    for (int64_t row = 0; row < rows; row++)
        for (int64_t i = 0; i < seq; i++)
            sum += hides(t, (uint64_t)(t->at * rows + row), i);
    size_t n = t->args[port].bytes / otrn_dtype_bytes(type->dtype);
    for (size_t i = 0; i < n * (size_t)t->opt.devices && sum > 0; i++) {
        const otrn_buffer *b = &t->args[i / n * stride + port];
        put_real(b, type->dtype, i % n, get_real(b, type->dtype, i % n) * (float)(1 / sum));
    }
}

// Pixels as they lie, or square by square (VIT).
static void images_feed(Train *t, const Port *const *ports, otrn_buffer *const *in, size_t nin, int64_t device, int64_t devices) {
    const Model *m = &t->recipe.model;
    int64_t rows = ports[0]->type.dims[0], pixels = t->data.height * t->data.width, width = t->data.width;
    float *image = arena_alloc(t->arena, (size_t)pixels * 4);
    for (int64_t row = 0; row < rows; row++) {
        uint64_t sample = (uint64_t)(t->at * rows * devices + device * rows + row);
        int32_t label = data_image(t->ctx, t->arena, &t->data, (uint64_t)t->recipe.seed, sample, image);
        if (nin > 1)
            put_whole(in[1], ports[1]->type.dtype, (size_t)row, label);
        for (int64_t i = 0; i < pixels; i++) {
            int64_t at = i;
            if (m->kind == MODEL_VIT) {
                int64_t y = i / width, x = i % width, p = m->patch;
                at = ((y / p) * (width / p) + x / p) * p * p + (y % p) * p + x % p;
            }
            put_real(in[0], ports[0]->type.dtype, (size_t)(row * pixels + at), image[i]);
        }
    }
}

static bool is_whole(int dtype) { return dtype >= DT_I8 && dtype <= DT_UI64; }

// The inputs in the order of tokens, targets, weights; those of exported steps that are none of these stay as they are.
static size_t inputs_find(const Train *t, const Port **ports, size_t *which) {
    size_t n = 0;
    for (size_t i = 0; i < t->step.nargs; i++) {
        const Port *p = &t->step.args[i];
        if (p->kind != PORT_INPUT || n == 3)
            continue;
        if (t->recipe.folder) { // of which kind must the next one be?
            bool whole = is_whole(p->type.dtype), pixels = t->data.images && !n;
            if (pixels ? p->type.dtype != DT_F32 : !whole || n == 2 || (t->data.images ? p->type.rank != 1 : p->type.rank != 2))
                continue;
        }
        which[n] = i, ports[n++] = p;
    }
    return n;
}

static void batch_feed(Train *t) {
    const Port *ports[3];
    size_t which[3], n = inputs_find(t, ports, which), stride = t->step.nargs;
    if (t->recipe.folder && !*t->recipe.data)
        return;
    if (!n)
        ctx_fail(t->ctx, OTRN_ARGUMENT, NO_PLACE, "the step has no input that this data fits");
    int64_t here = t->mesh ? 1 : t->opt.devices, first = t->mesh ? 0 : t->ranks.first, all = t->mesh ? 1 : t->ranks.devices;
    for (int64_t d = 0; d < here; d++) { // of a mesh the whole batch, which is then cut
        otrn_buffer *in[3];
        for (size_t i = 0; i < n; i++)
            in[i] = d ? &t->args[(size_t)d * stride + which[i]] : &t->whole[which[i]];
        if (t->data.images)
            images_feed(t, ports, in, n, first + d, all);
        else
            tokens_feed(t, ports, in, n, first + d, all);
    }
    for (size_t i = 0; i < n && t->mesh; i++)
        mesh_spread(t, which[i]);
    if (t->recipe.model.kind == MODEL_BERT)
        weights_scale(t, which[2], stride);
}

static double power(double base, int64_t n) {
    double p = 1;
    for (; n; n >>= 1, base *= base)
        p *= n & 1 ? base : 1;
    return p;
}

void feed_step(Train *t) {
    Arena *whole = t->arena, scratch;
    arena_init(&scratch, t->ctx);
    jmp_buf jb, *outer = t->ctx->on_fail;
    volatile bool good = false;
    t->arena = &scratch;
    if (CTX_TRY(t->ctx, jb)) {
        batch_feed(t);
        good = true;
    }
    t->arena = whole, t->ctx->on_fail = outer;
    arena_fini(&scratch);
    if (!good)
        longjmp(*outer, 1);
    const Adam *adam = &t->recipe.adam;
    for (size_t i = 0; i < t->step.nargs; i++) {
        const Port *p = &t->step.args[i];
        const otrn_buffer *b = &t->whole[i];
        double v = p->kind == PORT_RATE       ? train_rate(&t->recipe, t->at)
                   : p->kind == PORT_CORRECT1 ? 1 / (1 - power(adam->beta1, t->at + 1))
                   : p->kind == PORT_CORRECT2 ? 1 / (1 - power(adam->beta2, t->at + 1))
                                              : 0;
        if (p->kind == PORT_RATE || p->kind == PORT_CORRECT1 || p->kind == PORT_CORRECT2)
            put_real(b, p->type.dtype, 0, (float)v);
        else if (p->kind == PORT_SEED)
            for (size_t k = 0; k < b->bytes / 4; k++)
                ((uint32_t *)b->data)[k] = (uint32_t)random_at((uint64_t)t->recipe.seed, STREAM_MASK + i, (uint64_t)t->at * 64 + k);
        else
            continue;
        mesh_spread(t, i);
    }
}

// --- first values ----------------------------------------------------------------------------------

static void file_feed(Train *t, const Port *p, otrn_buffer *to) {
    Npy npy;
    npy_read(t->ctx, t->arena, p->file, &npy);
    if (npy.bytes != to->bytes)
        ctx_fail(t->ctx, OTRN_ARGUMENT, (Place){.file = p->file}, "`%s` has %zu bytes in the program and %zu here", p->name, to->bytes, npy.bytes);
    memcpy(to->data, npy.data, npy.bytes);
}

static bool same_type(const otrn_type *x, const otrn_type *y) {
    return x->dtype == y->dtype && x->rank == y->rank && !memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims);
}

static void checkpoint_feed(Train *t, const Port *p, otrn_buffer *to) {
    for (size_t i = 0; i < t->from->count; i++) {
        const Tensor *c = &t->from->tensors[i];
        if (strcmp(c->name, p->name))
            continue;
        if (!same_type(&c->type, &p->type))
            break;
        memcpy(to->data, c->data, to->bytes);
        return;
    }
    ctx_hint(t->ctx, "it belongs to a model of another shape: leave sizes out, so that they are those of the checkpoint, or begin in another folder");
    ctx_fail(t->ctx, OTRN_ARGUMENT, (Place){.file = t->from->path}, "the checkpoint has no `%s` of the program's shape", p->name);
}

static void first_values(const Port *p, uint64_t seed, uint64_t stream, const otrn_buffer *b) {
    size_t n = b->bytes / otrn_dtype_bytes(p->type.dtype);
    float *to = b->data; // the usual type, in a loop that is quick: a run's start waits for it
    double *wide = b->data;
    uint64_t key = random_key(seed, stream);
    for (size_t k = 0; k < n && p->type.dtype == DT_F32; k++)
        to[k] = p->scale > 0 ? p->scale * random_bell_of(random_of(key, k)) : p->fill;
    for (size_t k = 0; k < n && p->type.dtype == DT_F64; k++)
        wide[k] = p->scale > 0 ? p->scale * random_bell_of(random_of(key, k)) : p->fill;
}

void feed_state(Train *t) {
    for (size_t i = 0; i < t->step.nargs; i++) {
        const Port *p = &t->step.args[i];
        otrn_buffer *b = &t->whole[i];
        if (t->ranks.rank && port_lasts(p)) {
            continue; // process 0's
        } else if (t->from && port_lasts(p)) {
            checkpoint_feed(t, p, b);
        } else if (p->file) {
            file_feed(t, p, b);
        } else if ((p->type.dtype == DT_F32 || p->type.dtype == DT_F64) && (p->scale > 0 || p->fill != 0)) { // else it is zero already
            first_values(p, (uint64_t)t->recipe.seed, STREAM_WEIGHTS + i, b);
        }
    }
}
