// SPDX-License-Identifier: Apache-2.0
// Training as with Haiku and Optax: batches of digits from a file, a compiled step of Adam with
// clipped gradients, checkpoints.  A training that is stopped and goes on from its checkpoint
// has the same bits at the end.
#include <jot/jot.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 64, EPOCHS = 12, STOP = 100 };
static const char *const checkpoint = "mnist_like.safetensors";
static jot_array *data[2]; // pixels from 0 to 16, and the digits

JOT_STRUCT(net, (jot_dense, layers[2]));
JOT_OPTIM_STATE(state, struct net, adam);
JOT_STRUCT(training, (struct net, p), (struct state, s));

static jot_optimizer optimizer(void)
{
    return jot_chain(jot_clip_by_global_norm(1), jot_adam(3e-3));
}

static jot_value scores(struct net p, jot_value x)
{
    x = jot_relu(jot_dense_apply(p.layers[0], jot_div(jot_convert(x, JOT_F32), 16)));
    return jot_dense_apply(p.layers[1], x);
}

static jot_value loss(struct net p, jot_value x, jot_value y)
{
    return jot_mean(jot_softmax_cross_entropy_with_integer_labels(scores(p, x), y));
}

static struct training begin(jot_value seed)
{
    jot_value keys = jot_random_split(jot_random_key(seed), 2);
    struct training t;
    t.p.layers[0] = jot_dense_init(jot_take(keys, 0), 64, 96);
    t.p.layers[1] = jot_dense_init(jot_take(keys, 1), 96, 10);
    jot_optimizer_init(optimizer(), t.p, &t.s);
    return t;
}
JOT_FUNCTION(begin_fn, begin, struct training, jot_value);

static struct training step(struct training t, jot_value x, jot_value y)
{
    jot_optimizer_step(optimizer(), JOT_GRAD(loss, t.p, x, y), &t.p, &t.s);
    return t;
}
JOT_FUNCTION(step_fn, step, struct training, struct training, jot_value, jot_value);

static jot_value rightness(struct net p, jot_value x, jot_value y)
{
    return jot_accuracy(scores(p, x), y);
}
JOT_FUNCTION(rightness_fn, rightness, jot_value, struct net, jot_value, jot_value);

static void must(jot_status status)
{
    if (status != JOT_OK)
        exit((fprintf(stderr, "%s\n", jot_error_message()), 1));
}

// Up to batch `last`, or to the end where that is 0, from the checkpoint or from the beginning.
static struct training_arrays train(bool goes_on, int64_t last)
{
    struct training_arrays t, next;
    jot_array *seed = jot_array_full(JOT_I32, 0), *batch[2];
    jot_executable *first = jot_jit(begin_fn), *f = jot_jit(step_fn);
    jot_archive *a = goes_on ? jot_archive_load(checkpoint) : jot_archive_create();
    must(goes_on ? jot_archive_get_tree(a, NULL, JOT_MEMBERS(training), JOT_OUT(t))
                 : jot_call(first, JOT_IN(seed), JOT_OUT(t)));
    jot_loader *l = jot_loader_create(
        data, BATCH, .shuffle = true, .drop_last = true, .epochs = EPOCHS,
        .first = goes_on ? strtoll(jot_archive_metadata(a, "batch"), NULL, 10) : 0);
    must(jot_loader_next(l, JOT_OUT(batch)));
    for (; batch[0]; must(jot_loader_next(l, JOT_OUT(batch)))) {
        must(jot_call(f, JOT_IN(t, batch), JOT_OUT(next)));
        jot_arrays_replace(t, next);
        jot_arrays_release(JOT_OUT(batch));
        if (jot_loader_position(l) == last)
            break;
    }
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)jot_loader_position(l));
    jot_archive_release(a), a = jot_archive_create();
    must(jot_archive_set_metadata(a, "batch", text));
    must(jot_archive_add_tree(a, NULL, JOT_MEMBERS(training), JOT_OUT(t)));
    must(jot_archive_save_safetensors(a, checkpoint));
    jot_archive_release(a), jot_loader_release(l), jot_array_release(seed);
    jot_executable_release(first), jot_executable_release(f);
    return t;
}

int main(int argc, char **argv)
{
    jot_archive *a = jot_archive_map(argc > 1 ? argv[1] : "examples/data/digits.safetensors");
    data[0] = jot_archive_get(a, "pixels"), data[1] = jot_archive_get(a, "digits");
    struct training_arrays whole = train(false, 0), half = train(false, STOP);
    struct training_arrays rest = train(true, 0);
    jot_array *right;
    int n = sizeof whole / sizeof(jot_array *), n_same = 0;
    jot_array **x = (jot_array **)&whole, **y = (jot_array **)&rest;
    for (int i = 0; i < n; i++)
        n_same += !memcmp(jot_array_data(x[i]), jot_array_data(y[i]), jot_array_bytes(x[i]));
    jot_executable *f = jot_jit(rightness_fn);
    must(jot_call(f, JOT_IN(whole.p, data), JOT_OUT(right)));
    printf("right %.3f  the same bits in %d of %d arrays\n", jot_array_item(right), n_same, n);
    bool is_good = jot_array_item(right) > 0.98 && n_same == n && remove(checkpoint) == 0;
    jot_arrays_release(JOT_OUT(whole)), jot_arrays_release(JOT_OUT(half));
    jot_arrays_release(JOT_OUT(rest)), jot_arrays_release(JOT_OUT(data));
    jot_array_release(right), jot_executable_release(f), jot_archive_release(a);
    return !is_good;
}
