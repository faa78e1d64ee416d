// SPDX-License-Identifier: Apache-2.0
// Runge-Kutta methods as tables.
//
//     k[i] = f(t + c[i] h, y + h sum_j a[i][j] k[j])       next = y + h sum_i b[i] k[i]
//
// and the error is about h sum_i error[i] k[i].  In diagonally implicit methods a[i][i] is
// `diagonal` for all stages but the first, whose k is the slope at the begin, and the last
// stage is the next point.
//
// Rosenbrock methods are in the form of Hairer and Wanner, Solving Ordinary Differential
// Equations II, IV.7, with gamma = diagonal and f_t = df/dt:
//
//     (I - h gamma J) u[i] = h gamma f(t + c[i] h, y + sum_j a[i][j] u[j])
//                            + gamma sum_j coupling[i][j] u[j] + h^2 gamma time_weight[i] f_t
//
// where the last u is the error, and the next point is that of the last stage and this u.
#ifndef LIBRARY_ODE_METHOD_H
#define LIBRARY_ODE_METHOD_H

#include "jot/ode.h"

#include <stdbool.h>

enum { ODE_MOST_STAGES = 13 };

enum ode_kind { ODE_EXPLICIT, ODE_DIAGONAL, ODE_ROSENBROCK, ODE_SYMPLECTIC };

struct ode_method {
    const char *name;
    enum ode_kind kind;
    int stages, order;
    // The error of a step is of this power of its length; 0: it has no estimate.
    int error_order;
    bool ends_with_slope; // the last stage is the slope at the next point
    double a[ODE_MOST_STAGES][ODE_MOST_STAGES], b[ODE_MOST_STAGES], c[ODE_MOST_STAGES],
        error[ODE_MOST_STAGES];
    double diagonal;
    const double (*coupling)[8], *time_weight;
};

// NULL where there is no such method.
const struct ode_method *ode_method_find(jot_ode_method method);

#endif
