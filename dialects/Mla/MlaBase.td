//===- MlaBase.td - The mla dialect, its attributes and types -------------===//
#ifndef K2C_DIALECTS_MLA_BASE
#define K2C_DIALECTS_MLA_BASE

include "dialects/Mla/MlaEnums.td"
include "dialects/Nn/NnOpBase.td"

def MlaDialect : Dialect {
  let name = "mla";
  let summary = "Multi-head latent attention";
  let description = [{
    The `mla` dialect caches one latent a token and attends to it in one of two forms: expanded (keys and values are
    computed from the latent) or absorbed (the query is taken to the latent's space). See Rationale.md.

    In the examples, queries of 4 heads, their two parts without and with rotation, queries in the latent space, and a
    view of the cache are

    ```mlir
    #tok = #nn.rows<token>
    !q = tensor<?x4x48xf32, #tok>
    !qn = tensor<?x4x32xf32, #tok>
    !qr = tensor<?x4x16xf32, #tok>
    !ql = tensor<?x4x64xf32, #tok>
    !kv = !mla.view<latent = 64 x f32, rope = 16 x f32>
    ```
  }];
  let cppNamespace = "::k2c::mla";
  let dependentDialects = ["::k2c::nn::NnDialect"];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
}

def Mla_FormsAttr : AttrDef<MlaDialect, "Forms"> {
  let mnemonic = "forms";
  let summary = "the form of each kind of segment (N4)";
  let description = [{
    `table` chooses by the segment's new-token count, with the plan's threshold; it is fixed at admission.

    ```mlir
    %o = mla.attention ... forms<prompt = table, generated = absorbed> ... : !q, !kv -> !qn
    ```
    [C1] generated segments have one form, not `table`.
  }];
  let parameters = (ins EnumParameter<Mla_Form>:$prompt, EnumParameter<Mla_Form>:$generated);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Mla_View : TypeDef<MlaDialect, "View", [OpAsmTypeInterface]> {
  let mnemonic = "view";
  let summary = "latents and rotary keys of the step's sequences in one layer's cache";
  let description = [{
    Block table and lengths are those of cache group `group`, 0 if it is not written.

    ```mlir
    !mla.view<latent = 64 x f32, rope = 16 x f32>
    !mla.view<latent = 64 x f32, rope = 16 x f32, group = 1>
    ```
    [C1] both widths are positive. [C2] both planes have one element type. [C3] the group is not negative.
  }];
  let parameters = (ins "int64_t":$latent, "int64_t":$rope, "::mlir::Type":$element, "int64_t":$group);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    void getAsmName(::mlir::OpAsmSetNameFn set) const { set("kv"); }
    ::mlir::OpAsmAliasResult getAlias(::llvm::raw_ostream &os) const { return nn::detail::alias(os, "kv"); }
  }];
}

#endif
