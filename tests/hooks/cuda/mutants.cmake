# Ordering bugs, each put into a copy of a source by one replacement. The test that is named with it must fail with it, by the expectation whose
# text is given.

# cairn_mutate(<out> <source> <find> <replace>): the path of a copy; `find` must occur exactly once.
function(cairn_mutate out source find replace)
  file(READ ${PROJECT_SOURCE_DIR}/${source} text)
  string(REPLACE "${find}" "${replace}" mutated "${text}")
  string(LENGTH "${text}" before)
  string(LENGTH "${mutated}" after)
  string(LENGTH "${find}" length)
  string(LENGTH "${replace}" replaced)
  math(EXPR once "${before} - ${length} + ${replaced}")
  if(NOT after EQUAL once OR mutated STREQUAL text)
    message(FATAL_ERROR "${source} does not hold exactly once: ${find}")
  endif()
  get_filename_component(name ${source} NAME_WE)
  set(path ${CMAKE_CURRENT_BINARY_DIR}/${out}/${name}.cc)
  file(CONFIGURE OUTPUT ${path} CONTENT "@mutated@" @ONLY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${source})
  set(${out} ${path} PARENT_SCOPE)
endfunction()

# What the test says of the expectation, since one that cannot run has not found anything, and what comes after a wrong order may well be the end of
# the process.
function(cairn_must_fail name command filter expectation environment)
  add_test(NAME mutant.${name} COMMAND sh -c "\"$0\" --gtest_filter=\"$1\" | grep -F -- \"$2\"" ${command} ${filter} ${expectation})
  set_tests_properties(mutant.${name} PROPERTIES TIMEOUT 120 ENVIRONMENT "${environment}")
endfunction()

# Of what libcairn.so does.
function(cairn_add_staging_mutant name filter expectation source find replace)
  cairn_mutate(${name} ${source} "${find}" "${replace}")
  cairn_add_cuda_staging_test(cuda_mutant_${name} ${${name}})
  cairn_must_fail(${name} $<TARGET_FILE:cuda_mutant_${name}> CudaStaging.${filter} "${expectation}" "")
endfunction()

cairn_add_staging_mutant(step_return_copied_late TheProgramMayChangeWhatIsNotLateAsSoonAsItGoesOn went_on
  runtime/staging/snapshot.cc "return Await(*in_time_)" "return OkStatus()")
cairn_add_staging_mutant(staged_too_early ASlotIsStagedWhenTheLateCopiesAreDoneAndNotBefore "sidecar().state()"
  runtime/staging/memory_slot.cc "snapshot.late() ? OkStatus() : Finish(snapshot)" "sidecar().MarkStaged(), OkStatus()")
cairn_add_staging_mutant(late_copies_not_awaited ASlotIsStagedWhenTheLateCopiesAreDoneAndNotBefore "sidecar().state()"
  runtime/staging/snapshot.cc "late_ ? Await(*all_) : OkStatus()" "OkStatus()")
cairn_add_staging_mutant(restore_buffer_reused_early WhatARestorePutsStaysAsItIsUntilTheDeviceHasReadIt "std::count("
  runtime/restore/upload.cc "CAIRN_RETURN_IF_ERROR(buffer->read.Wait());" "")

# Of libcairn_cuda.so.
function(cairn_add_backend_mutant name filter expectation find replace)
  cairn_mutate(${name} hooks/cuda/backend.cc "${find}" "${replace}")
  add_library(cuda_mutant_${name} SHARED ${${name}} ${PROJECT_SOURCE_DIR}/hooks/cuda/driver.cc)
  target_link_libraries(cuda_mutant_${name} PRIVATE cairn_flags ${CMAKE_DL_LIBS})
  target_include_directories(cuda_mutant_${name} SYSTEM PRIVATE ${CUDA_INCLUDE_DIR})
  set_target_properties(cuda_mutant_${name} PROPERTIES OUTPUT_NAME cairn_cuda
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/${name})
  cairn_must_fail(${name} $<TARGET_FILE:cuda_staging_test> CudaStaging.${filter} "${expectation}"
    "LD_LIBRARY_PATH=${CMAKE_CURRENT_BINARY_DIR}/${name}")
endfunction()

cairn_add_backend_mutant(copy_before_the_application CopiesComeAfterWhatTheApplicationHasQueuedOnItsStream went_on
  "CAIRN_CUDA(cuStreamWaitEvent, side->stream, side->before, CU_EVENT_WAIT_DEFAULT);" "")
cairn_add_backend_mutant(event_recorded_before_the_application CopiesComeAfterWhatTheApplicationHasQueuedOnItsStream went_on
  "CAIRN_CUDA(cuEventRecord, side->before, side->application);" "")

# Of the session: cairn_fence and the next cairn_step.
cairn_mutate(fence_not_awaited runtime/session/boundary.cc
  "changed_.wait(lock, [this] { return !late_; })" "static_cast<void>(lock)")
add_library(cuda_mutant_fence_not_awaited SHARED ${PROJECT_SOURCE_DIR}/runtime/session/abi.cc ${fence_not_awaited})
target_link_libraries(cuda_mutant_fence_not_awaited PRIVATE cairn_flags cairn_session cairn_s3)
target_compile_definitions(cuda_mutant_fence_not_awaited PRIVATE CAIRN_BUILDING)
target_link_options(cuda_mutant_fence_not_awaited PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/runtime/libcairn.map -Wl,-z,defs)
set_target_properties(cuda_mutant_fence_not_awaited PROPERTIES OUTPUT_NAME cairn SOVERSION 1
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/fence_not_awaited)
cairn_must_fail(fence_not_awaited $<TARGET_FILE:cuda_session_test> CudaSession.ASaveHoldsTheStateOfItsBoundaryAlone
  "weights has "
  "CAIRN_TEST_LIBRARIES=${CMAKE_CURRENT_BINARY_DIR}/fence_not_awaited:$<TARGET_FILE_DIR:cairn_cuda>;CUDA_STANDIN_COPY_US=1000000")
