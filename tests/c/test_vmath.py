"""Ember's scalar functions against higher precision, in the three builds of the kernels.

test_vmath.c does the volume, against libm in double and long double; here its bounds are asserted, its references are
checked against mpmath, and loops over the functions are checked to vectorise.
"""
import os
import re
import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

mpmath = pytest.importorskip("mpmath", reason="the references are checked against mpmath")

HERE = Path(__file__).resolve().parent
CPU = HERE.parents[1] / "src" / "backend" / "cpu"
GEN = os.path.join(os.environ.get("EMBER_BUILD", HERE.parents[1] / "build"), "gen")
CC = shlex.split(os.environ.get("CC", "gcc"))
FLAGS = ["-std=gnu11", "-O3", "-Wall", "-Wextra", "-Werror", "-fno-math-errno", "-fno-trapping-math",
         "-ffp-contract=off", "-fwrapv", "-fopenmp-simd", f"-I{CPU}",
         f"-I{HERE.parents[1] / 'include'}", f"-I{GEN}"]
ISA = {"baseline": [],
       "avx2": ["-mavx2", "-mfma", "-mf16c"],
       "avx512": ["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mfma", "-mf16c",
                  "-mprefer-vector-width=512"]}
NEEDS = {"baseline": set(), "avx2": {"avx2", "fma", "f16c"}, "avx512": {"avx512f", "avx512bw", "avx512dq", "avx512vl"}}

# Bounds in ulps. 1 where nothing is said; 0.5 is a correctly rounded (here: exact or single-rounding) result.
EXACT = {"abs", "floor", "ceil", "trunc", "round", "copysign", "maximum", "minimum", "fmod"}
RARE = {("rsqrt", "f32"): 1.5, ("rsqrt", "f64"): 1.5,      # 1 / sqrt(x) as PyTorch computes it
        ("sigmoid_array", "f32"): 2, ("gelu_erf", "f32"): 2, ("gelu_tanh", "f32"): 2,
        ("log2", "f32"): 1.05, ("erfc", "f32"): 2, ("erfc", "f64"): 2, ("pow", "f64"): 2,
        ("asinh", "f64"): 2, ("atanh", "f64"): 2, ("acosh", "f64"): 2}
# In epsilons of the result's length; pow multiplies the error of log x by |y log x|, as PyTorch's does.
COMPLEX = {"exp": 2, "log": 2, "sqrt": 1.5, "sin": 2, "cos": 2, "tanh": 3, "sigmoid": 6, "reciprocal": 2, "abs": 1,
           "angle": 1, "mul": 1.5, "div": 2.5}
COMPLEX_POW = {"c64": 1, "c128": 100}


def cpu_flags():
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return set()
    return set(re.search(r"^flags\s*:(.*)$", text, re.M).group(1).split()) if "flags" in text else set()


@pytest.fixture(scope="module")
def builds(tmp_path_factory):
    """The slow compilations, two at a time: name -> a future of the compiler's remarks, in a common folder."""
    folder = tmp_path_factory.mktemp("vmath")
    loops = folder / "loops.c"
    loops.write_text(loop_source()[0])
    version = subprocess.run([*CC, "--version"], capture_output=True, text=True).stdout
    remark = "-Rpass=loop-vectorize" if "clang" in version else "-fopt-info-vec-optimized"
    with ThreadPoolExecutor(2) as pool:
        futures = {"folder": folder}
        for isa in ISA:
            futures["test", isa] = pool.submit(compile_c, HERE / "test_vmath.c", folder / isa, isa)
            futures["loops", isa] = pool.submit(compile_c, loops, folder / f"{isa}.o", isa, "-c", "-Wno-error", remark)
        yield futures


