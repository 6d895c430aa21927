// SPDX-License-Identifier: Apache-2.0
// pjrt_test.c — the plugin through its table, as a framework would use it, without one.
//
// Loads libotrn.so from the folder this test was built into. Everything made is destroyed, so
// that a sanitizer build also checks for leaks.
#include "otrn.h"
#include "pjrt_use.h"

// ---- tests

static void test_table(void) {
    check("version", api->pjrt_api_version.minor_version == PJRT_API_MINOR, "other minor");
    void *const *slots = (void *const *)&api->Error_Destroy;
    bool all = true;
    for (int i = 0; i < PJRT_API_ROWS; i++)
        all &= slots[i] != NULL;
    check("no row is empty", all, "a pointer is null");
    fails("a stub names itself", api->CopyToDeviceStream_AddChunk(NULL), PJRT_Error_Code_UNIMPLEMENTED,
          "PJRT_CopyToDeviceStream_AddChunk: programs reach the host by custom calls");
    api->Error_Destroy(&ARGS(Error_Destroy, .error = NULL));
    PJRT_Plugin_Attributes_Args a = ARGS(Plugin_Attributes, .num_attributes = 0);
    CALL(Plugin_Attributes, &a);
    bool found = false;
    for (size_t i = 0; i < a.num_attributes; i++)
        found |= !strncmp(a.attributes[i].name, "stablehlo_current_version",
                          a.attributes[i].name_size) &&
                 a.attributes[i].int64_array_value[1] == 17;
    check("the VHLO version is pinned", found, "not 1.17.0");
}

static void test_client(void) {
    PJRT_NamedValue none = {.name = "devices", .name_size = 7, .type = PJRT_NamedValue_kString,
                            .string_value = "many", .value_size = 4};
    PJRT_Client_Create_Args bad = ARGS(Client_Create, .create_options = &none, .num_options = 1);
    fails("a bad create option", api->Client_Create(&bad), PJRT_Error_Code_INVALID_ARGUMENT,
          "many");
    PJRT_NamedValue nodes = {.name = "num_nodes", .name_size = 9, .type = PJRT_NamedValue_kInt64, .int64_value = 2};
    PJRT_Client_Create_Args two = ARGS(Client_Create, .create_options = &nodes, .num_options = 1);
    fails("a client of two processes without a store", api->Client_Create(&two), PJRT_Error_Code_INVALID_ARGUMENT, "no store");

    PJRT_Client *c = client_make(3);
    PJRT_Client_AddressableDevices_Args d = ARGS(Client_AddressableDevices, .client = c);
    CALL(Client_AddressableDevices, &d);
    PJRT_Client_AddressableMemories_Args m = ARGS(Client_AddressableMemories, .client = c);
    CALL(Client_AddressableMemories, &m);
    check("three devices, six memories",
          d.num_addressable_devices == 3 && m.num_addressable_memories == 6, "other counts");
    bool consistent = true;
    for (size_t i = 0; i < m.num_addressable_memories; i++) {
        PJRT_Memory_AddressableByDevices_Args by =
            ARGS(Memory_AddressableByDevices, .memory = m.addressable_memories[i]);
        CALL(Memory_AddressableByDevices, &by);
        consistent &= by.num_devices == 1 && by.devices[0] == d.addressable_devices[i / 2];
    }
    check("memories and devices agree", consistent, "a memory belongs to another device");
    PJRT_Client_LookupDevice_Args l = ARGS(Client_LookupDevice, .client = c, .id = 3);
    fails("lookup of device 3", api->Client_LookupDevice(&l), PJRT_Error_Code_INVALID_ARGUMENT,
          "no device 3");
    int ids[4];
    PJRT_Client_DefaultDeviceAssignment_Args a =
        ARGS(Client_DefaultDeviceAssignment, .client = c, .num_replicas = 1, .num_partitions = 4,
             .default_assignment_size = 4, .default_assignment = ids);
    fails("an assignment to four devices", api->Client_DefaultDeviceAssignment(&a),
          PJRT_Error_Code_INVALID_ARGUMENT, "do not fit");

    int key, data;
    const PJRT_Memory_FunctionTable *t =
        *(const PJRT_Memory_FunctionTable **)m.addressable_memories[0];
    t->set_user_data(m.addressable_memories[0], &key, &data, NULL);
    check("data on a memory",
          t->get_user_data(m.addressable_memories[0], &key) == &data &&
              !t->get_user_data(m.addressable_memories[1], &key),
          "not found, or found elsewhere");
    client_free(c);
}

