/* A product with bias, residual and activation by cuBLASLt, which is loaded when the first product runs.

   Compiled once for each kernel, with its sizes as macros. Row-major matrices are column-major ones transposed, so
   that the second factor comes first. Nothing of CUDA's headers is needed: the few types and numbers stand here. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef void *opaque;
typedef struct { uint64_t data[8]; } algorithm;
typedef struct { algorithm chosen; size_t workspace_bytes; int status; float waves; int reserved[4]; } choice;
enum { REAL_32 = 0, DESC_TRANSA = 3, DESC_TRANSB = 4, DESC_EPILOGUE = 7, DESC_BIAS = 8, DESC_BIAS_TYPE = 26 };
enum { LAYOUT_BATCH = 5, LAYOUT_STRIDE = 6, PREFERENCE_WORKSPACE = 1, CUDA_DEVICE = 2, MOST_CHOICES = 32 };
#define JOINED(name) name##_on
#define NAME_ON(name) JOINED(name)
#ifndef LIBRARIES
#define LIBRARIES "libcublasLt.so.13", "libcublasLt.so.12"
#endif

static int (*create)(opaque *);
static int (*make_product)(opaque *, int, int);
static int (*set_product)(opaque, int, const void *, size_t);
static int (*make_layout)(opaque *, int, uint64_t, uint64_t, int64_t);
static int (*set_layout)(opaque, int, const void *, size_t);
static int (*make_preference)(opaque *);
static int (*set_preference)(opaque, int, const void *, size_t);
static int (*choose)(opaque, opaque, opaque, opaque, opaque, opaque, opaque, int, choice *, int *);
static int (*multiply)(opaque, opaque, const void *, const void *, opaque, const void *, opaque, const void *,
                       const void *, opaque, void *, opaque, const algorithm *, void *, size_t, void *);
static void *(*stream_of)(int32_t, int32_t);
static int (*current_device)(int *);
static opaque handle, product, first, second, result;
static choice chosen;

static void *symbol_in(void *library, const char *name) {
  void *found = library ? dlsym(library, name) : NULL;
  if (library && !found) fprintf(stderr, "cuBLASLt: no function %s\n", name);
  return found;
}

static int load(void) {
  const char *names[] = {LIBRARIES};
  void *library = NULL, *ffi = dlopen("libtvm_ffi.so", RTLD_NOLOAD | RTLD_LAZY), *driver = dlopen("libcuda.so.1", RTLD_LAZY);
  for (size_t i = 0; i < sizeof names / sizeof *names && !library; ++i) library = dlopen(names[i], RTLD_LAZY);
  if (!library) { fprintf(stderr, "cuBLASLt is missing: %s\n", dlerror()); return 1; }
  create = symbol_in(library, "cublasLtCreate");
  make_product = symbol_in(library, "cublasLtMatmulDescCreate");
  set_product = symbol_in(library, "cublasLtMatmulDescSetAttribute");
  make_layout = symbol_in(library, "cublasLtMatrixLayoutCreate");
  set_layout = symbol_in(library, "cublasLtMatrixLayoutSetAttribute");
  make_preference = symbol_in(library, "cublasLtMatmulPreferenceCreate");
  set_preference = symbol_in(library, "cublasLtMatmulPreferenceSetAttribute");
  choose = symbol_in(library, "cublasLtMatmulAlgoGetHeuristic");
  multiply = symbol_in(library, "cublasLtMatmul");
  stream_of = symbol_in(ffi, "TVMFFIEnvGetStream");
  current_device = symbol_in(driver, "cuCtxGetDevice");
  return !(create && make_product && set_product && make_layout && set_layout && make_preference && set_preference &&
           choose && multiply);
}

static int layout(opaque *made, int type, uint64_t rows, uint64_t columns, int64_t leading, int64_t stride) {
  int32_t batch = BATCH;
  int status = make_layout(made, type, rows, columns, leading);
  if (!status && batch > 1) status = set_layout(*made, LAYOUT_BATCH, &batch, sizeof batch);
  if (!status && batch > 1) status = set_layout(*made, LAYOUT_STRIDE, &stride, sizeof stride);
  return status;
}

/* Describe the product, and take the algorithm that is asked for from the library's list. */
static int prepare(const void *bias) {
  int32_t turned_first = W_TURNED, turned_second = X_TURNED, epilogue = EPILOGUE, type = RESULT_TYPE;
  size_t workspace = WORKSPACE;
  opaque preference;
  choice choices[MOST_CHOICES];
  int found = 0, status = load();
  if (!status) status = create(&handle);
  if (!status) status = make_product(&product, COMPUTE, REAL_32);
  if (!status) status = set_product(product, DESC_TRANSA, &turned_first, sizeof turned_first);
  if (!status) status = set_product(product, DESC_TRANSB, &turned_second, sizeof turned_second);
  if (!status) status = set_product(product, DESC_EPILOGUE, &epilogue, sizeof epilogue);
  if (!status && bias) status = set_product(product, DESC_BIAS, &bias, sizeof bias);
  if (!status && bias) status = set_product(product, DESC_BIAS_TYPE, &type, sizeof type);
  if (!status) status = layout(&first, TYPE, W_TURNED ? DEPTH : COLUMNS, W_TURNED ? COLUMNS : DEPTH, W_LEADING, W_STRIDE);
  if (!status) status = layout(&second, TYPE, X_TURNED ? ROWS : DEPTH, X_TURNED ? DEPTH : ROWS, X_LEADING, X_STRIDE);
  if (!status) status = layout(&result, RESULT_TYPE, COLUMNS, ROWS, COLUMNS, (int64_t)ROWS * COLUMNS);
  if (!status) status = make_preference(&preference);
  if (!status) status = set_preference(preference, PREFERENCE_WORKSPACE, &workspace, sizeof workspace);
  if (!status) status = choose(handle, product, first, second, result, result, preference, MOST_CHOICES, choices, &found);
  if (!status && found <= ALGORITHM) status = -1;
  if (!status) chosen = choices[ALGORITHM];
  return status;
}

/* The product on a stream: pointers to the factors, bias and residual (or null), workspace and result. */
int32_t NAME_ON(SYMBOL)(void *stream, char *x, char *w, void *bias, void *residual, void *workspace, void *out) {
  static int ready = 0;
  const float one = 1.0f, keep = residual ? 1.0f : 0.0f;
  if (!ready) {
    int status = prepare(bias);
    if (status) return status;
    ready = 1;
  }
  if (bias) set_product(product, DESC_BIAS, &bias, sizeof bias);
  return multiply(handle, product, &one, w + W_SHIFT, first, x + X_SHIFT, second, &keep, residual ? residual : out,
                  result, out, result, &chosen.chosen, workspace, WORKSPACE, stream);
}

/* The same on the stream that TVM uses. */
int32_t SYMBOL(char *x, char *w, void *bias, void *residual, void *workspace, void *out) {
  int device = 0;
  if (!multiply && load()) return 1;
  if (current_device) current_device(&device);
  return NAME_ON(SYMBOL)(stream_of ? stream_of(CUDA_DEVICE, device) : NULL, x, w, bias, residual, workspace, out);
}
