// SPDX-License-Identifier: Apache-2.0
// What several devices cost and bring, beside one of them.
//
//     JOT_HOST_DEVICES=4 pmap [NAME ...]        JOT_DEVICE=cuda pmap
//
// Times are the least of some rounds, in us; --device's mesh has all devices of the default kind.
#include "measure.h"
#include "nccl.h"

#include <string.h>

static jot_mesh *mesh;
static int n; // devices
static bool is_gpu;

// ---- functions; a device has a piece

static jot_value add(jot_value x) { return jot_add(x, 1); }
static jot_value psum(jot_value x) { return jot_psum(x, "i"); }
enum { CHAIN = 1000 };
static jot_value chain(jot_value x)
{
    JOT_FOR (k, CHAIN, x)
        x = jot_mul(1.0 / n, jot_psum(x, "i"));
    return x;
}
static jot_value product(jot_value a, jot_value b) { return jot_matmul(a, b); }
static jot_value product_tf32(jot_value a, jot_value b)
{
    return jot_matmul(a, b, .precision = JOT_PRECISION_TF32);
}

JOT_STRUCT(mlp, w1, b1, w2, b2, w3, b3);
static jot_precision precision;

static jot_value layer(jot_value x, jot_value w, jot_value b)
{
    return jot_add(jot_matmul(x, w, .precision = precision), b);
}
static jot_value loss(struct mlp p, jot_value x, jot_value y)
{
    jot_value h = jot_relu(layer(x, p.w1, p.b1));
    h = jot_relu(layer(h, p.w2, p.b2));
    jot_value rows = jot_log_softmax(layer(h, p.w3, p.b3), -1);
    return jot_neg(jot_mean(jot_sum(jot_mul(rows, y), 1)));
}
static struct mlp step(struct mlp p, jot_value x, jot_value y)
{
    struct mlp g = JOT_GRAD(loss, p, x, y);
    if (n > 1)
        jot_pmean_tree(JOT_COUNT(g), JOT_LEAVES(g), "i");
    for (size_t i = 0; i < JOT_COUNT(p); i++)
        JOT_LEAVES(p)[i] = jot_sub(JOT_LEAVES(p)[i], jot_mul(0.1, JOT_LEAVES(g)[i]));
    return p;
}
JOT_FUNCTION(step_fn, step, struct mlp, struct mlp, jot_value, jot_value);

enum { MOST = 64 };
static int down[2 * MOST + 1], up[2 * MOST + 1];
static int steps;
static jot_value heat_step(jot_value u, jot_value above, jot_value below)
{
    jot_value wide = jot_pad(u, 0.0, 1, 1, 1), tall = jot_concatenate(0, above, u, below);
    jot_value sides = jot_add(jot_slice(wide, 1, 0, -2), jot_slice(wide, 1, 2, JOT_END));
    jot_value ends = jot_add(jot_slice(tall, 0, 0, -2), jot_slice(tall, 0, 2, JOT_END));
    return jot_add(u, jot_mul(0.2f, jot_sub(jot_add(sides, ends), jot_mul(4, u))));
}
static jot_value heat(jot_value u)
{
    JOT_FOR (t, steps, u) {
        jot_value last = jot_slice(u, 0, -1, JOT_END), first = jot_slice(u, 0, 0, 1);
        jot_value above = n > 1 ? jot_ppermute_pairs(last, "i", down) : jot_mul(0, last);
        jot_value below = n > 1 ? jot_ppermute_pairs(first, "i", up) : jot_mul(0, first);
        u = heat_step(u, above, below);
    }
    return u;
}

// ---- measuring

static void wait(size_t count, jot_array **out)
{
    for (size_t i = 0; i < count; i++)
        must(jot_array_wait(out[i]));
}

// The least time of a call whose results are there, over half a second.
static double time_call(jot_executable *f, size_t n_in, jot_array *const *in, size_t n_out)
{
    jot_array *out[8];
    double best = 1e9, end = 0;
    if (!f)
        must(JOT_ERR_ARGUMENT);
    for (int i = 0; i < 3 || seconds() < end; i++) {
        double start = seconds();
        must(jot_call_list(f, n_in, in, n_out, out));
        wait(n_out, out);
        double time = seconds() - start;
        if (i == 0)
            end = seconds() + 0.5;
        else if (time < best)
            best = time;
        jot_arrays_release(n_out, out);
    }
    jot_executable_release(f);
    return best * 1e6;
}

static jot_array *numbers(int64_t rows, int64_t columns)
{
    jot_array *a;
    jot_scope *s = jot_scope_open();
    must(jot_eval(jot_mul(0.1f, jot_random_normal(jot_random_key(1), JOT_F32, rows, columns)),
                  &a));
    jot_scope_close(s);
    return a;
}

static jot_array *split(jot_array *whole, const char *spec)
{
    jot_array *a = jot_array_shard(whole, mesh, spec);
    if (!a)
        must(JOT_ERR_ARGUMENT);
    jot_array_release(whole);
    return a;
}

static void print(const char *name, double all, double one)
{
    if (one > 0)
        printf("%-28s %12.1f   one device %12.1f, a share of it and %8.1f, speed-up %5.2f\n",
               name, all, one, all - one / n, one / all);
    else
        printf("%-28s %12.1f\n", name, all);
    fflush(stdout);
}

// ---- rows

static void row_add(const char *name)
{
    jot_array *x[] = {split(numbers(n, 1), "i")};
    print(name, time_call(jot_jit(jot_pmap_on(mesh, jot_fn(add), "i")), 1, x, 1), 0);
    jot_array_release(x[0]);
}

