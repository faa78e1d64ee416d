// SPDX-License-Identifier: Apache-2.0
// A small convolutional network learns to read digits of 8 by 8 pixels (data/digits.txt says whose they
// are): the whole training, by Adam with clipped gradients, is one compiled function.
#include <jot/jot.h>

#include <stdio.h>

enum { IMAGES = 1797, TESTS = 360, EPOCHS = 15, STEPS = 45, BATCH = 32 }; // steps of an epoch

JOT_STRUCT(net, (jot_conv, conv[2]), (jot_dense, out));
JOT_OPTIM_STATE(state, struct net, adam);

static jot_value scores(struct net p, jot_value x)
{
    for (int i = 0; i < 2; i++)
        x = jot_relu(jot_conv_apply(p.conv[i], x, .padding = JOT_PADDING_SAME));
    x = jot_max_pool(x, .window = JOT_DIMS(1, 2, 2, 1));
    return jot_dense_apply(p.out, jot_reshape(x, jot_value_dim(x, 0), -1));
}

static jot_value loss(struct net p, jot_value x, jot_value y)
{
    return jot_mean(jot_softmax_cross_entropy_with_integer_labels(scores(p, x), y));
}

// The share of the digits of the test that the network reads right.
static jot_value learn(jot_value seed, jot_value x, jot_value y, jot_value test, jot_value is)
{
    jot_value keys = jot_random_split(jot_random_key(seed), 4), key = jot_take(keys, 3);
    jot_value sum = jot_zeros(JOT_F32), right = sum;
    jot_optimizer optimizer = jot_chain(jot_clip_by_global_norm(1), jot_adam(2e-3));
    struct state s;
    struct net p = {{jot_conv_init(jot_take(keys, 0), 1, 16, JOT_DIMS(3, 3)),
                     jot_conv_init(jot_take(keys, 1), 16, 32, JOT_DIMS(3, 3))},
                    jot_dense_init(jot_take(keys, 2), 512, 10)};
    jot_optimizer_init(optimizer, p, &s);
    JOT_FOR (epoch, EPOCHS, p, s, sum, right) {
        sum = jot_zeros(JOT_F32);
        JOT_FOR (i, STEPS, p, s, sum) {
            jot_value l,
                bits = jot_random_bits(jot_random_fold_in(key, s.count), JOT_U32, BATCH);
            jot_value some = jot_astype(jot_mod(bits, IMAGES - TESTS), JOT_I32);
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

JOT_FUNCTION(learn_fn, learn, jot_value, jot_value, jot_value, jot_value, jot_value, jot_value);

static float pixels[IMAGES][64]; // those of the test, every fifth image, and then the others
static int32_t digits[IMAGES];
static int read_digits(const char *path)
{
    char line[256];
    int test = 0, other = TESTS;
    FILE *f = fopen(path, "r");
    while (f && test + other < IMAGES + TESTS && fgets(line, sizeof line, f)) {
        if (line[0] == '#')
            continue;
        int to = (test + other - TESTS) % 5 == 0 ? test++ : other++;
        for (int i = 0; i < 64; i++)
            pixels[to][i] = (float)(line[i] >= 'a' ? line[i] - 'a' + 10 : line[i] - '0') / 16;
        digits[to] = line[65] - '0';
    }
    return (f ? fclose(f) : 0), other == IMAGES;
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "examples/data/digits.txt";
    if (!read_digits(path))
        return fprintf(stderr, "%s: not there, or not the images; usage: %s [FILE]\n", path,
                       argv[0]),
               1;
    jot_array *in[] = {
        jot_array_full(JOT_I32, 0), jot_array_from(pixels[TESTS], IMAGES - TESTS, 8, 8, 1),
        jot_array_from(digits + TESTS, IMAGES - TESTS),
        jot_array_from(pixels[0], TESTS, 8, 8, 1), jot_array_from(digits, TESTS)};
    jot_array *right = NULL;
    jot_executable *f = jot_jit(learn_fn);
    if (jot_call(f, JOT_IN(in), JOT_OUT(right)) != JOT_OK)
        return fprintf(stderr, "%s\n", jot_error_message()), 1;
    int is_good = jot_array_item(right) >= 0.97;
    jot_arrays_release(JOT_OUT(in)), jot_array_release(right), jot_executable_release(f);
    return !is_good;
}
