"""Other places and spellings of the same data, and another version of the operators."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, version_converter

VERSIONS = (14, 17, 18, 19, 20, 21, 22, 23, 24)
OLDEST_IR = {14: 7, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11, 24: 12}
SMALLEST = 64  # bytes of a tensor that moves outside


def opset(model, rng):
    """The model at another version of the standard's operators, where onnx's converter goes there; None when not."""
    here = next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
    for version in rng.sample([v for v in VERSIONS if v != here], len(VERSIONS) - (here in VERSIONS)):
        try:
            converted = version_converter.convert_version(model, version)
            onnx.checker.check_model(converted, full_check=True)
        except Exception:  # the converter knows no way, or another domain's operators
            continue
        converted.ir_version = max(model.ir_version, OLDEST_IR[version])
        return converted
    return None


def typed(model, rng):
    """Some initializers keep their numbers in the field of their type instead of in bytes."""
    plain = (TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL)
    for tensor in model.graph.initializer:
        if tensor.data_type in plain and rng.random() < 0.4:
            values = numpy_helper.to_array(tensor)
            tensor.CopyFrom(helper.make_tensor(tensor.name, tensor.data_type, values.shape, values.flatten().tolist()))


def save(model, folder, rng, outside):
    """Writes folder/model.onnx, with the larger tensors in a file beside it, in any order and with gaps, or inside."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "weights.bin").unlink(missing_ok=True)
    if outside:
        order = [t for t in model.graph.initializer if t.HasField("raw_data") and len(t.raw_data) >= SMALLEST]
        rng.shuffle(order)
        data = bytearray()
        for tensor in order:
            data += bytes(rng.randrange(0, 3) * rng.choice((1, 4, 64)))
            entries = [("location", "weights.bin"), ("offset", len(data)), ("length", len(tensor.raw_data))]
            data += tensor.raw_data
            tensor.ClearField("raw_data")
            tensor.data_location = TensorProto.EXTERNAL
            rng.shuffle(entries)
            for key, value in entries:
                entry = tensor.external_data.add()
                entry.key, entry.value = key, str(value)
        (folder / "weights.bin").write_bytes(bytes(data))
    (folder / "model.onnx").write_bytes(model.SerializeToString())


def is_outside(path):
    """Whether a stored model keeps tensors in another file."""
    model = onnx.load(path, load_external_data=False)
    return any(t.data_location == TensorProto.EXTERNAL for t in model.graph.initializer)


def same(a, b):
    """Largest difference of two arrays, endless when one has a value that is no number."""
    difference = np.abs(np.asarray(a, np.float64) - np.asarray(b, np.float64)).max()
    return float("inf") if np.isnan(difference) else float(difference)
