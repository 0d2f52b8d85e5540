"""May this version be released? The gate keys on the lower bound of the quality that it retains (ADR-0002)."""
