// SPDX-License-Identifier: Apache-2.0
// The mapping to a GPU: who has the elements of each loop, as levels in the nest's text (nest/nest.h).
//
// A point of the outermost parallel loop is done by one thread, or by a group of threads.  In a
// group all threads walk the statements together: scalar work is done by each of them, a map is
// shared out, a fold is a common one, and one thread puts what is put outside of maps.  Inside
// of what is shared out each thread works alone.
#ifndef MAP_GPU_H
#define MAP_GPU_H

#include "ir/cost.h"
#include "map/map.h"

#define GPU_WARP COST_WARP
#define MAP_WARPGROUP (4 * GPU_WARP) // threads that multiply from shared memory together
#define GPU_BLOCK COST_BLOCK_THREADS // unless there is a reason for another number
#define MAP_ALIGNMENT 16 // bytes: of arrays, constants and temporaries; no access is wider
#define GPU_MULTIPROCESSORS COST_MULTIPROCESSORS // that a kernel had better keep busy

// A nest on a GPU, and of what is asked about it, how threads go about it.
struct map_gpu {
    const struct nest *nest;
    struct arena *arena;
    struct map_uses *uses;
    bool is_phase;            // of a loop, whose kernel calls the function
    const bool *is_read_only; // by buffer: nothing writes it while the kernel runs
    const bool *is_aligned;   // by buffer: to 16 bytes
    int64_t code;             // the most that a loop may become
    int64_t trips;            // of the loop that the nest is all of, else 1
    bool has_warpgroups;      // the GPU has them
    bool is_group;            // threads of a group do it
    bool is_together;         // in step with one another
    bool has_columns;         // threads beside one another have points beside one another
    bool is_ahead;            // a warp more does part of it
    bool is_network;          // locals of its points are near a thread
};

// The same asked of the threads of a group, and of columns.
static inline struct map_gpu map_gpu_of_group(const struct map_gpu *m)
{
    struct map_gpu x = *m;
    x.is_group = x.is_together = true;
    x.has_columns = false;
    return x;
}
static inline struct map_gpu map_gpu_of_columns(const struct map_gpu *m)
{
    struct map_gpu x = *m;
    x.is_group = x.is_together = false;
    x.has_columns = true;
    return x;
}

// Writes who does what, in place of what has been written.
void map_to_gpu(const struct map_gpu *m, struct nest *n);
// Nanoseconds of a nest that is mapped (gpu_price.c).
int64_t map_gpu_price(const struct nest *n);

// gpu_program.c
// By nest, what its steps are: phases are those of loops that are kernels.
enum map_role { MAP_UNUSED, MAP_KERNEL = 1, MAP_PHASE = 2 };
enum map_role *map_roles_of(struct arena *arena, const struct nest_program *p);

// gpu_operands.c
// A pointer argument of a kernel, in every step that runs it.
struct map_operand {
    unsigned align;   // bytes
    bool is_alone;    // nothing else that the step reads or writes is in its memory
    bool is_constant; // of what is read: nothing writes it while the kernel runs
};
// Whether step i writes part of the memory.
bool map_step_writes(struct arena *arena, const struct nest_program *p, uint32_t i,
                     uint32_t memory);
// Whether step k reads or writes what step i writes, or writes what it reads.
bool map_step_waits(struct arena *arena, const struct nest_program *p, uint32_t i, uint32_t k);
// By nest, of its buffers.  Before memory is planned each memory has an offset of its own.
const struct map_operand *const *map_operands(struct arena *arena,
                                              const struct nest_program *p);

// gpu_verify.c
// Whether there is code that does what the text of the nest says; what is wrong with it is added to the report, which may
// be NULL.  Returns the number of faults.
int map_gpu_verify(const struct map_gpu *m, struct strbuf *report);

// The loop of a mapped kernel that one thread does, of those with much work the one with the most; NEST_NONE: there
// is none.
struct map_serial {
    nest_id loop;
    double work;
    int64_t count; // of turns
    const char *why;
};
void map_serial_find(const struct nest *n, struct map_serial *out);

