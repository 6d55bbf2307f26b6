# cairn_header_check: proves that every header of planner, runtime and hooks compiles alone, and twice. Headers of the C
# ABI and of the preload shim compile as C, too. Not part of `all`; the test `every_header_compiles_alone` builds it.

set(_patterns)
foreach(part planner runtime hooks)
  list(APPEND _patterns ${PROJECT_SOURCE_DIR}/${part}/*.h ${PROJECT_SOURCE_DIR}/${part}/*.hpp)
endforeach()
file(GLOB_RECURSE _headers RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${_patterns})
if(NOT TARGET cairn_cuda)
  list(FILTER _headers EXCLUDE REGEX "^hooks/cuda/")
endif()
if(NOT TARGET cairn_mpi)
  list(FILTER _headers EXCLUDE REGEX "^hooks/mpi/")
endif()
set(_sources)
foreach(header ${_headers})
  set(languages cc)
  if(header MATCHES "^(runtime/include/cairn|hooks/preload)/.*\\.h$")
    list(APPEND languages c)
  endif()
  foreach(language ${languages})
    set(source ${PROJECT_BINARY_DIR}/header_check/${header}.${language})
    file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${header}\"\n#include \"${header}\"\n")
    list(APPEND _sources ${source})
  endforeach()
endforeach()

add_library(cairn_header_check OBJECT EXCLUDE_FROM_ALL ${_sources})
target_include_directories(cairn_header_check PRIVATE ${PROJECT_SOURCE_DIR}/runtime/include)
if(TARGET cairn_cuda)
  target_include_directories(cairn_header_check SYSTEM PRIVATE ${CUDA_INCLUDE_DIR})
endif()
target_link_libraries(cairn_header_check PRIVATE cairn_flags PkgConfig::LIBUV PkgConfig::SODIUM PkgConfig::XXHASH
  nlohmann_json::nlohmann_json $<TARGET_NAME_IF_EXISTS:MPI::MPI_C>)

add_test(NAME every_header_compiles_alone
  COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --target cairn_header_check)
set_tests_properties(every_header_compiles_alone PROPERTIES TIMEOUT 600 COST 100)
