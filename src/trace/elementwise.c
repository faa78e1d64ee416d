// SPDX-License-Identifier: Apache-2.0
// Expressions of C over elements: parsed, by the levels of their operators, into the operations that
// they stand for.
#include "jot/kernels.h"

#include "base/dtype.h"
#include "runtime/stack.h"
#include "trace/emit.h"
#include "trace/stacks.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define OP_NAME "jot_elementwise"
#define NAMES_MOST 64

struct name {
    const char *at;
    int length;
    jot_value value;
};

struct parser {
    const char *text, *at;
    struct name names[NAMES_MOST];
    int n_names;
    bool has_failed;
    jot_value error;
};

typedef jot_value unary(jot_value x);
typedef jot_value binary(jot_value x, jot_value y);
typedef jot_value ternary(jot_value x, jot_value y, jot_value z);

static jot_value parse_expression(struct parser *p);

// ---- Errors

static jot_value make_error(const struct parser *p, const char *at, const char *what)
{
    TRACE_RETURN(trace_fail(OP_NAME, JOT_ERR_ARGUMENT, "column %d of \"%.100s\": %s",
                            (int)(at - p->text) + 1, p->text, what));
}

static jot_value fail_at(struct parser *p, const char *at, const char *what)
{
    if (!p->has_failed)
        p->error = make_error(p, at, what);
    p->has_failed = true;
    return p->error;
}

static jot_value fail(struct parser *p, const char *what) { return fail_at(p, p->at, what); }

static void tell(const struct parser *p, const char *at, jot_value x, const char *advice)
{
    char text[300];
    struct arena_guard guard;
    if (arena_guard_left(&guard)) {
        trace_out_of_memory();
        return;
    }
    snprintf(text, sizeof text, "column %d of \"%.100s\"%s", (int)(at - p->text) + 1, p->text,
             advice);
    trace_retell_error(x, OP_NAME, text);
    arena_guard_close(&guard);
}

// What the operation at the place has made; where it failed, its error with the column.
static jot_value made(struct parser *p, const char *at, jot_value x)
{
    if (p->has_failed || !jot_value_failed(x))
        return x;
    bool is_power = *at == '^';
    tell(p, at, x, is_power ? ": ^ is exclusive or, a power is pow(x, y)" : "");
    p->has_failed = true;
    return p->error = x;
}

// ---- Words

static void skip(struct parser *p)
{
    while (isspace((unsigned char)*p->at))
        p->at++;
}

static bool is_letter(char c) { return isalnum((unsigned char)c) || c == '_'; }

// The operator, which is not the start of a longer one that `but` ends.
static bool take_word(struct parser *p, const char *word, const char *but)
{
    size_t n = strlen(word);
    skip(p);
    if (strncmp(p->at, word, n) != 0 || (p->at[n] && strchr(but, p->at[n])))
        return false;
    p->at += n;
    return true;
}

static bool expect(struct parser *p, const char *word)
{
    char text[32];
    if (take_word(p, word, ""))
        return true;
    snprintf(text, sizeof text, "\"%s\" is missing", word);
    fail(p, text);
    return false;
}

static int word_length(const char *at)
{
    int n = 0;
    if (!isdigit((unsigned char)*at))
        while (is_letter(at[n]))
            n++;
    return n;
}

static bool is_word(const char *at, int length, const char *word)
{
    return (int)strlen(word) == length && !strncmp(at, word, (size_t)length);
}

// ---- Operations that are not one of jot's

static jot_value divide_numbers(jot_value x, jot_value y)
{
    jot_value v[] = {x, y}, error;
    struct trace_promoted p;
    if (!trace_ready(OP_NAME, 2, v, &error) || !trace_promote(OP_NAME, "num", 2, v, &p, &error))
        return error;
    return dtype_is_integer(p.dtype) ? trace_map(IR_div, OP_NAME, 2, v) : jot_div(x, y);
}

static jot_value divide(jot_value x, jot_value y) { TRACE_RETURN(divide_numbers(x, y)); }

static jot_value truncate(jot_value x)
{
    return jot_where(jot_less(x, jot_from_int(0)), jot_ceil(x), jot_floor(x));
}

static jot_value is_true(jot_value x) { return jot_not_equal(x, jot_from_int(0)); }
static jot_value both(jot_value x, jot_value y)
{
    return jot_logical_and(is_true(x), is_true(y));
}
static jot_value either(jot_value x, jot_value y)
{
    return jot_logical_or(is_true(x), is_true(y));
}
static jot_value is_false(jot_value x) { return jot_equal(x, jot_from_int(0)); }

