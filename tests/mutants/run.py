#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Seeded faults that the tests must find.

    tests/mutants/run.py              all of them
    tests/mutants/run.py --sample 5   five, others for every commit
    tests/mutants/run.py NAME ...     some by name
    tests/mutants/run.py --list

The tree is copied and built once; then each fault is put into the copy and what it touches is
built again.  One test must fail: those named beside the fault run first, quick ones before slow
ones, then all others.  --build DIRECTORY keeps the copy and its build for the next time.
--here BUILD puts the faults into this tree, which is built there and whose tests pass, and takes
them out again: as .ci/run does it, in a checkout that nobody else uses.
"""
import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# name, file, likely killers, then pairs of text that occurs once and what takes its place.
MUTANTS = [
    # Meaning of operations.
    ("max drops NaN", "src/ir/eval_machine.h", ["golden/golden"],
     """static inline scalar machine_max(scalar x, scalar y)
{
    if (machine_ne(x, x).bits)
        return x;
    if (machine_ne(y, y).bits)
        return y;""",
     """static inline scalar machine_max(scalar x, scalar y)
{
    if (machine_ne(x, x).bits)
        return y;
    if (machine_ne(y, y).bits)
        return x;"""),
    ("slices start one late", "src/ir/infer_layout.c", ["ir/eval_tensors", "golden/golden"],
     "c->map->axes[d].offset = list(c, IR_KEY_starts)[d];",
     "c->map->axes[d].offset = list(c, IR_KEY_starts)[d] + (list(c, IR_KEY_starts)[d] > 0);"),
    ("prefix sums forget reverse", "src/ir/eval_reduce.c", ["ir/eval_tensors", "golden/golden"],
     "bool is_reverse = ir_attr_int_or(c->attrs, IR_KEY_reverse, 0);",
     "bool is_reverse = false;"),
    ("bf16 rounds ties up", "src/base/dtype.c", ["golden/golden"],
     "(u + 0x7fff + (u >> 16 & 1)) >> 16", "(u + 0x8000) >> 16"),
    ("u32 and i32 give u32", "src/base/dtype.c", ["golden/golden"],
     "[JOT_U32] = 1u << JOT_I64 | 1u << JOT_U64", "[JOT_U32] = 1u << JOT_U64"),
    # Building and rewriting graphs.
    ("equal nodes in spite of attributes", "src/ir/build.c", ["random/programs"],
     "uint64_t h = hash_combine(op, attrs ? attrs->id + UINT64_C(1) : 0);",
     "uint64_t h = hash_combine(op, 0);\n    (void)attrs;",
     "if (n->op == op && n->attrs == attrs && (int)n->n_in == n_in &&",
     "if ((void)attrs, n->op == op && op != IR_const && (int)n->n_in == n_in &&"),
    ("x + 0 is x", "src/ir/rewrite.c", ["harness/identities"],
     "r->op == IR_sub ? 0.0 : -0.0", "r->op == IR_sub ? 0.0 : 0.0"),
    ("two transpositions in the wrong order", "src/ir/rewrite.c", ["ir/rewrite"],
     "both[i] = inner[axes[i]];", "both[i] = axes[inner[i]];"),
    # Derivatives.
    ("transposed permutation", "src/passes/rules/layout.c", ["passes/rules"],
     "inverse[axes[i]] = i;", "inverse[i] = axes[i];"),
    ("no sum over broadcast axes", "src/passes/rules/layout.c", ["passes/rules"],
     "if (!kept || dims[next] != wide[i])", "if (!kept && dims[next] != wide[i])"),
    ("d cos without its sign", "src/passes/rules/math.c", ["passes/rules", "golden/golden"],
     "c->dy[0] = ir_neg(B, ir_mul_z(B, DX, ir_sin(B, X)));",
     "c->dy[0] = ir_mul_z(B, DX, ir_sin(B, X));"),
    ("ties of max count twice", "src/passes/rules/compare.c", ["passes/transforms", "golden/golden"],
     "num(c, 0.5), num(c, 1)", "num(c, 1), num(c, 1)"),
    ("clamp slopes on its boundary", "src/passes/rules/compare.c", ["golden/golden"],
     "ir_gt(B, x, low), ir_lt(B, x, high)", "ir_ge(B, x, low), ir_lt(B, x, high)"),
    ("contracted axes put back in the wrong order", "src/passes/rules/contract.c", ["passes/rules"],
     "before += z->contract[k] < z->contract[i];", "before += k < i;"),
    ("cotangents multiply as anything does", "src/passes/rules/math.c", ["passes/transforms"],
     "        transpose_give(c, 0, ir_mul_z(B, CT, Y));\n    else if",
     "        transpose_give(c, 0, ir_mul(B, CT, Y));\n    else if"),
    ("a sum is zero where one of its terms is", "src/passes/derive/support_ops.c", ["passes/support"],
     "x->where == y->where ? x->where : ir_or(s->b, x->where, y->where)",
     "x->where == y->where ? x->where : ir_and(s->b, x->where, y->where)"),
    ("a NaN among others has no winner", "src/passes/rules/rules.c", ["trace/slopes"],
     "return ir_not(b, is_max ? ir_lt(b, x, best) : ir_gt(b, x, best));",
     "return is_max ? ir_ge(b, x, best) : ir_le(b, x, best);"),
    # Elementary functions.
    ("cosine in the wrong quadrant", "src/base/math/trig.inc", ["base/math", "golden/golden"],
     "return CALL(trig_choose, CALL(sin_reduced, r), CALL(cos_reduced, r), IADD(quadrant, KI(1)));",
     "return CALL(trig_choose, CALL(sin_reduced, r), CALL(cos_reduced, r), IADD(quadrant, KI(3)));"),
    ("pi with a wrong last part", "src/base/math/trig.inc", ["base/math", "golden/golden"],
     "K(-0x1.4442dp-24)", "K(-0x1.4442cp-24)"),
    # Levels.
    ("a loop with two owners passes", "src/nest/verify_levels.c",
     ["nest/verify"],
     "s->level >= NEST_THREAD && around < NEST_THREAD", "s->level >= NEST_THREAD"),
    ("locals of a group are each thread's", "src/map/gpu.c", ["map/gpu"],
     "b->space = NEST_SHARED;", "b->space = NEST_OWN;"),
    ("levels of a text are written again", "src/map/gpu_program.c", ["codegen/gpu_levels"],
     "if (!nest_is_mapped(m.nest))", "if (m.nest)"),
    ("what is read ahead is written over", "src/schedule/plan/overwrite.c", ["schedule/plan"],
     "moved || s->level == NEST_AHEAD ||", "moved ||"),
    ("memory without a plan is all in one place", "src/map/gpu_operands.c", ["map/gpu"],
     "own += p->n_inputs + p->n_outputs;", "own = 0;"),
    ("a map goes through a row in another order", "src/map/gpu.c", ["map/gpu"],
     "set_level(n, id, NEST_IN_ROW);", "set_level(n, id, NEST_THREAD);"),
    # Kernels and machine code.
    ("machine code drops NaN in max", "src/codegen/scalar.c", ["golden/golden"],
     'larger ? "llvm.maximum" : "llvm.minimum"', 'larger ? "llvm.maxnum" : "llvm.minnum"'),
    ("no mask on the tail", "src/codegen/fold.c", ["codegen/folds"],
     'return LLVMBuildAnd(b, above, below, "");', "return (void)below, above;"),
    ("half as many accumulators", "src/base/fold.h", ["ir/eval_tensors", "codegen/folds"],
     "#define FOLD_LANES 64", "#define FOLD_LANES 32"),
    ("the later of two winners", "src/codegen/accumulate.c", ["codegen/folds"],
     'LLVMBuildICmp(b, LLVMIntSLT, y->v[2], x->v[2], "")',
     'LLVMBuildICmp(b, LLVMIntSGT, y->v[2], x->v[2], "")'),
    ("a matrix read the wrong way round", "src/schedule/library/gemm.c", ["schedule/schedule", "harness/native"],
     "*transpose = column_stride != 1;", "*transpose = column_stride == 1 && row_stride != 1;"),
    ("updates that meet run side by side", "src/schedule/write/data_index.c", ["schedule/schedule", "schedule/memory"],
     "return v->is_batch[d] || v->component[d] < 0;", "return true;"),
    ("an operand in two memories is one", "src/schedule/schedule.c", ["schedule/control"],
     "s->uses[x] != 1)", "s->uses[x] == 0)"),
    ("updates outside are made too", "src/codegen/updates.c", ["harness/updates", "harness/native"],
     "lower_turn(l, s, p, first, turn, g);", "lower_turn(l, s, p, first, turn, NULL);"),
    ("lanes take a step after their last", "src/codegen/while.c", ["codegen/time", "codegen/time_random"],
     "cg_select(&l->m, l->vector.mask, next[i], p->carries[i])",
     "cg_select(&l->m, p->mask, next[i], p->carries[i])"),
    ("rows store before their beginning", "src/codegen/stack.c", ["codegen/time", "codegen/time_random"],
     "x.low = select_at(l, is_first, line, zero);", "x.low = zero;"),
    ("turns stay where the first trip began", "src/codegen/phases.c", ["harness/phases"],
     "return w->trips[t->loop] = trips;", "return w->trips[t->loop] = zero, trips;"),
    # Loops and branches.
    ("carries are mapped in one round", "src/passes/rules/loop_batch.c", ["passes/control"],
     "} while (body_grow(in_carry, out, n_carry));", "} while (false && body_grow(in_carry, out, n_carry));"),
    ("a state is kept after its trips", "src/passes/derive/unzip_online.c", ["passes/online"],
     "ir_output(b, unzip_store(&o->lanes, b, slots[i], carry[0], x[i]));\n}\n\n// Loop: consts",
     "ir_output(b, unzip_store(&o->lanes, b, slots[i], carry[0], y == IR_NONE ? y : y + 2 + i));\n}\n\n// Loop: consts"),
    ("a state is kept in the slot after", "src/passes/derive/unzip_online.c", ["passes/online"],
     "ir_output(b, unzip_store(&o->lanes, b, slots[i], carry[0], x[i]));\n}\n\n// Loop: consts",
     "ir_output(b, unzip_store(&o->lanes, b, slots[i], plus(b, carry[0], 1), x[i]));\n}\n\n// Loop: consts"),
    ("rows before and after a trip are those after it", "src/passes/derive/unzip_loop.c", ["passes/control_parts"],
     "starts[0] = l->scan.reverse ? 0 : 1;\n    limits[0] -= l->scan.reverse;",
     "starts[0] = l->scan.reverse ? 1 : 0;\n    limits[0] -= !l->scan.reverse;"),
    ("rows are counted from the end twice", "src/passes/derive/unzip_restart.c", ["passes/checkpoint"],
     "if (scan->reverse)", "if (!scan->reverse)"),
    ("carries go round the other way", "src/schedule/control/control.c", ["schedule/control"],
     "m->index = (n - s) % n;", "m->index = s;"),
    ("all lanes must go on", "src/schedule/control/control.c", ["schedule/control"],
     "ir_reduce(&w.b, IR_reduce_or,", "ir_reduce(&w.b, IR_reduce_and,"),
    ("a branch puts for lanes of another", "src/codegen/branch.c", ["codegen/time", "codegen/time_random"],
     'outer ? LLVMBuildAnd(b, outer, p, "") : p', "p"),
    ("the other side puts for lanes of another", "src/codegen/branch.c", ["codegen/time", "codegen/time_random"],
     'outer ? LLVMBuildAnd(b, outer, not_p, "") : not_p', "not_p"),
    ("lanes take steps that are not theirs", "src/codegen/while.c", ["codegen/time", "codegen/time_random"],
     'l->vector.mask = LLVMBuildAnd(b, active, holds, "");', "l->vector.mask = holds;"),
    ("effects of a test are made in every trip", "src/passes/rules/loop_jvp.c", ["schedule/effects"],
     "l.max_trips != IR_NO_BOUND && ir_function(m, l.test)->has_effects &&",
     "l.max_trips == IR_NO_BOUND && ir_function(m, l.test)->has_effects &&"),
    ("what is beside joined loops is in them", "src/schedule/control/join_loops.c", ["schedule/join"],
     "if (!reads)",
     "if (!reads && i == b)"),
    # Run time and tracing.
    ("the last chunk is cut off", "src/runtime/program_load.c", ["runtime/program"],
     "s->chunks = from->total / from->grain + (from->total % from->grain != 0);",
     "s->chunks = from->total / from->grain + (from->total < from->grain);"),
    ("a failure is not told", "src/runtime/distributed/job.c", ["runtime/distributed_failures"],
     "        if (atomic_load(&is_there))\n", "        if (!atomic_load(&is_there))\n"),
    ("members in another order", "src/runtime/distributed/collectives.c", ["runtime/distributed"],
     "char *at = to + (size_t)i * bytes;",
     "char *at = to + (size_t)(w->g->count - 1 - i) * bytes;"),
    ("half of the cache key", "src/runtime/cache.c", ["runtime/cache"],
     '"%016" PRIx64 "%016" PRIx64 SUFFIX, key.hi, key.lo', '"%016" PRIx64 "%016" PRIx64 SUFFIX, key.lo, key.lo',
     "h->key_hi == key.hi && h->size", "h->size"),
    ("a cache key without donation", "src/trace/native.c", ["trace/donation"],
     'strbuf_add(&s, p->donated && p->donated[i] ? "d" : ".");', 'strbuf_add(&s, ".");'),
    ("words of split keys change places", "src/trace/random.c", ["golden/random"],
     "columns[i] = ir_reshape(b, trace_kept(k.word[i]), 2, dims);",
     "columns[i] = ir_reshape(b, trace_kept(k.word[1 - i]), 2, dims);"),
    # Programs from elsewhere.
    ("counted loops have a trip less", "src/interop/graph_loop.c", ["interop/programs"],
     "        return divided_up(bound - start, step);",
     "        return divided_up(bound - start, step) - 1;"),
    ("any body that finds an extremum finds its first index", "src/interop/graph_bodies.c",
     ["interop/programs"],
     "    return is_same(&out[0], value) && is_same(&out[1], index);",
     "    return (void)index, is_same(&out[0], value);"),
    ("arguments of an artefact by their order", "src/interop/jax_export_call.c", ["interop/programs"],
     "        in[i] = c->in[e->kept[i]];",
     "        in[i] = c->in[i];"),
    ("types of arguments are no part of a refined program's key", "src/interop/dynamic_extents.c",
     ["interop/programs"],
     "    while (found && strcmp(found->key, key) != 0)",
     "    while (found && strncmp(found->key, key, 4) != 0)"),
    ("ties of a sort by a body stand as they come", "src/interop/graph_order.c",
     ["interop/programs"],
     "    jot_value tie = jot_logical_and(jot_logical_not(more), first);",
     "    jot_value tie = jot_logical_and(more, first);"),
    # Files, and what stands on the headers.
    ("tensors of a file may leave gaps", "src/interop/safetensors.c", ["interop/safetensors"],
     "        if (t->at != at)",
     "        if (t->at < at)"),
    ("all epochs have one order", "src/interop/batches.c", ["interop/batches"],
     "        o.key[i] = hash_combine(hash_combine(l->o.seed, epoch), i);",
     "        o.key[i] = hash_combine(l->o.seed, epoch ? i : i);"),
    ("a rejected step has the derivative of its length", "src/library/ode_loops.c", ["library/ode_derivatives"],
     "jot_where(is_good, h, num(0))",
     "jot_where(is_good, h, h)"),
    ("a query sees the key behind it", "src/library/attention.c", ["library/attention"],
     "return jot_less_equal(jot_arange(JOT_I32, s), query);", "return jot_less(jot_arange(JOT_I32, s), query);"),
    ("the cache stays where it is", "src/library/attention.c", ["library/attention"],
     "cache->length = add(first, jot_from_int(t));", "cache->length = add(first, jot_from_int(t / 2));"),
    ("a blank between equal labels is skipped", "src/library/ctc.c", ["library/losses"],
     "both(is_label, jot_not_equal(states, before))", "both(is_label, jot_equal(before, before))"),
    ("each lane has a variance of its own", "src/library/norms.c", ["library/layers"],
     "jot_value var = of_batch(jot_square(sub(wide, mean)), o.axis);",
     "jot_value var = of_batch(jot_square(sub(wide, mean)), NULL);"),
    ("fans change places", "src/library/initializers.c", ["library/layers"],
     "double in = all / (double)dims[rank - 1]", "double in = all / (double)dims[rank - 2]"),
]


def run(arguments, **options):
    return subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **options)


def copy_tree(to):
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT,
                            stdout=subprocess.PIPE, check=True).stdout.decode().split("\0")
    for name in filter(None, listed):
        source, target = os.path.join(ROOT, name), os.path.join(to, name)
        if not os.path.isfile(source):
            continue
        # Files that have not changed keep their times, so that they are not built again.
        if os.path.isfile(target) and open(source, "rb").read() == open(target, "rb").read():
            continue
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(source, target)
        shutil.copymode(source, target)


# The file with the fault in it, and without.
def mutate(mutant, tree):
    path = os.path.join(tree, mutant[1])
    with open(path, encoding="utf-8") as f:
        good = bad = f.read()
    for find, replace in zip(mutant[3::2], mutant[4::2]):
        if bad.count(find) != 1:
            sys.exit("%s: %d places in %s read\n%s" % (mutant[0], bad.count(find), mutant[1], find))
        bad = bad.replace(find, replace)
    return path, good, bad


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def make(build, tests, name="the tree"):
    targets = ["tests/test_" + t.replace("/", "_") for t in tests]
    result = run(["ninja", "-C", build, "src/codegen/libjot-codegen.so"] + targets)
    if result.returncode:
        sys.exit("%s does not build:\n%s" % (name, result.stdout))


# The programs are fewer than in a run of their own, and always the same.  Meson makes what else a test needs.
def passes(build, test):
    environment = dict(os.environ, JOT_TEST_COUNT="2000", JOT_TEST_SEED="20240601")
    arguments = ["meson", "test", "-C", build, test]
    return run(arguments, env=environment).returncode == 0


# All tests of code: a test of the tree looks at the sources alone.
def tests_of(build):
    with open(os.path.join(build, "meson-info", "intro-tests.json"), encoding="utf-8") as f:
        known = [t["name"] for t in json.load(f) if "/test_" in t["cmd"][0]]
    for mutant in MUTANTS:
        unknown = set(mutant[2]) - set(known)
        if unknown:
            sys.exit("%s: no such test: %s" % (mutant[0], ", ".join(sorted(unknown))))
    return known


# The copy, of which the tests that are to find the faults pass.
def set_up(tree, build, mutants):
    copy_tree(tree)
    if not os.path.exists(os.path.join(build, "build.ninja")):
        result = run(["meson", "setup", build, "-Dbuildtype=debug", "-Doptimization=1"], cwd=tree)
        if result.returncode:
            sys.exit(result.stdout)
    result = run(["ninja", "-C", build, "build.ninja"])
    if result.returncode:
        sys.exit(result.stdout)
    known = tests_of(build)
    tests = sorted({t for m in mutants for t in m[2]})
    make(build, tests)
    for test in tests:
        if not passes(build, test):
            sys.exit("%s fails without any fault" % test)
    return known


# The test that found the fault, or None.
def kill(mutant, tree, build, known):
    path, good, bad = mutate(mutant, tree)
    try:
        write(path, bad)
        for test in mutant[2] + [t for t in known if t not in mutant[2]]:
            make(build, [test], mutant[0])
            if not passes(build, test):
                return test
        return None
    finally:
        write(path, good)


# The commit orders the mutants that a sample is the first of.
def choose(arguments):
    if arguments.names:
        unknown = set(arguments.names) - {m[0] for m in MUTANTS}
        if unknown:
            sys.exit("no such mutant: " + ", ".join(sorted(unknown)))
        return [m for m in MUTANTS if m[0] in arguments.names]
    if not arguments.sample:
        return MUTANTS
    commit = run(["git", "rev-parse", "HEAD"], cwd=ROOT).stdout.strip()
    print("the sample of commit %s" % commit[:12], flush=True)
    order = sorted(MUTANTS, key=lambda m: hashlib.sha256((commit + m[0]).encode()).digest())
    return order[:arguments.sample]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--build")
    parser.add_argument("--here", metavar="BUILD")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    mutants = choose(arguments)
    if arguments.list:
        print("\n".join(m[0] for m in mutants))
        return
    for mutant in MUTANTS:
        mutate(mutant, ROOT)
    place = os.path.abspath(arguments.build) if arguments.build else tempfile.mkdtemp()
    tree, build = os.path.join(place, "tree"), os.path.join(place, "build")
    if arguments.here:
        tree, build = ROOT, os.path.abspath(arguments.here)
    alive = []
    try:
        if arguments.here:
            known = tests_of(build)
        else:
            start = time.monotonic()
            os.makedirs(tree, exist_ok=True)
            known = set_up(tree, build, mutants)
            print("%-45s %4.0f s" % ("the tree without faults", time.monotonic() - start), flush=True)
        for mutant in mutants:
            start = time.monotonic()
            test = kill(mutant, tree, build, known)
            found = "found by " + test if test else "NOT FOUND"
            if test and test not in mutant[2]:
                found += ", which is not named beside it"
            print("%-45s %4.0f s  %s" % (mutant[0], time.monotonic() - start, found), flush=True)
            if not test:
                alive.append(mutant[0])
    finally:
        if not arguments.build:
            shutil.rmtree(place)
    if alive:
        sys.exit("%d of %d mutants live" % (len(alive), len(mutants)))
    print("all %d mutants are found" % len(mutants))


if __name__ == "__main__":
    main()
