// SPDX-License-Identifier: Apache-2.0
// prog.c — scalar programs over blocks of lanes.
//
// Every register is an array of up to LANE_BLOCK elements of its type. Steps are resolved to lanes
// once per call and shared by all threads; registers belong to a slot (one task at a time uses a
// slot). A loop's end goes back while any lane is still in it. Two shifts of one value and their union, a rotation, become one step.
//
//   shared:  ProgStep per step
//   slot:    pointer per register | storage of the registers that are no inputs
#include "chip/gpsimd/gp.h"

typedef struct ProgStep {
    Lane lane;
    uint16_t dst, src[3];
    uint16_t back; // the end of a loop: this many steps, while any lane of src[0] is set
    bool skip;     // part of a rotation
} ProgStep;

static size_t reg_bytes(const KProg *p, int r) {
    return gp_align(LANE_BLOCK * dtype_bytes(p->dtypes[r]));
}

size_t prog_shared_bytes(const KProg *p) { return gp_align(p->nsteps * sizeof(ProgStep)); }

size_t prog_slot_bytes(const KProg *p) {
    size_t bytes = gp_align(p->nregs * sizeof(void *));
    for (int r = p->ninputs; r < p->nregs; r++)
        bytes += reg_bytes(p, r);
    return bytes;
}

static bool step_lane(Lane *lane, const GpLevel *level, const KProg *p, const KStep *s) {
    int nin = s->op < HLO_OPCODE_COUNT ? kern_step_operands(s->op) : 0;
    uint8_t in[3];
    if (nin < 1 || nin > 3 || s->dst >= p->nregs)
        return false;
    for (int i = 0; i < nin; i++) {
        if (s->src[i] >= p->nregs)
            return false;
        in[i] = p->dtypes[s->src[i]];
    }
    return lane_find(lane, level, s->op, p->dtypes[s->dst], in, nin, s->attr);
}

static bool loop_ok(const KProg *p, int at) {
    const KStep *s = &p->steps[at];
    return s->attr[0] >= 1 && s->attr[0] <= at && s->src[0] < p->nregs && p->dtypes[s->src[0]] == DT_I1;
}

bool prog_check(const KProg *p) {
    if (p->ninputs + p->ncaptures > p->nregs)
        return false;
    for (int r = 0; r < p->nregs; r++)
        if (lane_class(p->dtypes[r]) == LC_NONE)
            return false;
    for (int i = 0; i < p->nconsts; i++)
        if (p->const_regs[i] >= p->nregs || p->const_regs[i] < p->ninputs)
            return false;
    for (int i = 0; i < p->nouts; i++)
        if (p->outs[i] >= p->nregs)
            return false;
    for (int i = 0; i < p->nsteps; i++) {
        Lane lane;
        if (p->steps[i].op == HLO_WHILE) {
            if (!loop_ok(p, i))
                return false;
            continue;
        }
        if (p->steps[i].dst < p->ninputs || !step_lane(&lane, &gp_level_portable, p, &p->steps[i]))
            return false;
    }
    return true;
}

// --- rotations ---------------------------------------------------------------------------------

#define TURN_REACH 32 // steps looked at to either side

static bool reg_is_splat(const KProg *p, int r) { // a constant or a capture
    bool splat = r >= p->ninputs && r < p->ninputs + p->ncaptures;
    for (int i = 0; i < p->nconsts; i++)
        splat |= p->const_regs[i] == r;
    for (int i = 0; i < p->nsteps && splat; i++)
        splat = p->steps[i].dst != r;
    return splat;
}

static bool step_reads(const KStep *s, int r) {
    for (int i = 0; i < kern_step_operands(s->op); i++)
        if (s->src[i] == r)
            return true;
    return false;
}

// The shift `op` by a splat whose value register r holds before step `at`, when only `at` reads it;
// -1: none.
static int turn_part(const KProg *p, int r, int at, uint16_t op) {
    int def = at - 1;
    while (def >= 0 && at - def <= TURN_REACH && p->steps[def].dst != r)
        def--;
    if (def < 0 || at - def > TURN_REACH || p->steps[def].op != op || r < p->ninputs ||
        !reg_is_splat(p, p->steps[def].src[1]))
        return -1;
    for (int i = def + 1; i < p->nsteps; i++) {
        if (i != at && step_reads(&p->steps[i], r))
            return -1;
        if (p->steps[i].dst == r && i >= at)
            return def;
        if (i - at > TURN_REACH)
            return -1;
    }
    for (int i = 0; i < p->nouts; i++)
        if (p->outs[i] == r)
            return -1;
    return def;
}

