// SPDX-License-Identifier: Apache-2.0
// Several processes of one machine, which meet by shared memory instead of MPI: what they do together against one
// process that does it alone, and what becomes of the others when one dies, stops, leaves or does something else.
#include "base/arena.h"
#include "base/dtype.h"
#include "base/memory.h"
#include "runtime/array.h"
#include "runtime/distributed/job.h"
#include "runtime/host/combine.h"
#include "runtime/mesh.h"
#include "runtime/team.h"
#include "support/suite.h"

#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 8

// What the processes of a job leave behind, in memory that all have.
static struct shared {
    atomic_int met;
    atomic_int at; // another one has come to its point of the test
    struct address addresses[MOST];
    _Atomic int64_t fell; // when the victim died or stopped
    struct outcome {
        jot_status status;
        char message[FAILURE_BYTES];
        int64_t when;
    } outcome[MOST];
} *shared;

struct test {
    int count;
    jot_distributed_options options;
    void (*body)(int index, const void *ctx);
    const void *ctx;
    bool has_strangers;
    int absent; // does not start; 0: none
};

// ---- a job ----

// Somebody who is not of the job connects: silent, with nonsense, and as another process.
static void disturb(const struct address *a)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons(a->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    static const char nonsense[200] = "GET / HTTP/1.0";
    for (int i = 0; i < 3; i++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        ck_assert_int_eq(connect(fd, (struct sockaddr *)(void *)&at, sizeof at), 0);
        if (i)
            ck_assert_int_eq(send(fd, nonsense, sizeof nonsense, MSG_NOSIGNAL),
                             sizeof nonsense);
        close(fd);
    }
}

struct place {
    const struct test *test;
    int index;
};

static const char *meet(void *ctx, const void *own, size_t bytes, int *out_index,
                        int *out_count, void **out_all)
{
    const struct place *p = ctx;
    int count = p->test->count;
    ck_assert_uint_eq(bytes, sizeof *shared->addresses);
    memcpy(&shared->addresses[p->index], own, bytes);
    if (p->test->has_strangers)
        disturb(&shared->addresses[p->index]);
    atomic_fetch_add(&shared->met, 1);
    while (atomic_load(&shared->met) < count - (p->test->absent > 0))
        usleep(200);
    if (p->test->absent)
        shared->addresses[p->test->absent] = (struct address){.port = 1};
    memcpy(shared->addresses[p->test->absent].build, shared->addresses[0].build,
           sizeof shared->addresses->build);
    *out_index = p->index, *out_count = count;
    *out_all = memory_allocate((size_t)count * bytes);
    memcpy(*out_all, shared->addresses, (size_t)count * bytes);
    return NULL;
}

static void note(int index, jot_status status)
{
    struct outcome *o = &shared->outcome[index];
    o->when = clock_ns();
    o->status = status;
    snprintf(o->message, sizeof o->message, "%s", status == JOT_OK ? "" : jot_error_message());
}

static void run_process(const struct test *t, int index)
{
    struct place place = {t, index};
    alarm(120);
    jot_status status = rt_distributed_join(&t->options, meet, &place);
    note(index, status);
    if (status == JOT_OK) {
        ck_assert_int_eq(jot_process_index(), index);
        ck_assert_int_eq(jot_process_count(), t->count);
        t->body(index, t->ctx);
    }
    exit(0);
}

static pid_t pids[MOST];

static void start(const struct test *t)
{
    shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(shared, MAP_FAILED);
    for (int i = 0; i < t->count; i++) {
        pids[i] = 0;
        if (t->absent && i == t->absent)
            continue;
        pids[i] = fork();
        ck_assert_int_ge(pids[i], 0);
        if (pids[i] == 0)
            run_process(t, i);
    }
}

// All end by themselves, with 0 but the one that died.
static void finish(const struct test *t, int victim)
{
    for (int i = 0; i < t->count; i++) {
        int how;
        if (!pids[i])
            continue;
        ck_assert_int_eq(waitpid(pids[i], &how, 0), pids[i]);
        if (i == victim)
            ck_assert(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
        else
            ck_assert_msg(WIFEXITED(how) && WEXITSTATUS(how) == 0, "process %d: %x, %s", i, how,
                          shared->outcome[i].message);
    }
    ck_assert_int_eq(waitpid(-1, NULL, 0), -1); // no child is left
}

static void run(const struct test *t)
{
    start(t);
    finish(t, -1);
}

static void all_are(const struct test *t, int but, jot_status status, const char *a,
                    const char *b)
{
    for (int i = 0; i < t->count; i++) {
        const struct outcome *o = &shared->outcome[i];
        if (i == but)
            continue;
        ck_assert_msg(o->status == status && strstr(o->message, a) && strstr(o->message, b),
                      "process %d: %s, '%s' does not have '%s' and '%s'", i,
                      jot_status_name(o->status), o->message, a, b);
    }
}

// ---- collectives ----

enum kind {
    ALL_GATHER,
    ALL_TO_ALL,
    PERMUTE,
    BROADCAST,
    REDUCE_SCATTER,
    ALL_REDUCE,
    BARRIER,
    KINDS
};

struct shape {
    struct rt_combine combine;
    size_t elements;
};

static size_t element_of(const struct shape *s) { return dtype_get(s->combine.dtype)->bytes; }

static size_t blocks_read(enum kind kind, size_t n)
{
    return kind == ALL_TO_ALL || kind == REDUCE_SCATTER ? n : 1;
}

static size_t blocks_written(enum kind kind, size_t n)
{
    return kind == ALL_TO_ALL || kind == ALL_GATHER ? n : 1;
}

// Small numbers whose sums and products are rounded in all float types.
static void fill(jot_dtype d, int64_t member, size_t n, void *out)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t r = hash_mix((uint64_t)member << 32 | i);
        float x = 0.7f + (float)(r % 1000) * 0.001f;
        double y = 0.7 + (double)(r % 1000) * 0.001;
        switch (d) {
        case JOT_F16:
            ((uint16_t *)out)[i] = dtype_f16_from_f32(x);
            break;
        case JOT_BF16:
            ((uint16_t *)out)[i] = dtype_bf16_from_f32(x);
            break;
        case JOT_F32:
        case JOT_C64:
            for (size_t k = 0; k <= (d == JOT_C64); k++)
                ((float *)out)[d == JOT_C64 ? 2 * i + k : i] = x - (float)k;
            break;
        case JOT_F64:
        case JOT_C128:
            for (size_t k = 0; k <= (d == JOT_C128); k++)
                ((double *)out)[d == JOT_C128 ? 2 * i + k : i] = y - (double)k;
            break;
        case JOT_BOOL:
            ((unsigned char *)out)[i] = r & 1;
            break;
        default:
            memcpy((char *)out + i * dtype_get(d)->bytes, &r, dtype_get(d)->bytes);
        }
    }
}

