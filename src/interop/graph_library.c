// SPDX-License-Identifier: Apache-2.0
// Routines of linear algebra that programs call by name.
#include "interop/graph_bodies.h"
#include "interop/graph_call.h"

#include "base/dtype.h"
#include "ir/indexing.h"
#include "ir/linalg.h"

#include "jot/control.h"
#include "jot/decompose.h"
#include "jot/shapes.h"

#include <math.h>

// A letter that the call configures the routine by, as 'L' for the lower triangle.
static int letter(const struct graph_op *g, const char *name, int otherwise)
{
    const struct mlir_attr *config = mlir_attr_find(g->op, "mhlo.backend_config");
    if (!config || config->kind != MLIR_DICTIONARY)
        config = mlir_attr_find(g->op, "backend_config");
    if (!config || config->kind != MLIR_DICTIONARY)
        return otherwise;
    for (size_t i = 0; i < config->n; i++) {
        const struct mlir_attr *a = config->named[i].attr;
        if (!strcmp(config->named[i].name, name) &&
            (a->kind == MLIR_INT || a->kind == MLIR_BOOL))
            return (int)a->integer;
    }
    return otherwise;
}

static struct ir_type result_type(struct graph_op *g, uint32_t i)
{
    struct ir_type type = {0};
    graph_type(g->b, g->op->results[i]->type, &type);
    return type;
}

// Result i is zeros: no failure is reported.
static void succeed(struct graph_op *g, uint32_t i)
{
    if (i < g->op->n_results)
        g->out[i] = ir_zeros(g->b, result_type(g, i));
}

static ir_id swapped(struct graph_op *g, ir_id x, bool conjugates)
{
    int64_t axes[IR_MAX_RANK];
    struct ir_type type = ir_type_in(g->b, x);
    for (int i = 0; i < type.rank; i++)
        axes[i] = i;
    axes[type.rank - 2] = type.rank - 1;
    axes[type.rank - 1] = type.rank - 2;
    ir_id y = ir_transpose(g->b, x, axes);
    return conjugates && dtype_is_complex(ir_dtype(type)) ? ir_conj(g->b, y) : y;
}

// Elements of x on and below the diagonal (above it: -1 and so on), and of y elsewhere.
static ir_id split(struct graph_op *g, ir_id x, ir_id y, bool is_lower)
{
    struct ir_builder *b = g->b;
    struct ir_type index = ir_type_with(ir_type_in(b, x), JOT_I32);
    ir_id row = ir_iota(b, index, index.rank - 2), column = ir_iota(b, index, index.rank - 1);
    return ir_select(b, is_lower ? ir_ge(b, row, column) : ir_le(b, row, column), x, y);
}

// The other triangle stays as it was.
static void convert_potrf(struct graph_op *g)
{
    bool is_lower = letter(g, "uplo", 'L') == 'L' || letter(g, "lower", 0) == 1;
    ir_id a = g->in[0];
    ir_id whole = split(g, a, swapped(g, a, true), is_lower);
    ir_id l = ir_cholesky(g->b, whole);
    g->out[0] = split(g, is_lower ? l : swapped(g, l, true), a, is_lower);
    succeed(g, 1);
}

// Pivots count from 1.
static void convert_getrf(struct graph_op *g)
{
    ir_id lu = ir_lu(g->b, g->in[0]);
    if (lu == IR_NONE)
        return;
    g->out[0] = lu;
    g->out[1] = ir_add(g->b, lu + 1, ir_scalar_int(g->b, JOT_I32, 1));
    succeed(g, 2);
}

// Pivots that count from 0, and the permutation that they make.
static void convert_lu(struct graph_op *g)
{
    ir_id lu = ir_lu(g->b, g->in[0]);
    for (uint32_t i = 0; i < 3 && i < g->op->n_results && lu != IR_NONE; i++)
        g->out[i] = lu + i;
}

// ---- QR ----

static void convert_geqrf(struct graph_op *g);

static bool is_call_of(const struct mlir_op *op, graph_convert *convert)
{
    const char *target = mlir_text(op, "call_target_name");
    return target && graph_library_find(target) == convert;
}

static void convert_orgqr(struct graph_op *g);

// Whether anything but orgqr, which finds the matrix itself, comes of the value.
static bool is_read(const struct graph_frame *f, const struct mlir_value *v, int depth)
{
    const struct mlir_block *body = f->in->f->body;
    for (uint32_t i = 0; i < body->n_ops; i++) {
        const struct mlir_op *op = body->ops[i];
        for (uint32_t k = 0; k < op->n_operands; k++) {
            if (op->operands[k] != v || is_call_of(op, convert_orgqr))
                continue;
            bool is_given = !op->n_results || op->n_regions || depth == 0;
            for (uint32_t j = 0; j < op->n_results && !is_given; j++)
                is_given = is_read(f, op->results[j], depth - 1);
            if (is_given)
                return true;
        }
    }
    return false;
}

