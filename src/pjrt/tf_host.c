// SPDX-License-Identifier: Apache-2.0
// tf_host.c — operators of TensorFlow that its CPU runs though XLA has kernels for them: their results have a size that only their values tell
// (Where, which boolean_mask and repeat use, Unique, DynamicPartition, NonMaxSuppression), or XLA's kernel lacks a part (pivoting).
//
// TensorFlow would place them on the device, where every program has one size. As eager operators and in functions without jit_compile
// they run on the host instead, on copies of their operands: a kernel of ours hands them to TensorFlow's own for the CPU; what follows gets a
// program for each size. Reports name them (opentrn/tensorflow/outside.py knows them, and why, by the priority of their kernels).
#include <pthread.h>
#include <stdlib.h>

#include "pjrt/pjrt.h"
#include "pjrt/tf_abi.h"

enum { NO_MEMORY = 8, INTERNAL = 13, SIZED_BY_VALUES = 2, PART_MISSING = 3, MOST_ATTRS = 2, MOST_ARGS = 8 };

typedef struct Attr {
    enum { NONE, FLAG, COUNT, TYPE } kind;
    const char *name;
} Attr;

typedef struct Operator {
    const char *op;
    int priority;
    Attr attrs[MOST_ATTRS];          // those that operands do not tell
    const char *args[MOST_ARGS + 1]; // all of them, results too: none is on the device
} Operator;

static const Operator operators[] = {
    {"Where", SIZED_BY_VALUES, {{0}}, {"input", "index"}},
    {"Unique", SIZED_BY_VALUES, {{TYPE, "out_idx"}}, {"x", "y", "idx"}},
    {"DynamicPartition", SIZED_BY_VALUES, {{COUNT, "num_partitions"}}, {"data", "partitions", "outputs"}},
    {"NonMaxSuppressionV3", SIZED_BY_VALUES, {{0}}, {"boxes", "scores", "max_output_size", "iou_threshold", "score_threshold", "selected_indices"}},
    {"TridiagonalSolve", PART_MISSING, {{FLAG, "partial_pivoting"}, {FLAG, "perturb_singular"}}, {"diagonals", "rhs", "output"}},
};
enum { OPERATORS = sizeof operators / sizeof *operators };

static const int types[] = {1, 2, 14, 19, 8, 18, 3, 9, 4, 5, 6, 10, 17, 22, 23}; // TensorFlow's numbers: floats, complex, integers, bool

// --- TensorFlow's CPU --------------------------------------------------------------------------------

static void *cpu; // a context of its own, with no device but the CPU
static pthread_once_t cpu_once = PTHREAD_ONCE_INIT;

static void cpu_start(void) {
    static const char config[] = "\x0a\x0a\x0a\x06" TF_DEVICE "\x10\x00"; // ConfigProto: device_count[TF_DEVICE] = 0
    Tf tf;
    tf_find(&tf);
    TfStatus *s = tf.new_status();
    void *options = tf.eager_options();
    tf.eager_config(options, config, sizeof config - 1, s);
    cpu = tf.status_code(s) ? NULL : tf.eager_new(options, s);
    tf.eager_delete_options(options);
    tf.delete_status(s);
}

typedef struct Kernel {
    const Operator *is;
    int64_t attrs[MOST_ATTRS];
} Kernel;

static void *kernel_new(const Operator *is, void *construction) {
    Kernel *k = calloc(1, sizeof *k);
    Tf tf;
    tf_find(&tf);
    TfStatus *s = tf.new_status();
    for (int i = 0; k && i < MOST_ATTRS; i++) {
        uint8_t flag = 0;
        int32_t number = 0;
        if (is->attrs[i].kind == FLAG)
            tf.flag_of(construction, is->attrs[i].name, &flag, s);
        else if (is->attrs[i].kind == COUNT)
            tf.count_of(construction, is->attrs[i].name, &number, s);
        else if (is->attrs[i].kind == TYPE)
            tf.type_of(construction, is->attrs[i].name, &number, s);
        k->attrs[i] = flag + number;
    }
    if (k)
        k->is = is;
    tf.delete_status(s);
    return k;
}

