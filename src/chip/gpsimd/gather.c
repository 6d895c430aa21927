// SPDX-License-Identifier: Apache-2.0
// gather.c — gather: one slice of the operand per index vector.
//
// The result's batch axes walk the start indices; its offset axes walk a slice. Both walks are
// fixed lists of axes, so that a slice is a strided copy whose place alone changes.
#include "chip/gpsimd/gp.h"

#include "chip/gpsimd/index.h"

static bool has(const int64_t *list, size_t n, int64_t v) {
    for (size_t i = 0; i < n; i++)
        if (list[i] == v)
            return true;
    return false;
}

bool index_init(IndexPlan *p, const Kern *k, const KTensor *operand, const KTensor *indices,
                const KTensor *windows, const IndexKeys *keys) {
    size_t nwindow, ninserted, nbatch, nbatch2, nmap;
    const int64_t *window = gp_axes(k, keys->window, windows->rank, &nwindow);
    const int64_t *inserted = gp_axes(k, keys->gone, operand->rank, &ninserted);
    const int64_t *batching = gp_axes(k, keys->batching, operand->rank, &nbatch);
    const int64_t *batching2 = gp_axes(k, keys->index_batching, indices->rank, &nbatch2);
    const int64_t *map = gp_axes(k, keys->map, operand->rank, &nmap);
    int64_t vec = gp_int(k, AK_INDEX_VECTOR_DIM, -1);
    if (!window || !inserted || !batching || !batching2 || !map || nbatch != nbatch2 || vec < 0 ||
        vec > indices->rank || !gp_is_index(indices->dtype))
        return false;
    if (nmap != (size_t)(vec < indices->rank ? indices->dims[vec] : 1))
        return false;
    *p = (IndexPlan){.operand = operand, .indices = indices, .nmap = (int)nmap, .batches = 1};
    int64_t os[OTRN_MAX_RANK], is[OTRN_MAX_RANK], ws[OTRN_MAX_RANK];
    gp_strides(operand, os);
    gp_strides(indices, is);
    gp_strides(windows, ws);
    p->vec_stride = vec < indices->rank ? is[vec] : 0;
    for (size_t i = 0; i < nmap; i++) {
        if (has(batching, nbatch, map[i]))
            return false;
        p->map[i] = (int)map[i];
    }
    // Batch axes: those of the indices without the vector, against those of the windows that are no
    // window axes, in order.
    int at = 0;
    for (int d = 0; d < indices->rank; d++) {
        if (d == vec)
            continue;
        while (at < windows->rank && has(window, nwindow, at))
            at++;
        if (at >= windows->rank || windows->dims[at] != indices->dims[d])
            return false;
        p->batch[p->nbatch] = (IndexBatch){indices->dims[d], is[d], ws[at], 0};
        for (size_t i = 0; i < nbatch; i++)
            if (batching2[i] == d) {
                if (operand->dims[batching[i]] != indices->dims[d])
                    return false;
                p->batch[p->nbatch].operand = os[batching[i]];
            }
        p->batches *= indices->dims[d];
        p->nbatch++;
        at++;
    }
    while (at < windows->rank && has(window, nwindow, at))
        at++;
    if (at < windows->rank || has(batching2, nbatch2, vec))
        return false;
    // Window axes: operand axes that are neither inserted nor batching, in order.
    for (int d = 0; d < operand->rank; d++) {
        if (has(inserted, ninserted, d) || has(batching, nbatch, d)) {
            if (has(inserted, ninserted, d) && has(batching, nbatch, d))
                return false;
            p->kept[d] = -1;
            continue;
        }
        if ((size_t)p->nwindow >= nwindow)
            return false;
        int64_t w = window[p->nwindow];
        if (p->nwindow && w <= window[p->nwindow - 1])
            return false;
        p->kept[d] = p->nwindow;
        p->window[p->nwindow++] = (IndexWindow){d, windows->dims[w], ws[w], os[d]};
    }
    for (int d = 0; d < operand->rank; d++)
        p->is_batching[d] = has(batching, nbatch, d);
    return (size_t)p->nwindow == nwindow;
}

void index_seek(const IndexPlan *p, IndexAt *at, int64_t batch) {
    *at = (IndexAt){0};
    for (int i = p->nbatch - 1; i >= 0; i--) {
        at->at[i] = batch % p->batch[i].n;
        batch /= p->batch[i].n;
        at->indices += at->at[i] * p->batch[i].indices;
        at->windows += at->at[i] * p->batch[i].windows;
        at->operand += at->at[i] * p->batch[i].operand;
    }
}

