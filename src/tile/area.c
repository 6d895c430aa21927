// SPDX-License-Identifier: Apache-2.0
// area.c — slots of SBUF and who waits for whom.
#include "tile/area.h"

#include <string.h>

bool room_take(Room *r, uint32_t bytes, uint32_t *at) {
    assert(r->at[0] <= r->end[0]);
    assert(r->at[1] <= r->end[1]);
    for (int i = 0; i < 2; i++)
        if (r->at[i] + bytes <= r->end[i]) {
            *at = r->at[i];
            r->at[i] += bytes;
            return true;
        }
    return false;
}

Area area_make(Emit *e, uint32_t at, uint32_t end) {
    assert(at <= end);
    assert(end <= ISA_SBUF_BYTES);
    return (Area){.e = e, .room = {{at}, {end}}};
}

void area_ways(Area *a, Ring *r, uint32_t ways, uint32_t way_bytes) {
    assert(a->count);
    assert(a->rings[a->count - 1] == r);
    assert(ways * way_bytes <= r->bytes);
    r->ways = ways, r->way_bytes = way_bytes;
    r->haz = ARENA_NEWN(a->e->c->scratch, Haz, r->n * ways);
}

void area_ring_named(Area *a, Ring *r, uint32_t n, uint32_t bytes, const char *name) {
    assert(a->count < AREA_RINGS);
    *r = (Ring){.name = name, .slot = ARENA_NEWN(a->e->c->scratch, uint64_t, n + 1), .bytes = bytes, .n = n};
    for (uint32_t i = 0, at; i < n; i++) {
        bool fits = room_take(&a->room, bytes, &at);
        assert(fits);
        (void)fits;
        r->slot[i] = addr_sbuf(0, at);
        assert(at + bytes <= ISA_SBUF_BYTES);
    }
    a->rings[a->count++] = r;
    area_ways(a, r, 1, 0);
}

void area_banks_named(Area *a, Ring *r, uint32_t first, uint32_t n, uint32_t each, Haz *haz, const char *name) {
    assert(a->count < AREA_RINGS);
    assert(first + n * each <= (uint32_t)PSUM_BANKS);
    *r = (Ring){.name = name, .slot = ARENA_NEWN(a->e->c->scratch, uint64_t, n + 1), .bytes = each * PSUM_BANK_BYTES, .n = n, .ways = 1, .haz = haz};
    for (uint32_t i = 0; i < n; i++)
        r->slot[i] = addr_psum(0, (first + i * each) * PSUM_BANK_BYTES);
    if (!haz)
        r->haz = ARENA_NEWN(a->e->c->scratch, Haz, n);
    a->rings[a->count++] = r;
}

static void share_banks(const Area *a, const Ring *r, uint32_t slot, bool out) {
    for (uint32_t i = 0; i < r->bytes / PSUM_BANK_BYTES; i++) {
        Haz *bank = &a->e->bank_haz[addr_poff(r->slot[slot]) / PSUM_BANK_BYTES + i], *own = &r->haz[slot];
        emit_merge(a->e, out ? bank : own, out ? own : bank);
    }
}

// What others still do with the slots comes in, or goes out again.
static void share(const Area *a, bool out) {
    for (int k = 0; k < a->count; k++) {
        const Ring *r = a->rings[k];
        for (uint32_t i = 0; i < r->n && addr_space(r->slot[i]) == SPACE_PSUM; i++)
            share_banks(a, r, i, out);
        if (r->n && addr_space(r->slot[0]) == SPACE_PSUM)
            continue;
        for (uint32_t i = 0; i < r->n; i++)
            for (uint32_t way = 0; way < r->ways && r->bytes; way++)
                emit_area(a->e, &r->haz[i * r->ways + way], addr_poff(r->slot[i]) + way * r->way_bytes,
                          r->way_bytes ? r->way_bytes : r->bytes, out);
    }
}

static void print_places(const Area *a, Buf *out) {
    for (int k = 0; k < a->count; k++) {
        const Ring *r = a->rings[k];
        const char *name = strrchr(r->name, '>'); // &d->lhs.slots: lhs.slots
        if (!r->n)
            continue;
        buf_printf(out, "  ring %s %u x %u bytes:", name ? name + 1 : r->name + 1, r->n, r->bytes);
        for (uint32_t i = 0; i < r->n; i++)
            buf_printf(out, " %s[%u]", addr_space(r->slot[i]) == SPACE_PSUM ? "psum" : "sbuf", addr_poff(r->slot[i]));
        buf_printf(out, "\n");
    }
}

void area_open(Area *a) {
    assert(a->count <= AREA_RINGS);
    if (a->e->c->placed && !a->e->probe)
        print_places(a, a->e->c->placed);
    share(a, false);
}

void area_close(Area *a) { share(a, true); }

Ring ring_of_banks(Emit *e, uint32_t first, uint32_t n) {
    assert(first + n <= PSUM_BANKS);
    Ring r = {.slot = ARENA_NEWN(e->c->scratch, uint64_t, n + 1), .bytes = PSUM_BANK_BYTES, .n = n, .ways = 1, .haz = &e->bank_haz[first]};
    for (uint32_t i = 0; i < n; i++)
        r.slot[i] = addr_psum(0, (first + i) * PSUM_BANK_BYTES);
    return r;
}

Mem bank_at(Emit *e, uint32_t bank) {
    assert(bank < PSUM_BANKS);
    return (Mem){.addr = addr_psum(0, bank * PSUM_BANK_BYTES), .haz = &e->bank_haz[bank]};
}
