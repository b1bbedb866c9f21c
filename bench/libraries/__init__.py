"""Client libraries side by side on one broker: each case in a process of its own, in turns."""