// gpu_lanes.c: what a thread has of a loop; neighbouring elements as its levels say.
static inline unsigned map_vector(const struct nest *n, const struct nest_statement *loop)
{
    unsigned vector = n->axes.at[loop->axes[loop->n_axes - 1]].vector;
    return vector ? vector : 1;
}
struct map_points {
    const struct nest_statement *s;
    nest_id axis; // of the lanes: neighbouring points; NEST_NONE: none
    unsigned lanes;
    nest_id row_axis; // along which a thread has so many vectors, as far apart as there can be
    int64_t rows;
    int64_t count; // of threads' vectors, or rows of them
};
struct map_points map_points_of(const struct nest *n, nest_id loop); // as its levels say
struct map_points map_points_make(const struct map_gpu *m, nest_id loop);
// Several rows for a thread where they share what they read.
void map_points_widen(const struct map_gpu *m, struct map_points *p);
void map_points_write(struct nest *n, const struct map_points *p);
// Of a loop that a group's threads share: its turns that are written out, all of them, or some that are read at once.
void map_turns_choose(struct nest *n, nest_id loop);
// Whether what the loop does of neighbouring elements along an axis goes side by side; how many are worth doing so.
bool map_may_have_lanes(const struct map_gpu *m, const struct nest_statement *loop,
                        nest_id axis);
unsigned map_lanes(const struct map_gpu *m, const struct nest_statement *loop, nest_id axis);
// Operations of a turn of the block, inner loops once.
double map_turn_work(const struct nest *n, uint32_t block);
// Whether so many turns of a body are worth writing out.
bool map_is_short(const struct nest *n, uint32_t block, int64_t turns);
// Whether the lanes of a thread are so much work that one turn of them is enough.
bool map_is_long(const struct nest *n, const struct map_points *p);

// How a group walks a row of elements: as its fold does.  A team of threads has a block of the
// fold, a window of 64 elements at a time.
struct map_row {
    int64_t length, block, blocks;
    unsigned lanes;  // neighbouring elements of a thread
    unsigned team;   // threads
    unsigned teams;  // in the group
    unsigned window; // elements: 64, or the next power of two of a short row
    unsigned parts;  // of a window that one thread has, `lanes` elements each
    bool is_exact;   // windows and blocks are full
};
struct map_row map_row_make(const struct map_gpu *m, const struct nest_statement *s,
                            unsigned group);
// Of so many lanes, or fewer.
struct map_row map_row_of(const struct nest *n, const struct nest_statement *s, unsigned group,
                          unsigned lanes);
// Whether the group does each vector that a thread has of the row, of so much work, in code of its own.
#define MAP_WINDOWS_WORK 300 // operations
#define MAP_ROUNDS 32        // results of blocks, all together, that a team writes out
bool map_fold_is_straight(const struct nest *n, nest_id fold, const struct map_row *r,
                          double work);
// Of a fold whose blocks teams of threads have: rounds of blocks that are written out, and windows of a block that are
// read at once; of several parts none are where they go part by part.
void map_fold_turns_choose(struct nest *n, nest_id fold);
// Whether a thread that does the fold alone has no loop over its elements, where it may have so much code.
bool map_fold_is_written_out(const struct nest *n, nest_id fold, int64_t most);

// gpu_groups.c: points that threads share.
bool map_is_loop(enum nest_kind kind);
// The longest loop in the block that threads can share, which decides how many they are; NEST_NONE for none.
nest_id map_longest_loop(const struct nest *n, uint32_t block);
// Whether it reads what it writes, which is for one thread at a time.
bool map_has_updates(const struct nest *n);
bool map_has_kind(const struct nest *n, enum nest_kind kind);
bool map_has_locals(const struct nest *n);
// Threads for the longest loop, at most so many; the row that it is, if it is a fold that they share.
struct map_group {
    unsigned block, group;
    struct map_row row;
};
struct map_group map_group_of(const struct map_gpu *m, nest_id widest, unsigned most);
// Whether a group is to do each point of the loop s; the threads for them.
bool map_groups_wanted(const struct map_gpu *m, const struct nest_statement *s);
void map_groups_choose(const struct map_gpu *m, struct nest *n, nest_id loop);
// The same for points, each of which has a long fold, that are so few that several threads share one: neighbouring
// ones of a block, 0 for none.
int64_t map_columns_of(const struct map_gpu *m, const struct nest_statement *s);
bool map_columns_choose(const struct map_gpu *m, struct nest *n, nest_id loop);