// As many devices as there can be, and one more.
static void test_most_devices(void) {
    PJRT_NamedValue options[1] = {
        {.name = "devices", .name_size = 7, .type = PJRT_NamedValue_kInt64, .int64_value = OTRN_MAX_DEVICES + 1}};
    PJRT_Client_Create_Args a = ARGS(Client_Create, .create_options = options, .num_options = 1);
    fails("more than 1024 devices", api->Client_Create(&a), PJRT_Error_Code_INVALID_ARGUMENT, "it can be 1 to 1024");
    PJRT_Client *c = client_make(OTRN_MAX_DEVICES);
    PJRT_Client_Devices_Args d = ARGS(Client_Devices, .client = c);
    CALL(Client_Devices, &d);
    check("1024 devices", d.num_devices == OTRN_MAX_DEVICES, "another number");
    client_free(c);
}

static void test_topology(void) {
    PJRT_Client *c = client_make(2);
    PJRT_Client_TopologyDescription_Args t = ARGS(Client_TopologyDescription, .client = c);
    CALL(Client_TopologyDescription, &t);
    PJRT_TopologyDescription_Serialize_Args s =
        ARGS(TopologyDescription_Serialize, .topology = t.topology);
    CALL(TopologyDescription_Serialize, &s);
    PJRT_TopologyDescription_Deserialize_Args d =
        ARGS(TopologyDescription_Deserialize, .serialized_topology = s.serialized_bytes,
             .serialized_topology_size = s.serialized_bytes_size);
    CALL(TopologyDescription_Deserialize, &d);
    PJRT_TopologyDescription_Fingerprint_Args
        f = ARGS(TopologyDescription_Fingerprint, .topology = t.topology),
        g = ARGS(TopologyDescription_Fingerprint, .topology = d.topology);
    CALL(TopologyDescription_Fingerprint, &f);
    CALL(TopologyDescription_Fingerprint, &g);
    check("a topology travels", f.fingerprint == g.fingerprint, "other fingerprint");
    s.serialized_topology_deleter(s.serialized_topology);
    PJRT_TopologyDescription_Destroy_Args x =
        ARGS(TopologyDescription_Destroy, .topology = d.topology);
    CALL(TopologyDescription_Destroy, &x);
    d.serialized_topology = "opentrn-topology 2 x trn2 99999999 1";
    d.serialized_topology_size = strlen(d.serialized_topology);
    fails("a topology of nonsense", api->TopologyDescription_Deserialize(&d),
          PJRT_Error_Code_INVALID_ARGUMENT, "devices");
    // Bytes from elsewhere open no file: a path is refused, and a name that is no chip's.
    static const char *const others[] = {"chips/trn2.chip", "/dev/zero", "./trn2", "y"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char text[80];
        d.serialized_topology_size = (size_t)snprintf(text, sizeof text, "opentrn-topology 2 x %s 1 1", others[i]);
        d.serialized_topology = text;
        fails(others[i], api->TopologyDescription_Deserialize(&d), PJRT_Error_Code_INVALID_ARGUMENT,
              "whose file is not at hand");
    }
    client_free(c);
}

