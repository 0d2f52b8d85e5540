#!/usr/bin/env bash
# The full matrix over night: go on where the night before stopped, gate, and write static pages.
#
#   examples/parity/overnight.sh [FOLDER] [further options of 'parity run']
#
# FULL_MATRIX=0   only the first size of each method, with one thread
# FORCE=1         run everything again
# RERUN_FAILED=1  run what failed, and keep what did not
# PUBLISH_WEB=1   commit the pages of FOLDER, and push them; a workflow of your repository deploys them
set -euo pipefail
folder=${1:-parity-pages}
shift || true

mkdir -p "$folder"
rows="$folder/full_matrix.csv"
options=(--out-csv "$rows" --publish "$folder")
if [ "${FULL_MATRIX:-1}" = 1 ]; then options+=(--full-matrix); else options+=(--registry-cells); fi
if [ "${FORCE:-0}" = 1 ]; then options+=(--force)
elif [ "${RERUN_FAILED:-0}" = 1 ]; then options+=(--rerun-failed)
else options+=(--resume); fi

status=0
boosters-eval parity run "${options[@]}" "$@" || status=$?
[ "$status" -le 2 ] || exit "$status" # a cell that failed (2) is shown and gated; a wrong option is neither
boosters-eval parity gate --csv "$rows" || status=$?

if [ "${PUBLISH_WEB:-0}" = 1 ]; then
  git add -- "$folder"
  git diff --cached --quiet -- "$folder" || git commit --quiet --message "Refresh the parity pages" -- "$folder"
  git push
fi
exit "$status"
