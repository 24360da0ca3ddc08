"""Run every test and print, as the last line, `N passed, N failed, N skipped`.

A job is one process: a C test, a pytest module, an example, or a page of documentation. Two jobs run at a time, each
with a time limit, so that a crash or a hang costs one job and never the run. Exit status 0 means that something passed
and nothing failed.
"""
import argparse
import concurrent.futures
import glob
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PYTEST_GROUPS = ["py", "ops", "files", "seams", "gen", "fault"]
GROUPS = ["c"] + PYTEST_GROUPS + ["examples", "docs"]
ASAN_GROUPS = ["c", "seams", "ops", "files"]
SKIP = 77  # the exit status by which a program says "skipped"; the reason is its last line


class Job:
    """One process to run. `count` turns (exit status, output) into passed, failed, [reasons for skips]."""

    def __init__(self, group, name, command, limit, count, report=None, cwd=ROOT):
        self.group, self.name, self.command, self.limit = group, name, command, limit
        self.count, self.report, self.cwd = count, report, cwd
        self.failed = []  # what failed and why, a line each


def last_line(output):
    lines = [line for line in output.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "(no output)"


def count_program(job, status, output):
    """A program is one test."""
    if status == SKIP:
        return 0, 0, [last_line(output)]
    return (1, 0, []) if status == 0 else (0, 1, [])


def count_pytest(job, status, output):
    """The counts of pytest's own report; a process that died without one is one failure."""
    try:
        suite = ElementTree.parse(job.report).getroot().find("testsuite")
    except (FileNotFoundError, ElementTree.ParseError):
        return 0, 1, []
    failed = int(suite.get("failures")) + int(suite.get("errors"))
    reasons = [skip.get("message") or "no reason given" for skip in suite.iter("skipped")]
    for case in suite.iter("testcase"):
        for bad in [*case.iter("failure"), *case.iter("error")]:
            job.failed.append(f"{case.get('name')}: {(bad.get('message') or 'no message')[:600]}")
    passed = int(suite.get("tests")) - failed - len(reasons)
    if status not in (0, 5) and failed == 0:  # 5: nothing matched -k
        failed = 1
    return passed, failed, reasons


def count_doc(job, status, output):
    """tools/run_doc.py ends with `blocks: N passed, N failed` and names each skipped block with its reason."""
    reasons = re.findall(r"^skipped (.*)$", output, re.M)
    ended = re.search(r"^blocks: (\d+) passed, (\d+) failed$", output, re.M)
    if not ended:
        return 0, 1, reasons
    return int(ended[1]), int(ended[2]), reasons


def c_jobs(build):
    listed = subprocess.run([sys.executable, "-m", "mesonbuild.mesonmain", "introspect", "--tests", build],
                            cwd=ROOT, capture_output=True, text=True, check=True)
    for test in json.loads(listed.stdout):
        yield Job("c", f"c:{test['name']}", test["cmd"], test["timeout"], count_program)


def pytest_jobs(groups, args, scratch):
    for group in groups:
        for path in sorted(glob.glob(os.path.join(ROOT, "tests", group, "**", "test_*.py"), recursive=True)):
            report = os.path.join(scratch, os.path.relpath(path, ROOT).replace("/", "-") + ".xml")
            command = [sys.executable, "-m", "pytest", path, "--junitxml", report, "--color=no"]
            if args.fast or args.asan:
                command += ["-m", "not slow"]
            yield Job(group, os.path.relpath(path, ROOT), command, args.limit, count_pytest, report)


def example_jobs(args, scratch):
    """Examples run on Ember with the arguments that their own line `# tests run this with: ...` gives."""
    for path in sorted(glob.glob(os.path.join(ROOT, "examples", "python", "*.py"))):
        with open(path, encoding="utf-8") as file:
            given = re.search(r"^# tests run this with: (.*)$", file.read(), re.M)
        if given:
            command = [sys.executable, "-m", "ember", path] + given[1].split()
            yield Job("examples", os.path.relpath(path, ROOT), command, args.limit, count_program,
                      cwd=tempfile.mkdtemp(dir=scratch))


def doc_jobs(args, scratch):
    pages = [os.path.join(ROOT, name) for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")]
    for path in [page for page in pages if os.path.exists(page)] + sorted(glob.glob(os.path.join(ROOT, "docs/*.md"))):
        with open(path, encoding="utf-8") as file:
            if "```python" not in file.read():
                continue
        command = [sys.executable, os.path.join(ROOT, "tools", "run_doc.py"), path]
        # An empty folder of its own: examples in the docs may write files.
        yield Job("docs", os.path.relpath(path, ROOT), command, args.limit, count_doc,
                  cwd=tempfile.mkdtemp(dir=scratch))


def environment(args):
    env = dict(os.environ, PYTHONFAULTHANDLER="1", EMBER_BUILD=os.path.join(ROOT, args.build))
    if "PYTHONPATH" not in env:
        env["PYTHONPATH"] = os.path.join(ROOT, "python")
    if args.fast or args.asan:
        env["EMBER_TEST_FAST"] = "1"
    if args.asan:
        env["UBSAN_OPTIONS"] = "halt_on_error=1:print_stacktrace=1"
        env["PYTHONMALLOC"] = "malloc"
    return env


def asan_environment(env):
    """Python itself is not built with the sanitizer, so its run time comes first; Python's own leaks are not ours."""
    found = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    return dict(env, LD_PRELOAD=os.path.realpath(found.stdout.strip()),
                ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1")


def select(jobs, name):
    """-k: jobs whose name has NAME; when no job's has, tests of any module whose name has it."""
    named = [job for job in jobs if name in job.name]
    if named:
        return named
    modules = [job for job in jobs if job.count is count_pytest]
    for job in modules:
        job.command += ["-k", name]
    return modules


def run(job, env):
    """Run one job; returns (job, passed, failed, reasons, seconds, output)."""
    start = time.monotonic()
    process = subprocess.Popen(job.command, cwd=job.cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
    try:
        output, _ = process.communicate(timeout=job.limit)
        status = process.returncode
    except subprocess.TimeoutExpired as expired:
        os.killpg(process.pid, signal.SIGKILL)  # the whole session: a test's own children too
        process.wait()
        status, output = -1, (expired.stdout or b"").decode(errors="replace") + f"\ntime limit: {job.limit} s"
    passed, failed, reasons = job.count(job, status, output)
    if status < 0 and failed == 0:
        failed = 1
    if status < 0:
        output += f"\nexit status {status}"
    return job, passed, failed, reasons, time.monotonic() - start, output


def report(number, total, result):
    job, passed, failed, reasons, seconds, output = result
    verdict = "FAILED" if failed else "ok"
    print(f"[{number:3}/{total}] {verdict:6} {job.name}: {passed} passed, {failed} failed, "
          f"{len(reasons)} skipped ({seconds:.1f} s)", flush=True)
    if failed:
        lines = output.rstrip().splitlines()
        print("\n".join("    | " + line for line in lines[-80:]), flush=True)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", help="the build folder (relative to the checkout)")
    parser.add_argument("-k", metavar="NAME", help="only jobs, or else tests, whose name has NAME")
    parser.add_argument("--only", choices=GROUPS, action="append", help="only this group (may be repeated)")
    parser.add_argument("--fast", action="store_true", help="leave out tests marked slow")
    parser.add_argument("--asan", action="store_true", help="the build is instrumented: C tests, seams, operators")
    parser.add_argument("-j", type=int, default=2, help="jobs at a time")
    parser.add_argument("--limit", type=int, default=420, help="seconds that one Python job may take")
    return parser.parse_args()


def collect(args, scratch):
    groups = args.only or (ASAN_GROUPS if args.asan else GROUPS)
    jobs = list(c_jobs(args.build)) if "c" in groups else []
    jobs += pytest_jobs([group for group in ["c"] + PYTEST_GROUPS if group in groups], args, scratch)
    jobs += example_jobs(args, scratch) if "examples" in groups else []
    jobs += doc_jobs(args, scratch) if "docs" in groups else []
    return select(jobs, args.k) if args.k else jobs


def run_all(jobs, args):
    """Run the jobs, reporting as they end; returns passed, failed, {reason for skipping: job names}, [failed jobs]."""
    env = environment(args)
    python_env = asan_environment(env) if args.asan else env
    passed, failed, skips, failures = 0, 0, {}, []
    with concurrent.futures.ThreadPoolExecutor(args.j) as pool:
        pending = [pool.submit(run, job, env if job.count is count_program else python_env) for job in jobs]
        for number, future in enumerate(concurrent.futures.as_completed(pending), 1):
            result = future.result()
            report(number, len(jobs), result)
            passed += result[1]
            failed += result[2]
            if result[2]:
                failures += [f"{result[0].name}: {line}" for line in result[0].failed] or [result[0].name]
            for reason in result[3]:
                skips.setdefault(reason, []).append(result[0].name)
    return passed, failed, skips, failures


def main():
    args = parse()
    with tempfile.TemporaryDirectory(prefix="ember-tests-") as scratch:
        passed, failed, skips, failures = run_all(collect(args, scratch), args)
    for reason, names in sorted(skips.items()):
        print(f"skipped {len(names)}: {reason} [{', '.join(sorted(set(names)))}]")
    for name in failures:
        print(f"failed in {name}")
    print(f"{passed} passed, {failed} failed, {sum(map(len, skips.values()))} skipped", flush=True)
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
