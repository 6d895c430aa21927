// SPDX-License-Identifier: Apache-2.0
// status_test.c — pages for `otrn top`: a process with several environments is told once, with what they do together.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/ctx.h"
#include "rt/status.h"
#include "tests/unit/unit.h"

int main(void) {
    Ctx ctx = {0};
    Arena a;
    Options o = {0};
    char folder[] = "/tmp/status_test.XXXXXX", inner[64];
    StatusPages pages = {0};
    for (int i = 0; i < OPT_COUNT; i++)
        o.val[i] = "";
    o.val[OPT_RUNTIME] = mkdtemp(folder);
    arena_init(&a, &ctx);
    Status *one = status_open(&o), *two = status_open(&o);
    if (one && two) {
        StatusPage *p = status_page(one), *q = status_page(two);
        p->runs = 3, p->busy_seconds = 1, p->hbm_bytes = 10, p->step = 7, p->steps = 9;
        q->runs = 5, q->busy_seconds = 2, q->hbm_bytes = 20;
    }
    status_list(&a, &o, &pages);
    const StatusPage *p = pages.at;
    expect(pages.n == 1 && p->pid == getpid(), "one row for a process", "more, or none");
    expect(pages.n == 1 && p->devices == 2 && p->runs == 8 && p->busy_seconds == 3 && p->hbm_bytes == 20, "what they do together", "other sums");
    expect(pages.n == 1 && p->step == 7 && p->steps == 9, "the step of the one that trains", "another");
    status_close(one), status_close(two);
    pages.n = 0;
    status_list(&a, &o, &pages);
    expect(!pages.n, "nothing is left", "a page is");
    snprintf(inner, sizeof inner, "%s/opentrn", folder);
    rmdir(inner), rmdir(folder);
    arena_fini(&a);
    return failures != 0;
}
