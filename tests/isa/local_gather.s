# local_gather: 16 partitions share a list of indices, two elements an index.
.input x bf16[16,4]
.input k ui16[16,1]
.output y bf16[16,4]
.sbuf sx bf16[16,4] at 0:0
.sbuf sk ui16[16,1] at 0:512
.sbuf sy bf16[16,4] at 0:1024
.sync auto
dma sx, x
dma sk, k
local_gather dst=sbuf[0:1024] dtype=bf16 d1=2 d2=1 src=sbuf[0:0] stype=bf16 s1=1 src1=sbuf[0:512] ttype=ui16 t1=1 imm=4 n0=16 n1=2 n2=2
dma y, sy
# init x iota
# init k 1 0
# expect y 2 3 0 1 6 7 4 5 10 11 8 9 14 15 12 13 18 19 16 17 22 23 20 21 26 27 24 25 30 31 28 29 34 35 32 33 38 39 36 37 42 43 40 41 46 47 44 45 50 51 48 49 54 55 52 53 58 59 56 57 62 63 60 61
