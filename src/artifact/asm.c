// SPDX-License-Identifier: Apache-2.0
// asm.c — a whole program from text: what `otrn dis` prints, and kernels written by hand.
//
//   .name "double"
//   .arg f32[2,3] "x"
//   .result f32[2,3]
//   .kernel 0 stablehlo.add (arg0[0]: f32[2,3], arg0[0]: f32[2,3]) -> (result0[0]: f32[2,3])
//   gpsimd: kernel imm=0
//
// One directive or instruction a line, '#' begins a comment. Everything may be left out: names are
// empty, the target is trn2, waits are none, and a program that does not end in halt or jump gets a
// halt. Jump targets and loop borders are labels (`L0:`) or instruction numbers; `@3` after an
// instruction is the number of its .loc line. Directives:
//   .name "…"  .target "…"  .producer "…"  .scratch BYTES  .precision "…"  .rounding stochastic
//   .core 1                             what follows is the program of the second core
//   .arg TYPE ["name"] [donated] [pinned_host] [sharding="…"]
//   .result TYPE ["name"] [alias=ARG] [pinned_host] [sharding="…"]        .partitions N
//   .const HEX | .const zero BYTES | .const TYPE NUMBERS…     each appends to the constants
//   .loc N "file":LINE:COL op=OP "name"                        numbered from 1
//   .kernel N …                         kern_text.c; numbered from 0
//   .loop BEGIN END trips=N             0 or left out: not known
//   .live BYTES @LOC                    a tensor alive at the memory peak
// and for kernels (spec/assembly.md; asm_view.c, asm_block.c):
//   .param NAME=NUMBER                  a number that can be given from outside
//   .type NAME=TYPE                     an element type that can be given from outside
//   .cores 2                            the text is read for each core of a pair, with `core` 0 and 1
//   .input .output .tensor .sbuf .psum  NAME TYPE[…]
//   .sync auto                          waits follow from the memory that instructions touch
#include <assert.h>
#include <inttypes.h>

#include "artifact/asm.h"
#include "coll/groups.h"

void asm_arg(Asm *s, bool is_result, ArtValue v) {
    Txt *t = &s->t;
    if ((uint64_t)s->args.n + s->results.n + SEG_FIRST_ARG >= SEG_MAX)
        txt_fail(t, "more than %u arguments and results", SEG_MAX);
    if (is_result)
        VEC_PUSH(t->arena, &s->results, v);
    else
        VEC_PUSH(t->arena, &s->args, v);
    if (!is_result && s->results.n)
        txt_fail(t, "arguments come before results");
    s->names.nargs = s->args.n;
    s->names.nresults = s->results.n;
}

static void parse_value(Asm *s, bool is_result) {
    Txt *t = &s->t;
    ArtValue v = {.alias = -1, .name = ""};
    v.dtype = (uint8_t)txt_dtype(t);
    int64_t bytes = (int64_t)dtype_bytes(v.dtype);
    if (txt_take(t, "[")) {
        while (!txt_take(t, "]")) {
            if (v.rank)
                txt_need(t, ",");
            if (v.rank == OTRN_MAX_RANK)
                txt_fail(t, "a value has at most %d dimensions", OTRN_MAX_RANK);
            int64_t d = v.dims[v.rank++] = txt_i64(t, 0, INT64_MAX, "dimension");
            if (__builtin_mul_overflow(bytes, d, &bytes) || bytes > (int64_t)1 << 40)
                txt_fail(t, "a value of more than 2^40 bytes");
        }
    }
    v.bytes = (uint64_t)bytes;
    if (txt_peek(t) == '"')
        v.name = txt_cstring(t);
    if (!is_result && txt_take_word(t, "donated"))
        v.donated = 1;
    if (is_result && txt_take_word(t, "alias")) {
        txt_need(t, "=");
        v.alias = (int32_t)txt_i64(t, 0, INT32_MAX, "alias");
    }
    if (txt_take_word(t, "pinned_host"))
        v.memory = ART_PINNED_HOST;
    if (txt_take_word(t, "sharding")) {
        txt_need(t, "=");
        v.sharding = txt_cstring(t);
    }
    asm_arg(s, is_result, v);
}

