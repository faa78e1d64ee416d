// SPDX-License-Identifier: Apache-2.0
// Files of the reference implementation (arrays/, by make_arrays.py) are read and mapped, and
// its bytes are written again; what is wrong with others is named with its place.  Structs of
// arrays in archives.
#include "base/memory.h"
#include "interop/folder.h"
#include "jot/jot.h"
#include "support/suite.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FOLDER "tests/interop/arrays/"

static void check_bytes(const char *path, const char *want_path)
{
    size_t n, want_n;
    void *bytes = folder_slurp(path, &n), *want = folder_slurp(want_path, &want_n);
    ck_assert_msg(n == want_n && !memcmp(bytes, want, n), "%s has other bytes than %s", path,
                  want_path);
    free(bytes), free(want);
}

static jot_archive *(*const openers[])(const char *path) = {jot_archive_load, jot_archive_map};

static void refuses(void *result, const char *message)
{
    ck_assert_ptr_null(result);
    ck_assert_msg(strstr(jot_error_message(), message) != NULL, "'%s' is not '%s'",
                  jot_error_message(), message);
}

// Element k of an array is k + 1, of a complex one k + 1 - k i, of bool and of e5m2 k modulo 2
// and 8.
static void check_elements(const char *type, jot_array *a)
{
    char text[400], want[40];
    ck_assert_int_eq(jot_array_rank(a), 2);
    ck_assert_int_eq(jot_array_size(a), 6);
    ck_assert_int_lt(jot_array_format(a, text, sizeof text), (int)sizeof text);
    const char *at = text;
    for (int k = 0; k < 6; k++) {
        strcpy(want, k % 2 ? "true" : "false");
        if (strcmp(type, "e5m2") == 0)
            sprintf(want, "%d", k);
        else if (strcmp(type, "bool") != 0)
            sprintf(want, "%d", k + 1);
        at = strstr(at, want);
        ck_assert_msg(at != NULL, "%s: %s has no %s in order", type, text, want);
        at += strlen(want);
    }
}

START_TEST(reads_and_writes_the_reference)
{
    static const char *const names[] = {"types", "shapes", "none"};
    char path[100];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, FOLDER "%s.safetensors", names[i]);
        jot_archive *a = openers[_i](path);
        ck_assert_msg(a != NULL, "%s", jot_error_message());
        for (size_t k = 0; i == 0 && k < jot_archive_count(a); k++) {
            jot_array *x = jot_archive_get(a, jot_archive_name(a, k));
            ck_assert_msg(x != NULL, "%s", jot_error_message());
            ck_assert_str_eq(jot_dtype_name(jot_array_dtype(x)), jot_archive_name(a, k));
            check_elements(jot_archive_name(a, k), x);
            jot_array_release(x);
        }
        ck_assert_int_eq(jot_archive_save_safetensors(a, folder_path("again")), JOT_OK);
        check_bytes(folder_path("again"), path);
        jot_archive_release(a);
    }
    ck_assert_uint_eq(jot_memory().blocks, 0);
}
END_TEST

START_TEST(reads_other_types_or_says_which)
{
    jot_archive *a = openers[_i](FOLDER "others.safetensors");
    jot_array *x = jot_archive_get(a, "e5m2");
    ck_assert_int_eq(jot_array_dtype(x), JOT_F16);
    check_elements("e5m2", x);
    refuses(jot_archive_get(a, "e4m3"), "e4m3 is of the type F8_E4M3, which jot does not have");
    refuses(jot_archive_get(a, "no"), "there is no no among the 2 arrays");
    jot_array_release(x);
    jot_archive_release(a);
}
END_TEST

START_TEST(reads_what_an_index_names)
{
    jot_archive *a = openers[_i](FOLDER "model.safetensors.index.json");
    ck_assert_msg(a != NULL, "%s", jot_error_message());
    ck_assert_int_eq(jot_archive_count(a), 4);
    ck_assert_str_eq(jot_archive_metadata(a, "format"), "pt");
    for (const char *name = "wbxy"; *name; name++) {
        jot_array *x = jot_archive_get(a, (const char[]){*name, 0});
        check_elements("f32", x);
        jot_array_release(x);
    }
    jot_archive_release(a);
}
END_TEST

