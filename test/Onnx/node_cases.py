#!/usr/bin/env python3
"""Write cases of single ONNX ops: what an op gives for some operands.

    node_cases.py --own DIR       the cases of unit/Onnx/cases: of every op that the import lowers, by the values that
                                  onnx's reference implementation gives, or onnxruntime of ops of com.microsoft
    node_cases.py --package DIR   the cases that the onnx package has of all its ops

A case is a model. Its operands stand beside it as initializers given/NAME, what it gives as expected/NAME.
Needs the PyPI packages onnx and onnxruntime (made with onnx 1.23.2, onnxruntime 1.32.0).
"""
import argparse
import pathlib
import warnings

import numpy as np
import onnx
from onnx import helper, numpy_helper

from own_cases import own_cases


def tensor(name, array):
    if isinstance(array, onnx.TensorProto):
        copy = onnx.TensorProto()
        copy.CopyFrom(array)
        copy.name = name
        return copy
    return numpy_helper.from_array(np.asarray(array, order="C"), name)


def write(path, model, given, expected):
    """`model` with its operands and results, as one file."""
    case = onnx.ModelProto()
    case.CopyFrom(model)
    case.ClearField("doc_string")
    for ports, arrays, kind in ((model.graph.input, given, "given"), (model.graph.output, expected, "expected")):
        for port, array in zip(ports, arrays):
            case.graph.initializer.append(tensor(f"{kind}/{port.name}", array))
    path.write_bytes(case.SerializeToString(deterministic=True))


def model_of(nodes, given, results, opset):
    """A model of nodes from operands by name to results by name."""
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in given.items()
    ]
    outputs = [helper.make_tensor_value_info(name, onnx.TensorProto.UNDEFINED, None) for name in results]
    graph = helper.make_graph(nodes, "case", inputs, outputs)
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10, producer_name="")


def computed(model, given):
    """The results by onnx's reference implementation, or onnxruntime where an op is not onnx's."""
    if all(node.domain == "" for node in model.graph.node):
        from onnx.reference import ReferenceEvaluator

        return ReferenceEvaluator(model).run(None, given)
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    for port in model.graph.output:  # onnxruntime wants a type
        port.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, given)


def write_own(folder):
    for name, nodes, given, results, opset in own_cases():
        model = model_of(nodes, given, results, opset)
        expected = computed(model, given)
        for port, array in zip(model.graph.output, expected):
            port.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(np.asarray(array).dtype)
        write(folder / f"{name}.onnx", model, given.values(), [np.asarray(array) for array in expected])


def write_package(folder):
    from onnx.backend.test.case.node import collect_testcases

    for case in collect_testcases(None):
        given, expected = case.data_sets[0]
        try:
            write(folder / f"{case.name}.onnx", case.model, given, expected)
        except (NotImplementedError, TypeError, ValueError):
            pass  # sequences, and values that are left out, which no initializer holds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = parser.add_mutually_exclusive_group(required=True)
    kinds.add_argument("--own", type=pathlib.Path, metavar="DIR")
    kinds.add_argument("--package", type=pathlib.Path, metavar="DIR")
    arguments = parser.parse_args()
    folder = arguments.own or arguments.package
    folder.mkdir(parents=True, exist_ok=True)
    warnings.filterwarnings("ignore")
    (write_own if arguments.own else write_package)(folder)


if __name__ == "__main__":
    main()
