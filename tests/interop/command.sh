#!/bin/sh
# The command jot: each of its commands on small programs, and what it says to arguments that do not fit.
#
#     command.sh JOT ROOT
set -eu
jot=$(readlink -f "$1")
root=$(readlink -f "$2")
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
cd "$made"
python=${JOT_PYTHON-} # one with JAX, or none
unset JOT_PYTHON JOT_DEVICE

wrong()
{
    echo "command.sh: $*" >&2
    [ ! -s err ] || cat err >&2
    exit 1
}

# ends STATUS WORD...: the command ends with that status; what it prints is in out and err.
ends()
{
    want=$1 status=0
    shift
    "$jot" "$@" >out 2>err || status=$?
    [ $status = "$want" ] || wrong "jot $* ends with $status, not $want"
    [ "$want" = 0 ] || [ -s err ] || [ "$1" = check ] || wrong "jot $* does not say why"
}

# says FILE TEXT
says()
{
    grep -qF -e "$2" "$1" || { cat "$1" >&2; wrong "it does not say '$2'"; }
}

cat >numbers.mlir <<'END'
func.func public @main() -> (tensor<2x3xf32>, tensor<3xi32>) {
  %0 = stablehlo.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %1 = stablehlo.constant dense<[7, 8, 9]> : tensor<3xi32>
  return %0, %1 : tensor<2x3xf32>, tensor<3xi32>
}
END
# Two results: x * y and 3 x y, of which the second is an integer's.
cat >mixed.mlir <<'END'
module @mixed {
  func.func public @main(%x: tensor<2x3xf32>, %n: tensor<3xi32>, %y: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3xi32>, tensor<f32>) {
    %0 = stablehlo.multiply %x, %y : tensor<2x3xf32>
    %1 = stablehlo.add %n, %n : tensor<3xi32>
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %2 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<f32>
    return %0, %1, %2 : tensor<2x3xf32>, tensor<3xi32>, tensor<f32>
  }
  func.func @twice(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
    %0 = stablehlo.add %x, %x : tensor<2x3xf32>
    return %0 : tensor<2x3xf32>
  }
}
END
cat >archive.mlir <<'END'
func.func @main(%x: tensor<2x3xf32>, %y: tensor<3xi64>, %z: tensor<0x2xi1>, %w: tensor<40x5xf64>) -> tensor<3xi64> {
  %0 = stablehlo.add %y, %y : tensor<3xi64>
  return %0 : tensor<3xi64>
}
END

# ---- asking

ends 0 --version
says out 'jot '
ends 0 help
ends 0 --help
for name in run check grad convert print time devices; do
    says out "  $name "
    ends 0 help $name
    cp out help
    ends 0 $name --help
    cmp -s out help || wrong "jot help $name and jot $name --help differ"
    # Each option is in the manual and in the completions.
    for option in $(sed -n 's/^  \(--[a-z0-9-]*\).*/\1/p' out); do
        sed 's/\\-/-/g' "$root/tools/jot.1" >manual
        says manual "B $option"
        says "$root/tools/completion/jot.bash" "$option"
        says "$root/tools/completion/_jot" "$option["
        says "$root/tools/completion/jot.fish" "-l ${option#--} "
    done
    ends 0 help
done
ends 2
ends 2 help nothing
says err 'there is no command nothing'
ends 2 nothing
ends 0 devices
says out host
JOT_HOST_DEVICES=4 ends 0 devices x=2 y=0
says out 'mesh x 2, y 2'
says out '  host:2 host:3'
JOT_HOST_DEVICES=4 ends 1 devices x=3 y=2
says err 'a mesh of 6 devices'
ends 2 devices x
says err 'x is no axis of a mesh'

# ---- run

ends 0 run numbers.mlir
says out 'out0: f32[2,3]'
says out '[[1. 2. 3.]'
says out '[7 8 9]'
ends 0 run numbers.mlir --output-dir in
[ ! -s out ] || wrong 'results are printed beside a folder'
ends 0 run mixed.mlir --input in/out0.npy --input in/out1.npy --input=in/out0.npy
says out '[[ 1.  4.  9.]'
says out '[14 16 18]'
says out '21.'
cp out first
ends 0 run --input arg2=in/out0.npy mixed.mlir --input 0=in/out0.npy --input in/out1.npy
cmp -s out first || wrong 'arguments by number are others'
ends 0 run mixed.mlir --function twice --input in/out0.npy --output-dir twice
ends 0 run mixed.mlir --function twice --input twice/out0.npy --device host --tf32
says out '[[ 4.  8. 12.]'
ends 0 run mixed.mlir --function twice --input twice/out0.npy --tune
says out '[[ 4.  8. 12.]'
ends 0 run archive.mlir --input "$root/tests/interop/arrays/stored.npz"
says out '[2 4 6]'

