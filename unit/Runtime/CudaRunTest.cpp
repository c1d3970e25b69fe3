#include "fake/FakeCuda.h"
#include <gtest/gtest.h>