// Who gives what to member `to`; -1: nobody.
static int64_t source_of(int64_t to, int64_t n) { return to == 1 ? -1 : (to * 3 + 2) % n; }
static int64_t root_of(int64_t n) { return n / 2; }

// What member `to` gets: the definition.
static void expect(enum kind kind, int64_t n, const struct shape *s, int64_t to,
                   unsigned char *out)
{
    size_t bytes = s->elements * element_of(s), read = blocks_read(kind, (size_t)n) * bytes;
    unsigned char *all = malloc((size_t)n * read + 1);
    const void *blocks[64];
    int64_t from = kind == PERMUTE ? source_of(to, n) : root_of(n);
    size_t part = kind == REDUCE_SCATTER ? (size_t)to * bytes : 0;
    for (int64_t k = 0; k < n; k++) {
        fill(s->combine.dtype, k, read / element_of(s), all + (size_t)k * read);
        blocks[k] = all + (size_t)k * read + part;
    }
    for (int64_t k = 0; k < n && (kind == ALL_TO_ALL || kind == ALL_GATHER); k++)
        memcpy(out + (size_t)k * bytes,
               all + (size_t)k * read + (kind == ALL_TO_ALL ? (size_t)to * bytes : 0), bytes);
    if (kind == PERMUTE || kind == BROADCAST)
        from < 0 ? memset(out, 0, bytes) : memcpy(out, all + (size_t)from * read, bytes);
    for (size_t i = 0; i < s->elements && (kind == REDUCE_SCATTER || kind == ALL_REDUCE); i++)
        host_combine(s->combine.combiner, s->combine.dtype, (size_t)n, blocks, i, i + 1, 1,
                     (void *[]){out}, i);
    free(all);
}

static jot_status do_one(enum kind kind, const struct rt_group *g, const struct shape *s,
                         const void *const *from, void *const *to)
{
    int64_t sources[64];
    size_t bytes = s->elements * element_of(s);
    for (int64_t i = 0; i < g->count; i++)
        sources[i] = source_of(i, g->count);
    switch (kind) {
    case ALL_GATHER:
        return rt_distributed_all_gather(g, "here", bytes, from, to);
    case ALL_TO_ALL:
        return rt_distributed_all_to_all(g, "here", bytes, from, to);
    case PERMUTE:
        return rt_distributed_permute(g, "here", bytes, sources, from, to);
    case BROADCAST:
        return rt_distributed_broadcast(g, "here", bytes, root_of(g->count), to);
    case REDUCE_SCATTER:
        return rt_distributed_reduce_scatter(g, "here", bytes, &s->combine, from, to);
    case ALL_REDUCE:
        return rt_distributed_all_reduce(g, "here", bytes, &s->combine, from, to);
    default:
        return rt_distributed_barrier(g, "here");
    }
}

// In place where that is allowed.
static void check_one(int index, enum kind kind, const struct rt_group *g,
                      const struct shape *s)
{
    size_t bytes = s->elements * element_of(s), n = (size_t)g->count;
    size_t read = blocks_read(kind, n) * bytes, written = blocks_written(kind, n) * bytes;
    const void *from[64] = {0};
    void *to[64] = {0};
    int64_t member[64];
    int own = 0;
    for (int64_t i = 0; i < g->count; i++) {
        if (g->process[i] != index)
            continue;
        unsigned char *block = malloc(read + 1);
        fill(s->combine.dtype, i, read / element_of(s), block);
        from[own] = block;
        to[own] = kind == BROADCAST || kind == ALL_REDUCE ? block : malloc(written + 1);
        member[own++] = i;
    }
    jot_status status = do_one(kind, g, s, from, to);
    ck_assert_msg(status == JOT_OK, "%s", jot_error_message());
    unsigned char *right = malloc(written + 1);
    for (int k = 0; k < own; k++) {
        expect(kind, g->count, s, member[k], right);
        ck_assert_msg(kind == BARRIER || !memcmp(to[k], right, written),
                      "kind %d, %zu of %s, combiner %d, member %d of %d", (int)kind,
                      s->elements, dtype_get(s->combine.dtype)->name, (int)s->combine.combiner,
                      (int)member[k], (int)g->count);
        if (to[k] != from[k])
            free(to[k]);
        free((void *)(uintptr_t)from[k]);
    }
    free(right);
}

