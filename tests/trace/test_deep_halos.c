// SPDX-License-Identifier: Apache-2.0
// Loops whose lanes exchange borders, on several devices, which do so once for several trips, against one
// device, where lanes exchange them in each.
#include "../runtime/job.h"
#include "lanes_support.h"
#include "support/sample.h"

enum { ROWS = 48, COLUMNS = 5, WIDTH = 16, TRIPS = 19 };
static int n_devices; // of the mesh "i"

// Pairs that send to the next lane and to the one before: on a line, or around a ring.
static int next[2][2 * MOST + 1], before[2][2 * MOST + 1];

static void set_pairs(void)
{
    for (int ring = 0; ring < 2; ring++) {
        int n = 0;
        for (int i = 0; i < n_devices - !ring; i++, n += 2) {
            next[ring][n] = before[ring][n + 1] = i;
            next[ring][n + 1] = before[ring][n] = (i + 1) % n_devices;
        }
        next[ring][n] = before[ring][n] = JOT_END;
    }
}

// x with h rows of each neighbour along the axis.
static jot_value with_halo_along(jot_value x, int axis, int h, bool ring)
{
    jot_value last = jot_slice(x, axis, -h, JOT_END), first = jot_slice(x, axis, 0, h);
    return jot_concatenate(axis, jot_ppermute_pairs(last, "i", next[ring]), x,
                           jot_ppermute_pairs(first, "i", before[ring]));
}
static jot_value with_halo(jot_value x, int h, bool ring)
{
    return with_halo_along(x, 0, h, ring);
}

static jot_value between(jot_value e, int from, int to)
{
    return jot_slice(e, 0, from, to ? to : JOT_END);
}

static jot_value spread(jot_value u, bool ring)
{
    jot_value e = with_halo(u, 1, ring), wide = jot_pad(u, 0.0, 1, 1, 1);
    jot_value sides = jot_add(jot_slice(wide, 1, 0, -2), jot_slice(wide, 1, 2, JOT_END));
    jot_value ends = jot_add(between(e, 0, -2), between(e, 2, 0));
    return jot_add(u, jot_mul(0.2, jot_sub(jot_add(sides, ends), jot_mul(4, u))));
}

