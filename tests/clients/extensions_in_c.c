/* anydml.h from a C program. */
#include "anydml.h"

int main(void) {
  AnyDmlClearLastError();
  AnyDmlSetProfiler(0, 0);
  return AnyDmlGetLastErrorMessage()[0] != '\0' ||
         AnyDmlGetLiveObjectCount() != 0 || AnyDmlGetVersion()[0] == '\0' ||
         AnyDmlGetAdapterId(0)[0] != '\0' || AnyDmlGetAdapterTraits(0, 0, 0) == 0 || AnyDmlWhyNoGpu() == 0 || AnyDmlGetImplementation(0) == 0 || AnyDmlExplainImplementation(0) == 0 ||
         AnyDmlGetStepCount(0) != 0;
}