static bool can_combine(enum collective_combiner combiner, jot_dtype dtype)
{
    struct collective c;
    int64_t mesh = 1;
    return !collective_read((int64_t[]){COLLECTIVE_ALL_REDUCE, combiner, dtype, 1, 0}, 5, 1,
                            &mesh, &c);
}

// Every type by every combiner, and every kind of collective.
static void check_types(int index, const void *ctx)
{
    static const int each[] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct rt_group g = {8, each};
    (void)ctx;
    for (int d = 0; d < DTYPE_COUNT; d++)
        for (int combiner = 0; combiner < COLLECTIVE_COMBINER_COUNT; combiner++)
            for (int kind = 0; kind < KINDS; kind++) {
                struct shape s = {{(enum collective_combiner)combiner, (jot_dtype)d}, 1027};
                bool combines = kind == REDUCE_SCATTER || kind == ALL_REDUCE;
                if (combines ? can_combine(s.combine.combiner, s.combine.dtype) : combiner == 0)
                    check_one(index, (enum kind)kind, &g, &s);
            }
    note(index, JOT_OK);
}

START_TEST(test_types)
{
    struct test t = {.count = 8, .body = check_types};
    run(&t);
    all_are(&t, -1, JOT_OK, "", "");
}
END_TEST

static void check_all(int index, const void *ctx)
{
    // One each; several; some; in another order; all on one.
    static const int each[] = {0, 1, 2, 3, 4, 5, 6, 7}, twice[] = {0, 0, 1, 1, 2, 2, 3, 3},
                     mixed[] = {5, 2, 5, 0, 2, 7, 5}, some[] = {6, 1, 3}, two[] = {4, 2},
                     one[] = {3, 3, 3};
    const struct rt_group groups[] = {{8, each}, {8, twice}, {7, mixed},
                                      {3, some}, {2, two},   {3, one}};
    static const size_t elements[] = {0, 1, 3, 1000, 40001};
    static const jot_dtype dtypes[] = {JOT_U8, JOT_BF16, JOT_F32, JOT_F64, JOT_C128};
    (void)ctx;
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        for (int kind = 0; kind < KINDS; kind++)
            for (size_t k = 0; k < sizeof elements / sizeof *elements; k++) {
                struct shape s = {{COLLECTIVE_SUM, dtypes[(i + (size_t)kind + k) % 5]},
                                  elements[k]};
                check_one(index, (enum kind)kind, &groups[i], &s);
            }
    note(index, JOT_OK);
}

START_TEST(test_collectives)
{
    struct test t = {.count = 8, .body = check_all};
    run(&t);
    all_are(&t, -1, JOT_OK, "", "");
}
END_TEST

// More than any buffer of a socket, from everybody to everybody.
static void check_large(int index, const void *ctx)
{
    struct rt_group all = rt_distributed_all();
    (void)ctx;
    for (int kind = 0; kind < BARRIER; kind++)
        check_one(index, (enum kind)kind, &all,
                  &(struct shape){{COLLECTIVE_SUM, JOT_F64}, 500000});
    note(index, JOT_OK);
}

START_TEST(test_large)
{
    struct test t = {.count = 3, .body = check_large};
    run(&t);
    all_are(&t, -1, JOT_OK, "", "");
}
END_TEST

static void check_arrays(int index, const void *ctx)
{
    (void)ctx;
    for (int d = 0; d < DTYPE_COUNT; d++) {
        jot_array *own =
            jot_array_fill((jot_dtype)d, index % 2, (const int64_t[]){2, 3, JOT_END});
        jot_array *all = jot_process_all_gather(own), *first = jot_process_broadcast(own, 1);
        ck_assert_msg(all && first, "%s", jot_error_message());
        ck_assert_int_eq(jot_array_rank(all), 3);
        ck_assert_int_eq(jot_array_dim(all, 0), jot_process_count());
        for (int i = 0; i < jot_process_count(); i++) {
            const char *row =
                (const char *)jot_array_data(all) + (size_t)i * jot_array_bytes(own);
            ck_assert_double_eq(rt_element_to_f64((jot_dtype)d, row), i % 2);
        }
        ck_assert_double_eq(rt_element_to_f64((jot_dtype)d, jot_array_data(first)), 1);
        jot_array_release(own);
        jot_array_release(all);
        jot_array_release(first);
    }
    ck_assert_int_eq(jot_process_barrier(), JOT_OK);
    note(index, JOT_OK);
}

START_TEST(test_arrays)
{
    struct test t = {.count = 4, .body = check_arrays, .has_strangers = true};
    run(&t);
    all_are(&t, -1, JOT_OK, "", "");
}
END_TEST

// ---- devices of all ----

#define PARTS 2 // of the host, in each process
#define ROW 5   // elements of a piece

static jot_mesh *mesh_of(size_t n_axes, const jot_mesh_axis *axes)
{
    jot_mesh *mesh = jot_mesh_of_kind(JOT_HOST, n_axes, axes);
    ck_assert_msg(mesh != NULL, "%s", jot_error_message());
    return mesh;
}

// Rows of numbers by device, as one array.
static jot_array *make_rows(size_t n)
{
    float x[64 * ROW];
    fill(JOT_F32, 3, n * ROW, x);
    return jot_array_copy(JOT_F32, x, (const int64_t[]){(int64_t)n * ROW, JOT_END});
}

static bool is_same(const jot_array *a, const jot_array *b)
{
    const void *x = jot_array_data(a), *y = jot_array_data(b);
    ck_assert_msg(x && y, "%s", jot_error_message());
    return jot_array_bytes(a) == jot_array_bytes(b) && !memcmp(x, y, jot_array_bytes(a));
}