// gpu_shared.c: loops that blocks of threads share.
#define MAP_TILE_TURNS 4 // in which the threads do the rows of a tile
struct map_tiles {
    const struct nest_statement *s;
    nest_id along,
        across;     // axes: what is put is contiguous along one, what is read is so across
    unsigned width; // points of a side of a tile
    bool are_two;   // a block of threads has a tile and its mirror image
};
bool map_tiles_find(const struct map_gpu *m, nest_id loop, struct map_tiles *out);
// Of tiles that are so wide: whether they make a square with an even number of them in a row, and both fit.
bool map_tiles_mirror(const struct nest *n, const struct map_tiles *t);
bool map_is_turned(const struct nest *n, const struct nest_statement *s, nest_id along,
                   nest_id across);
#define MAP_SHORTEST_CHUNK COST_LONG_SCAN // elements of a running fold that a warp has
// Which statement of a scan's body yields; whether threads can share it; such a scan that each point of a par has, or
// NEST_NONE; how many points threads have side by side where what the scans read and put lies along these, else 0.
uint32_t map_scan_yield(const struct nest *n, const struct nest_statement *scan);
bool map_is_long_scan(const struct nest *n, nest_id scan);
nest_id map_scan_of_points(const struct nest *n, nest_id loop);
unsigned map_scan_columns(const struct nest *n, nest_id loop, nest_id scan);
// The fold of a loop over few points, whose blocks are to be those of blocks of threads; NEST_NONE: there is none.
#define MAP_MOST_OF_ONE_BLOCK 32768 // elements of a fold
nest_id map_shared_fold(const struct map_gpu *m, nest_id loop);
// Whether the elements of the fold, one of each of so many points, are so dear that they are computed apart; bytes of
// so many of them: of one combine, of each value that it takes, and of all.
bool map_has_terms(const struct nest *n, nest_id fold, int64_t points);
uint64_t map_term_bytes(const struct nest_combine *c, int64_t count);
uint64_t map_terms_bytes(const struct nest_statement *fold, int64_t count);
// The one loop of the points that is no map for itself, or NEST_NONE; by value, what depends on it.
nest_id map_only_fold(const struct nest *n, const struct nest_statement *points, bool *depends);
// Whether blocks of threads had better have parts of the points' only fold; the threads for them.
bool map_parts_choose(const struct map_gpu *m, struct nest *n, nest_id loop);
// Whether the loop is over the points of a network; whether all that is summed is of one floating-point type.
bool map_is_network(const struct nest *n, nest_id loop);
bool map_is_summed(const struct nest *n, nest_id loop, jot_dtype *out);

// gpu_updates.c: a loop of updates.
#define MAP_ORDER_BLOCK 1024 // threads that sort a chunk of turns
#define MAP_ORDER_TURNS 8    // that each of them has, at most
#define MAP_SLOT_BYTES 2
#define MAP_COPIES 4     // at most
#define MAP_TURN_LOOPS 8 // that are one sequence of turns, at most
struct map_updates {
    const struct nest_statement *par; // NULL for none
    // The loops over turns, the outer ones with nothing but plain statements beside the next one.
    const struct nest_statement *loops[MAP_TURN_LOOPS];
    uint32_t n_loops;
    const struct nest_statement *put, *load; // load: of what is updated, or NULL
    const struct nest_block *body;           // all statements of a turn
    struct nest_index row; // of the index, what turns change, as small as it goes
    bool *depends;         // by value: on what is loaded
    bool *is_window;       // by axis of par: turns and guards do not depend on it
    int64_t points, turns;
    int64_t chunk, chunks;   // turns of a chunk, chunks of a point
    int64_t window;          // elements of an update of a point, 1: the one
    int64_t bins;            // of elements, a power of two
    int64_t length, offsets; // of a chunk's list; words before the lists
    // The order has what updates take of their turns, one value at most, and else the numbers of the turns.  Points
    // that are no window and have the same turns are copies: the order has the values of all of them.
    bool is_carried, has_table; // has_table: a warp has the elements of its bin at hand
    int64_t copies;
    nest_id value;       // NEST_NONE: nothing
    jot_dtype dtype;     // of the value
    int64_t rows, slots; // of a point; of a bin, at most
    struct nest_index
        at; // where a row is, which has the number of the first value of the put's index
};
bool map_updates_find(const struct map_gpu *m, nest_id loop, struct map_updates *out);
bool map_is_of_turns(const struct map_updates *u, nest_id axis);

