# The steps of `./dev test` and their helpers. ./dev sources this file, which uses its functions.
# shellcheck shell=bash

# Required for every change. The aim is 40 minutes on two cores.
steps=(format plain inputs tidy-changed)
# Required for a release. fuzz uses the build of asan, no-simd the build of plain.
all_steps=(format plain asan fuzz no-simd tidy tsan aarch64)
known_steps=(format plain inputs asan fuzz no-simd tidy-changed tidy tsan aarch64)
times=build-times  # durations of the steps, for ./dev times

# timed WHAT COMMAND...: records how long it took, for ./dev times.
timed() {
  local what=$1 start=$SECONDS
  shift
  "$@"
  echo "$what $((SECONDS - start))" >>"$times/$step.parts"
}

run_tests() {
  echo "dev: tests, $1"
  timed tests ctest --preset "$1" -j "$(parallel)" --output-junit "$PWD/$times/$step.xml"
}

# sources: the files that clang-format checks.
sources() {
  git ls-files '*.h' '*.cc' '*.cpp' '*.cu' '*.cuh' | grep -v -e generated -e '^include/DirectML.h'
}

step() {
  step=$1
  mkdir -p "$times"
  rm -f "$times/$step.parts" "$times/$step.xml"
  case "$1" in
    format)
      deps clang-format
      sources | xargs clang-format --dry-run -Werror || die "the sources are not formatted; ./dev format does it"
      ;;
    plain)
      deps "${test_packages[@]}"
      # One test opens a page of `anydml bench` with it (some 100 MB); without it that test is skipped.
      optional_deps chromium-headless-shell
      configure_plain
      # The plugin's tests need onnxruntime; without it they are skipped.
      ! command -v npm >/dev/null || onnxruntime_in build-plain/bench
      timed build build plain
      run_tests plain
      ;;
    asan)
      deps "${test_packages[@]}" "${clang_packages[@]}"
      # Leak detection adds 4 s to every process there; the build starts four, and the tests many.
      [ "$(uname -m)" != aarch64 ] || export ASAN_OPTIONS=detect_leaks=0
      timed build build asan
      run_tests asan
      ;;
    tsan)
      deps "${test_packages[@]}" "${clang_packages[@]}"
      timed build build tsan
      run_tests tsan
      ;;
    inputs)
      deps "${test_packages[@]}" "${clang_packages[@]}"
      [ "$(uname -m)" != aarch64 ] || export ASAN_OPTIONS=detect_leaks=0
      configure inputs
      timed build cmake --build --preset inputs -j "$(parallel)" --target inputs_tests "${fuzzers[@]/#/fuzz_}"
      run_tests inputs
      timed fuzz fuzz_all inputs same 10 "${fuzzers[@]}"
      ;;
    tidy) tidy ;;
    tidy-changed) tidy_changed ;;
    no-simd)
      deps "${test_packages[@]}"
      configure no-simd  # checks that Highway is optional
      timed build build plain no_simd_tests
      run_tests no-simd
      ;;
    fuzz)
      fuzz_all asan same 30 "${fuzzers[@]}"
      ;;
    aarch64) aarch64 ;;
    *) die "there is no step '$1' (${known_steps[*]})" ;;
  esac
}

# tidy [PATTERN]: checks the compiled files that match the pattern.
tidy() {
  deps "${test_packages[@]}" clang-tidy
  configure tidy
  run-clang-tidy -quiet -p build-tidy -j "$(parallel)" "$@" >build-tidy/log 2>&1 ||
    { grep -E -A3 '(warning|error):' build-tidy/log; die "clang-tidy has findings (build-tidy/log)"; }
}

tidy_changed() {
  local base=${BASE:-main} pattern
  # On main itself, or without main (a clone of one commit): the last 50 commits.
  if [ -z "${BASE:-}" ] && [ "$(git rev-parse -q --verify main || git rev-parse HEAD)" = "$(git rev-parse HEAD)" ]; then
    base=$(git rev-list --first-parent -n 51 HEAD | tail -n 1)
  fi
  deps "${test_packages[@]}" clang-tidy
  configure tidy  # also says which files are compiled together
  pattern=$({ git diff --name-only --diff-filter=d "$(git merge-base "$base" HEAD)"; git ls-files --others --exclude-standard; } |
    python3 -B tests/dev/choose_tidy.py . build-tidy)
  [ -z "$pattern" ] || tidy "$pattern"
}

