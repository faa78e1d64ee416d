#!/bin/sh
# The main example against JAX's values for seed 0, and against the evaluator with other options;
# and what the spring says.
#
#     demo.sh qmc_energy spring_mass
set -eu
demo=$1
spring=$2

# The numbers of the first three lines.
numbers()
{
    "$demo" "$@" | awk 'NR <= 3 { print $NF }'
}

# same NAME TOLERANCE: the numbers in $a and $b are the same to a relative tolerance.
same()
{
    printf '%s\n' "$a" "$b" | awk -v name="$1" -v tolerance="$2" '
        { x[NR] = $1 }
        END {
            if (NR != 6)
                bad = 1
            for (i = 1; i <= 3; i++) {
                d = x[i] - x[i + 3]
                if ((d < 0 ? -d : d) > tolerance * (x[i] < 0 ? -x[i] : x[i]))
                    bad = 1
            }
            if (bad)
                print name ": " x[1], x[2], x[3], "and", x[4], x[5], x[6]
            exit bad
        }'
}

# jax.value_and_grad of mean(dot(x, w) * exp(-dot(x, alpha))) in w and alpha, f32, JAX 0.10.2
a='-1.7223232
1.9119620
3.8544307'
b=$(numbers)
same 'JAX and jot' 1e-5

for options in '--dtype f64' '--seed 3' '--seed 3 --dtype f64'; do
    a=$(numbers $options)
    b=$(JOT_BACKEND=eval numbers $options)
    same "native and evaluator with $options" 2e-6
done
for options in '--sed 3' '--seed' '--dtype bf16' '--seed x'; do
    if "$demo" $options >/dev/null 2>&1; then
        echo "$options is taken"
        exit 1
    fi
done

said=$("$spring")
if [ "$said" != "stiffness 1.0944 N/m: the mass is at 0.5000 m after 5 s" ]; then
    echo "the spring says: $said"
    exit 1
fi
