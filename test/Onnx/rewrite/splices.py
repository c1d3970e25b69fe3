"""A changed model as what differs from the bytes of the original: small enough to keep many of them."""
import base64
from difflib import SequenceMatcher

import onnx
from onnx import TensorProto, numpy_helper


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data, begin, end):
    """[(number, where it begins, where its content begins, where it ends)] of a message's fields."""
    found = []
    while begin < end:
        tag, content = varint(data, begin)
        if tag & 7 == 0:
            stop = varint(data, content)[1]
        elif tag & 7 == 2:
            size, content = varint(data, content)
            stop = content + size
        else:
            stop = content + {1: 8, 5: 4}[tag & 7]
        found.append((tag >> 3, begin, content, stop))
        begin = stop
    return found


def pieces(data):
    """The bytes of a ModelProto in pieces: its fields, of the graph (field 7) its head and its fields."""
    out = []
    for number, begin, content, end in fields(data, 0, len(data)):
        if number != 7:
            out.append(data[begin:end])
            continue
        out.append(data[begin:content])
        out += [data[a:b] for _, a, _, b in fields(data, content, end)]
    return out


def splices(original, changed):
    """[[offset, bytes removed, bytes instead in base64]]"""
    a, b = pieces(original), pieces(changed)
    starts = [0]
    for piece in a:
        starts.append(starts[-1] + len(piece))
    return [[starts[i1], starts[i2] - starts[i1], base64.b64encode(b"".join(b[j1:j2])).decode()]
            for tag, i1, i2, j1, j2 in SequenceMatcher(None, a, b, autojunk=False).get_opcodes() if tag != "equal"]


def outside(path):
    """bytes of a tensor -> the tensor without them, of all that the model at `path` keeps in another file."""
    whole, stored = onnx.load(path), onnx.load(path, load_external_data=False)
    return {numpy_helper.to_array(full).tobytes(): thin
            for full, thin in zip(whole.graph.initializer, stored.graph.initializer)
            if thin.data_location == TensorProto.EXTERNAL}


def as_stored(candidate, path):
    """The bytes of a model that was made of the one at `path`, with what is in another file there again."""
    kept = outside(path)
    for tensor in candidate.graph.initializer:
        thin = kept.get(numpy_helper.to_array(tensor).tobytes())
        if thin is not None:
            name = tensor.name
            tensor.CopyFrom(thin)
            tensor.name = name
    return candidate.SerializeToString()
