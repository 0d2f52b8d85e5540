"""Is it safe to raise the pin? Two versions of one library on a matrix of what people do with it."""
