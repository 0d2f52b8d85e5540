"""Earlier runs, sent to trackers."""
