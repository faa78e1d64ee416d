// SPDX-License-Identifier: Apache-2.0
#include "trace/lanes.h"

#include "passes/rules/rules.h"

#include <float.h>
#include <math.h>

double trace_epsilon(jot_dtype dtype) { return dtype == JOT_F64 ? DBL_EPSILON : FLT_EPSILON; }

jot_value trace_polynomial(int n, const double *c, jot_value x)
{
    jot_value y = jot_from_double(c[n - 1]);
    for (int k = n - 2; k >= 0; k--)
        y = jot_add(jot_mul(y, x), jot_from_double(c[k]));
    return y;
}

// The operands, of one type and shape, flat; false with an error.
static bool open_lanes(const char *name, int n, const jot_value *operands, jot_value *out,
                       struct trace_promoted *p, struct ir_type *out_type, jot_value *out_error)
{
    jot_value v[TRACE_MAX_OPERANDS];
    ir_id ids[TRACE_MAX_OPERANDS];
    struct ir_type types[TRACE_MAX_OPERANDS];
    for (int i = 0; i < n; i++)
        v[i] = operands[i];
    if (!trace_ready(name, n, v, out_error) ||
        !trace_promote(name, "float", n, v, p, out_error))
        return false;
    for (int i = 0; i < n; i++)
        ids[i] = trace_operand(v[i], p->dtype);
    if (!trace_align(name, n, v, ids, out_error))
        return false;
    struct ir_builder *b = trace_builder();
    jot_dtype wide = p->dtype == JOT_F64 ? JOT_F64 : JOT_F32;
    for (int i = 0; i < n; i++) {
        ids[i] = ir_convert(b, ids[i], wide);
        types[i] = ir_type_in(b, ids[i]);
    }
    ir_broadcast_types(b->module, n, types, out_type);
    int64_t size = ir_count(b->module, *out_type);
    for (int i = 0; i < n; i++) {
        ir_id all = rule_broadcast_to(b, ids[i], *out_type);
        out[i] = trace_result(name, out_type->rank ? ir_reshape(b, all, 1, &size) : all, false);
    }
    return true;
}

static jot_value lanes(const char *name, jot_function f, int n, const jot_value *operands)
{
    jot_value v[TRACE_MAX_OPERANDS], y;
    struct trace_promoted p;
    struct ir_type type;
    if (!open_lanes(name, n, operands, v, &p, &type, &y))
        return y;
    jot_apply_at(type.rank ? jot_vmap_of(f, name, NULL) : f, (size_t)n, v, 1, &y, NULL);
    if (jot_value_failed(y))
        return y;
    struct ir_builder *b = trace_builder();
    ir_id id = trace_kept(y);
    if (type.rank)
        id = ir_reshape(b, id, type.rank, ir_dims(b->module, type));
    return trace_result(name, ir_convert(b, id, p.dtype), p.weak);
}

jot_value trace_lanes(const char *name, jot_function f, int n, const jot_value *v)
{
    TRACE_RETURN(lanes(name, f, n, v));
}

static jot_function ruled(const char *name, int n, void (*f)(void), void (*rule)(void))
{
    return jot_custom_jvp_of(jot_function_plain(name, name, n, f),
                             jot_function_plain(name, name, 2 * n, rule), name);
}

// A function has no C numbers: those among the operands take the type of the others.  Alone they stay
// as precise as in C, and so does the result.
static jot_value apply_ruled(const char *name, int n, void (*f)(void), void (*rule)(void),
                             const jot_value *operands)
{
    jot_value v[TRACE_MAX_OPERANDS], y;
    struct trace_promoted p;
    bool is_number = true;
    for (int i = 0; i < n; i++)
        v[i] = operands[i];
    if (!trace_ready(name, n, v, &y) || !trace_promote(name, "inexact", n, v, &p, &y))
        return y;
    for (int i = 0; i < n; i++) {
        if (trace_slot_of(v[i])->weak)
            v[i] = trace_result(name, trace_operand(v[i], p.dtype), false);
        else
            is_number = false;
    }
    jot_apply_at(ruled(name, n, f, rule), (size_t)n, v, 1, &y, NULL);
    return is_number && !jot_value_failed(y) ? trace_result(name, trace_kept(y), true) : y;
}

jot_value trace_ruled(const char *name, int n, void (*f)(void), void (*rule)(void),
                      const jot_value *v)
{
    TRACE_RETURN(apply_ruled(name, n, f, rule, v));
}

