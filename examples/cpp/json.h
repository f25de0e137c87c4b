// As much of JSON as manifests and headers of safetensors files need.
#ifndef TUNELOOM_JSON_H_
#define TUNELOOM_JSON_H_

#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace tuneloom {

struct Json {
  enum class Kind { kOther, kNumber, kText, kList, kObject } kind = Kind::kOther;
  double number = 0;
  std::string text;
  std::vector<Json> items;
  std::map<std::string, Json> fields;

  const Json& at(const std::string& name) const {
    auto found = fields.find(name);
    if (found == fields.end()) throw std::runtime_error("the manifest lacks '" + name + "'");
    return found->second;
  }
  bool has_any(const std::string& name) const {
    auto found = fields.find(name);
    return found != fields.end() && !(found->second.items.empty() && found->second.fields.empty());
  }
};

class JsonReader {
 public:
  explicit JsonReader(const std::string& text) : text_(text) {}

  Json read() {
    Json found;
    switch (peek()) {
      case '{':
        found.kind = Json::Kind::kObject;
        each('}', [&] {
          std::string name = string();
          expect(':');
          found.fields[name] = read();
        });
        return found;
      case '[':
        found.kind = Json::Kind::kList;
        each(']', [&] { found.items.push_back(read()); });
        return found;
      case '"':
        found.kind = Json::Kind::kText;
        found.text = string();
        return found;
      default:
        return word();
    }
  }

 private:
  template <typename F>
  void each(char end, F read_one) {
    ++place_;
    while (peek() != end) {
      read_one();
      if (peek() == ',') ++place_;
    }
    ++place_;
  }

  Json word() {
    size_t begin = place_;
    while (place_ < text_.size() && std::string(",]} \t\r\n").find(text_[place_]) == std::string::npos) ++place_;
    if (place_ == begin) throw std::runtime_error("damaged JSON");
    Json found;
    char* end = nullptr;
    std::string own = text_.substr(begin, place_ - begin);
    found.number = std::strtod(own.c_str(), &end);
    if (*end == '\0') found.kind = Json::Kind::kNumber;
    return found;
  }

  std::string string() {
    expect('"');
    std::string found;
    while (at(place_) != '"') {
      if (at(place_) == '\\') {
        char escaped = at(++place_);
        if (escaped == 'u') {
          append(found, static_cast<unsigned>(std::stoul(text_.substr(place_ + 1, 4), nullptr, 16)));
          place_ += 4;
        } else {
          const std::string from = "nrtbf", to = "\n\r\t\b\f";
          size_t known = from.find(escaped);
          found += known == std::string::npos ? escaped : to[known];
        }
      } else {
        found += at(place_);
      }
      ++place_;
    }
    ++place_;
    return found;
  }

  static void append(std::string& text, unsigned code) {
    if (code < 0x80) {
      text += static_cast<char>(code);
    } else if (code < 0x800) {
      text += static_cast<char>(0xC0 | code >> 6);
      text += static_cast<char>(0x80 | (code & 0x3F));
    } else {
      text += static_cast<char>(0xE0 | code >> 12);
      text += static_cast<char>(0x80 | (code >> 6 & 0x3F));
      text += static_cast<char>(0x80 | (code & 0x3F));
    }
  }

  char at(size_t place) const {
    if (place >= text_.size()) throw std::runtime_error("truncated JSON");
    return text_[place];
  }

  char peek() {
    while (place_ < text_.size() && std::string(" \t\r\n").find(text_[place_]) != std::string::npos) ++place_;
    return at(place_);
  }

  void expect(char wanted) {
    if (peek() != wanted) throw std::runtime_error("damaged JSON");
    ++place_;
  }

  const std::string& text_;
  size_t place_ = 0;
};

}  // namespace tuneloom
#endif  // TUNELOOM_JSON_H_
