// SPDX-License-Identifier: Apache-2.0
// In which order factors are multiplied: all orders are tried for few factors, by dynamic
// programming over their subsets; of many the pair is next whose product is smallest beside its
// factors (the greedy order of Smith and Gray, opt_einsum, JOSS 2018).
#include "numpy/einsum.h"

#include <math.h>

enum { MOST_TRIED = 8 }; // 3^8 splits

static double elements(uint64_t set, const int64_t *sizes)
{
    double n = 1;
    for (int i = 0; i < EINSUM_LABELS; i++)
        if (set >> i & 1)
            n *= (double)sizes[i];
    return n;
}

struct order {
    int n;
    const uint64_t *sets;
    const int64_t *sizes;
    uint64_t result;
    uint64_t labels[1 << MOST_TRIED]; // of the product of a subset
    double cost[1 << MOST_TRIED];     // multiplications that make it
    uint16_t split[1 << MOST_TRIED];  // into this subset and the rest
    struct einsum_pair *next;
};

// The labels of a product that others, or the result, have as well.
static uint64_t product_labels(const struct order *o, unsigned subset)
{
    uint64_t inside = 0, outside = o->result;
    for (int i = 0; i < o->n; i++)
        *(subset >> i & 1 ? &inside : &outside) |= o->sets[i];
    return inside & outside;
}

static int emit(struct order *o, unsigned subset)
{
    int low = __builtin_ctz(subset);
    if ((subset & (subset - 1)) == 0)
        return low;
    int a = emit(o, o->split[subset]), b = emit(o, subset & ~(unsigned)o->split[subset]);
    *o->next++ = a < b ? (struct einsum_pair){a, b} : (struct einsum_pair){b, a};
    return low;
}

static void try_all(int n, const uint64_t *sets, const int64_t *sizes, uint64_t result,
                    struct einsum_pair *out)
{
    struct order o = {.n = n, .sets = sets, .sizes = sizes, .result = result, .next = out};
    for (unsigned s = 1; s < 1u << n; s++) {
        o.labels[s] = product_labels(&o, s);
        o.cost[s] = (s & (s - 1)) ? INFINITY : 0;
        // Each split once: the part with the first factor.
        for (unsigned part = (s - 1) & s; part; part = (part - 1) & s) {
            if (!(part & s & -s))
                continue;
            unsigned rest = s & ~part;
            double cost =
                o.cost[part] + o.cost[rest] + elements(o.labels[part] | o.labels[rest], sizes);
            if (cost < o.cost[s]) {
                o.cost[s] = cost;
                o.split[s] = (uint16_t)part;
            }
        }
    }
    emit(&o, (1u << n) - 1);
}

static uint64_t labels_without(int n, const uint64_t *sets, uint64_t result, int a, int b)
{
    for (int i = 0; i < n; i++)
        if (i != a && i != b)
            result |= sets[i];
    return result;
}

static void take_smallest(int n, const uint64_t *given, const int64_t *sizes, uint64_t result,
                          struct einsum_pair *out)
{
    uint64_t sets[EINSUM_MOST];
    int factor[EINSUM_MOST];
    for (int i = 0; i < n; i++) {
        sets[i] = given[i];
        factor[i] = i;
    }
    for (; n > 1; n--) {
        int a = 0, b = 1;
        double least = INFINITY;
        for (int i = 0; i < n; i++)
            for (int k = i + 1; k < n; k++) {
                uint64_t kept = labels_without(n, sets, result, i, k);
                double grows = elements((sets[i] | sets[k]) & kept, sizes) -
                               elements(sets[i], sizes) - elements(sets[k], sizes);
                if (grows < least) {
                    least = grows;
                    a = i;
                    b = k;
                }
            }
        *out++ = (struct einsum_pair){factor[a], factor[b]};
        sets[a] = (sets[a] | sets[b]) & labels_without(n, sets, result, a, b);
        for (int i = b; i + 1 < n; i++) {
            sets[i] = sets[i + 1];
            factor[i] = factor[i + 1];
        }
    }
}

void einsum_order(int n, const uint64_t *sets, const int64_t *sizes, uint64_t result,
                  struct einsum_pair *out)
{
    (n <= MOST_TRIED ? try_all : take_smallest)(n, sets, sizes, result, out);
}
