// SPDX-License-Identifier: Apache-2.0
// Attributes of portable bytecode that speak of a mesh of devices, as the text that prints them:
// those of the dialect sdy, which say how arrays lie on it, and those of VHLO, along which of its
// axes a collective goes.
//
//     #sdy.sharding<@mesh, [{"x", ?}p1, {}], replicated={"y"}>
//     #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x">]>
//
// Each begins with a number that says what it is, and holds others.
#include "interop/bytecode.h"

#include "base/strbuf.h"
#include "interop/vhlo.h"
#include "interop/write_text.h"

#include <inttypes.h>

enum {
    SDY_MANUAL_AXES = 0,
    SDY_MESH_AXIS = 1,
    SDY_MESH = 2,
    SDY_SUB_AXIS = 3,
    SDY_AXIS = 4,
    SDY_DIMENSION = 5,
    SDY_SHARDING = 6,
    SDY_SHARDINGS = 7,
    SDY_SHARDING_UNREDUCED = 15,
    SDY_SHARDINGS_UNREDUCED = 16,
};

struct mesh_text {
    struct bytecode *b;
    struct bytes *s;
    struct strbuf text;
};

// The text of an attribute in another one.
static const char *inner_text(const char *text)
{
    static const char sharding[] = "#sdy.sharding", sdy[] = "#sdy.";
    if (!strncmp(text, sharding, strlen(sharding)))
        return text + strlen(sharding);
    return strncmp(text, sdy, strlen(sdy)) ? text : text + strlen(sdy);
}

static void add_held(struct mesh_text *p, const struct mlir_attr *a)
{
    if (!a || !bytecode_spend(p->b, a->n))
        return;
    if (a->kind == MLIR_STRING)
        write_string(&p->text, a->text, a->n);
    else if (a->kind == MLIR_SYMBOL)
        write_symbol(&p->text, a->text);
    else if (a->kind == MLIR_OPAQUE)
        strbuf_add(&p->text, inner_text(a->text));
    else
        bytecode_fail(p->b, p->s->at, "what speaks of a mesh holds something else");
}

static void add_attr(struct mesh_text *p, uint64_t index)
{
    add_held(p, bytecode_attr(p->b, index));
}

static void add_name(struct mesh_text *p)
{
    const struct bytecode_string *name = bytecode_string(p->b, p->s);
    if (name && bytecode_spend(p->b, name->n))
        write_string(&p->text, name->text, name->n);
}

// Attributes, or numbers; nothing where there are none and it is optional.
static void add_list(struct mesh_text *p, bool is_numbers, bool is_optional, const char *open,
                     const char *close)
{
    uint64_t n = bytecode_count(p->b, p->s, 1);
    if (!n && is_optional)
        return;
    strbuf_add(&p->text, open);
    for (uint64_t i = 0; i < n && !p->b->status; i++) {
        strbuf_add(&p->text, i ? ", " : "");
        if (is_numbers)
            strbuf_printf(&p->text, "%" PRId64, bytecode_signed(p->b, p->s));
        else
            add_attr(p, bytecode_number(p->b, p->s));
    }
    strbuf_add(&p->text, close);
}

// A part of an axis: (pre)size.
static void add_sub_axis(struct mesh_text *p)
{
    strbuf_printf(&p->text, "(%" PRId64 ")", bytecode_signed(p->b, p->s));
    strbuf_printf(&p->text, "%" PRId64, bytecode_signed(p->b, p->s));
}

static void add_axis(struct mesh_text *p)
{
    add_name(p);
    uint64_t part = bytecode_number(p->b, p->s);
    if (part & 1) {
        strbuf_add(&p->text, ":");
        add_attr(p, part >> 1);
    }
}

static void add_dimension(struct mesh_text *p)
{
    add_list(p, false, false, "{", "");
    bool is_closed = bytecode_byte(p->b, p->s);
    bool is_empty = p->text.text[p->text.length - 1] == '{';
    strbuf_add(&p->text, is_closed ? "}" : is_empty ? "?}" : ", ?}");
    uint64_t priority = bytecode_number(p->b, p->s);
    if (priority & 1)
        strbuf_printf(&p->text, "p%" PRIu64, priority >> 1);
}

static void add_sharding(struct mesh_text *p, bool has_unreduced)
{
    strbuf_add(&p->text, "#sdy.sharding<");
    add_attr(p, bytecode_number(p->b, p->s));
    add_list(p, false, false, ", [", "]");
    add_list(p, false, true, ", replicated={", "}");
    if (has_unreduced)
        add_list(p, false, true, ", unreduced={", "}");
    strbuf_add(&p->text, ">");
}

