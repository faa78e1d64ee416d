// SPDX-License-Identifier: Apache-2.0
// What work costs: the constants that the scheduler decides with.
//
// Units are those of one vector addition of data in registers.
#ifndef IR_COST_H
#define IR_COST_H

#include "base/dtype.h"
#include "ir/graph.h"

#include <stdbool.h>
#include <stdint.h>

enum cost_constant {
    COST_EXPENSIVE = 6,     // an op of this cost is worth a store and a load
    COST_KERNEL_SLACK = 16, // and more for ops that end a chain (group.c)
    COST_REPEAT_OPS = 3,    // cheap ops that may be repeated in several kernels
    // Ops, shared ones counted at each use, that may be repeated for values much larger than
    // what they are made of, and what "much larger" is.
    COST_REPEAT_EXPANDED = 160,
    COST_EXPANSION = 16,
    // Cheap ops that are done again where what they are made of has fewer bytes, and values that are looked at for it.
    COST_NARROW_OPS = 12,
    COST_NARROW_VISITS = 200,
    COST_TABLE = 64, // elements of a constant that is part of the code of bodies and kernels
    COST_TAKEN =
        2, // elements that a loop takes for one of an array, of which functions are computed then
    COST_TAKEN_OPS = 2, // ops of such functions: fewer are not worth an array
    COST_CHAIN = 48,    // changes of index in a row that are looked through
    COST_DEMANDS =
        8, // kernels that a value is considered for, and slots for what goes out of a trip
    COST_TURNS = 16, // memories that are swapped between trips, each of which is told of all
    COST_TURN_TESTS = 4, // of them that are compared with faster than looked up
    COST_POINTS = 64,    // parallel points that are enough
    // Arrays that a loop which is one kernel of a GPU reads and makes: half of those that its parameters,
    // 32,764 bytes, hold.
    COST_OPERANDS = 2048,
    COST_ALONE = 32768, // work that needs no parallel points
    COST_STEP = 256,    // what one kernel more costs: work that may be repeated instead
    COST_LAUNCH = 4096, // the same on a GPU
    // Work of a processor's kernel that is worth waking threads for, some 20 microseconds, and threads that the price of
    // what could be several kernels is for.
    COST_PARALLEL = 60000,
    // Points that are fewer chunks than this leave cores idle: threads share the blocks of their folds.
    COST_FEW_CHUNKS = 16,
    // Instructions of a GPU's loop that its assembler is not to write out: it gains nothing, and has more code.
    COST_LONG_LOOP = 128,
    COST_CORES = 4,
    // Of a chunk of such a kernel; and of a kernel in a loop that is one function, where threads are awake: some 3
    // microseconds, and its chunks.
    COST_CHUNK = 30000,
    COST_PHASE = 10000,
    COST_PHASE_CHUNK = 15000,
    // How many lanes go at once (map/host.c): a loop that is soon done is not worth much compiling, one that takes
    // long is; steps of a loop over time that are long, which have so many lanes of 4 bytes.
    COST_QUICK_WORK = 10000000,
    COST_LONG_WORK = 200000000,
    COST_LONG_STEP = 128,
    COST_LONG_STEP_LANES = 64,
    COST_SHORT_AXIS = 8,      // elements below which an axis is not worth lanes
    COST_REGISTER_TERMS = 32, // of a fold that lanes accumulate in registers
    COST_WHILE_TRIPS = 32,    // nobody knows
    // What one block of threads does there while many would wait for one another; and while two
    // kernels more would be launched.
    COST_OF_BLOCK = 131072,
    COST_OF_KERNEL = 2 * COST_OF_BLOCK,
    // What all of a GPU does in a microsecond, and microseconds of a phase beside which a launch,
    // or a node of a graph whose flag the host does not read, is nothing (nest/loop.c).
    COST_BYTES_PER_US = 3000000,
    COST_WORK_PER_US = 20000000,
    COST_NEAR_PER_US = 20000000, // bytes that all multiprocessors have of their nearest caches
    COST_SECTOR_BYTES = 32,      // that an element is read with
    // Bytes of sectors that all of them have of their common cache.
    COST_SECTORS_PER_US = 5000000,
    COST_LONG_PHASE = 50,
    // Multiplications of a product of f32 by the library, and how many more of numbers that tensor cores take.
    COST_PRODUCT_PER_US = 20000000,
    COST_PRODUCT_NARROW = 6,
    // Threads of a multiprocessor that the kernel of a loop has, whose phases share its registers.
    COST_RESIDENT_THREADS = 512,
    // The same of one block of threads on a multiprocessor, of which there are so many, in a fold and in a map; blocks
    // of one that do not wait for one another there; and what it takes for blocks to bring together what they have
    // parts of.
    COST_BLOCK_BYTES_PER_US = 64000,
    COST_BLOCK_MAP_BYTES_PER_US = 16000,
    COST_BLOCKS_THAT_WAIT = 4,
    COST_BLOCK_WORK_PER_US = 150000,
    COST_MULTIPROCESSORS = 132,
    COST_THREADS_OF_ONE = 2048, // that a multiprocessor has at once
    COST_WARP = 32,             // threads that go together
    COST_MAPPED_PER_US = 16,    // elements of a map that one thread makes
    COST_BLOCK_THREADS = 256,   // of a block that makes a map
    // Terms of a sum that is worth cutting where a library's product has few tiles of so many rows and columns, and of
    // a part of it: on an H200 16 sums of 200000 terms, of 16 by 16, took a block each 1781 us, and more launches take
    // some 8.
    COST_LONG_SUM = 4096,
    COST_LONG_SUM_PART = 512,
    COST_LIBRARY_TILE = 64,
    // A product that fills no tile is made by threads where the tile takes so many times as long.
    COST_BELOW_TILES = 4,
    // Threads that share one of a block's neighbouring points, at most, but for those that read so few elements that it
    // does not matter how these lie.
    COST_POINT_THREADS = 16,
    COST_SMALL_READ = 1 << 20,
    COST_TOGETHER_US = 2,
    COST_SPLIT_NS = 8000, // of a kernel for whose parts prices are asked
    // Microseconds of a kernel that pay for making parts of it beside what devices exchange.
    COST_BESIDE = 3,
    COST_BESIDE_VALUES = 256, // that are made once more for it
    // Trips of a loop for which lanes exchange borders at once; what they do twice is such a share of their rows, or
    // so few bytes (deep_halos.c).
    COST_HALO_TRIPS = 8,
    COST_HALO_SHARE = 64,
    COST_HALO_BYTES = 32 * 1024,
    // Where it stands beside, such a share of the elements of all operations, or so many in each trip.
    COST_HALO_WORK_SHARE = 10,
    COST_HALO_WORK = 32 * 1024,
    // The same where neighbours are in other processes.
    COST_HALO_FAR_BYTES = 256 * 1024,
    COST_HALO_FAR_WORK = 512 * 1024,
    COST_HALO_CODE = 4096, // nodes of a deep loop of which three parts are made once more
    // Updates whose order is worth making there: so many, of rows of so many numbers where nothing else wants the
    // order, with so many elements for each where the operand has to be read.
    COST_SORTED_UPDATES = 4096,
    COST_SORTED_ROW = 8,
    COST_SORTED_EMPTY = 2,
    COST_SORTED_CODE = 320,    // operations of the updates that a lane reads together
    COST_SORTED_LANES = 65536, // that are better than fewer which have several numbers of a row
    // Updates that a thread there makes one after the other in a microsecond, and how many of those that sort them by
    // index do, which takes so many at least, and is no less than so many microseconds.  An element that looks at all
    // windows waits as long for so many of them that it is not in, and does so much for each axis.
    COST_TURNS_PER_US = 2,
    COST_SORTED_TURNS = 64,
    COST_SORTED_PER_US = 20000,
    COST_SORT_US = 10,
    COST_LOOKS = 8,
    COST_LOOK = 8,
    // Bytes of a kernel's threads that are not those of the next one, so that both can run at once.
    COST_WORK_APART = 4 << 20,
    // Of an element, beside which it does not matter how memory lies for a thread with a point.
    COST_GROUP_WORK = 64,
    // Of who does what on a GPU (src/map).  Threads of a multiprocessor: so many keep it busy; with so many a wait for
    // memory is not all that there is; and so many there had better be before one has two rows of a product.
    COST_BUSY_THREADS = 1024,
    COST_WAITING_THREADS = 64,
    COST_ROW_THREADS = 512,
    // Blocks of points of a multiprocessor from which on each is a thread's, though a group would read it along its rows.
    COST_GROUP_POINTS = 4,
    // Points from which on a thread has several neighbours; chains of a multiprocessor in a loop over time; vectors
    // of a multiprocessor of which a thread has several in turn; and its wide tiles.
    COST_NEIGHBOURS = 1 << 17,
    COST_CHAINS = 4096,
    COST_VECTORS_IN_TURN = 8192,
    COST_WIDE_TILES = 128,
    // Operations: of neighbours that a thread does at once, and of those with random bits, which are long chains; of
    // turns that are written out; of a point for which a thread waits for two vectors at once; of a point without loops
    // whose registers leave few blocks at once, so that these are small; of what a warp more does ahead.
    COST_OF_NEIGHBOURS = 400,
    COST_OF_RANDOM_NEIGHBOURS = 800,
    COST_OF_TURNS = 600,
    COST_OF_TWO_TURNS = 16,
    COST_LONG_POINT = 400,
    COST_COMMON = 64,
    // Terms of a fold that are computed before it: dear ones (COST_DEAR_TERM), and light ones, of such a fold as has so
    // few blocks for a multiprocessor; so many at least.
    COST_DEAR_BLOCKS = 16,
    COST_LIGHT_TERM = 8,
    COST_LIGHT_BLOCKS = 4,
    COST_LEAST_TERMS = 4096,
    // Elements of folds whose parts are worth a function more: of few columns (COST_FEW_COLUMNS), or of so many of a
    // multiprocessor where no block can have columns whole.
    COST_PARTS = 1 << 18,
    COST_RAGGED_COLUMNS = 128,
    // A par whose kernel becomes several (fission.c) has so few points, and beside long scans,
    // which have more elements than that, so few.
    COST_PART_POINTS = 1 << 16,
    COST_PART_SCANS = 1024,
    COST_LONG_SCAN = 1024,
    // Points side by side with such scans, a thread each, that keep memory busy: of fewer, threads have parts of the
    // scans, whose elements are read twice.
    COST_SCAN_COLUMNS = 32768,
    // Or, where a block has neighbouring points whole, so few that blocks leave most of a GPU idle, whose loops have
    // so many elements of a point, and of all.
    COST_FEW_COLUMNS = 4096,
    COST_LONG_COLUMN = 8192,
    COST_COLUMNS = 1 << 19,
    // And terms of folds, of all points, which are read in two directions and worth a kernel for each.
    COST_APART = 1 << 20,
    // Terms of folds that are loops of their own there: of points that leave most of a GPU idle,
    // when a term has so many operations and there are so many terms; and memory is given to.
    COST_IDLE_POINTS = 128,
    COST_ROW_OF_TERM = 8, // elements of a row, which threads share where terms are few
    COST_DEAR_TERM = 64,
    // The same of a running fold, whose terms one thread makes.
    COST_SCAN_POINTS = 4096,
    COST_PUT_TERM = 16,
    COST_MANY_TERMS = 1 << 17,
    COST_KEPT_TERMS = 1 << 28,
    // Bytes of an operand of a routine's call that leaves a GPU partly idle; and kinds of such calls that are told
    // apart at one depth.
    COST_JOINED_BYTES = 8 << 20,
    COST_JOINED_KINDS = 64,
    COST_ALIKE = 8, // kernels that differ in numbers alone and are worth being one

