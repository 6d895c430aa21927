// SPDX-License-Identifier: Apache-2.0
// query.c — what an executable tells about itself: shapes, kinds, memory, cost, bytes.
//
// Lists that few callers want are made on first demand and then belong to the executable.
#include <stdlib.h>
#include <string.h>

#include "pjrt/pjrt.h"
#include "rt/rt.h"

PJRT_Error *pj_Executable_Name(PJRT_Executable_Name_Args *args) {
    args->executable_name = otrn_exe_name(args->executable->exe);
    args->executable_name_size = strlen(args->executable_name);
    return PJ_OK;
}

PJRT_Error *pj_Executable_NumReplicas(PJRT_Executable_NumReplicas_Args *args) {
    args->num_replicas = args->executable->replicas;
    return PJ_OK;
}

PJRT_Error *pj_Executable_NumPartitions(PJRT_Executable_NumPartitions_Args *args) {
    args->num_partitions = args->executable->partitions;
    return PJ_OK;
}

PJRT_Error *pj_Executable_NumOutputs(PJRT_Executable_NumOutputs_Args *args) {
    args->num_outputs = args->executable->num_results;
    return PJ_OK;
}

PJRT_Error *
pj_Executable_SizeOfGeneratedCodeInBytes(PJRT_Executable_SizeOfGeneratedCodeInBytes_Args *args) {
    otrn_memory m = OTRN_MEMORY_INIT;
    otrn_exe_memory(args->executable->exe, &m, NULL);
    args->size_in_bytes = (int64_t)m.code_bytes;
    return PJ_OK;
}

PJRT_Error *pj_Executable_OutputMemoryKinds(PJRT_Executable_OutputMemoryKinds_Args *args) {
    args->num_outputs = args->executable->num_results;
    args->memory_kinds = args->executable->kinds + args->executable->num_args;
    args->memory_kind_sizes = args->executable->kind_sizes + args->executable->num_args;
    return PJ_OK;
}

PJRT_Error *pj_Executable_ParameterMemoryKinds(PJRT_Executable_ParameterMemoryKinds_Args *args) {
    args->num_parameters = args->executable->num_args;
    args->memory_kinds = args->executable->kinds;
    args->memory_kind_sizes = args->executable->kind_sizes;
    return PJ_OK;
}

static PJRT_Error *exe_shapes(PJRT_Executable *e) {
    PJRT_Error *error = PJ_OK;
    size_t dims = 0, n = e->num_results;
    for (size_t i = 0; i < n; i++)
        dims += e->results[i].rank;
    pj_lock(e->client);
    if (!e->result_types) {
        PJRT_Buffer_Type *types = malloc((n + 1) * sizeof *types);
        e->result_dims = malloc((dims + 1) * sizeof *e->result_dims);
        e->result_ranks = malloc((n + 1) * sizeof *e->result_ranks);
        if (types && e->result_dims && e->result_ranks) {
            int64_t *at = e->result_dims;
            for (size_t i = 0; i < n; i++) {
                const Slot *s = &e->results[i];
                types[i] = s->type;
                e->result_ranks[i] = s->rank;
                for (size_t k = 0; k < s->rank; k++)
                    *at++ = s->dims[k];
            }
            e->result_types = types;
        } else {
            free(types);
            free(e->result_dims);
            free(e->result_ranks);
            e->result_dims = NULL;
            e->result_ranks = NULL;
            error = pj_error_nomem();
        }
    }
    pj_unlock(e->client);
    return error;
}

PJRT_Error *pj_Executable_OutputElementTypes(PJRT_Executable_OutputElementTypes_Args *args) {
    PJRT_Error *error = exe_shapes(args->executable);
    args->output_types = args->executable->result_types;
    args->num_output_types = args->executable->num_results;
    return error;
}

PJRT_Error *pj_Executable_OutputDimensions(PJRT_Executable_OutputDimensions_Args *args) {
    PJRT_Error *error = exe_shapes(args->executable);
    args->num_outputs = args->executable->num_results;
    args->dims = args->executable->result_dims;
    args->dim_sizes = args->executable->result_ranks;
    return error;
}

PJRT_Error *pj_Executable_Fingerprint(PJRT_Executable_Fingerprint_Args *args) {
    args->executable_fingerprint = args->executable->fingerprint;
    args->executable_fingerprint_size = strlen(args->executable_fingerprint);
    return PJ_OK;
}

// ---- bytes

static void artifact_free(PJRT_SerializedExecutable *s) { (void)s; } // the executable owns it

PJRT_Error *pj_Executable_Serialize(PJRT_Executable_Serialize_Args *args) {
    args->serialized_bytes = otrn_exe_bytes(args->executable->exe, &args->serialized_bytes_size);
    args->serialized_executable = (PJRT_SerializedExecutable *)args->executable;
    args->serialized_executable_deleter = artifact_free;
    return PJ_OK;
}

static void options_free(PJRT_SerializedCompileOptions *s) { (void)s; } // the executable owns them

