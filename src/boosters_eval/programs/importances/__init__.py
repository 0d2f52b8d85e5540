"""What each library's models rely on, and whether the libraries agree on it."""
