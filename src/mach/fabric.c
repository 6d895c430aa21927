// SPDX-License-Identifier: Apache-2.0
// fabric.c — collectives stage by stage; see fabric.h. Every number comes from the chip file and the table of instances.
//
//   inside a chip     start + passes x latency, bytes over a bandwidth by the number of ranks
//   inside a machine  start + passes x (latency + steps or hops), bytes over what an algorithm reaches, or over the group's share
//                     of the chip's links where that is less
//   joined machines   the same once more with the bytes that are left, over links between chips of equal place
//   network           its hops, and a rank's share of the machine's adapters
// A ring of n ranks passes a chip once, whatever part of them the chip has: so it is groups that share a chip's links, not ranks. The
// links a group has are those between its chips: all of a chip's where it has the whole torus, half of them where it is a row.
#include "mach/fabric.h"

#include <math.h>

const char *const link_place_names[LINK_COUNT] = {"chip", "machine", "ultraserver", "network"};
const char *const fabric_way_names[FABRIC_WAYS] = {"chip", "mesh", "halving", "ring", "hierarchical mesh", "hierarchical halving",
                                                   "hierarchical ring"};

#define RING_MAX 64 // longer groups are rings beside each other; nothing longer is published

static double doublings(double n) {
    double steps = 0;
    for (double reached = 1; reached < n; reached *= 2)
        steps++;
    return steps;
}

// --- the torus -----------------------------------------------------------------------------------

typedef struct Torus {
    uint32_t side[2]; // chips along each; 0: a switch, any two chips are neighbours
} Torus;

static Torus torus_of(const ChipFile *c, uint32_t chips) {
    if (!(c->torus_x > 0))
        return (Torus){{0, 0}};
    uint32_t x = (uint32_t)fmin(c->torus_x, chips);
    return (Torus){{x, (chips + x - 1) / x}};
}

static uint32_t side_links(uint32_t side) { return side > 2 ? 2 : side == 2; } // of a chip, along one side
static double all_links(Torus t) { return fmax(side_links(t.side[0]) + side_links(t.side[1]), 1); }

static bool has_chip(const KPlaces *p, uint32_t chip) { return p->chips[chip / 64] >> chip % 64 & 1; }

// A group's chips along the line through one of them: how many, and links from one to the next.
typedef struct Line {
    uint32_t chips, apart;
} Line;

static Line line_through(const KPlaces *p, Torus t, uint32_t chip, int axis) {
    uint32_t side = t.side[axis], step = axis ? t.side[0] : 1, begin = axis ? chip % step : chip - chip % t.side[0], last = 0;
    Line l = {.apart = side};
    for (uint32_t i = 0; i < side && begin + i * step < KPLACE_CHIPS; i++) {
        if (!has_chip(p, begin + i * step))
            continue;
        l.apart = l.chips && i - last < l.apart ? i - last : l.apart;
        l.chips++, last = i;
    }
    return l;
}

// Links that a ring along the line has of each chip. One that goes all around has both ways; where its chips are apart, those
// between have a ring of their own over the same links.
static double line_links(Line l, uint32_t side) {
    if (l.chips < 2)
        return 0;
    return l.chips * l.apart >= side ? (double)side_links(side) / l.apart : 1;
}

static uint32_t first_chip(const KPlaces *p) {
    for (uint32_t i = 0; i < KPLACE_CHIPS; i++)
        if (has_chip(p, i))
            return i;
    return 0;
}

// The share of a chip's links that a group's rings go over.
static double torus_share(const KPlaces *p, Torus t) {
    double links = 0;
    if (!t.side[0])
        return 1;
    for (int axis = 0; axis < 2; axis++)
        links += line_links(line_through(p, t, first_chip(p), axis), t.side[axis]);
    return fmin(fmax(links, 1) / all_links(t), 1);
}

// Links between two chips of a group, on average.
static double torus_distance(const KPlaces *p, Torus t) {
    double sum = 0, pairs = 0;
    uint32_t from = first_chip(p);
    for (uint32_t i = from + 1; i < KPLACE_CHIPS; i++) {
        if (!has_chip(p, i))
            continue;
        pairs++;
        for (int axis = 0; axis < 2; axis++) {
            uint32_t side = t.side[axis], unit = axis ? t.side[0] : 1;
            uint32_t d = side ? (i / unit + side - from / unit % side) % side : 0;
            sum += t.side[0] ? fmin(d, side - d) : 0.5;
        }
    }
    return pairs > 0 ? fmax(sum / pairs, 1) : 1;
}