static void check_pieces(int index, const void *ctx)
{
    (void)ctx;
    ck_assert_int_eq(jot_set_host_devices(PARTS), JOT_OK);
    jot_mesh *m = mesh_of(1, (const jot_mesh_axis[]){{"i", 0}});
    size_t n = (size_t)jot_process_count() * PARTS;
    ck_assert_uint_eq(jot_mesh_size(m), n);
    ck_assert_ptr_eq(jot_mesh_device(m, (size_t)index * PARTS + 1), jot_host_device(1));
    ck_assert_ptr_eq(jot_mesh_device(m, 0), jot_process_device(0, JOT_HOST, 0));
    jot_array *a = make_rows(n), *s = jot_array_shard(a, m, "i"), *pieces[2 * MOST] = {0};
    for (size_t i = 0; i < n; i++) {
        jot_array *piece = jot_array_shard_on(s, i);
        ck_assert_int_eq(jot_device_process(jot_mesh_device(m, i)), (int)i / PARTS);
        ck_assert_int_eq(jot_array_dim(piece, 0), ROW);
        const float *got = jot_array_data(piece), *all = jot_array_data(a);
        if ((int)i / PARTS == index) {
            ck_assert_int_eq(memcmp(got, all + i * ROW, ROW * sizeof *all), 0);
            pieces[i] = jot_array_retain(piece);
        } else {
            ck_assert_ptr_null(got);
            ck_assert_ptr_nonnull(strstr(jot_error_message(), "is a device of process"));
        }
        jot_array_release(piece);
    }
    ck_assert_ptr_null(jot_array_data(s));
    jot_array *again = jot_array_from_shards(m, "i", n, pieces);
    ck_assert_msg(again != NULL, "%s", jot_error_message());
    jot_array *whole = jot_process_all_gather(again), *copies = jot_array_shard(a, m, "");
    ck_assert_msg(whole && copies, "%s", jot_error_message());
    ck_assert(is_same(whole, a) && is_same(copies, a));
    // From copies any other form is made of what is here; from pieces it is not.
    jot_array *split = jot_array_shard(copies, m, "i"), *both = jot_process_all_gather(split);
    ck_assert(both && is_same(both, a));
    ck_assert_ptr_null(jot_array_shard(s, m, ""));
    jot_arrays_release(n, pieces);
    jot_array *made[] = {a, s, again, whole, copies, split, both};
    jot_arrays_release(sizeof made / sizeof *made, made);
    note(index, JOT_OK);
}

START_TEST(test_pieces)
{
    struct test t = {.count = 4, .body = check_pieces};
    run(&t);
    all_are(&t, -1, JOT_OK, "", "");
}
END_TEST

// y = the collective of x over one axis of a mesh of two, so many times.
struct plan {
    struct rt_plan plan;
    struct rt_argument in, out;
    struct rt_buffer buffers[2];
    uint32_t operands[4];
    struct rt_step steps[4];
    int64_t params[7];
};

static const char plan_text[] = "sums\0the sum at here.c:3";

static const struct rt_plan *make_plan(struct plan *p, int64_t rows, int64_t columns, int axis,
                                       int64_t trips)
{
    uint64_t bytes = ROW * sizeof(float);
    *p = (struct plan){
        .in = {.bytes = bytes, .donated = -1},
        .out = {.bytes = bytes, .donated = -1},
        .buffers = {{.place = RT_PLACE_INPUT, .bytes = bytes},
                    {.place = RT_PLACE_OUTPUT, .bytes = bytes}},
        .operands = {1, 0, 1, 1},
        .steps = {{.kind = RT_STEP_COPY, .operand_count = 2, .grain = 1},
                  {.kind = RT_STEP_LOOP, .total = trips, .target = 4},
                  {.kind = RT_STEP_COLLECTIVE,
                   .name = 5,
                   .operand_first = 2,
                   .operand_count = 2,
                   .param_first = 2,
                   .param_count = 5},
                  {.kind = RT_STEP_NEXT, .total = trips, .target = 2}},
        .params = {rows, columns, COLLECTIVE_ALL_REDUCE, COLLECTIVE_SUM, JOT_F32, 1, axis}};
    p->plan = (struct rt_plan){.input_count = 1,
                               .output_count = 1,
                               .buffer_count = 2,
                               .operand_count = 4,
                               .step_count = 4,
                               .param_count = 7,
                               .text_bytes = sizeof plan_text,
                               .loop_count = 1,
                               .mesh_rank = 2,
                               .inputs = &p->in,
                               .outputs = &p->out,
                               .buffers = p->buffers,
                               .operands = p->operands,
                               .params = p->params,
                               .steps = p->steps,
                               .text = plan_text};
    return &p->plan;
}

static jot_status load_team(const jot_mesh *m, int axis, int64_t trips, struct rt_team **out)
{
    struct plan p;
    struct arena *arena = arena_create();
    jot_device *devices[2 * MOST];
    const void *bytes;
    size_t size, n = jot_mesh_size(m);
    for (size_t i = 0; i < n; i++)
        devices[i] = jot_mesh_device(m, i);
    rt_plan_write(
        make_plan(&p, jot_mesh_axis_size(m, "x"), jot_mesh_axis_size(m, "y"), axis, trips),
        arena, &bytes, &size);
    jot_status status = rt_team_load(devices, (uint32_t)n, NULL, 0, bytes, size, NULL, 0, out);
    arena_release(arena);
    return status;
}

