// SPDX-License-Identifier: Apache-2.0
// What an _init is told, checked and with defaults in place, and values to begin with.
#include "library/layer.h"
#include "library/formula.h"

#include <math.h>
#include <stdio.h>

void library_refuse(struct layer *l, jot_status status, const char *text)
{
    if (l->is_wrong)
        return;
    l->is_wrong = true;
    l->error = jot_error(status, l->name, text);
    jot_place(l->error, l->where);
}

void library_size(struct layer *l, const char *what, int64_t size)
{
    char text[80];
    snprintf(text, sizeof text, "%s is %lld: 1 to 2147483647", what, (long long)size);
    if (size < 1 || size > INT32_MAX)
        library_refuse(l, JOT_ERR_ARGUMENT, text);
}

// The option that is set and not taken, or NULL.
static const char *not_taken(const jot_layer_options *o, unsigned takes)
{
    if (o->w && !(takes & TAKES_W))
        return "w";
    if (o->scale != 0 && !(takes & TAKES_W))
        return "scale";
    if (o->no_bias && !(takes & TAKES_BIAS))
        return "no_bias";
    if (o->groups && !(takes & TAKES_GROUPS))
        return "groups";
    if ((o->kv_heads || o->head_size) && !(takes & TAKES_HEADS))
        return "kv_heads or head_size";
    return NULL;
}

struct layer library_layer(const char *name, const char *where,
                           const jot_layer_options *options, unsigned takes, jot_initializer *w)
{
    struct layer l = {.name = name, .where = where};
    char text[80] = "";
    if (options)
        l.o = *options;
    const char *other = not_taken(&l.o, takes);
    jot_dtype dtype = l.o.dtype ? l.o.dtype : JOT_F32;
    bool is_floating = dtype == JOT_F32 || dtype == JOT_F64 || library_is_half(dtype);
    if (other)
        snprintf(text, sizeof text, "has no option %s", other);
    else if (!isfinite(l.o.scale))
        snprintf(text, sizeof text, "scale is %g: a finite number", l.o.scale);
    else if (!is_floating)
        snprintf(text, sizeof text, "dtype is %s: a real floating type", jot_dtype_name(dtype));
    if (*text)
        library_refuse(&l, is_floating ? JOT_ERR_ARGUMENT : JOT_ERR_DTYPE, text);
    l.o.dtype = dtype;
    l.o.w = l.o.w ? l.o.w : w;
    l.o.scale = l.o.scale != 0 ? l.o.scale : 1;
    return l;
}

static jot_value placed(const struct layer *l, jot_value x)
{
    jot_place(x, l->where);
    return x;
}

jot_value library_weights(struct layer *l, jot_value key, const int64_t *dims)
{
    if (l->is_wrong)
        return l->error;
    jot_value w = l->o.w(key, l->o.dtype, dims);
    return placed(l, l->o.scale == 1 ? w : mul(w, num(l->o.scale)));
}

jot_value library_filled(struct layer *l, double value, const int64_t *dims)
{
    return l->is_wrong ? l->error : placed(l, jot_full_dims(l->o.dtype, num(value), dims));
}

jot_value library_bias(struct layer *l, const int64_t *dims)
{
    return library_filled(l, 0, l->o.no_bias ? (const int64_t[]){0, JOT_END} : dims);
}

// ---------------------------------------------------------------------------------------
// Where layers are applied

jot_value library_add_bias(jot_value x, jot_value bias)
{
    return jot_value_failed(bias) || jot_value_size(bias) ? add(x, bias) : x;
}

bool library_is_half(jot_dtype dtype) { return dtype == JOT_F16 || dtype == JOT_BF16; }

jot_value library_wide(jot_value x)
{
    return library_is_half(jot_value_dtype(x)) ? jot_convert(x, JOT_F32) : x;
}

jot_value library_narrow(jot_value y, jot_value x, jot_value p)
{
    jot_dtype dtype = jot_value_dtype(x);
    return library_is_half(dtype) && jot_value_dtype(p) == dtype ? jot_convert(y, dtype) : y;
}

void library_dims(jot_value x, int64_t *dims)
{
    int rank = jot_value_rank(x);
    for (int i = 0; i < rank; i++)
        dims[i] = jot_value_dim(x, i);
    dims[rank] = JOT_END;
}
