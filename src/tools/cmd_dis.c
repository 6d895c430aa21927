// SPDX-License-Identifier: Apache-2.0
// cmd_dis.c — otrn dis: an artifact as text that `otrn as` takes back.
#include "tools/tools.h"

int cmd_dis(Tool *t) {
    Buf text = {.arena = t->arena};
    artifact_print(tool_artifact(t, t->words.at[0]), &text);
    fwrite(text.at, 1, text.n, stdout);
    return 0;
}
