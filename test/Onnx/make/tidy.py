"""What is taken out of an exported file before it is kept: nothing that an importer reads.

PyTorch notes on every node which line of which file it came from, which is a third of a small model and names folders
of the machine; and it may leave initializers that no node reads.
"""
import onnx
from onnx import helper


def graphs_of(graph):
    """`graph` and every graph in attributes of its nodes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from graphs_of(attribute.g)


def tidy(path):
    """Rewrites a model without notes; weights in a file beside it stay there."""
    model = onnx.load(path, load_external_data=False)
    for holder in (model, *graphs_of(model.graph), *model.functions):
        del holder.metadata_props[:]
        holder.doc_string = ""
        for part in (*holder.node,) if hasattr(holder, "node") else ():
            del part.metadata_props[:]
            part.doc_string = ""
    for graph in graphs_of(model.graph):
        for part in (*graph.initializer, *graph.value_info, *graph.input, *graph.output):
            del part.metadata_props[:]
            part.doc_string = ""
    path.write_bytes(model.SerializeToString())


def opsets(model):
    return {o.domain: o.version for o in model.opset_import}


def describe(model):
    """What golden.json says of the file."""
    return {"producer": f"{model.producer_name} {model.producer_version}", "opset": opsets(model).get("", 0),
            "nodes": len(model.graph.node),
            "custom": sorted({n.op_type for n in model.graph.node if n.domain not in ("", "ai.onnx")}),
            "ir_version": model.ir_version, "dtype": helper.tensor_dtype_to_np_dtype(
                model.graph.output[0].type.tensor_type.elem_type).name}
