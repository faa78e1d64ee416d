// SPDX-License-Identifier: Apache-2.0
// Collectives, and programs that several devices run together.
#include "runtime/team.h"

#include "base/arena.h"
#include "base/dtype.h"
#include "device_support.h"
#include "runtime/collective.h"
#include "runtime/host/nodes.h"
#include "runtime/steps.h"
#include "support/suite.h"
#include "team_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define COUNT(a) (uint32_t)(sizeof(a) / sizeof *(a))

// ---- collectives alone ----

// A few numbers whose sums and products every type has exactly, and that are different everywhere.
static void set(jot_dtype dtype, void *block, size_t i, int value)
{
    size_t size = dtype_get(dtype)->bytes;
    char *at = (char *)block + i * size;
    float f = (float)value;
    double d = value;
    int64_t n = value;
    uint16_t h = dtype == JOT_BF16 ? dtype_bf16_from_f64(d) : dtype_f16_from_f64(d);
    memset(at, 0, size);
    if (dtype_is_half(dtype))
        memcpy(at, &h, sizeof h);
    else if (!dtype_is_inexact(dtype))
        memcpy(at, &n, size);
    else if (dtype_real(dtype) == JOT_F32)
        memcpy(at, &f, sizeof f);
    else
        memcpy(at, &d, sizeof d);
}

static int get(jot_dtype dtype, const void *block, size_t i)
{
    return (int)rt_element_to_f64(dtype, (const char *)block + i * dtype_get(dtype)->bytes);
}

// Of device d; small enough for a product of eight, and true or false of bool.
static int element(jot_dtype dtype, int64_t d, size_t i)
{
    return dtype == JOT_BOOL ? (int)((size_t)d + i) % 3 != 0 : 1 + (int)((size_t)d * 5 + i) % 2;
}

static int combine(enum collective_combiner combiner, int a, int b)
{
    switch (combiner) {
    case COLLECTIVE_SUM:
        return a + b;
    case COLLECTIVE_PRODUCT:
        return a * b;
    case COLLECTIVE_MAX:
        return a > b ? a : b;
    case COLLECTIVE_MIN:
        return a < b ? a : b;
    case COLLECTIVE_AND:
        return a & b;
    default:
        return a | b;
    }
}

// What element i of the block that `position` writes is; k elements are the smaller block.
static int wanted(const struct collective *c, const int64_t *members, int64_t position,
                  size_t i, size_t k)
{
    size_t n = (size_t)c->size, at = i;
    int64_t source = position;
    switch (c->kind) {
    case COLLECTIVE_ALL_GATHER:
        return element(c->dtype, members[i / k], i % k);
    case COLLECTIVE_ALL_TO_ALL:
        return element(c->dtype, members[i / (k / n)],
                       (size_t)position * (k / n) + i % (k / n));
    case COLLECTIVE_PERMUTE:
        source = c->sources[position];
        return source < 0 ? 0 : element(c->dtype, members[source], i);
    default:
        break;
    }
    at += c->kind == COLLECTIVE_REDUCE_SCATTER ? (size_t)position * k : 0;
    int acc = element(c->dtype, members[0], at);
    for (int64_t j = 1; j < c->size; j++)
        acc = combine(c->combiner, acc, element(c->dtype, members[j], at));
    return acc;
}

// One collective on one mesh, of blocks whose smaller one has k elements.
static void check_collective(const int64_t *params, uint32_t n_params, uint32_t rank,
                             const int64_t *mesh, size_t k, bool in_place)
{
    struct collective c;
    ck_assert_ptr_null(collective_read(params, n_params, rank, mesh, &c));
    size_t n = (size_t)c.size, size = dtype_get(c.dtype)->bytes;
    size_t n_from = k * (c.kind == COLLECTIVE_REDUCE_SCATTER ? n : 1);
    size_t n_to = k * (c.kind == COLLECTIVE_ALL_GATHER ? n : 1);
    ck_assert(collective_fits(&c, n_to * size, n_from * size));
    int64_t devices = collective_mesh_size(rank, mesh);
    void *to[64];
    const void *from[64];
    struct rt_blocks groups[64];
    int64_t members[64];
    size_t n_groups = 0, at = 0;
    for (int64_t d = 0; d < devices; d++) {
        if (collective_position(&c, rank, mesh, d))
            continue;
        groups[n_groups++] = (struct rt_blocks){to + at, from + at};
        for (int64_t position = 0; position < c.size; position++, at++) {
            members[at] = collective_member(&c, rank, mesh, d, position);
            ck_assert_int_eq(collective_position(&c, rank, mesh, members[at]), position);
            char *block = malloc(n_from * size + 1);
            for (size_t i = 0; i < n_from; i++)
                set(c.dtype, block, i, element(c.dtype, members[at], i));
            from[at] = block;
            to[at] = in_place ? block : malloc(n_to * size + 1);
        }
    }
    ck_assert_int_eq((int64_t)at, devices);
    rt_collective_run(&c, n_groups, groups, n_to * size, n_from * size);
    for (size_t j = 0; j < at; j++) {
        size_t wrong = 0;
        for (size_t i = 0; i < n_to; i++)
            wrong += get(c.dtype, to[j], i) !=
                     wanted(&c, members + j / n * n, (int64_t)(j % n), i, k);
        ck_assert_msg(wrong == 0, "%s %s of %zu %s: %zu elements are wrong",
                      collective_name(c.kind), collective_combiner_name(c.combiner), k,
                      jot_dtype_name(c.dtype), wrong);
        if (!in_place)
            free(to[j]);
        free((void *)(uintptr_t)from[j]);
    }
}

