// SPDX-License-Identifier: Apache-2.0
// structs.c — the table of structured attributes.
#include "hlo/structs.h"

const HloStructRow hlo_struct_rows[HLO_STRUCTS] = {
    {.attr = "dimension_numbers",
     .mnemonic = "gather",
     .keys = {AK_OFFSET_DIMS, AK_COLLAPSED_SLICE_DIMS, AK_OPERAND_BATCHING_DIMS,
              AK_START_INDICES_BATCHING_DIMS, AK_START_INDEX_MAP, AK_INDEX_VECTOR_DIM}},
    {.attr = "scatter_dimension_numbers",
     .mnemonic = "scatter",
     .keys = {AK_UPDATE_WINDOW_DIMS, AK_INSERTED_WINDOW_DIMS, AK_INPUT_BATCHING_DIMS,
              AK_SCATTER_INDICES_BATCHING_DIMS, AK_SCATTER_DIMS_TO_OPERAND_DIMS,
              AK_INDEX_VECTOR_DIM}},
    {.attr = "ragged_dot_dimension_numbers",
     .mnemonic = "ragged_dot",
     .keys = {AK_LHS_RAGGED_DIMENSIONS, AK_LHS_BATCHING_DIMENSIONS, AK_RHS_BATCHING_DIMENSIONS,
              AK_LHS_CONTRACTING_DIMENSIONS, AK_RHS_CONTRACTING_DIMENSIONS, AK_RHS_GROUP_DIMENSIONS}},
    {.attr = "dot_dimension_numbers",
     .mnemonic = "dot",
     .keys = {AK_LHS_BATCHING_DIMENSIONS, AK_RHS_BATCHING_DIMENSIONS, AK_LHS_CONTRACTING_DIMENSIONS,
              AK_RHS_CONTRACTING_DIMENSIONS}},
    {.attr = "algorithm",
     .mnemonic = "dot_algorithm",
     .keys = {AK_LHS_PRECISION_TYPE, AK_RHS_PRECISION_TYPE, AK_ACCUMULATION_TYPE,
              AK_LHS_COMPONENT_COUNT, AK_RHS_COMPONENT_COUNT, AK_NUM_PRIMITIVE_OPERATIONS,
              AK_ALLOW_IMPRECISE_ACCUMULATION}},
    {.attr = "channel_handle",
     .mnemonic = "channel_handle",
     .keys = {AK_CHANNEL_ID, AK_CHANNEL_TYPE},
     .fields = {"handle", "type"}},
};

bool hlo_row_has(const HloOpRow *op, HloAttrKey key) {
    for (int i = 0; i < op->nattrs; i++)
        if (op->attrs[i] == key)
            return true;
    return false;
}

const HloStructRow *hlo_struct_by_name(const HloOpRow *op, const char *attr) {
    for (int i = 0; i < HLO_STRUCTS; i++)
        if (!strcmp(hlo_struct_rows[i].attr, attr) && hlo_row_has(op, hlo_struct_rows[i].keys[0]))
            return &hlo_struct_rows[i];
    return NULL;
}

const HloStructRow *hlo_struct_by_key(const HloOpRow *op, HloAttrKey key) {
    for (int i = 0; i < HLO_STRUCTS; i++)
        for (int k = 0; k < HLO_STRUCT_FIELDS && hlo_struct_rows[i].keys[k]; k++)
            if (hlo_struct_rows[i].keys[k] == key && hlo_row_has(op, hlo_struct_rows[i].keys[0]))
                return &hlo_struct_rows[i];
    return NULL;
}
