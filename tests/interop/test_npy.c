// SPDX-License-Identifier: Apache-2.0
// Files that NumPy wrote (arrays/, by make_arrays.py) are read, and its bytes are written again; what is
// wrong with others is named with its place.
#include "base/memory.h"
#include "interop/folder.h"
#include "interop/zip.h"
#include "jot/jot.h"
#include "runtime/array.h"
#include "support/suite.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER "tests/interop/arrays/"

// ---- arrays ----

static double imaginary(const jot_array *a, size_t k)
{
    const void *data = jot_array_data(a);
    if (jot_array_dtype(a) == JOT_C64)
        return ((const float *)data)[2 * k + 1];
    return jot_array_dtype(a) == JOT_C128 ? ((const double *)data)[2 * k + 1] : 0;
}

// As make_arrays.py says; `type` is the name there.
static void check_elements(const char *type, const jot_array *a)
{
    size_t bytes = jot_dtype_size(jot_array_dtype(a));
    for (size_t k = 0; k < jot_array_size(a); k++) {
        double x =
            rt_element_to_f64(jot_array_dtype(a), (const char *)jot_array_data(a) + k * bytes);
        double want = !strcmp(type, "bool") ? k % 2 : !strcmp(type, "e5m2") ? k % 8 : k + 1.0;
        ck_assert_msg(x == want, "%s: element %zu is %g", type, k, x);
        ck_assert_double_eq(imaginary(a, k), type[0] == 'c' ? -(double)k : 0);
    }
}

static void check_file(const char *name)
{
    char path[256], type[16], shape[64], order, bytes[8];
    snprintf(path, sizeof path, FOLDER "%.200s", name);
    ck_assert_int_eq(sscanf(name, "%15[^_]_%63[^_]_%c_%2s", type, shape, &order, bytes), 4);
    jot_array *a = jot_array_load(path);
    ck_assert_msg(a != NULL, "%s", jot_error_message());
    ck_assert_str_eq(jot_dtype_name(jot_array_dtype(a)), !strcmp(type, "e5m2") ? "f16" : type);
    int rank = 0;
    if (strcmp(shape, "scalar"))
        for (char *at = strtok(shape, "x"); at; at = strtok(NULL, "x"))
            ck_assert_int_eq(jot_array_dim(a, rank++), atoi(at));
    ck_assert_int_eq(jot_array_rank(a), rank);
    check_elements(type, a);
    // What is written is what NumPy writes.
    ck_assert_int_eq(jot_array_save(folder_path("again.npy"), a), JOT_OK);
    if (order == 'C' && !strcmp(bytes, "le") && !strstr(name, "_v") && strcmp(type, "e5m2")) {
        size_t n, m;
        void *theirs = folder_slurp(path, &n),
             *ours = folder_slurp(folder_path("again.npy"), &m);
        ck_assert_msg(n == m && !memcmp(ours, theirs, n), "%s: other bytes", name);
        free(theirs);
        free(ours);
    }
    jot_array_release(a);
}

START_TEST(reads_and_writes_what_numpy_writes)
{
    int n = 0;
    DIR *d = opendir(FOLDER);
    ck_assert_ptr_nonnull(d);
    for (struct dirent *e; (e = readdir(d));)
        if (strstr(e->d_name, ".npy"))
            check_file(e->d_name), n++;
    closedir(d);
    ck_assert_int_ge(n, 35);
    ck_assert_uint_eq(jot_memory().blocks, 0);
}
END_TEST

static jot_array *from_header(const char *start, size_t n, const char *header, size_t elements)
{
    static unsigned char bytes[8192];
    size_t length = strlen(header), at = n;
    memcpy(bytes, start, n);
    for (int i = 0; i < (start[6] == 1 ? 2 : 4); i++)
        bytes[at++] = (unsigned char)(length >> 8 * i);
    memcpy(bytes + at, header, length);
    memset(bytes + at + length, 1, elements);
    return jot_array_from_npy("x.npy", bytes, at + length + elements);
}

static jot_array *with_header(const char *header, size_t elements)
{
    return from_header("\x93NUMPY\x01\x00", 8, header, elements);
}

