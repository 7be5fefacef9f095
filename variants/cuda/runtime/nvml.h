/* Clocks and temperature, from NVIDIA's management library where the driver brings it: libnvidia-ml.so.1, opened when
 * it is asked for. Part of device.cu. Never run on a GPU. */

/* Of nvml.h, which not every toolkit has. */
typedef struct nvmlDevice_st *nvml_device;
constexpr int NVML_CLOCK_SM = 1, NVML_TEMPERATURE_GPU = 0;

struct {
  int (*clock)(nvml_device, int, unsigned *), (*highest_clock)(nvml_device, int, unsigned *);
  int (*temperature)(nvml_device, int, unsigned *);
  int (*throttles)(nvml_device, unsigned long long *);
  nvml_device device; /* NULL: none was found */
} nvml;

template <class Function> bool find_function(void *library, const char *name, Function *function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

void find_in_nvml(int index) {
  int (*start)(), (*find)(const char *, nvml_device *);
  char bus[32];
  void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  nvml.device = nullptr;
  if (!library || cudaDeviceGetPCIBusId(bus, sizeof bus, index) != cudaSuccess) return;
  if (find_function(library, "nvmlInit_v2", &start) &&
      find_function(library, "nvmlDeviceGetHandleByPciBusId_v2", &find) &&
      find_function(library, "nvmlDeviceGetClockInfo", &nvml.clock) &&
      find_function(library, "nvmlDeviceGetMaxClockInfo", &nvml.highest_clock) &&
      find_function(library, "nvmlDeviceGetTemperature", &nvml.temperature) &&
      find_function(library, "nvmlDeviceGetCurrentClocksThrottleReasons", &nvml.throttles) && start() == 0 &&
      find(bus, &nvml.device) != 0)
    nvml.device = nullptr;
}

/* The bits of nvmlClocksThrottleReasons that are not the owner's wish. */
const char *throttle_words(unsigned long long reasons) {
  if (reasons & (0x20 | 0x40)) return "its temperature";
  if (reasons & 0x80) return "a power brake from outside";
  if (reasons & 0x04) return "its power limit";
  if (reasons & 0x08) return "the hardware";
  return "";
}

void look(attn_device_state *state) {
  unsigned number;
  unsigned long long reasons;
  *state = {NAN, NAN, NAN, ""};
  if (!nvml.device) return;
  if (nvml.clock(nvml.device, NVML_CLOCK_SM, &number) == 0) state->clock_mhz = number;
  if (nvml.highest_clock(nvml.device, NVML_CLOCK_SM, &number) == 0) state->highest_clock_mhz = number;
  if (nvml.temperature(nvml.device, NVML_TEMPERATURE_GPU, &number) == 0) state->celsius = number;
  if (nvml.throttles(nvml.device, &reasons) == 0)
    snprintf(state->throttled, sizeof state->throttled, "%s", throttle_words(reasons));
}
