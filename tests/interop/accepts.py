#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether JAX takes a program, as text or as portable bytecode, and takes it for the same as another one.

    accepts.py WRITTEN [ORIGINAL]

Prints the version of jaxlib.  Needs jax."""
import re
import sys

import jaxlib
from jax._src.interpreters import mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo


def parse(path):
    with open(path, 'rb') as file:
        program = file.read()
    if program.startswith(b'ML\xefR'):
        module = stablehlo.deserialize_portable_artifact(ir.Context.current, program)
        module.operation.verify()
    else:
        module = ir.Module.parse(program.decode())
    text = module.operation.get_asm(print_generic_op_form=True)
    # What a function has when nothing is written is written by some.
    text = re.sub(r'(arg|res)_attrs = \[(\{\}(, )?)*\], ', '', text)
    return text.replace(', sym_visibility = "public"', '')


with mlir.make_ir_context():
    written = [parse(path) for path in sys.argv[1:]]
print('jaxlib', jaxlib.__version__)
for one, other in zip(written[0].split('\n'), written[-1].split('\n')):
    if one != other:
        sys.exit(f'{one}\n{other}')