// One program of all against its definition, with groups in a process, across, and both.
static void run_team(int index, const void *ctx)
{
    static const int64_t shapes[][3] = {{4, 2, 0}, {4, 2, 1}, {2, 4, 0}, {2, 4, 1}, {1, 8, 1}};
    (void)ctx;
    ck_assert_int_eq(jot_set_host_devices(PARTS), JOT_OK);
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        int64_t rows = shapes[k][0], columns = shapes[k][1];
        jot_mesh *m = mesh_of(2, (const jot_mesh_axis[]){{"x", rows}, {"y", columns}});
        struct rt_team *team;
        float x[8][ROW], y[8][ROW], right[8][ROW];
        const void *inputs[8];
        void *outputs[8];
        jot_status status = load_team(m, (int)shapes[k][2], 2, &team);
        ck_assert_msg(status == JOT_OK, "%s", jot_error_message());
        for (int d = 0; d < 8; d++) {
            fill(JOT_F32, d, ROW, x[d]);
            memcpy(right[d], x[d], sizeof right[d]);
            inputs[d] = x[d];
            outputs[d] = y[d];
        }
        for (int trip = 0; trip < 2; trip++) {
            float before[8][ROW];
            memcpy(before, right, sizeof before);
            for (int64_t d = 0; d < 8; d++) {
                const void *group[8];
                size_t n = 0;
                for (int64_t e = 0; e < 8; e++)
                    if (shapes[k][2] ? e / columns == d / columns : e % columns == d % columns)
                        group[n++] = before[e];
                host_combine(COLLECTIVE_SUM, JOT_F32, n, group, 0, ROW, 1, (void *[]){right[d]},
                             0);
            }
        }
        for (int turn = 0; turn < 3; turn++) {
            memset(y, 0, sizeof y);
            status = rt_team_run(team, inputs, outputs);
            ck_assert_msg(status == JOT_OK, "%s", jot_error_message());
            for (int d = index * PARTS; d < (index + 1) * PARTS; d++)
                ck_assert_msg(!memcmp(y[d], right[d], sizeof y[d]), "device %d of mesh %zu", d,
                              k);
        }
        rt_team_release(team);
    }
    note(index, JOT_OK);
}

START_TEST(test_team)
{
    struct test t = {.count = 4, .body = run_team};
    run(&t);
    all_are(&t, -1, JOT_OK, "", "");
}
END_TEST

// ---- failures ----

#define VICTIM 3

struct fall {
    enum kind kind;
    int signal;
    size_t elements;
};

// All repeat one thing until the victim falls in the middle of it: on the thread that does nothing else.
static void *fall_soon(void *ctx)
{
    const struct fall *f = ctx;
    usleep(20000);
    atomic_store(&shared->fell, clock_ns());
    raise(f->signal);
    return NULL;
}

static void repeat(int index, const void *ctx)
{
    const struct fall *f = ctx;
    struct rt_group all = rt_distributed_all();
    size_t bytes = f->elements * 8 * MOST;
    unsigned char *a = calloc(bytes, 1), *b = calloc(bytes, 1);
    const void *from = a;
    void *to = f->kind == BROADCAST || f->kind == ALL_REDUCE ? a : b;
    jot_array *kept = jot_array_fill(JOT_F64, index, (const int64_t[]){3, JOT_END});
    pthread_t thread;
    if (index == VICTIM)
        ck_assert_int_eq(pthread_create(&thread, NULL, fall_soon, (void *)(uintptr_t)f), 0);
    jot_status status;
    do
        status = do_one(f->kind, &all, &(struct shape){{COLLECTIVE_SUM, JOT_F64}, f->elements},
                        &from, &to);
    while (status == JOT_OK);
    note(index, status);
    // For good, at once, and of the same kind.
    ck_assert_int_eq(jot_distributed_check(), status);
    ck_assert_int_eq(rt_distributed_barrier(&all, "after"), status);
    ck_assert_double_eq(*(const double *)jot_array_data(kept), index);
    jot_array_release(kept);
    free(a);
    free(b);
    if (index % 2)
        jot_distributed_stop();
    if (index == VICTIM)
        pthread_join(thread, NULL);
}

static void check_fall(const struct test *t, double limit, const char *how)
{
    char name[64];
    snprintf(name, sizeof name, "process %d of %d (", VICTIM, t->count);
    all_are(t, VICTIM, JOT_ERR_DEVICE, name, how);
    for (int i = 0; i < t->count; i++) {
        double after = (double)(shared->outcome[i].when - atomic_load(&shared->fell)) * 1e-9;
        ck_assert_msg(i == VICTIM || after < limit, "process %d knows after %g s", i, after);
    }
}

START_TEST(test_death)
{
    struct fall f = {.kind = (enum kind)(_i % KINDS),
                     .signal = SIGKILL,
                     .elements = _i < KINDS ? 3 : 100000};
    struct test t = {.count = 8, .body = repeat, .ctx = &f};
    start(&t);
    finish(&t, VICTIM);
    check_fall(&t, 10, "has died");
}
END_TEST

START_TEST(test_stopped)
{
    struct fall f = {.kind = (enum kind)_i, .signal = SIGSTOP, .elements = 1000};
    struct test t = {.count = 8, .body = repeat, .ctx = &f, .options.silence_seconds = 2};
    int how;
    start(&t);
    ck_assert_int_eq(waitpid(pids[VICTIM], &how, WUNTRACED), pids[VICTIM]);
    ck_assert(WIFSTOPPED(how));
    // The others end while it still stands.
    for (int i = 0; i < t.count; i++)
        if (i != VICTIM)
            ck_assert_int_eq(waitid(P_PID, (id_t)pids[i], NULL, WEXITED | WNOWAIT), 0);
    check_fall(&t, 2, "has not been heard of for");
    // It learns what was said of it.
    kill(pids[VICTIM], SIGCONT);
    finish(&t, -1);
    ck_assert_int_eq(shared->outcome[VICTIM].status, JOT_ERR_DEVICE);
}
END_TEST

