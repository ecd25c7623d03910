#!/bin/bash
# Brings a fresh Debian 12 or Ubuntu 24.04 to the point where `make` can build:
# missing system packages (apt-get), .venv and its Python packages.
# Usage: tools/bootstrap.sh [VENV]     MLXVK_NO_APT=1 skips the apt part;
# MLXVK_MLX=VERSION takes another MLX of third_party/mlx.json than the newest;
# MLXVK_FULL=1 adds Clang, whose libFuzzer `make test-full` needs.
set -euo pipefail
cd "$(dirname "$0")/.."
venv="${1:-.venv}"

say() { printf '\033[1m== %s\033[0m\n' "$*"; }
fail() { printf 'bootstrap: %s\n' "$*" >&2; exit 1; }

missing=()
need_package() {
  local status
  status=$(dpkg-query -W -f='${Status}' "$1" 2>/dev/null || true)
  [[ "$status" == "install ok installed" ]] || missing+=("$1")
}
need_command() { command -v "$1" >/dev/null || missing+=("$2"); }

at_least() { # version least
  [[ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n1)" == "$2" ]]
}

find_python() {
  local p
  for p in "${PYTHON:-}" python3 python3.13 python3.12 python3.11; do
    if [[ -n "$p" ]] && command -v "$p" >/dev/null && "$p" -c \
      'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      echo "$p"
      return
    fi
  done
}

# The locked source packages use Rust edition 2024, which cargo reads since
# 1.85. Nothing is compiled with it.
cargo_program() {
  local c
  for c in cargo /usr/bin/cargo $(compgen -c cargo-1. | sort -rVu); do
    if command -v "$c" >/dev/null &&
      at_least "$("$c" --version 2>/dev/null | cut -d' ' -f2)" 1.85; then
      echo "$c"
      return
    fi
  done
}
cargo_package() {
  if [[ -n "$(apt-cache policy cargo-web 2>/dev/null |
    grep 'Candidate: [0-9]')" ]]; then
    echo cargo-web # Debian 12
    return
  fi
  local newest
  newest=$(apt-cache pkgnames cargo-1. | sort -V | tail -n1)
  echo "${newest:-cargo}" # Ubuntu 24.04: cargo-1.NN
}

system_packages() {
  if ! command -v dpkg-query >/dev/null; then
    say "This is not Debian or Ubuntu: the equivalents of the packages in"
    say "tools/bootstrap.sh are expected to be installed."
    return
  fi
  say "Checking system packages"
  local p
  for p in libopenblas-dev liblapacke-dev libfmt-dev nlohmann-json3-dev \
    doctest-dev libvulkan-dev mesa-vulkan-drivers vulkan-tools \
    vulkan-validationlayers; do
    need_package "$p"
  done
  need_command ninja ninja-build
  need_command ccache ccache
  need_command clang-format clang-format
  need_command cmake cmake
  need_command g++ g++
  if [[ -n "${MLXVK_FULL:-}" ]]; then
    local clang
    clang=$(apt-cache depends clang 2>/dev/null |
      sed -n 's/.*Depends: clang-\([0-9]*\)$/\1/p' || true)
    need_package "clang-${clang:-14}"
    need_package "libclang-rt-${clang:-14}-dev"
  fi
  local python
  python=$(find_python)
  if [[ -z "$python" ]]; then
    missing+=(python3 python3-venv)
  elif ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
    missing+=(python3-venv)
  fi
  local want_cargo=
  [[ -n "$(cargo_program)" ]] || want_cargo=1
  [[ ${#missing[@]} -eq 0 && -z "$want_cargo" ]] && return

  local -a sudo=()
  [[ $EUID -eq 0 ]] || sudo=(sudo)
  if [[ -n "${MLXVK_NO_APT:-}" ]] ||
    { [[ $EUID -ne 0 ]] && ! command -v sudo >/dev/null; }; then
    [[ -n "$want_cargo" ]] && missing+=("$(cargo_package)")
    fail "system packages are missing; run as root:
  apt-get update && apt-get install -y ${missing[*]}"
  fi
  say "apt-get update"
  "${sudo[@]}" apt-get update -qq ||
    say "apt-get update failed; trying with the lists that are there"
  [[ -n "$want_cargo" ]] && missing+=("$(cargo_package)")
  say "Installing ${missing[*]}"
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
    --no-install-recommends "${missing[@]}" ||
    fail "apt-get could not install them; run as root:
  apt-get update && apt-get install -y ${missing[*]}"
}

versions() {
  [[ -n "$(find_python)" ]] || fail "Python 3.11 or newer is needed."
  at_least "$(cmake --version | head -n1 | cut -d' ' -f3)" 3.25 ||
    fail "CMake 3.25 or newer is needed, this is $(cmake --version | head -n1)."
  at_least "$(g++ -dumpfullversion)" 12 ||
    fail "g++ 12 or newer is needed, this is $(g++ -dumpfullversion)."
  [[ -n "$(cargo_program)" || -n "${MLX_SOURCE_DIR:-}" ]] ||
    fail "cargo 1.85 or newer is needed to download the locked C++ sources."
}

python_packages() {
  if [[ ! -x "$venv/bin/python" ]]; then
    say "Making $venv with $("$(find_python)" --version)"
    "$(find_python)" -m venv "$venv"
  fi
  say "Installing Python packages into $venv"
  "$venv/bin/python" -m pip install --disable-pip-version-check -q \
    -r tools/requirements.txt $(python3 tools/wheel_metadata.py)
}

system_packages
versions
python_packages
