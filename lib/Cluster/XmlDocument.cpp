//===- XmlDocument.cpp - A bounded document of elements and attributes --------===//
#include "XmlDocument.h"
#include "Importers.h"
#include "base/Utf8.h"

#include <algorithm>
#include <cstring>

using namespace k2c;
using namespace k2c::cluster;

namespace {

/// Of the text, 4 MiB at most, pugixml makes 70 MiB at most (64 bytes of each "<a/>"), which the number of elements is
/// counted in.
constexpr int maxDepth = 32, maxElements = 65536, maxAttributes = 32;

const char *const remedy = "give what NCCL_TOPO_DUMP_FILE wrote: elements and attributes";

} // namespace

std::string XmlDocument::placeAt(size_t offset) const {
  offset = std::min(offset, text->size());
  const auto begin = text->begin(), end = begin + std::ptrdiff_t(offset);
  const size_t line = size_t(std::count(begin, end, '\n')) + 1;
  const size_t newline = offset == 0 ? std::string::npos : text->rfind('\n', offset - 1);
  return placeOf(*file, line, newline == std::string::npos ? offset + 1 : offset - newline);
}

std::string XmlDocument::where(pugi::xml_node element) const {
  return placeAt(text->rfind('<', size_t(element.offset_debug())));
}

Status XmlDocument::checkAttributes(pugi::xml_node element) const {
  // pugixml keeps names and values where it read them, in its copy of the text.
  const char *copy = element.name() - element.offset_debug();
  int count = 0;
  for (pugi::xml_attribute attribute : element.attributes()) {
    const std::string place = placeAt(size_t(attribute.name() - copy));
    if (++count > maxAttributes)
      return Error{place, "more than " + std::to_string(maxAttributes) + " attributes", remedy};
    if (std::strchr(attribute.value(), '&'))
      return Error{place, "entities are not accepted", "write the value out"};
    if (std::strchr(attribute.value(), '<'))
      return Error{place, "'<' stands in the value of '" + shortened(attribute.name()) + "'", remedy};
    for (pugi::xml_attribute other = attribute.previous_attribute(); other; other = other.previous_attribute())
      if (std::strcmp(other.name(), attribute.name()) == 0)
        return Error{place, "attribute '" + shortened(attribute.name()) + "' occurs twice", remedy};
  }
  return Status::success();
}

/// What a node is, by itself.
Status XmlDocument::checkNode(pugi::xml_node node) const {
  const bool isTop = node.parent().type() == pugi::node_document;
  if (node.type() == pugi::node_pcdata)
    return Error{placeAt(size_t(node.offset_debug())), "text is not accepted between elements", remedy};
  if (node.type() == pugi::node_declaration && isTop && !node.previous_sibling())
    return Status::success();
  if (node.type() != pugi::node_element)
    return Error{where(node), "document types, CDATA and instructions are not accepted", "write the values out"};
  if (isTop && node != root())
    return Error{where(node), "a second root element", remedy};
  return checkAttributes(node);
}

/// All nodes in the order of the text, without recursion: a document may be as deep as it is long.
Status XmlDocument::checkTree() const {
  int depth = 1, elements = 0;
  for (pugi::xml_node node = document->first_child(); node;) {
    if (Status status = checkNode(node); !status)
      return status;
    if (depth > maxDepth)
      return Error{where(node), "elements are nested deeper than " + std::to_string(maxDepth) + " levels", remedy};
    if (++elements > maxElements)
      return Error{where(node), "more than " + std::to_string(maxElements) + " elements", remedy};
    if (node.first_child()) {
      node = node.first_child();
      ++depth;
      continue;
    }
    for (; node && !node.next_sibling(); --depth)
      node = node.parent();
    node = node ? node.next_sibling() : node;
  }
  return Status::success();
}

Expected<XmlDocument> XmlDocument::parse(const std::string &text, const std::string &file) {
  XmlDocument read(text, file);
  if (size_t nul = text.find('\0'); nul != std::string::npos)
    return Error{read.placeAt(nul), "a NUL byte", remedy};
  // Without parse_escapes entities stay as they are; the other flags keep what is refused in the tree.
  const unsigned flags =
      pugi::parse_declaration | pugi::parse_pi | pugi::parse_doctype | pugi::parse_cdata | pugi::parse_fragment;
  const pugi::xml_parse_result result =
      read.document->load_buffer(text.data(), text.size(), flags, pugi::encoding_utf8);
  if (!result)
    return Error{read.placeAt(size_t(result.offset)), std::string("not well-formed XML: ") + result.description(),
                 remedy};
  if (Status status = read.checkTree(); !status)
    return status.takeError();
  if (!read.root())
    return Error{read.placeAt(text.size()), "no element here", remedy};
  return read;
}
