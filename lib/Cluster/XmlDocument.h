//===- XmlDocument.h - A bounded document of elements and attributes ----------===//
//
// pugixml reads; what it accepts and a topology does not need is refused afterwards: document types, CDATA,
// instructions, entities, text, second roots, repeated attributes, and documents that are too deep or too large.
// pugixml expands no entity of a document and opens no file, and its parser keeps open elements in its tree and not on
// the call stack.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_CLUSTER_XMLDOCUMENT_H
#define K2C_LIB_CLUSTER_XMLDOCUMENT_H

#include "base/Error.h"
#include <memory>
#include <pugixml.hpp>
#include <string>

namespace k2c::cluster {

/// One document and the text it was read from, which gives its elements their places.
class XmlDocument {
public:
  /// `file` names the text in errors, which carry line and column; both outlive the document. Elements are nested 32
  /// levels deep at most.
  static Expected<XmlDocument> parse(const std::string &text, const std::string &file);

  pugi::xml_node root() const { return document->document_element(); }
  /// The place of an element's '<', as file:line:column.
  std::string where(pugi::xml_node element) const;

private:
  XmlDocument(const std::string &text, const std::string &file)
      : text(&text), file(&file), document(std::make_unique<pugi::xml_document>()) {}
  std::string placeAt(size_t offset) const;
  Status checkNode(pugi::xml_node node) const;
  Status checkAttributes(pugi::xml_node element) const;
  Status checkTree() const;

  const std::string *text, *file;
  std::unique_ptr<pugi::xml_document> document;
};

} // namespace k2c::cluster

#endif // K2C_LIB_CLUSTER_XMLDOCUMENT_H
