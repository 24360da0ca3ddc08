"""What parity says in the end: the ledger, the tables, out/parity.json, docs/parity.md."""

import collections
import fnmatch
import json
import os
import pickle
import re

import codec


class Ledger:
    """Known differences: entries {op, dtype, kind, pattern, within, reason}: globs (op may be a list of them), a regular
    expression for the detail, and how many times PyTorch's largest error Ember's may be (both against double precision)."""

    FIELDS = {"op", "dtype", "kind", "pattern", "within", "reason"}

    def __init__(self, path):
        import yaml  # here, so that the workers need numpy only

        self.entries = []
        if os.path.exists(path):
            with open(path) as f:
                self.entries = yaml.safe_load(f) or []
        for k, e in enumerate(self.entries):
            if not isinstance(e, dict) or set(e) - self.FIELDS or not e.get("reason"):
                raise SystemExit(f"{path}: entry {k + 1}: needs op, kind and reason; may have dtype, pattern and within")
            e["used"] = 0

    def match(self, op, dtype, kind, detail):
        for e in self.entries:
            if (
                any(fnmatch.fnmatchcase(op, g) for g in names(e))
                and fnmatch.fnmatchcase(dtype, e.get("dtype", "*"))
                and fnmatch.fnmatchcase(kind, e.get("kind", "*"))
                and re.search(e.get("pattern", ""), detail)
                and ("within" not in e or errors_ratio(detail) <= e["within"])
            ):
                return e
        return None


def names(entry):
    """Its globs of operators: `op` is one, or a list."""
    op = entry.get("op", "*")
    return op if isinstance(op, list) else [op]


def errors_ratio(detail):
    m = re.search("; largest error ([^ ]+) times PyTorch's", detail)
    return float(m.group(1)) if m else float("inf")


def table(job, ledger, args):
    """One operator: counts, and its failed samples with their reasons."""
    with open(job.path, "rb") as f:
        data = pickle.load(f)
    t = {
        "op": job.name,
        "samples": 0,
        "passed": 0,
        "ledger": 0,
        "failed": 0,
        "kinds": collections.Counter(),
        "notes": collections.Counter(),
        "failures": [],
        "dtypes": set(),
        "broken": job.broken,
    }
    skipped = collections.Counter(why for _, why in data["skipped"])
    t["skipped"] = dict(skipped)
    t["notes"]["nearer"] = len(job.nearer)
    for i, rec in enumerate(data["records"]):
        if args.dtype and rec["dtype"] not in args.dtype or args.sample and i not in args.sample:
            continue
        t["samples"] += 1
        t["dtypes"].add(rec["dtype"])
        r = job.results.get(i)
        failures = r["failures"] if r else [["not run", job.broken or "the worker gave no answer"]]
        for name, alike in (r["notes"] if r else ()):
            t["notes"][name + (" alike" if alike else " differs")] += 1
        judge(t, ledger, rec, i, failures)
    return t


def judge(t, ledger, rec, i, failures):
    if not failures:
        t["passed"] += 1
        return
    known = [ledger.match(t["op"], rec["dtype"], kind, detail) for kind, detail in failures]
    if all(known):
        t["ledger"] += 1
        for e in {id(e): e for e in known}.values():
            e["used"] += 1
        return
    t["failed"] += 1
    open_failures = [f for f, k in zip(failures, known) if not k]
    for kind in {k for k, _ in open_failures}:
        t["kinds"][kind] += 1
    t["failures"].append(
        {"sample": i, "dtype": rec["dtype"], "failures": open_failures, "call": reproduce(rec, open_failures[0][0])}
    )


def reproduce(rec, kind):
    """The sample as a line of Python over a module T."""
    if "code" in rec:
        return rec["code"].replace("\n", "; ")
    args = [codec.show_args(a, rec["storages"]) for a in rec["args"]]
    kwargs = [f"{k}={codec.show_args(v, rec['storages'])}" for k, v in rec["kwargs"]]
    form, name = kind.split(":")[0], (kind.split(":") + [""])[1]
    path = rec["call"]
    if form in ("inplace", "inplace_grad", "method"):
        path = "Tensor." + name
    elif form in ("operator", "alias"):
        path = ("operator." if form == "operator" else "") + name
    if form == "out":
        kwargs.append(f"out=<{name}>")
    if path.startswith("Tensor."):
        return f"({args[0]}).{path[7:]}({', '.join(args[1:] + kwargs)})"
    if path.startswith("@"):
        return f"calls.resolve(T, {path!r})({', '.join(args + kwargs)})"
    return f"{'' if path.startswith('operator.') else 'T.'}{path}({', '.join(args + kwargs)})"