// geqrf leaves R above the diagonal.  Its reflectors are made where they are read; otherwise orgqr finds the matrix
// by the scale factors, and the decomposition is that of jot.
static void convert_geqrf(struct graph_op *g)
{
    if (is_read(g->frame, g->op->results[1], 8)) {
        graph_reduce_qr(g);
        succeed(g, 2);
        return;
    }
    ir_id qr = ir_decompose(g->b, IR_qr, g->in[0], 1);
    if (qr == IR_NONE)
        return;
    g->out[0] = qr + 1;
    succeed(g, 1);
    succeed(g, 2);
}

static const struct mlir_op *find_geqrf(const struct graph_op *g, const struct mlir_value *v)
{
    for (int depth = 0; depth < 16; depth++) {
        const struct mlir_op *op = graph_maker(g->frame, v);
        if (op && is_call_of(op, convert_geqrf))
            return op;
        if (!op || op->n_operands == 0)
            return NULL;
        v = op->operands[0];
    }
    return NULL;
}

static void convert_orgqr(struct graph_op *g)
{
    const struct mlir_op *of =
        g->op->n_operands == 2 ? find_geqrf(g, g->op->operands[1]) : NULL;
    jot_value a = of ? trace_import(of->name, g->frame->values[of->operands[0]->number])
                     : (jot_value){0, 0};
    if (!of || trace_is_error(a) || is_read(g->frame, of->results[1], 8)) {
        graph_multiply_reflectors(g);
        return;
    }
    struct ir_type type = trace_type(a);
    const int64_t *dims = ir_dims(g->b->module, type);
    bool is_square = g->dims[g->rank - 1] == dims[type.rank - 2];
    g->out[0] = ir_decompose(g->b, IR_qr, trace_strong(a), is_square);
}

// ---- eigenvalues and singular values ----

static void convert_syevd(struct graph_op *g)
{
    bool is_lower = letter(g, "uplo", 'L') == 'L' && letter(g, "lower", 1) != 0;
    ir_id a = is_lower ? g->in[0] : swapped(g, g->in[0], true);
    ir_id values = ir_decompose(g->b, IR_eigh, a, 0);
    if (values == IR_NONE)
        return;
    g->out[0] = values + 1;
    g->out[1] = values;
    succeed(g, 2);
}

// Of the triangle that the first number of its text says: 1, the lower one.
static void convert_eigh(struct graph_op *g)
{
    const char *config = mlir_text(g->op, "backend_config");
    ir_id a = config && *config == '0' ? swapped(g, g->in[0], true) : g->in[0];
    ir_id values = ir_decompose(g->b, IR_eigh, a, 0);
    if (values == IR_NONE)
        return;
    g->out[0] = values + 1;
    g->out[1] = values;
}

// Results 2 and 3 are U and V^H; the other way round of a matrix that is read by rows.
static void convert_gesdd(struct graph_op *g)
{
    uint32_t at_u = letter(g, "transposed", 0) ? 3 : 2, at_vt = 5 - at_u;
    struct ir_type u = result_type(g, at_u), vt = result_type(g, at_vt);
    struct ir_type a = ir_type_in(g->b, g->in[0]);
    const int64_t *dims = ir_dims(g->b->module, a);
    int64_t m = dims[a.rank - 2], n = dims[a.rank - 1];
    bool is_full = ir_dims(g->b->module, u)[u.rank - 1] == m &&
                   ir_dims(g->b->module, vt)[vt.rank - 2] == n;
    bool has_vectors = letter(g, "mode", 'A') != 'N' && letter(g, "compute_uv", 1);
    ir_id s = ir_decompose(g->b, IR_svd, g->in[0], has_vectors ? 1 + is_full : 0);
    if (s == IR_NONE)
        return;
    g->out[0] = g->in[0];
    g->out[1] = s;
    g->out[at_u] = has_vectors ? s + 1 : ir_zeros(g->b, u);
    g->out[at_vt] = has_vectors ? s + 2 : ir_zeros(g->b, vt);
    succeed(g, 4);
}