// Every kind, combiner and type, over all axes and over one of several.
START_TEST(does_every_collective)
{
    static const struct {
        uint32_t rank, n_axes;
        int64_t mesh[3], axes[2];
    } meshes[] = {{1, 1, {1}, {0}},       {1, 1, {2}, {0}},          {1, 1, {3}, {0}},
                  {1, 1, {8}, {0}},       {2, 1, {2, 3}, {0}},       {2, 1, {2, 3}, {1}},
                  {2, 2, {2, 4}, {1, 0}}, {3, 2, {2, 2, 2}, {2, 0}}, {1, 0, {4}, {0}}};
    const size_t sizes[] = {0, 1, 24, 12000}; // the last on threads
    for (size_t m = 0; m < COUNT(meshes); m++)
        for (int kind = 0; kind < COLLECTIVE_KIND_COUNT; kind++)
            for (int combiner = 0; combiner < COLLECTIVE_COMBINER_COUNT; combiner++)
                for (int dtype = 0; dtype_is_valid(dtype); dtype++)
                    for (size_t s = 0; s < COUNT(sizes); s++) {
                        int64_t params[4 + 2 + 64] = {kind, combiner, dtype, meshes[m].n_axes};
                        uint32_t n = 4;
                        int64_t size = 1;
                        for (uint32_t i = 0; i < meshes[m].n_axes; i++) {
                            params[n++] = meshes[m].axes[i];
                            size *= meshes[m].mesh[meshes[m].axes[i]];
                        }
                        // A ring that is open, and one that all are sent from.
                        for (int64_t i = 0; kind == COLLECTIVE_PERMUTE && i < size; i++)
                            params[n++] = combiner ? i - 1 : size - 1;
                        struct collective c;
                        if (kind > COLLECTIVE_REDUCE_SCATTER && combiner > COLLECTIVE_PRODUCT)
                            continue;
                        if (sizes[s] > 1000 && (dtype != JOT_F64 || m % 3))
                            continue;
                        if (kind == COLLECTIVE_ALL_TO_ALL && sizes[s] % (size_t)size)
                            continue;
                        if (collective_read(params, n, meshes[m].rank, meshes[m].mesh, &c))
                            continue;
                        check_collective(params, n, meshes[m].rank, meshes[m].mesh, sizes[s],
                                         false);
                        if (kind == COLLECTIVE_ALL_REDUCE)
                            check_collective(params, n, meshes[m].rank, meshes[m].mesh,
                                             sizes[s], true);
                    }
}
END_TEST

// Not a number wins, -0 is less than 0, and sums of halves are rounded once.
START_TEST(combines_as_operations_do)
{
    int64_t mesh[] = {3}, params[] = {COLLECTIVE_ALL_REDUCE, COLLECTIVE_MAX, JOT_F32, 1, 0};
    float x[3][4] = {{-0.0f, 1, NAN, 5}, {0.0f, NAN, 1, 7}, {-0.0f, 3, 2, 6}}, y[3][4];
    void *to[] = {y[0], y[1], y[2]};
    const void *from[] = {x[0], x[1], x[2]};
    struct rt_blocks group = {to, from};
    struct collective c;
    for (int is_min = 0; is_min < 2; is_min++) {
        params[1] = is_min ? COLLECTIVE_MIN : COLLECTIVE_MAX;
        ck_assert_ptr_null(collective_read(params, 5, 1, mesh, &c));
        rt_collective_run(&c, 1, &group, sizeof x[0], sizeof x[0]);
        for (int d = 0; d < 3; d++) {
            ck_assert_int_eq(signbit(y[d][0]) != 0, is_min);
            ck_assert(isnan(y[d][1]) && isnan(y[d][2]));
            ck_assert(y[d][3] == (is_min ? 5 : 7));
        }
    }
    uint16_t h[3] = {dtype_f16_from_f64(2048), dtype_f16_from_f64(1), dtype_f16_from_f64(1)},
             sum[3];
    params[1] = COLLECTIVE_SUM, params[2] = JOT_F16;
    ck_assert_ptr_null(collective_read(params, 5, 1, mesh, &c));
    rt_collective_run(&c, 1,
                      &(struct rt_blocks){(void *[]){&sum[0], &sum[1], &sum[2]},
                                          (const void *[]){&h[0], &h[1], &h[2]}},
                      2, 2);
    ck_assert(sum[0] == dtype_f16_from_f64(2050) && sum[1] == sum[0] && sum[2] == sum[0]);
}
END_TEST

