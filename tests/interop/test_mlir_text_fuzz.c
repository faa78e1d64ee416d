// SPDX-License-Identifier: Apache-2.0
// Any text gives a program or a message with line and column, and memory in proportion; what is a
// program is written so that it reads back.  Programs have bytes, words and lines changed, taken
// out, doubled and taken from elsewhere (fuzz.h).
#include "interop/fuzz.h"
#include "interop/tree.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAMS "tests/interop/programs/"

enum { MAX_SIZE = 1 << 16, MOST_PIECE = 300 };

struct text {
    unsigned char bytes[MAX_SIZE + 1];
    size_t n;
};

static void replace(struct text *t, size_t at, size_t old, const void *with, size_t length)
{
    if (at + old > t->n || t->n - old + length > MAX_SIZE)
        return;
    unsigned char piece[MOST_PIECE];
    length = length > MOST_PIECE ? MOST_PIECE : length;
    memcpy(piece, with, length); // which may be of the text itself
    memmove(t->bytes + at + length, t->bytes + at + old, t->n - at - old);
    memcpy(t->bytes + at, piece, length);
    t->n += length - old;
}

static bool is_letter(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || c == '.' || c == '%' || c == '@' || c == '#';
}

// The word, line or byte at an offset or before it.
static size_t find_piece(const unsigned char *bytes, size_t n, size_t *at)
{
    size_t start = *at, end = *at;
    uint64_t kind = fuzz_below(3);
    if (kind == 0 || (kind == 1 && !is_letter(bytes[start])))
        return 1;
    while (start > 0 && (kind == 1 ? is_letter(bytes[start - 1]) : bytes[start - 1] != '\n'))
        start--;
    while (end < n && (kind == 1 ? is_letter(bytes[end]) : bytes[end] != '\n'))
        end++;
    *at = start;
    return end - start + (kind == 2 && end < n);
}

static void mutate(struct text *t)
{
    static const char *const words[] = {"(",
                                        ")",
                                        "{",
                                        "}",
                                        "[",
                                        "]",
                                        "<",
                                        ">",
                                        "<{",
                                        "}>",
                                        ":",
                                        ",",
                                        "=",
                                        "->",
                                        "x",
                                        "%",
                                        "%0",
                                        "%arg0",
                                        "@",
                                        "#",
                                        "\"",
                                        "^bb0:",
                                        "!",
                                        "-",
                                        "0",
                                        "1",
                                        "-1",
                                        "0x7F",
                                        "1.0e9",
                                        "dense<",
                                        "inf",
                                        "true",
                                        "?",
                                        "f32",
                                        "i1",
                                        "i4",
                                        "ui64",
                                        "//",
                                        "\n",
                                        "::",
                                        "loc(",
                                        "\0",
                                        "\xff",
                                        "array<i64: ",
                                        "tensor<",
                                        "99999999999",
                                        "9223372036854775808",
                                        "tensor<9999999x99999999xf32>",
                                        "complex<f32>",
                                        "tuple<",
                                        "stablehlo.",
                                        "func.func",
                                        "{-#",
                                        "#-}",
                                        "module",
                                        "return"};
    size_t at = fuzz_below(t->n), from, length;
    switch (fuzz_below(5)) {
    case 0:
        t->bytes[at] = (unsigned char)fuzz_below(256);
        break;
    case 1: {
        const char *word = words[fuzz_below(sizeof words / sizeof *words)];
        length = find_piece(t->bytes, t->n, &at);
        replace(t, at, fuzz_below(2) ? length : 0, word, *word ? strlen(word) : 1);
        break;
    }
    case 2:
        length = find_piece(t->bytes, t->n, &at);
        replace(t, at, length, "", 0);
        break;
    default: { // of a program, perhaps this one
        const struct fuzz_file *other = fuzz_any_file();
        from = fuzz_below(other->n);
        length = find_piece(other->bytes, other->n, &from);
        size_t old = find_piece(t->bytes, t->n, &at);
        replace(t, at, fuzz_below(2) ? old : 0, other->bytes + from, length);
    }
    }
}

static bool is_place(const char *message)
{
    unsigned long line, column;
    int n = 0;
    return sscanf(message, "f:%lu:%lu: %n", &line, &column, &n) == 2 && n > 0;
}

static bool read_any(const unsigned char *bytes, size_t n)
{
    unsigned char *exact = fuzz_exact(bytes, n);
    struct mlir_program *p = NULL, *q = NULL;
    bool is_good = mlir_read_text("f", exact, n, &p) == JOT_OK;
    if (!is_good) {
        ck_assert_ptr_null(p);
        ck_assert_msg(is_place(jot_error_message()), "%s", jot_error_message());
        free(exact);
        return false;
    }
    ck_assert_msg(arena_bytes(p->arena) <= 100 * n + (1 << 20), "%zu bytes of %zu",
                  arena_bytes(p->arena), n);
    struct arena *arena = arena_create();
    struct strbuf text = strbuf_make(arena), again = strbuf_make(arena);
    mlir_write_text(&text, p);
    if (mlir_read_text("f", text.text, text.length, &q) != JOT_OK) {
        printf("%.*s\n---\n%s", (int)n, (const char *)exact, text.text);
        ck_abort_msg("what is written is not read: %s", jot_error_message());
    }
    mlir_write_text(&again, q);
    tree_compare("written again", text.text, again.text);
    mlir_release(p);
    mlir_release(q);
    arena_release(arena);
    free(exact);
    return true;
}

static bool change_and_read(const struct fuzz_file *file)
{
    static struct text text;
    text.n = file->n;
    memcpy(text.bytes, file->bytes, text.n);
    for (uint64_t k = fuzz_below(4); k > 0 && text.n; k--)
        mutate(&text);
    return read_any(text.bytes, text.n);
}

START_TEST(survives_any_text)
{
    static const char names[] =
        PROGRAMS "{text_forms,written,forms,loops,resources,general}.mlir";
    double part = fuzz_run(names, 3, 1500, change_and_read);
    ck_assert(part > 0.1 || getenv("JOT_TEST_COUNT"));
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_set_timeout(t, 1200);
    tcase_add_test(t, survives_any_text);
}

int main(void) { return suite_run("mlir_text_fuzz", add_tests); }
