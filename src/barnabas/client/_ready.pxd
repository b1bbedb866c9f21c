# What C sees of `_ready.py`.


cdef class Ready:
    cdef object result