// --- stages --------------------------------------------------------------------------------------

// What a collective moves, and over what.
typedef struct Route {
    double ranks;            // of a group on one machine
    double moves, reduces;   // bytes a rank sends over the links; those combined with what is there
    double bandwidth;        // of the links, for each rank of a ring through the group
    double direct;           // … for one that goes to each chip once: of a chip's ranks it takes all on the way
    double joined, machines; // bytes of a rank between joined machines, and how many of these
    double joined_bandwidth;
    double hops, far;        // over the network: one after the other, and bytes of a rank
    double all_far;          // bytes of all ranks of a machine
} Route;

static bool is_pairs(const Kern *k) { return k->op == HLO_COLLECTIVE_PERMUTE; }
static bool is_sum(const Kern *k) { return k->op == HLO_ALL_REDUCE || k->op == HLO_COLLECTIVE_REDUCE; }

// Each rank of an all-to-all has bytes of its own for each other, and a pair's go from chip to chip one way: they share links by
// ranks and by the links they pass, where a ring passes a chip once for all of its ranks there.
static double links_bandwidth(const ChipFile *c, const Kern *k, const KPlaces *p, Torus t) {
    double chip = c->link_ratio * c->link_total / 2;
    if (!p->ranks) // nobody is named: everybody
        return chip;
    double groups = fmax(p->at[0].leaving, 1), here = fmax(p->ranks / p->at[0].blocks, 1);
    if (is_pairs(k))
        return chip / all_links(t) / (groups * torus_distance(p, t));
    if (k->op != HLO_ALL_TO_ALL)
        return chip * torus_share(p, t) / groups;
    double away = p->ranks > 1 ? (p->ranks - here) / (p->ranks - 1) : 1; // of what a rank sends leaves its chip
    return chip * torus_share(p, t) / (fmax(p->at[0].crowd, 1) * torus_distance(p, t) * fmax(away, 1e-3));
}

// Of n ranks on c chips a ring carries 1 - 1/n of the bytes over a chip's links; what goes between chips and then to their ranks, 1 - 1/c.
static double direct_bandwidth(double ring, const Kern *k, const KPlaces *p) {
    double hosts = p->at[1].blocks, n = p->ranks / hosts, c = p->at[0].blocks / hosts;
    return c > 1 && n > c && k->op != HLO_ALL_TO_ALL ? ring * (1 - 1 / n) / (1 - 1 / c) : ring;
}

// A group over several machines, stage by stage as documented (neuron-runtime/about/collectives.rst): an all-gather goes over the
// network first and then over the links, a reduce-scatter the other way round, an all-reduce is both with the network between.
// Every rank has its share of the network; hops are those of recursive doubling.
static void route_stages(const Kern *k, const KWork *w, const KPlaces *p, Route *r) {
    double hosts = p->at[1].blocks, far = p->at[2].blocks, near = fmax(hosts / far, 1), ranks = p->ranks;
    double local = fmax(floor(ranks / hosts), 1), all = fmax(w->read_bytes, w->write_bytes), times = is_sum(k) ? 2 : 1;
    double here = 1 - 1 / local;
    r->ranks = local, r->machines = near;
    r->moves = k->op != HLO_REDUCE_SCATTER ? here * all : 0;
    r->reduces = is_sum(k) || k->op == HLO_REDUCE_SCATTER ? here * all : 0;
    r->joined = times * (1 - 1 / near) * all / local;
    r->far = times * (1 - 1 / far) * all / (local * near);
    r->hops = times * doublings(far);
    if (k->op == HLO_ALL_TO_ALL) {
        r->moves = (local - 1) / ranks * all;
        r->joined = (near - 1) * local / ranks * all;
        r->far = (ranks - local * near) / ranks * all;
        r->hops = far > 1;
    } else if (is_pairs(k)) {
        r->moves = 0;
        r->joined = far > 1 ? 0 : all;
        r->far = far > 1 ? all : 0;
        r->hops = far > 1;
    }
    r->all_far = r->far * fmax(p->at[1].crowd, local);
}

