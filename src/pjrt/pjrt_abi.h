// SPDX-License-Identifier: Apache-2.0
// pjrt_abi.h — C declarations of the PJRT interface, made from the rows of pjrt_abi.def.
//
// The interface belongs to the OpenXLA project; what is here is our own statement of its layout, so
// that building the plugin needs no file of theirs. `make abi HEADER=path` proves the two agree.
// Facts that the rows cannot say:
//   1. struct_size is the end of the last member the caller knows. A member whose end lies beyond
//      it is absent (PJRT_HAS); a struct larger than ours is fine.
//   2. Members marked O are not initialised by the caller.
//   3. Text is pointer and size without a NUL, except call_location.
#ifndef OTRN_PJRT_ABI_H
#define OTRN_PJRT_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PJRT_API_MAJOR = 0, PJRT_API_MINOR = 114, PJRT_API_ROWS = 138 };

typedef void PJRT_PayloadVisitor(const char *key, size_t key_size, const char *value,
                                 size_t value_size, void *user_arg);

#define PJRT_HAS(args, member)                                                                     \
    ((args)->struct_size >= offsetof(__typeof__(*(args)), member) + sizeof((args)->member))

#define PJRT_HEAD                                                                                  \
    size_t struct_size;                                                                            \
    PJRT_Extension_Base *extension_start;

// First reading: types and structs.
#define T(name) typedef struct PJRT_##name PJRT_##name;
#define E(name, value) PJRT_##name = value,
#define EN(name, rows) typedef enum PJRT_##name { rows } PJRT_##name;
#define F(type, member) type member;
#define O(type, member) type member;
#define P(ret, member, params) ret(*member) params;
#define U(members) union { members };
#define S(name, members)                                                                           \
    typedef struct PJRT_##name PJRT_##name;                                                        \
    struct PJRT_##name { members };
#define HS(name, members)                                                                          \
    typedef struct PJRT_##name { PJRT_HEAD members } PJRT_##name;
#define FN(name, members)                                                                          \
    typedef struct PJRT_##name##_Args { PJRT_HEAD members } PJRT_##name##_Args;
#define FNV(name, members) FN(name, members)
#define NO(name, why)
#include "pjrt/pjrt_abi.def"

typedef struct PJRT_Layouts_MemoryLayout PJRT_Layouts_MemoryLayout;
typedef struct PJRT_Layouts_SerializedLayout PJRT_Layouts_SerializedLayout;
#undef FN
#define FN(name, members)                                                                          \
    typedef struct PJRT_Layouts_##name##_Args { PJRT_HEAD members } PJRT_Layouts_##name##_Args;
#include "pjrt/pjrt_layouts.def"
#undef FN
#define FN(name, members)                                                                          \
    typedef struct PJRT_Shardings_##name##_Args { PJRT_HEAD members } PJRT_Shardings_##name##_Args;
#include "pjrt/pjrt_shardings.def"
#undef FN
#define FN(name, members)                                                                          \
    typedef struct PJRT_Transfers_##name##_Args { PJRT_HEAD members } PJRT_Transfers_##name##_Args;
#include "pjrt/pjrt_transfers.def"
#undef FN
#define FN(name, members)                                                                          \
    typedef struct PJRT_##name##_Args { size_t struct_size; members } PJRT_##name##_Args;
#define ST(name, members)                                                                          \
    typedef struct name name;                                                                      \
    struct name { members };
#include "pjrt/pjrt_partitioner.def"
#undef ST

// Second reading: the tables.
#undef T
#undef E
#undef EN
#undef S
#undef HS
#undef FN
#undef FNV
#undef NO
#define T(name)
#define EN(name, rows)
#define S(name, members)
#define HS(name, members)
#define FN(name, members) PJRT_Error *(*name)(PJRT_##name##_Args *);
#define FNV(name, members) void (*name)(PJRT_##name##_Args *);
#define NO(name, why) PJRT_Error *(*name)(void *);
typedef struct PJRT_Api {
    PJRT_HEAD
    PJRT_Api_Version pjrt_api_version;
#include "pjrt/pjrt_abi.def"
} PJRT_Api;

#undef FN
#define FN(name, members) PJRT_Error *(*name)(PJRT_Layouts_##name##_Args *);
typedef struct PJRT_Layouts_Extension {
    PJRT_Extension_Base base;
#include "pjrt/pjrt_layouts.def"
} PJRT_Layouts_Extension;

#undef FN
#define FN(name, members) PJRT_Error *(*name)(PJRT_Shardings_##name##_Args *);
typedef struct PJRT_Shardings_Extension {
    PJRT_Extension_Base base;
#include "pjrt/pjrt_shardings.def"
} PJRT_Shardings_Extension;

#undef FN
#undef FNV
#define FN(name, members) PJRT_Error *(*name)(PJRT_Transfers_##name##_Args *);
#define FNV(name, members) void (*name)(PJRT_Transfers_##name##_Args *);
typedef struct PJRT_CrossHostTransfers_Extension {
    PJRT_Extension_Base base;
#include "pjrt/pjrt_transfers.def"
} PJRT_CrossHostTransfers_Extension;

#undef FN
#define FN(name, members) PJRT_Error *(*name)(PJRT_##name##_Args *);
#define ST(name, members)
typedef struct PJRT_Custom_Partitioner_Extension {
    PJRT_Extension_Base base;
#include "pjrt/pjrt_partitioner.def"
} PJRT_Custom_Partitioner_Extension;
#undef ST

#undef T
#undef EN
#undef F
#undef O
#undef P
#undef U
#undef S
#undef HS
#undef FN
#undef FNV
#undef NO

_Static_assert(sizeof(PJRT_Api) ==
                   offsetof(PJRT_Api, Error_Destroy) + PJRT_API_ROWS * sizeof(void (*)(void)),
               "the table has another number of rows");

#endif
