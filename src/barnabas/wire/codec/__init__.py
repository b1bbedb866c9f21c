"""Compiles declared messages to Python functions, one reader and one writer for each version.

Looking a schema up field by field costs ten to twenty times what straight-line code does, so
the code is written out once: runs of fixed-size fields become one `struct` call, nested structs
become loops in place, and fields a version lacks become plain assignments of their defaults.
"""

from barnabas.wire.codec.constructor import compile_constructor
from barnabas.wire.codec.reader import compile_reader
from barnabas.wire.codec.writer import compile_writer

__all__ = ["compile_constructor", "compile_reader", "compile_writer"]
