// SPDX-License-Identifier: Apache-2.0
// shard.c — Shardy's text for meshes and shardings to tables, and back to a shorter text.
#include "spmd/shard.h"

#include <assert.h>
#include <string.h>

#include "coll/groups.h"
#include "coll/shape.h"

typedef struct Text { // a cursor over an attribute's text
    const ShardRead *r;
    const char *all, *at;
} Text;

_Noreturn static void fail(const ShardRead *r, otrn_status code, const char *what, const char *text) {
    Place place = r->op ? hlo_place(r->h, hlo_at(r->h, r->op)->loc) : (Place){.file = r->h->file};
    ctx_fail(r->h->ctx, code, place, "%s: %.200s", what, text);
}

static void skip(Text *t) {
    while (*t->at == ' ')
        t->at++;
}

static bool eat(Text *t, const char *word) {
    skip(t);
    size_t n = strlen(word);
    if (strncmp(t->at, word, n))
        return false;
    t->at += n;
    return true;
}

static void need(Text *t, const char *word) {
    if (!eat(t, word))
        fail(t->r, OTRN_PARSE, "a sharding cannot be read", t->all);
}

static int64_t number(Text *t) {
    skip(t);
    int64_t v = 0;
    if (*t->at < '0' || *t->at > '9')
        fail(t->r, OTRN_PARSE, "a sharding cannot be read", t->all);
    for (; *t->at >= '0' && *t->at <= '9'; t->at++)
        if ((v = v * 10 + (*t->at - '0')) > INT32_MAX)
            fail(t->r, OTRN_PARSE, "a number in a sharding is too large", t->all);
    return v;
}

static const char *quoted(Text *t) {
    need(t, "\"");
    const char *from = t->at;
    while (*t->at && *t->at != '"')
        t->at++;
    const char *s = arena_strndup(t->r->arena, from, (size_t)(t->at - from));
    need(t, "\"");
    return s;
}

#define SHARD_STR(x) #x
#define SHARD_STR2(x) SHARD_STR(x)
#define SHARD_DEVICES_TEXT SHARD_STR2(SHARD_DEVICES_MAX)

static Shards *new_whole(Arena *a, uint32_t rank, uint32_t devices) {
    assert(rank <= OTRN_MAX_RANK && devices && devices <= SHARD_DEVICES_MAX);
    Shards *s = arena_alloc(a, sizeof *s + (rank + 1) * sizeof *s->cut);
    *s = (Shards){.rank = rank, .devices = devices};
    for (uint32_t i = 0; i <= rank; i++)
        s->cut[i] = CUT_WHOLE;
    return s;
}

// --- meshes ------------------------------------------------------------------------------------

#define MESH_AXES_MAX 32

typedef struct Mesh {
    uint32_t naxes;
    const char *names[MESH_AXES_MAX];
    int64_t sizes[MESH_AXES_MAX], strides[MESH_AXES_MAX];
    int64_t size;
    const uint32_t *position; // of each device; NULL: its number
} Mesh;

static const uint32_t *read_positions(Text *t, int64_t size) {
    uint32_t *position = ARENA_NEWN(t->r->arena, uint32_t, t->r->devices);
    memset(position, 0xff, t->r->devices * sizeof *position);
    int64_t n = 0;
    bool plain = true;
    do {
        int64_t device = number(t);
        if (n >= size || device >= t->r->devices)
            fail(t->r, OTRN_UNSUPPORTED, "a mesh of other devices than the program's", t->all);
        if (position[device] != UINT32_MAX)
            fail(t->r, OTRN_VERIFY, "a mesh names a device twice", t->all);
        plain = plain && device == n;
        position[device] = (uint32_t)n++;
    } while (eat(t, ","));
    if (n != size)
        fail(t->r, OTRN_VERIFY, "a mesh names fewer devices than it has", t->all);
    return plain ? NULL : position;
}

