// SPDX-License-Identifier: Apache-2.0
// pjrt_threads_test.c — the plugin from many threads at once: compile, launch, transfers in pieces, programs over several
// devices, the cache's claims, clients that end while work is under way. `make tsan` and `make asan` run it too.
#include "pjrt_use.h"

#include <pthread.h>

#define THREADS 6
#define ROUNDS 12

#define HEAD "func.func public @main(%arg0: tensor<1024xf32>, %arg1: tensor<1024xf32>"
#define BODY                                                                                         \
    ") -> tensor<1024xf32> {\n"                                                                      \
    "  %0 = stablehlo.add %arg0, %arg1 : tensor<1024xf32>\n"                                         \
    "  return %0 : tensor<1024xf32>\n}\n"
static const char adds[] = HEAD BODY;

// Each device has half of the argument; the result is the sum of all of it.
static const char sums[] =
    "module attributes {mhlo.num_partitions = 2 : i32} {\n"
    "  sdy.mesh @mesh = <[\"x\"=2]>\n"
    "  func.func public @main(%a: tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}]>}) -> "
    "(tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, []>}) {\n"
    "    %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "    %0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : (tensor<64xf32>, tensor<f32>) "
    "-> tensor<f32>\n"
    "    return %0 : tensor<f32>\n  }\n}\n";

typedef struct Shared {
    PJRT_Client *client;
    PJRT_LoadedExecutable *exe, *two;
    bool bad[THREADS];
} Shared;
typedef struct Worker {
    Shared *s;
    int index;
} Worker;

// --- launches ------------------------------------------------------------------------------------------

// A chain of launches whose intermediate arrays are given back at once.
static bool chain(PJRT_LoadedExecutable *exe, PJRT_Client *c, int index) {
    float x[1024], got[1024];
    for (int i = 0; i < 1024; i++)
        x[i] = (float)(i + index);
    PJRT_Buffer *one = upload_f32(c, x, 1024), *sum = upload_f32(c, x, 1024);
    for (int i = 0; i < 8; i++) {
        PJRT_Buffer *next;
        good("execute", execute(exe, (PJRT_Buffer *[]){one, sum}, 2, &next));
        buffer_free(sum);
        sum = next;
    }
    download(sum, NULL, got, sizeof got);
    bool ok = true;
    for (int i = 0; i < 1024; i++)
        ok &= got[i] == 9 * x[i];
    buffer_free(one);
    buffer_free(sum);
    return ok;
}

static bool both_devices(PJRT_LoadedExecutable *exe, PJRT_Client *c, int index) {
    PJRT_Client_AddressableDevices_Args d = ARGS(Client_AddressableDevices, .client = c);
    CALL(Client_AddressableDevices, &d);
    PJRT_Buffer *in[2], *out[2];
    float want = 0;
    for (int k = 0; k < 2; k++) {
        float x[32];
        for (int i = 0; i < 32; i++)
            want += x[i] = (float)(index + k + i);
        const int64_t n = 32;
        PJRT_Client_BufferFromHostBuffer_Args a =
            ARGS(Client_BufferFromHostBuffer, .client = c, .data = x, .type = PJRT_Buffer_Type_F32, .dims = &n,
                 .num_dims = 1, .device = d.addressable_devices[k]);
        CALL(Client_BufferFromHostBuffer, &a);
        CALL(Event_Destroy, &ARGS(Event_Destroy, .event = a.done_with_host_buffer));
        in[k] = a.buffer;
    }
    PJRT_ExecuteOptions o = {.struct_size = sizeof o};
    PJRT_Buffer *const *ins[2] = {&in[0], &in[1]};
    PJRT_Buffer **outs[2] = {&out[0], &out[1]};
    PJRT_Event *done[2] = {NULL, NULL};
    CALL(LoadedExecutable_Execute, &ARGS(LoadedExecutable_Execute, .executable = exe, .options = &o,
                                         .argument_lists = ins, .num_devices = 2, .num_args = 1,
                                         .output_lists = outs, .device_complete_events = done));
    bool ok = true;
    for (int k = 0; k < 2; k++) {
        float got;
        download(out[k], NULL, &got, sizeof got);
        ok &= got == want;
        CALL(Event_Destroy, &ARGS(Event_Destroy, .event = done[k]));
        buffer_free(in[k]);
        buffer_free(out[k]);
    }
    return ok;
}

