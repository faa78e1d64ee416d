// SPDX-License-Identifier: Apache-2.0
// What the windows of a block see, and where.
#include "runtime/host/conv_geometry.h"

#include <string.h>

struct conv_block conv_block_of(const struct conv_geometry *g, int64_t number)
{
    int64_t blocks = conv_row_blocks(g);
    struct conv_block b = {.image = number / blocks * g->images,
                           .row = g->first[0] + number % blocks * g->rows};
    b.images = conv_least(g->images, g->batch - b.image);
    b.end = conv_least(b.row + g->rows, g->end[0]);
    return b;
}

int64_t conv_image_apart(const struct conv_geometry *g)
{
    return g->apart[0] * (g->copies ? g->extent : g->image)[0];
}

// What the windows of the block see of an image, with zeros where they reach beyond it.
static void copy_image(const struct conv_geometry *g, const struct conv_block *b,
                       const char *image, char *to)
{
    int64_t feature = g->in * g->groups * g->element;
    int64_t low[CONV_AXES_MOST], extent[CONV_AXES_MOST], index[CONV_AXES_MOST] = {0};
    int last = g->n - 1;
    for (int i = 0; i < g->n; i++) {
        low[i] = conv_seen_from(g, i, i ? g->first[i] : b->row);
        extent[i] = i ? g->extent[i] : conv_seen(g, 0, b->end - b->row);
    }
    int64_t begin = conv_least(extent[last], conv_most(0, -low[last]));
    int64_t stop = conv_most(begin, conv_least(extent[last], g->image[last] - low[last]));
    do {
        int64_t from = 0;
        bool is_inside = stop > begin;
        for (int i = 0; i < last; i++) {
            int64_t p = low[i] + index[i];
            is_inside &= p >= 0 && p < g->image[i];
            from = (from + p) * g->image[i + 1];
        }
        int64_t before = is_inside ? begin : 0, behind = is_inside ? stop : 0;
        memset(to, 0, (size_t)(before * feature));
        if (is_inside)
            memcpy(to + before * feature, image + (from + low[last] + before) * feature,
                   (size_t)((behind - before) * feature));
        memset(to + behind * feature, 0, (size_t)((extent[last] - behind) * feature));
        to += extent[last] * feature;
    } while (conv_next(last, extent, index));
}

const char *conv_images_of(const struct conv_geometry *g, const char *images,
                           const struct conv_block *b, char *memory)
{
    int64_t size = conv_product(g->n, g->image) * g->in * g->groups * g->element;
    const char *image = images + b->image * size;
    if (!g->copies) {
        for (int i = 0; i < g->n; i++)
            image += conv_seen_from(g, i, i ? g->first[i] : b->row) * g->apart[i] * g->element;
        return image;
    }
    for (int64_t i = 0; i < b->images; i++)
        copy_image(g, b, image + i * size, memory + i * conv_image_apart(g) * g->element);
    return memory;
}

int64_t conv_find_runs(const struct conv_geometry *g, const struct conv_line *l, bool by_row,
                       int64_t *runs)
{
    int64_t counts[CONV_AXES_MOST], index[CONV_AXES_MOST] = {0}, count = 0;
    if (conv_elements(g, l, counts) == 0)
        return 0;
    do {
        runs[count] = 0;
        for (int i = 0; i < g->n; i++)
            runs[count] += index[i] * l[i].from_apart * g->apart[i];
        count++;
    } while (conv_next(by_row ? g->n - 1 : g->n, counts, index));
    return count;
}

// n indices again for each of the other images of a block.
static int64_t for_images(int64_t images, int64_t apart, int64_t n, int64_t *at)
{
    for (int64_t i = n; i < images * n; i++)
        at[i] = at[i - n] + apart;
    return images * n;
}

int64_t conv_find_positions(const struct conv_geometry *g, const struct conv_line *l,
                            const struct conv_block *b, int64_t *from, int64_t *to)
{
    int64_t counts[CONV_AXES_MOST], from_apart[CONV_AXES_MOST], to_apart[CONV_AXES_MOST],
        index[CONV_AXES_MOST] = {0};
    int64_t first_from = 0, first_to = 0, apart = g->out * g->groups, n = 0;
    for (int i = g->n - 1; i >= 0; i--) {
        int64_t start = i ? g->first[i] : b->row, first = conv_most(start, l[i].first);
        counts[i] = (i ? l[i].end : conv_least(b->end, l[i].end)) - first;
        if (counts[i] <= 0)
            return 0;
        from_apart[i] = g->from_step[i] * g->apart[i];
        first_from += (first - start) * from_apart[i] + (l[i].from - g->low[i]) * g->apart[i];
        to_apart[i] = g->to_step[i] * apart;
        first_to += (first * g->to_step[i] + l[i].to) * apart;
        apart *= g->result[i];
    }
    do {
        from[n] = first_from;
        to[n] = first_to;
        for (int i = 0; i < g->n; i++) {
            from[n] += index[i] * from_apart[i];
            to[n] += index[i] * to_apart[i];
        }
        n++;
    } while (conv_next(g->n, counts, index));
    for_images(b->images, apart, n, to);
    return for_images(b->images, conv_image_apart(g), n, from);
}

struct conv_rows conv_find_rows(const struct conv_geometry *g, const struct conv_block *b,
                                int64_t *from)
{
    int64_t counts[CONV_AXES_MOST], index[CONV_AXES_MOST] = {0}, n = 0;
    int last = g->n - 1;
    for (int i = 0; i < g->n; i++)
        counts[i] = i ? g->result[i] : b->end - b->row;
    do {
        from[n] = 0;
        for (int i = 0; i < last; i++)
            from[n] += index[i] * g->from_step[i] * g->apart[i];
        n++;
    } while (conv_next(last, counts, index));
    return (struct conv_rows){.runs = from,
                              .n_runs = for_images(b->images, conv_image_apart(g), n, from),
                              .length = counts[last],
                              .step = g->from_step[last] * g->apart[last]};
}
