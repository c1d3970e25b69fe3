//===- Xml.h - The XML that topology files need -----------------------------===//
//
// Elements and attributes; nothing that lets a small file grow or reach outside: no document types, entities, CDATA,
// text or namespaces. Bounded in depth, elements and attributes.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_CLUSTER_XML_H
#define K2C_LIB_CLUSTER_XML_H

#include "base/Error.h"
#include <string>
#include <utility>
#include <vector>

namespace k2c::cluster {

struct XmlElement {
  std::string name;
  std::string where; ///< file:line:column of its '<'
  std::vector<std::pair<std::string, std::string>> attributes;
  std::vector<XmlElement> children;

  /// Null when there is none.
  const std::string *attribute(const std::string &name) const;
};

/// The one root element of `text`; `file` names it in errors, which carry line and column.
Expected<XmlElement> parseXml(const std::string &text, const std::string &file);

} // namespace k2c::cluster

#endif // K2C_LIB_CLUSTER_XML_H