static void *work(void *arg) {
    Worker *w = arg;
    Shared *s = w->s;
    bool ok = true;
    for (int i = 0; i < ROUNDS; i++) {
        ok &= chain(s->exe, s->client, w->index);
        ok &= both_devices(s->two, s->client, w->index);
        if (i % 4 == w->index % 4) { // and now and then a program of its own
            PJRT_LoadedExecutable *mine;
            good("compile", compile(s->client, adds, "mlir", NULL, 0, &mine));
            ok &= chain(mine, s->client, w->index);
            exe_free(mine);
        }
    }
    s->bad[w->index] = !ok;
    return NULL;
}

static void run_all(void *(*fn)(void *), Shared *s) {
    pthread_t threads[THREADS];
    Worker workers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (Worker){s, i};
        pthread_create(&threads[i], NULL, fn, &workers[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static bool all_good(const Shared *s) {
    bool ok = true;
    for (int i = 0; i < THREADS; i++)
        ok &= !s->bad[i];
    return ok;
}

// CompileOptionsProto with executable_build_options {num_replicas 1, num_partitions 2}.
static const char two_partitions[] = {0x1a, 4, 0x20, 1, 0x28, 2};

static void test_launches(const char *dispatch) {
    setenv("OPENTRN_DISPATCH", dispatch, 1);
    Shared s = {.client = client_make(2)};
    good("compile", compile(s.client, adds, "mlir", NULL, 0, &s.exe));
    good("compile", compile(s.client, sums, "mlir", two_partitions, sizeof two_partitions, &s.two));
    run_all(work, &s);
    char name[64];
    snprintf(name, sizeof name, "launches from many threads, %s", dispatch);
    check(name, all_good(&s), "other values");
    // The client goes first; what is under way keeps it.
    const float x[1024] = {1};
    PJRT_Buffer *a = upload_f32(s.client, x, 1024), *out;
    good("execute", execute(s.exe, (PJRT_Buffer *[]){a, a}, 2, &out));
    client_free(s.client);
    buffer_free(a);
    buffer_free(out);
    exe_free(s.exe);
    exe_free(s.two);
    unsetenv("OPENTRN_DISPATCH");
}

// --- the cache -------------------------------------------------------------------------------------------

static void *compile_same(void *arg) {
    Worker *w = arg;
    PJRT_Client *c = client_make(1); // each with an environment of its own
    PJRT_LoadedExecutable *exe;
    good("compile", compile(c, adds, "mlir", NULL, 0, &exe));
    w->s->bad[w->index] = !chain(exe, c, w->index);
    exe_free(exe);
    client_free(c);
    return NULL;
}

static void test_cache(void) {
    char dir[] = "/tmp/pjrt_threads_XXXXXX", command[64];
    if (!mkdtemp(dir))
        return;
    setenv("OTRN_CACHE", "on", 1);
    setenv("OTRN_CACHE_DIR", dir, 1);
    Shared s = {0};
    run_all(compile_same, &s);
    check("one program compiled by many at once", all_good(&s), "other values");
    setenv("OTRN_CACHE", "off", 1);
    snprintf(command, sizeof command, "rm -rf %s", dir);
    check("the cache's folder goes", system(command) == 0, "it does not");
}

// --- arrays in pieces --------------------------------------------------------------------------------------

typedef struct Upload {
    PJRT_AsyncHostToDeviceTransferManager *manager;
    const float *data;
    int buffer;
} Upload;

static void piece(Upload *u, int64_t from, int64_t n, bool last) {
    PJRT_AsyncHostToDeviceTransferManager_TransferData_Args a =
        ARGS(AsyncHostToDeviceTransferManager_TransferData, .transfer_manager = u->manager, .buffer_index = u->buffer,
             .data = u->data + from, .offset = from * 4, .transfer_size = n * 4, .is_last_transfer = last);
    CALL(AsyncHostToDeviceTransferManager_TransferData, &a);
    CALL(Event_Destroy, &ARGS(Event_Destroy, .event = a.done_with_h2d_transfer));
}

static void *send(void *arg) {
    Upload *u = arg;
    for (int i = 7; i >= 0; i--)
        piece(u, 128 * i, 128, i == 0);
    return NULL;
}

static void test_uploads(void) {
    PJRT_Client *c = client_make(1);
    const int64_t n = 1024;
    PJRT_ShapeSpec shape[3];
    for (int i = 0; i < 3; i++)
        shape[i] = (PJRT_ShapeSpec){.struct_size = sizeof *shape, .dims = &n, .num_dims = 1,
                                    .element_type = i == 2 ? PJRT_Buffer_Type_S4 : PJRT_Buffer_Type_F32};
    PJRT_Client_CreateBuffersForAsyncHostToDevice_Args m =
        ARGS(Client_CreateBuffersForAsyncHostToDevice, .client = c, .shape_specs = shape, .num_shape_specs = 3);
    CALL(Client_CreateBuffersForAsyncHostToDevice, &m);
    PJRT_AsyncHostToDeviceTransferManager *t = m.transfer_manager;
    float x[2][1024], got[1024];
    PJRT_Buffer *in[3], *out;
    for (int i = 0; i < 1024; i++)
        x[0][i] = (float)i, x[1][i] = (float)(3 * i);
    for (int i = 0; i < 3; i++) {
        PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args r =
            ARGS(AsyncHostToDeviceTransferManager_RetrieveBuffer, .transfer_manager = t, .buffer_index = i);
        CALL(AsyncHostToDeviceTransferManager_RetrieveBuffer, &r);
        in[i] = r.buffer_out;
    }
    PJRT_LoadedExecutable *exe; // its launch waits for both arguments
    good("compile", compile(c, adds, "mlir", NULL, 0, &exe));
    good("execute", execute(exe, in, 2, &out));
    pthread_t threads[2];
    Upload uploads[2];
    for (int i = 0; i < 2; i++) {
        uploads[i] = (Upload){t, x[i], i};
        pthread_create(&threads[i], NULL, send, &uploads[i]);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    download(out, NULL, got, sizeof got);
    bool ok = true;
    for (int i = 0; i < 1024; i++)
        ok &= got[i] == (float)(4 * i);
    check("arrays in pieces", ok, "other values");
    PJRT_AsyncHostToDeviceTransferManager_TransferData_Args late =
        ARGS(AsyncHostToDeviceTransferManager_TransferData, .transfer_manager = t, .buffer_index = 0, .data = x,
             .transfer_size = 4);
    FAILS("a piece behind the last", api->AsyncHostToDeviceTransferManager_TransferData(&late),
          PJRT_Error_Code_FAILED_PRECONDITION, "last piece");
    late.buffer_index = 2;
    late.offset = 1000;
    late.transfer_size = 25;
    FAILS("a piece beyond the end", api->AsyncHostToDeviceTransferManager_TransferData(&late),
          PJRT_Error_Code_INVALID_ARGUMENT, "do not fit");
    CALL(AsyncHostToDeviceTransferManager_Destroy, &ARGS(AsyncHostToDeviceTransferManager_Destroy, .transfer_manager = t));
    PJRT_Buffer_ReadyEvent_Args ready = ARGS(Buffer_ReadyEvent, .buffer = in[2]);
    CALL(Buffer_ReadyEvent, &ready);
    FAILS("an array that was given up", api->Event_Await(&ARGS(Event_Await, .event = ready.event)),
          PJRT_Error_Code_CANCELLED, "given up");
    CALL(Event_Destroy, &ARGS(Event_Destroy, .event = ready.event));
    for (int i = 0; i < 3; i++)
        buffer_free(in[i]);
    buffer_free(out);
    exe_free(exe);
    client_free(c);
}

// --- ahead of time -----------------------------------------------------------------------------------------

static void test_ahead_of_time(void) {
    PJRT_TopologyDescription_Create_Args t =
        ARGS(TopologyDescription_Create, .topology_name = "trn1", .topology_name_size = 4);
    CALL(TopologyDescription_Create, &t);
    PJRT_Program p = {.struct_size = sizeof p, .code = (char *)adds, .code_size = sizeof adds - 1, .format = "mlir",
                      .format_size = 4};
    PJRT_Compile_Args a = ARGS(Compile, .topology = t.topology, .program = &p);
    CALL(Compile, &a);
    CALL(TopologyDescription_Destroy, &ARGS(TopologyDescription_Destroy, .topology = t.topology));
    PJRT_Client *c = client_make(1);
    PJRT_Client_Load_Args l = ARGS(Client_Load, .client = c, .executable = a.executable);
    CALL(Client_Load, &l);
    CALL(Executable_Destroy, &ARGS(Executable_Destroy, .executable = a.executable));
    check("compiled without a client", chain(l.loaded_executable, c, 1), "other values");
    exe_free(l.loaded_executable);
    client_free(c);
}

int main(void) {
    setenv("OTRN_CACHE", "off", 1);
    if (!(api = plugin_load()))
        return 1;
    test_launches("async");
    test_launches("auto");
    test_cache();
    test_uploads();
    test_ahead_of_time();
    return failures != 0;
}