# Of an archive whose names are those of arguments the order does not count.
ends 0 run mixed.mlir --input "$root/tests/interop/arrays/named.npz"
says out '[[ 1.  4.  9.]'
says out '[2 4 6]'
ends 0 run mixed.mlir --input "$root/tests/interop/arrays/named.safetensors"
says out '[[ 1.  4.  9.]'
ends 1 run mixed.mlir --input "$root/tests/interop/arrays/stored.npz"
says err 'it is i64[3], and argument 1 of @main is i32[3]'
sed 's/%x: tensor<2x3xf32>/%x: tensor<2x3xf32> {tf.aliasing_output = 0 : i32}/' mixed.mlir >donating.mlir
ends 0 run donating.mlir --input in/out0.npy --input in/out1.npy --input in/out0.npy
cmp -s out first || wrong 'a donated argument gives other results'
ends 2 run mixed.mlir --input in/out0.npy
says err '@main takes 3 arguments, and there is no --input for 1, i32[3]'
ends 1 run mixed.mlir --input in/out1.npy
says err '--input in/out1.npy: it is i32[3], and argument 0 of @main is f32[2,3]'
ends 2 run mixed.mlir --input 3=in/out0.npy
says err 'argument 3, but @main takes 3'
ends 2 run mixed.mlir --input in/out0.npy --input 0=in/out0.npy
says err 'argument 0 has an array already'
ends 0 run mixed.mlir --input y=in/out0.npy --input x=in/out0.npy --input n=in/out1.npy
cmp -s out first || wrong 'arguments by name are others'
sed "s/%x: tensor<2x3xf32>, /%x: tensor<2x3xf32> loc(#loc1), /; \$a #loc1 = loc(\"params['w']\")" mixed.mlir >named.mlir
ends 0 run named.mlir --input "params['w']=in/out0.npy" --input in/out1.npy --input in/out0.npy
cmp -s out first || wrong 'arguments by name are others'
ends 0 run "$root/tests/interop/programs/named.jaxexport" --input "p['w']=in/out0.npy" --input x=in/out0.npy
says out '[[ 1.  4.  9.]'
ends 2 run mixed.mlir --input z=in/out0.npy
says err '--input z=in/out0.npy: no argument is called z; they are numbered from 0, and the first is called x'
ends 1 run mixed.mlir --input none.npy
says err 'none.npy: No such file'
ends 1 run mixed.mlir --input mixed.mlir
says err 'mixed.mlir: offset 0: this is no .npy file'
ends 1 run none.mlir
says err 'none.mlir: No such file'
ends 1 run mixed.mlir --function nothing
says err nothing
echo 'func.func @main( {' >broken.mlir
ends 1 run broken.mlir
says err 'broken.mlir:1:'
ends 1 run numbers.mlir --output-dir none/none
says err 'none/none'
ends 2 run numbers.mlir --device gpu
says err '--device gpu'
ends 2 run numbers.mlir --nothing
says err 'no option --nothing'
ends 2 run numbers.mlir --wrt 0
says err 'no option --wrt'
ends 2 run numbers.mlir --input
says err '--input takes'
ends 2 run numbers.mlir --tf32=1
says err '--tf32 takes no value'
ends 2 run
ends 2 run numbers.mlir mixed.mlir

JOT_DUMP=run ends 0 run mixed.mlir --input in/out0.npy --input in/out1.npy --input in/out0.npy
says err '---- run: k'

# ---- grad

inputs='--input in/out0.npy --input in/out1.npy --input twice/out0.npy'
# shellcheck disable=SC2086 # words
{
    ends 0 grad mixed.mlir $inputs
    says out 'grad0: f32[2,3]'
    says out '[[ 2.  4.  6.]'
    ends 0 grad mixed.mlir $inputs --wrt 2,0 --output-dir gradients
    ends 0 run mixed.mlir --function twice --input gradients/grad0.npy
    says out '[[ 2.  4.  6.]'
    ends 0 run mixed.mlir --function twice --input gradients/grad1.npy
    says out '[[ 4.  8. 12.]'
    ends 0 grad mixed.mlir $inputs --output 2
    says out '[[1. 1. 1.]'
    ends 2 grad mixed.mlir $inputs --wrt 1
    says err '--wrt 1: argument 1 is i32[3]'
    ends 2 grad mixed.mlir $inputs --wrt 3
    says err '--wrt 3: @main takes 3'
    ends 2 grad mixed.mlir $inputs --wrt 0,
    says err '--wrt 0,'
    ends 2 grad mixed.mlir $inputs --wrt 0,0
    says err 'twice'
    ends 2 grad mixed.mlir $inputs --output 1
    says err '--output 1: result 1 is i32[3]'
    ends 2 grad mixed.mlir $inputs --output 9
    says err '--output 9: @main gives 3'
}

# ---- convert, print, time

