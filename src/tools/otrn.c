// SPDX-License-Identifier: Apache-2.0
// otrn.c — the otrn program: one call of the library (tools/main.c).
#include "otrn.h"

int main(int argc, char **argv) { return otrn_main(argc, argv); }
