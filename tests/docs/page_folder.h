#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace weft::testing {

// A folder for the files that the code of a page writes: the current one while this lives, then gone.
class PageFolder {
 public:
  explicit PageFolder(const std::string& page)
      : before_(std::filesystem::current_path()),
        here_(::testing::TempDir() + "weft_page_" + page + "_" + std::to_string(::getpid())) {
    std::filesystem::create_directories(here_);
    std::filesystem::current_path(here_);
  }
  ~PageFolder() {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(here_);
  }
  PageFolder(const PageFolder&) = delete;

 private:
  std::filesystem::path before_, here_;
};

}  // namespace weft::testing
