"""Shows, fetches and describes data sets."""