START_TEST(reads_headers_as_python_may_write_them)
{
    static const char *const headers[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n",
        "{'shape':(2,3),'fortran_order':False,'descr':'<f4'}",
        " { \"descr\" : \"=f4\" , \"fortran_order\" : True , \"shape\" : ( 2L , 3L , ) } ",
        "{'descr': 'f4', 'fortran_order': False, 'shape': (2, 3,), }",
    };
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        jot_array *a = with_header(headers[i], 24);
        ck_assert_msg(a != NULL, "%s: %s", headers[i], jot_error_message());
        ck_assert_int_eq(jot_array_dim(a, 1), 3);
        jot_array_release(a);
    }
    jot_array *a =
        with_header("{'descr': 'bfloat16', 'fortran_order': False, 'shape': (3,)}", 6);
    ck_assert_int_eq(jot_array_dtype(a), JOT_BF16);
    jot_array_release(a);
    // A bool is a byte 0 or 1, whatever there is.
    a = jot_array_from_npy("x",
                           "\x93NUMPY\x01\x00\x39\x00{'descr': '|b1', 'fortran_order': False, "
                           "'shape': (3,)}\n\n\x00\x80\x01",
                           70);
    ck_assert_msg(a != NULL, "%s", jot_error_message());
    ck_assert_int_eq(memcmp(jot_array_data(a), "\0\1\1", 3), 0);
    jot_array_release(a);
}
END_TEST

static const struct {
    const char *header;
    int elements;
    const char *message;
} wrong[] = {
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}", 20,
     "x.npy: offset 67: the elements take 24 bytes, but there are 20"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}", 25,
     "offset 67: the elements take 24 bytes, but there are 25"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", 8,
     "make more bytes than any memory has"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4611686018427387904, "
     "4611686018427387904)}",
     0, "more bytes than any memory"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", 8,
     "offset 61: the size of axis 0 is beyond 64 bits"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", 8,
     "offset 61: shape has something else than sizes"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3)}", 12,
     "no ',' after its only size"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3 4)}", 12, "shape"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': 3}", 12, "no '(' before the sizes"},
    {"{'descr': '<f4', 'fortran_order': 0, 'shape': (3,)}", 12,
     "offset 44: fortran_order is neither True nor False"},
    {"{'descr': '<f4', 'shape': (3,)}", 12, "offset 10: the header has no fortran_order"},
    {"{'descr': '<f4', 'fortran_order': False, 'descr': '<f4'}", 12,
     "offset 51: the header has the key 'descr' twice"},
    {"{'descr': '<f4', 'order': False}", 12, "the key 'order', but"},
    {"{'descr': '<f4' 'fortran_order': False, 'shape': (3,)}", 12, "or ',' after an entry"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} x", 12, "goes on after its '}'"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)", 12, "has no '}'"},
    {"{'descr': '<f4", 12, "offset 20: the string here has no end"},
    {"{'descr': '<\\x664', 'fortran_order': False, 'shape': (3,)}", 12, "backslash"},
    {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,)}", 12,
     "offset 20: the elements are records"},
    {"{'descr': '|O', 'fortran_order': False, 'shape': (3,)}", 12,
     "'|O' is no element type of jot: Python objects"},
    {"{'descr': '<U3', 'fortran_order': False, 'shape': (1,)}", 12, "strings"},
    {"{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (1,)}", 8, "times"},
    {"{'descr': '<f16', 'fortran_order': False, 'shape': (1,)}", 16, "16 bytes a part"},
    {"{'descr': '<V1', 'fortran_order': False, 'shape': (3,)}", 3, "does not tell whether"},
    {"{'descr': '|V7', 'fortran_order': False, 'shape': (3,)}", 3, "raw bytes"},
    {"{'descr': '<i3', 'fortran_order': False, 'shape': (3,)}", 3,
     "descr '<i3' is no element type"},
    {"{'descr': '', 'fortran_order': False, 'shape': (3,)}", 3, "descr '' is no"},
    {"", 3, "the header has no '{'"},
};

