// UseS3: from now on paths of this process that begin with s3:// are objects of S3 (runtime/io/stores.h). Any thread; once is enough. Nothing is
// loaded or asked before the first such path.
#ifndef CAIRN_RUNTIME_S3_USE_S3_H_
#define CAIRN_RUNTIME_S3_USE_S3_H_

namespace cairn {

void UseS3();

}  // namespace cairn

#endif  // CAIRN_RUNTIME_S3_USE_S3_H_
