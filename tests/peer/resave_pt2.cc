// Loads .pt2 files and saves them again: resave_pt2 IN OUT IN OUT ...
#include <iostream>

#include <weft/weft.h>

int main(int argc, char** argv) try {
  for (int i = 1; i + 1 < argc; i += 2) weft::save_pt2(weft::load_pt2(argv[i]), argv[i + 1]);
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
