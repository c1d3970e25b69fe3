def Nn_FineOp {
  let description = [{
    What continues a line, and what is left out.

    ```mlir
    #nn.tree<8>
    %a = nn.fine %x
        : !x -> tensor<...>
    ...
    %b = nn.fine ... !x
    ```
  }];
}

def Nn_TypelessOp {
  let description = [{
    ```mlir
    %a = nn.fine %x
    ```
  }];
}

def Nn_OrderOp {
  let description = [{
    ```mlir
    %b = nn.fine %a : !x -> !x
    %a = nn.fine %x : !x -> tensor<4x4xf32>
    ```
  }];
}

def Nn_TwoTestsOp {
  let description = [{
    ```mlir
    %a = nn.fine %x : !x -> tensor<4x4xf32>
    nn.weights @w : tensor<4xf32>
    ```
  }];
}

def Nn_RefusedOp {
  let description = [{
    ```mlir
    %a = nn.refused %x : !x
    ```
  }];
}

def Nn_CommentOp {
  let description = [{
    ```mlir
    nn.comment
    ```
  }];
}
