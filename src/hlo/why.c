// SPDX-License-Identifier: Apache-2.0
// why.c — reasons as text.
#include "hlo/why.h"

#include <stdio.h>
#include <string.h>

#include "base/dtype.h"

static const char *const texts[] = {
#define X(name, text) text,
    WHY_LIST(X)
#undef X
};

bool why_refuse_elements(Why *why, int dtype) {
    bool rounds = dtype_is_int(dtype) && dtype_row(dtype)->bits < 64;
    return why_refuse_type(why, rounds ? WHY_EXACT : WHY_LACKS, dtype);
}

const char *why_text(Why why, int64_t elems, char out[WHY_BYTES]) {
    const char *text = texts[why.id < WHY_COUNT ? why.id : WHY_UNKNOWN], *gap = strstr(text, "%s");
    char count[32];
    if (!gap)
        return text;
    snprintf(count, sizeof count, "%lld element%s", (long long)elems, elems == 1 ? "" : "s");
    snprintf(out, WHY_BYTES, "%.*s%s%s", (int)(gap - text), text, why.dtype ? dtype_row(why.dtype)->name : count, gap + 2);
    return out;
}
