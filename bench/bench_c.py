"""bench_c.py: the C face beside Python's: the same training program, and what a call costs.

    make bench-c ARGS="--rounds 5 --page docs/benchmarks_c.md"

examples/c/train_digits and examples/python/train_digits.py do the same work (network, batches, Adam, one-cycle schedule,
label smoothing). They run in turn, each as a process of its own pinned to one processor, on Ember and, where EMBER_ORACLE
names a Python that has it, on PyTorch. Loop: processor seconds of the training loop (the C program's are those of a run less
those of one without epochs); whole: wall-clock seconds of the process. Processor seconds count what others do little.
"""
import argparse
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
BUILD = os.environ.get("EMBER_BUILD", os.path.join(ROOT, "build"))
EXAMPLE = os.path.join(BUILD, "examples", "c", "example_train_digits")
PROGRAM = os.path.join(ROOT, "examples", "python", "train_digits.py")
PYTHON_CALLS = """
import statistics, sys, time
if sys.argv[1] == "ember":
    import ember as torch
else:
    import torch
    torch.set_num_threads(1)
a, b, w = torch.ones(1), torch.ones(1), torch.ones(1, requires_grad=True)

def add():
    for _ in range(200):
        a + b

def train():
    for _ in range(200):
        (w * a).sum().backward()
        w.grad = None

for what, run in (("a + b", add), ("(w * a).sum().backward()", train)):
    took = []
    for _ in range(int(sys.argv[2])):
        start = time.perf_counter_ns()
        run()
        took.append((time.perf_counter_ns() - start) / 200)
    print(f"{what},Python,{statistics.median(took)}")
"""


def environment():
    env = {key: value for key, value in os.environ.items() if key not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}
    return dict(env, EMBER_NUM_THREADS="1", OMP_NUM_THREADS="1")


def processor_seconds():
    """Of the processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(command, folder):
    """(stdout, seconds, processor seconds of the whole process) of a command that must succeed."""
    cpu = max(os.sched_getaffinity(0))
    start, before = time.monotonic(), processor_seconds()
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True,
                          preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))
    seconds, busy = time.monotonic() - start, processor_seconds() - before
    if done.returncode:
        sys.exit(f"{command}: {done.stderr[-2000:]}")
    return done.stdout, seconds, busy


# What the Python programs run under: their loops are timed in processor seconds, and PyTorch takes one thread. The digits come
# with scikit-learn, which the Python that has PyTorch may lack.
WRAPPER = """
import sys, time
time.monotonic = time.process_time
import torch
torch.set_num_threads(1)
sys.path += [{folder!r}, {packages!r}]
sys.argv = sys.argv[1:]
import runpy
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def programs(folder, oracle, epochs):
    """{name: command} of those that train."""
    packages = subprocess.run([sys.executable, "-c", "import sklearn; print(sklearn.__path__[0].rsplit('/', 1)[0])"],
                              check=True, capture_output=True, text=True).stdout.strip()
    wrapper = os.path.join(folder, "wrapper.py")
    with open(wrapper, "w", encoding="utf-8") as file:
        file.write(WRAPPER.format(folder=os.path.dirname(PROGRAM), packages=packages))
    script = [wrapper, PROGRAM, "--epochs", str(epochs), "--require", "0", "--out", "out"]
    found = {"C": [EXAMPLE, "--data", "out/digits.csv", "--epochs", str(epochs)],
             "Python on Ember": [sys.executable, "-m", "ember", *script]}
    if oracle:
        found["Python on PyTorch"] = [oracle, *script]
    return found


def training(options, oracle, folder):
    """{program: (median processor seconds of the loop, seconds of the process, accuracy)}."""
    commands = programs(folder, oracle, options.epochs)
    run(commands["Python on Ember"], folder)  # writes digits.csv, and warms the files
    took = {name: [] for name in commands}
    for number in range(options.rounds):
        for name in list(commands) if number % 2 == 0 else list(commands)[::-1]:
            text, whole, busy = run(commands[name], folder)
            if name == "C":
                loop = busy - run([EXAMPLE, "--data", "out/digits.csv", "--epochs", "0"], folder)[2]
            else:
                loop = float(re.search(r"epochs in ([\d.]+) s", text)[1])
            took[name].append((loop, whole, float(re.search(r"accuracy ([\d.]+)%", text)[1])))
    return {name: tuple(statistics.median(column) for column in zip(*rows)) for name, rows in took.items()}


def calls(options, oracle, folder):
    """[(what, {form: nanoseconds})], medians of rounds in turn."""
    program = os.path.join(folder, "calls")
    subprocess.run([*os.environ.get("CC", "cc").split(), "-O2", os.path.join(HERE, "calls.c"), "-o", program,
                    "-I" + os.path.join(ROOT, "include"), "-I" + os.path.join(BUILD, "gen"), "-L" + BUILD, "-lember",
                    "-Wl,-rpath," + BUILD], check=True)
    commands = {"C": [program], "Ember": [sys.executable, "-c", PYTHON_CALLS, "ember", "400"]}
    if oracle:
        commands["PyTorch"] = [oracle, "-c", PYTHON_CALLS, "torch", "40"]
    took = {}
    for number in range(options.rounds):
        for name in list(commands) if number % 2 == 0 else list(commands)[::-1]:
            for line in run(commands[name], folder)[0].splitlines():
                what, form, nanoseconds = line.rsplit(",", 2)
                column = f"C, {form}" if name == "C" else f"Python on {name}"
                took.setdefault(what, {}).setdefault(column, []).append(float(nanoseconds))
    return {what: {form: statistics.median(values) for form, values in forms.items()} for what, forms in took.items()}


def page(trained, called, options):
    load = os.getloadavg()[2]
    text = ("# C beside Python\n\nWritten by `make bench-c` (bench/bench_c.py); change the tool, not this page.\n\n"
            f"One thread, pinned to one processor; {options.rounds} rounds in turn, medians. Load average of the last 15 minutes "
            f"at the end: {load:.1f} on {os.cpu_count()} processors.\n\n"
            f"## The same training: {options.epochs} epochs of the digits\n\n"
            "| program | training loop, processor s | whole process, s | accuracy, % |\n| --- | ---: | ---: | ---: |\n")
    text += "".join(f"| {name} | {loop:.2f} | {whole:.2f} | {right:.1f} |\n" for name, (loop, whole, right) in trained.items())
    text += "\n## One call, nanoseconds\n\n"
    columns = list(dict.fromkeys(form for forms in called.values() for form in forms))
    text += f"| tensors of one element | {' | '.join(columns)} |\n| --- |{' ---: |' * len(columns)}\n"
    for what, forms in called.items():
        text += f"| `{what}` | {' | '.join(f'{forms[form]:.0f}' for form in columns)} |\n"
    return text + ("\nExplicit: `em_call_add_Tensor` and `em_tensor_release`. Short: `em_add` in a scope of 200 calls; for the "
                   "backward, a scope each.\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--page", help="write the tables to this file (docs/benchmarks_c.md)")
    parser.add_argument("--strict", action="store_true", help="fail if C is slower than Python on Ember")
    options = parser.parse_args()
    oracle = os.environ.get("EMBER_ORACLE")
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "out"))
        trained, called = training(options, oracle, folder), calls(options, oracle, folder)
    text = page(trained, called, options)
    print(text, end="")
    if options.page:
        with open(options.page, "w", encoding="utf-8") as file:
            file.write(text)
    slower = trained["C"][0] > trained["Python on Ember"][0]
    return 1 if slower and options.strict else 0


if __name__ == "__main__":
    sys.exit(main())