static void test_transfer(void) {
    PJRT_Client *c = client_make(1);
    int32_t x[3][4], got[12];
    for (int i = 0; i < 12; i++)
        x[i / 4][i % 4] = i;
    const int64_t dims[2] = {3, 2}, strides[2] = {-16, 8}; // rows backwards, every second column
    PJRT_Buffer *b = upload(c, PJRT_Buffer_Type_S32, &x[2][0], dims, 2, strides);
    download(b, NULL, got, 24);
    check("upload with strides", !memcmp(got, (int32_t[]){8, 10, 4, 6, 0, 2}, 24), "other values");

    const int64_t order[2] = {0, 1};
    PJRT_Buffer_MemoryLayout layout = {.type = PJRT_Buffer_MemoryLayout_Type_Tiled};
    layout.tiled.minor_to_major = order;
    layout.tiled.minor_to_major_size = 2;
    download(b, &layout, got, 24);
    check("download by columns", !memcmp(got, (int32_t[]){8, 4, 0, 10, 6, 2}, 24), "other values");
    const int64_t to[2] = {16, 4};
    layout.type = PJRT_Buffer_MemoryLayout_Type_Strides;
    layout.strides.byte_strides = to;
    layout.strides.num_byte_strides = 2;
    memset(got, 0, sizeof got);
    download(b, &layout, got, sizeof got);
    check("download with strides", got[4] == 4 && got[9] == 2 && got[2] == 0, "other values");

    PJRT_Buffer_ToHostBuffer_Args a = ARGS(Buffer_ToHostBuffer, .src = b, .dst = NULL);
    CALL(Buffer_ToHostBuffer, &a);
    check("the size first", a.dst_size == 24, "not 24");
    a.dst = got;
    a.dst_size = 23;
    fails("too little room", api->Buffer_ToHostBuffer(&a), PJRT_Error_Code_INVALID_ARGUMENT,
          "23 bytes");
    const int64_t twice[2] = {1, 1};
    layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
    layout.tiled.minor_to_major = twice;
    layout.tiled.minor_to_major_size = 2;
    layout.tiled.num_tiles = 0;
    a.dst_size = 24;
    a.host_layout = &layout;
    fails("a layout that is none", api->Buffer_ToHostBuffer(&a), PJRT_Error_Code_INVALID_ARGUMENT,
          "permutation");
    PJRT_Buffer_CopyRawToHost_Args r =
        ARGS(Buffer_CopyRawToHost, .buffer = b, .dst = got, .offset = 8, .transfer_size = 8);
    CALL(Buffer_CopyRawToHost, &r);
    check("a part of it", got[0] == 4 && got[1] == 6, "other values");
    r.offset = 20;
    fails("beyond its end", api->Buffer_CopyRawToHost(&r), PJRT_Error_Code_INVALID_ARGUMENT,
          "outside");
    buffer_free(b);

    const int64_t huge[2] = {(int64_t)1 << 40, (int64_t)1 << 40}, negative[1] = {-1};
    PJRT_Client_CreateUninitializedBuffer_Args u =
        ARGS(Client_CreateUninitializedBuffer, .client = c, .shape_dims = huge, .shape_num_dims = 2,
             .shape_element_type = PJRT_Buffer_Type_F32);
    fails("larger than any memory", api->Client_CreateUninitializedBuffer(&u),
          PJRT_Error_Code_RESOURCE_EXHAUSTED, "larger");
    u.shape_dims = negative;
    u.shape_num_dims = 1;
    fails("a negative size", api->Client_CreateUninitializedBuffer(&u),
          PJRT_Error_Code_INVALID_ARGUMENT, "-1");
    u.shape_element_type = (PJRT_Buffer_Type)99;
    fails("an unknown type", api->Client_CreateUninitializedBuffer(&u),
          PJRT_Error_Code_UNIMPLEMENTED, "99");
    client_free(c);
}

static void count_error(PJRT_Error *e, void *arg) {
    ((int *)arg)[e ? 1 : 0]++;
    api->Error_Destroy(&ARGS(Error_Destroy, .error = e));
}

