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

// A name in quotes, of letters, digits and '_', and the text behind it; NULL for anything else.
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

static int64_t lanes_of(const struct graph_mesh *m)
{
    int64_t n = 1;
    for (size_t i = 0; i < m->n_names; i++)
        if (__builtin_mul_overflow(n, m->names[i].axis.size, &n))
            return 0;
    return n;
}

// ", device_ids=[1, 0]>", or ", device_ids = dense<[1, 0]> ...", a permutation; nothing is the devices in order.
static bool read_devices(const struct graph_frame *frame, const char *at,
                         struct graph_mesh *out)
{
    static const char begin[] = "], device_ids";
    int64_t n = lanes_of(out);
    if (strncmp(at, begin, strlen(begin)) != 0)
        return n > 0;
    at += strlen(begin);
    at += strcspn(at, "[");
    // A list that is written out is as long as the devices are many.
    if (n < 1 || (size_t)n > strlen(at))
        return false;
    bool *seen = arena_array(frame->arena, bool, n), is_straight = true;
    int64_t *devices = arena_array(frame->arena, int64_t, n);
    for (int64_t i = 0; i < n; i++) {
        char *end;
        devices[i] = *at ? strtoll(at + 1, &end, 10) : -1;
        if (devices[i] < 0 || devices[i] >= n || seen[devices[i]])
            return false;
        seen[devices[i]] = true;
        is_straight = is_straight && devices[i] == i;
        at = end;
    }
    out->devices = is_straight ? NULL : devices;
    return *at == ']';
}

// <["x"=2, "y"=4]>, or <axes = [<name = "x", size = 2>, ...]>: the axes as they are written.
static bool read_names(const struct graph_frame *frame, const char *at, struct graph_mesh *out)
{
    *out = (struct graph_mesh){0};
    for (at += strcspn(at, "\"]"); *at == '"'; at += strcspn(at, "\"]")) {
        const char *name = read_name(frame, &at);
        at += name ? strcspn(at, "=]") : 0;
        int64_t size = name && *at == '=' ? strtoll(at + 1, NULL, 10) : 0;
        if (size < 1 || out->n_names == IR_MAX_AXES)
            return false;
        out->names[out->n_names++].axis = (jot_mesh_axis){name, size};
    }
    return out->n_names > 0 && read_devices(frame, at, out);
}

static bool same_names(const struct graph_mesh *a, const struct graph_mesh *b)
{
    size_t i = 0;
    while (i < a->n_names && i < b->n_names && a->names[i].axis.size == b->names[i].axis.size &&
           !strcmp(a->names[i].axis.name, b->names[i].axis.name))
        i++;
    return i == a->n_names && i == b->n_names;
}

static bool same_devices(const struct graph_mesh *a, const struct graph_mesh *b)
{
    int64_t n = lanes_of(a);
    return n == lanes_of(b) && !a->devices == !b->devices &&
           (!a->devices || !memcmp(a->devices, b->devices, sizeof *a->devices * (size_t)n));
}

typedef VEC(int64_t) step_list;

// Puts a step among others, the largest first, if it is none of them.
static void add_step(const struct graph_frame *frame, step_list *steps, int64_t step)
{
    uint32_t i = 0;
    while (i < steps->count && steps->at[i] > step)
        i++;
    if (i < steps->count && steps->at[i] == step)
        return;
    vec_push(frame->arena, steps, step);
    for (uint32_t k = steps->count - 1; k > i; k--)
        steps->at[k] = steps->at[k - 1];
    steps->at[i] = step;
}

// By how many devices those next along the axes are apart, and all of them.
static void add_steps(const struct graph_frame *frame, const struct graph_mesh *m,
                      step_list *steps)
{
    int64_t step = 1;
    add_step(frame, steps, step);
    for (size_t i = m->n_names; i-- > 0;)
        add_step(frame, steps, step *= m->names[i].axis.size);
}

// Of several meshes: an axis from each step to the next, of those that divide all larger ones and are multiples of
// all smaller ones.
static bool split_axes(const struct graph_frame *frame, const step_list *steps,
                       struct graph_mesh *out)
{
    int64_t from = steps->at[0];
    for (uint32_t i = 1; i < steps->count; i++) {
        int64_t to = steps->at[i];
        bool is_common = true;
        for (uint32_t k = 0; k < steps->count; k++)
            is_common = is_common && (k < i ? steps->at[k] % to : to % steps->at[k]) == 0;
        if (!is_common)
            continue;
        if (out->n == IR_MAX_AXES)
            return false;
        struct strbuf name = strbuf_make(frame->arena);
        strbuf_printf(&name, "by_%lld", (long long)to);
        out->axes[out->n++] = (jot_mesh_axis){name.text, from / to};
        from = to;
    }
    return out->n > 0;
}

