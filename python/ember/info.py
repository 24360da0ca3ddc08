"""python -m ember.info: the build, the processor, libraries and where they were found, threads, variables."""

import argparse
import json
import os
import platform
import sys

import ember
from ember import _C, _env
from ember.utils import cpp_extension


def _why_isa(used):
    asked = os.environ.get("EMBER_ISA")
    if not asked:
        return "the best that this processor has"
    return "EMBER_ISA asks for it" if asked == used else f"EMBER_ISA={asked} is unknown, or more than this processor has"


def collect():
    """Everything that is printed, as a dictionary of sections."""
    build = _C._build_info()
    place = os.path.dirname(_C.__file__)
    libember = cpp_extension.library_in_use()
    variables = {
        name: value if name in _env.VARIABLES or name in _env.TOOLS else f"{value} (Ember knows no such variable)"
        for name, value in sorted(os.environ.items()) if name.startswith("EMBER_")
    }
    libraries = _C._library_info()
    for name, variable in (("OpenBLAS", "EMBER_OPENBLAS"), ("oneDNN", "EMBER_ONEDNN")):
        if libraries[name] is None:
            off = os.environ.get(variable) == "none"
            libraries[name] = f"switched off by {variable}=none" if off else "not found, or of no use here: plain C kernels do its work"
    return {
        "version": {
            "ember": ember.version.ember,
            "interface of PyTorch": ember.__version__.partition("+")[0],
            "python": platform.python_version(),
        },
        "build": {
            "package": place,
            os.path.basename(libember): f"{os.path.getsize(libember) / 2**20:.1f} MB",
            "compiler": build["compiler"],
            "sanitizers": "yes" if build["sanitized"] else "no",
            "operators": build["operators"],
        },
        "processor": {
            "machine": platform.machine(),
            "instruction set in use": build["isa"],
            "chosen since": _why_isa(build["isa"]),
            "threads": ember.get_num_threads(),
            "cpus of this process": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        },
        "libraries": libraries,
        "memory": {
            "cache limit": f"{os.environ.get('EMBER_CACHE_LIMIT_MB', '1024')} MB",
            "held now": f"{ember.memory.memory_allocated():,} B",
        },
        "environment": variables or {"EMBER_*": f"none set (there are {', '.join(_env.VARIABLES)})"},
    }


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m ember.info", description="What this Ember is made of and what it found.")
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    options = parser.parse_args(argv)
    facts = collect()
    if options.json:
        print(json.dumps(facts, indent=1))
        return 0
    for section, rows in facts.items():
        print(section)
        for name, value in rows.items():
            print(f"  {name:<24} {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
