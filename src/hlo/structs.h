// SPDX-License-Identifier: Apache-2.0
// structs.h — the structured attributes of StableHLO's text and the flat slots they stand for.
//
// `dimension_numbers = #stablehlo.gather<offset_dims = [0], …>` in text is one slot per field here
// and in the serialised form. Reader and printer both work from this table. Convolution's is not in
// it: its text is a picture of the layouts, not a list of fields.
#ifndef OTRN_HLO_STRUCTS_H
#define OTRN_HLO_STRUCTS_H

#include "hlo/hlo.h"

#define HLO_STRUCT_FIELDS 7
typedef struct HloStructRow {
    const char *attr;     // name of the attribute: "dimension_numbers"
    const char *mnemonic; // behind "#stablehlo.", or "#chlo." on a chlo op: "gather"
    uint8_t keys[HLO_STRUCT_FIELDS]; // HloAttrKey, in printing order, AK_NONE behind the last
    const char *fields[HLO_STRUCT_FIELDS]; // text name where it is not the slot's own
} HloStructRow;

#define HLO_STRUCTS 6
extern const HloStructRow hlo_struct_rows[HLO_STRUCTS];
// The row of an op's structured attribute by attribute name, or by a slot that belongs to one.
const HloStructRow *hlo_struct_by_name(const HloOpRow *op, const char *attr);
const HloStructRow *hlo_struct_by_key(const HloOpRow *op, HloAttrKey key);
bool hlo_row_has(const HloOpRow *op, HloAttrKey key);

#endif