static void load_other(int index, const void *ctx)
{
    struct rt_team *team = NULL;
    (void)ctx;
    jot_mesh *m = mesh_of(2, (const jot_mesh_axis[]){{"x", 0}, {"y", 1}});
    note(index, load_team(m, 0, index == 3 ? 4 : 3, &team));
    ck_assert_int_eq(jot_process_barrier(), JOT_OK);
    ck_assert_int_eq(load_team(m, 0, 3, &team), JOT_OK);
    rt_team_release(team);
}

START_TEST(test_other_team)
{
    struct test t = {.count = 4, .body = load_other};
    run(&t);
    all_are(&t, -1, JOT_ERR_CHECK, "process 0 of 4", "and process 3 of 4");
}
END_TEST

// One dies while all are inside of a program.
static void run_until(int index, const void *ctx)
{
    struct rt_team *team;
    float x[ROW] = {1}, y[ROW];
    const void *inputs[] = {x, x, x, x};
    void *outputs[] = {y, y, y, y};
    (void)ctx;
    jot_mesh *m = mesh_of(2, (const jot_mesh_axis[]){{"x", 0}, {"y", 1}});
    ck_assert_int_eq(load_team(m, 0, 1000000000, &team), JOT_OK);
    pthread_t thread;
    if (index == 3)
        ck_assert_int_eq(pthread_create(&thread, NULL, fall_soon, (void *)(uintptr_t)ctx), 0);
    note(index, rt_team_run(team, inputs, outputs));
    rt_team_release(team);
}

START_TEST(test_dead_team)
{
    struct fall f = {.signal = SIGKILL};
    struct test t = {.count = 4, .body = run_until, .ctx = &f};
    start(&t);
    finish(&t, 3);
    check_fall(&t, 10, "has died");
}
END_TEST

// ---- GPUs of all ----

// Each process has one of its own, of fake_cuda, or with JOT_TEST_GPUS of those that are there.
static int open_gpu(int index)
{
    const char *fake = getenv("JOT_TEST_FAKE_CUDA");
    char number[16];
    snprintf(number, sizeof number, "%d", index);
    setenv("CUDA_VISIBLE_DEVICES", number, 1);
    if (!getenv("JOT_TEST_GPUS") && fake)
        setenv("JOT_CUDA_LIBRARIES", fake, 1);
    return getenv("JOT_TEST_GPUS") || fake ? jot_device_count(JOT_CUDA) : 0;
}

static void run_gpus(int index, const void *ctx)
{
    const int64_t *trips = ctx;
    if (!open_gpu(index)) {
        note(index, JOT_OK);
        return;
    }
    jot_mesh *m = jot_mesh_of_kind(JOT_CUDA, 2, (const jot_mesh_axis[]){{"x", 0}, {"y", 1}});
    ck_assert_msg(m != NULL, "%s", jot_error_message());
    size_t n = jot_mesh_size(m);
    jot_array *rows = make_rows(n), *x = jot_array_shard(rows, m, "x");
    jot_array *zeros = jot_array_fill(JOT_F32, 0, (const int64_t[]){(int64_t)n * ROW, JOT_END});
    jot_array *y = jot_array_shard(zeros, m, "x");
    ck_assert_msg(x && y, "%s", jot_error_message());
    struct rt_team *team;
    jot_status status = load_team(m, 0, *trips, &team);
    ck_assert_msg(status == JOT_OK, "%s", jot_error_message());
    const void *inputs[2 * MOST], *blocks[2 * MOST];
    void *outputs[2 * MOST];
    for (size_t d = 0; d < n; d++) {
        inputs[d] = rt_array_split(x)->pieces[d]->data;
        outputs[d] = rt_array_split(y)->pieces[d]->data;
    }
    do {
        status = rt_team_run(team, inputs, outputs);
        if (status == JOT_OK)
            status = jot_device_wait(jot_cuda(0));
        if (index == VICTIM % 2 && *trips > 1) {
            atomic_store(&shared->fell, clock_ns());
            raise(SIGKILL);
        }
    } while (status == JOT_OK && *trips > 1);
    note(index, status);
    if (status == JOT_OK) {
        jot_array *sums = jot_process_all_gather(y), *here = jot_array_to(sums, jot_host());
        ck_assert_msg(here != NULL, "%s", jot_error_message());
        float right[ROW];
        for (size_t d = 0; d < n; d++)
            blocks[d] = (const float *)jot_array_data(rows) + d * ROW;
        host_combine(COLLECTIVE_SUM, JOT_F32, n, blocks, 0, ROW, 1, (void *[]){right}, 0);
        for (size_t d = 0; d < n; d++)
            ck_assert_int_eq(
                memcmp((const float *)jot_array_data(here) + d * ROW, right, sizeof right), 0);
        jot_array_release(sums);
        jot_array_release(here);
    } else {
        ck_assert_int_eq(jot_array_copy_out(rows, JOT_F32, (float[2 * MOST * ROW]){0}, n * ROW),
                         JOT_OK);
    }
    rt_team_release(team);
    jot_array_release(rows), jot_array_release(zeros);
    jot_array_release(x), jot_array_release(y);
}

START_TEST(test_gpus)
{
    int64_t trips = 1;
    struct test t = {.count = 2, .body = run_gpus, .ctx = &trips};
    run(&t);
    all_are(&t, -1, JOT_OK, "", "");
}
END_TEST

