// SPDX-License-Identifier: Apache-2.0
// Result types of loops and branches: operands fit the parameters of the bodies, and a carry leaves
// a body with the type it came in with.
#include "ir/collective.h"
#include "ir/control.h"
#include "ir/infer.h"

static jot_status status_of(struct ir_type have, struct ir_type want)
{
    return have.dtype == want.dtype ? JOT_ERR_SHAPE : JOT_ERR_DTYPE;
}

static struct ir_type result_of(const struct ir_graph *f, int i)
{
    return ir_type_of(f, f->outputs.at[i]);
}

static struct ir_type *room_for(struct ir_infer *call, int n)
{
    call->n_out = n;
    if (n > 1)
        call->types = arena_array(call->b->module->arena, struct ir_type, n);
    return call->types;
}

// A number of operands of a kind, which is one of an attribute.
static bool count_of(struct ir_infer *call, enum ir_key key, int64_t most, int *out)
{
    int64_t n;
    if (!infer_int(call, key, &n))
        return false;
    if (n < 0 || n > most)
        return infer_fail(call, JOT_ERR_ARGUMENT, "%s of %d operands with %s %lld",
                          infer_name(call), call->n_in, ir_key_table[key].name, (long long)n);
    *out = (int)n;
    return true;
}

static bool check_count(struct ir_infer *call, const char *what, const char *side,
                        uint32_t have, int want, const char *law)
{
    if (have == (uint32_t)want)
        return true;
    return infer_fail(call, JOT_ERR_ARGUMENT, "the %s of %s has %u %ss, not %d: %s", what,
                      infer_name(call), have, side, want, law);
}

// kind and i name the operand: "carry 1".
static bool check_operand(struct ir_infer *call, const char *kind, int i, struct ir_type have,
                          const char *what, struct ir_type want)
{
    return ir_type_equal(have, want) ||
           infer_fail(call, status_of(have, want), "%s %d of %s is %s, and the %s takes %s",
                      kind, i, infer_name(call), infer_text(call, have), what,
                      infer_text(call, want));
}

static bool check_carry(struct ir_infer *call, int i, struct ir_type before,
                        struct ir_type after)
{
    return ir_type_equal(before, after) ||
           infer_fail(call, status_of(before, after),
                      "carry %d of %s is %s before the body and %s after it: convert it inside",
                      i, infer_name(call), infer_text(call, before), infer_text(call, after));
}

// Row i of the operand that is scanned, in *out.
static bool row_of(struct ir_infer *call, int i, struct ir_type whole, int64_t length,
                   struct ir_type *out)
{
    if (whole.rank == 0)
        return infer_fail(call, JOT_ERR_SHAPE, "operand %d to scan is %s: it needs an axis 0",
                          i, infer_text(call, whole));
    int64_t rows = ir_dims(call->b->module, whole)[0];
    if (rows != length)
        return infer_fail(call, JOT_ERR_SHAPE,
                          "operand %d to scan is %s: %lld rows along axis 0, and the length is "
                          "%lld",
                          i, infer_text(call, whole), (long long)rows, (long long)length);
    *out = ir_type_row(call->b->module, whole);
    return true;
}

