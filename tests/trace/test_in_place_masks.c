// SPDX-License-Identifier: Apache-2.0
// Long rows that some lanes update: the bits are those of each lane alone, and no trip copies rows.
#include "trace_support.h"

enum { LANES = 5, N = 200, TRIPS = 12 };

typedef jot_value body(jot_value x, jot_value c);

static jot_value two_branches(jot_value x, jot_value c)
{
    JOT_FOR (i, TRIPS, x) {
        JOT_IF (jot_greater(jot_take(x, i), c), x) {
            x = jot_at_add(x, jot_rem(i, 3), -1);
        } else {
            x = jot_at_set(x, jot_add(i, 1), jot_add(jot_take(x, i), 2));
        }
    }
    return x;
}

// Elements that are -0 stay so where nothing is added.
static jot_value own_elements(jot_value x, jot_value c)
{
    JOT_FOR (i, TRIPS, x) {
        JOT_IF (jot_less(jot_astype(i, JOT_F32), jot_astype(c, JOT_F32)), x) {
            x = jot_at_add(x, jot_add(jot_astype(c, JOT_I32), i), 3);
        }
    }
    return x;
}

static jot_value cases(jot_value x, jot_value c)
{
    JOT_FOR (i, TRIPS, x) {
        jot_value which = jot_rem(jot_add(jot_astype(c, JOT_I32), i), 4);
        JOT_SWITCH (which, 4, x) {
        case 0:
            x = jot_at_mul(x, i, 3);
            break;
        case 1:
            x = jot_at_min(x, jot_mul(i, 2), 1);
            break;
        case 2:
            x = jot_at_max(x, jot_sub(-1, i), 2);
            break;
        case 3:
            x = jot_at_set(jot_at_set(x, i, jot_take(x, 2)), 2, jot_take(x, i));
            break;
        }
    }
    return x;
}

static jot_value several_elements(jot_value x, jot_value c)
{
    JOT_FOR (i, TRIPS, x) {
        jot_value at = jot_add(jot_rem(jot_arange(JOT_I32, 8), 3), i); // some are the same
        JOT_IF (jot_greater(jot_take(x, jot_add(i, 5)), c), x) {
            x = jot_at_add(x, at, jot_take(x, jot_add(at, 9)));
        } else {
            x = jot_at_set(x, at, jot_take(x, jot_add(at, 20)));
        }
    }
    return x;
}

static jot_value windows(jot_value x, jot_value c)
{
    JOT_FOR (i, TRIPS, x) {
        jot_value part = jot_dynamic_slice(x, jot_add(i, 7), 16);
        JOT_IF (jot_greater(jot_take(x, i), c), x) {
            x = jot_dynamic_update_slice(x, part, jot_mul(i, 100));
        }
    }
    return x;
}

static jot_value ends_apart(jot_value x, jot_value c)
{
    jot_value k = jot_zeros(JOT_I32), limit = jot_add(jot_astype(c, JOT_I32), 3);
    JOT_WHILE ((x, k), jot_less(k, limit)) {
        jot_value p = jot_take(x, k), q = jot_take(x, jot_add(k, 30));
        x = jot_at_set(x, k, q);
        x = jot_at_set(x, jot_add(k, 30), p);
        x = jot_at_mul(x, jot_add(k, limit), 2);
        k = jot_add(k, 1);
    }
    return x;
}

static jot_value nested(jot_value x, jot_value c)
{
    JOT_FOR (i, TRIPS, x) {
        JOT_IF (jot_greater(jot_take(x, i), c), x) {
            JOT_IF (jot_greater(jot_add(i, c), 6), x) {
                x = jot_at_set(x, 3, c);
            } else {
                x = jot_at_add(x, 3, c);
            }
            x = jot_at_add(x, jot_add(i, 1), 1);
        }
    }
    return x;
}

// Branches that all lanes take alike, in those that each takes for itself.
static jot_value common(jot_value x, jot_value c)
{
    JOT_FOR (i, TRIPS, x) {
        JOT_IF (jot_greater(jot_take(x, i), c), x) {
            JOT_IF (jot_greater(i, 6), x) {
                x = jot_at_set(x, 3, c);
            } else {
                x = jot_at_add(x, 3, jot_take(x, jot_add(i, 4)));
            }
            x = jot_at_add(x, jot_add(i, 1), 1);
        } else {
            JOT_IF (jot_equal(jot_rem(i, 3), 1), x) {
                x = jot_at_mul(x, jot_add(i, 2), 3);
            }
        }
    }
    return x;
}

