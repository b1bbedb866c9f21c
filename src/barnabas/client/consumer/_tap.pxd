# The fields of `_tap.py`.

from barnabas.client.consumer._cursor cimport Cursor


cdef class Tap:
    cdef public Cursor cursor
    cdef public bint is_disturbed
    cdef public long long polls
