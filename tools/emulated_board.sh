#!/usr/bin/env bash
# A board of the other architecture, emulated on this machine: x86_64 on ARM, ARM on x86_64.
#
#   tools/emulated_board.sh setup          download an interpreter, TVM's runtime and the emulator into a folder
#   tools/emulated_board.sh serve [PORT]   serve it as a board with the key `emulated`
#   tools/emulated_board.sh python ARG...  run its interpreter
#   tools/emulated_board.sh farm [PORT]    print a farm file that has it
#
# Everything stays in the folder .emulated-board (or $EMULATED_BOARD); no package is installed. Times under
# emulation test the way to a board; they say nothing about the speed of one.
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
folder=${EMULATED_BOARD:-$here/.emulated-board}
python=${PYTHON:-$here/.venv/bin/python}
port=9099

case $(uname -m) in
  aarch64) own=arm64 foreign=amd64 machine=x86_64 mcpu=x86-64-v3 ;;
  x86_64) own=amd64 foreign=arm64 machine=aarch64 mcpu=cortex-a72 ;;
  *) echo "there is no emulated board for $(uname -m); use an ARM or x86_64 machine" >&2; exit 2 ;;
esac
root=$folder/root site=$folder/site emulator=$folder/qemu/usr/bin/qemu-$machine-static

# apt with folders of its own: it believes that nothing is installed and that packages are for $1.
private_apt() {
  local architecture=$1 state=$folder/apt-$1
  shift
  mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
  touch "$state/status"
  apt-get -qq -o APT::Architecture="$architecture" -o APT::Architectures::="$architecture" \
    -o Dir::State="$state" -o Dir::State::lists="$state/lists" -o Dir::State::status="$state/status" \
    -o Dir::Cache="$state/cache" -o APT::Sandbox::User="$(id -un)" -o APT::Install-Recommends=false \
    -o Debug::NoLocking=true "$@"
}

unpack() { # the packages in the cache of an architecture, into a folder
  mkdir -p "$2"
  for package in "$folder/apt-$1"/cache/archives/*.deb; do dpkg-deb -x "$package" "$2"; done
}

setup() {
  command -v apt-get dpkg-deb >/dev/null || { echo "the emulated board is made of Debian packages; apt is missing" >&2; exit 2; }
  mkdir -p "$folder"
  private_apt "$own" update
  (mkdir -p "$folder/apt-$own/cache/archives" && cd "$folder/apt-$own/cache/archives" && private_apt "$own" download qemu-user-static)
  unpack "$own" "$folder/qemu"
  private_apt "$foreign" update
  private_apt "$foreign" --download-only -y install python3 libstdc++6 libgomp1 zlib1g
  unpack "$foreign" "$root"
  find "$root" -type l -lname '/*' | while read -r link; do # absolute links would lead to this machine's files
    ln -sfnr "$root$(readlink "$link")" "$link"
  done
  local version
  version=$(basename "$(readlink "$root/usr/bin/python3")")
  version=${version#python}
  rm -rf "$site"
  "$python" -m pip install --quiet --disable-pip-version-check --target "$site" --no-deps --only-binary=:all: \
    --implementation cp --python-version "$version" $(platforms) $(pinned)
  compile "$version"
  echo "an emulated $machine board is in $folder; start it with: tools/emulated_board.sh serve"
}

# Compiling all modules anew at each start would take a minute; an interpreter of the same version does it faster.
compile() {
  if [ "$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')" = "$1" ]; then
    "$python" -m compileall -q "$root/usr/lib/python$1" "$site" >/dev/null || true
  else
    (emulated -m compileall -q "$root/usr/lib/python$1" "$site" >/dev/null) || true
  fi
}

platforms() {
  for glibc in 2014 _2_17 _2_24 _2_27 _2_28 _2_31 _2_34; do echo "--platform manylinux${glibc}_$machine"; done
}

# What TVM's runtime needs, in the versions of this machine: board and build host have to agree.
pinned() {
  "$python" - <<'END'
from importlib.metadata import version
for name in ("apache-tvm", "apache-tvm-ffi", "numpy", "ml_dtypes", "typing_extensions", "psutil", "cloudpickle", "tornado"):
    print(f"{name}=={version(name)}")
END
}

emulated() {
  [ -x "$emulator" ] || { echo "there is no emulated board yet; make it with: make emulated-board" >&2; exit 2; }
  local interpreter
  interpreter=$root/usr/bin/$(basename "$(readlink "$root/usr/bin/python3")")
  exec env -u PYTHONPATH QEMU_LD_PREFIX="$root" PYTHONHOME="$root/usr" PYTHONPATH="$site" \
    PYTHONDONTWRITEBYTECODE=1 TVM_USE_RUNTIME_LIB=1 "$emulator" -cpu max "$interpreter" "$@"
}

farm() {
  cat <<END
engine = "local"

[[devices]]
key = "emulated"
kind = "rpc"
address = "127.0.0.1:${1:-$port}"
target = '{"kind": "llvm", "mtriple": "$machine-linux-gnu", "mcpu": "$mcpu"}'
END
}

case ${1:-} in
  setup) setup ;;
  serve) "$python" -m tuneloom board file > "$folder/server.py"; emulated "$folder/server.py" --key emulated --port "${2:-$port}" ;;
  python) shift; emulated "$@" ;;
  farm) farm "${2:-}" ;;
  *) sed -n '2,9p' "$0" | cut -c3-; exit 2 ;;
esac
