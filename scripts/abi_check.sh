#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# abi_check.sh HEADER — compare our PJRT declarations with an official pjrt_c_api.h.
#
# Two steps, because both sides use the same type names: a program built from our rows
# (src/pjrt/pjrt_abi.def) prints a second program that includes the official header and holds our
# sizes, offsets and values as plain numbers; the second one compares. When the headers of the
# layouts and shardings extensions lie beside HEADER they are compared too. Exit status: 0 all
# agree, 1 differences, 2 usage.
set -eu

if [ $# -ne 1 ] || [ ! -f "$1" ]; then
    echo "usage: abi_check.sh path/to/pjrt_c_api.h" >&2
    exit 2
fi
root=$(cd "$(dirname "$0")/.." && pwd)
header=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cc=${CC:-cc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

# An extension's header includes the main one by its path in the openxla/xla tree.
mkdir -p "$work/include/xla/pjrt/c"
ln -s "$header" "$work/include/xla/pjrt/c/pjrt_c_api.h"
with=
for name in layouts shardings; do
    file=pjrt_c_api_${name}_extension.h
    if [ -f "$(dirname "$header")/$file" ]; then
        ln -s "$(dirname "$header")/$file" "$work/include/xla/pjrt/c/$file"
        with="$with -DWITH_$name=1"
    fi
done

cat >"$work/ours.c" <<'C'
#include <stdio.h>
#include "pjrt/pjrt_abi.h"
#define SIZE(name) \
    printf("    size(\"%s\", sizeof(%s), %zu);\n", name, name, sizeof(Struct))
#define T(name)
#define EN(name, rows) rows
#define E(name, number) \
    printf("    value(\"PJRT_%s\", (long)PJRT_%s, %ld);\n", #name, #name, (long)PJRT_##name);
#define F(type, member) \
    printf("    field(\"%s.%s\", offsetof(%s, %s), sizeof(((%s *)0)->%s), %zu, %zu);\n", \
           struct_name, #member, struct_name, #member, struct_name, #member, \
           offsetof(Struct, member), sizeof(((Struct *)0)->member));
#define O(type, member) F(type, member)
#define P(ret, member, params) F(ret, member)
#define U(members) members
#define STRUCT(type, members) \
    { \
        typedef type Struct; \
        const char *struct_name = #type; \
        SIZE(struct_name); \
        members \
    }
#define HEAD F(size_t, struct_size) F(void *, extension_start)
#define S(name, members) STRUCT(PJRT_##name, members)
#define HS(name, members) STRUCT(PJRT_##name, HEAD members)
#define FN(name, members) STRUCT(PJRT_##name##_Args, HEAD members)
#define FNV(name, members) FN(name, members)
#define NO(name, why)

static void structs(void) {
#include "pjrt/pjrt_abi.def"
}
#undef FN
#define FN(name, members) STRUCT(PJRT_Layouts_##name##_Args, HEAD members)
static void layouts_structs(void) {
#include "pjrt/pjrt_layouts.def"
}
#undef FN
#define FN(name, members) STRUCT(PJRT_Shardings_##name##_Args, HEAD members)
static void shardings_structs(void) {
#include "pjrt/pjrt_shardings.def"
}

#undef S
#undef HS
#undef EN
#undef FN
#undef FNV
#undef NO
#define S(name, members)
#define HS(name, members)
#define EN(name, rows)
#define SLOT(type, prefix, member) \
    printf("    field(\"%s.%s\", offsetof(%s, %s%s), sizeof(((%s *)0)->%s%s), %zu, %zu);\n", \
           #type, #member, #type, prefix, #member, #type, prefix, #member, \
           offsetof(type, member), sizeof(void *));
#define FN(name, members) SLOT(PJRT_Api, "PJRT_", name)
#define FNV(name, members) SLOT(PJRT_Api, "PJRT_", name)
#define NO(name, why) SLOT(PJRT_Api, "PJRT_", name)
static void table(void) {
    STRUCT(PJRT_Api, HEAD F(, pjrt_api_version))
#include "pjrt/pjrt_abi.def"
}
#undef FN
#define FN(name, members) SLOT(PJRT_Layouts_Extension, "PJRT_Layouts_", name)
static void layouts_table(void) {
    STRUCT(PJRT_Layouts_Extension, F(, base))
#include "pjrt/pjrt_layouts.def"
}
#undef FN
#define FN(name, members) SLOT(PJRT_Shardings_Extension, "PJRT_Shardings_", name)
static void shardings_table(void) {
    STRUCT(PJRT_Shardings_Extension, F(, base))
#include "pjrt/pjrt_shardings.def"
}

int main(void) {
    puts("#include <stdio.h>\n#include \"xla/pjrt/c/pjrt_c_api.h\"\n"
         "#if WITH_layouts\n#include \"xla/pjrt/c/pjrt_c_api_layouts_extension.h\"\n#endif\n"
         "#if WITH_shardings\n#include \"xla/pjrt/c/pjrt_c_api_shardings_extension.h\"\n#endif\n"
         "static int structs, fields, values, differences;\n"
         "static void differ(const char *what, const char *of, long theirs, long ours) {\n"
         "    printf(\"abi: %s of %s: header %ld, ours %ld\\n\", what, of, theirs, ours);\n"
         "    differences++;\n}\n"
         "static void size(const char *name, size_t theirs, size_t ours) {\n"
         "    structs++;\n    if (theirs != ours)\n"
         "        differ(\"size\", name, (long)theirs, (long)ours);\n}\n"
         "static void field(const char *name, size_t at, size_t bytes, size_t our_at, size_t "
         "our_bytes) {\n    fields++;\n    if (at != our_at)\n"
         "        differ(\"offset\", name, (long)at, (long)our_at);\n    if (bytes != our_bytes)\n"
         "        differ(\"size\", name, (long)bytes, (long)our_bytes);\n}\n"
         "static void value(const char *name, long theirs, long ours) {\n"
         "    values++;\n    if (theirs != ours)\n"
         "        differ(\"value\", name, theirs, ours);\n}\n"
         "int main(void) {");
    printf("    value(\"PJRT_API_MAJOR\", PJRT_API_MAJOR, %d);\n", PJRT_API_MAJOR);
    printf("    value(\"PJRT_API_MINOR\", PJRT_API_MINOR, %d);\n", PJRT_API_MINOR);
    structs();
    table();
    puts("#if WITH_layouts");
    layouts_structs();
    layouts_table();
    puts("#endif\n#if WITH_shardings");
    shardings_structs();
    shardings_table();
    puts("#endif");
    puts("    if (differences)\n        printf(\"abi: %d differences\\n\", differences);\n"
         "    else\n        printf(\"abi: %d structs, %d fields, %d enum values agree\\n\", "
         "structs, fields, values);\n    return differences != 0;\n}");
    return 0;
}
C
$cc -std=gnu11 -I"$root/src" -o "$work/ours" "$work/ours.c"
"$work/ours" >"$work/theirs.c"
if ! $cc -std=gnu11 -w $with -I"$work/include" -o "$work/theirs" \
    "$work/theirs.c" 2>"$work/log"; then
    version=$(sed -n 's/^#define PJRT_API_\(MAJOR\|MINOR\) \([0-9]*\).*/\2/p' "$header" |
        paste -sd. -)
    echo "abi: the header (version ${version:-unknown}, ours 0.114) lacks something we declare:"
    grep -E 'error:' "$work/log" | sed 's/^[^ ]* //; s/^/abi: /' | head -n 20
    exit 1
fi
"$work/theirs"
