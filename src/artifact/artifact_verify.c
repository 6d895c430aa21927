// SPDX-License-Identifier: Apache-2.0
// artifact_verify.c — what a program may do. A program that passes runs without further tests, except
// for addresses that depend on values only a run knows (artifact_dynamic).
//
// Rules, beyond the encoding's own:
//   1. each instruction is such as isa/rules.def and isa/check.c allow on the chip;
//   2. operands lie inside their memory, for every value a loop's counter takes;
//   3. a matmul uses weights that are sure to be in its tile of the array, with the same sizes and a
//      type that goes with its own;
//   4. constants are never written, arguments only when donated;
//   5. jumps stay inside the code and do not cross a loop's border, the code cannot run off its end,
//      loops nest and leave their counters alone;
//   6. every wait can be met by instructions that have run by then, on every path (see waits
//      below);
//   7. a kernel's result lies on no other of its tensors, except on all of an operand that it may overwrite
//      (kern_may_share).
//
// What a shape (isa/shape.h) decides alone is asked once for it; for its instructions there remain the places of their
// addresses, looked at by all threads of the pool (artifact_bounds.c), and one walk in program order for what depends on
// it. An instruction whose places are not plainly right goes through the rules themselves, which also tell what is wrong.
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "artifact/artifact_bounds.h"

#include "artifact/artifact_regs.h"
#include "coll/groups.h"
#include "coll/shape.h"

typedef struct Sems { // completions since the last barrier, at least
    uint32_t n[SEM_USER];
} Sems;

#define TILES 4 // the array's weights are followed by quarters: 4 x 4 of 32 x 32 cells

typedef struct Verify {
    Ctx *ctx;
    const Artifact *art;
    const char *name;
    const IsaChip *chip;
    Pool *pool;
    const IsaShapes *shapes;
    const Bounds *bounds;
    const uint8_t *doubt; // per instruction: its places are not plainly right
    bool straight;        // no jumps, loops or registers anywhere
    CodeLoops loops;
    RegState regs;
    Sems *at_loop; // per loop: counts when it began
    uint32_t pc;
    // Per instruction: 0, or 1 + index of the state that jumps bring here.
    uint32_t *target;
    Sems *states;
    bool *reached; // some forward jump has left a state
    bool *cleared; // a jump from behind a barrier comes back here
    const IsaInst *weights[TILES][TILES]; // the shape of the ldweights that filled a tile beginning here, or NULL
    const IsaInst **fits; // per shape of a product: weights that were found to fit it
} Verify;