// ---- the host ----

static void spill(const char *directory, const char *name, const char *text)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

// Nodes as Linux tells of them: one with two CPUs of the process, one with others, one without.
START_TEST(reads_nodes)
{
    char directory[] = "/tmp/jot-nodes-XXXXXX", path[300], list[40];
    static cpu_set_t nodes[RT_NODES_MOST];
    cpu_set_t allowed;
    int first = 0;
    ck_assert_int_eq(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    while (!CPU_ISSET(first, &allowed))
        first++;
    ck_assert_ptr_nonnull(mkdtemp(directory));
    ck_assert_int_eq(rt_nodes_read(directory, nodes), 0);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/node%d", directory, i);
        ck_assert_int_eq(mkdir(path, 0700), 0);
    }
    snprintf(list, sizeof list, "%d-%d,1000-1001\n", first, first + 1);
    spill(directory, "online", "0-2\n");
    spill(directory, "node0/cpulist", list);
    spill(directory, "node1/cpulist", "1020,1022-1023\n");
    spill(directory, "node2/cpulist", "\n");
    ck_assert_int_eq(rt_nodes_read(directory, nodes), 1);
    ck_assert(CPU_ISSET(first, &nodes[0]) && !CPU_ISSET(1000, &nodes[0]));
}
END_TEST

// ---- programs ----

// y = x summed over the mesh so many times over, by a loop, of devices whose flag, the second input, says that they
// take part.
static const struct rt_plan *make_sum(struct team_plan *p, int64_t devices, uint64_t n,
                                      int64_t trips)
{
    plan_open(p, 1, &devices, n);
    p->in[1] = (struct rt_argument){.bytes = 1, .donated = -1};
    p->plan.input_count = 2;
    uint32_t flag =
        plan_buffer(p, (struct rt_buffer){.memory = RT_MEMORY_INPUT, .index = 1, .bytes = 1});
    plan_copy(p, 1, 0);
    struct rt_step *jump = plan_step(p, (struct rt_step){.kind = RT_STEP_JUMP_IFN}, 1, flag, 0);
    plan_loop(p, trips);
    plan_sum(p, 1, 1, COLLECTIVE_SUM, 0);
    plan_next(p);
    jump->target = p->plan.step_count;
    return &p->plan;
}

static jot_status load_team(const struct rt_plan *plan, uint32_t devices, struct rt_team **out)
{
    struct arena *arena = arena_create();
    jot_device *all[64];
    const void *bytes;
    size_t size;
    OK(jot_set_host_devices((int)devices));
    for (uint32_t d = 0; d < devices; d++)
        all[d] = jot_host_device((int)d);
    rt_plan_write(plan, arena, &bytes, &size);
    jot_status status = rt_team_load(all, devices, NULL, NULL, 0, bytes, size, NULL, 0, out);
    arena_release(arena);
    return status;
}

struct sum_run {
    struct rt_team *team;
    uint32_t devices;
    size_t n;
    float *x, *y;
    bool flags[64];
    const void *inputs[128];
    void *outputs[64];
};

static void open_sum(struct sum_run *r, uint32_t devices, size_t n, int64_t trips)
{
    struct team_plan p;
    *r = (struct sum_run){.devices = devices, .n = n};
    OK(load_team(make_sum(&p, devices, n, trips), devices, &r->team));
    r->x = malloc(devices * n * sizeof(float));
    r->y = malloc(devices * n * sizeof(float));
    for (uint32_t d = 0; d < devices; d++) {
        r->flags[d] = true;
        r->inputs[2 * d] = r->x + d * n;
        r->inputs[2 * d + 1] = &r->flags[d];
        r->outputs[d] = r->y + d * n;
        for (size_t i = 0; i < n; i++)
            r->x[d * n + i] = (float)(d + i) / 7.0f;
    }
}

static void close_sum(struct sum_run *r)
{
    rt_team_release(r->team);
    free(r->x);
    free(r->y);
}

