// SPDX-License-Identifier: Apache-2.0
#include "interop/graph_mesh.h"

#include <stdlib.h>

// ---- meshes

const char *graph_mesh_text(const struct mlir_attr *a)
{
    return a && a->kind == MLIR_OPAQUE ? a->text : "";
}

// The text of a mesh of the module from behind its name, or NULL.
static const char *find_mesh(const struct graph_frame *frame, const char *name, size_t n)
{
    const struct mlir_program *p = frame->in->program;
    for (uint32_t i = 0; i < p->n_attrs; i++) {
        const char *text = graph_mesh_text(p->attrs[i].attr);
        if (!strcmp(p->attrs[i].name, "sdy.mesh") && !strncmp(text, name, n) &&
            strchr(" =", text[n]))
            return text + n;
    }
    return NULL;
}

// A name in quotes, of letters, digits and '_', and the place behind it; NULL for anything else.
static const char *read_name(const struct graph_frame *frame, const char **at)
{
    if (**at != '"')
        return NULL;
    const char *start = *at + 1;
    size_t n = strspn(start, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    char *name = arena_array(frame->arena, char, n + 1);
    memcpy(name, start, n);
    *at = start + n + 1;
    return start[n] == '"' ? name : NULL;
}

// <["x"=2, "y"=4]>, or <axes = [<name = "x", size = 2>, ...]>
static bool read_axes(const struct graph_frame *frame, const char *at, struct graph_mesh *out)
{
    *out = (struct graph_mesh){0};
    for (at += strcspn(at, "\"]"); *at == '"'; at += strcspn(at, "\"]")) {
        const char *name = read_name(frame, &at);
        at += name ? strcspn(at, "=]") : 0;
        int64_t size = name && *at == '=' ? strtoll(at + 1, NULL, 10) : 0;
        if (size < 1 || out->n == IR_MAX_AXES)
            return false;
        out->axes[out->n++] = (jot_mesh_axis){name, size};
    }
    return out->n > 0 && strncmp(at, "], device_ids", strlen("], device_ids")) != 0;
}

// Behind @mesh, or behind the mesh that stands there, mesh<["x"=2]>.
static const char *behind_mesh(const char *at)
{
    int depth = 0;
    if (*at == '@')
        return at + strcspn(at, ",> ");
    do {
        at += strcspn(at, "<>");
        depth += *at == '<' ? 1 : -1;
    } while (*at++ && depth > 0);
    return depth ? NULL : at;
}

bool graph_mesh_read(const struct graph_frame *frame, const char **at, struct graph_mesh *out)
{
    const char *start = *at, *end = behind_mesh(start);
    if (!end)
        return false;
    *at = end;
    const char *axes = *start == '@' ? find_mesh(frame, start, (size_t)(end - start)) : start;
    return axes && read_axes(frame, axes, out);
}

int graph_mesh_find(const struct graph_mesh *m, const char *name)
{
    for (size_t i = 0; i < m->n; i++)
        if (!strcmp(m->axes[i].name, name))
            return (int)i;
    return -1;
}

// "x", or a part of it: "x":(1)2 and "x", sub_axis_info = (1)2, which is 2 behind 1.
static bool read_part(const struct graph_frame *frame, const struct graph_mesh *m,
                      const char **at, struct graph_mesh_part *out)
{
    static const char *const forms[] = {":(", ", sub_axis_info = ("};
    const char *name = read_name(frame, at);
    int axis = name ? graph_mesh_find(m, name) : -1;
    if (axis < 0)
        return false;
    int64_t all = m->axes[axis].size, before = 1, size = all;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (strncmp(*at, forms[i], strlen(forms[i])) != 0)
            continue;
        char *end;
        before = strtoll(*at + strlen(forms[i]), &end, 10);
        if (*end != ')')
            return false;
        size = strtoll(end + 1, &end, 10);
        *at = end;
    }
    if (before < 1 || size < 1 || all % before || all / before % size)
        return false;
    *out = (struct graph_mesh_part){axis, all / before / size, size};
    return true;
}

// ---- shardings

static bool eat(const char **at, const char *word)
{
    const char *c = *at + strspn(*at, " \t\r\n");
    bool is_there = !strncmp(c, word, strlen(word));
    *at = is_there ? c + strlen(word) : c;
    return is_there;
}

static bool overlap(struct graph_mesh_part a, struct graph_mesh_part b)
{
    return a.axis == b.axis && a.step < b.step * b.size && b.step < a.step * a.size;
}

typedef VEC(struct graph_mesh_part) part_list;

// {"x", "y":(1)2, ?}, of the axes in the set, none of which is in `seen`, to which they are added.
static bool read_parts(const struct graph_frame *frame, const struct graph_mesh *m,
                       uint16_t axes, const char **at, part_list *seen, int *out_n)
{
    uint32_t before = seen->count;
    if (!eat(at, "{"))
        return false;
    while (!eat(at, "}")) {
        struct graph_mesh_part part;
        if (eat(at, "?") || eat(at, ","))
            continue;
        if (!read_part(frame, m, at, &part))
            return false;
        for (uint32_t i = 0; i < seen->count; i++)
            if (overlap(seen->at[i], part))
                return false;
        if (axes >> part.axis & 1)
            vec_push(frame->arena, seen, part);
    }
    *out_n = (int)(seen->count - before);
    return true;
}

