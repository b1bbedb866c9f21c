"""Which seeds a test runs with: a few always; those of BARNABAS_SEEDS=0-500, if that is set."""

import os


def seeds(few: int) -> range:
    first, _, last = os.environ.get("BARNABAS_SEEDS", f"0-{few - 1}").partition("-")
    return range(int(first), int(last or first) + 1)
