// SPDX-License-Identifier: Apache-2.0
// artifact_text.c — a whole program as text: what `otrn dis` prints and `otrn as` reads.
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
//   .name "…"  .target "…"  .producer "…"  .scratch BYTES
//   .arg TYPE ["name"] [donated] [pinned_host] [sharding="…"]
//   .result TYPE ["name"] [alias=ARG] [pinned_host] [sharding="…"]        .partitions N
//   .const HEX | .const zero BYTES | .const TYPE NUMBERS…     each appends to the constants
//   .loc N "file":LINE:COL op=OP "name"                        numbered from 1
//   .kernel N …                         kern_text.c; numbered from 0
//   .loop BEGIN END trips=N             0 or left out: not known
//   .live BYTES @LOC                    a tensor alive at the memory peak
#include <assert.h>
#include <inttypes.h>

#include "artifact/artifact.h"
#include "isa/text.h"

#define HEX_BYTES_PER_LINE 48
#define ZERO_RUN_MIN 48

// --- print ---------------------------------------------------------------------------------------

static void print_value(const char *directive, const ArtValue *v, Buf *out) {
    buf_printf(out, "%s %s[", directive, dtype_row(v->dtype)->name);
    for (int i = 0; i < v->rank; i++)
        buf_printf(out, "%s%" PRId64, i ? "," : "", v->dims[i]);
    buf_puts(out, "]");
    if (v->name && v->name[0]) {
        buf_puts(out, " ");
        txt_print_string(out, v->name, strlen(v->name));
    }
    if (v->donated)
        buf_puts(out, " donated");
    if (v->alias != -1)
        buf_printf(out, " alias=%d", v->alias);
    if (v->memory)
        buf_puts(out, " pinned_host");
    if (v->sharding && v->sharding[0]) {
        buf_puts(out, " sharding=");
        txt_print_string(out, v->sharding, strlen(v->sharding));
    }
    buf_puts(out, "\n");
}

static size_t zero_run(const uint8_t *p, size_t n) {
    size_t i = 0;
    while (i < n && !p[i])
        i++;
    return i;
}

static void print_consts(const Artifact *art, Buf *out) {
    static const char digits[] = "0123456789abcdef";
    for (size_t at = 0; at < art->const_bytes;) {
        size_t left = (size_t)art->const_bytes - at, zeros = zero_run(art->consts + at, left);
        if (zeros >= ZERO_RUN_MIN) {
            buf_printf(out, ".const zero %zu\n", zeros);
            at += zeros;
            continue;
        }
        size_t n = left < HEX_BYTES_PER_LINE ? left : HEX_BYTES_PER_LINE;
        char line[2 * HEX_BYTES_PER_LINE];
        for (size_t i = 0; i < n; i++) {
            line[2 * i] = digits[art->consts[at + i] >> 4];
            line[2 * i + 1] = digits[art->consts[at + i] & 15];
        }
        buf_puts(out, ".const ");
        buf_put(out, line, 2 * n);
        buf_puts(out, "\n");
        at += n;
    }
}

static void print_loc(const ArtLoc *l, uint32_t number, Buf *out) {
    const char *file = l->file ? l->file : "", *name = l->name ? l->name : "";
    buf_printf(out, ".loc %u ", number);
    txt_print_string(out, file, strlen(file));
    buf_printf(out, ":%u:%u", l->line, l->col);
    if (l->op) {
        buf_puts(out, " op=");
        dict_op_name(l->op, out);
    }
    if (name[0]) {
        buf_puts(out, " ");
        txt_print_string(out, name, strlen(name));
    }
    buf_puts(out, "\n");
}

// Labels stand where jumps lead and loops begin and end; numbered down the code.
static uint32_t *find_labels(const Artifact *art, Arena *a) {
    uint32_t *labels = ARENA_NEWN(a, uint32_t, (size_t)art->ncode + 1);
    for (uint32_t i = 0; i < art->ncode; i++) {
        uint32_t to = (uint32_t)art->code[i].imm;
        int cost = isa_rows[art->code[i].op].cost;
        if ((cost == COST_BRANCH || cost == COST_LOOP) && to < art->ncode)
            labels[to] = 1;
    }
    for (uint32_t i = 0; i < art->nloops; i++)
        labels[art->loops[i].begin] = labels[art->loops[i].end] = 1;
    for (uint32_t i = 0, n = 0; i <= art->ncode; i++)
        if (labels[i])
            labels[i] = ++n;
    return labels;
}

