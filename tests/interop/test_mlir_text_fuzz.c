// SPDX-License-Identifier: Apache-2.0
// Any text gives a program or a message with line and column, and memory in proportion; what is a
// program is written so that it reads back.  Programs have bytes, words and lines changed, taken
// out, doubled and taken from elsewhere.  JOT_TEST_SEED=n chooses them, JOT_TEST_COUNT says how many
// there are.
#include "base/hash.h"
#include "interop/tree.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAMS "tests/interop/programs/"

static const char *const names[] = {PROGRAMS "text_forms.mlir", PROGRAMS "written.mlir",
                                    PROGRAMS "forms.mlir",      PROGRAMS "loops.mlir",
                                    PROGRAMS "resources.mlir",  PROGRAMS "general.mlir"};
enum { N_NAMES = sizeof names / sizeof *names, MAX_SIZE = 1 << 16, MOST_PIECE = 300 };

static unsigned char *corpus[N_NAMES];
static size_t sizes[N_NAMES];

static uint64_t random_state;

static uint64_t random_below(uint64_t n)
{
    random_state += UINT64_C(0x9e3779b97f4a7c15);
    return hash_mix(random_state) % n;
}

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

// The word, line or byte at a place or before it.
static size_t find_piece(const unsigned char *bytes, size_t n, size_t *at)
{
    size_t start = *at, end = *at;
    uint64_t kind = random_below(3);
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
    size_t at = random_below(t->n), from, length;
    switch (random_below(5)) {
    case 0:
        t->bytes[at] = (unsigned char)random_below(256);
        break;
    case 1: {
        const char *word = words[random_below(sizeof words / sizeof *words)];
        length = find_piece(t->bytes, t->n, &at);
        replace(t, at, random_below(2) ? length : 0, word, *word ? strlen(word) : 1);
        break;
    }
    case 2:
        length = find_piece(t->bytes, t->n, &at);
        replace(t, at, length, "", 0);
        break;
    default: { // of a program, perhaps this one
        size_t which = random_below(N_NAMES);
        from = random_below(sizes[which]);
        length = find_piece(corpus[which], sizes[which], &from);
        size_t old = find_piece(t->bytes, t->n, &at);
        replace(t, at, random_below(2) ? old : 0, corpus[which] + from, length);
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
    // In a block that ends with the text.
    unsigned char *exact = malloc(n + !n);
    memcpy(exact, bytes, n);
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

START_TEST(survives_any_text)
{
    static struct text text;
    const char *count = getenv("JOT_TEST_COUNT"), *seed = getenv("JOT_TEST_SEED");
    long rounds = 3 * (count ? strtol(count, NULL, 10) : 1500), accepted = 0;
    random_state = seed ? strtoull(seed, NULL, 0) : UINT64_C(20261126);
    printf("JOT_TEST_SEED=%llu\n", (unsigned long long)random_state);
    for (int i = 0; i < N_NAMES; i++)
        corpus[i] = tree_load(names[i], &sizes[i]);
    for (long round = 0; round < rounds; round++) {
        size_t which = random_below(N_NAMES);
        text.n = sizes[which];
        memcpy(text.bytes, corpus[which], text.n);
        for (uint64_t k = random_below(4); k > 0 && text.n; k--)
            mutate(&text);
        accepted += read_any(text.bytes, text.n);
    }
    printf("%ld of %ld were programs\n", accepted, rounds);
    ck_assert_int_gt(accepted, rounds / 10);
    for (int i = 0; i < N_NAMES; i++)
        free(corpus[i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mlir_text_fuzz");
    TCase *group = tcase_create("mlir_text_fuzz");
    tcase_set_timeout(group, 600);
    tcase_add_test(group, survives_any_text);
    suite_add_tcase(suite, group);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
