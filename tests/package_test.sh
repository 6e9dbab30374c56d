#!/usr/bin/env bash
# package_test.sh FOLDER [WHEEL]: installs the packages of FOLDER (from `./dev package`) in a bare Debian,
# uses them from programs, build systems, shells and Python with no path set, and removes them: nothing of
# them may remain. A wheel is tested in a plain environment. Requires root, mmdebstrap and this machine's
# Debian mirror. ANYDML_BARE_DEBIAN=FOLDER keeps the bare Debian there for the next time.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$(realpath "$1") wheel=${2:+$(realpath "$2")}
[ "$(id -u)" -eq 0 ] || { echo "package_test.sh: must be root, to make a bare Debian and to enter it" >&2; exit 1; }
# shellcheck disable=SC1091
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root

# in_root COMMAND...: with /proc, which is unmounted afterwards, and with the environment of a login only.
in_root() {
  # shellcheck disable=SC2016  # expanded there
  unshare --mount bash -c 'root=$1; shift; mount -t proc proc "$root/proc"
    exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
      DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"' in_root "$root" "$@"
}

say() {
  echo "== $*"
}

# expect TEXT COMMAND...: the command's output in the bare Debian contains TEXT.
expect() {
  local text=$1 output
  shift
  output=$(in_root "$@" 2>&1) || { printf 'failed: %s\n%s\n' "$*" "$output"; exit 1; }
  [[ $output == *"$text"* ]] || { printf '%s: expected "%s", got:\n%s\n' "$*" "$text" "$output"; exit 1; }
}

install_packages() {
  in_root apt-get install -q -y --no-install-recommends "$@" >"$work/apt.log" 2>&1 || { cat "$work/apt.log"; exit 1; }
}

say "a bare Debian ($suite)"
bare=${ANYDML_BARE_DEBIAN:-$work/bare}
if [ ! -d "$bare/usr" ]; then
  mapfile -t mirrors < <(find /etc/apt -size +0 \( -name '*.sources' -o -path '*/sources.list*' -name '*.list' \))
  mmdebstrap --quiet --variant=apt "$suite" "$bare" "${mirrors[@]}" 2>"$work/mmdebstrap.log" ||
    { cat "$work/mmdebstrap.log"; exit 1; }
fi
cp -a "$bare" "$root"
mkdir "$root/packages"
cp "$folder"/*.deb ${wheel:+"$wheel"} "$root/packages/"
cp -r "$here/install/consumer" "$here/../examples/digits" "$root/packages/"
mapfile -t debs < <(cd "$root" && ls packages/*.deb)
packages=()
for deb in "${debs[@]}"; do packages+=("$(dpkg-deb -f "$root/$deb" Package)"); done

say "install ${packages[*]}"
cp -L /etc/resolv.conf "$root/etc/"
in_root apt-get update -q >"$work/apt.log" 2>&1 || { cat "$work/apt.log"; exit 1; }
install_packages "${debs[@]/#/./}"

say "the command line"
expect '[9, 8]' anydml op TOP_K1 InputTensor='[3, 9, 1, 8]' Axis=0 K=2 AxisDirection=DECREASING
expect 'probabilities' anydml run /packages/digits/digits.onnx pictures=/packages/digits/pictures.npy
expect 'cpu' anydml adapters
expect 'passed' anydml conformance --filter examples/
# The module is found where it is installed, so that only the driver is missing, which a bare Debian lacks.
[[ " ${packages[*]} " != *" libanydml-cuda0 "* ]] || expect 'no GPU: CUDA: looking for devices' anydml adapters
for file in man/man1/anydml.1.gz bash-completion/completions/anydml zsh/vendor-completions/_anydml \
  fish/vendor_completions.d/anydml.fish; do
  [ -s "$root/usr/share/$file" ] || { echo "/usr/share/$file is missing"; exit 1; }
done

say "Python"
expect '[1, 3]' python3 -c 'import anydml, numpy
print(anydml.top_k1(numpy.array([3, 9, 1, 8], numpy.float32), axis=0, k=2, direction="decreasing")[1].tolist())'
for library in directml d3d12 dxcore dxgi; do
  expect "lib$library.so" python3 -c "import ctypes; print(ctypes.CDLL('lib$library.so'))"
done

say "onnxruntime's plugin"
expect 'CreateEpFactories' python3 -c 'import ctypes, glob
print(ctypes.CDLL(*glob.glob("/usr/lib/*/anydml/libanydml_ort.so")).CreateEpFactories.__name__)'

say "an environment for Python"
install_packages python3-venv
in_root python3 -m venv --system-site-packages --without-pip /packages/with
expect '0.1' /packages/with/bin/python -c 'import anydml; print(anydml.__version__)'
if [ -n "$wheel" ]; then
  in_root python3 -m venv /packages/plain
  in_root /packages/plain/bin/pip install -q --no-index --no-deps "/packages/$(basename "$wheel")"
  # NumPy from an independent source: here Debian's.
  in_root sh -c 'cp -r /usr/lib/python3/dist-packages/numpy /packages/plain/lib/python3*/site-packages/'
  expect '/packages/plain/' /packages/plain/bin/python -c 'import anydml, numpy
assert anydml.top_k1(numpy.array([3, 9], numpy.float32), axis=0, k=1, direction="increasing")[1].tolist() == [0]
print([line for line in open("/proc/self/maps") if "libanydml.so" in line])'
fi

say "find_package and pkg-config"
install_packages g++ cmake make pkg-config
in_root cmake -S /packages/consumer -B /packages/build >"$work/cmake.log"
in_root cmake --build /packages/build >>"$work/cmake.log" || { cat "$work/cmake.log"; exit 1; }
expect 'AnyDML' /packages/build/consumer
# shellcheck disable=SC2016
in_root sh -c 'g++ -std=c++17 /packages/consumer/main.cpp -o /packages/client $(pkg-config --cflags --libs directml)'
expect 'AnyDML' /packages/client

say "remove"
files=$(for deb in "${debs[@]}"; do dpkg-deb -c "$root/$deb" | awk '$1 !~ /^d/ {sub("^[.]", "", $6); print $6}'; done)
in_root apt-get purge -q -y "${packages[@]}" >"$work/apt.log" 2>&1 || { cat "$work/apt.log"; exit 1; }
left=$(while read -r file; do [ ! -e "$root$file" ] || echo "$file"; done <<<"$files"
  find "$root" -path "$root/packages" -prune -o \( -name '*anydml*' -o -name '*directml*' \) -print |
    grep -v -e "^$root/var/lib/dpkg/info/directx-headers" || true)
[ -z "$left" ] || { printf 'left behind:\n%s\n' "$left"; exit 1; }
in_root dpkg --audit
in_root sh -c '! ldconfig -p | grep -e anydml -e directml'
say "nothing is left"
