"""The program `where`: the rows on which one library loses to another."""
