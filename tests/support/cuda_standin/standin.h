/* The stand-in's own functions, besides those of cuda.h that standin.cc defines. */
#ifndef CAIRN_TESTS_SUPPORT_CUDA_STANDIN_STANDIN_H_
#define CAIRN_TESTS_SUPPORT_CUDA_STANDIN_STANDIN_H_

#ifdef __cplusplus
extern "C" {
#endif

/* What streams come to and is held does not begin: from now on, what is named here; 0: nothing. */
enum { CUDA_STANDIN_COPIES = 1, CUDA_STANDIN_COMPUTING = 2 };
void cuda_standin_hold(unsigned int what);
/* How many threads of the program wait for a stream in vain: until something is let go, no stream can do any more. 0 while one can. */
int cuda_standin_stuck_waits(void);
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
