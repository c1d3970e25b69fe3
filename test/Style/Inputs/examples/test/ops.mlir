// RUN: k2c-opt %s
#t = #nn.tree<8>
// nn.comment
%a = nn.fine %x : !x -> tensor<4x4xf32> // read once
%b = nn.fine %a : !x
    -> !x
