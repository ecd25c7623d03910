#!/bin/bash
# What `make wheel-aarch64` needs beside what tools/bootstrap.sh installs, on Debian
# or Ubuntu of x86-64: a cross compiler, qemu-user, and the libraries of Debian 12
# for arm64, unpacked into a folder (nothing in it is installed or configured).
# Usage: tools/aarch64.sh ROOT     MLXVK_NO_APT=1 skips the apt part.
set -euo pipefail
root="$1"

say() { printf '\033[1m== %s\033[0m\n' "$*"; }
fail() { printf 'aarch64: %s\n' "$*" >&2; exit 1; }

missing=()
while read -r command package; do
  command -v "$command" >/dev/null || missing+=("$package")
done <<'TABLE'
aarch64-linux-gnu-g++ g++-aarch64-linux-gnu
qemu-aarch64-static qemu-user-static
debootstrap debootstrap
TABLE
sudo=()
[[ $EUID -eq 0 ]] || sudo=(sudo)
if [[ ${#missing[@]} -gt 0 ]]; then
  [[ -z "${MLXVK_NO_APT:-}" ]] ||
    fail "packages are missing; run as root: apt-get install -y ${missing[*]}"
  say "Installing ${missing[*]}"
  "${sudo[@]}" apt-get update -qq
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
    --no-install-recommends "${missing[@]}"
fi

[[ ! -e "$root/.unpacked" ]] || exit 0
say "Fetching the libraries of Debian 12 for arm64 (110 MB)"
# --foreign fetches all and configures nothing, for which it would run arm64's own.
"${sudo[@]}" rm -rf "$root"
"${sudo[@]}" debootstrap --foreign --arch=arm64 --variant=minbase \
  --include=libopenblas-dev,liblapacke-dev,libfmt-dev,nlohmann-json3-dev,libvulkan1,mesa-vulkan-drivers,python3,python3-numpy \
  bookworm "$root" >"$root.log" 2>&1 || fail "debootstrap failed: $(tail -n1 "$root.log")"
for package in "$root"/var/cache/apt/archives/*.deb; do
  dpkg-deb --fsys-tarfile "$package" |
    "${sudo[@]}" tar -x --keep-directory-symlink -C "$root"
done
# Which of several BLAS is meant, an installation script would say.
libraries="$root/usr/lib/aarch64-linux-gnu"
for name in libopenblas.so libopenblas.so.0; do
  "${sudo[@]}" ln -sf "openblas-pthread/$name" "$libraries/$name"
done
for name in libblas.so libblas.so.3 liblapack.so liblapack.so.3; do
  "${sudo[@]}" ln -sf "openblas-pthread/$name" "$libraries/$name"
done
"${sudo[@]}" touch "$root/.unpacked"
