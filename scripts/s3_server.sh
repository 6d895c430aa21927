#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# s3_server.sh — a real S3 server for `make s3`: Ceph's radosgw over one monitor and one disk in a folder of its own.
# Debian and Ubuntu: apt install radosgw ceph-mon ceph-osd ceph-common.
#
#   s3_server.sh COMMAND …   runs the command with AWS_… set, then ends the server and removes the folder. RGW_PID names a file with the
#                            process to kill, and "$RGW_START" starts it again.
set -eu
for tool in radosgw ceph-mon ceph-osd ceph radosgw-admin monmaptool; do
    command -v "$tool" >/dev/null || { echo "skipped: no $tool here (apt install radosgw ceph-mon ceph-osd ceph-common)"; exit 0; }
done
W=$(mktemp -d) C=$W/ceph.conf F=11111111-2222-3333-4444-555555555555 U=66666666-7777-8888-9999-aaaaaaaaaaaa
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
MON=$(free_port) RGW=$(free_port)
PIDS=
end() {
    for p in $PIDS $(cat "$W/rgw.pid" 2>/dev/null); do kill "$p" 2>/dev/null || :; done
    sleep 1
    for p in $PIDS $(cat "$W/rgw.pid" 2>/dev/null); do kill -9 "$p" 2>/dev/null || :; done
    rm -rf "$W"
}
trap end EXIT
trap 'exit 1' INT TERM
mkdir -p "$W/mon" "$W/osd" "$W/run" "$W/rgw"
cat >"$C" <<CONF
[global]
fsid=$F
mon host=v1:127.0.0.1:$MON
mon initial members=a
public network=127.0.0.0/8
auth cluster required=none
auth service required=none
auth client required=none
osd pool default size=1
osd pool default min size=1
osd pool default pg num=8
osd pool default pg autoscale mode=off
mon allow pool size one=true
mon data=$W/mon/a
osd data=$W/osd/0
osd crush chooseleaf type=0
bluestore block size=6442450944
run dir=$W/run
log file=$W/\$name.log
admin socket=$W/run/\$name.sock
pid file=$W/run/\$name.pid
[client.rgw]
rgw frontends=beast endpoint=127.0.0.1:$RGW
rgw data=$W/rgw
CONF
monmaptool --create --clobber --addv a "[v1:127.0.0.1:$MON]" --fsid "$F" "$W/monmap" >/dev/null
mkdir -p "$W/mon/a" "$W/osd/0"
ceph-mon -c "$C" --mkfs -i a --monmap "$W/monmap" >/dev/null 2>&1
ceph-mon -c "$C" -i a -f >/dev/null 2>&1 &
PIDS=$!
ceph -c "$C" osd new "$U" >/dev/null 2>&1
ceph-osd -c "$C" -i 0 --mkfs --osd-uuid "$U" >/dev/null 2>&1
for _ in $(seq 20); do # now and then the monitor refuses it ("wrong fsid"), and it ends
    ceph-osd -c "$C" -i 0 -f >/dev/null 2>&1 &
    OSD=$! PIDS="$PIDS $!"
    for _ in $(seq 100); do
        ceph -c "$C" osd dump 2>/dev/null | grep -q '^osd.0 up' && break 2
        kill -0 "$OSD" 2>/dev/null || break
        sleep 0.2
    done
done
export RGW_PID="$W/rgw.pid" RGW_START="$W/start"
printf '#!/bin/sh\nradosgw -c %s -n client.rgw -f >/dev/null 2>&1 &\necho $! >%s\n' "$C" "$RGW_PID" >"$RGW_START"
chmod +x "$RGW_START"
"$RGW_START"
radosgw-admin -c "$C" -n client.rgw user create --uid=trn --display-name=trn --access-key=TRNKEY --secret=trn/secret+1 >/dev/null 2>&1
RGW_ADMIN="radosgw-admin -c $C -n client.rgw"
export RGW_ADMIN AWS_ENDPOINT_URL=http://127.0.0.1:$RGW AWS_ACCESS_KEY_ID=TRNKEY AWS_SECRET_ACCESS_KEY=trn/secret+1 AWS_REGION=us-east-1
for _ in $(seq 300); do
    curl -s -o /dev/null "$AWS_ENDPOINT_URL" 2>/dev/null && break || python3 -c "import urllib.request as u; u.urlopen('$AWS_ENDPOINT_URL')" 2>/dev/null && break
    sleep 0.2
done
"$@"