static void op_fill(const Tf *tf, const Kernel *k, void *op, void *ctx, TfStatus *s) {
    tf->eager_place(op, "/device:CPU:0", s);
    for (int i = 0; i < MOST_ATTRS; i++) {
        const Attr *a = &k->is->attrs[i];
        if (a->kind == FLAG)
            tf->eager_flag(op, a->name, (uint8_t)k->attrs[i]);
        else if (a->kind == COUNT)
            tf->eager_count(op, a->name, k->attrs[i]);
        else if (a->kind == TYPE)
            tf->eager_type(op, a->name, (int)k->attrs[i]);
    }
    for (int i = 0; i < tf->num_inputs(ctx) && !tf->status_code(s); i++) {
        TfTensor *in = NULL;
        tf->get_input(ctx, i, &in, s);
        void *handle = in ? tf->eager_handle(in, s) : NULL;
        if (handle) {
            tf->eager_input(op, handle, s);
            tf->eager_delete_handle(handle);
        }
        if (in)
            tf->delete_tensor(in);
    }
}

static void op_run(const Tf *tf, void *op, void *ctx, TfStatus *s) {
    int count = tf->num_outputs(ctx), made = count;
    void **results = calloc((size_t)count + 1, sizeof *results);
    if (!results) {
        tf->set_status(s, NO_MEMORY, "opentrn: no memory for the results of an operator on the CPU");
        return;
    }
    tf->eager_run(op, results, &made, s);
    for (int i = 0; i < count && results[i]; i++) {
        TfTensor *out = tf->status_code(s) ? NULL : tf->eager_tensor(results[i], s);
        if (out) {
            tf->set_output(ctx, i, out, s);
            tf->delete_tensor(out);
        }
        tf->eager_delete_handle(results[i]);
    }
    free(results);
}

// --- as kernels --------------------------------------------------------------------------------------

static void kernel_run(void *kernel, void *ctx) {
    Tf tf;
    tf_find(&tf);
    TfStatus *s = tf.new_status();
    pthread_once(&cpu_once, cpu_start);
    void *op = kernel && cpu ? tf.eager_op(cpu, ((Kernel *)kernel)->is->op, s) : NULL;
    if (op) {
        op_fill(&tf, kernel, op, ctx, s);
        if (!tf.status_code(s))
            op_run(&tf, op, ctx, s);
        tf.eager_delete_op(op);
    } else if (!tf.status_code(s)) {
        tf.set_status(s, INTERNAL, "opentrn: TensorFlow's CPU could not be started for an operator");
    }
    if (tf.status_code(s))
        tf.kernel_fail(ctx, s);
    tf.delete_status(s);
}

// TensorFlow tells a new kernel nothing of its operator, so that each has a function of its own.
#define NEW(i) static void *new_##i(void *c) { return kernel_new(&operators[i], c); }
NEW(0) NEW(1) NEW(2) NEW(3) NEW(4)
static void *(*const news[])(void *) = {new_0, new_1, new_2, new_3, new_4};
_Static_assert(sizeof news / sizeof *news == OPERATORS, "one for each operator");

void tf_host_kernels(const Tf *tf, const char *device) {
    TfStatus *s = tf->new_status();
    for (int i = 0; i < OPERATORS; i++)
        for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
            void *kernel = tf->new_kernel(operators[i].op, device, news[i], kernel_run, free);
            for (const char *const *arg = operators[i].args; *arg; arg++)
                tf->kernel_on_host(kernel, *arg);
            tf->kernel_type(kernel, "T", types[k], s);
            tf->kernel_priority(kernel, operators[i].priority);
            tf->add_kernel("opentrn host", kernel, s);
        }
    tf->delete_status(s);
}
