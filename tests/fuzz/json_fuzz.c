// SPDX-License-Identifier: Apache-2.0
// json_fuzz.c — damaged JSON. What is taken, written by hand with json_put, must read back the same.
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "tests/fuzz/fuzz.h"

const char *const fuzz_seeds[] = {"tests/train/data/manifest.json", "tests/train/data/checkpoint.json", NULL};

void fuzz_corpus_ready(FuzzCorpus *c) {
    static const char odd[] = "{\"a\\u00e9\\ud83d\\ude00\\n\\\"\\\\\": [-0, 1e308, 0.5e-3, true, false, null, {}, [], \"\\/\\b\\f\\t\"], \"\": {\"x\": [[[[]]]]}}";
    fuzz_corpus_piece(c, (const uint8_t *)odd, sizeof odd - 1);
}

static void put(Buf *out, const Json *j) {
    static const char *const words[] = {[JSON_NULL] = "null", [JSON_FALSE] = "false", [JSON_TRUE] = "true"};
    if (j->kind <= JSON_TRUE) {
        buf_puts(out, words[j->kind]);
    } else if (j->kind == JSON_NUMBER) {
        buf_puts(out, j->text);
    } else if (j->kind == JSON_TEXT) {
        json_put(out, j->text);
    } else {
        bool object = j->kind == JSON_OBJECT;
        buf_puts(out, object ? "{" : "[");
        for (uint32_t i = 0; i < j->n; i++) {
            buf_puts(out, i ? ", " : "");
            if (object)
                json_put(out, j->at[i].name), buf_puts(out, ": ");
            put(out, &j->at[i]);
        }
        buf_puts(out, object ? "}" : "]");
    }
}

static bool same(const Json *a, const Json *b) {
    bool ok = a->kind == b->kind && a->n == b->n && !a->name == !b->name && (!a->name || !strcmp(a->name, b->name)) &&
              !a->text == !b->text && (!a->text || !strcmp(a->text, b->text));
    for (uint32_t i = 0; ok && i < a->n; i++)
        ok = same(&a->at[i], &b->at[i]);
    return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Ctx ctx = {0};
    Arena *a = fuzz_arena(&ctx);
    jmp_buf jb, late;
    if (CTX_TRY(&ctx, jb)) {
        const Json *j = json_parse(&ctx, a, "fuzz.json", data, size);
        Buf text = {.arena = a};
        put(&text, j);
        if (!CTX_TRY(&ctx, late) || !same(j, json_parse(&ctx, a, "again.json", text.at, text.n)))
            abort();
    }
    return 0;
}
