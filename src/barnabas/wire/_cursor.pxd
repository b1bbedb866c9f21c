# The fields of `Cursor` and `Sink`.


cdef class Cursor:
    cdef const unsigned char* data
    cdef readonly object view  # keeps the memory of `data`
    cdef public Py_ssize_t at
    cdef public Py_ssize_t end
    cdef public bint is_short

    cpdef open(self, object view, Py_ssize_t at)
    cdef void open_data(
        self, object view, const unsigned char* data, Py_ssize_t at, Py_ssize_t end
    ) noexcept
    cpdef void close(self) noexcept
    cpdef int int8(self) noexcept
    cpdef int int16(self) noexcept
    cpdef int int32(self) noexcept
    cpdef long long int64(self) noexcept
    cdef long long read(self, Py_ssize_t size) noexcept
    cpdef long long uvarint(self) noexcept
    cpdef void skip(self, Py_ssize_t size) noexcept
    cpdef Py_ssize_t length(self, bint is_flexible) noexcept
    cpdef str string(self, bint is_flexible)
    cpdef bytes uuid(self)
    cpdef bint has_tags(self) noexcept
    cdef int fail(self) noexcept


cdef class Sink:
    cdef unsigned char* data
    cdef public Py_ssize_t position
    cdef Py_ssize_t capacity
    cdef readonly list regions

    cpdef void clear(self)
    cpdef Py_ssize_t reserve(self, Py_ssize_t size) except -1
    cpdef window(self, Py_ssize_t size)
    cpdef int8(self, int value)
    cpdef int16(self, int value)
    cpdef int32(self, int value)
    cpdef int64(self, long long value)
    cpdef int get_int32(self, Py_ssize_t at) noexcept
    cpdef void patch_int32(self, Py_ssize_t at, int value) noexcept
    cpdef void patch_int64(self, Py_ssize_t at, long long value) noexcept
    cdef void put(self, Py_ssize_t at, long long value, int size) noexcept
    cpdef uvarint(self, long long value)
    cpdef length(self, Py_ssize_t size, bint is_flexible)
    cpdef string(self, str text, bint is_flexible)
    cpdef raw(self, object content)
    cpdef region(self, object region)
    cpdef append_to(self, object out)
    cdef grow(self, Py_ssize_t least)