static jot_value heat(jot_value u)
{
    JOT_FOR (t, TRIPS, u)
        u = spread(u, false);
    return u;
}
static jot_value heat_in_a_ring(jot_value u)
{
    JOT_FOR (t, TRIPS, u)
        u = jot_sin(spread(u, true));
    return u;
}
// Lanes without a neighbour read zeros, of which each trip would make something else.
static jot_value from_zeros(jot_value u)
{
    JOT_FOR (t, TRIPS, u) {
        jot_value e = with_halo(u, 1, false);
        u = jot_cos(jot_sub(between(e, 0, -2), jot_div(between(e, 2, 0), jot_add(2, u))));
    }
    return u;
}
static jot_value upwind(jot_value u)
{
    JOT_FOR (t, TRIPS, u) {
        jot_value last = jot_slice(u, 0, -1, JOT_END);
        jot_value e = jot_concatenate(0, jot_ppermute_pairs(last, "i", next[0]), u);
        u = jot_sub(u, jot_mul(0.3, jot_sub(u, between(e, 0, -1))));
    }
    return u;
}
static jot_value downwind(jot_value u)
{
    JOT_FOR (t, TRIPS, u) {
        jot_value first = jot_slice(u, 0, 0, 1);
        jot_value e = jot_concatenate(0, u, jot_ppermute_pairs(first, "i", before[1]));
        u = jot_add(u, jot_mul(0.3, jot_sub(between(e, 1, 0), u)));
    }
    return u;
}
// Two halos in a trip, the second of what was made with the first.
static jot_value two_stages(jot_value u)
{
    JOT_FOR (t, TRIPS, u)
        u = jot_mul(0.5, jot_add(u, jot_sin(spread(spread(u, false), false))));
    return u;
}
static jot_value wave(jot_value u)
{
    jot_value v = jot_cos(u);
    JOT_FOR (t, TRIPS, u, v) {
        v = jot_add(v, jot_mul(0.1, jot_sub(spread(u, false), u)));
        u = jot_add(u, jot_mul(0.1, v));
    }
    return jot_add(u, jot_mul(2, v));
}
static jot_value wide_stencil(jot_value u)
{
    JOT_FOR (t, TRIPS, u) {
        jot_value e = with_halo(u, 2, false);
        jot_value far = jot_sub(between(e, 0, -4), between(e, 4, 0));
        u = jot_add(u, jot_mul(0.1, jot_add(far, jot_mul(jot_sin(u), between(e, 1, -3)))));
    }
    return u;
}
// What no trip changes: a field of each lane, one that all lanes have, and what is known of a row by its number.
static jot_value with_fields(jot_value u)
{
    jot_value own = jot_exp(jot_neg(jot_square(u))),
              rows = jot_arange(JOT_F64, ROWS / n_devices);
    jot_value number = jot_add(jot_mul(jot_axis_index("i"), ROWS / n_devices), rows);
    jot_value profile = jot_sin(rows), edge = jot_equal(number, ROWS - 1);
    JOT_FOR (t, TRIPS, u) {
        u = jot_add(spread(jot_mul(own, u), false), jot_mul(0.1, jot_expand_dims(profile, 1)));
        u = jot_where(jot_expand_dims(edge, 1), 1, jot_sin(u));
    }
    return u;
}
// A step that all lanes have, which shrinks; and the trip's number.
static jot_value with_scalars(jot_value u)
{
    jot_value dt = jot_from_double(0.3);
    JOT_FOR (t, TRIPS, u, dt) {
        u = jot_add(
            u, jot_mul(dt, jot_sub(spread(u, false), jot_mul(0.01, jot_convert(t, JOT_F64)))));
        dt = jot_mul(0.9, dt);
    }
    return jot_mul(u, dt);
}
static jot_value with_rows_out(jot_value u)
{
    jot_value path, scale = jot_linspace(JOT_F64, 0.5, 1, TRIPS);
    JOT_SCAN ((u), (scale), (path)) {
        u = jot_mul(scale, spread(u, false));
        path = jot_sum(u, 0, JOT_KEEPDIMS);
    }
    return jot_add(
        u, jot_sum(jot_mul(path, jot_reshape(jot_arange(JOT_F64, TRIPS), TRIPS, 1, 1)), 0));
}
static jot_value backward(jot_value u)
{
    jot_value path, scale = jot_linspace(JOT_F64, 0.5, 1, TRIPS);
    JOT_SCAN ((u), (scale), (path), .reverse = true) {
        u = jot_mul(scale, spread(u, true));
        path = jot_slice(u, 0, 0, 1);
    }
    return jot_add(
        u, jot_sum(jot_mul(path, jot_reshape(jot_arange(JOT_F64, TRIPS), TRIPS, 1, 1)), 0));
}
static jot_value along_columns(jot_value u)
{
    u = jot_transpose(u);
    JOT_FOR (t, TRIPS, u) {
        jot_value e = with_halo_along(u, 1, 1, false);
        jot_value sum = jot_add(jot_slice(e, 1, 0, -2), jot_slice(e, 1, 2, JOT_END));
        u = jot_sin(jot_add(jot_mul(0.5, jot_flip(u, 0)), jot_mul(0.3, sum)));
    }
    return jot_transpose(u);
}
static jot_value of_complex(jot_value u)
{
    jot_value z = jot_complex(u, jot_sin(u));
    JOT_FOR (t, TRIPS, z)
        z = jot_mul(jot_add(z, spread(z, false)), jot_complex(0.1, 0.4));
    return jot_add(jot_real(z), jot_imag(z));
}
static jot_value turned_around(jot_value u) // and back
{
    JOT_FOR (t, TRIPS, u) {
        jot_value w = jot_transpose(jot_reshape(jot_transpose(u), COLUMNS, -1));
        u = jot_add(jot_mul(0.5, w), jot_mul(0.4, spread(w, false)));
    }
    return u;
}
// The ways back of halos: rows of neighbours are added to those of a lane.
typedef jot_value step_function(jot_value);
static void total(const jot_value *in, jot_value *out, void *f)
{
    out[0] = jot_psum(jot_sum(jot_sin((*(step_function **)f)(in[0]))), "i");
}
#define BACK(name, f)                                                                          \
    static jot_value name(jot_value u)                                                         \
    {                                                                                          \
        static step_function *of = f;                                                          \
        jot_value g;                                                                           \
        jot_apply(jot_grad(jot_function_make(total, 1, 1, &of)), 1, &u, 1, &g);                \
        return g;                                                                              \
    }
