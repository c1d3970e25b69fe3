// DEFINE: %{v4} = --attach-plan="cpu=x86-64-v4 features=avx2,fma,avx512f,avx512bw,avx512dq,avx512vl" --choose-tiles
// RUN: k2c-opt %s %{v4} | FileCheck %s
// RUN: k2c-opt %s --attach-plan --choose-tiles %{v4} | FileCheck %s
// RUN: k2c-opt %s %{v4} --remarks-filter=choose-tiles 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: k2c-opt %s --attach-plan --choose-tiles | FileCheck %s --check-prefix=GENERIC
// RUN: k2c-opt %s --attach-plan="tile-choice=1 cpu=x86-64-v4 features=avx2,fma,avx512f,avx512bw,avx512dq,avx512vl" --choose-tiles | FileCheck %s --check-prefix=SECOND

!x = tensor<?x2048xf32, #nn.rows<token>>
!a = tensor<?x1536xf32, #nn.rows<token>>

// A tile follows from the target alone, so choosing again for another target replaces it. 14 rows of 2 vectors fill 32
// registers but those of the weights and a broadcast.
// CHECK: kern.func @linear_a({{.*}}) -> tensor<?x1536xf32, #tok> tile<avx512, lanes = 16, mr = 14, nr = 2, {{.*}}> {
// GENERIC: kern.func @linear_a({{.*}} tile<generic, lanes = 8,
// SECOND: kern.func @linear_a({{.*}} tile<generic, lanes = 16, mr = 14, nr = 2,
// REMARK: linear_a{{.*}}14x2 of {{[0-9]+}} tiles{{.*}}cycles_per_thousand_multiply_adds
kern.func @linear_a(%x: !x, %w: tensor<1536x2048xf32>) -> !a {
  %a = nn.linear %x, %w : tensor<1536x2048xf32> order tree<4> : !x -> !a
  kern.yield %a : !a
}

// CHECK: kern.func @add({{.*}} tile<avx512, lanes = 16, mr = 1,
kern.func @add(%x: !x, %y: !x) -> !x {
  %s = nn.add %x, %y : !x
  kern.yield %s : !x
}