def summary(tables):
    n, p, k, f = (sum(t[c] for t in tables) for c in ("samples", "passed", "ledger", "failed"))
    percent = 100.0 * p / n if n else 0.0
    shown = int(percent * 10) / 10  # never rounded up to 100
    return f"{n} samples, {p} passed ({shown:.1f}%), {k} in the ledger, {f} failed", percent, f


def notes_line(tables):
    c = sum((t["notes"] for t in tables), collections.Counter())
    out = []
    for name, words in (
        ("message", "error messages that begin with PyTorch's words"),
        ("node", "gradient nodes with PyTorch's name"),
    ):
        a, b = c[name + " alike"], c[name + " differs"]
        if a + b:
            out.append(f"{words}: {a} of {a + b}")
    if c["nearer"]:
        out.append(
            f"passed though a value is outside torch.testing's tolerance, as it is no farther from the result in double "
            f"precision than PyTorch's: {c['nearer']} samples"
        )
    return "; ".join(out)


def print_failures(tables, args):
    left = args.limit
    for t in tables:
        if t["broken"]:
            print(f"{t['op']}: {t['broken']}")
        shown = collections.Counter()
        for f in t["failures"]:
            kind, detail = f["failures"][0]
            shown[kind] += 1
            if left <= 0 or shown[kind] > 2 and not args.op:  # of many operators, two of a kind each
                continue
            left -= 1
            more = f" (and {len(f['failures']) - 1} more)" if len(f["failures"]) > 1 else ""
            print(f"{t['op']} {f['dtype']} #{f['sample']} {kind}: {detail}{more}")
            if args.verbose:
                for kind, detail in f["failures"][1:]:
                    print(f"    {kind}: {detail}")
                print(f"    {f['call'][:1500]}")
    worst = sorted((t for t in tables if t["failed"]), key=lambda t: -t["failed"])[:15]
    for t in worst:
        kinds = ", ".join(f"{k} {n}" for k, n in t["kinds"].most_common(5))
        print(f"{t['op']:<30} {t['failed']:>5} of {t['samples']:>5} failed: {kinds}")
    if notes_line(tables):
        print(notes_line(tables))


def write_json(path, module, tables):
    rows = [{**t, "kinds": dict(t["kinds"]), "notes": dict(t["notes"]), "dtypes": sorted(t["dtypes"])} for t in tables]
    with open(path, "w") as f:
        json.dump({"module": module, "summary": summary(tables)[0], "operators": rows}, f, indent=1)


def write_page(path, tables, ledger):
    lines = [
        "# Parity with PyTorch 2.13",
        "",
        "Written by `make parity` (tests/parity/run_samples.py); change the tool, not this page.",
        "",
        "Each sample is one call with recorded arguments; it passes when every form of it (function, method, operator,",
        "alias, in-place, out=, first gradient) gives PyTorch's dtype, shape, strides, sharing and values, or its",
        "exception class.",
        "",
        f"**{summary(tables)[0]}**",
        "",
    ]
    if notes_line(tables):
        lines += [f"Also counted, failing nothing: {notes_line(tables)}.", ""]
    lines += [
        "| operator | samples | passed | ledger | failed | what fails |",
        "| --- | ---: | ---: | ---: | ---: | --- |",
    ]
    for t in tables:
        kinds = ", ".join(f"{k} {n}" for k, n in t["kinds"].most_common(4))
        lines.append(f"| {t['op']} | {t['samples']} | {t['passed']} | {t['ledger']} | {t['failed']} | {kinds} |")
    lines += ["", "## The ledger: known differences", ""]
    for e in ledger.entries:
        lines.append(
            f"- `{' '.join(names(e))}` {e.get('dtype', '*')}, {e.get('kind', '*')}: {e['reason']} ({e['used']} samples)"
        )
    if not ledger.entries:
        lines.append("None.")
    skipped = collections.Counter()
    for t in tables:
        skipped.update(t["skipped"])
    lines += ["", "## OpInfo samples that were left out", ""]
    lines += [f"- {n}: {why}" for why, n in skipped.most_common()] or ["None."]
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write("\n".join(lines) + "\n")
