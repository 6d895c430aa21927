// SPDX-License-Identifier: Apache-2.0
// text.c — text from a language model: the last tokens in, one more out, again and again.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/elem.h"
#include "train/random.h"
#include "train/train.h"

typedef struct Writer {
    Ctx *ctx;
    Arena *arena;
    const Model *m;
    const Bpe *bpe;
    otrn_exe *exe;
    otrn_buffer *args, result;
    size_t nargs;
    uint64_t seed;
    double temperature;
} Writer;

static void check(Ctx *ctx, otrn_status s, const otrn_error *err) {
    if (s != OTRN_OK)
        ctx_fail(ctx, s, NO_PLACE, "%s", err->text);
}

static void weights_find(Writer *w, const Step *step, const Tensor *t, size_t count) {
    w->nargs = step->nargs;
    w->args = ARENA_NEWN(w->arena, otrn_buffer, step->nargs);
    for (size_t i = 0; i + 1 < step->nargs; i++) {
        for (size_t k = 0; k < count && !w->args[i].data; k++)
            if (!strcmp(t[k].name, step->args[i].name) && t[k].bytes == otrn_type_bytes(&step->args[i].type))
                w->args[i] = (otrn_buffer){(void *)t[k].data, t[k].bytes};
        if (!w->args[i].data)
            ctx_fail(w->ctx, OTRN_ARGUMENT, NO_PLACE, "the checkpoint has no `%s` of this model's shape", step->args[i].name);
    }
    size_t bytes = (size_t)w->m->seq * 4;
    w->args[step->nargs - 1] = (otrn_buffer){arena_zalloc(w->arena, bytes), bytes};
    bytes = (size_t)(w->m->seq * w->m->vocab) * 4;
    w->result = (otrn_buffer){arena_zalloc(w->arena, bytes), bytes};
}

// One of the tokens, by chance: exp(logit / temperature) is its share.
static int64_t choose(const Writer *w, const float *logits, uint64_t n) {
    int64_t vocab = w->m->vocab, best = 0;
    for (int64_t i = 1; i < vocab; i++)
        best = logits[i] > logits[best] ? i : best;
    if (w->temperature <= 0)
        return best;
    double sum = 0;
    for (int64_t i = 0; i < vocab; i++)
        sum += elem_exp(((double)logits[i] - logits[best]) / w->temperature);
    double at = random_unit(w->seed, STREAM_SAMPLE, n) * sum;
    for (int64_t i = 0; i < vocab; i++)
        if ((at -= elem_exp(((double)logits[i] - logits[best]) / w->temperature)) < 0)
            return i;
    return best;
}

static uint32_t next(Writer *w, const uint32_t *tokens, int64_t n) {
    int64_t seq = w->m->seq, from = n > seq ? n - seq : 0;
    int32_t *x = w->args[w->nargs - 1].data;
    for (int64_t i = 0; i < seq; i++) // what comes behind the last one is not seen
        x[i] = from + i < n ? (int32_t)tokens[from + i] : 0;
    otrn_error err = OTRN_ERROR_INIT;
    check(w->ctx, otrn_execute(w->exe, w->args, w->nargs, &w->result, 1, &err), &err);
    return (uint32_t)choose(w, (const float *)w->result.data + (n - from - 1) * w->m->vocab, (uint64_t)n);
}

// Bytes of the UTF-8 character that begins at p; 0: none does; -1: it goes on behind the end.
static int character(const uint8_t *p, int64_t n) {
    int bytes = *p < 0x80 ? 1 : *p >= 0xc2 && *p < 0xe0 ? 2 : *p >= 0xe0 && *p < 0xf0 ? 3 : *p >= 0xf0 && *p < 0xf5 ? 4 : 0;
    for (int i = 1; i < bytes; i++) {
        if (i >= n)
            return -1;
        bool narrow = i == 1 && ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) || (*p == 0xf0 && p[1] < 0x90) || (*p == 0xf4 && p[1] > 0x8f));
        if ((p[i] & 0xc0) != 0x80 || narrow)
            return 0;
    }
    return bytes;
}

