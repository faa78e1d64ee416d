// SPDX-License-Identifier: Apache-2.0
// Numbers that the kernels of sort_kernels.inc and who starts them agree on.
#ifndef RUNTIME_CUDA_SORT_KERNELS_H
#define RUNTIME_CUDA_SORT_KERNELS_H

// SORT_DONE and what follows are indices in the state behind the counts of 8 passes: blocks that
// have counted, whether a float is -0 or NaN, and for each pass the tiles that are taken.  A
// tile tells of a digit SORT_OWN and how many it has, then SORT_ALL and how many it and all
// before it have; so many tiles before it are looked at at once.  A warp chooses at most SORT_MOST_CHOSEN of
// SORT_CHOICE elements.
#define SORT_WORDS(WORD)                                                                       \
    WORD(SORT_THREADS, 384)                                                                    \
    WORD(SORT_BLOCKS, 2)                                                                       \
    WORD(SORT_DIGITS, 256)                                                                     \
    WORD(SORT_COPIES, 4)                                                                       \
    WORD(SORT_DONE, 2048)                                                                      \
    WORD(SORT_SPECIAL, 2049)                                                                   \
    WORD(SORT_TICKETS, 2050)                                                                   \
    WORD(SORT_STATE, 2112)                                                                     \
    WORD(SORT_KEY_BYTES, 80)                                                                   \
    WORD(SORT_CHOICE, 1024)                                                                    \
    WORD(SORT_MOST_CHOSEN, 64)                                                                 \
    WORD(SORT_WINDOW, 4)                                                                       \
    WORD(SORT_OWN, 0x40000000u)                                                                \
    WORD(SORT_ALL, 0x80000000u)

#define SORT_ITEMS (SORT_KEY_BYTES / (int)sizeof(KEY)) // of a thread
#define SORT_TILE (SORT_THREADS * SORT_ITEMS)

#endif
