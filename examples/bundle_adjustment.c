// SPDX-License-Identifier: Apache-2.0
// Cameras and the points that they see, from where the points are in their images: 2e5 residuals in
// 30288 unknowns, by the method of Levenberg and Marquardt on products with the Jacobian.  The scene is
// made, so the answer is known; the first two cameras are where they are.  An argument is a number of
// points up to that of the large scene.
#include <jot/jot.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { CAMERAS = 50, FREE = CAMERAS - 2, POINTS = 10000, SEEN = 10, IMAGES = SEEN * POINTS };
static const double PI = 3.14159265358979323846;

// Cameras are rotated by the quaternion (1, r) / |(1, r)| and moved: rows of r and of a vector.
struct scene {
    jot_value cameras, points;
};

// Where a camera sees a point: with w = 2 (r x p + r x (r x p)) / (1 + r.r), p + w is p rotated.
static jot_value image(jot_value camera, jot_value point)
{
    jot_value r = jot_slice(camera, 0, 0, 3), move = jot_slice(camera, 0, 3, 6);
    jot_value once = jot_cross(r, point), twice = jot_cross(r, once);
    jot_value scale = jot_div(2, jot_add(1, jot_dot(r, r)));
    jot_value p = jot_add(jot_add(point, jot_mul(scale, jot_add(once, twice))), move);
    return jot_div(jot_slice(p, 0, 0, 2), jot_take(p, 2));
}

// What all images are of a scene.
struct views {
    jot_value fixed, camera, point, at; // the first cameras; who sees what, and where
};

static jot_value images(struct views v, struct scene s)
{
    jot_value all = jot_concatenate(0, v.fixed, s.cameras), at;
    jot_value camera = jot_take(all, v.camera), point = jot_take(s.points, v.point);
    JOT_VMAP ((camera, point), (at))
        at = image(camera, point);
    return at;
}

static void residuals(const jot_value *in, jot_value *out, void *ctx)
{
    const struct views *v = ctx;
    out[0] = jot_sub(images(*v, (struct scene){in[0], in[1]}), v->at);
}

struct answer {
    jot_value far, first, last, steps; // the largest error; half the sums of squares
};

static struct answer adjust(struct scene right, jot_value fixed, jot_value camera,
                            jot_value point, jot_value seed)
{
    struct views *v = jot_trace_memory(sizeof *v);
    *v = (struct views){.fixed = fixed, .camera = camera, .point = point};
    v->at = images(*v, right);
    jot_value keys = jot_random_split(jot_random_key(seed), 2);
    int64_t n = jot_value_dim(right.points, 0);
    jot_value c = jot_random_normal(jot_take(keys, 0), JOT_F64, FREE, 6);
    jot_value p = jot_random_normal(jot_take(keys, 1), JOT_F64, n, 3);
    struct scene s = {jot_add(right.cameras, jot_mul(0.01, c)),
                      jot_add(right.points, jot_mul(0.05, p))};
    jot_value off = jot_sub(images(*v, s), v->at);
    jot_search at =
        jot_levenberg_marquardt(jot_function_make(residuals, 2, 1, v), &s, .tol = 3e-12,
                                .is_matrix_free = true, .max_steps = 50);
    jot_value far_camera = jot_max(jot_abs(jot_sub(s.cameras, right.cameras)));
    jot_value far_point = jot_max(jot_abs(jot_sub(s.points, right.points)));
    jot_value first = jot_mul(0.5, jot_sum(jot_square(off)));
    return (struct answer){jot_maximum(far_camera, far_point), first, at.value, at.steps};
}
JOT_FUNCTION(adjust_fn, adjust, struct answer, struct scene, jot_value, jot_value, jot_value,
             jot_value);

static double cameras[CAMERAS][6], points[POINTS][3];
static int32_t camera[IMAGES], point[IMAGES];

// Cameras on a circle look at its middle, where the points are.
static void make_scene(void)
{
    for (int i = 0; i < CAMERAS; i++) {
        // Never half a turn, which no r of this form is.
        cameras[i][1] = tan(0.9 * PI * (i + 0.5) / CAMERAS - 0.45 * PI);
        cameras[i][5] = 6 + sin(i);
    }
    // Multiples of the powers of one number, which fill a cube evenly.
    for (int i = 0; i < POINTS; i++)
        for (int k = 0; k < 3; k++)
            points[i][k] = 2 * fmod((i + 1) * pow(0.8191725133961645, k + 1), 1) - 1;
    for (int i = 0; i < IMAGES; i++) {
        point[i] = i / SEEN;
        camera[i] = (int32_t)((i / SEEN * 7 + i % SEEN * 3) % CAMERAS);
    }
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : POINTS;
    if (n < CAMERAS || n > POINTS)
        return fprintf(stderr, "usage: %s [%d to %d points]\n", argv[0], CAMERAS, POINTS), 1;
    make_scene();
    jot_array *in[] = {jot_array_from(cameras[2], FREE, 6), jot_array_from(points[0], n, 3),
                       jot_array_from(cameras[0], 2, 6),    jot_array_from(camera, n * SEEN),
                       jot_array_from(point, n * SEEN),     jot_array_full(JOT_I32, 0)};
    jot_array *out[4];
    jot_executable *f = jot_jit(adjust_fn);
    if (jot_call(f, JOT_IN(in), JOT_OUT(out)) != JOT_OK)
        return fprintf(stderr, "%s\n", jot_error_message()), 1;
    double far = jot_array_item(out[0]);
    printf("%g steps: half the sum of squares from %.3g to %.3g; off by %.1e\n",
           jot_array_item(out[3]), jot_array_item(out[1]), jot_array_item(out[2]), far);
    jot_arrays_release(JOT_OUT(in)), jot_arrays_release(JOT_OUT(out)),
        jot_executable_release(f);
    return far < 1e-6 ? 0 : 1;
}