// The same with V.
static void convert_gesvdj(struct graph_op *g)
{
    struct ir_type u = result_type(g, 2), v = result_type(g, 3);
    struct ir_type a = ir_type_in(g->b, g->in[0]);
    const int64_t *dims = ir_dims(g->b->module, a);
    bool is_full = ir_dims(g->b->module, u)[u.rank - 1] == dims[a.rank - 2] &&
                   ir_dims(g->b->module, v)[v.rank - 1] == dims[a.rank - 1];
    ir_id s = ir_decompose(g->b, IR_svd, g->in[0], 1 + is_full);
    if (s == IR_NONE)
        return;
    g->out[0] = g->in[0];
    g->out[1] = s;
    g->out[2] = s + 1;
    g->out[3] = swapped(g, s + 2, true);
    succeed(g, 4);
}

static void convert_geev(struct graph_op *g)
{
    bool is_complex = dtype_is_complex(ir_dtype(ir_type_in(g->b, g->in[0])));
    uint32_t at = 0;
    ir_id w = ir_decompose(g->b, IR_eig, g->in[0], 2);
    if (w == IR_NONE)
        return;
    if (g->op->n_results != (is_complex ? 4u : 5u)) {
        graph_refuse(g, "%u results", g->op->n_results);
        return;
    }
    if (is_complex) {
        g->out[at++] = w;
    } else {
        g->out[at++] = ir_real(g->b, w);
        g->out[at++] = ir_imag(g->b, w);
    }
    g->out[at++] = w + 1;
    g->out[at++] = w + 2;
    succeed(g, at);
}

// ---- forms that are nearly triangular ----

static void convert_gehrd(struct graph_op *g)
{
    struct ir_type a = ir_type_in(g->b, g->in[0]);
    int n = (int)ir_dims(g->b->module, a)[a.rank - 1];
    if (letter(g, "low", 1) != 1 || letter(g, "high", n) != n) {
        graph_refuse(g, "rows %d to %d of %d", letter(g, "low", 1), letter(g, "high", n), n);
        return;
    }
    graph_reduce_hessenberg(g, g->in[0]);
    succeed(g, 2);
}

static ir_id diagonal(ir_id x, int64_t k)
{
    jot_value d = jot_diagonal(trace_value(x, false), k, -2, -1);
    return trace_strong(trace_import("diagonal", d));
}

static ir_id real_of(struct graph_op *g, ir_id x)
{
    return dtype_is_complex(ir_dtype(ir_type_in(g->b, x))) ? ir_real(g->b, x) : x;
}

// Of the lower triangle: what is below the diagonal is reduced as that of any matrix.
static void convert_sytrd(struct graph_op *g)
{
    ir_id a = g->in[0];
    if (letter(g, "uplo", 'L') != 'L') {
        graph_refuse(g, "the upper triangle");
        return;
    }
    graph_reduce_hessenberg(g, split(g, a, swapped(g, a, true), true));
    ir_id h = g->out[0], taus = g->out[1];
    if (g->b->status != JOT_OK)
        return;
    g->out[0] = split(g, h, a, true);
    g->out[1] = real_of(g, diagonal(h, 0));
    g->out[2] = real_of(g, diagonal(h, -1));
    g->out[3] = taus;
    succeed(g, 4);
}

// x along the last axis without its last element and with a zero in front, or the other way round.
static ir_id shifted(struct graph_op *g, ir_id x, int by)
{
    int64_t low[IR_MAX_RANK] = {0}, high[IR_MAX_RANK] = {0}, interior[IR_MAX_RANK] = {0};
    struct ir_type t = ir_type_in(g->b, x);
    low[t.rank - 1] = by > 0 ? by : 0;
    high[t.rank - 1] = by < 0 ? -by : 0;
    return ir_pad(g->b, x, ir_scalar_like(g->b, x, 0), low, high, interior);
}

// The eigenvalues of T, which is triangular, or has blocks of two rows where it is real: (p + s)/2 +- i sqrt(-
// ((p - s)/2)^2 - q r) of a block p q, r s, the first one above the axis.
static void eigenvalues(struct graph_op *g, ir_id t, ir_id *out_real, ir_id *out_imag)
{
    struct ir_builder *b = g->b;
    ir_id d = diagonal(t, 0), r = diagonal(t, -1), q = diagonal(t, 1);
    ir_id next = diagonal(t, 0), zero = ir_scalar_like(b, d, 0),
          half = ir_scalar_like(b, d, 0.5);
    struct ir_type type = ir_type_in(b, r);
    int64_t from[IR_MAX_RANK] = {0}, to[IR_MAX_RANK];
    memcpy(to, ir_dims(b->module, type), sizeof *to * type.rank);
    ir_id p = ir_slice(b, d, from, to, NULL);
    from[type.rank - 1]++;
    to[type.rank - 1]++;
    next = ir_slice(b, next, from, to, NULL);
    ir_id apart = ir_mul(b, half, ir_sub(b, p, next));
    ir_id square = ir_neg(b, ir_add(b, ir_mul(b, apart, apart), ir_mul(b, q, r)));
    ir_id is_block = ir_ne(b, r, zero);
    ir_id w = ir_select(b, is_block, ir_sqrt(b, ir_max(b, square, zero)), zero);
    ir_id middle = ir_select(b, is_block, apart, zero);
    *out_real = ir_add(b, ir_sub(b, d, shifted(g, middle, -1)), shifted(g, middle, 1));
    *out_imag = ir_sub(b, shifted(g, w, -1), shifted(g, w, 1));
}