static void row_psum(const char *name)
{
    jot_array *x[] = {split(numbers(n, 1), "i")};
    double one = time_call(jot_jit(jot_pmap_on(mesh, jot_fn(add), "i")), 1, x, 1);
    double all = time_call(jot_jit(jot_pmap_on(mesh, jot_fn(chain), "i")), 1, x, 1);
    print(name, (all - one) / CHAIN, 0);
    jot_array_release(x[0]);
}

static double time_nccl(jot_array *x, jot_array *y, size_t count)
{
    const void *from[MOST];
    void *to[MOST];
    for (int i = 0; i < n && n <= MOST; i++) {
        jot_array *a = jot_array_shard_on(x, (size_t)i), *b = jot_array_shard_on(y, (size_t)i);
        from[i] = jot_array_device_data(a);
        to[i] = (void *)(uintptr_t)jot_array_device_data(b);
        jot_arrays_release(2, (jot_array *[]){a, b});
    }
    return nccl_sum(n, from, to, count);
}

static void row_large_psum(const char *name)
{
    int64_t mib = is_gpu ? 64 : 4;
    jot_array *x[] = {split(numbers(n, mib << 18), "i"), split(numbers(n, mib << 18), "i")};
    double own = is_gpu ? time_nccl(x[0], x[1], (size_t)mib << 18) : 0;
    double time = time_call(jot_jit(jot_pmap_on(mesh, jot_fn(psum), "i")), 1, x, 1);
    if (own > 0)
        printf("%-28s %12.1f   NCCL itself %12.1f, ratio %5.2f\n", name, time, own, time / own);
    else
        print(name, time, 0);
    jot_arrays_release(2, x);
}

static void time_product(const char *name, jot_function f)
{
    int64_t size = is_gpu ? 8192 : 1024;
    jot_array *a = numbers(size, size), *one[] = {a, a};
    jot_array *all[] = {jot_array_shard(a, mesh, "i"), jot_array_shard(a, mesh, "")};
    double alone = time_call(jot_jit(f, .device = jot_default_device()), 2, one, 1);
    print(name,
          time_call(jot_jit(jot_shard_map(f, mesh, JOT_SPLITS("i", ""), JOT_SPLITS("i"))), 2,
                    all, 1),
          alone);
    jot_arrays_release(3, (jot_array *[]){a, all[0], all[1]});
}
static void row_product(const char *name) { time_product(name, jot_fn(product)); }
static void row_product_tf32(const char *name) { time_product(name, jot_fn(product_tf32)); }

static void time_sgd(const char *name, jot_precision p)
{
    int64_t rows = is_gpu ? 1024 : 64;
    jot_array *in[] = {numbers(784, 512),
                       numbers(1, 512),
                       numbers(512, 512),
                       numbers(1, 512),
                       numbers(512, 10),
                       numbers(1, 10),
                       split(numbers(rows * n, 784), "i"),
                       split(numbers(rows * n, 10), "i")};
    precision = p;
    for (int i = 0; i < 6; i++)
        in[i] = split(in[i], "");
    jot_function f = jot_shard_map(step_fn, mesh, JOT_SPLITS("", "i", "i"),
                                   JOT_SPLITS("", "", "", "", "", ""));
    print(name, time_call(jot_jit(f), 8, in, 6), 0);
    jot_arrays_release(8, in);
}
static void row_sgd(const char *name) { time_sgd(name, JOT_PRECISION_FULL); }
static void row_sgd_tf32(const char *name) { time_sgd(name, JOT_PRECISION_TF32); }

static void row_heat(const char *name)
{
    int64_t size = is_gpu ? 4096 : 512;
    int pair = 0, devices = n;
    steps = is_gpu ? 1000 : 100;
    for (int i = 0; i + 1 < n && i + 1 < MOST; i++, pair += 2) {
        down[pair] = up[pair + 1] = i;
        down[pair + 1] = up[pair] = i + 1;
    }
    down[pair] = up[pair] = JOT_END;
    jot_array *u[] = {numbers(size, size)}, *all[] = {jot_array_shard(u[0], mesh, "i")};
    n = 1;
    double one = time_call(jot_jit(jot_fn(heat), .device = jot_default_device()), 1, u, 1);
    n = devices;
    print(
        name,
        time_call(jot_jit(jot_shard_map(jot_fn(heat), mesh, JOT_SPLITS("i"), JOT_SPLITS("i"))),
                  1, all, 1),
        one);
    jot_arrays_release(2, (jot_array *[]){u[0], all[0]});
}

static const struct {
    const char *name;
    void (*run)(const char *);
} rows[] = {
    {"scalar add over all", row_add},
    {"psum of a scalar", row_psum},
    {"psum of a block", row_large_psum},
    {"product by rows, f32", row_product},
    {"product by rows, TF32", row_product_tf32},
    {"SGD of an MLP, f32", row_sgd},
    {"SGD of an MLP, TF32", row_sgd_tf32},
    {"heat with halos", row_heat},
};

int main(int argc, char **argv)
{
    is_gpu = jot_device_kind_of(jot_default_device()) == JOT_CUDA;
    mesh = jot_mesh_of(jot_device_kind_of(jot_default_device()), {"i", 0});
    n = (int)jot_mesh_size(mesh);
    if (n == 0)
        must(JOT_ERR_DEVICE);
    printf("jot on %d devices, us\n", n);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool is_wanted = argc == 1;
        for (int k = 1; k < argc; k++)
            is_wanted |= strstr(rows[i].name, argv[k]) != NULL;
        if (is_wanted)
            rows[i].run(rows[i].name);
    }
    return 0;
}
