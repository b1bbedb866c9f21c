# The constants of a batch header, in C.

cdef Py_ssize_t _LAST_OFFSET_DELTA_AT
cdef Py_ssize_t _EXTENT_BYTES
cdef Py_ssize_t _MIN_BYTES
cdef Py_ssize_t _NOT_IN_LENGTH
cdef Py_ssize_t _MAGIC_POSITION
cdef int _MAGIC
cdef Py_ssize_t _FEW_BYTES
cdef Py_ssize_t _MANY_BYTES