typedef struct Suicide {
    PJRT_Event *event;
    int calls;
} Suicide;

static void destroy_event(PJRT_Error *e, void *arg) {
    Suicide *s = arg;
    s->calls++;
    api->Error_Destroy(&ARGS(Error_Destroy, .error = e));
    PJRT_Event_Destroy_Args d = ARGS(Event_Destroy, .event = s->event);
    CALL(Event_Destroy, &d);
}

static void test_events(void) {
    PJRT_Event_Create_Args c = ARGS(Event_Create, .event = NULL);
    CALL(Event_Create, &c);
    int counts[2] = {0, 0};
    PJRT_Event_OnReady_Args on =
        ARGS(Event_OnReady, .event = c.event, .callback = count_error, .user_arg = counts);
    CALL(Event_OnReady, &on);
    PJRT_Event_IsReady_Args is = ARGS(Event_IsReady, .event = c.event);
    CALL(Event_IsReady, &is);
    check("an event waits", !is.is_ready && counts[0] + counts[1] == 0, "ready too early");
    PJRT_Event_Set_Args set =
        ARGS(Event_Set, .event = c.event, .error_code = PJRT_Error_Code_ABORTED,
             .error_message = "stop it", .error_message_size = 4);
    CALL(Event_Set, &set);
    fails("an event carries its error", api->Event_Await(&ARGS(Event_Await, .event = c.event)),
          PJRT_Error_Code_ABORTED, "stop");
    CALL(Event_OnReady, &on);
    check("callbacks before and after", counts[1] == 2 && counts[0] == 0, "other counts");
    fails("an event is set once", api->Event_Set(&set), PJRT_Error_Code_FAILED_PRECONDITION,
          "already");
    PJRT_Event_Destroy_Args d = ARGS(Event_Destroy, .event = c.event);
    CALL(Event_Destroy, &d);

    CALL(Event_Create, &c);
    Suicide s = {c.event, 0};
    on.event = set.event = c.event;
    on.callback = destroy_event;
    on.user_arg = &s;
    set.error_code = PJRT_Error_Code_OK;
    CALL(Event_OnReady, &on);
    CALL(Event_Set, &set);
    check("an event destroyed by its callback", s.calls == 1, "not called once");
}

static void on_delete(void *data, void *arg) {
    (void)data;
    buffer_free(arg); // the lock must be free by now
}

static void test_buffers(void) {
    PJRT_Client *c = client_make(1);
    const float x[4] = {1, 2, 3, 4};
    PJRT_Buffer *b = upload_f32(c, x, 4);
    check("aligned", (uintptr_t)address(b) % 64 == 0, "not to 64 bytes");
    PJRT_Buffer_IncreaseExternalReferenceCount_Args up =
        ARGS(Buffer_IncreaseExternalReferenceCount, .buffer = b);
    PJRT_Buffer_DecreaseExternalReferenceCount_Args down =
        ARGS(Buffer_DecreaseExternalReferenceCount, .buffer = b);
    CALL(Buffer_IncreaseExternalReferenceCount, &up);
    const float *data = address(b);
    PJRT_Buffer_Delete_Args del = ARGS(Buffer_Delete, .buffer = b);
    CALL(Buffer_Delete, &del);
    CALL(Buffer_Delete, &del);
    check("deleted, but still referred to", is_deleted(b) && data[3] == 4, "not so");
    CALL(Buffer_DecreaseExternalReferenceCount, &down);
    fails("a reference too many given back", api->Buffer_DecreaseExternalReferenceCount(&down),
          PJRT_Error_Code_INVALID_ARGUMENT, "no external reference");
    PJRT_Buffer_ReadyEvent_Args ready = ARGS(Buffer_ReadyEvent, .buffer = b);
    fails("waiting for a deleted array", api->Buffer_ReadyEvent(&ready),
          PJRT_Error_Code_INVALID_ARGUMENT, "deleted");
    buffer_free(b);

    float foreign[4] = {5, 6, 7, 8}, got[4];
    const int64_t n = 4;
    PJRT_Client_CreateViewOfDeviceBuffer_Args v =
        ARGS(Client_CreateViewOfDeviceBuffer, .client = c, .device_buffer_ptr = foreign, .dims = &n,
             .num_dims = 1, .element_type = PJRT_Buffer_Type_F32, .on_delete_callback = on_delete,
             .on_delete_callback_arg = upload_f32(c, x, 4));
    CALL(Client_CreateViewOfDeviceBuffer, &v);
    download(v.buffer, NULL, got, sizeof got);
    check("a view of foreign memory",
          !memcmp(got, foreign, sizeof got) && address(v.buffer) == foreign, "other values");
    b = upload_f32(c, x, 4);
    client_free(c); // the client lives on until its buffers are gone
    buffer_free(v.buffer);
    download(b, NULL, got, sizeof got);
    check("an array outlives its client", got[2] == 3, "other values");
    buffer_free(b);
}