// Whether it lies in a map of its file, where offset 0 begins a page.
static void check_is_mapped(const jot_array *a, size_t offset)
{
    if (jot_array_device(a) == jot_host())
        ck_assert_uint_eq((uintptr_t)jot_array_data(a) % 4096, offset);
}

// Mapped arrays stay when their archive is gone; what cannot be mapped is read.
START_TEST(maps_what_can_be_mapped)
{
    jot_archive *a = jot_archive_map(FOLDER "types.safetensors");
    jot_array *x = jot_archive_get(a, "f32"), *y = jot_archive_get(a, "bool");
    jot_archive_release(a);
    check_elements("f32", x);
    check_is_mapped(x, 920 + 192);
    jot_array_release(x), jot_array_release(y);
    jot_array *z = jot_array_map(FOLDER "f32_2x3x4_C_le.npy");
    jot_array *f = jot_array_map(FOLDER "f32_2x3x4_F_le.npy");
    jot_array *w = jot_array_map(FOLDER "f64_2x3x4_C_be.npy");
    check_is_mapped(z, 128);
    ck_assert_float_eq(((const float *)jot_array_data(z))[23], 24);
    ck_assert_float_eq(((const float *)jot_array_data(f))[23], 24);
    ck_assert_double_eq(((const double *)jot_array_data(w))[23], 24);
    jot_array_release(z), jot_array_release(f), jot_array_release(w);
    a = jot_archive_map(FOLDER "stored.npz");
    x = jot_archive_get(a, "x");
    jot_archive_release(a);
    ck_assert_float_eq(((const float *)jot_array_data(x))[5], 6);
    jot_array_release(x);
    // What jot writes is aligned.
    a = jot_archive_load(FOLDER "stored.npz");
    ck_assert_int_eq(jot_archive_save(a, folder_path("stored.npz"), false), JOT_OK);
    jot_archive_release(a);
    a = jot_archive_map(folder_path("stored.npz"));
    x = jot_archive_get(a, "w");
    if (jot_array_device(x) == jot_host())
        ck_assert_int_eq(((const char *)jot_array_data(x))[-1], '\n'); // the header's
    jot_array_release(x), jot_archive_release(a);
    refuses(jot_array_map("/nowhere"), "No such file");
    ck_assert_uint_eq(jot_memory().blocks, 0);
}
END_TEST

START_TEST(keeps_texts)
{
    const char *text = "a \"script\"\\,\n\tk\303\244se \1";
    jot_archive *a = jot_archive_load(FOLDER "types.safetensors");
    ck_assert_str_eq(jot_archive_metadata(a, "made by"), text);
    ck_assert_str_eq(jot_archive_metadata_key(a, 0), "made by");
    ck_assert_ptr_null(jot_archive_metadata_key(a, 1));
    ck_assert_ptr_null(jot_archive_metadata(a, "none"));
    ck_assert_int_eq(jot_archive_set_metadata(a, "made by", "me"), JOT_OK);
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(jot_archive_set_metadata(a, (char[]){(char)('a' + i), 0}, text),
                         JOT_OK);
    ck_assert_int_eq(jot_archive_set_metadata(a, "a", NULL), JOT_OK);
    ck_assert_int_eq(jot_archive_save_safetensors(a, folder_path("x")), JOT_OK);
    jot_archive_release(a);
    a = jot_archive_load(folder_path("x"));
    ck_assert_str_eq(jot_archive_metadata(a, "made by"), "me");
    ck_assert_str_eq(jot_archive_metadata(a, "t"), text);
    ck_assert_ptr_null(jot_archive_metadata(a, "a"));
    jot_archive_release(a);
}
END_TEST