static int hex_value(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static bool hex_append(TxtWord w, Buf *out) {
    if (w.n % 2)
        return false;
    buf_reserve(out, w.n / 2);
    for (uint32_t i = 0; i < w.n; i += 2) {
        int hi = hex_value(w.s[i]), lo = hex_value(w.s[i + 1]);
        if (hi < 0 || lo < 0)
            return false;
        put_u8(out, (uint8_t)(hi << 4 | lo));
    }
    return true;
}

static void parse_typed_consts(Txt *t, int dtype, Buf *out) {
    size_t n = dtype_bytes(dtype);
    while (txt_peek(t)) {
        uint8_t elem[16] = {0};
        if (dtype_is_complex(dtype) || !n)
            txt_fail(t, "constants of type %s are written in hex", dtype_row(dtype)->name);
        if (dtype_is_float(dtype))
            dtype_from_f64(dtype, elem, txt_f64(t, "constant"));
        else
            dtype_from_i64(dtype, elem, txt_i64(t, INT64_MIN, INT64_MAX, "constant"));
        buf_put(out, elem, n);
    }
}

static void parse_const(Asm *s) {
    Txt *t = &s->t;
    if (txt_take_word(t, "zero")) {
        uint64_t n = txt_u64(t, (uint64_t)1 << 32, "bytes");
        buf_reserve(&s->consts, n);
        if (n)
            memset(s->consts.at + s->consts.n, 0, n);
        s->consts.n += n;
        return;
    }
    Txt begin = *t;
    TxtWord w = txt_word(t, "hex bytes, `zero` or an element type");
    size_t before = s->consts.n;
    if (txt_peek(t) != '<' && hex_append(w, &s->consts) && !txt_peek(t))
        return;
    s->consts.n = before;
    *t = begin;
    parse_typed_consts(t, txt_dtype(t), &s->consts);
}

static int parse_op_name(Txt *t) {
    Txt begin = *t;
    TxtWord w = txt_word(t, "an operation");
    int op = dict_op_find(w.s, w.n);
    if (op < 0)
        txt_fail(&begin, "unknown operation `%.*s`", (int)w.n, w.s);
    return op;
}

static void need_number(Txt *t, uint32_t want, const char *what) {
    Txt begin = *t;
    if (txt_u64(t, UINT32_MAX, what) != want)
        txt_fail(&begin, "the next %s has number %u", what, want);
}

static void parse_loc(Asm *s) {
    Txt *t = &s->t;
    ArtLoc l = {.file = "", .name = ""};
    need_number(t, s->locs.n, ".loc");
    l.file = txt_cstring(t);
    if (txt_take(t, ":"))
        l.line = (uint32_t)txt_u64(t, UINT32_MAX, "line");
    if (txt_take(t, ":"))
        l.col = (uint32_t)txt_u64(t, UINT32_MAX, "column");
    if (txt_take_word(t, "op")) {
        txt_need(t, "=");
        l.op = (uint16_t)parse_op_name(t);
    }
    if (txt_peek(t) == '"')
        l.name = txt_cstring(t);
    VEC_PUSH(t->arena, &s->locs, l);
}

static uint32_t parse_loc_ref(Asm *s) {
    Txt begin = s->t;
    uint32_t n = (uint32_t)txt_u64(&s->t, UINT32_MAX, "location");
    if (n >= s->locs.n)
        txt_fail(&begin, "there is no .loc %u before this line", n);
    return n;
}

// A label or an instruction number; labels are resolved at the end.
static uint32_t parse_border(Asm *s, int kind) {
    Txt *t = &s->t;
    char c = txt_peek(t);
    if (c >= '0' && c <= '9')
        return (uint32_t)txt_u64(t, ASM_CODE_MAX, "instruction number");
    Fixup f = {txt_word(t, "a label or an instruction number"), kind, s->loops.n};
    VEC_PUSH(t->arena, &s->fixups, f);
    return 0;
}

static void parse_loop(Asm *s) {
    Txt *t = &s->t;
    ArtLoop l = {.begin = parse_border(s, FIX_LOOP_BEGIN)};
    l.end = parse_border(s, FIX_LOOP_END);
    if (txt_take_word(t, "trips")) {
        txt_need(t, "=");
        l.trips = txt_u64(t, UINT64_MAX, "trips");
    }
    VEC_PUSH(t->arena, &s->loops, l);
}

static void parse_live(Asm *s) {
    ArtLive l = {.bytes = txt_u64(&s->t, UINT64_MAX, "bytes")};
    if (txt_take(&s->t, "@"))
        l.loc = parse_loc_ref(s);
    VEC_PUSH(s->t.arena, &s->live, l);
}

// What a parameter is given among "M=512,N=3"; false when it is not there.
static bool def_find(Asm *s, TxtWord name, Txt *out) {
    for (const char *p = s->defs; p && *p; p += strcspn(p, ","), p += *p == ',') {
        size_t n = strcspn(p, "="), all = strcspn(p, ",");
        if (n != name.n || n >= all || memcmp(p, name.s, n))
            continue;
        *out = (Txt){.ctx = s->t.ctx, .arena = s->t.arena, .file = "-D", .line = 1, .col = 1, .begin = p,
                     .at = p + n + 1, .end = p + all};
        return true;
    }
    return false;
}

static void parse_param(Asm *s) {
    Txt begin = s->t;
    TxtWord name = txt_name(&s->t, "a name");
    txt_need(&s->t, "=");
    Val v = asm_val(s, &s->t);
    Txt given;
    if (def_find(s, name, &given)) {
        v = asm_val(s, &given);
        txt_end(&given);
    }
    Sym *y = asm_set(s, &begin, name);
    y->v = v;
    y->is_param = true;
    s->is_source = true;
}

static void parse_type(Asm *s) {
    Txt begin = s->t, given;
    TxtWord name = txt_name(&s->t, "a name");
    txt_need(&s->t, "=");
    int dtype = txt_dtype(&s->t);
    if (def_find(s, name, &given)) {
        dtype = txt_dtype(&given);
        txt_end(&given);
    }
    if (asm_find(s, name))
        txt_fail(&begin, "`%.*s` is taken already", (int)name.n, name.s);
    Sym *y = asm_set(s, &begin, name);
    y->kind = SYM_TYPE;
    y->dtype = (uint8_t)dtype;
    y->is_param = true;
    s->is_source = true;
}

int asm_dtype(Asm *s, Txt *t) {
    Txt begin = *t;
    char c = txt_peek(t);
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_') {
        const Sym *y = asm_find(s, txt_name(t, "a type"));
        if (y && y->kind == SYM_TYPE)
            return y->dtype;
    }
    *t = begin;
    return txt_dtype(t);
}

