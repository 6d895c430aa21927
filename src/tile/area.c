// SPDX-License-Identifier: Apache-2.0
// area.c — slots of SBUF and who waits for whom.
#include "tile/area.h"

Area area_make(Emit *e, uint32_t at, uint32_t end) {
    assert(at <= end);
    assert(end <= ISA_SBUF_BYTES);
    return (Area){.e = e, .at = at, .end = end};
}

void area_ways(Area *a, Ring *r, uint32_t ways, uint32_t way_bytes) {
    assert(a->count && a->rings[a->count - 1] == r);
    assert(ways * way_bytes <= r->bytes);
    r->ways = ways, r->way_bytes = way_bytes;
    r->haz = ARENA_NEWN(a->e->c->scratch, Haz, r->n * ways);
}

bool area_ring(Area *a, Ring *r, uint32_t n, uint32_t bytes) {
    if ((uint64_t)n * bytes > a->end - a->at)
        return false;
    assert(a->count < AREA_RINGS);
    *r = (Ring){.base = addr_sbuf(0, a->at), .bytes = bytes, .n = n};
    a->at += n * bytes;
    a->rings[a->count++] = r;
    area_ways(a, r, 1, 0);
    return true;
}

// What others still do with the slots comes in, or goes out again.
static void share(const Area *a, bool out) {
    for (int k = 0; k < a->count; k++) {
        const Ring *r = a->rings[k];
        for (uint32_t i = 0; i < r->n; i++)
            for (uint32_t way = 0; way < r->ways && r->bytes; way++)
                emit_area(a->e, &r->haz[i * r->ways + way], addr_poff(r->base) + i * r->bytes + way * r->way_bytes,
                          r->way_bytes ? r->way_bytes : r->bytes, out);
    }
}

void area_open(Area *a) { share(a, false); }
void area_close(Area *a) { share(a, true); }

Ring ring_of_banks(Emit *e, uint32_t first, uint32_t n) {
    assert(first + n <= PSUM_BANKS);
    return (Ring){.base = addr_psum(0, first * PSUM_BANK_BYTES), .bytes = PSUM_BANK_BYTES, .n = n, .ways = 1, .haz = &e->bank_haz[first]};
}
