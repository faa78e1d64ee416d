// SPDX-License-Identifier: Apache-2.0
// Exceptions that pass through jot: out of traced functions, blocks, rules and callbacks, on several
// threads.  Afterwards everything works as if the call had not been.
#include <jot/jot.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <thread>
#include <vector>

static thread_local bool throws;
static std::atomic<int> failures;

static void check(bool holds, const char *what)
{
    if (holds)
        return;
    failures++;
    std::printf("%s: %s\n", what, jot_error_message());
}

static void maybe_throw()
{
    if (throws)
        throw std::runtime_error("thrown");
}

// What must run on the way of an exception.
struct counted {
    static thread_local int alive;
    counted() { alive++; }
    ~counted() { alive--; }
};
thread_local int counted::alive;

static jot_value plain(jot_value x)
{
    counted c;
    jot_value y = jot_sin(x);
    maybe_throw();
    return jot_sum(jot_mul(y, 2.0));
}

static jot_value in_block(jot_value x)
{
    JOT_FOR (i, 3, x) {
        counted c;
        JOT_FOR (k, 2, x) {
            maybe_throw();
            x = jot_mul(x, 0.5);
        }
    }
    return jot_sum(x);
}

static jot_value square(jot_value x)
{
    maybe_throw();
    return jot_mul(x, x);
}

static jot_value nested(jot_value x)
{
    jot_value y;
    jot_apply(jot_fn(square), 1, &x, 1, &y);
    return jot_sum(y);
}

static jot_value sine(jot_value x) { return jot_sin(x); }
static jot_value rule(jot_value x, jot_value dx)
{
    maybe_throw();
    return jot_mul(jot_cos(x), dx);
}
static jot_value in_rule(jot_value x)
{
    jot_value y;
    jot_apply(jot_custom_jvp(jot_fn(sine), jot_fn(rule)), 1, &x, 1, &y);
    return jot_sum(y);
}

static jot_status callback(void *, const jot_callback_call *call)
{
    counted c;
    maybe_throw();
    for (int i = 0; i < 3; i++)
        static_cast<double *>(call->out[0].data)[i] =
            2 * static_cast<const double *>(call->in[0].data)[i];
    return JOT_OK;
}

static jot_value in_callback(jot_value x)
{
    static const int64_t dims[] = {3, JOT_END};
    const jot_type type = {JOT_F64, dims};
    jot_callback_spec spec = {};
    spec.call = callback;
    spec.n_out = 1;
    spec.out = &type;
    jot_value y;
    jot_callback_values(&spec, &y, "leaving.cpp", 1, &x);
    return jot_sum(jot_sin(y));
}

static jot_value catches(jot_value x)
{
    jot_value y = x;
    bool before = throws;
    throws = true;
    try {
        jot_apply(jot_fn(nested), 1, &x, 1, &y);
        check(false, "nothing was thrown");
    } catch (const std::runtime_error &) {
    }
    throws = before;
    return jot_sum(jot_mul(x, 3.0));
}

static jot_array *numbers()
{
    const double x[] = {0.5, 1, 1.5};
    const int64_t dims[] = {3, JOT_END};
    return jot_array_copy(JOT_F64, x, dims);
}

static bool call(jot_executable *e, jot_array *x, jot_array **y)
{
    return jot_call_list(e, 1, &x, 1, y) == JOT_OK;
}

static void throw_and_come_back(const char *name, jot_function f)
{
    jot_array *x = numbers(), *y = nullptr;
    jot_executable *e = jot_jit(f);
    for (int times = 0; times < 3; times++) {
        bool thrown = false;
        throws = true;
        try {
            call(e, x, &y);
        } catch (const std::runtime_error &) {
            thrown = true;
        }
        throws = false;
        check(thrown, name);
        check(counted::alive == 0, name);
        // Another thread does not wait.
        std::thread([&] {
            jot_array *z = nullptr;
            check(call(e, x, &z), name);
            jot_array_release(z);
        }).join();
        check(call(e, x, &y), name);
        jot_array_release(y);
        jot_executable_release(e);
        e = jot_jit(f);
    }
    jot_executable_release(e);
    jot_array_release(x);
}

static void throw_all()
{
    throw_and_come_back("plain", jot_fn(plain));
    throw_and_come_back("gradient", jot_grad(jot_fn(plain), 0));
    throw_and_come_back("block", jot_fn(in_block));
    throw_and_come_back("nested", jot_grad(jot_fn(nested), 0));
    throw_and_come_back("rule", jot_grad(jot_fn(in_rule), 0));
    throw_and_come_back("callback", jot_fn(in_callback));
}

static void catch_inside()
{
    jot_array *x = numbers(), *y = nullptr;
    jot_executable *e = jot_jit(jot_fn(catches));
    check(call(e, x, &y), "caught inside");
    check(y && std::fabs(jot_array_item(y) - 9) < 1e-12, "the sum");
    jot_array_release(y);
    jot_executable_release(e);
    jot_array_release(x);
}

static void throw_in_scope()
{
    jot_array *x = numbers();
    jot_scope *s = jot_scope_open();
    jot_value v = jot_from(x), total = in_callback(v);
    throws = true;
    try {
        jot_item(total);
        check(false, "nothing was thrown");
    } catch (const std::runtime_error &) {
    }
    try {
        in_block(v);
        check(false, "nothing was thrown");
    } catch (const std::runtime_error &) {
    }
    throws = false;
    check(std::fabs(jot_item(jot_sum(v)) - 3) < 1e-12, "a scope goes on");
    check(std::fabs(jot_item(total) - (std::sin(1) + std::sin(2) + std::sin(3))) < 1e-12,
          "a run that was left");
    jot_scope_close(s);
    jot_array_release(x);
}

int main()
{
    throw_all();
    catch_inside();
    throw_in_scope();
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back(throw_all);
    for (std::thread &t : threads)
        t.join();
    return failures != 0;
}
