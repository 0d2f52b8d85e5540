"""A saved model against its exports: the same rows in every format and runtime, those on its thresholds included."""
