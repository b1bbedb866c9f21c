"""The first whole pipeline: `python -m examples.orders`."""
