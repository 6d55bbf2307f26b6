# Helpers that give every target the same warnings, include root and sanitizers.

# All that `cmake --install` takes, in whatever component: each target that is installed is one of its dependencies.
add_custom_target(installed)

add_library(cairn_flags INTERFACE)
# Not the folder of the build: the compiler's cache serves all builds whose commands are the same.
target_include_directories(cairn_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(cairn_flags INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wno-missing-field-initializers>
  $<$<COMPILE_LANG_AND_ID:Fortran,GNU>:-Wall -Wextra -Wno-compare-reals>
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Woverloaded-virtual>
  $<$<BOOL:${CAIRN_WERROR}>:-Werror>)
# Since gcc 13 it is raised for the unused alternatives of a std::variant that is moved.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  target_compile_options(cairn_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
endif()
if(CAIRN_SANITIZE)
  add_compile_options(-fsanitize=${CAIRN_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${CAIRN_SANITIZE})
  add_compile_definitions(CAIRN_SANITIZED=1)
endif()

# cairn_add_headers(<name> HEADER …): precompiled headers for targets that are compiled with the same flags. Of installed libraries alone: ccache does not
# see when nothing but a macro of theirs has changed. Each source still includes what it uses, and compiles with CMAKE_DISABLE_PRECOMPILE_HEADERS=ON.
function(cairn_add_headers name)
  file(CONFIGURE OUTPUT ${name}.cc CONTENT "")
  add_library(${name} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc)
  target_precompile_headers(${name} PRIVATE ${ARGN})
  # Else clang refuses one that comes from the compiler's cache.
  target_compile_options(${name} PRIVATE $<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>)
endfunction()

# gcc takes longer for templates than for headers: to it this is of no use.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  find_package(nlohmann_json REQUIRED)
  cairn_add_headers(cairn_part_headers
    <algorithm> <chrono> <filesystem> <functional> <map> <memory> <nlohmann/json.hpp> <optional> <set> <string> <thread> <vector>)
  target_link_libraries(cairn_part_headers PRIVATE cairn_flags nlohmann_json::nlohmann_json)
endif()

# cairn_add_part(<name> SOURCES … LIBS …): an internal static library, linked into libcairn.so and the command.
function(cairn_add_part name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC cairn_flags ${ARG_LIBS})
  if(TARGET cairn_part_headers)
    target_precompile_headers(${name} REUSE_FROM cairn_part_headers)
    list(FILTER ARG_SOURCES INCLUDE REGEX "\\.c$")
    set_source_files_properties(${ARG_SOURCES} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  endif()
endfunction()

# cairn_add_backend(<name> SOURCES … INCLUDES …): a library that libcairn.so loads where a program needs it, and that is built with the headers of another
# one, which it finds at run time: it links nothing but libc. What it shows is in the folder's exports.map.
function(cairn_add_backend name)
  cmake_parse_arguments(ARG "" "" "SOURCES;INCLUDES" ${ARGN})
  set(exports ${CMAKE_CURRENT_SOURCE_DIR}/exports.map)
  add_library(${name} SHARED ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE cairn_flags ${CMAKE_DL_LIBS})
  target_include_directories(${name} SYSTEM PRIVATE ${ARG_INCLUDES})
  target_link_options(${name} PRIVATE -Wl,--version-script=${exports})
  if(NOT CAIRN_SANITIZE)  # clang has its sanitizers' functions in the program alone
    target_link_options(${name} PRIVATE -static-libstdc++ -static-libgcc -Wl,-z,defs)
  endif()
  # Beside libcairn.so as it is when it is installed.
  set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/runtime/cairn LINK_DEPENDS ${exports})
  add_dependencies(installed ${name})
  install(TARGETS ${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/cairn COMPONENT runtime)
endfunction()

# cairn_add_test_program(<name> SOURCES … LIBS …): a GoogleTest program.
function(cairn_add_test_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} cairn_test_flags GTest::gtest_main)
  target_precompile_headers(${name} REUSE_FROM cairn_test_headers)
endfunction()

# cairn_add_test(<name> SOURCES … LIBS …): the same, with one ctest entry for each test in it.
function(cairn_add_test name)
  cairn_add_test_program(${name} ${ARGN})
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 400)  # the longest takes half a minute, but not on every machine
endfunction()
