"""A complete pipeline: `python -m examples.orders`."""
