#include "ops/reduce/cuda/everything.cuh"

namespace anydml::reduce {

Launch FindFloatLaunch(Accumulation kind, bool last) { return LaunchOf<float>(kind, last); }

}  // namespace anydml::reduce
