#include "runtime/s3/answers.h"

#include <expat.h>

#include <charconv>
#include <memory>

#include "runtime/s3/config.h"

namespace cairn {
namespace {

struct Element {
  std::string name;
  std::string text;
  std::vector<std::unique_ptr<Element>> children;

  const Element* Find(std::string_view wanted) const {
    for (const auto& child : children) {
      if (child->name == wanted) return child.get();
    }
    return nullptr;
  }
  std::string Text(std::string_view wanted) const {
    const Element* child = Find(wanted);
    return child == nullptr ? "" : child->text;
  }
};

// The elements of a document that is read; the last is the one that is open.
using Open = std::vector<Element*>;

// The document's root, without namespaces; nullptr where the text is no XML.
std::unique_ptr<Element> ParseXml(std::string_view text) {
  const std::unique_ptr<XML_ParserStruct, decltype(&XML_ParserFree)> parser(XML_ParserCreate(nullptr),
                                                                            &XML_ParserFree);
  if (!parser) return nullptr;
  Element document;
  Open open = {&document};
  XML_SetUserData(parser.get(), &open);
  XML_SetElementHandler(
      parser.get(),
      [](void* data, const char* name, const char**) {
        Open& path = *static_cast<Open*>(data);
        auto element = std::make_unique<Element>();
        const std::string_view full(name);
        element->name = full.substr(full.find(':') + 1);  // npos + 1 = 0
        path.back()->children.push_back(std::move(element));
        path.push_back(path.back()->children.back().get());
      },
      [](void* data, const char*) { static_cast<Open*>(data)->pop_back(); });
  XML_SetCharacterDataHandler(parser.get(), [](void* data, const char* from, int bytes) {
    static_cast<Open*>(data)->back()->text.append(from, static_cast<size_t>(bytes));
  });
  if (XML_Parse(parser.get(), text.data(), static_cast<int>(text.size()), 1) != XML_STATUS_OK) return nullptr;
  return std::move(document.children.front());
}

// The root, when it has this name.
Result<std::unique_ptr<Element>> ParseRoot(std::string_view text, std::string_view name) {
  std::unique_ptr<Element> root = ParseXml(text);
  if (root && root->name == name) return root;
  return Status(Code::kIo, "the answer is no " + std::string(name) + ", as S3 gives it: '" +
                               std::string(text.substr(0, 120)) + "'; is the endpoint a server of S3?");
}

std::string Escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace

S3Error ParseError(std::string_view text) {
  const std::unique_ptr<Element> root = ParseXml(text);
  if (!root) return {};
  const Element* error = root->name == "Error"          ? root.get()
                         : root->name == "DeleteResult" ? root->Find("Error")
                                                        : nullptr;
  if (error == nullptr) return {};
  return {error->Text("Code"), error->Text("Message"), error->Text("Region")};
}

Result<S3Listing> ParseListing(std::string_view text) {
  CAIRN_ASSIGN_OR_RETURN(const std::unique_ptr<Element> root, ParseRoot(text, "ListBucketResult"));
  const bool encoded = root->Text("EncodingType") == "url";
  const auto name = [encoded](std::string raw) { return encoded ? UriDecode(raw) : raw; };
  S3Listing listing;
  for (const auto& child : root->children) {
    if (child->name == "CommonPrefixes") {
      listing.folders.push_back(name(child->Text("Prefix")));
    } else if (child->name == "Contents") {
      StoredObject object{name(child->Text("Key"))};
      const std::string size = child->Text("Size");
      if (std::from_chars(size.data(), size.data() + size.size(), object.bytes).ec != std::errc()) {
        return Status(Code::kIo, "the listing gives '" + object.key + "' no size");
      }
      listing.objects.push_back(std::move(object));
    }
  }
  if (root->Text("IsTruncated") == "true") {
    listing.next = root->Text("NextContinuationToken");
    if (listing.next.empty())
      return Status(Code::kIo,
                    "a part of a listing does not say where the next one begins: the server does not know "
                    "ListObjectsV2");
  }
  return listing;
}

Result<S3Uploads> ParseUploads(std::string_view text) {
  CAIRN_ASSIGN_OR_RETURN(const std::unique_ptr<Element> root, ParseRoot(text, "ListMultipartUploadsResult"));
  const bool encoded = root->Text("EncodingType") == "url";
  const auto name = [encoded](std::string raw) { return encoded ? UriDecode(raw) : raw; };
  S3Uploads out;
  for (const auto& child : root->children) {
    if (child->name == "Upload") out.uploads.push_back({name(child->Text("Key")), child->Text("UploadId")});
  }
  out.next_key = name(root->Text("NextKeyMarker"));
  out.next_id = root->Text("NextUploadIdMarker");
  out.more = root->Text("IsTruncated") == "true" && !out.next_key.empty();
  return out;
}

Result<std::string> ParseUploadId(std::string_view text) {
  CAIRN_ASSIGN_OR_RETURN(const std::unique_ptr<Element> root,
                         ParseRoot(text, "InitiateMultipartUploadResult"));
  std::string id = root->Text("UploadId");
  if (id.empty()) return Status(Code::kIo, "the server begins an upload without an id");
  return id;
}

std::string FormatComplete(std::span<const std::string> etags) {
  std::string out = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
  for (size_t i = 0; i < etags.size(); ++i) {
    out += "<Part><PartNumber>" + std::to_string(i + 1) + "</PartNumber><ETag>" + Escape(etags[i]) +
           "</ETag></Part>";
  }
  return out + "</CompleteMultipartUpload>";
}

std::string FormatDelete(std::span<const std::string> keys) {
  std::string out = "<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Quiet>true</Quiet>";
  for (const std::string& key : keys) out += "<Object><Key>" + Escape(key) + "</Key></Object>";
  return out + "</Delete>";
}

}  // namespace cairn
