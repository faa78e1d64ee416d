// SPDX-License-Identifier: Apache-2.0
// A decoder over bytes: it learns a text by AdamW, with the losses that data/transformer.py
// has in JAX from the same start, and then writes on by itself, byte by byte with a cache of
// keys and values, in one compiled loop.
#include <jot/jot.h>

#include <math.h>
#include <stdio.h>

enum { BYTES = 256, SIZE = 64, HEADS = 4, LAYERS = 2, ROOM = 64 }; // bytes that it sees
enum { BATCH = 8, STEPS = 50, MORE = 150 };                        // MORE than JAX does

JOT_STRUCT(block, (jot_normalization, norm[2]), (jot_attention, attention),
           (jot_dense, mlp[2]));
JOT_STRUCT(net, (jot_embedding, bytes), (struct block, blocks[LAYERS]),
           (jot_normalization, norm));
JOT_OPTIM_STATE(state, struct net, adam);
JOT_STRUCT(learned, losses, text);

struct caches {
    jot_kv_cache of[LAYERS];
};

static struct net net_init(jot_value key)
{
    jot_value keys = jot_random_split(key, 2 * LAYERS + 1);
    struct net p = {
        .bytes = jot_embedding_init(jot_take(keys, 2 * LAYERS), BYTES, SIZE, .scale = 0.1),
        .norm = jot_normalization_init(SIZE, .no_bias = true)};
    for (int i = 0; i < LAYERS; i++) {
        struct block *b = &p.blocks[i];
        b->norm[0] = b->norm[1] = p.norm;
        b->attention = jot_attention_init(jot_take(keys, 2 * i), SIZE, HEADS,
                                          .kv_heads = HEADS / 2, .no_bias = true);
        jot_mlp_init(jot_take(keys, 2 * i + 1), b->mlp, JOT_DIMS(SIZE, 4 * SIZE, SIZE));
    }
    return p;
}

// For each of bytes[..., t] a score of every byte that may follow.  With caches these go on.
static jot_value scores(struct net p, jot_value bytes, struct caches *caches)
{
    jot_value x = jot_embedding_apply(p.bytes, bytes);
    for (int i = 0; i < LAYERS; i++) {
        struct block b = p.blocks[i];
        jot_value y = jot_rms_norm(b.norm[0], x);
        y = caches ? jot_attention_step(b.attention, y, &caches->of[i], .rotary = 1e4)
                   : jot_attention_apply(b.attention, y, .rotary = 1e4, .causal = true);
        x = jot_add(x, y);
        x = jot_add(x, jot_mlp_apply(b.mlp, jot_rms_norm(b.norm[1], x), jot_gelu));
    }
    return jot_embedding_scores(p.bytes, jot_rms_norm(p.norm, x));
}

static jot_value loss(struct net p, jot_value rows)
{
    jot_value guess = scores(p, jot_slice(rows, 1, 0, ROOM), NULL);
    return jot_mean(
        jot_softmax_cross_entropy_with_integer_labels(guess, jot_slice(rows, 1, 1, ROOM + 1)));
}

static struct learned learn(jot_value text)
{
    jot_optimizer optimizer = jot_chain(jot_clip_by_global_norm(1), jot_adamw(3e-3));
    jot_value keys = jot_random_split(jot_random_key(0), 3), losses;
    struct net p = net_init(jot_take(keys, 0));
    struct state s;
    jot_optimizer_init(optimizer, p, &s);
    JOT_SCAN ((p, s), (), (losses), .length = STEPS + MORE) {
        jot_value begin = jot_random_randint(jot_random_fold_in(jot_take(keys, 1), s.count),
                                             JOT_I32, 0, jot_value_size(text) - ROOM, BATCH);
        jot_value rows =
            jot_take(text, jot_add(jot_expand_dims(begin, 1), jot_arange(JOT_I32, ROOM + 1)));
        struct net g = JOT_VALUE_AND_GRAD(&losses, loss, p, jot_astype(rows, JOT_I32));
        jot_optimizer_step(optimizer, g, &p, &s);
    }
    struct caches caches;
    for (int i = 0; i < LAYERS; i++)
        caches.of[i] = jot_kv_cache_init(p.blocks[i].attention, ROOM);
    jot_value key = jot_take(keys, 2), byte = jot_full(JOT_I32, 't', 1), out;
    JOT_SCAN ((byte, caches), (), (out), .length = ROOM) {
        jot_value guess = scores(p, byte, &caches),
                  now = jot_random_fold_in(key, caches.of[0].length);
        byte = jot_random_categorical(now, jot_mul(2, guess), -1, true);
        out = jot_astype(jot_squeeze(byte), JOT_U8);
    }
    return (struct learned){losses, out};
}
JOT_FUNCTION(learn_fn, learn, struct learned, jot_value);

static uint8_t text[1 << 20];

int main(int argc, char **argv)
{
    FILE *f = fopen(argc > 1 ? argv[1] : "LICENSE", "rb");
    size_t n = f ? fread(text, 1, sizeof text, f) : 0;
    f ? fclose(f) : 0;
    jot_array *in = n > ROOM ? jot_array_from(text, (int64_t)n) : NULL;
    jot_array *wanted = jot_array_load(argc > 2 ? argv[2] : "examples/data/transformer.npy");
    struct learned_arrays out;
    jot_executable *learning = jot_jit(learn_fn);
    if (!in || !wanted || jot_call(learning, JOT_IN(in), JOT_OUT(out)) != JOT_OK)
        return fprintf(stderr, "%s\nusage: %s [TEXT LOSSES]\n", jot_error_message(), argv[0]),
               1;
    const float *loss = jot_array_data(out.losses), *jax = jot_array_data(wanted);
    double off = 0;
    for (int i = 0; i < STEPS; i++)
        off = fmax(off, fabs(loss[i] - jax[i]));
    for (int i = 0; i < STEPS + MORE; i += 25)
        printf("step %3d  loss %.4f\n", i, loss[i]);
    printf("within %.1e of JAX's losses\nt%.*s\n", off, ROOM,
           (const char *)jot_array_data(out.text));
    jot_arrays_release(JOT_OUT(out)), jot_array_release(in), jot_array_release(wanted);
    jot_executable_release(learning);
    return !(off < 1e-4);
}
