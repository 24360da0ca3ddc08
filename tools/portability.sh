#!/bin/bash
# Ember on processors that this machine has not, under qemu: the oldest x86-64 that qemu knows (C tests, and a network
# trained from Python), and 64-bit ARM (a cross build without the Python face; C tests). Not part of CI: it takes minutes.
# Arguments: x86, arm, or nothing for both. The last line is `N passed, N failed, N skipped`.
set -u
cd "$(dirname "$0")/.."
passed=0 failed=0 skipped=0
CPU=Opteron_G1,-pni  # the first x86-64: SSE2 and nothing newer, not even SSE3
meson=.venv/bin/meson

pass() { passed=$((passed + 1)); echo "ok: $1"; }
fail() { failed=$((failed + 1)); echo "FAILED: $1"; }
skip() { skipped=$((skipped + 1)); echo "skipped: $1"; }

# What qemu runs must be under test: an instruction of a newer processor has to end the program.
traps() {
    local folder status
    folder=$(mktemp -d)
    echo 'int main(void) { int x = 5; __asm__ volatile("popcnt %0, %0" : "+r"(x)); return x == 2 ? 0 : 1; }' >"$folder/t.c"
    gcc "$folder/t.c" -o "$folder/t" && qemu-x86_64 -cpu max "$folder/t" && ! qemu-x86_64 -cpu "$CPU" "$folder/t" 2>/dev/null
    status=$?
    rm -rf "$folder"
    return $status
}

# Each C test and C example of a build: c_tests NAME BUILD WRAPPER...
c_tests() {
    local name=$1 build=$2 test
    shift 2
    for test in "$build"/tests/c/test_* "$build"/tests/fuzz/fuzz_files "$build"/examples/c/example_{custom_op,char_lstm,transformer}; do
        { [ -f "$test" ] && [ -x "$test" ]; } || continue
        # From a folder of its own: some tests write files.
        local scratch log status
        scratch=$(mktemp -d) log=$(mktemp)
        local arguments=()
        case $test in
            */fuzz_files) arguments=(--seconds 5 "$PWD/tests/data") ;;
            */example_char_lstm | */example_transformer) arguments=(--steps 2) ;;
        esac
        (cd "$scratch" && timeout 900 "$@" "$OLDPWD/$test" "${arguments[@]}") >"$log" 2>&1
        status=$?
        case $status in
            0) pass "$name $(basename "$test")" ;;
            77) skip "$name $(basename "$test"): $(tail -1 "$log")" ;;
            *) tail -20 "$log"; fail "$name $(basename "$test") (status $status)" ;;
        esac
        rm -rf "$scratch" "$log"
    done
}

x86() {
    command -v qemu-x86_64 >/dev/null || { skip "x86-64: no qemu-x86_64 (apt install qemu-user)"; return; }
    [ "$(uname -m)" = x86_64 ] || { skip "x86-64: this machine is not one"; return; }
    local march
    march=$(gcc -Q --help=target | awk '$1 == "-march=" { print $2 }')
    [ "$march" = x86-64 ] || { fail "gcc compiles for $march here; the baseline build needs a gcc for x86-64"; return; }
    make || { fail "build"; return; }
    if traps; then pass "qemu refuses newer instructions"; else fail "qemu -cpu $CPU runs popcnt: nothing would be shown"; return; fi
    c_tests x86-64 build qemu-x86_64 -cpu "$CPU"
    local python
    python=$(readlink -f .venv/bin/python)
    if PYTHONPATH=$PWD/python:$(.venv/bin/python -c 'import site; print(site.getsitepackages()[0])') \
        timeout 900 env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE qemu-x86_64 -cpu "$CPU" "$python" -m ember tools/portability_train.py; then
        pass "x86-64 training from Python"
    else
        fail "x86-64 training from Python"
    fi
}

arm() {
    command -v qemu-aarch64 >/dev/null || { skip "aarch64: no qemu-aarch64 (apt install qemu-user)"; return; }
    command -v aarch64-linux-gnu-gcc >/dev/null || { skip "aarch64: no compiler (apt install gcc-aarch64-linux-gnu)"; return; }
    [ -f build-aarch64/build.ninja ] ||
        $meson setup build-aarch64 --cross-file tools/aarch64.ini -Dpython=false || { fail "aarch64 setup"; return; }
    if .venv/bin/ninja -C build-aarch64; then pass "aarch64 build"; else fail "aarch64 build"; return; fi
    c_tests aarch64 build-aarch64 qemu-aarch64 -L /usr/aarch64-linux-gnu
}

case ${1:-all} in
    x86) x86 ;;
    arm) arm ;;
    all) x86; arm ;;
    *) echo "portability.sh [x86|arm]"; exit 2 ;;
esac
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" != 0 ]