    COST_LOCAL_BYTES = 256 * 1024, // of a row, or of the accumulators of a kernel
    // Of the rows of a block of a GPU, which has some 35 KB for other things.
    COST_SHARED_BYTES = 192 * 1024,
    COST_MERGE = 4096,   // elements whose second reading is worth avoiding
    COST_LONG_FOLD = 16, // terms of an element that is rather stored than made again
    // Times as often that a long fold is done, however little that is of the whole kernel.
    COST_FOLD_AGAIN = 3,
    // Elements of a product, for each of its operands', that are kept for a loop which would make it again.
    COST_PRODUCT_GROWTH = 4,
    COST_PART_RUN = 16, // elements side by side of a part that loops of its own put in place
    COST_NEAR_BYTES = 32 * 1024, // what the nearest cache holds
    // Lines so far apart have the same set there, of which it holds so many.
    COST_NEAR_PERIOD = 4096,
    COST_NEAR_WAYS = 8,
    COST_LARGE_BYTES = 1024 * 1024, // what is expected to fall out of the nearest caches
    COST_CACHES_BYTES = 24 << 20,   // what all caches of a processor hold
    COST_LINE_BYTES = 64,   // of a processor's caches; arrays and the arena begin at a line
    COST_ACCUMULATORS = 64, // partial results of a sum (docs/numerics.md)
    COST_GEMM_WORK = 32768, // multiplications of a product that pay for a library call
    COST_GEMM_SIDE = 8,     // and rows and columns that do
    // The same of bytes on a GPU, whose operands may have to be copied first: kernels make 2.9 million in a microsecond
    // on an H200.  The library wants rows of a multiple of so many bytes, and more rows than a tile of theirs has.
    COST_GEMM_BYTES_WORK = 1 << 23,
    COST_GEMM_BYTES_ROW = 8,
    COST_GEMM_BYTES_SIDE = 17,
    // The same on a processor for products of floats of more multiplications, sums of so many terms at least and a
    // matrix of so many elements at most: 8 rows by 1024 x 1024 take the library 205 us, 335 by the transpose, and a
    // kernel 135 and 95.
    COST_GEMM_FAR_SIDE = 12,
    COST_GEMM_COPIES = 1 << 20,
    COST_GEMM_TERMS = 256,
    COST_GEMM_MATRIX = 1 << 22,
    // Elements that share what a fold of so many terms loads go side by side: so many bytes from one to the next
    // where its lanes are terms, all of whose operands are loads, else what falls out of the nearest cache.  So few
    // are written out.
    COST_JAM_TERMS = COST_ACCUMULATORS,
    COST_JAM_BYTES = 1024,
    COST_JAM_POINTS = 16,
    // So many go together, so many where the fold has accumulators in lanes; of many so few at least.
    COST_JAM_TOGETHER = 8,
    COST_JAM_OF_LANES = 5,
    COST_JAM_LEAST = 4,
    COST_FOLD_GROUP = 8, // accumulators of a lane that come together in registers
    // Of a row of a lane, far from those of others, that is worth a transposed tile.
    COST_ROW_BYTES = 16,
    COST_PACKED_USES = 16, // of an element by a product, that pay for a copy of it
    COST_PACKED_ROWS = 16, // as many are lanes of a vector themselves, in a kernel
    // Terms of a product that threads of a GPU make where it is wanted, for that takes less time than to read it.
    COST_FEW_TERMS = 4,
    COST_FOLD_TERMS = 8, // the same in a fold
    // Terms of a product that vectors of a processor make, whose lanes are columns: the library copies both operands
    // first.  4096 rows by 8 x 64 take it 45 us and a kernel 13, 16,384 rows by 16 x 16 93 and 33.  So few where the
    // terms of a column lie together: 65,537 rows by 2 x 33 take it 274 us and a kernel 89, by 4 x 33 330 and 639.
    COST_LANE_TERMS = 16,
    // Of so few what uses the product is made with it; else it is stored, as by the library: a vector of what is dear
    // behind each row waits for itself.  16,384 rows by 16 x 16 and three functions take 295 us behind the library, on one
    // thread, and 427 in one kernel.
    COST_LANE_TERMS_JOINED = 8,
    COST_LANE_TERMS_ACROSS = 2,
    // Of a product that threads of a GPU make beside what uses it: terms of a sum, sums, both.
    COST_THREAD_TERMS = 64,
    COST_THREAD_SUMS = 1 << 16,
    COST_THREAD_WORK = 1 << 24,
    COST_JUMP = 12,  // ops of branches that are not worth a jump
    COST_UNROLL = 4, // extent of an axis that is written out
    COST_THREAD_UNROLL =
        8, // the same on a GPU, whose threads have registers for as many sums of the same terms
    COST_VECTOR_BYTES = 64, // of what one operation is done to at once
    COST_STEP_DEPTH = 64,   // of loops and branches in one another in a kernel
    // Of a loop's body whose elements are written out; of one without carries that mixes elements,
    // which a lane goes through once, all that a kernel may have (COST_CODE).
    COST_EXPANDED_OPS = 400,
    COST_EXPANDED_STATE = 64,   // elements of its carries
    COST_EXPANDED_ROW = 256,    // of what such a lane puts
    COST_LANE_BYTES = 4 * 1024, // of locals of a lane
    // Operations of a lane of a branch that is rather steps, where lanes are fewer than what a device has to run
    // them: a core or a multiprocessor then takes longer than a branch of steps takes beside what its kernels do.
    COST_BRANCH_OPS = 2 << 20,
    COST_ROWS = 4, // of a lane that one loop leaves for another: worth one kernel
    COST_TAPE_OF_LANE = 32 << 10, // bytes that a lane keeps from loop to loop, and in tables
    COST_TAPE_OF_FEW = 256 << 10, // the same of one lane of the few that a core has at once
    COST_TAPE_OF_ALL = 16 << 20,  // of all lanes: more is expected to fall out of all caches
    COST_TRIPS_BYTES = 64 << 20,  // what a product of all trips of a loop adds to memory
    COST_TRIPS_LEAST = 8,         // trips that are worth it, and multiplications of each
    COST_TRIPS_WORK = COST_GEMM_WORK / 8,
    // Points of a network's layers that keep a GPU busy, a thread each; of fewer the library's products are faster.
    COST_POINTS_ALONE = 32768,
    // Elements of a trip that are read once more for a fold in front of the loop.
    COST_TRIP_FOLD = 16384,
    COST_TAPE_BYTES = 256 << 20, // residuals of a loop that are kept without being asked for
    COST_RESIDUALS = 16,         // residuals that are handed on one by one