START_TEST(runs_devices_together)
{
    const uint32_t counts[] = {1, 2, 3, 4, 8, 33};
    const size_t sizes[] = {1, 1000, 50000};
    for (size_t k = 0; k < COUNT(counts); k++)
        for (size_t s = 0; s < COUNT(sizes); s++) {
            struct sum_run r;
            open_sum(&r, counts[k], sizes[s], 2);
            float *first = malloc(r.devices * r.n * sizeof(float));
            for (int threads = 1; threads < 4; threads++) {
                OK(jot_set_threads(threads));
                memset(r.y, 0, r.devices * r.n * sizeof(float));
                OK(rt_team_run(r.team, r.inputs, r.outputs));
                if (threads == 1)
                    memcpy(first, r.y, r.devices * r.n * sizeof(float));
                ck_assert(!memcmp(first, r.y, r.devices * r.n * sizeof(float)));
            }
            double most = 0;
            for (size_t i = 0; i < r.n; i++) {
                double sum = 0;
                for (uint32_t d = 0; d < r.devices; d++)
                    sum += (double)r.x[d * r.n + i];
                for (uint32_t d = 0; d < r.devices; d++)
                    most = fmax(most, fabs((double)r.y[d * r.n + i] / (r.devices * sum) - 1));
            }
            ck_assert_msg(most < 1e-5, "off by %g", most);
            free(first);
            close_sum(&r);
        }
}
END_TEST

// Devices that do not come to a collective that others wait at.
START_TEST(names_who_is_missing)
{
    struct sum_run r;
    open_sum(&r, 4, 10, 3);
    r.flags[2] = false;
    expect(rt_team_run(r.team, r.inputs, r.outputs), JOT_ERR_ARGUMENT,
           "host:0 has come to the collective the sum at here.c:3, and host:2 has not");
    r.flags[2] = true;
    OK(rt_team_run(r.team, r.inputs, r.outputs));
    for (int d = 0; d < 4; d++)
        r.flags[d] = false;
    OK(rt_team_run(r.team, r.inputs, r.outputs));
    close_sum(&r);
}
END_TEST

START_TEST(wants_the_devices_of_its_mesh)
{
    struct team_plan p;
    struct rt_team *team;
    make_sum(&p, 4, 10, 3);
    expect(load_team(&p.plan, 3, &team), JOT_ERR_ARGUMENT, "one of 4 devices");
    p.params[4] = 2;
    ck_assert_int_eq(rt_plan_check(&p.plan), JOT_ERR_IO);
    make_sum(&p, 4, 10, 3);
    p.params[1] = COLLECTIVE_ALL_GATHER;
    ck_assert_int_eq(rt_plan_check(&p.plan), JOT_ERR_IO);
    make_sum(&p, 0, 10, 3);
    ck_assert_int_eq(rt_plan_check(&p.plan), JOT_ERR_IO);
    // Nor does one device run it.
    struct arena *arena = arena_create();
    struct rt_program *program;
    const void *bytes;
    size_t size;
    float x[10] = {0}, y[10];
    bool flag = true;
    rt_plan_write(make_sum(&p, 4, 10, 3), arena, &bytes, &size);
    OK(rt_program_load(jot_host(), NULL, 0, bytes, size, NULL, 0, &program));
    expect(rt_program_run(program, (const void *[]){x, &flag}, (void *[]){y}), JOT_ERR_ARGUMENT,
           "4 devices");
    rt_program_release(program);
    arena_release(arena);
}
END_TEST

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

// Eight devices that share the cores there are: what a call and a sum of scalars cost.  Printed; the
// machine may be busy.
START_TEST(says_what_it_costs)
{
    double best[2] = {1e9, 1e9};
    for (int many = 0; many < 2; many++) {
        struct sum_run r;
        open_sum(&r, 8, 1, many ? 1000 : 1);
        for (int i = 0; i < 200; i++) {
            double start = now();
            OK(rt_team_run(r.team, r.inputs, r.outputs));
            double took = now() - start;
            best[many] = took < best[many] ? took : best[many];
        }
        close_sum(&r);
    }
    printf("8 devices on %d threads: a call %.2f us, a sum of scalars %.2f us\n", jot_threads(),
           best[0], (best[1] - best[0]) / 999);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, does_every_collective);
    tcase_add_test(tests, combines_as_operations_do);
    tcase_add_test(tests, reads_nodes);
    tcase_add_test(tests, runs_devices_together);
    tcase_add_test(tests, names_who_is_missing);
    tcase_add_test(tests, wants_the_devices_of_its_mesh);
    tcase_add_test(tests, says_what_it_costs);
}

int main(void) { return suite_run("team", add); }