// Results 2, and of real matrices 3, are the eigenvalues.
static void convert_gees(struct graph_op *g)
{
    ir_id t = ir_decompose(g->b, IR_schur, g->in[0], 0);
    uint32_t at = 2;
    if (t == IR_NONE)
        return;
    g->out[0] = t;
    g->out[1] = t + 1;
    if (dtype_is_complex(ir_dtype(ir_type_in(g->b, t)))) {
        g->out[at++] = diagonal(t, 0);
    } else if (g->op->n_results > 3 && ir_count(g->b->module, ir_type_in(g->b, t))) {
        eigenvalues(g, t, &g->out[2], &g->out[3]);
        at = 4;
    }
    while (at < g->op->n_results)
        succeed(g, at++);
}

// ---- systems ----

static void convert_trsm(struct graph_op *g)
{
    int op = letter(g, "trans_x", 'N');
    struct ir_triangular t = {.left = letter(g, "side", 'L') == 'L',
                              .lower = letter(g, "uplo", 'L') == 'L',
                              .transposed = op != 'N',
                              .conjugated = op == 'C',
                              .unit_diagonal = letter(g, "diag", 'N') == 'U'};
    g->out[0] = ir_triangular_solve(g->b, g->in[0], g->in[1], &t);
}

static void convert_gtsv(struct graph_op *g)
{
    ir_id x = ir_tridiagonal_solve(g->b, g->in[0], g->in[1], g->in[2], g->in[3]);
    for (uint32_t i = 0; i < g->op->n_results; i++)
        succeed(g, i);
    g->out[g->op->n_results > 3 ? 3 : 0] = x;
}

// The first elements, and their numbers, in the order of a function of the program, as many as the results have of
// them; all are looked at.
static void convert_approximate_top_k(struct graph_op *g)
{
    const struct mlir_attr *called = mlir_attr_find(g->op, "called_computations");
    bool names = called && called->kind == MLIR_ARRAY && called->n == 1 &&
                 called->parts[0]->kind == MLIR_SYMBOL;
    const struct mlir_function *order =
        names ? mlir_function_find(g->frame->in->program, called->parts[0]->text) : NULL;
    int64_t none[IR_MAX_RANK] = {0}, limits[IR_MAX_RANK];
    int n = (int)g->op->n_operands / 2;
    if (!order || !order->body || order->body->n_args != 2 * (uint32_t)n ||
        g->op->n_results != (uint32_t)n) {
        graph_refuse(g, "it names no order of its elements");
        return;
    }
    // The function is another than the one that calls.
    struct arena *arena = g->frame->arena;
    struct graph_frame *caller = g->frame, *frame = arena_new(arena, struct graph_frame);
    *frame =
        (struct graph_frame){.in = &caller->in->all[order - caller->in->program->functions],
                             .arena = arena,
                             .values = arena_array(arena, jot_value, order->n_values + 1)};
    g->frame = frame;
    graph_sort(g, n, order->body, letter(g, "reduction_dim", -1));
    g->frame = caller;
    for (int i = 0; i < n && g->b->status == JOT_OK; i++) {
        struct ir_type type = result_type(g, (uint32_t)i);
        for (int k = 0; k < type.rank; k++)
            limits[k] = ir_dims(g->b->module, type)[k];
        g->out[i] = ir_slice(g->b, g->out[i], none, limits, NULL);
    }
}

// ---- pivots ----

static ir_id id_of(jot_value v)
{
    return trace_strong(trace_import("lu_pivots_to_permutation", v));
}

static ir_id element(ir_id x, ir_id at)
{
    static const int64_t one[] = {1};
    return ir_dynamic_slice(trace_builder(), x, &at, one);
}