BACK(back_of_heat, heat)
BACK(back_in_a_ring, heat_in_a_ring)
BACK(back_of_zeros, from_zeros)
BACK(back_upwind, upwind)
BACK(back_of_stages, two_stages)
BACK(back_of_a_wave, wave)
BACK(back_of_wide, wide_stencil)
BACK(back_with_fields, with_fields)
BACK(back_with_scalars, with_scalars)
BACK(back_with_rows, with_rows_out)
BACK(back_backward, backward)
BACK(back_along_columns, along_columns)
BACK(back_of_complex, of_complex)
BACK(back_and_back, back_of_heat)
static jot_value moved(jot_value u) // by what a lane takes from the one before
{
    JOT_FOR (t, TRIPS, u) {
        jot_value last = jot_ppermute_pairs(jot_slice(u, 0, -2, JOT_END), "i", next[1]);
        u = jot_add(jot_sin(u), jot_pad(jot_mul(0.5, last), 0.0, 0, 0, ROWS / n_devices - 2));
    }
    return u;
}
// Folds of rows in a trip, a running one and the index of the largest.
static jot_value with_folds(jot_value u)
{
    JOT_FOR (t, TRIPS, u) {
        jot_value e = with_halo(u, 1, false), mean = jot_mean(e, 1, JOT_KEEPDIMS);
        jot_value largest = jot_convert(jot_expand_dims(jot_argmax(e, 1), 1), JOT_F64);
        jot_value sums = jot_mul(0.1, jot_cumsum(e, 1));
        e = jot_sub(jot_add(jot_mul(0.5, e), sums), jot_add(mean, jot_mul(0.01, largest)));
        u = jot_sin(jot_add(between(e, 0, -2), jot_sub(between(e, 2, 0), between(e, 1, -1))));
    }
    return u;
}

// What needs a lane as a whole stays, where that is not small.
static jot_value with_norm(jot_value u)
{
    JOT_FOR (t, TRIPS, u)
        u = jot_div(spread(u, false), jot_add(1, jot_pmax(jot_max(u), "i")));
    return u;
}
static jot_value with_own_sum(jot_value u)
{
    JOT_FOR (t, TRIPS, u)
        u = jot_sub(spread(u, false), jot_mul(0.1, jot_mean(u)));
    return u;
}
// Sums of so many terms that each lane does its own.
static jot_value with_a_product(jot_value u)
{
    int64_t lane = ROWS / n_devices, times = 816 / lane;
    jot_value w = jot_reshape(jot_arange(JOT_F64, lane * lane * times), lane, -1);
    w = jot_cos(jot_add(w, jot_axis_index("i"))); // of each lane: no product of all
    JOT_FOR (t, TRIPS, u) {
        jot_value many = jot_tile(jot_tanh(u), times, 1);
        u = jot_add(spread(u, false), jot_mul(0.001, jot_matmul(w, many)));
    }
    return u;
}
static jot_value flipped(jot_value u)
{
    JOT_FOR (t, TRIPS, u)
        u = jot_flip(spread(u, false), 0);
    return u;
}
static jot_value two_rings(jot_value u)
{
    JOT_FOR (t, TRIPS, u)
        u = spread(jot_sin(spread(u, true)), false);
    return u;
}
static jot_value staggered(jot_value u)
{
    jot_value faces = jot_concatenate(0, u, jot_slice(u, 0, 0, 1));
    JOT_FOR (t, TRIPS, u) {
        jot_value e = jot_mul(faces, jot_pad(u, 1.0, 0, 0, 1));
        u = jot_sub(spread(u, false), jot_sub(between(e, 1, 0), between(e, 0, -1)));
    }
    return u;
}