// The ways documented for it (neuron-runtime/explore/intranode-collective-comm.rst), each a latency by the number of ranks and
// a bandwidth: a mesh, where everybody writes to everybody at once; recursive halving and doubling, in log2 ranks steps; rings, a
// hop for each rank. The quickest for its size is taken. Reduction and gathering are passes of their own, the start is one.
static Wire wire(const Route *r, FabricWay way, double latency, double bytes, double own, double network) {
    double links = bytes / fmin(own, way == FABRIC_RING ? r->bandwidth : r->direct);
    double joined = r->joined > 0 ? r->joined / fmin(own, r->joined_bandwidth) : 0;
    LinkPlace reach = r->hops > 0 ? LINK_NETWORK : r->machines > 1 ? LINK_JOINED : LINK_MACHINE;
    return (Wire){latency + links + joined + network,
                  {[LINK_MACHINE] = links, [LINK_JOINED] = joined, [LINK_NETWORK] = network}, way, reach};
}
static Wire quicker(Wire a, Wire b) { return b.ns < a.ns ? b : a; }

static double passes_of(const Route *r) { return (r->reduces > 0) + (r->moves > 0 || !(r->reduces > 0)); }

static Wire quickest(const ChipFile *c, const Route *r) {
    double passes = passes_of(r), bytes = r->moves + c->link_reduce * r->reduces, n = fmin(fmax(r->ranks, 2), RING_MAX);
    double start = c->collective_start_ns + passes * c->collective_ns + r->hops * c->network_hop_ns;
    double far = r->far > 0 ? r->far / (c->network_bw * c->network_ratio) : 0;
    double steps = doublings(n) + doublings(r->machines), hops = n - 1 + fmax(r->machines - 1, 0);
    Wire mesh = wire(r, FABRIC_MESH, start, bytes, c->link_mesh_bw, r->all_far / c->network_mesh_bw);
    Wire halving = wire(r, FABRIC_HALVING, start + passes * c->collective_step_ns * steps, bytes, c->link_step_bw,
                        r->all_far / c->network_step_bw);
    Wire ring = wire(r, FABRIC_RING, start + passes * c->collective_hop_ns * hops, bytes, c->link_bw, far);
    return quicker(mesh, quicker(halving, ring));
}

// What everybody gets goes over all paths of a chip at once; of an all-to-all each rank has its own.
static Wire chip_price(const ChipFile *c, const Kern *k, const Route *r) {
    double n = k->op == HLO_ALL_TO_ALL ? 2 : fmin(fmax(r->ranks, 2), RING_MAX);
    double bytes = (r->moves + c->link_reduce * r->reduces) / (c->link_chip_bw * n / 2);
    return (Wire){c->collective_start_ns + passes_of(r) * c->collective_chip_ns + bytes, {[LINK_CHIP] = bytes}, FABRIC_CHIP, LINK_CHIP};
}

Wire fabric_price(const ChipFile *c, const Kern *k, const KWork *w) {
    uint32_t chip = (uint32_t)c->cores_per_chip, host = c->host_cores > 0 ? (uint32_t)c->host_cores : UINT32_MAX;
    uint32_t torus = host < UINT32_MAX ? (host + chip - 1) / chip : (uint32_t)fmax(c->torus_x * c->torus_y, 1);
    uint32_t joined = host < UINT32_MAX && c->joined > 1 ? host * (uint32_t)c->joined : host;
    const uint32_t per[KPLACE_MAX] = {chip, host, joined};
    KPlaces p;
    kern_places(k, per, torus, &p);
    Route flat = {.ranks = p.ranks, .moves = w->link_bytes - w->reduce_bytes, .reduces = w->reduce_bytes, .machines = 1,
                  .bandwidth = links_bandwidth(c, k, &p, torus_of(c, torus))};
    flat.direct = direct_bandwidth(flat.bandwidth, k, &p);
    if (p.at[0].blocks == 1 && p.ranks > 1)
        return chip_price(c, k, &flat);
    if (p.at[1].blocks == 1)
        return quickest(c, &flat);
    Route staged = flat;
    staged.joined_bandwidth = c->link_ratio * c->joined_total / 2 / fmax(p.at[0].crowd, 1);
    route_stages(k, w, &p, &staged);
    Wire far = quickest(c, &staged), near = quickest(c, &flat); // more machines are not quicker than one would be
    far.ns = fmax(far.ns, near.ns);
    far.way = staged.ranks > 1 ? far.way + (FABRIC_MESH_STAGED - FABRIC_MESH) : far.way;
    return far;
}