static bool read_axes(const struct graph_frame *frame, const char *at, struct graph_mesh *out)
{
    const struct mlir_program *p = frame->in->program;
    bool is_alone = true;
    step_list steps = {0};
    if (!read_names(frame, at, out))
        return false;
    add_steps(frame, out, &steps);
    for (uint32_t i = 0; i < p->n_attrs; i++) {
        struct graph_mesh m;
        if (strcmp(p->attrs[i].name, "sdy.mesh") != 0 ||
            !read_names(frame, graph_mesh_text(p->attrs[i].attr), &m) || !same_devices(&m, out))
            continue;
        is_alone = is_alone && same_names(&m, out);
        add_steps(frame, &m, &steps);
    }
    int64_t step = 1;
    for (size_t i = out->n_names; i-- > 0; step *= out->names[i].axis.size)
        out->names[i].step = step;
    if (!is_alone)
        return split_axes(frame, &steps, out);
    for (; out->n < out->n_names; out->n++)
        out->axes[out->n] = out->names[out->n].axis;
    return true;
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

static const struct graph_mesh_name *find_name(const struct graph_mesh *m, const char *name)
{
    for (size_t i = 0; i < m->n_names; i++)
        if (!strcmp(m->names[i].axis.name, name))
            return &m->names[i];
    return NULL;
}

typedef VEC(struct graph_mesh_part) part_list;

// Of devices along a named axis that are `step` apart, `size` of them: the parts of axes that it is made of.
static bool add_parts(const struct graph_frame *frame, const struct graph_mesh *m,
                      const struct graph_mesh_name *name, int64_t step, int64_t size,
                      part_list *out)
{
    int64_t below = lanes_of(m), left = size;
    step *= name->step;
    for (int i = 0; i < (int)m->n; i++) {
        int64_t above = below;
        below /= m->axes[i].size;
        int64_t from = step > below ? step : below,
                to = step * size < above ? step * size : above;
        if (from >= to)
            continue;
        if (from % below || to % from || above % to)
            return false;
        vec_push(frame->arena, out, ((struct graph_mesh_part){i, from / below, to / from}));
        left /= to / from;
    }
    return left == 1;
}

// "x", or a part of it: "x":(1)2 and "x", sub_axis_info = (1)2, which is 2 behind 1.
static bool read_part(const struct graph_frame *frame, const struct graph_mesh *m,
                      const char **at, part_list *out)
{
    static const char *const forms[] = {":(", ", sub_axis_info = ("};
    const char *name = read_name(frame, at);
    const struct graph_mesh_name *axis = name ? find_name(m, name) : NULL;
    if (!axis)
        return false;
    int64_t all = axis->axis.size, before = 1, size = all;
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
    return before >= 1 && size >= 1 && all % before == 0 && all / before % size == 0 &&
           add_parts(frame, m, axis, all / before / size, size, out);
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

// Whether none of the parts from number `first` on is in those before.
static bool are_new(const part_list *parts, uint32_t first)
{
    for (uint32_t i = first; i < parts->count; i++)
        for (uint32_t k = 0; k < first; k++)
            if (overlap(parts->at[k], parts->at[i]))
                return false;
    return true;
}

// {"x", "y":(1)2, ?}, of the axes in the set, none of which is in `seen`, to which they are added.
static bool read_parts(const struct graph_frame *frame, const struct graph_mesh *m,
                       uint16_t axes, const char **at, part_list *seen, int *out_n)
{
    uint32_t before = seen->count;
    if (!eat(at, "{"))
        return false;
    while (!eat(at, "}")) {
        part_list parts = {0};
        uint32_t first = seen->count;
        if (eat(at, "?") || eat(at, ","))
            continue;
        if (!read_part(frame, m, at, &parts))
            return false;
        for (uint32_t i = 0; i < parts.count; i++)
            if (axes >> parts.at[i].axis & 1)
                vec_push(frame->arena, seen, parts.at[i]);
        if (!are_new(seen, first))
            return false;
    }
    *out_n = (int)(seen->count - before);
    return true;
}

// The axes of those parts as a set of axes; false where they are not all of each.
static bool set_of(const struct graph_mesh *m, const struct graph_mesh_part *parts, int n,
                   uint16_t *out)
{
    int64_t size[IR_MAX_AXES] = {0};
    for (int i = 0; i < n; i++) {
        int64_t *of = &size[parts[i].axis];
        *of = (*of ? *of : 1) * parts[i].size;
        *out |= (uint16_t)(1u << parts[i].axis);
    }
    for (size_t k = 0; k < m->n; k++)
        if (size[k] && size[k] != m->axes[k].size)
            return false;
    return true;
}

bool graph_mesh_set(const struct graph_frame *frame, const struct graph_mesh *m,
                    const char *text, uint16_t *out)
{
    int n;
    part_list parts = {0};
    *out = 0;
    text += strcspn(text, "{");
    return read_parts(frame, m, UINT16_MAX, &text, &parts, &n) && set_of(m, parts.at, n, out);
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
        if (is_sum && n && !set_of(m, more.at + more.count - n, n, &out->unreduced))
            return false;
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
        uint32_t first = along.count;
        if (!read_part(frame, &m, &at, &along) || !are_new(&along, first))
            return NULL;
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
        of[group_of[first] * *out_size + k] = m.devices ? m.devices[lane] : lane;
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

int graph_axes_around(const struct graph_frame *frame, int64_t *out,
                      const int64_t **out_devices)
{
    const struct mlir_program *p = frame->in->program;
    size_t most = 0;
    *out_devices = NULL;
    for (uint32_t i = 0; i < p->n_attrs; i++) {
        struct graph_mesh m;
        int64_t axes[IR_MAX_AXES];
        if (strcmp(p->attrs[i].name, "sdy.mesh") != 0 ||
            !read_axes(frame, graph_mesh_text(p->attrs[i].attr), &m) || m.n <= most ||
            !graph_mesh_around(&m, axes))
            continue;
        most = m.n;
        memcpy(out, axes, most * sizeof *axes);
        *out_devices = m.devices;
    }
    return (int)most;
}