    // The most code that one piece may become, in operations, which are about as many as
    // instructions: what a loop does that is one kernel, a kernel whose loops are written out, and
    // one whose long ops are (codegen/op_function.c).  Functions that are larger all the same are compiled
    // with care (codegen/large.c).  A compiler takes longer than in proportion of more.
    COST_CODE = 8192,
    // Equal phases of a loop that is one kernel of a GPU are written out, in pieces of that, up to here, and
    // are functions from here on: 20 times a product, a softmax and an update took 9.0 ms, by functions 14.3.
    COST_CODE_RESIDENT = 4 * COST_CODE,
    // What a kernel may be that a loop of the host has in place of a call: a call, and operands in memory, take
    // longer.  Counted before LLVM makes less of it.
    COST_CODE_IN_PLACE = 80,
    COST_CODE_CALL = 16,  // an op that is no more than this is no function: the call is as much
    COST_INLINE = 100000, // nodes that a function may have once its calls are bodies
    COST_AHEAD = 400, // ops of updates that a thread of a GPU reads the operands of together
    COST_CODE_STATEMENT = 1, // of what is no operation
    // Of a loop in a kernel: a compiler looks for what holds in it through the tests of all loops before it.
    COST_CODE_LOOP = 64,
    COST_CODE_RESULT = 4, // of a carry of a loop in a kernel, and of a result of a branch
    // The same of the values of one kernel (cost_code_of_op).  Its loops are written out for several
    // registers, and once more with a mask, so this is a part of what all of it may be.
    COST_KERNEL_OPS = COST_CODE / 12,
};
// What a processor takes for a loop, in scalar operations (map/price.c).  Lanes that one operation is done to, roughly;
// a loop of lanes beside what they do; bringing the accumulators of its fold together, those of positions at each halving;
// one lane's result on its way into a vector; elements that lanes read far apart, by tiles of them, or put a few apart,
// each; a line that has the set of another one in the nearest cache; and times as much as dear functions of one
// register take.
#define COST_VECTOR 16.0
#define COST_OF_LOOP 3.0
#define COST_OF_FOLD 14.0
#define COST_OF_POSITIONS 300.0
#define COST_OF_LANE 2.0
#define COST_GATHER 2.0
#define COST_OF_TILE 0.25
#define COST_OF_CONFLICT 8.0
#define COST_OF_WAITING 2.0
#define COST_NEAR_PUT 1.0
// The same of a byte that moves between the nearest cache and a core's second one, the caches of all, or memory
// (map/traffic.c).
#define COST_BYTE_OF_CORE 0.04
#define COST_BYTE_OF_ALL 0.08
#define COST_BYTE_OF_MEMORY 0.2
// Points with loops over time are worth threads from so much less work on: nothing waits for memory.
#define COST_EVEN 2.5
// Points of a GPU are for a thread each, and not for groups of them, if that takes so many times less.
#define COST_THREADS_BETTER 1.5
// A kernel is rather several if that is better by so much, and each value of it that is apart gains so much.
#define COST_APART_BETTER 1.2
#define COST_APART_ONE 1.05
// Operations in a row of a thread of a GPU that take as long as a read of its memory.
#define COST_OF_READ 128.0
// Parts of a kernel of a GPU are better by so much where prices alone say so.
#define COST_SPLIT_BETTER 2
// Microseconds that a thread of a GPU waits for what it reads, and that a trip of a while takes which is a node of a graph,
// beside its launches; and how much longer a phase computes with the threads of a loop's kernel.
#define COST_READ_US 0.6
#define COST_NODE_US 6.0
#define COST_RESIDENT_WORK 1.6
#define COST_GROUP_BETTER 1.2 // a point for each thread is better than shared ones, by so much

