"""Client libraries side by side on one broker: each run in its own process, alternating."""