static Mesh read_mesh(Text *t) { // behind "<": ["x"=2, "y"=4], device_ids=[…]>
    Mesh m = {.size = 1};
    need(t, "[");
    while (!eat(t, "]")) {
        if (m.naxes == MESH_AXES_MAX)
            fail(t->r, OTRN_CAPACITY, "a mesh has more than 32 axes", t->all);
        m.names[m.naxes] = quoted(t);
        need(t, "=");
        int64_t size = m.sizes[m.naxes++] = number(t);
        if (!size || size * m.size > SHARD_DEVICES_MAX)
            fail(t->r, OTRN_CAPACITY, "a mesh has no devices, or more than " SHARD_DEVICES_TEXT, t->all);
        m.size *= size;
        eat(t, ",");
    }
    int64_t stride = m.size;
    for (uint32_t i = 0; i < m.naxes; i++)
        m.strides[i] = stride /= m.sizes[i];
    if (m.naxes && m.size != 1 && m.size != t->r->devices && t->r->devices > 1)
        fail(t->r, OTRN_UNSUPPORTED, "a mesh of another size than the program's devices", t->all);
    if (eat(t, ",")) {
        need(t, "device_ids=[");
        if (m.size == t->r->devices) {
            m.position = read_positions(t, m.size);
        } else { // one device is meant: nothing is cut
            do
                number(t);
            while (eat(t, ","));
        }
        need(t, "]");
    }
    need(t, ">");
    return m;
}

static Mesh mesh_of(Text *t) { // "@name" or "mesh<…>"
    if (eat(t, "mesh<"))
        return read_mesh(t);
    need(t, "@");
    const char *name;
    if (*t->at == '"') {
        name = quoted(t);
    } else {
        size_t n = strcspn(t->at, ", >");
        name = arena_strndup(t->r->arena, t->at, n);
        t->at += n;
    }
    const Hlo *h = t->r->h;
    const HloNamed *meshes = hlo_named_find(h->extra, h->nextra, "sdy.meshes");
    const HloNamed *found = meshes && meshes->value.kind == HA_DICT
                                ? hlo_named_find(meshes->value.dict, meshes->value.n, name)
                                : NULL;
    if (!found || found->value.kind != HA_OPAQUE)
        fail(t->r, OTRN_VERIFY, "there is no such mesh", name);
    Text text = {t->r, found->value.s, found->value.s};
    need(&text, "#sdy.mesh<");
    return read_mesh(&text);
}

// --- shardings ---------------------------------------------------------------------------------

static bool counts(const ShardRead *r, const char *axis) {
    for (uint32_t i = 0; r->only && i < r->only->n; i++)
        if (!strcmp(r->only->names[i], axis))
            return true;
    return !r->only;
}

// "x" or "x":(2)4, the part of 4 behind 2 of axis x: cuts the dimension further.
static void read_axis(Text *t, const Mesh *m, Cut *cut) {
    const char *name = quoted(t);
    uint32_t axis = 0;
    while (axis < m->naxes && strcmp(m->names[axis], name))
        axis++;
    if (axis == m->naxes)
        fail(t->r, OTRN_VERIFY, "a sharding names an axis its mesh lacks", t->all);
    int64_t size = m->sizes[axis], behind = 1;
    if (eat(t, ":")) {
        need(t, "(");
        int64_t before = number(t);
        need(t, ")");
        int64_t sub = number(t);
        if (!before || !sub || before > size || sub > size || size % (before * sub))
            fail(t->r, OTRN_VERIFY, "a part of an axis that does not divide it", t->all);
        behind = size / (before * sub);
        size = sub;
    }
    if (!cut || size == 1 || !counts(t->r, name) || m->size != t->r->devices)
        return; // a mesh of one device, or a program of one: nothing is cut
    if (cut->parts * size > SHARD_DEVICES_MAX)
        fail(t->r, OTRN_VERIFY, "a sharding uses an axis twice", t->all);
    Digit *digit = ARENA_NEW(t->r->arena, Digit);
    *digit = (Digit){.stride = (uint32_t)(m->strides[axis] * behind), .count = (uint32_t)size, .position = m->position};
    *cut = shard_cut_both(t->r->arena, *cut, (Cut){.parts = size, .digits = digit, .n = 1}, t->r->devices);
}

// True when more axes may come.
static bool read_axes(Text *t, const Mesh *m, Cut *cut) {
    bool open = false;
    while (!eat(t, "}")) {
        if (eat(t, "?"))
            open = true;
        else
            read_axis(t, m, cut);
        eat(t, ",");
    }
    return open;
}