// `.cores 2`: this text is read twice; `core` tells for which one.
static void parse_cores(Asm *s) {
    Txt begin = s->t;
    if (txt_i64(&s->t, 2, 2, "number of cores") != 2 || s->core >= 0 || s->has_second)
        txt_fail(&begin, "a kernel says once that it is for two cores");
    s->art->cores = 2;
    s->core = s->defs_core;
    asm_set(s, &begin, (TxtWord){.s = "core", .n = 4, .line = s->t.line, .col = 1})->v = (Val){.a = {.c = s->core}};
    s->is_source = true;
}

void asm_push(Asm *s, const IsaInst *in, uint32_t loc) {
    if (s->code.n >= ASM_CODE_MAX)
        txt_fail(&s->t, "more than %u instructions", ASM_CODE_MAX);
    VEC_PUSH(s->t.arena, &s->code, *in);
    VEC_PUSH(s->t.arena, &s->code_loc, loc);
}

static void add_halt(Asm *s) {
    uint8_t last = s->code.n ? s->code.at[s->code.n - 1].op : ISA_NOP;
    if (last == ISA_HALT || last == ISA_JUMP)
        return;
    IsaInst halt = {.op = ISA_HALT, .engine = ENG_SYNC, .wait_sem = {SEM_NONE, SEM_NONE}};
    asm_push(s, &halt, 0);
}

// `.core 1`, as a listing has it.
static void parse_core(Asm *s) {
    Txt begin = s->t;
    txt_i64(&s->t, 1, 1, "core");
    if (s->has_second || s->core >= 0 || s->depth)
        txt_fail(&begin, "the second core's program begins once, outside of blocks");
    add_halt(s);
    s->has_second = true;
    s->second_code = s->code.n;
    s->second_loops = s->loops.n;
}

