// SPDX-License-Identifier: Apache-2.0
// chips.c — chips/*.chip inside the library, byte for byte, put there by the assembler.
//
// The paths are relative to the folder the compiler runs in; a build from elsewhere sets
// OTRN_SOURCE_DIR. A change of a chip file must rebuild this file.
#include "mach/chips.h"
#include "mach/chipfile.h"

#include <string.h>

#ifndef OTRN_SOURCE_DIR
#define OTRN_SOURCE_DIR "."
#endif

// CHIP(name): one built-in chip file.
#define CHIP_FILES(CHIP) CHIP(trn1) CHIP(trn2) CHIP(trn3) CHIP(inf2)

__asm__(".pushsection .rodata,\"a\"\n"
        ".hidden chip_instances\n.global chip_instances\nchip_instances:\n"
        ".incbin \"" OTRN_SOURCE_DIR "/chips/instances.table\"\n"
        ".hidden chip_instances_end\n.global chip_instances_end\nchip_instances_end:\n"
        ".byte 0\n"
        ".hidden chip_accelerators\n.global chip_accelerators\nchip_accelerators:\n"
        ".incbin \"" OTRN_SOURCE_DIR "/chips/accelerators.table\"\n"
        ".hidden chip_accelerators_end\n.global chip_accelerators_end\nchip_accelerators_end:\n"
        ".byte 0\n"
        ".hidden chip_errors\n.global chip_errors\nchip_errors:\n"
        ".incbin \"" OTRN_SOURCE_DIR "/chips/errors.csv\"\n"
        ".hidden chip_errors_end\n.global chip_errors_end\nchip_errors_end:\n"
        ".byte 0\n"
        ".popsection\n");

#define CHIP(name)                                                                                 \
    __asm__(".pushsection .rodata,\"a\"\n"                                                         \
            ".hidden otrn_chip_" #name "\n"                                                        \
            ".global otrn_chip_" #name "\n"                                                        \
            "otrn_chip_" #name ":\n"                                                               \
            ".incbin \"" OTRN_SOURCE_DIR "/chips/" #name ".chip\"\n"                               \
            ".hidden otrn_chip_end_" #name "\n"                                                    \
            ".global otrn_chip_end_" #name "\n"                                                    \
            "otrn_chip_end_" #name ":\n"                                                           \
            ".byte 0\n"                                                                            \
            ".popsection\n");                                                                      \
    extern const char otrn_chip_##name[] __attribute__((visibility("hidden")));                    \
    extern const char otrn_chip_end_##name[] __attribute__((visibility("hidden")));
CHIP_FILES(CHIP)
#undef CHIP

const ChipText chip_texts[] = {
#define CHIP(name) {#name, otrn_chip_##name, otrn_chip_end_##name},
    CHIP_FILES(CHIP)
#undef CHIP
    {0},
};

const ChipText *chip_text_find(const char *name) {
    for (const ChipText *t = chip_texts; t->name; t++)
        if (!strcmp(t->name, name))
            return t;
    return NULL;
}

#define CHIP(name) #name,
static const char *const names[] = {CHIP_FILES(CHIP) NULL};
#undef CHIP

const char *const *chipfile_names(void) { return names; }
