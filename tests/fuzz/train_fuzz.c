// SPDX-License-Identifier: Apache-2.0
// train_fuzz.c — damaged safetensors, manifests of steps and of checkpoints, PNG files, and files of tokens and images.
#include <stdio.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "train/checkpoint.h"
#include "train/data.h"
#include "train/safetensors.h"
#include "train/png.h"
#include "train/step.h"
#include "train/train.h"

const char *const fuzz_seeds[] = {"tests/train/data/manifest.json", "tests/train/data/two.safetensors", "tests/train/data/images-idx3-ubyte",
                                  "tests/tools/data/f32_2x3.npy", "tests/train/data/checkpoint.json", "tests/train/data/checkpoint_pairs.json",
                                  "tests/train/data/small.png", NULL};

// With its checksum made right again.
static void manifest(Ctx *ctx, Arena *a, const uint8_t *data, size_t size) {
    static const char check[] = "\"check\": \"";
    char *text = arena_strndup(a, (const char *)data, size), *at = NULL, sum[9];
    for (char *p = text; (p = strstr(p, check)); p++)
        at = p + sizeof check - 1;
    if (at && strlen(at) >= 8) {
        snprintf(sum, sizeof sum, "%08x", crc32c(0, text, (size_t)(at - text)));
        memcpy(at, sum, 8);
    }
    Recipe recipe = {0};
    recipe_parse(ctx, a, &(Checkpoint){.path = "fuzz", .manifest = checkpoint_manifest(ctx, a, "fuzz", text, size)}, &recipe);
    Buf out = {.arena = a};
    for (uint32_t i = 0; i < recipe.bpe.count; i++)
        bpe_decode(&recipe.bpe, BPE_BYTES + i, &out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Ctx ctx = {0};
    Arena *a = fuzz_arena(&ctx);
    jmp_buf jb;
    size_t count;
    Step step;
    if (CTX_TRY(&ctx, jb))
        safetensors_parse(&ctx, a, "fuzz", data, size, &count);
    if (CTX_TRY(&ctx, jb))
        step_parse(&ctx, a, "fuzz", "folder", data, size, &step);
    if (CTX_TRY(&ctx, jb))
        manifest(&ctx, a, data, size);
    Png png;
    if (CTX_TRY(&ctx, jb))
        png_parse(&ctx, a, "fuzz", data, size, &png);
    Data d = {0};
    if (size && CTX_TRY(&ctx, jb) && data_parse(&ctx, "fuzz.bin", data, size, &d) && !d.images) {
        int32_t tokens[4];
        data_tokens(&ctx, a, &d, 1, 2, 4, INT32_MAX, tokens);
    }
    return 0;
}
