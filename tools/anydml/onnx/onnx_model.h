// ONNX models on the command line.
#pragma once

#include <string>

#include "anydml/cli/options.h"
#include "anydml/cli/output.h"
#include "base/status.h"
#include "onnx/file/model.h"

namespace anydml::client {

// By the name: a file that does not end in .onnx is a JSON model.
bool IsOnnxPath(const std::string& path);

inline constexpr Option kOnnxOutputOption = {
    "-o", "NAME=FILE.npy", ValueKind::kFile,
    "of an ONNX model: write this output to a file; may be given several times"};
inline constexpr Option kOnnxShapesOption = {
    "--shapes", "NAME=1x3x224x224,...", ValueKind::kText,
    "of an ONNX model: sizes of inputs; those that are not given are random"};
inline constexpr Option kOnnxRepeatOption = {
    "--repeat", "N", ValueKind::kText, "of an ONNX model: run it so often, and print how long it takes"};
inline constexpr Option kOnnxProfileOption = {
    "--profile", "[=FILE]", ValueKind::kFile,
    "of an ONNX model: print where the time goes, and write a trace for ui.perfetto.dev"};

// What was wrong in the file and was read all the same.
void WriteWarnings(const onnx::Model& model, Output* output);

Status RunOnnxModel(const std::string& path, const Arguments& arguments, Output* output);
Status CheckOnnxModel(const std::string& path, const Arguments& arguments, Output* output);

}  // namespace anydml::client