// Row i is swapped with row pivots[i].
static void swap_rows(jot_value index, jot_value *carry, void *ctx)
{
    struct ir_builder *b = trace_builder();
    const jot_value *pivots = ctx;
    ir_id i = id_of(index), p = id_of(carry[0]);
    ir_id j = ir_reshape(b, element(id_of(*pivots), i), 0, NULL);
    ir_id x = element(p, i), y = element(p, j);
    p = ir_dynamic_update_slice(b, p, y, &i);
    p = ir_dynamic_update_slice(b, p, x, &j);
    carry[0] = trace_result("lu_pivots_to_permutation", p, false);
}

static void permutation_of(const jot_value *in, jot_value *out, void *ctx)
{
    const int64_t *rows = ctx;
    jot_value pivots = in[0];
    *out = jot_arange(JOT_I32, *rows);
    jot_for_at(swap_rows, &pivots, jot_from_int(0), jot_from_int(jot_value_dim(pivots, 0)), 1,
               out, "pivots");
}

static void convert_pivots(struct graph_op *g)
{
    int64_t *rows = arena_array(g->frame->arena, int64_t, 1);
    *rows = g->rank ? g->dims[g->rank - 1] : 0;
    jot_function f = jot_function_uniform("pivots", "pivots", permutation_of, 1, 1, rows);
    for (int i = 0; i + 1 < g->rank; i++)
        f = jot_vmap_of(f, "pivots", (const int[]){JOT_END});
    jot_value in = trace_value(g->in[0], false), out;
    jot_apply_at(f, 1, &in, 1, &out, graph_where(g->frame, g->op));
    graph_take(g, 0, out);
}

// Before the words there may be the number of a platform.
static void convert_threefry(struct graph_op *g)
{
    const ir_id *words = g->in + (g->op->n_operands > 4 ? g->op->n_operands - 4 : 0);
    ir_id first = ir_build(g->b, IR_threefry2x32, 4, words, NULL);
    g->out[0] = first;
    g->out[1] = first == IR_NONE ? IR_NONE : first + 1;
}

static const struct {
    const char *name; // without prefix, letter of the type and suffix
    graph_convert *convert;
} routines[] = {
    {"potrf", convert_potrf},
    {"getrf", convert_getrf},
    {"getrf_batched", convert_getrf},
    {"LuDecomposition", convert_lu},
    {"geqrf", convert_geqrf},
    {"geqrf_batched", convert_geqrf},
    {"Qr", convert_geqrf},
    {"orgqr", convert_orgqr},
    {"ungqr", convert_orgqr},
    {"ProductOfElementaryHouseholderReflectors", convert_orgqr},
    {"syevd", convert_syevd},
    {"heevd", convert_syevd},
    {"Eigh", convert_eigh},
    {"gesdd", convert_gesdd},
    {"gesvd", convert_gesdd},
    {"gesvdj", convert_gesvdj},
    {"gesvdp", convert_gesvdj},
    {"geev", convert_geev},
    {"lu_pivots_to_permutation", convert_pivots},
    {"gees", convert_gees},
    {"gehrd", convert_gehrd},
    {"sytrd", convert_sytrd},
    {"hetrd", convert_sytrd},
    {"trsm", convert_trsm},
    {"gtsv", convert_gtsv},
    {"gtsv2", convert_gtsv},
    {"ApproxTopK", convert_approximate_top_k},
    {"threefry2x32", convert_threefry},
};

// "lapack_sgetrf_ffi", "cusolver_getrf_ffi" and "cublas_getrf_batched_ffi" are getrf, getrf and getrf_batched.
static bool is_routine(const char *target, const char *name)
{
    static const char *const prefixes[] = {"",           "blas_", "cusolver_",  "cublas_",
                                           "cusparse_",  "cu_",   "hipsolver_", "hipblas_",
                                           "hipsparse_", "hip_"};
    const char *rest = target;
    size_t n = strlen(name), length = strlen(target);
    if (length > 4 && !strcmp(target + length - 4, "_ffi"))
        length -= 4;
    if (!strncmp(target, "lapack_", 7) && length > 8) {
        rest = target + 8;
        return length - 8 == n && !memcmp(rest, name, n);
    }
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        size_t p = strlen(prefixes[i]);
        if (length == p + n && !strncmp(target, prefixes[i], p) && !memcmp(target + p, name, n))
            return true;
    }
    return false;
}

graph_convert *graph_library_find(const char *target)
{
    for (size_t i = 0; i < sizeof routines / sizeof *routines; i++)
        if (is_routine(target, routines[i].name))
            return routines[i].convert;
    return NULL;
}