const char *bytecode_sdy_text(struct bytecode *b, struct bytes *s)
{
    struct mesh_text p = {b, s, strbuf_make(b->arena)};
    strbuf_add(&p.text, "");
    switch (bytecode_number(b, s)) {
    case SDY_MANUAL_AXES:
        add_list(&p, false, false, "#sdy<manual_axes{", "}>");
        break;
    case SDY_MESH_AXIS:
        add_name(&p);
        strbuf_printf(&p.text, "=%" PRId64, bytecode_signed(b, s));
        break;
    case SDY_MESH:
        add_list(&p, false, false, "#sdy.mesh<[", "]");
        add_list(&p, true, true, ", device_ids=[", "]");
        strbuf_add(&p.text, ">");
        break;
    case SDY_SUB_AXIS:
        add_sub_axis(&p);
        break;
    case SDY_AXIS:
        add_axis(&p);
        break;
    case SDY_DIMENSION:
        add_dimension(&p);
        break;
    case SDY_SHARDING:
        add_sharding(&p, false);
        break;
    case SDY_SHARDING_UNREDUCED:
        add_sharding(&p, true);
        break;
    case SDY_SHARDINGS:
    case SDY_SHARDINGS_UNREDUCED:
        add_list(&p, false, false, "#sdy.sharding_per_value<[", "]>");
        break;
    default:
        return "#sdy";
    }
    return p.text.text;
}

// ---- VHLO ----

static void add_vhlo_axes(struct mesh_text *p)
{
    const struct mlir_attr *list = bytecode_attr(p->b, bytecode_number(p->b, p->s));
    if (!list || list->kind != MLIR_ARRAY) {
        bytecode_fail(p->b, p->s->at, "axes that are no list");
        return;
    }
    for (size_t i = 0; i < list->n; i++) {
        strbuf_add(&p->text, i ? ", " : "");
        add_held(p, list->parts[i]);
    }
}

// A name and a size.
static void add_vhlo_mesh_axis(struct mesh_text *p)
{
    strbuf_add(&p->text, "<name = ");
    add_attr(p, bytecode_number(p->b, p->s));
    strbuf_printf(&p->text, ", size = %" PRId64 ">", bytecode_signed(p->b, p->s));
}

// The axes, and the devices where they are in another order than their own.
static void add_vhlo_mesh(struct mesh_text *p)
{
    strbuf_add(&p->text, "#stablehlo.mesh<axes = [");
    add_vhlo_axes(p);
    strbuf_add(&p->text, "]");
    uint64_t ids = bytecode_number(p->b, p->s);
    const struct mlir_attr *a = ids & 1 ? bytecode_attr(p->b, ids >> 1) : NULL;
    if (a && a->kind == MLIR_DENSE && bytecode_spend(p->b, a->n)) {
        strbuf_add(&p->text, ", device_ids = ");
        write_attr(&p->text, NULL, "device_ids", a);
    }
    strbuf_add(&p->text, ">");
}

// The mesh is named, or stands here.
static void add_vhlo_groups(struct mesh_text *p)
{
    const struct mlir_attr *mesh = bytecode_attr(p->b, bytecode_number(p->b, p->s));
    strbuf_add(&p->text, "#stablehlo.replica_group_mesh_axes<mesh = ");
    if (mesh && mesh->kind == MLIR_STRING)
        write_symbol(&p->text, mesh->text);
    else
        add_held(p, mesh);
    strbuf_add(&p->text, ", axes = [");
    add_vhlo_axes(p);
    strbuf_add(&p->text, "]>");
}

const char *bytecode_mesh_text(struct bytecode *b, struct bytes *s, uint64_t code)
{
    struct mesh_text p = {b, s, strbuf_make(b->arena)};
    switch (code) {
    case VHLO_ATTR_SUB_AXIS:
        add_sub_axis(&p);
        break;
    case VHLO_ATTR_AXIS_REF:
        strbuf_add(&p.text, "#stablehlo.axis_ref<name = ");
        add_attr(&p, bytecode_number(b, s));
        if (bytecode_number(b, s)) {
            strbuf_add(&p.text, ", sub_axis_info = ");
            add_attr(&p, bytecode_number(b, s));
        }
        strbuf_add(&p.text, ">");
        break;
    case VHLO_ATTR_GROUP_AXES:
        add_vhlo_groups(&p);
        break;
    case VHLO_ATTR_MESH_AXIS:
        add_vhlo_mesh_axis(&p);
        break;
    case VHLO_ATTR_MESH:
        add_vhlo_mesh(&p);
        break;
    }
    return p.text.text;
}