ends 0 convert mixed.mlir again.mlir
ends 0 convert again.mlir third.mlir
cmp -s again.mlir third.mlir || wrong 'what is written is written otherwise again'
ends 0 run again.mlir --input in/out0.npy --input in/out1.npy --input in/out0.npy
cmp -s out first || wrong 'what is written gives other results'
ends 0 convert mixed.mlir again.mlirbc
ends 0 run again.mlirbc --input in/out0.npy --input in/out1.npy --input in/out0.npy
cmp -s out first || wrong 'what is written as bytecode gives other results'
ends 0 convert again.mlirbc third.mlir
cmp -s again.mlir third.mlir || wrong 'bytecode gives another text'
ends 1 convert mixed.mlir again.txt
says err 'again.txt'
ends 2 convert mixed.mlir
for stage in trace simplify schedule memory llvm code; do
    ends 0 print mixed.mlir --stage $stage
    [ -s out ] || wrong "stage $stage is empty"
done
ends 0 print mixed.mlir
says out 'function @'
ends 2 print mixed.mlir --stage nothing
says err '--stage nothing'
ends 0 time numbers.mlir
says out 'jot    compile '
ends 0 time mixed.mlir --input in/out0.npy
ends 2 time mixed.mlir --against python
says err JOT_PYTHON
ends 2 time mixed.mlir --against nothing
printf '#!/bin/sh\necho "python $1 $3 $5 $6"; test -s "$4"\n' >python
chmod +x python
export JOT_PYTHON="$made/python"
ends 0 time mixed.mlir --against python
says out 'jot    compile '
says out 'python -c mixed.mlir cpu full'
# Calls of LAPACK, which JAX annotates with another dialect and readies when it lowers one.
if [ -n "$python" ]; then
    JOT_PYTHON=$python
    cp "$root/tests/interop/programs/factor.jaxexport" .
    ends 0 convert factor.jaxexport factor.mlir
    for program in factor.jaxexport factor.mlir; do
        ends 0 time $program --against python
        says out 'jax    compile '
    done
fi
JOT_PYTHON=$made/none
ends 1 time mixed.mlir --against python
says err 'none'

# ---- check

mkdir tests
cat >tests/add_float32_2.mlir <<'END'
func.func public @main() {
  %0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %1 = stablehlo.add %0, %0 : tensor<2xf32>
  check.expect_eq_const %1, dense<[2.0, 4.0]> : tensor<2xf32>
  return
}
END
sed 's/f32/f64/g' tests/add_float32_2.mlir >tests/add_float64_2.mlir
sed 's/4\.0/5.0/' tests/add_float32_2.mlir >failing.mlir
echo not a test >tests/readme
ends 0 check tests
says out 'forms: 1 passed, 0 failed, 0 unsupported'
[ "$(tail -n 1 out)" = '2 passed, 0 failed, 0 unsupported' ] || wrong 'the last line is another'
ends 0 check mixed.mlir tests/add_float32_2.mlir
says out 'unsupported: mixed.mlir: '
[ "$(tail -n 1 out)" = '1 passed, 0 failed, 1 unsupported' ] || wrong 'the last line is another'
ends 1 check failing.mlir tests broken.mlir
says out 'failed: failing.mlir:4: '
says out 'failed: broken.mlir:1:'
[ "$(tail -n 1 out)" = '2 passed, 2 failed, 0 unsupported' ] || wrong 'the last line is another'
ends 2 check
# What fails may be what no operation made of others.
sed 's/%1 = stablehlo.add %0, %0/%1 = stablehlo.constant dense<[2.0, 5.0]>/; s/expect_eq_const/expect_almost_eq_const/' \
    tests/add_float32_2.mlir >constant.mlir
ends 1 check constant.mlir
says out 'failed: constant.mlir:4: expect_almost_eq_const: element 1 is 5.0, expected 4.0'
# Programs of one file, whose functions have any names.
{
    cat tests/add_float32_2.mlir
    printf '\n// -----\n// the second one\n\n'
    sed 's/@main/@second/; s/2\.0, 4\.0/2.0, 3.0/' tests/add_float32_2.mlir
} >parts.mlir
ends 1 check parts.mlir
says out 'failed: parts.mlir:14: expect_eq_const: element 1 is 4.0, expected 3.0'
[ "$(tail -n 1 out)" = '1 passed, 1 failed, 0 unsupported' ] || wrong 'the last line is another'

# ---- completion

if command -v bash >/dev/null; then
    bash -c '. "$1"; COMP_WORDS=(jot pr) COMP_CWORD=1; _jot; echo "${COMPREPLY[@]}"
        COMP_WORDS=(jot grad --w) COMP_CWORD=2; _jot; echo "${COMPREPLY[@]}"
        COMP_WORDS=(jot print --stage s) COMP_CWORD=3; _jot; echo "${COMPREPLY[@]}"' \
        bash "$root/tools/completion/jot.bash" >out
    says out print
    says out --wrt
    says out 'simplify schedule'
fi
