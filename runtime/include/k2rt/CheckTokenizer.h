// Whether a program will be able to read a checkpoint's tokenizer: what it would refuse at start can be refused before.
#ifndef K2RT_CHECKTOKENIZER_H
#define K2RT_CHECKTOKENIZER_H

#include "base/Error.h"
#include "k2rt/TiktokenRules.h"
#include <string>
#include <string_view>

namespace k2c::runtime {

/// Reads the text of a tokenizer.json; `name` stands for the file in the error. K2RT_UNSUPPORTED: the file is right,
/// but this build cannot do what it asks for.
Status checkTokenizer(std::string_view json, const std::string &name);
/// The same of a tiktoken.model.
Status checkTiktoken(std::string_view ranks, const std::string &name, const TiktokenRules &rules);

} // namespace k2c::runtime

#endif
