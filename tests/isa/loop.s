# loop, endloop, reg_alu, register terms: row i of y is row 3 - i of x, buffers rotate.
.input x f32[4,8]
.output y f32[4,8]
.sbuf a f32[2][1,8]
.sync auto
loop i = 0, 4 {
    dma a[i%2], x[3-i:+1, :] queue=1
    scalar: dma y[i:+1, :], a[i%2] queue=2
}
# init x iota
# expect y 24 25 26 27 28 29 30 31 16 17 18 19 20 21 22 23 8 9 10 11 12 13 14 15 0 1 2 3 4 5 6 7
