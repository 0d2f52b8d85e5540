"""Cells on the nodes of a dask cluster, with the outcomes that they would have here."""