static const struct row {
    const char *name;
    step_function *f;
    bool is_deep; // exchanges are fewer than trips
} rows[] = {
    {"heat", heat, true},
    {"heat in a ring", heat_in_a_ring, true},
    {"from zeros", from_zeros, true},
    {"upwind", upwind, true},
    {"downwind", downwind, true},
    {"two stages", two_stages, true},
    {"wave", wave, true},
    {"a wide stencil", wide_stencil, true},
    {"fields", with_fields, true},
    {"scalars", with_scalars, true},
    {"rows out", with_rows_out, true},
    {"backward", backward, true},
    {"along columns", along_columns, true},
    {"complex", of_complex, true},
    {"turned around", turned_around, true},
    {"back of heat", back_of_heat, true},
    {"back in a ring", back_in_a_ring, true},
    {"back of zeros", back_of_zeros, true},
    {"back upwind", back_upwind, true},
    {"back of two stages", back_of_stages, true},
    {"back of a wave", back_of_a_wave, true},
    {"back of a wide stencil", back_of_wide, true},
    {"back with fields", back_with_fields, true},
    {"back with scalars", back_with_scalars, true},
    {"back with rows", back_with_rows, true},
    {"back backward", back_backward, true},
    {"back along columns", back_along_columns, true},
    {"back of complex", back_of_complex, true},
    {"back and back", back_and_back, true},
    {"moved", moved, true},
    {"folds", with_folds, true},
    {"staggered", staggered, true},
    {"a norm", with_norm, false},
    {"a sum of its own", with_own_sum, true},
    {"a product", with_a_product, false},
    {"flipped", flipped, false},
    {"two rings", two_rings, false},
};

static int count_exchanges(const char *schedule)
{
    int count = 0;
    for (const char *at = schedule; (at = strstr(at, " collective ")); at++)
        count += at[12] == '"';
    return count;
}

// What devices make of an array that is split so, against lanes of one; the executable.
static jot_executable *compare(const char *name, step_function *step, jot_mesh *mesh,
                               const char *spec, int columns)
{
    static double at[ROWS * WIDTH];
    int n = ROWS * columns;
    jot_function f = jot_shard_map(jot_function_plain(name, name, 1, (void (*)(void))step),
                                   mesh, JOT_SPLITS(spec), JOT_SPLITS(spec));
    jot_executable *all = jot_jit(f), *one = jot_jit(f, .device = jot_host());
    for (int i = 0; i < n; i++)
        at[i] = sin(1 + 1.7 * i) + 0.01 * (i % 240);
    jot_array *x = jot_array_copy(JOT_F64, at, (int64_t[]){ROWS, columns, JOT_END}),
              *pieces = result_of(all, 1, &x), *want = result_of(one, 1, &x),
              *y = jot_process_count() > 1 ? jot_process_all_gather(pieces)
                                           : jot_array_retain(pieces);
    const double *a = jot_array_data(y), *b = jot_array_data(want);
    bool is_host = jot_device_kind_of(jot_default_device()) == JOT_HOST;
    for (int i = 0; i < n; i++)
        ck_assert_msg(a[i] == b[i] ||
                          (!is_host && fabs(a[i] - b[i]) <= 1e-14 * (1 + fabs(b[i]))),
                      "%s on %zu: element %d is %.17g, not %.17g", name, jot_mesh_size(mesh), i,
                      a[i], b[i]);
    jot_executable_release(one);
    release_all(x, pieces, y, want);
    return all;
}

START_TEST(devices_do_what_lanes_do)
{
    const struct row *r = &rows[_i];
    must(jot_set_host_devices(MOST));
    for (n_devices = 2; n_devices <= MOST; n_devices++) {
        bool is_all = getenv("JOT_TEST_FULL") != NULL;
        if (ROWS % n_devices || (!is_all && n_devices > 3 && n_devices < MOST) ||
            (!is_all && strstr(r->name, "back ") && n_devices != 3) ||
            n_devices > jot_device_count(jot_device_kind_of(jot_default_device())))
            continue;
        set_pairs();
        jot_mesh *mesh =
            jot_mesh_of(jot_device_kind_of(jot_default_device()), {"i", n_devices});
        jot_executable *all = compare(r->name, r->f, mesh, "i", COLUMNS);
        char trips[32];
        snprintf(trips, sizeof trips, "trips %d ", TRIPS);
        bool is_deep = !strstr(jot_executable_text(all, "schedule"), trips);
        ck_assert_msg(is_deep == r->is_deep, "%s on %d: %.4000s", r->name, n_devices,
                      jot_executable_text(all, "schedule"));
        jot_executable_release(all);
    }
}
END_TEST