// ---- programs

#define ADD(attribute)                                                                             \
    "module @adder {\n"                                                                            \
    "  func.func public @main(%arg0: tensor<4xf32>" attribute                                      \
    ", %arg1: tensor<4xf32>) -> tensor<4xf32> {\n"                                                 \
    "    %0 = stablehlo.add %arg0, %arg1 : tensor<4xf32>\n"                                        \
    "    return %0 : tensor<4xf32>\n"                                                              \
    "  }\n"                                                                                        \
    "}\n"
static const char plain_add[] = ADD(""), donating_add[] = ADD(" {tf.aliasing_output = 0 : i32}");

// The same as an HloModuleProto: of each instruction name, opcode, shape f32[4], number of the parameter, id, operands.
#define F32_4 "\x1a\x05\x10\x0b\x1a\x01\x04"
#define PARAM "\x12\x09parameter" F32_4
static const char hlo_add[] = "\x0a\x01m\x12\x01" "c\x1a\x56\x0a\x01" "c"
                              "\x12\x18\x0a\x01" "a" PARAM "\x98\x02\x01"
                              "\x12\x1a\x0a\x01" "b" PARAM "\x48\x01\x98\x02\x02"
                              "\x12\x17\x0a\x01s\x12\x03" "add" F32_4 "\x98\x02\x03\xa2\x02\x02\x01\x02"
                              "\x28\x01\x30\x03\x30\x01";

static void test_options(PJRT_Client *c) {
    PJRT_LoadedExecutable *exe;
    // 3: build options { 4: replicas 1, 5: partitions 2 }
    const uint8_t two[] = {0x1a, 4, 0x20, 1, 0x28, 2};
    fails("two partitions", compile(c, plain_add, "mlir", two, sizeof two, &exe),
          PJRT_Error_Code_INVALID_ARGUMENT, "runs on 2 devices");
    // 7: override { 1: "nope", 2: { 2: true } }
    const uint8_t nope[] = {0x3a, 10, 0x0a, 4, 'n', 'o', 'p', 'e', 0x12, 2, 0x10, 1};
    fails("an unknown compiler option", compile(c, plain_add, "mlir", nope, sizeof nope, &exe),
          PJRT_Error_Code_INVALID_ARGUMENT, "'nope'");
    fails("malformed options", compile(c, plain_add, "mlir", nope, sizeof nope - 1, &exe),
          PJRT_Error_Code_INVALID_ARGUMENT, "malformed");
    // the assignment to device 7 of one
    const uint8_t seven[] = {0x1a, 7, 0x4a, 5, 0x1a, 3, 0x0a, 1, 7};
    fails("a device that is not there", compile(c, plain_add, "mlir", seven, sizeof seven, &exe),
          PJRT_Error_Code_INVALID_ARGUMENT, "device 7");
    fails("another format", compile(c, plain_add, "llvm", NULL, 0, &exe),
          PJRT_Error_Code_UNIMPLEMENTED, "format llvm");
    fails("HLO that ends early", compile(c, "\x0a\x01m\x12\x01" "c\x1a\x70", "hlo", NULL, 0, &exe),
          PJRT_Error_Code_INVALID_ARGUMENT, "error");
    fails("no program at all", compile(c, "module @x {\n", "mlir", NULL, 0, &exe),
          PJRT_Error_Code_INVALID_ARGUMENT, "error");
}

