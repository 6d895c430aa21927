// SPDX-License-Identifier: Apache-2.0
// artifact_regs.c — loops found, and what values registers can have.
//
// Going down the code a register has a range or is not known. A counter of a loop with immediate
// bounds has that loop's range inside it; arithmetic on known ranges gives ranges. Whatever a loop
// writes is not known at its begin (it may come from the iteration before) and after it; nothing is
// known where a jump leads. So one walk is enough, and what it says holds on every path.
#include "artifact/artifact_regs.h"

static uint64_t reg_written(const IsaInst *in) {
    switch (in->op) {
    case ISA_LOOP:
    case ISA_REG_MOVE:
    case ISA_REG_ALU:
    case ISA_REG_LOAD:
        return (uint64_t)1 << (in->reg & 63);
    default:
        return 0;
    }
}

static uint64_t trips_of(const IsaInst *in) {
    if (in->breg || in->step < 1 || in->limit <= in->value)
        return 0;
    return ((uint64_t)((int64_t)in->limit - in->value) + (uint64_t)in->step - 1) / (uint64_t)in->step;
}

// What an instruction tells about every loop around it.
static void note(CodeLoops *out, uint32_t loop, const IsaInst *in) {
    for (; loop; loop = out->at[loop - 1].outer) {
        CodeLoop *l = &out->at[loop - 1];
        l->writes |= reg_written(in);
        l->has_barrier |= in->op == ISA_BARRIER;
        l->has_weights |= isa_rows[in->op].cost == COST_LDWEIGHTS;
    }
}

static const char *match_loops(Arena *a, const Artifact *art, CodeLoops *out, uint32_t *pc) {
    uint32_t loop = 0, depth = 0, count = 0;
    for (uint32_t i = 0; i < art->ncode; i++)
        count += artifact_shape(art, i)->op == ISA_LOOP;
    out->at = ARENA_NEWN(a, CodeLoop, count + 1);
    for (uint32_t i = 0; i < art->ncode; i++) {
        const IsaInst *in = artifact_shape(art, i);
        *pc = i;
        out->inner[i] = loop;
        note(out, loop, in);
        if (in->op == ISA_LOOP) {
            if (in->imm < 0 || (uint32_t)in->imm <= i || (uint32_t)in->imm >= art->ncode ||
                artifact_shape(art, (uint32_t)in->imm)->op != ISA_ENDLOOP ||
                artifact_shape(art, (uint32_t)in->imm)->imm != (int32_t)i)
                return "imm does not name an endloop that names this loop";
            if (loop && (uint32_t)in->imm > out->at[loop - 1].end)
                return "the loop ends behind the loop around it";
            if (depth++ == ART_LOOP_DEPTH_MAX)
                return "loops nest too deep (ART_LOOP_DEPTH_MAX, 64)";
            for (uint32_t o = loop; o; o = out->at[o - 1].outer)
                if (artifact_shape(art, out->at[o - 1].begin)->reg == in->reg)
                    return "reg counts a loop around this one";
            out->at[out->n++] = (CodeLoop){.begin = i, .end = (uint32_t)in->imm, .outer = loop,
                                           .trips = trips_of(in)};
            loop = out->n;
            note(out, loop, &(IsaInst){.op = ISA_REG_MOVE, .reg = in->reg});
        } else if (in->op == ISA_ENDLOOP) {
            if (!loop || out->at[loop - 1].end != i)
                return "there is no loop to end here";
            loop = out->at[loop - 1].outer;
            depth--;
        } else if (reg_written(in)) {
            for (uint32_t o = loop; o; o = out->at[o - 1].outer)
                if (artifact_shape(art, out->at[o - 1].begin)->reg == in->reg)
                    return "reg counts a loop around this instruction";
        }
    }
    return NULL;
}

const char *code_loops(Arena *a, const Artifact *art, CodeLoops *out, uint32_t *pc) {
    *out = (CodeLoops){.inner = ARENA_NEWN(a, uint32_t, (size_t)art->ncode + 1),
                       .is_target = ARENA_NEWN(a, uint8_t, (size_t)art->ncode + 1)};
    const char *bad = match_loops(a, art, out, pc);
    for (uint32_t i = 0; i < art->ncode && !bad; i++) {
        const IsaInst *in = artifact_shape(art, i);
        *pc = i;
        if (isa_rows[in->op].cost != COST_BRANCH || (uint32_t)in->imm >= art->ncode)
            continue;
        out->is_target[in->imm] = 1;
        if (out->inner[in->imm] != out->inner[i])
            bad = "jumps across the border of a loop";
    }
    return bad;
}

