# Instructions of processors that compiled modules use through C.

cdef extern from *:
    """
    #include <string.h>

    /* Requests memory that will be written, without waiting for it. */
    #if defined(__GNUC__)
    #define prefetch_to_write(address) __builtin_prefetch(address, 1)
    #else
    #define prefetch_to_write(address)
    #endif

    /* Returns the little-endian integer of 8 bytes: one instruction on most processors. */
    static inline unsigned long long load_word(const unsigned char *at)
    {
        unsigned long long word;
        memcpy(&word, at, 8);
    #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        word = __builtin_bswap64(word);
    #endif
        return word;
    }

    typedef struct {
        unsigned int first, second, third;
    } three_crcs;

    #if defined(__GNUC__) && defined(__x86_64__)
    #define has_crc_instruction() __builtin_cpu_supports("sse4.2")

    __attribute__((target("sse4.2")))
    static inline unsigned int crc_by_instruction(
        unsigned int crc, const unsigned char *at, Py_ssize_t size)
    {
        unsigned long long wide = crc;
        for (; size >= 8; at += 8, size -= 8)
            wide = __builtin_ia32_crc32di(wide, load_word(at));
        for (crc = wide; size > 0; at++, size--)
            crc = __builtin_ia32_crc32qi(crc, *at);
        return crc;
    }

    /* Computes three checksums at once: the instruction takes three cycles, but one can begin in
       each. The second and third are of bytes without those before them, and begin with 0. */
    __attribute__((target("sse4.2")))
    static inline three_crcs three_crcs_by_instruction(
        unsigned int crc, const unsigned char *at, Py_ssize_t size)
    {
        unsigned long long first = crc, second = 0, third = 0;
        Py_ssize_t index;
        for (index = 0; index < size; index += 8) {
            first = __builtin_ia32_crc32di(first, load_word(at + index));
            second = __builtin_ia32_crc32di(second, load_word(at + size + index));
            third = __builtin_ia32_crc32di(third, load_word(at + 2 * size + index));
        }
        return (three_crcs) {first, second, third};
    }
    #else
    #define has_crc_instruction() 0
    #define crc_by_instruction(crc, at, size) 0
    #define three_crcs_by_instruction(crc, at, size) ((three_crcs) {0, 0, 0})
    #endif
    """
    ctypedef struct three_crcs:
        unsigned int first
        unsigned int second
        unsigned int third

    void prefetch_to_write(const void* address) noexcept nogil
    unsigned long long load_word(const unsigned char* at) noexcept nogil
    bint has_crc_instruction() noexcept nogil
    unsigned int crc_by_instruction(
        unsigned int crc, const unsigned char* at, Py_ssize_t size
    ) noexcept nogil
    three_crcs three_crcs_by_instruction(
        unsigned int crc, const unsigned char* at, Py_ssize_t size
    ) noexcept nogil