// Of one scalar of an elementwise op.
int cost_of_op(enum ir_op op, jot_dtype dtype);
static inline bool cost_is_expensive(enum ir_op op, jot_dtype dtype)
{
    return cost_of_op(op, dtype) >= COST_EXPENSIVE;
}
// What it adds to the size of a kernel: 1 for arithmetic, 3 for sin.  Less than the cost, for a
// long kernel is still better than a store and a load.
static inline int cost_size_of_op(enum ir_op op, jot_dtype dtype)
{
    return 1 + cost_of_op(op, dtype) / 8;
}
// How much code it is: itself, and what it needs beside.  A product of complex numbers is six operations,
// and what is done at infinities and NaN is written beside it.
static inline int cost_code_of_op(enum ir_op op, jot_dtype dtype)
{
    return COST_CODE_STATEMENT + cost_of_op(op, dtype) * (dtype_is_complex(dtype) ? 4 : 1);
}
static inline bool cost_is_too_much_code(int64_t operations) { return operations > COST_CODE; }
// Whether a product of a batch of [m, k] and [k, n] of the dtype is one for the library; a rich one, a GPU's, has half
// types, and bytes that are summed in i32.
bool cost_is_gemm(jot_dtype dtype, bool is_rich, int64_t m, int64_t n, int64_t k);
// The same of a dot_general, in numbers of the dtype.
bool cost_is_product(const struct ir_graph *g, const struct ir_node *n, jot_dtype d,
                     bool is_rich);
// Whether so many sums of k terms are done in less time than a launch by threads that have one each.
bool cost_is_for_threads(int64_t sums, int64_t k);

#endif
