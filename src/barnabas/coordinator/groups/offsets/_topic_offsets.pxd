# The fields of `OffsetPage` and `TopicOffsets`, and what C calls of them.


cdef class OffsetPage:
    cdef unsigned long long mask  # a bit per slot that has an offset
    cdef readonly bytes entries  # of these slots, in their order
    cdef dict rare_fields  # by slot: metadata, expiry and topic id of those that differ; or None
    cdef bytes topic_id  # of all others

    cdef bint write(self, Py_ssize_t slot, object committed) except -1
    cdef bint write_entry(self, Py_ssize_t slot, bytes entry, bytes topic_id) except -1
    cdef bint is_of_topic(self, Py_ssize_t slot, bytes topic_id) except -1
    cdef bint has_plain(self, Py_ssize_t slot, bytes topic_id) except -1
    cdef Py_ssize_t overwrite(self, Py_ssize_t first, bytes packed, Py_ssize_t at) except -1
    cdef bint erase(self, Py_ssize_t slot) except -1
    cdef object _committed(self, Py_ssize_t slot, tuple entry)
    cdef _put_rare_fields(self, Py_ssize_t slot, str metadata, object expiry, bytes topic_id)
    cdef _remove_rare_fields(self, Py_ssize_t slot)


cdef class TopicOffsets(OffsetPage):
    cdef dict more_pages  # by number, if there are any; or None

    cdef OffsetPage _page(self, Py_ssize_t partition)
    cdef OffsetPage _ensure_page(self, Py_ssize_t partition)
