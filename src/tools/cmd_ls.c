// SPDX-License-Identifier: Apache-2.0
// cmd_ls.c — otrn ls: the devices a program started in this environment would see.
//
// Nothing is there to be found: the options say which machine is modelled. Devices and their memory are what the
// library tells JAX.
#include <string.h>

#include "mach/instance.h"
#include "tools/tools.h"

typedef struct Machine {
    Instance instance; // name NULL: none chosen
    ChipFile chip;
    uint32_t devices, cores; // cores of one device
    uint64_t hbm_bytes;      // of one device
} Machine;

static Machine machine_of(Tool *t) {
    Machine m = {0};
    otrn_env *env = tool_env(t);
    Options o = t->opt;
    if (!instance_apply(t->ctx, t->arena, &o, &m.instance))
        m.instance.name = NULL;
    chipfile_load(t->ctx, t->arena, o.val[OPT_TARGET], o.val[OPT_CHIPS], &m.chip);
    uint32_t asked = (uint32_t)opt_num(&t->opt, OPT_DEVICES);
    m.devices = asked ? asked : otrn_devices(env);
    m.cores = otrn_device_cores(env);
    m.hbm_bytes = otrn_hbm_bytes(env);
    return m;
}

static uint32_t devices_per_chip(const Machine *m) {
    uint32_t n = (uint32_t)m->chip.cores_per_chip / m->cores;
    return n ? n : 1;
}

// "4-7", or "4" when there is one.
static const char *range(Arena *a, uint32_t first, uint32_t count) {
    return count > 1 ? arena_printf(a, "%u-%u", first, first + count - 1) : arena_printf(a, "%u", first);
}

static void print_text(Tool *t, const Machine *m) {
    const Instance *i = &m->instance;
    uint32_t each = devices_per_chip(m), chips = (m->devices + each - 1) / each;
    if (i->name && i->usd_per_hour > 0)
        printf("instance  %s: %u chip%s, %u host%s, %.6g USD/h (%s)\n", i->name, i->chips, i->chips > 1 ? "s" : "", i->hosts, i->hosts > 1 ? "s" : "",
               i->usd_per_hour, instance_basis(t->arena, i));
    else if (i->name)
        printf("instance  %s: %u chip%s, %u host%s, no price is published\n", i->name, i->chips, i->chips > 1 ? "s" : "", i->hosts,
               i->hosts > 1 ? "s" : "");
    else
        printf("instance  none chosen (--instance, OTRN_INSTANCE; `otrn info instances`): one chip\n");
    printf("chip      %s, %.0f cores\n", m->chip.name, m->chip.cores_per_chip);
    printf("devices   %u, each %u core%s (LNC %u) with %.4g GiB of HBM\n\n", m->devices, m->cores, m->cores > 1 ? "s" : "",
           m->cores, (double)m->hbm_bytes / (1 << 30));
    printf("%-5s %-6s %-10s %s\n", "chip", "type", "devices", "cores");
    for (uint32_t c = 0; c < chips; c++) {
        uint32_t first = c * each, count = m->devices - first < each ? m->devices - first : each;
        printf("%-5u %-6s %-10s %s\n", c, m->chip.name, range(t->arena, first, count),
               range(t->arena, first * m->cores, count * m->cores));
    }
}

static void print_json(const Machine *m) {
    const Instance *i = &m->instance;
    printf("{\"release\": \"%s\", \"chip\": \"%s\", \"cores_per_chip\": %.0f, \"lnc\": %u, \"hbm_bytes\": %llu, ", OTRN_RELEASE,
           m->chip.name, m->chip.cores_per_chip, m->cores, (unsigned long long)m->hbm_bytes);
    if (i->name)
        printf("\"instance\": {\"name\": \"%s\", \"chips\": %u, \"hosts\": %u, \"usd_per_hour\": %.6g},\n", i->name, i->chips,
               i->hosts, i->usd_per_hour);
    else
        printf("\"instance\": null,\n");
    printf(" \"devices\": [");
    for (uint32_t d = 0; d < m->devices; d++) {
        printf("%s{\"id\": %u, \"chip\": %u, \"cores\": [%u", d ? ",\n  " : "", d, d / devices_per_chip(m), d * m->cores);
        for (uint32_t c = 1; c < m->cores; c++)
            printf(", %u", d * m->cores + c);
        printf("]}");
    }
    printf("]}\n");
}

int cmd_ls(Tool *t) {
    Machine m = machine_of(t);
    if (opt_on(&t->opt, OPT_JSON))
        print_json(&m);
    else
        print_text(t, &m);
    return 0;
}