START_TEST(test_dead_gpus)
{
    int64_t trips = 3;
    struct test t = {.count = 2, .body = run_gpus, .ctx = &trips};
    if (!getenv("JOT_TEST_GPUS") && !getenv("JOT_TEST_FAKE_CUDA"))
        return;
    start(&t);
    finish(&t, VICTIM % 2);
    all_are(&t, VICTIM % 2, JOT_ERR_DEVICE, "process 1 of 2", "has died");
}
END_TEST

// ---- programs that differ ----

static void call_other(int index, const void *ctx)
{
    struct rt_group all = rt_distributed_all();
    struct hash128 key = {42, 43}, other = {42, 44};
    (void)ctx;
    ck_assert_int_eq(rt_distributed_agree(&all, key, "energy"), JOT_OK);
    note(index, rt_distributed_agree(&all, index == VICTIM ? other : key,
                                     index == VICTIM ? "loss" : "energy"));
    // They are still together.
    ck_assert_int_eq(jot_process_barrier(), JOT_OK);
}

START_TEST(test_other_program)
{
    struct test t = {.count = 8, .body = call_other};
    run(&t);
    all_are(&t, -1, JOT_ERR_CHECK, "process 0 of 8", "calls 'energy'");
    all_are(&t, -1, JOT_ERR_CHECK, "process 3 of 8", "calls 'loss'");
}
END_TEST

static void do_other(int index, const void *ctx)
{
    struct rt_group all = rt_distributed_all();
    int64_t own = index, to[8];
    const void *from = &own;
    void *at = to;
    (void)ctx;
    note(index, index == VICTIM ? rt_distributed_agree(&all, (struct hash128){1, 2}, "loss")
                                : rt_distributed_all_gather(&all, "of energy", 8, &from, &at));
}

START_TEST(test_other_step)
{
    struct test t = {.count = 4, .body = do_other};
    run(&t);
    all_are(&t, -1, JOT_ERR_CHECK, "at all_gather of energy, 8 bytes",
            "at the first call of loss, 120 bytes");
}
END_TEST

// Of the same name and another size.
static void do_larger(int index, const void *ctx)
{
    jot_array *own = jot_array_fill(JOT_F32, 1, (const int64_t[]){index == 1 ? 3 : 2, JOT_END});
    (void)ctx;
    note(index, jot_process_all_gather(own) ? JOT_OK : JOT_ERR_CHECK);
    jot_array_release(own);
}

START_TEST(test_other_shape)
{
    struct test t = {.count = 2, .body = do_larger};
    run(&t);
    all_are(&t, -1, JOT_ERR_CHECK, "all_gather of f32[2], 8 bytes",
            "all_gather of f32[3], 12 bytes");
}
END_TEST

// One cannot go on, by its own word or for what it passes.
static void give_up(int index, const void *ctx)
{
    const bool *says = ctx;
    if (index == VICTIM && *says)
        rt_distributed_fail(JOT_ERR_MEMORY, "%s", "out of memory");
    else if (index == VICTIM)
        ck_assert_ptr_null(jot_process_all_gather(NULL));
    note(index, jot_process_barrier());
}

START_TEST(test_given_up)
{
    bool says = _i;
    struct test t = {.count = 4, .body = give_up, .ctx = &says};
    run(&t);
    all_are(&t, -1, says ? JOT_ERR_MEMORY : JOT_ERR_ARGUMENT, "process 3 of 4 (",
            says ? "): out of memory" : "): jot_process_all_gather: a is NULL");
}
END_TEST

// ---- leaving ----

static void leave_early(int index, const void *ctx)
{
    const bool *stops = ctx;
    if (index == VICTIM && *stops) {
        jot_distributed_stop();
        jot_distributed_stop();
        ck_assert_int_eq(jot_process_count(), 1);
        ck_assert_int_eq(jot_process_barrier(), JOT_OK);
    }
    if (index == VICTIM)
        return;
    note(index, jot_process_barrier());
}

START_TEST(test_left)
{
    bool stops = _i;
    struct test t = {.count = 4, .body = leave_early, .ctx = &stops};
    run(&t);
    all_are(&t, VICTIM, JOT_ERR_DEVICE, "process 3 of 4 (", "has left before barrier");
}
END_TEST

// What was sent arrives though its sender is gone; those that are left go on.
static void give_and_leave(int index, const void *ctx)
{
    size_t bytes = 3000000;
    char *block = calloc(bytes, 1);
    void *at = block;
    static const int first[] = {0, 1, 2}, rest[] = {1, 2};
    (void)ctx;
    memset(block, index + 1, bytes);
    if (index)
        usleep(100000);
    note(index, rt_distributed_broadcast(&(struct rt_group){3, first}, "", bytes, 0, &at));
    ck_assert_int_eq(block[bytes - 1], 1);
    free(block);
    if (index == 0)
        return;
    usleep(100000);
    ck_assert_int_eq(rt_distributed_barrier(&(struct rt_group){2, rest}, "of the rest"),
                     JOT_OK);
}

START_TEST(test_last_words)
{
    struct test t = {.count = 3, .body = give_and_leave};
    run(&t);
    all_are(&t, -1, JOT_OK, "", "");
}
END_TEST

// One is there, and does not come.
static void stay_away(int index, const void *ctx)
{
    (void)ctx;
    while (index == VICTIM && jot_distributed_check() == JOT_OK)
        usleep(1000);
    note(index, jot_process_barrier());
}

START_TEST(test_wait)
{
    struct test t = {.count = 4, .body = stay_away, .options.wait_seconds = 0.5};
    run(&t);
    all_are(&t, -1, JOT_ERR_DEVICE, "has waited 0.5 s at barrier of all processes for",
            "process 3 of 4");
}
END_TEST

