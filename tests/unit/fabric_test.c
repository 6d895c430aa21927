// SPDX-License-Identifier: Apache-2.0
// fabric_test.c — collectives by where their devices are: chip, torus, UltraServer, network; and what groups beside each other take.
#include <math.h>
#include <stdio.h>

#include "mach/fabric.h"
#include "mach/instance.h"
#include "unit.h"

static Ctx ctx;
static Arena arena;

// The chip in an instance, devices of two cores where it has these (as the clock takes a pair for one rank).
static ChipFile machine(const char *chip, const char *instance) {
    ChipFile c;
    Instance *rows;
    uint32_t n = instances_load(&ctx, &arena, NULL, &rows);
    chipfile_load(&ctx, &arena, chip, NULL, &c);
    for (uint32_t i = 0; i < n; i++)
        if (!strcmp(rows[i].name, instance))
            instance_network(&rows[i], &c);
    if (c.cores_per_logical > 1) {
        c.link_bw *= 2, c.link_step_bw *= 2, c.link_mesh_bw *= 2, c.link_chip_bw *= 2, c.network_bw *= 2;
        c.host_cores /= 2, c.cores_per_chip /= 2;
    }
    return c;
}

// Groups of `ranks` devices `stride` apart, beside each other until all of `devices` are in one.
typedef struct Mesh {
    uint32_t ranks, stride, devices;
} Mesh;

static bool backwards; // the first group, then the others from the last on: the same groups, no grid

static Wire priced(HloOpcode op, Mesh m, int64_t bytes, const ChipFile *chip) {
    int64_t *ids = ARENA_NEWN(&arena, int64_t, m.devices);
    for (uint32_t i = 0; i < m.devices; i++) {
        uint32_t group = i / m.ranks;
        group = backwards && group ? m.devices / m.ranks - group : group;
        ids[i] = group / m.stride * (m.ranks * m.stride) + group % m.stride + i % m.ranks * m.stride;
    }
    HloAttr *attrs = ARENA_NEWN(&arena, HloAttr, hlo_op_rows[op].nattrs + 1u);
    for (int i = 0; i < hlo_op_rows[op].nattrs; i++)
        if (hlo_op_rows[op].attrs[i] == AK_REPLICA_GROUPS || hlo_op_rows[op].attrs[i] == AK_SOURCE_TARGET_PAIRS)
            attrs[i] = (HloAttr){.kind = HA_INTS2, .n = m.devices, .cols = m.ranks, .ints = ids};
    KTensor whole = {.dtype = DT_BF16, .elems = bytes / 2}, part = {.dtype = DT_BF16, .elems = bytes / 2 / m.ranks};
    Kern k = {.op = (uint16_t)op, .nattrs = hlo_op_rows[op].nattrs, .attrs = attrs, .nin = 1, .nout = 1,
              .in = op == HLO_ALL_GATHER ? &part : &whole, .out = op == HLO_REDUCE_SCATTER ? &part : &whole};
    KWork w = kern_work(&k);
    return fabric_price(chip, &k, &w);
}

#define GB (1L << 30)

static double bus(Mesh m, const ChipFile *chip) { // GB/s a rank of a long all-gather sends, behind its latency
    return GB * (1 - 1.0 / m.ranks) / priced(HLO_ALL_GATHER, m, GB, chip).at[LINK_MACHINE];
}

static const char *about(double have, double want) {
    static char why[100];
    snprintf(why, sizeof why, "%.1f, not %.1f", have, want);
    return fabs(have / want - 1) < 0.03 ? NULL : why;
}