START_TEST(says_what_is_wrong_with_a_header)
{
    jot_array *a = with_header(wrong[_i].header, (size_t)wrong[_i].elements);
    ck_assert_msg(a == NULL, "%s is read", wrong[_i].header);
    ck_assert_msg(strstr(jot_error_message(), wrong[_i].message) &&
                      !strncmp(jot_error_message(), "x.npy: offset ", 14),
                  "%s: %s", wrong[_i].header, jot_error_message());
    ck_assert_uint_eq(jot_memory().blocks, 0);
}
END_TEST

static void refuses(jot_array *a, const char *part)
{
    ck_assert_ptr_null(a);
    ck_assert_msg(strstr(jot_error_message(), part), "%s", jot_error_message());
}

START_TEST(says_what_is_wrong_with_a_file)
{
    refuses(jot_array_load("/nowhere/x.npy"), "/nowhere/x.npy: No such file");
    refuses(jot_array_load("/tmp"), "/tmp: Is a directory");
    refuses(jot_array_load(NULL), "jot_array_load: path is NULL");
    refuses(jot_array_load(FOLDER "stored.npz"), "jot_archive_load");
    refuses(jot_array_from_npy("x", "\x93NUM", 4),
            "x: offset 0: the begin of a .npy file takes 8");
    refuses(jot_array_from_npy("x", "not an array", 12), "offset 0: this is no .npy file");
    refuses(from_header("\x93NUMPY\x04\x00", 8, "{}", 0), "offset 6: version 4.0");
    refuses(jot_array_from_npy("x", "\x93NUMPY\x02\x00\xff\xff\xff\xff ", 13), "4294967295");
    refuses(jot_array_from_npy("x", "\x93NUMPY\x01\x00\xff\x00{}", 12), "the header takes 255");
    jot_array *a = jot_array_from(((float[]){1}), 1);
    ck_assert_int_eq(jot_array_save("/nowhere/x.npy", a), JOT_ERR_IO);
    ck_assert_int_eq(jot_array_save(NULL, a), JOT_ERR_ARGUMENT);
    ck_assert_int_eq(jot_array_save(folder_path("x.npy"), NULL), JOT_ERR_ARGUMENT);
    jot_array_release(a);
}
END_TEST

// All dtypes, ranks up to the highest, no elements, links, pipes.
START_TEST(writes_and_reads_back)
{
    for (int d = 0; jot_dtype_size((jot_dtype)d); d++)
        for (int rank = 0; rank <= RT_ARRAY_RANK_LIMIT; rank++) {
            int64_t dims[RT_ARRAY_RANK_LIMIT + 1];
            for (int i = 0; i < rank; i++)
                dims[i] = i % 13 == 2 ? 2 : i == 7 && d % 4 == 0 ? 0 : 1;
            dims[rank] = JOT_END;
            jot_array *a = jot_array_fill((jot_dtype)d, 1, dims);
            ck_assert_int_eq(jot_array_save(folder_path("x.npy"), a), JOT_OK);
            jot_array *b = jot_array_load(folder_path("x.npy"));
            ck_assert_msg(b != NULL, "%s", jot_error_message());
            ck_assert_int_eq(jot_array_dtype(b), d);
            ck_assert_int_eq(jot_array_rank(b), rank);
            for (int i = 0; i < rank; i++)
                ck_assert_int_eq(jot_array_dim(b, i), dims[i]);
            ck_assert_mem_eq(jot_array_data(a), jot_array_data(b), jot_array_bytes(a));
            jot_array_release(a);
            jot_array_release(b);
        }
}
END_TEST