static void check_defs(Asm *s) {
    for (const char *p = s->defs; p && *p; p += strcspn(p, ","), p += *p == ',') {
        TxtWord name = {.s = p, .n = (uint32_t)strcspn(p, "=,")};
        const Sym *y = asm_find(s, name);
        if (!y || !y->is_param)
            ctx_fail(s->t.ctx, OTRN_USAGE, (Place){.file = s->t.file}, "-D %.*s: the kernel has no such .param",
                     (int)name.n, p);
    }
}

static bool source_directive(Asm *s, TxtWord w) {
    static const struct {
        const char *name;
        int space;
        bool is_result, is_arg;
    } tensors[] = {{".input", SPACE_HBM, false, true}, {".output", SPACE_HBM, true, true},
                   {".tensor", SPACE_HBM, false, false}, {".sbuf", SPACE_SBUF, false, false},
                   {".psum", SPACE_PSUM, false, false}};
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        if (txt_word_is(w, tensors[i].name)) {
            asm_tensor(s, tensors[i].space, tensors[i].is_result, tensors[i].is_arg);
            return true;
        }
    if (txt_word_is(w, ".param")) {
        parse_param(s);
        return true;
    }
    if (txt_word_is(w, ".type")) {
        parse_type(s);
        return true;
    }
    if (txt_word_is(w, ".cores")) {
        parse_cores(s);
        return true;
    }
    if (!txt_word_is(w, ".sync"))
        return false;
    txt_need(&s->t, "auto");
    s->sync_auto = s->is_source = true;
    return true;
}

static void parse_directive(Asm *s) {
    Txt *t = &s->t, begin = *t;
    TxtWord w = txt_word(t, "a directive");
    if (source_directive(s, w))
        return;
    if (txt_word_is(w, ".name")) {
        s->art->name = txt_cstring(t);
    } else if (txt_word_is(w, ".target")) {
        s->art->target = txt_cstring(t);
    } else if (txt_word_is(w, ".producer")) {
        s->art->producer = txt_cstring(t);
    } else if (txt_word_is(w, ".precision")) {
        s->art->precision = txt_cstring(t);
    } else if (txt_word_is(w, ".rounding")) {
        txt_need(t, "stochastic");
        s->art->flags |= ART_STOCHASTIC;
    } else if (txt_word_is(w, ".core")) {
        parse_core(s);
    } else if (txt_word_is(w, ".partitions")) {
        s->art->partitions = (uint32_t)txt_i64(t, 2, PROGRAM_DEVICES_MAX, "number of devices");
    } else if (txt_word_is(w, ".scratch")) {
        s->art->scratch_bytes = txt_u64(t, (uint64_t)1 << 40, "bytes");
    } else if (txt_word_is(w, ".arg") || txt_word_is(w, ".result")) {
        parse_value(s, txt_word_is(w, ".result"));
    } else if (txt_word_is(w, ".const")) {
        parse_const(s);
    } else if (txt_word_is(w, ".loc")) {
        parse_loc(s);
    } else if (txt_word_is(w, ".kernel")) {
        need_number(t, s->kerns.n, ".kernel");
        Kern k;
        kern_parse(t, &s->names, &k);
        VEC_PUSH(t->arena, &s->kerns, k);
    } else if (txt_word_is(w, ".loop")) {
        parse_loop(s);
    } else if (txt_word_is(w, ".live")) {
        parse_live(s);
    } else {
        ctx_hint(t->ctx, "directives: .name .target .producer .scratch .arg .result .const .loc "
                         ".kernel .loop .live .precision .rounding .core .param .type .cores .input .output "
                         ".tensor .sbuf .psum .sync");
        txt_fail(&begin, "unknown directive `%.*s`", (int)w.n, w.s);
    }
}

// --- labels --------------------------------------------------------------------------------------

static uint32_t *label_slot(Asm *s, TxtWord name) {
    uint32_t at = (uint32_t)hash64(0, name.s, name.n) & (s->nlabel_slots - 1);
    for (;; at = (at + 1) & (s->nlabel_slots - 1)) {
        uint32_t have = s->label_slots[at];
        if (!have)
            return &s->label_slots[at];
        TxtWord other = s->labels.at[have - 1].name;
        if (other.n == name.n && !memcmp(other.s, name.s, name.n))
            return &s->label_slots[at];
    }
}

static void label_slots_grow(Asm *s) {
    s->nlabel_slots = s->nlabel_slots ? 2 * s->nlabel_slots : 64;
    s->label_slots = ARENA_NEWN(s->t.arena, uint32_t, s->nlabel_slots);
    for (uint32_t i = 0; i < s->labels.n; i++)
        *label_slot(s, s->labels.at[i].name) = i + 1;
}