// Of 1/x it is a quotient by NaN at every order.
jot_value trace_nan_of(int n, const jot_value *v)
{
    jot_value sum = v[0];
    for (int i = 1; i < n; i++)
        sum = jot_add(sum, v[i]);
    return jot_div(jot_from_double(1), jot_mul(sum, jot_from_double(NAN)));
}

jot_value trace_without_slope(jot_value x)
{
    jot_value root = jot_sqrt(x);
    return jot_sub(root, root);
}

jot_value trace_defined(int n, const jot_value *v, jot_value y)
{
    if (jot_value_failed(y))
        return y;
    jot_value none = trace_nan_of(n, v);
    if (!trace_slot_of(y)->weak)
        none = jot_astype(none, jot_value_dtype(y));
    return jot_where(jot_is_nan(y), none, y);
}

jot_value trace_ruled_lanes(const char *name, int n, void (*f)(void), void (*rule)(void),
                            const jot_value *v)
{
    return trace_defined(n, v, trace_lanes(name, ruled(name, n, f, rule), n, v));
}

static void member_value(const jot_value *x, jot_value *out, void *ctx)
{
    const struct trace_member *m = ctx;
    *out = m->family->f(x, m);
}

static void member_rule(const jot_value *x, jot_value *out, void *ctx);

static jot_function member_function(const struct trace_member *m)
{
    const struct trace_family *family = m->family;
    const char *name = family->name;
    void *ctx = (void *)(uintptr_t)m;
    int order = 0;
    for (int i = 0; i < family->n; i++)
        order += m->orders[i];
    jot_function f = jot_function_uniform(name, name, member_value, family->n, 1, ctx);
    if (order == family->most)
        return f;
    return jot_custom_jvp_of(
        f, jot_function_uniform(name, name, member_rule, 2 * family->n, 1, ctx), name);
}

// The member that is derived `by` times more in operand i.
static const struct trace_member *trace_member_beside(const struct trace_member *m, int i,
                                                      int by)
{
    int orders[TRACE_MAX_OPERANDS];
    memcpy(orders, m->orders, sizeof orders);
    orders[i] += by;
    const struct trace_member *other = m->family->members;
    while (memcmp(other->orders, orders, sizeof orders) != 0)
        other++;
    return other;
}

bool trace_member_from_lower(const struct trace_member *m, int n, jot_body *f,
                             const jot_value *x, jot_value *out)
{
    const char *name = m->family->name;
    int n_in = m->family->n, i = 0;
    while (i < n && m->orders[i] == 0)
        i++;
    if (i == n)
        return false;
    void *lower = (void *)(uintptr_t)trace_member_beside(m, i, -1);
    jot_function slope = jot_jvp_of(jot_function_uniform(name, name, f, n_in, 1, lower), name,
                                    (const int[]){i, JOT_END});
    jot_value in[TRACE_MAX_OPERANDS + 1], y[2];
    memcpy(in, x, sizeof *in * (size_t)n_in);
    in[n_in] = jot_ones_like(x[i]);
    jot_apply_at(slope, (size_t)n_in + 1, in, 2, y, NULL);
    *out = y[1];
    return true;
}

static void member_rule(const jot_value *x, jot_value *out, void *ctx)
{
    const struct trace_member *m = ctx;
    int n = m->family->n;
    for (int i = 0; i < n; i++) {
        jot_value slope;
        jot_apply_at(member_function(trace_member_beside(m, i, 1)), (size_t)n, x, 1, &slope,
                     NULL);
        jot_value moved = trace_along(x[n + i], slope);
        *out = i ? jot_add(*out, moved) : moved;
    }
}

jot_value trace_family_lanes(const struct trace_family *family, const jot_value *v)
{
    const char *name = family->name;
    jot_value y = trace_lanes(name, member_function(family->members), family->n, v);
    return trace_defined(family->n, v, y);
}

jot_value trace_along(jot_value tangent, jot_value slope)
{
    TRACE_RETURN(trace_map(IR_mul_z, "jot_mul", 2, (jot_value[]){tangent, slope}));
}

jot_value trace_chebyshev(int n, const double *c, jot_value t)
{
    jot_value twice = jot_add(t, t), y = jot_from_double(c[n - 1]), last = jot_from_double(0);
    for (int k = n - 2; k > 0; k--) {
        jot_value next = jot_add(jot_sub(jot_mul(twice, y), last), jot_from_double(c[k]));
        last = y;
        y = next;
    }
    return jot_add(jot_sub(jot_mul(t, y), last), jot_from_double(c[0]));
}
