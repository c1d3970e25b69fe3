//===- Html.h - Parts of a plan's page -----------------------------------===//
#ifndef K2C_LIB_REPORT_HTML_H
#define K2C_LIB_REPORT_HTML_H

#include "Charts.h"

namespace k2c::report {

/// Tables whose cells carry the number behind what they print as `data-value`, so that a page can be read by programs
/// and compared with planJson. On narrow pages a row of many cells is a block in which each has its head above it.
class Table {
public:
  Table(const std::string &caption, const std::vector<std::string> &heads);
  /// A row of its own above those that it is of.
  Table &group(const std::string &name);
  Table &row();
  Table &text(const std::string &text);
  Table &number(double value, const std::string &printed);
  Table &number(int64_t value, const std::string &printed);
  std::string finish();

private:
  Table &cell(const std::string &attributes, const std::string &printed);
  std::string out;
  std::vector<std::string> heads;
  size_t column = 0;
  bool open = false;
};

/// Figures as tiles.
std::string tiles(const std::vector<Figure> &figures);
std::string countTable(const nlohmann::ordered_json &counts);
std::string layoutTable(const ClusterPlan &plan);
std::string memoryTable(const ClusterPlan &plan);
std::string stepTable(const ClusterPlan &plan);
std::string pipelineTable(const ClusterPlan &plan);
std::string trafficTable(const ClusterPlan &plan);
std::string searchTables(const PlanSearch &search, const std::string &device);

} // namespace k2c::report

#endif // K2C_LIB_REPORT_HTML_H