static void add_label(Asm *s, TxtWord name, const Txt *begin) {
    if (2 * s->labels.n >= s->nlabel_slots)
        label_slots_grow(s);
    uint32_t *slot = label_slot(s, name);
    if (*slot)
        txt_fail(begin, "label `%.*s` stands already on line %u", (int)name.n, name.s,
                 s->labels.at[*slot - 1].name.line);
    Label l = {name, s->code.n};
    VEC_PUSH(s->t.arena, &s->labels, l);
    *slot = s->labels.n;
}

static void resolve(Asm *s) {
    for (uint32_t i = 0; i < s->fixups.n; i++) {
        const Fixup *f = &s->fixups.at[i];
        uint32_t label = s->nlabel_slots ? *label_slot(s, f->name) : 0;
        if (!label)
            ctx_fail(s->t.ctx, OTRN_PARSE, (Place){s->t.file, f->name.line, f->name.col},
                     "no label `%.*s`", (int)f->name.n, f->name.s);
        uint32_t pc = s->labels.at[label - 1].pc;
        if (f->kind == FIX_JUMP)
            s->code.at[f->at].imm = (int32_t)pc;
        else if (f->kind == FIX_LOOP_BEGIN)
            s->loops.at[f->at].begin = pc;
        else
            s->loops.at[f->at].end = pc;
    }
}

// --- lines ---------------------------------------------------------------------------------------

// "name:" at the cursor that is not an engine's name; moves past it.
static bool take_label(Asm *s) {
    Txt *t = &s->t, begin = *t;
    char c = txt_peek(t);
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'))
        return false;
    TxtWord w = txt_word(t, "a label");
    bool is_engine = false;
    for (int e = 0; e < ENG_COUNT; e++)
        is_engine |= txt_word_is(w, engine_names[e]);
    if (is_engine || !txt_take(t, ":")) {
        *t = begin;
        return false;
    }
    add_label(s, w, &begin);
    return true;
}

uint32_t asm_line_loc(Asm *s) {
    const ArtLoc *last = &s->locs.at[s->locs.n - 1];
    if (!s->is_source)
        return 0;
    if (s->locs.n > 1 && last->line == s->t.line && !strcmp(last->file, s->t.file))
        return s->locs.n - 1;
    for (uint32_t i = 1; i < s->locs.n && s->depth; i++) // a line of a block that comes again
        if (s->locs.at[i].line == s->t.line && !strcmp(s->locs.at[i].file, s->t.file))
            return i;
    VEC_PUSH(s->t.arena, &s->locs, (ArtLoc){.file = s->t.file, .name = "", .line = s->t.line, .col = 1});
    return s->locs.n - 1;
}

static void parse_instruction(Asm *s) {
    Txt *t = &s->t;
    IsaInst in;
    TxtWord label;
    s->view_fields = 0;
    isa_parse_named(t, &s->names, &in, &label);
    if (label.s) {
        Fixup f = {label, FIX_JUMP, s->code.n};
        VEC_PUSH(t->arena, &s->fixups, f);
    }
    uint32_t loc = txt_take(t, "@") ? parse_loc_ref(s) : asm_line_loc(s);
    asm_push(s, &in, loc);
}

void asm_line(Asm *s) {
    while (take_label(s))
        ;
    char c = txt_peek(&s->t);
    if (c == '.')
        parse_directive(s);
    else if (c && !asm_statement(s))
        parse_instruction(s);
    txt_end(&s->t);
}

