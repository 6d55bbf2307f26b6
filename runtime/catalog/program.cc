#include "runtime/catalog/program.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "runtime/io/hash.h"

namespace cairn {
namespace {

namespace fs = std::filesystem;

constexpr size_t kHashedBytes = size_t{1} << 20;
constexpr size_t kKeptBytes = 4096;

std::vector<std::string> ReadArguments(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::string> out;
  for (std::string argument; std::getline(file, argument, '\0');) out.push_back(argument);
  return out;
}

std::string HashOf(const std::string& path) {
  std::error_code error;
  const uintmax_t bytes = fs::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || !file) return "";
  std::string head(static_cast<size_t>(std::min<uintmax_t>(bytes, kHashedBytes)), '\0');
  if (!file.read(head.data(), static_cast<std::streamsize>(head.size()))) return "";
  return Hash128Of(std::to_string(bytes) + "\n" + head).ToHex();
}

void Shorten(std::vector<std::string>* arguments) {
  size_t bytes = 0;
  const auto end = std::find_if(arguments->begin(), arguments->end(), [&](const std::string& argument) {
    return (bytes += argument.size() + 1) > kKeptBytes;
  });
  if (end == arguments->end()) return;
  arguments->erase(end, arguments->end());
  arguments->emplace_back("…");
}

}  // namespace

Program ReadProgram(const std::string& process) {
  Program out;
  std::error_code error;
  out.path = fs::read_symlink(process + "/exe", error).string();
  std::string file = process + "/exe";  // leads to it even where its path does not any more
  std::vector<std::string> words = ReadArguments(process + "/cmdline");
  size_t first = 1;
  if (fs::path(out.path).filename().string().starts_with("python")) {
    for (size_t i = 1; i < words.size(); ++i) {
      const fs::path script =
          fs::path(process + "/cwd") / words[i];  // words[i] itself where that is absolute
      if (words[i].starts_with('-') || !fs::is_regular_file(script, error)) continue;
      out.path = words[i];
      file = script.string();
      first = i + 1;
      break;
    }
  }
  out.hash = HashOf(file);
  words.erase(words.begin(), words.begin() + static_cast<ptrdiff_t>(std::min(first, words.size())));
  Shorten(&words);
  out.arguments = std::move(words);
  return out;
}

}  // namespace cairn
