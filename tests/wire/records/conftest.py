"""Every test here runs twice: with compiled modules, and with the same modules as plain Python."""

from tests.uncompiled import compiled_and_plain

from barnabas.wire.records import _encoding, _loops

loops = compiled_and_plain(_loops, _encoding)
