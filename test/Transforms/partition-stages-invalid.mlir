// RUN: k2c-opt %s --partition-stages --split-input-file --verify-diagnostics

// expected-error @below {{partition-stages: the plan's layout has pp=2, and its stages are 1; say both alike}}
module attributes {dist.plan = #dist.plan<layout = "pp=2", expanded_from = -1>} {}

// -----

// expected-error @below {{partition-stages: --layout: 'pp' is not KEY=VALUE; write ep=8,dp=8}}
module attributes {dist.plan = #dist.plan<layout = "pp", expanded_from = -1>} {}

// -----

// One value goes from stage to stage.
!x = tensor<?x64xf32, #nn.rows<token>>
module attributes {dist.plan = #dist.plan<layout = "pp=2", expanded_from = -1, stages = [0, 1, 2]>} {
  nn.layer @two(%l: index, %x: !x, %y: !x, %b: !nn.batch) -> (!x, !x) {
    nn.yield %x, %y : !x, !x
  }
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    %x = nn.embed @embed, %b : !x
    // expected-error @below {{'nn.layers' op carries 2 values and reads 0, and one goes from stage to stage; compile it for stages of one, pp=1}}
    %y:2 = nn.layers %x, %x, %b [@two[0 to 2]] : !x, !x
    return
  }
  nn.weights @embed "embed" : tensor<100x64xbf16>
}

// -----

// Rows enter in the function of the list.
!x = tensor<?x64xf32, #nn.rows<token>>
module attributes {dist.plan = #dist.plan<layout = "pp=2", expanded_from = -1, stages = [0, 1, 2]>} {
  nn.layer @one(%l: index, %x: !x, %b: !nn.batch) -> !x {
    nn.yield %x : !x
  }
  func.func @step(%b: !nn.batch, %x: !x) attributes {nn.entry = "serve"} {
    // expected-error @below {{'nn.layers' op takes rows that are not computed beside it, and stages begin where rows enter; embed them in its function}}
    %y = nn.layers %x, %b [@one[0 to 2]] : !x
    return
  }
}

// -----

// Behind the layers only output rows are those of one stage alone.
!x = tensor<?x64xf32, #nn.rows<token>>
module attributes {dist.plan = #dist.plan<layout = "pp=2", expanded_from = -1, stages = [0, 1, 2]>} {
  nn.weights @embed "embed" : tensor<100x64xbf16>
  nn.weights @norm "norm" : tensor<64xbf16>
  nn.layer @one(%l: index, %x: !x, %b: !nn.batch) -> !x {
    nn.yield %x : !x
  }
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    %x = nn.embed @embed, %b : !x
    %y = nn.layers %x, %b [@one[0 to 2]] : !x
    // expected-error @below {{'nn.rms_norm' op reads rows of the last stage, and earlier ones have rows there, too; let it read those of nn.output_rows}}
    %z = nn.rms_norm %y, @norm eps 1.0e-06 : !x
    return
  }
}

// -----

// The stages are those of this model.
!x = tensor<?x64xf32, #nn.rows<token>>
module attributes {dist.plan = #dist.plan<layout = "pp=2", expanded_from = -1, stages = [0, 1, 2]>} {
  nn.weights @embed "embed" : tensor<100x64xbf16>
  nn.layer @one(%l: index, %x: !x, %b: !nn.batch) -> !x {
    nn.yield %x : !x
  }
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    %x = nn.embed @embed, %b : !x
    // expected-error @below {{'nn.layers' op ends with layer 3, the plan's stages with layer 2; plan the stages of this model}}
    %y = nn.layers %x, %b [@one[0 to 3]] : !x
    return
  }
}
