/* A convolution with bias, residual and ReLU by cuDNN, which is loaded when the first convolution runs.

   Compiled once for each kernel, with its sizes as macros. Images have their channels behind the pixels. Nothing of
   CUDA's headers is needed: the few types and numbers stand here. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef void *opaque;
typedef struct { int algorithm, status; float time; size_t memory; int determinism, math, reserved[3]; } choice;
enum { CHANNELS_LAST = 1, CROSS_CORRELATION = 1, SUMS_IN_FLOAT = 0, NAN_PROPAGATED = 1, RELU = 1, IDENTITY = 5 };
enum { CUDA_DEVICE = 2, MOST_CHOICES = 8 };
#define JOINED(name) name##_on
#define NAME_ON(name) JOINED(name)
#ifndef LIBRARIES
#define LIBRARIES "libcudnn.so.9"
#endif

/* One for all convolutions of a model: the linker keeps one of the definitions. */
__attribute__((weak, visibility("hidden"))) opaque tuneloom_cudnn_handle = NULL;

static int (*create)(opaque *), (*set_stream)(opaque, void *);
static int (*make_tensor)(opaque *), (*make_filter)(opaque *), (*make_convolution)(opaque *), (*make_activation)(opaque *);
static int (*set_tensor)(opaque, int, int, int, int, int, int), (*set_filter)(opaque, int, int, int, int, int, int);
static int (*set_convolution)(opaque, int, int, int, int, int, int, int, int);
static int (*set_groups)(opaque, int), (*set_math)(opaque, int), (*set_activation)(opaque, int, int, double);
static int (*choose)(opaque, opaque, opaque, opaque, opaque, int, int *, choice *);
static int (*plain)(opaque, const void *, opaque, const void *, opaque, const void *, opaque, int, void *, size_t,
                    const void *, opaque, void *);
static int (*fused)(opaque, const void *, opaque, const void *, opaque, const void *, opaque, int, void *, size_t,
                    const void *, opaque, const void *, opaque, const void *, opaque, opaque, void *);
static void *(*stream_of)(int32_t, int32_t);
static int (*current_device)(int *);
static opaque image, filter, window, result, channels, activation;
static int algorithm;

static void *symbol_in(void *library, const char *name, int *missing) {
  void *found = library ? dlsym(library, name) : NULL;
  if (library && !found && missing) { fprintf(stderr, "cuDNN: no function %s\n", name); *missing = 1; }
  return found;
}

static int load(void) {
  const char *names[] = {LIBRARIES};
  int missing = 0;
  void *library = NULL, *ffi = dlopen("libtvm_ffi.so", RTLD_NOLOAD | RTLD_LAZY), *driver = dlopen("libcuda.so.1", RTLD_LAZY);
  for (size_t i = 0; i < sizeof names / sizeof *names && !library; ++i) library = dlopen(names[i], RTLD_LAZY);
  if (!library) { fprintf(stderr, "cuDNN is missing: %s\n", dlerror()); return 1; }
  create = symbol_in(library, "cudnnCreate", &missing);
  set_stream = symbol_in(library, "cudnnSetStream", &missing);
  make_tensor = symbol_in(library, "cudnnCreateTensorDescriptor", &missing);
  make_filter = symbol_in(library, "cudnnCreateFilterDescriptor", &missing);
  make_convolution = symbol_in(library, "cudnnCreateConvolutionDescriptor", &missing);
  make_activation = symbol_in(library, "cudnnCreateActivationDescriptor", &missing);
  set_tensor = symbol_in(library, "cudnnSetTensor4dDescriptor", &missing);
  set_filter = symbol_in(library, "cudnnSetFilter4dDescriptor", &missing);
  set_convolution = symbol_in(library, "cudnnSetConvolution2dDescriptor", &missing);
  set_groups = symbol_in(library, "cudnnSetConvolutionGroupCount", &missing);
  set_math = symbol_in(library, "cudnnSetConvolutionMathType", &missing);
  set_activation = symbol_in(library, "cudnnSetActivationDescriptor", &missing);
  choose = symbol_in(library, "cudnnGetConvolutionForwardAlgorithm_v7", &missing);
  plain = symbol_in(library, "cudnnConvolutionForward", &missing);
  fused = symbol_in(library, "cudnnConvolutionBiasActivationForward", &missing);
  stream_of = symbol_in(ffi, "TVMFFIEnvGetStream", NULL);
  current_device = symbol_in(driver, "cuCtxGetDevice", NULL);
  return missing;
}

