#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "job.h"
#include "suspended_process.h"

namespace bridle {

/// A child and the job that is its boundary. src/native/job.ts documents each function.
class HeldProcess {
 public:
  explicit HeldProcess(Launch launch);
  ~HeldProcess();
  HeldProcess(const HeldProcess&) = delete;
  HeldProcess& operator=(const HeldProcess&) = delete;

  [[nodiscard]] std::uint32_t pid() const noexcept { return child_.pid; }
  [[nodiscard]] HANDLE process() const noexcept { return child_.process.get(); }
  [[nodiscard]] const std::string& token() const noexcept { return token_; }
  void assign();
  void resume();
  void terminate(std::uint32_t exit_code);
  [[nodiscard]] std::uint32_t active() const;
  [[nodiscard]] std::vector<std::uint32_t> processes() const;

 private:
  Job job_;
  SuspendedProcess child_;
  std::string token_;
  bool assigned_ = false;
};

}  // namespace bridle