// ---- Functions, types and constants

static const struct function {
    const char *name;
    unary *one;
    binary *two;
    ternary *three;
} functions[] = {
    {"sin", .one = jot_sin},
    {"cos", .one = jot_cos},
    {"tan", .one = jot_tan},
    {"asin", .one = jot_asin},
    {"acos", .one = jot_acos},
    {"atan", .one = jot_atan},
    {"sinh", .one = jot_sinh},
    {"cosh", .one = jot_cosh},
    {"tanh", .one = jot_tanh},
    {"asinh", .one = jot_asinh},
    {"acosh", .one = jot_acosh},
    {"atanh", .one = jot_atanh},
    {"exp", .one = jot_exp},
    {"exp2", .one = jot_exp2},
    {"expm1", .one = jot_expm1},
    {"log", .one = jot_log},
    {"log2", .one = jot_log2},
    {"log10", .one = jot_log10},
    {"log1p", .one = jot_log1p},
    {"sqrt", .one = jot_sqrt},
    {"cbrt", .one = jot_cbrt},
    {"rsqrt", .one = jot_rsqrt},
    {"fabs", .one = jot_abs},
    {"abs", .one = jot_abs},
    {"floor", .one = jot_floor},
    {"ceil", .one = jot_ceil},
    {"rint", .one = jot_round},
    {"nearbyint", .one = jot_round},
    {"round", .one = jot_round_away},
    {"trunc", .one = truncate},
    {"isnan", .one = jot_is_nan},
    {"isinf", .one = jot_is_inf},
    {"isfinite", .one = jot_is_finite},
    {"sign", .one = jot_sign},
    {"sigmoid", .one = jot_sigmoid},
    {"logistic", .one = jot_logistic},
    {"relu", .one = jot_relu},
    {"gelu", .one = jot_gelu},
    {"silu", .one = jot_silu},
    {"softplus", .one = jot_softplus},
    {"square", .one = jot_square},
    {"erf_inv", .one = jot_erf_inv},
    {"atan2", .two = jot_atan2},
    {"hypot", .two = jot_hypot},
    {"pow", .two = jot_pow},
    {"fmod", .two = jot_rem},
    {"min", .two = jot_minimum},
    {"max", .two = jot_maximum},
    {"nextafter", .two = jot_nextafter},
    {"fma", .three = jot_fma},
    {"where", .three = jot_where},
    {"clamp", .three = jot_clamp},
};

static const struct {
    const char *name;
    jot_dtype dtype;
} types[] = {
    {"bool", JOT_BOOL},    {"char", JOT_I8},      {"short", JOT_I16},    {"int", JOT_I32},
    {"unsigned", JOT_U32}, {"long", JOT_I64},     {"float", JOT_F32},    {"double", JOT_F64},
    {"int8_t", JOT_I8},    {"int16_t", JOT_I16},  {"int32_t", JOT_I32},  {"int64_t", JOT_I64},
    {"uint8_t", JOT_U8},   {"uint16_t", JOT_U16}, {"uint32_t", JOT_U32}, {"uint64_t", JOT_U64},
};

static const struct {
    const char *name;
    double value;
} constants[] = {
    {"M_PI", 3.14159265358979323846},
    {"M_E", 2.7182818284590452354},
    {"INFINITY", INFINITY},
    {"NAN", NAN},
};

// ---- Expressions

static const struct function *find_function(const char *at, int length)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (is_word(at, length, functions[i].name))
            return &functions[i];
    return length > 1 && at[length - 1] == 'f' ? find_function(at, length - 1) : NULL;
}

static jot_value parse_call(struct parser *p, const struct function *f, const char *at)
{
    jot_value x[3];
    int n = 0, want = f->one ? 1 : f->two ? 2 : 3;
    expect(p, "(");
    do {
        if (n == want)
            return fail_at(p, at, "the function takes fewer arguments");
        x[n++] = parse_expression(p);
    } while (!p->has_failed && take_word(p, ",", ""));
    if (p->has_failed || !expect(p, ")"))
        return p->error;
    if (n != want)
        return fail_at(p, at, "the function takes more arguments");
    return made(p, at,
                f->one   ? f->one(x[0])
                : f->two ? f->two(x[0], x[1])
                         : f->three(x[0], x[1], x[2]));
}

