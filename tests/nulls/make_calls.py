# SPDX-License-Identifier: Apache-2.0
"""Writes one C function for each pointer that a function of jot's headers takes, which passes NULL for it, and for
each number, list and value that it takes some that pass what no program means.

    make_calls.py OUT COMPILER INCLUDE

The prototypes are read from the preprocessed headers, so that a new function is tested before anybody lists it.
"""
import re
import subprocess
import sys

# Pointers that may be NULL, by function and parameter: documented, and need not be reported.
MAY_BE_NULL = [
    (r'.*', r'ctx|options|where|device|stream|loop|allocator|release'),
    # Lists that end with JOT_END: NULL is the empty one.
    (r'.*', r'axes|dims|counts|sizes|strides|args|in_axes|out_axes|x_axes|y_axes|filter'),
    (r'jot_array_(?!copy_out|read_at|format|to$|to_dlpack|from|load|save|shard).*|jot_arrays_.*', r'a|data'),
    (r'jot_(array|devices|mesh)_format', r'buffer'), (r'jot_mesh_(size|device|rank|axis_\w+|format)', r'mesh|name'),
    (r'jot_array_(shard|from_shards)', r'spec'),
    (r'jot_array_(format|print)', r'a'),
    (r'jot_executable_(retain|release|versions|use)', r'f'),
    (r'jot_scope_close', r's'), (r'jot_program_(release|functions|name)', r'p'),
    (r'jot_archive_(release|count|name|metadata.*)', r'a|name'), (r'jot_archive_set_metadata', r'text'),
    (r'jot_archive_(add|get)_tree', r'name'), (r'jot_loader_(release|batches|position)', r'l'),
    (r'jot_program_check', r'out_wide'),
    (r'jot_function_.*', r'arg_leaves|result_leaves|name'),
    (r'jot_eval(_tree)?', r'out'), (r'jot_call', r'in'),
    (r'jot_print_value', r'name'), (r'jot_value_name', r'members|buffer'),
    (r'jot_assert_value|jot_callback_fail', r'message'),
    (r'jot_scan_at', r'rows|out'), (r'jot_(map|switch)_at|jot_apply_at', r'in'),
    (r'jot_error', r'op|text'), (r'jot_top_k', r'out_indices'), (r'jot_unique_all', r'out_\w+'),
    (r'jot_custom_root.*', r'tangent_solve'),
    (r'jot_mask_make', r'is'), (r'jot_chain_list', r'parts'),
    (r'jot_\w+_begin', r'carry|in|out|results'), (r'jot_pmap_of', r'mesh'),
    (r'jot_(block_next|block_leave|for_next|while_test|while_stepped|if_first|switch_case)', r'b|index'),
]

# What stands for the other parameters, by type and name.
BY_NAME = {
    'n': '2', 'n_in': '1', 'n_out': '1', 'n_carry': '1', 'n_rows': '1', 'n_src': '2', 'n_args': '1',
    'n_results': '1', 'n_state': '5', 'n_branches': '2', 'n_cases': '2', 'num_keys': '1', 'count': '4', 'size': '4', 'order': '1',
    'modes': 'JOT_FORWARD', 'k': '1', 'trips': 'jot_from_int(3)', 'first': 'jot_from_int(0)',
    'end': 'jot_from_int(3)', 'key': 'key', 'subscripts': '"i,i->i"', 'expression': '"x + y"', 'names': '"x, y"',
    'stage': '"trace"', 'path': '"/dev/null"', 'format': '"{}"', 'condition': 'holds',
    'index': 'jot_from_int(0)', 'holds': 'jot_from_bool(true)', 'points': 'matrix', 'test': 'jot_from_bool(false)',
}
BY_TYPE = {
    'jot_value': 'x', 'jot_function': 'f', 'jot_dtype': 'JOT_F32', 'double': '0.5', '_Bool': 'false', 'int': '0',
    'unsigned': '0', 'int64_t': '0', 'size_t': '1', 'jot_status': 'JOT_ERR_ARGUMENT',
    'const jot_value *': 'values', 'jot_value *': 'outs', 'jot_array *': 'array', 'const jot_array *': 'array',
    'jot_array **': 'arrays', 'jot_array *const *': 'held', 'const char *': '"text"', 'char *': 'text',
    'const int *': '(const int[]){0, JOT_END}', 'const int64_t *': '(const int64_t[]){2, JOT_END}',
    'void *': 'NULL', 'const void *': 'text', 'const uint16_t *': 'leaves',
    'jot_executable *': 'executable', 'const jot_executable *': 'executable', 'jot_device *': 'NULL',
    'const jot_program *': 'program', 'jot_mesh *': 'mesh', 'const jot_mesh *': 'mesh',
    'const char *const *': '(const char *const[]){"", ""}',
    'const jot_mesh_axis *': '&mesh_axis', 'jot_device *const *': 'devices',
    'jot_program_format': 'JOT_PROGRAM_TEXT', 'const jot_program_type *': '&program_type',
    'size_t *': '&taken',
    'const jot_function *': '(const jot_function[]){f, f}', 'const jot_piece *': 'pieces',
    'const jot_array_piece *': '(const jot_array_piece[]){{&array, 1}, {NULL, 0}}',
    'jot_body *': 'body', 'void (*)(void)': '(void (*)(void))plain', 'jot_for_step *': 'for_step',
    'jot_scan_step *': 'scan_step', 'jot_while_condition *': 'condition', 'jot_while_step *': 'while_step',
    'jot_archive *': 'archive', 'const jot_archive *': 'archive', 'jot_scope *': 'scope', 'const jot_callback_spec *': '&callback', 'const jot_raw_kernel_spec *': '&kernel',
    'const struct jot_index_dims *': '&index_dims',
    'jot_schedule': 'jot_constant_schedule(0.5)', 'jot_optimizer': 'jot_adam_with(jot_constant_schedule(0.5), NULL)',
    'jot_mask': 'jot_mask_make(1, NULL)', 'const jot_optimizer *': '(const jot_optimizer[]){jot_ema(0.5, true)}',
    'const _Bool *': '(const bool[]){true}',
    'jot_dense': '(jot_dense){x, x}', 'jot_dense *': 'layers', 'const jot_dense *': 'layers',
    'jot_value (*)(jot_value)': 'jot_tanh', 'jot_embedding': '(jot_embedding){x}', 'jot_convolution': '(jot_convolution){x, x}',
    'jot_normalization': '(jot_normalization){x, x}', 'jot_batch_stats': '(jot_batch_stats){x, x}',
    'jot_batch_stats *': '&(jot_batch_stats){x, x}', 'jot_attention': '(jot_attention){x, x, x, x, x, x, x, x}',
    'jot_kv_cache *': '&(jot_kv_cache){x, x, x}', 'jot_gru': '(jot_gru){x, x, x, x}', 'jot_lstm': '(jot_lstm){x, x, x}',
    'jot_lstm_state': '(jot_lstm_state){x, x}', 'const jot_members *': 'members',
    'jot_loader *': 'loader', 'const jot_loader *': 'loader',
    'jot_svd_factors': 'jot_svd(x)', 'jot_lu_factors': 'jot_lu_factor_at(x, NULL)',
}

