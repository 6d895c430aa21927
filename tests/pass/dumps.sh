# What a pass leaves can be printed, read back and printed again: the same text. From every stage of the road but those behind the graph.
# run: sh %s %S %t
# expect: remat read back
# expect: siblings read back
# expect-not: differs
set -u
here=$1 at=$2
stages=$(otrn compile "$here/remat.mlir" --dump=help | sed -n '/^nest /q; s/ .*//p')
[ "$(echo "$stages" | wc -l)" -gt 30 ] || echo "differs: only $stages"
for p in remat scores_fewer buckets quant_ops shapes_flow siblings; do
    for s in $stages; do
        otrn compile "$here/$p.mlir" --cache=off --dump="$s" -o "$at/p.otrn" >"$at/a.mlir" 2>/dev/null
        [ -s "$at/a.mlir" ] || continue
        otrn compile "$at/a.mlir" --cache=off --dump=read -o "$at/p.otrn" >"$at/b.mlir" 2>"$at/error"
        cmp -s "$at/a.mlir" "$at/b.mlir" || { echo "differs: $p behind $s"; cat "$at/error"; }
    done
    echo "$p read back"
done
