# Functions of the system and of Python that the compiled modules of this package call.

from cpython.ref cimport PyObject

cdef extern from "sys/socket.h" nogil:
    Py_ssize_t recv(int fd, void* buffer, size_t size, int flags)
    Py_ssize_t send(int fd, const void* buffer, size_t size, int flags)
    enum: MSG_NOSIGNAL

cdef extern from "sys/epoll.h" nogil:
    ctypedef union epoll_data_t:
        int fd

    struct epoll_event:
        unsigned int events
        epoll_data_t data

    int epoll_wait(int epoll, epoll_event* events, int most, int timeout_ms)

cdef extern from *:
    """
    #include <arpa/inet.h>
    #include <errno.h>
    #include <string.h>
    #include <time.h>

    /* Reads and writes a big-endian integer of 4 bytes. */
    static inline int get_int32(const unsigned char *at)
    {
        unsigned int value;
        memcpy(&value, at, 4);
        return (int)ntohl(value);
    }

    static inline void put_int32(char *at, int value)
    {
        unsigned int word = htonl((unsigned int)value);
        memcpy(at, &word, 4);
    }

    static inline long long clock_ns(clockid_t clock)
    {
        struct timespec now;
        clock_gettime(clock, &now);
        return (long long)now.tv_sec * 1000000000 + now.tv_nsec;
    }

    /* Returns whether the last call failed only because it would have to wait. */
    static inline int would_block(void)
    {
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    }
    """
    int get_int32(const unsigned char* at) noexcept nogil
    void put_int32(char* at, int value) noexcept nogil
    long long clock_ns(int clock) noexcept nogil
    bint would_block() noexcept nogil
    int CLOCK_MONOTONIC
    int CLOCK_REALTIME

cdef extern from "Python.h":
    object PyErr_SetFromErrno(object type)

    # 0: returned, 1: awaits something. Python's own `send` reports a return by an exception.
    int PyIter_Send(object coroutine, object argument, PyObject** result) except -1
    enum: PYGEN_RETURN
