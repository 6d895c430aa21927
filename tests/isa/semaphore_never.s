# a wait for a semaphore that nothing has signalled is told, not waited for.
.output y f32[4]
vector: nop signal(s3)
scalar: wait wait(s3>=2)
# error waits for s3>=2 but it is 1
