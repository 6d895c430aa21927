# partition_reduce: over partitions, sums exact for integers, averages.
.input x f32[3,2]
.input k i32[3,2]
.output y f32[1,2]
.output j i32[1,2]
.sbuf sx f32[3,2]
.sbuf sk i32[3,2]
.sbuf sy f32[1,2]
.sbuf sj i32[1,2]
.sync auto
dma sx, x
dma sk, k
partition_reduce sy, sx op0=average
partition_reduce sj, sk op0=add
dma y, sy
dma j, sj
# init x 1 2 3 4 5 9
# init k 16777217 1 1 2 1 3
# expect y 3 5
# expect j 16777219 6
