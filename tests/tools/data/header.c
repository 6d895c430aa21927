// SPDX-License-Identifier: Apache-2.0
// header.c — every initializer of otrn.h, for compilers that warn about all they know (header.test).
#include <otrn.h>

otrn_error header_error = OTRN_ERROR_INIT;
otrn_memory header_memory = OTRN_MEMORY_INIT;
otrn_report header_report = OTRN_REPORT_INIT;
otrn_line header_line = OTRN_LINE_INIT;
otrn_roof header_roof = OTRN_ROOF_INIT;

int main(void) {
    const otrn_option options[] = {{"cache", "off"}};
    otrn_env *env = 0;
    otrn_open(options, 1, &env, &header_error);
    otrn_close(env);
    return otrn_abi() != OTRN_ABI;
}
