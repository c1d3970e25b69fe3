// A check is a whole read: nothing else knows all that a program refuses.
#include "k2rt/CheckTokenizer.h"
#include "text/Tokenizer.h"

namespace k2c::runtime {

static Status statusOf(Expected<Tokenizer> tokenizer) { return tokenizer ? Status() : Status(tokenizer.takeError()); }

Status checkTokenizer(std::string_view json, const std::string &name) { return statusOf(Tokenizer::parse(json, name)); }

Status checkTiktoken(std::string_view ranks, const std::string &name, const TiktokenRules &rules) {
  return statusOf(Tokenizer::parseRanks(ranks, name, rules));
}

} // namespace k2c::runtime
