// One list of arrays (visitArrays) is walked by the writer, by the reader and by who asks for the size, so that they
// agree.
//
// The reader checks the counts of the header first, then that the record has the size which they make, then entry by
// entry what a kernel would use as an index: ids, positions, forms, pages, rows of sequences and output rows, experts.
// The sampler takes any parameters; it counts with those that say what is drawn. Weights may be any numbers.
// What follows from other numbers, as append slots do, is computed by both sides with the same function.
#include "engine/StepRecord.h"
#include <algorithm>
#include <cstring>
#include <limits>

namespace k2c::runtime {

namespace {

int64_t padded(int64_t bytes) { return (bytes + recordUnit - 1) / recordUnit * recordUnit; }

/// Calls visit(array, count) for the arrays of a step in the order of the record. Targets and forced routes, which
/// are no arrays of the engine, come last and are the caller's.
template <class Arrays, class Visit>
void visitArrays(const StepRecordHeader &header, Arrays &arrays, size_t groups, Visit &visit) {
  const int64_t rows = header.tokenRows, sequences = header.seqRows;
  visit(arrays.tokenIds, rows);
  visit(arrays.positions, rows);
  visit(arrays.rowForm, rows);
  visit(arrays.outputs, header.outputRows);
  visit(arrays.seqBegin, sequences + 1);
  visit(arrays.lastSample, sequences);
  for (size_t group = 0; group < groups; ++group) {
    visit(arrays.seqLen[group], sequences);
    for (int64_t s = 0; s < sequences; ++s)
      visit(arrays.stepTables[group] + s * arrays.blockStride, header.tablePages);
  }
  if (header.flags & hasSampling)
    visit(arrays.sampling, header.outputRows);
}

int64_t forcedEntries(const Manifest &manifest, int64_t rows) {
  return static_cast<int64_t>(manifest.moeLayers.size()) * rows * manifest.topK;
}

class Sizer {
public:
  int64_t bytes = 0;

  template <class T> void operator()(const T *, int64_t count) { bytes += padded(count * int64_t(sizeof(T))); }
};

/// `header` is within the limits of the manifest, `arrays` are as large as these say.
int64_t recordBytes(const Manifest &manifest, const StepRecordHeader &header, const StepArrays &arrays) {
  Sizer size;
  size(&header, 1);
  visitArrays(header, arrays, manifest.groups.size(), size);
  if (header.flags & givesLogProbabilities)
    size(static_cast<const int32_t *>(nullptr), header.outputRows);
  if (header.flags & hasForced) {
    const int64_t entries = forcedEntries(manifest, header.tokenRows);
    size(static_cast<const int32_t *>(nullptr), entries);
    size(static_cast<const float *>(nullptr), entries);
  }
  return size.bytes;
}

class Writer {
public:
  explicit Writer(std::vector<std::byte> &record) : record(record) {}
  template <class T> void operator()(const T *values, int64_t count) {
    const int64_t bytes = count * int64_t(sizeof(T));
    const size_t at = record.size();
    record.resize(at + static_cast<size_t>(padded(bytes)));
    if (bytes > 0)
      std::memcpy(record.data() + at, values, static_cast<size_t>(bytes));
  }

private:
  std::vector<std::byte> &record;
};

class Reader {
public:
  explicit Reader(const std::byte *at) : at(at) {}
  template <class T> void operator()(T *values, int64_t count) {
    const int64_t bytes = count * int64_t(sizeof(T));
    if (bytes > 0)
      std::memcpy(values, at, static_cast<size_t>(bytes));
    at += padded(bytes);
  }
  /// Where they are in the record.
  template <class T> const T *refer(int64_t count) {
    const auto *values = reinterpret_cast<const T *>(at);
    at += padded(count * int64_t(sizeof(T)));
    return values;
  }

private:
  const std::byte *at;
};

/// Checks values of one record; the first mistake is kept.
class Checker {
public:
  explicit Checker(int64_t step) : step(step) {}