static const Shards *read_sharding(Text *t, uint32_t rank) { // behind "<"
    Shards *s = new_whole(t->r->arena, rank, t->r->devices);
    Mesh m = mesh_of(t);
    need(t, ",");
    need(t, "[");
    uint32_t dim = 0;
    while (!eat(t, "]")) {
        if (dim == rank)
            fail(t->r, OTRN_VERIFY, "a sharding has more dimensions than its tensor", t->all);
        need(t, "{");
        if (read_axes(t, &m, &s->cut[dim]))
            s->open |= 1u << dim;
        if (eat(t, "p"))
            number(t);
        dim++;
        eat(t, ",");
    }
    if (dim != rank)
        fail(t->r, OTRN_VERIFY, "a sharding has fewer dimensions than its tensor", t->all);
    while (eat(t, ",")) {
        bool replicated = eat(t, "replicated={");
        if (!replicated) {
            need(t, "unreduced=");
            s->combine = eat(t, "max") ? SHARD_MAX : eat(t, "min") ? SHARD_MIN : SHARD_ADD;
            need(t, "{");
        }
        read_axes(t, &m, replicated ? NULL : &s->cut[rank]);
    }
    need(t, ">");
    return s;
}

const Shards *shard_parse(const ShardRead *r, const char *text, uint32_t rank) {
    Text t = {r, text, text};
    need(&t, "#sdy.sharding<");
    return read_sharding(&t, rank);
}

const Shards **shard_parse_list(const ShardRead *r, const char *text, uint32_t n,
                                const uint32_t *ranks) {
    Text t = {r, text, text};
    const Shards **out = ARENA_NEWN(r->arena, const Shards *, n + 1);
    need(&t, "#sdy.sharding_per_value<");
    need(&t, "[");
    for (uint32_t i = 0; i < n; i++) {
        if (i)
            need(&t, ",");
        need(&t, "<");
        out[i] = read_sharding(&t, ranks[i]);
    }
    need(&t, "]");
    need(&t, ">");
    return out;
}

AxisSet shard_parse_axes(const ShardRead *r, const char *text) {
    Text t = {r, text, text};
    VEC(const char *) names = {0};
    if (!eat(&t, "#sdy<manual_axes")) // as Shardy writes it
        need(&t, "#sdy.manual_axes<");
    need(&t, "{");
    while (!eat(&t, "}")) {
        VEC_PUSH(r->arena, &names, quoted(&t));
        eat(&t, ",");
    }
    return (AxisSet){names.n, names.at};
}

// --- tables ------------------------------------------------------------------------------------

const Shards *shard_whole(Arena *a, uint32_t rank, uint32_t devices) { return new_whole(a, rank, devices); }

bool shard_is_whole(const Shards *s) {
    for (uint32_t i = 0; i <= s->rank; i++)
        if (s->cut[i].parts > 1)
            return false;
    return true;
}

bool shard_has_terms(const Shards *s) { return s->cut[s->rank].parts > 1; }

bool shard_same(const Shards *a, const Shards *b) {
    if (a->rank != b->rank || a->devices != b->devices || a->combine != b->combine)
        return false;
    for (uint32_t i = 0; i <= a->rank; i++)
        if (!shard_cut_same(shard_cut(a, i), shard_cut(b, i), a->devices))
            return false;
    return true;
}

// A number for what the device has, the last dimension fastest; dimension `without` counts as 0.
static uint64_t part_of(const Shards *s, uint32_t device, uint32_t without) {
    uint64_t at = 0;
    for (uint32_t i = 0; i <= s->rank; i++)
        at = at * (uint64_t)s->cut[i].parts +
             (i == without ? 0 : shard_index(s, i, device));
    return at;
}

// Devices by what they have (part_of), those of one slot in ascending order: first of each slot, then next of each device,
// UINT32_MAX behind the last. False when there are more slots than devices.
typedef struct Chains {
    uint32_t *first, *next;
} Chains;

static bool chains_make(const Shards *s, Arena *a, Chains *out) {
    uint64_t slots = 1;
    for (uint32_t i = 0; i <= s->rank; i++)
        if ((slots *= (uint64_t)s->cut[i].parts) > s->devices)
            return false;
    out->first = ARENA_NEWN(a, uint32_t, slots);
    out->next = ARENA_NEWN(a, uint32_t, s->devices);
    memset(out->first, 0xff, slots * sizeof *out->first);
    for (uint32_t d = s->devices; d-- > 0;) {
        uint64_t slot = part_of(s, d, UINT32_MAX);
        assert(slot < slots);
        out->next[d] = out->first[slot];
        out->first[slot] = d;
    }
    return true;
}

static uint32_t chains_take(Chains *c, uint64_t slot) {
    uint32_t d = c->first[slot];
    if (d != UINT32_MAX)
        c->first[slot] = c->next[d];
    return d;
}