static jot_value common_cases(jot_value x, jot_value c)
{
    jot_value sum = jot_mul(c, 0);
    JOT_FOR (i, TRIPS, x, sum) {
        JOT_IF (jot_greater(jot_take(x, i), c), x, sum) {
            x = jot_at_add(x, 30, 2);
            JOT_SWITCH (jot_rem(i, 4), 4, x, sum) {
            case 0:
                sum = jot_add(sum, c);
                break;
            case 1:
                x = jot_at_max(x, jot_mul(i, 2), c);
                break;
            case 2:
                JOT_IF (jot_less(i, 9), x) {
                    x = jot_at_set(x, jot_add(i, 20), sum);
                }
                break;
            case 3:
                x = jot_dynamic_update_slice(x, jot_broadcast_to(c, 4), jot_mul(i, 9));
                sum = jot_add(sum, 1);
                break;
            }
        }
    }
    return jot_at_add(x, 0, sum);
}

// What a common branch reads is the row as an update before has left it, of lanes that make it.
static jot_value common_behind_an_update(jot_value x, jot_value c)
{
    JOT_FOR (i, TRIPS, x) {
        JOT_IF (jot_greater(jot_take(x, i), c), x) {
            x = jot_at_add(x, 30, 2);
            JOT_IF (jot_greater(i, 6), x) {
                x = jot_at_add(x, i, jot_take(x, 30));
            }
        } else {
            JOT_IF (jot_less(i, 8), x) {
                x = jot_at_set(x, 30, jot_take(x, jot_add(i, 1)));
            }
        }
    }
    return x;
}

// The old row is read behind its update.
static jot_value read_later(jot_value x, jot_value c)
{
    JOT_FOR (i, TRIPS, x) {
        jot_value old = x;
        JOT_IF (jot_greater(jot_take(x, i), c), x) {
            x = jot_at_add(x, i, 1);
        }
        x = jot_at_add(x, jot_add(i, 2), jot_take(old, i));
    }
    return x;
}

static const struct {
    const char *name;
    body *body;
    bool copies; // for the row is kept as it was
} bodies[] = {
    {"two branches", two_branches, false},
    {"own elements", own_elements, false},
    {"cases", cases, false},
    {"several elements", several_elements, false},
    {"windows", windows, false},
    {"ends apart", ends_apart, false},
    {"nested", nested, false},
    {"common", common, false},
    {"common cases", common_cases, false},
    {"common behind an update", common_behind_an_update, true},
    {"read later", read_later, false},
};
enum { BODIES = sizeof bodies / sizeof *bodies };

static const jot_dtype dtypes[] = {JOT_F32, JOT_F64, JOT_I32};

// Small whole numbers, of floats -0 too.
static double element(int i) { return i % 7 == 0 ? -0.0 : (i * 37) % 11 - 4; }

// Rows, or numbers where the length is 0, from lane `first` on; no axis for one lane.
static jot_array *rows_of(jot_dtype dtype, int first, int lanes, int length)
{
    static union {
        float f32[LANES * N];
        double f64[LANES * N];
        int32_t i32[LANES * N];
    } x;
    int64_t dims[3];
    int rank = 0, each = length ? length : 1;
    for (int i = 0; i < lanes * each; i++) {
        double e = length ? element(first * each + i) : first + i;
        if (dtype == JOT_F32)
            x.f32[i] = (float)e;
        else if (dtype == JOT_F64)
            x.f64[i] = e;
        else
            x.i32[i] = (int32_t)e;
    }
    if (lanes > 1)
        dims[rank++] = lanes;
    if (length)
        dims[rank++] = length;
    dims[rank] = JOT_END;
    return jot_array_copy(dtype, &x, dims);
}

START_TEST(test_masks)
{
    int which = _i / 3;
    jot_dtype dtype = dtypes[_i % 3];
    static const int donate[] = {0, JOT_END};
    jot_array *x = rows_of(dtype, 0, LANES, N), *c = rows_of(dtype, 0, LANES, 0), *y, *one;
    jot_executable *all = jot_jit(jot_vmap(jot_fn(bodies[which].body)), .donate = donate),
                   *alone = jot_jit(jot_fn(bodies[which].body));
    must(jot_call_list(all, 2, (jot_array *[]){x, c}, 1, &y));
    const char *text = jot_executable_text(all, "schedule");
    ck_assert_msg(bodies[which].copies || !strstr(text, "keeps its operand"), "%s: %.3000s",
                  bodies[which].name, text);
    size_t bytes = (size_t)N * jot_dtype_size(dtype);
    for (int lane = 0; lane < LANES; lane++) {
        jot_array *in[] = {rows_of(dtype, lane, 1, N), rows_of(dtype, lane, 1, 0)};
        must(jot_call_list(alone, 2, in, 1, &one));
        const char *want = jot_array_data(one), *got = jot_array_data(y);
        ck_assert_msg(!memcmp(want, got + (size_t)lane * bytes, bytes), "%s: %s, lane %d",
                      bodies[which].name, jot_dtype_name(dtype), lane);
        jot_array_release(one);
        jot_arrays_release(2, in);
    }
    jot_arrays_release(3, (jot_array *[]){x, c, y});
    jot_executable_release(all);
    jot_executable_release(alone);
}
END_TEST

static void add_tests(TCase *t) { tcase_add_loop_test(t, test_masks, 0, BODIES * 3); }

int main(void) { return run_suite("masks in place", add_tests); }
