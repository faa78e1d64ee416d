// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/sort_keys.h"

#include "base/dtype.h"

#include <assert.h>
#include <string.h>

// How the bits of a type become keys.  Of floats, -0 becomes 0 and NaN the number after infinity;
// then negative ones have all bits turned, and others the sign bit.
struct map {
    uint64_t sign, infinity; // infinity is 0 when it is no float
};

static struct map map_of(jot_dtype d)
{
    uint64_t sign = UINT64_C(1) << (dtype_get(d)->bytes * 8 - 1);
    if (dtype_is_float(d))
        return (struct map){sign, dtype_infinity(d)};
    return (struct map){dtype_is_signed(d) ? sign : 0, 0};
}

// For unsigned T: out = (out << bits of T) + the key of x.
#define ENCODE(T)                                                                              \
    do {                                                                                       \
        const T *x = p->at, sign = (T)m.sign, infinity = (T)m.infinity;                        \
        int shift = i ? (int)sizeof(T) * 8 : 0;                                                \
        for (int k = 0; k < n; k++) {                                                          \
            T u = x[(indices ? indices[first + k] : first + k) * p->step];                     \
            if (infinity) {                                                                    \
                T size = u & (T)(sign - 1);                                                    \
                if (!p->is_total)                                                              \
                    u = size > infinity ? (T)(infinity + 1) : size ? u : 0;                    \
                u = u & sign ? (T)~u : (T)(u | sign);                                          \
            } else {                                                                           \
                u ^= sign;                                                                     \
            }                                                                                  \
            out[k] = (i ? out[k] << (shift & 63) : 0) | u;                                     \
        }                                                                                      \
    } while (0)

void sort_encode(const struct sort_key *key, const uint32_t *indices, int64_t first, int n,
                 uint64_t *out)
{
    assert(n <= SORT_BLOCK);
    for (int i = 0; i < key->n; i++) {
        const struct sort_part *p = &key->part[i];
        struct map m = map_of(p->dtype);
        switch (p->bits) {
        case 8:
            ENCODE(uint8_t);
            break;
        case 16:
            ENCODE(uint16_t);
            break;
        case 32:
            ENCODE(uint32_t);
            break;
        default:
            ENCODE(uint64_t);
        }
    }
}

#define DECODE(T)                                                                              \
    do {                                                                                       \
        T *x = out, sign = (T)m.sign;                                                          \
        for (int k = 0; k < n; k++) {                                                          \
            T u = (T)keys[k];                                                                  \
            x[k] = m.infinity && !(u & sign) ? (T)~u : (T)(u ^ sign);                          \
        }                                                                                      \
    } while (0)

void sort_decode(jot_dtype dtype, const uint64_t *keys, int n, void *out)
{
    struct map m = map_of(dtype);
    switch (dtype_get(dtype)->bytes) {
    case 1:
        DECODE(uint8_t);
        break;
    case 2:
        DECODE(uint16_t);
        break;
    case 4:
        DECODE(uint32_t);
        break;
    default:
        DECODE(uint64_t);
    }
}

// ---- Keys of 32 bits, four at a time

typedef uint32_t words __attribute__((vector_size(16)));
typedef int32_t signed_words __attribute__((vector_size(16)));

bool sort_has_words(const struct sort_key *key)
{
    return key->n == 1 && key->bits == 32 && key->part[0].step == 1;
}

static words copies(uint32_t x) { return (words){x, x, x, x}; }

// All bits of a negative word, none of another.
static words spread_sign(words x) { return (words)((signed_words)x >> 31); }

static words encode_words(struct map m, words u)
{
    words sign = copies((uint32_t)m.sign), infinity = copies((uint32_t)m.infinity);
    if (!m.infinity)
        return u ^ sign;
    words size = u & ~sign;
    words is_nan = (words)((signed_words)size > (signed_words)infinity);
    u &= ~(words)(size == copies(0));
    u = (u & ~is_nan) | ((infinity + 1) & is_nan);
    return u ^ (spread_sign(u) | sign);
}

static words encode_words_in_total_order(struct map m, words u)
{
    words sign = copies((uint32_t)m.sign);
    return u ^ (m.infinity ? sign | spread_sign(u) : sign);
}

static words decode_words(struct map m, words u)
{
    words sign = copies((uint32_t)m.sign);
    return u ^ (m.infinity ? sign | ~spread_sign(u) : sign);
}

static void map_words(words (*f)(struct map m, words u), struct map m, const void *from,
                      int64_t n, void *to)
{
    words u;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        memcpy(&u, (const uint32_t *)from + i, sizeof u);
        u = f(m, u);
        memcpy((uint32_t *)to + i, &u, sizeof u);
    }
    u = copies(0);
    memcpy(&u, (const uint32_t *)from + i, (size_t)(n - i) * sizeof(uint32_t));
    u = f(m, u);
    memcpy((uint32_t *)to + i, &u, (size_t)(n - i) * sizeof(uint32_t));
}

void sort_encode_words(const struct sort_key *key, int64_t first, int64_t n, uint32_t *out)
{
    const struct sort_part *p = &key->part[0];
    const uint32_t *from = (const uint32_t *)p->at + first;
    if (p->is_total)
        map_words(encode_words_in_total_order, map_of(p->dtype), from, n, out);
    else
        map_words(encode_words, map_of(p->dtype), from, n, out);
}

int sort_find_word(const uint32_t *keys, int first, int n, uint32_t bound)
{
    words sign = copies(UINT32_C(1) << 31), least = copies(bound) ^ sign;
    for (; first + 16 <= n; first += 16) {
        signed_words is_below = {-1, -1, -1, -1};
        for (int k = 0; k < 16; k += 4) {
            words x;
            memcpy(&x, keys + first + k, sizeof x);
            is_below &= (signed_words)(x ^ sign) < (signed_words)least;
        }
        if (!(is_below[0] & is_below[1] & is_below[2] & is_below[3]))
            break;
    }
    while (first < n && keys[first] < bound)
        first++;
    return first;
}

void sort_decode_words(jot_dtype dtype, const uint32_t *keys, int64_t n, void *out)
{
    map_words(decode_words, map_of(dtype), keys, n, out);
}

// NaN are last, and zeros where the first 0 is.
#define RESTORE(T)                                                                             \
    do {                                                                                       \
        const T *from = x, size = (T)(m.sign - 1), infinity = (T)m.infinity;                   \
        T *to = sorted;                                                                        \
        int64_t zero = 0, nan = n;                                                             \
        while (nan && (to[nan - 1] & size) > infinity)                                         \
            nan--;                                                                             \
        for (int64_t above = nan; zero < above;) {                                             \
            int64_t middle = zero + (above - zero) / 2;                                        \
            if (to[middle] & (T)m.sign)                                                        \
                zero = middle + 1;                                                             \
            else                                                                               \
                above = middle;                                                                \
        }                                                                                      \
        bool is_any = nan < n || (zero < nan && !(to[zero] & size));                           \
        for (int64_t i = 0; i < n && is_any; i++) {                                            \
            if ((from[i] & size) > infinity)                                                   \
                to[nan++] = from[i];                                                           \
            else if (!(from[i] & size))                                                        \
                to[zero++] = from[i];                                                          \
        }                                                                                      \
    } while (0)

void sort_restore(jot_dtype dtype, const void *x, int64_t n, void *sorted)
{
    struct map m = map_of(dtype);
    if (!m.infinity)
        return;
    switch (dtype_get(dtype)->bytes) {
    case 2:
        RESTORE(uint16_t);
        break;
    case 4:
        RESTORE(uint32_t);
        break;
    default:
        RESTORE(uint64_t);
    }
}
