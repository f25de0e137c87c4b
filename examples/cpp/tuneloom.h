/* Runs a bundle without Python: C interface.
 *
 * Functions return 0, or -1 on failure; tuneloom_error() then says why in one line. A model is used by one
 * thread at a time. Bundles for CPUs with one set of shapes and without a state are supported.
 */
#ifndef TUNELOOM_H_
#define TUNELOOM_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tuneloom_model tuneloom_model;

/* An input or output; owned by the model. */
typedef struct {
  const char* name;
  const char* dtype; /* as in the manifest: float32, int64, ... */
  const int64_t* shape;
  int32_t ndim;
  size_t size_bytes;
} tuneloom_tensor_info;

/* Open the bundle in a folder. Its weights are mapped, not read. */
int tuneloom_open(const char* folder, tuneloom_model** model);

int32_t tuneloom_inputs(const tuneloom_model* model);
int32_t tuneloom_outputs(const tuneloom_model* model);
tuneloom_tensor_info tuneloom_input(const tuneloom_model* model, int32_t place);
tuneloom_tensor_info tuneloom_output(const tuneloom_model* model, int32_t place);

/* Run once: contents of all inputs in, contents of all outputs out, each of size_bytes. */
int tuneloom_run(tuneloom_model* model, const void* const* inputs, void* const* outputs);

void tuneloom_close(tuneloom_model* model);

/* What failed last in this thread. */
const char* tuneloom_error(void);

#ifdef __cplusplus
}
#endif
#endif /* TUNELOOM_H_ */
