# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The clocks of a node, as the hot path reads them: several times for each request."""

from __future__ import annotations

import time

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    from cython.cimports.barnabas.server.network._system import (
        CLOCK_MONOTONIC,
        CLOCK_REALTIME,
        clock_ns,
    )


def wall_clock_ms():
    return time.time_ns() // 1_000_000


@cython.final
@cython.cclass
class ServerClock:
    """Reads the clocks of a node; those of the system without a call into Python."""

    def __init__(self, clock, monotonic_ns):
        self.clock = clock
        self.monotonic_ns = monotonic_ns
        self.is_system_clock = cython.compiled and clock is wall_clock_ms
        # Both read CLOCK_MONOTONIC.
        self.is_system_monotonic = cython.compiled and monotonic_ns is time.perf_counter_ns

    def now_ms(self):
        """Returns the wall clock."""
        if cython.compiled and self.is_system_clock:
            return clock_ns(CLOCK_REALTIME) // 1_000_000
        return self.clock()

    def now_ns(self):
        """Returns the monotonic clock."""
        if cython.compiled and self.is_system_monotonic:
            return clock_ns(CLOCK_MONOTONIC)
        return self.monotonic_ns()