// w and b of 24 bytes fit into 50, x and y follow.
START_TEST(writes_parts_and_their_index)
{
    jot_archive *a = jot_archive_load(FOLDER "model.safetensors.index.json");
    ck_assert_int_eq(jot_archive_save_parts(a, folder_path("m.safetensors"), 50), JOT_OK);
    ck_assert_int_eq(folder_count(), 3);
    size_t n;
    char *index = folder_slurp(folder_path("m.safetensors.index.json"), &n);
    ck_assert_str_eq(index,
                     "{\n  \"metadata\": {\n    \"total_size\": 96\n  },\n  \"weight_map\": {\n"
                     "    \"w\": \"m-00001-of-00002.safetensors\",\n"
                     "    \"b\": \"m-00001-of-00002.safetensors\",\n"
                     "    \"x\": \"m-00002-of-00002.safetensors\",\n"
                     "    \"y\": \"m-00002-of-00002.safetensors\"\n  }\n}\n");
    free(index);
    check_bytes(folder_path("m-00001-of-00002.safetensors"), FOLDER "model-1.safetensors");
    check_bytes(folder_path("m-00002-of-00002.safetensors"), FOLDER "model-2.safetensors");
    // One array is never too long, and the map has all of them.
    ck_assert_int_eq(jot_archive_save_parts(a, folder_path("k.safetensors"), 0), JOT_OK);
    jot_archive_release(a);
    a = jot_archive_map(folder_path("k.safetensors.index.json"));
    ck_assert_int_eq(jot_archive_count(a), 4);
    jot_array *x = jot_archive_get(a, "y");
    check_elements("f32", x);
    jot_array_release(x);
    ck_assert_int_eq(jot_archive_save_parts(a, folder_path("k"), 0), JOT_ERR_ARGUMENT);
    refuses(NULL, "k does not end with .safetensors");
    jot_archive_release(a);
}
END_TEST

// ---- what is wrong ----

static const struct {
    const char *header, *message;
    size_t n; // bytes of elements
} wrong[] = {
    {"[]", "is no archive", 0},
    {"{", "offset 9: there is no '\"' here", 0},
    {"{\"w\" 1}", "offset 13: there is no ':' here", 0},
    {"{\"w", "offset 11: the string does not end", 0},
    {"{\"\\x\"}", "there is no such escape", 0},
    {"{\"\\ud800\"}", "half a surrogate pair", 0},
    {"{\"\\u0000\"}", "a zero character", 0},
    {"{\"a\tb\"}", "a control character", 0},
    {"{\"w\":{}}", "w has no dtype", 0},
    {"{\"w\":{\"dtype\":\"U8\"}}", "w has no shape", 0},
    {"{\"w\":{\"dtype\":\"U8\",\"shape\":[]}}", "w has no data_offsets", 0},
    {"{\"w\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", "w has two dtype", 0},
    {"{\"w\":{\"form\":1}}", "w has the unknown form", 0},
    {"{\"w\":{\"shape\":[-1]}}", "there is no count here", 0},
    {"{\"w\":{\"shape\":[1.5]}}", "a fraction or an exponent", 0},
    {"{\"w\":{\"shape\":[99999999999999999999]}}", "the count is too large", 0},
    {"{\"w\":{\"shape\":[10000000000000000000]}}", "one that is too long", 0},
    {"{\"w\":{\"data_offsets\":[2,1]}}", "w ends before it begins", 0},
    {"{\"w\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}",
     "w ends at 2 of the elements, of which there are 1 bytes", 1},
    {"{\"w\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}",
     "offset 63: 1 bytes that belong to no tensor", 3},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}",
     "offset 9: w: 2 elements of F32 do not take 4 bytes", 4},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,4]}}",
     "w has too many elements", 4},
    {"{\"w\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
     "w begins at 1 of the elements, where 0 comes next", 2},
    {"{\"w\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
     "\"w\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
     "there are two of the name w", 2},
    {"{\"__metadata__\":{\"k\":1}}", "there is no '\"' here", 0},
    {"{} x", "more text behind the end", 0},
};

START_TEST(says_what_is_wrong_with_a_file)
{
    unsigned char bytes[400] = {0};
    size_t n = strlen(wrong[_i].header);
    bytes[0] = (unsigned char)n;
    memcpy(bytes + 8, wrong[_i].header, n);
    folder_spill(folder_path("x"), bytes, 8 + n + wrong[_i].n);
    for (int i = 0; i < 2; i++)
        refuses(openers[i](folder_path("x")), wrong[_i].message);
    refuses(jot_archive_from_memory("x", bytes, 8 + n + wrong[_i].n), wrong[_i].message);
}
END_TEST

