#include "names.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace bridle::fuse {
namespace {

constexpr std::size_t max_name = 255;
constexpr std::string_view request_suffix = ".req.json";

/** Length of the well-formed UTF-8 sequence at the start of `rest`, 0 when there is none. */
std::size_t sequence_length(std::string_view rest) {
  const auto at = [rest](std::size_t i) { return static_cast<std::uint8_t>(rest[i]); };
  const std::uint8_t lead = at(0);
  if (lead < 0x80) return 1;
  std::size_t length = 0;
  std::uint8_t low = 0x80;
  std::uint8_t high = 0xbf;
  if (lead >= 0xc2 && lead <= 0xdf) {
    length = 2;
  } else if (lead >= 0xe0 && lead <= 0xef) {
    length = 3;
    if (lead == 0xe0) low = 0xa0;   // overlong
    if (lead == 0xed) high = 0x9f;  // surrogates
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    length = 4;
    if (lead == 0xf0) low = 0x90;   // overlong
    if (lead == 0xf4) high = 0x8f;  // above U+10FFFF
  }
  if (length == 0 || rest.size() < length || at(1) < low || at(1) > high) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
  }
  return length;
}

}  // namespace

int check_name(std::string_view name) {
  if (name.size() > max_name) return ENAMETOOLONG;
  while (!name.empty()) {
    const auto byte = static_cast<std::uint8_t>(name[0]);
    if (byte < 0x20 || byte == 0x7f) return EINVAL;
    const std::size_t length = sequence_length(name);
    if (length == 0) return EILSEQ;
    name.remove_prefix(length);
  }
  return 0;
}

bool is_request_name(std::string_view name) { return name.ends_with(request_suffix); }

}  // namespace bridle::fuse