bool infer_scan(struct ir_infer *call)
{
    struct ir_module *m = call->b->module;
    struct ir_graph *f;
    int n_consts, n_carry;
    int64_t length;
    if (!infer_functions(call, 1, &f) ||
        !count_of(call, IR_KEY_n_consts, call->n_in, &n_consts) ||
        !count_of(call, IR_KEY_n_carry, call->n_in - n_consts, &n_carry) ||
        !infer_int(call, IR_KEY_length, &length))
        return false;
    if (length < 0)
        return infer_fail(call, JOT_ERR_ARGUMENT, "scan of length %lld: it cannot be negative",
                          (long long)length);
    if (ir_attr_int_or(call->attrs, IR_KEY_checkpoint, 0) < IR_CHECKPOINT_RECOMPUTE)
        return infer_fail(call, JOT_ERR_ARGUMENT, "scan with checkpoint %lld",
                          (long long)ir_attr_int(call->attrs, IR_KEY_checkpoint));
    if (ir_attr_int_or(call->attrs, IR_KEY_lanes, 0) && n_carry)
        return infer_fail(call, JOT_ERR_ARGUMENT,
                          "scan of lanes with %d carries: lanes have none", n_carry);
    if (!check_count(call, "body", "parameter", f->n_params, call->n_in,
                     "consts, carries, one row of each operand to scan"))
        return false;
    int n_out = (int)f->outputs.count, first = n_consts + n_carry;
    if (n_out < n_carry)
        return check_count(call, "body", "result", f->outputs.count, n_carry,
                           "the carries, then one row of each result");
    for (int i = 0; i < call->n_in; i++) {
        struct ir_type have = infer_in(call, i);
        const char *kind = i < n_consts ? "const" : i < first ? "carry" : "row of operand";
        int number = i < n_consts ? i : i < first ? i - n_consts : i - first;
        if ((i >= first && !row_of(call, number, have, length, &have)) ||
            !check_operand(call, kind, number, have, "body", ir_type_of(f, (ir_id)i)))
            return false;
    }
    struct ir_type *types = room_for(call, n_out);
    for (int i = 0; i < n_out; i++) {
        struct ir_type t = result_of(f, i);
        if (i < n_carry && !check_carry(call, i, infer_in(call, n_consts + i), t))
            return false;
        if (i >= n_carry) {
            if (t.rank == IR_MAX_RANK)
                return infer_fail(call, JOT_ERR_SHAPE, "stacking %s: it has %d axes already",
                                  infer_text(call, t), IR_MAX_RANK);
            t = ir_type_stack(m, t, length);
            if (!infer_dims_fit(ir_dtype(t), t.rank, ir_dims(m, t)))
                return infer_fail(call, JOT_ERR_SHAPE, "%s is larger than 2^62 bytes",
                                  infer_text(call, t));
        }
        types[i] = t;
    }
    return true;
}

// Whether all lanes that exchange something in a body run it, where what lets them varies.
static bool check_exchanges(struct ir_infer *call, const struct ir_graph *body, uint16_t varies,
                            const char *what)
{
    const struct ir_node *n = body->exchanges & varies ? ir_exchange_find(body, varies) : NULL;
    if (!n)
        return true;
    struct ir_module *m = call->b->module;
    const char *place = ir_where_text(m, n->where);
    const char *axes = ir_axes_text(m, ir_over_set(n->attrs) & varies);
    return infer_fail(
        call, JOT_ERR_ARGUMENT,
        "%s%s%s in a body of %s: %s varies over %s, so not all lanes would come to it",
        ir_op_get((enum ir_op)n->op)->name, place ? " at " : "", place ? place : "",
        infer_name(call), what, axes);
}

// The test of a loop: bool[], or bool of the lanes of every carry.
static bool check_test(struct ir_infer *call, const struct ir_graph *test, int n_consts,
                       int batched)
{
    if (!check_count(call, "test", "result", test->outputs.count, 1, "whether to go on"))
        return false;
    struct ir_type t = result_of(test, 0);
    if (ir_dtype(t) != JOT_BOOL || t.rank != batched)
        return infer_fail(call, status_of(t, ir_type_with(t, JOT_BOOL)),
                          "the test of while gives %s, not bool with %d axes: reduce it first",
                          infer_text(call, t), batched);
    const int64_t *lanes = ir_dims(call->b->module, t);
    for (int i = n_consts; i < call->n_in; i++)
        if (t.varies & ~infer_in(call, i).varies)
            return infer_fail(call, JOT_ERR_ARGUMENT,
                              "carry %d of while is %s, and the number of trips varies as the "
                              "test does, %s",
                              i - n_consts, infer_text(call, infer_in(call, i)),
                              infer_text(call, t));
    for (int i = n_consts; i < call->n_in; i++) {
        struct ir_type c = infer_in(call, i);
        bool has_lanes = c.rank >= batched;
        for (int a = 0; has_lanes && a < batched; a++)
            has_lanes = infer_dims(call, i)[a] == lanes[a];
        if (!has_lanes)
            return infer_fail(call, JOT_ERR_SHAPE,
                              "carry %d of while is %s, without the lanes of the test, %s",
                              i - n_consts, infer_text(call, c), infer_text(call, t));
    }
    return true;
}

