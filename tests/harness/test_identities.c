// SPDX-License-Identifier: Apache-2.0
// What simplification does to every elementwise op when one operand is a constant: for every
// dtype, every constant that an identity may speak of, and operands full of special values the
// bits stay what they are.  So they do in machine code.
#include "harness/native.h"
#include "passes/pass_support.h"

static const double numbers[] = {0,        -0.0,      1,   -1,        2,    0.5,
                                 INFINITY, -INFINITY, NAN, 0x1p-1040, 1e300};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

static double number(jot_dtype d, int i)
{
    double x = numbers[i];
    if (dtype_is_inexact(d))
        return x;
    x = isfinite(x) && fabs(x) < 10 ? x : 5;
    return dtype_is_signed(d) ? x : fabs(x);
}

// All the numbers; of complex ones every pair of parts.
static struct ir_tensor specials(jot_dtype d)
{
    bool is_complex = dtype_is_complex(d);
    int64_t n = is_complex ? NUMBERS * NUMBERS : NUMBERS;
    struct ir_tensor x = zeros(type_of_dims(d, 1, &n));
    jot_dtype part = dtype_real(d);
    size_t size = jot_dtype_size(part);
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k <= is_complex; k++) {
            struct ir_builder b = ir_builder_make(module, "number", IR_BUILD_PLAIN);
            int which = (int)(k ? i / NUMBERS : i % NUMBERS);
            ir_id v = ir_scalar(&b, part, number(part, which));
            const void *bytes =
                ir_field_find(ir_node_of(b.graph, v)->attrs, IR_KEY_data)->bytes;
            memcpy((char *)x.data + (size_t)(is_complex ? 2 * i + k : i) * size, bytes, size);
        }
    return x;
}

// op of type d, with constants for the operands in the mask.
static uint32_t with_constants(enum ir_op op, jot_dtype d, unsigned mask, int constant,
                               struct ir_type type)
{
    struct ir_builder b = ir_builder_make(module, "f", IR_BUILD_PLAIN);
    int n = ir_op_get(op)->in;
    bool is_choice = op == IR_select;
    ir_id v = ir_param(&b, type), in[4];
    for (int i = 0; i < n; i++)
        in[i] = mask >> i & 1         ? ir_scalar(&b, is_choice && i == 0 ? JOT_BOOL : d,
                                                  number(is_choice && i == 0 ? JOT_BOOL : d, constant))
                : is_choice && i == 0 ? ir_ne(&b, v, ir_scalar(&b, d, 0))
                                      : v;
    ir_output(&b, ir_build(&b, op, n, in, NULL));
    return done(&b);
}

// Simplified and not.
static void check(uint32_t f, struct ir_tensor x)
{
    f = pass_support(module, f);
    uint32_t s = pass_simplify(module, f);
    struct ir_tensor want = *evaluate(f, &x), got = *evaluate(s, &x);
    struct strbuf report = strbuf_make(module->arena);
    ck_assert_msg(native_same(module, got, want, 0, &report), "%s\n%s%s", report.text,
                  ir_graph_text(graph(f)), ir_graph_text(graph(s)));
}

// All ops of type d, each with every constant; with n in machine code, otherwise simplified.
static void check_all(jot_dtype d, const struct ir_tensor *x, struct native *n)
{
    for (int op = 0; op < IR_OP_COUNT; op++) {
        const struct ir_op_info *info = ir_op_get((enum ir_op)op);
        if (info->op_class != IR_CLASS_MAP || info->in < 2 || op == IR_threefry2x32 ||
            !opcase_takes((enum ir_op)op, d))
            continue;
        for (unsigned mask = 1; mask + 1 < 1u << info->in; mask++)
            for (int constant = 0; constant < NUMBERS; constant++) {
                uint32_t f = with_constants((enum ir_op)op, d, mask, constant, x->type);
                if (n)
                    native_add(n, info->name, f, x, &(struct native_how){0});
                else
                    check(f, *x);
            }
    }
}

START_TEST(constants_keep_the_bits)
{
    struct ir_tensor x = specials((jot_dtype)_i);
    check_all((jot_dtype)_i, &x, NULL);
}
END_TEST

START_TEST(machine_code)
{
    static const jot_dtype dtypes[] = {JOT_F32, JOT_F64};
    struct ir_tensor x = specials(dtypes[_i]);
    struct strbuf report = strbuf_make(module->arena);
    struct native n = native_make(module, &report);
    check_all(dtypes[_i], &x, &n);
    int failures = native_finish(&n);
    ck_assert_msg(failures == 0, "%.2000s", report.text);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, constants_keep_the_bits, 0, DTYPE_COUNT);
    tcase_add_loop_test(t, machine_code, 0, 2);
}

int main(void) { return support_run("identities", add_tests); }