_Noreturn static void fail(const Verify *v, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
_Noreturn static void fail(const Verify *v, const char *fmt, ...) {
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    const IsaInst *in = shape_inst(v->shapes, v->pc);
    Place at = {.file = v->name};
    uint32_t loc = v->art->code_loc ? v->art->code_loc[v->pc] : 0;
    if (loc && loc < v->art->nlocs && v->art->locs[loc].file && *v->art->locs[loc].file)
        at = (Place){v->art->locs[loc].file, v->art->locs[loc].line, v->art->locs[loc].col};
    ctx_fail(v->ctx, OTRN_VERIFY, at, "instruction %u (%s: %s): %s", v->pc,
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

bool artifact_seg_writable(const Artifact *art, uint32_t seg) {
    bool is_arg = seg >= SEG_FIRST_ARG && seg - SEG_FIRST_ARG < art->nargs;
    return seg != SEG_CONST && (!is_arg || art->args[seg - SEG_FIRST_ARG].donated);
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
    if (is_write && !artifact_seg_writable(art, seg))
        return seg == SEG_CONST ? "writes a constant" : "writes an argument that is not donated";
    return NULL;
}

const char *artifact_access_fault(const Artifact *art, const IsaInst *in, const IsaAccess *access,
                                  int64_t terms, char why[ISA_WHY]) {
    const char *bad = isa_check_access(in, access, &isa_chip_largest, terms, terms, why);
    if (bad || addr_space(access->addr) != SPACE_HBM)
        return bad;
    __int128 lo, hi;
    isa_access_extent(access, &lo, &hi);
    bad = hbm_fault(art, access->addr, lo + terms, hi + terms, access->is_write);
    if (bad)
        snprintf(why, ISA_WHY, "%s %s", isa_fields[access->field].name, bad);
    return bad ? why : NULL;
}

static void check_access(const Verify *v, const IsaInst *in, const IsaAccess *a) {
    char why[ISA_WHY];
    __int128 lo, hi, first, last;
    bool known = regs_terms(&v->regs, a, &lo, &hi);
    IsaAccess at = *a;
    if (!known) { // the rest waits for the run
        lo = hi = 0;
        for (int i = 0; i < ISA_AXES; i++)
            at.n[i] = 1;
        at.addr &= addr_space(a->addr) == SPACE_HBM ? ~(uint64_t)0xffffffffff : ~(uint64_t)0xffffffff;
    }
    const char *bad = isa_check_access(in, &at, v->chip, lo, hi, why);
    if (bad)
        fail(v, "%s", bad);
    if (addr_space(a->addr) != SPACE_HBM)
        return;
    isa_access_extent(&at, &first, &last);
    bad = hbm_fault(v->art, at.addr, known ? first + lo : 0, known ? last + hi : 0, a->is_write);
    if (bad)
        fail(v, "%s %s", isa_fields[a->field].name, bad);
}

// --- instructions --------------------------------------------------------------------------------

static void forget_weights(Verify *v) { memset(v->weights, 0, sizeof v->weights); }

static uint32_t tile_side(uint32_t n) { return n ? n : 128; }

static void weights_set(Verify *v, const IsaInst *in) {
    uint32_t rows = tile_side(in->trows), cols = tile_side(in->tcols);
    if (rows == ISA_PE_ROWS && cols == ISA_PE_COLS && !in->trow && !in->tcol) {
        const IsaInst *before = v->weights[0][0]; // when it has the whole array there is none beside it
        if (!before || tile_side(before->trows) != ISA_PE_ROWS || tile_side(before->tcols) != ISA_PE_COLS)
            forget_weights(v);
        v->weights[0][0] = in;
        return;
    }
    for (uint32_t r = 0; r < TILES; r++)
        for (uint32_t c = 0; c < TILES; c++) {
            const IsaInst *w = v->weights[r][c];
            if (w && w->trow < in->trow + rows && in->trow < w->trow + tile_side(w->trows) &&
                w->tcol < in->tcol + cols && in->tcol < w->tcol + tile_side(w->tcols))
                v->weights[r][c] = NULL;
        }
    v->weights[in->trow / 32][in->tcol / 32] = in;
}

static bool types_mix(int a, int b) {
    bool wide_a = a == DT_F32 || a == DT_TF32, wide_b = b == DT_F32 || b == DT_TF32;
    bool fn = a == DT_F8E4M3FN || b == DT_F8E4M3FN, plain = a == DT_F8E4M3 || b == DT_F8E4M3;
    return wide_a == wide_b && !(fn && plain);
}

static void check_weights(const Verify *v, const IsaInst *in) {
    const IsaInst *w = v->weights[in->trow / 32][in->tcol / 32];
    uint32_t k = isa_count(in->n[0]), m = isa_count(in->n[2]);
    uint8_t double_row = (uint8_t)(in->flags & ISA_FLAG_DOUBLE_ROW);
    if (!w || isa_count(w->n[0]) != k || isa_count(w->n[1]) != m || w->trows != in->trows ||
        w->tcols != in->tcols || w->trow != in->trow || w->tcol != in->tcol ||
        (w->op == ISA_LDWEIGHTS_MX) != (in->op == ISA_MATMUL_MX) ||
        (w->flags & ISA_FLAG_DOUBLE_ROW) != double_row)
        fail(v, "needs an ldweights of %u x %u in its tile before it, with no jump or label between", k,
             m);
    if (!types_mix(w->stype, in->stype))
        fail(v, "src: %s does not go with weights of %s", dtype_row(in->stype)->name,
             dtype_row(w->stype)->name);
}

static void check_kernel(const Verify *v, const IsaInst *in) {
    if (in->imm < 0 || (uint32_t)in->imm >= v->art->nkerns)
        fail(v, "kernel %d does not exist, there are %u", in->imm, v->art->nkerns);
    if (isa_has_queue(in) && in->queue >= DMA_QUEUES)
        fail(v, "queue %u does not exist, there are %d", in->queue, DMA_QUEUES);
}

static void check_operands(const Verify *v, const IsaInst *in) {
    char why[ISA_WHY];
    IsaMask mask = isa_row_mask(in->op);
    const char *bad = isa_check(in, mask, v->chip, why);
    if (bad)
        fail(v, "%s", bad);
    IsaAccess a[ISA_ACCESS_MAX];
    int n = isa_accesses(in, mask, a);
    for (int i = 0; i < n; i++)
        check_access(v, in, &a[i]);
}

// `number` is the shape's: the array's weights follow from shapes alone.
static void check_inst(Verify *v, const IsaInst *shape, uint32_t number) {
    if (v->doubt[v->pc]) {
        IsaInst in = shapes_inst(v->shapes, v->pc);
        check_operands(v, &in);
    }
    switch ((IsaCost)isa_rows[shape->op].cost) {
    case COST_LDWEIGHTS:
        weights_set(v, shape);
        break;
    case COST_MATMUL: {
        const IsaInst *w = v->weights[shape->trow / 32][shape->tcol / 32];
        if (!w || v->fits[number] != w)
            check_weights(v, shape);
        v->fits[number] = w;
        break;
    }
    case COST_TRANSPOSE:
        if (shape->engine == ENG_TENSOR) // by a matmul with the identity
            forget_weights(v);
        break;
    case COST_BRANCH:
        if (shape->imm < 0 || (uint32_t)shape->imm >= v->art->ncode)
            fail(v, "jumps to instruction %d of %u", shape->imm, v->art->ncode);
        forget_weights(v);
        break;
    case COST_KERNEL:
    case COST_COLLECTIVE:
        check_kernel(v, shape);
        break;
    default:
        break;
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

// Where a tensor lies: a result that takes the memory of an argument lies in that one's segment.
static uint64_t kernel_place(const Artifact *art, const KTensor *t) {
    uint32_t result = addr_seg(t->addr) - SEG_FIRST_ARG - art->nargs;
    bool is_result = addr_seg(t->addr) >= SEG_FIRST_ARG + art->nargs;
    if (!is_result || art->results[result].alias < 0)
        return t->addr;
    return addr_hbm(SEG_FIRST_ARG + (uint32_t)art->results[result].alias, addr_off(t->addr));
}

typedef struct Extent { // bytes of HBM; segments are further apart than any is long
    uint64_t begin, end;
    uint32_t result;
} Extent;

static Extent kernel_extent(const Artifact *art, const KTensor *t, uint32_t result) {
    uint64_t begin = kernel_place(art, t);
    return (Extent){begin, begin + (uint64_t)t->elems * dtype_bytes(t->dtype), result};
}

static int by_begin(const void *a, const void *b) {
    const Extent *x = a, *y = b;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

// Results in order of their places do not meet; so of those that an operand meets the first decides.
static void check_kernel_overlap(const Verify *v, uint32_t number, Arena *scratch) {
    const Kern *k = &v->art->kerns[number];
    Extent *outs = ARENA_NEWN(scratch, Extent, k->nout + 1u);
    uint32_t n = 0;
    for (uint32_t o = 0; o < k->nout; o++) {
        outs[n] = kernel_extent(v->art, &k->out[o], o);
        n += outs[n].end > outs[n].begin;
    }
    qsort(outs, n, sizeof *outs, by_begin);
    for (uint32_t o = 1; o < n; o++)
        if (outs[o].begin < outs[o - 1].end)
            fail_header(v, "kernel %u: results %u and %u overlap", number, outs[o - 1].result, outs[o].result);
    for (uint32_t i = 0; i < k->nin; i++) {
        const KTensor *in = &k->in[i];
        Extent at = kernel_extent(v->art, in, 0);
        uint32_t lo = 0, hi = n; // the first that ends behind the operand's begin
        while (lo < hi) {
            uint32_t mid = lo + (hi - lo) / 2;
            if (outs[mid].end > at.begin)
                hi = mid;
            else
                lo = mid + 1;
        }
        if (lo == n || at.begin == at.end || outs[lo].begin >= at.end)
            continue;
        const KTensor *out = &k->out[outs[lo].result];
        if (outs[lo].begin != at.begin ||
            !kern_may_share(k->op, i, outs[lo].result, in->dtype, in->elems, out->dtype, out->elems))
            fail_header(v, "kernel %u: result %u lies on operand %u, which it may not overwrite", number,
                        outs[lo].result, i);
    }
}

// --- waits ---------------------------------------------------------------------------------------
//
// A wait for `sem >= n` can be met when at least n instructions that count on sem have run since
// the last barrier. Going down the code, `now` is the least such count over all paths that lead
// here. A jump forward leaves its counts at its target. A jump back, or an endloop, can only bring
// less than the way down did when a barrier lies inside the loop it closes; then nothing is assumed
// at its begin. A loop of known length counts its body that often. Waits that count back are met by
// what they are; those for the program's own semaphores are watched by the chip.

static bool is_jump(const IsaInst *in) { return isa_rows[in->op].cost == COST_BRANCH; }

static void find_targets(Verify *v, Arena *scratch) {
    const Artifact *art = v->art;
    if (v->straight) {
        v->reached = v->cleared = ARENA_NEWN(scratch, bool, 1);
        return;
    }
    v->target = ARENA_NEWN(scratch, uint32_t, art->ncode);
    uint32_t *barriers = ARENA_NEWN(scratch, uint32_t, (size_t)art->ncode + 1); // before i
    uint32_t n = 0;
    for (uint32_t i = 0; i < art->ncode; i++) {
        barriers[i + 1] = barriers[i] + (isa_rows[shape_inst(v->shapes, i)->op].cost == COST_BARRIER);
        uint32_t to = (uint32_t)shape_inst(v->shapes, i)->imm;
        if (is_jump(shape_inst(v->shapes, i)) && to < art->ncode && !v->target[to])
            v->target[to] = ++n;
    }
    v->states = ARENA_NEWN(scratch, Sems, n + 1);
    v->reached = ARENA_NEWN(scratch, bool, n + 1);
    v->cleared = ARENA_NEWN(scratch, bool, n + 1);
    for (uint32_t i = 0; i < art->ncode; i++) {
        uint32_t to = (uint32_t)shape_inst(v->shapes, i)->imm;
        if (is_jump(shape_inst(v->shapes, i)) && to <= i && barriers[i] > barriers[to])
            v->cleared[v->target[to]] = true;
    }
}

static void sems_min(Sems *into, const Sems *with) {
    for (int s = 0; s < SEM_USER; s++)
        if (with->n[s] < into->n[s])
            into->n[s] = with->n[s];
}

// Counts on entry to instruction pc, where `now` holds those of the way down (if there is one).
static void enter(Verify *v, Sems *now, bool falls_in) {
    uint32_t t = v->straight ? 0 : v->target[v->pc];
    if (!t && falls_in)
        return;
    forget_weights(v);
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

static bool waits_are_met(const Verify *v, const Sems *now) {
    const IsaShape *shape = &v->shapes->at[v->shapes->of[v->pc]];
    const uint8_t *record = shape_record(v->shapes, v->pc);
    bool met = true;
    for (int w = 0; w < 2; w++) {
        int sem = shape->in.wait_sem[w];
        met &= sem == SEM_NONE || sem >= SEM_USER || le_load32(record + shape->at[w]) <= now->n[sem];
    }
    return met;
}

static void check_waits(const Verify *v, const Sems *now) {
    IsaInst full = shapes_inst(v->shapes, v->pc), *in = &full;
    for (int w = 0; w < 2; w++) {
        int sem = in->wait_sem[w];
        if (sem == SEM_NONE || sem >= SEM_USER || in->wait_val[w] <= now->n[sem])
            continue;
        char name[ISA_SEM_NAME];
        isa_sem_name(sem, name);
        fail(v,
             "waits for %s>=%u, but only %u such instructions are sure to have run since the last "
             "barrier",
             name, in->wait_val[w], now->n[sem]);
    }
}

static void enter_loop(Verify *v, Sems *now) {
    const CodeLoop *l = &v->loops.at[v->loops.inner[v->pc + 1] - 1];
    if (l->has_barrier)
        *now = (Sems){0};
    if (l->has_weights)
        forget_weights(v);
    v->at_loop[l - v->loops.at] = *now;
}

// Behind a loop: its body has run trips times, or, when that is not known, perhaps never.
static void leave_loop(Verify *v, Sems *now) {
    const CodeLoop *l = &v->loops.at[v->loops.inner[v->pc] - 1];
    const Sems *begin = &v->at_loop[l - v->loops.at];
    for (int s = 0; s < SEM_USER && !l->has_barrier; s++) {
        uint64_t each = now->n[s] - begin->n[s], all = l->trips * each;
        bool fits = !each || (all / each == l->trips && all <= UINT32_MAX - begin->n[s]);
        now->n[s] = fits ? begin->n[s] + (uint32_t)all : UINT32_MAX;
    }
    if (!l->trips && l->has_barrier)
        *now = (Sems){0};
    if (!l->trips && l->has_weights)
        forget_weights(v);
}

static void check_code(Verify *v) {
    const Artifact *art = v->art;
    Sems now = {0};
    bool falls_in = true;
    for (uint32_t i = 0; i < art->ncode; i++) {
        uint32_t number = v->shapes->of[i];
        const IsaInst *in = &v->shapes->at[number].in;
        const Bounds *b = &v->bounds[number];
        v->pc = i;
        if (!v->straight || !falls_in)
            enter(v, &now, falls_in);
        if (!v->straight)
            regs_enter(&v->regs, i);
        if (b->matters || v->doubt[i])
            check_inst(v, in, number);
        if (b->waits && !waits_are_met(v, &now))
            check_waits(v, &now);
        now.n[b->sem] += now.n[b->sem] != UINT32_MAX;
        falls_in = true;
        if (!b->control)
            continue;
        if (!v->straight)
            regs_step(&v->regs, in, i);
        if (is_jump(in))
            leave_forward(v, in, &now);
        if (in->op == ISA_LOOP)
            enter_loop(v, &now);
        if (in->op == ISA_ENDLOOP)
            leave_loop(v, &now);
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

// A number in 1 … max; 0 when there is none.
static uint64_t sharding_count(const char **s, uint64_t max) {
    uint64_t n = 0;
    for (; **s >= '0' && **s <= '9' && n <= max; (*s)++)
        n = n * 10 + (uint64_t)(**s - '0');
    return n <= max ? n : 0;
}

// "0;1024x4,4x1": counts and strides that name each of the devices once.
static bool shape_ok(const char *s, uint32_t devices) {
    IdShape shape = {0};
    if (*s++ != '0')
        return false;
    for (; *s && shape.dims < SHAPE_DIMS; shape.dims++) {
        if (*s++ != (shape.dims ? ',' : ';'))
            return false;
        shape.dim[shape.dims].count = (uint32_t)sharding_count(&s, devices);
        if (*s++ != 'x')
            return false;
        shape.dim[shape.dims].stride = (int64_t)sharding_count(&s, devices);
    }
    return !*s && shape_count(&shape) == devices && shape_is_whole(&shape);
}

// "2,1+2|0,1,2,3": a number of parts for each dimension, then, behind +, of terms; their product divides
// the devices, each of which stands there once.
static bool sharding_ok(const ArtValue *v, uint32_t devices, uint8_t *seen) {
    const char *s = v->sharding ? v->sharding : "";
    uint64_t parts = 1;
    if (!*s)
        return true;
    memset(seen, 0, devices);
    for (int i = 0; i <= v->rank; i++) {
        bool terms = i == v->rank;
        if (terms && *s != '+')
            break;
        if ((terms || i) && *s++ != (terms ? '+' : ','))
            return false;
        uint64_t n = sharding_count(&s, devices);
        if (!n || (parts *= n) > devices)
            return false;
    }
    if (devices > COMM_RANKS_MAX && *s == '|' && strchr(s, ';'))
        return shape_ok(s + 1, devices) && devices % parts == 0;
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

static void check_count(Verify *v) {
    uint32_t most = v->chip->instructions;
    if (!most || v->art->ncode <= most)
        return;
    v->pc = most;
    ctx_hint(v->ctx, "smaller batches or shapes, loops instead of unrolled code, or more devices");
    fail(v, "the program has %u instructions, the chip takes %u", v->art->ncode, most);
}

static void look_at_shapes(Verify *v, Arena *scratch) {
    const Artifact *art = v->art;
    v->fits = ARENA_NEWN(scratch, const IsaInst *, (size_t)v->shapes->n + 1);
    v->bounds = bounds_make(scratch, v->shapes, v->chip);
    v->doubt = bounds_doubt(scratch, art, v->shapes, v->bounds, v->chip, v->pool);
    v->straight = true;
    for (uint32_t i = 0; i < v->shapes->n; i++) {
        const IsaInst *in = &v->shapes->at[i].in;
        bool plain = isa_rows[in->op].cost == COST_BARRIER || in->op == ISA_HALT;
        v->straight &= !v->bounds[i].control || plain;
    }
}

static void verify_all(Verify *v, Arena *scratch) {
    v->shapes = v->art->shapes ? v->art->shapes : shapes_find(scratch, v->art->code, v->art->ncode);
    check_count(v);
    check_values(v, scratch);
    check_loops(v, scratch);
    check_locs(v);
    look_at_shapes(v, scratch);
    const char *bad = v->straight ? NULL : code_loops(scratch, v->art, &v->loops, &v->pc);
    if (bad)
        fail(v, "%s", bad);
    v->at_loop = ARENA_NEWN(scratch, Sems, v->loops.n + 1);
    regs_init(&v->regs, &v->loops);
    find_targets(v, scratch);
    for (uint32_t i = 0; i < v->art->nkerns; i++) {
        check_kernel_tensors(v, i);
        check_kernel_overlap(v, i, scratch);
    }
    check_code(v);
    kern_verify(v->ctx, scratch, v->art->kerns, v->art->nkerns, v->name);
}

void artifact_verify(Ctx *ctx, const Artifact *art, const char *name) {
    artifact_verify_for(ctx, art, name, &isa_chip_largest, NULL);
}

static void verify_one(Ctx *ctx, const Artifact *art, const char *name, const IsaChip *chip, Pool *pool) {
    Verify v = {.ctx = ctx, .art = art, .name = name, .chip = chip, .pool = pool};
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

void artifact_verify_for(Ctx *ctx, const Artifact *art, const char *name, const IsaChip *chip, Pool *pool) {
    IsaChip limits = *chip; // the host's arrays have the sizes of the largest
    const IsaChip *most = &isa_chip_largest;
    limits.gen = limits.gen < most->gen ? limits.gen : most->gen;
    limits.sbuf_bytes = limits.sbuf_bytes < most->sbuf_bytes ? limits.sbuf_bytes : most->sbuf_bytes;
    limits.psum_bytes = limits.psum_bytes < most->psum_bytes ? limits.psum_bytes : most->psum_bytes;
    verify_one(ctx, art, name, &limits, pool);
    if (art->peer)
        verify_one(ctx, art->peer, name, &limits, pool);
}

static bool is_dynamic_shape(const IsaInst *in) {
    bool sems = in->upd_sem;
    for (int w = 0; w < 2; w++)
        sems |= in->wait_sem[w] >= SEM_USER && in->wait_sem[w] < SEM_BACK;
    return sems || in->reg_d[0] || in->reg_s[0] || in->reg_t[0];
}

uint8_t *artifact_dynamic(Arena *a, const Artifact *art) {
    uint8_t *bits = ARENA_NEWN(a, uint8_t, (size_t)art->ncode + 1);
    bool any = !art->shapes;
    for (uint32_t i = 0; !any && i < art->shapes->n; i++)
        any = is_dynamic_shape(&art->shapes->at[i].in);
    if (!any)
        return bits;
    CodeLoops loops;
    RegState regs;
    uint32_t pc;
    code_loops(a, art, &loops, &pc);
    regs_init(&regs, &loops);
    for (uint32_t i = 0; i < art->ncode; i++) {
        const IsaInst *in = artifact_shape(art, i); // terms do not depend on where addresses point
        regs_enter(&regs, i);
        if (in->reg_d[0] || in->reg_s[0] || in->reg_t[0]) {
            IsaAccess access[ISA_ACCESS_MAX];
            __int128 lo, hi;
            int n = isa_accesses(in, isa_row_mask(in->op), access);
            for (int k = 0; k < n; k++)
                bits[i] |= regs_terms(&regs, &access[k], &lo, &hi) ? 0 : ART_DYN_ADDR;
        }
        for (int w = 0; w < 2; w++)
            if (in->wait_sem[w] != SEM_NONE && in->wait_sem[w] < SEM_BACK && in->wait_sem[w] >= SEM_USER)
                bits[i] |= ART_DYN_SEMS;
        if (in->upd_sem)
            bits[i] |= ART_DYN_SEMS;
        regs_step(&regs, in, i);
    }
    return bits;
}
