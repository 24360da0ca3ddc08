#!/bin/sh
# oracle.sh: prints the path of a Python that has the oracle (real PyTorch 2.13.0 on the CPU), making .venv-oracle if needed.
# EMBER_ORACLE names such an interpreter already made. Tests and benchmarks use it; Ember itself never does.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
case "${1:-}" in
-h | --help) sed -n '2,3s/^# //p' "$0"; exit 0 ;;
esac
if [ -n "${EMBER_ORACLE:-}" ]; then
    [ -x "$EMBER_ORACLE" ] || { echo "oracle.sh: EMBER_ORACLE=$EMBER_ORACLE is no program" >&2; exit 1; }
    echo "$EMBER_ORACLE"
    exit 0
fi
py=$root/.venv-oracle/bin/python
stamp=$root/.venv-oracle/.complete
if [ ! -f "$stamp" ]; then
    echo "oracle.sh: making .venv-oracle with PyTorch 2.13.0 (once)" >&2
    rm -rf "$root/.venv-oracle"
    python3 -m venv "$root/.venv-oracle" >&2
    # expecttest, hypothesis, scipy: torch.testing._internal's operator database imports or uses them
    "$py" -m pip install -q --disable-pip-version-check torch==2.13.0 numpy expecttest hypothesis scipy >&2
    "$py" -c 'import torch; assert torch.__version__.startswith("2.13.0"), torch.__version__' >&2
    touch "$stamp"
fi
echo "$py"
