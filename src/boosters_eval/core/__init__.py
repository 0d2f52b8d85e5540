"""What every room stands on: errors, strict models, files, the registry, the machine. No science."""
