// SPDX-License-Identifier: Apache-2.0
// prof_hints.c — otrn prof --hints: what rt/hints.h tried, as text and JSON.
#include <string.h>

#include "base/file.h"
#include "tools/prof.h"

void prof_hints_make(Tool *t, Prof *p) {
    size_t size;
    const void *bytes = file_read(t->ctx, t->arena, p->path, &size);
    if (artifact_is(bytes, size)) // which keeps its program
        bytes = p->priced.art->program, size = p->priced.art->program_bytes;
    p->hints_known = bytes && size;
    if (!p->hints_known)
        return;
    progress_begin(t, "trying hints");
    p->nhints = rt_hints(t->arena, &p->how, &p->priced, bytes, size, &p->hints);
    progress_end(t);
}

static void hint_print(Tool *t, const Prof *p, const RtHint *h) {
    printf("  %s (%s)%s: %s\n", h->what, h->how, h->helps ? "" : " does not help", rt_hint_text(t->arena, &p->priced, h));
}

void prof_hints_print(Tool *t, const Prof *p) {
    if (!p->hints_known) {
        printf("hints: this artifact does not keep its program\n");
        return;
    }
    printf("hints, each compiled and priced\n");
    for (int helps = 1; helps >= 0; helps--)
        for (uint32_t i = 0; i < p->nhints; i++)
            if (p->hints[i].helps == (bool)helps)
                hint_print(t, p, &p->hints[i]);
    if (!p->nhints)
        printf("  nothing to try: products are not fp32, nothing is left to give away\n");
}

void prof_hints_json(const Prof *p) {
    printf("  \"hints\": [");
    for (uint32_t i = 0; i < p->nhints; i++) {
        const RtHint *h = &p->hints[i];
        printf("%s\n    {\"what\": \"%s\", \"how\": \"%s\", \"us\": %.3f, \"hbm_peak_bytes\": %.0f, \"helps\": %s, \"changes_numbers\": %s}",
               i ? "," : "", h->what, h->how, h->ns * 1e-3, h->hbm_bytes, h->helps ? "true" : "false",
               h->changes_numbers ? "true" : "false");
    }
    printf("\n  ],\n");
}
