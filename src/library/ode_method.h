// SPDX-License-Identifier: Apache-2.0
// Runge-Kutta methods as tables.
//
//     k[i] = f(t + c[i] h, y + h sum_j a[i][j] k[j])       next = y + h sum_i b[i] k[i]
//
// and the error is about h sum_i error[i] k[i].
#ifndef LIBRARY_ODE_METHOD_H
#define LIBRARY_ODE_METHOD_H

#include "jot/ode.h"

#include <stdbool.h>

enum { ODE_MOST_STAGES = 13 };

struct ode_method {
    const char *name;
    int stages, order;
    int error_order; // the error of a step is of this power of its length; 0: it has no estimate
    bool ends_with_slope; // the last stage is the slope at the next point
    double a[ODE_MOST_STAGES][ODE_MOST_STAGES], b[ODE_MOST_STAGES], c[ODE_MOST_STAGES],
        error[ODE_MOST_STAGES];
};

// NULL where there is no such method.
const struct ode_method *ode_method_find(jot_ode_method method);

#endif
