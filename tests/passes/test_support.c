// SPDX-License-Identifier: Apache-2.0
// Zeros of derivatives: random programs with choices, clips, extrema, indices and loops, at
// points full of zeros, infinities and NaN, against dual numbers that follow the path that is
// taken.
//
// A program is steps over vectors of N numbers: some, a loop, and one of two branches.  The
// reference runs it element by element.  The derivative of an element in one input is none, or
// a number: a product of none and anything is none, a choice has that of what it takes, a sum
// of none and a number is the number.  It knows no graph.
#include "ir/control.h"
#include "ir/indexing.h"
#include "pass_support.h"

enum { N = 3, STEPS = 5, TRIPS = 2, POINTS = 6, PROGRAMS = 300 };

enum step_kind {
    // of each element
    SQRT,
    LOG,
    EXP,
    SQUARE,
    RECIPROCAL,
    NEG,
    DOUBLE_IT,
    ABS,
    ADD,
    SUB,
    MUL,
    DIV,
    MAX,
    CHOOSE_POSITIVE,
    CHOOSE_FIRST,
    CLIP,
    // of indices
    REVERSE,
    SHIFT,
    TAKE,
    PUT,
    ADD_AT,
    // of all
    SUM,
    RUNNING_SUM,
    LARGEST,
    KINDS,
};

// Operands are 0, the input, 1, what is carried, and results of steps before from 2 on.
struct step {
    enum step_kind kind;
    int x, y;
};

struct program {
    struct step before[STEPS], body[STEPS], branch[2][STEPS];
};

// A number and its derivative, which there may be none of, and the size of the terms that make it.
struct dual {
    double v, d, size;
    bool has;
};

// -- The reference ----------------------------------------------------------------------------

static struct dual scaled(struct dual x, double v, double slope)
{
    return x.has ? (struct dual){v, x.d * slope, x.size * fabs(slope), true}
                 : (struct dual){.v = v};
}

static struct dual divided(struct dual x, double v, double by)
{
    return x.has ? (struct dual){v, x.d / by, x.size / fabs(by), true} : (struct dual){.v = v};
}

static struct dual plus(struct dual x, struct dual y)
{
    struct dual sum = x.has ? x : y;
    if (x.has && y.has) {
        sum.d = x.d + y.d;
        sum.size = x.size + y.size;
    }
    sum.v = x.v + y.v;
    return sum;
}

static struct dual times(struct dual x, struct dual y)
{
    struct dual a = scaled(x, 0, y.v), b = scaled(y, 0, x.v), sum = plus(a, b);
    sum.v = x.v * y.v;
    return sum;
}

static const struct dual none = {0};

// NaN where one is; 0 is more than -0.
static double most_of(double x, double y)
{
    if (isnan(x) || isnan(y))
        return NAN;
    return x > y || (x == y && signbit(y)) ? x : y;
}

static struct dual larger(struct dual x, struct dual y)
{
    double most = most_of(x.v, y.v);
    struct dual a = x.v == most ? scaled(x, 0, y.v == most ? 0.5 : 1) : none;
    struct dual b = y.v == most ? scaled(y, 0, x.v == most ? 0.5 : 1) : none;
    struct dual sum = plus(a, b);
    sum.v = most;
    return sum;
}

