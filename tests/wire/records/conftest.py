"""Every test here runs twice: with compiled modules, and with the same modules as plain Python."""

from tests.uncompiled import compiled_and_plain

from barnabas.wire.records import _checksum, _encoding, _loops, _validation

loops = compiled_and_plain(_checksum, _loops, _encoding, _validation)
