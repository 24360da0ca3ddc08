"""Run the examples under real PyTorch and under Ember from the same seed, and compare their losses step by step.

Prints the largest relative difference of each curve over the first --steps steps, and draws the curves together
(docs/same_run.png; needs matplotlib). Exit status 1 if one is above --limit. EMBER_ORACLE names a Python that has PyTorch.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Example: arguments for a number of steps.
EXAMPLES = {
    "train_digits": lambda steps: ["--epochs", str(-(-steps // 22)), "--require", "0"],
    "char_gpt": lambda steps: ["--steps", str(steps), "--write", "1"],
    "lstm": lambda steps: ["--steps", str(steps)],
    "vae": lambda steps: ["--steps", str(steps)],
    "reinforce": lambda steps: ["--steps", str(steps), "--limit", "60"],
}


def losses(python, name, steps, seed, scratch):
    """The losses of an example run by `python` (a command)."""
    path = os.path.join(scratch, "losses.json")
    command = [*python, os.path.join(ROOT, "examples", "python", name + ".py"), *EXAMPLES[name](steps)]
    done = subprocess.run([*command, "--seed", str(seed), "--losses", path], cwd=scratch, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with status {done.returncode}:\n{done.stderr[-2000:]}")
    with open(path, encoding="ascii") as file:
        return json.load(file)[:steps]


def difference(ours, theirs):
    """The largest |a - b| / max(|a|, |b|, 1% of the curve's largest): a loss may pass through zero (reinforce's does)."""
    floor = 0.01 * max(abs(value) for value in theirs)
    return max(abs(a - b) / max(abs(a), abs(b), floor) for a, b in zip(ours, theirs, strict=True))


def draw(curves, path):
    from matplotlib.figure import Figure
    figure = Figure(figsize=(3.2 * len(curves), 3), layout="constrained")
    for axes, (name, (ours, theirs, apart)) in zip(figure.subplots(1, len(curves), squeeze=False)[0], curves.items()):
        axes.plot(theirs, linewidth=3, color="#f4a582", label="PyTorch")
        axes.plot(ours, linewidth=0.8, color="#0571b0", label="Ember")
        axes.set(title=f"{name}: {apart:.1e}", xlabel="step", ylabel="loss")
        axes.legend()
    figure.savefig(path, dpi=100)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=1e-4, help="the largest relative difference that passes")
    parser.add_argument("--only", action="append", choices=list(EXAMPLES))
    parser.add_argument("--plot", default=os.path.join(ROOT, "docs", "same_run.png"))
    options = parser.parse_args()
    oracle = os.environ.get("EMBER_ORACLE")
    if not oracle:
        sys.exit("EMBER_ORACLE must name a Python that has PyTorch 2.13: EMBER_ORACLE=/path/to/venv/bin/python make same-run")
    curves = {}
    with tempfile.TemporaryDirectory(prefix="ember-same-run-") as scratch:
        for name in options.only or EXAMPLES:
            theirs = losses([oracle], name, options.steps, options.seed, scratch)
            ours = losses([sys.executable, "-m", "ember"], name, options.steps, options.seed, scratch)
            apart = difference(ours, theirs)
            curves[name] = ours, theirs, apart
            print(f"{name:<14} {len(ours):4} steps  loss {ours[0]:9.4f} -> {ours[-1]:9.4f}  "
                  f"largest relative difference {apart:.2e}{'' if apart <= options.limit else '  ABOVE THE LIMIT'}", flush=True)
    try:
        draw(curves, options.plot)
        print(f"curves: {os.path.relpath(options.plot)}")
    except ImportError:
        print("no picture: it needs matplotlib (pip install -r requirements-demo.txt)")
    worst = max(apart for _, _, apart in curves.values())
    print(f"largest relative difference {worst:.2e} (limit {options.limit:.0e})")
    return 0 if worst <= options.limit else 1


if __name__ == "__main__":
    sys.exit(main())
