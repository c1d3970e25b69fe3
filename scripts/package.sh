#!/bin/bash
# Builds the packages: build/k2c-VERSION-x86_64.tar.gz, to be unpacked anywhere, and build/k2c_VERSION_amd64.deb.
#   scripts/package.sh            writes both
#   scripts/package.sh --check    and tries the .deb: installed by apt in a bare root of this Debian, where nothing else
#                                 is, it compiles the bundled model and generates (needs mmdebstrap; a minute or two)
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case "$*" in
  '' | --check) ;;
  *) echo "package: '$*' is none of its options; it knows --check" >&2; exit 2 ;;
esac
if [ "${1:-}" = --check ] && ! command -v mmdebstrap >/dev/null; then
  echo "package: mmdebstrap is missing, which makes the bare root; run scripts/setup.sh mmdebstrap" >&2
  exit 1
fi

prepare
step "building"
build k2c k2c-plan k2c-opt k2c-lsp-server k2rt-run >&2
for kind in TGZ DEB; do
  (cd build && cpack -G "$kind") >build/package.log 2>&1 || { tail -n 20 build/package.log >&2; exit 1; }
done
package=$(ls -t build/k2c_*_amd64.deb | head -n 1)
ls -l "$package" build/k2c-*-x86_64.tar.gz
[ "${1:-}" = --check ] || exit 0

step "a bare root with $package: what a new user types, with its seconds"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/first-minutes" <<'SCRIPT'
#!/bin/bash
# Runs the commands of a new user one by one, in a home that is empty.
set -euo pipefail
export HOME=/tmp
cd /tmp
while read -r command; do
  printf '\n$ %s\n' "$command"
  start=$EPOCHREALTIME
  bash -o pipefail -c "$command" </dev/null
  awk -v end="$EPOCHREALTIME" -v start="$start" 'BEGIN { printf "[%.1f s]\n", end - start }'
done <<'COMMANDS'
k2c doctor
k2c compile /usr/share/k2c/models/bundled -o out
out/run generate --prompt "Then Jesus said unto them," -n 32
out/run generate --prompt-ids 1,2,3 -n 8 --json
out/run bench
k2c explain out
k2c run /usr/share/k2c/models/bundled --prompt "And it came to pass" -n 16
k2c plan kimi-k2 --topology 4x8-h200 --html plan.html > plan.txt; head -n 12 plan.txt
k2c compile /usr/share/k2c/models/configs/kimi-k2 --emit runtime --no-kernels -o kimi-k2
k2c-opt --version
k2c-lsp-server --help > help.txt
COMMANDS
SCRIPT
chmod 755 "$folder/first-minutes"
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
# mmdebstrap runs as root of a namespace; the root is thrown away.
SECONDS=0
mmdebstrap --variant=apt --quiet --include="$PWD/$package" \
  --hook-dir=/usr/share/mmdebstrap/hooks/file-mirror-automount \
  --customize-hook="copy-in '$folder/first-minutes' /usr/local/bin" \
  --customize-hook='chroot "$1" first-minutes' "$release" "$folder/root.tar"
echo "the package compiles and generates in a bare root, in $SECONDS s with its installation"
