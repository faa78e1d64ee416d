// SPDX-License-Identifier: Apache-2.0
// Pictures of the gallery: lines, points and fields in a frame, as an SVG file.
//
//     plot_open("sine.svg", 0, 6, -1, 1);      the ranges of x and y
//     plot_line(n, x, y);                      each line has the next colour
//     plot_close();
#ifndef PLOT_H
#define PLOT_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { PLOT_LEFT = 46, PLOT_TOP = 12, PLOT_WIDTH = 400, PLOT_HEIGHT = 300 };
static FILE *plot_file;
static double plot_x0, plot_x1, plot_y0, plot_y1;
static int plot_colour;

static const char *plot_next_colour(void)
{
    static const char *colours[] = {"#3b6fd4", "#d4583b", "#2f8f4e",
                                    "#8a4fbf", "#b7791f", "#6b7280"};
    return colours[plot_colour++ % 6];
}

static double plot_x(double x)
{
    return PLOT_LEFT + PLOT_WIDTH * (x - plot_x0) / (plot_x1 - plot_x0);
}
static double plot_y(double y)
{
    return PLOT_TOP + PLOT_HEIGHT * (plot_y1 - y) / (plot_y1 - plot_y0);
}

// A step of 1, 2 or 5 times a power of ten, of which a range has four or more.
static double plot_step(double range)
{
    double step = pow(10, floor(log10(range / 4)));
    return range / step >= 20 ? 5 * step : range / step >= 8 ? 2 * step : step;
}

static void plot_ticks(void)
{
    double dx = plot_step(plot_x1 - plot_x0), dy = plot_step(plot_y1 - plot_y0);
    for (double x = ceil(plot_x0 / dx) * dx; x <= plot_x1 + dx / 99; x += dx)
        fprintf(plot_file, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n",
                plot_x(x), PLOT_TOP + PLOT_HEIGHT + 16, fabs(x) < dx / 99 ? 0 : x);
    for (double y = ceil(plot_y0 / dy) * dy; y <= plot_y1 + dy / 99; y += dy)
        fprintf(plot_file, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
                PLOT_LEFT - 5, plot_y(y) + 4, fabs(y) < dy / 99 ? 0 : y);
}

static void plot_open(const char *path, double x0, double x1, double y0, double y1)
{
    plot_file = fopen(path, "w");
    if (!plot_file)
        exit(1);
    plot_x0 = x0, plot_x1 = x1, plot_y0 = y0, plot_y1 = y1, plot_colour = 0;
    fprintf(
        plot_file,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 460 336\" width=\"460\" "
        "height=\"336\" "
        "font-family=\"sans-serif\" font-size=\"11\" fill=\"#374151\">\n"
        "<clipPath id=\"f\"><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/></clipPath>\n"
        "<rect width=\"460\" height=\"336\" fill=\"#ffffff\"/>\n",
        PLOT_LEFT, PLOT_TOP, PLOT_WIDTH, PLOT_HEIGHT);
    plot_ticks();
}

static inline void plot_line(int n, const double *x, const double *y)
{
    fprintf(plot_file,
            "<polyline clip-path=\"url(#f)\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.2\" "
            "points=\"",
            plot_next_colour());
    for (int i = 0; i < n; i++)
        fprintf(plot_file, "%.1f,%.1f%c", plot_x(x[i]), plot_y(y[i]),
                i % 12 == 11 ? '\n' : ' ');
    fprintf(plot_file, "\"/>\n");
}

static inline void plot_points(int n, const double *x, const double *y)
{
    const char *colour = plot_next_colour();
    for (int i = 0; i < n; i++)
        fprintf(plot_file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\" fill=\"%s\"/>\n",
                plot_x(x[i]), plot_y(y[i]), colour);
}

// The field z[rows][columns] over the whole frame, the first row below: 16 colours from low to high.
static inline void plot_field(int rows, int columns, const double *z, double low, double high)
{
    for (int c = 0; c < 16; c++) {
        double t = c / 15.0;
        fprintf(
            plot_file,
            "<path fill=\"#%02x%02x%02x\" transform=\"translate(%d %d) scale(%.4f %.4f)\" d=\"",
            (int)(40 + 215 * t * t), (int)(30 + 190 * t), (int)(90 + 90 * sin(M_PI * t)),
            PLOT_LEFT, PLOT_TOP, (double)PLOT_WIDTH / columns, (double)PLOT_HEIGHT / rows);
        for (int r = 0; r < rows; r++)
            for (int k = 0, from; k < columns; k++) {
                for (from = k; k < columns; k++) {
                    double level = (z[r * columns + k] - low) / (high - low) * 16;
                    if ((level < 0 ? 0 : level > 15 ? 15 : (int)level) != c)
                        break;
                }
                if (k > from)
                    fprintf(plot_file, "M%d %dh%dv1.1h-%d\n", from, rows - 1 - r, k - from,
                            k - from);
            }
        fprintf(plot_file, "\"/>\n");
    }
    plot_colour = 1; // the first one is like the field
}

static void plot_close(void)
{
    fprintf(plot_file,
            "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" "
            "stroke=\"#374151\"/>\n</svg>\n",
            PLOT_LEFT, PLOT_TOP, PLOT_WIDTH, PLOT_HEIGHT);
    fclose(plot_file);
}

#endif