bool infer_while(struct ir_infer *call)
{
    static const char *const names[] = {"test", "body"};
    struct ir_graph *f[2];
    int n_consts, batched = 0;
    if (!infer_functions(call, 2, f) || !count_of(call, IR_KEY_n_consts, call->n_in, &n_consts))
        return false;
    if (ir_field_find(call->attrs, IR_KEY_batched) &&
        !count_of(call, IR_KEY_batched, IR_MAX_RANK, &batched))
        return false;
    if (ir_attr_int_or(call->attrs, IR_KEY_max_trips, 0) < 0)
        return infer_fail(call, JOT_ERR_ARGUMENT, "while of at most %lld trips",
                          (long long)ir_attr_int(call->attrs, IR_KEY_max_trips));
    if (ir_attr_int_or(call->attrs, IR_KEY_slots, 2) < 2)
        return infer_fail(call, JOT_ERR_ARGUMENT, "while with %lld slots: it needs 2",
                          (long long)ir_attr_int(call->attrs, IR_KEY_slots));
    int n_trips;
    const int64_t *trips = ir_attr_ints(call->attrs, IR_KEY_trips, &n_trips);
    if (n_trips > 1 || (n_trips && (trips[0] < 0 || trips[0] > IR_TRIPS_UNNAMED)))
        return infer_fail(call, JOT_ERR_ARGUMENT, "while whose trips are of no kind");
    for (int k = 0; k < 2; k++) {
        if (!check_count(call, names[k], "parameter", f[k]->n_params, call->n_in,
                         "consts, carries"))
            return false;
        for (int i = 0; i < call->n_in; i++)
            if (!check_operand(call, i < n_consts ? "const" : "carry",
                               i < n_consts ? i : i - n_consts, infer_in(call, i), names[k],
                               ir_type_of(f[k], (ir_id)i)))
                return false;
    }
    int n_out = call->n_in - n_consts;
    if (!check_count(call, "body", "result", f[1]->outputs.count, n_out, "the carries") ||
        !check_test(call, f[0], n_consts, batched) ||
        !check_exchanges(call, f[0], result_of(f[0], 0).varies, "the number of trips") ||
        !check_exchanges(call, f[1], result_of(f[0], 0).varies, "the number of trips"))
        return false;
    struct ir_type *types = room_for(call, n_out);
    for (int i = 0; i < n_out; i++) {
        types[i] = infer_in(call, n_consts + i);
        if (!check_carry(call, i, types[i], result_of(f[1], i)))
            return false;
    }
    return true;
}

static bool check_branch(struct ir_infer *call, int k, const struct ir_graph *f,
                         const struct ir_graph *first)
{
    struct strbuf name = strbuf_make(call->b->module->arena);
    strbuf_printf(&name, "branch %d", k);
    if (!check_count(call, name.text, "parameter", f->n_params, call->n_in - 1,
                     "the operands after the index") ||
        !check_count(call, name.text, "result", f->outputs.count, (int)first->outputs.count,
                     "as many as branch 0"))
        return false;
    for (int i = 1; i < call->n_in; i++)
        if (!check_operand(call, "operand", i, infer_in(call, i), name.text,
                           ir_type_of(f, (ir_id)i - 1)))
            return false;
    for (int i = 0; i < (int)f->outputs.count; i++) {
        struct ir_type t = result_of(f, i), want = result_of(first, i);
        if (!ir_type_equal(t, want))
            return infer_fail(call, status_of(t, want),
                              "result %d of branch %d of cond is %s, and of branch 0 %s", i, k,
                              infer_text(call, t), infer_text(call, want));
    }
    return true;
}

bool infer_cond(struct ir_infer *call)
{
    int n;
    ir_attr_ints(call->attrs, IR_KEY_functions, &n);
    struct ir_graph **f = arena_array(call->b->module->arena, struct ir_graph *, n + 1);
    if (n == 0)
        return infer_fail(call, JOT_ERR_ARGUMENT, "cond without branches: it needs one");
    if (!infer_functions(call, n, f))
        return false;
    if (call->n_in == 0)
        return infer_fail(call, JOT_ERR_ARGUMENT,
                          "cond without operands: the first is the "
                          "index");
    struct ir_type index = infer_in(call, 0);
    if (ir_dtype(index) != JOT_I32 || index.rank != 0)
        return infer_fail(call, index.rank ? JOT_ERR_SHAPE : JOT_ERR_DTYPE,
                          "the index of cond is %s, not i32[]", infer_text(call, index));
    for (int k = 0; k < n; k++)
        if (!check_branch(call, k, f[k], f[0]) ||
            !check_exchanges(call, f[k], index.varies, "which branch is taken"))
            return false;
    struct ir_type *types = room_for(call, (int)f[0]->outputs.count);
    for (int i = 0; i < call->n_out; i++) {
        types[i] = result_of(f[0], i);
        if (index.varies & ~types[i].varies)
            return infer_fail(call, JOT_ERR_ARGUMENT,
                              "result %d of branches is %s, and which one is taken varies: %s",
                              i, infer_text(call, types[i]), infer_text(call, index));
    }
    return true;
}
