"""Compiles declared messages to Python functions, one reader and one writer for each version.

Interpreting a schema field by field costs ten to twenty times what straight-line code does. So the
code is generated once: runs of fixed-size fields become one `struct` call, nested structs become
inline loops, and fields that a version lacks become assignments of their defaults.
"""

from barnabas.wire.codec.constructor import compile_constructor
from barnabas.wire.codec.reader import compile_reader
from barnabas.wire.codec.writer import compile_writer

__all__ = ["compile_constructor", "compile_reader", "compile_writer"]