/* Describe the convolution, and take the algorithm that is asked for from the library's list. */
static int prepare(void) {
  choice choices[MOST_CHOICES];
  int found = 0, usable = 0, status = load();
  if (!status && !tuneloom_cudnn_handle) status = create(&tuneloom_cudnn_handle);
  if (!status) status = make_tensor(&image);
  if (!status) status = set_tensor(image, CHANNELS_LAST, TYPE, NUMBER, GROUPS * CHANNELS, HEIGHT, WIDTH);
  if (!status) status = make_tensor(&result);
  if (!status) status = set_tensor(result, CHANNELS_LAST, TYPE, NUMBER, FILTERS, OUT_HEIGHT, OUT_WIDTH);
  if (!status) status = make_tensor(&channels);
  if (!status) status = set_tensor(channels, CHANNELS_LAST, TYPE, 1, FILTERS, 1, 1);
  if (!status) status = make_filter(&filter);
  if (!status) status = set_filter(filter, TYPE, CHANNELS_LAST, FILTERS, CHANNELS, WINDOW_HEIGHT, WINDOW_WIDTH);
  if (!status) status = make_convolution(&window);
  if (!status) status = set_convolution(window, PAD_HEIGHT, PAD_WIDTH, STRIDE_HEIGHT, STRIDE_WIDTH, GAP_HEIGHT, GAP_WIDTH,
                                        CROSS_CORRELATION, SUMS_IN_FLOAT);
  if (!status && GROUPS > 1) status = set_groups(window, GROUPS);
  if (!status) status = set_math(window, MATH);
  if (!status) status = make_activation(&activation);
  if (!status) status = set_activation(activation, ACTIVATED ? RELU : IDENTITY, NAN_PROPAGATED, 0.0);
  if (!status) status = choose(tuneloom_cudnn_handle, image, filter, window, result, MOST_CHOICES, &found, choices);
  if (status) return status;
  for (int i = 0; i < found; ++i)
    if (!choices[i].status && choices[i].memory <= WORKSPACE && usable++ == ALGORITHM) algorithm = choices[i].algorithm;
  return usable > ALGORITHM ? 0 : -1;
}

/* The convolution on a stream: pointers to image, filters, bias and residual (or null), workspace and result. */
int32_t NAME_ON(SYMBOL)(void *stream, void *x, void *w, void *bias, void *residual, void *workspace, void *out) {
  static int ready = 0;
  const float one = 1.0f, none = 0.0f;
  int status = ready ? 0 : prepare();
  if (status) return status;
  ready = 1;
  status = set_stream(tuneloom_cudnn_handle, stream);
  if (status) return status;
  if (!bias)
    return plain(tuneloom_cudnn_handle, &one, image, x, filter, w, window, algorithm, workspace, WORKSPACE, &none, result, out);
  return fused(tuneloom_cudnn_handle, &one, image, x, filter, w, window, algorithm, workspace, WORKSPACE,
               residual ? &one : &none, result, residual ? residual : out, channels, bias, activation, result, out);
}

/* The same on the stream that TVM uses. */
int32_t SYMBOL(void *x, void *w, void *bias, void *residual, void *workspace, void *out) {
  int device = 0;
  if (!fused && load()) return 1;
  if (current_device) current_device(&device);
  return NAME_ON(SYMBOL)(stream_of ? stream_of(CUDA_DEVICE, device) : NULL, x, w, bias, residual, workspace, out);
}
