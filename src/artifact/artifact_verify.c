// SPDX-License-Identifier: Apache-2.0
// artifact_verify.c — what a program may do. A program that passes runs without further tests.
//
// Rules, beyond the encoding's own:
//   1. operands lie inside their memory, aligned to their element, in a space the instruction
//      reaches: PE reads SBUF and writes PSUM; vector and scalar reach both; gpsimd reaches SBUF;
//      DMA reaches HBM and SBUF; kernels and register loads read HBM (loads SBUF too);
//   2. engines begin at a partition their count allows: above 64 at 0, above 32 at 0 or 64, else at
//      a multiple of 32;
//   3. a matmul writes f32 into one PSUM bank and uses weights that the same straight piece of code
//      loaded with the same sizes and type;
//   4. constants are never written, arguments only when donated;
//   5. jumps stay inside the code, the code cannot run off its end, loops nest;
//   6. every wait can be met by instructions that have run by then, on every path (see waits
//      below).
#include <assert.h>
#include <stdio.h>

#include "artifact/artifact.h"

typedef struct Sems { // completions since the last barrier, at least
    uint32_t n[SEM_COUNT];
} Sems;

typedef struct Verify {
    Ctx *ctx;
    const Artifact *art;
    const char *name;
    uint32_t pc;
    // Per instruction: 0, or 1 + index of the state that jumps bring here.
    uint32_t *target;
    Sems *states;
    bool *reached;          // some forward jump has left a state
    bool *cleared;          // a jump from behind a barrier comes back here
    const IsaInst *weights; // last ldweights of this straight piece, or NULL
} Verify;

