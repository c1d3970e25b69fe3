// A matrix of 64 x 96 is transposed, 32 x 32 elements at a time, over shared memory whose lines are one longer.
extern "C" __global__ void transpose(const float *from, float *to, int rows, int columns) {
  __shared__ float tile[32][33];
  const int row = blockIdx.y * 32, column = blockIdx.x * 32;
  for (int i = threadIdx.y; i < 32; i += 8)
    tile[i][threadIdx.x] = from[(row + i) * columns + column + threadIdx.x];
  __syncthreads();
  for (int i = threadIdx.y; i < 32; i += 8)
    to[(column + i) * rows + row + threadIdx.x] = tile[threadIdx.x][i];
}