static struct dual elementwise(enum step_kind kind, struct dual x, struct dual y, int i)
{
    double r;
    switch (kind) {
    case SQRT:
        r = sqrt(x.v);
        return scaled(x, r, 0.5 / r);
    case LOG:
        return divided(x, log(x.v), x.v);
    case EXP:
        r = exp(x.v);
        return scaled(x, r, r);
    case SQUARE:
        return scaled(x, x.v * x.v, x.v + x.v);
    case RECIPROCAL:
        return scaled(x, 1 / x.v, -1 / (x.v * x.v));
    case NEG:
        return scaled(x, -x.v, -1);
    case DOUBLE_IT:
        return scaled(x, 2 * x.v, 2);
    case ABS:
        return scaled(x, fabs(x.v), x.v >= 0 ? 1 : -1);
    case ADD:
        return plus(x, y);
    case SUB:
        return plus(x, scaled(y, -y.v, -1));
    case MUL:
        return times(x, y);
    case DIV: {
        struct dual a = divided(x, 0, y.v);
        struct dual b = scaled(scaled(y, 0, -x.v), 0, 1 / (y.v * y.v)), sum = plus(a, b);
        sum.v = x.v / y.v;
        return sum;
    }
    case MAX:
        return larger(x, y);
    case CHOOSE_POSITIVE:
        return x.v > 0 ? x : y;
    case CHOOSE_FIRST:
        return i == 0 ? x : y;
    case CLIP:
        r = most_of(x.v, 0);
        r = r > 1 ? 1 : r;
        return x.v > 0 && x.v < 1 ? x : (struct dual){.v = r};
    default:
        abort();
    }
}

static void whole(enum step_kind kind, const struct dual *x, const struct dual *y,
                  struct dual *out)
{
    struct dual sum = none, most = x[0];
    int winners = 0;
    for (int i = 0; i < N; i++)
        most.v = most_of(most.v, x[i].v);
    for (int i = 0; i < N; i++)
        winners += isnan(most.v) || x[i].v == most.v;
    struct dual shared = none;
    for (int i = 0; i < N; i++)
        if (isnan(most.v) || x[i].v == most.v)
            shared = plus(shared, x[i]);
    shared = divided(shared, most.v, isnan(most.v) ? NAN : winners);
    for (int i = 0; i < N; i++) {
        sum = i ? plus(sum, x[i]) : x[i];
        switch (kind) {
        case REVERSE:
            out[i] = x[N - 1 - i];
            break;
        case SHIFT:
            out[i] = i ? x[i - 1] : none;
            break;
        case TAKE:
            out[i] = x[i == 2 ? 0 : i];
            break;
        case PUT:
            out[i] = i == 1 ? y[0] : x[i];
            break;
        case ADD_AT:
            out[i] = i == 0 ? plus(plus(x[0], y[0]), y[2]) : i == 1 ? plus(x[1], y[1]) : x[i];
            break;
        case RUNNING_SUM:
            out[i] = sum;
            break;
        case LARGEST:
            out[i] = shared;
            break;
        default:
            break;
        }
    }
    for (int i = 0; i < N && kind == SUM; i++)
        out[i] = sum;
}

typedef struct dual vector[N];

// Set by numbers so far from 1 that their products overflow in one order and not in another.
static bool is_extreme;

static void look_at(const vector x)
{
    for (int i = 0; i < N; i++) {
        double numbers[] = {fabs(x[i].v), fabs(x[i].d)};
        for (int k = 0; k < 2; k++)
            is_extreme |= (numbers[k] > 1e50 && numbers[k] < INFINITY) ||
                          (numbers[k] > 0 && numbers[k] < 1e-50);
    }
}

static void run_steps(const struct step *steps, vector x, vector carry, struct dual *out)
{
    vector at[STEPS + 2];
    memcpy(at[0], x, sizeof at[0]);
    memcpy(at[1], carry, sizeof at[1]);
    for (int k = 0; k < STEPS; k++) {
        const struct step *t = &steps[k];
        for (int i = 0; i < N && t->kind < REVERSE; i++)
            at[k + 2][i] = elementwise(t->kind, at[t->x][i], at[t->y][i], i);
        if (t->kind >= REVERSE)
            whole(t->kind, at[t->x], at[t->y], at[k + 2]);
        look_at(at[k + 2]);
        for (int i = 0; i < N && t->kind == SUM; i++)
            is_extreme |= at[k + 2][i].v == 0; // of either sign, as the order has it
    }
    memcpy(out, at[STEPS + 1], sizeof at[0]);
}

static void run(const struct program *p, vector x, int branch, struct dual *out)
{
    vector carry;
    run_steps(p->before, x, x, carry);
    for (int i = 0; i < TRIPS; i++)
        run_steps(p->body, x, carry, carry);
    run_steps(p->branch[branch], x, carry, out);
}

