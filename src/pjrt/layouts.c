// SPDX-License-Identifier: Apache-2.0
// layouts.c — the layouts extension: in which order the axes of an array lie.
//
// Row by row unless a program wants another order (pass/layouts.c); a layout is written as HLO text writes it, the axes
// from minor to major: "{2,1,0}". Offering this and the shardings extension spares jaxlib a detour: without them it fetches the program after every compile and converts it
// to HLO to look there, which takes longer than everything else in a small compile.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pjrt/pjrt.h"

struct PJRT_Layouts_MemoryLayout {
    size_t size;
    char text[];
};

// NULL: no memory
static PJRT_Layouts_MemoryLayout *pj_layout_make(size_t rank, LayoutOrder order) {
    PJRT_Layouts_MemoryLayout *l = malloc(sizeof *l + 3 + rank * 4);
    if (!l)
        return NULL;
    char *at = l->text;
    *at++ = '{';
    for (size_t i = rank; i-- > 0;)
        at += sprintf(at, i ? "%u," : "%u", layout_axis(order, (uint32_t)i));
    *at++ = '}';
    l->size = (size_t)(at - l->text);
    return l;
}

static PJRT_Error *layout_out(size_t rank, LayoutOrder order, PJRT_Layouts_MemoryLayout **out) {
    if (rank > PJ_MAX_RANK)
        return pj_error(PJRT_Error_Code_INVALID_ARGUMENT, "opentrn: rank %zu is above %d", rank,
                        PJ_MAX_RANK);
    *out = pj_layout_make(rank, order);
    return *out ? PJ_OK : pj_error_nomem();
}

static PJRT_Error *layout_destroy(PJRT_Layouts_MemoryLayout_Destroy_Args *args) {
    free(args->layout);
    return PJ_OK;
}

static void serialized_free(PJRT_Layouts_SerializedLayout *s) { (void)s; } // the layout owns it

static PJRT_Error *layout_serialize(PJRT_Layouts_MemoryLayout_Serialize_Args *args) {
    args->serialized_bytes = args->layout->text;
    args->serialized_bytes_size = args->layout->size;
    args->serialized_layout = (PJRT_Layouts_SerializedLayout *)args->layout;
    args->serialized_layout_deleter = serialized_free;
    return PJ_OK;
}

static PJRT_Error *client_layout(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args *args) {
    return layout_out(args->num_dims, 0, &args->layout);
}

static PJRT_Error *topology_layout(PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args *args) {
    return layout_out(args->num_dims, 0, &args->layout);
}

static PJRT_Error *buffer_layout(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args *args) {
    return layout_out(args->buffer->rank, args->buffer->order, &args->layout);
}

// The executable keeps its layouts; they are made when first asked for.
static PJRT_Error *exe_layouts(PJRT_Executable *e, bool results,
                               PJRT_Layouts_MemoryLayout ***out) {
    size_t n = results ? e->num_results : e->num_args;
    const Slot *slots = results ? e->results : e->args;
    PJRT_Error *error = PJ_OK;
    pj_lock(e->client);
    PJRT_Layouts_MemoryLayout **made = e->layouts[results];
    if (!made) {
        made = calloc(n + 1, sizeof *made);
        for (size_t i = 0; made && i < n; i++)
            if (!(made[i] = pj_layout_make(slots[i].rank, slots[i].order))) {
                for (size_t k = 0; k < i; k++)
                    free(made[k]);
                free(made);
                made = NULL;
            }
        if (!made)
            error = pj_error_nomem();
        e->layouts[results] = made;
    }
    pj_unlock(e->client);
    *out = made;
    return error;
}

static PJRT_Error *exe_output_layouts(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args *args) {
    args->num_outputs = args->executable->num_results;
    return exe_layouts(args->executable, true, &args->layouts);
}

static PJRT_Error *exe_param_layouts(PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args *args) {
    args->num_parameters = args->executable->num_args;
    return exe_layouts(args->executable, false, &args->layouts);
}

const PJRT_Layouts_Extension pj_layouts_extension = {
    .base = {.struct_size = sizeof(PJRT_Layouts_Extension),
             .type = PJRT_Extension_Type_Layouts,
             .next = (PJRT_Extension_Base *)&pj_shardings_extension.base},
    .MemoryLayout_Destroy = layout_destroy,
    .MemoryLayout_Serialize = layout_serialize,
    .PJRT_Client_GetDefaultLayout = client_layout,
    .PJRT_Buffer_MemoryLayout = buffer_layout,
    .PJRT_Topology_GetDefaultLayout = topology_layout,
    .PJRT_Executable_GetOutputLayouts = exe_output_layouts,
    .PJRT_Executable_GetParameterLayouts = exe_param_layouts,
};
