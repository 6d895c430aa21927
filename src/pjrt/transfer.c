// SPDX-License-Identifier: Apache-2.0
// transfer.c — arrays between the host's layout and ours.
//
// Ours is dense, its axes in the buffer's order, with sub-byte types one per byte.
// The host writes a small signed integer into its byte with clear top bits, we with copies of the
// sign. A host array may have any strides: reversed axes are negative, broadcast ones 0.
// Neighbouring axes that are contiguous in both arrays are joined first, so that the common cases
// become one memcpy.
#include <stdlib.h>
#include <string.h>

#include "pjrt/pjrt.h"

typedef struct Axis {
    int64_t size, dst, src; // strides in bytes
} Axis;

// Fills axes from the outermost in, without axes of size 1, joined where possible; returns the
// count.
static size_t axes_join(Axis *axes, const int64_t *dst_strides, const int64_t *src_strides,
                        const int64_t *dims, size_t rank) {
    size_t n = 0;
    for (size_t i = 0; i < rank; i++) {
        if (dims[i] == 1)
            continue;
        Axis a = {dims[i], dst_strides[i], src_strides[i]};
        Axis *outer = n ? &axes[n - 1] : NULL;
        if (outer && outer->dst == a.dst * a.size && outer->src == a.src * a.size) {
            outer->size *= a.size;
            outer->dst = a.dst;
            outer->src = a.src;
        } else {
            axes[n++] = a;
        }
    }
    return n;
}

#define COPY_LOOP(type)                                                                            \
    for (int64_t i = 0; i < a.size; i++)                                                           \
        *(type *)(dst + i * a.dst) = *(const type *)(src + i * a.src);                             \
    break

typedef struct Pair {
    uint64_t at[2];
} __attribute__((packed, may_alias)) Pair;
typedef uint16_t __attribute__((aligned(1), may_alias)) U16;
typedef uint32_t __attribute__((aligned(1), may_alias)) U32;
typedef uint64_t __attribute__((aligned(1), may_alias)) U64;

static void axis_copy(char *dst, const char *src, Axis a, size_t elem) {
    if (a.dst == (int64_t)elem && a.src == (int64_t)elem) {
        memcpy(dst, src, (size_t)a.size * elem);
        return;
    }
    switch (elem) {
    case 1: COPY_LOOP(uint8_t);
    case 2: COPY_LOOP(U16);
    case 4: COPY_LOOP(U32);
    case 8: COPY_LOOP(U64);
    case 16: COPY_LOOP(Pair);
    }
}

// A copy between two strided arrays of one shape; strides in bytes, any sign, 0 allowed in src.
static void pj_strided_copy(void *dst, const int64_t *dst_strides, const void *src,
                     const int64_t *src_strides, const int64_t *dims, size_t rank,
                     size_t elem_bytes) {
    Axis axes[PJ_MAX_RANK + 1];
    int64_t index[PJ_MAX_RANK] = {0};
    size_t n = axes_join(axes, dst_strides, src_strides, dims, rank);
    if (!n)
        axes[n++] = (Axis){1, (int64_t)elem_bytes, (int64_t)elem_bytes};
    char *d = dst;
    const char *s = src;
    for (;;) {
        axis_copy(d, s, axes[n - 1], elem_bytes);
        size_t i = n - 1;
        for (;;) { // step to the next row: the odometer of the outer axes
            if (i == 0)
                return;
            i--;
            d += axes[i].dst;
            s += axes[i].src;
            if (++index[i] < axes[i].size)
                break;
            d -= axes[i].dst * axes[i].size;
            s -= axes[i].src * axes[i].size;
            index[i] = 0;
        }
    }
}

static void strides_dense(int64_t *strides, const int64_t *dims, size_t rank, size_t elem_bytes, LayoutOrder order) {
    int64_t stride = (int64_t)elem_bytes;
    for (size_t i = rank; i-- > 0;) {
        uint32_t axis = layout_axis(order, (uint32_t)i);
        strides[axis] = stride;
        stride *= dims[axis];
    }
}

// ---- upload

PJRT_Error *pj_device_layout_check(const PJRT_Buffer_MemoryLayout *layout) {
    if (!layout || layout->type != PJRT_Buffer_MemoryLayout_Type_Tiled)
        return PJ_OK;
    bool row_major = layout->tiled.num_tiles == 0;
    size_t n = layout->tiled.minor_to_major_size;
    for (size_t i = 0; i < n; i++)
        row_major &= layout->tiled.minor_to_major[i] == (int64_t)(n - 1 - i);
    return row_major ? PJ_OK
                     : pj_error(PJRT_Error_Code_UNIMPLEMENTED,
                                "opentrn keeps arrays row-major; another device layout was asked "
                                "for");
}