// -- The graph --------------------------------------------------------------------------------

static const struct ir_gather by_rows = {.n_collapsed = 1,
                                         .collapsed_dims = (const int64_t[]){0},
                                         .n_map = 1,
                                         .index_map = (const int64_t[]){0},
                                         .sizes = (const int64_t[]){1},
                                         .mode = IR_MODE_CLIP};

static ir_id indices(struct ir_builder *b)
{
    return ir_const(b, type_of_dims(JOT_I32, 2, (int64_t[]){N, 1}), (const int32_t[]){0, 1, 0});
}

static ir_id number(struct ir_builder *b, double x) { return ir_scalar(b, JOT_F64, x); }

static ir_id over_all(struct ir_builder *b, enum ir_op op, ir_id x)
{
    ir_id y = ir_reduce(b, op, x, 1, (int64_t[]){0});
    return ir_broadcast_in_dim(b, y, 1, (int64_t[]){N}, NULL);
}

static ir_id first(struct ir_builder *b)
{
    ir_id i = ir_iota(b, type_of_dims(JOT_I32, 1, (int64_t[]){N}), 0);
    return ir_eq(b, i, ir_scalar_int(b, JOT_I32, 0));
}

static ir_id build_step(struct ir_builder *b, enum step_kind kind, ir_id x, ir_id y)
{
    const int64_t zero = 0, one = 1;
    switch (kind) {
    case SQRT:
        return ir_sqrt(b, x);
    case LOG:
        return ir_log(b, x);
    case EXP:
        return ir_exp(b, x);
    case SQUARE:
        return ir_mul(b, x, x);
    case RECIPROCAL:
        return ir_div(b, number(b, 1), x);
    case NEG:
        return ir_neg(b, x);
    case DOUBLE_IT:
        return ir_mul(b, x, number(b, 2));
    case ABS:
        return ir_abs(b, x);
    case ADD:
        return ir_add(b, x, y);
    case SUB:
        return ir_sub(b, x, y);
    case MUL:
        return ir_mul(b, x, y);
    case DIV:
        return ir_div(b, x, y);
    case MAX:
        return ir_max(b, x, y);
    case CHOOSE_POSITIVE:
        return ir_select(b, ir_gt(b, x, number(b, 0)), x, y);
    case CHOOSE_FIRST:
        return ir_select(b, first(b), x, y);
    case CLIP:
        return ir_clamp(b, number(b, 0), x, number(b, 1));
    case REVERSE:
        return ir_rev(b, x, 1, &zero);
    case SHIFT:
        return ir_pad(b, x, number(b, 0), &one, (int64_t[]){-1}, &zero);
    case TAKE:
        return ir_gather(b, x, indices(b), &by_rows);
    case PUT:
        return ir_dynamic_update_slice(b, x, ir_slice(b, y, &zero, &one, NULL),
                                       (ir_id[]){ir_scalar_int(b, JOT_I32, 1)});
    case ADD_AT:
        return ir_scatter(b, IR_scatter_add, x, indices(b), y, &by_rows);
    case SUM:
        return over_all(b, IR_reduce_sum, x);
    case RUNNING_SUM:
        return ir_cumulative(b, IR_cumsum, x, 0, false);
    case LARGEST:
        return over_all(b, IR_reduce_max, x);
    default:
        abort();
    }
}

static ir_id build_steps(struct ir_builder *b, const struct step *steps, ir_id x, ir_id carry)
{
    ir_id at[STEPS + 2] = {x, carry};
    for (int k = 0; k < STEPS; k++)
        at[k + 2] = build_step(b, steps[k].kind, at[steps[k].x], at[steps[k].y]);
    return at[STEPS + 1];
}

// (x, carry) -> what the bodies make of them
static uint32_t function_of(const struct step *steps)
{
    struct ir_builder b = ir_builder_make(module, "steps", IR_BUILD_PLAIN);
    ir_id x = ir_param(&b, F64(N)), carry = ir_param(&b, F64(N));
    ir_output(&b, build_steps(&b, steps, x, carry));
    return done(&b);
}

