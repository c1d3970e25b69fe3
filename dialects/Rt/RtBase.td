//===- RtBase.td - The rt dialect, its types and attributes ---------------===//
#ifndef K2C_DIALECTS_RT_BASE
#define K2C_DIALECTS_RT_BASE

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialects/Rt/RtEnums.td"

def RtDialect : Dialect {
  let name = "rt";
  let summary = "One op for each runtime entry";
  let description = [{
    The `rt` dialect is what is left when no token tensor is left: pointers, grids, launches. See Rationale.md.
  }];
  let cppNamespace = "::k2c::rt";
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
}

def Rt_Ptr : TypeDef<RtDialect, "Ptr"> {
  let mnemonic = "ptr";
  let summary = "an address: arena, weights, planes";
  let builderCall = "::k2c::rt::PtrType::get($_builder.getContext())";
}

def Rt_Step : TypeDef<RtDialect, "Step"> {
  let mnemonic = "step";
  let summary = "the step struct (k2rt_ir_step)";
  let builderCall = "::k2c::rt::StepType::get($_builder.getContext())";
}

class Rt_Attr<string name, string attrMnemonic> : AttrDef<RtDialect, name> {
  let mnemonic = attrMnemonic;
  let genVerifyDecl = 1;
}

/// `matrices` of `n` output columns and `k` input columns (k2c::Matrix); of scaled blocks, `block_columns` output
/// columns x `block_rows` elements of k share a scale.
class Rt_MatrixAttr<string name, string attrMnemonic> : Rt_Attr<name, attrMnemonic> {
  let parameters = (ins "::mlir::Type":$type, "int64_t":$matrices, "int64_t":$n, "int64_t":$k,
                        DefaultValuedParameter<"int64_t", "1">:$parts,
                        DefaultValuedParameter<"int64_t", "0">:$block_columns,
                        DefaultValuedParameter<"int64_t", "0">:$block_rows);
  let assemblyFormat = "`<` $type `,` struct($matrices, $n, $k, $parts, $block_columns, $block_rows) `>`";
}

def Rt_PanelsAttr : Rt_MatrixAttr<"Panels", "panels"> {
  let summary = "matrices in panels of 32 output columns";
  let description = [{
    PanelLayout of k2c/Kernels/WeightLayout.h: gate and up columns alternate within a panel where there are two `parts`.

    ```mlir
    #rt.panels<bf16, matrices = 1, n = 48, k = 64>
    #rt.panels<f8E4M3FN, matrices = 8, n = 64, k = 128, parts = 2, block_columns = 128, block_rows = 128>
    ```
    [C1] matrices, n, k and parts are positive. [C2] blocks have columns and rows, or neither.
  }];
}

def Rt_RowsAttr : Rt_MatrixAttr<"Rows", "rows"> {
  let summary = "matrices whose output columns lie one behind the other";
  let description = [{
    RowLayout of k2c/Kernels/WeightLayout.h: each output column is contiguous along k, padded to 16 bytes.

    ```mlir
    #rt.rows<bf16, matrices = 1, n = 80, k = 64>
    ```
    [C1] matrices, n, k and parts are positive. [C2] blocks have columns and rows, or neither.
  }];
}

def Rt_RowMajorAttr : Rt_Attr<"RowMajor", "row_major"> {
  let summary = "elements in the order of the checkpoint";
  let description = [{
    ```mlir
    #rt.row_major<bf16, 32768>
    ```
    [C1] there are elements.
  }];
  let parameters = (ins "::mlir::Type":$type, "int64_t":$elements);
  let assemblyFormat = "`<` $type `,` $elements `>`";
}

def Rt_CountAttr : EnumAttr<RtDialect, Rt_Count, "count">;
def Rt_CollectiveAttr : EnumAttr<RtDialect, Rt_Collective, "op">;
def Rt_AxisAttr : EnumAttr<RtDialect, Rt_Axis, "axis">;
def Rt_PartAttr : EnumAttr<RtDialect, Rt_Part, "part">;
def Rt_StageEndAttr : EnumAttr<RtDialect, Rt_StageEnd, "stage_end">;
def Rt_HolderAttr : EnumAttr<RtDialect, Rt_Holder, "holder">;
def Rt_Layout : AnyAttrOf<[Rt_PanelsAttr, Rt_RowsAttr, Rt_RowMajorAttr]>;
def Rt_Int : TypedSignlessIntegerAttrBase<I64, "int64_t", "64-bit integer">;

class Rt_Op<string mnemonic, list<Trait> traits = []> : Op<RtDialect, mnemonic, traits>;

/// An op with one result, which is printed as `name`, a C++ expression.
class Rt_Value<string mnemonic, string name, list<Trait> traits = []>
    : Rt_Op<mnemonic, traits # [Pure, OpAsmOpInterface]> {
  let extraClassDeclaration =
      "void getAsmResultNames(::mlir::OpAsmSetValueNameFn set) { set(getResult(), " # name # "); }";
}

#endif
