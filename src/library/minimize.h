// SPDX-License-Identifier: Apache-2.0
// What searches for minima share: the values of x as one vector, and the derivative of what is
// found.
#ifndef LIBRARY_MINIMIZE_H
#define LIBRARY_MINIMIZE_H

#include "jot/minimize.h"

enum { MOST_HISTORY = 100 };

// What a method is called, and which options it has beside those of all.
struct search_kind {
    const char *name;
    bool has_history, has_products;
};

// What is wrong with the options, in text; false where nothing is.
bool library_refuses(const struct search_kind *kind, const jot_minimize_options *o, char *text,
                     size_t size);

// A search; lives as long as its trace, so that functions and loops may point to it.  Each
// method has more behind it.
struct search {
    const char *name, *where;
    jot_function f; // of the user
    size_t n;
    const jot_value *like; // n values of the shapes of x
    jot_dtype dtype;       // of all of them
    int64_t length;        // of the vector
    jot_function value;    // of the vector: the number that is least
    jot_function with_gradient;
    jot_minimize_options o; // with defaults in place
};

// A search over x, with `size` bytes from its beginning; *start is the vector.  NULL where
// something is wrong, which all results are then.
void *library_search(const struct search_kind *kind, size_t size, jot_function f, size_t n,
                     jot_value *x, const jot_minimize_options *options, const char *where,
                     jot_value *start, jot_search *out);
// Whether the value at the start has the type of x; if not all results are an error.
bool library_fits(const struct search *s, jot_value value, jot_value *x, jot_search *out);
// The results of f at a vector.
void library_apply(const struct search *s, jot_value vector, size_t n_out, jot_value *out);
// The n values of f there as a vector: of a projection.
jot_value library_through(const struct search *s, jot_value vector);
// The values of x that the vector is made of, with the place of the search.
void library_parts(const struct search *s, jot_value vector, jot_value *x);
// The value and the gradient there.
void library_evaluate(const struct search *s, jot_value vector, jot_value *value,
                      jot_value *gradient);

// The vector, or NaN where the value there is not finite.
jot_value library_held(jot_value vector, jot_value value);
// x becomes the parts of that, with the derivatives of an equation that is 0 there: a function
// of the vector.  `is_symmetric` is its derivative.
void library_found(const struct search *s, jot_function equation, bool is_symmetric,
                   jot_value vector, jot_value value, jot_value *x);
// The equation of a function without bounds.
jot_function library_gradient(const struct search *s);

// The results of a search, without derivatives.
jot_search library_minimum(const struct search *s, jot_value value, jot_value gradient,
                           jot_value steps);

// A solver of jot_custom_root that takes its guess as the root.
jot_function library_is_root(const char *name, const char *where);

jot_value library_largest(jot_value v);
jot_value library_zero_count(void);

#endif