void index_next(const IndexPlan *p, IndexAt *at) {
    for (int i = p->nbatch - 1; i >= 0; i--) {
        const IndexBatch *b = &p->batch[i];
        at->indices += b->indices, at->windows += b->windows, at->operand += b->operand;
        if (++at->at[i] < b->n)
            return;
        at->at[i] = 0;
        at->indices -= b->n * b->indices;
        at->windows -= b->n * b->windows;
        at->operand -= b->n * b->operand;
    }
}

// --- gather ------------------------------------------------------------------------------------

static bool gather_plan(const Kern *k, IndexPlan *p, const int64_t **sizes) {
    if (k->nin != 2 || k->nout != 1 || k->in[0].dtype != k->out[0].dtype ||
        !index_init(p, k, &k->in[0], &k->in[1], &k->out[0], &index_of_gather))
        return false;
    *sizes = gp_ints(k, AK_SLICE_SIZES, k->in[0].rank);
    return *sizes != NULL;
}

bool gp_gather_check(const Kern *k) {
    IndexPlan p;
    const int64_t *sizes = NULL;
    if (!gather_plan(k, &p, &sizes))
        return false;
    for (int d = 0; d < k->in[0].rank; d++) {
        if (sizes[d] < 0 || sizes[d] > k->in[0].dims[d])
            return false;
        if (p.kept[d] >= 0 ? p.window[p.kept[d]].n != sizes[d] : sizes[d] > 1)
            return false;
        if (p.kept[d] < 0 && sizes[d] == 0 &&
            k->out[0].elems) // nothing to take, yet something wanted
            return false;
    }
    return true;
}

typedef struct GatherJob {
    const GpCall *c;
    IndexPlan p;
    Copy slice;
    int64_t room[OTRN_MAX_RANK], stride[OTRN_MAX_RANK]; // per index component
    size_t bytes, run; // run: elements of a contiguous slice, else 0
} GatherJob;

static int64_t gather_start(const GatherJob *j, const IndexAt *at) {
    int64_t from = at->operand;
    for (int i = 0; i < j->p.nmap; i++) {
        int64_t s = gp_index_at(j->p.indices->dtype, j->c->in[1],
                                (size_t)(at->indices + i * j->p.vec_stride));
        s = s < 0 ? 0 : s > j->room[i] ? j->room[i] : s;
        from += s * j->stride[i];
    }
    return from;
}

static void gather_chunk(void *arg, size_t begin, size_t end) {
    const GatherJob *j = arg;
    const char *src = j->c->in[0];
    char *dst = j->c->out[0];
    IndexAt at;
    index_seek(&j->p, &at, (int64_t)begin);
    for (size_t b = begin; b < end; b++, index_next(&j->p, &at)) {
        const char *s = src + gather_start(j, &at) * (int64_t)j->bytes;
        char *d = dst + at.windows * (int64_t)j->bytes;
        if (j->run == 1 && j->bytes == 4)
            memcpy(d, s, 4);
        else if (j->run)
            memcpy(d, s, j->run * j->bytes);
        else
            copy_serial(&j->slice, d, s);
    }
}

otrn_status gp_gather_run(const GpCall *c) {
    const KTensor *in = &c->k->in[0];
    const int64_t *sizes = NULL;
    GatherJob j = {.c = c, .bytes = dtype_bytes(in->dtype)};
    if (!c->k->out[0].elems)
        return OTRN_OK;
    gather_plan(c->k, &j.p, &sizes);
    int64_t strides[OTRN_MAX_RANK], elems = 1;
    gp_strides(in, strides);
    for (int i = 0; i < j.p.nmap; i++) {
        int d = j.p.map[i];
        j.room[i] = in->dims[d] - sizes[d];
        j.stride[i] = strides[d];
    }
    CopyAxis axes[OTRN_MAX_RANK];
    for (int i = 0; i < j.p.nwindow; i++) {
        const IndexWindow *w = &j.p.window[i];
        axes[i] = (CopyAxis){w->n, w->windows, w->operand};
        elems *= w->n;
    }
    copy_init(&j.slice, j.bytes, j.p.nwindow, axes);
    const CopyAxis *a = j.slice.axis;
    if (elems == 1 || (j.slice.rank == 2 && a[1].n == 1 && a[0].dst == 1 && a[0].src == 1))
        j.run = (size_t)elems;
    size_t grain = GP_GRAIN_BYTES / 4 / ((size_t)elems * j.bytes + 16);
    pool_run(c->pool, (size_t)j.p.batches, grain ? grain : 1, gather_chunk, &j);
    return OTRN_OK;
}