# What no program means, by type: the expression, and the text of the number, which messages name.
WRONG = {
    'int': [('-1', '-1'), ('INT_MIN', '-2147483648'), ('INT_MAX', '2147483647'), ('300', '300')],
    'int64_t': [('-1', '-1'), ('INT64_MIN', '-9223372036854775808'), ('INT64_MAX', '9223372036854775807'),
                ('INT64_C(1) << 50', '1125899906842624')],
    'size_t': [('SIZE_MAX', '18446744073709551615'), ('SIZE_MAX / 8 + 2', '2305843009213693953')],
    'double': [('NAN', 'nan'), ('-INFINITY', '-inf'), ('1e308', '1e+308')],
    'const int *': [('((const int[]){300, JOT_END})', '300'), ('((const int[]){INT_MAX, JOT_END})', '2147483647'),
                    ('((const int[]){0, 0, JOT_END})', None), ('((const int[]){JOT_KEEPDIMS, JOT_END})', None)],
    'const int64_t *': [('((const int64_t[]){INT64_MAX, JOT_END})', '9223372036854775807'),
                        ('((const int64_t[]){INT64_C(1) << 50, INT64_C(1) << 50, JOT_END})', '1125899906842624'),
                        ('((const int64_t[]){-2, 2, JOT_END})', '-2'), ('((const int64_t[]){0, JOT_END})', None)],
    'jot_value': [(v, None) for v in ('((jot_value){0, 0})', '((jot_value){7, 7})', 'no_elements', 'complex_numbers',
                                      'truths', 'matrix')],
    'jot_function': [('((jot_function){.callee = {.name = NULL}})', None)],
    'enum': [('99', '99'), ('-1', '-1'), ('INT_MIN', '-2147483648')],
}
# Where such a number has a meaning, or cannot be known to be wrong, or another one is named that follows from it.
MEANT = [
    (r'jot_(array|value)_dim|jot_cuda|jot_host_device|jot_mesh_\w+|jot_status_\w+|jot_callback_fail|jot_dtype_\w+|jot_(array|devices)_format', r'.*'),
    (r'jot_function_trees|jot_switch_\w+', r'n_\w+'), (r'jot_trace_memory', r'size'), (r'jot_error', r'status'),
    (r'jot_check_grads_list', r'modes'), (r'jot_rfftfreq', r'n'), (r'jot_vander', r'n'),
    (r'jot_select_and_\w+', r'kind'), (r'jot_conv_dims', r'strides'), (r'jot_diagonal|jot_rot90', r'axis2'),
    (r'jot_conv_general_dilated_patches\w*', r'filter'), (r'jot_image_\w+', r'dims|axes'),
    (r'jot_gather|jot_dynamic_slice_dims', r'sizes'), (r'jot_(broadcast_to|ravel_multi_index)_dims', r'dims'),
]
# Where results go.
TAKEN = {'jot_value': 'outs[0]', 'jot_status': 'status', 'jot_array *': 'made', 'jot_executable *': 'made_executable',
         'jot_function': 'made_function', 'jot_program *': 'made_program', 'jot_archive *': 'made_archive', 'jot_scope *': 'other_scope', 'jot_block *': 'made_block',
         'jot_mesh *': 'made_mesh', 'jot_loader *': 'made_loader'}