  bool within(const std::string &what, int64_t value, int64_t least, int64_t most) {
    if (value < least || value > most)
      refuse(what + " is " + std::to_string(value) + ", must be within " + std::to_string(least) + ".." +
             std::to_string(most));
    return !wrong;
  }
  bool within(const char *what, const int32_t *values, int64_t count, int64_t least, int64_t most) {
    for (int64_t i = 0; i < count; ++i)
      if (values[i] < least || values[i] > most)
        return within(what + ("[" + std::to_string(i) + "]"), values[i], least, most);
    return !wrong;
  }
  bool ascending(const char *what, const int32_t *values, int64_t count) {
    for (int64_t i = 1; i < count; ++i)
      if (values[i] <= values[i - 1])
        refuse(what + ("[" + std::to_string(i) + "]") + " is " + std::to_string(values[i]) + " behind " +
               std::to_string(values[i - 1]) + ", must be more");
    return !wrong;
  }
  void refuse(std::string message) {
    if (!wrong)
      wrong.emplace(K2RT_PEER_FAILED, "record of step " + std::to_string(step), std::move(message),
                    "start the same build of k2c on every host");
  }
  Status status() const { return wrong ? Status(*wrong) : Status(); }

private:
  const int64_t step;
  std::optional<Error> wrong;
};

/// What a record is and of which step, before anything else of it counts.
bool checkKind(const StepRecordHeader &header, int64_t number, int64_t tables, Checker &check) {
  return check.within("format", header.format, stepRecordFormat, stepRecordFormat) &&
         check.within("kind", header.kind, stepRecord, tracesRecord) &&
         check.within("step", header.step, number, number) && check.within("table", header.table, 0, tables - 1);
}

/// Counts, before anything is as large as they say.
bool checkCounts(const StepRecordHeader &header, const Manifest &manifest, const StepArrays &arrays, int64_t bytes,
                 Checker &check) {
  const k2rt_limits &limits = manifest.limits;
  const int64_t halfRows = manifest.ranks.halves.rows;
  const bool isWhole = halfRows > 0 && (header.flags & inHalves) == 0;
  bool isRight = check.within("flags", header.flags, 0, halfRows > 0 ? allStepFlags : inHalves - 1) &&
                 check.within("token_rows", header.tokenRows, 0, isWhole ? halfRows : limits.step_tokens) &&
                 check.within("output_rows", header.outputRows, 0, std::min(header.tokenRows, manifest.outputRows())) &&
                 check.within("seq_rows", header.seqRows, 0, std::min(header.tokenRows, limits.max_sequences)) &&
                 check.within("block table", header.tablePages, 0, k2rt_pages_per_sequence(&limits));
  if (isRight && header.flags & hasSampling)
    isRight = check.within("output_rows", header.outputRows, 0, limits.max_sequences);
  if (!isRight)
    return false;
  if (const int64_t needed = recordBytes(manifest, header, arrays); bytes != needed)
    check.refuse("has " + std::to_string(bytes) + " bytes, its counts need " + std::to_string(needed));
  return static_cast<bool>(check.status());
}

bool checkSampling(const StepRecordHeader &header, const Manifest &manifest, const StepArrays &a, Checker &check) {
  const auto at = [](const char *field, int64_t i) { return "sampling[" + std::to_string(i) + "]." + field; };
  const int64_t sampled = header.flags & hasSampling ? header.outputRows : 0;
  for (int64_t i = 0; i < sampled; ++i)
    if (!check.within(at("choice", i), a.sampling[i].choice, 0, std::numeric_limits<int64_t>::max()) ||
        !check.within(at("position", i), a.sampling[i].position, 0, manifest.limits.max_context))
      return false;
  return true;
}

/// Of each row and layer an expert at most once: buffers of what ranks exchange are no larger.
bool checkForced(const int32_t *experts, int64_t entries, const Manifest &manifest, Checker &check) {
  if (!check.within("forced_experts", experts, entries, K2RT_ROUTE_NONE, manifest.experts - 1))
    return false;
  for (int64_t row = 0; row < entries; row += manifest.topK)
    for (int64_t i = row; i < row + manifest.topK; ++i)
      if (experts[i] >= 0 && std::find(experts + row, experts + i, experts[i]) != experts + i)
        check.refuse("forced_experts[" + std::to_string(i) + "] is " + std::to_string(experts[i]) +
                     ", which its row has twice");
  return static_cast<bool>(check.status());
}

/// Sequences have rows one after another, and pages for all their tokens.
bool checkSequences(const StepRecordHeader &header, const Manifest &manifest, const StepArrays &a, Checker &check) {
  if (!check.within("seq_begin[0]", a.seqBegin[0], 0, 0) ||
      !check.within("seq_begin[" + std::to_string(header.seqRows) + "]", a.seqBegin[header.seqRows], header.tokenRows,
                    header.tokenRows) ||
      !check.ascending("seq_begin", a.seqBegin, header.seqRows + 1))
    return false;
  for (size_t group = 0; group < manifest.groups.size(); ++group)
    for (int64_t s = 0; s < header.seqRows; ++s) {
      const int64_t rows = a.seqBegin[s + 1] - a.seqBegin[s];
      const int64_t most = std::min(manifest.limits.max_context, header.tablePages * K2RT_PAGE_TOKENS) - rows;
      if (!check.within("seq_len", a.seqLen[group][s], 0, most) ||
          !check.within("block table", a.stepTables[group] + s * a.blockStride, pagesFor(a.seqLen[group][s] + rows), 0,
                        manifest.groups[group].pages - 1))
        return false;
    }
  return true;
}

bool checkRows(const StepRecordHeader &header, const Manifest &manifest, const StepArrays &a, Checker &check) {
  const int64_t rows = header.tokenRows;
  return check.within("token_ids", a.tokenIds, rows, 0, manifest.vocab - 1) &&
         check.within("positions", a.positions, rows, 0, manifest.limits.max_context - 1) &&
         check.within("row_form", a.rowForm, rows, K2RT_FORM_EXPANDED, K2RT_FORM_ABSORBED) &&
         check.within("outputs", a.outputs, header.outputRows, 0, rows - 1) &&
         check.ascending("outputs", a.outputs, header.outputRows) &&
         check.within("last_sample", a.lastSample, header.seqRows, -1, manifest.vocab - 1);
}

} // namespace

uint32_t flagsOf(const k2rt_ir_step &step, const WantedOutputs &wanted) {
  uint32_t flags = 0;
  const auto add = [&flags](bool has, StepFlag flag) { flags |= has ? uint32_t(flag) : 0; };
  add(step.sampling != nullptr, hasSampling);
  add(step.forced_experts != nullptr, hasForced);
  add(wanted.logits, givesLogits);
  add(wanted.targets != nullptr, givesLogProbabilities);
  add(step.capture_experts != nullptr, givesExperts);
  add(step.capture_weights != nullptr, givesWeights);
  add(step.capture_hidden != nullptr, givesHidden);
  add(step.capture_max_logit != nullptr, givesMaxLogits);
  return flags;
}

int64_t recordCapacity(const Manifest &manifest, const StepArrays &arrays) {
  const k2rt_limits &limits = manifest.limits;
  const StepRecordHeader largest = {stepRecordFormat,
                                    stepRecord,
                                    0,
                                    limits.step_tokens,
                                    limits.step_tokens,
                                    limits.max_sequences,
                                    k2rt_pages_per_sequence(&limits),
                                    allStepFlags,
                                    0};
  return recordBytes(manifest, largest, arrays);
}

void writeStepRecord(const Manifest &manifest, const StepArrays &arrays, const k2rt_ir_step &step, int64_t number,
                     const WantedOutputs &wanted, std::vector<std::byte> &record) {
  StepRecordHeader header = {
      stepRecordFormat,      stepRecord, number, step.token_rows, step.output_rows, step.seq_rows, 0,
      flagsOf(step, wanted), 0};
  for (size_t group = 0; group < manifest.groups.size(); ++group)
    for (int64_t s = 0; s < header.seqRows; ++s)
      header.tablePages =
          std::max(header.tablePages, pagesFor(arrays.seqLen[group][s] + arrays.seqBegin[s + 1] - arrays.seqBegin[s]));
  Writer write(record);
  write(&header, 1);
  visitArrays(header, arrays, manifest.groups.size(), write);
  if (header.flags & givesLogProbabilities)
    write(wanted.targets, header.outputRows);
  if (header.flags & hasForced) {
    const int64_t entries = forcedEntries(manifest, header.tokenRows);
    write(static_cast<const int32_t *>(step.forced_experts), entries);
    write(static_cast<const float *>(step.forced_weights), entries);
  }
}

void setShared(std::byte *record, size_t table, bool goesInHalves) {
  StepRecordHeader header;
  std::memcpy(&header, record, sizeof header);
  header.table = static_cast<uint32_t>(table);
  header.flags |= goesInHalves ? uint32_t(inHalves) : 0;
  std::memcpy(record, &header, sizeof header);
}

void writeOtherRecord(StepRecordKind kind, int64_t number, std::vector<std::byte> &record) {
  StepRecordHeader header = {stepRecordFormat, kind, number, 0, 0, 0, 0, 0, 0};
  Writer write(record);
  write(&header, 1);
}

Expected<ReceivedStep> readStepRecord(const Manifest &manifest, const std::byte *record, int64_t bytes, int64_t number,
                                      int64_t tables, StepArrays &arrays) {
  ReceivedStep received = {};
  StepRecordHeader &header = received.header;
  if (bytes < int64_t(sizeof header))
    return Error{K2RT_PEER_FAILED, "step record",
                 "has " + std::to_string(bytes) + " bytes, its header " + std::to_string(sizeof header),
                 "start the same build of k2c on every host"};
  Reader read(record);
  read(&header, 1);
  Checker check(number);
  if (!checkKind(header, number, tables, check))
    return check.status().takeError();
  if (header.kind != stepRecord)
    return received;
  if (!checkCounts(header, manifest, arrays, bytes, check))
    return check.status().takeError();
  visitArrays(header, arrays, manifest.groups.size(), read);
  if (!checkSequences(header, manifest, arrays, check) || !checkRows(header, manifest, arrays, check) ||
      !checkSampling(header, manifest, arrays, check))
    return check.status().takeError();
  for (int64_t s = 0; s < header.seqRows; ++s) {
    const int64_t begin = arrays.seqBegin[s], rows = arrays.seqBegin[s + 1] - begin;
    std::fill_n(arrays.rowSeq + begin, rows, static_cast<int32_t>(s));
    for (size_t group = 0; group < manifest.groups.size(); ++group)
      arrays.fillSlots(group, s, begin, rows);
  }
  std::fill_n(arrays.samples, header.outputRows, -1);
  received.step = arrays.step();
  received.step.token_rows = received.step.layer_rows = header.tokenRows;
  received.step.output_rows = header.outputRows;
  received.step.seq_rows = header.seqRows;
  received.step.sampling = header.flags & hasSampling ? arrays.sampling : nullptr;
  if (header.flags & givesLogProbabilities) {
    received.targets = read.refer<int32_t>(header.outputRows);
    if (!check.within("targets", received.targets, header.outputRows, -1, manifest.vocab - 1))
      return check.status().takeError();
  }
  if (header.flags & hasForced) {
    const int64_t entries = forcedEntries(manifest, header.tokenRows);
    const auto *experts = read.refer<int32_t>(entries);
    if (!checkForced(experts, entries, manifest, check))
      return check.status().takeError();
    received.step.forced_experts = const_cast<int32_t *>(experts);
    received.step.forced_weights = const_cast<float *>(read.refer<float>(entries));
  }
  return received;
}

ResultLayout resultLayout(const Manifest &manifest, int64_t tokenRows, int64_t outputRows, uint32_t flags) {
  ResultLayout layout;
  const auto place = [&](int64_t entries) {
    const int64_t at = layout.bytes;
    layout.bytes += padded(4 * entries);
    return at;
  };
  layout.samples = place(outputRows);
  if (flags & givesLogits)
    layout.logits = place(outputRows * manifest.vocab);
  if (flags & givesLogProbabilities)
    layout.logProbabilities = place(outputRows);
  if (flags & givesExperts)
    layout.experts = place(forcedEntries(manifest, tokenRows));
  if (flags & givesWeights)
    layout.weights = place(forcedEntries(manifest, tokenRows));
  if (flags & givesHidden)
    layout.hidden = place((manifest.layers + 1) * tokenRows * manifest.hidden);
  if (flags & givesMaxLogits)
    layout.maxLogits = place(manifest.layers * manifest.heads);
  return layout;
}

} // namespace k2c::runtime
