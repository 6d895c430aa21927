# --check: column 7 is read though nothing wrote it.
.input x f32[4,8]
.output y f32[4,8]
.sbuf a f32[4,8]
.sync auto
dma a[:, 0:7], x[:, 0:7]
dma y, a
# init x iota
# error instruction 1 (sync: dma, line 7) reads sbuf[0:28], which nothing has written