static void test_execute(PJRT_Client *c, PJRT_LoadedExecutable *exe) {
    const float x[4] = {1, 2, 3, 4}, y[4] = {10, 20, 30, 40};
    float got[4];
    PJRT_Buffer *args[2] = {upload_f32(c, x, 4), upload_f32(c, y, 4)}, *out = NULL;
    good("execute", execute(exe, args, 2, &out));
    download(out, NULL, got, sizeof got);
    check("a sum", got[0] == 11 && got[3] == 44 && !is_deleted(args[0]), "other values");
    buffer_free(out);
    fails("one argument too few", execute(exe, args, 1, &out), PJRT_Error_Code_INVALID_ARGUMENT,
          "takes 2 arguments");
    PJRT_Buffer *wrong[2] = {args[0], upload_f32(c, x, 3)};
    fails("another shape", execute(exe, wrong, 2, &out), PJRT_Error_Code_INVALID_ARGUMENT,
          "argument 1");
    buffer_free(wrong[1]);
    PJRT_Buffer_Delete_Args del = ARGS(Buffer_Delete, .buffer = args[1]);
    CALL(Buffer_Delete, &del);
    fails("a deleted argument", execute(exe, args, 2, &out), PJRT_Error_Code_INVALID_ARGUMENT,
          "argument 1");
    buffer_free(args[0]);
    buffer_free(args[1]);
}

static void test_donation(PJRT_Client *c) {
    PJRT_LoadedExecutable *exe;
    good("compile", compile(c, donating_add, "mlir", NULL, 0, &exe));
    const float x[4] = {1, 2, 3, 4};
    float got[4];
    PJRT_Buffer *args[2] = {upload_f32(c, x, 4), upload_f32(c, x, 4)}, *out = NULL;
    const void *at = address(args[0]);
    good("execute", execute(exe, args, 2, &out));
    download(out, NULL, got, sizeof got);
    check("donated memory is taken over",
          is_deleted(args[0]) && !is_deleted(args[1]) && address(out) == at && got[3] == 8,
          "not so");
    buffer_free(args[0]);

    PJRT_Buffer *same[2] = {out, out}, *none = NULL;
    fails("donated and used", execute(exe, same, 2, &none), PJRT_Error_Code_INVALID_ARGUMENT,
          "argument 1");
    check("a refused call consumes nothing", !is_deleted(out), "deleted");

    PJRT_Buffer_IncreaseExternalReferenceCount_Args up =
        ARGS(Buffer_IncreaseExternalReferenceCount, .buffer = out);
    CALL(Buffer_IncreaseExternalReferenceCount, &up);
    const float *held = address(out);
    PJRT_Buffer *next[2] = {out, args[1]}, *sum = NULL;
    good("execute", execute(exe, next, 2, &sum));
    check("memory that others see is left alone",
          is_deleted(out) && held[3] == 8 && address(sum) != held, "overwritten");
    buffer_free(out);
    buffer_free(sum);
    buffer_free(args[1]);
    exe_free(exe);
}

