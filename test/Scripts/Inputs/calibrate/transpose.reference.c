// Reads from.bin, writes to.expected.
#include <stdio.h>

int main(void) {
  static float from[64][96], to[96][64];
  FILE *file = fopen("from.bin", "rb");
  if (!file || fread(from, sizeof from, 1, file) != 1)
    return 1;
  for (int row = 0; row < 64; ++row)
    for (int column = 0; column < 96; ++column)
      to[column][row] = from[row][column];
  file = fopen("to.expected", "wb");
  return !file || fwrite(to, sizeof to, 1, file) != 1 || fclose(file) != 0;
}