// ---- Neighbours along two axes of a mesh

static int beside[2][5],
    back[2][5]; // pairs along "j", of two lanes: on a line, and around a ring

static jot_value along_both(jot_value u, bool ring)
{
    jot_value e = with_halo(u, 1, ring), last = jot_slice(e, 1, -1, JOT_END),
              first = jot_slice(e, 1, 0, 1);
    return jot_concatenate(1, jot_ppermute_pairs(last, "j", beside[ring]), e,
                           jot_ppermute_pairs(first, "j", back[ring]));
}
static jot_value with_corners(jot_value u)
{
    JOT_FOR (t, TRIPS, u) {
        jot_value e = along_both(u, false), sum = jot_mul(0.3, u);
        for (int i = 0; i < 9; i++) {
            jot_value band = between(e, i / 3, i / 3 - 2);
            sum = jot_add(sum,
                          jot_mul(0.02 * (i + 1),
                                  jot_slice(band, 1, i % 3, i % 3 < 2 ? i % 3 - 2 : JOT_END)));
        }
        u = jot_sin(sum);
    }
    return u;
}
static jot_value with_corners_in_rings(jot_value u)
{
    JOT_FOR (t, TRIPS, u) {
        jot_value e = along_both(u, true);
        jot_value a = jot_slice(between(e, 0, -2), 1, 0, -2),
                  b = jot_slice(between(e, 2, 0), 1, 2, JOT_END);
        u = jot_cos(jot_sub(u, jot_mul(0.4, jot_add(a, b))));
    }
    return u;
}
static jot_value of_five_points(jot_value u)
{
    JOT_FOR (t, TRIPS, u) {
        jot_value e = with_halo(u, 1, false);
        jot_value wide =
            jot_concatenate(1, jot_ppermute_pairs(jot_slice(u, 1, -1, JOT_END), "j", beside[0]),
                            u, jot_ppermute_pairs(jot_slice(u, 1, 0, 1), "j", back[0]));
        jot_value sides = jot_add(jot_slice(wide, 1, 0, -2), jot_slice(wide, 1, 2, JOT_END));
        jot_value ends = jot_add(between(e, 0, -2), between(e, 2, 0));
        u = jot_add(u, jot_mul(0.2, jot_sub(jot_add(sides, ends), jot_mul(4, jot_sin(u)))));
    }
    return u;
}
// Lanes along the other axis sum what each has of a row.
static jot_value with_sums_across(jot_value u)
{
    JOT_FOR (t, TRIPS, u) {
        jot_value sums = jot_psum(jot_sum(u, 1, JOT_KEEPDIMS), "j");
        u = jot_sin(jot_add(spread(u, false), jot_mul(0.1, jot_sub(jot_pmax(u, "j"), sums))));
    }
    return u;
}
// Along the first axis a lane needs all of its rows.
static jot_value deep_beside(jot_value u)
{
    JOT_FOR (t, TRIPS, u) {
        jot_value e = jot_cumsum(with_halo(u, 1, false), 0),
                  last = jot_slice(u, 1, -1, JOT_END);
        jot_value wide = jot_concatenate(1, jot_ppermute_pairs(last, "j", beside[1]), u);
        u = jot_sin(
            jot_add(jot_mul(0.1, between(e, 1, -1)), jot_mul(0.5, jot_slice(wide, 1, 0, -1))));
    }
    return u;
}
static void total_of_both(const jot_value *in, jot_value *out, void *f)
{
    out[0] = jot_psum(jot_sum(jot_sin((*(step_function **)f)(in[0]))), "i, j");
}
#define BACK_OF_BOTH(name, f)                                                                  \
    static jot_value name(jot_value u)                                                         \
    {                                                                                          \
        static step_function *of = f;                                                          \
        jot_value g;                                                                           \
        jot_apply(jot_grad(jot_function_make(total_of_both, 1, 1, &of)), 1, &u, 1, &g);        \
        return g;                                                                              \
    }
