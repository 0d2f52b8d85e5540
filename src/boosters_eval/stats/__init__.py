"""Statistics over finished results: pure functions, no input or output, no other room."""