START_TEST(keeps_links_and_modes)
{
    struct stat about;
    jot_array *a = jot_array_from(((float[]){1, 2}), 2);
    folder_spill(folder_path("file.npy"), "old", 3);
    ck_assert_int_eq(chmod(folder_path("file.npy"), 0600), 0);
    ck_assert_int_eq(symlink("file.npy", folder_path("link.npy")), 0);
    ck_assert_int_eq(jot_array_save(folder_path("link.npy"), a), JOT_OK);
    ck_assert_int_eq(lstat(folder_path("link.npy"), &about), 0);
    ck_assert(S_ISLNK(about.st_mode));
    ck_assert_int_eq(lstat(folder_path("file.npy"), &about), 0);
    ck_assert_int_eq(about.st_mode & 0777, 0600);
    ck_assert_int_eq(about.st_size, 136);
    // A pipe is read to its end.
    char command[200];
    snprintf(command, sizeof command, "cat %s > %s &", folder_path("file.npy"),
             folder_path("pipe"));
    ck_assert_int_eq(mkfifo(folder_path("pipe"), 0600), 0);
    ck_assert_int_eq(system(command), 0);
    jot_array *b = jot_array_load(folder_path("pipe"));
    ck_assert_msg(b != NULL, "%s", jot_error_message());
    ck_assert_float_eq(((const float *)jot_array_data(b))[1], 2);
    jot_array_release(a);
    jot_array_release(b);
}
END_TEST

// ---- archives ----

static const char *const members[] = {"x", "käse/y", "z", "w"};
static const char *const types[] = {"f32", "i64", "bool", "f64"};

static void check_members(jot_archive *a)
{
    ck_assert_msg(a != NULL, "%s", jot_error_message());
    ck_assert_uint_eq(jot_archive_count(a), 4);
    for (size_t i = 0; i < 4; i++) {
        char name[32];
        ck_assert_str_eq(jot_archive_name(a, i), members[i]);
        snprintf(name, sizeof name, "%s%s", members[i], i % 2 ? ".npy" : "");
        jot_array *x = jot_archive_get(a, name);
        ck_assert_msg(x != NULL, "%s", jot_error_message());
        ck_assert_str_eq(jot_dtype_name(jot_array_dtype(x)), types[i]);
        ck_assert_int_eq(jot_array_rank(x), i == 1 ? 1 : 2);
        check_elements(types[i], x);
        jot_array_release(x);
    }
    ck_assert_ptr_null(jot_archive_name(a, 4));
    refuses(jot_archive_get(a, "nothing"), "there is no nothing among the 4 arrays");
}

static const char *const archives[] = {"stored.npz", "deflated.npz", "descriptors.npz",
                                       "descriptors_wide.npz", "commented.npz"};

// Deflated members are a status where there is no zlib.
static bool can_read(const char *name)
{
    return JOT_HAS_ZLIB || (strcmp(name, "deflated.npz") && strcmp(name, "descriptors.npz"));
}

START_TEST(reads_and_writes_archives)
{
    char path[128];
    snprintf(path, sizeof path, FOLDER "%s", archives[_i]);
    jot_archive *a = jot_archive_load(path);
    if (!can_read(archives[_i])) {
        refuses(jot_archive_get(a, "x"), "zlib");
        jot_archive_release(a);
        return;
    }
    check_members(a);
    for (int is_deflated = 0; is_deflated <= JOT_HAS_ZLIB; is_deflated++) {
        ck_assert_int_eq(jot_archive_save(a, folder_path("again.npz"), is_deflated), JOT_OK);
        jot_archive *b = jot_archive_load(folder_path("again.npz"));
        check_members(b);
        // Over what it reads.
        ck_assert_msg(jot_archive_save(b, folder_path("again.npz"),
                                       !is_deflated && JOT_HAS_ZLIB) == JOT_OK,
                      "%s", jot_error_message());
        check_members(b);
        jot_archive_release(b);
        b = jot_archive_load(folder_path("again.npz"));
        check_members(b);
        jot_archive_release(b);
    }
    jot_archive_release(a);
    ck_assert_uint_eq(jot_memory().blocks, 0);
}
END_TEST

