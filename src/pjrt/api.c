// SPDX-License-Identifier: Apache-2.0
// api.c — the function table, made from the rows of pjrt_abi.def; what the plugin says of itself.
//
// A row that is not implemented is bound to a stub of its own that names it: the caller's message
// then tells which function was missing. The table is constant.
#include <string.h>

#include "pjrt/pjrt.h"

#define T(name)
#define EN(name, rows)
#define S(name, members)
#define HS(name, members)

#define FN(name, members)
#define FNV(name, members)
#define NO(name, why)                                                                              \
    static PJRT_Error *stub_##name(void *args) {                                                   \
        (void)args;                                                                                \
        return pj_error(PJRT_Error_Code_UNIMPLEMENTED, "opentrn has no PJRT_" #name ": " why);     \
    }
#include "pjrt/pjrt_abi.def"
#undef FN
#undef FNV
#undef NO

#define FN(name, members) .name = pj_##name,
#define FNV(name, members) .name = pj_##name,
#define NO(name, why) .name = stub_##name,
static const PJRT_Api api = {
    .struct_size = sizeof(PJRT_Api),
    .extension_start = (PJRT_Extension_Base *)&pj_layouts_extension.base,
    .pjrt_api_version = {.struct_size = sizeof(PJRT_Api_Version),
                         .major_version = PJRT_API_MAJOR,
                         .minor_version = PJRT_API_MINOR},
#include "pjrt/pjrt_abi.def"
};

OTRN_API const PJRT_Api *GetPjrtApi(void);
const PJRT_Api *GetPjrtApi(void) { return &api; }

PJRT_Error *pj_Plugin_Initialize(PJRT_Plugin_Initialize_Args *args) {
    (void)args;
    return PJ_OK;
}

// The versions pin what jaxlib sends: VHLO 1.17.0 (asynchronous collectives came with 1.15) and Shardy 0.0.1, whatever newer it knows.
PJRT_Error *pj_Plugin_Attributes(PJRT_Plugin_Attributes_Args *args) {
    static const int64_t stablehlo[3] = {1, 17, 0}, stablehlo_least[3] = {1, 0, 0},
                         sdy[3] = {0, 0, 1};
#define VERSION(key, at)                                                                           \
    {.struct_size = sizeof(PJRT_NamedValue),                                                       \
     .name = key,                                                                                  \
     .name_size = sizeof(key) - 1,                                                                 \
     .type = PJRT_NamedValue_kInt64List,                                                           \
     .int64_array_value = at,                                                                      \
     .value_size = 3}
    static const PJRT_NamedValue attributes[] = {
        VERSION("stablehlo_current_version", stablehlo),
        VERSION("stablehlo_minimum_version", stablehlo_least),
        VERSION("sdy_current_version", sdy),
    };
    args->attributes = attributes;
    args->num_attributes = sizeof attributes / sizeof attributes[0];
    return PJ_OK;
}

void pj_named_int64s(PJRT_NamedValue *v, const char *name, const int64_t *at, size_t n) {
    *v = (PJRT_NamedValue){.struct_size = sizeof *v,
                           .name = name,
                           .name_size = strlen(name),
                           .type = PJRT_NamedValue_kInt64List,
                           .int64_array_value = at,
                           .value_size = n};
}

void pj_named_float(PJRT_NamedValue *v, const char *name, double value) {
    *v = (PJRT_NamedValue){.struct_size = sizeof *v,
                           .name = name,
                           .name_size = strlen(name),
                           .type = PJRT_NamedValue_kFloat,
                           .float_value = (float)value,
                           .value_size = 1};
}
