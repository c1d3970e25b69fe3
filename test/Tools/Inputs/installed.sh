#!/bin/bash
# installed.sh SOURCE BUILD COMMANDS: installs into a folder outside of both and moves it. Runs the commands in another
# folder beside it, $PREFIX, where source and build are empty.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cmake --install "$2" --prefix "$folder/first" --strip >/dev/null
mv "$folder/first" "$folder/second"
mkdir "$folder/work"
cp "$3" "$folder/commands"
hide='mount -t tmpfs none "$1" && mkdir -p "$2" && mount -t tmpfs none "$2" && cd "$3" && exec sh -e ../commands'
env HOME="$folder" XDG_CACHE_HOME="$folder/cache" PREFIX="$folder/second" PATH="$folder/second/bin:/usr/bin:/bin" \
  unshare -rm sh -c "$hide" hidden "$1" "$2" "$folder/work"