static void test_queries(PJRT_Client *c, PJRT_LoadedExecutable *loaded) {
    PJRT_LoadedExecutable_GetExecutable_Args g =
        ARGS(LoadedExecutable_GetExecutable, .loaded_executable = loaded);
    CALL(LoadedExecutable_GetExecutable, &g);
    PJRT_Executable_Name_Args name = ARGS(Executable_Name, .executable = g.executable);
    CALL(Executable_Name, &name);
    check("its name", name.executable_name_size == 5 && !memcmp(name.executable_name, "adder", 5),
          "not adder");
    PJRT_Executable_OutputDimensions_Args d =
        ARGS(Executable_OutputDimensions, .executable = g.executable);
    CALL(Executable_OutputDimensions, &d);
    PJRT_Executable_OutputElementTypes_Args t =
        ARGS(Executable_OutputElementTypes, .executable = g.executable);
    CALL(Executable_OutputElementTypes, &t);
    check("the shape of its result",
          d.num_outputs == 1 && d.dim_sizes[0] == 1 && d.dims[0] == 4 &&
              t.output_types[0] == PJRT_Buffer_Type_F32,
          "not 4xf32");
    const PJRT_Layouts_Extension *layouts = (const PJRT_Layouts_Extension *)api->extension_start;
    PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args p = {.struct_size = sizeof p,
                                                              .executable = g.executable};
    good("layouts", layouts->PJRT_Executable_GetParameterLayouts(&p));
    PJRT_Layouts_MemoryLayout_Serialize_Args text = {.struct_size = sizeof text,
                                                     .layout = p.layouts[1]};
    good("layout text", layouts->MemoryLayout_Serialize(&text));
    check("the layout of an argument",
          p.num_parameters == 2 && text.serialized_bytes_size == 3 &&
              !memcmp(text.serialized_bytes, "{0}", 3),
          "not {0}");
    PJRT_LoadedExecutable_GetDeviceAssignment_Args da =
        ARGS(LoadedExecutable_GetDeviceAssignment, .executable = loaded);
    CALL(LoadedExecutable_GetDeviceAssignment, &da);
    const uint8_t assignment[] = {8, 1, 16, 1, 26, 3, 10, 1, 0};
    check("its device", da.serialized_bytes_size == sizeof assignment &&
                            !memcmp(da.serialized_bytes, assignment, sizeof assignment),
          "other bytes");
    da.serialized_device_assignment_deleter(da.serialized_device_assignment);

    PJRT_Executable_Serialize_Args s = ARGS(Executable_Serialize, .executable = g.executable);
    CALL(Executable_Serialize, &s);
    PJRT_Executable_DeserializeAndLoad_Args l =
        ARGS(Executable_DeserializeAndLoad, .client = c,
             .serialized_executable = s.serialized_bytes,
             .serialized_executable_size = s.serialized_bytes_size);
    CALL(Executable_DeserializeAndLoad, &l);
    test_execute(c, l.loaded_executable);
    exe_free(l.loaded_executable);
    l.serialized_executable_size -= 1;
    PJRT_Error *e = api->Executable_DeserializeAndLoad(&l);
    check("a truncated executable is refused", e != NULL, "it was loaded");
    api->Error_Destroy(&ARGS(Error_Destroy, .error = e));
    s.serialized_executable_deleter(s.serialized_executable);
    PJRT_Executable_Destroy_Args x = ARGS(Executable_Destroy, .executable = g.executable);
    CALL(Executable_Destroy, &x);
}

static void test_programs(void) {
    PJRT_Client *c = client_make(1);
    PJRT_LoadedExecutable *exe;
    test_options(c);
    good("compile", compile(c, plain_add, "mlir", NULL, 0, &exe));
    test_execute(c, exe);
    test_queries(c, exe);
    test_donation(c);
    PJRT_LoadedExecutable *hlo;
    good("compile HLO", compile(c, hlo_add, "hlo", NULL, 0, &hlo));
    test_execute(c, hlo);
    exe_free(hlo);
    PJRT_LoadedExecutable_Delete_Args d = ARGS(LoadedExecutable_Delete, .executable = exe);
    CALL(LoadedExecutable_Delete, &d);
    fails("a deleted program", execute(exe, NULL, 0, NULL), PJRT_Error_Code_FAILED_PRECONDITION,
          "deleted");
    client_free(c);
    exe_free(exe);
}

