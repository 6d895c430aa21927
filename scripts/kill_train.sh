#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# kill_train.sh — a training run killed (SIGKILL) at random moments and resumed, again and again: the weights at the end are those
# of a run that nobody touched, to the byte, and no checkpoint is ever found damaged. It saves after every step, and every
# second time waits for a save to be under way; what is left tells how often one was. With several processes (RANKS) one of them is killed, by turns, and the launcher ends the others.
#
#   kill_train.sh OTRN MOMENTS [SEED [DEVICES [STEPS [RANKS]]]]      DEVICES: of each process
set -u
otrn=$1 moments=$2 seed=${3:-1} devices=${4:-1} steps=${5:-40} ranks=${6:-1}
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT
words="--data=LICENSE --layers=1 --dim=64 --heads=2 --seq=16 --batch=4 --steps=$steps --devices=$devices --checkpoint-every=1 --keep=2 --sample=0"
last=$(printf step-%08d "$steps")

start() { # $1 folder: goes on there, or begins
    # shellcheck disable=SC2086
    [ "$ranks" = 1 ] || exec "$otrn" launch -n "$ranks" "$otrn" train $words --checkpoint="$1" --resume >>"$dir/said" 2>&1
    # shellcheck disable=SC2086
    exec "$otrn" train $words --checkpoint="$1" --resume >>"$dir/said" 2>&1
}
victim() { # $1 what was started: itself, or one of its children; nothing when there is none yet
    [ "$ranks" = 1 ] && { echo "$1"; return; }
    cat "/proc/$1/task/$1/children" 2>/dev/null | awk -v i="$i" '{ if (NF) print $(i % NF + 1) }'
}
parts() { echo "$dir"/run/.part-*-step-*; }
saving() { # a checkpoint is half-written, and not by one that was killed before
    now=$(parts)
    [ "$now" != "$before" ] && [ "$now" != "$dir/run/.part-*-step-*" ]
}
moment() { # a random one, every second time then the next save
    sleep "$(awk -v s="$seed" -v i="$i" -v r="$ranks" 'BEGIN { srand(s * 100003 + i); printf "%.3f", rand() * (r > 1 ? 1.5 : 0.6) }')"
    polls=0
    while [ $((i % 2)) = 0 ] && [ "$polls" -lt 5000 ] && ! saving && ! [ -e "$dir/run/$last" ]; do
        polls=$((polls + 1))
        sleep 0.001
    done
}
compare() {
    diff -r "$dir/whole/$last" "$dir/run/$last" || { echo "FAIL: other weights after moment $i of seed $seed"; exit 1; }
    rm -rf "$dir/run"
}

(start "$dir/whole") || { cat "$dir/said"; exit 1; }
ended=0 killed=0 i=0 saves=0
while [ "$i" -lt "$moments" ]; do
    i=$((i + 1))
    before=$(parts)
    start "$dir/run" &
    pid=$!
    moment
    it=$(victim "$pid")
    [ -z "$it" ] || kill -9 "$it" 2>/dev/null
    wait "$pid" 2>/dev/null
    case $? in
    0) ended=$((ended + 1)); compare ;;
    137) killed=$((killed + 1)); saving && saves=$((saves + 1)) ;;
    *) echo "FAIL: moment $i of seed $seed"; tail -5 "$dir/said"; exit 1 ;;
    esac
done
(start "$dir/run") || { tail -5 "$dir/said"; exit 1; }
compare
grep damaged "$dir/said" && { echo "FAIL: a damaged checkpoint"; exit 1; }
echo "$moments moments on $ranks process(es) of $devices device(s): killed $killed times, $saves of them while saving, $((ended + 1)) runs came to their end, all with the same weights"
