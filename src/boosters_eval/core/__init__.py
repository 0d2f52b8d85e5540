"""What every room stands on: errors, strict models, files, the registry, the machine. No science."""

__version__ = "1.0.0.dev0"  # here, for rooms that must not import the package's root, which leads to all of them
