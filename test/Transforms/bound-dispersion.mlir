// RUN: sed 's/PLAN/, route_limit = 2, locality_penalty = 0.25/' %s | k2c-opt --bound-dispersion | FileCheck %s --check-prefix=CHECK
// RUN: sed 's/PLAN/, route_limit = 3/' %s | k2c-opt --bound-dispersion | FileCheck %s --check-prefix=LIMIT
// RUN: sed 's/PLAN/, locality_penalty = 0.25/' %s | k2c-opt --bound-dispersion | FileCheck %s --check-prefix=PENALTY
// RUN: sed 's/PLAN//' %s | k2c-opt --bound-dispersion | FileCheck %s --check-prefix=FREE
// A second run changes nothing, and a plan without a bound takes it away again.
// RUN: sed 's/PLAN/, route_limit = 3/' %s | k2c-opt --bound-dispersion --bound-dispersion | FileCheck %s --check-prefix=LIMIT
// RUN: sed 's/PLAN/, route_limit = 3/' %s | k2c-opt --bound-dispersion | sed 's/, route_limit = 3//' | k2c-opt --bound-dispersion | FileCheck %s --check-prefix=FREE
// RUN: sed 's/PLAN/, route_limit = 2, locality_penalty = 0.25/' %s | k2c-opt --bound-dispersion --remarks-filter=bound-dispersion 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: sed 's/PLAN/, locality_penalty = 0.25/' %s | k2c-opt --bound-dispersion --remarks-filter=bound-dispersion 2>&1 >/dev/null | FileCheck %s --check-prefix=AWAY
// RUN: sed 's/PLAN//' %s | k2c-opt --bound-dispersion --remarks-filter=bound-dispersion 2>&1 >/dev/null | FileCheck %s --check-prefix=QUIET --allow-empty

!s = tensor<?x12xf32, #nn.rows<token>>
!e = tensor<?x2xi32, #nn.rows<token>>
!w = tensor<?x2xf32, #nn.rows<token>>

// REMARK: route-limit{{.*}}experts of a token are on at most 2 of 4 nodes, and those that its home node has not are chosen by 0.25 less{{.*}}most_nodes=2, nodes=4, penalty=
// AWAY: penalty{{.*}}experts of a token are on any of 4 nodes, and those that its home node has not are chosen by 0.25 less
// QUIET-NOT: bound-dispersion
module attributes {dist.plan = #dist.plan<layout = "ep=8,dp=8", expanded_from = -1PLAN>,
                   dist.topology = #dist.topology<"cpu4x2", ranks = 8 on 4 nodes>} {
  // CHECK-LABEL: func.func @route(
  func.func @route(%l: index, %s: !s, %b: !nn.batch) -> (!e, !w) {
    // CHECK: %[[E:.*]], %[[W:.*]] = moe.routing %{{.*}}, %{{.*}} layer %{{.*}} among 1 to 3 score sigmoid top 2 groups 1 of 1 bound<nodes = 4, slots = 4, max = 2, penalty = 0.25> scale 1.0
    // LIMIT: groups 1 of 1 bound<nodes = 4, slots = 4, max = 3> scale 1.0
    // PENALTY: groups 1 of 1 bound<nodes = 4, slots = 4, penalty = 0.25> scale 1.0
    // FREE: groups 1 of 1 scale 1.0
    %e, %w = moe.routing %s, %b layer %l among 1 to 3 score sigmoid top 2 groups 1 of 1 scale 1.0 : !s -> !e, !w
    // CHECK: moe.locate
    %p = moe.locate %e layer %l among 1 to 3 experts 12 slots 16 held 4 : !e -> !e
    return %p, %w : !e, !w
  }
}
