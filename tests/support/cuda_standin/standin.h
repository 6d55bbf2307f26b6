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
/* Of registered host memory. */
int cuda_standin_pinned_ranges(void);

#ifdef __cplusplus
}
#endif

#endif /* CAIRN_TESTS_SUPPORT_CUDA_STANDIN_STANDIN_H_ */
