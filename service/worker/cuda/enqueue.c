/* The time in which the host enqueues launches, with nothing between two of them but a loop. C and C++ alike. */
#include <time.h>

typedef int (*launch_kernel)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                             unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream,
                             void **parameters, void **extra);

#ifdef __cplusplus
extern "C"
#endif
/* Returns the nanoseconds of calls of cuLaunchKernel, one thread each, or the status of the driver times -1. */
long long time_enqueues(launch_kernel launch, void *function, void *stream, unsigned launches) {
    struct timespec begun, ended;
    unsigned number;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    for (number = 0; number < launches; number++) {
        const int status = launch(function, 1, 1, 1, 1, 1, 1, 0, stream, 0, 0);
        if (status) return -(long long)status;
    }
    clock_gettime(CLOCK_MONOTONIC, &ended);
    return (ended.tv_sec - begun.tv_sec) * 1000000000LL + (ended.tv_nsec - begun.tv_nsec);
}
