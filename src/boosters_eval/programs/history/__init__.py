"""The history of a home: what every run measured, and what changed from one run to the next."""
