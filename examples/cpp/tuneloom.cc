#include "tuneloom.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <sstream>

#include "json.h"

namespace ffi = tvm::ffi;
using tuneloom::Json;

namespace {

thread_local std::string last_error;

constexpr int kCpu = 1, kPooledAllocator = 2, kAlignment = 64;

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + " can't be read; give the folder of a bundle");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

DLDataType type_named(const std::string& name) {
  DLDataType found;
  TVMFFIByteArray text{name.data(), name.size()};
  if (TVMFFIDataTypeFromString(&text, &found) != 0) throw std::runtime_error("unknown type " + name);
  return found;
}

/* Names of types in a safetensors file. */
DLDataType stored_type(const std::string& name) {
  if (name == "BOOL") return type_named("bool");
  if (name == "BF16") return type_named("bfloat16");
  const std::string kinds = "FIU";
  const char* words[] = {"float", "int", "uint"};
  size_t kind = kinds.find(name[0]);
  if (kind == std::string::npos) throw std::runtime_error("unknown type of weights: " + name);
  return type_named(words[kind] + name.substr(1));
}

struct Form {
  std::string name, dtype;
  std::vector<int64_t> shape;
  DLDataType type;
  size_t size_bytes;
};

size_t bytes_of(const std::vector<int64_t>& shape, DLDataType type) {
  size_t count = 1;
  for (int64_t extent : shape) count *= static_cast<size_t>(extent);
  return count * ((type.bits * type.lanes + 7) / 8);
}

std::vector<int64_t> numbers(const Json& list) {
  std::vector<int64_t> found;
  for (const Json& one : list.items) found.push_back(static_cast<int64_t>(one.number));
  return found;
}

std::vector<Form> forms(const Json& entries) {
  std::vector<Form> found;
  for (const Json& one : entries.items) {
    Form form{one.at("name").text, one.at("dtype").text, numbers(one.at("shape")), {}, 0};
    form.type = type_named(form.dtype);
    form.size_bytes = bytes_of(form.shape, form.type);
    found.push_back(form);
  }
  return found;
}

/* Memory of a tensor: its own, or somebody else's that outlives it. */
struct Memory {
  void* borrowed = nullptr;
  void AllocData(DLTensor* tensor) {
    std::vector<int64_t> shape(tensor->shape, tensor->shape + tensor->ndim);
    size_t size = (bytes_of(shape, tensor->dtype) + kAlignment) / kAlignment * kAlignment;
    tensor->data = borrowed != nullptr ? borrowed : std::aligned_alloc(kAlignment, size);
    if (tensor->data == nullptr) throw std::bad_alloc();
  }
  void FreeData(DLTensor* tensor) {
    if (borrowed == nullptr) std::free(tensor->data);
  }
};

ffi::Tensor tensor_of(const std::vector<int64_t>& shape, DLDataType type, void* borrowed = nullptr) {
  return ffi::Tensor::FromNDAlloc(Memory{borrowed}, ffi::ShapeView(shape.data(), shape.size()), type,
                                  DLDevice{kDLCPU, 0});
}

/* A file in memory, whose pages are read when they are used. */
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    int file = open(path.c_str(), O_RDONLY);
    struct stat about {};
    if (file >= 0 && fstat(file, &about) == 0) {
      size_ = static_cast<size_t>(about.st_size);
      begin_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    }
    if (file >= 0) close(file);
    if (begin_ == MAP_FAILED) throw std::runtime_error(path + " can't be mapped");
  }
  MappedFile(const MappedFile&) = delete;
  ~MappedFile() { munmap(begin_, size_); }
  char* at(size_t place, size_t size) const {
    if (place > size_ || size > size_ - place) throw std::runtime_error("the file of weights is truncated");
    return static_cast<char*>(begin_) + place;
  }

 private:
  void* begin_ = MAP_FAILED;
  size_t size_ = 0;
};

/* The weights of a bundle in the order of their names; they stay in the file. */
std::vector<ffi::Tensor> weights_in(const MappedFile& file) {
  uint64_t length = 0;
  std::memcpy(&length, file.at(0, 8), 8);
  std::string text(file.at(8, length), length);
  Json header = tuneloom::JsonReader(text).read();
  std::vector<ffi::Tensor> found;
  for (const auto& [name, entry] : header.fields) {
    if (name == "__metadata__") continue;
    std::vector<int64_t> shape = numbers(entry.at("shape")), ends = numbers(entry.at("data_offsets"));
    DLDataType type = stored_type(entry.at("dtype").text);
    size_t size = bytes_of(shape, type);
    char* begin = file.at(8 + length + static_cast<size_t>(ends[0]), size);
    bool aligned = reinterpret_cast<uintptr_t>(begin) % kAlignment == 0;
    ffi::Tensor tensor = tensor_of(shape, type, aligned ? begin : nullptr);
    if (!aligned) std::memcpy(tensor.data_ptr(), begin, size);
    found.push_back(tensor);
  }
  return found;
}

void require_supported(const Json& manifest) {
  int format = static_cast<int>(manifest.at("format").number);
  if (format != 3) {
    const char* remedy = format > 3 ? "build this program with a later Tuneloom" : "tune the model again";
    throw std::runtime_error("the bundle has format " + std::to_string(format) + ", not 3; " + remedy);
  }
  if (manifest.at("target").at("device").text != "cpu") throw std::runtime_error("the bundle is not for a CPU");
  const std::pair<const char*, const char*> lacking[] = {{"onnxruntime", "parts in ONNX Runtime"},
                                                         {"shapes", "several sets of shapes"},
                                                         {"state", "a state"},
                                                         {"requires", "libraries beside TVM"}};
  for (const auto& [name, words] : lacking) {
    if (manifest.has_any(name)) throw std::runtime_error(std::string("the bundle has ") + words + "; use run.py");
  }
}

