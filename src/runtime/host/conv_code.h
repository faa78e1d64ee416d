// SPDX-License-Identifier: Apache-2.0
// What is added up for a few rows and columns of a product with windows, which are read where they lie.
#ifndef RUNTIME_HOST_CONV_CODE_H
#define RUNTIME_HOST_CONV_CODE_H

#include "jot/dtype.h"

#include <stdbool.h>
#include <stdint.h>

#define CONV_ROWS_MOST 8
#define CONV_TILES_MOST 8 // gathered at once

// to[r][j] = sum over runs and i < length of from[r][run + i step] columns[run, i][j], or what is there
// plus that.  Terms are added one after the other.
struct conv_tile {
    const void
        *from[CONV_ROWS_MOST]; // as many as the code has rows, of which `rows` are stored
    void *to[CONV_ROWS_MOST];
    const void *columns; // as `pack` makes them; `width` are stored
    const int64_t *runs; // elements behind `from`
    int64_t n_runs, length, step;
    int rows, width;
    bool adds;
};

// Rows of several tiles, with runs as those have them.
struct conv_rows {
    int tiles;
    const void *from[CONV_TILES_MOST * CONV_ROWS_MOST];
    const int64_t *runs;
    int64_t n_runs, length, step;
};

struct conv_code {
    int rows, columns; // of a tile
    void (*add_up)(const struct conv_tile *tile);
    // What tiles read of their rows, tile by tile, with the rows of a term next to each other.
    void (*gather)(const struct conv_rows *rows, void *to);
    // Columns of each of the terms for tiles of this width, 64-byte aligned; returns where they end.
    void *(*pack)(int64_t terms, int width, const void *from, int64_t term_apart,
                  int64_t column_apart, void *to);
};

// The code for this processor; of f32 and f64.
const struct conv_code *conv_code_of(jot_dtype dtype);

#endif
