"""The variables of the environment that Ember knows, and what they do. src/core/environment.c warns of others when it is loaded; a test
compares the two lists, docs/lights.md and the sources."""

VARIABLES = {  # name: (what it may be, what it does)
    "EMBER_LOG": ("dispatch, ops, kernels, libs; several with commas", "what is told on stderr while it runs"),
    "EMBER_ISA": ("baseline, avx2, avx512", "which build of the kernels runs; the best for the processor otherwise"),
    "EMBER_OPENBLAS": ("a file, or none", "the OpenBLAS to open; it is looked for otherwise"),
    "EMBER_ONEDNN": ("a file, or none", "the oneDNN to open; it is looked for otherwise"),
    "EMBER_NUM_THREADS": ("a number", "threads of large operators; OMP_NUM_THREADS, or the processors, otherwise"),
    "EMBER_ALLOC": ("plain", "no caches: each block comes from the system, for memory checkers"),
    "EMBER_CACHE_LIMIT_MB": ("megabytes", "how much freed memory is kept for reuse; 1024 otherwise"),
}
TOOLS = {  # read by the build, tests and benchmarks of a checkout
    "EMBER_BUILD": ("a folder", "the build that tests look into"),
    "EMBER_ORACLE": ("a Python", "one that has real PyTorch, for parity and benchmarks"),
    "EMBER_PARITY_CACHE": ("a folder", "where parity keeps PyTorch's answers"),
    "EMBER_TEST_FAST": ("1", "tests take smaller sizes"),
    "EMBER_TEST_FULL": ("1", "tests take all sizes"),
    "EMBER_TEST_MODULE": ("a module", "what the operator tests import as torch"),
    "EMBER_UPDATE_GOLDEN": ("1", "tests write their golden files anew"),
}