// gpu_counting_sort.c
#define MAP_CHUNK 16384     // turns that a block of threads sorts
#define MAP_SORT_BLOCK 1024 // threads
#define MAP_MOST_COUNTED 16384
struct map_counting_sort {
    nest_id element, value; // of a turn; value: what the updates take of it, NEST_NONE: nothing
    jot_dtype dtype;        // of the value
    int64_t count, room;    // elements of a point; rounded up to what the threads count
    int64_t row;            // of a chunk: where elements begin, numbers of 16 bits
    int64_t chunks;         // of a point
};
// Whether a block of threads can count the updates of every element.
bool map_counting_sort_find(const struct map_gpu *m, const struct map_updates *u,
                            struct map_counting_sort *out);
// The only value that updates take of their turns, NEST_NONE for none (a JOT_BOOL); whether it is as simple as that.
bool map_value_find(const struct map_gpu *m, const struct map_updates *u, nest_id *out,
                    jot_dtype *out_dtype);
int64_t map_value_bytes(jot_dtype d);
// Whether the value is made in a turn.
bool map_is_in_turn(const struct nest *n, const struct map_updates *u, nest_id value);

// gpu_scratch.c: bytes of the memory that threads of a mapped kernel have in common besides its buffers, of which each
// of these says how much some of it is, and where.
uint64_t map_scratch_of(const struct map_gpu *m, const struct nest *n);
// So many results of a combiner: their numbers, imaginary parts and positions.
uint64_t map_result_bytes(uint16_t op, jot_dtype dtype, uint64_t count, uint64_t out[3]);
// Chunks of a fold that blocks of threads share, each of so many blocks of it.
int64_t map_fold_chunks(const struct nest_statement *fold, const struct map_row *r,
                        int64_t *out_size);
// How threads share the fold of points with columns: units of a block, units of a thread, parts.
struct map_parts {
    int64_t units, span, parts;
};
struct map_parts map_parts_of(const struct nest *n, const struct nest_statement *fold,
                              int64_t groups, unsigned group);
// A running fold: whether it is in one pass, and the words of that; whether warps have whole points; elements of a
// chunk of those of so many points.
#define MAP_SCAN_WINDOWS 8 // of a warp, which its threads keep
#define MAP_SCAN_LEVELS 3  // of words: of tiles, of groups of 32 of them, and of 32 groups
bool map_scan_is_once(const struct nest *n, bool is_phase);
uint64_t map_scan_words(const struct nest *n, const struct nest_statement *scan,
                        int64_t out[MAP_SCAN_LEVELS]);
bool map_scans_are_whole(const struct nest *n);
int64_t map_scan_chunk(int64_t length, int64_t points, unsigned columns);
// Of attention's gradient: statistics of so many queries, then rows of dq.
#define MAP_GRADIENT_QUERIES 128 // of a block

// gpu_network.c: a map of nothing but products, for which the points have nothing to do; the local that is read at
// index i of the axis, or NEST_NONE.
bool map_is_products(const struct nest *n, const struct nest_statement *s);
nest_id map_row_at(const struct nest *n, nest_id value, nest_id axis);
// Where locals of a point are that are of no use at the same time, by buffer; their bytes are given, 0: none.  Notes
// the statements that write them last.  Returns the bytes of all.
int64_t map_network_lay_out(const struct map_gpu *m, nest_id loop, const int64_t *bytes,
                            int64_t *at, uint32_t *written);