START_TEST(says_what_is_wrong_with_a_length)
{
    unsigned char bytes[16] = {7, 0, 0, 0, 0, 0, 0, 0, '{', '}'};
    folder_spill(folder_path("x"), bytes, 10);
    refuses(jot_archive_load(folder_path("x")), "a header of 7 bytes, but there are 2");
    bytes[7] = 1;
    folder_spill(folder_path("x"), bytes, 10);
    refuses(jot_archive_load(folder_path("x")), "more than the format allows");
}
END_TEST

// The first byte of such a length is the bracket that an index begins with.
START_TEST(reads_a_header_as_long_as_a_bracket)
{
    unsigned char bytes[8 + '{'] = {'{'};
    memset(bytes + 8, ' ', '{');
    memcpy(bytes + 8, "{}", 2);
    folder_spill(folder_path("x"), bytes, sizeof bytes);
    jot_archive *a = jot_archive_load(folder_path("x"));
    ck_assert_msg(a != NULL, "%s", jot_error_message());
    jot_archive_release(a);
}
END_TEST

static const struct {
    const char *index, *message;
} wrong_indexes[] = {
    {"{}", "offset 2: there is no weight_map"},
    {"{\"weight_map\":{\"w\":\"../x\"}}", "../x is no name of a file beside the index"},
    {"{\"weight_map\":{\"w\":\"no\"}}", "/no: No such file"},
    {"{\"weight_map\":{\"z\":\"one\"}}", "there is no z in one"},
    {"{\"weight_map\":{\"w\":\"one\"},\"weight_map\":{}}", "there are two maps"},
    {"{\"a\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
     "more than 64"},
    {"{\"a\":[1.5e+3,true,null,{\"b\":\"c\"}],\"weight_map\":{}} x",
     "more text behind the end"},
};

START_TEST(says_what_is_wrong_with_an_index)
{
    size_t n;
    void *one = folder_slurp(FOLDER "model-1.safetensors", &n);
    folder_spill(folder_path("one"), one, n);
    free(one);
    const char *index = wrong_indexes[_i].index;
    folder_spill(folder_path("x"), index, strlen(index));
    refuses(jot_archive_load(folder_path("x")), wrong_indexes[_i].message);
}
END_TEST

// A file that cannot be written stays as it was, and nothing lies beside it.
START_TEST(a_failure_leaves_the_file)
{
    size_t n;
    jot_archive *a = jot_archive_create();
    jot_array *x = jot_array_full(JOT_C128, 1, 2), *y = jot_array_full(JOT_F32, 1, 2);
    folder_spill(folder_path("x"), "before", 6);
    ck_assert_int_eq(jot_archive_add(a, "a", x), JOT_OK);
    ck_assert_int_eq(jot_archive_save_safetensors(a, folder_path("x")), JOT_ERR_DTYPE);
    refuses(NULL, "a is c128, which safetensors does not have");
    jot_archive_release(a);
    a = jot_archive_create();
    ck_assert_int_eq(jot_archive_add(a, "a\xff", y), JOT_OK);
    ck_assert_int_eq(jot_archive_save_safetensors(a, folder_path("x")), JOT_ERR_ARGUMENT);
    void *bytes = folder_slurp(folder_path("x"), &n);
    ck_assert(n == 6 && !memcmp(bytes, "before", 6));
    ck_assert_int_eq(folder_count(), 1);
    free(bytes);
    jot_archive_release(a);
    jot_array_release(x), jot_array_release(y);
}
END_TEST