PJRT_Error *pj_Executable_GetCompileOptions(PJRT_Executable_GetCompileOptions_Args *args) {
    args->serialized_bytes = args->executable->options;
    args->serialized_bytes_size = args->executable->options_size;
    args->serialized_compile_options = (PJRT_SerializedCompileOptions *)args->executable;
    args->serialized_compile_options_deleter = options_free;
    return PJ_OK;
}

// The program as it came in. Asked twice: for the size, then with room for the bytes.
// A program over several devices is shown as each of them runs it. One that cannot be written stays as it came.
static PJRT_Error *program_part(void *arg, Ctx *ctx, Arena *a) {
    PJRT_Executable *e = arg;
    Buf out = {.arena = a};
    rt_parted(ctx, a, "jax program", e->program, e->program_size, e->is_xla ? pj_shardings_text(e, a) : "", &out);
    char *copy = malloc(out.n);
    if (!copy)
        return PJ_OK;
    memcpy(copy, out.at, out.n);
    free(e->program);
    e->program = copy;
    e->program_size = out.n;
    return PJ_OK;
}

PJRT_Error *pj_Executable_OptimizedProgram(PJRT_Executable_OptimizedProgram_Args *args) {
    PJRT_Executable *e = args->executable;
    pj_lock(e->client);
    if (e->program && e->partitions > 1 && !e->is_parted)
        pj_Error_Destroy(&(PJRT_Error_Destroy_Args){.error = pj_try(program_part, e)});
    e->is_parted = true;
    pj_unlock(e->client);
    if (!e->program)
        return pj_error(PJRT_Error_Code_UNIMPLEMENTED,
                        "opentrn: an executable loaded from an artifact has no StableHLO program");
    PJRT_Program *p = args->program;
    p->format = "mlir";
    p->format_size = 4;
    if (p->code) {
        if (p->code_size < e->program_size)
            return pj_error(PJRT_Error_Code_INVALID_ARGUMENT,
                            "opentrn: %zu bytes do not hold a program of %zu bytes", p->code_size,
                            e->program_size);
        memcpy(p->code, e->program, e->program_size);
    }
    p->code_size = e->program_size;
    return PJ_OK;
}

// ---- memory and time

PJRT_Error *
pj_Executable_GetCompiledMemoryStats(PJRT_Executable_GetCompiledMemoryStats_Args *args) {
    otrn_memory m = OTRN_MEMORY_INIT;
    otrn_exe_memory(args->executable->exe, &m, NULL);
    args->generated_code_size_in_bytes = (int64_t)m.code_bytes;
    args->argument_size_in_bytes = (int64_t)m.arg_bytes;
    args->output_size_in_bytes = (int64_t)m.result_bytes;
    args->alias_size_in_bytes = (int64_t)m.alias_bytes;
    args->temp_size_in_bytes = (int64_t)m.scratch_bytes;
    args->host_generated_code_size_in_bytes = 0;
    args->host_argument_size_in_bytes = 0;
    args->host_output_size_in_bytes = 0;
    args->host_alias_size_in_bytes = 0;
    args->host_temp_size_in_bytes = 0;
    int64_t total = (int64_t)(m.arg_bytes + m.result_bytes - m.alias_bytes + m.scratch_bytes +
                              m.const_bytes);
    if (PJRT_HAS(args, peak_memory_in_bytes))
        args->peak_memory_in_bytes = (int64_t)m.peak_bytes;
    if (PJRT_HAS(args, total_size_in_bytes))
        args->total_size_in_bytes = total;
    if (PJRT_HAS(args, total_allocation_bytes))
        args->total_allocation_bytes = total;
    if (PJRT_HAS(args, indefinite_allocations))
        args->indefinite_allocations = (int64_t)m.const_bytes;
    if (PJRT_HAS(args, peak_unpadded_heap_bytes))
        args->peak_unpadded_heap_bytes = (int64_t)m.peak_bytes;
    return PJ_OK;
}

// XLA's names where we have the same number, our own behind a prefix.
PJRT_Error *pj_Executable_GetCostAnalysis(PJRT_Executable_GetCostAnalysis_Args *args) {
    enum { PROPERTIES = 4 };
    PJRT_Executable *e = args->executable;
    pj_lock(e->client);
    PJRT_NamedValue *cost = e->cost;
    pj_unlock(e->client);
    if (!cost) {
        otrn_report report = OTRN_REPORT_INIT;
        otrn_error err = OTRN_ERROR_INIT;
        if (otrn_time(e->exe, NULL, &report, &err))
            return pj_error_from(&err);
        PJRT_NamedValue *made = calloc(PROPERTIES, sizeof *made);
        if (!made)
            return pj_error_nomem();
        pj_named_float(&made[0], "flops", report.flops);
        pj_named_float(&made[1], "bytes accessed", report.hbm_bytes);
        pj_named_float(&made[2], "optimal_seconds", report.total_us * 1e-6);
        pj_named_float(&made[3], "opentrn_cache_hit", otrn_exe_cached(e->exe) ? 1 : 0);
        pj_lock(e->client);
        if (e->cost) { // another thread was faster, and its answer may be in use
            free(made);
            made = e->cost;
        }
        e->cost = cost = made;
        pj_unlock(e->client);
    }
    args->properties = cost;
    args->num_properties = PROPERTIES;
    return PJ_OK;
}
