//===- Forms.h - The forms of a program -----------------------------------===//
#ifndef K2C_TRANSFORMS_FORMS_H
#define K2C_TRANSFORMS_FORMS_H

#include <cstdint>
#include <optional>
#include <string_view>

namespace k2c {

/// The forms of Forms.def, in order; Program is a bundle, what they lead to. Each form before Llvm has a verifier.
enum class Form : uint8_t {
#define K2C_FORM(Name, name, summary) Name,
#include "k2c/Transforms/Forms.def"
  Program
};

/// As `--emit` takes it.
constexpr const char *nameOf(Form form) {
  constexpr const char *names[] = {
#define K2C_FORM(Name, name, summary) name,
#include "k2c/Transforms/Forms.def"
      "program"};
  return names[size_t(form)];
}

/// The form of that name, if there is one.
constexpr std::optional<Form> formNamed(std::string_view name) {
  for (auto form = uint8_t(Form::Model); form <= uint8_t(Form::Program); ++form)
    if (name == nameOf(Form(form)))
      return Form(form);
  return std::nullopt;
}

} // namespace k2c

#endif // K2C_TRANSFORMS_FORMS_H
