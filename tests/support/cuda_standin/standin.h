/* The stand-in's own functions, besides those of cuda.h that standin.cc defines. */
#ifndef CAIRN_TESTS_SUPPORT_CUDA_STANDIN_STANDIN_H_
#define CAIRN_TESTS_SUPPORT_CUDA_STANDIN_STANDIN_H_

#ifdef __cplusplus
extern "C" {
#endif

/* While held, copies that streams come to do not begin. */
void cuda_standin_hold_copies(int held);
/* How many streams stand at such a copy. */
int cuda_standin_held_copies(void);
/* A context of a device besides its primary one: a CUcontext. */
void* cuda_standin_make_context(int device);
/* Waits of a device fail at once from now on; -1: of none. */
void cuda_standin_fail_waits(int device);
/* While capturing, as under cudaStreamCaptureModeGlobal, waits and registrations fail in threads that are not in the relaxed mode. */
void cuda_standin_capture(int capturing);
/* Of registered host memory. */
int cuda_standin_pinned_ranges(void);

#ifdef __cplusplus
}
#endif

#endif /* CAIRN_TESTS_SUPPORT_CUDA_STANDIN_STANDIN_H_ */