static void nothing(int index, const void *ctx)
{
    (void)index;
    (void)ctx;
}

START_TEST(test_absent)
{
    struct test t = {.count = 3, .body = nothing, .absent = 2, .options.start_seconds = 1};
    run(&t);
    all_are(&t, 2, JOT_ERR_DEVICE, "process 2 of 3", "has not come");
}
END_TEST

// ---- at the side ----

static atomic_int calls;
static void count_call(void *ctx) { atomic_fetch_add((atomic_int *)ctx, 1); }

static void be_called(int index, const void *ctx)
{
    static atomic_int others;
    (void)ctx;
    ck_assert(rt_distributed_on_failure(count_call, &calls));
    ck_assert(rt_distributed_on_failure(count_call, &others));
    rt_distributed_off_failure(count_call, &others);
    ck_assert_int_eq(jot_process_barrier(), JOT_OK);
    while (index == 0 && !atomic_load(&shared->at))
        usleep(1000);
    if (index == 0)
        raise(SIGKILL);
    atomic_store(&shared->at, 1);
    note(index, jot_process_barrier());
    while (!atomic_load(&calls))
        usleep(1000);
    ck_assert(rt_distributed_on_failure(count_call, &calls));
    ck_assert_int_eq(atomic_load(&calls), 2);
    ck_assert_int_eq(atomic_load(&others), 0);
}

START_TEST(test_on_failure)
{
    struct test t = {.count = 2, .body = be_called};
    start(&t);
    finish(&t, 0);
    ck_assert_int_eq(shared->outcome[1].status, JOT_ERR_DEVICE);
}
END_TEST

// The child of a fork is alone, and keeps no socket of its parent.
static void have_child(int index, const void *ctx)
{
    (void)ctx;
    if (index == 0) {
        pid_t child = fork();
        if (child == 0) {
            ck_assert_int_eq(jot_process_count(), 1);
            ck_assert_int_eq(jot_process_barrier(), JOT_OK);
            ck_assert_int_eq(jot_distributed_check(), JOT_OK);
            // It outlives its parent.
            usleep(1000000);
            exit(0);
        }
        ck_assert_int_eq(jot_process_barrier(), JOT_OK);
        while (!atomic_load(&shared->at))
            usleep(1000);
        atomic_store(&shared->fell, clock_ns());
        raise(SIGKILL);
    }
    ck_assert_int_eq(jot_process_barrier(), JOT_OK);
    atomic_store(&shared->at, 1);
    note(index, jot_process_barrier());
}

START_TEST(test_fork)
{
    struct test t = {.count = 2, .body = have_child};
    start(&t);
    finish(&t, 0);
    ck_assert_int_eq(shared->outcome[1].status, JOT_ERR_DEVICE);
    ck_assert(shared->outcome[1].when - atomic_load(&shared->fell) < INT64_C(900000000));
}
END_TEST

// Without a job.
START_TEST(test_alone)
{
    struct rt_group all = rt_distributed_all();
    ck_assert_int_eq(jot_process_index(), 0);
    ck_assert_int_eq(jot_process_count(), 1);
    ck_assert_int_eq(all.count, 1);
    ck_assert_int_eq(jot_distributed_check(), JOT_OK);
    jot_distributed_stop();
    static const int both[] = {0, 1}, own[] = {0, 0, 0};
    ck_assert_int_eq(rt_distributed_barrier(&(struct rt_group){2, both}, "x"),
                     JOT_ERR_ARGUMENT);
    ck_assert_str_eq(jot_error_message(), "barrier x: there is no process 1, but 1");
    for (int kind = 0; kind < KINDS; kind++)
        check_one(0, (enum kind)kind, &(struct rt_group){3, own},
                  &(struct shape){{COLLECTIVE_SUM, JOT_F32}, 5000});
    jot_array *a = jot_array_fill(JOT_F32, 2, (const int64_t[]){3, JOT_END});
    ck_assert_ptr_null(jot_process_broadcast(a, 1));
    ck_assert_str_eq(jot_error_message(),
                     "jot_process_broadcast: root is 1: the processes are 0 to 0");
    jot_array_release(a);
}
END_TEST

static void add(TCase *t)
{
    bool is_full = getenv("JOT_TEST_FULL") != NULL;
    tcase_set_timeout(t, 60);
    tcase_add_test(t, test_alone);
    tcase_add_test(t, test_collectives);
    tcase_add_test(t, test_types);
    tcase_add_test(t, test_large);
    tcase_add_test(t, test_arrays);
    tcase_add_loop_test(t, test_death, 0, 2 * KINDS);
    tcase_add_loop_test(t, test_stopped, is_full ? 0 : ALL_REDUCE, is_full ? KINDS : BARRIER);
    tcase_add_test(t, test_pieces);
    tcase_add_test(t, test_team);
    tcase_add_test(t, test_gpus);
    tcase_add_test(t, test_dead_gpus);
    tcase_add_test(t, test_other_team);
    tcase_add_test(t, test_dead_team);
    tcase_add_test(t, test_other_program);
    tcase_add_test(t, test_other_step);
    tcase_add_test(t, test_other_shape);
    tcase_add_loop_test(t, test_given_up, 0, 2);
    tcase_add_loop_test(t, test_left, 0, 2);
    tcase_add_test(t, test_last_words);
    tcase_add_test(t, test_wait);
    tcase_add_test(t, test_absent);
    tcase_add_test(t, test_on_failure);
    tcase_add_test(t, test_fork);
}

int main(void) { return suite_run("distributed", add); }