// A process that is killed while it saves leaves the old file or the new one.
START_TEST(a_crash_leaves_a_whole_file)
{
    enum { BYTES = 1 << 22 };
    jot_array *x = jot_array_full(JOT_U8, 0, BYTES);
    jot_archive *a = jot_archive_create();
    ck_assert_int_eq(jot_archive_add(a, "x", x), JOT_OK);
    ck_assert_int_eq(jot_archive_save_safetensors(a, folder_path("x")), JOT_OK);
    jot_array_release(x), jot_archive_release(a);
    int n_old = 0, n_new = 0;
    for (int i = 0; i < 40; i++) {
        pid_t child = fork();
        if (child == 0) {
            jot_archive *b = jot_archive_create();
            jot_array *y = jot_array_full(JOT_U8, 1 + i, BYTES);
            bool is_well = jot_archive_add(b, "x", y) == JOT_OK &&
                           jot_archive_save_safetensors(b, folder_path("x")) == JOT_OK;
            _exit(!is_well);
        }
        usleep((useconds_t)(500 * i));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        a = jot_archive_load(folder_path("x"));
        ck_assert_msg(a != NULL, "%s", jot_error_message());
        jot_array *y = jot_archive_get(a, "x");
        const unsigned char *bytes = jot_array_data(y);
        ck_assert(!memcmp(bytes, bytes + 1, BYTES - 1));
        n_new += bytes[0] == 1 + i;
        n_old += bytes[0] < 1 + i;
        jot_array_release(y), jot_archive_release(a);
    }
    ck_assert_int_eq(n_old + n_new, 40);
    ck_assert_int_gt(n_old, 0);
}
END_TEST

// ---- structs ----

JOT_STRUCT(net, w, b);
JOT_STRUCT(state, count, moments[4], (struct net, mean));

static void fill(struct net_arrays *p, struct state_arrays *s)
{
    p->w = jot_array_full(JOT_F32, 1, 2, 3);
    p->b = jot_array_full(JOT_BF16, 2, 3);
    s->count = jot_array_full(JOT_I32, 7);
    for (int i = 0; i < 4; i++)
        s->moments[i] = jot_array_full(JOT_F64, i, i);
    s->mean.w = jot_array_retain(p->w);
    s->mean.b = jot_array_retain(p->b);
}

static void forget(struct net_arrays *p, struct state_arrays *s)
{
    jot_arrays_release(JOT_OUT(*p));
    jot_arrays_release(JOT_OUT(*s));
}

START_TEST(structs_have_names)
{
    struct net_arrays p, q = {0};
    struct state_arrays s, t = {0};
    jot_archive *a = jot_archive_create();
    fill(&p, &s);
    ck_assert_int_eq(jot_archive_add_tree(a, "net", JOT_MEMBERS(net), JOT_OUT(p)), JOT_OK);
    ck_assert_int_eq(jot_archive_add_tree(a, NULL, JOT_MEMBERS(state), JOT_OUT(s)), JOT_OK);
    ck_assert_int_eq(jot_archive_count(a), 9);
    ck_assert_str_eq(jot_archive_name(a, 0), "net.w");
    ck_assert_str_eq(jot_archive_name(a, 4), "moments[1]");
    ck_assert_str_eq(jot_archive_name(a, 7), "mean.w");
    ck_assert_int_eq(_i ? jot_archive_save(a, folder_path("x"), false)
                        : jot_archive_save_safetensors(a, folder_path("x")),
                     JOT_OK);
    jot_archive_release(a);
    a = jot_archive_load(folder_path("x"));
    ck_assert_int_eq(jot_archive_get_tree(a, "net", JOT_MEMBERS(net), JOT_OUT(q)), JOT_OK);
    ck_assert_int_eq(jot_archive_get_tree(a, NULL, JOT_MEMBERS(state), JOT_OUT(t)), JOT_OK);
    ck_assert_int_eq(jot_array_dtype(q.b), JOT_BF16);
    ck_assert(jot_array_item(t.count) == 7 && jot_array_dim(t.moments[3], 0) == 3);
    ck_assert_int_eq(jot_array_size(t.mean.w), 6);
    forget(&p, &s), forget(&q, &t);
    jot_archive_release(a);
}
END_TEST

