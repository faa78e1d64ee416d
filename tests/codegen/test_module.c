// SPDX-License-Identifier: Apache-2.0
// The target machine of a thread: kept between programs, gone with the thread.  Modules compiled in parts.
#include "codegen/module.h"
#include "codegen/op_function.h"
#include "codegen/types.h"

#include "base/memory.h"
#include "base/status.h"
#include "runtime/loader.h"
#include "support/suite.h"

#include <check.h>
#include <elf.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

static void *use_targets(void *unused)
{
    struct cg_target *a, *b;
    ck_assert_int_eq(cg_target_find(NULL, &a), JOT_OK);
    ck_assert_int_eq(cg_target_find(NULL, &b), JOT_OK);
    ck_assert_ptr_eq(a, b);
    ck_assert_int_eq(cg_target_find("haswell +avx2", &b), JOT_OK);
    ck_assert_int_eq(cg_target_find("haswell +avx2", &a), JOT_OK);
    ck_assert_ptr_eq(a, b);
    return unused;
}

START_TEST(ends_with_its_thread)
{
    int64_t live = memory_live_blocks();
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        ck_assert_int_eq(pthread_create(&thread, NULL, use_targets, NULL), 0);
        pthread_join(thread, NULL);
        ck_assert_int_eq(memory_live_blocks(), live);
    }
}
END_TEST

START_TEST(fails_without_loss)
{
    struct cg_target *t;
    ck_assert_int_eq(cg_target_find(NULL, &t), JOT_OK);
    int64_t live = memory_live_blocks();
    memory_fail_after(1);
    ck_assert_int_eq(cg_target_find("haswell ", &t), JOT_ERR_MEMORY);
    memory_fail_after(0);
    ck_assert_int_eq(memory_live_blocks(), live);
    ck_assert_int_eq(cg_target_find(NULL, &t), JOT_OK);
}
END_TEST

// ---- Parts

enum { LENGTH = 1500 }; // of a function: it is a part of its own

static LLVMTypeRef integer_function(const struct cg_module *m)
{
    LLVMTypeRef i64 = m->i64;
    return LLVMFunctionType(i64, &i64, 1, 0);
}

// inlined(callee(... 3 x + i for each i ...)); `inlined` may be NULL.
static LLVMValueRef add_long(struct cg_module *m, const char *name, LLVMValueRef callee,
                             LLVMValueRef inlined)
{
    LLVMTypeRef type = integer_function(m);
    LLVMValueRef f = LLVMAddFunction(m->module, name, type), x = LLVMGetParam(f, 0);
    LLVMBuilderRef b = LLVMCreateBuilderInContext(m->context);
    LLVMPositionBuilderAtEnd(b, LLVMAppendBasicBlockInContext(m->context, f, ""));
    for (int i = 0; i < LENGTH; i++)
        x = LLVMBuildAdd(b, LLVMBuildMul(b, x, cg_int(m, 3), ""), cg_int(m, i), "");
    x = LLVMBuildCall2(b, type, callee, &x, 1, "");
    if (inlined) {
        x = LLVMBuildCall2(b, type, inlined, &x, 1, "");
        cg_add_attribute(m, x, "alwaysinline");
    }
    LLVMBuildRet(b, x);
    LLVMDisposeBuilder(b);
    return f;
}

static int64_t expected_long(int64_t argument)
{
    uint64_t x = (uint64_t)argument;
    for (uint64_t i = 0; i < LENGTH; i++)
        x = 3 * x + i;
    return (int64_t)x;
}

// A function of this module alone, which two kernels call.
static LLVMValueRef add_own(struct cg_module *m)
{
    LLVMValueRef f = cg_function_apart(m, "own", integer_function(m));
    LLVMBuilderRef b = LLVMCreateBuilderInContext(m->context);
    LLVMPositionBuilderAtEnd(b, LLVMAppendBasicBlockInContext(m->context, f, ""));
    LLVMBuildRet(b, LLVMBuildXor(b, LLVMGetParam(f, 0), cg_int(m, 77), ""));
    LLVMDisposeBuilder(b);
    return f;
}

static int count_objects(const struct cg_object *o)
{
    int n = 0;
    for (size_t at = 0; at < o->size; n++) {
        Elf64_Ehdr h;
        memcpy(&h, (const char *)o->bytes + at, sizeof h);
        ck_assert_mem_eq(h.e_ident, ELFMAG, SELFMAG);
        at += (h.e_shoff + (size_t)h.e_shnum * h.e_shentsize + 7) / 8 * 8;
    }
    return n;
}

static void *resolve_nothing(void *ctx, const char *name)
{
    (void)ctx, (void)name;
    return NULL;
}

static void check_parts(int n_objects)
{
    static const char *const names[] = {"first", "second", "both"};
    struct arena *arena = arena_create();
    struct cg_target *target;
    struct cg_module m;
    struct cg_object object;
    struct rt_code *code;
    ck_assert_int_eq(cg_target_find(NULL, &target), JOT_OK);
    ck_assert_int_eq(cg_module_make(target, arena, &m), JOT_OK);
    LLVMValueRef own = add_own(&m);
    LLVMValueRef first = add_long(&m, names[0], own, NULL);
    LLVMValueRef second = add_long(&m, names[1], own, NULL);
    add_long(&m, names[2], second, first);
    ck_assert_msg(cg_module_compile(&m, target, 0, &object) == JOT_OK, "%s",
                  jot_error_message());
    ck_assert_int_eq(count_objects(&object), n_objects);
    cg_module_finish(&m);
    ck_assert_msg(rt_code_load(object.bytes, object.size, resolve_nothing, NULL, &code) ==
                      JOT_OK,
                  "%s", jot_error_message());
    arena_release(arena);
    for (int i = 0; i < 3; i++) {
        void *address = rt_code_find(code, names[i]);
        int64_t (*f)(int64_t), one = expected_long(5) ^ 77;
        ck_assert_ptr_nonnull(address);
        memcpy(&f, &address, sizeof f);
        if (i == 2)
            one = expected_long(expected_long(expected_long(5)) ^ 77) ^ 77;
        ck_assert_int_eq(f(5), one);
    }
    // What several parts call is known by its name; what one part calls is not.
    ck_assert_int_eq(rt_code_find(code, "own") != NULL, n_objects > 1);
    rt_code_release(code);
}

// On however many cores.
START_TEST(compiles_in_parts)
{
    cpu_set_t before, one;
    ck_assert_int_eq(sched_getaffinity(0, sizeof before, &before), 0);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &before))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    check_parts(CPU_COUNT(&before) > 1 ? 3 : 1);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    check_parts(1);
    ck_assert_int_eq(sched_setaffinity(0, sizeof before, &before), 0);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, ends_with_its_thread);
    tcase_add_test(tests, fails_without_loss);
    tcase_add_test(tests, compiles_in_parts);
}

int main(void) { return suite_run("codegen/module", add_tests); }
