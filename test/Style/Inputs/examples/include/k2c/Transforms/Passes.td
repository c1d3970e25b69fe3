def BoundRows : Pass<"bound-rows", "::mlir::ModuleOp"> {
  let description = [{
    ```mlir
    %a = nn.fine %x : !x -> !x                   // before
    %p = nn.bound %x rows 4 name "bound_4f"      // after
    %q = nn.bound %p ...
    ```
  }];
}

def InputIsOutput : Pass<"bound-rows", "::mlir::ModuleOp"> {
  let description = [{
    ```mlir
    %a = nn.fine %x : !x -> !x                   // after
    ```
  }];
}

def OtherVariable : Pass<"bound-rows", "::mlir::ModuleOp"> {
  let description = [{
    ```mlir
    %p = nn.bound %x rows 4 name ...             // after
    %q = nn.bound %x ...
    ```
  }];
}

def OtherText : Pass<"bound-rows", "::mlir::ModuleOp"> {
  let description = [{
    ```mlir
    %p = nn.bound %x rows 4 name "bound_4z"      // after
    ```
  }];
}

def NotRun : Pass<"not-run", "::mlir::ModuleOp"> {
  let description = [{
    ```mlir
    %a = nn.fine %x : !x -> !x
    ```
  }];
}
