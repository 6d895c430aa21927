// SPDX-License-Identifier: Apache-2.0
// tf_host.c — operators of TensorFlow whose results have a size that only their values tell: Where (boolean_mask, repeat), Unique,
// DynamicPartition.
//
// XLA has kernels for them, so TensorFlow would place them on the device, where every program has one size. As eager operators and in
// functions without jit_compile they run on the host instead, on copies of their operands; what follows gets a program for each
// size. Reports name them (opentrn/tensorflow/outside.py knows them by the priority of their kernels).
#include <stdlib.h>
#include <string.h>

#include "pjrt/pjrt.h"
#include "pjrt/tf_abi.h"

enum { INT32 = 3, INT64 = 9, BAD = 3, NO_MEMORY = 8, PRIORITY = 2 };

typedef struct Kind { // of elements
    int type;         // TensorFlow's number
    unsigned size, parts;
    uint64_t inf; // the bits of infinity; 0: no floating-point number
} Kind;

static const Kind kinds[] = {
    {1, 4, 1, 0x7f800000},         {2, 8, 1, 0x7ff0000000000000}, {14, 2, 1, 0x7f80},
    {19, 2, 1, 0x7c00},            {8, 4, 2, 0x7f800000},         {18, 8, 2, 0x7ff0000000000000},
    {INT32, 4, 1, 0},              {INT64, 8, 1, 0},              {4, 1, 1, 0},
    {5, 2, 1, 0},                  {6, 1, 1, 0},                  {10, 1, 1, 0},
    {17, 2, 1, 0},                 {22, 4, 1, 0},                 {23, 8, 1, 0},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

typedef struct Call {
    Tf tf;
    void *ctx;
    TfStatus *status;
    TfTensor *in[2];
    const Kind *kind; // of the first operand
} Call;

typedef struct Key { // an element, so that equal numbers have equal bits
    uint64_t part[2];
    bool nan;
} Key;

static Key key_at(const Kind *k, const char *at) {
    Key key = {0};
    for (unsigned i = 0; i < k->parts; i++) {
        memcpy(&key.part[i], at + i * k->size, k->size);
        uint64_t sign = k->inf ? 1ull << (8 * k->size - 1) : 0, magnitude = key.part[i] & ~sign;
        key.nan |= k->inf && magnitude > k->inf;
        if (!magnitude)
            key.part[i] = 0; // -0
    }
    return key;
}

static void call_fail(Call *c, int code, const char *message) {
    c->tf.set_status(c->status, code, message);
    c->tf.kernel_fail(c->ctx, c->status);
}

static char *result(Call *c, int index, const int64_t *dims, int rank, size_t bytes) { // NULL where it is empty, or failed
    TfTensor *t = c->tf.new_output(c->ctx, index, c->tf.output_type(c->ctx, index), dims, rank, bytes, c->status);
    char *at = t && bytes ? c->tf.tensor_data(t) : NULL;
    if (t)
        c->tf.delete_tensor(t); // the context holds it
    else
        c->tf.kernel_fail(c->ctx, c->status);
    return at;
}

// --- the operators -----------------------------------------------------------------------------------

static bool is_zero(Key k) { return !k.part[0] && !k.part[1]; }

static void where_run(Call *c) {
    int64_t n = c->tf.tensor_elems(c->in[0]), count = 0;
    int rank = c->tf.tensor_rank(c->in[0]);
    const char *at = c->tf.tensor_data(c->in[0]);
    size_t size = c->kind->size * c->kind->parts;
    for (int64_t i = 0; i < n; i++)
        count += !is_zero(key_at(c->kind, at + (size_t)i * size));
    int64_t *out = (int64_t *)(void *)result(c, 0, (int64_t[]){count, rank}, 2, (size_t)count * (size_t)rank * sizeof *out);
    for (int64_t i = 0; out && i < n; i++) {
        if (is_zero(key_at(c->kind, at + (size_t)i * size)))
            continue;
        int64_t rest = i;
        for (int d = rank - 1; d >= 0; d--) {
            int64_t dim = c->tf.tensor_dim(c->in[0], d);
            out[d] = rest % dim;
            rest /= dim;
        }
        out += rank;
    }
}

// The number of the first element that equals element i, by a table of places (open addressing, half empty at least); a NaN is alone.
static int64_t first_equal(const Kind *k, const char *at, int64_t i, int64_t *table, uint64_t mask) {
    size_t size = k->size * k->parts;
    Key key = key_at(k, at + (size_t)i * size);
    uint64_t hash = (key.part[0] ^ (key.part[1] * 31)) * 0x9e3779b97f4a7c15;
    for (uint64_t slot = (hash >> 32) & mask; !key.nan; slot = (slot + 1) & mask) {
        if (table[slot] < 0)
            return table[slot] = i;
        Key other = key_at(k, at + (size_t)table[slot] * size);
        if (!memcmp(other.part, key.part, sizeof key.part))
            return table[slot];
    }
    return i;
}

static void index_put(char *to, int type, int64_t i, int64_t v) {
    if (type == INT32)
        ((int32_t *)(void *)to)[i] = (int32_t)v;
    else
        ((int64_t *)(void *)to)[i] = v;
}

static void unique_run(Call *c) {
    int64_t n = c->tf.tensor_elems(c->in[0]), count = 0;
    if (c->tf.tensor_rank(c->in[0]) != 1) {
        call_fail(c, BAD, "unique expects a 1D vector.");
        return;
    }
    uint64_t slots = 2;
    while (slots < 2 * (uint64_t)n)
        slots *= 2;
    int64_t *table = malloc(slots * sizeof *table), *rank = malloc(((size_t)n + 1) * sizeof *rank); // of each element: its place among the results
    int64_t *from = malloc(((size_t)n + 1) * sizeof *from);                                          // of each result: an element
    const char *at = c->tf.tensor_data(c->in[0]);
    size_t size = c->kind->size * c->kind->parts;
    if (table && rank && from) {
        memset(table, -1, slots * sizeof *table);
        for (int64_t i = 0; i < n; i++) {
            int64_t first = first_equal(c->kind, at, i, table, slots - 1);
            if (first == i)
                from[count] = i;
            rank[i] = first == i ? count++ : rank[first];
        }
        char *out = result(c, 0, &count, 1, (size_t)count * size);
        for (int64_t i = 0; out && i < count; i++)
            memcpy(out + (size_t)i * size, at + (size_t)from[i] * size, size);
        int type = c->tf.output_type(c->ctx, 1);
        out = result(c, 1, &n, 1, (size_t)n * (type == INT32 ? 4 : 8));
        for (int64_t i = 0; out && i < n; i++)
            index_put(out, type, i, rank[i]);
    } else {
        call_fail(c, NO_MEMORY, "opentrn: no memory for the operator Unique");
    }
    free(table);
    free(rank);
    free(from);
}

static void partition_run(Call *c) {
    enum { MAX_RANK = 254 };
    int outer = c->tf.tensor_rank(c->in[1]), rank = c->tf.tensor_rank(c->in[0]), parts = c->tf.num_outputs(c->ctx);
    int64_t n = c->tf.tensor_elems(c->in[1]), dims[MAX_RANK + 1];
    const int32_t *part = c->tf.tensor_data(c->in[1]);
    bool fits = outer <= rank && rank <= MAX_RANK;
    for (int d = 0; fits && d < outer; d++)
        fits = c->tf.tensor_dim(c->in[0], d) == c->tf.tensor_dim(c->in[1], d);
    for (int64_t i = 0; fits && i < n; i++)
        fits = part[i] >= 0 && part[i] < parts;
    if (!fits) {
        call_fail(c, BAD, "DynamicPartition: partitions do not fit the data, or one is out of range");
        return;
    }
    size_t row = n ? c->tf.tensor_bytes(c->in[0]) / (size_t)n : 0;
    const char *data = c->tf.tensor_data(c->in[0]);
    for (int d = outer; d < rank; d++)
        dims[1 + d - outer] = c->tf.tensor_dim(c->in[0], d);
    for (int p = 0; p < parts; p++) {
        dims[0] = 0;
        for (int64_t i = 0; i < n; i++)
            dims[0] += part[i] == p;
        char *out = result(c, p, dims, 1 + rank - outer, (size_t)dims[0] * row);
        for (int64_t i = 0; out && i < n; i++)
            if (part[i] == p)
                memcpy(out, data + (size_t)i * row, row), out += row;
    }
}

// --- as kernels --------------------------------------------------------------------------------------

static void call(void *ctx, int inputs, void (*body)(Call *)) {
    Call c = {.ctx = ctx};
    tf_find(&c.tf);
    c.status = c.tf.new_status();
    for (int i = 0; i < inputs; i++)
        c.tf.get_input(ctx, i, &c.in[i], c.status);
    for (int i = 0; i < KINDS && c.in[0]; i++)
        if (kinds[i].type == c.tf.tensor_type(c.in[0]))
            c.kind = &kinds[i];
    if (c.kind && (inputs < 2 || c.in[1]))
        body(&c);
    else
        c.tf.kernel_fail(ctx, c.status);
    for (int i = 0; i < inputs; i++)
        if (c.in[i])
            c.tf.delete_tensor(c.in[i]);
    c.tf.delete_status(c.status);
}

static void *kernel_new(void *construction) { return (void)construction, NULL; }
static void kernel_delete(void *kernel) { (void)kernel; }
static void where_call(void *kernel, void *ctx) { (void)kernel, call(ctx, 1, where_run); }
static void unique_call(void *kernel, void *ctx) { (void)kernel, call(ctx, 1, unique_run); }
static void partition_call(void *kernel, void *ctx) { (void)kernel, call(ctx, 2, partition_run); }

static const struct {
    const char *op;
    void (*run)(void *, void *);
    const char *args[4]; // all of them: none is on the device
} operators[] = {
    {"Where", where_call, {"input", "index"}},
    {"Unique", unique_call, {"x", "y", "idx"}},
    {"DynamicPartition", partition_call, {"data", "partitions", "outputs"}},
};

void tf_host_kernels(const Tf *tf, const char *device) {
    TfStatus *s = tf->new_status();
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        for (int k = 0; k < KINDS; k++) {
            void *kernel = tf->new_kernel(operators[i].op, device, kernel_new, operators[i].run, kernel_delete);
            for (const char *const *arg = operators[i].args; *arg; arg++)
                tf->kernel_on_host(kernel, *arg);
            tf->kernel_type(kernel, "T", kinds[k].type, s);
            tf->kernel_priority(kernel, PRIORITY);
            tf->add_kernel("opentrn host", kernel, s);
        }
    tf->delete_status(s);
}