// What C has and an expression of elements has not.
static const struct {
    const char *word, *advice;
} statements[] = {
    {"if", "if is a statement, test ? x : y chooses"},
    {"else", "else is of a statement, test ? x : y chooses"},
    {"for", "there are no loops here, JOT_FOR is one"},
    {"while", "there are no loops here, JOT_WHILE is one"},
    {"return", "the last expression is the result, without return"},
};

static jot_value unknown(struct parser *p, const char *at, int length)
{
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        if (is_word(at, length, statements[i].word))
            return fail_at(p, at, statements[i].advice);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (is_word(at, length, types[i].name))
            return fail_at(p, at, "a name is defined without a type: t = x;");
    return fail_at(
        p, at, take_word(p, "(", "") ? "there is no such function" : "nothing has this name");
}

static jot_value parse_word(struct parser *p)
{
    const char *at = p->at;
    int length = word_length(at);
    p->at += length;
    for (int i = p->n_names; i-- > 0;)
        if (p->names[i].length == length && !strncmp(p->names[i].at, at, (size_t)length))
            return p->names[i].value;
    if (is_word(at, length, "true") || is_word(at, length, "false"))
        return jot_from_bool(at[0] == 't');
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (is_word(at, length, constants[i].name))
            return jot_from_double(constants[i].value);
    const struct function *f = find_function(at, length);
    return f ? parse_call(p, f, at) : unknown(p, at, length);
}

static void skip_suffix(struct parser *p)
{
    while (*p->at && strchr("uUlLfF", *p->at))
        p->at++;
    if (is_letter(*p->at) || *p->at == '.')
        fail(p, "a number ends here");
}

static jot_value parse_number(struct parser *p)
{
    const char *start = p->at;
    char *end_whole, *end_real;
    errno = 0;
    unsigned long long whole = strtoull(start, &end_whole, 0);
    bool is_large = errno == ERANGE || whole > INT64_MAX;
    double real = strtod(start, &end_real);
    bool is_real = end_real > end_whole;
    p->at = is_real ? end_real : end_whole;
    skip_suffix(p);
    if (p->has_failed)
        return p->error;
    if (!is_real && is_large)
        return fail_at(p, start, "the number is too large");
    return is_real ? jot_from_double(real) : jot_from_int((int64_t)whole);
}

// (type) in front of a value.
static bool take_cast(struct parser *p, jot_dtype *out)
{
    const char *start = p->at;
    if (!take_word(p, "(", ""))
        return false;
    skip(p);
    int length = word_length(p->at);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (length && is_word(p->at, length, types[i].name)) {
            p->at += length;
            if (take_word(p, ")", "")) {
                *out = types[i].dtype;
                return true;
            }
        }
    p->at = start;
    return false;
}

static jot_value parse_unary(struct parser *p)
{
    jot_dtype dtype;
    skip(p);
    if (rt_stack_left() < STACK_OF_TRACE)
        return fail(p, "the expression is nested too deeply for the stack of the thread");
    jot_value x;
    const char *at = p->at;
    if (take_cast(p, &dtype)) {
        x = parse_unary(p);
        x = p->has_failed ? x : made(p, at, jot_convert(x, dtype));
    } else if (take_word(p, "(", "")) {
        x = parse_expression(p);
        if (!p->has_failed)
            expect(p, ")");
    } else if (take_word(p, "-", "-=")) {
        x = parse_unary(p);
        x = p->has_failed ? x : made(p, at, jot_neg(x));
    } else if (take_word(p, "+", "+=")) {
        x = parse_unary(p);
    } else if (take_word(p, "!", "=")) {
        x = parse_unary(p);
        x = p->has_failed ? x : made(p, at, is_false(x));
    } else if (take_word(p, "~", "")) {
        x = parse_unary(p);
        x = p->has_failed ? x : made(p, at, jot_bitwise_not(x));
    } else if (isdigit((unsigned char)*p->at) ||
               (*p->at == '.' && isdigit((unsigned char)p->at[1]))) {
        x = parse_number(p);
    } else if (is_letter(*p->at)) {
        x = parse_word(p);
    } else {
        bool is_power = *p->at == '*' && p->at > p->text && p->at[-1] == '*';
        x = fail(p, is_power ? "C has no **, a power is pow(x, y)" : "a value is missing");
    }
    return p->has_failed ? p->error : x;
}