bool graph_mesh_set(const struct graph_frame *frame, const struct graph_mesh *m,
                    const char *text, uint16_t *out)
{
    int n;
    part_list parts = {0};
    *out = 0;
    text += strcspn(text, "{");
    if (!read_parts(frame, m, UINT16_MAX, &text, &parts, &n))
        return false;
    for (int i = 0; i < n; i++)
        *out |= (uint16_t)(1u << parts.at[i].axis);
    return true;
}

bool graph_sharding_read(const struct graph_frame *frame, const struct graph_mesh *m,
                         uint16_t axes, const char **at, struct graph_sharding *out)
{
    part_list all = {0}, more = {0};
    int n, first = 0;
    *out = (struct graph_sharding){0};
    if (!eat(at, "<") || !(*at = behind_mesh(*at)) || !eat(at, ",") || !eat(at, "["))
        return false;
    for (; !eat(at, "]"); eat(at, ",")) {
        if (out->rank == IR_MAX_RANK ||
            !read_parts(frame, m, axes, at, &all, &out->n[out->rank++]))
            return false;
        if (eat(at, "p")) // a priority
            *at += strspn(*at, "0123456789");
    }
    for (int d = 0; d < out->rank; first += out->n[d++])
        out->parts[d] = all.at + first;
    while (eat(at, ",")) {
        bool is_sum = eat(at, "unreduced");
        if ((!is_sum && !eat(at, "replicated")) || !eat(at, "=") ||
            !read_parts(frame, m, axes, at, &more, &n))
            return false;
        for (int i = 0; is_sum && i < n; i++)
            out->unreduced |= (uint16_t)(1u << more.at[more.count - 1 - (uint32_t)i].axis);
    }
    return eat(at, ">");
}

int64_t graph_sharding_of(const struct graph_sharding *s, int d)
{
    int64_t size = 1;
    for (int i = 0; i < s->n[d]; i++)
        size *= s->parts[d][i].size;
    return size;
}

// ---- groups by axes

const int64_t *graph_mesh_groups(const struct graph_frame *frame, const char *text,
                                 int64_t most, int64_t *out_count, int64_t *out_size)
{
    struct graph_mesh m;
    part_list along = {0};
    const char *mesh = strstr(text, "mesh = "), *at = strrchr(text, '[');
    int64_t lanes = 1, step[IR_MAX_AXES];
    mesh = mesh ? mesh + strlen("mesh = ") : "";
    if (!at || !graph_mesh_read(frame, &mesh, &m))
        return NULL;
    for (at += strcspn(at, "\"]"); *at == '"'; at += strcspn(at, "\"]")) {
        struct graph_mesh_part part;
        if (!read_part(frame, &m, &at, &part))
            return NULL;
        for (uint32_t i = 0; i < along.count; i++)
            if (overlap(along.at[i], part))
                return NULL;
        vec_push(frame->arena, &along, part);
    }
    for (size_t i = m.n; i-- > 0;) {
        step[i] = lanes;
        if (__builtin_mul_overflow(lanes, m.axes[i].size, &lanes) || lanes > most)
            return NULL;
    }
    *out_size = 1;
    for (uint32_t i = 0; i < along.count; i++)
        *out_size *= along.at[i].size;
    *out_count = lanes / *out_size;
    int64_t *of = arena_array(frame->arena, int64_t, lanes + 1),
            *group_of = arena_array(frame->arena, int64_t, lanes + 1), groups = 0;
    for (int64_t lane = 0; lane < lanes; lane++) {
        int64_t first = lane, k = 0; // of the group, the one that is first along the axes
        for (uint32_t i = 0; i < along.count; i++) {
            struct graph_mesh_part p = along.at[i];
            int64_t unit = step[p.axis] * p.step, digit = lane / unit % p.size;
            k = k * p.size + digit;
            first -= digit * unit;
        }
        if (first == lane)
            group_of[lane] = groups++;
        of[group_of[first] * *out_size + k] = lane;
    }
    return of;
}

// ---- axes around a trace

static int64_t axis_around(const char *name)
{
    const struct trace *t = trace_top();
    for (int i = 0; t->axes >> i; i++)
        if (t->axes >> i & 1 && !strcmp(t->module->axes.at[i].name, name))
            return i;
    return -1;
}

bool graph_mesh_around(const struct graph_mesh *m, int64_t *out)
{
    size_t k = 0;
    while (k < m->n && (out[k] = axis_around(m->axes[k].name)) >= 0)
        k++;
    return k == m->n;
}

int graph_axes_around(const struct graph_frame *frame, int64_t *out)
{
    const struct mlir_program *p = frame->in->program;
    size_t most = 0;
    for (uint32_t i = 0; i < p->n_attrs; i++) {
        struct graph_mesh m;
        int64_t axes[IR_MAX_AXES];
        if (strcmp(p->attrs[i].name, "sdy.mesh") != 0 ||
            !read_axes(frame, graph_mesh_text(p->attrs[i].attr), &m) || m.n <= most ||
            !graph_mesh_around(&m, axes))
            continue;
        most = m.n;
        memcpy(out, axes, most * sizeof *axes);
    }
    return (int)most;
}