static void test_rare(void) {
    PJRT_Client *c = client_make(1);
    const float one[2] = {1.0f, -2.0f};
    PJRT_Buffer *b = upload_f32(c, one, 2);
    const int64_t four[1] = {4}, two[1] = {2};
    PJRT_Buffer_Bitcast_Args cast = ARGS(Buffer_Bitcast, .buffer = b, .element_type = PJRT_Buffer_Type_U16,
                                         .dims = four, .num_dims = 1);
    CALL(Buffer_Bitcast, &cast);
    uint16_t halves[4];
    download(cast.out_buffer, NULL, halves, sizeof halves);
    check("bits as another type", halves[1] == 0x3f80 && halves[3] == 0xc000, "other bits");
    check("in the same memory", address(cast.out_buffer) == address(b), "a copy");
    buffer_free(cast.out_buffer);
    cast.dims = two;
    fails("of other size", api->Buffer_Bitcast(&cast), PJRT_Error_Code_INVALID_ARGUMENT, "8 bytes");

    PJRT_Buffer_CopyRawToHostFuture_Args later =
        ARGS(Buffer_CopyRawToHostFuture, .buffer = b, .offset = 4, .transfer_size = 4);
    float got = 0;
    for (int bad = 0; bad < 2; bad++) {
        CALL(Buffer_CopyRawToHostFuture, &later);
        PJRT_Event_IsReady_Args ready = ARGS(Event_IsReady, .event = later.event);
        CALL(Event_IsReady, &ready);
        check("a copy waits for its place", !ready.is_ready, "it was made");
        later.future_ready_callback(&(PJRT_Buffer_CopyRawToHostFuture_Callback_Args){
            .struct_size = sizeof(PJRT_Buffer_CopyRawToHostFuture_Callback_Args),
            .callback_data = later.callback_data, .dst = &got,
            .error_code = bad ? PJRT_Error_Code_ABORTED : PJRT_Error_Code_OK,
            .error_message = "no place", .error_message_size = 8});
        PJRT_Event_Await_Args wait = ARGS(Event_Await, .event = later.event);
        if (bad)
            fails("or is given up", api->Event_Await(&wait), PJRT_Error_Code_ABORTED, "no place");
        else
            CALL(Event_Await, &wait);
        CALL(Event_Destroy, &ARGS(Event_Destroy, .event = later.event));
    }
    check("and has it", got == -2, "another value");
    buffer_free(b);

    PJRT_Client_CreateErrorBuffer_Args wrong =
        ARGS(Client_CreateErrorBuffer, .client = c, .error_code = PJRT_Error_Code_DATA_LOSS, .error_message = "gone",
             .error_message_size = 4, .shape_dims = two, .shape_num_dims = 1, .shape_element_type = PJRT_Buffer_Type_F32);
    CALL(Client_CreateErrorBuffer, &wrong);
    PJRT_Buffer_ToHostBuffer_Args read =
        ARGS(Buffer_ToHostBuffer, .src = wrong.buffer, .dst = halves, .dst_size = sizeof halves);
    fails("an array that is an error", api->Buffer_ToHostBuffer(&read), PJRT_Error_Code_DATA_LOSS, "gone");
    buffer_free(wrong.buffer);

    PJRT_ExecuteContext_Create_Args x = ARGS(ExecuteContext_Create);
    CALL(ExecuteContext_Create, &x);
    CALL(ExecuteContext_Destroy, &ARGS(ExecuteContext_Destroy, .context = x.context));
    client_free(c);
}

int main(void) {
    setenv("OTRN_CACHE", "off", 1);
    if (!(api = plugin_load()))
        return 1;
    test_table();
    test_client();
    test_most_devices();
    test_topology();
    test_transfer();
    test_events();
    test_buffers();
    test_programs();
    test_rare();
    return failures != 0;
}
