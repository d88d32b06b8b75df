# `cmake --install` and what find_package(weft) reads afterwards.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(WEFT_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/weft)

# The headers are C++20, whatever a user's compiler takes for its default.
target_compile_features(weft PUBLIC cxx_std_20)
install(TARGETS weft EXPORT weft-targets)
install(TARGETS weft-tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# The program writes its manual page and its completions itself, so they tell what it takes; when it is built for another
# machine they are left out.
if(NOT CMAKE_CROSSCOMPILING)
  set(pages ${PROJECT_BINARY_DIR}/share)
  add_custom_command(
    OUTPUT ${pages}/weft.1 ${pages}/weft.bash ${pages}/_weft ${pages}/weft.fish
    COMMAND ${CMAKE_COMMAND} -E make_directory ${pages}
    COMMAND weft-tool man > ${pages}/weft.1
    COMMAND weft-tool completion bash > ${pages}/weft.bash
    COMMAND weft-tool completion zsh > ${pages}/_weft
    COMMAND weft-tool completion fish > ${pages}/weft.fish
    DEPENDS weft-tool)
  add_custom_target(weft-pages ALL DEPENDS ${pages}/weft.1)
  install(FILES ${pages}/weft.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${pages}/weft.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME weft)
  install(FILES ${pages}/_weft DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${pages}/weft.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/weft DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${WEFT_GENERATED}/weft/core/tensor_methods.inc DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/weft/core)
install(FILES ${WEFT_GENERATED}/weft/ops/functions.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/weft/ops)

# The build folder is a package too: tests build against it what they wrote.
export(TARGETS weft NAMESPACE weft:: FILE ${PROJECT_BINARY_DIR}/weft-targets.cmake)
install(EXPORT weft-targets NAMESPACE weft:: DESTINATION ${WEFT_PACKAGE_DIR})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/weft-config.cmake.in ${PROJECT_BINARY_DIR}/weft-config.cmake
                              INSTALL_DESTINATION ${WEFT_PACKAGE_DIR})
# Before 1.0 a minor version may change the API.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/weft-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/weft-config.cmake ${PROJECT_BINARY_DIR}/weft-config-version.cmake
        DESTINATION ${WEFT_PACKAGE_DIR})
