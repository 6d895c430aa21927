# What no compiler checks and every reader relies on.
# run: sh %s
# expect: tidy
# expect-not: untidy
#
# 1. Folders of src include only those the Makefile lists before them.
# 2. Every source file has its licence and says its idea in its first lines.
# 3. What a header of src declares, some other file uses: else it is static. (isa/build.h is for programs that write kernels.)
# 4. File names are plain: what a wrong quote in a shell leaves behind is not committed.
set -u
all=$(git ls-files src 2>/dev/null | grep '\.[ch]$' || find src -name '*.[ch]')
[ -n "$all" ] || { echo "skipped: no sources here"; exit 0; }

sed -n 's/^STOPS *:= *//p' Makefile | tr ' ' '\n' | sed 's|/.*||' | uniq | awk '
    { order[$1] = NR }
    END {
        cmd = "grep -rnE \"^#include \\\"[a-z]+/\" src"
        while ((cmd | getline line) > 0) {
            split(line, part, ":"); split(part[1], path, "/")
            from = path[2]; to = line; sub(/.*#include "/, "", to); sub(/\/.*/, "", to)
            if (!(to in order) || order[to] > order[from])
                print "untidy: " part[1] ":" part[2] ": " from " includes " to ", which stands behind it in the Makefile"
        }
    }'

for f in $all; do
    head -3 "$f" | grep -q 'SPDX-License-Identifier: Apache-2.0' || echo "untidy: $f: no licence line"
    head -4 "$f" | grep -q "^// $(basename "$f") — " || echo "untidy: $f: the first lines do not say what it is"
done

# Words of all files; then names that headers declare and only one .c file has, and no macro or inline function of the header.
words=$(mktemp) && trap 'rm -f "$words"' EXIT
grep -oHwE '[a-z_][A-Za-z0-9_]+' $(git ls-files src tests bench 2>/dev/null | grep '\.[ch]$' || echo $all) | sort | uniq -c >"$words"
for f in $all; do
    case $f in src/isa/build.h) ;; *.h) sed 's|//.*||' "$f" | awk -v f="$f" '
        /^#define/ || skip { skip = /\\$/; next }
        /^[a-zA-Z_]/ && !/^(static|typedef|extern|_Noreturn static|INLINE)/ && /\(/ && !/\{/ {
            sub(/\(.*/, ""); sub(/.*[ *]/, ""); if (/^[a-z]/) print f ":" $0 }' ;; esac
done | awk '
    FNR == NR { split($2, at, ":"); if (at[1] ~ /\.c$/ || $1 > 1) files[at[2]]++; next }
    { split($0, at, ":") }
    files[at[2]] < 2 { print "untidy: " at[1] ": only one file uses " at[2] }' "$words" -
git ls-files 2>/dev/null | grep -vE '^[A-Za-z0-9_.+/-]+$' | sed 's/^/untidy: file name: /'
echo tidy
