// Formats numbers with units, with three digits.
#pragma once

#include <cstdint>
#include <string>

namespace anydml::client {

// "183 us", "1.25 ms". `micro` is the sign before the s.
std::string FormatSeconds(double seconds, const char* micro = "u");

// "4.1 MB", in powers of 1000, as is usual for bandwidths.
std::string FormatBytes(double bytes);

// "1000", "20k", "1.05M"
std::string FormatCount(double count);

// Up to three digits, without an exponent from a thousandth to a million: "0.052", "1.25", "183".
std::string FormatNumber(double number);

}  // namespace anydml::client
