// SPDX-License-Identifier: Apache-2.0
// plugin_fuzz.c — damaged compile options as front ends serialise them, and damaged entries of the cache.
#include <stdlib.h>

#include "pjrt/pjrt.h"
#include "rt/cache.h"
#include "tests/fuzz/fuzz.h"

const char *const fuzz_seeds[] = {NULL};

#define ENTRY_HEAD 24 // bytes; rt/cache.h

void fuzz_corpus_ready(FuzzCorpus *c) {
    // 3: build options {4: 1 replica, 5: 2 partitions, 9: {1: 1, 2: 2, 3: {1: 1}, 3: {1: 0}}}; 7: override {1: "lnc", 2: {1: "2"}}
    static const uint8_t options[] = "\x1a\x12\x20\x01\x28\x02\x4a\x0c\x08\x01\x10\x02\x1a\x03\x0a\x01\x01\x1a\x03\x0a\x01"
                                     "\x3a\x0a\x0a\x03lnc\x12\x03\x0a\x01" "2";
    static const uint8_t entry[] = "OTRNENT\0\x0c\0\0\0\x08\0\0\0\0\0\0\0\0\0\0\0target=trn2\nmodule m and more";
    fuzz_corpus_piece(c, options, sizeof options - 1);
    fuzz_corpus_piece(c, entry, sizeof entry - 1);
}

static void options(const uint8_t *data, size_t size) {
    CompileOptions o = {0};
    PJRT_Error *e = pj_options_parse(data, size, &o);
    if (e)
        pj_Error_Destroy(&(PJRT_Error_Destroy_Args){.error = e});
    else
        pj_options_fini(&o);
}

static void entry(const uint8_t *data, size_t size) {
    Ctx ctx = {0};
    Arena *a = fuzz_arena(&ctx);
    uint8_t *copy = arena_dup(a, data, size);
    if (size < ENTRY_HEAD)
        return;
    uint64_t text = (uint64_t)le_load32(copy + 8) + le_load32(copy + 12);
    if (text <= size - ENTRY_HEAD) // as if nothing had been damaged
        le_store32(copy + 16, crc32c(0, copy + ENTRY_HEAD, text));
    CacheHead head = {0};
    char key[RT_CACHE_KEY];
    if (!cache_head(a, copy, size, "another", &head))
        abort();
    if (head.inputs) {
        rt_cache_key(head.inputs, key);
        if (cache_head(a, copy, size, key, &head))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    options(data, size);
    entry(data, size);
    return 0;
}