def compile_c(source, target, isa, *more):
    out = subprocess.run([*CC, *FLAGS, *ISA[isa], *more, "-o", str(target), str(source), *([] if "-c" in more else ["-lm"])],
                         capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    return out.stderr


@pytest.mark.parametrize("isa", ISA)
def test_accuracy(isa, builds):
    missing = NEEDS[isa] - cpu_flags()
    if missing:
        pytest.skip(f"this machine lacks {', '.join(sorted(missing))}")
    builds["test", isa].result()
    lines = subprocess.run([builds["folder"] / isa, "8209", "30"], capture_output=True,
                           text=True, check=True, timeout=120).stdout.splitlines()
    bad = [line for line in lines if line.startswith("BAD")]
    assert not bad, "\n".join(bad[:20])
    seen = set()
    for line in lines:
        name, kind, ulp, *where = line.split()
        seen.add((name, kind))
        if kind.startswith("c"):
            bound = COMPLEX_POW[kind] if name == "pow" else COMPLEX[name]
        else:
            bound = 0 if name in EXACT else RARE.get((name, kind), 1)
        assert float(ulp) <= bound, f"{isa}: {line}, bound {bound}"
    assert len(seen) == 2 * (29 + 6 + 13) + 8 + 2


# Each real function of the vocabulary in its own loop, to see that the compiler vectorises it.
LOOP = """#include "vmath_complex.h"
#define ONE(f, k, T) void k##_##f(T *o, const T *a, long n) { for (long i = 0; i < n; i++) o[i] = vm_##f##_##k(a[i]); }
#define TWO(f, k, T) \\
  void k##_##f(T *o, const T *a, const T *b, long n) { for (long i = 0; i < n; i++) o[i] = vm_##f##_##k(a[i], b[i]); }
"""


def vocabulary():
    yaml = pytest.importorskip("yaml", reason="the list of functions is a YAML file")
    return yaml.safe_load((HERE.parents[1] / "ops" / "vocabulary.yaml").read_text())


def one_at_a_time():
    """Functions of special.h: loops call them for each element, and do not vectorise."""
    return {re.sub(r"^vm_|_$|_[fc]\d+$", "", word) for word in re.findall(r"\w+", (CPU / "special.h").read_text())}


def loop_source():
    text, lines, called = LOOP, {}, one_at_a_time()
    for row in vocabulary():
        if row["c"][3:] in called:
            continue
        for kind, ctype in (("f32", "float"), ("f64", "double")):
            if row.get("vector", True) or (kind == "f32" and row["name"] != "fmod"):
                text += f"{'ONE' if row['arity'] == 1 else 'TWO'}({row['c'][3:]}, {kind}, {ctype})\n"
                lines[text.count("\n")] = f"{row['name']} {kind}"
    text += "void fixed(float *o, const float *a, float y, long n) "
    text += "{ for (long i = 0; i < n; i++) o[i] = vm_pow_f32(a[i], y); }\n"
    lines[text.count("\n")] = "pow with a fixed exponent"
    return text, lines


@pytest.mark.parametrize("isa", ISA)
def test_loops_vectorise(isa, builds):
    remarks = builds["loops", isa].result()
    done = {int(m) for m in re.findall(r"loops\.c:(\d+):\d+: (?:remark|optimized): .*vectorized", remarks)}
    assert not [name for line, name in loop_source()[1].items() if line not in done]


def test_vocabulary_is_complete(tmp_path):
    """Every entry's C functions exist for every kind it names, and every array routine."""
    text = '#include "vmath_array.h"\n#include "vmath_circ.h"\n#include "special.h"\nvoid *all[] = {\n'
    uses = []
    for row in vocabulary():
        assert set(row) >= {"name", "arity", "kinds", "c", "opencl", "cuda"}, row
        for kind in row["kinds"]:
            if kind == "complex" and row["c"][3:] in one_at_a_time():
                continue  # kernel_math.h has it, for the generated loops
            for suffix in {"real": ("f32", "f64"), "complex": ("c64", "c128")}[kind]:
                uses.append(f"{row['c']}_{suffix}")
        if "array" in row:
            uses += [f"{row['array']}_f32", f"{row['array']}_f64"]
    source = tmp_path / "all.c"
    source.write_text(text + "".join(f"  (void *){name},\n" for name in uses) + "};\n")
    compile_c(source, tmp_path / "all.o", "baseline", "-c")


ARRAYS = r"""#include "vmath_array.h"
#include "vmath_circ.h"
#include <stdio.h>
#define CHECK(fn, k, T) do { \
    static T a[1000], o[1000]; \
    for (int i = 0; i < 1000; i++) a[i] = o[i] = (T)((i - 500) * (i >= 700 && i % 7 == 0 ? 1e30 : 1.37)); \
    a[3] = o[3] = (T)-0.0; \
    vm_##fn##_array_##k(o, o, 1000); \
    for (int i = 0; i < 1000; i++) \
      if (vm_abs_##k(o[i] - vm_##fn##_##k(a[i])) > vm_abs_##k(o[i]) * (T)(sizeof(T) == 4 ? 2e-7 : 3e-16)) \
        return printf(#fn " " #k " at %d\n", i), 1; \
    if (1 / o[3] != 1 / vm_##fn##_##k(a[3])) return puts(#fn " " #k " -0"), 1; \
  } while (0)
int main(void) {
  CHECK(sin, f32, float); CHECK(cos, f32, float); CHECK(tan, f32, float);
  CHECK(sin, f64, double); CHECK(cos, f64, double); CHECK(tan, f64, double);
#define TAILS(fn) for (int n = 0; n < 40; n++) { \
    float a[48], o[48]; \
    for (int i = 0; i < 48; i++) a[i] = (float)(i - 20) / 4, o[i] = 7.0f; \
    vm_##fn##_array_f32(o, a, n); \
    for (int i = 0; i < 48; i++) { \
      float one = 7.0f; \
      vm_##fn##_array_f32(&one, &a[i], i < n); \
      if (o[i] != one && o[i] == o[i]) return printf(#fn " of %d at %d\n", n, i), 1; \
    } }
  TAILS(exp) TAILS(log) TAILS(tanh) TAILS(erf) TAILS(sigmoid) TAILS(gelu_erf) TAILS(gelu_tanh)
  return 0;
}
"""


@pytest.mark.parametrize("isa", ISA)
def test_array_routines(isa, tmp_path):
    """In place, with small and large arguments mixed, they agree with the element functions; results do not depend on
    the place in the array, and nothing beyond it is written."""
    if NEEDS[isa] - cpu_flags():
        pytest.skip(f"this machine lacks {', '.join(sorted(NEEDS[isa] - cpu_flags()))}")
    source = tmp_path / "arrays.c"
    source.write_text(ARRAYS)
    compile_c(source, tmp_path / "arrays", isa)
    out = subprocess.run([tmp_path / "arrays"], capture_output=True, text=True)
    assert out.returncode == 0, out.stdout


REFERENCES = r"""#include <math.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
  long double x = argc > 1 ? strtold(argv[1], NULL) : 0;
#define P(f) printf(#f " %.25Lg\n", f##l(x));
  P(exp) P(expm1) P(exp2) P(log) P(log2) P(log10) P(log1p) P(sin) P(cos) P(tan) P(atan) P(sinh) P(cosh) P(tanh)
  P(asinh) P(erf) P(erfc)
  return 0;
}
"""


def test_references_against_mpmath(tmp_path):
    """libm's long double, which test_vmath.c trusts, is right to 2^-60 at points of all sizes."""
    source = tmp_path / "ref.c"
    source.write_text(REFERENCES)
    compile_c(source, tmp_path / "ref", "baseline")
    with mpmath.workprec(1300):
        own = {"exp2": lambda x: mpmath.mpf(2) ** x, "log2": lambda x: mpmath.log(x, 2)}
        for x in (1.5e-9, 0.0371, 0.34765625, 0.5, 0.75, 1.0625, 2.75, 6.125, 11.0, 25.5, 301.25):
            out = subprocess.run([tmp_path / "ref", x.hex()], capture_output=True, text=True, check=True).stdout
            for line in out.splitlines():
                name, value = line.split()
                exact = own.get(name, getattr(mpmath, name, None))(mpmath.mpf(x))
                if exact > mpmath.mpf(10) ** -4900:              # below, long double has nothing
                    assert abs(mpmath.mpf(value) / exact - 1) < mpmath.mpf(2) ** -60, (name, x)
        for x in (1e22, 6381956970095103.0 * 2.0**797, 1.7976931348623157e308):
            out = subprocess.run([tmp_path / "ref", x.hex()], capture_output=True, text=True, check=True).stdout
            got = dict(line.split() for line in out.splitlines())
            for name in ("sin", "cos", "tan"):
                exact = getattr(mpmath, name)(mpmath.mpf(x))
                assert abs(mpmath.mpf(got[name]) / exact - 1) < mpmath.mpf(2) ** -60, (name, x)