// Levels of binary operators from the loosest on.  What follows an operator in `but` makes it
// another one.
static const struct operator
{
    int level;
    const char *word, *but;
    binary *make;
}
operators[] = {
    {0, "||", "", either},
    {1, "&&", "", both},
    {2, "|", "|=", jot_bitwise_or},
    {3, "^", "=", jot_bitwise_xor},
    {4, "&", "&=", jot_bitwise_and},
    {5, "==", "", jot_equal},
    {5, "!=", "", jot_not_equal},
    {6, "<=", "", jot_less_equal},
    {6, ">=", "", jot_greater_equal},
    {6, "<", "<", jot_less},
    {6, ">", ">", jot_greater},
    {7, "<<", "=", jot_left_shift},
    {7, ">>", "=", jot_right_shift},
    {8, "+", "+=", jot_add},
    {8, "-", "-=", jot_sub},
    {9, "*", "=", jot_mul},
    {9, "/", "=", divide},
    {9, "%", "=", jot_rem},
};

// One of the level or of a tighter one.
static const struct operator* take_operator(struct parser *p, int level)
{
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (operators[i].level >= level && take_word(p, operators[i].word, operators[i].but))
            return &operators[i];
    return NULL;
}

static jot_value parse_level(struct parser *p, int level)
{
    const struct operator* o;
    jot_value x = parse_unary(p);
    while (!p->has_failed && (o = take_operator(p, level))) {
        const char *at = p->at - strlen(o->word);
        jot_value y = parse_level(p, o->level + 1);
        x = p->has_failed ? y : made(p, at, o->make(x, y));
    }
    return x;
}

static jot_value parse_expression(struct parser *p)
{
    jot_value test = parse_level(p, 0);
    if (p->has_failed || !take_word(p, "?", ""))
        return test;
    const char *at = p->at - 1;
    jot_value x = parse_expression(p);
    if (p->has_failed || !expect(p, ":"))
        return p->error;
    jot_value y = parse_expression(p);
    return p->has_failed ? y : made(p, at, jot_where(is_true(test), x, y));
}

// ---- Names and definitions

static void add_name(struct parser *p, const char *at, int length, jot_value value)
{
    if (p->n_names == NAMES_MOST)
        fail_at(p, at, "there are more than 64 names");
    else
        p->names[p->n_names++] = (struct name){at, length, value};
}

// "x, y"
static bool read_names(struct parser *p, const char *names, size_t n, const jot_value *x)
{
    struct parser list = {.text = names, .at = names};
    for (size_t i = 0; i < n && !list.has_failed; i++) {
        skip(&list);
        int length = word_length(list.at);
        if (length == 0)
            fail(&list, "there are fewer names than values");
        for (int k = 0; k < p->n_names; k++)
            if (p->names[k].length == length &&
                !memcmp(p->names[k].at, list.at, (size_t)length))
                fail(&list, "two values have this name");
        add_name(p, list.at, length, x[i]);
        list.at += length;
        if (i + 1 < n && !list.has_failed)
            expect(&list, ",");
    }
    skip(&list);
    if (!list.has_failed && *list.at)
        fail(&list, "there are more names than values");
    if (list.has_failed)
        p->error = list.error;
    p->has_failed |= list.has_failed;
    return !p->has_failed;
}

// name = expression; in front of the last one.
static bool parse_definition(struct parser *p)
{
    skip(p);
    const char *name = p->at;
    int length = word_length(name);
    p->at += length;
    if (length == 0 || !take_word(p, "=", "=")) {
        p->at = name;
        return false;
    }
    jot_value x = parse_expression(p);
    if (!p->has_failed && expect(p, ";"))
        add_name(p, name, length, x);
    return true;
}

static jot_value elementwise(const char *names, const char *expression, size_t n,
                             const jot_value *x)
{
    struct parser p = {.text = expression ? expression : "NULL",
                       .at = expression ? expression : "NULL"};
    if (!names || !expression)
        return fail(&p, "names or expression are NULL");
    if (!read_names(&p, names, n, x))
        return p.error;
    while (!p.has_failed && parse_definition(&p))
        continue;
    jot_value y = p.has_failed ? p.error : parse_expression(&p);
    take_word(&p, ";", "");
    skip(&p);
    if (*p.at == '[' && !p.has_failed)
        fail(&p, "an expression is of one element, and has no indices");
    return p.has_failed ? p.error : *p.at ? fail(&p, "the expression ends here") : y;
}

jot_value jot_elementwise_values(const char *names, const char *expression, const char *where,
                                 size_t n, const jot_value *x)
{
    size_t count = 0;
    TRACE_NEEDS("jot_elementwise", "x", n, x);
    while (count < n && (x[count].trace || x[count].id))
        count++;
    jot_value y = elementwise(names, expression, count, x);
    jot_place(y, where);
    return y;
}
