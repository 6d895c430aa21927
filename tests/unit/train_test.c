// SPDX-License-Identifier: Apache-2.0
// train_test.c — the order of data, the schedule, safetensors and JSON there and back, gradients by differences.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "train/graph.h"
#include "train/random.h"
#include "train/train.h"

static int failed;

static void check(bool good, const char *name) {
    printf("%s %s\n", good ? "ok" : "FAIL", name);
    failed += !good;
}

static void order_test(void) {
    bool good = true, moves = false;
    for (uint64_t count = 1; count < 700; count += 37)
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            uint8_t *seen = calloc(count, 1);
            for (uint64_t i = 0; i < count; i++) {
                uint64_t at = data_order(5, epoch, i, count);
                good &= at < count && !seen[at];
                moves |= at != i;
                seen[at] = 1;
            }
            free(seen);
        }
    check(good && moves, "every sample once an epoch");
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < 100000; i++) {
        double v = random_bell(1, 2, i);
        sum += v, squares += v * v;
    }
    check(fabs(sum / 1e5) < 0.02 && fabs(squares / 1e5 - 1) < 0.02, "mean and deviation of new weights");
}

static void slow_test(void) {
    uint32_t who;
    double others;
    StepWord even[] = {{.own = 1}, {.own = 1.5f}, {.own = 1.2f}}, one[] = {{.own = 1}, {.own = 1.2f}, {.own = 4}}, quick[] = {{.own = 0.001f}, {.own = 0.01f}};
    check(!ranks_slow(even, 3, &who, &others) && !ranks_slow(quick, 2, &who, &others) && !ranks_slow(one, 1, &who, &others), "nobody is slow");
    check(ranks_slow(one, 3, &who, &others) && who == 2 && fabs(others - 1.1) < 1e-6, "the slow one is named");
    check(ranks_stalled(&(StepWord){.fed = 2, .own = 3}) && !ranks_stalled(&(StepWord){.fed = 1, .own = 3}) && !ranks_stalled(&(StepWord){.fed = 0.01f, .own = 0.01f}),
          "inputs that stall");
}

static void checksum_test(void) { // large pieces, which take lanes of their own, and small ones
    static uint8_t bytes[100001];
    bool good = crc32c(0, "123456789", 9) == 0xe3069283u;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * i >> 7 ^ i);
    for (size_t from = 0; from < 9; from++)
        for (size_t n = sizeof bytes - from; n > 20000; n -= 12345) {
            uint32_t crc = 0;
            for (size_t at = 0, more; at < n; at += more) {
                more = n - at < 1000 ? n - at : 1000;
                crc = crc32c(crc, bytes + from + at, more);
            }
            good &= crc == crc32c(0, bytes + from, n);
        }
    check(good, "checksums of large and small pieces");
}

// Every tensor in one shard, in order; shards of about the same size, dealt among those that write.
static void shards_test(Arena *a) {
    Tensor t[50];
    for (int i = 0; i < 50; i++)
        t[i] = (Tensor){.name = "t", .type = {DT_UI8, 1, {(i % 7 + 1) * 40000}}, .bytes = (size_t)(i % 7 + 1) * 40000};
    Shards s;
    shards_cut(a, t, 50, &s);
    bool good = s.n >= 8 && s.n < 16;
    size_t next = 0, has[4] = {0};
    const uint8_t writes[4] = {1, 0, 1, 1};
    shards_deal(a, &s, writes, 4);
    for (size_t k = 0; k < s.n; next += s.at[k++].count) {
        good &= s.at[k].first == next && s.at[k].count > 0 && s.at[k].head_bytes % 64 == 0;
        has[s.at[k].owner] += s.at[k].bytes;
    }
    check(good && next == 50, "shards have every tensor once");
    check(!has[1] && has[0] < 2 * has[2] && has[2] < 2 * has[3] && has[3] < 2 * has[0], "who writes has as much as others");
    shards_cut(a, t, 0, &s);
    check(s.n == 0, "no tensors, no shards");
}