// A list; of more devices than a run can have, by their shape.
static void put_devices(const int64_t *ids, uint32_t n, Buf *out) {
    IdShape shape;
    if (n <= COMM_RANKS_MAX || !shape_of(ids, n, &shape)) {
        for (uint32_t i = 0; i < n; i++)
            buf_printf(out, "%s%lld", i ? "," : "|", (long long)ids[i]);
        return;
    }
    buf_printf(out, "|%lld", (long long)shape.first);
    for (uint32_t d = 0; d < shape.dims; d++)
        buf_printf(out, "%s%ux%lld", d ? "," : ";", shape.dim[d].count, (long long)shape.dim[d].stride);
}

const char *shard_text(const Shards *s, Arena *a) {
    if (shard_is_whole(s))
        return "";
    Buf out = {.arena = a};
    uint64_t all = 1, terms = (uint64_t)s->cut[s->rank].parts;
    for (uint32_t i = 0; i < s->rank; i++) {
        buf_printf(&out, "%s%lld", i ? "," : "", (long long)s->cut[i].parts);
        all *= (uint64_t)s->cut[i].parts;
    }
    if (terms > 1)
        buf_printf(&out, "+%llu", (unsigned long long)terms);
    Chains chains;
    if (!chains_make(s, a, &chains))
        return buf_cstr(&out);
    int64_t *ids = ARENA_NEWN(a, int64_t, s->devices);
    uint32_t n = 0;
    for (uint64_t i = 0; i < s->devices; i++) {
        uint32_t d = chains_take(&chains, i / (s->devices / all) * terms + i % terms);
        if (d != UINT32_MAX)
            ids[n++] = d;
    }
    put_devices(ids, n, &out);
    return buf_cstr(&out);
}

const int64_t *shard_groups(const ShardRead *r, const Shards *s, uint32_t dim) {
    assert(dim <= s->rank && s->devices == r->devices);
    uint32_t n = s->devices, size = (uint32_t)s->cut[dim].parts, made = 0;
    int64_t *groups = ARENA_NEWN(r->arena, int64_t, n);
    uint64_t step = 1; // between slots that differ by one part of the dimension
    for (uint32_t i = dim + 1; i <= s->rank; i++)
        step *= (uint64_t)s->cut[i].parts;
    Chains chains;
    bool even = chains_make(s, r->arena, &chains);
    for (uint32_t first = 0; even && first < n; first++) {
        if (shard_index(s, dim, first))
            continue;
        uint64_t rest = part_of(s, first, dim);
        for (uint32_t k = 0; even && k < size; k++) { // the next device that has part k
            uint32_t d = chains_take(&chains, rest + k * step);
            even = d != UINT32_MAX;
            if (even)
                groups[made++] = d;
        }
    }
    if (made != n)
        fail(r, OTRN_UNSUPPORTED, "devices hold unequal shares of a tensor", shard_text(s, r->arena));
    return groups;
}

const uint32_t *shard_order(const ShardRead *r, const Shards *s) {
    assert(s->devices == r->devices);
    uint32_t *order = ARENA_NEWN(r->arena, uint32_t, s->devices), n = 0;
    Chains chains;
    uint64_t slots = 1;
    for (uint32_t i = 0; i <= s->rank; i++)
        slots *= (uint64_t)s->cut[i].parts;
    bool even = chains_make(s, r->arena, &chains);
    for (uint64_t slot = 0; even && slot < slots; slot++)
        for (uint32_t d; (d = chains_take(&chains, slot)) != UINT32_MAX;)
            order[n++] = d;
    if (n != s->devices)
        fail(r, OTRN_UNSUPPORTED, "devices hold unequal shares of a tensor", shard_text(s, r->arena));
    return order;
}

const Shards *shard_make(Arena *a, uint32_t rank, uint32_t devices, const Cut *cuts, Cut terms, ShardCombine combine) {
    Shards *s = new_whole(a, rank, devices);
    for (uint32_t i = 0; i <= rank; i++) {
        Cut c = i < rank ? cuts[i] : terms;
        assert(c.parts <= 1 || c.n);
        if (c.parts > 1)
            s->cut[i] = c;
    }
    s->combine = shard_has_terms(s) ? combine : SHARD_ADD;
    return s;
}

const Shards *shard_without_terms(const Shards *s, Arena *a) {
    Cut cuts[OTRN_MAX_RANK];
    for (uint32_t i = 0; i < s->rank; i++)
        cuts[i] = shard_cut(s, i);
    return shard_make(a, s->rank, s->devices, cuts, CUT_WHOLE, SHARD_ADD);
}