def parameters(text):
    for p in re.findall(r'(?:[^,()]|\((?:[^()]|\([^()]*\))*\))+', text):
        p = p.strip()
        pointer = re.match(r'(.*)\(\*(\w+)\)(\(.*\))$', p)
        if pointer:
            yield (pointer[1] + '(*)' + pointer[3]).replace('  ', ' '), pointer[2]
        elif p != 'void':
            m = re.match(r'(.*?)(\w+)$', p)
            yield m[1].strip(), m[2]


def prototypes(compiler, include):
    source = '#define JOT_PLAIN\n#include "jot/jot.h"\n'
    text = subprocess.run(compiler.split() + ['-E', '-P', '-I' + include, '-x', 'c', '-'], input=source, text=True,
                          check=True, capture_output=True).stdout
    text = re.sub(r'__attribute__\(\((?:[^()]|\([^()]*\))*\)\)', '', text)
    text = re.sub(r'\s+', ' ', text)
    for m in re.finditer(r'(?<=[;}])\s*((?:const )?(?:struct |enum )?\w+ \**)\s*(jot_\w+)'
                         r'\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)\s*(?=;)', text):
        result = m[1].strip()
        if not result.startswith(('return', 'typedef', 'static')):
            yield result, m[2], list(parameters(m[3]))


def stand_in(function, kind, name):
    if name == 'where':
        return '"nulls.c:1: %s"' % function
    of_values = {'trips', 'first', 'end', 'key', 'condition', 'index', 'holds', 'points', 'test'}
    if '*' not in kind and name in BY_NAME and (kind == 'jot_value') == (name in of_values):
        return BY_NAME[name]
    if kind in ('const char *',) and name in BY_NAME:
        return BY_NAME[name]
    if kind in BY_TYPE:
        return BY_TYPE[kind]
    if '*' in kind:
        return 'NULL'
    return '(%s)0' % kind


def write_wrong(f, functions):
    cases, ranges = [], []
    for result, function, given in functions:
        first = len(cases)

        def write(parameter, number, arguments):
            call = '%s(%s)' % (function, ', '.join(arguments))
            take = (TAKEN[result] + ' = %s;' if result in TAKEN else '(void)%s;') % call
            f.write('static void wrong_%d(void) { %s }\n' % (len(cases), take))
            cases.append('    {wrong_%d, "%s", "%s", "%s", 0, %s, "%s"},\n' % (
                len(cases), result, function, parameter, '"%s"' % number if number else 'NULL',
                call.replace('"', "'")))

        right = [stand_in(function, k, n) for k, n in given]
        write('', None, right)
        for at, (kind, name) in enumerate(given):
            values = WRONG.get(kind, [])
            if '*' not in kind and right[at] == '(%s)0' % kind or kind == 'jot_dtype':
                values = [('(%s)%s' % (kind, v), n) for v, n in WRONG['enum']]
            meant = any(re.fullmatch(a, function) and re.fullmatch(b, name) for a, b in MEANT)
            for value, number in values:
                if name not in ('n_branches', 'n_cases', 'n_args', 'n_results') or value != '300':
                    write(name, None if meant else number, right[:at] + [value] + right[at + 1:])
        ranges.append('    {%d, %d},\n' % (first, len(cases)))
    f.write('static const struct call wrong_calls[] = {\n' + ''.join(cases) + '};\n')
    f.write('static const int wrong_ranges[][2] = {\n' + ''.join(ranges) + '};\n')


def main():
    out, compiler, include = sys.argv[1:]
    cases = []
    functions = list(prototypes(compiler, include))
    with open(out, 'w') as f:
        for result, function, given in functions:
            for at, (kind, name) in enumerate(given):
                if '*' not in kind and kind != 'jot_body':
                    continue
                may = any(re.fullmatch(a, function) and re.fullmatch(b, name) for a, b in MAY_BE_NULL)
                arguments = ['NULL' if i == at else stand_in(function, k, n) for i, (k, n) in enumerate(given)]
                call = '%s(%s)' % (function, ', '.join(arguments))
                take = (TAKEN[result] + ' = %s;' if result in TAKEN else '(void)%s;') % call
                f.write('static void call_%d(void) { %s }\n' % (len(cases), take))
                cases.append('    {call_%d, "%s", "%s", "%s", %d, NULL, NULL},\n' % (
                    len(cases), result, function, name, may))
        f.write('static const struct call calls[] = {\n' + ''.join(cases) + '};\n')
        write_wrong(f, functions)
    if len(cases) < 200:
        sys.exit('%d pointers are fewer than there are' % len(cases))


if __name__ == '__main__':
    main()
