#!/bin/sh
# Writes the lock files: exact versions with the hashes of their files, for all Linux machines and Pythons at once.
# Needs uv (pip install uv) and a package index. TESTED names a file of versions to prefer, such as `pip freeze` prints.
set -eu
cd "$(dirname "$0")/.."
UV=${UV:-uv}
lock() {
  out=$1; shift
  "$UV" pip compile --quiet --universal --generate-hashes --no-annotate --no-header --python-version 3.11 \
    ${TESTED:+--constraint "$TESTED"} "$@" --output-file "$out"
}
lock requirements-dev.lock pyproject.toml --extra dev
lock containers/locks/agent.txt pyproject.toml --extra farm --extra onnxruntime --extra postgres
lock containers/locks/service.txt pyproject.toml --extra server --extra onnxruntime --extra postgres
wanted=$(mktemp)
trap 'rm -f "$wanted"' EXIT
python3 containers/requirements.py --board > "$wanted"
lock containers/locks/board.txt --no-emit-find-links - < "$wanted"
