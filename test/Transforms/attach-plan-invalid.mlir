// RUN: not k2c-opt %s --attach-plan="expanded-from=-2" 2>&1 | FileCheck %s --check-prefix=EXPANDED
// RUN: not k2c-opt %s --attach-plan="tile-choice=-1" 2>&1 | FileCheck %s --check-prefix=TILE
// RUN: not k2c-opt %s --attach-plan="cores=0" 2>&1 | FileCheck %s --check-prefix=CORES
// RUN: not k2c-opt %s --attach-plan="numa=4,0" 2>&1 | FileCheck %s --check-prefix=NUMA
// RUN: not k2c-opt %s --attach-plan="layout=ep=2,dp=2" 2>&1 | FileCheck %s --check-prefix=RANKS
// RUN: not k2c-opt %s --attach-plan="layout=ep" 2>&1 | FileCheck %s --check-prefix=LAYOUT
// RUN: not k2c-opt %s --attach-plan="gpu=sm_90a ctas=0" 2>&1 | FileCheck %s --check-prefix=CTAS
// RUN: not k2c-opt %s --attach-plan="weights=columns" 2>&1 | FileCheck %s --check-prefix=WEIGHTS

// What an attribute refuses is refused at the module, in the pass's name.
// EXPANDED: error: attach-plan: '#dist.plan' [C1] expects expanded_from >= -1, got -2
// TILE: error: attach-plan: '#dist.plan' [C2] expects a tile_choice that is not negative, got -1
// CORES: error: attach-plan: '#kern.cpu' [C1] expects positive cores and caches of 'x86-64-v3', got 0
// CTAS: error: attach-plan: '#kern.gpu' [C1] expects positive sizes of 'sm_90a', got 0
// NUMA: error: attach-plan: '#dist.topology' [C2] expects cores on every NUMA node of 'host', got 0
// RANKS: error: attach-plan: layout 'ep=2,dp=2' is of 2 ranks, the topology has 1
// LAYOUT: error: attach-plan: --layout: 'ep' is not KEY=VALUE; write ep=8,dp=8
// WEIGHTS: error: attach-plan: weights are panels or rows, got 'columns'
module {}