static uint32_t build(const struct program *p)
{
    uint32_t body = function_of(p->body),
             branches[] = {function_of(p->branch[0]), function_of(p->branch[1])};
    struct ir_builder b = ir_builder_make(module, "program", IR_BUILD_PLAIN);
    ir_id x = ir_param(&b, F64(N)), branch = ir_param(&b, type_of_dims(JOT_I32, 0, NULL));
    ir_id carry = build_steps(&b, p->before, x, x);
    struct ir_scan s = {.body = body, .n_consts = 1, .n_carry = 1, .length = TRIPS};
    carry = ir_scan(&b, &s, 2, (ir_id[]){x, carry});
    ir_output(&b, ir_cond(&b, 2, branches, 3, (ir_id[]){branch, x, carry}));
    return done(&b);
}

// -- Comparing --------------------------------------------------------------------------------

static int below(int n, uint64_t *state) { return (int)(opcase_random(state) * n); }

static void draw_steps(struct step *steps, uint64_t *state)
{
    for (int k = 0; k < STEPS; k++)
        steps[k] = (struct step){(enum step_kind)below(KINDS, state), below(k + 2, state),
                                 opcase_random(state) < 0.5 ? k + 1 : below(k + 2, state)};
}

// Numbers whose sums are exact: in another order they would tie otherwise.
static double draw_number(uint64_t *state)
{
    static const double specials[] = {0, 0, -0.0, 1, -1, 2, 0.25, INFINITY, -INFINITY, NAN};
    enum { SPECIALS = sizeof specials / sizeof *specials };
    int i = below(2 * SPECIALS, state);
    return i < SPECIALS ? specials[i] : (below(384, state) - 192) / 64.0;
}

static int64_t compared, zeros_seen, not_finite;

// Both are finite and close, or neither is: of an infinity and a sum of infinities which is NaN the
// order decides.
static bool agree(double x, double y, double size)
{
    if (!isfinite(x) || !isfinite(y))
        return isfinite(x) == isfinite(y);
    return !(fabs(x - y) > 1e-9 * (1 + size));
}

static void print_steps(struct strbuf *s, const char *name, const struct step *steps)
{
    static const char *const names[KINDS] = {
        "sqrt",    "log",   "exp",  "square", "1 /",    "-",      "2 *",         "abs",
        "+",       "-",     "*",    "/",      "max",    "if > 0", "first of",    "clip",
        "reverse", "shift", "take", "put",    "add at", "sum",    "running sum", "largest"};
    strbuf_printf(s, "%s:", name);
    for (int k = 0; k < STEPS; k++)
        strbuf_printf(s, "  %d = %s %d %d", k + 2, names[steps[k].kind], steps[k].x,
                      steps[k].y);
    strbuf_add(s, "\n");
}

static const char *program_text(const struct program *p)
{
    struct strbuf s = strbuf_make(module->arena);
    print_steps(&s, "before", p->before);
    print_steps(&s, "body", p->body);
    print_steps(&s, "branch 0", p->branch[0]);
    print_steps(&s, "branch 1", p->branch[1]);
    return s.text;
}

static void check_column(const struct program *p, const char *mode, uint32_t f,
                         const struct ir_tensor *in, int column, const struct dual *want)
{
    const double *jacobian = evaluate(f, in)[0].data;
    for (int i = 0; i < N; i++) {
        double have = jacobian[N * i + column], right = want[i].has ? want[i].d : 0;
        compared++;
        zeros_seen += !want[i].has;
        not_finite += !isfinite(right);
        const double *x = in[0].data;
        ck_assert_msg(
            agree(have, right, want[i].size),
            "%s at [%g, %g, %g], branch %d: derivative of %d in %d is %g, not %g (%s)\n%s",
            mode, x[0], x[1], x[2], *(const int32_t *)in[1].data, i, column, have, right,
            want[i].has ? "a number" : "none", program_text(p));
    }
}

