"""python3 torch_rate.py BYTES ORDINAL: bytes/s at which torch multiplies a vector by one f32 matrix of about so many
bytes on that device, in a graph, and the seconds of one product."""
import sys

import torch

WIDTH, REPEATS = 4096, 50

torch.cuda.set_device(int(sys.argv[2]))
rows = max(1, int(sys.argv[1]) // (4 * WIDTH))
matrix = torch.randn(rows, WIDTH, device="cuda")
vector = torch.randn(WIDTH, device="cuda")
out = torch.empty(rows, device="cuda")
torch.mv(matrix, vector, out=out)  # loads what it needs before the capture
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    for _ in range(REPEATS):
        torch.mv(matrix, vector, out=out)
graph.replay()
begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
begin.record()
graph.replay()
end.record()
torch.cuda.synchronize()
seconds = begin.elapsed_time(end) * 1e-3 / REPEATS
print(matrix.numel() * 4 / seconds, seconds)
