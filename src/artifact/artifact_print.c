// SPDX-License-Identifier: Apache-2.0
// artifact_print.c — a whole program as text: what `otrn dis` prints. asm.c reads it back.
#include <assert.h>
#include <inttypes.h>

#include "artifact/artifact.h"
#include "isa/text.h"

#define HEX_BYTES_PER_LINE 48
#define ZERO_RUN_MIN 48

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

// Labels stand where jumps lead and loops begin and end; numbered down the code, on from *n.
static uint32_t *find_labels(const Artifact *art, Arena *a, uint32_t *n) {
    uint32_t *labels = ARENA_NEWN(a, uint32_t, (size_t)art->ncode + 1);
    for (uint32_t i = 0; i < art->ncode; i++) {
        uint32_t to = (uint32_t)art->code[i].imm;
        int cost = isa_rows[art->code[i].op].cost;
        if ((cost == COST_BRANCH || cost == COST_LOOP) && to < art->ncode)
            labels[to] = 1;
    }
    for (uint32_t i = 0; i < art->nloops; i++)
        labels[art->loops[i].begin] = labels[art->loops[i].end] = 1;
    for (uint32_t i = 0; i <= art->ncode; i++)
        if (labels[i])
            labels[i] = ++*n;
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
    if (art->precision && art->precision[0]) {
        buf_puts(out, ".precision ");
        txt_print_string(out, art->precision, strlen(art->precision));
        buf_puts(out, "\n");
    }
    if (art->flags & ART_STOCHASTIC)
        buf_puts(out, ".rounding stochastic\n");
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

static void print_loops(const Artifact *art, const uint32_t *labels, Buf *out) {
    const ArtLoop *loops = artifact_loops_sorted(art, out->arena);
    for (uint32_t i = 0; i < art->nloops; i++)
        buf_printf(out, ".loop L%u L%u trips=%" PRIu64 "\n", labels[loops[i].begin] - 1, labels[loops[i].end] - 1,
                   loops[i].trips);
}

void artifact_print(const Artifact *art, Buf *out) {
    uint32_t nlabels = 0;
    IsaNames names = {.nargs = art->nargs,
                      .nresults = art->nresults,
                      .ncode = art->ncode,
                      .labels = find_labels(art, out->arena, &nlabels)};
    print_header(art, out);
    for (uint32_t i = 0; i < art->nkerns; i++) {
        buf_printf(out, ".kernel %u ", i);
        kern_print(&art->kerns[i], &names, out);
        buf_puts(out, "\n");
    }
    print_loops(art, names.labels, out);
    for (uint32_t i = 0; i < art->nlive; i++)
        buf_printf(out, ".live %" PRIu64 " @%u\n", art->live[i].bytes, art->live[i].loc);
    print_code(art, &names, out);
    if (!art->peer)
        return;
    names.ncode = art->peer->ncode;
    names.labels = find_labels(art->peer, out->arena, &nlabels);
    buf_puts(out, ".core 1\n");
    print_loops(art->peer, names.labels, out);
    print_code(art->peer, &names, out);
}
