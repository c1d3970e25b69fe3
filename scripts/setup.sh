#!/bin/bash
# Installs the Debian packages that k2c needs and that are missing. Silent when nothing is missing; needs no root then.
#   scripts/setup.sh [PACKAGE ...]      more packages beside those that every build needs
# docs/Dependencies.md says what each package is for.
set -euo pipefail

packages=(
  libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools clang-22 lld-22
  g++ cmake ninja-build ccache python3 python3-psutil
  clang-format-22 libcli11-dev nlohmann-json3-dev libyaml-cpp-dev libonig-dev libpugixml-dev libprotobuf-dev
  libutf8proc-dev libxxhash-dev libgtest-dev
  "$@"
)
# A build does without those that apt cannot get: the transport over that library and its tests are left out.
optional=(openmpi-bin libopenmpi-dev mpich libmpich-dev libucx-dev)

fail() {
  echo "setup: $1" >&2
  exit 1
}

[ "$(uname -sm)" = "Linux x86_64" ] || fail "$(uname -sm) is not supported; k2c builds on x86-64 Linux"
if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  fail "this system has no apt-get; install what Debian calls ${packages[*]},\
 then build with cmake -G Ninja -S . -B build"
fi

# missing PACKAGE ...: those of them that are not installed, one a line.
missing() {
  local package status
  for package in "$@"; do
    status=$(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null || true)
    [ "${status:0:2}" = ii ] || echo "$package"
  done
}

has_candidate() {
  local candidate
  candidate=$(LC_ALL=C apt-cache policy "$1" | sed -n 's/^  Candidate: //p')
  [ -n "$candidate" ] && [ "$candidate" != "(none)" ]
}

mapfile -t required < <(missing "${packages[@]}")
mapfile -t wanted < <(missing "${optional[@]}")
[ $((${#required[@]} + ${#wanted[@]})) -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" != 0 ]; then
  if command -v sudo >/dev/null; then
    as_root=(sudo)
  elif [ ${#required[@]} -gt 0 ]; then
    fail "missing: ${required[*]}; run as root: apt-get install --no-install-recommends ${required[*]}"
  fi
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT

install() {
  echo "==> installing $*" >&2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >"$log" 2>&1
}

if [ ${#required[@]} -gt 0 ]; then
  "${as_root[@]}" apt-get update -qq >"$log" 2>&1 || { tail -n 5 "$log" >&2; fail "apt-get update failed"; }
  for package in "${required[@]}"; do
    has_candidate "$package" || case $package in
      *-22*) fail "apt offers no $package: k2c needs LLVM 22.1, which Debian 12 has in bookworm-security" ;;
      *) fail "apt offers no $package" ;;
    esac
  done
  install "${required[@]}" || { tail -n 20 "$log" >&2; fail "apt-get install failed"; }
fi
for package in "${wanted[@]}"; do
  if ! has_candidate "$package" || ! install "$package"; then
    echo "setup: going on without $package: builds have no transport over that library" >&2
  fi
done