// Global arrays, kept from pieces on one mesh and split over another.
START_TEST(keeps_arrays_in_pieces)
{
    ck_assert_int_eq(jot_set_host_devices(8), JOT_OK);
    jot_mesh *grid = jot_mesh_of(JOT_HOST, {"x", 2}, {"y", 4}),
             *row = jot_mesh_of(JOT_HOST, {"i", 3});
    float numbers[6 * 8];
    for (int i = 0; i < 6 * 8; i++)
        numbers[i] = (float)i;
    jot_array *a = jot_array_from(numbers, 6, 8), *split = jot_array_shard(a, grid, "x, y");
    jot_archive *out = jot_archive_create();
    ck_assert_int_eq(jot_archive_add(out, "w", split), JOT_OK);
    ck_assert_int_eq(jot_archive_save(out, folder_path("pieces.npz"), false), JOT_OK);
    ck_assert_int_eq(jot_array_save(folder_path("pieces.npy"), split), JOT_OK);
    jot_archive *in = jot_archive_load(folder_path("pieces.npz"));
    jot_array *kept[] = {jot_archive_get(in, "w"), jot_array_load(folder_path("pieces.npy"))};
    for (int i = 0; i < 2; i++) {
        jot_array *again = jot_array_shard(kept[i], row, "i");
        ck_assert_msg(again, "%s", jot_error_message());
        ck_assert(!memcmp(jot_array_data(again), numbers, sizeof numbers));
        jot_array_release(again);
    }
    jot_arrays_release(2, kept);
    jot_arrays_release(2, (jot_array *[]){a, split});
    jot_archive_release(out), jot_archive_release(in);
}
END_TEST

START_TEST(adds_to_archives)
{
    jot_archive *a = jot_archive_create();
    jot_array *x = jot_array_from(((float[]){1, 2}), 2);
    ck_assert_int_eq(jot_archive_add(a, "b", x), JOT_OK);
    ck_assert_int_eq(jot_archive_add(a, "a.npy", x), JOT_OK);
    ck_assert_int_eq(jot_archive_add(a, "a", x), JOT_ERR_ARGUMENT);
    ck_assert_int_eq(jot_archive_add(NULL, "a", x), JOT_ERR_ARGUMENT);
    ck_assert_int_eq(jot_archive_add(a, NULL, x), JOT_ERR_ARGUMENT);
    ck_assert_int_eq(jot_archive_add(a, "c", NULL), JOT_ERR_ARGUMENT);
    jot_array *y = jot_archive_get(a, "a");
    ck_assert_ptr_eq(y, x);
    ck_assert_int_eq(jot_archive_save(a, folder_path("a.npz"), false), JOT_OK);
    jot_archive_release(a);
    a = jot_archive_load(folder_path("a.npz"));
    ck_assert_int_eq(jot_archive_add(a, "b", x), JOT_ERR_ARGUMENT);
    ck_assert_int_eq(jot_archive_add(a, "c", x), JOT_OK);
    ck_assert_uint_eq(jot_archive_count(a), 3);
    ck_assert_str_eq(jot_archive_name(a, 0), "b");
    ck_assert_str_eq(jot_archive_name(a, 1), "a");
    ck_assert_str_eq(jot_archive_name(a, 2), "c");
    jot_archive_release(a);
    jot_array_release(x);
    jot_array_release(y);
    ck_assert_uint_eq(jot_memory().blocks, 0);
}
END_TEST

static void poke(unsigned char *at, int width, uint64_t value)
{
    for (int i = 0; i < width; i++)
        at[i] = (unsigned char)(value >> 8 * i);
}