// Squads: what a contract reads of memory, and where it is in shared memory.
#define MAP_SQUAD 4        // threads
#define MAP_SQUAD_UNITS 16 // of a thread, at most
struct map_matrix {
    nest_id buffer;
    int64_t constant, by_input, by_output, inputs, outputs;
    int64_t at; // bytes
};
struct map_squads {
    bool *is_common; // by buffer: read or written by other threads than those of its units
    uint32_t
        *put_in; // by buffer: what is not shared out and puts it, 1 being the first statement
    uint32_t at_statement;
    VEC(struct map_matrix) matrices;
    int64_t matrix_bytes, point_bytes;
    int64_t *at;       // by buffer: its row in shared memory
    uint32_t *written; // by buffer: the statement of the body that does so last
};
// False: there is no such code.
bool map_squads_find(const struct map_gpu *m, nest_id loop, struct map_squads *out);
bool map_is_squad_row(int64_t count);
int64_t map_squad_stride(int64_t count); // elements, an odd number of times 16 bytes
// The axis of a map whose units the squad shares out, or NEST_NONE.
nest_id map_squad_units(const struct nest *n, const struct nest_statement *s);
void map_network_choose(const struct map_gpu *m, struct nest *n, nest_id loop);

// gpu_trips.c: trips of a stencil, several of which are one launch.
#define MAP_TRIPS_LANES 4 // columns of a thread
#define MAP_TRIPS_HALO 8  // columns of a warp on either side that it does not store
#define MAP_TRIPS_REACH 2 // of a neighbour, at most
struct map_neighbour {
    bool is;
    int row, column;
};
struct map_trips {
    const struct nest_statement *loop, *put;
    nest_id row, column; // axes
    int64_t height, width, reach;
    struct map_neighbour *at; // by value
    bool *is_needed;          // by statement
};
bool map_trips_find(const struct map_gpu *m, nest_id loop, struct map_trips *out);
bool map_trips_choose(const struct map_gpu *m, struct nest *n, nest_id loop);
// By nest: trips of the loop that it is all of, whose two arrays are swapped; 1: there is no such loop.
const int64_t *map_trips_of(struct arena *arena, const struct nest_program *p);

// gpu_attention.c: whether it is attention, or its gradient; the threads for it.
bool map_attention_choose(const struct map_gpu *m, struct nest *n);

// gpu_order.c: the axes of points that have loops in the order in which neighbouring threads find what lies together.
void map_order_choose(const struct map_gpu *m, struct nest *n, nest_id loop);

// gpu_again.c: by buffer, whether it is a tape that the loop over time of the points leaves, which another one that
// comes back makes again, NULL: that is no such loop; whether there are any that are made so.
#define MAP_MOST_SEGMENT 32 // trips
const bool *map_again_find(const struct map_gpu *m, nest_id loop,
                           const struct nest_statement *seq);
bool map_again_choose(const struct map_gpu *m, struct nest *n, nest_id loop);

// gpu_ahead.c: a loop over time part of which is the same for all points.
#define MAP_SLOTS 16 // of a trip
struct map_ahead {
    nest_id loop;
    const bool *varies; // by value: from thread to thread
    uint32_t n_slots;   // values of a trip that all threads take from shared memory
    nest_id slots[MAP_SLOTS];
    const bool *is_apart; // by statement: differs, but does not come from the trip before
    int64_t strip;        // trips that are done side by side as far as they are so
};
// That of the points of a loop; NULL: there is none.
struct map_ahead *map_ahead_find(const struct map_gpu *m, nest_id loop);
bool map_is_common(const struct map_ahead *c, const struct nest_statement *s);
unsigned
map_ahead_threads(int64_t points); // of a block that has points, of which there are so many
// Whether a loop over time carries numbers of two parts.
bool map_carries_complex(const struct nest *n, const struct nest_statement *seq);

static inline bool map_is_read_only(const struct map_gpu *m, nest_id buffer)
{
    return m->is_read_only[buffer];
}
// Whether the body of the kernel reads before its loop.
bool map_reads_before(const struct nest *n);

// gpu_early.c: loops over time of the points whose trips read some trips before what they want; how many statements of
// such a loop are those reads and what their guards are made of, and which, in their order.
void map_early_choose(const struct map_gpu *m, struct nest *n, nest_id loop);
uint32_t map_early_find(const struct map_gpu *m, const struct nest_statement *seq,
                        nest_id *out);

#endif
