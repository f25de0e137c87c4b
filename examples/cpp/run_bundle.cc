// run_bundle FOLDER INPUT... OUTPUT...: files have the bare numbers of one tensor each, in the machine's order.

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "tuneloom.h"

namespace {

int failed(const std::string& why) {
  std::fprintf(stderr, "run_bundle: %s\n", why.c_str());
  return 2;
}

}  // namespace

int main(int count, char** words) {
  tuneloom_model* model = nullptr;
  if (count < 2) return failed("give the folder of a bundle, then a file for each input and output");
  if (tuneloom_open(words[1], &model) != 0) return failed(tuneloom_error());
  int inputs = tuneloom_inputs(model), outputs = tuneloom_outputs(model);
  if (count != 2 + inputs + outputs) {
    return failed("the model has " + std::to_string(inputs) + " inputs and " + std::to_string(outputs) +
                  " outputs; give a file for each");
  }
  std::vector<std::vector<char>> values, results;
  std::vector<const void*> given;
  std::vector<void*> made;
  for (int n = 0; n < inputs; ++n) {
    size_t size = tuneloom_input(model, n).size_bytes;
    values.emplace_back(size + 1);
    std::ifstream file(words[2 + n], std::ios::binary);
    file.read(values[n].data(), static_cast<std::streamsize>(size + 1));
    if (static_cast<size_t>(file.gcount()) != size) {
      return failed(std::string(words[2 + n]) + " must have " + std::to_string(size) + " bytes");
    }
  }
  for (int n = 0; n < outputs; ++n) results.emplace_back(tuneloom_output(model, n).size_bytes);
  for (auto& one : values) given.push_back(one.data());
  for (auto& one : results) made.push_back(one.data());
  if (tuneloom_run(model, given.data(), made.data()) != 0) return failed(tuneloom_error());
  for (int n = 0; n < outputs; ++n) {
    std::ofstream file(words[2 + inputs + n], std::ios::binary);
    file.write(results[n].data(), static_cast<std::streamsize>(results[n].size()));
    if (!file) return failed(std::string(words[2 + inputs + n]) + " can't be written");
  }
  tuneloom_close(model);
  return 0;
}
