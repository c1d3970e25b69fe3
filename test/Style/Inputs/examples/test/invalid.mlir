// RUN: k2c-opt %s --verify-diagnostics
%a = nn.refused %x : !x
