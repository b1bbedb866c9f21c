# What compiled modules call of `_checksum.py`.

cdef unsigned long long crc(const unsigned char* data, Py_ssize_t size) noexcept nogil
