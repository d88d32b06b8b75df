#include "weft/base/device_event.h"

#include "base/allocator_state.h"
#include "weft/base/error.h"

namespace weft {

DeviceEvent::DeviceEvent(Device device) : device_(device) {
  require(device.type == DeviceType::kSim, "DeviceEvent: {} has no timers; simulated devices have (sim:0)",
          device.to_string());
}

void DeviceEvent::record() { moment_ = Clock::now(); }

void DeviceEvent::synchronize() const {
  require(moment_.has_value(), "DeviceEvent: the event on {} was never recorded", device_.to_string());
}

double DeviceEvent::milliseconds_until(const DeviceEvent& end) const {
  require(device_ == end.device_, "DeviceEvent: events of {} and of {} have no time between them",
          device_.to_string(), end.device_.to_string());
  synchronize();
  end.synchronize();
  return std::chrono::duration<double, std::milli>(*end.moment_ - *moment_).count();
}

std::optional<Device> device_with_timers() { return detail::first_sim_device(); }

}  // namespace weft
