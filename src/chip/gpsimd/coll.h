// SPDX-License-Identifier: Apache-2.0
// coll.h — a collective's meeting, for the kernels of coll.c and coll_reduce.c.
//
// Lies at the start of the kernel's scratch memory:  GpMeet | CommBuf and CommSize per operand | the kernel's
// own. On one device (GpCall.comm is NULL) every group is that device alone and nobody meets.
#ifndef OTRN_CHIP_GP_COLL_H
#define OTRN_CHIP_GP_COLL_H

#include "chip/gpsimd/gp.h"
#include "coll/bring.h"
#include "coll/reduce.h"
#include "hlo/coll.h"

typedef struct GpMeet {
    Members members;
    CommPost post;
    CommSize *sizes; // for reductions
    bool met; // with others
} GpMeet;

size_t coll_scratch_bytes(const Kern *k); // the two parts in front
static inline void *coll_scratch_end(const GpCall *c) {
    return (char *)c->scratch + coll_scratch_bytes(c->k);
}
// The group of this device: *out in the scratch. Not OK: gp_fail has told.
otrn_status coll_find(const GpCall *c, GpMeet **out);
// Where nobody may be left out, or the shapes fit only groups of `size` devices.
otrn_status coll_need(const GpCall *c, const GpMeet *m, int64_t size);
otrn_status coll_begin(const GpCall *c, GpMeet *m);
void coll_end(const GpCall *c, const GpMeet *m);

// Operand k of the member at this position; *part: only what is for this device.
static inline const char *coll_in(const GpCall *c, const GpMeet *m, uint32_t position, uint32_t k, bool *part) {
    *part = false;
    return m->met ? comm_in(c->comm, position, k, part) : c->in[k];
}

// The position in the group that operand k comes from or goes to: the first, or what the operand
// behind the others says.
bool coll_root_ok(const Kern *k);
otrn_status coll_root(const GpCall *c, const GpMeet *m, uint32_t k, uint32_t *position);
// Find the group, check every operand's root, meet: how a collective with a root starts.
otrn_status coll_begin_rooted(const GpCall *c, GpMeet **out);
bool coll_groups_ok(const Kern *k);

#endif
