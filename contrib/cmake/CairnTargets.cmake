# Helpers that give every target the same warnings, include root and sanitizers.

# All that `cmake --install` takes, in whatever component: each target that is installed is one of its dependencies.
add_custom_target(installed)

add_library(cairn_flags INTERFACE)
target_include_directories(cairn_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
target_compile_options(cairn_flags INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wno-missing-field-initializers>
  $<$<COMPILE_LANG_AND_ID:Fortran,GNU>:-Wall -Wextra -Wno-compare-reals>
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Woverloaded-virtual>
  $<$<BOOL:${CAIRN_WERROR}>:-Werror>)
if(CAIRN_SANITIZE)
  add_compile_options(-fsanitize=${CAIRN_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${CAIRN_SANITIZE})
  add_compile_definitions(CAIRN_SANITIZED=1)
endif()

# cairn_add_part(<name> SOURCES … LIBS …): an internal static library, linked into libcairn.so and the command.
function(cairn_add_part name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC cairn_flags ${ARG_LIBS})
endfunction()

# cairn_add_test(<name> SOURCES … LIBS …): a GoogleTest program, one ctest entry for each test in it.
function(cairn_add_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE cairn_flags ${ARG_LIBS} GTest::gmock GTest::gtest_main)
  target_compile_options(${name} PRIVATE -O0)  # optimising GoogleTest's templates takes the compiler twice as long
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 400)  # the longest takes half a minute, but not on every machine
endfunction()
