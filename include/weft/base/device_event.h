#pragma once

#include <chrono>
#include <optional>

#include "weft/base/device.h"

namespace weft {

// A moment in the work of a device that has timers. Simulated devices have: their work is done when a call
// returns, so that an event has happened as soon as it is recorded, and its time is that of the steady clock.
class DeviceEvent {
 public:
  // An error for a device without timers.
  explicit DeviceEvent(Device device);

  // The moment when all work that the device was given so far is done.
  void record();
  // Waits for that moment; an error where none was recorded.
  void synchronize() const;
  // From this event to a later one of the same device; both have to be recorded.
  double milliseconds_until(const DeviceEvent& end) const;

 private:
  using Clock = std::chrono::steady_clock;
  Device device_;
  std::optional<Clock::time_point> moment_;
};

// The first device with timers that this process has used; nothing where there is none.
std::optional<Device> device_with_timers();

}  // namespace weft