# aarch64: native on such a machine, with the build and tests of plain; elsewhere cross-compiled, and qemu
# emulates other processors. SVE vectors have 128 (SVE2) or 256 bits, each with separate kernels.
aarch64() {
  local preset=plain cpu test
  local -a cpus=("max,sve=off" "max,sve-max-vq=1" "max,sve-max-vq=2")
  local -a tests=(ops_cases_test ops_element_math_test ops_top_k_simd_test)
  if [ "$(uname -m)" = aarch64 ]; then
    deps "${test_packages[@]}" qemu-user
    cpus=("${cpus[@]:1}")
    echo "dev: NEON is what the step plain tests here; SVE under qemu"
  else
    preset=aarch64
    if ! dpkg --print-foreign-architectures | grep -qx arm64; then
      [ "$(id -u)" -eq 0 ] || die "run once as root: dpkg --add-architecture arm64"
      dpkg --add-architecture arm64
    fi
    deps "${test_packages[@]}" crossbuild-essential-arm64 qemu-user libgtest-dev:arm64 libhwy-dev:arm64
  fi
  timed build build "$preset" "${tests[@]}" anydml-demo
  local folder=build-$preset
  for cpu in "${cpus[@]}"; do
    # One case per operator, with every implementation.
    for test in "${tests[@]}"; do
      echo "dev: $test on $cpu"
      timed "$cpu" env QEMU_CPU="$cpu" ANYDML_ADAPTER=cpu ANYDML_TEST_BACKEND=cpu ANYDML_TEST_SECONDS=0 \
        ANYDML_TEST_PERCENT=2 qemu-aarch64 "$folder/tests/bin/$test" --gtest_brief=1
    done
    echo "dev: the demo on $cpu"
    QEMU_CPU="$cpu" ANYDML_ADAPTER=cpu qemu-aarch64 "$folder/bin/anydml-demo" >"$times/demo.log" ||
      { cat "$times/demo.log"; die "the demo failed on $cpu"; }
  done
}

# changed [BASE]: the tests that the change concerns, chosen by tests/dev/choose_tests.py.
changed() {
  local base=${1:-main} files answer tests targets
  local -a chosen
  git rev-parse -q --verify "$base^{commit}" >/dev/null || die "there is no commit '$base'"
  files=$({ git diff --name-only "$(git merge-base "$base" HEAD)"; git ls-files --others --exclude-standard; } | sort -u)
  [ -n "$files" ] || { echo "dev: nothing changed since $base"; return; }
  deps "${test_packages[@]}"
  # shellcheck disable=SC2086  # no name has blanks
  answer=$(python3 -B tests/dev/choose_tests.py . $files)
  mapfile -t chosen <<<"$answer"
  if [ "${chosen[0]}" = plain ]; then
    run_steps plain
    return
  fi
  [ -n "${chosen[1]}" ] || { echo "dev: no tests for it"; return; }
  [ -f build-plain/build.ninja ] || configure_plain
  cmake build-plain >/dev/null  # there may be new tests
  tests=$(cd build-plain && ctest -N -R "${chosen[1]}" | sed -n 's/^ *Test *#[0-9]*: //p')
  # shellcheck disable=SC2086
  targets=$(ninja -C build-plain -t targets all | sed -n 's/: phony$//p' | python3 -B tests/dev/choose_tests.py --targets $tests)
  echo "dev: tests:" $tests
  echo "dev: targets:" $targets
  # shellcheck disable=SC2086
  [ -z "$targets" ] || cmake --build build-plain -j "$(parallel)" --target $targets
  if [ -n "${chosen[2]}" ]; then
    ANYDML_ADAPTER=cpu ANYDML_TEST_BACKEND=cpu build-plain/tests/bin/ops_cases_test --gtest_brief=1 \
      --gtest_filter="Cases.*:${chosen[2]}"
  fi
  (cd build-plain && ctest -R "${chosen[1]}" -E '^ops_cases_test$' -j "$(parallel)" --output-on-failure)
}

