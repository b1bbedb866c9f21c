# The fields of `_clock.py`, and what the modules of the hot path call.


cdef class ServerClock:
    cdef readonly object clock
    cdef readonly object monotonic_ns
    cdef bint is_system_clock
    cdef bint is_system_monotonic

    cpdef long long now_ms(self) except *
    cpdef long long now_ns(self) except *
