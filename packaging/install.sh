#!/bin/sh
# Puts clawdforge in place for one user, without root:
#
#   ./install.sh [--prefix DIR]           DIR is ~/.local unless named
#   ./install.sh --undo [--prefix DIR]    takes away what was put there
#
# The data (~/.local/state/clawdforge) and the configuration stay in both cases. Needs a shell and the usual small tools.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
prefix=${HOME:-}/.local
is_undo=
while [ $# -gt 0 ]; do
  case $1 in
    --prefix) prefix=${2:?--prefix needs a directory}; shift 2 ;;
    --undo) is_undo=yes; shift ;;
    -h | --help) sed -n '2,8p' "$0" | sed 's/^# \{0,1\}//'; exit 0 ;;
    *) echo "install.sh: unknown option $1" >&2; exit 2 ;;
  esac
done
case $prefix in
  /*) ;;
  *) echo "install.sh: the prefix must be an absolute path" >&2; exit 2 ;;
esac

place=$prefix/lib/clawdforge
unit=$prefix/share/systemd/user/clawdforge.service

undo() {
  rm -rf "$place" "$prefix/share/clawdforge"
  if [ -L "$prefix/bin/clawdforge" ]; then rm -f "$prefix/bin/clawdforge"; fi
  rm -f "$prefix/share/man/man1/clawdforge.1.gz" "$prefix"/share/man/man1/clawdforge-*.1.gz \
    "$prefix/share/man/man5/clawdforge.toml.5.gz" "$prefix/share/bash-completion/completions/clawdforge" \
    "$prefix/share/zsh/site-functions/_clawdforge" "$prefix/share/fish/vendor_completions.d/clawdforge.fish" "$unit"
}

if [ -n "$is_undo" ]; then
  undo
  echo "clawdforge was removed from $prefix. Its data are still in ~/.local/state/clawdforge."
  exit 0
fi

[ "$(uname -m)" = x86_64 ] || { echo "install.sh: this program is for x86-64, not for $(uname -m)" >&2; exit 1; }
if [ -e "$prefix/bin/clawdforge" ] && [ ! -L "$prefix/bin/clawdforge" ]; then
  echo "install.sh: $prefix/bin/clawdforge is there and was not put there by this script" >&2
  exit 1
fi
# Of a version that runs, files are replaced and not written over: it goes on with the old ones.
loader='' offset='' room='' version=''
. "$here/lib/loader"
path=$place/$loader
[ ${#path} -le "$room" ] || { echo "install.sh: the prefix is too long" >&2; exit 1; }

undo
mkdir -p "$place" "$prefix/bin" "$prefix/share/clawdforge" "$prefix/share/man/man1" "$prefix/share/man/man5" \
  "$prefix/share/bash-completion/completions" "$prefix/share/zsh/site-functions" "$prefix/share/fish/vendor_completions.d" \
  "$(dirname "$unit")"
cp "$here"/lib/* "$place/"
# The loader's path, and zeros after it, into the room that the program has for it.
{
  printf '%s' "$path"
  dd if=/dev/zero bs=1 count=$((room - ${#path})) 2>/dev/null
} | dd of="$place/clawdforge" bs=1 seek="$offset" conv=notrunc 2>/dev/null
chmod 755 "$place/clawdforge" "$path"
ln -sf "$place/clawdforge" "$prefix/bin/clawdforge"
cp -r "$here"/share/clients "$here"/share/examples "$here"/share/docs "$here"/share/clawdforge.toml "$prefix/share/clawdforge/"
cp "$here"/share/man/man1/* "$prefix/share/man/man1/"
cp "$here"/share/man/man5/* "$prefix/share/man/man5/"
cp "$here/share/completions/bash" "$prefix/share/bash-completion/completions/clawdforge"
cp "$here/share/completions/zsh" "$prefix/share/zsh/site-functions/_clawdforge"
cp "$here/share/completions/fish" "$prefix/share/fish/vendor_completions.d/clawdforge.fish"

# The program looks for certificates where Debian has them.
certificates=
for file in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/ca-bundle.pem /etc/ssl/cert.pem; do
  [ ! -e "$file" ] || { certificates=$file; break; }
done
cat > "$unit" <<UNIT
[Unit]
Description=clawdforge, a gateway in front of your own coding agents

[Service]
Type=notify
NotifyAccess=main
WatchdogSec=30
Environment=PATH=$prefix/bin:/usr/local/bin:/usr/bin:/bin
${certificates:+Environment=SSL_CERT_FILE=$certificates}
EnvironmentFile=-%E/clawdforge/environment
ExecStart=$prefix/bin/clawdforge serve
Restart=on-failure
RestartPreventExitStatus=2
KillMode=mixed
TimeoutStopSec=45
UMask=0077
NoNewPrivileges=yes

[Install]
WantedBy=default.target
UNIT

"$prefix/bin/clawdforge" version >/dev/null || { echo "install.sh: the program does not start here" >&2; exit 1; }
cat <<TEXT
clawdforge $version is in $prefix.

  start it:       $prefix/bin/clawdforge serve
  as a service:   systemctl --user enable --now clawdforge    (where systemd reads $prefix/share)
  first answer:   $prefix/bin/clawdforge chat --agent demo
  configuration:  $prefix/share/clawdforge/clawdforge.toml has every key; name your copy with --config
  undo:           $here/install.sh --undo --prefix $prefix
TEXT
[ -z "$certificates" ] || [ "$certificates" = /etc/ssl/certs/ca-certificates.crt ] ||
  echo "  certificates:   export SSL_CERT_FILE=$certificates before clawdforge serve, for webhooks over https"
