// SPDX-License-Identifier: Apache-2.0
// Where a convolution reads and writes, seen as sums over windows of one array, the image, for positions of
// another one: windows of x for y, windows of y for x; and for w those of x, with positions of y.  Features
// are the last axis.
//
// Positions are as many kinds as strides have remainders where x is the result, else one: positions
// of one kind have the same elements of the kernel in their sums.
#ifndef RUNTIME_HOST_CONV_GEOMETRY_H
#define RUNTIME_HOST_CONV_GEOMETRY_H

#include "base/conv.h"
#include "runtime/host/conv_code.h"

#define CONV_BLOCK_BYTES (192 << 10) // that a task keeps in the second cache
#define CONV_BLOCK_POSITIONS 192     // that make a panel of columns worth reading
#define CONV_BLOCK_TERMS 1024        // added one after the other
#define CONV_TASK_WORK 2e6           // multiplications that are worth a task

// Along an axis, position u of a kind is at to_step u + to, for u from first on, and sees the elements of
// the image at from_step u + from, ... + from_apart, ..., of which each meets the element of the kernel
// at k, k + k_apart, ...
struct conv_line {
    int64_t to, first, end;
    int64_t from, from_apart, k, k_apart, count;
};

struct conv_geometry {
    int n;
    int64_t element;                // bytes
    int64_t batch, groups, in, out; // features of a group: of windows, and what comes of them
    int64_t image[CONV_AXES_MOST], result[CONV_AXES_MOST]; // extents
    int64_t from_step[CONV_AXES_MOST], to_step[CONV_AXES_MOST];
    int64_t kinds, kinds_along[CONV_AXES_MOST];
    // Of all kinds: u, and `from`.
    int64_t first[CONV_AXES_MOST], end[CONV_AXES_MOST], low[CONV_AXES_MOST],
        high[CONV_AXES_MOST];
    int64_t images, rows; // of a block: several images, or u of the first axis of one
    // What the windows of a block see: a copy, with zeros where they reach beyond the image, or none.
    bool copies;
    int64_t extent[CONV_AXES_MOST], apart[CONV_AXES_MOST];
    int64_t kernel, kernel_apart[CONV_AXES_MOST], in_apart, out_apart, group_apart; // of w
};
struct conv_geometry conv_geometry_of(const struct conv_call *c);

// Of a kind of positions, by axis.
void conv_lines_of(const struct conv_geometry *g, const struct conv_call *c, int64_t kind,
                   struct conv_line *out);

int64_t conv_blocks(const struct conv_geometry *g);
int64_t conv_row_blocks(const struct conv_geometry *g); // of an image
int64_t conv_positions(const struct conv_geometry *g);  // of a block in an image, at most

struct conv_block {
    int64_t image, images, row, end;
};
struct conv_block conv_block_of(const struct conv_geometry *g, int64_t number);

// What the windows of the block see: of the images where they are, or copied to memory.  Indices are of
// elements behind that.
const char *conv_images_of(const struct conv_geometry *g, const char *images,
                           const struct conv_block *b, char *memory);
int64_t conv_image_apart(const struct conv_geometry *g); // from one image to the next

// Where the elements of the kernel are behind the first one of a window, as many as there are; or, where
// they are dense in rows, these.
int64_t conv_find_runs(const struct conv_geometry *g, const struct conv_line *l, bool by_row,
                       int64_t *runs);
// The positions of a kind in a block, as many as there are: where their windows begin, and where they are
// behind those of the first image.
int64_t conv_find_positions(const struct conv_geometry *g, const struct conv_line *l,
                            const struct conv_block *b, int64_t *from, int64_t *to);
// The rows of positions of a block, from which w has its terms: runs of a length and a step.
struct conv_rows conv_find_rows(const struct conv_geometry *g, const struct conv_block *b,
                                int64_t *from);

// How many elements of the kernel a kind of positions has, also along each axis.
int64_t conv_elements(const struct conv_geometry *g, const struct conv_line *l,
                      int64_t *out_counts);

static inline int64_t conv_least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t conv_most(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t conv_divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

static inline int64_t conv_product(int n, const int64_t *extents)
{
    int64_t size = 1;
    for (int i = 0; i < n; i++)
        size *= extents[i];
    return size;
}

// The next index of n axes, row-major; false after the last.
static inline bool conv_next(int n, const int64_t *end, int64_t *index)
{
    for (int i = n - 1; i >= 0; i--) {
        if (++index[i] < end[i])
            return true;
        index[i] = 0;
    }
    return false;
}

// What so many u see along an axis, and from where on.
static inline int64_t conv_seen(const struct conv_geometry *g, int axis, int64_t count)
{
    return (count - 1) * g->from_step[axis] + g->high[axis] - g->low[axis] + 1;
}
static inline int64_t conv_seen_from(const struct conv_geometry *g, int axis, int64_t first)
{
    return first * g->from_step[axis] + g->low[axis];
}

#endif
