# Shared by ./test, ./demo and ./bench: installs what is missing, configures and builds. Sourced, never run.

# What a build and its tests need, by Debian's names. oneDNN's CMake files look for OpenCL, which its package only
# recommends.
packages=(
  cmake ninja-build ccache mold pkg-config
  g++ clang-19 libclang-rt-19-dev
  libfmt-dev nlohmann-json3-dev libsleef-dev libopenblas-dev libdnnl-dev ocl-icd-opencl-dev
  libcli11-dev libdw-dev libboost-dev zlib1g-dev libz3-dev
  libgtest-dev libgmock-dev python3
)

say() { printf '%s\n' "$*"; }
die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

is_debian() {
  command -v apt-get >/dev/null && command -v dpkg-query >/dev/null || return 1
  local ID="" ID_LIKE=""
  [ -r /etc/os-release ] && . /etc/os-release
  [[ " $ID $ID_LIKE " == *" debian "* ]]
}

missing_packages() {
  local package
  for package in "${packages[@]}"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || say "$package"
  done
}

# Runs a command as root: by sudo where needed, and without a question where nobody could answer it.
as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif ! command -v sudo >/dev/null; then
    die "packages are missing, and installing them needs root or sudo; install these and start again: ${missing[*]}"
  elif [ -n "${CI:-}" ]; then
    sudo -n "$@"
  else
    sudo "$@"
  fi
}

# Installs the packages that are missing; WEFT_SKIP_SETUP=1 trusts the machine to have them.
install_packages() {
  [ "${WEFT_SKIP_SETUP:-0}" = 0 ] || return 0
  if ! is_debian; then
    say "weft installs what it needs on Debian only. Elsewhere, install what corresponds to these packages:" >&2
    say "  ${packages[*]}" >&2
    die "this is not a Debian system; with all of these in place, set WEFT_SKIP_SETUP=1 and start again"
  fi
  local missing
  mapfile -t missing < <(missing_packages)
  [ "${#missing[@]}" -gt 0 ] || return 0
  say "Installing: ${missing[*]}"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q &&
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" ||
    die "apt-get could not install: ${missing[*]}"
}

# How many things run at once.
job_count() { say "${WEFT_JOBS:-$(nproc)}"; }

# Of Ninja's lines a step, "[12/345 6s] ...", at most one in ten seconds; everything else as it comes.
thin_progress() {
  local line last=-10
  while IFS= read -r line; do
    if [[ $line =~ ^(\[[0-9]+/[0-9]+\ [0-9.]+s\])\  ]]; then
      [ $((SECONDS - last)) -ge 10 ] || continue
      last=$SECONDS line="building ${BASH_REMATCH[1]}"
    fi
    say "$line"
  done
}

# build PRESET [TARGET...]: configures build/PRESET and builds the targets, or everything.
build() {
  local preset=$1 log
  shift
  log=build/$preset-configure.log
  mkdir -p build
  if ! cmake --preset "$preset" >"$log" 2>&1; then
    cat "$log" >&2
    return 1
  fi
  local command=(cmake --build "build/$preset" --parallel "$(job_count)" ${1:+--target "$@"})
  # A line a step is for a terminal, where it overwrites itself; elsewhere silence would look like death.
  export NINJA_STATUS='[%f/%t %es] '
  if [ -t 1 ]; then "${command[@]}"; else ("${command[@]}" 2>&1 | thin_progress; exit "${PIPESTATUS[0]}"); fi
}