_Noreturn static void fail(const Verify *v, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
_Noreturn static void fail(const Verify *v, const char *fmt, ...) {
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    const IsaInst *in = &v->art->code[v->pc];
    ctx_fail(v->ctx, OTRN_VERIFY, (Place){.file = v->name}, "instruction %u (%s: %s): %s", v->pc,
             engine_names[in->engine], isa_rows[in->op].name, text);
}

_Noreturn static void fail_header(const Verify *v, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
_Noreturn static void fail_header(const Verify *v, const char *fmt, ...) {
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    ctx_fail(v->ctx, OTRN_VERIFY, (Place){.file = v->name}, "%s", text);
}

// --- operands ------------------------------------------------------------------------------------

uint64_t artifact_seg_bytes(const Artifact *art, uint32_t seg, bool *ok) {
    *ok = true;
    if (seg == SEG_SCRATCH)
        return art->scratch_bytes;
    if (seg == SEG_CONST)
        return art->const_bytes;
    uint32_t i = seg - SEG_FIRST_ARG;
    if (i < art->nargs)
        return art->args[i].bytes;
    if (i - art->nargs < art->nresults)
        return art->results[i - art->nargs].bytes;
    *ok = false;
    return 0;
}

// NULL when the bytes [off + lo, off + hi) lie in the segment, else what is wrong.
static const char *hbm_fault(const Artifact *art, uint64_t addr, __int128 lo, __int128 hi,
                             bool is_write) {
    bool ok;
    uint32_t seg = addr_seg(addr);
    uint64_t bytes = artifact_seg_bytes(art, seg, &ok);
    if (!ok)
        return "names a segment that does not exist";
    if ((__int128)addr_off(addr) + lo < 0 || (__int128)addr_off(addr) + hi > bytes)
        return "reaches outside its segment";
    if (is_write && seg == SEG_CONST)
        return "writes a constant";
    if (is_write && seg >= SEG_FIRST_ARG && seg - SEG_FIRST_ARG < art->nargs &&
        !art->args[seg - SEG_FIRST_ARG].donated)
        return "writes an argument that is not donated";
    return NULL;
}

typedef struct Pattern {
    const char *what; // "dst" or "src"
    uint64_t addr;
    int dtype;
    uint32_t parts; // partitions, when in SBUF or PSUM
    uint32_t n[4];
    int32_t stride[4];
} Pattern;

enum { IN_HBM = 1 << SPACE_HBM, IN_SBUF = 1 << SPACE_SBUF, IN_PSUM = 1 << SPACE_PSUM };

// Bytes that axes first..3 reach, relative to the address: [*lo, *hi).
static void extent(const Pattern *p, int first, __int128 *lo, __int128 *hi) {
    __int128 a = 0, b = 0;
    for (int i = first; i < 4; i++) {
        __int128 reach = (__int128)(p->n[i] ? p->n[i] - 1 : 0) * p->stride[i];
        a += reach < 0 ? reach : 0;
        b += reach > 0 ? reach : 0;
    }
    int64_t size = (int64_t)dtype_bytes(p->dtype);
    *lo = a * size;
    *hi = (b + 1) * size;
}

static void check_partitions(const Verify *v, const Pattern *p, bool by_engine) {
    uint32_t start = addr_part(p->addr), n = p->parts;
    if (start + (uint64_t)n > ISA_PARTITIONS)
        fail(v, "%s takes partitions %u…%llu of %d", p->what, start,
             (unsigned long long)start + n - 1, ISA_PARTITIONS);
    uint32_t step = n > 64 ? 128 : n > 32 ? 64 : 32;
    if (by_engine && start % step)
        fail(v, "%s begins at partition %u, but %u partitions must begin at a multiple of %u",
             p->what, start, n, step);
}

static void check_pattern(const Verify *v, const Pattern *p, int spaces, bool is_write,
                          bool by_engine) {
    int space = addr_space(p->addr);
    size_t size = dtype_bytes(p->dtype);
    if (space >= SPACE_COUNT || !(spaces >> space & 1))
        fail(v, "%s is in a memory this instruction does not reach", p->what);
    if (!size)
        fail(v, "%s has no element type", p->what);
    __int128 lo, hi;
    extent(p, space == SPACE_HBM ? 0 : 1, &lo, &hi);
    if (space == SPACE_HBM) {
        const char *fault = hbm_fault(v->art, p->addr, lo, hi, is_write);
        if (fault)
            fail(v, "%s %s", p->what, fault);
        if (addr_off(p->addr) % size)
            fail(v, "%s is not aligned to its element of %zu bytes", p->what, size);
        return;
    }
    if (p->addr >> 40 & 0xffff)
        fail(v, "%s has reserved address bits set", p->what);
    if (p->stride[0])
        fail(v, "%s has a stride on the partition axis", p->what);
    check_partitions(v, p, by_engine);
    uint32_t limit = space == SPACE_SBUF ? ISA_SBUF_BYTES : ISA_PSUM_BYTES;
    if (addr_poff(p->addr) + lo < 0 || addr_poff(p->addr) + hi > limit)
        fail(v, "%s reaches outside the %u bytes of a partition", p->what, limit);
    if (addr_poff(p->addr) % size)
        fail(v, "%s is not aligned to its element of %zu bytes", p->what, size);
}

static uint32_t count(uint32_t n) { return n ? n : 1; }

static Pattern pattern(const IsaInst *in, bool is_dst, int dtype) {
    Pattern p = {
        .what = is_dst ? "dst" : "src", .addr = is_dst ? in->dst : in->src, .dtype = dtype};
    p.parts = count(in->n[0]);
    memcpy(p.n, in->n, sizeof p.n);
    memcpy(p.stride, is_dst ? in->d : in->s, sizeof p.stride);
    return p;
}

// --- instructions --------------------------------------------------------------------------------

static void check_dma(const Verify *v, const IsaInst *in) {
    if (in->queue >= DMA_QUEUES)
        fail(v, "queue %u does not exist, there are %d", in->queue, DMA_QUEUES);
    Pattern dst = pattern(in, true, in->stype), src = pattern(in, false, in->stype);
    check_pattern(v, &dst, IN_HBM | IN_SBUF, true, false);
    check_pattern(v, &src, IN_HBM | IN_SBUF, false, false);
}

static void check_pe_type(const Verify *v, const IsaInst *in) {
    if (!dtype_on_tensor_engine(in->stype))
        fail(v, "the tensor engine does not multiply %s", dtype_row(in->stype)->name);
}

static void check_ldweights(Verify *v, const IsaInst *in) {
    check_pe_type(v, in);
    if (count(in->n[0]) > ISA_PE_ROWS || count(in->n[1]) > ISA_PE_COLS)
        fail(v, "the array has %d x %d cells", ISA_PE_ROWS, ISA_PE_COLS);
    Pattern src = pattern(in, false, in->stype);
    check_pattern(v, &src, IN_SBUF, false, true);
    v->weights = in;
}

static void check_matmul(Verify *v, const IsaInst *in) {
    check_pe_type(v, in);
    uint32_t k = count(in->n[0]), n = count(in->n[1]), m = count(in->n[2]);
    if (k > ISA_PE_ROWS || m > ISA_PE_COLS || n > ISA_MOVING_MAX)
        fail(v, "%u x %u x %u does not fit the array: at most %d x %d x %d", k, n, m, ISA_PE_ROWS,
             ISA_MOVING_MAX, ISA_PE_COLS);
    if (in->flags & ~MATMUL_ACCUMULATE)
        fail(v, "unknown flags %u", in->flags);
    const IsaInst *w = v->weights;
    if (!w || count(w->n[0]) != k || count(w->n[1]) != m || w->stype != in->stype)
        fail(v, "needs an ldweights of %u x %u %s before it, with no jump or label between", k, m,
             dtype_row(in->stype)->name);
    Pattern src = pattern(in, false, in->stype), dst = pattern(in, true, DT_F32);
    src.n[2] = dst.n[2] = 1;
    dst.parts = m;
    check_pattern(v, &src, IN_SBUF, false, true);
    check_pattern(v, &dst, IN_PSUM, true, true);
    __int128 lo, hi;
    extent(&dst, 1, &lo, &hi);
    uint32_t off = addr_poff(in->dst);
    if ((uint32_t)(off + lo) / ISA_PSUM_BANK_BYTES !=
        (uint32_t)(off + hi - 1) / ISA_PSUM_BANK_BYTES)
        fail(v, "dst crosses a PSUM bank (%u bytes)", ISA_PSUM_BANK_BYTES);
}

static void check_elementwise(const Verify *v, const IsaInst *in) {
    int spaces = in->engine == ENG_GPSIMD ? IN_SBUF : IN_SBUF | IN_PSUM;
    Pattern dst = pattern(in, true, in->dtype);
    if (dtype_is_complex(in->dtype) || dtype_is_complex(in->stype))
        fail(v, "this engine has no complex numbers");
    check_pattern(v, &dst, spaces, true, true);
    if (!isa_row_has(in->op, ISA_F_src)) {
        if (dtype_bytes(in->dtype) > 4)
            fail(v, "a fill has elements of at most 4 bytes");
        return;
    }
    Pattern src = pattern(in, false, in->stype);
    check_pattern(v, &src, spaces, false, true);
}

static void check_branch(const Verify *v, const IsaInst *in) {
    if (in->imm < 0 || (uint32_t)in->imm >= v->art->ncode)
        fail(v, "jumps to instruction %d of %u", in->imm, v->art->ncode);
    if (in->reg >= ISA_REGS)
        fail(v, "register %u does not exist, there are %d", in->reg, ISA_REGS);
}

static void check_regload(const Verify *v, const IsaInst *in) {
    if (in->reg >= ISA_REGS)
        fail(v, "register %u does not exist, there are %d", in->reg, ISA_REGS);
    if (!dtype_is_int(in->stype) && in->stype != DT_I1)
        fail(v, "loads a %s, registers hold integers", dtype_row(in->stype)->name);
    Pattern src = {.what = "src", .addr = in->src, .dtype = in->stype, .parts = 1};
    check_pattern(v, &src, IN_HBM | IN_SBUF, false, false);
}

static void check_inst(Verify *v, const IsaInst *in) {
    if (in->reg_d[0] || in->reg_s[0] || in->reg_t[0] || in->upd_sem)
        fail(v, "uses registers in an address, or signals");
    for (int w = 0; w < 2; w++)
        if (in->wait_sem[w] != SEM_NONE && in->wait_sem[w] >= SEM_USER)
            fail(v, "waits in a way this release does not check");
    switch (isa_rows[in->op].cost) {
    case COST_DMA:
        check_dma(v, in);
        break;
    case COST_LDWEIGHTS:
        check_ldweights(v, in);
        break;
    case COST_MATMUL:
        check_matmul(v, in);
        break;
    case COST_ELEMENTWISE:
        check_elementwise(v, in);
        break;
    case COST_BRANCH:
        check_branch(v, in);
        v->weights = NULL;
        break;
    case COST_REGLOAD:
        check_regload(v, in);
        break;
    case COST_KERNEL:
    case COST_COLLECTIVE:
        if (in->imm < 0 || (uint32_t)in->imm >= v->art->nkerns)
            fail(v, "kernel %d does not exist, there are %u", in->imm, v->art->nkerns);
        break;
    case COST_CONTROL:
    case COST_BARRIER: // nothing but waits
        break;
    default:
        fail(v, "is not checked in this release");
    }
}

static void check_kernel_tensors(const Verify *v, uint32_t number) {
    const Kern *k = &v->art->kerns[number];
    for (uint32_t i = 0; i < k->nin + k->nout; i++) {
        bool is_out = i >= k->nin;
        const KTensor *t = is_out ? &k->out[i - k->nin] : &k->in[i];
        const char *what = is_out ? "result" : "operand";
        uint32_t nth = is_out ? i - k->nin : i;
        uint64_t size = dtype_bytes(t->dtype);
        if (addr_space(t->addr) != SPACE_HBM)
            fail_header(v, "kernel %u: %s %u is not in HBM", number, what, nth);
        const char *fault =
            hbm_fault(v->art, t->addr, 0, (__int128)t->elems * (int64_t)size, is_out);
        if (fault)
            fail_header(v, "kernel %u: %s %u %s", number, what, nth, fault);
        if (size && addr_off(t->addr) % size)
            fail_header(v, "kernel %u: %s %u is not aligned to its element of %u bytes", number,
                        what, nth, (unsigned)size);
    }
}

// --- waits ---------------------------------------------------------------------------------------
//
// A wait for `sem >= n` can be met when at least n instructions that count on sem have run since
// the last barrier. Going down the code, `now` is the least such count over all paths that lead
// here. A jump forward leaves its counts at its target. A jump back can only bring less than the
// way down did when a barrier lies inside the loop it closes; then nothing is assumed at its
// target.

static bool is_jump(const IsaInst *in) { return isa_rows[in->op].cost == COST_BRANCH; }

static void find_targets(Verify *v, Arena *scratch) {
    const Artifact *art = v->art;
    v->target = ARENA_NEWN(scratch, uint32_t, art->ncode);
    uint32_t *barriers = ARENA_NEWN(scratch, uint32_t, (size_t)art->ncode + 1); // before i
    uint32_t n = 0;
    for (uint32_t i = 0; i < art->ncode; i++) {
        barriers[i + 1] = barriers[i] + (isa_rows[art->code[i].op].cost == COST_BARRIER);
        uint32_t to = (uint32_t)art->code[i].imm;
        if (is_jump(&art->code[i]) && to < art->ncode && !v->target[to])
            v->target[to] = ++n;
    }
    v->states = ARENA_NEWN(scratch, Sems, n + 1);
    v->reached = ARENA_NEWN(scratch, bool, n + 1);
    v->cleared = ARENA_NEWN(scratch, bool, n + 1);
    for (uint32_t i = 0; i < art->ncode; i++) {
        uint32_t to = (uint32_t)art->code[i].imm;
        if (is_jump(&art->code[i]) && to <= i && barriers[i] > barriers[to])
            v->cleared[v->target[to]] = true;
    }
}

static void sems_min(Sems *into, const Sems *with) {
    for (int s = 0; s < SEM_COUNT; s++)
        if (with->n[s] < into->n[s])
            into->n[s] = with->n[s];
}

// Counts on entry to instruction pc, where `now` holds those of the way down (if there is one).
static void enter(Verify *v, Sems *now, bool falls_in) {
    uint32_t t = v->target[v->pc];
    if (!t && falls_in)
        return;
    v->weights = NULL;
    if (v->cleared[t] || (!falls_in && !v->reached[t]))
        *now = (Sems){0};
    else if (v->reached[t] && falls_in)
        sems_min(now, &v->states[t]);
    else if (v->reached[t])
        *now = v->states[t];
}

static void leave_forward(Verify *v, const IsaInst *in, const Sems *now) {
    uint32_t t = v->target[in->imm];
    if ((uint32_t)in->imm <= v->pc)
        return;
    if (v->reached[t])
        sems_min(&v->states[t], now);
    else
        v->states[t] = *now;
    v->reached[t] = true;
}

static void check_waits(const Verify *v, const IsaInst *in, const Sems *now) {
    for (int w = 0; w < 2; w++) {
        int sem = in->wait_sem[w];
        if (sem == SEM_NONE || in->wait_val[w] <= now->n[sem])
            continue;
        char name[16];
        snprintf(name, sizeof name, "q%d", sem - ENG_COUNT);
        fail(v,
             "waits for %s>=%u, but only %u such instructions are sure to have run since the last "
             "barrier",
             sem < ENG_COUNT ? engine_names[sem] : name, in->wait_val[w], now->n[sem]);
    }
}

static void check_code(Verify *v) {
    const Artifact *art = v->art;
    Sems now = {0};
    bool falls_in = true;
    for (uint32_t i = 0; i < art->ncode; i++) {
        const IsaInst *in = &art->code[i];
        v->pc = i;
        enter(v, &now, falls_in);
        check_inst(v, in);
        check_waits(v, in, &now);
        now.n[isa_sem(in)]++;
        if (is_jump(in))
            leave_forward(v, in, &now);
        if (isa_rows[in->op].cost == COST_BARRIER)
            now = (Sems){0};
        falls_in = in->op != ISA_JUMP && in->op != ISA_HALT;
    }
    if (!art->ncode)
        fail_header(v, "the program has no instructions");
    if (falls_in)
        fail(v, "the code runs off its end: the last instruction must be halt or jump");
}

// --- header --------------------------------------------------------------------------------------

// "2,1|0,1,2,3": a number of parts for each dimension, whose product divides the devices, each of
// which stands there once.
static bool sharding_ok(const ArtValue *v, uint32_t devices, uint8_t *seen) {
    const char *s = v->sharding ? v->sharding : "";
    uint64_t parts = 1;
    if (!*s)
        return true;
    memset(seen, 0, devices);
    for (int i = 0; i < v->rank; i++) {
        uint64_t n = 0;
        if (i && *s++ != ',')
            return false;
        for (; *s >= '0' && *s <= '9' && n <= devices; s++)
            n = n * 10 + (uint64_t)(*s - '0');
        if (!n || n > devices || (parts *= n) > devices)
            return false;
    }
    for (uint32_t i = 0; i < devices; i++) {
        if (*s++ != (i ? ',' : '|') || *s < '0' || *s > '9')
            return false;
        uint64_t d = 0;
        for (; *s >= '0' && *s <= '9' && d < devices; s++)
            d = d * 10 + (uint64_t)(*s - '0');
        if (d >= devices || seen[d]++)
            return false;
    }
    return !*s && devices % parts == 0;
}

static void check_shardings(const Verify *v, Arena *scratch) {
    const Artifact *art = v->art;
    uint32_t devices = art->partitions ? art->partitions : 1;
    uint8_t *seen = ARENA_NEWN(scratch, uint8_t, devices);
    for (uint32_t i = 0; i < art->nargs + art->nresults; i++) {
        bool is_arg = i < art->nargs;
        const ArtValue *value = is_arg ? &art->args[i] : &art->results[i - art->nargs];
        if (!sharding_ok(value, devices, seen))
            fail_header(v, "%s %u: its sharding does not fit %u devices",
                        is_arg ? "argument" : "result", is_arg ? i : i - art->nargs, devices);
    }
}

static void check_values(const Verify *v, Arena *scratch) {
    const Artifact *art = v->art;
    if ((uint64_t)art->nargs + art->nresults + SEG_FIRST_ARG > SEG_MAX)
        fail_header(v, "%u arguments and %u results, at most %u segments can be addressed",
                    art->nargs, art->nresults, SEG_MAX);
    check_shardings(v, scratch);
    bool *taken = ARENA_NEWN(scratch, bool, art->nargs + 1);
    for (uint32_t i = 0; i < art->nargs; i++)
        if (art->args[i].alias != -1)
            fail_header(v, "argument %u has an alias", i);
    for (uint32_t i = 0; i < art->nresults; i++) {
        int32_t alias = art->results[i].alias;
        if (art->results[i].donated)
            fail_header(v, "result %u is donated, only arguments can be", i);
        if (alias == -1)
            continue;
        if (alias < 0 || (uint32_t)alias >= art->nargs)
            fail_header(v, "result %u takes the memory of argument %d of %u", i, alias, art->nargs);
        if (taken[alias] || art->args[alias].bytes != art->results[i].bytes)
            fail_header(v, "result %u cannot take the memory of argument %d: %s", i, alias,
                        taken[alias] ? "another result has it" : "their sizes differ");
        taken[alias] = true;
    }
    if (art->scratch_bytes >> 40 || art->const_bytes >> 40)
        fail_header(v, "a segment of more than 2^40 bytes");
}

static void check_loops(const Verify *v, Arena *scratch) {
    const Artifact *art = v->art;
    const ArtLoop *loops = artifact_loops_sorted(art, scratch);
    uint32_t ends[ART_LOOP_DEPTH_MAX];
    int depth = 0;
    for (uint32_t i = 0; i < art->nloops; i++) {
        const ArtLoop *l = &loops[i];
        if (l->begin >= l->end || l->end > art->ncode)
            fail_header(v, "a loop covers instructions %u…%u of %u", l->begin, l->end, art->ncode);
        while (depth && ends[depth - 1] <= l->begin)
            depth--;
        if (depth && l->end > ends[depth - 1])
            fail_header(v, "the loop from %u to %u overlaps another without lying inside it",
                        l->begin, l->end);
        if (depth == ART_LOOP_DEPTH_MAX)
            fail_header(v, "loops nest deeper than ART_LOOP_DEPTH_MAX (%d)", ART_LOOP_DEPTH_MAX);
        ends[depth++] = l->end;
    }
}

static void check_locs(const Verify *v) {
    const Artifact *art = v->art;
    for (uint32_t i = 0; art->code_loc && i < art->ncode; i++)
        if (art->code_loc[i] && art->code_loc[i] >= art->nlocs)
            fail_header(v, "instruction %u has location %u of %u", i, art->code_loc[i], art->nlocs);
    for (uint32_t i = 0; i < art->nlive; i++)
        if (art->live[i].loc && art->live[i].loc >= art->nlocs)
            fail_header(v, "live tensor %u has location %u of %u", i, art->live[i].loc, art->nlocs);
}

static void verify_all(Verify *v, Arena *scratch) {
    check_values(v, scratch);
    check_loops(v, scratch);
    check_locs(v);
    find_targets(v, scratch);
    for (uint32_t i = 0; i < v->art->nkerns; i++)
        check_kernel_tensors(v, i);
    check_code(v);
    kern_verify(v->ctx, scratch, v->art->kerns, v->art->nkerns, v->name);
}

void artifact_verify(Ctx *ctx, const Artifact *art, const char *name) {
    Verify v = {.ctx = ctx, .art = art, .name = name};
    Arena scratch; // ours: freed on both ways out
    arena_init(&scratch, ctx);
    jmp_buf here, *outer = ctx->on_fail;
    if (CTX_TRY(ctx, here)) {
        verify_all(&v, &scratch);
        ctx->on_fail = outer;
        arena_fini(&scratch);
    } else {
        ctx->on_fail = outer;
        arena_fini(&scratch);
        longjmp(*outer, 1);
    }
}