/* Refuse code for another CPU: it would die of an illegal instruction. */
void require_machine(const Json& target) {
  utsname here{};
  uname(&here);
  const std::string& wanted = target.at("machine").text;
  if (wanted != here.machine) {
    throw std::runtime_error("built for " + wanted + ", this machine is " + here.machine + "; tune it again here");
  }
  std::ifstream about("/proc/cpuinfo");
  std::set<std::string> words{std::istream_iterator<std::string>(about), {}};
  for (const auto& [name, flag] : target.at("cpu_flags").fields) {
    if (!words.empty() && words.count(flag.text) == 0) {
      throw std::runtime_error("this CPU lacks " + name + ", which the bundle was built for; tune it again here");
    }
  }
}

/* TVM prints warnings about nothing while it loads a library. */
class QuietStderr {
 public:
  QuietStderr() : kept_(dup(2)) {
    int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, 2);
    close(nowhere);
  }
  QuietStderr(const QuietStderr&) = delete;
  ~QuietStderr() {
    dup2(kept_, 2);
    close(kept_);
  }

 private:
  int kept_;
};

/* As many threads as the model was tuned for, unless the environment says otherwise. */
void use_threads(const Json& manifest) {
  const Json& provenance = manifest.at("provenance");
  auto cores = provenance.fields.find("device_cores");
  int count = cores == provenance.fields.end() ? 1 : static_cast<int>(cores->second.number);
  setenv("TVM_BIND_THREADS", "0", 0);
  setenv("TVM_NUM_THREADS", std::to_string(count > 0 ? count : 1).c_str(), 0);
}

template <typename F>
int guarded(F run) {
  try {
    run();
    return 0;
  } catch (const ffi::Error& error) {
    last_error = error.message();
  } catch (const std::exception& error) {
    last_error = error.what();
  }
  return -1;
}

}  // namespace

struct tuneloom_model {
  explicit tuneloom_model(const std::string& folder) : tuneloom_model(folder, content_of(folder + "/bundle.json")) {}

  void run(const void* const* values, void* const* results) {
    std::vector<ffi::Any> arguments;
    for (size_t n = 0; n < inputs.size(); ++n) {
      std::memcpy(places_[n].data_ptr(), values[n], inputs[n].size_bytes);
      arguments.emplace_back(places_[n]);
    }
    for (const ffi::Tensor& weight : weights_) arguments.emplace_back(weight);
    std::vector<ffi::AnyView> views(arguments.begin(), arguments.end());
    ffi::Any made;
    main_.CallPacked(views.data(), static_cast<int32_t>(views.size()), &made);
    for (size_t n = 0; n < outputs.size(); ++n) {
      ffi::Tensor tensor = outputs.size() == 1 ? made.cast<ffi::Tensor>() : made.cast<ffi::Array<ffi::Tensor>>()[n];
      std::memcpy(results[n], tensor.data_ptr(), outputs[n].size_bytes);
    }
  }

  std::vector<Form> inputs, outputs;

 private:
  tuneloom_model(const std::string& folder, const std::string& text) {
    Json manifest = tuneloom::JsonReader(text).read();
    require_supported(manifest);
    require_machine(manifest.at("target"));
    use_threads(manifest);
    inputs = forms(manifest.at("inputs"));
    outputs = forms(manifest.at("outputs"));
    load(folder + "/model.so");
    file_ = std::make_unique<MappedFile>(folder + "/parameters.safetensors");
    weights_ = weights_in(*file_);
    for (const Form& one : inputs) places_.push_back(tensor_of(one.shape, one.type));
  }

  void load(const std::string& path) {
    QuietStderr quiet;
    library_ = ffi::Module::LoadFromFile(path);
    machine_ = library_.value()->GetFunction("vm_load_executable").value()().cast<ffi::Module>();
    machine_.value()->GetFunction("vm_initialization").value()(kCpu, 0, kPooledAllocator);
    main_ = machine_.value()->GetFunction("main").value();
  }

  /* Members are destroyed in reverse order: the code last, weights before the file that they lie in. */
  ffi::Optional<ffi::Module> library_, machine_;
  ffi::Function main_;
  std::unique_ptr<MappedFile> file_;
  std::vector<ffi::Tensor> weights_, places_;
};

static tuneloom_tensor_info told(const Form& form) {
  return {form.name.c_str(), form.dtype.c_str(), form.shape.data(), static_cast<int32_t>(form.shape.size()),
          form.size_bytes};
}

extern "C" {

int tuneloom_open(const char* folder, tuneloom_model** model) {
  return guarded([&] { *model = new tuneloom_model(std::string(folder)); });
}
int32_t tuneloom_inputs(const tuneloom_model* model) { return static_cast<int32_t>(model->inputs.size()); }
int32_t tuneloom_outputs(const tuneloom_model* model) { return static_cast<int32_t>(model->outputs.size()); }
tuneloom_tensor_info tuneloom_input(const tuneloom_model* model, int32_t n) { return told(model->inputs.at(n)); }
tuneloom_tensor_info tuneloom_output(const tuneloom_model* model, int32_t n) { return told(model->outputs.at(n)); }
int tuneloom_run(tuneloom_model* model, const void* const* inputs, void* const* outputs) {
  return guarded([&] { model->run(inputs, outputs); });
}
void tuneloom_close(tuneloom_model* model) { delete model; }
const char* tuneloom_error(void) { return last_error.c_str(); }

}  // extern "C"