PJRT_Error *pj_Client_BufferFromHostBuffer(PJRT_Client_BufferFromHostBuffer_Args *args) {
    PJRT_Memory *m = args->memory   ? args->memory
                     : args->device ? pj_device_memory(args->device)
                                    : args->client->memory_pointers[0];
    if (args->num_byte_strides && args->num_byte_strides != args->num_dims)
        return pj_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "opentrn: %zu strides for an array of rank %zu", args->num_byte_strides,
                        args->num_dims);
    PJRT_Error *e = pj_device_layout_check(args->device_layout);
    PJRT_Buffer *b;
    if (!e)
        e = pj_buffer_alloc(m, args->type, args->dims, args->num_dims, &b);
    if (e)
        return e;
    int dtype = pj_dtype(args->type);
    size_t elem = dtype_bytes(dtype);
    if (b->bytes && args->num_byte_strides) {
        int64_t dense[PJ_MAX_RANK];
        strides_dense(dense, args->dims, args->num_dims, elem, 0);
        pj_strided_copy(b->storage->data, dense, args->data, args->byte_strides, args->dims,
                        args->num_dims, elem);
    } else if (b->bytes) {
        memcpy(b->storage->data, args->data, b->bytes);
    }
    if (dtype_row(dtype)->bits < 8)
        dtype_canonicalise(dtype, b->storage->data, b->bytes);
    args->buffer = b;
    args->done_with_host_buffer = pj_event_ready(); // copied, whatever the semantics allowed
    return PJ_OK;
}

// ---- download

static PJRT_Error *host_strides(const PJRT_Buffer *b, const PJRT_Buffer_MemoryLayout *layout,
                                size_t elem, int64_t *strides) {
    if (!layout) {
        strides_dense(strides, b->dims, b->rank, elem, 0);
        return PJ_OK;
    }
    bool tiled = layout->type == PJRT_Buffer_MemoryLayout_Type_Tiled;
    size_t n = tiled ? layout->tiled.minor_to_major_size : layout->strides.num_byte_strides;
    if (n != b->rank)
        return pj_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "opentrn: a host layout of rank %zu for an array of rank %u", n, b->rank);
    if (tiled && layout->tiled.num_tiles)
        return pj_error(PJRT_Error_Code_UNIMPLEMENTED,
                        "opentrn cannot write tiled layouts on the host");
    uint64_t seen = 0;
    int64_t stride = (int64_t)elem;
    for (size_t i = 0; i < n; i++) {
        if (!tiled) {
            strides[i] = layout->strides.byte_strides[i];
            continue;
        }
        int64_t axis = layout->tiled.minor_to_major[i];
        if (axis < 0 || axis >= (int64_t)n || seen >> axis & 1)
            return pj_error(PJRT_Error_Code_INVALID_ARGUMENT,
                            "opentrn: the host layout is not a permutation of the axes");
        seen |= (uint64_t)1 << axis;
        strides[axis] = stride;
        stride *= b->dims[axis];
    }
    return PJ_OK;
}

// The bytes as the host expects them: those of the storage, or a copy that the caller frees.
static PJRT_Error *host_bytes(PJRT_Buffer_Type type, size_t n, Storage *s, void **bytes,
                              void **copy) {
    const DtypeRow *row = dtype_row(pj_dtype(type));
    *bytes = s->data;
    *copy = NULL;
    if (row->cls != DC_SINT || row->bits >= 8)
        return PJ_OK;
    uint8_t *masked = malloc(n + 1);
    if (!masked)
        return pj_error_nomem();
    for (size_t i = 0; i < n; i++)
        masked[i] = ((const uint8_t *)s->data)[i] & ((1u << row->bits) - 1);
    *bytes = *copy = masked;
    return PJ_OK;
}

typedef struct Download {
    Storage *from;
    PJRT_Buffer_Type type;
    uint32_t rank;
    LayoutOrder order;
    size_t bytes, offset; // offset: of a raw copy
    bool raw;             // bytes as they are
    void *dst;
    PJRT_Event *done;
    int64_t dims[PJ_MAX_RANK], strides[PJ_MAX_RANK];
} Download;

static PJRT_Error *download_now(const Download *d) {
    int64_t dense[PJ_MAX_RANK];
    size_t elem = dtype_bytes(pj_dtype(d->type));
    if (!d->bytes)
        return PJ_OK;
    if (d->raw) {
        memcpy(d->dst, (char *)d->from->data + d->offset, d->bytes);
        return PJ_OK;
    }
    void *bytes, *copy;
    PJRT_Error *e = host_bytes(d->type, d->bytes, d->from, &bytes, &copy);
    if (e)
        return e;
    strides_dense(dense, d->dims, d->rank, elem, d->order);
    pj_strided_copy(d->dst, d->strides, bytes, dense, d->dims, d->rank, elem);
    free(copy);
    return PJ_OK;
}