static void test_torus(void) {
    ChipFile c = machine("trn2", "trn2.48xlarge");
    double all = c.link_ratio * c.link_total / 2; // one way out of a chip
    result("the whole torus has all links", about(bus((Mesh){64, 1, 64}, &c), all));
    result("a row has half of them", about(bus((Mesh){16, 1, 64}, &c), all / 2));
    result("so has a column, for each of four groups", about(bus((Mesh){4, 16, 64}, &c), all / 2 / 4));
    result("two chips have one of four, for what the other has not", about(bus((Mesh){8, 1, 64}, &c), all / 4 * (7 / 8.0) / (1 / 2.0)));
    result("a rank of each chip: four groups share them", about(bus((Mesh){16, 4, 64}, &c), all / 4));
    result("one such group alone has all", about(bus((Mesh){16, 4, 16}, &c), all));
    Mesh four = {4, 1, 64}, one = {4, 1, 4};
    result("groups inside chips do not meet", priced(HLO_ALL_REDUCE, four, GB, &c).ns == priced(HLO_ALL_REDUCE, one, GB, &c).ns ? NULL : "they do");
    double gather = priced(HLO_ALL_GATHER, one, GB, &c).at[LINK_CHIP], each = priced(HLO_ALL_TO_ALL, one, GB, &c).at[LINK_CHIP];
    result("inside a chip an all-to-all has half of what a gather of four has (54 and 125 GB/s published)", about(each / gather, 2));
    ChipFile sw = machine("trn3", "trn3-gen1-ultraserver");
    result("a switch has no rows", bus((Mesh){16, 1, 64}, &sw) > 0.99 * bus((Mesh){64, 1, 64}, &sw) ? NULL : "it has");
    ChipFile half = machine("trn1", "trn1.32xlarge");
    result("half of trn1's torus (55.4 GiB/s published)", about(512 * 1024 * 1024 / priced(HLO_ALL_REDUCE, (Mesh){16, 1, 16}, 512 << 20, &half).ns, 55.4));
}

// By hand: groups over the same links take what their bytes take together, groups over links of their own what one takes.
static void test_contention(void) {
    ChipFile c = machine("trn2", "trn2.48xlarge");
    double all = c.link_ratio * c.link_total / 2, share = 1 - 1 / 16.0; // one way out of a chip; of a gather what a rank sends on
    for (uint32_t groups = 1; groups <= 4; groups *= 2) { // a rank of each of 16 chips, so many of each
        double have = priced(HLO_ALL_GATHER, (Mesh){16, 4, 16 * groups}, GB, &c).at[LINK_MACHINE];
        result(arena_printf(&arena, "%u groups over the same links", groups), about(have, groups * GB * share / all));
    }
    double one = priced(HLO_ALL_GATHER, (Mesh){16, 1, 16}, GB, &c).ns, four = priced(HLO_ALL_GATHER, (Mesh){16, 1, 64}, GB, &c).ns;
    result("a row of the torus beside three others, over links of their own", about(four, one));
    double network = c.network_ratio * c.network_bw * c.host_cores; // what rings reach of a machine's adapters
    Wire full = priced(HLO_ALL_GATHER, (Mesh){2, 64, 128}, GB, &c), some = priced(HLO_ALL_GATHER, (Mesh){2, 64, 32}, GB, &c);
    result("64 groups over the network: half a gather each, over all adapters", about(full.at[LINK_NETWORK], 64 * GB / 2.0 / network));
    result("a quarter of them: each has adapters of its own", about(some.at[LINK_NETWORK], full.at[LINK_NETWORK]));
}

// Whatever the groups, those that leave a chip together send no more than its links take.
static void test_capacity(void) {
    const HloOpcode ops[] = {HLO_ALL_GATHER, HLO_ALL_TO_ALL};
    const char *names[][2] = {{"trn1", "trn1.32xlarge"}, {"trn2", "trn2.48xlarge"}, {"trn2", "trn2u.48xlarge"}, {"inf2", "inf2.48xlarge"}};
    const char *why = NULL;
    for (int i = 0; i < 4; i++) {
        ChipFile c = machine(names[i][0], names[i][1]);
        uint32_t chip = (uint32_t)c.cores_per_chip, devices = (uint32_t)c.host_cores;
        for (uint32_t n = 2; n <= devices; n *= 2)
            for (uint32_t s = 1; n * s <= devices && devices % (n * s) == 0; s *= 2)
                for (int o = 0; o < 2; o++) {
                    if (n * s <= chip) // inside chips
                        continue;
                    double rate = (double)GB / priced(ops[o], (Mesh){n, s, devices}, GB, &c).ns;
                    double here = s >= chip ? 1 : fmin(n, chip / s), chips = n / here;
                    double out = rate * (1 - 1 / chips) * (o ? chip : chip / here); // groups, or ranks, of a chip
                    if (out > c.link_ratio * c.link_total / 2 * 1.001)
                        why = arena_printf(&arena, "%s: %u devices, %u apart: %.0f GB/s leave a chip", names[i][1], n, s, out);
                }
    }
    result("no chip sends more than its links take", why);
}