// A character that would tell a terminal what to do; lines and columns it may have.
static bool commands(const uint8_t *p, int bytes) {
    return (bytes == 1 && (*p < 0x20 || *p == 0x7f) && *p != '\n' && *p != '\t') || (bytes == 2 && *p == 0xc2 && p[1] < 0xa0);
}

// A model of bytes may write what is no character: a replacement stands there. A terminal is not commanded: it is shown what was written.
// Returns how many bytes were told.
static int64_t show(const uint8_t *p, int64_t n, bool last, FILE *out) {
    bool terminal = isatty(fileno(out));
    int64_t at = 0;
    while (at < n) {
        int bytes = character(p + at, n - at);
        if (bytes < 0 && !last)
            break;
        if (bytes > 0 && terminal && commands(p + at, bytes))
            fprintf(out, "\\x%02x", p[at + bytes - 1]); // of two bytes the second is the code
        else if (bytes > 0)
            fwrite(p + at, 1, (size_t)bytes, out);
        else
            fputs("\xef\xbf\xbd", out);
        at += bytes > 0 ? bytes : 1;
    }
    fflush(out);
    return at;
}

static void write_all(Writer *w, const char *prompt, int64_t bytes, FILE *out) {
    size_t given = strlen(prompt), n;
    const uint32_t *begun = bpe_encode(w->arena, w->bpe, (const uint8_t *)(given ? prompt : "\n"), given ? given : 1, &n);
    uint32_t *tokens = ARENA_NEWN(w->arena, uint32_t, n + (size_t)bytes + 1);
    memcpy(tokens, begun, n * sizeof *tokens);
    for (size_t i = 0; i < n && given; i++)
        if (tokens[i] >= w->m->vocab)
            ctx_fail(w->ctx, OTRN_ARGUMENT, NO_PLACE, "the prompt has bytes that the model has no token for");
    Buf text = {.arena = w->arena};
    buf_puts(&text, prompt);
    int64_t shown = 0, from = (int64_t)text.n;
    while ((int64_t)text.n - from < bytes) { // a token that stands for nothing is none that was learnt
        size_t before = text.n;
        bpe_decode(w->bpe, tokens[n] = next(w, tokens, (int64_t)n), &text);
        if (text.n == before)
            put_u8(&text, '?');
        n++;
        text.n = (int64_t)text.n - from > bytes ? (size_t)(from + bytes) : text.n;
        shown += show(text.at + shown, (int64_t)text.n - shown, (int64_t)text.n - from == bytes, out);
    }
    fputc('\n', out);
}

void text_write(Ctx *ctx, Arena *a, otrn_env *env, const Model *m, const Bpe *bpe, const Tensor *weights, size_t count, const char *prompt,
                int64_t bytes, double temperature, uint64_t seed, FILE *out) {
    if (m->kind != MODEL_GPT || (m->vocab > DATA_BYTES && !bpe->count))
        ctx_fail(ctx, OTRN_UNSUPPORTED, NO_PLACE, "only a gpt whose tokens are bytes, or were learnt from text, writes text; this is %s with %lld", model_names[m->kind],
                 (long long)m->vocab);
    Writer w = {.ctx = ctx, .arena = a, .m = m, .bpe = bpe, .seed = seed, .temperature = temperature};
    Step step;
    model_forward(ctx, a, m, &step);
    weights_find(&w, &step, weights, count);
    otrn_error err = OTRN_ERROR_INIT;
    check(ctx, otrn_compile(env, step.program, step.program_bytes, step.name, &w.exe, &err), &err);
    jmp_buf jb, *outer = ctx->on_fail;
    volatile bool good = false;
    if (CTX_TRY(ctx, jb)) {
        write_all(&w, prompt, bytes, out);
        good = true;
    }
    ctx->on_fail = outer;
    otrn_exe_free(w.exe);
    if (!good)
        longjmp(*outer, 1);
}