static Artifact *finish(Asm *s) {
    Artifact *art = s->art;
    uint32_t ncode = s->has_second ? s->second_code : s->code.n, nloops = s->has_second ? s->second_loops : s->loops.n;
    art->nargs = s->args.n, art->args = s->args.at;
    art->nresults = s->results.n, art->results = s->results.at;
    art->const_bytes = s->consts.n;
    art->consts = artifact_const_dup(s->t.arena, s->consts.at, s->consts.n);
    art->ncode = ncode, art->code = s->code.at, art->code_loc = s->code_loc.at;
    art->nkerns = s->kerns.n, art->kerns = s->kerns.at;
    art->nlocs = s->locs.n, art->locs = s->locs.at;
    art->nloops = nloops, art->loops = s->loops.at;
    art->nlive = s->live.n, art->live = s->live.at;
    if (!s->has_second)
        return art;
    for (uint32_t i = ncode; i < s->code.n; i++) { // its own numbers from 0
        int cost = isa_rows[s->code.at[i].op].cost;
        if (cost == COST_BRANCH || cost == COST_LOOP)
            s->code.at[i].imm -= (int32_t)ncode;
    }
    for (uint32_t i = nloops; i < s->loops.n; i++)
        s->loops.at[i].begin -= ncode, s->loops.at[i].end -= ncode;
    artifact_pair(s->t.arena, art, &(Artifact){.code = s->code.at + ncode, .code_loc = s->code_loc.at + ncode, .ncode = s->code.n - ncode,
                                               .loops = s->loops.at + nloops, .nloops = s->loops.n - nloops});
    return art;
}

static Artifact *assemble_for(Ctx *ctx, Arena *a, const char *name, const char *text, size_t size, const char *defs,
                              int core) {
    Asm *s = ARENA_NEW(a, Asm);
    *s = (Asm){.t = {.ctx = ctx, .arena = a, .file = arena_strndup(a, name, strlen(name)), .col = 1},
               .consts = {.arena = a}, .next = text, .end = text + size, .next_line = 1, .defs = defs,
               .last_reg = ISA_REGS, .core = -1, .defs_core = core};
    s->art = ARENA_NEW(a, Artifact);
    s->art->name = s->art->producer = s->art->precision = "";
    s->art->target = "trn2";
    VEC_PUSH(a, &s->locs, ((ArtLoc){.file = "", .name = ""}));
    asm_hooks(s);
    asm_block(s, false);
    add_halt(s);
    resolve(s);
    check_defs(s);
    Artifact *art = finish(s);
    if (s->sync_auto)
        artifact_sync(ctx, a, art, name);
    if (s->sync_auto && art->peer)
        artifact_sync(ctx, a, art->peer, name);
    return art;
}

// The same memory for both: what is declared may not depend on the core.
static bool same_memory(const Artifact *a, const Artifact *b) {
    bool same = a->nargs == b->nargs && a->nresults == b->nresults && a->scratch_bytes == b->scratch_bytes &&
                a->const_bytes == b->const_bytes && a->nkerns == b->nkerns &&
                !memcmp(a->consts, b->consts, (size_t)a->const_bytes);
    for (uint32_t i = 0; same && i < a->nargs; i++)
        same = a->args[i].bytes == b->args[i].bytes && a->args[i].dtype == b->args[i].dtype;
    for (uint32_t i = 0; same && i < a->nresults; i++)
        same = a->results[i].bytes == b->results[i].bytes && a->results[i].dtype == b->results[i].dtype;
    return same;
}

// Both cores' code in one program; the second one's locations follow the first one's.
static void join(Ctx *ctx, Arena *a, const char *name, Artifact *art, Artifact *second) {
    if (!same_memory(art, second))
        ctx_fail(ctx, OTRN_VERIFY, (Place){.file = name},
                 "arguments, results, HBM tensors and constants must be the same on both cores");
    ArtLoc *locs = ARENA_NEWN(a, ArtLoc, (size_t)art->nlocs + second->nlocs);
    memcpy(locs, art->locs, art->nlocs * sizeof *locs);
    memcpy(locs + art->nlocs, second->locs + 1, (second->nlocs - 1u) * sizeof *locs);
    for (uint32_t i = 0; i < second->ncode; i++)
        second->code_loc[i] += second->code_loc[i] ? art->nlocs - 1 : 0;
    art->locs = locs;
    art->nlocs += second->nlocs - 1;
    artifact_pair(a, art, second);
}

Artifact *artifact_assemble(Ctx *ctx, Arena *a, const char *name, const char *text, size_t size, const char *defs) {
    Artifact *art = assemble_for(ctx, a, name, text, size, defs, 0);
    if (art->cores == 2 && !art->peer)
        join(ctx, a, name, art, assemble_for(ctx, a, name, text, size, defs, 1));
    return art;
}

Artifact *artifact_parse(Ctx *ctx, Arena *a, const char *name, const char *text, size_t size) {
    return artifact_assemble(ctx, a, name, text, size, NULL);
}
