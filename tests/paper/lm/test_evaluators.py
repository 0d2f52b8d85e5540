"""The evaluators, on models built here."""

import math
from pathlib import Path

import pytest

tiny_models = pytest.importorskip("tiny_models", reason="the extra lm is not installed", exc_type=Exception)
