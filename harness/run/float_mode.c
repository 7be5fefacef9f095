/* See float_mode.h. */
#include "float_mode.h"

#include <stddef.h>

#include "thread_watch.h"

float_mode float_mode_now(void) {
  float_mode mode;
  fegetenv(&mode.environment);
  mode.rounding = fegetround();
  return mode;
}

static const char rounding[] = "the rounding mode changed", flushed[] = "denormal numbers flushed to zero";
static const char other[] = "floating-point exceptions trapping, or another precision";

/* What is another mode, and not a flag that arithmetic sets. Nothing may be computed in it to find out: it may trap. */
static const char *difference(const float_mode *before, const float_mode *now) {
  if (now->rounding != before->rounding) return rounding;
#if defined(__x86_64__)
  /* The register of SSE: DAZ is bit 6, FTZ 15, what does not trap 7 to 12. */
  const unsigned sse = now->environment.__mxcsr ^ before->environment.__mxcsr;
  if (sse & 0x8040) return flushed;
  return sse & 0x1f80 || now->environment.__control_word != before->environment.__control_word ? other : NULL;
#elif defined(__aarch64__)
  /* FPCR: FZ is bit 24, FZ16 19. */
  const unsigned differs = now->environment.__fpcr ^ before->environment.__fpcr;
  return differs & 0x1080000 ? flushed : differs ? other : NULL;
#else
  return NULL;
#endif
}

const char *float_mode_put_back(const float_mode *mode) {
  const float_mode now = float_mode_now();
  const char *changed = difference(mode, &now);
  if (changed) fesetenv(&mode->environment);
  return changed;
}

/* libomp gives its workers the mode of the thread that calls them; libgomp leaves them as they are. */
const char *float_mode_put_back_in_team(const float_mode *mode, int threads) {
  const int kept = threads_of_openmp();
  const int team = kept >= 0 ? kept + 1 : threads > 2 ? threads : 2;
  const char *changed = NULL;
  if (team == 1) return NULL;
#pragma omp parallel num_threads(team)
  {
    const char *here = float_mode_put_back(mode);
    if (here) {
#pragma omp critical(float_mode)
      changed = here;
    }
  }
  return changed;
}
