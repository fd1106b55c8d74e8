#!/bin/sh
# The life of the Debian package, within a root of Debian: life.sh OLD.deb NEW.deb. Prints how long a new user waits.
set -eu
old=$1 new=$2
data=/var/lib/clawdforge/data
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8

fail() { echo "life.sh: $*" >&2; cat /tmp/serve.log >&2 || true; exit 1; }

start() {
  rm -f "$data/port"
  # As the unit starts it.
  setpriv --reuid clawdforge --regid clawdforge --clear-groups env -i PATH=/usr/bin:/bin HOME=/var/lib/clawdforge \
    CLAWDFORGE_DATA_DIR=$data clawdforge serve --config /etc/clawdforge/clawdforge.toml --listen 127.0.0.1:0 > /tmp/serve.log 2>&1 &
  gateway=$!
  tries=0
  until grep -q '^clawdforge listening' /tmp/serve.log; do
    tries=$((tries + 1))
    [ $tries -lt 300 ] || fail "the gateway does not start"
    sleep 0.1
  done
}

begun=$(date +%s)
apt-get install -y -qq --no-install-recommends "$old" > /tmp/apt.log 2>&1 || { cat /tmp/apt.log >&2; exit 1; }
[ "$(stat -c '%U %a' /var/lib/clawdforge)" = "clawdforge 700" ] || fail "the state directory is not the gateway's own"
start
token=$(clawdforge token mint my-app --data-dir $data)
CLAWDFORGE_TOKEN=$token clawdforge run --agent demo --data-dir $data Hello > /tmp/answer
[ "$(cat /tmp/answer)" = "You said: Hello" ] || fail "no answer"
CLAWDFORGE_TOKEN=$token clawdforge session new --agent demo --data-dir $data > /tmp/session
CLAWDFORGE_TOKEN=$token clawdforge session turn "$(cat /tmp/session)" --data-dir $data "slow 3" > /tmp/answer
grep -q 'Slowly 3 of 3' /tmp/answer || fail "no streamed answer"
echo "from the package to the first answer of a session: $(($(date +%s) - begun)) s"

# Under load: a job is running when the package is replaced, and is there afterwards.
CLAWDFORGE_TOKEN=$token clawdforge job add --agent demo --data-dir $data "slow 20" > /tmp/job
echo 'max_runs = 3' >> /etc/clawdforge/clawdforge.toml
apt-get install -y -qq --no-install-recommends -o Dpkg::Options::=--force-confold "$new" > /tmp/apt.log 2>&1 || { cat /tmp/apt.log >&2; exit 1; }
[ "$(dpkg-query -W -f '${Version}' clawdforge)" != "$(dpkg-deb -f "$old" Version)" ] || fail "it was not upgraded"
kill -TERM $gateway # what the restart of the unit does
wait $gateway || fail "the gateway did not end well"
start
state=$(CLAWDFORGE_TOKEN=$token clawdforge job wait "$(cat /tmp/job)" --data-dir $data)
[ -n "$state" ] || fail "the job was lost"
clawdforge token list --data-dir $data | grep -q my-app || fail "the app was lost"
clawdforge config --config /etc/clawdforge/clawdforge.toml | grep -q '^max_runs  *= 3 ' || fail "the configuration was lost"
kill -TERM $gateway
wait $gateway || fail "the gateway did not end well"
setpriv --reuid clawdforge --regid clawdforge --clear-groups env -i PATH=/usr/bin:/bin HOME=/var/lib/clawdforge \
  CLAWDFORGE_DATA_DIR=$data KEEP=2 sh -c 'for _ in 1 2 3; do
    /usr/libexec/clawdforge/backup /usr/bin/clawdforge /etc/clawdforge/clawdforge.toml /var/lib/clawdforge/backups >/dev/null
    sleep 1.1
  done'
[ "$(ls /var/lib/clawdforge/backups | wc -l)" = 2 ] || fail "the backups are not two"

apt-get remove -y -qq clawdforge > /tmp/apt.log 2>&1 || { cat /tmp/apt.log >&2; exit 1; }
[ ! -e /usr/bin/clawdforge ] || fail "remove left the program"
[ -e $data/clawdforge.db ] && [ -e /etc/clawdforge/clawdforge.toml ] || fail "remove took the data"
apt-get purge -y -qq clawdforge > /tmp/apt.log 2>&1 || { cat /tmp/apt.log >&2; exit 1; }
[ ! -e /var/lib/clawdforge ] && [ ! -e /etc/clawdforge ] || fail "purge left the data"
echo "installed, used, upgraded, removed and purged"
