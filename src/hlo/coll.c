// SPDX-License-Identifier: Apache-2.0
// coll.c — the groups of a collective and its identity; see coll.h.
//
// How ids are read (the specification's "processes"): without a channel they are replicas. With
// one, use_global_device_ids makes them ranks; else they are replicas crossed with all partitions
// for ops that reduce or gather, and partitions for ops that move data between pairs or from a
// root.
#include "hlo/coll.h"

static const HloAttr *slot(HloOpcode code, const HloAttr *attrs, HloAttrKey key) {
    const HloOpRow *row = &hlo_op_rows[code];
    for (int i = 0; i < row->nattrs; i++)
        if (row->attrs[i] == key)
            return attrs[i].kind == HA_NONE ? NULL : &attrs[i];
    return NULL;
}

static bool is_partition_op(HloOpcode code) {
    switch (code) {
    case HLO_ALL_TO_ALL:
    case HLO_COLLECTIVE_PERMUTE:
    case HLO_COLLECTIVE_BROADCAST:
    case HLO_SEND:
    case HLO_RECV:
        return true;
    default:
        return false;
    }
}

bool coll_groups(HloOpcode code, const HloAttr *attrs, Groups *out) {
    const HloAttr *table = slot(code, attrs, AK_REPLICA_GROUPS);
    if (!table)
        table = slot(code, attrs, AK_SOURCE_TARGET_PAIRS);
    const HloAttr *channel = slot(code, attrs, AK_CHANNEL_ID);
    const HloAttr *global = slot(code, attrs, AK_USE_GLOBAL_DEVICE_IDS);
    bool pairs = slot(code, attrs, AK_SOURCE_TARGET_PAIRS) != NULL;
    *out = (Groups){.mode = GROUP_REPLICA};
    if (channel && channel->i > 0)
        out->mode = global && global->i     ? GROUP_FLAT
                    : is_partition_op(code) ? GROUP_PARTITION
                                            : GROUP_BOTH;
    if (!table || !table->n)
        return true;
    if (table->kind != HA_INTS2 || !table->cols || (pairs && table->cols != 2))
        return false;
    out->ids = table->ints;
    out->cols = table->cols;
    out->rows = table->n / table->cols;
    return true;
}

bool coll_ragged(Hlo *h, const HloOp *op, HloAttr *groups, int64_t *channel) {
    const HloNamed *given = hlo_named_find(op->extra, op->nextra, "mhlo.backend_config");
    const HloAttr *dict = given ? &given->value : hlo_attr(op, AK_BACKEND_CONFIG);
    if (!dict || dict->kind != HA_DICT)
        return false;
    const HloNamed *table = hlo_named_find(dict->dict, dict->n, "replica_groups");
    const HloNamed *number = hlo_named_find(dict->dict, dict->n, "channel_id");
    if (!table || table->value.kind != HA_TENSOR || (number && number->value.kind != HA_INT))
        return false;
    const HloType *t = hlo_type(h, table->value.type);
    if (t->rank != 2 || !dtype_is_int(t->dtype) || t->text || t->elems < 1 || t->elems > UINT32_MAX)
        return false;
    uint8_t *bytes = arena_alloc(h->arena, hlo_type_bytes(t));
    hlo_tensor_expand(h, &table->value, bytes);
    int64_t *ids = ARENA_NEWN(h->arena, int64_t, (size_t)t->elems);
    for (int64_t i = 0; i < t->elems; i++)
        ids[i] = dtype_to_i64(t->dtype, bytes + (size_t)i * dtype_bytes(t->dtype));
    *groups = (HloAttr){.kind = HA_INTS2, .n = (uint32_t)t->elems, .cols = (uint32_t)t->dims[1], .ints = ids};
    *channel = number ? number->value.i : 0;
    return true;
}

uint64_t coll_sign(HloOpcode code, const HloAttr *attrs) {
    uint64_t sign = hash64(1, &code, sizeof code);
    for (int i = 0; i < hlo_op_rows[code].nattrs; i++) {
        const HloAttr *a = &attrs[i];
        sign = hash64(sign, &a->kind, sizeof a->kind);
        if (a->kind == HA_INTS || a->kind == HA_INTS2)
            sign = hash64(sign, a->ints, a->n * sizeof *a->ints);
        else if (a->kind == HA_INT || a->kind == HA_BOOL)
            sign = hash64(sign, &a->i, sizeof a->i);
    }
    return sign;
}

uint64_t coll_sign_type(uint64_t sign, int dtype, int rank, const int64_t *dims) {
    int head[2] = {dtype, rank};
    sign = hash64(sign, head, sizeof head);
    return rank ? hash64(sign, dims, (size_t)rank * sizeof *dims) : sign;
}