// Step `at` unites two shifts of x: it reads x itself, which must still be there.
static void turn_find(const KProg *p, const GpLevel *level, ProgStep *steps, int at) {
    const KStep *s = &p->steps[at];
    if (s->op != HLO_OR || p->dtypes[s->dst] != DT_UI32 || s->src[0] == s->src[1])
        return;
    for (int side = 0; side < 2; side++) {
        int l = turn_part(p, s->src[side], at, HLO_SHIFT_LEFT);
        int r = turn_part(p, s->src[!side], at, HLO_SHIFT_RIGHT_LOGICAL);
        if (l < 0 || r < 0 || p->steps[l].src[0] != p->steps[r].src[0])
            continue;
        int x = p->steps[l].src[0], first = l < r ? l : r, second = l < r ? r : l;
        bool there = p->steps[first].dst != x; // the second then shifts x, not the first's result
        for (int i = first + 1; i < at; i++)
            there &= i == second || p->steps[i].dst != x;
        if (!there)
            continue;
        steps[l].skip = steps[r].skip = true;
        steps[at].lane = (Lane){.fn = level->turn, .nin = 3};
        steps[at].src[0] = (uint16_t)x;
        steps[at].src[1] = p->steps[l].src[1];
        steps[at].src[2] = p->steps[r].src[1];
        return;
    }
}

void *prog_resolve(const KProg *p, const GpLevel *level, void *shared) {
    ProgStep *steps = shared;
    for (int i = 0; i < p->nsteps; i++) {
        const KStep *s = &p->steps[i];
        steps[i] = (ProgStep){.dst = s->dst, .src = {s->src[0], s->src[1], s->src[2]}};
        if (s->op == HLO_WHILE)
            steps[i].back = (uint16_t)s->attr[0];
        else
            step_lane(&steps[i].lane, level, p, s);
    }
    for (int i = 0; i < p->nsteps && !kern_prog_loops(p); i++)
        turn_find(p, level, steps, i);
    return (char *)shared + prog_shared_bytes(p);
}

void prog_init(Prog *g, const KProg *p, const void *shared, void *slot,
               const void *const *captures) {
    *g = (Prog){.p = p, .steps = shared, .at = slot};
    char *at = (char *)slot + gp_align(p->nregs * sizeof(void *));
    for (int r = 0; r < p->nregs; r++) {
        g->at[r] = NULL;
        if (r >= p->ninputs) {
            g->at[r] = at;
            at += reg_bytes(p, r);
        }
    }
    for (int i = 0; i < p->ncaptures; i++) {
        int r = p->ninputs + i;
        gp_fill(g->at[r], captures[i], dtype_bytes(p->dtypes[r]), LANE_BLOCK);
    }
    for (int i = 0; i < p->nconsts; i++) {
        int r = p->const_regs[i];
        gp_fill(g->at[r], p->consts[i], dtype_bytes(p->dtypes[r]), LANE_BLOCK);
    }
}

void prog_run(const Prog *g, size_t n) {
    const ProgStep *end = g->steps + g->p->nsteps;
    for (const ProgStep *s = g->steps; s < end; s++) {
        if (s->skip)
            continue;
        if (s->back) {
            if (memchr(g->at[s->src[0]], 1, n) && !pulse_stops(pulse_here))
                s -= s->back + 1;
            continue;
        }
        const void *src[3] = {0};
        for (int j = 0; j < s->lane.nin; j++)
            src[j] = g->at[s->src[j]];
        lane_run(&s->lane, g->at[s->dst], src, n);
    }
}

int prog_first_write(const KProg *p, int r) {
    bool given = r < p->ninputs + p->ncaptures;
    for (int i = 0; i < p->nconsts; i++)
        given |= p->const_regs[i] == r;
    for (int i = 0; i < p->nsteps && !given; i++)
        if (p->steps[i].dst == r)
            return i;
    return -1;
}

bool prog_reads_after(const KProg *p, const void *shared, int r, int step) {
    const ProgStep *steps = shared;
    for (int s = step + 1; s < p->nsteps; s++)
        for (int k = 0; k < steps[s].lane.nin && !steps[s].skip; k++)
            if (steps[s].src[k] == r)
                return true;
    for (int i = 0; i < p->nouts; i++)
        if (p->outs[i] == r)
            return true;
    return false;
}

bool prog_red_op(const KProg *p, RedOp *op) {
    if (p->nsteps != 1 || p->nouts != 1 || p->ninputs != 2 || p->outs[0] != p->steps[0].dst)
        return false;
    const KStep *s = &p->steps[0];
    if (!(s->src[0] == 0 && s->src[1] == 1) && !(s->src[0] == 1 && s->src[1] == 0))
        return false;
    switch (s->op) {
    case HLO_ADD: *op = RED_ADD; return true;
    case HLO_MULTIPLY: *op = RED_MUL; return true;
    case HLO_MAXIMUM: *op = RED_MAX; return true;
    case HLO_MINIMUM: *op = RED_MIN; return true;
    case HLO_AND: *op = RED_AND; return true;
    case HLO_OR: *op = RED_OR; return true;
    case HLO_XOR: *op = RED_XOR; return true;
    default: return false;
    }
}