# note_step NAME NAME STATUS SECONDS...: replaces the time of the previous run, in the order of the steps.
note_step() {
  local name lines
  lines=$(grep -v "^$1 " "$times/steps" || true; echo "$1 $3 $4")
  for name in "${known_steps[@]}"; do grep "^$name " <<<"$lines" || true; done >"$times/steps"
}

# run_steps STEP...: runs each in a separate process; continues after failures.
run_steps() {
  local name start line table="" failed=()
  local -a under
  for name in "$@"; do
    [[ " ${known_steps[*]} " == *" $name "* ]] || die "there is no step '$name' (${known_steps[*]})"
  done
  mkdir -p "$times"
  touch "$times/steps"
  echo "$(nproc) cores, $(uname -m)" >"$times/machine"
  for name in "$@"; do
    start=$SECONDS
    echo "dev: step $name"
    under=()
    case "$name" in tsan | asan | inputs) under=("${same_addresses[@]}") ;; esac
    if "${under[@]}" ./dev step "$name"; then
      line=$(printf '%-12s passed  %4d s' "$name" $((SECONDS - start)))
    else
      line=$(printf '%-12s FAILED  %4d s   to run it alone: ./dev test %s' "$name" $((SECONDS - start)) "$name")
      failed+=("$name")
    fi
    echo "dev: $line"
    table+=$line$'\n'
    note_step "$name" $line
  done
  ! command -v python3 >/dev/null || python3 -B tests/dev/times.py .
  printf '\n%s%-12s         %4d s\n' "$table" sum "$SECONDS"
  [ ${#failed[@]} -eq 0 ] || die "failed: ${failed[*]}"
}

# fuzz PRESET new|same TARGET SECONDS: "new" continues from the inputs that reached more code before
# (fuzz/corpus in the build folder); "same" repeats the inputs of the last time as long as the tree is
# unchanged. Leaks are checked at the end only: a check after every run would take most of the time.
fuzz() {
  local preset=$1 inputs=$2 target=$3 seconds=$4 out=build-$1/fuzz found
  local -a options=()
  mkdir -p "$out/corpus/$target" "$out/found"
  [ ! -f "fuzz/$target.dict" ] || options+=("-dict=fuzz/$target.dict")
  if [ "$inputs" = new ]; then
    options+=("$out/corpus/$target" "fuzz/corpus/$target")
  else
    # The order of files in a folder depends on the file system.
    options+=(-seed=1 -seed_inputs="$(printf '%s\n' "fuzz/corpus/$target"/* | paste -sd,)")
  fi
  echo "dev: fuzzing $target for $seconds s"
  if ANYDML_ADAPTER=cpu ANYDML_TEST_BACKEND=cpu "${same_addresses[@]}" "$out/bin/fuzz_$target" \
      -max_total_time="$seconds" -timeout=120 -max_len=4096 -rss_limit_mb=4096 -detect_leaks=0 \
      -artifact_prefix="$out/found/$target-" "${options[@]}" >"$out/$target.log" 2>&1; then
    tail -n 1 "$out/$target.log"
    return
  fi
  tail -n 60 "$out/$target.log"
  found=$(sed -n 's/.*Test unit written to //p' "$out/$target.log" | tail -n 1)
  die "$target failed; again: $out/bin/fuzz_$target ${found:-(see $out/$target.log)}"
}

# fuzz_all PRESET new|same SECONDS TARGET...: runs as many at a time as there are jobs.
fuzz_all() {
  local preset=$1 inputs=$2 seconds=$3 target failed=0
  shift 3
  deps "${clang_packages[@]}"
  build "$preset" "${@/#/fuzz_}"
  for target in "$@"; do
    while [ "$(jobs -r | wc -l)" -ge "$(parallel)" ]; do wait -n || failed=1; done
    fuzz "$preset" "$inputs" "$target" "$seconds" &
  done
  while [ -n "$(jobs -p)" ]; do wait -n || failed=1; done
  return $failed
}