static void check_program(const struct program *p, uint64_t *state)
{
    enum { MODES = 2 };
    static const char *const names[MODES] = {"jacfwd", "jacrev"};
    uint32_t f = build(p), modes[MODES];
    const bool wrt[] = {true, false};
    require(pass_jacfwd(module, f, wrt, &modes[0]));
    require(pass_jacrev(module, f, wrt, &modes[1]));
    for (int k = 0; k < MODES; k++)
        modes[k] = pass_simplify(module, modes[k]);
    for (int point = 0; point < POINTS; point++) {
        double x[N];
        int32_t branch = below(2, state);
        for (int i = 0; i < N; i++)
            x[i] = draw_number(state);
        struct ir_tensor in[] = {{F64(N), x}, {type_of_dims(JOT_I32, 0, NULL), &branch}};
        for (int column = 0; column < N; column++) {
            vector at, y;
            for (int i = 0; i < N; i++)
                at[i] = (struct dual){x[i], i == column, i == column, i == column};
            is_extreme = false;
            run(p, at, branch, y);
            for (int k = 0; k < MODES && !is_extreme; k++)
                check_column(p, names[k], modes[k], in, column, y);
        }
    }
}

START_TEST(the_taken_path_counts)
{
    uint64_t state = seed + (uint64_t)_i;
    const char *count = getenv("JOT_TEST_COUNT");
    int programs = count ? atoi(count) : getenv("JOT_TEST_FULL") ? 5000 : PROGRAMS;
    for (int i = 0; i < programs; i++) {
        struct program p;
        draw_steps(p.before, &state);
        draw_steps(p.body, &state);
        draw_steps(p.branch[0], &state);
        draw_steps(p.branch[1], &state);
        check_program(&p, &state);
        if (i % 50 == 49) {
            support_teardown();
            support_setup();
        }
    }
    printf("%lld derivatives, %lld none, %lld not finite\n", (long long)compared,
           (long long)zeros_seen, (long long)not_finite);
    ck_assert_int_gt(zeros_seen, compared / 20);
    ck_assert_int_gt(not_finite, compared / 20);
}
END_TEST

// exp(w [x, y]) of columns x and y, of which one has a tangent: sums over both have it everywhere.
static uint32_t stacked_layer(void)
{
    struct ir_builder b = ir_builder_make(module, "layer", IR_BUILD_PLAIN);
    ir_id x = ir_param(&b, F64(N, 1)), y = ir_param(&b, F64(N, 1)), w = ir_param(&b, F64(2, 4));
    struct ir_dot dot = {
        .n_contract = 1, .lhs_contract = (int64_t[]){1}, .rhs_contract = (int64_t[]){0}};
    ir_id both = ir_concatenate(&b, 2, (ir_id[]){x, y}, 1);
    ir_output(&b, ir_exp(&b, ir_dot_general(&b, both, w, &dot)));
    return done(&b);
}

START_TEST(sums_have_what_a_part_has)
{
    const bool has_tangent[] = {_i == 0, _i == 1, false};
    bool has[1];
    uint32_t f;
    require(pass_jvp(module, stacked_layer(), has_tangent, &f, has));
    ck_assert(has[0]);
    f = pass_dce(module, pass_simplify(module, f));
    const struct ir_graph *g = ir_function(module, f);
    int products = 0;
    ir_for_each_node (g, n) {
        products += n->op == IR_mul;
        ck_assert_msg(n->op != IR_select && n->op != IR_reduce_or, "there is a %s",
                      ir_op_get((enum ir_op)n->op)->name);
    }
    ck_assert_int_gt(products, 0);
}
END_TEST

// log(x_i y_j), where y is x, but 0 where x is not below 1.
static void masked_factor(struct ir_builder *b, ir_id x)
{
    ir_id y = ir_select(b, ir_lt(b, x, number(b, 1)), x, number(b, 0));
    ir_output(b, ir_log(b, ir_dot_general(b, x, y, &(struct ir_dot){.n_contract = 0})));
}