static void download_later(PJRT_Error *error, void *arg) {
    Download *d = arg;
    pj_event_set(d->done, error ? error : download_now(d));
    pj_event_drop(d->done);
    pj_storage_release(d->from);
    free(d);
}

// Takes over the count of d->from. *event is the caller's.
static PJRT_Error *download(const Download *d, PJRT_Event **event) {
    if (pj_storage_is_ready(d->from)) {
        PJRT_Error *e = d->from->ready ? pj_event_error(d->from->ready) : PJ_OK;
        if (!e)
            e = download_now(d);
        pj_storage_release(d->from);
        *event = pj_event_ready();
        return e;
    }
    Download *later = malloc(sizeof *later);
    PJRT_Event *done = later ? pj_event_make() : NULL;
    if (!done) {
        free(later);
        pj_storage_release(d->from);
        return pj_error_nomem();
    }
    *later = *d;
    later->done = *event = done;
    pj_event_hold(done);
    PJRT_Error *e = pj_event_then(d->from->ready, download_later, later);
    if (e)
        download_later(e, later);
    return PJ_OK;
}

PJRT_Error *pj_Buffer_ToHostBuffer(PJRT_Buffer_ToHostBuffer_Args *args) {
    PJRT_Buffer *b = args->src;
    Download d = {.type = b->type, .rank = b->rank, .order = b->order, .bytes = b->bytes, .dst = args->dst};
    PJRT_Error *e = host_strides(b, args->host_layout, dtype_bytes(pj_dtype(b->type)), d.strides);
    if (e)
        return e;
    if (!args->dst) {
        args->dst_size = b->bytes;
        args->event = pj_event_ready();
        return PJ_OK;
    }
    if (args->dst_size < b->bytes)
        return pj_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "opentrn: %zu bytes do not hold an array of %zu bytes", args->dst_size,
                        b->bytes);
    if (b->rank)
        memcpy(d.dims, b->dims, b->rank * sizeof *b->dims);
    d.from = pj_buffer_hold(b);
    return d.from ? download(&d, &args->event) : pj_buffer_gone("copied to the host");
}

// Takes the bytes as they are.
static PJRT_Error *raw_init(Download *d, PJRT_Buffer *b, int64_t offset, int64_t size) {
    if (offset < 0 || size < 0 || offset > (int64_t)b->bytes || size > (int64_t)b->bytes - offset)
        return pj_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "opentrn: %lld bytes from offset %lld lie outside an array of %zu bytes", (long long)size,
                        (long long)offset, b->bytes);
    *d = (Download){.from = pj_buffer_hold(b), .type = b->type, .raw = true, .bytes = (size_t)size,
                    .offset = (size_t)offset};
    return d->from ? PJ_OK : pj_buffer_gone("copied to the host");
}

PJRT_Error *pj_Buffer_CopyRawToHost(PJRT_Buffer_CopyRawToHost_Args *args) {
    Download d;
    PJRT_Error *e = raw_init(&d, args->buffer, args->offset, args->transfer_size);
    if (e)
        return e;
    d.dst = args->dst;
    return download(&d, &args->event);
}

// The caller says where the bytes shall go, or that there is no place for them. Ends the promise.
static void raw_place(PJRT_Buffer_CopyRawToHostFuture_Callback_Args *args) {
    Download *d = args->callback_data;
    PJRT_Error *e = PJ_OK;
    if (args->error_code)
        e = pj_error(args->error_code, "%.*s", (int)args->error_message_size, args->error_message);
    d->dst = args->dst;
    if (e || !d->from->ready)
        download_later(e, d);
    else if ((e = pj_event_then(d->from->ready, download_later, d)))
        download_later(e, d);
}

PJRT_Error *pj_Buffer_CopyRawToHostFuture(PJRT_Buffer_CopyRawToHostFuture_Args *args) {
    Download *d = malloc(sizeof *d);
    PJRT_Event *done = d ? pj_event_make() : NULL;
    PJRT_Error *e = done ? raw_init(d, args->buffer, args->offset, args->transfer_size) : pj_error_nomem();
    if (e) {
        pj_event_drop(done);
        free(d);
        return e;
    }
    d->done = args->event = done;
    pj_event_hold(done);
    args->callback_data = d;
    args->future_ready_callback = raw_place;
    return PJ_OK;
}
