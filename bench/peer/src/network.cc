// A policy's network as a graph of TensorFlow Lite Micro, run by its interpreter.
//
// Everything is the library's own but the soft normalisation, which it does not have: that is an
// operator of ours in its interpreter, the way the library offers for such cases.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "tensorflow/lite/kernels/internal/tensor_ctypes.h"
#include "tensorflow/lite/kernels/kernel_util.h"
#include "tensorflow/lite/micro/kernels/micro_ops.h"
#include "tensorflow/lite/micro/micro_error_reporter.h"
#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"
#include "tensorflow/lite/schema/schema_generated.h"
#include "tensorflow/lite/version.h"

// One dense layer; the same in tflm.rs.
struct Layer {
  uint32_t inputs;
  uint32_t outputs;
  bool soft_normalised;
  bool tanh;
  const float* weights;  // [outputs][inputs]
  const float* bias;
};

// Layers one after the other; the same in tflm.rs.
struct Chain {
  const Layer* layers;
  uint32_t count;
};

namespace {

// Memory for the graph while it is built; given out once, never taken back.
alignas(16) uint8_t heap[1 << 20];
size_t heap_used = 0;

// The interpreter's working memory.
alignas(16) uint8_t arena[64 << 10];

TfLiteStatus SoftNormalise(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor* input = tflite::GetInput(context, node, 0);
  TfLiteTensor* output = tflite::GetOutput(context, node, 0);
  const int length = output->dims->data[1];
  const float* x = input->data.f;
  float* y = output->data.f;
  float squares = 0;
  for (int i = 0; i < length; ++i) squares += x[i] * x[i];
  const float scale = 1 / (std::sqrt(squares) + 1);
  for (int i = 0; i < length; ++i) y[i] = x[i] * scale;
  return kTfLiteOk;
}

const char kSoftNormalise[] = "SoftNormalise";

// Operators by their place in the graph's table.
enum Operator { kDense, kTanh, kConcatenate, kSoft };

// Puts a graph together, tensor by tensor.
class Graph {
 public:
  Graph() : builder_(256 << 10) {
    buffers_.push_back(tflite::CreateBuffer(builder_));  // the empty one, of all activations
  }

  int32_t Activations(uint32_t length) { return Tensor({1, int32_t(length)}, 0); }

  // Adds layers on the tensor `x`; returns the tensor of their outputs.
  int32_t Layers(const Chain& chain, int32_t x) {
    for (uint32_t i = 0; i < chain.count; ++i) x = Dense(chain.layers[i], x);
    return x;
  }

  int32_t Concatenate(int32_t a, int32_t b, uint32_t length) {
    return Operate(kConcatenate, {a, b}, length, tflite::BuiltinOptions_ConcatenationOptions,
                   tflite::CreateConcatenationOptions(builder_, 1).Union());
  }

  const tflite::Model* Finish(const std::vector<int32_t>& inputs, int32_t output) {
    const std::vector<int32_t> outputs = {output};
    using tflite::CreateOperatorCodeDirect;
    // In the order of `Operator`.
    const std::vector<flatbuffers::Offset<tflite::OperatorCode>> codes = {
        CreateOperatorCodeDirect(builder_, tflite::BuiltinOperator_FULLY_CONNECTED),
        CreateOperatorCodeDirect(builder_, tflite::BuiltinOperator_TANH),
        CreateOperatorCodeDirect(builder_, tflite::BuiltinOperator_CONCATENATION),
        CreateOperatorCodeDirect(builder_, tflite::BuiltinOperator_CUSTOM, kSoftNormalise)};
    const std::vector<flatbuffers::Offset<tflite::SubGraph>> graphs = {
        tflite::CreateSubGraphDirect(builder_, &tensors_, &inputs, &outputs, &operators_)};
    builder_.Finish(tflite::CreateModelDirect(builder_, TFLITE_SCHEMA_VERSION, &codes, &graphs,
                                              nullptr, &buffers_));
    return tflite::GetModel(builder_.GetBufferPointer());
  }

 private:
  int32_t Dense(const Layer& layer, int32_t x) {
    const int32_t inputs = layer.inputs, outputs = layer.outputs;
    const int32_t weights = Constant({outputs, inputs}, layer.weights);
    const int32_t bias = Constant({outputs}, layer.bias);
    x = Operate(kDense, {x, weights, bias}, layer.outputs,
                tflite::BuiltinOptions_FullyConnectedOptions,
                tflite::CreateFullyConnectedOptions(builder_).Union());
    if (layer.soft_normalised) x = Operate(kSoft, {x}, layer.outputs);
    if (layer.tanh) x = Operate(kTanh, {x}, layer.outputs);
    return x;
  }

