#include "runtime/io/object_files.h"

#include <span>

#include "runtime/io/stores.h"

namespace cairn::objects {
namespace {

// A folder is there when something is in it.
Status Missing(const std::string& path) { return {Code::kNotFound, "list " + path + ": there is nothing"}; }

}  // namespace

Result<uint64_t> FileBytes(const std::string& path) {
  CAIRN_ASSIGN_OR_RETURN(const ObjectPlace place, PlaceOf(path));
  return place.store->Bytes(place.key);
}

Result<std::string> ReadAll(const std::string& path, uint64_t max_bytes) {
  CAIRN_ASSIGN_OR_RETURN(const ObjectPlace place, PlaceOf(path));
  return place.store->Get(place.key, max_bytes);
}

Status PublishFile(const std::string& path, std::string_view bytes) {
  CAIRN_ASSIGN_OR_RETURN(const ObjectPlace place, PlaceOf(path));
  return place.store->Put(place.key, bytes);
}

Status CreateExclusive(const std::string& path, std::string_view bytes) {
  CAIRN_ASSIGN_OR_RETURN(const ObjectPlace place, PlaceOf(path));
  return place.store->PutNew(place.key, bytes);
}

Result<std::vector<std::string>> ListDirectory(const std::string& path) {
  CAIRN_ASSIGN_OR_RETURN(const ObjectPlace place, PlaceOf(path));
  CAIRN_ASSIGN_OR_RETURN(std::vector<std::string> names, place.store->ListFolder(place.prefix()));
  if (names.empty()) return Missing(path);
  return names;
}

Result<std::map<std::string, uint64_t>> FileSizes(const std::string& folder) {
  CAIRN_ASSIGN_OR_RETURN(const ObjectPlace place, PlaceOf(folder));
  CAIRN_ASSIGN_OR_RETURN(const std::vector<StoredObject> found, place.store->List(place.prefix()));
  if (found.empty()) return Missing(folder);
  std::map<std::string, uint64_t> sizes;
  for (const StoredObject& object : found) {
    std::string name = object.key.substr(place.prefix().size());
    if (name.find('/') == std::string::npos) sizes.emplace(std::move(name), object.bytes);
  }
  return sizes;
}

Status RemoveFile(const std::string& path) {
  CAIRN_ASSIGN_OR_RETURN(const ObjectPlace place, PlaceOf(path));
  return place.store->Remove({&place.key, 1});
}

Status RemoveTree(const std::string& path) {
  CAIRN_ASSIGN_OR_RETURN(const ObjectPlace place, PlaceOf(path));
  CAIRN_RETURN_IF_ERROR(place.store->AbortUploads(place.prefix()));
  CAIRN_ASSIGN_OR_RETURN(const std::vector<StoredObject> found, place.store->List(place.prefix()));
  std::vector<std::string> keys;
  for (const StoredObject& object : found) keys.push_back(object.key);
  return keys.empty() ? OkStatus() : place.store->Remove(keys);
}

Status RemoveUnfinished(const std::string& folder) {
  CAIRN_ASSIGN_OR_RETURN(const ObjectPlace place, PlaceOf(folder));
  return place.store->AbortUploads(place.prefix());
}

}  // namespace cairn::objects