static void schedule_test(void) {
    Recipe r = {.steps = 110, .warmup = 10, .rate = 1};
    check(train_rate(&r, 0) == 0.1 && train_rate(&r, 9) == 1 && train_rate(&r, 10) == 1, "warmup");
    check(fabs(train_rate(&r, 60) - 0.55) < 1e-12 && fabs(train_rate(&r, 110) - 0.1) < 1e-12, "cosine to a tenth");
}

static void format_test(Ctx *ctx, Arena *a) {
    float x[6] = {1, 2, 3, 4, 5, 6};
    int32_t y = 7;
    Tensor t[2] = {{"a \"quoted\" name", {DT_F32, 2, {2, 3}}, x, 24}, {"y", {DT_I32, 0, {0}}, &y, 4}};
    Buf b = {.arena = a};
    safetensors_head(t, 2, &b);
    check(b.n % 64 == 0, "tensors are aligned");
    buf_put(&b, x, 24), buf_put(&b, &y, 4);
    size_t n;
    Tensor *back = safetensors_parse(ctx, a, "test", b.at, b.n, &n);
    check(n == 2 && !strcmp(back[0].name, t[0].name) && back[0].type.rank == 2 && back[0].type.dims[1] == 3 && !memcmp(back[0].data, x, 24) &&
              *(const int32_t *)back[1].data == 7, "safetensors there and back");
    const char text[] = " {\"a\": [1, -2.5e3, true, null], \"b\\u00e9\\n\": \"\\ud83d\\ude00\"} ";
    const Json *j = json_parse(ctx, a, "test", text, sizeof text - 1);
    check(json_get(j, "a")->n == 4 && json_get(j, "a")->at[1].number == -2500 && !strcmp(json_get(j, "b\xc3\xa9\n")->text, "\xf0\x9f\x98\x80"), "JSON");
    static const char *const bad[] = {"", "{", "[1,]", "{\"a\" 1}", "01", "1 2", "\"\\ud800\"", "\"\\u0000\"", "nul", "[1 2]", "\"\n\"", "-", "1.", "1e"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        Ctx inner = {0};
        jmp_buf jb;
        volatile bool raised = true;
        if (CTX_TRY(&inner, jb)) {
            json_parse(&inner, a, "test", bad[i], strlen(bad[i]));
            raised = false;
        }
        check(raised && inner.err.code == OTRN_PARSE, bad[i]);
    }
}

static double mean_of(const StepNote *n, int count) {
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += n[i].loss;
    return sum / count;
}

// A tiny model of each kind learns.
static void falls_test(Ctx *ctx, Arena *a, otrn_env *env, ModelKind kind) {
    Train t = {.ctx = ctx, .arena = a, .env = env, .ranks = RANKS_ALONE};
    t.recipe = (Recipe){.model = {kind, 1, 32, 2, 8, 16, kind == MODEL_BERT ? 257 : kind == MODEL_GPT ? 256 : 10, DATA_SIDE, DATA_SIDE, 4}, .steps = 100,
                        .rate = 3e-3, .schedule = SCHEDULE_CONSTANT, .adam = ADAM_USUAL, .data = ""};
    t.opt = (TrainOptions){.checkpoint = "", .log = "", .tensorboard = "", .prometheus = "", .every = 100, .devices = 1, .terminal = true};
    train_run(&t);
    check(t.watch.notes.n == 100 && mean_of(t.watch.notes.at + 90, 10) < 0.95 * mean_of(t.watch.notes.at, 10), model_names[kind]);
    train_end(&t);
}

int main(void) {
    Ctx ctx = {0};
    Arena arena;
    jmp_buf jb;
    arena_init(&arena, &ctx);
    otrn_env *env = NULL;
    if (CTX_TRY(&ctx, jb)) {
        order_test();
        slow_test();
        schedule_test();
        checksum_test();
        shards_test(&arena);
        format_test(&ctx, &arena);
        check(otrn_open(&(otrn_option){"cache", "off"}, 1, &env, NULL) == OTRN_OK, "open");
        for (int k = 0; k < MODEL_STEP; k++)
            falls_test(&ctx, &arena, env, (ModelKind)k);
    } else {
        printf("FAIL %s\n", ctx.err.text);
        failed++;
    }
    otrn_close(env);
    arena_fini(&arena);
    return failed != 0;
}