// A member that begins beyond 4 GiB of a file with a hole, and a directory of 64 bits behind it.
START_TEST(reads_large_archives)
{
    size_t n;
    unsigned char *array = folder_slurp(FOLDER "f32_1_C_le.npy", &n);
    unsigned char local[30] = "PK\3\4", entry[82] = "PK\1\2", end[98] = "PK\6\6";
    uint64_t at = (UINT64_C(5) << 30) + 7, directory = at + 31 + n;
    poke(local + 26, 2, 1);
    poke(entry + 16, 4, zip_crc(0, array, n));
    poke(entry + 20, 4, n);
    poke(entry + 24, 4, UINT32_MAX);
    poke(entry + 28, 2, 1);
    poke(entry + 30, 2, 25);
    poke(entry + 42, 4, UINT32_MAX);
    entry[46] = 'a';
    poke(entry + 47, 4, 0x00017777); // a field of others
    entry[51] = 9;
    poke(entry + 52, 4, 1 | 16 << 16);
    poke(entry + 56, 8, n);
    poke(entry + 64, 8, at);
    poke(end + 32, 8, 1);
    poke(end + 40, 8, 72);
    poke(end + 48, 8, directory);
    memcpy(end + 56, "PK\6\7", 4);
    poke(end + 64, 8, directory + 72);
    poke(end + 72, 4, 1);
    memcpy(end + 76, "PK\5\6\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 20);
    int file = open(folder_path("large.npz"), O_WRONLY | O_CREAT, 0600);
    ck_assert_int_eq(pwrite(file, local, 30, (off_t)at), 30);
    ck_assert_int_eq(pwrite(file, "a", 1, (off_t)at + 30), 1);
    ck_assert_int_eq(pwrite(file, array, n, (off_t)at + 31), (ssize_t)n);
    ck_assert_int_eq(pwrite(file, entry, 72, (off_t)directory), 72);
    ck_assert_int_eq(pwrite(file, end, 98, (off_t)directory + 72), 98);
    close(file);
    jot_archive *a = jot_archive_load(folder_path("large.npz"));
    ck_assert_msg(a != NULL, "%s", jot_error_message());
    jot_array *x = jot_archive_get(a, "a");
    ck_assert_msg(x != NULL, "%s", jot_error_message());
    ck_assert_double_eq(jot_array_item(x), 1);
    jot_array_release(x);
    jot_archive_release(a);
    free(array);
}
END_TEST

// As members of more than 4 GiB are written, and more than 65534 of them.
START_TEST(writes_large_archives)
{
    size_t n;
    unsigned char *array = folder_slurp(FOLDER "f32_1_C_le.npy", &n);
    struct output o;
    ck_assert_int_eq(output_open(&o, folder_path("wide.npz")), JOT_OK);
    struct zip_writer w = {.o = &o, .wide = 10};
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(zip_write(&w, i ? "b.npy" : "a.npy", i && JOT_HAS_ZLIB, 2,
                                   (struct zip_piece[]){{array, 100}, {array + 100, n - 100}}),
                         JOT_OK);
    ck_assert_int_eq(output_close(&o, zip_finish(&w)), JOT_OK);
    memory_release(w.directory);
    jot_archive *a = jot_archive_load(folder_path("wide.npz"));
    ck_assert_msg(a != NULL, "%s", jot_error_message());
    for (int i = 0; i < 2; i++) {
        jot_array *x = jot_archive_get(a, i ? "b" : "a");
        ck_assert_msg(x != NULL, "%s", jot_error_message());
        jot_array_release(x);
    }
    jot_archive_release(a);
    free(array);
}
END_TEST

static unsigned char archive[8192];
static size_t archive_size;

static void open_stored(void)
{
    void *bytes = folder_slurp(FOLDER "stored.npz", &archive_size);
    ck_assert_uint_le(archive_size, sizeof archive);
    memcpy(archive, bytes, archive_size);
    free(bytes);
}

// The offset of the n-th of these four bytes.
static size_t offset_of(const char *four, int n)
{
    for (size_t i = 0; i + 4 <= archive_size; i++)
        if (!memcmp(archive + i, four, 4) && n-- == 0)
            return i;
    ck_abort_msg("it is not there");
}

static void refuses_archive(const char *part)
{
    jot_array *x = NULL;
    jot_archive *a = jot_archive_from_memory("a.npz", archive, archive_size);
    if (a)
        x = jot_archive_get(a, "x");
    ck_assert_ptr_null(x);
    ck_assert_msg(strstr(jot_error_message(), part), "%s", jot_error_message());
    ck_assert_msg(!strncmp(jot_error_message(), "a.npz: ", 7), "%s", jot_error_message());
    jot_archive_release(a);
    open_stored();
}

START_TEST(says_what_is_wrong_with_an_archive)
{
    open_stored();
    size_t entry = offset_of("PK\1\2", 0), end = offset_of("PK\5\6", 0);
    archive_size--;
    refuses_archive("this is no archive");
    archive_size = 0;
    refuses_archive("this is no archive");
    poke(archive + end + 4, 2, 1);
    refuses_archive("one of several parts");
    poke(archive + end + 16, 4, 0xfffff);
    refuses_archive("the directory is said to be");
    poke(archive + end + 10, 2, 60000);
    refuses_archive("60000 members, but its directory has");
    archive[entry] = 'Q';
    refuses_archive("no entry of the directory begins here");
    poke(archive + entry + 28, 2, 60000);
    refuses_archive("goes beyond the directory");
    archive[entry + 47] = 0;
    refuses_archive("zero byte");
    archive[entry + 8] |= 1;
    refuses_archive("x.npy is encrypted");
    poke(archive + entry + 10, 2, 12);
    refuses_archive("x.npy is packed by method 12");
    poke(archive + entry + 16, 4, 1);
    refuses_archive("x: offset 152: the bytes are not those that were written: their CRC is");
    poke(archive + entry + 20, 4, 1);
    refuses_archive("is stored, but has 1 bytes for 152");
    poke(archive + entry + 20, 4, 0xfffff);
    poke(archive + entry + 24, 4, 0xfffff);
    refuses_archive("but the file ends at");
    poke(archive + entry + 10, 2, 8);
    poke(archive + entry + 24, 4, 0x7fffffff);
    refuses_archive("cannot unpack to 2147483647 bytes from 152");
    poke(archive + entry + 42, 4, 3);
    refuses_archive("offset 3: x does not begin here");
    poke(archive + entry + 24, 4, UINT32_MAX);
    refuses_archive("x.npy");
    poke(archive + entry + 10, 2, 8);
    refuses_archive(JOT_HAS_ZLIB ? "x: offset 0: the deflated bytes" : "zlib");
    ck_assert_ptr_null(jot_archive_load(NULL));
    ck_assert_ptr_null(jot_archive_load("/nowhere/x.npz"));
    ck_assert_uint_eq(jot_memory().blocks, 0);
}
END_TEST

// Memory that is short is a status, and nothing stays behind.
START_TEST(survives_lack_of_memory)
{
    const char *file = _i ? FOLDER "deflated.npz" : FOLDER "f32_40x70_F_le.npy";
    int64_t blocks = memory_live_blocks();
    for (uint64_t n = 1;; n++) {
        jot_array *x = NULL;
        jot_archive *a = NULL;
        memory_fail_after(n);
        if (_i)
            a = jot_archive_load(file);
        x = _i ? jot_archive_get(a, "w") : jot_array_load(file);
        bool is_saved = x && jot_array_save(folder_path("x.npy"), x) == JOT_OK;
        memory_fail_after(0);
        jot_array_release(x);
        jot_archive_release(a);
        ck_assert_int_eq(memory_live_blocks(), blocks);
        if (is_saved || (x && !strstr(jot_error_message(), "memory")))
            return;
        ck_assert_int_lt(n, 100);
    }
}
END_TEST

static void add_tests(TCase *t)
{
    int n_archives = (int)(sizeof archives / sizeof *archives);
    tcase_add_checked_fixture(t, folder_make, folder_remove);
    tcase_add_test(t, reads_and_writes_what_numpy_writes);
    tcase_add_test(t, reads_headers_as_python_may_write_them);
    tcase_add_loop_test(t, says_what_is_wrong_with_a_header, 0,
                        (int)(sizeof wrong / sizeof *wrong));
    tcase_add_test(t, says_what_is_wrong_with_a_file);
    tcase_add_test(t, writes_and_reads_back);
    tcase_add_test(t, keeps_links_and_modes);
    tcase_add_loop_test(t, reads_and_writes_archives, 0, n_archives);
    tcase_add_test(t, adds_to_archives);
    tcase_add_test(t, keeps_arrays_in_pieces);
    tcase_add_test(t, reads_large_archives);
    tcase_add_test(t, writes_large_archives);
    tcase_add_test(t, says_what_is_wrong_with_an_archive);
    tcase_add_loop_test(t, survives_lack_of_memory, 0, 1 + JOT_HAS_ZLIB);
}

int main(void) { return suite_run("npy", add_tests); }