// The sum of y_i / y_i, where y is x_0 and an element that x does not have.
static void missing_element(struct ir_builder *b, ir_id x)
{
    struct ir_gather drop = by_rows;
    drop.mode = IR_MODE_DROP;
    ir_id at =
              ir_const(b, type_of_dims(JOT_I32, 2, (int64_t[]){2, 1}), (const int32_t[]){0, 9}),
          y = ir_gather(b, x, at, &drop);
    struct ir_dot dot = {
        .n_contract = 1, .lhs_contract = (int64_t[]){0}, .rhs_contract = (int64_t[]){0}};
    ir_output(b, ir_dot_general(b, y, ir_div(b, number(b, 1), y), &dot));
}

// Terms of a product's sums multiply like numbers: where the right derivative is that of a path not
// taken, one mode may have NaN in its place, and never another number.
static const struct {
    void (*build)(struct ir_builder *b, ir_id x);
    int count;
    double forward[8], reverse[8]; // at 2, 0.25
} sums_of_products[] = {
    {masked_factor, 8, {0, 0, 0.5, 4, 0, 0, 0, 8}, {NAN, 0, 0.5, 4, 0, NAN, 0, 8}},
    {missing_element, 2, {NAN, NAN}, {0, 0}},
};

START_TEST(terms_of_products_are_numbers)
{
    struct ir_builder b = ir_builder_make(module, "products", IR_BUILD_PLAIN);
    sums_of_products[_i].build(&b, ir_param(&b, F64(2)));
    uint32_t f = done(&b), modes[2];
    require(pass_jacfwd(module, f, (bool[]){true}, &modes[0]));
    require(pass_jacrev(module, f, (bool[]){true}, &modes[1]));
    struct ir_tensor x = {F64(2), (double[]){2, 0.25}};
    for (int k = 0; k < 2; k++) {
        const double *have = evaluate(pass_simplify(module, modes[k]), &x)[0].data;
        const double *want = k ? sums_of_products[_i].reverse : sums_of_products[_i].forward;
        for (int i = 0; i < sums_of_products[_i].count; i++)
            ck_assert_msg(have[i] == want[i] || (isnan(have[i]) && isnan(want[i])),
                          "mode %d: derivative %d is %g, not %g", k, i, have[i], want[i]);
    }
}
END_TEST

// A mask that is true everywhere leaves nothing to be made zero.
START_TEST(masks_of_everything)
{
    uint32_t f = parse("jot ir 1\nfunction @0 f(%a: f64[3], %y: f64[3]) {\n"
                       "  %0 = const {data=0} : f64[]\n  %1 = const {data=true} : bool[]\n"
                       "  %z = broadcast_in_dim %0 {dims=[3], axes=[]} : f64[3]\n"
                       "  %p = broadcast_in_dim %1 {dims=[3], axes=[]} : bool[3]\n"
                       "  %s = select %p, %a, %z : f64[3]\n"
                       "  %r = mul_z %s, %y : f64[3]\n  return %r\n}\n");
    struct ir_tensor in[] = {{F64(3), (double[]){2, 0, 5}},
                             {F64(3), (double[]){7, INFINITY, INFINITY}}};
    f = pass_support(module, f);
    ir_for_each_node (ir_function(module, f), n)
        ck_assert_int_ne(n->op, IR_mul_z);
    const double *have = evaluate(f, in)[0].data;
    ck_assert_double_eq(have[0], 14);
    ck_assert_double_nan(have[1]); // 0 is a number here, and of a path that is taken
    ck_assert_double_eq(have[2], INFINITY);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, masks_of_everything);
    tcase_add_loop_test(t, terms_of_products_are_numbers, 0,
                        sizeof sums_of_products / sizeof *sums_of_products);
    tcase_add_loop_test(t, the_taken_path_counts, 0, 1);
    tcase_add_loop_test(t, sums_have_what_a_part_has, 0, 2);
}

int main(void) { return support_run("support", add_tests); }
