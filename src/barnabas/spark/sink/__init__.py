"""Writing topics: exactly once, by transactions that the driver decides about."""
