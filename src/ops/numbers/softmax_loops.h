// The inner loops of softmax on CPUs, vectorised if possible.
#pragma once

#include <cstdint>

namespace anydml {

// Numbers of `columns` sets side by side; rows are `row_stride` apart.
struct SoftmaxTile {
  const float* elements;
  uint64_t row_stride;
  uint32_t rows;
  uint32_t columns;
};

inline constexpr uint64_t kSoftmaxRun = 4096;  // additions in FLOAT32 before one in FLOAT64

// y = e^(x - max), where y may be x; returns the sum. A null y computes the sum only.
double ExpOfRow(const float* x, uint64_t count, float max, float* y);
// y = x * factor; y may be x.
void ScaleRow(const float* x, uint64_t count, float factor, float* y);
// x becomes the softmax of scale * x. Faster than the functions above for short rows.
void SoftmaxOfRow(float* x, uint64_t count, float scale);
// y = x - max - log
void ShiftRow(const float* x, uint64_t count, float max, float log, float* y);

// Adds e^(x - max) of every row to the sums; maxima and sums have a number per column. The powers are stored
// to y unless it is null; its rows are y_stride apart.
void AddExpOfColumns(const SoftmaxTile& tile, const float* maxima, float* sums, float* y, uint64_t y_stride);
// Multiplies every row of y by the factors.
void ScaleColumns(const SoftmaxTile& tile, const float* factors, float* y, uint64_t y_stride);
// y = e^(x - max) * factor, packed.
void SoftmaxOfColumns(const SoftmaxTile& tile, const float* maxima, const float* factors, float* y);
// y = x - max - log
void LogSoftmaxOfColumns(const SoftmaxTile& tile, const float* maxima, const float* logs, float* y);

}  // namespace anydml
