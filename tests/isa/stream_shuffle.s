# stream_shuffle: partitions of a group of 32 change places; 255 leaves one.
.input x f32[32,2]
.output y f32[32,2]
.sbuf sx f32[32,2]
.sbuf sy f32[32,2]
.sync auto
dma sx, x
memset sy imm=0
stream_shuffle sy, sx mask=1,2,0,255,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
dma y, sy
# init x iota
# expect y 2 3 4 5 0 1 0 0 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63