START_TEST(structs_stay_when_a_name_is_missing)
{
    struct net_arrays p, q;
    struct state_arrays s, t;
    jot_archive *a = jot_archive_create();
    fill(&p, &s), fill(&q, &t);
    ck_assert_int_eq(jot_archive_add(a, "net.b", p.b), JOT_OK);
    ck_assert_int_eq(jot_archive_add_tree(a, "net", JOT_MEMBERS(net), JOT_OUT(p)),
                     JOT_ERR_ARGUMENT);
    refuses(NULL, "there is a net.b already");
    ck_assert_int_eq(jot_archive_count(a), 1);
    jot_array *w = q.w, *b = q.b;
    ck_assert_int_eq(jot_archive_get_tree(a, "net", JOT_MEMBERS(net), JOT_OUT(q)),
                     JOT_ERR_ARGUMENT);
    refuses(NULL, "there is no net.w among the 1 arrays");
    ck_assert(q.w == w && q.b == b);
    ck_assert_int_eq(jot_archive_get_tree(a, "net", JOT_MEMBERS(net), JOT_OUT(t)),
                     JOT_ERR_ARGUMENT);
    refuses(NULL, "n is 7 arrays, and the struct has 2");
    jot_array_release(p.b);
    p.b = NULL;
    ck_assert_int_eq(jot_archive_add_tree(a, "other", JOT_MEMBERS(net), JOT_OUT(p)),
                     JOT_ERR_ARGUMENT);
    refuses(NULL, "other.b is NULL");
    ck_assert_int_eq(jot_archive_count(a), 1);
    forget(&p, &s), forget(&q, &t);
    jot_archive_release(a);
}
END_TEST

// ---- memory ----

static bool whole_life(void)
{
    static const char *const files[] = {FOLDER "types.safetensors",
                                        FOLDER "model.safetensors.index.json"};
    bool is_well = true;
    for (int i = 0; is_well && i < 2; i++) {
        jot_archive *a = jot_archive_map(files[i]);
        jot_array *x = a ? jot_archive_get(a, i ? "w" : "bool") : NULL;
        jot_array *y = x ? jot_archive_get(a, i ? "x" : "f32") : NULL;
        is_well = y && jot_archive_set_metadata(a, "k", "text") == JOT_OK &&
                  jot_archive_save_parts(a, folder_path("x.safetensors"), 50) == JOT_OK &&
                  jot_archive_save_safetensors(a, folder_path("x")) == JOT_OK;
        jot_array_release(x), jot_array_release(y);
        jot_archive_release(a);
    }
    return is_well;
}

START_TEST(survives_lack_of_memory)
{
    int64_t blocks = memory_live_blocks();
    for (uint64_t n = 1;; n += 1 + n / 16) {
        memory_fail_after(n);
        bool is_well = whole_life();
        memory_fail_after(0);
        ck_assert_int_eq(memory_live_blocks(), blocks);
        if (is_well)
            return;
        ck_assert_msg(strstr(jot_error_message(), "memory") != NULL, "%s", jot_error_message());
        ck_assert_int_lt(n, 1000);
    }
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_checked_fixture(t, folder_make, folder_remove);
    tcase_add_loop_test(t, reads_and_writes_the_reference, 0, 2);
    tcase_add_loop_test(t, reads_other_types_or_says_which, 0, 2);
    tcase_add_loop_test(t, reads_what_an_index_names, 0, 2);
    tcase_add_test(t, maps_what_can_be_mapped);
    tcase_add_test(t, writes_parts_and_their_index);
    tcase_add_test(t, keeps_texts);
    tcase_add_loop_test(t, says_what_is_wrong_with_a_file, 0,
                        (int)(sizeof wrong / sizeof *wrong));
    tcase_add_test(t, says_what_is_wrong_with_a_length);
    tcase_add_test(t, reads_a_header_as_long_as_a_bracket);
    tcase_add_loop_test(t, says_what_is_wrong_with_an_index, 0,
                        (int)(sizeof wrong_indexes / sizeof *wrong_indexes));
    tcase_add_test(t, a_failure_leaves_the_file);
    tcase_add_test(t, a_crash_leaves_a_whole_file);
    tcase_add_loop_test(t, structs_have_names, 0, 2);
    tcase_add_test(t, structs_stay_when_a_name_is_missing);
    tcase_add_test(t, survives_lack_of_memory);
}

int main(void) { return suite_run("safetensors", add_tests); }