static void print_header(const Artifact *art, Buf *out) {
    const char *lines[][2] = {
        {".name ", art->name}, {".target ", art->target}, {".producer ", art->producer}};
    for (int i = 0; i < 3; i++) {
        const char *text = lines[i][1] ? lines[i][1] : "";
        buf_puts(out, lines[i][0]);
        txt_print_string(out, text, strlen(text));
        buf_puts(out, "\n");
    }
    if (art->partitions > 1)
        buf_printf(out, ".partitions %u\n", art->partitions);
    if (art->scratch_bytes)
        buf_printf(out, ".scratch %" PRIu64 "\n", art->scratch_bytes);
    for (uint32_t i = 0; i < art->nargs; i++)
        print_value(".arg", &art->args[i], out);
    for (uint32_t i = 0; i < art->nresults; i++)
        print_value(".result", &art->results[i], out);
    print_consts(art, out);
    for (uint32_t i = 1; i < art->nlocs; i++)
        print_loc(&art->locs[i], i, out);
}

// What a reader would otherwise look up: the kernel's op and results, as a comment.
static void print_kernel_note(const Artifact *art, const IsaInst *in, Buf *out) {
    if (isa_rows[in->op].cost != COST_KERNEL || (uint32_t)in->imm >= art->nkerns)
        return;
    buf_puts(out, "  # ");
    dict_op_name(art->kerns[in->imm].op, out);
}

static void print_code(const Artifact *art, const IsaNames *names, Buf *out) {
    for (uint32_t i = 0; i <= art->ncode; i++) {
        if (names->labels[i])
            buf_printf(out, "L%u:\n", names->labels[i] - 1);
        if (i == art->ncode)
            break;
        buf_puts(out, "  ");
        isa_print_named(&art->code[i], names, out);
        if (art->code_loc && art->code_loc[i])
            buf_printf(out, " @%u", art->code_loc[i]);
        print_kernel_note(art, &art->code[i], out);
        buf_puts(out, "\n");
    }
}

void artifact_print(const Artifact *art, Buf *out) {
    IsaNames names = {.nargs = art->nargs,
                      .nresults = art->nresults,
                      .ncode = art->ncode,
                      .labels = find_labels(art, out->arena)};
    print_header(art, out);
    for (uint32_t i = 0; i < art->nkerns; i++) {
        buf_printf(out, ".kernel %u ", i);
        kern_print(&art->kerns[i], &names, out);
        buf_puts(out, "\n");
    }
    const ArtLoop *loops = artifact_loops_sorted(art, out->arena);
    for (uint32_t i = 0; i < art->nloops; i++)
        buf_printf(out, ".loop L%u L%u trips=%" PRIu64 "\n", names.labels[loops[i].begin] - 1,
                   names.labels[loops[i].end] - 1, loops[i].trips);
    for (uint32_t i = 0; i < art->nlive; i++)
        buf_printf(out, ".live %" PRIu64 " @%u\n", art->live[i].bytes, art->live[i].loc);
    print_code(art, &names, out);
}

// --- parse ---------------------------------------------------------------------------------------

typedef struct Label {
    TxtWord name;
    uint32_t pc;
} Label;

typedef struct Fixup { // a place that names a label: `at` is an instruction, or a loop border
    TxtWord name;
    enum { FIX_JUMP, FIX_LOOP_BEGIN, FIX_LOOP_END } kind;
    uint32_t at;
} Fixup;

typedef struct Asm {
    Txt t;
    Artifact *art;
    IsaNames names;
    VEC(ArtValue) args;
    VEC(ArtValue) results;
    VEC(IsaInst) code;
    VEC(uint32_t) code_loc;
    VEC(Kern) kerns;
    VEC(ArtLoc) locs;
    VEC(ArtLoop) loops;
    VEC(ArtLive) live;
    VEC(Label) labels;
    VEC(Fixup) fixups;
    Buf consts;
    uint32_t *label_slots; // hash of label names to label number + 1
    uint32_t nlabel_slots;
} Asm;

