//===- Html.h - Parts of a plan's page -----------------------------------===//
#ifndef K2C_LIB_REPORT_HTML_H
#define K2C_LIB_REPORT_HTML_H

#include "Charts.h"

namespace k2c::report {

/// Tables whose cells carry the number behind what they print as `data-value`, so that a page can be read by programs
/// and compared with planJson.
class Table {
public:
  Table(const std::string &caption, const std::vector<std::string> &heads);
  Table &row();
  Table &text(const std::string &text);
  Table &number(double value, const std::string &printed);
  Table &number(int64_t value, const std::string &printed);
  std::string finish();

private:
  Table &cell(const std::string &value, const std::string &printed);
  std::string out;
  bool open = false;
};

std::string countTable(const nlohmann::ordered_json &counts);
std::string layoutTable(const ClusterPlan &plan);
std::string memoryTable(const ClusterPlan &plan);
std::string stepTable(const ClusterPlan &plan);
std::string pipelineTable(const ClusterPlan &plan);
std::string trafficTable(const ClusterPlan &plan);
std::string searchTables(const PlanSearch &search);

} // namespace k2c::report

#endif // K2C_LIB_REPORT_HTML_H
