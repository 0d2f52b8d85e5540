"""What is tuning worth? The same budget for every library, chosen by inner splits and judged on rows apart."""
