# topk: element g at partition g mod 16, column g / 16; the largest, ascending, and their indices.
.input x bf16[16,2]
.output y bf16[16,1]
.output k ui32[16,1]
.sbuf sx bf16[16,2] at 0:0
.sbuf sy bf16[16,1] at 0:1024
.sbuf sk ui32[16,1] at 0:2048
.sync auto
dma sx, x
topk dst=sbuf[0:1024] dtype=bf16 d1=1 res=sbuf[0:2048] rtype=ui32 src=sbuf[0:0] stype=bf16 s1=1 imm=16 n0=16 n1=32
dma y, sy
dma k, sk
# init x 0 31 1 30 2 29 3 28 4 27 5 26 6 25 7 24 8 23 9 22 10 21 11 20 12 19 13 18 14 17 15 16
# expect y 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
# expect k 31 30 29 28 27 26 25 24 23 22 21 20 19 18 17 16