void regs_init(RegState *s, const CodeLoops *loops) {
    *s = (RegState){.loops = loops};
    for (int i = 0; i < ISA_REGS; i++)
        s->r[i].known = true;
}

static void forget(RegState *s, uint64_t regs) {
    for (int i = 0; i < ISA_REGS; i++)
        if (regs >> i & 1)
            s->r[i].known = false;
}

void regs_enter(RegState *s, uint32_t pc) {
    if (s->loops->is_target[pc])
        forget(s, UINT64_MAX);
}

#define RANGE_MAX ((int64_t)1 << 40) // beyond it a range is as good as unknown

static RegRange range(__int128 lo, __int128 hi) {
    bool fits = lo >= -RANGE_MAX && hi <= RANGE_MAX && lo <= hi;
    return fits ? (RegRange){(int64_t)lo, (int64_t)hi, true} : (RegRange){0};
}

static RegRange alu_range(int op, RegRange x, RegRange y) {
    if (!x.known || !y.known)
        return (RegRange){0};
    __int128 p[4] = {(__int128)x.lo * y.lo, (__int128)x.lo * y.hi, (__int128)x.hi * y.lo,
                     (__int128)x.hi * y.hi};
    __int128 lo = p[0], hi = p[0];
    for (int i = 1; i < 4; i++) {
        lo = p[i] < lo ? p[i] : lo;
        hi = p[i] > hi ? p[i] : hi;
    }
    switch (op) {
    case ALU_BYPASS:
        return x;
    case ALU_ADD:
        return range((__int128)x.lo + y.lo, (__int128)x.hi + y.hi);
    case ALU_SUB:
        return range((__int128)x.lo - y.hi, (__int128)x.hi - y.lo);
    case ALU_MUL:
        return range(lo, hi);
    case ALU_MAX:
        return range(x.lo > y.lo ? x.lo : y.lo, x.hi > y.hi ? x.hi : y.hi);
    case ALU_MIN:
        return range(x.lo < y.lo ? x.lo : y.lo, x.hi < y.hi ? x.hi : y.hi);
    case ALU_AND:
        return x.lo >= 0 && y.lo >= 0 ? range(0, x.hi < y.hi ? x.hi : y.hi) : (RegRange){0};
    case ALU_SHR:
        return x.lo >= 0 && y.lo == y.hi && y.lo >= 0 && y.lo < 64 ? range(x.lo >> y.lo, x.hi >> y.lo)
                                                                   : (RegRange){0};
    case ALU_SHL:
        return x.lo >= 0 && y.lo == y.hi && y.lo >= 0 && y.lo < 32
                   ? range((__int128)x.lo << y.lo, (__int128)x.hi << y.lo) : (RegRange){0};
    default: // comparisons
        return op >= ALU_EQ && op <= ALU_GE ? range(0, 1) : (RegRange){0};
    }
}

void regs_step(RegState *s, const IsaInst *in, uint32_t pc) {
    RegRange y = in->breg ? s->r[in->breg - 1] : range(in->value, in->value);
    switch (in->op) {
    case ISA_LOOP: {
        const CodeLoop *l = NULL;
        for (uint32_t i = s->loops->inner[pc + 1]; i && !l; i = s->loops->at[i - 1].outer)
            if (s->loops->at[i - 1].begin == pc)
                l = &s->loops->at[i - 1];
        if (!l)
            return;
        forget(s, l->writes);
        if (l->trips)
            s->r[in->reg] = range(in->value, in->value + (__int128)(l->trips - 1) * in->step);
        break;
    }
    case ISA_ENDLOOP:
        if (s->loops->inner[pc])
            forget(s, s->loops->at[s->loops->inner[pc] - 1].writes);
        break;
    case ISA_REG_MOVE:
        s->r[in->reg] = y;
        break;
    case ISA_REG_ALU:
        s->r[in->reg] = alu_range(in->op0, s->r[in->areg], y);
        break;
    case ISA_REG_LOAD:
        s->r[in->reg].known = false;
        break;
    default:
        break;
    }
}

bool regs_terms(const RegState *s, const IsaAccess *a, __int128 *lo, __int128 *hi) {
    *lo = *hi = 0;
    for (int i = 0; a->reg && i < 2 && a->reg[i]; i++) {
        const RegRange *r = &s->r[a->reg[i] - 1];
        if (!r->known)
            return false;
        __int128 x = (__int128)r->lo * a->mul[i], y = (__int128)r->hi * a->mul[i];
        *lo += x < y ? x : y;
        *hi += x < y ? y : x;
    }
    return true;
}