BACK_OF_BOTH(back_with_corners, with_corners)
BACK_OF_BOTH(back_in_rings, with_corners_in_rings)
BACK_OF_BOTH(back_of_five_points, of_five_points)
BACK_OF_BOTH(back_with_sums, with_sums_across)

static const struct both {
    const char *name;
    step_function *f;
    int most; // exchanges of both loops, that of eight trips in one and that of three; 0: lanes exchange in each trip
    int far;  // those where the lanes are processes
} both[] = {
    {"corners", with_corners, 22, 8},
    {"corners in rings", with_corners_in_rings, 22, 4},
    {"five points", of_five_points, 22, 8},
    {"sums across", with_sums_across, 22, 22},
    {"deep beside", deep_beside, 20, 20},
    {"back with corners", back_with_corners, 0, 24},
    {"back in rings", back_in_rings, 0, 12},
    {"back of five points", back_of_five_points, 0, 24},
    {"back with sums", back_with_sums, 0, 41},
};

static void set_pairs_beside(void)
{
    for (int ring = 0; ring < 2; ring++) {
        const int there[] = {0, 1, ring ? 1 : JOT_END, 0, JOT_END},
                  again[] = {1, 0, ring ? 0 : JOT_END, 1, JOT_END};
        memcpy(beside[ring], there, sizeof there);
        memcpy(back[ring], again, sizeof again);
    }
}

START_TEST(devices_of_a_grid_do_what_lanes_do)
{
    const struct both *r = &both[_i];
    jot_device_kind kind = jot_device_kind_of(jot_default_device());
    must(jot_set_host_devices(MOST));
    set_pairs_beside();
    for (n_devices = 2; n_devices <= 3 && 2 * n_devices <= jot_device_count(kind);
         n_devices++) {
        set_pairs();
        jot_mesh *mesh = jot_mesh_of(kind, {"i", n_devices}, {"j", 2});
        jot_executable *all = compare(r->name, r->f, mesh, "i, j", WIDTH);
        const char *text = jot_executable_text(all, "schedule");
        char trips[32];
        int count = count_exchanges(text);
        snprintf(trips, sizeof trips, "trips %d ", TRIPS);
        ck_assert_msg(r->most ? count <= r->most && !strstr(text, trips) : count > 0,
                      "%s on %d: %d exchanges: %.3000s", r->name, n_devices, count, text);
        jot_executable_release(all);
    }
}
END_TEST

// Where an exchange is dear lanes exchange for eight trips along both axes, on the way back too.
static void compare_far(int index, const void *ctx)
{
    const struct both *r = ctx;
    n_devices = 2;
    set_pairs();
    set_pairs_beside();
    must(jot_set_host_devices(1));
    jot_executable *all =
        compare(r->name, r->f, jot_mesh_of(JOT_HOST, {"i", 2}, {"j", 2}), "i, j", WIDTH);
    const char *text = jot_executable_text(all, "schedule");
    int count = count_exchanges(text);
    ck_assert_msg(count <= r->far, "%s: %d exchanges: %.3000s", r->name, count, text);
    jot_executable_release(all);
    job_note(index, JOT_OK);
}

START_TEST(processes_of_a_grid_do_what_lanes_do)
{
    struct test t = {.count = 4, .body = compare_far, .ctx = &both[_i]};
    if (jot_device_kind_of(jot_default_device()) != JOT_HOST)
        return;
    job_run(&t);
    job_all_are(&t, -1, JOT_OK, "", "");
}
END_TEST

static void add(TCase *t)
{
    tcase_set_timeout(t, 60);
    tcase_add_sampled_test(t, devices_of_a_grid_do_what_lanes_do, 0,
                           sizeof both / sizeof *both);
    tcase_add_sampled_test(t, processes_of_a_grid_do_what_lanes_do, 0,
                           sizeof both / sizeof *both);
    tcase_add_sampled_test(t, devices_do_what_lanes_do, 0, sizeof rows / sizeof *rows);
}

int main(void)
{
    setenv("FAKE_CUDA_COUNT", "8", 1);
    return run_suite("trace/deep_halos", add);
}
