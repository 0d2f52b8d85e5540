"""Shows how canonical parameters become those of each library."""
