// SPDX-License-Identifier: Apache-2.0
// A small convolutional network learns to read digits of 8 by 8 pixels
// (data/digits.safetensors says whose they are): the whole training, by Adam with clipped
// gradients, is one compiled function.
#include <jot/jot.h>

#include <stdio.h>

enum { IMAGES = 1797, TESTS = 360, EPOCHS = 15, STEPS = 45, BATCH = 32 }; // steps of an epoch

JOT_STRUCT(net, (jot_convolution, conv[2]), (jot_dense, out));
JOT_OPTIM_STATE(state, struct net, adam);

static jot_value scores(struct net p, jot_value x)
{
    for (int i = 0; i < 2; i++)
        x = jot_relu(jot_convolution_apply(p.conv[i], x, .padding = JOT_PADDING_SAME));
    x = jot_max_pool(x, .window = JOT_DIMS(1, 2, 2, 1));
    return jot_dense_apply(p.out, jot_reshape(x, jot_value_dim(x, 0), -1));
}

static jot_value loss(struct net p, jot_value x, jot_value y)
{
    return jot_mean(jot_softmax_cross_entropy_with_integer_labels(scores(p, x), y));
}

// The share of the digits of the test, every fifth, that the network reads right.
static jot_value learn(jot_value seed, jot_value pixels, jot_value digits)
{
    jot_value x = jot_reshape(jot_div(jot_convert(pixels, JOT_F32), 16), IMAGES, 8, 8, 1);
    jot_value y = jot_convert(digits, JOT_I32), tests = jot_mul(5, jot_arange(JOT_I32, TESTS));
    jot_value test = jot_take(x, tests, 0), is = jot_take(y, tests, 0);
    jot_value keys = jot_random_split(jot_random_key(seed), 4), key = jot_take(keys, 3);
    jot_value sum = jot_zeros(JOT_F32), right = sum;
    jot_optimizer optimizer = jot_chain(jot_clip_by_global_norm(1), jot_adam(2e-3));
    struct state s;
    struct net p = {{jot_convolution_init(jot_take(keys, 0), 1, 16, JOT_DIMS(3, 3)),
                     jot_convolution_init(jot_take(keys, 1), 16, 32, JOT_DIMS(3, 3))},
                    jot_dense_init(jot_take(keys, 2), 512, 10)};
    jot_optimizer_init(optimizer, p, &s);
    JOT_FOR (epoch, EPOCHS, p, s, sum, right) {
        sum = jot_zeros(JOT_F32);
        JOT_FOR (i, STEPS, p, s, sum) {
            jot_value l,
                bits = jot_random_bits(jot_random_fold_in(key, s.count), JOT_U32, BATCH);
            jot_value other = jot_astype(jot_mod(bits, IMAGES - TESTS), JOT_I32);
            jot_value some = jot_add(jot_add(other, jot_floor_divide(other, 4)), 1);
            struct net g =
                JOT_VALUE_AND_GRAD(&l, loss, p, jot_take(x, some), jot_take(y, some));
            jot_optimizer_step(optimizer, g, &p, &s);
            sum = jot_add(sum, jot_div(l, STEPS));
        }
        right = jot_accuracy(scores(p, test), is);
        jot_printf("epoch {}  loss {}  right {}\n", epoch, sum, right);
    }
    return right;
}

JOT_FUNCTION(learn_fn, learn, jot_value, jot_value, jot_value, jot_value);

int main(int argc, char **argv)
{
    jot_archive *a = jot_archive_load(argc > 1 ? argv[1] : "examples/data/digits.safetensors");
    jot_array *right = NULL, *in[] = {jot_array_full(JOT_I32, 0), jot_archive_get(a, "pixels"),
                                      jot_archive_get(a, "digits")};
    jot_executable *f = jot_jit(learn_fn);
    if (jot_call(f, JOT_IN(in), JOT_OUT(right)) != JOT_OK)
        return fprintf(stderr, "%s\nusage: %s [FILE]\n", jot_error_message(), argv[0]), 1;
    int is_good = jot_array_item(right) >= 0.97;
    jot_arrays_release(JOT_OUT(in)), jot_array_release(right);
    jot_executable_release(f), jot_archive_release(a);
    return !is_good;
}