static void test_far(void) {
    ChipFile plain = machine("trn2", "trn2.48xlarge"), ultra = machine("trn2", "trn2u.48xlarge");
    Mesh tp = {64, 4, 256}; // a rank of each chip of four machines
    Wire efa = priced(HLO_ALL_REDUCE, tp, 64 << 20, &plain), links = priced(HLO_ALL_REDUCE, tp, 64 << 20, &ultra);
    result("tp 64 over an UltraServer goes over its links", links.reach == LINK_JOINED && efa.reach == LINK_NETWORK ? NULL : "it does not");
    result("and is quicker than over the network", links.ns < 0.5 * efa.ns ? NULL : arena_printf(&arena, "%.0f against %.0f ns", links.ns, efa.ns));
    result("it goes in stages", links.way >= FABRIC_MESH_STAGED ? NULL : fabric_way_names[links.way]);
    Mesh more = {128, 4, 512};
    result("eight of its machines need the network", priced(HLO_ALL_REDUCE, more, 64 << 20, &ultra).reach == LINK_NETWORK ? NULL : "they do not");
    const char *why = NULL;
    for (int64_t bytes = 1024; bytes <= GB && !why; bytes *= 4) // one rank of each of two machines, alone and with all others
        if (priced(HLO_ALL_REDUCE, (Mesh){2, 64, 128}, bytes, &plain).ns < priced(HLO_ALL_REDUCE, (Mesh){2, 64, 2}, bytes, &plain).ns)
            why = arena_printf(&arena, "%lld bytes: all are quicker than one", (long long)bytes);
    result("groups over the network share a machine's", why);
    double small = priced(HLO_ALL_REDUCE, (Mesh){64, 2, 128}, 1024, &plain).ns;
    result("also the small ones", small > priced(HLO_ALL_REDUCE, (Mesh){64, 2, 64}, 1024, &plain).ns + 100 ? NULL : "they do not");
}

// Groups that are a grid are counted, others looked at: the same price.
static void test_shape(void) {
    ChipFile c = machine("trn2", "trn2u.48xlarge");
    const char *why = NULL;
    for (uint32_t n = 2; n <= 512; n *= 2)
        for (uint32_t s = 1; n * s <= 1024; s *= 2)
            for (uint32_t odd = 1; odd <= 3; odd += 2) {
                Mesh m = {n * odd, s, n * odd * s * (1024 / (n * s))};
                double grid = priced(HLO_ALL_REDUCE, m, 1 << 20, &c).ns;
                backwards = true;
                double list = priced(HLO_ALL_REDUCE, m, 1 << 20, &c).ns;
                backwards = false;
                if (grid != list)
                    why = arena_printf(&arena, "%u devices, %u apart: %.0f and %.0f ns", m.ranks, s, grid, list);
            }
    result("a grid costs what its groups do", why);
}

static void test_ways(void) {
    ChipFile c = machine("trn2", "trn2.48xlarge");
    Mesh all = {64, 1, 64};
    FabricWay a = priced(HLO_ALL_REDUCE, all, 65536, &c).way, b = priced(HLO_ALL_REDUCE, all, 8 << 20, &c).way, d = priced(HLO_ALL_REDUCE, all, GB, &c).way;
    result("small ones go over a mesh, then by halving, then around", a == FABRIC_MESH && b == FABRIC_HALVING && d == FABRIC_RING ? NULL : "not so");
    result("inside a chip there is one way", priced(HLO_ALL_REDUCE, (Mesh){4, 1, 64}, GB, &c).way == FABRIC_CHIP ? NULL : "not so");
}

int main(void) {
    jmp_buf jb;
    arena_init(&arena, &ctx);
    if (CTX_TRY(&ctx, jb)) {
        test_torus();
        test_contention();
    test_capacity();
        test_far();
        test_ways();
        test_shape();
    } else {
        result("fabric", ctx.err.text);
    }
    arena_fini(&arena);
    return failures != 0;
}