  int32_t Tensor(const std::vector<int32_t>& shape, uint32_t buffer) {
    tensors_.push_back(
        tflite::CreateTensorDirect(builder_, &shape, tflite::TensorType_FLOAT32, buffer));
    return tensors_.size() - 1;
  }

  int32_t Constant(const std::vector<int32_t>& shape, const float* values) {
    size_t bytes = sizeof(float);
    for (int32_t side : shape) bytes *= side;
    builder_.ForceVectorAlignment(bytes, 1, 16);
    const auto data = builder_.CreateVector(reinterpret_cast<const uint8_t*>(values), bytes);
    buffers_.push_back(tflite::CreateBuffer(builder_, data));
    return Tensor(shape, buffers_.size() - 1);
  }

  int32_t Operate(Operator op, const std::vector<int32_t>& inputs, uint32_t length,
                  tflite::BuiltinOptions kind = tflite::BuiltinOptions_NONE,
                  flatbuffers::Offset<void> options = 0) {
    const std::vector<int32_t> outputs = {Activations(length)};
    operators_.push_back(
        tflite::CreateOperatorDirect(builder_, op, &inputs, &outputs, kind, options));
    return outputs[0];
  }

  flatbuffers::FlatBufferBuilder builder_;
  std::vector<flatbuffers::Offset<tflite::Buffer>> buffers_;
  std::vector<flatbuffers::Offset<tflite::Tensor>> tensors_;
  std::vector<flatbuffers::Offset<tflite::Operator>> operators_;
};

tflite::MicroInterpreter* interpreter = nullptr;

const tflite::Model* Build(const Chain& branch, const Chain& trunk, const Chain& head) {
  Graph& graph = *new Graph();  // the model lies in it
  const int32_t features = graph.Activations(branch.layers->inputs);
  const int32_t position = graph.Activations(trunk.layers->inputs);
  const int32_t fused = graph.Concatenate(graph.Layers(branch, features),
                                          graph.Layers(trunk, position), head.layers->inputs);
  return graph.Finish({features, position}, graph.Layers(head, fused));
}

}  // namespace

extern "C" {

// Prepares the network to be run; false, having logged why, if that fails.
bool network_load(Chain branch, Chain trunk, Chain head) {
  static tflite::MicroErrorReporter errors;
  static tflite::MicroMutableOpResolver<4> operators(&errors);
  using tflite::ops::micro::Register_CONCATENATION;
  using tflite::ops::micro::Register_FULLY_CONNECTED;
  using tflite::ops::micro::Register_TANH;
  operators.AddBuiltin(tflite::BuiltinOperator_FULLY_CONNECTED, Register_FULLY_CONNECTED());
  operators.AddBuiltin(tflite::BuiltinOperator_TANH, Register_TANH());
  operators.AddBuiltin(tflite::BuiltinOperator_CONCATENATION, Register_CONCATENATION());
  static TfLiteRegistration soft_normalise = {};
  soft_normalise.invoke = SoftNormalise;
  operators.AddCustom(kSoftNormalise, &soft_normalise);

  static tflite::MicroInterpreter instance(Build(branch, trunk, head), operators, arena,
                                           sizeof(arena), &errors);
  interpreter = &instance;
  return interpreter->AllocateTensors() == kTfLiteOk;
}

// Where the network expects its features (0) and the position's sines and cosines (1).
float* network_input(uint32_t index) { return interpreter->input(index)->data.f; }

// Runs the network; its outputs, or null if that failed.
const float* network_run() {
  return interpreter->Invoke() == kTfLiteOk ? interpreter->output(0)->data.f : nullptr;
}

}  // extern "C"

void* operator new(size_t size) {
  const size_t aligned = (size + 15) & ~size_t(15);
  if (aligned > sizeof(heap) - heap_used) abort();
  void* memory = heap + heap_used;
  heap_used += aligned;
  return memory;
}
void* operator new[](size_t size) { return operator new(size); }
void operator delete(void*) noexcept {}
void operator delete[](void*) noexcept {}
void operator delete(void*, size_t) noexcept {}
void operator delete[](void*, size_t) noexcept {}

// Thrown by containers in a library compiled with exceptions; here there are none.
namespace std {
void __throw_length_error(const char*) { abort(); }
}  // namespace std