#define CODE_MAX 0x40000000u

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
        return (uint32_t)txt_u64(t, CODE_MAX, "instruction number");
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

static void parse_directive(Asm *s) {
    Txt *t = &s->t, begin = *t;
    TxtWord w = txt_word(t, "a directive");
    if (txt_word_is(w, ".name")) {
        s->art->name = txt_cstring(t);
    } else if (txt_word_is(w, ".target")) {
        s->art->target = txt_cstring(t);
    } else if (txt_word_is(w, ".producer")) {
        s->art->producer = txt_cstring(t);
    } else if (txt_word_is(w, ".partitions")) {
        s->art->partitions = (uint32_t)txt_i64(t, 2, OTRN_MAX_DEVICES, "number of devices");
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
                         ".kernel .loop .live");
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

static void parse_instruction(Asm *s) {
    Txt *t = &s->t;
    IsaInst in;
    TxtWord label;
    if (s->code.n >= CODE_MAX)
        txt_fail(t, "more than %u instructions", CODE_MAX);
    isa_parse_named(t, &s->names, &in, &label);
    if (label.s) {
        Fixup f = {label, FIX_JUMP, s->code.n};
        VEC_PUSH(t->arena, &s->fixups, f);
    }
    uint32_t loc = txt_take(t, "@") ? parse_loc_ref(s) : 0;
    VEC_PUSH(t->arena, &s->code, in);
    VEC_PUSH(t->arena, &s->code_loc, loc);
}

static void parse_line(Asm *s) {
    while (take_label(s))
        ;
    char c = txt_peek(&s->t);
    if (c == '.')
        parse_directive(s);
    else if (c)
        parse_instruction(s);
    txt_end(&s->t);
}

static void add_halt(Asm *s) {
    uint8_t last = s->code.n ? s->code.at[s->code.n - 1].op : ISA_NOP;
    if (last == ISA_HALT || last == ISA_JUMP)
        return;
    IsaInst halt = {.op = ISA_HALT, .engine = ENG_SYNC, .wait_sem = {SEM_NONE, SEM_NONE}};
    VEC_PUSH(s->t.arena, &s->code, halt);
    VEC_PUSH(s->t.arena, &s->code_loc, 0);
}

static Artifact *finish(Asm *s) {
    Artifact *art = s->art;
    art->nargs = s->args.n, art->args = s->args.at;
    art->nresults = s->results.n, art->results = s->results.at;
    art->const_bytes = s->consts.n;
    art->consts = artifact_const_dup(s->t.arena, s->consts.at, s->consts.n);
    art->ncode = s->code.n, art->code = s->code.at, art->code_loc = s->code_loc.at;
    art->nkerns = s->kerns.n, art->kerns = s->kerns.at;
    art->nlocs = s->locs.n, art->locs = s->locs.at;
    art->nloops = s->loops.n, art->loops = s->loops.at;
    art->nlive = s->live.n, art->live = s->live.at;
    return art;
}

Artifact *artifact_parse(Ctx *ctx, Arena *a, const char *name, const char *text, size_t size) {
    Asm s = {.t = {.ctx = ctx, .arena = a, .file = name, .col = 1}, .consts = {.arena = a}};
    s.art = ARENA_NEW(a, Artifact);
    s.art->name = s.art->producer = "";
    s.art->target = "trn2";
    VEC_PUSH(a, &s.locs, ((ArtLoc){.file = "", .name = ""}));
    for (const char *p = text, *end = text + size; p < end;) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        s.t.begin = s.t.at = p;
        s.t.end = nl ? nl : end;
        s.t.line++;
        if (memchr(p, 0, (size_t)(s.t.end - p)))
            txt_fail(&s.t, "a zero byte: this is not text");
        parse_line(&s);
        p = s.t.end + (nl != NULL);
    }
    add_halt(&s);
    resolve(&s);
    return finish(&s);
}
