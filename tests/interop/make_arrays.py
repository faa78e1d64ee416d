# SPDX-License-Identifier: Apache-2.0
"""Writes the files of arrays/, with numpy, ml_dtypes and safetensors.

    make_arrays.py DIRECTORY

A name is TYPE_SHAPE_ORDER_BYTES.npy; element k of an array, in row-major order, is k + 1, of a complex one
k + 1 - k i, of bool and of e5m2 k modulo 2 and 8.
"""
import json
import os
import sys
import zipfile

import ml_dtypes
import numpy as np
import safetensors

TYPES = {
    "bool": "?", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8",
    "f16": "f2", "f32": "f4", "f64": "f8", "c64": "c8", "c128": "c16", "bf16": ml_dtypes.bfloat16,
    "e5m2": ml_dtypes.float8_e5m2,
}


def array(name, shape):
    k = np.arange(int(np.prod(shape, dtype=int)))
    if name == "bool":
        a = k % 2
    elif name == "e5m2":
        a = k % 8
    elif name[0] == "c":
        a = k + 1 - 1j * k
    else:
        a = k + 1
    return a.astype(TYPES[name]).reshape(shape)


class Pipe:
    """A file that cannot seek: zipfile writes data descriptors."""

    def __init__(self, file):
        self.file = file

    def write(self, data):
        return self.file.write(data)

    def flush(self):
        pass


def main():
    folder = sys.argv[1]

    def save(name, shape, order="C", swapped=False, version=None):
        a = np.asarray(array(name, shape), order=order)
        if swapped:
            a = a.astype(a.dtype.newbyteorder(">"), order="K")
        text = "x".join(map(str, shape)) or "scalar"
        file = "%s_%s_%s_%s%s.npy" % (name, text, order, "be" if swapped else "le",
                                      "_v%d" % version[0] if version else "")
        with open(os.path.join(folder, file), "wb") as f:
            np.lib.format.write_array(f, a, version=version)

    for name in TYPES:
        save(name, (2, 3, 4))
    for name in "i16", "u32", "f64", "c64", "c128":
        save(name, (2, 3, 4), swapped=True)
        save(name, (2, 3, 4), "F", swapped=True)
    for name in "bool", "e5m2", "bf16", "f32":
        save(name, (2, 3, 4), "F")
    save("f32", (40, 70), "F")
    save("f64", (5,), "C")
    for shape in (), (1,), (0,), (0, 5), (2, 0, 3), (1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 3):
        save("f32", shape)
    save("i32", (2, 3), version=(2, 0))
    save("i32", (2, 3), version=(3, 0))

    members = {"x": array("f32", (2, 3)), "käse/y": array("i64", (3,)), "z": array("bool", (0, 2)),
               "w": array("f64", (40, 5))}
    np.savez(os.path.join(folder, "stored.npz"), **members)
    np.savez_compressed(os.path.join(folder, "deflated.npz"), **members)

    np.savez(os.path.join(folder, "named.npz"), n=array("i32", (3,)), y=array("f32", (2, 3)), out0=array("f32", ()),
             x=array("f32", (2, 3)))

    def archive(name, method, names, wide=False, comment=b""):
        with open(os.path.join(folder, name), "wb") as f, zipfile.ZipFile(Pipe(f), "w", method) as z:
            z.comment = comment
            if comment:
                z.writestr("käse/", b"")
            for ending, (key, value) in zip(names, members.items()):
                with z.open(key + ending, "w", force_zip64=wide) as g:
                    np.save(g, value)

    archive("descriptors.npz", zipfile.ZIP_DEFLATED, [".npy", "", ".npy", ""])
    archive("descriptors_wide.npz", zipfile.ZIP_STORED, [".npy"] * 4, wide=True)
    archive("commented.npz", zipfile.ZIP_STORED, [".npy"] * 4, comment=b"PK\5\6 is not the end")
    tensors(folder)


# The names of types: those that jot has, then others.
SAFETENSORS = {
    "bool": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16",
    "u32": "uint32", "u64": "uint64", "f16": "float16", "f32": "float32", "f64": "float64", "c64": "complex64",
    "bf16": "bfloat16",
}
OTHERS = {"e5m2": ("float8_e5m2", "e5m2"), "e4m3": ("float8_e4m3fn", "u8")}


def tensors(folder):
    """One tensor of each type, with metadata; the sizes of arrays; none; and two files with an index."""

    kept = []  # specifications hold addresses

    def entry(type, a):
        kept.append(a.copy())
        return safetensors.TensorSpec(dtype=type, shape=list(a.shape), data_ptr=kept[-1].ctypes.data, data_len=a.nbytes)

    def save(name, entries, metadata=None):
        with open(os.path.join(folder, name + ".safetensors"), "wb") as f:
            f.write(safetensors.serialize(entries, metadata=metadata))

    all_types = {name: entry(type, array(name, (2, 3))) for name, type in SAFETENSORS.items()}
    save("types", all_types, {"made by": "a \"script\"\\,\n\tkäse \x01"})
    save("others", {name: entry(type, array(of, (2, 3))) for name, (type, of) in OTHERS.items()})
    shapes = (), (1,), (0,), (2, 0, 3), (1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 3)
    save("shapes", {"x".join(map(str, s)) or "scalar": entry("float32", array("f32", s)) for s in shapes})
    save("none", {})
    named = {"n": ("int32", "i32", (3,)), "y": ("float32", "f32", (2, 3)), "x": ("float32", "f32", (2, 3))}
    save("named", {name: entry(type, array(of, shape)) for name, (type, of, shape) in named.items()})
    parts = {"model-1.safetensors": "wb", "model-2.safetensors": "xy"}
    for file, names in parts.items():
        save(file[: -len(".safetensors")], {n: entry("float32", array("f32", (2, 3))) for n in names}, {"format": "pt"})
    index = {"metadata": {"total_size": 96}, "weight_map": {n: file for file, names in parts.items() for n in names}}
    with open(os.path.join(folder, "model.safetensors.index.json"), "w", encoding="utf-8") as f:
        json.dump(index, f, indent=2)


if __name__ == "__main__":
    main()
