"""Every test here runs twice: with the loops compiled, and with the same files as plain Python."""

from tests.uncompiled import both_ways

from barnabas.wire.records import _encoding, _loops

loops = both_ways(_loops, _encoding)
