// SPDX-License-Identifier: Apache-2.0
// Hashes and the table of them.
#include "base/arena.h"
#include "base/hash.h"

#include "support/suite.h"

#include <string.h>

// Bytes from memory of exactly their size, so that a sanitizer sees what is read beyond.
static struct hash128 hash_of(const unsigned char *data, size_t n)
{
    struct arena *a = arena_create();
    struct hash128 h = hash128_bytes(arena_copy(a, data, n), n);
    arena_release(a);
    return h;
}

static bool same(struct hash128 a, struct hash128 b) { return a.lo == b.lo && a.hi == b.hi; }

// Of texts of each length up to 100: every bit counts, and so does the length.
START_TEST(every_bit_changes_it)
{
    unsigned char data[100] = {0};
    for (size_t n = 0; n < sizeof data; n++) {
        struct hash128 h = hash_of(data, n);
        ck_assert(same(h, hash_of(data, n)));
        ck_assert(!same(h, hash_of(data, n + 1)));
        uint64_t small = hash_bytes(7, data, n);
        ck_assert(small == hash_bytes(7, data, n) && small != hash_bytes(8, data, n));
        for (size_t bit = 0; bit < 8 * n; bit++) {
            data[bit / 8] ^= (unsigned char)(1 << bit % 8);
            ck_assert(!same(h, hash_of(data, n)));
            ck_assert(small != hash_bytes(7, data, n));
            data[bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
    }
}
END_TEST

// Half of the bits of what is mixed change with one bit of what it is made of.
START_TEST(mixing_spreads)
{
    for (int bit = 0; bit < 64; bit++) {
        int changed = 0;
        for (uint64_t i = 0; i < 256; i++)
            changed += __builtin_popcountll(hash_combine(i, 3) ^
                                            hash_combine(i, 3 ^ (UINT64_C(1) << bit)));
        ck_assert(changed > 256 * 28 && changed < 256 * 36);
    }
    ck_assert(hash_combine(1, 2) != hash_combine(2, 1));
}
END_TEST

static uint32_t count_of(const struct hash_table *t, uint64_t h, uint32_t id)
{
    uint32_t n = 0;
    for (struct hash_probe p = hash_probe(t, h); hash_next(t, &p);)
        n += p.id == id;
    return n;
}

// Entries of equal hashes are all found, those of others are not; the table grows meanwhile.
START_TEST(the_table_finds_what_it_has)
{
    enum { ENTRIES = 5000, HASHES = 1250 };
    struct arena *a = arena_create();
    struct hash_table t = {0};
    ck_assert_uint_eq(count_of(&t, 1, 0), 0);
    for (uint32_t i = 0; i < ENTRIES; i++)
        hash_insert(a, &t, i % HASHES << 20, i); // the low bits are alike
    ck_assert_uint_eq(t.count, ENTRIES);
    for (uint32_t i = 0; i < ENTRIES; i++) {
        ck_assert_uint_eq(count_of(&t, i % HASHES << 20, i), 1);
        ck_assert_uint_eq(count_of(&t, (i + 1) % HASHES << 20, i), 0);
    }
    ck_assert_uint_eq(count_of(&t, UINT64_MAX, 0), 0);
    arena_release(a);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, every_bit_changes_it);
    tcase_add_test(t, mixing_spreads);
    tcase_add_test(t, the_table_finds_what_it_has);
}

int main(void) { return suite_run("hash", add_tests); }
